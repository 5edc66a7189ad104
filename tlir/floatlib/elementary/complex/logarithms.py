"""Kernels of the complex logarithm and of powers. u = 2**-53.

log|z| = log(h) / 2 with h = x**2 + y**2, a pair within 2**-100. Near 1 the logarithm is that of 1 + n with n = h - 1 as
a pair of its own: g - 1 for the greater square g, a sum of two numbers, and the lesser square. g.hi - 1 is exact in
binary64 for g.hi >= 1/2; below, it and g.lo leave at most 2**-54 each, whose sum loses ``LOST``. Of operands of at most
24 bits the squares are single numbers, and nothing is lost.
"""

from __future__ import annotations

from tlir.floatlib.elementary.complex.parts import (
    UNREDUCED,
    Outcome,
    Part,
    absolute,
    double,
    relative,
    scaled,
    squared,
)
from tlir.floatlib.elementary.double import arc, circular, exponential
from tlir.floatlib.elementary.double.arithmetic import (
    Double,
    add,
    add_number,
    add_similar,
    fast_two_sum,
    multiply,
    multiply_number,
    select,
    select_double,
    signed,
    two_product,
    two_sum,
)
from tlir.floatlib.elementary.double.logarithm import logarithm
from tlir.floatlib.elementary.number import Number

LOG, ARGUMENT = 2.0**-67.9, 2.0**-69.4
"""The relative errors of logarithms, and of angles of points whose coordinates are within 2**-90."""
LOST = 2.0**-106


def _log_length(x: Number, y: Number, accurate: bool = False) -> tuple[Double, Number]:
    """log|z|, within ``LOG`` of itself, or 2**-76.5 if ``accurate`` (the logarithm has 2**-80, and 2**-77 for the low
    part of h), and this number."""
    m = x.m
    swap = abs(x) < abs(y)
    greater, lesser = select(swap, y, x), select(swap, x, y)
    g, small = two_product(greater, greater), two_product(lesser, lesser)
    base = two_sum(g.hi, x.like(-1.0))
    near = add(fast_two_sum(base.hi, base.lo + g.lo), small)
    h = add_similar(g, small)
    exact = m.either(base.lo.equals(0.0), g.lo.equals(0.0))
    lost = select(exact, x.like(0.0), x.like(LOST))
    return scaled(logarithm(h.hi, h.lo, near=near, accurate=accurate), 0.5), lost


def log(x: Number, y: Number) -> Outcome:
    """log|z|, arg z for z other than 0. log|z| = 0 is +0."""
    value, lost = _log_length(x, y)
    return Outcome(
        Part(value, abs(value.hi).times_plus(LOG, lost), x.m.constant(0)),
        relative(arc.atan2(y, x), ARGUMENT, y.sign),
    )


def log_plus_one(x: Number, y: Number) -> Outcome:
    """log|1 + z|, arg(1 + z) for z other than -1: 1 + x is a pair exactly, and h - 1 is x (2 + x) + y**2. The product
    has 3 u**2 of itself, which count where it cancels, and there it is below 2."""
    m = x.m
    one = x.like(1.0)
    s = fast_two_sum(*two_sum(one, x))
    square = two_product(y, y)
    product = multiply_number(two_sum(x.like(2.0), x), x)
    h = add_similar(squared(s), square)
    value = scaled(logarithm(h.hi, h.lo, near=add(product, square)), 0.5)
    margin = abs(value.hi).times_plus(LOG, abs(product.hi).minimum(2.0) * 2.0**-103)
    sign = m.select(x.equals(0.0), x.sign, m.constant(0))
    argument = arc.angle_of(double(abs(y)), absolute(s), s.hi < 0.0)
    return Outcome(Part(value, margin, sign), relative(signed(argument, y.sign), ARGUMENT, y.sign))


LEAST_EXPONENT, GREATEST_EXPONENT = -640.0, 660.0
GREATEST_ERROR = 2.0**-10


def power(a: Number, b: Number, c: Number, d: Number) -> Outcome:
    """(a + bi)**(c + di) = e**rho (cos theta, sin theta) for a base other than 0, with rho = c log|z| - d arg z and
    theta = d log|z| + c arg z. The argument of a negative number is pi, whatever the sign of b = 0.

    Products with the logarithm are within 2**-76.4 of themselves, those with the argument within 2**-69.4, which leaves
    absolute errors r of rho and t of theta; what the logarithm has lost counts as well. So e**rho is within 2**-70 +
    1.001 r of itself for r < 2**-10, and cos theta within 2**-68.4 of itself, t, and what a reduction leaves. theta is
    exactly 0 where both of its terms are.
    """
    m = a.m
    length, lost = _log_length(a, b, accurate=True)
    argument = arc.atan2(select(b.equals(0.0), a.like(0.0), b), a)
    terms = multiply_number(length, c), multiply_number(argument, d)
    rho = add(terms[0], -terms[1])
    others = multiply_number(length, d), multiply_number(argument, c)
    theta = add(*others)
    rho_error = abs(terms[0].hi) * 2.0**-76 + abs(terms[1].hi).times_plus(2.0**-69.3, lost * abs(c))
    theta_error = abs(others[0].hi) * 2.0**-76 + abs(others[1].hi).times_plus(2.0**-69.3, lost * abs(d))
    still = m.both(others[0].hi.equals(0.0), others[1].hi.equals(0.0))
    inside = m.both(abs(theta.hi) < circular.NEAR, m.both(rho_error < GREATEST_ERROR, theta_error < GREATEST_ERROR))
    inside = m.both(inside, m.both(rho.hi > LEAST_EXPONENT, rho.hi < GREATEST_EXPONENT))
    zero = double(a.like(0.0))
    rho, theta = select_double(inside, rho, zero), select_double(inside, theta, zero)
    radius = exponential.exponential(rho.hi, rho.lo)
    k, r = circular.reduce_near(theta.hi)
    sine, cosine = circular.sine_cosine(theta.hi, (k, add_number(r, theta.lo)))
    # a sum of 0 that is not exact counts as reduced
    small = m.both(abs(theta.hi) < UNREDUCED, m.either(still, m.negation(theta.hi.equals(0.0))))
    turned = theta_error.times_plus(1.01, select(small, a.like(0.0), a.like(2.0**-118)))
    share = rho_error.times_plus(1.01, a.like(2.0**-67.9))
    margins = (radius.hi * abs(part.hi).times_plus(share, turned) for part in (cosine, sine))
    shorter = m.select(length.hi < 0.0, m.constant(1 << 63), m.constant(0))
    sign = m.and_(m.xor(d.sign, shorter), m.xor(c.sign, b.sign))
    real, imaginary = (
        Part(multiply(radius, part), margin, sign_bit)
        for part, margin, sign_bit in zip((cosine, sine), margins, (m.constant(0), sign), strict=True)
    )
    return Outcome(real, imaginary, inside)
