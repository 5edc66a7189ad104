"""Arb enclosures and the one way a word is made of them.

A function that is not rational is known by balls (midpoint and radius, rigorous) that shrink as the precision grows.
``round_enclosure`` lets one shrink until it holds no number at which rounding can change, so the word is the one of the
exact value. It ends unless the exact value is such a number, which is why every caller first deals with

* results that are such numbers ("exact": a number of the format or a midpoint), by exact integers, and
* results that differ from one by less than the precision can show (sin x for x = 2**-16000), by the side on which they
  lie (``round_near``).

Words enter Arb as integers times powers of two, never through a Python float. Arb's precision is a global of
python-flint; it is put back after each use.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from flint import arb, ctx

from tlir.floatlib.format import Format
from tlir.floatlib.rounding import Flags, round_exact

Result = tuple[int, Flags]

FIRST_GUARD_BITS = 32
"""Bits beyond the format's in the first enclosure: the share that needs a second one is about 2**-29."""

NEAR_BITS = 8
"""``round_near`` asks for a relative deviation of less than 2**-(precision + NEAR_BITS)."""

MAX_ARGUMENT_EXPONENT = 1 << 20
"""The largest exponent of an argument that is reduced modulo pi: a million bits of pi take about a second."""


class ElementaryError(ArithmeticError):
    """An elementary function that this library does not evaluate at the operands given."""


class ArgumentTooLargeError(ElementaryError):
    """The exponents of the operands ask for numbers of more than about 2**20 bits."""


class PrecisionLimitError(ElementaryError):
    """The enclosure could not be rounded at the highest precision tried. Where the docstring of a function proves that
    its exact cases are recognised this is an internal error; where it states a conjecture, a counterexample to it."""


class Dyadic(NamedTuple):
    """The number (-1)**sign * significand * 2**exponent, significand >= 0."""

    sign: int
    significand: int
    exponent: int

    @property
    def leading(self) -> int:
        """2**leading <= magnitude < 2**(leading + 1), for a number that is not zero."""
        return self.significand.bit_length() + self.exponent - 1

    @property
    def signed(self) -> int:
        return -self.significand if self.sign else self.significand

    def odd(self) -> Dyadic:
        """The same number with an odd significand (not for zero)."""
        shift = (self.significand & -self.significand).bit_length() - 1
        return Dyadic(self.sign, self.significand >> shift, self.exponent + shift)

    def magnitude(self) -> Dyadic:
        return self._replace(sign=0)

    def negative(self) -> Dyadic:
        return self._replace(sign=1 - self.sign)

    def to_arb(self) -> arb:
        """The ball of radius 0, whatever the precision."""
        return arb((self.signed, self.exponent))

    def is_integer(self) -> bool:
        return self.significand == 0 or self.odd().exponent >= 0

    def is_odd_integer(self) -> bool:
        return self.significand != 0 and self.odd().exponent == 0

    def compare_integer(self, integer: int) -> int:
        """-1, 0 or 1 as the number is less than, equal to or greater than the integer; a long one is never built."""
        if self.significand == 0:
            return (integer < 0) - (integer > 0)
        if self.leading > integer.bit_length():
            return -1 if self.sign else 1
        if self.exponent >= 0:
            mine, other = self.signed << self.exponent, integer
        elif self.leading < -1:
            mine, other = (-1 if self.sign else 1), 2 * integer  # a number between -1/2 and 1/2
        else:
            mine, other = self.signed, integer << -self.exponent
        return (mine > other) - (mine < other)


ONE = Dyadic(0, 1, 0)
TWO = Dyadic(0, 1, 1)
HALF = Dyadic(0, 1, -1)


def add_integer(x: Dyadic, integer: int) -> Dyadic:
    """x + integer, exact; for numbers whose exponents are not far from 0."""
    exponent = min(x.exponent, 0)
    total = (x.signed << (x.exponent - exponent)) + (integer << -exponent)
    return Dyadic(int(total < 0), abs(total), exponent)


def round_enclosure(
    fmt: Format,
    enclose: Callable[[], arb],
    guard: int = 0,
    limit: int | None = None,
    is_exact: Callable[[Dyadic], bool] | None = None,
) -> Result:
    """The word and flags of the one number that every ball of ``enclose()`` contains.

    ``enclose`` is called under growing Arb precision: the format's plus ``guard`` (bits that its argument reduction
    loses) plus 32, then about twice the format's, and so on. ``is_exact(candidate)`` decides whether the number is
    this one, which has two bits more than the format; without it the number must not be such a one.
    PrecisionLimitError beyond ``limit`` extra bits (32 times those of the format plus 64 unless given).
    """
    step = fmt.precision + 64
    limit = 32 * step if limit is None else limit
    extra = FIRST_GUARD_BITS
    previous = ctx.prec
    try:
        while True:
            ctx.prec = fmt.precision + guard + extra
            result = round_ball(fmt, enclose(), is_exact)
            if result is not None:
                return result
            if extra >= limit:
                raise PrecisionLimitError(
                    f"no single word of {fmt.name} after {ctx.prec} bits; the exact result may lie on a midpoint"
                )
            extra = max(step, 2 * extra)
    finally:
        ctx.prec = previous


def round_ball(fmt: Format, ball: arb, is_exact: Callable[[Dyadic], bool] | None = None) -> Result | None:
    """The word and flags that all numbers of the ball have, or of the candidate in it that ``is_exact`` confirms.

    Rounding, and the tininess that raises UNDERFLOW, change only at multiples of a quarter of the last place. A ball
    without one lies strictly between two neighbours, k and k + 1 quarters, so every number in it is k + theta."""
    if not ball.is_finite():
        return None
    low, low_exponent = _mantissa(ball.lower())
    high, high_exponent = _mantissa(ball.upper())
    if low > 0:
        sign = 0
    elif high < 0:
        sign, low, low_exponent, high, high_exponent = 1, -high, high_exponent, -low, low_exponent
    else:
        return None
    binade = max(low.bit_length() + low_exponent - 1, fmt.emin)
    quarter = binade - fmt.fraction_bits - 2
    below = _ceiling(low, low_exponent - quarter) - 1
    above = _floor(high, high_exponent - quarter)
    if below == above:
        return round_exact(fmt, sign, below, quarter, sticky=True)
    if is_exact is not None and above - below == 1 and is_exact(Dyadic(sign, above, quarter)):
        return round_exact(fmt, sign, above, quarter)
    return None


def round_near(fmt: Format, sign: int, significand: int, exponent: int, toward_zero: bool) -> Result:
    """The word and flags of (-1)**sign * significand * 2**exponent * (1 ± t) for some
    0 < t < 2**-(precision + 8), minus if ``toward_zero``; the significand has at most ``precision`` bits."""
    shift = max(0, fmt.precision + 4 - significand.bit_length())
    return round_exact(fmt, sign, (significand << shift) - toward_zero, exponent - shift, sticky=True)


def round_near_quotient(
    fmt: Format, sign: int, numerator: int, denominator: int, exponent: int, toward_zero: bool
) -> Result:
    """The same for (-1)**sign * numerator / denominator * 2**exponent * (1 ± t), 0 < t < 2**-(2 * precision + 8); both
    have at most ``precision`` bits."""
    shift = fmt.precision + 4 + denominator.bit_length() - numerator.bit_length()
    quotient, remainder = divmod(numerator << max(shift, 0), denominator << max(-shift, 0))
    # A remainder is at least one denominator-th away from both neighbours of the quotient, farther than t reaches.
    return round_exact(fmt, sign, quotient - (toward_zero and remainder == 0), exponent - shift, sticky=True)


def huge(fmt: Format, sign: int) -> Result:
    """A finite number far beyond the largest one of any format."""
    return round_exact(fmt, sign, 1, 1 << 50)


def tiny(fmt: Format, sign: int) -> Result:
    """A number far below the smallest one of any format, and not zero."""
    return round_exact(fmt, sign, 1, -(1 << 50), sticky=True)


def _mantissa(number: arb) -> tuple[int, int]:
    significand, exponent = number.man_exp()
    return int(significand), int(exponent)


def _floor(significand: int, shift: int) -> int:
    return significand << shift if shift >= 0 else significand >> -shift


def _ceiling(significand: int, shift: int) -> int:
    return significand << shift if shift >= 0 else -(-significand >> -shift)
