"""The error of a sum or a sum of products of n terms in any order and grouping.

For rounding to nearest with unit u, and whatever the order: a sum is wrong by at most (n - 1) u sum |x|, a sum of
products, each rounded or not, by at most n u sum |x y|, for every n (C.-P. Jeannerod and S. M. Rump, Improved error
bounds for inner products in floating-point arithmetic, SIAM J. Matrix Anal. Appl. 34, 2013). Each addition's error is
at most u times its result, and no partial sum exceeds the larger one of the sums of the positive and of the negative
terms, (sum |x| + |sum x|) / 2, by more than the error so far; where terms of both signs meet, that is less.

Accumulating in a wider format, or fusing products with additions, only leaves roundings out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tlir.compare.bounds import intervals as iv
from tlir.compare.bounds.enclosure import NAN, UNSURE, Enclosure, Tags, first_of, is_uniform, uniform
from tlir.compare.bounds.intervals import F64, U64, Interval, Mask
from tlir.compare.bounds.step import Step
from tlir.ir.ops import Accumulate
from tlir.ir.types import DType


class Special(NamedTuple):
    """Of the terms of each sum: whether one may be +inf, -inf or NaN, and whether one surely is."""

    plus: Mask
    minus: Mask
    nan: Mask
    sure_plus: Mask
    sure_minus: Mask
    sure_nan: Mask


class Sum(NamedTuple):
    """``exact`` encloses the exact sum apart from float64's own error, ``size`` bounds the sum of magnitudes."""

    exact: Interval
    size: F64
    terms: int | F64
    products: bool


def accumulator(step: Step) -> DType:
    order: Accumulate | None = step.node.attrs.get("accumulate")
    chosen = order.dtype if order is not None else None
    return chosen or (step.dtype if step.node.op not in ("dot_general", "convolution") else step.result.dtype)


def accumulated(step: Step, total: Sum) -> tuple[Interval, Mask]:
    """The computed sums as values of the result's format, for finite terms; and where a NaN is possible, since partial
    sums overflow in both directions."""
    wide, fmt = accumulator(step).float_format, step.result.dtype.float_format
    known = iv.limits(wide)
    count, size = total.terms, total.size
    sum_size = np.maximum(np.abs(total.exact.lo), np.abs(total.exact.hi))
    own = (count + 4) * U64 * size * 1.001
    larger = np.minimum((size + sum_size) / 2 + own, size)
    additions = np.maximum(count - 1, 0)
    if total.products:
        error = known.unit * (size + additions * (larger + count * known.unit * size))
        error = np.minimum(error, count * known.unit * size)
        lost = count * max(step.freedoms.flushed_below(wide), known.least)
        # underflow loses at most that, and only where there are terms at all
        error = error + np.where(size > 0, lost, 0.0)
    else:
        error = additions * known.unit * np.minimum(larger + additions * known.unit * size, size)
        if step.freedoms.flush:
            error = error + np.where(size > 0, count * step.freedoms.flushed_below(wide), 0.0)
    if not wide.has_zero:
        # the starts, and every sum that ought to be zero or is below the smallest number, are that number
        error = error + (2 * count + 1) * known.least
    error = iv.up(error * (1 + 2.0**-48)) + own
    lo, hi = total.exact.lo - error, total.exact.hi + error
    lo, hi = np.where(error == 0, lo, iv.down(lo)), np.where(error == 0, hi, iv.up(hi))
    # a sum of positive terms is not negative; nor one of negative terms positive
    if wide.has_zero:
        lo = np.where(total.exact.lo >= size * (1 - 2.0**-40), np.maximum(lo, 0.0), lo)
        hi = np.where(-total.exact.hi >= size * (1 - 2.0**-40), np.minimum(hi, 0.0), hi)
    # partial sums reach the sum of the terms of one sign
    above = (size + total.exact.hi) / 2 + error > known.top
    below = (size - total.exact.lo) / 2 + error > known.top
    if not (wide.infinities or wide.has_nan):
        above = below = above | below  # sums that ended at the largest number go on from there
    lo, hi = np.where(below, -np.inf, lo), np.where(above, np.inf, hi)
    result, overflow = Interval(lo, hi), np.zeros(lo.shape, np.bool_)
    if wide != fmt:
        result, overflow = step.rounded(fmt, result)
    elif not step.freedoms.keeps_excess(fmt):
        inner = Interval(iv.above(fmt, lo), iv.below(fmt, hi))
        result = step.flushed(fmt, Interval(np.where(np.isinf(lo), lo, inner.lo), np.where(np.isinf(hi), hi, inner.hi)))
    else:
        result = step.flushed(fmt, result)
    return result, overflow | (above & below) | (wide.has_nan and not iv.complete(wide))


def with_special(result: Interval, tag: Tags, special: Special) -> tuple[Interval, Tags]:
    """The sums with what infinite and NaN terms make of them: sums of these are the same in every order."""
    lo, hi = result
    plus, minus = special.plus, special.minus
    never = special.sure_nan | (special.sure_plus & special.sure_minus)
    some = plus | minus | special.nan | never
    if not some.any():
        return result, tag
    lo = np.where(plus | minus, np.where(special.sure_plus, np.inf, -np.inf), lo)
    hi = np.where(plus | minus, np.where(special.sure_minus, -np.inf, np.inf), hi)
    lo, hi = np.where(never, np.nan, lo), np.where(never, np.nan, hi)
    # an infinite term meets the opposite infinity also where finite terms add up to it
    nan = special.nan | never | (plus & (minus | (result.lo == -np.inf))) | (minus & (result.hi == np.inf))
    return Interval(lo, hi), np.where(nan, tag | NAN, tag)


def finite_part(a: Interval) -> tuple[Interval, bool]:
    """The intervals with 0 in the place of those that are not finite, and whether there are any."""
    if iv.all_finite(a.lo) and (a.hi is a.lo or iv.all_finite(a.hi)):
        return a, False
    finite = np.isfinite(a.lo) & np.isfinite(a.hi)
    return Interval(np.where(finite, a.lo, 0.0), np.where(finite, a.hi, 0.0)), True


def reduced_tags(tag: Tags, axis: int = 0) -> Tags:
    """Flags of any element along the axis, and one of the reasons."""
    if not tag.size:
        return np.zeros(np.delete(tag.shape, axis), np.uint32)
    if is_uniform(tag):
        return uniform(int(first_of(tag)), tag.shape[:axis] + tag.shape[axis + 1 :])
    flags = np.bitwise_or.reduce(tag, axis=axis)
    if (tag > 3).any():
        return np.asarray((np.maximum.reduce(tag >> np.uint32(2), axis=axis) << np.uint32(2)) | (flags & np.uint32(3)))
    return np.asarray(flags, np.uint32)


def sum_terms(step: Step, terms: Interval, tag: Tags) -> Enclosure:
    """The enclosure of the sums over the first axis of terms (count, outputs…), in any order."""
    wide = accumulator(step).float_format
    count = terms.lo.shape[0]
    joined = reduced_tags(tag)
    if wide.precision < step.dtype.float_format.precision or not iv.complete(wide):
        terms = Interval(iv.nearest(wide, terms.lo), iv.nearest(wide, terms.hi))
    if not (step.freedoms.order or step.freedoms.flush or step.freedoms.excess):
        from tlir.compare.bounds.written import follows, ordered_sum, unordered

        if follows(step, terms):
            return step.enclosed(ordered_sum(step, terms), joined, (joined & UNSURE) == 0)
        joined = unordered(step, joined)
    finite, some = finite_part(terms)
    lo = finite.lo.sum(axis=0)
    exact = Interval(lo, lo if finite.hi is finite.lo else finite.hi.sum(axis=0))
    if finite.lo.size and finite.lo.min() >= 0:
        size = exact.hi
    elif finite.hi is finite.lo:
        size = np.abs(finite.lo).sum(axis=0)
    else:
        size = np.maximum(np.abs(finite.lo), np.abs(finite.hi)).sum(axis=0)
    result, nan = accumulated(step, Sum(exact, size, count, False))
    joined = np.where(nan, joined | NAN, joined)
    if some:
        return _special(step, result, joined, terms, tag)
    written = not step.freedoms.order or (count <= 1 and iv.complete(wide))
    sure = (joined & UNSURE) == 0 if written and not step.freedoms.flush else None
    return step.enclosed(result, joined, sure)


def _special(step: Step, result: Interval, tag: Tags, terms: Interval, tags: Tags) -> Enclosure:
    nan = (tags & NAN) != 0
    special = Special(
        plus=(terms.hi == np.inf).any(axis=0),
        minus=(terms.lo == -np.inf).any(axis=0),
        nan=nan.any(axis=0),
        sure_plus=(terms.lo == np.inf).any(axis=0),
        sure_minus=(terms.hi == -np.inf).any(axis=0),
        sure_nan=np.asarray(np.isnan(terms.lo).any(axis=0)),
    )
    return step.enclosed(*with_special(result, tag, special))
