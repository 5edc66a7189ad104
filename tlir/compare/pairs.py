"""The elements of an output whose words differ, measured: distances, differences, and which of them pass a rule.

Elements with equal words pass every rule and have no difference, so only the others are looked at. Formats that
binary64 contains are measured in binary64 first; wherever its rounding could change a verdict or a maximum, and for all
other formats, the exact numbers decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlir.compare.exact import DISPLAY, Terms, modulus, negated, quotient, terms_of
from tlir.compare.rule import Rule
from tlir.floatlib import words as layout
from tlir.floatlib.arrays import convert, to_ints
from tlir.floatlib.format import FORMATS, Format
from tlir.floatlib.ordering import ordinal
from tlir.floatlib.rounding import round_exact
from tlir.floatlib.value import Value
from tlir.ir.types import DType

Array = NDArray[Any]
Mask = NDArray[np.bool_]

FLOAT64 = FORMATS["float64"]

_DOUBT = 1e-12
"""Relative error above that of a few binary64 operations: verdicts closer than this are decided exactly."""

_CANDIDATES = 64
"""So many elements are compared exactly where binary64 does not tell which difference is the largest."""


_PIECE = 1 << 15


def pieces(count: int) -> Iterator[slice]:
    """Parts of so many elements whose temporaries stay in the processor's cache."""
    for start in range(0, count, _PIECE):
        yield slice(start, min(start + _PIECE, count))


def differing(dtype: DType, expected: Array, got: Array) -> NDArray[np.intp]:
    """Flat indices of the elements that differ in a word; ``expected`` and ``got`` are the words of two tensors."""
    return np.flatnonzero((by_element(dtype, expected) != by_element(dtype, got)).any(axis=1))


def by_element(dtype: DType, words: Array) -> Array:
    """One row per element: its words' limbs."""
    width = dtype.components * dtype.limbs
    return words.reshape(words.size // width, width)


def pairs(dtype: DType, expected: Array, got: Array) -> FloatPairs | IntegerPairs:
    """The pairs that rows of words (as ``by_element`` gives them) stand for."""
    return FloatPairs(dtype, expected, got) if dtype.format else IntegerPairs(dtype, expected, got)


class FloatPairs:
    """Real or complex elements. A part that is not finite matches a NaN for a NaN, and the same infinity; where one
    does not match there is no difference, and the element is not ``comparable``."""

    def __init__(self, dtype: DType, expected: Array, got: Array) -> None:
        self.format: Format = dtype.float_format
        self.components = dtype.components
        self.count = len(expected)
        shape = (self.count, self.components) + ((dtype.limbs,) if dtype.limbs > 1 else ())
        self.expected, self.got = expected.reshape(shape), got.reshape(shape)

    @cached_property
    def _both_nan(self) -> Mask:
        return layout.is_nan(self.format, self.expected) & layout.is_nan(self.format, self.got)

    @cached_property
    def _same(self) -> Mask:
        return layout.equal(self.format, self.expected, self.got)

    @cached_property
    def _finite(self) -> Mask:
        return layout.is_finite(self.format, self.expected) & layout.is_finite(self.format, self.got)

    @cached_property
    def comparable(self) -> Mask:
        """Where the difference of the elements is a number: every part is finite or matches."""
        return np.asarray((self._finite | self._both_nan | self._same).all(axis=1))

    @cached_property
    def ulps(self) -> Array:
        """Distances in units in the last place of the format: how many steps from number to number lie between the two,
        the larger of both parts of a complex element. 0 where a part is not finite. uint64, or Python ints."""
        fmt = self.format
        if layout.limbs(fmt) > 1 or not fmt.subnormals:
            exact = np.zeros(self._finite.shape, dtype=object)
            pairs = zip(to_ints(fmt, self.expected[self._finite]), to_ints(fmt, self.got[self._finite]), strict=True)
            exact[self._finite] = [abs(ordinal(fmt, int(a)) - ordinal(fmt, int(b))) for a, b in pairs]
            return np.asarray(exact.max(axis=1) if self.count else exact[:, 0])
        result = np.empty(self.count, np.uint64)
        for piece in pieces(self.count):
            sides = self.expected[piece], self.got[piece]
            a, b = (layout.magnitudes(fmt, words) for words in sides)
            if a.dtype.itemsize < 4:
                a, b = a.astype(np.uint32), b.astype(np.uint32)
            # the sum of two magnitudes fits into a word
            distance = np.maximum(a, b) - np.minimum(a, b)
            apart = layout.signs(fmt, sides[0]) != layout.signs(fmt, sides[1])
            if apart.any():
                distance = np.where(apart, a + b, distance)
            if not self._finite[piece].all():
                distance = np.where(self._finite[piece], distance, distance.dtype.type(0))
            result[piece] = distance.max(axis=1, initial=0) if self.components > 1 else distance[:, 0]
        return result

    @cached_property
    def _in_float64(self) -> tuple[Array, Array] | None:
        """Expected and got as binary64 arrays, 0 for parts that are not finite; None where binary64 does not contain
        the format."""
        if not self._contained:
            return None
        return self._piece_in_float64(slice(0, self.count))

    def _piece_in_float64(self, piece: slice) -> tuple[Array, Array]:
        fmt, finite, zero = self.format, self._finite[piece], layout.constant(self.format, 0)
        sides = []
        for words in (self.expected[piece], self.got[piece]):
            part = words if finite.all() else layout.select(fmt, finite, words, zero)
            values = np.asarray(convert(fmt, FLOAT64, np.ascontiguousarray(part))).view(np.float64)
            sides.append(np.where(finite, values, 0.0) if part is not words else values)
        return sides[0], sides[1]

    @cached_property
    def _contained(self) -> bool:
        """Whether binary64 contains the format."""
        fmt = self.format
        contained = fmt.emax <= FLOAT64.emax and fmt.fraction_bits <= FLOAT64.fraction_bits
        return contained and fmt.emin - fmt.fraction_bits >= FLOAT64.emin - FLOAT64.fraction_bits

    def _approximate(self, piece: slice) -> tuple[Array, Array]:
        """The absolute difference and the expected magnitude of elements in binary64, if that contains the format."""
        expected, got = self._piece_in_float64(piece)
        with np.errstate(all="ignore"):
            difference = np.abs(got - expected)
            if self.components == 1:
                return difference[:, 0], np.abs(expected[:, 0])
            return np.hypot(difference[:, 0], difference[:, 1]), np.hypot(expected[:, 0], expected[:, 1])

    def passes(self, rule: Rule) -> Mask:
        """Which elements pass."""
        if rule.words:
            same = self._same if rule.nan_payload else self._same | self._both_nan
            return np.asarray(same.all(axis=1))
        passed = np.zeros(self.count, dtype=np.bool_)
        if rule.ulps is not None:
            passed |= np.asarray(self.ulps <= rule.ulps, dtype=np.bool_)
        if rule.tolerance is not None:
            passed |= self._within(rule)
        return passed & self.comparable

    def _within(self, rule: Rule) -> Mask:
        if self._in_float64 is None:
            within, doubtful = np.zeros(self.count, dtype=np.bool_), self.comparable
        else:
            expected, got = self._in_float64
            difference, magnitude = self._approximate(slice(0, self.count))
            assert rule.tolerance is not None
            with np.errstate(all="ignore"):
                bound = _float(rule.tolerance) + _float(rule.rtol) * magnitude
                within = difference <= bound
                clear = np.abs(difference - bound) > _DOUBT * np.maximum(difference, bound) + 1e-322
                if self.components == 1 and rule.rtol == 0 and _float(rule.tolerance) == rule.tolerance:
                    # neither side of the inequality is rounded where the subtraction was exact
                    g, e = got[:, 0], expected[:, 0]
                    back = got - expected
                    clear |= ((back[:, 0] + e) == g) & ((g - back[:, 0]) == e)
            equal = (expected == got).all(axis=1)
            within |= equal
            doubtful = ~clear & ~equal & self.comparable
        for k in np.flatnonzero(doubtful):
            within[k] = rule.within(*self._terms(int(k)))
        return within

    def _terms(self, k: int) -> tuple[list[Terms], list[Terms]]:
        """Both sides of element k, one list of terms per part; parts that are not finite are left out."""
        sides = []
        for words in (self.expected, self.got):
            parts = zip(self._finite[k], np.atleast_1d(to_ints(self.format, words[k])), strict=True)
            sides.append([terms_of(self.format, int(word)) if finite else [] for finite, word in parts])
        return sides[0], sides[1]

    def absolute(self, k: int) -> Value:
        """|got - expected| of a comparable element, the modulus of a complex one, rounded once to ``DISPLAY``."""
        expected, got = self._terms(k)
        return modulus([[*g, *negated(e)] for e, g in zip(expected, got, strict=True)])

    def relative(self, k: int) -> Value | None:
        """The absolute difference divided by |expected|, each rounded to ``DISPLAY``; None where expected is zero."""
        size = modulus(self._terms(k)[0])
        return quotient(self.absolute(k), size) if size.word else None

    def largest_absolute(self) -> int | None:
        """The first comparable element of the largest absolute difference."""
        if not self._contained:
            return self._largest([self.absolute(int(k)) for k in np.flatnonzero(self.comparable)])
        return self._largest_of(lambda piece: self._approximate(piece)[0], self.absolute)

    def largest_relative(self) -> int | None:
        """The first comparable element of the largest relative difference; elements that should be zero have none."""
        if not self._contained:
            return self._largest([self.relative(int(k)) for k in np.flatnonzero(self.comparable)])

        def ratio(piece: slice) -> Array:
            difference, magnitude = self._approximate(piece)
            with np.errstate(all="ignore"):
                return np.where(magnitude > 0, difference / magnitude, -1.0)

        return self._largest_of(ratio, self.relative)

    def _largest(self, values: list[Value | None] | list[Value]) -> int | None:
        numbers = [(-1 if value is None else value.word) for value in values]
        if not numbers or max(numbers) < 0:
            return None
        return int(np.flatnonzero(self.comparable)[numbers.index(max(numbers))])

    def _largest_of(self, approximate: Callable[[slice], Array], exact: Any) -> int | None:
        def usable(piece: slice) -> Array:
            return np.where(self.comparable[piece], approximate(piece), -1.0)

        tops = [(piece, usable(piece).max(initial=-1.0)) for piece in pieces(self.count)]
        top = max((each for _, each in tops), default=-1.0)
        if top < 0:
            return None
        least, candidates = top * (1 - _DOUBT), list[int]()
        for piece, each in tops:
            if each >= least and len(candidates) < _CANDIDATES:
                candidates += (piece.start + np.flatnonzero(usable(piece) >= least)).tolist()
        candidates = candidates[:_CANDIDATES]
        return int(max(candidates, key=lambda k: exact(int(k)).word)) if len(candidates) > 1 else candidates[0]

    def severity(self) -> Array:
        """A number per element by which the worst are found: infinite where there is no difference at all."""
        if self._contained:
            return np.where(self.comparable, self._approximate(slice(0, self.count))[0], np.inf)
        return np.array([float(self.absolute(k)) if ok else np.inf for k, ok in enumerate(self.comparable)])


class IntegerPairs:
    """Integers and Booleans: their distance is the absolute difference, exactly."""

    def __init__(self, dtype: DType, expected: Array, got: Array) -> None:
        self.dtype = dtype
        self.count = len(expected)
        self.comparable: Mask = np.ones(self.count, dtype=np.bool_)
        # in an order of unsigned words: the sign bit flipped
        self._zero = np.uint64(1 << (dtype.bits - 1) if dtype.is_signed else 0)
        self._a, self._b = (words.reshape(-1).astype(np.uint64) ^ self._zero for words in (expected, got))

    @cached_property
    def ulps(self) -> Array:
        """|got - expected| as uint64."""
        return np.asarray(np.maximum(self._a, self._b) - np.minimum(self._a, self._b))

    @cached_property
    def _magnitude(self) -> Array:
        """|expected| as uint64."""
        return np.asarray(np.maximum(self._a, self._zero) - np.minimum(self._a, self._zero))

    def passes(self, rule: Rule) -> Mask:
        """Booleans must be equal under every rule; integers too, unless the rule allows a distance in ulps."""
        if self.dtype.is_bool or rule.ulps is None:
            return np.asarray(self.ulps == 0)
        return np.asarray(self.ulps <= rule.ulps, dtype=np.bool_)

    def absolute(self, k: int) -> Value:
        return Value(DISPLAY, round_exact(DISPLAY, 0, int(self.ulps[k]), 0)[0])

    def relative(self, k: int) -> Value | None:
        expected = int(self._magnitude[k])
        if expected == 0:
            return None
        return quotient(self.absolute(k), Value(DISPLAY, round_exact(DISPLAY, 0, expected, 0)[0]))

    def largest_absolute(self) -> int | None:
        return int(self.ulps.argmax()) if self.count else None

    def largest_relative(self) -> int | None:
        magnitude = self._magnitude.astype(np.float64)
        with np.errstate(all="ignore"):
            ratio = np.where(magnitude > 0, self.ulps.astype(np.float64) / magnitude, -1.0)
        return int(ratio.argmax()) if self.count and ratio.max() >= 0 else None

    def severity(self) -> Array:
        return self.ulps.astype(np.float64)


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf")
