"""Hyperbolic functions in fixed point, of e**|x| = s 2**e, s in [0.249, 0.501), e >= 2.

Near zero, below 2**-17 in magnitude, sinh and tanh are series: x keeps its significand f = |x| / 2**(exponent + 1), and
the result is f (1 ± c x**2 ...). Elsewhere they lose at most 18 bits, for which there are that many more.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import factorial

from tlir.floatlib.elementary.wide.exponential import (
    INEXACT,
    LOSS,
    NEAR_ZERO,
    integer_bits,
    magnitude,
    reduce,
    scaled_power,
)
from tlir.floatlib.elementary.wide.fixed import DIGIT, Fixed, choose
from tlir.floatlib.elementary.wide.function import NEGATIVE_OVERFLOW, OVERFLOW, Case, Function
from tlir.floatlib.elementary.wide.quotient import reciprocal
from tlir.floatlib.elementary.wide.series import odd_series
from tlir.floatlib.elementary.wide.tables import constant
from tlir.floatlib.elementary.wide.work import Operand, Value, Work, beside, shift_count
from tlir.floatlib.soft.machine import Word


def _powers(work: Work, size: Fixed) -> tuple[Fixed, Fixed, Word]:
    """(s, t, e) with e**size = s 2**e and e**-size = t 2**e: t is R / 2**(2 e - 3) with R = 1 / (8 s)."""
    m, point = work.m, size.point
    k, r = reduce(work, size, m.truth(False))
    s, exponent = scaled_power(work, k, r)
    inverse = reciprocal(s.doubled(), point)
    count = m.subtract(m.add(exponent, exponent), m.constant(3))
    return s, inverse.right_by(shift_count(m, count, DIGIT * point), DIGIT * point).below(0.256), exponent


def cosh(work: Work, x: Operand) -> Value:
    """(e**|x| + e**-|x|) / 2 = (s + t) 2**(e - 1)."""
    m = work.m
    s, t, exponent = _powers(work, magnitude(work, x, work.point))
    return Value(m.truth(False), s.plus(t, 0.76), m.subtract(exponent, m.constant(1)), zeros=2)


def sinh(work: Work, x: Operand) -> Value:
    """(e**|x| - e**-|x|) / 2 = (s - t) 2**(e - 1), or x + x**3/6 + ..."""
    m, point = work.m, work.digits(LOSS)
    size = magnitude(work, x, point)
    s, t, exponent = _powers(work, size)
    near = x.below(NEAR_ZERO)
    close = odd_series(work, x, near, size, NEAR_ZERO, lambda k: Fraction(1, factorial(2 * k + 1)))
    scale = m.select(near, m.add(x.exponent, m.constant(2)), m.subtract(exponent, m.constant(1)))
    return beside(near, close, s.minus(t, 0.502), x.sign, scale, LOSS + 2)


SATURATED = 8
"""tanh 2**8 is 1 but for 2**-737."""


@cache
def tanh_coefficient(k: int) -> Fraction:
    """That of x**(2 k + 1), without its sign: T' = 1 - T**2 says (2 k + 1) c[k] = c[0] c[k-1] + ... + c[k-1] c[0]."""
    if k == 0:
        return Fraction(1)
    return sum((tanh_coefficient(i) * tanh_coefficient(k - 1 - i) for i in range(k)), Fraction(0)) / (2 * k + 1)


def tanh(work: Work, x: Operand) -> Value:
    """(s - b) / (s + b) with e**(2|x|) = s 2**e and b = 2**-e, or x - x**3/3 + ..., for |x| < 2**8.

    s + b is in [0.49, 0.76) for e = 2, in [0.24, 0.63) otherwise, where it is doubled; R = 1 / (4 (s + b)), or half of
    it, makes (s - b) R a fourth or an eighth of the result."""
    m, point = work.m, work.digits(LOSS)
    size = x.fixed(point, SATURATED).resized(point + 1)
    k, r = reduce(work, size.doubled().resized(point + 1), m.truth(False))
    s, exponent = scaled_power(work, k, r)
    count = shift_count(m, m.subtract(exponent, m.constant(1)), DIGIT * point)
    other = constant(m, Fraction(1, 2), point).right_by(count, DIGIT * point).below(0.25)
    low = m.equal(exponent, m.constant(2))
    total = s.plus(other, 0.76)
    divisor = choose(low, total, total.doubled())
    quotient = s.minus(other, 0.502).times(reciprocal(divisor, point), point, 0.26)
    near = x.below(NEAR_ZERO)
    close = odd_series(work, x, near, size, NEAR_ZERO, tanh_coefficient, alternating=True)
    scale = m.select(near, m.add(x.exponent, m.constant(2)), m.select(low, m.constant(2), m.constant(3)))
    return beside(near, close, quotient, x.sign, scale, LOSS + 4)


def _beyond(work: Work, x: Operand) -> list[Case]:
    m = work.m
    large = x.at_least(integer_bits(work))
    return [(m.both(large, x.sign), NEGATIVE_OVERFLOW), (m.both(large, m.negation(x.sign)), OVERFLOW)]


def _beyond_both(work: Work, x: Operand) -> list[Case]:
    return [(x.at_least(integer_bits(work)), OVERFLOW)]


def _saturated(work: Work, x: Operand) -> list[Case]:
    m, fmt = work.m, work.fmt
    large, one = x.at_least(SATURATED), fmt.encode(0, 1, 0)
    positive, negative = m.both(large, m.negation(x.sign)), m.both(large, x.sign)
    return [(positive, (one, INEXACT)), (negative, (one | fmt.sign_mask, INEXACT))]


FUNCTIONS = {
    "sinh": Function(sinh, _beyond),
    "cosh": Function(cosh, _beyond_both),
    "tanh": Function(tanh, _saturated),
}
