"""Bounds of reading and writing at computed places."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tlir.compare.bounds import intervals as iv
from tlir.compare.bounds.enclosure import NAN, UNSURE, Enclosure
from tlir.compare.bounds.intervals import Interval
from tlir.compare.bounds.movement import evaluated, moved
from tlir.compare.bounds.step import Step
from tlir.compare.bounds.sums import Sum, accumulated, finite_part
from tlir.compare.bounds.written import unordered

Rule = Callable[[Step], Enclosure]

_PLACE = "a place that permitted executions compute differently"


def _read(data: tuple[int, ...], first_index: int) -> Rule:
    """Elements ``data`` read or written at the places that the operands from ``first_index`` on say."""

    def rule(step: Step) -> Enclosure:
        if all(operand.all_sure for operand in step.operands):
            return step.sure()
        if any(not operand.all_sure for operand in step.operands[first_index:]):
            return step.anything(_PLACE)
        return moved(step, data)

    return rule


def _gather(step: Step) -> Enclosure:
    operand, indices = step.operands
    if operand.all_sure and indices.all_sure:
        return step.sure()
    if not indices.all_sure:
        return _any_element(step, operand)
    fill = step.attr("fill_value")
    return moved(step, (0,), attributes={"fill_value": fill} if fill is not None else None)


def _any_element(step: Step, operand: Enclosure) -> Enclosure:
    """Where an index is not sure, any element of the operand, or the value for places outside."""
    if step.result.dtype.is_complex or not operand.lo.size:
        return step.anything(_PLACE)
    low, high = np.fmin.reduce(operand.lo, axis=None), np.fmax.reduce(operand.hi, axis=None)
    flags = np.bitwise_or.reduce(operand.tag & np.uint32(3), axis=None)
    fill = step.attr("fill_value")
    if step.attr("mode") == "fill" and fill is not None:
        from tlir.compare.bounds.enclosure import certain

        filler = certain(fill)
        low, high = np.fmin(low, filler.lo.min()), np.fmax(high, filler.hi.max())
        flags = flags | np.bitwise_or.reduce(filler.tag & np.uint32(3), axis=None)
    reason = np.uint32(step.reason("branch", _PLACE) << 2)
    shape = step.result.shape
    tag = np.full(shape, flags | UNSURE | reason, np.uint32)
    return step.enclosed(Interval(np.full(shape, low), np.full(shape, high)), tag)


def _scatter(step: Step) -> Enclosure:
    operand, indices, updates = step.operands
    reducer = step.attr("reducer")
    if not indices.all_sure:
        return step.anything(_PLACE)
    exact = reducer in ("replace", "minimum", "maximum") or step.dtype.format is None
    if operand.all_sure and updates.all_sure and exact:
        return step.sure()
    if reducer == "replace":
        return moved(step, (0, 2))
    if step.dtype.is_complex:
        return step.anything(f"a scatter by {reducer} of complex numbers")
    if reducer == "add" and step.dtype.format is not None:
        return scattered_sum(step, operand, updates)
    if reducer in ("minimum", "maximum"):
        shapes = operand.tensor.shape, indices.tensor.shape, updates.tensor.shape
        a, b = step.operand(0), step.operand(2)
        ends = [_scattered(step, x, y, shapes) for x, y in zip(a, b, strict=True)]
        met = _scattered(step, operand.unsure.astype(float), updates.unsure.astype(float), shapes, "maximum")
        nan = _scattered(step, operand.nan.astype(float), updates.nan.astype(float), shapes, "maximum")
        tag = np.where(nan > 0, NAN, np.uint32(0))
        return step.enclosed(Interval(ends[0], ends[1]), tag, met == 0)
    return step.anything(f"a scatter by {reducer} of numbers that differ")


def _scattered(step: Step, a: iv.F64, b: iv.F64, shapes: tuple[tuple[int, ...], ...], reducer: str = "") -> iv.F64:
    """The scatter of float64 arrays at the reference's places."""
    from dataclasses import replace

    from tlir.backends.reference import EVALUATORS
    from tlir.backends.reference.invocation import Invocation
    from tlir.compare.bounds.movement import held
    from tlir.ir.types import NAMED, TensorType

    float64 = NAMED["float64"]
    given = (
        held(np.asarray(a, order="C"), shapes[0], float64, "lo"),
        step.operands[1].tensor,
        held(np.asarray(b, order="C"), shapes[2], float64, "lo"),
    )
    attrs = {**step.node.attrs, "reducer": reducer or step.attr("reducer")}
    node = replace(step.node, attrs=attrs, types=(TensorType(step.result.shape, float64),))
    words = np.asarray(EVALUATORS["scatter"](Invocation(node, given)), order="C")
    return words.view(np.float64)


def scattered_sum(step: Step, operand: Enclosure, updates: Enclosure) -> Enclosure:
    """The operand and the updates that meet its elements, added in any order."""
    shapes = operand.tensor.shape, step.operands[1].tensor.shape, updates.tensor.shape
    a, first = finite_part(step.operand(0))
    b, second = finite_part(step.operand(2))
    lo, hi = (_scattered(step, x, y, shapes, "add") for x, y in zip(a, b, strict=True))
    size = _scattered(
        step, np.maximum(np.abs(a.lo), np.abs(a.hi)), np.maximum(np.abs(b.lo), np.abs(b.hi)), shapes, "add"
    )
    count = _scattered(step, np.ones_like(a.lo), np.ones_like(b.lo), shapes, "add")
    # float64's own sums have as many roundings
    own = (count + 4) * iv.U64 * size
    result, nan = accumulated(step, Sum(Interval(lo - own, hi + own), size + own, count, False))
    met = _scattered(step, operand.unsure.astype(float), updates.unsure.astype(float), shapes, "add")
    several = count > 1
    tag = np.where(nan, NAN, np.uint32(0))
    rough = first or second or operand.nan.any() or updates.nan.any()
    lo, hi = result
    if rough:
        bad = [
            ~np.isfinite(x.lo + x.hi) | each.nan for x, each in ((step.operand(0), operand), (step.operand(2), updates))
        ]
        wild = _scattered(step, bad[0].astype(float), bad[1].astype(float), shapes, "add") > 0
        lo, hi, tag = np.where(wild, -np.inf, lo), np.where(wild, np.inf, hi), np.where(wild, tag | NAN, tag)
    number = max(int(operand.reasons.max(initial=0)), int(updates.reasons.max(initial=0)))
    if number:
        tag = np.where(met > 0, tag | np.uint32(number << 2), tag)
    tag = unordered(step, np.where(met > 0, tag | UNSURE, tag))
    sure = (met == 0) & (~several if step.freedoms.order else True)
    if step.freedoms.flush:
        sure = sure & ~step.subnormal(step.dtype.float_format, Interval(lo, hi))
    return step.enclosed(Interval(lo, hi), tag, sure)


__all__ = ["RULES", "evaluated", "scattered_sum"]

RULES: dict[str, Rule] = {
    "dynamic_slice": _read((0,), 1),
    "dynamic_update_slice": _read((0, 1), 2),
    "gather": _gather,
    "scatter": _scatter,
}
