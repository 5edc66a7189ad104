"""The operations of factorizations on expressions, for real and complex numbers alike; a matrix is a list of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tlir.floatlib.convert import from_integer
from tlir.ir.types import BOOL, DType
from tlir.passes.check.expressions import Expressions

Attr = Callable[[str], Any]
Rows = list[list[int]]
Meaning = Callable[["Scalars", Attr, Sequence[Any]], tuple[Any, ...]]
"""The results of an operation on one matrix of each operand, as nested lists."""


class Scalars:
    """The operations on expressions of one float or complex dtype and of its parts.

    ``sizes`` are those of the first operand's matrices: a list of no rows does not say how many columns there are."""

    def __init__(self, table: Expressions, dtype: DType, sizes: Sequence[int]) -> None:
        self.table, self.dtype, self.sizes = table, dtype, sizes
        self.part = dtype.component if dtype.is_complex else dtype

    def apply(self, op: str, *operands: int, dtype: DType | None = None, **attrs: Any) -> int:
        return self.table.apply(op, attrs, dtype or self.table.dtype(operands[0]), operands)

    def number(self, value: int, dtype: DType | None = None) -> int:
        """An integer, rounded once."""
        dtype = dtype or self.dtype
        words = [from_integer(dtype.float_format, part)[0] for part in (value, 0)]
        return self.table.literal(dtype, (words[0], words[1]) if dtype.is_complex else words[0])

    def word(self, word: int, dtype: DType | None = None) -> int:
        """The number whose parts have this word."""
        dtype = dtype or self.dtype
        return self.table.literal(dtype, (word, word) if dtype.is_complex else word)

    def nan(self, dtype: DType | None = None) -> int:
        return self.word(self.part.float_format.invalid_word, dtype)

    def truth(self, value: bool) -> int:
        return self.table.integer(BOOL, value)

    def add(self, x: int, y: int) -> int:
        return self.apply("add", x, y)

    def less(self, x: int, y: int) -> int:
        """x - y."""
        return self.apply("subtract", x, y)

    def times(self, x: int, y: int) -> int:
        return self.apply("multiply", x, y)

    def over(self, x: int, y: int) -> int:
        return self.apply("divide", x, y)

    def parts(self, x: int) -> list[int]:
        if not self.table.dtype(x).is_complex:
            return [x]
        return [self.apply(name, x, dtype=self.part) for name in ("real", "imag")]

    def by_parts(self, function: Callable[[int], int], x: int) -> int:
        parts = [function(part) for part in self.parts(x)]
        return parts[0] if len(parts) == 1 else self.apply("complex", *parts, dtype=self.dtype)

    def from_real(self, x: int) -> int:
        return self.apply("complex", x, self.number(0, self.part), dtype=self.dtype) if self.dtype.is_complex else x

    def conjugate(self, x: int) -> int:
        return self.apply("conjugate", x) if self.table.dtype(x).is_complex else x

    def canonical(self, x: int) -> int:
        return self.by_parts(lambda part: self.apply("maximum", part, part), x)

    def select(self, condition: int, x: int, y: int) -> int:
        return self.table.apply("select", {}, self.table.dtype(x), (condition, x, y))

    def compare(self, x: int, y: int, direction: str) -> int:
        return self.apply("compare", x, y, dtype=BOOL, comparison_direction=direction)

    def both(self, x: int, y: int) -> int:
        return self.apply("and", x, y, dtype=BOOL)

    def is_zero(self, x: int) -> int:
        truth = self.truth(self.part.float_format.has_zero)
        for part in self.parts(x):
            truth = self.both(truth, self.compare(part, self.number(0, self.part), "EQ"))
        return truth

    def beats(self, x: int, y: int, direction: str) -> int:
        """Whether x comes before y, where NaN does before every number."""
        better = self.compare(x, y, direction)
        if not self.part.float_format.has_nan:
            return better
        number = self.apply("not", self.compare(y, y, "NE"), dtype=BOOL)
        return self.apply("or", better, self.both(self.compare(x, x, "NE"), number), dtype=BOOL)


def known(s: Scalars, rows: Rows) -> Rows:
    """The elements of an operand, with canonical NaN."""
    return [[s.canonical(x) for x in row] for row in rows]


def adjoint(s: Scalars, rows: Rows) -> Rows:
    return [[s.conjugate(x) for x in column] for column in zip(*rows, strict=True)]
