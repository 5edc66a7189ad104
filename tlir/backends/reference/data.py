"""Inputs, constants, and conversions between dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tlir.backends.reference import integers
from tlir.backends.reference.conversion import convert, positive_zero
from tlir.backends.reference.invocation import Evaluator, Invocation
from tlir.backends.reference.layout import join, tail
from tlir.floatlib import arrays
from tlir.floatlib.format import Format
from tlir.floatlib.rounding import Flags, infinity_word, power_of_two
from tlir.floatlib.words import is_finite, is_nan, is_signaling, signs
from tlir.ir.tensor import Words, words_shape
from tlir.ir.types import DType, TensorType


def _constant(call: Invocation) -> Words:
    words: Words = call.attr("value").words
    return words


def _iota(call: Invocation) -> Words:
    dtype, axis = call.result.dtype, call.attr("iota_dimension")
    shape = call.result.shape
    if call.result.size == 0:
        return np.empty(words_shape(call.result), dtype.word_dtype)
    counted = np.arange(shape[axis], dtype=np.uint64)
    if dtype.is_integer:
        line = integers.to_words(dtype, counted)
    else:
        line = arrays.from_integer(dtype.float_format, counted, 64, signed=False)
        if dtype.is_complex:
            line = join(dtype, line, np.broadcast_to(positive_zero(dtype), line.shape))
    ones = (1,) * (len(shape) - axis - 1)
    return np.broadcast_to(line.reshape(shape[axis], *ones, *tail(dtype)), words_shape(call.result))


def _convert(call: Invocation) -> Words:
    return convert(call.dtype, call.result.dtype, call.words[0], call.attr("out_of_range"), call.flags)


def _bitcast_convert(call: Invocation) -> Words:
    source, target = call.dtype, call.result.dtype
    if source.bits == target.bits:
        return call.words[0]
    if call.result.size == 0:
        return np.empty(words_shape(call.result), target.word_dtype)
    return _words_of_bits(call.result, _bits_of_words(source, call.words[0]))


def _bits_of_words(dtype: DType, words: Words) -> Words:
    """The bits of all words in order, each from its least significant end, without the unused ones."""
    octets = np.asarray(words, f"<u{dtype.word_dtype.itemsize}", order="C").reshape(-1).view(np.uint8)
    return np.unpackbits(octets.reshape(-1, dtype.word_dtype.itemsize * dtype.limbs), axis=1, bitorder="little")[
        :, : dtype.bits
    ].reshape(-1)


def _words_of_bits(type: TensorType, bits: Words) -> Words:
    """The inverse of ``_bits_of_words``."""
    dtype = type.dtype
    padded = np.zeros((type.size, 8 * dtype.word_dtype.itemsize * dtype.limbs), np.uint8)
    padded[:, : dtype.bits] = bits.reshape(type.size, dtype.bits)
    packed = np.packbits(padded, axis=1, bitorder="little").reshape(-1).view(f"<u{dtype.word_dtype.itemsize}")
    return packed.reshape(words_shape(type))


def _reduce_precision(call: Invocation) -> Words:
    fmt, words = call.dtype.float_format, call.words[0]
    exact = fmt.magnitude_bits >= 64  # as Python integers where a carry might leave 64 bits
    dtype = np.dtype(object if exact else np.uint64)

    def number(value: int) -> Any:
        return np.array(value, dtype)

    bits = arrays.to_ints(fmt, words) if exact else words.astype(np.uint64)
    negative, nan = signs(fmt, words), is_nan(fmt, words)
    magnitude = bits & number(fmt.magnitude_mask)
    rounded = _round_fraction(fmt, magnitude, call.attr("mantissa_bits"), number)
    finite = is_finite(fmt, words)
    if call.attr("exponent_bits") < fmt.exponent_bits:
        bias = (1 << (call.attr("exponent_bits") - 1)) - 1
        overflow = finite & (rounded >= number(power_of_two(fmt, bias + 1)))
        underflow = finite & ~overflow & (rounded < number(power_of_two(fmt, 1 - bias)))
    else:  # the format's own range: its subnormal numbers stay
        overflow = finite & (rounded > number(fmt.max_finite_magnitude))
        underflow = np.zeros_like(overflow)

    def signed(positive: int, opposite: int) -> Any:
        return np.where(negative, number(opposite), number(positive))

    zeros = (fmt.zero(0), fmt.zero(1)) if fmt.has_zero else (fmt.invalid_word, fmt.invalid_word)
    result = np.where(finite, rounded, magnitude) | signed(0, fmt.sign_mask)
    result = np.where(underflow, signed(*zeros), result)
    result = np.where(overflow, signed(infinity_word(fmt, 0), infinity_word(fmt, 1)), result)
    result = np.where(nan, number(fmt.invalid_word), result)
    if call.flags is not None:
        changed = finite & (overflow | (result != bits))
        raised = np.where(changed, np.uint8(Flags.INEXACT), np.uint8(0))
        raised |= np.where(overflow, np.uint8(Flags.OVERFLOW), np.uint8(0))
        raised |= np.where(underflow & changed, np.uint8(Flags.UNDERFLOW), np.uint8(0))
        raised |= np.where(is_signaling(fmt, words), np.uint8(Flags.INVALID), np.uint8(0))
        call.flags.note(raised)
    return arrays.from_ints(fmt, result) if exact else result.astype(words.dtype)


def _round_fraction(fmt: Format, magnitude: Any, kept: int, number: Callable[[int], Any]) -> Any:
    """Magnitudes with their fraction rounded to ``kept`` bits, ties to even; a carry runs into the exponent. The
    significand of a subnormal number is rounded as its word has it, with leading zeros."""
    dropped = fmt.fraction_bits - kept
    if dropped <= 0:
        return magnitude
    odd = (magnitude >> number(dropped)) & number(1)
    bumped = magnitude + (number((1 << (dropped - 1)) - 1) + odd)
    return (bumped >> number(dropped)) << number(dropped)


EVALUATORS: dict[str, Evaluator] = {
    "constant": _constant,
    "iota": _iota,
    "convert": _convert,
    "bitcast_convert": _bitcast_convert,
    "reduce_precision": _reduce_precision,
}
