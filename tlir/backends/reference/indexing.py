"""Reading and writing at computed places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from tlir.backends.reference import integers
from tlir.backends.reference.invocation import Evaluator, Invocation
from tlir.backends.reference.layout import tail
from tlir.backends.reference.numbers import numbers
from tlir.backends.reference.reduction import selection
from tlir.ir.tensor import Tensor, Words, words_shape
from tlir.ir.types import DType

Indices = NDArray[np.int64]


def index_values(tensor: Tensor) -> Indices:
    """The values of an integer tensor as int64; values beyond it, which lie outside every tensor, as the greatest."""
    values = integers.to_values(tensor.dtype, tensor.words)
    if values.dtype == np.uint64:
        values = np.minimum(values, np.uint64(np.iinfo(np.int64).max))
    return values.astype(np.int64)


def _clamped_slices(call: Invocation, first: int, sizes: Sequence[int]) -> tuple[slice, ...]:
    slices = []
    for start, axis, size in zip(call.operands[first:], call.operands[0].shape, sizes, strict=True):
        begin = min(max(int(index_values(start)), 0), axis - size)
        slices.append(slice(begin, begin + size))
    return tuple(slices)


def _dynamic_slice(call: Invocation) -> Words:
    return call.words[0][_clamped_slices(call, 1, call.attr("slice_sizes"))]


def _dynamic_update_slice(call: Invocation) -> Words:
    result = call.words[0].copy()
    result[_clamped_slices(call, 2, call.operands[1].shape)] = call.words[1]
    return result


def _starts(
    indices: Tensor, vector_axis: int, axes: Sequence[int], batching: Sequence[tuple[int, int]], rank: int
) -> Indices:
    """The start along every axis of the operand: an array of the shape of the index space and (rank,)."""
    values = index_values(indices)
    if vector_axis == indices.type.rank:
        values = values[..., np.newaxis]
    vectors = np.moveaxis(values, vector_axis, -1)
    space = vectors.shape[:-1]
    starts = np.zeros((*space, rank), np.int64)
    for entry, axis in enumerate(axes):
        starts[..., axis] = vectors[..., entry]
    for axis, index_axis in batching:
        position = index_axis - (index_axis > vector_axis)
        starts[..., axis] = np.arange(space[position]).reshape((-1,) + (1,) * (len(space) - position - 1))
    return starts


def _placed(starts: Indices, shape: Sequence[int], sizes: Sequence[int]) -> tuple[Indices, NDArray[np.bool_]]:
    """The starts clamped so that the window lies inside, and whether they lay inside before."""
    room = np.asarray(shape, np.int64) - np.asarray(sizes, np.int64)
    inside = np.all((starts >= 0) & (starts <= room), axis=-1)
    return np.clip(starts, 0, room), np.asarray(inside)


def _positions(starts: Indices, shape: Sequence[int], sizes: Sequence[int]) -> Indices:
    """Row-major positions in the operand: an array of the shape of the index space followed by ``sizes``."""
    space = starts.shape[:-1]
    positions = np.zeros((*space, *sizes), np.int64)
    for axis, size in enumerate(sizes):
        places = starts[..., axis].reshape(space + (1,) * len(sizes))
        offsets = np.arange(size).reshape((-1,) + (1,) * (len(sizes) - axis - 1))
        positions = positions * shape[axis] + places + offsets
    return positions


def _elements(tensor: Tensor) -> Words:
    """The words with all axes of the shape joined row-major into one."""
    return tensor.words.reshape((tensor.type.size, *tail(tensor.dtype)))


def _gather(call: Invocation) -> Words:
    operand, indices = call.operands
    rank, sizes = operand.type.rank, call.attr("slice_sizes")
    batching = list(zip(call.attr("operand_batching_dims"), call.attr("start_indices_batching_dims"), strict=True))
    starts = _starts(indices, call.attr("index_vector_dim"), call.attr("start_index_map"), batching, rank)
    placed, inside = _placed(starts, operand.shape, sizes)
    if not call.result.size:
        return np.empty(words_shape(call.result), call.result.dtype.word_dtype)
    if not operand.type.size:  # slices of size 0 only
        return np.empty(words_shape(call.result), operand.words.dtype)
    words = _elements(operand)[_positions(placed, operand.shape, sizes)]
    space = starts.ndim - 1
    if call.attr("mode") == "fill":
        mask = inside.reshape(inside.shape + (1,) * (words.ndim - space))
        words = np.where(mask, words, call.attr("fill_value").words)
    removed = set(call.attr("collapsed_slice_dims")) | set(call.attr("operand_batching_dims"))
    kept = [size for axis, size in enumerate(sizes) if axis not in removed]
    words = words.reshape((*starts.shape[:-1], *kept, *tail(operand.dtype)))
    window, around = iter(range(space, space + len(kept))), iter(range(space))
    offsets = call.attr("offset_dims")
    order = [next(window) if axis in offsets else next(around) for axis in range(call.result.rank)]
    return words.transpose((*order, *range(call.result.rank, words.ndim)))


def _scatter(call: Invocation) -> Words:
    operand, indices, updates = call.operands
    removed = set(call.attr("inserted_window_dims")) | set(call.attr("input_batching_dims"))
    window_axes = sorted(call.attr("update_window_dims"))
    around = [axis for axis in range(updates.type.rank) if axis not in window_axes]
    window = iter(updates.shape[axis] for axis in window_axes)
    sizes = [1 if axis in removed else next(window) for axis in range(operand.type.rank)]
    batching = list(zip(call.attr("input_batching_dims"), call.attr("scatter_indices_batching_dims"), strict=True))
    axes = call.attr("scatter_dims_to_operand_dims")
    starts = _starts(indices, call.attr("index_vector_dim"), axes, batching, operand.type.rank)
    placed, inside = _placed(starts, operand.shape, sizes)
    result = _elements(operand).copy()
    behind = range(updates.type.rank, updates.words.ndim)
    values = updates.words.transpose((*around, *window_axes, *behind))
    values = values.reshape((prod(starts.shape[:-1]), prod(sizes), *tail(updates.dtype)))
    if not values.size or not result.size:
        return result.reshape(words_shape(call.result))
    places = _positions(placed, operand.shape, sizes).reshape(values.shape[:2])
    if call.attr("mode") == "drop":
        values, places = values[inside.reshape(-1)], places[inside.reshape(-1)]
    values = values.reshape((-1, *values.shape[2:]))
    scatter_in_order(call, call.attr("reducer"), result, places.reshape(-1), values)
    return result.reshape(words_shape(call.result))


def scatter_in_order(call: Invocation, reducer: str, target: Words, places: Indices, values: Words) -> None:
    """Combine each value with the element of ``target`` at its place, in place, in the order of the values.

    Values that meet the same element are taken in turns: first all first ones, then all second ones, and so on.
    """
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1]))) if len(ordered) else ordered
    counts = np.diff(np.append(starts, len(ordered)))
    if reducer == "replace":
        last = order[starts + counts - 1]
        target[places[last]] = values[last]
        return
    combine = _combiner(call, reducer)
    for turn in range(int(counts.max(initial=0))):
        chosen = order[starts[counts > turn] + turn]
        target[places[chosen]] = combine(target[places[chosen]], values[chosen])


def _combiner(call: Invocation, reducer: str) -> Callable[[Words, Words], Words]:
    dtype: DType = call.dtype
    if reducer in ("minimum", "maximum"):
        return selection(dtype, reducer, None)
    arithmetic = numbers(dtype)
    operation = arithmetic.add if reducer == "add" else arithmetic.multiply

    def combine(a: Words, b: Words) -> Words:
        return arithmetic.store(operation(arithmetic.load(a), arithmetic.load(b)))

    return combine


EVALUATORS: dict[str, Evaluator] = {
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "gather": _gather,
    "scatter": _scatter,
}
