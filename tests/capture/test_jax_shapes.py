"""Data movement, reductions and contractions: words as JAX returns them, and the accumulation that XLA really has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax
from jax_oracle import capture, expect_words, ops, outputs

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4) - 7

MOVES: dict[str, tuple[Callable[..., Any], list[str]]] = {
    "broadcast": (lambda x: lax.broadcast_in_dim(x, (2, 5, 3, 4), (0, 2, 3)), ["broadcast_in_dim"]),
    "reshape": (lambda x: x.reshape(4, 6), ["reshape"]),
    "reshape_permuted": (lambda x: lax.reshape(x, (4, 6), (2, 0, 1)), ["transpose", "reshape"]),
    "squeeze": (lambda x: lax.squeeze(lax.expand_dims(x, (1, 3)), (1,)), ["broadcast_in_dim", "reshape"]),
    "transpose": (lambda x: x.T, ["transpose"]),
    "reverse": (lambda x: lax.rev(x, (0, 2)), ["reverse"]),
    "slice": (lambda x: x[:, 1:, ::3], ["slice"]),
    "negative_step": (lambda x: x[0, ::-2], ["slice", "reverse", "reshape"]),
    "split": (lambda x: jnp.split(x, [1, 3], axis=2), ["slice"] * 3),
    "stack": (
        lambda x: jnp.stack([x, x + 1], axis=1),
        ["broadcast_in_dim", "add", "reshape", "reshape", "concatenate"],
    ),
    "tile": (lambda x: jnp.tile(x, (2, 1, 3)), ["broadcast_in_dim", "reshape"]),
    "pad": (lambda x: lax.pad(x, np.float32(9), [(1, 0, 0), (-1, 2, 1), (0, -2, 0)]), ["pad"]),
    "concatenate": (lambda x: lax.concatenate([x, x, x], 1), ["concatenate"]),
    "iota": (lambda x: lax.broadcasted_iota(np.int8, (3, 200), 1), ["iota"]),
    "repeat": (lambda x: jnp.repeat(x, 2, axis=0), ["broadcast_in_dim", "reshape"]),
}


@pytest.mark.parametrize("name", MOVES)
def test_data_movement(name: str) -> None:
    fn, wanted = MOVES[name]
    assert ops(capture.export(fn, X)) == wanted
    expect_words(fn, X)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "bfloat16", "complex64", "float8_e4m3fn", "int4"])
def test_movement_keeps_every_dtypes_words(dtype: str) -> None:
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    x = (np.arange(12).reshape(3, 4) % 8).astype(kind)
    expect_words(lambda x: (x.T, x[1:, ::2], jnp.concatenate([x, x]), lax.rev(x, (0,)), x.reshape(-1)), x)


def test_not_a_number_keeps_its_payload_when_it_is_moved() -> None:
    x = np.array([0x7FC12345, 0xFFC00001, 0x80000001, 0x00000001], np.uint32).view(np.float32)
    for got, want in outputs(lambda x: (lax.rev(x, (0,)), -x, jnp.abs(x), jnp.where(x == x, x, x)), x):
        np.testing.assert_array_equal(got.words, want.words)


def test_arrays_without_elements() -> None:
    x = np.zeros((0, 3), np.float32)
    fn = lambda x: (x + 1, x.T, jnp.sum(x, axis=0), jnp.sum(x), jnp.prod(x, axis=1), jnp.concatenate([x, x]))  # noqa: E731
    expect_words(fn, x)
    expect_words(lambda x, y: (x @ y, y.T @ x.T), np.zeros((2, 0), np.float32), np.zeros((0, 3), np.float32))
    expect_words(lambda x: (lax.reduce_max_p.bind(x, axes=(0,)), lax.reduce_min_p.bind(x, axes=(0,))), x)


@pytest.mark.parametrize("dtype", ["int8", "uint32", "float32", "float64", "bool"])
def test_reductions(dtype: str) -> None:
    with jax.enable_x64(True):
        rng = np.random.default_rng(5)
        x = rng.integers(0, 2 if dtype == "bool" else 9, (3, 4, 5)).astype(dtype)
        x[1, 2, 3] = 1
        expect_words(lambda x: (jnp.max(x, axis=1), jnp.min(x, axis=(0, 2)), jnp.argmax(x, 1), jnp.argmin(x, 2)), x)
        if dtype != "bool":
            total = lambda x: (lax.reduce_sum_p.bind(x, axes=(0, 2), out_sharding=None), jnp.prod(x, axis=1))  # noqa: E731
            expect_words(total, x)
        if np.dtype(dtype).kind in "iub":
            expect_words(lambda x: tuple(p.bind(x, axes=(1,)) for p in _bitwise_reductions()), x)


def _bitwise_reductions() -> tuple[Any, ...]:
    from jax._src.lax.lax import reduce_and_p, reduce_or_p, reduce_xor_p

    return reduce_and_p, reduce_or_p, reduce_xor_p


def test_not_a_number_wins_and_the_first_extreme_is_taken() -> None:
    x = np.array([[3, 1, 3, -0.0], [np.nan, 1, np.nan, 0]], np.float32)
    expect_words(lambda x: (jnp.max(x, 1), jnp.min(x, 1), lax.argmax(x, 1, np.int32), lax.argmin(x, 1, np.int8)), x)
    assert capture.export(lambda x: lax.reduce_sum_p.bind(x, axes=(), out_sharding=None), x)["output_ids"] == [0]


def test_general_reductions() -> None:
    x = np.array([[3, -1, 4], [1, 5, -9]], np.int32)
    expect_words(lambda x: lax.reduce(x, jnp.int32(2), lax.max, (1,)), x)
    expect_words(lambda x: lax.reduce(x, jnp.int32(100), lambda a, b: b + a, (0, 1)), x)
    both = lambda x: lax.reduce((x, x * 1.0), (np.int32(7), np.float32(0)), _pairwise, (1,))  # noqa: E731
    expect_words(both, x)


def test_reductions_from_another_start_and_by_any_body() -> None:
    x = np.array([[3, -1, 4], [1, 5, -9], [2, 6, 5]], np.float32) / 3
    expect_words(lambda x: lax.reduce(x, np.float32(1), lax.add, (0,)), x)
    expect_words(lambda x: lax.reduce(x, x[0, 0], lax.mul, (1,)), x)
    expect_words(lambda x: lax.reduce(x, np.int32(0), lambda a, b: a + 2 * b, (0, 1)), x.astype(np.int32))
    expect_words(lambda x: lax.reduce((x, x + 1), (np.float32(0), x[0, 0]), _greater, (1,)), x)
    z = (x - 1j * x.T).astype(np.complex64)
    expect_words(lambda z: lax.reduce(z, np.complex64(-9), lax.max, (1,)), z)
    assert "scan" in ops(capture.export(lambda x: lax.reduce(x, np.float32(1), lax.add, (0,)), x))


def _greater(left: Any, right: Any) -> Any:
    chosen = left[0] > right[0]
    return lax.select(chosen, left[0], right[0]), lax.select(chosen, left[1], right[1])


def _pairwise(left: Any, right: Any) -> Any:
    return lax.bitwise_xor(left[0], right[0]), lax.add(left[1], right[1])


# ---- the accumulation that is not in the jaxpr ----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float8_e4m3fn"])
@pytest.mark.parametrize("size", [5, 32, 33, 63, 100, 1024, 1025, 5000])
def test_a_bare_sum_in_a_small_format_rounds_every_partial_sum(dtype: str, size: int) -> None:
    """XLA's own reduction rounds to the format in windows of 32; ``jnp.sum`` converts to float32 in its jaxpr."""
    rng = np.random.default_rng(size)
    x = rng.random(size).astype(getattr(ml_dtypes, dtype, dtype))
    bare = lambda x: lax.reduce_sum_p.bind(x, axes=(0,), out_sharding=None)  # noqa: E731
    expect_words(bare, x)
    accumulate = {node["attrs"].get("accumulate", {}).get("dtype") for node in _nodes(bare, "reduce", x)}
    assert accumulate == {None}


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_jnp_sum_accumulates_in_float32_by_its_own_conversions(dtype: str) -> None:
    x = np.random.default_rng(3).integers(0, 9, 200).astype(getattr(ml_dtypes, dtype, dtype))
    assert ops(capture.export(jnp.sum, x)) == ["convert", "pad", "reduce", "convert"]
    expect_words(jnp.sum, x)


@pytest.mark.parametrize(
    ("shape", "axes"), [((3, 70), (1,)), ((70, 3), (0,)), ((40, 50), (0, 1)), ((2, 40, 3, 33), (1, 3))]
)
def test_a_bare_sum_over_several_axes_has_windows_along_each(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    x = np.random.default_rng(1).integers(0, 3, shape).astype(ml_dtypes.bfloat16)
    expect_words(lambda x: lax.reduce_sum_p.bind(x, axes=axes, out_sharding=None), x)
    near_one = (1 + np.random.default_rng(2).random(shape) / 64).astype(ml_dtypes.bfloat16)
    expect_words(lambda x: lax.reduce_prod_p.bind(x, axes=axes), near_one)


def _nodes(fn: Callable[..., Any], op: str, *args: Any) -> list[dict[str, Any]]:
    return [node for node in capture.export(fn, *args)["nodes"] if node["op"] == op]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_contraction_in_a_small_format_accumulates_in_float32(dtype: str) -> None:
    """The terms are chosen so that float32 is exact in any order, while the format itself would lose them."""
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    rng = np.random.default_rng(4)
    for left, right in (((600,), (600,)), ((3, 600), (600, 5)), ((64, 200), (200, 64)), ((1, 7), (7, 1))):
        x, y = (rng.integers(0, 8, shape).astype(kind) for shape in (left, right))
        expect_words(lambda x, y: x @ y, x, y)
    (node,) = _nodes(lambda x, y: x @ y, "dot_general", x, y)
    assert node["attrs"]["accumulate"] == {"dtype": "float32", "order": "sequential", "fma": False}
    (wide,) = _nodes(lambda x, y: lax.dot(x, y, preferred_element_type=np.float32), "dot_general", x, y)
    assert wide["dtype"] == "float32"
    assert "accumulate" not in wide["attrs"]


DOTS = [
    ("int8", "int8", "int8"),
    ("int8", "int8", "int32"),
    ("uint8", "uint8", "int32"),
    ("int8", "int8", "float32"),
    ("int32", "int32", "int32"),
    ("bool", "bool", "bool"),
    ("bool", "bool", "int32"),
    ("float32", "float32", "float64"),
    ("float32", "float32", "bfloat16"),
    ("float32", "float32", "int32"),
    ("float64", "float64", "float64"),
    ("bfloat16", "float32", "float32"),
    ("float8_e4m3fn", "float8_e5m2", "float32"),
    ("float8_e4m3fn", "float8_e4m3fn", "float8_e4m3fn"),
    ("float32", "float32", "complex64"),
    ("complex64", "complex64", "complex64"),
]


@pytest.mark.parametrize(("left", "right", "result"), DOTS)
def test_contractions_of_mixed_dtypes(left: str, right: str, result: str) -> None:
    with jax.enable_x64(True):
        x, y, out = (np.dtype(getattr(ml_dtypes, name, name)) for name in (left, right, result))
        a = (np.arange(12).reshape(3, 4) % 5).astype(x)
        b = (np.arange(8).reshape(4, 2) % 3).astype(y)
        if x.kind in "fc" and x.itemsize >= 4:
            a = a / 2
        numbers = (((1,), (0,)), ((), ()))
        bind = lambda a, b: lax.dot_general_p.bind(  # noqa: E731
            a, b, dimension_numbers=numbers, precision=None, preferred_element_type=out, out_sharding=None
        )
        expect_words(bind, a, b)


def test_batched_contractions_and_gradients() -> None:
    x, y = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4), np.arange(40.0, dtype=np.float32).reshape(5, 4, 2)
    expect_words(lambda x, y: jnp.einsum("bij,kjb->bik", x, y), x, y)
    expect_words(lambda x, y: jnp.einsum("bij,bkj,j->", x, x, y[0, :, 0]), x, y)
    expect_words(jax.grad(lambda x, y: jnp.sum(jnp.tensordot(x, y, ((2,), (1,))) ** 2) / 4096), x, y)


def test_a_precision_that_xla_does_not_follow_is_refused() -> None:
    x = np.ones((2, 2), np.float32)
    preset = lax.DotAlgorithmPreset
    same = capture.export(lambda x: lax.dot(x, x, precision=preset.F32_F32_F32), x)
    assert ops(same) == ["dot_general"]
    assert ops(capture.export(lambda x: lax.dot(x, x, precision="highest"), x)) == ["dot_general"]
    with pytest.raises(capture.UnsupportedError, match="BF16_BF16_F32_X3"):
        capture.export(lambda x: lax.dot(x, x, precision=preset.BF16_BF16_F32_X3), x)
