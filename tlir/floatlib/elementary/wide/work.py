"""What a kernel is given and what it returns: the format and its working precision, operands taken apart, a value."""

from __future__ import annotations

from dataclasses import dataclass

from tlir.floatlib.elementary.wide.fixed import DIGIT, Fixed, choose, of_bits
from tlir.floatlib.format import Format
from tlir.floatlib.soft.machine import Machine, Predicate, Word
from tlir.floatlib.soft.rounding import is_signaling, unpack
from tlir.floatlib.soft.uint import Uint

LIFT = 1 << 40
"""Added to signed exponents before they are compared or shifted; no exponent is as far from zero."""


def working_digits(precision: int, guard: int = 0) -> int:
    """Fraction digits of a kernel's numbers: at least 32 bits more than the format has, and ``guard``.

    Up to 53 bits of precision, where these kernels decide what others have left, they are 16 more than three times as
    many: the hardest operand of all is next to zero, where x - x**2/2 + x**3/3 lies nearly on a midpoint."""
    return -(-(max(precision + 32, 3 * precision + 16 if precision <= 53 else 0) + guard) // DIGIT)


@dataclass(frozen=True)
class Work:
    """A machine, a format, and the fraction digits of the working precision."""

    m: Machine
    fmt: Format
    point: int

    def digits(self, guard: int) -> int:
        """Fraction digits of a working precision with ``guard`` bits more: for what may lose leading bits."""
        return working_digits(self.fmt.precision, guard)


class Operand:
    """A finite number that is not zero is (-1)**sign * fraction * 2**(exponent + 1), fraction in [1/2, 1).

    ``exponent`` is a signed word (in two's complement), ``significand`` the fraction as an integer of the format's
    precision with its highest bit set (for zeros, infinities and NaN it is one too, of no meaning)."""

    def __init__(self, m: Machine, fmt: Format, word: Uint) -> None:
        parts = unpack(m, fmt, word)
        self.m, self.fmt, self.word = m, fmt, word
        self.sign, self.nan, self.inf, self.zero = parts.sign, parts.nan, parts.inf, parts.zero
        self.signaling = is_signaling(m, parts)
        significand = parts.significand.with_bit(0, parts.zero)
        shift = significand.leading_zeros()
        self.significand = significand.left_by(shift, fmt.precision - 1)
        self.exponent = m.add(m.subtract(parts.field, shift), m.constant((fmt.emin - 1) % (1 << m.bits)))

    def below(self, exponent: int) -> Predicate:
        """|x| < 2**exponent, for numbers."""
        return less_signed(self.m, self.exponent, exponent)

    def at_least(self, exponent: int) -> Predicate:
        """|x| >= 2**exponent, for numbers."""
        return self.m.negation(self.below(exponent))

    def parity(self) -> tuple[Predicate, Predicate]:
        """Whether a finite number that is not zero is an integer, and whether it is an odd one."""
        m, precision = self.m, self.fmt.precision
        fractional, large = self.below(0), self.at_least(precision)
        inside = m.negation(m.either(fractional, large))
        # the unit's bit at the top, and the fraction below it
        moved = self.significand.left_by(m.select(inside, self.exponent, m.constant(0)), precision - 1)
        whole = m.both(inside, moved.low(precision - 1).is_zero())
        return m.either(large, whole), m.both(whole, moved.bit(precision - 1))

    def fraction(self, point: int) -> Fixed:
        """The significand in [1/2, 1), cut off after ``point`` digits where it has more."""
        return of_bits(self.significand, DIGIT * point - self.fmt.precision, point, point, 1.0)

    def fixed(self, point: int, integer_bits: int) -> Fixed:
        """|x| cut off after ``point`` fraction digits, for |x| < 2**integer_bits, integer_bits >= 0; something else
        for larger numbers."""
        m, precision = self.m, self.fmt.precision
        register = DIGIT * point + integer_bits
        top = of_bits(self.significand, register - precision, 0, -(-register // DIGIT)).bits().resized(register)
        down = m.subtract(m.constant(integer_bits - 1 if integer_bits else (1 << m.bits) - 1), self.exponent)
        down = m.select(m.less(down, m.constant(register)), down, m.constant(register))
        size = -(-register // DIGIT)
        return of_bits(top.right_by(down, register), 0, point, size, 2.0**integer_bits, 1.0)


@dataclass(frozen=True)
class Value:
    """(-1)**sign * significand * 2**exponent, the exponent a signed word.

    The significand's error is that of the result: |significand - exact| <= error units. Leading zero bits of it are
    guard bits lost, at most ``zeros`` of them (all, if not given); it is not zero where the value is used. ``exact``,
    of a function that has exact results: where the value may be a number of the format, anywhere if not given. Where
    ``near`` holds, the error is ``near_error`` units instead; where ``doubtful`` does, there is no bound on it."""

    sign: Predicate
    significand: Fixed
    exponent: Word
    zeros: int | None = None
    exact: Predicate | None = None
    near: Predicate | None = None
    near_error: float = 0.0
    doubtful: Predicate | None = None


def less_signed(m: Machine, x: Word, constant: int) -> Predicate:
    """Whether a signed word is less than a constant, both within 2**39 of zero."""
    return m.less(m.add(x, m.constant(LIFT)), m.constant(LIFT + constant))


def signed(m: Machine, value: int) -> Word:
    """A constant signed word."""
    return m.constant(value % (1 << m.bits))


def shift_count(m: Machine, count: Word, most: int) -> Word:
    """A signed count that is not negative where it matters, made one of at most ``most``."""
    return m.select(m.less(count, m.constant(most)), count, m.constant(most))


def beside(near: Predicate, close: Fixed, far: Fixed, sign: Predicate, exponent: Word, zeros: int) -> Value:
    """The value of ``close`` where near holds and of ``far`` elsewhere, each with its own error."""
    significand = choose(near, close, far)
    close, far = close.to(significand.point), far.to(significand.point)
    return Value(sign, significand.known(far.error), exponent, zeros, near=near, near_error=close.error)
