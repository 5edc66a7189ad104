"""Conversion of words between every pair of dtypes, as the operation ``convert`` defines it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tlir.backends.reference import integers
from tlir.backends.reference.invocation import FlagRecord
from tlir.backends.reference.layout import join, parts
from tlir.floatlib import arrays
from tlir.floatlib.rounding import Flags
from tlir.floatlib.words import from_ints, is_zero
from tlir.ir.tensor import Words
from tlir.ir.types import NAMED, DType


def convert(
    source: DType, target: DType, words: Words, out_of_range: str = "saturate", flags: FlagRecord | None = None
) -> Words:
    """The words of ``target`` for words of ``source``; ``out_of_range`` is the attribute of that name."""
    if source == target:
        return words
    if target.is_bool:
        return _truth(source, words).astype(np.uint8)
    if source.is_complex:
        real, imag = parts(source, words)
        converted = convert(source.component, target.component, real, out_of_range, flags)
        if not target.is_complex:
            return converted
        return join(target, converted, convert(source.component, target.component, imag, out_of_range, flags))
    if target.is_complex:
        real = convert(source, target.component, words, out_of_range, flags)
        return join(target, real, np.broadcast_to(positive_zero(target), real.shape))
    if source.is_float and target.is_float:
        return _noted(flags, arrays.convert, source.float_format, target.float_format, words)
    if source.is_float:
        return _float_to_integer(source, target, words, out_of_range, flags)
    if target.is_float:
        width = max(source.bits, 2)  # a bool is one bit, and has no sign
        return _noted(flags, arrays.from_integer, target.float_format, words, width, source.is_signed)
    return integers.to_words(target, integers.to_values(source, words))


def positive_zero(dtype: DType) -> Words:
    """The word of +0 of a float dtype or of a complex one's parts (of NaN where the format has no zero)."""
    fmt = dtype.float_format
    return from_ints(fmt, fmt.zero() if fmt.has_zero else fmt.invalid_word)


def _noted(flags: FlagRecord | None, function: Any, *arguments: Any) -> Words:
    if flags is None:
        result: Words = function(*arguments)
        return result
    result, raised = function(*arguments, flags=True)
    flags.note(raised)
    return result


def _truth(dtype: DType, words: Words) -> Words:
    """Whether each value is not zero, as Booleans; NaN is not."""
    if dtype.is_complex:
        real, imag = parts(dtype, words)
        return _truth(dtype.component, real) | _truth(dtype.component, imag)
    if dtype.is_float:
        return ~is_zero(dtype.float_format, words)
    return words != 0


def _float_to_integer(source: DType, target: DType, words: Words, out_of_range: str, flags: FlagRecord | None) -> Words:
    if out_of_range == "indefinite" and target.bits < 32:
        return integers.to_words(target, _float_to_integer(source, NAMED["int32"], words, out_of_range, flags))
    result, raised = arrays.to_integer(source.float_format, words, target.bits, target.is_signed, flags=True)
    if flags is not None:
        flags.note(raised)
    if out_of_range == "indefinite":
        # INVALID is raised out of range and for NaN, and only there
        result = np.where(raised & np.uint8(Flags.INVALID), target.word_dtype.type(1 << (target.bits - 1)), result)
    converted: Words = result
    return converted
