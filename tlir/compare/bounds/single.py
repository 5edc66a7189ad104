"""Arithmetic of narrow formats whose results may be kept in float32, on ends that are numbers of float32.

An execution gives the exact result x of an operation rounded to float32, to the narrow format, to one after the other,
or (a product that is fused) not at all. For s, an end of the exact results rounded to float32, each of these lies on
one side of s' and of s' rounded to the format, where s' is s moved outward by a unit of float32: x is half a unit away
from s at most, and rounding is monotone. As x is not s' itself, it does not matter how s' is rounded where it is in the
middle of two numbers of the format.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tlir.compare.bounds import intervals as iv
from tlir.compare.bounds.enclosure import UNSURE, Enclosure, Narrow, least_of, with_flag
from tlir.compare.bounds.step import Step
from tlir.floatlib.format import Format

F32 = NDArray[np.float32]
Ends = tuple[F32, F32]

LEAST = 2.0**-100
"""Results of a smaller magnitude, but zero, are left to the general way: errors relative to them may underflow."""

MOST = 2.0**100

MANY = 4096
"""Elements from which it is quicker not to ask which of them are sure."""


def splits(fmt: Format) -> bool:
    """Whether numbers of the format are found by splitting those of float32."""
    return fmt.precision <= 11 and fmt.infinities and fmt.subnormals and fmt.signed and fmt.emin >= -126


def outward(fmt: Format, s: F32, size: F32, lower: bool, least: float) -> F32:
    """The end s, moved, and that rounded to the format: whichever is further out. ``size`` are the magnitudes of s, and
    ``least`` is not above the smallest; these are at most ``MOST``, and zero or at least ``LEAST``."""
    choose = np.minimum if lower else np.maximum
    moved: F32 = size * np.float32(-(2.0**-23) if lower else 2.0**-23)
    moved += s
    # Veltkamp's splitting (S. Boldo, Pitfalls of a full floating-point proof, IJCAR 2006)
    rounded: F32 = moved * np.float32(2.0 ** (24 - fmt.precision) + 1)
    rest = rounded - moved
    rounded -= rest
    known = iv.limits(fmt)
    if least < 2 * known.tiny and known.tiny > LEAST:
        # multiples of the smallest distance
        np.add(moved, np.float32(1.5 * 2.0**23 * known.step), out=rest)
        rest -= np.float32(1.5 * 2.0**23 * known.step)
        choose(rounded, rest, out=rounded)
    return np.asarray(choose(rounded, moved, out=rounded))


def finished(step: Step, fmt: Format, low: F32, high: F32) -> Enclosure | None:
    """The enclosure for ends of the exact results rounded to float32; None where one is too large or too small."""
    ends: list[F32] = []
    least, most = np.inf, min(MOST, iv.limits(fmt).top * 0.99)
    for end in (low, high):
        size = np.abs(end)
        if not size.max() < most:
            return None
        smallest = least_of(size)
        if smallest < LEAST:
            return None
        ends.append(outward(fmt, end, size, not ends, float(size.min())))
        least = min(least, smallest)
    made = Narrow(step.result, ends[0], ends[1], with_flag(step.tags(), UNSURE))
    known = iv.limits(fmt)
    # moving changes them by a unit; what is below the format's normal numbers is rounded to multiples of its smallest
    made.__dict__["least"] = least / 2 if known.tiny <= LEAST else min(least / 2, known.step)
    made.__dict__["clear"] = least >= 2 * known.tiny
    return made


def _ready(step: Step, fmt: Format) -> list[Ends] | None:
    """The ends of the operands, if this way is one for them."""
    if step.folded is not None or not step.freedoms.keeps_excess(fmt) or not splits(fmt):
        return None
    if step.result.type.size < MANY and not (step.nowhere_sure and step.result.type.size):
        return None
    if step.freedoms.flushed_below(fmt) > LEAST:
        return None
    found = [operand.single for operand in step.operands]
    ready = [ends for ends in found if ends is not None]
    if len(ready) < len(found) or any(operand.least < LEAST for operand in step.operands):
        return None
    return ready


def added(step: Step, fmt: Format, less: bool) -> Enclosure | None:
    """A sum or difference; None where the general way has to find it."""
    operands = _ready(step, fmt)
    if operands is None:
        return None
    a, b = operands
    return finished(step, fmt, a[0] - b[1], a[1] - b[0]) if less else finished(step, fmt, a[0] + b[0], a[1] + b[1])


def multiplied(step: Step, fmt: Format, same: bool) -> Enclosure | None:
    """A product, or a square of the one operand or the ``same`` two."""
    operands = _ready(step, fmt)
    if operands is None or step.operands[0].least * step.operands[-1].least < LEAST:
        return None
    if same:
        return finished(step, fmt, *iv.square(iv.Interval(*operands[0])))  # type: ignore[arg-type]
    return _cornered(step, fmt, np.multiply, operands)


def divided(step: Step, fmt: Format) -> Enclosure | None:
    """A quotient of a divisor that is not zero."""
    operands = _ready(step, fmt)
    if operands is None:
        return None
    low, high = (float(x) for x in (operands[1][0].min(), operands[1][1].max()))
    if not (0 < low <= high < MOST or -MOST < low <= high < 0):
        return None
    if step.operands[0].least / max(abs(low), abs(high)) < LEAST:
        return None
    return _cornered(step, fmt, np.divide, operands)


def _cornered(step: Step, fmt: Format, apply: Callable[..., F32], operands: list[Ends]) -> Enclosure | None:
    a, b = (iv.Interval(*ends) for ends in operands)  # type: ignore[arg-type]
    return finished(step, fmt, *iv.corners(apply, a, b))  # type: ignore[arg-type]
