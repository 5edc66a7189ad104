"""Kernels of the modified Bessel functions of orders 0 and 1. Errors are counted in units of u = 2**-53.

The scaled functions are completely monotonic (NIST Digital Library of Mathematical Functions, 10.32.2 and 10.32.9):

    e**-x I0(x) = 1/pi of the integral of e**(-x (1 - cos t)),                 0 < t < pi,
    e**-x I1(x) / x = 1/pi of the integral of e**(-x (1 - cos t)) (sin t)**2,  0 < t < pi,
    e**x K0(x) = the integral of e**(-x (cosh t - 1)),                         0 < t,
    e**x K1(x) = the integral of e**(-x (cosh t - 1)) cosh t,                  0 < t.

They are polynomials on cells of y = 1 + |x|, so that 0 is inside, for I; y has an error of u y, and the derivative of
neither function is more than 2 / y of it: 2 u. For K they are polynomials on cells of x from 1 on.

From 63 or 64 on they are 1/sqrt x times a sum of a_k (±1/x)**k, a_k = (4 n**2 - 1) (4 n**2 - 9) ...
(4 n**2 - (2k - 1)**2) / (k! 8**k) for the order n, and times 1/sqrt(2 pi) or sqrt(pi/2) (DLMF 10.40); the first terms
that are left out are below u/8 of the sum. For K that bounds the rest (10.40(ii)). For I0, with v = x (1 - cos t), the
integral is that of e**-v v**(-1/2) (2 - v/x)**(-1/2) / (pi sqrt x) for 0 < v < 2x; the series is that of the last
factor, whose terms have coefficients that fall, so that up to v = x the rest is at most twice the first term that is
left out, while what lies beyond is below 4 sqrt(x) e**-x, or 2**-85. For I1 it is the same with v**(1/2)
(2 - v/x)**(1/2). Of the sum, its product, 1/x and its root 6 u are lost.

Below 1, K0 x = -log x I0 x + R0 and K1 x = 1/x + log x I1 x + x R1, where R0 and R1 are power series in x*x (DLMF
10.31), of terms of one sign each, as I0 and I1 / x are; their polynomials lose 6 u.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial

from flint import acb, arb

from tlir.floatlib.elementary.narrow.cells import Cells
from tlir.floatlib.elementary.narrow.exp import exponential
from tlir.floatlib.elementary.narrow.fit import Fit, rounded
from tlir.floatlib.elementary.narrow.log import log
from tlir.floatlib.elementary.narrow.outcome import Outcome
from tlir.floatlib.elementary.number import Number

ULP = 2.0**-53
END = 64.0
I1E_ERROR, I1_ERROR = 15 * ULP, 26 * ULP
TERMS = 11
SMALL_TERMS = 40


def _i0e(y: acb) -> acb:
    x = y - 1
    return x.bessel_i(0, True)


def _i1e_ratio(y: acb) -> acb:
    x = y - 1
    return (-x).exp() * (x * x / 4).hypgeom_0f1(2) / 2


def _k0e(x: acb) -> acb:
    """DLMF 13.18.9, where the usual formula loses digits."""
    return arb.pi().sqrt() * (2 * x).hypgeom_u(arb(0.5), arb(1))


def _k1e(x: acb) -> acb:
    return arb.pi().sqrt() * 2 * x * (2 * x).hypgeom_u(arb(1.5), arb(3))


I0E = Cells(_i0e, 1.0, END, 4, 9, 4 * ULP, singular=None)
I1E_RATIO = Cells(_i1e_ratio, 1.0, END, 4, 9, 11 * ULP, singular=None)
K0E = Cells(_k0e, 1.0, END, 4, 9, 4 * ULP)
K1E = Cells(_k1e, 1.0, END, 4, 9, 4 * ULP)

I0_SERIES = Fit(lambda z: (z / 4).hypgeom_0f1(1), 0.0, 1.0, 8, 150.0, 2.0**-52)
I1_SERIES = Fit(lambda z: (z / 4).hypgeom_0f1(2) / 2, 0.0, 1.0, 8, 150.0, 2.0**-53)


def with_logarithm(z: acb, coefficient: Callable[[int, arb], arb], order: int) -> acb:
    """The sum of coefficient(k, 1 + 1/2 + ... + 1/k) (z/4)**k / (k! (k + order)!), for |z| < 800: what is left out is
    less than twice the term after the last one."""
    term, total, harmonic = acb(1), acb(0), arb(0)
    for k in range(SMALL_TERMS):
        if k:
            harmonic += arb(1) / k
            term = term * z / (4 * k * (k + order))
        total += coefficient(k, harmonic) * term
    rest = (4 * abs(term)).upper()
    return total + acb(arb(0, rest), arb(0, rest))


def k0_rest(z: acb) -> acb:
    return with_logarithm(z, lambda k, harmonic: arb.const_log2() - arb.const_euler() + harmonic, 0)


def k1_rest(z: acb) -> acb:
    def coefficient(k: int, harmonic: arb) -> arb:
        return (arb.const_euler() - arb.const_log2() - harmonic - arb(1) / (2 * (k + 1))) / 2

    return with_logarithm(z, coefficient, 1)


K0_SERIES = Fit(k0_rest, 0.0, 1.0, 8, 150.0, 2.0**-55)
K1_SERIES = Fit(k1_rest, 0.0, 1.0, 8, 150.0, 2.0**-54)


@cache
def _far(order: int, factor: str) -> tuple[float, ...]:
    """The coefficients of the powers of 1/x, with the factor."""
    constant = {"I": lambda: 1 / (2 * arb.pi()).sqrt(), "K": lambda: (arb.pi() / 2).sqrt()}[factor]
    coefficients, a = [], Fraction(1)
    for k in range(TERMS):
        coefficients.append(rounded(partial(_times, constant, a if factor == "K" or k % 2 == 0 else -a)))
        a *= Fraction(4 * order**2 - (2 * k + 1) ** 2, 8 * (k + 1))
    return tuple(coefficients)


def _times(constant: Callable[[], arb], a: Fraction) -> arb:
    return constant() * a.numerator / a.denominator


def _beyond(x: Number, coefficients: tuple[float, ...]) -> Number:
    inverse = 1.0 / x.maximum(1.0)
    return inverse.sqrt() * inverse.polynomial(coefficients)


def i0e(x: Number) -> Number:
    """6 u."""
    a = abs(x)
    y = a + 1.0
    return I0E.at(y).where(y < END, _beyond(a, _far(0, "I")))


TINY = 2.0**-60


def beside_half(a: Number, value: Number, side: float, error: float) -> Outcome:
    """``value``, within ``error``; for tiny operands a >= 0 it is a/2 and less than 2**-60 of that on one side (1:
    more, -1: less). What is on that side of a/2, which may be half way between two numbers of a format, and within
    2**-49 of it, rounds as the value does: here what is within 2**-52 of a/2 (1 ± 2**-50)."""
    tiny = a < TINY
    near = (a * (0.5 + side * 2.0**-51)).where(tiny, value)
    return Outcome(near, error=a.like(2.0**-53).where(tiny, error))


def _signed(outcome: Outcome, x: Number) -> Outcome:
    return replace(outcome, value=outcome.value.with_sign(x.sign))


def _i1e(a: Number) -> Number:
    y = a + 1.0
    return (a * I1E_RATIO.at(y)).where(y < END, _beyond(a, _far(1, "I")))


def i1e(x: Number) -> Outcome:
    """14 u. x/2 (1 - x + ...)."""
    a = abs(x)
    return _signed(beside_half(a, _i1e(a), -1.0, I1E_ERROR), x)


def i0(x: Number) -> Number:
    """6 u and the exponential's 10 u, and u of the product."""
    return i0e(x) * exponential(abs(x))


def i1(x: Number) -> Outcome:
    """14 u and the exponential's 10 u, and u of the product. x/2 (1 + x*x/8 + ...)."""
    a = abs(x)
    return _signed(beside_half(a, _i1e(a) * exponential(a), 1.0, I1_ERROR), x)


def _k0_small(x: Number) -> Number:
    """-log x I0 x, of 20 u and 6 u and u, and R0: of positive terms, 28 u."""
    z = x * x
    return (-log(x)).times_plus(z.polynomial(I0_SERIES.coefficients), z.polynomial(K0_SERIES.coefficients))


def _k1_small(x: Number) -> Number:
    """1/x + x w, w = log x I1 x / x + R1 < 0 of terms of one sign, 28 u. |x w| is at most 0.4, and less than 0.67 of
    the result: 19 u + 5 u."""
    z = x * x
    w = log(x).times_plus(z.polynomial(I1_SERIES.coefficients), z.polynomial(K1_SERIES.coefficients))
    return x.times_plus(w, 1.0 / x)


def _k(x: Number, small: Number, cells: Cells, order: int) -> Number:
    """The function below 1, and e**x times it from there on."""
    large = cells.at(x).where(x < END, _beyond(x, _far(order, "K")))
    return small.where(x < 1.0, large)


def k0e(x: Number) -> Number:
    """28 u and the exponential's 10 u and a product for x < 1: 39 u. From 1 on 6 u."""
    return _k(x, _k0_small(x.minimum(1.0)) * exponential(x.minimum(1.0)), K0E, 0)


def k1e(x: Number) -> Number:
    """24 u and the exponential's 10 u and a product for x < 1: 35 u. From 1 on 6 u."""
    return _k(x, _k1_small(x.minimum(1.0)) * exponential(x.minimum(1.0)), K1E, 1)


LARGEST = 600.0
"""K0 and K1 of 600 are below 2**-870, which rounds like everything smaller."""


def _back(x: Number) -> Number:
    """e**-x from 1 on."""
    return x.like(1.0).where(x < 1.0, exponential(-x))


def k0(x: Number) -> Number:
    """28 u and u; 6 u, the exponential's 10 u and u from 1 on."""
    x = x.minimum(LARGEST)
    return _k(x, _k0_small(x.minimum(1.0)), K0E, 0) * _back(x)


def k1(x: Number) -> Number:
    """24 u and u; 6 u, the exponential's 10 u and u from 1 on."""
    x = x.minimum(LARGEST)
    return _k(x, _k1_small(x.minimum(1.0)), K1E, 1) * _back(x)
