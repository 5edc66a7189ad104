"""Factorizations and solvers by elimination, a kernel each. The space is the batch, and where right-hand sides do not
depend on each other these as well.

A step of an elimination subtracts from every element that is left; here an element is computed when its row or column
is due, by all that the steps before subtract from it, one after the other as they do. So it stays in a register, and
columns (or rows) of one step are independent of each other.
"""

from __future__ import annotations

from tlir.ir.graph import Node
from tlir.ir.types import BOOL, NAMED
from tlir.kernel import index as ix
from tlir.kernel.index import ZERO, Index, from_value
from tlir.kernel.ir import Bound, Value
from tlir.passes.lower.emitter import Emit, Emitter, Frame
from tlir.passes.lower.matrices import Array, Numbers, Result, each, operand_of, over, sizes_of, span
from tlir.passes.lower.reduction import beats

INT32 = NAMED["int32"]


def _cholesky(emitter: Emitter, frame: Frame, node: Node) -> None:
    batch_shape, (n, _) = sizes_of(node.type)
    lower = node.attrs.get("lower", True)
    batch = emitter.space(batch_shape)
    result = Result(emitter, node, 0, batch)
    if not node.type.size:
        return
    field, a = Numbers(emitter, node.type.dtype), operand_of(emitter, frame, node.inputs[0], batch)
    # by columns, which lie along memory
    factor = Array(emitter, node.type.dtype, n, n)

    def given(row: Index, column: Index) -> None:
        if lower:
            factor.put(field.canonical(a(row, column)), column, row)
        else:
            factor.put(field.canonical(field.conjugate(a(row, column))), row, column)

    over(emitter, n, n, given)

    def step(j: Index, carried: tuple[Value, ...]) -> tuple[Value, ...]:
        def reduced(i: Index) -> None:
            def term(k: Index, rest: tuple[Value, ...]) -> tuple[Value]:
                product = field.multiply(factor.at(k, i), field.conjugate(factor.at(k, j)))
                return (field.subtract(rest[0], product),)

            (rest,) = emitter.loop(n, (field.canonical(factor.at(j, i)),), term, span=span(0, j))
            factor.put(rest, j, i)

        each(emitter, n, j, n, reduced)
        pivot = field.parts(factor.at(j, j))[0]
        root = field.sqrt(pivot)
        factor.put(field.from_real(root), j, j)
        each(emitter, n, ix.add(j, 1), n, lambda i: factor.put(field.shrink(factor.at(j, i), root), j, i))
        return (field.both(carried[0], field.greater(pivot, field.number(0))),)

    (positive,) = emitter.loop(n, (emitter.literal(BOOL, 1),), step)

    def finished(row: Index, column: Index) -> None:
        i, j = (row, column) if lower else (column, row)
        inside = [Bound(ix.total([(1, i), (-1, j)]), 0, n)]
        x = emitter.choose(inside, lambda: factor.at(j, i), lambda: field.zero, node.type.dtype)
        if not lower:
            x = field.select(emitter.holds(inside), field.conjugate(x), field.zero)
        result.put(field.canonical(field.select(positive, x, field.nan())), row, column)

    over(emitter, n, n, finished)


def _triangular_solve(emitter: Emitter, frame: Frame, node: Node) -> None:
    attrs, type = node.attrs, node.type
    left, lower = attrs["left_side"], attrs["lower"]
    transpose = attrs.get("transpose_a", "NO_TRANSPOSE")
    batch_shape, sizes = sizes_of(type)
    n, sides = sizes if left else sizes[::-1]
    *batch, side = emitter.space((*batch_shape, sides))
    result = Result(emitter, node, 0, tuple(batch))
    if not type.size:
        return
    field, a = Numbers(emitter, type.dtype), operand_of(emitter, frame, node.inputs[0], tuple(batch))
    b = operand_of(emitter, frame, node.inputs[1], tuple(batch))
    # a right side is solved as the left side of the transposes
    exchanged = (transpose != "NO_TRANSPOSE") == left
    descending = lower == exchanged
    x = Array(emitter, type.dtype, n)

    def row_of(step: Index) -> Index:
        return ix.total([(-1, step)], n - 1) if descending else step

    def entry(row: Index, column: Index) -> Value:
        element = a(column, row) if exchanged else a(row, column)
        return field.conjugate(element) if transpose == "ADJOINT" else element

    def place(step: Index) -> tuple[Index, Index]:
        return (row_of(step), side) if left else (side, row_of(step))

    def solve(step: Index, carried: tuple[Value, ...]) -> tuple[Value, ...]:
        i = row_of(step)

        def term(before: Index, rest: tuple[Value, ...]) -> tuple[Value]:
            return (field.subtract(rest[0], field.multiply(entry(i, row_of(before)), x.at(before))),)

        (rest,) = emitter.loop(n, (field.canonical(x.at(step)),), term, span=span(0, step))
        if not attrs.get("unit_diagonal", False):
            rest = field.divide(rest, entry(i, i))
        x.put(rest, step)
        return ()

    emitter.each((n,), lambda steps: x.put(b(*place(steps[0])), steps[0]))
    emitter.loop(n, (), solve)
    emitter.each((n,), lambda steps: result.put(x.at(steps[0]), *place(steps[0])))


def _lu(emitter: Emitter, frame: Frame, node: Node) -> None:
    batch_shape, (m, n) = sizes_of(node.types[0])
    steps, dtype = min(m, n), node.types[0].dtype
    batch = emitter.space(batch_shape)
    packed, pivots, permutation = (Result(emitter, node, number, batch) for number in range(3))
    if 0 in batch_shape or not m:
        return
    field, a = Numbers(emitter, dtype), operand_of(emitter, frame, node.inputs[0], batch)
    rows = Array(emitter, INT32, m)
    emitter.each((m,), lambda place: rows.put(emitter.convert(emitter.position(place[0]), INT32), place[0]))
    if steps:
        # L by columns and U by rows, which lie along memory
        lower, upper = Array(emitter, dtype, n, m), Array(emitter, dtype, m, n)

        def given(i: Index, j: Index) -> None:
            x = field.canonical(a(i, j))
            lower.put(x, j, i)
            upper.put(x, i, j)

        over(emitter, m, n, given)

        def left(x: Value, i: Index, j: Index, k: Index) -> Value:
            """What k steps leave of x, which is element (i, j)."""

            def term(s: Index, rest: tuple[Value, ...]) -> tuple[Value]:
                return (field.subtract(rest[0], field.multiply(lower.at(s, i), upper.at(s, j))),)

            (rest,) = emitter.loop(steps, (field.canonical(x),), term, span=span(0, k))
            return rest

        def step(k: Index, carried: tuple[Value, ...]) -> tuple[Value, ...]:
            following = ix.add(k, 1)
            each(emitter, m, k, m, lambda i: lower.put(left(lower.at(k, i), i, k, k), k, i))
            chosen = _first_greatest(emitter, field, lower, k, m)
            pivots.put(emitter.convert(chosen, INT32), k)
            other = from_value(chosen, 0, m - 1)
            _exchange(rows, (), k, other)
            emitter.each((steps,), lambda place: _exchange(lower, (place[0],), k, other))
            each(emitter, n, following, n, lambda j: _exchange(upper, (), k, other, (j,)))
            each(emitter, n, following, n, lambda j: upper.put(left(upper.at(k, j), k, j, k), k, j))
            pivot = lower.at(k, k)
            upper.put(pivot, k, k)
            vanishing = field.is_zero(pivot)
            safe = field.select(vanishing, field.one, pivot)

            def divided(i: Index) -> None:
                x = lower.at(k, i)
                lower.put(field.select(vanishing, x, field.divide(x, safe)), k, i)

            each(emitter, m, following, m, divided)
            return ()

        emitter.loop(steps, (), step)

        def finished(i: Index, j: Index) -> None:
            below = [Bound(ix.total([(1, i), (-1, j)]), 1, m)]
            x = emitter.choose(below, lambda: lower.at(j, i), lambda: upper.at(i, j), dtype)
            packed.put(field.canonical(x), i, j)

        over(emitter, m, n, finished)
    emitter.each((m,), lambda place: permutation.put(rows.at(place[0]), place[0]))


def _first_greatest(emitter: Emitter, field: Numbers, columns: Array, k: Index, m: int) -> Value:
    """The row of the first element of greatest magnitude in column k from row k on."""

    def size(row: Index) -> Value:
        sizes = [field.magnitude(part) for part in field.parts(columns.at(k, row))]
        return sizes[0] if len(sizes) == 1 else field.add(*sizes)

    def candidate(row: Index, carried: tuple[Value, ...]) -> tuple[Value, ...]:
        best, chosen = carried
        here = size(row)
        better = beats(emitter, here, best, "GT")
        return field.select(better, here, best), field.select(better, emitter.position(row), chosen)

    return emitter.loop(m, (size(k), emitter.position(k)), candidate, span=span(ix.add(k, 1), m))[1]


def _exchange(
    array: Array, before: tuple[Index, ...], one: Index, other: Index, behind: tuple[Index, ...] = ()
) -> None:
    """Two elements of an array change places."""
    x, y = array.at(*before, one, *behind), array.at(*before, other, *behind)
    array.put(y, *before, one, *behind)
    array.put(x, *before, other, *behind)


def _tridiagonal_solve(emitter: Emitter, frame: Frame, node: Node) -> None:
    batch_shape, (n, sides) = sizes_of(node.type)
    *front, side = emitter.space((*batch_shape, sides))
    batch = tuple(front)
    result = Result(emitter, node, 0, batch)
    if not node.type.size:
        return
    field, dtype = Numbers(emitter, node.type.dtype), node.type.dtype
    below, diagonal, above, b = (operand_of(emitter, frame, ref, batch) for ref in node.inputs)
    ratios, x = Array(emitter, dtype, n), Array(emitter, dtype, n)

    def divided(i: Index, pivot: Value, rest: Value) -> tuple[Value, Value]:
        ratio, solved = field.divide(above(i), pivot), field.divide(rest, pivot)
        ratios.put(ratio, i)
        x.put(solved, i)
        return ratio, solved

    def down(step: Index, carried: tuple[Value, ...]) -> tuple[Value, ...]:
        i, factor = ix.add(step, 1), below(ix.add(step, 1))
        pivot = field.subtract(diagonal(i), field.multiply(factor, carried[0]))
        return divided(i, pivot, field.subtract(b(i, side), field.multiply(factor, carried[1])))

    def up(step: Index, carried: tuple[Value, ...]) -> tuple[Value, ...]:
        i = ix.total([(-1, step)], n - 2)
        solved = field.subtract(x.at(i), field.multiply(ratios.at(i), carried[0]))
        x.put(solved, i)
        return (solved,)

    (_, last) = emitter.loop(n - 1, divided(ZERO, diagonal(ZERO), b(ZERO, side)), down)
    emitter.loop(n - 1, (last,), up)
    emitter.each((n,), lambda place: result.put(x.at(place[0]), place[0], side))


EMITS: dict[str, Emit] = {
    "cholesky": _cholesky,
    "triangular_solve": _triangular_solve,
    "lu": _lu,
    "tridiagonal_solve": _tridiagonal_solve,
}
