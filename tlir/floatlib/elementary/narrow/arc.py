"""Kernels of asin, acos, atan and atan2. Errors are counted in units of u = 2**-53.

atan b = b p(b*b) for 0 <= b <= 1, p a polynomial of degree 20 within 2**-47.5 = 46 u of a function between 0.785 and 1.
Its coefficients alternate and add up to less than 2.4 in magnitude: Horner's rule, b*b and the coefficients lose 8 u.
Relative to 0.785, and with the product: 70 u.

asin s = s p(s*s) for 0 <= s <= 1/2, of degree 13, within 2**-50 = 8 u of a function between 1 and 1.05; Horner's rule
and the rest lose 5 u: 14 u.
"""

from __future__ import annotations

from flint import arb

from tlir.floatlib.elementary.narrow.fit import Fit, rounded
from tlir.floatlib.elementary.number import Number
from tlir.floatlib.soft.machine import Predicate

ATAN_RATIO = Fit(lambda z: (-z).hypgeom_2f1(0.5, 1, 1.5), 0.0, 1.0, 20, 5.5, 2.0**-47.5)
ASIN_RATIO = Fit(lambda z: z.hypgeom_2f1(0.5, 0.5, 1.5), 0.0, 0.25, 13, 13.8, 2.0**-50)
PI, HALF_PI = rounded(arb.pi), rounded(lambda: arb.pi() / 2)

LARGE, SMALL = 2.0**1000, 2.0**-1000
"""Beyond the operands, which are below 2**502, and infinity's and zero's stand-ins."""


def _angle(ordinate: Number, abscissa: Number) -> Number:
    """atan(ordinate / abscissa) in the first quadrant, of numbers >= 0, infinity included.

    The quotient of the smaller by the larger has u: 71 u. pi/2 less that is above pi/4, at most as large as it: 73 u.
    Two zeros have the angle 0, two infinities pi/4."""
    steep = ordinate > abscissa
    smaller, larger = ordinate.minimum(abscissa).minimum(LARGE), ordinate.maximum(abscissa)
    b = smaller / larger.between(SMALL, LARGE)
    angle = b * (b * b).polynomial(ATAN_RATIO.coefficients)
    return (HALF_PI - angle).where(steep, angle)


def atan(x: Number) -> Number:
    """73 u."""
    return _angle(abs(x), x.like(1.0)).with_sign(x.sign)


def atan2(y: Number, x: Number) -> Number:
    """The angle, or pi less that, which is above pi/2, where the sign bit of x is set: 75 u. Right for zeros and
    infinities too."""
    m = x.m
    angle = _angle(abs(y), abs(x))
    left = m.less(m.constant(0), x.sign)
    return (PI - angle).where(left, angle).with_sign(y.sign)


def _asin_of(small: Number, half: Number, near: Predicate) -> Number:
    """asin(small) where ``near`` holds, asin(sqrt(half)) elsewhere; both at most 1/2."""
    square = (small * small).where(near, half)
    return small.where(near, half.sqrt()) * square.polynomial(ASIN_RATIO.coefficients)


def asin(x: Number) -> Number:
    """For a = |x| < 1/2: 14 u. Else pi/2 - 2 asin(sqrt((1 - a) / 2)): the argument of the root is exact, 15 u of the
    second term, which is at most pi/3, while the result is at least pi/6: 2 * 15 u + 3 u = 33 u."""
    a = abs(x)
    near = a < 0.5
    part = _asin_of(a, a.times_plus(-0.5, 0.5), near)
    return part.where(near, HALF_PI - (part + part)).with_sign(x.sign)


def acos(x: Number) -> Number:
    """For |x| < 1/2 pi/2 - asin x, which is above pi/3: 14 u / 2 + 3 u. Else 2 asin(sqrt((1 - a) / 2)) for a = |x|,
    15 u, or pi less that, at least twice as large: 11 u."""
    m = x.m
    a = abs(x)
    near = a < 0.5
    part = _asin_of(a, a.times_plus(-0.5, 0.5), near)
    doubled = part + part
    negative = m.less(m.constant(0), x.sign)
    return (HALF_PI - part.flipped(x.sign)).where(near, (PI - doubled).where(negative, doubled))
