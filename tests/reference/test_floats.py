"""Float operations: small formats exhaustively against exact fractions, the others on words of every kind."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import exact
import ml_dtypes
import numpy as np
import pytest
from conformance import evaluate, evaluate_with_flags, tensor, words_of

from tlir.floatlib.rounding import Flags
from tlir.ir.tensor import Tensor
from tlir.ir.types import TensorType, parse_dtype

SMALL = (
    "float4_e2m1fn",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e8m0fnu",
)
SAMPLED = ("float16", "bfloat16", "tfloat32", "float32", "float64", "float128")

ROUNDED: dict[str, Callable[[Any, int, int], int]] = {
    "add": exact.add,
    "multiply": exact.multiply,
    "divide": exact.divide,
}


def vector(name: str, words: list[int]) -> Tensor:
    return tensor(TensorType((len(words),), parse_dtype(name)), words)


def sample(name: str, count: int, seed: int = 0) -> list[int]:
    """Words with exponents near each other and near both ends, and the special ones."""
    fmt = parse_dtype(name).float_format
    rng = random.Random(f"{name}{seed}")
    top, sign = exact.top(fmt), exact.masks(fmt)[0]
    special = [0, 1, 2, fmt.min_normal, fmt.min_normal - 1, top, top - 1, top + 1, exact.canonical_nan(fmt), top + 2]
    one = fmt.bias << fmt.fraction_bits
    near = [one + rng.randrange(-4 << fmt.fraction_bits, 4 << fmt.fraction_bits) for _ in range(count)]
    low = [rng.randrange(4 << fmt.fraction_bits) for _ in range(count // 4)]
    few = [one + (rng.randrange(-8, 8) << (fmt.fraction_bits - 1)) + rng.randrange(-1, 2) for _ in range(count // 4)]
    return [word | (sign * rng.getrandbits(1)) for word in [*special, *near, *low, *few]]


def float_pairs(name: str) -> tuple[list[int], list[int]]:
    if name in SMALL:
        words = range(1 << parse_dtype(name).bits)
        return [x for x in words for _ in words], [y for _ in words for y in words]
    lhs, rhs = sample(name, 150), sample(name, 150, 1)
    random.Random(name).shuffle(rhs)
    return [*lhs, *(x for x in lhs[:10] for _ in rhs[:10])], [*rhs, *(y for _ in lhs[:10] for y in rhs[:10])]


def thinned(words: list[int], count: int) -> list[int]:
    """About so many of the words: with an odd stride, which meets every word of an 8-bit format in both columns."""
    return words[:: max(1, len(words) // count) | 1]


@pytest.mark.parametrize("name", [*SMALL[:4], "float8_e4m3fn", "float8_e5m2", *SAMPLED])
@pytest.mark.parametrize("op", ROUNDED)
def test_one_rounding(op: str, name: str) -> None:
    fmt = parse_dtype(name).float_format
    lhs, rhs = float_pairs(name)
    lhs, rhs = thinned(lhs, 6000), thinned(rhs, 6000)
    got = words_of(evaluate(op, [vector(name, lhs), vector(name, rhs)], vector(name, lhs).type))
    assert got == [ROUNDED[op](fmt, x, y) for x, y in zip(lhs, rhs, strict=True)]


@pytest.mark.parametrize("name", SAMPLED)
def test_fma(name: str) -> None:
    fmt = parse_dtype(name).float_format
    rng = random.Random(name)
    finite = [word for word in sample(name, 300) if not isinstance(exact.decode(fmt, word), str)]
    rows = [[rng.choice(finite) for _ in range(3)] for _ in range(300)]
    # addends that nearly cancel the product
    rows += [[x, y, exact.multiply(fmt, x, y) ^ fmt.sign_mask] for x, y, _ in rows]
    rows = [row for row in rows if fmt.is_finite(row[2])]
    columns = [list(column) for column in zip(*rows, strict=True)]
    got = words_of(evaluate("fma", [vector(name, column) for column in columns], vector(name, columns[0]).type))
    assert got == [exact.fma(fmt, *row) for row in rows]


@pytest.mark.parametrize("name", ["float32", "float64"])
@pytest.mark.parametrize("op", ["add", "subtract", "multiply", "divide", "sqrt"])
def test_processor_words(op: str, name: str) -> None:
    """NumPy's own results with every NaN made canonical, on words of all kinds."""
    fmt = parse_dtype(name).float_format
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 1 << fmt.width, (2, 20000), dtype=np.uint64, endpoint=False).astype(f"uint{fmt.width}")
    x, y = bits.view(name)
    arguments = (x,) if op == "sqrt" else (x, y)
    with np.errstate(all="ignore"):
        expected = getattr(np, op)(*arguments)
    words = np.where(np.isnan(expected), exact.canonical_nan(fmt), expected.view(bits.dtype))
    result = evaluate(op, [Tensor.from_numpy(z) for z in arguments], TensorType((20000,), parse_dtype(name)))
    assert np.array_equal(result.words, words)


INTEGRAL: dict[str, Callable[[Fraction], int]] = {
    "floor": lambda x: x.__floor__(),
    "ceil": lambda x: x.__ceil__(),
    "trunc": lambda x: x.__trunc__(),
    "round_nearest_even": lambda x: round(x),
    "round_nearest_afz": lambda x: int(abs(x) + Fraction(1, 2)) * (1 if x >= 0 else -1),
}


@pytest.mark.parametrize("name", ["float4_e2m1fn", "float8_e4m3fn", "float8_e5m2", "float16", "float32", "float128"])
@pytest.mark.parametrize("op", INTEGRAL)
def test_integral(op: str, name: str) -> None:
    fmt = parse_dtype(name).float_format
    words = list(range(1 << fmt.width)) if fmt.width <= 8 else sample(name, 400)
    expected = []
    for word in words:
        number = exact.decode(fmt, word)
        if number != "-0" and not isinstance(number, str):
            number = Fraction(INTEGRAL[op](number))
        expected.append(exact.encode(fmt, number, int(exact.is_negative(fmt, word))))
    assert words_of(evaluate(op, [vector(name, words)], vector(name, words).type)) == expected


@pytest.mark.parametrize("name", [*SMALL, "float16", "float64", "float128"])
@pytest.mark.parametrize("direction", ["EQ", "NE", "LT", "LE", "GT", "GE"])
def test_compare(direction: str, name: str) -> None:
    fmt = parse_dtype(name).float_format
    lhs, rhs = float_pairs(name)
    lhs, rhs = thinned(lhs, 3000), thinned(rhs, 3000)

    def key(word: int) -> Any:
        number = exact.decode(fmt, word)
        return {"-0": Fraction(0), "inf": float("inf"), "-inf": float("-inf"), "nan": float("nan")}.get(number, number)  # type: ignore[call-overload]

    expected = [
        int({"EQ": x == y, "NE": x != y, "LT": x < y, "LE": x <= y, "GT": x > y, "GE": x >= y}[direction])
        for x, y in zip(map(key, lhs), map(key, rhs), strict=True)
    ]
    result = TensorType((len(lhs),), parse_dtype("bool"))
    attrs = {"comparison_direction": direction}
    assert words_of(evaluate("compare", [vector(name, lhs), vector(name, rhs)], result, attrs)) == expected


@pytest.mark.parametrize("name", ["float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz", "float16", "float64", "float128"])
def test_total_order_sorts(name: str) -> None:
    """Words in the order in which the meaning lists them: -NaN by payload down, numbers, NaN by payload up."""
    fmt = parse_dtype(name).float_format
    sign, below = exact.masks(fmt)
    words = range(1 << fmt.width) if fmt.width <= 8 else sorted({word & (sign | below) for word in sample(name, 50)})
    one_nan = fmt.nans == "negative_zero"
    negative = sorted((word for word in words if word & sign and not (one_nan and word == sign)), reverse=True)
    ordered = [*negative, *sorted(word for word in words if not word & sign)]
    ordered += [sign] if one_nan and sign in words else []
    lhs, rhs = [x for x in ordered for _ in ordered], [y for _ in ordered for y in ordered]
    place = {word: k for k, word in enumerate(ordered)}
    attrs = {"comparison_direction": "LE", "compare_type": "TOTALORDER"}
    result = TensorType((len(lhs),), parse_dtype("bool"))
    got = words_of(evaluate("compare", [vector(name, lhs), vector(name, rhs)], result, attrs))
    assert got == [int(place[x] <= place[y]) for x, y in zip(lhs, rhs, strict=True)]


@pytest.mark.parametrize("name", ["float8_e5m2", "float8_e4m3fn", "float4_e2m1fn", "float16", "float128"])
def test_maximum_and_minimum(name: str) -> None:
    fmt = parse_dtype(name).float_format
    lhs, rhs = float_pairs(name)
    lhs, rhs = thinned(lhs, 9000), thinned(rhs, 9000)

    def key(word: int) -> tuple[Any, int]:
        number = exact.decode(fmt, word)
        value = {"-0": Fraction(0), "inf": float("inf"), "-inf": float("-inf")}.get(number, number)  # type: ignore[call-overload]
        return value, -int(number == "-0")

    for op, choose in (("maximum", max), ("minimum", min)):
        expected = [
            exact.canonical_nan(fmt)
            if "nan" in (exact.decode(fmt, x), exact.decode(fmt, y))
            else choose((x, y), key=key)
            for x, y in zip(lhs, rhs, strict=True)
        ]
        assert words_of(evaluate(op, [vector(name, lhs), vector(name, rhs)], vector(name, lhs).type)) == expected


@pytest.mark.parametrize("name", ["float8_e5m2", "float8_e4m3fn", "float4_e2m1fn", "float8_e4m3fnuz", "float8_e8m0fnu"])
def test_next_after_walks_through_all_values(name: str) -> None:
    fmt = parse_dtype(name).float_format
    words = range(1 << fmt.width)
    by_value: dict[Any, list[int]] = {}
    for word in words:
        number = exact.decode(fmt, word)
        if number not in ("nan", "inf", "-inf"):
            by_value.setdefault(exact.finite(number), []).append(word)
    values = sorted(by_value)
    pairs = [(a, b) for k, a in enumerate(values) for b in (values[max(0, k - 3)], values[min(len(values) - 1, k + 2)])]
    lhs = [by_value[a][0] for a, _ in pairs]
    rhs = [by_value[b][-1] for _, b in pairs]
    got = words_of(evaluate("next_after", [vector(name, lhs), vector(name, rhs)], vector(name, lhs).type))
    for (a, b), y, word in zip(pairs, rhs, got, strict=True):
        if a == b:
            assert word == y
        else:
            step = values[values.index(a) + (1 if b > a else -1)]
            assert exact.finite(exact.decode(fmt, word)) == step


@pytest.mark.parametrize("name", ["float8_e5m2", "float8_e4m3fn", "float16", "float64", "float128"])
@pytest.mark.parametrize("exponent", [-3, -1, 0, 1, 2, 5, 11])
def test_integer_pow_multiplies_as_stated(name: str, exponent: int) -> None:
    fmt = parse_dtype(name).float_format
    words = list(range(1 << fmt.width)) if fmt.width <= 8 else sample(name, 60)
    one = exact.encode(fmt, Fraction(1))
    expected = []
    for word in words:
        square, accumulator = word, None
        for bit in reversed(f"{abs(exponent):b}"):
            if bit == "1":
                accumulator = square if accumulator is None else exact.multiply(fmt, accumulator, square)
            square = exact.multiply(fmt, square, square)
        result = one if accumulator is None else accumulator
        if exact.decode(fmt, result) == "nan":
            result = exact.canonical_nan(fmt)
        expected.append(exact.divide(fmt, one, result) if exponent < 0 else result)
    got = evaluate("integer_pow", [vector(name, words)], vector(name, words).type, {"exponent": exponent})
    assert words_of(got) == expected
    flagged, _ = evaluate_with_flags("integer_pow", [vector(name, words)], got.type, {"exponent": exponent})
    assert flagged.same_words(got)


@pytest.mark.parametrize("op", ["negate", "abs", "sign"])
@pytest.mark.parametrize("name", [*SMALL, "float8_e5m2fnuz", "bfloat16", "float128"])
def test_sign_operations(op: str, name: str) -> None:
    fmt = parse_dtype(name).float_format
    sign, below = exact.masks(fmt)
    words = list(range(1 << fmt.width)) if fmt.width <= 8 else sample(name, 100)
    got = words_of(evaluate(op, [vector(name, words)], vector(name, words).type))
    for word, result in zip(words, got, strict=True):
        number = exact.decode(fmt, word)
        if op == "sign":
            unit = Fraction(-1 if word & sign else 1)
            zero = number in (0, "-0")
            assert result == (word if zero else exact.encode(fmt, "nan" if number == "nan" else unit))
        elif fmt.nans == "negative_zero" and not word & below:
            assert result == word
        elif op == "abs":
            assert result == word & below
        elif fmt.signed:
            assert result == word ^ sign
        else:
            assert result == exact.canonical_nan(fmt)


@pytest.mark.parametrize("name", ["float32", "float64", "float16", "bfloat16"])
def test_remainder_is_exact(name: str) -> None:
    fmt = parse_dtype(name).float_format
    words = [word for word in sample(name, 200) if not isinstance(exact.decode(fmt, word), str)]
    lhs, rhs = words, [words[-1 - k] if exact.decode(fmt, words[-1 - k]) != 0 else 1 for k in range(len(words))]
    got = words_of(evaluate("remainder", [vector(name, lhs), vector(name, rhs)], vector(name, lhs).type))
    for x, y, word in zip(lhs, rhs, got, strict=True):
        a, b = exact.finite(exact.decode(fmt, x)), exact.finite(exact.decode(fmt, y))
        rest = a - b * (a / b).__trunc__()
        assert word == exact.encode(fmt, rest, int(exact.is_negative(fmt, x)))


def test_flags_of_arithmetic() -> None:
    """1/3, 0/0, 1/0, the largest number doubled, the smallest subnormal halved, and 1 + 1."""
    words = {
        "lhs": [0x3F800000, 0, 0x3F800000, 0x7F7FFFFF, 1, 0x3F800000],
        "rhs": [0x40400000, 0, 0, 0x3F000000, 0x40000000, 0x3F800000],
    }
    lhs, rhs = vector("float32", words["lhs"]), vector("float32", words["rhs"])
    _, flags = evaluate_with_flags("divide", [lhs, rhs], lhs.type)
    assert flags == [
        Flags.INEXACT,
        Flags.INVALID,
        Flags.DIVIDE_BY_ZERO,
        Flags.OVERFLOW | Flags.INEXACT,
        Flags.UNDERFLOW | Flags.INEXACT,
        0,
    ]


def test_flags_of_a_conversion() -> None:
    """2^24 + 1 does not fit float32; 2^24 does."""
    operand = vector("float64", [0x4170000010000000, 0x4170000000000000])
    narrow, flags = evaluate_with_flags("convert", [operand], TensorType((2,), parse_dtype("float32")))
    assert words_of(narrow) == [0x4B800000, 0x4B800000]
    assert flags == [Flags.INEXACT, 0]
    back, flags = evaluate_with_flags("convert", [narrow], operand.type)
    assert words_of(back) == [0x4170000000000000] * 2
    assert flags == [0, 0]


def test_flags_of_steps_are_joined() -> None:
    """A sum of 2^24, 1 and 1 is inexact, one of 1 and 1 is not; so for the products and sums of a contraction."""
    operand = tensor(
        TensorType((2, 3), parse_dtype("float32")), [0x4B800000, 0x3F800000, 0x3F800000, 0x3F800000, 0, 0x3F800000]
    )
    result = TensorType((2,), operand.dtype)
    _, flags = evaluate_with_flags("reduce", [operand], result, {"reducer": "add", "dimensions": (1,)})
    assert flags == [Flags.INEXACT, 0]
    ones = tensor(TensorType((3,), operand.dtype), [0x3F800000] * 3)
    attrs = {
        "lhs_batching_dimensions": (),
        "rhs_batching_dimensions": (),
        "lhs_contracting_dimensions": (1,),
        "rhs_contracting_dimensions": (0,),
    }
    _, flags = evaluate_with_flags("dot_general", [operand, ones], result, attrs)
    assert flags == [Flags.INEXACT, 0]


@pytest.mark.parametrize(
    ("name", "through", "exponent_bits", "mantissa_bits"),
    [("float32", "bfloat16", 8, 7), ("float16", "float8_e5m2", 5, 2), ("bfloat16", "float8_e5m2", 5, 2)],
)
def test_reduce_precision_is_a_conversion(name: str, through: str, exponent_bits: int, mantissa_bits: int) -> None:
    """To the widths of a narrower IEEE format: ml_dtypes' conversion there and back, with subnormal numbers flushed
    where the exponent is narrower too."""
    native, narrow = np.dtype(getattr(ml_dtypes, name, name)), np.dtype(getattr(ml_dtypes, through))
    fmt = parse_dtype(name).float_format
    if fmt.width == 16:
        words = np.arange(1 << 16, dtype=np.uint16)
    else:
        dense = np.arange(0x00700000, 0x00900000, 64, dtype=np.uint32)  # around the smallest normal number
        words = np.concatenate([dense, np.random.default_rng(2).integers(0, 1 << 32, 50000, dtype=np.uint32)])
    with np.errstate(all="ignore"):
        back = words.view(native).astype(np.float32).astype(narrow).astype(np.float32).astype(native)
        size = np.abs(words.view(native).astype(np.float64))
    smallest = float(ml_dtypes.finfo(narrow).smallest_normal)
    # numbers nearer to the next one below the smallest normal; the format's own subnormal numbers are not flushed
    flushed = (size < smallest * (1 - 2.0 ** -(mantissa_bits + 2))) & (fmt.exponent_bits > exponent_bits)
    expected = np.where(np.isnan(back.astype(np.float32)), exact.canonical_nan(fmt), back.view(words.dtype))
    expected = np.where(flushed, words & np.array(fmt.sign_mask, words.dtype), expected)
    operand = Tensor(TensorType(words.shape, parse_dtype(name)), words)
    attrs = {"exponent_bits": exponent_bits, "mantissa_bits": mantissa_bits}
    result = evaluate("reduce_precision", [operand], operand.type, attrs)
    assert np.array_equal(result.words, expected)
