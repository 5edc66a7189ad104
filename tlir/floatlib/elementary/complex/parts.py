"""What kernels of complex functions are made of: each part of a result as a double-double number with a bound on its
error.

Operands are binary64 numbers, or pairs of them, that hold the parts exactly. u = 2**-53; the operations of
``double.arithmetic`` add less than ``DOUBLE`` = 2**-98 of their results, beside 2**-65 to 2**-70 of the functions of
``double``, so they do not count unless a docstring says so. Where terms cancel the bound is one of the terms and not of
the sum: such a part is decided as long as what is left is not below what its rounding needs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tlir.floatlib.elementary.double import circular
from tlir.floatlib.elementary.double.arithmetic import (
    Double,
    add_similar,
    fast_two_sum,
    select,
    select_double,
    square_root,
    two_product,
)
from tlir.floatlib.elementary.number import Number
from tlir.floatlib.soft.machine import Predicate, Word

LEAST_SINE = 2.0**-45
"""Reduced angles have an absolute error, 2**-120 in sines and cosines: 2**-75 of those above this. Angles below
``UNREDUCED`` are their own reduction."""
UNREDUCED = 2.0**-10


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


Reduction = Callable[[Number], circular.Reduced]


def double(x: Number) -> Double:
    return Double(x, x.like(0.0))


def scaled(x: Double, factor: float) -> Double:
    """Times a power of two."""
    return Double(x.hi * factor, x.lo * factor)


def absolute(x: Double) -> Double:
    return select_double(x.hi < 0.0, -x, x)


def relative(value: Double, error: float, sign: Word) -> Part:
    """A part within ``error`` times itself."""
    return Part(value, abs(value.hi) * error, sign)


def swapped_sign(word: Word, x: Number) -> Word:
    """A sign bit, inverted."""
    return x.m.xor(word, x.m.constant(1 << 63))


class Angle(NamedTuple):
    """The sine and cosine of a number, each within 2**-68.4 of itself where ``certain`` holds."""

    sine: Double
    cosine: Double
    certain: Predicate


def angle(x: Number, reduce: Reduction) -> Angle:
    """Of |x|."""
    m = x.m
    magnitude = abs(x)
    sine, cosine = circular.sine_cosine(magnitude, reduce(magnitude))
    least = abs(sine.hi).minimum(abs(cosine.hi))
    return Angle(sine, cosine, m.either(least > LEAST_SINE, magnitude < UNREDUCED))


def root(x: Double) -> Double:
    """sqrt(x) for x >= 0."""
    zero = x.hi.equals(0.0)
    one = Double(select(zero, x.hi.like(1.0), x.hi), x.lo)
    return select_double(zero, x, square_root(one))


def length(x: Double, y: Number) -> Double:
    """sqrt(x**2 + y**2): squares within 7 u**2, their sum 2**-100, half of it and 2**-102 for the root."""
    return root(add_similar(squared(x), two_product(y, y)))


def squared(x: Double) -> Double:
    """7 u**2, as ``multiply``."""
    product = two_product(x.hi, x.hi)
    return fast_two_sum(product.hi, product.lo + (x.hi + x.hi) * x.lo)
