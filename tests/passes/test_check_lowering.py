"""The check of the lowering passes what is right and catches every single change of a kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lower_graphs import SERIES, STEPS, Builder, random_graph, random_tensor
from matrices import Item, body_of, matrices

from tlir.backends.interpreter import run_program
from tlir.ir.graph import Body, Graph, Node, Ref
from tlir.ir.ops import Accumulate
from tlir.ir.tensor import Tensor
from tlir.ir.types import BOOL, NAMED, TensorType
from tlir.kernel.index import Index, Variable, add, total
from tlir.kernel.ir import (
    Apply,
    Block,
    Bound,
    Branch,
    Each,
    Fallback,
    Kernel,
    Launch,
    Literal,
    Load,
    Loop,
    Program,
    Statement,
    Store,
    Value,
)
from tlir.kernel.text import program_text
from tlir.passes.check.lowering import check_lowering
from tlir.passes.lower import REASONS, lower

F32, F16, C64 = NAMED["float32"], NAMED["float16"], NAMED["complex64"]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_random_graphs_pass(seed: int) -> None:
    body, _ = random_graph(seed, 8)
    check = check_lowering(Graph(body))
    assert check.status == "passed", [finding.message for finding in check.findings]


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_random_graphs_of_several_kernels_for_an_operation_pass(seed: int) -> None:
    body, _ = random_graph(seed, 6, (*STEPS, *SERIES * 4))
    check = check_lowering(Graph(body))
    assert check.status == "passed", [finding.message for finding in check.findings]


# ---- mutants --------------------------------------------------------------------------------------------------------

Change = Callable[[Statement], Iterator[tuple[str, list[Statement]]]]


def mutants(block: Block, change: Change) -> Iterator[tuple[str, Block]]:
    """Every block that one change of one statement makes."""
    for k, statement in enumerate(block.statements):

        def put(*new: Statement, k: int = k) -> Block:
            return replace(block, statements=(*block.statements[:k], *new, *block.statements[k + 1 :]))

        for name, new in change(statement):
            yield name, put(*new)
        if isinstance(statement, Loop | Each):
            for name, inner in mutants(statement.body, change):
                yield name, put(replace(statement, body=inner))
        elif isinstance(statement, Branch):
            for name, inner in mutants(statement.then, change):
                yield name, put(replace(statement, then=inner))
            for name, inner in mutants(statement.otherwise, change):
                yield name, put(replace(statement, otherwise=inner))


def used(kernel: Kernel) -> set[Value]:
    """Values that are more than what a load gives where nothing is read."""
    found: set[Value] = set()
    for statement in kernel.body.walk():
        if isinstance(statement, Apply):
            found |= set(statement.operands)
        elif isinstance(statement, Loop):
            found |= set(statement.start)
    return found


def changes(known: set[Value], statement: Statement) -> Iterator[tuple[str, list[Statement]]]:
    match statement:
        case Apply(result, op, operands, attrs):
            if len(operands) > 1 and len(set(operands)) > 1 and op != "compare" and not result.dtype.is_integer:
                yield f"operands of {op} exchanged", [replace(statement, operands=(*operands[1:], operands[0]))]
            if op in ("add", "multiply", "maximum"):
                yield f"{op} left out", [replace(statement, op="maximum" if op != "maximum" else "minimum")]
            if op == "convert":
                others = (NAMED["float64"], F32, F16)
                other = next(one for one in others if one not in (result.dtype, operands[0].dtype))
                between = Value(10**6, other)
                yield (
                    "a detour through another format",
                    [Apply(between, "convert", operands, attrs), replace(statement, operands=(between,))],
                )
        case Load(buffer=buffer, offset=offset, guard=guard):
            if buffer.size > 1 and not offset.values():
                yield "a load one further", [replace(statement, offset=add(offset, 1))]
                yield "a load one before", [replace(statement, offset=add(offset, -1))]
            for variable in offset.variables():
                if variable.extent > 1 and not guard:
                    yield "a load in the opposite order", [replace(statement, offset=reversed_along(offset, variable))]
            for k, bound in enumerate(guard):
                moved = Bound(bound.index, bound.low, bound.high - 1)
                if bound.index.greatest >= bound.high - 1 and len(guard) == 1:
                    yield "a guard that ends earlier", [replace(statement, guard=(*guard[:k], moved, *guard[k + 1 :]))]
        case Store(offset=offset):
            if offset.terms:
                yield "a store one further", [replace(statement, offset=add(offset, 1))]
        case Literal(result, word):
            if isinstance(word, int) and result in known:
                yield "a bit of a literal", [replace(statement, word=word ^ 1)]
        case Loop(variable=variable):
            if variable.extent > 1:
                yield (
                    "a loop one shorter",
                    [replace(statement, variable=Variable(variable.number, variable.extent - 1))],
                )


def reversed_along(index: Index, variable: Variable) -> Index:
    coefficient = index.coefficient(variable)
    return total([(1, index), (-2 * coefficient, Index(((1, variable),)))], coefficient * (variable.extent - 1))


def blocks(block: Block) -> Iterator[tuple[Block, Callable[[Block], Block]]]:
    """The block and every one inside it, each with a function that puts another one in its place."""
    yield block, lambda new: new
    for k, statement in enumerate(block.statements):
        for field in ("body", "then", "otherwise"):
            inner = getattr(statement, field, None)
            if not isinstance(inner, Block):
                continue
            for found, put in blocks(inner):

                def within(new: Block, k: int = k, field: str = field, put: Callable[[Block], Block] = put) -> Block:
                    changed = replace(block.statements[k], **{field: put(new)})  # type: ignore[arg-type]
                    return replace(block, statements=(*block.statements[:k], changed, *block.statements[k + 1 :]))

                yield found, within


def reordered(block: Block) -> Iterator[tuple[str, list[Statement]]]:
    """Changes of two statements of a block that feed each other: its statements afterwards."""
    made = {s.result: s for s in block.statements if isinstance(s, Apply)}
    spare = 10**6
    for k, s in enumerate(block.statements):
        if not isinstance(s, Apply):
            continue
        before, behind, dtype = list(block.statements[:k]), list(block.statements[k + 1 :]), s.result.dtype
        for position, operand in enumerate(s.operands):
            first = made.get(operand)
            if first is None:
                continue
            other = s.operands[1 - position] if len(s.operands) == 2 else None
            if s.op == "add" and first.op == "multiply" and dtype.is_float:
                assert other is not None
                yield "a product contracted", [*before, Apply(s.result, "fma", (*first.operands, other)), *behind]
            if s.op == "subtract" and first.op == "multiply" and dtype.is_float and position == 0:
                assert other is not None
                minus = Value(spare, dtype)
                fused = Apply(s.result, "fma", (*first.operands, minus))
                yield "a difference contracted", [*before, Apply(minus, "negate", (other,)), fused, *behind]
            if s.op == first.op == "add" and not dtype.is_integer and len({*first.operands, other}) == 3:
                assert other is not None
                inner = Value(spare, dtype)
                swapped = [
                    Apply(inner, "add", (first.operands[0], other)),
                    replace(s, operands=(inner, first.operands[1])),
                ]
                yield "two additions exchanged", [*before, *swapped, *behind]
            if s.op == first.op == "convert" and dtype == first.operands[0].dtype and narrows(first):
                kept = Apply(s.result, "convert", first.operands)
                yield "a rounding left out", [*before, kept, *behind]


def narrows(convert: Apply) -> bool:
    """Whether a conversion may lose something."""
    source, target = convert.operands[0].dtype, convert.result.dtype
    return source.is_float and target.is_float and target.bits < source.bits


def every_mutant(program: Program) -> Iterator[tuple[str, Program]]:
    for k, step in enumerate(program.steps):
        if isinstance(step, Launch):
            kernel: Kernel = step.kernel
            found = list(mutants(kernel.body, partial(changes, used(kernel))))
            for inner, put in blocks(kernel.body):
                found += [(name, put(replace(inner, statements=tuple(new)))) for name, new in reordered(inner)]
            for name, block in found:
                launch = Launch(replace(kernel, body=block), step.arguments)
                yield name, replace(program, steps=(*program.steps[:k], launch, *program.steps[k + 1 :]))


# ---- graphs ---------------------------------------------------------------------------------------------------------


def normalised() -> Body:
    """A softmax of rows, scaled by a half-precision vector that is converted."""
    builder = Builder(np.random.default_rng(0))
    full, row = TensorType((3, 4), F32), TensorType((3,), F32)
    x, scale = builder.input(full), builder.input(TensorType((4,), F16))

    def over_rows(value: Ref, reducer: str) -> Ref:
        reduced = builder.add("reduce", (value,), row, reducer=reducer, dimensions=(1,))
        return builder.add("broadcast_in_dim", (reduced,), full, broadcast_dimensions=(0,))

    powers = builder.add("exponential", (builder.add("subtract", (x, over_rows(x, "maximum")), full),), full)
    quotient = builder.add("divide", (powers, over_rows(powers, "add")), full)
    wide = builder.add("convert", (scale,), TensorType((4,), F32))
    factor = builder.add("broadcast_in_dim", (wide,), full, broadcast_dimensions=(1,))
    return builder.body([builder.add("multiply", (quotient, factor), full)])


def dense(order: Accumulate) -> Body:
    builder = Builder(np.random.default_rng(0))
    x, w = builder.input(TensorType((2, 5), F16)), builder.input(TensorType((5, 3), F16))
    attrs: dict[str, Any] = {
        "lhs_batching_dimensions": (),
        "rhs_batching_dimensions": (),
        "lhs_contracting_dimensions": (1,),
        "rhs_contracting_dimensions": (0,),
        "accumulate": order,
    }
    result = TensorType((2, 3), F16)
    product = builder.add("dot_general", (x, w), result, **attrs)
    bias = builder.add("broadcast_in_dim", (builder.input(TensorType((3,), F16)),), result, broadcast_dimensions=(1,))
    return builder.body([builder.add("add", (product, bias), result)])


def padded() -> Body:
    builder = Builder(np.random.default_rng(0))
    type = TensorType((3,), F32)
    x, y = builder.input(type), builder.input(type)
    zero = builder.input(TensorType((), F32))
    attrs = {"edge_padding_low": (1,), "edge_padding_high": (2,), "interior_padding": (1,)}
    wide = builder.add("pad", (x, zero), TensorType((8,), F32), **attrs)
    joined = builder.add("concatenate", (wide, builder.add("sqrt", (y,), type)), TensorType((11,), F32), dimension=0)
    back = builder.add("reverse", (joined,), TensorType((11,), F32), dimensions=(0,))
    return builder.body([back, builder.add("add", (x, builder.add("multiply", (y, x), type)), type)])


def summed(order: Accumulate, count: int = 11) -> Body:
    builder = Builder(np.random.default_rng(0))
    x = builder.input(TensorType((count, 2), F32))
    total_ = builder.add("reduce", (x,), TensorType((2,), F32), reducer="add", dimensions=(0,), accumulate=order)
    return builder.body([total_])


def convolved() -> Body:
    builder = Builder(np.random.default_rng(0))
    x, w = builder.input(TensorType((1, 2, 4), F32)), builder.input(TensorType((3, 2, 3), F32))
    attrs: dict[str, Any] = dict.fromkeys(("lhs_dimensions", "rhs_dimensions", "output_dimensions"), (0, 1, 2))
    attrs |= {"window_strides": (1,), "padding_low": (1,), "padding_high": (1,), "lhs_dilation": (1,)}
    attrs |= {"rhs_dilation": (1,), "window_reversal": (0,)}
    return builder.body([builder.add("convolution", (x, w), TensorType((1, 3, 4), F32), **attrs)])


def complex_sums(order: Accumulate) -> Body:
    """A product of complex matrices, and what follows it."""
    builder = Builder(np.random.default_rng(0))
    x, y = builder.input(TensorType((2, 3), C64)), builder.input(TensorType((3, 2), C64))
    attrs: dict[str, Any] = dict.fromkeys(("lhs_batching_dimensions", "rhs_batching_dimensions"), ())
    attrs |= {"lhs_contracting_dimensions": (1,), "rhs_contracting_dimensions": (0,), "accumulate": order}
    result = TensorType((2, 2), C64)
    product = builder.add("dot_general", (x, y), result, **attrs)
    size = builder.add("abs", (builder.add("conjugate", (product,), result),), TensorType((2, 2), F32))
    back = builder.add("complex", (size, builder.add("imag", (product,), TensorType((2, 2), F32))), result)
    return builder.body([builder.add("multiply", (back, product), result)])


def complex_elements() -> Body:
    builder = Builder(np.random.default_rng(0))
    type, wide = TensorType((3,), C64), TensorType((3,), NAMED["complex128"])
    x, y, flag = builder.input(type), builder.input(type), builder.input(TensorType((3,), BOOL))
    power = builder.add("integer_pow", (x,), type, exponent=3)
    total = builder.add("subtract", (builder.add("multiply", (power, y), type), x), type)
    chosen = builder.add("select", (flag, total, y), type)
    return builder.body([builder.add("add", (builder.add("convert", (chosen,), wide),) * 2, wide), chosen])


def mandelbrot() -> Body:
    """z := z * z + c in an ordered loop."""
    type = TensorType((3,), C64)
    step = Builder(np.random.default_rng(0))
    c, z = step.input(type), step.input(type)
    region = step.body([step.add("add", (step.add("multiply", (z, z), type), c), type)])
    builder = Builder(np.random.default_rng(0))
    start, shift = builder.input(type), builder.input(type)
    attrs = {"length": 3, "num_consts": 1, "num_carry": 1}
    builder.nodes.append(Node(2, "scan", (shift, start), attrs, (type,), regions=(region,)))
    return builder.body([Ref(2)])


def running() -> Body:
    builder = Builder(np.random.default_rng(0))
    type = TensorType((2, 4), C64)
    x = builder.input(type)
    return builder.body([builder.add("cumulative", (x,), type, reducer="add", dimension=1, reverse=True)])


def narrow_integers() -> Body:
    builder = Builder(np.random.default_rng(0))
    type, wide = TensorType((4,), NAMED["int4"]), TensorType((4,), NAMED["int32"])
    x, y = builder.input(type), builder.input(type)
    product = builder.add("multiply", (x, builder.add("divide", (x, y), type)), type)
    total = builder.add("reduce", (product,), TensorType((), NAMED["int4"]), reducer="add", dimensions=(0,))
    return builder.body([builder.add("convert", (product,), wide), total])


def rounded_on_the_way() -> Body:
    builder = Builder(np.random.default_rng(0))
    wide, half = TensorType((4,), F32), TensorType((4,), F16)
    x = builder.input(wide)
    back = builder.add("convert", (builder.add("convert", (x,), half),), wide)
    total = builder.add("add", (builder.add("add", (back, x), wide), builder.add("sqrt", (x,), wide)), wide)
    return builder.body([total])


def branches() -> Body:
    type = TensorType((3,), F32)

    def region(op: str) -> Body:
        inner = Builder(np.random.default_rng(0))
        x, y = inner.input(type), inner.input(type)
        return inner.body([inner.add("add", (inner.add(op, (x, y), type), y), type)])

    builder = Builder(np.random.default_rng(0))
    inputs = builder.input(TensorType((), NAMED["int32"])), builder.input(type), builder.input(type)
    builder.nodes.append(Node(3, "case", inputs, {}, (type,), regions=(region("multiply"), region("subtract"))))
    return builder.body([Ref(3)])


def gathered() -> Body:
    builder = Builder(np.random.default_rng(0))
    rows, indices = builder.input(TensorType((5, 2), F32)), builder.input(TensorType((3, 1), NAMED["int32"]))
    attrs: dict[str, Any] = dict.fromkeys(("operand_batching_dims", "start_indices_batching_dims"), ())
    attrs |= {"offset_dims": (1,), "collapsed_slice_dims": (0,), "start_index_map": (0,), "index_vector_dim": 1}
    taken = builder.add("gather", (rows, indices), TensorType((3, 2), F32), slice_sizes=(1, 2), mode="clip", **attrs)
    return builder.body(
        [builder.add("subtract", (taken, builder.input(TensorType((3, 2), F32))), TensorType((3, 2), F32))]
    )


def pooled() -> Body:
    builder = Builder(np.random.default_rng(0))
    x = builder.input(TensorType((2, 5), F32))
    attrs: dict[str, Any] = {"window_dimensions": (1, 3), "window_strides": (1, 2), "padding_low": (0, 1)}
    attrs |= {"padding_high": (0, 1), "base_dilations": (1, 1), "window_dilations": (1, 1), "reducer": "add"}
    return builder.body([builder.add("reduce_window", (x,), TensorType((2, 3), F32), **attrs)])


GRAPHS = {
    "softmax": normalised(),
    "product": dense(Accumulate(F32)),
    "product in blocks": dense(Accumulate(F32, "blocked", 2)),
    "product in pairs": dense(Accumulate(None, "pairwise")),
    "padding": padded(),
    "sum": summed(Accumulate()),
    "sum in pairs": summed(Accumulate(order="pairwise")),
    "sum in blocks": summed(Accumulate(order="blocked", block=4)),
    "convolution": convolved(),
    "complex product": complex_sums(Accumulate()),
    "complex product in double length": complex_sums(Accumulate(NAMED["complex128"])),
    "complex product in blocks": complex_sums(Accumulate(order="blocked", block=2)),
    "complex elements": complex_elements(),
    "complex recurrence": mandelbrot(),
    "complex running total": running(),
    "integers below a byte": narrow_integers(),
    "rounding on the way": rounded_on_the_way(),
    "branches": branches(),
    "rows that data chooses": gathered(),
    "windows": pooled(),
    **{
        f"{item[0]} {item[1][0]}": body_of(F32, [item])
        for item in (
            ("cholesky", [(3, 3)], {"lower": False}),
            ("triangular_solve", [(3, 3), (2, 3)], {"left_side": False, "lower": True}),
            ("lu", [(3, 4)], {}),
            ("geqrf", [(4, 3)], {}),
            ("householder_product", [(4, 3), (2,)], {}),
            ("tridiagonal_solve", [*[(4,)] * 3, (4, 2)], {}),
        )
    },
}


@pytest.mark.parametrize("name", GRAPHS)
def test_every_mutant_is_caught(name: str) -> None:
    body = GRAPHS[name]
    program = lower(body)
    assert check_lowering(Graph(body), program).status == "passed"
    caught: dict[str, int] = {}
    for change, mutant in every_mutant(program):
        check = check_lowering(Graph(body), mutant)
        assert check.status == "failed", f"{change} in {program_text(mutant)}"
        caught[change] = caught.get(change, 0) + 1
    assert sum(caught.values()) >= 5


CHANGES = {
    *("two additions exchanged", "a product contracted", "a difference contracted", "a rounding left out"),
    *("a load one further", "a load one before", "a load in the opposite order", "a store one further"),
    *("operands of add exchanged", "operands of multiply exchanged", "operands of subtract exchanged"),
    *(
        "add left out",
        "multiply left out",
        "a detour through another format",
        "a loop one shorter",
        "a bit of a literal",
    ),
}
"""Changes that have to occur among the mutants of the graphs above."""


def test_the_graphs_have_mutants_of_every_kind() -> None:
    found = {change for body in GRAPHS.values() for change, _ in every_mutant(lower(body))}
    assert found >= CHANGES


@pytest.mark.parametrize("seed", range(24))
def test_mutants_of_random_graphs_are_caught_unless_they_compute_the_same(seed: int) -> None:
    body, _ = random_graph(seed, 7)
    program = lower(body)
    found = [mutant for change, mutant in every_mutant(program) if change in CHANGES]
    random = np.random.default_rng(seed)
    for k in random.permutation(len(found))[:10]:
        if check_lowering(Graph(body), found[k]).status == "failed":
            continue
        for _ in range(3):
            inputs = [random_tensor(random, type) for type in body.input_types]
            with np.errstate(all="ignore"):
                right, mutated = (run_program(one, body, inputs) for one in (program, found[k]))
            assert all(a.same_words(b) for a, b in zip(right, mutated, strict=True)), program_text(found[k])


@pytest.mark.parametrize("item", [("eigh", [(3, 3)], {}), ("svd", [(2, 3)], {"full_matrices": True})])
def test_mutants_of_rotations_are_caught_unless_they_compute_the_same(item: Item) -> None:
    body = body_of(F32, [item])
    program = lower(body)
    found = [mutant for change, mutant in every_mutant(program) if change in CHANGES]
    random = np.random.default_rng(0)
    caught = 0
    for k in random.permutation(len(found))[:12]:
        if check_lowering(Graph(body), found[k]).status == "failed":
            caught += 1
            continue
        for seed in range(3):
            _, inputs = matrices(F32, [item], seed)
            with np.errstate(all="ignore"):
                right, mutated = (run_program(one, body, inputs) for one in (program, found[k]))
            assert all(a.same_words(b) for a, b in zip(right, mutated, strict=True)), program_text(found[k])
    assert caught > 8


def test_a_finding_names_the_output_the_place_and_both_expressions() -> None:
    body = GRAPHS["sum"]
    for change, mutant in every_mutant(lower(body)):
        if change == "operands of add exchanged":
            (finding,) = check_lowering(Graph(body), mutant).findings
            assert finding.rule == "TL0303"
            assert finding.message.startswith("output 0 at [0]: the kernels compute add(input 0[20], add(input 0[18], ")
            assert "where the graph says add(add(add(…, input 0[16]), input 0[18]), input 0[20])" in finding.message
            return
    raise AssertionError("no such mutant")


def test_a_rounding_on_the_way_may_not_be_left_out() -> None:
    """To float16 and back, and without it: every type agrees, the expressions do not."""

    def squares(through_half: bool) -> Body:
        builder = Builder(np.random.default_rng(0))
        wide, half = TensorType((4,), F32), TensorType((4,), F16)
        x = builder.input(wide)
        value = builder.add("multiply", (x, x), wide)
        rounded = builder.add("convert", (value if through_half else x,), half)
        back = builder.add("convert", (rounded,), wide)
        return builder.body([builder.add("add", (back if through_half else value, x), wide)])

    exact, rounding = squares(False), squares(True)
    assert check_lowering(Graph(rounding), lower(rounding)).status == "passed"
    check = check_lowering(Graph(rounding), replace(lower(exact), outputs=rounding.outputs))
    assert check.status == "failed"
    assert "convert" in check.findings[0].message


def test_equal_constants_are_one() -> None:
    """The kernels read the first of two, whichever the graph says; a constant of other words is another."""
    type = TensorType((2, 3), F32)

    def sums(other: int) -> Body:
        builder = Builder(np.random.default_rng(0))
        x = builder.input(type)
        arrays = [np.arange(first, first + 6, dtype=np.float32).reshape(2, 3) for first in (0, other)]
        one, two = (builder.add("constant", (), type, value=Tensor.from_numpy(array)) for array in arrays)
        return builder.body([builder.add("add", (x, one), type), builder.add("subtract", (x, two), type)])

    assert check_lowering(Graph(sums(0))).status == "passed"
    assert check_lowering(Graph(sums(1))).status == "passed"
    assert check_lowering(Graph(sums(1)), lower(sums(0))).status == "failed"


@pytest.mark.parametrize("exponents", [(2, 2), (2, 3)])
def test_equal_nodes_that_are_left_to_the_reference_are_one(
    exponents: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(REASONS, "integer_pow", "the reference is to do it")
    type = TensorType((3,), F32)
    builder = Builder(np.random.default_rng(0))
    x = builder.input(type)
    powers = [builder.add("integer_pow", (x,), type, exponent=exponent) for exponent in exponents]
    body = builder.body([*powers, builder.add("add", powers, type)])
    program = lower(body)
    assert check_lowering(Graph(body)).status == "passed"
    assert sum(isinstance(step, Fallback) for step in program.steps) == len(set(exponents))
    exchanged = replace(program, outputs=(program.outputs[1], program.outputs[0], program.outputs[2]))
    alike = exponents[0] == exponents[1]
    assert check_lowering(Graph(body), exchanged).status == ("passed" if alike else "failed")


def test_a_loop_of_very_many_steps_is_not_followed() -> None:
    builder = Builder(np.random.default_rng(0))
    type = TensorType((2,), F32)
    x = builder.input(type)
    step = Builder(np.random.default_rng(0))
    body = step.body([step.add("add", (carried := step.input(type), carried), type)])
    attrs = {"length": 10**9, "num_consts": 0, "num_carry": 1}
    builder.nodes.append(Node(1, "scan", (x,), attrs, (type,), regions=(body,)))
    check = check_lowering(Graph(builder.body([Ref(1)])))
    assert check.status == "not applicable"
