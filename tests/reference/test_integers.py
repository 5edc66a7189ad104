"""Integer operations against Python's own integers: every pair of int2, int4 and 8-bit words, dense samples above."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
from conformance import evaluate, tensor, words_of

from tlir.ir.tensor import Tensor
from tlir.ir.types import TensorType, parse_dtype

SMALL = ("int2", "uint2", "int4", "uint4", "int8", "uint8")
LARGE = ("int16", "uint16", "int32", "uint32", "int64", "uint64")


def bits_of(name: str) -> int:
    return int(name.removeprefix("u").removeprefix("int"))


def decode(name: str, word: int) -> int:
    bits = bits_of(name)
    return word - (1 << bits) if name.startswith("int") and word >> (bits - 1) else word


def truncated(x: int, y: int) -> int:
    quotient = abs(x) // abs(y)
    return quotient if (x < 0) == (y < 0) else -quotient


def power(x: int, y: int, modulus: int) -> int:
    if y < 0:
        return {1: 1, -1: 1 if y % 2 == 0 else -1}.get(x, 0)
    return pow(x, y, modulus)


def clamp(name: str, low: int, x: int, high: int) -> int:
    return min(max(decode(name, x), decode(name, low)), decode(name, high))


def sign(x: int) -> int:
    return (x > 0) - (x < 0)


# Results as Python integers of any size: the low bits are the word. The arguments are values, x and y.
BINARY: dict[str, Callable[[int, int, int], int]] = {
    "add": lambda x, y, bits: x + y,
    "subtract": lambda x, y, bits: x - y,
    "multiply": lambda x, y, bits: x * y,
    "divide": lambda x, y, bits: truncated(x, y) if y else -1,
    "remainder": lambda x, y, bits: x - y * truncated(x, y) if y else x,
    "maximum": lambda x, y, bits: max(x, y),
    "minimum": lambda x, y, bits: min(x, y),
    "power": lambda x, y, bits: power(x, y, 1 << bits),
    "and": lambda x, y, bits: x & y,
    "or": lambda x, y, bits: x | y,
    "xor": lambda x, y, bits: x ^ y,
    "shift_left": lambda x, y, bits: x << y if 0 <= y < bits else 0,
    "shift_right_logical": lambda x, y, bits: (x % (1 << bits)) >> y if 0 <= y < bits else 0,
    "shift_right_arithmetic": lambda x, y, bits: (
        ((x + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))) >> (y if 0 <= y < bits else bits - 1)
    ),
}

UNARY: dict[str, Callable[[int, int], int]] = {
    "negate": lambda x, bits: -x,
    "abs": lambda x, bits: abs(x),
    "sign": lambda x, bits: sign(x),
    "not": lambda x, bits: ~x,
    "popcnt": lambda x, bits: (x % (1 << bits)).bit_count(),
    "count_leading_zeros": lambda x, bits: bits - (x % (1 << bits)).bit_length(),
}

COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "EQ": lambda x, y: x == y,
    "NE": lambda x, y: x != y,
    "GE": lambda x, y: x >= y,
    "GT": lambda x, y: x > y,
    "LE": lambda x, y: x <= y,
    "LT": lambda x, y: x < y,
}


def sample(name: str, count: int) -> list[int]:
    """Words around the ends and the powers of two, and random ones of every length."""
    bits, rng = bits_of(name), random.Random(name)
    edges = {0, 1, 2, 3, (1 << bits) - 1, (1 << bits) - 2, 1 << (bits - 1), (1 << (bits - 1)) - 1, bits, bits - 1}
    edges |= {1 << k for k in range(0, bits, 7)}
    return [*edges, *(rng.getrandbits(bits) >> rng.randrange(bits) for _ in range(count))]


def pairs(name: str) -> tuple[list[int], list[int]]:
    if name in SMALL:
        words = range(1 << bits_of(name))
    else:
        words = sample(name, 40)  # type: ignore[assignment]
    return [x for x in words for _ in words], [y for _ in words for y in words]


def vector(name: str, words: list[int]) -> Tensor:
    return tensor(TensorType((len(words),), parse_dtype(name)), words)


@pytest.mark.parametrize("name", SMALL + LARGE)
@pytest.mark.parametrize("op", BINARY)
def test_binary(op: str, name: str) -> None:
    lhs, rhs = pairs(name)
    operands = vector(name, lhs), vector(name, rhs)
    bits = bits_of(name)
    got = words_of(evaluate(op, operands, operands[0].type))
    expected = [BINARY[op](decode(name, x), decode(name, y), bits) % (1 << bits) for x, y in zip(lhs, rhs, strict=True)]
    assert got == expected


@pytest.mark.parametrize("name", SMALL + LARGE)
@pytest.mark.parametrize("op", UNARY)
def test_unary(op: str, name: str) -> None:
    bits = bits_of(name)
    words = list(range(1 << bits)) if bits <= 8 else sample(name, 500)
    operand = vector(name, words)
    expected = [UNARY[op](decode(name, x), bits) % (1 << bits) for x in words]
    assert words_of(evaluate(op, [operand], operand.type)) == expected


@pytest.mark.parametrize("name", ["bool", *SMALL, *LARGE])
@pytest.mark.parametrize("direction", COMPARISONS)
def test_compare(direction: str, name: str) -> None:
    lhs, rhs = ([0, 0, 1, 1], [0, 1, 0, 1]) if name == "bool" else pairs(name)
    result = TensorType((len(lhs),), parse_dtype("bool"))
    got = evaluate("compare", [vector(name, lhs), vector(name, rhs)], result, {"comparison_direction": direction})
    values = [(x, y) if name == "bool" else (decode(name, x), decode(name, y)) for x, y in zip(lhs, rhs, strict=True)]
    assert words_of(got) == [int(COMPARISONS[direction](x, y)) for x, y in values]


@pytest.mark.parametrize("name", ["int4", "uint4", "int64"])
def test_clamp(name: str) -> None:
    words = list(range(16)) if "4" in name and "64" not in name else sample(name, 5)
    triples = [(low, x, high) for low in words for x in words for high in words]
    columns = [list(column) for column in zip(*triples, strict=True)]
    got = words_of(evaluate("clamp", [vector(name, column) for column in columns], vector(name, columns[0]).type))
    assert got == [clamp(name, *triple) % (1 << bits_of(name)) for triple in triples]


@pytest.mark.parametrize("name", ["int2", "int4", "uint8", "int32", "uint64"])
@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 7, 1000, 2**31 - 1])
def test_integer_pow(name: str, exponent: int) -> None:
    words = sample(name, 20)
    words = [word % (1 << bits_of(name)) for word in words]
    operand = vector(name, words)
    got = words_of(evaluate("integer_pow", [operand], operand.type, {"exponent": exponent}))
    assert got == [pow(decode(name, x), exponent, 1 << bits_of(name)) for x in words]


@pytest.mark.parametrize("source", ["bool", *SMALL, *LARGE])
@pytest.mark.parametrize("target", [*SMALL, *LARGE])
def test_convert(source: str, target: str) -> None:
    words = [0, 1] if source == "bool" else [word % (1 << bits_of(source)) for word in sample(source, 50)]
    result = TensorType((len(words),), parse_dtype(target))
    values = words if source == "bool" else [decode(source, word) for word in words]
    assert words_of(evaluate("convert", [vector(source, words)], result)) == [
        x % (1 << bits_of(target)) for x in values
    ]


@pytest.mark.parametrize("op", ["maximum", "minimum", "and", "or", "xor"])
def test_bool(op: str) -> None:
    lhs, rhs = [0, 0, 1, 1], [0, 1, 0, 1]
    function = {"maximum": max, "minimum": min}.get(op) or (lambda x, y: BINARY[op](x, y, 1))
    got = evaluate(op, [vector("bool", lhs), vector("bool", rhs)], TensorType((4,), parse_dtype("bool")))
    assert words_of(got) == [function(x, y) for x, y in zip(lhs, rhs, strict=True)]


@pytest.mark.parametrize("name", SMALL + LARGE)
def test_scalars_wrap_without_a_warning(name: str, recwarn: pytest.WarningsRecorder) -> None:
    """Rank 0, where NumPy computes with scalars and warns of overflow."""
    bits = bits_of(name)
    least = 1 << (bits - 1)
    operand = tensor(TensorType((), parse_dtype(name)), [least])
    for op in ("add", "multiply", "subtract", "divide", "negate", "power", "shift_left"):
        operands = [operand] * (1 if op == "negate" else 2)
        result = evaluate(op, operands, operand.type)
        assert result.words.shape == ()
        assert result.words.dtype == parse_dtype(name).word_dtype
    assert not recwarn.list


@pytest.mark.parametrize("reducer", ["add", "multiply", "maximum", "minimum", "and", "or", "xor"])
@pytest.mark.parametrize("name", ["int2", "uint4", "int4", "int8", "uint32", "int64"])
def test_reduce(reducer: str, name: str) -> None:
    bits, rng = bits_of(name), random.Random(reducer + name)
    rows = [[rng.getrandbits(bits) for _ in range(7)] for _ in range(5)]
    operand = tensor(TensorType((5, 7), parse_dtype(name)), [word for row in rows for word in row])
    result = TensorType((5,), parse_dtype(name))
    got = words_of(evaluate("reduce", [operand], result, {"reducer": reducer, "dimensions": (1,)}))
    expected = []
    for row in rows:
        total = decode(name, row[0])
        for word in row[1:]:
            total = BINARY[reducer](total, decode(name, word), bits)
        expected.append(total % (1 << bits))
    assert got == expected


@pytest.mark.parametrize(
    ("name", "result"), [("int4", "int4"), ("int8", "int32"), ("uint8", "uint16"), ("int64", "int64")]
)
def test_dot_general(name: str, result: str) -> None:
    rng = np.random.default_rng(5)
    lhs, rhs = (
        rng.integers(0, 1 << min(bits_of(name), 62), (3, 6)),
        rng.integers(0, 1 << min(bits_of(name), 62), (6, 4)),
    )
    attrs = {
        "lhs_batching_dimensions": (),
        "rhs_batching_dimensions": (),
        "lhs_contracting_dimensions": (1,),
        "rhs_contracting_dimensions": (0,),
    }
    operands = [tensor(TensorType(side.shape, parse_dtype(name)), side.reshape(-1).tolist()) for side in (lhs, rhs)]
    got = words_of(evaluate("dot_general", operands, TensorType((3, 4), parse_dtype(result)), attrs))
    values = [[[decode(name, int(word)) for word in row] for row in side] for side in (lhs, rhs)]
    expected = [
        sum(values[0][i][k] * values[1][k][j] for k in range(6)) % (1 << bits_of(result))
        for i in range(3)
        for j in range(4)
    ]
    assert got == expected
