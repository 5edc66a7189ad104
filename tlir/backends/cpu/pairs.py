"""Operations on complex numbers that kernels do not do by parts: putting pairs together and taking them apart, and the
functions each part of whose exact result is rounded once, quotients among them.

Their code is that of ``tlir.floatlib.elementary.complex``. What it leaves is looked up where the classes of its parts
are enough, or evaluated by the second stage, of large angles, in a branch; elsewhere it is the specification's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tlir.backends.cpu import elementary
from tlir.backends.cpu.settle import PARTS
from tlir.backends.cpu.values import Item, Lanes
from tlir.floatlib.elementary.complex import loop
from tlir.floatlib.soft.machine import Machine
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
    if loop.has_classes(op):
        open_ = lanes.builder.or_(*found.undecided)
        later = partial(_later, op, component, machine, words, found)
        *both, real, imaginary = lanes.unlikely(open_, (*found.words, *found.undecided), later)
        found = loop.Parts((both[0], both[1]), (real, imaginary), found.flags)
    parts = []
    for name, word, left in zip(PARTS, found.words, found.undecided, strict=True):
        limbs = lanes.limbs(lanes.from_uint(component, Uint(machine, [word], component.bits)))
        parts.append(elementary.settled(lanes, op + name, component, operands, limbs, left))
    return Item(dtype, lanes.lanes, parts=(parts[0], parts[1]))


def _later(op: str, component: DType, machine: Machine, words: tuple[Uint, ...], found: loop.Parts) -> tuple[Any, ...]:
    """Both words and where they are not decided, after the other ways to decide them."""
    fmt, results, undecided = component.float_format, list(found.words), list(found.undecided)
    stages = [loop.special_parts(machine, op, fmt, words)]
    if loop.has_angle(op, fmt):
        stages.append(loop.parts(machine, op, fmt, words, far=True))
    for stage in stages:
        for k, (word, left) in enumerate(zip(stage.words, stage.undecided, strict=True)):
            results[k] = machine.select(machine.both(undecided[k], machine.negation(left)), word, results[k])
            undecided[k] = machine.both(undecided[k], left)
    return *results, *undecided
