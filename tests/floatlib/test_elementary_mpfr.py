"""Elementary functions against MPFR, words and flags, in formats with IEEE's conventions."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import gmpy2
import pytest
from floatlib_mpfr import boundary_word, context, expected, to_mpfr

from tlir.floatlib.elementary import elementary
from tlir.floatlib.format import FORMATS, Format
from tlir.floatlib.rounding import Flags, Rounding

FORMATS_TESTED = {
    **{name: FORMATS[name] for name in ("float16", "bfloat16", "float32", "float64", "float128")},
    "e4m3": Format(4, 3),
    "e6m9": Format(6, 9),
    "e9m16": Format(9, 16),
    "e12m90": Format(12, 90),
}


# What MPFR calls each function.
UNARY: dict[str, Callable[[Any, Any], Any]] = {
    "rsqrt": lambda c, x: c.rec_sqrt(x),
    "cbrt": lambda c, x: c.cbrt(x),
    "exponential": lambda c, x: c.exp(x),
    "exponential_minus_one": lambda c, x: c.expm1(x),
    "exp2": lambda c, x: c.exp2(x),
    "log": lambda c, x: c.log(x),
    "log_plus_one": lambda c, x: c.log1p(x),
    "log2": lambda c, x: c.log2(x),
    "log10": lambda c, x: c.log10(x),
    "tanh": lambda c, x: c.tanh(x),
    "sinh": lambda c, x: c.sinh(x),
    "cosh": lambda c, x: c.cosh(x),
    "asinh": lambda c, x: c.asinh(x),
    "acosh": lambda c, x: c.acosh(x),
    "atanh": lambda c, x: c.atanh(x),
    "sine": lambda c, x: c.sin(x),
    "cosine": lambda c, x: c.cos(x),
    "tan": lambda c, x: c.tan(x),
    "asin": lambda c, x: c.asin(x),
    "acos": lambda c, x: c.acos(x),
    "atan": lambda c, x: c.atan(x),
    "erf": lambda c, x: c.erf(x),
    "erfc": lambda c, x: c.erfc(x),
    "lgamma": lambda c, x: c.lgamma(x)[0],
    "digamma": lambda c, x: c.digamma(x),
}
BINARY: dict[str, Callable[[Any, Any, Any], Any]] = {
    "atan2": lambda c, y, x: c.atan2(y, x),
    "hypot": lambda c, x, y: c.hypot(x, y),
    "power": lambda c, x, y: c.pow(x, y),
}


def directed_words(fmt: Format) -> list[int]:
    """Zeros, infinities, NaN, extremes, the neighbours of 1, small integers and halves, of both signs."""
    one = fmt.encode(0, 1, 0)
    magnitudes = [0, 1, 2, 3, fmt.min_normal - 1, fmt.min_normal, fmt.max_finite, fmt.inf, fmt.nan, fmt.inf + 1]
    magnitudes += [one - 1, one, one + 1]
    magnitudes += [
        fmt.encode(0, k, e) for k, e in [(1, -2), (1, -1), (3, -1), (5, -1), (9, 0), (7, -2), (2, 0), (3, 0)]
    ]
    return [sign | word for word in magnitudes for sign in (0, fmt.sign_mask)]


def random_words(fmt: Format, rng: random.Random, count: int) -> list[int]:
    """Words at the edges of the format, and as many of moderate size, where the functions do the most."""
    words = [boundary_word(fmt, rng) for _ in range(count)]
    top = 2**fmt.exponent_bits - 2
    for _ in range(count):
        field = min(max(fmt.bias + rng.randint(-8, 9), 0), top)
        fraction = rng.getrandbits(fmt.fraction_bits)
        words.append(rng.getrandbits(1) << fmt.magnitude_bits | field << fmt.fraction_bits | fraction)
    return words


def is_slow_in_mpfr(name: str, fmt: Format, word: int) -> bool:
    """MPFR takes long for the logarithm of gamma far from 0, and reduces angles digit by digit."""
    if not fmt.is_finite(word) or fmt.exponent_bits < 8:
        return False
    exponent = (fmt.magnitude(word) >> fmt.fraction_bits) - fmt.bias
    if name in ("lgamma", "digamma"):
        return exponent > 20 or (fmt.sign(word) == 1 and abs(exponent) > 8)
    return False


def check(name: str, fmt: Format, operation: Callable[[Any], Any], words: tuple[int, ...]) -> None:
    want = expected(fmt, Rounding.NEAREST_EVEN, operation)
    bounded = context(fmt, Rounding.NEAREST_EVEN)
    operation(bounded)
    if bounded.overflow:  # beyond MPFR's own range too, where ``expected`` sees an infinity
        want = want[0], Flags.OVERFLOW | Flags.INEXACT
    if any(fmt.is_signaling(word) for word in words):
        want = want[0], want[1] | Flags.INVALID  # MPFR has no signaling NaN
    elif any(fmt.is_nan(word) for word in words):
        want = want[0], Flags(0)
    assert elementary(name, fmt, *words) == want, f"{name} of {', '.join(map(hex, words))} in {fmt.name}"


@pytest.mark.parametrize("fmt", FORMATS_TESTED.values(), ids=FORMATS_TESTED)
@pytest.mark.parametrize("name", UNARY)
def test_unary_against_mpfr(name: str, fmt: Format) -> None:
    rng = random.Random(f"{name} {fmt.name}")
    for word in directed_words(fmt) + random_words(fmt, rng, 60):
        if is_slow_in_mpfr(name, fmt, word):
            continue
        x = to_mpfr(fmt, word)
        if name == "rsqrt" and gmpy2.is_zero(x):
            continue  # +infinity for both zeros in MPFR
        check(name, fmt, lambda c, x=x: UNARY[name](c, x), (word,))


@pytest.mark.parametrize("fmt", FORMATS_TESTED.values(), ids=FORMATS_TESTED)
@pytest.mark.parametrize("name", BINARY)
def test_binary_against_mpfr(name: str, fmt: Format) -> None:
    rng = random.Random(f"{name} {fmt.name}")
    directed = directed_words(fmt)
    rows = list(itertools.product(directed, directed))
    rows = rows if fmt.width <= 16 else rng.sample(rows, 300)
    rows += list(zip(random_words(fmt, rng, 60), random_words(fmt, rng, 60), strict=True))
    for left, right in rows:
        x, y = to_mpfr(fmt, left), to_mpfr(fmt, right)
        check(name, fmt, lambda c, x=x, y=y: BINARY[name](c, x, y), (left, right))
