"""The kernels of a float's sign and bits return the words of the specification, and those of exact fractions."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest
from floatlib_exact import field_value
from floatlib_soft import (
    EIGHT_BITS,
    SIXTEEN_BITS,
    SMALLER,
    WIDE,
    Row,
    all_rows,
    columns,
    directed_rows,
    ints_of,
)

from tlir.floatlib import convert, ordering
from tlir.floatlib.format import FORMATS, Format
from tlir.floatlib.rounding import infinity_word
from tlir.floatlib.soft import bits, numpy_loop
from tlir.floatlib.soft.catalog import Kernel

EVERY = [*SMALLER, *EIGHT_BITS, *SIXTEEN_BITS, *WIDE]


def rows_of(fmt: Format, operands: int) -> list[Row]:
    return all_rows(fmt, operands) if fmt.width <= 8 else directed_rows(fmt, 300, operands)


def same(kernel: Kernel, rows: list[Row], want: Callable[..., int]) -> None:
    words, _ = numpy_loop.run(kernel, columns(kernel.operands, rows))
    for row, word in zip(rows, ints_of(kernel.result, words), strict=True):
        assert word == want(*row), (kernel.name, [hex(operand) for operand in row])


@pytest.mark.parametrize("fmt", EVERY, ids=str)
def test_the_sign_bit(fmt: Format) -> None:
    same(bits.negate(fmt), rows_of(fmt, 1), lambda a: ordering.negate(fmt, a)[0])
    same(bits.absolute(fmt), rows_of(fmt, 1), lambda a: ordering.absolute(fmt, a)[0])
    same(bits.copysign(fmt), rows_of(fmt, 2)[::7], lambda a, b: ordering.copysign(fmt, a, b)[0])


@pytest.mark.parametrize("fmt", EVERY, ids=str)
def test_sign_and_is_finite(fmt: Format) -> None:
    def sign(a: int) -> int:
        if fmt.is_nan(a):
            return fmt.invalid_word
        if fmt.is_zero(a):
            return a
        return one[fmt.sign(a)]

    # the specification rounds: not every format has a number 1
    one = [convert.from_integer(fmt, value)[0] for value in (1, -1)]
    same(bits.sign(fmt), rows_of(fmt, 1), sign)
    same(bits.is_finite(fmt), rows_of(fmt, 1), lambda a: int(fmt.is_finite(a)))


@pytest.mark.parametrize("fmt", EVERY, ids=str)
def test_total_order(fmt: Format) -> None:
    rows = rows_of(fmt, 2)
    rows = rows[:: len(rows) // 4000 + 1]
    rows += [(a, a) for a, _ in rows[:300]]

    def holds(direction: str, a: int, b: int) -> int:
        below, above = ordering.total_order(fmt, a, b), ordering.total_order(fmt, b, a)
        return int({"LE": below, "GE": above, "LT": not above, "GT": not below, "EQ": a == b, "NE": a != b}[direction])

    for direction in ("EQ", "NE", "LT", "LE", "GT", "GE"):
        same(bits.total_order(fmt, direction), rows, lambda a, b, d=direction: holds(d, a, b))


def reduced(fmt: Format, exponent_bits: int, mantissa_bits: int, a: int) -> int:
    """``reduce_precision`` by exact numbers."""
    if fmt.is_nan(a):
        return fmt.invalid_word
    if not fmt.is_finite(a):
        return a
    magnitude, sign = fmt.magnitude(a), fmt.sign(a)
    unit = 2 ** max(fmt.fraction_bits - mantissa_bits, 0)
    magnitude = round(Fraction(magnitude, unit)) * unit
    if magnitude > fmt.max_finite_magnitude:
        return infinity_word(fmt, sign)
    value = field_value(fmt, *divmod(magnitude, 2**fmt.fraction_bits))
    if exponent_bits < fmt.exponent_bits:
        bias = 2 ** (exponent_bits - 1) - 1
        if value >= Fraction(2) ** (bias + 1):
            return infinity_word(fmt, sign)
        if value < Fraction(2) ** (1 - bias):
            return fmt.zero(sign) if fmt.has_zero else fmt.invalid_word
    return magnitude | (fmt.sign_mask if sign else 0)


@pytest.mark.parametrize("fmt", [f for f in EVERY if f.exponent_bits <= 11], ids=str)
def test_reduce_precision(fmt: Format) -> None:
    for exponent_bits in {1, 2, max(fmt.exponent_bits - 1, 1), fmt.exponent_bits, 30}:
        for mantissa_bits in {0, 1, max(fmt.fraction_bits - 1, 0), fmt.fraction_bits + 1}:
            kernel = bits.reduce_precision(fmt, exponent_bits, mantissa_bits)
            rows = rows_of(fmt, 1)[:400]
            same(kernel, rows, lambda a, e=exponent_bits, m=mantissa_bits: reduced(fmt, e, m, a))


def test_kernels_are_made_once() -> None:
    fmt = FORMATS["float8_e4m3fn"]
    assert bits.negate(fmt) is bits.negate(fmt)
    assert bits.reduce_precision(fmt, 3, 2) is bits.reduce_precision(fmt, 3, 2)
