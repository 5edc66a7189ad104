"""Bessel functions of order 0 and 1 of one finite number that is not zero, rounded once.

Siegel: J, Y, I, K of integer order have transcendental values (J and I proven, the rest conjectured) at algebraic
arguments other than 0, so the enclosures end. What lies next to a number of the format near 0 (J0 = 1 - x**2/4 + ...,
K1 = 1/x + ...) is rounded by its side. A counterexample to the conjecture would be PrecisionLimitError.

J and Y reduce their arguments as the sine does: ArgumentTooLargeError beyond 2**(2**20).
"""

from __future__ import annotations

from collections.abc import Callable

from flint import arb

from tlir.floatlib.arb import NEAR_BITS, Dyadic, Result, huge, round_enclosure, round_near, round_near_quotient, tiny
from tlir.floatlib.elementary.exponential import LARGEST_EXPONENT, invalid, is_small
from tlir.floatlib.elementary.trigonometric import reduction_bits
from tlir.floatlib.format import Format

Function = Callable[[Format, Dyadic], Result]


def _near_half(fmt: Format, x: Dyadic, toward_zero: bool) -> Result:
    return round_near(fmt, x.sign, x.significand, x.exponent - 1, toward_zero)


def i0(fmt: Format, x: Dyadic) -> Result:
    """1 + x**2/4 + ..., even."""
    if is_small(fmt, x, 2):
        return round_near(fmt, 0, 1, 0, toward_zero=False)
    if x.leading > LARGEST_EXPONENT:
        return huge(fmt, 0)
    ball = x.magnitude().to_arb()
    return round_enclosure(fmt, lambda: ball.bessel_i(arb(0)))


def i1(fmt: Format, x: Dyadic) -> Result:
    """x/2 + x**3/16 + ..., odd."""
    if is_small(fmt, x, 2):
        return _near_half(fmt, x, toward_zero=False)
    if x.leading > LARGEST_EXPONENT:
        return huge(fmt, x.sign)
    ball = x.magnitude().to_arb()
    return round_enclosure(fmt, lambda: _signed(ball.bessel_i(arb(1)), x.sign))


def i0e(fmt: Format, x: Dyadic) -> Result:
    """e**-|x| I0(x) = 1 - |x| + ...; 1/sqrt(2 pi |x|) and less far out."""
    if is_small(fmt, x, 1):
        return round_near(fmt, 0, 1, 0, toward_zero=True)
    ball = x.magnitude().to_arb()
    return round_enclosure(fmt, lambda: ball.bessel_i(arb(0), True))


def i1e(fmt: Format, x: Dyadic) -> Result:
    """e**-|x| I1(x) = x/2 - x|x|/2 + ..., odd."""
    if is_small(fmt, x, 1):
        return _near_half(fmt, x, toward_zero=True)
    ball = x.magnitude().to_arb()
    return round_enclosure(fmt, lambda: _signed(ball.bessel_i(arb(1), True), x.sign))


def j0(fmt: Format, x: Dyadic) -> Result:
    """1 - x**2/4 + ..., even."""
    if is_small(fmt, x, 2):
        return round_near(fmt, 0, 1, 0, toward_zero=True)
    ball = x.magnitude().to_arb()
    return round_enclosure(fmt, lambda: ball.bessel_j(arb(0)), reduction_bits(x))


def j1(fmt: Format, x: Dyadic) -> Result:
    """x/2 - x**3/16 + ..., odd."""
    if is_small(fmt, x, 2):
        return _near_half(fmt, x, toward_zero=True)
    ball = x.magnitude().to_arb()
    return round_enclosure(fmt, lambda: _signed(ball.bessel_j(arb(1)), x.sign), reduction_bits(x))


def _second(order: int) -> Function:
    """Y of an order: 2/pi log x + ... (order 0) and -2/(pi x) + ... (order 1) near 0. INVALID below 0."""

    def function(fmt: Format, x: Dyadic) -> Result:
        if x.sign:
            return invalid(fmt)
        ball = x.to_arb()
        return round_enclosure(fmt, lambda: ball.bessel_y(arb(order)), reduction_bits(x))

    return function


y0 = _second(0)
y1 = _second(1)


def k0(fmt: Format, x: Dyadic) -> Result:
    """-log x + ... near 0. INVALID below 0."""
    if x.sign:
        return invalid(fmt)
    if x.leading > LARGEST_EXPONENT:
        return tiny(fmt, 0)
    ball = x.to_arb()
    return round_enclosure(fmt, lambda: ball.bessel_k(arb(0)))


def k1(fmt: Format, x: Dyadic) -> Result:
    """1/x + x/2 log x + ... < 1/x near 0. INVALID below 0."""
    if x.sign:
        return invalid(fmt)
    if x.leading > LARGEST_EXPONENT:
        return tiny(fmt, 0)
    # x**2/2 |log(x/2) + 0.08| < x**2 (1 - leading of x)
    smallness = -2 * (x.leading + 1)
    if x.leading < 0 and smallness - (2 - x.leading).bit_length() > 2 * fmt.precision + NEAR_BITS:
        return round_near_quotient(fmt, 0, 1, x.significand, -x.exponent, toward_zero=True)
    ball = x.to_arb()
    return round_enclosure(fmt, lambda: ball.bessel_k(arb(1)))


def k0e(fmt: Format, x: Dyadic) -> Result:
    """e**x K0(x). INVALID below 0."""
    if x.sign:
        return invalid(fmt)
    ball = x.to_arb()
    return round_enclosure(fmt, lambda: ball.bessel_k(arb(0), True))


def k1e(fmt: Format, x: Dyadic) -> Result:
    """e**x K1(x) = 1/x + 1 + ... near 0. INVALID below 0."""
    if x.sign:
        return invalid(fmt)
    if -(x.leading + 2) > 2 * fmt.precision + NEAR_BITS:
        return round_near_quotient(fmt, 0, 1, x.significand, -x.exponent, toward_zero=False)
    ball = x.to_arb()
    return round_enclosure(fmt, lambda: ball.bessel_k(arb(1), True))


def _signed(ball: arb, sign: int) -> arb:
    return -ball if sign else ball
