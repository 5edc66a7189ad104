"""Bounds of the discrete Fourier transform: of any fast algorithm, relative to the norm of a line."""

from __future__ import annotations

from collections.abc import Callable
from math import prod, sqrt

import numpy as np

from tlir.compare.bounds import intervals as iv
from tlir.compare.bounds.enclosure import Enclosure, certain
from tlir.compare.bounds.intervals import Interval
from tlir.compare.bounds.step import Step

Rule = Callable[[Step], Enclosure]

_PER_STAGE = 16.0
"""Units per stage of a transform by which its result may be wrong, relative to its norm: a generous constant for
mixed-radix and chirp algorithms (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 24.1)."""


def _fft(step: Step) -> Enclosure:
    operand = step.operands[0]
    lengths, kind = step.attr("fft_length"), step.attr("fft_type")
    known = certain(step.result)
    values = operand.values
    shape = operand.tensor.shape
    axes = tuple(range(len(shape) - len(lengths), len(shape)))
    size = np.maximum(np.abs(values.lo), np.abs(values.hi))
    radius = operand.radius
    if operand.dtype.is_complex:
        size, radius = np.hypot(size[..., 0], size[..., 1]), np.hypot(radius[..., 0], radius[..., 1])
    count = prod(lengths)
    norm = np.sqrt(np.sum(size * size, axis=axes, keepdims=True)) * sqrt(2 if kind == "IRFFT" else 1)
    # all outputs together have a norm of sqrt(n) times that; an error of one of them is at most that of all
    unit = iv.limits(step.dtype.float_format).unit
    error = _PER_STAGE * (1 + np.log2(max(count, 2))) * unit * norm * sqrt(count)
    moved = np.sum(radius, axis=axes, keepdims=True) * (2 if kind == "IRFFT" else 1)
    total = (error + moved) * (1 + 1e-9)
    if kind in ("IFFT", "IRFFT"):
        total = total / count
    if step.result.dtype.is_complex:
        total = total[..., np.newaxis]
    total = np.broadcast_to(total, known.lo.shape)
    bad = ~np.isfinite(total) | ~np.isfinite(known.lo)
    lo, hi = np.where(bad, -np.inf, known.lo - total), np.where(bad, np.inf, known.hi + total)
    tag = np.where(bad, np.uint32(1), np.uint32(0))
    number = int(operand.reasons.max(initial=0))
    tag = tag | np.uint32(number << 2)
    sure = total == 0 if not step.freedoms.any else None
    if not step.freedoms.any and operand.all_sure:
        return step.sure()
    return step.enclosed(Interval(lo, hi), np.asarray(tag, np.uint32), sure)


RULES: dict[str, Rule] = {"fft": _fft}
