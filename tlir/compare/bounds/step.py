"""What a rule sees of a node, and how it states what permitted executions give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tlir.compare.bounds.enclosure import (
    NAN,
    SHIFT,
    UNSURE,
    Certain,
    Enclosure,
    Kept,
    Reason,
    Reasons,
    Tags,
    certain,
    clear,
    everywhere,
    first_of,
    is_uniform,
    merged_tags,
    with_flag,
)
from tlir.compare.bounds.intervals import F64, Interval, Mask, hull, limits, missing, nearest
from tlir.compare.bounds.policy import Freedoms
from tlir.floatlib.format import Format
from tlir.ir.graph import Body, Node
from tlir.ir.ops import OPERATIONS
from tlir.ir.tensor import Tensor
from tlir.ir.types import DType


@dataclass
class Step:
    """A node with the enclosures of its operands and the reference's own results.

    ``fused`` says that a product may go into an addition without being rounded. ``run`` propagates through a region:
    (body, enclosures of its inputs) to those of its outputs.
    """

    node: Node
    operands: tuple[Enclosure, ...]
    results: tuple[Tensor, ...]
    freedoms: Freedoms
    reasons: Reasons
    place: str
    fused: bool
    softened: bool
    """Whether an operation takes the result of this conversion in its format."""
    constant: tuple[bool, ...]
    """Which operands are constants, or one value repeated, as far as a compiler sees."""
    run: Callable[[Body, list[Enclosure]], list[Enclosure]]
    folded: float | None = None
    """Where a compiler may combine the constant operand with that of the operation before: a bound of the latter."""
    settled: bool = False
    """Whether the rule has taken into account that values may be kept in float32."""

    def attr(self, name: str) -> Any:
        return OPERATIONS[self.node.op].attr(self.node.attrs, name)

    @property
    def dtype(self) -> DType:
        """The dtype of the first operand."""
        return self.operands[0].dtype

    @property
    def result(self) -> Tensor:
        return self.results[0]

    def reason(self, kind: str, text: str) -> int:
        """The number of a reason at this node."""
        return self.reasons.number(Reason(kind, text, f"{self.place} {self.node.op}", self.node.source))

    # ---- statements -------------------------------------------------------------------------------------------------

    def sure(self) -> Enclosure:
        """The reference's result, in every execution."""
        return certain(self.result)

    def unknown(self, text: str, k: int = 0) -> Enclosure:
        """Sure where all operands are, element by element being meaningless: nothing is known of the whole result
        unless every operand is sure everywhere."""
        if all(operand.all_sure for operand in self.operands):
            return certain(self.results[k])
        return self.anything(text, k)

    def anything(self, text: str, k: int = 0, where: Mask | None = None) -> Enclosure:
        """Nothing is known of result k (where the mask is set; sure elsewhere)."""
        known = certain(self.results[k])
        tag = np.uint32(self.reason("unbounded", text) << int(SHIFT)) | UNSURE
        low, high = full_range(self.results[k].dtype)
        if self.results[k].dtype.format is not None:
            tag |= NAN
        mask = np.ones(known.lo.shape, np.bool_) if where is None else where
        return Enclosure(
            known.tensor,
            np.where(mask, low, known.lo),
            np.where(mask, high, known.hi),
            np.where(mask, np.uint32(tag), known.tag),
        )

    def enclosed(self, interval: Interval, tag: Tags, sure: Mask | None = None, k: int = 0) -> Enclosure:
        """Values in the interval; the reference's own where ``sure`` is set. Elsewhere tags get UNSURE."""
        fmt = self.results[k].dtype.format
        if sure is not None and fmt is not None and not fmt.has_nan and self.freedoms.any:
            sure = sure & ((tag & NAN) == 0)  # a NaN in a wider format, or between the operations that are fused
        some = sure is not None and bool(sure.any())
        if some and sure is not None and sure.all():
            return certain(self.results[k])
        tag = with_flag(tag, UNSURE)
        lo, hi = interval
        if some and sure is not None:
            known = certain(self.results[k])
            lo, hi = np.where(sure, known.lo, lo), np.where(sure, known.hi, hi)
            tag = np.where(sure, known.tag, tag)
        made = Kept if self.settled else Enclosure
        return made(self.results[k], np.asarray(lo), np.asarray(hi), np.asarray(tag, np.uint32))

    def tags(self, nan: Mask | None = None) -> Tags:
        """The flags and reasons of the operands together, and NaN where the mask says."""
        tag = merged_tags([operand.tag for operand in self.operands])
        if nan is not None and nan.any():
            tag = np.where(nan, tag | NAN, tag)
        return tag

    def all_sure(self) -> Mask:
        """Elementwise: where every operand is sure."""
        tag = self.tags()
        if is_uniform(tag):
            return everywhere(not first_of(tag) & UNSURE, tag.shape)
        return np.asarray((tag & UNSURE) == 0)

    # ---- roundings --------------------------------------------------------------------------------------------------

    @property
    def nowhere_sure(self) -> bool:
        """Whether an operand is not sure at any element."""
        return any(is_uniform(operand.tag) and not operand.all_sure for operand in self.operands)

    def rounded(self, fmt: Format, exact: Interval, unrounded: bool = False) -> tuple[Interval, Mask]:
        """The results, in a format, of an operation whose exact result lies in ``exact``, rounded once to nearest; with
        ``unrounded`` (or where results may stay in float32) also the exact result itself. Flushed where that is
        permitted. Also where a NaN stands for an overflow, or for a number that the format does not have."""
        kept = unrounded or self.freedoms.keeps_excess(fmt)
        lo = nearest(fmt, exact.lo)
        hi = lo if exact.hi is exact.lo else nearest(fmt, exact.hi)
        result = Interval(lo, hi)
        if kept:
            result = hull(result, exact)
        return self.flushed(fmt, result), missing(fmt, exact)

    def flushed(self, fmt: Format, a: Interval) -> Interval:
        """The interval, and zero where a value in it is subnormal and may be flushed."""
        tiny = self.freedoms.flushed_below(fmt)
        if clear(tiny, a):
            return a
        return Interval(
            np.where((a.lo > 0) & (a.lo < tiny), 0.0, a.lo), np.where((a.hi < 0) & (a.hi > -tiny), 0.0, a.hi)
        )

    def subnormal(self, fmt: Format, a: Interval) -> Mask:
        """Where a value in the interval may be flushed to zero."""
        tiny = self.freedoms.flushed_below(fmt)
        if not tiny or not a.lo.size:
            return np.broadcast_to(np.False_, a.lo.shape)
        if a.lo is a.hi and clear(tiny, a):
            return np.broadcast_to(np.False_, a.lo.shape)
        return np.asarray((a.lo < tiny) & (a.hi > -tiny) & ((a.lo != 0) | (a.hi != 0)))

    def subnormal_operand(self, k: int) -> Mask:
        """Where an operand may be taken as zero."""
        operand = self.operands[k]
        if not self.may_flush(operand) or (isinstance(operand, Certain) and operand.clear):
            return np.broadcast_to(np.False_, operand.lo.shape)
        return self.subnormal(operand.dtype.float_format, operand.interval)

    def operand(self, k: int) -> Interval:
        """The values of an operand as arithmetic sees them: subnormal ones may be flushed."""
        operand = self.operands[k]
        if not self.may_flush(operand):
            return operand.interval
        tiny = self.freedoms.flushed_below(operand.dtype.float_format)
        clear = operand.clear if tiny == limits(operand.dtype.float_format).tiny else operand.least >= tiny
        if clear:
            return operand.interval
        return self.flushed(operand.dtype.float_format, operand.interval)

    def may_flush(self, operand: Enclosure) -> bool:
        """Whether values as small as the operand's format has them are flushed."""
        if operand.dtype.format is None:
            return False
        least = 0.0 if not isinstance(operand, Certain) else limits(operand.dtype.float_format).least
        return self.freedoms.flushed_below(operand.dtype.float_format) > least

    def untouched(self, fmt: Format, *intervals: Interval) -> Mask:
        """Where all operands are sure and nothing is flushed, in them or in these."""
        if self.nowhere_sure:
            return everywhere(False, self.operands[0].tag.shape)
        sure = self.all_sure()
        if self.freedoms.flush:
            for k, operand in enumerate(self.operands):
                if self.may_flush(operand):
                    sure = sure & ~self.subnormal_operand(k)
            for interval in intervals:
                sure = sure & ~self.subnormal(fmt, interval)
        return np.asarray(sure)


def full_range(dtype: DType) -> tuple[float, float]:
    """The least and greatest value of a dtype, rounded outward."""
    if dtype.is_bool:
        return 0.0, 1.0
    if dtype.is_integer:
        bits = dtype.bits - (1 if dtype.is_signed else 0)
        return (-(2.0**bits) if dtype.is_signed else 0.0), 2.0**bits - (1 if bits <= 53 else 0)
    return -np.inf, np.inf


def decided(lo: F64, hi: F64) -> Mask:
    """Where both ends are the same."""
    return np.asarray(lo == hi)
