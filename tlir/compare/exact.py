"""Sums of dyadic numbers whose sign is exact, whatever their exponents.

A number is a list of *terms* ``(n, k)`` that stand for n * 2**k; its value is their sum. The exponents of a wide format
reach 2**29, so terms are never brought to a common exponent unless they can cancel: what is far below the sum so far
cannot change its sign.
"""

from __future__ import annotations

from math import isqrt

from tlir.floatlib.format import Format
from tlir.floatlib.rounding import round_exact, round_quotient
from tlir.floatlib.value import Value

Terms = list[tuple[int, int]]

DISPLAY = Format(exponent_bits=30, fraction_bits=63)
"""The format in which differences are reported: 64 bits of precision and more exponents than any format but the widest
has, so that rounding a difference to it loses nothing that a reader would see, and an integer difference nothing."""

_KEPT_BITS = 256
"""Leading bits of a sum that are certain before it is rounded to ``DISPLAY``."""


def terms_of(fmt: Format, word: int) -> Terms:
    """The value of a finite word."""
    sign, significand, exponent = fmt.decode(word)
    return [(-significand if sign else significand, exponent)]


def negated(terms: Terms) -> Terms:
    return [(-n, k) for n, k in terms]


def scaled(terms: Terms, factor: int) -> Terms:
    return [(n * factor, k) for n, k in terms]


def product(a: Terms, b: Terms) -> Terms:
    """The product of two sums, multiplied out."""
    return [(m * n, j + k) for m, j in a for n, k in b]


def leading(terms: Terms, bits: int = _KEPT_BITS) -> tuple[int, int]:
    """``(n, k)``: n * 2**k is the sum, exact or with an error below 2**-bits of it; the sign of n is exact."""
    ordered = sorted((term for term in terms if term[0]), key=lambda term: term[0].bit_length() + term[1], reverse=True)
    spread = len(ordered).bit_length()
    n, k = 0, 0
    for m, j in ordered:
        # all that is left is below 2**(top + spread)
        top = m.bit_length() + j
        if n and top + spread < n.bit_length() + k - bits - 1:
            break
        if not n:
            n, k = m, j
        elif k > j:
            n, k = (n << (k - j)) + m, j
        else:
            n += m << (j - k)
    return n, k


def sign(terms: Terms) -> int:
    """-1, 0 or 1, exactly."""
    n, _ = leading(terms, 0)
    return (n > 0) - (n < 0)


def _trimmed(n: int, k: int) -> tuple[int, int]:
    """n > 0 cut to ``_KEPT_BITS`` bits, the last one odd if something was cut off."""
    excess = n.bit_length() - _KEPT_BITS
    if excess <= 0:
        return n, k
    return n >> excess | int(n & ((1 << excess) - 1) != 0), k + excess


def modulus(components: list[Terms]) -> Value:
    """The absolute value of a number (one component) or the modulus of a complex one (two), rounded to ``DISPLAY``."""
    if len(components) == 1:
        n, k = _trimmed_leading(components[0])
        return Value(DISPLAY, round_exact(DISPLAY, 0, n, k)[0])
    n, k = _trimmed_leading([term for part in components for term in product(part, part)])
    if n == 0:
        return Value(DISPLAY, 0)
    # an even exponent, and enough bits for the root to have twice the precision
    shift = 2 * DISPLAY.precision + (k & 1)
    n, k = n << shift, k - shift
    root = isqrt(n)
    return Value(DISPLAY, round_exact(DISPLAY, 0, root, k // 2, root * root != n)[0])


def _trimmed_leading(terms: Terms) -> tuple[int, int]:
    n, k = leading(terms)
    return _trimmed(abs(n), k)


def quotient(a: Value, b: Value) -> Value:
    """a / b of two numbers of ``DISPLAY`` that are not negative, b above zero."""
    _, n, j = DISPLAY.decode(a.word)
    _, d, k = DISPLAY.decode(b.word)
    return Value(DISPLAY, round_quotient(DISPLAY, 0, n, d, j - k)[0])
