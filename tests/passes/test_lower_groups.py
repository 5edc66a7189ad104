"""Several arrays from one kernel: what it computes anyway, and what reads the same; no kernel waits for itself."""

from __future__ import annotations

import numpy as np
import pytest
from lower_graphs import Builder, random_tensor

from tlir.backends import run
from tlir.backends.interpreter import run_program
from tlir.ir.graph import Body, Graph, Ref
from tlir.ir.types import NAMED, TensorType
from tlir.kernel.ir import Fallback, Launch
from tlir.kernel.verify import verify_program
from tlir.passes.lower import REASONS, lower

F32 = NAMED["float32"]
VECTOR, MATRIX, ROW = TensorType((50,), F32), TensorType((70, 6), F32), TensorType((70,), F32)


def outputs_of_kernels(body: Body) -> list[int]:
    """How many arrays each kernel fills, once the program has given the reference's words."""
    random = np.random.default_rng(1)
    inputs = [random_tensor(random, type) for type in body.input_types]
    program = lower(body)
    expected, results = run(Graph(body), inputs), run_program(program, body, inputs)
    assert all(a.same_words(b) for a, b in zip(expected, results, strict=True))
    launches = [step for step in program.steps if isinstance(step, Launch)]
    return [sum(buffer.role == "output" for buffer in launch.kernel.buffers) for launch in launches]


def builder() -> Builder:
    return Builder(np.random.default_rng(0))


def test_a_value_that_is_a_result_and_is_used() -> None:
    b = builder()
    x = b.input(VECTOR)
    y = b.add("tanh", (x,), VECTOR)
    z = b.add("add", (y, x), VECTOR)
    w = b.add("negate", (z,), VECTOR)
    assert outputs_of_kernels(b.body([y, z, w])) == [3]


def test_results_that_read_the_same() -> None:
    b = builder()
    x, y = b.input(VECTOR), b.input(VECTOR)
    results = [b.add(op, (x,), VECTOR) for op in ("negate", "abs", "sqrt")]
    assert sorted(outputs_of_kernels(b.body([*results, b.add("sign", (y,), VECTOR)]))) == [1, 3]


def test_the_statistics_of_rows_beside_the_rows() -> None:
    b = builder()
    x = b.input(MATRIX)
    total = b.add("reduce", (x,), ROW, reducer="add", dimensions=(1,))
    wide = b.add("broadcast_in_dim", (total,), MATRIX, broadcast_dimensions=(0,))
    assert outputs_of_kernels(b.body([total, b.add("subtract", (x, wide), MATRIX)])) == [2]


@pytest.fixture
def sorting_without_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(REASONS, "sort", "the reference is to do it")


@pytest.mark.usefixtures("sorting_without_kernels")
def test_a_kernel_does_not_wait_for_itself() -> None:
    """z needs the sorted y, which is not computed by a kernel: y has to be there before."""
    b = builder()
    x = b.input(VECTOR)
    y = b.add("tanh", (x,), VECTOR)
    ordered = b.add("sort", (y,), VECTOR, dimension=0)
    z = b.add("add", (y, ordered), VECTOR)
    body = b.body([y, z])
    assert outputs_of_kernels(body) == [1, 1]
    assert [type(step) for step in lower(body).steps] == [Launch, Fallback, Launch]


@pytest.mark.usefixtures("sorting_without_kernels")
def test_two_pairs_that_would_wait_for_each_other() -> None:
    """a and d read what the sort of the other's partner gives: at most one pair can be filled together."""
    b = builder()
    x, y = b.input(VECTOR), b.input(VECTOR)
    a, c = b.add("tanh", (x,), VECTOR), b.add("exponential", (y,), VECTOR)
    sorted_a = b.add("sort", (a,), VECTOR, dimension=0)
    sorted_c = b.add("sort", (c,), VECTOR, dimension=0)
    first = b.add("add", (a, sorted_c), VECTOR)
    second = b.add("add", (c, sorted_a), VECTOR)
    assert sorted(outputs_of_kernels(b.body([a, c, first, second]))) in ([1, 1, 1, 1], [1, 1, 2])


def crossing(b: Builder) -> tuple[Ref, Ref, Ref, Ref]:
    """first and last could be filled by one kernel, and so could second and third; last needs second, and third needs
    first, by way of a value that comes earlier than second and is not an array."""
    x, y = b.input(VECTOR), b.input(VECTOR)
    first = b.add("tanh", (x,), VECTOR)
    ordered = b.add("sort", (b.add("negate", (first,), VECTOR),), VECTOR, dimension=0)
    second = b.add("exponential", (y,), VECTOR)
    third = b.add("add", (ordered, y), VECTOR)
    last = b.add("add", (b.add("reverse", (second,), VECTOR, dimensions=(0,)), x), VECTOR)
    return first, second, third, last


def test_groups_that_would_wait_for_each_other_through_what_is_no_array() -> None:
    b = builder()
    first, second, third, last = crossing(b)
    program = lower(body := b.body([first, second, third, last]))
    assert outputs_of_kernels(body).count(2) == 1
    assert verify_program(program, body).ok
    filled = [
        {ref for buffer, ref in zip(step.kernel.buffers, step.arguments, strict=False) if buffer.role == "output"}
        for step in program.steps
        if isinstance(step, Launch)
    ]
    assert {first, last} in filled
    assert {second} in filled


def test_a_large_array_is_not_filled_by_the_one_iteration_that_sums_it() -> None:
    b = builder()
    large, scalar = TensorType((20_000,), F32), TensorType((), F32)
    x = b.input(large)
    y = b.add("add", (x, x), large)
    total = b.add("reduce", (y,), scalar, reducer="add", dimensions=(0,))
    program = lower(b.body([y, total]))
    assert [[v.extent for v in step.kernel.space] for step in program.steps if isinstance(step, Launch)] == [
        [20_000],
        [],
    ]
