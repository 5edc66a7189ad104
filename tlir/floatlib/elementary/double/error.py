"""The error function and its complement in double-double arithmetic. u = 2**-53."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from flint import arb

from tlir.floatlib.elementary.double.arithmetic import (
    Double,
    add_similar,
    fast_two_sum,
    from_bits,
    multiply,
    multiply_number,
    nearest_integer,
    select_double,
    signed,
    table,
    two_product,
)
from tlir.floatlib.elementary.double.exponential import exponential
from tlir.floatlib.elementary.double.tables import pairs
from tlir.floatlib.elementary.number import Number

CELLS_PER_ONE = 128
END = 6
"""erf 6 = 1 - 2**-55.3, so that erf rounds to 1 from there on."""


@cache
def values() -> tuple[tuple[float, ...], ...]:
    """erf(j/128) for j = 0 to 768, highs and lows."""
    return pairs(lambda: [(arb(j) / CELLS_PER_ONE).erf() for j in range(END * CELLS_PER_ONE + 1)])


@cache
def slopes() -> tuple[tuple[float, ...], ...]:
    """erf'(j/128) = 2/sqrt(pi) e**-(j/128)**2, highs and lows."""

    def each() -> Iterator[arb]:
        factor = 2 / arb.pi().sqrt()
        for j in range(END * CELLS_PER_ONE + 1):
            c = arb(j) / CELLS_PER_ONE
            yield factor * (-c * c).exp()

    return pairs(each)


TERMS = 8
"""The last term of ``erf`` is that of d**9."""


def _magnitude(a: Number) -> Double:
    """erf a for 0 <= a, at 6 from there on: within 2**-67.5.

    With c = j/128 nearest to a and d = a - c, exact, |d| <= 2**-8: erf a = erf c + erf'(c) (d - c d**2 + d**3 Q),

        Q = g2/3 + g3 d/4 + ... + g8 d**6/9,    g0 = 1,  g1 = -2c,  (n + 1) g(n+1) = -2 (c g(n) + g(n-1)),

    the coefficients of e**(-2cd - d*d). erf'(c) g(n) = 1.13 e**(-c*c) H(n)(c) (-1)**n / n!, and with |H(n)(c)| < 1.09
    sqrt(2**n n!) e**(c*c/2) the first term left out is below 2**-87; for c = 0 odd n have none, and n = 10 has 2**-90
    |d|. d - c d**2 is exact as pairs, and so is the product with erf'(c) but for 2**-98. erf'(c) d**3 Q is largest
    beside the result for c = 0 and c = 1/128: 2**-17.58 of it. It has 7 u of itself (two for d**3, three for Q, two for
    product and sum; for c > 1/2, where 2 c*c - 1 cancels, all of it is below 2**-22 of the result), and the sum of
    lows adds u: 8 u * 2**-17.58 = 2**-67.58.
    """
    m = a.m
    a = a.minimum(float(END))
    j, word = nearest_integer(a * float(CELLS_PER_ONE))
    c = j * (1 / CELLS_PER_ONE)
    d = a - c
    index = m.and_(word, m.constant(1023))
    before, g = c * -2.0, (c * c).times_plus(2.0, -1.0)
    coefficients = [g * (1 / 3)]
    for n in range(2, TERMS):
        before, g = g, c.times_plus(g, before) * (-2 / (n + 1))
        coefficients.append(g * (1 / (n + 2)))
    q = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        q = q.times_plus(d, coefficient)
    square = two_product(d, d)
    bend = two_product(square.hi, -c)
    total = fast_two_sum(d, bend.hi)
    small = bend.lo - square.lo * c
    offset = fast_two_sum(total.hi, total.lo + (d * square.hi).times_plus(q, small))
    (value_highs, value_lows), (slope_highs, slope_lows) = values(), slopes()
    part = multiply(Double(table(m, slope_highs, index), table(m, slope_lows, index)), offset)
    total = fast_two_sum(table(m, value_highs, index), part.hi)
    return fast_two_sum(total.hi, total.lo + (part.lo + table(m, value_lows, index)))


def erf(x: Number) -> Double:
    """2**-67.5."""
    return signed(_magnitude(abs(x)), x.sign)


FIRST = 0x3FE0000000000000  # the bits of 1/2
TAIL_CELLS = 6 * 256
"""256 in each binade from 1/2 to 32."""


def center(cell: int) -> float:
    """The middle of a cell of the tail."""
    binade, place = divmod(cell, 256)
    return (1 + (2 * place + 1) / 512) * 2.0 ** (binade - 1)


@cache
def scaled() -> tuple[tuple[tuple[float, ...], ...], ...]:
    """Taylor coefficients w0, w1, w2 of w(x) = e**(x*x) erfc(x) at the centers, each as highs and lows."""

    def coefficients() -> Iterator[arb]:
        factor = 2 / arb.pi().sqrt()
        for cell in range(TAIL_CELLS):
            c = arb(center(cell))
            w0 = (c * c).exp() * c.erfc()
            w1 = 2 * c * w0 - factor
            yield from (w0, w1, c * w1 + w0)

    highs, lows = pairs(coefficients)
    return tuple((highs[order::3], lows[order::3]) for order in range(3))


TAIL_TERMS = 7


def _scaled(x: Number) -> Double:
    """e**(x*x) erfc(x) for 1/2 <= x < 27 within 2**-67.3.

    In the cell around c, d = x - c is exact, |d| <= 2**-9 c. w = w0 + w1 d + ... + w7 d**7, and w' = 2 x w - 2/sqrt(pi)
    gives (n + 1) w(n+1) = 2 (c w(n) + w(n-1)). |w(n)| = 2/sqrt(pi) times the integral of (2t)**n/n! e**(-t*t - 2ct) is
    below c**-n / (c sqrt(pi)) and so below 1.9 c**-n w0, 1.1 c**-n w0 from c = 2 on. The first term left out is below
    1.9 * 2**-72 w0. w1 d is a product of pairs. w2 d**2 is below 2**-17.07 w0, below 2**-17.86 w0 from c = 2 on, and
    has 5 u of itself; the sum of lows adds u. What c w(n) + w(n-1) loses by cancellation is, at c = 27, where it is
    largest, u times 2**-17.5, 2**-17, 2**-19.5, 2**-20.6 and 2**-22 of w0 for n = 3 to 7, 2**-16 u in all, and below
    2**-24 u for c < 2. Together 6 u * 2**-17.07 = 2**-67.49 below 2, 6 u * 2**-17.86 + 2**-16 u = 2**-67.5 beyond.
    """
    m = x.m
    bits = x.bits
    index = m.shift_right(m.subtract(bits, m.constant(FIRST)), m.constant(44))
    c = from_bits(m, m.or_(m.and_(bits, m.constant((1 << 64) - (1 << 44))), m.constant(1 << 43)))
    d = x - c
    zeroth, first, second = scaled()
    w0 = Double(table(m, zeroth[0], index), table(m, zeroth[1], index))
    w1 = Double(table(m, first[0], index), table(m, first[1], index))
    before, w = w1.hi, table(m, second[0], index)
    coefficients = [w]
    for n in range(2, TAIL_TERMS):
        before, w = w, c.times_plus(w, before) * (2 / (n + 1))
        coefficients.append(w)
    tail = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        tail = tail.times_plus(d, coefficient)
    linear = multiply_number(w1, d)
    total = fast_two_sum(w0.hi, linear.hi)
    return fast_two_sum(total.hi, total.lo + (d * d).times_plus(tail, linear.lo + w0.lo))


def erfc(x: Number) -> Double:
    """2**-67. 1 - erf x for x < 1/2: erf x < 0.53 and erfc x > 0.47, so 2**-67.58 * 1.13 = 2**-67.4. Elsewhere
    e**(-x*x), x*x exact as a pair, within 2**-70, times ``_scaled``: 2**-67.1. For x < 26.2."""
    far = x.maximum(0.5)
    square = two_product(far, far)
    tail = multiply(exponential(-square.hi, -square.lo), _scaled(far))
    near = signed(_magnitude(abs(x)), x.sign)
    difference = add_similar(Double(x.like(1.0), x.like(0.0)), -near)
    return select_double(x < 0.5, difference, tail)
