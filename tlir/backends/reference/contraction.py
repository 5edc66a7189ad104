"""Products of tensors, summed over axes in the order that the node declares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tlir.backends.reference.accumulation import accumulate, block_length, fold_block
from tlir.backends.reference.conversion import convert
from tlir.backends.reference.invocation import CollectedFlags, Evaluator, Invocation
from tlir.backends.reference.layout import tail
from tlir.backends.reference.numbers import Carrier, Numbers, numbers
from tlir.ir.ops import Accumulate
from tlir.ir.tensor import Tensor, Words, words_shape


@dataclass(frozen=True)
class Products:
    """The terms of a contraction: ``lhs[k] * rhs[k]``, whose shapes (batch, m, 1) and (batch, 1, n) broadcast."""

    numbers: Numbers
    lhs: Carrier
    rhs: Carrier
    fused: bool
    operation: str = "add"

    @property
    def count(self) -> int:
        return len(self.lhs)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.lhs.shape[1], self.lhs.shape[2], self.rhs.shape[3])

    def block(self, start: int, stop: int) -> Carrier:
        return self.numbers.multiply(self.lhs[start:stop], self.rhs[start:stop])

    def fold(self, accumulator: Carrier, start: int, stop: int) -> Carrier:
        if self.fused:
            for k in range(start, stop):
                accumulator = self.numbers.fma(self.lhs[k], self.rhs[k], accumulator)
            return accumulator
        length = block_length(self.shape)
        for first in range(start, stop, length):
            block = self.block(first, min(first + length, stop))
            accumulator = fold_block(self.numbers, self.operation, accumulator, block)
        return accumulator


def _arrange(tensor: Tensor, contracting: Sequence[int], batching: Sequence[int], left: bool) -> Words:
    """The words in the shape (contracting, batching, free, 1), for the right side (contracting, batching, 1, free)."""
    rank = tensor.type.rank
    free = [axis for axis in range(rank) if axis not in (*contracting, *batching)]

    def size(axes: Sequence[int]) -> int:
        return int(np.prod([tensor.shape[axis] for axis in axes], dtype=object))

    order = (*contracting, *batching, *free, *range(rank, tensor.words.ndim))
    last = (size(free), 1) if left else (1, size(free))
    return tensor.words.transpose(order).reshape((size(contracting), size(batching), *last, *tail(tensor.dtype)))


def _dot_general(call: Invocation) -> Words:
    sides = []
    for operand, side in zip(call.operands, ("lhs", "rhs"), strict=True):
        axes = call.attr(f"{side}_contracting_dimensions"), call.attr(f"{side}_batching_dimensions")
        sides.append(_arrange(operand, *axes, left=side == "lhs"))
    order = call.attr("accumulate") or Accumulate()
    dtype = order.dtype or call.result.dtype
    outputs = (sides[0].shape[1], sides[0].shape[2], sides[1].shape[3])
    flags = CollectedFlags(outputs) if call.flags is not None else None
    arithmetic = numbers(dtype, flags)
    lhs, rhs = (arithmetic.load(convert(call.dtype, dtype, side, flags=flags)) for side in sides)
    total = accumulate(Products(arithmetic, lhs, rhs, order.fma), order)
    result = convert(dtype, call.result.dtype, arithmetic.store(total), flags=flags)
    if flags is not None and call.flags is not None:
        call.flags.note(flags.array.reshape(call.result.shape))
    return result.reshape(words_shape(call.result))


EVALUATORS: dict[str, Evaluator] = {"dot_general": _dot_general}
