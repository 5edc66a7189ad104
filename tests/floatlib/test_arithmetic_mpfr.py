"""Values and flags of the wider formats against MPFR, on boundary-directed operands."""

import random
from typing import Any

import gmpy2
import pytest
from floatlib_mpfr import MODES, boundary_word, expected, to_mpfr

from tlir.floatlib import arithmetic
from tlir.floatlib.convert import convert, from_integer
from tlir.floatlib.format import FORMATS, Format
from tlir.floatlib.rounding import NO_FLAGS, Flags, Rounding

WIDE = [FORMATS[name] for name in ("float16", "bfloat16", "float32", "float64", "float128", "float256")] + [
    Format(6, 17),
    Format(15, 63),
    Format(9, 5, bias=100),
    Format(11, 200),
    Format(28, 300),
]
TRIALS = 400


def operands(fmt: Format, count: int, seed: str) -> Any:
    rng = random.Random(f"{fmt}{seed}")
    for _ in range(TRIALS):
        first = boundary_word(fmt, rng)
        near = (first & fmt.magnitude_mask) >> fmt.fraction_bits
        words = [first] + [boundary_word(fmt, rng, near if rng.getrandbits(1) else None) for _ in range(count - 1)]
        if not any(fmt.is_nan(word) for word in words):
            yield words, [to_mpfr(fmt, word) for word in words], rng.choice(list(MODES))


@pytest.mark.parametrize("fmt", WIDE, ids=str)
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide"])
def test_two_operands(fmt: Format, name: str) -> None:
    method = {"add": "add", "subtract": "sub", "multiply": "mul", "divide": "div"}[name]
    for (a, b), (x, y), rounding in operands(fmt, 2, name):
        want = expected(fmt, rounding, lambda ctx, x=x, y=y: getattr(ctx, method)(x, y))
        assert getattr(arithmetic, name)(fmt, a, b, rounding) == want, (hex(a), hex(b), rounding)


@pytest.mark.parametrize("fmt", WIDE, ids=str)
def test_square_root(fmt: Format) -> None:
    for (a,), (x,), rounding in operands(fmt, 1, "sqrt"):
        want = expected(fmt, rounding, lambda ctx, x=x: ctx.sqrt(x))
        assert arithmetic.sqrt(fmt, a, rounding) == want, (hex(a), rounding)


@pytest.mark.parametrize("fmt", WIDE, ids=str)
def test_fused_multiply_add(fmt: Format) -> None:
    rng = random.Random(f"{fmt}cancel")
    for (a, b, c), (x, y, z), rounding in operands(fmt, 3, "fma"):
        if rng.getrandbits(1):
            # an addend next to the product, so that most of it cancels
            word, _ = arithmetic.multiply(fmt, a, b)
            c = max(0, word - rng.randrange(3)) ^ fmt.sign_mask if not fmt.is_nan(word) else c
            z = to_mpfr(fmt, c)
            if gmpy2.is_nan(z):
                continue
        want = expected(fmt, rounding, lambda ctx, x=x, y=y, z=z: ctx.fma(x, y, z))
        assert arithmetic.fma(fmt, a, b, c, rounding) == want, (hex(a), hex(b), hex(c), rounding)


@pytest.mark.parametrize("fmt", [fmt for fmt in WIDE if fmt.exponent_bits < 20], ids=str)
def test_remainders(fmt: Format) -> None:
    for (a, b), (x, y), _ in operands(fmt, 2, "remainder"):
        if gmpy2.is_infinite(x) or y == 0:
            continue
        for operation, method in ((arithmetic.remainder_truncated, "fmod"), (arithmetic.remainder_ieee, "remainder")):
            # remainders are exact, so a context that holds every word of the format returns the true one
            want = expected(fmt, Rounding.NEAREST_EVEN, lambda ctx, m=method, x=x, y=y: getattr(ctx, m)(x, y))
            word, flags = operation(fmt, a, b)
            assert flags == NO_FLAGS
            assert word == want[0], (hex(a), hex(b), method)


@pytest.mark.parametrize("source", WIDE, ids=str)
def test_conversions(source: Format) -> None:
    targets = [*WIDE, Format(8, 10)]
    for index, ((a,), (x,), rounding) in enumerate(operands(source, 1, "convert")):
        target = targets[index % len(targets)]
        want = expected(target, rounding, lambda ctx, x=x: ctx.plus(x))
        if source != target:
            assert convert(source, target, a, rounding) == want, (hex(a), target, rounding)


def test_integers_of_any_size() -> None:
    rng = random.Random(1)
    for index in range(TRIALS):
        fmt, rounding = WIDE[index % len(WIDE)], rng.choice(list(MODES))
        n = rng.getrandbits(rng.choice([3, 24, 60, 130, 300])) * rng.choice([1, -1])
        exact = gmpy2.mpfr(n, 400)
        want = expected(fmt, rounding, lambda ctx, x=exact: ctx.plus(x))
        assert from_integer(fmt, n, rounding) == want, (fmt, n, rounding)


def test_a_binary128_square_that_binary64_cannot_see() -> None:
    fmt = FORMATS["float128"]
    x = fmt.encode(0, (1 << 100) + 1, -100)
    # 1 + 2**-99 + 2**-200: the last term is below the last place
    assert arithmetic.multiply(fmt, x, x) == (fmt.encode(0, (1 << 99) + 1, -99), Flags.INEXACT)


def test_half_the_smallest_subnormal_and_the_sum_of_two() -> None:
    fmt = FORMATS["float32"]
    half = fmt.encode(0, 1, -1)
    assert arithmetic.multiply(fmt, 1, half) == (0, Flags.UNDERFLOW | Flags.INEXACT)
    assert arithmetic.add(fmt, 1, 1) == (2, NO_FLAGS)


def test_binary64_to_bfloat16_rounds_once() -> None:
    double, small = FORMATS["float64"], FORMATS["bfloat16"]
    word = double.encode(0, (1 << 40) + (1 << 32) + 1, -40)
    assert convert(double, small, word) == (small.encode(0, 129, -7), Flags.INEXACT)
    assert small.decode(0x3F81) == (0, 129, -7)


def test_signaling_nans_raise_invalid_and_are_quieted() -> None:
    fmt = FORMATS["float32"]
    assert arithmetic.add(fmt, 0x7F800001, 0) == (0x7FC00000, Flags.INVALID)
    assert arithmetic.add(fmt, 0xFFC12345, 0) == (0x7FC00000, NO_FLAGS)
    assert arithmetic.fma(fmt, fmt.inf or 0, 0, 0x7FC00000) == (0x7FC00000, Flags.INVALID)


def test_exponents_of_thirty_bits_cost_nothing() -> None:
    fmt = Format(30, 4096)
    top, bottom = fmt.max_finite, fmt.min_subnormal
    assert arithmetic.add(fmt, top, bottom) == (top, Flags.INEXACT)
    assert arithmetic.fma(fmt, top, top, bottom) == (fmt.inf, Flags.OVERFLOW | Flags.INEXACT)
    assert arithmetic.fma(fmt, bottom, bottom, top) == (top, Flags.INEXACT)
    word, flags = arithmetic.remainder_truncated(fmt, top, 3)
    assert flags == NO_FLAGS
    assert word == (2**4097 - 1) * pow(2, fmt.emax - fmt.emin, 3) % 3
    assert arithmetic.divide(fmt, bottom, top) == (0, Flags.UNDERFLOW | Flags.INEXACT)
    assert arithmetic.scale_b(fmt, bottom, 10**15) == (fmt.inf, Flags.OVERFLOW | Flags.INEXACT)
