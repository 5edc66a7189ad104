"""Kernels of lgamma and digamma. Errors are counted in units of u = 2**-53.

Both are computed at a y >= 1/2: x itself where x >= 1/2, and elsewhere 1 + |x|, exactly where |x| >= 1/2 and with an
error of u below. From there lgamma x = lgamma(1 + x) - log x and digamma x = digamma(1 + x) - 1/x lead back, for x < 0
the reflections (NIST Digital Library of Mathematical Functions, 5.5)

    lgamma x = -log(|sin pi x| / pi) - lgamma(1 + |x|),    digamma x = digamma(1 + |x|) - pi cot pi x.

Up to 8 the zeros are divided off: lgamma y / ((y - 1)(y - 2)) and digamma y / (y - zero) are polynomials on cells.
From 8 on it is Stirling's series, whose remainder is less than the first term that is left out (DLMF 5.11(ii)).

For x < 0 there are zeros between the poles. The bounds are on the absolute error, so that what is next to a zero is
left undecided.

pi x is that of the distance r from x to the nearest integer, which is exact: |r| <= 1/2. |sin pi r| / pi = |r| p(r*r)
has 14 u: 2**-52 and, by Horner's rule, 6 u of p >= 0.636, and 2 u for products. cos pi r has an absolute error of 10 u.
"""

from __future__ import annotations

from functools import cache, partial

from flint import acb, arb, ctx

from tlir.floatlib.elementary.narrow.cells import Cells
from tlir.floatlib.elementary.narrow.fit import PRECISION, Fit, parts, rounded
from tlir.floatlib.elementary.narrow.log import log
from tlir.floatlib.elementary.narrow.outcome import Outcome
from tlir.floatlib.elementary.number import Number
from tlir.floatlib.soft.machine import Predicate

FAR = 8.0
ULP = 2.0**-53


def lgamma_ratio(z: acb) -> acb:
    """A mean of digamma' over the triangle of 1, 2 and z, halved (the formula of Hermite and Genocchi), and so
    completely monotonic as digamma' is (DLMF 5.9.12)."""
    return z.lgamma() / ((z - 1) * (z - 2))


@cache
def digamma_zero() -> arb:
    """The positive zero of digamma, by Newton's method; between the ends of the ball it changes its sign."""
    previous, ctx.prec = ctx.prec, PRECISION + 64
    try:
        x = arb(1.4616321449683623)
        for _ in range(5):
            x = (x - x.digamma() / acb(x).polygamma(1).real).mid()
        radius = arb((1, -PRECISION))
        if not ((x - radius).digamma() < 0 and (x + radius).digamma() > 0):
            raise ArithmeticError("the zero of digamma is not where it was sought")
        return arb(x, radius)
    finally:
        ctx.prec = previous


def digamma_ratio(z: acb) -> acb:
    """The mean of digamma' between its zero and z."""
    return z.digamma() / (z - digamma_zero())


LGAMMA_RATIO = Cells(lgamma_ratio, 0.5, FAR, 5, 7, 6 * ULP)
DIGAMMA_RATIO = Cells(digamma_ratio, 0.5, FAR, 5, 7, 11 * ULP)
ZERO_HIGH, ZERO_LOW = parts(digamma_zero, 52)

SIN_PI = Fit(lambda z: (-z * (arb.pi() / 2) ** 2).hypgeom_0f1(1.5), 0.0, 0.25, 8, 200.0, 2.0**-52)
COS_PI = Fit(lambda z: (-z * (arb.pi() / 2) ** 2).hypgeom_0f1(0.5), 0.0, 0.25, 9, 200.0, 2.0**-52)
"""sin(pi sqrt z) / (pi sqrt z) and cos(pi sqrt z)."""


def _bernoulli(k: int, divisor: int) -> arb:
    return arb.bernoulli(2 * k) / divisor


LGAMMA_SERIES = tuple(rounded(partial(_bernoulli, k, 2 * k * (2 * k - 1))) for k in range(1, 8))
DIGAMMA_SERIES = (0.0, *(rounded(partial(_bernoulli, k, 2 * k)) for k in range(1, 9)))
LGAMMA_CONSTANT = rounded(lambda: ((2 * arb.pi()).log() - 1) / 2)


def _sides(x: Number) -> tuple[Number, Predicate, Predicate, Number]:
    """(|x|, whether x < 0, whether x < 1/2, y)."""
    m = x.m
    a = abs(x)
    negative = m.less(m.constant(0), x.sign)
    shifted = m.either(negative, a < 0.5)
    return a, negative, shifted, (a + 1.0).where(shifted, a)


def sin_pi(r: Number, square: Number) -> Number:
    """|sin pi r| / pi."""
    return abs(r) * square.polynomial(SIN_PI.coefficients)


def lgamma(x: Number) -> Outcome:
    """L = lgamma y, and R = -log x or -log(|sin pi x| / pi): R + L, or R - L for x < 0.

    For y < 8 L has 6 u of the polynomial, and of y, y - 1 and y - 2 (for x < 1/2 |x| and |x| - 1) and the products
    5 u: 11 u. From 8 on it is (y - 1/2) (log y - 1) + (c + S(1/y)), whose first term is below L; log y has 20 u, and
    (y - 1/2) log y is at most 1.83 L: 37 u, 3 u for the other operations, and u for the rest, of which the first term
    that is left out is u of L: 42 u. R has 20 u of the logarithm, and for x < 0, where it is at least log pi, 14 u of
    the sine: 33 u. Together, with the last sum, at most 43 u (|L| + |R|)."""
    a, negative, shifted, y = _sides(x)
    first, second = a.where(shifted, a - 1.0), (a - 1.0).where(shifted, a - 2.0)
    near = first * second * LGAMMA_RATIO.at(y)
    inverse = 1.0 / y
    rest = (inverse * (inverse * inverse).polynomial(LGAMMA_SERIES)) + LGAMMA_CONSTANT
    far = (y - 0.5).times_plus(log(y) - 1.0, rest)
    value = near.where(y < FAR, far)
    r = x - x.rounded()
    distance = sin_pi(r, r * r).where(negative, a)
    other = (-log(distance.maximum(2.0**-520))).where(shifted, 0.0)
    return Outcome(other + (-value).where(negative, value), absolute=(abs(value) + abs(other)) * (44 * ULP))


def digamma(x: Number) -> Outcome:
    """L = digamma y, and R = -1/x or -pi cot pi x: L + R.

    For y < 8 L has 11 u of the polynomial and 2 u of the factor and its product, and, where x < 1/2, an absolute error
    of 2 u from y, digamma' being at most 1.65. From 8 on it is log y - (1/(2y) + S(1/y**2)), of at least 2.01: 20 u of
    the logarithm, which is 1.04 of it, and 4 u of the rest: 25 u. -1/x has u. The cotangent is a quotient of the cosine
    by s = |sin pi x| / pi: 10 u / s and 16 u of itself, which is at most 1/s. Together, with the last sum, less than
    29 u (|L| + 1/s), for s = x where 0 < x < 1/2, and 1/s is at least 2."""
    m = x.m
    a, negative, shifted, y = _sides(x)
    near = ((y - ZERO_HIGH) - ZERO_LOW) * DIGAMMA_RATIO.at(y)
    inverse = 1.0 / y
    far = log(y) - inverse.times_plus(0.5, (inverse * inverse).polynomial(DIGAMMA_SERIES))
    value = near.where(y < FAR, far)
    r = x - x.rounded()
    square = r * r
    distance = sin_pi(r, square).where(negative, a)
    slope = (1.0 / distance).where(shifted, 0.0)
    cosine = square.polynomial(COS_PI.coefficients).where(negative, 1.0)
    # cot pi x has the sign of r, and x > 0 that of 1/x
    turned = m.select(negative, r.sign, m.constant(0))
    other = (cosine * slope).flipped(turned)
    return Outcome(value - other, absolute=(abs(value) + slope) * (30 * ULP))
