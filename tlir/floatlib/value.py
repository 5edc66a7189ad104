"""One number of a format, as a Python object that keeps its word and prints exactly."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from tlir.floatlib.format import Format


@dataclass(frozen=True, slots=True)
class Value:
    """The number that ``word`` is in ``format``. Equality is equality of format and word."""

    format: Format
    word: int

    def __str__(self) -> str:
        from tlir.floatlib.printing import to_decimal

        return to_decimal(self.format, self.word)

    def __repr__(self) -> str:
        return f"Value({self})"

    def __float__(self) -> float:
        """The nearest binary64 number."""
        from tlir.floatlib.convert import convert
        from tlir.floatlib.format import FORMATS

        word, _ = convert(self.format, FORMATS["float64"], self.word)
        return float.fromhex("nan") if FORMATS["float64"].is_nan(word) else _binary64(word)

    def as_fraction(self) -> Fraction:
        """The exact value; ValueError for infinities, NaN, and numbers too long to write down (``to_fraction``)."""
        from tlir.floatlib.convert import to_fraction

        if not self.format.is_finite(self.word):
            raise ValueError(f"{self} is not a rational number")
        return to_fraction(self.format, self.word)


def _binary64(word: int) -> float:
    import struct

    return float(struct.unpack("<d", struct.pack("<Q", word))[0])
