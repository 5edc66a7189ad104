"""The specification of conversions: between formats, and to and from integers and exact rationals."""

from __future__ import annotations

from fractions import Fraction

from tlir.floatlib.arithmetic import NEAREST_EVEN, Result, integer_part
from tlir.floatlib.format import Format
from tlir.floatlib.rounding import NO_FLAGS, Flags, Rounding, infinity_word, round_exact, round_fraction

MAX_RATIONAL_BITS = 1 << 26
"""The longest numerator or denominator that ``to_fraction`` builds: 8 MB; only 28 exponent bits or more exceed it."""


def convert(
    source: Format, target: Format, a: int, rounding: Rounding = NEAREST_EVEN, saturate: bool = False
) -> Result:
    """The word of ``target`` for the word ``a`` of ``source``, rounded once.

    A NaN becomes the canonical NaN, INVALID if it is signaling or the target has none. An infinity becomes
    ``rounding.infinity_word``, with OVERFLOW and INEXACT if that is no infinity. ``saturate`` gives the largest finite
    number of the sign for both overflow and infinity. Between equal formats the word is kept."""
    if source == target and not saturate:
        return a, NO_FLAGS
    if source.is_nan(a):
        raised = source.is_signaling(a) or not target.has_nan
        return target.invalid_word, Flags.INVALID if raised else NO_FLAGS
    sign = source.sign(a)
    if source.is_inf(a):
        if sign and not target.signed:
            return target.invalid_word, Flags.INVALID
        lost = saturate or not target.infinities
        return infinity_word(target, sign, saturate), Flags.OVERFLOW | Flags.INEXACT if lost else NO_FLAGS
    _, significand, exponent = source.decode(a)
    return round_exact(target, sign, significand, exponent, rounding=rounding, saturate=saturate)


def to_integer(
    fmt: Format,
    a: int,
    width: int,
    signed: bool,
    rounding: Rounding = Rounding.TOWARD_ZERO,
    saturating: bool = True,
) -> tuple[int, Flags]:
    """The integer (a Python int, negative for signed types) of ``width`` bits that a rounds to; INEXACT if it differs.

    NaN gives 0. A number out of range gives the nearest bound or, not saturating, its low ``width`` bits in two's
    complement (0 for an infinity); both raise INVALID alone."""
    low = -(1 << (width - 1)) if signed else 0
    high = (1 << (width - int(signed))) - 1
    if fmt.is_nan(a):
        return 0, Flags.INVALID
    sign = fmt.sign(a)
    if fmt.is_inf(a):
        return (low if sign else high) if saturating else 0, Flags.INVALID
    _, significand, exponent = fmt.decode(a)
    inexact = False
    if exponent < 0:
        magnitude, inexact = integer_part(sign, significand, exponent, rounding)
    elif significand and exponent > width:
        # far out of range, and a multiple of 2**width
        return (low if sign else high) if saturating else 0, Flags.INVALID
    else:
        magnitude = significand << exponent
    value = -magnitude if sign else magnitude
    if low <= value <= high:
        return value, Flags.INEXACT if inexact else NO_FLAGS
    if saturating:
        return (low if value < low else high), Flags.INVALID
    wrapped = value & ((1 << width) - 1)
    return wrapped - (1 << width) if wrapped > high else wrapped, Flags.INVALID


def from_integer(fmt: Format, value: int, rounding: Rounding = NEAREST_EVEN, saturate: bool = False) -> Result:
    """The word of an integer of any size, rounded once; 0 gives +0."""
    return round_exact(fmt, int(value < 0), abs(value), 0, rounding=rounding, saturate=saturate)


def to_fraction(fmt: Format, a: int) -> Fraction:
    """The exact value of a finite word. ValueError for NaN and infinities, and for one that would take more than
    ``MAX_RATIONAL_BITS`` to write down."""
    sign, significand, exponent = fmt.decode(a)
    if significand == 0:
        return Fraction(0)
    if abs(exponent) > MAX_RATIONAL_BITS:
        raise ValueError(f"{significand} * 2**{exponent} is too long to write as a fraction")
    value = Fraction(significand << exponent) if exponent >= 0 else Fraction(significand, 1 << -exponent)
    return -value if sign else value


from_fraction = round_fraction
"""``from_fraction(fmt, value, ...)`` is the rounding step for rationals, under the name that pairs with the above."""
