"""What kernels of complex functions are made of: each part of a result as a double-double number with a bound on its
error.

Operands are binary64 numbers, or pairs of them, that hold the parts exactly. u = 2**-53; the operations of
``double.arithmetic`` add less than ``DOUBLE`` = 2**-98 of their results, beside 2**-68 to 2**-91 of the functions of
``double``; the bounds of ``Means`` have room for several. Where terms cancel the bound is one of the terms and not
of the sum: such a part is decided as long as what is left is not below what its rounding needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from tlir.floatlib.elementary.double import arc, circular, exponential, logarithm
from tlir.floatlib.elementary.double.arithmetic import (
    Double,
    add_number,
    add_similar,
    from_bits,
    select,
    select_double,
    square_root,
    squared,
    two_product,
)
from tlir.floatlib.elementary.number import Number
from tlir.floatlib.soft.machine import Predicate, Word

UNREDUCED = 2.0**-10
"""Angles below this are their own reduction."""


class Part(NamedTuple):
    """A real or imaginary part: within ``margin`` of ``value``. Where both are 0 it is a zero with the sign bit of
    ``sign``."""

    value: Double
    margin: Number
    sign: Word


class Outcome(NamedTuple):
    """Both parts, and where they hold, if not everywhere."""

    real: Part
    imaginary: Part
    certain: Predicate | None = None


@dataclass(frozen=True)
class Means:
    """The functions of ``double`` that a kernel is made of, ``accurate`` or not, with bounds on their relative errors,
    those of operations on their results included. ``far`` says how angles are reduced, ``wide`` that operands are
    binary64's, whose squares may overflow or vanish."""

    accurate: bool = False
    far: bool = False
    wide: bool = False

    @property
    def exp(self) -> float:
        """Of e**x."""
        return 2.0**-90.9 if self.accurate else 2.0**-69.99

    @property
    def expm1(self) -> float:
        """Of e**x - 1."""
        return 2.0**-81.9 if self.accurate else 2.0**-70.99

    @property
    def sine(self) -> float:
        """Of the sine and cosine of a reduced angle."""
        return 2.0**-87.9 if self.accurate else 2.0**-68.39

    @property
    def log(self) -> float:
        """Of logarithms of pairs."""
        return 2.0**-76.4 if self.accurate else 2.0**-67.99

    @property
    def arc(self) -> float:
        """Of the angles of points whose coordinates are within 2**-90."""
        return 2.0**-86.2 if self.accurate else 2.0**-69.49

    def exponential(self, x: Number, low: Number | None = None) -> Double:
        return exponential.exponential(x, low, self.accurate)

    def exponential_minus_one(self, x: Number) -> Double:
        return exponential.exponential_minus_one(x, accurate=self.accurate)

    def logarithm(self, x: Double, near: Double) -> Double:
        """log x, of which ``near`` is x - 1."""
        return logarithm.logarithm(x.hi, x.lo, near, self.accurate)

    def log_of_one_plus(self, x: Double) -> Double:
        return logarithm.log_of_one_plus(x, self.accurate)

    def angle_of(self, n: Double, d: Double, left: Predicate | None = None) -> Double:
        """As ``double.arc.angle_of``."""
        return arc.angle_of(n, d, left, arc.octant_accurately) if self.accurate else arc.angle_of(n, d, left)

    def angle(self, x: Number, low: Number | None = None) -> Angle:
        """The sine and cosine of |x|, or of x + low. A reduction leaves an absolute error of 2**-130 or 2**-125, a few
        units of which count."""
        magnitude = abs(x) if low is None else x
        word, r = (circular.reduce_far if self.far else circular.reduce_near)(magnitude)
        r = r if low is None else add_number(r, low)
        sine, cosine = circular.sine_cosine(magnitude, (word, r), self.accurate)
        least = abs(sine.hi).minimum(abs(cosine.hi))
        lost = (2.0**-122 if self.far else 2.0**-127) / least
        return Angle(sine, cosine, x.like(0.0).where(abs(x) < UNREDUCED, lost) + self.sine)


class Angle(NamedTuple):
    """The sine and cosine of a number, and a bound on the relative error of both."""

    sine: Double
    cosine: Double
    error: Number


def double(x: Number) -> Double:
    return Double(x, x.like(0.0))


def scaled(x: Double, factor: float) -> Double:
    """Times a power of two."""
    return Double(x.hi * factor, x.lo * factor)


class Scaled(NamedTuple):
    """Two numbers, not both 0, times ``inverse`` squared, a power of two: the larger one is then from 1 to 4. ``power``
    is 1 / ``inverse`` and ``exponent`` its binary logarithm."""

    x: Number
    y: Number
    power: Number
    inverse: Number
    exponent: Number

    def up(self, value: Double) -> Double:
        return Double(value.hi * self.power, value.lo * self.power)

    def down(self, value: Double) -> Double:
        return Double(value.hi * self.inverse, value.lo * self.inverse)


FIELD = 0x7FF << 52
LEAST_SHARE = 2.0**-400
"""The smaller one of two numbers that are scaled is 0 or more than this share of the larger one."""


def scaling(x: Number, y: Number) -> Scaled:
    """For the larger one from 2**-1000 to 2**1000; exact where the other one is not below ``LEAST_SHARE`` of it."""
    m = x.m
    size = abs(x).maximum(abs(y)).between(2.0**-1000, 2.0**1000)
    field = m.shift_right(size.bits, m.constant(52))
    half = m.shift_right(m.add(field, m.constant(1023)), m.constant(1))
    power = from_bits(m, m.shift_left(half, m.constant(52)))
    inverse = from_bits(m, m.shift_left(m.subtract(m.constant(2046), half), m.constant(52)))
    exponent = Number(m, m.real_of(half)) - 1023.0
    return Scaled(x * inverse * inverse, y * inverse * inverse, power, inverse, exponent)


def unscaled(value: Double, result: Double, error: float, sign: Word) -> Part:
    """A part ``result``, a power of two times ``value``, within ``error`` times itself; it is 0 only where ``value``
    is, even if the product with the power has vanished."""
    nothing = value.hi.like(0.0)
    return Part(result, abs(result.hi).times_plus(error, nothing.where(value.hi.equals(0.0), 2.0**-1000)), sign)


def absolute(x: Double) -> Double:
    return select_double(x.hi < 0.0, -x, x)


def relative(value: Double, error: Number | float, sign: Word) -> Part:
    """A part within ``error`` times itself."""
    return Part(value, abs(value.hi) * error, sign)


def swapped_sign(word: Word, x: Number) -> Word:
    """A sign bit, inverted."""
    return x.m.xor(word, x.m.constant(1 << 63))


def root(x: Double) -> Double:
    """sqrt(x) for x >= 0."""
    zero = x.hi.equals(0.0)
    one = Double(select(zero, x.hi.like(1.0), x.hi), x.lo)
    return select_double(zero, x, square_root(one))


def length(x: Double, y: Number) -> Double:
    """sqrt(x**2 + y**2): squares within 7 u**2, their sum 2**-100, half of it and 2**-102 for the root."""
    return root(add_similar(squared(x), two_product(y, y)))
