"""Complex square root, its reciprocal, sign and quotient of finite numbers.

A part of a root that is a number of the format or a midpoint is recognised by putting the candidate into its equation.
With z = x + iy, the real part c of sqrt z is the positive root of 4 c*c (c*c - x) = y*y and the imaginary part d has
4 d*d (d*d + x) = y*y; for the reciprocal root the same with 1/z; for sign, c*c (x*x + y*y) = x*x.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import isqrt

from flint import arb

from tlir.floatlib.arb import NEAR_BITS, Dyadic, Result, round_near, round_near_quotient
from tlir.floatlib.elementary.complex.finite import Pair, check_gap, enclose
from tlir.floatlib.format import Format
from tlir.floatlib.rounding import round_exact, round_quotient, zero_result


def sqrt(fmt: Format, x: Dyadic, y: Dyadic) -> Pair:
    """The principal root for x and y not zero: sqrt((|z| + |x|) / 2) is one part, |y| over twice that the other."""
    check_gap(x, y)
    bx, by = x.magnitude().to_arb(), y.magnitude().to_arb()

    def greater() -> arb:
        return (((bx * bx + by * by).sqrt() + bx) / 2).sqrt()

    def lesser() -> arb:
        return by / (2 * greater())

    real, imaginary = (lesser, greater) if x.sign else (greater, lesser)
    fx, fy = _fraction(x), _fraction(y)
    return (
        _algebraic(fmt, 0, real, lambda c: 4 * c * c * (c * c - fx) == fy * fy),
        _algebraic(fmt, y.sign, imaginary, lambda d: 4 * d * d * (d * d + fx) == fy * fy),
    )


def rsqrt(fmt: Format, x: Dyadic, y: Dyadic) -> Pair:
    """The reciprocal of the principal root for x and y not zero: conj(sqrt z) / |z|."""
    check_gap(x, y)
    bx, by = x.magnitude().to_arb(), y.magnitude().to_arb()

    def magnitude() -> arb:
        return (bx * bx + by * by).sqrt()

    def greater() -> arb:
        return ((magnitude() + bx) / 2).sqrt() / magnitude()

    def lesser() -> arb:
        return by / (2 * ((magnitude() + bx) / 2).sqrt() * magnitude())

    real, imaginary = (lesser, greater) if x.sign else (greater, lesser)
    fx, fy = _fraction(x), _fraction(y)
    square = fx * fx + fy * fy
    wx, wy = fx / square, fy / square
    return (
        _algebraic(fmt, 0, real, lambda c: 4 * c * c * (c * c - wx) == wy * wy),
        _algebraic(fmt, 1 - y.sign, imaginary, lambda d: 4 * d * d * (d * d + wx) == wy * wy),
    )


def sign(fmt: Format, x: Dyadic, y: Dyadic) -> Pair:
    """x / |z|, y / |z| for x and y not zero."""
    return _cosine(fmt, x, y), _cosine(fmt, y, x)


def _cosine(fmt: Format, x: Dyadic, y: Dyadic) -> Result:
    """x / sqrt(x*x + y*y): 1 - (y/x)**2 / 2 + ... or x/|y| (1 - (x/y)**2 / 2 + ...)."""
    gap = x.leading - y.leading
    if 2 * (gap - 1) > fmt.precision + NEAR_BITS:
        return round_near(fmt, x.sign, 1, 0, toward_zero=True)
    if 2 * (-gap - 1) > 2 * fmt.precision + NEAR_BITS:
        exponent = x.exponent - y.exponent
        return round_near_quotient(fmt, x.sign, x.significand, y.significand, exponent, toward_zero=True)
    bx, by = x.magnitude().to_arb(), y.to_arb()
    # only the ratio matters, so exponents are taken relative to y's
    fx, fy = Fraction(x.significand) * Fraction(2) ** (x.exponent - y.exponent), Fraction(y.significand)
    return _algebraic(
        fmt, x.sign, lambda: bx / (bx * bx + by * by).sqrt(), lambda c: c * c * (fx * fx + fy * fy) == fx * fx
    )


def _algebraic(fmt: Format, sign: int, ball: Callable[[], arb], solves: Callable[[Fraction], bool]) -> Result:
    """The word of (-1)**sign times the positive number that the balls contain."""
    signed = (lambda: -ball()) if sign else ball
    return enclose(fmt, signed, is_exact=lambda candidate: solves(_fraction(candidate.magnitude())))


def sqrt_of(fmt: Format, x: Dyadic) -> Result:
    """sqrt(x) for x > 0, by an integer root."""
    shift = max(0, 2 * (fmt.precision + 2) - x.significand.bit_length())
    shift += (x.exponent - shift) & 1
    radicand = x.significand << shift
    root = isqrt(radicand)
    return round_exact(fmt, 0, root, (x.exponent - shift) // 2, root * root != radicand)


def divide(fmt: Format, a: Dyadic, b: Dyadic, c: Dyadic, d: Dyadic) -> Pair:
    """(a + bi) / (c + di) for a divisor other than 0: (ac + bd) / (cc + dd), (bc - ad) / (cc + dd), exact and rounded
    once. A zero part is -0 only if both products of its numerator are -0."""
    for one, other in ((a, b), (c, d), (a, c), (a, d), (b, c), (b, d)):
        check_gap(one, other)
    denominator, exponent = _sum(_product(c, c), _product(d, d))
    return (
        _quotient(fmt, _product(a, c), _product(b, d), denominator, exponent),
        _quotient(fmt, _product(b, c), _product(a.negative(), d), denominator, exponent),
    )


def _quotient(fmt: Format, left: Dyadic, right: Dyadic, denominator: int, exponent: int) -> Result:
    numerator, scale = _sum(left, right)
    if numerator == 0:
        return zero_result(fmt, int(left.significand == right.significand == 0 and left.sign == right.sign == 1))
    return round_quotient(fmt, int(numerator < 0), abs(numerator), denominator, scale - exponent)


def _product(x: Dyadic, y: Dyadic) -> Dyadic:
    return Dyadic(x.sign ^ y.sign, x.significand * y.significand, x.exponent + y.exponent)


def _sum(x: Dyadic, y: Dyadic) -> tuple[int, int]:
    """The integer and the exponent of the exact sum."""
    if x.significand == 0 or y.significand == 0:
        chosen = y if x.significand == 0 else x
        return chosen.signed, chosen.exponent
    exponent = min(x.exponent, y.exponent)
    return (x.signed << (x.exponent - exponent)) + (y.signed << (y.exponent - exponent)), exponent


def _fraction(x: Dyadic) -> Fraction:
    return Fraction(x.signed) * Fraction(2) ** x.exponent
