"""Bounds of arithmetic."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tlir.compare.bounds import intervals as iv
from tlir.compare.bounds import single
from tlir.compare.bounds.complex_numbers import complex_divide, complex_multiply, complex_norm, normwise
from tlir.compare.bounds.elementary import function
from tlir.compare.bounds.enclosure import UNSURE, Enclosure, Kept, Tags, with_flag
from tlir.compare.bounds.intervals import F64, FLOAT64, Interval, Mask
from tlir.compare.bounds.step import Step, full_range
from tlir.floatlib.format import Format

Rule = Callable[[Step], Enclosure]


def by_kind(real: Rule, integer: Rule | None = None, complex: Rule | None = None, boolean: Rule | None = None) -> Rule:
    """The rule for the kind of the first operand; of complex numbers, unless stated, each part like a real number."""

    def rule(step: Step) -> Enclosure:
        dtype = step.dtype
        if dtype.is_complex:
            return (complex or real)(step)
        if dtype.is_integer:
            assert integer is not None
            return integer(step)
        if dtype.is_bool:
            assert boolean is not None
            return boolean(step)
        return real(step)

    return rule


def outer(fmt: Format, exact: Interval) -> Interval:
    """Ends that were rounded to float64, moved so that the exact ones lie between them; of float64 itself they are the
    roundings that executions make."""
    if fmt == FLOAT64:
        return exact
    lo, hi = iv.down(exact.lo), iv.up(exact.hi)
    zero = exact.lo == 0
    lo = np.where(zero, exact.lo, lo) if zero.any() else lo
    zero = exact.hi == 0
    return Interval(lo, np.where(zero, exact.hi, hi) if zero.any() else hi)


def inexact(fmt: Format, a: Interval) -> Mask:
    """Where rounding the one number of the interval to the format changes it."""
    return np.asarray(iv.nearest(fmt, a.lo) != a.lo)


def plainly_sure(step: Step, fused: bool = False) -> bool:
    """Whether the operation is rounded once, of operands that are sure everywhere, and nothing is flushed: quickly."""
    fmt = step.dtype.float_format
    if fused or step.freedoms.keeps_excess(fmt) or not all(operand.all_sure for operand in step.operands):
        return False
    own = step.sure().interval
    flushes = any(step.subnormal_operand(k).any() for k in range(len(step.operands)))
    return not flushes and not step.subnormal(fmt, own).any()


MANY = 4096
"""Elements from which it is quicker not to ask which of them are sure."""


def quickly(step: Step, fmt: Format, exact: Interval, unrounded: bool = False) -> Enclosure | None:
    """The enclosure of an operation that is rounded once (or not, too), where all goes well: the ends ``exact``,
    rounded to float64 to nearest, are finite and do not overflow. None elsewhere, and where results may be sure; in
    large tensors it does not matter that some elements are, whose enclosure is one number."""
    keeps = step.freedoms.keeps_excess(fmt)
    kept = unrounded or keeps
    if not step.nowhere_sure and not (kept and exact.lo.size >= MANY):
        return None
    if not exact.lo.size or not (fmt == FLOAT64 or iv.exact_in(fmt)) or not fmt.infinities or not iv.complete(fmt):
        return None
    known, ends, large = iv.limits(fmt), [], True
    # what is rounded to float32 is at most half a unit of it away
    error = 2.0**-24 + 2.0**-50 if keeps else 2.0**-52
    for end, outward, choose in ((exact.lo, -error, np.minimum), (exact.hi, error, np.maximum)):
        size = np.abs(end)
        if not size.max() < known.top * 0.99:
            return None
        normal = bool(size.min() >= 2 * known.tiny)
        large = large and normal
        if kept and not normal and not iv.scales(size, iv.limits(iv.FLOAT32).tiny if keeps else iv.TINY):
            return None
        if fmt != FLOAT64 or unrounded:
            # of what underflows, both the number and this are rounded to zero
            size *= outward
            size += end
            end = size
        if kept and fmt != FLOAT64:
            end = choose(end, iv.nearest(fmt, end, normal))
        elif fmt != FLOAT64:
            end = iv.nearest(fmt, end, normal)
        ends.append(end)
    result = Interval(ends[0], ends[1])
    if not large:
        result = step.flushed(fmt, result)
    made = (Kept if keeps else Enclosure)(step.result, result.lo, result.hi, with_flag(step.tags(), UNSURE))
    if large:
        made.__dict__["clear"] = True
    return made


def sum_of(step: Step, a: Interval, b: Interval, less: bool = False) -> Enclosure:
    """a + b, or a - b."""
    fmt = step.dtype.float_format
    if step.folded is not None:
        b = iv.negative(b) if less else b
        sizes = [np.maximum(np.abs(end.lo), np.abs(end.hi)) for end in (a, b)]
        return _refolded(step, fmt, iv.add(a, b), 1.01 * (sizes[0] + sizes[1] + step.folded))
    if plainly_sure(step):
        return step.sure()
    quick = quickly(step, fmt, Interval(a.lo - b.hi, a.hi - b.lo) if less else Interval(a.lo + b.lo, a.hi + b.hi))
    if quick is not None:
        return quick
    b = iv.negative(b) if less else b
    exact, nan = iv.add(a, b)
    result, overflow = step.rounded(fmt, outer(fmt, exact))
    sure = step.untouched(fmt, result)
    if step.freedoms.keeps_excess(fmt):
        sure = sure & (~inexact(fmt, exact))
    return step.enclosed(result, step.tags(nan | overflow), sure)


def _refolded(step: Step, fmt: Format, parts: tuple[Interval, Mask], size: F64) -> Enclosure:
    """The enclosure of an operation with a constant on the result of one with a constant, where a compiler may combine
    the two constants first: the rounding of one operation is replaced by that of the constants' combination, each of
    them at most half a unit of ``size``."""
    exact, nan = parts
    error = iv.limits(fmt).unit * size + iv.limits(fmt).least
    result, overflow = step.rounded(fmt, Interval(iv.down(exact.lo - error), iv.up(exact.hi + error)), step.fused)
    return step.enclosed(result, step.tags(nan | overflow))


def _add(step: Step) -> Enclosure:
    return single.added(step, step.dtype.float_format, False) or sum_of(step, step.operand(0), step.operand(1))


def _subtract(step: Step) -> Enclosure:
    if step.node.inputs[0] == step.node.inputs[1]:
        # x - x is +0 whatever a finite x is
        a = step.operand(0)
        finite = np.isfinite(a.lo) & np.isfinite(a.hi)
        zero = Interval(np.where(finite, 0.0, -np.inf), np.where(finite, 0.0, np.inf))
        if not step.freedoms.keeps_excess(step.dtype.float_format) and not step.freedoms.fma:
            return step.enclosed(zero, step.tags(~finite), step.all_sure())
    quick = single.added(step, step.dtype.float_format, True)
    return quick or sum_of(step, step.operand(0), step.operand(1), less=True)


def product_error(a: F64, b: F64, product: F64) -> Mask:
    """Where a float64 product is certainly exact (Dekker's error term, where it neither over- nor underflows)."""

    def split(x: F64) -> tuple[F64, F64]:
        scaled = 134217729.0 * x
        high = scaled - (scaled - x)
        return high, x - high

    (ah, al), (bh, bl) = split(a), split(b)
    error = ((ah * bh - product) + ah * bl + al * bh) + al * bl
    zero = (a == 0) | (b == 0)
    return np.asarray(zero | ((error == 0) & (np.abs(product) > 2.0**-900)))


def product_of(step: Step, a: Interval, b: Interval, same: bool) -> Enclosure:
    fmt = step.dtype.float_format
    fused = step.fused and step.freedoms.fma
    if step.folded is not None:
        exact, nan = iv.multiply(a, b)
        return _refolded(step, fmt, (exact, nan), 2.5 * np.maximum(np.abs(exact.lo), np.abs(exact.hi)))
    if plainly_sure(step, fused):
        return step.sure()
    quick = quickly(step, fmt, iv.square(a) if same else iv.corners(np.multiply, a, b), fused)
    if quick is not None:
        return quick
    if same:
        exact, nan = iv.square(a), iv.nowhere(a.lo)
    else:
        exact, nan = iv.multiply(a, b)
    if fused and fmt == FLOAT64:
        result, overflow = step.rounded(fmt, Interval(iv.down(exact.lo), iv.up(exact.hi)))
    else:
        result, overflow = step.rounded(fmt, outer(fmt, exact), unrounded=fused)
    sure = step.untouched(fmt, result)
    if fused or step.freedoms.keeps_excess(fmt):
        if iv.exact_in(fmt):
            sure = sure & (~inexact(fmt, exact))
        else:
            sure = sure & (product_error(a.lo, b.lo, exact.lo))
    # an overflow that a fused operation does not make is a number beyond the format
    return step.enclosed(result, step.tags(nan | overflow), sure)


def _multiply(step: Step) -> Enclosure:
    same = step.node.inputs[0] == step.node.inputs[1]
    quick = single.multiplied(step, step.dtype.float_format, same)
    return quick or product_of(step, step.operand(0), step.operand(1), same)


def _divide(step: Step) -> Enclosure:
    fmt = step.dtype.float_format
    through = step.freedoms.reciprocal
    through_product = through == "always" or (through == "constant" and step.constant[1])
    if not through_product and plainly_sure(step):
        return step.sure()
    narrow = None if through_product else single.divided(step, fmt)
    if narrow is not None:
        return narrow
    a, b = step.operand(0), step.operand(1)
    if not through_product and iv.apart_from_zero(b):
        quick = quickly(step, fmt, iv.corners(np.divide, a, b))
        if quick is not None:
            return quick
    quotient, nan, zero = iv.divide(a, b)
    wide = outer(fmt, quotient)
    result, overflow = step.rounded(fmt, wide)
    sure = step.untouched(fmt, result)
    if step.freedoms.keeps_excess(fmt):
        sure = sure & (~inexact(fmt, quotient))
    if through_product:
        product, lost = through_reciprocal(fmt, wide, a, b)
        result, nan = iv.hull(result, step.flushed(fmt, product)), nan | lost
        sure = sure & invertible(fmt, b)
    tag = step.tags(nan | overflow)
    if (zero & ~sure).any():
        reason = step.reason("unbounded", "the divisor may be zero")
        tag = np.where(zero & (tag < 4), tag | np.uint32(reason << 2), tag)
    return step.enclosed(result, tag, sure)


def power_of_two(a: Interval) -> Mask:
    """Where the interval is one number whose reciprocal is exact."""
    significand, exponent = np.frexp(a.lo)
    return np.asarray((a.lo == a.hi) & (np.abs(significand) == 0.5) & (np.abs(exponent) < 100))


def invertible(fmt: Format, a: Interval) -> Mask:
    """Where the interval is one number whose reciprocal is exact and a number of the format."""
    known, size = iv.limits(fmt), np.abs(a.lo)
    return np.asarray(power_of_two(a) & (size * known.top >= 1.0) & (size * known.least <= 1.0))


def through_reciprocal(fmt: Format, quotient: Interval, dividend: Interval, divisor: Interval) -> tuple[Interval, Mask]:
    """x * (1 / y), both operations rounded: at most two units and a half of the quotient away, where 1 / y is normal;
    otherwise anything up to the quotient may be lost. Also where it may be a product of zero and infinity."""
    known = iv.limits(fmt)
    error = 2.5 * known.unit * np.maximum(np.abs(quotient.lo), np.abs(quotient.hi)) + known.least
    result = Interval(iv.down(quotient.lo - error), iv.up(quotient.hi + error))
    largest = np.maximum(np.abs(divisor.lo), np.abs(divisor.hi))
    smallest = np.minimum(np.abs(divisor.lo), np.abs(divisor.hi))
    lost = largest * known.tiny > 0.5
    beyond = smallest * known.top < 2.0
    nan = (lost & iv.has_infinity(dividend)) | (beyond & iv.has_zero(dividend))
    if not fmt.has_zero:
        beyond = beyond | lost  # what is lost is replaced by a number of any size
    lo = np.where(beyond, -np.inf, np.where(lost, np.minimum(result.lo, 0.0), result.lo))
    hi = np.where(beyond, np.inf, np.where(lost, np.maximum(result.hi, 0.0), result.hi))
    return iv.closed(lo, hi, quotient), np.asarray(nan)


def _fma(step: Step) -> Enclosure:
    fmt = step.dtype.float_format
    product, nan = iv.multiply(step.operand(0), step.operand(1))
    exact = outer(fmt, product) if fmt != FLOAT64 else Interval(iv.down(product.lo), iv.up(product.hi))
    if step.freedoms.fma:
        rounded, lost = step.rounded(fmt, exact)
        exact, nan = iv.hull(exact, rounded), nan | lost
    total, more = iv.add(exact, step.operand(2))
    result, overflow = step.rounded(fmt, Interval(iv.down(total.lo), iv.up(total.hi)))
    sure = step.untouched(fmt, result)
    if step.freedoms.fma or step.freedoms.keeps_excess(fmt):
        sure = sure & (power_of_two(step.operands[0].interval) | power_of_two(step.operands[1].interval))
        if step.freedoms.keeps_excess(fmt):
            sure = sure & (False)
    return step.enclosed(result, step.tags(nan | more | overflow), sure)


def _negate(step: Step) -> Enclosure:
    return step.enclosed(iv.negative(step.operands[0].interval), step.tags(), step.all_sure())


def _abs(step: Step) -> Enclosure:
    a = step.operands[0].interval
    lo, hi = np.abs(a.lo), np.abs(a.hi)
    result = Interval(np.where(iv.has_zero(a), 0.0, np.minimum(lo, hi)), np.maximum(lo, hi))
    return step.enclosed(result, step.tags(), step.all_sure())


def _extremum(choose: Callable[[F64, F64], F64]) -> Rule:
    def rule(step: Step) -> Enclosure:
        a, b = step.operand(0), step.operand(1)
        fmt = step.dtype.format
        sure = step.all_sure() if fmt is None else step.untouched(fmt)
        # where one operand is no number, the result is none
        return step.enclosed(Interval(choose(a.lo, b.lo), choose(a.hi, b.hi)), step.tags(), sure)

    return rule


def stepwise(apply: Callable[[F64], F64], what: str) -> Rule:
    """A function that is constant between its jumps, and monotone."""

    def rule(step: Step) -> Enclosure:
        a = step.operand(0)
        result = Interval(apply(a.lo), apply(a.hi))
        return step.enclosed(result, branched(step, result, what), step.untouched(step.dtype.float_format))

    return rule


def branched(step: Step, result: Interval, what: str) -> Tags:
    """The operands' tags, with a reason where the ends differ, so that executions decide differently."""
    tag = step.tags()
    open = (result.lo != result.hi) & ~np.isnan(result.lo)
    if open.any():
        reason = np.uint32(step.reason("branch", what) << 2)
        tag = np.where(open & (tag < 4), tag | reason, tag)
    return np.asarray(tag)


def _round_away(x: F64) -> F64:
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.sign(x), whole)


def _copysign(step: Step) -> Enclosure:
    a, sign = step.operands[0].interval, step.operands[1]
    size = Interval(
        np.where(iv.has_zero(a), 0.0, np.minimum(np.abs(a.lo), np.abs(a.hi))), np.maximum(np.abs(a.lo), np.abs(a.hi))
    )
    known = certain_sign(sign)
    lo = np.where(known > 0, size.lo, -size.hi)
    hi = np.where(known < 0, -size.lo, size.hi)
    result = Interval(lo, hi)
    tag = step.tags()
    open = known == 0
    if open.any():
        reason = np.uint32(step.reason("branch", "the sign of a number that may be zero") << 2)
        tag = np.where(open & (tag < 4), tag | reason, tag)
    return step.enclosed(result, tag, step.all_sure())


def certain_sign(a: Enclosure) -> NDArray[np.int64]:
    """1 or -1 where the sign bit is the same in every execution, otherwise 0."""
    from tlir.floatlib.words import signs

    own = np.where(signs(a.dtype.float_format, a.tensor.words), -1, 1)
    return np.where(a.unsure, np.where((a.lo > 0) & ~a.nan, 1, np.where((a.hi < 0) & ~a.nan, -1, 0)), own)


def _remainder(step: Step) -> Enclosure:
    a, b = step.operand(0), step.operand(1)
    quotient, nan, zero = iv.divide(a, b)
    first, last = np.trunc(iv.down(quotient.lo)), np.trunc(iv.up(quotient.hi))
    whole = (first == last) & np.isfinite(first) & (np.abs(first) < 2.0**52)
    part, _ = iv.multiply(Interval(first, first), b)
    exact, _ = iv.add(a, Interval(-iv.up(part.hi), -iv.down(part.lo)))
    size = np.maximum(np.abs(b.lo), np.abs(b.hi))
    most = np.minimum(size, np.maximum(np.abs(a.lo), np.abs(a.hi)))
    lo = np.where(whole, iv.down(exact.lo), np.where(a.lo >= 0, 0.0, -most))
    hi = np.where(whole, iv.up(exact.hi), np.where(a.hi <= 0, 0.0, most))
    result = Interval(np.maximum(lo, np.where(a.lo >= 0, 0.0, -most)), np.minimum(hi, np.where(a.hi <= 0, 0.0, most)))
    result = iv.closed(result.lo, result.hi, a, b)
    tag = step.tags(nan | np.isinf(a.hi) | np.isinf(a.lo) | zero)
    if (~whole).any():
        reason = np.uint32(step.reason("branch", "the quotient may be on either side of an integer") << 2)
        tag = np.where(~whole & (tag < 4), tag | reason, tag)
    result = step.flushed(step.dtype.float_format, result)
    return step.enclosed(result, tag, step.untouched(step.dtype.float_format, result))


def _next_after(step: Step) -> Enclosure:
    fmt = step.dtype.float_format
    a = step.operands[0].interval
    return step.enclosed(Interval(a.lo - iv.ulp(fmt, a.lo), a.hi + iv.ulp(fmt, a.hi)), step.tags(), step.all_sure())


def _is_finite(step: Step) -> Enclosure:
    operand = step.operands[0].stored()
    top = iv.limits(step.dtype.float_format).top
    yes = (operand.lo >= -top) & (operand.hi <= top) & ~operand.nan
    no = np.isnan(operand.lo) | (operand.lo > top) | (operand.hi < -top)
    result = Interval(np.where(yes, 1.0, 0.0), np.where(no, 0.0, 1.0))
    tag = branched(step, result, "a number that may be infinite")
    return step.enclosed(result, tag & ~np.uint32(1), ~operand.unsure | yes | no)


def _integer_pow(step: Step) -> Enclosure:
    exponent, fmt = step.attr("exponent"), step.dtype.float_format
    if exponent == 0:
        return step.sure()
    if exponent == 1:
        return step.enclosed(step.operand(0), step.tags(), step.untouched(fmt))
    if exponent == 2:
        quick = single.multiplied(step, fmt, True)
        return quick or product_of(step, step.operand(0), step.operand(0), True)
    a, known = step.operand(0), iv.limits(fmt)
    size = abs(exponent)
    ends = [iv.widened(Interval(x, x)) for x in (np.power(np.abs(a.lo), size), np.power(np.abs(a.hi), size))]
    even = Interval(
        np.where(iv.has_zero(a), 0.0, np.minimum(ends[0].lo, ends[1].lo)), np.maximum(ends[0].hi, ends[1].hi)
    )
    if size % 2:
        low, high = np.sign(a.lo), np.sign(a.hi)
        even = Interval(
            np.where(low < 0, -ends[0].hi, ends[0].lo * (low > 0)), np.where(high < 0, -ends[1].lo, ends[1].hi)
        )
    nan = np.zeros(a.lo.shape, np.bool_)
    # |n| - 1 products, in whatever schedule or by a power function, each wrong by at most one unit
    error = (size + 1) * 2 * known.unit
    power = iv.widened(even, error)
    power = Interval(power.lo - 4 * known.least, power.hi + 4 * known.least)
    if size % 2 == 0:
        power = Interval(np.maximum(power.lo, 0.0), power.hi)
    power = _overflowing(power, known.top / 2)
    if exponent < 0:
        if not (fmt.infinities or fmt.has_nan):
            # a product that ended at the largest number
            power = Interval(np.minimum(power.lo, known.top), np.maximum(power.hi, -known.top))
        small = iv.has_zero(power) | (np.minimum(np.abs(power.lo), np.abs(power.hi)) < 8 * known.tiny)
        one = Interval(np.ones_like(power.lo), np.ones_like(power.hi))
        quotient, nan, _ = iv.divide(one, power)
        overflown = iv.has_infinity(power)
        power = Interval(np.where(small, -np.inf, quotient.lo), np.where(small, np.inf, quotient.hi))
        power = _overflowing(iv.widened(power, 2 * known.unit), known.top / 2)
        nan = nan | (not iv.has_one(fmt)) | (overflown & (not fmt.infinities))
    result, overflow = step.rounded(fmt, iv.closed(power.lo, power.hi, a))
    strict = not step.freedoms.any
    return step.enclosed(result, step.tags(nan | overflow), step.untouched(fmt) if strict else None)


def _overflowing(a: Interval, limit: float) -> Interval:
    """The interval, infinite where it passes the limit."""
    return Interval(np.where(a.lo < -limit, -np.inf, a.lo), np.where(a.hi > limit, np.inf, a.hi))


# ---- integers -------------------------------------------------------------------------------------------------------


def whole(step: Step, result: Interval) -> Enclosure:
    """Integers in an interval; any integer of the dtype where it reaches beyond, since integers wrap."""
    return whole_of(step, result, step.tags(), step.all_sure())


def whole_of(step: Step, result: Interval, tag: Tags, sure: Mask) -> Enclosure:
    low, high = full_range(step.result.dtype)
    outside = (result.lo < low) | (result.hi > high) | np.isnan(result.lo) | np.isnan(result.hi)
    lo, hi = np.where(outside, low, result.lo), np.where(outside, high, result.hi)
    return step.enclosed(Interval(lo, hi), tag, sure)


def integers_of(apply: Callable[[Interval, Interval], Interval]) -> Rule:
    def rule(step: Step) -> Enclosure:
        result = apply(step.operands[0].interval, step.operands[-1].interval)
        return whole(step, Interval(iv.down(result.lo), iv.up(result.hi)) if step.dtype.bits > 26 else result)

    return rule


def any_integer(step: Step) -> Enclosure:
    """Any integer of the dtype, unless every operand of the element is sure."""
    low, high = full_range(step.result.dtype)
    shape = step.result.shape
    return step.enclosed(Interval(np.full(shape, low), np.full(shape, high)), step.tags(), step.all_sure())


def _integer_sign(step: Step) -> Enclosure:
    a = step.operands[0].interval
    return step.enclosed(Interval(np.sign(a.lo), np.sign(a.hi)), step.tags(), step.all_sure())


_max = _extremum(np.maximum)
_min = _extremum(np.minimum)

RULES: dict[str, Rule] = {
    "add": by_kind(_add, integers_of(lambda a, b: iv.add(a, b)[0])),
    "subtract": by_kind(_subtract, integers_of(lambda a, b: iv.add(a, iv.negative(b))[0])),
    "multiply": by_kind(_multiply, integers_of(lambda a, b: iv.multiply(a, b)[0]), complex_multiply),
    "divide": by_kind(_divide, any_integer, complex_divide),
    "remainder": by_kind(_remainder, any_integer),
    "maximum": by_kind(_max, _max, None, _max),
    "minimum": by_kind(_min, _min, None, _min),
    "fma": _fma,
    "negate": by_kind(_negate, integers_of(lambda a, _: iv.negative(a))),
    "abs": by_kind(_abs, _abs, complex_norm),
    "sign": by_kind(stepwise(np.sign, "the sign of a number that may be zero"), _integer_sign, normwise("sign")),
    "copysign": _copysign,
    "floor": stepwise(np.floor, "rounding to an integer"),
    "ceil": stepwise(np.ceil, "rounding to an integer"),
    "trunc": stepwise(np.trunc, "rounding to an integer"),
    "round_nearest_even": stepwise(np.rint, "rounding to an integer"),
    "round_nearest_afz": stepwise(_round_away, "rounding to an integer"),
    "sqrt": by_kind(function("sqrt"), None, normwise("sqrt")),
    "next_after": _next_after,
    "is_finite": _is_finite,
    "integer_pow": by_kind(_integer_pow, any_integer, normwise("integer_pow")),
}
