"""The kernels of arithmetic return the words and flags of the specification, and of MPFR."""

from __future__ import annotations

import random
from typing import Any

import gmpy2
import pytest
from floatlib_mpfr import MODES, boundary_word, expected, to_mpfr
from floatlib_soft import (
    EIGHT_BITS,
    SIXTEEN_BITS,
    SMALLER,
    WIDE,
    all_rows,
    check,
    directed_rows,
    modes_for,
)

from tlir.floatlib import arithmetic
from tlir.floatlib.format import FORMATS, Format
from tlir.floatlib.rounding import Rounding
from tlir.floatlib.soft import catalog
from tlir.floatlib.soft.catalog import OPERANDS

PAIRS = ["add", "subtract", "multiply", "divide"]


@pytest.mark.parametrize("fmt", SMALLER, ids=str)
@pytest.mark.parametrize("operation", [*PAIRS, "sqrt"])
def test_all_operands_of_up_to_six_bits_in_every_mode(fmt: Format, operation: str) -> None:
    rows = all_rows(fmt, OPERANDS[operation])
    for rounding in Rounding:
        want = [getattr(arithmetic, operation)(fmt, *row, rounding) for row in rows]
        check(catalog.arithmetic(operation, fmt, rounding, True), rows, want)


@pytest.mark.parametrize("fmt", [fmt for fmt in SMALLER if fmt.width <= 5], ids=str)
def test_all_triples_of_up_to_five_bits(fmt: Format, exhaustive: bool) -> None:
    rows = all_rows(fmt, 3)
    for rounding in Rounding if exhaustive or fmt.width <= 4 else modes_for(Format(5, 2, bias=fmt.bias), False):
        want = [arithmetic.fma(fmt, *row, rounding) for row in rows]
        check(catalog.arithmetic("fma", fmt, rounding, True), rows, want)


@pytest.mark.parametrize("fmt", EIGHT_BITS, ids=str)
@pytest.mark.parametrize("operation", PAIRS)
def test_all_pairs_of_eight_bits(fmt: Format, operation: str, exhaustive: bool) -> None:
    rows = all_rows(fmt, 2)
    for rounding in modes_for(fmt, exhaustive):
        want = [getattr(arithmetic, operation)(fmt, *row, rounding) for row in rows]
        check(catalog.arithmetic(operation, fmt, rounding, True), rows, want)


@pytest.mark.parametrize("fmt", [*EIGHT_BITS, *SIXTEEN_BITS], ids=str)
def test_square_root_of_every_word(fmt: Format) -> None:
    rows = all_rows(fmt, 1)
    for rounding in Rounding if fmt.width <= 8 else (Rounding.NEAREST_EVEN, Rounding.UP):
        want = [arithmetic.sqrt(fmt, *row, rounding) for row in rows]
        check(catalog.arithmetic("sqrt", fmt, rounding, True), rows, want)


@pytest.mark.parametrize("fmt", [*EIGHT_BITS, *SIXTEEN_BITS, *WIDE], ids=str)
@pytest.mark.parametrize("operation", OPERANDS)
def test_directed_operands(fmt: Format, operation: str) -> None:
    rows = directed_rows(fmt, 700, OPERANDS[operation])
    for rounding in Rounding:
        part = rows if rounding is Rounding.NEAREST_EVEN else rows[:150]
        want = [getattr(arithmetic, operation)(fmt, *row, rounding) for row in part]
        check(catalog.arithmetic(operation, fmt, rounding, True), part, want)


@pytest.mark.parametrize("fmt", [FORMATS[name] for name in ("float16", "float32", "float64", "float128", "float256")]
                         + [Format(11, 80)], ids=str)  # fmt: skip
def test_agreement_with_mpfr(fmt: Format) -> None:
    rng = random.Random(f"mpfr{fmt}")
    functions: dict[str, Any] = {
        "add": lambda context, x, y: context.add(x, y),
        "subtract": lambda context, x, y: context.sub(x, y),
        "multiply": lambda context, x, y: context.mul(x, y),
        "divide": lambda context, x, y: context.div(x, y),
        "sqrt": lambda context, x: context.sqrt(x),
        "fma": lambda context, x, y, z: context.fma(x, y, z),
    }
    for operation, function in functions.items():
        rows = []
        while len(rows) < 150:
            row = tuple(boundary_word(fmt, rng) for _ in range(OPERANDS[operation]))
            values = [to_mpfr(fmt, word) for word in row]
            if not any(gmpy2.is_nan(value) or gmpy2.is_infinite(value) for value in values):
                rows.append(row)
        for rounding in MODES:
            want = []
            for row in rows:
                values = [to_mpfr(fmt, word) for word in row]
                want.append(expected(fmt, rounding, lambda context, f=function, values=values: f(context, *values)))
            check(catalog.arithmetic(operation, fmt, rounding, True), rows, want)


def test_exact_squares_and_the_ends_of_the_range() -> None:
    quad, single = FORMATS["float128"], FORMATS["float32"]
    one_and_a_bit = quad.encode(0, 2**100 + 1, -100)
    square = catalog.arithmetic("multiply", quad, flags=True)
    # (1 + 2**-100)**2 = 1 + 2**-99 + 2**-200, of which binary128 keeps all but the last term
    check(square, [(one_and_a_bit,) * 2], [(quad.encode(0, 2**99 + 1, -99), 1)])
    half = single.encode(0, 1, -1)
    check(catalog.arithmetic("multiply", single, flags=True), [(1, half)], [(0, 3)])
    check(catalog.arithmetic("add", single, flags=True), [(1, 1), (1, 2)], [(2, 0), (3, 0)])
