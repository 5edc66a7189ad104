"""Polynomials on the cells of an interval, and a proof of how near they are to the function.

The range between two powers of two is divided into cells of equal width, so a cell is narrow beside its distance from
0, and its number is made of the leading bits of a number in it. The polynomial of a cell equals the function in the
n + 1 Chebyshev points cos((2i + 1) pi / (2n + 2)) of the cell. As in ``narrow.fit``, it is within
4 M rho**-n / (rho - 1) of a function that is analytic and at most M in the ellipse: with these points too each of
Chebyshev's coefficients from n + 1 on is taken for one of those up to n, or for none (L. N. Trefethen, "Approximation
Theory and Approximation Practice" (2013), theorems 4.2 and 8.1).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial

from flint import acb, arb, arb_poly, ctx

from tlir.floatlib.elementary.narrow.fit import rounded
from tlir.floatlib.elementary.number import EXPONENT_BITS, Number
from tlir.floatlib.soft.machine import Word

PRECISION, ACCURACY = 128, 64
"""Bits of the computation of the polynomials, and how many have to be right, beside the largest coefficient."""

UNIT = 2.0**-53

SINGULARITY_SHARES = (0.02, 0.08, 0.2, 0.4, 0.6, 0.75, 0.85)
"""Where the ellipses that are tried end, between the singularity (0) and the cell (1)."""
ENTIRE_SUMS = (8.0, 16.0, 32.0, 64.0, 96.0, 128.0, 192.0)
"""Sums of the semi-axes that are tried where there is no singularity."""


def _bits(x: float) -> int:
    return int(struct.unpack("<Q", struct.pack("<d", x))[0])


@dataclass(frozen=True)
class Cells:
    """Polynomials of degree ``degree`` for ``function`` between the powers of two ``low`` and ``high``, between two of
    which there are 2**``bits`` cells.

    ``function`` takes and gives balls of complex numbers; it is analytic but for real points up to ``singular``
    (everywhere where that is None). ``error``: what the error of ``at``, its roundings included, is below; ``bound``
    proves it. It is the relative error of a function that falls or rises, or the absolute one: ``relative`` False.

    ``largest`` gives what the function, or its distance from its value in the middle, is at most in magnitude in a
    disc, of the disc's middle and radius. None: the function is positive and falls on the real axis, and is nowhere in
    an ellipse about a cell larger than at the leftmost point. So it is where it is completely monotonic, the integral
    of e**(-xt) for a measure >= 0 of t.
    """

    function: Callable[[acb], acb]
    low: float
    high: float
    bits: int
    degree: int
    error: float
    singular: float | None = 0.0
    relative: bool = True
    largest: Callable[[arb, arb], arb] | None = None

    def cells(self) -> list[tuple[float, float]]:
        """The middle and half of the width of each."""
        found, start = [], self.low
        while start < self.high:
            half = start / (1 << self.bits + 1)
            found += [(start + (2 * k + 1) * half, half) for k in range(1 << self.bits)]
            start *= 2
        return found

    @cached_property
    def rows(self) -> tuple[tuple[float, ...], ...]:
        """For each power of the distance from the middle its coefficients in all cells, rounded to binary64."""
        columns = [
            [rounded(partial(_itself, value)) for value in column] for column in self.polynomials(PRECISION, ACCURACY)
        ]
        return tuple(zip(*columns, strict=True))

    def polynomials(self, precision: int, accuracy: int) -> Iterator[list[arb]]:
        """Of each cell, the coefficients by powers of the distance from its middle, computed with ``precision`` bits of
        which ``accuracy`` are right beside the largest coefficient. ArithmeticError where they are not."""
        count = self.degree + 1
        previous, ctx.prec = ctx.prec, precision
        try:
            points = [(arb.pi() * (2 * i + 1) / (2 * count)).cos().mid() for i in range(count)]
            for middle, half in self.cells():
                # some enclosures are much wider than their operands; moving points by 2**-120 is of no account
                values = [self.function(acb((middle + half * t).mid())).real for t in points]
                polynomial = arb_poly.interpolate(points, values)
                largest = max(float(abs(polynomial[n]).upper()) for n in range(count))
                if not all(float(polynomial[n].rad()) < largest * 2.0**-accuracy for n in range(count)):
                    raise ArithmeticError(f"the precision does not decide the polynomial about {middle}")
                yield [polynomial[n] / arb(half) ** n for n in range(count)]
        finally:
            ctx.prec = previous

    def place(self, x: Number) -> tuple[Word, Number]:
        """The number of the cell of x, which is between the ends, and the distance from its middle, exactly: the middle
        has one more bit than the cell's number, and the distance fewer than x."""
        m = x.m
        below = EXPONENT_BITS - self.bits
        cell = m.subtract(m.shift_right(x.bits, m.constant(below)), m.constant(_bits(self.low) >> below))
        start = m.and_(x.bits, m.constant((1 << 64) - (1 << below)))
        return cell, x - Number(m, m.real_from_bits(m.or_(start, m.constant(1 << below - 1))))

    def inner(self, x: Number) -> Number:
        """x, or an end that it is beyond."""
        return x.between(self.low, math.nextafter(self.high, 0.0))

    def at(self, x: Number) -> Number:
        """The function at x; at the ends for numbers beyond them."""
        m = x.m
        cell, h = self.place(self.inner(x))
        total = Number(m, m.table(self.rows[-1], cell))
        for row in self.rows[-2::-1]:
            total = total.times_plus(h, Number(m, m.table(row, cell)))
        return total

    # ---- the proof --------------------------------------------------------------------------------------------------

    def bound(self) -> float:
        """The largest of the cells' errors."""
        return max(self.bounds())

    def bounds(self) -> list[float]:
        """Of each cell, the error of the polynomial and that of evaluating it."""
        previous, ctx.prec = ctx.prec, 64
        try:
            columns = zip(*self.rows, strict=True)
            return [
                (self.distance(middle, half) + rounding(column, half)) / self.least(middle, half)
                for (middle, half), column in zip(self.cells(), columns, strict=True)
            ]
        finally:
            ctx.prec = previous

    def distance(self, middle: float, half: float) -> float:
        return min(self._distance_by(middle, half, rho) for rho in self._sums(middle, half))

    def _sums(self, middle: float, half: float) -> list[float]:
        if self.singular is None:
            return list(ENTIRE_SUMS)
        lefts = [self.singular + share * (middle - half - self.singular) for share in SINGULARITY_SHARES]
        axes = [(middle - left) / half for left in lefts]
        return [axis + math.sqrt(axis * axis - 1) for axis in axes]

    def _distance_by(self, middle: float, half: float, rho: float) -> float:
        reach = arb(half) * (arb(rho) + 1 / arb(rho)) / 2
        largest = self._at(middle - reach) if self.largest is None else self.largest(arb(middle), reach)
        total = 4 * largest * arb(rho) ** -self.degree / (arb(rho) - 1)
        upper = float(total.upper())
        return upper if math.isfinite(upper) else math.inf

    def _at(self, x: arb) -> arb:
        return self.function(acb(x)).real

    def least(self, middle: float, half: float) -> float:
        if not self.relative:
            return 1.0
        return min(float(abs(self._at(arb(end))).lower()) for end in (middle - half, middle + half))


def _itself(value: arb) -> arb:
    return value


def rounding(coefficients: tuple[float, ...], half: float) -> float:
    """The absolute error of Horner's rule, a product and a sum rounded in each step, and that of the coefficients."""
    sums = error = 0.0
    for coefficient in reversed(coefficients):
        size, product = abs(coefficient), sums * half
        sums = size + product
        error = error * half + UNIT * (product + sums + size)
    return error * (1 + 2.0**-20)
