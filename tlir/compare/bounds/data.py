"""Bounds of constants and conversions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tlir.compare.bounds import intervals as iv
from tlir.compare.bounds.arithmetic import branched, whole
from tlir.compare.bounds.enclosure import NAN, UNSURE, Enclosure, Narrow, Packed, Tags, certain, with_flag
from tlir.compare.bounds.intervals import FLOAT64, Interval
from tlir.compare.bounds.movement import EVALUATORS, held
from tlir.compare.bounds.step import Step, full_range
from tlir.floatlib.format import Format
from tlir.ir.types import NAMED

Rule = Callable[[Step], Enclosure]


def _convert(step: Step) -> Enclosure:
    source, target = step.dtype, step.result.dtype
    operand = step.operands[0]
    small = source.format is not None or (target.format is not None and target.float_format.emin > 0)
    if operand.all_sure and not (step.freedoms.flush and small) and not _may_stay_wide(step):
        return step.sure()
    if operand.all_sure and source.is_float and not target.is_complex and not _may_stay_wide(step):
        flushes = bool(step.subnormal_operand(0).any())
        if target.is_float:
            flushes = flushes or bool(step.subnormal(target.float_format, step.sure().interval).any())
        if not flushes:
            return step.sure()
    if isinstance(operand, Narrow) and step.nowhere_sure and target.name == "float32":
        flushes = step.freedoms.flushed_below(source.float_format) > operand.least
        if not flushes:  # the ends are numbers of it
            return Packed(step.result, operand.low, operand.high, with_flag(operand.tag, UNSURE))
    if source.is_complex and not target.is_complex:
        real = Enclosure(operand.tensor, operand.lo[..., 0], operand.hi[..., 0], operand.tag[..., 0])
        if target.is_bool:
            return step.unknown("the truth of a complex number")
        return _real(step, real)
    if target.is_complex and not source.is_complex:
        real = _real(step, operand, part=True)
        zero = np.zeros_like(real.lo)
        return Enclosure(
            step.result,
            np.stack((real.lo, zero), -1),
            np.stack((real.hi, zero), -1),
            np.stack((real.tag, np.zeros_like(real.tag)), -1),
        )
    return _real(step, operand)


def _may_stay_wide(step: Step) -> bool:
    """Whether compiled code may leave the conversion to a narrow format out."""
    target = step.result.dtype.component
    wide = step.freedoms.compiled and step.softened and target.format is not None
    return wide and step.freedoms.keeps_excess(target.float_format)


def _real(step: Step, operand: Enclosure, part: bool = False) -> Enclosure:
    """Real numbers, or parts, converted each by itself."""
    source, target = operand.dtype.component, step.result.dtype.component
    a = operand.interval
    if source.format is not None:
        a = step.flushed(source.float_format, a)
    tag = operand.tag
    if not part and target.format is not None:
        quick = _quickly(step, a, tag, target.float_format)
        if quick is not None:
            return quick
    sure = (tag & UNSURE) == 0
    if source.format is not None and step.freedoms.flush:
        sure = sure & ~step.subnormal(source.float_format, operand.interval)
    if target.format is not None:
        fmt = target.float_format
        result, nan = Interval(iv.nearest(fmt, a.lo), iv.nearest(fmt, a.hi)), iv.missing(fmt, a)
        if _may_stay_wide(step):
            wide = Interval(iv.nearest(iv.FLOAT32, a.lo), iv.nearest(iv.FLOAT32, a.hi))
            sure = sure & (result.lo == a.lo)
            result = iv.hull(result, wide)
        if not iv.in_float64(fmt) or source.bits > 53:
            result = iv.widened(result, 2.0**-52)
        result = step.flushed(fmt, result)
        if step.freedoms.flush:
            sure = sure & ~step.subnormal(fmt, result)
        tag = np.where(nan, tag | NAN, tag)
        if part:
            known = certain(step.result)
            lo, hi = np.where(sure, known.lo[..., 0], result.lo), np.where(sure, known.hi[..., 0], result.hi)
            return Enclosure(operand.tensor, lo, hi, np.where(sure, tag, tag | UNSURE).astype(np.uint32))
        return step.enclosed(result, tag, sure)
    if target.is_bool:
        yes = (a.lo > 0) | (a.hi < 0) | np.isnan(a.lo)
        no = (a.lo == 0) & (a.hi == 0) & ~operand.nan
        result = Interval(np.where(yes, 1.0, 0.0), np.where(no, 0.0, 1.0))
        return step.enclosed(result, branched(step, result, "whether a number is zero") & ~NAN, sure)
    if source.format is None:
        return whole(step, a)
    result = Interval(np.trunc(a.lo), np.trunc(a.hi))
    low, high = full_range(target)
    outside = (result.lo < low) | (result.hi > high) | operand.nan | np.isnan(result.lo)
    if step.attr("out_of_range") == "saturate":
        lo, hi = np.clip(result.lo, low, high), np.clip(result.hi, low, high)
        lo, hi = np.where(operand.nan, np.fmin(lo, 0.0), lo), np.where(operand.nan, np.fmax(hi, 0.0), hi)
        result = Interval(np.where(np.isnan(lo), 0.0, lo), np.where(np.isnan(hi), 0.0, hi))
    else:
        result = Interval(np.where(outside, low, result.lo), np.where(outside, high, result.hi))
    return step.enclosed(result, branched(step, result, "rounding to an integer") & ~NAN, sure)


def _quickly(step: Step, a: Interval, tag: Tags, fmt: Format) -> Enclosure | None:
    """The enclosure of numbers of formats that float64 contains, none of which is sure; None elsewhere."""
    ends = a.lo, a.hi
    if (
        not step.nowhere_sure
        or not iv.in_float64(fmt)
        or not fmt.infinities
        or not iv.complete(fmt)
        or step.dtype.bits > 53
    ):
        return None
    result = Interval(*(iv.nearest(fmt, end) for end in ends))
    if step.freedoms.compiled and step.softened and step.freedoms.keeps_excess(fmt):
        result = iv.hull(result, Interval(*(iv.nearest(iv.FLOAT32, end) for end in ends)))
    return step.enclosed(step.flushed(fmt, result), tag)


def _bitcast(step: Step) -> Enclosure:
    operand = step.operands[0]
    if operand.all_sure:
        return step.sure()
    source, target = step.dtype, step.result.dtype
    unsure = operand.unsure
    if source.bits > target.bits:
        unsure = np.broadcast_to(unsure[..., np.newaxis], step.result.shape)
    elif source.bits < target.bits:
        unsure = np.asarray(unsure.any(axis=-1))
    return step.anything("the bits of a number that is not sure", where=unsure)


def _reduce_precision(step: Step) -> Enclosure:
    fmt = step.dtype.float_format
    a = step.operand(0)
    if not iv.in_float64(fmt):
        return step.unknown("reduce_precision of a format that float64 does not contain")
    exponent_bits = step.attr("exponent_bits")
    # the format's own range, in which subnormals stay, is not float64's
    attrs = {"exponent_bits": exponent_bits if exponent_bits < fmt.exponent_bits else FLOAT64.exponent_bits}
    ends = [_evaluated(step, end, attrs) for end in a]
    if not fmt.infinities or not iv.complete(fmt):
        return step.unknown("reduce_precision of a format without infinities, zero or sign")
    if exponent_bits >= fmt.exponent_bits:
        # a subnormal number is rounded at a fixed place, that of its word
        known = iv.limits(fmt)
        place = known.step * 2.0 ** max(0, fmt.fraction_bits - step.attr("mantissa_bits"))
        with np.errstate(all="ignore"):
            own = [np.rint(end / place) * place for end in a]
        ends = [np.where(np.abs(end) < known.tiny, x, y) for end, x, y in zip(a, own, ends, strict=True)]
    result = Interval(ends[0], ends[1])
    result = step.flushed(fmt, Interval(iv.nearest(fmt, result.lo), iv.nearest(fmt, result.hi)))
    return step.enclosed(result, step.tags(), step.untouched(fmt, result))


def _evaluated(step: Step, values: iv.F64, attrs: dict[str, int]) -> iv.F64:
    from dataclasses import replace

    from tlir.backends.reference.invocation import Invocation

    tensor = held(np.asarray(values, order="C"), step.result.shape, NAMED["float64"], "lo")
    node = replace(step.node, attrs={**step.node.attrs, **attrs}, types=(tensor.type,))
    words = np.asarray(EVALUATORS["reduce_precision"](Invocation(node, (tensor,))), order="C")
    return words.view(np.float64)


def _sure(step: Step) -> Enclosure:
    return step.sure()


RULES: dict[str, Rule] = {
    "constant": _sure,
    "iota": _sure,
    "convert": _convert,
    "bitcast_convert": _bitcast,
    "reduce_precision": _reduce_precision,
}
