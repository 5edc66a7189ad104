"""Elementwise primitives: captured, evaluated by the reference, and compared with the words that JAX returned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax
from jax._src.lax import lax as internal
from jax_oracle import capture, checked, expect_ulps, expect_words, ops, outputs

FLOATS = ("float16", "bfloat16", "float32", "float64")
SIGNED = ("int8", "int32", "int64")
UNSIGNED = ("uint16", "uint64")

# Subnormals are left out: XLA flushes them on the CPU.
_EDGES = [0.0, -0.0, 1.0, -1.0, 1.5, -2.5, 0.5, 3.0, -7.0, 0.1, -0.3, 100.0, 1e-3, np.inf, -np.inf, np.nan]


@pytest.fixture(autouse=True)
def _x64() -> Any:
    with jax.enable_x64(True):
        yield


def floats(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of the edge values, and pairs of ordinary ones."""
    rng = np.random.default_rng(7)
    ordinary = rng.standard_normal((2, 64)) * 10.0 ** rng.integers(-2, 3, (2, 64))
    x = np.concatenate([np.repeat(_EDGES, len(_EDGES)), ordinary[0]])
    y = np.concatenate([np.tile(_EDGES, len(_EDGES)), ordinary[1]])
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    return x.astype(kind), y.astype(kind)


def integers(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of extreme and small values."""
    info = np.iinfo(dtype)
    values = [info.min, info.min + 1, info.max, info.max - 1, 0, 1, 2, 3, 7, 8, info.bits - 1, info.bits]
    values += [-1, -2, -5, -info.bits] if info.min else [info.max // 3]
    exact = np.array(values, dtype)
    return np.repeat(exact, len(exact)), np.tile(exact, len(exact))


def round_both(x: Any) -> Any:
    return lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO)


@pytest.mark.parametrize("dtype", FLOATS)
def test_float_arithmetic_has_jaxs_words(dtype: str) -> None:
    x, y = floats(dtype)
    expect_words(
        lambda x, y: (lax.add(x, y), lax.sub(x, y), lax.mul(x, y), lax.div(x, y), lax.max(x, y), lax.min(x, y)), x, y
    )
    expect_words(
        lambda x: (lax.neg(x), lax.abs(x), lax.sign(x), lax.floor(x), lax.ceil(x), round_both(x), lax.is_finite(x)), x
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_square_root_remainder_and_powers_have_jaxs_words(dtype: str) -> None:
    x, y = floats(dtype)
    expect_words(lambda x, y: (lax.sqrt(x), lax.rem(x, y), lax.nextafter(x, y), lax.square(x)), x, y)
    ordinary = x[(np.abs(x) < 50) & ((np.abs(x) > 0.02) | (x == 0))]
    expect_words(lambda x: tuple(lax.integer_pow(x, n) for n in (0, 1, 2, 3, 5, 7, 13, -1, -2, -3)), ordinary)


@pytest.mark.parametrize("dtype", FLOATS)
def test_comparisons_and_selection_have_jaxs_words(dtype: str) -> None:
    x, y = floats(dtype)
    compare = (lax.eq, lax.ne, lax.lt, lax.le, lax.gt, lax.ge)
    expect_words(lambda x, y: (tuple(c(x, y) for c in compare), jnp.where(x > y, x, y), lax.clamp(x, y, x)), x, y)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8"])
def test_total_order_comparisons(dtype: str) -> None:
    if dtype == "int8":
        x, y = integers(dtype)
    else:
        words = f"uint{8 * np.dtype(dtype).itemsize}"
        sign, infinity = np.array(-0.0, dtype).view(words), np.array(np.inf, dtype).view(words)
        nans = [infinity | 1, infinity + infinity // 2 + 3, infinity | 1 | sign, infinity + 77 | sign]
        special = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf], dtype).view(words).tolist() + nans
        values = np.array(special, words).view(dtype)
        x, y = np.repeat(values, len(values)), np.tile(values, len(values))
    three = (internal.eq_to_p, internal.lt_to_p, internal.le_to_p)
    expect_words(lambda x, y: tuple(p.bind(x, y) for p in three), x, y)
    artifact = capture.export(internal.lt_to_p.bind, x, y)
    wanted = {"comparison_direction": "LT"} | ({} if dtype == "int8" else {"compare_type": "TOTALORDER"})
    assert artifact["nodes"][-1]["attrs"] == wanted


@pytest.mark.parametrize("dtype", SIGNED + UNSIGNED)
def test_integers_have_jaxs_words(dtype: str) -> None:
    x, y = integers(dtype)
    expect_words(
        lambda x, y: (lax.add(x, y), lax.sub(x, y), lax.mul(x, y), lax.div(x, y), lax.rem(x, y), lax.max(x, y)), x, y
    )
    expect_words(lambda x, y: (x & y, x | y, x ^ y, ~x, lax.population_count(x), lax.clz(x), lax.sign(x)), x, y)
    expect_words(
        lambda x, y: (lax.shift_left(x, y), lax.shift_right_logical(x, y), lax.shift_right_arithmetic(x, y)), x, y
    )
    expect_words(lambda x: (lax.neg(x), lax.square(x), lax.integer_pow(x, 5), lax.clamp(x[3], x, x[2])), x)
    compare = (lax.eq, lax.ne, lax.lt, lax.le, lax.gt, lax.ge)
    expect_words(lambda x, y: tuple(c(x, y) for c in compare), x, y)
    if dtype in SIGNED:
        expect_words(lax.abs, x)


def test_booleans() -> None:
    a, b = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    expect_words(lambda a, b: (a & b, a | b, a ^ b, ~a, a * b, a + b, lax.max(a, b), lax.min(a, b)), a, b)
    expect_words(lambda a, b: (lax.lt(a, b), lax.ge(a, b), lax.eq(a, b), lax.clamp(a, b, a), jnp.where(a, b, a)), a, b)


def test_select_n_with_an_index_takes_the_nearest_case() -> None:
    which = np.array([-3, -1, 0, 1, 2, 3, 9], np.int32)
    cases = [np.full(7, k, np.float32) for k in range(4)]
    expect_words(lambda which, *cases: lax.select_n(which, *cases), which, *cases)
    expect_words(lambda which, a, b: lax.select_n(which, a, b), which[2:4], *(case[:2] for case in cases[:2]))
    expect_words(lambda which, a: lax.select_n(which, a), which, cases[0])


def test_a_scalar_or_an_axis_of_one_is_broadcast_by_a_node_of_its_own() -> None:
    x, row = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([[1, 2, 3]], np.float32)
    artifact = capture.export(lambda x, row: (x + row) * 2.0, x, row)
    assert ops(artifact) == ["broadcast_in_dim", "add", "broadcast_in_dim", "multiply"]
    expect_words(lambda x, row: lax.clamp(np.float32(1), x, row[0, 0] + 1) - jnp.where(True, x, row), x, row)


def test_a_division_by_a_constant_is_a_division() -> None:
    """Given a broadcast scalar, XLA multiplies by the reciprocal, which is wrong in every third word."""
    x = np.random.default_rng(0).standard_normal(3000).astype(np.float32)
    artifact = capture.export(lambda x: x / 3.0, x)
    recorded = checked(artifact).samples[0].outputs[0].to_numpy()
    np.testing.assert_array_equal(recorded, x / np.float32(3))
    assert not np.array_equal(np.asarray(jax.jit(lambda x: x / 3.0)(x)), recorded)
    assert "divide" in ops(artifact)


# Largest distances in ulps that XLA's own functions showed on these operands, rounded up.
ELEMENTARY: dict[str, tuple[Callable[..., Any], float, float, float]] = {
    "exp": (lax.exp, -20, 20, 2),
    "expm1": (lax.expm1, -3, 3, 8),
    "log": (lax.log, 0.01, 50, 2),
    "log1p": (lax.log1p, -0.9, 20, 4),
    "logistic": (lax.logistic, -8, 8, 4),
    "tanh": (lax.tanh, -4, 4, 6),
    "sin": (lax.sin, -10, 10, 2),
    "cos": (lax.cos, -10, 10, 2),
    "tan": (lax.tan, -1.5, 1.5, 4),
    "asin": (lax.asin, -1, 1, 4),
    "acos": (lax.acos, -1, 1, 4),
    "atan": (lax.atan, -10, 10, 4),
    "sinh": (lax.sinh, -4, 4, 12),
    "cosh": (lax.cosh, -4, 4, 6),
    "asinh": (lax.asinh, -10, 10, 6),
    "acosh": (lax.acosh, 1, 20, 8),
    "atanh": (lax.atanh, -0.95, 0.95, 8),
    "rsqrt": (lax.rsqrt, 0.01, 50, 2),
    "cbrt": (lax.cbrt, -50, 50, 2),
    "exp2": (lax.exp2, -3, 3, 4),
    "erf": (lax.erf, -3, 3, 8),
    "erfc": (lax.erfc, -1, 2, 16),
    "erf_inv": (lax.erf_inv, -0.9, 0.9, 8),
    "lgamma": (lax.lgamma, 3, 20, 16),
    "digamma": (lax.digamma, 3, 20, 16),
}


@pytest.mark.parametrize("name", ELEMENTARY)
def test_elementary_functions_are_near_jaxs(name: str) -> None:
    fn, low, high, ulps = ELEMENTARY[name]
    x = np.linspace(low, high, 101, dtype=np.float32)
    expect_ulps(ulps, fn, x)
    special = np.array([np.inf, np.nan, 0.0, -0.0, -np.inf, 1.0, -1.0], np.float32)
    # XLA's lgamma(1) is not quite 0, and its digamma(0) is NaN.
    expect_ulps(2, fn, special[:2] if name in ("lgamma", "digamma") else special)
    expect_ulps(1, fn, np.linspace(low, high, 33).astype(ml_dtypes.bfloat16))


def test_binary_elementary_functions() -> None:
    x, y = np.linspace(0.1, 9, 40, dtype=np.float32), np.linspace(-5, 5, 40, dtype=np.float32)
    expect_ulps(2, lambda x, y: (lax.pow(x, y), lax.atan2(y, x)), x, y)
    expect_words(lambda x, n: lax.pow(x, n), np.array([2, 3, 0.5], np.float32), np.array([3, -1, 10], np.int32))
    base = np.array([np.nan, 1, -1, -8, 0, 0, 2, np.inf], np.float32)
    power = np.array([0, np.nan, np.inf, 1 / 3, 0, -1, -np.inf, -1], np.float32)
    expect_words(lax.pow, base, power)


def test_complex_numbers() -> None:
    rng = np.random.default_rng(3)
    parts = (rng.integers(-9, 10, (4, 30)) / 4).astype(np.float32)
    z, w = parts[0] + 1j * parts[1], parts[2] + 1j * parts[3]
    expect_words(lambda z, w: (z + w, z - w, z * w, -z, lax.eq(z, w), lax.ne(z, z)), z, w)
    expect_words(lambda z: (lax.real(z), lax.imag(z), lax.conj(z), lax.complex(z.imag, z.real), lax.square(z)), z)
    expect_words(lambda x: (lax.conj(x), x + 0j), parts[0])
    for got, want in outputs(lambda z, w: (lax.div(z, w + 5), jnp.abs(z), lax.exp(z), lax.sqrt(z), lax.tanh(z)), z, w):
        np.testing.assert_allclose(got.to_numpy(), want.to_numpy(), rtol=2e-6, atol=1e-6)
    for got, want in outputs(lambda z: (lax.exp2(z), lax.sign(z), lax.log(z), lax.integer_pow(z, 3)), z + 0.125):
        np.testing.assert_allclose(got.to_numpy(), want.to_numpy(), rtol=4e-6, atol=1e-6)


def test_the_greater_of_complex_numbers_is_by_real_then_imaginary_part() -> None:
    parts = np.array([0.0, -0.0, 1, -2, np.inf, np.nan], np.float32)
    z = np.stack(np.meshgrid(parts, parts), -1).reshape(-1, 2).copy().view(np.complex64)[:, 0]
    pairs = [grid.reshape(-1) for grid in np.meshgrid(z, z)]
    expect_words(lambda z, w: (lax.max(z, w), lax.min(z, w)), *pairs)


def test_what_complex_numbers_do_not_have_is_refused() -> None:
    z = np.array([1 + 1j], np.complex64)
    with pytest.raises(capture.UnsupportedError, match="complex"):
        capture.export(lax.atan2, z, z)


def test_the_greatest_of_complex_numbers() -> None:
    z = np.array([1 + 1j, 2 - 1j, 2 + 3j, -5 + 9j, 2 + 1j], np.complex64)
    expect_words(lambda z: lax.reduce_max_p.bind(z, axes=(0,), out_sharding=None), z)


CONVERSIONS = ("bool", "int4", "uint8", *SIGNED, *UNSIGNED, *FLOATS, "complex64", "float8_e4m3fn", "float8_e5m2")


@pytest.mark.parametrize("source", CONVERSIONS)
def test_conversions_have_jaxs_words(source: str) -> None:
    """Values that every detour through float32 still rounds right; see the next test for those that it does not."""
    if source == "bool":
        x = np.array([False, True])
    elif "int" in source:
        x = np.array([0, 1, 2, 3, 5, 7, 100, 127], np.int64).astype(getattr(ml_dtypes, source, source))
    else:
        values = [0.0, -0.0, 1.0, -1.5, 2.5, 0.3, 100.0, 127.9, -300.0, 1e9, -3e9, 1e15, np.inf, -np.inf, np.nan]
        with np.errstate(all="ignore"):
            x = np.array(values).astype(np.float32).astype(getattr(ml_dtypes, source, source))
    targets = [np.dtype(getattr(jnp, target)) for target in CONVERSIONS]
    expect_words(lambda x: tuple(lax.convert_element_type_p.bind(x, **_to(target)) for target in targets), x)


def _to(target: np.dtype[Any]) -> dict[str, Any]:
    return {"new_dtype": target, "weak_type": False, "sharding": None}


def test_conversions_that_xla_rounds_twice() -> None:
    """XLA's CPU code converts float64 and wide integers to bfloat16 through float32; the node rounds once."""
    for x in (np.array([1 + 2.0**-8 + 2.0**-40]), np.array([2**24 + 2**16 + 1])):
        ((got, want),) = outputs(lambda x: lax.convert_element_type(x, jnp.bfloat16), x)
        assert int(got.words[0]) == int(want.words[0]) + 1


def test_a_complex_number_converts_to_bool_by_its_real_part() -> None:
    z = np.array([1j, 1, 0], np.complex64)
    expect_words(lambda z: lax.convert_element_type_p.bind(z, **_to(np.dtype(bool))), z)


def test_bits() -> None:
    x = np.array([1.5, -0.0, np.inf, 1e-40], np.float32)
    expect_words(lambda x: (lax.bitcast_convert_type(x, jnp.uint32), lax.bitcast_convert_type(x, jnp.int8)), x)
    expect_words(lambda x: lax.bitcast_convert_type(x, jnp.float64), x.reshape(2, 2))
    half = np.array([65519, 65520, -65520, 6e-8, -1e-7, 1 + 2**-11, 1 + 3 * 2**-11, np.inf, np.nan], np.float32)
    expect_words(lambda x: (lax.reduce_precision(x, 5, 10), lax.reduce_precision(x, 8, 7)), half)
