"""The coefficients of ``error``, by Arb, with a bound on what the polynomials leave out.

Each row is a Taylor polynomial, of g at 0 or of f in the middle of its 64th, written in powers of y and halved. What is
left out of f is known as far as terms are computed; the further ones are bounded by Cauchy's estimate: in the disc
around c of radius rho = 17/20 c, Re x >= K (20/37 - 1) as c <= 1, so |w(x)| <= w(-17 K/37), |t| >= 3/20 c, and the k-th
coefficient is at most M rho**-k with M = w(-17 K/37) * 20 / (3 c).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from math import ceil, log2
from typing import Any

from flint import arb, arb_poly, arb_series, ctx

from tlir.floatlib.elementary.wide.fixed import DIGIT
from tlir.floatlib.elementary.wide.tables import Table

CELL_BITS = 6
CELLS = 1 << CELL_BITS
NEAR_ROWS = CELLS // 4
"""Rows of x*x < 1/4."""
SPARE_BITS = 3
"""So far below a unit of the result lie the units of the steps, and what is left out."""
MARGIN = 2.0**-12
"""Partial results that are not known to be above it are lifted."""


@dataclass(frozen=True)
class Rows:
    """Polynomials sum(coefficient k * y**k), 0 <= y < 1/64, that are half of g or f within ``error``.

    ``tables[k]`` has coefficient k of each row, to be taken with ``sizes[k]`` fraction digits: first the rows of g,
    then those of f from t = ``first``/64 on, ``count`` in all. Where ``lifted[k]``, partial results from order k on may
    not be positive, and 2**lift has been added to its coefficients. ``scale`` is K."""

    scale: int
    first: int
    count: int
    tables: list[Table]
    sizes: list[int]
    lifted: list[bool]
    lift: int
    error: float


def scale_of(end: int) -> int:
    """K for x up to ``end``, a power of two: t is at least 1/64."""
    return max(4, 1 << (-(-end // (CELLS - 1)) - 1).bit_length())


@dataclass(frozen=True)
class _Row:
    """A power series in ``inner``, which is a polynomial of y at most ``radius`` in magnitude; ``tail`` bounds what its
    coefficients leave out."""

    coefficients: list[arb]
    inner: arb_poly
    radius: float
    tail: float

    def rest(self, count: int) -> float:
        """A bound on what the first ``count`` terms leave out."""
        known = sum(_above(a) * self.radius ** (count + k) for k, a in enumerate(self.coefficients[count:]))
        return (known + self.tail) * (1 + 2.0**-40)

    def polynomial(self, count: int) -> list[arb]:
        """The first ``count`` terms in powers of y."""
        result = arb_poly(self.coefficients[:count])(self.inner)
        return [result[k] for k in range(count)]


def _above(x: arb) -> float:
    """A number not below |x|."""
    return float(x.abs_upper()) * (1 + 2.0**-40)


SLACK = 1 + 2.0**-20
"""x*x and t may lie a little beyond the ends of their row, by their error."""


def _row_of_g(row: int, small: float) -> _Row:
    """Half of g(z) = 2/sqrt(pi) * sum of (-z)**k / (k! (2k + 1)), whose terms alternate and fall."""
    term = 1 / arb.pi().sqrt()
    coefficients: list[arb] = []
    while not coefficients or _above(coefficients[-1]) * 0.25 ** (len(coefficients) - 1) > small:
        k = len(coefficients)
        coefficients.append(term / (2 * k + 1))
        term = -term / (k + 1)
    end = arb(row + 1) / CELLS
    around = arb_poly(coefficients)(arb_poly([end, -1]))
    return _Row([around[k] for k in range(len(coefficients))], arb_poly([0, 1]), SLACK / CELLS, small)


def _row_of_f(scale: int, cell: int, small: float) -> _Row:
    """Half of f, around the middle of the cell."""
    middle = arb(2 * cell + 1) / (2 * CELLS)
    radius, rho = arb(SLACK) / (2 * CELLS), middle * 17 / 20
    largest = _scaled_erfc(arb(-17 * scale) / 37) * 10 / (3 * middle)
    ratio = radius / rho
    count = ceil(log2(_above(largest / (1 - ratio)) / small) / -log2(_above(ratio)))
    tail = _above(largest * ratio**count / (1 - ratio))
    inner = arb_poly([arb(-1) / (2 * CELLS), 1])
    ctx.cap = count
    precision = ctx.prec
    try:
        while True:
            t = arb_series([middle, 1])
            half = _scaled_erfc(scale / t - scale) / (2 * t)
            coefficients = [half[k] for k in range(count)]
            # for large x most digits of the two factors' coefficients cancel
            if all(float(a.rad()) < small * 2.0**-64 for a in coefficients):
                return _Row(coefficients, inner, _above(radius), tail)
            ctx.prec *= 2
    finally:
        ctx.prec = precision


def _scaled_erfc(x: arb | arb_series) -> Any:
    """w(x)."""
    return (x * x).exp() * x.erfc()


@cache
def _rows(scale: int, first: int, stop: int, point: int, precision: int) -> tuple[list[list[arb]], float]:
    """The coefficients of all rows, as many as bring what is left out below the wanted bound, and what that is."""
    wanted = 2.0 ** -(DIGIT * point + SPARE_BITS)
    previous, cap = ctx.prec, ctx.cap
    ctx.prec = precision
    try:
        found = [_row_of_g(row, wanted / 16) for row in range(NEAR_ROWS)]
        found += [_row_of_f(scale, cell, wanted / 16) for cell in range(first, stop)]
        count = 1
        while max(row.rest(count) for row in found) > wanted:
            count += 1
        return [row.polynomial(count) for row in found], max(row.rest(count) for row in found)
    finally:
        ctx.prec, ctx.cap = previous, cap


@cache
def rows(end: int, point: int) -> Rows:
    """For x up to ``end`` and a working precision of ``point`` digits."""
    scale = scale_of(end)
    # t from K / (K + end) to K / (K + 1/2)
    first, stop = CELLS * scale // (scale + end), 2 * CELLS * scale // (2 * scale + 1) + 1
    precision = 2 * DIGIT * point + 256
    coefficients, error = _rows(scale, first, stop, point, precision)
    smallest = [min(_below(row[k:]) for row in coefficients) for k in range(len(coefficients[0]))]
    lifted = [value < MARGIN for value in smallest]
    lift = max(0, ceil(log2(2 * max(MARGIN, *(-value for value in smallest)))))

    # y cut off counts with the partial result that it is multiplied by
    largest = max(_above(a) for row in coefficients for a in row) + (1 << lift if any(lifted) else 0)
    bits = DIGIT * point + SPARE_BITS + max(0.0, log2(largest))
    sizes = [max(1, min(point, ceil((bits - CELL_BITS * k) / DIGIT))) for k in range(len(lifted))]

    previous, ctx.prec = ctx.prec, precision
    try:
        columns = [[row[k] + (1 << lift if lifted[k] else 0) for row in coefficients] for k in range(len(lifted))]
    finally:
        ctx.prec = previous
    tables = [Table(partial(list, column)) for column in columns]
    return Rows(scale, first, len(coefficients), tables, sizes, lifted, lift, error)


def _below(coefficients: list[arb]) -> float:
    """A number not above any value of the polynomial."""
    further = sum(_above(a) * float(CELLS) ** -(k + 1) for k, a in enumerate(coefficients[1:]))
    return float(coefficients[0].lower()) - (further + abs(float(coefficients[0]))) * 2.0**-40 - further
