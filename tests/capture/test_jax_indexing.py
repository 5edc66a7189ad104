"""Indexing and sorting: words as JAX returns them, out of bounds and with equal, signed-zero and NaN elements too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax
from jax_oracle import capture, checked, expect_words, ops, outputs

from tlir.backends.reference import evaluate

X = np.arange(12, dtype=np.float32).reshape(3, 4) - 5
I = np.array([2, 0, -1, 2], np.int32)  # noqa: E741
SPECIAL = np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1, 1, -2, 3], np.float32)

READS: dict[str, Callable[..., Any]] = {
    "rows": lambda x, i: x[i],
    "columns": lambda x, i: x[:, i],
    "pairs": lambda x, i: x[i, i],
    "scalar": lambda x, i: x[i[0], i[2]],
    "take": lambda x, i: jnp.take(x, i, axis=1),
    "take_fill": lambda x, i: jnp.take(x, i + 3, axis=0, mode="fill"),
    "take_given_fill": lambda x, i: x.at[i + 3].get(mode="fill", fill_value=7),
    "take_clip": lambda x, i: x.at[i + 3].get(mode="clip"),
    "promised": lambda x, i: x.at[i + 3].get(mode="promise_in_bounds"),
    "along_axis": lambda x, i: jnp.take_along_axis(x, i[None, :] % 3, axis=0),
    "vmapped": lambda x, i: jax.vmap(lambda row, k: row[k])(x, i[:3]),
    "dynamic_slice": lambda x, i: lax.dynamic_slice(x, (i[0], i[1]), (2, 3)),
    "dynamic_slice_clamped": lambda x, i: lax.dynamic_slice(x, (i[0] + 9, i[2] - 9), (2, 3)),
    "dynamic_index": lambda x, i: lax.dynamic_index_in_dim(x, i[1], 1),
    "vmapped_slice": lambda x, i: jax.vmap(lambda row, k: lax.dynamic_slice(row, (k,), (2,)))(x, i[:3]),
    "advanced": lambda x, i: x[None][:, i[:, None], i[None] % 4, None],
    "empty": lambda x, i: x[i[:0]],
}

WRITES: dict[str, Callable[..., Any]] = {
    "set": lambda x, i: x.at[i].set(x[0]),
    "add": lambda x, i: x.at[i].add(1),
    "subtract": lambda x, i: x.at[i, 1].subtract(3),
    "multiply": lambda x, i: x.at[:, i].multiply(3),
    "minimum": lambda x, i: x.at[i].min(2),
    "maximum": lambda x, i: x.at[i].max(2),
    "divide": lambda x, i: x.at[i[:2]].divide(2),
    "power": lambda x, i: x.at[i[:2]].power(2),
    "dropped": lambda x, i: x.at[i + 3].add(1, mode="drop"),
    "clipped": lambda x, i: x.at[i + 3].add(1, mode="clip"),
    "promised": lambda x, i: x.at[i + 3].set(9, mode="promise_in_bounds"),
    "vmapped": lambda x, i: jax.vmap(lambda row, k: row.at[k].add(1))(x, i[:3]),
    "dynamic_update": lambda x, i: lax.dynamic_update_slice(x, x[:1, :2] * 3, (i[0], i[1] + 9)),
    "cache": lambda x, i: lax.dynamic_update_index_in_dim(x, x[0], i[0], 0),
    "segment_sum": lambda x, i: jax.ops.segment_sum(x.T, i, 3),
    "gradient": lambda x, i: jax.grad(lambda x: jnp.sum(x[i] * x[i]))(x),
    "scalar": lambda x, i: x.at[i[0], i[1]].set(5),
    "histogram": lambda x, i: jnp.bincount(i, length=4),
}


def integral(x: np.ndarray, dtype: str) -> np.ndarray:
    return x.astype(np.dtype(getattr(ml_dtypes, dtype, dtype)))


@pytest.mark.parametrize("name", READS)
def test_reads(name: str) -> None:
    expect_words(READS[name], X, I)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "bfloat16", "float8_e5m2", "complex64", "int4"])
@pytest.mark.parametrize("name", ["rows", "take_fill", "promised", "dynamic_slice"])
def test_reads_of_every_dtype(name: str, dtype: str) -> None:
    expect_words(READS[name], integral(np.abs(X), dtype), I)


@pytest.mark.parametrize("dtype", ["float32", "int32", "bfloat16", "float16", "complex64"])
@pytest.mark.parametrize("name", WRITES)
def test_writes(name: str, dtype: str) -> None:
    if dtype == "complex64" and name in ("minimum", "maximum", "power", "gradient"):
        pytest.skip("complex numbers have no order, and their powers are not correctly rounded")
    if dtype == "int32" and name in ("divide", "gradient"):
        pytest.skip("integers have neither")
    expect_words(WRITES[name], integral(X, dtype), I)


def test_writes_of_bools_and_unsigned_indices() -> None:
    x = X > 0
    expect_words(lambda x, i: (x.at[i].set(True), x.at[i].max(x[0]), x.at[i].min(x[1])), x, I)
    expect_words(lambda x, i: (x[i], x.at[i].set(0), lax.dynamic_slice(x, (i[0], i[1]), (1, 2))), X, np.uint8([2, 200]))
    expect_words(lambda x, i: x.at[i].add(x[0, 0]), X.astype(np.int8), np.int64([0, 0, 1]).astype(np.int16))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_repeated_additions_round_at_every_step(dtype: str) -> None:
    rng = np.random.default_rng(0)
    updates, places = integral(rng.random((200, 3)), dtype), rng.integers(0, 4, 200).astype(np.int32)
    expect_words(lambda u, i: jnp.zeros((4, 3), u.dtype).at[i].add(u), updates, places)


def test_updates_by_any_function() -> None:
    unique = np.array([2, 0], np.int32)
    expect_words(lambda x, i: x.at[i].apply(lambda v: v * v + 1), X, unique)
    expect_words(lambda x, i: x.at[:, i + 1].apply(jnp.negative), X, unique)
    expect_words(lambda x, i: x.at[i + 2].apply(jnp.abs, mode="drop"), X, unique)
    expect_words(lambda x, i: x.at[i[0], i[1]].apply(lambda v: v / 2), X, unique)


def test_the_operations_are_the_ones_meant() -> None:
    assert ops(capture.export(lambda x: x[1, 2], X)) == ["slice", "reshape"]
    assert "dynamic_slice" in ops(capture.export(lambda x, i: x[i], X, np.int32(1)))
    (node,) = [n for n in capture.export(lambda x, i: x[i], X, I)["nodes"] if n["op"] == "gather"]
    assert node["attrs"]["mode"] == "clip"
    assert "fill_value" not in node["attrs"]


def test_a_wrong_axis_is_seen() -> None:
    artifact = capture.export(lambda x, i: x.at[i].add(1), X, I)
    (node,) = [n for n in artifact["nodes"] if n["op"] == "scatter"]
    node["attrs"]["reducer"] = "replace"
    sample = checked(artifact).samples[0]
    (got,) = evaluate(checked(artifact).body, sample.inputs)
    assert (got.words != sample.outputs[0].words).any()


# ---- sorting --------------------------------------------------------------------------------------------------------

SORTS: dict[str, Callable[..., Any]] = {
    "sort": lambda x: jnp.sort(x),
    "descending": lambda x: jnp.sort(x, descending=True),
    "axis": lambda x: jnp.sort(x, axis=0),
    "argsort": lambda x: jnp.argsort(x),
    "argsort_descending": lambda x: jnp.argsort(x, axis=0, descending=True),
    "pairs": lambda x: lax.sort((x, x * 2, lax.iota(np.int32, x.size).reshape(x.shape)), num_keys=1),
    "two_keys": lambda x: lax.sort((jnp.floor(x / 2), x, lax.iota(np.int32, x.size).reshape(x.shape)), num_keys=2),
    "median": lambda x: jnp.median(x, axis=1),
    "lexsort": lambda x: jnp.lexsort((x[0], x[1])),
    "sort_key_val": lambda x: lax.sort_key_val(x, -x),
    "quantile": lambda x: jnp.quantile(x, 0.5, axis=1, method="lower"),
    "top_k": lambda x: lax.top_k(x, 2),
    "approx_max": lambda x: lax.approx_max_k(x, 3),
    "approx_min": lambda x: lax.approx_min_k(x, 2),
}


@pytest.mark.parametrize("name", SORTS)
def test_sorting(name: str) -> None:
    rng = np.random.default_rng(7)
    expect_words(SORTS[name], rng.integers(-4, 5, (3, 9)).astype(np.float32))


@pytest.mark.parametrize("name", ["sort", "argsort", "axis", "pairs", "top_k"])
@pytest.mark.parametrize("dtype", ["int8", "uint32", "bfloat16", "float16", "bool", "complex64"])
def test_sorting_of_every_dtype(name: str, dtype: str) -> None:
    if (name == "top_k" and dtype in ("bool", "complex64")) or (name == "pairs" and dtype == "bool"):
        pytest.skip("not defined by JAX")
    x = integral(np.random.default_rng(3).integers(0, 5, (3, 9)), dtype)
    expect_words(SORTS[name], x)


@pytest.mark.parametrize("name", ["sort", "argsort", "descending", "top_k"])
def test_sorting_of_not_a_number_and_signed_zeros(name: str) -> None:
    rng = np.random.default_rng(5)
    for got, want in outputs(SORTS[name], rng.choice(SPECIAL, (6, 10))):
        np.testing.assert_array_equal(got.to_numpy(), want.to_numpy())
        if want.to_numpy().dtype.kind == "f":
            signs = [np.signbit(t.to_numpy()) | np.isnan(t.to_numpy()) for t in (got, want)]
            np.testing.assert_array_equal(*signs)
