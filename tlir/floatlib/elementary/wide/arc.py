"""Inverse trigonometric functions in fixed point.

All are the angle of a point (d, n). For 0 < n <= d, j = 256 n/d rounded and c = j/256,

    atan(n/d) = atan c ± atan t,    t = |n - c d| / (d + c n) < 2**-8.99,

with atan c from a table. For j = 0 the quotient of the significands of n and d is multiplied by (atan t) / t, so that
nothing is lost however small the angle is. All others are pi/2 or pi, less or more such an angle.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from flint import arb

from tlir.floatlib.elementary.scalar import elementary
from tlir.floatlib.elementary.wide.circular import below_one, from_one, guarded, shifted
from tlir.floatlib.elementary.wide.fixed import DIGIT, Fixed, choose, unit
from tlir.floatlib.elementary.wide.function import INVALID, Case, Function
from tlir.floatlib.elementary.wide.quotient import reciprocal, square_root
from tlir.floatlib.elementary.wide.tables import Table, constant
from tlir.floatlib.elementary.wide.work import LIFT, Operand, Value, Work
from tlir.floatlib.soft.machine import Machine, Predicate, Word

STEPS = 256
REST = 2.0**-8.99
"""More than t: |n/d - c| is at most 1/512 and the error of an estimate, 2**-40, and d + c n at least d."""
FAR = 10
"""n < 2**-FAR d is less than half a step of d."""
ZEROS = 9
"""Leading zero bits of a result's significand, at most: it is at least (1/512 - 2**-40) (1 - 2**-18)."""


@dataclass(frozen=True)
class Length:
    """fraction * 2**exponent: a fraction in [1/2, 1) and a signed word."""

    fraction: Fixed
    exponent: Word


def _magnitude(w: Work, x: Operand) -> Length:
    """|x|, exactly: the working precision has more bits than the format."""
    return Length(x.fraction(w.point), w.m.add(x.exponent, w.m.constant(1)))


def _chosen(p: Predicate, x: Length, y: Length) -> Length:
    return Length(choose(p, x.fraction, y.fraction), x.fraction.m.select(p, x.exponent, y.exponent))


def _angles() -> list[arb]:
    return [(arb(j) / STEPS).atan() for j in range(STEPS + 1)]


ANGLES = Table(_angles)
TERMS = [Fraction(1, 2 * n + 1) for n in range(40)]


@dataclass(frozen=True)
class Acute:
    """An angle of at most pi/4: fraction * 2**exponent, and the same in fixed point."""

    fraction: Fixed
    exponent: Word
    fixed: Fixed


def _octant(w: Work, n: Length, d: Length) -> Acute:
    """atan(n/d) for 0 < n <= d.

    j is estimated in binary64 from significands within 2**-52 of themselves: 256 n/d is within 1/2 + 2**-40 of it. n is
    shifted to d's exponent with a digit more than it has, so that it stays exact if it was a number of the format, as
    256 n - j d and 256 d + j n then are. For j = 0 the quotient is that of the significands.
    """
    m, point = w.m, w.point
    c = m.constant
    down = m.subtract(d.exponent, n.exponent)
    far = m.less(c(FAR), down)
    count = m.select(far, c(FAR), down)
    scale = m.real_from_bits(m.shift_left(m.subtract(c(1023 + 8), count), c(52)))
    ratio = m.real_multiply(m.real_divide(n.fraction.real(), d.fraction.real()), scale)
    j = m.select(far, c(0), m.truncate(m.real_add(ratio, m.real_constant(0.5))))
    start = m.equal(j, c(0))
    wide = n.fraction.to(point + 1)
    moved = wide.right_by(count, FAR)
    if wide.error == 0.0:
        moved = Fixed(m, moved.digits, moved.point, 1.0, 0.0)
    steps = Fixed(m, [j], 0, float(STEPS))
    top, negative = moved.doubled(8).difference(d.fraction.times(steps, d.fraction.point), 1.0)
    bottom = d.fraction.to(point + 1).doubled(8).plus(moved.times(steps, moved.point), 2.0 * STEPS)
    # both by 256, and by 512 where the denominator is 256 or more
    large = m.negation(m.less(bottom.digits[-1], c(STEPS)))
    denominator = below_one(choose(large, bottom.halved(9), bottom.halved(8)))
    numerator = choose(large, top.halved(9), top.halved(8))
    numerator = below_one(choose(start, wide, numerator))
    # a quarter of the quotient, which is below 2 for j = 0
    quotient = numerator.times(reciprocal(denominator, point), point, 0.51)
    quotient = choose(start, quotient, quotient.doubled(2).below(REST))
    exponent = m.select(start, m.subtract(c(2), down), c(0))
    rest = shifted(quotient, exponent, REST)
    fraction = below_one(from_one(rest.square(point, REST * REST), TERMS, point).times(quotient, point))
    sum_ = ANGLES.entry(m, j, point).plus_signed(shifted(fraction, exponent, REST), negative, 0.8)
    return Acute(choose(start, fraction, sum_), exponent, sum_)


def _less(m: Machine, x: Length, y: Length) -> Predicate:
    lifted = [m.add(length.exponent, m.constant(LIFT)) for length in (x, y)]
    within = m.both(m.equal(*lifted), x.fraction.less(y.fraction))
    return m.either(m.less(*lifted), within)


def _pi() -> arb:
    return arb.pi() / 4


def _half_pi() -> arb:
    return arb.pi() / 8


def _angle(w: Work, n: Length, d: Length, left: Predicate | None = None) -> Value:
    """The angle of the point (d, n), n and d positive, or of (-d, n) where ``left``; a quarter of it where it is
    subtracted from pi/2 or pi or added to it, so that it is below 1."""
    m, point = w.m, w.point
    steep = _less(m, d, n)
    acute = _octant(w, _chosen(steep, d, n), _chosen(steep, n, d))
    quarter = acute.fixed.halved(2)
    half_pi = constant(m, _half_pi, point)
    if left is None:
        other, plain = half_pi.minus(quarter), m.negation(steep)
    else:
        base = choose(steep, half_pi, constant(m, _pi, point))
        other = base.plus_signed(quarter, m.negation(m.both(steep, left)), 0.8)
        plain = m.negation(m.either(steep, left))
    return Value(
        m.truth(False),
        choose(plain, acute.fraction, other),
        m.select(plain, acute.exponent, m.constant(2)),
        ZEROS,
    )


def _with_sign(value: Value, sign: Predicate) -> Value:
    return Value(sign, value.significand, value.exponent, value.zeros)


def _one(w: Work) -> Length:
    return Length(constant(w.m, Fraction(1, 2), w.point), w.m.constant(1))


def atan(w: Work, x: Operand) -> Value:
    """The angle of (1, |x|)."""
    w = guarded(w)
    return _with_sign(_angle(w, _magnitude(w, x), _one(w)), x.sign)


def atan2(w: Work, y: Operand, x: Operand) -> Value:
    """The angle of (x, |y|)."""
    w = guarded(w)
    return _with_sign(_angle(w, _magnitude(w, y), _magnitude(w, x), x.sign), y.sign)


def _legs(w: Work, x: Operand) -> tuple[Length, Length]:
    """|x| and sqrt(1 - x*x), for |x| < 1; of 1/2 elsewhere.

    For |x| >= 1/2, 1 - |x| and 1 + |x| are exact. Smaller ones are cut off, and their last bit is set so that 1 - |x|
    is below 1: an error of a unit of numbers above 1/2. 1 - |x| is shifted up by its leading zeros, and its product
    with 1 + |x| down to [1/4, 1) by an odd or an even number of bits, as the root wants it.
    """
    m, point = w.m, w.point
    c = m.constant
    inside = x.below(0)
    fraction = choose(inside, x.fraction(point), constant(m, Fraction(1, 2), point))
    exponent = m.select(inside, m.add(x.exponent, c(1)), c(0))
    magnitude = Length(fraction, exponent)
    fixed = shifted(fraction, exponent)
    lowest = m.or_(fixed.digits[0], m.word_of(m.both(inside, x.below(-1))))
    fixed = Fixed(m, [lowest, *fixed.digits[1:]], point, 1.0, 1.0)
    one = constant(m, 1, point)
    most = w.fmt.precision
    rest = below_one(one.minus(fixed))
    zeros = rest.leading_zeros()
    zeros = m.select(m.less(zeros, c(most)), zeros, c(most))
    odd = m.equal(m.and_(zeros, c(1)), c(1))
    # exact, or by one bit at most
    moved = Fixed(m, rest.left_by(zeros, most).digits, point, 1.0, 2.0)
    square = moved.times(one.plus(fixed), point)
    large = m.negation(m.equal(square.digits[-1], c(0)))
    # an even number of bits in all: 1, 0 or 2
    radicand = choose(odd, square.halved(1), choose(large, square.halved(2), square))
    added = m.select(odd, c(1), m.select(large, c(2), c(0)))
    even = m.subtract(zeros, added)
    leg = square_root(below_one(radicand), point).doubled(2)
    # a root near 1 may have been computed as 1
    over = m.negation(m.equal(leg.resized(point + 1).digits[point], c(0)))
    largest = constant(m, 1 - Fraction(1, 1 << DIGIT * point), point)
    leg = choose(over, largest, below_one(leg)).with_error(unit(point))
    half = m.shift_right(m.add(even, c(LIFT)), c(1))
    return magnitude, Length(below_one(leg), m.subtract(c(LIFT >> 1), half))


def asin(w: Work, x: Operand) -> Value:
    """The angle of (sqrt(1 - x*x), |x|)."""
    w = guarded(w)
    magnitude, leg = _legs(w, x)
    return _with_sign(_angle(w, magnitude, leg), x.sign)


def acos(w: Work, x: Operand) -> Value:
    """The angle of (x, sqrt(1 - x*x))."""
    w = guarded(w)
    magnitude, leg = _legs(w, x)
    return _angle(w, leg, magnitude, x.sign)


def _outside(w: Work, x: Operand) -> list[Case]:
    return [(x.at_least(0), INVALID)]


def _quadrants(w: Work, y: Operand, x: Operand) -> list[Case]:
    """Zeros and infinities, by what the specification has for numbers of their kind."""
    m, fmt = w.m, w.fmt
    assert fmt.inf is not None
    one = fmt.encode(0, 1, 0)
    kinds = {fmt.zero(0): lambda o: o.zero, fmt.inf: lambda o: o.inf, one: lambda o: m.negation(_special(m, o))}
    found: dict[tuple[int, int], Predicate] = {}
    for (first, is_first), (second, is_second) in product(kinds.items(), repeat=2):
        if first == one and second == one:
            continue
        here = m.both(is_first(y), is_second(x))
        for signs in product((0, 1), repeat=2):
            words = [word | (fmt.sign_mask if sign else 0) for word, sign in zip((first, second), signs, strict=True)]
            word, raised = elementary("atan2", fmt, *words)
            sides = [o.sign if sign else m.negation(o.sign) for o, sign in zip((y, x), signs, strict=True)]
            case = m.both(here, m.both(*sides))
            key = word, int(raised)
            found[key] = m.either(found[key], case) if key in found else case
    return [(p, result) for result, p in found.items()]


def _special(m: Machine, x: Operand) -> Predicate:
    return m.either(x.nan, m.either(x.zero, x.inf))


FUNCTIONS = {
    "asin": Function(asin, _outside, ones=(0, 1)),
    "acos": Function(acos, _outside, ones=(0, 1)),
    "atan": Function(atan),
    "atan2": Function(atan2, _quadrants, operands=2),
}
