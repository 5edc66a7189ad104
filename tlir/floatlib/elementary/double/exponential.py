"""Exponentials and hyperbolic functions in double-double arithmetic. u = 2**-53.

x = k log(2)/256 + r, |r| < 2**-9.52, and e**x = 2**(k >> 8) * T[k & 255] * e**r with T[j] = 2**(j/256) as a pair.

``reduce``: k log(2)/256 is taken off in three pieces; k has 19 bits, the first two pieces 33 bits each. The first
product is exact, and so is the difference, because both are within a factor of two (or k = 0). The second product is
exact, and the difference is kept as a pair. The third product is below 2**-59, so its rounding and that of the sum of
the lows stay below 2**-110, and so does what the three pieces lack.

e**r - 1 = r + r**2/2 + ...: terms from r**n/n! on with n = 8 (7 in ``exponential``) are left out, less than
2**-91 = 2**-81 |r| (2**-79).
"""

from __future__ import annotations

from functools import cache
from math import factorial

from flint import arb

from tlir.floatlib.elementary.double.arithmetic import (
    Double,
    add,
    add_number,
    add_similar,
    constant,
    divide,
    fast_two_sum,
    multiply,
    multiply_number,
    nearest_integer,
    polynomial,
    power_of_two,
    select_double,
    signed,
    squared,
    table,
    two_product,
    two_sum,
)
from tlir.floatlib.elementary.double.tables import pair, pairs
from tlir.floatlib.elementary.narrow.fit import parts
from tlir.floatlib.elementary.number import Number
from tlir.floatlib.soft.machine import Word

STEPS = 256
INVERSE_FACTORIALS = [1 / factorial(n) for n in range(10)]


@cache
def powers() -> tuple[tuple[float, ...], ...]:
    """2**(j/256), highs and lows."""
    return pairs(lambda: [(arb.const_log2() * j / STEPS).exp() for j in range(STEPS)])


@cache
def step() -> tuple[float, ...]:
    """log(2)/256, below 2**-8.5: multiples of 2**-42 and 2**-75, and the rest."""
    return parts(lambda: arb.const_log2() / STEPS, 42, 75)


@cache
def inverse_step() -> float:
    return pair(lambda: STEPS / arb.const_log2())[0]


@cache
def _third() -> tuple[float, float]:
    return pair(lambda: arb(1) / 3)


@cache
def log2() -> tuple[float, float]:
    return pair(arb.const_log2)


def reduce(x: Number, low: Number | None = None) -> tuple[Word, Double]:
    """(k, r) of x + low, |x| < 750, |low| < 2**-42; ``low`` is added to r.lo, in all within 2**-94 = u * 2**-41."""
    k, word = nearest_integer(x * inverse_step())
    first, second, third = step()
    difference = two_sum(x - k * first, k * -second)
    rest = difference.lo - k * third
    return word, Double(difference.hi, rest) if low is None else two_sum(difference.hi, rest + low)


def scale(x: Number, k: Word) -> Number:
    """2**(k >> 8) for -1022 <= k >> 8 <= 1023."""
    m = x.m
    return power_of_two(m, m.shift_right(k, m.constant(8)))


def _entry(x: Number, k: Word) -> Double:
    m = x.m
    index = m.and_(k, m.constant(STEPS - 1))
    highs, lows = powers()
    return Double(table(m, highs, index), table(m, lows, index))


def _less_one(r: Double) -> Double:
    """e**r - 1 within 2**-83.5 of itself: r**2/2 and r**3/6 are pairs; the rest, below 2**-33.1 |r|, has 5 u of itself,
    and from r**10/10! on, 2**-107 |r|, it is left out."""
    r = two_sum(r.hi, r.lo)
    half = squared(r)
    half = Double(half.hi * 0.5, half.lo * 0.5)
    cube = multiply(multiply(half, r), constant(r.hi.m, _third()))
    rest = r.hi * cube.hi * polynomial(r.hi, [6 * c for c in INVERSE_FACTORIALS[4:]])
    return add(r, add(half, add_number(cube, rest)))


def exponential(x: Number, low: Number | None = None, accurate: bool = False) -> Double:
    """e**(x + low) for -690 < x < 709.7, |low| < 2**-42, within 2**-70 of it, or 2**-91 if ``accurate``: T + T (e**r -
    1) in pairs.

    1 + r.hi + q, q = r.lo (1 + r.hi) + r**2/2 + ...: q < 2**-20.06 has 4 u of itself (a square, a polynomial near 1/2,
    a product, a sum), and T * q and its sum one more each. T * r.hi is exact as a pair, and so is the sum of T and its
    high. The sum of lows, below T * 2**-20, is the last rounding: 7 u * 2**-20.06 * T = 2**-70.2 T, and e**r > 0.998.
    """
    k, r = reduce(x, low)
    entry = _entry(x, k)
    if accurate:
        result = add(entry, multiply(entry, _less_one(r)))
    else:
        square = r.hi * r.hi
        small = square.times_plus(polynomial(r.hi, INVERSE_FACTORIALS[2:7]), r.lo.times_plus(r.hi, r.lo))
        product = two_product(entry.hi, r.hi)
        total = fast_two_sum(entry.hi, product.hi)
        rest = product.lo + entry.lo.times_plus(r.hi, entry.lo)
        result = fast_two_sum(total.hi, total.lo + entry.hi.times_plus(small, rest))
    power = scale(x, k)
    return Double(result.hi * power, result.lo * power)


def exponential_minus_one(x: Number, low: Number | None = None, accurate: bool = False) -> Double:
    """e**(x + low) - 1 for -690 < x < 709.7, |low| < 2**-42 (0 where k = 0: |x| < log(2)/512), within 2**-71 of it, or
    2**-82 if ``accurate``: T (e**r - 1) within 2**-83.4, at most twice the result, and T - 1 within 2**-96 of it.

    e**r - 1 = r.hi + r.hi**2/2 as exact pairs + (r.lo (1 + r.hi) + r**3/6 + ...): the last is below 2**-21.6 |r| beside
    r.lo, which is below 2**-57 and 0 where k = 0. It has 4 u of itself, and three sums add u each: 7 u * 2**-21.6 =
    2**-71.8 |r|. T (e**r - 1) is a product of pairs. T - 1, exact as a pair of pairs, is 0 for k = 0; otherwise the
    result is at least 2**-9.6 max(T, 1), no less than |r| T / 2.
    """
    k, r = reduce(x, low)
    entry, power = _entry(x, k), scale(x, k)
    if accurate:
        part = multiply(entry, _less_one(r))
        start = add_number(two_sum(entry.hi * power, x.like(-1.0)), entry.lo * power)
        return add(start, Double(part.hi * power, part.lo * power))
    square = two_product(r.hi, r.hi)
    cube = r.hi * square.hi * polynomial(r.hi, INVERSE_FACTORIALS[3:8])
    total = fast_two_sum(r.hi, square.hi * 0.5)
    rest = square.lo.times_plus(0.5, r.lo.times_plus(r.hi, r.lo) + cube)
    small = fast_two_sum(total.hi, total.lo + rest)
    product = two_product(entry.hi, small.hi)
    cross = entry.hi.times_plus(small.lo, entry.lo.times_plus(small.hi, product.lo))
    base = two_sum(entry.hi * power, x.like(-1.0))
    high = two_sum(base.hi, product.hi * power)
    return fast_two_sum(high.hi, high.lo + cross.times_plus(power, entry.lo.times_plus(power, base.lo)))


def exp2(x: Number) -> Double:
    """2**x = e**((x - n/256) log 2) T[n]: for -995 < x < 1023.9, within 2**-70. x - n/256 is exact, the product with
    log 2 has less than 2**-100; the rest as ``exponential``, whose ``reduce`` this replaces."""
    k, word = nearest_integer(x * float(STEPS))
    r = multiply_number(constant(x.m, log2()), x - k * (1 / STEPS))
    entry = _entry(x, word)
    small = (r.hi * r.hi).times_plus(polynomial(r.hi, INVERSE_FACTORIALS[2:7]), r.lo.times_plus(r.hi, r.lo))
    product = two_product(entry.hi, r.hi)
    total = fast_two_sum(entry.hi, product.hi)
    rest = product.lo + entry.lo.times_plus(r.hi, entry.lo)
    result = fast_two_sum(total.hi, total.lo + entry.hi.times_plus(small, rest))
    power = scale(x, word)
    return Double(result.hi * power, result.lo * power)


def logistic(x: Number) -> Double:
    """1 / (1 + e**-x), for x > 0, and e**x / (1 + e**x): e**-|x| within 2**-70 changes either by 2**-70 at most, and
    the quotient adds less than 2**-97. For |x| < 690."""
    power = exponential(-abs(x))
    total = fast_two_sum(x.like(1.0), power.hi)
    denominator = fast_two_sum(total.hi, total.lo + power.lo)
    one = Double(x.like(1.0), x.like(0.0))
    return divide(select_double(x < 0.0, power, one), denominator)


def tanh(x: Number) -> Double:
    """-E / (2 + E), E = e**(-2|x|) - 1 within 2**-71, of which the quotient has a condition number of at most 2 / (2 +
    E) <= 2, reached where E is near -1; there E has an absolute error of 2**-71 (1 - e**...) only in its part
    e**(-2|x|) + ...: 2**-70 in all. For |x| < 340."""
    power = exponential_minus_one(abs(x) * -2.0)
    total = two_sum(x.like(2.0), power.hi)
    return signed(divide(-power, fast_two_sum(total.hi, total.lo + power.lo)), x.sign)


def sinh(x: Number) -> Double:
    """(E + E / (1 + E)) / 2, E = e**|x| - 1 within 2**-71: a sum of positive terms that grow with E, with a condition
    number of at most 1 each; 2**-71 + 2**-96. For |x| < 680."""
    power = exponential_minus_one(abs(x))
    below = divide(power, add(power, Double(x.like(1.0), x.like(0.0))))
    total = add_similar(power, below)
    return signed(Double(total.hi * 0.5, total.lo * 0.5), x.sign)


def cosh(x: Number) -> Double:
    """(e**|x| + 1 / e**|x|) / 2: 2**-70 + 2**-96. For |x| < 680."""
    power = exponential(abs(x))
    total = add_similar(power, divide(Double(x.like(1.0), x.like(0.0)), power))
    return Double(total.hi * 0.5, total.lo * 0.5)
