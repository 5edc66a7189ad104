"""Inner loops along memory while the lanes run across it.

Where lanes are rows and a loop runs along each row, one step needs an element of every row: a gather. Instead a square
of as many steps as there are lanes is read along the rows at once, turned in registers, and put into a small buffer in
which the lanes of one step lie next to each other. Stores go the same way back. The steps of a short body are written
out, so that squares stay in registers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from tlir.backends.cpu.memory import Addresses, shuffle_mask
from tlir.backends.cpu.space import QUICK, Nest
from tlir.backends.cpu.values import word_type
from tlir.floatlib.soft.lanes import BYTE, I64, prefetch
from tlir.kernel.index import Index, Variable
from tlir.kernel.ir import Apply, Block, Buffer, Literal, Load, Store

PREFETCHED, LONGEST_PREFETCHED = 1 << 13, 1 << 15
"""Bytes that memory is asked for ahead; and the longest block of lanes for which it is."""
LINE = 64

SHORT = 4
"""Statements of a body whose steps are written out, at most."""


@dataclass(frozen=True)
class Group:
    """Loads that share squares: of ``width`` elements for each step, a load reads the one that ``shifts`` says.
    ``offset`` is that of the first."""

    buffer: Buffer
    offset: Index
    width: int
    shifts: dict[int, int]
    """By the identity of the load."""


@dataclass(frozen=True)
class Strip:
    """The loads and stores of a loop's body that go through turned squares."""

    loads: tuple[Group, ...]
    stores: tuple[Store, ...]


def find(nest: Nest, body: Block, variable: Variable) -> Strip | None:
    """What to turn in a loop over ``variable``; None where nothing gains by it."""
    if nest.lane is None or nest.lanes not in (8, 16) or variable.extent < nest.lanes:
        return None
    crossing = [s for s in body.statements if isinstance(s, Load | Store) and _crosses(nest, s)]
    stores = tuple(s for s in crossing if isinstance(s, Store) and s.offset.coefficient(variable) == 1)
    loads = [s for s in crossing if isinstance(s, Load) and not s.guard and s.buffer.role == "input"]
    groups = _groups(loads, variable)
    if not groups and not stores:
        return None
    return Strip(groups, stores)


def is_short(body: Block) -> bool:
    """Whether the steps of a body are written out: it is a few quick operations of the processor."""
    if len(body.statements) > SHORT:
        return False
    return all(
        isinstance(s, Literal | Load | Store)
        or (isinstance(s, Apply) and s.op in QUICK and word_type(s.result.dtype).width in (32, 64))
        for s in body.statements
    )


def _groups(loads: list[Load], variable: Variable) -> tuple[Group, ...]:
    """Each load of one element a step; and of more those that read all of them between them."""
    found = [Group(s.buffer, s.offset, 1, {id(s): 0}) for s in loads if s.offset.coefficient(variable) == 1]
    for width in (2, 4):
        together: dict[tuple[Buffer, Any], list[Load]] = {}
        for load in loads:
            if load.offset.coefficient(variable) == width:
                together.setdefault((load.buffer, load.offset.terms), []).append(load)
        for same in together.values():
            first = min(same, key=lambda s: s.offset.constant).offset
            shifts = {id(s): s.offset.constant - first.constant for s in same}
            if set(shifts.values()) == set(range(width)):
                found.append(Group(same[0].buffer, first, width, shifts))
    return tuple(found)


def _crosses(nest: Nest, statement: Load | Store) -> bool:
    offset, lane = statement.offset, nest.lane
    assert lane is not None
    if statement.buffer.role == "local" or statement.buffer.dtype.limbs > 1:
        return False
    return offset.coefficient(lane) not in (0, 1) and all(isinstance(atom, Variable) for _, atom in offset.terms)


class Squares:
    """The squares of the steps from ``first`` on of one loop; ``written_out``: every step is emitted, after ``step`` is
    set to its number, and the squares are no memory."""

    def __init__(
        self,
        strip: Strip,
        nest: Nest,
        addresses: Addresses,
        starts: dict[Buffer, Any],
        variable: Variable,
        written_out: bool,
    ) -> None:
        self.strip = strip
        self.lanes = nest.lanes
        self.nest = nest
        self.addresses = addresses
        self.builder = addresses.builder
        self.starts = starts
        self.variable = variable
        self.first: Any = None
        self.written_out, self.step = written_out, 0
        self.groups = {key: k for k, group in enumerate(strip.loads) for key in group.shifts}
        self.stores = {id(s): k for k, s in enumerate(strip.stores)}
        self._columns: list[list[Any]] = []
        self._kept: list[list[Any]] = [[] for _ in strip.stores]
        if not written_out:
            self._places = [self._memory(group.buffer, group.width) for group in strip.loads]
            self._kept_places = [self._memory(s.buffer, 1) for s in strip.stores]

    def _memory(self, buffer: Buffer, width: int) -> Any:
        """A place for ``width`` vectors for each of as many steps as there are lanes."""
        kind = ir.ArrayType(ir.VectorType(word_type(buffer.dtype), self.lanes), self.lanes * width)
        with self.builder.goto_entry_block():
            place = self.builder.alloca(kind)
            place.align = 64
        return place

    def _column(self, place: Any, number: Any) -> Any:
        return self.builder.gep(place, [ir.Constant(I64, 0), number], inbounds=True)

    def _now(self) -> Any:
        return self.builder.sub(self.addresses.counters[self.variable], self.first)

    def _rows(self, buffer: Buffer, index: Index) -> list[Any]:
        """Where each lane's elements of the first square are."""
        b = self.builder
        offset = self.addresses.offset(index)
        starts = [b.add(offset.scalar, ir.Constant(I64, lane * offset.stride)) for lane in range(self.lanes)]
        return [b.gep(self.starts[buffer], [start]) for start in starts]

    def turn_in(self) -> None:
        """Reads the squares, at the loop's first step of them."""
        b = self.builder
        for k, group in enumerate(self.strip.loads):
            kind = ir.VectorType(word_type(group.buffer.dtype), self.lanes).as_pointer()
            size = word_type(group.buffer.dtype).width // 8
            rows = self._rows(group.buffer, group.offset)
            self._ask(group, rows, size)
            columns = []
            for part in range(group.width):
                places = [b.gep(row, [ir.Constant(I64, part * self.lanes)]) for row in rows] if part else rows
                columns += turned(b, [b.load(b.bitcast(place, kind), align=size) for place in places])
            if self.written_out:
                self._columns.append(columns)
                continue
            for number, words in enumerate(columns):
                b.store(words, self._column(self._places[k], ir.Constant(I64, number)))

    def words(self, load: Load) -> Any:
        """What a load reads in the step that is emitted."""
        k, b = self.groups[id(load)], self.builder
        group = self.strip.loads[k]
        shift = group.shifts[id(load)]
        if self.written_out:
            return self._columns[k][self.step * group.width + shift]
        number = b.add(b.mul(self._now(), ir.Constant(I64, group.width)), ir.Constant(I64, shift))
        return b.load(self._column(self._places[k], number))

    def put(self, store: Store, words: Any) -> None:
        """Keeps what a store writes in the step that is emitted."""
        k = self.stores[id(store)]
        if self.written_out:
            self._kept[k].append(words)
        else:
            self.builder.store(words, self._column(self._kept_places[k], self._now()))

    def turn_out(self) -> None:
        """Writes what the stores have kept."""
        b = self.builder
        for k, store in enumerate(self.strip.stores):
            kind = ir.VectorType(word_type(store.buffer.dtype), self.lanes).as_pointer()
            columns, size = self._kept[k], word_type(store.buffer.dtype).width // 8
            if not self.written_out:
                place = self._kept_places[k]
                columns = [b.load(self._column(place, ir.Constant(I64, step))) for step in range(self.lanes)]
            for words, row in zip(turned(b, columns), self._rows(store.buffer, store.offset), strict=True):
                b.store(words, b.bitcast(row, kind), align=size)

    def _ask(self, group: Group, rows: list[Any], size: int) -> None:
        """Asks memory for a later square of the same rows, or behind their ends of a later block of lanes, where the
        rows are so short that the processor does not see that each is read in order."""
        assert self.nest.lane is not None
        b, stride = self.builder, group.offset.coefficient(self.nest.lane)
        block, square = stride * self.lanes * size, self.lanes * group.width * size
        if not 0 < block <= LONGEST_PREFETCHED:
            return
        count = self.variable.extent // self.lanes
        blocks, ahead = divmod(max(1, PREFETCHED // (self.lanes * square)), count)
        inside, beyond = blocks * block + ahead * square, (blocks + 1) * block + (ahead - count) * square
        last = b.icmp_unsigned(">=", self.first, ir.Constant(I64, (count - ahead) * self.lanes))
        further = b.select(last, ir.Constant(I64, beyond), ir.Constant(I64, inside))
        for row in rows:
            place = b.gep(b.bitcast(row, BYTE), [further])
            for byte in range(0, square, LINE):
                prefetch(b, b.gep(place, [ir.Constant(I64, byte)]), False)


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
                rows[i] = builder.shuffle_vector(x, y, shuffle_mask(kept))
                rows[i + distance] = builder.shuffle_vector(x, y, shuffle_mask(moved))
        distance //= 2
    return rows
