"""Bounds of running totals, pooling and convolutions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlir.backends.reference.invocation import Invocation
from tlir.backends.reference.windows import convolution, spread, window_slices
from tlir.compare.bounds import intervals as iv
from tlir.compare.bounds.contraction import Side, both_parts, contracted, reshaped
from tlir.compare.bounds.elementary import log_add_exp
from tlir.compare.bounds.enclosure import NAN, UNSURE, Enclosure, Tags
from tlir.compare.bounds.intervals import F64, Interval
from tlir.compare.bounds.movement import evaluated, held
from tlir.compare.bounds.reduction import combined
from tlir.compare.bounds.step import Step
from tlir.compare.bounds.sums import Sum, accumulated, accumulator, finite_part
from tlir.compare.bounds.written import follows, running_sum, unordered
from tlir.ir.types import NAMED, TensorType

Rule = Callable[[Step], Enclosure]


def _cumulative(step: Step) -> Enclosure:
    operand, axis, reducer = step.operands[0], step.attr("dimension"), step.attr("reducer")
    arithmetic = reducer in ("add", "multiply", "logaddexp") and step.dtype.format is not None
    flushes = step.subnormal_operand(0)
    if operand.all_sure and not (arithmetic or flushes.any()):
        return step.sure()
    a = step.operand(0)
    turn = slice(None, None, -1) if step.attr("reverse") else slice(None)
    lo, hi = (np.moveaxis(x, axis, 0)[turn] for x in a)
    tag = np.moveaxis(operand.tag, axis, 0)[turn]
    joined = np.bitwise_or.accumulate(tag & np.uint32(3), axis=0)
    joined = joined | (np.maximum.accumulate(tag >> np.uint32(2), axis=0) << np.uint32(2))
    count = np.arange(1.0, len(lo) + 1).reshape((-1,) + (1,) * (lo.ndim - 1))
    sure = (joined & UNSURE) == 0
    if reducer == "add" and step.dtype.format is not None:
        result, joined = _running_sum(step, Interval(lo, hi), joined, count)
        alone = (count <= 1) & iv.complete(accumulator(step).float_format)
        sure = sure & (alone if step.freedoms.order else True) & (not step.freedoms.flush)
    elif reducer in ("maximum", "minimum", "and", "or") and (reducer in ("maximum", "minimum") or step.dtype.is_bool):
        choose = np.maximum if reducer in ("maximum", "or") else np.minimum
        result = Interval(choose.accumulate(lo, axis=0), choose.accumulate(hi, axis=0))
        sure = sure & ~np.logical_or.accumulate(np.moveaxis(flushes, axis, 0)[turn], axis=0)
    elif reducer == "logaddexp":
        result = _running_log(step, Interval(lo, hi), count)
        sure = sure & (count <= 1) & (not step.freedoms.any)
    else:
        return step.unknown(f"running totals by {reducer}") if not arithmetic else step.anything(f"running {reducer}")
    ends = [np.moveaxis(x[turn], 0, axis) for x in result]
    known = np.moveaxis(np.broadcast_to(sure, lo.shape)[turn], 0, axis)
    return step.enclosed(Interval(ends[0], ends[1]), np.moveaxis(joined[turn], 0, axis), known)


def _running_sum(step: Step, a: Interval, tag: Tags, count: F64) -> tuple[Interval, Tags]:
    if not (step.freedoms.order or step.freedoms.flush or step.freedoms.excess):
        if follows(step, a):
            return running_sum(step, a), tag
        tag = unordered(step, tag)
    finite, some = finite_part(a)
    size = np.cumsum(np.maximum(np.abs(finite.lo), np.abs(finite.hi)), axis=0)
    exact = Interval(np.cumsum(finite.lo, axis=0), np.cumsum(finite.hi, axis=0))
    result, nan = accumulated(step, Sum(exact, size, np.broadcast_to(count, size.shape), False))
    tag = np.where(nan, tag | NAN, tag)
    if not some:
        return result, tag
    plus, minus = (np.logical_or.accumulate(x, axis=0) for x in (a.hi == np.inf, a.lo == -np.inf))
    sure_plus, sure_minus = (np.logical_or.accumulate(x, axis=0) for x in (a.lo == np.inf, a.hi == -np.inf))
    never = np.logical_or.accumulate(np.isnan(a.lo), axis=0) | (sure_plus & sure_minus)
    wild = plus | minus
    lo = np.where(wild, np.where(sure_plus, np.inf, -np.inf), result.lo)
    hi = np.where(wild, np.where(sure_minus, -np.inf, np.inf), result.hi)
    meet = (plus & (minus | (result.lo == -np.inf))) | (minus & (result.hi == np.inf))
    tag = np.where(never | meet, tag | NAN, tag)
    return Interval(np.where(never, np.nan, lo), np.where(never, np.nan, hi)), tag


def _running_log(step: Step, a: Interval, count: F64) -> Interval:
    """log_add_exp combined in any order: it increases in every element with slopes that add up to 1, so the errors of
    the steps add up."""
    lows, highs = [a.lo[0]], [a.hi[0]]
    for k in range(1, len(a.lo)):
        both = log_add_exp(Interval(lows[-1], highs[-1]), Interval(a.lo[k], a.hi[k]))
        lows.append(both.lo)
        highs.append(both.hi)
    exact = Interval(np.stack(lows), np.stack(highs))
    fmt = accumulator(step).float_format
    _, ulps, floor = step.freedoms.ulps("log_add_exp", fmt)
    size = np.maximum(np.abs(exact.lo), np.abs(exact.hi))
    largest = np.maximum.accumulate(np.where(np.isfinite(a.hi), np.maximum(np.abs(a.lo), np.abs(a.hi)), 0.0), axis=0)
    unit = iv.ulp(fmt, np.fmax(np.fmax(np.where(np.isfinite(size), size, 0.0), largest), max(floor, 1.0)))
    error = (count - 1) * (max(ulps, 1.0) + 1.0) * unit
    return iv.closed(exact.lo - error, exact.hi + error, exact)


def _reduce_window(step: Step) -> Enclosure:
    operand, reducer = step.operands[0], step.attr("reducer")
    arithmetic = reducer in ("add", "multiply") and step.dtype.format is not None
    window = step.attr("window_dimensions")
    plain = operand.all_sure and not (arithmetic or step.subnormal_operand(0).any())
    if plain or not step.result.type.size or not prod(window):
        return step.sure()
    a = step.operand(0)
    starts = {"add": (0.0, 0.0), "multiply": (1.0, 1.0)}
    if reducer not in starts:
        first = _identity(step)
        starts[reducer] = (first, first)
    holes: tuple[Any, ...] = (*starts[reducer], np.uint32(0))
    places = list(window_slices(window, step.attr("window_dilations"), step.attr("window_strides"), step.result.shape))
    low, high = step.attr("padding_low"), step.attr("padding_high")
    stacked: list[Any] = []
    arrays: tuple[Any, ...] = (a.lo, a.hi, operand.tag)
    for array, hole in zip(arrays, holes, strict=True):
        padded = spread(array, operand.tensor.shape, step.attr("base_dilations"), low, high, np.asarray(hole))
        stacked.append(np.stack([padded[place] for place in places]))
    return combined(step, reducer, Interval(stacked[0], stacked[1]), stacked[2])


def _identity(step: Step) -> float:
    from tlir.backends.reference.reduction import identity_word
    from tlir.compare.bounds.enclosure import values_of
    from tlir.ir.tensor import Tensor
    from tlir.ir.types import TensorType

    word = np.asarray(identity_word(step.dtype, step.attr("reducer")))
    return float(values_of(Tensor(TensorType((), step.dtype), word)).lo)


def _select_and_scatter(step: Step) -> Enclosure:
    operand, source = step.operands
    if step.dtype.format is None:
        return step.unknown("which element of a window is chosen")
    if not operand.all_sure or step.subnormal_operand(0).any():
        return step.anything("which element of a window is chosen")
    shapes = operand.tensor.shape, source.tensor.shape
    chosen = operand.values.lo
    b, some = finite_part(step.operand(1))
    if some:
        return step.anything("infinite numbers that are scattered")
    lo, hi = (evaluated(step, ((chosen, shapes[0]), (end, shapes[1]))) for end in b)
    size = evaluated(step, ((chosen, shapes[0]), (np.maximum(np.abs(b.lo), np.abs(b.hi)), shapes[1])))
    count = evaluated(step, ((chosen, shapes[0]), (np.ones_like(b.lo), shapes[1]))) + 1
    own = (count + 4) * iv.U64 * size
    result, nan = accumulated(step, Sum(Interval(lo - own, hi + own), size + own, count, False))
    return step.enclosed(result, np.where(nan, NAN, np.uint32(0)), size == 0)


def _convolution(step: Step) -> Enclosure:
    lhs, rhs = step.operands
    if step.dtype.format is None:
        return step.unknown("a convolution of integers that differ")
    if not step.result.type.size:
        return step.sure()
    kernel = [rhs.tensor.shape[axis] for axis in step.attr("rhs_dimensions")[1:]]
    count = prod(kernel)
    shapes = lhs.tensor.shape, rhs.tensor.shape

    def multiplied(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
        a, b = left[..., 0].view(np.float64), right[:, :, 0].view(np.float64)
        return np.matmul(a.transpose(1, 2, 0), b.transpose(1, 0, 2)).view(np.uint64)

    def product(a: F64, b: F64) -> F64:
        float64 = NAMED["float64"]
        given = tuple(
            held(np.asarray(x, order="C"), shape, float64, "lo") for x, shape in zip((a, b), shapes, strict=True)
        )
        node = replace(
            step.node, attrs={**step.node.attrs, "accumulate": None}, types=(TensorType(step.result.shape, float64),)
        )
        return np.asarray(convolution(Invocation(node, given), multiplied), order="C").view(np.float64)

    sides = []
    for k in range(2):
        operand = step.operands[k]
        sides.append(Side(step.operand(k), operand.nan, operand.unsure, operand.reasons))
    if step.dtype.is_complex:
        return _complex_convolution(step, sides, product, count)
    lo, hi, tag = contracted(step, sides[0], sides[1], product, count)
    return reshaped(step, lo, hi, tag, step.result.shape)


def _complex_convolution(step: Step, sides: list[Side], product: Callable[[F64, F64], F64], count: int) -> Enclosure:
    """Each part as the sum of two convolutions."""
    parts = []
    for real in (True, False):
        pieces = []
        for k in range(2):
            other = k if real else 1 - k
            left, right = (
                Side(
                    Interval(side.interval.lo[..., j], side.interval.hi[..., j]),
                    side.nan[..., j],
                    side.unsure[..., j],
                    side.reasons[..., j],
                )
                for side, j in ((sides[0], k), (sides[1], other))
            )
            if real and k == 1:
                left = Side(iv.negative(left.interval), *left[1:])
            pieces.append(contracted(step, left, right, product, 2 * count))
        fmt = step.dtype.float_format
        total, nan = iv.add(Interval(pieces[0][0], pieces[0][1]), Interval(pieces[1][0], pieces[1][1]))
        total, _ = step.rounded(fmt, Interval(iv.down(total.lo), iv.up(total.hi)), unrounded=True)
        tag = np.where(nan, pieces[0][2] | pieces[1][2] | NAN, pieces[0][2] | pieces[1][2])
        parts.append((total.lo, total.hi, tag & np.uint32(3)))
    lo, hi, tag = both_parts(parts)
    return reshaped(step, lo, hi, tag, (*step.result.shape, 2))


RULES: dict[str, Rule] = {
    "cumulative": _cumulative,
    "reduce_window": _reduce_window,
    "select_and_scatter": _select_and_scatter,
    "convolution": _convolution,
}
