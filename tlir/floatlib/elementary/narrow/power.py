"""Kernels of roots, hypot and power. Errors are counted in units of u = 2**-53."""

from __future__ import annotations

from flint import arb

from tlir.floatlib.elementary.narrow.exp import FAR, exponential
from tlir.floatlib.elementary.narrow.fit import Fit, rounded
from tlir.floatlib.elementary.narrow.log import log
from tlir.floatlib.elementary.narrow.outcome import Outcome
from tlir.floatlib.elementary.number import EXPONENT_BITS, Number, split

CBRT = Fit(lambda z: (z.log() / 3).exp(), 0.70710, 1.41422, 19, 5.7, 2.0**-47, centred=True)
CBRT_MIDDLE, CBRT_HALF = 0.70710 / 2 + 1.41422 / 2, 1.41422 / 2 - 0.70710 / 2
CBRT_2, CBRT_4 = rounded(lambda: arb(2).root(3)), rounded(lambda: arb(4).root(3))


def rsqrt(x: Number) -> Outcome:
    """1 / sqrt x: 2 u. Powers of four are exact, and nothing else: 1/x is the square of no other dyadic number."""
    k, m = split(x)
    half = k * 0.5
    value = 1.0 / x.sqrt()
    return Outcome(value, x.m.both(m.equals(1.0), half.equals(half.rounded())), value)


def short(x: Number, bits: int) -> Number:
    """x rounded to about 53 - bits bits (T. J. Dekker's splitting)."""
    scaled = x * (2.0**bits + 1)
    return scaled - (scaled - x)


def cbrt(x: Number) -> Outcome:
    """|x| = 2**(3q + j) m with j = -1, 0, 1; 2**q 2**(j/3) cbrt m.

    The polynomial, of degree 19 in (m - middle) / half, is within 2**-47 = 64 u of a function above 0.89, and its
    coefficients' magnitudes add up to less than 1.2: with Horner's rule 72 u, two roundings of the variable, which
    count 1/3, and two of the constant and its product: 76 u, relative to 0.89 or more: 90 u.

    A cube of 24 bits has a root of at most 8 bits, whose cube is computed without error."""
    magnitude = abs(x).between(2.0**-520, 2.0**520)
    k, m = split(magnitude)
    q, word = k.whole(1 / 3)
    j = q.times_plus(-3.0, k)
    root = ((m - CBRT_MIDDLE) * (1 / CBRT_HALF)).polynomial(CBRT.coefficients)
    factor = x.like(CBRT_2).where(j > 0.0, x.like(CBRT_4 / 2).where(j < 0.0, 1.0))
    value = (root * factor).scaled(word)
    candidate = short(value, 41)
    exact = (candidate * candidate * candidate).equals(magnitude)
    return Outcome(value.with_sign(x.sign), exact, candidate.with_sign(x.sign))


def hypot(x: Number, y: Number) -> Outcome:
    """sqrt(x*x + y*y): the squares are exact, 2 u.

    Exact is a root h of 24 bits for which h*h = x*x + y*y, where that sum is exact."""
    a, b = x * x, y * y
    total = a + b
    other = total - a
    error = (a - (total - other)) + (b - other)
    value = total.sqrt()
    candidate = short(value, 29)
    exact = x.m.both(error.equals(0.0), (candidate * candidate).equals(total))
    return Outcome(value, exact, candidate)


POWER_SLOPE, POWER_OFFSET = 22 * 2.0**-53, 16 * 2.0**-53

LARGEST_ODD = (1.0, 16777215.0, *(float(max(o for o in range(1, 4097) if o**n < 1 << 24)) for n in range(2, 16)))
"""For each exponent n up to 15 the largest number whose n-th power has at most 24 bits; nothing needs that of 0."""


def _odd_part(x: Number) -> tuple[Number, Number]:
    """(o, e): x = o 2**e for a positive normal x, o an odd integer."""
    m = x.m
    fraction = m.or_(m.and_(x.bits, m.constant((1 << EXPONENT_BITS) - 1)), m.constant(1 << EXPONENT_BITS))
    lowest = m.and_(fraction, m.subtract(m.constant(0), fraction))
    unit = Number(m, m.real_from_signed(lowest))
    odd = Number(m, m.real_from_signed(fraction)) / unit
    field = Number(m, m.real_from_signed(m.shift_right(x.bits, m.constant(EXPONENT_BITS))))
    unit_field = Number(m, m.real_from_signed(m.shift_right(unit.bits, m.constant(EXPONENT_BITS))))
    return odd, field - (1023.0 + EXPONENT_BITS) + (unit_field - 1023.0)


def power(x: Number, y: Number) -> Outcome:
    """e**t with t = y log |x|, clipped at 600; negative for x < 0 and odd y.

    The logarithm has 19 u and the product u, so t an error of 20 u |t|, and the result that and 10 u.

    |x| = o 2**e with an odd o. Exact are, with results of at most 24 bits: for o = 1, y with an integer e y; otherwise
    integers y = n from 1 to 15 with o**n < 2**24, and, because o**n < 2**24 with a fraction n needs o to be a power as
    well, multiples of 1/8 between 0 and 16. Of the last kind those that may be exact are marked doubtful."""
    m = x.m
    magnitude = abs(x).between(2.0**-520, 2.0**520)
    t = (log(magnitude) * y.between(-(2.0**600), 2.0**600)).between(-FAR, FAR)
    value = exponential(t)
    half = y * 0.5
    integral = y.equals(y.rounded())
    odd = m.both(integral, m.negation(half.equals(half.rounded())))
    sign = m.select(odd, x.sign, m.constant(0))
    error = abs(t).times_plus(POWER_SLOPE, POWER_OFFSET)

    odd_part, exponent = _odd_part(magnitude)
    n = y.between(0.0, float(len(LARGEST_ODD) - 1))
    product = exponent * y
    power_of_two = m.both(odd_part.equals(1.0), product.equals(product.rounded()))
    small = m.both(m.both(integral, n.equals(y)), m.negation(odd_part > _table(n.rounded(), LARGEST_ODD)))
    exact = m.either(power_of_two, m.both(small, y > 0.0))
    candidate = short(value, 29)
    eighths = y * 8.0
    fraction = m.both(m.both(eighths.equals(eighths.rounded()), m.negation(integral)), m.both(y > 0.0, y < 16.0))
    near = m.negation(abs(value - candidate) > value * error * 2.0)
    return Outcome(
        value.flipped(sign), exact, candidate.flipped(sign), error=error, perhaps_exact=m.both(fraction, near)
    )


def _table(index: Number, values: tuple[float, ...]) -> Number:
    return Number(index.m, index.m.table(values, index.integer()))
