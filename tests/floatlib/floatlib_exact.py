"""An independent oracle: the values of a small format as exact rationals, and rounding by search.

Written from the descriptor and the text of IEEE 754, not from the code under test: values are listed, words are
looked up, and no significand is ever shifted.
"""

from __future__ import annotations

from bisect import bisect_left
from fractions import Fraction
from functools import cache
from typing import Any

from tlir.floatlib.format import Format
from tlir.floatlib.rounding import Flags, Rounding

TWO = Fraction(2)

SMALL_CUSTOM = [
    Format(3, 2),
    Format(2, 1),
    Format(2, 3),
    Format(3, 1),
    Format(2, 2, bias=5),
    Format(3, 2, bias=-4, infinities=False, nans="all_ones"),
    Format(4, 0, infinities=False, nans="all_ones", signed_zero=False, signed=False, subnormals=False),
    Format(3, 0, infinities=False, nans="none"),
    Format(2, 3, infinities=True, nans="negative_zero", signed_zero=False),
    Format(3, 2, infinities=True, nans="none"),
    Format(2, 2, infinities=True, nans="all_ones"),
    Format(3, 2, infinities=False, nans="none", signed_zero=False, signed=False),
    Format(2, 3, infinities=True, nans="ieee", signed_zero=False, signed=False),
    Format(2, 2, infinities=False, nans="none", signed_zero=False, subnormals=False),
]


def field_value(fmt: Format, field: int, fraction: int) -> Fraction:
    if field == 0 and fmt.subnormals:
        return Fraction(fraction, 2**fmt.fraction_bits) * TWO ** (1 - fmt.bias)
    return (1 + Fraction(fraction, 2**fmt.fraction_bits)) * TWO ** (field - fmt.bias)


@cache
def magnitudes(fmt: Format) -> tuple[list[Fraction], int]:
    """The values of all magnitudes in order, continued for one binade beyond the format, and how many are finite."""
    values = [
        field_value(fmt, field, fraction)
        for field in range(2**fmt.exponent_bits + 1)
        for fraction in range(2**fmt.fraction_bits)
    ]
    total = 2 ** (fmt.exponent_bits + fmt.fraction_bits)
    if fmt.nans == "ieee":
        finite = total - 2**fmt.fraction_bits
    else:
        finite = total - (fmt.nans == "all_ones") - fmt.infinities
    return values, finite


@cache
def value_of(fmt: Format, word: int) -> Fraction | str:
    """The rational of a word, or "inf", "-inf", "nan"; zero is a Fraction whatever its sign."""
    total = 2 ** (fmt.exponent_bits + fmt.fraction_bits)
    negative, magnitude = divmod(word, total)
    values, finite = magnitudes(fmt)
    if fmt.nans == "negative_zero" and negative and magnitude == 0:
        return "nan"
    if magnitude < finite:
        return -values[magnitude] if negative else values[magnitude]
    if fmt.infinities and magnitude == finite:
        return "-inf" if negative else "inf"
    return "nan"


def _choose(values: list[Any], x: Fraction, negative: bool, rounding: Rounding, first_even: bool = True) -> int:
    """The index in increasing non-negative ``values`` to which |x| rounds; evenness is that of the index."""
    index = bisect_left(values, x)
    if index < len(values) and values[index] == x:
        return index
    below, above = index - 1, index
    if below < 0:
        return 0
    odd_parity = 1 if first_even else 0
    match rounding:
        case Rounding.TOWARD_ZERO:
            return below
        case Rounding.UP:
            return below if negative else above
        case Rounding.DOWN:
            return above if negative else below
        case Rounding.TO_ODD:
            return below if below % 2 == odd_parity else above
    down, up = x - values[below], values[above] - x
    if down != up:
        return below if down < up else above
    if rounding is Rounding.NEAREST_AWAY:
        return above
    return below if below % 2 != odd_parity else above


@cache
def nearest(fmt: Format, sign: int, x: Fraction, rounding: Rounding, saturate: bool = False) -> tuple[int, Flags]:
    """The word and flags of (-1)**sign * x, for x >= 0, by search."""
    total = 2 ** (fmt.exponent_bits + fmt.fraction_bits)
    nan = {"ieee": total - 2 ** fmt.fraction_bits + 2 ** (fmt.fraction_bits - 1) if fmt.fraction_bits else 0,
           "all_ones": total - 1, "negative_zero": total}.get(fmt.nans)  # fmt: skip
    invalid = nan if nan is not None else total if fmt.signed_zero else 0
    if x == 0:
        if not fmt.subnormals:
            return invalid, Flags.INVALID
        return (total if sign and fmt.signed_zero else 0), Flags(0)
    if sign and not fmt.signed:
        return invalid, Flags.INVALID
    values, finite = magnitudes(fmt)
    # beyond the listed values everything overflows alike
    index = _choose(values, min(x, values[-1]), bool(sign), rounding)
    if index >= finite:
        away = rounding in (Rounding.NEAREST_EVEN, Rounding.NEAREST_AWAY) or rounding is (
            Rounding.DOWN if sign else Rounding.UP
        )
        flags = Flags.OVERFLOW | Flags.INEXACT
        if away and not saturate and fmt.infinities:
            return sign * total + finite, flags
        if away and not saturate and nan is not None:
            return nan, flags
        return sign * total + finite - 1, flags
    flags = Flags(0) if values[index] == x else Flags.INEXACT
    smallest_normal = TWO ** ((1 if fmt.subnormals else 0) - fmt.bias)
    if flags and x < smallest_normal:
        # round at the full precision in the binade below, as if the exponent had no bound
        step = smallest_normal / 2 / 2**fmt.fraction_bits
        finer = [smallest_normal / 2 + k * step for k in range(2**fmt.fraction_bits + 1)]
        # one binade down the even significands are the even indices, unless the significand is a single digit:
        # then the exponent's parity decides, which is odd just below the smallest normal word if that is even
        first_even = fmt.fraction_bits > 0 or bool(fmt.subnormals)
        if x < finer[0] or finer[_choose(finer, x, bool(sign), rounding, first_even)] < smallest_normal:
            flags |= Flags.UNDERFLOW
    if index == 0 and fmt.subnormals and not fmt.signed_zero:
        return 0, flags
    return sign * total + index, flags
