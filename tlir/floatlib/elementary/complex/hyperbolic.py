"""Kernels of the complex exponential and what is made of it.

The errors of products and quotients are sums of those of their factors, which ``parts.Means`` has. Where a result is a
product, a part is 0 only for a zero operand, and its sign is that of the product.

``REAL_LOW`` and ``REAL_HIGH``: what is beyond them is as good as they are, in formats within 2**±``RANGE``, for e**x
times an angle's sine, which is 2**-``RANGE`` at least: e**-300 < 2**-432, e**600 > 2**865.
"""

from __future__ import annotations

from tlir.floatlib.elementary.complex.parts import Means, Outcome, Part, double, relative, scaled
from tlir.floatlib.elementary.double.arithmetic import (
    Double,
    add,
    add_number,
    add_similar,
    divide,
    multiply,
    select_double,
    signed,
    squared,
)
from tlir.floatlib.elementary.number import Number

RANGE = 300
REAL_LOW, REAL_HIGH = -300.0, 600.0
TANH_END = 170.0
"""Beyond it tanh is ±1, and 4 e**-2x, which bounds its imaginary part, below 2**-480."""


def exponential(x: Number, y: Number, means: Means) -> Outcome:
    """e**x cos y, e**x sin y."""
    power, of_y = means.exponential(x), means.angle(y)
    error = of_y.error + means.exp
    return Outcome(
        relative(multiply(power, of_y.cosine), error, x.m.constant(0)),
        relative(multiply(power, signed(of_y.sine, y.sign)), error, y.sign),
    )


def exponential_minus_one(x: Number, y: Number, means: Means) -> Outcome:
    """(e**x - 1) cos y - 2 sin(y/2)**2, a difference whose bound is one of the terms, and e**x sin y. The square of a
    small sine may vanish, but is not 0."""
    of_y, of_half = means.angle(y), means.angle(y * 0.5)
    first = multiply(means.exponential_minus_one(x), of_y.cosine)
    second = scaled(squared(of_half.sine), 2.0)
    vanishing = x.like(0.0).where(y.equals(0.0), 2.0**-1000)
    margin = abs(first.hi) * (of_y.error + means.expm1) + second.hi * (of_half.error * 2.0) + vanishing
    imaginary = multiply(means.exponential(x), signed(of_y.sine, y.sign))
    return Outcome(Part(add(first, -second), margin, x.sign), relative(imaginary, of_y.error + means.exp, y.sign))


def _hyperbolic(x: Number, means: Means) -> tuple[Double, Double]:
    """sinh|x| and cosh|x| from E = e**|x| - 1: E + E / (1 + E) and (1 + E) + 1 / (1 + E), halves of sums of positive
    terms that grow no faster than E and 1 + E: the error of E, ``Means.expm1``, and 2**-95."""
    less = means.exponential_minus_one(abs(x))
    power = add_number(less, x.like(1.0))
    below = divide(double(x.like(1.0)), power)
    sine = add_similar(less, multiply(less, below))
    cosine = add_similar(power, below)
    return scaled(sine, 0.5), scaled(cosine, 0.5)


def sinh(x: Number, y: Number, means: Means) -> Outcome:
    """sinh x cos y, cosh x sin y."""
    m = x.m
    (sine_h, cosine_h), of_y = _hyperbolic(x, means), means.angle(y)
    error = of_y.error + means.expm1
    return Outcome(
        relative(multiply(sine_h, signed(of_y.cosine, x.sign)), error, m.xor(x.sign, of_y.cosine.hi.sign)),
        relative(multiply(cosine_h, signed(of_y.sine, y.sign)), error, y.sign),
    )


def cosh(x: Number, y: Number, means: Means) -> Outcome:
    """cosh x cos y, sinh x sin y."""
    m = x.m
    (sine_h, cosine_h), of_y = _hyperbolic(x, means), means.angle(y)
    error, both = of_y.error + means.expm1, m.xor(x.sign, y.sign)
    return Outcome(
        relative(multiply(cosine_h, of_y.cosine), error, m.constant(0)),
        relative(multiply(sine_h, signed(of_y.sine, both)), error, m.xor(both, of_y.sine.hi.sign)),
    )


def tanh(x: Number, y: Number, means: Means) -> Outcome:
    """sinh x cosh x / d, sin y cos y / d with d = sinh(x)**2 + cos(y)**2, whose error is twice the larger one of the
    two."""
    m = x.m
    (sine_h, cosine_h), of_y = _hyperbolic(x, means), means.angle(y)
    d = add_similar(squared(sine_h), squared(of_y.cosine))
    imaginary = divide(multiply(signed(of_y.sine, y.sign), of_y.cosine), d)
    error = of_y.error.maximum(means.expm1) * 4.0
    return Outcome(
        relative(signed(divide(multiply(sine_h, cosine_h), d), x.sign), error, x.sign),
        relative(imaginary, error, m.xor(y.sign, of_y.cosine.hi.sign)),
    )


def logistic(x: Number, y: Number, means: Means) -> Outcome:
    """With f = e**-|x|, g = 1 - f, S and C the sine and cosine of y/2, and t = 2 f C**2: the denominator |1 + f
    e**iy|**2 is g**2 + 2t. Over it, 1 + f cos y = g + t is the real part for x >= 0, f (f + cos y) = t - f g the one
    for x < 0, 2 f S C the imaginary one. t has twice the error of C and that of f; so has the denominator, if twice
    that of g is not more. For x < 0 the bound is one of the terms."""
    m = x.m
    magnitude, of_half = -abs(x), means.angle(y * 0.5)
    f, g = means.exponential(magnitude), -means.exponential_minus_one(magnitude)
    t = scaled(multiply(f, squared(of_half.cosine)), 2.0)
    d = add_similar(squared(g), scaled(t, 2.0))
    negative = x < 0.0
    other = select_double(negative, -multiply(f, g), g)
    value = divide(add(t, other), d)
    sine = multiply(f, multiply(signed(of_half.sine, y.sign), of_half.cosine))
    error = (of_half.error * 2.0 + means.exp).maximum(means.expm1 * 2.0) * 2.0
    return Outcome(
        Part(value, (t.hi + abs(other.hi)) / d.hi * (error * 1.001), m.constant(0)),
        relative(scaled(divide(sine, d), 2.0), error, m.xor(y.sign, of_half.cosine.hi.sign)),
    )
