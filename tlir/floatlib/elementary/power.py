"""Roots, hypot and power of finite numbers, rounded once. The roots are exact integers with a sticky bit, no Arb."""

from __future__ import annotations

from math import isqrt

from flint import ctx, fmpz

from tlir.floatlib.arb import NEAR_BITS, Dyadic, Result, huge, round_enclosure, round_near, tiny
from tlir.floatlib.elementary.exponential import LARGEST_EXPONENT, invalid, log_enclosure
from tlir.floatlib.format import Format
from tlir.floatlib.rounding import round_exact


def rsqrt(fmt: Format, x: Dyadic) -> Result:
    """1 / sqrt(x): the root of an integer quotient, which is exact only if x is a power of four. INVALID below zero."""
    if x.sign:
        return invalid(fmt)
    significand, exponent = x.significand << (x.exponent & 1), x.exponent - (x.exponent & 1)
    scale = fmt.precision + 3 + significand.bit_length()
    # floor(sqrt(floor(q))) = floor(sqrt(q))
    root = isqrt((1 << 2 * scale) // significand)
    return round_exact(fmt, 0, root, -scale - exponent // 2, root * root * significand != 1 << 2 * scale)


def cbrt(fmt: Format, x: Dyadic) -> Result:
    """The real cube root, of an integer with three times the precision."""
    shift = max(0, 3 * (fmt.precision + 3) - x.significand.bit_length())
    shift += (x.exponent - shift) % 3
    radicand = fmpz(x.significand << shift)
    root = int(radicand.root(3))
    return round_exact(fmt, x.sign, root, (x.exponent - shift) // 3, root**3 != int(radicand))


def hypot(fmt: Format, x: Dyadic, y: Dyadic) -> Result:
    """sqrt(x*x + y*y) of the integer sum of squares; x + y**2/(2x) - ... > x where y is far below x.

    Neither is zero."""
    if x.leading < y.leading:
        x, y = y, x
    if 2 * (x.leading - y.leading - 1) > fmt.precision + NEAR_BITS:
        return round_near(fmt, 0, x.significand, x.exponent, toward_zero=False)
    exponent = min(x.exponent, y.exponent)
    square = (x.significand << (x.exponent - exponent)) ** 2 + (y.significand << (y.exponent - exponent)) ** 2
    shift = max(0, fmt.precision + 3 - square.bit_length() // 2)
    square <<= 2 * shift
    root = isqrt(square)
    return round_exact(fmt, 0, root, exponent - shift, root * root != square)


def power(fmt: Format, x: Dyadic, y: Dyadic) -> Result:
    """x**y for x not 0 and not 1, y not 0. INVALID for a negative x and a y that is no integer."""
    if x.sign and not y.is_integer():
        return invalid(fmt)
    return magnitude_power(fmt, int(x.sign and y.is_odd_integer()), x.magnitude(), y)


def magnitude_power(fmt: Format, sign: int, x: Dyadic, y: Dyadic) -> Result:
    """(-1)**sign * x**y for x > 0.

    With x = m * 2**e (m odd) and y = n * 2**f (n odd), x**y is dyadic only if it is rational: y an integer, or x the
    2**-f th power of a dyadic number (n is odd, so it can take no part). Then it is s**N * 2**k for an odd s and an
    integer N, which is dyadic if s = 1 or N > 0 and has more than N * (bits of s - 1) bits: it is computed if that is
    not more than the format's and two, and no candidate for a midpoint otherwise. All other powers are rational but not
    dyadic or irrational algebraic numbers, so the enclosure ends. A |y log x| too large or too small for the format is
    decided beforehand."""
    x = x.odd()
    if x.significand == 1 and x.exponent == 0:
        return round_exact(fmt, sign, 1, 0)
    enclose_log = log_enclosure(x)
    previous, ctx.prec = ctx.prec, 64
    try:
        product = abs(enclose_log() * y.to_arb())
        is_huge = product > 1 << LARGEST_EXPONENT
        is_near_one = product * (1 << (fmt.precision + NEAR_BITS + 1)) < 1
    finally:
        ctx.prec = previous
    grows = (x.leading >= 0) != bool(y.sign)
    if is_huge:
        return huge(fmt, sign) if grows else tiny(fmt, sign)
    if is_near_one:
        return round_near(fmt, sign, 1, 0, toward_zero=not grows)
    root = power_of_root(x, y)
    if root is not None:
        base, exponent = root
        if base.significand == 1:
            return round_exact(fmt, sign, 1, base.exponent * exponent)
        if exponent > 0 and exponent * (base.significand.bit_length() - 1) <= fmt.precision + 2:
            return round_exact(fmt, sign, base.significand**exponent, base.exponent * exponent)
    exponent_ball, flip = y.to_arb(), -1 if sign else 1
    return round_enclosure(
        fmt, lambda: flip * (enclose_log() * exponent_ball).exp(), guard=max(0, y.leading + x.leading.bit_length())
    )


def power_of_root(x: Dyadic, y: Dyadic) -> tuple[Dyadic, int] | None:
    """(s, N) with x**y = s**N, s dyadic with an odd significand and N an integer; None if x**y is irrational."""
    y = y.odd()
    if y.exponent >= 0:
        return x, y.signed << y.exponent
    significand, exponent = x.significand, x.exponent
    for _ in range(-y.exponent):
        root = isqrt(significand)
        if root * root != significand or exponent & 1:
            return None
        significand, exponent = root, exponent >> 1
    return Dyadic(0, significand, exponent), y.signed
