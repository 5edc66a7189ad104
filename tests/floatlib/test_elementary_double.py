"""The double-double kernels: their bound against MPFR, and what their loops decide against the specification."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

import gmpy2
import numpy as np
import pytest
from elementary_hardest import FOUND, PUBLISHED
from flint import acb, arb, ctx
from floatlib_elementary import MPFR
from floatlib_mpfr import unbounded

from tlir.floatlib.array_conversions import convert
from tlir.floatlib.elementary import elementary, evaluate
from tlir.floatlib.elementary.double import gamma
from tlir.floatlib.elementary.double.cells import DoubleCells
from tlir.floatlib.elementary.double.functions import BINARY, FAR, FUNCTIONS, NAMES
from tlir.floatlib.elementary.double.loop import (
    MAY_BE_EXACT,
    NUMPY_FROM,
    UNDECIDED,
    applies,
    evaluate_double,
    loop,
    marked,
    share_undecided,
)
from tlir.floatlib.elementary.number import Number
from tlir.floatlib.format import FORMATS, Format
from tlir.floatlib.rounding import Flags
from tlir.floatlib.soft import choice, numpy_loop
from tlir.floatlib.soft.machine import NumpyMachine
from tlir.floatlib.words import word_dtype

FLOAT64 = FORMATS["float64"]
OTHERS = [Format(8, 40), Format(9, 24), Format(10, 50), Format(5, 26)]

EDGES = [1 / 16, 0.25, 0.5, 0.6875, 1.0, 1.375, 2.0, 4.0, 6.0, 10.0, 20.0, 100.0, np.pi / 2, np.pi, 1 / 256, 1 / 512]
"""Boundaries between the cases of kernels, and near zeros of the circular functions."""


def _operands(rng: np.random.Generator, count: int) -> np.ndarray:
    """Numbers of all exponents, most of them moderate, and many beside the boundaries and beside one."""
    exponents = np.concatenate([rng.integers(-890, 890, count // 8), rng.integers(-14, 10, count)])
    values = np.ldexp(rng.integers(1 << 52, 1 << 53, exponents.size).astype(float), exponents - 52)
    near = [np.array(EDGES) * (1 + k * 2.0**-52) for k in (-9, -1, 0, 1, 5)]
    beside_one = np.array([1 + sign * 2.0**-k for k in range(1, 52) for sign in (1, -1)])
    values = np.concatenate([values, *near, beside_one])
    return np.concatenate([values, -values])


STAGES = [(name, False) for name in NAMES] + [(name, True) for name in FAR]


@pytest.mark.parametrize(("name", "far"), STAGES)
def test_error_is_below_the_bound(name: str, far: bool) -> None:
    function = FAR[name] if far else FUNCTIONS[name]
    rng = np.random.default_rng(len(name))
    m = NumpyMachine(64)
    columns = [_operands(rng, 250)]
    if name in BINARY:
        columns.append(rng.permutation(columns[0]))
    with np.errstate(all="ignore"):
        inside = function.inside(*(Number(m, column) for column in columns))
        columns = [column[inside] for column in columns]
        numbers = [Number(m, column) for column in columns]
        found = function.evaluate(*numbers)
        result, width = found if function.bounded else (found, numbers[0].like(0.0))
        accepted = np.ones(columns[0].shape, bool) if function.accepts is None else function.accepts(*numbers, result)
    worst = gmpy2.mpfr(0)
    compared = 0
    with unbounded(300):
        rows = zip(*(column.tolist() for column in columns), strict=True)
        widths = np.broadcast_to(width.value, columns[0].shape).tolist()
        values = zip(result.hi.value.tolist(), result.lo.value.tolist(), accepted.tolist(), widths, strict=True)
        for row, (high, low, taken, limit) in zip(rows, values, strict=True):
            exact = MPFR[name](*map(gmpy2.mpfr, row))
            if not taken or not 2.0**-900 < abs(exact) < 2.0**1020:
                continue
            if name in ("erf", "erfc") and abs(row[0]) > 6 and abs(high) >= 1:
                # beyond 6 the value is that at 6, which rounds alike
                assert abs(high) in (1.0, 2.0)
                assert abs(low) < abs(high) * 2.0**-54
                assert abs(exact - high) < abs(high) * 2.0**-54
                continue
            error = abs((gmpy2.mpfr(high) + gmpy2.mpfr(low)) / exact - 1)
            if function.bounded:
                assert error * abs(exact) <= limit, (name, row)
                error *= abs(exact) / gmpy2.mpfr(limit) * function.error
            assert error <= function.error, (name, row)
            worst = max(worst, error)
            compared += 1
    assert compared > 200
    # the bound is not an arbitrary one: within a factor of 500 of what is seen
    assert worst > function.error / 500


@pytest.mark.parametrize("cells", [gamma.LGAMMA_RATIO, gamma.DIGAMMA_RATIO], ids=["lgamma", "digamma"])
def test_cells_are_within_their_bounds(cells: DoubleCells) -> None:
    """By the theorem that they name; and what a machine computes is, at pairs as well."""
    assert cells.bound() <= cells.error
    rng, m = np.random.default_rng(3), NumpyMachine(64)
    middles, halves = np.array(cells.cells()).T
    chosen = rng.integers(0, middles.size, 600)
    places = middles[chosen] + halves[chosen] * rng.uniform(-1, 1, chosen.size)
    lows = places * rng.uniform(-1, 1, places.size) * 2.0**-54
    result = cells.pair_at(Number(m, places), Number(m, lows))
    previous, ctx.prec = ctx.prec, 200
    try:
        worst = 0.0
        rows = zip(places.tolist(), lows.tolist(), result.hi.value.tolist(), result.lo.value.tolist(), strict=True)
        for x, low, high, rest in rows:
            error = abs((arb(high) + rest) / cells.function(acb(arb(x) + low)).real - 1)
            assert error < cells.error, x
            worst = max(worst, float(error))
        assert worst > cells.error / 100
    finally:
        ctx.prec = previous


def _words(fmt: Format, rng: np.random.Generator, count: int) -> np.ndarray:
    """Words of any bits, moderate numbers, integers, and special operands."""
    wide = rng.integers(0, 1 << fmt.width, count, dtype=np.uint64)
    parts = [rng.standard_normal(count) * 3, np.rint(rng.standard_normal(count // 2) * 4)]
    moderate = convert(FLOAT64, fmt, np.concatenate(parts).view(np.uint64)).astype(np.uint64)
    return np.concatenate([wide, moderate])


def _special(fmt: Format) -> list[int]:
    assert fmt.inf is not None
    assert fmt.nan is not None
    one = fmt.encode(0, 1, 0)
    plain = [0, 1, one, one + 1, one - 1, fmt.encode(0, 1, 4), fmt.encode(0, 27, 0), fmt.encode(0, 1, -2)]
    return [
        word | sign for word in (*plain, fmt.max_finite, fmt.inf, fmt.nan, fmt.inf + 1) for sign in (0, fmt.sign_mask)
    ]


def _columns(name: str, fmt: Format, rng: np.random.Generator, count: int) -> list[np.ndarray]:
    special = np.array(_special(fmt), dtype=np.uint64)
    sides = [np.repeat(special, special.size), np.tile(special, special.size)] if name in BINARY else [special]
    return [np.concatenate([_words(fmt, rng, count), side]).astype(word_dtype(fmt)) for side in sides]


def _check(name: str, fmt: Format, columns: list[np.ndarray], words: np.ndarray, marks: np.ndarray) -> None:
    rows = zip(*(column.tolist() for column in columns), strict=True)
    for row, word, mark in zip(rows, words.tolist(), marks.tolist(), strict=True):
        if mark & UNDECIDED:
            continue
        want, raised = elementary(name, fmt, *row)
        assert word == want, (name, [hex(operand) for operand in row])
        assert mark == raised or (mark & MAY_BE_EXACT and raised in (0, Flags.INEXACT)), (name, row, mark, raised)


@pytest.mark.parametrize("fmt", [FLOAT64, *OTHERS], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_words_and_flags_are_those_of_the_specification(name: str, fmt: Format) -> None:
    rng = np.random.default_rng(len(name))
    columns = _columns(name, fmt, rng, 80)
    for stage in (False, True) if name in FAR else (False,):
        words, marks = numpy_loop.run(loop(name, fmt, flags=True, far=stage), tuple(columns))
        assert marks is not None
        _check(name, fmt, columns, words, marks)
        bare, undecided = numpy_loop.run(loop(name, fmt, far=stage), tuple(columns))
        assert undecided is not None
        assert set(undecided.tolist()) <= {0, UNDECIDED}
        assert (undecided == marks & UNDECIDED).all()
        assert (bare == words)[undecided == 0].all()
        share = (marks[80:160] & UNDECIDED != 0).mean()
        assert share < 0.05 or stage


@pytest.mark.skipif(find_spec("llvmlite") is None, reason="needs llvmlite")
@pytest.mark.parametrize("name", NAMES)
def test_compiled_loops_equal_those_on_numpy(name: str) -> None:
    from tlir.floatlib.soft import llvm

    rng = np.random.default_rng(5)
    columns = _columns(name, FLOAT64, rng, 1000)
    for stage in (False, True) if name in FAR else (False,):
        kernel = loop(name, FLOAT64, flags=True, far=stage)
        words, marks = numpy_loop.run(kernel, tuple(columns))
        compiled, compiled_marks = llvm.run(kernel, tuple(columns))
        assert marks is not None
        assert compiled_marks is not None
        both = (marks | compiled_marks) & UNDECIDED == 0
        assert (words == compiled)[both].all()
        assert (marks == compiled_marks)[both & ((marks | compiled_marks) & MAY_BE_EXACT == 0)].all()
        # one is fused and the other not, so single elements may differ in what their bound decides
        assert (marks != compiled_marks).mean() < 0.01


@cache
def _ulps_from_a_midpoint(name: str, *texts: str) -> tuple[float, float]:
    """How far the value is from the middle between two binary64 numbers, in units of their distance, and the value
    rounded by MPFR."""
    operands = [float.fromhex(text) for text in texts]
    with unbounded(300):
        value = abs(MPFR[name](*map(gmpy2.mpfr, operands)))
        scaled = gmpy2.mul_2exp(value, 60) if value < 1 else value
        exponent = gmpy2.get_exp(scaled) - 53
        scaled = gmpy2.div_2exp(scaled, exponent) if exponent >= 0 else gmpy2.mul_2exp(scaled, -exponent)
        distance = float(abs(scaled - gmpy2.floor(scaled) - 0.5))
        value = MPFR[name](*map(gmpy2.mpfr, operands))
    with unbounded(53):
        return distance, float(+value)


@pytest.mark.parametrize(("name", "operands"), [(name, operands) for name, *operands in PUBLISHED + FOUND])
def test_hardest_operands(name: str, operands: list[str]) -> None:
    distance, want = _ulps_from_a_midpoint(name, *operands)
    assert distance < (2.0**-52 if (name, *operands) in PUBLISHED else 2.0**-19)
    bits = [np.full(64, float.fromhex(text)).view(np.uint64) for text in operands]
    # the kernel must not decide what its bound does not
    margin = FUNCTIONS[name].error
    marks = numpy_loop.run(loop(name), tuple(bits))[1]
    assert marks is not None
    assert (marks & UNDECIDED != 0).all() == (margin * 2.0**52 > distance)
    assert evaluate(name, FLOAT64, *bits).view(np.float64).tolist() == [want] * 64


EXACT: list[tuple[str, tuple[float, ...], float]] = [
    *(("exp2", (float(n),), 2.0**n) for n in (-40, -1, 1, 2, 60, 700)),
    *(("log2", (2.0**n,), float(n)) for n in (-1000, -3, 1, 5, 1023)),
    *(("log10", (10.0**n,), float(n)) for n in (1, 2, 10, 22)),
    *(("rsqrt", (4.0**n,), 2.0**-n) for n in (-300, -1, 1, 7, 400)),
    *(("cbrt", (float(n) ** 3 * 8.0**k,), n * 2.0**k) for n in (-131071, -3, 2, 5, 99999) for k in (-200, 0, 100)),
    *(("hypot", (3 * 2.0**k, -4 * 2.0**k), 5 * 2.0**k) for k in (-800, 0, 800)),
    ("hypot", (-20.0, 21.0), 29.0),
    ("power", (3.0, 33.0), 3.0**33),
    ("power", (-3.0, 3.0), -27.0),
    ("power", (2.25, 1.5), 3.375),
    ("power", (65536.0, -0.0625), 0.5),
    ("power", (-1.0, 1e300), 1.0),
]


@pytest.mark.parametrize(("name", "operands", "want"), EXACT)
def test_exact_results_raise_nothing(name: str, operands: tuple[float, ...], want: float) -> None:
    columns = [np.full(64, operand).view(np.uint64) for operand in operands]
    words, flags = evaluate(name, FLOAT64, *columns, flags=True)
    assert words.view(np.float64).tolist() == [want] * 64
    assert not flags.any()
    # without flags no element is left to the specification
    assert evaluate_double(name, FLOAT64, *(np.resize(column, choice.NUMPY_AFTER) for column in columns))[2].size == 0


LIMITS: dict[str, list[float]] = {
    "exponential": [709.7, 709.782712893384, 709.79, 710.0, -690.0, -708.3964185322641, -745.1332191019412, -745.14],
    "exponential_minus_one": [709.7, 709.782712893384, 709.79, -36.7, -37.5, -100.0, 2.0**-53, 2.0**-900, 2.0**-1020],
    "exp2": [1023.9, 1024.0, -995.0, -1022.0, -1074.0, -1074.5, -1075.0, -1075.1, 2.0**-54],
    "logistic": [-690.0, -709.0, -745.14, 36.7, 37.5, 100.0],
    "tanh": [18.7, 19.1, 40.0, 2.0**-900, 2.0**-1020],
    "sinh": [680.0, 710.4758600739439, 710.48, 2.0**-27],
    "cosh": [680.0, 710.4758600739439, 710.48, 2.0**-27],
    "log": [2.0**-1022, 1.7976931348623157e308, 1.0],
    "log_plus_one": [1.7976931348623157e308, -1.0, 2.0**-53, 2.0**-900],
    "asinh": [2.0**45, 2.0**1020, 2.0**-900],
    "acosh": [2.0**45, 2.0**1020, 1.0],
    "atanh": [1.0, 2.0**-900],
    "sine": [6400.0, 2.0**-900, 2.0**-10, 2.0**1023],
    "cosine": [6400.0, 2.0**-900, 2.0**-10, 2.0**-27],
    "tan": [6400.0, 2.0**-900, 1.5707963267948966, 2.0**1023],
    "asin": [1.0, 2.0**-0.5, 2.0**-900],
    "acos": [1.0, 2.0**-0.5, 2.0**-900],
    "atan": [1.0, 2.0**900, 2.0**-900],
    "erf": [5.86, 5.92, 6.0, 2.0**-900],
    "erfc": [5.86, 0.5, 6.0, 26.0, 26.5, 27.2, 27.3, -5.9],
    "rsqrt": [2.0**-1022, 1.7976931348623157e308],
    "cbrt": [2.0**-1022, 1.7976931348623157e308],
}


@pytest.mark.parametrize("name", LIMITS)
def test_limits_between_cases(name: str) -> None:
    """Beside every limit, of both signs: overflow, the subnormal range, and where a kernel hands over to another."""
    centers = np.array([sign * limit for limit in LIMITS[name] for sign in (1, -1)]).view(np.uint64)
    words = (centers[:, None] + np.arange(-3, 4).astype(np.uint64)).reshape(-1)
    words = np.resize(words, max(words.size, choice.NUMPY_AFTER))
    got, flags = evaluate(name, FLOAT64, words, flags=True)
    bare = evaluate(name, FLOAT64, words)
    for index in range(7 * centers.size):
        want = elementary(name, FLOAT64, int(words[index]))
        assert (got[index], flags[index]) == want, float(words[index : index + 1].view(np.float64)[0])
        assert bare[index] == want[0]


def test_limits_of_the_power() -> None:
    rng = np.random.default_rng(8)
    x = np.exp(rng.uniform(-40, 40, 600))
    exponents = np.concatenate(
        [rng.uniform(-750, 715, 400), rng.choice([709.7, 709.78, 710, -690, -708.4, -745.1], 200)]
    )
    y = exponents / np.log(x)
    x[::3] *= -1
    y[::3] = np.rint(y[::3])
    columns = [x.view(np.uint64), y.view(np.uint64)]
    got, flags = evaluate("power", FLOAT64, *columns, flags=True)
    for index, row in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
        assert (got[index], flags[index]) == elementary("power", FLOAT64, *row), (x[index], y[index])


@pytest.mark.parametrize("name", NAMES)
def test_little_is_left_to_the_specification(name: str) -> None:
    rng = np.random.default_rng(5)
    shift = {"acosh": 1.0}.get(name, 0.0)
    scale = 0.2 if name in ("asin", "acos", "atanh") else 2.0
    columns = [rng.uniform(0.01, scale, 5000) + shift for _ in range(2 if name in BINARY else 1)]
    assert share_undecided(name, FLOAT64, *(column.view(np.uint64) for column in columns)) < 2e-3
    assert share_undecided(name, FLOAT64, *(column[:0].view(np.uint64) for column in columns)) == 0


@pytest.mark.parametrize("fmt", [FLOAT64, Format(10, 50)], ids=str)
@pytest.mark.parametrize("name", FAR)
def test_large_angles_are_decided_by_a_second_stage(name: str, fmt: Format) -> None:
    rng = np.random.default_rng(6)
    exponents = rng.integers(14, fmt.emax + 1, 2000)
    values = np.ldexp(rng.uniform(0.5, 1, 2000) * rng.choice([-1, 1], 2000), exponents)
    x = convert(FLOAT64, fmt, values.view(np.uint64)).astype(np.uint64)
    words, flags, undecided = evaluate_double(name, fmt, x, flags=True)
    assert undecided.size < 5
    for index in range(0, 2000, 97):
        if index not in undecided:
            assert (words[index], flags[index]) == elementary(name, fmt, int(x[index]))


def test_small_arrays_take_the_specification(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "_elements", {})
    monkeypatch.setattr(choice, "_compiled", set())
    words = np.full(10, 1.5).view(np.uint64)
    assert evaluate_double("tanh", FLOAT64, words)[2].size == 10
    assert evaluate_double("tanh", FLOAT64, np.resize(words, choice.NUMPY_AFTER))[2].size == 0
    assert evaluate_double("tanh", FLOAT64, np.resize(words, NUMPY_FROM - 1))[2].size == NUMPY_FROM - 1
    assert evaluate_double("tanh", FLOAT64, np.resize(words, NUMPY_FROM))[2].size == 0


def test_marked_elements_are_found() -> None:
    rng = np.random.default_rng(7)
    for size in (0, 1, 7, 8, 9, 1000):
        marks = rng.integers(0, 32, size, dtype=np.uint8)
        marks[rng.random(size) < 0.1] |= UNDECIDED
        marks[rng.random(size) < 0.1] |= MAY_BE_EXACT
        for mask in (UNDECIDED, MAY_BE_EXACT, UNDECIDED | MAY_BE_EXACT):
            assert marked(marks, mask).tolist() == [k for k in range(size) if marks[k] & mask]


def test_loops_are_for_binary64_and_formats_within_it() -> None:
    assert applies("exponential", FLOAT64)
    assert applies("power", Format(8, 50))
    assert not applies("power", Format(8, 51))
    assert not applies("exponential", FORMATS["float32"])
    assert not applies("exponential", Format(11, 40))
    assert not applies("erfcx", FLOAT64)
    assert not applies("exponential", FORMATS["float128"])
    with pytest.raises(KeyError):
        loop("erfcx")
