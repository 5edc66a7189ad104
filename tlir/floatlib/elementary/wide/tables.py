"""Constants and tables of the fixed-point kernels, computed by Arb where they are first needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from math import inf

from flint import arb, ctx

from tlir.floatlib.elementary.wide.fixed import DIGIT, MASK, Fixed, of_integer, unit
from tlir.floatlib.soft.machine import Machine, Word

Real = Callable[[], arb]
"""A positive real number at Arb's present precision."""

_SPARE_BITS = 64
_RADIUS = 2.0**-40
ROUNDING = 0.5 + _RADIUS
"""Units between a real number and the integer that stands for it, at most."""


def nearest(values: Callable[[], Sequence[arb]], bits: int) -> list[int]:
    """The integers nearest to value * 2**bits, or next to nearest where two are equally near but for ``ROUNDING``.
    ArithmeticError where Arb does not know a value as well as that."""
    previous, ctx.prec = ctx.prec, max(bits, 0) + _SPARE_BITS
    try:
        return [_nearest(value, bits) for value in values()]
    finally:
        ctx.prec = previous


def _nearest(value: arb, bits: int) -> int:
    if not value.rad() * arb(2) ** bits < _RADIUS:
        raise ArithmeticError(f"{value} is not known well enough")
    significand, exponent = (int(part) for part in value.mid().man_exp())
    exponent += bits
    return significand << exponent if exponent >= 0 else (significand + (1 << -exponent - 1)) >> -exponent


@cache
def _number(value: Real | Fraction | int, bits: int) -> tuple[int, bool]:
    """The number in units of 2**-bits, and whether it is exact."""
    if callable(value):
        return nearest(lambda: [value()], bits)[0], False
    scaled = Fraction(value) * 2**bits
    return round(scaled), scaled.denominator == 1


def constant(m: Machine, value: Real | Fraction | int, point: int, size: int | None = None) -> Fixed:
    """A positive number rounded to ``point`` digits, which is an error of ``ROUNDING`` unless it is exact.

    A function of no arguments gives a real number by Arb; it is evaluated once for each precision, so it must be the
    same object each time (a function of a module)."""
    units, exact = _number(value, DIGIT * point)
    return of_integer(m, units, point, size, 0.0 if exact else ROUNDING)


class Table:
    """Real numbers, not negative, at indices from 0: ``values`` gives them all at Arb's present precision."""

    def __init__(self, values: Callable[[], Sequence[arb]], exact: bool = False) -> None:
        """``exact``: all entries are multiples of every unit asked for; others are within ``ROUNDING`` of one."""
        self.values = values
        self.error = 0.0 if exact else ROUNDING
        self._columns: dict[int, tuple[list[tuple[int, ...]], int, float]] = {}

    def columns(self, point: int) -> tuple[list[tuple[int, ...]], int, float]:
        """Words of two digits each, lowest first; the number of digits; the largest value."""
        if point not in self._columns:
            units = nearest(self.values, DIGIT * point)
            largest = max(units)
            size = max(1, -(-largest.bit_length() // DIGIT))
            pairs = range(0, size, 2)
            columns = [tuple((value >> DIGIT * i) & ((1 << 2 * DIGIT) - 1) for value in units) for i in pairs]
            limit = largest * unit(point) * (1 + 2.0**-40) if largest.bit_length() < 900 else inf
            self._columns[point] = columns, size, limit
        return self._columns[point]

    def entry(self, m: Machine, index: Word, point: int) -> Fixed:
        """The number at an index below their count, rounded to ``point`` digits."""
        columns, size, limit = self.columns(point)
        digits: list[Word] = []
        for column in columns:
            pair = m.table(column, index)
            digits.append(m.and_(pair, m.constant(MASK)))
            digits.append(m.shift_right(pair, m.constant(DIGIT)))
        return Fixed(m, digits[:size], point, limit, self.error)
