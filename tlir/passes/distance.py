"""How far two tensors of the same type are apart: the words that differ, and the largest distance in ulps.

The distance of two numbers in ulps (units in the last place) is the number of steps from one to the other among the
numbers of their format; both zeros are one number. NaN has no distance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlir.floatlib.format import Format
from tlir.floatlib.ordering import ordinal
from tlir.ir.tensor import Tensor

CHUNK = 1 << 20
"""Words compared together, so that tensors of any size need little memory."""


@dataclass(frozen=True)
class Distance:
    """``differing`` of ``total`` words differ, the first at ``first`` in row-major order; ``ulps`` is the largest
    distance of two differing words that are numbers of a floating-point format, None where there are none; ``nans``
    counts differing words of which one is a NaN."""

    differing: int
    total: int
    first: int | None = None
    ulps: int | None = None
    nans: int = 0

    def __str__(self) -> str:
        text = f"{self.differing} of {self.total} word{'' if self.total == 1 else 's'} differ"
        text += f", the first at {self.first}" if self.total > 1 else ""
        text += f", at most {self.ulps} ulp apart" if self.ulps is not None else ""
        return text + (f", {self.nans} with NaN" if self.nans else "")

    def to_json(self) -> dict[str, int]:
        parts = {"differing": self.differing, "total": self.total, "first": self.first, "ulps": self.ulps}
        parts["nans"] = self.nans or None
        return {key: value for key, value in parts.items() if value is not None}


def distance(a: Tensor, b: Tensor) -> Distance | None:
    """The distance of two tensors of one type; None where all words are equal. ValueError for different types."""
    if a.type != b.type:
        raise ValueError(f"{a.type} and {b.type} have no distance")
    limbs = a.dtype.limbs
    left, right = (tensor.words.reshape(-1, limbs) for tensor in (a, b))
    total, differing, nans = len(left), 0, 0
    first: int | None = None
    ulps: int | None = None
    for start in range(0, total, CHUNK):
        one, other = left[start : start + CHUNK], right[start : start + CHUNK]
        places = np.flatnonzero((one != other).any(axis=1))
        if not len(places):
            continue
        differing += len(places)
        first = start + int(places[0]) if first is None else first
        if a.dtype.format is not None:
            largest, without = _ulps(a.dtype.format, one[places], other[places])
            nans += without
            if largest is not None:
                ulps = max(largest, ulps or 0)
    return Distance(differing, total, first, ulps, nans) if differing else None


def _ulps(fmt: Format, a: NDArray[Any], b: NDArray[Any]) -> tuple[int | None, int]:
    """The largest distance, None without numbers, and how many pairs hold a NaN; rows of limbs."""
    if a.shape[1] > 1:
        ints = [[int.from_bytes(row.astype("<u8").tobytes(), "little") for row in words] for words in (a, b)]
        numbers = [(x, y) for x, y in zip(*ints, strict=True) if not fmt.is_nan(x) and not fmt.is_nan(y)]
        largest = max((abs(ordinal(fmt, x) - ordinal(fmt, y)) for x, y in numbers), default=None)
        return largest, len(a) - len(numbers)
    x, y = a[:, 0].astype(np.uint64), b[:, 0].astype(np.uint64)
    kept = ~(_is_nan(fmt, x) | _is_nan(fmt, y))
    nans = len(kept) - int(np.count_nonzero(kept))
    if nans == len(kept):
        return None, nans
    x, y = x[kept], y[kept]
    u, v = x & np.uint64(fmt.magnitude_mask), y & np.uint64(fmt.magnitude_mask)
    # magnitudes below a sign bit are less than 2^63, so that the sum fits; a format without zero has one step more
    across = u + v + np.uint64(0 if fmt.subnormals else 2)
    apart = np.where((x ^ y) & np.uint64(fmt.sign_mask) != 0, across, np.maximum(u, v) - np.minimum(u, v))
    return int(apart.max()), nans


def _is_nan(fmt: Format, words: NDArray[np.uint64]) -> NDArray[np.bool_]:
    magnitudes = words & np.uint64(fmt.magnitude_mask)
    match fmt.nans:
        case "ieee":
            return magnitudes > np.uint64(fmt.max_finite_magnitude + 1)
        case "all_ones":
            return magnitudes == np.uint64(fmt.magnitude_mask)
        case "negative_zero":
            return words == np.uint64(fmt.sign_mask)
    return np.zeros(words.shape, dtype=np.bool_)
