"""Kernels of complex functions: within their bounds of MPC's values, the specification's words where they decide, and
nearly all ordinary operands decided."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import isfinite, isnan, pi
from typing import Any

import gmpy2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_elementary_complex import BINARY, MPC

from tlir.floatlib.elementary import elementary_complex, evaluate_complex
from tlir.floatlib.elementary.complex import loop
from tlir.floatlib.elementary.complex.kernels import FUNCTIONS, inside
from tlir.floatlib.elementary.complex.parts import Means
from tlir.floatlib.elementary.double.arithmetic import normalized
from tlir.floatlib.elementary.number import Number
from tlir.floatlib.format import FORMATS, Format
from tlir.floatlib.rounding import round_fraction
from tlir.floatlib.soft import numpy_loop
from tlir.floatlib.soft.machine import NumpyMachine
from tlir.floatlib.soft.uint import Uint
from tlir.floatlib.words import Words, word_dtype

FLOAT32, FLOAT64 = FORMATS["float32"], FORMATS["float64"]
NARROW = [FORMATS[name] for name in ("float16", "bfloat16", "tfloat32", "float8_e4m3fn", "float8_e5m2fnuz")]
NARROW += [Format(9, 10), Format(6, 5, infinities=False, nans="all_ones")]
NAMES = loop.NAMES

VALUES = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 0.6, 0.8, pi / 4, pi / 2, pi, 10.0, 20.0, 40.0, 88.0, 104.0, 300.0, 1e4]
VALUES += [1e-10, 1e-20, 1e-30, 1e10, 1e20, 3e38, 700.0, 1 - 2.0**-24, 1 + 2.0**-23, 1 - 2.0**-53, 1 + 2.0**-52]
VALUES += [2.0**-149, 3 * 2.0**-149, 2.0**-126, 5e-324, 1e-140, 1e150, 1e300, np.inf, np.nan]


def words_of(fmt: Format, values: Sequence[float]) -> Words:
    """The numbers rounded to a format, those with the other sign too; infinities and NaN where it has them."""
    found = [round_fraction(fmt, Fraction(value))[0] for value in values if isfinite(value)]
    for has, special in ((np.isinf, fmt.inf), (isnan, fmt.nan)):
        found += [special] if special is not None and any(map(has, values)) else []
    found += [word | fmt.sign_mask for word in found]
    return np.unique(np.array(found, word_dtype(fmt)))


def count_operands(name: str) -> int:
    return 4 if name in BINARY else 2


def grid(name: str, fmt: Format, size: int) -> tuple[Words, ...]:
    """Combinations of these numbers as the parts of all operands."""
    random = np.random.default_rng(len(name))
    return tuple(random.choice(words_of(fmt, VALUES), size) for _ in range(count_operands(name)))


def any_words(name: str, fmt: Format, size: int, seed: int = 0) -> tuple[Words, ...]:
    random = np.random.default_rng(seed)
    return tuple(random.integers(0, 1 << fmt.width, size, word_dtype(fmt)) for _ in range(count_operands(name)))


def ordinary(name: str, fmt: Format, size: int) -> tuple[Words, ...]:
    random, kind = np.random.default_rng(1), f"f{fmt.width // 8}"
    parts = random.standard_normal((count_operands(name), size)).astype(kind)
    return tuple(parts.view(word_dtype(fmt)))


def check(name: str, fmt: Format, columns: tuple[Words, ...]) -> int:
    """That what is decided is so as the specification has it, and flags where they are; the number of the others."""
    words, _, undecided = decided_on_numpy(name, fmt, columns)
    others, flags, without_flags = decided_on_numpy(name, fmt, columns, flags=True)
    decided = np.ones((2, columns[0].size), bool)
    decided[0, undecided], decided[1, without_flags] = False, False
    for k in np.flatnonzero(decided.any(0)):
        row = [int(column[k]) for column in columns]
        expected, raised = elementary_complex(name, fmt, *zip(row[::2], row[1::2], strict=True))
        what = f"{name} {fmt} {[hex(word) for word in row]}"
        assert not decided[0, k] or tuple(map(int, words[k])) == expected, what
        assert not decided[1, k] or (tuple(map(int, others[k])), int(flags[k])) == (expected, int(raised)), what
    return int(undecided.size)


def decided_on_numpy(name: str, fmt: Format, columns: tuple[Words, ...], flags: bool = False) -> tuple[Words, Any, Any]:
    """What ``loop.evaluate_fast`` gives, by NumPy however few elements there are."""

    def run(far: bool, some: tuple[Words, ...]) -> tuple[Words, Any]:
        words, marks = numpy_loop.run(loop.loop(name, fmt, far, flags), some)
        return np.ascontiguousarray(words).view(word_dtype(fmt)).reshape(-1, 2), marks

    words, marks = run(False, columns)
    places = np.flatnonzero(marks & loop.LEFT)
    if places.size and loop.has_angle(name, fmt):
        words[places], marks[places] = run(True, tuple(column[places] for column in columns))
    return words, marks, np.flatnonzero(marks & loop.LEFT)


@pytest.mark.parametrize("fmt", [FLOAT32, FLOAT64], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_special_operands_and_those_at_limits(name: str, fmt: Format) -> None:
    check(name, fmt, grid(name, fmt, 500))


@pytest.mark.parametrize("fmt", [FLOAT32, FLOAT64, *NARROW], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_words_of_any_bits(name: str, fmt: Format) -> None:
    if loop.applies(name, fmt):
        check(name, fmt, any_words(name, fmt, 80))
    else:
        assert (name, fmt.signed_zero) == ("asin", False)


@pytest.mark.parametrize("name", NAMES)
def test_every_pair_of_a_small_format(name: str) -> None:
    fmt = FORMATS["float4_e2m1fn"]
    pairs = np.array(np.meshgrid(*[np.arange(1 << fmt.width, dtype=np.uint8)] * 2)).reshape(2, -1)
    if name in BINARY:
        pairs = np.concatenate([np.repeat(pairs[:, ::7], pairs.shape[1], 1), np.tile(pairs, pairs[:, ::7].shape[1])])
        pairs = pairs[:, ::5]
    # no infinities and no NaN: poles, powers and exact ties are left
    assert check(name, fmt, tuple(pairs)) <= (pairs.shape[1] // 4 if name in BINARY else 8)


@pytest.mark.exhaustive
@pytest.mark.parametrize("fmt", [FORMATS["float6_e3m2fn"], FORMATS["float8_e4m3fn"], FORMATS["float8_e5m2"]], ids=str)
@pytest.mark.parametrize("name", [name for name in NAMES if name not in BINARY])
def test_every_pair_of_other_small_formats(name: str, fmt: Format) -> None:
    pairs = np.array(np.meshgrid(*[np.arange(1 << fmt.width, dtype=np.uint8)] * 2)).reshape(2, -1)
    special = [not fmt.is_finite(word) for word in range(1 << fmt.width)]
    left = 2 * sum(special) * len(special)
    assert check(name, fmt, tuple(pairs)) <= left + 24


def float_words(fmt: Format, values: Any) -> Words:
    return np.asarray(values, f"f{fmt.width // 8}").view(word_dtype(fmt))


def near_circle(random: np.random.Generator, fmt: Format) -> tuple[Words, Words]:
    angle = random.uniform(-pi, pi, 150)
    return float_words(fmt, np.cos(angle)), float_words(fmt, np.sin(angle))


def beside_circle(random: np.random.Generator, fmt: Format) -> tuple[Words, Words]:
    """|1 + z| near 1."""
    angle = random.uniform(-pi, pi, 150)
    return float_words(fmt, np.cos(angle) - 1), float_words(fmt, np.sin(angle))


def unit_part(random: np.random.Generator, fmt: Format) -> tuple[Words, Words]:
    """The real part of e**z near 1, which is where e**x cos y is."""
    x = random.uniform(0, 3, 150)
    return float_words(fmt, x), float_words(fmt, np.arccos(np.exp(-x)))


def opposite(random: np.random.Generator, fmt: Format) -> tuple[Words, Words]:
    """cos y near -e**x for x < 0, where the real part of the logistic function changes its sign."""
    x = -random.uniform(0, 3, 150)
    return float_words(fmt, x), float_words(fmt, np.arccos(-np.exp(x)))


def near_one(random: np.random.Generator, fmt: Format) -> tuple[Words, Words]:
    size = 2.0 ** random.uniform(-60, -1, (2, 150))
    return float_words(fmt, 1 + size[0] * random.choice([-1, 1], 150)), float_words(fmt, size[1])


def near_multiples(random: np.random.Generator, fmt: Format) -> tuple[Words, Words]:
    """Angles near multiples of pi/2 as real and as imaginary parts."""
    at = float_words(fmt, random.integers(1, 4000, 150) * (pi / 2))
    return (float_words(fmt, 2.0 ** random.uniform(-20, 6, 150)), at) if random.integers(2) else (at, at[::-1].copy())


HARD: dict[Callable[..., tuple[Words, Words]], tuple[str, ...]] = {
    near_circle: ("log", "atanh", "atan", "sqrt", "asin", "acos", "acosh"),
    beside_circle: ("log_plus_one",),
    unit_part: ("exponential_minus_one",),
    opposite: ("logistic",),
    near_one: ("log", "atanh", "asin", "acos", "acosh", "asinh", "sqrt", "sign"),
    near_multiples: ("exponential", "sinh", "cosh", "tanh", "sine", "cosine", "tan", "logistic"),
}


@pytest.mark.parametrize("fmt", [FLOAT32, FLOAT64], ids=str)
@pytest.mark.parametrize(("operands", "name"), [(make, name) for make, names in HARD.items() for name in names])
def test_where_terms_cancel(operands: Callable[..., Any], name: str, fmt: Format) -> None:
    left = check(name, fmt, operands(np.random.default_rng(3), fmt))
    # of 24 bits, what cancelling leaves of 106 is enough but for roots beside ties
    assert fmt == FLOAT64 or left <= 12


@pytest.mark.parametrize("fmt", [FLOAT32, FLOAT64], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_ordinary_operands_are_decided(name: str, fmt: Format) -> None:
    assert decided_on_numpy(name, fmt, ordinary(name, fmt, 20000))[2].size <= 1
    assert decided_on_numpy(name, fmt, ordinary(name, fmt, 20000), flags=True)[2].size <= 1


@pytest.mark.parametrize("name", NAMES)
def test_numbers_of_every_size(name: str) -> None:
    """Of float64, both parts of about one size."""
    random = np.random.default_rng(7)
    columns: list[Words] = []
    for _ in range(count_operands(name) // 2):
        size = random.uniform(-1060, 1000, 400)
        parts = 2.0 ** (size + random.uniform(-15, 15, (2, 400))) * random.choice([-1, 1], (2, 400))
        columns += [float_words(FLOAT64, part) for part in parts]
    left = check(name, FLOAT64, tuple(columns))
    if name in ("sqrt", "rsqrt", "sign", "log"):
        assert left < 40


@pytest.mark.parametrize("fmt", [FLOAT32, FLOAT64, *NARROW], ids=str)
@pytest.mark.parametrize("name", [name for name in NAMES if loop.has_classes(name)])
def test_special_operands_are_looked_up(name: str, fmt: Format) -> None:
    if not loop.applies(name, fmt):
        return
    found = words_of(fmt, [0.0, 0.5, 1.0, 2.0, 3.0, 10.0, np.inf, np.nan])
    x, y = (part.reshape(-1) for part in np.meshgrid(found, found))
    m = NumpyMachine(64)
    known = loop.special_parts(m, name, fmt, tuple(Uint(m, [part.astype(np.uint64)], fmt.width) for part in (x, y)))
    (real, imaginary), (left, _) = known.words, known.undecided
    angle, seen = FUNCTIONS[name].angle, 0
    for k, operand in enumerate(zip(x.tolist(), y.tolist(), strict=True)):
        beside = angle is not None and fmt.is_inf(operand[1 - angle]) and fmt.is_finite(operand[angle])
        special = not all(map(fmt.is_finite, operand)) or all(map(fmt.is_zero, operand))
        assert (left[k] == 0) == (special and not (beside and not fmt.is_zero(operand[angle or 0]))), operand
        if left[k] == 0:
            assert (int(real[k]), int(imaginary[k])) == elementary_complex(name, fmt, operand)[0], operand
            seen += 1
    assert seen >= 2


@pytest.mark.parametrize("fmt", [FLOAT32, FLOAT64], ids=str)
@pytest.mark.parametrize("name", [name for name in NAMES if loop.has_angle(name, FLOAT64)])
def test_where_results_overflow_vanish_or_saturate(name: str, fmt: Format) -> None:
    random = np.random.default_rng(9)
    large = np.array([300, 374, 380.5, 690, 709.5, 740, 745.2, 746.5, 1000, 1400, 1500.5, 1e4, 1e100, 1e300, np.inf])
    large = random.choice(large, 500) * random.choice([-1, 1], 500)
    angles = random.standard_normal(500) * 10.0 ** random.integers(-300, 1, 500)
    angles[::9], angles[4::9] = 0.0, -0.0
    parts = float_words(fmt, large.astype(f"f{fmt.width // 8}")), float_words(fmt, angles)
    left = check(name, fmt, parts if FUNCTIONS[name].angle == 1 else parts[::-1])
    assert left < (1 if fmt == FLOAT32 else 330)


@pytest.mark.parametrize("fmt", [FLOAT32, FLOAT64], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_on_the_axes(name: str, fmt: Format) -> None:
    """One part is a zero, or is 1, the other one of any size."""
    random, (low, high) = np.random.default_rng(8), ((-149, 128) if fmt == FLOAT32 else (-1074, 1024))
    columns: list[Words] = []
    for _ in range(count_operands(name) // 2):
        parts = 2.0 ** random.uniform(low, high, (2, 400)) * random.choice([-1, 1], (2, 400))
        parts[random.integers(0, 2, 400), np.arange(400)] = random.choice([0.0, -0.0, 0.0, 1.0, -1.0], 400)
        columns += [float_words(fmt, part) for part in parts]
    check(name, fmt, tuple(columns))


@pytest.mark.parametrize("fmt", [FLOAT32, FLOAT64], ids=str)
@pytest.mark.parametrize("name", [name for name in NAMES if loop.has_angle(name, FLOAT32)])
def test_large_angles_are_decided_by_a_second_stage(name: str, fmt: Format) -> None:
    random = np.random.default_rng(0)
    large = float_words(fmt, 2.0 ** random.uniform(13, 120, 200) * random.choice([-1, 1], 200))
    small = float_words(fmt, random.standard_normal(200))
    columns = (small, large) if FUNCTIONS[name].angle == 1 else (large, small)
    assert check(name, fmt, columns) <= 2


def exact(value: float) -> Any:
    return gmpy2.mpfr(value)


@pytest.mark.parametrize("accurate", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_parts_are_within_their_margins(name: str, accurate: bool) -> None:
    """At numbers of float64 beside limits of cases and at random ones, against MPC; nor are they far too wide."""
    m, function, count = NumpyMachine(64), FUNCTIONS[name], count_operands(name)
    random = np.random.default_rng(5)
    values = [value for value in VALUES if isfinite(value)]
    size = 2.0 ** random.uniform(-30, 8, (count, 360)) * random.choice([-1.0, 1.0], (count, 360))
    size[:, ::4] = random.choice([*values, *(-value for value in values)], (count, 90))
    numbers = [Number(m, column) for column in size]
    held = np.broadcast_to(inside(function, True, False, *numbers), size[0].shape)
    if function.angle is not None:
        held = held & ~np.logical_or(*function.is_beyond(numbers[1 - function.angle]))
    safe = [number.where(held, 0.25) for number in numbers]
    with np.errstate(all="ignore"):
        outcome = function.evaluate(*safe, Means(accurate, wide=True))
    held = held if outcome.certain is None else held & outcome.certain
    parts = [(normalized(part.value), part.margin) for part in (outcome.real, outcome.imaginary)]
    shares = []
    for k in np.flatnonzero(held):
        with gmpy2.context(gmpy2.get_context(), precision=2600):
            # the argument of a negative number is pi, whatever the sign of the other part
            given_parts = [gmpy2.mpfr(float(x.value[k]) + 0.0 if name == "power" else float(x.value[k])) for x in safe]
            z = [gmpy2.mpc(*pair) for pair in zip(given_parts[::2], given_parts[1::2], strict=True)]
            expected = (MPC | BINARY)[name](*z)
            for (value, margin), part in zip(parts, (expected.real, expected.imag), strict=True):
                high, low, width = (
                    float(np.broadcast_to(x.value, held.shape)[k]) for x in (value.hi, value.lo, margin)
                )
                if not 2.0**-900 < abs(high) < 2.0**1000:
                    continue
                error = abs(exact(high) + exact(low) - part)
                assert error <= exact(width), f"{name} {z}: {error / exact(width)}"
                shares.append(float(error / exact(width)))
    assert len(shares) > 100
    # bounds are those of the worst tables' cells and of all terms together
    assert max(shares) > (2.0**-20 if accurate else 2.0**-12)


@pytest.mark.parametrize("fmt", [FLOAT32, FLOAT64, FORMATS["bfloat16"], FORMATS["float8_e4m3fn"]], ids=str)
@pytest.mark.parametrize("name", ["sqrt", "exponential", "log", "tanh", "acos", "power"])
def test_compiled_loops_decide_the_same_words(name: str, fmt: Format) -> None:
    pytest.importorskip("llvmlite")
    from tlir.floatlib.soft import llvm

    columns = tuple(
        np.concatenate(pair) for pair in zip(grid(name, fmt, 2000), any_words(name, fmt, 2000), strict=True)
    )
    for flags in (False, True):
        kernel = loop.loop(name, fmt, False, flags)
        (words, marks), (other, other_marks) = numpy_loop.run(kernel, columns), llvm.run(kernel, columns)
        assert marks is not None
        assert other_marks is not None
        # with a fused operation and without, bounds are the same and values are not; splitting overflows earlier
        left, other_left = marks & loop.LEFT != 0, other_marks & loop.LEFT != 0
        both = ~left & ~other_left
        assert np.array_equal(words[both], other[both])
        assert np.array_equal(marks[both], other_marks[both])
        assert np.count_nonzero(left != other_left) <= 40


@pytest.mark.parametrize("fmt", [FLOAT32, FLOAT64, FORMATS["float16"]], ids=str)
def test_arrays_have_the_words_of_the_specification_with_flags_and_without(fmt: Format) -> None:
    for name in ("exponential", "log", "power"):
        columns = any_words(name, fmt, 600, seed=2)
        operands = [np.stack(pair, 1).reshape(20, 30, 2) for pair in zip(columns[::2], columns[1::2], strict=True)]
        words = evaluate_complex(name, fmt, *operands)
        assert words.shape == (20, 30, 2)
        others, flags = evaluate_complex(name, fmt, *operands, flags=True)
        assert np.array_equal(words, others)
        assert flags.shape == (20, 30)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        expected = [elementary_complex(name, fmt, *zip(row[::2], row[1::2], strict=True)) for row in rows]
        assert words.reshape(-1, 2).tolist() == [list(pair) for pair, _ in expected]
        assert flags.reshape(-1).tolist() == [int(raised) for _, raised in expected]


@given(st.sampled_from([name for name in NAMES if name not in BINARY]), st.floats(width=32), st.floats(width=32))
@settings(max_examples=200, deadline=None)
def test_any_two_numbers(name: str, x: float, y: float) -> None:
    check(name, FLOAT32, tuple(float_words(FLOAT32, [part]) for part in (x, y)))
