"""Packing of one factor of a sum of products into panels.

A panel holds some neighbouring rows (or columns), for each term the factors of all of them next to each other, so that
the innermost loop reads memory in order. Whatever expression a factor is (a view, a conversion, a padded window) is
evaluated here, in one of three ways: with lanes along the panel; with lanes along the terms, a square of elements being
turned in registers; or one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import prod
from typing import Any

from llvmlite import ir

from tlir.backends.cpu import strips
from tlir.backends.cpu.nest import Emitter
from tlir.backends.cpu.space import Nest
from tlir.backends.cpu.values import FLOAT32, FLOAT64
from tlir.floatlib.soft.lanes import I64, element_bytes, vector
from tlir.kernel.index import Variable
from tlir.kernel.ir import Block, Buffer, Kernel, Load, Statement, Value
from tlir.kernel.joining import join_variables


class Loops:
    """What is emitted at one place of one function: a builder, and where the buffers start there."""

    def __init__(self, builder: ir.IRBuilder, starts: dict[Buffer, Any]) -> None:
        self.builder = builder
        self.starts = starts

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
        following = b.add(position, integer(step))
        position.add_incoming(following, b.block)
        b.cbranch(b.icmp_signed("<", following, end), head, after)
        b.position_at_end(after)

    def least(self, x: Any, y: Any) -> Any:
        return self.builder.select(self.builder.icmp_signed("<", x, y), x, y)

    def counted_out(self, variables: Sequence[Variable], position: Any) -> dict[Variable, Any]:
        return counted_out(self.builder, variables, position)

    def emitter(
        self,
        kernel: Kernel,
        statements: Sequence[Statement],
        counters: dict[Variable, Any],
        lane: Variable | None,
        lanes: int,
    ) -> Emitter:
        """Emits statements of the kernel where its variables have these values, with lanes along one of them."""
        one = Kernel(kernel.name, kernel.buffers, (), Block(tuple(statements)))
        emitter = Emitter(self.builder, Nest(one, (), lane, lanes), self.starts)
        emitter.addresses.counters |= counters
        return emitter


class Factor:
    """One factor of a part of a sum: the statements that compute ``value``; ``own`` are the variables of its rows or
    columns, of which ``panel`` make a panel, ``terms`` those of the terms. ``element`` and ``lanes``: the numbers'
    type, and how many a register has."""

    whole_turns = False
    """Whether stretches of terms begin and end at multiples of ``inner``."""

    def __init__(
        self,
        kernel: Kernel,
        statements: Sequence[Statement],
        value: Value,
        own: tuple[Variable, ...],
        terms: tuple[Variable, ...],
        panel: int,
        element: Any,
        lanes: int,
    ) -> None:
        joined = replace(kernel, body=Block(tuple(statements)))
        # each kind by itself: rows and terms stay apart
        joined = join_variables(replace(joined, space=own))
        self.own = joined.space
        joined = join_variables(replace(joined, space=terms))
        self.terms = joined.space
        self.kernel, self.statements, self.value = kernel, joined.body.statements, value
        self.panel, self.element = panel, element
        self.extent = prod(v.extent for v in own)
        self.inner = prod(v.extent for v in self.terms[1:])
        """Terms for one value of the first of their variables."""
        self.along = self.turned = 1
        """Lanes along the panel, or along the terms; both are 1 where neither reads memory in order."""
        self._choose(lanes)

    def _choose(self, lanes: int) -> None:
        last, term = (variables[-1] if variables else None for variables in (self.own, self.terms))
        if last is not None and self._in_order(last):
            along = lanes
            while along > 1 and (
                self.panel % along or last.extent < along or (len(self.own) > 1 and last.extent % along)
            ):
                along //= 2
            self.along = along
        if self.along > lanes // 4 or term is None or not self._in_order(term):
            return
        if term.extent >= lanes and (len(self.terms) == 1 or term.extent % lanes == 0):
            self.along, self.turned = 1, lanes

    def _in_order(self, lane: Variable) -> bool:
        """Whether neighbours along a variable are read from the same place or from neighbouring ones."""
        for statement in self.statements:
            if isinstance(statement, Load):
                hidden = any(not isinstance(atom, Variable) for _, atom in statement.offset.terms)
                if statement.offset.coefficient(lane) not in (0, 1) or (
                    hidden and lane in statement.offset.variables()
                ):
                    return False
        return True

    def strides(self) -> tuple[int, int] | None:
        """How far neighbouring positions and neighbouring terms are apart, in elements, where the factor is read from
        one array as it is; otherwise None."""
        load = self.statements[0]
        if len(self.statements) > 1 or not isinstance(load, Load) or load.guard or load.result != self.value:
            return None
        kind = FLOAT32 if element_bytes(self.element) == 4 else FLOAT64
        plain = all(isinstance(atom, Variable) for _, atom in load.offset.terms)
        if not plain or load.result.dtype.format != kind or len(self.own) != 1 or len(self.terms) != 1:
            return None
        return load.offset.coefficient(self.own[0]), load.offset.coefficient(self.terms[0])

    def place(self, at: Loops, batch: dict[Variable, Any], position: Any, term: Any) -> Any:
        """Where the factor is that has ``strides``."""
        load = self.statements[0]
        assert isinstance(load, Load)
        emitter = at.emitter(
            self.kernel, self.statements, batch | {self.own[0]: position, self.terms[0]: term}, None, 1
        )
        offset = emitter.addresses.offset(load.offset).scalar
        return at.builder.gep(at.builder.bitcast(at.starts[load.buffer], self.element.as_pointer()), [offset])

    def pack(
        self, at: Loops, batch: dict[Variable, Any], first: Any, end: Any, term: Any, term_to: Any, to: Any
    ) -> None:
        """Packs a panel: positions from ``first`` (a multiple of the panel's size), at most to ``end``, and terms from
        ``term`` to ``term_to``. What ``to`` holds of positions beyond the end is undefined, and so is up to a
        register's width behind the panel."""
        b, panel = at.builder, integer(self.panel)
        if self.turned > 1:
            self._turned(at, batch, first, end, term, term_to, to)
        elif self.along == 1:
            stop = at.least(end, b.add(first, panel))
            self._along(at, batch, first, first, stop, term, term_to, to, 1)
        elif self.extent % self.panel == 0:
            self._whole(at, batch, first, term, term_to, to)
        else:
            with b.if_else(b.icmp_signed("<=", b.add(first, panel), end)) as (then, otherwise):
                with then:
                    self._whole(at, batch, first, term, term_to, to)
                with otherwise:
                    whole = b.add(first, b.and_(b.sub(end, first), integer(-self.along)))
                    with b.if_then(b.icmp_signed("<", first, whole)):
                        self._along(at, batch, first, first, whole, term, term_to, to, self.along)
                    if self.extent % self.along:
                        with b.if_then(b.icmp_signed("<", whole, end)):
                            self._along(at, batch, first, whole, end, term, term_to, to, 1)

    def _whole(self, at: Loops, batch: dict[Variable, Any], first: Any, term: Any, term_to: Any, to: Any) -> None:
        """A panel that has all its positions. Where they are neighbours in memory, each term's are read together;
        otherwise where a position is found is worked out once for all terms."""
        b = at.builder
        if len(self.own) > 1:
            self._along(at, batch, first, first, b.add(first, integer(self.panel)), term, term_to, to, self.along)
            return
        with self._each_term(at, term, term_to, self.whole_turns) as (terms, number):
            for offset in range(0, self.panel, self.along):
                counters = batch | {self.own[0]: b.add(first, integer(offset))} | terms
                self._store(at, counters, number, integer(offset), to, self.along)

    def _along(
        self,
        at: Loops,
        batch: dict[Variable, Any],
        base: Any,
        first: Any,
        end: Any,
        term: Any,
        term_to: Any,
        to: Any,
        lanes: int,
        whole_turns: bool | None = None,
    ) -> None:
        """Positions from ``first`` to ``end`` of the panel that begins at ``base``, ``lanes`` at a time."""
        turns = self.whole_turns if whole_turns is None else whole_turns
        with at.range(first, end, lanes) as position:
            counters = batch | at.counted_out(self.own, position)
            with self._each_term(at, term, term_to, turns) as (terms, number):
                self._store(at, counters | terms, number, at.builder.sub(position, base), to, lanes)

    def _store(self, at: Loops, counters: dict[Variable, Any], number: Any, inside: Any, to: Any, lanes: int) -> None:
        """The factors at one term, ``inside`` the panel."""
        b = at.builder
        value = self._evaluate(at, counters, self.own[-1] if lanes > 1 else None, lanes)
        pointer = b.gep(to, [b.add(b.mul(number, integer(self.panel)), inside)])
        if lanes > 1:
            pointer = b.bitcast(pointer, value.type.as_pointer())
        b.store(value, pointer, align=element_bytes(self.element))

    @contextmanager
    def _each_term(
        self, at: Loops, term: Any, term_to: Any, whole_turns: bool
    ) -> Iterator[tuple[dict[Variable, Any], Any]]:
        """A loop over terms: the variables' values, and how many terms come before. The first variable changes fastest
        where whole turns of the others are packed, so that what depends on them is worked out once."""
        b = at.builder
        if len(self.terms) > 1 and whole_turns:
            inner = integer(self.inner)
            with (
                at.range(integer(0), inner, 1) as rest,
                at.range(b.udiv(term, inner), b.udiv(term_to, inner), 1) as outermost,
            ):
                counters = at.counted_out(self.terms[1:], rest)
                counters[self.terms[0]] = outermost
                yield counters, b.sub(b.add(b.mul(outermost, inner), rest), term)
            return
        with at.range(term, term_to, 1) as k:
            yield at.counted_out(self.terms, k), b.sub(k, term)

    def _turned(
        self, at: Loops, batch: dict[Variable, Any], first: Any, end: Any, term: Any, term_to: Any, to: Any
    ) -> None:
        b, lanes = at.builder, self.turned
        whole = b.add(term, b.and_(b.sub(term_to, term), integer(-lanes)))
        last = b.sub(end, integer(1))
        kind = vector(self.element, lanes)
        with b.goto_entry_block():
            square = b.alloca(ir.ArrayType(kind, lanes))
            square.align = 64
        with b.if_then(b.icmp_signed("<", term, whole)), at.range(term, whole, lanes) as k:
            terms = at.counted_out(self.terms, k)
            # what is written behind the end of a term is written again: the last rows first
            for offset in reversed(range(0, self.panel, lanes)):
                count = min(lanes, self.panel - offset)
                with at.range(integer(0), integer(count), 1) as r:
                    position = at.least(b.add(b.add(first, integer(offset)), r), last)
                    counters = batch | at.counted_out(self.own, position) | terms
                    b.store(self._evaluate(at, counters, self.terms[-1], lanes), b.gep(square, [integer(0), r]))
                rows = [b.load(b.gep(square, [integer(0), integer(r)])) for r in range(lanes)]
                for step, values in enumerate(strips.turned(b, rows)):
                    number = b.add(b.sub(k, term), integer(step))
                    place = b.gep(to, [b.add(b.mul(number, integer(self.panel)), integer(offset))])
                    b.store(values, b.bitcast(place, kind.as_pointer()), align=element_bytes(self.element))
        stop = at.least(end, b.add(first, integer(self.panel)))
        with b.if_then(b.icmp_signed("<", whole, term_to)):
            beyond = b.gep(to, [b.mul(b.sub(whole, term), integer(self.panel))])
            self._along(at, batch, first, first, stop, whole, term_to, beyond, 1, whole_turns=False)

    def _evaluate(self, at: Loops, counters: dict[Variable, Any], lane: Variable | None, lanes: int) -> Any:
        """The factor as the processor's numbers."""
        emitter = at.emitter(self.kernel, self.statements, counters, lane, lanes)
        emitter.block(Block(tuple(self.statements)))
        return emitter.wide.real(emitter.item(self.value))


def integer(value: int) -> Any:
    return ir.Constant(I64, value)


def counted_out(builder: ir.IRBuilder, variables: Sequence[Variable], position: Any) -> dict[Variable, Any]:
    """The variables' values at a row-major position."""
    counters: dict[Variable, Any] = {}
    for k in reversed(range(len(variables))):
        extent = ir.Constant(I64, variables[k].extent)
        counters[variables[k]] = position if k == 0 else builder.urem(position, extent)
        if k:
            position = builder.udiv(position, extent)
    return counters
