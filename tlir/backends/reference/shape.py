"""Operations that move words and never change one."""

from __future__ import annotations

import numpy as np

from tlir.backends.reference.invocation import Evaluator, Invocation
from tlir.backends.reference.layout import tail
from tlir.ir.tensor import Words, words_shape


def _broadcast_in_dim(call: Invocation) -> Words:
    operand, axes = call.operands[0], call.attr("broadcast_dimensions")
    order = sorted(range(len(axes)), key=lambda position: axes[position])
    behind = tuple(range(operand.type.rank, operand.words.ndim))
    shape = [1] * call.result.rank
    for position in order:
        shape[axes[position]] = operand.shape[position]
    aligned = operand.words.transpose((*order, *behind)).reshape((*shape, *tail(operand.dtype)))
    return np.broadcast_to(aligned, words_shape(call.result))


def _reshape(call: Invocation) -> Words:
    return call.words[0].reshape(words_shape(call.result))


def _transpose(call: Invocation) -> Words:
    operand = call.operands[0]
    behind = tuple(range(operand.type.rank, operand.words.ndim))
    return operand.words.transpose((*call.attr("permutation"), *behind))


def _concatenate(call: Invocation) -> Words:
    return np.concatenate(call.words, axis=call.attr("dimension"))


def _slice(call: Invocation) -> Words:
    bounds = zip(call.attr("start_indices"), call.attr("limit_indices"), call.attr("strides"), strict=True)
    return call.words[0][tuple(slice(start, limit, stride) for start, limit, stride in bounds)]


def _pad(call: Invocation) -> Words:
    operand, value = call.operands
    result = np.empty(words_shape(call.result), operand.words.dtype)
    result[...] = value.words
    source, target = [], []
    padding = zip(
        operand.shape,
        call.result.shape,
        call.attr("edge_padding_low"),
        call.attr("interior_padding"),
        strict=True,
    )
    for size, padded, low, interior in padding:
        # element i goes to low + i * step; only those that land from 0 to padded - 1 are kept
        step = interior + 1
        first = max(0, -(low // step))
        last = min(size - 1, (padded - 1 - low) // step)
        if last < first:
            return result
        source.append(slice(first, last + 1))
        target.append(slice(low + first * step, low + last * step + 1, step))
    result[tuple(target)] = operand.words[tuple(source)]
    return result


def _reverse(call: Invocation) -> Words:
    axes = call.attr("dimensions")
    backward, forward = slice(None, None, -1), slice(None)
    return call.words[0][tuple(backward if axis in axes else forward for axis in range(call.operands[0].type.rank))]


EVALUATORS: dict[str, Evaluator] = {
    "broadcast_in_dim": _broadcast_in_dim,
    "reshape": _reshape,
    "transpose": _transpose,
    "concatenate": _concatenate,
    "slice": _slice,
    "pad": _pad,
    "reverse": _reverse,
}
