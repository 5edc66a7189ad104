"""The float64 kernels: their bound against Arb, and what they decide against the specification."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import gmpy2
import numpy as np
import pytest
from floatlib_mpfr import unbounded

from tlir.floatlib import elementary_kernels as kernels
from tlir.floatlib.elementary import elementary, evaluate
from tlir.floatlib.elementary_fast import NAMES, applies, evaluate_fast, share_undecided
from tlir.floatlib.format import FORMATS, Format

FLOAT32 = FORMATS["float32"]

MPFR: dict[str, Callable[..., Any]] = {
    "exponential": gmpy2.exp,
    "exponential_minus_one": gmpy2.expm1,
    "exp2": gmpy2.exp2,
    "log": gmpy2.log,
    "log_plus_one": gmpy2.log1p,
    "log2": gmpy2.log2,
    "log10": gmpy2.log10,
    "logistic": lambda x: 1 / (1 + gmpy2.exp(-x)),
    "tanh": gmpy2.tanh,
    "sinh": gmpy2.sinh,
    "cosh": gmpy2.cosh,
    "asinh": gmpy2.asinh,
    "acosh": gmpy2.acosh,
    "atanh": gmpy2.atanh,
    "sine": gmpy2.sin,
    "cosine": gmpy2.cos,
    "tan": gmpy2.tan,
    "asin": gmpy2.asin,
    "acos": gmpy2.acos,
    "atan": gmpy2.atan,
    "erf": gmpy2.erf,
    "erfc": gmpy2.erfc,
    "rsqrt": gmpy2.rec_sqrt,
    "cbrt": gmpy2.cbrt,
}


def _operands(rng: np.random.Generator, count: int) -> np.ndarray:
    """Numbers of 24 bits: all exponents that kernels take, and many near the boundaries between their cases."""
    exponents = np.concatenate([rng.integers(-490, 490, count), rng.integers(-12, 12, 3 * count)])
    values = np.ldexp(rng.integers(1 << 23, 1 << 24, exponents.size).astype(float), exponents - 24)
    edges = np.array(
        [1 / 16, 0.25, 0.5, 0.75, 1.0, 0.125, 0.375, 0.625, 0.875, np.sqrt(0.5), np.pi / 4, 6.0, 20.0, 2.0]
    )
    near = np.concatenate([edges.astype(np.float32) * np.float32(1 + k * 2.0**-23) for k in range(-4, 5)]).astype(float)
    values = np.concatenate([values, near])
    return np.concatenate([values, -values])


@pytest.mark.parametrize("name", kernels.UNARY)
def test_error_is_below_the_bound(name: str) -> None:
    """Half of it, in fact. Results far outside every format that kernels serve are only meant to be outside."""
    kernel = kernels.UNARY[name]
    x = _operands(np.random.default_rng(len(name)), 300)
    x = x[kernel.inside(x)]
    with np.errstate(all="ignore"):
        results = kernel.function(x)
    compared = 0
    with unbounded(200):
        for operand, result in zip(x.tolist(), results.tolist(), strict=True):
            if np.isnan(result):
                continue  # a reduced angle below the bound
            exact = MPFR[name](gmpy2.mpfr(operand))
            if exact == 0 or not 2.0**-570 < abs(exact) < 2.0**700:
                assert exact == result or (abs(result) < 2.0**-569 if abs(exact) < 1 else abs(result) > 2.0**690)
                continue
            assert abs(gmpy2.mpfr(result) - exact) <= abs(exact) * kernels.ERROR / 2, (name, operand)
            compared += 1
    assert compared > 500


SMALL = [fmt for fmt in FORMATS.values() if fmt.width <= 16]


@pytest.mark.parametrize("fmt", SMALL, ids=str)
@pytest.mark.parametrize("name", kernels.UNARY)
def test_small_formats_equal_the_specification(name: str, fmt: Format) -> None:
    """Every word of the formats of up to 8 bits and a sample of the 16-bit ones, words and flags."""
    words = np.arange(1 << fmt.width).astype(np.uint8 if fmt.width <= 8 else np.uint16)
    if fmt.width > 8:
        words = words[random.Random(name).randrange(101) :: 101]
    for flags in (False, True):
        got, raised, undecided = evaluate_fast(name, fmt, words, flags=flags)
        for index in np.nonzero(~undecided)[0].tolist():
            want = elementary(name, fmt, int(words[index]))
            assert got[index] == want[0], f"{name} of {words[index]:#x}"
            if flags:
                assert raised[index] == want[1], f"{name} of {words[index]:#x}"


@pytest.mark.parametrize("name", NAMES)
def test_float32_equals_the_specification(name: str) -> None:
    rng = np.random.default_rng(11)
    count = 2 if name in kernels.BINARY else 1
    wide = [rng.integers(0, 1 << 32, 500, dtype=np.uint32) for _ in range(count)]
    moderate = [(rng.standard_normal(500) * 4).astype(np.float32).view(np.uint32) for _ in range(count)]
    edges = np.array([0, 1 << 31, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 1, 0x3F800000, 0xBF800000], np.uint32)
    columns = [np.concatenate(parts) for parts in zip(wide, moderate, [edges] * count, strict=True)]
    columns[-1] = np.ascontiguousarray(columns[-1][::-1]) if count == 2 else columns[-1]
    words, flags = evaluate(name, FLOAT32, *columns, flags=True)
    bare = evaluate(name, FLOAT32, *columns)
    for index, row in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
        want = elementary(name, FLOAT32, *row)
        assert (words[index], flags[index]) == want, f"{name} of {[hex(word) for word in row]}"
        assert bare[index] == want[0]


@pytest.mark.parametrize("name", NAMES)
def test_little_is_left_undecided(name: str) -> None:
    rng = np.random.default_rng(5)
    count = 2 if name in kernels.BINARY else 1
    columns = [(np.abs(rng.standard_normal(20000)) * 2 + 1e-3).astype(np.float32).view(np.uint32) for _ in range(count)]
    assert share_undecided(name, FLOAT32, *columns) < 1e-3
    assert share_undecided(name, FLOAT32, *(column[:0] for column in columns)) == 0


def test_kernels_are_for_narrow_formats() -> None:
    assert applies("exponential", Format(9, 23))
    assert not applies("exponential", Format(9, 24))
    assert not applies("exponential", Format(11, 10))
    assert not applies("lgamma", FLOAT32)
    assert not applies("exponential", FORMATS["float64"])


@pytest.mark.parametrize(
    "name", ["exponential", "log", "tanh", "sine", "erf", "cosine", "atan", "exponential_minus_one"]
)
def test_undecided_elements_are_rounded_right(name: str) -> None:
    """The words next to midpoints, found as those that the kernel leaves undecided, against MPFR."""
    rng = np.random.default_rng(3)
    words = np.abs(rng.standard_normal(1 << 17) * 2).astype(np.float32).view(np.uint32)
    hard = words[evaluate_fast(name, FLOAT32, words)[2]]
    hard = hard[hard != 0]
    assert hard.size > 0
    results = evaluate(name, FLOAT32, np.resize(hard, max(hard.size, 64)))[: hard.size].view(np.float32)
    for operand, result in zip(hard.view(np.float32).tolist(), results.tolist(), strict=True):
        with unbounded(24):
            assert float(MPFR[name](gmpy2.mpfr(operand))) == result, (name, operand)
