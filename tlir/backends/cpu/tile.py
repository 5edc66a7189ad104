"""Sums of products by register tiles.

The rows and columns of a contraction are cut into tiles of ``ROWS`` times ``width`` results that stay in registers
while the loop over the terms runs in its order: every result is accumulated exactly as the kernel says, and only which
results are worked on together is chosen here. Both factors are packed (``factor``), a stretch of the terms at a time,
but rows of an array that lie close together and are used as they are. Where there is more than one stretch,
accumulators rest in memory in between. After its last term a tile goes through
the kernel's epilogue.

One side, the shorter one, is *shared*: packed as a whole, for all threads, unless it is a few rows that are used as
they are. The other one is cut into *units*: a unit is packed by the thread that needs it, and multiplied with
everything shared. So each factor is packed once, and units are what threads take one after the other. The work is a
sequence of *phases*, which ``phases`` lists: pack the shared side if that is needed, multiply all units; and again for
the next stretch, block or batch. ``whole`` does the same on one thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import lcm, prod
from typing import Any

from llvmlite import ir

from tlir.backends.cpu.compiled import Plan
from tlir.backends.cpu.entry import BYTES, Entry, external, module_text
from tlir.backends.cpu.factor import Factor, Loops, integer
from tlir.backends.cpu.micro import LINE, UNROLLED, Micro
from tlir.backends.cpu.phases import Shape
from tlir.backends.cpu.values import FLOAT32, FLOAT64
from tlir.floatlib.soft.lanes import I1, I64, vector
from tlir.kernel.index import Variable
from tlir.kernel.ir import Block, Buffer
from tlir.kernel.patterns import Contraction, Part

ROWS = 12
VECTORS = 2
"""A tile has two registers of columns: 24 accumulators, which leaves a few of 32 registers for the factors."""

TERMS_BYTES = 1 << 12
"""A packed stretch of terms of one row, at most."""
LONGEST_BLOCK = 1024
"""Terms of a declared block, which has to fit a stretch whole."""
UNIT_BYTES = 1 << 19
"""A packed unit: a quarter of a large second-level cache, together with what else is used."""
UNITS, FEWEST = 16, 2
"""Units that the threads should have to share, and the panels that a unit should have."""
SHARED_BYTES = 1 << 23
RESULT_BYTES = 1 << 24
"""The packed shared side, and results that wait for their next stretch, at most."""

IN_PLACE_BYTES = 1 << 11
"""Between neighbouring rows that are read where they are, at most: the rows of a tile that are further apart would want
the same places of the first-level cache."""

SHARED_IN_PLACE_BYTES = 1 << 19
"""All rows together, where they are shared and read where they are, at most: they should stay in the second-level
cache."""

LEAST_TERMS, LEAST_RESULTS = 4, 64
ALIGNMENT = 64


def suits(contraction: Contraction) -> bool:
    """Whether tiles pay for a contraction, and hold it: a declared block has to fit a stretch."""
    if contraction.total.dtype.format not in (FLOAT32, FLOAT64):
        return False
    results = prod(v.extent for v in (*contraction.rows, *contraction.columns))
    terms = [part.count for part in contraction.parts]
    if any(extent > LONGEST_BLOCK for extent in terms) and contraction.adds:
        return False
    return sum(terms) >= LEAST_TERMS and results >= LEAST_RESULTS and prod(v.extent for v in contraction.rows) >= 4


def tiles_module(contraction: Contraction) -> tuple[Plan, str]:
    """How the kernel of a contraction that suits is called, and its module in LLVM's assembly language."""
    module, buffers = ir.Module("kernel"), external(contraction.kernel)
    tiles, kinds = Tiles(module, contraction, buffers), [kind for _, kind in buffers]
    shape = tiles.shape
    entry = Entry(module, kinds)
    tiles.whole(Loops(entry.builder, {}), entry.numbers, entry.scratch, entry.pointers)
    entry.close()
    entry = Entry(module, [*kinds, BYTES], "phase")
    tiles.phase(Loops(entry.builder, {}), entry.numbers, entry.scratch, entry.pointers)
    entry.close()
    empty = any(v.extent == 0 for v in contraction.kernel.space)
    return Plan(shape.batches, shape.units, 1, shape.own + shape.shared, empty, shape), module_text(module)


@dataclass
class _Part:
    """A part of the sum in stretches: each is ``stretch`` terms of ``total``, which are whole blocks of ``count``."""

    left: Factor
    right: Factor
    count: int
    total: int
    stretch: int

    in_place: tuple[int, int] | None = None
    """The strides of rows that are not packed."""

    @property
    def steps(self) -> int:
        return -(-self.total // self.stretch)


class Tiles:
    """Emits the functions for one contraction into a module; ``buffers`` are the kernel's, not counting local ones."""

    def __init__(self, module: ir.Module, contraction: Contraction, buffers: Sequence[tuple[Buffer, Any]]) -> None:
        self.module = module
        self.c = c = contraction
        self.buffers = buffers
        single = c.total.dtype.format == FLOAT32
        self.micro = Micro(module, single, c.fused, c.start, ROWS, VECTORS)
        self.element, self.size, self.lanes = self.micro.element, self.micro.size, self.micro.lanes
        self.width = self.micro.width
        self.rows, self.columns = (prod(v.extent for v in each) for each in (c.rows, c.columns))
        self.pack = self._pack_lanes()
        self.parts = [self._part(part) for part in c.parts]
        counts = [count for p in self.parts for count in ((p.count,) if c.adds else (p.stretch, p.total))]
        self.micro.whole_turns = all(count % UNROLLED == 0 for count in counts)
        self.stretch = max(part.stretch for part in self.parts)
        self.columns_shared, self.packs_shared = self.columns <= self.rows, True
        in_place = [self._in_place(part) for part in self.parts]
        few = self.rows <= self.columns and self.rows * self.stretch * self.size <= SHARED_IN_PLACE_BYTES
        if few and None not in in_place:
            self.columns_shared = self.packs_shared = False
        if self.columns_shared or not self.packs_shared:
            for part, strides in zip(self.parts, in_place, strict=True):
                part.in_place = strides
        self._measure()
        self._shared = [self._pack_shared(number) for number in range(len(self.parts))]
        self._work = [self._multiply_units(number) for number in range(len(self.parts))]

    def _pack_lanes(self) -> int:
        """How many columns the epilogue takes at a time: they have to be neighbours along the last variable."""
        lanes, last = self.lanes, self.c.columns[-1].extent
        while lanes > 1 and (last < lanes or (len(self.c.columns) > 1 and last % lanes)):
            lanes //= 2
        return lanes

    def _part(self, part: Part) -> _Part:
        c = self.c
        terms = part.terms if part.blocks is None else (part.blocks, *part.terms)
        left = Factor(c.kernel, part.lhs, part.x, c.rows, terms, ROWS, self.element, self.lanes)
        right = Factor(c.kernel, part.rhs, part.y, c.columns, terms, self.width, self.element, self.lanes)
        total, most = prod(v.extent for v in terms), TERMS_BYTES // self.size
        if c.adds:
            stretch = min(total, max(1, most // part.count) * part.count)
        else:
            stretch = -(-total // -(-total // most))
            turn = lcm(left.inner, right.inner)
            if turn <= most // 2:
                stretch = min(total, -(-stretch // turn) * turn)
        for factor in (left, right):
            factor.whole_turns = stretch % factor.inner == 0
        return _Part(left, right, part.count, total, stretch)

    def _in_place(self, part: _Part) -> tuple[int, int] | None:
        """The strides of the rows if they are read as they are."""
        strides = part.left.strides()
        if strides is None or strides[1] != 1 or not 0 < strides[0] * self.size <= IN_PLACE_BYTES:
            return None
        return strides

    def _measure(self) -> None:
        """Sizes of what is worked on together, and of memory."""
        self.several = sum(part.steps for part in self.parts) > 1
        rows, columns = (ROWS, self.rows), (self.width, self.columns)
        (self.panel, self.extent), (self.unit_panel, self.unit_extent) = (
            (columns, rows) if self.columns_shared else (rows, columns)
        )
        line = self.stretch * self.size

        def rounded(positions: int, panel: int, extent: int) -> int:
            return min(max(positions // panel, 1), -(-extent // panel)) * panel

        fewest = FEWEST if self.packs_shared else 1
        most = min(UNIT_BYTES // line, max(fewest * self.unit_panel, self.unit_extent // UNITS))
        self.unit = rounded(most, self.unit_panel, self.unit_extent)
        self.units = -(-self.unit_extent // self.unit)
        lines = -(-UNROLLED * self.panel * self.size // (self.unit // self.unit_panel * LINE))
        self.micro.asked = lines * LINE // UNROLLED if self.packs_shared else 0
        self.block = rounded(SHARED_BYTES // line, self.panel, self.extent)
        self.units_block = self.units
        self.tile = ROWS * self.width
        tiles_of_unit = self.unit // self.unit_panel * (self.block // self.panel)
        if self.several:
            self.units_block = min(self.units, max(1, RESULT_BYTES // (tiles_of_unit * self.tile * self.size)))

        def aligned(count: int) -> int:
            return -(-count * self.size // ALIGNMENT) * ALIGNMENT // self.size

        self.panel_size = aligned(self.stretch * self.panel + self.lanes)
        self.unit_panel_size = aligned(self.stretch * self.unit_panel + self.lanes)
        self.packed_size = self.block // self.panel * self.panel_size if self.packs_shared else 0
        self.unit_size = self.unit // self.unit_panel * self.unit_panel_size
        self.own_bytes = (self.unit_size + self.tile) * self.size
        results = self.units_block * tiles_of_unit * self.tile if self.several else 0
        # never none: the functions for phases take its address
        self.shared_bytes = max((self.packed_size + results) * self.size, ALIGNMENT)

    @property
    def shape(self) -> Shape:
        """What ``phases`` needs to know."""
        return Shape(
            batches=prod(v.extent for v in self.c.batch),
            extent=-(-self.extent // self.panel),
            block=self.block // self.panel,
            units=self.units,
            units_block=self.units_block,
            steps=tuple(part.steps for part in self.parts),
            own=self.own_bytes,
            shared=self.shared_bytes,
            packs=self.packs_shared,
        )

    # ---- what is called from outside --------------------------------------------------------------------------------

    def whole(self, at: Loops, numbers: Sequence[Any], scratch: Any, pointers: Sequence[Any]) -> None:
        """Everything for some batches and some of their units; ``scratch`` has own and shared memory."""
        b = at.builder
        batch_from, batch_to, unit_from, unit_to = numbers
        own = b.bitcast(scratch, self.element.as_pointer())
        shared = b.gep(own, [integer(self.own_bytes // self.size)])
        some = b.and_(b.icmp_signed("<", batch_from, batch_to), b.icmp_signed("<", unit_from, unit_to))
        with (
            b.if_then(some),
            at.range(batch_from, batch_to, 1) as batch,
            at.range(integer(0), integer(self.extent), self.block) as first,
            at.range(unit_from, unit_to, self.units_block) as unit,
        ):
            unit_end = at.least(b.add(unit, integer(self.units_block)), unit_to)
            length = b.sub(self._block_end(at, first), first)
            panels = b.udiv(b.add(length, integer(self.panel - 1)), integer(self.panel))
            for number, part in enumerate(self.parts):
                with at.range(integer(0), integer(part.steps), 1) as step:
                    where = [batch, first, unit, step]
                    if self.packs_shared:
                        b.call(self._shared[number], [*where, integer(0), panels, shared, own, *pointers])
                    b.call(self._work[number], [*where, unit, unit_end, shared, own, *pointers])

    def phase(self, at: Loops, numbers: Sequence[Any], own: Any, pointers: Sequence[Any]) -> None:
        """Part of a phase; the last of the pointers is the shared memory."""
        b = at.builder
        code, where, first, end = numbers
        *pointers, shared = pointers
        kind = self.element.as_pointer()
        shared, own = b.bitcast(shared, kind), b.bitcast(own, kind)
        blocks, groups = -(-self.extent // self.block), -(-self.units // self.units_block)
        for number, part in enumerate(self.parts):
            rest, step = b.udiv(where, integer(part.steps)), b.urem(where, integer(part.steps))
            rest, group = b.udiv(rest, integer(groups)), b.urem(rest, integer(groups))
            batch, block = b.udiv(rest, integer(blocks)), b.urem(rest, integer(blocks))
            arguments = [batch, b.mul(block, integer(self.block)), b.mul(group, integer(self.units_block)), step]
            for which, function in enumerate((self._shared[number], self._work[number])):
                if which == 0 and not self.packs_shared:
                    continue
                with b.if_then(b.icmp_unsigned("==", code, integer(2 * number + which))):
                    b.call(function, [*arguments, first, end, shared, own, *pointers])

    # ---- phases -----------------------------------------------------------------------------------------------------

    def _function(self, name: str) -> tuple[Loops, Any, list[Any]]:
        """``name(batch, first, first unit, step, from, to, shared, own, buffers…)``."""
        pointer = self.element.as_pointer()
        kinds = [*[I64] * 6, pointer, pointer, *(kind for _, kind in self.buffers)]
        function = ir.Function(self.module, ir.FunctionType(ir.VoidType(), kinds), name)
        function.linkage = "internal"
        function.attributes.add("noinline")
        for argument in function.args[6:]:
            argument.add_attribute("noalias")
        starts = dict(zip((buffer for buffer, _ in self.buffers), function.args[8:], strict=True))
        return Loops(ir.IRBuilder(function.append_basic_block("entry")), starts), function, function.args[:8]

    def _block_end(self, at: Loops, first: Any) -> Any:
        return at.least(at.builder.add(first, integer(self.block)), integer(self.extent))

    def _terms(self, at: Loops, part: _Part, step: Any) -> tuple[Any, Any]:
        """The first term of a stretch, and the one behind its last."""
        term = at.builder.mul(step, integer(part.stretch))
        return term, at.least(at.builder.add(term, integer(part.stretch)), integer(part.total))

    def _pack_shared(self, number: int) -> Any:
        """Packs panels ``from`` to ``to`` of the block of the shared side that begins at ``first``."""
        at, function, (batch, first, _, step, begin, end, shared, _) = self._function(f"shared{number}")
        b, part = at.builder, self.parts[number]
        factor = part.right if self.columns_shared else part.left
        term, term_to = self._terms(at, part, step)
        counters = at.counted_out(self.c.batch, batch)
        with at.range(begin, end, 1) as panel:
            position = b.add(first, b.mul(panel, integer(self.panel)))
            to = b.gep(shared, [b.mul(panel, integer(self.panel_size))])
            factor.pack(at, counters, position, integer(self.extent), term, term_to, to)
        b.ret_void()
        return function

    def _multiply_units(self, number: int) -> Any:
        """Packs units ``from`` to ``to`` and multiplies them with the shared block; the results that wait for the next
        stretch are those of the units from ``first unit`` on."""
        at, function, (batch, first, first_unit, step, begin, end, shared, own) = self._function(f"work{number}")
        b, part = at.builder, self.parts[number]
        factor = part.left if self.columns_shared else part.right
        term, term_to = self._terms(at, part, step)
        counters = at.counted_out(self.c.batch, batch)
        first_position = b.mul(first_unit, integer(self.unit))
        with at.range(begin, end, 1) as unit:
            begin_at = b.mul(unit, integer(self.unit))
            end_at = at.least(b.add(begin_at, integer(self.unit)), integer(self.unit_extent))
            if part.in_place is None or not self.columns_shared:
                with at.range(begin_at, end_at, self.unit_panel) as position:
                    to = b.gep(own, [self._unit_place(at, b.sub(position, begin_at))])
                    factor.pack(at, counters, position, end_at, term, term_to, to)
            with (
                at.range(first, self._block_end(at, first), self.panel) as other,
                at.range(begin_at, end_at, self.unit_panel) as position,
            ):
                panel = b.udiv(b.sub(other, first), integer(self.panel))
                packed_shared = b.gep(shared, [b.mul(panel, integer(self.panel_size))])
                if not self.packs_shared:
                    packed_shared = part.left.place(at, counters, other, term)
                if part.in_place is None or not self.columns_shared:
                    packed_own = b.gep(own, [self._unit_place(at, b.sub(position, begin_at))])
                else:
                    packed_own = factor.place(at, counters, position, term)
                if self.several:
                    mine = b.udiv(b.sub(position, first_position), integer(self.unit_panel))
                    tile = b.add(b.mul(mine, integer(self.block // self.panel)), panel)
                    results = b.gep(shared, [b.add(b.mul(tile, integer(self.tile)), integer(self.packed_size))])
                else:
                    results = b.gep(own, [integer(self.unit_size)])
                if self.columns_shared:
                    row, column, left, right = position, other, packed_own, packed_shared
                else:
                    row, column, left, right = other, position, packed_shared, packed_own
                ahead = self._ahead(at, shared, b.add(panel, integer(1)), b.sub(position, begin_at))
                self._tile(at, number, row, column, [left, right, results, ahead], b.sub(term_to, term), step)
                self._finish(at, number, counters, row, column, results, step)
        b.ret_void()
        return function

    def _unit_place(self, at: Loops, position: Any) -> Any:
        b = at.builder
        return b.mul(b.udiv(position, integer(self.unit_panel)), integer(self.unit_panel_size))

    def _ahead(self, at: Loops, shared: Any, panel: Any, position: Any) -> Any:
        """What a unit's tile asks for of the next shared panel, so that all of them together ask for all of it."""
        b = at.builder
        start = b.bitcast(b.gep(shared, [b.mul(panel, integer(self.panel_size))]), BYTES)
        return b.gep(
            start, [b.mul(b.udiv(position, integer(self.unit_panel)), integer(self.micro.asked * self.stretch))]
        )

    def _tile(
        self, at: Loops, number: int, row: Any, column: Any, places: Sequence[Any], terms: Any, step: Any
    ) -> None:
        """The stretch's terms of one tile; ``places``: the packed rows and columns, the results, what comes next."""
        b, part = at.builder, self.parts[number]
        begins = b.icmp_unsigned("==", step, integer(0))
        if not self.c.adds:
            self._call(at, part, row, column, [*places, terms, begins, I1(0), I1(0)])
            return
        left, right, results, ahead = places
        fresh = b.and_(begins, I1(int(number == 0)))
        with at.range(integer(0), terms, part.count) as block:
            rows = b.gep(left, [b.mul(block, integer((part.in_place or self.micro.packed)[1]))])
            columns = b.gep(right, [b.mul(block, integer(self.width))])
            later = b.gep(ahead, [b.mul(block, integer(self.micro.asked))])
            one = b.and_(fresh, b.icmp_unsigned("==", block, integer(0)))
            arguments = [rows, columns, results, later, integer(part.count), I1(1), I1(1), one]
            self._call(at, part, row, column, arguments)

    def _call(self, at: Loops, part: _Part, row: Any, column: Any, arguments: list[Any]) -> None:
        """The innermost loop for the tile's rows and columns that there are."""
        b = at.builder
        over, rest = self.rows % ROWS, self.columns % self.width
        strides = part.in_place or self.micro.packed

        def of(height: int) -> None:
            if not 0 < rest <= self.width - self.lanes:
                b.call(self.micro.function(height, VECTORS, strides), arguments)
                return
            vectors = -(-rest // self.lanes)
            if self.columns < self.width:
                b.call(self.micro.function(height, vectors, strides), arguments)
                return
            with b.if_else(b.icmp_signed("<=", column, integer(self.columns - self.width))) as (then, otherwise):
                with then:
                    b.call(self.micro.function(height, VECTORS, strides), arguments)
                with otherwise:
                    b.call(self.micro.function(height, vectors, strides), arguments)

        if not over or self.rows < ROWS:
            of(over or ROWS)
            return
        with b.if_else(b.icmp_signed("<=", row, integer(self.rows - ROWS))) as (then, otherwise):
            with then:
                of(ROWS)
            with otherwise:
                of(over)

    # ---- results ----------------------------------------------------------------------------------------------------

    def _finish(
        self, at: Loops, number: int, batch: dict[Variable, Any], row: Any, column: Any, results: Any, step: Any
    ) -> None:
        """The epilogue of a tile after its last term."""
        if number + 1 < len(self.parts):
            return
        b, steps = at.builder, self.parts[number].steps
        if steps == 1:
            self._epilogue(at, batch, row, column, results)
            return
        with b.if_then(b.icmp_unsigned("==", step, integer(steps - 1))):
            self._epilogue(at, batch, row, column, results)

    def _epilogue(self, at: Loops, batch: dict[Variable, Any], row: Any, column: Any, results: Any) -> None:
        b = at.builder
        row_to = at.least(b.add(row, integer(ROWS)), integer(self.rows))
        column_to = at.least(b.add(column, integer(self.width)), integer(self.columns))
        with at.range(row, row_to, 1) as i:
            counters = batch | at.counted_out(self.c.rows, i)
            line = b.gep(results, [b.mul(b.sub(i, row), integer(self.width))])

            def finish(j: Any, lanes: int) -> None:
                lane = self.c.columns[-1] if lanes > 1 else None
                place = b.gep(line, [b.sub(j, column)])
                if lanes > 1:
                    place = b.bitcast(place, vector(self.element, lanes).as_pointer())
                here = counters | at.counted_out(self.c.columns, j)
                emitter = at.emitter(self.c.kernel, self.c.epilogue, here, lane, lanes)
                emitter.known.canonical.add(self.c.total.number)
                real = b.load(place, align=self.size)
                emitter.items[self.c.total.number] = emitter.wide.number(self.c.total.dtype, real)
                emitter.block(Block(self.c.epilogue))

            if self.columns % self.width == 0:
                with at.range(column, column_to, self.pack) as j:
                    finish(j, self.pack)
                return
            continue_at = b.add(column, b.and_(b.sub(column_to, column), integer(-self.pack)))
            with b.if_then(b.icmp_signed("<", column, continue_at)), at.range(column, continue_at, self.pack) as j:
                finish(j, self.pack)
            if self.columns % self.pack:
                with b.if_then(b.icmp_signed("<", continue_at, column_to)), at.range(continue_at, column_to, 1) as j:
                    finish(j, 1)
