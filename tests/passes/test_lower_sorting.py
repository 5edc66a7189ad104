"""Sorting in kernels: every length near the sizes of runs and parts, ties, NaN and zeros of both signs, stable in both
directions; the check of the lowering sees kernels that sort in another order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from lower_graphs import Builder

from tlir.backends.interpreter import run_program
from tlir.backends.reference import evaluate
from tlir.ir.graph import Body, Graph, Node, Ref
from tlir.ir.tensor import Tensor
from tlir.ir.types import NAMED, TensorType
from tlir.kernel.ir import Apply, Block, Branch, Launch, Loop, Program
from tlir.kernel.parse import parse_program
from tlir.kernel.text import program_text
from tlir.kernel.verify import verify_program
from tlir.passes.check.lowering import check_lowering
from tlir.passes.lower import lower

F32, I32 = NAMED["float32"], NAMED["int32"]
SPECIAL = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 1e-45], np.float32)


def sorting(operands: list[TensorType], axis: int, keys: int = 1, descending: bool = False) -> Body:
    b = Builder(np.random.default_rng(0))
    inputs = tuple(map(b.input, operands))
    attrs = {"dimension": axis, "num_keys": keys, "descending": descending}
    b.nodes.append(Node(len(b.nodes), "sort", inputs, attrs, tuple(operands)))
    return b.body([Ref(len(b.nodes) - 1, k) for k in range(len(operands))])


def greatest(operand: TensorType, axis: int, count: int) -> Body:
    b = Builder(np.random.default_rng(0))
    shape = (*operand.shape[:axis], count, *operand.shape[axis + 1 :])
    types = TensorType(shape, operand.dtype), TensorType(shape, I32)
    b.nodes.append(Node(1, "top_k", (b.input(operand),), {"dimension": axis, "k": count}, types))
    return b.body([Ref(1), Ref(1, 1)])


def checked(body: Body, arrays: list[np.ndarray]) -> Program:
    """The program, once the interpreter has found the reference's words."""
    inputs = [Tensor.from_numpy(array) for array in arrays]
    program = lower(body)
    assert verify_program(program, body).ok
    results = run_program(program, body, inputs)
    assert all(a.same_words(b) for a, b in zip(evaluate(body, inputs), results, strict=True))
    return program


@pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 64, 65, 150])
def test_every_length(size: int) -> None:
    random = np.random.default_rng(size)
    values = random.choice(SPECIAL, (2, size))
    position = np.broadcast_to(np.arange(size, dtype=np.int32), values.shape)
    types = [TensorType(values.shape, F32), TensorType(values.shape, I32)]
    for descending in (False, True):
        checked(sorting(types, 1, descending=descending), [values, position])


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_every_axis_and_several_keys(axis: int) -> None:
    random = np.random.default_rng(axis)
    shape = tuple(21 if k == axis else 2 for k in range(3))
    arrays = [random.integers(0, 3, shape).astype(np.int8), random.choice(SPECIAL, shape)]
    arrays += [(random.choice(SPECIAL, shape) + 1j * random.choice(SPECIAL, shape)).astype(np.complex64)]
    types = [TensorType(shape, NAMED[str(array.dtype)]) for array in arrays]
    for keys in (1, 2, 3):
        checked(sorting(types, axis, keys), arrays)
    checked(sorting(types[::-1], axis, 2, True), arrays[::-1])


@pytest.mark.parametrize(
    ("size", "count"),
    [(1, 1), (5, 5), (12, 3), (40, 33), (130, 1), (300, 33), (301, 64), (530, 65), (601, 2), (1026, 2)],
)
def test_the_greatest(size: int, count: int) -> None:
    values = np.random.default_rng(size).choice(SPECIAL, (2, size))
    checked(greatest(TensorType(values.shape, F32), 1, count), [values])
    checked(greatest(TensorType(values.T.shape, F32), 0, count), [np.ascontiguousarray(values.T)])


def test_nothing() -> None:
    for shape in ((3, 0), (0, 3)):
        checked(sorting([TensorType(shape, F32)], 1), [np.empty(shape, np.float32)])
    checked(greatest(TensorType((0, 3), F32), 1, 2), [np.empty((0, 3), np.float32)])
    checked(greatest(TensorType((2, 3), F32), 1, 0), [np.empty((2, 3), np.float32)])


def test_text_and_back() -> None:
    body = sorting([TensorType((2, 40), F32)], 1)
    program = lower(body)
    assert parse_program(program_text(program)) == program


def test_what_is_computed_before_is_computed_in_the_first_kernel() -> None:
    b = Builder(np.random.default_rng(0))
    type = TensorType((40,), F32)
    negated = b.add("negate", (b.input(type),), type)
    ordered = b.add("sort", (negated,), type, dimension=0)
    program = lower(b.body([b.add("negate", (ordered,), type)]))
    first, *_, last = program.steps
    assert isinstance(first, Launch)
    assert isinstance(last, Launch)
    assert first.kernel.nodes == (1, 2)
    assert last.kernel.nodes == (3,)


@pytest.mark.parametrize(
    "body",
    [
        sorting([TensorType((1_000_000,), F32)], 0),
        sorting([TensorType((3, 20), F32), TensorType((3, 20), NAMED["bool"])], 1, 2, True),
        greatest(TensorType((64, 5000), F32), 1, 3),
        greatest(TensorType((64, 5000), F32), 1, 40),
    ],
    ids=["long", "two keys", "greatest", "many of the greatest"],
)
def test_the_lowering_is_proven(body: Body) -> None:
    assert check_lowering(Graph(body)).status == "passed"


def turned(program: Program, number: int) -> Program:
    """The program with comparisons of floats turned around in one of its kernels."""

    def block(block: Block) -> Block:
        statements = []
        for s in block.statements:
            if isinstance(s, Apply) and s.op == "compare" and s.operands[0].dtype.is_float:
                direction = {"GE": "GT", "LT": "LE"}.get(s.attrs["comparison_direction"])
                s = replace(s, attrs={"comparison_direction": direction}) if direction else s
            elif isinstance(s, Branch):
                s = replace(s, then=block_(s.then), otherwise=block_(s.otherwise))
            elif isinstance(s, Loop):
                s = replace(s, body=block_(s.body))
            statements.append(s)
        return Block(tuple(statements), block.results)

    block_ = block
    steps = list(program.steps)
    launch = steps[number]
    assert isinstance(launch, Launch)
    steps[number] = replace(launch, kernel=replace(launch.kernel, body=block(launch.kernel.body)))
    return replace(program, steps=tuple(steps))


@pytest.mark.parametrize("number", range(4))
def test_an_order_that_is_not_stable_is_seen(number: int) -> None:
    body = sorting([TensorType((2, 40), F32), TensorType((2, 40), I32)], 1)
    program = lower(body)
    assert len(program.steps) == 4
    assert check_lowering(Graph(body), program).status == "passed"
    assert check_lowering(Graph(body), turned(program, number)).status == "failed"
