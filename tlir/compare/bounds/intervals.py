"""Interval arithmetic on float64 arrays, outward: the real numbers that a value may be.

An interval is a pair of arrays ``(lo, hi)``; infinite ends are values that may be reached. ``lo`` and ``hi`` are NaN
where no number is possible, only a NaN. Functions that may give NaN also return where.

``nearest``, ``above`` and ``below`` round to a format of at most 53 bits of precision. Rounding to nearest is monotone,
so the result of a correctly rounded operation lies between the roundings of the two ends, exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlir.floatlib.arrays import convert
from tlir.floatlib.format import FORMATS, Format
from tlir.floatlib.rounding import Flags

F64 = NDArray[np.float64]
Mask = NDArray[np.bool_]
FLOAT64 = FORMATS["float64"]
FLOAT32 = FORMATS["float32"]
FLOAT16 = FORMATS["float16"]

U64 = 2.0**-53
_WIDE = 2.0**-49
"""Relative error that float64 functions of NumPy and the C library stay below (their documentation says 4 units)."""


class Interval(NamedTuple):
    lo: F64
    hi: F64


class Limits(NamedTuple):
    """``unit`` is half the distance from 1 to the next number; ``tiny`` the smallest normal number, ``step`` the
    smallest distance between two numbers, ``least`` the smallest number above zero, ``top`` the largest finite number:
    all as float64, outward where the format has more."""

    unit: float
    tiny: float
    step: float
    least: float
    top: float
    precision: int
    emin: int


@lru_cache(maxsize=64)
def limits(fmt: Format) -> Limits:
    def power(exponent: int) -> float:
        return float(np.ldexp(1.0, max(exponent, -1074))) if exponent <= 1023 else np.inf

    top = np.inf
    if fmt.emax <= 1023:
        _, significand, exponent = fmt.decode(fmt.max_finite)
        spare = significand.bit_length() - 53
        if spare > 0:
            significand, exponent = (significand >> spare) + 1, exponent + spare
        top = float(significand) * 2.0**exponent
    tiny, step = power(fmt.emin), power(fmt.emin - fmt.fraction_bits)
    return Limits(power(-fmt.precision), tiny, step, step if fmt.has_zero else tiny, top, fmt.precision, fmt.emin)


def in_float64(fmt: Format) -> bool:
    """Whether every number of the format is one of float64."""
    return fmt.precision <= 53 and fmt.emax <= 1023 and fmt.emin - fmt.fraction_bits >= -1074


def up(x: F64) -> F64:
    """A number one or two steps above: what a float64 result rounded to nearest is certainly below. Several times as
    quick as ``nextafter``."""
    result: F64 = np.abs(x)
    result = result * 2.0**-52
    result += 5e-324
    result += x
    return result if all_finite(result) else np.nextafter(x, np.inf)


def down(x: F64) -> F64:
    """A number one or two steps below."""
    result: F64 = np.abs(x)
    result = result * -(2.0**-52)
    result -= 5e-324
    result += x
    return result if all_finite(result) else np.nextafter(x, -np.inf)


def all_finite(*arrays: F64) -> bool:
    """Whether no element is infinite or NaN."""
    return all(bool(np.isfinite(array).all()) for array in arrays)


def nowhere(a: F64) -> Mask:
    """A mask of the shape that is set nowhere."""
    return np.broadcast_to(np.False_, a.shape)


def ulp(fmt: Format, x: F64) -> F64:
    """The distance of the format's numbers at the magnitude of x; infinite for infinities."""
    known = limits(fmt)
    power: F64 = (np.asarray(x).view(np.uint64) & _EXPONENT).view(np.float64)
    result = power * 2.0 ** (1 - known.precision)
    return np.maximum(result, known.step)


_EXPONENT = np.uint64(0x7FF0_0000_0000_0000)


def regular(fmt: Format, x: F64, size: F64 | None = None) -> bool:
    """Whether every number is zero or, rounded to the format, a normal one; ``size`` are the magnitudes."""
    if not x.size:
        return True
    size = np.abs(x) if size is None else size
    known = limits(fmt)
    if not size.max() <= known.top:
        return False
    return bool(size.min() >= known.tiny) or not ((size < known.tiny) & (size > 0)).any()


def _cut(fmt: Format, x: F64, added: Any) -> F64:
    """Normal numbers or zeros cut to the format's precision, after something has been added to their magnitudes."""
    mask = (1 << (53 - fmt.precision)) - 1
    added += x.view(added.dtype)
    added &= added.dtype.type(~mask) if added.dtype == np.int64 else np.uint64(2**64 - 1 - mask)
    result: F64 = added.view(np.float64)
    return result


def _scaled(fmt: Format, x: F64, round: Any) -> F64:
    """x rounded by ``round`` to a multiple of the format's unit there, with an unbounded exponent above."""
    known = limits(fmt)
    _, exponent = np.frexp(np.where(np.isfinite(x), x, 0.0))
    place = np.maximum(exponent, known.emin + 1) - known.precision
    result: F64 = np.ldexp(round(np.ldexp(x, -place)), place)
    return np.where(np.isfinite(x), result, x)


def complete(fmt: Format) -> bool:
    """Whether every number is rounded to one of the format: not zero where it has none, nor negative numbers where it
    has no sign. Those give ``Format.invalid_word``: NaN, or else the number nearest to zero."""
    return fmt.has_zero and fmt.signed


def has_one(fmt: Format) -> bool:
    """Whether 1 is a number of the format."""
    return bool(nearest(fmt, np.ones(1))[0] == 1.0)


def missing(fmt: Format, a: Interval) -> Mask:
    """Where a number of the interval gives a NaN because the format does not have it."""
    nan = nowhere(a.lo)
    if not fmt.has_nan:
        return nan
    if not fmt.signed:
        nan = np.asarray(nan | (a.lo < 0))
    if not fmt.has_zero:
        nan = np.asarray(nan | has_zero(a))
    top = limits(fmt).top
    if not fmt.infinities and a.lo.size and not (a.lo.min() >= -top and a.hi.max() <= top):
        nan = np.asarray(nan | np.isinf(nearest(fmt, a.lo)) | np.isinf(nearest(fmt, a.hi)))
    return nan


def nearest(fmt: Format, x: F64, normal: bool = False) -> F64:
    """Each number rounded to nearest even; infinite beyond the format's range, also where a NaN stands for infinities,
    and the number nearest to zero where the format is not ``complete``. The number itself in a format wider than
    float64. ``normal``: all are known to be normal numbers of the format."""
    if fmt == FLOAT64 or not in_float64(fmt):
        return x
    if fmt == FLOAT32:
        return x.astype(np.float32).astype(np.float64)
    plain = complete(fmt) and fmt.fraction_bits > 0
    size = None if normal or not plain or not x.size else np.abs(x)
    if (normal and plain) or (size is not None and size.max() <= limits(fmt).top):
        x = np.asarray(x)
        drop = 53 - fmt.precision
        added = np.asarray(x.view(np.uint64) >> np.uint64(drop))
        added &= np.uint64(1)
        added += np.uint64((1 << (drop - 1)) - 1)
        rounded = _cut(fmt, x, added)
        if size is not None and not size.min() >= limits(fmt).tiny:
            small = size < limits(fmt).tiny
            rounded[small] = _scaled(fmt, x[small], np.rint)
        return rounded
    if fmt == FLOAT16:
        return x.astype(np.float16).astype(np.float64)
    large = np.inf if fmt.infinities or fmt.has_nan else limits(fmt).top
    if not plain:
        # without a fraction, which word is even depends on the bias
        x = np.asarray(x, order="C")
        words, flags = convert(FLOAT64, fmt, x.view(np.uint64), flags=True)
        result = np.asarray(convert(fmt, FLOAT64, words)).view(np.float64)
        instead = 0.0 if fmt.has_zero else limits(fmt).least
        result = np.where(np.isnan(x), x, np.where(np.isnan(result), instead, result))
        beyond = ((flags & Flags.OVERFLOW) != 0) | (np.isinf(x) & ((x > 0) | fmt.signed))
        return np.where(beyond, np.copysign(large, x), result)
    result = _scaled(fmt, x, np.rint)
    return np.where(np.abs(result) > limits(fmt).top, np.copysign(large, result), result)


def nearest_single(fmt: Format, x: NDArray[np.float32]) -> NDArray[np.float32] | None:
    """``nearest`` of numbers of float32, in float32, for narrow formats; None where one overflows or is none."""
    known = limits(fmt)
    if not complete(fmt) or not 1 < fmt.precision <= 11 or known.emin < -126 or not x.size:
        return None
    size = np.abs(x)
    if not size.max() <= known.top:
        return None
    added = x.view(np.uint32) >> np.uint32(24 - fmt.precision)
    added &= np.uint32(1)
    added += np.uint32((1 << (23 - fmt.precision)) - 1)
    added += x.view(np.uint32)
    added &= np.uint32(2**32 - (1 << (24 - fmt.precision)))
    rounded = added.view(np.float32)
    if known.emin > -126 and not size.min() >= known.tiny:
        # below the normal numbers, to multiples of the smallest one
        shift = np.float32(1.5 * 2.0**23 * known.step)
        rounded = np.where(size < known.tiny, (x + shift) - shift, rounded)
    return rounded


def above(fmt: Format, x: F64) -> F64:
    """The least number of the format that is not below x: an end that is a number of the format where values are."""
    if fmt == FLOAT64 or not in_float64(fmt) or not complete(fmt):
        return x
    x = np.asarray(x)
    if regular(fmt, x):
        negative = np.asarray(x.view(np.int64) >> np.int64(63))
        np.invert(negative, out=negative)
        negative &= np.int64((1 << (53 - fmt.precision)) - 1)
        return _cut(fmt, x, negative)
    result = _scaled(fmt, x, np.ceil)
    return np.where(result > limits(fmt).top, np.inf, result)


def below(fmt: Format, x: F64) -> F64:
    """The greatest number of the format that is not above x."""
    if fmt == FLOAT64 or not in_float64(fmt) or not complete(fmt):
        return x
    return -above(fmt, -x)


def also_rounded(fmt: Format, a: Interval) -> Interval:
    """The numbers of an interval, and what they are when they are rounded to float32, to the format, or to both."""
    lo, hi = a
    for stored in (FLOAT32, fmt):
        lo, hi = np.fmin(lo, nearest(stored, lo)), np.fmax(hi, nearest(stored, hi))
    return Interval(lo, hi)


def exact_in(fmt: Format) -> bool:
    """Whether float64 holds sums and products of two numbers of the format without an error that matters."""
    return fmt.precision <= 24


# ---- operations: the exact results of all operands, rounded outward -------------------------------------------------


def closed(lo: F64, hi: F64, *operands: Interval) -> Interval:
    """Ends that came out as NaN, as of inf - inf, made infinite, except where an operand is no number at all."""
    bad_lo, bad_hi = np.isnan(lo), np.isnan(hi)
    if not (bad_lo.any() or bad_hi.any()):
        return Interval(lo, hi)
    empty = np.zeros(lo.shape, np.bool_)
    for operand in operands:
        empty = empty | np.isnan(operand.lo)
    return Interval(
        np.where(empty, np.nan, np.where(bad_lo, -np.inf, lo)), np.where(empty, np.nan, np.where(bad_hi, np.inf, hi))
    )


def add(a: Interval, b: Interval) -> tuple[Interval, Mask]:
    """Ends rounded to nearest: the caller widens them where that matters."""
    lo, hi = a.lo + b.lo, a.hi + b.hi
    if all_finite(lo, hi):
        return Interval(lo, hi), nowhere(lo)
    nan = ((a.hi == np.inf) & (b.lo == -np.inf)) | ((a.lo == -np.inf) & (b.hi == np.inf))
    return closed(lo, hi, a, b), nan


def negative(a: Interval) -> Interval:
    return Interval(-a.hi, -a.lo)


def has_zero(a: Interval) -> Mask:
    return np.asarray((a.lo <= 0) & (a.hi >= 0))


def apart_from_zero(a: Interval) -> bool:
    """Whether all intervals are above zero, or all are below, and finite."""
    if not a.lo.size:
        return True
    return bool((a.lo.min() > 0 and a.hi.max() < np.inf) or (a.hi.max() < 0 and a.lo.min() > -np.inf))


def has_infinity(a: Interval) -> Mask:
    return np.isinf(a.lo) | np.isinf(a.hi)


def _positive(a: Interval) -> bool:
    return bool(a.lo.size and a.lo.min() >= 0)


def corners(apply: Callable[[F64, F64], F64], a: Interval, b: Interval) -> Interval:
    """The least and greatest of what the ends give, by a function that is monotone in each operand; NaN where one of
    them is."""
    if b.lo is b.hi:
        first = apply(a.lo, b.lo)
        if a.lo is a.hi:
            return Interval(first, first)
        last = apply(a.hi, b.lo)
        return Interval(np.minimum(first, last), np.maximum(first, last))
    if a.lo is a.hi:
        first, last = apply(a.lo, b.lo), apply(a.lo, b.hi)
        return Interval(np.minimum(first, last), np.maximum(first, last))
    if _positive(b):  # both functions grow with the first operand then
        lo = np.minimum(apply(a.lo, b.lo), apply(a.lo, b.hi))
        return Interval(lo, np.maximum(apply(a.hi, b.lo), apply(a.hi, b.hi)))
    first, last = apply(a.lo, b.lo), apply(a.lo, b.hi)
    lo, hi = np.minimum(first, last), np.maximum(first, last)
    first, last = apply(a.hi, b.lo), apply(a.hi, b.hi)
    return Interval(np.minimum(lo, np.minimum(first, last)), np.maximum(hi, np.maximum(first, last)))


def multiply(a: Interval, b: Interval) -> tuple[Interval, Mask]:
    quick = corners(np.multiply, a, b)
    if all_finite(*quick):
        return quick, nowhere(quick.lo)
    corner = [a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi]
    nan = (has_zero(a) & has_infinity(b)) | (has_zero(b) & has_infinity(a))
    if nan.any():
        empty = np.isnan(a.lo) | np.isnan(b.lo)
        corner = [np.where(np.isnan(each) & ~empty, 0.0, each) for each in corner]
    lo = np.minimum(np.minimum(corner[0], corner[1]), np.minimum(corner[2], corner[3]))
    hi = np.maximum(np.maximum(corner[0], corner[1]), np.maximum(corner[2], corner[3]))
    return Interval(lo, hi), nan


def square(a: Interval) -> Interval:
    if a.lo is a.hi:
        single = a.lo * a.lo
        return Interval(single, single)
    lo, hi = a.lo * a.lo, a.hi * a.hi
    return Interval(np.where(has_zero(a), 0.0, np.minimum(lo, hi)), np.maximum(lo, hi))


def divide(a: Interval, b: Interval) -> tuple[Interval, Mask, Mask]:
    """The quotients; where a NaN is possible; where the divisor may be zero, so that nothing is known."""
    zero = has_zero(b)
    if not zero.any():
        quick = corners(np.divide, a, b)
        if all_finite(*quick, b.lo, b.hi):
            return quick, nowhere(quick.lo), nowhere(quick.lo)
    safe = Interval(np.where(zero, 1.0, b.lo), np.where(zero, 1.0, b.hi))
    corner = [a.lo / safe.lo, a.lo / safe.hi, a.hi / safe.lo, a.hi / safe.hi]
    nan = (has_infinity(a) & has_infinity(b)) | (zero & has_zero(a))
    empty = np.isnan(a.lo) | np.isnan(b.lo)
    corner = [np.where(np.isnan(each) & ~empty, 0.0, each) for each in corner]
    lo = np.minimum(np.minimum(corner[0], corner[1]), np.minimum(corner[2], corner[3]))
    hi = np.maximum(np.maximum(corner[0], corner[1]), np.maximum(corner[2], corner[3]))
    # of inf / inf, what finite dividends and divisors near the ends give lies between 0 and infinity
    wide = has_infinity(a) & has_infinity(b)
    lo = np.where((zero | wide) & ~empty, -np.inf, lo)
    hi = np.where((zero | wide) & ~empty, np.inf, hi)
    return Interval(lo, hi), nan, np.asarray(zero & ~empty)


TINY = 2.0**-900
"""Magnitudes from which products and their error terms do not underflow."""


def widened(a: Interval, relative: float = _WIDE) -> Interval:
    """Ends moved outward by a relative error and by the smallest number, but those that are zero or infinite stay."""
    sizes = [np.abs(a.lo)]
    sizes.append(sizes[0] if a.hi is a.lo else np.abs(a.hi))
    if all(scales(size) for size in sizes):
        error = relative * (1 + 2.0**-40) + 2.0**-52
        return Interval(a.lo - sizes[0] * error, a.hi + sizes[1] * error)
    fixed_lo, fixed_hi = (a.lo == 0) | np.isinf(a.lo), (a.hi == 0) | np.isinf(a.hi)
    lo = np.where(fixed_lo, a.lo, down(a.lo - sizes[0] * relative))
    hi = np.where(fixed_hi, a.hi, up(a.hi + sizes[1] * relative))
    return Interval(lo, hi)


def scales(size: F64, least: float = TINY) -> bool:
    """Whether magnitudes are zero or such, from ``least`` on, that a relative error of them does not underflow."""
    if not size.size:
        return True
    if not size.max() < 2.0**1000:
        return False
    return bool(size.min() >= least) or not ((size < least) & (size > 0)).any()


def hull(a: Interval, b: Interval) -> Interval:
    """The smallest interval around both; an empty one adds nothing."""
    return Interval(np.fmin(a.lo, b.lo), np.fmax(a.hi, b.hi))
