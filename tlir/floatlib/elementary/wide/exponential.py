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

from tlir.floatlib.elementary.wide.fixed import DIGIT, MASK, Fixed
from tlir.floatlib.elementary.wide.function import OVERFLOW, UNDERFLOW, Case, Function
from tlir.floatlib.elementary.wide.series import count_terms, polynomial
from tlir.floatlib.elementary.wide.tables import Table, constant
from tlir.floatlib.elementary.wide.work import LIFT, Operand, Value, Work
from tlir.floatlib.soft.machine import Machine, Predicate, Word

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
    k, r = reduce(work, x.fixed(work.point, integer_bits(work)).resized(work.point + 1), x.sign)
    significand, exponent = scaled_power(work, k, r)
    return Value(work.m.truth(False), significand, exponent, zeros=2)


def _beyond(work: Work, x: Operand) -> list[Case]:
    """Large operands of e**x."""
    m = work.m
    large = x.at_least(integer_bits(work))
    return [(m.both(large, x.sign), UNDERFLOW), (m.both(large, m.negation(x.sign)), OVERFLOW)]


FUNCTIONS = {"exponential": Function(exponential, _beyond)}
