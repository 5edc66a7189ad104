"""The kernels of conversion return the words and flags of the specification."""

from __future__ import annotations

import itertools
import random

import pytest
from floatlib_soft import (
    EIGHT_BITS,
    SIXTEEN_BITS,
    SMALLER,
    WIDE,
    all_rows,
    check,
    directed_rows,
    special_words,
)

from tlir.floatlib import arithmetic
from tlir.floatlib import convert as conversion
from tlir.floatlib.format import FORMATS, Format
from tlir.floatlib.rounding import Rounding
from tlir.floatlib.soft import catalog

FLOAT16, BFLOAT16, FLOAT32, FLOAT64 = (FORMATS[name] for name in ("float16", "bfloat16", "float32", "float64"))
EVERY = [*SMALLER, *EIGHT_BITS, *SIXTEEN_BITS, *WIDE]
MODES = list(Rounding)
INTEGERS = list(itertools.product((2, 4, 8, 16, 32, 64), (True, False)))


@pytest.mark.parametrize("source", [*SMALLER, *EIGHT_BITS], ids=str)
def test_every_word_of_up_to_eight_bits_to_every_format(source: Format) -> None:
    rows = all_rows(source, 1)
    for k, target in enumerate(EVERY):
        for rounding, saturate in ((Rounding.NEAREST_EVEN, False), (MODES[k % 6], True), (MODES[(k + 3) % 6], False)):
            if source == target and not saturate:
                continue
            want = [conversion.convert(source, target, *row, rounding, saturate) for row in rows]
            check(catalog.convert(source, target, rounding, True, saturate), rows, want)


@pytest.mark.parametrize("source", SIXTEEN_BITS, ids=str)
def test_every_word_of_sixteen_bits_to_every_named_format(source: Format, exhaustive: bool) -> None:
    rows = all_rows(source, 1)
    others = [Format(3, 2, infinities=True, nans="none"), Format(2, 2, signed=False, signed_zero=False)]
    for k, target in enumerate([*FORMATS.values(), *others]):
        for rounding in MODES if exhaustive else [Rounding.NEAREST_EVEN, MODES[k % 6]][: 1 + (k % 3 == 0)]:
            saturate = rounding is not Rounding.NEAREST_EVEN or source == target
            part = rows if exhaustive or rounding is Rounding.NEAREST_EVEN else rows[k % 5 :: 5]
            want = [conversion.convert(source, target, *row, rounding, saturate) for row in part]
            check(catalog.convert(source, target, rounding, True, saturate), part, want)


def near_ties(source: Format, target: Format, rng: random.Random, count: int) -> list[tuple[int]]:
    """Words of the source at the target's numbers and half way between them, and beside these."""
    rows = []
    lost = source.fraction_bits - target.fraction_bits
    for _ in range(count):
        word, _ = conversion.convert(target, source, rng.getrandbits(target.width))
        nudge = rng.choice([0, 1, -1]) + (1 << (lost - 1) if lost > 0 and rng.getrandbits(1) else 0)
        # the same below the target's normal numbers, where fewer bits are left
        nudge <<= rng.randrange(target.fraction_bits + 1) if rng.getrandbits(1) else 0
        rows.append(((word + nudge) & source.word_mask,))
    return rows


@pytest.mark.parametrize("source", [*WIDE, *SIXTEEN_BITS], ids=str)
def test_wide_words_to_every_format(source: Format) -> None:
    directed = directed_rows(source, 60, 1)
    rng = random.Random(f"ties{source}")
    for k, target in enumerate(EVERY):
        if source == target:
            continue
        rows = directed + near_ties(source, target, rng, 60)
        for rounding, saturate in ((Rounding.NEAREST_EVEN, k % 2 == 1), (MODES[k % 6], k % 3 == 0)):
            want = [conversion.convert(source, target, *row, rounding, saturate) for row in rows]
            check(catalog.convert(source, target, rounding, True, saturate), rows, want)


def test_binary64_rounds_once_to_small_formats() -> None:
    bfloat16, e4m3fn = FORMATS["bfloat16"], FORMATS["float8_e4m3fn"]
    tie = FLOAT64.encode(0, 2**40 + 2**32 + 1, -40)  # 1 + 2**-8 + 2**-40, of which binary32 drops the last term
    above = bfloat16.encode(0, 129, -7)  # 1.0078125
    check(catalog.convert(FLOAT64, bfloat16, flags=True), [(tie,)], [(above, 1)])
    below = FLOAT64.encode(1, 432, 0) - 1  # -431.99999999999994
    check(catalog.convert(FLOAT64, e4m3fn, flags=True), [(below,)], [(e4m3fn.encode(1, 416, 0), 1)])
    least = FORMATS["float8_e8m0fnu"]  # 2**-127 is the word 0, which is even: the tie 1.5 * 2**-127 goes there
    check(catalog.convert(FLOAT64, least, flags=True), [(FLOAT64.encode(0, 3, -128),)], [(0, 1)])


@pytest.mark.parametrize("fmt", [*SMALLER, *EIGHT_BITS, *SIXTEEN_BITS, *WIDE], ids=str)
def test_round_to_integral(fmt: Format) -> None:
    rows = all_rows(fmt, 1) if fmt.width <= 16 else directed_rows(fmt, 500, 1)
    for rounding in MODES if fmt.width != 16 else MODES[::2]:
        want = [arithmetic.round_to_integral(fmt, *row, rounding) for row in rows]
        check(catalog.round_to_integral(fmt, rounding, True), rows, want)


@pytest.mark.parametrize("fmt", [*SMALLER, *EIGHT_BITS, *SIXTEEN_BITS, *WIDE], ids=str)
def test_to_integer(fmt: Format) -> None:
    rows = all_rows(fmt, 1) if fmt.width <= 8 else directed_rows(fmt, 250, 1)
    rng = random.Random(f"integers{fmt}")
    for width in (8, 16, 32, 64):  # at and beside the bounds and halves
        for value in (2**width, 2 ** (width - 1), -(2 ** (width - 1)), rng.getrandbits(width)):
            word, _ = conversion.from_integer(fmt, value)
            rows += [((word + k) & fmt.word_mask,) for k in (-1, 0, 1)]
    for k, (width, signed) in enumerate(INTEGERS):
        for rounding, saturating in ((Rounding.TOWARD_ZERO, True), (MODES[k % 6], False)):
            want = [conversion.to_integer(fmt, *row, width, signed, rounding, saturating) for row in rows]
            patterns = [(value & (2**width - 1), raised) for value, raised in want]
            check(catalog.to_integer(fmt, width, signed, rounding, True, saturating), rows, patterns)


@pytest.mark.parametrize("fmt", SIXTEEN_BITS, ids=str)
def test_every_word_of_sixteen_bits_to_integers(fmt: Format, exhaustive: bool) -> None:
    rows = all_rows(fmt, 1)
    for width, signed in INTEGERS if exhaustive else ((8, True), (16, False), (64, True)):
        for saturating in (True, False):
            want = [conversion.to_integer(fmt, *row, width, signed, saturating=saturating) for row in rows]
            patterns = [(value & (2**width - 1), raised) for value, raised in want]
            kernel = catalog.to_integer(fmt, width, signed, Rounding.TOWARD_ZERO, True, saturating)
            check(kernel, rows, patterns)


@pytest.mark.parametrize("fmt", EVERY, ids=str)
def test_from_integer(fmt: Format) -> None:
    rng = random.Random(7)
    for k, (width, signed) in enumerate(INTEGERS):
        mask = 2**width - 1
        patterns = [rng.getrandbits(width) >> rng.randrange(width) for _ in range(40)] + [0, mask, mask >> 1, 1]
        patterns += [min(mask, 2**j + d) for j in range(1, width) for d in (-1, 0, 1)]
        patterns = list(range(2**width)) if width <= 8 else patterns
        values = [n - 2**width if signed and n >> (width - 1) else n for n in patterns]
        for rounding in {Rounding.NEAREST_EVEN, MODES[k % 6]}:
            want = [conversion.from_integer(fmt, value, rounding) for value in values]
            check(catalog.from_integer(fmt, width, signed, rounding, True), [(n,) for n in patterns], want)


@pytest.mark.parametrize("fmt", EVERY, ids=str)
def test_scale_b(fmt: Format) -> None:
    rows = all_rows(fmt, 1) if fmt.width <= 6 else directed_rows(fmt, 100, 1)
    far = 2**fmt.exponent_bits + fmt.precision
    for n, rounding in zip((0, 1, -1, 3, -fmt.precision, far, -far), itertools.cycle(MODES), strict=False):
        want = [arithmetic.scale_b(fmt, *row, n, rounding) for row in rows]
        check(catalog.scale_b(fmt, n, rounding, True), rows, want)


def test_special_words_are_special() -> None:
    assert {0x7F800000, 0xFF800000, 0x7F800001, 0x7FC00000, 1, 0x007FFFFF} <= set(special_words(FLOAT32))
