"""Python arguments as the tensors of a graph's inputs: matched by position, by name or by structure.

Arrays and Python numbers are never converted unless that is exact. What is no number of any format, a fraction or a
number as text ("0.1", "1+1p-100"), is exact itself and rounded once to the input's format.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from fractions import Fraction
from typing import Any

import numpy as np

from tlir.errors import UsageError
from tlir.floatlib.convert import convert, from_integer
from tlir.floatlib.format import FORMATS, Format
from tlir.floatlib.rounding import Flags, round_fraction
from tlir.floatlib.text import TextError, parse
from tlir.floatlib.value import Value
from tlir.floatlib.words import from_ints
from tlir.ir.graph import Graph
from tlir.ir.tensor import Tensor, dtype_of_numpy, numpy_dtype, words_shape
from tlir.ir.tree import Container, Leaf, Tree
from tlir.ir.types import DType, TensorType


def bind(graph: Graph, arrays: Any) -> list[Tensor]:
    """The tensors of ``arrays`` in the order of ``input_ids``.

    ``arrays`` is a sequence in that order; or a mapping from input names (a nested value under the name of its argument
    stands for all inputs below it: ``{"params": {"w": w}}`` gives ``params['w']``); or, where the graph has an input
    tree, the positional arguments of the captured function, or a pair of those and a dict of keyword arguments.

    UsageError TL0601 for values that are missing, left over, or of another type.
    """
    names, types = graph.body.input_names(), graph.body.input_types
    values = in_order(graph, arrays)
    return [tensor_of(value, type, name) for value, type, name in zip(values, types, names, strict=True)]


def in_order(graph: Graph, arrays: Any) -> list[Any]:
    """What ``bind`` makes tensors of, as it was given."""
    names = graph.body.input_names()
    if isinstance(arrays, Mapping):
        return _by_name(arrays, names)
    if isinstance(arrays, Sequence) and not isinstance(arrays, str | bytes):
        return _by_position(graph, arrays, names)
    raise UsageError(
        "TL0601",
        f"the inputs are {_kind(arrays)}, not a sequence or a mapping of arrays",
        hint="give a list, also for one input: graph.run([array])",
    )


def _by_name(arrays: Mapping[Any, Any], names: Sequence[str]) -> list[Any]:
    given: dict[str, Any] = {}
    for key, value in arrays.items():
        if key in names:
            require_unique(str(key), names)
            given[key] = value
        else:
            given.update(leaves(value, str(key)))
    for name in given:
        if name not in names:
            raise unknown_input(name, names)
    missing = [name for name in names if name not in given]
    if missing:
        raise UsageError("TL0601", f"no value for input {missing[0]!r}", hint=f"the inputs are {', '.join(names)}")
    return [given[name] for name in names]


def unknown_input(name: str, names: Sequence[str]) -> UsageError:
    """The error of a name that no input has."""
    close = get_close_matches(name, names, 1)
    hint = f"did you mean {close[0]!r}?" if close else f"the inputs are {', '.join(names)}" if names else None
    return UsageError("TL0601", f"there is no input {name!r}", hint=hint or "the graph has no inputs")


def require_unique(name: str, names: Sequence[str]) -> None:
    """UsageError TL0601 for a name of several inputs, which says none of them."""
    if (count := names.count(name)) > 1:
        hint = "give them different names in the artifact, or in Python all arrays as a list"
        raise UsageError("TL0601", f"{count} inputs are named {name!r}", hint=hint)


def leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """What a nested value holds, each with its path: that of an input's name."""
    if isinstance(value, Mapping):
        children = [(f"{path}[{key!r}]", child) for key, child in value.items()]
    elif isinstance(value, tuple) and (fields := getattr(value, "_fields", None)):
        children = [(f"{path}.{field}", child) for field, child in zip(fields, value, strict=True)]
    elif isinstance(value, list | tuple):
        children = [(f"{path}[{k}]", child) for k, child in enumerate(value)]
    elif value is None:
        children = []
    else:
        yield path, value
        return
    for name, child in children:
        yield from leaves(child, name)


def _by_position(graph: Graph, arrays: Sequence[Any], names: Sequence[str]) -> list[Any]:
    flat = not any(isinstance(value, Mapping | list | tuple) or value is None for value in arrays)
    if graph.input_tree is None or (flat and len(arrays) == len(names)):
        if len(arrays) != len(names):
            expected = ", ".join(names) or "none"
            raise UsageError(
                "TL0601", f"{len(arrays)} inputs for a graph of {len(names)}", hint=f"the inputs are {expected}"
            )
        return list(arrays)
    tree: Container = graph.input_tree
    positional, keywords = list(arrays), dict[str, Any]()
    if tree.keys and len(arrays) == 2 and isinstance(arrays[0], Sequence) and isinstance(arrays[1], Mapping):
        positional, keywords = list(arrays[0]), dict(arrays[1])
    split = len(tree.children) - len(tree.keys)
    if len(positional) != split or set(keywords) != set(tree.keys):
        takes = f"{split} positional arguments" + (f" and {', '.join(map(str, tree.keys))}" if tree.keys else "")
        found = f"{len(positional)}" + (f" and {', '.join(map(str, keywords))}" if keywords else "")
        hint = f"the inputs are {', '.join(names)}" + (": give ([positional, …], {name: …})" if tree.keys else "")
        raise UsageError("TL0601", f"{found} given, the captured function takes {takes}", hint=hint)
    values: list[Any] = []
    for child, argument in zip(tree.children, [*positional, *(keywords[str(key)] for key in tree.keys)], strict=True):
        _match(child, argument, names, values)
    return values


def _match(tree: Tree, value: Any, names: Sequence[str], values: list[Any]) -> None:
    """Append the leaves of ``value``, which must have the structure of ``tree``."""
    if isinstance(tree, Leaf):
        values.append(value)
        return
    place = f"before input {names[len(values)]!r}" if len(values) < len(names) else "after the last input"
    if tree.kind == "none":
        if value is not None:
            raise UsageError("TL0601", f"{place}: expected None, not {_kind(value)}")
        return
    if tree.kind == "dict":
        if not isinstance(value, Mapping) or set(value) != set(tree.keys):
            raise UsageError("TL0601", f"{place}: expected a dict with keys {list(tree.keys)}, not {_kind(value)}")
        children = [value[key] for key in tree.keys]
    else:
        if not isinstance(value, list | tuple) or len(value) != len(tree.children):
            what = f"{tree.kind} of {len(tree.children)}"
            raise UsageError("TL0601", f"{place}: expected a {what}, not {_kind(value)}")
        children = list(value)
    for child, part in zip(tree.children, children, strict=True):
        _match(child, part, names, values)


def _kind(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"a dict with keys {list(value)}"
    if isinstance(value, list | tuple):
        return f"a {type(value).__name__} of {len(value)}"
    return f"a {type(value).__name__}"


def tensor_of(value: Any, type: TensorType, name: str) -> Tensor:
    """The tensor of one value: an array of exactly this dtype and shape, or for a scalar input a Python number that the
    dtype holds exactly, a ``Value`` that it holds exactly, a ``Fraction`` or a number as text; an array may hold such
    objects too, or texts. UsageError TL0601 otherwise, naming the cast."""
    if isinstance(value, Tensor):
        return _require(value, type, name)
    if isinstance(value, bool | int | float | complex) and not isinstance(value, np.generic):
        return _require(Tensor(TensorType((), type.dtype), _scalar_words(value, type.dtype, name)), type, name)
    if isinstance(value, Value | Fraction | str):
        item, value = value, np.empty((), dtype=object)
        value[()] = item
    if isinstance(value, list | tuple) or not hasattr(value, "__array__"):
        raise UsageError(
            "TL0601", f"input {name!r} is {_kind(value)}, not an array", hint=f"give {_array_text(type.dtype)}"
        )
    if isinstance(value, np.ma.MaskedArray):
        raise UsageError(
            "TL0601",
            f"input {name!r} is a masked array, and an input has no mask",
            hint="say what stands for the masked elements: array.filled(…), or array.data for what lies under the mask",
        )
    array = np.asarray(value)
    if array.dtype == object or array.dtype.kind == "U":
        return _require(_from_objects(array, type, name), type, name)
    if dtype_of_numpy(array.dtype) is None:
        raise UsageError("TL0601", f"input {name!r} is {type}, and an array of {array.dtype} was given")
    return _require(Tensor.from_numpy(array), type, name)


def _array_text(dtype: DType) -> str:
    native = numpy_dtype(dtype)
    return f"np.array(…, dtype={str(native)!r})" if native is not None else f"an object array of {dtype.name} Values"


def _require(tensor: Tensor, type: TensorType, name: str) -> Tensor:
    if tensor.type == type:
        return tensor
    hint = None
    if tensor.dtype != type.dtype:
        native = numpy_dtype(type.dtype)
        if native is not None:
            hint = f"convert it first where that is meant: array.astype({str(native)!r})"
    raise UsageError("TL0601", f"input {name!r} is {type}, and {tensor.type} was given", hint=hint)


def _scalar_words(value: bool | int | float | complex, dtype: DType, name: str) -> Any:
    def refuse(because: str) -> UsageError:
        text = repr(value) if not isinstance(value, int) or abs(value) < 10**30 else "this integer"
        hint = f"give {_array_text(dtype)}, which says how it is converted"
        return UsageError("TL0601", f"input {name!r}: {text} {because}", hint=hint)

    if dtype.is_bool or isinstance(value, bool):
        if not (dtype.is_bool and isinstance(value, bool)):
            raise refuse(f"is not a value of {dtype.name}")
        return np.array(int(value), dtype.word_dtype)
    if dtype.is_integer:
        low, high = (-(1 << dtype.bits - 1), 1 << dtype.bits - 1) if dtype.is_signed else (0, 1 << dtype.bits)
        if not isinstance(value, int) or not low <= value < high:
            raise refuse(f"is not an integer of {dtype.name}")
        return np.array(value & ((1 << dtype.bits) - 1), dtype.word_dtype)
    if isinstance(value, complex) and not dtype.is_complex:
        raise refuse(f"is not a real number, the input is {dtype.name}")
    parts = [value.real, value.imag] if dtype.is_complex else [value]
    fmt = dtype.float_format
    words = []
    for part in parts:
        word, flags = _exact(fmt, part)
        if flags & (Flags.INEXACT | Flags.INVALID):
            raise refuse(f"is not exactly a {fmt.name} number")
        words.append(word)
    return from_ints(fmt, words if dtype.is_complex else words[0])


def _exact(fmt: Format, value: Any) -> tuple[int, Flags]:
    if isinstance(value, int):
        return from_integer(fmt, value)
    if value != value and fmt.nan is not None:
        return fmt.nan, Flags(0)
    return convert(FORMATS["float64"], fmt, int(np.float64(value).view(np.uint64)))


def _from_objects(array: Any, type: TensorType, name: str) -> Tensor:
    """An array of objects, each a ``Value``, a fraction, a Python number or a text; of a complex input also pairs of
    them, as ``Tensor.to_numpy`` gives for formats without a NumPy type."""
    dtype = type.dtype
    if not (dtype.is_float or dtype.is_complex):
        raise UsageError("TL0601", f"input {name!r} is {type}, and an array of other objects was given")
    words: list[int] = []
    for position, item in enumerate(array.reshape(-1)):
        try:
            parts = _parts(item, dtype)
            words.extend(_rounded(dtype.float_format, part) for part in parts)
        except (_Refused, TextError) as error:
            index = [int(i) for i in np.unravel_index(position, array.shape)] if array.shape else ""
            raise UsageError("TL0601", f"input {name!r}{index}: {error}") from None
    given = TensorType(array.shape, dtype)
    tensor = Tensor(given, np.ascontiguousarray(from_ints(dtype.float_format, words)).reshape(words_shape(given)))
    return _require(tensor, type, name)


class _Refused(Exception):
    """Why an object is not an element of the dtype, as a sentence."""


def _parts(item: Any, dtype: DType) -> Sequence[Any]:
    """The real numbers that an element consists of: one, or two of a complex dtype."""
    if not dtype.is_complex:
        return [item]
    if isinstance(item, tuple):
        if len(item) != 2:
            raise _Refused(f"a complex element is a pair, not {len(item)} numbers")
        return item
    if isinstance(item, str):
        return complex_parts(item)
    return [item.real, item.imag] if isinstance(item, complex) else [item, 0]


def _rounded(fmt: Format, item: Any) -> int:
    """The word of one object in the format, rounded once where it is no number of a format itself."""
    exact = False
    if isinstance(item, str):
        word, flags = parse(fmt, item)
    elif isinstance(item, Fraction):
        word, flags = round_fraction(fmt, item)
    elif isinstance(item, Value):
        if item.format == fmt:
            return item.word
        word, flags = convert(item.format, fmt, item.word)
        exact = True
    elif isinstance(item, int | float) and not isinstance(item, bool):
        word, flags = _exact(fmt, item)
        exact = True
    else:
        raise _Refused(f"{_kind(item)} is not a number")
    shown = str(item) if not isinstance(item, int) or abs(item) < 10**30 else "this integer"
    shown = shown if len(shown) <= 60 else shown[:60] + "…"
    if flags & Flags.INVALID:
        raise _Refused(f"{shown} has no word in {fmt.name}")
    if flags & Flags.OVERFLOW:
        raise _Refused(f"{shown} is beyond the largest number of {fmt.name}")
    if exact and flags & Flags.INEXACT:
        raise _Refused(f"{shown} is not exactly a {fmt.name} number; give it as text or as a fraction to round it")
    return word


_EXPONENT = re.compile(r"[pP]$|(?<![0-9a-fA-FxX.])[0-9.]+[eE]$")


def complex_parts(text: str) -> list[str]:
    """Real and imaginary part; the last sign that does not belong to an exponent begins the imaginary one."""
    compact = text.replace(" ", "")
    if not compact.lower().endswith("j"):
        return [compact, "0"]
    body = compact[:-1]
    cut = next((k for k in range(len(body) - 1, 0, -1) if body[k] in "+-" and not _EXPONENT.search(body[:k])), 0)
    real, imaginary = body[:cut], body[cut:]
    return [real or "0", imaginary + "1" if imaginary in ("", "+", "-") else imaginary]
