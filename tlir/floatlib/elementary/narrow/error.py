"""Kernels of erf and erfc. Errors are counted in units of u = 2**-53."""

from __future__ import annotations

from functools import cache, partial

from flint import arb, arb_poly, ctx

from tlir.floatlib.elementary.narrow.exp import exponential
from tlir.floatlib.elementary.narrow.fit import PRECISION, Fit, rounded
from tlir.floatlib.elementary.number import Number

ERF_END = 4.0
"""1 - erf 4 < 2**-25.9: below half a last place of 24 bits under 1."""

ERF_RATIO = Fit(
    lambda z: (-z).hypgeom_1f1(0.5, 1.5) * 2 / arb.pi().sqrt(), 0.0, ERF_END**2, 27, 9.0, 2.0**-49.5, centred=True
)
"""erf(sqrt z) / sqrt z, which is the integral of 2/sqrt(pi) e**(-z s*s) over 0 < s < 1: its derivatives alternate."""


def erf(x: Number) -> Number:
    """x p(t) with t = x*x / 8 - 1 for |x| <= 4, p a polynomial of degree 27 within 2**-49.5 = 12 u.

    The exact coefficients of Taylor's series about t = 0 alternate, so their magnitudes add up to the value at t = -1,
    1.13; those of the polynomial c_0, c_1, ... do to less than 1.14. Horner's rule loses 2 u of each partial sum, and
    those |c_n| + |c_n+1| + ... add up to less than 4.6 (a test adds them up): 10 u. The coefficients have 1.2 u, and t
    has u, of which |p'| < 3 makes 3 u. Relative to p(1) = 0.24999: (12 u + 10 u + 5 u) / 0.2499 + 2 u = 110 u.
    Beyond 4 the value is that at 4, as is said above."""
    y = x.between(-ERF_END, ERF_END)
    t = (y * y).times_plus(2 / ERF_END**2, -1.0)
    return y * t.polynomial(ERF_RATIO.coefficients)


CELL = 0.125
ERFC_END = 20.0
DEGREE = 8


@cache
def scaled_erfc_cells() -> list[tuple[float, ...]]:
    """For each power of h, its coefficients in all cells: the polynomials of degree 8 that equal w(c + h), w(x) =
    e**(x*x) erfc(x), in the nine Chebyshev points cos((2i + 1) pi / 18) / 16 of the cell about c."""
    columns = []
    previous, ctx.prec = ctx.prec, PRECISION
    try:
        half = arb(CELL) / 2
        points = [(half * (arb.pi() * (2 * i + 1) / (2 * DEGREE + 2)).cos()).mid() for i in range(DEGREE + 1)]
        for cell in range(int(ERFC_END / CELL)):
            places = [CELL * arb(2 * cell + 1) / 2 + h for h in points]
            polynomial = arb_poly.interpolate(points, [(x * x).exp() * x.erfc() for x in places])
            columns.append([polynomial[n] for n in range(DEGREE + 1)])
    finally:
        ctx.prec = previous
    return [tuple(rounded(partial(_item, column, n)) for column in columns) for n in range(DEGREE + 1)]


def _item(column: list[arb], n: int) -> arb:
    return column[n]


def scaled_erfc(a: Number) -> Number:
    """w(a) for 0 <= a, at 20 from there on: within 16 u.

    Interpolation in n + 1 Chebyshev points of an interval of half length d has an error below 2 (d/2)**(n+1) / (n+1)!
    times the largest derivative of order n + 1 (Trefethen, as in ``narrow.fit``, or any book on the subject).
    |w**(n)| / w is the mean of (2t)**n for a density of t proportional to e**(-t*t - 2xt), which falls as x grows: at
    x = 0 it is 2**n gamma((n + 1)/2) / gamma(1/2). For n + 1 = 9, d = 1/16: 2**-44 * 512 * 13.6 / 9! < 2**-49.7 = 10 u,
    less than 12 u of the least w in the cell. Horner's rule has falling terms: 4 u."""
    m = a.m
    a = a.minimum(ERFC_END)
    cell = (a * (1 / CELL)).minimum(ERFC_END / CELL - 1).integer()
    h = a - Number(m, m.real_from_signed(cell)).times_plus(CELL, CELL / 2)
    rows = scaled_erfc_cells()
    total = Number(m, m.table(rows[-1], cell))
    for row in rows[-2::-1]:
        total = total.times_plus(h, Number(m, m.table(row, cell)))
    return total


def erfc(x: Number) -> Number:
    """e**(-a*a) w(a) for a = |x|, or 2 less that for x < 0, which is above 1. a*a is exact; the exponential has 10 u.
    Together with the product 28 u, and for x < 0 30 u. Beyond 20 the result is that at 20, below 2**-576, which rounds
    like everything smaller."""
    a = abs(x).minimum(ERFC_END)
    tail = exponential(-(a * a)) * scaled_erfc(a)
    return (2.0 - tail).where(x < 0.0, tail)


SCALED_TERMS = 8


def _scaled_coefficient(k: int) -> arb:
    """(-1)**k 1 * 3 * ... * (2k - 1) / (2**k sqrt pi)."""
    return (arb(0.5).rising(k) if k else arb(1)) * (-1) ** k / arb.pi().sqrt()


SCALED_SERIES = tuple(rounded(partial(_scaled_coefficient, k)) for k in range(SCALED_TERMS))


def scaled_erfc_everywhere(a: Number) -> Number:
    """w(a) for 0 <= a. From 20 on it is 1/a times a series in 1/a**2 with alternating signs, whose first term that is
    left out, below u/8, bounds the rest (NIST Digital Library of Mathematical Functions, 7.12(i)): 6 u."""
    inverse = 1.0 / a.maximum(1.0)
    return scaled_erfc(a).where(a < ERFC_END, inverse * (inverse * inverse).polynomial(SCALED_SERIES))


def erfcx(x: Number) -> Number:
    """w(x); 2 e**(x*x) - w(-x) for x < 0, which is at least 1 and e**(x*x): 20 u of the exponential and 16 u, and u of
    the difference. x*x is exact."""
    w = scaled_erfc_everywhere(abs(x))
    return exponential(x * x).times_plus(2.0, -w).where(x < 0.0, w)
