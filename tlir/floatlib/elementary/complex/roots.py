"""Kernels of the complex square root, its reciprocal, the sign and quotients. u = 2**-53.

With h = |z| and w = sqrt((h + |x|) / 2), the parts of sqrt z are w and |y| / 2w, in the other order where x < 0. All
terms are positive: h is within 2**-99, h + |x| within 2**-98, w within 2**-98 (half of that and 8 u**2), quotients and
products of them within 2**-96: ``ERROR`` has a factor of 8 above that. Operands of binary64 are multiplied by an even
power of two first, so that squares neither overflow nor vanish.
"""

from __future__ import annotations

from tlir.floatlib.elementary.complex.parts import (
    Means,
    Outcome,
    Scaled,
    double,
    length,
    relative,
    root,
    scaled,
    scaling,
    swapped_sign,
    unscaled,
)
from tlir.floatlib.elementary.double.arithmetic import (
    Double,
    add,
    add_number,
    add_similar,
    divide,
    select,
    select_double,
    signed,
    two_product,
)
from tlir.floatlib.elementary.number import Number
from tlir.floatlib.soft.machine import Word

ERROR = 2.0**-93


def _operands(x: Number, y: Number, means: Means) -> Scaled:
    if means.wide:
        return scaling(x, y)
    one = x.like(1.0)
    return Scaled(x, y, one, one, x.like(0.0))


def _legs(x: Number, y: Number) -> tuple[Double, Double, Double]:
    """h, w and |y| / 2w, which is 0 for z = 0."""
    magnitude = abs(x)
    h = length(double(magnitude), y)
    w = root(scaled(add_number(h, magnitude), 0.5))
    zero = w.hi.equals(0.0)
    below = Double(select(zero, x.like(1.0), w.hi + w.hi), w.lo + w.lo)
    return h, w, divide(double(abs(y)), below)


def sqrt(x: Number, y: Number, means: Means) -> Outcome:
    """``ERROR``. A part that is 0 is so exactly: one of x and y is. It has the sign of y, or is +0."""
    z = _operands(x, y, means)
    _, w, other = _legs(z.x, z.y)
    real, imaginary = select_double(x < 0.0, other, w), signed(select_double(x < 0.0, w, other), y.sign)
    return Outcome(unscaled(real, z.up(real), ERROR, _positive(x)), unscaled(imaginary, z.up(imaginary), ERROR, y.sign))


def rsqrt(x: Number, y: Number, means: Means) -> Outcome:
    """conj(sqrt z) / |z|, for z other than 0: ``ERROR``. With y = 0 the parts are 1 / w and 0 where h = |x| = w**2."""
    z = _operands(x, y, means)
    h, w, other = _legs(z.x, z.y)
    greater, lesser = divide(w, h), divide(other, h)
    sign = swapped_sign(y.sign, y)
    real, imaginary = select_double(x < 0.0, lesser, greater), signed(select_double(x < 0.0, greater, lesser), sign)
    return Outcome(
        unscaled(real, z.down(real), ERROR, _positive(x)), unscaled(imaginary, z.down(imaginary), ERROR, sign)
    )


def sign(x: Number, y: Number, means: Means) -> Outcome:
    """z / |z|, for z other than 0: ``ERROR``."""
    z = _operands(x, y, means)
    h = length(double(z.x), z.y)
    real, imaginary = (relative(divide(double(part), h), ERROR, part.sign) for part in (z.x, z.y))
    return Outcome(real, imaginary)


def quotient(a: Number, b: Number, c: Number, d: Number, means: Means) -> Outcome:
    """(a + bi) / (c + di) = ((ac + bd) + (bc - ad) i) / (cc + dd) for a divisor other than 0. Products are pairs
    exactly, so a sum of two is within 3 u**2 of itself, or exactly 0, whatever their signs: ``ERROR``. A zero is -0 if
    both products of its numerator are."""
    m = a.m
    dividend, by = _operands(a, b, means), _operands(c, d, means)
    ratio = dividend.power * by.inverse
    divisor = add_similar(two_product(by.x, by.x), two_product(by.y, by.y))
    parts = []
    for (x, y), (z, w) in (
        ((dividend.x, by.x), (dividend.y, by.y)),
        ((dividend.y, by.x), (-dividend.x, by.y)),
    ):
        value = divide(add(two_product(x, y), two_product(z, w)), divisor)
        sign = m.and_(m.xor(x.sign, y.sign), m.xor(z.sign, w.sign))
        result = Double(value.hi * ratio * ratio, value.lo * ratio * ratio)
        parts.append(unscaled(value, result, ERROR, sign))
    return Outcome(parts[0], parts[1])


def _positive(x: Number) -> Word:
    return x.m.constant(0)
