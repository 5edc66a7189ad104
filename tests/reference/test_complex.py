"""Complex arithmetic: quotients as fractions, roots and signs by MPC and MPFR at 700 bits, products step by step."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import exact
import gmpy2
import pytest
from conformance import evaluate, evaluate_with_flags, tensor, words_of

from tlir.errors import UnsupportedError
from tlir.floatlib.format import Format
from tlir.ir.tensor import Tensor
from tlir.ir.types import DType, TensorType, complex_of, parse_dtype

NAMES = [
    "complex<float8_e5m2>",
    "complex<float16>",
    "complex<bfloat16>",
    "complex64",
    "complex128",
    "complex<float128>",
]
Pair = tuple[int, int]


def vector(name: str, pairs: list[Pair]) -> Tensor:
    return tensor(TensorType((len(pairs),), parse_dtype(name)), [word for pair in pairs for word in pair])


def pairs_of(result: Tensor) -> list[Pair]:
    words = words_of(result)
    return list(zip(words[::2], words[1::2], strict=True))


def finite_sample(name: str, count: int, seed: str = "") -> list[Pair]:
    """Parts of like and of very different size, subnormal ones, small integers (whose results can be exact)."""
    fmt = parse_dtype(name).float_format
    rng = random.Random(name + seed)
    one, sign, top = fmt.bias << fmt.fraction_bits, exact.masks(fmt)[0], exact.top(fmt)

    def part() -> int:
        kind = rng.randrange(5)
        if kind == 0:
            word = exact.encode(fmt, Fraction(rng.randrange(1, 13)))
        elif kind == 1:
            word = rng.randrange(4 << fmt.fraction_bits)
        elif kind == 2:
            word = rng.randrange(top + 1)
        else:
            word = one + rng.randrange(-2 << fmt.fraction_bits, 2 << fmt.fraction_bits)
        return word | sign * rng.getrandbits(1)

    pythagorean = [(3, 4), (5, 12), (-7, 24), (8, -6), (-3, -4), (0, 2), (9, 0), (-4, 0), (0, -8)]
    exact_ones = [(exact.encode(fmt, Fraction(x)), exact.encode(fmt, Fraction(y))) for x, y in pythagorean]
    return exact_ones + [(part(), part()) for _ in range(count)]


def fraction(fmt: Format, word: int) -> Fraction:
    return exact.finite(exact.decode(fmt, word))


@pytest.mark.parametrize("name", NAMES)
def test_products_round_every_step(name: str) -> None:
    fmt = parse_dtype(name).float_format
    lhs, rhs = finite_sample(name, 200), finite_sample(name, 200, "rhs")

    def product(x: Pair, y: Pair) -> Pair:
        (a, b), (c, d) = x, y
        minus = exact.multiply(fmt, b, d)
        minus = minus if exact.decode(fmt, minus) == "nan" else minus ^ fmt.sign_mask
        real = exact.add(fmt, exact.multiply(fmt, a, c), minus)
        return real, exact.add(fmt, exact.multiply(fmt, a, d), exact.multiply(fmt, b, c))

    got = evaluate("multiply", [vector(name, lhs), vector(name, rhs)], vector(name, lhs).type)
    assert pairs_of(got) == [product(x, y) for x, y in zip(lhs, rhs, strict=True)]
    flagged, flags = evaluate_with_flags("multiply", [vector(name, lhs), vector(name, rhs)], got.type)
    assert flagged.same_words(got)
    assert len(flags) == len(lhs)


@pytest.mark.parametrize("name", NAMES)
def test_quotients_are_rounded_once(name: str) -> None:
    fmt = parse_dtype(name).float_format
    lhs, rhs = finite_sample(name, 250), finite_sample(name, 250, "rhs")
    # divisors near multiples of the dividend, where the sums of products cancel
    lhs += rhs[:40]
    rhs += [(x, y ^ 1) for x, y in rhs[:40]]
    got = pairs_of(evaluate("divide", [vector(name, lhs), vector(name, rhs)], vector(name, lhs).type))
    for x, y, result in zip(lhs, rhs, got, strict=True):
        a, b, c, d = (fraction(fmt, word) for word in (*x, *y))
        norm = c * c + d * d
        if norm == 0:
            continue
        real, imag = (a * c + b * d) / norm, (b * c - a * d) / norm
        for value, word in ((real, result[0]), (imag, result[1])):
            if value:
                assert word == exact.encode(fmt, value)
            else:
                assert fraction(fmt, word) == 0


def test_signs_of_zero_parts_of_quotients() -> None:
    """As the sums of the two products have them: (1 + 0i) / (1 + 0i) is 1 + 0i, (-0 - 0i) / (1 + 0i) is -0 - 0i."""
    one, zero, minus_zero = 0x3F800000, 0, 1 << 31
    rows = {
        ((one, zero), (one, zero)): (one, zero),
        ((minus_zero, minus_zero), (one, zero)): (minus_zero, zero),
        ((one, minus_zero), (one, zero)): (one, minus_zero),
        ((zero, zero), (one, one)): (zero, zero),
    }
    lhs, rhs = [x for x, _ in rows], [y for _, y in rows]
    got = pairs_of(
        evaluate("divide", [vector("complex64", lhs), vector("complex64", rhs)], vector("complex64", lhs).type)
    )
    fmt = parse_dtype("complex64").float_format

    def formula(x: Pair, y: Pair) -> Pair:
        (a, b), (c, d) = x, y
        real = exact.add(fmt, exact.multiply(fmt, a, c), exact.multiply(fmt, b, d))
        return real, exact.add(fmt, exact.multiply(fmt, b, c), exact.multiply(fmt, a, d) ^ fmt.sign_mask)

    zeros = [formula(x, y) for x, y in zip(lhs, rhs, strict=True)]
    for result, steps in zip(got, zeros, strict=True):
        for word, step in zip(result, steps, strict=True):
            if fraction(fmt, word) == 0:
                assert word == step


@pytest.mark.parametrize("name", ["complex<float16>", "complex64"])
def test_other_quotients_follow_the_formula(name: str) -> None:
    """Infinities, NaN, and a divisor of zero: real arithmetic with one rounding per step."""
    fmt = parse_dtype(name).float_format
    one = fmt.bias << fmt.fraction_bits
    special = [0, fmt.sign_mask, one, one | fmt.sign_mask, fmt.inf, fmt.inf | fmt.sign_mask, exact.canonical_nan(fmt)]
    quads = list(itertools.product(special, repeat=4))
    lhs, rhs = [(a, b) for a, b, _, _ in quads], [(c, d) for _, _, c, d in quads]
    got = pairs_of(evaluate("divide", [vector(name, lhs), vector(name, rhs)], vector(name, lhs).type))
    nan = exact.canonical_nan(fmt)
    for (a, b, c, d), result in zip(quads, got, strict=True):
        numbers = [exact.decode(fmt, word) for word in (a, b, c, d)]
        if all(number not in ("inf", "-inf", "nan") for number in numbers) and any(fraction(fmt, w) for w in (c, d)):
            continue

        def negated(word: int) -> int:
            return word if word == nan else word ^ fmt.sign_mask

        norm = exact.add(fmt, exact.multiply(fmt, c, c), exact.multiply(fmt, d, d))
        real = exact.add(fmt, exact.multiply(fmt, a, c), exact.multiply(fmt, b, d))
        imag = exact.add(fmt, exact.multiply(fmt, b, c), negated(exact.multiply(fmt, a, d)))
        assert result == (exact.divide(fmt, real, norm), exact.divide(fmt, imag, norm)), (a, b, c, d)


def at_high_precision(
    function: Callable[[Any, Any], tuple[Any, Any]], x: Fraction, y: Fraction
) -> tuple[Fraction, Fraction]:
    """Both parts with 700 bits more than the operands are apart, as fractions."""
    apart = (
        abs((x.numerator * y.denominator).bit_length() - (y.numerator * x.denominator).bit_length()) if x and y else 0
    )
    with gmpy2.context(precision=700 + 4 * apart, emax=gmpy2.get_emax_max(), emin=gmpy2.get_emin_min()):
        real, imag = function(gmpy2.mpfr(gmpy2.mpq(x)), gmpy2.mpfr(gmpy2.mpq(y)))
        return Fraction(gmpy2.mpq(real)), Fraction(gmpy2.mpq(imag))


def mpc_root(x: Any, y: Any) -> tuple[Any, Any]:
    root = gmpy2.sqrt(gmpy2.mpc(x, y))
    return root.real, root.imag


def mpfr_sign(x: Any, y: Any) -> tuple[Any, Any]:
    size = gmpy2.sqrt(x * x + y * y)
    return x / size, y / size


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("op", "function"), [("sqrt", mpc_root), ("sign", mpfr_sign)])
def test_each_part_is_rounded_once(op: str, function: Callable[[Any, Any], tuple[Any, Any]], name: str) -> None:
    fmt = parse_dtype(name).float_format
    given = finite_sample(name, 60 if "128" in name else 250)
    got = pairs_of(evaluate(op, [vector(name, given)], vector(name, given).type))
    for (x, y), result in zip(given, got, strict=True):
        a, b = fraction(fmt, x), fraction(fmt, y)
        if not a and not b:
            continue
        parts = at_high_precision(function, a, b)
        if op == "sqrt" and b == 0 and exact.is_negative(fmt, y):
            parts = parts[0], -parts[1]  # the sign of a zero, which a fraction does not keep
        for value, word, zero_sign in zip(parts, result, (0 if op == "sqrt" else x, y), strict=True):
            assert word == exact.encode(fmt, value, int(exact.is_negative(fmt, zero_sign))), (x, y)


def test_special_roots() -> None:
    """The table of csqrt in annex G of ISO C."""
    inf, nan, one, sign = 0x7F800000, 0x7FC00000, 0x3F800000, 1 << 31
    rows: dict[Pair, Pair] = {
        (0, 0): (0, 0),
        (sign, 0): (0, 0),
        (0, sign): (0, sign),
        (sign, sign): (0, sign),
        (one, inf): (inf, inf),
        (nan, inf | sign): (inf, inf | sign),
        (one, nan): (nan, nan),
        (inf | sign, one): (0, inf),
        (inf | sign, one | sign): (0, inf | sign),
        (inf, one): (inf, 0),
        (inf, one | sign): (inf, sign),
        (inf | sign, nan): (nan, inf),
        (inf, nan): (inf, nan),
        (nan, one): (nan, nan),
        (one | sign, 0): (0, one),
        (one | sign, sign): (0, one | sign),
    }
    assert pairs_of(evaluate("sqrt", [vector("complex64", list(rows))], vector("complex64", list(rows)).type)) == list(
        rows.values()
    )


def test_special_signs() -> None:
    inf, nan, one, sign = 0x7F800000, 0x7FC00000, 0x3F800000, 1 << 31
    rows: dict[Pair, Pair] = {
        (0, 0): (0, 0),
        (sign, sign): (0, 0),
        (inf, one): (nan, nan),
        (one, nan): (nan, nan),
        (one | sign, sign): (one | sign, sign),
        (0, one): (0, one),
    }
    assert pairs_of(evaluate("sign", [vector("complex64", list(rows))], vector("complex64", list(rows)).type)) == list(
        rows.values()
    )


def test_parts_too_far_apart_are_refused() -> None:
    """A format of 30 exponent bits could ask for an integer of 2^29 bits."""
    wide = complex_of(DType("wide", "float", 41, Format(30, 10)))
    one = wide.float_format.bias << 10
    operand = tensor(TensorType((1,), wide), [one, one // 2])
    with pytest.raises(UnsupportedError) as caught:
        evaluate("sqrt", [operand], operand.type)
    assert caught.value.code == "TL0801"


@pytest.mark.parametrize("exponent", [-2, -1, 0, 1, 3, 6])
def test_integer_pow(exponent: int) -> None:
    """Products as ``multiply`` forms them, in the order stated; the inverse as ``divide`` forms it."""
    name = "complex64"
    given = finite_sample(name, 40)
    type = vector(name, given).type
    ones = vector(name, [(0x3F800000, 0)] * len(given))

    def times(x: Tensor, y: Tensor) -> Tensor:
        return evaluate("multiply", [x, y], type)

    square, accumulator = vector(name, given), None
    for bit in reversed(f"{abs(exponent):b}"):
        if bit == "1":
            accumulator = square if accumulator is None else times(accumulator, square)
        square = times(square, square)
    expected = ones if accumulator is None else accumulator
    if exponent < 0:
        expected = evaluate("divide", [ones, expected], type)
    got = evaluate("integer_pow", [vector(name, given)], type, {"exponent": exponent})
    assert pairs_of(got) == pairs_of(expected)


@pytest.mark.parametrize("name", NAMES)
def test_parts_are_moved_unchanged(name: str) -> None:
    dtype = parse_dtype(name)
    fmt, part = dtype.float_format, dtype.component
    rng = random.Random(name)
    given = [(rng.getrandbits(fmt.width), rng.getrandbits(fmt.width)) for _ in range(20)]
    operand = vector(name, given)
    type = TensorType((20,), part)
    real, imag = evaluate("real", [operand], type), evaluate("imag", [operand], type)
    assert list(zip(words_of(real), words_of(imag), strict=True)) == given
    assert evaluate("complex", [real, imag], operand.type).same_words(operand)
    assert pairs_of(evaluate("conjugate", [operand], operand.type)) == [(x, y ^ fmt.sign_mask) for x, y in given]
    assert pairs_of(evaluate("negate", [operand], operand.type)) == [
        (x ^ fmt.sign_mask, y ^ fmt.sign_mask) for x, y in given
    ]


@pytest.mark.parametrize("name", NAMES)
def test_magnitudes(name: str) -> None:
    dtype = parse_dtype(name)
    fmt = dtype.float_format
    given = finite_sample(name, 40 if "128" in name else 100)
    got = words_of(evaluate("abs", [vector(name, given)], TensorType((len(given),), dtype.component)))
    for (x, y), word in zip(given, got, strict=True):
        size, _ = at_high_precision(lambda a, b: (gmpy2.sqrt(a * a + b * b), b), fraction(fmt, x), fraction(fmt, y))
        assert word == exact.encode(fmt, size)
    inf, nan = fmt.inf, exact.canonical_nan(fmt)
    special = [(inf, nan), (nan, inf | fmt.sign_mask), (nan, 0), (0, nan)]
    result = evaluate("abs", [vector(name, special)], TensorType((4,), dtype.component))
    assert words_of(result) == [inf, inf, nan, nan]
