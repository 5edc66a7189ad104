"""Kernels of the inverse trigonometric and hyperbolic functions of complex numbers. u = 2**-53.

T. E. Hull, T. F. Fairgrieve, P. T. P. Tang, Implementing the complex arcsine and arccosine functions using exception
handling, ACM TOMS 23 (1997): for x, y >= 0 let r = |z + 1|, s = |z - 1| and A = (r + s) / 2. Then

    Re asin z = atan(x / sqrt((A - x) (A + x))),    Re acos z = atan(sqrt((A - x) (A + x)) / x),
    Im asin z = log(1 + (A - 1) + sqrt((A - 1) (A + 1))),

2 (A - 1) = y**2 / (r + x + 1) + (s - w), 2 (A - x) = y**2 / (r + x + 1) + (s + w) with w = 1 - x, and of s - w and
s + w, whose product is y**2, the one that cancels is y**2 over the other. Nothing cancels then: 1 - x is a pair
exactly, r and s have 2**-99, sums of positive terms and their quotients, products and roots less than 2**-93. Angles
have a condition number of at most 1 in the quotient, log(1 + t) one of at most 1 in t.
"""

from __future__ import annotations

from typing import NamedTuple

from tlir.floatlib.elementary.complex.parts import (
    Means,
    Outcome,
    absolute,
    double,
    length,
    relative,
    root,
    scaled,
)
from tlir.floatlib.elementary.double.arithmetic import (
    Double,
    add,
    add_number,
    add_similar,
    divide,
    fast_two_sum,
    multiply,
    select,
    select_double,
    signed,
    squared,
    two_product,
    two_sum,
)
from tlir.floatlib.elementary.number import Number


class _Arc(NamedTuple):
    """Of |x| + |y| i: |x|, sqrt((A - x) (A + x)), and the imaginary part of the arcsine."""

    x: Number
    other: Double
    imaginary: Double


def _arc(x: Number, y: Number, means: Means) -> _Arc:
    x, y = abs(x), abs(y)
    m = x.m
    more = _ordered(two_sum(x, x.like(1.0)))
    less = _ordered(two_sum(x.like(1.0), -x))
    distance = absolute(less)
    square = two_product(y, y)
    r, s = length(more, y), length(less, y)
    far, near = add_similar(r, more), add_similar(s, distance)
    # 0 for z = 1
    together = near.hi.equals(0.0)
    safe = Double(select(together, x.like(1.0), near.hi), near.lo)
    beside = divide(square, safe)
    first = divide(square, far)
    left = m.negation(x > 1.0)
    a_less_one = scaled(add_similar(first, select_double(left, beside, near)), 0.5)
    a_less_x = scaled(add_similar(first, select_double(left, near, beside)), 0.5)
    a = scaled(add_similar(r, s), 0.5)
    other = root(multiply(a_less_x, add_number(a, x)))
    t = add_similar(a_less_one, root(multiply(a_less_one, add_number(a, x.like(1.0)))))
    return _Arc(x, other, means.log_of_one_plus(t))


def _ordered(x: Double) -> Double:
    return fast_two_sum(x.hi, x.lo)


def asin(x: Number, y: Number, means: Means) -> Outcome:
    """Signs are those of x and y."""
    found = _arc(x, y, means)
    angle = means.angle_of(double(found.x), found.other)
    return Outcome(
        relative(signed(angle, x.sign), means.arc, x.sign), relative(signed(found.imaginary, y.sign), means.log, y.sign)
    )


def asinh(x: Number, y: Number, means: Means) -> Outcome:
    """-i asin(iz), of which the symmetries leave asin(|y| + |x| i) with its parts exchanged."""
    imaginary, real, _ = asin(y, x, means)
    return Outcome(real, imaginary)


def acos(x: Number, y: Number, means: Means) -> Outcome:
    """The angle of (x, sqrt(...)); the imaginary part is that of asin with the other sign."""
    m = x.m
    found = _arc(x, y, means)
    angle = means.angle_of(found.other, double(found.x), x < 0.0)
    sign = m.xor(y.sign, m.constant(1 << 63))
    return Outcome(relative(angle, means.arc, m.constant(0)), relative(signed(found.imaginary, sign), means.log, sign))


def acosh(x: Number, y: Number, means: Means) -> Outcome:
    """The imaginary part of the arcsine, which is not negative, and the arccosine's real part with the sign of y."""
    m = x.m
    found = _arc(x, y, means)
    angle = means.angle_of(found.other, double(found.x), x < 0.0)
    return Outcome(
        relative(found.imaginary, means.log, m.constant(0)), relative(signed(angle, y.sign), means.arc, y.sign)
    )


def atanh(x: Number, y: Number, means: Means) -> Outcome:
    """log(1 + 4x / ((1 - x)**2 + y**2)) / 4 for x >= 0, and half the angle of (1 - x**2 - y**2, 2y); z is neither 1 nor
    -1. The first has positive terms. 1 - x**2 = (1 - x) (1 + x) and y**2 are within 7 u**2; where their difference d
    cancels, the loss 2**-102 y**2 turns the point by 2**-103 |y| at most, and its angle is near pi/2."""
    zero = x.like(0.0)
    magnitude, height = abs(x), abs(y)
    less, more = _ordered(two_sum(x.like(1.0), -magnitude)), _ordered(two_sum(magnitude, x.like(1.0)))
    square = two_product(height, height)
    quotient = divide(Double(magnitude * 4.0, zero), add_similar(squared(less), square))
    real = scaled(means.log_of_one_plus(quotient), 0.25)
    d = add(multiply(less, more), -square)
    imaginary = scaled(means.angle_of(double(height * 2.0), absolute(d), d.hi < 0.0), 0.5)
    return Outcome(
        relative(signed(real, x.sign), means.log, x.sign), relative(signed(imaginary, y.sign), means.arc, y.sign)
    )


def atan(x: Number, y: Number, means: Means) -> Outcome:
    """-i atanh(iz), with the parts of atanh(|y| + |x| i) exchanged."""
    imaginary, real, _ = atanh(y, x, means)
    return Outcome(real, imaginary)
