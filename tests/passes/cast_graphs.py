"""Graphs for the tests of casts, and binary128 by MPFR: a second evaluator, of the few operations it needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import gmpy2
import numpy as np
from passes_graphs import Builder, tensor_type

from tlir.floatlib.convert import to_fraction
from tlir.floatlib.words import to_ints
from tlir.ir.graph import Body, Graph, Node, Ref, Sample
from tlir.ir.ops import Accumulate
from tlir.ir.tensor import Tensor
from tlir.ir.types import parse_dtype


def mixed() -> Graph:
    """Real and complex floats of several formats beside integers and Booleans."""
    b = Builder()
    x, y = b.input("x", "float16", 3), b.input("y", "float32", 3)
    z, k = b.input("z", "complex64", 3), b.input("k", "int32", 3)
    real = b.op("real", z)
    total = b.op("add", real, y)
    flag = b.op("compare", total, y, comparison_direction="LT")
    count = b.op("convert", k, result=tensor_type("float32", 3))
    pair = b.op("complex", count, total)
    index = b.op("convert", x, result=tensor_type("int8", 3))
    size = b.op("abs", pair)
    return b.graph(b.op("add", x, x), flag, index, pair, size, b.op("add", k, k))


def accumulating(dtype: str, accumulators: Sequence[str]) -> Graph:
    """Sums of ``x``, one per accumulator."""
    b = Builder()
    x = b.input("x", dtype, 5)
    sums = [
        b.op("reduce", x, reducer="add", dimensions=(0,), accumulate=Accumulate(dtype=parse_dtype(name)))
        for name in accumulators
    ]
    return b.graph(*sums)


def loop() -> Graph:
    """A scan that carries a number through four steps unchanged: max(x, x)."""
    b = Builder()
    x = b.input("x", "float32")
    carry = tensor_type("float32")
    body = Body(
        (
            Node(0, "input", (), {}, (carry,)),
            Node(1, "maximum", (Ref(0), Ref(0)), {}, (carry,)),
        ),
        (0,),
        (Ref(1),),
    )
    attrs = {"length": 4, "num_consts": 0, "num_carry": 1}
    scan = Node(1, "scan", (Ref(x),), attrs, (carry,), name="loop", regions=(body,))
    third = Tensor.from_numpy(np.array(1 / 3, np.float32))
    graph = Graph(Body((b.nodes[0], scan), (0,), (Ref(1),)))
    return replace(graph, samples=(Sample((third,), (third,)),))


def exact(tensor: Tensor) -> Any:
    """The values of finite floats as an object array of exact rationals."""
    fmt = tensor.dtype.float_format
    flat = [to_fraction(fmt, int(word)) for word in to_ints(fmt, tensor.words).reshape(-1)]
    array = np.empty(len(flat), object)
    array[:] = [gmpy2.mpq(value) for value in flat]
    return array.reshape(tensor.shape)


def evaluate_binary128(body: Body, inputs: Sequence[Any]) -> list[Any]:
    """The outputs as exact rationals, every operation rounded by MPFR to 113 bits in binary128's range."""
    with gmpy2.context(precision=113, emax=16384, emin=-16493, subnormalize=True):
        values: dict[int, Any] = dict(zip(body.input_ids, map(_numbers, inputs), strict=True))
        for node in body.nodes:
            if node.op != "input":
                values[node.id] = _evaluate(node, [values[ref.node] for ref in node.inputs])
        return [np.vectorize(gmpy2.mpq, otypes=[object])(values[ref.node]) for ref in body.outputs]


def _numbers(array: Any) -> Any:
    return np.vectorize(gmpy2.mpfr, otypes=[object])(array)


_ELEMENTWISE = {
    "add": gmpy2.add,
    "subtract": gmpy2.sub,
    "multiply": gmpy2.mul,
    "divide": gmpy2.div,
    "maximum": lambda a, b: a if a > b else b,
    "exponential": gmpy2.exp,
    "tanh": gmpy2.tanh,
}


def _evaluate(node: Node, operands: list[Any]) -> Any:
    shape = node.type.shape
    if node.op == "constant":
        value = node.attrs["value"]
        infinite = value.dtype.float_format.is_inf(int(value.words.reshape(-1)[0]))
        return np.full(shape, gmpy2.mpfr("-inf"), object) if infinite else _numbers(exact(value))
    if node.op in _ELEMENTWISE:
        return np.vectorize(_ELEMENTWISE[node.op], otypes=[object])(*operands)
    if node.op == "reshape":
        return operands[0].reshape(shape)
    if node.op == "broadcast_in_dim":
        sizes = [1] * len(shape)
        for axis, size in zip(node.attrs["broadcast_dimensions"], np.shape(operands[0]), strict=True):
            sizes[axis] = size
        return np.broadcast_to(np.reshape(operands[0], sizes), shape)
    result = np.empty(shape, object)
    if node.op == "reduce":
        (axis,) = node.attrs["dimensions"]
        start = gmpy2.mpfr(0) if node.attrs["reducer"] == "add" else gmpy2.mpfr("-inf")
        for index in np.ndindex(*shape):
            line = np.moveaxis(operands[0], axis, -1)[index]
            result[index] = reduce(_ELEMENTWISE[node.attrs["reducer"]], line, start)
        return result
    if node.op == "dot_general":
        lhs, rhs = operands
        (left,), (right,) = node.attrs["lhs_contracting_dimensions"], node.attrs["rhs_contracting_dimensions"]
        lhs, rhs = np.moveaxis(lhs, left, -1), np.moveaxis(rhs, right, -1)
        for i, j in np.ndindex(*shape):
            total = gmpy2.mpfr(0)
            for a, b in zip(lhs[i], rhs[j], strict=True):
                total = gmpy2.add(total, gmpy2.mul(a, b))
            result[i, j] = total
        return result
    if node.op == "transpose":
        return np.transpose(operands[0], node.attrs["permutation"])
    raise NotImplementedError(node.op)
