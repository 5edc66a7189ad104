"""Reciprocals and roots in fixed point: a binary64 estimate, and what it lacks by a series.

The estimate y is exact as it is, a number of two digits, and too small on purpose. For 1 / (4 x) the rest e = 1 - 4 x y
is below 2**-49, and 1 / (4 x) = y / (1 - e) = y + y (e + e**2 + ...). For 1 / (4 sqrt x), e = 1 - 16 x y**2, and 1 / (4
sqrt x) = y / sqrt(1 - e) = y + y (e/2 + 3 e**2/8 + ...). Products with y have two digits on one side, and a term of the
series brings 49 bits.

Estimates: ``Fixed.real`` is within 2**-53 of the value and, of two digits from 1/4 on, 2**-58 below; a division or a
root, the product with a constant and the cut to two digits from 1/8 on add 2**-53, 2**-53 and 2**-57: in all less than
2**-51 (half of the first ones in a root). With the factor 1 - 2**-50, e is between 2**-51 and 2**-49.4 for a quotient,
between 2**-50 and 2**-48.5 for a root, where it counts twice.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import comb

from tlir.floatlib.elementary.wide.fixed import DIGIT, MASK, Fixed
from tlir.floatlib.elementary.wide.series import count_terms, polynomial
from tlir.floatlib.elementary.wide.tables import constant
from tlir.floatlib.soft.machine import Machine, Real

_SHRINK = 1 - 2.0**-50


def of_real(m: Machine, x: Real, limit: float) -> Fixed:
    """A binary64 number of 0 to ``limit`` < 1, cut off after two digits: exact as what it is."""
    word = m.truncate(m.real_multiply(x, m.real_constant(2.0 ** (2 * DIGIT))))
    return Fixed(m, [m.and_(word, m.constant(MASK)), m.shift_right(word, m.constant(DIGIT))], 2, limit)


def reciprocal(x: Fixed, point: int) -> Fixed:
    """1 / (4 x) for 0.49 <= x <= 1.3 (between 0.19 and 0.511)."""
    m = x.m
    estimate = of_real(m, m.real_divide(m.real_constant(0.25 * _SHRINK), x.real()), 0.511)
    # (1 - e) / 4
    rest = x.from_minus(estimate, constant(m, Fraction(1, 4), point), 2.0**-51.4).doubled(2).below(2.0**-49.4)
    return corrected(estimate, rest, point, lambda k: Fraction(1), 0.511)


def inverse_root(x: Fixed, point: int) -> Fixed:
    """1 / (4 sqrt x) for 1/4 <= x <= 1.3 (between 0.21 and 1/2)."""
    m = x.m
    root = m.real_sqrt(x.real())
    estimate = of_real(m, m.real_divide(m.real_constant(0.25 * _SHRINK), root), 0.5)
    rest = x.from_minus(estimate.square(4), constant(m, Fraction(1, 16), point), 2.0**-52.5).doubled(4)
    return corrected(estimate, rest.below(2.0**-48.5), point, lambda k: Fraction(comb(2 * k, k), 4**k), 0.5)


def square_root(x: Fixed, point: int) -> Fixed:
    """sqrt(x) / 4 for 1/4 <= x <= 1.3: x times ``inverse_root``."""
    return x.times(inverse_root(x, point), point, 0.29)


def corrected(estimate: Fixed, rest: Fixed, point: int, coefficient: Callable[[int], Fraction], limit: float) -> Fixed:
    """The estimate times 1 + c[1] e + c[2] e**2 + ... for a small e, the coefficients at most 1."""
    terms, left = count_terms(rest.limit, point, lambda k: 1.0)
    series = polynomial(rest, [coefficient(k + 1) for k in range(terms)], point).with_error(left)
    return estimate.times_plus(rest.times(series, point), estimate.to(point), limit)
