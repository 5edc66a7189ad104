"""Iterations that are independent of each other, in kernels without lanes: the lanes run along them.

A matrix that is factored by itself has no batch for the lanes to run along, but most of what each step does to its rows
or columns is an ``each``. Blocks of lanes go through it from its first iteration on, and those that are left over are
one more block with a mask.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from llvmlite import ir

from tlir.backends.cpu.space import Nest, independent_lanes
from tlir.floatlib.soft.lanes import I64, broadcast
from tlir.kernel.ir import Block, Each, Kernel

if TYPE_CHECKING:
    from tlir.backends.cpu.nest import Emitter


def in_lanes(emitter: Emitter, each: Each) -> None:
    """Emits all iterations."""
    b, lanes, variable = emitter.builder, independent_lanes(each), each.variables[-1]
    kernel = Kernel("each", emitter.nest.kernel.buffers, (variable,), Block(()))
    inner = type(emitter)(b, Nest(kernel, (), variable, lanes), emitter.starts)
    inner.known.own_locals = False
    inner.share(emitter)
    inner.known.classify(each.body)
    with ExitStack() as stack:
        for outer in each.variables[:-1]:
            stack.enter_context(emitter._steps(outer, ir.Constant(I64, 0), outer.extent, []))
        if each.span is None:
            first, end = ir.Constant(I64, 0), ir.Constant(I64, variable.extent)
        else:
            first, end = (emitter.addresses.offset(index).scalar for index in (each.span.first, each.span.end))
        _blocks(emitter, inner, each, first, end)


def _blocks(emitter: Emitter, inner: Emitter, each: Each, first: Any, end: Any) -> None:
    b, lanes, variable = emitter.builder, inner.nest.lanes, each.variables[-1]
    whole = b.sub(end, ir.Constant(I64, lanes - 1))
    with emitter._counting(variable, first, whole, [[first]], lanes) as (_, loop):
        position = emitter.addresses.counters[variable]
        _block(emitter, inner, each.body, position)
        loop.ends = [[b.add(position, ir.Constant(I64, lanes))]]
    ((position,),) = loop.ends
    if each.span is None and variable.extent % lanes == 0:
        return
    with b.if_then(b.icmp_signed("<", position, end)):
        steps = ir.Constant(ir.VectorType(I64, lanes), [ir.Constant(I64, k) for k in range(lanes)])
        numbers = b.add(broadcast(b, position, lanes), steps)
        inner.mask = inner.taking_part = b.icmp_signed("<", numbers, broadcast(b, end, lanes))
        _block(emitter, inner, each.body, position)


def _block(emitter: Emitter, inner: Emitter, body: Block, position: Any) -> None:
    """A block of lanes from a position on."""
    assert inner.nest.lane is not None
    inner.items = dict(emitter.items)
    inner.addresses.counters = {**emitter.addresses.counters, inner.nest.lane: position}
    with emitter.narrow.scope(), emitter.wide.scope():
        inner.block(body)
