"""Arithmetic of the processor, where it is known to give the specified word.

``NATIVE`` is the table of choices. A format is computed in its *carrier*, a NumPy type that holds all its words:

* float32 and float64 in themselves: NumPy's add, subtract, multiply, divide and square root round correctly.
* float16 and bfloat16 in float32, the result being rounded a second time. For these five operations that is the same as
  rounding once when the carrier has at least 2 p + 2 bits for p bits of precision (S. A. Figueroa, "When is double
  rounding innocuous?", 1995); for results among the subnormals too, where the target has still fewer bits. float64
  carries other formats of up to 24 bits of precision and a moderate range in the same way.
* fma is not covered by that. The formats of up to float32's precision form the exact product in float64 and round the
  sum to odd there, before the final rounding.

Flags, other rounding modes and other formats are the kernels' (``soft``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlir.floatlib.format import FORMATS, Format
from tlir.floatlib.rounding import infinity_word
from tlir.floatlib.words import Mask, Words, is_nan, word_dtype

Float64 = NDArray[np.float64]
Floats = NDArray[Any]

FLOAT16, BFLOAT16, FLOAT32, FLOAT64 = (FORMATS[name] for name in ("float16", "bfloat16", "float32", "float64"))

CARRIED_PRECISION = 24
CARRIED_EXPONENT = 500


def carrier(fmt: Format) -> str | None:
    """The NumPy type in which the format's arithmetic is done natively, None if it is done in software."""
    if fmt in (FLOAT32, FLOAT16, BFLOAT16):
        return "float32"
    if fmt == FLOAT64 or _fits_float64(fmt):
        return "float64"
    return None


def _fits_float64(fmt: Format) -> bool:
    """Whether products, quotients and sums of the format's numbers stay clear of the ends of float64's range."""
    lowest = fmt.emin - fmt.fraction_bits
    return fmt.precision <= CARRIED_PRECISION and lowest >= -CARRIED_EXPONENT and fmt.emax <= CARRIED_EXPONENT


ROUNDED = ("add", "subtract", "multiply", "divide", "sqrt")
EXACT = ("remainder_truncated", "round_to_integral", "to_integer")


def is_native(fmt: Format, operation: str) -> bool:
    """Whether the processor computes the operation, to nearest-even and without flags, unless a compiled kernel does.

    float32, float16 and bfloat16 do all of them so, float64 all but fma. The other formats' kernels take less time than
    the ways to and from their carrier; only ``remainder_truncated``, which has no kernel, uses it."""
    if operation == "remainder_truncated":
        return carrier(fmt) is not None and fmt.has_zero
    if operation == "fma":
        return fmt in (FLOAT32, FLOAT16, BFLOAT16)
    return operation in (*ROUNDED, *EXACT) and fmt in (FLOAT64, FLOAT32, FLOAT16, BFLOAT16)


NATIVE: dict[tuple[str, str], str] = {
    (name, operation): type_name
    for name, fmt in FORMATS.items()
    if (type_name := carrier(fmt)) is not None
    for operation in (*ROUNDED, *EXACT, "fma")
    if is_native(fmt, operation)
}
"""(format, operation) -> carrier, of the named formats; what is absent is computed by tables, kernels and, at last, the
specification. Custom formats are decided by ``is_native``. So are other modes than nearest-even, and flags."""


class FloatEnvironmentError(RuntimeError):
    """The thread's control register makes the processor flush subnormal numbers to zero, or round in another direction
    than to nearest."""


_SMALLEST_NORMAL = 2.2250738585072014e-308
_SMALLEST_SUBNORMAL = 5e-324
_ONE, _QUARTER, _THREE_QUARTERS, _NEXT = 1.0, 2.0**-54, 3 * 2.0**-54, 1.0 + 2.0**-52
"""A quarter and three quarters of the distance from one to the next number: to nearest, only the latter is rounded up.
Names, because the compiler of the interpreter would compute with the numbers themselves."""


def ensure_float_environment() -> None:
    """FloatEnvironmentError unless this thread computes with subnormal numbers and rounds to nearest. The register also
    governs float32."""
    if _SMALLEST_NORMAL * 0.5 == 0.0 or _SMALLEST_SUBNORMAL * 1.0 == 0.0:
        wrong = "flushes subnormal numbers to zero"
    elif _ONE + _QUARTER != _ONE or _ONE + _THREE_QUARTERS != _NEXT:
        wrong = "does not round to nearest"
    else:
        return
    raise FloatEnvironmentError(
        f"this thread {wrong} (a library has set its floating-point control register), "
        "so its arithmetic does not return the specified words"
    )


# Words to carriers and back


def to_float64(fmt: Format, words: Words) -> Float64:
    """The exact values of words of float64 or of a format that fits it; every NaN becomes a NaN."""
    if fmt == FLOAT64:
        return words.view(np.float64)
    if fmt in (FLOAT32, FLOAT16, BFLOAT16):
        return to_carrier(fmt, words).astype(np.float64)
    magnitude = words.astype(np.int64) & fmt.magnitude_mask
    field = magnitude >> fmt.fraction_bits
    significand = magnitude & fmt.fraction_mask
    if fmt.subnormals:
        significand += np.where(field > 0, 1 << fmt.fraction_bits, 0)
        field = np.maximum(field, 1)
    else:
        significand += 1 << fmt.fraction_bits
    values = np.ldexp(significand.astype(np.float64), (field - fmt.bias - fmt.fraction_bits).astype(np.int32))
    if fmt.infinities:
        values = np.where(magnitude == fmt.max_finite_magnitude + 1, np.inf, values)
    if fmt.signed:
        values = np.where(words.astype(np.int64) & fmt.sign_mask, -values, values)
    return np.where(is_nan(fmt, words), np.nan, values)


def to_carrier(fmt: Format, words: Words) -> Floats:
    """The values in the format's carrier."""
    if fmt == FLOAT32:
        return words.view(np.float32)
    if fmt == FLOAT16:
        return words.view(np.float16).astype(np.float32)
    if fmt == BFLOAT16:
        return (words.astype(np.uint32) << 16).view(np.float32)
    return to_float64(fmt, words)


def from_carrier(fmt: Format, values: Floats) -> Words:
    """Words of values that are exact, or rounded in a carrier that makes the second rounding harmless."""
    if fmt in (FLOAT32, FLOAT64, FLOAT16):
        name = fmt.name
        words = values.astype(name).view(word_dtype(fmt))
        return np.where(np.isnan(values), word_dtype(fmt).type(fmt.nan), words)
    if fmt == BFLOAT16 and values.dtype == np.float32:
        bits = values.view(np.uint32)
        # half of the last place kept, less one if that is even, carries into it exactly when nearest-even rounds up
        rounded = (bits + (np.uint32(0x7FFF) + ((bits >> 16) & 1))) >> 16
        return np.where(np.isnan(values), np.uint16(0x7FC0), rounded.astype(np.uint16))
    return round_float64(fmt, values.astype(np.float64)).words


@dataclass(frozen=True, slots=True)
class Rounded:
    """Words of numbers rounded to nearest-even, and what happened to each. ``tiny``: below 2**emin when rounded with an
    unbounded exponent; ``undefined``: the format has no word for it (below zero in an unsigned one, a missing zero)."""

    words: Words
    inexact: Mask
    tiny: Mask
    overflow: Mask
    undefined: Mask


def round_float64(fmt: Format, values: Float64, saturate: bool = False) -> Rounded:
    """One rounding of float64 numbers to a format that fits it, in integer arithmetic on their words.

    The same steps as ``rounding.round_exact``. NaN gives the canonical NaN, an infinity ``rounding.infinity_word``."""
    bits = values.view(np.uint64)
    negative = (bits >> np.uint64(63)).astype(np.bool_)
    magnitude64 = (bits & np.uint64(0x7FFFFFFFFFFFFFFF)).astype(np.int64)
    field = magnitude64 >> 52
    significand = (magnitude64 & ((1 << 52) - 1)) + np.where(field > 0, 1 << 52, 0)
    leading = field - 1023  # of float64's own subnormals it is too high, and far below any format all the same
    binade = np.maximum(leading, fmt.emin)
    # significands have 53 bits, so a shift of 63 leaves nothing and is below half
    shift = np.minimum(binade - fmt.fraction_bits - (np.maximum(field, 1) - 1075), 63)
    kept = significand >> shift
    rest = significand - (kept << shift)
    half = np.int64(1) << np.minimum(shift - 1, 62)
    magnitude = ((binade - fmt.emin) << fmt.fraction_bits) + kept - (0 if fmt.subnormals else 1 << fmt.fraction_bits)
    magnitude += (rest > half) | ((rest == half) & (magnitude & 1 == 1))

    nan, infinite = np.isnan(values), np.isinf(values)
    inexact = rest != 0
    if not fmt.subnormals:
        below = leading < fmt.emin
        magnitude = np.where(below, 0, magnitude)
        inexact |= below
    # the numbers that round up to 2**emin at full precision start half a place below it
    edge = np.float64(2.0**fmt.emin) - np.float64(2.0 ** (fmt.emin - fmt.fraction_bits - 2))
    size = np.abs(values)
    rounds_up_at_edge = fmt.fraction_bits > 0 or not fmt.subnormals
    tiny = size < edge if rounds_up_at_edge else size <= edge
    overflow = (magnitude > fmt.max_finite_magnitude) & ~infinite & ~nan

    def signed(positive: int, negative_word: int) -> Any:
        return np.where(negative, negative_word, positive)

    words = magnitude + np.where(negative, fmt.sign_mask, 0)
    if fmt.subnormals:
        words = np.where(magnitude == 0, signed(fmt.zero(0), fmt.zero(1)), words)
    limit = signed(infinity_word(fmt, 0, saturate), infinity_word(fmt, 1, saturate))
    words = np.where(overflow | infinite, limit, words)
    undefined = np.zeros(values.shape, dtype=np.bool_)
    if not fmt.signed:
        undefined = negative & (size > 0)
    if not fmt.subnormals:
        undefined = undefined | (size == 0)
    words = np.where(undefined | nan, fmt.invalid_word, words)
    return Rounded(words.astype(word_dtype(fmt)), inexact, tiny, overflow & ~undefined, undefined & ~nan)


# Error-free transformations, on float64 arrays


def two_sum(a: Float64, b: Float64) -> tuple[Float64, Float64]:
    """s = fl(a + b) and the exact error, s + error = a + b (Knuth); exact unless something overflows."""
    s = a + b
    b_part = s - a
    return s, (a - (s - b_part)) + (b - b_part)


def to_odd(s: Float64, error: Float64) -> Float64:
    """s + error rounded to odd, for s rounded to nearest: of the two numbers around an inexact sum the odd one."""
    bits = s.view(np.int64)
    step = np.where((error > 0) == (s > 0), 1, -1)
    change = (error != 0) & (bits & 1 == 0) & np.isfinite(s)
    return np.where(change, bits + step, bits).view(np.float64)


def fma_in_float64(x: Float64, y: Float64, z: Float64) -> Float64:
    """x * y + z rounded to odd in float64, for operands whose products are exact there."""
    s, error = two_sum(x * y, z)
    return to_odd(s, error)


UFUNCS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "sqrt": np.sqrt,
}
