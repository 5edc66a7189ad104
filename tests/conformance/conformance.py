"""The format of conformance cases, and how one operation is run by itself.

A case is data: an operation, its operands and its result as types and words, and its attributes. It holds on every
device. Words are Python integers in row-major order; a complex element is two of them, real then imaginary.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tlir.backends import run
from tlir.ir.graph import Body, Graph, Node, Ref
from tlir.ir.tensor import Tensor, words_shape
from tlir.ir.types import TensorType, parse_dtype

_TYPE = re.compile(r"([a-z0-9_<>]+)\[([0-9,]*)\]")


@dataclass(frozen=True)
class Value:
    """A type such as ``float32[2,3]`` and its words."""

    type: str
    words: tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """One operation with the words that it has to return."""

    name: str
    op: str
    operands: tuple[Value, ...]
    expected: Value
    attrs: Mapping[str, Any] = field(default_factory=dict)


def value(type: str, *words: int) -> Value:
    """A value of the type; without brackets, a vector of as many elements as there are words."""
    if "[" not in type:
        per_element = 2 if type.startswith("complex") else 1
        type = f"{type}[{len(words) // per_element}]"
    return Value(type, words)


def tensor_type(text: str) -> TensorType:
    match = _TYPE.fullmatch(text)
    assert match is not None, text
    shape = tuple(int(size) for size in match.group(2).split(",") if size)
    return TensorType(shape, parse_dtype(match.group(1)))


def tensor(type: TensorType, words: Iterable[int]) -> Tensor:
    """The tensor of the words, in row-major order."""
    dtype = type.dtype
    data = b"".join(word.to_bytes(dtype.word_dtype.itemsize * dtype.limbs, "little") for word in words)
    array = np.frombuffer(data, dtype.word_dtype.newbyteorder("<")).astype(dtype.word_dtype)
    return Tensor(type, array.reshape(words_shape(type)))


def to_tensor(given: Value) -> Tensor:
    return tensor(tensor_type(given.type), given.words)


def words_of(result: Tensor) -> list[int]:
    """The words in row-major order, as Python integers."""
    size = result.dtype.word_dtype.itemsize * result.dtype.limbs
    data = np.ascontiguousarray(result.words).astype(result.dtype.word_dtype.newbyteorder("<")).tobytes()
    return [int.from_bytes(data[start : start + size], "little") for start in range(0, len(data), size)]


def single(op: str, operands: Sequence[Tensor], result: TensorType, attrs: Mapping[str, Any] | None = None) -> Graph:
    """The graph of one operation on inputs of the operands' types."""
    nodes = [Node(k, "input", (), {}, (operand.type,)) for k, operand in enumerate(operands)]
    count = len(nodes)
    nodes.append(Node(count, op, tuple(Ref(k) for k in range(count)), dict(attrs or {}), (result,)))
    return Graph(Body(tuple(nodes), tuple(range(count)), (Ref(count),)), op)


def evaluate(
    op: str,
    operands: Sequence[Tensor],
    result: TensorType,
    attrs: Mapping[str, Any] | None = None,
    device: str = "reference",
) -> Tensor:
    """The result of one operation on a device."""
    (output,) = run(single(op, operands, result, attrs), operands, device=device)
    return output


def evaluate_with_flags(
    op: str, operands: Sequence[Tensor], result: TensorType, attrs: Mapping[str, Any] | None = None
) -> tuple[Tensor, list[int]]:
    """The result and the flags of each element; no flags where the operation reports none."""
    collected: list[int] = []
    graph = single(op, operands, result, attrs)
    (output,) = run(graph, operands, flags=lambda node, array: collected.extend(array.reshape(-1).tolist()))
    return output, collected
