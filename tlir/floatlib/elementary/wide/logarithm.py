"""Logarithms in fixed point.

x = 2**e * f with 1/2 <= f < 1. The eight bits below the highest of f choose c, a multiple of 2**-11 with y = c f in [1,
1 + 2**-7.7), or in [1 - 2**-9, 1) for the last cell, where c = 1; from the cell of sqrt(2)/2 on c is between 1 and
1.42, below it between 1.41 and 2, so that log x = (e or e - 1) log 2 - log(c or c/2) + log y. Of y the bits down to
2**-16 choose d, a multiple of 2**-19 with d y = 1 + r, 0 <= r < 2**-15.8. Both products are exact.

log x = e' log 2 + C + D + log(1 + r), which is positive if and only if x > 1. Where e' = 0 and c = 1 and y is within
2**-16 of 1, *near* 1, the logarithm is that of 1 ± r with r = |x - 1| exactly; r is shifted so that its highest bit is
at the top, and so is the result, whose relative error is that of log(1 ± r) / r. Elsewhere |log x| > 2**-16.01.

Numbers have 16 bits more than the working precision, which the smallest of these results lose. All of this holds for
other bases, with C, D, log 2 and the coefficients divided by log(base). Everything is halved, to stay below 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial

from flint import arb

from tlir.floatlib.elementary.wide.fixed import DIGIT, Fixed, choose, combination
from tlir.floatlib.elementary.wide.function import INVALID, Case, Function
from tlir.floatlib.elementary.wide.series import count_terms, polynomial
from tlir.floatlib.elementary.wide.tables import Real, Table, constant
from tlir.floatlib.elementary.wide.work import Operand, Value, Work, beside, less_signed, shift_count, signed
from tlir.floatlib.soft.machine import Predicate, Word

GUARD = 16
"""Bits that the result may lose."""
ZEROS = DIGIT + GUARD + 3
"""Zero bits that may lead it: an integer digit, these, and those of half of a number from 2**-16.01 on."""
CELLS, COARSE_BITS, FINE_BITS, INDEX_BITS = 256, 11, 19, 16
MIDDLE = 106
"""The first cell whose f is taken as it is: f >= (1 + 106/256) / 2 = 0.707."""
FIRST = (1 << INDEX_BITS) - 128
"""The index of y = 1 - 2**-9."""
NEAR_ONE = 2.0**-16
SMALL = 2.0**-15.82
"""Above r: 2**-16 (1 + 2**-7.7) and 2**-19 for the rounding of d."""


def _ceiling(numerator: int, denominator: int) -> int:
    return -(-numerator // denominator)


def _coarse() -> list[int]:
    """c in units of 2**-11: 1/f rounded up at the lower end of the cell, of f or of 2 f."""
    wholes = []
    for i in range(CELLS - 1):
        doubled = 1 if i < MIDDLE else 2
        wholes.append(_ceiling(doubled * CELLS << COARSE_BITS, CELLS + i) * (3 - doubled))
    return [*wholes, 1 << COARSE_BITS]


COARSE = tuple(_coarse())


@cache
def _fine() -> tuple[int, ...]:
    """d in units of 2**-19: 1/y rounded up at the lower end of the cell."""
    largest = max(
        COARSE[i] * (CELLS + i + 1) * (1 << INDEX_BITS) // (2 * CELLS << COARSE_BITS) for i in range(CELLS - 1)
    )
    return tuple(_ceiling(1 << FINE_BITS + INDEX_BITS, j) for j in range(FIRST, largest + 1))


FINE = _fine()


@dataclass(frozen=True, eq=False)
class Base:
    """What depends on the base b, all divided by 2 log b: log 2, log c and log d taken from 3/8 and 1/8, and 1."""

    name: str
    logarithm: Real | None

    def halved(self, x: arb) -> arb:
        return x / 2 if self.logarithm is None else x / (2 * self.logarithm())

    def log2(self) -> arb:
        return self.halved(arb.const_log2())

    def inverse(self) -> arb:
        return self.halved(arb(1))

    def coarse(self) -> list[arb]:
        normal = [c if i >= MIDDLE else c // 2 for i, c in enumerate(COARSE)]
        return [_offset(self, c, COARSE_BITS, arb(0.375)) for c in normal]

    def fine(self) -> list[arb]:
        return [_offset(self, d, FINE_BITS, arb(0.125)) for d in FINE]


def _offset(base: Base, numerator: int, bits: int, offset: arb) -> arb:
    if numerator == 1 << bits:
        return offset
    return offset - base.halved((arb(numerator) / (1 << bits)).log())


def log_of_ten() -> arb:
    return arb(10).log()


@dataclass(frozen=True, eq=False)
class Logarithm:
    """A base with its tables and the coefficients of log(1 + r) / (2 r log b)."""

    base: Base
    coarse: Table
    fine: Table

    def coefficients(self, count: int) -> list[Real | Fraction]:
        return [_coefficient(self.base, k) for k in range(count)]


@cache
def _coefficient(base: Base, k: int) -> Real | Fraction:
    if base.logarithm is None:
        return Fraction(1, 2 * (k + 1))
    return lambda: base.inverse() / (k + 1)


def _of_base(name: str, logarithm: Real | None) -> Logarithm:
    base = Base(name, logarithm)
    return Logarithm(base, Table(base.coarse), Table(base.fine))


NATURAL, BINARY, DECIMAL = (
    _of_base("e", None),
    _of_base("2", arb.const_log2),
    _of_base("10", log_of_ten),
)


@dataclass(frozen=True)
class Near:
    """Where the operand is 1 + r or, if ``negative``, 1 - r, 0 < r < 2**-16: r itself, and r shifted to be in [1/2, 1)
    with the exponent that it then has."""

    here: Predicate
    negative: Predicate
    r: Fixed
    shifted: Fixed
    exponent: Word


def logarithm(
    work: Work, kind: Logarithm, fraction: Fixed, exponent: Word, near: Near | None = None, digits: int | None = None
) -> Value:
    """log(fraction * 2**(exponent + 1)), fraction in [1/2, 1), in the digits of the fraction, exponent signed. Without
    ``near`` it must not be within 2**-16 of 0. ``digits``: those of the series, the working precision's if not given,
    which bound the relative error where near holds."""
    digits = work.point if digits is None else digits
    m, point, base = work.m, fraction.point, kind.base
    top = fraction.digits[point - 1]
    cell = m.and_(m.shift_right(top, m.constant(DIGIT - 9)), m.constant(CELLS - 1))
    upper = m.negation(m.less(cell, m.constant(MIDDLE)))
    # y * 2**11: its integer digit and the five bits below it are the index
    first = fraction.times_word(m.table(COARSE, cell), 1 << COARSE_BITS + 1, point)
    whole, part = first.digits[point], first.digits[point - 1]
    index_bits = INDEX_BITS - COARSE_BITS
    index = m.or_(m.shift_left(whole, m.constant(index_bits)), m.shift_right(part, m.constant(DIGIT - index_bits)))
    index = m.subtract(index, m.constant(FIRST))
    index = m.select(m.less(index, m.constant(len(FINE))), index, m.constant(0))
    # (1 + r) * 2**30
    second = first.times_word(m.table(FINE, index), 1 << FINE_BITS + 1, point)
    rest = Fixed(m, second.digits[: point + 1], point + 1, SMALL, second.error).to(point).below(SMALL)
    # |e'| log 2 + or - (C + D + log(1 + r))
    below_one = less_signed(m, exponent, 0)
    moved = m.add(exponent, m.word_of(upper))
    magnitude = m.select(below_one, m.subtract(m.constant(0), moved), moved)
    multiple = Fixed(m, [magnitude], 0, float(work.fmt.emax + work.fmt.precision + 2))
    whole_part = multiple.times(constant(m, base.log2, point + 1), point)
    if near is None:
        tail = rest.times(_series(kind, rest, digits, None), point)
        close = 0.0
    else:
        positive = m.negation(m.both(near.here, near.negative))
        series = _series(kind, choose(near.here, near.r, rest), digits, positive)
        tail = choose(near.here, near.shifted, rest).times(series, point)
        close = near.shifted.product_error(series, point)
        tail = tail.known(rest.product_error(series, point))
    coarse, fine = kind.coarse.entry(m, cell, point), kind.fine.entry(m, index, point)
    offset = constant(m, Fraction(1, 2), point)
    terms = [(coarse, False), (fine, False), (tail, False), (offset, True)]
    limit = whole_part.limit + 1
    total = combination([([(whole_part, False)], None), (terms, below_one)], limit)
    if near is None:
        return Value(below_one, total, m.constant(1), ZEROS)
    scale = m.select(near.here, m.add(near.exponent, m.constant(1)), m.constant(1))
    sign = m.select(near.here, near.negative, below_one)
    return beside(near.here, tail.known(close), total, sign, scale, ZEROS)


def _series(kind: Logarithm, r: Fixed, point: int, alternating: Predicate | None) -> Fixed:
    """log(1 + r) / (2 r log b) or, where not ``alternating``, that of -r: 1 ± r/2 + ..."""
    scale = float(kind.base.inverse())
    terms, rest = count_terms(r.limit, point, lambda k: scale / (k + 1))
    coefficients = kind.coefficients(terms)
    if alternating is None:
        return polynomial(r, coefficients, point, alternating=True).with_error(rest)
    return polynomial(r, coefficients, point, negative=alternating).with_error(rest)


def _log(kind: Logarithm, work: Work, x: Operand) -> Value:
    """The logarithm of a positive number."""
    fraction = x.fraction(work.digits(GUARD))
    return logarithm(work, kind, fraction, x.exponent, near_one(work, x, fraction))


def near_one(work: Work, x: Operand, fraction: Fixed) -> Near:
    """What ``logarithm`` must know of a positive number itself, whose fraction is not cut off."""
    m, point = work.m, fraction.point
    below = less_signed(m, x.exponent, 0)
    adjacent = m.equal(x.exponent, m.select(below, signed(m, -1), m.constant(0)))
    # 2 f - 1, or 1 - f
    one = constant(m, 1, point, point + 1)
    r = combination([([(fraction.doubled(), False), (one, True)], None)], 2.0)
    r = choose(below, combination([([(one, False), (fraction, True)], None)], 1.0), r)
    top = r.digits[point - 1]
    small = m.both(m.less(top, m.constant(1 << DIGIT - 16)), m.equal(r.resized(point + 1).digits[point], m.constant(0)))
    r = r.below(NEAR_ONE * 2)
    zeros = r.leading_zeros()
    shifted = r.left_by(zeros, work.fmt.precision + DIGIT, 1.0)
    return Near(m.both(adjacent, small), below, r, shifted, m.subtract(m.constant(0), zeros))


@dataclass(frozen=True)
class Scaled:
    """|x| = 4 a 2**h and 1 = 4 b 2**h, h = max(exponent + 1, 0): neither is above 1/4, one of them at least 1/8.

    For |x| >= 2**-18 a is exact (two bits and at most 17 more below the format's own); b is for |x| < 2**(30 point -
    3). Otherwise bits below a unit are cut off."""

    a: Fixed
    b: Fixed
    h: Word


def scaled(x: Operand, point: int) -> Scaled:
    """A number beside 1, in one scale."""
    m, most = x.m, DIGIT * point
    up = m.add(x.exponent, m.constant(1))
    below = less_signed(m, up, 0)
    a = x.fraction(point).halved(2)
    count = m.select(below, m.subtract(m.constant(0), up), m.constant(0))
    a = a.right_by(shift_count(m, count, most), most).known(1.0)
    h = m.select(below, m.constant(0), up)
    b = constant(m, Fraction(1, 4), point).right_by(shift_count(m, h, most), most)
    return Scaled(a, b, h)


def log_plus_one(work: Work, x: Operand) -> Value:
    """log(1 + x), x > -1: near for |x| < 2**-16, otherwise the logarithm of (a + b) 4 * 2**h, b - a for x < 0.

    Where a bit of a is cut off, |x| is near; where one of b is, x is above 1 and at most 2 zero bits lead: 4 units."""
    m, point = work.m, work.digits(GUARD)
    parts = scaled(x, point)
    total = parts.b.plus_signed(parts.a, x.sign, 0.5 - 2.0**-40)
    zeros = total.leading_zeros()
    fraction = total.left_by(zeros, work.fmt.precision + 3).known(4.0)
    exponent = m.subtract(m.add(parts.h, m.constant(1)), zeros)
    here = x.below(-16)
    r = choose(here, parts.a.doubled(2).resized(point), constant(m, 0, point)).below(NEAR_ONE)
    near = Near(here, x.sign, r, x.fraction(point), m.add(x.exponent, m.constant(1)))
    return logarithm(work, NATURAL, fraction, exponent, near)


def _below_minus_one(work: Work, x: Operand) -> list[Case]:
    return [(work.m.both(x.sign, x.at_least(0)), INVALID)]


def _below_zero(work: Work, x: Operand) -> list[Case]:
    return [(x.sign, INVALID)]


FUNCTIONS = {
    "log": Function(partial(_log, NATURAL), _below_zero, ones=(0,)),
    "log2": Function(partial(_log, BINARY), _below_zero, exact=True, ones=(0,)),
    "log_plus_one": Function(log_plus_one, _below_minus_one, ones=(1,)),
    "log10": Function(partial(_log, DECIMAL), _below_zero, exact=True, ones=(0,)),
}
