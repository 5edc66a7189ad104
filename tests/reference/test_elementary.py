"""That each elementary operation evaluates its own function: against MPFR and MPC, in float32 and complex64.

The functions themselves are tested in ``tests/floatlib``; this is about names, operands and their order."""

from __future__ import annotations

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
from tlir.ir.ops import elementary as declared
from tlir.ir.tensor import Tensor
from tlir.ir.types import DType, TensorType, parse_dtype

REAL: dict[str, Callable[..., Any]] = {
    "rsqrt": lambda x: 1 / gmpy2.sqrt(x),
    "exponential": gmpy2.exp,
    "exponential_minus_one": gmpy2.expm1,
    "log": gmpy2.log,
    "log_plus_one": gmpy2.log1p,
    "logistic": lambda x: 1 / (1 + gmpy2.exp(-x)),
    "tanh": gmpy2.tanh,
    "sine": gmpy2.sin,
    "cosine": gmpy2.cos,
    "tan": gmpy2.tan,
    "asin": gmpy2.asin,
    "acos": gmpy2.acos,
    "atan": gmpy2.atan,
    "sinh": gmpy2.sinh,
    "cosh": gmpy2.cosh,
    "asinh": gmpy2.asinh,
    "acosh": gmpy2.acosh,
    "atanh": gmpy2.atanh,
    "exp2": gmpy2.exp2,
    "log2": gmpy2.log2,
    "log10": gmpy2.log10,
    "cbrt": gmpy2.cbrt,
    "erf": gmpy2.erf,
    "erfc": gmpy2.erfc,
    "lgamma": lambda x: gmpy2.lgamma(x)[0],
    "digamma": gmpy2.digamma,
    "atan2": gmpy2.atan2,
    "hypot": gmpy2.hypot,
    "power": lambda x, y: x**y,
}
COMPLEX = ["exponential", "log", "tanh", "sine", "cosine", "tan", "asin", "acos", "atan", "sinh", "cosh", "power"]

WITH_AN_ORACLE_OF_ITS_OWN = {"erf_inv"}


def high(words: list[int], fmt: Format) -> list[Any]:
    return [gmpy2.mpfr(gmpy2.mpq(exact.finite(exact.decode(fmt, word)))) for word in words]


def operands(count: int, fmt: Format, name: str, arity: int) -> list[list[int]]:
    """Fractions of the domain of the function: within (0, 1), or above 1 for acosh."""
    rng = random.Random(name)
    low = Fraction(1) if name == "acosh" else Fraction(1, 50)
    draw = [[low + Fraction(rng.randrange(1, 1 << 30), 1 << 31) for _ in range(count)] for _ in range(arity)]
    return [[exact.encode(fmt, value) for value in column] for column in draw]


def test_every_function_is_here() -> None:
    assert set(REAL) | WITH_AN_ORACLE_OF_ITS_OWN == {operation.name for operation in declared.OPERATIONS}


@pytest.mark.parametrize("dtype", ["float16", "float32", "float128"])
@pytest.mark.parametrize("name", REAL)
def test_real(name: str, dtype: str) -> None:
    fmt = parse_dtype(dtype).float_format
    arity = 2 if name in ("atan2", "hypot", "power") else 1
    columns = operands(4, fmt, name, arity)
    with gmpy2.context(precision=400):
        values = [REAL[name](*row) for row in zip(*(high(column, fmt) for column in columns), strict=True)]
        expected = [exact.encode(fmt, Fraction(gmpy2.mpq(value))) for value in values]
    type = TensorType((4,), parse_dtype(dtype))
    given = [tensor(type, column) for column in columns]
    result = evaluate(name, given, type)
    assert words_of(result) == expected
    flagged, flags = evaluate_with_flags(name, given, type)
    assert flagged.same_words(result)
    assert len(flags) == 4


def test_erf_inv_is_the_inverse() -> None:
    """erf of the result's neighbours half a place away lies on either side of the operand."""
    fmt = parse_dtype("float32").float_format
    (column,) = operands(8, fmt, "erf_inv", 1)
    type = TensorType((8,), parse_dtype("float32"))
    result = words_of(evaluate("erf_inv", [tensor(type, column)], type))
    with gmpy2.context(precision=200):
        for x, y in zip(high(column, fmt), result, strict=True):
            below, middle, above = (high([y + step], fmt)[0] for step in (-1, 0, 1))
            assert gmpy2.erf((below + middle) / 2) < x < gmpy2.erf((middle + above) / 2)


@pytest.mark.parametrize("name", COMPLEX)
def test_complex(name: str) -> None:
    fmt = parse_dtype("float32").float_format
    arity = 2 if name == "power" else 1
    parts = operands(4, fmt, name, 2 * arity)
    type = TensorType((4,), parse_dtype("complex64"))
    with gmpy2.context(precision=300):
        arguments = [
            [gmpy2.mpc(x, y) for x, y in zip(high(parts[k], fmt), high(parts[k + 1], fmt), strict=True)]
            for k in range(0, 2 * arity, 2)
        ]
        values = [REAL[name](*row) for row in zip(*arguments, strict=True)]
        expected = [
            exact.encode(fmt, Fraction(gmpy2.mpq(part))) for value in values for part in (value.real, value.imag)
        ]
    given = [
        tensor(type, [word for pair in zip(parts[k], parts[k + 1], strict=True) for word in pair])
        for k in range(0, 2 * arity, 2)
    ]
    assert words_of(evaluate(name, given, type)) == expected


@pytest.mark.parametrize("name", ["exponential", "power", "sine"])
@pytest.mark.parametrize("dtype", ["float32", "complex64", "bfloat16"])
def test_scalars_and_nothing(name: str, dtype: str) -> None:
    arity = 2 if name == "power" else 1
    type = TensorType((), parse_dtype(dtype))
    one = parse_dtype(dtype).component.float_format.bias << parse_dtype(dtype).component.float_format.fraction_bits
    scalar = tensor(type, [one] * type.dtype.components)
    assert evaluate(name, [scalar] * arity, type).shape == ()
    empty = TensorType((0, 3), parse_dtype(dtype))
    nothing = Tensor(empty, tensor(empty, []).words)
    assert evaluate(name, [nothing] * arity, empty).shape == (0, 3)


def test_operands_beyond_every_precision_are_refused() -> None:
    """The sine of 2^(2^28): its reduction modulo pi would take 2^28 bits."""
    wide = DType("wide", "float", 41, Format(30, 10))
    fmt = wide.float_format
    operand = tensor(TensorType((1,), wide), [(fmt.bias + (1 << 28)) << 10])
    with pytest.raises(UnsupportedError) as caught:
        evaluate("sine", [operand], operand.type)
    assert caught.value.code == "TL0801"
    assert caught.value.node == "1 sine"
