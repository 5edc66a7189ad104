"""Loops of a known number of steps and branches: one ordered loop, real branches, and a reason where there is none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tlir.backends import run
from tlir.backends.interpreter import run_program
from tlir.ir.graph import Body, Graph, Node, Ref
from tlir.ir.tensor import Tensor
from tlir.ir.types import BOOL, NAMED, TensorType
from tlir.ir.verify import type_errors
from tlir.kernel.ir import Branch, Fallback, Launch, Loop, Program
from tlir.passes.lower import lower

F32, I32, I8 = NAMED["float32"], NAMED["int32"], NAMED["int8"]
VECTOR, SCALAR, COUNT = TensorType((5,), F32), TensorType((), F32), TensorType((), I32)


class Region:
    """A body under construction."""

    def __init__(self, *inputs: TensorType) -> None:
        self.nodes: list[Node] = []
        self.inputs = [self.add("input", (), type) for type in inputs]

    def add(self, op: str, operands: Sequence[Ref], *types: TensorType, regions: Any = (), **attrs: Any) -> Ref:
        self.nodes.append(Node(len(self.nodes), op, tuple(operands), attrs, types, regions=tuple(regions)))
        return Ref(len(self.nodes) - 1)

    def constant(self, value: Any, type: TensorType = COUNT) -> Ref:
        array = np.array(value, type.dtype.name)
        scalar = self.add("constant", (), TensorType((), type.dtype), value=Tensor.from_numpy(array))
        if type.rank == 0:
            return scalar
        return self.add("broadcast_in_dim", (scalar,), type, broadcast_dimensions=())

    def body(self, *outputs: Ref) -> Body:
        return Body(tuple(self.nodes), tuple(ref.node for ref in self.inputs), outputs)


def checked(body: Body, *inputs: Any) -> Program:
    tensors = [Tensor.from_numpy(np.asarray(x)) for x in inputs]
    graph = Graph(body)
    assert not type_errors(graph)
    program = lower(body)
    expected, results = run(graph, tensors), run_program(program, body, tensors)
    assert [a.same_words(b) for a, b in zip(expected, results, strict=True)] == [True] * len(expected)
    return program


def loops(program: Program) -> list[Loop]:
    kernels = [step.kernel for step in program.steps if isinstance(step, Launch)]
    return [s for kernel in kernels for s in kernel.body.walk() if isinstance(s, Loop)]


def reasons(program: Program) -> list[str]:
    return [step.reason for step in program.steps if isinstance(step, Fallback)]


def logistic_map() -> Body:
    """Steps x -> r * x * (1 - x), with the step's number counted beside it."""
    step = Region(VECTOR, COUNT, VECTOR)
    r, count, x = step.inputs
    rest = step.add("subtract", (step.constant(1, VECTOR), x), VECTOR)
    after = step.add("multiply", (step.add("multiply", (r, x), VECTOR), rest), VECTOR)
    return step.body(step.add("add", (count, step.constant(1)), COUNT), after, x)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [0, 1, 7])
def test_a_scan_is_one_ordered_loop(length: int, reverse: bool) -> None:
    whole = Region(VECTOR, VECTOR)
    attrs = {"length": length, "num_consts": 1, "num_carry": 2, "reverse": reverse}
    types = (COUNT, VECTOR, TensorType((length, 5), F32))
    scan = whole.add(
        "scan", (whole.inputs[0], whole.constant(3), whole.inputs[1]), *types, regions=[logistic_map()], **attrs
    )
    twice = whole.add("add", (Ref(scan.node, 1), Ref(scan.node, 1)), VECTOR)
    body = whole.body(*(Ref(scan.node, k) for k in range(3)), twice)
    random = np.random.default_rng(0)
    x = random.random((2, 5)).astype(np.float32)
    program = checked(body, 3 + x[0], x[1])
    assert not reasons(program)
    if length > 1:
        # one for the vector and its history, and one for the scalar
        assert sorted(loop.variable.extent for loop in loops(program)) == [7, 7]


def test_slices_of_stacked_operands_forwards_and_backwards() -> None:
    rows = TensorType((4, 5), F32)
    for reverse in (False, True):
        step = Region(VECTOR, VECTOR)
        total = step.add("add", step.inputs, VECTOR)
        whole = Region(rows, VECTOR)
        attrs = {"length": 4, "num_consts": 0, "num_carry": 1, "reverse": reverse}
        doubled = whole.add("add", (whole.inputs[0], whole.inputs[0]), rows)
        scan = whole.add("scan", (whole.inputs[1], doubled), VECTOR, rows, regions=[step.body(total, total)], **attrs)
        program = checked(
            whole.body(scan, Ref(scan.node, 1)), np.arange(20, dtype=np.float32).reshape(4, 5), np.ones(5, np.float32)
        )
        assert len(program.steps) == 1


def test_a_scan_whose_steps_exchange_elements_is_left_to_the_reference() -> None:
    step = Region(VECTOR)
    turned = step.add("reverse", step.inputs, VECTOR, dimensions=(0,))
    whole = Region(VECTOR)
    half = whole.add("multiply", (whole.inputs[0], whole.inputs[0]), VECTOR)
    attrs = {"length": 3, "num_consts": 0, "num_carry": 1}
    scan = whole.add("scan", (half,), VECTOR, regions=[step.body(turned)], **attrs)
    program = checked(whole.body(scan), np.arange(5, dtype=np.float32))
    assert reasons(program) == ["an element of a step depends on other elements"]


def counting(
    start: int, limit: int, by: int, direction: str = "LT", op: str = "add", dtype: str = "int32", carried: bool = False
) -> Body:
    """A ``while`` over a counter, a limit and a vector that each step doubles."""
    count = TensorType((), NAMED[dtype])
    types = (count, count, VECTOR)
    condition = Region(*types)
    bound = condition.inputs[1] if carried else condition.constant(limit, count)
    test = condition.add("compare", (condition.inputs[0], bound), TensorType((), BOOL), comparison_direction=direction)
    step = Region(*types)
    after = step.add(op, (step.inputs[0], step.constant(by, count)), count)
    doubled = step.add("add", (step.inputs[2], step.inputs[2]), VECTOR)
    whole = Region(VECTOR)
    operands = (whole.constant(start, count), whole.constant(limit, count), whole.inputs[0])
    regions = [condition.body(test), step.body(after, step.inputs[1], doubled)]
    loop = whole.add("while", operands, *types, regions=regions)
    return whole.body(*(Ref(loop.node, k) for k in range(3)))


@pytest.mark.parametrize(
    ("body", "steps"),
    [
        (counting(0, 10, 1), 10),
        (counting(0, 10, 1, carried=True), 10),
        (counting(0, 10, 3), 4),
        (counting(0, 9, 3), 3),
        (counting(0, 9, 3, "LE"), 4),
        (counting(10, 0, 3, "GT", "subtract"), 4),
        (counting(10, 1, 3, "GE", "subtract"), 4),
        (counting(5, 5, 1), 0),
        (counting(5, 5, 1, "LE"), 1),
        (counting(-3, 4, 2, dtype="int8"), 4),
    ],
)
def test_a_while_that_counts_is_a_loop(body: Body, steps: int) -> None:
    program = checked(body, np.arange(5, dtype=np.float32))
    assert not reasons(program)
    assert all(loop.variable.extent == steps for loop in loops(program))
    assert bool(loops(program)) == (steps > 1) or steps == 1


@pytest.mark.parametrize(
    "body",
    [
        counting(0, 120, 100, dtype="int8"),  # 100, then -56: it wraps and goes on
        counting(0, 10, 1, "NE"),
        counting(0, 64, 2, op="add", direction="NE"),
    ],
)
def test_a_while_that_is_not_understood_is_left_to_the_reference(body: Body) -> None:
    assert reasons(checked(body, np.arange(5, dtype=np.float32))) == ["data decides how many steps it takes"]


def branches(make: Callable[[Region], Ref]) -> Body:
    types = (VECTOR, VECTOR)
    regions = []
    for k in range(2):
        region = Region(*types)
        regions.append(region.body(make(region) if k else region.add("subtract", region.inputs, VECTOR)))
    whole = Region(COUNT, VECTOR, VECTOR)
    index, x, y = whole.inputs
    other = Region(*types)
    regions.append(other.body(other.add("maximum", other.inputs, VECTOR)))
    chosen = whole.add("case", (index, whole.add("add", (x, y), VECTOR), y), VECTOR, regions=regions)
    return whole.body(whole.add("negate", (chosen,), VECTOR))


@pytest.mark.parametrize("index", [-2, 0, 1, 2, 3, 100])
def test_a_case_is_a_real_branch(index: int) -> None:
    body = branches(lambda region: region.add("multiply", region.inputs, VECTOR))
    program = checked(body, np.array(index, np.int32), np.ones(5, np.float32), np.arange(5, dtype=np.float32))
    (step,) = program.steps
    assert isinstance(step, Launch)
    assert sum(isinstance(s, Branch) for s in step.kernel.body.walk()) == 2


def test_a_case_with_a_sum_is_left_to_the_reference() -> None:
    def total(region: Region) -> Ref:
        sum_ = region.add("reduce", region.inputs[:1], SCALAR, reducer="add", dimensions=(0,))
        return region.add("broadcast_in_dim", (sum_,), VECTOR, broadcast_dimensions=())

    program = checked(branches(total), np.array(1, np.int32), np.ones(5, np.float32), np.ones(5, np.float32))
    assert reasons(program) == ["its region holds reduce"]


def test_steps_and_branches_of_long_chains_are_lowered_without_deep_recursion() -> None:
    def chain(region: Region, x: Ref, y: Ref) -> Ref:
        for _ in range(700):
            x = region.add("add", (x, y), VECTOR)
        return x

    step = Region(VECTOR, VECTOR)
    whole = Region(VECTOR, VECTOR)
    attrs = {"length": 3, "num_consts": 1, "num_carry": 1}
    body = step.body(chain(step, step.inputs[1], step.inputs[0]))
    scan = whole.add("scan", whole.inputs, VECTOR, regions=[body], **attrs)
    x, y = np.ones(5, np.float32), np.arange(5, dtype=np.float32)
    assert not reasons(checked(whole.body(scan), x, y))
    program = checked(branches(lambda region: chain(region, *region.inputs)), np.array(1, np.int32), x, y)
    assert not reasons(program)


def chosen_in_turn(depth: int) -> Body:
    """x or its square, again and again: each case chooses between two uses of what the one before has chosen."""
    whole = Region(COUNT, VECTOR)
    index, x = whole.inputs
    for _ in range(depth):
        arms = []
        for op in ("add", "multiply"):
            arm = Region(VECTOR)
            arms.append(arm.body(arm.add(op, (arm.inputs[0], arm.inputs[0]), VECTOR)))
        x = whole.add("case", (index, x), VECTOR, regions=arms)
    return whole.body(x)


@pytest.mark.parametrize("inside", [False, True], ids=["by themselves", "in a region"])
def test_cases_that_follow_each_other_are_written_once(inside: bool) -> None:
    def wrapped(body: Body) -> Body:
        whole = Region(COUNT, VECTOR)
        other = Region(COUNT, VECTOR)
        arms = (body, other.body(other.inputs[1]))
        return whole.body(whole.add("case", (whole.inputs[0], *whole.inputs), VECTOR, regions=arms))

    sizes = []
    for depth in (4, 8):
        body = wrapped(chosen_in_turn(depth)) if inside else chosen_in_turn(depth)
        program = checked(body, np.int32(0), np.linspace(-2, 2, 5, dtype=np.float32))
        checked(body, np.int32(1), np.linspace(-2, 2, 5, dtype=np.float32))
        assert not reasons(program)
        sizes.append(sum(1 for step in program.steps if isinstance(step, Launch) for _ in step.kernel.body.walk()))
    assert sizes[1] < 2 * sizes[0]


def test_an_operand_that_a_region_reads_under_its_own_guard_stays_in_its_branch() -> None:
    """The region pads what the case is given: outside of its guard the operand would be read beyond its end."""
    padded = TensorType((9,), F32)
    whole = Region(COUNT, VECTOR, padded)
    index, x, y = whole.inputs
    square = whole.add("multiply", (x, x), VECTOR)
    arm, other = Region(VECTOR, padded), Region(VECTOR, padded)
    edges = {"edge_padding_low": (2,), "edge_padding_high": (2,), "interior_padding": (0,)}
    wide = arm.add("pad", (arm.inputs[0], arm.constant(0.5, SCALAR)), padded, **edges)
    arms = (arm.body(arm.add("add", (wide, wide), padded)), other.body(other.inputs[1]))
    body = whole.body(whole.add("case", (index, square, y), padded, regions=arms))
    for number in (0, 1):
        checked(body, np.int32(number), np.arange(5, dtype=np.float32), np.arange(9, dtype=np.float32))
