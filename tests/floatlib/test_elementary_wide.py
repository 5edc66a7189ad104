"""Fixed-point kernels against the specification: words and flags, marks, special operands, in formats of many sizes."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tlir.floatlib.elementary.scalar import elementary
from tlir.floatlib.elementary.wide.functions import FUNCTIONS
from tlir.floatlib.elementary.wide.loop import applies, loop
from tlir.floatlib.format import Format
from tlir.floatlib.rounding import Flags
from tlir.floatlib.soft import numpy_loop
from tlir.floatlib.soft.catalog import MAY_BE_EXACT, UNDECIDED
from tlir.floatlib.words import from_ints, to_ints

FORMATS = {
    "binary128": Format(15, 112),
    "binary256": Format(19, 236),
    "float64": Format(11, 52),
    "64 bits of precision": Format(15, 63),
    "25 bits": Format(8, 24),
    "30 bits": Format(10, 29),
    "200 bits, small exponents": Format(6, 199),
}

WITHOUT_FLAGS = ("binary128", "25 bits")
"""Formats whose loops without flags are tried too."""


def special(fmt: Format) -> list[int]:
    one, smallest = fmt.encode(0, 1, 0), 1 << fmt.fraction_bits
    assert fmt.inf is not None
    words = [0, 1, 2, fmt.inf, fmt.inf + 1, fmt.inf | 1 << (fmt.fraction_bits - 1), one - 1, one, one + 1]
    words += [fmt.max_finite_magnitude, smallest - 1, smallest, smallest + 1]
    return [word | sign for word in words for sign in (0, fmt.sign_mask)]


def operands(fmt: Format, rng: random.Random, count: int) -> list[int]:
    """Words of any bits, and numbers of ordinary, tiny and huge exponents with fractions of few and of many bits."""
    words = []
    for _ in range(count):
        kind = rng.randrange(5)
        if kind == 0:
            words.append(rng.getrandbits(fmt.width))
            continue
        ranges = [(-3, 3), (-12, 12), (fmt.emin, fmt.exponent_bits + 2), (-2 * fmt.precision, 3)]
        exponent = max(min(rng.randrange(*ranges[kind - 1]), fmt.emax), fmt.emin)
        fraction = rng.getrandbits(fmt.fraction_bits)
        shape = rng.randrange(6)
        if shape == 0:
            fraction >>= rng.randrange(fmt.fraction_bits)
        elif shape == 1:
            fraction = ((1 << fmt.fraction_bits) - 1) ^ (fraction >> rng.randrange(fmt.fraction_bits))
        elif shape == 2:
            fraction = rng.getrandbits(8) << (fmt.fraction_bits - 8)
        words.append(rng.getrandbits(1) << (fmt.width - 1) | (exponent + fmt.bias) << fmt.fraction_bits | fraction)
    return words


def rows(name: str, fmt: Format, count: int) -> list[tuple[int, ...]]:
    rng = random.Random(name + str(fmt))
    if FUNCTIONS[name].operands == 1:
        return [(word,) for word in operands(fmt, rng, count) + special(fmt)]
    pairs = list(zip(operands(fmt, rng, count), operands(fmt, rng, count), strict=True))
    return pairs + [(x, y) for x in special(fmt) for y in special(fmt)]


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_words_and_flags(name: str, kind: str) -> None:
    fmt = FORMATS[kind]
    assert applies(name, fmt)
    wanted = rows(name, fmt, 100)
    columns = tuple(from_ints(fmt, list(column)) for column in zip(*wanted, strict=True))
    expected = [elementary(name, fmt, *row) for row in wanted]
    undecided = 0
    for flags in (False, True) if kind in WITHOUT_FLAGS else (True,):
        words, marks = numpy_loop.run(loop(name, fmt, flags), columns)
        assert marks is not None
        for row, word, mark, (right, raised) in zip(wanted, to_ints(fmt, words), marks, expected, strict=True):
            if mark & UNDECIDED:
                assert mark == UNDECIDED
                undecided += 1
                continue
            assert word == right, (name, fmt, [hex(x) for x in row])
            if mark & MAY_BE_EXACT:
                assert flags
                assert FUNCTIONS[name].exact
            else:
                assert mark == (int(raised) if flags else 0), (name, fmt, [hex(x) for x in row])
    # such as e**x for an x just below half a last place of 1
    assert undecided <= len(wanted) // (4 if FUNCTIONS[name].operands == 2 else 16)


def test_only_formats_of_the_kind_of_ieee_754() -> None:
    assert not applies("log", Format(8, 23))
    assert not applies("log", Format(15, 237))
    assert not applies("log", Format(22, 112))
    assert not applies("log", Format(8, 40, infinities=False, nans="all_ones"))
    assert not applies("lgamma", FORMATS["binary128"])


def test_the_smallest_normal_number_may_be_undecided_but_is_inexact() -> None:
    fmt = FORMATS["binary128"]
    words, marks = numpy_loop.run(loop("exponential", fmt, True), (from_ints(fmt, [1, 2, 3]),))
    assert [int(x) for x in to_ints(fmt, words)] == [fmt.encode(0, 1, 0)] * 3
    assert np.all(marks == int(Flags.INEXACT))
