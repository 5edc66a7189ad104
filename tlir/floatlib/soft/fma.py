"""x * y + z rounded once, for arrays of binary64 numbers, by NumPy, which has no such operation.

S. Boldo and G. Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", IEEE
Transactions on Computers 57 (2008): with the exact product uh + ul, the exact sums th + tl = z + ul and
vh + vl = uh + th, and w the sum tl + vl rounded to odd, vh + w rounded to nearest is x * y + z rounded to nearest.
That holds where no operation overflows or loses bits below 2**-1074; the other elements are computed with rational
numbers, one by one.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

_SPLIT = 2.0**27 + 1
_LEAST, _LARGEST = 2.0**-900, 2.0**900


def two_sum(x: Any, y: Any) -> tuple[Any, Any]:
    """(s, e): s the rounded sum, s + e the exact one (D. Knuth)."""
    s = x + y
    other = s - x
    return s, (x - (s - other)) + (y - other)


def two_product(x: Any, y: Any) -> tuple[Any, Any]:
    """(p, e): p the rounded product, p + e the exact one (T. J. Dekker, by halves of 26 bits)."""
    p = x * y
    scaled = _SPLIT * x
    x1 = scaled - (scaled - x)
    scaled = _SPLIT * y
    y1 = scaled - (scaled - y)
    x2, y2 = x - x1, y - y1
    return p, ((x1 * y1 - p) + x1 * y2 + x2 * y1) + x2 * y2


def fma(x: Any, y: Any, z: Any) -> NDArray[np.float64]:
    """x * y + z, rounded to nearest even; operands broadcast."""
    x, y, z = np.broadcast_arrays(*(np.asarray(part, dtype=np.float64) for part in (x, y, z)))
    with np.errstate(all="ignore"):
        high, low = two_product(x, y)
        upper, lower = two_sum(z, low)
        total, rest = two_sum(high, upper)
        odd, error = two_sum(lower, rest)
        bits = np.asarray(odd).view(np.uint64)
        # rounded to odd: where the sum is inexact and even, the neighbour on the side of its error
        away = np.where((error > 0) == (odd > 0), np.uint64(1), np.uint64(0xFFFFFFFFFFFFFFFF))
        odd = np.where((error != 0) & (bits & np.uint64(1) == 0), bits + away, bits).view(np.float64)
        result = np.asarray(total + odd)
        plain = x * y + z
        # a sum or a product with zero rounds once anyway
        simple = (x == 0) | (y == 0) | (z == 0)
        ordinary = np.abs(result) <= _LARGEST
        for part in (x, y, z, high):
            ordinary &= (np.abs(part) >= _LEAST) & (np.abs(part) <= _LARGEST)
    if not ordinary.all():
        result = np.where(simple, plain, result)
        for place in np.argwhere(~(ordinary | simple)):
            index = tuple(place)
            result[index] = _exact(float(x[index]), float(y[index]), float(z[index]), float(plain[index]))
    return result


def _exact(x: float, y: float, z: float, plain: float) -> float:
    """By rational arithmetic; ``plain``, with two roundings, where an operand is no number or the result is zero."""
    if not (np.isfinite(x) and np.isfinite(y) and np.isfinite(z)):
        return plain if np.isfinite(z) or not (np.isfinite(x) and np.isfinite(y)) else z
    total = Fraction(x) * Fraction(y) + Fraction(z)
    if total == 0:
        return plain
    try:
        return total.numerator / total.denominator
    except OverflowError:
        return float("inf") if total > 0 else float("-inf")
