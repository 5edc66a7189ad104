"""Running totals, pooling and convolutions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlir.backends.reference.accumulation import Elements, accumulate, tree
from tlir.backends.reference.contraction import Products
from tlir.backends.reference.conversion import convert
from tlir.backends.reference.indexing import scatter_in_order
from tlir.backends.reference.invocation import CollectedFlags, Evaluator, FlagArray, FlagRecord, Invocation
from tlir.backends.reference.layout import tail
from tlir.backends.reference.numbers import Carrier, elementary, numbers
from tlir.backends.reference.reduction import beats, identity_word, selection
from tlir.ir.ops import Accumulate
from tlir.ir.ops.windows import dilated, window_positions
from tlir.ir.tensor import Tensor, Words, words_shape
from tlir.ir.types import DType


def _cumulative(call: Invocation) -> Words:
    dtype, axis = call.dtype, call.attr("dimension")
    words = np.moveaxis(call.words[0], axis, 0)
    words = words[::-1] if call.attr("reverse") else words
    totals = np.empty_like(words)
    others = call.result.shape[:axis] + call.result.shape[axis + 1 :]
    raised: FlagArray | None = None if call.flags is None else np.zeros((len(words), *others), np.uint8)
    # what was raised up to an element has an effect on its total
    so_far = None if raised is None else CollectedFlags(others)
    order = call.attr("accumulate") or Accumulate()
    step = _running(call, order.dtype or dtype, so_far)
    for k in range(len(words)):
        own = None if raised is None else CollectedFlags(others)
        totals[k] = step(words[k], own)
        if raised is not None and so_far is not None and own is not None:
            raised[k] = so_far.array | own.array
    if call.flags is not None and raised is not None and (dtype.is_float or dtype.is_complex):
        call.flags.note(np.moveaxis(raised[::-1] if call.attr("reverse") else raised, 0, axis))
    totals = totals[::-1] if call.attr("reverse") else totals
    return np.moveaxis(totals, 0, axis)


Step = Callable[[Words, FlagRecord | None], Words]


def _running(call: Invocation, wide: DType, flags: FlagRecord | None) -> Step:
    """A function that takes the next elements and a record for the conversion of the total, and returns the total."""
    dtype, reducer = call.dtype, call.attr("reducer")
    if reducer not in ("add", "multiply", "logaddexp"):
        both = selection(dtype, reducer, flags)
        best: Words = identity_word(dtype, reducer)

        def select(element: Words, own: FlagRecord | None) -> Words:
            nonlocal best
            best = both(best, element)
            return best

        return select
    arithmetic = numbers(wide, flags)
    total: Carrier | None = None if reducer == "logaddexp" else arithmetic.identity(reducer)

    def combine(element: Words, own: FlagRecord | None) -> Words:
        nonlocal total
        term = arithmetic.load(convert(dtype, wide, element, flags=flags))
        if total is None:
            total = term
        elif reducer == "logaddexp":
            operands = (arithmetic.store(total), arithmetic.store(term))
            total = arithmetic.load(elementary("log_add_exp", wide.float_format, operands, flags))
        else:
            total = arithmetic.add(total, term) if reducer == "add" else arithmetic.multiply(total, term)
        return convert(wide, dtype, arithmetic.store(total), flags=own)

    return combine


def spread(
    words: Words, shape: Sequence[int], dilation: Sequence[int], low: Sequence[int], high: Sequence[int], hole: Words
) -> Words:
    """The words of a tensor of this shape with holes between neighbours and padding around; a negative padding cuts."""
    rank = len(shape)
    sizes = [dilated(size, step) for size, step in zip(shape, dilation, strict=True)]
    wide = np.empty((*sizes, *words.shape[rank:]), words.dtype)
    wide[...] = hole
    wide[tuple(slice(None, None, step) for step in dilation)] = words
    cut = tuple(slice(max(0, -a), size - max(0, -b)) for a, b, size in zip(low, high, sizes, strict=True))
    wide = wide[cut]
    # a padding that cuts away more than there is leaves the rest to the other side
    padded = np.empty(
        (*(a + size + b for a, size, b in zip(low, sizes, high, strict=True)), *words.shape[rank:]), words.dtype
    )
    padded[...] = hole
    inner = tuple(slice(max(0, a), max(0, a) + size) for a, size in zip(low, wide.shape, strict=False))
    padded[inner] = wide
    return padded


def window_slices(
    window: Sequence[int], dilation: Sequence[int], strides: Sequence[int], positions: Sequence[int]
) -> Iterator[tuple[slice, ...]]:
    """For each element of a window, row-major, where it lies at every position of the window."""
    for offsets in product(*(range(size) for size in window)):
        axes = zip(offsets, dilation, strides, positions, strict=True)
        yield tuple(slice(k * d, k * d + (n - 1) * s + 1, s) if n else slice(0, 0) for k, d, s, n in axes)


def _reduce_window(call: Invocation) -> Words:
    operand, dtype, reducer = call.operands[0], call.dtype, call.attr("reducer")
    arithmetic = reducer in ("add", "multiply")
    start = numbers(dtype).store(numbers(dtype).identity(reducer)) if arithmetic else identity_word(dtype, reducer)
    low, high = call.attr("padding_low"), call.attr("padding_high")
    window, positions = call.attr("window_dimensions"), call.result.shape
    if not call.result.size or not prod(window):
        return np.broadcast_to(start, words_shape(call.result))
    padded = spread(operand.words, operand.shape, call.attr("base_dilations"), low, high, start)
    places = window_slices(window, call.attr("window_dilations"), call.attr("window_strides"), positions)
    terms = np.stack([padded[place] for place in places])
    flags = CollectedFlags(positions) if call.flags is not None else None
    if not arithmetic:
        both = selection(dtype, reducer, flags)
        result = both(np.broadcast_to(start, terms.shape[1:]), tree(both, terms))
    else:
        order = call.attr("accumulate") or Accumulate()
        wide = order.dtype or dtype
        of_wide = numbers(wide, flags)
        carrier = of_wide.load(convert(dtype, wide, terms, flags=flags))
        result = convert(
            wide, dtype, of_wide.store(accumulate(Elements(of_wide, reducer, carrier), order)), flags=flags
        )
    if flags is not None and call.flags is not None and (dtype.is_float or dtype.is_complex):
        call.flags.note(flags.array)
    return result


def _select_and_scatter(call: Invocation) -> Words:
    operand, source = call.operands
    dtype, rank = operand.dtype, operand.type.rank
    zero = numbers(dtype).store(numbers(dtype).identity("add"))
    result = np.array(np.broadcast_to(zero, (operand.type.size, *tail(dtype))))
    if not source.type.size or not operand.type.size:
        return result.reshape(words_shape(call.result))
    low, high, ones = call.attr("padding_low"), call.attr("padding_high"), (1,) * rank
    padded = spread(operand.words, operand.shape, ones, low, high, zero)
    # row-major positions in the operand; padding has none
    numbered = np.arange(operand.type.size, dtype=np.int64).reshape(operand.shape)
    places = spread(numbered, operand.shape, ones, low, high, np.array(-1))
    best: Words | None = None
    chosen: NDArray[np.int64] = np.full(source.shape, -1)
    direction = "GT" if call.attr("select") == "GE" else "LT"
    for place in window_slices(call.attr("window_dimensions"), ones, call.attr("window_strides"), source.shape):
        candidate, position = padded[place], places[place]
        better = position >= 0
        if best is not None:
            better &= (chosen < 0) | beats(dtype, candidate, best, direction)
        mask = better.reshape(better.shape + (1,) * len(tail(dtype)))
        best = candidate if best is None else np.where(mask, candidate, best)
        chosen = np.where(better, position, chosen)
    places_flat = chosen.reshape(-1)
    values = source.words.reshape((-1, *tail(dtype)))
    scatter_in_order(call, "add", result, places_flat[places_flat >= 0], values[places_flat >= 0])
    return result.reshape(words_shape(call.result))


def _logical(tensor: Tensor, axes: Sequence[int]) -> Words:
    """The words with the axes in this order."""
    return tensor.words.transpose((*axes, *range(tensor.type.rank, tensor.words.ndim)))


def convolution(call: Invocation, contracted: Callable[[Words, Words], Words] | None = None) -> Words:
    """``contracted`` gives the sums of products over the first axis of operands of the shapes (count, groups, rows, 1)
    and (count, groups, 1, columns) in another way than the node declares."""
    lhs, rhs = call.operands
    behind = tail(call.dtype)
    if not call.result.size:
        return np.empty(words_shape(call.result), call.result.dtype.word_dtype)
    data, kernel = _logical(lhs, call.attr("lhs_dimensions")), _logical(rhs, call.attr("rhs_dimensions"))
    groups, batch_groups = call.attr("feature_group_count"), call.attr("batch_group_count")
    spatial = lhs.type.rank - 2
    reversal = [slice(None, None, -1) if flag else slice(None) for flag in call.attr("window_reversal")]
    kernel = kernel[(slice(None), slice(None), *reversal)]
    (batch, features, *space), (outputs, inputs, *window) = data.shape[: spatial + 2], kernel.shape[: spatial + 2]
    low, high, dilation = call.attr("padding_low"), call.attr("padding_high"), call.attr("lhs_dilation")
    zero = np.zeros(behind, data.dtype)
    padded = spread(data, (batch, features, *space), (1, 1, *dilation), (0, 0, *low), (0, 0, *high), zero)
    strides, kernel_dilation = call.attr("window_strides"), call.attr("rhs_dilation")
    positions = [
        window_positions(size, dilated(extent, hole), stride)
        for size, extent, hole, stride in zip(padded.shape[2:], window, kernel_dilation, strides, strict=False)
    ]
    places = list(window_slices(window, kernel_dilation, strides, positions))
    split = max(groups, batch_groups)
    # patches: (window, batch, feature, positions) -> (group, batch in group, positions, feature in group, window)
    shape = (len(places), batch, features, *positions, *behind)
    patches = (
        np.stack([padded[(slice(None), slice(None), *place)] for place in places])
        if places
        else np.empty(shape, data.dtype)
    )
    count = prod(positions)
    if batch_groups > 1:
        patches = patches.reshape((len(places), split, batch // split, features, count, *behind))
        order = (3, 0, 1, 2, 4)
    else:
        patches = patches.reshape((len(places), batch, split, inputs, count, *behind))
        order = (3, 0, 2, 1, 4)
    rank = len(order)
    patches = patches.transpose((*order, *range(rank, patches.ndim)))
    rows = patches.shape[3] * count
    left = patches.reshape((inputs * len(places), split, rows, 1, *behind))
    weights = kernel.reshape((split, outputs // split, inputs, len(places), *behind))
    weights = weights.transpose((2, 3, 0, 1, *range(4, weights.ndim)))
    right = weights.reshape((inputs * len(places), split, 1, outputs // split, *behind))
    flags = CollectedFlags((split, rows, outputs // split)) if call.flags is not None else None
    total = contract(call, left, right, flags) if contracted is None else contracted(left, right)
    axes = call.attr("output_dimensions")
    back = [axes.index(axis) for axis in range(len(axes))]

    def placed(values: NDArray[Any]) -> NDArray[Any]:
        """(group, batch and positions, outputs in group) -> (batch, outputs, positions) -> the axes of the result."""
        tail_axes = values.shape[3:]
        result = values.reshape((split, patches.shape[3], count, outputs // split, *tail_axes))
        result = result.transpose((1, 0, 3, 2, *range(4, result.ndim)))
        result = result.reshape((patches.shape[3], outputs, *positions, *tail_axes))
        return result.transpose((*back, *range(len(axes), result.ndim)))

    if flags is not None and call.flags is not None and flags.noted:
        call.flags.note(placed(flags.array))
    return placed(total)


def contract(call: Invocation, left: Words, right: Words, flags: FlagRecord | None) -> Words:
    """The sum of products over the first axis, as the node accumulates it."""
    order = call.attr("accumulate") or Accumulate()
    dtype: DType = order.dtype or call.result.dtype
    arithmetic = numbers(dtype, flags)
    lhs, rhs = (arithmetic.load(convert(call.dtype, dtype, side, flags=flags)) for side in (left, right))
    total = accumulate(Products(arithmetic, lhs, rhs, order.fma), order)
    return convert(dtype, call.result.dtype, arithmetic.store(total), flags=flags)


EVALUATORS: dict[str, Evaluator] = {
    "cumulative": _cumulative,
    "reduce_window": _reduce_window,
    "select_and_scatter": _select_and_scatter,
    "convolution": convolution,
}
