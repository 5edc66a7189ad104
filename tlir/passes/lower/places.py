"""Indices of elements: what can be seen of them without writing a statement."""

from __future__ import annotations

from collections.abc import Sequence

from tlir.kernel.index import Index, Variable
from tlir.kernel.ir import Bound

Place = tuple[Index, ...]
"""The index of an element: one entry per axis."""


def never(bound: Bound) -> bool:
    """Whether the bound holds nowhere."""
    return bound.low >= bound.high or bound.index.greatest < bound.low or bound.index.least >= bound.high


def complement(bounds: tuple[Bound, ...]) -> tuple[Bound, ...]:
    """What holds where a single one-sided bound does not."""
    if len(bounds) != 1:
        return ()
    (bound,) = bounds
    if bound.index.least >= bound.low:
        return (Bound(bound.index, bound.high, bound.index.greatest + 1),)
    if bound.index.greatest < bound.high:
        return (Bound(bound.index, bound.index.least, bound.low),)
    return ()


def split_place(
    place: Place, shape: Sequence[int], outer: frozenset[Variable]
) -> tuple[dict[int, Index], list[int] | None]:
    """The axes at which an index depends on nothing but ``outer``, and the others; None instead of these where one of
    them does not run over its whole axis by variables of its own, each place once."""
    fixed: dict[int, Index] = {}
    inner: list[int] = []
    seen: set[Variable] = set()
    for axis, index in enumerate(place):
        if index.variables() <= outer and not index.values():
            fixed[axis] = index
            continue
        own = _counting(index, shape[axis])
        if own is None or own & seen:
            return fixed, None
        seen |= own
        inner.append(axis)
    return fixed, inner


def _counting(index: Index, size: int) -> set[Variable] | None:
    """The variables of an index that takes each value from 0 to ``size - 1`` once; None for any other index."""
    found: set[Variable] = set()
    weight = 1
    for coefficient, atom in sorted(index.terms, key=lambda term: term[0]):
        if not isinstance(atom, Variable) or coefficient != weight:
            return None
        found.add(atom)
        weight *= atom.extent
    return found if not index.constant and weight == size else None
