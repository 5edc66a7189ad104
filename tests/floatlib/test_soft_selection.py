"""The kernels that select and order return the words and flags of the specification."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from floatlib_soft import EIGHT_BITS, SIXTEEN_BITS, SMALLER, WIDE, all_rows, check, directed_rows

from tlir.floatlib import ordering
from tlir.floatlib.format import Format
from tlir.floatlib.ordering import Relation
from tlir.floatlib.soft import catalog
from tlir.floatlib.soft.catalog import EXTREMA

HOLDS: dict[str, Callable[[Relation], bool]] = {
    "EQ": lambda r: r == Relation.EQ,
    "NE": lambda r: r != Relation.EQ,
    "LT": lambda r: r == Relation.LT,
    "LE": lambda r: r in (Relation.LT, Relation.EQ),
    "GT": lambda r: r == Relation.GT,
    "GE": lambda r: r in (Relation.GT, Relation.EQ),
}
EVERY = [*SMALLER, *EIGHT_BITS, *SIXTEEN_BITS, *WIDE]


def rows_of(fmt: Format) -> list[tuple[int, ...]]:
    if fmt.width <= 8:
        return all_rows(fmt, 2)
    rows = directed_rows(fmt, 400, 2)
    # neighbours and equal words, which random pairs hardly ever are
    return rows + [(a, (a + k) & fmt.word_mask) for a, _ in rows[:400] for k in (-1, 0, 1)]


@pytest.mark.parametrize("fmt", EVERY, ids=str)
@pytest.mark.parametrize("signaling", [False, True])
def test_compare(fmt: Format, signaling: bool) -> None:
    rows = rows_of(fmt)[:: 9 if signaling and fmt.width == 8 else 1]
    relations = [ordering.compare(fmt, *row, signaling=signaling) for row in rows]
    for direction, holds in HOLDS.items():
        want = [(int(holds(relation)), int(raised)) for relation, raised in relations]
        check(catalog.compare(fmt, direction, True, signaling), rows, want)


@pytest.mark.parametrize("fmt", EVERY, ids=str)
@pytest.mark.parametrize("operation", EXTREMA)
def test_minimum_and_maximum(fmt: Format, operation: str) -> None:
    rows = rows_of(fmt)
    if operation.endswith("number"):
        rows = rows[:: 7 if fmt.width == 8 else 1]
    want = [getattr(ordering, operation)(fmt, *row) for row in rows]
    check(catalog.extremum(operation, fmt, True), rows, want)


@pytest.mark.parametrize("fmt", EVERY, ids=str)
def test_next_after(fmt: Format) -> None:
    rows = rows_of(fmt)
    check(catalog.next_after(fmt, True), rows, [ordering.next_after(fmt, *row) for row in rows])
