"""Single elements as exact text: shortest decimals that read back to the same word, and hexadecimal words; distances
as short text."""

from __future__ import annotations

from collections.abc import Callable

from tlir.compare.pairs import by_element
from tlir.floatlib.format import Format
from tlir.floatlib.printing import to_decimal
from tlir.ir.tensor import Tensor

EXACT_DIGITS = 20
"""Digits up to which a distance is written in full: those of every distance in formats of 64 bits."""


def ulps_text(ulps: int, group: str = "") -> str:
    """A distance in units in the last place for people: in full, its digits grouped by ``group``, or with four digits
    ("1.205e+1232") in formats where it has hundreds."""
    if ulps < 10**EXACT_DIGITS:
        return f"{ulps:{group}}"
    from decimal import Decimal

    return f"{Decimal(ulps):.3e}"


def word_values(tensor: Tensor, flat: int) -> list[int]:
    """The words of element number ``flat`` in row-major order: one, or two of a complex element."""
    row = by_element(tensor.dtype, tensor.words)[flat]
    limbs = tensor.dtype.limbs
    return [
        sum(int(limb) << (64 * i) for i, limb in enumerate(row[start : start + limbs]))
        for start in range(0, len(row), limbs)
    ]


def element_words(tensor: Tensor, flat: int) -> str:
    """The element's words as hexadecimal digits, as an artifact writes them: "3f800000"."""
    digits = -(-tensor.dtype.bits // 4)
    return " ".join(f"{word:0{digits}x}" for word in word_values(tensor, flat))


def element_text(tensor: Tensor, flat: int, number: Callable[[Format, int], str] = to_decimal) -> str:
    """The element's exact value: ``1.5``, ``-3``, ``true``, ``1.0-0.5j``, ``nan``; ``number`` writes the word of a
    floating-point format."""
    dtype = tensor.dtype
    values = word_values(tensor, flat)
    if dtype.is_bool:
        return "true" if values[0] else "false"
    if dtype.is_integer:
        signed = dtype.is_signed and values[0] >> (dtype.bits - 1)
        return str(values[0] - (1 << dtype.bits) if signed else values[0])
    real, *rest = (number(dtype.float_format, value) for value in values)
    if not rest:
        return real
    return f"{real}{'' if rest[0].startswith('-') else '+'}{rest[0]}j"
