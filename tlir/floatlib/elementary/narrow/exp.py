"""Kernels of the exponential family: exp, exp2, expm1, logistic, tanh, sinh, cosh.

Errors are counted in units of u = 2**-53, terms of order u**2 neglected. A product and a sum count as two roundings,
whether or not the machine makes one of them.

``_reduced(x)``: x = k log 2 + r, |r| <= 0.3467. k * HIGH is exact (k has 10 bits, HIGH 40), and so is x - k * HIGH,
because both are multiples of the last place of x or of 2**-40 and the difference is below 0.35. k * LOW is below
2**-30, so r has the rounding of the last difference alone: an absolute error of 0.36 u.

``_expm1_ratio``: (e**r - 1) / r from a polynomial of degree 10 within 2**-51 = 4 u; it is between 0.84 and 1.2.
Horner's rule with |r| < 0.35 loses 2 u for the last step, 0.35 * 0.6 * 2 u for the one before, ...: 3 u, and rounded
coefficients 1 u. Relative to 0.84: 10 u.
"""

from __future__ import annotations

from flint import arb

from tlir.floatlib.elementary.narrow.fit import Fit, parts, rounded
from tlir.floatlib.elementary.narrow.outcome import Outcome
from tlir.floatlib.elementary.number import Number
from tlir.floatlib.soft.machine import Word

FAR = 600.0
"""e**-600 < 2**-865 and e**600 > 2**865 round like everything beyond them in formats of exponents up to 500."""

INVERSE_LOG2 = rounded(lambda: 1 / arb.const_log2())
LOG2_HIGH, LOG2_LOW = parts(arb.const_log2, 40)

EXPM1_RATIO = Fit(lambda z: z.hypgeom_1f1(1, 2), -0.3467, 0.3467, 10, 80.0, 2.0**-51)
EXP2M1_RATIO = Fit(
    lambda z: (z * arb.const_log2()).hypgeom_1f1(1, 2) * arb.const_log2(), -0.5, 0.5, 10, 80.0, 2.0**-51.5
)
SINH_RATIO = Fit(lambda z: (z / 4).hypgeom_0f1(1.5), 0.0, 0.1203, 5, 1000.0, 2.0**-50)
COSH = Fit(lambda z: (z / 4).hypgeom_0f1(0.5), 0.0, 0.1203, 5, 2000.0, 2.0**-53)
"""sinh(sqrt z) / sqrt z and cosh(sqrt z)."""


def _reduced(x: Number) -> tuple[Word, Number]:
    """(k, r); of k the low bits."""
    k, word = x.whole(INVERSE_LOG2)
    return word, k.times_plus(-LOG2_LOW, k.times_plus(-LOG2_HIGH, x))


def exponential(x: Number) -> Number:
    """1 + r p(r) with |r p(r)| < 0.42: 0.42 (10 u + 2 u) + u + 0.36 u, relative to 0.7 or more: 10 u."""
    k, r = _reduced(x.between(-FAR, FAR))
    return r.times_plus(r.polynomial(EXPM1_RATIO.coefficients), 1.0).scaled(k)


def exp2(x: Number) -> Outcome:
    """2**x: x - k is exact, |x - k| <= 1/2; otherwise as for exp: 10 u. Integers are exact."""
    x = x.between(-900.0, 900.0)
    number, k = x.whole(1.0)
    r = x - number
    value = r.times_plus(r.polynomial(EXP2M1_RATIO.coefficients), 1.0).scaled(k)
    return Outcome(value, r.equals(0.0), value)


def expm1_of(x: Number) -> Number:
    """2**k m + (2**k - 1) with m = r p(r), for |x| <= 600: m has 11 u. For k = 0 it is m; r has no error then.

    Otherwise the sum is at least 0.41 for k = 1, 0.29 for k = -1, half of 2**k or 1/2 elsewhere, beside |2**k m| of at
    most 2, 1 and 0.84 times that (m > -0.3 for k = 1). Each term with its rounding, the error of r (0.36 u of
    e**x, which is below 3.5 times the sum) and the last rounding: less than 2 (11 u + u) + 2 u + 1.3 u < 28 u."""
    k, r = _reduced(x)
    m = r * r.polynomial(EXPM1_RATIO.coefficients)
    power = x.like(1.0).scaled(k)
    return m.times_plus(power, power - 1.0)


def exponential_minus_one(x: Number) -> Number:
    """28 u."""
    return expm1_of(x.between(-60.0, FAR)).with_sign(x.sign)


def logistic(x: Number) -> Number:
    """1 / (1 + e**-x): sums and quotients of positive numbers, 12 u."""
    return 1.0 / (1.0 + exponential(-x))


TANH_END = 10.0
"""1 - tanh 10 < 2**-27: beyond it the result is 1 less something below a quarter of a last place of 24 bits."""


def tanh(x: Number) -> Number:
    """m / (m + 2) with m = e**(2x) - 1, whose relative error counts 2 / (m + 2) times, at most 2: 56 u + 2 u."""
    m = expm1_of((x + x).between(-2 * TANH_END, 2 * TANH_END))
    return (m / (m + 2.0)).with_sign(x.sign)


def _cosh_sinh(x: Number) -> tuple[Number, Number, Number, Number]:
    """(C, S, c, s): cosh and sinh of k log 2, and of r. c has 3 u, s 5 u, C and S 1 u."""
    k, r = _reduced(x.between(-FAR, FAR))
    square = r * r
    up, down = x.like(0.5).scaled(k), x.like(0.5).scaled(x.m.subtract(x.m.constant(0), k))
    sinh = r * square.polynomial(SINH_RATIO.coefficients)
    return up + down, up - down, square.polynomial(COSH.coefficients), sinh


def sinh(x: Number) -> Number:
    """S c + C s. For k = 0, s. Otherwise |s| < 0.355, so |C s| is below 0.36 * 5/3 |S| < 0.6 |S c|, and the sum at
    least 0.4 of the larger term: (5 u + 0.6 * 7 u) / 0.4 + the error of r, 0.36 u * coth: 25 u."""
    large_c, large_s, c, s = _cosh_sinh(x)
    return large_s.times_plus(c, large_c * s).with_sign(x.sign)


def cosh(x: Number) -> Number:
    """C c + S s, of which the second is below 0.36 of the first: (5 u + 0.36 * 7 u) / 0.64 + 1.4 u = 14 u."""
    large_c, large_s, c, s = _cosh_sinh(x)
    return large_c.times_plus(c, large_s * s)
