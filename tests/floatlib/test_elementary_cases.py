"""Elementary functions where the enclosures alone would not end, at special values, and where MPFR has no function."""

from __future__ import annotations

import random
from fractions import Fraction

import gmpy2
import pytest
from floatlib_mpfr import to_mpfr, unbounded

from tlir.floatlib.convert import convert, to_fraction
from tlir.floatlib.elementary import NAMES, ArgumentTooLargeError, elementary
from tlir.floatlib.elementary.scalar import UNARY
from tlir.floatlib.format import FORMATS, Format
from tlir.floatlib.rounding import Flags, round_exact, round_fraction

NONE = Flags(0)
INEXACT = Flags.INEXACT
TINY_INEXACT = Flags.INEXACT | Flags.UNDERFLOW
HUGE_INEXACT = Flags.INEXACT | Flags.OVERFLOW
HUGE_RANGE = Format(30, 20)
LONG = Format(15, 4096)
SMALL_FORMATS = [fmt for fmt in FORMATS.values() if fmt.width <= 8]


@pytest.mark.parametrize("fmt", [FORMATS["float32"], FORMATS["float128"], HUGE_RANGE, LONG], ids=str)
def test_exact_results_raise_nothing(fmt: Format) -> None:
    def word(value: Fraction | int) -> int:
        return round_fraction(fmt, value)[0]

    rows = [
        ("exp2", [-7], Fraction(1, 128)),
        ("log2", [Fraction(1, 1024)], -10),
        ("log10", [100000], 5),
        ("cbrt", [-343], -7),
        ("rsqrt", [Fraction(1, 64)], 8),
        ("hypot", [-3, 4], 5),
        ("power", [Fraction(81, 16), Fraction(-3, 4)], None),
        ("power", [Fraction(16, 81 * 3), 0], 1),
        ("power", [81, Fraction(3, 4)], 27),
        ("power", [-3, 5], -243),
        ("power", [Fraction(1, 4), Fraction(-5, 2)], 32),
        ("power", [2, -20], Fraction(1, 2**20)),
        ("lgamma", [1], 0),
        ("lgamma", [2], 0),
        ("acos", [1], 0),
        ("acosh", [1], 0),
        ("log", [1], 0),
    ]
    for name, operands, value in rows:
        got = elementary(name, fmt, *(word(operand) for operand in operands))
        if value is None:
            assert got[1] == INEXACT
        else:
            assert got == (word(value), NONE), f"{name}{operands}"


def test_midpoints_go_to_even() -> None:
    """Results halfway between two numbers of the format: 1 + 2**-3 - 2**-k and its like as powers and roots."""
    fmt = Format(8, 3)
    assert elementary("power", fmt, *_words(fmt, Fraction(5, 2), 2)) == (_words(fmt, 6)[0], INEXACT)  # 6.25
    assert elementary("power", fmt, *_words(fmt, 3, 3)) == (_words(fmt, 28)[0], INEXACT)  # 27 between 26 and 28
    assert elementary("power", fmt, *_words(fmt, 9, Fraction(3, 2))) == (_words(fmt, 28)[0], INEXACT)
    wide = Format(8, 2)
    assert elementary("log2", wide, *_words(wide, Fraction(1, 2**9))) == (_words(wide, -8)[0], INEXACT)  # -9
    half = FORMATS["float32"]
    smallest_half = _words(half, -150)
    assert elementary("exp2", half, *smallest_half) == (0, TINY_INEXACT)
    assert elementary("power", half, *_words(half, 2, -150)) == (0, TINY_INEXACT)
    assert elementary("power", half, *_words(half, -2, -149)) == (half.sign_mask | 1, NONE)


ODD_TOWARD_ZERO = ("tanh", "sine", "asinh", "atan")
ODD_AWAY = ("sinh", "tan", "asin", "atanh")


@pytest.mark.parametrize("fmt", [FORMATS["float128"], HUGE_RANGE, LONG], ids=str)
def test_tiny_arguments_round_to_themselves(fmt: Format) -> None:
    """f(x) = x (1 + tiny): nearest-even gives x back, inexact; tiny results underflow too."""
    normal = fmt.encode(1, (1 << fmt.fraction_bits) + 1, fmt.emin + 5)
    for name in (*ODD_TOWARD_ZERO, *ODD_AWAY, "exponential_minus_one", "log_plus_one"):
        for word in (normal, fmt.min_normal + 7):
            assert elementary(name, fmt, word) == (word, INEXACT), name
        assert elementary(name, fmt, fmt.min_subnormal) == (fmt.min_subnormal, TINY_INEXACT), name
    one = fmt.encode(0, 1, 0)
    for name in ("exponential", "exp2", "cosine", "cosh", "erfc"):
        for word in (normal, 1, fmt.min_normal):
            assert elementary(name, fmt, word) == (one, INEXACT), name
    assert elementary("logistic", fmt, normal) == (fmt.encode(0, 1, -1), INEXACT)
    assert elementary("power", fmt, fmt.encode(0, 3, 0), normal) == (one, INEXACT)


def test_tiny_arguments_know_their_side() -> None:
    """A deviation far below the last place still decides whether the smallest normal number counts as tiny."""
    fmt = HUGE_RANGE
    for name in ODD_TOWARD_ZERO:
        # just below 2**emin, but rounded to the precision it is 2**emin: not tiny
        assert elementary(name, fmt, fmt.min_normal) == (fmt.min_normal, INEXACT)
    # the largest subnormal has one bit less than the precision, so the deviation stays below 2**emin
    for name in ODD_AWAY:
        assert elementary(name, fmt, fmt.min_normal - 1) == (fmt.min_normal - 1, TINY_INEXACT)
    # y/x is a midpoint, and the angle is less: 2**-k (1 + 2**-21) is a product of the format's numbers with 1 + 2**-20
    y = fmt.encode(0, (1 << 20) + 1, -(2**25))
    x = fmt.encode(0, 1, 2**20)
    assert elementary("atan2", fmt, y, x) == (fmt.encode(0, (1 << 20) + 1, -(2**25) - 2**20), INEXACT)
    # -1/x - gamma + ...: between two powers of two in a format without fraction, decided by the side of -1/x
    coarse = Format(10, 0, infinities=False, nans="none")
    midpoint = Format(10, 1)
    assert elementary("digamma", midpoint, midpoint.encode(0, 1, -100)) == (midpoint.encode(1, 1, 100), INEXACT)
    assert elementary("digamma", coarse, coarse.encode(1, 1, -100)) == (coarse.encode(0, 1, 100), INEXACT)


def _words(fmt: Format, *values: Fraction | int) -> list[int]:
    return [round_fraction(fmt, value)[0] for value in values]


@pytest.mark.parametrize("fmt", [FORMATS["float128"], HUGE_RANGE], ids=str)
def test_huge_arguments_end(fmt: Format) -> None:
    largest, lowest = fmt.max_finite, fmt.lowest_finite
    one, infinity = fmt.encode(0, 1, 0), fmt.inf
    for name in ("exponential", "exp2", "exponential_minus_one", "sinh", "cosh", "lgamma"):
        assert elementary(name, fmt, largest) == (infinity, HUGE_INEXACT), name
    for name in ("exponential", "exp2", "logistic"):
        assert elementary(name, fmt, lowest) == (0, TINY_INEXACT), name
    assert elementary("erfc", fmt, largest) == (0, TINY_INEXACT)
    assert elementary("erfc", fmt, lowest) == (fmt.encode(0, 1, 1), INEXACT)
    for name in ("tanh", "erf"):
        assert elementary(name, fmt, lowest) == (fmt.sign_mask | one, INEXACT), name
    assert elementary("logistic", fmt, largest) == (one, INEXACT)
    assert elementary("exponential_minus_one", fmt, lowest) == (fmt.sign_mask | one, INEXACT)
    assert elementary("power", fmt, largest, largest) == (infinity, HUGE_INEXACT)
    assert elementary("power", fmt, largest, lowest) == (0, TINY_INEXACT)
    assert elementary("hypot", fmt, largest, largest) == (infinity, HUGE_INEXACT)
    assert elementary("hypot", fmt, largest, 1) == (largest, INEXACT)


def test_angles_too_large_are_refused() -> None:
    for name in ("sine", "cosine", "tan"):
        with pytest.raises(ArgumentTooLargeError, match=r"2\*\*1048576"):
            elementary(name, HUGE_RANGE, HUGE_RANGE.encode(0, 1, 2**20 + 1))
        assert elementary(name, FORMATS["float256"], FORMATS["float256"].max_finite)[1] == INEXACT


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64", "float128"])
def test_erf_inv_lies_between_midpoints(name: str) -> None:
    """erf grows, so y is erf_inv(x) rounded if x lies between erf at the midpoints below and above y."""
    fmt = FORMATS[name]
    rng = random.Random(name)
    one = fmt.encode(0, 1, 0)
    words = [1, 2, fmt.min_normal, one - 1, one - 2, fmt.encode(0, 1, -1)]
    words += [rng.randrange(1, one) for _ in range(60)]
    words += [round_fraction(fmt, Fraction(rng.getrandbits(140), 1 << 140))[0] for _ in range(60)]
    for word in words:
        if word >= one:
            continue
        result, _ = elementary("erf_inv", fmt, word)
        middle = [(to_fraction(fmt, result) + to_fraction(fmt, other)) / 2 for other in (result - 1, result + 1)]
        with unbounded(20 * fmt.precision + 200):
            x = to_mpfr(fmt, word)
            below, above = (gmpy2.erf(gmpy2.mpfr(gmpy2.mpq(point))) for point in middle)
            assert below < x < above
        assert elementary("erf_inv", fmt, fmt.sign_mask | word)[0] == fmt.sign_mask | result


@pytest.mark.parametrize("name", ["float16", "float32", "float64", "float128"])
def test_logistic_against_mpfr(name: str) -> None:
    fmt = FORMATS[name]
    rng = random.Random(name)
    for _ in range(150):
        word = round_fraction(fmt, Fraction(rng.getrandbits(120) - (1 << 119), 1 << rng.randint(112, 140)))[0]
        with unbounded(40 * fmt.precision + 400):
            value = 1 / (1 + gmpy2.exp(-to_mpfr(fmt, word)))
            exact = Fraction(*map(int, value.as_integer_ratio()))
        assert elementary("logistic", fmt, word)[0] == round_fraction(fmt, exact)[0], hex(word)


def test_special_values() -> None:
    fmt = FORMATS["float32"]
    inf, nan, zero, minus = fmt.inf, fmt.nan, 0, fmt.sign_mask
    one = fmt.encode(0, 1, 0)
    invalid, pole = (nan, Flags.INVALID), Flags.DIVIDE_BY_ZERO
    rows = [
        ("rsqrt", [zero], (inf, pole)),
        ("rsqrt", [minus], (minus | inf, pole)),
        ("rsqrt", [inf], (0, NONE)),
        ("rsqrt", [minus | one], invalid),
        ("logistic", [minus | inf], (0, NONE)),
        ("logistic", [inf], (one, NONE)),
        ("logistic", [minus], (fmt.encode(0, 1, -1), NONE)),
        ("erf_inv", [one], (inf, pole)),
        ("erf_inv", [minus | one], (minus | inf, pole)),
        ("erf_inv", [one + 1], invalid),
        ("erf_inv", [minus], (minus, NONE)),
        ("digamma", [zero], (minus | inf, pole)),
        ("digamma", [minus], (inf, pole)),
        ("digamma", [minus | one], invalid),
        ("lgamma", [minus | one], (inf, pole)),
        ("lgamma", [minus | inf], (inf, NONE)),
        ("hypot", [inf, nan], (inf, NONE)),
        ("hypot", [nan, zero], (nan, NONE)),
        ("power", [nan, minus], (one, NONE)),
        ("power", [one, nan], (one, NONE)),
        ("power", [minus | one, inf], (one, NONE)),
        ("power", [minus, minus | one], (minus | inf, pole)),
        ("power", [minus, minus | inf], (inf, NONE)),
        ("power", [minus | one, fmt.encode(0, 1, -1)], invalid),
        ("sine", [nan - 1], invalid),
    ]
    for name, operands, want in rows:
        assert elementary(name, fmt, *operands) == want, (name, operands)


@pytest.mark.parametrize("fmt", SMALL_FORMATS, ids=str)
def test_formats_without_ieee_conventions(fmt: Format) -> None:
    """Every unary function at every word: the result in a format with everything, converted.

    Rounding twice is harmless: a result that is not exact is no closer than 2**-200 to a midpoint of 8-bit numbers
    (results within that of a number of the format itself round to it either way)."""
    wide = Format(25, 200)
    for name in UNARY:
        for word in range(1 << fmt.width):
            got = elementary(name, fmt, word)
            if not fmt.is_finite(word) or fmt.is_zero(word):
                continue
            between, flags = elementary(name, wide, round_fraction(wide, to_fraction(fmt, word))[0])
            want, conversion = convert(wide, fmt, between)
            if between == 0 and flags:
                # the wide format lost all but the fact that it is not zero
                want, conversion = round_exact(fmt, 0, 1, -(1 << 40), sticky=True)
            assert got[0] == want, f"{name} of {word:#x}"
            if Flags.INVALID in conversion:
                assert got[1] == Flags.INVALID, f"{name} of {word:#x}"  # below zero in an unsigned format
            else:
                assert got[1] == (flags | conversion if wide.is_finite(between) else flags), f"{name} of {word:#x}"


def test_all_names_are_functions() -> None:
    from tlir.ir.ops.elementary import OPERATIONS

    assert {operation.name for operation in OPERATIONS} == set(NAMES)
