"""Inverse trigonometric functions in double-double arithmetic. u = 2**-53.

All are the angle of a point (d, n) of pairs. For 0 <= n <= d, j = 256 n/d rounded and c = j/256,

    atan(n/d) = atan c + atan t,    t = (n - c d) / (d + c n),    |t| < 2**-8.99,

and where n**2 + d**2 = 1, with j = 256 n rounded and C = sqrt(1 - c**2), without a quotient,

    asin n = asin c + asin t,    t = n C - d c,    |t| < 2**-8.48,

from the addition theorems.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

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
    select_double,
    signed,
    square_root,
    squared,
    table,
    two_product,
    two_sum,
)
from tlir.floatlib.elementary.double.tables import pair, pairs
from tlir.floatlib.elementary.number import Number
from tlir.floatlib.soft.machine import Predicate

STEPS = 256
TERMS = [-1 / 3, 1 / 5, -1 / 7, 1 / 9]


@cache
def angles() -> tuple[tuple[float, ...], ...]:
    """atan(j/256) for j = 0 to 256, highs and lows."""
    return pairs(lambda: [(arb(j) / STEPS).atan() for j in range(STEPS + 1)])


@cache
def _pi() -> tuple[float, float]:
    return pair(arb.pi)


@cache
def _half_pi() -> tuple[float, float]:
    return pair(lambda: arb.pi() / 2)


@cache
def _third() -> tuple[float, float]:
    return pair(lambda: arb(1) / 3)


def octant_accurately(n: Double, d: Double) -> Double:
    """``_octant`` within 2**-86.5: t**3/3 is a pair; t**5/5 - ..., below 2**-38.2 |t|, has 6 u of itself, and t**11/11
    < 2**-93 |t| is left out."""
    return _octant(n, d, accurate=True)


def _octant(n: Double, d: Double, accurate: bool = False) -> Double:
    """atan(n/d) for 0 <= n <= d, 0 < d, within 2**-69.6.

    c n.hi and c d.hi are exact as pairs. n - c d has an absolute error of 2**-104 n, t of 2**-103 n/d and 2**-102 of
    itself: 2**-101 of the result in all (c = 0: t is n/d). t**3/3 - ... < 2**-19.5 |t| has 5.3 u of itself and a
    sum of lows 1 u (t.lo is below u |t|): 6.3 u * 2**-19.5 = 2**-69.8; the result is at least |t|. t**9/9 < 2**-75 |t|
    is left out.
    """
    m = n.hi.m
    j, word = nearest_integer(n.hi / d.hi * float(STEPS))
    c = j * (1 / STEPS)
    product = two_product(c, d.hi)
    difference = two_sum(n.hi, -product.hi)
    above = fast_two_sum(difference.hi, difference.lo + ((n.lo - product.lo) - c * d.lo))
    product = two_product(c, n.hi)
    total = fast_two_sum(d.hi, product.hi)
    t = divide(above, fast_two_sum(total.hi, total.lo + (product.lo + d.lo + c * n.lo)))
    index = m.and_(word, m.constant(2 * STEPS - 1))
    highs, lows = angles()
    if accurate:
        square = squared(t)
        cube = multiply(multiply(square, t), constant(m, _third()))
        tail = (square.hi * square.hi * t.hi) * polynomial(square.hi, TERMS[1:])
        return add(Double(table(m, highs, index), table(m, lows, index)), add(t, add_number(-cube, tail)))
    sum_ = fast_two_sum(table(m, highs, index), t.hi)
    t2 = t.hi * t.hi
    rest = (t.hi * t2).times_plus(polynomial(t2, TERMS[:3]), t.lo + table(m, lows, index))
    return fast_two_sum(sum_.hi, sum_.lo + rest)


ARCSINE_TERMS = [1 / 6, 3 / 40, 15 / 336]


@cache
def arcsines() -> tuple[tuple[float, ...], ...]:
    """asin(j/256) for j = 0 to 182, past sqrt(1/2) * 256, highs and lows."""
    return pairs(lambda: [(arb(j) / STEPS).asin() for j in range(183)])


@cache
def cosines() -> tuple[tuple[float, ...], ...]:
    """sqrt(1 - (j/256)**2), highs and lows."""
    return pairs(lambda: [(1 - (arb(j) / STEPS) ** 2).sqrt() for j in range(183)])


def _octant_of_circle(n: Double, d: Double) -> Double:
    """asin n for 0 <= n <= d, n**2 + d**2 = 1, within 2**-70.6.

    n C and d c have 2**-98 of about n each, so t has 2**-97 of the result. t**3/6 + ... is below 2**-20.5 of the result
    (c = 0, where |t| < 2**-8.99, is the worst) and has 5.3 u of itself, the sum of lows 1 u: 6.3 u * 2**-20.5 =
    2**-70.8. t**9 * 105/3456 < 2**-72.9 |t| is left out.
    """
    m = n.hi.m
    j, word = nearest_integer(n.hi * float(STEPS))
    c = j * (1 / STEPS)
    index = m.and_(word, m.constant(255))
    (angle_highs, angle_lows), (cosine_highs, cosine_lows) = arcsines(), cosines()
    first = multiply(n, Double(table(m, cosine_highs, index), table(m, cosine_lows, index)))
    second = multiply_number(d, c)
    difference = two_sum(first.hi, -second.hi)
    t = fast_two_sum(difference.hi, difference.lo + (first.lo - second.lo))
    total = fast_two_sum(table(m, angle_highs, index), t.hi)
    square = t.hi * t.hi
    rest = (t.hi * square).times_plus(polynomial(square, ARCSINE_TERMS), t.lo + table(m, angle_lows, index))
    return fast_two_sum(total.hi, total.lo + rest)


Octant = Callable[[Double, Double], Double]


def angle_of(n: Double, d: Double, left: Predicate | None = None, octant: Octant = _octant) -> Double:
    """The angle of the point (d, n), n and d >= 0 and not both 0, or of (-d, n) where ``left``: within what ``octant``
    has and 2**-97.

    Subtracting from pi/2 or pi leaves at least half of what is subtracted from."""
    m = n.hi.m
    steep = n.hi > d.hi
    small, large = select_double(steep, d, n), select_double(steep, n, d)
    angle = octant(small, large)
    if left is None:
        return select_double(steep, _minus(_half_pi(), angle), angle)
    # from pi/2 for steep ones, from 0 or from pi for the others
    acute = m.negation(left)
    base = select_double(steep, constant(m, _half_pi()), constant(m, _pi()))
    other = add_similar(base, select_double(m.both(steep, left), angle, -angle))
    return select_double(m.both(acute, m.negation(steep)), angle, other)


def _minus(value: tuple[float, float], angle: Double) -> Double:
    return add_similar(constant(angle.hi.m, value), -angle)


def atan(x: Number) -> Double:
    """The angle of (1, |x|), with the sign of x: 2**-69.5. For 2**-900 < |x| < 2**900."""
    zero = x.like(0.0)
    return signed(angle_of(Double(abs(x), zero), Double(x.like(1.0), zero)), x.sign)


def atan2(y: Number, x: Number) -> Double:
    """The angle of (x, y): 2**-69.5. For |x| and |y| within 2**±900, or one of them 0."""
    zero = x.like(0.0)
    return signed(angle_of(Double(abs(y), zero), Double(abs(x), zero), x < 0.0), y.sign)


def _other_leg(x: Number) -> Double:
    """sqrt((1 - x)(1 + x)) for |x| < 1: both factors are pairs exactly; 2**-100."""
    one = x.like(1.0)
    return square_root(multiply(two_sum(one, x), two_sum(one, -x)))


def asin(x: Number) -> Double:
    """The angle of (sqrt(1 - x**2), |x|), with the sign of x: 2**-70.5. For |x| < 1."""
    return signed(angle_of(Double(abs(x), x.like(0.0)), _other_leg(x), None, _octant_of_circle), x.sign)


def acos(x: Number) -> Double:
    """The angle of (x, sqrt(1 - x**2)): 2**-70.5. For |x| < 1."""
    return angle_of(_other_leg(x), Double(abs(x), x.like(0.0)), x < 0.0, _octant_of_circle)
