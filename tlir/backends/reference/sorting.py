"""Sorting by keys that order as unsigned integers do."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tlir.backends.reference import integers
from tlir.backends.reference.invocation import Invocation, SeveralEvaluator
from tlir.backends.reference.layout import parts, tail
from tlir.floatlib.words import constant as float_constant
from tlir.floatlib.words import is_nan, is_zero, order_keys, select
from tlir.ir.tensor import Tensor, Words
from tlir.ir.types import DType

Keys = list[NDArray[np.uint64]]


def sort_keys(dtype: DType, words: Words) -> Keys:
    """Arrays of uint64, the most significant first, whose lexicographic order is that of the elements.

    -0 and 0 have the same key, and every NaN one that is greater than all others.
    """
    if dtype.is_complex:
        real, imag = parts(dtype, words)
        return sort_keys(dtype.component, real) + sort_keys(dtype.component, imag)
    if dtype.is_float:
        fmt = dtype.float_format
        zero = float_constant(fmt, 0)
        keys = order_keys(fmt, select(fmt, is_zero(fmt, words), zero, words))
        nan = is_nan(fmt, words)
        keys = select(fmt, nan, float_constant(fmt, fmt.word_mask), keys)
        # where the only NaN is in the place of -0, the greatest number has the greatest key already
        first = [nan.astype(np.uint64)] if fmt.nans == "negative_zero" else []
        if dtype.limbs > 1:
            return first + [keys[..., limb] for limb in reversed(range(dtype.limbs))]
        return [*first, keys.astype(np.uint64)]
    if dtype.is_signed:
        return [integers.to_values(dtype, words).astype(np.int64).view(np.uint64) ^ np.uint64(1 << 63)]
    return [words.astype(np.uint64)]


def sorted_order(keys: Keys, axis: int, descending: bool) -> NDArray[np.intp]:
    """Along the axis, the indices that sort by the keys; equal keys keep their order in both directions."""
    if descending:
        keys = [~key for key in keys]
    return np.lexsort(tuple(reversed(keys)), axis=axis)


def take(tensor: Tensor, order: NDArray[np.intp], axis: int) -> Words:
    """The elements at these indices along the axis."""
    index = order.reshape(order.shape + (1,) * len(tail(tensor.dtype)))
    return np.take_along_axis(tensor.words, index, axis)


def _sort(call: Invocation) -> tuple[Words, ...]:
    axis = call.attr("dimension")
    keys = [
        key for operand in call.operands[: call.attr("num_keys")] for key in sort_keys(operand.dtype, operand.words)
    ]
    order = sorted_order(keys, axis, call.attr("descending"))
    return tuple(take(operand, order, axis) for operand in call.operands)


def _top_k(call: Invocation) -> tuple[Words, ...]:
    operand, axis = call.operands[0], call.attr("dimension")
    order = sorted_order(sort_keys(operand.dtype, operand.words), axis, descending=True)
    order = np.take(order, np.arange(call.attr("k")), axis)
    return take(operand, order, axis), integers.to_words(call.node.types[1].dtype, order)


EVALUATORS: dict[str, SeveralEvaluator] = {"sort": _sort, "top_k": _top_k}
