"""Ordered loops of kernels without lanes: their steps several at a time, as far as they do not wait for each other."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from llvmlite import ir

from tlir.backends.cpu.space import Nest, lanes_along
from tlir.backends.cpu.values import Item, word_type
from tlir.floatlib.soft.lanes import I32, I64
from tlir.kernel import index as ix
from tlir.kernel.index import Variable
from tlir.kernel.ir import Block, Kernel, Literal, Load, Loop, Statement, Value, results_of

if TYPE_CHECKING:
    from tlir.backends.cpu.nest import Emitter
    from tlir.backends.cpu.strips import Squares

LONG, LIGHT, WRITTEN_OUT = 1 << 10, 3, 16
"""Steps of a loop that is written out, its statements at most, and how many steps together."""

AHEAD = 1 << 11
"""Bytes that memory is asked for ahead."""

Parts = list[list[Any]]
"""What of each carried value passes from step to step (``Emitter._parts``)."""


def abreast_steps(emitter: Emitter, loop: Loop, free: list[Statement], bound: list[Statement], starts: Parts) -> Parts:
    """A loop that ``tlir.backends.cpu.cutting.abreast`` has divided: ``free`` in lanes, ``bound`` one lane after the
    other. What the loop carries at its end."""
    b, variable = emitter.builder, loop.variable
    kernel = Kernel("steps", emitter.nest.kernel.buffers, (variable,), Block(tuple(free)))
    lanes = lanes_along(kernel, variable)
    inner = type(emitter)(b, Nest(replace(kernel, body=Block(())), (), variable, lanes), emitter.starts)
    inner.share(emitter)
    inner.known.classify(kernel.body)
    literals = [s for s in loop.body.statements if isinstance(s, Literal)]
    made = [value for s in free for value in results_of(s)]
    whole = variable.extent // lanes
    counter = Variable(-2, whole)
    with emitter._steps(counter, ir.Constant(I64, 0), whole, starts) as (carried, steps):
        first = b.mul(emitter.addresses.counters[counter], ir.Constant(I64, lanes))
        emitter.block(Block(tuple(literals)))
        inner.items |= emitter.items
        inner.addresses.counters |= {**emitter.addresses.counters, variable: first}
        inner.block(kernel.body)
        for lane in range(lanes):
            emitter.addresses.counters[variable] = b.add(first, ir.Constant(I64, lane))
            for value in made:
                emitter.items[value.number] = _extracted(emitter, value, inner, lane)
            carried = _step(emitter, Block(tuple(bound), loop.body.results), loop.parameters, carried)
        steps.ends = carried
    return _rest(emitter, whole * lanes, variable, loop.body, loop.parameters, steps.ends)


def _extracted(emitter: Emitter, value: Value, inner: Emitter, lane: int) -> Item:
    """One lane of a value."""
    item = inner.items[value.number]
    if item.lanes == 1:
        return item
    b, number = emitter.builder, ir.Constant(I32, lane)
    if value.number in emitter.known.canonical:
        return emitter.narrow.number(value.dtype, b.extract_element(inner.wide.real(item), number))
    return emitter.narrow.words(value.dtype, [b.extract_element(word, number) for word in inner.wide.limbs(item)])


def _step(emitter: Emitter, body: Block, parameters: tuple[Value, ...], carried: Parts) -> Parts:
    """One step at the builder's place; what it leaves."""
    for parts, parameter in zip(carried, parameters, strict=True):
        emitter.items[parameter.number] = emitter._from_parts(parameter, parts)
    emitter.block(body)
    return [emitter._parts(p, emitter.item(v)) for p, v in zip(parameters, body.results, strict=True)]


def _rest(
    emitter: Emitter, done: int, variable: Variable, body: Block, parameters: tuple[Value, ...], carried: Parts
) -> Parts:
    """The steps from ``done`` on."""
    if variable.extent == done:
        return carried
    return emitter._repeat(variable, ir.Constant(I64, done), variable.extent - done, body, parameters, carried)


def square_steps(
    emitter: Emitter, squares: Squares, body: Block, parameters: tuple[Value, ...], carried: Parts
) -> Parts:
    """All steps of a loop that its squares hold."""
    for step in range(squares.lanes):
        squares.step = step
        emitter.addresses.counters[squares.variable] = emitter.builder.add(squares.first, ir.Constant(I64, step))
        carried = _step(emitter, body, parameters, carried)
    return carried


def is_light(variable: Variable, body: Block) -> bool:
    """Whether a loop is worth writing out."""
    return variable.extent >= LONG and len(body.statements) <= LIGHT


def written_out(
    emitter: Emitter, variable: Variable, body: Block, parameters: tuple[Value, ...], starts: Parts
) -> Parts:
    """A loop some steps at a time: so the processor looks further ahead while each waits for the one before, and
    memory is asked for once a line. What the loop carries at its end."""
    b, whole = emitter.builder, variable.extent // WRITTEN_OUT
    reads = [s for s in body.statements if isinstance(s, Load) and s.buffer.role == "input"]
    counter = Variable(-3, whole)
    with emitter._steps(counter, ir.Constant(I64, 0), whole, starts) as (carried, steps):
        first = b.mul(emitter.addresses.counters[counter], ir.Constant(I64, WRITTEN_OUT))
        emitter.addresses.counters[variable] = first
        for load in reads:
            size = word_type(load.buffer.dtype).width // 8
            if load.offset.coefficient(variable) == 1 and load.buffer.dtype.limbs == 1 and not load.offset.values():
                for byte in range(AHEAD, AHEAD + WRITTEN_OUT * size, 64):
                    emitter.ask(emitter.starts[load.buffer], ix.add(load.offset, byte // size), False)
        for step in range(WRITTEN_OUT):
            emitter.addresses.counters[variable] = b.add(first, ir.Constant(I64, step))
            carried = _step(emitter, body, parameters, carried)
        steps.ends = carried
    return _rest(emitter, whole * WRITTEN_OUT, variable, body, parameters, steps.ends)
