"""Bounds of reductions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlir.compare.bounds import intervals as iv
from tlir.compare.bounds.enclosure import NAN, UNSURE, Enclosure, Tags
from tlir.compare.bounds.intervals import Interval
from tlir.compare.bounds.step import Step, full_range
from tlir.compare.bounds.sums import accumulator, reduced_tags, sum_terms

Rule = Callable[[Step], Enclosure]


def in_front(array: NDArray[Any], rank: int, axes: Sequence[int]) -> NDArray[Any]:
    """(reduced elements, the other axes…, parts of complex numbers): row-major over the axes that are reduced."""
    kept = [axis for axis in range(rank) if axis not in axes]
    behind = range(rank, array.ndim)
    moved = array.transpose((*axes, *kept, *behind))
    count = prod(array.shape[axis] for axis in axes)
    return moved.reshape((count, *moved.shape[len(axes) :]))


def _reduce(step: Step) -> Enclosure:
    operand, axes = step.operands[0], sorted(step.attr("dimensions"))
    reducer, dtype = step.attr("reducer"), step.dtype
    arithmetic = reducer in ("add", "multiply") and dtype.format is not None
    if operand.all_sure and (not operand.lo.size or not (arithmetic or step.subnormal_operand(0).any())):
        return step.sure()
    a = step.operand(0)
    rank = operand.tensor.type.rank
    lo = in_front(a.lo, rank, axes)
    terms = Interval(lo, lo if a.hi is a.lo else in_front(a.hi, rank, axes))
    tag = in_front(operand.tag, rank, axes)
    return combined(step, reducer, terms, tag)


def combined(step: Step, reducer: str, terms: Interval, tag: Tags) -> Enclosure:
    """The combination of terms (count, outputs…) over their first axis."""
    dtype = step.dtype
    joined = reduced_tags(tag)
    sure = (joined & UNSURE) == 0
    if dtype.format is not None and step.freedoms.flush:
        # what may be taken as zero is an interval that begins or ends there
        sure = sure & ~((terms.lo == 0) ^ (terms.hi == 0)).any(axis=0)
    if reducer == "add" and dtype.format is not None:
        return sum_terms(step, terms, tag)
    if reducer == "multiply" and dtype.is_float:
        return _product(step, terms, joined)
    if reducer in ("maximum", "minimum") or (dtype.is_bool and reducer in ("and", "or")):
        choose = np.maximum if reducer in ("maximum", "or") else np.minimum
        result = Interval(choose.reduce(terms.lo, axis=0), choose.reduce(terms.hi, axis=0))
        settled = (result.lo == result.hi) & ((joined & NAN) == 0)
        return step.enclosed(result, np.where(settled, joined & np.uint32(3), joined), sure)
    if dtype.is_integer and reducer == "add":
        from tlir.compare.bounds.arithmetic import whole_of

        exact = Interval(iv.down(terms.lo.sum(axis=0)), iv.up(terms.hi.sum(axis=0)))
        return whole_of(step, exact, joined, sure)
    if dtype.is_complex:
        return _no_bound(step, joined, sure, "a product of complex numbers")
    return _no_bound(step, joined, sure, f"{reducer} of numbers that differ")


def _no_bound(step: Step, tag: Tags, sure: Any, text: str) -> Enclosure:
    low, high = full_range(step.result.dtype)
    reason = np.uint32(step.reason("unbounded", f"how {text} change is not bounded") << 2)
    tag = np.where(tag < 4, tag | reason, tag)
    if step.dtype.format is not None:
        tag = tag | NAN
        sure = None  # other orders round differently
    return step.enclosed(Interval(np.full(tag.shape, low), np.full(tag.shape, high)), tag, sure)


def _product(step: Step, terms: Interval, tag: Tags) -> Enclosure:
    """Products of real numbers in any order: n - 1 roundings, unless a partial product over- or underflows."""
    wide, fmt = accumulator(step).float_format, step.result.dtype.float_format
    known, count = iv.limits(wide), terms.lo.shape[0]
    total = Interval(np.ones(terms.lo.shape[1:]), np.ones(terms.lo.shape[1:]))
    nan = np.zeros(terms.lo.shape[1:], np.bool_)
    most, least = total.lo, total.lo
    for k in range(count):
        term = Interval(terms.lo[k], terms.hi[k])
        total, bad = iv.multiply(total, term)
        nan = nan | bad
        size = np.maximum(np.abs(term.lo), np.abs(term.hi))
        low = np.where(iv.has_zero(term), 0.0, np.minimum(np.abs(term.lo), np.abs(term.hi)))
        most, least = most * np.maximum(size, 1.0), least * np.minimum(low, 1.0)
    error = (1 + known.unit) ** max(0, count - 1) * (1 + 2.0**-50) ** (count + 1) - 1
    result = iv.widened(total, error * 1.0001)
    regular = (most < known.top / 4) & ((least > known.tiny * 4) | (total.lo == 0) & (total.hi == 0))
    bound = iv.up(most * (1 + error))
    # beyond the range partial products are lost, and what is left has any size up to that of the large factors; where
    # the accumulator does not have the 1 that it starts from, any size at all
    large = (most >= known.top / 4) | (not iv.has_one(wide))
    wild = Interval(np.where(large, -np.inf, -bound), np.where(large, np.inf, bound))
    regular = regular & ~large
    result = Interval(np.where(regular, result.lo, wild.lo), np.where(regular, result.hi, wild.hi))
    nan = nan | large | (wide.has_nan and not iv.complete(wide))
    empty = np.isnan(terms.lo).any(axis=0)
    result = Interval(np.where(empty, np.nan, result.lo), np.where(empty, np.nan, result.hi))
    result, overflow = step.rounded(fmt, result, unrounded=True)
    sure = (tag & UNSURE) == 0 if not step.freedoms.order and not step.freedoms.keeps_excess(fmt) else None
    return step.enclosed(result, np.where(nan | overflow, tag | NAN, tag), sure)


def _argument(greatest: bool) -> Rule:
    def rule(step: Step) -> Enclosure:
        operand, axis = step.operands[0], step.attr("dimension")
        if operand.all_sure and not step.freedoms.flush:
            return step.sure()
        a = step.operand(0)
        if not greatest:
            a = iv.negative(a)
        lo, hi = np.moveaxis(a.lo, axis, 0), np.moveaxis(a.hi, axis, 0)
        nan = np.moveaxis(operand.nan, axis, 0)
        sure = ~np.moveaxis(operand.unsure, axis, 0).any(axis=0)
        best = np.fmax.reduce(lo, axis=0)
        # whoever may reach the best lower end may win; a NaN may always
        able = (hi >= best) | nan | np.isnan(hi)
        first = np.argmax(able, axis=0).astype(np.float64)
        last = (len(lo) - 1 - np.argmax(able[::-1], axis=0)).astype(np.float64)
        if step.freedoms.flush:
            sure = sure & ~np.moveaxis(step.subnormal_operand(0), axis, 0).any(axis=0)
        tag = reduced_tags(np.moveaxis(operand.tag, axis, 0)) & ~NAN
        open = (first != last) & ~sure
        if open.any():
            reason = np.uint32(step.reason("branch", "which of several close elements is the greatest") << 2)
            tag = np.where(open & (tag < 4), tag | reason, tag)
        return step.enclosed(Interval(first, last), tag, sure | (first == last))

    return rule


RULES: dict[str, Rule] = {"reduce": _reduce, "argmax": _argument(True), "argmin": _argument(False)}
