"""Reductions over axes, in the order that the node declares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tlir.backends.reference import integers
from tlir.backends.reference.accumulation import Elements, accumulate, tree
from tlir.backends.reference.conversion import convert
from tlir.backends.reference.invocation import CollectedFlags, Evaluator, FlagRecord, Invocation
from tlir.backends.reference.layout import tail
from tlir.backends.reference.logic import compare_words
from tlir.backends.reference.numbers import numbers
from tlir.floatlib import arrays
from tlir.floatlib.words import constant, is_nan
from tlir.ir.ops import Accumulate
from tlir.ir.tensor import Tensor, Words, words_shape
from tlir.ir.types import DType


def lines(tensor: Tensor, axes: Sequence[int]) -> Words:
    """The words with the axes named in front, joined row-major as one axis, and all others joined as a second one."""
    rank = tensor.type.rank
    kept = [axis for axis in range(rank) if axis not in axes]
    behind = range(rank, tensor.words.ndim)
    count = int(np.prod([tensor.shape[axis] for axis in axes], dtype=object))
    outputs = int(np.prod([tensor.shape[axis] for axis in kept], dtype=object))
    return tensor.words.transpose((*axes, *kept, *behind)).reshape((count, outputs, *tail(tensor.dtype)))


def _reduce(call: Invocation) -> Words:
    words = lines(call.operands[0], sorted(call.attr("dimensions")))
    if call.attr("reducer") in ("add", "multiply"):
        return _accumulated(call, words).reshape(words_shape(call.result))
    return _selected(call, words).reshape(words_shape(call.result))


def _accumulated(call: Invocation, words: Words) -> Words:
    order = call.attr("accumulate") or Accumulate()
    dtype = order.dtype or call.dtype
    flags = CollectedFlags(words.shape[1:2]) if call.flags is not None else None
    arithmetic = numbers(dtype, flags)
    converted = convert(call.dtype, dtype, words, flags=flags)
    total = accumulate(Elements(arithmetic, call.attr("reducer"), arithmetic.load(converted)), order)
    result = convert(dtype, call.dtype, arithmetic.store(total), flags=flags)
    if flags is not None and call.flags is not None:
        call.flags.note(flags.array.reshape(call.result.shape))
    return result


def _selected(call: Invocation, words: Words) -> Words:
    """Reductions by an operation that gives the same words in every order."""
    dtype, reducer = call.dtype, call.attr("reducer")
    flags = CollectedFlags(words.shape[1:2]) if call.flags is not None else None
    both = selection(dtype, reducer, flags)
    identity = np.broadcast_to(identity_word(dtype, reducer), words.shape[1:])
    result = both(identity, tree(both, words)) if words.size else identity
    if flags is not None and call.flags is not None and dtype.is_float:
        call.flags.note(flags.array.reshape(call.result.shape))
    return result


def selection(dtype: DType, reducer: str, flags: FlagRecord | None) -> Callable[[Words, Words], Words]:
    """The operation ``reducer`` on two arrays of words."""
    if reducer in _BITWISE:
        return _BITWISE[reducer]
    if dtype.is_bool:
        return np.bitwise_or if reducer == "maximum" else np.bitwise_and
    if dtype.is_integer:
        return partial(integers.maximum if reducer == "maximum" else integers.minimum, dtype)
    function = arrays.maximum if reducer == "maximum" else arrays.minimum

    def both(a: Words, b: Words) -> Words:
        result, raised = function(dtype.float_format, a, b, flags=True)
        if flags is not None:
            flags.note(raised)
        selected: Words = result
        return selected

    return both


_BITWISE: dict[str, Callable[[Words, Words], Words]] = {
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def identity_word(dtype: DType, reducer: str) -> Words:
    """The word that a reduction by a selecting or bitwise operation starts from."""
    all_ones = (1 << dtype.bits) - 1
    if reducer in _BITWISE:
        return np.array(all_ones if reducer == "and" else 0, dtype.word_dtype)
    if dtype.is_float:
        fmt = dtype.float_format
        greatest = fmt.max_finite if fmt.inf is None else fmt.inf
        least = fmt.sign_mask | greatest if fmt.signed else fmt.lowest_finite
        return constant(fmt, least if reducer == "maximum" else greatest)
    sign_bit = 1 << (dtype.bits - 1) if dtype.is_signed else 0
    # the least signed integer has only the sign bit set, the greatest every other
    return np.array(sign_bit if reducer == "maximum" else all_ones ^ sign_bit, dtype.word_dtype)


def _argument(direction: str) -> Evaluator:
    """argmax for GT, argmin for LT: the first index whose element no other one beats."""

    def evaluate(call: Invocation) -> Words:
        dtype = call.dtype
        words = lines(call.operands[0], (call.attr("dimension"),))
        if call.result.size == 0:
            return np.empty(words_shape(call.result), call.result.dtype.word_dtype)
        best, index = words, np.arange(len(words), dtype=np.uint64)[:, np.newaxis]
        index = np.broadcast_to(index, words.shape[:2])
        while len(best) > 1:
            # neighbours meet, and the second one has to be strictly better, so that the first of equals stays
            even = len(best) & ~1
            first, second = best[0:even:2], best[1:even:2]
            better = beats(dtype, second, first, direction)
            chosen = np.where(better.reshape(better.shape + (1,) * len(tail(dtype))), second, first)
            best = np.concatenate((chosen, best[even:]))
            index = np.concatenate((np.where(better, index[1:even:2], index[0:even:2]), index[even:]))
        return integers.to_words(call.result.dtype, index[0]).reshape(call.result.shape)

    return evaluate


def beats(dtype: DType, a: Words, b: Words, direction: str) -> NDArray[np.bool_]:
    """Where a is strictly better than b: a NaN is better than every number, and no better than another NaN."""
    better = compare_words(dtype, a, b, direction)
    if dtype.is_float:
        better = better | (is_nan(dtype.float_format, a) & ~is_nan(dtype.float_format, b))
    return better


EVALUATORS: dict[str, Evaluator] = {
    "reduce": _reduce,
    "argmax": _argument("GT"),
    "argmin": _argument("LT"),
}
