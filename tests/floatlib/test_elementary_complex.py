"""Complex elementary functions: parts against MPC at high precision, special values against NumPy's (the C ones)."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import gmpy2
import numpy as np
import pytest
from floatlib_mpfr import boundary_word, to_mpfr, unbounded

from tlir.floatlib.elementary import COMPLEX_NAMES, elementary_complex, evaluate_complex
from tlir.floatlib.format import FORMATS, Format
from tlir.floatlib.rounding import Flags, round_fraction

FLOAT64 = FORMATS["float64"]

# What each function is in MPC, evaluated at a precision that absorbs every cancellation below.
MPC: dict[str, Callable[[Any], Any]] = {
    "sqrt": gmpy2.sqrt,
    "rsqrt": lambda z: 1 / gmpy2.sqrt(z),
    "sign": lambda z: z / abs(z),
    "exponential": gmpy2.exp,
    "exponential_minus_one": lambda z: gmpy2.exp(z) - 1,
    "log": gmpy2.log,
    "log_plus_one": lambda z: gmpy2.log(1 + z),
    "logistic": lambda z: 1 / (1 + gmpy2.exp(-z)),
    "sinh": gmpy2.sinh,
    "cosh": gmpy2.cosh,
    "tanh": gmpy2.tanh,
    "asinh": gmpy2.asinh,
    "acosh": gmpy2.acosh,
    "atanh": gmpy2.atanh,
    "sine": gmpy2.sin,
    "cosine": gmpy2.cos,
    "tan": gmpy2.tan,
    "asin": gmpy2.asin,
    "acos": gmpy2.acos,
    "atan": gmpy2.atan,
}
BINARY: dict[str, Callable[[Any, Any], Any]] = {"divide": lambda z, w: z / w, "power": lambda z, w: z**w}


def fraction(value: Any) -> Fraction:
    return Fraction(*map(int, value.as_integer_ratio()))


def moderate_word(fmt: Format, rng: random.Random, spread: int) -> int:
    """A number of about 2**-spread to 2**spread, sometimes with few bits."""
    field = fmt.bias + rng.randint(-spread, spread)
    field = min(max(field, 0), 2**fmt.exponent_bits - 2)
    fraction_bits = rng.getrandbits(fmt.fraction_bits)
    if rng.random() < 0.4:
        fraction_bits &= ~((1 << max(fmt.fraction_bits - rng.randint(0, 3), 0)) - 1)
    return rng.getrandbits(1) << fmt.magnitude_bits | field << fmt.fraction_bits | fraction_bits


def check_parts(fmt: Format, got: tuple[tuple[int, int], Flags], value: Any, what: str) -> None:
    raised = Flags(0)
    for word, part in zip(got[0], (value.real, value.imag), strict=True):
        want, flags = round_fraction(fmt, fraction(part), zero_sign=int(gmpy2.is_signed(part)))
        assert word == want, f"{what}: {word:#x} is not {want:#x}"
        raised |= flags
    assert got[1] in (raised, raised & ~Flags.INEXACT, raised | Flags.INEXACT), what


@pytest.mark.parametrize("fmt", [FORMATS[name] for name in ("float16", "float32", "float64", "float128")], ids=str)
@pytest.mark.parametrize("name", MPC)
def test_unary_against_mpc(name: str, fmt: Format) -> None:
    rng = random.Random(f"{name} {fmt.name}")
    for index in range(80):
        spread = 6 if index % 2 else 12
        x, y = moderate_word(fmt, rng, spread), moderate_word(fmt, rng, spread)
        with unbounded(16 * fmt.precision + 600):
            value = MPC[name](gmpy2.mpc(to_mpfr(fmt, x), to_mpfr(fmt, y)))
            check_parts(fmt, elementary_complex(name, fmt, (x, y)), value, f"{name} of {x:#x} + {y:#x}i")


@pytest.mark.parametrize("fmt", [FORMATS[name] for name in ("float16", "float32", "float64")], ids=str)
@pytest.mark.parametrize("name", BINARY)
def test_binary_against_mpc(name: str, fmt: Format) -> None:
    rng = random.Random(f"{name} {fmt.name}")
    for _ in range(150):
        words = [moderate_word(fmt, rng, 3) for _ in range(4)]
        a, b, c, d = (to_mpfr(fmt, word) for word in words)
        with unbounded(16 * fmt.precision + 600):
            value = BINARY[name](gmpy2.mpc(a, b), gmpy2.mpc(c, d))
            got = elementary_complex(name, fmt, (words[0], words[1]), (words[2], words[3]))
            check_parts(fmt, got, value, f"{name} of {[hex(word) for word in words]}")


@pytest.mark.parametrize("name", MPC)
def test_extreme_operands_end(name: str) -> None:
    """Parts whose exponents are far apart, in float32: no function takes long or gives up."""
    fmt = FORMATS["float32"]
    rng = random.Random(name)
    for _ in range(40):
        x, y = boundary_word(fmt, rng), boundary_word(fmt, rng)
        if not (fmt.is_finite(x) and fmt.is_finite(y)) or fmt.is_zero(x) or fmt.is_zero(y):
            continue
        (real, imaginary), flags = elementary_complex(name, fmt, (x, y))
        assert not fmt.is_nan(real)
        assert not fmt.is_nan(imaginary)
        assert not flags & (Flags.INVALID | Flags.DIVIDE_BY_ZERO)
        if name == "log":
            with unbounded(800):
                z = gmpy2.mpc(to_mpfr(fmt, x), to_mpfr(fmt, y))
                check_parts(fmt, ((real, imaginary), flags), gmpy2.log(z), f"log of {x:#x} + {y:#x}i")


def _words(fmt: Format, *values: Fraction | float) -> tuple[int, ...]:
    return tuple(round_fraction(fmt, Fraction(value))[0] for value in values)


@pytest.mark.parametrize("name", ["float32", "float64", "float128"])
def test_exact_parts(name: str) -> None:
    """Parts that are numbers of the format, where enclosures alone would not end."""
    fmt = FORMATS[name]
    rows: list[tuple[str, list[tuple[float, float]], tuple[float, float]]] = [
        ("sqrt", [(-5, 12)], (2, 3)),
        ("sqrt", [(0.75, -1)], (1, -0.5)),
        ("rsqrt", [(3 / 16, 1 / 4)], (1.6, -0.8)),
        ("sign", [(3, -4)], (0.6, -0.8)),
        ("divide", [(5, 10), (3, 4)], (2.2, 0.4)),
        ("divide", [(-5, 10), (1, 2)], (3, 4)),
        ("power", [(1, 1), (8, 0)], (16, 0)),
        ("power", [(1, 1), (-3, 0)], (-0.25, -0.25)),
        ("power", [(3, 2), (2, 0)], (5, 12)),
        ("power", [(5, 12), (0.5, 0)], (3, 2)),
        ("power", [(-5, 12), (1.5, 0)], (-46, 9)),
        ("power", [(0, 2), (0.5, 0)], (1, 1)),
        ("power", [(-4, 0), (0.5, 0)], (0, 2)),
        ("power", [(0, 1), (5, 0)], (0, 1)),
        ("power", [(3, 4), (0, 0)], (1, 0)),
        ("power", [(0, 0), (2, 5)], (0, 0)),
    ]
    for function, operands, want in rows:
        got, flags = elementary_complex(function, fmt, *(_words(fmt, *pair) for pair in operands))
        assert got == _words(fmt, *map(_decimal, want)), f"{function}{operands}"
        exact = all(Fraction(part).denominator < 1000 for part in want)
        assert flags == (Flags(0) if exact else Flags.INEXACT), f"{function}{operands}"
    # i**i is real
    (real, imaginary), flags = elementary_complex("power", fmt, _words(fmt, 0, 1), _words(fmt, 0, 1))
    with unbounded(300):
        assert real == round_fraction(fmt, fraction(gmpy2.exp(-gmpy2.const_pi() / 2)))[0]
    assert (imaginary, flags) == (0, Flags.INEXACT)


def _decimal(value: float) -> Fraction:
    return Fraction(repr(value))


NUMPY = {
    "sqrt": np.sqrt,
    "exponential": np.exp,
    "log": np.log,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "sine": np.sin,
    "cosine": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
}


@pytest.mark.parametrize("name", NUMPY)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_special_values_are_those_of_c(name: str) -> None:
    """All pairs of zeros, infinities, NaN and numbers, on both sides of each cut. Where the result has a NaN, Annex G
    leaves the sign of the other part open, and of tanh at infinity + NaN i too."""
    positive = [0.0, 0.5, 1.0, 2.0, 3.75, np.inf]
    values = [*positive, *(-value for value in positive), np.nan]
    grid = np.array([complex(x, y) for x in values for y in values])
    words = grid.view(np.uint64).reshape(-1, 2)
    got = evaluate_complex(name, FLOAT64, words).reshape(-1).view(np.complex128)
    for z, mine, other in zip(grid, got, NUMPY[name](grid), strict=True):
        open_sign = np.isnan(mine) or (np.isnan(z) and not np.isnan(mine))
        for a, b in ((mine.real, other.real), (mine.imag, other.imag)):
            if np.isnan(b):
                assert np.isnan(a), (name, z, mine, other)
            elif a == b:
                assert open_sign or np.signbit(a) == np.signbit(b), (name, z, mine, other)
            elif np.isinf(b) and open_sign:
                assert np.isinf(a), (name, z, mine, other)
            else:
                assert abs(a - b) <= 1e-15 * abs(b), (name, z, mine, other)


def test_chosen_special_values() -> None:
    fmt = FLOAT64
    inf, nan, zero, minus = fmt.inf, fmt.nan, 0, fmt.sign_mask
    one, half = fmt.encode(0, 1, 0), fmt.encode(0, 1, -1)
    pole, invalid = Flags.DIVIDE_BY_ZERO, Flags.INVALID
    rows = [
        ("rsqrt", [(zero, zero)], (inf, minus), pole),
        ("rsqrt", [(inf, nan)], (zero, minus), Flags(0)),
        ("logistic", [(zero, zero)], (half, zero), Flags(0)),
        ("logistic", [(inf, minus | one)], (one, minus), Flags(0)),
        ("logistic", [(minus | inf, one)], (zero, zero), Flags(0)),
        ("logistic", [(one, inf)], (nan, nan), invalid),
        ("exponential_minus_one", [(minus | inf, one)], (minus | one, zero), Flags(0)),
        ("exponential_minus_one", [(minus, zero)], (minus, zero), Flags(0)),
        ("log_plus_one", [(minus | one, minus)], (minus | inf, minus), pole),
        ("log_plus_one", [(minus, zero)], (minus, zero), Flags(0)),
        ("power", [(nan, one), (zero, minus)], (one, zero), Flags(0)),
        ("power", [(zero, zero), (minus | one, zero)], (nan, nan), invalid),
        ("power", [(zero, zero), (zero, one)], (nan, nan), invalid),
        ("power", [(nan, one), (one, one)], (nan, nan), Flags(0)),
        ("sign", [(minus, minus)], (zero, zero), Flags(0)),
        ("sign", [(inf, one)], (nan, nan), invalid),
        ("sign", [(minus | one, minus)], (minus | one, minus), Flags(0)),
        ("divide", [(one, one), (zero, zero)], (nan, nan), invalid),
        ("divide", [(one, one), (inf, zero)], (nan, nan), invalid),
        ("divide", [(zero, zero), (minus | one, one)], (zero, minus), Flags(0)),
        ("sqrt", [(zero, nan - 1)], (nan, nan), invalid),
    ]
    for name, operands, want, flags in rows:
        assert elementary_complex(name, fmt, *operands) == (want, flags), (name, operands)


@pytest.mark.parametrize("fmt", [FORMATS["bfloat16"], FORMATS["float32"], FORMATS["float128"]], ids=str)
def test_arrays(fmt: Format) -> None:
    from tlir.floatlib.words import from_ints, to_ints

    one, half = fmt.encode(0, 1, 0), fmt.encode(0, 1, -1)
    z = from_ints(fmt, [[[one, half], [half, fmt.sign_mask]], [[0, 0], [one, half]]])
    w = from_ints(fmt, [[half, half], [one, one]])
    for name in COMPLEX_NAMES:
        operands = (z, w) if name in ("divide", "power") else (z,)
        words, flags = evaluate_complex(name, fmt, *operands, flags=True)
        assert flags.shape == (2, 2)
        if name == "abs":
            assert to_ints(fmt, words).shape == (2, 2)
            continue
        got = to_ints(fmt, words)
        assert got.shape == (2, 2, 2)
        for i, j in np.ndindex(2, 2):
            pairs = [tuple(map(int, to_ints(fmt, operand)[(i, j) if operand is z else j])) for operand in operands]
            assert (tuple(got[i, j]), flags[i, j]) == elementary_complex(name, fmt, *pairs)
        assert (
            evaluate_complex(name, fmt, *(operand[:0] for operand in operands[:1] * len(operands))).shape == z[:0].shape
        )
    with pytest.raises(ValueError, match="last axis of two"):
        evaluate_complex("sqrt", fmt, from_ints(fmt, [one, one, one]))
