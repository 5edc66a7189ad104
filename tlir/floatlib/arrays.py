"""The operations on arrays of words: what the evaluator calls.

Every function takes arrays of words (``words.word_dtype``; formats wider than 64 bits have a trailing axis of limbs),
which are broadcast against each other, and returns an array of words; with ``flags=True`` it returns (words, flags),
the flags as a uint8 array of ``rounding.Flags`` values of the shape of the elements. The words are those of the
specification (``arithmetic``, ``ordering``, ``convert``); ``native.NATIVE`` says where the processor computes them.

Native arithmetic needs gradual underflow: FloatEnvironmentError where the thread flushes subnormal numbers.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tlir.floatlib import arithmetic, ordering, words
from tlir.floatlib.arithmetic import NEAREST_EVEN
from tlir.floatlib.array_conversions import convert, from_integer, to_integer
from tlir.floatlib.dispatch import INTEGRAL, any_signaling, flag, infinite, no_flags, rounded, specified, with_rounding
from tlir.floatlib.format import Format
from tlir.floatlib.native import (
    NATIVE,
    FloatEnvironmentError,
    carrier,
    ensure_gradual_underflow,
    from_carrier,
    to_carrier,
)
from tlir.floatlib.rounding import Flags, Rounding, infinity_word
from tlir.floatlib.words import Words, from_ints, limbs, to_ints, word_dtype

__all__ = [
    "NATIVE",
    "FloatEnvironmentError",
    "absolute",
    "add",
    "compare",
    "convert",
    "copysign",
    "divide",
    "ensure_gradual_underflow",
    "fma",
    "from_integer",
    "from_ints",
    "limbs",
    "maximum",
    "maximum_number",
    "minimum",
    "minimum_number",
    "multiply",
    "negate",
    "next_after",
    "remainder_ieee",
    "remainder_truncated",
    "round_to_integral",
    "scale_b",
    "sqrt",
    "subtract",
    "to_integer",
    "to_ints",
    "word_dtype",
]

DIRECTIONS = ("EQ", "NE", "LT", "LE", "GT", "GE")


def add(fmt: Format, a: Words, b: Words, flags: bool = False, rounding: Rounding = NEAREST_EVEN) -> Any:
    """a + b, rounded once."""
    return rounded("add", fmt, (a, b), flags, rounding)


def subtract(fmt: Format, a: Words, b: Words, flags: bool = False, rounding: Rounding = NEAREST_EVEN) -> Any:
    """a - b, rounded once."""
    return rounded("subtract", fmt, (a, b), flags, rounding)


def multiply(fmt: Format, a: Words, b: Words, flags: bool = False, rounding: Rounding = NEAREST_EVEN) -> Any:
    """a * b, rounded once."""
    return rounded("multiply", fmt, (a, b), flags, rounding)


def divide(fmt: Format, a: Words, b: Words, flags: bool = False, rounding: Rounding = NEAREST_EVEN) -> Any:
    """a / b, rounded once."""
    return rounded("divide", fmt, (a, b), flags, rounding)


def sqrt(fmt: Format, a: Words, flags: bool = False, rounding: Rounding = NEAREST_EVEN) -> Any:
    """The square root, rounded once."""
    return rounded("sqrt", fmt, (a,), flags, rounding)


def fma(fmt: Format, a: Words, b: Words, c: Words, flags: bool = False, rounding: Rounding = NEAREST_EVEN) -> Any:
    """a * b + c, rounded once."""
    return rounded("fma", fmt, (a, b, c), flags, rounding)


def remainder_truncated(fmt: Format, a: Words, b: Words, flags: bool = False) -> Any:
    """a - b * trunc(a / b), exact: C's fmod."""
    a, b = words.broadcast(fmt, a, b)
    if carrier(fmt) is None or not fmt.has_zero:
        return specified("remainder_truncated", arithmetic.remainder_truncated, fmt, (a, b), flags)
    ensure_gradual_underflow()
    with np.errstate(all="ignore"):
        result = from_carrier(fmt, np.fmod(to_carrier(fmt, a), to_carrier(fmt, b)))
    if not flags:
        return result
    nan = words.is_nan(fmt, a) | words.is_nan(fmt, b)
    invalid = any_signaling(fmt, a, b) | (~nan & (infinite(fmt, a) | words.is_zero(fmt, b)))
    return result, flag(invalid, Flags.INVALID)


def remainder_ieee(fmt: Format, a: Words, b: Words, flags: bool = False) -> Any:
    """a - b * n for the integer n nearest to a / b, exact."""
    return specified("remainder_ieee", arithmetic.remainder_ieee, fmt, words.broadcast(fmt, a, b), flags)


def round_to_integral(fmt: Format, a: Words, rounding: Rounding = NEAREST_EVEN, flags: bool = False) -> Any:
    """The integer next to a in the direction of the rounding, with the sign of a."""
    words.shape_of(fmt, a)
    # an integer beyond the largest number of a format of narrow range is rounded by the specification
    reaches = fmt.emax >= fmt.precision
    if carrier(fmt) is None or rounding not in INTEGRAL or not reaches or not fmt.has_zero:
        function = partial(with_rounding, arithmetic.round_to_integral, rounding)
        return specified(("round_to_integral", rounding), function, fmt, (a,), flags)
    ensure_gradual_underflow()
    with np.errstate(all="ignore"):
        result = from_carrier(fmt, INTEGRAL[rounding](to_carrier(fmt, a)))
    return (result, flag(any_signaling(fmt, a), Flags.INVALID)) if flags else result


def scale_b(fmt: Format, a: Words, n: int, flags: bool = False) -> Any:
    """a * 2**n, rounded once, for one integer n."""

    def function(_: Format, word: int) -> tuple[int, int]:
        return arithmetic.scale_b(fmt, word, n)

    return specified(("scale_b", n), function, fmt, (a,), flags)


# Selection and order


def minimum(fmt: Format, a: Words, b: Words, flags: bool = False) -> Any:
    """IEEE 754-2019 minimum: NaN wins, -0 is less than +0."""
    return _extremum(fmt, a, b, flags, least=True, number=False)


def maximum(fmt: Format, a: Words, b: Words, flags: bool = False) -> Any:
    """IEEE 754-2019 maximum: NaN wins, -0 is less than +0."""
    return _extremum(fmt, a, b, flags, least=False, number=False)


def minimum_number(fmt: Format, a: Words, b: Words, flags: bool = False) -> Any:
    """IEEE 754-2019 minimumNumber: a number wins over NaN."""
    return _extremum(fmt, a, b, flags, least=True, number=True)


def maximum_number(fmt: Format, a: Words, b: Words, flags: bool = False) -> Any:
    """IEEE 754-2019 maximumNumber: a number wins over NaN."""
    return _extremum(fmt, a, b, flags, least=False, number=True)


def _extremum(fmt: Format, a: Words, b: Words, flags: bool, least: bool, number: bool) -> Any:
    a, b = words.broadcast(fmt, a, b)
    nan_a, nan_b = words.is_nan(fmt, a), words.is_nan(fmt, b)
    first = words.less(fmt, words.order_keys(fmt, a), words.order_keys(fmt, b))
    result = words.select(fmt, first if least else ~first, a, b)
    if number:
        result = words.select(fmt, nan_a, b, words.select(fmt, nan_b, a, result))
    canonical = nan_a & nan_b if number else nan_a | nan_b
    result = words.select(fmt, canonical, words.constant(fmt, fmt.invalid_word), result)
    return (result, flag(any_signaling(fmt, a, b), Flags.INVALID)) if flags else result


def compare(fmt: Format, a: Words, b: Words, direction: str, flags: bool = False, signaling: bool = False) -> Any:
    """A Boolean array: whether a EQ, NE, LT, LE, GT or GE b, by value: -0 equals +0, and with NaN only NE is true. The
    quiet comparison raises INVALID for signaling NaN, the ``signaling`` one for every NaN. ValueError for another
    direction."""
    if direction not in DIRECTIONS:
        raise ValueError(f"the direction is one of {', '.join(DIRECTIONS)}, not {direction!r}")
    a, b = words.broadcast(fmt, a, b)
    unordered = words.is_nan(fmt, a) | words.is_nan(fmt, b)
    same = words.equal(fmt, a, b) | (words.is_zero(fmt, a) & words.is_zero(fmt, b))
    if direction in ("EQ", "NE"):
        result = same & ~unordered
        result = ~result if direction == "NE" else result
    else:
        keys = [words.order_keys(fmt, operand) for operand in (a, b)]
        strict = words.less(fmt, *(keys if direction[0] == "L" else reversed(keys))) & ~same
        result = (strict | same if direction[1] == "E" else strict) & ~unordered
    if not flags:
        return result
    return result, flag(unordered if signaling else any_signaling(fmt, a, b), Flags.INVALID)


def next_after(fmt: Format, a: Words, b: Words, flags: bool = False) -> Any:
    """The neighbour of a in the direction of b, b where they are equal."""
    a, b = words.broadcast(fmt, a, b)
    if limbs(fmt) > 1:
        return specified("next_after", ordering.next_after, fmt, (a, b), flags)
    nan = words.is_nan(fmt, a) | words.is_nan(fmt, b)
    same = (a == b) | (words.is_zero(fmt, a) & words.is_zero(fmt, b))
    up = words.less(fmt, words.order_keys(fmt, a), words.order_keys(fmt, b))
    wide, negative = a.astype(np.uint64), words.signs(fmt, a)
    magnitude = wide & np.uint64(fmt.magnitude_mask)
    sign = np.where(negative, np.uint64(fmt.sign_mask), np.uint64(0))
    away = up != negative
    step = sign | np.where(away, magnitude + np.uint64(1), magnitude - np.uint64(1))
    top = np.where(negative, np.uint64(infinity_word(fmt, 1)), np.uint64(infinity_word(fmt, 0)))
    step = np.where(away & (magnitude == fmt.max_finite_magnitude), top, step)
    if fmt.has_zero:
        step = np.where(~away & (magnitude == 1), np.where(negative, fmt.zero(1), 0).astype(np.uint64), step)
    # out of zero, or across the missing one, in the direction asked for
    leaves = magnitude == 0 if fmt.has_zero else ~away & (magnitude == 0)
    smallest = np.where(up, 0, fmt.sign_mask).astype(np.uint64) | np.uint64(fmt.min_subnormal)
    step = np.where(leaves, smallest, step).astype(a.dtype)
    result = np.where(nan, a.dtype.type(fmt.invalid_word), np.where(same, b, step))
    return (result, flag(any_signaling(fmt, a, b), Flags.INVALID)) if flags else result


# The sign bit


def negate(fmt: Format, a: Words, flags: bool = False) -> Any:
    """The sign bit flipped; see ``ordering.negate`` for formats without -0 and without a sign."""
    if not fmt.signed:
        kept = words.is_nan(fmt, a) | words.is_zero(fmt, a)
        result = words.select(fmt, kept, a, words.constant(fmt, fmt.invalid_word))
        return (result, flag(~kept, Flags.INVALID)) if flags else result
    result = _keep_unsigned_zero(fmt, a, a ^ words.constant(fmt, fmt.sign_mask))
    return (result, no_flags(fmt, result)) if flags else result


def absolute(fmt: Format, a: Words, flags: bool = False) -> Any:
    """The sign bit cleared."""
    result = _keep_unsigned_zero(fmt, a, words.magnitudes(fmt, a))
    return (result, no_flags(fmt, result)) if flags else result


def copysign(fmt: Format, a: Words, b: Words, flags: bool = False) -> Any:
    """a with the sign bit of b."""
    a, b = words.broadcast(fmt, a, b)
    sign = b & words.constant(fmt, fmt.sign_mask)
    result = _keep_unsigned_zero(fmt, a, words.magnitudes(fmt, a) | sign)
    return (result, no_flags(fmt, result)) if flags else result


def _keep_unsigned_zero(fmt: Format, a: Words, changed: Words) -> Words:
    """``a`` itself where it is the zero, or the NaN in the place of -0, of a format that has no -0."""
    if fmt.nans != "negative_zero":
        return np.asarray(changed)
    return words.select(fmt, words.equal(fmt, words.magnitudes(fmt, a), words.constant(fmt, 0)), a, changed)
