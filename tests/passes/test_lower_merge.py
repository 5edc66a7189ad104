"""Equal nodes are computed once, and every value that somebody asks for is still there."""

from __future__ import annotations

import numpy as np
import pytest
from lower_graphs import Builder, random_tensor

from tlir.backends import run
from tlir.backends.interpreter import run_program
from tlir.ir.graph import Body, Graph
from tlir.ir.tensor import Tensor
from tlir.ir.types import NAMED, TensorType
from tlir.kernel.ir import Alias, Fallback, Launch, Loop, Program
from tlir.kernel.verify import verify_program
from tlir.passes.lower import REASONS, lower
from tlir.passes.lower.merge import merged

F32 = NAMED["float32"]
MATRIX, ROW, VECTOR = TensorType((70, 6), F32), TensorType((70,), F32), TensorType((9,), F32)


def checked(body: Body) -> Program:
    random = np.random.default_rng(1)
    inputs = [random_tensor(random, type) for type in body.input_types]
    program = lower(body)
    assert verify_program(program, body).ok
    expected, results = run(Graph(body), inputs), run_program(program, body, inputs)
    assert all(a.same_words(b) for a, b in zip(expected, results, strict=True))
    return program


def test_a_mean_that_is_written_twice_is_computed_once() -> None:
    b = Builder(np.random.default_rng(0))
    x = b.input(MATRIX)
    parts = []
    for _ in range(2):
        total = b.add("reduce", (x,), ROW, reducer="add", dimensions=(1,))
        wide = b.add("broadcast_in_dim", (total,), MATRIX, broadcast_dimensions=(0,))
        parts.append(b.add("subtract", (x, wide), MATRIX))
    program = checked(b.body([b.add("multiply", parts, MATRIX)]))
    (step,) = program.steps
    assert isinstance(step, Launch)
    assert sum(isinstance(statement, Loop) for statement in step.kernel.body.walk()) == 1


@pytest.fixture
def sorting_without_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(REASONS, "sort", "the reference is to do it")


@pytest.mark.usefixtures("sorting_without_kernels")
def test_outputs_and_operands_of_the_reference_keep_their_names() -> None:
    b = Builder(np.random.default_rng(0))
    x = b.input(VECTOR)
    one, other = b.add("tanh", (x,), VECTOR), b.add("tanh", (x,), VECTOR)
    ordered = b.add("sort", (other,), VECTOR, dimension=0)
    program = checked(b.body([one, other, ordered]))
    assert [step for step in program.steps if isinstance(step, Alias)] == [Alias(other, one)]


@pytest.mark.usefixtures("sorting_without_kernels")
def test_the_reference_computes_equal_nodes_once_and_unused_ones_never() -> None:
    b = Builder(np.random.default_rng(0))
    x = b.input(VECTOR)
    one, other = (b.add("sort", (x,), VECTOR, dimension=0) for _ in range(2))
    b.add("sort", (b.add("tanh", (x,), VECTOR),), VECTOR, dimension=0)
    assert checked(b.body([one, other])).steps == (Fallback(one.node, REASONS["sort"]), Alias(other, one))
    assert checked(b.body([other])).steps == (Fallback(one.node, REASONS["sort"]), Alias(other, one))


@pytest.mark.usefixtures("sorting_without_kernels")
def test_equal_constants() -> None:
    b = Builder(np.random.default_rng(0))
    values = [b.add("constant", (), VECTOR, value=Tensor.from_numpy(np.arange(9, dtype=np.float32))) for _ in range(2)]
    ordered = b.add("sort", (values[1],), VECTOR, dimension=0)
    program = checked(b.body([values[1], ordered, b.add("add", values, VECTOR)]))
    assert not any(isinstance(step, Alias) for step in program.steps)


def test_what_differs_in_an_attribute_or_a_type_stays_apart() -> None:
    b = Builder(np.random.default_rng(0))
    x = b.input(VECTOR)
    b.add("integer_pow", (x,), VECTOR, exponent=2)
    b.add("integer_pow", (x,), VECTOR, exponent=3)
    b.add("convert", (x,), TensorType((9,), NAMED["float64"]))
    b.add("convert", (x,), TensorType((9,), NAMED["float16"]))
    body = b.body([x])
    assert merged(body) == (body, {})


@pytest.mark.usefixtures("sorting_without_kernels")
def test_a_kernel_that_a_device_does_not_compile_reads_what_is_left_of_the_first_of_equal_nodes() -> None:
    """The second conjugate is evaluated by the reference, after the operand of the first one has been dropped."""
    pytest.importorskip("llvmlite")
    b = Builder(np.random.default_rng(0))
    type = TensorType((9,), NAMED["complex64"])
    x = b.input(type)
    one, other = b.add("conjugate", (x,), type), b.add("conjugate", (x,), type)
    ordered = b.add("sort", (one,), type, dimension=0)
    again = b.add("sort", (ordered,), type, dimension=0, descending=True)
    body = b.body([b.add("add", (again, b.add("multiply", (other, other), type)), type)])
    inputs = [random_tensor(np.random.default_rng(1), type)]
    expected, results = run(Graph(body), inputs), run(Graph(body), inputs, device="cpu")
    assert all(a.same_words(b) for a, b in zip(expected, results, strict=True))
