"""Sine, cosine and tangent in fixed point.

|x| = (k + t) pi/512 with an integer k, |t| <= 1/2; k = 256 q + j, 0 <= j < 256. With r = |t| pi/512 < 2**-8.34 and the
sine S and the cosine C of j pi/512, from one table of the first quadrant,

    U = S cos r + C sin r,    V = C cos r - S sin r

(with - and + where t < 0) are sine and cosine of what is left of the angle in its quadrant; q says which of them, with
which sign, a function is. V is at least cos(255.5 pi/512) > 2**-8.4, and so is U but for j = 0, where it is sin r:
there the significand of r is multiplied by sin r / r, so that nothing is lost however small r is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from math import factorial

from flint import arb, ctx

from tlir.floatlib.elementary.wide.fixed import DIGIT, MASK, Fixed, all_ones, choose, unit
from tlir.floatlib.elementary.wide.function import Function
from tlir.floatlib.elementary.wide.quotient import reciprocal
from tlir.floatlib.elementary.wide.series import count_terms, polynomial
from tlir.floatlib.elementary.wide.tables import Table, constant
from tlir.floatlib.elementary.wide.work import Operand, Value, Work, signed
from tlir.floatlib.soft.machine import Predicate, Word

STEPS = 256
"""Steps of pi/512 in a quadrant."""
GUARD = 5
"""Bits more than other functions work with, because errors grow here and results have leading zeros."""
NEAR = -10
"""Below 2**NEAR, which is less than half a step, nothing is reduced."""
REST = 2.0**-8.34
"""More than pi/1024."""
ZEROS = 10
"""Leading zero bits of U/2 and V/2, at most."""


@cache
def _two_over_pi(words: int) -> tuple[int, ...]:
    """512/pi in words of 60 bits: the integer part, then ``words`` of the fraction."""
    previous, ctx.prec = ctx.prec, 60 * words + 128
    try:
        scaled = (arb(2 * STEPS) / arb.pi() * arb(2) ** (60 * words)).floor().unique_fmpz()
    finally:
        ctx.prec = previous
    if scaled is None:
        raise ArithmeticError("the precision does not decide the bits of 2/pi")
    total, mask = int(scaled), (1 << 60) - 1
    return tuple((total >> (60 * (words - i))) & mask for i in range(words + 1))


@dataclass(frozen=True)
class Angle:
    """|x| = k pi/512 ± r: k modulo 2**30, whether r is subtracted (``below``), r = fraction * 2**exponent, a signed
    word, and r in fixed point."""

    k: Word
    below: Predicate
    fraction: Fixed
    exponent: Word
    rest: Fixed
    lost: Predicate
    """Whether the fraction is too small for ``fraction`` to be near 1; then it has no meaning, ``rest`` has."""


def reduce(w: Work, x: Operand) -> Angle:
    """The angle of |x|.

    |x| = M 2**(E - D), an integer M of D bits, D a multiple of 60 not below the precision p, and E + 60 = 60 i + s with
    0 <= s < 60. M 2**s is multiplied by the digits of 512/pi from the one of weight 2**(D - 60 (i - 1)) on, which
    becomes the unit of the product: those before it contribute multiples of 2**30 to k. Of the product one digit of the
    integer and ``kept`` of the fraction are computed.

    A number of p bits with exponents of b bits is one of 2**(p + b - 1), so the fraction nearest to an integer is about
    2**-(p + b - 2) * 2**8: kept digits hold p + b - 4 more than the working precision, and the digit that the digits of
    512/pi left out and 2**s take. Were a fraction smaller still, the result would be ``lost``.
    """
    m, fmt, point = w.m, w.fmt, w.point
    c = m.constant
    digits = 2 * -(-fmt.precision // (2 * DIGIT))
    zeros = fmt.precision + fmt.exponent_bits - 4
    kept = point + 1 + -(-zeros // DIGIT)
    pairs = (kept + digits + 2) // 2
    before = 1 + digits // 2  # words of zeros, for the smallest i
    largest = max((fmt.emax + 61) // 60 - 1 - digits // 2, 0)
    values = (0,) * before + _two_over_pi(largest + pairs)
    near = x.below(NEAR)
    exponent = m.add(x.exponent, c(1))
    biased = m.select(near, c(60), m.add(exponent, c(60)))
    # an infinity's exponent is one more than the largest number's
    biased = m.select(m.less(c(fmt.emax + 61), biased), c(60), biased)
    # floor(n / 60) for n < 2**26: 60 * 71582789 = 2**32 + 44
    i = m.shift_right(m.multiply(biased, c(71582789)), c(32))
    s = m.subtract(biased, m.multiply(i, c(60)))
    moved = x.fraction(digits).resized(digits + 2).left_by(s, 59)
    factor = Fixed(m, moved.digits, 0)
    window: list[Word] = []
    for n in range(pairs + 1):
        pair = m.table(values, m.add(i, c(n)))
        window += [m.shift_right(pair, c(DIGIT)), m.and_(pair, c(MASK))]
    window = window[1 : kept + digits + 3]
    turns = Fixed(m, window[::-1], len(window) - 1, error=1.0)
    product = turns.times(factor, kept, 2.0 ** (DIGIT - 1))
    top = product.digits[-2]
    up = m.shift_right(top, c(DIGIT - 1))
    k = m.add(product.digits[-1], up)
    below = m.negation(m.equal(up, c(0)))
    # the ones' complement is a unit less than 1 - fraction
    mask = m.and_(all_ones(m, below), c(MASK))
    fraction = Fixed(m, [m.xor(d, mask) for d in product.digits[:-1]], kept, 1.0, product.error + 1.0)
    shift = fraction.leading_zeros()
    within = m.less(shift, c(zeros + 1))
    shift = m.select(within, shift, c(zeros))
    significand = fraction.left_by(shift, zeros, 1.0).to(point)
    # pi/512 = pi/4 * 2**-7
    far = below_one(significand.times(constant(m, _quarter_pi, point), point))
    exponent = m.select(near, exponent, m.subtract(signed(m, -7), shift))
    significand = choose(near, x.fraction(point), far)
    return Angle(
        m.select(near, c(0), k),
        m.both(below, m.negation(near)),
        significand,
        exponent,
        shifted(significand, exponent, REST),
        m.negation(m.either(within, near)),
    )


def _quarter_pi() -> arb:
    return arb.pi() / 4


def guarded(w: Work) -> Work:
    """The working precision with ``GUARD`` bits more; often there are as many in its last digit anyway."""
    return replace(w, point=w.digits(GUARD))


def below_one(x: Fixed) -> Fixed:
    """The same number where it is known to be below 1: without its digits of the integer."""
    return Fixed(x.m, x.digits[: x.point], x.point, 1.0, x.error)


def shifted(x: Fixed, exponent: Word, limit: float = 1.0) -> Fixed:
    """x * 2**exponent in fixed point, at most ``limit``, for an exponent (a signed word) not above 0."""
    m = x.m
    most = DIGIT * x.size
    down = m.subtract(m.constant(0), exponent)
    return x.right_by(m.select(m.less(down, m.constant(most)), down, m.constant(most)), most, limit)


def from_one(x: Fixed, coefficients: Sequence[Fraction], point: int) -> Fixed:
    """1 - c[1] x + c[2] x**2 - ..., for falling coefficients; the first one is a unit less than 1, so that what
    is left has no digit of the integer."""
    terms, rest = count_terms(x.limit, point, lambda k: float(coefficients[k]))
    first = 1 - Fraction(1, 2 ** (DIGIT * point))
    value = polynomial(x, [first, *coefficients[1:terms]], point, alternating=True)
    return below_one(value.with_error(rest + unit(point)))


def _sines() -> list[arb]:
    """Half of sin(j pi/512), j = 0 to 256, so that none needs a digit of the integer."""
    return [(arb.pi() * j / (2 * STEPS)).sin() / 2 for j in range(STEPS)] + [arb(0.5)]


SINES = Table(_sines)
SINE = [Fraction(1, factorial(2 * n + 1)) for n in range(40)]
COSINE = [Fraction(1, factorial(2 * n)) for n in range(40)]


@dataclass(frozen=True)
class Parts:
    """cos r, (sin r) / r, and half of the sine and the cosine of j pi/512; whether the quadrant is odd, its sign
    negative, j 0."""

    angle: Angle
    cosine: Fixed
    ratio: Fixed
    sine_step: Fixed
    cosine_step: Fixed
    odd: Predicate
    negative: Predicate
    start: Predicate


def _parts(w: Work, x: Operand, turn: int) -> Parts:
    """For the angle plus ``turn`` quadrants. cos r and (sin r) / r begin with a unit less than 1 and are below it."""
    m, point = w.m, w.point
    c = m.constant
    angle = reduce(w, x)
    k = m.add(angle.k, c(turn * STEPS)) if turn else angle.k
    j = m.and_(k, c(STEPS - 1))
    square = angle.rest.square(point, REST * REST)
    zero = c(0)
    return Parts(
        angle,
        from_one(square, COSINE, point),
        from_one(square, SINE, point),
        SINES.entry(m, j, point),
        SINES.entry(m, m.subtract(c(STEPS), j), point),
        m.negation(m.equal(m.and_(k, c(STEPS)), zero)),
        m.negation(m.equal(m.and_(k, c(2 * STEPS)), zero)),
        m.equal(j, zero),
    )


def _circular(w: Work, x: Operand, turn: int) -> Value:
    """The sine of |x| plus ``turn`` quadrants: half of it is U/2 in even ones, V/2 in odd ones."""
    w = guarded(w)
    m, point = w.m, w.point
    parts = _parts(w, x, turn)
    angle, odd = parts.angle, parts.odd
    step = choose(odd, parts.cosine_step, parts.sine_step)
    factor = choose(odd, parts.sine_step, parts.cosine_step)
    product = parts.ratio.times(factor, point).times(angle.fraction, point)
    second = shifted(product, angle.exponent, REST)
    negative = m.differ(odd, angle.below)
    sum_ = step.times(parts.cosine, point).plus_signed(second, negative, 0.51)
    near = m.both(parts.start, m.negation(odd))
    significand = choose(near, choose(angle.lost, tie(w), product), sum_)
    exponent = m.add(m.select(m.both(near, m.negation(angle.lost)), angle.exponent, m.constant(0)), m.constant(1))
    return Value(m.differ(parts.negative, m.both(near, angle.below)), significand, exponent, ZEROS)


def tie(w: Work) -> Fixed:
    """The number halfway between 1/2 and the next one, so that a value that is said to be near it is undecided."""
    return constant(w.m, Fraction((1 << w.fmt.precision) + 1, 1 << (w.fmt.precision + 1)), w.point)


def sine(w: Work, x: Operand) -> Value:
    value = _circular(w, x, 0)
    return Value(w.m.differ(value.sign, x.sign), value.significand, value.exponent, value.zeros)


def cosine(w: Work, x: Operand) -> Value:
    return _circular(w, x, 1)


def tan(w: Work, x: Operand) -> Value:
    """U / V in even quadrants and V / U, of the other sign, in odd ones."""
    w = guarded(w)
    m, point = w.m, w.point
    parts = _parts(w, x, 0)
    angle, odd, start = parts.angle, parts.odd, parts.start
    small = parts.ratio.times(parts.cosine_step, point).times(angle.fraction, point)
    second = parts.ratio.times(parts.sine_step, point).times(angle.rest, point, REST)
    upper = parts.sine_step.times(parts.cosine, point).plus_signed(
        shifted(small, angle.exponent, REST), angle.below, 0.51
    )
    lower = parts.cosine_step.times(parts.cosine, point).plus_signed(second, m.negation(angle.below), 0.51)
    upper = choose(start, small, upper)
    upper_zeros, lower_zeros = upper.leading_zeros(), lower.leading_zeros()
    numerator, denominator = normalised(upper, upper_zeros), normalised(lower, lower_zeros)
    exponent = m.subtract(lower_zeros, upper_zeros)
    exponent = m.add(exponent, m.select(start, angle.exponent, m.constant(0)))
    exponent = m.select(odd, m.subtract(m.constant(0), exponent), exponent)
    # a quarter of the quotient
    inverse = reciprocal(choose(odd, numerator, denominator), point)
    quotient = choose(odd, denominator, numerator).times(inverse, point, 0.51)
    sign = m.differ(m.differ(odd, m.both(start, angle.below)), x.sign)
    lost = m.both(start, angle.lost)
    exponent = m.select(lost, m.constant(0), m.add(exponent, m.constant(2)))
    return Value(sign, choose(lost, tie(w), quotient), exponent, 3)


def normalised(x: Fixed, zeros: Word) -> Fixed:
    """U/2 or V/2 shifted up by its leading zeros."""
    m = x.m
    most = m.constant(ZEROS)
    return x.left_by(m.select(m.less(zeros, most), zeros, most), ZEROS, 1.0)


FUNCTIONS = {"sine": Function(sine), "cosine": Function(cosine), "tan": Function(tan)}
