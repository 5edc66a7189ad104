"""Sums of products by tiles in shared memory.

A block computes a tile of rows times columns. For a stretch of the terms at a time its threads evaluate both factors
(whatever expression they are: a view, a conversion, a padded window) into shared memory; then every thread goes through
the stretch in order and adds to the few results that it keeps in registers. So each result is accumulated exactly as
the kernel says, and only which results are worked on together is chosen here. Rows and columns beyond the last repeat
it and are not stored; terms beyond the last are not accumulated. At the end the results go through shared memory to the
kernel's epilogue, whose neighbouring threads then store neighbouring columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from llvmlite import ir

from tlir.backends.cpu import scalars
from tlir.backends.cpu.values import carrier, word_type
from tlir.backends.cuda.builder import Builder, Text, expression, type_name
from tlir.backends.cuda.emitter import CudaEmitter, counted, emitter_of, part_of
from tlir.backends.cuda.function import SHARED_BYTES, Source, assembled, pointers
from tlir.floatlib.soft.lanes import FLOAT, I32, I64
from tlir.ir.types import DType
from tlir.kernel.index import Variable
from tlir.kernel.ir import Load, Statement, Value
from tlir.kernel.patterns import Contraction, Part

LEAST_TERMS = 8
"""Fewer terms than that do not pay for the way through shared memory."""

PROCESSORS = 108
"""Tiles that are worked on side by side anyway: with fewer, larger tiles leave processors of the GPU without work."""

PAD = 4
"""Elements between two rows of shared memory, so that threads that write a column use different banks."""


@dataclass(frozen=True)
class Shape:
    """A tile's rows and columns, the rows and columns of each thread, and the terms of a stretch."""

    rows: int
    columns: int
    own_rows: int
    own_columns: int
    terms: int

    @property
    def across(self) -> int:
        """Threads side by side along the columns."""
        return self.columns // self.own_columns

    @property
    def threads(self) -> int:
        return self.rows // self.own_rows * self.across

    @property
    def elements(self) -> int:
        """Elements of shared memory: the two factors, and later results in the same place."""
        return (self.rows + self.columns + 2 * PAD) * self.terms

    @property
    def passes(self) -> int:
        """Parts of the rows whose results go through shared memory one after the other."""
        count = 1
        while self.rows // count * self.columns > self.elements and self.rows // count > self.own_rows:
            count *= 2
        return count


@dataclass(frozen=True)
class Factor:
    """One side of the products: its array in shared memory, what computes its ``value``, its rows or columns, the first
    of them in the tile, and how many the tile has."""

    name: str
    statements: tuple[Statement, ...]
    value: Value
    variables: tuple[Variable, ...]
    start: Any
    tile: int


SHAPES = (
    Shape(128, 128, 8, 8, 8),
    Shape(64, 64, 4, 4, 16),
    Shape(32, 32, 2, 2, 32),
    Shape(16, 64, 1, 4, 16),
    Shape(64, 16, 4, 1, 16),
    Shape(16, 16, 1, 1, 32),
)


def holds(contraction: Contraction) -> bool:
    """Whether tiles are made for a contraction's dtype."""
    dtype = contraction.total.dtype
    return not dtype.is_bool and dtype.limbs == 1 and (not dtype.is_float or carrier(dtype) is not None)


def suits(contraction: Contraction) -> bool:
    """Whether tiles hold a contraction and pay for it."""
    results = min(prod(v.extent for v in variables) for variables in (contraction.rows, contraction.columns))
    terms = sum(part.count * (1 if part.blocks is None else part.blocks.extent) for part in contraction.parts)
    return holds(contraction) and results >= 4 and terms >= LEAST_TERMS


def shape_of(contraction: Contraction) -> Shape:
    """The tile for which the reads of shared memory, the results that are thrown away and the processors without work
    cost least."""
    rows, columns, batch = (
        prod(v.extent for v in vs) for vs in (contraction.rows, contraction.columns, contraction.batch)
    )
    size = element_bytes(contraction.total.dtype)

    def cost(shape: Shape) -> float:
        tiles = -(-rows // shape.rows) * -(-columns // shape.columns) * batch
        of_result = 1 + 1 / shape.own_rows + 1 / shape.own_columns
        return max(tiles, PROCESSORS) * shape.rows * shape.columns * of_result

    return min((shape for shape in SHAPES if shape.elements * size <= SHARED_BYTES), key=cost)


def element_bytes(dtype: DType) -> int:
    """Bytes of an accumulator: float16 and bfloat16 are kept as the float32 numbers that they are."""
    kind = carrier(dtype)
    return int(str(kind) == "double") * 4 + 4 if kind is not None else int(word_type(dtype).width) // 8


def tiled(contraction: Contraction) -> Source:
    """The function of a contraction."""
    return Tiles(contraction, shape_of(contraction)).source()


class Tiles:
    """Emits the function of one contraction with tiles of one shape."""

    def __init__(self, contraction: Contraction, shape: Shape) -> None:
        self.c = contraction
        self.shape = shape
        self.builder = Builder()
        self.starts = pointers(contraction.kernel)
        self.dtype = contraction.total.dtype
        self.kind = carrier(self.dtype) or word_type(self.dtype)
        self.name = type_name(self.kind)
        self.rows = prod(v.extent for v in contraction.rows)
        self.columns = prod(v.extent for v in contraction.columns)
        self.batch = prod(v.extent for v in contraction.batch)

    def source(self) -> Source:
        b, shape = self.builder, self.shape
        row_tiles, column_tiles = -(-self.rows // shape.rows), -(-self.columns // shape.columns)
        total = row_tiles * column_tiles * self.batch
        b.line(f"__shared__ __align__(16) {self.name} memory[{shape.elements}];")
        b.line(f"{self.name} (*const xs)[{shape.rows + PAD}] = ({self.name} (*)[{shape.rows + PAD}])memory;")
        start = (shape.rows + PAD) * shape.terms
        b.line(
            f"{self.name} (*const ys)[{shape.columns + PAD}] = "
            f"({self.name} (*)[{shape.columns + PAD}])(memory + {start});"
        )
        b.line(f"const uint32_t own_row = threadIdx.x / {shape.across}u * {shape.own_rows}u;")
        b.line(f"const uint32_t own_column = threadIdx.x % {shape.across}u * {shape.own_columns}u;")
        with b.braces("for (uint64_t tile = blockIdx.x; tile < total; tile += gridDim.x)"):
            columns, rows, batch = (Variable(-k, n) for k, n in enumerate((column_tiles, row_tiles, self.batch), 1))
            place = counted(b, (batch, rows, columns), Text(I64, "tile"))
            counters = counted(b, self.c.batch, place[batch]) if self.c.batch else {}
            row = b.mul(place[rows], ir.Constant(I64, shape.rows))
            column = b.mul(place[columns], ir.Constant(I64, shape.columns))
            self._results("sums")
            if self.c.adds:
                self._results("totals")
                self._for_own(f"totals[i][j] = {self._start()};")
            for part in self.c.parts:
                self._part(part, counters, row, column)
            self._epilogue(counters, row, column)
        # the largest tiles would otherwise take just so many registers that one block is alone on its processor
        resident = 2 if self.kind in (FLOAT, I32) else 1
        made = {"unit": 1, "threads": shape.threads, "resident": resident}
        return assembled(self.c.kernel, b.lines, b.tables, total, barriers=True, **made)

    # ---- accumulation -----------------------------------------------------------------------------------------------

    def _results(self, name: str) -> None:
        self.builder.line(f"{self.name} {name}[{self.shape.own_rows}][{self.shape.own_columns}];")

    def _for_own(self, text: str) -> None:
        """A statement for each result of the thread."""
        b = self.builder
        with self._own():
            b.line(text)

    def _own(self) -> Any:
        b = self.builder
        b.line("#pragma unroll")
        b.line(f"for (int i = 0; i < {self.shape.own_rows}; ++i)")
        b.line("#pragma unroll")
        return b.braces(f"for (int j = 0; j < {self.shape.own_columns}; ++j)")

    def _start(self) -> str:
        emitter = self._emitter(())
        (part,) = emitter.parts(emitter.narrow.literal(self.dtype, self.c.start))
        return expression(part)

    def _emitter(self, statements: Sequence[Statement]) -> CudaEmitter:
        emitter: CudaEmitter = emitter_of(self.builder, part_of(self.c.kernel, statements), self.starts)
        return emitter

    def _operation(self, op: str, *operands: Text) -> str:
        """An operation of the accumulator's dtype on what variables hold."""
        emitter = self._emitter(())
        emit = scalars.emitter(op, [self.dtype] * len(operands), self.dtype, {})
        assert emit is not None
        result = emit(emitter.wide, *(emitter.value(self.dtype, [operand]) for operand in operands))
        (part,) = emitter.parts(result)
        return expression(part)

    def _part(self, part: Part, batch: dict[Variable, Any], row: Any, column: Any) -> None:
        b = self.builder
        blocks = 1 if part.blocks is None else part.blocks.extent
        with b.braces(f"for (uint64_t block = 0; block < {blocks}ull; ++block)"):
            counters = dict(batch)
            if part.blocks is not None:
                counters[part.blocks] = Text(I64, "block")
            self._for_own(f"sums[i][j] = {self._start()};")
            with b.braces(f"for (uint64_t first = 0; first < {part.count}ull; first += {self.shape.terms}ull)"):
                # the stretch before has been used by all threads
                b.line("__syncthreads();")
                self._stage(Factor("xs", part.lhs, part.x, self.c.rows, row, self.shape.rows), part, counters)
                self._stage(Factor("ys", part.rhs, part.y, self.c.columns, column, self.shape.columns), part, counters)
                b.line("__syncthreads();")
                self._stretch(part)
            if self.c.adds:
                with self._own():
                    total = self._operation("add", Text(self.kind, "totals[i][j]"), Text(self.kind, "sums[i][j]"))
                    b.line(f"totals[i][j] = {total};")

    def _stage(self, factor: Factor, part: Part, counters: dict[Variable, Any]) -> None:
        """One factor's stretch into shared memory, neighbouring threads along what memory is contiguous in."""
        b, terms, last = self.builder, self.shape.terms, part.terms[-1]
        along_terms = any(isinstance(s, Load) and s.offset.coefficient(last) == 1 for s in factor.statements)
        with b.braces(f"for (uint32_t e = threadIdx.x; e < {factor.tile * terms}u; e += {self.shape.threads}u)"):
            inner = terms if along_terms else factor.tile
            names = ("own", "k") if along_terms else ("k", "own")
            b.line(f"const uint32_t {names[0]} = e / {inner}u, {names[1]} = e % {inner}u;")
            position = self._least(f"{factor.start} + own", prod(v.extent for v in factor.variables) - 1)
            term = self._least("first + k", part.count - 1)
            emitter = self._emitter(factor.statements)
            emitter.within(counters | counted(b, factor.variables, position) | counted(b, part.terms, term))
            emitter.block(emitter.nest.kernel.body)
            (found,) = emitter.parts(emitter.item(factor.value))
            b.line(f"{factor.name}[k][own] = {expression(found)};")

    def _least(self, text: str, most: int) -> Text:
        b = self.builder
        value = b.define(I64, text)
        return b.define(I64, f"{value} < {most}ull ? {value} : {most}ull")

    def _stretch(self, part: Part) -> None:
        """The terms that are staged, in order; a whole stretch has a number of them that the compiler knows."""
        b, terms = self.builder, self.shape.terms
        if part.count % terms == 0:
            self._terms(str(terms), unrolled=True)
        elif part.count < terms:
            self._terms(str(part.count), unrolled=False)
        else:
            with b.braces(f"if (first + {terms}ull <= {part.count}ull)"):
                self._terms(str(terms), unrolled=True)
            with b.braces("else"):
                self._terms(str(part.count % terms), unrolled=False)

    def _terms(self, count: str, unrolled: bool) -> None:
        b, shape = self.builder, self.shape
        if unrolled and self.dtype.bits >= 32:
            b.line("#pragma unroll")
        with b.braces(f"for (int k = 0; k < {count}; ++k)"):
            for name, own, at in (("x", shape.own_rows, "own_row"), ("y", shape.own_columns, "own_column")):
                b.line(f"{self.name} {name}[{own}];")
                b.line("#pragma unroll")
                b.line(f"for (int i = 0; i < {own}; ++i) {name}[i] = {name}s[k][{at} + i];")
            with self._own():
                x, y, total = (Text(self.kind, text) for text in ("x[i]", "y[j]", "sums[i][j]"))
                if self.c.fused:
                    result = self._operation("fma", x, y, total)
                else:
                    result = self._operation("add", total, Text(self.kind, self._operation("multiply", x, y)))
                b.line(f"sums[i][j] = {result};")

    # ---- results ----------------------------------------------------------------------------------------------------

    def _epilogue(self, batch: dict[Variable, Any], row: Any, column: Any) -> None:
        b, shape, name = self.builder, self.shape, "totals" if self.c.adds else "sums"
        rows, columns = shape.rows // shape.passes, shape.columns
        with b.braces(f"for (uint32_t from = 0; from < {shape.rows}u; from += {rows}u)"):
            # what was in the same place has been used by all threads
            b.line("__syncthreads();")
            with b.braces(f"if (own_row >= from && own_row < from + {rows}u)"):
                self._for_own(f"memory[(own_row - from + i) * {columns}u + own_column + j] = {name}[i][j];")
            b.line("__syncthreads();")
            with b.braces(f"for (uint32_t e = threadIdx.x; e < {rows * columns}u; e += {shape.threads}u)"):
                b.line(f"const uint64_t at_row = {row} + from + e / {columns}u;")
                b.line(f"const uint64_t at_column = {column} + e % {columns}u;")
                with b.braces(f"if (at_row < {self.rows}ull && at_column < {self.columns}ull)"):
                    self._finish(batch)

    def _finish(self, batch: dict[Variable, Any]) -> None:
        """The epilogue of one result."""
        b = self.builder
        emitter = self._emitter(self.c.epilogue)
        counters = counted(b, self.c.rows, Text(I64, "at_row"))
        counters |= counted(b, self.c.columns, Text(I64, "at_column"))
        emitter.within(batch | counters)
        if carrier(self.dtype) is not None:
            emitter.known.canonical.add(self.c.total.number)
        emitter.items[self.c.total.number] = emitter.value(self.dtype, [b.define(self.kind, "memory[e]")])
        emitter.block(emitter.nest.kernel.body)


__all__ = ["SHAPES", "Shape", "Tiles", "shape_of", "suits", "tiled"]
