"""The error function and its complement in fixed point.

For |x| < 1/2, erf x = x g(x*x). For x >= 1/2, erfc x = e**(-x*x) t f(t) with

    t = K / (K + x),    f(t) = w(x) / t,    w(x) = e**(x*x) erfc(x) = 2/sqrt(pi) * integral of e**(-s*s - 2xs), s > 0,

where f is smooth over the whole range, between 1 / (K sqrt(pi)) and 1. One polynomial of y, 0 <= y < 1/64, gives half
of g or f, with coefficients from a table that has a row for each 64th of x*x and of t: ``rows`` of ``error_rows``. y is
the distance from the lower end of t's 64th, or from the upper end of that of x*x.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

from tlir.floatlib.elementary.wide.circular import below_one, guarded, shifted
from tlir.floatlib.elementary.wide.error_rows import CELL_BITS, NEAR_ROWS, Rows, rows
from tlir.floatlib.elementary.wide.exponential import reduce, scaled_power
from tlir.floatlib.elementary.wide.fixed import DIGIT, MASK, Fixed, choose, unit
from tlir.floatlib.elementary.wide.function import UNDERFLOW, Case, Function
from tlir.floatlib.elementary.wide.quotient import reciprocal
from tlir.floatlib.elementary.wide.tables import constant
from tlir.floatlib.elementary.wide.work import Operand, Value, Work, signed
from tlir.floatlib.soft.machine import Predicate, Word

NEAR = -1
"""erf x is x g(x*x) below 2**NEAR."""
ZEROS = 11
"""Leading zero bits of ``Part.fraction``, at most: 2 of a power, 2 of a reciprocal and 6 of f/2, K being at most 32."""


def end(w: Work) -> int:
    """An integer from which on e**(-x*x), which is more than erfc x, is below a quarter of the smallest number of the
    format, and below a unit of the working precision."""
    bits = max(w.fmt.precision + 1 - w.fmt.emin, DIGIT * w.point)
    # log 2 < 7/10
    return isqrt(bits * 7 // 10 + 1) + 1


@dataclass(frozen=True)
class Part:
    """fraction * 2**exponent, the exponent a signed word of at most 3: erf |x| where ``near``, elsewhere erfc |x|."""

    near: Predicate
    fraction: Fixed
    exponent: Word


def _part(w: Work, x: Operand) -> Part:
    """For |x| < 2**integer_bits; beyond it the exponent is far below zero.

    |x| is cut off, but only numbers below 1/2 have bits to lose: their squares lose less than a unit by it. (K + x)
    2**-s is in [1/2, 1), and t = R 2**(2 + log2 K - s) with R = 2**s / (4 (K + x)). Between ``end`` and
    2**integer_bits t may lie below the first row, which then gives another f, of the same size; there erfc x is below
    everything that counts."""
    m, point, last = w.m, w.point, end(w)
    integer_bits = last.bit_length()
    table = rows(last, point)
    near = x.below(NEAR)
    magnitude = x.fixed(point, integer_bits).known(0.0)
    square = magnitude.square(point)
    power, scale = scaled_power(w, *reduce(w, square.resized(point + 1), m.truth(True)))
    inverse, down, t = ratio(table, magnitude, 2.0 ** max(integer_bits + 1, table.scale.bit_length() + 1))
    z = Fixed(m, square.digits[:point], point, 0.25, square.error + 1.0)
    polynomial = half_of(table, near, z, t)
    fraction = choose(near, x.fraction(point), power.times(inverse, point, 0.2506)).times(polynomial, point, 0.6)
    far_exponent = m.add(m.subtract(scale, down), m.constant(2))
    far_exponent = m.select(x.at_least(integer_bits), signed(m, -(1 << 30)), far_exponent)
    return Part(near, fraction, m.select(near, m.add(x.exponent, m.constant(2)), far_exponent))


def ratio(table: Rows, magnitude: Fixed, limit: float) -> tuple[Fixed, Word, Fixed]:
    """(R, down, t): t = K / (K + x) = 2 R 2**-down, K + x at most ``limit``; R is between 1/4 and 1/2."""
    m, point = magnitude.m, magnitude.point
    log_k = table.scale.bit_length() - 1
    sum_ = magnitude.plus(constant(m, table.scale, point), limit)
    zeros = sum_.leading_zeros()
    most = DIGIT * sum_.size - DIGIT * point - log_k - 1
    # as a fraction of its digits of the integer, exactly: s = 30 * (digits of the integer) - zeros
    whole = sum_.scaled(sum_.size - point)
    inverse = reciprocal(below_one(whole.left_by(zeros, most, 1.0).to(point + 1)), point)
    down = m.subtract(m.constant(most), zeros)
    return inverse, down, below_one(inverse.doubled().right_by(down, most, 1.0))


def half_of(table: Rows, near: Predicate, z: Fixed, t: Fixed) -> Fixed:
    """g(z)/2 or f(t)/2, in the row that z or t chooses; y is what its other bits say."""
    m, point = t.m, t.point
    c = m.constant
    place = c(DIGIT - CELL_BITS)
    row = m.shift_right(t.digits[-1], place)
    row = m.select(m.less(row, c(table.first)), c(table.first), row)
    index = m.select(near, m.shift_right(z.digits[-1], place), m.add(row, signed(m, NEAR_ROWS - table.first)))
    index = m.select(m.less(index, c(table.count)), index, c(0))
    digits = [m.select(near, m.xor(a, c(MASK)), b) for a, b in zip(z.digits, t.digits, strict=True)]
    digits[-1] = m.and_(digits[-1], c((1 << DIGIT - CELL_BITS) - 1))
    # the ones' complement is a unit too small
    y = Fixed(m, digits, point, 2.0**-CELL_BITS, max(z.error + 1.0, t.error))
    raised = y.doubled(table.lift)
    result: Fixed | None = None
    for order in reversed(range(len(table.tables))):
        size = table.sizes[order]
        term = table.tables[order].entry(m, index, size)
        if result is None:
            result = term
            continue
        result = (y.to(size) if size < point else y).times_plus(result, term)
        if table.lifted[order + 1]:
            result = result.minus(raised.to(size) if size < point else raised)
    assert result is not None
    return below_one(result.with_error(table.error))


def erf(w: Work, x: Operand) -> Value:
    """1 - erfc |x| from 1/2 on, with the sign of x."""
    w = guarded(w)
    part = _part(w, x)
    far = below_one(_almost_one(w).minus(_fixed(part, 3)))
    exponent = w.m.select(part.near, part.exponent, w.m.constant(0))
    return Value(x.sign, choose(part.near, part.fraction, far), exponent, ZEROS)


def _almost_one(w: Work) -> Fixed:
    """1, a unit too small."""
    return constant(w.m, 1 - Fraction(1, 1 << DIGIT * w.point), w.point).with_error(unit(w.point))


def _fixed(part: Part, up: int) -> Fixed:
    """The part times 2**(up - 3) in fixed point, less than 1."""
    m = part.fraction.m
    exponent = m.subtract(part.exponent, m.constant(3))
    return below_one(shifted(part.fraction.doubled(up), exponent, 4.8))


def erfc(w: Work, x: Operand) -> Value:
    """A quarter of 1 - erf x for |x| < 1/2, and of 2 - erfc |x| for x <= -1/2."""
    w = guarded(w)
    m, point = w.m, w.point
    part = _part(w, x)
    base = choose(part.near, constant(m, Fraction(1, 4), point), constant(m, Fraction(1, 2), point))
    # subtracted unless x is negative and near 0
    other = base.plus_signed(_fixed(part, 1), m.negation(m.both(part.near, x.sign)), 0.52)
    tail = m.negation(m.either(part.near, x.sign))
    exponent = m.select(tail, part.exponent, m.constant(2))
    return Value(m.truth(False), choose(tail, part.fraction, other), exponent, ZEROS)


def _beyond(w: Work, x: Operand) -> list[Case]:
    m, last = w.m, end(w)
    integer_bits = last.bit_length()
    whole = x.fixed(w.point, integer_bits).digits[w.point]
    large = m.either(x.at_least(integer_bits), m.negation(m.less(whole, m.constant(last))))
    return [(m.both(large, m.negation(x.sign)), UNDERFLOW)]


FUNCTIONS = {"erf": Function(erf), "erfc": Function(erfc, _beyond)}
