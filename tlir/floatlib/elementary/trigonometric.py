"""Trigonometric functions and their inverses of finite numbers that are not zero, rounded once.

Why the enclosures end: sin, cos and tan are rational functions of e**(ix) that are not constant, so by Lindemann none
of their values is algebraic for algebraic x other than 0. asin, acos, atan and atan2 are the imaginary parts of
logarithms of algebraic numbers, so they are zero or transcendental (pi is one of them).

Arguments are reduced modulo pi by Arb with as many more bits as the argument's exponent has units: exponents up to
2**20 are accepted, which covers formats of up to 21 exponent bits (binary256 has 19).
"""

from __future__ import annotations

from flint import arb

from tlir.floatlib.arb import (
    MAX_ARGUMENT_EXPONENT,
    NEAR_BITS,
    ONE,
    ArgumentTooLargeError,
    Dyadic,
    Result,
    round_enclosure,
    round_near,
    round_near_quotient,
)
from tlir.floatlib.elementary.exponential import invalid, is_small, near_operand
from tlir.floatlib.format import Format
from tlir.floatlib.rounding import zero_result


def reduction_bits(x: Dyadic) -> int:
    """Bits that the reduction of x modulo pi loses. ArgumentTooLargeError beyond 2**20."""
    if x.leading > MAX_ARGUMENT_EXPONENT:
        raise ArgumentTooLargeError(
            f"the argument is about 2**{x.leading}; angles are reduced modulo pi up to 2**{MAX_ARGUMENT_EXPONENT}"
        )
    return max(0, x.leading + 1)


def sine(fmt: Format, x: Dyadic) -> Result:
    """x - x**3/6 + ..."""
    if is_small(fmt, x, 2):
        return near_operand(fmt, x, toward_zero=True)
    ball = x.to_arb()
    return round_enclosure(fmt, ball.sin, reduction_bits(x))


def cosine(fmt: Format, x: Dyadic) -> Result:
    """1 - x**2/2 + ..."""
    if is_small(fmt, x, 2):
        return round_near(fmt, 0, 1, 0, toward_zero=True)
    ball = x.to_arb()
    return round_enclosure(fmt, ball.cos, reduction_bits(x))


def tan(fmt: Format, x: Dyadic) -> Result:
    """x + x**3/3 + ... A finite number is no pole."""
    if is_small(fmt, x, 2):
        return near_operand(fmt, x, toward_zero=False)
    ball = x.to_arb()
    return round_enclosure(fmt, ball.tan, reduction_bits(x))


def asin(fmt: Format, x: Dyadic) -> Result:
    """x + x**3/6 + ... INVALID beyond ±1."""
    if x.magnitude().compare_integer(1) > 0:
        return invalid(fmt)
    if is_small(fmt, x, 2):
        return near_operand(fmt, x, toward_zero=False)
    ball = x.to_arb()
    return round_enclosure(fmt, ball.asin)


def acos(fmt: Format, x: Dyadic) -> Result:
    """0 for 1; pi/2 - x - ... near 0 is near no dyadic number. INVALID beyond ±1."""
    if x.magnitude().compare_integer(1) > 0:
        return invalid(fmt)
    if x.odd() == ONE:
        return zero_result(fmt, 0)
    ball = x.to_arb()
    return round_enclosure(fmt, ball.acos)


def atan(fmt: Format, x: Dyadic) -> Result:
    """x - x**3/3 + ..."""
    if is_small(fmt, x, 2):
        return near_operand(fmt, x, toward_zero=True)
    ball = x.to_arb()
    return round_enclosure(fmt, ball.atan)


def atan2(fmt: Format, y: Dyadic, x: Dyadic) -> Result:
    """The angle of (x, y), neither zero: y/x - (y/x)**3/3 + ... for positive x and a small quotient."""
    if not x.sign and 2 * (x.leading - y.leading - 1) > 2 * fmt.precision + NEAR_BITS:
        exponent = y.exponent - x.exponent
        return round_near_quotient(fmt, y.sign, y.significand, x.significand, exponent, toward_zero=True)
    ordinate, abscissa = y.to_arb(), x.to_arb()
    return round_enclosure(fmt, lambda: arb.atan2(ordinate, abscissa))


def multiple_of_pi(fmt: Format, sign: int, numerator: int, denominator: int) -> Result:
    """(-1)**sign * pi * numerator / denominator."""
    factor = -numerator if sign else numerator
    return round_enclosure(fmt, lambda: arb.pi() * factor / denominator)
