"""Kernels of the inverse error function and of the normal distribution. Errors are counted in units of u = 2**-53.

``INVERSE``: erf_inv(1 - t) / (1 - t) on 192 cells of t between 2**-24 and 1, within 50 u. y = erf_inv x has only
positive derivatives at 0, because y' = sqrt(pi)/2 e**(y*y); so its series has no negative coefficients, and |erf_inv z|
<= erf_inv |z|. In an ellipse about a cell, the quotient is largest at the least t therefore.

``TAIL``: T(r), the inverse of erfc at e**(-r*r), on 96 cells of r from 4 to 32, within 5 u. From e**(T*T) erfc T = w(T)
follows T' = sqrt(pi) z w(T), where |w(T)| <= w(Re T) (``narrow.error``). So if sqrt(pi) (c + R) w(T(c) - d) R < d, then
|T(z) - T(c)| < d for |z - c| <= R: it could not get there.
"""

from __future__ import annotations

from math import inf

from flint import acb, arb

from tlir.floatlib.elementary.narrow.cells import Cells
from tlir.floatlib.elementary.narrow.error import scaled_erfc_everywhere
from tlir.floatlib.elementary.narrow.exp import exponential
from tlir.floatlib.elementary.narrow.fit import rounded
from tlir.floatlib.elementary.narrow.log import log, log1p_of
from tlir.floatlib.elementary.narrow.outcome import Outcome
from tlir.floatlib.elementary.number import Number


def _inverse_ratio(t: acb) -> acb:
    """Of a real t."""
    x = 1 - t.real
    return acb(x.erfinv() / x)


def _tail(r: acb) -> acb:
    """Of a real r."""
    return acb((-r.real * r.real).exp().erfcinv())


SHARES = tuple(k / 32 for k in range(1, 30))


def _largest_tail(middle: arb, reach: arb) -> arb:
    """The least d of some for which the condition above holds, infinite where there is none."""
    value = _tail(acb(middle)).real
    for share in SHARES:
        distance, end = value * share, value * (1 - share)
        slope = arb.pi().sqrt() * (middle + reach) * (end * end).exp() * end.erfc()
        if slope * reach < distance:
            return distance
    return arb("inf")


TAIL = Cells(_tail, 4.0, 32.0, 5, 11, 5 * 2.0**-53, largest=_largest_tail)
INVERSE = Cells(_inverse_ratio, 2.0**-24, 1.0, 3, 9, 50 * 2.0**-53)


def erf_inv(x: Number) -> Number:
    """x times the quotient at t = 1 - |x|, which is exact for |x| >= 1/2. Below, it has an error of u, at t = 1 of 2 u
    (the last cell ends before it), and the quotient's derivative is less than a third of it: 50 u + u + u."""
    return x * INVERSE.at(1.0 - abs(x))


SQRT2, SQRT_HALF = rounded(lambda: arb(2).sqrt()), rounded(lambda: arb(0.5).sqrt())
LEAST = 2.0**-24


def inverse(x: Number, t: Number) -> Number:
    """The inverse of erf at x >= 0, of erfc at t = 1 - x. For t >= 2**-24 it is x times the quotient. Below, T of the
    root of -log t: 20 u, of which the root makes half, u of its own, and T' r / T < 1.25 of the eleven; with 5 u of T
    19 u."""
    far = TAIL.at((-log(t.minimum(LEAST))).sqrt())
    return far.where(t < LEAST, x * INVERSE.at(t))


def ndtri(p: Number) -> Number:
    """sqrt 2 times the inverse of erfc at t = 2q, q the smaller one of p and 1 - p, which is exact then; negative for
    p < 1/2. 1 - t is exact for t >= 1/2 and has u below: 50 u and 2 u, and 2 u of the product."""
    q = p.minimum(1.0 - p)
    t = q + q
    magnitude = inverse(1.0 - t, t) * SQRT2
    return (-magnitude).where(p < 0.5, magnitude)


FAR, HUGE = 64.0, 2.0**30


def log_ndtr(x: Number) -> Outcome:
    """With t = |x| / sqrt 2, which has 2 u, and so w(t) = e**(t*t) erfc t 18 u: log(w/2) - x*x/2 for x < 0, two terms
    < 0, of which the first is below -log 2: 18 u / log 2 + 20 u and the sum, 47 u. x*x is exact. Where it is above
    2**60 the first is less than 2**-53 of it, and what is above x*x/2, which has 48 bits, and within 2**-49 of it,
    rounds as the value does.

    Otherwise log(1 - q) with q = e**(-x*x/2) w / 2 of 29 u, which count at most 1.45 times: with 22 u of the logarithm
    65 u. From 64 on it is that of 64, which rounds like everything smaller."""
    negative = x < 0.0
    a = abs(x)
    b = a.where(negative, a.minimum(FAR))
    half = a * a * 0.5
    w = scaled_erfc_everywhere(b * SQRT_HALF) * 0.5
    below = log(w) - half
    huge = x < -HUGE
    below = (half * -(1.0 + 2.0**-50)).where(huge, below)
    above = log1p_of(-(exponential(-half) * w))
    return Outcome(below.where(negative, above), error=a.like(2.0**-52).where(huge, LOG_NDTR_ERROR))


LOG_NDTR_ERROR = 66 * 2.0**-53

LARGEST = 2.0**600
"""Beyond all operands; stands for infinities."""
LEAST_EXPONENT = 600.0


def log_add_exp(x: Number, y: Number) -> Outcome:
    """m + L, m the larger one, L = log(1 + e**-d), d = |x - y|, which has an error of u d: e**-d has 10 u and d u, and
    L 32 u and d u, for 0 <= d <= 600 (e**-600 rounds like everything smaller). Exact is what is added to e**-inf."""
    m = x.m
    infinite = m.either(x.equals(-inf), y.equals(-inf))
    x, y = x.between(-LARGEST, LARGEST), y.between(-LARGEST, LARGEST)
    largest = x.maximum(y)
    d = abs(x - y).minimum(LEAST_EXPONENT)
    more = log1p_of(exponential(-d))
    width = abs(largest).times_plus(2.0**-52, more * d.times_plus(2.0**-52, 40 * 2.0**-53))
    return Outcome(largest.where(infinite, largest + more), infinite, largest, absolute=width)
