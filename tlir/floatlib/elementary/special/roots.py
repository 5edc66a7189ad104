"""Roots of unity on words: cos and sin of 2 pi j / n, correctly rounded."""

from __future__ import annotations

from functools import lru_cache

from flint import arb, fmpq

from tlir.floatlib.arb import round_enclosure
from tlir.floatlib.format import Format
from tlir.floatlib.rounding import round_exact, zero_result


@lru_cache(maxsize=16)
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
