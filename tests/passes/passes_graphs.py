"""Graphs for the tests of passes: a small builder whose declared types follow the operations' own rules."""

from __future__ import annotations

from typing import Any

import numpy as np

from tlir.errors import Source
from tlir.ir.graph import Body, Graph, Node, Producer, Ref, Sample
from tlir.ir.ops import OPERATIONS, Call
from tlir.ir.tensor import Tensor
from tlir.ir.types import TensorType, parse_dtype

HOSTILE = "\"'<script>alert(1)</script>&amp;\x1b[31m\x07\u202e]]>\\N\\l\n{}|\ud800\u2028`${x}`"


def tensor_type(dtype: str, *shape: int) -> TensorType:
    return TensorType(shape, parse_dtype(dtype))


def words(dtype: str, shape: tuple[int, ...], values: list[int]) -> Tensor:
    """A tensor of these words; complex types take real and imaginary words in turn."""
    type = tensor_type(dtype, *shape)
    array = np.array(values, dtype=type.dtype.word_dtype)
    return Tensor(type, array.reshape((*shape, 2) if type.dtype.is_complex else shape))


class Builder:
    """Adds nodes one by one; results of operations get the type that the operation gives."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.inputs: list[int] = []

    def _add(self, op: str, inputs: tuple[int, ...], attrs: dict[str, Any], type: TensorType, **more: Any) -> int:
        node = Node(len(self.nodes), op, tuple(Ref(k) for k in inputs), attrs, (type,), **more)
        self.nodes.append(node)
        return node.id

    def input(self, name: str | None, dtype: str, *shape: int) -> int:
        self.inputs.append(self._add("input", (), {}, tensor_type(dtype, *shape), name=name))
        return self.inputs[-1]

    def constant(self, value: Tensor | np.ndarray[Any, Any], name: str | None = None) -> int:
        tensor = value if isinstance(value, Tensor) else Tensor.from_numpy(value)
        return self._add("constant", (), {"value": tensor}, tensor.type, name=name)

    def op(
        self,
        op: str,
        *inputs: int,
        result: TensorType | None = None,
        name: str | None = None,
        line: int = 0,
        **attrs: Any,
    ) -> int:
        operands = tuple(self.nodes[k].type for k in inputs)
        declared = result or operands[0]
        (type,) = OPERATIONS[op].rule(Call(operands, attrs, (declared,)))
        return self._add(op, inputs, attrs, type, name=name, source=Source("model.py", line, "f") if line else None)

    def graph(self, *outputs: int, name: str = "f", **more: Any) -> Graph:
        return Graph(Body(tuple(self.nodes), tuple(self.inputs), tuple(Ref(k) for k in outputs)), name, **more)


def matmul(builder: Builder, lhs: int, rhs: int, **more: Any) -> int:
    """lhs[m, k] times rhs[k, n]."""
    axes = {"lhs_contracting_dimensions": (1,), "rhs_contracting_dimensions": (0,)}
    batch: dict[str, Any] = {"lhs_batching_dimensions": (), "rhs_batching_dimensions": ()}
    return builder.op("dot_general", lhs, rhs, **axes, **batch, **more)


def perceptron() -> Graph:
    """Two layers with closed-over parameters, the mean of the squared result, one sample, a producer."""
    b = Builder()
    x = b.input("x", "float32", 2, 3)
    w1 = b.constant(np.arange(12, dtype=np.float32).reshape(3, 4) / 8, "params['w1']")
    b1 = b.constant(np.array([0.5, -0.25, 0.0, 1e-40], np.float32), "params['b1']")
    w2 = b.constant(np.ones((4, 1), np.float32), "params['w2']")
    hidden = matmul(b, x, w1, line=12)
    bias = b.op("broadcast_in_dim", b1, result=tensor_type("float32", 2, 4), broadcast_dimensions=(1,), line=12)
    hidden = b.op("tanh", b.op("add", hidden, bias, line=12), line=13, name="hidden")
    out = matmul(b, hidden, w2, line=14)
    square = b.op("multiply", out, out, line=15)
    total = b.op("reduce", square, reducer="add", dimensions=(0, 1), line=15)
    count = b.constant(np.float32(2.0))
    loss = b.op("divide", total, count, line=15, name="loss")
    sample = Sample(
        (Tensor.from_numpy(np.ones((2, 3), np.float32)),),
        (Tensor.from_numpy(np.array(1.5, np.float32)), Tensor.from_numpy(np.zeros((2, 4), np.float32))),
    )
    producer = Producer("jax", "0.10.2", "cpu", "1", "op-by-op", {"x64": False})
    return b.graph(loss, hidden, name="perceptron", samples=(sample,), producer=producer)


def chain(length: int) -> Graph:
    """x squared over and over: ``length`` nodes, the input included."""
    b = Builder()
    value = b.input("x", "float32", 4)
    for _ in range(length - 1):
        value = b.op("multiply", value, value)
    return b.graph(value, name="chain")


def layers(count: int) -> Graph:
    """A network of ``count`` residual layers, each with a constant matrix and bias: wide enough to be worth drawing."""
    b = Builder()
    value = b.input("x", "float32", 4, 8)
    one = b.constant(np.float32(1.0))
    for k in range(count):
        w = b.constant(np.full((8, 8), 0.125 * k, np.float32), f"layers[{k}].weight")
        bias = b.constant(np.linspace(-1, 1, 8, dtype=np.float32), f"layers[{k}].bias")
        product = matmul(b, value, w, line=20 + k)
        wide = tensor_type("float32", 4, 8)
        shift = b.op("broadcast_in_dim", bias, result=wide, broadcast_dimensions=(1,), line=20 + k)
        inner = b.op("logistic", b.op("add", product, shift, line=20 + k), line=20 + k)
        ones = b.op("broadcast_in_dim", one, result=wide, broadcast_dimensions=(), line=30)
        value = b.op("add", value, b.op("subtract", ones, inner, line=30), name=f"layer {k}", line=30)
    return b.graph(value, b.op("reduce", value, reducer="add", dimensions=(0, 1)), name="residual")


def hostile() -> Graph:
    """Every text that an artifact can hold is an attack on a terminal, a browser, or Graphviz."""
    b = Builder()
    x = b.input(HOSTILE, "float32", 2)
    y = b._add("negate", (x,), {}, tensor_type("float32", 2), name=HOSTILE, source=Source(HOSTILE, 3, HOSTILE))
    producer = Producer(HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE, {HOSTILE: HOSTILE})
    return b.graph(y, name=HOSTILE, producer=producer)
