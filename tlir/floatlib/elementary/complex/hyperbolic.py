"""Kernels of the complex exponential and what is made of it. u = 2**-53.

Real exponentials are within 2**-70 (e**x) and 2**-71 (e**x - 1) of themselves, sines and cosines within 2**-68.4
(``parts.angle``). Where a result is a product of such numbers, a part is 0 only for a zero operand, and its sign is
that of the product.

``REAL_LOW`` and ``REAL_HIGH``: what is beyond them is as good as they are, in formats within 2**±``RANGE``, for e**x
times an angle's sine, which is 2**-``RANGE`` at least: e**-300 < 2**-432, e**600 > 2**865.
"""

from __future__ import annotations

from tlir.floatlib.elementary.complex.parts import Outcome, Part, Reduction, angle, relative, scaled, squared
from tlir.floatlib.elementary.double import exponential as real
from tlir.floatlib.elementary.double.arithmetic import (
    Double,
    add,
    add_number,
    add_similar,
    divide,
    multiply,
    select_double,
    signed,
)
from tlir.floatlib.elementary.number import Number

RANGE = 300
REAL_LOW, REAL_HIGH = -300.0, 600.0
TANH_END = 170.0
"""Beyond it tanh is ±1, and 4 e**-2x, which bounds its imaginary part, below 2**-480."""


def exponential(x: Number, y: Number, reduce: Reduction) -> Outcome:
    """e**x cos y, e**x sin y: 2**-70 + 2**-68.4 < 2**-67.9."""
    m = x.m
    power, of_y = real.exponential(x), angle(y, reduce)
    sine = signed(of_y.sine, y.sign)
    return Outcome(
        relative(multiply(power, of_y.cosine), 2.0**-67.9, m.constant(0)),
        relative(multiply(power, sine), 2.0**-67.9, y.sign),
        of_y.certain,
    )


def exponential_minus_one(x: Number, y: Number, reduce: Reduction) -> Outcome:
    """(e**x - 1) cos y - 2 sin(y/2)**2: the first within 2**-71 + 2**-68.4 < 2**-68.1 of itself, the second within
    2**-67.4, their difference by an accurate sum. e**x sin y as ``exponential``."""
    m = x.m
    of_y, of_half = angle(y, reduce), angle(y * 0.5, reduce)
    first = multiply(real.exponential_minus_one(x), of_y.cosine)
    second = scaled(squared(of_half.sine), 2.0)
    margin = (abs(first.hi) + second.hi) * 2.0**-67.3
    imaginary = multiply(real.exponential(x), signed(of_y.sine, y.sign))
    return Outcome(
        Part(add(first, -second), margin, x.sign),
        relative(imaginary, 2.0**-67.9, y.sign),
        m.both(of_y.certain, of_half.certain),
    )


def _hyperbolic(x: Number) -> tuple[Double, Double]:
    """sinh|x| and cosh|x| from E = e**|x| - 1: E + E / (1 + E) and (1 + E) + 1 / (1 + E), halves of sums of positive
    terms that grow no faster than E and 1 + E: 2**-71 + 2**-95."""
    less = real.exponential_minus_one(abs(x))
    power = add_number(less, x.like(1.0))
    below = divide(Double(x.like(1.0), x.like(0.0)), power)
    sine = add_similar(less, multiply(less, below))
    cosine = add_similar(power, below)
    return scaled(sine, 0.5), scaled(cosine, 0.5)


def sinh(x: Number, y: Number, reduce: Reduction) -> Outcome:
    """sinh x cos y, cosh x sin y: 2**-70.9 + 2**-68.4 < 2**-68."""
    m = x.m
    (sine_h, cosine_h), of_y = _hyperbolic(x), angle(y, reduce)
    cosine = signed(of_y.cosine, x.sign)
    return Outcome(
        relative(multiply(sine_h, cosine), 2.0**-68, m.xor(x.sign, of_y.cosine.hi.sign)),
        relative(multiply(cosine_h, signed(of_y.sine, y.sign)), 2.0**-68, y.sign),
        of_y.certain,
    )


def cosh(x: Number, y: Number, reduce: Reduction) -> Outcome:
    """cosh x cos y, sinh x sin y: 2**-68 as ``sinh``."""
    m = x.m
    (sine_h, cosine_h), of_y = _hyperbolic(x), angle(y, reduce)
    both = m.xor(x.sign, y.sign)
    return Outcome(
        relative(multiply(cosine_h, of_y.cosine), 2.0**-68, m.constant(0)),
        relative(multiply(sine_h, signed(of_y.sine, both)), 2.0**-68, m.xor(both, of_y.sine.hi.sign)),
        of_y.certain,
    )


def tanh(x: Number, y: Number, reduce: Reduction) -> Outcome:
    """sinh x cosh x / d, sin y cos y / d with d = sinh(x)**2 + cos(y)**2, which is within twice 2**-68.4: the parts are
    within 2**-69.9 + 2**-67.4 and 2**-67.4 + 2**-67.4 < 2**-66.3."""
    m = x.m
    (sine_h, cosine_h), of_y = _hyperbolic(x), angle(y, reduce)
    d = add_similar(squared(sine_h), squared(of_y.cosine))
    imaginary = divide(multiply(signed(of_y.sine, y.sign), of_y.cosine), d)
    return Outcome(
        relative(signed(divide(multiply(sine_h, cosine_h), d), x.sign), 2.0**-66.3, x.sign),
        relative(imaginary, 2.0**-66.3, m.xor(y.sign, of_y.cosine.hi.sign)),
        of_y.certain,
    )


def logistic(x: Number, y: Number, reduce: Reduction) -> Outcome:
    """With f = e**-|x|, g = 1 - f, S and C the sine and cosine of y/2, and t = 2 f C**2: the denominator |1 + f
    e**iy|**2 is g**2 + 2t. Over it, 1 + f cos y = g + t is the real part for x >= 0, f (f + cos y) = t - f g the one
    for x < 0, 2 f S C the imaginary one. t is within 2**-70 + 2**-67.4 < 2**-67.1, the denominator as well, g within
    2**-71, so quotients of positive sums have 2**-66.1. For x < 0 the bound is one of the terms."""
    m = x.m
    magnitude, of_half = -abs(x), angle(y * 0.5, reduce)
    f, g = real.exponential(magnitude), -real.exponential_minus_one(magnitude)
    t = scaled(multiply(f, squared(of_half.cosine)), 2.0)
    d = add_similar(squared(g), scaled(t, 2.0))
    negative = x < 0.0
    other = select_double(negative, -multiply(f, g), g)
    value = divide(add(t, other), d)
    sine = multiply(f, multiply(signed(of_half.sine, y.sign), of_half.cosine))
    return Outcome(
        Part(value, (t.hi + abs(other.hi)) / d.hi * 2.0**-66, m.constant(0)),
        relative(scaled(divide(sine, d), 2.0), 2.0**-66, m.xor(y.sign, of_half.cosine.hi.sign)),
        of_half.certain,
    )
