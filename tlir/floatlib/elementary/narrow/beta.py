"""A kernel of the regularized incomplete beta function. Errors are counted in units of u = 2**-53.

With y = 1 - x (u), s = a + b and E(a, b) = x**a y**b / beta(a, b) (NIST Digital Library of Mathematical Functions,
8.17)

    series    I(x; a, b) = E(a, b) / a (1 + x s/(a + 1) + x**2 s (s + 1) / ((a + 1)(a + 2)) + ...)
    sum       I(x; a, b) = E(a, b) / b (t_1 + ... + t_n) + I(x; a, b - n),
              t_0 = 1, t_j = t_(j-1) (b - j + 1) / ((s - j) y)
    fraction  I(x; a, b) = E(a, b) / V(b), 0 < b <= 1,
              V = a y + n_1 x/(a + 1 + n_2 x/((a + 2) y + n_3 x/(a + 3 + ...))),
              n_(2m) = m (a + b + m - 1), n_(2m+1) = (m + 1 - b) (a + m)

or 1 - I(y; b, a). The sum goes down to c = b - n, 0 < c <= 1, where E(a, c) / c is E(a, b) / b t_n. The fraction is
Gauss's (DLMF 15.7.5) of the series after Pfaff's transformation. All numbers are positive. One loop of N = ``TERMS``
steps takes the series or the sum; a step has 10 u, so that either has 11 N u.

What is chosen: from x on the side of the mean a/s on which it lies, that side's function by the series where its first
parameter is the smaller one, otherwise by the sum and the fraction, if that converges: where y >= 1/32 or a y >= 2. If
not, the other side's series does, quickly. Above the mean the function is taken itself, if b <= 1 and its fraction
converges: I is small beside 1 where b is. The choice is one of accuracy and time alone, but for this: the series is
taken where x s <= a, or else where x <= 1/32 and b x <= 2; the sum where x s <= a, or else without terms.

**What is left** of the series is at most t r / (1 - r), t being the last term and r the larger one of its factor and x,
between which the next factors are; of the sum, where c = b - N is above 1, t c/a / (1 - x max(1, (a + c)/(a + 1)))
(DLMF 8.17.8). These differences are at least 2**-42 where a and b are below 2**40. Beyond, up to 2**300, only that I is
outside every format is known, where E is: as the exponent's error is counted, |d| is above 2**-24 (a y + b x) then, and
the side on which x lies is the right one.

**The fraction** is taken with its elements divided by those beside it, (a + 1)**2 y, so that it has one constant
x/y / (a + 1)**2 in it and numerator and denominator are within 2**830. The logarithm of V_j changes with that of
V_(j+2) by the factor g / (1 + sqrt(1 + g))**2 at most, whatever that is, for g = k_(j+1) x/y, k_(2m+1) =
(m + 1 - b)(a + m) / ((a + 2m)(a + 2m + 1)) (as in ``narrow.incomplete``). k_1 <= 1, k_(2m+1) <= (1 + 1/(2m)) / 4,
because (m + 1)(a + m) is at most a quarter of (a + 2m + 1)**2; and k_(2m+1) x/y <= (m + 1)/2 where a y >= 2. After 96
steps it is within 2**-46 (128 u) of its value (a test multiplies the factors). A step computes the exact one with
elements that are within 15 u; of what two of them do to the result, these factors make at most 2.6 in sum: 78 u.

**E** = A**a B**b a b/s h(s) / (h(a) h(b)) with A = x s/a, B = y s/b and h(a) = gamma(a + 1) e**a / a**a. With
d = a y - b x, A = 1 - d/a and B = 1 + d/b. Where these quotients are at most 1/2 in magnitude the logarithm is taken
of that: d has 3 u (a y + b x), so that a log A has 8 u (a y + b x) and 24 u of itself. Otherwise A has 4 u, less than
10 u of its logarithm: 31 u. log h(a) is a (1 - log a - (1 - a) R(1 + a)) for a < 7 (``narrow.incomplete``; 24 u of the
terms' magnitudes), and from 7 on log(2 pi a)/2 + S(1/a) with 63 u. Sums add 4 u of their terms, the factors 20 u. Where
the exponent and its error are below -599, I is outside every format: below 2**-864 times 10 (a + 1).

**Exact** is I(x; 1, 1) = x, and I(1/2; a, a) = 1/2. Other values are rational where a or b is an integer, and the
specification computes what may be a number of 24 bits then; that none else is is only conjectured, there as here.
"""

from __future__ import annotations

from math import inf

from tlir.floatlib.elementary.narrow.exp import FAR, exponential
from tlir.floatlib.elementary.narrow.gamma import LGAMMA_RATIO, LGAMMA_SERIES
from tlir.floatlib.elementary.narrow.incomplete import (
    LARGEST_ERROR,
    LEAST_TERM,
    SMALLEST,
    STIRLING_FROM,
    TWO_PI,
    fractional,
    quotients,
)
from tlir.floatlib.elementary.narrow.log import log, log1p_of
from tlir.floatlib.elementary.narrow.outcome import Outcome
from tlir.floatlib.elementary.narrow.power import short
from tlir.floatlib.elementary.number import Number
from tlir.floatlib.soft.machine import Predicate

ULP = 2.0**-53
TERMS, FRACTION_STEPS = 96, 96
LEAST, LEAST_PRODUCT = 1 / 32, 2.0
LARGEST_PARAMETER, LARGEST_KNOWN = 2.0**40, 2.0**300


def beta_inside(a: Number, b: Number, x: Number) -> Predicate:
    """Positive finite parameters, and 0 < x < 1."""
    m = a.m
    parameters = m.both(m.both(a > 0.0, a < inf), m.both(b > 0.0, b < inf))
    return m.both(parameters, m.both(x > 0.0, x < 1.0))


def _power(a: Number, value: Number, distance: Number) -> tuple[Number, Number]:
    """(a log value, 31 u of its magnitude), value being 1 + distance."""
    near = abs(distance) < 0.5
    result = a * log1p_of(distance.where(near, 0.0)).where(near, log(value))
    return result, abs(result) * (31 * ULP)


def _scaled_gamma(a: Number) -> tuple[Number, Number, Number]:
    """(f, e, the error of e): h(a) = sqrt f e**e."""
    near = a < STIRLING_FROM
    small, far = a.minimum(STIRLING_FROM), a.maximum(STIRLING_FROM)
    logarithm, rest = log(small), (1.0 - small) * LGAMMA_RATIO.at(small + 1.0)
    exponent = small * (1.0 - logarithm - rest)
    error = small * ((abs(logarithm) + abs(rest) + 1.0) * (24 * ULP))
    inverse = 1.0 / far
    series = inverse * (inverse * inverse).polynomial(LGAMMA_SERIES)
    factor = far.like(1.0).where(near, far * TWO_PI)
    return factor, exponent.where(near, series), error.where(near, 63 * ULP)


def _density(a: Number, b: Number, x: Number, y: Number, s: Number) -> tuple[Number, Number, Number]:
    """(E s/(a b), the error of its exponent, the exponent)."""
    first, second = a * y, b * x
    d = first - second
    left, left_error = _power(a, x * (s / a), -(d / a))
    right, right_error = _power(b, y * (s / b), d / b)
    factor, exponent, error = _scaled_gamma(s)
    total, sizes = left + right + exponent, abs(left) + abs(right) + abs(exponent)
    error = error + left_error + right_error + (first + second) * (16 * ULP)
    for parameter in (a, b):
        divisor, exponent, width = _scaled_gamma(parameter)
        factor = factor / divisor
        total, sizes, error = total - exponent, sizes + abs(exponent), error + width
    return exponential(total) * factor.sqrt(), error + sizes * (4 * ULP), total


def _fraction(p: Number, q: Number, z: Number, w: Number) -> Number:
    """1/V(q) for 0 < q <= 1."""
    unit = p + 1.0
    inverse = 1.0 / unit
    scale = z / w * inverse * inverse
    upper, lower = (p + float(FRACTION_STEPS)) * inverse, p.like(1.0)
    for j in range(FRACTION_STEPS, 0, -1):
        k = j // 2
        element = (p + (q + float(k - 1))) * float(k) if j % 2 == 0 else (float(k + 1) - q) * (p + float(k))
        upper, lower = upper * ((p + float(j - 1)) * inverse) + element * scale * lower, upper
    return lower / (upper * unit * w)


def regularized_incomplete_beta(a: Number, b: Number, x: Number) -> Outcome:
    m = a.m
    y, s = 1.0 - x, a + b
    density, exponent_error, exponent = _density(a, b, x, y, s)
    above = a < x * s
    less, more = a < b, b < a
    direct_ends = m.either(y > LEAST, a * y > LEAST_PRODUCT)
    other_ends = m.either(x > LEAST, b * x > LEAST_PRODUCT)
    direct = m.either(m.both(above, m.negation(b > 1.0)), m.both(m.negation(above), more))
    direct = m.both(direct, direct_ends)
    other = m.both(m.both(above, less), m.both(other_ends, m.negation(direct)))
    finite = m.either(direct, other)
    swapped = m.either(more, m.both(above, m.negation(less)))
    swapped = m.either(other, m.both(swapped, m.negation(finite)))
    p, q = b.where(swapped, a), a.where(swapped, b)
    z, w = y.where(swapped, x), x.where(swapped, y)

    # the numerators q - n or s + n, the denominators p + (q - n - 1) or p + (n + 1)
    step = a.like(-1.0).where(finite, 1.0)
    numerator, denominator = q.where(finite, s), q.where(finite, 0.0)
    factor, last = (1.0 / w).where(finite, z), (q - 1.0).where(finite, float(TERMS))
    total, term, ratio = a.like(0.0).where(finite, 1.0), a.like(1.0), a.like(0.0)
    least = a.like(0.0).where(finite, LEAST_TERM)
    for n in range(0, TERMS, 2):
        rows = [((numerator + step * float(k)) * factor, p + (denominator + step * float(k + 1))) for k in (n, n + 1)]
        for k, ratio in enumerate(quotients(*rows[0], *rows[1]), n):
            here = last > float(k)
            term = (term * ratio).where(here, term)
            total = total + term.where(here, 0.0)
        term = term.maximum(least)

    largest = ratio.maximum(z)
    rest = q - float(TERMS)
    bound = z * ((p + rest) / (p + 1.0)).maximum(1.0)
    reached = q < float(TERMS + 1)
    left = term * ((rest / p) / (1.0 - bound)).where(finite, largest / (1.0 - largest))
    left = left.where(m.negation(m.both(finite, reached)), 0.0)
    base = fractional(q, TERMS)
    tail = term * base * _fraction(p, base, z, w)
    total = total + tail.where(m.both(finite, reached), 0.0)

    scale = density * (p.where(finite, q) / s)
    value = scale * total
    error = value * (exponent_error + (11 * TERMS + 260) * ULP) + scale * left
    tiny = exponent + exponent_error < -(FAR - 1.0)
    value = value.maximum(SMALLEST)
    error = (value * 0.25).where(tiny, error)
    value, error = (1.0 - value).where(swapped, value), (error + ULP).where(swapped, error)

    half = m.both(a.equals(b), x.equals(0.5))
    exact = m.either(m.both(a.equals(1.0), b.equals(1.0)), half)
    rational = m.either(a.equals(a.rounded()), b.equals(b.rounded()))
    beside = abs(value - short(value, 29)) < error * 2.0
    possible = m.both(m.both(rational, beside), m.both(m.negation(tiny), abs(1.0 - value) > 2.0**-30))
    unknown = m.both(exponent_error > LARGEST_ERROR, m.negation(tiny))
    unknown = m.either(unknown, error > value * 0.25)
    unknown = m.either(unknown, a.maximum(b) > a.like(LARGEST_KNOWN).where(tiny, LARGEST_PARAMETER))
    return Outcome(
        x.where(exact, value),
        exact,
        x,
        m.both(possible, m.negation(exact)),
        m.both(unknown, m.negation(exact)),
        absolute=error.where(m.negation(exact), x * ULP),
    )
