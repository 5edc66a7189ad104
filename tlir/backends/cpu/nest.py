"""A kernel as an LLVM function: the loops over its space, and the statements of one block of lanes.

The function is ``kernel(outer_from, outer_to, lane_from, lane_to, scratch, buffers…)``, which computes that part of the
space, so that threads can share it: the lane range of each must hold a whole block of lanes. Where the range is no
multiple of the block, the last block starts earlier and computes some elements a second time, which writes the same
words again.

What all lanes share is computed once, as a scalar. A branch on a condition of its own for each lane evaluates both
blocks with loads and stores masked, and skips a block that no lane takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

from tlir.backends.cpu import divisors, independent, ordered, scalars, strips
from tlir.backends.cpu.known import Known
from tlir.backends.cpu.memory import Addresses, Offset
from tlir.backends.cpu.space import Nest, independent_lanes
from tlir.backends.cpu.values import Item, Lanes, word_type
from tlir.floatlib.soft.lanes import BYTE, I1, I64, broadcast, joined, prefetch, splat
from tlir.kernel.cutting import abreast
from tlir.kernel.index import Index, Variable
from tlir.kernel.ir import (
    Apply,
    Block,
    Bound,
    Branch,
    Buffer,
    Each,
    Literal,
    Load,
    Loop,
    Position,
    Span,
    Statement,
    Store,
    Value,
)


class Emitter:
    """Emits the statements of a nest at its builder's place."""

    vectors = True
    """Whether there are vectors for lanes."""

    def __init__(self, builder: Any, nest: Nest, starts: dict[Buffer, Any]) -> None:
        self.builder = builder
        self.nest = nest
        self.starts = starts
        self.wide, self.narrow = self._lanes(nest.lanes), self._lanes(1)
        self.items: dict[int, Item] = {}
        self.addresses = self._addresses()
        self.mask: Any = None
        self.taking_part: Any = None
        """A mask that holds in some lane wherever statements stand."""
        self.squares: strips.Squares | None = None
        self.known = Known(nest.lane)
        self.known.classify(nest.kernel.body)

    def _lanes(self, count: int) -> Lanes:
        return Lanes(self.builder, count)

    def _addresses(self) -> Addresses:
        return Addresses(self.wide, self.nest.lane, self._for_index)

    def share(self, outer: Emitter) -> None:
        """Uses what another emitter, of one lane, has made: scalars for all lanes."""
        self.known.uniform |= outer.items.keys()
        self.known.canonical |= outer.known.canonical
        # second forms that are made inside a branch are forgotten at its end
        self.narrow._derived, self.wide._derived = outer.narrow._derived, outer.wide._derived

    # ---- items ------------------------------------------------------------------------------------------------------

    def item(self, value: Value) -> Item:
        """The value in all lanes."""
        return self.wide.widened(self.items[value.number])

    def _for_index(self, value: Value) -> Item:
        item = self.items[value.number]
        (self.narrow if item.lanes == 1 else self.wide).limbs(item)
        return item

    def _lanes_of(self, value: Value) -> Lanes:
        return self.narrow if value.number in self.known.uniform else self.wide

    # ---- statements -------------------------------------------------------------------------------------------------

    def block(self, block: Block) -> None:
        for statement in block.statements:
            self._statement(statement)

    def _statement(self, statement: Statement) -> None:
        match statement:
            case Literal(result, word):
                assert isinstance(word, int)
                self.items[result.number] = self.narrow.literal(result.dtype, word)
            case Position():
                self._position(statement)
            case Load():
                self._load(statement)
            case Apply():
                self._apply(statement)
            case Store():
                self._store(statement)
            case Branch():
                self._branch(statement)
            case Loop():
                self._loop(statement)
            case Each():
                self._each(statement)

    def _position(self, statement: Position) -> None:
        dtype, offset = statement.result.dtype, self.addresses.offset(statement.index)
        if offset.uniform:
            lanes, value = self.narrow, offset.scalar
        else:
            lanes, value = self.wide, self.addresses.full(offset) if self.nest.lanes > 1 else _single(self, offset)
        self.items[statement.result.number] = lanes.word(dtype, lanes.resized(value, word_type(dtype)))

    def _place(self, buffer: Buffer, index: Index) -> tuple[Any, Offset]:
        """Where a buffer starts, and the offset in it; local buffers have the lanes' elements side by side."""
        offset = self.addresses.offset(index)
        lanes = self.nest.lanes
        if lanes == 1:
            return self.starts[buffer], Offset(_single(self, offset))
        if buffer.role == "local" and self.known.own_locals:
            b = self.builder
            scalar = b.mul(offset.scalar, ir.Constant(I64, lanes))
            vector = None if offset.vector is None else b.mul(offset.vector, splat(I64, lanes, lanes))
            return self.starts[buffer], Offset(scalar, offset.stride * lanes + 1, vector)
        return self.starts[buffer], offset

    def _load(self, statement: Load) -> None:
        if self.squares is not None and id(statement) in self.squares.groups:
            words = self.squares.words(statement)
            dtype = statement.buffer.dtype
            if dtype.is_bool:
                words = self.builder.trunc(words, self.wide.type(I1))
            self.items[statement.result.number] = self.wide.words(dtype, [words])
            return
        start, offset = self._place(statement.buffer, statement.offset)
        mask = self._guard(statement.guard)
        if statement.result.number not in self.known.uniform and self.mask is not None:
            lanes = self.nest.lanes
            chosen = _in_lanes(self.builder, self.mask, lanes)
            mask = chosen if mask is None else self.builder.and_(_in_lanes(self.builder, mask, lanes), chosen)
        elif statement.result.number in self.known.uniform and self.mask is not None:
            # one lane may be enough for the load to be wanted, and none for it to be allowed
            any_lane = None if self.mask is self.taking_part else self._any(self.mask)
            if any_lane is not None:
                mask = any_lane if mask is None else self.builder.and_(mask, any_lane)
        rest = None
        if mask is not None:
            other = statement.otherwise
            if other is None:
                rest = self.narrow.literal(statement.buffer.dtype, 0)
            else:
                rest = self.items[other.number]
            if statement.result.number not in self.known.uniform:
                rest = self.wide.widened(rest)
                mask = _in_lanes(self.builder, mask, self.nest.lanes)
        self.items[statement.result.number] = self.addresses.load(start, statement.buffer.dtype, offset, mask, rest)

    def _guard(self, bounds: tuple[Bound, ...]) -> Any:
        """Whether all bounds hold: an i1, of all lanes or of each; None where there are none."""
        b, result = self.builder, None
        for bound in bounds:
            offset = self.addresses.offset(bound.index)
            if offset.uniform or self.nest.lanes == 1:
                value, lanes = _single(self, offset), 1
            else:
                value, lanes = self.addresses.full(offset), self.nest.lanes
            holds = None
            if bound.index.least < bound.low:
                holds = b.icmp_signed(">=", value, splat(I64, lanes, bound.low))
            if bound.index.greatest >= bound.high:
                below = b.icmp_signed("<", value, splat(I64, lanes, bound.high))
                holds = below if holds is None else b.and_(holds, below)
            if holds is None:
                continue
            if result is None:
                result = holds
            else:
                width = max(_width(result), _width(holds))
                result = b.and_(_in_lanes(b, result, width), _in_lanes(b, holds, width))
        return result

    def _apply(self, statement: Apply) -> None:
        result = statement.result
        emit = scalars.emitter(
            statement.op, [value.dtype for value in statement.operands], result.dtype, statement.attrs
        )
        assert emit is not None, statement.op
        lanes = self._lanes_of(result)
        operands = [self.items[value.number] for value in statement.operands]
        if statement.op == "divide" and divisors.suits(result.dtype, lanes, *operands):
            self.items[result.number] = divisors.divide(lanes, self.narrow, result.dtype, *operands)
        else:
            self.items[result.number] = emit(lanes, *(lanes.widened(operand) for operand in operands))

    def _store(self, statement: Store) -> None:
        if self.squares is not None and id(statement) in self.squares.stores:
            (words,) = self.wide.limbs(self.item(statement.value))
            kind = self.wide.type(word_type(statement.buffer.dtype))
            self.squares.put(statement, self.builder.zext(words, kind) if statement.buffer.dtype.is_bool else words)
            return
        start, offset = self._place(statement.buffer, statement.offset)
        item = self.item(statement.value)
        if offset.uniform and self.nest.lanes > 1:
            raise AssertionError("every lane would store to one element")
        self.addresses.store(start, statement.buffer.dtype, offset, item, self.mask)

    # ---- control ----------------------------------------------------------------------------------------------------

    def _branch(self, statement: Branch) -> None:
        condition = self.items[statement.condition.number]
        if condition.lanes == 1:
            self._real_branch(statement, self.narrow.bits(condition))
            return
        b, outer = self.builder, self.mask
        chosen = self.wide.bits(condition)
        ends: list[list[list[Any]]] = []
        for block, mask in ((statement.then, chosen), (statement.otherwise, b.not_(chosen))):
            self.mask = mask if outer is None else b.and_(_in_lanes(b, outer, self.nest.lanes), mask)
            ends.append(self._masked(block))
        self.mask = outer
        for result, left, right in zip(statement.results, *ends, strict=True):
            words = zip(left, right, strict=True)
            self.items[result.number] = self.wide.words(result.dtype, [b.select(chosen, x, y) for x, y in words])

    def _masked(self, block: Block) -> list[list[Any]]:
        """A block for the lanes of the mask, and the words of what it leaves; one that is much work is skipped where
        there are none."""
        b = self.builder
        if not any(isinstance(s, Loop | Each) for s in block.statements):
            self.block(block)
            return [self.wide.limbs(self.item(value)) for value in block.results]
        before, inside, after = b.block, b.append_basic_block("taken"), b.append_basic_block("after")
        b.cbranch(self._any(self.mask), inside, after)
        b.position_at_end(inside)
        with self.narrow.scope(), self.wide.scope():
            self.block(block)
            left = [self.wide.limbs(self.item(value)) for value in block.results]
        inside = b.block
        b.branch(after)
        b.position_at_end(after)
        nothing = [[ir.Constant(word.type, ir.Undefined) for word in words] for words in left]
        pairs = zip(left, nothing, strict=True)
        return [[joined(b, x, inside, y, before) for x, y in zip(*pair, strict=True)] for pair in pairs]

    def _real_branch(self, statement: Branch, condition: Any) -> None:
        b = self.builder
        blocks = [b.append_basic_block(name) for name in ("then", "otherwise", "after")]
        b.cbranch(condition, blocks[0], blocks[1])
        arms = []
        for place, block in zip(blocks, (statement.then, statement.otherwise), strict=False):
            b.position_at_end(place)
            with self.narrow.scope(), self.wide.scope():
                self.block(block)
                values = [
                    self._parts(result, self.item(value))
                    for result, value in zip(statement.results, block.results, strict=True)
                ]
            arms.append((b.block, values))
            b.branch(blocks[2])
        b.position_at_end(blocks[2])
        for k, result in enumerate(statement.results):
            phis = []
            for part in range(len(arms[0][1][k])):
                phi = b.phi(arms[0][1][k][part].type)
                for place, values in arms:
                    phi.add_incoming(values[k][part], place)
                phis.append(phi)
            self.items[result.number] = self._from_parts(result, phis)

    def _parts(self, value: Value, item: Item) -> list[Any]:
        """What of an item passes from block to block: its real, where its NaN are canonical, or its word."""
        return [self.wide.real(item)] if value.number in self.known.canonical else self.wide.limbs(item)

    def _from_parts(self, value: Value, parts: list[Any]) -> Item:
        if value.number in self.known.canonical:
            return self.wide.number(value.dtype, parts[0])
        return self.wide.words(value.dtype, parts)

    def _loop(self, loop: Loop) -> None:
        if loop.variable.extent == 0:
            for result, start in zip(loop.results, loop.start, strict=True):
                self.items[result.number] = self.item(start)
            return
        starts = [self._parts(p, self.item(s)) for p, s in zip(loop.parameters, loop.start, strict=True)]
        divided = abreast(loop) if self.nest.lane is None and self.mask is None else None
        if divided is not None:
            ends = ordered.abreast_steps(self, loop, *divided, starts)
        elif loop.span is not None:
            ends = self._run_span(loop.span, loop.variable, loop.body, loop.parameters, starts)
        else:
            ends = self._run(loop.variable, loop.body, loop.parameters, starts)
        for result, parts, parameter in zip(loop.results, ends, loop.parameters, strict=True):
            item = self._from_parts(parameter, parts)
            self.items[result.number] = Item(result.dtype, self.nest.lanes, item.limbs, item.real)

    def _each(self, each: Each) -> None:
        if not all(variable.extent for variable in each.variables):
            return
        if self.vectors and self.nest.lane is None and self.mask is None and independent_lanes(each):
            independent.in_lanes(self, each)
        elif each.span is not None:
            self._run_span(each.span, each.variables[0], each.body, (), [])
        else:
            self._each_of(each.variables, each.body)

    def _each_of(self, variables: tuple[Variable, ...], body: Block) -> None:
        if not variables:
            self.block(body)
        elif len(variables) == 1:
            self._run(variables[0], body, (), [])
        else:
            zero = ir.Constant(I64, 0)
            with self._steps(variables[0], zero, variables[0].extent, []):
                self._each_of(variables[1:], body)

    def _run(
        self, variable: Variable, body: Block, parameters: tuple[Value, ...], starts: list[list[Any]]
    ) -> list[list[Any]]:
        """A loop over ``body`` with what it carries; the parts of what it leaves."""
        strip = strips.find(self.nest, body, variable) if self.mask is None else None
        if self.nest.lane is None and self.mask is None and ordered.is_light(variable, body):
            return ordered.written_out(self, variable, body, parameters, starts)
        if strip is None:
            return self._repeat(variable, ir.Constant(I64, 0), variable.extent, body, parameters, starts)
        b, lanes = self.builder, self.nest.lanes
        whole = variable.extent // lanes
        short = strips.is_short(body)
        squares = strips.Squares(strip, self.nest, self.addresses, self.starts, variable, short)
        counter = Variable(-1, whole)
        with self._steps(counter, ir.Constant(I64, 0), whole, starts) as (carried, loop):
            first = b.mul(self.addresses.counters[counter], ir.Constant(I64, lanes))
            self.addresses.counters[variable] = squares.first = first
            squares.turn_in()
            outer, self.squares = self.squares, squares
            if short:
                ends = ordered.square_steps(self, squares, body, parameters, carried)
            else:
                ends = self._repeat(variable, first, lanes, body, parameters, carried)
            self.squares = outer
            self.addresses.counters[variable] = first
            squares.turn_out()
            loop.ends = ends
        rest = variable.extent - whole * lanes
        if rest:
            return self._repeat(variable, ir.Constant(I64, whole * lanes), rest, body, parameters, ends)
        return ends

    def _run_span(
        self,
        span: Span,
        variable: Variable,
        body: Block,
        parameters: tuple[Value, ...],
        starts: list[list[Any]],
    ) -> list[list[Any]]:
        """The steps of a span, which may be none; the parts of what is carried in the end."""
        first, end = (self.addresses.offset(index).scalar for index in (span.first, span.end))
        with self._counting(variable, first, end, starts) as (carried, loop), self.narrow.scope(), self.wide.scope():
            loop.ends = self._step(body, parameters, carried)
        return loop.ends

    def _step(self, body: Block, parameters: tuple[Value, ...], carried: list[list[Any]]) -> list[list[Any]]:
        """One step of a loop: the parts of what it leaves, for those of what it is given."""
        for parts, parameter in zip(carried, parameters, strict=True):
            self.items[parameter.number] = self._from_parts(parameter, parts)
        self.block(body)
        return [self._parts(p, self.item(v)) for p, v in zip(parameters, body.results, strict=True)]

    @contextmanager
    def _counting(
        self, variable: Variable, first: Any, end: Any, starts: list[list[Any]], step: int = 1
    ) -> Iterator[tuple[list[list[Any]], Ends]]:
        """As ``_steps``, for every ``step``-th number from ``first`` on below ``end``, if there is one."""
        b, loop = self.builder, Ends(starts)
        before, head, after = b.block, b.append_basic_block("loop"), b.append_basic_block("after")
        b.cbranch(b.icmp_signed("<", first, end), head, after)
        b.position_at_end(head)
        position = b.phi(I64)
        position.add_incoming(first, before)
        phis = [[b.phi(part.type) for part in parts] for parts in starts]
        self.addresses.counters[variable] = position
        yield phis, loop
        for mine, parts, begin in zip(phis, loop.ends, starts, strict=True):
            for phi, part, start in zip(mine, parts, begin, strict=True):
                phi.add_incoming(start, before)
                phi.add_incoming(part, b.block)
        following = b.add(position, ir.Constant(I64, step))
        position.add_incoming(following, b.block)
        last = b.block
        b.cbranch(b.icmp_signed("<", following, end), head, after)
        b.position_at_end(after)
        pairs = zip(starts, loop.ends, strict=True)
        loop.ends = [[joined(b, y, last, x, before) for x, y in zip(*pair, strict=True)] for pair in pairs]

    def _repeat(
        self,
        variable: Variable,
        first: Any,
        count: int,
        body: Block,
        parameters: tuple[Value, ...],
        starts: list[list[Any]],
    ) -> list[list[Any]]:
        """``count`` steps of ``body`` from ``first`` on."""
        with self._steps(variable, first, count, starts) as (carried, loop):
            loop.ends = self._step(body, parameters, carried)
        return loop.ends

    @contextmanager
    def _steps(
        self, variable: Variable, first: Any, count: int, starts: list[list[Any]]
    ) -> Iterator[tuple[list[list[Any]], Ends]]:
        """A loop of at least one step; what is emitted inside is its body. Gives the values that it carries, which are
        ``starts`` at first, and where to put those of the end of a step."""
        b, loop = self.builder, Ends(starts)
        if count == 1:
            self.addresses.counters[variable] = first
            yield starts, loop
            return
        before, head = b.block, b.append_basic_block("loop")
        b.branch(head)
        b.position_at_end(head)
        step = b.phi(I64)
        step.add_incoming(ir.Constant(I64, 0), before)
        phis = [[b.phi(part.type) for part in parts] for parts in starts]
        self.addresses.counters[variable] = b.add(first, step)
        yield phis, loop
        for mine, parts, begin in zip(phis, loop.ends, starts, strict=True):
            for phi, part, start in zip(mine, parts, begin, strict=True):
                phi.add_incoming(start, before)
                phi.add_incoming(part, b.block)
        following = b.add(step, ir.Constant(I64, 1))
        step.add_incoming(following, b.block)
        after = b.append_basic_block("after")
        b.cbranch(b.icmp_unsigned("<", following, ir.Constant(I64, count)), head, after)
        b.position_at_end(after)

    # ---- memory -----------------------------------------------------------------------------------------------------

    def ask(self, start: Any, index: Index, writes: bool) -> None:
        """Asks memory for a block of lanes that lie side by side, from an offset on."""
        b, size = self.builder, start.type.pointee.width // 8
        place = b.bitcast(b.gep(start, [self.addresses.offset(index).scalar]), BYTE)
        for byte in range(0, self.nest.lanes * size, 64):
            prefetch(b, b.gep(place, [ir.Constant(I64, byte)]), writes)

    def _any(self, mask: Any) -> Any:
        if self.nest.lanes == 1 or not isinstance(mask.type, ir.VectorType):
            return mask
        bits = self.builder.bitcast(mask, ir.IntType(self.nest.lanes))
        return self.builder.icmp_unsigned("!=", bits, ir.Constant(ir.IntType(self.nest.lanes), 0))


class Ends:
    """What a loop carries from the end of one step to the next."""

    def __init__(self, ends: list[list[Any]]) -> None:
        self.ends = ends


def _single(emitter: Emitter, offset: Offset) -> Any:
    return offset.scalar if offset.vector is None else emitter.builder.add(offset.scalar, offset.vector)


def _width(mask: Any) -> int:
    return mask.type.count if isinstance(mask.type, ir.VectorType) else 1


def _in_lanes(builder: ir.IRBuilder, mask: Any, lanes: int) -> Any:
    return mask if _width(mask) == lanes else broadcast(builder, mask, lanes)


def unsupported(nest: Nest) -> str | None:
    """Why a kernel cannot be compiled, or None."""
    for buffer in nest.kernel.buffers:
        if buffer.dtype.is_complex:
            return f"{buffer.dtype} is not compiled"
    for statement in nest.kernel.body.walk():
        if isinstance(statement, Apply):
            dtypes = [value.dtype for value in statement.operands]
            if scalars.emitter(statement.op, dtypes, statement.result.dtype, statement.attrs) is None:
                return f"{statement.op} of {dtypes[0]} is not compiled"
        elif isinstance(statement, Literal) and not isinstance(statement.word, int):
            return f"{statement.result.dtype} is not compiled"
    return None
