"""Capture a JAX function as a tlir artifact: its jaxpr as a graph, its constants as words, and recorded outputs.

This file stands alone: it needs jax, NumPy and the standard library, so it can be copied into any JAX environment.

    python jax_capture.py my_model.py:predict --args my_model.py:example_args -o predict.json

or, from Python,

    import jax_capture
    artifact = jax_capture.export(predict, params, x)
    jax_capture.save(artifact, "predict.json")

or at once with ``jax_capture.write("predict.json", predict, params, x)``, which needs less memory for large values.

The function is traced with ``jax.make_jaxpr``; wrappers (``jit``, ``checkpoint``, custom derivative rules, …) are
inlined; every primitive becomes the operations that mean the same, looked up in ``RULES``. What has no rule is
collected and raised together as one ``UnsupportedError``. Outputs are recorded by evaluating each equation by itself,
because a compiled function fuses and rearranges arithmetic; ``compile=True`` records those of ``jax.jit`` instead.
``scan``, ``while`` and ``cond`` become nodes with regions; to record outputs their bodies are followed equation by
equation too. A primitive that JAX or another library defines by a function of JAX operations is read as that function.
Random keys are recorded as their uint32 data, and the generators as the integer operations that they consist of.
"""

from __future__ import annotations

import argparse
import ast
import base64
import concurrent.futures
import contextlib
import dataclasses
import errno
import functools
import gc
import hashlib
import importlib
import importlib.util
import inspect
import itertools
import json
import math
import os
import pkgutil
import re
import secrets
import signal
import sys
import tempfile
import traceback
import types
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

try:
    import jax
    import numpy as np
    from jax import lax
    from jax.extend import core as jax_core
except ImportError as missing:
    if __name__ != "__main__":
        raise
    print(f"jax_capture: {missing}; this script needs jax and NumPy", file=sys.stderr)
    raise SystemExit(4) from None

CAPTURE_VERSION = "1"
"""Written into the producer; counts changes of what this script records for the same function."""

MAX_HEX_WORDS = 32
"""Tensors of up to so many words are written as hexadecimal text, larger ones as base64."""

EXTERNAL_BYTES = 1 << 20
"""``save`` moves constants of more bytes than this to a ``.safetensors`` file."""

HELD_BYTES = 1 << 12
"""Tensors of more bytes than this are kept as arrays until they are written."""


# ---- errors ---------------------------------------------------------------------------------------------------------


class CaptureError(Exception):
    """The function or its arguments cannot be captured; the message says why and what to do."""


@dataclasses.dataclass(frozen=True)
class Problem:
    """One equation that cannot be expressed: the primitive, its main parameters, where the user wrote it, and why.

    ``within`` names the primitives whose bodies hold it, outermost first.
    """

    primitive: str
    params: str
    source: str | None
    reason: str
    within: tuple[str, ...] = ()

    def __str__(self) -> str:
        text = f"{self.primitive}({self.params})" if self.params else self.primitive
        text += f" in the body of {' > '.join(self.within)}" if self.within else ""
        text += f" at {self.source}" if self.source else ""
        return f"{text}: {self.reason}"


class UnsupportedError(CaptureError):
    """The function uses primitives that an artifact cannot express; ``problems`` lists every one of them."""

    def __init__(self, name: str, problems: Sequence[Problem]) -> None:
        self.problems = list(problems)
        count = "one equation" if len(problems) == 1 else f"{len(problems)} equations"
        lines = [f"{name or 'the function'} cannot be captured because of {count}:"]
        super().__init__("\n".join(lines + [f"  {problem}" for problem in self.problems]))


class _Inexpressible(Exception):
    """Raised by a rule: this equation has no expression, for the reason given."""


# ---- dtypes and words -----------------------------------------------------------------------------------------------

_BITS = {"bool": 1, "float16": 16, "bfloat16": 16, "float32": 32, "float64": 64, "complex64": 32, "complex128": 64}
_BITS |= {f"{kind}{bits}": bits for kind in ("int", "uint") for bits in (2, 4, 8, 16, 32, 64)}
_BITS |= {
    f"float8_{name}": 8 for name in ("e3m4", "e4m3", "e4m3fn", "e4m3b11fnuz", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu")
}
_BITS |= {"float6_e2m3fn": 6, "float6_e3m2fn": 6, "float4_e2m1fn": 4}


@functools.lru_cache(256)
def dtype_name(dtype: Any) -> str:
    """The artifact's name of a dtype; CaptureError where there is none."""
    name = _any_name(dtype)
    if name not in _BITS:
        raise CaptureError(f"the dtype {dtype} has no words in an artifact")
    return name


@functools.lru_cache(256)
def _any_name(dtype: Any) -> str:
    """A name of a dtype, also of one that has no words."""
    return str(dtype.name if hasattr(dtype, "name") else dtype)


@functools.lru_cache(256)
def _kind(dtype: str) -> str:
    """ "bool", "int", "uint", "float" (bfloat16 too) or "complex"."""
    return "float" if dtype == "bfloat16" else re.match(r"[a-z]+", dtype)[0]  # type: ignore[index]


def _is_key(value: Any) -> bool:
    """Whether a value, or the type of one, is an array of random keys; these are recorded as their uint32 data."""
    return hasattr(value, "dtype") and _is_key_dtype(value.dtype)


@functools.lru_cache(256)
def _is_key_dtype(dtype: Any) -> bool:
    return bool(jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key))


def _words(array: Any) -> np.ndarray:
    """The words of an array, flat, as little-endian unsigned integers of whole bytes, unused high bits zero."""
    bits = _BITS[dtype_name(array.dtype)]
    width = (bits + 7) // 8
    native = np.ascontiguousarray(array)
    if native.dtype.byteorder == ">":
        native = native.astype(native.dtype.newbyteorder("="))
    words = native.reshape(-1).view(f"u{width}")
    if bits % 8 and bits > 1:
        words = words & np.uint8((1 << bits) - 1)
    return words.astype(f"<u{width}", copy=False)


class _Large(dict[str, Any]):
    """A tensor as an artifact has it, whose base64 text is made anew each time that it is read: of large tensors the
    words are kept as they are, which for an array of JAX or NumPy is no copy."""

    def __init__(self, described: Mapping[str, Any], words: np.ndarray) -> None:
        super().__init__(described, base64="")
        self.array = words

    def __getitem__(self, key: str) -> Any:
        return base64.b64encode(self.array).decode("ascii") if key == "base64" else super().__getitem__(key)

    def __iter__(self) -> Iterator[str]:  # of its own, so that dict(…) and {**…} read through __getitem__
        return iter(list(super().keys()))

    def get(self, key: str, default: Any = None) -> Any:
        try:
            return self[key]
        except KeyError:
            return default

    def items(self) -> Any:
        return [(key, self[key]) for key in self]

    def values(self) -> Any:
        return [self[key] for key in self]

    def copy(self) -> dict[str, Any]:
        return dict(self.items())

    def __or__(self, other: Any) -> Any:
        return self.copy() | other

    def __ror__(self, other: Any) -> Any:
        return other | self.copy()

    def __eq__(self, other: object) -> bool:
        return self.copy() == (other.copy() if isinstance(other, _Large) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __reduce__(self) -> Any:
        return dict, (self.items(),)

    __hash__ = None  # type: ignore[assignment]


def tensor(array: Any) -> dict[str, Any]:
    """The tensor of an artifact that holds exactly the words of ``array``."""
    fixed = isinstance(array, jax.Array)
    array = np.asarray(array)
    name, words = dtype_name(array.dtype), _words(array)
    described: dict[str, Any] = {"dtype": name, "shape": [int(size) for size in array.shape]}
    if words.size <= MAX_HEX_WORDS:
        digits = (_BITS[name] + 3) // 4
        return described | {"words": " ".join(f"{int(word):0{digits}x}" for word in words)}
    if words.nbytes > HELD_BYTES:
        return _Large(described, words if fixed or words.nbytes > EXTERNAL_BYTES else words.copy())
    return described | {"base64": base64.b64encode(words).decode("ascii")}


# ---- places in the user's source ------------------------------------------------------------------------------------

_JAX_FOLDER = os.path.join(os.path.dirname(os.path.abspath(jax.__file__)), "")
_THIS_FILE = os.path.abspath(__file__)


@dataclasses.dataclass(frozen=True)
class Source:
    """A place in the user's program; ``file`` is shortened so that it is the same on every machine."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" + (f" in {self.function}" if self.function else "")


def _short_path(path: str) -> str:
    """The part after the last ``site-packages``, else relative to the current folder when below it, else the name."""
    return _shortened(path, os.getcwd())


@functools.lru_cache(1024)
def _shortened(path: str, here: str) -> str:
    posix = Path(path).as_posix()
    for folder in ("/site-packages/", "/dist-packages/"):
        if folder in posix:
            return posix.rpartition(folder)[2]
    with_dots = os.path.relpath(path, here) if os.path.splitdrive(path)[0] == os.path.splitdrive(here)[0] else path
    relative = Path(with_dots).as_posix()
    return relative if not relative.startswith("../") and not os.path.isabs(with_dots) else posix.rpartition("/")[2]


def _source(equation: Any, outer: Source | None) -> Source | None:
    """Where the user wrote the equation: the innermost frame that is neither JAX's nor this script's caller.

    ``outer`` is the place of the call that the equation was inlined from, for equations without a frame of their own.
    """
    from jax._src import source_info_util

    for frame in source_info_util.user_frames(equation.source_info.traceback):
        if os.path.abspath(frame.file_name) == _THIS_FILE:
            break
        file = _short_path(frame.file_name).encode("utf-8", "replace").decode("utf-8")
        return Source(file, int(frame.start_line), frame.function_name)
    return outer


def _is_jax_function(jaxpr: Any) -> bool:
    """Whether the traced function is JAX's own. Its equations carry the place of the first call anywhere in the
    process, since JAX caches the trace; so they get the place of the call at hand instead."""
    described = str(getattr(jaxpr.debug_info, "func_src_info", "") or "")
    return _JAX_FOLDER in described


# ---- argument trees -------------------------------------------------------------------------------------------------

_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _tree_key(key: Any, path: str) -> str | int:
    if isinstance(key, str):
        return key
    if isinstance(key, (int, np.integer)) and not isinstance(key, (bool, np.bool_)):
        return int(key)
    if isinstance(key, tuple):  # by its text
        for part in key:
            _tree_key(part, path)
        return repr(key)
    named = path or "the result"
    raise CaptureError(f"{named} has the key {key!r}: keys must be strings or integers, or tuples of them")


def _encode_tree(value: Any, path: str, leaves: list[Any], paths: list[str]) -> Any:
    """The JSON tree of a pytree; appends its leaves, in JAX's order, to ``leaves`` and their names to ``paths``.

    Registered classes become named tuples where their children have attribute names, dicts where they have keys, and
    lists otherwise.
    """
    if value is None:
        return None
    registry = jax.tree_util.default_registry
    level = None if jax.tree_util.all_leaves([value]) else registry.flatten_one_level_with_keys(value)
    if level is None:
        leaves.append(value)
        paths.append(path)
        return len(leaves) - 1
    entries = [(entry, child) for entry, child in level[0]]
    name = type(value).__name__
    plain = isinstance(value, tuple) and list(map(id, value)) == [id(child) for _, child in entries]
    if plain and hasattr(value, "_fields"):  # and not registered with children of its own
        fields = [(field, field, child) for field, child in zip(value._fields, value, strict=True)]
        return _encode_fields(name, fields, path, leaves, paths)
    keyed = bool(entries) and all(isinstance(entry, jax.tree_util.DictKey) for entry, _ in entries)
    if isinstance(value, Mapping) or keyed:
        pairs = []
        for entry, child in entries:
            key = _tree_key(entry.key, path)
            pairs.append([key, _encode_tree(child, f"{path}[{key!r}]", leaves, paths)])
        if len({key for key, _ in pairs}) < len(pairs):
            raise CaptureError(f"{path or 'the result'} has a tuple and its text as keys: {[key for key, _ in pairs]}")
        return {"dict": pairs}
    if entries and all(isinstance(entry, jax.tree_util.GetAttrKey) for entry, _ in entries):
        fields = [(entry.name, entry.name, child) for entry, child in entries]
        return _encode_fields(name, fields, path, leaves, paths)
    children = [_encode_tree(child, f"{path}[{k}]", leaves, paths) for k, (_, child) in enumerate(entries)]
    return {"tuple" if isinstance(value, tuple) else "list": children}


def _encode_fields(
    name: str, fields: Iterable[tuple[str, str, Any]], path: str, leaves: list[Any], paths: list[str]
) -> dict[str, Any]:
    encoded = [
        [field, _encode_tree(child, f"{path}.{attribute}" if path else attribute, leaves, paths)]
        for field, attribute, child in fields
    ]
    return {"namedtuple": name if _FIELD.fullmatch(name) else re.sub(r"\W", "_", name), "fields": encoded}


def _argument_names(fn: Callable[..., Any], count: int) -> list[str]:
    """A name for each of ``count`` positional arguments, from the function's signature where it has one."""
    try:
        parameters = list(inspect.signature(fn).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    named = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "args")
    return [named[k] if k < len(named) else f"{rest}[{k - len(named)}]" for k in range(count)]


def _is_static(leaf: Any) -> bool:
    """Whether a leaf inside an argument is a part of the program rather than data: what neither JAX nor another
    library takes for an array, such as the activation function of a layer, a text, or the structure of a tree."""
    if isinstance(leaf, (bool, int, float, complex, np.ndarray, np.generic, jax.Array, jax.ShapeDtypeStruct)):
        return False
    return not any(hasattr(leaf, name) for name in ("__jax_array__", "__array__", "__dlpack__"))


def _without_static(
    fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[Callable[..., Any], Sequence[Any], Mapping[str, Any]]:
    """The function and its arguments with None in the place of static leaves, which the function puts back. Where its
    result has one of them, that is None too; another leaf that is no array there is refused. A whole argument is never
    static."""
    trees = [*args, *kwargs.values()]
    leaves, structure = jax.tree_util.tree_flatten(trees)
    inside = [not jax.tree_util.all_leaves([tree]) for tree in trees for _ in jax.tree_util.tree_leaves(tree)]
    static = {k: leaf for k, leaf in enumerate(leaves) if inside[k] and _is_static(leaf)}
    if not static:
        return fn, args, kwargs

    def kept(path: Any, leaf: Any) -> Any:
        if not _is_static(leaf):
            return leaf
        if not any(leaf is own or (type(leaf) is type(own) and bool(leaf == own)) for own in static.values()):
            raise CaptureError(
                f"the result{jax.tree_util.keystr(path)} is a {type(leaf).__name__}, neither an array nor part of an "
                "argument: return the arrays alone"
            )
        return None

    def called(*args: Any, **kwargs: Any) -> Any:
        arrays = iter(jax.tree_util.tree_leaves([*args, *(kwargs[name] for name in names)]))
        whole = [static[k] if k in static else next(arrays) for k in range(len(leaves))]
        trees = jax.tree_util.tree_unflatten(structure, whole)
        result = fn(*trees[: len(args)], **dict(zip(names, trees[len(args) :], strict=True)))
        return jax.tree_util.tree_map_with_path(kept, result)

    names = list(kwargs)
    given = [None if k in static else leaf for k, leaf in enumerate(leaves)]
    trees = jax.tree_util.tree_unflatten(structure, given)
    return called, trees[: len(args)], dict(zip(names, trees[len(args) :], strict=True))


@dataclasses.dataclass
class Arguments:
    """The flattened arguments of a call: leaves in JAX's order, a name for each, and the tree (None where flat)."""

    leaves: list[Any]
    names: list[str]
    tree: Any


def _flatten_arguments(fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Arguments:
    leaves: list[Any] = []
    names: list[str] = []
    positional = [
        _encode_tree(value, name, leaves, names)
        for name, value in zip(_argument_names(fn, len(args)), args, strict=True)
    ]
    keyword = [[name, _encode_tree(kwargs[name], name, leaves, names)] for name in sorted(kwargs)]
    flat = not keyword and all(isinstance(tree, int) for tree in positional)
    return Arguments(leaves, names, None if flat else {"args": positional, "kwargs": keyword})


def _result_tree(shapes: Any) -> Any:
    """The tree of the result, or None where it is one array or a plain tuple of arrays. A result of None gives
    ``_NOTHING``, since the tree of None is null."""
    leaves: list[Any] = []
    tree = _encode_tree(shapes, "", leaves, [])
    if isinstance(tree, int) or (
        isinstance(tree, dict) and "tuple" in tree and all(isinstance(child, int) for child in tree["tuple"])
    ):
        return None
    return _NOTHING if tree is None else tree


_NOTHING = object()


def _argument_array(leaf: Any, name: str) -> Any:
    """The argument as JAX takes it. CaptureError for what is no array; a warning where 64-bit values lose digits."""
    named = f"the argument {name}" if name else "an argument"
    if _is_key(leaf):
        return jax.random.key_data(leaf)
    if isinstance(leaf, jax.Array) and not isinstance(leaf, jax.core.Tracer):
        dtype_name(leaf.dtype)
        return leaf
    hint = f"bind it before the capture, for instance with functools.partial(f, {name.partition('[')[0]}=…)"
    if not isinstance(leaf, (bool, int, float, complex, np.ndarray, np.generic, jax.Array)) and not hasattr(
        leaf, "__jax_array__"
    ):
        raise CaptureError(f"{named} is a {type(leaf).__name__}, neither an array nor a number; {hint}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            taken = jax.numpy.asarray(leaf)
    except (TypeError, OverflowError) as error:
        raise CaptureError(f"{named}: {str(error).splitlines()[0]}") from None
    if isinstance(leaf, (np.ndarray, np.generic)) and leaf.dtype != taken.dtype and leaf.dtype.kind in "iufc":
        back = np.asarray(taken).astype(leaf.dtype)
        if not np.array_equal(back, leaf, equal_nan=leaf.dtype.kind in "fc"):
            warnings.warn(
                f"{named} is {leaf.dtype} and is rounded to {taken.dtype}, because JAX's 64-bit mode is off",
                stacklevel=4,
            )
    dtype_name(taken.dtype)
    return taken


# ---- sizes that are not fixed ---------------------------------------------------------------------------------------


def _symbols(dim: Any) -> list[str]:
    """The names of the symbolic dimensions that a size depends on; none for a number."""
    names = getattr(dim, "_get_vars", None)
    return sorted(names()) if names is not None else []


def _pinned(
    args: Sequence[Any], kwargs: Mapping[str, Any], names: Sequence[str], sizes: Mapping[str, int]
) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """The arguments with arrays of example values in the place of ``jax.ShapeDtypeStruct``, whose symbolic dimensions
    have the given sizes. CaptureError for a dimension without one, and for a size that no dimension has."""
    leaves, structure = jax.tree_util.tree_flatten((tuple(args), dict(kwargs)))
    known: set[str] = set()
    for name, leaf in zip(names, leaves, strict=True):
        for axis, dim in enumerate(getattr(leaf, "shape", ())):
            known.update(_symbols(dim))
            missing = [symbol for symbol in _symbols(dim) if symbol not in sizes]
            if missing:
                raise CaptureError(
                    f"axis {axis} of the argument {name} has the symbolic size {dim}, and an artifact has fixed sizes: "
                    f"pin it with --size {missing[0]}=N, or in Python sizes={{{missing[0]!r}: N}}"
                )
    for symbol in sizes:
        if symbol not in known:
            given = f"those of the arguments are {', '.join(sorted(known))}" if known else "the arguments have none"
            raise CaptureError(f"there is no symbolic dimension {symbol} to pin: {given}")
    random = np.random.default_rng(0)
    pinned = [_example(leaf, sizes, random) if isinstance(leaf, jax.ShapeDtypeStruct) else leaf for leaf in leaves]
    new_args, new_kwargs = jax.tree_util.tree_unflatten(structure, pinned)
    return new_args, new_kwargs


def _example(described: jax.ShapeDtypeStruct, sizes: Mapping[str, int], random: np.random.Generator) -> Any:
    """Example values of an array that is only described: standard normal numbers, zeros and ones."""
    shape = []
    for dim in described.shape:
        size = int(dim._evaluate(sizes)) if _symbols(dim) else int(dim)
        constraints = getattr(getattr(dim, "scope", None), "_explicit_constraints", ())
        broken = [text for text in constraints if not _holds(text, sizes)]
        if size < 0 or broken:
            raise CaptureError(f"the sizes {dict(sizes)} do not satisfy {broken[0] if broken else f'{dim} >= 0'}")
        shape.append(size)
    if jax.dtypes.issubdtype(described.dtype, jax.dtypes.prng_key):
        raise CaptureError(f"an array of {described.dtype} has no example values: give the keys themselves")
    if jax.numpy.issubdtype(described.dtype, jax.numpy.inexact):
        made = random.standard_normal(shape)
        if jax.numpy.issubdtype(described.dtype, jax.numpy.complexfloating):
            made = made + 1j * random.standard_normal(shape)
    else:
        made = random.integers(0, 2, shape)
    return np.asarray(made).astype(described.dtype)


def _holds(constraint: Any, sizes: Mapping[str, int]) -> bool:
    """Whether a constraint of ``jax.export.symbolic_shape`` is satisfied; one about other dimensions is."""
    difference = constraint.diff
    if not set(_symbols(difference)) <= set(sizes):
        return True
    value = int(difference._evaluate(sizes)) if _symbols(difference) else int(difference)
    return value == 0 if constraint.cmp.name == "EQ" else value >= 0


def _shape_of_data(error: Exception) -> Problem | None:
    """The place and the reason where tracing failed because a shape, or the size of a slice, depends on values; None
    for every other error."""
    text = str(error)
    named = re.search(r"jnp(?:\.\w+)+", text.partition("The error occurred while tracing")[0])
    why = "its shape depends on values, and an artifact has fixed shapes"
    if isinstance(error, jax.errors.NonConcreteBooleanIndexError):
        what, hint = "an index that is a mask", "use jnp.where(mask, x, other), or jnp.nonzero(mask, size=N)"
    elif isinstance(error, TypeError) and text.startswith("Shapes must be 1D sequences of concrete values"):
        what, hint = "a shape", "give a Python integer that is not an argument, for instance with functools.partial"
    elif isinstance(error, IndexError) and text.startswith("Slice entries must be static integers"):
        what, hint = "a slice", "use jax.lax.dynamic_slice, whose size is fixed"
    elif type(error) is jax.errors.ConcretizationTypeError and named:
        what, hint = named[0], "give it a fixed size, such as size=N"
        if "mode='raise'" in text:
            why, hint = "it raises an error for some values", "use mode='clip' or mode='wrap'"
    else:
        return None
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_user_file(frame.filename)]
    place = f"{_short_path(frames[-1].filename)}:{frames[-1].lineno} in {frames[-1].name}" if frames else None
    return Problem(what, "", place, f"{why}; {hint}")


# ---- names of constants ---------------------------------------------------------------------------------------------

_MAX_NAME_DEPTH = 8


def _same_content(candidate: Any, array: np.ndarray) -> bool:
    """Whether ``candidate``, in the dtype that JAX gave it, has the words of ``array``."""
    if candidate.shape != array.shape or candidate.dtype.name not in _BITS:
        return False
    taken = np.asarray(candidate)
    if taken.dtype != array.dtype:
        if taken.dtype.kind != array.dtype.kind:
            return False
        with np.errstate(all="ignore"):
            taken = taken.astype(array.dtype)
    return bool(np.array_equal(_words(taken), _words(array)))


class _ConstantNames:
    """Names of the arrays that a function closes over: closure cells, globals it uses, bound and default arguments,
    attributes of the object it is a method of."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self._found: list[tuple[str, Any]] = []
        self._seen: set[int] = set()
        self._visit_callable(fn, 0)
        self._by_identity = {id(array): name for name, array in reversed(self._found)}

    def find(self, original: Any, array: np.ndarray) -> str | None:
        """The name of a constant: by identity, else by content where the arrays of that content have one name."""
        if id(original) in self._by_identity:
            return self._by_identity[id(original)]
        if array.size <= 1:
            return None
        names = {name for name, candidate in self._found if _same_content(candidate, array)}
        return names.pop() if len(names) == 1 else None

    def _visit_callable(self, fn: Any, depth: int) -> None:
        if depth > _MAX_NAME_DEPTH or id(fn) in self._seen:
            return
        self._seen.add(id(fn))
        if isinstance(fn, functools.partial):
            names = _argument_names(fn.func, len(fn.args))
            for name, value in [*zip(names, fn.args, strict=True), *fn.keywords.items()]:
                self._visit(value, name, depth + 1)
            self._visit_callable(fn.func, depth + 1)
        elif isinstance(fn, types.MethodType):
            self._visit_attributes(fn.__self__, "", depth)
            self._visit_callable(fn.__func__, depth + 1)
        elif isinstance(fn, types.FunctionType):
            self._visit_function(fn, depth)
        elif hasattr(fn, "__wrapped__"):
            self._visit_callable(fn.__wrapped__, depth + 1)
        elif callable(fn) and not isinstance(fn, type):
            self._visit_attributes(fn, "", depth)
            self._visit_callable(vars(type(fn)).get("__call__"), depth + 1)

    def _visit_function(self, fn: types.FunctionType, depth: int) -> None:
        module = fn.__module__ or ""
        if module.partition(".")[0] not in ("jax", "numpy", "builtins"):
            for name in _code_names(fn.__code__):
                if name in fn.__globals__:
                    self._visit(fn.__globals__[name], name, depth + 1)
            for name, value in (fn.__kwdefaults__ or {}).items():
                self._visit(value, name, depth + 1)
        for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=False):
            try:
                value = cell.cell_contents
            except ValueError:  # a cell that is not filled yet
                continue
            self._visit(value, name, depth + 1)
        if hasattr(fn, "__wrapped__"):
            self._visit_callable(fn.__wrapped__, depth + 1)

    def _visit_attributes(self, value: Any, name: str, depth: int) -> None:
        for attribute, child in list(getattr(value, "__dict__", {}).items()):
            self._visit(child, f"{name}.{attribute}" if name else attribute, depth + 1)

    def _visit(self, value: Any, name: str, depth: int) -> None:
        if isinstance(value, (jax.Array, np.ndarray, np.generic)):
            if not isinstance(value, jax.core.Tracer):
                self._found.append((name, value))
            return
        scalar = (str, bytes, int, float, complex, bool, type(None), type, types.ModuleType)
        if depth > _MAX_NAME_DEPTH or isinstance(value, scalar):
            return
        if isinstance(value, Mapping):
            for key, child in list(value.items()):
                self._visit(child, f"{name}[{key!r}]", depth + 1)
        elif isinstance(value, tuple) and hasattr(value, "_fields"):
            for field, child in zip(value._fields, value, strict=True):
                self._visit(child, f"{name}.{field}", depth + 1)
        elif isinstance(value, (list, tuple)):
            for k, child in enumerate(value):
                self._visit(child, f"{name}[{k}]", depth + 1)
        elif isinstance(value, (types.FunctionType, types.MethodType, functools.partial)) or hasattr(
            value, "__wrapped__"
        ):
            self._visit_callable(value, depth + 1)
        elif id(value) not in self._seen:
            self._seen.add(id(value))
            self._visit_attributes(value, name, depth)


def _code_names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _code_names(constant)


# ---- the jaxpr as one list of steps ---------------------------------------------------------------------------------

# Primitives that only wrap a jaxpr, and the parameter that holds it.
WRAPPERS = {
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "closed_call": "call_jaxpr",
    "core_call": "call_jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "custom_vjp_call_jaxpr": "fun_jaxpr",
    "custom_vmap_call": "call",
    "composite": "jaxpr",
    "remat2": "jaxpr",
    "checkpoint": "jaxpr",
}

# Primitives whose results are their operands, one by one.
_ALIASES = "stop_gradient copy copy_p device_put optimization_barrier name sharding_constraint reshard"
ALIASES = frozenset(f"{_ALIASES} random_wrap random_unwrap random_clone".split())


@dataclasses.dataclass
class Value:
    """One value of the program: its type, and its data and name where it is a constant; ``original`` is the array of
    JAX that the data is of."""

    shape: tuple[int, ...]
    dtype: Any
    data: Any = None
    name: str | None = None
    original: Any = None


@dataclasses.dataclass
class Step:
    """One equation after inlining; ``inputs`` and ``outputs`` are positions in ``Program.values``."""

    equation: Any
    inputs: list[int]
    outputs: list[int]
    source: Source | None
    regions: list[Program] = dataclasses.field(default_factory=list)
    kernel: _Kernel | None = None
    _decide: Callable[[Sequence[Any]], Any] | None = None

    @functools.cached_property
    def primitive(self) -> str:
        return str(self.equation.primitive.name)

    @functools.cached_property
    def keys(self) -> list[Any]:
        """For each operand its implementation where it is an array of random keys, else None; empty without any."""
        found = [atom.aval.dtype._impl if _is_key(atom.aval) else None for atom in self.equation.invars]
        return found if any(found) else []

    def decided(self, operands: Sequence[Any], program: Program) -> list[np.ndarray] | None:
        """The results by NumPy where they are decided, None where XLA has to be asked."""
        if self._decide is None:
            self._decide = _deciding(self, program) or _never
        return self._decide(operands)


def _never(operands: Sequence[Any]) -> None:
    """For a step that only XLA evaluates."""


def _abstract(aval: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=getattr(aval, "weak_type", False))


def _platform_index(platforms: Sequence[Sequence[str] | None]) -> int:
    """Which entry is that of the platform at hand; None stands for every other platform."""
    here = jax.default_backend()
    for k, names in enumerate(platforms):
        if names is None or here in names:
            return k
    raise CaptureError(f"a function that depends on the platform has no branch for {here}")


def _own_implementation(primitive: Any) -> Callable[..., Any] | None:
    """The Python function that a primitive is evaluated by, where that is not its compilation."""
    from jax._src import dispatch

    implementation = getattr(primitive, "impl", None)
    compiled = getattr(implementation, "func", implementation) is dispatch.apply_primitive
    return None if compiled else implementation


def _implementation(equation: Any) -> Any:
    """The jaxpr of an equation whose primitive is defined by a function of JAX operations: linear solves, and the
    primitives that other libraries bring. None for every other primitive, and where the function cannot be traced."""
    primitive, params = equation.primitive, equation.params
    function = _own_implementation(primitive)
    module = getattr(getattr(function, "func", function), "__module__", None) or ""
    if function is None or "callback" in params or equation.effects or primitive.name in RULES:
        return None
    if primitive.name != "custom_linear_solve" and module.partition(".")[0] == "jax":
        return None
    return _traced(functools.partial(function, **params), equation)


def _traced(function: Callable[..., Any], equation: Any) -> Any:
    """The closed jaxpr of a function for operands like the equation's, or None where it cannot be traced."""
    try:
        with equation.ctx.manager:
            closed = jax.make_jaxpr(function)(*(_abstract(atom.aval) for atom in equation.invars))
    except Exception:  # whatever a library's function raises on abstract values
        return None
    expected = [(atom.aval.shape, atom.aval.dtype) for atom in equation.outvars]
    return closed if [(aval.shape, aval.dtype) for aval in closed.out_avals] == expected else None


def _lowered_function(primitive: Any) -> Callable[..., Any] | None:
    """The function of JAX operations that a primitive is compiled from, where JAX gives one (``mlir.lower_fun``)."""
    from jax._src.interpreters import mlir

    own = _own_implementation(primitive)
    if own is not None:
        return own
    specific = getattr(mlir, "_platform_specific_lowerings", {}).get("cpu", {})
    for table in (getattr(mlir, "_lowerings", {}), specific):
        rule = table.get(primitive)
        rule = getattr(rule, "rule", rule)
        names = getattr(getattr(rule, "__code__", None), "co_freevars", ())
        if "fun" in names and getattr(rule, "__qualname__", "").startswith("lower_fun."):
            function: Callable[..., Any] = rule.__closure__[names.index("fun")].cell_contents
            return function
    return None


def _unbatched_while(condition: Any, body: Any, of_cond: int, of_body: int) -> tuple[Any, Any]:
    """Condition and body of a loop whose condition has several elements, as ``vmap`` makes it: the loop goes on while
    any of them is true, and its body, which takes the condition's constants too, changes only those for which it is."""
    decide, advance = jax_core.jaxpr_as_fun(condition), jax_core.jaxpr_as_fun(body)

    def goes_on(*values: Any) -> Any:
        return lax.reduce_or(decide(*values)[0], tuple(range(len(condition.out_avals[0].shape))))

    def changes(*values: Any) -> list[Any]:
        (going,) = decide(*values[:of_cond], *values[of_cond + of_body :])
        new, old = advance(*values[of_cond:]), values[of_cond + of_body :]
        return [_select_rows(going, x, y) for x, y in zip(new, old, strict=True)]

    of_condition = [_abstract(aval) for aval in condition.in_avals]
    of_changes = of_condition[:of_cond] + [_abstract(aval) for aval in body.in_avals]
    return jax.make_jaxpr(goes_on)(*of_condition), jax.make_jaxpr(changes)(*of_changes)


def _select_rows(which: Any, chosen: Any, other: Any) -> Any:
    return lax.select(lax.broadcast_in_dim(which, chosen.shape, tuple(range(which.ndim))), chosen, other)


class Program:
    """A jaxpr with its wrappers inlined: a flat list of steps over numbered values.

    ``outer`` and ``cached`` are those of the equation whose body it is. Where it takes more than the jaxpr does,
    ``inputs`` are the types of all its inputs and ``given`` the positions of the jaxpr's own; the inputs at ``kept``
    are results, unchanged, ahead of the jaxpr's.
    """

    def __init__(
        self,
        jaxpr: Any,
        consts: Sequence[Any],
        names: _ConstantNames | None = None,
        outer: Source | None = None,
        cached: bool = False,
        inputs: Sequence[Any] | None = None,
        given: Sequence[int] | None = None,
        kept: Sequence[int] = (),
    ) -> None:
        self.values: list[Value] = []
        self.steps: list[Step] = []
        self._names = names
        self.inputs = [self._value(aval) for aval in (inputs if inputs is not None else jaxpr.in_avals)]
        args = self.inputs if given is None else [self.inputs[k] for k in given]
        self.outputs = [self.inputs[k] for k in kept] + self._inline(jaxpr, consts, args, outer, cached)

    def _value(self, aval: Any) -> int:
        shape, dtype = tuple(getattr(aval, "shape", ())), getattr(aval, "dtype", None)
        if _is_key(aval):
            shape, dtype = (*shape, *dtype._impl.key_shape), np.dtype(np.uint32)
        self.values.append(Value(shape, dtype))
        return len(self.values) - 1

    def _constant(self, original: Any, dtype: Any, literal: bool) -> int:
        if _is_key_dtype(dtype):
            original = jax.random.key_data(original)
            dtype = original.dtype
        array = np.asarray(original)
        if array.dtype != dtype:  # a Python number
            array = np.array(original, dtype)
        name = None if literal or self._names is None else self._names.find(original, array)
        same = isinstance(original, jax.Array) and original.dtype == dtype
        self.values.append(Value(array.shape, array.dtype, array, name, original if same else None))
        return len(self.values) - 1

    def _inline(
        self, jaxpr: Any, consts: Sequence[Any], args: Sequence[int], outer: Source | None, cached: bool
    ) -> list[int]:
        env: dict[Any, int] = dict(zip(jaxpr.invars, args, strict=True))
        for var, const in zip(jaxpr.constvars, consts, strict=True):
            env[var] = self._constant(const, var.aval.dtype, False)

        def read(atom: Any) -> int:
            if isinstance(atom, jax_core.Literal):
                return self._constant(atom.val, atom.aval.dtype, True)
            return env[atom]

        for equation in jaxpr.eqns:
            inputs = [read(atom) for atom in equation.invars]
            source = outer if cached else _source(equation, outer)
            name = equation.primitive.name
            if name in WRAPPERS:
                inner = equation.params[WRAPPERS[name]]
                inner_jaxpr, inner_consts = getattr(inner, "jaxpr", inner), getattr(inner, "consts", ())
                hidden = cached or _is_jax_function(inner_jaxpr)
                outputs = self._inline(inner_jaxpr, inner_consts, inputs, source, hidden)
            elif name in ALIASES:
                outputs = inputs
            elif name == "platform_index":
                outputs = [self._constant(_platform_index(equation.params["platforms"]), np.dtype(np.int32), True)]
            elif name == "cond" and equation.params.get("branches_platforms") and self._known(inputs[0]):
                branch = equation.params["branches"][int(self.values[inputs[0]].data)]
                outputs = self._inline(branch.jaxpr, branch.consts, inputs[1:], source, True)
            elif (body := _implementation(equation)) is not None:
                outputs = self._inline(body.jaxpr, body.consts, inputs, source, True)
            else:
                outputs = [self._value(var.aval) for var in equation.outvars]
                self._step(equation, inputs, outputs, source, cached)
            env.update(zip(equation.outvars, outputs, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def _known(self, value: int) -> bool:
        return self.values[value].data is not None

    def _step(self, equation: Any, inputs: list[int], outputs: list[int], source: Source | None, cached: bool) -> None:
        """Append the step of an equation; of control flow with its bodies, as the operation's regions take them."""
        step = Step(equation, inputs, outputs, source)
        params = equation.params

        def region(closed: Any, **layout: Any) -> Program:
            hidden = cached or _is_jax_function(closed.jaxpr)
            return Program(closed.jaxpr, closed.consts, self._names, source, hidden, **layout)

        if step.primitive == "scan":
            step.regions = [region(params["jaxpr"])]
        elif step.primitive == "cond":
            step.regions = [region(branch) for branch in params["branches"]]
        elif step.primitive == "while":
            of_cond, of_body = params["cond_nconsts"], params["body_nconsts"]
            consts, count = of_cond + of_body, len(inputs)
            types = [atom.aval for atom in equation.invars]
            carried = range(consts, count)
            condition, body, of_body_given = params["cond_jaxpr"], params["body_jaxpr"], range(of_cond, count)
            if condition.out_avals[0].shape:
                condition, body = _unbatched_while(condition, body, of_cond, of_body)
                of_body_given = range(count)
            step.regions = [
                region(condition, inputs=types, given=[*range(of_cond), *carried]),
                region(body, inputs=types, given=of_body_given, kept=range(consts)),
            ]
        self.steps.append(step)

    @functools.cached_property
    def needed(self) -> list[Step]:
        """The steps that the outputs need."""
        wanted, steps = set(self.outputs), []
        for step in reversed(self.steps):
            if wanted.intersection(step.outputs):
                steps.append(step)
                wanted.update(step.inputs)
        return steps[::-1]

    @functools.cached_property
    def constants(self) -> dict[int, Any]:
        """The values that are constants."""
        return {
            k: entry.data if entry.original is None else entry.original
            for k, entry in enumerate(self.values)
            if entry.data is not None
        }

    @functools.cached_property
    def schedule(self) -> list[tuple[Step, list[int]]]:
        """The steps that the outputs need, each with the values that nothing needs after it."""
        return self._scheduled(self.needed)

    @functools.cached_property
    def whole_schedule(self) -> list[tuple[Step, list[int]]]:
        """All steps, each with the values that nothing needs after it."""
        return self._scheduled(self.steps)

    def _scheduled(self, steps: Sequence[Step]) -> list[tuple[Step, list[int]]]:
        seen = {*self.outputs, *self.inputs, *self.constants}
        scheduled = []
        for step in reversed(steps):
            gone = {*step.inputs, *step.outputs} - seen
            seen |= gone
            scheduled.append((step, list(gone)))
        return scheduled[::-1]


# ---- building nodes -------------------------------------------------------------------------------------------------


class Builder:
    """Appends nodes to a body. A value is numbered in the order in which it is made: it is the id of its node until a
    node with several results comes. Equal constants share a node."""

    def __init__(self) -> None:
        self.nodes: list[dict[str, Any]] = []
        self.source: Source | None = None
        self._places: list[tuple[int, int]] = []
        self._types: list[Type] = []
        self._constants: dict[Any, int] = {}
        self._broadcasts: dict[Any, int] = {}

    def shape(self, ref: int) -> tuple[int, ...]:
        return self._types[ref][0]

    def dtype(self, ref: int) -> str:
        return self._types[ref][1]

    def node(self, ref: int) -> dict[str, Any]:
        """The node whose result a value is."""
        return self.nodes[self._places[ref][0]]

    def written(self, ref: int) -> int | list[int]:
        """How an artifact names a value."""
        node, result = self._places[ref]
        return [node, result] if result else node

    def kind(self, ref: int) -> str:
        return _kind(self.dtype(ref))

    def emit(
        self, op: str, inputs: Sequence[int], shape: Sequence[int], dtype: str, name: str | None = None, **attrs: Any
    ) -> int:
        """A new node with one result. Attributes of sequences become lists, and their numbers Python integers."""
        return self.emit_several(op, inputs, [(tuple(shape), dtype)], name, **attrs)[0]

    def emit_several(
        self,
        op: str,
        inputs: Sequence[int],
        results: Sequence[Type],
        name: str | None = None,
        regions: Sequence[Mapping[str, Any]] = (),
        **attrs: Any,
    ) -> list[int]:
        """A new node with one or more results, and the bodies of its regions; the values of its results."""
        node: dict[str, Any] = {"id": len(self.nodes), "op": op, "inputs": [self.written(ref) for ref in inputs]}
        types = [(tuple(int(size) for size in shape), dtype) for shape, dtype in results]
        described = [{"shape": list(shape), "dtype": dtype} for shape, dtype in types]
        node |= described[0] if len(described) == 1 else {"results": described}
        if attrs:
            node["attrs"] = {key: _plain(value) for key, value in attrs.items()}
        if regions:
            node["regions"] = list(regions)
        if name:
            node["name"] = name
        if self.source and op not in ("input", "constant"):
            node["source"] = dict(vars(self.source))
        self.nodes.append(node)
        self._places += [(int(node["id"]), k) for k in range(len(types))]
        self._types += types
        return list(range(len(self._types) - len(types), len(self._types)))

    def constant(self, array: np.ndarray, name: str | None = None) -> int:
        """The node of a constant; equal words of equal type and name share one."""
        described = tensor(array)
        if isinstance(described, _Large):
            words = hashlib.sha256(described.array).hexdigest()
        else:
            words = described.get("words", described.get("base64"))
        key = described["dtype"], tuple(described["shape"]), words, name
        if key not in self._constants:
            ref = self.emit("constant", [], described["shape"], described["dtype"], name, value=described)
            self._constants[key] = ref
        return self._constants[key]

    def scalar(self, value: int, dtype: str) -> int:
        """The constant 0, 1 or -inf, … of a dtype; ``value`` must be exact in it."""
        return self.constant(np.array(value, _numpy_dtype(dtype)))

    def broadcast(self, ref: int, shape: Sequence[int], axes: Sequence[int] | None = None) -> int:
        """``ref`` repeated to ``shape``; ``axes`` as in ``broadcast_in_dim``, by default the last ones."""
        shape = tuple(shape)
        rank = len(self.shape(ref))
        axes = tuple(range(len(shape) - rank, len(shape))) if axes is None else tuple(axes)
        if self.shape(ref) == shape and axes == tuple(range(len(shape))):
            return ref
        key = ref, shape, axes
        if key not in self._broadcasts:
            self._broadcasts[key] = self.emit(
                "broadcast_in_dim", [ref], shape, self.dtype(ref), broadcast_dimensions=axes
            )
        return self._broadcasts[key]

    def convert(self, ref: int, dtype: str) -> int:
        """``ref`` in ``dtype``; of a complex value converted to a real dtype, the real part."""
        if self.dtype(ref) == dtype:
            return ref
        if self.kind(ref) == "complex" and _kind(dtype) != "complex":
            ref = self.emit("real", [ref], self.shape(ref), _component(self.dtype(ref)))
            return self.convert(ref, dtype)
        return self.emit("convert", [ref], self.shape(ref), dtype)

    def reshape(self, ref: int, shape: Sequence[int]) -> int:
        if self.shape(ref) == tuple(shape):
            return ref
        return self.emit("reshape", [ref], shape, self.dtype(ref))


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple, range)):
        return [_plain(item) for item in value]
    return int(value) if isinstance(value, np.integer) else value


def _numpy_dtype(name: str) -> np.dtype[Any]:
    return np.dtype(jax.numpy.dtype(name)) if name in ("bool",) else np.dtype(getattr(jax.numpy, name, name))


def _component(dtype: str) -> str:
    return {"complex64": "float32", "complex128": "float64"}[dtype]


# ---- rules: one per primitive ---------------------------------------------------------------------------------------

Type = tuple[tuple[int, ...], str]
"""Shape and dtype of a result."""


@dataclasses.dataclass(frozen=True)
class Expansion:
    """What a rule gives where the equation is to be read as this function of its operands, traced in its place."""

    function: Callable[..., Any]


Rule = Callable[[Builder, list[int], Mapping[str, Any], list[Type]], "list[int] | Expansion"]
"""Emits the nodes of one equation: operands, parameters, types of the results; gives the results' nodes."""

RULES: dict[str, Rule] = {}
"""Every primitive that can be expressed."""

BROADCASTING: set[str] = set()
"""Primitives whose operands JAX broadcasts to the result's shape by itself (scalars, and axes of size 1)."""


def _rule(*names: str, broadcasting: bool = False) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, rule))
        if broadcasting:
            BROADCASTING.update(names)
        return rule

    return register


_REAL = ("bool", "int", "uint", "float")
_ELEMENTWISE: dict[str, str | tuple[str, tuple[str, ...]]] = {
    "add": "add",
    "add_any": "add",
    "sub": "subtract",
    "mul": "multiply",
    "div": "divide",
    "rem": "remainder",
    "neg": "negate",
    "abs": "abs",
    "sign": "sign",
    "floor": "floor",
    "ceil": "ceil",
    "sqrt": "sqrt",
    "rsqrt": "rsqrt",
    "cbrt": "cbrt",
    "exp": "exponential",
    "expm1": "exponential_minus_one",
    "log": "log",
    "log1p": "log_plus_one",
    "logistic": "logistic",
    "tanh": "tanh",
    "sin": "sine",
    "cos": "cosine",
    "tan": "tan",
    "asin": "asin",
    "acos": "acos",
    "atan": "atan",
    "sinh": "sinh",
    "cosh": "cosh",
    "asinh": "asinh",
    "acosh": "acosh",
    "atanh": "atanh",
    "atan2": ("atan2", ("float",)),
    "erf": "erf",
    "erfc": "erfc",
    "erf_inv": "erf_inv",
    "lgamma": "lgamma",
    "digamma": "digamma",
    "polygamma": "polygamma",
    "zeta": "zeta",
    "igamma": "igamma",
    "igammac": "igammac",
    "igamma_grad_a": "igamma_grad_a",
    "random_gamma_grad": "random_gamma_grad",
    "regularized_incomplete_beta": "regularized_incomplete_beta",
    "bessel_i0e": "bessel_i0e",
    "bessel_i1e": "bessel_i1e",
    "nextafter": "next_after",
    "is_finite": "is_finite",
    "and": "and",
    "or": "or",
    "xor": "xor",
    "not": "not",
    "shift_left": "shift_left",
    "shift_right_logical": "shift_right_logical",
    "shift_right_arithmetic": "shift_right_arithmetic",
    "population_count": "popcnt",
    "clz": "count_leading_zeros",
    "complex": "complex",
    "real": "real",
    "imag": "imag",
}
"""Primitives that are one operation on operands of equal shape; with the kinds of operands where it takes fewer."""


def _elementwise(primitive: str, op: str, kinds: tuple[str, ...] | None) -> None:
    def rule(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
        shape, dtype = outs[0]
        if kinds is not None and b.kind(ins[0]) not in kinds:
            raise _Inexpressible(f"{op} is not defined for {b.dtype(ins[0])}")
        if params.get("out_dtype") is not None and dtype != b.dtype(ins[0]):
            raise _Inexpressible(f"{op} of {b.dtype(ins[0])} with a result of {dtype}")
        return [b.emit(op, [b.broadcast(ref, shape) for ref in ins], shape, dtype)]

    _rule(primitive, broadcasting=True)(rule)


for _primitive, _entry in _ELEMENTWISE.items():
    _elementwise(_primitive, *((_entry, None) if isinstance(_entry, str) else _entry))


def _comparison(direction: str, total: bool) -> Rule:
    def rule(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
        shape, _ = outs[0]
        attrs = {"comparison_direction": direction}
        # JAX's total-order primitives compare floats by IEEE totalOrder and everything else as usual.
        if total and b.kind(ins[0]) == "complex":
            raise _Inexpressible("complex numbers have no total order")
        if total and b.kind(ins[0]) == "float":
            attrs["compare_type"] = "TOTALORDER"
        return [b.emit("compare", [b.broadcast(ref, shape) for ref in ins], shape, "bool", **attrs)]

    return rule


for _direction in ("eq", "ne", "ge", "gt", "le", "lt"):
    _rule(_direction, broadcasting=True)(_comparison(_direction.upper(), False))
for _direction in ("eq", "le", "lt"):
    _rule(f"{_direction}_to", broadcasting=True)(_comparison(_direction.upper(), True))


def _extreme(op: str, direction: str) -> Rule:
    def rule(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
        shape, dtype = outs[0]
        operands = [b.broadcast(ref, shape) for ref in ins]
        if _kind(dtype) != "complex":
            return [b.emit(op, operands, shape, dtype)]
        # JAX orders complex numbers by their real parts, and where these are equal by their imaginary parts.
        real, imaginary = (
            [b.emit(part, [ref], shape, _component(dtype)) for ref in operands] for part in ("real", "imag")
        )
        equal = b.emit("compare", real, shape, "bool", comparison_direction="EQ")
        by_real = b.emit("compare", real, shape, "bool", comparison_direction=direction)
        by_imaginary = b.emit("compare", imaginary, shape, "bool", comparison_direction=direction)
        first = b.emit("select", [equal, by_imaginary, by_real], shape, "bool")
        return [b.emit("select", [first, *operands], shape, dtype)]

    return rule


_rule("max", broadcasting=True)(_extreme("maximum", "GT"))
_rule("min", broadcasting=True)(_extreme("minimum", "LT"))


@_rule("pow", broadcasting=True)
def _pow(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
    shape, dtype = outs[0]
    # An exponent of another dtype is converted to the base's, as XLA is told to.
    return [b.emit("power", [b.broadcast(b.convert(ref, dtype), shape) for ref in ins], shape, dtype)]


@_rule("exp2")
def _exp2(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
    shape, dtype = outs[0]
    if _kind(dtype) == "float":
        return [b.emit("exp2", ins, shape, dtype)]
    return [b.emit("power", [b.broadcast(b.scalar(2, dtype), shape), ins[0]], shape, dtype)]


@_rule("integer_pow")
def _integer_pow(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
    return [b.emit("integer_pow", ins, *outs[0], exponent=params["y"])]


@_rule("square")
def _square(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
    return [b.emit("multiply", ins * 2, *outs[0])]


@_rule("round")
def _round(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
    away = int(params["rounding_method"]) == int(lax.RoundingMethod.AWAY_FROM_ZERO)
    return [b.emit("round_nearest_afz" if away else "round_nearest_even", ins, *outs[0])]


@_rule("conj")
def _conj(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
    shape, dtype = outs[0]
    if b.kind(ins[0]) == "complex":
        return [b.emit("conjugate", ins, shape, dtype)]
    zero = b.broadcast(b.scalar(0, b.dtype(ins[0])), shape)
    return [b.emit("complex", [ins[0], zero], shape, dtype)]


@_rule("clamp", broadcasting=True)
def _clamp(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
    shape, dtype = outs[0]
    low, operand, high = (b.broadcast(ref, shape) for ref in ins)
    if _kind(dtype) == "complex":
        raise _Inexpressible("complex numbers have no order")
    if dtype == "bool":
        raised = b.emit("maximum", [operand, low], shape, dtype)
        return [b.emit("minimum", [raised, high], shape, dtype)]
    return [b.emit("clamp", [low, operand, high], shape, dtype)]


@_rule("select_n", broadcasting=True)
def _select_n(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
    shape, dtype = outs[0]
    which, cases = b.broadcast(ins[0], shape), [b.broadcast(ref, shape) for ref in ins[1:]]
    if len(cases) == 1:
        return cases
    if b.kind(which) == "bool":
        return [b.emit("select", [which, cases[1], cases[0]], shape, dtype)]
    # An index below 0 takes the first case and one beyond the last takes the last, as XLA's comparisons do.
    result = cases[-1]
    for k in range(len(cases) - 1, 0, -1):
        bound = b.broadcast(b.scalar(k, b.dtype(which)), shape)
        below = b.emit("compare", [which, bound], shape, "bool", comparison_direction="LT")
        result = b.emit("select", [below, cases[k - 1], result], shape, dtype)
    return [result]


@_rule("convert_element_type")
def _convert_element_type(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
    return [b.convert(ins[0], outs[0][1])]


@_rule("bitcast_convert_type")
def _bitcast(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
    return ins if b.dtype(ins[0]) == outs[0][1] else [b.emit("bitcast_convert", ins, *outs[0])]


@_rule("reduce_precision")
def _reduce_precision(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
    bits = {key: params[key] for key in ("exponent_bits", "mantissa_bits")}
    if _kind(outs[0][1]) != "float":
        raise _Inexpressible("only floating-point numbers have a precision to reduce")
    return [b.emit("reduce_precision", ins, *outs[0], **bits)]


# Shapes.


@_rule("broadcast_in_dim")
def _broadcast_in_dim(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
    if len(ins) > 1:
        raise _Inexpressible("its shape depends on values")
    shape, dtype = outs[0]
    return [b.emit("broadcast_in_dim", ins, shape, dtype, broadcast_dimensions=params["broadcast_dimensions"])]


@_rule("squeeze", "expand_dims")
def _change_rank(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
    return [b.emit("reshape", ins, *outs[0])]


@_rule("reshape")
def _reshape(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
    if len(ins) > 1:
        raise _Inexpressible("its shape depends on values")
    operand = ins[0]
    if params.get("dimensions") is not None:
        order = params["dimensions"]
        moved = [b.shape(operand)[axis] for axis in order]
        operand = b.emit("transpose", [operand], moved, b.dtype(operand), permutation=order)
    return [b.emit("reshape", [operand], *outs[0])]


@_rule("transpose")
def _transpose(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
    return [b.emit("transpose", ins, *outs[0], permutation=params["permutation"])]


@_rule("rev")
def _rev(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
    return [b.emit("reverse", ins, *outs[0], dimensions=params["dimensions"])]


@_rule("slice")
def _slice(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
    strides = params["strides"] or (1,) * len(params["start_indices"])
    bounds = {key: params[key] for key in ("start_indices", "limit_indices")}
    return [b.emit("slice", ins, *outs[0], strides=strides, **bounds)]


def _part(b: Builder, operand: int, axis: int, start: int, limit: int) -> int:
    """The elements from ``start`` to ``limit`` along one axis."""
    shape = b.shape(operand)
    starts = [start if d == axis else 0 for d in range(len(shape))]
    limits = [limit if d == axis else size for d, size in enumerate(shape)]
    sizes = [high - low for low, high in zip(starts, limits, strict=True)]
    bounds: dict[str, Any] = {"start_indices": starts, "limit_indices": limits, "strides": [1] * len(shape)}
    return b.emit("slice", [operand], sizes, b.dtype(operand), **bounds)


@_rule("split")
def _split(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
    parts, start = [], 0
    for size in params["sizes"]:
        parts.append(_part(b, ins[0], int(params["axis"]), start, start + int(size)))
        start += int(size)
    return parts


@_rule("unstack")
def _unstack(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
    axis = int(params["axis"])
    return [b.reshape(_part(b, ins[0], axis, k, k + 1), shape) for k, (shape, _) in enumerate(outs)]


@_rule("stack")
def _stack(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
    shape, dtype = outs[0]
    axis = int(params["axis"])
    one = [1 if d == axis else size for d, size in enumerate(shape)]
    return [b.emit("concatenate", [b.reshape(ref, one) for ref in ins], shape, dtype, dimension=axis)]


@_rule("tile")
def _tile(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
    sizes, repeats = b.shape(ins[0]), [int(count) for count in params["reps"]]
    sizes = (1,) * (len(repeats) - len(sizes)) + sizes
    paired = [size for pair in zip(repeats, sizes, strict=True) for size in pair]
    axes = range(1 + 2 * (len(repeats) - len(b.shape(ins[0]))), len(paired), 2)
    return [b.reshape(b.broadcast(ins[0], paired, tuple(axes)), outs[0][0])]


@_rule("pad")
def _pad(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
    low, high, interior = zip(*params["padding_config"], strict=True) if params["padding_config"] else ((), (), ())
    padding: dict[str, Any] = {"edge_padding_low": low, "edge_padding_high": high, "interior_padding": interior}
    return [b.emit("pad", ins, *outs[0], **padding)]


@_rule("concatenate")
def _concatenate(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
    return [b.emit("concatenate", ins, *outs[0], dimension=params["dimension"])]


@_rule("iota")
def _iota(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
    if ins:
        raise _Inexpressible("its shape depends on values")
    return [b.emit("iota", [], *outs[0], iota_dimension=params["dimension"])]


@_rule("empty", "empty2")
def _empty(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
    shape, dtype = outs[0]
    return [b.broadcast(b.scalar(0, dtype), shape)]


@_rule("tie")
def _tie(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
    return [ins[1]]


# Reductions and contractions. What JAX leaves out of its jaxpr, the accumulation format, is written into the nodes.

_XLA_WINDOW = 32
"""Elements that XLA's CPU compiler sums one by one before it starts a new partial sum."""


def _reduce(b: Builder, operand: int, axes: Sequence[int], reducer: str, **attrs: Any) -> int:
    kept = [size for axis, size in enumerate(b.shape(operand)) if axis not in axes]
    return b.emit("reduce", [operand], kept, b.dtype(operand), dimensions=sorted(axes), reducer=reducer, **attrs)


def _reduce_in_windows(b: Builder, operand: int, axes: Sequence[int], reducer: str) -> int:
    """A sum or product as XLA's CPU compiler evaluates it: in windows of 32 along each axis (the axis padded evenly at
    both ends with the identity), and the windows' results likewise, until at most 32 are left. Every partial result is
    rounded to the format, so that formats of 16 bits depend on it much, and long sums in all of them. Where XLA makes
    a vector of what is summed it may still add the 32 of a window in another order."""
    shape = b.shape(operand)
    if all(shape[axis] <= _XLA_WINDOW for axis in axes):
        return _reduce(b, operand, axes, reducer)
    windows = {axis: min(shape[axis], _XLA_WINDOW) for axis in axes}
    counts = {axis: -(-shape[axis] // windows[axis]) for axis in axes}
    missing = [counts[axis] * windows[axis] - size if axis in counts else 0 for axis, size in enumerate(shape)]
    if any(missing):
        identity = b.scalar(0 if reducer == "add" else 1, b.dtype(operand))
        low = [count // 2 for count in missing]
        high = [count - before for count, before in zip(missing, low, strict=True)]
        padding: dict[str, Any] = {
            "edge_padding_low": low,
            "edge_padding_high": high,
            "interior_padding": [0] * len(shape),
        }
        shape = tuple(size + count for size, count in zip(shape, missing, strict=True))
        operand = b.emit("pad", [operand, identity], shape, b.dtype(operand), **padding)
    if len(axes) == 1 and counts[axes[0]] <= _XLA_WINDOW:
        accumulate = {"order": f"blocked({_XLA_WINDOW})", "fma": False}
        return _reduce(b, operand, axes, reducer, accumulate=accumulate)
    split, inner = [], []
    for axis, size in enumerate(shape):
        split += [counts[axis], windows[axis]] if axis in counts else [size]
        inner += [len(split) - 1] if axis in counts else []
    partial = _reduce(b, b.reshape(operand, split), inner, reducer)
    return _reduce_in_windows(b, partial, axes, reducer)


def _reduce_axes(b: Builder, operand: int, axes: Sequence[int], reducer: str) -> int:
    """The reduction from its identity, in the format and order of XLA's."""
    axes, dtype = [int(axis) for axis in axes], b.dtype(operand)
    if not axes:
        return operand
    if reducer in ("add", "multiply") and _kind(dtype) in ("float", "complex"):
        return _reduce_in_windows(b, operand, axes, reducer)
    return _reduce(b, operand, axes, reducer)


_ORDERED: dict[str, Callable[[Any, Any], Any]] = {"maximum": lax.max, "minimum": lax.min}
"""Reducers that complex numbers, which JAX orders and an artifact does not, are reduced by step by step."""

_REDUCERS = {
    "sum": "add",
    "prod": "multiply",
    "max": "maximum",
    "min": "minimum",
    "and": "and",
    "or": "or",
    "xor": "xor",
}


def _reduction(reducer: str) -> Rule:
    def rule(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int] | Expansion:
        if b.kind(ins[0]) == "complex" and reducer in _ORDERED:
            return Expansion(_from_worst(reducer, {"dimensions": params["axes"]}, _reduced_by_steps))
        return [_reduce_axes(b, ins[0], params["axes"], reducer)]

    return rule


for _suffix, _reducer in _REDUCERS.items():
    _rule(f"reduce_{_suffix}")(_reduction(_reducer))


def _body_reducers(body: Any, count: int) -> list[str] | None:
    """The reducer of each of ``count`` operands, where the body combines each of them by itself with one operation."""
    named = {"add": "add", "mul": "multiply", **{name: _REDUCERS[name] for name in ("max", "min", "and", "or", "xor")}}
    found = {}
    for equation in body.eqns:
        variables = {atom for atom in equation.invars if not isinstance(atom, jax_core.Literal)}
        if equation.primitive.name in named:
            found[equation.outvars[0]] = named[equation.primitive.name], variables
    reducers = []
    for k, result in enumerate(body.outvars):
        reducer, combined = (
            found.get(result, (None, None)) if not isinstance(result, jax_core.Literal) else (None, None)
        )
        if reducer is None or combined != {body.invars[k], body.invars[count + k]} or len(body.eqns) != count:
            return None
        reducers.append(reducer)
    return reducers


def _scalar_of(b: Builder, ref: int) -> dict[str, Any] | None:
    """The tensor of a scalar that is a constant, written out or broadcast."""
    node = b.node(ref)
    if node["op"] == "broadcast_in_dim":
        node = b.nodes[node["inputs"][0]] if isinstance(node["inputs"][0], int) else node
    value = node["attrs"]["value"] if node["op"] == "constant" else None
    return value if value is not None and not value["shape"] else None


def _starts_from_identity(b: Builder, initial: int, reducer: str) -> bool:
    """Whether a reduction starts from its identity, so that its operation needs not be told."""
    dtype = b.dtype(initial)
    if reducer in ("minimum", "maximum"):
        limits = jax.numpy.iinfo if _kind(dtype) in ("int", "uint") else jax.numpy.finfo
        if dtype == "bool":
            identity: Any = reducer == "minimum"
        elif _kind(dtype) == "float":
            if not np.isinf(_numpy_dtype(dtype).type(np.inf)):
                return False
            identity = np.inf if reducer == "minimum" else -np.inf
        else:
            limit = limits(_numpy_dtype(dtype))
            identity = limit.max if reducer == "minimum" else limit.min
    else:
        identity = {"add": 0, "multiply": 1, "or": 0, "xor": 0, "and": 1 if dtype == "bool" else -1}[reducer]
    return _scalar_of(b, initial) == tensor(np.array(identity).astype(_numpy_dtype(dtype)))


def _combining(params: Mapping[str, Any]) -> Callable[..., Any]:
    """The body of a reduction, as a function of the values so far and the next ones."""
    closed = params["jaxpr"]
    jaxpr = closed if isinstance(closed, jax_core.ClosedJaxpr) else jax_core.ClosedJaxpr(closed, params["consts"])
    return jax_core.jaxpr_as_fun(jaxpr)


def _reduced_by_steps(params: Mapping[str, Any], count: int) -> Callable[..., Any]:
    """A reduction by any body: the elements in row-major order, one after the other from the initial values."""
    combine, axes = _combining(params), tuple(int(axis) for axis in params["dimensions"])

    def function(*values: Any) -> Any:
        operands, initial = values[:count], values[count:]
        shape = operands[0].shape
        kept = tuple(axis for axis in range(len(shape)) if axis not in axes)
        sizes = tuple(shape[axis] for axis in kept)
        length = int(np.prod([shape[axis] for axis in axes], dtype=int))
        rows = [lax.reshape(lax.transpose(x, (*sorted(axes), *kept)), (length, *sizes)) for x in operands]
        start = tuple(lax.broadcast(x, sizes) for x in initial)

        def step(totals: Any, terms: Any) -> Any:
            totals, terms = ([x.reshape(-1) for x in group] for group in (totals, terms))
            made = jax.vmap(lambda *pair: combine(*pair))(*totals, *terms)
            return tuple(x.reshape(sizes) for x in made), None

        return lax.scan(step, start, tuple(rows))[0]

    return function


def _from_worst(
    reducer: str, params: Mapping[str, Any], by_steps: Callable[[Mapping[str, Any], int], Callable[..., Any]]
) -> Callable[[Any], Any]:
    """The greatest or least of complex numbers step by step, from the infinity that JAX starts from."""

    def function(x: Any) -> Any:
        scalar = jax.ShapeDtypeStruct((), x.dtype)
        body = {**params, "jaxpr": jax.make_jaxpr(_ORDERED[reducer])(scalar, scalar)}
        worst = np.array(-np.inf if reducer == "maximum" else np.inf, x.dtype)
        return by_steps(body, 1)(x, worst)[0]

    return function


@_rule("reduce")
def _general_reduce(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int] | Expansion:
    count = len(ins) // 2
    reducers = _body_reducers(params["jaxpr"].jaxpr, count)
    if reducers is None or any(
        _kind(dtype) == "complex" and reducer in _ORDERED for (_, dtype), reducer in zip(outs, reducers, strict=True)
    ):
        return Expansion(_reduced_by_steps(params, count))
    free = [
        _kind(dtype) in ("bool", "int", "uint") or reducer not in ("add", "multiply")
        for (_, dtype), reducer in zip(outs, reducers, strict=True)
    ]
    whole = [_starts_from_identity(b, ref, name) for ref, name in zip(ins[count:], reducers, strict=True)]
    if not all(a or w for a, w in zip(free, whole, strict=True)):
        return Expansion(_reduced_by_steps(params, count))
    results = []
    for k, reducer in enumerate(reducers):
        shape, dtype = outs[k]
        reduced = _reduce_axes(b, ins[k], params["dimensions"], reducer)
        if not whole[k]:  # the order is free, so the initial value may come last
            reduced = b.emit(reducer, [b.broadcast(ins[count + k], shape), reduced], shape, dtype)
        results.append(reduced)
    return results


def _over_mapped_axes(reducer: str) -> Rule:
    """A collective over axes that ``vmap`` has made ordinary ones, which it names by number."""

    def rule(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
        axes = params["axes"]
        if params.get("axis_index_groups") is not None or not all(isinstance(axis, int) for axis in axes):
            raise _Inexpressible("it is about several devices")
        return [_reduce_axes(b, ref, axes, reducer) for ref in ins]

    return rule


for _primitive, _reducer in (("psum", "add"), ("pmax", "maximum"), ("pmin", "minimum")):
    _rule(_primitive)(_over_mapped_axes(_reducer))


def _argument(op: str) -> Rule:
    def rule(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
        (axis,) = params["axes"]
        return [b.emit(op, ins, *outs[0], dimension=axis)]

    return rule


_rule("argmax")(_argument("argmax"))
_rule("argmin")(_argument("argmin"))


_DOT_ALGORITHMS = {
    lax.DotAlgorithmPreset.F32_F32_F32: ("float32", "float32"),
    lax.DotAlgorithmPreset.F64_F64_F64: ("float64", "float64"),
    lax.DotAlgorithmPreset.BF16_BF16_F32: ("bfloat16", "float32"),
}
"""Algorithms that mean what XLA does anyway for operands and a result of these dtypes."""


def _require_plain_precision(precision: Any, operands: Sequence[str], result: str) -> None:
    entries = precision if isinstance(precision, tuple) else (precision,)
    if precision == lax.DotAlgorithmPreset.DEFAULT or all(
        entry is None or isinstance(entry, lax.Precision) for entry in entries
    ):
        return
    if _DOT_ALGORITHMS.get(precision) != (operands[0], result) or operands[0] != operands[1]:
        raise _Inexpressible(f"the algorithm {precision} for operands of {operands[0]} and {operands[1]}")


def _dot_types(left: str, right: str, result: str) -> tuple[str, str, str]:
    """The dtypes of a contraction as XLA evaluates it: of both operands, of the accumulator, and of its result.

    Floats of 16 bits or less accumulate in float32. Operands of different dtypes, or of another kind than the result,
    are converted to the result's dtype first (two of 8 bits to float32, which holds them); a contraction of floats
    that gives integers is one of floats, converted at the end.
    """
    if _kind(left) == _kind(right) == "float" and _kind(result) in ("int", "uint"):
        result = left if left == right else "float32"
    if _kind(left) != _kind(result) or _kind(right) != _kind(result):
        return result, result, result
    operand = left
    if left != right:
        operand = "float32" if _kind(left) == "float" and _BITS[left] == _BITS[right] == 8 else result
    accumulator = operand if _BITS[operand] > _BITS[result] and _kind(result) in ("float", "complex") else result
    if _kind(result) == "float" and _BITS[accumulator] <= 16:
        accumulator = "float32"
    return operand, accumulator, result


@_rule("dot_general")
def _dot_general(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
    shape, dtype = outs[0]
    given = [b.dtype(ref) for ref in ins]
    _require_plain_precision(params.get("precision"), given, dtype)
    operand, accumulator, result = _dot_types(given[0], given[1], dtype)
    (lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch) = params["dimension_numbers"]
    attrs: dict[str, Any] = {
        "lhs_batching_dimensions": lhs_batch,
        "rhs_batching_dimensions": rhs_batch,
        "lhs_contracting_dimensions": lhs_contracting,
        "rhs_contracting_dimensions": rhs_contracting,
    }
    if accumulator != result:
        attrs["accumulate"] = {"dtype": accumulator, "order": "sequential", "fma": False}
    product = b.emit("dot_general", [b.convert(ref, operand) for ref in ins], shape, result, **attrs)
    return [b.convert(product, dtype)]


# Reading and writing at computed places, and sorting.


@_rule("dynamic_slice")
def _dynamic_slice(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
    return [b.emit("dynamic_slice", ins, *outs[0], slice_sizes=outs[0][0])]


@_rule("dynamic_update_slice")
def _dynamic_update_slice(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
    return [b.emit("dynamic_update_slice", ins, *outs[0])]


def _fill_value(dtype: str, given: Any) -> np.ndarray:
    """What a gather out of bounds gives where the program does not say: NaN, the least signed integer, the greatest
    unsigned one, true."""
    native = _numpy_dtype(dtype)
    if given is not None:
        return np.array(given).astype(native)
    kind = _kind(dtype)
    if kind == "int":
        return np.array(jax.numpy.iinfo(native).min).astype(native)
    if kind == "uint":
        return np.array(jax.numpy.iinfo(native).max).astype(native)
    return np.array(True if kind == "bool" else np.nan).astype(native)


def _index_mode(mode: Any, out_of_bounds: Mapping[str, str]) -> str:
    name = lax.GatherScatterMode.from_any(mode).name
    if name not in out_of_bounds:
        raise _Inexpressible(f"indices in the mode {name}")
    return out_of_bounds[name]


@_rule("gather")
def _gather(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
    numbers, (_, dtype) = params["dimension_numbers"], outs[0]
    # What is promised to be in bounds is clamped, as XLA's gather does.
    modes = {"PROMISE_IN_BOUNDS": "clip", "CLIP": "clip", "FILL_OR_DROP": "fill"}
    mode = _index_mode(params["mode"], modes)
    fill: dict[str, Any] = {"fill_value": tensor(_fill_value(dtype, params["fill_value"]))} if mode == "fill" else {}
    attrs: dict[str, Any] = {
        "offset_dims": numbers.offset_dims,
        "collapsed_slice_dims": numbers.collapsed_slice_dims,
        "operand_batching_dims": numbers.operand_batching_dims,
        "start_indices_batching_dims": numbers.start_indices_batching_dims,
        "start_index_map": numbers.start_index_map,
        "index_vector_dim": len(b.shape(ins[1])) - 1,
        "slice_sizes": params["slice_sizes"],
        "mode": mode,
    }
    return [b.emit("gather", ins, *outs[0], **attrs, **fill)]


_SCATTERS = {
    "scatter": "replace",
    "scatter-add": "add",
    "scatter-sub": "add",
    "scatter-mul": "multiply",
    "scatter-min": "minimum",
    "scatter-max": "maximum",
}


def _scattered_by_steps(params: Mapping[str, Any]) -> Callable[..., Any]:
    """A scatter whose update is any function of the element and the update: window after window in row-major order."""
    numbers, mode = params["dimension_numbers"], params["mode"]
    if numbers.operand_batching_dims:
        raise _Inexpressible("its update is a function of its own, and it has batching dimensions")
    body = jax_core.ClosedJaxpr(params["update_jaxpr"], params["update_consts"])
    combine = jax_core.jaxpr_as_fun(body)

    def function(operand: Any, indices: Any, updates: Any) -> Any:
        window_axes = numbers.update_window_dims
        around = [axis for axis in range(updates.ndim) if axis not in window_axes]
        window = [updates.shape[axis] for axis in window_axes]
        sizes = iter(window)
        slices = [1 if axis in numbers.inserted_window_dims else next(sizes) for axis in range(operand.ndim)]
        axes = tuple(range(len(window)))
        of_one = lax.ScatterDimensionNumbers(axes, numbers.inserted_window_dims, numbers.scatter_dims_to_operand_dims)
        reading = lax.GatherDimensionNumbers(axes, numbers.inserted_window_dims, numbers.scatter_dims_to_operand_dims)
        rows = lax.transpose(updates, (*around, *window_axes)).reshape(-1, *window)

        def step(result: Any, row: Any) -> Any:
            place, update = row
            old = lax.gather(result, place, reading, slices, mode="clip")
            new = jax.vmap(lambda x, y: combine(x, y)[0])(old.reshape(-1), update.reshape(-1)).reshape(window)
            return lax.scatter(result, place, new, of_one, mode=mode), None

        return lax.scan(step, operand, (indices.reshape(-1, indices.shape[-1]), rows))[0]

    return function


def _scatter(primitive: str, reducer: str) -> Rule:
    def rule(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int] | Expansion:
        operand, indices, updates = ins
        numbers, (shape, dtype) = params["dimension_numbers"], outs[0]
        if primitive == "scatter" and params.get("update_jaxpr") is not None:
            return Expansion(_scattered_by_steps(params))
        if primitive == "scatter-sub":
            updates = b.emit("negate", [updates], b.shape(updates), dtype)
        of_bool = {"add": "maximum", "multiply": "minimum"}
        combined = of_bool.get(reducer, reducer) if dtype == "bool" else reducer
        if combined in _ORDERED and _kind(dtype) == "complex":
            scalar = jax.ShapeDtypeStruct((), _numpy_dtype(dtype))
            body = jax.make_jaxpr(_ORDERED[combined])(scalar, scalar)
            return Expansion(_scattered_by_steps({**params, "update_jaxpr": body.jaxpr, "update_consts": ()}))
        # XLA leaves out every window that is out of bounds, what is promised to be in bounds too.
        modes = {"PROMISE_IN_BOUNDS": "drop", "CLIP": "clip", "FILL_OR_DROP": "drop"}
        attrs: dict[str, Any] = {
            "update_window_dims": numbers.update_window_dims,
            "inserted_window_dims": numbers.inserted_window_dims,
            "input_batching_dims": numbers.operand_batching_dims,
            "scatter_indices_batching_dims": numbers.scatter_indices_batching_dims,
            "scatter_dims_to_operand_dims": numbers.scatter_dims_to_operand_dims,
            "index_vector_dim": len(b.shape(indices)) - 1,
            "mode": _index_mode(params["mode"], modes),
            "reducer": combined,
        }
        return [b.emit("scatter", [operand, indices, updates], shape, dtype, **attrs)]

    return rule


for _primitive, _reducer in _SCATTERS.items():
    _rule(_primitive)(_scatter(_primitive, _reducer))


@_rule("sort")
def _sort(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
    return b.emit_several("sort", ins, outs, dimension=params["dimension"], num_keys=params["num_keys"])


def _total_order(b: Builder, ref: int) -> int:
    """Words of floats as signed integers that ascend in IEEE totalOrder, and back: bits behind a set sign flipped."""
    shape, dtype = b.shape(ref), b.dtype(ref)
    last, low = _BITS[dtype] - 1, (1 << (_BITS[dtype] - 1)) - 1
    signs = b.emit("shift_right_arithmetic", [ref, b.broadcast(b.scalar(last, dtype), shape)], shape, dtype)
    mask = b.emit("and", [signs, b.broadcast(b.scalar(low, dtype), shape)], shape, dtype)
    return b.emit("xor", [ref, mask], shape, dtype)


@_rule("top_k")
def _top_k(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
    """XLA's search orders floats by totalOrder: -0 below 0, and a NaN by its sign below or above all numbers."""
    (shape, dtype), places = outs
    attrs = {"k": params["k"], "dimension": params["axis"] % len(shape)}
    if _kind(dtype) != "float":
        return b.emit_several("top_k", ins, outs, **attrs)
    words = f"int{_BITS[dtype]}"
    keys = _total_order(b, b.emit("bitcast_convert", ins, b.shape(ins[0]), words))
    greatest, indices = b.emit_several("top_k", [keys], [(shape, words), places], **attrs)
    return [b.emit("bitcast_convert", [_total_order(b, greatest)], shape, dtype), indices]


@_rule("approx_top_k")
def _approx_top_k(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
    """Off the TPU the search is exact: a whole sort, of which the first k elements are kept."""
    (shape, dtype), (_, index_dtype) = outs
    axis, sizes = int(params["reduction_dimension"]) % len(shape), b.shape(ins[0])
    if shape[axis] != params["k"]:
        raise _Inexpressible("it keeps more than k elements")
    places = b.emit("iota", [], sizes, index_dtype, iota_dimension=axis)
    types = [(sizes, dtype), (sizes, index_dtype)]
    direction: dict[str, Any] = {"descending": True} if params["is_max_k"] else {}
    ordered = b.emit_several("sort", [ins[0], places], types, dimension=axis, **direction)
    return [_part(b, ref, axis, 0, shape[axis]) for ref in ordered]


# Running totals, pooling and convolutions.

_XLA_TILE = 16
"""Elements that XLA accumulates one by one before a running total starts a new tile."""


def _cumulative(b: Builder, operand: int, axis: int, reducer: str, reverse: bool) -> int:
    attrs: dict[str, Any] = {"reverse": True} if reverse else {}
    return b.emit("cumulative", [operand], b.shape(operand), b.dtype(operand), reducer=reducer, dimension=axis, **attrs)


def _cumulative_from_each(b: Builder, operand: int, axis: int, reducer: str) -> int:
    """The reverse running total, each element's own terms combined from itself on, as XLA's windows do."""
    shape = b.shape(operand)
    ones, zeros = [1] * len(shape), [0] * len(shape)
    window = [size if d == axis else 1 for d, size in enumerate(shape)]
    behind = [size - 1 if d == axis else 0 for d, size in enumerate(shape)]
    attrs: dict[str, Any] = {"reducer": reducer, "window_dimensions": window, "window_strides": ones}
    attrs |= {"padding_low": zeros, "padding_high": behind, "base_dilations": ones, "window_dilations": ones}
    return b.emit("reduce_window", [operand], shape, b.dtype(operand), **attrs)


def _cumulative_tile(b: Builder, operand: int, axis: int, reducer: str, reverse: bool) -> int:
    if reverse and b.shape(operand)[axis]:
        return _cumulative_from_each(b, operand, axis, reducer)
    return _cumulative(b, operand, axis, reducer, reverse)


def _pad_axis(b: Builder, operand: int, fill: int, axis: int, low: int, high: int) -> int:
    shape = b.shape(operand)
    around = [[amount if d == axis else 0 for d in range(len(shape))] for amount in (low, high, 0)]
    sizes = [size + low + high if d == axis else size for d, size in enumerate(shape)]
    padding: dict[str, Any] = dict(
        zip(("edge_padding_low", "edge_padding_high", "interior_padding"), around, strict=True)
    )
    return b.emit("pad", [operand, fill], sizes, b.dtype(operand), **padding)


def _cumulative_in_tiles(b: Builder, operand: int, axis: int, reducer: str, reverse: bool) -> int:
    """A running sum or product as XLA's CPU compiler evaluates it: within tiles of 16 one by one, the tiles' totals
    likewise, and the total of all tiles before combined with each element of a tile."""
    shape, dtype = b.shape(operand), b.dtype(operand)
    size = shape[axis]
    if size <= _XLA_TILE:
        return _cumulative_tile(b, operand, axis, reducer, reverse)
    tiles = -(-size // _XLA_TILE)
    identity = b.scalar(0 if reducer == "add" else 1, dtype)
    missing = tiles * _XLA_TILE - size
    padded = _pad_axis(b, operand, identity, axis, 0, missing) if missing else operand
    split = (*shape[:axis], tiles, _XLA_TILE, *shape[axis + 1 :])
    inner = _cumulative_tile(b, b.reshape(padded, split), axis + 1, reducer, reverse)
    end = 0 if reverse else _XLA_TILE - 1
    totals = b.reshape(_part(b, inner, axis + 1, end, end + 1), (*split[: axis + 1], *split[axis + 2 :]))
    outer = _cumulative_in_tiles(b, totals, axis, reducer, reverse)
    kept = _part(b, outer, axis, 1, tiles) if reverse else _part(b, outer, axis, 0, tiles - 1)
    before = _pad_axis(b, kept, identity, axis, 0 if reverse else 1, 1 if reverse else 0)
    axes = [d for d in range(len(split)) if d != axis + 1]
    whole = b.emit(reducer, [inner, b.broadcast(before, split, axes)], split, dtype)
    joined = b.reshape(whole, b.shape(padded))
    return _part(b, joined, axis, 0, size) if missing else joined


def _running(combine: Callable[[Any, Any], Any], axis: int, reverse: bool) -> Callable[[Any], Any]:
    """A running total by any function of the total so far and the next element; the first total is the first one."""

    def function(x: Any) -> Any:
        rows = jax.numpy.moveaxis(x, axis, 0)
        if not len(rows):
            return x

        def step(total: Any, row: Any) -> Any:
            total = combine(total, row)
            return total, total

        first, rest = (rows[-1], rows[:-1]) if reverse else (rows[0], rows[1:])
        totals = lax.scan(step, first, rest, reverse=reverse)[1]
        parts = [totals, first[None]] if reverse else [first[None], totals]
        return jax.numpy.moveaxis(lax.concatenate(parts, 0), 0, axis)

    return function


def _cumulative_rule(reducer: str) -> Rule:
    def rule(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int] | Expansion:
        (_, dtype), axis, reverse = outs[0], int(params["axis"]), bool(params["reverse"])
        if _kind(dtype) == "complex" and reducer in _ORDERED:
            return Expansion(_running(_ORDERED[reducer], axis, reverse))
        rounds = reducer in ("add", "multiply") and _kind(dtype) in ("float", "complex")
        return [(_cumulative_in_tiles if rounds else _cumulative)(b, ins[0], axis, reducer, reverse)]

    return rule


for _suffix in ("sum", "prod", "max", "min"):
    _rule(f"cum{_suffix}")(_cumulative_rule(_REDUCERS[_suffix]))


def _window(params: Mapping[str, Any]) -> dict[str, Any]:
    """Size, strides and padding of windows, as an operation's attributes."""
    low, high = zip(*params["padding"], strict=True) if params["padding"] else ((), ())
    sizes = {key: params[key] for key in ("window_dimensions", "window_strides")}
    return sizes | {"padding_low": low, "padding_high": high}


def _reduce_windows(b: Builder, operand: int, params: Mapping[str, Any], reducer: str, result: Type) -> int:
    shape, dtype = result
    attrs = _window(params)
    dilations = {"base_dilations": params["base_dilation"], "window_dilations": params["window_dilation"]}
    sizes, window = b.shape(operand), attrs["window_dimensions"]
    padded = any((*attrs["padding_low"], *attrs["padding_high"]))
    axes = [axis for axis, size in enumerate(window) if size != 1]
    dilated = any(step != 1 for steps in dilations.values() for step in steps)
    strided = any(step != 1 for axis, step in enumerate(attrs["window_strides"]) if axis not in axes)
    if axes and not padded and not dilated and not strided and all(window[axis] == sizes[axis] for axis in axes):
        # a window of everything is a reduction, which XLA evaluates in another order
        return b.reshape(_reduce_axes(b, operand, axes, reducer), shape)
    return b.emit("reduce_window", [operand], shape, dtype, reducer=reducer, **attrs, **dilations)


def _window_rule(reducer: str) -> Rule:
    def rule(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int] | Expansion:
        if b.kind(ins[0]) == "complex" and reducer in _ORDERED:
            return Expansion(_from_worst(reducer, params, _folded_windows))
        return [_reduce_windows(b, ins[0], params, reducer, outs[0])]

    return rule


for _suffix in ("sum", "max", "min"):
    _rule(f"reduce_window_{_suffix}")(_window_rule(_REDUCERS[_suffix]))


def _folded_windows(params: Mapping[str, Any], count: int) -> Callable[..., Any]:
    """Windows reduced by any body: the elements of a window are combined in row-major order, one after the other from
    the initial values. As XLA's CPU compiler has it, holes and padding are left out, whatever the initial values."""
    combine, window, strides = _combining(params), params["window_dimensions"], params["window_strides"]
    padding, dilation = params["padding"], params["base_dilation"]
    config = [(low, high, step - 1) for (low, high), step in zip(padding, dilation, strict=True)]
    whole = all(low <= 0 and high <= 0 and hole == 0 for low, high, hole in config)

    def function(*values: Any) -> Any:
        operands, initial = values[:count], values[count:]
        padded = [lax.pad(x, start, config) for x, start in zip(operands, initial, strict=True)]
        inside = lax.pad(lax.full(operands[0].shape, True), np.False_, config)
        places = list(_window_places(inside.shape, window, strides, params["window_dilation"]))
        totals = [lax.broadcast(start, places[0][1]) for start in initial]
        for starts, sizes in places:
            limits = [a + (n - 1) * s + 1 if n else a for a, n, s in zip(starts, sizes, strides, strict=True)]
            part = functools.partial(lax.slice, start_indices=starts, limit_indices=limits, strides=strides)
            flat = [x.reshape(-1) for x in (*totals, *map(part, padded))]
            made = [x.reshape(sizes) for x in jax.vmap(lambda *pair: combine(*pair))(*flat)]
            if not whole:
                chosen = part(inside)
                made = [lax.select(chosen, x, old) for x, old in zip(made, totals, strict=True)]
            totals = made
        return totals

    return function


def _window_places(
    shape: Sequence[int], window: Sequence[int], strides: Sequence[int], dilation: Sequence[int]
) -> Iterator[tuple[list[int], list[int]]]:
    """For each element of a window, row-major: where it starts, and how many windows there are along each axis."""
    spans = [(size - 1) * step + 1 for size, step in zip(window, dilation, strict=True)]
    counts = [max(0, (n - span) // s + 1) for n, span, s in zip(shape, spans, strides, strict=True)]
    for offsets in itertools.product(*(range(size) for size in window)):
        yield [k * step if n else 0 for k, step, n in zip(offsets, dilation, counts, strict=True)], counts


@_rule("reduce_window")
def _general_reduce_window(
    b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]
) -> list[int] | Expansion:
    count = len(ins) // 2
    reducers = _body_reducers(getattr(params["jaxpr"], "jaxpr", params["jaxpr"]), count)
    if reducers is None or not all(
        not (_kind(dtype) == "complex" and name in _ORDERED) and _starts_from_identity(b, ref, name)
        for ref, name, (_, dtype) in zip(ins[count:], reducers, outs, strict=True)
    ):
        return Expansion(_folded_windows(params, count))
    return [_reduce_windows(b, ins[k], params, reducer, outs[k]) for k, reducer in enumerate(reducers)]


@_rule("select_and_gather_add")
def _select_and_gather_add(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> Expansion:
    """The tangents at the greatest (or least) elements of windows: the derivative of max pooling."""
    greatest = params["select_prim"].name == "ge"

    def function(tangents: Any, operand: Any) -> Any:
        def combine(best: Any, tangent: Any, candidate: Any, other: Any) -> Any:
            better = lax.gt(candidate, best) if greatest else lax.lt(candidate, best)
            better = lax.bitwise_or(better, lax.bitwise_and(lax.ne(candidate, candidate), lax.eq(best, best)))
            return lax.select(better, candidate, best), lax.select(better, other, tangent)

        scalars = [jax.ShapeDtypeStruct((), x.dtype) for x in (operand, tangents) * 2]
        body = {**params, "jaxpr": jax.make_jaxpr(combine)(*scalars)}
        worst = np.array(-np.inf if greatest else np.inf, operand.dtype)
        return _folded_windows(body, 2)(operand, tangents, worst, np.zeros((), tangents.dtype))[1]

    return Expansion(function)


@_rule("select_and_scatter_add")
def _select_and_scatter_add(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
    source, operand = ins
    select = {"ge": "GE", "le": "LE"}.get(params["select_prim"].name)
    if select is None:
        raise _Inexpressible(f"it selects by {params['select_prim'].name}")
    return [b.emit("select_and_scatter", [operand, source], *outs[0], select=select, **_window(params))]


@_rule("conv_general_dilated")
def _convolution(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
    shape, dtype = outs[0]
    given = [b.dtype(ref) for ref in ins]
    _require_plain_precision(params.get("precision"), given, dtype)
    operand, accumulator, result = _dot_types(given[0], given[1], dtype)
    numbers = params["dimension_numbers"]
    low, high = zip(*params["padding"], strict=True) if params["padding"] else ((), ())
    attrs: dict[str, Any] = {
        "lhs_dimensions": numbers.lhs_spec,
        "rhs_dimensions": numbers.rhs_spec,
        "output_dimensions": numbers.out_spec,
        "window_strides": params["window_strides"],
        "padding_low": low,
        "padding_high": high,
        "lhs_dilation": params["lhs_dilation"],
        "rhs_dilation": params["rhs_dilation"],
        "window_reversal": (0,) * len(low),
    }
    for key in ("feature_group_count", "batch_group_count"):
        attrs |= {key: params[key]} if params[key] != 1 else {}
    if accumulator != result:
        attrs["accumulate"] = {"dtype": accumulator, "order": "sequential", "fma": False}
    convolved = b.emit("convolution", [b.convert(ref, operand) for ref in ins], shape, result, **attrs)
    return [b.convert(convolved, dtype)]


# Random numbers: JAX's own generators, traced into operations on integers.


def _prng() -> Any:
    """JAX's module of key arrays, which has moved."""
    try:
        return importlib.import_module("jax._src.random.prng")
    except ImportError:
        return importlib.import_module("jax._src.prng")


_OF_KEYS = frozenset(("random_split", "random_fold_in", "random_bits"))
"""Primitives with rules that take key arrays; others move keys, and do so with the keys' data."""


@_rule("random_seed")
def _random_seed(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> Expansion:
    return Expansion(lambda seeds: _prng().random_seed_impl_base(seeds, impl=params["impl"]))


@_rule("random_split")
def _random_split(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> Expansion:
    def function(keys: Any) -> Any:
        data = jax.random.key_data(keys)
        return _prng().random_split_impl_base(keys.dtype._impl, data, keys.ndim, shape=params["shape"])

    return Expansion(function)


@_rule("random_fold_in")
def _random_fold_in(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> Expansion:
    def function(keys: Any, messages: Any) -> Any:
        data = jax.random.key_data(keys)
        return _prng().random_fold_in_impl_base(keys.dtype._impl, data, messages, keys.shape)

    return Expansion(function)


@_rule("random_bits")
def _random_bits(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> Expansion:
    def function(keys: Any) -> Any:
        data = jax.random.key_data(keys)
        return _prng().random_bits_impl_base(keys.dtype._impl, data, keys.ndim, **params)

    return Expansion(function)


@_rule("iota_2x32_shape")
def _iota_2x32_shape(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
    """The high and the low half of each element's row-major number."""
    shape, dtype = outs[0]
    size = int(np.prod(shape, dtype=object))
    if size > 1 << 32:
        raise _Inexpressible(f"{size} elements are numbered with more than 32 bits")
    numbers = b.reshape(b.emit("iota", [], (size,), dtype, iota_dimension=0), shape)
    return [b.broadcast(b.scalar(0, dtype), shape), numbers]


class _Words:
    """Unsigned arithmetic on arrays of one shape, for generators that are written out."""

    def __init__(self, b: Builder, shape: Sequence[int]) -> None:
        self.b, self.shape = b, tuple(shape)

    def number(self, value: int, dtype: str = "uint32") -> int:
        return self.b.broadcast(self.b.constant(np.array(value, dtype)), self.shape)

    def op(self, name: str, *operands: int) -> int:
        return self.b.emit(name, operands, self.shape, self.b.dtype(operands[0]))

    def halves(self, ref: int) -> tuple[int, int]:
        """The low and the high 32 bits of 64."""
        high = self.op("shift_right_logical", ref, self.number(32, "uint64"))
        return self.b.convert(ref, "uint32"), self.b.convert(high, "uint32")

    def joined(self, low: int, high: int) -> int:
        """64 bits of two words of 32."""
        wide = self.op("shift_left", self.b.convert(high, "uint64"), self.number(32, "uint64"))
        return self.op("or", self.b.convert(low, "uint64"), wide)


def _threefry(w: _Words, counter: tuple[int, int], key: tuple[int, int]) -> list[int]:
    """Threefry-2x32 of 20 rounds (Salmon et al., 2011)."""
    keys = [*key, w.op("xor", w.op("xor", *key), w.number(0x1BD11BDA))]
    x, y = w.op("add", counter[0], keys[0]), w.op("add", counter[1], keys[1])
    for step in range(5):
        for rotation in ((13, 15, 26, 6), (17, 29, 16, 24))[step % 2]:
            x = w.op("add", x, y)
            left = w.op("shift_left", y, w.number(rotation))
            right = w.op("shift_right_logical", y, w.number(32 - rotation))
            y = w.op("xor", w.op("or", left, right), x)
        x = w.op("add", x, keys[(step + 1) % 3])
        y = w.op("add", w.op("add", y, keys[(step + 2) % 3]), w.number(step + 1))
    return [x, y]


def _philox(w: _Words, counter: Sequence[int], key: tuple[int, int]) -> list[int]:
    """Philox-4x32 of 10 rounds (Salmon et al., 2011)."""
    (a, b, c, d), (first, second) = counter, key
    for _ in range(10):
        products = []
        for x, factor in ((a, 0xD2511F53), (c, 0xCD9E8D57)):
            products.append(w.halves(w.op("multiply", w.b.convert(x, "uint64"), w.number(factor, "uint64"))))
        (low0, high0), (low1, high1) = products
        a, b, c, d = w.op("xor", w.op("xor", high1, b), first), low1, w.op("xor", w.op("xor", high0, d), second), low0
        first, second = w.op("add", first, w.number(0x9E3779B9)), w.op("add", second, w.number(0xBB67AE85))
    return [a, b, c, d]


def _half_shape(shape: Sequence[int]) -> tuple[list[int], int]:
    """XLA draws two words of 32 bits for each element of half the shape: that shape, with an axis of size 1 for the two
    behind the axis that is halved (the first even one, else the first of the longest)."""
    axis = next((k for k, size in enumerate(shape) if size % 2 == 0), None)
    if axis is None:
        axis = max(range(len(shape)), key=lambda k: (shape[k], -k))
    half = [-(-size // 2) if k == axis else size for k, size in enumerate(shape)]
    return [*half[: axis + 1], 1, *half[axis + 1 :]], axis


def _counted_words(
    b: Builder, shape: Sequence[int], key: int, counter: int
) -> tuple[_Words, tuple[int, int], int, tuple[int, int]]:
    """The arithmetic on a shape, the halves of its counters (from ``counter`` on, row-major), the counters, the key."""
    w, size = _Words(b, shape), int(np.prod(shape, dtype=object))
    places = b.reshape(b.emit("iota", [], (size,), "uint64", iota_dimension=0), shape)
    counters = w.op("add", places, b.broadcast(counter, shape))
    return w, w.halves(counters), counters, w.halves(b.broadcast(key, shape))


def _threefry_bits(b: Builder, key: int, counter: int, shape: tuple[int, ...], bits: int) -> tuple[int, int]:
    """XLA's THREE_FRY generator: words of 32 or 64 bits, and how many counters they took."""
    if bits == 64:
        w, counters, _, keys = _counted_words(b, shape, key, counter)
        return w.joined(*_threefry(w, counters, keys)), int(np.prod(shape, dtype=object))
    if not shape:
        w, counters, _, keys = _counted_words(b, (), key, counter)
        return _threefry(w, counters, keys)[0], 1
    half, axis = _half_shape(shape)
    w, counters, _, keys = _counted_words(b, half, key, counter)
    pairs = [2 if k == axis + 1 else size for k, size in enumerate(half)]
    both = b.emit("concatenate", _threefry(w, counters, keys), pairs, "uint32", dimension=axis + 1)
    joined = b.reshape(both, [2 * half[axis] if k == axis else size for k, size in enumerate(shape)])
    whole = joined if b.shape(joined) == shape else _part(b, joined, axis, 0, shape[axis])
    return whole, int(np.prod(half, dtype=object))


def _philox_bits(b: Builder, key: int, counter: int, shape: tuple[int, ...], bits: int) -> tuple[int, int]:
    """XLA's PHILOX generator, which is the CPU's default too: four words of 32 bits for each counter of 128 bits, of
    which the low 64 are counted and the high 64 start as the key."""
    size = int(np.prod(shape, dtype=object))
    count = -(-size * bits // 128)
    w, low, counters, keys = _counted_words(b, (count,), key, counter)
    wrapped = w.b.emit(
        "compare", [counters, b.broadcast(counter, (count,))], (count,), "bool", comparison_direction="LT"
    )
    high = w.op("add", b.broadcast(key, (count,)), b.convert(wrapped, "uint64"))
    drawn = _philox(w, (*low, *w.halves(high)), keys)
    if bits == 64:
        drawn = [w.joined(*drawn[:2]), w.joined(*drawn[2:])]
    dtype = b.dtype(drawn[0])
    columns = [b.reshape(ref, (count, 1)) for ref in drawn]
    flat = b.reshape(b.emit("concatenate", columns, (count, len(drawn)), dtype, dimension=1), (count * len(drawn),))
    return b.reshape(_part(b, flat, 0, 0, size), shape), count


@_rule("rng_bit_generator")
def _rng_bit_generator(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
    """XLA's generators, whose state is a key and a counter of 64 bits each; narrow words are the low bits of 32."""
    (state_shape, state_dtype), (shape, dtype) = outs
    state = ins[0]
    if state_dtype == "uint32":
        state = b.emit("bitcast_convert", [b.reshape(state, (2, 2))], (2,), "uint64")
    key, counter = (b.reshape(_part(b, state, 0, k, k + 1), ()) for k in range(2))
    if 0 in shape:
        return [ins[0], b.broadcast(b.scalar(0, dtype), shape)]
    draw = _threefry_bits if params["algorithm"].name == "RNG_THREE_FRY" else _philox_bits
    words, count = draw(b, key, counter, shape, 64 if dtype == "uint64" else 32)
    after = b.emit("add", [counter, b.constant(np.array(count, np.uint64))], (), "uint64")
    pair = [b.reshape(ref, (1,)) for ref in (key, after)]
    final = b.emit("concatenate", pair, (2,), "uint64", dimension=0)
    if state_dtype == "uint32":
        final = b.reshape(b.emit("bitcast_convert", [final], (2, 2), "uint32"), state_shape)
    return [final, b.convert(words, dtype)]


def _on_key_data(equation: Any) -> Callable[..., Any]:
    """An equation that moves keys, as a function that does the same with the data of each key, along the last axis."""
    of_keys = [_is_key(atom.aval) for atom in equation.invars]
    if not all(_is_key(atom.aval) and len(atom.aval.dtype._impl.key_shape) == 1 for atom in equation.outvars):
        raise _Inexpressible("it computes with keys themselves")

    def function(*values: Any) -> Any:
        data = [jax.random.key_data(x) if key else x for x, key in zip(values, of_keys, strict=True)]
        axes = tuple(-1 if key else None for key in of_keys)
        bind = functools.partial(equation.primitive.bind, **equation.params)
        return jax.vmap(bind, in_axes=axes, out_axes=-1)(*data)

    return function


@_rule("cumlogsumexp")
def _cumlogsumexp(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int] | Expansion:
    axis, reverse = int(params["axis"]), bool(params["reverse"])
    if _kind(outs[0][1]) == "float":
        return [_cumulative(b, ins[0], axis, "logaddexp", reverse)]

    return Expansion(_running(jax.numpy.logaddexp, axis, reverse))


# Fourier transforms, factorizations and solvers.


@_rule("fft")
def _fft(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
    kind, lengths = params["fft_type"].name, [int(size) for size in params["fft_lengths"]]
    shape, dtype = outs[0]
    if not lengths:
        return [b.convert(ins[0], dtype)]
    if 0 in b.shape(ins[0]):
        return [b.broadcast(b.scalar(0, dtype), shape)]
    return [b.emit("fft", ins, shape, dtype, fft_type=kind, fft_length=lengths)]


@_rule("cholesky")
def _cholesky(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
    return [b.emit("cholesky", ins, *outs[0])]


@_rule("triangular_solve")
def _triangular_solve(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
    a, right = ins
    conjugated = bool(params["conjugate_a"]) and b.kind(a) == "complex"
    transpose = "NO_TRANSPOSE"
    if params["transpose_a"]:
        transpose = "ADJOINT" if conjugated else "TRANSPOSE"
    elif conjugated:
        a = b.emit("conjugate", [a], b.shape(a), b.dtype(a))
    attrs: dict[str, Any] = {key: bool(params[key]) for key in ("left_side", "lower", "unit_diagonal")}
    return [b.emit("triangular_solve", [a, right], *outs[0], transpose_a=transpose, **attrs)]


@_rule("lu")
def _lu(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
    return b.emit_several("lu", ins, outs)


@_rule("geqrf")
def _geqrf(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
    return b.emit_several("geqrf", ins, outs)


@_rule("householder_product")
def _householder_product(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
    return [b.emit("householder_product", ins, *outs[0])]


@_rule("tridiagonal_solve")
def _tridiagonal_solve(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
    if params.get("perturb_singular"):
        raise _Inexpressible("it perturbs singular matrices")
    return [b.emit("tridiagonal_solve", ins, *outs[0])]


def _require_all(params: Mapping[str, Any], count: int) -> None:
    if params.get("subset_by_index") not in (None, (0, count)):
        raise _Inexpressible("it computes a part of the values only")


@_rule("eigh")
def _eigh(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
    """JAX gives the vectors first."""
    _require_all(params, b.shape(ins[0])[-1])
    values, vectors = b.emit_several("eigh", ins, outs[::-1], lower=bool(params["lower"]))
    return [vectors, values]


@_rule("svd")
def _svd(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
    """JAX gives the values first, and with ``compute_uv`` false nothing else."""
    shape, dtype = b.shape(ins[0]), b.dtype(ins[0])
    *batch, rows, columns = shape
    least = min(rows, columns)
    _require_all(params, least)
    full = bool(params["full_matrices"]) and bool(params["compute_uv"])
    left, right = (rows, columns) if full else (least, least)
    types = [((*batch, rows, left), dtype), outs[0], ((*batch, right, columns), dtype)]
    u, values, vh = b.emit_several("svd", ins, types, full_matrices=full)
    return [values, u, vh][: len(outs)]


# Error checks, which an artifact has no way to raise.


def _raises_in_equinox(equation: Any) -> bool:
    """Whether an equation is the call of Python by which equinox raises an error."""
    function = getattr(equation.params.get("callback"), "callback_func", None)
    return equation.primitive.name == "pure_callback" and getattr(function, "__module__", "") == "equinox._errors"


def _error_of_equinox(b: Builder, ins: list[int], params: Mapping[str, Any], outs: list[Type]) -> list[int]:
    """What equinox's mode ``EQX_ON_ERROR=nan`` gives in the place of an error: NaN, the greatest integer, or true."""
    warnings.warn(
        "error checks of equinox are recorded as its mode EQX_ON_ERROR=nan has them: where one would raise, NaN, the "
        "greatest integer, or true",
        stacklevel=2,
    )
    results = []
    for shape, dtype in outs:
        native, kind = _numpy_dtype(dtype), _kind(dtype)
        if kind in ("int", "uint"):
            made = np.array(jax.numpy.iinfo(native).max).astype(native)
        else:
            made = np.array(True if kind == "bool" else np.nan).astype(native)
        results.append(b.broadcast(b.constant(made), shape))
    return results


# ---- from steps to nodes --------------------------------------------------------------------------------------------


def _described_params(params: Mapping[str, Any]) -> str:
    """The parameters that say what an equation does: no jaxprs, functions, defaults or shardings."""
    shown = []
    for key, value in sorted(params.items()):
        text = re.sub(r"np\.\w+\((-?\d+)\)", r"\1", str(value))
        if value is None or callable(value) or _jaxprs_in(value) or " at 0x" in text or "sharding" in key:
            continue
        shown.append(f"{key}={text if len(text) <= 60 else text[:57] + '...'}")
    return ", ".join(shown)


def _jaxprs_in(value: Any) -> list[tuple[Any, Sequence[Any]]]:
    """The jaxprs that a parameter holds, each with its constants."""
    if isinstance(value, jax_core.ClosedJaxpr):
        return [(value.jaxpr, value.consts)]
    if isinstance(value, jax_core.Jaxpr):
        return [(value, ())] if not value.constvars else []
    if isinstance(value, (tuple, list)):
        return [found for item in value for found in _jaxprs_in(item)]
    return []


_REGIONS = {"scan": "scan", "cond": "case", "while": "while"}
"""Loops and choices, with the operation whose regions hold their bodies."""


class Graph:
    """The nodes of a program, the node of each of its values, and what could not be expressed."""

    def __init__(
        self,
        program: Program,
        input_names: Sequence[str] = (),
        within: tuple[str, ...] = (),
        builder: Builder | None = None,
        given: Sequence[int] | None = None,
    ) -> None:
        """With a ``builder`` the nodes are appended to its body, and the inputs are its values ``given``."""
        self.program = program
        self.builder = builder or Builder()
        self.problems: list[Problem] = []
        self._within = within
        self._refs: dict[int, int] = {}
        self._types: dict[int, Type] = {}
        if given is not None:
            self._refs.update(zip(program.inputs, given, strict=True))
        else:
            for k, value in enumerate(program.inputs):
                self._refs[value] = self._input(value, input_names[k] if k < len(input_names) else None)
        for step in program.steps:
            self._emit(step)
        self.outputs = [self.ref(value) for value in program.outputs]

    def body(self) -> dict[str, Any]:
        """The inputs, outputs and nodes as an artifact or a region has them."""
        written = self.builder.written
        return {
            "input_ids": [written(self.ref(value)) for value in self.program.inputs],
            "output_ids": [written(ref) for ref in self.outputs],
            "nodes": self.builder.nodes,
        }

    def ref(self, value: int) -> int:
        """The node of a value; a constant gets its node where it is used first."""
        if value not in self._refs:
            constant = self.program.values[value]
            self._refs[value] = self.builder.constant(constant.data, constant.name)
        return self._refs[value]

    def _type(self, value: int) -> Type:
        if value not in self._types:
            entry = self.program.values[value]
            symbols = [(dim, names) for dim in entry.shape if (names := _symbols(dim))]
            if symbols:
                raise CaptureError(
                    f"a size is {symbols[0][0]}, of the symbolic dimension {symbols[0][1][0]} that the function closes "
                    "over, and an artifact has fixed sizes: build the function with a number"
                )
            self._types[value] = tuple(int(size) for size in entry.shape), dtype_name(entry.dtype)
        return self._types[value]

    def _input(self, value: int, name: str | None) -> int:
        entry = self.program.values[value]
        shape = [0 if _symbols(dim) else dim for dim in entry.shape]  # such a size is reported, and nothing is written
        return self.builder.emit("input", [], shape, _any_name(entry.dtype), name)

    def _emit(self, step: Step) -> None:
        if step.regions:
            self._emit_control(step)
            return
        try:
            rule = self._rule(step)
            types_out = [self._type(value) for value in step.outputs]
            for value in step.inputs:
                self._type(value)
            self.builder.source = step.source
            operands = [self.ref(value) for value in step.inputs]
            results = rule(self.builder, operands, step.equation.params, types_out)
            if isinstance(results, Expansion):
                results = self._expand(step, results.function, operands)
            self._refs.update(zip(step.outputs, results, strict=True))
        except (_Inexpressible, CaptureError) as error:
            self._report(step, str(error))
            for value in step.outputs:
                self._refs[value] = self._input(value, None)

    def _rule(self, step: Step) -> Rule:
        """The rule of a step's primitive: its own, else that of its definition by JAX operations."""
        equation = step.equation
        keys = any(_is_key(atom.aval) for atom in equation.invars)
        if keys and step.primitive in RULES and step.primitive not in _OF_KEYS:
            return lambda b, ins, params, outs: Expansion(_on_key_data(equation))
        if step.primitive in RULES:
            return RULES[step.primitive]
        if _raises_in_equinox(equation):
            return _error_of_equinox
        if step.primitive in REFUSED:
            raise _Inexpressible(REFUSED[step.primitive])
        opaque = "callback" in equation.params or equation.effects
        function = None if opaque else _lowered_function(equation.primitive)
        body = None if function is None else _traced(functools.partial(function, **equation.params), equation)
        if body is None:
            raise _Inexpressible(_NO_OPERATION)
        return lambda b, ins, params, outs: Expansion(jax_core.jaxpr_as_fun(body))

    def _expand(self, step: Step, function: Callable[..., Any], operands: Sequence[int]) -> list[int]:
        """The nodes of a function of the operands, in the place of an equation."""
        equation = step.equation
        with equation.ctx.manager:
            closed = jax.make_jaxpr(function)(*(_abstract(atom.aval) for atom in equation.invars))
        program = Program(closed.jaxpr, closed.consts, None, step.source, True)
        if any(inner.primitive == step.primitive and step.primitive not in RULES for inner in program.steps):
            raise _Inexpressible("there is no operation for this primitive")
        graph = Graph(program, (), self._within, self.builder, operands)
        if graph.problems:
            raise _Inexpressible(f"its definition needs {graph.problems[0]}")
        return graph.outputs

    def _emit_control(self, step: Step) -> None:
        """The node of a loop or a choice, its bodies as regions; what these cannot express is reported for them."""
        regions = [Graph(region, (), (*self._within, step.primitive)) for region in step.regions]
        problems = [problem for region in regions for problem in region.problems]
        if problems:
            self.problems += [problem for problem in problems if problem not in self.problems]
            self._refs.update((value, self._input(value, None)) for value in step.outputs)
            return
        params = step.equation.params
        op, types = step.primitive, [self._type(value) for value in step.outputs]
        attrs: dict[str, Any] = {}
        if op == "scan":
            attrs = {key: int(params[key]) for key in ("length", "num_consts", "num_carry")}
            attrs |= {"reverse": True} if params["reverse"] else {}
        op = _REGIONS[op]
        constants = 0
        if op == "while":
            constants = params["cond_nconsts"] + params["body_nconsts"]
            types = [self._type(value) for value in step.inputs[:constants]] + types
        if not types:
            return
        self.builder.source = step.source
        operands = [self.ref(value) for value in step.inputs]
        bodies = [region.body() for region in regions]
        results = self.builder.emit_several(op, operands, types, regions=bodies, **attrs)
        self._refs.update(zip(step.outputs, results[constants:], strict=True))

    def _report(self, step: Step, reason: str) -> None:
        params = step.equation.params
        source = str(step.source) if step.source else None
        problems = [Problem(step.primitive, _described_params(params), source, reason, self._within)]
        for jaxpr, consts in (found for value in params.values() for found in _jaxprs_in(value)):
            inner = Graph(Program(jaxpr, consts), (), (*self._within, step.primitive))
            problems += inner.problems
        self.problems += [problem for problem in problems if problem not in self.problems]


# ---- recorded values ------------------------------------------------------------------------------------------------


Record = Callable[[int, Any], None]
"""Takes the number of a value and the value."""


def _evaluate(program: Program, inputs: Sequence[Any], record: Record | None = None) -> list[Any]:
    """The outputs, each equation that they need compiled and run by itself; loops and choices are followed here, so
    that the equations of their bodies are too. With ``record`` every equation is evaluated, and what it gives recorded
    at once: only values that are still needed are held.

    An operand that JAX would broadcast inside the equation is broadcast before it: given a broadcast scalar, XLA turns
    a division into a multiplication by the reciprocal, which is not what the equation says.
    """
    with np.errstate(all="ignore"):
        return _evaluate_all(program, inputs, record)


def _evaluate_all(program: Program, inputs: Sequence[Any], record: Record | None) -> list[Any]:
    values = dict(program.constants)
    arrays = (x if isinstance(x, (jax.Array, np.ndarray)) else np.asarray(x) for x in inputs)
    values.update(zip(program.inputs, arrays, strict=True))
    for step, gone in program.schedule if record is None else program.whole_schedule:
        operands = [values[value] for value in step.inputs]
        results = _CONTROL[step.primitive](step, operands) if step.regions else _evaluate_step(step, operands, program)
        for value, result in zip(step.outputs, results, strict=True):
            values[value] = result
            if record is not None:
                record(value, result)
        for value in gone:
            del values[value]
    return [values[value] for value in program.outputs]


# Primitives whose results are decided by what they say: NumPy gives the words that XLA gives, without a compilation.
# Operations of IEEE 754 are among them where no operand and no result is subnormal, which XLA may flush to zero, or
# NaN, whose words are not decided, and where the greater of two zeros is not asked for.


class _Undecided(Exception):
    """Raised where only XLA can say what words it gives."""


_DECIDED_DTYPES = frozenset(np.dtype(kind) for kind in ("?", *"bhilqBHILQ", "f", "d"))
_CHUNK = 1 << 16

Numpy = Callable[[Mapping[str, Any], Any, list[np.ndarray]], Any]
"""The result, or a list of several, from the parameters, the dtype of the (first) result and the operands."""

_NUMPY: dict[str, Numpy] = {}
"""What NumPy can decide, by primitive; raises _Undecided for operands where it cannot."""


def _numpy(*names: str) -> Callable[[Numpy], Numpy]:
    def register(function: Numpy) -> Numpy:
        _NUMPY.update(dict.fromkeys(names, function))
        return function

    return register


def _require(decided: Any) -> None:
    if not decided:
        raise _Undecided


def _chunks(x: np.ndarray) -> Iterator[np.ndarray]:
    """The elements in parts that stay in a cache, where that needs no copy."""
    if x.size <= _CHUNK or not x.flags.c_contiguous:
        return iter((x,))
    flat = x.reshape(-1)
    return (flat[start : start + _CHUNK] for start in range(0, flat.size, _CHUNK))


@functools.lru_cache(8)
def _limits(dtype: Any) -> tuple[Any, int, int]:
    """Of a float dtype: the unsigned dtype of its size, and twice the magnitudes of the least normal number and of
    infinity as words."""
    size, fraction = dtype.itemsize, int(np.finfo(dtype).nmant)
    return np.dtype(f"u{size}"), 2 << fraction, (1 << 8 * size) - (2 << fraction)


def _has_subnormal(x: np.ndarray, smallest: int = 0, nan: bool = False) -> bool:
    """Whether any number is subnormal (or with ``smallest`` 1, one of those of the least normal magnitude; or with
    ``nan`` not a number)."""
    if x.dtype.kind != "f" or not x.size:
        return False
    word, least, infinity = _limits(x.dtype)
    for part in _chunks(x):
        magnitudes = part.view(word)
        magnitudes = magnitudes + magnitudes if part.ndim else np.left_shift(part.view(word), word.type(1))[None]
        if nan and int(magnitudes.max()) > infinity:
            return True
        magnitudes -= word.type(1)  # zero becomes the greatest
        if int(magnitudes.min()) < least - 1 + smallest:
            return True
    return False


def _has_nan(x: np.ndarray) -> bool:
    return x.dtype.kind == "f" and bool(x.size) and any(np.isnan(part.max()) for part in _chunks(x))


_KNOWN_NORMAL: dict[int, weakref.ref[np.ndarray]] = {}
"""Arrays without subnormal numbers, by identity; nothing here writes into an array that it has made."""


def _normal(*operands: np.ndarray) -> None:
    """_Undecided where one holds a subnormal number."""
    for x in operands:
        known = _KNOWN_NORMAL.get(id(x))
        if x.dtype.kind == "f" and (known is None or known() is not x):
            _require(not _has_subnormal(x))
            _KNOWN_NORMAL[id(x)] = weakref.ref(x, functools.partial(_forget, id(x)))


def _forget(identity: int, reference: Any) -> None:
    if _KNOWN_NORMAL.get(identity) is reference:
        del _KNOWN_NORMAL[identity]


def _rounded(x: np.ndarray) -> np.ndarray:
    """A result of IEEE 754 arithmetic on normal numbers; _Undecided where it holds NaN or what may have been flushed,
    which the least normal number is too where it was rounded to."""
    x = np.asarray(x)
    if x.dtype.kind == "f":
        _require(not _has_subnormal(x, 1, True))
        _KNOWN_NORMAL[id(x)] = weakref.ref(x, functools.partial(_forget, id(x)))
    return x


def _arithmetic(primitive: str, function: Any, kinds: str) -> None:
    def evaluate(params: Mapping[str, Any], dtype: Any, operands: list[np.ndarray]) -> Any:
        _require(operands[0].dtype.kind in kinds and params.get("out_dtype") is None)
        _normal(*operands)
        return _rounded(function(*operands))

    _NUMPY[primitive] = evaluate


_arithmetic("add", np.add, "iuf")
_arithmetic("add_any", np.add, "iuf")
_arithmetic("sub", np.subtract, "iuf")
_arithmetic("mul", np.multiply, "iuf")
_arithmetic("div", np.divide, "f")
_arithmetic("sqrt", np.sqrt, "f")
_arithmetic("square", np.square, "f")
_arithmetic("neg", np.negative, "if")
_arithmetic("abs", np.abs, "if")
_arithmetic("sign", np.sign, "i")
_arithmetic("floor", np.floor, "f")
_arithmetic("ceil", np.ceil, "f")
_arithmetic("and", np.bitwise_and, "biu")
_arithmetic("or", np.bitwise_or, "biu")
_arithmetic("xor", np.bitwise_xor, "biu")
_arithmetic("not", np.invert, "biu")


def _comparing(primitive: str, function: Any) -> None:
    def evaluate(params: Mapping[str, Any], dtype: Any, operands: list[np.ndarray]) -> Any:
        _normal(*operands)
        return function(*operands)

    _NUMPY[primitive] = evaluate


for _name, _function in {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "is_finite": np.isfinite,
}.items():
    _comparing(_name, _function)


def _extreme_of(function: Any, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The greater or lesser of every two; of zeros with different signs neither is."""
    if x.dtype.kind == "f":
        x, y = np.broadcast_arrays(x, y)
        _normal(x, y)
        _require(not ((x == y) & (np.signbit(x) != np.signbit(y))).any())
        return _rounded(function(x, y))
    return function(x, y)


@_numpy("max")
def _numpy_max(params: Mapping[str, Any], dtype: Any, operands: list[np.ndarray]) -> Any:
    return _extreme_of(np.maximum, *operands)


@_numpy("min")
def _numpy_min(params: Mapping[str, Any], dtype: Any, operands: list[np.ndarray]) -> Any:
    return _extreme_of(np.minimum, *operands)


@_numpy("clamp")
def _numpy_clamp(params: Mapping[str, Any], dtype: Any, operands: list[np.ndarray]) -> Any:
    low, x, high = operands
    return _extreme_of(np.minimum, _extreme_of(np.maximum, x, low), high)


def _extreme_along(function: Any, params: Mapping[str, Any], x: np.ndarray) -> Any:
    _require(x.size)
    if x.dtype.kind == "f":
        _normal(x)
        result = _rounded(function.reduce(x, axis=tuple(params["axes"])))
        _require((result != 0).all() or not ((x == 0) & np.signbit(x)).any())
        return result
    return function.reduce(x, axis=tuple(params["axes"]))


_NUMPY["reduce_max"] = lambda params, dtype, operands: _extreme_along(np.maximum, params, operands[0])
_NUMPY["reduce_min"] = lambda params, dtype, operands: _extreme_along(np.minimum, params, operands[0])


def _reducing(primitive: str, function: Any) -> None:
    """A reduction of integers or Booleans, which no order changes."""

    def evaluate(params: Mapping[str, Any], dtype: Any, operands: list[np.ndarray]) -> Any:
        (x,) = operands
        _require(x.dtype.kind != "f")
        return function.reduce(x, axis=tuple(params["axes"]), dtype=x.dtype)

    _NUMPY[primitive] = evaluate


_reducing("reduce_sum", np.add)
_reducing("reduce_prod", np.multiply)
_reducing("reduce_and", np.bitwise_and)
_reducing("reduce_or", np.bitwise_or)
_reducing("reduce_xor", np.bitwise_xor)


def _argument_of(function: Any, params: Mapping[str, Any], dtype: Any, x: np.ndarray) -> Any:
    _require(x.size and len(params["axes"]) == 1 and not _has_nan(x))
    _normal(x)
    return function(x, axis=params["axes"][0]).astype(dtype)


_NUMPY["argmax"] = lambda params, dtype, operands: _argument_of(np.argmax, params, dtype, operands[0])
_NUMPY["argmin"] = lambda params, dtype, operands: _argument_of(np.argmin, params, dtype, operands[0])


@_numpy("integer_pow")
def _numpy_integer_pow(params: Mapping[str, Any], dtype: Any, operands: list[np.ndarray]) -> Any:
    (x,), exponent = operands, params["y"]
    _require(exponent in (2, 3))
    _normal(x)
    squared = _rounded(x * x)
    return squared if exponent == 2 else _rounded(squared * x)


@_numpy("round")
def _numpy_round(params: Mapping[str, Any], dtype: Any, operands: list[np.ndarray]) -> Any:
    _require(int(params["rounding_method"]) == int(lax.RoundingMethod.TO_NEAREST_EVEN))
    _normal(*operands)
    return _rounded(np.rint(operands[0]))


def _shifting(primitive: str, function: Any, kind: str) -> None:
    def evaluate(params: Mapping[str, Any], dtype: Any, operands: list[np.ndarray]) -> Any:
        x, amount = operands
        _require(((amount >= 0) & (amount < 8 * x.dtype.itemsize)).all())
        as_kind = f"{kind or x.dtype.kind}{x.dtype.itemsize}"
        return function(x.view(as_kind), amount.view(as_kind)).view(x.dtype)

    _NUMPY[primitive] = evaluate


_shifting("shift_left", np.left_shift, "u")
_shifting("shift_right_logical", np.right_shift, "u")
_shifting("shift_right_arithmetic", np.right_shift, "i")


@_numpy("select_n")
def _numpy_select(params: Mapping[str, Any], dtype: Any, operands: list[np.ndarray]) -> Any:
    which, *cases = operands
    _require(which.dtype == bool and len(cases) == 2)
    return np.where(which, cases[1], cases[0])


@_numpy("convert_element_type")
def _numpy_convert(params: Mapping[str, Any], dtype: Any, operands: list[np.ndarray]) -> Any:
    (x,) = operands
    if x.dtype == dtype or x.dtype.kind != "f":
        return x.astype(dtype)
    _normal(x)
    if dtype.kind == "b":
        return x != 0
    if dtype.kind == "f":
        return _rounded(x.astype(dtype))
    limits, whole = np.iinfo(dtype), np.trunc(x)
    _require(((whole >= float(limits.min)) & (whole < float(limits.max + 1))).all())
    return x.astype(dtype)


@_numpy("iota")
def _numpy_iota(params: Mapping[str, Any], dtype: Any, operands: list[np.ndarray]) -> Any:
    _require(not operands)
    shape, axis = params["shape"], params["dimension"]
    _require(dtype.kind != "b" and (shape[axis] <= 1 << 24 if dtype.kind == "f" else True))
    sizes = [1] * len(shape)
    sizes[axis] = shape[axis]
    return np.broadcast_to(np.arange(shape[axis]).astype(dtype).reshape(sizes), shape)


# Primitives that only place elements: XLA would compile each of them for every shape.


@_numpy("broadcast_in_dim")
def _numpy_broadcast(params: Mapping[str, Any], dtype: Any, operands: list[np.ndarray]) -> Any:
    (x,), shape, axes = operands, params["shape"], params["broadcast_dimensions"]
    sizes = [1] * len(shape)
    for axis, size in zip(axes, x.shape, strict=True):
        sizes[axis] = size
    return np.broadcast_to(x.reshape(sizes), shape)


@_numpy("slice")
def _numpy_slice(params: Mapping[str, Any], dtype: Any, operands: list[np.ndarray]) -> Any:
    (x,) = operands
    strides = params["strides"] or (1,) * x.ndim
    return x[tuple(map(slice, params["start_indices"], params["limit_indices"], strides))]


@_numpy("reshape")
def _numpy_reshape(params: Mapping[str, Any], dtype: Any, operands: list[np.ndarray]) -> Any:
    (x,), order = operands, params.get("dimensions")
    return (x if order is None else np.transpose(x, order)).reshape(params["new_sizes"])


@_numpy("split")
def _numpy_split(params: Mapping[str, Any], dtype: Any, operands: list[np.ndarray]) -> Any:
    ends = np.cumsum(np.asarray(params["sizes"], np.int64))[:-1]
    return np.split(operands[0], [int(end) for end in ends], axis=params["axis"])


@_numpy("pad")
def _numpy_pad(params: Mapping[str, Any], dtype: Any, operands: list[np.ndarray]) -> Any:
    x, fill = operands
    config = params["padding_config"]
    _require(all(low >= 0 and high >= 0 for low, high, _ in config) and x.size)
    sizes = [low + high + size + (size - 1) * inner for (low, high, inner), size in zip(config, x.shape, strict=True)]
    result = np.full(sizes, fill, dtype)
    ends = [low + (size - 1) * (inner + 1) + 1 for (low, _, inner), size in zip(config, x.shape, strict=True)]
    result[tuple(slice(low, end, inner + 1) for (low, _, inner), end in zip(config, ends, strict=True))] = x
    return result


@_numpy("dynamic_slice")
def _numpy_dynamic_slice(params: Mapping[str, Any], dtype: Any, operands: list[np.ndarray]) -> Any:
    x, *starts = operands
    sizes = params["slice_sizes"]
    _require(len(starts) == x.ndim)
    return x[_window_at(x.shape, starts, sizes)]


@_numpy("dynamic_update_slice")
def _numpy_dynamic_update_slice(params: Mapping[str, Any], dtype: Any, operands: list[np.ndarray]) -> Any:
    x, update, *starts = operands
    _require(len(starts) == x.ndim)
    result = x.copy()
    result[_window_at(x.shape, starts, update.shape)] = update
    return result


def _window_at(shape: Sequence[int], starts: Sequence[np.ndarray], sizes: Sequence[int]) -> tuple[slice, ...]:
    """The part of an array, moved to lie inside of it."""
    first = [min(max(int(at), 0), size - part) for at, size, part in zip(starts, shape, sizes, strict=True)]
    return tuple(slice(at, at + size) for at, size in zip(first, sizes, strict=True))


_MOST_GATHERED = 1 << 22


@_numpy("gather")
def _numpy_gather(params: Mapping[str, Any], dtype: Any, operands: list[np.ndarray]) -> Any:
    """A gather whose slices all lie inside of the operand, so that its mode does not matter."""
    x, indices = operands
    numbers, sizes = params["dimension_numbers"], params["slice_sizes"]
    batch = indices.shape[:-1]
    _require(0 < int(np.prod((*batch, *sizes))) <= _MOST_GATHERED and indices.dtype != np.uint64)
    starts: dict[int, np.ndarray] = {
        axis: indices[..., k].astype(np.int64) for k, axis in enumerate(numbers.start_index_map)
    }
    paired = zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True)
    for axis, other in paired:
        along = [1] * len(batch)
        along[other] = batch[other]
        starts[axis] = np.arange(batch[other]).reshape(along)
    places = []
    for axis, (size, part) in enumerate(zip(x.shape, sizes, strict=True)):
        at = starts.get(axis, np.zeros((), np.int64))
        _require(((at >= 0) & (at <= size - part)).all())
        within = [1] * x.ndim
        within[axis] = part
        places.append(at.reshape(at.shape + (1,) * x.ndim) + np.arange(part).reshape(within))
    taken = np.broadcast_to(x[tuple(places)], (*batch, *sizes))
    gone = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    taken = taken.reshape((*batch, *(size for axis, size in enumerate(sizes) if axis not in gone)))
    return np.moveaxis(taken, range(len(batch), taken.ndim), numbers.offset_dims)


_NUMPY |= {
    "squeeze": lambda params, dtype, operands: np.squeeze(operands[0], tuple(params["dimensions"])),
    "expand_dims": lambda params, dtype, operands: np.expand_dims(operands[0], tuple(params["dimensions"])),
    "transpose": lambda params, dtype, operands: np.transpose(operands[0], params["permutation"]),
    "rev": lambda params, dtype, operands: np.flip(operands[0], tuple(params["dimensions"])),
    "concatenate": lambda params, dtype, operands: np.concatenate(operands, params["dimension"]),
}

_ANY_DTYPE = {"reshape", "squeeze", "expand_dims", "transpose", "broadcast_in_dim", "slice"}
"""Primitives that NumPy evaluates for every dtype."""


_Decide = Callable[[Sequence[Any]], "list[np.ndarray] | None"]


def _deciding(step: Step, program: Program) -> _Decide | None:
    """What gives the results of a step by NumPy where they are decided, and None where XLA has to be asked; None where
    it always has."""
    if _only_xla(step, program):
        return None
    function, params = _NUMPY[step.primitive], step.equation.params
    outputs = [program.values[value] for value in step.outputs]
    expected, dtype = [(tuple(item.shape), item.dtype) for item in outputs], outputs[0].dtype

    def decide(operands: Sequence[Any]) -> list[np.ndarray] | None:
        try:
            made = function(params, dtype, [np.asarray(operand) for operand in operands])
        except _Undecided:
            return None
        results = [np.asarray(result) for result in (made if isinstance(made, list) else [made])]
        return results if [(result.shape, result.dtype) for result in results] == expected else None

    return decide


def _only_xla(step: Step, program: Program) -> bool:
    """Whether NumPy cannot decide a step whatever its operands are."""
    if step.primitive not in _NUMPY:
        return True
    dtypes = [program.values[value].dtype for value in (*step.inputs, *step.outputs)]
    if step.primitive in ("reduce_sum", "reduce_prod") and dtypes[0].kind == "f":
        return True
    if step.primitive == "integer_pow" and step.equation.params["y"] not in (2, 3):
        return True
    return step.primitive not in _ANY_DTYPE and not _DECIDED_DTYPES.issuperset(dtypes)


# ---- compiling ahead ------------------------------------------------------------------------------------------------

# Every equation is computed by XLA as a computation of its own. A module for each would take XLA twice the time that
# the kernels need, and JAX some milliseconds to lower. So small ones share a module, in which each is a branch of one
# conditional: XLA fuses nothing across its branches, and a call runs one of them. The tests compare the words that a
# primitive has in such a module with those that it has alone.

_FUNCTIONS = "exp exp2 expm1 log log1p sin cos tanh logistic erf erf_inv rsqrt sqrt pow integer_pow square"
_ARITHMETIC = """add add_any sub mul div max min neg abs sign floor round clamp select_n convert_element_type is_finite
    eq ne lt le gt ge"""
_OF_MANY = """dot_general reduce_sum reduce_max reduce_min argmax argmin cumsum cumlogsumexp concatenate pad
    dynamic_slice dynamic_update_slice gather scatter-add"""
_SHARING = frozenset(f"{_FUNCTIONS} {_ARITHMETIC} {_OF_MANY}".split())
"""Primitives whose equations may share a module."""

_SHARED_BRANCHES = 32
_SHARED_RESULTS = 4 << 20
"""Bytes of the results of all branches: a call makes room for all of them."""
_SHARED_OPERANDS = 64 << 20
_OWN_SECONDS = 0.015
"""What a module of its own takes longer to compile than a branch, about."""

_Types = tuple[tuple[tuple[int, ...], Any], ...]


def _nbytes(types: Iterable[tuple[Sequence[int], Any]]) -> int:
    return sum(int(np.prod(shape, dtype=np.int64)) * int(np.dtype(dtype).itemsize) for shape, dtype in types)


class _Kernel:
    """One equation for operands of given shapes and dtypes, compiled before it is needed: in a module of its own, or
    as the branch of another's. ``uses`` counts the calls that are foreseen."""

    def __init__(self, equation: Any, function: Any, operands: _Types, results: _Types) -> None:
        self.equation = equation
        self.operands = operands
        self.results = results
        self.uses = 0
        self.shared: tuple[_Shared, int] | None = None
        self._function = function
        self._compiled: concurrent.futures.Future[Any] | None = None
        self._calls = 0

    def compile(self, pool: concurrent.futures.Executor) -> None:
        """Compile a module of its own in a thread; raises what JAX does where it cannot be lowered."""
        with self.equation.ctx.manager:
            lowered = self._function.lower(*(jax.ShapeDtypeStruct(*item) for item in self.operands))
        self._compiled = pool.submit(lowered.compile)

    @property
    def compiled(self) -> bool:
        """Whether it is ready."""
        future = self._compiled if self.shared is None else self.shared[0].compiled
        return future is not None and future.done() and not future.cancelled() and future.exception() is None

    def __call__(self, operands: Sequence[Any]) -> Sequence[Any] | None:
        """The results; None where it was not compiled, and for arrays that it cannot take, such as those of several
        devices."""
        try:
            if self.shared is not None:
                shared, branch = self.shared
                self._calls += 1
                if self._calls * shared.overhead < 2 * _OWN_SECONDS:
                    return shared(branch, operands)
                self.shared = None  # in a long loop its own module is worth it
                with concurrent.futures.ThreadPoolExecutor(1) as pool:
                    self.compile(pool)
            if self._compiled is None:
                return None
            results = self._compiled.result()(*operands)
        except Exception:  # what is wrong, if anything is, ``bind`` will say
            self.shared = self._compiled = None
            return None
        return results if self.equation.primitive.multiple_results else [results]


class _Shared:
    """Equations as the branches of a conditional, in one module.

    It takes the index of a branch, an array for each of its results and then the operands; branches have operands of
    the same type in common, and results too. What is no result of a branch are the arrays that were given.
    """

    def __init__(self) -> None:
        self.kernels: list[_Kernel] = []
        self.overhead = 0.0
        self._operands: list[Any] = []
        self._results: list[Any] = []
        self._places: list[tuple[list[int], list[int]]] = []
        self._given: list[Any] | None = None
        self.compiled: concurrent.futures.Future[Any] | None = None

    def add(self, kernel: _Kernel) -> bool:
        """Take an equation in, unless that makes calls slow."""
        operands, results = list(self._operands), list(self._results)
        places = _places(operands, kernel.operands), _places(results, kernel.results)
        overhead = 30e-6 + _nbytes(results) / 10e9  # seconds of a call beside those of a module with one equation
        if kernel.uses * overhead > _OWN_SECONDS or len(self.kernels) == _SHARED_BRANCHES:
            return False
        if _nbytes(results) > _SHARED_RESULTS or _nbytes(operands) > _SHARED_OPERANDS:
            return False
        self.kernels.append(kernel)
        self._places.append(places)
        self._operands, self._results, self.overhead = operands, results, overhead
        return True

    def compile(self, pool: concurrent.futures.Executor) -> None:
        """Compile the module in a thread; raises what JAX does where it cannot be lowered."""
        index = jax.ShapeDtypeStruct((), np.int32)
        types = [jax.ShapeDtypeStruct(*item) for item in (*self._results, *self._operands)]
        branches = [self._branch(k) for k in range(len(self.kernels))]
        chosen = jax.make_jaxpr(lambda at, *given: lax.switch(at, branches, *given))(index, *types)
        # without the clamp of the index, which is a kernel too
        (choice,) = [equation for equation in chosen.eqns if equation.primitive.name == "cond"]
        given, made = ([(x.aval.shape, x.aval.dtype) for x in atoms] for atoms in (choice.invars[1:], choice.outvars))
        if given != [*self._results, *self._operands] or made != self._results:
            raise ValueError("the conditional has other operands or results than the branches")
        choose = functools.partial(choice.primitive.bind, **choice.params)
        self.compiled = pool.submit(jax.jit(choose).lower(index, *types).compile)
        for k, kernel in enumerate(self.kernels):
            kernel.shared = self, k

    def forget(self) -> None:
        """Let go of the arrays for what a branch does not take; they are made again when they are needed."""
        self._given = None

    def _branch(self, k: int) -> Callable[..., Any]:
        (of_operands, of_results), equation, count = self._places[k], self.kernels[k].equation, len(self._results)

        def branch(*given: Any) -> list[Any]:
            results = list(given[:count])
            with equation.ctx.manager:
                made = equation.primitive.bind(*(given[count + at] for at in of_operands), **equation.params)
            for at, result in zip(of_results, made if equation.primitive.multiple_results else [made], strict=True):
                results[at] = result
            return results

        return branch

    def __call__(self, branch: int, operands: Sequence[Any]) -> list[Any]:
        assert self.compiled is not None
        compiled = self.compiled.result()
        if self._given is None:
            self._given = [_on_device(np.zeros(*item)) for item in (*self._results, *self._operands)]
        of_operands, of_results = self._places[branch]
        given, count = list(self._given), len(self._results)
        for at, operand in zip(of_operands, operands, strict=True):
            given[count + at] = _on_device(operand) if isinstance(operand, np.ndarray) else operand
        results = compiled(np.int32(branch), *given)
        return [results[at] for at in of_results]


def _on_device(array: np.ndarray) -> Any:
    """``jax.device_put`` without what it does for trees and several devices, which takes ten times longer."""
    from jax._src.lib import xla_client

    device, sharding = _device()
    return xla_client.batched_device_put(_aval(array.shape, array.dtype), sharding, [array], [device])


@functools.lru_cache(4096)
def _aval(shape: tuple[int, ...], dtype: Any) -> Any:
    return jax.core.ShapedArray(shape, dtype)


@functools.cache
def _device() -> tuple[Any, Any]:
    device = jax.devices()[0]
    return device, jax.sharding.SingleDeviceSharding(device)


def _places(known: list[Any], wanted: _Types) -> list[int]:
    """A position in ``known`` for each type that is wanted; appended where there are too few of it."""
    places: list[int] = []
    for item in wanted:
        free = [k for k, other in enumerate(known) if other == item and k not in places]
        if not free:
            known.append(item)
        places.append(free[0] if free else len(known) - 1)
    return places


_KERNELS: dict[Any, _Kernel] = {}
"""What was compiled, by the primitive with its parameters and the types of the operands."""
_MOST_KERNELS = 4096


def _find_kernels(program: Program, steps: Iterable[Step], times: int, found: dict[Any, _Kernel]) -> None:
    """Give a kernel to each step that only XLA can evaluate, those in the bodies of loops among them; one to all whose
    equations are the same. Choices are not followed: what they need is compiled when they do."""
    from jax._src import dispatch

    for step in steps:
        equation = step.equation
        if step.regions:
            if step.primitive != "cond":
                for region in step.regions:
                    _find_kernels(region, region.needed, times * int(equation.params.get("length", 1)), found)
            continue
        atoms = [*equation.invars, *equation.outvars]
        if not times or equation.effects or any(_is_key(atom.aval) for atom in atoms):
            continue
        if any(_symbols(dim) for atom in atoms for dim in atom.aval.shape):  # the graph says which, and is refused
            continue
        if not _only_xla(step, program) or _own_implementation(equation.primitive) is not None:
            continue
        results = tuple((atom.aval.shape, atom.aval.dtype) for atom in equation.outvars)
        shape = results[0][0] if step.primitive in BROADCASTING else None
        given = [program.values[value] for value in step.inputs]
        operands = tuple((x.shape if shape is None else shape, x.dtype) for x in given)
        with contextlib.suppress(TypeError):  # parameters that cannot be compared
            function = dispatch.xla_primitive_callable(equation.primitive, **equation.params)
            key = function, operands
            if key not in found:
                found[key] = _KERNELS.get(key) or _Kernel(equation, function, operands, results)
                found[key].uses = 0
            found[key].uses += times
            step.kernel = found[key]


def _may_share(kernel: _Kernel) -> bool:
    dtypes = [dtype for _, dtype in (*kernel.operands, *kernel.results)]
    whole = all(_BITS.get(dtype.name, 0) >= 8 or dtype.kind == "b" for dtype in dtypes)
    named = kernel.equation.primitive.name in _SHARING
    return named and whole and bool(kernel.operands) and jax.default_backend() == "cpu"


@contextlib.contextmanager
def _compiling(program: Program, everything: bool) -> Iterator[None]:
    """Within, the steps that XLA evaluates are compiled in threads, those of different shapes or parameters once."""
    found: dict[Any, _Kernel] = {}
    _find_kernels(program, program.steps if everything else program.needed, 1, found)
    groups: list[_Shared] = []
    alone = []
    for kernel in found.values():
        if kernel.compiled or (_may_share(kernel) and any(group.add(kernel) for group in groups)):
            continue
        group = _Shared()
        if _may_share(kernel) and group.add(kernel):
            groups.append(group)
        else:
            alone.append(kernel)
    pool = concurrent.futures.ThreadPoolExecutor(2)
    try:
        for group in groups:
            if len(group.kernels) > 1:
                with contextlib.suppress(Exception):
                    group.compile(pool)
            alone += [kernel for kernel in group.kernels if kernel.shared is None]
        for kernel in alone:
            with contextlib.suppress(Exception):  # what is wrong, ``bind`` will say
                kernel.compile(pool)
        yield
        _KERNELS.update((key, kernel) for key, kernel in found.items() if kernel.compiled)
        for key in list(_KERNELS)[: max(len(_KERNELS) - _MOST_KERNELS, 0)]:
            del _KERNELS[key]
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for group in groups:
            group.forget()


def _evaluate_step(step: Step, operands: Sequence[Any], program: Program) -> Sequence[Any]:
    equation = step.equation
    if step.keys:
        wrap = _prng().random_wrap
        operands = [
            x if impl is None else wrap(jax.numpy.asarray(x), impl=impl)
            for x, impl in zip(operands, step.keys, strict=True)
        ]
    else:
        decided = step.decided(operands, program)
        if decided is not None:
            return decided
        if step.primitive in BROADCASTING:
            operands = [_broadcast_value(x, program.values[step.outputs[0]].shape) for x in operands]
        made = step.kernel(operands) if step.kernel is not None else None
        if made is not None:
            return made
    try:
        with equation.ctx.manager:
            results = equation.primitive.bind(*operands, **equation.params)
    except (NotImplementedError, jax.errors.JaxRuntimeError) as error:
        place = f" at {step.source}" if step.source else ""
        raise CaptureError(
            f"JAX cannot evaluate {step.primitive}{place} by itself on this platform: {str(error).splitlines()[0]}"
        ) from error
    several = results if equation.primitive.multiple_results else [results]
    if step.primitive == "cholesky":  # above the diagonal LAPACK leaves what was there
        several = [jax.numpy.tril(result) for result in several]
    return [jax.random.key_data(result) if _is_key(result) else result for result in several]


def _evaluate_while(step: Step, operands: Sequence[Any]) -> Sequence[Any]:
    condition, body = step.regions
    while bool(_evaluate(condition, operands)[0]):
        operands = _evaluate(body, operands)
    return operands[len(operands) - len(step.outputs) :]


def _evaluate_cond(step: Step, operands: Sequence[Any]) -> Sequence[Any]:
    index = min(max(int(operands[0]), 0), len(step.regions) - 1)
    return _evaluate(step.regions[index], operands[1:])


def _evaluate_scan(step: Step, operands: Sequence[Any]) -> Sequence[Any]:
    (body,), params = step.regions, step.equation.params
    consts, carries, length = (int(params[key]) for key in ("num_consts", "num_carry", "length"))
    given, carried = list(operands[:consts]), list(operands[consts : consts + carries])
    stacked = [np.asarray(operand) for operand in operands[consts + carries :]]
    made = [(body.values[value].shape, body.values[value].dtype) for value in body.outputs[carries:]]
    results = [np.zeros((length, *shape), dtype) for shape, dtype in made]
    for k in range(length - 1, -1, -1) if params["reverse"] else range(length):
        outputs = _evaluate(body, [*given, *carried, *(array[k, ...] for array in stacked)])
        carried = outputs[:carries]
        for result, output in zip(results, outputs[carries:], strict=True):
            result[k] = np.asarray(output)  # NumPy asks a JAX scalar for a float, which narrow dtypes have none of
    return [*carried, *results]


_CONTROL: dict[str, Callable[[Step, Sequence[Any]], Sequence[Any]]] = {
    "while": _evaluate_while,
    "cond": _evaluate_cond,
    "scan": _evaluate_scan,
}


def _broadcast_value(operand: Any, shape: tuple[int, ...]) -> Any:
    return operand if np.shape(operand) == shape else np.broadcast_to(np.asarray(operand), shape)


# ---- export ---------------------------------------------------------------------------------------------------------


def export(
    fn: Callable[..., Any],
    *args: Any,
    name: str | None = None,
    trace: bool = False,
    compile: bool = False,
    sizes: Mapping[str, int] | None = None,
    **kwargs: Any,
) -> dict[str, Any]:
    """The artifact of ``fn(*args, **kwargs)``, with these arguments and JAX's results as its recorded sample.

    Arguments are arrays, numbers, and nested dicts, lists, tuples and named tuples of them; every leaf is an input.
    What is neither inside them (the activation function of a layer, a text) is a part of the program: the trees have
    None there, also where the result gives it back.
    ``name`` names the artifact, by default as the function is called. With ``trace`` the value of every equation is
    recorded too. Outputs come from evaluating each equation by itself, or with ``compile`` from ``jax.jit(fn)``; the
    values of a trace always come from the former. An argument may be a ``jax.ShapeDtypeStruct``: example values are
    made for it, and ``sizes`` pins its symbolic dimensions (of ``jax.export.symbolic_shape``) by name. (A function
    whose own keyword arguments have one of these names is bound to them first, with ``functools.partial``.)

    Raises UnsupportedError for primitives that cannot be expressed (all of them at once), and CaptureError for
    arguments and results that cannot. What ``fn`` itself raises while it is traced is passed on.
    """
    with _rare_collections(), _captured(fn, args, kwargs, name, trace, compile, sizes) as (artifact, evaluate):
        (sample,) = artifact["samples"]
        evaluate(functools.partial(_keep, sample))
    return artifact


def write(path: str | os.PathLike[str], fn: Callable[..., Any], /, *args: Any, **options: Any) -> int:
    """Export and save, as ``export`` and ``save`` say, but what goes to the ``.safetensors`` file is written when it is
    computed: a trace takes no more memory than the values that are still needed. Options and errors are those of
    ``export``; the result is the number of nodes."""
    own: dict[str, Any] = {"name": None, "trace": False, "compile": False, "sizes": None}
    own |= {key: options.pop(key) for key in own if key in options}
    with _rare_collections(), _captured(fn, args, options, *own.values()) as (artifact, evaluate):
        _write(artifact, path, evaluate)
    return len(artifact["nodes"])


_Put = Callable[[str, int, Any], None]
"""Takes "outputs" or "trace", a position there and the value."""


def _keep(sample: dict[str, Any], what: str, position: int, array: Any) -> None:
    """Put a value into a sample."""
    if what == "trace":
        sample[what][position]["tensor"] = tensor(array)
    else:
        sample[what][position] = tensor(array)


@contextlib.contextmanager
def _rare_collections() -> Iterator[None]:
    """Tracing makes objects by the hundred thousand, which live on: Python need not look through them for garbage
    every time that there are some hundred more."""
    thresholds = gc.get_threshold()
    if thresholds[0]:
        gc.set_threshold(max(200_000, thresholds[0]), *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


@contextlib.contextmanager
def _captured(
    fn: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    name: str | None,
    trace: bool,
    compile: bool,
    sizes: Mapping[str, int] | None,
) -> Iterator[tuple[dict[str, Any], Callable[[_Put], None]]]:
    """What ``export`` says, with types alone where its outputs and trace have values, and what computes these."""
    _KNOWN_NORMAL.clear()  # arrays of the caller's may have changed since
    called, args, kwargs = _without_static(fn, args, kwargs)
    arguments = _flatten_arguments(fn, args, kwargs)
    if sizes or any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in arguments.leaves):
        args, kwargs = _pinned(args, kwargs, arguments.names, sizes or {})
        arguments = _flatten_arguments(fn, args, kwargs)
    inputs = [_argument_array(leaf, path) for leaf, path in zip(arguments.leaves, arguments.names, strict=True)]
    name = _function_name(fn) if name is None else name
    try:
        closed, shapes = jax.make_jaxpr(called, return_shape=True)(*args, **kwargs)
    except Exception as error:
        if isinstance(error, TypeError) and "which is not a valid JAX type" in str(error):
            raise CaptureError(str(error).splitlines()[0]) from None  # a part of the result
        problem = _shape_of_data(error)
        if problem is None:
            raise
        raise UnsupportedError(name, [problem]) from error
    output_tree = _result_tree(shapes)
    program = Program(closed.jaxpr, closed.consts, _ConstantNames(fn))
    with _compiling(program, trace) if trace or not compile else contextlib.nullcontext():
        graph = Graph(program, arguments.names)
        if graph.problems:
            raise UnsupportedError(name, graph.problems)
        sample: dict[str, Any] = {"inputs": [tensor(array) for array in inputs], "outputs": []}
        for position, value in enumerate(program.outputs):
            try:
                sample["outputs"].append(_type_of(program.values[value]))
            except CaptureError as error:
                raise CaptureError(f"output {position}: {error}") from None
        recorded = _recorded(graph) if trace else {}
        refs = sorted(recorded.values())
        if trace:
            types = {ref: _type_of(program.values[value]) for value, ref in recorded.items()}
            sample["trace"] = [{"value": graph.builder.written(ref), "tensor": types[ref]} for ref in refs]
        artifact: dict[str, Any] = {
            "format": "tlir",
            "name": name,
            **graph.body(),
            "producer": {
                "frontend": "jax",
                "frontend_version": jax.__version__,
                "platform": jax.default_backend(),
                "capture": CAPTURE_VERSION,
                "outputs": "compiled" if compile else "op-by-op",
                "flags": _flags(),
            },
            "samples": [sample],
        }
        if arguments.tree is not None:
            artifact["input_tree"] = arguments.tree
        if output_tree is not None:
            artifact["output_tree"] = None if output_tree is _NOTHING else output_tree
        artifact["version"] = _lowest_version(artifact)

        def evaluate(put: _Put) -> None:
            position_of = {ref: position for position, ref in enumerate(refs)}
            places = {value: position_of[ref] for value, ref in recorded.items()}

            def record(value: int, array: Any) -> None:
                if value in places:
                    put("trace", places[value], array)

            outputs = _evaluate(program, inputs, record if trace else None) if trace or not compile else []
            for position, array in enumerate(_compiled_outputs(called, args, kwargs) if compile else outputs):
                put("outputs", position, array)

        yield artifact, evaluate


def _type_of(value: Value) -> dict[str, Any]:
    """The type of a value as an artifact has it."""
    return {"dtype": dtype_name(value.dtype), "shape": [int(size) for size in value.shape]}


def _function_name(fn: Any) -> str:
    while isinstance(fn, functools.partial):
        fn = fn.func
    return str(getattr(fn, "__name__", type(fn).__name__))


def _flags() -> dict[str, bool | int | str]:
    """The settings of JAX that decide what it computes."""
    flags: dict[str, bool | int | str] = {"x64": bool(jax.config.jax_enable_x64)}
    if jax.config.jax_default_matmul_precision is not None:
        flags["default_matmul_precision"] = str(jax.config.jax_default_matmul_precision)
    return flags


def _compiled_outputs(fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    leaves = jax.tree_util.tree_leaves(jax.jit(fn)(*args, **kwargs))
    return [jax.random.key_data(leaf) if _is_key(leaf) else leaf for leaf in leaves]


def _recorded(graph: Graph) -> dict[int, int]:
    """The values of a trace, in the order in which they are computed, each with its node: those of the nodes that are
    results of equations."""
    found: dict[int, int] = {}
    for step in graph.program.steps:
        for value in step.outputs:
            ref = graph.ref(value)
            if graph.builder.node(ref)["op"] not in ("input", "constant"):
                found.setdefault(ref, value)
    return {value: ref for ref, value in found.items()}


def _lowest_version(artifact: Mapping[str, Any]) -> int:
    """1 for one input and one output, 2 for other numbers of them, 3 where the artifact says more than 2 can."""
    later = any(key in artifact for key in ("input_tree", "output_tree", "formats", "external"))
    later = later or any("trace" in sample for sample in artifact.get("samples", ()))
    for node in artifact["nodes"]:
        later = later or "results" in node or "regions" in node or "accumulate" in node.get("attrs", {})
    if later:
        return 3
    return 1 if len(artifact["input_ids"]) == len(artifact["output_ids"]) == 1 else 2


# ---- files ----------------------------------------------------------------------------------------------------------


_Stored = dict[str, tuple[str, list[int], Any]]
"""What goes to an external file: dtype, shape and by key a buffer of little-endian words, or None where they come
later."""


def save(artifact: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write an artifact as canonical text; tensors of more than 1 MiB go to ``<stem>.safetensors`` beside it, and where
    all values of a trace have more than that together, those of more than 4 KiB.

    Each file appears whole or not at all. The artifact itself is not changed.
    """
    _write(artifact, path, None)


def _write(artifact: Mapping[str, Any], path: str | os.PathLike[str], evaluate: Callable[[_Put], None] | None) -> None:
    """Save an artifact, and what ``evaluate`` gives of its sample when it comes."""
    path = Path(path)
    document = dict(artifact)
    large: _Stored = {}
    file = f"{path.stem}.safetensors"
    document["nodes"] = _external_constants(artifact["nodes"], file, large, "node")
    if "samples" in artifact:
        samples = enumerate(artifact["samples"])
        document["samples"] = [_external_sample(sample, file, large, f"sample{k}") for k, sample in samples]
    (sample,) = document["samples"] if evaluate is not None else (None,)
    if large and _is_special(path):
        raise OSError(errno.ENOTSUP, "it is not a regular file, and large tensors lie in a file beside it")
    with contextlib.ExitStack() as stack:
        stored = stack.enter_context(_TensorFile(path.with_name(file), large)) if large else None

        def put(what: str, position: int, array: Any) -> None:
            place = sample[what][position]["tensor"] if what == "trace" else sample[what][position]
            if stored is not None and "file" in place:
                stored.put(place["tensor"], _words(np.asarray(array)))
            else:
                _keep(sample, what, position, array)

        if evaluate is not None:
            evaluate(put)
        if stored is not None:
            document["external"] = {**artifact.get("external", {}), file: stored.finish()}
            document["version"] = 3
        with _replaced(path) as stream:
            for part in _text(document):
                stream.write(part)
            if stored is not None:
                stored.appear()


def dumps(artifact: Mapping[str, Any]) -> str:
    """The canonical text of an artifact: one top-level key a line, and one node or sample a line."""
    return b"".join(_text(artifact)).decode("utf-8")


def _text(artifact: Mapping[str, Any]) -> Iterator[bytes]:
    """The canonical text, part after part. The base64 text of large tensors is made when its turn comes, and does not
    go through the encoder of JSON."""
    held: list[np.ndarray] = []
    token = secrets.token_hex(16)

    def plain(value: Any) -> Any:
        """The value with a token in the place of the words of large tensors."""
        if isinstance(value, _Large):
            held.append(value.array)
            return {"dtype": value["dtype"], "shape": value["shape"], "base64": f"{token}{len(held) - 1}{token}"}
        if isinstance(value, dict):
            return {key: plain(item) for key, item in value.items()}
        return [plain(item) for item in value] if isinstance(value, list) else value

    def encoded(text: str) -> Iterator[bytes]:
        for k, part in enumerate(text.split(token)):
            yield base64.b64encode(held[int(part)]) if k % 2 else part.encode("utf-8")

    before = "{\n"
    for key in sorted(artifact):
        value = artifact[key]
        yield from encoded(f"{before}{_compact(key)}:")
        if key == "samples":
            value = plain(value)
        elif key == "nodes":
            value = [plain(node) if node["op"] == "constant" or "regions" in node else node for node in value]
        if key in ("nodes", "samples") and value:
            yield from encoded("[\n" + ",\n".join(_compact(item) for item in value) + "\n]")
        else:
            yield from encoded(_compact(value))
        before = ",\n"
    yield b"\n}\n"


def _compact(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _external_tensor(
    value: Mapping[str, Any], file: str, large: _Stored, key: str, most: int = EXTERNAL_BYTES
) -> Mapping[str, Any]:
    """The tensor, or where it has more than ``most`` bytes a reference into ``file``; the data, where it is known, is
    added to ``large``."""
    if "file" in value or _tensor_bytes(value) <= most:
        return value
    data: Any = None
    if isinstance(value, _Large):
        data = value.array
    elif "base64" in value:
        data = base64.b64decode(value["base64"])
    large[key] = value["dtype"], value["shape"], data
    return {"dtype": value["dtype"], "shape": value["shape"], "file": file, "tensor": key}


def _tensor_bytes(value: Mapping[str, Any]) -> int:
    words = 2 if _kind(value["dtype"]) == "complex" else 1
    return math.prod(value["shape"]) * words * ((_BITS[value["dtype"]] + 7) // 8)


def _external_sample(sample: Mapping[str, Any], file: str, large: _Stored, prefix: str) -> dict[str, Any]:
    """The sample with its large tensors replaced by references into ``file``."""
    result = dict(sample)
    for what in ("input", "output"):
        tensors = enumerate(sample[f"{what}s"])
        result[f"{what}s"] = [_external_tensor(value, file, large, f"{prefix}.{what}{k}") for k, value in tensors]
    if "trace" in sample:
        total = sum(_tensor_bytes(entry["tensor"]) for entry in sample["trace"])
        most = HELD_BYTES if total > EXTERNAL_BYTES else EXTERNAL_BYTES
        result["trace"] = []
        for entry in sample["trace"]:
            node, part = entry["value"] if isinstance(entry["value"], list) else (entry["value"], 0)
            moved = _external_tensor(entry["tensor"], file, large, f"{prefix}.value{node}.{part}", most)
            result["trace"].append({**entry, "tensor": moved})
    return result


def _external_constants(
    nodes: Sequence[Mapping[str, Any]], file: str, large: _Stored, prefix: str
) -> list[dict[str, Any]]:
    """The nodes with their large constants replaced by references into ``file``; the data is added to ``large``."""
    result = []
    for node in nodes:
        node = dict(node)
        if node["op"] == "constant":
            value = _external_tensor(node["attrs"]["value"], file, large, f"{prefix}{node['id']}")
            node["attrs"] = {**node["attrs"], "value": value}
        if "regions" in node:
            node["regions"] = [
                {**region, "nodes": _external_constants(region["nodes"], file, large, f"{prefix}{node['id']}.{k}.")}
                for k, region in enumerate(node["regions"])
            ]
        result.append(node)
    return result


# The dtypes that safetensors names itself; any other word is stored as U8, a complex one as its two parts.
_SAFETENSORS = {"bool": "BOOL", "bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2"}
_SAFETENSORS |= {"complex64": "C64"} | {f"float{bits}": f"F{bits}" for bits in (16, 32, 64)}
_SAFETENSORS |= {f"{kind}{bits}": f"{kind[0].upper()}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)}


_PIECE = 1 << 20
"""Bytes that wait until they are written together, and that are read back at once."""


class _TensorFile:
    """A safetensors file that is written while its tensors are computed: the length of the header in 8 bytes, the
    header in JSON, which types alone decide, and the data. A thread writes and hashes. The file has its name after
    ``appear``, or is gone."""

    def __init__(self, path: Path, tensors: _Stored) -> None:
        header: dict[str, Any] = {}
        end = 0
        for key in _placed(tensors):
            dtype, shape, _ = tensors[key]
            stored, sizes = _SAFETENSORS.get(dtype, "U8"), list(shape)
            if dtype == "complex128":
                stored, sizes = _SAFETENSORS["float64"], [*shape, 2]
            begin, end = end, end + _tensor_bytes({"dtype": dtype, "shape": shape})
            header[key] = {"dtype": stored, "shape": sizes, "data_offsets": [begin, end]}
        text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode("utf-8")
        text += b" " * (-len(text) % 8)
        self._path = path
        self._text = len(text).to_bytes(8, "little") + text
        self._size = len(self._text) + end
        self._places = {key: len(self._text) + entry["data_offsets"][0] for key, entry in header.items()}
        self._given = {key: data for key, (_, _, data) in tensors.items() if data is not None}
        self._waiting: list[tuple[int, Any]] = []
        self._writing: concurrent.futures.Future[None] | None = None
        self._digest = hashlib.sha256()
        self._hashed = 0
        self._ahead: dict[int, int] = {}  # what is written but not hashed yet: the end of each part by its begin

    def __enter__(self) -> _TensorFile:
        handle, self._temporary = tempfile.mkstemp(prefix=f".{self._path.name}.", dir=self._path.parent)
        self._stream = os.fdopen(handle, "w+b", buffering=0)
        self._thread = concurrent.futures.ThreadPoolExecutor(1)
        self._waiting.append((0, self._text))
        for key in sorted(self._given, key=self._places.__getitem__):
            self.put(key, self._given[key])
        return self

    def __exit__(self, *error: object) -> None:
        self._thread.shutdown(cancel_futures=True)
        self._stream.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._temporary)

    def put(self, key: str, data: Any) -> None:
        """Write the words of a tensor. Some of them wait until there are more, but not many."""
        self._waiting.append((self._places[key], data))
        if sum(memoryview(part).nbytes for _, part in self._waiting) >= _PIECE:
            self._flush()

    def _flush(self) -> None:
        if self._writing is not None:
            self._writing.result()
        parts, self._waiting = self._waiting, []
        self._writing = self._thread.submit(self._write, parts)

    def _write(self, parts: list[tuple[int, Any]]) -> None:
        for begin, part in parts:
            data = memoryview(part)
            if not data.nbytes:
                continue
            data = data.cast("B")
            self._stream.seek(begin)
            rest = data
            while rest:
                rest = rest[self._stream.write(rest) :]
            if begin == self._hashed:
                self._digest.update(data)
                self._hashed += data.nbytes
            else:
                self._ahead[begin] = begin + data.nbytes
            while self._hashed in self._ahead:
                self._hash_to(self._ahead.pop(self._hashed))

    def _hash_to(self, end: int) -> None:
        """Read back what was written before what lies ahead of it, and hash it."""
        self._stream.seek(self._hashed)
        while self._hashed < end:
            piece = self._stream.read(min(_PIECE, end - self._hashed))
            if not piece:
                raise OSError(f"{self._temporary} became shorter while it was written")
            self._digest.update(piece)
            self._hashed += len(piece)

    def finish(self) -> dict[str, Any]:
        """Write what waits; the SHA-256 and the size of the file as an artifact has them."""
        self._flush()
        assert self._writing is not None
        self._writing.result()
        if self._hashed != self._size:
            raise ValueError(f"{self._size - self._hashed} bytes of {self._path.name} were not given")
        return {"sha256": self._digest.hexdigest(), "size": self._size}

    def appear(self) -> None:
        """Give the file its name."""
        _rename(self._temporary, self._path)


def _placed(tensors: _Stored) -> list[str]:
    """The tensors in the order of a file: large words first, so that every tensor is aligned. The values of a trace
    come as they are computed, and outputs after them, as far as that leaves all of them aligned."""

    def place(key: str) -> tuple[Any, ...]:
        dtype, shape, _ = tensors[key]
        late = ".value" in key or (traced and ".output" in key)
        in_order = ".value" in key and _tensor_bytes({"dtype": dtype, "shape": shape}) % 8 == 0
        by_word = -((_BITS[dtype] + 7) // 8), key
        return (1, positions[key]) if in_order else ((2, *by_word) if late else (0, *by_word))

    positions = {key: k for k, key in enumerate(tensors)}
    traced = any(".value" in key for key in tensors)
    return sorted(tensors, key=place)


@contextlib.contextmanager
def _replaced(path: Path) -> Iterator[Any]:
    """A stream to a temporary file, which is renamed over ``path`` when it is complete. A pipe or a device is written
    directly."""
    if _is_special(path):
        with open(path, "wb") as stream:
            yield stream
        return
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
        _rename(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _is_special(path: Path) -> bool:
    """Whether a path is that of a pipe or a device, whose place no file can take."""
    return path.exists() and not path.is_file() and not path.is_dir()


def _rename(temporary: str, path: Path) -> None:
    """Give a finished file its name, and the permissions of a new one."""
    umask = os.umask(0)
    os.umask(umask)
    os.chmod(temporary, 0o666 & ~umask)
    os.replace(temporary, path)


# ---- command line ---------------------------------------------------------------------------------------------------

_USAGE, _FAILED, _UNSUPPORTED = 2, 1, 4


class _Exit(Exception):
    """Ends the command with a message and an exit code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def _user_error(error: BaseException, doing: str) -> str:
    """One or two lines about an exception of the user's own program, with the innermost line of theirs."""
    text = str(error).strip().splitlines()
    message = f"{type(error).__name__}" + (f": {text[0]}" if text else "")
    if isinstance(error, SyntaxError):
        return f"{doing}: {message}"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_user_file(frame.filename)]
    if not frames:
        return f"{doing}: {message}"
    place = frames[-1]
    line = f"\n    {place.line}" if place.line else ""
    return f"{doing}: {message}\n  at {_short_path(place.filename)}:{place.lineno} in {place.name}{line}"


def _is_user_file(path: str) -> bool:
    absolute = os.path.abspath(path)
    return absolute != _THIS_FILE and not absolute.startswith(_JAX_FOLDER) and "<frozen" not in path


def _load(target: str, option: str) -> Any:
    """The object that ``file.py:attribute`` or ``package.module:attribute`` names."""
    where, colon, attribute = target.rpartition(":")
    if not colon or not where or not attribute:
        raise _Exit(_USAGE, f"{option} is {target!r}; write it as file.py:name")
    module = _load_module(where)
    found = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            public = ", ".join(sorted(key for key in vars(module) if not key.startswith("_"))[:20])
            raise _Exit(_USAGE, f"{where} has no {attribute!r}" + (f"; it has {public}" if public else ""))
        found = getattr(found, part)
    return found


@functools.cache
def _load_module(where: str) -> types.ModuleType:
    path = Path(where)
    try:
        if where.endswith(".py") or path.is_file():
            if not path.is_file():
                raise _Exit(_USAGE, f"there is no file {where}")
            sys.path.insert(0, str(path.parent.resolve()))
            spec = importlib.util.spec_from_file_location(path.stem, path.resolve())
            if spec is None or spec.loader is None:
                raise _Exit(_USAGE, f"{where} is not a Python file")
            module = importlib.util.module_from_spec(spec)
            sys.modules[path.stem] = module
            spec.loader.exec_module(module)
            return module
        sys.path.insert(0, os.getcwd())
        return importlib.import_module(where)
    except ModuleNotFoundError as error:
        if error.name and where.startswith(error.name):
            raise _Exit(_USAGE, f"there is no module or file {where}") from None
        raise _Exit(_FAILED, _user_error(error, f"importing {where} failed")) from None
    except (Exception, SystemExit) as error:
        if isinstance(error, _Exit):
            raise
        raise _Exit(_FAILED, _user_error(error, f"importing {where} failed")) from None


def _example_arguments(target: str | None) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional and keyword arguments from ``--args``: a value, or a function that gives it. A tuple holds the
    positional ones; ``{"args": (…), "kwargs": {…}}`` both; anything else is the only argument."""
    if target is None:
        return (), {}
    value = _load(target, "--args")
    if inspect.isroutine(value) or isinstance(value, functools.partial) or hasattr(value, "__wrapped__"):
        try:
            value = value()
        except Exception as error:
            raise _Exit(_FAILED, _user_error(error, f"calling {target} failed")) from None
    if isinstance(value, dict) and value and set(value) <= {"args", "kwargs"}:
        return tuple(value.get("args", ())), dict(value.get("kwargs", {}))
    return (value if type(value) is tuple else (value,)), {}


# ---- which operations a rule writes ---------------------------------------------------------------------------------

_NAMING = ("emit", "emit_several", "op")
"""Methods that write the operation which their first argument names."""

_FITTING = ("constant", "scalar", "full", "convert", "broadcast", "along", "operand", "pair", "in_float32")
"""Methods that bring an operand into the shape and dtype that an operation takes."""


@functools.cache
def _definitions() -> dict[tuple[str, int], list[ast.AST]]:
    """The functions of this file by name and first line, as code objects have them; lambdas of one line together."""
    found: dict[tuple[str, int], list[ast.AST]] = {}
    with open(os.path.abspath(__file__), encoding="utf-8") as file:
        tree = ast.parse(file.read())
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            line = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            found.setdefault((node.name, line), []).append(node)
        elif isinstance(node, ast.Lambda):
            found.setdefault(("<lambda>", node.lineno), []).append(node)
    return found


@functools.cache
def _assigned(function: ast.AST) -> dict[str, list[tuple[ast.expr, tuple[Any, ...]]]]:
    """What is assigned to each name in a function: an expression, and which part of its value that is."""
    found: dict[str, list[tuple[ast.expr, tuple[Any, ...]]]] = {}

    def assign(target: ast.expr, value: ast.expr, path: tuple[Any, ...]) -> None:
        if isinstance(target, ast.Name):
            found.setdefault(target.id, []).append((value, path))
        elif isinstance(target, ast.Tuple):
            for k, part in enumerate(target.elts):
                assign(part, value, (*path, k))

    for inner in ast.walk(function):
        if isinstance(inner, ast.Assign):
            for target in inner.targets:
                assign(target, inner.value, ())
        elif isinstance(inner, (ast.AnnAssign, ast.NamedExpr)) and inner.value is not None:
            assign(inner.target, inner.value, ())
        elif isinstance(inner, (ast.For, ast.comprehension)):
            assign(inner.target, inner.iter, ("each",))
    return found


@functools.cache
def _calls(function: ast.AST) -> tuple[list[ast.Call], list[str]]:
    """The calls in a function, and the other names that it reads."""
    inside = list(ast.walk(function))
    calls = [node for node in inside if isinstance(node, ast.Call)]
    followed = {id(call.func) for call in calls}
    names = [node for node in inside if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    return calls, list(dict.fromkeys(node.id for node in names if id(node) not in followed))


class _Scope:
    """What the names in a function can stand for: arguments, what is assigned in it, and the variables around it."""

    def __init__(self, node: ast.AST, given: Mapping[str, list[Any]], outer: Mapping[str, Any], operator: str | None):
        self.given, self.outer, self._operator = given, outer, operator
        self._assigned = _assigned(node)
        self._open: set[str] = set()

    def _part(self, value: ast.expr, path: tuple[Any, ...]) -> list[Any]:
        if not path:
            return self.possible(value)
        if isinstance(value, ast.IfExp):
            return self._part(value.body, path) + self._part(value.orelse, path)
        if isinstance(value, (ast.Tuple, ast.List)):
            parts = value.elts if path[0] == "each" else value.elts[path[0] : path[0] + 1]
            return [found for part in parts for found in self._part(part, path[1:])]
        found = self.possible(value)
        for step in path:
            held = [item for item in found if isinstance(item, (tuple, list, dict))]
            found = [part for item in held for part in (item if step == "each" else list(item)[step : step + 1])]
        return found

    def possible(self, value: ast.expr) -> list[Any]:
        """The values that an expression can have, as far as the text says; none where it does not."""
        if isinstance(value, ast.Constant):
            return [value.value]
        if isinstance(value, ast.Name):
            return self._named(value.id)
        if isinstance(value, ast.IfExp):
            return self.possible(value.body) + self.possible(value.orelse)
        if isinstance(value, ast.Attribute) and value.attr == "operator" and self._operator:
            return [self._operator]
        if isinstance(value, ast.JoinedStr):
            texts = [""]
            for part in value.values:
                held = self.possible(part.value if isinstance(part, ast.FormattedValue) else part)
                texts = [f"{text}{item}" for text in texts for item in held]
            return texts
        if isinstance(value, ast.Subscript):
            return self._chosen(value.value, self.possible(value.slice), [])
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            arguments = [self.possible(argument) for argument in value.args]
            if value.func.attr == "get":
                return self._chosen(value.func.value, arguments[0], arguments[1] if len(arguments) > 1 else [])
            if value.func.attr in ("removeprefix", "removesuffix") and arguments[0]:
                texts = [text for text in self.possible(value.func.value) if isinstance(text, str)]
                return [getattr(text, value.func.attr)(arguments[0][0]) for text in texts]
            if value.func.attr == "items":
                return [tuple(held.items()) for held in self.possible(value.func.value) if isinstance(held, dict)]
        return []

    def _named(self, name: str) -> list[Any]:
        if name in self.given:
            return self.given[name]
        if name in self._assigned and name not in self._open:
            self._open.add(name)
            found = [item for value, path in self._assigned[name] for item in self._part(value, path)]
            self._open.discard(name)
            return found
        return [self.outer[name]] if name in self.outer else []

    def _chosen(self, table: ast.expr, keys: list[Any], otherwise: list[Any]) -> list[Any]:
        if isinstance(table, ast.Dict):
            entries = [
                (self.possible(key)[:1] if key else [], value)
                for key, value in zip(table.keys, table.values, strict=True)
            ]
            known = {key[0]: self.possible(value) for key, value in entries if key}
        elif isinstance(table, (ast.Tuple, ast.List)):
            known = {k: self.possible(value) for k, value in enumerate(table.elts)}
        else:
            held = [item for item in self.possible(table) if isinstance(item, (dict, tuple, list))]
            known = {
                key: [value]
                for item in held
                for key, value in (item.items() if isinstance(item, dict) else enumerate(item))
            }
        if not keys:
            return [item for values in known.values() for item in values] + otherwise
        return [item for key in keys for item in known.get(key, otherwise)]


def _writers() -> list[type]:
    """The classes of this file with methods that write operations."""
    classes = [item for item in globals().values() if inspect.isclass(item) and item.__module__ == __name__]
    return [item for item in classes if any(name in vars(item) for name in _NAMING)]


class _Reading:
    """Reads from this file's own text which operations a rule can write, in it and in the functions that it calls.

    ``written`` are the operations of the rule, ``around`` those that only fit its operands; ``unread`` the lines with
    an operation whose name the text does not say. ``called`` are the names of all functions that were followed.
    ``operator`` is what the rule finds in ``a.operator``.
    """

    def __init__(self, rule: Any, operator: str | None = None) -> None:
        self.unread: set[int] = set()
        self.called: set[str] = set()
        self._found: dict[bool, dict[str, None]] = {False: {}, True: {}}
        self._operator = operator
        self._seen: set[Any] = set()
        self._read: set[int] = set()
        self._follow(rule, {}, False)
        self.unread -= self._read
        for found in self._found.values():
            found.pop("input", None)
        self.written = list(self._found[False] or self._found[True])
        self.around = [name for name in self._found[True] if name not in self.written]

    def found(self, first: str) -> dict[str, list[str]]:
        """``operations`` and ``around``, the operation named ``first`` ahead of the others."""
        return {"operations": sorted(self.written, key=lambda name: name != first), "around": self.around}

    def _follow(self, function: Any, given: dict[str, list[Any]], fitting: bool) -> None:
        code = function.__code__
        cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
        closure = {name: cell.cell_contents for name, cell in cells}
        for name, parameter in inspect.signature(function).parameters.items():
            if isinstance(parameter.default, str):
                given.setdefault(name, [parameter.default])
        known = {**{name: [value] for name, value in closure.items()}, **given}
        texts = [(name, str(value)) for name, held in sorted(known.items()) for value in held if _is_plain_text(value)]
        key = code, fitting, tuple(texts)
        if key in self._seen:
            return
        self._seen.add(key)
        for node in _definitions().get((code.co_name, code.co_firstlineno), ()):
            scope = _Scope(node, given, {**function.__globals__, **closure}, self._operator)
            calls, names = _calls(node)
            for call in calls:
                self._call(call, scope, fitting)
            for function in filter(_is_own, map(scope.outer.get, names)):
                self._follow(function, {}, fitting)

    def _call(self, call: ast.Call, scope: _Scope, fitting: bool) -> None:
        method = isinstance(call.func, ast.Attribute)
        name: str = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        self.called.add(name)
        if method and name in _NAMING and call.args:
            names = [text for text in scope.possible(call.args[0]) if isinstance(text, str)]
            self._found[fitting].update(dict.fromkeys(names))
            (self._read if names else self.unread).add(call.lineno)
            return
        functions = scope.possible(call.func)
        if method:
            receiver = getattr(getattr(call.func, "value", None), "id", "")
            functions = [vars(writer).get(name) for writer in _writers()] if receiver in ("b", "w", "self") else []
        for function in filter(_is_own, functions):
            parameters = list(inspect.signature(function).parameters)[int(method) :]
            pairs = [*zip(parameters, call.args, strict=False), *((word.arg, word.value) for word in call.keywords)]
            given = {str(parameter): scope.possible(value) for parameter, value in pairs if parameter}
            texts = {key: held for key, held in given.items() if held and all(isinstance(item, str) for item in held)}
            self._follow(function, texts, fitting or (method and name in _FITTING))


def _is_plain_text(value: Any) -> bool:
    return isinstance(value, (str, bool))


def _is_own(function: Any) -> bool:
    return inspect.isfunction(function) and function.__module__ == __name__


# ---- what becomes of every primitive ---------------------------------------------------------------------------------

_COLLECTIVES = """all_gather all_gather_done all_gather_invariant all_gather_reduced all_gather_reduced_start
    all_gather_start all_to_all all_to_all_done all_to_all_start axis_index pbroadcast pbroadcast_done pbroadcast_start
    pmax pmin ppermute ppermute_done ppermute_start precv preduced psend psum psum_done psum_invariant
    psum_invariant_start psum_start pvary ragged_all_to_all reduce_scatter reduce_scatter_done reduce_scatter_start
    reduced_vary_cast_p shard_map unreduced_psum unreduced_psum_start unreduced_reduce_scatter
    unreduced_reduce_scatter_start vary_unreduced_cast_p custom_partitioning inspect_sharding"""
_REFERENCES = """accum_grad_in_ref addupdate box_get box_set broadcast_to create_linear empty_ref free_ref freeze get
    log_extend log_read new_box new_log new_ref pin run_state stage swap unpin"""
_FOREIGN = """call_exported cudnn_fusion dot_product_attention_bwd dot_product_attention_bwd_wrapper
    dot_product_attention_fp8_bwd dot_product_attention_fp8_bwd_wrapper dot_product_attention_fp8_fwd
    dot_product_attention_fp8_fwd_wrapper dot_product_attention_fwd dot_product_attention_fwd_wrapper ffi_call
    scaled_matmul scaled_matmul_wrapper tpu_custom_call"""

REFUSED: dict[str, str] = {
    **dict.fromkeys(["debug_callback", "debug_print", "io_callback", "pure_callback"], "it calls a Python function"),
    **dict.fromkeys(_COLLECTIVES.split(), "it is about several devices"),
    **dict.fromkeys(_REFERENCES.split(), "it is about mutable references"),
    **dict.fromkeys(_FOREIGN.split(), "it calls code that is not in terms of JAX's primitives"),
    **dict.fromkeys(["call_hi_primitive", "call_hi_primitive_linearized"], "it works on types from outside of JAX"),
    **dict.fromkeys(["after_all", "create_token", "dce_sink"], "it only orders effects"),
    **dict.fromkeys(
        ["custom_jvp_call_jaxpr", "custom_lin", "eval_jaxpr", "unreachable", "zeros_like"],
        "it occurs only inside JAX's transformations",
    ),
    **dict.fromkeys(["dim_as_value", "dimension_size", "shape_assertion"], "it is about a size that is not fixed"),
    "rng_uniform": "its numbers are the platform's own",
    "check": "it raises a Python error",
}
"""Primitives that no artifact can hold, with the reason, and some whose rule is for a part of their uses only; others
without a rule or a definition have no operation."""

_NO_OPERATION = "there is no operation for this primitive"

_UNLISTED = ("jax.experimental", "jax.tools", "jax.extend", "jax._src", "jax._internal")
"""Packages that are not searched for primitives that nothing public loads."""


def _primitives() -> dict[str, Any]:
    """The primitives of JAX's public modules, by name; not those of jax.experimental and of its kernel languages."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in pkgutil.walk_packages(jax.__path__, "jax."):
            if not module.name.startswith(_UNLISTED):
                with contextlib.suppress(ImportError):
                    importlib.import_module(module.name)
    found: dict[str, Any] = {}
    for name, loaded in list(sys.modules.items()):
        if name.partition(".")[0] == "jax" and not name.startswith(("jax.experimental", "jax._src.pallas")):
            for value in list(vars(loaded).values()):
                if isinstance(value, jax_core.Primitive):
                    found.setdefault(value.name, value)
    return found


def operations() -> list[dict[str, Any]]:
    """What becomes of every primitive of the installed JAX, in the order of their names.

    Each has ``name`` and ``status``: "written" as ``operations``, with ``around`` where operands have to be brought
    into a shape or dtype, and where ``expands`` is true in some cases as the equations of its definition; "definition"
    for one that is always read as those; "inlined" for one that only wraps a function; "operand" for one that returns
    what it takes; and "refused" with a ``reason``, which stands with "written" too where only some uses are.
    """
    return [{"name": name, **_becomes(name, primitive)} for name, primitive in sorted(_primitives().items())]


def _becomes(name: str, primitive: Any) -> dict[str, Any]:
    if name in RULES:
        reading = _Reading(RULES[name])
        expands = "Expansion" in reading.called or bool(reading.unread)
        if reading.written:
            also = {"reason": REFUSED[name]} if name in REFUSED else {}
            return {"status": "written", **reading.found(name), "expands": expands, **also}
        return {"status": "definition" if expands else "operand"}
    if name in _REGIONS:
        return {"status": "written", "operations": [_REGIONS[name]], "around": [], "expands": False}
    if name in WRAPPERS:
        return {"status": "inlined"}
    if name in ALIASES:
        return {"status": "operand"}
    if name == "platform_index":
        return {"status": "written", "operations": ["constant"], "around": [], "expands": False}
    if name in REFUSED:
        return {"status": "refused", "reason": REFUSED[name]}
    function = _lowered_function(primitive)
    if function is not None and getattr(function, "__func__", None) is not jax_core.Primitive.impl:
        return {"status": "definition"}
    return {"status": "refused", "reason": _NO_OPERATION}


def _listed(entry: Mapping[str, Any]) -> str:
    if entry["status"] == "written":
        text = ", ".join(entry["operations"])
        text += ", or its definition" if entry["expands"] else ""
        return f"{entry['name']}: {text}" + (f"; elsewhere refused: {entry['reason']}" if "reason" in entry else "")
    reasons = {"definition": "its definition", "inlined": "the function that it wraps", "operand": "its operand"}
    return f"{entry['name']}: " + (reasons.get(entry["status"]) or f"refused: {entry['reason']}")


def _list_operations(as_json: bool) -> str:
    entries = operations()
    if as_json:
        return json.dumps({"frontend": "jax", "frontend_version": jax.__version__, "operations": entries}, indent=1)
    return "\n".join(map(_listed, entries))


# ---- the command line ------------------------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="jax_capture.py",
        description="Capture a JAX function as a tlir artifact.",
        epilog="Exit codes: 0 written, 1 the program itself failed, 2 wrong usage, 4 unsupported primitives.",
    )
    parser.add_argument(
        "function", metavar="FILE:FUNCTION", nargs="?", help="such as my_model.py:predict, or package.module:f"
    )
    parser.add_argument(
        "--args",
        metavar="FILE:NAME",
        help="example arguments, a value or a function that gives it: a tuple of the positional ones, or "
        '{"args": (...), "kwargs": {...}}; anything else is the only argument',
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="the artifact to write")
    parser.add_argument("--name", help="the artifact's name (default: the function's)")
    parser.add_argument("--trace", action="store_true", help="record the value of every equation")
    parser.add_argument(
        "--size",
        metavar="NAME=N",
        action="append",
        default=[],
        help="the size of a symbolic dimension of the arguments",
    )
    parser.add_argument("--jit", action="store_true", help="record the outputs of the compiled function")
    parser.add_argument("--x64", action="store_true", help="turn on JAX's 64-bit mode first")
    parser.add_argument("--list-operations", action="store_true", help="print what becomes of every primitive of JAX")
    parser.add_argument("--json", action="store_true", help="print that list as JSON")
    return parser


def _run(options: argparse.Namespace) -> str:
    if options.x64:
        jax.config.update("jax_enable_x64", True)
    fn = _load(options.function, "the function")
    if not callable(fn):
        raise _Exit(_USAGE, f"{options.function} is a {type(fn).__name__}, not a function")
    args, kwargs = _example_arguments(options.args)
    sizes = dict(map(_size_option, options.size))
    try:
        asked = options.name, options.trace, options.jit, sizes
        with _rare_collections(), _captured(fn, args, kwargs, *asked) as (artifact, evaluate):
            try:
                _write(artifact, options.output, evaluate)
            except OSError as error:
                raise _Exit(_USAGE, f"cannot write {options.output}: {error.strerror}") from None
    except _Exit:
        raise
    except UnsupportedError as error:
        raise _Exit(_UNSUPPORTED, str(error)) from None
    except CaptureError as error:
        raise _Exit(_FAILED, str(error)) from None
    except Exception as error:
        raise _Exit(_FAILED, _user_error(error, f"tracing {options.function} failed")) from None
    counts = (("nodes", "node"), ("input_ids", "input"), ("output_ids", "output"))
    return f"{options.output}: " + ", ".join(_counted(len(artifact[key]), noun) for key, noun in counts)


def _size_option(text: str) -> tuple[str, int]:
    name, equals, size = text.partition("=")
    if not equals or not name or not size.isdecimal():
        raise _Exit(_USAGE, f"--size is {text!r}; write it as NAME=N, such as batch=8")
    return name, int(size)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.list_operations:
        try:
            print(_list_operations(options.json), flush=True)
        except BrokenPipeError:  # whoever reads has read enough; what is flushed at the end has to go somewhere
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    if options.function is None or options.output is None:
        parser.error("the function to capture and -o FILE are needed")
    try:
        print(_run(options))
    except _Exit as end:
        print(f"jax_capture: {end}", file=sys.stderr)
        return end.code
    return 0


def _command_line() -> int:
    """``main``; a signal that ends it leaves no temporary file, and an interruption is one line."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        return main()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 128 + signal.SIGINT


if __name__ == "__main__":
    sys.exit(_command_line())
