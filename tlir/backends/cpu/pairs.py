"""Operations on complex numbers that kernels do not do by parts: putting pairs together and taking them apart, and the
functions each part of whose exact result is rounded once, quotients among them.

Their code is that of ``tlir.floatlib.elementary.complex``. What it leaves is looked up where the classes of its parts
are enough, and is the specification's elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from llvmlite import ir

from tlir.backends.cpu import elementary
from tlir.backends.cpu.settle import PARTS
from tlir.backends.cpu.values import Item, Lanes
from tlir.floatlib.elementary.complex import loop
from tlir.floatlib.soft.uint import Uint
from tlir.ir.types import DType

Emit = Callable[..., Item]


def emitter(op: str, result: DType) -> Emit | None:
    """What emits an operation that has a complex operand or result; None for those that kernels do by parts."""
    if op == "complex":
        return lambda lanes, x, y: Item(result, lanes.lanes, parts=(x, y))
    if op in ("real", "imag"):
        return lambda lanes, x: x.parts[int(op == "imag")]
    return partial(_function, op, result) if loop.applies(op, result.component.float_format) else None


def _function(op: str, dtype: DType, lanes: Lanes, *items: Item) -> Item:
    component = dtype.component
    operands = [part for item in items if item.parts is not None for part in item.parts]
    machine = lanes.machine(loop.BITS)
    words = tuple(lanes.uint(operand, loop.BITS) for operand in operands)
    found = loop.parts(machine, op, component.float_format, words)
    if loop.has_classes(op) and lanes.settle is None:
        found = _looked_up(op, component, lanes, words, found)
    parts = []
    for name, word, left in zip(PARTS, found.words, found.undecided, strict=True):
        limbs = lanes.limbs(lanes.from_uint(component, Uint(machine, [word], component.bits)))
        parts.append(elementary.settled(lanes, op + name, component, operands, limbs, left))
    return Item(dtype, lanes.lanes, parts=(parts[0], parts[1]))


def _looked_up(op: str, component: DType, lanes: Lanes, words: tuple[Uint, ...], found: loop.Parts) -> loop.Parts:
    """With the special operands decided, in a branch of their own."""
    b, before = lanes.builder, lanes.builder.block
    left = b.or_(*found.undecided)
    bits = ir.IntType(lanes.lanes)
    mask = left if lanes.lanes == 1 else b.bitcast(left, bits)
    old = (*found.words, *found.undecided)
    with b.if_then(b.icmp_unsigned("!=", mask, ir.Constant(bits, 0)), likely=False):
        machine = lanes.machine(loop.BITS)
        special = loop.special_parts(machine, op, component.float_format, words)
        new = [
            machine.select(p, word, by)
            for p, word, by in zip(special.undecided, found.words, special.words, strict=True)
        ]
        new += [machine.both(p, q) for p, q in zip(special.undecided, found.undecided, strict=True)]
        inside = b.block
    merged = []
    for one, other in zip(old, new, strict=True):
        result = b.phi(one.type)
        result.add_incoming(one, before)
        result.add_incoming(other, inside)
        merged.append(result)
    return loop.Parts((merged[0], merged[1]), (merged[2], merged[3]), found.flags)
