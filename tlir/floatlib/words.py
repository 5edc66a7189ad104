"""Arrays of words: their layout, and what can be read off the bits of each without arithmetic.

A word of up to 8, 16, 32 or 64 bits is an element of a uint8, uint16, uint32 or uint64 array. Wider ones are uint64
with a trailing axis of little-endian limbs. Unused high bits are zero.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlir.floatlib.format import Format

Words = NDArray[Any]
Mask = NDArray[np.bool_]


@lru_cache(maxsize=1024)
def word_dtype(fmt: Format) -> np.dtype[Any]:
    """The NumPy type of the words (of one limb, for formats wider than 64 bits)."""
    return integer_dtype(min(fmt.width, 64))


@lru_cache(maxsize=64)
def integer_dtype(width: int) -> np.dtype[Any]:
    """The smallest unsigned NumPy type of at least ``width`` (up to 64) bits."""
    return np.dtype(next(f"u{size}" for size in (1, 2, 4, 8) if width <= 8 * size))


def limbs(fmt: Format) -> int:
    """64-bit limbs per word; 1 for formats of up to 64 bits, whose arrays have no limb axis."""
    return -(-fmt.width // 64)


def shape_of(fmt: Format, words: Words) -> tuple[int, ...]:
    """The shape of the elements, without the limb axis. ValueError for an array of another type or number of limbs."""
    expected = limbs(fmt)
    if words.dtype != word_dtype(fmt) or (expected > 1 and words.shape[-1:] != (expected,)):
        layout = word_dtype(fmt).name + (f" with a last axis of {expected}" if expected > 1 else "")
        raise ValueError(f"words of {fmt.name} are {layout}, not {words.dtype} of shape {words.shape}")
    return words.shape[:-1] if expected > 1 else words.shape


def to_ints(fmt: Format, words: Words) -> NDArray[Any]:
    """The words as an object array of Python ints, without the limb axis."""
    if limbs(fmt) == 1:
        return np.asarray(words).astype(object)  # of a NumPy scalar, astype alone would give a bare int
    values = words[..., -1].astype(object)
    for limb in range(limbs(fmt) - 2, -1, -1):
        values = (values << 64) | words[..., limb].astype(object)
    return np.asarray(values, dtype=object)


def from_ints(fmt: Format, values: Any) -> Words:
    """Words of an array (or nested sequence) of Python ints; the inverse of ``to_ints``."""
    values = np.asarray(values, dtype=object)
    count = limbs(fmt)
    if count == 1:
        return values.astype(word_dtype(fmt))
    words = np.empty((*values.shape, count), dtype=np.uint64)
    for limb in range(count):
        words[..., limb] = (values >> (64 * limb)) & 0xFFFFFFFFFFFFFFFF
    return words


def broadcast(fmt: Format, *operands: Words) -> list[Words]:
    """The operands with a common shape of elements; layouts are checked."""
    for words in operands:
        shape_of(fmt, words)
    if all(words.shape == operands[0].shape for words in operands):
        return list(operands)
    return list(np.broadcast_arrays(*operands))


def constant(fmt: Format, word: int) -> Words:
    """One word as a 0-d array (a 1-d array of limbs), to be broadcast."""
    return from_ints(fmt, word)


def magnitudes(fmt: Format, words: Words) -> Words:
    """The words without their sign bits."""
    return words & constant(fmt, fmt.magnitude_mask)


def signs(fmt: Format, words: Words) -> Mask:
    """Where the sign bit is set; nowhere in an unsigned format."""
    top = words[..., -1] if limbs(fmt) > 1 else words
    mask = fmt.sign_mask >> (64 * (limbs(fmt) - 1))
    return np.asarray((top & top.dtype.type(mask)) != 0)


def equal(fmt: Format, a: Words, b: Words) -> Mask:
    """Where the words are the same."""
    same = np.asarray(a == b)
    return np.asarray(same.all(axis=-1)) if limbs(fmt) > 1 else same


def less(fmt: Format, a: Words, b: Words) -> Mask:
    """Where the words, as unsigned integers, are less."""
    if limbs(fmt) == 1:
        return np.asarray(a < b)
    a, b = np.broadcast_arrays(a, b)
    result = a[..., 0] < b[..., 0]
    for limb in range(1, limbs(fmt)):
        result = (a[..., limb] < b[..., limb]) | ((a[..., limb] == b[..., limb]) & result)
    return np.asarray(result)


def select(fmt: Format, condition: Mask, a: Words, b: Words) -> Words:
    """Whole words of ``a`` where the condition holds, of ``b`` elsewhere."""
    return np.where(condition[..., None] if limbs(fmt) > 1 else condition, a, b)


def is_nan(fmt: Format, words: Words) -> Mask:
    """Where the word is a NaN."""
    match fmt.nans:
        case "ieee":
            return less(fmt, constant(fmt, fmt.max_finite_magnitude + 1), magnitudes(fmt, words))
        case "all_ones":
            return equal(fmt, magnitudes(fmt, words), constant(fmt, fmt.magnitude_mask))
        case "negative_zero":
            return equal(fmt, words, constant(fmt, fmt.sign_mask))
    return np.zeros(shape_of(fmt, words), dtype=np.bool_)


def is_signaling(fmt: Format, words: Words) -> Mask:
    """Where the word is a signaling NaN."""
    if fmt.nans != "ieee":
        return np.zeros(shape_of(fmt, words), dtype=np.bool_)
    quiet = constant(fmt, 1 << (fmt.fraction_bits - 1))
    return is_nan(fmt, words) & equal(fmt, words & quiet, constant(fmt, 0))


def is_zero(fmt: Format, words: Words) -> Mask:
    """Where the word is a zero of either sign."""
    if not fmt.subnormals:
        return np.zeros(shape_of(fmt, words), dtype=np.bool_)
    zero = equal(fmt, magnitudes(fmt, words), constant(fmt, 0))
    return zero & ~signs(fmt, words) if fmt.nans == "negative_zero" else zero


def is_finite(fmt: Format, words: Words) -> Mask:
    """Where the word is neither infinite nor a NaN."""
    finite = ~less(fmt, constant(fmt, fmt.max_finite_magnitude), magnitudes(fmt, words))
    return finite & ~is_nan(fmt, words) if fmt.nans == "negative_zero" else finite


def order_keys(fmt: Format, words: Words) -> Words:
    """Words that, as unsigned integers, order as the values of the given ones do, with -0 before +0 (not for NaN)."""
    if not fmt.signed:
        return words
    flipped = words ^ constant(fmt, fmt.word_mask)
    return select(fmt, signs(fmt, words), flipped, words | constant(fmt, fmt.sign_mask))
