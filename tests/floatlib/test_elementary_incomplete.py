"""Kernels of the incomplete gamma and beta functions and of derivatives: their bounds against Arb, what the proofs take
from tests, exact values, and words against the specification."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx

from tlir.floatlib.elementary import ElementaryError, elementary
from tlir.floatlib.elementary.narrow import beta, incomplete, incomplete_derivative
from tlir.floatlib.elementary.narrow.arrays import share_undecided
from tlir.floatlib.elementary.narrow.kernels import KERNELS
from tlir.floatlib.elementary.narrow.loop import loop
from tlir.floatlib.elementary.narrow.outcome import Outcome
from tlir.floatlib.elementary.number import Number
from tlir.floatlib.format import FORMATS, Format
from tlir.floatlib.rounding import round_exact
from tlir.floatlib.soft import numpy_loop
from tlir.floatlib.soft.catalog import UNDECIDED
from tlir.floatlib.soft.machine import NumpyMachine
from tlir.floatlib.words import word_dtype

try:
    from tlir.floatlib.soft import llvm
except ImportError:
    WAYS: dict[str, Callable[..., Any]] = {"numpy": numpy_loop.run}
else:
    WAYS = {"numpy": numpy_loop.run, "compiled": llvm.run}

FLOAT32 = FORMATS["float32"]
BETA = "regularized_incomplete_beta"


def slope(a: arb, x: arb) -> arb:
    """The derivative of P(a, x) in a (DLMF 8.8.14 with the series of the lower function)."""
    power = (a * x.log()).exp() / (a * a * a.gamma())
    return (x.log() - a.digamma()) * x.gamma_lower(a, 1) - power * (-x).hypgeom([a, a], [a + 1, a + 1])


def sample_slope(a: arb, x: arb) -> arb:
    return -slope(a, x) * a.gamma() * (x + (1 - a) * x.log()).exp()


EXACT: dict[str, Callable[..., arb]] = {
    "igamma": lambda a, x: x.gamma_lower(a, 1),
    "igammac": lambda a, x: x.gamma_upper(a, 1),
    "igamma_grad_a": slope,
    "random_gamma_grad": sample_slope,
    BETA: lambda a, b, x: x.beta_lower(a, b, 1),
}
DERIVATIVES = ("igamma_grad_a", "random_gamma_grad")
"""They are refused for operands from 2**12 on."""
ULP = 2.0**-53


class FusedMachine(NumpyMachine):
    """NumPy with kernels that take fused multiply-add to be one instruction."""

    has_fma = True


MACHINES = {"fused": FusedMachine(64), "separate": NumpyMachine(64)}


def short(values: Any) -> np.ndarray:
    return np.asarray(values, np.float64).astype(np.float32).astype(np.float64)


def gamma_operands(random: np.random.Generator, count: int) -> list[np.ndarray]:
    """Shapes and arguments of every size, near the middle, small integers, and beside the kernels' boundaries."""
    wide = np.exp(random.uniform(-14, 4.5, count)), np.exp(random.uniform(-14, 5, count))
    a = np.exp(random.uniform(-1, 4.6, count))
    middle = a, np.maximum(a + random.standard_normal(count) * 3 * np.sqrt(a), 1e-3)
    whole = random.integers(1, 40, count).astype(float), np.exp(random.uniform(-3, 4.5, count))
    edges = random.choice([0.25, 1.0, 2.0, 7.0, 96.0, 97.0, 98.0], count), random.choice([1e-20, 1.0, 2.0, 96.0], count)
    edges = tuple(part * (1 + random.integers(-3, 4, count) * 2.0**-20) for part in edges)
    return [short(np.concatenate(parts)) for parts in zip(wide, middle, whole, edges, strict=True)]


def beta_operands(random: np.random.Generator, count: int) -> list[np.ndarray]:
    """Moderate parameters, very different ones, small integers, and those beside the kernel's boundaries."""
    a, b = np.exp(random.uniform(-3, 4.5, (2, count)))
    rows = [(a, b, random.uniform(0, 1, count)), (a, b, random.beta(a, b))]
    rows.append((*np.exp(random.uniform(-14, 4, (2, count))), 1 / (1 + np.exp(random.uniform(-16, 16, count)))))
    large = np.exp(random.uniform(4, 9, count))
    rows += [(a, large, random.beta(a, large)), (large, a, random.beta(large, a))]
    rows.append((*random.integers(1, 30, (2, count)).astype(float), random.uniform(0, 1, count)))
    edges = random.choice([1e-3, 1.0, 2.0, 7.0, 64.0, 97.0], (2, count)) * (
        1 + random.integers(-3, 4, (2, count)) * 2.0**-20
    )
    rows.append((*edges, random.choice([2.0**-40, 1 / 32, 0.5, 31 / 32, 1 - 2.0**-24, 63 / 64], count)))
    a, b, x = (short(np.concatenate(parts)) for parts in zip(*rows, strict=True))
    return [a, b, x.clip(2.0**-100, 1 - 2.0**-24)]


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", EXACT)
def test_errors_are_within_the_bounds(name: str, machine: str) -> None:
    """And most bounds are below 2**-41, so that little is undecided."""
    random = np.random.default_rng(len(name))
    columns = (beta_operands if name == BETA else gamma_operands)(random, 120)
    with np.errstate(all="ignore"):
        outcome = KERNELS[name].function(*(Number(MACHINES[machine], column) for column in columns))
    assert isinstance(outcome, Outcome)
    assert outcome.absolute is not None
    values, widths = outcome.value.value, outcome.absolute.value
    known = ~np.asarray(outcome.doubtful) & (abs(values) > 2.0**-500)
    previous, ctx.prec = ctx.prec, 600
    worst = 0.0
    try:
        for index in np.flatnonzero(known).tolist():
            exact = EXACT[name](*(arb(float(column[index])) for column in columns))
            assert exact.rel_accuracy_bits() > 80
            error = float(abs(arb(float(values[index])) - exact))
            assert error <= widths[index], [column[index] for column in columns]
            worst = max(worst, error / widths[index])
    finally:
        ctx.prec = previous
    assert worst > 0.005
    assert (widths[known] < abs(values[known]) * 2.0**-41).mean() > 0.85


def test_fractions_converge() -> None:
    """The products of the factors by which both fractions come nearer to their values, with what they begin with."""
    product = 1.0
    for k in range(1, incomplete.FRACTION_STEPS + 1):
        product *= k / (math.sqrt(incomplete.FRACTION_FROM) + math.sqrt(incomplete.FRACTION_FROM + k)) ** 2
    assert product * math.log1p((incomplete.FRACTION_STEPS + 1) / incomplete.FRACTION_FROM) < 2.0**-46
    ratio = (1 - beta.LEAST) / beta.LEAST
    count = beta.FRACTION_STEPS // 2
    elements = [
        [ratio, *(ratio * (1 + 1 / (2 * m)) / 4 for m in range(1, count + 1))],
        [(m + 1) / beta.LEAST_PRODUCT for m in range(count + 1)],
    ]
    for row in elements:
        product, total = 1.0, 0.0
        for element in row[:-1]:
            total += product
            product *= element / (1 + math.sqrt(1 + element)) ** 2
        assert product * math.log1p(row[-1]) < 2.0**-46
        assert total < 2.6


def test_the_derivative_of_the_fraction_converges() -> None:
    """What s_1 and o_1 lack at x = 2, where all bounds are largest: for the end of the fraction after so many steps,
    and for 20 u in each."""
    x, count = incomplete.FRACTION_FROM, incomplete_derivative.FRACTION_STEPS
    rows = [(k, k / (math.sqrt(x) + math.sqrt(x + k)) ** 2) for k in range(5000, 0, -1)]
    slopes = [0.0]
    for k, factor in rows:
        slopes.append(factor * (slopes[-1] + 1 / k))
    for end, width in ((math.log1p((count + 1) / x), 0.0), (0.0, 20 * ULP)):
        lack, error = end, slopes[5000 - count] if end else 0.0
        for (k, factor), above in zip(rows[-count:], slopes[-count - 1 : -1], strict=True):
            error = factor * (error + (math.expm1(lack) + width) * (above + 1 / k))
            lack = factor * lack + width
        assert lack < (2.0**-51 if end else 24 * ULP)
        assert error < (2.0**-48 if end else 7 * ULP)


def test_elements_of_the_fraction_of_the_beta_function() -> None:
    """That they are no more than the proof says, for parameters 0 < b <= 1."""
    a = np.exp(np.linspace(-40, 30, 1001))
    for m in range(beta.FRACTION_STEPS // 2 + 1):
        element = (m + 1) * (a + m) / ((a + 2 * m) * (a + 2 * m + 1))
        limit = 1 if m == 0 else (1 + 1 / (2 * m)) / 4
        assert np.all(element <= limit * (1 + 1e-12))
        assert np.all(element * a <= (m + 1) * (1 + 1e-12))


def test_the_fraction_of_the_beta_function() -> None:
    """By itself, in and beside the corners of the region in which it serves, and far inside float64's range."""
    random = np.random.default_rng(3)
    p = np.concatenate([np.exp(random.uniform(-20, 9, 80)), np.full(8, 2.0**40), np.full(8, 2.0**-100)])
    q = np.resize([1.0, 2.0**-30, 0.5, 0.999], p.size)
    w = np.where(np.arange(p.size) % 2 == 0, np.maximum(beta.LEAST, 2.0 / p), random.uniform(beta.LEAST, 1, p.size))
    w = short(w.clip(2.0**-24, 1 - 2.0**-24))
    kept = (w >= beta.LEAST) | (p * w >= beta.LEAST_PRODUCT)
    p, q, w = short(p[kept]), q[kept], w[kept]
    got = beta._fraction(*(Number(MACHINES["separate"], part) for part in (p, q, 1 - w, w))).value
    previous, ctx.prec = ctx.prec, 400
    try:
        for a, b, y, value in zip(*(part.tolist() for part in (p, q, w, got)), strict=True):
            z = (1 - arb(y)) / y
            exact = (-z).hypgeom_2f1(1, 1 - arb(b), arb(a) + 1) / (arb(a) * y)
            assert abs(arb(value) / exact - 1) < 200 * ULP, (a, b, y)
    finally:
        ctx.prec = previous


def test_terms_of_the_series_near_zero() -> None:
    """Their magnitudes add up to less than 1.85 x for x < 2, and the first that is left out is below x u / 8."""
    total = sum(2.0**n / (math.factorial(n) * n) for n in range(1, incomplete.SERIES_TERMS + 1))
    assert total < 2 * 1.85
    n = incomplete.SERIES_TERMS + 1
    assert 2.0**n / (math.factorial(n) * n) < 2 * ULP / 8


def specified(name: str, fmt: Format, row: tuple[int, ...]) -> tuple[int, int] | None:
    """The specification's word and flags; None where it refuses the operands."""
    try:
        word, raised = elementary(name, fmt, *row)
    except ElementaryError:
        return None
    return word, int(raised)


def wrong(name: str, fmt: Format, columns: list[np.ndarray], way: str, flags: bool) -> tuple[list[Any], float]:
    """Rows whose word or flags are decided and not the specification's, and the share of the undecided."""
    columns = [column.astype(word_dtype(fmt)) for column in columns]
    words, marks = WAYS[way](loop(name, fmt, flags), tuple(columns))
    found = []
    for row, word, mark in zip(
        zip(*(column.tolist() for column in columns), strict=True), words.tolist(), marks.tolist(), strict=True
    ):
        if mark < UNDECIDED:
            want = specified(name, fmt, row)
            if want is None or (word, mark) != (want[0], want[1] if flags else 0):
                found.append((row, word, mark, want))
    return found, float((marks >= UNDECIDED).mean())


def word_of(fmt: Format, value: float) -> int:
    ratio = Fraction(value)
    exponent = ratio.denominator.bit_length() - 1
    return round_exact(fmt, int(value < 0), abs(ratio.numerator), -exponent)[0]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", EXACT)
def test_words_of_float32(name: str, way: str) -> None:
    random = np.random.default_rng(7)
    columns = (beta_operands if name == BETA else gamma_operands)(random, 60)
    bits = [column.astype(np.float32).view(np.uint32) for column in columns]
    for flags in (False, True):
        found, share = wrong(name, FLOAT32, bits, way, flags)
        assert not found
        assert share < 0.1


@pytest.mark.parametrize("fmt", ["float16", "bfloat16", "float8_e4m3fn", "float8_e8m0fnu", "float6_e3m2fn"])
@pytest.mark.parametrize("name", EXACT)
def test_words_of_small_formats(name: str, fmt: str) -> None:
    form = FORMATS[fmt]
    random = np.random.default_rng(form.width)
    columns = (beta_operands if name == BETA else gamma_operands)(random, 30)
    moderate = [[word_of(form, value) for value in column.tolist()] for column in columns]
    drawn = [np.concatenate([part, random.integers(0, 1 << form.width, 120)]) for part in moderate]
    found, share = wrong(name, form, drawn, "numpy", True)
    assert not found
    assert share < (0.4 if name in DERIVATIVES else 0.2)


@pytest.mark.parametrize("flags", [False, True])
@pytest.mark.parametrize("name", EXACT)
def test_ends_are_decided(name: str, flags: bool) -> None:
    """Zeros, infinities, NaN, operands below 0 and, of probabilities, above 1, in every combination."""
    ends = np.array([0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, 0.5, 2.0**-140], np.float32).view(np.uint32)
    ends = np.append(ends, np.uint32(0x7F800001))
    count = len(KERNELS[name].fallback)
    columns = [part.ravel() for part in np.meshgrid(*[ends] * count)]
    for way in WAYS:
        found, share = wrong(name, FLOAT32, columns, way, flags)
        assert not found
        assert share < (0.04 if flags and name == BETA else 1e-9)


def test_rational_values_of_the_beta_function() -> None:
    """Small integers and few bits: many results are numbers of the format, which raise no flag, or halfway between."""
    a, b, x = (part.ravel() for part in np.meshgrid([1.0, 2.0, 3.0, 0.5], [1.0, 2.0, 5.0, 0.25], np.arange(1, 16) / 16))
    for fmt in (FLOAT32, FORMATS["float16"], FORMATS["float8_e5m2"]):
        columns = [np.array([word_of(fmt, value) for value in part.tolist()]) for part in (a, b, x)]
        found, share = wrong(BETA, fmt, columns, "numpy", True)
        assert not found
        assert share < 0.75
        assert not wrong(BETA, fmt, columns, "numpy", False)[0]
    one = np.float32(1.0).view(np.uint32)
    x_words = np.random.default_rng(1).integers(1, one, 5000).astype(np.uint32)
    ones = np.full_like(x_words, one)
    for flags in (False, True):
        words, marks = numpy_loop.run(loop(BETA, FLOAT32, flags), (ones, ones, x_words))
        assert not np.any(marks)
        assert np.array_equal(words, x_words)


@pytest.mark.parametrize("name", EXACT)
def test_little_is_left_of_what_distributions_ask(name: str) -> None:
    random = np.random.default_rng(9)
    a = np.exp(random.uniform(-3, 4, 1 << 15))
    if name == BETA:
        b = np.exp(random.uniform(-3, 4, a.size))
        columns = [a, b, random.beta(a, b).clip(1e-30, 1 - 2.0**-24)]
    else:
        columns = [a, random.gamma(a).clip(1e-30)]
    words = [column.astype(np.float32).view(np.uint32) for column in columns]
    assert share_undecided(name, FLOAT32, *words) < 4e-4


@pytest.mark.exhaustive
@pytest.mark.parametrize("fmt", ["float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"])
@pytest.mark.parametrize("name", [name for name in EXACT if name != BETA])
def test_every_pair_of_words(name: str, fmt: str) -> None:
    words = np.arange(1 << FORMATS[fmt].width)
    columns = [part.ravel() for part in np.meshgrid(words, words)]
    for flags in (False, True):
        assert not wrong(name, FORMATS[fmt], columns, [*WAYS][-1], flags)[0]


@pytest.mark.exhaustive
@pytest.mark.parametrize("fmt", ["float6_e2m3fn", "float6_e3m2fn"])
def test_every_triple_of_words(fmt: str) -> None:
    words = np.arange(1 << FORMATS[fmt].width)
    columns = [part.ravel() for part in np.meshgrid(words, words, words)]
    assert not wrong(BETA, FORMATS[fmt], columns, [*WAYS][-1], True)[0]
