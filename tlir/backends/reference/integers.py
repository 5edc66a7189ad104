"""Integers of 2 to 64 bits held as words: two's complement with the unused high bits zero, arithmetic modulo 2^bits.

Sums and products are taken on the unsigned words themselves, which wrap by definition; where the sign matters, on
NumPy integers that hold the values. Nothing passes through a float.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlir.ir.tensor import Words
from tlir.ir.types import DType

Values = NDArray[Any]


def to_values(dtype: DType, words: Words) -> Values:
    """The integers as NumPy integers of the word's size, signed for a signed dtype."""
    if not dtype.is_signed:
        return words
    spare = 8 * dtype.word_dtype.itemsize - dtype.bits
    values = words.astype(f"int{8 * dtype.word_dtype.itemsize}")
    return (values << spare) >> spare if spare else values


def to_words(dtype: DType, values: Values) -> Words:
    """The low ``dtype.bits`` bits of NumPy integers of any type."""
    words = np.asarray(values).astype(dtype.word_dtype)
    return words & word_mask(dtype) if dtype.bits < 8 else words


def word_mask(dtype: DType) -> np.unsignedinteger:
    """The word with all bits set."""
    mask: np.unsignedinteger = dtype.word_dtype.type((1 << dtype.bits) - 1)
    return mask


def add(dtype: DType, a: Words, b: Words) -> Words:
    return to_words(dtype, np.add(a, b))


def subtract(dtype: DType, a: Words, b: Words) -> Words:
    return to_words(dtype, np.subtract(a, b))


def multiply(dtype: DType, a: Words, b: Words) -> Words:
    return to_words(dtype, np.multiply(a, b))


def divide(dtype: DType, a: Words, b: Words) -> Words:
    """The quotient truncated toward zero; all bits set for a zero divisor; the least signed value over -1 is itself."""
    x, y = to_values(dtype, a), to_values(dtype, b)
    divisor = np.where(y == 0, 1, y)
    # taking the remainder off first makes the floor division exact, so that it truncates
    quotient = to_words(dtype, (x - np.fmod(x, divisor)) // divisor)
    return np.where(y == 0, word_mask(dtype), quotient)


def remainder(dtype: DType, a: Words, b: Words) -> Words:
    """The remainder of ``divide``, with the sign of a; a itself for a zero divisor."""
    x, y = to_values(dtype, a), to_values(dtype, b)
    return np.where(y == 0, a, to_words(dtype, np.fmod(x, np.where(y == 0, 1, y))))


def maximum(dtype: DType, a: Words, b: Words) -> Words:
    return np.where(to_values(dtype, a) >= to_values(dtype, b), a, b)


def minimum(dtype: DType, a: Words, b: Words) -> Words:
    return np.where(to_values(dtype, a) <= to_values(dtype, b), a, b)


def negate(dtype: DType, a: Words) -> Words:
    return to_words(dtype, np.negative(a))


def absolute(dtype: DType, a: Words) -> Words:
    """The magnitude; the least signed value stays."""
    return np.where(to_values(dtype, a) < 0, negate(dtype, a), a)


def sign(dtype: DType, a: Words) -> Words:
    return to_words(dtype, np.sign(to_values(dtype, a)))


def power(dtype: DType, a: Words, b: Words) -> Words:
    """a to the power b modulo 2^bits; for a negative b, 1 for base 1, 1 or -1 for base -1, otherwise 0."""
    x, y = to_values(dtype, a), to_values(dtype, b)
    result = np.ones_like(a)
    square, rest = a, np.where(y < 0, 0, y)
    while np.any(rest):
        result = np.where(rest & 1, multiply(dtype, result, square), result)
        rest = rest >> 1
        square = multiply(dtype, square, square)
    if not dtype.is_signed:
        return result
    unit = np.where((x == 1) | ((x == -1) & (y & 1 == 0)), 1, np.where(x == -1, -1, 0))
    return np.where(y < 0, to_words(dtype, unit), result)


def shift_left(dtype: DType, a: Words, b: Words) -> Words:
    """a shifted left by b; 0 where b is negative or the width or more."""
    inside, count = _shift(dtype, b)
    return to_words(dtype, np.where(inside, a << count, 0))


def shift_right_logical(dtype: DType, a: Words, b: Words) -> Words:
    """a shifted right by b, zeros entering; 0 where b is negative or the width or more."""
    inside, count = _shift(dtype, b)
    return to_words(dtype, np.where(inside, a >> count, 0))


def shift_right_arithmetic(dtype: DType, a: Words, b: Words) -> Words:
    """a shifted right by b, copies of the top bit entering; only copies where b is negative or the width or more."""
    inside, count = _shift(dtype, b)
    signed = DType(dtype.name, "int", dtype.bits)
    count = np.where(inside, count, dtype.bits - 1)
    return to_words(dtype, to_values(signed, a) >> count.astype(f"int{8 * a.dtype.itemsize}"))


def _shift(dtype: DType, b: Words) -> tuple[NDArray[np.bool_], Words]:
    """Where a shift count is from 0 to the width less one (a negative one, as a word, is above), and it there."""
    inside = b < dtype.bits
    return inside, np.where(inside, b, b.dtype.type(0))


def popcnt(dtype: DType, a: Words) -> Words:
    return np.bitwise_count(a).astype(dtype.word_dtype)


def count_leading_zeros(dtype: DType, a: Words) -> Words:
    """Zero bits above the highest set bit; the width for 0."""
    filled = a.astype(np.uint64)
    for shift in (1, 2, 4, 8, 16, 32):
        filled = filled | (filled >> np.uint64(shift))
    return to_words(dtype, dtype.bits - np.bitwise_count(filled).astype(np.int64))
