"""Exponentials, logarithms and hyperbolic functions of one finite number that is not zero, rounded once.

Why the enclosures end (``arb.round_enclosure`` needs that no result is dyadic but those treated apart):

* Lindemann: e**a is transcendental for algebraic a other than 0, and log a for algebraic a > 0 other than 1. So no
  value of exp, expm1, sinh, cosh, tanh, logistic (rational functions of e**x that are not constant) is algebraic for
  x other than 0, and none of log, log1p, asinh, acosh, atanh (logarithms of algebraic numbers) unless it is 0.
* Gelfond and Schneider: 2**x is irrational for rational x that is not an integer.
* log2 and log10 of a rational number are rational only for the powers that are named at the functions.

Results next to a number of the format (1 + x for tiny x, 1 - 2e**-2x for large x) are rounded by the side they lie on.
Exponents beyond 2**45 are decided before anything is evaluated.
"""

from __future__ import annotations

from collections.abc import Callable

from flint import arb

from tlir.floatlib.arb import (
    NEAR_BITS,
    ONE,
    Dyadic,
    Result,
    add_integer,
    huge,
    round_enclosure,
    round_near,
    tiny,
)
from tlir.floatlib.format import Format
from tlir.floatlib.rounding import Flags, infinity_word, round_exact, zero_result

LARGEST_EXPONENT = 45
"""e**(2**45) is beyond the largest number of every format, and e**-(2**45) below half of the smallest."""


def is_small(fmt: Format, x: Dyadic, order: int) -> bool:
    """|x|**order < 2**-(precision + NEAR_BITS + 1): a relative deviation of 2|x|**order at most is out of sight."""
    return -(x.leading + 1) * order > fmt.precision + NEAR_BITS


def is_saturated(fmt: Format, x: Dyadic) -> bool:
    """e**-|x| < 2**-(precision + NEAR_BITS + 2), because e > 2."""
    return x.leading >= (fmt.precision + NEAR_BITS + 2).bit_length()


def near_operand(fmt: Format, x: Dyadic, toward_zero: bool) -> Result:
    return round_near(fmt, x.sign, x.significand, x.exponent, toward_zero)


def invalid(fmt: Format) -> Result:
    return fmt.invalid_word, Flags.INVALID


def pole(fmt: Format, sign: int) -> Result:
    return infinity_word(fmt, sign), Flags.DIVIDE_BY_ZERO


def exponential(fmt: Format, x: Dyadic) -> Result:
    """e**x, never dyadic (Lindemann). 1 + x + ... lies on the side of 1 that the sign of x says."""
    if is_small(fmt, x, 1):
        return round_near(fmt, 0, 1, 0, toward_zero=bool(x.sign))
    if x.leading > LARGEST_EXPONENT:
        return tiny(fmt, 0) if x.sign else huge(fmt, 0)
    ball = x.to_arb()
    return round_enclosure(fmt, ball.exp)


def exponential_minus_one(fmt: Format, x: Dyadic) -> Result:
    """e**x - 1, never dyadic (Lindemann). x + x**2/2 + ... > x for small x; e**x - 1 > -1."""
    if is_small(fmt, x, 1):
        return near_operand(fmt, x, toward_zero=bool(x.sign))
    if x.sign and is_saturated(fmt, x):
        return round_near(fmt, 1, 1, 0, toward_zero=True)
    if x.leading > LARGEST_EXPONENT:
        return huge(fmt, 0)
    ball = x.to_arb()
    return round_enclosure(fmt, ball.expm1)


def exp2(fmt: Format, x: Dyadic) -> Result:
    """2**x: exact for integers, otherwise irrational (Gelfond and Schneider).

    2**x = 2**n * e**(f log 2) for n = floor x and f = x - n."""
    if x.leading > LARGEST_EXPONENT:
        return tiny(fmt, 0) if x.sign else huge(fmt, 0)
    if x.is_integer():
        odd = x.odd()
        return round_exact(fmt, 0, 1, odd.signed << odd.exponent)
    if is_small(fmt, x, 1):
        return round_near(fmt, 0, 1, 0, toward_zero=bool(x.sign))
    integer = x.signed >> -x.exponent
    fraction = add_integer(x, -integer).to_arb()
    scale = arb((1, integer))
    return round_enclosure(fmt, lambda: (fraction * arb.const_log2()).exp() * scale)


def log(fmt: Format, x: Dyadic) -> Result:
    """log x, 0 for 1, otherwise not dyadic (Lindemann). INVALID below zero."""
    if x.sign:
        return invalid(fmt)
    if x.odd() == ONE:
        return zero_result(fmt, 0)
    return round_enclosure(fmt, log_enclosure(x))


def log_plus_one(fmt: Format, x: Dyadic) -> Result:
    """log(1 + x), not dyadic for x other than 0 (Lindemann); x - x**2/2 + ... < x. DIVIDE_BY_ZERO at -1, INVALID
    below."""
    side = x.compare_integer(-1)
    if side <= 0:
        return pole(fmt, 1) if side == 0 else invalid(fmt)
    if is_small(fmt, x, 1):
        return near_operand(fmt, x, toward_zero=not x.sign)
    ball = x.to_arb()
    return round_enclosure(fmt, ball.log1p)


def log2(fmt: Format, x: Dyadic) -> Result:
    """log x / log 2. It is rational, a / b, only if x**b = 2**a, so for the powers of two, where it is an integer."""
    if x.sign:
        return invalid(fmt)
    odd = x.odd()
    if odd.significand == 1:
        return round_exact(fmt, int(odd.exponent < 0), abs(odd.exponent), 0)
    enclose = log_enclosure(x)
    return round_enclosure(fmt, lambda: enclose() / arb.const_log2())


def log10(fmt: Format, x: Dyadic) -> Result:
    """log x / log 10. It is rational, a / b, only if x**b = 10**a; the powers of 5 and of 2 in x = m * 2**e, m odd,
    then say m = 5**j and e = j, where j = a / b is an integer >= 0."""
    if x.sign:
        return invalid(fmt)
    odd = x.odd()
    if 0 <= odd.exponent <= odd.significand.bit_length() and odd.significand == 5**odd.exponent:
        return round_exact(fmt, 0, odd.exponent, 0)
    enclose = log_enclosure(x)
    return round_enclosure(fmt, lambda: enclose() / arb.const_log10())


def logistic(fmt: Format, x: Dyadic) -> Result:
    """1 / (1 + e**-x), never dyadic (Lindemann). 1/2 + x/4 - ... for small x, 1 - e**-x + ... for large x."""
    if is_small(fmt, x, 1):
        return round_near(fmt, 0, 1, -1, toward_zero=bool(x.sign))
    ball = x.to_arb()
    if not x.sign:
        if is_saturated(fmt, x):
            return round_near(fmt, 0, 1, 0, toward_zero=True)
        return round_enclosure(fmt, lambda: 1 / (1 + (-ball).exp()))
    if x.leading > LARGEST_EXPONENT:
        return tiny(fmt, 0)

    def enclose() -> arb:
        power = ball.exp()
        return power / (1 + power)

    return round_enclosure(fmt, enclose)


def tanh(fmt: Format, x: Dyadic) -> Result:
    """Never dyadic (Lindemann). x - x**3/3 + ..., and ±(1 - 2e**-2|x| + ...)."""
    if is_small(fmt, x, 2):
        return near_operand(fmt, x, toward_zero=True)
    if is_saturated(fmt, x):
        return round_near(fmt, x.sign, 1, 0, toward_zero=True)
    ball = x.to_arb()
    return round_enclosure(fmt, ball.tanh)


def sinh(fmt: Format, x: Dyadic) -> Result:
    """Never dyadic (Lindemann). x + x**3/6 + ..."""
    if is_small(fmt, x, 2):
        return near_operand(fmt, x, toward_zero=False)
    if x.leading > LARGEST_EXPONENT:
        return huge(fmt, x.sign)
    ball = x.to_arb()
    return round_enclosure(fmt, ball.sinh)


def cosh(fmt: Format, x: Dyadic) -> Result:
    """Never dyadic (Lindemann). 1 + x**2/2 + ..."""
    if is_small(fmt, x, 2):
        return round_near(fmt, 0, 1, 0, toward_zero=False)
    if x.leading > LARGEST_EXPONENT:
        return huge(fmt, 0)
    ball = x.to_arb()
    return round_enclosure(fmt, ball.cosh)


def asinh(fmt: Format, x: Dyadic) -> Result:
    """log(x + sqrt(x**2 + 1)), not dyadic for x other than 0 (Lindemann). x - x**3/6 + ..."""
    if is_small(fmt, x, 2):
        return near_operand(fmt, x, toward_zero=True)
    ball = x.to_arb()
    return round_enclosure(fmt, ball.asinh)


def acosh(fmt: Format, x: Dyadic) -> Result:
    """log(x + sqrt(x**2 - 1)), 0 for 1, otherwise not dyadic (Lindemann). INVALID below 1."""
    side = x.compare_integer(1)
    if side <= 0:
        return zero_result(fmt, 0) if side == 0 else invalid(fmt)
    ball = x.to_arb()
    return round_enclosure(fmt, ball.acosh)


def atanh(fmt: Format, x: Dyadic) -> Result:
    """log((1 + x) / (1 - x)) / 2, not dyadic for x other than 0 (Lindemann). x + x**3/3 + ... DIVIDE_BY_ZERO at ±1,
    INVALID beyond."""
    side = x.magnitude().compare_integer(1)
    if side >= 0:
        return pole(fmt, x.sign) if side == 0 else invalid(fmt)
    if is_small(fmt, x, 2):
        return near_operand(fmt, x, toward_zero=False)
    ball = x.to_arb()
    return round_enclosure(fmt, ball.atanh)


def log_enclosure(x: Dyadic) -> Callable[[], arb]:
    """log x for x > 0, through log1p of the exact difference where x is near 1 and the logarithm near 0."""
    if -1 <= x.leading <= 0:
        difference = add_integer(x, -1).to_arb()
        return lambda: difference.log1p()
    ball = x.to_arb()
    return lambda: ball.log()
