"""The one rounding step that every operation ends with.

An operation computes its exact result as a sign, an integer significand and a power of two (with a *sticky* bit for
digits that never end), and ``round_exact`` makes the word and the flags of it. Choices that IEEE 754 leaves open, and
those of the formats that are not IEEE's, are made here and nowhere else:

* Tininess is detected after rounding: UNDERFLOW is raised when the result is inexact and, rounded to the format's
  precision without a bound on the exponent, is smaller than 2**emin.
* Even means an even word. That is the even significand, except in formats without fraction bits, where neighbours
  differ only in the exponent (IEEE 754 would take the larger one there; ml_dtypes takes the even word).
* Overflow gives infinity; in formats with NaN and no infinity the NaN; in formats with neither, or when asked to
  saturate, the largest finite number of that sign. The directed modes give the largest finite number where IEEE does,
  and so does rounding to odd.
* A format without -0 gives +0 for it.
* A number less than zero has no word in an unsigned format, nor has zero in one without zero: the result is
  ``Format.invalid_word`` with INVALID. Numbers above zero that are smaller than the smallest one of a format without
  zero become that smallest one in every rounding mode.
"""

from __future__ import annotations

from enum import Enum, IntFlag
from fractions import Fraction

from tlir.floatlib.format import Format


class Rounding(Enum):
    """Rounding-direction attributes of IEEE 754-2019, and to odd (for results that are to be rounded again)."""

    NEAREST_EVEN = "nearest_even"
    NEAREST_AWAY = "nearest_away"
    TOWARD_ZERO = "toward_zero"
    UP = "up"
    DOWN = "down"
    TO_ODD = "to_odd"


class Flags(IntFlag):
    """Exceptions of IEEE 754, with the bit values that RISC-V gives them; they fit a uint8."""

    INEXACT = 1
    UNDERFLOW = 2
    OVERFLOW = 4
    DIVIDE_BY_ZERO = 8
    INVALID = 16


NO_FLAGS = Flags(0)
_INEXACT = Flags.INEXACT
_UNDERFLOW_INEXACT = Flags.UNDERFLOW | Flags.INEXACT
_OVERFLOW_INEXACT = Flags.OVERFLOW | Flags.INEXACT


def round_exact(
    fmt: Format,
    sign: int,
    significand: int,
    exponent: int,
    sticky: bool = False,
    rounding: Rounding = Rounding.NEAREST_EVEN,
    saturate: bool = False,
) -> tuple[int, Flags]:
    """The word and flags of (-1)**sign * (significand + theta) * 2**exponent, rounded once.

    ``theta`` is 0, or with ``sticky`` some unknown number strictly between 0 and 1; then the significand must reach
    at least one bit below the last place of the result (ValueError otherwise). ``sign`` matters for zero too. The cost
    grows with the bits of the significand, not with the exponent.
    """
    if significand == 0 and not sticky:
        return zero_result(fmt, sign)
    if sign and not fmt.signed:
        return fmt.invalid_word, Flags.INVALID
    leading = significand.bit_length() + exponent - 1  # 2**leading <= value, if significand > 0
    tiny = leading < fmt.emin and _is_tiny(fmt, sign, significand, exponent, sticky, rounding, leading)
    if leading < fmt.emin and not fmt.subnormals:
        return (fmt.sign_mask if sign else 0), _UNDERFLOW_INEXACT if tiny else _INEXACT
    magnitude, inexact = _round_in_binade(fmt, sign, significand, exponent, sticky, rounding, max(leading, fmt.emin))
    if magnitude > fmt.max_finite_magnitude:
        return overflow_result(fmt, sign, rounding, saturate)
    flags = NO_FLAGS if not inexact else _UNDERFLOW_INEXACT if tiny else _INEXACT
    if magnitude == 0 and fmt.subnormals:
        return fmt.zero(sign), flags
    return (fmt.sign_mask if sign else 0) | magnitude, flags


def round_fraction(
    fmt: Format,
    value: Fraction | int,
    rounding: Rounding = Rounding.NEAREST_EVEN,
    saturate: bool = False,
    zero_sign: int = 0,
) -> tuple[int, Flags]:
    """The word and flags of an exact rational, rounded once; ``zero_sign`` is the sign that a zero gets."""
    value = Fraction(value)
    return round_quotient(
        fmt,
        1 if value < 0 else 0 if value > 0 else zero_sign,
        abs(value.numerator),
        value.denominator,
        0,
        rounding,
        saturate,
    )


def round_quotient(
    fmt: Format,
    sign: int,
    numerator: int,
    denominator: int,
    exponent: int,
    rounding: Rounding = Rounding.NEAREST_EVEN,
    saturate: bool = False,
) -> tuple[int, Flags]:
    """The word and flags of (-1)**sign * numerator / denominator * 2**exponent; numerator >= 0, denominator > 0."""
    # two bits more than the precision, whichever way the leading bits compare
    shift = fmt.precision + 2 - (numerator.bit_length() - denominator.bit_length())
    if shift >= 0:
        quotient, remainder = divmod(numerator << shift, denominator)
    else:
        quotient, remainder = divmod(numerator, denominator << -shift)
    return round_exact(fmt, sign, quotient, exponent - shift, remainder != 0, rounding, saturate)


def zero_result(fmt: Format, sign: int) -> tuple[int, Flags]:
    """An exact zero: +0 where -0 does not exist, an invalid operation where zero does not."""
    if not fmt.subnormals:
        return fmt.invalid_word, Flags.INVALID
    return fmt.zero(sign), NO_FLAGS


def infinity_word(fmt: Format, sign: int, saturate: bool = False) -> int:
    """The word that stands for an infinite result: infinity, else NaN, else (or to saturate) the largest number."""
    if sign and not fmt.signed:
        return fmt.invalid_word
    signed = fmt.sign_mask if sign else 0
    if saturate or (fmt.inf is None and fmt.nan is None):
        return signed | fmt.max_finite_magnitude
    if fmt.inf is not None:
        return signed | fmt.inf
    return fmt.invalid_word


def power_of_two(fmt: Format, exponent: int) -> int:
    """The least magnitude of at least 2**exponent; one past the largest number's if all numbers are smaller."""
    if exponent > fmt.emax:
        return fmt.max_finite_magnitude + 1
    if exponent >= fmt.emin:
        return (exponent + fmt.bias) << fmt.fraction_bits
    place = exponent - (fmt.emin - fmt.fraction_bits)
    return 1 << max(place, 0) if fmt.subnormals else 0


def overflow_result(fmt: Format, sign: int, rounding: Rounding, saturate: bool = False) -> tuple[int, Flags]:
    """A finite result beyond the largest number of the format."""
    if rounding in (Rounding.NEAREST_EVEN, Rounding.NEAREST_AWAY):
        away = True
    elif rounding is Rounding.UP:
        away = not sign
    else:
        away = rounding is Rounding.DOWN and bool(sign)
    return infinity_word(fmt, sign, saturate or not away), _OVERFLOW_INEXACT


def _round_in_binade(
    fmt: Format, sign: int, significand: int, exponent: int, sticky: bool, rounding: Rounding, binade: int
) -> tuple[int, bool]:
    """The magnitude that represents the value at the last place of 2**binade, and whether that lost anything.

    Counting magnitudes is what carries a significand that rounds up to the next power of two into the exponent. In a
    binade below the format's the magnitude is negative; only its being below ``fmt.min_normal`` means something."""
    shift = binade - fmt.fraction_bits - exponent
    # the magnitude of a significand k in this binade is base + k
    base = ((binade - fmt.emin) << fmt.fraction_bits) - (0 if fmt.subnormals else 1 << fmt.fraction_bits)
    if shift <= 0:
        if sticky:
            raise ValueError("a sticky significand must reach below the last place of the result")
        return base + (significand << -shift), False
    if shift > significand.bit_length() + 1:
        kept, rest, half = 0, 1, 2  # below half a unit in the last place
    else:
        kept, half = significand >> shift, 1 << (shift - 1)
        rest = significand - (kept << shift)
    if not rest and not sticky:
        return base + kept, False
    if rounding is Rounding.TO_ODD:
        return (base + kept) | 1, True
    if rounding is Rounding.NEAREST_EVEN:
        up = rest > half or (rest == half and (sticky or (base + kept) & 1 == 1))
    elif rounding is Rounding.NEAREST_AWAY:
        up = rest >= half
    elif rounding is Rounding.UP:
        up = not sign
    else:
        up = rounding is Rounding.DOWN and bool(sign)
    return base + kept + up, True


def _is_tiny(
    fmt: Format, sign: int, significand: int, exponent: int, sticky: bool, rounding: Rounding, leading: int
) -> bool:
    """Whether a value below 2**emin stays below it when rounded to the precision with an unbounded exponent."""
    if leading < fmt.emin - 1 or significand == 0:
        return True
    if leading - fmt.fraction_bits - exponent <= 0:
        return True  # fits the precision, so it stays where it is
    return _round_in_binade(fmt, sign, significand, exponent, sticky, rounding, leading)[0] < fmt.min_normal
