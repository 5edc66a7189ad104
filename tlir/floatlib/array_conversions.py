"""Conversions of arrays: between formats, and to and from integers. ``arrays`` re-exports them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tlir.floatlib import convert as conversion
from tlir.floatlib import native, words
from tlir.floatlib.arithmetic import NEAREST_EVEN
from tlir.floatlib.dispatch import (
    INTEGRAL,
    any_signaling,
    apply,
    apply_any,
    flag,
    infinite,
    layout,
    no_flags,
    rounding_flags,
)
from tlir.floatlib.elementwise import FlagArray, by_elements
from tlir.floatlib.format import Format
from tlir.floatlib.native import FLOAT64, carrier, ensure_gradual_underflow, from_carrier, to_carrier, to_float64
from tlir.floatlib.rounding import Flags, Rounding
from tlir.floatlib.words import Words


def convert(
    source: Format,
    target: Format,
    a: Words,
    flags: bool = False,
    saturate: bool = False,
    rounding: Rounding = NEAREST_EVEN,
) -> Any:
    """Words of ``target`` for words of ``source``, rounded once. Between equal formats the array itself is returned."""
    words.shape_of(source, a)
    if source == target and not saturate:
        return (a, no_flags(source, a)) if flags else a
    if carrier(source) is None or carrier(target) is None or rounding is not NEAREST_EVEN:

        def function(word: int) -> tuple[int, int]:
            return conversion.convert(source, target, word, rounding, saturate)

        return apply(("convert", rounding, saturate), function, target, [(source, a)], flags)
    ensure_gradual_underflow()
    with np.errstate(all="ignore"):
        if target == FLOAT64:
            # every source fits, so the only number that changes is an infinity that is to saturate
            result = from_carrier(target, to_float64(source, a))
            endless = infinite(source, a)
            lost = endless & saturate
            if saturate:
                limit = np.where(words.signs(source, a), target.lowest_finite, target.max_finite).astype(np.uint64)
                result = np.where(lost, limit, result)
            raised = flag(any_signaling(source, a), Flags.INVALID) | flag(lost, Flags.OVERFLOW | Flags.INEXACT)
            return (result, raised) if flags else result
        if not flags and not saturate:
            return from_carrier(target, to_carrier(source, a))
        rounded = native.round_float64(target, to_float64(source, a), saturate)
    if not flags:
        return rounded.words
    nan, endless = words.is_nan(source, a), infinite(source, a)
    invalid = rounded.undefined | (any_signaling(source, a) if target.has_nan else nan)
    lost = endless & (saturate or not target.infinities) & ~invalid
    raised = flag(invalid, Flags.INVALID) | flag(lost, Flags.OVERFLOW | Flags.INEXACT)
    return rounded.words, raised | rounding_flags(rounded, rounded.inexact, ~(nan | endless | rounded.undefined))


def to_integer(
    fmt: Format,
    a: Words,
    width: int,
    signed: bool,
    flags: bool = False,
    rounding: Rounding = Rounding.TOWARD_ZERO,
    saturating: bool = True,
) -> Any:
    """Integers of ``width`` (up to 64) bits as unsigned words in two's complement, unused high bits zero; see
    ``convert.to_integer`` for NaN and numbers out of range."""
    words.shape_of(fmt, a)
    dtype, mask = words.integer_dtype(width), (1 << width) - 1

    def specified(part: Words) -> tuple[Words, FlagArray]:
        def function(word: int) -> tuple[int, int]:
            value, raised = conversion.to_integer(fmt, word, width, signed, rounding, saturating)
            return value & mask, raised

        # the words of an unsigned integer type, laid out as those of a format of that many bits
        return by_elements(function, layout(width), [(fmt, part)])

    if carrier(fmt) is None or rounding not in INTEGRAL:
        result, raised = specified(a)
        return (result, raised) if flags else result
    ensure_gradual_underflow()
    with np.errstate(all="ignore"):
        x = to_float64(fmt, a)
        integral = INTEGRAL[rounding](x)
        low, high = (-(2.0 ** (width - 1)), 2.0 ** (width - 1)) if signed else (0.0, 2.0**width)
        inside = (integral >= low) & (integral < high)  # the bound above is a power of two, so it is exact
        values = np.where(inside, integral, 0.0).astype(np.int64 if signed else np.uint64).view(np.uint64)
    least, greatest = (1 << (width - 1), (1 << (width - 1)) - 1) if signed else (0, mask)
    values = np.where(integral >= high, np.uint64(greatest), values)
    values = np.where(integral < low, np.uint64(least), values) & np.uint64(mask)
    raised = flag(~inside, Flags.INVALID) | flag(inside & (integral != x), Flags.INEXACT)
    result = values.astype(dtype)
    outside = ~inside & ~np.isnan(x)
    if not saturating and outside.any():
        result = np.array(result)
        result[outside] = specified(a[outside])[0]
    return (result, raised) if flags else result


def from_integer(
    fmt: Format, values: Words, width: int, signed: bool, flags: bool = False, rounding: Rounding = NEAREST_EVEN
) -> Any:
    """Words of ``width``-bit (up to 64) integers given as unsigned words in two's complement, rounded once."""
    wide = values.astype(np.uint64)
    if signed:
        unused = np.uint64(64 - width)
        wide = ((wide << unused).view(np.int64) >> np.int64(unused)).view(np.uint64)
    if carrier(fmt) is None or rounding is not NEAREST_EVEN:

        def function(word: int) -> tuple[int, int]:
            value = word - (1 << width) if signed and word >> (width - 1) else word
            return conversion.from_integer(fmt, value, rounding)

        masked = wide & np.uint64((1 << width) - 1)
        return apply_any("from_integer", function, fmt, masked.astype(words.integer_dtype(width)), width, flags)
    with np.errstate(all="ignore"):
        negative = wide.view(np.int64) < 0 if signed else np.zeros(wide.shape, dtype=np.bool_)
        size = np.where(negative, ~wide + np.uint64(1), wide)
        if fmt == FLOAT64:
            x = np.where(negative, -size.astype(np.float64), size.astype(np.float64))
            # 2**64 itself does not fit back; it is the only power that large, and then the integer was no power of two
            back = np.where(np.abs(x) < 2.0**64, np.abs(x), 0.0).astype(np.uint64)
            result = x.view(np.uint64)
            return (result, flag(back != size, Flags.INEXACT)) if flags else result
        # 53 bits, the last one odd if something was lost below them: enough for the one rounding that follows
        dropped = size & np.uint64(0x7FF)
        odd = ((size >> np.uint64(11)) | (dropped != 0)).astype(np.float64) * 2048.0
        x = np.where(size < np.uint64(1 << 53), size.astype(np.float64), odd)
        rounded = native.round_float64(fmt, np.where(negative, -x, x))
    raised = flag(rounded.undefined, Flags.INVALID) | rounding_flags(rounded, rounded.inexact, ~rounded.undefined)
    return (rounded.words, raised) if flags else rounded.words
