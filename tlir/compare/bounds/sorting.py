"""Bounds of sorting: order statistics of the ends, and for what is carried along, what changes places."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tlir.compare.bounds.enclosure import UNSURE, Enclosure, certain
from tlir.compare.bounds.intervals import Interval, Mask
from tlir.compare.bounds.step import Step

Rule = Callable[[Step], Sequence[Enclosure]]


def _uncertain_keys(step: Step, count: int) -> bool:
    return any(not operand.all_sure for operand in step.operands[:count]) or (
        step.freedoms.flush and any(step.subnormal_operand(k).any() for k in range(count))
    )


def _ends(operand: Enclosure, interval: Interval, axis: int, descending: bool) -> Interval:
    """Ends along the axis sorted each by themselves: NaN, which is greatest, taken as infinite."""
    lo = np.where(np.isnan(interval.lo), np.inf, interval.lo)
    hi = np.where(np.isnan(interval.hi) | operand.nan, np.inf, interval.hi)
    lo, hi = np.sort(lo, axis=axis), np.sort(hi, axis=axis)
    if descending:
        lo, hi = np.flip(lo, axis), np.flip(hi, axis)
    return Interval(lo, hi)


def _sorted_values(step: Step, axis: int, descending: bool, k: int = 0, take: int | None = None) -> Enclosure:
    operand = step.operands[0]
    interval = step.operand(0)
    ends = _ends(operand, interval, axis, descending)
    tag = np.bitwise_or.reduce(operand.tag & np.uint32(3), axis=axis, keepdims=True)
    reason = np.max(operand.reasons, axis=axis, keepdims=True, initial=0)
    tag = np.broadcast_to(tag | (reason << np.uint32(2)), operand.lo.shape)
    if take is not None:
        index = np.arange(take)
        ends = Interval(np.take(ends.lo, index, axis), np.take(ends.hi, index, axis))
        tag = np.take(tag, index, axis)
    sure = (tag & UNSURE) == 0
    if step.freedoms.flush:
        touched = np.any(step.subnormal_operand(0), axis=axis, keepdims=True)
        sure = sure & ~touched
    return step.enclosed(ends, tag, sure, k)


def _open_lines(step: Step, count: int, axis: int) -> Mask:
    """Where, at each place of the sorted result, another element may stand: neighbours in the reference's order whose
    enclosures meet. Only for one key; more are taken together."""
    from tlir.backends.reference.sorting import sort_keys, sorted_order

    operand = step.operands[0]
    descending = step.attr("descending") if step.node.op == "sort" else True
    keys = [key for each in step.operands[:count] for key in sort_keys(each.dtype, each.tensor.words)]
    order = sorted_order(keys, axis, descending)
    a = step.operand(0)
    lo, hi = (np.take_along_axis(end, order, axis) for end in a)
    unsure = np.take_along_axis(operand.unsure | step.subnormal_operand(0), order, axis)
    lo, hi = np.where(np.isnan(lo), np.inf, lo), np.where(np.isnan(hi), np.inf, hi)
    if descending:
        lo, hi = -hi, -lo
    reach = np.maximum.accumulate(hi, axis=axis)
    n = lo.shape[axis]
    first = np.take(reach, np.arange(n - 1), axis)
    second = np.flip(np.minimum.accumulate(np.flip(lo, axis), axis=axis), axis)
    second = np.take(second, np.arange(1, n), axis)
    either = np.take(unsure, np.arange(n - 1), axis) | np.take(unsure, np.arange(1, n), axis)
    meets = (first >= second) & (either | np.any(unsure, axis=axis, keepdims=True))
    edge = np.zeros_like(np.take(meets, [0], axis)) if n > 1 else np.zeros_like(unsure)
    if n == 1:
        return edge
    return np.asarray(np.concatenate((meets, edge), axis) | np.concatenate((edge, meets), axis))


def _carried(step: Step, k: int, axis: int, keys: int, open: Mask) -> Enclosure:
    """An operand that follows the keys: where places are open, any value that the line holds."""
    operand = step.operands[k]
    known = certain(step.results[k])
    if not open.any() and operand.all_sure:
        return known
    if operand.dtype.is_complex:
        return step.anything("the place of a complex number in a sorted line", k)
    low = np.broadcast_to(np.fmin.reduce(operand.lo, axis=axis, keepdims=True), operand.lo.shape)
    high = np.broadcast_to(np.fmax.reduce(operand.hi, axis=axis, keepdims=True), operand.hi.shape)
    tag = np.bitwise_or.reduce(operand.tag & np.uint32(3), axis=axis, keepdims=True)
    reason = np.uint32(step.reason("branch", "the order of elements whose enclosures meet") << 2)
    line = np.any(open, axis=axis, keepdims=True) | (tag & UNSURE != 0)
    line = np.broadcast_to(line, operand.lo.shape)
    tag = np.where(line, tag | reason, tag)
    return step.enclosed(Interval(low, high), tag, ~line, k)


def _sort(step: Step) -> Sequence[Enclosure]:
    axis, keys, descending = step.attr("dimension"), step.attr("num_keys"), step.attr("descending")
    if all(operand.all_sure for operand in step.operands) and not _uncertain_keys(step, keys):
        return [certain(result) for result in step.results]
    if step.dtype.is_complex or keys > 1:
        if not _uncertain_keys(step, keys) and keys > 1:
            open = np.zeros(step.result.shape, np.bool_)
            return [_carried(step, k, axis, keys, open) for k in range(len(step.results))]
        return [step.anything("the order by several keys that are not sure", k) for k in range(len(step.results))]
    open = _open_lines(step, keys, axis) if _uncertain_keys(step, keys) else np.zeros(step.result.shape, np.bool_)
    values = _sorted_values(step, axis, descending)
    return [values, *(_carried(step, k, axis, keys, open) for k in range(1, len(step.results)))]


def _top_k(step: Step) -> Sequence[Enclosure]:
    axis, count = step.attr("dimension"), step.attr("k")
    if not _uncertain_keys(step, 1):
        return [certain(result) for result in step.results]
    values = _sorted_values(step, axis, True, take=count)
    open = np.take(_open_lines(step, 1, axis), np.arange(count), axis)
    size = step.operands[0].tensor.shape[axis]
    tag = np.where(
        open, UNSURE | np.uint32(step.reason("branch", "which of several close elements") << 2), np.uint32(0)
    )
    indices = Interval(np.zeros(open.shape), np.full(open.shape, float(max(0, size - 1))))
    return [values, step.enclosed(indices, tag, ~open, 1)]


RULES: dict[str, Rule] = {"sort": _sort, "top_k": _top_k}
