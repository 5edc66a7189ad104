"""Kernels of the complex logarithm and of powers. u = 2**-53.

log|z| = log(h) / 2 with h = x**2 + y**2, a pair within 2**-100. Near 1 the logarithm is that of 1 + n with n = h - 1 as
a pair of its own: g - 1 for the greater square g, a sum of two numbers, and the lesser square. g.hi - 1 is exact in
binary64 for g.hi >= 1/2; below, it and g.lo leave at most 2**-54 each, whose sum loses ``LOST``. Of operands of at most
24 bits the squares are single numbers, and nothing is lost.
"""

from __future__ import annotations

from dataclasses import replace

from tlir.floatlib.elementary.complex.parts import Means, Outcome, Part, absolute, double, relative, scaled, scaling
from tlir.floatlib.elementary.double import circular, exponential
from tlir.floatlib.elementary.double.arithmetic import (
    Double,
    add,
    add_similar,
    constant,
    fast_two_sum,
    multiply,
    multiply_number,
    select,
    select_double,
    signed,
    squared,
    two_product,
    two_sum,
)
from tlir.floatlib.elementary.number import Number

LOST = 2.0**-106
USUAL = 250


def _log_length(x: Number, y: Number, means: Means) -> tuple[Double, Number]:
    """log|z|, within ``Means.log`` of itself and this number. Numbers of binary64 that are not within 2**±``USUAL`` are
    multiplied by a power of two first, whose logarithm is then much more than that of what is left."""
    m = x.m
    exponent: Number | None = None
    if means.wide:
        size, zero = abs(x).maximum(abs(y)), x.like(0.0)
        usual = m.both(size > 2.0**-USUAL, size < 2.0**USUAL)
        z = scaling(x, y)
        x, y, exponent = select(usual, x, z.x), select(usual, y, z.y), select(usual, zero, z.exponent * 2.0)
    swap = abs(x) < abs(y)
    greater, lesser = select(swap, y, x), select(swap, x, y)
    g, small = two_product(greater, greater), two_product(lesser, lesser)
    base = two_sum(g.hi, x.like(-1.0))
    near = add(fast_two_sum(base.hi, base.lo + g.lo), small)
    exact = m.either(base.lo.equals(0.0), g.lo.equals(0.0))
    lost = select(exact, x.like(0.0), x.like(LOST))
    value = scaled(means.logarithm(add_similar(g, small), near), 0.5)
    if exponent is not None:
        powers = multiply_number(constant(m, exponential.log2()), exponent)
        value = select_double(exponent.equals(0.0), value, add(powers, value))
    return value, lost


def _argument(x: Number, y: Number, means: Means) -> Double:
    """The angle of x + iy, not both 0."""
    a, b = abs(x), abs(y)
    if means.wide:
        z = scaling(a, b)
        a, b = z.x, z.y
    return signed(means.angle_of(double(b), double(a), x < 0.0), y.sign)


def log(x: Number, y: Number, means: Means) -> Outcome:
    """log|z|, arg z for z other than 0. log|z| = 0 is +0."""
    value, lost = _log_length(x, y, means)
    return Outcome(
        Part(value, abs(value.hi).times_plus(means.log, lost), x.m.constant(0)),
        relative(_argument(x, y, means), means.arc, y.sign),
    )


def log_plus_one(x: Number, y: Number, means: Means) -> Outcome:
    """log|1 + z|, arg(1 + z) for z other than -1: 1 + x is a pair exactly, and h - 1 is x (2 + x) + y**2. The product
    has 3 u**2 of itself, which count where it cancels, and there it is below 2."""
    m = x.m
    one = x.like(1.0)
    s = fast_two_sum(*two_sum(one, x))
    square = two_product(y, y)
    product = multiply_number(two_sum(x.like(2.0), x), x)
    value = scaled(means.logarithm(add_similar(squared(s), square), add(product, square)), 0.5)
    margin = abs(value.hi).times_plus(means.log, abs(product.hi).minimum(2.0) * 2.0**-103)
    sign = m.select(x.equals(0.0), x.sign, m.constant(0))
    argument = means.angle_of(double(abs(y)), absolute(s), s.hi < 0.0)
    return Outcome(Part(value, margin, sign), relative(signed(argument, y.sign), means.arc, y.sign))


LEAST_EXPONENT, GREATEST_EXPONENT = -640.0, 660.0
GREATEST_ERROR = 2.0**-10


def power(a: Number, b: Number, c: Number, d: Number, means: Means) -> Outcome:
    """(a + bi)**(c + di) = e**rho (cos theta, sin theta) for a base other than 0, with rho = c log|z| - d arg z and
    theta = d log|z| + c arg z. The argument of a negative number is pi, whatever the sign of b = 0.

    The products have the errors of the logarithm and of the argument, which leaves absolute errors r of rho and t of
    theta; what the logarithm has lost counts as well. So e**rho has an error of 1.001 r beside its own for r < 2**-10,
    and cos theta one of t. theta is exactly 0 where both of its terms are. The logarithm is always the accurate one.
    """
    m = a.m
    means = replace(means, accurate=True)
    length, lost = _log_length(a, b, means)
    argument = _argument(a, select(b.equals(0.0), a.like(0.0), b), means)
    terms = multiply_number(length, c), multiply_number(argument, d)
    rho = add(terms[0], -terms[1])
    others = multiply_number(length, d), multiply_number(argument, c)
    theta = add(*others)
    log_error, arc_error = means.log * 1.01, means.arc * 1.01
    rho_error = abs(terms[0].hi) * log_error + abs(terms[1].hi).times_plus(arc_error, lost * abs(c))
    theta_error = abs(others[0].hi) * log_error + abs(others[1].hi).times_plus(arc_error, lost * abs(d))
    still = m.both(others[0].hi.equals(0.0), others[1].hi.equals(0.0))
    # a sum of 0 that is not exact has an error of its own
    cancelled = m.both(theta.hi.equals(0.0), m.negation(still))
    theta_error = select(cancelled, a.like(2.0**-100), theta_error)
    inside = m.both(abs(theta.hi) < circular.NEAR, m.both(rho_error < GREATEST_ERROR, theta_error < GREATEST_ERROR))
    inside = m.both(inside, m.both(rho.hi > LEAST_EXPONENT, rho.hi < GREATEST_EXPONENT))
    zero = double(a.like(0.0))
    rho, theta = select_double(inside, rho, zero), select_double(inside, theta, zero)
    radius = means.exponential(rho.hi, rho.lo)
    of_theta = means.angle(theta.hi, theta.lo)
    share, turned = rho_error.times_plus(1.01, of_theta.error + means.exp), theta_error * 1.01
    shorter = m.select(length.hi < 0.0, m.constant(1 << 63), m.constant(0))
    sign = m.and_(m.xor(d.sign, shorter), m.xor(c.sign, b.sign))
    real, imaginary = (
        Part(multiply(radius, part), radius.hi * abs(part.hi).times_plus(share, turned), sign_bit)
        for part, sign_bit in ((of_theta.cosine, m.constant(0)), (of_theta.sine, sign))
    )
    return Outcome(real, imaginary, inside)
