"""An oracle for formats: values as fractions, and rounding by Python's own rounding of fractions.

It takes from a format its descriptor alone (field widths, bias, conventions) and shares no code with the package.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

Number = Fraction | str
"""A finite value, or "inf", "-inf", "nan", "-0"."""


def masks(fmt: Any) -> tuple[int, int]:
    """(the sign bit, the bits below it)."""
    below = (1 << (fmt.exponent_bits + fmt.fraction_bits)) - 1
    return (below + 1 if fmt.signed else 0), below


def top(fmt: Any) -> int:
    """The magnitude of the largest finite number."""
    _, below = masks(fmt)
    if fmt.nans == "ieee":
        return (((1 << fmt.exponent_bits) - 1) << fmt.fraction_bits) - 1
    return below - (fmt.nans == "all_ones") - bool(fmt.infinities)


def canonical_nan(fmt: Any) -> int:
    sign, below = masks(fmt)
    if fmt.nans == "ieee":
        return (((1 << fmt.exponent_bits) - 1) << fmt.fraction_bits) | (1 << (fmt.fraction_bits - 1))
    if fmt.nans == "all_ones":
        return below
    return sign if fmt.nans == "negative_zero" or fmt.signed_zero else 0


def decode(fmt: Any, word: int) -> Number:
    sign_mask, below = masks(fmt)
    magnitude, negative = word & below, bool(word & sign_mask)
    if fmt.nans == "negative_zero" and word == sign_mask:
        return "nan"
    if magnitude > top(fmt):
        infinite = fmt.infinities and magnitude == top(fmt) + 1
        return ("-inf" if negative else "inf") if infinite else "nan"
    field, fraction = magnitude >> fmt.fraction_bits, magnitude & ((1 << fmt.fraction_bits) - 1)
    if field == 0 and fmt.subnormals:
        significand, exponent = fraction, 1 - fmt.bias - fmt.fraction_bits
    else:
        significand, exponent = fraction + (1 << fmt.fraction_bits), field - fmt.bias - fmt.fraction_bits
    if significand == 0 and negative:
        return "-0"
    return Fraction(-significand if negative else significand) * Fraction(2) ** exponent


def encode(fmt: Any, number: Number, zero_sign: int = 0) -> int:
    """The word of the number rounded to nearest even; a zero gets the sign given, unless it is "-0"."""
    sign_mask, _ = masks(fmt)
    if number == "nan":
        return canonical_nan(fmt)
    if number == "-0":
        number, zero_sign = Fraction(0), 1
    if isinstance(number, str):
        return infinite(fmt, number == "-inf")
    if number == 0:
        if not fmt.subnormals:
            return canonical_nan(fmt)
        return sign_mask if zero_sign and fmt.signed_zero else 0
    negative = number < 0
    if negative and not fmt.signed:
        return canonical_nan(fmt)
    size = abs(number)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** exponent > size:
        exponent -= 1
    lowest = (1 if fmt.subnormals else 0) - fmt.bias
    if not fmt.subnormals and exponent < lowest:
        return sign_mask if negative else 0
    exponent = max(exponent, lowest)
    units = size / Fraction(2) ** (exponent - fmt.fraction_bits)
    # the magnitude whose units are the implicit bit alone, at this exponent
    base = ((exponent - lowest) << fmt.fraction_bits) - (0 if fmt.subnormals else 1 << fmt.fraction_bits)
    if fmt.fraction_bits:
        magnitude = base + round(units)
    else:
        magnitude = round(base + units)  # without a fraction, even means an even word
    if magnitude > top(fmt):
        return infinite(fmt, negative)
    if magnitude == 0:
        return sign_mask if negative and fmt.signed_zero else 0
    return (sign_mask if negative else 0) | magnitude


def infinite(fmt: Any, negative: bool) -> int:
    """What stands for an infinite result: infinity, else NaN, else the largest number."""
    sign_mask, _ = masks(fmt)
    if negative and not fmt.signed:
        return canonical_nan(fmt)
    sign = sign_mask if negative else 0
    if fmt.infinities:
        return sign | (top(fmt) + 1)
    return canonical_nan(fmt) if fmt.nans != "none" else sign | top(fmt)


def is_negative(fmt: Any, word: int) -> bool:
    return bool(word & masks(fmt)[0])


def finite(number: Number) -> Fraction:
    """The value of a number that is not infinite or NaN."""
    if number == "-0":
        return Fraction(0)
    assert isinstance(number, Fraction)
    return number


def add(fmt: Any, a: int, b: int) -> int:
    """The word of a + b."""
    x, y = decode(fmt, a), decode(fmt, b)
    if "nan" in (x, y) or {x, y} == {"inf", "-inf"}:
        return canonical_nan(fmt)
    for number in (x, y):
        if number in ("inf", "-inf"):
            return encode(fmt, number)
    both_negative = is_negative(fmt, a) and is_negative(fmt, b)
    return encode(fmt, finite(x) + finite(y), int(both_negative))


def multiply(fmt: Any, a: int, b: int) -> int:
    """The word of a * b."""
    x, y = decode(fmt, a), decode(fmt, b)
    negative = is_negative(fmt, a) != is_negative(fmt, b)
    if "nan" in (x, y):
        return canonical_nan(fmt)
    if any(number in ("inf", "-inf") for number in (x, y)):
        if any(number in ("-0", 0) for number in (x, y)):
            return canonical_nan(fmt)
        return infinite(fmt, negative)
    return encode(fmt, finite(x) * finite(y), int(negative))


def divide(fmt: Any, a: int, b: int) -> int:
    """The word of a / b."""
    x, y = decode(fmt, a), decode(fmt, b)
    negative = is_negative(fmt, a) != is_negative(fmt, b)
    x_infinite, y_infinite = x in ("inf", "-inf"), y in ("inf", "-inf")
    x_zero, y_zero = x in ("-0", 0), y in ("-0", 0)
    if "nan" in (x, y) or (x_infinite and y_infinite) or (x_zero and y_zero):
        return canonical_nan(fmt)
    if x_infinite or y_zero:
        return infinite(fmt, negative)
    if y_infinite:
        return encode(fmt, Fraction(0), int(negative))
    return encode(fmt, finite(x) / finite(y), int(negative))


def fma(fmt: Any, a: int, b: int, c: int) -> int:
    """The word of a * b + c with one rounding, for finite operands."""
    x, y, z = (finite(decode(fmt, word)) for word in (a, b, c))
    product_negative = is_negative(fmt, a) != is_negative(fmt, b)
    return encode(fmt, x * y + z, int(product_negative and is_negative(fmt, c)))
