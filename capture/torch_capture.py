#!/usr/bin/env python3
"""Capture a PyTorch function as a tlir artifact.

This file stands alone: it needs torch, NumPy and the standard library, so it can be copied into any PyTorch
environment. From Python::

    import torch_capture
    artifact = torch_capture.export(model, x)          # a function or an nn.Module, and example arguments
    torch_capture.save(artifact, "model.json")

or from a shell::

    python torch_capture.py my_model.py:predict --args my_model.py:example_args -o predict.json

``write("model.json", model, x)`` does both at once, and keeps no second copy of large weights.

The function is traced with ``torch.export`` and decomposed to core ATen operators (where that cannot trace it, as with
gradients and training steps, a run is recorded with ``make_fx``); each of these is written as the
operations of the artifact format that return the same words, wherever torch's own result is defined by rounding. The
rules below state, for every composite operator, the formula that torch's CPU kernel evaluates. What cannot be written
raises ``UnsupportedError``, which lists every operator concerned with its arguments and the user's source line.
"""

from __future__ import annotations

import argparse
import ast
import base64
import contextlib
import copy
import errno
import functools
import gc
import hashlib
import importlib.util
import inspect
import io
import itertools
import json
import logging
import math
import os
import signal
import struct
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch.fx.experimental.proxy_tensor import get_proxy_mode, get_proxy_slot, has_proxy_slot, make_fx
from torch.utils import _pytree as pytree

# Sections, in their order; the headings are lines that start with "# ----":
#
#   errors
#   tensors as words
#   the graph that is being written
#   the rules: one per ATen operator
#   rules: elementwise arithmetic
#   rules: comparison, logic, bits
#   rules: complex numbers
#   rules: shapes
#   rules: values that are made
#   rules: reductions
#   rules: contractions
#   rules: normalisation and activation, with the formulas of torch's CPU kernels
#   rules: reading and writing at computed places
#   rules: convolutions and pooling
#   rules: running totals and sorting
#   rules: interpolation
#   rules: factorizations, solvers and Fourier transforms
#   rules: special functions
#   rules: histograms and distances
#   rules: counted places, segments, bags and normalisation with state
#   rules: the loss of connectionist temporal classification
#   rules: sampling at computed positions
#   rules: the copying forms of views, and what computes nothing
#   tracing
#   the user's source
#   from the FX graph to nodes
#   dimensions without a fixed size
#   export
#   files
#   what a command line names
#   which operations a rule writes
#   what becomes of every operator
#   command line

CAPTURE_VERSION = "1"
EXTERNAL_BYTES = 1 << 20
"""Constants of more bytes than this are saved to a ``.safetensors`` file beside the artifact."""
WORDS_AS_TEXT = 32
"""Tensors of up to this many words are written as hexadecimal text, larger ones as base64."""
HELD_BYTES = 1 << 12
"""Tensors of more bytes than this are kept as words until they are written."""
TRACE_BYTES = 1 << 16
"""Where the values of a trace have more bytes than this together, those of more than HELD_BYTES are saved to the
``.safetensors`` file."""

# ---- errors ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Problem:
    """One operator that the artifact format cannot express: its name, its main arguments, and the user's line."""

    operator: str
    arguments: str = ""
    source: dict[str, Any] | None = None
    reason: str = ""

    def __str__(self) -> str:
        text = f"{self.operator}({self.arguments})" if self.arguments else self.operator
        if self.source:
            text += f"  at {self.source['file']}:{self.source['line']} in {self.source['function']}"
        return text + (f": {self.reason}" if self.reason else "")


class CaptureError(Exception):
    """The function cannot be captured as it is called here: it raised, or an argument is not one that tensors make."""


class UnsupportedError(CaptureError):
    """Something in the function has no operation in the artifact format; ``problems`` lists all of it."""

    def __init__(self, problems: Sequence[Problem], kind: str = "operator") -> None:
        self.problems = list(problems)
        count = len(self.problems)
        head = f"{count} {kind}{'s are' if count != 1 else ' is'} not supported:"
        super().__init__("\n".join([head, *(f"  {problem}" for problem in self.problems)]))


class _Refused(Exception):
    """Raised by a rule that cannot write this use of its operator; the message says why."""


# ---- tensors as words -----------------------------------------------------------------------------------------------

DTYPES: dict[torch.dtype, str] = {
    getattr(torch, name): name
    for name in [
        "bool",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "int8",
        "int16",
        "int32",
        "int64",
        "float16",
        "bfloat16",
        "float32",
        "float64",
        "complex64",
        "complex128",
        "float8_e4m3fn",
        "float8_e4m3fnuz",
        "float8_e5m2",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
    ]
    if hasattr(torch, name)
} | {torch.complex32: "complex<float16>"}
TORCH_DTYPES = {name: dtype for dtype, name in DTYPES.items()}
REDUCED = ("float16", "bfloat16")
"""Formats in which torch's CPU kernels compute in float32 and round at the end."""

_PARTS = {"complex<float16>": "float16", "complex64": "float32", "complex128": "float64"}
_COMPLEX_OF = {part: name for name, part in _PARTS.items()}


def kind_of(dtype: str) -> str:
    """ "bool", "int", "uint", "float" or "complex"."""
    if dtype.startswith(("complex", "bool")):
        return dtype[:7] if dtype.startswith("complex") else "bool"
    return "uint" if dtype.startswith("uint") else "int" if dtype.startswith("int") else "float"


def bits_of(dtype: str) -> int:
    """Bits of one word (of one component, for a complex type)."""
    return 1 if dtype == "bool" else TORCH_DTYPES[_PARTS.get(dtype, dtype)].itemsize * 8


def _memory(tensor: torch.Tensor) -> memoryview:
    """The words of a tensor, row-major, little-endian, each rounded up to whole bytes: its own memory where they lie
    there like this."""
    plain = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous().reshape(-1)
    if plain.numel() == 1:  # "contiguous" whatever its stride, which a view of other bits does not take
        plain = plain.as_strided([1], [1])
    return memoryview(plain.view(torch.uint8).numpy() if plain.numel() else b"")


def _words(tensor: torch.Tensor) -> bytes:
    return _memory(tensor).tobytes()


class _Large(dict[str, Any]):
    """A tensor as an artifact has it, whose base64 text is made anew each time that it is read; ``array`` are its
    words, flat, which nothing changes."""

    def __init__(self, described: dict[str, Any], array: Any) -> None:
        super().__init__(described, base64="")
        self.array = array

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


def tensor_json(tensor: torch.Tensor) -> dict[str, Any]:
    """A tensor in the artifact format, every word exact."""
    dtype = DTYPES[tensor.dtype]
    data, size = _words(tensor), max(1, bits_of(dtype) // 8)
    result: dict[str, Any] = {"dtype": dtype, "shape": list(tensor.shape)}
    if len(data) <= WORDS_AS_TEXT * size:
        digits = 1 if dtype == "bool" else 2 * size
        words = (int.from_bytes(data[k : k + size], "little") for k in range(0, len(data), size))
        return result | {"words": " ".join(f"{word:0{digits}x}" for word in words)}
    if len(data) > HELD_BYTES:
        return _Large(result, np.frombuffer(data, f"<u{size}"))
    return result | {"base64": base64.b64encode(data).decode("ascii")}


def _held(tensor: torch.Tensor) -> dict[str, Any]:
    """Stands for a large tensor until it is known whether its words go into the artifact or into a file beside it."""
    return {"dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape), "held": tensor}


def _described(tensor: torch.Tensor) -> dict[str, Any]:
    return _held(tensor) if tensor.nbytes > EXTERNAL_BYTES else tensor_json(tensor)


def _in_full(nodes: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Nodes with the words of all constants, those of regions too."""
    found = []
    for node in nodes:
        value = node.get("attrs", {}).get("value")
        if isinstance(value, dict) and "held" in value:
            node = {**node, "attrs": {**node["attrs"], "value": tensor_json(value["held"])}}
        if "regions" in node:
            node = {**node, "regions": [{**body, "nodes": _in_full(body["nodes"])} for body in node["regions"]]}
        found.append(node)
    return found


# ---- the graph that is being written --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Value:
    """A result of a node: the node's id, shape and dtype name, and which of several results it is."""

    id: int
    shape: tuple[int, ...]
    dtype: str
    index: int = 0

    @property
    def ref(self) -> int | list[int]:
        """As the artifact names it."""
        return [self.id, self.index] if self.index else self.id

    @property
    def kind(self) -> str:
        return kind_of(self.dtype)

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)


Operand = Value | int | float | bool | complex
"""What an ATen operator takes where it wants a number: a tensor, or a Python scalar."""


class Writer:
    """Nodes of an artifact, and the small vocabulary in which the rules below are written.

    ``out`` is what torch says of the operator that is being written: shape and dtype of each of its results.
    """

    def __init__(self) -> None:
        self.nodes: list[dict[str, Any]] = []
        self.source: dict[str, Any] | None = None
        self.out: list[tuple[tuple[int, ...], str]] = []
        self.complex_views: dict[Value, Value] = {}
        """Results of view_as_real, with the complex value that each shows."""
        self.unset: dict[Value, torch.Tensor] = {}
        """Values of which some elements are whatever was in memory, with a mask of these."""
        self.permutations: dict[Value, Value] = {}
        """Row exchanges of LU factorizations, with the permutation that each makes."""
        self._constants: dict[Any, Value] = {}

    # nodes

    def emit(self, op: str, inputs: Sequence[Value], shape: Sequence[int], dtype: str, **attrs: Any) -> Value:
        """Append a node."""
        node: dict[str, Any] = {
            "id": len(self.nodes),
            "op": op,
            "inputs": [value.ref for value in inputs],
            "shape": [int(size) for size in shape],
            "dtype": dtype,
        }
        if attrs:
            node["attrs"] = attrs
        if self.source:
            node["source"] = self.source
        self.nodes.append(node)
        return Value(node["id"], tuple(node["shape"]), dtype)

    def emit_several(
        self,
        op: str,
        inputs: Sequence[Value],
        types: Sequence[tuple[Sequence[int], str]],
        regions: Sequence[dict[str, Any]] = (),
        **attrs: Any,
    ) -> list[Value]:
        """Append a node with any number of results of these shapes and dtypes, and with the bodies of its regions."""
        if len(types) == 1:
            results = [self.emit(op, inputs, types[0][0], types[0][1], **attrs)]
        else:
            first = self.emit(op, inputs, (), "bool", **attrs)
            node = self.nodes[-1]
            del node["shape"], node["dtype"]
            node["results"] = [{"shape": list(shape), "dtype": dtype} for shape, dtype in types]
            results = [Value(first.id, tuple(shape), dtype, k) for k, (shape, dtype) in enumerate(types)]
        if regions:
            self.nodes[-1]["regions"] = list(regions)
        return results

    def input(self, name: str, tensor: torch.Tensor) -> Value:
        value = self.emit("input", (), tensor.shape, DTYPES[tensor.dtype])
        self.nodes[-1]["name"] = name
        return value

    def constant(self, tensor: torch.Tensor, name: str | None = None) -> Value:
        """A constant node; the same words under the same name are written once, with the source of the first use."""
        data = _described(tensor)
        content = data["words"] if "words" in data else hashlib.sha256(_memory(tensor)).digest()
        key = (name, data["dtype"], tuple(tensor.shape), content)
        if key not in self._constants:
            self._constants[key] = self.emit("constant", (), tensor.shape, data["dtype"], value=data)
            if name:
                self.nodes[-1]["name"] = name
        return self._constants[key]

    def scalar(self, number: int | float | bool | complex, dtype: str) -> Value:
        """A rank-0 constant: a Python number as torch converts it, integers modulo 2^bits."""
        if kind_of(dtype) in ("int", "uint") and not isinstance(number, complex) and math.isfinite(number):
            bits = bits_of(dtype)
            wrapped = int(number) % (1 << bits)
            number = wrapped - (1 << bits) if kind_of(dtype) == "int" and wrapped >> (bits - 1) else wrapped
        return self.constant(torch.tensor(number, dtype=TORCH_DTYPES[dtype]))

    def full(self, number: int | float | bool | complex, like: Value, dtype: str | None = None) -> Value:
        """``number`` in the shape of ``like`` and in its dtype, or in ``dtype``."""
        return self.broadcast(self.scalar(number, dtype or like.dtype), like.shape)

    # data and shape

    def convert(self, value: Value, dtype: str) -> Value:
        """``tensor.to(dtype)`` as torch's CPU kernels do it.

        c10/util/TypeCast.h converts with static_cast and builds the 16-bit and 8-bit formats from float32, so what is
        wider than float32 rounds twice on its way. A float beyond an integer type's range is undefined there, and what
        the processor's conversion gives ("indefinite"); unsigned types of 32 and 64 bits take the low bits of int64,
        uint64 from 2^63 upward the conversion of x - 2^63 with the top bit inverted.
        """
        if value.dtype == dtype:
            return value
        source, target = value.kind, kind_of(dtype)
        if target == "float" and bits_of(dtype) < 32:
            wide = bits_of(value.dtype) >= 32 and value.dtype != "float32"
            if source == "complex" or wide:
                value = self.convert(value, "float32")
            if dtype == "float8_e4m3fn":  # c10/util/Float8_e4m3fn.h saturates, infinities too, and keeps NaN
                value = _bounded(self, value, -448.0, 448.0)
        if source == "float" and target in ("int", "uint"):
            if target == "uint" and bits_of(dtype) >= 32:
                return self._to_wide_unsigned(value, dtype)
            return self.emit("convert", [value], value.shape, dtype, out_of_range="indefinite")
        return self.emit("convert", [value], value.shape, dtype)

    def _to_wide_unsigned(self, value: Value, dtype: str) -> Value:
        low = self.emit("convert", [value], value.shape, "int64", out_of_range="indefinite")
        low = self.convert(low, dtype)
        if dtype == "uint32" or value.dtype == "float16":
            return low
        half = self.full(2.0**63, value)
        above = self.op("subtract", value, half)
        high = self.emit("convert", [above], value.shape, "int64", out_of_range="indefinite")
        high = self.convert(high, dtype)
        high = self.op("xor", high, self.full(1 << 63, high))
        return self.select(self.compare("GE", value, half), high, low)

    def broadcast(self, value: Value, shape: Sequence[int]) -> Value:
        """Aligned at the last axis, as torch and NumPy broadcast."""
        shape = tuple(shape)
        if value.shape == shape:
            return value
        axes = list(range(len(shape) - value.rank, len(shape)))
        return self.emit("broadcast_in_dim", [value], shape, value.dtype, broadcast_dimensions=axes)

    def along(self, value: Value, shape: Sequence[int], axes: Sequence[int]) -> Value:
        """``value`` with its axis i at axis ``axes[i]`` of ``shape``."""
        return self.emit("broadcast_in_dim", [value], shape, value.dtype, broadcast_dimensions=list(axes))

    def reshape(self, value: Value, shape: Sequence[int]) -> Value:
        return value if value.shape == tuple(shape) else self.emit("reshape", [value], shape, value.dtype)

    def transpose(self, value: Value, permutation: Sequence[int]) -> Value:
        permutation = list(permutation)
        if permutation == sorted(permutation):
            return value
        shape = [value.shape[axis] for axis in permutation]
        return self.emit("transpose", [value], shape, value.dtype, permutation=permutation)

    def slice(self, value: Value, axis: int, start: int, limit: int, stride: int = 1) -> Value:
        starts, limits, strides = [0] * value.rank, list(value.shape), [1] * value.rank
        starts[axis], limits[axis], strides[axis] = start, limit, stride
        if (starts, limits, strides) == ([0] * value.rank, list(value.shape), [1] * value.rank):
            return value
        shape = list(value.shape)
        shape[axis] = -(-(limit - start) // stride)
        attrs = {"start_indices": starts, "limit_indices": limits, "strides": strides}
        return self.emit("slice", [value], shape, value.dtype, **attrs)

    def concatenate(self, values: Sequence[Value], axis: int) -> Value:
        if len(values) == 1:
            return values[0]
        shape = list(values[0].shape)
        shape[axis] = sum(value.shape[axis] for value in values)
        return self.emit("concatenate", values, shape, values[0].dtype, dimension=axis)

    # arithmetic

    def op(self, name: str, *values: Value, dtype: str | None = None) -> Value:
        """An elementwise operation on equal shapes and dtypes; ``dtype`` is its result's where that differs."""
        return self.emit(name, values, values[0].shape, dtype or values[0].dtype)

    def compare(self, direction: str, lhs: Value, rhs: Value) -> Value:
        return self.emit("compare", [lhs, rhs], lhs.shape, "bool", comparison_direction=direction)

    def select(self, pred: Value, on_true: Value, on_false: Value) -> Value:
        return self.emit("select", [pred, on_true, on_false], on_true.shape, on_true.dtype)

    def reduce(self, value: Value, reducer: str, axes: Sequence[int], keep: bool = False, wide: bool = False) -> Value:
        """A reduction over ``axes``; ``wide`` declares the float32 accumulator of torch's 16-bit sums."""
        attrs: dict[str, Any] = {"dimensions": list(axes), "reducer": reducer}
        if wide and value.dtype in REDUCED:
            attrs["accumulate"] = {"dtype": "float32", "fma": False, "order": "sequential"}
        shape = [size for axis, size in enumerate(value.shape) if axis not in axes]
        result = self.emit("reduce", [value], shape, value.dtype, **attrs)
        return self.reshape(result, kept(value.shape, axes)) if keep else result

    def dot(self, lhs: Value, rhs: Value, batch: int, lhs_axis: int, rhs_axis: int, dtype: str | None = None) -> Value:
        """Products summed over one axis of each side, the first ``batch`` axes side by side."""
        free = [s for a, s in enumerate(lhs.shape) if a >= batch and a != lhs_axis]
        free += [s for a, s in enumerate(rhs.shape) if a >= batch and a != rhs_axis]
        attrs: dict[str, Any] = {
            "lhs_batching_dimensions": list(range(batch)),
            "rhs_batching_dimensions": list(range(batch)),
            "lhs_contracting_dimensions": [lhs_axis],
            "rhs_contracting_dimensions": [rhs_axis],
        }
        result = dtype or lhs.dtype
        if result in REDUCED:
            attrs["accumulate"] = {"dtype": "float32", "fma": False, "order": "sequential"}
        return self.emit("dot_general", [lhs, rhs], [*lhs.shape[:batch], *free], result, **attrs)

    # operands of ATen operators

    def operand(self, x: Operand, dtype: str, shape: Sequence[int]) -> Value:
        """``x`` converted to ``dtype`` and broadcast to ``shape``."""
        value = self.convert(x, dtype) if isinstance(x, Value) else self.scalar(x, dtype)
        return self.broadcast(value, shape)

    def pair(self, a: Operand, b: Operand, dtype: str | None = None) -> tuple[Value, Value]:
        """Both operands in torch's common dtype, or in ``dtype``, and in their common shape."""
        common = dtype or promoted(a, b)
        shape = torch.broadcast_shapes(*(x.shape for x in (a, b) if isinstance(x, Value)))
        return self.operand(a, common, shape), self.operand(b, common, shape)

    def in_float32(self, dtype: str, values: Sequence[Operand], shape: Sequence[int]) -> tuple[list[Value], bool]:
        """The operands in ``dtype``, or in float32 where that is one of the 16-bit formats; and whether it was."""
        wide = dtype in REDUCED
        return [self.operand(x, "float32" if wide else dtype, shape) for x in values], wide


def kept(shape: Sequence[int], axes: Sequence[int]) -> list[int]:
    """``shape`` with size 1 at ``axes``."""
    return [1 if axis in axes else size for axis, size in enumerate(shape)]


def promoted(*operands: Operand) -> str:
    """The dtype in which torch combines the operands: tensors before rank-0 tensors before Python numbers."""

    def stand_in(x: Operand) -> Any:
        return torch.empty(x.shape, dtype=TORCH_DTYPES[x.dtype], device="meta") if isinstance(x, Value) else x

    first, *rest = map(stand_in, operands)
    if not rest:
        return DTYPES[first.dtype]
    return DTYPES[torch.result_type(first, rest[0])]


def normal_axis(axis: int, rank: int) -> int:
    return axis + rank if axis < 0 else axis


def normal_axes(dim: int | Sequence[int] | None, rank: int) -> list[int]:
    """The axes of a reduction in increasing order; None and an empty list mean all of them."""
    if dim is None or (not isinstance(dim, int) and not len(dim)):
        return list(range(rank))
    dims = [dim] if isinstance(dim, int) else dim
    return sorted(normal_axis(d, rank) for d in dims) if rank else []


# ---- the rules: one per ATen operator -------------------------------------------------------------------------------

Rule = Callable[[Writer, Any], "Value | list[Value | None]"]
RULES: dict[str, Rule] = {}
"""The rule of each operator, by ``aten.name.overload``. A rule gets the writer and the arguments by schema name."""


def rule(*operators: str) -> Callable[[Rule], Rule]:
    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys((f"aten.{operator}" for operator in operators), function))
        return function

    return register


# ---- rules: elementwise arithmetic ----------------------------------------------------------------------------------


_UNARY = {
    "exp": "exponential",
    "expm1": "exponential_minus_one",
    "log": "log",
    "log1p": "log_plus_one",
    "sigmoid": "logistic",
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
    "erf": "erf",
    "erfc": "erfc",
    "erfinv": "erf_inv",
    "lgamma": "lgamma",
    "digamma": "digamma",
    "sqrt": "sqrt",
    "rsqrt": "rsqrt",
}
_REAL_ONLY = ("erf", "erfc", "erfinv", "lgamma", "digamma")


@rule("exp2.default", "log2.default", "log10.default")
def _of_base(w: Writer, a: Any) -> Value:
    """Of a complex number by the natural function: exp(z log 2), and log(z) / log of the base."""
    value = w.convert(a.self, w.out[0][1])
    if value.kind != "complex":
        return w.op(a.operator, value)
    if a.operator == "exp2":
        return w.op("exponential", _scaled_parts(w, "multiply", value, math.log(2.0)))
    base = torch.tensor(10.0 if a.operator == "log10" else 2.0, dtype=TORCH_DTYPES[_PARTS[value.dtype]])
    return _scaled_parts(w, "divide", w.op("log", value), float(base.log()))


def _scaled_parts(w: Writer, op: str, value: Value, factor: float) -> Value:
    """Both parts of a complex number times, or divided by, a real number."""
    parts = [w.op(name, value, dtype=_PARTS[value.dtype]) for name in ("real", "imag")]
    return w.op("complex", *(w.op(op, part, w.full(factor, part)) for part in parts), dtype=value.dtype)


def _unary(aten: str, op: str) -> None:
    @rule(f"{aten}.default")
    def write(w: Writer, a: Any) -> Value:
        value = w.convert(a.self, w.out[0][1])
        if value.kind == "complex" and aten in _REAL_ONLY:
            raise _Refused("the function is defined for real numbers only")
        return w.op(op, value)


for _aten, _op in _UNARY.items():
    _unary(_aten, _op)


@rule("floor.default", "ceil.default", "round.default", "trunc.default")
def _rounding(w: Writer, a: Any) -> Value:
    name = {"round": "round_nearest_even"}.get(a.operator, a.operator)
    return w.op(name, a.self) if a.self.kind == "float" else a.self


@rule(
    "fake_quantize_per_tensor_affine_cachemask.default",
    "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default",
    "fake_quantize_per_channel_affine_cachemask.default",
)
def _fake_quantize(w: Writer, a: Any) -> list[Value]:
    """x / scale by the float32 reciprocal, rounded to an integer, clipped and scaled back; and where nothing was
    clipped (native/quantized/cpu/kernels/QuantizedOpKernels.cpp, _fake_quantize_tensor_helper)."""
    shape, dtype = w.out[0]
    wide = "float64" if dtype == "float64" else "float32"
    x = w.convert(a.self, wide)
    axis = getattr(a, "axis", None)

    def spread(v: Operand, dtype: str) -> Value:
        if isinstance(v, Value) and axis is not None:
            return w.along(w.convert(v, dtype), shape, [normal_axis(axis, len(shape))])
        return w.operand(w.reshape(v, ()) if isinstance(v, Value) else v, dtype, shape)

    scale = spread(a.scale, "float32")
    inverse = w.convert(w.op("divide", w.full(1.0, scale), scale), wide)
    zero, scaled = spread(a.zero_point, wide), w.op("multiply", x, inverse)
    if isinstance(a.zero_point, Value) and a.zero_point.kind == "float":
        steps = w.op("add", w.op("round_nearest_even", w.op("add", zero, scaled)), w.full(0.0, x))
    else:
        steps = w.op("add", zero, w.op("round_nearest_even", scaled))
    low, high = w.full(float(a.quant_min), x), w.full(float(a.quant_max), x)
    above, below = w.compare("GE", steps, low), w.compare("LE", steps, high)
    if axis is not None:  # here what no int64 holds, infinity too, becomes the least of them
        above = w.op("and", above, w.compare("LT", steps, w.full(2.0**63, x)))
    clipped = w.convert(w.select(above, w.select(below, steps, high), low), "float64")
    exact = w.op("multiply", w.op("subtract", clipped, w.convert(zero, "float64")), w.convert(scale, "float64"))
    result = w.convert(w.convert(exact, "float32" if axis is None else wide), dtype)
    mask = w.op("and", above, below)
    if hasattr(a, "fake_quant_enabled"):
        enabled = w.broadcast(w.reshape(w.convert(a.fake_quant_enabled, "bool"), ()), shape)
        result = w.select(enabled, result, a.self)
        mask = w.op("or", mask, w.op("not", enabled))
    return [result, mask]


@rule("round.decimals")
def _round_decimals(w: Writer, a: Any) -> Value:
    """round(x * 10^d) / 10^d, and round(x / 10^-d) * 10^-d for negative d (native/cpu/UnaryOpsKernel.cpp)."""
    dtype = a.self.dtype
    if a.self.kind != "float":
        return a.self
    (value,), _ = w.in_float32(dtype, [a.self], a.self.shape)
    ten = w.full(10.0 ** abs(a.decimals), value)
    scale, unscale = ("multiply", "divide") if a.decimals >= 0 else ("divide", "multiply")
    rounded = w.op("round_nearest_even", w.op(scale, value, ten))
    return w.convert(w.op(unscale, rounded, ten), dtype)


@rule("neg.default")
def _neg(w: Writer, a: Any) -> Value:
    return w.op("negate", a.self)


@rule("abs.default")
def _abs(w: Writer, a: Any) -> Value:
    return a.self if a.self.kind in ("bool", "uint") else w.op("abs", a.self, dtype=_PARTS.get(a.self.dtype))


@rule("sign.default", "sgn.default")
def _sign(w: Writer, a: Any) -> Value:
    """(0 < x) - (x < 0), so that ±0 and NaN give 0 (native/cpu/UnaryOpsKernel.cpp); complex: x / |x|."""
    if a.self.kind == "bool":
        return a.self
    if a.self.kind != "float":
        return w.op("sign", a.self)
    zero = w.full(0.0, a.self)
    above, below = (w.convert(w.compare(d, a.self, zero), a.self.dtype) for d in ("GT", "LT"))
    return w.op("subtract", above, below)


@rule("reciprocal.default")
def _reciprocal(w: Writer, a: Any) -> Value:
    value = w.convert(a.self, w.out[0][1])
    return w.op("divide", w.full(1.0, value), value)


@rule("add.Tensor", "add.Scalar", "sub.Tensor", "sub.Scalar", "rsub.Scalar", "rsub.Tensor")
def _add(w: Writer, a: Any) -> Value:
    """x + alpha * y, product and sum rounded once in float32 and float64 (native/cpu/BinaryOpsKernel.cpp uses fmadd).

    In the 16-bit formats a scalar operand and alpha are rounded to the format, and the vector loop computes in float32
    and rounds at the end. Its last few elements, and tensors shorter than a vector, round the product too.
    """
    x, y = (a.other, a.self) if a.operator == "rsub" else (a.self, a.other)
    op = "add" if a.operator == "add" else "subtract"
    lhs, rhs = w.pair(x, y)
    if lhs.kind == "bool":
        if op != "add" or a.alpha != 1:
            raise _Refused("bool tensors are only added")
        return w.op("or", lhs, rhs)
    if a.alpha == 1:
        return w.op(op, lhs, rhs)
    if lhs.kind != "float":
        return w.op(op, lhs, w.op("multiply", rhs, w.full(a.alpha, rhs)))
    alpha = w.full(a.alpha if op == "add" else -a.alpha, lhs)
    (x32, y32, alpha32), _ = w.in_float32(lhs.dtype, [lhs, rhs, alpha], lhs.shape)
    return w.convert(w.op("fma", y32, alpha32, x32), lhs.dtype)


def _scalar_in_float32(w: Writer, op: str, x: Operand, y: Operand, dtype: str) -> Value:
    """x op y; in the 16-bit formats a scalar y enters as float32, and the result is rounded once.

    native/cpu/BinaryOpsKernel.cpp, binary_kernel_reduced_floating_vec_opmath_support: the scalar keeps its value.
    """
    unrounded = not isinstance(y, Value) or (y.rank == 0 and y.dtype != dtype)
    if dtype in REDUCED and isinstance(x, Value) and unrounded:
        lhs, rhs = w.pair(x, y, "float32")
        return w.convert(w.op(op, lhs, rhs), dtype)
    return w.op(op, *w.pair(x, y, dtype))


@rule("mul.Tensor", "mul.Scalar")
def _mul(w: Writer, a: Any) -> Value:
    dtype = promoted(a.self, a.other)
    return (
        w.op("and", *w.pair(a.self, a.other))
        if dtype == "bool"
        else _scalar_in_float32(w, "multiply", a.self, a.other, dtype)
    )


@rule("div.Tensor", "div.Scalar", "div.Tensor_mode", "div.Scalar_mode", "true_divide.Tensor", "floor_divide.default")
def _div(w: Writer, a: Any) -> Value:
    mode = "floor" if a.operator == "floor_divide" else getattr(a, "rounding_mode", None)
    dtype = w.out[0][1]
    if mode is None:
        return _scalar_in_float32(w, "divide", a.self, a.other, dtype)
    if kind_of(dtype) in ("int", "uint"):
        lhs, rhs = w.pair(a.self, a.other)
        quotient = w.op("divide", lhs, rhs)
        if mode == "trunc" or quotient.kind == "uint":
            return quotient
        return w.op("subtract", quotient, w.convert(_differs_in_sign(w, w.op("remainder", lhs, rhs), rhs), dtype))
    if mode == "trunc":
        return w.op("trunc", _scalar_in_float32(w, "divide", a.self, a.other, dtype))
    lhs, rhs = w.pair(a.self, a.other, "float32" if dtype in REDUCED else dtype)
    return w.convert(_floor_quotient(w, lhs, rhs), dtype)


def _differs_in_sign(w: Writer, remainder: Value, divisor: Value) -> Value:
    """Whether a truncated remainder is not zero and its sign is not the divisor's."""
    zero = w.full(0, divisor)
    signs = [w.compare("LT", value, zero) for value in (remainder, divisor)]
    return w.op("and", w.compare("NE", remainder, zero), w.compare("NE", *signs))


def _floor_quotient(w: Writer, x: Value, y: Value) -> Value:
    """c10/util/generic_math.h, div_floor_floating: from the remainder, so that the quotient is never rounded up."""
    zero, one = w.full(0.0, x), w.full(1.0, x)
    remainder, quotient = w.op("remainder", x, y), w.op("divide", x, y)
    whole = w.op("divide", w.op("subtract", x, remainder), y)
    whole = w.select(_differs_in_sign(w, remainder, y), w.op("subtract", whole, one), whole)
    floor = w.op("floor", whole)
    high = w.compare("GT", w.op("subtract", whole, floor), w.full(0.5, x))
    floor = w.select(high, w.op("add", floor, one), floor)
    floor = w.select(w.compare("NE", whole, zero), floor, w.op("copysign", zero, quotient))
    return w.select(w.compare("EQ", y, zero), quotient, floor)


@rule("remainder.Tensor", "remainder.Scalar", "fmod.Tensor", "fmod.Scalar", "remainder.Scalar_Tensor")
def _remainder(w: Writer, a: Any) -> Value:
    """fmod truncates; remainder adds the divisor where the signs differ (native/cpu/BinaryOpsKernel.cpp)."""
    dtype = promoted(a.self, a.other)
    lhs, rhs = w.pair(a.self, a.other, dtype)
    if a.operator == "fmod" or lhs.kind == "uint":
        return w.op("remainder", lhs, rhs)
    (lhs, rhs), _ = w.in_float32(dtype, [lhs, rhs], lhs.shape)
    truncated = w.op("remainder", lhs, rhs)
    result = w.select(_differs_in_sign(w, truncated, rhs), w.op("add", truncated, rhs), truncated)
    return w.convert(result, dtype)


@rule("pow.Tensor_Scalar")
def _pow_scalar(w: Writer, a: Any) -> Value:
    """torch's special exponents (native/cpu/PowKernel.cpp, native/Pow.cpp): products, roots and reciprocals.

    float16 has none and takes the power in float32; bfloat16 rounds each step. Other exponents are rounded to the
    tensor's format.
    """
    dtype, exponent = w.out[0][1], a.exponent
    value = w.convert(a.self, dtype)
    if exponent == 0:
        return w.full(1, value)
    if exponent == 1:
        return value
    if value.kind in ("int", "uint"):
        return w.emit("integer_pow", [value], value.shape, dtype, exponent=int(exponent))
    if dtype != "float16" and exponent in (2, 3, -2):
        square = w.op("multiply", value, value)
        power = w.op("multiply", square, value) if exponent == 3 else square
        return w.op("divide", w.full(1.0, value), power) if exponent == -2 else power
    if dtype != "float16" and exponent == -1:
        return w.op("divide", w.full(1.0, value), value)
    if dtype != "float16" and exponent in (0.5, -0.5):
        return w.op("sqrt" if exponent == 0.5 else "rsqrt", value)
    return w.op("power", value, w.full(exponent, value))


@rule("pow.Tensor_Tensor", "pow.Scalar")
def _pow(w: Writer, a: Any) -> Value:
    dtype = w.out[0][1]
    if not isinstance(a.self, Value) and a.self == 1:
        return w.full(1, a.exponent, dtype)
    return w.op("power", *w.pair(a.self, a.exponent, dtype))


@rule("maximum.default", "minimum.default")
def _extreme(w: Writer, a: Any) -> Value:
    return w.op(a.operator, *w.pair(a.self, a.other))


@rule("fmax.default", "fmin.default")
def _extreme_number(w: Writer, a: Any) -> Value:
    """The other operand where one is NaN."""
    lhs, rhs = w.pair(a.self, a.other)
    result = w.op({"fmax": "maximum", "fmin": "minimum"}[a.operator], lhs, rhs)
    if lhs.kind != "float":
        return result
    result = w.select(w.compare("NE", rhs, rhs), lhs, result)
    return w.select(w.compare("NE", lhs, lhs), rhs, result)


def _bounded(w: Writer, value: Value, low: float | None, high: float | None) -> Value:
    """Scalar bounds: low where x < low, then high where x > high, so NaN and -0 pass (std::max, std::min)."""
    for bound, direction in ((low, "LT"), (high, "GT")):
        if bound is not None:
            limit = w.full(bound, value)
            value = limit if bound != bound else w.select(w.compare(direction, value, limit), limit, value)
    return value


@rule("clamp.default", "clamp_min.default", "clamp_max.default", "hardtanh.default", "relu.default")
def _clamp(w: Writer, a: Any) -> Value:
    if a.operator == "relu":
        return _bounded(w, a.self, 0, None)
    low, high = (
        (a.min_val, a.max_val) if a.operator == "hardtanh" else (getattr(a, "min", None), getattr(a, "max", None))
    )
    return _bounded(w, w.convert(a.self, w.out[0][1]), low, high)


@rule("clamp.Tensor", "clamp_min.Tensor", "clamp_max.Tensor")
def _clamp_tensor(w: Writer, a: Any) -> Value:
    shape, dtype = w.out[0]
    value = w.operand(a.self, dtype, shape)
    for bound, op in ((getattr(a, "min", None), "maximum"), (getattr(a, "max", None), "minimum")):
        if bound is not None:
            value = w.op(op, value, w.operand(bound, dtype, shape))
    return value


@rule("atan2.default", "hypot.default", "nextafter.default", "copysign.Tensor", "copysign.Scalar")
def _binary_float(w: Writer, a: Any) -> Value:
    name = {"nextafter": "next_after"}.get(a.operator, a.operator)
    return w.op(name, *w.pair(a.self, a.other, w.out[0][1]))


@rule("addcmul.default")
def _addcmul(w: Writer, a: Any) -> Value:
    """self + (value * tensor1) * tensor2, the last product fused with the sum; 16-bit formats in float32."""
    shape, dtype = w.out[0]
    (x, y, z), _ = w.in_float32(dtype, [a.self, a.tensor1, a.tensor2], shape)
    if a.value != 1:
        y = w.op("multiply", y, w.full(a.value, y))
    result = w.op("fma", y, z, x) if x.kind == "float" else w.op("add", x, w.op("multiply", y, z))
    return w.convert(result, dtype)


@rule("addcdiv.default")
def _addcdiv(w: Writer, a: Any) -> Value:
    """self + (value * tensor1) / tensor2, each step rounded; 16-bit formats in float32."""
    shape, dtype = w.out[0]
    (x, y, z), _ = w.in_float32(dtype, [a.self, a.tensor1, a.tensor2], shape)
    if a.value != 1:
        y = w.op("multiply", y, w.full(a.value, y))
    return w.convert(w.op("add", x, w.op("divide", y, z)), dtype)


def _complex_lerp(w: Writer, x: Value, y: Value, weight: Value) -> Value:
    """x + weight * (y - x) where |weight| < 1/2, otherwise y - (y - x) * (1 - weight)."""
    difference = w.op("subtract", y, x)
    low = w.op("add", x, w.op("multiply", weight, difference))
    high = w.op("subtract", y, w.op("multiply", difference, w.op("subtract", w.full(1.0, weight), weight)))
    size = w.op("abs", weight, dtype=_PARTS[weight.dtype])
    return w.select(w.compare("LT", size, w.full(0.5, size)), low, high)


@rule("lerp.Scalar", "lerp.Tensor")
def _lerp(w: Writer, a: Any) -> Value:
    """native/Lerp.h: |weight| < 0.5: fma(weight, end - self, self); otherwise fma(weight - 1, end - self, end)."""
    shape, dtype = w.out[0]
    if kind_of(dtype) == "complex":
        return _complex_lerp(w, *(w.operand(x, dtype, shape) for x in (a.self, a.end, a.weight)))
    (x, y), _ = w.in_float32(dtype, [a.self, a.end], shape)
    weight = w.operand(a.weight, x.dtype, shape)
    difference = w.op("subtract", y, x)
    near = w.compare("LT", w.op("abs", weight), w.full(0.5, weight))
    low = w.op("fma", weight, difference, x)
    high = w.op("fma", w.op("subtract", weight, w.full(1.0, weight)), difference, y)
    return w.convert(w.select(near, low, high), dtype)


_PRIMS = {"add": "add", "sub": "subtract", "mul": "multiply", "div": "divide", "neg": "negate"}


def _prim(w: Writer, a: Any) -> Value:
    """torch's primitives below ATen: equal shapes and dtypes, no promotion (forward-mode gradients use them)."""
    dtype = w.out[0][1]
    operands = [a.self, a.other] if hasattr(a, "other") else [a.self]
    return w.op(_PRIMS[a.operator], *(w.operand(x, dtype, w.out[0][0]) for x in operands))


RULES.update(dict.fromkeys((f"prims.{name}.default" for name in _PRIMS), _prim))


def _prim_convert(w: Writer, a: Any) -> Value:
    return w.convert(a.a, w.out[0][1])


RULES["prims.convert_element_type.default"] = _prim_convert


# ---- rules: comparison, logic, bits ---------------------------------------------------------------------------------


@rule(*(f"{name}.{kind}" for name in ("eq", "ne", "lt", "le", "gt", "ge") for kind in ("Tensor", "Scalar")))
def _compare(w: Writer, a: Any) -> Value:
    return w.compare(a.operator.upper(), *w.pair(a.self, a.other))


@rule("logical_and.default", "logical_or.default", "logical_xor.default")
def _logical(w: Writer, a: Any) -> Value:
    return w.op(a.operator.removeprefix("logical_"), *w.pair(a.self, a.other, "bool"))


@rule("logical_not.default")
def _logical_not(w: Writer, a: Any) -> Value:
    return w.op("not", w.convert(a.self, "bool"))


@rule(*(f"bitwise_{name}.{kind}" for name in ("and", "or", "xor") for kind in ("Tensor", "Scalar", "Scalar_Tensor")))
def _bitwise(w: Writer, a: Any) -> Value:
    return w.op(a.operator.removeprefix("bitwise_"), *w.pair(a.self, a.other))


@rule("bitwise_not.default")
def _bitwise_not(w: Writer, a: Any) -> Value:
    return w.op("not", a.self)


@rule(
    *(
        f"bitwise_{side}_shift.{kind}"
        for side in ("left", "right")
        for kind in ("Tensor", "Tensor_Scalar", "Scalar_Tensor")
    ),
    *(f"__{side}shift__.{kind}" for side in "lr" for kind in ("Tensor", "Scalar")),
)
def _shift(w: Writer, a: Any) -> Value:
    lhs, rhs = w.pair(a.self, a.other)
    if lhs.kind not in ("int", "uint"):
        raise _Refused(f"a shift of {lhs.dtype}")
    if a.operator in ("bitwise_left_shift", "__lshift__"):
        return w.op("shift_left", lhs, rhs)
    return w.op("shift_right_arithmetic" if lhs.kind == "int" else "shift_right_logical", lhs, rhs)


def _of_parts(w: Writer, value: Value, combine: str, test: Callable[[Value], Value]) -> Value:
    """A test of a real number; of a complex one, of both its parts, combined."""
    if value.kind != "complex":
        return test(value)
    parts = [w.op(name, value, dtype=_PARTS[value.dtype]) for name in ("real", "imag")]
    return w.op(combine, *map(test, parts))


@rule("isnan.default")
def _isnan(w: Writer, a: Any) -> Value:
    if a.self.kind not in ("float", "complex"):
        return w.full(False, a.self, "bool")
    return _of_parts(w, a.self, "or", lambda v: w.compare("NE", v, v))


@rule("isinf.default")
def _isinf(w: Writer, a: Any) -> Value:
    if a.self.kind not in ("float", "complex"):
        return w.full(False, a.self, "bool")
    return _of_parts(w, a.self, "or", lambda v: w.compare("EQ", w.op("abs", v), w.full(math.inf, v)))


@rule("isfinite.default")
def _isfinite(w: Writer, a: Any) -> Value:
    if a.self.kind not in ("float", "complex"):
        return w.full(True, a.self, "bool")
    return _of_parts(w, a.self, "and", lambda v: w.op("is_finite", v, dtype="bool"))


@rule("signbit.default")
def _signbit(w: Writer, a: Any) -> Value:
    value = a.self
    if value.kind in ("bool", "uint"):
        return w.full(False, value, "bool")
    if value.kind == "float":
        value = w.emit("bitcast_convert", [value], value.shape, f"int{bits_of(value.dtype)}")
    return w.compare("LT", value, w.full(0, value))


@rule("copy.default")
def _copy(w: Writer, a: Any) -> Value:
    """What ``self`` holds after src was assigned to all of it."""
    return w.operand(a.src, *reversed(w.out[0]))


@rule("where.self")
def _where(w: Writer, a: Any) -> Value:
    shape, dtype = w.out[0]
    on_true, on_false = (w.operand(x, dtype, shape) for x in (a.self, a.other))
    return w.select(w.operand(a.condition, "bool", shape), on_true, on_false)


# ---- rules: complex numbers -----------------------------------------------------------------------------------------


@rule("complex.default")
def _complex(w: Writer, a: Any) -> Value:
    lhs, rhs = w.pair(a.real, a.imag)
    return w.op("complex", lhs, rhs, dtype=_COMPLEX_OF[lhs.dtype])


@rule("polar.default")
def _polar(w: Writer, a: Any) -> Value:
    """(abs * cos(angle), abs * sin(angle)), native/cpu/BinaryOpsKernel.cpp."""
    length, angle = w.pair(a.abs, a.angle)
    parts = [w.op("multiply", length, w.op(name, angle)) for name in ("cosine", "sine")]
    return w.op("complex", *parts, dtype=_COMPLEX_OF[length.dtype])


@rule("real.default", "imag.default")
def _part(w: Writer, a: Any) -> Value:
    return w.op(a.operator, a.self, dtype=_PARTS[a.self.dtype]) if a.self.kind == "complex" else a.self


@rule("_conj.default", "conj_physical.default", "_conj_physical.default")
def _conj(w: Writer, a: Any) -> Value:
    return w.op("conjugate", a.self) if a.self.kind == "complex" else a.self


@rule("angle.default")
def _angle(w: Writer, a: Any) -> Value:
    """Complex: atan2 of the parts. Real: pi below zero, NaN for NaN, 0 otherwise (-0 too)."""
    value = w.convert(a.self, w.out[0][1]) if a.self.kind != "complex" else a.self
    if value.kind == "complex":
        real, imag = (w.op(name, value, dtype=_PARTS[value.dtype]) for name in ("real", "imag"))
        return w.op("atan2", imag, real)
    zero = w.full(0.0, value)
    angle = w.select(w.compare("LT", value, zero), w.full(math.pi, value), zero)
    return w.select(w.compare("NE", value, value), value, angle)


@rule("view_as_real.default")
def _view_as_real(w: Writer, a: Any) -> Value:
    parts = [w.op(name, a.self, dtype=_PARTS[a.self.dtype]) for name in ("real", "imag")]
    result = w.concatenate([w.reshape(part, [*part.shape, 1]) for part in parts], a.self.rank)
    w.complex_views[result] = a.self
    return result


@rule("view_as_complex.default")
def _view_as_complex(w: Writer, a: Any) -> Value:
    axis = a.self.rank - 1
    parts = [w.reshape(w.slice(a.self, axis, k, k + 1), a.self.shape[:-1]) for k in (0, 1)]
    return w.op("complex", *parts, dtype=_COMPLEX_OF[a.self.dtype])


# ---- rules: shapes --------------------------------------------------------------------------------------------------


@rule("view.default", "_unsafe_view.default", "reshape.default", "view_copy.default", "_reshape_alias.default")
def _view(w: Writer, a: Any) -> Value:
    return w.reshape(a.self, w.out[0][0])


@rule(
    *(
        [
            "clone.default",
            "alias.default",
            "detach.default",
            "lift_fresh_copy.default",
            "lift_fresh.default",
            "contiguous.default",
        ]
    ),
    *(["resolve_conj.default", "resolve_neg.default", "detach_copy.default", "alias_copy.default", "positive.default"]),
)
def _same(w: Writer, a: Any) -> Value:
    return a.self


@rule("_to_copy.default", "to.dtype", "_to_dtype.default")
def _to_copy(w: Writer, a: Any) -> Value:
    return w.convert(a.self, w.out[0][1])


@rule("view.dtype")
def _view_dtype(w: Writer, a: Any) -> Value:
    """The same bits in another dtype; widths that differ rescale the last axis."""
    shape, dtype = w.out[0]
    value = a.self
    source, target = bits_of(value.dtype), bits_of(dtype)
    if not {value.kind, kind_of(dtype)} <= {"int", "uint", "float"}:
        raise _Refused(f"the bits of {value.dtype} as {dtype}")
    if source < target:
        value = w.reshape(value, [*shape, target // source])
    parts = [source // target] if source > target else []
    full = [*(value.shape if source >= target else shape), *parts]
    return w.reshape(w.emit("bitcast_convert", [value], full, dtype), shape)


@rule("permute.default", "transpose.int", "t.default", "numpy_T.default")
def _permute(w: Writer, a: Any) -> Value:
    rank = a.self.rank
    if a.operator == "permute":
        axes = [normal_axis(d, rank) for d in a.dims]
    elif a.operator == "transpose" and rank:
        axes = list(range(rank))
        i, j = normal_axis(a.dim0, rank), normal_axis(a.dim1, rank)
        axes[i], axes[j] = axes[j], axes[i]
    else:
        axes = list(reversed(range(rank)))
    return w.transpose(a.self, axes)


@rule("expand.default", "broadcast_to.default")
def _expand(w: Writer, a: Any) -> Value:
    return w.broadcast(a.self, w.out[0][0])


@rule("unsqueeze.default", "squeeze.default", "squeeze.dim", "squeeze.dims")
def _squeeze(w: Writer, a: Any) -> Value:
    return w.reshape(a.self, w.out[0][0])


@rule("repeat.default")
def _repeat(w: Writer, a: Any) -> Value:
    """Each axis becomes (repeats, size), which is then read as one."""
    lead = len(a.repeats) - a.self.rank
    sizes = [1] * lead + list(a.self.shape)
    shape = [n for pair in zip(a.repeats, sizes, strict=True) for n in pair]
    axes = [2 * (lead + axis) + 1 for axis in range(a.self.rank)]
    return w.reshape(w.along(a.self, shape, axes), w.out[0][0])


@rule("cat.default", "concatenate.default")
def _cat(w: Writer, a: Any) -> Value:
    shape, dtype = w.out[0]
    # An empty tensor of rank 1 joins tensors of any shape, for the sake of old programs.
    values = [v for v in a.tensors if not (v.shape == (0,) and len(shape) != 1)] or a.tensors
    return w.concatenate([w.convert(v, dtype) for v in values], normal_axis(a.dim, len(shape)))


@rule("stack.default")
def _stack(w: Writer, a: Any) -> Value:
    shape, dtype = w.out[0]
    axis = normal_axis(a.dim, len(shape))
    values = [w.convert(v, dtype) for v in a.tensors]
    return w.concatenate([w.reshape(v, [*v.shape[:axis], 1, *v.shape[axis:]]) for v in values], axis)


@rule("slice.Tensor")
def _slice(w: Writer, a: Any) -> Value:
    axis = normal_axis(a.dim, a.self.rank)
    start, limit, stride = slice(a.start, a.end, a.step).indices(a.self.shape[axis])
    return w.slice(a.self, axis, start, max(start, limit), stride)


@rule("select.int")
def _select(w: Writer, a: Any) -> Value:
    axis = normal_axis(a.dim, a.self.rank)
    index = normal_axis(a.index, a.self.shape[axis])
    if a.self in w.complex_views and axis == a.self.rank - 1:
        value = w.complex_views[a.self]
        return w.op(("real", "imag")[index], value, dtype=a.self.dtype)
    return w.reshape(w.slice(a.self, axis, index, index + 1), w.out[0][0])


@rule("split_with_sizes.default", "split.Tensor", "unbind.int", "chunk.default")
def _split(w: Writer, a: Any) -> list[Value | None]:
    axis = normal_axis(a.dim, a.self.rank)
    results: list[Value | None] = []
    start = 0
    for shape, _ in w.out:
        size = 1 if a.operator == "unbind" else shape[axis]
        results.append(w.reshape(w.slice(a.self, axis, start, start + size), shape))
        start += size
    return results


@rule("constant_pad_nd.default")
def _pad(w: Writer, a: Any) -> Value:
    low, high = [0] * a.self.rank, [0] * a.self.rank
    for k in range(len(a.pad) // 2):
        low[-1 - k], high[-1 - k] = a.pad[2 * k], a.pad[2 * k + 1]
    attrs = {"edge_padding_low": low, "edge_padding_high": high, "interior_padding": [0] * a.self.rank}
    return w.emit("pad", [a.self, w.scalar(a.value, a.self.dtype)], w.out[0][0], a.self.dtype, **attrs)


@rule("flip.default")
def _flip(w: Writer, a: Any) -> Value:
    axes = [normal_axis(d, a.self.rank) for d in a.dims]
    return w.emit("reverse", [a.self], a.self.shape, a.self.dtype, dimensions=axes) if axes else a.self


@rule("roll.default")
def _roll(w: Writer, a: Any) -> Value:
    value = a.self if a.dims else w.reshape(a.self, [a.self.size])
    for shift, dim in zip(a.shifts, a.dims or [0], strict=True):
        axis = normal_axis(dim, value.rank)
        size = value.shape[axis]
        shift = shift % size if size else 0
        if shift:
            ends = [w.slice(value, axis, size - shift, size), w.slice(value, axis, 0, size - shift)]
            value = w.concatenate(ends, axis)
    return w.reshape(value, a.self.shape)


@rule("diagonal.default")
def _diagonal(w: Writer, a: Any) -> Value:
    """Of an n by m matrix read row by row, every (m + 1)-th element, from the offset's place."""
    rank = a.self.rank
    axes = [normal_axis(d, rank) for d in (a.dim1, a.dim2)]
    value = w.transpose(a.self, [d for d in range(rank) if d not in axes] + axes)
    rows, columns = value.shape[-2:]
    count = w.out[0][0][-1]
    start = max(a.offset, 0) + max(-a.offset, 0) * columns
    flat = w.reshape(value, [*value.shape[:-2], rows * columns])
    limit = start + (count - 1) * (columns + 1) + 1 if count else start
    start, limit = min(start, rows * columns), min(limit, rows * columns)
    return w.slice(flat, flat.rank - 1, start, limit, columns + 1)


def _put(w: Writer, value: Value, source: Value, axis: int, start: int, stride: int) -> Value:
    """``value`` with the elements at start, start + stride, … of an axis replaced by those of ``source``."""
    size, count = value.shape[axis], source.shape[axis]
    if not count or not value.size:
        return value
    if stride == 1:
        parts = [w.slice(value, axis, 0, start), source, w.slice(value, axis, start + count, size)]
        return w.concatenate([part for part in parts if part.size], axis)
    low, high, interior = ([0] * value.rank for _ in range(3))
    low[axis], interior[axis] = start, stride - 1
    high[axis] = size - start - (count - 1) * stride - 1
    attrs = {"edge_padding_low": low, "edge_padding_high": high, "interior_padding": interior}
    there = w.full(True, source, "bool")
    mask = w.emit("pad", [there, w.scalar(False, "bool")], value.shape, "bool", **attrs)
    spread = w.emit("pad", [source, w.scalar(0, value.dtype)], value.shape, value.dtype, **attrs)
    return w.select(mask, spread, value)


@rule("slice_scatter.default")
def _slice_scatter(w: Writer, a: Any) -> Value:
    axis = normal_axis(a.dim, a.self.rank)
    start, _, stride = slice(a.start, a.end, a.step).indices(a.self.shape[axis])
    return _put(w, a.self, w.convert(a.src, a.self.dtype), axis, start, stride)


@rule("select_scatter.default")
def _select_scatter(w: Writer, a: Any) -> Value:
    axis = normal_axis(a.dim, a.self.rank)
    source = w.reshape(w.convert(a.src, a.self.dtype), kept(a.self.shape, [axis]))
    return _put(w, a.self, source, axis, normal_axis(a.index, a.self.shape[axis]), 1)


@rule("diagonal_scatter.default")
def _diagonal_scatter(w: Writer, a: Any) -> Value:
    rank = a.self.rank
    axes = [normal_axis(d, rank) for d in (a.dim1, a.dim2)]
    order = [d for d in range(rank) if d not in axes] + axes
    value = w.transpose(a.self, order)
    rows, columns = value.shape[-2:]
    start = max(a.offset, 0) + max(-a.offset, 0) * columns
    flat = w.reshape(value, [*value.shape[:-2], rows * columns])
    flat = _put(w, flat, w.convert(a.src, a.self.dtype), flat.rank - 1, start, columns + 1)
    return w.transpose(w.reshape(flat, value.shape), [order.index(d) for d in range(rank)])


# ---- rules: values that are made ------------------------------------------------------------------------------------


@rule("full.default", "full_like.default", "new_full.default", "scalar_tensor.default")
def _full(w: Writer, a: Any) -> Value:
    shape, dtype = w.out[0]
    number = a.s if a.operator == "scalar_tensor" else a.fill_value
    return w.broadcast(w.scalar(number, dtype), shape)


@rule(
    *(f"{prefix}{fill}.default" for fill in ("zeros", "ones") for prefix in ("", "new_")),
    "zeros_like.default",
    "ones_like.default",
)
def _fill(w: Writer, a: Any) -> Value:
    shape, dtype = w.out[0]
    return w.broadcast(w.scalar(int("ones" in a.operator), dtype), shape)


@rule("_efficientzerotensor.default", "_new_zeros_with_same_feature_meta.default")
def _zero(w: Writer, a: Any) -> Value:
    shape, dtype = w.out[0]
    return w.broadcast(w.scalar(0, dtype), shape)


_SHAPE_ONLY = (
    *("full_like.default", "zeros_like.default", "ones_like.default", "empty_like.default", "new_full.default"),
    *("new_zeros.default", "new_ones.default", "new_empty.default", "copy.default", "fill.Scalar", "fill.Tensor"),
)
"""Operators that look at the shape and dtype of their first operand, and never at its elements."""

_MOVES = (
    *("slice.Tensor", "select.int", "view.default", "permute.default", "transpose.int", "t.default", "flip.default"),
    *("unsqueeze.default", "squeeze.default", "squeeze.dim", "squeeze.dims", "expand.default", "clone.default"),
    *("alias.default", "slice_scatter.default", "select_scatter.default", "diagonal.default", "cat.default"),
    *("diagonal_scatter.default", "split_with_sizes.default", "unbind.int", "repeat.default", "unfold.default"),
)
"""Operators that move elements by their places alone, so that a mask of elements moves the same way."""


@rule("fill.Scalar", "fill.Tensor")
def _fill_with(w: Writer, a: Any) -> Value:
    return w.operand(a.value, *reversed(w.out[0]))


@rule(
    "empty.memory_format", "empty_like.default", "empty_permuted.default", "new_empty.default", "empty_strided.default"
)
def _empty(w: Writer, a: Any) -> Value:
    """Zeros, marked as unset: refused where one of them is looked at before it is written."""
    shape, dtype = w.out[0]
    zeros = torch.zeros(shape, dtype=TORCH_DTYPES[dtype])
    result = (
        w.emit("constant", (), shape, dtype, value=tensor_json(zeros))
        if not shape
        else w.broadcast(w.scalar(0, dtype), shape)
    )
    if math.prod(shape):
        w.unset[result] = torch.ones(shape, dtype=torch.bool)
    return result


@rule("arange.start_step", "arange.start", "arange.default")
def _arange(w: Writer, a: Any) -> Value:
    """start + step * i; where that is not exact in the dtype, the values that torch computes, as a constant."""
    (size,), dtype = w.out[0]
    start, step = getattr(a, "start", 0), getattr(a, "step", 1)
    # Integers below 2^8 are exact in bfloat16, the narrowest format here.
    bound = {"bfloat16": 8, "float16": 11, "float32": 24, "float64": 53}.get(dtype, 63)
    whole = all(isinstance(x, int) for x in (start, step))
    if not whole or kind_of(dtype) == "bool" or max(abs(start), abs(start + step * size), size) >= 1 << bound:
        return w.constant(torch.arange(start, a.end, step, dtype=TORCH_DTYPES[dtype]))
    value = w.emit("iota", [], [size], dtype, iota_dimension=0)
    if step != 1:
        value = w.op("multiply", value, w.full(step, value))
    return w.op("add", value, w.full(start, value)) if start else value


@rule("eye.default", "eye.m")
def _eye(w: Writer, a: Any) -> Value:
    shape, dtype = w.out[0]
    indices = [w.emit("iota", [], shape, "int64", iota_dimension=axis) for axis in (0, 1)]
    return w.convert(w.compare("EQ", *indices), dtype)


# ---- rules: reductions ----------------------------------------------------------------------------------------------


@rule("sum.dim_IntList", "sum.default")
def _sum(w: Writer, a: Any) -> Value:
    value = w.convert(a.self, w.out[0][1])
    return w.reduce(
        value, "add", normal_axes(getattr(a, "dim", None), value.rank), getattr(a, "keepdim", False), wide=True
    )


@rule("mean.dim", "mean.default")
def _mean(w: Writer, a: Any) -> Value:
    """The sum divided by the count; 16-bit formats in float32, rounded once at the end."""
    dtype = w.out[0][1]
    axes = normal_axes(getattr(a, "dim", None), a.self.rank)
    (value,), _ = w.in_float32(dtype, [a.self], a.self.shape)
    count = math.prod(value.shape[axis] for axis in axes)
    total = w.reduce(value, "add", axes, getattr(a, "keepdim", False))
    return w.convert(w.op("divide", total, w.full(count, total)), dtype)


@rule("prod.dim_int", "prod.default")
def _prod(w: Writer, a: Any) -> Value:
    """Unlike sums, products of 16-bit formats are rounded to the format at every step."""
    value = w.convert(a.self, w.out[0][1])
    return w.reduce(value, "multiply", normal_axes(getattr(a, "dim", None), value.rank), getattr(a, "keepdim", False))


@rule("amax.default", "amin.default")
def _amax(w: Writer, a: Any) -> Value:
    reducer = {"amax": "maximum", "amin": "minimum"}[a.operator]
    return w.reduce(a.self, reducer, normal_axes(a.dim, a.self.rank), a.keepdim)


@rule("max.default", "min.default")
def _max(w: Writer, a: Any) -> Value:
    return w.reduce(a.self, {"max": "maximum", "min": "minimum"}[a.operator], range(a.self.rank))


def _arg(w: Writer, op: str, value: Value, axis: int, keep: bool) -> Value:
    if not value.rank:
        return w.scalar(0, "int64")
    shape = [size for d, size in enumerate(value.shape) if d != axis]
    result = w.emit(op, [value], shape, "int64", dimension=axis)
    return w.reshape(result, kept(value.shape, [axis])) if keep else result


@rule("argmax.default", "argmin.default")
def _argmax(w: Writer, a: Any) -> Value:
    if a.dim is None:
        flat = _arg(w, a.operator, w.reshape(a.self, [a.self.size]), 0, False)
        return w.reshape(flat, w.out[0][0])
    return _arg(w, a.operator, a.self, normal_axis(a.dim, a.self.rank), a.keepdim)


@rule("max.dim", "min.dim")
def _max_dim(w: Writer, a: Any) -> list[Value | None]:
    """Where several elements are equal, torch chooses an index of its own; this is the first."""
    reducer = {"max": "maximum", "min": "minimum"}[a.operator]
    axes = normal_axes(a.dim, a.self.rank)
    values = w.reduce(a.self, reducer, axes, a.keepdim) if axes else a.self
    return [values, _arg(w, f"arg{a.operator}", a.self, axes[0] if axes else 0, a.keepdim)]


@rule("aminmax.default")
def _aminmax(w: Writer, a: Any) -> list[Value | None]:
    axes = normal_axes(a.dim, a.self.rank)
    return [w.reduce(a.self, reducer, axes, a.keepdim) for reducer in ("minimum", "maximum")]


@rule(*(f"{name}.{kind}" for name in ("any", "all") for kind in ("default", "dim", "dims")))
def _any(w: Writer, a: Any) -> Value:
    axes = normal_axes(getattr(a, "dim", None), a.self.rank)
    if getattr(a, "dim", None) == []:
        axes = []
    reducer = {"any": "or", "all": "and"}[a.operator]
    result = w.reduce(w.convert(a.self, "bool"), reducer, axes, getattr(a, "keepdim", False))
    return w.convert(result, w.out[0][1])


def _complex_variance(w: Writer, a: Any) -> list[Value]:
    """The variances of both parts added up, and the mean of both (native/ReduceOps.cpp, std_var_out)."""
    part = _PARTS[a.self.dtype]
    found = []
    for name in ("real", "imag"):
        value = w.op(name, a.self, dtype=part)
        found.append(_variance(w, SimpleNamespace(self=value, dim=a.dim, correction=a.correction, keepdim=a.keepdim)))
    variance = w.op("add", *(x[0] for x in found))
    return [variance, w.op("complex", *(x[1] for x in found), dtype=a.self.dtype)]


def _variance(w: Writer, a: Any) -> list[Value]:
    """Variance and mean: sum((x - mean)^2) / max(0, n - correction) in float64 (WelfordOps accumulates in double)."""
    if a.self.kind == "complex":
        return _complex_variance(w, a)
    dtype, axes = a.self.dtype, normal_axes(a.dim, a.self.rank)
    value = w.convert(a.self, "float64")
    count = math.prod(value.shape[axis] for axis in axes)
    total = w.reduce(value, "add", axes, keep=True)
    mean = w.op("divide", total, w.full(count, total))
    centred = w.op("subtract", value, w.broadcast(mean, value.shape))
    squares = w.reduce(w.op("multiply", centred, centred), "add", axes, a.keepdim)
    correction = 1 if a.correction is None else a.correction
    variance = w.op("divide", squares, w.full(max(0, count - correction), squares))
    return [w.convert(variance, dtype), w.convert(w.reshape(mean, variance.shape), dtype)]


@rule("var.correction")
def _var(w: Writer, a: Any) -> Value:
    return _variance(w, a)[0]


@rule("std.correction")
def _std(w: Writer, a: Any) -> Value:
    return w.op("sqrt", _variance(w, a)[0])


@rule("var_mean.correction")
def _var_mean(w: Writer, a: Any) -> list[Value | None]:
    return list(_variance(w, a))


@rule("logsumexp.default")
def _logsumexp(w: Writer, a: Any) -> Value:
    """log(sum(exp(x - m))) + m with m the maximum, of the real parts where x is complex, and 0 where that is infinite
    (native/ReduceOps.cpp)."""
    value = w.convert(a.self, w.out[0][1])
    axes = normal_axes(a.dim, value.rank)
    real = w.op("real", value, dtype=_PARTS[value.dtype]) if value.kind == "complex" else value
    peak = w.reduce(real, "maximum", axes, keep=True)
    infinite = w.compare("EQ", w.op("abs", peak), w.full(math.inf, peak))
    peak = w.convert(w.select(infinite, w.full(0.0, peak), peak), value.dtype)
    powers = w.op("exponential", w.op("subtract", value, w.broadcast(peak, value.shape)))
    logs = w.op("log", w.reduce(powers, "add", axes, a.keepdim, wide=True))
    return w.op("add", logs, w.reshape(peak, logs.shape))


@rule("linalg_vector_norm.default")
def _vector_norm(w: Writer, a: Any) -> Value:
    """sum(|x|^p)^(1/p): for p = 2 sqrt(sum(x * x)), 1 the sum, ±inf the extremes, 0 the count of x != 0."""
    dtype = w.out[0][1]
    axes = normal_axes(a.dim, a.self.rank)
    value = a.self
    if value.kind == "complex":
        value = w.op("abs", value, dtype=_PARTS[value.dtype])
    (value,), _ = w.in_float32(dtype, [value], value.shape)
    if a.ord == 2:
        result = w.op("sqrt", w.reduce(w.op("multiply", value, value), "add", axes, a.keepdim))
    elif a.ord == 0:
        result = w.reduce(w.convert(w.compare("NE", value, w.full(0.0, value)), value.dtype), "add", axes, a.keepdim)
    elif math.isinf(a.ord):
        result = w.reduce(w.op("abs", value), "maximum" if a.ord > 0 else "minimum", axes, a.keepdim)
    else:
        size = w.op("abs", value)
        powers = size if a.ord == 1 else w.op("power", size, w.full(a.ord, size))
        result = w.reduce(powers, "add", axes, a.keepdim)
        if a.ord != 1:
            result = w.op("power", result, w.full(1.0 / a.ord, result))
    return w.convert(result, dtype)


# ---- rules: contractions --------------------------------------------------------------------------------------------


@rule("mm.default", "bmm.default", "mv.default", "dot.default")
def _matmul(w: Writer, a: Any) -> Value:
    lhs, rhs = a.self, getattr(a, "mat2", None) or getattr(a, "vec", None) or a.tensor
    batch = int(a.operator == "bmm")
    return w.dot(lhs, rhs, batch, lhs.rank - 1, batch)


@rule("vdot.default")
def _vdot(w: Writer, a: Any) -> Value:
    lhs = w.op("conjugate", a.self) if a.self.kind == "complex" else a.self
    return w.dot(lhs, a.other, 0, 0, 0)


@rule("addbmm.default")
def _addbmm(w: Writer, a: Any) -> Value:
    """beta * self + alpha * the sum of all products of the batch: one product over the batch and the inner axis."""
    batch, rows, inner = a.batch1.shape
    a.mat1 = w.reshape(w.transpose(a.batch1, [1, 0, 2]), [rows, batch * inner])
    a.mat2 = w.reshape(a.batch2, [batch * inner, a.batch2.shape[2]])
    a.operator = "addmm"
    return _addmm(w, a)


@rule("addmm.default", "baddbmm.default", "addmv.default")
def _addmm(w: Writer, a: Any) -> Value:
    """beta * self + alpha * (lhs @ rhs), 16-bit formats in float32 and rounded once; beta = 0 ignores self."""
    shape, dtype = w.out[0]
    lhs, rhs = {
        "addmm": lambda: (a.mat1, a.mat2),
        "baddbmm": lambda: (a.batch1, a.batch2),
        "addmv": lambda: (a.mat, a.vec),
    }[a.operator]()
    batch = int(a.operator == "baddbmm")
    wide = "float32" if dtype in REDUCED else dtype
    product = w.dot(lhs, rhs, batch, lhs.rank - 1, batch, wide)
    if a.alpha != 1:
        product = w.op("multiply", product, w.full(a.alpha, product))
    if a.beta == 0:
        return w.convert(product, dtype)
    bias = w.operand(a.self, wide, shape)
    if a.beta != 1:
        bias = w.op("multiply", bias, w.full(a.beta, bias))
    return w.convert(w.op("add", product, bias), dtype)


@rule("_trilinear.default")
def _trilinear(w: Writer, a: Any) -> Value:
    """The sum over ``sumdim`` of the products of three tensors, each with axes of size 1 put in."""
    operands = []
    for x, places in ((a.i1, a.expand1), (a.i2, a.expand2), (a.i3, a.expand3)):
        shape = list(x.shape)
        for place in sorted(places):
            shape.insert(place, 1)
        operands.append(w.reshape(x, shape))
    shape = torch.broadcast_shapes(*(x.shape for x in operands))
    dtype = w.out[0][1]
    (x, y, z), _ = w.in_float32(dtype, operands, shape)
    axes = normal_axes(a.sumdim, len(shape)) if a.sumdim else []
    product = w.op("multiply", w.op("multiply", x, z), y)
    return w.convert(w.reduce(product, "add", axes), dtype)


# ---- rules: normalisation and activation, with the formulas of torch's CPU kernels ----------------------------------


@rule("_softmax.default")
def _softmax(w: Writer, a: Any) -> Value:
    """e / sum(e) with e = exp(x - max x); along the last axis e * (1 / sum(e)) (native/cpu/SoftMaxKernel.cpp).

    16-bit formats in float32, rounded once at the end.
    """
    axis = normal_axis(a.dim, a.self.rank) if a.self.rank else None
    (value,), _ = w.in_float32(w.out[0][1], [a.self], a.self.shape)
    axes = [] if axis is None else [axis]
    peak = w.reduce(value, "maximum", axes, keep=True)
    powers = w.op("exponential", w.op("subtract", value, w.broadcast(peak, value.shape)))
    total = w.reduce(powers, "add", axes, keep=True)
    if axis is None or axis == value.rank - 1:
        inverse = w.op("divide", w.full(1.0, total), total)
        result = w.op("multiply", powers, w.broadcast(inverse, value.shape))
    else:
        result = w.op("divide", powers, w.broadcast(total, value.shape))
    return w.convert(result, w.out[0][1])


@rule("_log_softmax.default")
def _log_softmax(w: Writer, a: Any) -> Value:
    """(x - max x) - log(sum(exp(x - max x))), native/cpu/SoftMaxKernel.cpp; 16-bit formats in float32, but that the
    kernel for the last axis keeps the sum and its logarithm in the operand's own format."""
    axes, dtype = [normal_axis(a.dim, a.self.rank)] if a.self.rank else [], w.out[0][1]
    (value,), _ = w.in_float32(dtype, [a.self], a.self.shape)
    peak = w.reduce(value, "maximum", axes, keep=True)
    shifted = w.op("subtract", value, w.broadcast(peak, value.shape))
    total = w.reduce(w.op("exponential", shifted), "add", axes, keep=True)
    if axes in ([], [value.rank - 1]):
        total = w.convert(total, dtype)
    logs = w.convert(w.op("log", total), value.dtype)
    return w.convert(w.op("subtract", shifted, w.broadcast(logs, value.shape)), dtype)


def _moments(w: Writer, value: Value, axes: Sequence[int], eps: float) -> tuple[Value, Value]:
    """Mean and 1 / sqrt(var + eps) over ``axes``, kept as axes of size 1; native/cpu/moments_utils.h, RowwiseMoments.

    The kernel accumulates by Welford's update in chunks; here sum(x) / n and sum((x - mean)^2) / n.
    """
    count = math.prod(value.shape[axis] for axis in axes)
    total = w.reduce(value, "add", axes, keep=True)
    mean = w.op("divide", total, w.full(count, total))
    centred = w.op("subtract", value, w.broadcast(mean, value.shape))
    squares = w.reduce(w.op("multiply", centred, centred), "add", axes, keep=True)
    variance = w.op("divide", squares, w.full(count, squares))
    deviation = w.op("sqrt", w.op("add", variance, w.full(eps, variance)))
    return mean, w.op("divide", w.full(1.0, deviation), deviation)


@rule("native_layer_norm.default")
def _layer_norm(w: Writer, a: Any) -> list[Value | None]:
    """(x - mean) * rstd, then fma(that, weight, bias) (native/cpu/layer_norm_kernel.cpp); 16-bit formats in float32."""
    dtype, shape = a.input.dtype, a.input.shape
    count = len(a.normalized_shape)
    axes = list(range(a.input.rank - count, a.input.rank))
    (value,), _ = w.in_float32(dtype, [a.input], shape)
    mean, rstd = _moments(w, value, axes, a.eps)
    result = w.op("subtract", value, w.broadcast(mean, shape))
    result = w.op("multiply", result, w.broadcast(rstd, shape))
    weight, bias = (x if x is None else w.operand(x, value.dtype, shape) for x in (a.weight, a.bias))
    if weight is not None and bias is not None:
        result = w.op("fma", result, weight, bias)
    elif weight is not None:
        result = w.op("multiply", result, weight)
    elif bias is not None:
        result = w.op("add", result, bias)
    return [w.convert(result, dtype), *(w.convert(x, d) for x, (_, d) in zip((mean, rstd), w.out[1:], strict=True))]


@rule("native_group_norm.default")
def _group_norm(w: Writer, a: Any) -> list[Value | None]:
    """fma(x, scale, bias) with scale = rstd * weight, bias = fma(-scale, mean, beta).

    native/cpu/group_norm_kernel.cpp; 16-bit formats in float32.
    """
    dtype, shape = a.input.dtype, a.input.shape
    (value,), _ = w.in_float32(dtype, [a.input], shape)
    groups = [a.N, a.group, a.C // a.group, *shape[2:]]
    flat = w.reshape(value, groups)
    mean, rstd = _moments(w, flat, list(range(2, flat.rank)), a.eps)
    by_channel = [a.N, a.group, a.C // a.group]
    wide = [w.reshape(w.broadcast(w.reshape(x, [a.N, a.group, 1]), by_channel), [a.N, a.C]) for x in (mean, rstd)]
    scale = wide[1]
    if a.weight is not None:
        scale = w.op("multiply", scale, w.operand(a.weight, value.dtype, scale.shape))
    shift = w.op("multiply", w.op("negate", scale), wide[0])
    if a.bias is not None:
        shift = w.op("fma", w.op("negate", scale), wide[0], w.operand(a.bias, value.dtype, scale.shape))
    result = w.op("fma", value, w.along(scale, shape, [0, 1]), w.along(shift, shape, [0, 1]))
    moments = [w.convert(w.reshape(x, s), d) for x, (s, d) in zip((mean, rstd), w.out[1:], strict=True)]
    return [w.convert(result, dtype), *moments]


def _normalised_by_channel(w: Writer, a: Any, value: Value, mean: Value, inverse: Value) -> Value:
    """fma(x, alpha, beta) with alpha = inverse * weight, beta = fma(-mean, alpha, bias).

    native/cpu/batch_norm_kernel.cpp, batch_norm_cpu_collect_linear_and_constant_terms.
    """
    alpha = w.op("multiply", inverse, w.convert(a.weight, value.dtype)) if a.weight is not None else inverse
    bias = w.full(0.0, mean) if a.bias is None else w.convert(a.bias, value.dtype)
    beta = w.op("fma", w.op("negate", mean), alpha, bias)
    result = w.op("fma", value, w.along(alpha, value.shape, [1]), w.along(beta, value.shape, [1]))
    return w.convert(result, a.input.dtype)


def _batch_moments(w: Writer, a: Any, value: Value, held: str) -> tuple[Value, Value, Value]:
    """Mean, sum of squared distances and 1 / sqrt(var + eps) of each channel, in the format ``held`` of the parameters.

    native/cpu/batch_norm_kernel.cpp, batch_norm_cpu_collect_stats: float32 planes are added in double; 16-bit formats,
    and rows whose channels lie side by side, in float32. The mean is rounded before distances from it are taken, the
    sum of squares before it is divided, and what follows is computed in double. In float16 (``held`` is then float32)
    nothing is rounded before the end.
    """
    shape, strides = value.shape, a.strides.get("input", ())
    side_by_side = math.prod(shape[2:]) == 1 or (len(strides) > 2 and strides[1] == 1)
    sums = value.dtype if a.input.dtype in REDUCED or side_by_side else "float64"
    axes = [axis for axis in range(value.rank) if axis != 1]
    count = value.size // max(1, shape[1])
    total = w.reduce(w.convert(value, sums), "add", axes)
    mean = w.convert(w.op("divide", total, w.full(count, total)), held)
    distance = w.op("subtract", value, w.along(w.convert(mean, value.dtype), shape, [1]))
    squares = w.convert(w.reduce(w.convert(w.op("multiply", distance, distance), sums), "add", axes), held)
    variance = w.convert(w.op("divide", squares, w.full(count, squares)), "float64")
    deviation = w.op("sqrt", w.op("add", variance, w.full(a.eps, variance)))
    return mean, squares, w.convert(w.op("divide", w.full(1.0, deviation), deviation), held)


def _moved(w: Writer, a: Any, old: Value, new: Value, inner: str) -> Value:
    """momentum * new + (1 - momentum) * old, with ``new`` in ``inner``, the rest in the format of the statistics, or
    float32 for float16."""
    held = w.convert(old, "float32") if old.dtype == "float16" else old
    momentum = torch.tensor(a.momentum, dtype=TORCH_DTYPES[held.dtype], device="cpu")
    wide = w.convert(new, inner)
    held = w.op("multiply", held, w.full((1 - momentum).item(), held))
    moved = w.op("multiply", wide, w.full(momentum.item(), wide))
    return w.convert(w.op("add", moved, w.convert(held, wide.dtype)), old.dtype)


@rule(
    "_native_batch_norm_legit_no_training.default",
    "native_batch_norm.default",
    "_native_batch_norm_legit_functional.default",
    "_native_batch_norm_legit.no_stats",
)
def _batch_norm(w: Writer, a: Any) -> list[Value | None]:
    """By the running statistics: inverse = 1 / sqrt(var + eps); in training by those of the batch, which also move
    the running ones, with the unbiased variance. 16-bit formats in float32."""
    (value,), _ = w.in_float32(a.input.dtype, [a.input], a.input.shape)
    running = [getattr(a, name, None) for name in ("running_mean", "running_var")]
    if getattr(a, "training", False):
        if len(w.out) == 3 and any(running):
            raise _Refused("it changes its statistics in place")
        held = next((x.dtype for x in (a.weight, a.bias, *running) if x is not None), a.input.dtype)
        kept_in = "float32" if held == "float16" else held
        own_mean, squares, own_inverse = _batch_moments(w, a, value, kept_in)
        moments = [w.convert(x, held) for x in (own_mean, own_inverse)]
        mean, inverse = (w.convert(x, value.dtype) for x in moments)
        saved: list[Value | None] = [w.convert(x, dtype) for x, (_, dtype) in zip(moments, w.out[1:], strict=False)]
        if len(w.out) == 5:
            count = value.size // max(1, value.shape[1])
            unbiased = w.op("divide", squares, w.full(count - 1, squares))
            inner = "float32" if a.input.dtype in REDUCED else "float64"
            for new, old, wide in zip((own_mean, unbiased), running, (kept_in, inner), strict=True):
                saved.append(w.convert(_moved(w, a, old, new, wide), w.out[len(saved) + 1][1]))
        return [_normalised_by_channel(w, a, value, mean, inverse), *saved]
    mean, variance = (w.convert(x, value.dtype) for x in running)
    deviation = w.op("sqrt", w.op("add", variance, w.full(a.eps, variance)))
    inverse = w.op("divide", w.full(1.0, deviation), deviation)
    kept_as_they_are: list[Value | None] = [*running] if len(w.out) == 5 else []
    return [_normalised_by_channel(w, a, value, mean, inverse), None, None, *kept_as_they_are]


@rule("gelu.default")
def _gelu(w: Writer, a: Any) -> Value:
    """native/cpu/Activation.cpp: x * 0.5 * (1 + erf(x * sqrt(1/2))), or with tanh
    0.5 * x * (1 + tanh(sqrt(2/pi) * fma(0.044715, x*x*x, x))); 16-bit formats in float32.
    """
    (x,), _ = w.in_float32(a.self.dtype, [a.self], a.self.shape)
    half, one = w.full(0.5, x), w.full(1.0, x)
    if a.approximate == "none":
        inner = w.op("erf", w.op("multiply", x, w.full(math.sqrt(0.5), x)))
    else:
        cube = w.op("multiply", w.op("multiply", x, x), x)
        beta = math.sqrt(2) * (2 / math.sqrt(math.pi)) * 0.5
        polynomial = w.op("fma", w.full(0.044715, x), cube, x)
        inner = w.op("tanh", w.op("multiply", w.full(beta, x), polynomial))
    result = w.op("multiply", w.op("multiply", x, half), w.op("add", one, inner))
    return w.convert(result, a.self.dtype)


@rule("silu.default")
def _silu(w: Writer, a: Any) -> Value:
    """x / (1 + exp(-x)), native/cpu/Activation.cpp; 16-bit formats in float32."""
    (x,), _ = w.in_float32(a.self.dtype, [a.self], a.self.shape)
    result = w.op("divide", x, w.op("add", w.full(1.0, x), w.op("exponential", w.op("negate", x))))
    return w.convert(result, a.self.dtype)


@rule("elu.default")
def _elu(w: Writer, a: Any) -> Value:
    """x * scale where x > 0, otherwise expm1(x * input_scale) * (alpha * scale) (native/cpu/Elu.h)."""
    (x,), _ = w.in_float32(a.self.dtype, [a.self], a.self.shape)
    factor = np.float32 if x.dtype == "float32" else np.float64
    negative = w.op("multiply", x, w.full(a.input_scale, x)) if a.input_scale != 1 else x
    negative = w.op("exponential_minus_one", negative)
    slope = float(factor(a.alpha) * factor(a.scale))
    negative = w.op("multiply", negative, w.full(slope, x)) if slope != 1 else negative
    positive = w.op("multiply", x, w.full(a.scale, x)) if a.scale != 1 else x
    return w.convert(w.select(w.compare("GT", x, w.full(0.0, x)), positive, negative), a.self.dtype)


@rule("leaky_relu.default")
def _leaky_relu(w: Writer, a: Any) -> Value:
    """x where x > 0, otherwise x * slope; 16-bit formats in float32."""
    (x,), _ = w.in_float32(a.self.dtype, [a.self], a.self.shape)
    scaled = w.op("multiply", x, w.full(a.negative_slope, x))
    return w.convert(w.select(w.compare("GT", x, w.full(0.0, x)), x, scaled), a.self.dtype)


# ---- rules: reading and writing at computed places ------------------------------------------------------------------


def _stacked(w: Writer, indices: Sequence[Value]) -> Value:
    """Index tensors of one shape as vectors along a new last axis."""
    shape = torch.broadcast_shapes(*(index.shape for index in indices))
    wide = [w.operand(index, "int64", shape) for index in indices]
    return w.concatenate([w.reshape(index, [*shape, 1]) for index in wide], len(shape))


def _wrapped(w: Writer, index: Value, size: int) -> Value:
    """A negative index counts from the end."""
    index = w.convert(index, "int64")
    return w.select(w.compare("LT", index, w.full(0, index)), w.op("add", index, w.full(size, index)), index)


def _take(w: Writer, value: Value, vectors: Value, axes: Sequence[int], place: int) -> Value:
    """The slices of ``value`` at index vectors (along the last axis of ``vectors``) into ``axes``; the index space lies
    at axis ``place`` of the result. An index out of bounds is an error in torch; here it is clamped."""
    space = vectors.shape[:-1]
    rest = [size for axis, size in enumerate(value.shape) if axis not in axes]
    shape = [*rest[:place], *space, *rest[place:]]
    if not math.prod(shape):
        return w.broadcast(w.scalar(0, value.dtype), shape)
    return w.emit(
        "gather",
        [value, vectors],
        shape,
        value.dtype,
        offset_dims=[*range(place), *range(place + len(space), len(shape))],
        collapsed_slice_dims=sorted(axes),
        operand_batching_dims=[],
        start_indices_batching_dims=[],
        start_index_map=list(axes),
        index_vector_dim=len(space),
        slice_sizes=[1 if axis in axes else size for axis, size in enumerate(value.shape)],
        mode="clip",
    )


def _store(
    w: Writer,
    value: Value,
    vectors: Value,
    updates: Value,
    axes: Sequence[int],
    place: int,
    reducer: str = "replace",
    mode: str = "clip",
) -> Value:
    """``value`` with ``updates``, shaped as ``_take`` reads, applied one after the other in row-major order."""
    if not updates.size:
        return value
    space = vectors.rank - 1
    return w.emit(
        "scatter",
        [value, vectors, updates],
        value.shape,
        value.dtype,
        update_window_dims=[*range(place), *range(place + space, updates.rank)],
        inserted_window_dims=sorted(axes),
        input_batching_dims=[],
        scatter_indices_batching_dims=[],
        scatter_dims_to_operand_dims=list(axes),
        index_vector_dim=space,
        mode=mode,
        reducer=reducer,
    )


def _column(w: Writer, index: Value) -> Value:
    """Scalar indices as vectors of one entry."""
    return w.reshape(w.convert(index, "int64"), [*index.shape, 1])


@rule("embedding.default")
def _embedding(w: Writer, a: Any) -> Value:
    return _take(w, a.weight, _column(w, a.indices), [0], 0)


@rule("embedding_dense_backward.default")
def _embedding_backward(w: Writer, a: Any) -> Value:
    """Each row's gradients added up in the order of the indices; those at padding_idx are left out."""
    shape, dtype = w.out[0]
    index = w.convert(a.indices, "int64")
    outside = w.full(shape[0], index)
    if a.padding_idx >= 0:
        index = w.select(w.compare("EQ", index, w.full(a.padding_idx, index)), outside, index)
    grad = a.grad_output
    if a.scale_grad_by_freq:
        raise _Refused("gradients scaled by the frequency of their index")
    zeros = w.broadcast(w.scalar(0, dtype), shape)
    return _store(w, zeros, _column(w, index), grad, [0], 0, "add", "drop")


@rule("index_select.default")
def _index_select(w: Writer, a: Any) -> Value:
    if not a.self.rank:
        return a.self
    axis = normal_axis(a.dim, a.self.rank)
    index = a.index if a.index.rank else w.reshape(a.index, [1])
    return _take(w, a.self, _column(w, index), [axis], axis)


@dataclass(frozen=True)
class _Places:
    """What a list of index tensors names: vectors, the axes they index, where the index space lies in the result."""

    vectors: Value
    axes: list[int]
    place: int
    shape: tuple[int, ...]


def _places(w: Writer, shape: Sequence[int], indices: Sequence[Value | None]) -> _Places:
    """NumPy's advanced indexing: the index space takes the place of the indexed axes where these are adjacent, and is
    first where they are not. Negative indices count from the end."""
    axes = [axis for axis, index in enumerate(indices) if index is not None]
    given = [index for index in indices if index is not None]
    if any(index.dtype == "bool" for index in given):
        raise _Refused("the size of a selection by a mask depends on the mask's values")
    vectors = _stacked(w, [_wrapped(w, index, shape[axis]) for axis, index in zip(axes, given, strict=True)])
    adjacent = axes == list(range(axes[0], axes[0] + len(axes)))
    place = axes[0] if adjacent else 0
    rest = [size for axis, size in enumerate(shape) if axis not in axes]
    return _Places(vectors, axes, place, (*rest[:place], *vectors.shape[:-1], *rest[place:]))


@rule("index.Tensor", "_unsafe_index.Tensor")
def _index(w: Writer, a: Any) -> Value:
    places = _places(w, a.self.shape, a.indices)
    return _take(w, a.self, places.vectors, places.axes, places.place)


@rule("index_put.default", "_unsafe_index_put.default", "_index_put_impl.default")
def _index_put(w: Writer, a: Any) -> Value:
    """With a mask only where all chosen elements get the same values, since the number of others depends on it."""
    masks = [index for index in a.indices if index is not None and index.dtype == "bool"]
    values = w.convert(a.values, a.self.dtype)
    if masks:
        lead = next(axis for axis, index in enumerate(a.indices) if index is not None)
        mask = masks[0]
        tail = a.self.rank - lead - mask.rank
        if len(masks) > 1 or any(i is not None and i is not mask for i in a.indices) or (lead and values.size != 1):
            raise _Refused("a mask together with other indices")
        if values.rank > tail and values.shape[-tail - 1] != 1:
            raise _Refused("which value goes where depends on the mask's values")
        while values.rank > tail:
            values = w.reshape(values, values.shape[1:])
        chosen = w.along(mask, a.self.shape, range(lead, lead + mask.rank))
        values = w.broadcast(values, a.self.shape)
        if a.accumulate:
            values = w.op("or" if values.kind == "bool" else "add", a.self, values)
        return w.select(chosen, values, a.self)
    places = _places(w, a.self.shape, a.indices)
    adding = "maximum" if a.self.kind == "bool" else "add"  # true + true is true
    reducer = adding if a.accumulate else "replace"
    values = w.broadcast(values, places.shape)
    return _store(w, a.self, places.vectors, values, places.axes, places.place, reducer)


@rule("put.default")
def _put_flat(w: Writer, a: Any) -> Value:
    flat, index = w.reshape(a.self, [a.self.size]), w.reshape(a.index, [a.index.size])
    source = w.reshape(w.convert(a.source, a.self.dtype), [a.index.size])
    vectors = _column(w, _wrapped(w, index, a.self.size))
    reducer = ("maximum" if a.self.kind == "bool" else "add") if a.accumulate else "replace"
    return w.reshape(_store(w, flat, vectors, source, [0], 0, reducer), a.self.shape)


@rule("gather.default")
def _gather(w: Writer, a: Any) -> Value:
    """result[i] = self[i with index[i] at axis dim]; the other axes of index may be shorter."""
    if not a.self.rank:
        return w.broadcast(a.self, a.index.shape)
    index = a.index if a.index.rank else w.reshape(a.index, [1])
    axis, value = normal_axis(a.dim, a.self.rank), a.self
    if not index.size:
        return w.broadcast(w.scalar(0, value.dtype), w.out[0][0])
    for other in range(value.rank):
        if other != axis:
            value = w.slice(value, other, 0, index.shape[other])
    return w.reshape(_picked(w, value, index, axis), w.out[0][0])


def _picked(w: Writer, value: Value, index: Value, axis: int) -> Value:
    """value[i with index[i] at ``axis``]; the other axes are of equal sizes."""
    others = [other for other in range(value.rank) if other != axis]
    return w.emit(
        "gather",
        [value, w.convert(index, "int64")],
        index.shape,
        value.dtype,
        offset_dims=[],
        collapsed_slice_dims=[axis],
        operand_batching_dims=others,
        start_indices_batching_dims=others,
        start_index_map=[axis],
        index_vector_dim=index.rank,
        slice_sizes=[1] * value.rank,
        mode="clip",
    )


def _scattered(w: Writer, value: Value, dim: int, index: Value, source: Operand, reducer: str) -> Value:
    """self[i with index[i] at axis dim] = reducer(that, source[i]) for all i of index, in row-major order."""
    shape = value.shape
    if value.kind == "bool":  # sums and products of Booleans are Booleans
        reducer = {"add": "maximum", "multiply": "minimum"}.get(reducer, reducer)
    if not value.rank:
        value = w.reshape(value, [1])
    if not index.rank:
        index = w.reshape(index, [1])
    if isinstance(source, Value):
        source = w.convert(source, value.dtype)
        source = source if source.rank else w.reshape(source, [1])
        for other in range(index.rank):
            source = w.slice(source, other, 0, index.shape[other])
    else:
        source = w.full(source, index, value.dtype)
    if not index.size:
        return w.reshape(value, shape)
    axis = normal_axis(dim, value.rank)
    index = w.convert(index, "int64")
    if all(index.shape[d] == value.shape[d] for d in range(value.rank) if d != axis):
        others = [d for d in range(value.rank) if d != axis]
        result = w.emit(
            "scatter",
            [value, index, source],
            value.shape,
            value.dtype,
            update_window_dims=[],
            inserted_window_dims=[axis],
            input_batching_dims=others,
            scatter_indices_batching_dims=others,
            scatter_dims_to_operand_dims=[axis],
            index_vector_dim=index.rank,
            mode="clip",
            reducer=reducer,
        )
        return w.reshape(result, shape)
    coordinates = [
        index if d == axis else w.emit("iota", [], index.shape, "int64", iota_dimension=d) for d in range(value.rank)
    ]
    return w.reshape(_store(w, value, _stacked(w, coordinates), source, range(value.rank), 0, reducer), shape)


_REDUCE_NAMES = {"sum": "add", "add": "add", "prod": "multiply", "multiply": "multiply"}
_REDUCE_NAMES |= {"amax": "maximum", "amin": "minimum", "mean": "add"}


@rule("scatter.src", "scatter.value", "scatter.reduce", "scatter.value_reduce", "scatter_add.default")
def _scatter(w: Writer, a: Any) -> Value:
    source = a.src if hasattr(a, "src") else a.value
    reducer = "add" if a.operator == "scatter_add" else _REDUCE_NAMES.get(getattr(a, "reduce", None) or "", "replace")
    if a.self.kind == "bool" and reducer in ("add", "multiply"):
        return w.convert(_scattered(w, w.convert(a.self, "uint8"), a.dim, a.index, source, reducer), "bool")
    return _scattered(w, a.self, a.dim, a.index, source, reducer)


def _identity_of(reducer: str, dtype: str) -> int | float:
    """The number that leaves every other as it is."""
    if reducer in ("add", "multiply"):
        return int(reducer == "multiply")
    if kind_of(dtype) == "float":
        return -math.inf if reducer == "maximum" else math.inf
    if dtype == "bool":
        return int(reducer == "minimum")
    limits = torch.iinfo(TORCH_DTYPES[dtype])
    return limits.min if reducer == "maximum" else limits.max


def _reduced_into(w: Writer, value: Value, dim: int, index: Value, source: Value, name: str, include: bool) -> Value:
    """native/TensorAdvancedIndexing.cpp: without include_self the elements that are written begin at the identity;
    a mean is the sum divided by the count, floored for integers."""
    reducer = _REDUCE_NAMES[name]
    start = value
    if not include:
        start = _scattered(w, value, dim, index, _identity_of(reducer, value.dtype), "replace")
    result = _scattered(w, start, dim, index, source, reducer)
    if name != "mean":
        return result
    ones = w.full(1 if include else 0, value)
    count = _scattered(w, ones, dim, index, 1, "add")
    count = w.select(w.compare("EQ", count, w.full(0, count)), w.full(1, count), count)
    quotient = w.op("divide", result, count)
    if value.kind != "int":
        return quotient
    down = _differs_in_sign(w, w.op("remainder", result, count), count)
    return w.op("subtract", quotient, w.convert(down, value.dtype))


@rule("scatter_reduce.two")
def _scatter_reduce(w: Writer, a: Any) -> Value:
    return _reduced_into(w, a.self, a.dim, a.index, a.src, a.reduce, a.include_self)


def _row_index(w: Writer, index: Value, source: Value, axis: int) -> Value:
    """The index of each slice along ``axis``, in the shape of ``source``."""
    index = index if index.rank else w.reshape(index, [1])
    return w.along(w.convert(index, "int64"), source.shape, [axis]) if source.rank else index


@rule("index_reduce.default")
def _index_reduce(w: Writer, a: Any) -> Value:
    axis = normal_axis(a.dim, a.self.rank) if a.self.rank else 0
    index = _row_index(w, a.index, a.source, axis)
    return _reduced_into(w, a.self, axis, index, a.source, a.reduce, a.include_self)


@rule("index_add.default")
def _index_add(w: Writer, a: Any) -> Value:
    axis = normal_axis(a.dim, a.self.rank) if a.self.rank else 0
    source = w.op("multiply", a.source, w.full(a.alpha, a.source)) if a.alpha != 1 else a.source
    return _scattered(w, a.self, axis, _row_index(w, a.index, source, axis), source, "add")


@rule("index_copy.default")
def _index_copy(w: Writer, a: Any) -> Value:
    axis = normal_axis(a.dim, a.self.rank) if a.self.rank else 0
    return _scattered(w, a.self, axis, _row_index(w, a.index, a.source, axis), a.source, "replace")


def _flat_take(w: Writer, value: Value, table: torch.Tensor) -> Value:
    """The elements of ``value``, read row by row, at the places that a constant table names."""
    vectors = w.constant(table.to(torch.int64).reshape([*table.shape, 1]))
    return _take(w, w.reshape(value, [value.size]), vectors, [0], 0)


def _storage_places(a: Any) -> torch.Tensor:
    """For ``as_strided``: the element of ``self``, row by row, that each place of the result shows."""
    shape, strides = a.self.shape, a.strides["self"]
    reach = sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + 1 if a.self.size else 0
    start = a.storage_offset or 0
    wanted = torch.as_strided(
        torch.arange(start + sum(max(n - 1, 0) * s for n, s in zip(a.size, a.stride, strict=True)) + 1),
        list(a.size),
        list(a.stride),
        start,
    )
    held = torch.full((max(reach, int(wanted.max()) + 1 if wanted.numel() else 0),), -1)
    held.as_strided(shape, strides).copy_(torch.arange(a.self.size).reshape(shape))
    table = held[wanted]
    if (table < 0).any():
        raise _Refused("it reads memory that the tensor does not show")
    return table


@rule("as_strided.default", "as_strided_copy.default")
def _as_strided(w: Writer, a: Any) -> Value:
    return _flat_take(w, a.self, _storage_places(a))


@rule("as_strided_scatter.default")
def _as_strided_scatter(w: Writer, a: Any) -> Value:
    table = _storage_places(a)
    vectors = w.constant(table.reshape([*table.shape, 1]))
    flat = w.reshape(a.self, [a.self.size])
    return w.reshape(_store(w, flat, vectors, w.convert(a.src, a.self.dtype), [0], 0), a.self.shape)


@rule("unfold.default")
def _unfold(w: Writer, a: Any) -> Value:
    """Windows of ``size`` elements, ``step`` apart, along a new last axis."""
    if not a.self.rank:
        return w.reshape(a.self, w.out[0][0])
    axis = normal_axis(a.dimension, a.self.rank)
    count = w.out[0][0][axis]
    table = torch.arange(count)[:, None] * a.step + torch.arange(a.size)
    windows = _take(w, a.self, w.constant(table[:, :, None]), [axis], axis)
    axes = list(range(windows.rank))
    axes.append(axes.pop(axis + 1))
    return w.transpose(windows, axes)


@rule("masked_scatter.default")
def _masked_scatter(w: Writer, a: Any) -> Value:
    """The n-th true element of the mask takes the n-th element of source."""
    shape, dtype = w.out[0]
    mask, value = w.operand(a.mask, "bool", shape), w.operand(a.self, dtype, shape)
    source = w.reshape(w.convert(a.source, dtype), [a.source.size])
    if not value.size or not source.size:
        return value
    marks = w.convert(w.reshape(mask, [value.size]), "int64")
    order = w.emit("cumulative", [marks], marks.shape, "int64", dimension=0, reducer="add")
    place = w.op("subtract", order, w.full(1, order))
    taken = w.reshape(_take(w, source, _column(w, place), [0], 0), shape)
    return w.select(mask, taken, value)


@rule("searchsorted.Tensor", "searchsorted.Scalar", "bucketize.Tensor", "bucketize.Scalar")
def _searchsorted(w: Writer, a: Any) -> Value:
    """The number of sorted elements below the value (with right: not above); NaN is beyond all numbers."""
    shape, dtype = w.out[0]
    edges = a.boundaries if a.operator == "bucketize" else a.sorted_sequence
    side = getattr(a, "side", None)
    right = a.right or side == "right"
    if getattr(a, "sorter", None) is not None:
        if edges.rank != 1:
            raise _Refused("a sorter of rank above 1")
        edges = _take(w, edges, _column(w, a.sorter), [0], 0)
    common = promoted(edges, a.self)
    if not isinstance(a.self, Value):
        common = edges.dtype
    value, edges = w.operand(a.self, common, shape), w.convert(edges, common)
    count = edges.shape[-1]
    wide = [*shape, count]
    here = w.along(value, wide, range(len(shape)))
    row = w.along(edges, wide, [len(shape)] if edges.rank == 1 else range(edges.rank))
    below = w.compare("LE" if right else "LT", row, here)
    if value.kind == "float":
        nan = w.compare("NE", here, here)
        ordered = w.compare("EQ", row, row)
        below = w.op("or", below, nan if right else w.op("and", nan, ordered))
    return w.reduce(w.convert(below, dtype), "add", [len(shape)])


@rule("tril_indices.default", "triu_indices.default")
def _triangle(w: Writer, a: Any) -> Value:
    make = torch.tril_indices if a.operator == "tril_indices" else torch.triu_indices
    return w.constant(make(a.row, a.col, a.offset, dtype=TORCH_DTYPES[w.out[0][1]]))


def _groups(w: Writer, ends: Value, rows: int) -> Value:
    """The group of each row, where group g ends before row ``ends[g]``; the number of groups beyond the last. int64."""
    row = _places_of(w, [rows, ends.size], 0)
    past = w.compare("LE", w.along(w.convert(ends, "int64"), row.shape, [1]), row)
    return w.reduce(w.convert(past, "int64"), "add", [1])


def _grouped_product(w: Writer, lhs: Value, weights: Value, ends: Value, dtype: str) -> Value:
    """Each row of ``lhs`` times the matrix of its group; rows beyond the last group give zeros."""
    count, (rows, inner) = weights.shape[0], lhs.shape
    group = _groups(w, ends, rows)
    matrices = _take(w, weights, _column(w, group), [0], 0)
    result = w.dot(w.reshape(lhs, [rows, 1, inner]), matrices, 1, 2, 1, dtype)
    result = w.reshape(result, [rows, weights.shape[-1]])
    inside = w.along(w.compare("LT", group, w.full(count, group)), result.shape, [0])
    return w.select(inside, result, w.full(0, result))


@rule("_grouped_mm.default")
def _grouped_mm(w: Writer, a: Any) -> Value:
    if a.self.rank != 2 or a.mat2.rank != 3 or a.bias is not None:
        raise _Refused("a form other than the rows of a matrix by a matrix for each group")
    return _grouped_product(w, a.self, a.mat2, a.offs, w.out[0][1])


def _grouped_mm_fallback(w: Writer, a: Any) -> Value:
    """Hugging Face transformers' operator for mixtures of experts (integrations/moe.py)."""
    return _grouped_product(w, a.input, a.weight, a.offs, w.out[0][1])


def _grouped_mm_fallback_backward(w: Writer, a: Any) -> list[Value | None]:
    """Gradients of the rows, and of each matrix: the products of the rows and gradients of its group."""
    turned = w.transpose(a.weight, [0, 2, 1])
    rows = _grouped_product(w, a.grad_output, turned, a.offs, w.out[0][1])
    count, height = a.weight.shape[0], a.input.shape[0]
    group = _groups(w, a.offs, height)
    mine = w.compare("EQ", w.along(group, [count, height], [1]), _places_of(w, [count, height], 0))
    parts = []
    for x in (a.input, a.grad_output):
        wide = w.along(x, [count, *x.shape], [1, 2])
        parts.append(w.select(w.along(mine, wide.shape, [0, 1]), wide, w.full(0, wide)))
    return [rows, w.dot(*parts, 1, 1, 1, w.out[1][1])]


RULES["transformers.grouped_mm_fallback.default"] = _grouped_mm_fallback
RULES["transformers.grouped_mm_fallback_backward.default"] = _grouped_mm_fallback_backward


# ---- rules: convolutions and pooling --------------------------------------------------------------------------------


def _per_axis(given: Any, count: int, default: int = 0) -> list[int]:
    """A list of one entry per spatial axis; a single entry stands for all, an empty list for the default."""
    items = list(given) if isinstance(given, (list, tuple)) else [given]
    return [default] * count if not items else items * count if len(items) == 1 else items


def _convolved(
    w: Writer,
    lhs: Value,
    rhs: Value,
    shape: Sequence[int],
    *,
    strides: Sequence[int],
    low: Sequence[int],
    high: Sequence[int],
    lhs_dilation: Sequence[int],
    rhs_dilation: Sequence[int],
    reverse: bool = False,
    groups: int = 1,
    batch_groups: int = 1,
    swapped: bool = False,
) -> Value:
    """A convolution of operands in torch's layout; ``swapped`` takes axis 1 as the batch, and axis 0 as the features,
    of both operands and of the result. 16-bit formats accumulate in float32, which is then the result's dtype."""
    rank = lhs.rank
    plain, other = list(range(rank)), [1, 0, *range(2, rank)]
    axes = other if swapped else plain
    attrs: dict[str, Any] = {
        "lhs_dimensions": axes,
        "rhs_dimensions": axes,
        "output_dimensions": axes,
        "window_strides": list(strides),
        "padding_low": list(low),
        "padding_high": list(high),
        "lhs_dilation": list(lhs_dilation),
        "rhs_dilation": list(rhs_dilation),
        "window_reversal": [int(reverse)] * (rank - 2),
    }
    if groups > 1:
        attrs["feature_group_count"] = groups
    if batch_groups > 1:
        attrs["batch_group_count"] = batch_groups
    dtype = "float32" if lhs.dtype in REDUCED else lhs.dtype
    return w.emit("convolution", [lhs, rhs], shape, dtype, **attrs)


def _exchanged(w: Writer, weight: Value, groups: int) -> Value:
    """A kernel with its input and output features exchanged within each group: [g * a, b, …] as [g * b, a, …]."""
    a, b, *window = weight.shape
    if groups == 1:
        return w.transpose(weight, [1, 0, *range(2, weight.rank)])
    split = w.reshape(weight, [groups, a // groups, b, *window])
    turned = w.transpose(split, [0, 2, 1, *range(3, split.rank)])
    return w.reshape(turned, [groups * b, a // groups, *window])


@dataclass(frozen=True)
class _Window:
    """The attributes of a torch convolution, one entry per spatial axis."""

    size: list[int]
    strides: list[int]
    padding: list[int]
    dilation: list[int]
    groups: int


def _forward(w: Writer, x: Value, weight: Value, shape: Sequence[int], c: _Window) -> Value:
    ones = [1] * len(c.size)
    return _convolved(
        w,
        x,
        weight,
        shape,
        strides=c.strides,
        low=c.padding,
        high=c.padding,
        lhs_dilation=ones,
        rhs_dilation=c.dilation,
        groups=c.groups,
    )


def _adjoint(w: Writer, y: Value, weight: Value, shape: Sequence[int], c: _Window) -> Value:
    """The transposed convolution: y with holes, padded to give ``shape``, and the kernel turned round."""
    reach = [d * (k - 1) for d, k in zip(c.dilation, c.size, strict=True)]
    low = [r - p for r, p in zip(reach, c.padding, strict=True)]
    spread = [(n - 1) * s + 1 for n, s in zip(y.shape[2:], c.strides, strict=True)]
    high = [n + r - e - z for n, r, e, z in zip(shape[2:], reach, low, spread, strict=True)]
    return _convolved(
        w,
        y,
        _exchanged(w, weight, c.groups),
        shape,
        strides=[1] * len(c.size),
        low=low,
        high=high,
        lhs_dilation=c.strides,
        rhs_dilation=c.dilation,
        reverse=True,
        groups=c.groups,
    )


def _kernel_gradient(w: Writer, x: Value, y: Value, shape: Sequence[int], c: _Window) -> Value:
    """sum over batch and places of x[n, i, p * stride + k * dilation - padding] * y[n, o, p], as [o, i, k]."""
    spread = [(n - 1) * s + 1 for n, s in zip(y.shape[2:], c.strides, strict=True)]
    high = [
        (k - 1) * d + z - p - n
        for k, d, z, p, n in zip(c.size, c.dilation, spread, c.padding, x.shape[2:], strict=True)
    ]
    return _convolved(
        w,
        x,
        y,
        shape,
        strides=c.dilation,
        low=c.padding,
        high=high,
        lhs_dilation=[1] * len(c.size),
        rhs_dilation=c.strides,
        batch_groups=c.groups,
        swapped=True,
    )


def _window_of(a: Any) -> _Window:
    size = list(a.weight.shape[2:])
    count = len(size)
    return _Window(
        size, _per_axis(a.stride, count, 1), _per_axis(a.padding, count), _per_axis(a.dilation, count, 1), a.groups
    )


@rule("convolution.default")
def _convolution(w: Writer, a: Any) -> Value:
    """The sum of products, then the bias added; 16-bit formats in float32, rounded once at the end."""
    shape, dtype = w.out[0]
    if not math.prod(shape) or not a.input.size:
        result = w.broadcast(w.scalar(0, "float32" if dtype in REDUCED else dtype), shape)
    else:
        result = (_adjoint if a.transposed else _forward)(w, a.input, a.weight, shape, _window_of(a))
    if a.bias is not None:
        result = w.op("add", result, w.along(w.convert(a.bias, result.dtype), shape, [1]))
    return w.convert(result, dtype)


@rule("convolution_backward.default")
def _convolution_backward(w: Writer, a: Any) -> list[Value | None]:
    """Gradients of the input, the kernel and the bias, those that output_mask asks for."""
    y, x, weight, c = a.grad_output, a.input, a.weight, _window_of(a)
    results: list[Value | None] = [None, None, None]
    if a.output_mask[0]:
        back = _forward if a.transposed else _adjoint
        results[0] = w.convert(back(w, y, weight, x.shape, c), x.dtype)
    if a.output_mask[1]:
        near, far = (y, x) if a.transposed else (x, y)
        results[1] = w.convert(_kernel_gradient(w, near, far, weight.shape, c), weight.dtype)
    if a.output_mask[2]:
        results[2] = w.reduce(y, "add", [axis for axis in range(y.rank) if axis != 1], wide=True)
    return results


@dataclass(frozen=True)
class _Pool:
    """Windows over the last axes: size, stride, padding and dilation per axis, and the places that windows have."""

    size: list[int]
    strides: list[int]
    padding: list[int]
    dilation: list[int]
    places: list[int]

    def table(self, shape: Sequence[int]) -> torch.Tensor:
        """For each place the elements of its window, [places, elements], as indices into the flat plane; -1 where the
        window hangs over the edge."""
        ranges = []
        for k, s, p, d, n in zip(self.size, self.strides, self.padding, self.dilation, self.places, strict=True):
            ranges.append(torch.arange(n)[:, None] * s - p + torch.arange(k) * d)
        return _crossed(ranges, shape)


def _crossed(ranges: Sequence[torch.Tensor], shape: Sequence[int]) -> torch.Tensor:
    """Windows of each axis, [places, elements] of indices, joined to windows of the plane in row-major order."""
    flat, inside = torch.zeros(1, 1, dtype=torch.int64), torch.ones(1, 1, dtype=torch.bool)
    for index, size in zip(ranges, shape, strict=True):
        valid = (index >= 0) & (index < size)
        places, elements = flat.shape[0] * index.shape[0], flat.shape[1] * index.shape[1]
        flat = (flat[:, None, :, None] * size + index[None, :, None, :]).reshape(places, elements)
        inside = (inside[:, None, :, None] & valid[None, :, None, :]).reshape(places, elements)
    return torch.where(inside, flat, -1)


def _plane(w: Writer, value: Value, count: int) -> Value:
    """The last ``count`` axes as one, the axes before them as one too."""
    lead = value.shape[: value.rank - count]
    return w.reshape(value, [math.prod(lead), math.prod(value.shape[value.rank - count :])])


def _windows(w: Writer, plane: Value, table: torch.Tensor, fill: float | int) -> Value:
    """[rows, places, elements]: the elements of each window of a plane, ``fill`` where the table has -1."""
    if (table < 0).any():
        edge = w.broadcast(w.scalar(fill, plane.dtype), [plane.shape[0], 1])
        plane, table = w.concatenate([plane, edge], 1), torch.where(table < 0, plane.shape[1], table)
    return _take(w, plane, w.constant(table[:, :, None].contiguous()), [1], 1)


def _lowest(dtype: str) -> float | int:
    return _identity_of("maximum", dtype)


def _pool_of(a: Any, count: int, shape: Sequence[int]) -> _Pool:
    size = _per_axis(a.kernel_size, count)
    stride = _per_axis(a.stride, count) if a.stride else size
    dilation = _per_axis(getattr(a, "dilation", 1), count)
    return _Pool(size, stride, _per_axis(a.padding, count), dilation, list(shape[len(shape) - count :]))


def _reduced_windows(w: Writer, value: Value, pool: _Pool, reducer: str) -> Value:
    lead = value.rank - len(pool.size)
    sizes = value.shape[lead:]
    high = [
        (n - 1) * s + d * (k - 1) + 1 - size - p
        for n, s, d, k, size, p in zip(
            pool.places, pool.strides, pool.dilation, pool.size, sizes, pool.padding, strict=True
        )
    ]
    ones = [1] * lead
    return w.emit(
        "reduce_window",
        [value],
        [*value.shape[:lead], *pool.places],
        value.dtype,
        reducer=reducer,
        window_dimensions=ones + pool.size,
        window_strides=ones + pool.strides,
        window_dilations=ones + pool.dilation,
        base_dilations=[1] * value.rank,
        padding_low=[0] * lead + pool.padding,
        padding_high=[0] * lead + high,
    )


def _greatest_places(w: Writer, value: Value, table: torch.Tensor, count: int, shape: Sequence[int]) -> Value:
    """The index in the plane of the first greatest element of each window; padding is looked at last, so that it is
    never chosen."""
    table = table.gather(1, (table < 0).to(torch.int8).argsort(dim=1, stable=True))
    elements = _windows(w, _plane(w, value, count), table, _lowest(value.dtype))
    chosen = w.emit("argmax", [elements], elements.shape[:2], "int64", dimension=2)
    row = w.emit("iota", [], chosen.shape, "int64", iota_dimension=1)
    place = w.op("add", w.op("multiply", row, w.full(table.shape[1], row)), chosen)
    flat = w.constant(table.reshape(-1).contiguous())
    return w.reshape(_take(w, flat, _column(w, place), [0], 0), shape)


def _max_pool(count: int) -> Rule:
    def write(w: Writer, a: Any) -> list[Value | None]:
        """The greatest element of each window, NaN before all, and its index in the plane (the first of equals)."""
        shape = w.out[0][0]
        pool = _pool_of(a, count, shape)
        values = _reduced_windows(w, a.self, pool, "maximum")
        table = pool.table(a.self.shape[a.self.rank - count :])
        return [values, _greatest_places(w, a.self, table, count, shape)]

    return write


def _max_pool_backward(count: int) -> Rule:
    def write(w: Writer, a: Any) -> Value:
        """Each gradient added at the index of its window's greatest element."""
        grad, index = _plane(w, a.grad_output, count), _plane(w, a.indices, count)
        zeros = w.full(0, _plane(w, a.self, count))
        return w.reshape(_scattered(w, zeros, 1, index, grad, "add"), w.out[0][0])

    return write


def _divisors(a: Any, pool: _Pool, shape: Sequence[int]) -> torch.Tensor:
    """What each window's sum is divided by: the window cut off at the padding's end, or the elements it holds."""
    if getattr(a, "divisor_override", None):
        return torch.full(pool.places, float(a.divisor_override))
    total = torch.ones([1] * len(shape))
    for axis, size in enumerate(shape):
        k, s, p, n = pool.size[axis], pool.strides[axis], pool.padding[axis], pool.places[axis]
        start = torch.arange(n) * s - p
        end = torch.clamp(start + k, max=size + p)
        if not a.count_include_pad:
            start, end = start.clamp(min=0), end.clamp(max=size)
        extent = [1] * len(shape)
        extent[axis] = n
        total = total * (end - start).reshape(extent)
    return total


def _avg_pool(count: int) -> Rule:
    def write(w: Writer, a: Any) -> Value:
        """The sum of each window divided by its size; 16-bit formats in float32, rounded once."""
        shape, dtype = w.out[0]
        (value,), _ = w.in_float32(dtype, [a.self], a.self.shape)
        pool = _pool_of(a, count, shape)
        total = _reduced_windows(w, value, pool, "add")
        sizes = _divisors(a, pool, value.shape[value.rank - count :])
        divisor = w.constant(sizes.to(TORCH_DTYPES[value.dtype]).expand(pool.places).contiguous())
        if (sizes == sizes.flatten()[0]).all():
            divisor = w.scalar(float(sizes.flatten()[0]), value.dtype)
        return w.convert(w.op("divide", total, w.broadcast(divisor, shape)), dtype)

    return write


def _spread(w: Writer, grad: Value, table: torch.Tensor, shape: Sequence[int], count: int) -> Value:
    """Zeros in ``shape`` to which each place's gradient [rows, places] is added at all elements of its window."""
    rows, size = grad.shape[0], math.prod(shape[len(shape) - count :])
    updates = w.along(grad, [rows, *table.shape], [0, 1])
    vectors = w.constant(torch.where(table < 0, size, table)[:, :, None].contiguous())
    zeros = w.broadcast(w.scalar(0, grad.dtype), [rows, size])
    return w.reshape(_store(w, zeros, vectors, updates, [1], 1, "add", "drop"), shape)


def _avg_pool_backward(count: int) -> Rule:
    def write(w: Writer, a: Any) -> Value:
        shape, dtype = w.out[0]
        (grad,), _ = w.in_float32(dtype, [a.grad_output], a.grad_output.shape)
        pool, plane = _pool_of(a, count, grad.shape), a.self.shape[a.self.rank - count :]
        sizes = _divisors(a, pool, plane).to(TORCH_DTYPES[grad.dtype]).expand(pool.places).contiguous()
        grad = w.op("divide", grad, w.broadcast(w.constant(sizes), grad.shape))
        return w.convert(_spread(w, _plane(w, grad, count), pool.table(plane), shape, count), dtype)

    return write


def _adaptive_ranges(sizes: Sequence[int], places: Sequence[int]) -> list[torch.Tensor]:
    """Window i of n over an axis: from floor(i * size / n) to ceil((i + 1) * size / n); -1 beyond its end."""
    ranges = []
    for size, count in zip(sizes, places, strict=True):
        start = torch.tensor([i * size // count for i in range(count)], dtype=torch.int64)
        end = torch.tensor([-(-(i + 1) * size // count) for i in range(count)], dtype=torch.int64)
        index = start[:, None] + torch.arange(int((end - start).max()) if count else 0)
        ranges.append(torch.where(index < end[:, None], index, -1))
    return ranges


def _adaptive_counts(ranges: Sequence[torch.Tensor], dtype: str) -> list[torch.Tensor]:
    """The window's extent along each axis, shaped to broadcast over the plane."""
    counts = []
    for axis, index in enumerate(ranges):
        shape = [1] * len(ranges)
        shape[axis] = index.shape[0]
        counts.append((index >= 0).sum(1).to(TORCH_DTYPES[dtype]).reshape(shape))
    return counts


def _divided_by_extents(w: Writer, value: Value, ranges: Sequence[torch.Tensor]) -> Value:
    """By each axis' extent in turn, as native/cpu/AdaptiveAvgPoolKernel.cpp has it: sum / kh / kw."""
    for extent in _adaptive_counts(ranges, value.dtype):
        value = w.op("divide", value, w.broadcast(w.constant(extent), value.shape))
    return value


def _adaptive_avg_pool(count: int) -> Rule:
    def write(w: Writer, a: Any) -> Value:
        shape, dtype = w.out[0]
        (value,), _ = w.in_float32(dtype, [a.self], a.self.shape)
        sizes, places = value.shape[value.rank - count :], shape[len(shape) - count :]
        ranges = _adaptive_ranges(sizes, places)
        elements = _windows(w, _plane(w, value, count), _crossed(ranges, sizes), 0)
        total = w.reshape(w.reduce(elements, "add", [2]), shape)
        return w.convert(_divided_by_extents(w, total, ranges), dtype)

    return write


def _adaptive_avg_pool_backward(count: int) -> Rule:
    def write(w: Writer, a: Any) -> Value:
        shape, dtype = w.out[0]
        (grad,), _ = w.in_float32(dtype, [a.grad_output], a.grad_output.shape)
        sizes = shape[len(shape) - count :]
        ranges = _adaptive_ranges(sizes, grad.shape[grad.rank - count :])
        grad = _plane(w, _divided_by_extents(w, grad, ranges), count)
        return w.convert(_spread(w, grad, _crossed(ranges, sizes), shape, count), dtype)

    return write


def _adaptive_max_pool(count: int) -> Rule:
    def write(w: Writer, a: Any) -> list[Value | None]:
        shape = w.out[0][0]
        sizes = a.self.shape[a.self.rank - count :]
        table = _crossed(_adaptive_ranges(sizes, shape[len(shape) - count :]), sizes)
        elements = _windows(w, _plane(w, a.self, count), table, _lowest(a.self.dtype))
        values = w.reshape(w.reduce(elements, "maximum", [2]), shape)
        return [values, _greatest_places(w, a.self, table, count, shape)]

    return write


for _count in (1, 2, 3):
    RULES[f"aten.max_pool{_count}d_with_indices.default"] = _max_pool(_count)
    RULES[f"aten.max_pool{_count}d_with_indices_backward.default"] = _max_pool_backward(_count)
    RULES[f"aten.avg_pool{_count}d.default"] = _avg_pool(_count)
    RULES[f"aten.avg_pool{_count}d_backward.default"] = _avg_pool_backward(_count)
    RULES[f"aten.adaptive_max_pool{_count}d.default"] = _adaptive_max_pool(_count)
    RULES[f"aten.adaptive_max_pool{_count}d_backward.default"] = _max_pool_backward(_count)
    for _prefix in ("", "_"):
        RULES[f"aten.{_prefix}adaptive_avg_pool{_count}d.default"] = _adaptive_avg_pool(_count)
        RULES[f"aten.{_prefix}adaptive_avg_pool{_count}d_backward.default"] = _adaptive_avg_pool_backward(_count)


# ---- rules: running totals and sorting ------------------------------------------------------------------------------


def _running(w: Writer, value: Value, axis: int, reducer: str, accumulator: str | None = None) -> Value:
    attrs: dict[str, Any] = {"dimension": axis, "reducer": reducer}
    if accumulator and accumulator != value.dtype:
        attrs["accumulate"] = {"dtype": accumulator, "fma": False, "order": "sequential"}
    return w.emit("cumulative", [value], value.shape, value.dtype, **attrs)


_WIDER = {"float16": "float32", "bfloat16": "float32", "float32": "float64", "complex64": "complex128"}
"""at::acc_type on the CPU: the dtype of a running total."""


@rule("cumsum.default", "cumprod.default")
def _cumsum(w: Writer, a: Any) -> Value:
    value = w.convert(a.self, w.out[0][1])
    if not value.rank:
        return value
    reducer = "add" if a.operator == "cumsum" else "multiply"
    return _running(w, value, normal_axis(a.dim, value.rank), reducer, _WIDER.get(value.dtype))


@rule("cummax.default", "cummin.default")
def _cummax(w: Writer, a: Any) -> list[Value | None]:
    """The greatest so far and the last place where it stood; NaN stays, at its last place."""
    if not a.self.rank:
        return [a.self, w.scalar(0, "int64")]
    axis = normal_axis(a.dim, a.self.rank)
    reducer, direction = ("maximum", "GE") if a.operator == "cummax" else ("minimum", "LE")
    values = _running(w, a.self, axis, reducer)
    here = w.compare(direction, a.self, values)
    if a.self.kind == "float":
        here = w.op("or", here, w.compare("NE", a.self, a.self))
    place = w.emit("iota", [], a.self.shape, "int64", iota_dimension=axis)
    return [values, _running(w, w.select(here, place, w.full(0, place)), axis, "maximum")]


def _complex_logcumsumexp(w: Writer, value: Value, axis: int) -> Value:
    """One element after the other, from log 0: log(1 + exp(low - high)) + high, by the order of the real parts, so that
    the angle is not brought back to one turn (native/cpu/LogAddExp.h); in complex128."""
    order = [axis, *(d for d in range(value.rank) if d != axis)]
    rows = w.transpose(w.convert(value, "complex128"), order)
    nothing = w.broadcast(w.scalar(complex(-math.inf, 0.0), "complex128"), rows.shape[1:])
    inner = Writer()
    total, row = (inner.emit("input", (), rows.shape[1:], "complex128") for _ in range(2))
    for k, name in enumerate(("total", "row")):
        inner.nodes[k]["name"] = name
    parts = [inner.op("real", x, dtype="float64") for x in (row, total)]
    below = inner.compare("LT", *parts)
    low, high = inner.select(below, row, total), inner.select(below, total, row)
    part = inner.op("exponential", inner.op("subtract", low, high))
    after = inner.op("add", inner.op("log_plus_one", part), high)
    both_empty = inner.compare("EQ", inner.op("real", high, dtype="float64"), inner.full(-math.inf, parts[0]))
    after = inner.select(both_empty, low, after)
    types = [(rows.shape[1:], "complex128"), (rows.shape, "complex128")]
    body = _body(inner.nodes, [after.ref, after.ref])
    results = w.emit_several("scan", [nothing, rows], types, [body], length=rows.shape[0], num_consts=0, num_carry=1)
    back = w.transpose(results[1], [order.index(d) for d in range(value.rank)])
    return w.convert(back, value.dtype)


@rule("logcumsumexp.default")
def _logcumsumexp(w: Writer, a: Any) -> Value:
    """log of the running sum of exp(x - m), plus m, with m the greatest of all; the kernel adds logarithms one by one
    (native/cpu/ReduceOpsKernel.cpp), which rounds differently."""
    value = w.convert(a.self, w.out[0][1])
    if not value.rank or not value.size:
        return value
    if value.kind == "complex":
        return _complex_logcumsumexp(w, value, normal_axis(a.dim, value.rank))
    axis = normal_axis(a.dim, value.rank)
    count = value.shape[axis]
    wide = w.convert(value, "float64")
    shape = list(wide.shape)
    pairs = [*shape[: axis + 1], count, *shape[axis + 1 :]]
    peak = _running(w, wide, axis, "maximum")
    infinite = w.compare("EQ", w.op("abs", peak), w.full(math.inf, peak))
    safe = w.select(infinite, w.full(0.0, peak), peak)
    before = [d for d in range(len(pairs)) if d != axis]
    after = [d for d in range(len(pairs)) if d != axis + 1]
    shifted = w.op("subtract", w.along(wide, pairs, before), w.along(safe, pairs, after))
    place = [w.emit("iota", [], pairs, "int64", iota_dimension=d) for d in (axis + 1, axis)]
    powers = w.op("exponential", shifted)
    powers = w.select(w.compare("LE", *place), powers, w.full(0.0, powers))
    total = w.op("log", w.reduce(powers, "add", [axis + 1]))
    return w.convert(w.op("add", total, safe), value.dtype)


def _sorted(w: Writer, value: Value, axis: int, descending: bool) -> list[Value]:
    """Stable, NaN beyond all numbers: the values and their indices."""
    place = w.emit("iota", [], value.shape, "int64", iota_dimension=axis)
    attrs: dict[str, Any] = {"dimension": axis}
    if descending:
        attrs["descending"] = True
    return w.emit_several("sort", [value, place], [(value.shape, value.dtype), (value.shape, "int64")], **attrs)


@rule("sort.default", "sort.stable")
def _sort(w: Writer, a: Any) -> list[Value | None]:
    """Stable, which torch's is only where it is asked to be: otherwise equal elements come in an order of its own."""
    if not a.self.rank:
        return [a.self, w.scalar(0, "int64")]
    return list(_sorted(w, a.self, normal_axis(a.dim, a.self.rank), bool(a.descending)))


@rule("argsort.default", "argsort.stable")
def _argsort(w: Writer, a: Any) -> Value:
    if not a.self.rank:
        return w.scalar(0, "int64")
    return _sorted(w, a.self, normal_axis(a.dim, a.self.rank), bool(a.descending))[1]


@rule("topk.default")
def _topk(w: Writer, a: Any) -> list[Value | None]:
    """The k greatest or least, in order; where elements are equal, torch chooses indices of its own."""
    if not a.self.rank:
        place = w.scalar(0, "int64")
        return [w.reshape(x, w.out[0][0]) for x in (a.self, place)]
    axis = normal_axis(a.dim, a.self.rank)
    if a.largest and a.self.kind != "complex":
        types = [(shape, dtype) for shape, dtype in w.out]
        return list(w.emit_several("top_k", [a.self], types, dimension=axis, k=a.k))
    return [w.slice(x, axis, 0, a.k) for x in _sorted(w, a.self, axis, bool(a.largest))]


def _one_of_axis(w: Writer, values: Sequence[Value], axis: int, place: Value) -> list[Value]:
    """The elements of each tensor at one index along ``axis``; ``place`` has size 1 there."""
    return [_gather_along(w, value, axis, place) for value in values]


def _gather_along(w: Writer, value: Value, axis: int, index: Value) -> Value:
    outer, w.out = w.out, [(index.shape, value.dtype)]
    result = _gather(w, SimpleNamespace(self=value, dim=axis, index=index))
    w.out = outer
    return result


def _order_statistic(w: Writer, value: Value, axis: int, rank: int | None, ignore_nan: bool) -> list[Value]:
    """The rank-th least along an axis, kept with size 1, and an index where it stands; None is the lower median.

    NaN is greatest; the median of a row that has one is NaN at its first place, unless NaN is to be ignored.
    """
    values, places = _sorted(w, value, axis, False)
    count = value.shape[axis]
    middle = (count - 1) // 2 if rank is None else rank
    if rank is None and value.kind == "float":
        nan = w.convert(w.compare("NE", value, value), "int64")
        nans = w.reduce(nan, "add", [axis], keep=True)
        numbers = w.op("subtract", w.full(count, nans), nans)
        if ignore_nan:
            place = w.op("subtract", numbers, w.full(1, numbers))
            place = w.op("shift_right_arithmetic", w.op("maximum", place, w.full(0, place)), w.full(1, place))
        else:
            first = w.op("minimum", numbers, w.full(count - 1, numbers))
            place = w.select(w.compare("GT", nans, w.full(0, nans)), first, w.full(middle, nans))
        return _one_of_axis(w, [values, places], axis, place)
    return [w.slice(x, axis, middle, middle + 1) for x in (values, places)]


@rule("kthvalue.default", "median.dim", "nanmedian.dim")
def _median(w: Writer, a: Any) -> list[Value | None]:
    if not a.self.rank:
        return [a.self, w.scalar(0, "int64")]
    axis = normal_axis(a.dim, a.self.rank)
    rank = a.k - 1 if a.operator == "kthvalue" else None
    found = _order_statistic(w, a.self, axis, rank, a.operator == "nanmedian")
    return [w.reshape(x, shape) for x, (shape, _) in zip(found, w.out, strict=True)]


@rule("median.default", "nanmedian.default")
def _median_of_all(w: Writer, a: Any) -> Value:
    flat = w.reshape(a.self, [a.self.size])
    if not flat.size:
        return w.scalar(math.nan, flat.dtype)
    return w.reshape(_order_statistic(w, flat, 0, None, a.operator == "nanmedian")[0], ())


@rule("mode.default")
def _mode(w: Writer, a: Any) -> list[Value | None]:
    """The least of the most frequent values and the last place where it stands (native/cpu/SortingKernel.cpp)."""
    if not a.self.rank:
        return [a.self, w.scalar(0, "int64")]
    axis = normal_axis(a.dim, a.self.rank)
    values, places = _sorted(w, a.self, axis, False)
    count = values.shape[axis]
    pairs = [*values.shape[: axis + 1], count, *values.shape[axis + 1 :]]
    one = w.along(values, pairs, [d for d in range(len(pairs)) if d != axis + 1])
    other = w.along(values, pairs, [d for d in range(len(pairs)) if d != axis])
    frequency = w.reduce(w.convert(w.compare("EQ", one, other), "int64"), "add", [axis + 1])
    first = _arg(w, "argmax", frequency, axis, True)
    most = w.reduce(frequency, "maximum", [axis], keep=True)
    last = w.op("subtract", w.op("add", first, most), w.full(1, first))
    found = _one_of_axis(w, [values, places], axis, last)
    return [w.reshape(x, shape) for x, (shape, _) in zip(found, w.out, strict=True)]


# ---- rules: interpolation -------------------------------------------------------------------------------------------


def _resized(a: Any, sizes: Sequence[int], places: Sequence[int]) -> list[float]:
    """The distance of source positions per axis: 1 / the scale where one was given, otherwise in / out; with
    align_corners (in - 1) / (out - 1). native/UpSample.h, area_pixel_compute_scale."""
    given = getattr(a, "scale_factors", None)
    if given is None:
        names = ("scales", "scales_d", "scales_h", "scales_w")
        given = [getattr(a, name) for name in names if hasattr(a, name)]
    given = list(given) if given else [None] * len(sizes)
    result = []
    for scale, size, count in zip(given, sizes, places, strict=True):
        if getattr(a, "align_corners", False):
            result.append((size - 1) / (count - 1) if count > 1 else 0.0)
        else:
            result.append(1.0 / scale if scale else size / count)
    return result


@functools.cache
def _contracts() -> bool:
    """Whether torch's kernels are compiled with fused multiply-adds here: x * y - y * x is then what rounding the
    second product leaves."""
    t = np.float32(1) / np.float32(3)
    ends = torch.tensor([[[t, t - np.float32(1)]]], device="cpu")
    return bool(torch.nn.functional.interpolate(ends, size=4, mode="linear", align_corners=True)[0, 0, 1] != 0)


def _fused(x: Any, y: Any, z: Any) -> Any:
    """x * y + z of float32 or float64 arrays: rounded once, or twice where torch's kernels do so."""
    if not _contracts():
        return x * y + z
    x, y, z = np.broadcast_arrays(x, y, z)
    if x.dtype == np.float64:
        exact = [Fraction(i) * Fraction(j) + Fraction(k) for i, j, k in zip(x.flat, y.flat, z.flat, strict=True)]
        return np.array([float(value) for value in exact]).reshape(x.shape)
    product, addend = x.astype(np.float64) * y, z.astype(np.float64)  # exact
    total = product + addend
    back = total - product
    error = (product - (total - back)) + (addend - back)
    inexact = (error != 0) & (total.view(np.int64) % 2 == 0)  # rounded to odd, so that rounding again is right
    return np.where(inexact, np.nextafter(total, np.where(error > 0, np.inf, -np.inf)), total).astype(np.float32)


def _cubic(a: Any, x: Any, to_the_end: bool) -> tuple[Any, Any]:
    """cubic_convolution1 and cubic_convolution2 of native/UpSample.h: for distances up to 1, and from 1 to 2; the last
    addition is fused in the kernel with antialiasing only."""
    two, three, four, five, eight = (x.dtype.type(number) for number in (2, 3, 4, 5, 8))
    one, near = x.dtype.type(1), _fused(a + two, x, -(a + three)) * x
    far = _fused(_fused(a, x, -five * a), x, eight * a)
    if to_the_end:
        return _fused(near, x, one), _fused(far, x, -four * a)
    return near * x + one, far * x - four * a


def _taps(kind: str, scale: float, size: int, count: int, align: bool, real: Any) -> tuple[Any, Any]:
    """[count, taps] source indices and weights of an axis, in the arithmetic of the format ``real``.

    native/UpSample.h: area_pixel_compute_source_index, compute_source_index_and_lambda, get_cubic_upsample_coefficients
    with A = -0.75; nearest: floor(i * scale), exact: floor((i + 0.5) * scale).
    """
    step, place = real(scale), np.arange(count).astype(real)
    half, one = real(0.5), real(1)
    if kind in ("nearest", "exact"):
        position = np.floor((place + (half if kind == "exact" else real(0))) * step)
        return np.minimum(position.astype(np.int64), size - 1)[:, None], None
    position = step * place if align else _fused(step, place + half, -half)
    if kind == "linear":
        if size == count:  # whatever the scale is
            position = place
        position = np.maximum(position, real(0))
    low = np.minimum(np.floor(position.astype(np.float32)).astype(np.int64), size - 1)  # floorf, of doubles too
    t = np.minimum(np.maximum(position - low.astype(real), real(0)), one)
    if kind == "linear":
        return np.stack([low, np.minimum(low + 1, size - 1)], 1), np.stack([one - t, t], 1)
    a = real(-0.75)

    (near, nearer), (far, farther) = (
        [_cubic(a, x, False)[k] for x in distances]
        for k, distances in enumerate([(t, one - t), (t + one, one - t + one)])
    )
    indices = np.clip(low[:, None] + np.arange(-1, 3), 0, size - 1)
    return indices, np.stack([far, near, nearer, farther], 1)


def _smoothed_taps(kind: str, scale: float, size: int, count: int, real: Any) -> tuple[Any, Any]:
    """[count, taps] source indices and weights of an axis that is interpolated with antialiasing: a triangle or a
    cubic (a = -1/2) stretched over ``scale`` elements, its weights divided by their sum.

    native/cpu/UpSampleKernel.cpp, HelperInterpBase::_compute_indices_min_size_weights_aa.
    """
    width = {"linear": 2, "cubic": 4}[kind]
    step, half, wide = real(scale), real(0.5), np.float64
    stretched = scale >= 1
    support = real(width * 0.5) * step if stretched else real(width * 0.5)
    inverse = real(1) / step if stretched else real(1)
    center = step * (np.arange(count).astype(real) + half)
    low = np.maximum(((center - support).astype(wide) + 0.5).astype(np.int64), 0)
    high = np.minimum(((center + support).astype(wide) + 0.5).astype(np.int64), size)
    taps = max(1, int((high - low).max()))
    index = low[:, None] + np.arange(taps)
    # What has a literal 0.5 in it is computed in double.
    x = np.abs((((index.astype(real) - center[:, None]).astype(wide) + 0.5) * wide(inverse)).astype(real))
    if kind == "linear":
        weights = np.where(x < 1, real(1) - x, real(0))
    else:
        a = real(-0.5)
        near, far = _cubic(a, x, True)
        weights = np.where(x < 1, near, np.where(x < 2, far, real(0)))
    weights = np.where(index < high[:, None], weights, real(0)).astype(real)
    total = np.zeros(count, dtype=real)
    for k in range(taps):
        total = total + weights[:, k]
    weights = weights / np.where(total == 0, real(1), total)[:, None]
    return np.minimum(index, np.maximum(high[:, None] - 1, 0)), weights.astype(real)


def _weighted_sum(w: Writer, parts: Sequence[tuple[Value, Value]], fused: bool = True) -> Value:
    """Values times their weights, added in this order, each product fused with its addition where it is known that
    torch's kernel does so."""
    total = w.op("multiply", *parts[0])
    for value, weight in parts[1:]:
        if fused and _contracts():
            total = w.op("fma", value, weight, total)
        else:
            total = w.op("add", total, w.op("multiply", value, weight))
    return total


def _second_first(parts: Sequence[Any]) -> list[Any]:
    """The order in which x * y + z * w is fused: z * w is what is rounded."""
    return [*parts[1::-1], *parts[2:]]


def _read_along(w: Writer, value: Value, axis: int, indices: Any) -> Value:
    return _take(w, value, w.constant(torch.from_numpy(np.ascontiguousarray(indices)[:, None])), [axis], axis)


def _axis_by_axis(w: Writer, value: Value, lead: int, taps: Sequence[tuple[Any, Any]], smooth: bool) -> Value:
    """The spatial axes in turn, the last first: the taps of each by their weights. With antialiasing the products of
    long sums are computed in vectors, and how many of them depends on the place."""
    for axis in reversed(range(lead, value.rank)):
        indices, weights = taps[axis - lead]
        parts = [_read_along(w, value, axis, indices[:, k]) for k in range(indices.shape[1])]
        if weights is None:
            value = parts[0]
            continue
        constants = [w.constant(torch.from_numpy(np.ascontiguousarray(column))) for column in weights.T]
        most = 3 if value.dtype == "float64" else 4
        pairs = [(p, w.along(weight, p.shape, [axis])) for p, weight in zip(parts, constants, strict=True)]
        value = _weighted_sum(w, pairs, len(pairs) <= most) if smooth else _weighted_sum(w, _second_first(pairs))
    return value


def _all_axes_at_once(w: Writer, value: Value, taps: Sequence[tuple[Any, Any]], backward: bool, reduced: bool) -> Value:
    """The corners of the cell around each position by the product of their weights along all axes, added from the
    first corner, or ``backward``; which of the first two products is rounded depends on the format."""
    shape = tuple(len(indices) for indices, _ in taps)
    axes = range(2, value.rank)
    constants = [[w.constant(torch.from_numpy(np.ascontiguousarray(c))) for c in weights.T] for _, weights in taps]
    parts = []
    for corner in itertools.product((0, 1), repeat=len(taps)):
        part, weight = value, None
        for k, tap in enumerate(corner):
            part = _read_along(w, part, axes[k], taps[k][0][:, tap])
            factor = w.along(constants[k][tap], shape, [k])
            weight = factor if weight is None else w.op("multiply", weight, factor)
        assert weight is not None
        parts.append((part, w.along(weight, part.shape, axes)))
    parts = parts[::-1] if backward else parts
    return _weighted_sum(w, parts if reduced else _second_first(parts))


def _reduced_weights(kind: str, weights: Any, dtype: str) -> Any:
    """Weights rounded to a 16-bit format; of two, the first is 1 - t of the rounded t."""
    rounded = torch.from_numpy(np.ascontiguousarray(weights)).to(TORCH_DTYPES[dtype])
    if kind == "linear":
        rounded[:, 0] = 1 - rounded[:, 1]
    return rounded.float().numpy()


def _is_by_channels(a: Any, source: Value, shape: Sequence[int]) -> bool:
    """Whether torch interpolates linearly with the channels innermost: _use_vectorized_kernel_cond_2d and _3d."""
    if source.rank == 4 and sum(shape[2:]) <= 128:
        return True
    if source.rank < 4 or source.shape[1] <= 3:
        return False
    strides = next((a.strides[name] for name in ("input", "self") if name in a.strides), None)
    expected = 1
    for axis in (1, *reversed(range(2, source.rank)), 0):
        if strides is None or (source.shape[axis] != 1 and strides[axis] != expected):
            return False
        expected *= source.shape[axis]
    return True


def _upsample(kind: str, count: int) -> Rule:
    def write(w: Writer, a: Any) -> Value:
        """The sum of the taps by their weights, of each axis in turn or, where the channels are innermost, of all axes
        at once; 16-bit formats in float32. native/cpu/UpSampleKernel.cpp."""
        shape, dtype = w.out[0]
        source = a.input if hasattr(a, "input") else a.self
        lead = source.rank - count
        if not math.prod(shape):
            return w.broadcast(w.scalar(0, dtype), shape)
        if source.kind != "float" and kind not in ("nearest", "exact"):
            raise _Refused("of integers it is computed in fixed point")
        scales = _resized(a, source.shape[lead:], shape[lead:])
        value = source if kind in ("nearest", "exact") else w.in_float32(dtype, [source], source.shape)[0][0]
        real = np.float64 if value.dtype == "float64" else np.float32
        align = getattr(a, "align_corners", False)
        taps = [
            _smoothed_taps(kind.split()[1], scale, size, places, real)
            if kind.startswith("smooth")
            else _taps(kind, scale, size, places, align, real)
            for scale, size, places in zip(scales, source.shape[lead:], shape[lead:], strict=True)
        ]
        if kind != "linear" or not _is_by_channels(a, source, shape):
            if kind in ("linear", "cubic") and dtype in REDUCED:
                taps = [(indices, _reduced_weights(kind, weights, dtype)) for indices, weights in taps]
            return w.convert(_axis_by_axis(w, value, lead, taps, kind.startswith("smooth")), dtype)
        channels = source.shape[1]
        whole = channels - channels % (32 * 8 // bits_of(dtype))  # in vectors of 32 bytes; the rest one by one
        parts = [(0, whole, True, dtype in REDUCED), (whole, channels, False, dtype == "float16")]
        results = [
            _all_axes_at_once(w, w.slice(value, 1, start, limit), taps, backward, reduced)
            for start, limit, backward, reduced in parts
            if start < limit
        ]
        return w.convert(w.concatenate(results, 1), dtype)

    return write


for _name, _kind, _rank in [
    ("upsample_nearest1d", "nearest", 1),
    ("upsample_nearest2d", "nearest", 2),
    ("upsample_nearest3d", "nearest", 3),
    ("_upsample_nearest_exact1d", "exact", 1),
    ("_upsample_nearest_exact2d", "exact", 2),
    ("_upsample_nearest_exact3d", "exact", 3),
    ("upsample_linear1d", "linear", 1),
    ("upsample_bilinear2d", "linear", 2),
    ("upsample_trilinear3d", "linear", 3),
    ("upsample_bicubic2d", "cubic", 2),
]:
    for _overload in ("default", "vec"):
        RULES[f"aten.{_name}.{_overload}"] = _upsample(_kind, _rank)


for _name, _kind in [("_upsample_bilinear2d_aa", "smooth linear"), ("_upsample_bicubic2d_aa", "smooth cubic")]:
    for _overload in ("default", "vec"):
        RULES[f"aten.{_name}.{_overload}"] = _upsample(_kind, 2)


# ---- rules: factorizations, solvers and Fourier transforms ----------------------------------------------------------


def _turned(w: Writer, value: Value, conjugate: bool = True) -> Value:
    """Each matrix transposed, and conjugated where its numbers are complex."""
    rank = value.rank
    result = w.transpose(value, [*range(rank - 2), rank - 1, rank - 2])
    return w.op("conjugate", result) if conjugate and value.kind == "complex" else result


def _times(w: Writer, lhs: Value, rhs: Value) -> Value:
    """Products of matrices, batch by batch."""
    batch = lhs.rank - 2
    return w.dot(lhs, rhs, batch, lhs.rank - 1, batch)


def _places_of(w: Writer, shape: Sequence[int], axis: int, dtype: str = "int64") -> Value:
    """The index along an axis, at every element."""
    return w.emit("iota", [], shape, dtype, iota_dimension=axis)


def _triangle_of(w: Writer, value: Value, lower: bool, strict: bool = False) -> Value:
    """The lower or upper triangle, zeros elsewhere; ``strict`` without the diagonal."""
    row, column = (_places_of(w, value.shape[-2:], axis) for axis in (0, 1))
    direction = ("GT" if strict else "GE") if lower else ("LT" if strict else "LE")
    inside = w.broadcast(w.compare(direction, row, column), value.shape)
    return w.select(inside, value, w.full(0, value))


def _identities(w: Writer, shape: Sequence[int], dtype: str) -> Value:
    """Matrices with ones on the diagonal, batches and all."""
    row, column = (_places_of(w, shape[-2:], axis) for axis in (0, 1))
    return w.broadcast(w.convert(w.compare("EQ", row, column), dtype), shape)


def _main_diagonal(w: Writer, value: Value) -> Value:
    outer, (rows, columns) = w.out, value.shape[-2:]
    w.out = [((*value.shape[:-2], min(rows, columns)), value.dtype)]
    result = _diagonal(w, SimpleNamespace(self=value, offset=0, dim1=-2, dim2=-1))
    w.out = outer
    assert isinstance(result, Value)
    return result


def _padded_columns(w: Writer, value: Value, columns: int) -> Value:
    """The first columns of each matrix, with columns of zeros behind where there are not so many."""
    value = w.slice(value, value.rank - 1, 0, min(columns, value.shape[-1]))
    missing = columns - value.shape[-1]
    if not missing:
        return value
    zeros = w.broadcast(w.scalar(0, value.dtype), [*value.shape[:-1], missing])
    return w.concatenate([value, zeros], value.rank - 1)


def _solved(
    w: Writer,
    a: Value,
    b: Value,
    *,
    lower: bool,
    transpose: str = "NO_TRANSPOSE",
    unit: bool = False,
    left: bool = True,
) -> Value:
    """triangular_solve on operands of one batch."""
    attrs = {"left_side": left, "lower": lower, "unit_diagonal": unit, "transpose_a": transpose}
    return w.emit("triangular_solve", [a, b], b.shape, b.dtype, **attrs)


def _factored(w: Writer, value: Value) -> tuple[Value, Value, Value]:
    """L and U packed, row exchanges counted from 1 as LAPACK does, and what is wrong: the first zero on U's diagonal,
    counted from 1, or 0."""
    batch, (rows, columns) = value.shape[:-2], value.shape[-2:]
    least = min(rows, columns)
    types = [(value.shape, value.dtype), ((*batch, least), "int32"), ((*batch, rows), "int32")]
    packed, exchanges, permutation = w.emit_several("lu", [value], types)
    pivots = w.op("add", exchanges, w.full(1, exchanges))
    w.permutations[pivots] = permutation
    diagonal = _main_diagonal(w, packed)
    zero = w.compare("EQ", diagonal, w.full(0, diagonal))
    return packed, pivots, _first_true(w, zero)


def _first_true(w: Writer, flags: Value) -> Value:
    """The place, counted from 1, of the first true flag along the last axis; 0 where there is none. int32."""
    count = flags.shape[-1]
    if not count:
        return w.broadcast(w.scalar(0, "int32"), flags.shape[:-1])
    place = _places_of(w, flags.shape, flags.rank - 1, "int32")
    beyond = w.full(count, place)
    first = w.reduce(w.select(flags, place, beyond), "minimum", [flags.rank - 1])
    none = w.compare("EQ", first, w.full(count, first))
    return w.select(none, w.full(0, first), w.op("add", first, w.full(1, first)))


def _permutation(w: Writer, pivots: Value, rows: int) -> Value:
    """The rows in the order that the exchanges leave them in. Exchanges that this graph computed bring it along."""
    if pivots in w.permutations:
        return w.permutations[pivots]
    batch, count = pivots.shape[:-1], pivots.shape[-1]
    order = _places_of(w, [*batch, rows], len(batch), "int32")
    for k in range(count):
        here = w.slice(order, len(batch), k, k + 1)
        there = w.slice(pivots, len(batch), k, k + 1)
        there = w.op("subtract", there, w.full(1, there))
        moved = _gather_along(w, order, len(batch), w.convert(there, "int64"))
        place = _places_of(w, order.shape, len(batch), "int32")
        wide = [w.broadcast(x, order.shape) for x in (here, there, moved)]
        order = w.select(w.compare("EQ", place, wide[1]), wide[0], order)
        order = w.select(w.compare("EQ", place, w.full(k, place)), wide[2], order)
    return order


def _inverse_permutation(w: Writer, order: Value) -> Value:
    return _sorted(w, order, order.rank - 1, False)[1]


def _rows_at(w: Writer, value: Value, order: Value) -> Value:
    """The rows of each matrix in the given order."""
    index = w.convert(order, "int64")
    wide = w.along(index, value.shape, list(range(index.rank)))
    return _gather_along(w, value, value.rank - 2, wide)


def _lu_solution(w: Writer, packed: Value, pivots: Value, b: Value, left: bool, adjoint: bool) -> Value:
    """X with A X = B, A^H X = B, X A = B or X A^H = B, for the factors of A."""
    if not left:
        return _turned(w, _lu_solution(w, packed, pivots, _turned(w, b), True, not adjoint))
    order = _permutation(w, pivots, packed.shape[-2])
    if not adjoint:
        b = _solved(w, packed, _rows_at(w, b, order), lower=True, unit=True)
        return _solved(w, packed, b, lower=False)
    b = _solved(w, packed, b, lower=False, transpose="ADJOINT")
    b = _solved(w, packed, b, lower=True, unit=True, transpose="ADJOINT")
    return _rows_at(w, b, _inverse_permutation(w, order))


def _factored_transposed(a: Any, value: Value) -> bool:
    """Whether torch factorizes the transpose, which saves it a copy: of contiguous real matrices
    (native/BatchLinearAlgebra.cpp)."""
    expected = [math.prod(value.shape[axis + 1 :]) for axis in range(value.rank)]
    strides = a.strides.get("A", tuple(expected))
    contiguous = all(n == 1 or s == e for n, s, e in zip(value.shape, strides, expected, strict=True))
    return contiguous and value.kind != "complex"


def _in_one_batch(w: Writer, *values: Value) -> list[Value]:
    batch = torch.broadcast_shapes(*(value.shape[:-2] for value in values))
    return [w.broadcast(value, [*batch, *value.shape[-2:]]) for value in values]


@rule("linalg_lu_factor_ex.default")
def _lu_factor(w: Writer, a: Any) -> list[Value | None]:
    if not a.pivot:
        raise _Refused("a factorization without pivoting")
    return list(_factored(w, a.A))


@rule("linalg_lu.default")
def _lu(w: Writer, a: Any) -> list[Value | None]:
    if not a.pivot:
        raise _Refused("a factorization without pivoting")
    packed, pivots, _ = _factored(w, a.A)
    return list(_unpacked(w, packed, pivots))


def _unpacked(w: Writer, packed: Value, pivots: Value) -> list[Value]:
    """P, L and U with A = P L U."""
    rows, columns = packed.shape[-2:]
    least = min(rows, columns)
    order = _permutation(w, pivots, rows)
    row = _places_of(w, [*order.shape[:-1], rows, rows], order.rank - 1, "int32")
    wide = w.along(order, row.shape, [*range(order.rank - 1), order.rank])
    matrix = w.convert(w.compare("EQ", row, wide), packed.dtype)
    lower = _triangle_of(w, w.slice(packed, packed.rank - 1, 0, least), True, strict=True)
    lower = w.op("add", lower, _identities(w, lower.shape, lower.dtype))
    return [matrix, lower, _triangle_of(w, w.slice(packed, packed.rank - 2, 0, least), False)]


@rule("lu_unpack.default")
def _lu_unpack(w: Writer, a: Any) -> list[Value | None]:
    parts: list[Value | None] = list(_unpacked(w, a.LU_data, a.LU_pivots))
    return [part if part and part.shape == shape else None for part, (shape, _) in zip(parts, w.out, strict=True)]


@rule("linalg_lu_solve.default")
def _lu_solve(w: Writer, a: Any) -> Value:
    packed, b = _in_one_batch(w, a.LU, a.B)
    pivots = a.pivots
    if packed.shape[:-2] != pivots.shape[:-1]:
        order = w.permutations.get(pivots)
        wide = w.broadcast(pivots, [*packed.shape[:-2], pivots.shape[-1]])
        if order is not None:
            w.permutations[wide] = w.broadcast(order, [*packed.shape[:-2], order.shape[-1]])
        pivots = wide
    return _lu_solution(w, packed, pivots, b, a.left, a.adjoint)


@rule("_linalg_solve_ex.default", "linalg_inv_ex.default")
def _solve(w: Writer, a: Any) -> list[Value | None]:
    """Factors and two substitutions; the inverse solves for the identity."""
    inverse = a.operator == "linalg_inv_ex"
    shape = w.out[0][0]
    turned = _factored_transposed(a, a.A)
    packed, pivots, info = _factored(w, _turned(w, a.A) if turned else a.A)
    b = _identities(w, a.A.shape, a.A.dtype) if inverse else a.B
    left = inverse or a.left
    vector = not inverse and (b.rank == 1 or (b.rank == a.A.rank - 1 and b.shape == a.A.shape[:-1]))
    if vector:
        b = w.reshape(b, [*b.shape, 1] if left else [*b.shape[:-1], 1, b.shape[-1]])
    batch = torch.broadcast_shapes(a.A.shape[:-2], b.shape[:-2])
    order = _permutation(w, pivots, packed.shape[-2])
    wide = w.broadcast(pivots, [*batch, pivots.shape[-1]])
    w.permutations[wide] = w.broadcast(order, [*batch, order.shape[-1]])
    factors, b = _in_one_batch(w, packed, b)
    result = w.reshape(_lu_solution(w, factors, wide, b, left, turned), shape)
    return [result, info] if inverse else [result, packed, pivots, info]


def _sign_of_exchanges(w: Writer, pivots: Value, dtype: str) -> Value:
    """-1 where an odd number of rows was exchanged with another."""
    place = _places_of(w, pivots.shape, pivots.rank - 1, "int32")
    exchanged = w.compare("NE", pivots, w.op("add", place, w.full(1, place)))
    odd = w.reduce(exchanged, "xor", [pivots.rank - 1])
    return w.select(odd, w.full(-1, odd, dtype), w.full(1, odd, dtype))


@rule("_linalg_det.default")
def _det(w: Writer, a: Any) -> list[Value | None]:
    packed, pivots, _ = _factored(w, _turned(w, a.A) if _factored_transposed(a, a.A) else a.A)
    diagonal = _main_diagonal(w, packed)
    product = w.reduce(diagonal, "multiply", [diagonal.rank - 1])
    return [w.op("multiply", product, _sign_of_exchanges(w, pivots, packed.dtype)), packed, pivots]


@rule("_linalg_slogdet.default")
def _slogdet(w: Writer, a: Any) -> list[Value | None]:
    packed, pivots, _ = _factored(w, _turned(w, a.A) if _factored_transposed(a, a.A) else a.A)
    diagonal = _main_diagonal(w, packed)
    axis = [diagonal.rank - 1]
    signs = w.reduce(w.op("sign", diagonal), "multiply", axis)
    signs = w.op("multiply", signs, _sign_of_exchanges(w, pivots, packed.dtype))
    moduli = w.op("abs", diagonal, dtype=_PARTS.get(diagonal.dtype, diagonal.dtype))
    return [signs, w.reduce(w.op("log", moduli), "add", axis), packed, pivots]


@rule("linalg_solve_triangular.default")
def _solve_triangular(w: Writer, a: Any) -> Value:
    matrix, b = _in_one_batch(w, a.self, a.B)
    return _solved(w, matrix, b, lower=not a.upper, unit=a.unitriangular, left=a.left)


@rule("triangular_solve.default")
def _triangular_solve(w: Writer, a: Any) -> list[Value | None]:
    matrix, b = _in_one_batch(w, a.A, a.self)
    transpose = "TRANSPOSE" if a.transpose else "NO_TRANSPOSE"
    return [_solved(w, matrix, b, lower=not a.upper, unit=a.unitriangular, transpose=transpose), matrix]


def _order_of_failure(w: Writer, value: Value, lower: bool) -> Value:
    """LAPACK's info of a Cholesky factorization: the order of the first leading block that is not positive definite,
    or 0, from the factorizations of all leading blocks, the rest being the identity. int32."""
    order, rank = value.shape[-1], value.rank
    if not order:
        return w.broadcast(w.scalar(0, "int32"), value.shape[:-2])
    shape = [*value.shape[:-2], order, order, order]
    wide = w.along(value, shape, [*range(rank - 2), rank - 1, rank])
    block, row, column = (_places_of(w, shape, axis) for axis in (rank - 2, rank - 1, rank))
    inside = w.op("and", w.compare("LE", row, block), w.compare("LE", column, block))
    blocks = w.select(inside, wide, _identities(w, shape, value.dtype))
    factors = w.emit("cholesky", [blocks], shape, value.dtype, lower=lower)
    corner = w.slice(w.slice(factors, rank - 1, 0, 1), rank, 0, 1)
    corner = w.reshape(corner, shape[:-2])
    if corner.kind == "complex":
        corner = w.op("real", corner, dtype=_PARTS[corner.dtype])
    return _first_true(w, w.compare("NE", corner, corner))


@rule("linalg_cholesky_ex.default", "cholesky.default")
def _cholesky(w: Writer, a: Any) -> Any:
    """Where the matrix is not positive definite, torch leaves the factor unfinished; here it is NaN."""
    value = a.self
    result = w.emit("cholesky", [value], value.shape, value.dtype, lower=not a.upper)
    return result if a.operator == "cholesky" else [result, _order_of_failure(w, value, not a.upper)]


def _cholesky_solution(w: Writer, factor: Value, b: Value, upper: bool) -> Value:
    first, second = ("ADJOINT", "NO_TRANSPOSE") if upper else ("NO_TRANSPOSE", "ADJOINT")
    b = _solved(w, factor, b, lower=not upper, transpose=first)
    return _solved(w, factor, b, lower=not upper, transpose=second)


@rule("cholesky_solve.default")
def _cholesky_solve(w: Writer, a: Any) -> Value:
    factor, b = _in_one_batch(w, a.input2, a.self)
    return _cholesky_solution(w, factor, b, a.upper)


@rule("cholesky_inverse.default")
def _cholesky_inverse(w: Writer, a: Any) -> Value:
    return _cholesky_solution(w, a.self, _identities(w, a.self.shape, a.self.dtype), a.upper)


def _reflectors(w: Writer, value: Value) -> tuple[Value, Value]:
    least = min(value.shape[-2:])
    packed, taus = w.emit_several(
        "geqrf", [value], [(value.shape, value.dtype), ((*value.shape[:-2], least), value.dtype)]
    )
    return packed, taus


def _orthogonal(w: Writer, packed: Value, taus: Value, columns: int) -> Value:
    """The first columns of the product of the reflectors."""
    packed = _padded_columns(w, packed, columns)
    taus = w.slice(taus, taus.rank - 1, 0, min(columns, taus.shape[-1]))
    return w.emit("householder_product", [packed, taus], packed.shape, packed.dtype)


@rule("linalg_qr.default")
def _qr(w: Writer, a: Any) -> list[Value | None]:
    """By Householder reflectors with LAPACK's signs."""
    rows, columns = a.A.shape[-2:]
    packed, taus = _reflectors(w, a.A)
    height = rows if a.mode == "complete" else min(rows, columns)
    upper = _triangle_of(w, w.slice(packed, packed.rank - 2, 0, height), False)
    return [None if a.mode == "r" else _orthogonal(w, packed, taus, height), upper]


@rule("geqrf.default")
def _geqrf(w: Writer, a: Any) -> list[Value | None]:
    return list(_reflectors(w, a.self))


@rule("linalg_householder_product.default")
def _householder_product(w: Writer, a: Any) -> Value:
    return _orthogonal(w, a.input, a.tau, a.input.shape[-1])


@rule("ormqr.default")
def _ormqr(w: Writer, a: Any) -> Value:
    """Q or Q^H times the matrix, from the left or from the right, Q being square."""
    q = _orthogonal(w, a.self, a.input2, a.self.shape[-2])
    q = _turned(w, q) if a.transpose else q
    return _times(w, q, a.input3) if a.left else _times(w, a.input3, q)


def _eigh_of(w: Writer, value: Value, lower: bool) -> list[Value]:
    types = [(value.shape[:-1], _PARTS.get(value.dtype, value.dtype)), (value.shape, value.dtype)]
    return w.emit_several("eigh", [value], types, lower=lower)


def _svd_of(w: Writer, value: Value, full: bool = False) -> list[Value]:
    batch, (rows, columns) = value.shape[:-2], value.shape[-2:]
    least = min(rows, columns)
    left, right = (rows, columns) if full else (least, least)
    types = [
        ((*batch, rows, left), value.dtype),
        ((*batch, least), _PARTS.get(value.dtype, value.dtype)),
        ((*batch, right, columns), value.dtype),
    ]
    attrs = {"full_matrices": True} if full else {}
    return w.emit_several("svd", [value], types, **attrs)


@rule("_linalg_eigh.default")
def _eigh(w: Writer, a: Any) -> list[Value | None]:
    """Ascending; the phases of the vectors are not LAPACK's."""
    values, vectors = _eigh_of(w, a.A, a.UPLO.upper() == "L")
    return [values, vectors if a.compute_v else None]


@rule("_linalg_svd.default")
def _svd(w: Writer, a: Any) -> list[Value | None]:
    """Descending; the phases of the vectors are not LAPACK's."""
    u, s, vh = _svd_of(w, a.A, bool(a.full_matrices) and a.compute_uv)
    return [u, s, vh] if a.compute_uv else [None, s, None]


def _scaled_columns(w: Writer, value: Value, factors: Value) -> Value:
    wide = w.convert(factors, value.dtype)
    return w.op("multiply", value, w.along(wide, value.shape, [*range(value.rank - 2), value.rank - 1]))


def _reciprocals_above(w: Writer, values: Value, tolerance: Value) -> Value:
    inverse = w.op("divide", w.full(1, values), values)
    return w.select(w.compare("GT", values, w.broadcast(tolerance, values.shape)), inverse, w.full(0, values))


@rule("linalg_pinv.atol_rtol_tensor")
def _pinv(w: Writer, a: Any) -> Value:
    """V diag(1 / s) U^H over the singular values above max(atol, rtol * the greatest); of Hermitian matrices with
    their eigenvalues."""
    value, least = a.self, min(a.self.shape[-2:])
    if not least:
        return w.broadcast(w.scalar(0, value.dtype), w.out[0][0])
    if a.hermitian:
        signed, u = _eigh_of(w, value, True)
        s, vh = w.op("abs", signed), _turned(w, u)
    else:
        u, s, vh = _svd_of(w, value)
        signed = s
    batch = s.shape[:-1]
    peak = w.reduce(s, "maximum", [s.rank - 1], keep=True)
    epsilon = torch.finfo(TORCH_DTYPES[s.dtype]).eps * max(value.shape[-2:])
    atol = None if a.atol is None else w.operand(a.atol, s.dtype, batch)
    if a.rtol is not None:
        rtol = w.operand(a.rtol, s.dtype, batch)
    else:
        rtol = w.broadcast(w.scalar(epsilon, s.dtype), batch)
        if atol is not None:
            rtol = w.select(w.compare("GT", atol, w.full(0, atol)), w.full(0, rtol), rtol)
    tolerance = w.op("multiply", w.reshape(rtol, [*batch, 1]), peak)
    if atol is not None:
        tolerance = w.op("maximum", w.reshape(atol, [*batch, 1]), tolerance)
    inverse = w.op("divide", w.full(1, signed), signed)
    inverse = w.select(w.compare("GT", s, w.broadcast(tolerance, s.shape)), inverse, w.full(0, s))
    return _times(w, _scaled_columns(w, _turned(w, vh), inverse), _turned(w, u))


@rule("linalg_lstsq.default")
def _lstsq(w: Writer, a: Any) -> list[Value | None]:
    """The shortest of the least-squares solutions, by singular values above rcond times the greatest."""
    matrix, b = a.self, a.b
    rows, columns = matrix.shape[-2:]
    vector = b.rank == matrix.rank - 1 and b.shape == matrix.shape[:-1]
    b = w.reshape(b, [*b.shape, 1]) if vector else b
    matrix, b = _in_one_batch(w, matrix, b)
    u, s, vh = _svd_of(w, matrix)
    rcond = a.rcond
    if rcond is None or rcond < 0:
        rcond = torch.finfo(TORCH_DTYPES[s.dtype]).eps * max(rows, columns)
    peak = w.reduce(s, "maximum", [s.rank - 1], keep=True)
    tolerance = w.op("multiply", peak, w.full(rcond, peak))
    inverse = _reciprocals_above(w, s, tolerance)
    found = _times(w, _scaled_columns(w, _turned(w, vh), inverse), _times(w, _turned(w, u), b))
    wide = w.broadcast(tolerance, s.shape)
    rank = w.reduce(w.convert(w.compare("GT", s, wide), "int64"), "add", [s.rank - 1])
    error = w.op("subtract", _times(w, matrix, found), b)
    if error.kind == "complex":
        error = w.op("multiply", error, w.op("conjugate", error))
        error = w.op("real", error, dtype=s.dtype)
    else:
        error = w.op("multiply", error, error)
    parts = [w.reshape(found, w.out[0][0]), w.reduce(error, "add", [error.rank - 2]), rank, s]
    return [part if part.shape == shape else None for part, (shape, _) in zip(parts, w.out, strict=True)]


_TAYLOR_DEGREE = 18


@rule("linalg_matrix_exp.default")
def _matrix_exp(w: Writer, a: Any) -> Value:
    """(sum of (A / 2^s)^k / k! for k = 0 … 18) squared s times, s the least with norm(A, 1) / 2^s <= 1.

    torch chooses the degree and s by thresholds of the norm; both are accurate to the format's rounding.
    """
    value, real = a.self, _PARTS.get(a.self.dtype, a.self.dtype)
    if not value.size:
        return value
    if value.dtype in REDUCED:
        raise _Refused("a matrix in a 16-bit format")
    sums = w.reduce(w.op("abs", value, dtype=real), "add", [value.rank - 2])
    norm = w.reduce(sums, "maximum", [sums.rank - 1])
    steps = w.op("maximum", w.op("ceil", w.op("log2", norm)), w.full(0.0, norm))
    steps = w.select(w.op("is_finite", norm, dtype="bool"), steps, w.full(0.0, steps))
    scale = w.convert(w.op("exp2", steps), value.dtype)
    matrix = w.op("divide", value, w.along(scale, value.shape, range(value.rank - 2)))
    identity = _identities(w, value.shape, value.dtype)
    result = identity
    for k in range(_TAYLOR_DEGREE, 0, -1):
        product = _times(w, matrix, result)
        result = w.op("add", identity, w.op("divide", product, w.full(k, product)))
    count = w.convert(steps, "int32")

    def region(body: Callable[[Writer, Value, Value], list[Value]]) -> dict[str, Any]:
        inner = Writer()
        inputs = [inner.emit("input", (), x.shape, x.dtype) for x in (result, count)]
        outputs = body(inner, *inputs)
        return _body(inner.nodes, [x.ref for x in outputs])

    def more(inner: Writer, x: Value, left: Value) -> list[Value]:
        return [inner.reduce(inner.compare("GT", left, inner.full(0, left)), "or", range(left.rank))]

    def square(inner: Writer, x: Value, left: Value) -> list[Value]:
        due = inner.compare("GT", left, inner.full(0, left))
        wide = inner.along(due, x.shape, range(left.rank))
        return [inner.select(wide, _times(inner, x, x), x), inner.op("subtract", left, inner.full(1, left))]

    types = [(x.shape, x.dtype) for x in (result, count)]
    return w.emit_several("while", [result, count], types, [region(more), region(square)])[0]


def _scaled_transform(w: Writer, value: Value, normalization: int, count: int) -> Value:
    """torch's normalization: 0 none, 1 by the root of the number of elements, 2 by the number."""
    if not normalization:
        return value
    factor = 1 / math.sqrt(count) if normalization == 1 else 1 / count
    if value.kind != "complex":
        return w.op("multiply", value, w.full(factor, value))
    part = _PARTS[value.dtype]
    parts = [w.op(name, value, dtype=part) for name in ("real", "imag")]
    return w.op("complex", *(w.op("multiply", x, w.full(factor, x)) for x in parts), dtype=value.dtype)


def _transformed(w: Writer, kind: str, value: Value, dims: Sequence[int], last: int | None = None) -> Value:
    """fft over the axes ``dims``, the last of them the one that is halved or doubled; unscaled but for IRFFT."""
    axes = [normal_axis(d, value.rank) for d in dims]
    others = [d for d in range(value.rank) if d not in axes]
    order = [*others, *axes]
    turned = w.transpose(value, order)
    lengths = [value.shape[d] for d in axes]
    shape, dtype = list(turned.shape), value.dtype
    if kind == "RFFT":
        shape[-1], dtype = lengths[-1] // 2 + 1, _COMPLEX_OF[value.dtype]
    if kind == "IRFFT":
        assert last is not None
        shape[-1], lengths[-1], dtype = last, last, _PARTS[value.dtype]
        turned = w.slice(turned, turned.rank - 1, 0, last // 2 + 1)
    result = w.emit("fft", [turned], shape, dtype, fft_type=kind, fft_length=lengths)
    return w.transpose(result, [order.index(d) for d in range(value.rank)])


def _complex_transform(w: Writer, value: Value, dims: Sequence[int], forward: bool) -> Value:
    """Unscaled in both directions: the inverse one by conjugation."""
    if not dims:
        return value
    if forward:
        return _transformed(w, "FFT", value, dims)
    turned = _transformed(w, "FFT", w.op("conjugate", value), dims)
    return w.op("conjugate", turned)


@rule("_fft_c2c.default")
def _fft_c2c(w: Writer, a: Any) -> Value:
    result = _complex_transform(w, a.self, a.dim, a.forward)
    return _scaled_transform(w, result, a.normalization, math.prod(a.self.shape[d] for d in a.dim))


@rule("_fft_r2c.default")
def _fft_r2c(w: Writer, a: Any) -> Value:
    count = math.prod(a.self.shape[d] for d in a.dim)
    if a.onesided:
        result = _transformed(w, "RFFT", a.self, a.dim)
    else:
        result = _complex_transform(w, w.convert(a.self, w.out[0][1]), a.dim, True)
    return _scaled_transform(w, result, a.normalization, count)


@rule("_fft_c2r.default")
def _fft_c2r(w: Writer, a: Any) -> Value:
    """IRFFT divides by the number of elements, so other normalizations multiply by it first."""
    *outer, inner = a.dim
    value, count = _complex_transform(w, a.self, outer, False), a.last_dim_size
    result = _transformed(w, "IRFFT", value, [inner], a.last_dim_size)
    total = count * math.prod(a.self.shape[d] for d in outer)
    if a.normalization == 2:
        return _scaled_transform(w, result, 2 if outer else 0, total // count)
    factor = float(count) if a.normalization == 0 else count / math.sqrt(total)
    return w.op("multiply", result, w.full(factor, result))


# ---- rules: special functions ---------------------------------------------------------------------------------------

_SPECIAL = {
    "special_i0e": "bessel_i0e",
    "special_i1e": "bessel_i1e",
    "special_modified_bessel_k0": "bessel_k0",
    "special_modified_bessel_k1": "bessel_k1",
    "special_scaled_modified_bessel_k0": "bessel_k0e",
    "special_scaled_modified_bessel_k1": "bessel_k1e",
    "special_erfcx": "erfcx",
    "special_ndtri": "ndtri",
}


def _special(aten: str, op: str) -> None:
    @rule(f"{aten}.default")
    def write(w: Writer, a: Any) -> Value:
        """The exact value rounded once; torch's own approximations are a few ulps from it."""
        return w.op(op, w.convert(a.self if hasattr(a, "self") else a.x, w.out[0][1]))


for _aten, _op in _SPECIAL.items():
    _special(_aten, _op)


@rule("i0.default", "special_i1.default", "special_modified_bessel_i0.default", "special_modified_bessel_i1.default")
def _bessel_i(w: Writer, a: Any) -> Value:
    """exp(|x|) times the scaled function, as native/Math.h has it: infinite with the exponential, NaN at infinity."""
    x = w.convert(a.self, w.out[0][1])
    (wide,), _ = w.in_float32(x.dtype, [x], x.shape)
    scaled = w.op("bessel_i0e" if a.operator.endswith("i0") else "bessel_i1e", wide)
    return w.convert(w.op("multiply", w.op("exponential", w.op("abs", wide)), scaled), x.dtype)


@rule("igamma.default", "igammac.default", "special_zeta.default", "special_zeta.self_scalar")
@rule("special_zeta.other_scalar")
def _special_pair(w: Writer, a: Any) -> Value:
    return w.op(a.operator.removeprefix("special_"), *w.pair(a.self, a.other, w.out[0][1]))


def _trigamma(w: Writer, x: Value) -> Value:
    """native/Math.h, trigamma: reflected below 1/2, six steps of the recurrence, and the asymptotic series."""

    def inverse_square(y: Value) -> Value:
        return w.op("divide", w.full(1.0, y), w.op("multiply", y, y))

    one = w.full(1.0, x)
    below = w.compare("LT", x, w.full(0.5, x))
    sine = w.op("sine", w.op("multiply", w.full(math.pi, x), x))
    pi_squared = w.op("multiply", w.full(math.pi, x), w.full(math.pi, x))
    mirrored = w.op("negate", w.op("divide", pi_squared, w.op("multiply", sine, sine)))
    result = w.select(below, mirrored, w.full(0.0, x))
    y = w.select(below, w.op("subtract", one, x), x)
    for _ in range(6):
        result = w.op("add", result, inverse_square(y))
        y = w.op("add", y, one)
    z = inverse_square(y)
    tail = _horner(w, z, [1 / 42, -1 / 30, 1 / 6])
    tail = w.op("add", w.op("add", one, w.op("divide", one, w.op("add", y, y))), w.op("multiply", z, tail))
    result = w.op("add", result, w.op("divide", tail, y))
    return w.select(below, w.op("negate", result), result)


@rule("polygamma.default")
def _polygamma(w: Writer, a: Any) -> Value:
    value = w.convert(a.self, w.out[0][1])
    if a.n == 0:
        return w.op("digamma", value)
    if a.n == 1:
        (wide,), _ = w.in_float32(value.dtype, [value], value.shape)
        return w.convert(_trigamma(w, wide), value.dtype)
    return w.op("polygamma", w.full(a.n, value), value)


def _horner(w: Writer, x: Value, coefficients: Sequence[float]) -> Value:
    """A polynomial from its highest coefficient down, product and sum rounded each."""
    total = w.full(coefficients[0], x)
    for coefficient in coefficients[1:]:
        total = w.op("add", w.op("multiply", total, x), w.full(coefficient, x))
    return total


_BESSEL: dict[int, dict[str, list[float]]] = {
    0: {
        "pp": [
            0.0007969367292973471,
            0.08283523921074408,
            1.239533716464143,
            5.447250030587687,
            8.74716500199817,
            5.303240382353949,
            1.0,
        ],
        "pq": [
            0.0009244088105588637,
            0.08562884743544745,
            1.2535274390105895,
            5.470977403304171,
            8.761908832370695,
            5.306052882353947,
            1.0,
        ],
        "qp": [
            -0.011366383889846916,
            -1.2825271867050931,
            -19.553954425773597,
            -93.20601521237683,
            -177.68116798048806,
            -147.07750515495118,
            -51.41053267665993,
            -6.050143506007285,
        ],
        "qq": [
            64.3178256118178,
            856.4300259769806,
            3882.4018360540163,
            7240.467741956525,
            5930.727011873169,
            2062.0933166032783,
            242.0057402402914,
        ],
        "rp": [-4794432209.782018, 1956174919465.5657, -249248344360967.72, 9708622510473064.0],
        "rq": [
            499.563147152651,
            173785.4016763747,
            48440965.83399621,
            11185553704.535683,
            2112775201154.892,
            310518229857422.56,
            3.1812195594320496e16,
            1.7108629408104315e18,
        ],
        "yp": [
            15592.436785523574,
            -14663929.59039716,
            5435264770.518765,
            -982136065717.9115,
            87590639439536.7,
            -3466283033847297.0,
            4.4273326857256984e16,
            -1.8495080043698668e16,
        ],
        "yq": [
            1041.2835366425984,
            626107.330137135,
            268919633.39381415,
            86400248710.3935,
            20297961275010.555,
            3171577528429750.5,
            2.5059625617265306e17,
        ],
    },
    1: {
        "pp": [
            0.0007621256162081731,
            0.07313970569409176,
            1.1271960812968493,
            5.112079511468076,
            8.424045901417724,
            5.214515986823615,
            1.0,
        ],
        "pq": [
            0.0005713231280725487,
            0.06884559087544954,
            1.105142326340617,
            5.073863861286015,
            8.399855543276042,
            5.209828486823619,
            1.0,
        ],
        "qp": [
            0.05108625947501766,
            4.982138729512334,
            75.82382841325453,
            366.7796093601508,
            710.8563049989261,
            597.4896124006136,
            211.68875710057213,
            25.207020585802372,
        ],
        "qq": [
            74.23732770356752,
            1056.4488603826283,
            4986.410583376536,
            9562.318924047562,
            7997.041604473507,
            2826.1927851763908,
            336.0936078106983,
        ],
        "rp": [-899971225.7055594, 452228297998.19403, -72749424522181.83, 3682957328638529.0],
        "rq": [
            620.8364781180543,
            256987.25675774884,
            83514679.14319493,
            22151159547.97925,
            4749141220799.914,
            784369607876235.9,
            8.952223361846274e16,
            5.322786203326801e18,
        ],
        "yp": [
            1263204747.9017804,
            -647355876379.1603,
            114509511541823.73,
            -8127702555013251.0,
            2.024394757135949e17,
            -7.788771962659501e17,
        ],
        "yq": [
            594.3015923461282,
            235564.09294306856,
            73481194.44597217,
            18760131610.870617,
            3882312774962.3857,
            620557727146953.8,
            6.871410873553005e16,
            3.9727060811656064e18,
        ],
    },
}
"""Coefficients of native/Math.h, bessel_j0_forward to bessel_y1_forward, from the highest power down."""


def _bessel_far(w: Writer, x: Value, order: int, second: bool) -> Value:
    """Beyond 5: sqrt(2 / (pi x)) times the modulus and phase as rational functions of 25 / x^2."""
    table, five = _BESSEL[order], w.full(5.0, x)
    z = w.op("divide", w.full(25.0, x), w.op("multiply", x, x))
    p, q = (w.op("divide", _horner(w, z, table[n + "p"]), _horner(w, z, table[n + "q"])) for n in "pq")
    angle = w.op("subtract", x, w.full((0.25 + 0.5 * order) * math.pi, x))
    sine, cosine = w.op("sine", angle), w.op("cosine", angle)
    far = w.op("multiply", w.op("divide", five, x), q)
    near, other = (sine, cosine) if second else (cosine, sine)
    waves = w.op("add" if second else "subtract", w.op("multiply", p, near), w.op("multiply", far, other))
    scaled = w.op("multiply", waves, w.full(math.sqrt(2 / math.pi), x))
    return w.op("divide", scaled, w.op("sqrt", x))


def _bessel_near(w: Writer, x: Value, order: int) -> Value:
    """J0 or J1 up to 5, its first two zeros taken out. The denominators lack the leading 1 of the published ones, so
    that in float64 torch is some 10^-7 away from the function; so is this."""
    table, square = _BESSEL[order], w.op("multiply", x, x)
    zeros = (
        (5.78318596294678452118, 30.4712623436620863991)
        if order == 0
        else (14.6819706421238932572, 49.2184563216946036703)
    )
    a, b = (w.op("subtract", square, w.full(zero, x)) for zero in zeros)
    over, under = _horner(w, square, table["rp"]), _horner(w, square, table["rq"])
    if order == 1:
        ratio = w.op("multiply", w.op("divide", over, under), x)
        return w.op("multiply", w.op("multiply", ratio, a), b)
    value = w.op("divide", w.op("multiply", w.op("multiply", a, b), over), under)
    tiny = w.op("subtract", w.full(1.0, x), w.op("divide", square, w.full(4.0, x)))
    return w.select(w.compare("LT", x, w.full(1e-5, x)), tiny, value)


@rule(
    "special_bessel_j0.default", "special_bessel_j1.default", "special_bessel_y0.default", "special_bessel_y1.default"
)
def _bessel(w: Writer, a: Any) -> Value:
    """native/Math.h: rational functions up to 5 and beyond; Y has a logarithm below, is -inf at 0 and NaN below 0."""
    given = w.convert(a.self, w.out[0][1])
    order, second = int(a.operator[-1]), a.operator[-2] == "y"
    x = given if second else w.op("abs", given)
    near, far = _bessel_near(w, x, order), _bessel_far(w, x, order, second)
    if second:
        table, square = _BESSEL[order], w.op("multiply", x, x)
        ratio = w.op("divide", _horner(w, square, table["yp"]), _horner(w, square, table["yq"]))
        slope, logarithm = w.full(2 / math.pi, x), w.op("log", x)
        if order == 0:
            near = w.op("add", ratio, w.op("multiply", w.op("multiply", slope, logarithm), near))
        else:
            tail = w.op("subtract", w.op("multiply", near, logarithm), w.op("divide", w.full(1.0, x), x))
            near = w.op("add", w.op("multiply", x, ratio), w.op("multiply", slope, tail))
    zero = w.full(0.0, x)
    result = w.select(w.compare("LE", x, w.full(5.0, x)), near, far)
    if second:
        result = w.select(w.compare("EQ", x, zero), w.full(-math.inf, x), result)
        return w.select(w.compare("LT", x, zero), w.full(math.nan, x), result)
    if order == 1:
        result = w.select(w.compare("LT", given, zero), w.op("negate", result), result)
    return result


@rule("special_spherical_bessel_j0.default")
def _spherical_bessel_j0(w: Writer, a: Any) -> Value:
    """sin(x) / x, a power series where |x| < 1/2, 0 at infinity (native/Math.h)."""
    x = w.convert(a.x if hasattr(a, "x") else a.self, w.out[0][1])
    factorials = [math.factorial(n) for n in (13, 11, 9, 7, 5, 3, 1)]
    signs = (1, -1, 1, -1, 1, -1, 1)
    series = _horner(w, w.op("multiply", x, x), [s / n for s, n in zip(signs, factorials, strict=True)])
    size = w.op("abs", x)
    result = w.select(w.compare("LT", size, w.full(0.5, x)), series, w.op("divide", w.op("sine", x), x))
    return w.select(w.compare("EQ", size, w.full(math.inf, x)), w.full(0.0, x), result)


_AIRY_AN = (0.346538101525629032477, 12.0075952739645805542, 76.2796053615234516538, 168.089224934630576269)
_AIRY_AN += (159.756391350164413639, 70.5360906840444183113, 14.0264691163389668864, 0.999999999999999995305)
_AIRY_AD = (0.567594532638770212846, 14.7562562584847203173, 84.5138970141474626562, 177.318088145400459522)
_AIRY_AD += (164.234692871529701831, 71.4778400825575695274, 14.0959135607834029598, 1.00000000000000000470)
_AIRY_AFN = (-0.131696323418331795333, -0.626456544431912369773, -0.693158036036933542233, -0.279779981545119124951)
_AIRY_AFN += (-0.0491900132609500318020, -0.00406265923594885404393, -1.59276496239262096340e-4)
_AIRY_AFN += (-2.77649108155232920844e-6, -1.67787698489114633780e-8)
_AIRY_AFD = (13.3560420706553243746, 32.6825032795224613948, 26.7367040941499554804, 9.18707402907259625840)
_AIRY_AFD += (1.47529146771666414581, 0.115687173795188044134, 0.00440291641615211203805)
_AIRY_AFD += (7.54720348287414296618e-5, 4.51850092970580378464e-7)
_AIRY_AGN = (0.0197339932091685679179, 0.391103029615688277255, 1.06579897599595591108, 0.939169229816650230044)
_AIRY_AGN += (0.351465656105547619242, 0.0633888919628925490927, 0.00585804113048388458567)
_AIRY_AGN += (2.82851600836737019778e-4, 6.98793669997260967291e-6, 8.11789239554389293311e-8)
_AIRY_AGN += (3.41551784765923618484e-10,)
_AIRY_AGD = (9.30892908077441974853, 19.8352928718312140417, 15.5646628932864612953, 5.47686069422975497931)
_AIRY_AGD += (0.954293611618961883998, 0.0864580826352392193095, 0.00412656523824222607191)
_AIRY_AGD += (1.01259085116509135510e-4, 1.17166733214413521882e-6, 4.91834570062930015649e-9)


@rule("special_airy_ai.default")
def _airy_ai(w: Writer, a: Any) -> Value:
    """native/Math.h, airy_ai_forward: Cephes' rational functions beyond 2.09, the power series between; NaN at both
    infinities and 0 above 103.892. The series has as many terms as leave nothing to add in float64."""
    x = w.convert(a.x if hasattr(a, "x") else a.self, w.out[0][1])

    def mul(p: Value, q: Value) -> Value:
        return w.op("multiply", p, q)

    def div(p: Value, q: Value) -> Value:
        return w.op("divide", p, q)

    def add(p: Value, q: Value) -> Value:
        return w.op("add", p, q)

    one, three = w.full(1.0, x), w.full(3.0, x)
    scale = w.full(0.564189583547756286948, x)
    size = w.op("abs", x)
    root = w.op("sqrt", size)
    fourth = w.op("sqrt", root)
    zeta = div(mul(mul(w.full(2.0, x), size), root), three)
    inverse = div(one, zeta)
    square = mul(inverse, inverse)
    # x < -2.09
    even = add(one, div(mul(square, _horner(w, square, _AIRY_AFN)), _horner(w, square, _AIRY_AFD)))
    odd = div(mul(inverse, _horner(w, square, _AIRY_AGN)), _horner(w, square, _AIRY_AGD))
    angle = add(zeta, w.full(math.pi / 4, x))
    waves = w.op("subtract", mul(w.op("sine", angle), even), mul(w.op("cosine", angle), odd))
    low = mul(div(scale, fourth), waves)
    # x >= 2.09
    ratio = div(_horner(w, inverse, _AIRY_AN), _horner(w, inverse, _AIRY_AD))
    high = div(mul(scale, ratio), mul(mul(w.full(2.0, x), fourth), w.op("exponential", zeta)))
    # between: two power series in x^3
    cube = mul(mul(x, x), x)
    f, g, m, n, k = one, x, one, x, 1.0
    for _ in range(14):
        m = div(mul(m, cube), w.full(k + 1, x))
        n = div(div(mul(n, cube), w.full(k + 2, x)), w.full(k + 3, x))
        m = div(m, w.full(k + 2, x))
        f, g, k = add(f, m), add(g, n), k + 3
    near = w.op(
        "subtract",
        mul(w.full(0.355028053887817239260, x), f),
        mul(w.full(0.258819403792806798405, x), g),
    )
    result = w.select(w.compare("LT", x, w.full(-2.09, x)), low, near)
    result = w.select(w.compare("GE", x, w.full(2.09, x)), high, result)
    result = w.select(w.compare("GT", x, w.full(103.892, x)), w.full(0.0, x), result)
    return w.select(w.compare("EQ", size, w.full(math.inf, x)), w.full(math.nan, x), result)


def _loop(
    w: Writer,
    values: Sequence[Value],
    cond: Callable[[Writer, list[Value]], Value],
    body: Callable[[Writer, list[Value]], Sequence[Value]],
) -> list[Value]:
    """A while loop over ``values``: its test and its step are written by ``cond`` and ``body``."""
    regions = []
    for write in (cond, body):
        inner = Writer()
        inputs = [inner.emit("input", (), value.shape, value.dtype) for value in values]
        for k in range(len(values)):
            inner.nodes[k]["name"] = f"carried{k}"
        results = write(inner, inputs)
        regions.append(_body(inner.nodes, [x.ref for x in ([results] if isinstance(results, Value) else results)]))
    return w.emit_several("while", values, [(value.shape, value.dtype) for value in values], regions)


def _iterated(
    w: Writer, x: Value, n: Value, p: Value, q: Value, step: Callable[[Writer, Value, Value, Value, Value], Value]
) -> Value:
    """q after n - 1 steps (p, q) := (q, step(k, x, p, q)), k from 1, of each element by its own n, until q is NaN."""

    def going(v: Writer, carried: list[Value]) -> Value:
        k, _, n, _, q = carried
        left = v.compare("LT", v.broadcast(k, n.shape), n)
        return v.op("and", left, v.compare("EQ", q, q))

    def cond(v: Writer, carried: list[Value]) -> Value:
        here = going(v, carried)
        return v.reduce(here, "or", list(range(here.rank)))

    def body(v: Writer, carried: list[Value]) -> list[Value]:
        k, x, n, p, q = carried
        here = going(v, carried)
        factor = v.broadcast(v.convert(k, x.dtype), x.shape)
        after = step(v, factor, x, p, q)
        return [v.op("add", k, v.scalar(1, "int64")), x, n, v.select(here, q, p), v.select(here, after, q)]

    return _loop(w, [w.scalar(1, "int64"), x, n, p, q], cond, body)[4]


def _degrees(w: Writer, a: Any) -> tuple[Value, Value]:
    """The argument and the degree (cut to an integer) of an orthogonal polynomial, in one shape."""
    x, n = w.pair(a.x, a.n, w.out[0][1])
    return x, w.convert(n, "int64")


def _of_degree(w: Writer, n: Value, x: Value, result: Value) -> Value:
    """0 for negative degrees, 1 for degree 0, else ``result``."""
    zero = w.full(0, n)
    result = w.select(w.compare("EQ", n, zero), w.full(1.0, x), result)
    return w.select(w.compare("LT", n, zero), w.full(0.0, x), result)


def _chebyshev(kind: str, shifted: bool) -> Rule:
    def write(w: Writer, a: Any) -> Value:
        """native/Math.h, chebyshev_polynomial_*_forward: the trigonometric form inside (-1, 1) above a small degree,
        the recurrence 2 y q - p otherwise, and the exact values at both ends."""
        x, n = _degrees(w, a)
        one, two, half = w.full(1.0, x), w.full(2.0, x), w.full(0.5, x)
        twice = w.op("add", x, x)
        y = w.op("subtract", twice, one) if shifted else x
        degree = w.convert(n, x.dtype)
        odd = w.compare("NE", w.op("and", n, w.full(1, n)), w.full(0, n))
        n1, n2 = (w.convert(w.op("add", v, w.full(1, n)), x.dtype) for v in (n, w.op("add", n, n)))

        def signed(v: Value) -> Value:
            return w.select(odd, w.op("negate", v), v)

        ends = {"t": (one, signed(one)), "u": (n1, signed(n1)), "v": (one, signed(n2)), "w": (n2, signed(one))}[kind]
        angle = w.op("acos", y)
        if kind == "t":
            inside = w.op("cosine", w.op("multiply", degree, angle))
        elif kind == "u":
            inside = w.op("divide", w.op("sine", w.op("multiply", n1, angle)), w.op("sine", angle))
        else:
            outer, inner, other = ("cosine", "cosine", "sine") if kind == "v" else ("sine", "sine", "cosine")
            bent = w.op("multiply", w.op("add", degree, half), angle)
            halved = w.op("divide", angle, two)
            inside = w.op("divide", w.op(outer, bent), w.op(inner, halved))
            flat = w.compare("EQ", w.op(other, halved), one)
            limit = signed(n2) if kind == "v" else signed(one) if shifted else ends[0]
            inside = w.select(flat, limit, inside)
        double = w.op("add", y, y)
        first = {
            "t": lambda: y,
            "u": lambda: double,
            "v": lambda: w.op("subtract", double, one),
            "w": lambda: w.op("add", double, one),
        }[kind]()

        def step(v: Writer, k: Value, y: Value, p: Value, q: Value) -> Value:
            return v.op("subtract", v.op("multiply", v.op("add", y, y), q), p)

        result = _of_degree(w, n, x, _iterated(w, y, n, one, first, step))
        least = {"t": 6, "u": 6 if shifted else 8, "v": 6 if shifted else 8, "w": 4 if shifted else 8}[kind]
        smooth = w.op("and", w.compare("GT", n, w.full(least, n)), w.compare("LT", w.op("abs", y), one))
        result = w.select(smooth, inside, result)
        low = w.full(0.0, x) if shifted else w.full(-1.0, x)
        natural = w.compare("GE", n, w.full(0, n))
        for place, value in ((low, ends[1]), (one, ends[0])):
            result = w.select(w.op("and", natural, w.compare("EQ", x, place)), value, result)
        return result

    return write


_HERMITE_LIMITS = {"float32": 128, "float64": 512}


@rule(
    *(
        f"special_{name}.{kind}"
        for name in ("hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p")
        for kind in ("default", "x_scalar", "n_scalar")
    )
)
def _polynomial(w: Writer, a: Any) -> Value:
    """native/Math.h: the three-term recurrences of Hermite, Laguerre and Legendre polynomials, step by step."""
    x, n = _degrees(w, a)
    name = a.operator.removeprefix("special_")
    one, double = w.full(1.0, x), w.op("add", x, x)

    def hermite_h(v: Writer, k: Value, x: Value, p: Value, q: Value) -> Value:
        lead = v.op("multiply", v.op("add", x, x), q)
        return v.op("subtract", lead, v.op("multiply", v.op("add", k, k), p))

    def hermite_he(v: Writer, k: Value, x: Value, p: Value, q: Value) -> Value:
        return v.op("subtract", v.op("multiply", x, q), v.op("multiply", k, p))

    def laguerre(v: Writer, k: Value, x: Value, p: Value, q: Value) -> Value:
        unit = v.full(1.0, x)
        lead = v.op("multiply", v.op("add", v.op("add", k, k), v.op("subtract", unit, x)), q)
        return v.op("divide", v.op("subtract", lead, v.op("multiply", k, p)), v.op("add", k, unit))

    def legendre(v: Writer, k: Value, x: Value, p: Value, q: Value) -> Value:
        unit = v.full(1.0, x)
        lead = v.op("multiply", v.op("multiply", v.op("add", v.op("add", k, k), unit), x), q)
        return v.op("divide", v.op("subtract", lead, v.op("multiply", k, p)), v.op("add", k, unit))

    first, step = {
        "hermite_polynomial_h": (double, hermite_h),
        "hermite_polynomial_he": (x, hermite_he),
        "laguerre_polynomial_l": (w.op("subtract", one, x), laguerre),
        "legendre_polynomial_p": (x, legendre),
    }[name]
    result = _of_degree(w, n, x, _iterated(w, x, n, one, first, step))
    natural = w.compare("GE", n, w.full(0, n))
    if name.startswith("hermite"):
        beyond = w.compare("GT", n, w.full(_HERMITE_LIMITS[x.dtype], n))
        return w.select(beyond, w.full(math.nan, x), result)
    if name == "laguerre_polynomial_l":
        return w.select(w.op("and", natural, w.compare("EQ", x, w.full(0.0, x))), one, result)
    odd = w.compare("NE", w.op("and", n, w.full(1, n)), w.full(0, n))
    for place, value in ((w.full(-1.0, x), w.select(odd, w.full(-1.0, x), one)), (one, one)):
        result = w.select(w.op("and", natural, w.compare("EQ", x, place)), value, result)
    return result


for _name in "tuvw":
    for _kind in ("default", "x_scalar", "n_scalar"):
        RULES[f"aten.special_chebyshev_polynomial_{_name}.{_kind}"] = _chebyshev(_name, False)
        RULES[f"aten.special_shifted_chebyshev_polynomial_{_name}.{_kind}"] = _chebyshev(_name, True)


@rule("frexp.Tensor")
def _frexp(w: Writer, a: Any) -> list[Value | None]:
    """x = mantissa * 2^exponent with 1/2 <= |mantissa| < 1; zeros, infinities and NaN come back with exponent 0."""
    dtype = a.self.dtype
    (value,), _ = w.in_float32(dtype, [a.self], a.self.shape)
    width, fraction, bias = (32, 23, 127) if value.dtype == "float32" else (64, 52, 1023)
    word = f"int{width}"
    tiny = w.compare("LT", w.op("abs", value), w.full(2.0 ** (1 - bias), value))
    lifted = w.select(tiny, w.op("multiply", value, w.full(2.0 ** (fraction + 1), value)), value)
    bits = w.emit("bitcast_convert", [lifted], value.shape, word)
    field = w.op("shift_right_logical", w.op("shift_left", bits, w.full(1, bits)), w.full(fraction + 1, bits))
    rest = w.op("and", bits, w.full(~((2 * bias + 1) << fraction), bits))
    near_one = w.op("or", rest, w.full((bias - 1) << fraction, bits))
    mantissa = w.emit("bitcast_convert", [near_one], value.shape, value.dtype)
    exponent = w.op("subtract", w.convert(field, "int32"), w.full(bias - 1, field, "int32"))
    exponent = w.op("subtract", exponent, w.select(tiny, w.full(fraction + 1, exponent), w.full(0, exponent)))
    zero = w.compare("EQ", value, w.full(0.0, value))
    plain = w.op("or", zero, w.op("not", w.op("is_finite", value, dtype="bool")))
    mantissa = w.select(plain, value, mantissa)
    return [w.convert(mantissa, dtype), w.select(plain, w.full(0, exponent), exponent)]


@rule("ldexp.Tensor")
def _ldexp(w: Writer, a: Any) -> Value:
    """self * 2^other, the power rounded in its own dtype (native/BinaryOps.cpp)."""
    dtype = a.other.dtype if a.other.kind in ("float", "complex") else DTYPES[torch.get_default_dtype()]
    exponent = w.convert(a.other, dtype)
    power = w.op("power", w.full(2.0, exponent), exponent)
    return w.op("multiply", *w.pair(a.self, power, w.out[0][1]))


def _greatest_divisor(w: Writer, x: Value, y: Value) -> Value:
    """Euclid's algorithm on the sizes, element by element."""
    x, y = (v if v.kind == "uint" else w.op("abs", v) for v in (x, y))

    def cond(v: Writer, carried: list[Value]) -> Value:
        left = v.compare("NE", carried[1], v.full(0, carried[1]))
        return v.reduce(left, "or", list(range(left.rank)))

    def body(v: Writer, carried: list[Value]) -> list[Value]:
        x, y = carried
        left = v.compare("NE", y, v.full(0, y))
        return [v.select(left, y, x), v.select(left, v.op("remainder", x, y), y)]

    return _loop(w, [x, y], cond, body)[0]


@rule("gcd.default", "lcm.default")
def _gcd(w: Writer, a: Any) -> Value:
    """lcm: |x / gcd * y|, 0 where both are 0 (native/cpu/BinaryOpsKernel.cpp)."""
    x, y = w.pair(a.self, a.other)
    divisor = _greatest_divisor(w, x, y)
    if a.operator == "gcd":
        return divisor
    zero = w.full(0, divisor)
    none = w.compare("EQ", divisor, zero)
    safe = w.select(none, w.full(1, divisor), divisor)
    multiple = w.op("multiply", w.op("divide", x, safe), y)
    return w.select(none, zero, multiple if multiple.kind == "uint" else w.op("abs", multiple))


# ---- rules: histograms and distances --------------------------------------------------------------------------------


def _counted(
    w: Writer,
    columns: Sequence[Value],
    edges: Sequence[Value],
    weight: Value | None,
    density: bool,
    uniform: bool,
    search: bool,
) -> Value:
    """The weight that falls into each cell (native/cpu/HistogramKernel.cpp): edges[k] are the bounds of axis k.

    ``uniform`` guesses the bin of evenly spaced edges from the distance, and ``search`` then looks at the edges beside
    the guess; otherwise the edges are searched. The last bin has its right edge. What lies outside is not counted.
    """
    dtype = edges[0].dtype
    inside = w.full(True, columns[0], "bool")
    places = []
    for x, edge in zip(columns, edges, strict=True):
        bins = edge.shape[0] - 1
        left, right = (w.broadcast(w.reshape(w.slice(edge, 0, k, k + 1), ()), x.shape) for k in (0, bins))
        within = w.op("and", w.compare("GE", x, left), w.compare("LE", x, right))
        inside = w.op("and", inside, within)
        if uniform:
            reach = w.op("multiply", w.op("subtract", x, left), w.full(bins, x))
            guess = w.op("divide", reach, w.op("subtract", right, left))
            guess = w.convert(w.select(within, guess, w.full(0.0, x)), "int64")
        if uniform and not search:
            place = guess
        else:
            # upper_bound - 1: the edges that are not above x, less one; with a guess, of the three beside it.
            shape = [*x.shape, bins + 1]
            row = w.along(edge, shape, [len(shape) - 1])
            below = w.compare("LE", row, w.along(x, shape, range(x.rank)))
            if uniform:
                rank = w.emit("iota", [], shape, "int64", iota_dimension=len(shape) - 1)
                low = w.along(w.op("subtract", guess, w.full(1, guess)), shape, range(x.rank))
                high = w.along(w.op("add", guess, w.full(2, guess)), shape, range(x.rank))
                below = w.op("and", below, w.compare("LT", rank, high))
                below = w.op("or", below, w.compare("LT", rank, low))
            place = w.reduce(w.convert(below, "int64"), "add", [x.rank])
            place = w.op("subtract", place, w.full(1, place))
        places.append(w.op("minimum", place, w.full(bins - 1, place)))
    sizes = [edge.shape[0] - 1 for edge in edges]
    flat = w.full(0, places[0])
    for place, size in zip(places, sizes, strict=True):
        flat = w.op("add", w.op("multiply", flat, w.full(size, flat)), place)
    flat = w.select(inside, flat, w.full(math.prod(sizes), flat))
    ones = w.full(1.0, columns[0], dtype) if weight is None else weight
    zeros = w.broadcast(w.scalar(0.0, dtype), [math.prod(sizes)])
    counts = w.reshape(_store(w, zeros, _column(w, flat), ones, [0], 0, "add", "drop"), sizes)
    if density:
        total = w.reduce(counts, "add", list(range(len(sizes))))
        counts = w.op("divide", counts, w.broadcast(total, sizes))
        for axis, edge in enumerate(edges):
            widths = w.op("subtract", w.slice(edge, 0, 1, sizes[axis] + 1), w.slice(edge, 0, 0, sizes[axis]))
            counts = w.op("divide", counts, w.along(widths, sizes, [axis]))
    return counts


def _ends(w: Writer, x: Value, low: float | None, high: float | None, spread: float) -> tuple[Value, Value]:
    """The outer edges: those given, or the extremes of the data; equal ones are moved apart by ``spread`` each."""
    if low is not None and high is not None and low != high:
        return w.scalar(low, x.dtype), w.scalar(high, x.dtype)
    if low is not None or not x.size:
        given = low if low is not None else 0.0
        if low is None and not x.size:
            return w.scalar(0.0, x.dtype), w.scalar(1.0, x.dtype)
        return w.scalar(given - spread, x.dtype), w.scalar(given + spread, x.dtype)
    axes = list(range(x.rank))
    left, right = (w.reduce(x, reducer, axes) for reducer in ("minimum", "maximum"))
    same, step = w.compare("EQ", left, right), w.full(spread, left)
    return w.select(same, w.op("subtract", left, step), left), w.select(same, w.op("add", right, step), right)


def _spaced(w: Writer, left: Value, right: Value, count: int) -> Value:
    """linspace (native/cpu/RangeFactoriesKernel.cpp): steps from the left in the first half, from the right after."""
    if count == 1:
        return w.reshape(left, [1])
    shape = [count]
    step = w.op("divide", w.op("subtract", right, left), w.full(count - 1, left))
    place = w.emit("iota", [], shape, left.dtype, iota_dimension=0)
    start, end, wide = (w.broadcast(v, shape) for v in (left, right, step))
    low = w.op("add", start, w.op("multiply", wide, place))
    back = w.op("subtract", w.full(count - 1, place), place)
    high = w.op("subtract", end, w.op("multiply", wide, back))
    return w.select(w.compare("LT", place, w.full(count // 2, place)), low, high)


@rule("histc.default")
def _histc(w: Writer, a: Any) -> Value:
    dtype = w.out[0][1]
    x = w.reshape(w.convert(a.self, dtype), [a.self.size])
    low, high = (None, None) if a.min == a.max and x.size else (a.min, a.max)
    left, right = _ends(w, x, low, high, 1.0)
    edges = _spaced(w, left, right, a.bins + 1)
    return _counted(w, [x], [edges], None, False, uniform=True, search=False)


@rule("histogram.bin_ct", "histogram.bins_tensor")
def _histogram(w: Writer, a: Any) -> list[Value | None]:
    x = w.reshape(a.self, [a.self.size])
    weight = None if a.weight is None else w.reshape(a.weight, x.shape)
    if isinstance(a.bins, Value):
        edges = a.bins
    else:
        low, high = getattr(a, "range", None) or (None, None)
        edges = _spaced(w, *_ends(w, x, low, high, 0.5), a.bins + 1)
    uniform = not isinstance(a.bins, Value)
    return [_counted(w, [x], [edges], weight, a.density, uniform, True), edges]


def _points(w: Writer, x: Value) -> list[Value]:
    """The coordinates of points, one tensor per axis of the last axis."""
    flat = w.reshape(x, [math.prod(x.shape[:-1]), x.shape[-1]])
    return [w.reshape(w.slice(flat, 1, k, k + 1), [flat.shape[0]]) for k in range(flat.shape[1])]


def _point_edges(w: Writer, a: Any, columns: Sequence[Value]) -> list[Value]:
    limits = getattr(a, "range", None) or [None] * (2 * len(columns))
    return [
        _spaced(w, *_ends(w, x, limits[2 * k], limits[2 * k + 1], 0.5), count + 1)
        for k, (x, count) in enumerate(zip(columns, a.bins, strict=True))
    ]


@rule("_histogramdd_bin_edges.default")
def _histogramdd_edges(w: Writer, a: Any) -> list[Value | None]:
    return list(_point_edges(w, a, _points(w, a.self)))


@rule("_histogramdd_from_bin_cts.default", "_histogramdd_from_bin_tensors.default")
def _histogramdd(w: Writer, a: Any) -> Value:
    columns = _points(w, a.self)
    given = isinstance(a.bins[0], Value)
    edges = a.bins if given else _point_edges(w, a, columns)
    weight = None if a.weight is None else w.reshape(a.weight, columns[0].shape)
    return _counted(w, columns, edges, weight, a.density, not given, True)


def _distance(w: Writer, difference: Value, p: float, axis: int) -> Value:
    """native/cpu/DistanceOpsKernel.cpp: the p-norm of differences along an axis; p = 0 counts those that are not 0."""
    size = w.op("abs", difference)
    if p == 0:
        one = w.full(1.0, size)
        return w.reduce(w.op("minimum", w.op("ceil", size), one), "add", [axis])
    if p == 1:
        return w.reduce(size, "add", [axis])
    if p == 2:
        return w.op("sqrt", w.reduce(w.op("multiply", size, size), "add", [axis]))
    if math.isinf(p):
        zeros = w.full(0.0, size)
        return w.reduce(w.op("maximum", size, zeros), "maximum", [axis])
    total = w.reduce(w.op("power", size, w.full(p, size)), "add", [axis])
    return w.op("power", total, w.full(1.0 / p, total))


@rule("_cdist_forward.default")
def _cdist(w: Writer, a: Any) -> Value:
    """The distance of every row of x1 from every row of x2. For p = 2 and many rows torch takes
    sqrt(|x|^2 + |y|^2 - 2 x·y) by a matrix product (native/Distance.cpp, _euclidean_dist)."""
    shape, dtype = w.out[0]
    if not math.prod(shape):
        return w.broadcast(w.scalar(0.0, dtype), shape)
    if not a.x1.shape[-1]:
        return w.broadcast(w.scalar(0.0, dtype), shape)
    lead, width = list(shape[:-2]), a.x1.shape[-1]
    x, y = (w.broadcast(v, [*lead, *v.shape[-2:]]) for v in (a.x1, a.x2))
    rows, columns = shape[-2:]
    if a.p == 2 and (a.compute_mode == 1 or (a.compute_mode in (None, 0) and max(rows, columns) > 25)):
        ones, squares = [], []
        for v in (x, y):
            squares.append(w.reduce(w.op("multiply", v, v), "add", [v.rank - 1], keep=True))
            ones.append(w.full(1.0, squares[-1]))
        lhs = w.concatenate([w.op("multiply", x, w.full(-2.0, x)), squares[0], ones[0]], x.rank - 1)
        rhs = w.concatenate([y, ones[1], squares[1]], y.rank - 1)
        product = w.dot(lhs, rhs, len(lead), lhs.rank - 1, rhs.rank - 1)
        zeros = w.full(0.0, product)
        return w.op("sqrt", w.select(w.compare("LT", product, zeros), zeros, product))
    pairs = [*lead, rows, columns, width]
    before = list(range(len(lead)))
    far = w.op(
        "subtract",
        w.along(x, pairs, [*before, len(lead), len(lead) + 2]),
        w.along(y, pairs, [*before, len(lead) + 1, len(lead) + 2]),
    )
    return _distance(w, far, a.p, len(pairs) - 1)


@rule("_cdist_backward.default")
def _cdist_backward(w: Writer, a: Any) -> Value:
    """The gradient by x1 (native/cpu/DistanceOpsKernel.cpp): for every pair of rows a derivative of the distance times
    its gradient, added up in the order of the rows of x2."""
    (shape, dtype), p = w.out[0], a.p
    lead, rows, width, others = list(shape[:-2]), shape[-2], shape[-1], a.x2.shape[-2]
    if p == 0 or not math.prod(shape) or not others:
        return w.broadcast(w.scalar(0.0, dtype), shape)
    pairs, n = [*lead, rows, others, width], len(lead)
    before = list(range(n))
    x, y = (w.broadcast(v, [*lead, *v.shape[-2:]]) for v in (a.x1, a.x2))
    far = w.op("subtract", w.along(x, pairs, [*before, n, n + 2]), w.along(y, pairs, [*before, n + 1, n + 2]))
    inner = [*lead, rows, others]
    gradient, distance = (w.along(w.broadcast(v, inner), pairs, [*before, n, n + 1]) for v in (a.grad, a.cdist))
    zero, size, sign = w.full(0.0, far), w.op("abs", far), w.op("sign", far)
    if p == 1:
        return w.reduce(w.op("multiply", gradient, sign), "add", [n + 1])
    if math.isinf(p):
        away = w.op("ceil", w.op("abs", w.op("subtract", size, distance)))
        one = w.full(1.0, far)
        greatest = w.op("subtract", one, w.op("minimum", one, away))
        return w.reduce(w.op("multiply", w.op("multiply", gradient, sign), greatest), "add", [n + 1])
    if p == 2:
        part = w.op("divide", w.op("multiply", gradient, far), distance)
    else:
        times = w.op("power", size, w.full(p - 1 if p < 2 else p - 2, far))
        part = w.op("multiply", w.op("multiply", sign if p < 2 else far, times), gradient)
        part = w.op("divide", part, w.op("power", distance, w.full(p - 1, far)))
        if p < 1:
            part = w.select(w.compare("EQ", far, zero), zero, part)
    return w.reduce(w.select(w.compare("EQ", distance, zero), zero, part), "add", [n + 1])


@rule("_pdist_forward.default")
def _pdist(w: Writer, a: Any) -> Value:
    """The distances of the rows from all later ones, in row-major order of the pairs."""
    shape, dtype = w.out[0]
    if not math.prod(shape) or not a.self.shape[1]:
        return w.broadcast(w.scalar(0.0, dtype), shape)
    pairs = torch.triu_indices(a.self.shape[0], a.self.shape[0], 1)
    near, far = (_take(w, a.self, w.constant(k[:, None].contiguous()), [0], 0) for k in pairs)
    return _distance(w, w.op("subtract", near, far), a.p, 1)


@rule("dist.default")
def _dist(w: Writer, a: Any) -> Value:
    """The p-norm of the difference of two tensors."""
    difference = w.op("subtract", *w.pair(a.self, a.other))
    arguments = SimpleNamespace(self=difference, ord=a.p, dim=None, keepdim=False)
    return _vector_norm(w, arguments)


# ---- rules: counted places, segments, bags and normalisation with state ---------------------------------------------


@rule("hash_tensor.default")
def _hash(w: Writer, a: Any) -> Value:
    """The exclusive or of the elements' bits in the 64-bit type of their kind."""
    value = a.self
    wide = {"float": "float64", "int": "int64", "uint": "uint64", "bool": "uint64"}.get(value.kind)
    if wide is None or a.mode != 0:
        raise _Refused(f"mode {a.mode} of {value.dtype}")
    value = w.convert(value, wide)
    bits = value if wide == "uint64" else w.emit("bitcast_convert", [value], value.shape, "uint64")
    return w.reduce(bits, "xor", normal_axes(a.dim, bits.rank), a.keepdim)


@rule("take.default")
def _take_flat(w: Writer, a: Any) -> Value:
    """Elements of the tensor read row by row."""
    flat = w.reshape(a.self, [a.self.size])
    return _take(w, flat, _column(w, _wrapped(w, a.index, a.self.size)), [0], 0)


@rule("nonzero_static.default")
def _nonzero_static(w: Writer, a: Any) -> Value:
    """Coordinates of the first ``size`` elements that are not zero, in row-major order; ``fill_value`` beyond."""
    (count, rank), _ = w.out[0]
    size = a.self.size
    if not count * rank or not size:
        return w.broadcast(w.scalar(a.fill_value, "int64"), [count, rank])
    flat = w.reshape(w.convert(a.self, "bool"), [size])
    place = w.emit("iota", [], [size], "int64", iota_dimension=0)
    absent = w.convert(w.op("not", flat), "int64")
    _, order = w.emit_several("sort", [absent, place], [((size,), "int64")] * 2, dimension=0)
    order = w.slice(order, 0, 0, min(count, size))
    if count > size:
        order = w.concatenate([order, w.broadcast(w.scalar(0, "int64"), [count - size])], 0)
    found = w.reduce(w.convert(flat, "int64"), "add", [0])
    columns = []
    for n, step in zip(a.self.shape, (math.prod(a.self.shape[k + 1 :]) for k in range(rank)), strict=True):
        columns.append(w.op("remainder", w.op("divide", order, w.full(step, order)), w.full(n, order)))
    table = w.concatenate([w.reshape(column, [count, 1]) for column in columns], 1)
    row = w.emit("iota", [], [count, rank], "int64", iota_dimension=0)
    valid = w.compare("LT", row, w.broadcast(found, [count, rank]))
    return w.select(valid, table, w.full(a.fill_value, table))


@rule("segment_reduce.default")
def _segment_reduce(w: Writer, a: Any) -> Value:
    """Each run of an axis reduced to one element, the runs given by their lengths or by their offsets.

    native/SegmentReduce.cpp: from ``initial`` or the reduction's identity; a mean is the sum, initial included,
    divided by the length; the mean of an empty run without initial is NaN.
    """
    shape, dtype = w.out[0]
    axis = normal_axis(a.axis, a.data.rank)
    count = shape[axis]
    reducer = {"sum": "add", "mean": "add", "prod": "multiply", "max": "maximum", "min": "minimum"}[a.reduce]
    start = _identity_of(reducer, dtype) if a.initial is None else a.initial
    if not math.prod(shape):
        return w.broadcast(w.scalar(0, dtype), shape)
    if a.lengths is not None:
        lengths = w.convert(a.lengths, "int64")
        ends = _running(w, lengths, axis, "add")
    else:
        offsets = w.convert(a.offsets, "int64")
        ends = w.slice(offsets, axis, 1, count + 1)
        lengths = w.op("subtract", ends, w.slice(offsets, axis, 0, count))
    lead, rows = list(shape[:axis]), a.data.shape[axis]
    pairs = [*lead, rows, count]
    before = list(range(axis))
    place = w.emit("iota", [], pairs, "int64", iota_dimension=axis)
    passed = w.compare("LE", w.along(ends, pairs, [*before, axis + 1]), place)
    if a.offsets is not None:
        first = w.slice(w.convert(a.offsets, "int64"), axis, 0, 1)
        early = w.compare("LT", place, w.broadcast(w.reshape(first, [*lead, 1, 1]), pairs))
        passed = w.op("or", passed, early)
    segment = w.reduce(w.convert(passed, "int64"), "add", [axis + 1])
    index = w.along(segment, a.data.shape, range(axis + 1))
    bins = list(shape)
    bins[axis] = count + 1  # the last one takes what belongs to no run
    result = _scattered(w, w.broadcast(w.scalar(start, dtype), bins), axis, index, a.data, reducer)
    result = w.slice(result, axis, 0, count)
    if a.reduce != "mean":
        return result
    sizes = w.along(w.convert(lengths, dtype), shape, range(axis + 1))
    none = w.compare("EQ", sizes, w.full(0.0, sizes))
    empty = w.full(math.nan, sizes) if a.initial is None else w.full(a.initial, sizes)
    return w.select(none, empty, w.op("divide", result, sizes))


@rule("_embedding_bag_forward_only.default", "_embedding_bag.default")
def _embedding_bag(w: Writer, a: Any) -> list[Value | None]:
    """Rows of a table added up, averaged or their maximum taken, bag by bag; offsets say where each bag begins.

    native/EmbeddingBag.cpp; rows at padding_idx are not in any bag, and an empty bag gives 0.
    """
    shape, dtype = w.out[0]
    bags, width = shape
    count = a.indices.size
    if not bags * width or not count:
        return [w.broadcast(w.scalar(0, dtype), shape), *[None] * (len(w.out) - 1)]
    index, offsets = w.convert(a.indices, "int64"), w.convert(a.offsets, "int64")
    if index.rank == 2:
        raise _Refused("two-dimensional indices are split into bags before")
    pairs = [count, offsets.shape[0]]
    place = w.emit("iota", [], pairs, "int64", iota_dimension=0)
    begun = w.compare("LE", w.along(offsets, pairs, [1]), place)
    bag = w.reduce(w.convert(begun, "int64"), "add", [1])
    bag = w.op("subtract", bag, w.full(1, bag))
    if a.padding_idx is not None and a.padding_idx >= 0:
        padding = w.compare("EQ", index, w.full(a.padding_idx, index))
        bag = w.select(padding, w.full(bags, bag), bag)
    (rows,), _ = w.in_float32(dtype, [_take(w, a.weight, _column(w, index), [0], 0)], (count, width))
    if a.per_sample_weights is not None:
        weights = w.convert(a.per_sample_weights, rows.dtype)
        rows = w.op("multiply", rows, w.along(weights, rows.shape, [0]))
    reducer = "maximum" if a.mode == 2 else "add"
    start = w.broadcast(w.scalar(_identity_of(reducer, rows.dtype), rows.dtype), shape)
    result = _store(w, start, _column(w, bag), rows, [0], 0, reducer, "drop")
    sizes = _store(w, w.broadcast(w.scalar(0, "int64"), [bags]), _column(w, bag), w.full(1, bag), [0], 0, "add", "drop")
    if a.mode == 1:
        divisor = w.convert(w.op("maximum", sizes, w.full(1, sizes)), rows.dtype)
        result = w.op("divide", result, w.along(divisor, shape, [0]))
    elif a.mode == 2:
        empty = w.along(w.compare("EQ", sizes, w.full(0, sizes)), shape, [0])
        result = w.select(empty, w.full(0.0, result), result)
    return [w.convert(result, dtype), *[None] * (len(w.out) - 1)]


@rule("embedding_renorm.default")
def _embedding_renorm(w: Writer, a: Any) -> Value:
    """The rows that are looked up, where their norm is above max_norm, times max_norm / (norm + 1e-7)."""
    shape, dtype = w.out[0]
    arguments = SimpleNamespace(self=a.self, ord=a.norm_type, dim=[1], keepdim=False)
    outer, w.out = w.out, [((shape[0],), dtype)]
    norm = _vector_norm(w, arguments)
    w.out = outer
    index = w.reshape(w.convert(a.indices, "int64"), [a.indices.size])
    none = w.broadcast(w.scalar(False, "bool"), [shape[0]])
    used = _store(w, none, _column(w, index), w.full(True, index, "bool"), [0], 0)
    scale = w.op("divide", w.full(a.max_norm, norm), w.op("add", norm, w.full(1e-7, norm)))
    long = w.op("and", used, w.compare("GT", norm, w.full(a.max_norm, norm)))
    scaled = w.op("multiply", a.self, w.along(scale, shape, [0]))
    return w.select(w.along(long, shape, [0]), scaled, a.self)


@rule("_batch_norm_with_update_functional.default")
def _batch_norm_with_update(w: Writer, a: Any) -> list[Value | None]:
    """Batch norm in training, with a result of no elements (what other devices keep for the gradient) in the middle."""
    types = w.out
    w.out = [*types[:3], *types[4:]]
    a.training = True
    results = _batch_norm(w, a)
    w.out = types
    assert isinstance(results, list)
    return [*results[:3], None, *results[3:]]


def _fractional_max_pool(count: int) -> Rule:
    def write(w: Writer, a: Any) -> list[Value | None]:
        """Windows of one size whose places the random samples choose: floor((i + u) * r) - floor(u * r) with
        r = (size - window) / (places - 1), the last at the end (native/FractionalMaxPooling.h)."""
        shape = w.out[0][0]
        sizes, places = a.self.shape[a.self.rank - count :], shape[len(shape) - count :]
        plane = _plane(w, a.self, count)
        rows = plane.shape[0]
        samples = w.reshape(a.random_samples if hasattr(a, "random_samples") else a._random_samples, [rows, count])
        full = [rows, *places, *a.kernel_size]
        index = w.broadcast(w.scalar(0, "int64"), full)
        for axis, (size, number, window) in enumerate(zip(sizes, places, a.kernel_size, strict=True)):
            start = w.broadcast(w.scalar(size - window, "int64"), [rows, number])
            if number > 1:
                real = np.float64 if samples.dtype == "float64" else np.float32
                rate = float(real(size - window) / real(number - 1))
                k = count - 1 - axis if count == 2 else axis  # in two dimensions the first sample is of the width
                u = w.along(w.reshape(w.slice(samples, 1, k, k + 1), [rows]), [rows, number], [0])
                step = w.emit("iota", [], [rows, number], samples.dtype, iota_dimension=1)
                there = w.convert(w.op("multiply", w.op("add", step, u), w.full(rate, u)), "int64")
                there = w.op("subtract", there, w.convert(w.op("multiply", u, w.full(rate, u)), "int64"))
                place = w.emit("iota", [], [rows, number], "int64", iota_dimension=1)
                start = w.select(w.compare("LT", place, w.full(number - 1, place)), there, start)
            offset = w.emit("iota", [], full, "int64", iota_dimension=1 + count + axis)
            index = w.op("multiply", index, w.full(size, index))
            index = w.op("add", index, w.op("add", w.along(start, full, [0, 1 + axis]), offset))
        window = math.prod(a.kernel_size)
        index = w.reshape(index, [rows, math.prod(places), window])
        row = w.emit("iota", [], index.shape, "int64", iota_dimension=0)
        elements = _take(w, plane, _stacked(w, [row, index]), [0, 1], 0)
        values = w.reduce(elements, "maximum", [2])
        chosen = _gather_along(w, index, 2, _arg(w, "argmax", elements, 2, True))
        return [w.reshape(values, shape), w.reshape(chosen, shape)]

    return write


RULES["aten.fractional_max_pool2d.default"] = _fractional_max_pool(2)
RULES["aten.fractional_max_pool3d.default"] = _fractional_max_pool(3)


# ---- rules: the loss of connectionist temporal classification -------------------------------------------------------


class _Alignments:
    """What native/LossCTC.cpp works with: per batch element the labels with a blank before, between and behind them.

    ``probs`` has axes (batch, time, class), ``labels`` (batch, label) and ``emitted`` (batch, time, label). Labels from
    ``2 * sizes`` on are blanks that no alignment within the lengths reaches.
    """

    def __init__(self, w: Writer) -> None:
        self.w = w

    def emit(self, op: str, shape: Sequence[int], dtype: str, **attrs: Any) -> Value:
        """A node without operands."""
        return self.w.emit(op, [], shape, dtype, **attrs)

    def read(self, a: Any) -> None:
        """Take the operands of the operator."""
        w = self.w
        probs = a.log_probs if a.log_probs.rank == 3 else w.reshape(a.log_probs, [a.log_probs.shape[0], 1, -1])
        self.probs = w.transpose(probs, [1, 0, 2])
        self.batch, self.time, self.classes = self.probs.shape
        self.lengths, self.sizes = (
            w.reshape(w.convert(x, "int64") if isinstance(x, Value) else w.constant(torch.tensor(x)), [self.batch])
            for x in (a.input_lengths, a.target_lengths)
        )
        targets = w.convert(a.targets, "int64")
        count = targets.shape[-1]
        place = self.iota([self.batch, count], 1)
        if targets.rank == 1:  # one behind the other
            pairs = [self.batch, self.batch]
            earlier = w.compare("LT", self.iota(pairs, 0), self.iota(pairs, 1))
            spread = w.along(self.sizes, pairs, [0])
            starts = w.reduce(w.select(earlier, spread, w.full(0, spread)), "add", [0])
            place_of = w.op("add", place, w.along(starts, place.shape, [0]))
            place_of = w.op("minimum", place_of, w.full(count - 1, place_of))
            targets = self.gather(w.along(targets, place.shape, [1]), place_of)
        blank = w.full(a.blank, place)
        within = w.compare("LT", place, w.along(self.sizes, place.shape, [0]))
        targets = w.select(within, targets, blank)
        ends = [*place.shape, 1]
        both = w.reshape(w.concatenate([w.reshape(blank, ends), w.reshape(targets, ends)], 2), [self.batch, 2 * count])
        self.labels = w.concatenate([both, w.full(a.blank, w.slice(place, 1, 0, 1))], 1)
        self.count = self.labels.shape[1]
        self.nothing = w.full(-math.inf, self.labels, self.probs.dtype)
        shape = [self.batch, self.time, self.count]
        self.emitted = self.gather(self.probs, w.along(self.labels, shape, [0, 2]))
        self.differs = w.compare("NE", self.labels, self.moved(self.labels, 2, w.full(-1, self.labels)))
        """Whether a label is another one than that two places before, so that the blank between may be left out."""

    def iota(self, shape: Sequence[int], axis: int) -> Value:
        return self.emit("iota", shape, "int64", iota_dimension=axis)

    def gather(self, value: Value, index: Value) -> Value:
        """Along the last axis."""
        return _picked(self.w, value, index, value.rank - 1)

    def moved(self, value: Value, by: int, fill: Value) -> Value:
        """``value`` moved along the labels to higher places, or to lower ones; what comes in is that of ``fill``."""
        size = min(abs(by), self.count)
        edge = self.w.slice(fill, 1, 0, size)
        if by > 0:
            return self.w.concatenate([edge, self.w.slice(value, 1, 0, self.count - size)], 1)
        return self.w.concatenate([self.w.slice(value, 1, size, self.count), edge], 1)

    def at(self, k: int) -> Value:
        """What is emitted at a time."""
        return self.w.reshape(self.w.slice(self.emitted, 1, k, k + 1), [self.batch, self.count])

    def log_sum(self, values: Sequence[Value]) -> Value:
        w = self.w
        top = functools.reduce(functools.partial(w.op, "maximum"), values)
        top = w.select(w.compare("EQ", top, w.full(-math.inf, top)), w.full(0.0, top), top)
        terms = [w.op("exponential", w.op("subtract", value, top)) for value in values]
        return w.op("add", w.op("log", functools.reduce(functools.partial(w.op, "add"), terms)), top)

    def step(self, state: Value, k: int, direction: int) -> Value:
        """The next time's state: what comes from the same label, the one beside it, and the next but one."""
        w = self.w
        differs = (
            self.differs if direction > 0 else self.moved(self.differs, -2, w.compare("NE", self.labels, self.labels))
        )
        far = w.select(differs, self.moved(state, 2 * direction, self.nothing), self.nothing)
        ways = [state, self.moved(state, direction, self.nothing), far]
        return w.op("add", self.log_sum(ways), self.at(k))

    def by_batch(self, value: Value, number: int, direction: str) -> Value:
        """Compares ``value`` of each batch element with a number, for every label."""
        return self.w.along(self.w.compare(direction, value, self.w.full(number, value)), self.labels.shape, [0])

    def forward(self) -> tuple[list[Value], Value]:
        """Per time the logarithms of the probabilities of what was emitted so far; and the negative log likelihood."""
        w = self.w
        place = self.iota(self.labels.shape, 1)
        first = w.op("and", w.compare("LT", place, w.full(2, place)), w.compare("LE", place, self.ends()))
        states = [w.select(first, self.at(0), self.nothing)]
        for k in range(1, self.time):
            later = self.step(states[-1], k, 1)
            states.append(w.select(self.by_batch(self.lengths, k, "GT"), later, states[-1]))
        end = w.slice(self.ends(), 1, 0, 1)
        before = w.op("maximum", w.op("subtract", end, w.full(1, end)), w.full(0, end))
        last, previous = (self.gather(states[-1], index) for index in (end, before))
        empty = w.compare("EQ", end, w.full(0, end))
        likelihood = w.select(empty, last, self.log_sum([last, previous]))
        length = w.reshape(self.lengths, end.shape)
        unheard = w.select(empty, w.full(0.0, likelihood), self.w.full(-math.inf, likelihood))
        likelihood = w.select(w.compare("GT", length, w.full(0, length)), likelihood, unheard)
        return states, w.reshape(w.op("negate", likelihood), [self.batch])

    def ends(self) -> Value:
        """The place of each batch element's last blank."""
        return self.w.along(self.w.op("multiply", self.sizes, self.w.full(2, self.sizes)), self.labels.shape, [0])

    def backward(self) -> list[Value]:
        """Per time the logarithms of the probabilities of what is emitted from then on."""
        w = self.w
        place = self.iota(self.labels.shape, 1)
        near = w.op("subtract", self.ends(), place)
        final = w.op("or", w.compare("EQ", near, w.full(0, near)), w.compare("EQ", near, w.full(1, near)))
        states: list[Value] = []
        for k in reversed(range(self.time)):
            state = self.nothing
            if states:
                state = w.select(self.by_batch(self.lengths, k + 1, "GT"), self.step(states[0], k, -1), state)
            ending = w.select(final, self.at(k), self.nothing)
            states.insert(0, w.select(self.by_batch(self.lengths, k + 1, "EQ"), ending, state))
        return states

    def stacked(self, states: Sequence[Value]) -> Value:
        w = self.w
        return w.concatenate([w.reshape(state, [self.batch, 1, self.count]) for state in states], 1)


@rule("_ctc_loss.default", "_ctc_loss.Tensor")
def _ctc_loss(w: Writer, a: Any) -> list[Value]:
    """The forward algorithm in the order of native/LossCTC.cpp, for targets of any length that ``targets`` can hold."""
    (likelihood_shape, _), (kept_shape, _) = w.out
    b = _Alignments(w)
    b.read(a)
    states, negative = b.forward()
    kept = w.slice(b.stacked(states), 2, 0, kept_shape[-1])
    return [w.reshape(negative, likelihood_shape), w.reshape(kept, kept_shape)]


@rule("_ctc_loss_backward.default", "_ctc_loss_backward.Tensor")
def _ctc_loss_backward(w: Writer, a: Any) -> Value:
    """(exp(p) - exp(alignments through a class + loss - p)) times the loss's gradient, 0 behind the input's end. The
    forward states are computed again, so that the result does not depend on how many of them torch kept."""
    b = _Alignments(w)
    b.read(a)
    through = w.op("add", b.stacked(b.forward()[0]), b.stacked(b.backward()))
    shape = [b.batch, b.time, b.count, b.classes]
    classes = b.iota(shape, 3)
    mine = w.compare("EQ", w.along(b.labels, shape, [0, 2]), classes)
    spread = w.along(through, shape, [0, 1, 2])
    spread = w.select(mine, spread, w.full(-math.inf, spread))
    top = w.reduce(spread, "maximum", [2])
    top = w.select(w.compare("EQ", top, w.full(-math.inf, top)), w.full(0.0, top), top)
    terms = w.op("exponential", w.op("subtract", spread, w.along(top, shape, [0, 1, 3])))
    total = w.op("add", w.op("log", w.reduce(terms, "add", [2])), top)

    probs = b.probs
    loss, gradient = (w.reshape(x, [b.batch]) for x in (a.neg_log_likelihood, a.grad))
    loss_of = w.along(loss, probs.shape, [0])
    share = w.op("exponential", w.op("subtract", w.op("add", total, loss_of), probs))
    result = w.op("subtract", w.op("exponential", probs), share)
    result = w.op("multiply", result, w.along(gradient, probs.shape, [0]))
    times = b.iota(probs.shape, 1)
    zero = w.full(0.0, result)
    result = w.select(w.compare("LT", times, w.along(b.lengths, probs.shape, [0])), result, zero)
    if a.zero_infinity:
        result = w.select(w.compare("EQ", loss_of, w.full(math.inf, loss_of)), zero, result)
    return w.reshape(w.transpose(result, [1, 0, 2]), w.out[0][0])


# ---- rules: sampling at computed positions --------------------------------------------------------------------------


def _unnormalised(w: Writer, coordinate: Value, size: int, align: bool) -> Value:
    """From [-1, 1] to positions of an axis (native/cpu/GridSamplerKernel.cpp, ComputeLocationBase)."""
    one = w.full(1.0, coordinate)
    if align:
        return w.op("multiply", w.op("add", coordinate, one), w.full((size - 1) / 2, coordinate))
    scaled = w.op("multiply", w.op("add", coordinate, one), w.full(size / 2, coordinate))
    return w.op("subtract", scaled, w.full(0.5, coordinate))


def _clipped(w: Writer, position: Value, size: int) -> Value:
    """Between 0 and size - 1; NaN becomes 0 (std::max(x, 0))."""
    zero, last = w.full(0.0, position), w.full(float(size - 1), position)
    position = w.select(w.compare("GT", position, zero), position, zero)
    return w.select(w.compare("LT", position, last), position, last)


def _folded(w: Writer, position: Value, size: int, padding: int, align: bool) -> Value:
    """Positions beyond the edges: as they are (0), at the edge (1), reflected (2), by native/GridSampler.h."""
    if padding == 0:
        return position
    if padding == 2:
        low, span = (0.0, float(size - 1)) if align else (-0.5, float(size))
        if span == 0:
            return w.full(0.0, position)
        away = w.op("abs", w.op("subtract", position, w.full(low, position)))
        wide = w.full(span, position)
        extra = w.op("remainder", away, wide)
        flips = w.op("remainder", w.op("floor", w.op("divide", away, wide)), w.full(2.0, position))
        even = w.compare("EQ", flips, w.full(0.0, position))
        back = w.op("subtract", wide, extra)
        position = w.op("add", w.select(even, extra, back), w.full(low, position))
    return _clipped(w, position, size)


class _Sampler:
    """Reads an image [N, C, *sizes] at whole positions, one tensor [N, *places] per spatial axis."""

    def __init__(self, w: Writer, image: Value, places: Sequence[int]) -> None:
        self.w, self.sizes, self.places = w, image.shape[2:], list(places)
        batch, channels = image.shape[:2]
        self.flat = w.reshape(image, [batch, channels, math.prod(self.sizes)])
        self.row = w.emit("iota", [], self.places, "int64", iota_dimension=0)

    def read(self, positions: Sequence[Value]) -> Value:
        """[N, *places, C]: the elements at these places, 0 where one of them is outside."""
        w = self.w
        inside = w.full(True, self.row, "bool")
        flat = w.full(0, self.row)
        for position, size in zip(positions, self.sizes, strict=True):
            low = w.compare("GE", position, w.full(0.0, position))
            inside = w.op("and", inside, w.op("and", low, w.compare("LE", position, w.full(size - 1.0, position))))
            place = w.convert(_clipped(w, position, size), "int64")
            flat = w.op("add", w.op("multiply", flat, w.full(size, flat)), place)
        taken = _take(w, self.flat, _stacked(w, [self.row, flat]), [0, 2], 0)
        wide = w.along(inside, taken.shape, range(inside.rank))
        return w.select(wide, taken, w.full(0, taken))

    def weighted(self, value: Value, weight: Value) -> Value:
        return self.w.op("multiply", value, self.w.along(weight, value.shape, range(weight.rank)))


def _cubic_weights(w: Writer, t: Value) -> list[Value]:
    """Of the four neighbours of a position at distance t from the second, A = -0.75 (native/UpSample.h)."""

    def polynomial(x: Value, coefficients: Sequence[float]) -> Value:
        return _horner(w, x, coefficients)

    one, a = w.full(1.0, t), -0.75
    near, far = (a + 2, -(a + 3), 0.0, 1.0), (a, -5 * a, 8 * a, -4 * a)
    back = w.op("subtract", one, t)
    return [
        polynomial(w.op("add", t, one), far),
        polynomial(t, near),
        polynomial(back, near),
        polynomial(w.op("add", back, one), far),
    ]


def _grid_sampler(count: int) -> Rule:
    def write(w: Writer, a: Any) -> Value:
        """Interpolated between the nearest elements (0: linear, 1: nearest, 2: cubic) at the grid's positions, whose
        last axis counts the spatial axes from the innermost; beyond the edges 0, the edge, or reflected. The 16-bit
        formats round every step."""
        shape, dtype = w.out[0]
        if not math.prod(shape):
            return w.broadcast(w.scalar(0, dtype), shape)
        image, grid = a.input, a.grid
        places = grid.shape[:-1]
        sampler = _Sampler(w, image, places)
        positions = []
        for axis, size in enumerate(image.shape[2:]):
            k = count - 1 - axis
            coordinate = w.reshape(w.slice(grid, grid.rank - 1, k, k + 1), places)
            positions.append(_unnormalised(w, coordinate, size, a.align_corners))
        mode, padding = a.interpolation_mode, a.padding_mode

        def folded(values: Sequence[Value]) -> list[Value]:
            pairs = zip(values, image.shape[2:], strict=True)
            return [_folded(w, value, size, padding, a.align_corners) for value, size in pairs]

        total: Value | None = None
        if mode == 1:
            total = sampler.read([w.op("round_nearest_even", v) for v in folded(positions)])
        else:
            if mode == 0:
                positions = folded(positions)
            floors = [w.op("floor", v) for v in positions]
            parts = [w.op("subtract", v, f) for v, f in zip(positions, floors, strict=True)]
            if mode == 0:
                offsets = [0, 1]
                weights = [[w.op("subtract", w.full(1.0, t), t), t] for t in parts]
            else:
                offsets = [-1, 0, 1, 2]
                weights = [_cubic_weights(w, t) for t in parts]
            for corner in itertools.product(range(len(offsets)), repeat=count):
                at = [
                    w.op("add", f, w.full(float(offsets[k]), f)) if offsets[k] else f
                    for k, f in zip(corner, floors, strict=True)
                ]
                weight = weights[0][corner[0]]
                for axis in range(1, count):
                    weight = w.op("multiply", weight, weights[axis][corner[axis]])
                part = sampler.weighted(sampler.read(folded(at) if mode == 2 else at), weight)
                total = part if total is None else w.op("add", total, part)
        assert total is not None
        last = total.rank - 1
        return w.convert(w.transpose(total, [0, last, *range(1, last)]), dtype)

    return write


RULES["aten.grid_sampler_2d.default"] = _grid_sampler(2)
RULES["aten.grid_sampler_3d.default"] = _grid_sampler(3)


# ---- rules: the copying forms of views, and what computes nothing ---------------------------------------------------


def _copied(name: str) -> None:
    """The rule of a view also writes its copying form."""

    @rule(f"{name.split('.')[0]}_copy.{name.split('.')[1]}")
    def write(w: Writer, a: Any) -> Value | list[Value | None]:
        a.operator = name.split(".")[0]
        return RULES[f"aten.{name}"](w, a)


for _name in (
    *("permute.default", "transpose.int", "t.default", "expand.default", "unsqueeze.default", "squeeze.default"),
    *("squeeze.dim", "squeeze.dims", "split_with_sizes.default", "split.Tensor", "unbind.int", "slice.Tensor"),
    *("select.int", "diagonal.default", "unfold.default", "view_as_real.default", "view_as_complex.default"),
    *("view.dtype",),
):
    if f"aten.{_name.split('.')[0]}_copy.{_name.split('.')[1]}" not in RULES:
        _copied(_name)


@rule("narrow_copy.default", "narrow.default")
def _narrow(w: Writer, a: Any) -> Value:
    axis = normal_axis(a.dim, a.self.rank)
    start = normal_axis(a.start, a.self.shape[axis])
    return w.slice(a.self, axis, start, start + a.length)


IGNORED = (
    *("aten._assert_tensor_metadata.default", "aten._assert_scalar.default", "aten.sym_constrain_range.default"),
    *("aten._linalg_check_errors.default", "aten._assert_async.default", "aten._assert_async.msg"),
)
"""Operators that compute nothing: they check what tracing has already fixed, or what the data has to fulfil."""

# ---- tracing --------------------------------------------------------------------------------------------------------

KEPT_WHOLE = (
    *(
        [
            "lerp.Scalar",
            "lerp.Tensor",
            "addcmul.default",
            "addcdiv.default",
            "silu.default",
            "isfinite.default",
            "roll.default",
            "take.default",
        ]
    ),
    *(["dot.default", "vdot.default", "mv.default", "addmv.default", "baddbmm.default", "logsumexp.default"]),
)
"""Operators that torch would decompose into something that rounds differently from its own kernel, or that have a
rule that is closer to what they say."""

KEPT_OF_FLOATS = tuple(
    f"aten.upsample_{name}.{overload}"
    for name in ("linear1d", "trilinear3d", "bicubic2d")
    for overload in ("default", "vec")
)
"""Operators that are kept whole for the same reason where they take floats."""

_TABLE: dict[Any, Any] = {}


def _of_integers(how: Callable[..., Any]) -> Callable[..., Any]:
    """A decomposition that leaves floats alone."""

    @functools.wraps(how)
    def decomposed(value: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        return NotImplemented if value.is_floating_point() else how(value, *args, **kwargs)

    return decomposed


def decompositions() -> dict[Any, Any]:
    """torch's core ATen decompositions without ``KEPT_WHOLE``; made once, since that takes a moment."""
    if not _TABLE:
        kept_whole = {f"aten.{name}" for name in KEPT_WHOLE}
        table = dict(torch.export.default_decompositions())
        _TABLE.update((op, how) for op, how in table.items() if str(op) not in kept_whole)
        _TABLE.update((op, _of_integers(how)) for op, how in _TABLE.items() if str(op) in KEPT_OF_FLOATS)
    return _TABLE


@dataclass
class _Leaf:
    """A place in the arguments or results: a tensor, or a value that is fixed when the function is traced."""

    path: str
    value: Any


def _children(value: Any, path: str) -> tuple[str, list[tuple[Any, Any, str]]] | None:
    """The kind of container and its children as (key, child, path); None for a leaf."""
    node_type = pytree._get_node_type(value)
    if node_type not in pytree.SUPPORTED_NODES:
        return None
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return "namedtuple", [(k, getattr(value, k), f"{path}.{k}" if path else k) for k in value._fields]
    definition = pytree.SUPPORTED_NODES[node_type]
    children, _ = definition.flatten_fn(value)
    if isinstance(value, dict):
        return "dict", [(k, child, f"{path}[{k!r}]") for k, child in zip(value.keys(), children, strict=True)]
    if isinstance(value, (list, tuple)) or not definition.flatten_with_keys_fn:
        kind = "tuple" if isinstance(value, tuple) else "list"
        return kind, [(k, child, f"{path}[{k}]") for k, child in enumerate(children)]
    pairs, _ = definition.flatten_with_keys_fn(value)
    keys = [str(getattr(key, "name", getattr(key, "key", getattr(key, "idx", key)))) for key, _ in pairs]
    return "dict", [(k, child, f"{path}.{k}" if path else k) for k, (_, child) in zip(keys, pairs, strict=True)]


def describe(value: Any, path: str, leaves: list[_Leaf], count: Callable[[Any], bool]) -> Any:
    """The tree of ``value`` in the artifact format; ``leaves`` collects what is in it, and those that ``count`` says
    are numbered in the order they stand."""
    found = _children(value, path)
    if found is None:
        if value is None:
            return None
        leaves.append(_Leaf(path, value))
        return sum(count(leaf.value) for leaf in leaves) - 1 if count(value) else None
    kind, children = found
    trees = [describe(child, child_path, leaves, count) for _, child, child_path in children]
    if kind in ("list", "tuple"):
        return {kind: trees}
    keys = [key for key, _, _ in children]
    if kind == "namedtuple":
        return {"namedtuple": type(value).__name__, "fields": [list(p) for p in zip(keys, trees, strict=True)]}
    for key in keys:
        if not isinstance(key, (str, int)) or isinstance(key, bool):
            raise CaptureError(f"the key {key!r} of a dict at {path or 'the result'} is not a string or an integer")
    return {"dict": [list(p) for p in zip(keys, trees, strict=True)]}


def _argument_names(fn: Callable[..., Any], args: Sequence[Any]) -> list[str]:
    """A name per positional argument, from the signature where there is one."""
    target = fn.forward if isinstance(fn, torch.nn.Module) else fn
    names: list[str] = []
    try:
        for parameter in inspect.signature(target).parameters.values():
            if parameter.kind is parameter.VAR_POSITIONAL:
                names += [f"{parameter.name}[{k}]" for k in range(len(args) - len(names))]
            elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
                names.append(parameter.name)
    except (TypeError, ValueError):  # builtins have no signature
        pass
    return [*names, *(f"arg{k}" for k in range(len(names), len(args)))][: len(args)]


def _reachable(fn: Any) -> dict[str, Any]:
    """What a function reaches by name: the variables it closes over, the globals it uses, and its own object."""
    found: dict[str, Any] = {}
    while hasattr(fn, "func"):  # functools.partial
        found |= {f"arg{k}": value for k, value in enumerate(getattr(fn, "args", ()))} | getattr(fn, "keywords", {})
        fn = fn.func
    if inspect.ismethod(fn):
        found["self"] = fn.__self__
        fn = fn.__func__
    if inspect.isfunction(fn):
        variables = inspect.getclosurevars(fn)
        found |= dict(variables.globals) | dict(variables.nonlocals)
        for inner in list(variables.nonlocals.values()):
            if inspect.isfunction(inner) and inner is not fn:
                found = _reachable(inner) | found
    return found


class _Flat(torch.nn.Module):
    """The function over a flat list of tensors, returning a flat list of tensors; trees and fixed values are kept
    outside, so that tracing sees tensors only."""

    def __init__(self, fn: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        super().__init__()
        self.prefixes: list[str] = []
        self.reached = {} if isinstance(fn, torch.nn.Module) else _reachable(fn)
        if isinstance(fn, torch.nn.Module):
            self._register("fn", fn)
            self.prefixes.append("fn.")
        for name, value in self.reached.items():
            if isinstance(value, torch.nn.Module):
                self._register(name, value)
        if "self." in self.prefixes:
            self.prefixes.remove("self.")
        self.call = [fn]  # in a list, which a module does not search for submodules
        self.leaves, self.spec = pytree.tree_flatten((list(args), dict(kwargs)))
        # torch.export puts a module's own attributes back as they were, so the result lies one step away.
        self.kept = SimpleNamespace(result=None)

    def _register(self, name: str, module: torch.nn.Module) -> None:
        self.add_module(f"captured_{name}", module)

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        supply = iter(tensors)
        leaves = [next(supply) if isinstance(leaf, torch.Tensor) else leaf for leaf in self.leaves]
        args, kwargs = pytree.tree_unflatten(leaves, self.spec)
        with _indexing_by_tensors(), _unvalidated_distributions():
            result = self.call[0](*args, **kwargs)
        found: list[_Leaf] = []
        self.kept.result = (describe(result, "", found, _is_result), [leaf.value for leaf in found])
        return tuple(leaf.value for leaf in found if isinstance(leaf.value, (torch.Tensor, *_SYMBOLIC)))

    def names(self) -> dict[Any, str]:
        """The name of each tensor that the function has at hand, by where its data lies."""
        table: dict[Any, str] = {}
        for name, tensor in [*self.named_parameters(), *self.named_buffers()]:
            table.setdefault(_identity(tensor), self.plain(name))
        for tensor, name in self.reached_tensors():
            table.setdefault(_identity(tensor), name)
        return table

    def reached_tensors(self) -> list[tuple[torch.Tensor, str]]:
        """The tensors in variables that the function uses, in containers and in the state of optimizers, named."""
        found = []
        for name, value in self.reached.items():
            if isinstance(value, torch.optim.Optimizer):
                parameters = [p for group in value.param_groups for p in group["params"]]
                value = {"param": parameters, "state": [dict(value.state.get(p, {})) for p in parameters]}
            leaves: list[_Leaf] = []
            with contextlib.suppress(CaptureError):
                describe(value, name, leaves, _is_tensor)
            found += [(leaf.value, leaf.path) for leaf in leaves if _is_tensor(leaf.value)]
        return found

    @staticmethod
    def plain(name: str) -> str:
        """A dotted name as the user would write it: without the prefixes of this wrapper."""
        name = name.removeprefix("captured_")
        return name.split(".", 1)[1] if name.startswith(("fn.", "self.")) else name


_SYMBOLIC = (torch.SymFloat, torch.SymInt, torch.SymBool)
"""Numbers that are computed from the values of a tensor."""


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _is_result(value: Any) -> bool:
    return isinstance(value, (torch.Tensor, bool, int, float, complex, *_SYMBOLIC))


def _identity(tensor: torch.Tensor) -> Any:
    """The same for tensors that share their data, shape and strides."""
    return tensor.data_ptr(), tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype, tensor.numel() or id(tensor)


@dataclass
class _Traced:
    """A traced function: the FX graph, the tensor of each placeholder and attribute, and the nodes that are returned.

    ``constants`` gives the tensor and the name of every placeholder or get_attr node that is not an argument.
    """

    module: torch.fx.GraphModule
    inputs: list[torch.fx.Node]
    constants: dict[torch.fx.Node, tuple[torch.Tensor, str | None]]
    outputs: list[torch.fx.Node]
    problems: list[Problem]
    tracer: str
    positions: list[int] | None = None
    """Where each of ``outputs`` stands in what the FX graph returns; None: as they come."""
    changed: tuple[str, ...] = ()
    """Names of the tensors that the function changes in place; their new values are the last of ``outputs``."""


@contextlib.contextmanager
def _unvalidated_distributions() -> Iterator[None]:
    """torch.distributions without its checks of parameters and values, which are branches on values of tensors."""
    kind = torch.distributions.Distribution
    validates = kind._validate_args
    kind.set_default_validate_args(False)
    try:
        yield
    finally:
        kind.set_default_validate_args(validates)


def _is_place(entry: Any) -> bool:
    """Whether an entry of an index is an integer in a tensor."""
    return (
        isinstance(entry, torch.Tensor)
        and not entry.dim()
        and not entry.is_floating_point()
        and not entry.is_complex()
        and entry.dtype != torch.bool
    )


def _axis_of(entries: Sequence[Any], place: int, rank: int) -> int:
    """The axis that an entry of an index applies to."""

    def axes(entry: Any) -> int:
        if entry is None or entry is Ellipsis or isinstance(entry, bool):
            return 0
        return entry.dim() if isinstance(entry, torch.Tensor) and entry.dtype in (torch.bool, torch.uint8) else 1

    before = entries[:place]
    if any(entry is Ellipsis for entry in before):
        return rank - sum(map(axes, entries[place:]))
    return sum(map(axes, before))


@contextlib.contextmanager
def _indexing_by_tensors() -> Iterator[None]:
    """``x[i]`` and ``x[i] = y`` with an integer i in a tensor as reads and writes at computed places.

    torch itself takes the number out of the tensor, which a tracer cannot. Restored on leaving.
    """
    kind = torch.Tensor
    plain_get, plain_set = kind.__getitem__, kind.__setitem__
    own = {name: kind.__dict__[name] for name in ("__getitem__", "__setitem__") if name in kind.__dict__}

    def split(x: torch.Tensor, index: Any) -> tuple[Any, int, torch.Tensor] | None:
        """The index with its first such entry replaced by 0, the axis of that entry, and the entry, not negative."""
        entries = index if isinstance(index, tuple) else (index,)
        chosen = next((k for k, entry in enumerate(entries) if _is_place(entry)), None)
        if chosen is None or torch.compiler.is_dynamo_compiling():
            return None
        axis = _axis_of(entries, chosen, x.dim())
        where = entries[chosen].to(torch.int64)
        where = torch.where(where < 0, where + x.shape[axis], where).reshape(1)
        return (*entries[:chosen], 0, *entries[chosen + 1 :]), axis, where

    def getitem(x: torch.Tensor, index: Any) -> torch.Tensor:
        found = split(x, index)
        if found is None:
            return plain_get(x, index)
        rest, axis, where = found
        return getitem(x.index_select(axis, where), rest)

    def setitem(x: torch.Tensor, index: Any, value: Any) -> None:
        found = split(x, index)
        if found is None:
            plain_set(x, index, value)
            return
        rest, axis, where = found
        part = x.index_select(axis, where)
        setitem(part, rest, value)
        x.index_copy_(axis, where, part)

    kind.__getitem__, kind.__setitem__ = getitem, setitem
    try:
        yield
    finally:
        for name in ("__getitem__", "__setitem__"):
            if name in own:
                setattr(kind, name, own[name])
            else:
                delattr(kind, name)


@contextlib.contextmanager
def _whole_stack_traces() -> Iterator[None]:
    """Let torch.fx record every frame inside the captured call: by itself it keeps those of ``forward`` methods only.

    Restored on leaving. Where torch has no such hook, its own traces are used.
    """
    tracer = torch.fx.proxy.TracerBase
    original = getattr(tracer, "_filter_traceback_frames", None)
    if original is None:
        yield
        return
    here = _Flat.forward.__code__.co_filename

    def inside(self: Any, summary: traceback.StackSummary) -> traceback.StackSummary:
        frames = list(summary)
        starts = [k for k, frame in enumerate(frames) if frame.filename == here and frame.name == "forward"]
        return traceback.StackSummary.from_list(frames[starts[-1] + 1 :] if starts else [])

    tracer._filter_traceback_frames = inside
    try:
        yield
    finally:
        tracer._filter_traceback_frames = original


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the warnings and log messages of torch's tracers: what matters is raised."""
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)


@contextlib.contextmanager
def _rare_collections() -> Iterator[None]:
    """Tracing makes objects by the hundred thousand that live on; looking for garbage among them takes a quarter of
    the time."""
    thresholds = gc.get_threshold()
    if thresholds[0]:
        gc.set_threshold(max(500_000, thresholds[0]), *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


@contextlib.contextmanager
def _math_attention() -> Iterator[None]:
    """Attention as products and a softmax, not as one fused kernel whose result is in no other operator's terms."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    with sdpa_kernel(SDPBackend.MATH):
        yield


TRACERS = ("torch.export", "make_fx")


def _is_gradient(fn: Any) -> bool:
    """Whether a function is what torch.func.grad or grad_and_value returns."""
    code = getattr(fn, "__code__", None)
    return code is not None and code.co_name == "wrapper" and fn.__globals__.get("__name__") == "torch._functorch.apis"


def _trace(flat: _Flat, tensors: Sequence[torch.Tensor], names: Sequence[str], tracer: str | None = None) -> _Traced:
    """torch.export with decompositions; where it cannot trace (gradients), make_fx on the real tensors. With
    ``tracer``, that one alone."""
    attempts: list[Callable[[], _Traced]] = [
        lambda: _trace_export(flat, tensors, names),
        lambda: _trace_make_fx(flat, tensors, names),
    ]
    if tracer is not None:
        attempts = [attempts[TRACERS.index(tracer)]]
    elif _is_gradient(flat.call[0]):
        attempts = attempts[1:]  # torch.export refuses it, after a run under which some functions end the process
    errors: list[Exception] = []
    for attempt in attempts:
        messages = io.StringIO()  # torch prints the unfinished graph of an attempt that fails
        try:
            with _quiet(), _math_attention(), _whole_stack_traces(), contextlib.redirect_stderr(messages):
                traced = attempt()
        except CaptureError:
            raise
        except Exception as error:  # torch raises errors of many kinds here
            errors.append(error)
        else:
            sys.stderr.write(messages.getvalue())
            traced.module.graph.eliminate_dead_code()
            return traced
    for error in errors:
        if _depends_on_data(error):
            raise UnsupportedError([_data_problem(error)]) from None
    last = errors[-1]  # of a run on real tensors, where the function's own mistakes show as they do without tracing
    raise CaptureError(f"torch cannot trace the function: {_one_line(last)}{_place(last)}") from last


def _trace_export(flat: _Flat, tensors: Sequence[torch.Tensor], names: Sequence[str]) -> _Traced:
    with torch.no_grad():
        program = torch.export.export(flat, tuple(tensors), strict=False).run_decompositions(decompositions())
    _leave_out_checks(program.graph)
    known, specs = flat.names(), iter(program.graph_signature.input_specs)
    inputs: list[torch.fx.Node] = []
    constants: dict[torch.fx.Node, tuple[torch.Tensor, str | None]] = {}
    for node in program.graph.nodes:
        if node.op != "placeholder":
            continue
        spec = next(specs)
        if spec.kind.name == "USER_INPUT":
            inputs.append(node)
            continue
        if spec.kind.name == "TOKEN":  # orders effects; the operators that take it are refused by themselves
            constants[node] = torch.empty(0), None
            continue
        values = program.state_dict if spec.target in program.state_dict else program.constants
        tensor = values.get(spec.target)
        if not isinstance(tensor, torch.Tensor):
            raise UnsupportedError([Problem(f"{spec.kind.name.lower()} {spec.target}")])
        literal = spec.target.rsplit(".", 1)[-1].startswith("lifted_tensor")
        constants[node] = tensor, known.get(_identity(tensor), None if literal else flat.plain(spec.target))
    (returned,) = next(iter(reversed(program.graph.nodes))).args
    results: list[tuple[int, torch.fx.Node]] = []
    changes: list[tuple[int, torch.fx.Node, str]] = []
    problems = []
    arguments = {node.name: name for node, name in zip(inputs, names, strict=True)}
    for k, (spec, node) in enumerate(zip(program.graph_signature.output_specs, returned, strict=True)):
        kind, target = spec.kind.name, str(spec.target)
        if kind == "USER_OUTPUT":
            results.append((k, node))
        elif kind in ("BUFFER_MUTATION", "USER_INPUT_MUTATION", "PARAMETER_MUTATION"):
            changes.append((k, node, arguments.get(target) or flat.plain(target)))
        elif kind != "TOKEN":
            problems.append(Problem(kind.lower(), flat.plain(target)))
    return _Traced(
        program.graph_module,
        inputs,
        constants,
        [node for _, node in results] + [node for _, node, _ in changes],
        problems,
        "torch.export",
        [k for k, _ in results] + [k for k, _, _ in changes],
        tuple(name for _, _, name in changes),
    )


def _leave_out_checks(graph: torch.fx.Graph) -> None:
    """Take out the checks of what a factorization says of its success, which raise where it failed. They are wrapped
    in with_effects(token, operator, …), which gives the next token."""
    for node in reversed(graph.nodes):
        if getattr(node.target, "__name__", "") == "with_effects" and str(node.args[1]) in IGNORED:
            for user in list(node.users):
                user.replace_all_uses_with(node.args[0])
                graph.erase_node(user)
            graph.erase_node(node)


@contextlib.contextmanager
def _unchanged(flat: _Flat) -> Iterator[None]:
    """Put back what a traced run on real tensors changes: parameters, buffers, gradients, optimizer states."""
    optimizers = [value for value in flat.reached.values() if isinstance(value, torch.optim.Optimizer)]
    states = [(optimizer, {key: dict(state) for key, state in optimizer.state.items()}) for optimizer in optimizers]
    tensors = [*flat.parameters(), *flat.buffers(), *(tensor for tensor, _ in flat.reached_tensors())]
    kept_words = [(tensor, tensor.detach().clone(), tensor.grad if tensor.is_leaf else None) for tensor in tensors]
    try:
        yield
    finally:
        with torch.no_grad():
            for tensor, words, grad in kept_words:
                if not torch.equal(tensor, words):
                    tensor.copy_(words)
                if tensor.is_leaf:
                    tensor.grad = grad
        for optimizer, state in states:
            optimizer.state.clear()
            optimizer.state.update(state)


class _WithConstants(torch.fx.Interpreter):
    """Runs a graph with other tensors in the place of some attributes."""

    def __init__(self, module: torch.fx.GraphModule, constants: dict[str, torch.Tensor]) -> None:
        super().__init__(module)
        self.constants = constants

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Any:
        return self.constants[target] if target in self.constants else super().get_attr(target, args, kwargs)


@contextlib.contextmanager
def _no_values() -> Iterator[None]:
    """Refuse what reads the values of a traced tensor without its operators, which tracing does not see."""
    kind = torch.Tensor
    names = ("numpy", "tolist", "__array__")
    own = {name: kind.__dict__[name] for name in names if name in kind.__dict__}

    def guarded(name: str) -> Callable[..., Any]:
        plain = getattr(kind, name)

        def read(x: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            mode, inner = get_proxy_mode(), x
            while torch._C._functorch.is_functorch_wrapped_tensor(inner):  # of a transformation such as grad
                inner = torch._C._functorch.get_unwrapped(inner)
            if (
                mode is not None
                and has_proxy_slot(inner, mode.tracer)
                and _depends_on_inputs(get_proxy_slot(inner, mode.tracer).proxy.node)
            ):
                raise RuntimeError(f"data-dependent: {name} reads the values of a tensor")
            return plain(x, *args, **kwargs)

        return read

    for name in names:
        setattr(kind, name, guarded(name))
    try:
        yield
    finally:
        for name in names:
            if name in own:
                setattr(kind, name, own[name])
            else:
                delattr(kind, name)


def _depends_on_inputs(node: torch.fx.Node) -> bool:
    """Whether another run of the graph may give another value."""
    seen, waiting = {node}, [node]
    while waiting:
        current = waiting.pop()
        if current.op != "call_function" or torch.Tag.nondeterministic_seeded in getattr(current.target, "tags", ()):
            return True
        new = [source for source in current.all_input_nodes if source not in seen]
        seen.update(new)
        waiting += new
    return False


@contextlib.contextmanager
def _lengths_as_tensors() -> Iterator[None]:
    """With lists of lengths made tensors for ctc_loss, which otherwise fills one in a way that no tracer sees."""
    original = torch.ctc_loss

    def of_tensors(log_probs: Any, targets: Any, inputs: Any, lengths: Any, *args: Any, **options: Any) -> torch.Tensor:
        both = [x if isinstance(x, torch.Tensor) else torch.tensor(x, dtype=torch.int64) for x in (inputs, lengths)]
        return original(log_probs, targets, *both, *args, **options)

    torch.ctc_loss = of_tensors
    try:
        yield
    finally:
        torch.ctc_loss = original


def _recorded_run(flat: _Flat, tensors: Sequence[torch.Tensor]) -> torch.fx.GraphModule:
    """The operators of a run on real tensors, autograd's among them, in place where they are."""
    options: dict[str, Any] = {"tracing_mode": "real"}
    if "record_stack_traces" in inspect.signature(make_fx).parameters:
        options["record_stack_traces"] = True
    with contextlib.suppress(AttributeError):  # it changes its statistics, which its schema does not say
        from torch._decomp.decompositions import native_batch_norm_decomposition

        options["decomposition_table"] = {torch.ops.aten.native_batch_norm.default: native_batch_norm_decomposition}
    # The recurrent layers' own kernel is one operator.
    with torch.enable_grad(), torch.backends.mkldnn.flags(enabled=False), _no_values(), _lengths_as_tensors():
        module = make_fx(flat, **options)(*tensors)
    for node in reversed(module.graph.nodes):
        if node.op == "call_function" and str(node.target).startswith("profiler."):
            module.graph.erase_node(node)
    return module


def _trace_make_fx(flat: _Flat, tensors: Sequence[torch.Tensor], paths: Sequence[str]) -> _Traced:
    """First the operators of a run on copies of the arguments; then these functionalized and decomposed, with the
    tensors that the function has at hand as inputs, so that what it changes in place is seen."""
    gradients = [leaf.requires_grad for leaf in flat.leaves if isinstance(leaf, torch.Tensor)]
    copies = [tensor.detach().clone() for tensor in tensors]
    for tensor, wanted in zip(copies, gradients, strict=True):
        tensor.requires_grad_(wanted)
    with _unchanged(flat):
        module = _recorded_run(flat, copies)
    known = flat.names()
    held: dict[str, torch.Tensor] = {}
    for node in module.graph.nodes:
        value = getattr(module, node.target, None) if node.op == "get_attr" else None
        if isinstance(value, torch.Tensor):
            held[node.target] = value

    def run(*given: torch.Tensor) -> Any:
        constants = dict(zip(held, given[len(tensors) :], strict=True))
        return _WithConstants(module, constants).run(*given[: len(tensors)])

    with torch.no_grad(), torch.fx.traceback.preserve_node_meta():
        again = [tensor.detach().clone() for tensor in (*tensors, *held.values())]
        functional = torch.func.functionalize(run)
        final = make_fx(functional, decomposition_table=decompositions(), tracing_mode="real")(*again)
    places = [node for node in final.graph.nodes if node.op == "placeholder"]
    inputs, lifted = places[: len(tensors)], places[len(tensors) :]
    constants: dict[torch.fx.Node, tuple[torch.Tensor, str | None]] = {}
    names = {}
    for node, (attribute, value) in zip(lifted, held.items(), strict=True):
        constants[node] = value.detach(), known.get(_identity(value))
        names[node] = constants[node][1] or attribute.strip("_")
    for node in final.graph.nodes:
        value = getattr(final, node.target, None) if node.op == "get_attr" else None
        if isinstance(value, torch.Tensor):
            constants[node] = value, known.get(_identity(value))
    changes = []
    for node in list(final.graph.nodes):
        if str(node.target) == "aten.copy_.default" and node.args[0] in places:
            changes.append((node.args[0], node.args[1]))
            node.replace_all_uses_with(node.args[1])
            final.graph.erase_node(node)
    output = next(iter(reversed(final.graph.nodes)))
    returned = output.args[0] if isinstance(output.args[0], (list, tuple)) else [output.args[0]]
    outputs = [*returned, *(new for _, new in changes)]
    output.args = (tuple(outputs),)
    names |= dict(zip(inputs, paths, strict=True))
    changed = tuple(names[node] for node, _ in changes)
    return _Traced(final, inputs, constants, outputs, [], "make_fx", changed=changed)


def _depends_on_data(error: Exception) -> bool:
    text = f"{type(error).__name__} {error}"
    return any(sign in text for sign in ("DataDependent", "data-dependent", "_local_scalar_dense", "unbacked symbol"))


def _data_problem(error: Exception) -> Problem:
    reason = "a Python branch, loop or size depends on the value of a tensor"
    return Problem("data-dependent control flow", "", _error_source(error), reason)


def _one_line(error: BaseException) -> str:
    text = str(error).strip().split("\n")[0] or "no message"
    return f"{type(error).__name__}: {text}"


def _error_source(error: BaseException) -> dict[str, Any] | None:
    frames = [(f.filename, f.lineno or 0, f.name) for f in traceback.extract_tb(error.__traceback__)]
    here = _Flat.forward.__code__.co_filename
    starts = [k for k, frame in enumerate(frames) if frame[0] == here and frame[2] == "forward"]
    return _user_frame(frames[starts[-1] + 1 :]) if starts else None


def _place(error: BaseException) -> str:
    source = _error_source(error)
    return f" (at {source['file']}:{source['line']} in {source['function']})" if source else ""


# ---- the user's source ----------------------------------------------------------------------------------------------

_TORCH_FOLDER = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
_LAYERS_FOLDER = os.path.join(_TORCH_FOLDER, "nn", "modules") + os.sep


def _shown_path(path: str) -> str:
    """Relative to the current folder below it, otherwise from site-packages, otherwise the file's name."""
    full, folder = os.path.abspath(path), os.getcwd()
    if "site-packages" + os.sep in full:
        return full.rsplit("site-packages" + os.sep, 1)[1].replace(os.sep, "/")
    if os.path.dirname(full) == folder or full.startswith(folder.rstrip(os.sep) + os.sep):
        return os.path.relpath(full, folder).replace(os.sep, "/")
    return os.path.basename(full)


def _user_frame(frames: Sequence[tuple[str, int, str]]) -> dict[str, Any] | None:
    """The innermost frame outside torch and this file; where there is none, the innermost of torch's own layers."""
    here = _Flat.forward.__code__.co_filename
    real = [frame for frame in frames if frame[0] != here and not frame[0].startswith("<")]
    outside = [frame for frame in real if not os.path.abspath(frame[0]).startswith(_TORCH_FOLDER)]
    layers = [frame for frame in real if frame[0].startswith(_LAYERS_FOLDER) and frame[2] == "forward"]
    if not outside and not layers:
        return None
    file, line, function = (outside or layers)[-1]
    return {"file": _shown_path(file), "line": line, "function": function}


def _node_source(node: torch.fx.Node) -> dict[str, Any] | None:
    """From lines ``File "model.py", line 12, in loss`` of the recorded stack trace."""
    frames = []
    for text in (node.meta.get("stack_trace") or "").split("\n"):
        text = text.strip()
        if text.startswith('File "') and '", line ' in text:
            file, rest = text.removeprefix('File "').rsplit('", line ', 1)
            line, _, function = rest.partition(", in ")
            if line.isdigit():
                frames.append((file, int(line), function or "<module>"))
    return _user_frame(frames)


# ---- from the FX graph to nodes -------------------------------------------------------------------------------------


def _out_types(
    node: torch.fx.Node, sized: Callable[[Any], Any] = lambda size: size
) -> list[tuple[tuple[int, ...], str]]:
    """Shape and dtype of each tensor that a node returns, from the traced values."""
    value = node.meta.get("val")
    results = list(value) if isinstance(value, (list, tuple)) else [value]
    types = []
    for result in results:
        if result is None:
            types.append(((0,), "bool"))
            continue
        if not isinstance(result, torch.Tensor):
            raise _Refused("it returns a number that tracing does not know")
        shape = tuple(map(sized, result.shape))
        if not all(isinstance(size, int) for size in shape):
            raise _Refused("a size depends on the values of a tensor")
        if result.layout != torch.strided or result.dtype not in DTYPES:
            raise _Refused(f"a tensor of {result.dtype}, {result.layout}")
        types.append((shape, DTYPES[result.dtype]))
    return types


_SIZED_BY_DATA = {
    f"aten.{name}"
    for name in (
        *("nonzero.default", "masked_select.default", "_unique2.default", "unique_consecutive.default"),
        *("unique_dim.default", "unique_dim_consecutive.default", "repeat_interleave.Tensor", "bincount.default"),
    )
}
"""Operators whose result has as many elements as their operands' values say."""


def _counts_on_number(parameter: Any, value: Any) -> bool:
    """Whether a parameter that is a Python number got one that is computed from a tensor."""
    if str(parameter.type) in ("Tensor", "Optional[Tensor]", "List[Tensor]", "List[Optional[Tensor]]"):
        return False
    return any(isinstance(x, Value) for x in (value if isinstance(value, list) else [value]))


def _shown_argument(value: Any) -> str:
    if isinstance(value, torch.fx.Node):
        result = value.meta.get("val")
        if isinstance(result, torch.Tensor):
            dtype = DTYPES.get(result.dtype, str(result.dtype))
            return f"{dtype}[{','.join(map(str, result.shape))}]"
        return str(value.name)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_shown_argument, value)) + "]"
    return str(value)


def _problem(node: torch.fx.Node, reason: str = "") -> Problem:
    target, args = node.target, list(node.args)
    if getattr(target, "__name__", "") == "with_effects" and len(args) > 1:  # (token, operator, *arguments)
        target, args = args[1], args[2:]
    shown = [_shown_argument(arg) for arg in args]
    shown += [f"{name}={_shown_argument(arg)}" for name, arg in node.kwargs.items() if arg is not None]
    overload = isinstance(target, torch._ops.OpOverload)
    name = str(target) if overload else getattr(target, "__name__", str(target))
    return Problem(name, ", ".join(shown), _node_source(node), reason)


def _is_number(node: torch.fx.Node) -> bool:
    """Whether a node computes a Python number, such as a size."""
    return isinstance(node.meta.get("val"), (int, float, bool, torch.SymInt, torch.SymFloat, torch.SymBool))


def _writes_enough(overload: str, given: Sequence[Any]) -> bool:
    """Whether an operator writes at as many places as there are elements. They depend on data, and may in principle
    coincide; what programs write like this is the inverse of a permutation, where they do not."""
    shape = given[0].shape
    if overload == "index_put.default":
        chosen = [(axis, index) for axis, index in enumerate(given[1]) if index is not None]
        if any(index.dtype == "bool" for _, index in chosen):
            return False
        places = math.prod(torch.broadcast_shapes(*(index.shape for _, index in chosen)))
        return places >= math.prod(shape[axis] for axis, _ in chosen)
    if overload in ("scatter.src", "scatter.value"):
        return bool(given[2].shape == shape)
    return overload == "index_copy.default" and given[2].size >= shape[given[1]]


class _Lowering:
    """Walks the FX graph and writes each node by its rule; what has none is collected in ``problems``."""

    def __init__(self, traced: _Traced) -> None:
        self.traced = traced
        self.writer = Writer()
        self.values: dict[torch.fx.Node, Any] = {}
        self.problems = list(traced.problems)
        self._shared: dict[Any, Value] = {}
        self._folded: dict[torch.fx.Node, Any] = {}
        self._sizes: dict[Any, int] = {}
        """Sizes that tracing left open, by their symbols, where what decides them is known."""
        self._unknown: set[torch.fx.Node] = set()
        """Nodes that stand for something unsupported, so that what follows from them is not reported again."""

    def run(self, names: Sequence[str], tensors: Sequence[torch.Tensor]) -> None:
        for node, name, tensor in zip(self.traced.inputs, names, tensors, strict=True):
            self.values[node] = self.writer.input(name, tensor)
        self.walk()

    def walk(self) -> None:
        """Write the nodes of the graph in their order, its inputs being written."""
        for node in self.traced.module.graph.nodes:
            if node.op == "call_function":
                self.writer.source = _node_source(node)
                self._call(node)
            elif node.op == "call_module":
                self.problems.append(_problem(node))
                self.values[node] = self._stand_in(node)
            self.writer.source = None

    def value(self, node: torch.fx.Node) -> Any:
        """The value of a node; constants are written where they are first used."""
        if node not in self.values:
            tensor, name = self.traced.constants[node]
            if tensor.dtype not in DTYPES or tensor.layout != torch.strided:
                raise _Refused(f"the constant {name or node.name} is a tensor of {tensor.dtype}, {tensor.layout}")
            key = _identity(tensor)
            if key not in self._shared:
                source, self.writer.source = self.writer.source, None
                self._shared[key] = self.writer.constant(tensor, name)
                self.writer.source = source
            self.values[node] = self._shared[key]
        return self.values[node]

    def _argument(self, x: Any) -> Any:
        if isinstance(x, torch.fx.Node):
            if x not in self.values and _is_number(x) and not isinstance(self._size(x.meta["val"]), _SYMBOLIC):
                return self._size(x.meta["val"])
            if x not in self.values and x not in self.traced.constants:
                raise _Refused(f"it takes {x.name}, which is not a tensor")
            return self.value(x)
        return [self._argument(item) for item in x] if isinstance(x, (list, tuple)) else x

    def _stand_in(self, node: torch.fx.Node) -> Any:
        """Something for later nodes to take, so that they are looked at too."""
        self._unknown.add(node)
        with contextlib.suppress(_Refused):
            results = [Value(-1, shape, dtype) for shape, dtype in self._types(node)]
            return results if isinstance(node.meta.get("val"), (list, tuple)) else results[0]
        return Value(-1, (), "float32")

    def _call(self, node: torch.fx.Node) -> None:
        if str(node.target) in IGNORED:
            return
        try:
            self.values[node] = self._written(node)
        except _Refused as refused:
            follows = any(source in self._unknown for source in node.all_input_nodes)
            if not follows or (str(node.target) not in RULES and not _is_number(node)):
                self.problems.append(_problem(node, str(refused)))
            self.values[node] = self._stand_in(node)

    def known(self, node: Any) -> Any:
        """What a node gives whatever the inputs are, evaluated by torch; None where it depends on them."""
        if not isinstance(node, torch.fx.Node):
            return None
        if node in self.traced.constants:
            return self.traced.constants[node][0]
        tags, schema = getattr(node.target, "tags", ()), getattr(node.target, "_schema", None)
        if node.op != "call_function" or torch.Tag.nondeterministic_seeded in tags or (schema and schema.is_mutable):
            return None
        if node not in self._folded:
            self._folded[node] = None
            sources = {source: self.known(source) for source in node.all_input_nodes}
            if all(value is not None for value in sources.values()) and callable(node.target):
                args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda source: sources[source])
                with torch.no_grad():
                    self._folded[node] = node.target(*args, **kwargs)
        return self._folded[node]

    def _without_masks(self, indices: Sequence[Any]) -> list[Any]:
        """Index tensors, with the places of a mask that is known instead of the mask."""
        result: list[Any] = []
        for index in indices:
            mask = self.known(index)
            if mask is None or mask.dtype != torch.bool:
                result.append(index)
            else:
                result += [self.writer.constant(column.contiguous()) for column in mask.nonzero().unbind(1)]
        return result

    def _mask_of(self, node: torch.fx.Node) -> Any:
        """The mask by which an operator selects, where it is known."""
        if len(node.args) < 2:
            return None
        given = node.args[1] if isinstance(node.args[1], (list, tuple)) else [node.args[1]]
        masks = [mask for mask in map(self.known, given) if mask is not None and mask.dtype == torch.bool]
        return masks[0] if len(masks) == 1 else None

    def _settle_sizes(self, node: torch.fx.Node) -> None:
        """Find what the symbols stand for that a node brings in, from values that are known."""
        bindings = node.meta.get("unbacked_bindings") or {}
        if not bindings:
            return
        value = self.known(node)
        for symbol, path in bindings.items():
            if value is not None:
                self._sizes[symbol] = int(pytree.key_get(value, path))
            elif str(node.target) in ("aten.masked_select.default", "aten.index.Tensor"):
                mask = self._mask_of(node)
                if mask is not None and len(bindings) == 1:
                    expanded = mask.expand(node.args[0].meta["val"].shape) if "masked" in str(node.target) else mask
                    self._sizes[symbol] = int(expanded.sum())

    def _size(self, size: Any) -> Any:
        """A size, or another number, as tracing gives it: an integer where its symbols are known."""
        if not isinstance(size, (torch.SymInt, torch.SymBool)):
            return size
        expression = size.node.expr.xreplace(self._sizes)
        if getattr(expression, "free_symbols", ()):
            return size
        return bool(expression) if isinstance(size, torch.SymBool) else int(expression)

    def _types(self, node: torch.fx.Node) -> list[tuple[tuple[int, ...], str]]:
        return _out_types(node, self._size)

    def _selection(self, node: torch.fx.Node) -> Any:
        """An operator whose result's size depends on data, where that is known: a constant, or a constant choice."""
        result = self.known(node)
        if result is not None:
            several = isinstance(result, (list, tuple))
            values = [self.writer.constant(tensor) for tensor in (result if several else [result])]
            return values if several else values[0]
        mask = self._mask_of(node)
        if str(node.target) != "aten.masked_select.default" or mask is None:
            raise _Refused("the size of its result depends on data")
        value = self._argument(node.args[0])
        shape = torch.broadcast_shapes(value.shape, mask.shape)
        table = mask.expand(shape).reshape(-1).nonzero().reshape(-1)
        return _flat_take(self.writer, self.writer.broadcast(value, shape), table)

    def _unset(self, name: str, target: Any, given: Sequence[Any]) -> list[torch.Tensor]:
        """Of each result of an operator, the elements that are unset because those of its operands are."""
        unset = self.writer.unset
        operands, spec = pytree.tree_flatten(list(given))
        unknown = [k for k, x in enumerate(operands) if isinstance(x, Value) and x in unset]
        overload = name.removeprefix("aten.")
        if overload in _SHAPE_ONLY:
            unknown = [k for k in unknown if k > 0]
        if not unknown:
            return []
        if overload not in _MOVES:
            if overload == "copy.default" and unknown == [1]:
                return [unset[operands[1]].expand(operands[0].shape)]
            if unknown == [0] and _writes_enough(overload, given):
                return []
            raise _Refused("it looks at elements that are whatever was in memory")
        masks = [
            (unset[x] if x in unset else torch.zeros(x.shape, dtype=torch.bool)) if isinstance(x, Value) else x
            for x in operands
        ]
        result = target(*pytree.tree_unflatten(masks, spec))
        return list(result) if isinstance(result, (list, tuple)) else [result.clone()]

    def _written(self, node: torch.fx.Node) -> Any:
        if getattr(node.target, "__name__", "") == "getitem" and not hasattr(node.target, "_schema"):
            source, index = node.args
            results = self._argument(source)
            if not isinstance(results, list):
                return self._stand_in(node)
            if results[index] is None:
                if isinstance(node.meta.get("val"), torch.Tensor) and not node.meta["val"].numel():
                    ((shape, dtype),) = self._types(node)
                    return self.writer.broadcast(self.writer.scalar(0, dtype), shape)
                raise _Refused(f"result {index} of {source.name} is not written")
            return results[index]
        region = _REGIONS.get(getattr(node.target, "__name__", ""))
        if region is not None and not hasattr(node.target, "_schema"):
            self.writer.out = self._types(node)
            return region(self, *node.args)
        self._settle_sizes(node)
        if _is_number(node) and not isinstance(self._size(node.meta["val"]), _SYMBOLIC):
            return self._size(node.meta["val"])
        if str(node.target) in _SIZED_BY_DATA:
            return self._selection(node)
        if str(node.target) == "aten._local_scalar_dense.default":
            return self.writer.reshape(self._argument(node.args[0]), ())
        write = RULES.get(str(node.target))
        if write is None:
            raise _Refused(
                _refusal(node.target) if not _is_number(node) else "it computes a number from the values of a tensor"
            )
        schema = node.target._schema
        arguments: dict[str, Any] = {
            "operator": schema.name.split("::")[1],
        }
        arguments["strides"] = {}
        for k, parameter in enumerate(schema.arguments):
            default = parameter.default_value if parameter.has_default_value() else None
            given = node.args[k] if k < len(node.args) else node.kwargs.get(parameter.name, default)
            if parameter.name == "indices" and isinstance(given, (list, tuple)):
                given = self._without_masks(given)
            arguments[parameter.name] = self._argument(given)
            if _counts_on_number(parameter, arguments[parameter.name]):
                raise _Refused(f"its {parameter.name} is computed from the values of a tensor")
            traced = given.meta.get("val") if isinstance(given, torch.fx.Node) else None
            if isinstance(traced, torch.Tensor) and traced.layout == torch.strided:
                arguments["strides"][parameter.name] = tuple(traced.stride())
        self.writer.out = self._types(node)
        given = [arguments[parameter.name] for parameter in schema.arguments]
        masks = self._unset(str(node.target), node.target, given) if self.writer.unset else []
        result = write(self.writer, SimpleNamespace(**arguments))
        results = result if isinstance(result, list) else [result]
        for value, mask in zip(results, masks, strict=False):
            if value is not None and mask.any():
                self.writer.unset[value] = mask
        for value, expected in zip(results, self.writer.out, strict=True):
            if value is not None and (value.shape, value.dtype) != expected:
                raise CaptureError(f"the rule of {node.target} gives {value}, torch gives {expected}")
        return result


def _region(outer: _Lowering, node: Any, types: Sequence[Value], order: Sequence[int], also: Sequence[int] = ()) -> Any:
    """The body of a subgraph: ``types`` are those of its placeholders, which become inputs in the given order;
    ``also`` names placeholders that it returns behind its own results."""
    module = getattr(outer.traced.module, node.target)
    inputs = [n for n in module.graph.nodes if n.op == "placeholder"]
    constants = {}
    for n in module.graph.nodes:
        tensor = getattr(module, n.target, None) if n.op == "get_attr" else None
        if isinstance(tensor, torch.Tensor):
            constants[n] = tensor, None
    (returned,) = next(iter(reversed(module.graph.nodes))).args
    outputs = list(returned) if isinstance(returned, (list, tuple)) else [returned]
    lowering = _Lowering(_Traced(module, inputs, constants, outputs, [], ""))
    for k in order:
        value = types[k]
        lowering.values[inputs[k]] = lowering.writer.emit("input", (), value.shape, value.dtype)
        lowering.writer.nodes[-1]["name"] = inputs[k].name
    lowering.walk()
    outer.problems += lowering.problems
    if lowering.problems:
        raise _Refused("an operator inside it is not supported")
    results = [lowering._argument(output) for output in outputs] + [lowering.values[inputs[k]] for k in also]
    if not all(isinstance(result, Value) for result in results):
        raise _Refused("it returns something that is not a tensor")
    return _body(lowering.writer.nodes, [result.ref for result in results])


def _operands(outer: _Lowering, nodes: Sequence[Any]) -> list[Value]:
    values = [outer._argument(node) for node in nodes]
    if not all(isinstance(value, Value) for value in values):
        raise _Refused("an operand is a number, not a tensor")
    if any(value in outer.writer.unset for value in values):
        raise _Refused("an operand has elements that are whatever was in memory")
    return values


def _cond(outer: _Lowering, pred: Any, on_true: Any, on_false: Any, operands: Sequence[Any] = ()) -> Any:
    w, values = outer.writer, _operands(outer, operands)
    (chosen,) = _operands(outer, [pred])
    index = w.reshape(w.convert(chosen, "bool"), ())
    everything = range(len(values))
    regions = [_region(outer, branch, values, everything) for branch in (on_false, on_true)]
    return w.emit_several("case", [index, *values], w.out, regions)


def _while_loop(outer: _Lowering, cond: Any, body: Any, carried: Sequence[Any], more: Sequence[Any] = ()) -> Any:
    """What the loop reads but does not change is carried along too."""
    values = _operands(outer, [*carried, *more])
    everything = range(len(values))
    regions = [
        _region(outer, cond, values, everything),
        _region(outer, body, values, everything, everything[len(carried) :]),
    ]
    results = outer.writer.emit_several("while", values, [(v.shape, v.dtype) for v in values], regions)
    return results[: len(carried)]


def _scan(outer: _Lowering, body: Any, init: Sequence[Any], stacked: Sequence[Any], more: Sequence[Any] = ()) -> Any:
    """Operands in the artifact's order: what every step gets, what it carries on, what it gets a slice of."""
    carried, whole, fixed = (_operands(outer, nodes) for nodes in (init, stacked, more))
    slices = [Value(-1, value.shape[1:], value.dtype) for value in whole]
    types = [*carried, *slices, *fixed]
    split = len(carried) + len(slices)
    order = [*range(split, len(types)), *range(split)]
    return outer.writer.emit_several(
        "scan",
        [*fixed, *carried, *whole],
        outer.writer.out,
        [_region(outer, body, types, order)],
        length=whole[0].shape[0],
        num_consts=len(fixed),
        num_carry=len(carried),
    )


def _map(outer: _Lowering, body: Any, stacked: Sequence[Any], more: Sequence[Any] = ()) -> Any:
    return _scan(outer, body, (), stacked, more)


_REGIONS: dict[str, Callable[..., Any]] = {
    "cond": _cond,
    "while_loop": _while_loop,
    "scan": _scan,
    "map_impl": _map,
}
"""Higher-order operators: each writes a node with regions, and gives its results."""


class _Recorder(torch.fx.Interpreter):
    """Evaluates a graph node by node with torch's own operators; ``seen`` is told the value of each."""

    def __init__(self, module: torch.fx.GraphModule, seen: Callable[[torch.fx.Node, Any], None]) -> None:
        super().__init__(module)
        self.seen = seen

    def run_node(self, n: torch.fx.Node) -> Any:
        if n.op == "call_function" and str(n.target) in IGNORED:
            return None
        try:
            value = super().run_node(n)
        except Exception as error:
            source = _node_source(n)
            place = f" (at {source['file']}:{source['line']} in {source['function']})" if source else ""
            raise CaptureError(f"{n.target} raised {_one_line(error)}{place}") from None
        self.seen(n, value)
        return value


def _node_of(ref: int | list[int]) -> int:
    return ref if isinstance(ref, int) else ref[0]


def _live(nodes: list[dict[str, Any]], outputs: Sequence[int | list[int]]) -> dict[int, int]:
    """New ids of the nodes that the outputs need, and of all inputs."""
    needed = set(map(_node_of, outputs))
    for node in reversed(nodes):
        if node["id"] in needed:
            needed.update(map(_node_of, node["inputs"]))
    order = [node["id"] for node in nodes if node["id"] in needed or node["op"] == "input"]
    return {old: new for new, old in enumerate(order)}


def _body(nodes: list[dict[str, Any]], outputs: Sequence[int | list[int]]) -> dict[str, Any]:
    """Inputs, outputs and nodes of a graph or region: what nothing needs left out, the others numbered from 0."""
    ids = _live(nodes, outputs)

    def renamed(ref: int | list[int]) -> int | list[int]:
        return ids[ref] if isinstance(ref, int) else [ids[ref[0]], ref[1]]

    live = [
        {**node, "id": ids[node["id"]], "inputs": [renamed(ref) for ref in node["inputs"]]}
        for node in nodes
        if node["id"] in ids
    ]
    return {
        "input_ids": [node["id"] for node in live if node["op"] == "input"],
        "output_ids": [renamed(ref) for ref in outputs],
        "nodes": live,
    }


# ---- dimensions without a fixed size --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Dimension:
    """An axis whose size is left open: the names it depends on, and its size by theirs."""

    place: str
    """As a message says it: "axis 0 of x"."""
    axis: int
    names: tuple[str, ...]
    size: Callable[[Mapping[str, int]], int]
    bounds: Mapping[str, tuple[float, float]]


def _resized_axis(tensor: torch.Tensor, axis: int, size: int) -> torch.Tensor:
    """An example of another size along an axis: its elements over again, or the first of them."""
    have = tensor.shape[axis]
    if have == size:
        return tensor
    if not have:
        shape = [*tensor.shape[:axis], size, *tensor.shape[axis + 1 :]]
        return torch.zeros(shape, dtype=tensor.dtype)
    return tensor.index_select(axis, torch.arange(size) % have)


def _pin(tensor: torch.Tensor, dimensions: Sequence[_Dimension], sizes: Mapping[str, int]) -> torch.Tensor:
    """The example argument with the sizes that its dimensions are pinned to."""
    for dimension in dimensions:
        for name in dimension.names:
            low, high = dimension.bounds.get(name, (0, math.inf))
            if not low <= sizes[name] <= high:
                raise CaptureError(f"the size {sizes[name]} of {name} is not between {low} and {high}")
        tensor = _resized_axis(tensor, dimension.axis, dimension.size(sizes))
    return tensor


def _require_sizes(dimensions: Sequence[_Dimension], sizes: Mapping[str, int]) -> None:
    """Every dimension pinned, and nothing else."""
    places: dict[str, list[str]] = {}
    for dimension in dimensions:
        for name in dimension.names:
            places.setdefault(name, []).append(dimension.place)
    unknown = sorted(set(sizes) - set(places))
    if unknown:
        known = f"there are {', '.join(places)}" if places else "every size is fixed"
        raise CaptureError(f"there is no dimension {unknown[0]} to pin; {known}")
    problems = [
        Problem(f"the dimension {name}", reason=f"{' and '.join(where)} has no fixed size; pin it with --size {name}=N")
        for name, where in places.items()
        if name not in sizes
    ]
    if problems:
        raise UnsupportedError(problems, "open dimension")


def _dimension(spec: Any, place: str, axis: int) -> _Dimension | None:
    """What ``torch.export.Dim`` says of an axis; None where its size is fixed."""
    if spec is None or isinstance(spec, int) or getattr(getattr(spec, "type", None), "name", "") == "STATIC":
        return None
    root = getattr(spec, "root", spec)
    name = getattr(root, "__name__", None) or f"{place.split(' of ')[1]}.{axis}"
    convert = getattr(spec, "fn", None) if root is not spec else None
    bounds = {name: (getattr(root, "min", 0) or 0, getattr(root, "max", math.inf) or math.inf)}

    def size(sizes: Mapping[str, int]) -> int:
        return int(convert(sizes[name])) if convert else sizes[name]

    return _Dimension(place, axis, (name,), size, bounds)


def _open_dimensions(spec: Any, value: Any, path: str) -> list[tuple[torch.Tensor, list[_Dimension]]]:
    """The tensors of an argument with the dimensions that ``spec``, in the form of torch.export's dynamic_shapes,
    leaves open."""
    if spec is None:
        return []
    if isinstance(value, torch.Tensor):
        axes = spec.items() if isinstance(spec, Mapping) else enumerate(spec)
        found = [_dimension(given, f"axis {axis} of {path}", normal_axis(axis, value.dim())) for axis, given in axes]
        return [(value, [dimension for dimension in found if dimension is not None])]
    children = _children(value, path)
    if children is None:
        return []
    result = []
    for k, (key, child, child_path) in enumerate(children[1]):
        inner = spec.get(key) if isinstance(spec, Mapping) else spec[k]
        result += _open_dimensions(inner, child, child_path)
    return result


def _pinned(
    names: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any], spec: Any, sizes: Mapping[str, int]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments in the sizes to which the dimensions of ``spec`` are pinned."""
    pairs = [*zip(names, args, strict=True), *kwargs.items()]
    by_name = spec if isinstance(spec, Mapping) else dict(zip([name for name, _ in pairs], spec or (), strict=False))
    opened = [x for name, value in pairs for x in _open_dimensions(by_name.get(name), value, name)]
    _require_sizes([dimension for _, dimensions in opened for dimension in dimensions], sizes)
    replaced = {id(tensor): _pin(tensor, dimensions, sizes) for tensor, dimensions in opened}
    args, kwargs = pytree.tree_map(lambda x: replaced.get(id(x), x), (tuple(args), dict(kwargs)))
    return tuple(args), dict(kwargs)


def _of_program(
    program: torch.export.ExportedProgram, args: Sequence[Any], kwargs: Mapping[str, Any], sizes: Mapping[str, int]
) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
    """An exported program as a module, and its example arguments in the sizes that its symbols are pinned to."""
    if not args and not kwargs:
        if program.example_inputs is None:
            raise CaptureError("the exported program has no example inputs; pass arguments")
        args, kwargs = program.example_inputs
    leaves, spec = pytree.tree_flatten((tuple(args), dict(kwargs)))
    wanted = set(program.graph_signature.user_inputs)
    places = [n for n in program.graph.nodes if n.op == "placeholder" and n.name in wanted]
    if len(leaves) != len(places):
        raise CaptureError(f"the exported program takes {len(places)} arguments, not {len(leaves)}")
    limits = {
        str(symbol): (float(given.lower), float(given.upper)) for symbol, given in program.range_constraints.items()
    }
    dimensions: dict[int, list[_Dimension]] = {}
    for k, node in enumerate(places):
        for axis, size in enumerate(getattr(node.meta["val"], "shape", ())):
            if isinstance(size, torch.SymInt):
                expression = size.node.expr

                def length(sizes: Mapping[str, int], expression: Any = expression) -> int:
                    return int(expression.subs({symbol: sizes[str(symbol)] for symbol in expression.free_symbols}))

                names = tuple(sorted(map(str, expression.free_symbols)))
                place = f"axis {axis} of {node.name}"
                dimensions.setdefault(k, []).append(_Dimension(place, axis, names, length, limits))
    _require_sizes([dimension for found in dimensions.values() for dimension in found], sizes)
    leaves = [_pin(leaf, dimensions[k], sizes) if k in dimensions else leaf for k, leaf in enumerate(leaves)]
    args, kwargs = pytree.tree_unflatten(leaves, spec)
    return program.module(), tuple(args), dict(kwargs)


# ---- export ---------------------------------------------------------------------------------------------------------


def export(
    fn: Callable[..., Any],
    *args: Any,
    name: str | None = None,
    trace: bool = False,
    compile: bool = False,
    dynamic_shapes: Any = None,
    sizes: Mapping[str, int] | None = None,
    tracer: str | None = None,
    **kwargs: Any,
) -> dict[str, Any]:
    """The artifact of ``fn(*args, **kwargs)``, with the words that torch returns for these arguments.

    ``fn`` is a function or an nn.Module, captured in the mode it is in (call ``.eval()`` first for inference).
    Arguments and results are tensors in nested lists, tuples, dicts, named tuples, and classes registered as pytrees.
    Arguments that are not tensors are fixed: they stand as null in the tree of inputs, and in the producer's flags.
    Parameters, buffers and tensors that the function closes over become constants under their names.
    Where the function changes a buffer or an argument in place (the statistics of a batch norm in training), the
    artifact returns the pair of its result and a dict of the new values by name.

    ``trace`` records the value of every operator too. Large values are left out whose words another one has: of more
    than 4 KiB those of a reshape, of more than 1 MiB those of a broadcast, and constants whose elements are only moved.
    ``write`` saves each value when it comes, so that it needs no more memory than without a trace. The recorded outputs
    are those of the traced graph, evaluated operator by operator; with ``compile`` they are those of
    ``torch.compile(fn)``.

    An artifact's sizes are fixed: those of the arguments. ``dynamic_shapes`` takes what torch.export takes under this
    name; every dimension that it leaves open is refused by its name unless ``sizes`` pins it, and then the examples
    are brought to that size. ``fn`` may also be an ExportedProgram, whose example inputs are used where none are given
    and whose symbols are pinned in the same way.

    The function is traced with ``torch.export`` where that can trace it, otherwise with ``make_fx`` on copies of the
    arguments; ``tracer`` names the one to use. make_fx also traces gradients (torch.func.grad and its like,
    torch.autograd.grad, backward) and whole training steps with torch's optimizers.

    Raises UnsupportedError with every operator that has no operation, and CaptureError where the function itself
    fails or an argument cannot be captured.
    """
    options = {"name": name, "trace": trace, "compile": compile, "dynamic_shapes": dynamic_shapes}
    artifact, record = _captured(fn, args, kwargs, **options, sizes=sizes, tracer=tracer)
    (sample,) = artifact["samples"]
    sample["inputs"] = [tensor_json(tensor["held"]) if "held" in tensor else tensor for tensor in sample["inputs"]]
    artifact["nodes"] = _in_full(artifact["nodes"])
    record(sample, _keep)
    return artifact


def write(path: str | os.PathLike[str], fn: Callable[..., Any], /, *args: Any, **options: Any) -> int:
    """Export and save: the files that ``save`` writes, but large tensors go to the ``.safetensors`` file without a copy
    of them in between: constants from their own memory, and the values of a trace while the graph is evaluated, which
    therefore needs no more memory than without. Options and errors are those of ``export``; the result is the number
    of nodes."""
    names = ("name", "trace", "compile", "dynamic_shapes", "sizes", "tracer")
    own: dict[str, Any] = {"name": None, "trace": False, "compile": False, "dynamic_shapes": None, "sizes": None}
    own |= {"tracer": None} | {key: options.pop(key) for key in names if key in options}
    artifact, record = _captured(fn, args, options, **own)
    _write(artifact, path, record)
    return len(artifact["nodes"])


@_rare_collections()
def _captured(
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    name: str | None,
    trace: bool,
    compile: bool,
    dynamic_shapes: Any,
    sizes: Mapping[str, int] | None,
    tracer: str | None,
) -> tuple[dict[str, Any], _Record]:
    """What ``export`` says, with large constants and inputs as ``_held`` describes them and without the words of
    outputs and trace; and what evaluates the graph for these."""
    if tracer is not None and tracer not in TRACERS:
        raise CaptureError(f"the tracer is {' or '.join(TRACERS)}, not {tracer}")
    leaves: list[_Leaf] = []
    if isinstance(fn, torch.export.ExportedProgram):
        fn, args, kwargs = _of_program(fn, args, kwargs, sizes or {})
    elif dynamic_shapes is not None or sizes:
        args, kwargs = _pinned(_argument_names(fn, args), args, kwargs, dynamic_shapes, sizes or {})
    names = _argument_names(fn, args)
    trees = [describe(arg, arg_name, leaves, _is_tensor) for arg, arg_name in zip(args, names, strict=True)]
    named = [[key, describe(arg, key, leaves, _is_tensor)] for key, arg in kwargs.items()]
    tensors = [leaf for leaf in leaves if isinstance(leaf.value, torch.Tensor)]
    fixed = [leaf for leaf in leaves if not isinstance(leaf.value, torch.Tensor)]
    for leaf in leaves:
        if isinstance(leaf.value, np.ndarray):
            raise CaptureError(f"the argument {leaf.path} is a NumPy array; pass torch.from_numpy(...) of it")
    for leaf in tensors:
        if leaf.value.layout != torch.strided or leaf.value.dtype not in DTYPES:
            raise UnsupportedError([Problem(f"an argument of {leaf.value.dtype}, {leaf.value.layout}", leaf.path)])
    values = [leaf.value.detach() for leaf in tensors]

    flat = _Flat(fn, args, kwargs)
    traced = _trace(flat, values, [leaf.path for leaf in tensors], tracer)
    output_tree, results = flat.kept.result
    if traced.changed:
        if compile:
            raise CaptureError(f"with compile, the new value of {traced.changed[0]} is not recorded; return it")
        count = sum(map(_is_result, results))
        state = [[key, count + k] for k, key in enumerate(traced.changed)]
        output_tree = {"tuple": [output_tree, {"dict": state}]}
        results = [*results, *(node.meta["val"] for node in traced.outputs[-len(traced.changed) :])]
    lowering = _Lowering(traced)
    lowering.run([leaf.path for leaf in tensors], values)
    returned = _returned(lowering, results)
    if lowering.problems:
        raise UnsupportedError(lowering.problems)

    sample: dict[str, Any] = {"inputs": list(map(_described, values)), "outputs": list(map(_typed, returned))}
    places: dict[Value, int] = {}
    if trace:
        ids = _live(lowering.writer.nodes, [value.ref for value in returned])
        found = sorted((ids[value.id], value.index, value) for value in _traced_values(lowering) if value.id in ids)
        places = {value: position for position, (_, _, value) in enumerate(found)}
        if found:
            sample["trace"] = [{"value": [k, index] if index else k, "tensor": _typed(v)} for k, index, v in found]
    artifact = _artifact(
        lowering.writer.nodes,
        [value.ref for value in returned],
        name=name if name is not None else _name_of(fn),
        input_tree=None if _is_flat(trees, named, len(tensors)) else {"args": trees, "kwargs": named},
        output_tree=None if _is_plain(output_tree) else output_tree,
        sample=sample,
        producer={
            "frontend": "torch",
            "frontend_version": str(torch.__version__),
            "platform": values[0].device.type if values else "cpu",
            "capture": CAPTURE_VERSION,
            "outputs": "compiled" if compile else "op-by-op",
            "flags": {"traced_by": traced.tracer}
            | ({"fixed_arguments": ", ".join(f"{leaf.path}={leaf.value!r}" for leaf in fixed)} if fixed else {}),
        },
    )

    def record(sample: dict[str, Any], put: _Put) -> None:
        recorded = iter(_evaluated(lowering, values, places, lambda k, value: put(sample["trace"][k], "tensor", value)))
        outputs = [next(recorded) if isinstance(x, (torch.Tensor, *_SYMBOLIC)) else _number(x) for x in results]
        for k, tensor in enumerate(_compiled(fn, args, kwargs) if compile else outputs):
            put(sample["outputs"], k, tensor)

    return artifact, record


_Put = Callable[[Any, Any, torch.Tensor], None]
"""Takes a tensor for the place ``container[key]`` of a sample, where its dtype and shape stand."""
_Record = Callable[[dict[str, Any], _Put], None]
"""Evaluates the graph for a sample's outputs and trace, whose dtypes and shapes it has."""


def _keep(container: Any, key: Any, tensor: torch.Tensor) -> None:
    container[key] = tensor_json(tensor)


def _typed(value: Value) -> dict[str, Any]:
    return {"dtype": value.dtype, "shape": list(value.shape)}


def _number(value: bool | int | float | complex) -> torch.Tensor:
    """A Python number that a function returns, as a scalar of the dtype that holds it."""
    if isinstance(value, bool):
        return torch.tensor(value)
    kinds = {int: torch.int64, float: torch.float64, complex: torch.complex128}
    return torch.tensor(value, dtype=kinds[type(value)])


def _returned(lowering: _Lowering, results: Sequence[Any]) -> list[Value]:
    """The value of each result, in the order of the tree's leaves; numbers become constants."""
    nodes = iter(lowering.traced.outputs)
    values = []
    for result in results:
        if _is_tensor(result):
            try:
                values.append(lowering._argument(next(nodes)))
                if values[-1] in lowering.writer.unset:
                    raise _Refused("its elements are whatever was in memory")
            except _Refused as refused:
                lowering.problems.append(Problem("the result", "", None, str(refused)))
        elif isinstance(result, _SYMBOLIC):
            dtype = dict(zip(_SYMBOLIC, ("float64", "int64", "bool"), strict=True))[type(result)]
            try:
                values.append(lowering.writer.convert(lowering._argument(next(nodes)), dtype))
            except _Refused as refused:
                lowering.problems.append(Problem("the result", "", None, str(refused)))
        elif _is_result(result):
            values.append(lowering.writer.constant(_number(result)))
        else:
            reason = "results are tensors and numbers, in containers that torch.utils._pytree knows"
            lowering.problems.append(Problem(f"a result of type {type(result).__name__}", "", None, reason))
    return values


def _traced_values(lowering: _Lowering) -> list[Value]:
    """Of each operator of the graph the results that are values of nodes; several may return the same one. Left out are
    values whose words others have: those of more than HELD_BYTES that are reshaped, and of more than EXTERNAL_BYTES
    that are broadcast, or where elements of constants are only moved."""
    results: dict[Value, None] = {}
    for fx_node, written in lowering.values.items():
        if fx_node.op == "call_function":
            values = written if isinstance(written, list) else [written]
            results.update((value, None) for value in values if isinstance(value, Value))
    nodes = lowering.writer.nodes
    there = {(value.id, value.index) for value in results}
    fixed: set[int] = set()
    for node in nodes:
        moves = node["op"] in ("reshape", "broadcast_in_dim", "transpose", "slice")
        if node["op"] == "constant" or (moves and _node_of(node["inputs"][0]) in fixed):
            fixed.add(node["id"])
        if node["op"] in ("input", "constant"):
            there.add((node["id"], 0))

    def is_recorded(value: Value) -> bool:
        op, operands = nodes[value.id]["op"], nodes[value.id]["inputs"]
        size = _nbytes(value.dtype, value.shape)
        if op in ("input", "constant") or (value.id in fixed and size > EXTERNAL_BYTES):
            return False
        limit = {"reshape": HELD_BYTES, "broadcast_in_dim": EXTERNAL_BYTES}.get(op, math.inf)
        return size <= limit or not there.issuperset(
            (ref, 0) if isinstance(ref, int) else tuple(ref) for ref in operands
        )

    return list(filter(is_recorded, results))


def _evaluated(
    lowering: _Lowering,
    tensors: Sequence[torch.Tensor],
    places: Mapping[Value, int],
    put: Callable[[int, torch.Tensor], None],
) -> list[torch.Tensor]:
    """The outputs of the graph evaluated operator by operator; ``put`` is given those values that have a place, once
    each and as they come. Nothing of them is kept here."""
    waiting = dict(places)

    def seen(node: torch.fx.Node, value: Any) -> None:
        if node.op != "call_function" or node not in lowering.values:
            return
        written = lowering.values[node]
        pairs = zip(written, value, strict=True) if isinstance(written, list) else [(written, value)]
        for target, result in pairs:
            if isinstance(target, Value) and target in waiting:
                dtype = TORCH_DTYPES[target.dtype]
                tensor = result if isinstance(result, torch.Tensor) else torch.tensor(result, dtype=dtype)
                if tensor.dtype != dtype or tuple(tensor.shape) != target.shape:
                    raise CaptureError(f"{node.target} gives {tensor.dtype} {tuple(tensor.shape)}, not {target}")
                put(waiting.pop(target), tensor)

    supply = iter(tensors)
    placeholders = [
        lowering.traced.constants[node][0] if node in lowering.traced.constants else next(supply)
        for node in lowering.traced.module.graph.nodes
        if node.op == "placeholder"
    ]
    with torch.no_grad(), _quiet():
        result = _Recorder(lowering.traced.module, seen).run(*placeholders)
    flat = list(result) if isinstance(result, (list, tuple)) else [result]
    positions = lowering.traced.positions
    chosen = flat if positions is None else [flat[k] for k in positions]
    return [x.detach() if _is_tensor(x) else _number(x) for x in chosen]


def _compiled(fn: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> list[torch.Tensor]:
    try:
        with _quiet():
            result = torch.compile(fn)(*args, **kwargs)
    except Exception as error:
        raise CaptureError(f"torch.compile cannot compile the function here: {_one_line(error)}") from error
    found: list[_Leaf] = []
    describe(result, "", found, _is_result)
    return [leaf.value.detach() if _is_tensor(leaf.value) else _number(leaf.value) for leaf in found]


def _name_of(fn: Any) -> str:
    while hasattr(fn, "func"):
        fn = fn.func
    name = getattr(fn, "__name__", None) or type(fn).__name__
    return "" if name == "<lambda>" else name


def _is_flat(trees: Sequence[Any], named: Sequence[Any], count: int) -> bool:
    return not named and list(trees) == list(range(count))


def _is_plain(tree: Any) -> bool:
    """One array, or a plain tuple of arrays."""
    return isinstance(tree, int) or (
        isinstance(tree, dict) and list(tree) == ["tuple"] and tree["tuple"] == list(range(len(tree["tuple"])))
    )


def _artifact(
    nodes: list[dict[str, Any]],
    outputs: Sequence[int | list[int]],
    *,
    name: str,
    input_tree: Any,
    output_tree: Any,
    sample: dict[str, Any],
    producer: dict[str, Any],
) -> dict[str, Any]:
    """The document, in the lowest version that fits."""
    body = _body(nodes, outputs)
    live = body["nodes"]
    document = {
        "format": "tlir",
        "name": name,
        **body,
        "producer": producer,
        "samples": [sample],
    }
    if input_tree is not None:
        document["input_tree"] = input_tree
    if output_tree is not None:
        document["output_tree"] = output_tree
    later = any("accumulate" in n.get("attrs", {}) or "results" in n or "regions" in n for n in live)
    if input_tree is not None or output_tree is not None or later or "trace" in sample:
        document["version"] = 3
    else:
        document["version"] = 1 if len(body["input_ids"]) == 1 and len(outputs) == 1 else 2
    return document


# ---- files ----------------------------------------------------------------------------------------------------------


def dumps(artifact: dict[str, Any]) -> str:
    """The canonical text of an artifact: the same graph is always the same bytes."""

    def compact(value: Any) -> str:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    lines = []
    for key in sorted(artifact):
        value = artifact[key]
        if key in ("nodes", "samples") and value:
            text = "[\n" + ",\n".join(map(compact, value)) + "\n]"
        else:
            text = compact(value)
        lines.append(f"{compact(key)}:{text}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


_SAFETENSORS = {"bool": "BOOL", "bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2"}
_SAFETENSORS |= {"complex64": "C64"} | {f"float{bits}": f"F{bits}" for bits in (16, 32, 64)}
_SAFETENSORS |= {f"{kind}{bits}": f"{kind[0].upper()}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)}


def _stored_as(dtype: str, shape: Sequence[int]) -> tuple[str, list[int]]:
    """The safetensors dtype and shape: of the same name, of a complex type's parts, or of the plain words."""
    if dtype in _PARTS and dtype not in _SAFETENSORS:
        return _SAFETENSORS[_PARTS[dtype]], [*shape, 2]
    return _SAFETENSORS.get(dtype, f"U{max(8, bits_of(dtype))}"), list(shape)


@dataclass(frozen=True)
class _Moved:
    """A tensor that goes to the external file; without ``data`` where its words are still to come."""

    name: str
    dtype: str
    shape: list[int]
    data: bytes | memoryview | None

    @property
    def nbytes(self) -> int:
        return _nbytes(self.dtype, self.shape)


def _nbytes(dtype: str, shape: Sequence[int]) -> int:
    return math.prod(shape) * max(1, bits_of(dtype) // 8) * (2 if dtype in _PARTS else 1)


def _externalised(artifact: dict[str, Any], file: str) -> tuple[dict[str, Any], list[_Moved]]:
    """A copy of the artifact whose large tensors are said to be in ``file``, and these: constants, inputs and outputs
    of more than EXTERNAL_BYTES, and the values of a large trace."""
    moved: dict[str, _Moved] = {}

    def place(value: dict[str, Any], name: str, limit: int = EXTERNAL_BYTES) -> dict[str, Any]:
        if "file" in value or _nbytes(value["dtype"], value["shape"]) <= limit:
            return value
        data: bytes | memoryview | None = None
        if "held" in value:
            data = _memory(value["held"])
        elif isinstance(value, _Large):
            data = memoryview(value.array).cast("B")
        elif "base64" in value:
            data = base64.b64decode(value["base64"])
        elif "words" in value:
            return value
        moved[name] = _Moved(name, value["dtype"], value["shape"], data)
        return {"dtype": value["dtype"], "shape": value["shape"], "file": file, "tensor": name}

    nodes = []
    for node in artifact["nodes"]:
        if node["op"] == "constant":
            name = node.get("name") or f"constant{node['id']}"
            name = f"{name}.{node['id']}" if name in moved else name
            node = {**node, "attrs": {**node["attrs"], "value": place(node["attrs"]["value"], name)}}
        nodes.append(node)
    samples = []
    for k, sample in enumerate(artifact["samples"]):
        found = {**sample}
        for what in ("input", "output"):
            found[f"{what}s"] = [place(t, f"sample{k}.{what}{i}") for i, t in enumerate(sample[f"{what}s"])]
        if "trace" in sample:
            sizes = (_nbytes(entry["tensor"]["dtype"], entry["tensor"]["shape"]) for entry in sample["trace"])
            limit = HELD_BYTES if sum(sizes) > TRACE_BYTES else EXTERNAL_BYTES
            found["trace"] = []
            for entry in sample["trace"]:
                node, index = entry["value"] if isinstance(entry["value"], list) else (entry["value"], 0)
                name = f"sample{k}.value{node}.{index}"
                found["trace"].append({**entry, "tensor": place(entry["tensor"], name, limit)})
        samples.append(found)
    return {**artifact, "nodes": _in_full(nodes), "samples": samples}, list(moved.values())


_PIECE = 1 << 20
"""Bytes of a file that are read back at once."""


class _TensorFile:
    """A ``.safetensors`` file that takes its tensors as they come, in any order: dtypes and shapes are known before, so
    that the header is written first. What is there without a gap is read back and hashed beside the work. The file
    appears under its name when it is finished, or not at all."""

    def __init__(self, path: str, moved: Sequence[_Moved]) -> None:
        header: dict[str, Any] = {}
        end = 0
        # In the order given, as far as that leaves every word aligned; then large words first.
        for tensor in sorted(moved, key=lambda tensor: -bits_of(tensor.dtype) if tensor.nbytes % 8 else -sys.maxsize):
            dtype, shape = _stored_as(tensor.dtype, tensor.shape)
            header[tensor.name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + tensor.nbytes]}
            end += tensor.nbytes
        text = json.dumps(header, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        text += b" " * (-len(text) % 8)
        self._path = path
        self._start = 8 + len(text)
        self._size = self._start + end
        self._places = {name: described["data_offsets"] for name, described in header.items()}
        self._behind: dict[int, int] = {}
        """Parts that are there behind the first gap: the end of each by its begin."""
        self._whole = 0
        """So many bytes are there before the first gap."""
        self._hashed = 0
        self._digest = hashlib.sha256()
        self._hasher = ThreadPoolExecutor(1)
        self._hashing: Future[None] | None = None
        handle, self._temporary = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".tlir-")
        self._file = os.fdopen(handle, "w+b", buffering=0)
        self._again = io.FileIO(self._temporary)
        self._header = struct.pack("<Q", len(text)) + text

    def __enter__(self) -> _TensorFile:
        self._write(0, self._header)
        return self

    def __exit__(self, *_: object) -> None:
        """Leave nothing of a file that is not finished."""
        self._hasher.shutdown()
        self._file.close()
        self._again.close()
        with contextlib.suppress(OSError):
            os.unlink(self._temporary)

    def put(self, name: str, data: bytes | memoryview) -> None:
        """Write the words of a tensor."""
        begin, end = self._places[name]
        if len(data) != end - begin:
            raise ValueError(f"{name} has {end - begin} bytes, not {len(data)}")
        self._write(self._start + begin, data)

    def _write(self, begin: int, data: bytes | memoryview) -> None:
        self._file.seek(begin)
        rest = memoryview(data)
        while len(rest):
            rest = rest[self._file.write(rest) :]
        self._behind[begin] = begin + len(data)
        while self._whole in self._behind:
            self._whole = self._behind.pop(self._whole)
        if self._whole - self._hashed >= _PIECE and (self._hashing is None or self._hashing.done()):
            self._hashing = self._hasher.submit(self._follow)

    def _follow(self) -> None:
        """Hash what is there and is not hashed yet."""
        piece = memoryview(bytearray(_PIECE))
        while self._hashed < self._whole:
            count = self._again.readinto(piece[: self._whole - self._hashed])
            if not count:
                raise OSError(f"{self._temporary} became shorter while it was written")
            self._digest.update(piece[:count])
            self._hashed += count

    def finish(self) -> dict[str, Any]:
        """The size and SHA-256 of the complete file as the artifact says them."""
        if self._whole != self._size:
            raise ValueError(f"{self._size - self._whole} bytes of {self._path} were not written")
        self._hasher.shutdown()
        self._follow()
        self._file.close()
        self._again.close()
        return {"sha256": self._digest.hexdigest(), "size": self._size}

    def appear(self) -> None:
        """Give the finished file its name."""
        _publish(self._temporary, self._path)


def _publish(temporary: str, path: str) -> None:
    """Give a finished file its name, with the permissions of a new file."""
    umask = os.umask(0)
    os.umask(umask)
    os.chmod(temporary, 0o666 & ~umask)
    os.replace(temporary, path)


def _is_special(path: str) -> bool:
    """Whether a path is that of a pipe or a device, whose place no file can take."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def _replace(path: str, data: bytes, beside: _TensorFile | None = None) -> None:
    """Write a whole file, or leave what was there, and just before it appears let the one ``beside`` it appear. A pipe
    or a device is written directly."""
    if _is_special(path):
        with open(path, "wb") as file:
            file.write(data)
        return
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(os.path.abspath(path)), prefix=".tlir-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        if beside is not None:
            beside.appear()
        _publish(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def save(artifact: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Write an artifact as canonical text. Constants, inputs and outputs of more than 1 MiB go to
    ``<stem>.safetensors`` beside it, and so do a trace's values of more than 4 KiB, unless it is a small one (64 KiB
    in all)."""
    _write(artifact, path, lambda sample, put: None)


def _write(artifact: dict[str, Any], path: str | os.PathLike[str], record: _Record) -> None:
    """Save an artifact, and what ``record`` gives of its sample as it comes."""
    target = os.fspath(path)
    stem = os.path.basename(target)
    file = (stem[:-5] if stem.endswith(".json") else stem) + ".safetensors"
    document, moved = _externalised(artifact, file)
    if moved and _is_special(target):
        raise OSError(errno.ENOTSUP, "it is not a regular file, and large tensors lie in a file beside it")
    if moved:
        with _TensorFile(os.path.join(os.path.dirname(os.path.abspath(target)), file), moved) as tensors:
            for tensor in moved:
                if tensor.data is not None:
                    tensors.put(tensor.name, tensor.data)

            def put(container: Any, key: Any, value: torch.Tensor) -> None:
                if "file" in container[key]:
                    tensors.put(container[key]["tensor"], _memory(value))
                else:
                    container[key] = tensor_json(value)

            record(document["samples"][0], put)
            external = {**artifact.get("external", {}), file: tensors.finish()}
            document = {**document, "external": external, "version": 3}
            _replace(target, dumps(document).encode("utf-8"), tensors)
    else:
        record(document["samples"][0], _keep)
        _replace(target, dumps(document).encode("utf-8"))


# ---- what a command line names --------------------------------------------------------------------------------------


def _load(spec: str) -> Any:
    """The object that ``file.py:name`` names."""
    file, separator, attribute = spec.rpartition(":")
    if not separator or not file or not attribute:
        raise CaptureError(f"{spec!r} does not name an object: write file.py:name")
    if not os.path.isfile(file):
        raise CaptureError(f"there is no file {file}")
    full = os.path.abspath(file)
    module = _LOADED.get(full)
    if module is None:
        name = os.path.splitext(os.path.basename(full))[0]
        import_spec = importlib.util.spec_from_file_location(name, full)
        if import_spec is None or import_spec.loader is None:
            raise CaptureError(f"{file} is not a Python file")
        module = importlib.util.module_from_spec(import_spec)
        sys.path.insert(0, os.path.dirname(full))
        sys.modules.setdefault(name, module)
        try:
            import_spec.loader.exec_module(module)
        except Exception as error:
            frames = [f for f in traceback.extract_tb(error.__traceback__) if os.path.abspath(f.filename) == full]
            line = f":{frames[-1].lineno}" if frames else ""
            raise CaptureError(f"{file}{line} raised {_one_line(error)}") from None
        _LOADED[full] = module
    value: Any = module
    for part in attribute.split("."):
        if not hasattr(value, part):
            raise CaptureError(f"{file} has no {attribute}")
        value = getattr(value, part)
    return value


_LOADED: dict[str, ModuleType] = {}


def _example(spec: str | None) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments from ``--args``: a tuple or list is positional, a dict is by name, anything else is one argument; a
    function that takes nothing is called for them."""
    if spec is None:
        return (), {}
    value = _load(spec)
    if callable(value) and not isinstance(value, torch.Tensor):
        try:
            value = value()
        except Exception as error:
            raise CaptureError(f"{spec} raised {_one_line(error)}") from None
    if isinstance(value, dict):
        return (), value
    return (tuple(value), {}) if isinstance(value, (tuple, list)) else ((value,), {})


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


# ---- what becomes of every operator ---------------------------------------------------------------------------------

_NO_OPERATION = "there is no operation for this operator"

_TAGGED = {
    "nondeterministic_seeded": "it draws random numbers",
    "data_dependent_output": "its result is a number that depends on data",
    "dynamic_output_shape": "the size of its result depends on data",
    "out": "it writes into its argument",
}
"""Why an operator cannot be expressed, by what torch itself says of it."""


def _refusal(operator: Any) -> str:
    """Why an operator without a rule is refused; empty where nothing more is known than that it has none."""
    tags = {str(tag).rpartition(".")[2] for tag in getattr(operator, "tags", ())}
    return next((reason for tag, reason in _TAGGED.items() if tag in tags), "")


def operations() -> list[dict[str, Any]]:
    """What becomes of every operator that core ATen has or that there is a rule for, in the order of their names.

    Each has ``name`` and ``status``: "written" as ``operations``, with ``around`` where operands have to be brought
    into a shape or dtype; "decomposed" by torch into others of this list; "operand" for one that returns what it takes;
    "nothing" for one that computes nothing that an artifact needs; and "refused" with a ``reason``.
    """
    core: dict[str, Any] = {}
    for name in dir(torch.ops.aten):
        packet = getattr(torch.ops.aten, name)
        for overload in packet.overloads() if isinstance(packet, torch._ops.OpOverloadPacket) else ():
            operator = getattr(packet, overload)
            if torch.Tag.core in operator.tags:
                core[str(operator)] = operator
    names = sorted({*core, *RULES, *IGNORED, *_REGIONS})
    return [{"name": name, **_becomes(name, core.get(name))} for name in names]


def _becomes(name: str, operator: Any) -> dict[str, Any]:
    if name in IGNORED:
        return {"status": "nothing"}
    if name in RULES or name in _REGIONS:
        reading = _Reading(RULES[name], name.split(".")[1]) if name in RULES else _Reading(_REGIONS[name])
        return (
            {"status": "written", **reading.found(name.split(".")[1].strip("_") if "." in name else name)}
            if reading.written
            else {"status": "operand"}
        )
    if name.startswith("aten.sym_"):  # sizes are numbers by then
        return {"status": "nothing"}
    if operator in decompositions():
        return {"status": "decomposed"}
    return {"status": "refused", "reason": _refusal(operator) or _NO_OPERATION}


def _listed(entry: dict[str, Any]) -> str:
    if entry["status"] == "written":
        return f"{entry['name']}: {', '.join(entry['operations'])}"
    others = {"decomposed": "decomposed by torch", "operand": "its operand", "nothing": "nothing to compute"}
    return f"{entry['name']}: " + (others.get(entry["status"]) or f"refused: {entry['reason']}")


def _list_operations(as_json: bool) -> str:
    entries = operations()
    if as_json:
        return json.dumps({"frontend": "torch", "frontend_version": torch.__version__, "operations": entries}, indent=1)
    return "\n".join(map(_listed, entries))


# ---- command line ---------------------------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="torch_capture.py", description="Capture a PyTorch function or module as a tlir artifact."
    )
    parser.add_argument("function", metavar="FILE.py:NAME", nargs="?", help="the function or nn.Module to capture")
    parser.add_argument(
        "--args",
        metavar="FILE.py:NAME",
        help="example arguments: a tuple, a dict of named ones, or a function giving them",
    )
    parser.add_argument(
        "--dynamic-shapes",
        metavar="FILE.py:NAME",
        help="torch.export's dynamic_shapes; each Dim needs a --size",
    )
    parser.add_argument(
        "--size", action="append", metavar="NAME=N", default=[], help="pin a dimension that is left open (repeatable)"
    )
    parser.add_argument("-o", "--output", metavar="OUT.json", help="the artifact to write")
    parser.add_argument("--name", help="the artifact's name (by default the function's)")
    parser.add_argument("--trace", action="store_true", help="record the value of every node")
    parser.add_argument("--compile", action="store_true", help="record the outputs of torch.compile")
    parser.add_argument("--tracer", choices=TRACERS, help="what traces the function (by default the first that can)")
    parser.add_argument("--list-operations", action="store_true", help="print what becomes of every ATen operator")
    parser.add_argument("--json", action="store_true", help="print that list as JSON")
    return parser


def _named_size(text: str) -> tuple[str, int]:
    name, equals, number = text.rpartition("=")
    if not equals or not name or not number.isdecimal():
        raise CaptureError(f"--size {text!r} is not NAME=N with a number N")
    return name, int(number)


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code: 0 written, 2 wrong usage, 4 unsupported."""
    parser = _parser()
    options = parser.parse_args(argv)
    if options.list_operations:
        try:
            print(_list_operations(options.json), flush=True)
        except BrokenPipeError:  # whoever reads has read enough; what is flushed at the end has to go somewhere
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    if options.function is None or options.output is None:
        parser.error("the function to capture and -o OUT.json are needed")
    try:
        fn = _load(options.function)
        if not isinstance(fn, torch.export.ExportedProgram) and (isinstance(fn, type) or not callable(fn)):
            raise CaptureError(f"{options.function} is not a function or an nn.Module object")
        args, kwargs = _example(options.args)
        # A parameter of the function may be called as one of export's own.
        call = copy.copy(kwargs)
        clash = sorted({"name", "trace", "compile", "dynamic_shapes", "sizes", "tracer"} & call.keys())
        if clash:
            raise CaptureError(f"the argument {clash[0]} cannot be given by name; give it by position")
        call["dynamic_shapes"] = _load(options.dynamic_shapes) if options.dynamic_shapes else None
        call["sizes"] = dict(map(_named_size, options.size))
        call["tracer"] = options.tracer
        call |= {"name": options.name, "trace": options.trace, "compile": options.compile}
        count = write(options.output, fn, *args, **call)
    except UnsupportedError as error:
        print(f"error: {error}", file=sys.stderr)
        return 4
    except CaptureError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: {options.output}: {error.strerror or error}", file=sys.stderr)
        return 2
    print(f"{options.output}: {count} nodes")
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
