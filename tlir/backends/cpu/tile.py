"""Sums of products by register tiles.

The rows and columns of a contraction are cut into tiles of ``ROWS`` times ``columns`` results that stay in registers
while the loop over the terms runs in its order: every result is accumulated exactly as the kernel says, and only which
results are worked on together is chosen here. Both factors are first evaluated into packed panels (whatever expression
they are: a view, a conversion, a padded window), a stretch of the terms at a time, so that the innermost loop reads
memory in order; accumulators rest in scratch memory between stretches. At the end the epilogue reads them from there.

The function has the signature of ``nest``: its outer range counts batches, its lane range counts rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod
from struct import unpack
from typing import Any

from llvmlite import ir

from tlir.backends.cpu.lanes import DOUBLE, FLOAT, I1, I64, broadcast, intrinsic, splat, vector
from tlir.backends.cpu.nest import Emitter
from tlir.backends.cpu.space import Nest
from tlir.backends.cpu.values import FLOAT32, FLOAT64
from tlir.kernel.index import Variable
from tlir.kernel.ir import Block, Buffer, Kernel, Statement, Value
from tlir.kernel.patterns import Contraction, Part

ROWS = 12
VECTORS = 2
"""A tile has two vectors of columns: 24 accumulators, which leaves a few of 32 registers for the factors."""

TERMS = 256
"""Terms in a packed stretch: a panel of 32 columns then takes 32 KiB."""
LONGEST_BLOCK = 1024
COLUMNS = 1024
ROW_BLOCK = 384
"""Columns and rows that are packed at a time; multiples of the tile."""

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


class Tiles:
    """Emits the function's body for one contraction."""

    def __init__(
        self, builder: ir.IRBuilder, contraction: Contraction, starts: dict[Buffer, Any], scratch: Any
    ) -> None:
        self.builder = builder
        self.c = contraction
        self.starts = starts
        single = contraction.total.dtype.format == FLOAT32
        self.element = FLOAT if single else DOUBLE
        self.size = 4 if single else 8
        self.lanes = 64 // self.size
        self.width = VECTORS * self.lanes
        self.rows = prod(v.extent for v in contraction.rows)
        self.columns = prod(v.extent for v in contraction.columns)
        self.pack = self._pack_lanes()
        self.row_tiles = -(-self.rows // ROWS)
        longest = max(part.count for part in contraction.parts)
        self.stretch = longest if contraction.adds else min(TERMS, longest)
        self.column_block = min(COLUMNS, -(-self.columns // self.width) * self.width)
        self.row_block = min(ROW_BLOCK, self.row_tiles * ROWS)
        sizes = [
            self.row_block * self.stretch,
            self.column_block * self.stretch,
            self.row_tiles * ROWS * self.column_block,
        ]
        places, used = [], 0
        for size in sizes:
            places.append(used)
            used += -(-size * self.size // ALIGNMENT) * ALIGNMENT
        self.scratch_bytes = used
        pointer = self.element.as_pointer()
        at = [builder.bitcast(builder.gep(scratch, [ir.Constant(I64, place)]), pointer) for place in places]
        self.packed_rows, self.packed_columns, self.results = at
        self.micro = self._micro()

    def _pack_lanes(self) -> int:
        """How many columns are evaluated at a time: they have to be neighbours along the last column variable."""
        lanes, last = self.lanes, self.c.columns[-1].extent
        while lanes > 1 and (last < lanes or (len(self.c.columns) > 1 and last % lanes)):
            lanes //= 2
        return lanes

    # ---- loops ------------------------------------------------------------------------------------------------------

    def emit(self, batch: Any, row_from: Any, row_to: Any) -> None:
        """All columns of the rows from ``row_from`` (a multiple of ``ROWS``) to ``row_to`` of one batch."""
        b = self.builder
        counters = counted_out(b, self.c.batch, batch)
        with self.range(ir.Constant(I64, 0), ir.Constant(I64, self.columns), self.column_block) as column:
            column_to = self.least(b.add(column, ir.Constant(I64, self.column_block)), ir.Constant(I64, self.columns))
            first = True
            for part in self.c.parts:
                self._part(part, counters, row_from, row_to, column, column_to, first)
                first = False
            self._epilogue(counters, row_from, row_to, column, column_to)

    def _part(
        self, part: Part, batch: dict[Variable, Any], row: Any, row_to: Any, column: Any, column_to: Any, first: bool
    ) -> None:
        b, zero = self.builder, ir.Constant(I64, 0)
        blocks = 1 if part.blocks is None else part.blocks.extent
        extent = part.count
        with (
            self.range(zero, ir.Constant(I64, blocks), 1) as block,
            self.range(zero, ir.Constant(I64, extent), self.stretch) as term,
        ):
            term_to = self.least(b.add(term, ir.Constant(I64, self.stretch)), ir.Constant(I64, extent))
            terms = b.sub(term_to, term)
            counters = dict(batch)
            if part.blocks is not None:
                counters[part.blocks] = block
            self._pack_columns(part, counters, column, column_to, term, term_to)
            begins = b.icmp_unsigned("==", term, zero)
            joins = ir.Constant(I1, int(self.c.adds))
            fresh = b.and_(b.icmp_unsigned("==", block, zero), ir.Constant(I1, int(first)))
            with self.range(row, row_to, self.row_block) as start:
                end = self.least(b.add(start, ir.Constant(I64, self.row_block)), row_to)
                self._pack_rows(part, counters, start, end, term, term_to)
                self._multiply(start, end, column, column_to, terms, begins, joins, fresh)

    def _multiply(
        self, row: Any, row_to: Any, column: Any, column_to: Any, terms: Any, begins: Any, joins: Any, fresh: Any
    ) -> None:
        b = self.builder
        with self.range(column, column_to, self.width) as j:
            panel = b.mul(b.sub(j, column), terms)
            with self.range(row, row_to, ROWS) as i:
                rows = b.mul(b.sub(i, row), terms)
                arguments = [
                    b.gep(self.packed_rows, [rows]),
                    b.gep(self.packed_columns, [panel]),
                    b.gep(self.results, [self._tile(i, b.sub(j, column))]),
                    terms,
                    begins,
                    joins,
                    fresh,
                ]
                b.call(self.micro, arguments)

    def _tile(self, row: Any, column: Any) -> Any:
        """Where the tile of a row (a multiple of ``ROWS``) and a column (of ``width``) starts among the results."""
        b = self.builder
        return b.add(b.mul(row, ir.Constant(I64, self.column_block)), b.mul(column, ir.Constant(I64, ROWS)))

    @contextmanager
    def range(self, first: Any, end: Any, step: int) -> Iterator[Any]:
        """``for position in range(first, end, step)``, which is not empty."""
        b = self.builder
        before, head, after = b.block, b.append_basic_block("loop"), b.append_basic_block("after")
        b.branch(head)
        b.position_at_end(head)
        position = b.phi(I64)
        position.add_incoming(first, before)
        yield position
        following = b.add(position, ir.Constant(I64, step))
        position.add_incoming(following, b.block)
        b.cbranch(b.icmp_signed("<", following, end), head, after)
        b.position_at_end(after)

    def least(self, x: Any, y: Any) -> Any:
        return self.builder.select(self.builder.icmp_signed("<", x, y), x, y)

    # ---- packing ----------------------------------------------------------------------------------------------------

    def _pack_rows(
        self, part: Part, batch: dict[Variable, Any], row: Any, row_to: Any, term: Any, term_to: Any
    ) -> None:
        """Panels of ``ROWS`` rows: for each term the factors of all of them. Rows beyond the last repeat it."""
        b = self.builder
        last = ir.Constant(I64, self.rows - 1)
        with self.range(row, row_to, ROWS) as i:
            panel = b.mul(b.sub(i, row), b.sub(term_to, term))
            with self.range(ir.Constant(I64, 0), ir.Constant(I64, ROWS), 1) as r:
                counters = batch | counted_out(b, self.c.rows, self.least(b.add(i, r), last))
                with self.range(term, term_to, 1) as k:
                    counters |= counted_out(b, part.terms, k)
                    value = self._evaluate(part.lhs, part.x, counters, None, 1)
                    place = b.add(b.add(panel, r), b.mul(b.sub(k, term), ir.Constant(I64, ROWS)))
                    b.store(value, b.gep(self.packed_rows, [place]))

    def _pack_columns(
        self, part: Part, batch: dict[Variable, Any], column: Any, column_to: Any, term: Any, term_to: Any
    ) -> None:
        """Panels of ``width`` columns: for each term the factors of all of them. Columns beyond the last repeat it."""
        b = self.builder
        terms, width = b.sub(term_to, term), ir.Constant(I64, self.width)
        with self.range(column, column_to, self.width) as j:
            panel = b.mul(b.sub(j, column), terms)
            if self.columns % self.pack == 0:
                self._panel(part, dict(batch), panel, j, term, term_to, self.pack)
                return
            whole = b.icmp_signed("<=", b.add(j, width), ir.Constant(I64, self.columns))
            with b.if_else(whole) as (then, otherwise):
                with then:
                    self._panel(part, dict(batch), panel, j, term, term_to, self.pack)
                with otherwise:
                    self._panel(part, dict(batch), panel, j, term, term_to, 1)

    def _panel(
        self, part: Part, counters: dict[Variable, Any], panel: Any, column: Any, term: Any, term_to: Any, lanes: int
    ) -> None:
        b, lane = self.builder, self.c.columns[-1] if lanes > 1 else None
        last = ir.Constant(I64, self.columns - lanes)
        with self.range(ir.Constant(I64, 0), ir.Constant(I64, self.width), lanes) as offset:
            counters |= counted_out(b, self.c.columns, self.least(b.add(column, offset), last))
            with self.range(term, term_to, 1) as k:
                counters |= counted_out(b, part.terms, k)
                value = self._evaluate(part.rhs, part.y, counters, lane, lanes)
                place = b.add(b.add(panel, offset), b.mul(b.sub(k, term), ir.Constant(I64, self.width)))
                pointer = b.gep(self.packed_columns, [place])
                if lanes > 1:
                    pointer = b.bitcast(pointer, value.type.as_pointer())
                b.store(value, pointer, align=self.size)

    def _evaluate(
        self, statements: Sequence[Statement], value: Value, counters: dict[Variable, Any], lane: Any, lanes: int
    ) -> Any:
        """A factor as the processor's number."""
        emitter = self._emitter(statements, counters, lane, lanes)
        emitter.block(Block(tuple(statements)))
        return emitter.wide.real(emitter.item(value))

    def _emitter(
        self, statements: Sequence[Statement], counters: dict[Variable, Any], lane: Variable | None, lanes: int
    ) -> Emitter:
        kernel = Kernel(self.c.kernel.name, self.c.kernel.buffers, (), Block(tuple(statements)))
        emitter = Emitter(self.builder, Nest(kernel, (), lane, lanes), self.starts)
        emitter.addresses.counters |= counters
        return emitter

    # ---- results ----------------------------------------------------------------------------------------------------

    def _epilogue(self, batch: dict[Variable, Any], row: Any, row_to: Any, column: Any, column_to: Any) -> None:
        b = self.builder
        with self.range(row, row_to, 1) as i:
            tile_row = b.mul(b.udiv(i, ir.Constant(I64, ROWS)), ir.Constant(I64, ROWS))
            inside = b.mul(b.urem(i, ir.Constant(I64, ROWS)), ir.Constant(I64, self.width))
            counters = batch | counted_out(b, self.c.rows, i)

            def finish(j: Any, lanes: int) -> None:
                lane = self.c.columns[-1] if lanes > 1 else None
                place = b.sub(j, column)
                width = ir.Constant(I64, self.width)
                tile = self._tile(tile_row, b.mul(b.udiv(place, width), width))
                at = b.gep(self.results, [b.add(b.add(tile, inside), b.urem(place, width))])
                if lanes > 1:
                    at = b.bitcast(at, vector(self.element, lanes).as_pointer())
                here = counters | counted_out(b, self.c.columns, j)
                emitter = self._emitter(self.c.epilogue, here, lane, lanes)
                emitter.canonical.add(self.c.total.number)
                real = b.load(at, align=self.size)
                emitter.items[self.c.total.number] = emitter.wide.number(self.c.total.dtype, real)
                emitter.block(Block(self.c.epilogue))

            whole = b.mul(b.udiv(b.sub(column_to, column), ir.Constant(I64, self.pack)), ir.Constant(I64, self.pack))
            continue_at = b.add(column, whole)
            with b.if_then(b.icmp_signed("<", column, continue_at)), self.range(column, continue_at, self.pack) as j:
                finish(j, self.pack)
            if self.columns % self.pack:
                with b.if_then(b.icmp_signed("<", continue_at, column_to)), self.range(continue_at, column_to, 1) as j:
                    finish(j, 1)

    # ---- the innermost loop -----------------------------------------------------------------------------------------

    def _micro(self) -> Any:
        """``micro(rows, columns, results, terms, begins, joins, fresh)`` runs through packed terms for one tile.

        It continues the tile's accumulators, or starts them where ``begins``. Where ``joins``, what it accumulated is a
        whole block, which it adds to the total (the start value where ``fresh``) instead of storing it."""
        c, element, lanes = self.c, self.element, self.lanes
        pointer = element.as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [pointer, pointer, pointer, I64, I1, I1, I1])
        function = ir.Function(self.builder.module, kind, "micro")
        function.linkage = "internal"
        function.attributes.add("noinline")
        for argument in function.args[:3]:
            argument.add_attribute("noalias")
        rows, columns, results, terms, begins, joins, fresh = function.args
        wide = vector(element, lanes)
        b = ir.IRBuilder(function.append_basic_block("entry"))
        start = splat(element, lanes, float_of(c.start, self.size))

        def place(base: Any, number: int) -> Any:
            return b.bitcast(b.gep(base, [ir.Constant(I64, number)]), wide.as_pointer())

        def load(base: Any, number: int) -> Any:
            return b.load(place(base, number), align=self.size)

        tiles = [(r, v) for r in range(ROWS) for v in range(VECTORS)]
        at = [r * self.width + v * lanes for r, v in tiles]
        entry = b.block
        continued, loop, after = (b.append_basic_block(name) for name in ("continued", "loop", "after"))
        b.cbranch(begins, loop, continued)
        b.position_at_end(continued)
        kept = [load(results, number) for number in at]
        b.branch(loop)
        b.position_at_end(loop)
        step = b.phi(I64)
        sums = [b.phi(wide) for _ in tiles]
        step.add_incoming(ir.Constant(I64, 0), entry)
        step.add_incoming(ir.Constant(I64, 0), continued)
        for phi, old in zip(sums, kept, strict=True):
            phi.add_incoming(start, entry)
            phi.add_incoming(old, continued)
        left = b.gep(rows, [b.mul(step, ir.Constant(I64, ROWS))])
        right = b.gep(columns, [b.mul(step, ir.Constant(I64, self.width))])
        factors = [load(right, v * lanes) for v in range(VECTORS)]
        following = []
        for r in range(ROWS):
            x = broadcast(b, b.load(b.gep(left, [ir.Constant(I64, r)])), lanes)
            for v in range(VECTORS):
                old = sums[r * VECTORS + v]
                if c.fused:
                    following.append(intrinsic(b, "llvm.fma", wide, [x, factors[v], old], [wide]))
                else:
                    following.append(b.fadd(old, b.fmul(x, factors[v])))
        for phi, new in zip(sums, following, strict=True):
            phi.add_incoming(new, loop)
        next_step = b.add(step, ir.Constant(I64, 1))
        step.add_incoming(next_step, loop)
        b.cbranch(b.icmp_unsigned("<", next_step, terms), loop, after)
        b.position_at_end(after)
        joining, storing = b.append_basic_block("joining"), b.append_basic_block("storing")
        b.cbranch(joins, joining, storing)
        b.position_at_end(joining)
        for number, new in zip(at, following, strict=True):
            total = b.select(fresh, start, load(results, number))
            b.store(b.fadd(total, new), place(results, number), align=self.size)
        b.ret_void()
        b.position_at_end(storing)
        for number, new in zip(at, following, strict=True):
            b.store(new, place(results, number), align=self.size)
        b.ret_void()
        return function


def float_of(word: int, size: int) -> float:
    """The number of a word of float32 or float64."""
    number: float = unpack("<f" if size == 4 else "<d", word.to_bytes(size, "little"))[0]
    return number


def counted_out(builder: ir.IRBuilder, variables: Sequence[Variable], position: Any) -> dict[Variable, Any]:
    """The variables' values at a row-major position."""
    counters: dict[Variable, Any] = {}
    for k in reversed(range(len(variables))):
        extent = ir.Constant(I64, variables[k].extent)
        counters[variables[k]] = position if k == 0 else builder.urem(position, extent)
        if k:
            position = builder.udiv(position, extent)
    return counters
