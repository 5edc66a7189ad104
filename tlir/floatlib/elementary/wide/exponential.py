"""Exponentials in fixed point.

x = K log(2)/2**16 + r with 0 <= r < 2**-16.52, and e**x = 2**(K >> 16) * A[K >> 8 & 255] * B[K & 255] * e**r with
A[i] = 2**(i/256), B[i] = 2**(i/65536).

``reduce``: K is the integer part of a binary64 estimate of |x| 2**16 / log 2, made too small on purpose for x > 0 and
too large for x < 0, where one is added. The estimate has a relative error of at most 3 * 2**-53 from its roundings,
within the 2**-50 that its factor is changed by, and |x| itself, cut off after two digits, of 2**-30 at most, which is
2**-13.4 of a step and less than the 2**-12 added for x < 0. So r is not negative, and at most a step and 2**-11 of one:
2**-16.528. As |x| < 2**20, K has at most 37 bits.
"""

from __future__ import annotations

from fractions import Fraction
from math import factorial, log

from flint import arb

from tlir.floatlib.elementary.wide.fixed import DIGIT, MASK, Fixed, choose
from tlir.floatlib.elementary.wide.function import OVERFLOW, UNDERFLOW, Case, Function
from tlir.floatlib.elementary.wide.quotient import reciprocal
from tlir.floatlib.elementary.wide.series import count_terms, polynomial
from tlir.floatlib.elementary.wide.tables import Table, constant
from tlir.floatlib.elementary.wide.work import LIFT, Operand, Value, Work, beside, shift_count
from tlir.floatlib.rounding import Flags
from tlir.floatlib.soft.machine import Machine, Predicate, Word

INEXACT = int(Flags.INEXACT)

STEP_BITS = 16
STEPS = 1 << STEP_BITS
SMALL = 2.0**-16.52
"""Above every reduced argument."""


def _power_of_two(numerator: int, denominator: int) -> arb:
    return (arb.const_log2() * numerator / denominator).exp() if numerator else arb(1)


QUARTER_POWERS = Table(lambda: [_power_of_two(i, 256) / 4 for i in range(256)])
"""2**(i/256) / 4."""
FINE_POWERS = Table(lambda: [(arb.const_log2() * i / STEPS).expm1() if i else arb(0) for i in range(256)])
"""2**(i/65536) - 1."""


def step() -> arb:
    return arb.const_log2() / STEPS


def integer_bits(work: Work) -> int:
    """Operands of 2**integer_bits and more have exponentials beyond the format's numbers, or below all of them."""
    return (work.fmt.emax + work.fmt.precision + 4).bit_length()


def nearest_step(m: Machine, x: Fixed, negative: Predicate, per_unit: float) -> Word:
    """K of a fixed-point |x| with one integer digit, K = |x| ``per_unit`` - r, or r - |x| ``per_unit`` where
    ``negative``, so that 0 <= r < 1 + 2**-11."""
    factor = m.real_select(
        negative, m.real_constant(per_unit * (1 + 2.0**-50)), m.real_constant(per_unit * (1 - 2.0**-50))
    )
    more = m.real_select(negative, m.real_constant(2.0**-12), m.real_constant(0.0))
    estimate = m.truncate(m.real_add(m.real_multiply(x.real(), factor), more))
    return m.add(estimate, m.word_of(negative))


def reduce(work: Work, x: Fixed, negative: Predicate) -> tuple[Word, Fixed]:
    """(K, r) of x = (-1)**negative |x|, |x| < 2**20 with one integer digit: x = K step + r; K is signed."""
    m, point = work.m, x.point
    k = nearest_step(m, x, negative, STEPS / log(2))
    multiple = Fixed(m, [m.and_(k, m.constant(MASK)), m.shift_right(k, m.constant(DIGIT))], 0, 2.0**37)
    product = multiple.times(constant(m, step, point + 2), point)
    rest = x.resized(point).minus_signed(product.resized(point), negative, SMALL).below(SMALL)
    return m.select(negative, m.subtract(m.constant(0), k), k), rest


def exponential_series(r: Fixed, point: int) -> Fixed:
    """e**r - 1 for 0 <= r < 2**-16: r + r (r (1/2 + r/6 + ...))."""
    terms, rest = count_terms(r.limit, point, lambda k: 1 / factorial(k + 2))
    inner = polynomial(r, [Fraction(1, factorial(k + 2)) for k in range(terms)], point).with_error(rest)
    return r.times_plus(r.times(inner, point), r)


def scaled_power(work: Work, k: Word, r: Fixed) -> tuple[Fixed, Word]:
    """(s, e) with 2**(K/65536) e**r = s * 2**e, s in [0.249, 0.501)."""
    m, point = work.m, r.point
    high = QUARTER_POWERS.entry(m, m.and_(m.shift_right(k, m.constant(8)), m.constant(255)), point)
    low = FINE_POWERS.entry(m, m.and_(k, m.constant(255)), point)
    base = high.times_plus(low, high, 0.5)
    result = base.times_plus(exponential_series(r, point), base, 0.501)
    exponent = m.shift_right(m.add(k, m.constant(LIFT)), m.constant(STEP_BITS))
    return result, m.add(exponent, m.constant((2 - (LIFT >> STEP_BITS)) % (1 << m.bits)))


def exponential(work: Work, x: Operand) -> Value:
    """e**x, for |x| < 2**integer_bits."""
    k, r = reduce(work, magnitude(work, x, work.point), x.sign)
    significand, exponent = scaled_power(work, k, r)
    return Value(work.m.truth(False), significand, exponent, zeros=2)


def magnitude(work: Work, x: Operand, point: int) -> Fixed:
    """|x| with one integer digit, for |x| < 2**integer_bits."""
    return x.fixed(point, integer_bits(work)).resized(point + 1)


def exp2(work: Work, x: Operand) -> Value:
    """2**x, for |x| < 2**integer_bits: K is read off the digits of |x|, and r the rest times log 2."""
    k, r = reduce_binary(work, magnitude(work, x, work.point), x.sign)
    significand, exponent = scaled_power(work, k, r)
    return Value(work.m.truth(False), significand, exponent, zeros=2, exact=x.parity()[0])


def reduce_binary(work: Work, x: Fixed, negative: Predicate) -> tuple[Word, Fixed]:
    """(K, r) of (-1)**negative |x| = K / 2**16 + r / log 2, |x| < 2**20 with one integer digit; 0 <= r <= 2**-16.52."""
    m, point = work.m, x.point
    low = DIGIT - STEP_BITS
    whole, part = x.digits[point], x.digits[point - 1]
    k = m.or_(m.shift_left(whole, m.constant(STEP_BITS)), m.shift_right(part, m.constant(low)))
    fraction = [*x.digits[: point - 1], m.and_(part, m.constant((1 << low) - 1))]
    rest = Fixed(m, fraction, point, 2.0**-STEP_BITS, x.error)
    full = constant(m, Fraction(1, STEPS), point)
    rest = choose(negative, full.minus(rest), rest)
    k = m.add(k, m.word_of(negative))
    r = rest.times(constant(m, arb.const_log2, point), point).below(SMALL)
    return m.select(negative, m.subtract(m.constant(0), k), k), r


LOSS = 18
"""Bits that e**x - 1 may lose: it is not near, so |x| >= 2**-17."""
NEAR_ZERO = -17
"""|x| < 2**-17 is near zero, where e**x - 1 = x (1 + x/2 + ...)."""


def exponential_minus_one(work: Work, x: Operand) -> Value:
    """e**x - 1, for |x| < 2**integer_bits.

    Near zero x keeps its significand f = |x| / 2**(exponent + 1): f (1 ± x/2 + ...) / 2. Elsewhere, with e**x = v 2**q,
    v in [0.249, 0.501), the half is (v - 1/2 / 2**(q - 1)) 2**(q - 1) for x > 0, where q >= 2, and 1/2 - v 2**(q - 1)
    for x < 0, where q <= 1."""
    m, point = work.m, work.digits(LOSS)
    size = magnitude(work, x, point)
    k, r = reduce(work, size, x.sign)
    v, exponent = scaled_power(work, k, r)
    up = m.subtract(exponent, m.constant(1))
    positive = m.negation(x.sign)
    half = constant(m, Fraction(1, 2), point)
    count = shift_count(m, m.select(positive, up, m.subtract(m.constant(0), up)), DIGIT * point)
    moved = choose(positive, half, v).right_by(count, DIGIT * point)
    far = choose(positive, v, half).minus(moved, 0.5)
    near = x.below(NEAR_ZERO)
    small = choose(near, size.resized(point), constant(m, 0, point)).to(work.point).below(2.0**NEAR_ZERO)
    terms, rest = count_terms(small.limit, work.point, lambda k: 0.5 / factorial(k + 1))
    coefficients = [Fraction(1, 2 * factorial(k + 1)) for k in range(terms)]
    series = polynomial(small, coefficients, work.point, negative=x.sign).with_error(rest)
    close = x.fraction(point).times(series, point, 0.51)
    scale = m.select(near, m.add(x.exponent, m.constant(1)), m.select(positive, up, m.constant(0)))
    return beside(near, close, far, x.sign, m.add(scale, m.constant(1)), LOSS + 2)


def logistic(work: Work, x: Operand) -> Value:
    """1 / (1 + t) for x > 0 and t / (1 + t) for x < 0, t = e**-|x| = v 2**q: with d = (1 + t) / 2 and R = 1 / (4 d) it
    is 2 R, or 2 R v 2**q. For |x| < 2**integer_bits."""
    m, point = work.m, work.point
    k, r = reduce(work, magnitude(work, x, point), m.truth(True))
    v, exponent = scaled_power(work, k, r)
    # q is at most 1, where v is at most 1/2
    count = shift_count(m, m.subtract(m.constant(2), exponent), DIGIT * point)
    half = constant(m, Fraction(1, 2), point)
    divisor = v.doubled().right_by(count, DIGIT * point).plus(half, 1.01)
    inverse = reciprocal(divisor, point)
    significand = choose(x.sign, inverse.times(v, point), inverse.halved())
    scale = m.select(x.sign, exponent, m.constant(1))
    return Value(m.truth(False), significand, m.add(scale, m.constant(1)), zeros=4)


def _beyond(work: Work, x: Operand) -> list[Case]:
    """Large operands of e**x."""
    m = work.m
    large = x.at_least(integer_bits(work))
    return [(m.both(large, x.sign), UNDERFLOW), (m.both(large, m.negation(x.sign)), OVERFLOW)]


def _below_minus_one(work: Work, x: Operand) -> list[Case]:
    m, fmt = work.m, work.fmt
    large = x.at_least(integer_bits(work))
    minus_one = (fmt.encode(0, 1, 0) | fmt.sign_mask, INEXACT)
    return [(m.both(large, x.sign), minus_one), (m.both(large, m.negation(x.sign)), OVERFLOW)]


def _logistic_cases(work: Work, x: Operand) -> list[Case]:
    m = work.m
    large = x.at_least(integer_bits(work))
    one = (work.fmt.encode(0, 1, 0), INEXACT)
    return [(m.both(large, x.sign), UNDERFLOW), (m.both(large, m.negation(x.sign)), one)]


FUNCTIONS = {
    "exponential": Function(exponential, _beyond),
    "exponential_minus_one": Function(exponential_minus_one, _below_minus_one),
    "exp2": Function(exp2, _beyond, exact=True),
    "logistic": Function(logistic, _logistic_cases),
}
