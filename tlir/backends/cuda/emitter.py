"""Statements of a kernel as C++: what differs from their emission for the processor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from math import prod
from typing import Any

from llvmlite import ir

from tlir.backends.cpu import elementary
from tlir.backends.cpu.memory import Addresses, Offset
from tlir.backends.cpu.nest import Emitter, Ends
from tlir.backends.cpu.space import Nest
from tlir.backends.cpu.values import Item, Lanes, carrier, word_type
from tlir.backends.cuda import big, calls
from tlir.backends.cuda.builder import Builder, Text, expression
from tlir.backends.cuda.machine import CudaMachine
from tlir.floatlib.elementary.double import functions as elementary_double
from tlir.floatlib.elementary.double import loop as elementary_double_loop
from tlir.floatlib.elementary.wide import loop as wide_loop
from tlir.floatlib.soft import numpy_loop
from tlir.floatlib.soft.catalog import UNDECIDED
from tlir.floatlib.soft.catalog import Kernel as SoftKernel
from tlir.floatlib.soft.lanes import I32, I64
from tlir.floatlib.words import integer_dtype
from tlir.ir.types import DType
from tlir.kernel.index import Index, Quotient, Remainder, Variable
from tlir.kernel.ir import Block, Branch, Buffer, Kernel, Loop, Statement, Value

LEAST_PRECISION = 17
"""Bits of precision from which an operand that float64 leaves open is worth a kernel of double-double numbers."""

FAR_EXPONENT = 20
"""The largest angles that the first kernels reduce have this exponent."""


class CudaLanes(Lanes):
    def __init__(self, builder: Builder, leave_open: Callable[[], None]) -> None:
        super().__init__(builder, 1, CudaMachine)
        self.settle, self.call_block, self.call_big = self._settle, self._call_block, partial(big.call, self)
        self.leave_open = leave_open

    def call(self, name: str, result: Any, *arguments: Any) -> Any:
        return self.builder.intrinsic(name, result, list(arguments))

    def unlikely(self, condition: Any, values: Sequence[Any], make: Callable[[], Sequence[Any]]) -> list[Any]:
        b = self.builder
        results = [b.variable(value.type, expression(value)) for value in values]
        with b.if_then(condition), self.scope():
            for result, other in zip(results, make(), strict=True):
                b.assign(result, other)
        return list(results)

    def _settle(self, op: str, dtype: DType, items: tuple[Item, ...], words: list[Any], left: Any) -> Item:
        """Evaluates once more, by kernels of double-double numbers, where there are some for the format."""
        b = self.builder
        results = [b.variable(word.type, expression(word)) for word in words]
        with b.if_then(left), self.scope():
            self._settle_by(_wider(op, dtype), dtype, items, results)
        return self.words(dtype, list(results))

    def _settle_by(self, kernels: list[Any], dtype: DType, items: tuple[Item, ...], results: list[Text]) -> None:
        b = self.builder
        if not kernels:
            self.leave_open()
            return
        words, left = elementary.evaluated(kernels[0], dtype, self, items)
        for result, word in zip(results, words, strict=True):
            b.assign(result, word)
        with b.if_then(left), self.scope():
            self._settle_by(kernels[1:], dtype, items, results)

    def _call_block(self, kernel: SoftKernel, items: Sequence[Item]) -> tuple[list[Any], Any]:
        b, operands = self.builder, [self.resized(limb, I64) for item in items for limb in self.limbs(item)]
        count = numpy_loop.count_limbs(kernel.result)
        *words, mark = calls.call(b, calls.called(kernel), operands, count + 1)
        kind = ir.IntType(8 * integer_dtype(min(kernel.result, 64)).itemsize)
        left = b.icmp_unsigned("!=", b.and_(mark, ir.Constant(I64, UNDECIDED)), ir.Constant(I64, 0))
        return [self.resized(word, kind) for word in words], left


def _wider(op: str, dtype: DType) -> list[Any]:
    """The kernels that decide what the first one left open: of double-double numbers, and for large angles of sines,
    cosines and tangents one that reduces them by more digits of pi; at last
    one of fixed-point numbers of many digits."""
    fmt, kernels = dtype.float_format, []
    if elementary_double_loop.fits(fmt) and op in elementary_double.NAMES:
        if LEAST_PRECISION <= fmt.precision < elementary_double_loop.LEAST_PRECISION:
            kernels.append(elementary_double_loop.loop(op, fmt))
        if op in elementary_double.FAR and fmt.emax >= FAR_EXPONENT:
            kernels.append(elementary_double_loop.loop(op, fmt, far=True))
        if wide_loop.applies(op, fmt):
            kernels.append(wide_loop.loop(op, fmt))
    return kernels


class CudaAddresses(Addresses):
    def store(self, start: Any, dtype: DType, offset: Offset, item: Item, mask: Any = None) -> None:
        # a word that is made here is forgotten at the end of the block that it is made in
        self.lanes.limbs(item)
        super().store(start, dtype, offset, item, mask)

    def _divided(self, atom: Quotient | Remainder) -> Offset:
        b, x = self.builder, self.offset(atom.dividend).scalar
        shift = max(0, -(atom.dividend.least // atom.divisor))
        if shift:
            x = b.add(x, ir.Constant(I64, shift * atom.divisor))
        whole = isinstance(atom, Quotient)
        result = divided(b, x, atom.divisor, whole, atom.dividend.greatest + shift * atom.divisor)
        return Offset(b.sub(result, ir.Constant(I64, shift)) if whole and shift else result)

    def _load_scalar(self, start: Any, dtype: DType, scalar: Any, mask: Any, rest: Item | None) -> Item:
        if mask is None:
            return super()._load_scalar(start, dtype, scalar, None, None)
        b, limbs = self.builder, dtype.limbs
        assert rest is not None
        kind = word_type(dtype)
        words = [b.zext(word, kind) if dtype.is_bool else word for word in self.lanes.limbs(rest)]
        merged = [b.variable(kind, expression(word)) for word in words]
        with b.if_then(mask):
            for k, variable in enumerate(merged):
                b.assign(variable, b.load(self._element(start, scalar, limbs, k)))
        return self._item(dtype, list(merged), self.lanes)


class CudaEmitter(Emitter):
    """Emits a kernel's statements as C++, with loops and branches as such."""

    vectors = False

    spread: frozenset[Buffer] = frozenset()
    """Local buffers of which one thread's elements lie ``threads`` apart."""

    def _lanes(self, count: int) -> Lanes:
        lanes: Lanes = self.__dict__.setdefault("_one", CudaLanes(self.builder, self._leave_open))
        return lanes

    def _leave_open(self) -> None:
        """Marks the iteration, or where this is a part of several (a factor of a row of results) all of them."""
        b, counters, space = self.builder, dict(self.addresses.counters), self.nest.kernel.space
        with ExitStack() as stack:
            for own in space:
                if own.extent > 1 and own not in counters:
                    name = b.name()
                    counters[own] = Text(I64, name)
                    stack.enter_context(b.braces(f"for (uint64_t {name} = 0; {name} < {own.extent}ull; ++{name})"))
            number = "0ull"
            for own in space:
                if own.extent > 1:
                    number = f"({number} * {own.extent}ull + {expression(counters[own])})"
            b.line(f"tl_leave_open(undecided, {number});")

    def _addresses(self) -> Addresses:
        return CudaAddresses(self.wide, None, self._for_index)

    def _place(self, buffer: Buffer, index: Index) -> tuple[Any, Offset]:
        start, offset = super()._place(buffer, index)
        if buffer in self.spread:
            offset = Offset(self.builder.mul(offset.scalar, Text(I64, "threads")))
        return start, offset

    def within(self, counters: dict[Variable, Any]) -> None:
        """Where the statements that follow are in the kernel's loops."""
        self.addresses.counters |= counters

    def value(self, dtype: DType, parts: list[Any]) -> Item:
        """The item of what ``parts`` gave."""
        return self.wide.words(dtype, parts) if carrier(dtype) is None else self.wide.number(dtype, parts[0])

    def parts(self, item: Item) -> list[Any]:
        """What of an item is kept in variables or shared memory: the number of a carrier, or the words."""
        return self.wide.limbs(item) if carrier(item.dtype) is None else [self.wide.real(item)]

    def _branch(self, statement: Branch) -> None:
        b = self.builder
        arms = ((statement.then, "if"), (statement.otherwise, "else"))
        results: list[list[Text]] = []
        for result in statement.results:
            dummy = self._parts(result, self.narrow.literal(result.dtype, 0))
            results.append([b.variable(part.type, expression(part)) for part in dummy])
        condition = expression(self.narrow.bits(self.items[statement.condition.number]))
        for block, word in arms:
            with b.braces(f"if ({condition})" if word == "if" else "else"), self.narrow.scope():
                self.block(block)
                for result, value, variables in zip(statement.results, block.results, results, strict=True):
                    for variable, part in zip(variables, self._parts(result, self.item(value)), strict=True):
                        b.assign(variable, part)
        for result, variables in zip(statement.results, results, strict=True):
            self.items[result.number] = self._from_parts(result, list(variables))

    def _loop(self, loop: Loop) -> None:
        if loop.variable.extent == 0:
            for result, start in zip(loop.results, loop.start, strict=True):
                self.items[result.number] = self.item(start)
            return
        starts = [self._parts(p, self.item(s)) for p, s in zip(loop.parameters, loop.start, strict=True)]
        if loop.span is None:
            ends = self._run(loop.variable, loop.body, loop.parameters, starts)
        else:
            ends = self._run_span(loop.span, loop.variable, loop.body, loop.parameters, starts)
        self._leave(loop, ends)

    def _leave(self, loop: Loop, ends: list[list[Any]]) -> None:
        """The results of a loop are what it has left in these variables."""
        for result, parameter, parts in zip(loop.results, loop.parameters, ends, strict=True):
            item = self._from_parts(parameter, list(parts))
            self.items[result.number] = Item(result.dtype, 1, item.limbs, item.real)

    def _run(
        self, variable: Variable, body: Block, parameters: tuple[Value, ...], starts: list[list[Any]]
    ) -> list[list[Any]]:
        return self._repeat(variable, ir.Constant(I64, 0), variable.extent, body, parameters, starts)

    @contextmanager
    def _steps(
        self, variable: Variable, first: Any, count: int, starts: list[list[Any]]
    ) -> Iterator[tuple[list[list[Any]], Ends]]:
        if count == 1:
            self.addresses.counters[variable] = first
            loop = Ends(starts)
            yield starts, loop
            return
        b, counter = self.builder, self.builder.name()
        with self._stepping(f"for (uint64_t {counter} = 0; {counter} < {count}ull; ++{counter})", starts) as steps:
            self.addresses.counters[variable] = b.add(first, Text(I64, counter))
            yield steps

    @contextmanager
    def _counting(
        self, variable: Variable, first: Any, end: Any, starts: list[list[Any]], step: int = 1
    ) -> Iterator[tuple[list[list[Any]], Ends]]:
        b, counter = self.builder, self.builder.name()
        # indices are small: neither end is negative
        head = f"uint64_t {counter} = {expression(first)}; {counter} < {expression(end)}; {counter} += {step}ull"
        with self._stepping(f"for ({head})", starts) as steps:
            self.addresses.counters[variable] = b.define(I64, counter)
            yield steps

    @contextmanager
    def _stepping(self, head: str, starts: list[list[Any]]) -> Iterator[tuple[list[list[Any]], Ends]]:
        """The body of a loop with this head and what it carries."""
        b, loop = self.builder, Ends(starts)
        carried = [[b.variable(part.type, expression(part)) for part in parts] for parts in starts]
        with b.braces(head), self.narrow.scope():
            # inside a step the carried values keep their old values until its end
            current = [[b.define(part.type, expression(part)) for part in parts] for parts in carried]
            yield current, loop
            ends = [[b.define(part.type, expression(part)) for part in parts] for parts in loop.ends]
            for variables, parts in zip(carried, ends, strict=True):
                for carried_one, part in zip(variables, parts, strict=True):
                    b.assign(carried_one, part)
        loop.ends = [list(variables) for variables in carried]


def emitter_of(
    builder: Builder, kernel: Kernel, starts: dict[Buffer, Any], kind: type[CudaEmitter] = CudaEmitter
) -> Any:
    """An emitter for statements of a kernel."""
    return kind(builder, Nest(kernel, kernel.space, None, 1), starts)


def part_of(kernel: Kernel, statements: Sequence[Statement], results: tuple[Value, ...] = ()) -> Kernel:
    """A kernel of some of a kernel's statements."""
    return Kernel(kernel.name, kernel.buffers, kernel.space, Block(tuple(statements), results))


def divided(builder: Builder, x: Any, divisor: int, whole: bool, greatest: int) -> Any:
    """The quotient or remainder of a number from 0 to ``greatest``, by 32-bit division where that holds it: the GPU
    takes several times as long for one of 64 bits."""
    small = greatest < 1 << 32
    kind = I32 if small else I64
    x = builder.trunc(x, I32) if small else x
    result = (builder.udiv if whole else builder.urem)(x, ir.Constant(kind, divisor))
    return builder.zext(result, I64) if small else result


def counted(builder: Builder, variables: Sequence[Variable], position: Any) -> dict[Variable, Any]:
    """The variables' values at a row-major position."""
    counters: dict[Variable, Any] = {}
    size = prod(v.extent for v in variables)
    for k in reversed(range(len(variables))):
        extent = variables[k].extent
        if k == 0:
            counters[variables[k]] = position
        else:
            counters[variables[k]] = divided(builder, position, extent, False, size - 1)
            position = divided(builder, position, extent, True, size - 1)
            size //= extent
    return counters
