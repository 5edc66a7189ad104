"""Inverse hyperbolic functions in fixed point: logarithms of numbers made of |x| and 1 in one scale, ``scaled``.

Near zero, below 2**-17, asinh and atanh are series in x**2, times the significand of x; elsewhere they are at least
2**-17.01, as logarithms may be. acosh near 1 is 2 asinh(sqrt((x - 1) / 2)).
"""

from __future__ import annotations

from fractions import Fraction
from math import comb

from tlir.floatlib.elementary.wide.fixed import DIGIT, Fixed, choose
from tlir.floatlib.elementary.wide.function import INVALID, Case, Function
from tlir.floatlib.elementary.wide.logarithm import GUARD, NATURAL, ZEROS, logarithm, scaled
from tlir.floatlib.elementary.wide.quotient import reciprocal, square_root
from tlir.floatlib.elementary.wide.series import count_terms, odd_series, polynomial
from tlir.floatlib.elementary.wide.tables import constant
from tlir.floatlib.elementary.wide.work import Operand, Value, Work, beside, shift_count
from tlir.floatlib.soft.machine import Predicate, Word

NEAR_ZERO = -17
NEAR_ONE = -32
"""Where x - 1 < 2**-32, acosh x is near: below 2**-15.5."""


def asinh_coefficient(k: int) -> Fraction:
    """That of x**(2 k + 1), without its sign."""
    return Fraction(comb(2 * k, k), 4**k * (2 * k + 1))


def normalized(x: Fixed, most: int) -> tuple[Fixed, Word]:
    """x shifted so that its highest bit is at the top of its fraction digits, and by how much, at most ``most``."""
    x = x.resized(x.point)
    zeros = x.leading_zeros()
    return x.left_by(shift_count(x.m, zeros, most), most), zeros


def asinh(work: Work, x: Operand) -> Value:
    """log(|x| + sqrt(x**2 + 1)) = log((a + sqrt(a**2 + b**2)) 4 * 2**h).

    16 (a**2 + b**2) is in [1, 2) where h = 0 and in [1/4, 1.25] otherwise; that, or a fourth of it, is E, and q =
    sqrt(E) / 4 is half of the root or the root itself. a + the root is in [1/4, 0.62)."""
    m, point = work.m, work.digits(GUARD)
    parts = scaled(x, point)
    near = x.below(NEAR_ZERO)
    inside = x.below(0)
    square = parts.a.square(point).plus(parts.b.square(point), 2.0**-3)
    radicand = choose(inside, square.doubled(2), square.doubled(4)).below(1.26)
    quarter = square_root(radicand, point)
    root = choose(inside, quarter.doubled(), quarter)
    total, zeros = normalized(parts.a.plus(root, 0.62), 2)
    value = logarithm(work, NATURAL, total, m.subtract(m.add(parts.h, m.constant(1)), zeros))
    close = odd_series(work, x, near, parts.a.doubled(2), NEAR_ZERO, asinh_coefficient, alternating=True)
    scale = m.select(near, m.add(x.exponent, m.constant(2)), value.exponent)
    return beside(near, close, value.significand, x.sign, scale, ZEROS)


def atanh(work: Work, x: Operand) -> Value:
    """log((1 + |x|) / (1 - |x|)) / 2, |x| < 1.

    1 - |x| is exact but where near; it is d 2**(2 - zeros), d in [1/2, 1). With R = 1 / (4 d) and n = (1 + |x|) / 2 the
    quotient is n R 2**(zeros + 1), n R between 1/8 and 1/2."""
    m, point = work.m, work.digits(GUARD)
    parts = scaled(x, point)
    near = x.below(NEAR_ZERO)
    quarter = constant(m, Fraction(1, 4), point)
    exact = parts.a.known(0.0)
    divisor, zeros = normalized(quarter.minus(exact), work.fmt.precision + 3)
    half = quarter.plus(exact, 0.5 - 2.0**-40).doubled()
    quotient, more = normalized(half.times(reciprocal(divisor, point), point, 0.52), 4)
    value = logarithm(work, NATURAL, quotient, m.subtract(zeros, more))
    close = odd_series(work, x, near, parts.a.doubled(2), NEAR_ZERO, lambda k: Fraction(1, 2 * k + 1))
    scale = m.select(near, m.add(x.exponent, m.constant(2)), m.subtract(value.exponent, m.constant(1)))
    return beside(near, close, value.significand, x.sign, scale, ZEROS)


def acosh(work: Work, x: Operand) -> Value:
    """log(x + sqrt(x**2 - 1)) = log((f + sqrt(A B)) 2**h) with f = x / 2**h in [1/2, 1), A = f - 2**-h, B = f + 2**-h.

    A is exact, or has at most one leading zero bit and lacks less than a unit; it is N 2**-z, N in [1/2, 1). A B = N
    (B/2) 2**(1 - z) becomes E 2**-w, E in [1/4, 1) and w even; near 1, where h = 1 and A = (x - 1) / 2, E 2**-w is A.
    With q = sqrt(E) / 4 the root is 4 q 2**-(w/2), and near 1 acosh x = 8 q 2**-(w/2) (1 - A/6 + ...)."""
    m, point, precision = work.m, work.digits(GUARD), work.fmt.precision
    parts = scaled(x, point)
    near = m.both(x.below(1), _is_small(parts.a.minus(parts.b)))
    excess = parts.a.known(0.0).minus(parts.b, 0.25).doubled(2).resized(point)
    head, z = normalized(excess, precision + 2)
    head = head.known(4.0).below(1 - 2.0**-60)
    sum_half = parts.a.plus(parts.b, 0.375).doubled()
    product = head.times(sum_half, point, 0.75)
    # one bit more where the exponent is odd; then it is even
    down = m.select(near, z, m.subtract(z, m.constant(1)))
    odd = m.negation(m.equal(m.and_(down, m.constant(1)), m.constant(0)))
    chosen = choose(near, head, product)
    radicand = choose(odd, chosen.halved(), chosen)
    w = m.subtract(down, m.word_of(odd))
    low = m.less(radicand.digits[point - 1], m.constant(1 << DIGIT - 2))
    radicand = choose(low, radicand.doubled(2).resized(point), radicand).below(1 - 2.0**-60)
    w = m.select(low, m.add(w, m.constant(2)), w)
    quarter = square_root(radicand, point)
    down = m.shift_right(w, m.constant(1))
    root = quarter.right_by(shift_count(m, down, DIGIT * point), DIGIT * point)
    total, zeros = normalized(parts.a.plus(root, 0.5), 3)
    value = logarithm(work, NATURAL, total, m.subtract(m.add(parts.h, m.constant(1)), zeros))
    close = quarter.times(_near_series(work, near, excess), point)
    scale = m.select(near, m.subtract(m.constant(4), down), value.exponent)
    return beside(near, close, value.significand, m.truth(False), scale, ZEROS)


def _is_small(quarter: Fixed) -> Predicate:
    """Whether A / 4 is so small that 2 A is below 2**-32."""
    m = quarter.m
    first, second = quarter.digits[quarter.point - 1], quarter.digits[quarter.point - 2]
    bits = DIGIT + DIGIT + NEAR_ONE - 3
    return m.both(m.equal(first, m.constant(0)), m.less(second, m.constant(1 << bits)))


def _near_series(work: Work, near: Predicate, y: Fixed) -> Fixed:
    """asinh(sqrt(y)) / (2 sqrt(y)) for y < 2**-33."""
    m, point = work.m, work.point
    small = choose(near, y, constant(m, 0, y.point)).to(point).below(2.0 ** (NEAR_ONE - 1))
    terms, rest = count_terms(small.limit, point, lambda k: float(asinh_coefficient(k)) / 2)
    coefficients = [asinh_coefficient(k) / 2 for k in range(terms)]
    return polynomial(small, coefficients, point, alternating=True).with_error(rest)


def _below_one(work: Work, x: Operand) -> list[Case]:
    return [(work.m.either(x.sign, x.below(0)), INVALID)]


def _beyond_one(work: Work, x: Operand) -> list[Case]:
    return [(x.at_least(0), INVALID)]


FUNCTIONS = {
    "asinh": Function(asinh),
    "acosh": Function(acosh, _below_one, ones=(0,)),
    "atanh": Function(atanh, _beyond_one, ones=(0, 1)),
}
