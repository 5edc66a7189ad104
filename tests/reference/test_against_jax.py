"""Indexing, sorting, windows and convolutions against JAX's own, on integers and on floats whose sums are exact.

Shapes, dimension numbers and modes are drawn at random from fixed seeds; every result is compared word for word.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tlir.backends.reference import evaluate
from tlir.ir.graph import Body, Graph, Node, Ref
from tlir.ir.ops import Accumulate
from tlir.ir.tensor import Tensor
from tlir.ir.verify import type_errors, verify_structure

Rng = np.random.Generator


def run(op: str, operands: list[Any], attrs: dict[str, Any], results: list[Any]) -> list[np.ndarray]:
    """The results of one operation on these arrays; ``results`` have the shapes and dtypes that it must declare."""
    tensors = [Tensor.from_numpy(np.asarray(operand)) for operand in operands]
    types = tuple(Tensor.from_numpy(np.asarray(result)).type for result in results)
    inputs = [Node(k, "input", (), {}, (tensor.type,)) for k, tensor in enumerate(tensors)]
    node = Node(len(inputs), op, tuple(Ref(k) for k in range(len(inputs))), attrs, types)
    outputs = tuple(Ref(node.id, k) for k in range(len(types)))
    body = Body((*inputs, node), tuple(range(len(inputs))), outputs)
    verify_structure(Graph(body))
    assert [str(error) for error in type_errors(Graph(body))] == []
    return [tensor.to_numpy() for tensor in evaluate(body, tensors)]


def expect(op: str, operands: list[Any], attrs: dict[str, Any], expected: Any) -> None:
    """The operation gives exactly the words of the expected arrays."""
    wanted = [np.asarray(x) for x in (expected if isinstance(expected, (list, tuple)) else [expected])]
    for given, want in zip(run(op, operands, attrs, wanted), wanted, strict=True):
        assert given.dtype == want.dtype
        np.testing.assert_array_equal(
            given.view(np.uint8) if given.ndim else given, want.view(np.uint8) if want.ndim else want
        )


def data(rng: Rng, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Small integers, whose sums and products are exact in every dtype used here."""
    return rng.integers(-4, 5, shape).astype(dtype)


SEEDS = range(40)


@pytest.mark.parametrize("seed", SEEDS)
def test_dynamic_slices(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(0, 4))
    shape = tuple(int(n) for n in rng.integers(0, 5, rank))
    sizes = tuple(int(rng.integers(0, n + 1)) for n in shape)
    operand, update = data(rng, shape, np.float32), data(rng, sizes, np.float32)
    starts = [np.int32(rng.integers(-3, 7)) for _ in shape]
    if not rank:
        return
    expect("dynamic_slice", [operand, *starts], {"slice_sizes": sizes}, _jax_slice(operand, starts, sizes))
    expect("dynamic_update_slice", [operand, update, *starts], {}, _jax_update(operand, update, starts))


def _jax_slice(operand: Any, starts: Any, sizes: Any) -> Any:
    return jax.jit(lax.dynamic_slice_p.bind, static_argnames=["slice_sizes"])(operand, *starts, slice_sizes=sizes)


def _jax_update(operand: Any, update: Any, starts: Any) -> Any:
    return lax.dynamic_update_slice_p.bind(jnp.asarray(operand), jnp.asarray(update), *map(jnp.asarray, starts))


def _dimension_numbers(rng: Rng, rank: int, sizes: tuple[int, ...], space_rank: int) -> dict[str, Any]:
    axes = list(range(rank))
    # at least one: with empty index vectors XLA applies only the last of several updates
    indexed = tuple(int(axis) for axis in rng.permutation(axes)[: rng.integers(1, rank + 1)])
    collapsed = tuple(axis for axis in axes if sizes[axis] == 1 and rng.random() < 0.5)
    window = rank - len(collapsed)
    offsets = tuple(sorted(int(k) for k in rng.choice(space_rank + window, window, replace=False)))
    return {"indexed": indexed, "collapsed": collapsed, "offsets": offsets}


@pytest.mark.parametrize("mode", ["clip", "fill"])
@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.bool_])
@pytest.mark.parametrize("seed", range(20))
def test_gather(seed: int, dtype: Any, mode: str) -> None:
    rng = np.random.default_rng(seed)
    rank, space_rank = int(rng.integers(1, 4)), int(rng.integers(0, 3))
    shape = tuple(int(n) for n in rng.integers(1, 5, rank))
    sizes = tuple(int(rng.integers(1, n + 1)) for n in shape)
    space = tuple(int(n) for n in rng.integers(0, 4, space_rank))
    numbers = _dimension_numbers(rng, rank, sizes, space_rank)
    operand = data(rng, shape, dtype)
    indices = rng.integers(-2, 6, (*space, len(numbers["indexed"]))).astype(np.int32)
    dnums = lax.GatherDimensionNumbers(numbers["offsets"], numbers["collapsed"], numbers["indexed"])
    jax_mode = lax.GatherScatterMode.CLIP if mode == "clip" else lax.GatherScatterMode.FILL_OR_DROP
    fill = dtype(1) if dtype == np.bool_ else dtype(77)
    expected = lax.gather(operand, indices, dnums, sizes, mode=jax_mode, fill_value=fill if mode == "fill" else None)
    attrs: dict[str, Any] = {
        "offset_dims": numbers["offsets"],
        "collapsed_slice_dims": numbers["collapsed"],
        "operand_batching_dims": (),
        "start_indices_batching_dims": (),
        "start_index_map": numbers["indexed"],
        "index_vector_dim": space_rank,
        "slice_sizes": sizes,
        "mode": mode,
    }
    if mode == "fill":
        attrs["fill_value"] = Tensor.from_numpy(np.asarray(fill))
    expect("gather", [operand, indices], attrs, expected)


def test_gather_with_batching_dimensions() -> None:
    rng = np.random.default_rng(0)
    operand, indices = data(rng, (3, 4, 2, 5), np.int32), rng.integers(-1, 6, (2, 3, 6, 1)).astype(np.int32)
    dnums = lax.GatherDimensionNumbers((3,), (3,), (3,), (0, 2), (1, 0))
    expected = lax.gather(operand, indices, dnums, (1, 4, 1, 1), mode=lax.GatherScatterMode.CLIP)
    attrs = {
        "offset_dims": (3,),
        "collapsed_slice_dims": (3,),
        "operand_batching_dims": (0, 2),
        "start_indices_batching_dims": (1, 0),
        "start_index_map": (3,),
        "index_vector_dim": 3,
        "slice_sizes": (1, 4, 1, 1),
        "mode": "clip",
    }
    expect("gather", [operand, indices], attrs, expected)


_SCATTER: dict[str, Callable[..., Any]] = {
    "add": lax.scatter_add,
    "multiply": lax.scatter_mul,
    "minimum": lax.scatter_min,
    "maximum": lax.scatter_max,
    "replace": lax.scatter,
}


@pytest.mark.parametrize("reducer", sorted(_SCATTER))
@pytest.mark.parametrize("mode", ["clip", "drop"])
@pytest.mark.parametrize("seed", range(20))
def test_scatter(seed: int, mode: str, reducer: str) -> None:
    rng = np.random.default_rng(seed)
    rank, space_rank = int(rng.integers(1, 4)), int(rng.integers(0, 3))
    shape = tuple(int(n) for n in rng.integers(1, 5, rank))
    sizes = tuple(int(rng.integers(1, n + 1)) for n in shape)
    space = tuple(int(n) for n in rng.integers(0, 4, space_rank))
    numbers = _dimension_numbers(rng, rank, sizes, space_rank)
    window = [size for axis, size in enumerate(sizes) if axis not in numbers["collapsed"]]
    total = space_rank + len(window)
    windows, spaces = iter(window), iter(space)
    update_shape = tuple(next(windows if axis in numbers["offsets"] else spaces) for axis in range(total))
    operand, updates = data(rng, shape, np.int32), data(rng, update_shape, np.int32)
    indices = rng.integers(-2, 6, (*space, len(numbers["indexed"]))).astype(np.int32)
    dnums = lax.ScatterDimensionNumbers(numbers["offsets"], numbers["collapsed"], numbers["indexed"])
    jax_mode = lax.GatherScatterMode.CLIP if mode == "clip" else lax.GatherScatterMode.FILL_OR_DROP
    expected = _SCATTER[reducer](operand, indices, updates, dnums, mode=jax_mode)
    attrs = {
        "update_window_dims": numbers["offsets"],
        "inserted_window_dims": numbers["collapsed"],
        "input_batching_dims": (),
        "scatter_indices_batching_dims": (),
        "scatter_dims_to_operand_dims": numbers["indexed"],
        "index_vector_dim": space_rank,
        "mode": mode,
        "reducer": reducer,
    }
    expect("scatter", [operand, indices, updates], attrs, expected)


SPECIAL = np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1.0, 1.0, -2.0, 3.0], np.float32)


@pytest.mark.parametrize("keys", [1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint8, np.bool_, np.complex64])
@pytest.mark.parametrize("seed", range(5))
def test_sort(seed: int, dtype: Any, keys: int) -> None:
    rng = np.random.default_rng(seed)
    shape = (3, 7, 2)
    first = rng.choice(SPECIAL, shape) if dtype == np.float32 else data(rng, shape, dtype)
    if dtype == np.complex64:
        first = (rng.choice(SPECIAL[4:], shape) + 1j * rng.choice(SPECIAL[6:], shape)).astype(np.complex64)
    second, third = data(rng, shape, np.int32), np.arange(42, dtype=np.float32).reshape(shape)
    axis = int(rng.integers(0, 3))
    expected = lax.sort((jnp.asarray(first), second, third), dimension=axis, is_stable=True, num_keys=keys)
    expect("sort", [first, second, third], {"dimension": axis, "num_keys": keys}, list(expected))


@pytest.mark.parametrize("seed", range(5))
def test_descending_sort_is_stable_with_nan_first(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values, places = rng.choice(SPECIAL, 20), np.arange(20, dtype=np.int32)
    rank = {float("inf"): 3.5, 3.0: 3.0, 1.0: 1.0, 0.0: 0.0, -2.0: -2.0, float("-inf"): -9.0}
    order = sorted(range(20), key=lambda k: -10.0 if np.isnan(values[k]) else -rank[float(values[k])])
    attrs = {"dimension": 0, "num_keys": 1, "descending": True}
    expect("sort", [values, places], attrs, [values[order], places[order]])


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_top_k(dtype: Any) -> None:
    rng = np.random.default_rng(1)
    operand = rng.choice(np.abs(SPECIAL), (4, 9)) if dtype == np.float32 else data(rng, (4, 9), dtype)
    values, indices = lax.top_k(operand, 5)
    expect("top_k", [operand], {"k": 5, "dimension": 1}, [values, indices])


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.float16])
def test_cumulative(dtype: Any, reverse: bool) -> None:
    rng = np.random.default_rng(2)
    operand = data(rng, (3, 5, 2), dtype)
    functions = {"add": lax.cumsum, "multiply": lax.cumprod, "maximum": lax.cummax, "minimum": lax.cummin}
    for reducer, function in functions.items():
        attrs = {"reducer": reducer, "dimension": 1, "reverse": reverse}
        expected = np.asarray(function(operand, axis=1, reverse=reverse)) + dtype(0)
        given = run("cumulative", [operand], attrs, [expected])[0] + dtype(0)
        np.testing.assert_array_equal(given, expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_reduce_window(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 4))
    shape = tuple(int(n) for n in rng.integers(1, 7, rank))
    pick = lambda low, high: tuple(int(n) for n in rng.integers(low, high, rank))  # noqa: E731
    window, strides, base, holes, low, high = pick(1, 4), pick(1, 4), pick(1, 3), pick(1, 3), pick(-1, 3), pick(-1, 3)
    for reducer, function, start in (
        ("add", lax.add, 0),
        ("maximum", lax.max, -(2**31)),
        ("minimum", lax.min, 2**31 - 1),
    ):
        operand = data(rng, shape, np.int32)
        padding = list(zip(low, high, strict=True))
        try:
            expected = lax.reduce_window(operand, np.int32(start), function, window, strides, padding, base, holes)
        except TypeError:  # a size below zero after padding
            continue
        attrs = {
            "reducer": reducer,
            "window_dimensions": window,
            "window_strides": strides,
            "base_dilations": base,
            "window_dilations": holes,
            "padding_low": low,
            "padding_high": high,
        }
        expect("reduce_window", [operand], attrs, expected)


@pytest.mark.parametrize("seed", range(20))
def test_select_and_scatter_is_the_gradient_of_max_pooling(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.integers(2, 8, 2))
    window, strides = tuple(rng.integers(1, 4, 2).tolist()), tuple(rng.integers(1, 4, 2).tolist())
    low, high = tuple(rng.integers(0, 2, 2).tolist()), tuple(rng.integers(0, 2, 2).tolist())
    window = tuple(min(w, n) for w, n in zip(window, shape, strict=True))
    operand = rng.permutation(int(np.prod(shape))).reshape(shape).astype(np.float32)
    padding = list(zip(low, high, strict=True))

    def pool(x: Any) -> Any:
        return lax.reduce_window(x, -np.inf, lax.max, window, strides, padding)

    pooled, pullback = jax.vjp(pool, operand)
    source = data(rng, pooled.shape, np.float32)
    attrs = {
        "select": "GE",
        "window_dimensions": window,
        "window_strides": strides,
        "padding_low": low,
        "padding_high": high,
    }
    (expected,) = pullback(jnp.asarray(source))
    given = run("select_and_scatter", [operand, source], attrs, [expected])[0]
    np.testing.assert_array_equal(given, np.asarray(expected))


@pytest.mark.parametrize("groups", ["none", "feature", "batch"])
@pytest.mark.parametrize("seed", range(25))
def test_convolution(seed: int, groups: str) -> None:
    rng = np.random.default_rng(seed)
    spatial = int(rng.integers(0, 4))
    pick = lambda low, high: tuple(int(n) for n in rng.integers(low, high, spatial))  # noqa: E731
    count = int(rng.integers(2, 4)) if groups != "none" else 1
    batch, inputs, outputs = (int(n) for n in rng.integers(1, 4, 3))
    feature_groups, batch_groups = (count if groups == kind else 1 for kind in ("feature", "batch"))
    batch, outputs = batch * batch_groups, outputs * count
    space, window = pick(2, 6), pick(1, 4)
    lhs_spec, rhs_spec, out_spec = (tuple(int(axis) for axis in rng.permutation(spatial + 2)) for _ in range(3))
    place = lambda logical, spec: tuple(logical[spec.index(axis)] for axis in range(spatial + 2))  # noqa: E731
    lhs = data(rng, place((batch, inputs * feature_groups, *space), lhs_spec), np.float32)
    rhs = data(rng, place((outputs, inputs, *window), rhs_spec), np.float32)
    strides, low, high, lhs_dilation, rhs_dilation = pick(1, 3), pick(-1, 3), pick(0, 3), pick(1, 3), pick(1, 3)
    dnums = lax.ConvDimensionNumbers(lhs_spec, rhs_spec, out_spec)
    expected = lax.conv_general_dilated(
        lhs,
        rhs,
        strides,
        list(zip(low, high, strict=True)),
        lhs_dilation,
        rhs_dilation,
        dnums,
        feature_groups,
        batch_groups,
    )
    attrs = {
        "lhs_dimensions": lhs_spec,
        "rhs_dimensions": rhs_spec,
        "output_dimensions": out_spec,
        "window_strides": strides,
        "padding_low": low,
        "padding_high": high,
        "lhs_dilation": lhs_dilation,
        "rhs_dilation": rhs_dilation,
        "window_reversal": (0,) * spatial,
        "feature_group_count": feature_groups,
        "batch_group_count": batch_groups,
    }
    given = run("convolution", [lhs, rhs], attrs, [expected])[0]
    np.testing.assert_array_equal(given + np.float32(0), np.asarray(expected) + np.float32(0))


def test_a_reversed_kernel_is_the_kernel_reversed() -> None:
    rng = np.random.default_rng(3)
    lhs, rhs = data(rng, (1, 2, 6, 5), np.int32), data(rng, (3, 2, 2, 3), np.int32)
    attrs: dict[str, Any] = {
        "lhs_dimensions": (0, 1, 2, 3),
        "rhs_dimensions": (0, 1, 2, 3),
        "output_dimensions": (0, 1, 2, 3),
        "window_strides": (1, 1),
        "padding_low": (0, 0),
        "padding_high": (0, 0),
        "lhs_dilation": (1, 1),
        "rhs_dilation": (1, 1),
        "window_reversal": (1, 0),
        "accumulate": Accumulate(order="pairwise"),
    }
    expected = lax.conv_general_dilated(lhs, rhs[:, :, ::-1], (1, 1), "VALID")
    expect("convolution", [lhs, rhs], attrs, expected)
