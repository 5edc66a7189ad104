"""Declared orders of long sums, where runs, local buffers and rests meet; rows that are kept; what is fused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lower_graphs import Builder, random_tensor

from tlir.backends import run
from tlir.backends.interpreter import run_program
from tlir.ir.graph import Body, Graph
from tlir.ir.ops import Accumulate
from tlir.ir.tensor import Tensor
from tlir.ir.types import NAMED, TensorType
from tlir.kernel.ir import Launch, Load, Program
from tlir.kernel.patterns import as_contraction
from tlir.passes.lower import lower

F32 = NAMED["float32"]


def same(body: Body, inputs: list[Tensor]) -> Program:
    program = lower(body)
    expected, results = run(Graph(body), inputs), run_program(program, body, inputs)
    assert all(a.same_words(b) for a, b in zip(expected, results, strict=True))
    return program


@pytest.mark.parametrize("count", [1, 2, 8, 9, 17, 255, 256, 257, 300, 513, 1000, 256 * 9 + 3, 256 * 17])
@pytest.mark.parametrize("order", [Accumulate(order="pairwise"), Accumulate(order="blocked", block=64)])
def test_long_sums(count: int, order: Accumulate) -> None:
    random = np.random.default_rng(count)
    builder = Builder(random)
    x = builder.input(TensorType((count, 3), F32))
    total = builder.add("reduce", (x,), TensorType((3,), F32), reducer="add", dimensions=(0,), accumulate=order)
    body = builder.body([total])
    same(body, [Tensor.from_numpy(random.standard_normal((count, 3)).astype(np.float32))])


@pytest.mark.parametrize("order", ["pairwise", "sequential", "blocked"])
def test_sums_over_several_axes(order: str) -> None:
    builder = Builder(np.random.default_rng(1))
    x = builder.input(TensorType((7, 2, 50), F32))
    accumulate = Accumulate(order=order, block=16 if order == "blocked" else 0)
    total = builder.add("reduce", (x,), TensorType((2,), F32), reducer="add", dimensions=(2, 0), accumulate=accumulate)
    body = builder.body([total])
    same(body, [Tensor.from_numpy(builder.random.standard_normal((7, 2, 50)).astype(np.float32))])


def softmax(rows: int, columns: int, order: Accumulate | None = None) -> tuple[Body, list[Tensor]]:
    builder = Builder(np.random.default_rng(2))
    full, row = TensorType((rows, columns), F32), TensorType((rows,), F32)
    x = builder.input(full)
    most = builder.add("reduce", (x,), row, reducer="maximum", dimensions=(1,))
    back = builder.add("broadcast_in_dim", (most,), full, broadcast_dimensions=(0,))
    powers = builder.add("exponential", (builder.add("subtract", (x, back), full),), full)
    attrs = {"accumulate": order} if order else {}
    total = builder.add("reduce", (powers,), row, reducer="add", dimensions=(1,), **attrs)
    below = builder.add("broadcast_in_dim", (total,), full, broadcast_dimensions=(0,))
    body = builder.body([builder.add("divide", (powers, below), full)])
    return body, [random_tensor(builder.random, full)]


def launches(program: Program) -> list[Launch]:
    assert all(isinstance(step, Launch) for step in program.steps)
    return [step for step in program.steps if isinstance(step, Launch)]


def test_softmax_is_one_kernel_that_computes_each_exponential_once() -> None:
    (launch,) = launches(same(*softmax(70, 11)))
    applied = [getattr(statement, "op", "") for statement in launch.kernel.body.walk()]
    assert applied.count("exponential") == 1
    loads = [s for s in launch.kernel.body.walk() if isinstance(s, Load) and s.buffer.role == "input"]
    assert len(loads) == 2  # once for the maximum, once for the exponential
    assert [v.extent for v in launch.kernel.space] == [70]


@pytest.mark.parametrize("columns", [8, 11, 12])
@pytest.mark.parametrize("order", ["blocked", "pairwise"])
def test_a_softmax_in_another_order_is_one_kernel_too(columns: int, order: str) -> None:
    accumulate = Accumulate(order=order, block=4 if order == "blocked" else 0)
    (launch,) = launches(same(*softmax(70, columns, accumulate)))
    applied = [getattr(statement, "op", "") for statement in launch.kernel.body.walk()]
    assert applied.count("exponential") == 1


def test_layer_norm_is_one_kernel() -> None:
    builder = Builder(np.random.default_rng(3))
    full, row = TensorType((80, 9), F32), TensorType((80,), F32)
    x = builder.input(full)

    def mean(value: Any) -> Any:
        total = builder.add("reduce", (value,), row, reducer="add", dimensions=(1,))
        count = builder.add("constant", (), TensorType((), F32), value=Tensor.from_numpy(np.array(9, np.float32)))
        counts = builder.add("broadcast_in_dim", (count,), row, broadcast_dimensions=())
        quotient = builder.add("divide", (total, counts), row)
        return builder.add("broadcast_in_dim", (quotient,), full, broadcast_dimensions=(0,))

    centred = builder.add("subtract", (x, mean(x)), full)
    square = builder.add("multiply", (centred, centred), full)
    scale = builder.add("rsqrt", (mean(square),), full)
    body = builder.body([builder.add("multiply", (centred, scale), full)])
    assert len(launches(same(body, [random_tensor(builder.random, full)]))) == 1


def test_a_product_written_as_broadcast_and_sum_never_holds_the_products() -> None:
    builder = Builder(np.random.default_rng(4))
    left, right, cube = (TensorType(shape, F32) for shape in ((6, 5), (5, 4), (6, 5, 4)))
    a, b = builder.input(left), builder.input(right)
    wide = builder.add("broadcast_in_dim", (a,), cube, broadcast_dimensions=(0, 1))
    deep = builder.add("broadcast_in_dim", (b,), cube, broadcast_dimensions=(1, 2))
    products = builder.add("multiply", (wide, deep), cube)
    total = builder.add("reduce", (products,), TensorType((6, 4), F32), reducer="add", dimensions=(1,))
    body = builder.body([total])
    (launch,) = launches(same(body, [random_tensor(builder.random, left), random_tensor(builder.random, right)]))
    assert max(buffer.size for buffer in launch.kernel.buffers) == 30


def test_a_contraction_reads_what_it_reads_at_affine_offsets() -> None:
    """Heads joined by a reshape after a transpose: the transposed array is written as one, not read in pieces."""
    builder = Builder(np.random.default_rng(8))
    x, w = builder.input(TensorType((2, 4, 5, 3), F32)), builder.input(TensorType((12, 7), F32))
    turned = builder.add("transpose", (x,), TensorType((2, 5, 4, 3), F32), permutation=(0, 2, 1, 3))
    joined = builder.add("reshape", (turned,), TensorType((2, 5, 12), F32))
    attrs = {"lhs_batching_dimensions": (), "rhs_batching_dimensions": ()}
    summed = {"lhs_contracting_dimensions": (2,), "rhs_contracting_dimensions": (0,)}
    body = builder.body([builder.add("dot_general", (joined, w), TensorType((2, 5, 7), F32), **attrs, **summed)])
    program = same(body, [random_tensor(builder.random, type) for type in body.input_types])
    kernels = [step.kernel for step in program.steps if isinstance(step, Launch)]
    assert [as_contraction(kernel) is not None for kernel in kernels] == [False, True]


def test_a_value_needed_often_is_computed_once() -> None:
    """The exponential of a vector, broadcast over rows: an array of its own, not computed for each row."""
    builder = Builder(np.random.default_rng(5))
    vector, full = TensorType((8,), F32), TensorType((50, 8), F32)
    x, y = builder.input(vector), builder.input(full)
    powers = builder.add("exponential", (x,), vector)
    wide = builder.add("broadcast_in_dim", (powers,), full, broadcast_dimensions=(1,))
    body = builder.body([builder.add("add", (y, wide), full)])
    program = same(body, [random_tensor(builder.random, vector), random_tensor(builder.random, full)])
    assert [launch.kernel.space[0].extent for launch in launches(program)] == [8, 50]


def test_a_long_chain_is_cut_and_lowered_without_deep_recursion() -> None:
    builder = Builder(np.random.default_rng(6))
    type = TensorType((3,), F32)
    x = value = builder.input(type)
    for _ in range(1500):
        value = builder.add("add", (value, x), type)
    body = builder.body([value])
    kernels = [launch.kernel for launch in launches(same(body, [random_tensor(builder.random, type)]))]
    assert 1 < len(kernels) < 60
    # what is computed on the way and needed nowhere else is not stored
    assert all(sum(buffer.role == "output" for buffer in kernel.buffers) == 1 for kernel in kernels)


def test_attention_is_a_kernel_for_each_product_and_one_for_its_softmax() -> None:
    """Scores with an epilogue, the softmax over them, and the mix: three kernels, and no product computed twice."""
    builder = Builder(np.random.default_rng(7))
    full, row = TensorType((70, 6, 6), F32), TensorType((70, 6), F32)
    query, key, value = (builder.input(TensorType((70, 6, 5), F32)) for _ in range(3))
    attrs = {"lhs_batching_dimensions": (0,), "rhs_batching_dimensions": (0,)}
    summed = {"lhs_contracting_dimensions": (2,), "rhs_contracting_dimensions": (2,)}
    scores = builder.add("dot_general", (query, key), full, **attrs, **summed)
    scaled = builder.add("multiply", (scores, builder.input(full)), full)

    def over_rows(x: Any, reducer: str) -> Any:
        reduced = builder.add("reduce", (x,), row, reducer=reducer, dimensions=(2,))
        return builder.add("broadcast_in_dim", (reduced,), full, broadcast_dimensions=(0, 1))

    powers = builder.add("exponential", (builder.add("subtract", (scaled, over_rows(scaled, "maximum")), full),), full)
    weights = builder.add("divide", (powers, over_rows(powers, "add")), full)
    mixed = {"lhs_contracting_dimensions": (2,), "rhs_contracting_dimensions": (1,)}
    out = builder.add("dot_general", (weights, value), TensorType((70, 6, 5), F32), **attrs, **mixed)
    body = builder.body([out])
    inputs = [
        Tensor.from_numpy(builder.random.standard_normal(type.shape).astype(np.float32)) for type in body.input_types
    ]
    kernels = [launch.kernel for launch in launches(same(body, inputs))]
    assert [[v.extent for v in kernel.space] for kernel in kernels] == [[70, 6, 6], [70, 6], [70, 6, 5]]
    assert [as_contraction(kernel) is not None for kernel in kernels] == [True, False, True]
