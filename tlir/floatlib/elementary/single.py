"""Kernels of elementary functions in binary32's own arithmetic, twice as many numbers to a register as in binary64's.

Such a kernel carries a result as the sum of two binary32 numbers, within a bound that decides all but about one
operand in 5,000; it says which, and the float64 kernels (``elementary.narrow``) take those. Its machine has words of 32
bits, reals that are binary32 numbers, and fused multiply-add as one instruction (``soft.lanes.SingleMachine``).

``exponential``: x = k c + y with c = log 2 / 32, so e**x = 2**(k / 32) e**y. The power of two is (1 + l) T with T from
1 to 2, T and l from a table, and an exponent. It is added to the exponent of the result, because on the way the numbers
would become subnormal, which takes processors a hundred times as long. k c is computed as k (HIGH + LOW), HIGH being a
multiple of 2**-29: for k = 0 and beyond 2**-7, where x is a multiple of 2**-30, r = x - k HIGH is exact. y = r + d,
d = -k LOW. |x| < 88 gives |k| < 2**12, |d| < 2**-21.9, |r| and |y| < 0.01084 < 2**-6.5. T (1 + r) is the sum s + w of
two numbers, w with an error below 2**-47 T. Then e**x = s + w + T v, but for the exponent, with
v = d + l (1 + y) + (e**y - 1 - y) but for l (e**y - 1 - y), and that is y**2 (1/2 + y/6 + y**2/24) but for y**5/120.
Errors, in units of 2**-40 T: y as one number is wrong by 2**-31, and the derivative of e**y - 1 - y is below 2**-6.5:
6. Rounding y**2 (below 2**-13), the polynomial, and their product's sum v (below 2**-14): 4 + 4 + 2. The end of the
series 1.5, the product with l 4, the coefficients, sums with d and ``TINY`` less than 0.1. The sum with w (below
2**-13 T) rounds by 4, and so does what is added to it for the upper bound. That is less than ``ERROR``, 32 units.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from flint import arb

from tlir.floatlib.elementary.narrow.fit import rounded
from tlir.floatlib.elementary.number import Number
from tlir.floatlib.soft.machine import Predicate, Real, Word

if TYPE_CHECKING:
    from tlir.floatlib.soft.lanes import SingleMachine

ERROR = 2.0**-35

STEPS_BITS, FRACTION_BITS = 5, 23
STEPS = 1 << STEPS_BITS
"""The entries of the table, which is as long as registers of 512 bits look up at once."""

SHIFTER = 1.5 * 2.0**FRACTION_BITS
"""Added to a number below 2**22, it leaves no bits for a fraction."""


def _single(value: float) -> float:
    return float(np.float32(value))


LARGEST = _single(87.336)
"""Below it in size e**x is a normal number; operands from here on, but for those of zero, are left."""
TINY = 2.0**-64
"""Added to y**2, which would be subnormal now and then."""
ZERO_BELOW = -104.0
"""e**-104 < 2**-150, which rounds to zero."""


def _step() -> arb:
    return arb.const_log2() / STEPS


INVERSE = _single(rounded(lambda: 1 / _step()))
HIGH = round(rounded(_step) * 2.0**29) / 2.0**29
LOW = _single(rounded(lambda: _step() - HIGH))
SERIES = (0.5, _single(1 / 6), _single(1 / 24))


def _power(j: int) -> arb:
    return arb(2) ** (arb(j) / STEPS)


def _rest(j: int, near: float) -> arb:
    return _power(j) / near - 1


def _tables() -> tuple[tuple[float, ...], tuple[float, ...]]:
    """For each j the number T; and l, less the bound, for the lower one."""
    powers = [_single(rounded(partial(_power, j))) for j in range(STEPS)]
    return tuple(powers), tuple(_single(rounded(partial(_rest, j, powers[j])) - ERROR) for j in range(STEPS))


POWERS, RESTS = _tables()


def exponential(m: SingleMachine, real: Real) -> tuple[Word, Predicate]:
    """The word of e**x, and where it is not certain; there it has no meaning."""
    x = Number(m, real)
    shifted = x.times_plus(INVERSE, SHIFTER)
    k = shifted - SHIFTER
    r = k.times_plus(-HIGH, x)
    y = k.times_plus(-LOW, r)
    power = Number(m, m.permuted(POWERS, shifted.bits))
    rest = Number(m, m.permuted(RESTS, shifted.bits))
    rest = rest.times_plus(y, k.times_plus(-LOW, rest))
    v = y.times_plus(y, TINY).times_plus(y.polynomial(SERIES), rest)
    s = power.times_plus(r, power)
    low = power.times_plus(v, power.times_plus(r, power - s))
    below, above = s + low, s + power.times_plus(2 * ERROR, low)
    above = above.where(abs(x) < LARGEST, float("nan"))
    exponent = m.and_(shifted.bits, m.constant(-STEPS & 0xFFFFFFFF))
    word = m.add(below.bits, m.shift_left(exponent, m.constant(FRACTION_BITS - STEPS_BITS)))
    zero = x < ZERO_BELOW
    undecided = m.both(m.negation(zero), m.negation(below.equals(above)))
    return m.select(zero, m.constant(0), word), undecided


KERNELS: dict[str, Callable[[SingleMachine, Real], tuple[Word, Predicate]]] = {"exponential": exponential}
"""Of float32, by the names of the functions."""
