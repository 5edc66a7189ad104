"""Roots of unity on words: cos and sin of 2 pi j / n, correctly rounded.

Many of them in binary32 and binary64 are products of two of about sqrt(n) whose parts are known to 106 bits, computed
in pairs of doubles (Dekker, A floating-point technique for extending the available precision, 1971). Those of which the
error bound does not decide the rounding are evaluated one by one, as all are in other formats.
"""

from __future__ import annotations

from functools import lru_cache
from math import isqrt
from typing import Any

import numpy as np
from flint import arb, ctx, fmpq, fmpz
from numpy.typing import NDArray

from tlir.floatlib.arb import round_enclosure
from tlir.floatlib.exclusive import exclusive
from tlir.floatlib.format import FORMATS, Format
from tlir.floatlib.rounding import round_exact, zero_result
from tlir.floatlib.words import from_ints


@lru_cache(maxsize=16)
@exclusive
def roots_of_unity(fmt: Format, n: int) -> tuple[tuple[int, int], ...]:
    """The words (cos, sin) of 2 pi j / n for j = 0, 1, ..., n - 1. Zeros are +0.

    Rational values are 0, ±1/2 and ±1 (Niven), and no other dyadic, so that the enclosures end. Each value is that of
    an angle of at most an eighth of a turn, so symmetric ones are the same words up to the sign."""
    return tuple((_cosine(fmt, j, n), _cosine(fmt, 4 * j - n, 4 * n)) for j in range(n))


def _cosine(fmt: Format, j: int, n: int) -> int:
    """The word of cos(2 pi j / n)."""
    j = abs(j) % n
    j = min(j, n - j)
    if 4 * j > n:
        word = _cosine(fmt, n - 2 * j, 2 * n)
        return word if fmt.is_zero(word) or not fmt.signed else word ^ fmt.sign_mask
    return _first_quadrant(fmt, fmpq(2 * j, n))


@lru_cache(maxsize=1 << 16)
def _first_quadrant(fmt: Format, turn: fmpq) -> int:
    """cos(pi turn) for 0 <= turn <= 1/2."""
    if turn == fmpq(1, 2):
        return zero_result(fmt, 0)[0]
    if turn == 0:
        return round_exact(fmt, 0, 1, 0)[0]
    if turn == fmpq(1, 3):
        return round_exact(fmt, 0, 1, -1)[0]
    return round_enclosure(fmt, lambda: arb.cos_pi_fmpq(turn))[0]


MANY = 256
"""Roots from which on products of few are faster."""

PRODUCT_ERROR = 2.0**-95
"""Of the parts of a product: two products of pairs, each within 2**-100 (their factors within 2**-105, what is left out
and the rounding of the lower parts within 2**-102, of numbers of at most 1), and a sum, within 2**-103."""

Doubles = NDArray[np.float64]
Pair = tuple[Doubles, Doubles]
"""A sum of two doubles, the second at most half a unit in the last place of the first."""


@lru_cache(maxsize=16)
@exclusive
def root_words(fmt: Format, n: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """The words of cos and sin of 2 pi j / n for j = 0, 1, ..., n - 1, as arrays that are not to be changed."""
    if n < MANY or fmt not in (FORMATS["float32"], FORMATS["float64"]):
        pairs = roots_of_unity(fmt, n)
        parts = [from_ints(fmt, [pair[part] for pair in pairs]) for part in (0, 1)]
    else:
        parts = _products(fmt, n)
    for part in parts:
        part.setflags(write=False)
    return parts[0], parts[1]


def _products(fmt: Format, n: int) -> list[NDArray[Any]]:
    count = isqrt(n - 1) + 1
    near = [_known(fmpq(2 * j, n)) for j in range(count)]
    far = [_known(fmpq(2 * count * j, n)) for j in range(-(-n // count))]

    def columns(known: list[tuple[float, ...]], shape: tuple[int, int]) -> tuple[Pair, Pair]:
        a, b, c, d = np.array(known).T
        return (a.reshape(shape), b.reshape(shape)), (c.reshape(shape), d.reshape(shape))

    (cos_far, sin_far), (cos_near, sin_near) = columns(far, (-1, 1)), columns(near, (1, -1))
    minus = -sin_near[0], -sin_near[1]
    parts = [
        _sum(_product(cos_far, cos_near), _product(sin_far, minus)),
        _sum(_product(sin_far, cos_near), _product(cos_far, sin_near)),
    ]
    results = []
    for number, (high, low) in enumerate(parts):
        high, low = high.reshape(-1)[:n], low.reshape(-1)[:n]
        words, decided = _rounded(fmt, high, low)
        for j in np.flatnonzero(~decided).tolist():
            words[j] = _cosine(fmt, j, n) if number == 0 else _cosine(fmt, 4 * j - n, 4 * n)
        results.append(words)
    return results


def _rounded(fmt: Format, high: Doubles, low: Doubles) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The words of sums, and where both ends of what they may be have the same."""
    least, most = high + (low - PRODUCT_ERROR), high + (low + PRODUCT_ERROR)
    if fmt == FORMATS["float64"]:
        return most.view(np.uint64), least == most
    # no double between these is farther from what is rounded than they are
    ends = [np.nextafter(x, way).astype(np.float32).view(np.uint32) for x, way in ((least, -np.inf), (most, np.inf))]
    return ends[1], ends[0] == ends[1]


def _product(x: Pair, y: Pair) -> Pair:
    high = x[0] * y[0]
    (a, b), (c, d) = _split(x[0]), _split(y[0])
    rest = ((a * c - high) + a * d + b * c) + b * d
    return high, rest + (x[0] * y[1] + x[1] * y[0])


def _split(x: Doubles) -> Pair:
    """Two numbers of 26 bits that sum up to x (Veltkamp)."""
    scaled = x * (2.0**27 + 1)
    high = scaled - (scaled - x)
    return high, x - high


def _sum(x: Pair, y: Pair) -> Pair:
    total = x[0] + y[0]
    back = total - x[0]
    rest = (x[0] - (total - back)) + (y[0] - back)
    low = rest + (x[1] + y[1])
    high = total + low
    return high, low - (high - total)


def _known(turn: fmpq) -> tuple[float, ...]:
    """cos and sin of pi times the turn, each as a sum of two doubles, within 2**-105."""
    before, ctx.prec = ctx.prec, 160
    try:
        values = [arb.cos_pi_fmpq(turn), arb.sin_pi_fmpq(turn)]
        scaled = [_integer((value * arb(fmpz(2) ** 120)).mid().floor()) for value in values]
    finally:
        ctx.prec = before
    found = []
    for number in scaled:
        high = number / 2**120
        found += [high, (number - int(high * 2**120)) / 2**120]
    return tuple(found)


def _integer(value: arb) -> int:
    whole = value.unique_fmpz()
    assert whole is not None
    return int(whole)
