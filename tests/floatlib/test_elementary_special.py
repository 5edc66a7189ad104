"""Kernels of the inverse error function, the gamma function's family, Bessel functions and the normal distribution
against the specification: words of 16 bits, and words of float32 beside zeros, poles and the ends of cells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

from tlir.floatlib.elementary import elementary
from tlir.floatlib.elementary.narrow.arrays import share_undecided
from tlir.floatlib.elementary.narrow.kernels import KERNELS
from tlir.floatlib.elementary.narrow.loop import loop
from tlir.floatlib.format import FORMATS, Format
from tlir.floatlib.rounding import Flags
from tlir.floatlib.soft import numpy_loop
from tlir.floatlib.soft.catalog import UNDECIDED
from tlir.floatlib.words import word_dtype

try:
    from tlir.floatlib.soft import llvm
except ImportError:
    WAYS: dict[str, Callable[..., Any]] = {"numpy": numpy_loop.run}
else:
    WAYS = {"numpy": numpy_loop.run, "compiled": llvm.run}

FLOAT32 = FORMATS["float32"]
BESSEL = tuple(name for name in KERNELS if name.startswith("bessel_"))
FUNCTIONS = ("erf_inv", "lgamma", "digamma", "erfcx", "ndtri", "log_ndtr", *BESSEL)


def disagreements(
    name: str, fmt: Format, words: np.ndarray, way: str, flags: tuple[bool, ...]
) -> tuple[list[Any], float]:
    """Words whose result or flags are not the specification's, and the share of undecided ones."""
    want = [elementary(name, fmt, word) for word in words.tolist()]
    found, share = [], 0.0
    for asked in flags:
        results, marks = WAYS[way](loop(name, fmt, asked), (words.astype(word_dtype(fmt)),))
        rows = zip(words.tolist(), results.tolist(), marks.tolist(), want, strict=True)
        for word, result, mark, (expected, raised) in rows:
            if mark < UNDECIDED and (result, mark) != (expected, int(raised) if asked else 0):
                found.append((hex(word), hex(result), mark, hex(expected), raised))
        share = max(share, float((marks >= UNDECIDED).mean()))
    return found, share


@pytest.mark.parametrize("fmt", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_words_of_16_bits(name: str, fmt: str) -> None:
    found, undecided = disagreements(name, FORMATS[fmt], np.arange(len(name), 1 << 16, 199), [*WAYS][-1], (True,))
    assert not found
    assert undecided < 0.01


@pytest.mark.exhaustive
@pytest.mark.parametrize("fmt", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_word_of_16_bits(name: str, fmt: str) -> None:
    found, undecided = disagreements(name, FORMATS[fmt], np.arange(1 << 16), [*WAYS][-1], (False, True))
    assert not found
    assert undecided < 0.002


def zeros(function: Callable[[Any], Any], low: float, high: float) -> list[float]:
    """Where a function of SciPy changes its sign."""
    x = np.linspace(low, high, 4001)
    with np.errstate(all="ignore"):
        signs = np.sign(function(x))
    return list(x[:-1][signs[:-1] * signs[1:] < 0])


PLACES: dict[str, list[float]] = {
    "erf_inv": [0.5, 1 - 2.0**-24, *(1 - 2.0**-k for k in range(1, 24)), 2.0**-60, 1e-42],
    "lgamma": [
        0.5,
        1.0,
        2.0,
        3.0,
        8.0,
        1e-40,
        1e30,
        -(2.0**23),
        *zeros(scipy.special.gammaln, -12, -0.01),
        -0.5,
        -1.0,
        -5.0,
    ],
    "digamma": [
        0.5,
        1.46163214,
        8.0,
        1e-40,
        2.0**-126,
        -(2.0**23),
        *zeros(scipy.special.digamma, -12, -0.01),
        -0.5,
        -5.0,
    ],
    "erfcx": [0.125, 20.0, 1e20, -9.3, -1e-20],
    "ndtri": [0.5, 2.0**-24, 2.0**-25, 2.0**-26, 1e-40, 1 - 2.0**-24, 0.1],
    "log_ndtr": [-1e-20, 1e-20, 14.0, -28.3, 28.3, -(2.0**30), -1e19, 1e6, 3e38],
    "bessel_j0": [1.0, 32.0, *zeros(scipy.special.j0, 0.1, 60), 2.0**20, 1e30],
    "bessel_j1": [1.0, 32.0, *zeros(scipy.special.j1, 0.1, 60), 2.0**-60, 1e-42, 2.0**20, 1e30, -1e-42],
    "bessel_y0": [1.0, 32.0, *zeros(scipy.special.y0, 0.1, 60), 1e-40, 2.0**20, 1e30],
    "bessel_y1": [1.0, 32.0, *zeros(scipy.special.y1, 0.1, 60), 1e-38, 1e-40, 2.0**20, 1e30],
    "bessel_i1": [2.0**-60, 1e-42, -1e-42, 63.0, 91.0, 1e30],
    "bessel_i1e": [2.0**-60, 1e-42, -1e-42, 63.0, 1e30],
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_beside_zeros_and_the_ends_of_cells(name: str, way: str) -> None:
    """The four words on either side; what is left undecided lies next to zeros."""
    places = np.array(PLACES.get(name, [1e-40, 2.0**-30, 0.5, 1.0, 63.0, 64.0, 88.0, 600.0, 1e30]), np.float32)
    words = (places.view(np.uint32)[:, None].astype(np.int64) + np.arange(-4, 5)).reshape(-1) % 2**32
    found, undecided = disagreements(name, FLOAT32, words, way, (way == "numpy",))
    assert not found
    assert undecided < 0.05


@pytest.mark.parametrize("name", ["lgamma", "digamma", "bessel_j0", "bessel_j1"])
def test_zeros_leave_little_undecided(name: str) -> None:
    words = (np.random.default_rng(6).standard_normal(1 << 18) * 8).astype(np.float32).view(np.uint32)
    assert share_undecided(name, FLOAT32, words) < 2e-5


def test_sums_of_exponentials_that_cancel() -> None:
    """log(e**x + e**y) near 0, and beside infinities and zeros of either sign."""
    random = np.random.default_rng(8)
    x = -random.exponential(1, 300).astype(np.float32)
    y = (np.log1p(-np.exp(x.astype(np.float64))) + random.standard_normal(300) * 1e-3).astype(np.float32)
    special = np.array([0.0, -0.0, -np.inf, np.inf, np.nan, -np.log(2)], np.float32)
    columns = [np.concatenate([x, np.repeat(special, 6)]), np.concatenate([y, np.tile(special, 6)])]
    bits = tuple(column.view(np.uint32) for column in columns)
    for flags in (False, True):
        words, marks = numpy_loop.run(loop("log_add_exp", FLOAT32, flags), bits)
        assert (marks >= UNDECIDED).sum() < 8
        for left, right, word, mark in zip(*(part.tolist() for part in (*bits, words, marks)), strict=True):
            expected, raised = elementary("log_add_exp", FLOAT32, left, right)
            assert mark >= UNDECIDED or (word, mark) == (expected, int(raised) if flags else 0), (hex(left), hex(right))


def test_the_logarithm_of_a_probability_next_to_one() -> None:
    """Its specification, where 1 less the probability is e**-(10**11) and less."""
    for number in (300.0, 4e5, 1e6, 3e6, 8e6):
        word = int(np.float32(number).view(np.uint32))
        assert elementary("log_ndtr", FLOAT32, word) == (0x80000000, Flags.INEXACT | Flags.UNDERFLOW)
