"""Sums in the written order: rounding is monotone, so the order applied to the lower ends and to the upper ends gives
the ends of the result, with no other error."""

from __future__ import annotations

import numpy as np

from tlir.backends.reference.accumulation import Elements, accumulate
from tlir.backends.reference.numbers import numbers
from tlir.compare.bounds import intervals as iv
from tlir.compare.bounds.enclosure import UNSURE, Tags, values_of
from tlir.compare.bounds.intervals import F64, FLOAT64, Interval, in_float64
from tlir.compare.bounds.step import Step
from tlir.compare.bounds.sums import accumulator
from tlir.floatlib.arrays import convert
from tlir.ir.ops import Accumulate
from tlir.ir.tensor import Tensor
from tlir.ir.types import DType, TensorType

LIMIT = 1 << 16
"""Terms of a contraction that are held at once; beyond, the bound of any order is taken."""

REASON = "the bound of any order, where the written order was asked for"


def follows(step: Step, terms: Interval) -> bool:
    """Whether the written order can be followed: finite real numbers of formats that float64 contains, and an
    accumulator that has every sum, rounded."""
    wide, fmt = accumulator(step), step.dtype
    plain = fmt.is_float and in_float64(fmt.float_format) and wide.is_float and in_float64(wide.float_format)
    return (
        plain and iv.complete(wide.float_format) and bool(np.isfinite(terms.lo).all() and np.isfinite(terms.hi).all())
    )


def words(dtype: DType, values: F64) -> Tensor:
    """Numbers of the dtype's format as a tensor."""
    array = np.asarray(values, order="C")
    made = np.asarray(convert(FLOAT64, dtype.float_format, array.view(np.uint64)))
    return Tensor(TensorType(array.shape, dtype), made)


def ordered_sum(step: Step, terms: Interval) -> Interval:
    """The sums over the first axis of terms (count, outputs…), which are numbers of the operand's format."""
    order = step.attr("accumulate") or Accumulate()
    return _rounded(step, [_total(accumulator(step), end, order) for end in _numbers(step, terms)])


def _numbers(step: Step, terms: Interval) -> Interval:
    """The ends as numbers of the accumulator's format, to which operands are converted."""
    fmt, wide = step.dtype.float_format, accumulator(step).float_format
    lo, hi = iv.above(fmt, terms.lo), iv.below(fmt, terms.hi)
    return Interval(iv.nearest(wide, lo), iv.nearest(wide, hi))


def _total(dtype: DType, end: F64, order: Accumulate) -> F64:
    arithmetic = numbers(dtype)
    carrier = arithmetic.load(words(dtype, end).words)
    total = arithmetic.store(accumulate(Elements(arithmetic, "add", carrier), order))
    return values_of(Tensor(TensorType(end.shape[1:], dtype), np.asarray(total, order="C"))).lo


def _rounded(step: Step, ends: list[F64]) -> Interval:
    fmt = step.result.dtype.float_format
    return Interval(iv.nearest(fmt, ends[0]), iv.nearest(fmt, ends[1]))


def running_sum(step: Step, terms: Interval) -> Interval:
    """The totals of the first 1, 2, … terms, one after the other."""
    dtype = accumulator(step)
    arithmetic = numbers(dtype)
    ends = []
    for end in _numbers(step, terms):
        carrier = arithmetic.load(words(dtype, end).words)
        total = np.array(np.broadcast_to(arithmetic.identity("add"), carrier.shape[1:]))
        totals = []
        for term in carrier:
            total = arithmetic.add(total, term)
            stored = np.asarray(arithmetic.store(total), order="C")
            totals.append(values_of(Tensor(TensorType(end.shape[1:], dtype), stored)).lo)
        ends.append(np.stack(totals))
    return _rounded(step, ends)


def ordered_products(step: Step, left: Interval, right: Interval) -> Interval | None:
    """The sums of products of left (batch, m, count) and right (batch, count, n) in the written order; None where they
    are too many, or products are fused."""
    order = step.attr("accumulate") or Accumulate()
    count = left.lo.shape[-1]
    outputs = left.lo.shape[0] * left.lo.shape[1] * right.lo.shape[2]
    if order.fma or count * outputs > LIMIT or not (follows(step, left) and follows(step, right)):
        return None
    dtype = accumulator(step)
    a, b = _numbers(step, left), _numbers(step, right)
    # (count, batch, m, 1) and (count, batch, 1, n)
    lhs = Interval(*(np.moveaxis(end, -1, 0)[..., np.newaxis] for end in a))
    rhs = Interval(*(np.moveaxis(end, 1, 0)[:, :, np.newaxis, :] for end in b))
    exact, _ = iv.multiply(lhs, rhs)
    fmt = dtype.float_format
    if iv.exact_in(fmt) or fmt == FLOAT64:
        product = Interval(iv.nearest(fmt, exact.lo), iv.nearest(fmt, exact.hi))
    else:
        product = Interval(iv.nearest(fmt, iv.down(exact.lo)), iv.nearest(fmt, iv.up(exact.hi)))
    return _rounded(step, [_total(dtype, end, order) for end in product])


def unordered(step: Step, tag: Tags) -> Tags:
    """Tags of results that have the bound of any order although the written one was asked for."""
    if step.freedoms.order or not (tag & UNSURE).any():
        return tag
    reason = np.uint32(step.reason("unbounded", REASON) << 2)
    return np.asarray(np.where(((tag & UNSURE) != 0) & (tag < 4), tag | reason, tag), np.uint32)
