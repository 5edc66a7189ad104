"""What every permitted execution may give at each element of a value, beside what the reference gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlir.backends.reference import integers
from tlir.compare.bounds.intervals import F64, Interval, Mask, in_float64, limits, nearest, nearest_single, up
from tlir.errors import Source
from tlir.floatlib import words as layout
from tlir.floatlib.arrays import convert
from tlir.floatlib.format import FORMATS, Format
from tlir.ir.tensor import Tensor
from tlir.ir.types import DType

Tags = NDArray[np.uint32]
FLOAT64 = FORMATS["float64"]

NAN = np.uint32(1)
UNSURE = np.uint32(2)
SHIFT = np.uint32(2)
"""Above the two flags, a tag has the number of a reason."""


@dataclass(frozen=True)
class Reason:
    """Why elements are not decided: ``kind`` is "branch" (a decision that permitted executions make differently) or
    "unbounded" (nothing is known of how far they differ)."""

    kind: str
    text: str
    node: str
    source: Source | None = None

    def __str__(self) -> str:
        return f"{self.text} (node {self.node})"


@dataclass
class Reasons:
    """The reasons met during a propagation, by number from 1."""

    entries: list[Reason] = field(default_factory=list)
    _known: dict[tuple[str, str, str], int] = field(default_factory=dict)

    def number(self, reason: Reason) -> int:
        key = (reason.kind, reason.text, reason.node)
        if key not in self._known:
            self.entries.append(reason)
            self._known[key] = len(self.entries)
        return self._known[key]

    def __getitem__(self, number: int) -> Reason:
        return self.entries[number - 1]


@dataclass(frozen=True, eq=False)
class Enclosure:
    """``lo`` and ``hi`` are float64 arrays of the tensor's shape (with a last axis of two for complex numbers): every
    permitted execution's value lies between them, ends included; both are NaN where it cannot be a number. The flag
    ``NAN`` of ``tag`` says that it may be a NaN. Without ``UNSURE`` it is the reference's word in every execution (any
    NaN for a NaN); the ends of wide integers and formats are then rounded outward.

    Before it is stored in its own format a value may be kept in a wider one, so ends need not be numbers of it:
    ``stored`` rounds them.
    """

    tensor: Tensor
    lo: F64
    hi: F64
    tag: Tags

    @property
    def dtype(self) -> DType:
        return self.tensor.dtype

    @property
    def interval(self) -> Interval:
        return Interval(self.lo, self.hi)

    @cached_property
    def all_sure(self) -> bool:
        """Every element is the reference's word in every permitted execution."""
        if is_uniform(self.tag):
            return not self.tag.size or not first_of(self.tag) & UNSURE
        return not (self.tag & UNSURE).any()

    @property
    def single(self) -> tuple[NDArray[np.float32], NDArray[np.float32]] | None:
        """The ends in float32, where they are held in it or the words are those of a narrower format."""
        return None

    @cached_property
    def least(self) -> float:
        """A positive number that no end but zeros is below in magnitude."""
        ends = self.interval if self.single is None else self.single
        return min(least_of(np.abs(end)) for end in ends[: 1 if ends[0] is ends[1] else 2])

    @cached_property
    def clear(self) -> bool:
        """Whether no end is a subnormal number of the dtype's format, so that nothing changes where those are
        flushed."""
        return clear(limits(self.dtype.float_format).tiny, self.interval)

    @property
    def unsure(self) -> Mask:
        return (self.tag & UNSURE) != 0

    @property
    def nan(self) -> Mask:
        return (self.tag & NAN) != 0

    @property
    def reasons(self) -> Tags:
        """The number of the reason why an element is not decided, 0 where there is none."""
        return self.tag >> SHIFT

    @property
    def values(self) -> Interval:
        """The reference's own values, equal ends where float64 has them."""
        return values_of(self.tensor)

    @cached_property
    def radius(self) -> F64:
        """The largest distance of a permitted value from the reference's, rounded up; 0 where it is sure, infinite
        where a NaN or infinity is possible that the reference does not give."""
        values = self.values
        with np.errstate(all="ignore"):
            distance = np.maximum(self.hi - values.lo, values.hi - self.lo)
            # a difference is 0 only where there is none
            distance = np.where(distance == 0, 0.0, up(distance))
        if is_uniform(self.tag) and first_of(self.tag) & UNSURE and np.isfinite(distance).all():
            return distance if not first_of(self.tag) & NAN else np.full(distance.shape, np.inf)
        own_nan = np.isnan(values.lo)
        distance = np.where((self.lo == self.hi) & (values.lo == self.lo), 0.0, distance)
        distance = np.where(own_nan | np.isnan(distance), np.where(own_nan & np.isnan(self.lo), 0.0, np.inf), distance)
        distance = np.where(self.nan & ~own_nan, np.inf, distance)
        return np.where(self.unsure, distance, 0.0)

    def farthest(self, step: int) -> tuple[float, int, F64]:
        """The largest radius, how many are infinite, and every ``step``-th one."""
        if is_uniform(self.tag) and first_of(self.tag) & (UNSURE | NAN) == UNSURE and self.tag.size:
            values = self.values
            with np.errstate(all="ignore"):
                distance = np.maximum(self.hi - values.lo, values.hi - self.lo)
            most = distance.max()
            if most < np.inf:
                ends: F64 = np.append(distance.reshape(-1)[::step], most)
                ends = np.where(ends == 0, 0.0, up(ends))
                return float(ends[-1]), 0, ends[:-1]
        radius = self.radius.reshape(-1)
        return float(radius.max(initial=0.0)), int(np.count_nonzero(np.isinf(radius))), radius[::step]

    @cached_property
    def in_format(self) -> bool:
        """Whether the ends are known to be numbers of the format."""
        return False

    def stored(self) -> Enclosure:
        """The enclosure of the values as words of their own format."""
        if self.dtype.format is None or self.all_sure or self.in_format:
            return self
        if self.single is not None and is_uniform(self.tag):
            low, high = (nearest_single(self.dtype.float_format, end) for end in self.single)
            if low is not None and high is not None:
                return in_format(Packed(self.tensor, low, high, self.tag))
        lo, hi, nan = stored(self.dtype.float_format, self.interval)
        if is_uniform(self.tag) and not nan.any():
            return Enclosure(self.tensor, lo, hi, self.tag)
        tag = np.where(nan & self.unsure, self.tag | NAN, self.tag)
        return Enclosure(self.tensor, np.where(self.unsure, lo, self.lo), np.where(self.unsure, hi, self.hi), tag)

    def contains(self, other: Tensor) -> Mask:
        """Which elements (parts, of complex numbers) of a tensor of the same type a permitted execution may give."""
        kept = self.stored()
        ours, single = kept.single, Certain(other).single
        if ours is not None and single is not None and is_uniform(kept.tag) and not kept.all_sure:
            words = single[0]
            if not np.isnan(words.min(initial=0.0)):
                return np.asarray((words >= ours[0]) & (words <= ours[1]))
        theirs = values_of(other)
        nan = np.isnan(theirs.lo)
        with np.errstate(all="ignore"):
            inside = (theirs.hi >= kept.lo) & (theirs.lo <= kept.hi)
        if is_uniform(kept.tag) and not nan.any() and not kept.all_sure:
            return np.asarray(inside)
        inside = np.where(nan, kept.nan, inside)
        return np.where(kept.unsure, inside, same_value(self.tensor, other))


class Certain(Enclosure):
    """The enclosure of a value that every execution has; its ends are made when they are first asked for."""

    def __init__(self, tensor: Tensor) -> None:
        object.__setattr__(self, "tensor", tensor)

    @cached_property
    def values(self) -> Interval:
        with np.errstate(all="ignore"):
            return values_of(self.tensor)

    @cached_property
    def lo(self) -> F64:
        return self.values.lo

    @cached_property
    def hi(self) -> F64:
        return self.values.hi

    @cached_property
    def tag(self) -> Tags:
        values = self.values.lo
        nan = np.isnan(values)
        return np.where(nan, NAN, np.uint32(0)) if nan.any() else uniform(0, values.shape)

    @cached_property
    def all_sure(self) -> bool:
        return True

    @cached_property
    def single(self) -> tuple[NDArray[np.float32], NDArray[np.float32]] | None:
        name = self.dtype.name
        if name not in ("float16", "bfloat16", "float32"):
            return None
        if name == "bfloat16":
            wide = self.tensor.words.astype(np.uint32)
            wide <<= np.uint32(16)
            values = wide.view(np.float32)
        else:
            values = self.tensor.words.view(name).astype(np.float32, copy=False)
        return values, values

    @cached_property
    def least(self) -> float:
        return limits(self.dtype.float_format).step if self.dtype.name == "float16" else super().least


class Packed(Enclosure):
    """An enclosure whose ends are numbers of float32, held as these until they are asked for."""

    def __init__(self, tensor: Tensor, low: NDArray[np.float32], high: NDArray[np.float32], tag: Tags) -> None:
        for name, value in (("tensor", tensor), ("low", low), ("high", high), ("tag", tag)):
            object.__setattr__(self, name, value)

    low: NDArray[np.float32]
    high: NDArray[np.float32]

    @cached_property
    def lo(self) -> F64:
        return self.low.astype(np.float64)

    @cached_property
    def hi(self) -> F64:
        return self.lo if self.high is self.low else self.high.astype(np.float64)

    @property
    def single(self) -> tuple[NDArray[np.float32], NDArray[np.float32]] | None:
        return self.low, self.high


class Kept(Enclosure):
    """An enclosure that holds its values rounded to float32 and to their own format too."""


class Narrow(Packed, Kept):
    """One of a narrow format, with ends in float32."""


def in_format(enclosure: Enclosure) -> Enclosure:
    """The same, known to have numbers of its format as ends."""
    enclosure.__dict__["in_format"] = True
    return enclosure


def least_of(size: NDArray[Any]) -> float:
    """The smallest of the magnitudes that is not zero; infinity where there is none."""
    least = float(size.min(initial=np.inf))
    return least if least != 0 else float(size.min(initial=np.inf, where=size > 0))


def clear(tiny: float, a: Interval) -> bool:
    """Whether no end but zeros is below ``tiny`` in magnitude."""
    if not tiny:
        return True
    for end in (a.lo,) if a.hi is a.lo else a:
        if end.size:
            size = np.abs(end)
            if not size.min() >= tiny and ((size < tiny) & (size > 0)).any():
                return False
    return True


def stored(fmt: Format, a: Interval) -> tuple[F64, F64, Mask]:
    """Ends rounded to a format, and where a value beyond a format without infinities becomes a NaN."""
    with np.errstate(all="ignore"):
        lo, hi = nearest(fmt, a.lo), nearest(fmt, a.hi)
    nan = everywhere(False, lo.shape)
    if not fmt.infinities:
        beyond = np.isinf(lo) | np.isinf(hi)
        if beyond.any():
            top = limits(fmt).top
            lo = np.where(beyond, np.fmax(np.fmin(lo, top), -top), lo)
            hi = np.where(beyond, np.fmax(np.fmin(hi, top), -top), hi)
            nan = beyond if fmt.has_nan else nan
    return lo, hi, nan


def same_value(a: Tensor, b: Tensor) -> Mask:
    """Which parts have equal words, or are both NaN, or both zero."""
    dtype = a.dtype
    if dtype.format is None:
        return np.asarray(a.words == b.words)
    fmt = dtype.float_format
    same = np.asarray(layout.equal(fmt, a.words, b.words))
    if same.all():
        return same
    both_nan = layout.is_nan(fmt, a.words) & layout.is_nan(fmt, b.words)
    both_zero = layout.is_zero(fmt, a.words) & layout.is_zero(fmt, b.words)
    return np.asarray(same | both_nan | both_zero)


def values_of(tensor: Tensor) -> Interval:
    """The numbers that the words stand for, rounded outward where float64 does not have them; NaN for NaN."""
    dtype = tensor.dtype
    if dtype.is_bool:
        values = tensor.words.astype(np.float64)
        return Interval(values, values)
    if dtype.is_integer:
        whole = integers.to_values(dtype, tensor.words)
        values = whole.astype(np.float64)
        if dtype.bits <= 53:
            return Interval(values, values)
        rounded = np.abs(values) >= 2.0**53
        return Interval(
            np.where(rounded, np.nextafter(values, -np.inf), values),
            np.where(rounded, np.nextafter(values, np.inf), values),
        )
    fmt = dtype.float_format
    if fmt == FLOAT64:
        values = tensor.words.view(np.float64)
    elif dtype.component.name == "float32":
        values = tensor.words.view(np.float32).astype(np.float64)
    elif dtype.component.name == "bfloat16":
        wide = tensor.words.astype(np.uint32)
        wide <<= np.uint32(16)
        values = wide.view(np.float32).astype(np.float64)
    elif dtype.component.name == "float16":
        values = tensor.words.view(np.float16).astype(np.float64)
    else:
        words = convert(fmt, FLOAT64, np.asarray(tensor.words, order="C"))
        values = np.asarray(words).view(np.float64)
    if in_float64(fmt):
        return Interval(values, values)
    return _outward(fmt, tensor, values)


def _outward(fmt: Format, tensor: Tensor, values: F64) -> Interval:
    """Ends around numbers that float64 may not have. A word converted back tells whether it was exact."""
    back = convert(FLOAT64, fmt, np.asarray(values, order="C").view(np.uint64))
    exact = layout.equal(fmt, np.asarray(back), tensor.words) | np.isnan(values)
    return Interval(
        np.where(exact, values, np.nextafter(values, -np.inf)), np.where(exact, values, np.nextafter(values, np.inf))
    )


def certain(tensor: Tensor) -> Enclosure:
    """The enclosure of a value that every execution has."""
    return Certain(tensor)


def is_uniform(tag: Tags) -> bool:
    """Whether the array is one tag repeated without memory of its own."""
    return not any(tag.strides)


@lru_cache(maxsize=1024)
def uniform(tag: int, shape: tuple[int, ...]) -> Tags:
    """One tag repeated."""
    return np.ndarray(shape, np.uint32, np.uint32(tag).tobytes(), strides=(0,) * len(shape))


@lru_cache(maxsize=1024)
def everywhere(value: bool, shape: tuple[int, ...]) -> Mask:
    """A mask that is the same everywhere."""
    return np.ndarray(shape, np.bool_, np.bool_(value).tobytes(), strides=(0,) * len(shape))


def first_of(tag: Tags) -> np.uint32:
    """The tag of a uniform array."""
    return np.uint32(tag.flat[0]) if tag.size else np.uint32(0)


def evenly_tagged(enclosure: Enclosure) -> Enclosure:
    """The same, with tags that are all equal as one that is repeated, by which rules know it at once."""
    tag = enclosure.tag
    if is_uniform(tag) or not tag.size or not (tag == tag.flat[0]).all():
        return enclosure
    return Enclosure(enclosure.tensor, enclosure.lo, enclosure.hi, uniform(int(tag.flat[0]), tag.shape))


def with_flag(tag: Tags, flag: np.uint32) -> Tags:
    """The tags with a flag set everywhere."""
    if is_uniform(tag):
        return uniform(int(first_of(tag) | flag), tag.shape)
    return np.asarray(tag | flag, np.uint32)


def merged_tags(tags: Sequence[Tags]) -> Tags:
    """Flags of any operand, and the first reason that there is."""
    result = tags[0]
    for tag in tags[1:]:
        if tag is result:
            continue
        if is_uniform(tag) and is_uniform(result) and tag.shape == result.shape:
            one, two = int(first_of(result)), int(first_of(tag))
            result = uniform(((one if one > 3 else two) & ~3) | ((one | two) & 3), tag.shape)
            continue
        flags = (result | tag) & (NAN | UNSURE)
        if (result > 3).any() or (tag > 3).any():
            first = np.where(result > 3, result, tag)
            result = (first & ~(NAN | UNSURE)) | flags
        else:
            result = flags
    return np.asarray(result, np.uint32)
