"""Functions of complex numbers, each part of whose exact result is rounded once: the kernels of ``tlir.floatlib``, and
quotients.

(a + bi) / (c + di) is ((ac + bd) + (bc - ad)i) / (cc + dd). It is computed in a wider format in which products of two
numbers are exact and nothing overflows or underflows: u = 2**-P being half a unit there, the sums in numerator and
denominator and the division add a relative error of u each, so the quotient is within 3.1 u of the exact one. The exact
quotient lies between the computed one less and plus 2**4 u of itself, whose own rounding is smaller than what is left.
Where both ends of this interval round to the same number, so does the exact quotient, as rounding is monotonic. The
specification decides elsewhere, and where an operand is not finite or the divisor is zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from tlir.backends.cpu import elementary
from tlir.backends.cpu.settle import PARTS
from tlir.backends.cpu.values import Item, Lanes
from tlir.floatlib.elementary.complex import loop
from tlir.floatlib.soft.uint import Uint
from tlir.ir.types import BOOL, NAMED, DType
from tlir.passes.lower.functions import has_quotient

MARGIN = 4

Emit = Callable[..., Item]
Emitter = Callable[[str, Sequence[DType], DType, Mapping[str, Any]], Emit | None]
"""What emits an operation on real numbers."""


def emitter(op: str, operands: Sequence[DType], result: DType, real: Emitter) -> Emit | None:
    """What emits an operation that has a complex operand or result; None for those that kernels do by parts."""
    if op == "complex":
        return lambda lanes, x, y: Item(result, lanes.lanes, parts=(x, y))
    if op in ("real", "imag"):
        return lambda lanes, x: x.parts[int(op == "imag")]
    if op == "divide" and has_quotient(result.component):
        return partial(_divide, result, real)
    if loop.applies(op, result.component.float_format):
        return partial(_function, op, result)
    return None


def _function(op: str, dtype: DType, lanes: Lanes, *items: Item) -> Item:
    component = dtype.component
    operands = [part for item in items if item.parts is not None for part in item.parts]
    machine = lanes.machine(loop.BITS)
    words = tuple(lanes.uint(operand, loop.BITS) for operand in operands)
    found = loop.parts(machine, op, component.float_format, words)
    parts = []
    for name, word, left in zip(PARTS, found.words, found.undecided, strict=True):
        limbs = lanes.limbs(lanes.from_uint(component, Uint(machine, [word], component.bits)))
        parts.append(elementary.settled(lanes, op + name, component, operands, limbs, left))
    return Item(dtype, lanes.lanes, parts=(parts[0], parts[1]))


def _divide(dtype: DType, real: Emitter, lanes: Lanes, x: Item, y: Item) -> Item:
    component = dtype.component
    wide = NAMED["float64" if component.float_format.precision <= 24 else "float128"]

    def apply(op: str, *items: Item, to: DType = wide, **attrs: Any) -> Item:
        emit = real(op, [item.dtype for item in items], to, attrs)
        assert emit is not None, op
        return emit(lanes, *items)

    def holds(direction: str, left: Item, right: Item) -> Any:
        return lanes.bits(apply("compare", left, right, to=BOOL, comparison_direction=direction))

    assert x.parts is not None
    assert y.parts is not None
    operands = (*x.parts, *y.parts)
    a, b, c, d = (apply("convert", part) for part in operands)
    divisor = apply("add", apply("multiply", c, c), apply("multiply", d, d))
    numerators = (
        apply("add", apply("multiply", a, c), apply("multiply", b, d)),
        apply("subtract", apply("multiply", b, c), apply("multiply", a, d)),
    )
    fmt = wide.float_format
    share = lanes.literal(wide, (fmt.bias - fmt.precision + MARGIN) << fmt.fraction_bits)
    builder, zero = lanes.builder, lanes.literal(wide, 0)
    parts = []
    for name, numerator in zip(PARTS, numerators, strict=True):
        quotient = apply("divide", numerator, divisor)
        margin = apply("multiply", quotient, share)
        # of a zero quotient the first end has its sign
        ends = [apply("convert", apply(op, quotient, margin), to=component) for op in ("add", "subtract")]
        finite = holds("EQ", apply("subtract", numerator, numerator), apply("subtract", divisor, divisor))
        certain = builder.and_(builder.and_(finite, holds("LT", zero, divisor)), holds("EQ", *ends))
        words = lanes.limbs(ends[0])
        parts.append(elementary.settled(lanes, "divide" + name, component, operands, words, builder.not_(certain)))
    return Item(dtype, lanes.lanes, parts=(parts[0], parts[1]))
