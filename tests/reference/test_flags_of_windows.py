"""Flags of running totals, pooling and convolutions: raised where a step rounds, element by element; and logaddexp."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from conformance import evaluate_with_flags, words_of
from exact import encode
from jax import lax
from scalars import Real

from tlir.floatlib.format import FORMATS
from tlir.floatlib.rounding import Flags
from tlir.ir.ops import Accumulate
from tlir.ir.tensor import Tensor
from tlir.ir.types import TensorType, parse_dtype

FMT = FORMATS["float16"]


def real(x: Any) -> Real:
    return Real(FMT, encode(FMT, Fraction(float(x))))


def inexact_sum(terms: Iterable[Real]) -> int:
    """INEXACT if a step of the sum from 0 rounds."""
    total, raised = real(0), 0
    for term in terms:
        exact, total = total.value + term.value, total + term
        raised |= int(total.value != exact)
    return raised


def draw(seed: int, *shape: int, low: int = -8) -> np.ndarray:
    """Numbers of which some sums are exact in float16 and some are not."""
    rng = np.random.default_rng(seed)
    return (rng.integers(-60, 60, shape) * 2.0 ** rng.integers(low, 3, shape)).astype(np.float16)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_running_sums(seed: int, reverse: bool) -> None:
    x = draw(seed, 3, 5, 2)
    attrs = {"reducer": "add", "dimension": 1, "reverse": reverse}
    operand = Tensor.from_numpy(x)
    _, flags = evaluate_with_flags("cumulative", [operand], operand.type, attrs)
    want = np.zeros(x.shape, int)
    for i, j, k in np.ndindex(*x.shape):
        terms = x[i, j:, k][::-1] if reverse else x[i, : j + 1, k]
        want[i, j, k] = inexact_sum(map(real, terms))
    assert 0 < want.sum() < want.size
    assert flags == want.reshape(-1).tolist()


def test_conversions_of_totals_belong_to_their_elements() -> None:
    """1 + 2**-11 is exact in the accumulator; of its conversions to float16 the second rounds, the third does not."""
    operand = Tensor.from_numpy(np.array([1, 2.0**-11, 2.0**-11], np.float16))
    attrs = {"reducer": "add", "dimension": 0, "accumulate": Accumulate(parse_dtype("float32"))}
    _, flags = evaluate_with_flags("cumulative", [operand], operand.type, attrs)
    assert flags == [0, Flags.INEXACT, 0]


def test_running_products_and_extrema() -> None:
    operand = Tensor.from_numpy(np.array([2**10, 2**10, 1], np.float16))
    _, flags = evaluate_with_flags("cumulative", [operand], operand.type, {"reducer": "multiply", "dimension": 0})
    assert flags == [0, Flags.OVERFLOW | Flags.INEXACT, Flags.OVERFLOW | Flags.INEXACT]
    signaling = Tensor(operand.type, np.array([1, 0x7D00, 2], np.uint16))
    _, flags = evaluate_with_flags("cumulative", [signaling], operand.type, {"reducer": "maximum", "dimension": 0})
    assert flags == [0, Flags.INVALID, Flags.INVALID]
    integers = Tensor.from_numpy(np.array([1, 2], np.int32))
    assert evaluate_with_flags("cumulative", [integers], integers.type, {"reducer": "add", "dimension": 0})[1] == []


@pytest.mark.parametrize("seed", range(4))
def test_windows(seed: int) -> None:
    x = draw(seed, 4, 6)
    attrs = {
        "reducer": "add",
        "window_dimensions": (2, 2),
        "window_strides": (1, 2),
        "base_dilations": (1, 1),
        "window_dilations": (1, 1),
        "padding_low": (0, 0),
        "padding_high": (0, 0),
    }
    type = TensorType((3, 3), parse_dtype("float16"))
    _, flags = evaluate_with_flags("reduce_window", [Tensor.from_numpy(x)], type, attrs)
    want = [
        inexact_sum(map(real, x[i : i + 2, 2 * j : 2 * j + 2].reshape(-1).tolist())) for i in range(3) for j in range(3)
    ]
    assert 0 < sum(want) < 9
    assert flags == want
    attrs["reducer"] = "maximum"
    signaling = Tensor(
        TensorType((4, 6), type.dtype), np.where(np.arange(24) == 0, 0x7D00, 0).reshape(4, 6).astype(np.uint16)
    )
    _, flags = evaluate_with_flags("reduce_window", [signaling], type, attrs)
    assert flags == [Flags.INVALID] + [0] * 8


@pytest.mark.parametrize(("groups", "batch_groups"), [(1, 1), (2, 1), (1, 2)])
@pytest.mark.parametrize("seed", range(3))
def test_convolutions(seed: int, groups: int, batch_groups: int) -> None:
    """With axes of the result in another order than that of the computation."""
    batch, features, outputs = 2 * batch_groups, 2 * groups, 2 * groups * batch_groups
    x, kernel = draw(seed, batch, features, 5, low=-4), draw(seed + 50, outputs, 2, 2, low=-2)
    attrs = {
        "lhs_dimensions": (0, 1, 2),
        "rhs_dimensions": (0, 1, 2),
        "output_dimensions": (2, 0, 1),
        "window_strides": (1,),
        "padding_low": (0,),
        "padding_high": (0,),
        "lhs_dilation": (1,),
        "rhs_dilation": (1,),
        "window_reversal": (0,),
        "feature_group_count": groups,
        "batch_group_count": batch_groups,
    }
    type = TensorType((outputs, 4, 2), parse_dtype("float16"))
    operands = [Tensor.from_numpy(x), Tensor.from_numpy(kernel)]
    result, flags = evaluate_with_flags("convolution", operands, type, attrs)
    want = np.zeros(type.shape, int)
    for o, i, b in np.ndindex(*type.shape):
        row = b + (o // (outputs // batch_groups)) * (batch // batch_groups)
        first = (o // (outputs // groups)) * 2 if groups > 1 else 0
        total, raised = real(0), 0
        for f in range(2):
            for w in range(2):
                left, right = real(x[row, first + f, i + w]), real(kernel[o, f, w])
                term = left * right
                raised |= int(term.value != left.value * right.value)
                exact, total = total.value + term.value, total + term
                raised |= int(total.value != exact)
        want[o, i, b] = raised
        assert words_of(result)[np.ravel_multi_index((o, i, b), type.shape)] == total.word
    assert 0 < want.sum() < want.size
    assert flags == want.reshape(-1).tolist()


@pytest.mark.parametrize("name", ["float8_e5m2", "float32", "float64"])
@pytest.mark.parametrize("reverse", [False, True])
def test_running_logarithms_of_sums(name: str, reverse: bool) -> None:
    fmt, dtype = FORMATS[name], parse_dtype(name)
    rng = np.random.default_rng(3)
    words = [encode(fmt, Fraction(float(x))) for x in rng.normal(size=6) * 3]
    operand = Tensor(TensorType((6,), dtype), np.array(words, dtype.word_dtype))
    attrs = {"reducer": "logaddexp", "dimension": 0, "reverse": reverse}
    result, flags = evaluate_with_flags("cumulative", [operand], operand.type, attrs)
    order = words[::-1] if reverse else words
    with mpmath.workprec(400):
        totals = [order[0]]
        for word in order[1:]:
            pair = [Real(fmt, w).value for w in (totals[-1], word)]
            value = mpmath.log(sum(mpmath.exp(mpmath.mpf(v.numerator) / v.denominator) for v in pair))
            sign, significand, exponent, _ = value._mpf_
            totals.append(encode(fmt, Fraction((-1) ** sign * int(significand)) * Fraction(2) ** int(exponent)))
    assert words_of(result) == (totals[::-1] if reverse else totals)
    assert sorted(flags) == [0] + [Flags.INEXACT] * 5


def test_running_logarithms_as_jax_has_them() -> None:
    x = np.array([[-np.inf, -np.inf, 1, 700, np.inf, -np.inf], [0, 1, 2, np.nan, 1, 2]], np.float32)
    operand = Tensor.from_numpy(x)
    attrs = {"reducer": "logaddexp", "dimension": 1}
    result, _ = evaluate_with_flags("cumulative", [operand], operand.type, attrs)
    np.testing.assert_allclose(result.to_numpy(), np.asarray(lax.cumlogsumexp(jnp.asarray(x), 1)), rtol=1e-6)
