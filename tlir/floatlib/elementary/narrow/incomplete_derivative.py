"""Kernels of the derivative of the incomplete gamma function in its shape and of random_gamma_grad, for a and x below
2**12, where the specification has values. Errors are counted in units of u = 2**-53; names are those of
``narrow.incomplete``.

D'(a) = D(a) (log x - digamma(a + 1)), so that -dP/da is, by the sums of ``narrow.incomplete``, D(a) T, with

    T = v_0 + t_1 v_1 + ...,  t_n = t_(n-1) x/(a + n),  v_n = digamma(a + n + 1) - log x                  for x < a,
    T = t_1 w_1 + ... + t_n w_n + t_n B(b),  t_j = t_(j-1) (a - j + 1)/x,  w_j = log x - digamma(a - j + 1) for x >= a,

b = a - n <= 1, B(b) = (dQ/db) / D(b). v_n and w_j grow by 1/(a + n) and 1/(a - j): all numbers are positive. The
density is D(a) a/x, and random_gamma_grad x/a T, without an exponential. A step has 7 u, so that T has 10 N u, and
what its first factor has, v_0 or w_1.

**What is left**, with t and r being the last term and its factor: t (v r/(1 - r) + r/(1 - r)**2 / (a + N)) for x < a,
as v grows by less than 1/(a + N) from then on. For x >= a and c = a - N above 1, log z <= log x + (z - x)/x under the
integral of (log z - digamma c) over the density beyond x makes it at most t (w c/(x - c + 1) + c/x).

**v_0 and w_1** are 1/a - g + l and g + l', g = log a - digamma a, with l = -log(x/a) or log(x/a), and so sums of two
numbers that are not negative. l has 28 u (``narrow.beta``: 1 + d/a, d = x - a). From a = 8 on g is 1/(2a) + S, of 30 u,
and 1/a - g of 40 u; below that they have 22 u (|log a| + |digamma a|) + 3 u/a. What they have relative to v_0 or w_1
T has, too.

**B(b) for x < 2** is e**x times (digamma(b + 1) - log x)(1 - b S) + S_2, S_2 = x/(b + 1)**2 - 2 x**2 / (2! (b + 2)**2)
+ ..., because P(b, x) = w (1 - b S). With M = |log x| + |digamma(b + 1)|, of which it has 24 u M + 5 u, 1 - b S <= 1,
which has 24 u b x + u, and S_2, of which pairs of terms have 20 u, the magnitudes of all less than 1.85 x, it has
25 u M + 5 u + 24 u M b x + 48 u x.

**B(b) for x >= 2** is F (1 + b (log x - digamma(b + 1) + f)), F = 1/(x + (1 - b)/s_1) and f = F'/F = (1 + (1 - b) o_1)
/ (x s_1 + 1 - b), where o_k is the derivative of log s_k in b: o_k = q_k (o_(k+1) + 1/c), c = k + 1 - b, q_k being the
factor by which log s_k changes with log s_(k+1). It is at most k / (sqrt x + sqrt(x + k))**2, and its logarithm changes
by no more than s_(k+1)'s. With s_(k+1) = 1 and o_(k+1) = 0 after 56 steps s_1 is within 2**-51 and o_1 within 2**-48 of
their values (a test follows the bounds, rounding of 20 u a step included, down from step 5000). Everything is positive:
150 u.
"""

from __future__ import annotations

from tlir.floatlib.elementary.narrow.exp import FAR, exponential
from tlir.floatlib.elementary.narrow.gamma import DIGAMMA_RATIO, DIGAMMA_SERIES, ZERO_HIGH, ZERO_LOW
from tlir.floatlib.elementary.narrow.incomplete import (
    FACTORIALS,
    FRACTION_FROM,
    LARGEST_ERROR,
    LEAST_TERM,
    SERIES_TERMS,
    SMALLEST,
    density,
    fractional,
    known,
    quotients,
)
from tlir.floatlib.elementary.narrow.log import log, log1p_of
from tlir.floatlib.elementary.narrow.outcome import Outcome
from tlir.floatlib.elementary.number import Number
from tlir.floatlib.soft.machine import Predicate

ULP = 2.0**-53
TERMS, FRACTION_STEPS = 96, 56
ASYMPTOTIC_FROM = 8.0
LARGEST_OPERAND = 2.0**12


def _digamma(y: Number) -> Number:
    """For y below 8: 13 u, and those of y."""
    return ((y - ZERO_HIGH) - ZERO_LOW) * DIGAMMA_RATIO.at(y)


def _first(a: Number, x: Number, upper: Predicate) -> tuple[Number, Number]:
    """(w_1 where ``upper`` holds and v_0 elsewhere, its relative error) for a > 1; any positive numbers for others."""
    near = a < ASYMPTOTIC_FROM
    small, far = a.between(1.0, ASYMPTOTIC_FROM), a.maximum(ASYMPTOTIC_FROM)
    logarithm, digamma, inverse = log(small), _digamma(small), 1.0 / a
    gap, width = logarithm - digamma, (abs(logarithm) + abs(digamma)) * (22 * ULP) + inverse * (3 * ULP)
    reciprocal = 1.0 / far
    series = (reciprocal * reciprocal).polynomial(DIGAMMA_SERIES)
    half = reciprocal * 0.5
    gap = gap.where(upper, inverse - gap).where(near, (half + series).where(upper, half - series))
    width = width.where(near, gap * (40 * ULP))
    ratio = (x - a) * inverse
    beside = abs(ratio) < 0.5
    change = log1p_of(ratio.where(beside, 0.0)).where(beside, log(x * inverse))
    change = change.where(upper, -change).maximum(0.0)
    first = gap + change
    return first, (width + change * (28 * ULP)) / first + 2 * ULP


def _base_near(b: Number, x: Number, logarithm: Number, digamma: Number) -> tuple[Number, Number]:
    """(B, its relative error) for x < 2."""
    square = x * x
    total, other = x.like(0.0), x.like(0.0)
    for n in range(SERIES_TERMS - 1, 0, -2):
        first, second = b + float(n), b + float(n + 1)
        inverse = 1.0 / (first * second)
        one, two = second * FACTORIALS[n], first * x * FACTORIALS[n + 1]
        total = square.times_plus(total, (one - two) * inverse)
        pair = one * second * float(n) - two * first * float(n + 1)
        other = square.times_plus(other, pair * inverse * inverse)
    bracket = (digamma - logarithm) * (1.0 - b * (x * total)) + x * other
    size = abs(logarithm) + abs(digamma)
    error = (size * (b * x * 24.0 + 25.0) + x * 48.0 + 5.0) * ULP
    return bracket * exponential(x), error / bracket + 12 * ULP


def _base_far(b: Number, x: Number, logarithm: Number, digamma: Number) -> Number:
    """B for x >= 2, of 150 u."""
    s, slope = x.like(1.0), x.like(0.0)
    for k in range(FRACTION_STEPS, 0, -1):
        c = float(k + 1) - b
        lower = x.times_plus(s, c)
        upper = s.times_plus(float(k), lower)
        inverse = 1.0 / (lower * upper)
        slope = (s * float(k) * inverse) * slope.times_plus(c, 1.0)
        s = upper * (upper * inverse)
    rest = 1.0 - b
    inverse = 1.0 / x.times_plus(s, rest)
    change = slope.times_plus(rest, 1.0) * inverse
    return s * inverse * b.times_plus(logarithm - digamma + change, 1.0)


def _sum(a: Number, x: Number, upper: Predicate) -> tuple[Number, Number]:
    """(T, its absolute error); ``upper`` holds where the second sum is taken, x >= a or a <= 1."""
    m = a.m
    logarithm = log(x)
    weight, first_error = _first(a, x, upper)
    step, last = a.like(-1.0).where(upper, 1.0), (a - 1.0).where(upper, float(TERMS))
    total, term, inverse = weight.like(0.0).where(upper, weight), x.like(1.0), 1.0 / x
    ratio = reciprocal = before = a
    least = x.like(0.0).where(upper, LEAST_TERM)
    for n in range(0, TERMS, 2):
        places = [a + step * float(n + 1), a + step * float(n + 2)]
        for k, (place, reciprocal) in enumerate(
            zip(places, quotients(a.like(1.0), places[0], a.like(1.0), places[1]), strict=True), n
        ):
            here = last > float(k)
            ratio = (before * inverse).where(upper, x * reciprocal)
            term = (term * ratio).where(here, term)
            grown = (weight + reciprocal).where(here, weight)
            total = total + (term * weight.where(upper, grown)).where(here, 0.0)
            weight, before = grown, place
        term = term.maximum(least)
    rest = a - float(TERMS)
    beyond = weight * (rest / (x - rest + 1.0)) + rest * inverse
    short = ratio / (1.0 - ratio)
    left = term * beyond.where(upper, short * (weight + reciprocal / (1.0 - ratio)))
    reached = m.both(upper, a < float(TERMS + 1))
    left = left.where(m.negation(reached), 0.0)

    b = fractional(a, TERMS)
    digamma = _digamma(b + 1.0)
    near, near_error = _base_near(b, x.minimum(FRACTION_FROM), logarithm, digamma)
    far = _base_far(b, x.between(FRACTION_FROM, LARGEST_OPERAND), logarithm, digamma)
    here = x < FRACTION_FROM
    base = term * near.where(here, far).where(reached, 0.0)
    base_error = near_error.where(here, 150 * ULP)
    error = total * (first_error + 10 * TERMS * ULP) + base * (base_error + 10 * TERMS * ULP) + left
    return total + base, error


def _upper(a: Number, x: Number) -> Predicate:
    return a.m.negation(a.m.both(x < a, a > 1.0))


def _refused(a: Number, x: Number) -> Predicate:
    return a.m.negation(a.m.both(a < LARGEST_OPERAND, x < LARGEST_OPERAND))


def igamma_grad_a(a: Number, x: Number) -> Outcome:
    """-D(a) T. Where D is outside every format, so is this, because T is below 2**100."""
    m = a.m
    total, width = _sum(a, x, _upper(a, x))
    scale, exponent_error, exponent = density(a, x, log(x))
    value = scale * total
    error = scale * width + value * (exponent_error + 20 * ULP)
    tiny = exponent + exponent_error < -(FAR - 1.0)
    value = value.maximum(SMALLEST)
    error = (value * 0.25).where(tiny, error)
    outcome = known(value, error, m.either(_refused(a, x), m.both(exponent_error > LARGEST_ERROR, m.negation(tiny))))
    return Outcome(-value, doubtful=outcome.doubtful, absolute=outcome.absolute)


def random_gamma_grad(a: Number, x: Number) -> Outcome:
    """x/a T."""
    total, width = _sum(a, x, _upper(a, x))
    ratio = x / a
    value = ratio * total
    return known(value, ratio * width + value * (3 * ULP), _refused(a, x))
