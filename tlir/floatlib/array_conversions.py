"""Conversions of arrays: between formats, and to and from integers. ``arrays`` re-exports them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tlir.floatlib import convert as conversion
from tlir.floatlib import words
from tlir.floatlib.arithmetic import NEAREST_EVEN
from tlir.floatlib.dispatch import INTEGRAL, layout, no_flags, run
from tlir.floatlib.format import Format
from tlir.floatlib.native import (
    FLOAT64,
    carrier,
    ensure_float_environment,
    from_carrier,
    is_native,
    to_carrier,
    to_float64,
)
from tlir.floatlib.rounding import Rounding
from tlir.floatlib.soft import catalog, choice
from tlir.floatlib.words import Words

_CHEAP = ("float16", "bfloat16", "float32", "float64")


def _by_processor(source: Format, target: Format) -> bool:
    """Whether a cast between carriers, which rounds at most once, is the conversion."""
    if source.name not in _CHEAP or target.name not in _CHEAP:
        return False
    # NumPy rounds float64 to float16 and float32 once; bfloat16 it does not know, and gets it from float32 alone
    return target.name != "bfloat16" or carrier(source) == "float32"


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
    kernel = catalog.convert(source, target, rounding, flags, saturate)
    if not flags and not saturate and rounding is NEAREST_EVEN and _by_processor(source, target):
        compiled = choice.run_compiled(kernel, (a,), "processor")
        if compiled is not None:
            return compiled[0]
        ensure_float_environment()
        with np.errstate(all="ignore"):
            return from_carrier(target, to_carrier(source, a))
    return run(
        kernel,
        ("convert", rounding, saturate, source, target),
        partial(_converted, source, target, rounding, saturate),
        source,
        target,
        (a,),
        catalog.convert(source, target, rounding, True, saturate),
    )


def _converted(source: Format, target: Format, rounding: Rounding, saturate: bool, word: int) -> tuple[int, int]:
    return conversion.convert(source, target, word, rounding, saturate)


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
    kernel = catalog.to_integer(fmt, width, signed, rounding, flags, saturating)
    if not flags and saturating and rounding in INTEGRAL and is_native(fmt, "to_integer"):
        compiled = choice.run_compiled(kernel, (a,), "processor")
        return _to_integer(fmt, a, width, signed, rounding) if compiled is None else compiled[0]
    return run(
        kernel,
        ("to_integer", width, signed, rounding, saturating, fmt),
        partial(_integer_of, fmt, width, signed, rounding, saturating),
        fmt,
        layout(width),
        (a,),
        catalog.to_integer(fmt, width, signed, rounding, True, saturating),
    )


def _integer_of(
    fmt: Format, width: int, signed: bool, rounding: Rounding, saturating: bool, word: int
) -> tuple[int, int]:
    value, raised = conversion.to_integer(fmt, word, width, signed, rounding, saturating)
    return value & ((1 << width) - 1), raised


def _to_integer(fmt: Format, a: Words, width: int, signed: bool, rounding: Rounding) -> Words:
    """Saturating, through float64."""
    ensure_float_environment()
    mask = (1 << width) - 1
    with np.errstate(all="ignore"):
        integral = INTEGRAL[rounding](to_float64(fmt, a))
        low, high = (-(2.0 ** (width - 1)), 2.0 ** (width - 1)) if signed else (0.0, 2.0**width)
        inside = (integral >= low) & (integral < high)  # the bound above is a power of two, so it is exact
        values = np.where(inside, integral, 0.0).astype(np.int64 if signed else np.uint64).view(np.uint64)
    least, greatest = (1 << (width - 1), (1 << (width - 1)) - 1) if signed else (0, mask)
    values = np.where(integral >= high, np.uint64(greatest), values)
    values = np.where(integral < low, np.uint64(least), values) & np.uint64(mask)
    return values.astype(words.integer_dtype(width))


def from_integer(
    fmt: Format, values: Words, width: int, signed: bool, flags: bool = False, rounding: Rounding = NEAREST_EVEN
) -> Any:
    """Words of ``width``-bit (up to 64) integers given as unsigned words in two's complement, rounded once."""
    dtype = words.integer_dtype(width)
    patterns = np.asarray(values).astype(dtype, copy=False)
    if width < 8 * dtype.itemsize:  # bits beyond the width have no meaning
        patterns = patterns & dtype.type((1 << width) - 1)
    kernel = catalog.from_integer(fmt, width, signed, rounding, flags)
    if fmt == FLOAT64 and not flags and rounding is NEAREST_EVEN:
        unused = np.uint64(64 - width)
        wide = patterns.astype(np.uint64) << unused
        integers = wide.view(np.int64) >> np.int64(unused) if signed else wide >> unused
        return integers.astype(np.float64).view(np.uint64)
    return run(
        kernel,
        ("from_integer", width, signed, rounding, fmt),
        partial(_from_integer, fmt, width, signed, rounding),
        layout(width),
        fmt,
        (patterns,),
        catalog.from_integer(fmt, width, signed, rounding, True),
    )


def _from_integer(fmt: Format, width: int, signed: bool, rounding: Rounding, word: int) -> tuple[int, int]:
    return conversion.from_integer(fmt, word - (1 << width) if signed and word >> (width - 1) else word, rounding)
