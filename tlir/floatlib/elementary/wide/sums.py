"""log(e**x + e**y) in fixed point: M + L with L = log(1 + t), t = e**-d, M the greater operand and d the difference.

|x| and |y| are taken with as many integer bits as the format has bits and 10: above that, L is out of sight. So d is
right within two units; t = s 2**q has a relative error, and so has L, which is near t for small t. M and L are then
added as significands with exponents. They may cancel where M is negative: what leading bits that costs is seen when
the sum is rounded. The result is never a number of the format (``special.normal``).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from tlir.floatlib.elementary.wide.exponential import INEXACT, integer_bits, reduce, scaled_power
from tlir.floatlib.elementary.wide.fixed import DIGIT, Fixed, choose, combination, unit
from tlir.floatlib.elementary.wide.function import Case, Function
from tlir.floatlib.elementary.wide.logarithm import GUARD, NATURAL, ZEROS, Near, logarithm
from tlir.floatlib.elementary.wide.tables import constant
from tlir.floatlib.elementary.wide.work import LIFT, Operand, Value, Work, less_signed, shift_count, signed
from tlir.floatlib.soft.machine import Predicate, Word
from tlir.floatlib.soft.uint import Uint
from tlir.floatlib.soft.uint import choose as choose_bits

BEYOND = 10
"""Operands of 2**(precision + 10) and more are the result."""
NOTHING = -(1 << 30)
"""The exponent of a zero."""


@dataclass(frozen=True)
class _Term:
    """(-1)**sign * fraction * 2**exponent, the fraction in [1/2, 1), or below if the exponent is ``NOTHING``."""

    sign: Predicate
    fraction: Fixed
    exponent: Word


def _is_less(x: Operand, y: Operand) -> Predicate:
    """x < y, for numbers; of zeros of both signs -0 is less."""
    m, bits = x.m, x.fmt.magnitude_bits
    magnitudes = [operand.word.low(bits) for operand in (x, y)]
    below, above = magnitudes[0].less(magnitudes[1]), magnitudes[1].less(magnitudes[0])
    return m.select(m.differ(x.sign, y.sign), x.sign, m.select(x.sign, above, below))


def _magnitude(x: Operand, point: int, bits: int) -> Fixed:
    size = x.fixed(point, bits)
    return choose(x.zero, constant(x.m, 0, point), size)


def log_add_exp(w: Work, x: Operand, y: Operand) -> Value:
    """For numbers, zeros among them, the greater of which is below 2**(precision + 10) in magnitude."""
    m, precision = w.m, w.fmt.precision
    w = Work(m, w.fmt, -(-(precision + 48) // DIGIT))
    point = -(-(precision + 48 + GUARD) // DIGIT)
    less = _is_less(x, y)
    left, right = (_magnitude(operand, point, precision + BEYOND) for operand in (x, y))
    # the greater less the lesser: |x| - |y| or |y| - |x| of one sign, the sum of two
    alike = m.negation(m.differ(x.sign, y.sign))
    reverse = m.differ(less, x.sign)
    signs = m.both(alike, reverse), m.both(alike, m.negation(reverse))
    distance = combination([([(left, False)], signs[0]), ([(right, False)], signs[1])])
    bits = integer_bits(w)
    far = m.negation(distance.bits().right(DIGIT * point + bits).is_zero())
    far = m.either(far, m.either(x.at_least(precision + BEYOND), y.at_least(precision + BEYOND)))
    small = Fixed(m, distance.digits[: point + 1], point, 2.0**bits, distance.error)
    small = choose(far, constant(m, 0, point, point + 1), small)
    s, q = scaled_power(w, *reduce(w, small, m.truth(True)))
    total, exponent = _log_of_one_and(w, s, q)
    exponent = m.select(far, signed(m, NOTHING), exponent)
    greater = choose(less, y.fraction(point), x.fraction(point))
    zero = m.select(less, y.zero, x.zero)
    scale = m.add(m.select(less, y.exponent, x.exponent), m.constant(1))
    first = _Term(m.select(less, y.sign, x.sign), greater, m.select(zero, signed(m, 2 * NOTHING), scale))
    first = _Term(m.both(first.sign, m.negation(zero)), choose(zero, constant(m, 0, point), greater), first.exponent)
    return _sum(w, first, _Term(m.truth(False), total, exponent))


def _log_of_one_and(w: Work, s: Fixed, q: Word) -> tuple[Fixed, Word]:
    """log(1 + s 2**q) as a number in [1/2, 1), s being in [0.249, 0.501) and the product at most 1, and its
    exponent."""
    m, point = w.m, s.point
    most = DIGIT * point
    count = shift_count(m, m.subtract(m.constant(2), q), most)
    quarter = s.right_by(count, most)
    # (1 + t) / 2, made so small that it is below 1 for t = 1 and its error
    margin = ceil(2 * quarter.error) + 1
    half = constant(m, Fraction(1, 2) - Fraction(margin, 1 << most), point).with_error(margin * unit(point))
    fraction = quarter.doubled().plus(half, 1 - 2.0**-60)
    here = less_signed(m, q, -14)
    r = choose(here, quarter, constant(m, 0, point)).below(2.0**-18).doubled(2)
    near = Near(here, m.truth(False), r, s, q)
    value = logarithm(w, NATURAL, fraction, m.constant(0), near)
    size, zeros = value.significand.size, value.significand.leading_zeros()
    # near 0, r and the series are above 0.124
    head = value.significand.left_by(shift_count(m, zeros, ZEROS), ZEROS)
    head = head.known(max(head.error, value.near_error * 2.0 ** (DIGIT * (size - point) + 4)))
    head = head.scaled(size - point).to(point).below(1.0).resized(point)
    return head, m.subtract(m.add(value.exponent, m.constant(DIGIT * (size - point))), zeros)


def _sum(w: Work, x: _Term, y: _Term) -> Value:
    """The sum of two terms."""
    m, most = w.m, DIGIT * x.fraction.point
    swap = m.less(m.add(x.exponent, m.constant(LIFT)), m.add(y.exponent, m.constant(LIFT)))
    big, small = choose(swap, y.fraction, x.fraction), choose(swap, x.fraction, y.fraction)
    top, bottom = m.select(swap, y.exponent, x.exponent), m.select(swap, x.exponent, y.exponent)
    moved = small.halved().right_by(shift_count(m, m.subtract(top, bottom), most), most)
    big = big.halved()
    opposite = m.differ(x.sign, y.sign)
    difference, negative = big.difference(moved, 0.51)
    total = choose(opposite, difference, big.plus(moved, 1.01))
    sign = m.differ(m.select(swap, y.sign, x.sign), m.both(opposite, negative))
    return Value(sign, total, m.add(top, m.constant(1)))


def _cases(w: Work, x: Operand, y: Operand) -> list[Case]:
    """Infinities, and operands beside which the logarithm is out of sight."""
    m, fmt = w.m, w.fmt
    assert fmt.inf is not None
    bits = fmt.precision + BEYOND
    less = _is_less(x, y)
    greater: Uint = choose_bits(less, y.word, x.word)
    large = m.select(less, y.at_least(bits), x.at_least(bits))
    large = m.both(large, m.negation(m.select(less, y.zero, x.zero)))
    numbers = m.negation(m.either(x.nan, y.nan))
    lowest = [m.both(m.both(one.inf, one.sign), numbers) for one in (x, y)]
    highest = [m.both(m.both(one.inf, m.negation(one.sign)), numbers) for one in (x, y)]
    return [
        (m.both(large, numbers), (greater, INEXACT)),
        (lowest[0], (y.word, 0)),
        (lowest[1], (x.word, 0)),
        (m.either(*highest), (fmt.inf, 0)),
    ]


FUNCTIONS = {"log_add_exp": Function(log_add_exp, _cases, operands=2)}
