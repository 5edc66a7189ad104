"""Integers to and from decimal digits at any length: ``int`` and ``str`` refuse more than 4,300 digits by default."""

from __future__ import annotations

_CHUNK = 4000


def integer_of_digits(digits: str) -> int:
    """The integer of a text of decimal digits, halving it down to pieces that ``int`` takes."""
    if len(digits) <= _CHUNK:
        return int(digits)
    low = len(digits) // 2
    return integer_of_digits(digits[:-low]) * 10**low + integer_of_digits(digits[-low:])


def digits_of_integer(value: int) -> str:
    """The decimal digits of a non-negative integer."""
    # log10(2) < 0.30103
    count = value.bit_length() * 30103 // 100000 + 1
    if count <= _CHUNK:
        return str(value)
    low = count // 2
    high, rest = divmod(value, 10**low)
    return digits_of_integer(high) + digits_of_integer(rest).zfill(low)
