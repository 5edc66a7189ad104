"""The error function and the gamma function's logarithm and derivative, of finite numbers that are not zero.

What is known about when the enclosures end: the exact values named at each function are dyadic. That no other is, is
only conjectured (it is not even known whether Euler's constant, -digamma(1), is rational). A counterexample would be
reported as PrecisionLimitError, never as a wrong word.
"""

from __future__ import annotations

from flint import arb

from tlir.floatlib.arb import NEAR_BITS, Dyadic, Result, round_enclosure, round_near, round_near_quotient, tiny
from tlir.floatlib.elementary.exponential import invalid, is_small, pole
from tlir.floatlib.format import Format
from tlir.floatlib.rounding import zero_result

LARGEST_ERFC_EXPONENT = 25
"""erfc(2**25) < e**-(2**50), below half of the smallest number of every format."""


def erf(fmt: Format, x: Dyadic) -> Result:
    """Exact at 0 only (conjectured). 2x/sqrt(pi) + ... is near no dyadic number; ±1 is approached from inside."""
    if _erfc_is_small(fmt, x):
        return round_near(fmt, x.sign, 1, 0, toward_zero=True)
    ball = x.to_arb()
    return round_enclosure(fmt, ball.erf)


def erfc(fmt: Format, x: Dyadic) -> Result:
    """Exact at 0 only (conjectured). 1 - 2x/sqrt(pi) + ... near 0; 2 is approached from below."""
    if is_small(fmt, x, 1):
        return round_near(fmt, 0, 1, 0, toward_zero=not x.sign)
    if x.sign and _erfc_is_small(fmt, x):
        return round_near(fmt, 0, 1, 1, toward_zero=True)
    if x.leading >= LARGEST_ERFC_EXPONENT:
        return tiny(fmt, 0)
    ball = x.to_arb()
    return round_enclosure(fmt, ball.erfc)


def erf_inv(fmt: Format, x: Dyadic) -> Result:
    """Exact at 0 only (conjectured). sqrt(pi)x/2 + ... is near no dyadic number. DIVIDE_BY_ZERO at ±1, INVALID
    beyond."""
    side = x.magnitude().compare_integer(1)
    if side >= 0:
        return pole(fmt, x.sign) if side == 0 else invalid(fmt)
    ball = x.to_arb()
    return round_enclosure(fmt, ball.erfinv)


def lgamma(fmt: Format, x: Dyadic) -> Result:
    """log|gamma(x)|: 0 at 1 and 2, otherwise not dyadic (Lindemann for integers, conjectured for the rest).
    DIVIDE_BY_ZERO at the integers below 1. Below 0 by the reflection gamma(x) gamma(1 - x) = pi / sin(pi x)."""
    ball = x.to_arb()
    if not x.sign:
        if x.odd() in (Dyadic(0, 1, 0), Dyadic(0, 1, 1)):
            return zero_result(fmt, 0)
        return round_enclosure(fmt, ball.lgamma)
    if x.is_integer():
        return pole(fmt, 0)
    return round_enclosure(fmt, lambda: (arb.pi() / abs(ball.sin_pi())).log() - (1 - ball).lgamma())


def digamma(fmt: Format, x: Dyadic) -> Result:
    """Never dyadic (conjectured). -1/x - Euler's constant + ... near 0. INVALID at the integers below 0."""
    if x.sign and x.is_integer():
        return invalid(fmt)
    if -(x.leading + 1) > 2 * fmt.precision + NEAR_BITS:
        return round_near_quotient(fmt, 1 - x.sign, 1, x.significand, -x.exponent, toward_zero=bool(x.sign))
    ball = x.to_arb()
    return round_enclosure(fmt, ball.digamma)


def _erfc_is_small(fmt: Format, x: Dyadic) -> bool:
    """erfc|x| <= e**(-x*x) < 2**-(precision + NEAR_BITS + 2)."""
    return 2 * x.leading >= (fmt.precision + NEAR_BITS + 2).bit_length()
