"""Elementary functions on words, correctly rounded: the special values, and the dispatch to the functions.

Special values are those of IEEE 754-2019 clause 9.2.1 and C23 Annex F. Common to all functions: a NaN gives the
canonical NaN (INVALID if signaling); an operand outside the domain gives ``Format.invalid_word`` with INVALID; a pole
gives ``rounding.infinity_word`` with DIVIDE_BY_ZERO; an exact infinite result in a format without infinities is
``infinity_word`` too. Formats without -0, without zero or without a sign give what ``round_exact`` gives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tlir.floatlib.arb import Dyadic, Result
from tlir.floatlib.arithmetic import nan_result
from tlir.floatlib.elementary import exponential as exponential_family
from tlir.floatlib.elementary import power as power_family
from tlir.floatlib.elementary import trigonometric
from tlir.floatlib.elementary.exponential import invalid, pole
from tlir.floatlib.elementary.special import functions as special_family
from tlir.floatlib.elementary.special.words import SPECIAL
from tlir.floatlib.elementary.trigonometric import multiple_of_pi
from tlir.floatlib.exclusive import exclusive
from tlir.floatlib.format import Format
from tlir.floatlib.rounding import NO_FLAGS, infinity_word, round_exact, zero_result

Special = Callable[[Format, int], Result]
"""The result at a zero or an infinity, of the sign of the operand."""


class Unary(NamedTuple):
    """A function of one operand: its results at ±0 and at ±infinity, and elsewhere."""

    at_zero: Special
    at_infinity: Special
    elsewhere: Callable[[Format, Dyadic], Result]


@exclusive
def elementary(name: str, fmt: Format, *words: int) -> Result:
    """The word and flags of a function of the words, rounded once; a key of ``UNARY``, ``BINARY`` or ``SPECIAL``.

    KeyError for another name. ElementaryError where the function is not evaluated (see ``tlir.floatlib.arb``)."""
    if name in SPECIAL:
        return SPECIAL[name](fmt, *words)
    if name in BINARY:
        left, right = words
        return BINARY[name](fmt, left, right)
    (word,) = words
    function = UNARY[name]
    if fmt.is_nan(word):
        return nan_result(fmt, word)
    if fmt.is_inf(word):
        return function.at_infinity(fmt, fmt.sign(word))
    if fmt.is_zero(word):
        return function.at_zero(fmt, fmt.sign(word))
    return function.elsewhere(fmt, Dyadic(*fmt.decode(word)))


def atan2(fmt: Format, y: int, x: int) -> Result:
    """The angle of the point (x, y). Zeros and infinities have signs that decide between the quadrants."""
    if fmt.is_nan(y) or fmt.is_nan(x):
        return nan_result(fmt, y, x)
    sign = fmt.sign(y)
    if fmt.is_inf(y):
        if fmt.is_inf(x):
            return multiple_of_pi(fmt, sign, 3 if fmt.sign(x) else 1, 4)
        return multiple_of_pi(fmt, sign, 1, 2)
    if fmt.is_inf(x) or fmt.is_zero(y):
        return multiple_of_pi(fmt, sign, 1, 1) if fmt.sign(x) else zero_result(fmt, sign)
    if fmt.is_zero(x):
        return multiple_of_pi(fmt, sign, 1, 2)
    return trigonometric.atan2(fmt, Dyadic(*fmt.decode(y)), Dyadic(*fmt.decode(x)))


def hypot(fmt: Format, x: int, y: int) -> Result:
    """sqrt(x*x + y*y); infinite if an operand is, even where the other is NaN (INVALID if that is signaling)."""
    if fmt.is_inf(x) or fmt.is_inf(y):
        return infinity_word(fmt, 0), nan_result(fmt, x, y)[1]
    if fmt.is_nan(x) or fmt.is_nan(y):
        return nan_result(fmt, x, y)
    if fmt.is_zero(x) or fmt.is_zero(y):
        return fmt.magnitude(y if fmt.is_zero(x) else x), NO_FLAGS
    return power_family.hypot(fmt, Dyadic(*fmt.decode(x)), Dyadic(*fmt.decode(y)))


def power(fmt: Format, x: int, y: int) -> Result:
    """x**y: IEEE 754's pow. pow(x, ±0) and pow(1, y) are 1 even for NaN (INVALID if that is signaling)."""
    if fmt.is_zero(y) or _is_one(fmt, x):
        return _one(fmt, 0)[0], nan_result(fmt, x, y)[1]
    if fmt.is_nan(x) or fmt.is_nan(y):
        return nan_result(fmt, x, y)
    if fmt.is_inf(y):
        return _power_infinite(fmt, x, y)
    exponent = Dyadic(*fmt.decode(y))
    if not (fmt.is_zero(x) or fmt.is_inf(x)):
        return power_family.power(fmt, Dyadic(*fmt.decode(x)), exponent)
    sign = int(fmt.sign(x) and exponent.is_odd_integer())
    if fmt.is_zero(x):
        return pole(fmt, sign) if exponent.sign else zero_result(fmt, sign)
    return zero_result(fmt, sign) if exponent.sign else (infinity_word(fmt, sign), NO_FLAGS)


def _power_infinite(fmt: Format, x: int, y: int) -> Result:
    """x**±infinity, for x other than 1."""
    if fmt.is_zero(x) or fmt.is_inf(x):
        above = fmt.is_inf(x)
    else:
        side = Dyadic(*fmt.decode(x)).magnitude().compare_integer(1)
        if side == 0:
            return _one(fmt, 0)
        above = side > 0
    grows = above != bool(fmt.sign(y))
    return (infinity_word(fmt, 0), NO_FLAGS) if grows else zero_result(fmt, 0)


def _is_one(fmt: Format, word: int) -> bool:
    return fmt.is_finite(word) and not fmt.is_zero(word) and Dyadic(*fmt.decode(word)).odd() == (0, 1, 0)


def _kept_zero(fmt: Format, sign: int) -> Result:
    return zero_result(fmt, sign)


def _one(fmt: Format, sign: int) -> Result:
    return round_exact(fmt, 0, 1, 0)


def _infinity(fmt: Format, sign: int) -> Result:
    return infinity_word(fmt, 0), NO_FLAGS


def _kept_infinity(fmt: Format, sign: int) -> Result:
    return infinity_word(fmt, sign), NO_FLAGS


def _positive_infinity(fmt: Format, sign: int) -> Result:
    """+infinity at +infinity, outside the domain at -infinity."""
    return invalid(fmt) if sign else (infinity_word(fmt, 0), NO_FLAGS)


def _growth(fmt: Format, sign: int) -> Result:
    """0 at -infinity and +infinity at +infinity."""
    return zero_result(fmt, 0) if sign else (infinity_word(fmt, 0), NO_FLAGS)


def _signed_one(fmt: Format, sign: int) -> Result:
    return round_exact(fmt, sign, 1, 0)


def _outside(fmt: Format, sign: int) -> Result:
    return invalid(fmt)


def _quarter_turn(fmt: Format, sign: int) -> Result:
    return multiple_of_pi(fmt, sign, 1, 2)


def _pole(fmt: Format, sign: int) -> Result:
    return pole(fmt, sign)


def _negative_pole(fmt: Format, sign: int) -> Result:
    return pole(fmt, 1)


UNARY: dict[str, Unary] = {
    "rsqrt": Unary(_pole, lambda f, s: invalid(f) if s else zero_result(f, 0), power_family.rsqrt),
    "cbrt": Unary(_kept_zero, _kept_infinity, power_family.cbrt),
    "exponential": Unary(_one, _growth, exponential_family.exponential),
    "exponential_minus_one": Unary(
        _kept_zero,
        lambda f, s: round_exact(f, 1, 1, 0) if s else (infinity_word(f, 0), NO_FLAGS),
        exponential_family.exponential_minus_one,
    ),
    "exp2": Unary(_one, _growth, exponential_family.exp2),
    "log": Unary(_negative_pole, _positive_infinity, exponential_family.log),
    "log_plus_one": Unary(_kept_zero, _positive_infinity, exponential_family.log_plus_one),
    "log2": Unary(_negative_pole, _positive_infinity, exponential_family.log2),
    "log10": Unary(_negative_pole, _positive_infinity, exponential_family.log10),
    "logistic": Unary(
        lambda f, s: round_exact(f, 0, 1, -1),
        lambda f, s: zero_result(f, 0) if s else round_exact(f, 0, 1, 0),
        exponential_family.logistic,
    ),
    "tanh": Unary(_kept_zero, _signed_one, exponential_family.tanh),
    "sinh": Unary(_kept_zero, _kept_infinity, exponential_family.sinh),
    "cosh": Unary(_one, _infinity, exponential_family.cosh),
    "asinh": Unary(_kept_zero, _kept_infinity, exponential_family.asinh),
    "acosh": Unary(_outside, _positive_infinity, exponential_family.acosh),
    "atanh": Unary(_kept_zero, _outside, exponential_family.atanh),
    "sine": Unary(_kept_zero, _outside, trigonometric.sine),
    "cosine": Unary(_one, _outside, trigonometric.cosine),
    "tan": Unary(_kept_zero, _outside, trigonometric.tan),
    "asin": Unary(_kept_zero, _outside, trigonometric.asin),
    "acos": Unary(lambda f, s: multiple_of_pi(f, 0, 1, 2), _outside, trigonometric.acos),
    "atan": Unary(_kept_zero, _quarter_turn, trigonometric.atan),
    "erf": Unary(_kept_zero, _signed_one, special_family.erf),
    "erfc": Unary(_one, lambda f, s: round_exact(f, 0, 1, 1) if s else zero_result(f, 0), special_family.erfc),
    "erf_inv": Unary(_kept_zero, _outside, special_family.erf_inv),
    "lgamma": Unary(lambda f, s: pole(f, 0), _infinity, special_family.lgamma),
    "digamma": Unary(lambda f, s: pole(f, 1 - s), _positive_infinity, special_family.digamma),
}

BINARY: dict[str, Callable[[Format, int, int], Result]] = {"atan2": atan2, "hypot": hypot, "power": power}
