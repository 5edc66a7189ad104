"""Kernels of the Bessel functions J and Y of orders 0 and 1. Errors are counted in units of u = 2**-53.

They have zeros, so the bounds are on the absolute error, and what is next to a zero is left undecided. |J z| is at most
cosh(Im z), and |Y z| at most 2 / (pi Re z) more where Re z > 0: by the integrals in 10.9.2 and 10.9.7 of the NIST
Digital Library of Mathematical Functions (DLMF), where sinh t is at least t and at most cosh t.

Below 1, J0 and J1 / x are power series in x*x, and those in Y0 x = 2/pi log x J0 x + S0 and Y1 x = -2/(pi x)
+ 2/pi log x J1 x + x S1 too (DLMF 10.8). From 1 to 32 they are polynomials
on cells. Beyond, with c = cos x, s = sin x and sums P and Q of a_k / x**k of even and of odd k, which are those of
``modified`` with alternating signs in each (DLMF 10.17), sqrt(pi x) times

    J0 is (P + Q) c + (P - Q) s,     J1 is (P + Q) s - (P - Q) c,
    Y0 is (P + Q) s - (P - Q) c,     Y1 is -((P + Q) c + (P - Q) s).

The first terms that are left out of P and Q bound the rest (10.17(iii)); they are below u/4.

x is reduced as large angles are (``narrow.angle``), with an absolute error of 2**-60 and 2 u of the reduced angle; so
c and s have 12 u and 16 u of themselves, and 2 u; the sums of products 31 u, and the root of 1/(pi x) and its product
5 u of at most sqrt 2: 40 u of 1/sqrt(pi x).
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial

from flint import acb, arb, ctx

from tlir.floatlib.elementary.narrow.angle import quadrants
from tlir.floatlib.elementary.narrow.cells import Cells
from tlir.floatlib.elementary.narrow.fit import Fit, rounded
from tlir.floatlib.elementary.narrow.log import log
from tlir.floatlib.elementary.narrow.modified import TINY, k0_rest, k1_rest
from tlir.floatlib.elementary.narrow.outcome import Outcome
from tlir.floatlib.elementary.number import Number

ULP = 2.0**-53
FAR = 32.0
EVEN, ODD = 8, 7
"""Terms of P and Q."""

GUARD = 128
"""Bits that are lost in the evaluation of Y."""


def _j0(z: acb) -> acb:
    return z.bessel_j(0)


def _j1(z: acb) -> acb:
    return z.bessel_j(1)


def _guarded(z: acb, order: int) -> acb:
    previous = ctx.prec
    ctx.prec = previous + GUARD
    try:
        return z.bessel_y(order)
    finally:
        ctx.prec = previous


def _y0(z: acb) -> acb:
    return _guarded(z, 0)


def _y1(z: acb) -> acb:
    return _guarded(z, 1)


def _largest_j(middle: arb, reach: arb) -> arb:
    return reach.cosh()


def _largest_y(middle: arb, reach: arb) -> arb:
    return reach.cosh() + 2 / (arb.pi() * (middle - reach))


J0 = Cells(_j0, 1.0, FAR, 5, 10, 3 * ULP, singular=None, relative=False, largest=_largest_j)
J1 = Cells(_j1, 1.0, FAR, 5, 10, 3 * ULP, singular=None, relative=False, largest=_largest_j)
Y0 = Cells(_y0, 1.0, FAR, 5, 10, 4 * ULP, relative=False, largest=_largest_y)
Y1 = Cells(_y1, 1.0, FAR, 5, 10, 4 * ULP, relative=False, largest=_largest_y)

J0_SERIES = Fit(lambda z: (-z / 4).hypgeom_0f1(1), 0.0, 1.0, 8, 150.0, 2.0**-53)
J1_SERIES = Fit(lambda z: (-z / 4).hypgeom_0f1(2) / 2, 0.0, 1.0, 8, 150.0, 2.0**-54)
Y0_SERIES = Fit(lambda z: k0_rest(-z) * -2 / arb.pi(), 0.0, 1.0, 8, 150.0, 2.0**-55)
Y1_SERIES = Fit(lambda z: k1_rest(-z) * 2 / arb.pi(), 0.0, 1.0, 8, 150.0, 2.0**-54)
TWO_OVER_PI, INVERSE_PI = rounded(lambda: 2 / arb.pi()), rounded(lambda: 1 / arb.pi())


def _fraction(value: Fraction) -> arb:
    return arb(value.numerator) / value.denominator


def _coefficients(order: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Of P in 1/x**2, and of x Q."""
    a, terms = Fraction(1), []
    for k in range(EVEN + ODD):
        terms.append(rounded(partial(_fraction, -a if k % 4 >= 2 else a)))
        a *= Fraction(4 * order**2 - (2 * k + 1) ** 2, 8 * (k + 1))
    return tuple(terms[::2]), tuple(terms[1::2])


SERIES = (_coefficients(0), _coefficients(1))


def _far(x: Number, order: int, second: bool) -> tuple[Number, Number]:
    """(value, 1/sqrt(pi x))."""
    x = x.maximum(1.0)
    cosine, sine = quadrants(x)
    inverse = 1.0 / x
    square = inverse * inverse
    p, q = (square.polynomial(series) for series in SERIES[order])
    q = q * inverse
    root = (inverse * INVERSE_PI).sqrt()
    if second != (order == 1):
        value = (p + q) * sine - (p - q) * cosine
    else:
        value = (p + q) * cosine + (p - q) * sine
    return (-value if second and order == 1 else value) * root, root


def _j(x: Number, small: Number, cells: Cells, order: int) -> tuple[Number, Number]:
    """The value for x >= 0, and its absolute error, for small ones within 8 u of min(x, 1)."""
    far, root = _far(x, order, False)
    value = small.where(x < 1.0, cells.at(x)).where(x < FAR, far)
    near = x.minimum(1.0) if order else x.like(1.0)
    return value, (near * (8 * ULP)).where(x < FAR, root * (40 * ULP))


def j0(x: Number) -> Outcome:
    """The series has falling terms, alternating below 1, from 1 on: 2**-53 and 4 u."""
    a = abs(x)
    value, width = _j(a, (a * a).polynomial(J0_SERIES.coefficients), J0, 0)
    return Outcome(value, absolute=width)


def j1(x: Number) -> Outcome:
    """x times a series as that of J0, of which the first term is 1/2: 4 u. x/2 (1 - x*x/8 + ...): for tiny operands as
    in ``modified.beside_half``."""
    a = abs(x)
    value, width = _j(a, a * (a * a).polynomial(J1_SERIES.coefficients), J1, 1)
    tiny = a < TINY
    value = (a * (0.5 - 2.0**-51)).where(tiny, value)
    return Outcome(value.flipped(x.sign), absolute=(a * 2.0**-54).where(tiny, width))


def _y(x: Number, small: Number, sizes: Number, cells: Cells, order: int) -> Outcome:
    """``sizes``: the sum of the magnitudes of what small ones are the sum of, of which they have 32 u."""
    far, root = _far(x, order, True)
    value = small.where(x < 1.0, cells.at(x)).where(x < FAR, far)
    near = (sizes * (32 * ULP)).where(x < 1.0, 5 * ULP)
    return Outcome(value, absolute=near.where(x < FAR, root * (40 * ULP)))


def y0(x: Number) -> Outcome:
    """Below 1 the logarithm has 20 u, J0 5 u relatively, and with 2/pi and the products it is 30 u; S0, from -0.08 on,
    6 u."""
    b = x.minimum(1.0)
    z = b * b
    first = log(b) * TWO_OVER_PI * z.polynomial(J0_SERIES.coefficients)
    rest = z.polynomial(Y0_SERIES.coefficients)
    return _y(x, first + rest, abs(first) + abs(rest), Y0, 0)


def y1(x: Number) -> Outcome:
    """Below 1 three terms < 0: as for Y0, and -2/(pi x), which has 3 u."""
    b = x.minimum(1.0)
    z = b * b
    first = log(b) * TWO_OVER_PI * z.polynomial(J1_SERIES.coefficients)
    value = b * (first + z.polynomial(Y1_SERIES.coefficients)) - TWO_OVER_PI / b
    return _y(x, value, abs(value), Y1, 1)
