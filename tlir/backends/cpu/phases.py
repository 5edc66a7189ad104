"""The phases of a sum of products by tiles, and the parts in which threads take them.

This needs nothing of LLVM: a process that finds its code on disk uses it alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class Shape:
    """How ``tile`` has cut a contraction: batches; panels of the shared side and those packed together; units of the
    other one and those whose results are kept together; for each part of the sum its stretches; the bytes of memory of
    each thread, and of that which they share; whether the shared side is packed at all."""

    batches: int
    extent: int
    block: int
    units: int
    units_block: int
    steps: tuple[int, ...]
    own: int
    shared: int
    packs: bool = True


def phases(shape: Shape, pieces: int) -> Iterator[list[tuple[int, int, int, int]]]:
    """The phases, one after the other; each a list of at most about ``4 * pieces`` parts ``(code, where, from, to)``,
    which may run side by side."""
    blocks, groups = -(-shape.extent // shape.block), -(-shape.units // shape.units_block)
    for place in range(shape.batches * blocks * groups):
        block, group = place // groups % blocks, place % groups
        panels = min(shape.block, shape.extent - block * shape.block)
        first = group * shape.units_block
        last = min(first + shape.units_block, shape.units)
        for number, steps in enumerate(shape.steps):
            for step in range(steps):
                where = place * steps + step
                if shape.packs:
                    yield [(2 * number, where, begin, end) for begin, end in pieces_of(0, panels, pieces)]
                yield [(2 * number + 1, where, begin, end) for begin, end in pieces_of(first, last, 4 * pieces)]


def pieces_of(first: int, end: int, pieces: int, unit: int = 1) -> list[tuple[int, int]]:
    """A range cut at multiples of ``unit`` behind ``first`` into as many ranges, or fewer; each holds a whole unit if
    the range does."""
    count = (end - first) // unit
    pieces = max(1, min(pieces, count))
    edges = [first + count * k // pieces * unit for k in range(pieces)] + [end]
    return list(pairwise(edges))
