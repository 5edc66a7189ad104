"""Roots and the length of a vector in double-double arithmetic. u = 2**-53."""

from __future__ import annotations

from functools import cache

from flint import arb

from tlir.floatlib.elementary.double.arithmetic import (
    Double,
    add_similar,
    divide,
    fast_two_sum,
    from_bits,
    polynomial,
    select,
    signed,
    square_root,
    two_product,
)
from tlir.floatlib.elementary.double.tables import pair
from tlir.floatlib.elementary.number import Number

FIELD = 0x7FF << 52
FRACTION = (1 << 52) - 1


def rsqrt(x: Number) -> Double:
    """1 / sqrt(x) for normal x > 0: 2**-100 for the root and 2**-101 for the quotient. x = 2**(2n) y, 1 <= y < 4."""
    m = x.m
    bits = x.bits
    # the biased exponent e: n = (e - 1023) >> 1, and y has the exponent (e - 1023) & 1
    shifted = m.add(m.shift_right(bits, m.constant(52)), m.constant(1))
    half = m.shift_right(shifted, m.constant(1))  # n + 512
    exponent = m.add(m.constant(1023), m.and_(shifted, m.constant(1)))
    y = from_bits(m, m.or_(m.and_(bits, m.constant(FRACTION)), m.shift_left(exponent, m.constant(52))))
    result = divide(Double(x.like(1.0), x.like(0.0)), square_root(Double(y, x.like(0.0))))
    power = from_bits(m, m.shift_left(m.subtract(m.constant(1023 + 512), half), m.constant(52)))
    return Double(result.hi * power, result.lo * power)


@cache
def _cbrt_start() -> list[float]:
    """The interpolation polynomial of z**(-1/3) at the five Chebyshev points of 1 to 2, the constant first: within
    (1/3)(4/3)...(13/3) / 5! / (2**4 * 2**5) < 0.00022 of it, because the fifth derivative is largest at 1."""
    points = [1.5 + 0.5 * c for c in (-0.951056516295, -0.587785252292, 0.0, 0.587785252292, 0.951056516295)]
    rows = [[point**k for k in range(5)] + [point ** (-1 / 3)] for point in points]
    for k in range(5):
        rows[k] = [value / rows[k][k] for value in rows[k]]
        for other in range(5):
            if other != k:
                rows[other] = [a - rows[other][k] * b for a, b in zip(rows[other], rows[k], strict=True)]
    return [row[5] for row in rows]


@cache
def _cube_roots() -> tuple[float, float]:
    """2**(-1/3), 2**(-2/3)."""
    return pair(lambda: arb(2) ** (arb(-1) / 3))[0], pair(lambda: arb(2) ** (arb(-2) / 3))[0]


def cbrt(x: Number) -> Double:
    """The cube root for normal x: 2**-98.

    |x| = 2**(3n) y, 1 <= y < 8. w, near y**(-1/3) within d0 = 0.00025, becomes w (1 + h/3 + 2 h**2/9 + 14 h**3/81)
    with h = 1 - y w**3, |h| < 3.1 d0: what is left out is below 0.15 h**4 < 2**-43. Once more (1 + h/3 is enough
    then, h**2 < 2**-80): h has an absolute error of 3 u and the sum u, so w has less than 3 u. s = y w**2 has less
    than 8 u, and with its exact cube (s**2 and its products are pairs, 2**-104) the remainder y - s**3, below 25 u y,
    times w**2 / 3 corrects it. That has 12 u of itself, so 96 u**2 of s, and leaves out 64 u**2: less than 2**-98 in
    all.
    """
    m = x.m
    bits = x.bits
    field = m.shift_right(m.and_(bits, m.constant(FIELD)), m.constant(52))
    # 1023 = 3 * 341, so field = 3 (n + 341) + j; the division by 3 is exact below 2**16
    third = m.shift_right(m.multiply(field, m.constant(43691)), m.constant(17))
    j = m.subtract(field, m.multiply(third, m.constant(3)))
    fraction = m.and_(bits, m.constant(FRACTION))
    z = from_bits(m, m.or_(fraction, m.constant(1023 << 52)))
    y = from_bits(m, m.or_(fraction, m.shift_left(m.add(j, m.constant(1023)), m.constant(52))))
    once, twice = _cube_roots()
    start = polynomial(z, _cbrt_start())
    factor = select(m.equal(j, m.constant(1)), x.like(once), x.like(1.0))
    w = start * select(m.equal(j, m.constant(2)), x.like(twice), factor)
    h = 1.0 - y * (w * w * w)
    w = (w * h).times_plus(polynomial(h, [1 / 3, 2 / 9, 14 / 81]), w)
    h = 1.0 - y * (w * w * w)
    w = (w * h).times_plus(1 / 3, w)
    inverse = w * w
    s = y * inverse
    square = two_product(s, s)
    cube = two_product(square.hi, s)
    remainder = (y - cube.hi) - cube.lo - square.lo * s
    result = fast_two_sum(s, remainder * (inverse * (1 / 3)))
    scale = from_bits(m, m.shift_left(m.add(third, m.constant(1023 - 341)), m.constant(52)))
    return signed(Double(result.hi * scale, result.lo * scale), x.sign)


def hypot(x: Number, y: Number) -> Double:
    """sqrt(x**2 + y**2) for 2**-900 < |x|, |y| < 2**900: both are multiplied by a power of two that makes the larger
    one 1 to 2. What the smaller one's square loses by underflow is below 2**-1074, beside 1. The sum has 2**-100, half
    of it for the root, which adds 2**-102."""
    m = x.m
    x, y = abs(x), abs(y)
    exponent = m.and_(x.maximum(y).bits, m.constant(FIELD))
    power = from_bits(m, exponent)
    inverse = from_bits(m, m.subtract(m.constant(2046 << 52), exponent))
    a, b = x * inverse, y * inverse
    result = square_root(add_similar(two_product(a, a), two_product(b, b)))
    return Double(result.hi * power, result.lo * power)
