"""The inverse error function in fixed point.

A binary64 estimate y of erf_inv |x|, taken as the number of two fraction digits that it is, becomes the result by the
series of the inverse function about it. With u = integral of e**(y*y - s*s) ds from y to the result, which is
sqrt(pi)/2 e**(y*y) (|x| - erf y),

    result = y + c[1] u + c[2] u**2 + ...,    c[n] = P[n](y) / n!,    P[1] = 1, P[n+1] = P[n]' + 2 n y P[n],

because the result has the derivative e**(d*d - y*y) by u at d. u is computed as the product for y < 1/2; otherwise it
is sqrt(pi)/2 (w(y) - (1 - |x|) e**(y*y)) with w(y) = e**(y*y) erfc y, whose parts are below 1. erf y and w(y) come from
the rows of ``error``.

The estimate is a polynomial of s = sqrt(-log(1 - |x|)) in cells of a fourth. Nothing here relies on its error: where
|u| is not below 2**-41, the value is marked doubtful.

What the series leaves out: for complex |d| <= r = 1 / (4 (y + 1)), |2 y d + d*d| < 9/16, so that e**-(2yd + dd) is
within 0.76 of 1, and u as a function of d takes every value below 0.24 r once. By Cauchy's estimate |c[n]| <= r / (0.24
r)**n; the rest after M terms is less than twice the next one, r (u / (0.24 r))**(M + 1).

Near zero, below 2**-17, erf_inv x = x (sqrt(pi)/2 + ...) keeps the significand of x. The series of erf_inv has positive
coefficients (its derivative is sqrt(pi)/2 e**(y*y)), and erf_inv(3/4) < 0.82, so the coefficient of x**(2 k + 1) is
below 0.82 / (3/4)**(2 k + 1) < 1.1 * 1.78**k.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from math import ceil, cos, factorial, isqrt, log2, pi

from flint import arb, arb_mat, ctx

from tlir.floatlib.elementary.narrow.log import log
from tlir.floatlib.elementary.number import Number
from tlir.floatlib.elementary.wide.error import half_of, ratio
from tlir.floatlib.elementary.wide.error_rows import rows
from tlir.floatlib.elementary.wide.exponential import reduce, scaled_power
from tlir.floatlib.elementary.wide.fixed import DIGIT, MASK, Fixed, choose, unit
from tlir.floatlib.elementary.wide.function import INVALID, Case, Function
from tlir.floatlib.elementary.wide.series import count_terms, polynomial
from tlir.floatlib.elementary.wide.tables import constant
from tlir.floatlib.elementary.wide.work import Operand, Value, Work, beside, shift_count
from tlir.floatlib.soft.machine import Machine, Predicate, Word

NEAR_ZERO = -17
LOSS = 18
CELL, DEGREE = 0.25, 9
LARGEST_REST = 2.0**-41
"""Where the difference of which u is made is not below this, the estimate is not good enough."""


def end(precision: int) -> int:
    """An integer above every result: erfc y < e**(-y*y), and 1 - |x| >= 2**-precision, log 2 < 7/10."""
    return isqrt(precision * 7 // 10 + 1) + 2


@cache
def _estimates(count: int) -> tuple[tuple[float, ...], ...]:
    """Coefficients, by order, of polynomials of d = s / CELL - j - 1/2 that equal erf_inv(1 - e**(-s*s)) in the
    Chebyshev points of each cell j: within 2**-43 of it, as measured."""
    points = [cos(pi * (2 * k + 1) / (2 * DEGREE + 2)) / 2 for k in range(DEGREE + 1)]
    previous, ctx.prec = ctx.prec, 64 + 2 * ceil(1.5 * (count * CELL) ** 2)
    try:
        powers = arb_mat([[arb(d) ** k for k in range(DEGREE + 1)] for d in points])
        found = []
        for j in range(count):
            places = [(j + arb(0.5) + arb(d)) * CELL for d in points]
            values = arb_mat([[(1 - (-(s * s)).exp()).erfinv()] for s in places])
            solved = powers.solve(values)
            found.append([float(solved[k, 0].mid()) for k in range(DEGREE + 1)])
    finally:
        ctx.prec = previous
    return tuple(zip(*found, strict=True))


def _estimate(m: Machine, head: Fixed, zeros: Word, last: int) -> Word:
    """60 fraction bits of a number near erf_inv |x|, for 1 - |x| = head * 2**-zeros, head in [1/2, 1)."""
    leading = Number(m, head.real()).maximum(0.5)
    logarithm = log(leading)
    assert isinstance(logarithm, Number)
    s = (Number(m, m.real_of(zeros)) * 0.6931471805599453 - logarithm).maximum(0.0).sqrt() * (1 / CELL)
    count = ceil(last / CELL)
    cell = m.truncate(s.minimum(count - 0.5).value)
    d = s - Number(m, m.real_of(cell)) - 0.5
    result: Number | None = None
    for coefficients in reversed(_estimates(count)):
        term = Number(m, m.table(coefficients, cell))
        result = term if result is None else result * d + term
    assert result is not None
    return m.truncate((result.maximum(0.0).minimum(float(last)) * 2.0 ** (2 * DIGIT)).value)


@cache
def _inverse_series(k: int) -> Fraction:
    """e[k], with erf_inv x the sum of e[k] / (2 k + 1) (sqrt(pi)/2 x)**(2 k + 1)."""
    if k == 0:
        return Fraction(1)
    return sum(
        (_inverse_series(i) * _inverse_series(k - 1 - i) / ((i + 1) * (2 * i + 1)) for i in range(k)), Fraction(0)
    )


def half_root_of_pi() -> arb:
    return arb.pi().sqrt() / 2


@cache
def _coefficient(k: int) -> Callable[[], arb]:
    share = _inverse_series(k) / (2 * k + 1)
    return lambda: half_root_of_pi() ** (2 * k + 1) * share.numerator / share.denominator


@cache
def _derivative(n: int) -> tuple[int, ...]:
    """The coefficients of P[n], the constant first."""
    if n == 1:
        return (1,)
    before = _derivative(n - 1)
    result = [0, *(2 * (n - 1) * c for c in before)]
    for k, c in enumerate(before[1:], 1):
        result[k - 1] += k * c
    return tuple(result)


def _inverted(u: Fixed, negative: Predicate, y: Fixed, square: Fixed, last: int) -> Fixed:
    """|c[1] u + c[2] u**2 + ...|, u negative or not, in the digits of u."""
    point, radius = u.point, 1 / (4 * (last + 1))
    step = u.limit / (0.24 * radius)
    count = 1
    while 2 * radius * step ** (count + 1) > unit(point) / 8:
        count += 1
    result: Fixed | None = None
    for n in reversed(range(1, count + 1)):
        # the power of u that it is multiplied by brings its units below an eighth of the result's
        digits = max(1, ceil(point + (n * log2(u.limit) + 3) / DIGIT))
        term = _coefficient_at(n, y, square, digits)
        result = term if result is None else term.plus_signed(u.to(digits).times(result, digits), negative)
    assert result is not None
    return u.times(result, point).with_error(2 * radius * step ** (count + 1))


def _coefficient_at(n: int, y: Fixed, square: Fixed, digits: int) -> Fixed:
    """c[n] at y: a polynomial of y*y, times y for an even n."""
    coefficients = _derivative(n)[1 - n % 2 :: 2]
    s, result = square.to(digits), None
    for c in reversed(coefficients):
        term = constant(y.m, Fraction(c, factorial(n)), digits)
        result = term if result is None else s.times_plus(result, term)
    assert result is not None
    return result if n % 2 else y.to(digits).times(result, digits)


def erf_inv(w: Work, x: Operand) -> Value:
    """For |x| < 1. 1 - |x| is exact but where near zero.

    No other kernel comes first in narrower formats, so that they have no more than the usual guard bits either."""
    m, fmt = w.m, w.fmt
    w = replace(w, point=-(-(fmt.precision + 32) // DIGIT))
    point = -(-(fmt.precision + 32 + LOSS) // DIGIT)
    last, most = end(fmt.precision), DIGIT * point
    size = x.fixed(point, 0).known(0.0)
    rest = constant(m, 1, point, point + 1).minus(size).resized(point)
    zeros = shift_count(m, rest.leading_zeros(), fmt.precision + 1)
    head = rest.left_by(zeros, fmt.precision + 1)
    word = _estimate(m, head, zeros, last)
    mask = m.constant(MASK)
    digits = [m.and_(word, mask), m.and_(m.shift_right(word, m.constant(DIGIT)), mask)]
    y = Fixed(m, [*digits, m.shift_right(word, m.constant(2 * DIGIT))], 2, float(last))
    below_half = m.less(word, m.constant(1 << 2 * DIGIT - 1))
    square = y.square(4)
    assert square.error == 0
    power, scale = scaled_power(w, *reduce(w, square.to(point).resized(point + 1), m.truth(False)))
    # half of erf y or of w(y)
    table, magnitude = rows(last, point), y.to(point)
    t = ratio(table, magnitude, 2.0 ** (last + table.scale).bit_length())[2]
    short = square.to(point)
    z = Fixed(m, short.digits[:point], point, 0.25, short.error)
    argument = choose(below_half, magnitude.resized(point).below(0.5), t)
    half = argument.times(half_of(table, below_half, z, t), point, 0.35)
    # half of |x| or of (1 - |x|) e**(y*y), the latter being less than 0.62
    product = head.times(power, point, 0.51)
    down = shift_count(m, m.subtract(m.constant(2), m.subtract(scale, zeros)), most)
    wanted = choose(below_half, size.halved(), product.doubled().right_by(down, most, 1.1))
    below, above = choose(below_half, half, wanted), choose(below_half, wanted, half)
    difference, negative = above.difference(below, 1.1)
    tops = [*difference.digits[point - 1 :], m.shift_right(difference.digits[point - 2], m.constant(2 * DIGIT - 42))]
    near = x.below(NEAR_ZERO)
    doubtful = m.both(m.negation(near), m.negation(Fixed(m, tops, 0).is_zero()))
    # twice the half; e**(y*y) is 4 times a power below 0.33 for y < 1/2
    twice = difference.resized(point).below(LARGEST_REST / 2).doubled()
    grown = twice.times(power, point, LARGEST_REST * 0.33).doubled(2)
    u = choose(below_half, grown, twice).times(constant(m, half_root_of_pi, point), point, LARGEST_REST * 1.2)
    far = magnitude.plus_signed(_inverted(u, negative, y, square, last), negative, last + 1.0)
    value = beside(near, _close(w, x, near, size), far, x.sign, m.select(near, _up(m, x), m.constant(0)), DIGIT + LOSS)
    return replace(value, doubtful=doubtful)


def _up(m: Machine, x: Operand) -> Word:
    return m.add(x.exponent, m.constant(1))


def _close(w: Work, x: Operand, near: Predicate, size: Fixed) -> Fixed:
    """The significand of x times erf_inv(x) / x, for |x| < 2**-17, in the digits of ``size``."""
    m, point = w.m, size.point
    small = choose(near, size, constant(m, 0, point)).to(w.point).below(2.0**NEAR_ZERO)
    square = small.square(w.point)
    count, rest = count_terms(square.limit, w.point, lambda k: 1.1 * 1.78**k)
    series = polynomial(square, [_coefficient(k) for k in range(count)], w.point).with_error(rest)
    return x.fraction(point).times(series, point, 0.9)


def _outside(w: Work, x: Operand) -> list[Case]:
    return [(x.at_least(0), INVALID)]


FUNCTIONS = {"erf_inv": Function(erf_inv, _outside, ones=(0, 1))}
