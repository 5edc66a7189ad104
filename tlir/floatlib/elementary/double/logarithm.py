"""Logarithms, inverse hyperbolic functions and the power in double-double arithmetic. u = 2**-53.

x = 2**k z with z from 0.6875 to 1.375, in one of 256 cells by its leading bits. c, a number of few bits near 1/z, makes
r = c z - 1 exact in binary64, |r| < 2**-8, and log x = k log 2 - log c + log(1 + r). In the cells on both sides of 1, c
is 1, so that the logarithm of a number near 1 is that of 1 + r alone, and has its relative accuracy. In the other cells
|log c| > |r|, and in all of them |r|**3 <= 2**-15.9 |log x| (tests/floatlib/test_elementary_double_arithmetic.py).
"""

from __future__ import annotations

from functools import cache
from math import inf
from typing import NamedTuple

from flint import arb

from tlir.floatlib.elementary.double.arithmetic import (
    Double,
    add_number,
    add_similar,
    constant,
    divide,
    fast_two_sum,
    from_bits,
    multiply,
    multiply_number,
    polynomial,
    select,
    signed,
    square_root,
    table,
    two_product,
    two_sum,
)
from tlir.floatlib.elementary.double.exponential import exponential
from tlir.floatlib.elementary.double.tables import pair, pairs
from tlir.floatlib.elementary.number import Number

CELLS = 256
START = 0x3FE6000000000000  # the bits of 0.6875
EXPONENT = 0xFFF << 52
MULTIPLE = 42
"""log 2 and the highs of log c are multiples of 2**-42: k log 2 - log c, below 2**10, is exact in their highs."""


class Cells(NamedTuple):
    """c, and -log c as highs and lows."""

    inverse: tuple[float, ...]
    high: tuple[float, ...]
    low: tuple[float, ...]


def cell(index: int) -> tuple[int, int, int]:
    """(first, bits, digits): cell ``index`` is from first / 2**bits to (first + 1) / 2**bits, and its c has ``digits``
    bits after the point. 160 cells of 2**-9 from 0.6875 to 1, and 96 of 2**-8 from there."""
    if index < 160:
        return 352 + index, 9, 8
    return 256 + (index - 160), 8, 9


@cache
def cells() -> Cells:
    inverse = []
    for index in range(CELLS):
        first, bits, digits = cell(index)
        beside_one = first in (1 << bits, (1 << bits) - 1)
        center = (2 * first + 1) / (1 << (bits + 1))
        inverse.append(1.0 if beside_one else round((1 << digits) / center) / (1 << digits))
    highs, lows = pairs(lambda: [-arb(c).log() for c in inverse], MULTIPLE)
    return Cells(tuple(inverse), highs, lows)


@cache
def _log2() -> tuple[float, float]:
    return pair(arb.const_log2, MULTIPLE)


@cache
def _third() -> tuple[float, float]:
    return pair(lambda: arb(1) / 3)


TERMS = [(-1) ** (n + 1) / n for n in range(1, 11)]
"""1, -1/2, 1/3, ...: log(1 + r) = r * (1 - r/2 + r**2/3 - ...)."""


def logarithm(x: Number, low: Number | None = None, near: Double | None = None, accurate: bool = False) -> Double:
    """log(x + low) for normal x, |low| < 2**-52 x: within 2**-68 of it, or 2**-80 if ``accurate``.

    ``near`` is x + low - 1 as a pair, if that is known better than from x; it is taken in the two cells beside 1.

    r - r**2/2 is exact as two pairs. r**3 (1/3 - r/4 + ...) up to r**9/9 (r**10/10 < 2**-75 |r|), below 2**-17.48 of
    the result, has 4.3 u of itself (the square, the cube, 1.3 u of the polynomial, a product), and its sum with lows of
    2**-52 adds u: 5.3 u * 2**-17.48 = 2**-68.07. A low part l of r adds l / (1 + r), and l (1 - r + r**2) is within
    2**-24 l of it: 2**-77. The lows of the table and of k log 2 have roundings of 2**-96 (k = 0, beside 2**-9) and k
    2**-96. If ``accurate``, r**3 and 1/3 - r/4 are pairs too; what is added to the latter, r**2 (1/5 - ...), is below
    2**-18 and has 3 u of itself: 2**-69.4 of a part of 2**-15.9, and r**11/11 < 2**-83 |r| is left out. Roundings of
    lows: 2**-86.
    """
    m = x.m
    bits = x.bits
    offset = m.subtract(bits, m.constant(START))
    index = m.and_(m.shift_right(offset, m.constant(44)), m.constant(CELLS - 1))
    # the sign bit flipped makes of k the unsigned k + 2048
    k = Number(m, m.real_of(m.shift_right(m.xor(offset, m.constant(1 << 63)), m.constant(52)))) - 2048.0
    exponent = m.and_(offset, m.constant(EXPONENT))
    z = from_bits(m, m.subtract(bits, exponent))
    entries = cells()
    inverse = table(m, entries.inverse, index)
    product = two_product(z, inverse)
    r = (product.hi - 1.0) + product.lo
    r_low: Number | None = None
    if low is not None:
        shrink = from_bits(m, m.subtract(m.constant(1023 << 52), exponent))
        r_low = low * shrink * inverse
        if near is not None:
            beside_one = m.both(abs(r) < 0.00390625, m.both(inverse.equals(1.0), k.equals(0.0)))
            r, r_low = select(beside_one, near.hi, r), select(beside_one, near.lo, r_low)
        r, r_low = fast_two_sum(r, r_low)
    first, second = _log2()
    high = k.times_plus(first, table(m, entries.high, index))
    below = k.times_plus(second, table(m, entries.low, index))
    if r_low is not None:
        below = below + r_low.times_plus((r * r - r), r_low)
    square = two_product(r, r)
    total = fast_two_sum(high, r)
    next_total = fast_two_sum(total.hi, square.hi * -0.5)
    below = square.lo.times_plus(-0.5, below) + (total.lo + next_total.lo)
    if not accurate:
        cube = r * square.hi
        return fast_two_sum(next_total.hi, cube.times_plus(polynomial(r, TERMS[2:9]), below))
    third = constant(m, _third())
    factor = fast_two_sum(third.hi, r * -0.25)
    factor = fast_two_sum(factor.hi, factor.lo + square.hi.times_plus(polynomial(r, TERMS[4:10]), third.lo))
    cubic = multiply(multiply_number(square, r), factor)
    # lows that a rounding must not touch: 2**-52 beside a result of 2**-9
    rest = two_sum(next_total.hi, cubic.hi)
    return fast_two_sum(rest.hi, rest.lo + (below + cubic.lo))


def log(x: Number) -> Double:
    """log x for normal x > 0: 2**-68."""
    return logarithm(x)


@cache
def _inverse_logarithms() -> tuple[tuple[float, float], tuple[float, float]]:
    return pair(lambda: 1 / arb.const_log2()), pair(lambda: 1 / arb.const_log10())


def log2(x: Number) -> Double:
    """log x / log 2: 2**-68 and 2**-97."""
    return multiply(logarithm(x), constant(x.m, _inverse_logarithms()[0]))


def log10(x: Number) -> Double:
    """log x / log 10: 2**-68 and 2**-97."""
    return multiply(logarithm(x), constant(x.m, _inverse_logarithms()[1]))


def log_of_one_plus(s: Double, accurate: bool = False) -> Double:
    """log(1 + s) for s = 0 to 2**900, or -1 < s.hi with s.lo = 0: 1 + s is h + l, exactly but for the rounding of the
    lows: 2**-105 of 1 + s, so 2**-96 of the logarithm where that is not below 2**-9. Below, it is log(1 + s) of s
    itself. ``accurate`` as for ``logarithm``, whose low part leaves 2**-77."""
    total = two_sum(s.hi.like(1.0), s.hi)
    return logarithm(*fast_two_sum(total.hi, total.lo + s.lo), near=s, accurate=accurate)


def log_plus_one(x: Number) -> Double:
    """log(1 + x) for -1 < x < 2**900: 2**-68. 1 + x is a pair, exactly."""
    total = two_sum(x.like(1.0), x)
    return logarithm(total.hi, total.lo, near=Double(x, x.like(0.0)))


LARGE = 2.0**45


def asinh(x: Number) -> Double:
    """log(1 + s), s = |x| + x**2 / (1 + sqrt(1 + x**2)) within 2**-95: no cancellation, and the condition number of
    log(1 + s) is at most 1. From 2**45 on log(2|x|): what that lacks, 1 / (4 x**2), is below 2**-92. For |x| <
    2**900."""
    magnitude = abs(x)
    zero = x.like(0.0)
    a = magnitude.minimum(LARGE)
    square = two_product(a, a)
    one = Double(x.like(1.0), zero)
    root = square_root(add_number(square, one.hi))
    s = add_similar(Double(a, zero), divide(square, add_number(root, one.hi)))
    return signed(_inverse_hyperbolic(magnitude, s), x.sign)


def acosh(x: Number) -> Double:
    """log(1 + s), s = t + sqrt(t (2 + t)) for t = x - 1, which is a pair exactly: within 2**-95. From 2**45 on log(2
    x), as ``asinh``. For 1 < x < 2**900."""
    a = x.minimum(LARGE)
    t = two_sum(a, x.like(-1.0))
    s = add_similar(t, square_root(multiply(t, add_number(t, x.like(2.0)))))
    return _inverse_hyperbolic(x, s)


def _inverse_hyperbolic(magnitude: Number, s: Double) -> Double:
    total = two_sum(s.hi.like(1.0), s.hi)
    argument = fast_two_sum(total.hi, total.lo + s.lo)
    large = magnitude > LARGE
    high = select(large, magnitude * 2.0, argument.hi)
    return logarithm(high, select(large, magnitude.like(0.0), argument.lo), near=s)


def atanh(x: Number) -> Double:
    """log(1 + 2|x| / (1 - |x|)) / 2 for |x| < 1: 1 - |x| is a pair exactly, the quotient has 2**-101."""
    magnitude = abs(x)
    zero = x.like(0.0)
    quotient = divide(Double(magnitude * 2.0, zero), two_sum(x.like(1.0), -magnitude))
    result = log_of_one_plus(quotient)
    return signed(Double(result.hi * 0.5, result.lo * 0.5), x.sign)


def power(x: Number, y: Number) -> Double:
    """x**y = ± e**(y log |x|) within 2**-69, negative for x < 0 and odd y. The exponent, below 710 in magnitude, is
    within 2**-80 of itself, so 2**-70.5 in absolute terms, and ``exponential`` adds 2**-70. Infinite for exponents
    beyond 710, 0 below -746, and where it is outside -690 to 709.7 the result is that at the limit, 2**-995 or
    2**1023.8.

    |log x| >= 2**-53 for x other than 1, so that a y beyond 2**64 is as good as that."""
    m = x.m
    exponent = multiply_number(logarithm(abs(x), accurate=True), y.between(-(2.0**64), 2.0**64))
    high = exponent.hi.between(-690.0, 709.7)
    low = select(high.equals(exponent.hi), exponent.lo, x.like(0.0))
    result = exponential(high, low)
    magnitude = x.like(inf).where(exponent.hi > 710.0, result.hi)
    vanishes = exponent.hi < -746.0
    magnitude, rest = x.like(0.0).where(vanishes, magnitude), x.like(0.0).where(vanishes, result.lo)
    half = y * 0.5
    odd = m.both(y.equals(y.rounded()), m.negation(half.equals(half.rounded())))
    return signed(Double(magnitude, rest), m.select(odd, x.sign, m.constant(0)))
