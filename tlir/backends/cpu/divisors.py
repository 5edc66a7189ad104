"""Quotients by a divisor that all lanes share: one division, and for each lane four operations that are multiplications
and additions.

z = 1/b rounded, and l = 1/b - z as (1 - b z) z, whose first factor is exact. q = a z + (a l rounded), rounded once, is
one of the two numbers next to a/b. Then r = a - q b is exact, and q + r z rounded once is a/b rounded: P. Markstein,
"Computation of elementary functions on the IBM RISC System/6000 processor", IBM J. Res. Dev. 34 (1990), theorem 8.1;
Muller et al., "Handbook of Floating-Point Arithmetic" (2018), section 4.7. It needs z to be 1/b rounded to nearest, and
nothing to overflow or to lose bits to underflow. So b and |a| have ranges; zeros are results themselves; in blocks with
other dividends, and for other divisors, all lanes divide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from tlir.backends.cpu.values import FLOAT32, FLOAT64, Item, Lanes, carrier, word_type
from tlir.floatlib.format import Format
from tlir.floatlib.soft import objects
from tlir.floatlib.soft.lanes import broadcast
from tlir.ir.types import DType

LEAST_LANES = 8


@dataclass(frozen=True)
class Ranges:
    """Divisors are within 2**±``divisor``, dividends within 2**±``dividend``: their quotients are normal numbers, and
    r, a multiple of 2**(-2p) |a| for a precision of p bits, is not rounded, and rarely subnormal."""

    divisor: int
    dividend: int


RANGES: dict[Format, Ranges] = {FLOAT32: Ranges(24, 88), FLOAT64: Ranges(100, 900)}


def suits(dtype: DType, lanes: Lanes, dividend: Item, divisor: Item) -> bool:
    """Whether the divisor is one for all lanes that LLVM does not know to be a power of two."""
    # the quotient of complex numbers has no such short cut, though their parts have such a format
    if not dtype.is_float or dtype.format not in RANGES:
        return False
    if lanes.lanes < LEAST_LANES or divisor.lanes > 1 or dividend.lanes == 1:
        return False
    if not objects.has_fma():
        return False
    known = (divisor.limbs or [None])[0]
    fraction = (1 << dtype.float_format.fraction_bits) - 1
    return not isinstance(known, ir.Constant) or known.constant & fraction != 0


def divide(lanes: Lanes, narrow: Lanes, dtype: DType, dividend: Item, divisor: Item) -> Item:
    """The quotients in all lanes, of which a NaN is the canonical one."""
    b, fmt, ranges = lanes.builder, dtype.float_format, RANGES[dtype.float_format]
    kind, element = word_type(dtype), carrier(dtype)
    real, single = lanes.real(dividend), narrow.real(divisor)

    def fma(some: Lanes, x: Any, y: Any, z: Any) -> Any:
        return some.call("llvm.fma", some.type(element), x, y, z)

    unit = ir.Constant(element, 1.0)
    least, most = (ir.Constant(element, 2.0**power) for power in (-ranges.divisor, ranges.divisor))
    usable = b.and_(b.fcmp_ordered(">=", single, least), b.fcmp_ordered("<=", single, most))
    # 1 is in the place of numbers with subnormal products, which take processors a hundred times as long
    proxy = b.select(usable, single, unit)
    inverse = b.fdiv(unit, proxy)
    rest = b.fmul(fma(narrow, b.fneg(inverse), proxy, unit), inverse)

    scalars = (usable, single, proxy, inverse, rest)
    usable, single, proxy, inverse, rest = (broadcast(b, scalar, lanes.lanes) for scalar in scalars)
    # the words of all |a| in the range are neighbours when the sign is shifted out
    shift, first = fmt.fraction_bits + 1, fmt.bias - ranges.dividend
    magnitude = b.shl(b.bitcast(real, lanes.type(kind)), lanes.splat(kind, 1))
    above = b.sub(magnitude, lanes.splat(kind, first << shift))
    proper = b.icmp_unsigned("<", above, lanes.splat(kind, 2 * ranges.dividend << shift))
    some = b.select(proper, real, lanes.splat(element, 1.0))
    near = fma(lanes, some, inverse, b.fmul(some, rest))
    quotient = fma(lanes, fma(lanes, b.fneg(near), proxy, some), inverse, near)
    zero = b.fcmp_ordered("==", real, lanes.splat(element, 0.0))
    left = b.not_(b.and_(b.or_(proper, zero), usable))
    word = b.bitcast(b.select(proper, quotient, real), lanes.type(kind))
    return lanes.words(
        dtype, lanes.unlikely(left, [word], lambda: lanes.limbs(lanes.number(dtype, b.fdiv(real, single))))
    )
