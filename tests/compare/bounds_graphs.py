"""Random graphs over floats and a few integers, for tests that any graph has to pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tlir.ir.graph import Body, Graph, Node, Producer, Ref
from tlir.ir.tensor import Tensor
from tlir.ir.types import NAMED, TensorType

FORMATS = ("float32", "float32", "float32", "float64", "float16", "bfloat16")
SPECIAL = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40, 1e38, 65504.0, 6e-8, 3.0e-5)


class Builder:
    """A graph under construction: every method adds a node and gives its value."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.inputs: list[int] = []

    def node(self, op: str, inputs: tuple[Ref, ...], *types: TensorType, **attrs: Any) -> Ref:
        self.nodes.append(Node(len(self.nodes), op, inputs, attrs, types))
        return Ref(len(self.nodes) - 1)

    def type(self, ref: Ref) -> TensorType:
        return self.nodes[ref.node].types[ref.result]

    def input(self, type: TensorType) -> Ref:
        self.inputs.append(len(self.nodes))
        return self.node("input", (), type)

    def like(self, op: str, *inputs: Ref, **attrs: Any) -> Ref:
        """An operation whose result has the type of its first operand."""
        return self.node(op, inputs, self.type(inputs[0]), **attrs)

    def constant(self, array: Any) -> Ref:
        tensor = Tensor.from_numpy(np.asarray(array))
        return self.node("constant", (), tensor.type, value=tensor)

    def filled(self, ref: Ref, value: float) -> Ref:
        """A constant of the type of a value."""
        type = self.type(ref)
        return self.constant(np.full(type.shape, value).astype(numpy_type(type.dtype.name)))

    def reduce(self, ref: Ref, reducer: str, axis: int, **attrs: Any) -> Ref:
        type = self.type(ref)
        shape = tuple(size for d, size in enumerate(type.shape) if d != axis)
        return self.node("reduce", (ref,), TensorType(shape, type.dtype), reducer=reducer, dimensions=(axis,), **attrs)

    def spread(self, ref: Ref, shape: tuple[int, ...], axis: int) -> Ref:
        """A reduced value repeated along the axis again."""
        dims = tuple(d for d in range(len(shape)) if d != axis)
        return self.node("broadcast_in_dim", (ref,), TensorType(shape, self.type(ref).dtype), broadcast_dimensions=dims)

    def convert(self, ref: Ref, dtype: str) -> Ref:
        return self.node("convert", (ref,), TensorType(self.type(ref).shape, NAMED[dtype]))

    def compare(self, a: Ref, b: Ref, direction: str) -> Ref:
        type = TensorType(self.type(a).shape, NAMED["bool"])
        return self.node("compare", (a, b), type, comparison_direction=direction)

    def dot(self, a: Ref, b: Ref, **attrs: Any) -> Ref:
        """A product of matrices."""
        shape = (self.type(a).shape[0], self.type(b).shape[1])
        return self.node(
            "dot_general",
            (a, b),
            TensorType(shape, self.type(a).dtype),
            lhs_batching_dimensions=(),
            rhs_batching_dimensions=(),
            lhs_contracting_dimensions=(1,),
            rhs_contracting_dimensions=(0,),
            **attrs,
        )

    def graph(self, *outputs: Ref, producer: Producer | None = None) -> Graph:
        return Graph(Body(tuple(self.nodes), tuple(self.inputs), outputs), "random", producer=producer)


def numpy_type(name: str) -> Any:
    import ml_dtypes

    return ml_dtypes.bfloat16 if name == "bfloat16" else np.dtype(name)


UNARY = ("negate", "abs", "sqrt", "exponential", "tanh", "log", "logistic", "sine", "cosine", "erf", "floor", "sign",
         "round_nearest_even", "exponential_minus_one", "log_plus_one", "rsqrt", "cbrt", "atan", "erfc", "tan",
         "exp2", "sinh", "asin", "acosh")  # fmt: skip
BINARY = ("add", "add", "subtract", "subtract", "multiply", "multiply", "divide", "maximum", "minimum", "power",
          "atan2", "remainder", "copysign", "hypot")  # fmt: skip


def random_graph(
    rng: np.random.Generator, size: int = 8, formats: tuple[str, ...] = FORMATS
) -> tuple[Graph, list[Tensor]]:
    """A graph of about so many random operations on matrices of one of the formats, all its float values being outputs,
    and inputs for it."""
    build = Builder()
    shape = (int(rng.integers(1, 5)), int(rng.integers(2, 7)))
    dtype = NAMED[str(rng.choice(formats))]
    values = [build.input(TensorType(shape, dtype)) for _ in range(2)]
    tensors = [random_tensor(rng, shape, dtype.name) for _ in values]
    for _ in range(size):
        ref = values[int(rng.integers(len(values)))]
        other = values[int(rng.integers(len(values)))]
        values.append(_operation(build, rng, ref, other, shape, dtype.name))
    frontend = str(rng.choice(["jax", "torch", "other"]))
    version = {"jax": "0.10.2", "torch": "2.13.0", "other": ""}[frontend]
    producer = Producer(frontend, version, outputs=str(rng.choice(["op-by-op", "compiled"])))
    return build.graph(*values[2:], producer=producer), tensors


def random_tensor(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Tensor:
    scale = float(rng.choice([1.0, 1.0, 1.0, 1e-3, 30.0, 1e4]))
    array = rng.normal(size=shape) * scale
    if rng.random() < 0.25:
        mask = rng.random(shape) < 0.15
        array = np.where(mask, rng.choice(SPECIAL, size=shape), array)
    if rng.random() < 0.2:
        array = np.rint(array * 4) / 4
    with np.errstate(all="ignore"):
        return Tensor.from_numpy(array.astype(numpy_type(dtype)))


def _operation(build: Builder, rng: np.random.Generator, a: Ref, b: Ref, shape: tuple[int, int], dtype: str) -> Ref:
    kinds: list[Callable[[], Ref]] = [
        lambda: build.like(str(rng.choice(UNARY)), a),
        lambda: build.like(str(rng.choice(BINARY)), a, b),
        lambda: build.like(str(rng.choice(BINARY)), a, b),
        lambda: build.like("divide", a, build.filled(a, float(rng.choice([3.0, 7.0, 0.1])))),
        lambda: build.like("add", build.like("multiply", a, b), a),
        lambda: build.like("fma", a, b, a),
        lambda: build.like("integer_pow", a, exponent=int(rng.choice([2, 3, -1, -2, 4]))),
        lambda: build.like("clamp", build.filled(a, -1.0), a, build.filled(a, 1.5)),
        lambda: _selection(build, rng, a, b),
        lambda: _reduction(build, rng, a, shape),
        lambda: _reduction(build, rng, a, shape),
        lambda: _product(build, rng, a, b, shape, dtype),
        lambda: build.like("cumulative", a, reducer=str(rng.choice(["add", "maximum"])), dimension=1),
        lambda: build.convert(build.convert(a, str(rng.choice(["float16", "bfloat16", "float32", "int32"]))), dtype),
        lambda: build.like("reverse", a, dimensions=(1,)),
        lambda: build.like("sort", a, dimension=1),
        lambda: softmax(build, a, 1),
        lambda: layer_norm(build, a, 1),
        lambda: _windows(build, a),
        lambda: _chosen(build, a, shape, dtype),
        lambda: build.like("reduce_precision", a, exponent_bits=5, mantissa_bits=7),
    ]
    return kinds[int(rng.integers(len(kinds)))]()


def _selection(build: Builder, rng: np.random.Generator, a: Ref, b: Ref) -> Ref:
    pred = build.compare(a, b, str(rng.choice(["LT", "GT", "GE", "EQ", "NE", "LE"])))
    return build.node("select", (pred, a, build.like("add", b, b)), build.type(a))


def _reduction(build: Builder, rng: np.random.Generator, a: Ref, shape: tuple[int, int]) -> Ref:
    axis = int(rng.integers(2))
    reducer = str(rng.choice(["add", "add", "add", "maximum", "minimum", "multiply"]))
    return build.spread(build.reduce(a, reducer, axis), shape, axis)


def _product(build: Builder, rng: np.random.Generator, a: Ref, b: Ref, shape: tuple[int, int], dtype: str) -> Ref:
    turned = build.node("transpose", (b,), TensorType(shape[::-1], NAMED[dtype]), permutation=(1, 0))
    return build.dot(build.dot(a, turned), a if rng.random() < 0.5 else b)


def _windows(build: Builder, a: Ref) -> Ref:
    return build.like(
        "reduce_window",
        a,
        reducer="add",
        window_dimensions=(1, 2),
        window_strides=(1, 1),
        padding_low=(0, 1),
        padding_high=(0, 0),
        base_dilations=(1, 1),
        window_dilations=(1, 1),
    )


def _chosen(build: Builder, a: Ref, shape: tuple[int, int], dtype: str) -> Ref:
    """The index of the greatest element of a row, as a float."""
    index = build.node("argmax", (a,), TensorType(shape[:1], NAMED["int32"]), dimension=1)
    return build.spread(build.convert(index, dtype), shape, 1)


def softmax(build: Builder, a: Ref, axis: int) -> Ref:
    shape = build.type(a).shape
    top = build.spread(build.reduce(a, "maximum", axis), shape, axis)
    weights = build.like("exponential", build.like("subtract", a, top))
    return build.like("divide", weights, build.spread(build.reduce(weights, "add", axis), shape, axis))


def layer_norm(build: Builder, a: Ref, axis: int, epsilon: float = 1e-5) -> Ref:
    shape = build.type(a).shape
    count = float(shape[axis])

    def mean(x: Ref) -> Ref:
        total = build.reduce(x, "add", axis)
        return build.spread(build.like("divide", total, build.filled(total, count)), shape, axis)

    centred = build.like("subtract", a, mean(a))
    variance = mean(build.like("multiply", centred, centred))
    root = build.like("sqrt", build.like("add", variance, build.filled(variance, epsilon)))
    return build.like("divide", centred, root)
