"""x**y in fixed point: 2**(y log2 |x|)."""

from __future__ import annotations

from tlir.floatlib.elementary.scalar import elementary
from tlir.floatlib.elementary.wide.exponential import integer_bits, reduce_binary, scaled_power
from tlir.floatlib.elementary.wide.fixed import DIGIT
from tlir.floatlib.elementary.wide.function import INVALID, Case, Function, Outcome
from tlir.floatlib.elementary.wide.logarithm import BINARY, GUARD, ZEROS, logarithm, near_one
from tlir.floatlib.elementary.wide.work import Operand, Value, Work, less_signed, shift_count
from tlir.floatlib.format import Format
from tlir.floatlib.soft.uint import constant


def power(work: Work, x: Operand, y: Operand) -> Value:
    """x**y for x other than 0 and ±1, y other than 0, and an integer where x is negative.

    log2 |x| is multiplied by a number that may bring it up to the exponent of a result, so it has as many bits more as
    that. Its significand, from 1/2 on, times that of y is p in [1/4, 1), and y log2 |x| = p 2**t. For t above
    integer_bits + 2 the result is beyond all numbers or below them, which it is for t = integer_bits + 2 too."""
    m, fmt = work.m, work.fmt
    bits = integer_bits(work) + 2
    point = work.digits(GUARD + bits)
    fraction = x.fraction(point)
    log = logarithm(work, BINARY, fraction, x.exponent, near_one(work, x, fraction), point)
    size = log.significand.size
    zeros = shift_count(m, log.significand.leading_zeros(), ZEROS)
    head = log.significand.left_by(zeros, ZEROS)
    # near 1 no more than an integer digit and the 2 bits of a number from 1/4 on
    head = head.known(max(head.error, log.near_error * 2.0 ** (DIGIT + 3)))
    head = head.scaled(size - point).to(point).below(1.0).resized(point)
    product = head.times(y.fraction(point), work.point + 1, 1 - 2.0**-60)
    t = m.add(m.add(log.exponent, m.constant(DIGIT * (size - point) + 1)), m.subtract(y.exponent, zeros))
    down = m.subtract(m.constant(bits), t)
    down = m.select(less_signed(m, t, bits), down, m.constant(0))
    register = DIGIT * (work.point + 1) + bits
    down = m.select(m.less(down, m.constant(register)), down, m.constant(register))
    exponent = product.doubled(bits).right_by(down, register).to(work.point).resized(work.point + 1)
    negative = m.differ(log.sign, y.sign)
    k, r = reduce_binary(work, exponent, negative)
    significand, scale = scaled_power(work, k, r)
    sign = m.both(x.sign, y.parity()[1])
    # nearer to 1 than its neighbours is no number of the format but 1
    perhaps = m.negation(less_signed(m, t, -fmt.precision - 3))
    return Value(sign, significand, scale, zeros=2, exact=perhaps)


def _cases(work: Work, x: Operand, y: Operand) -> list[Case]:
    """What ``scalar.power`` decides by the kinds of its operands; what holds beside a NaN comes last."""
    m, fmt = work.m, work.fmt
    integer, odd = y.parity()
    number = m.negation(y.nan)
    finite = m.negation(m.either(y.nan, y.inf))
    is_one = x.word.low(fmt.magnitude_bits).equals(constant(m, fmt.encode(0, 1, 0)))
    negative_base = m.both(x.sign, m.negation(m.either(x.nan, m.either(x.zero, x.inf))))
    ordinary = m.both(finite, m.negation(y.zero))
    cases: list[Case] = [(m.both(m.both(negative_base, ordinary), m.negation(integer)), INVALID)]
    turned = m.both(odd, x.sign)
    one, minus_one = fmt.encode(0, 1, 0), fmt.encode(0, 1, 0) | fmt.sign_mask
    unit = m.both(m.both(is_one, ordinary), integer)
    cases += [(m.both(unit, m.negation(turned)), (one, 0)), (m.both(unit, turned), (minus_one, 0))]
    assert fmt.inf is not None
    for here, word in ((x.zero, fmt.zero(0)), (x.inf, fmt.inf)):
        for below in (False, True):
            side = m.both(m.both(here, ordinary), y.sign if below else m.negation(y.sign))
            cases.append((m.both(side, m.negation(turned)), _of(fmt, word, -2 if below else 2)))
            cases.append((m.both(side, turned), _of(fmt, word | fmt.sign_mask, -3 if below else 3)))
    large = m.both(x.at_least(0), m.negation(m.either(x.zero, is_one)))
    large = m.both(m.either(large, x.inf), m.negation(x.nan))
    small = m.both(m.either(x.below(0), x.zero), m.negation(m.either(x.nan, x.inf)))
    grows = m.either(m.both(large, m.negation(y.sign)), m.both(small, y.sign))
    shrinks = m.either(m.both(large, y.sign), m.both(small, m.negation(y.sign)))
    infinite = m.both(y.inf, number)
    positive_one = m.both(is_one, m.negation(x.sign))
    cases += [(m.both(infinite, grows), (fmt.inf, 0)), (m.both(infinite, shrinks), (fmt.zero(0), 0))]
    cases.append((m.both(infinite, is_one), (one, 0)))
    cases.append((m.either(y.zero, positive_one), (one, 0)))
    return cases


def _of(fmt: Format, base: int, exponent: int) -> Outcome:
    word, raised = elementary("power", fmt, base, _integer(fmt, exponent))
    return word, int(raised)


def _integer(fmt: Format, value: int) -> int:
    sign, size = int(value < 0), abs(value)
    return fmt.encode(sign, size, 0)


FUNCTIONS = {"power": Function(power, _cases, exact=True, operands=2)}
