"""Bounds of comparisons, selections and operations on bits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tlir.compare.bounds import intervals as iv
from tlir.compare.bounds.arithmetic import any_integer
from tlir.compare.bounds.enclosure import NAN, UNSURE, Enclosure
from tlir.compare.bounds.intervals import F64, Interval
from tlir.compare.bounds.step import Step

Rule = Callable[[Step], Enclosure]


def truth(step: Step, yes: iv.Mask, no: iv.Mask, sure: iv.Mask, what: str) -> Enclosure:
    """A Boolean that is true, false, or decided differently by permitted executions."""
    tag = step.tags() & ~NAN
    if tag.ndim > len(step.result.shape):
        tag = tag[..., 0] | tag[..., 1]
    open = ~(yes | no | sure)
    if open.any():
        reason = np.uint32(step.reason("branch", what) << 2)
        tag = np.where(open & (tag < 4), tag | reason, tag)
    tag = np.where(open, tag, tag & UNSURE)
    return step.enclosed(Interval(np.where(yes, 1.0, 0.0), np.where(no, 0.0, 1.0)), tag, sure | yes | no)


def _compare(step: Step) -> Enclosure:
    direction = step.attr("comparison_direction")
    a, b = step.operand(0), step.operand(1)
    if direction in ("GT", "GE"):
        a, b = b, a
    nan = step.operands[0].nan | step.operands[1].nan
    never = np.isnan(a.lo) | np.isnan(b.lo)
    if direction in ("LT", "GT"):
        yes, no = (a.hi < b.lo) & ~nan, (a.lo >= b.hi) | never
    elif direction in ("LE", "GE"):
        yes, no = (a.hi <= b.lo) & ~nan, (a.lo > b.hi) | never
    else:
        same = (a.lo == b.hi) & (b.lo == a.hi) & (a.lo == a.hi) & ~nan
        if step.node.inputs[0] == step.node.inputs[1]:
            same = ~nan
        apart = (a.hi < b.lo) | (a.lo > b.hi) | never
        if step.dtype.is_complex:
            same, apart = np.asarray(same.all(axis=-1)), np.asarray(apart.any(axis=-1))
            nan = np.asarray(nan.any(axis=-1))
        yes, no = (same, apart) if direction == "EQ" else (apart, same)
    if step.attr("compare_type") == "TOTALORDER":
        # zeros and NaNs have an order of their own: only numbers that are apart are decided
        apart = (a.hi < b.lo) | (a.lo > b.hi)
        yes, no = yes & apart & ~nan, no & apart & ~nan
    sure = step.all_sure() if step.dtype.format is None else step.untouched(step.dtype.float_format)
    if step.dtype.is_complex:
        sure = np.asarray(sure.all(axis=-1))
    return truth(step, yes, no, sure, "a comparison of numbers whose enclosures meet")


def _select(step: Step) -> Enclosure:
    pred, yes, no = step.operands
    if all(operand.all_sure for operand in step.operands):
        return step.sure()
    lo, waits = pred.lo, pred.lo != pred.hi
    reason = pred.reasons << np.uint32(2)
    if step.result.dtype.is_complex:
        lo, waits, reason = (np.broadcast_to(x[..., np.newaxis], yes.lo.shape) for x in (lo, waits, reason))
    taken = lo == 1
    low, high, tag = (np.where(taken, x, y) for x, y in ((yes.lo, no.lo), (yes.hi, no.hi), (yes.tag, no.tag)))
    if waits.any():
        union = iv.hull(yes.interval, no.interval)
        low, high = np.where(waits, union.lo, low), np.where(waits, union.hi, high)
        flags = (yes.tag | no.tag) & np.uint32(3)
        old = np.where(yes.tag > 3, yes.tag, no.tag) & ~np.uint32(3)
        gap = (yes.lo > no.hi) | (no.lo > yes.hi)
        if gap.any() and not reason.any():
            reason = np.full(gap.shape, step.reason("branch", "a selection that is not decided") << 2, np.uint32)
        both = flags | UNSURE | np.where(gap & (old == 0), reason, old)
        tag = np.where(waits, both, tag)
    return Enclosure(step.result, low, high, np.asarray(tag, np.uint32))


def _clamp(step: Step) -> Enclosure:
    low, a, high = (step.operand(k) for k in range(3))

    def limited(x: F64, first: F64, last: F64) -> F64:
        return np.minimum(np.maximum(x, first), last)

    fmt = step.dtype.format
    sure = step.all_sure() if fmt is None else step.untouched(fmt)
    result = Interval(limited(a.lo, low.lo, high.lo), limited(a.hi, low.hi, high.hi))
    return step.enclosed(result, step.tags(), sure)


def _bits(boolean: Callable[[Interval, Interval], tuple[F64, F64]]) -> Rule:
    def rule(step: Step) -> Enclosure:
        if not step.dtype.is_bool:
            return any_integer(step)
        lo, hi = boolean(step.operands[0].interval, step.operands[-1].interval)
        sure = step.all_sure() | (lo == hi)
        tag = np.where(lo == hi, np.uint32(0), step.tags())
        return step.enclosed(Interval(lo, hi), tag, sure)

    return rule


def _xor(a: Interval, b: Interval) -> tuple[F64, F64]:
    known = (a.lo == a.hi) & (b.lo == b.hi)
    value = (a.lo != b.lo).astype(np.float64)
    return np.where(known, value, 0.0), np.where(known, value, 1.0)


RULES: dict[str, Rule] = {
    "compare": _compare,
    "select": _select,
    "clamp": _clamp,
    "and": _bits(lambda a, b: (np.minimum(a.lo, b.lo), np.minimum(a.hi, b.hi))),
    "or": _bits(lambda a, b: (np.maximum(a.lo, b.lo), np.maximum(a.hi, b.hi))),
    "xor": _bits(_xor),
    "not": _bits(lambda a, _: (1.0 - a.hi, 1.0 - a.lo)),
    "shift_left": any_integer,
    "shift_right_logical": any_integer,
    "shift_right_arithmetic": any_integer,
    "popcnt": any_integer,
    "count_leading_zeros": any_integer,
}
