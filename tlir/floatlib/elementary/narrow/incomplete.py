"""Kernels of the regularized incomplete gamma functions. Errors are counted in units of u = 2**-53.

With D(a) = x**a e**-x / gamma(a + 1) (NIST Digital Library of Mathematical Functions, 8.8 and 8.11)

    P(a, x) = D(a) (1 + x/(a + 1) + x**2 / ((a + 1)(a + 2)) + ...)                                      for x < a,
    Q(a, x) = D(a) (a/x + a (a - 1)/x**2 + ... down to a factor above 1) + Q(b, x), b = a - n <= 1,     for x >= a:

positive terms, each less than the one before, so that one loop of N = ``TERMS`` steps sums either. A step has 6 u, so
that a term has 6 N u, and their sum 7 N u. What is left of the first sum is at most t r / (1 - r), t being the last
term and r its factor; of the second as well, where it has not come down to b (DLMF 8.11(i): Q(a, x) <
D(a) a/(x - a + 1) for a >= 1). Q = 1 - P is at least 0.36 where x < a and a > 1, and P = 1 - Q at least 1/2 where
x >= a, because the median is below a.

**D** For a < 7 the exponent is L - x with L = a l, l = log x + (1 - a) R(1 + a), R = lgamma y / ((y - 1)(y - 2)) (6 u,
and 2 u for the rounding of y: |y R'| <= 2 R, as R is a mean of digamma', ``gamma.lgamma_ratio``, and
-t digamma''(t) <= 2 digamma'(t)). With M = |log x| + |1 - a| R, L has 24 u a M, and the exponent 25 u a M + u x. From 7
on Stirling's series: a log(x/a) - (x - a) - S(1/a) has u (a + 24 a |log(x/a)| + 3 |x - a|) and 63 u, most of it for the
term that follows the last of S; and the factor 1 / sqrt(2 pi a) 5 u. The exponential has 10 u.

Where the exponent and its error are below -599, D is below 2**-864, and P and Q are at most 600 + sqrt a times that
(|x - a| is above 24 sqrt a then, or a below 599): outside every format. Where its error is above 2**-20 otherwise,
nothing is known, nor where the result's is above a quarter of it.

**Q(b, x) for x < 2** is w b S - (w - 1), w = e**L, S = x/(b + 1) - x**2 / (2! (b + 2)) + ... up to n = 22: the next
term is below x u / 8. By Horner's rule, with pairs of terms of 9 u, S has 22 u x, as the magnitudes of its terms add up
to less than 1.85 x. L has 24 u b M, w 10 u more, and w - 1 28 u and w times L's error. As b S <= 1 and S <= x, together
at most 29 u |w - 1| + w b (48 u M + 40 u x).

**Q(b, x) for x >= 2** is D(b) b / (x + (1 - b)/s_1), s_k = 1 + k/(x + (k + 1 - b)/s_(k+1)) (DLMF 8.9.2), where every
number is positive. The logarithm of s_k changes with that of s_(k+1) = s by the factor k c s / ((x s + c)(x s + c +
k s)), c = k + 1 - b, which is at most k / (sqrt x + sqrt(x + k))**2 for every s > 0. Begun with s = 1 for an s between
1 and 1 + k/x the fraction is within 2**-46 (128 u) of its value therefore (a test multiplies these factors). A step
computes the exact one with elements that are within 4 u, which change s by 8 u; with these factors 10 u in all. With
D's errors it has less than 25 u M + u x + 160 u.
"""

from __future__ import annotations

from functools import partial
from math import factorial, inf

from flint import arb

from tlir.floatlib.elementary.narrow.exp import FAR, expm1_of, exponential
from tlir.floatlib.elementary.narrow.fit import rounded
from tlir.floatlib.elementary.narrow.gamma import LGAMMA_RATIO, LGAMMA_SERIES
from tlir.floatlib.elementary.narrow.log import log
from tlir.floatlib.elementary.narrow.outcome import Outcome
from tlir.floatlib.elementary.number import Number
from tlir.floatlib.soft.machine import Predicate

ULP = 2.0**-53
TERMS = 96
"""So many reach from the middle of the distribution to 2**-45 of the sum for a up to 100."""
STIRLING_FROM = 7.0
FRACTION_FROM, FRACTION_STEPS, SERIES_TERMS = 2.0, 48, 22
LARGEST_ERROR = 2.0**-20
"""Of an exponent."""
SMALLEST = 2.0**-860
LEAST_TERM = 2.0**-200
"""A term below is taken for it where sums are at least 1, and series without end: subnormal numbers are slow."""
LARGEST = 1024.0
"""Where x is beyond it, e**-x is outside every format."""

TWO_PI = rounded(lambda: 2 * arb.pi())
FACTORIALS = tuple(rounded(partial(lambda n: arb(1) / factorial(n), n)) for n in range(SERIES_TERMS + 1))


def _ratio(a: Number, logarithm: Number) -> tuple[Number, Number]:
    """(l, M) for a < 7."""
    rest = (1.0 - a) * LGAMMA_RATIO.at(a + 1.0)
    return logarithm + rest, abs(logarithm) + abs(rest)


def density(a: Number, x: Number, logarithm: Number) -> tuple[Number, Number, Number]:
    """(D, the error of its exponent, the exponent)."""
    near = a < STIRLING_FROM
    ratio, size = _ratio(a.minimum(STIRLING_FROM), logarithm)
    exponent = a * ratio - x
    error = (a * size) * (25 * ULP) + x * ULP
    far = a.maximum(STIRLING_FROM)
    distance = x - far
    slope = far * log(x / far)
    inverse = 1.0 / far
    series = inverse * (inverse * inverse).polynomial(LGAMMA_SERIES)
    exponent = exponent.where(near, slope - distance - series)
    far_error = (far + abs(slope) * 24.0 + abs(distance) * 3.0 + 63.0) * ULP
    error = error.where(near, far_error)
    factor = 1.0 / (far * TWO_PI).sqrt()
    return exponential(exponent) * factor.like(1.0).where(near, factor), error, exponent


def _below_one(b: Number, x: Number, logarithm: Number) -> tuple[Number, Number]:
    """(Q, its absolute error) for 0 < b <= 1."""
    ratio, size = _ratio(b, logarithm)
    exponent = b * ratio
    small = x.minimum(FRACTION_FROM)
    total = x.like(0.0)
    for n in range(SERIES_TERMS - 1, 0, -2):
        first, second = b + float(n), b + float(n + 1)
        pair = second * FACTORIALS[n] - first * FACTORIALS[n + 1] * small
        total = (small * small).times_plus(total, pair / (first * second))
    weight = b * exponential(exponent)
    difference = expm1_of(exponent.between(-FAR, FAR))
    near = weight * (small * total) - difference
    near_error = abs(difference) * (29 * ULP) + weight * (size * (48 * ULP) + small * (40 * ULP))

    large = x.between(FRACTION_FROM, LARGEST)
    p, q = x.like(1.0), x.like(1.0)
    for k in range(FRACTION_STEPS, 0, -1):
        q = (large * p) + (float(k + 1) - b) * q
        p = p.times_plus(float(k), q)
    far = exponential(exponent - x) * (b / (large + (1.0 - b) * q / p))
    far_error = far * (size * (25 * ULP) + x * ULP + 160 * ULP)
    here = x < FRACTION_FROM
    return near.where(here, far), near_error.where(here, far_error)


def _step(a: Number, x: Number, upper: Predicate, k: int) -> tuple[Number, Number]:
    """Numerator and denominator of a factor of the sums."""
    factor = a - float(k)
    return factor.where(factor > 1.0, 0.0).where(upper, x), x.where(upper, a + float(k + 1))


def quotients(p: Number, q: Number, r: Number, s: Number) -> tuple[Number, Number]:
    """(p/q, r/s) by one division, 4 u beside those of p and q, or r and s, for numbers within 2**510."""
    inverse = 1.0 / (q * s)
    return p * s * inverse, r * q * inverse


def fractional(a: Number, most: int) -> Number:
    """What is left of an a > 0 when as many ones are taken off as leave it above 0, for a < ``most`` + 1; at most 1."""
    near = a.minimum(float(most + 2))
    b = near - (near - 0.5).rounded()
    return b.where(b > 0.0, b + 1.0)


def _incomplete(a: Number, x: Number, upper: Predicate) -> tuple[Number, Number, Predicate]:
    """(Q where ``upper`` holds and P elsewhere, its absolute error, where nothing is known)."""
    m = a.m
    logarithm = log(x)
    scale, exponent_error, exponent = density(a, x, logarithm)
    total, term, ratio = x.like(0.0).where(upper, 1.0), x.like(1.0), x.like(0.0)
    least = x.like(0.0).where(upper, LEAST_TERM)
    for k in range(0, TERMS, 2):
        ratios = quotients(*_step(a, x, upper, k), *_step(a, x, upper, k + 1))
        for ratio in ratios:
            term = term * ratio
            total = total + term
        term = term.maximum(least)
    left = term * (ratio / (1.0 - ratio))
    value = scale * total
    error = value * (exponent_error + (7 * TERMS + 20) * ULP) + scale * left
    # the rest of the upper function, where the sum came down to it
    rest, rest_error = _below_one(fractional(a, TERMS), x, logarithm)
    reached = m.both(upper, a < float(TERMS + 1))
    value = value + rest.where(reached, 0.0)
    error = error + rest_error.where(reached, 0.0) + value * ULP
    tiny = exponent + exponent_error < -(FAR - 1.0)
    value = value.maximum(SMALLEST)
    error = (value * 0.25).where(tiny, error)
    return value, error, m.both(exponent_error > LARGEST_ERROR, m.negation(tiny))


def known(value: Number, error: Number, doubtful: Predicate) -> Outcome:
    """An outcome with an absolute error, doubtful also where that is above a quarter of the value."""
    return Outcome(value, doubtful=value.m.either(doubtful, error > value * 0.25), absolute=error)


def gamma_inside(a: Number, x: Number) -> Predicate:
    """Positive finite operands."""
    m = a.m
    return m.both(m.both(a > 0.0, a < inf), m.both(x > 0.0, x < inf))


def _outcome(value: Number, error: Number, doubtful: Predicate, complement: Predicate) -> Outcome:
    """Of the value or, where ``complement`` holds, of 1 less it."""
    return known((1.0 - value).where(complement, value), (error + ULP).where(complement, error), doubtful)


def igamma(a: Number, x: Number) -> Outcome:
    """P, from a on 1 - Q."""
    upper = a.m.negation(x < a)
    return _outcome(*_incomplete(a, x, upper), upper)


def igammac(a: Number, x: Number) -> Outcome:
    """Q, below an a > 1 1 - P."""
    lower = a.m.both(x < a, a > 1.0)
    return _outcome(*_incomplete(a, x, a.m.negation(lower)), lower)
