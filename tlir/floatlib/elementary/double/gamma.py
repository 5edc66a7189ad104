"""lgamma and digamma in double-double arithmetic, with absolute bounds. u = 2**-53.

As in ``elementary.narrow.gamma``: they are computed at y, which is x from 1/2 on and otherwise 1 + |x|, a pair. Up to
16 the zeros are divided off, and the quotient is a polynomial on cells; beyond it is Stirling's series, whose remainder
is less than the first term that is left out (NIST Digital Library of Mathematical Functions, 5.11(ii)). For x < 1/2,

    lgamma x = lgamma(1 + x) - log x,                            digamma x = digamma(1 + x) - 1/x,
    lgamma x = log(pi / |sin pi x|) - lgamma(1 + |x|) for x < 0, digamma x = digamma(1 + |x|) - pi cot pi x.

Logarithms are within 2**-80. pi x is that of the distance from x to the nearest integer, which is exact, and so is its
distance from the nearest multiple of 1/1024; sines and cosines are within 2**-88.
"""

from __future__ import annotations

from functools import cache, partial
from typing import NamedTuple

from flint import arb

from tlir.floatlib.elementary.double.arithmetic import (
    Double,
    add,
    add_number,
    constant,
    divide,
    multiply,
    multiply_number,
    nearest_integer,
    polynomial,
    select,
    select_double,
    signed,
    two_sum,
)
from tlir.floatlib.elementary.double.cells import DoubleCells
from tlir.floatlib.elementary.double.circular import QUARTER, sine_cosine
from tlir.floatlib.elementary.double.logarithm import logarithm
from tlir.floatlib.elementary.double.tables import pair
from tlir.floatlib.elementary.narrow.fit import rounded
from tlir.floatlib.elementary.narrow.gamma import digamma_ratio, digamma_zero, lgamma_ratio
from tlir.floatlib.elementary.number import Number
from tlir.floatlib.soft.machine import Predicate

FAR = 16.0
LGAMMA_RATIO = DoubleCells(lgamma_ratio, 0.5, FAR, 7, 8, 2.0**-67.6)
DIGAMMA_RATIO = DoubleCells(digamma_ratio, 0.5, FAR, 7, 8, 2.0**-66.9)


def _coefficient(k: int, divisor: int) -> arb:
    return arb.bernoulli(2 * k) / divisor


LGAMMA_SERIES = [rounded(partial(_coefficient, k, 2 * k * (2 * k - 1))) for k in range(2, 9)]
"""From the second term on, as powers of 1/x**2."""
DIGAMMA_SERIES = [rounded(partial(_coefficient, k, 2 * k)) for k in range(2, 10)]


@cache
def _twelfth() -> tuple[float, float]:
    return pair(lambda: arb(1) / 12)


@cache
def _shift() -> tuple[float, float]:
    return pair(lambda: ((2 * arb.pi()).log() - 1) / 2)


@cache
def _zero() -> tuple[float, float]:
    return pair(digamma_zero)


@cache
def _pi() -> tuple[float, float]:
    return pair(arb.pi)


@cache
def _log_pi() -> tuple[float, float]:
    return pair(lambda: arb.pi().log())


class Place(NamedTuple):
    """|x|, whether x < 0, whether x < 1/2, and y."""

    magnitude: Number
    negative: Predicate
    small: Predicate
    y: Double


def _place(x: Number) -> Place:
    m = x.m
    a, negative = abs(x), x < 0.0
    small = m.either(negative, a < 0.5)
    return Place(a, negative, small, select_double(small, two_sum(a, x.like(1.0)), Double(a, x.like(0.0))))


def _sine_cosine_pi(x: Number) -> tuple[Double, Double]:
    """|sin pi x|, and cos pi x with the sign that makes the quotient that of tan pi x."""
    m = x.m
    rest = x - x.rounded()
    distance = abs(rest)
    k, word = nearest_integer(distance * (2.0 * QUARTER))
    r = multiply_number(constant(m, _pi()), distance - k * (0.5 / QUARTER))
    sine, cosine = sine_cosine(distance, (word, r), accurate=True)
    return sine, signed(cosine, rest.sign)


def _one(x: Number) -> Double:
    return Double(x.like(1.0), x.like(0.0))


Bounded = tuple[Double, Number]
"""A value, and a bound on its absolute error."""


def lgamma(x: Number) -> Bounded:
    """For 2**-900 < |x| < 2**900 but the poles. L = lgamma y:

    Below 16 y - 1 (or |x|), a number, y - 2 (or |x| - 1), a pair, and the quotient at y: its 2**-67.6, and 2**-97. What
    the low of y leaves out there is below 2**-70 of it: 2**-67.4.

    Beyond it is (y - 1/2) (log y - 1) + (c + 1/(12 y) + ...), all in pairs but for the terms from 1/(360 y**3) on,
    below 2**-25 of the result, with 5 u of themselves: 2**-75.6. What is left out is below 2**-75, log y - 1 within
    2**-79.3, its product at most 1.06 of the result.

    The logarithm of x or of the sine has 2**-80 of itself, and for the sine 2**-88; log pi is less."""
    m = x.m
    a, negative, small, y = _place(x)
    first = select(small, a, a - 1.0)
    second = two_sum(a, select(small, x.like(-1.0), x.like(-2.0)))
    near = multiply(multiply_number(second, first), LGAMMA_RATIO.pair_at(y.hi, y.lo))
    inverse = divide(_one(x), y)
    square = inverse.hi * inverse.hi
    rest = inverse.hi * square * polynomial(square, LGAMMA_SERIES)
    shift = add(constant(m, _shift()), multiply(inverse, constant(m, _twelfth())))
    main = multiply(add_number(y, x.like(-0.5)), add_number(logarithm(y.hi, y.lo, accurate=True), x.like(-1.0)))
    value = select_double(y.hi < FAR, near, add_number(add(main, shift), rest))
    argument = select_double(negative, _sine_cosine_pi(x)[0], Double(a, x.like(0.0)))
    log = logarithm(argument.hi, argument.lo, accurate=True)
    reflected = add(select_double(negative, constant(m, _log_pi()), Double(x.like(0.0), x.like(0.0))), -log)
    total = add(reflected, select_double(negative, -value, value))
    width = abs(value.hi) * 2.0**-67.4
    return (
        select_double(small, total, value),
        width.where(m.negation(small), width + (abs(log.hi) + 2.0) * 2.0**-79),
    )


def digamma(x: Number) -> Bounded:
    """For 2**-900 < |x| < 2**900 but the poles. L = digamma y:

    Below 16 y less the zero, of which a pair lacks 2**-106 (and digamma' is at most 4.94), and the quotient's 2**-66.9,
    and less than 2**-70 for the low of y. Beyond it is log y - 1/(2 y) - 1/(12 y**2) + ...: pairs, but for the terms
    from 1/(120 y**4) on, below 2**-24 of the result, with 5 u: 2**-74.

    1/x has 2**-101, pi cot pi x, which is a quotient by the sine, 2**-86 of itself."""
    m = x.m
    a, negative, small, y = _place(x)
    zero = constant(m, _zero())
    near = multiply(add(y, -zero), DIGAMMA_RATIO.pair_at(y.hi, y.lo))
    inverse = divide(_one(x), y)
    squared = multiply(inverse, inverse)
    square = squared.hi
    rest = square * square * polynomial(square, DIGAMMA_SERIES)
    half = Double(inverse.hi * 0.5, inverse.lo * 0.5)
    less = add_number(add(half, multiply(squared, constant(m, _twelfth()))), rest)
    far = add(logarithm(y.hi, y.lo, accurate=True), -less)
    value = select_double(y.hi < FAR, near, far)
    sine, cosine = _sine_cosine_pi(x)
    upper = select_double(negative, multiply(cosine, constant(m, _pi())), _one(x))
    other = divide(upper, select_double(negative, sine, Double(a, x.like(0.0))))
    width = (abs(value.hi) * 2.0**-66.8) + 2.0**-103
    return (
        select_double(small, add(value, -other), value),
        width.where(m.negation(small), width + abs(other.hi) * 2.0**-84),
    )
