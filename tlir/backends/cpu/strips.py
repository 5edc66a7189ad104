"""Inner loops along memory while the lanes run across it.

Where lanes are rows and a loop runs along each row, one step needs an element of every row: a gather. Instead a square
of as many steps as there are lanes is read along the rows at once, turned in registers, and put into a small buffer in
which the lanes of one step lie next to each other. Stores go the same way back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from tlir.backends.cpu.lanes import I32
from tlir.backends.cpu.space import Nest
from tlir.backends.cpu.values import word_type
from tlir.kernel.index import Index, Variable
from tlir.kernel.ir import Block, Load, Store

PREFETCHED, LONGEST_PREFETCHED = 1 << 11, 1 << 15
"""Bytes that memory is asked for ahead; and the longest block of lanes for which it is."""


@dataclass(frozen=True)
class Strip:
    """The loads and stores of a loop's body that go through turned squares."""

    loads: tuple[Load, ...]
    stores: tuple[Store, ...]


def find(nest: Nest, body: Block, variable: Variable) -> Strip | None:
    """What to turn in a loop over ``variable``; None where nothing gains by it."""
    if nest.lane is None or nest.lanes not in (8, 16) or variable.extent < nest.lanes:
        return None
    loads, stores = [], []
    for statement in body.statements:
        if not isinstance(statement, Load | Store) or not _crosses(nest, statement, variable):
            continue
        if isinstance(statement, Store):
            stores.append(statement)
        elif not statement.guard and statement.buffer.role == "input":
            loads.append(statement)
    return Strip(tuple(loads), tuple(stores)) if loads or stores else None


def ahead(load: Load, nest: Nest) -> int:
    """How many bytes ahead of the rows of a square to ask for: those of a later block of lanes, where its rows follow
    on these ones and are so short that the processor does not see that each is read in order; 0 where it does."""
    assert nest.lane is not None
    step = load.offset.coefficient(nest.lane) * nest.lanes * word_type(load.buffer.dtype).width // 8
    return 0 if not 0 < step <= LONGEST_PREFETCHED else -(-PREFETCHED // step) * step


def _crosses(nest: Nest, statement: Load | Store, variable: Variable) -> bool:
    offset, lane = statement.offset, nest.lane
    assert lane is not None
    if statement.buffer.role == "local" or statement.buffer.dtype.limbs > 1:
        return False
    return offset.coefficient(variable) == 1 and offset.coefficient(lane) not in (0, 1) and _plain(offset)


def _plain(offset: Index) -> bool:
    return all(isinstance(atom, Variable) for _, atom in offset.terms)


def turned(builder: ir.IRBuilder, rows: list[Any]) -> list[Any]:
    """The transpose of a square of as many vectors as each has lanes, a power of two: halves are exchanged between
    pairs of vectors, then quarters, and so on."""
    count = len(rows)
    distance = count // 2
    while distance:
        kept = [p if not p & distance else count + p - distance for p in range(count)]
        moved = [p + distance if not p & distance else count + p for p in range(count)]
        for i in range(count):
            if not i & distance:
                x, y = rows[i], rows[i + distance]
                rows[i] = builder.shuffle_vector(x, y, _mask(kept))
                rows[i + distance] = builder.shuffle_vector(x, y, _mask(moved))
        distance //= 2
    return rows


def _mask(order: list[int]) -> Any:
    return ir.Constant(ir.VectorType(I32, len(order)), [ir.Constant(I32, k) for k in order])
