"""Polynomials on the cells of an interval of which the first two coefficients are double-double numbers. u = 2**-53.

``elementary.narrow.cells`` has the cells and the distance of a polynomial from its function. Here f(c + h) is
c0 + c1 h + h**2 (c2 + ...), of which the last term is small, so that it may be computed in binary64.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

from flint import arb, ctx

from tlir.floatlib.elementary.double.arithmetic import DOUBLE, Double, fast_two_sum, multiply_number, table
from tlir.floatlib.elementary.double.tables import pairs
from tlir.floatlib.elementary.narrow.cells import UNIT, Cells, rounding
from tlir.floatlib.elementary.number import Number

PRECISION, ACCURACY = 256, 120


def _itself(row: tuple[arb, ...]) -> tuple[arb, ...]:
    return row


@dataclass(frozen=True)
class DoubleCells(Cells):
    """``Cells`` of a relative error below ``error``, which is that of ``pair_at``."""

    @cached_property
    def parts(self) -> tuple[tuple[tuple[float, ...], ...], ...]:
        """For each power of the distance from the middle, highs and lows of its coefficients in all cells."""
        columns = list(self.polynomials(PRECISION, ACCURACY))
        return tuple(pairs(partial(_itself, row)) for row in zip(*columns, strict=True))

    def pair_at(self, x: Number, low: Number | None = None) -> Double:
        """The function at x + low, for |low| <= 2**-53; at the ends for numbers beyond them.

        What low adds is low (c1 + 2 c2 h); that leaves low h**2 3 c3 out, and less."""
        m = x.m
        cell, h = self.place(self.inner(x))
        constant, slope, *others = self.parts
        zeroth, first = (Double(table(m, highs, cell), table(m, lows, cell)) for highs, lows in (constant, slope))
        coefficients = [table(m, highs, cell) for highs, _ in others]
        tail = coefficients[-1]
        for coefficient in reversed(coefficients[:-1]):
            tail = tail.times_plus(h, coefficient)
        linear = multiply_number(first, h)
        total = fast_two_sum(zeroth.hi, linear.hi)
        rest = linear.lo + zeroth.lo
        if low is not None:
            rest = low.times_plus((h + h).times_plus(coefficients[0], first.hi), rest)
        return fast_two_sum(total.hi, total.lo + (h * h).times_plus(tail, rest))

    def bounds(self) -> list[float]:
        previous, ctx.prec = ctx.prec, 64
        try:
            found = []
            for k, (middle, half) in enumerate(self.cells()):
                column = [highs[k] for highs, _ in self.parts]
                largest = half * half * sum(abs(c) * half**n for n, c in enumerate(column[2:]))
                # h*h, the product, and the two sums with numbers of at most 2 u and 4 u**2 of the function
                error = half * half * rounding(tuple(column[2:]), half) + largest * 4.1 * UNIT
                found.append((self.distance(middle, half) + error) / self.least(middle, half) + 8 * DOUBLE)
            return found
        finally:
            ctx.prec = previous
