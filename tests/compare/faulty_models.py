"""Small models written node by node, each with the faults that can be planted in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from bounds_graphs import Builder, numpy_type, softmax

from tlir.backends import run
from tlir.ir.graph import Graph, Producer, Ref, Sample
from tlir.ir.ops import Accumulate
from tlir.ir.tensor import Tensor
from tlir.ir.types import NAMED, TensorType

WIDTH, BATCH = 16, 4
TORCH = Producer("torch", "2.13.0")
JAX = Producer("jax", "0.10.2")

Model = Callable[[Builder, str, str], Ref]
"""(graph under construction, dtype, the fault or "") to the output."""


def matrix(build: Builder, dtype: str, rows: int, columns: int, seed: int, flip: int | None = None) -> Ref:
    """Normal deviates divided by the root of the rows, one of average size with fraction bit ``flip`` inverted, counted
    from the most significant one, 1."""
    array = np.random.default_rng(seed).normal(size=(rows, columns)) / np.sqrt(rows)
    array = array.astype(numpy_type(dtype))
    if flip is not None:
        flat = array.reshape(-1)
        place = int(np.argmin(np.abs(np.abs(flat.astype(float)) - np.abs(flat.astype(float)).mean())))
        word = array.view(f"u{array.itemsize}").reshape(-1)
        fraction = NAMED[dtype].float_format.fraction_bits
        word[place] ^= word.dtype.type(1 << (fraction - flip))
    return build.constant(array)


def activations(build: Builder, dtype: str) -> Ref:
    return build.input(TensorType((BATCH, WIDTH), NAMED[dtype]))


def recorded_input(dtype: str) -> Tensor:
    return Tensor.from_numpy(np.random.default_rng(7).normal(size=(BATCH, WIDTH)).astype(numpy_type(dtype)))


def transposed(build: Builder, a: Ref) -> Ref:
    type = build.type(a)
    return build.node("transpose", (a,), TensorType(type.shape[::-1], type.dtype), permutation=(1, 0))


def accumulator(dtype: str) -> dict[str, Accumulate]:
    return {"accumulate": Accumulate(NAMED["float32"])} if dtype in ("float16", "bfloat16") else {}


def perceptron(build: Builder, dtype: str, fault: str) -> Ref:
    x = activations(build, dtype)
    flip = int(fault.removeprefix("flip ")) if fault.startswith("flip ") else None
    w1 = matrix(build, dtype, WIDTH, WIDTH, 1, flip)
    w2 = matrix(build, dtype, WIDTH, WIDTH, 2)
    if fault == "transposed weight":
        w1 = transposed(build, w1)
    hidden = build.like("tanh", build.dot(x, w1, **accumulator(dtype)))
    if fault == "added cast":
        hidden = build.convert(build.convert(hidden, "bfloat16" if dtype != "bfloat16" else "float8_e4m3fn"), dtype)
    if fault == "missing term":
        kept = build.constant((np.arange(WIDTH) != 3).astype(numpy_type(dtype)))
        hidden = build.like("multiply", hidden, build.spread(kept, (BATCH, WIDTH), 0))
    bias = build.spread(build.constant(np.linspace(-1, 1, WIDTH).astype(numpy_type(dtype))), (BATCH, WIDTH), 0)
    if fault == "stale constant":
        bias = build.spread(build.constant(np.linspace(-1, 1.001, WIDTH).astype(numpy_type(dtype))), (BATCH, WIDTH), 0)
    return build.like("add", build.dot(hidden, w2, **accumulator(dtype)), bias)


def layer_norm(build: Builder, dtype: str, fault: str) -> Ref:
    x = activations(build, dtype)
    return normalised(build, x, fault)


def normalised(build: Builder, x: Ref, fault: str) -> Ref:
    shape = build.type(x).shape
    dtype = build.type(x).dtype.name
    axis = 0 if fault == "mean over the wrong axis" else 1
    count = float(shape[axis])

    def mean(values: Ref, divisor: float) -> Ref:
        total = build.reduce(values, "add", axis, **accumulator(dtype))
        return build.spread(build.like("divide", total, build.filled(total, divisor)), shape, axis)

    centred = build.like("subtract", x, mean(x, count))
    squares = build.like("multiply", centred, centred)
    variance = mean(squares, count - 1 if fault == "n - 1 for n" else count)
    epsilon = build.filled(variance, 1e-5 if dtype in ("float32", "float64") else 1e-2)
    if fault == "epsilon outside the root":
        root = build.like("add", build.like("sqrt", variance), epsilon)
    else:
        root = build.like("sqrt", build.like("add", variance, epsilon))
    return build.like("divide", centred, root)


def attention(build: Builder, dtype: str, fault: str) -> Ref:
    x = activations(build, dtype)
    return attended(build, x, fault)


def attended(build: Builder, x: Ref, fault: str) -> Ref:
    dtype = build.type(x).dtype.name
    query, key, value = (
        build.dot(x, matrix(build, dtype, WIDTH, WIDTH, 10 + k), **accumulator(dtype)) for k in range(3)
    )
    scores = build.dot(query, transposed(build, key), **accumulator(dtype))
    root = WIDTH if fault == "scale without root" else np.sqrt(WIDTH)
    scores = build.like("divide", scores, build.filled(scores, float(root)))
    rows, columns = np.indices((BATCH, BATCH))
    allowed = columns < rows if fault == "mask off by one" else columns <= rows
    if fault == "mask off by one":
        allowed = allowed | (rows == 0)
    mask = build.constant(allowed)
    low = build.filled(scores, -np.inf)
    scores = build.node("select", (mask, scores, low), build.type(scores))
    shares = softmax(build, scores, 0 if fault == "softmax over the wrong axis" else 1)
    if fault == "softmax over the wrong axis":
        shares = transposed(build, shares)
    return build.dot(shares, value, **accumulator(dtype))


def gelu(build: Builder, dtype: str, fault: str) -> Ref:
    x = activations(build, dtype)
    return gelued(build, x, fault)


def gelued(build: Builder, x: Ref, fault: str) -> Ref:
    def scaled(a: Ref, factor: float) -> Ref:
        return build.like("multiply", a, build.filled(a, factor))

    if fault == "tanh-gelu for erf-gelu":
        cube = build.like("multiply", build.like("multiply", x, x), x)
        inner = scaled(build.like("add", x, scaled(cube, 0.044715)), float(np.sqrt(2 / np.pi)))
        gate = build.like("tanh", inner)
    else:
        gate = build.like("erf", scaled(x, float(np.sqrt(0.5))))
    return build.like("multiply", scaled(x, 0.5), build.like("add", gate, build.filled(gate, 1.0)))


def block(build: Builder, dtype: str, fault: str) -> Ref:
    """Attention and a layer of two matrices, each on normalised values and added to what came in."""
    x = activations(build, dtype)
    x = build.like("add", x, attended(build, normalised(build, x, fault), fault))
    inner = build.dot(normalised(build, x, ""), matrix(build, dtype, WIDTH, WIDTH, 20), **accumulator(dtype))
    outer = build.dot(gelued(build, inner, fault), matrix(build, dtype, WIDTH, WIDTH, 21), **accumulator(dtype))
    return build.like("add", x, outer)


def long_sum(build: Builder, dtype: str, fault: str) -> Ref:
    """The mean square of rows of 1024 numbers, accumulated in float32."""
    x = activations(build, dtype)
    wide = build.node(
        "broadcast_in_dim", (x,), TensorType((BATCH, WIDTH, 64), NAMED[dtype]), broadcast_dimensions=(0, 1)
    )
    flat = build.node("reshape", (wide,), TensorType((BATCH, WIDTH * 64), NAMED[dtype]))
    squares = build.like("multiply", flat, flat)
    narrow = Accumulate(NAMED["float16"]) if fault == "sum in float16" else Accumulate(NAMED["float32"])
    return build.reduce(squares, "add", 1, accumulate=narrow)


def casts(build: Builder, dtype: str, fault: str) -> Ref:
    """Values rounded to a narrower format and back."""
    x = activations(build, dtype)
    narrow = {"float64": "float32", "float32": "bfloat16", "float16": "float8_e5m2", "bfloat16": "float8_e4m3fn"}[dtype]
    if fault == "double rounding":
        x = build.convert(x, "float16" if dtype == "float32" else "float32")
    rounded = x if fault == "dropped cast" else build.convert(build.convert(x, narrow), dtype)
    if build.type(rounded).dtype.name != dtype:
        rounded = build.convert(rounded, dtype)
    return build.like("add", rounded, rounded)


FAULTS: tuple[tuple[Model, str], ...] = (
    (perceptron, "transposed weight"),
    (perceptron, "added cast"),
    (perceptron, "missing term"),
    (perceptron, "stale constant"),
    (layer_norm, "mean over the wrong axis"),
    (layer_norm, "n - 1 for n"),
    (layer_norm, "epsilon outside the root"),
    (attention, "mask off by one"),
    (attention, "scale without root"),
    (attention, "softmax over the wrong axis"),
    (gelu, "tanh-gelu for erf-gelu"),
    (block, "mean over the wrong axis"),
    (block, "n - 1 for n"),
    (block, "mask off by one"),
    (block, "tanh-gelu for erf-gelu"),
    (casts, "dropped cast"),
)


def built(model: Model, dtype: str, fault: str, producer: Producer) -> Graph:
    build = Builder()
    return build.graph(model(build, dtype, fault), producer=producer)


def with_fault(model: Model, dtype: str, fault: str, producer: Producer = TORCH) -> Graph:
    """The right graph, whose recorded outputs are those of the faulty one."""
    right, wrong = built(model, dtype, "", producer), built(model, dtype, fault, producer)
    inputs = (recorded_input(dtype),)
    return replace(right, samples=(Sample(inputs, tuple(run(wrong, inputs))),))
