"""Bounds of elementary functions: their range over the operand's interval, and the error that the policy permits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tlir.compare.bounds import intervals as iv
from tlir.compare.bounds.enclosure import Enclosure, values_of
from tlir.compare.bounds.intervals import F64, FLOAT64, Interval, Mask
from tlir.compare.bounds.step import Step
from tlir.floatlib.format import Format

Rule = Callable[[Step], Enclosure]
Ends = Callable[[F64], F64]


class Monotone(NamedTuple):
    """A function that is monotone on its domain. ``ends`` computes it in float64, or is None where the library of
    correctly rounded functions does; ``low`` and ``high`` bound the results of every implementation."""

    ends: Ends | None
    increasing: bool = True
    first: float = -np.inf
    last: float = np.inf
    low: float = -np.inf
    high: float = np.inf
    even: bool = False
    slope: Callable[[Interval], F64] | None = None
    """A bound of the derivative's magnitude over intervals, where that is quicker than the function in float64."""


def _error_function_slope(a: Interval) -> F64:
    """2 / sqrt(pi) exp(-x^2) where x is nearest to zero."""
    nearest = np.where(iv.has_zero(a), 0.0, np.minimum(np.abs(a.lo), np.abs(a.hi)))
    return 1.1283791670955132 * np.exp(-nearest * nearest) * (1 + 2.0**-40)


def _logistic(x: F64) -> F64:
    tail = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0 / (1.0 + tail), tail / (1.0 + tail))


MONOTONE: dict[str, Monotone] = {
    "sqrt": Monotone(np.sqrt, first=0.0, low=0.0),
    "exponential": Monotone(np.exp, low=0.0),
    "exponential_minus_one": Monotone(np.expm1),
    "exp2": Monotone(np.exp2, low=0.0),
    "log": Monotone(np.log, first=0.0),
    "log_plus_one": Monotone(np.log1p, first=-1.0),
    "log2": Monotone(np.log2, first=0.0),
    "log10": Monotone(np.log10, first=0.0),
    "logistic": Monotone(_logistic, low=0.0),
    "tanh": Monotone(np.tanh),
    "asin": Monotone(np.arcsin, first=-1.0, last=1.0),
    "acos": Monotone(np.arccos, increasing=False, first=-1.0, last=1.0),
    "atan": Monotone(np.arctan),
    "sinh": Monotone(np.sinh),
    "cosh": Monotone(np.cosh, even=True),
    "asinh": Monotone(np.arcsinh),
    "acosh": Monotone(np.arccosh, first=1.0),
    "atanh": Monotone(np.arctanh, first=-1.0, last=1.0),
    "cbrt": Monotone(np.cbrt),
    "erf": Monotone(None, slope=_error_function_slope),
    "erfc": Monotone(None, increasing=False, slope=_error_function_slope),
    "erf_inv": Monotone(None, first=-1.0, last=1.0),
    "erfcx": Monotone(None, increasing=False),
    "ndtri": Monotone(None, first=0.0, last=1.0),
    "log_ndtr": Monotone(None),
    "bessel_i0": Monotone(None, even=True),
    "bessel_i1": Monotone(None),
    "bessel_i0e": Monotone(None, increasing=False, even=True),
    "bessel_k0": Monotone(None, increasing=False, first=0.0),
    "bessel_k1": Monotone(None, increasing=False, first=0.0),
    "bessel_k0e": Monotone(None, increasing=False, first=0.0),
    "bessel_k1e": Monotone(None, increasing=False, first=0.0),
}


def library(name: str) -> Ends:
    """A correctly rounded function of ``tlir.floatlib`` in float64."""

    def ends(x: F64) -> F64:
        from tlir.floatlib.elementary import evaluate

        words = np.asarray(x, order="C").view(np.uint64)
        result: Any = evaluate(name, FLOAT64, words)
        return np.asarray(result).view(np.float64)

    return ends


def spread(step: Step, name: str, fmt: Format, exact: Interval) -> tuple[Interval, Mask]:
    """The results of a function whose exact value lies in ``exact``, computed with the permitted error and rounded to
    the format. Also where a NaN stands for an overflow."""
    inner, ulps, floor = step.freedoms.ulps(name, fmt)
    if ulps <= 0.5:
        return step.rounded(fmt, exact)
    known = iv.limits(inner)
    finite = iv.all_finite(exact.lo, exact.hi)
    ends = []
    for end, outward in ((exact.lo, -ulps), (exact.hi, ulps)):
        size = np.abs(end)
        moved = iv.ulp(inner, np.fmax(size, floor) if floor else size)
        # a float64 rounding of the sum is far below the slack of a narrower format's units
        moved *= outward * (1 + 2.0**-20) if inner.precision <= 24 else outward
        moved += end
        ends.append(moved)
    low, high = ends if inner.precision <= 24 else (iv.down(ends[0]), iv.up(ends[1]))
    # values are numbers of the format in which the function is computed
    if inner != fmt or not step.freedoms.keeps_excess(fmt):
        low, high = iv.above(inner, low), iv.below(inner, high)
    low = np.where(low < -known.top, -np.inf, low) if not low.min(initial=0.0) >= -known.top else low
    high = np.where(high > known.top, np.inf, high) if not high.max(initial=0.0) <= known.top else high
    result = Interval(low, high)
    if not finite:
        ends = [np.where(np.isinf(end), end, moved) for end, moved in zip(exact, result, strict=True)]
        result = iv.closed(ends[0], ends[1], exact)
    if inner == fmt:
        return step.flushed(fmt, result), iv.nowhere(exact.lo)
    if finite and inner == iv.FLOAT32 and fmt.infinities and step.freedoms.keeps_excess(fmt):
        # numbers of float32, which stay as they are or are rounded
        step.settled = True
        ends = [np.minimum(result.lo, iv.nearest(fmt, result.lo)), np.maximum(result.hi, iv.nearest(fmt, result.hi))]
        return step.flushed(fmt, Interval(ends[0], ends[1])), iv.nowhere(exact.lo)
    return step.rounded(fmt, result)


def evaluated(step: Step, name: str, exact: Interval, nan: Mask) -> Enclosure:
    """The enclosure of a function whose exact value lies in ``exact``, or around the reference's where the operands are
    sure and that is closer: it is the exact value rounded once."""
    fmt = step.dtype.float_format
    everywhere = step.nowhere_sure
    touched = ~step.untouched(fmt)
    if fmt.precision > 24 and not everywhere:
        own = values_of(step.result)
        near = Interval(iv.down(own.lo), iv.up(own.hi))
        special = (own.lo == 0) | np.isinf(own.lo)
        near = Interval(np.where(special, own.lo, near.lo), np.where(special, own.hi, near.hi))
        exact = Interval(np.where(touched, exact.lo, near.lo), np.where(touched, exact.hi, near.hi))
    result, overflow = spread(step, name, fmt, exact)
    _, ulps, _ = step.freedoms.ulps(name, fmt)
    known = MONOTONE.get(name)
    if known is not None:
        lo = np.maximum(result.lo, known.low) if known.low > -np.inf else result.lo
        result = Interval(lo, np.minimum(result.hi, known.high) if known.high < np.inf else result.hi)
    if name in ("sinh", "cosh") and ulps > 0.5:
        # computed as half of an exponential, which overflows earlier
        limit = iv.limits(fmt).top / 8
        result = Interval(
            np.where(result.lo < -limit, -np.inf, result.lo), np.where(result.hi > limit, np.inf, result.hi)
        )
    sure = step.untouched(fmt, result) if ulps <= 0.5 and not step.freedoms.keeps_excess(fmt) else None
    if sure is None and not everywhere:
        own = values_of(step.result)
        never = ~touched & np.isnan(own.lo)
        if iv.complete(fmt) and fmt.infinities:
            sure = never  # a NaN is one for every implementation
        else:
            nan = nan | never  # it may stand for a number that the format does not have
    if not fmt.has_nan and not everywhere:
        # the reference's word for a NaN is one of the numbers
        nan = nan | (np.abs(values_of(step.result).lo) == (0.0 if fmt.has_zero else iv.limits(fmt).least))
    return step.enclosed(result, step.tags(nan | overflow), sure)


def function(name: str) -> Rule:
    """The rule of a monotone function."""
    known = MONOTONE[name]

    def rule(step: Step) -> Enclosure:
        a = step.operand(0)
        if known.slope is not None:
            return evaluated(step, name, _around(step, name, a, known.slope(a)), iv.nowhere(a.lo))
        lo, hi = a
        nan = outside = iv.nowhere(lo)
        if known.first > -np.inf or known.last < np.inf:
            nan = np.asarray((lo < known.first) | (hi > known.last))
            outside = (hi < known.first) | (lo > known.last)
            lo = np.clip(lo, known.first, known.last)
            hi = lo if a.hi is a.lo else np.clip(a.hi, known.first, known.last)
        if known.even:
            straddles = (lo <= 0) & (hi >= 0)
            lo, hi = (
                np.where(straddles, 0.0, np.minimum(np.abs(lo), np.abs(hi))),
                np.maximum(np.abs(lo), np.abs(hi)),
            )
        if not known.increasing:
            lo, hi = hi, lo
        apply = known.ends or _where_needed(step, name)
        low = apply(lo)
        high = low if lo is hi else apply(hi)
        if outside.any():
            low, high = np.where(outside, np.nan, low), np.where(outside, np.nan, high)
        exact = iv.widened(Interval(low, high))
        if known.ends is None:
            half = np.where(np.isfinite(low), iv.ulp(step.dtype.float_format, low) / 2, 0.0)
            exact = Interval(exact.lo - half, exact.hi + half)
        return evaluated(step, name, exact, nan)

    return rule


def _around(step: Step, name: str, a: Interval, slope: F64) -> Interval:
    """The exact values: at most half a unit, and the slope times the distance of the operand, from a rounded result."""
    operand, fmt = step.operands[0].values.lo, step.dtype.float_format
    own = values_of(step.result).lo
    if fmt.precision < 24 and np.array_equal(operand, operand.astype(np.float32), equal_nan=True):
        from tlir.floatlib.elementary import evaluate

        # half a unit of a narrow format would be too much
        fmt = iv.FLOAT32
        rounded: Any = evaluate(name, fmt, operand.astype(np.float32).view(np.uint32))
        own = np.asarray(rounded).view(np.float32).astype(np.float64)
    half = iv.ulp(fmt, own) / 2
    reach = np.maximum(operand - a.lo, a.hi - operand)
    distance = np.where(reach > 0, iv.up(slope * reach), 0.0) + half
    result = iv.closed(iv.down(own - distance), iv.up(own + distance), Interval(own, own))
    unlimited = np.isinf(a.lo) | np.isinf(a.hi) | (np.isnan(operand) & ~np.isnan(a.lo))
    if not unlimited.any():
        return result
    # of infinite operands the reference's result is exact
    fixed = np.isinf(a.lo) & (a.lo == a.hi) & (operand == a.lo)
    lo, hi = np.where(unlimited, -1.0, result.lo), np.where(unlimited, 2.0, result.hi)
    return Interval(np.where(fixed, own, lo), np.where(fixed, own, hi))


def _where_needed(step: Step, name: str) -> Ends:
    """The library's function at ends of the operand where it is not sure; elsewhere the reference's result, which
    ``evaluated`` widens by the half unit that it may be rounded by."""
    fmt = step.dtype.float_format
    touched = ~step.untouched(fmt)
    own = values_of(step.result).lo

    def ends(x: F64) -> F64:
        result = np.array(own)
        if touched.any():
            result[touched] = library(name)(x[touched])
        return result

    return ends


def _rsqrt(step: Step) -> Enclosure:
    a = step.operand(0)
    lo, hi = 1.0 / np.sqrt(np.maximum(a.hi, 0.0)), 1.0 / np.sqrt(np.maximum(a.lo, 0.0))
    outside, zero = a.hi < 0, (a.lo <= 0) & (a.hi >= 0)
    # of zero it is an infinity with the zero's sign
    lo, hi = np.where(zero, -np.inf, lo), np.where(zero, np.inf, hi)
    lo, hi = np.where(outside, np.nan, lo), np.where(outside, np.nan, hi)
    return evaluated(step, "rsqrt", iv.widened(Interval(lo, hi)), np.asarray(a.lo < 0))


def _periodic(name: str, apply: Ends, shift: float) -> Rule:
    """sine and cosine: the extremes are where (x + shift) / pi is an integer."""

    def rule(step: Step) -> Enclosure:
        a = step.operand(0)
        finite = np.isfinite(a.lo) & np.isfinite(a.hi)
        lo, hi = np.where(finite, a.lo, 0.0), np.where(finite, a.hi, 0.0)
        first, last = apply(lo), apply(hi)
        low, high = np.minimum(first, last), np.maximum(first, last)
        slack = 1e-15 * (np.abs(lo) + np.abs(hi)) + 1e-300
        near, far = np.ceil((lo + shift - slack) / np.pi), np.floor((hi + shift + slack) / np.pi)
        turns = (far >= near) & (lo != hi)
        # an even multiple of pi is a maximum, an odd one a minimum; two of them are one of each
        several = far > near
        odd = np.mod(near, 2) == 1
        high = np.where(turns & (several | ~odd), 1.0, high)
        low = np.where(turns & (several | odd), -1.0, low)
        vague = (lo != hi) & (np.maximum(np.abs(lo), np.abs(hi)) > 1e8)
        low, high = np.where(vague, -1.0, low), np.where(vague, 1.0, high)
        infinite = np.isinf(a.lo) | np.isinf(a.hi)
        only = infinite & (a.lo == a.hi) | np.isnan(a.lo)
        low = np.where(only, np.nan, np.where(finite, low, -1.0))
        high = np.where(only, np.nan, np.where(finite, high, 1.0))
        return evaluated(step, name, iv.widened(Interval(low, high)), infinite)

    return rule


def _tan(step: Step) -> Enclosure:
    a = step.operand(0)
    finite = np.isfinite(a.lo) & np.isfinite(a.hi)
    lo, hi = np.where(finite, a.lo, 0.0), np.where(finite, a.hi, 0.0)
    slack = 1e-15 * (np.abs(lo) + np.abs(hi)) + 1e-300
    branch = np.floor((lo + np.pi / 2 - slack) / np.pi) != np.floor((hi + np.pi / 2 + slack) / np.pi)
    open = (branch | (np.maximum(np.abs(lo), np.abs(hi)) > 1e8)) & (lo != hi) | ~finite
    low, high = np.where(open, -np.inf, np.tan(lo)), np.where(open, np.inf, np.tan(hi))
    only = np.isnan(a.lo) | (np.isinf(a.lo) & (a.lo == a.hi))
    low, high = np.where(only, np.nan, low), np.where(only, np.nan, high)
    return evaluated(step, "tan", iv.widened(Interval(low, high)), ~finite)


def _power(step: Step) -> Enclosure:
    if step.dtype.is_integer:
        from tlir.compare.bounds.arithmetic import any_integer

        return any_integer(step)
    x, y = step.operand(0), step.operand(1)
    positive = x.lo > 0
    lo, hi = np.where(positive, x.lo, 1.0), np.where(positive, x.hi, 1.0)
    corners = [np.power(lo, y.lo), np.power(lo, y.hi), np.power(hi, y.lo), np.power(hi, y.hi)]
    low = np.minimum(np.minimum(corners[0], corners[1]), np.minimum(corners[2], corners[3]))
    high = np.maximum(np.maximum(corners[0], corners[1]), np.maximum(corners[2], corners[3]))
    exact = iv.widened(Interval(low, high))
    # of bases that are not positive, integral powers
    integral = ~positive & (y.lo == y.hi) & (y.lo == np.rint(y.lo)) & np.isfinite(x.lo) & np.isfinite(x.hi)
    if (~positive).any():
        n = np.where(integral, y.lo, 1.0)
        first, last = np.power(x.lo, n), np.power(x.hi, n)
        straddles, even = iv.has_zero(x), np.mod(n, 2) == 0
        low, high = np.minimum(first, last), np.maximum(first, last)
        low = np.where(straddles & even, np.minimum(low, 0.0), low)
        pole = straddles & (n < 0)
        low, high = np.where(pole & (x.lo != x.hi), -np.inf, low), np.where(pole & (x.lo != x.hi), np.inf, high)
        whole = iv.widened(Interval(low, high))
        exact = Interval(np.where(integral, whole.lo, exact.lo), np.where(integral, whole.hi, exact.hi))
    own = values_of(step.result)
    fmt = step.dtype.float_format
    known = ~positive & ~integral & step.untouched(fmt)
    exact = Interval(np.where(known, own.lo, exact.lo), np.where(known, own.hi, exact.hi))
    unknown = ~positive & ~integral & ~known
    exact = Interval(np.where(unknown, -np.inf, exact.lo), np.where(unknown, np.inf, exact.hi))
    result = evaluated(step, "power", exact, unknown)
    if not unknown.any():
        return result
    reason = np.uint32(step.reason("unbounded", "a power whose base may be negative or zero") << 2)
    tag = np.where(unknown & (result.tag < 4), result.tag | reason, result.tag)
    return Enclosure(result.tensor, result.lo, result.hi, tag)


def _hypot(step: Step) -> Enclosure:
    ends = []
    for k in range(2):
        x = step.operand(k)
        ends.append((np.where(iv.has_zero(x), 0.0, np.minimum(abs(x.lo), abs(x.hi))), np.maximum(abs(x.lo), abs(x.hi))))
    exact = iv.widened(Interval(np.hypot(ends[0][0], ends[1][0]), np.hypot(ends[0][1], ends[1][1])))
    return evaluated(step, "hypot", exact, np.zeros(exact.lo.shape, np.bool_))


def _atan2(step: Step) -> Enclosure:
    y, x = step.operand(0), step.operand(1)
    corners = [np.arctan2(b, a) for b in y for a in x]
    low = np.minimum(np.minimum(corners[0], corners[1]), np.minimum(corners[2], corners[3]))
    high = np.maximum(np.maximum(corners[0], corners[1]), np.maximum(corners[2], corners[3]))
    open = iv.has_zero(y) & (x.lo <= 0) & ~step.untouched(step.dtype.float_format)
    low, high = np.where(open, -np.pi, low), np.where(open, np.pi, high)
    result = evaluated(step, "atan2", iv.widened(Interval(low, high)), np.zeros(low.shape, np.bool_))
    if not open.any():
        return result
    reason = np.uint32(step.reason("branch", "an angle on either side of the negative real axis") << 2)
    tag = np.where(open & (result.tag < 4), result.tag | reason, result.tag)
    return Enclosure(result.tensor, result.lo, result.hi, tag)


def log_add_exp(a: Interval, b: Interval) -> Interval:
    """log(exp(a) + exp(b)), increasing in both."""
    low, high = np.logaddexp(a.lo, b.lo), np.logaddexp(a.hi, b.hi)
    with np.errstate(all="ignore"):
        slack = 2.0**-50 * (1.0 + np.where(np.isfinite(high), np.maximum(np.abs(a.hi), np.abs(b.hi)), 0.0))
        low_slack = 2.0**-50 * (1.0 + np.where(np.isfinite(low), np.maximum(np.abs(a.lo), np.abs(b.lo)), 0.0))
    slack, low_slack = np.where(np.isfinite(slack), slack, 1.0), np.where(np.isfinite(low_slack), low_slack, 1.0)
    return iv.closed(low - low_slack, high + slack, a, b)


def log_add_exp_rule(step: Step) -> Enclosure:
    exact = log_add_exp(step.operand(0), step.operand(1))
    return evaluated(step, "log_add_exp", exact, np.zeros(exact.lo.shape, np.bool_))


def around_reference(name: str, what: str = "") -> Rule:
    """Functions whose range over an interval is not known here: around the reference where the operands are sure."""
    text = what or f"how {name} changes with its operands is not bounded"

    def rule(step: Step) -> Enclosure:
        fmt = step.dtype.float_format
        own = values_of(step.result)
        half = np.where(np.isfinite(own.lo), iv.ulp(fmt, own.lo) / 2, 0.0)
        sure = step.untouched(fmt)
        low, high = np.where(sure, own.lo - half, -np.inf), np.where(sure, own.hi + half, np.inf)
        result = evaluated(step, name, Interval(low, high), ~sure)
        if sure.all():
            return result
        reason = np.uint32(step.reason("unbounded", text) << 2)
        tag = np.where(~sure & (result.tag < 4), result.tag | reason, result.tag)
        return Enclosure(result.tensor, result.lo, result.hi, tag)

    return rule


def _of_real(name: str, rule: Rule) -> Rule:
    def either(step: Step) -> Enclosure:
        if step.dtype.is_complex:
            from tlir.compare.bounds.complex_numbers import around

            return around(step, name)
        return rule(step)

    return either


_SPECIAL = {"bessel_i0", "bessel_i1", "bessel_i0e", "bessel_k0", "bessel_k1", "bessel_k0e", "bessel_k1e", "erfcx",
            "ndtri", "log_ndtr"}  # fmt: skip

RULES: dict[str, Rule] = {
    name: _of_real(name, rule)
    for name, rule in (
        *((name, function(name)) for name in MONOTONE if name not in _SPECIAL and name != "sqrt"),
        ("rsqrt", _rsqrt),
        ("sine", _periodic("sine", np.sin, -np.pi / 2)),
        ("cosine", _periodic("cosine", np.cos, 0.0)),
        ("tan", _tan),
        ("power", _power),
        ("hypot", _hypot),
        ("atan2", _atan2),
        ("lgamma", around_reference("lgamma")),
        ("digamma", around_reference("digamma")),
    )
}
