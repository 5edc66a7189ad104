"""``--input NAME=VALUE``: arrays from ``.npy`` and ``.json`` files and from JSON text, read exactly.

JSON numbers are read as the text they are and rounded once to the input's format, never through a binary64 number. A
string is a number as ``tlir.floatlib.text`` reads it: "0x1.8p3", "1/3", "nan", "bits:0x7fc00001"; of a complex input
"1.5-0.25j". A JSON object is a tensor as artifacts write it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tlir.api import Graph
from tlir.arguments import complex_parts, require_unique, tensor_of, unknown_input
from tlir.cli.paths import existing
from tlir.errors import UsageError
from tlir.floatlib.rounding import Flags
from tlir.floatlib.text import TextError, parse
from tlir.floatlib.words import from_ints
from tlir.ir.tensor import Tensor, words_shape
from tlir.ir.types import DType, TensorType
from tlir.iteration import stacked

MAX_FILE = 1 << 30
"""Bytes of the largest ``.json`` file that is read as an input."""

_INTEGER = re.compile(r"[+-]?[0-9]{1,30}|[+-]?0[xX][0-9a-fA-F]{1,20}")


class _Number(str):
    """A number in JSON, as it is written."""

    __slots__ = ()


def gather(
    graph: Graph, given: Sequence[str], sample: int, each: Mapping[int, Tensor] | None = None
) -> list[Tensor] | None:
    """The inputs of a run: those given on the command line, the others from the sample; of ``each`` the first rows.
    None stands for the sample of a graph without inputs or samples, which the run then reports. UsageError TL0601,
    TL0602 and TL0902."""
    names, types = graph.input_names, graph.ir.body.input_types
    if not given and not each:
        recorded = graph.sample_inputs(sample)
        return None if recorded is None else list(recorded)
    values: dict[str, Tensor] = {names[position]: tensor.row(0) for position, tensor in (each or {}).items()}
    both = set(values)
    for text in given:
        name, value = _split(text, names)
        if name in both:
            raise UsageError("TL0901", f"the input {name!r} is given by --input and for each step by --each")
        if name in values:
            raise UsageError("TL0901", f"--input gives {name!r} twice")
        require_unique(name, names)
        values[name] = read_input(value, types[names.index(name)], name)
    missing = [name for name in names if name not in values]
    recorded = graph.sample_inputs(sample) if missing else None
    if missing and recorded is None:
        raise UsageError(
            "TL0602",
            f"no value for input {missing[0]!r}, and the artifact has no sample to take it from",
            file=graph.path,
            hint=f"give --input {missing[0]}=…, {types[names.index(missing[0])]}",
        )
    return [values[name] if name in values else (recorded or ())[k] for k, name in enumerate(names)]


def gather_each(graph: Graph, given: Sequence[str], steps: int) -> dict[int, Tensor]:
    """The positions of the inputs that ``--each NAME=VALUE`` gives, with their tensors: a leading axis of ``steps``.
    UsageError TL0601, TL0901 and TL0902."""
    names, types = graph.input_names, graph.ir.body.input_types
    values: dict[int, Tensor] = {}
    for text in given:
        name, value = _split(text, names, "--each")
        require_unique(name, names)
        position = names.index(name)
        if position in values:
            raise UsageError("TL0901", f"--each gives {name!r} twice")
        values[position] = read_input(value, stacked(types[position], steps), name)
    return values


def _split(text: str, names: Sequence[str], option: str = "--input") -> tuple[str, str]:
    """Name and value; a name may hold a "=" itself."""
    known = [name for name in names if text.startswith(f"{name}=")]
    if known:
        name = max(known, key=len)
        return name, text[len(name) + 1 :]
    name, equals, _ = text.partition("=")
    if not equals:
        raise UsageError("TL0901", f"{option} {text}: expected NAME=VALUE")
    raise unknown_input(name, names)


def read_input(text: str, type: TensorType, name: str) -> Tensor:
    """The tensor that a value of --input says."""
    if text.endswith(".npy"):
        return _read_npy(existing(text), type, name)
    if text.endswith(".json"):
        path = existing(text)
        if os.path.getsize(path) > MAX_FILE:
            raise UsageError("TL0601", f"input {name!r}: more than {MAX_FILE} bytes of JSON", file=path)
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError("TL0601", f"input {name!r} cannot be read: {error}", file=path) from None
    return parse_value(text, type, name)


def _read_npy(path: str, type: TensorType, name: str) -> Tensor:
    try:
        array = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise UsageError("TL0601", f"input {name!r} is not a .npy file: {error}", file=path) from None
    if not isinstance(array, np.ndarray):
        raise UsageError("TL0601", f"input {name!r} is not a .npy file of one array", file=path)
    return tensor_of(array, type, name)


def parse_value(text: str, type: TensorType, name: str) -> Tensor:
    """The tensor that JSON text says; a scalar may also stand without quotes: ``nan``, ``1/3``."""
    try:
        value = json.loads(text, parse_float=_Number, parse_int=_Number, parse_constant=_Number)
    except (json.JSONDecodeError, RecursionError) as error:
        if any(c in text for c in '[]{}"') or not text.strip():
            reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
            raise UsageError("TL0601", f"input {name!r} is neither a number nor JSON: {reason}") from None
        if type.shape:
            shown = text.strip() if len(text) <= 60 else text[:60] + "…"
            reason = f"{shown!r} is neither JSON nor the name of a .npy or .json file"
            raise UsageError("TL0601", f"input {name!r} is {type}: {reason}") from None
        value = text.strip()
    if isinstance(value, dict):
        return _tensor_object(value, type, name)
    flat: list[Any] = []
    _flatten(value, type.shape, (), flat, type, name)
    words = [word for k, item in enumerate(flat) for word in _words(item, type, name, k)]
    if type.dtype.format:
        array = from_ints(type.dtype.format, words)
    else:
        array = np.array(words, dtype=type.dtype.word_dtype)
    return Tensor(type, array.reshape(words_shape(type)))


def _flatten(
    value: Any, shape: tuple[int, ...], index: tuple[int, ...], flat: list[Any], type: TensorType, name: str
) -> None:
    where = f" at {list(index)}" if index else ""
    if not shape:
        if isinstance(value, list):
            raise UsageError("TL0601", f"input {name!r} is {type}: a list{where} where an element was expected")
        flat.append(value)
        return
    if not isinstance(value, list) or len(value) != shape[0]:
        found = f"a list of {len(value)}" if isinstance(value, list) else "no list"
        raise UsageError("TL0601", f"input {name!r} is {type}: expected a list of {shape[0]}{where}, found {found}")
    for k, child in enumerate(value):
        _flatten(child, shape[1:], (*index, k), flat, type, name)


def _words(item: Any, type: TensorType, name: str, position: int) -> list[int]:
    dtype = type.dtype
    try:
        if dtype.is_bool:
            return [_boolean(item)]
        if not isinstance(item, str):
            raise _Refused("is not a number")
        if dtype.is_integer:
            return [_integer(item, dtype)]
        parts = complex_parts(item) if dtype.is_complex else [item]
        return [_float(part, dtype) for part in parts]
    except (_Refused, TextError) as error:
        index = [int(i) for i in np.unravel_index(position, type.shape)] if type.shape else ""
        shown = json.dumps(item) if not isinstance(item, str) else item
        shown = shown if len(shown) <= 60 else shown[:60] + "…"
        reason = f"{shown} {error}" if isinstance(error, _Refused) else str(error)
        raise UsageError("TL0601", f"input {name!r}{index}: {reason}") from None


class _Refused(Exception):
    """Why a text is not a value of the dtype, as the end of a sentence that begins with the text."""


def _boolean(item: Any) -> int:
    values = {"true": 1, "false": 0, "1": 1, "0": 0}
    if isinstance(item, bool):
        return int(item)
    if isinstance(item, str) and item in values:
        return values[item]
    raise _Refused("is not a Boolean: true or false")


def _integer(text: str, dtype: DType) -> int:
    low, high = (-(1 << dtype.bits - 1), 1 << dtype.bits - 1) if dtype.is_signed else (0, 1 << dtype.bits)
    if not _INTEGER.fullmatch(text):
        raise _Refused(f"is not an integer, the input is {dtype}")
    value = int(text, 16 if "x" in text.lower() else 10)
    if not low <= value < high:
        raise _Refused(f"is not an integer of {dtype}, {low} to {high - 1}")
    return value & ((1 << dtype.bits) - 1)


def _float(text: str, dtype: DType) -> int:
    fmt = dtype.float_format
    word, flags = parse(fmt, text)
    if flags & Flags.INVALID:
        raise _Refused(f"has no word in {fmt.name}")
    if flags & Flags.OVERFLOW:
        raise _Refused(f"is beyond the largest number of {fmt.name}; write inf where that is meant")
    return word


def _tensor_object(value: dict[str, Any], type: TensorType, name: str) -> Tensor:
    """A tensor as artifacts write it, with ``words`` or ``base64``."""
    from tlir.schema.fault import Fault
    from tlir.schema.words import from_base64, from_hex

    if not isinstance(value.get("dtype"), str) or not isinstance(value.get("shape"), list):
        found = "an artifact" if value.get("format") == "tlir" else "an object without dtype and shape"
        hint = "an object is a tensor as artifacts write it: dtype, shape, and words or base64"
        raise UsageError("TL0601", f"input {name!r} is {type}: {found} was given", hint=hint)
    shape = [str(size) for size in value["shape"]]
    if value["dtype"] != type.dtype.name or shape != [str(size) for size in type.shape]:
        found = f"{value['dtype']}[{','.join(shape)}]"
        raise UsageError("TL0601", f"input {name!r} is {type}, and a tensor {found[:80]} was given")
    decoders = {"words": from_hex, "base64": from_base64}
    keys = [key for key in decoders if isinstance(value.get(key), str)]
    if len(keys) != 1:
        raise UsageError("TL0601", f"input {name!r}: a tensor has either words or base64")
    try:
        return Tensor(type, decoders[keys[0]](value[keys[0]], type))
    except Fault as error:
        raise UsageError("TL0601", f"input {name!r}: {error.message}") from None
