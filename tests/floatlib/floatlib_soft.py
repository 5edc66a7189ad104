"""What the tests of the kernels share: formats, operands, and running a kernel on rows of words."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from floatlib_exact import SMALL_CUSTOM
from floatlib_mpfr import boundary_word

from tlir.floatlib import arithmetic
from tlir.floatlib.format import FORMATS, Format
from tlir.floatlib.rounding import Flags, Rounding
from tlir.floatlib.soft import numpy_loop
from tlir.floatlib.soft.catalog import Kernel
from tlir.floatlib.words import from_ints, integer_dtype

EIGHT_BITS = [fmt for fmt in FORMATS.values() if fmt.width == 8]
SMALLER = [*SMALL_CUSTOM, *(fmt for fmt in FORMATS.values() if fmt.width < 8)]
SIXTEEN_BITS = [FORMATS["float16"], FORMATS["bfloat16"]]
WIDE = [*(FORMATS[name] for name in ("tfloat32", "float32", "float64", "float128", "float256")),
        Format(6, 17), Format(9, 5, bias=100), Format(15, 64), Format(5, 70), Format(30, 150), Format(11, 30),
        Format(8, 23, infinities=False, nans="negative_zero", signed_zero=False),
        Format(8, 24, signed=False, signed_zero=False), Format(11, 52, infinities=False, nans="none"),
        Format(10, 63, signed_zero=False, subnormals=False, infinities=False, nans="all_ones"),
        Format(7, 24, bias=-20), Format(7, 40, bias=300), Format(1, 62, infinities=False, nans="none")]  # fmt: skip
"""Formats wider than 16 bits: the named ones, odd widths at the ends of limbs, every convention, extreme biases."""

Row = tuple[int, ...]


def modes_for(fmt: Format, exhaustive: bool) -> list[Rounding]:
    """All rounding modes for formats of up to 6 bits and two of 8; else nearest-even and one that differs by format."""
    if exhaustive or fmt.width <= 6 or fmt.name in ("float8_e5m2", "float8_e4m3fn"):
        return list(Rounding)
    others = [mode for mode in Rounding if mode is not Rounding.NEAREST_EVEN]
    return [Rounding.NEAREST_EVEN, others[(fmt.exponent_bits * 7 + fmt.bias + int(fmt.infinities)) % len(others)]]


def all_rows(fmt: Format, operands: int) -> list[Row]:
    return list(itertools.product(range(2**fmt.width), repeat=operands))


def special_words(fmt: Format) -> list[int]:
    words = {0, fmt.sign_mask, fmt.max_finite, fmt.lowest_finite, fmt.min_normal, fmt.min_subnormal, fmt.invalid_word}
    words |= {fmt.min_normal | fmt.sign_mask, max(fmt.min_normal - 1, 0), fmt.word_mask, fmt.min_normal + 1}
    if fmt.inf is not None:
        words |= {fmt.inf, fmt.inf | fmt.sign_mask}
        words |= {fmt.inf + 1} if fmt.nans == "ieee" else set()
    return sorted(words)


def directed_rows(fmt: Format, count: int, operands: int, seed: int = 0) -> list[Row]:
    """Boundary-directed words, half of them of exponents near each other, sums that cancel, and the special words."""
    rng = random.Random(f"{fmt}{seed}")
    special = special_words(fmt)
    rows = []
    for _ in range(count):
        first = boundary_word(fmt, rng)
        near = (first & fmt.magnitude_mask) >> fmt.fraction_bits
        row = [first] + [boundary_word(fmt, rng, near if rng.getrandbits(1) else None) for _ in range(operands - 1)]
        if operands == 3 and rng.getrandbits(1):
            product, _ = arithmetic.multiply(fmt, row[0], row[1])
            row[2] = (max(product - rng.randrange(3), 0) ^ fmt.sign_mask) & fmt.word_mask
        rows.append(tuple(rng.choice(special) if rng.randrange(10) == 0 else word for word in row))
    return rows + list(itertools.islice(itertools.product(special, repeat=operands), 2200))


def columns(widths: Sequence[int], rows: Sequence[Row]) -> tuple[Any, ...]:
    """Arrays of words of these many bits."""
    return tuple(words_of(width, list(column)) for width, column in zip(widths, zip(*rows, strict=True), strict=True))


def words_of(width: int, values: list[int]) -> Any:
    if width <= 64:
        return np.array(values, dtype=integer_dtype(width))
    return from_ints(Format(30, width - 31, infinities=False, nans="none"), values)


def ints_of(width: int, words: Any) -> list[int]:
    if width <= 64:
        return list(words.tolist())
    limbs = words.tolist()
    return [sum(limb << (64 * k) for k, limb in enumerate(row)) for row in limbs]


Loop = Callable[[Kernel, tuple[Any, ...]], tuple[Any, Any]]


def check(kernel: Kernel, rows: Sequence[Row], want: Sequence[tuple[int, int]], loop: Loop = numpy_loop.run) -> None:
    """The kernel's words and flags for the rows are those wanted."""
    words, flags = loop(kernel, columns(kernel.operands, rows))
    got = list(zip(ints_of(kernel.result, words), flags.tolist(), strict=True))
    if got != [(word, int(raised)) for word, raised in want]:
        for row, (word, raised), (expected, expected_flags) in zip(rows, got, want, strict=True):
            shown = [hex(value) for value in row]
            assert (hex(word), Flags(raised)) == (hex(expected), Flags(expected_flags)), (kernel.name, shown)
