"""Bounds of products of tensors: products of matrices of middles and radii, in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlir.compare.bounds import intervals as iv
from tlir.compare.bounds.enclosure import NAN, UNSURE, Enclosure, Tags
from tlir.compare.bounds.intervals import F64, U64, Interval, Mask
from tlir.compare.bounds.step import Step
from tlir.compare.bounds.sums import Special, Sum, accumulated, accumulator, with_special
from tlir.compare.bounds.written import ordered_products, unordered

Rule = Callable[[Step], Enclosure]
Contract = Callable[[F64, F64], F64]


class Side(NamedTuple):
    """One operand: its intervals, and where elements are not finite, may be NaN, and are not sure."""

    interval: Interval
    nan: Mask
    unsure: Mask
    reasons: Tags


def _arranged(array: NDArray[Any], contracting: Sequence[int], batching: Sequence[int], left: bool) -> NDArray[Any]:
    """(batch, free, contracted) of the left side, (batch, contracted, free) of the right one."""
    free = [axis for axis in range(array.ndim) if axis not in (*contracting, *batching)]
    order = (*batching, *free, *contracting) if left else (*batching, *contracting, *free)
    sizes = [prod(array.shape[axis] for axis in axes) for axes in (batching, free, contracting)]
    shape = (sizes[0], sizes[1], sizes[2]) if left else (sizes[0], sizes[2], sizes[1])
    return array.transpose(order).reshape(shape)


def _dot_general(step: Step) -> Enclosure:
    if step.dtype.format is None:
        return _whole_products(step)
    sides = []
    for k, name in enumerate(("lhs", "rhs")):
        axes = step.attr(f"{name}_contracting_dimensions"), step.attr(f"{name}_batching_dimensions")
        operand, a = step.operands[k], step.operand(k)

        def arranged(
            array: NDArray[Any], axes: tuple[Sequence[int], Sequence[int]] = axes, left: bool = k == 0
        ) -> NDArray[Any]:
            if not step.dtype.is_complex:
                return _arranged(array, *axes, left)
            return np.stack([_arranged(array[..., part], *axes, left) for part in range(2)], -1)

        sides.append(
            Side(
                Interval(arranged(a.lo), arranged(a.hi)),
                arranged(operand.nan),
                arranged(operand.unsure),
                arranged(operand.reasons),
            )
        )
    shape = step.result.shape
    if not step.dtype.is_complex:
        lo, hi, tag = contracted(step, sides[0], sides[1], np.matmul, sides[0].interval.lo.shape[-1])
        if is_written(step):
            ordered = ordered_products(step, sides[0].interval, sides[1].interval)
            if ordered is not None:
                return reshaped(step, ordered.lo, ordered.hi, tag, shape, followed=True)
        return reshaped(step, lo, hi, tag, shape)
    return _complex(step, sides[0], sides[1], np.matmul, shape)


def _complex(step: Step, left: Side, right: Side, product: Contract, shape: tuple[int, ...]) -> Enclosure:
    """Real and imaginary parts as sums of twice as many products."""

    def part(side: Side, k: int, negate: bool = False) -> Side:
        a = Interval(side.interval.lo[..., k], side.interval.hi[..., k])
        return Side(iv.negative(a) if negate else a, side.nan[..., k], side.unsure[..., k], side.reasons[..., k])

    def joined(a: Side, b: Side, axis: int) -> Side:
        interval = Interval(*(np.concatenate(ends, axis) for ends in zip(a.interval, b.interval, strict=True)))
        rest = (np.concatenate(pair, axis) for pair in zip(a[1:], b[1:], strict=True))
        return Side(interval, *rest)

    parts = []
    for real in (True, False):
        lhs = joined(part(left, 0), part(left, 1, negate=real), -1)
        rhs = joined(part(right, 0 if real else 1), part(right, 1 if real else 0), -2)
        parts.append(contracted(step, lhs, rhs, product, lhs.interval.lo.shape[-1]))
    lo, hi, tag = both_parts(parts)
    return reshaped(step, lo, hi, tag, (*shape, 2))


def both_parts(parts: Sequence[tuple[F64, F64, Tags]]) -> tuple[F64, F64, Tags]:
    """Ends and tags of complex numbers from those of the real and imaginary parts."""
    (real_lo, real_hi, real_tag), (imag_lo, imag_hi, imag_tag) = parts
    return np.stack((real_lo, imag_lo), -1), np.stack((real_hi, imag_hi), -1), np.stack((real_tag, imag_tag), -1)


def is_written(step: Step) -> bool:
    """Whether only the written order is permitted, every step of it rounded."""
    free = step.freedoms
    return not (free.order or free.fma or free.flush or free.keeps_excess(step.result.dtype.float_format))


def reshaped(step: Step, lo: F64, hi: F64, tag: Tags, shape: tuple[int, ...], followed: bool = False) -> Enclosure:
    """The enclosure of the whole result; the reference's own where the operands are sure and the order is written."""
    lo, hi, tag = lo.reshape(shape), hi.reshape(shape), tag.reshape(shape)
    sure = (tag & UNSURE) == 0 if is_written(step) else None
    return step.enclosed(Interval(lo, hi), tag if followed else unordered(step, tag), sure)


def contracted(step: Step, left: Side, right: Side, product: Contract, count: int) -> tuple[F64, F64, Tags]:
    """Ends and tags of the sums of ``count`` products, for a bilinear ``product`` of float64 arrays with an error of at
    most (count + 2) units of the sum of magnitudes."""
    wide = accumulator(step).float_format
    narrowed = wide.precision < step.dtype.float_format.precision or not iv.complete(wide)
    middles, radii, finite = [], [], []
    for side in (left, right):
        a = side.interval
        if narrowed:
            a = Interval(iv.nearest(wide, a.lo), iv.nearest(wide, a.hi))
        good = np.isfinite(a.lo) & np.isfinite(a.hi)
        if not good.all():
            a = Interval(np.where(good, a.lo, 0.0), np.where(good, a.hi, 0.0))
        middle = a.lo / 2 + a.hi / 2
        radius = np.maximum(a.hi - middle, middle - a.lo)
        middles.append(middle)
        radii.append(np.where(radius > 0, iv.up(radius), 0.0) if radius.any() else None)
        finite.append(good)
    center = product(middles[0], middles[1])
    sizes = [np.abs(middle) for middle in middles]
    size = product(sizes[0], sizes[1])
    own = (count + 4) * U64 * 1.001
    spread = None
    if radii[0] is not None or radii[1] is not None:
        outer = [size_ if radius is None else size_ + radius for size_, radius in zip(sizes, radii, strict=True)]
        most = product(outer[0], outer[1])
        # what the radii add: the difference of two sums of magnitudes, each with its own error
        spread = np.maximum(most - size, 0.0) + 2 * own * most
        size = most
    lost = iv.up(own * size) if spread is None else iv.up(spread + own * size)
    exact = Interval(center - lost, center + lost)
    result, nan = accumulated(step, Sum(exact, iv.up(size * (1 + own)), count, True))
    tag = _tags(left, right, product, center.shape)
    tag = np.where(nan, tag | NAN, tag)
    if finite[0].all() and finite[1].all() and not left.nan.any() and not right.nan.any():
        return result.lo, result.hi, tag
    result, tag = with_special(result, tag, _special(left, right, product))
    return result.lo, result.hi, tag


def _tags(left: Side, right: Side, product: Contract, shape: tuple[int, ...]) -> Tags:
    tag = np.zeros(shape, np.uint32)
    ones = [np.ones(side.unsure.shape) for side in (left, right)]

    def met(a: NDArray[Any], b: NDArray[Any]) -> Mask:
        result = np.zeros(shape, np.bool_)
        if a.any():
            result |= product(a.astype(np.float64), ones[1]) > 0
        if b.any():
            result |= product(ones[0], b.astype(np.float64)) > 0
        return result

    unsure = met(left.unsure, right.unsure)
    tag = np.where(unsure, tag | UNSURE, tag)
    if left.reasons.any() or right.reasons.any():
        number = max(int(left.reasons.max(initial=0)), int(right.reasons.max(initial=0)))
        tag = np.where(met(left.reasons, right.reasons), tag | np.uint32(number << 2), tag)
    return tag


def _special(left: Side, right: Side, product: Contract) -> Special:
    """What infinite and NaN operands give: a term is infinite or NaN where one of its factors is."""

    def count(a: Mask, b: Mask) -> F64:
        return product(a.astype(np.float64), b.astype(np.float64))

    def masks(side: Side) -> dict[str, Mask]:
        lo, hi = side.interval
        return {
            "plus": hi == np.inf,
            "minus": lo == -np.inf,
            "sure_plus": lo == np.inf,
            "sure_minus": hi == -np.inf,
            "positive": hi > 0,
            "negative": lo < 0,
            "sure_positive": lo > 0,
            "sure_negative": hi < 0,
            "zero": iv.has_zero(side.interval),
            "sure_zero": (lo == 0) & (hi == 0),
            "infinite": np.isinf(lo) | np.isinf(hi),
            "sure_infinite": np.isinf(lo) & (lo == hi),
            "any": np.ones(lo.shape, np.bool_),
            "nan": side.nan | np.isnan(lo),
            "sure_nan": np.isnan(lo),
        }

    a, b = masks(left), masks(right)

    def either(*pairs: tuple[str, str]) -> Mask:
        total: Any = 0.0
        for x, y in pairs:
            total = total + count(a[x], b[y]) + count(a[y], b[x])
        return np.asarray(total > 0)

    return Special(
        plus=either(("plus", "positive"), ("minus", "negative")),
        minus=either(("plus", "negative"), ("minus", "positive")),
        nan=either(("infinite", "zero"), ("nan", "any")),
        sure_plus=either(("sure_plus", "sure_positive"), ("sure_minus", "sure_negative")),
        sure_minus=either(("sure_plus", "sure_negative"), ("sure_minus", "sure_positive")),
        sure_nan=either(("sure_infinite", "sure_zero"), ("sure_nan", "any")),
    )


def _whole_products(step: Step) -> Enclosure:
    """Integers and Booleans: sure where every factor is, anything elsewhere."""
    if all(operand.all_sure for operand in step.operands):
        return step.sure()
    from tlir.compare.bounds.step import full_range

    masks = []
    for k, name in enumerate(("lhs", "rhs")):
        axes = step.attr(f"{name}_contracting_dimensions"), step.attr(f"{name}_batching_dimensions")
        masks.append(_arranged(step.operands[k].unsure.astype(np.float64), *axes, k == 0))
    ones = [np.ones_like(mask) for mask in masks]
    unsure = (np.matmul(masks[0], ones[1]) + np.matmul(ones[0], masks[1]) > 0).reshape(step.result.shape)
    low, high = full_range(step.result.dtype)
    reason = np.uint32(step.reason("unbounded", "a product of integers that differ") << 2)
    tag = np.where(unsure, reason | UNSURE, np.uint32(0))
    return step.enclosed(Interval(np.full(unsure.shape, low), np.full(unsure.shape, high)), tag, ~unsure)


RULES: dict[str, Rule] = {"dot_general": _dot_general}
