"""Integer expressions over loop variables: where a kernel reads and writes.

Every expression knows the least and greatest value that it can take, and the functions here build expressions in one
normal form: a sum of integer multiples of atoms and a constant. An atom is a loop variable, a quotient or remainder by
a positive constant, or an integer value that the kernel has computed. Because the ranges are known, splitting an index
and joining it again (which is what a chain of reshapes does) gives the variables back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tlir.kernel.ir import Value


@dataclass(frozen=True)
class Variable:
    """A loop variable: ``0 <= variable < extent``. ``number`` is unique in its kernel."""

    number: int
    extent: int

    @property
    def least(self) -> int:
        return 0

    @property
    def greatest(self) -> int:
        return max(self.extent - 1, 0)

    def __str__(self) -> str:
        return f"i{self.number}"


@dataclass(frozen=True)
class Quotient:
    """``floor(dividend / divisor)`` for a positive divisor."""

    dividend: Index
    divisor: int

    @property
    def least(self) -> int:
        return self.dividend.least // self.divisor

    @property
    def greatest(self) -> int:
        return self.dividend.greatest // self.divisor

    def __str__(self) -> str:
        return f"({self.dividend} floordiv {self.divisor})"


@dataclass(frozen=True)
class Remainder:
    """``dividend - divisor * floor(dividend / divisor)`` for a positive divisor."""

    dividend: Index
    divisor: int

    @property
    def least(self) -> int:
        return 0

    @property
    def greatest(self) -> int:
        return self.divisor - 1

    def __str__(self) -> str:
        return f"({self.dividend} mod {self.divisor})"


@dataclass(frozen=True)
class FromValue:
    """An integer value that the kernel has computed, known to lie between ``least`` and ``greatest``."""

    value: Value
    least: int
    greatest: int

    def __str__(self) -> str:
        return f"[{self.value}: {self.least} to {self.greatest}]"


Atom = Variable | Quotient | Remainder | FromValue


@dataclass(frozen=True)
class Index:
    """``constant + sum of coefficient * atom``; no coefficient is 0, no atom occurs twice."""

    terms: tuple[tuple[int, Atom], ...]
    constant: int = 0

    @cached_property
    def least(self) -> int:
        return self.constant + sum(c * (a.least if c > 0 else a.greatest) for c, a in self.terms)

    @cached_property
    def greatest(self) -> int:
        return self.constant + sum(c * (a.greatest if c > 0 else a.least) for c, a in self.terms)

    @property
    def is_constant(self) -> bool:
        return not self.terms

    def coefficient(self, variable: Variable) -> int:
        """Of the variable itself; occurrences inside quotients and remainders do not count."""
        return next((c for c, atom in self.terms if atom == variable), 0)

    def variables(self) -> frozenset[Variable]:
        """All variables that the value depends on, directly or inside other atoms."""
        found: set[Variable] = set()
        for _, atom in self.terms:
            if isinstance(atom, Variable):
                found.add(atom)
            elif isinstance(atom, Quotient | Remainder):
                found |= atom.dividend.variables()
        return frozenset(found)

    def values(self) -> tuple[Value, ...]:
        """The computed values that it depends on."""
        found: list[Value] = []
        for _, atom in self.terms:
            if isinstance(atom, FromValue):
                found.append(atom.value)
            elif isinstance(atom, Quotient | Remainder):
                found += atom.dividend.values()
        return tuple(dict.fromkeys(found))

    def __str__(self) -> str:
        parts = [str(atom) if c == 1 else f"{c}*{atom}" for c, atom in self.terms]
        if self.constant or not parts:
            parts.append(str(self.constant))
        return " + ".join(parts)


def constant(value: int) -> Index:
    return Index((), value)


ZERO = constant(0)


def variable(atom: Variable) -> Index:
    """The index that is a loop variable; a loop of one step has the constant 0."""
    return ZERO if atom.extent <= 1 else Index(((1, atom),))


def from_value(value: Value, least: int, greatest: int) -> Index:
    return constant(least) if least == greatest else Index(((1, FromValue(value, least, greatest)),))


def total(parts: Iterable[tuple[int, Index]], offset: int = 0) -> Index:
    """``offset + sum of coefficient * index``."""
    coefficients: dict[Atom, int] = {}
    for coefficient, index in parts:
        offset += coefficient * index.constant
        for c, atom in index.terms:
            coefficients[atom] = coefficients.get(atom, 0) + coefficient * c
    return _normal(coefficients, offset)


def add(x: Index, y: Index | int) -> Index:
    return total([(1, x)], y) if isinstance(y, int) else total([(1, x), (1, y)])


def multiply(x: Index, factor: int) -> Index:
    return total([(factor, x)])


def quotient(x: Index, divisor: int) -> Index:
    """``floor(x / divisor)``."""
    if divisor == 1:
        return x
    whole, rest = _split(x, divisor)
    if rest.least >= 0 and rest.greatest < divisor:
        return whole
    least = rest.least // divisor
    if rest.greatest // divisor == least:
        return add(whole, least)
    return total([(1, whole), (1, Index(((1, Quotient(rest, divisor)),)))])


def remainder(x: Index, divisor: int) -> Index:
    """``x`` modulo ``divisor``, from 0 to ``divisor - 1``."""
    if divisor == 1:
        return ZERO
    _, rest = _split(x, divisor)
    floor = rest.least // divisor
    if rest.greatest // divisor == floor:
        return add(rest, -floor * divisor)
    return Index(((1, Remainder(rest, divisor)),))


def _split(x: Index, divisor: int) -> tuple[Index, Index]:
    """``(whole, rest)`` with ``x = divisor * whole + rest``, all multiples of the divisor being in ``whole``."""
    whole = {atom: c // divisor for c, atom in x.terms if c % divisor == 0}
    rest = {atom: c for c, atom in x.terms if c % divisor}
    return _normal(whole, x.constant // divisor), _normal(rest, x.constant % divisor)


def _normal(coefficients: dict[Atom, int], offset: int) -> Index:
    """The index of these terms, with ``d * (x floordiv d) + (x mod d)`` joined to ``x``, in a fixed order."""
    for atom, c in coefficients.items():
        if isinstance(atom, Remainder) and c:
            other = Quotient(atom.dividend, atom.divisor)
            if coefficients.get(other) == c * atom.divisor:
                others = [(k, Index(((1, a),))) for a, k in coefficients.items() if a not in (atom, other)]
                return total([*others, (c, atom.dividend)], offset)
    terms = ((c, atom) for atom, c in coefficients.items() if c)
    return Index(tuple(sorted(terms, key=lambda term: (-abs(term[0]), str(term[1])))), offset)


def flatten(indices: Iterable[Index], shape: Iterable[int]) -> Index:
    """The row-major offset of an element of an array of this shape."""
    offset = ZERO
    for index, extent in zip(indices, shape, strict=True):
        offset = total([(extent, offset), (1, index)])
    return offset


def unflatten(offset: Index, shape: tuple[int, ...]) -> tuple[Index, ...]:
    """The indices of the element at a row-major offset."""
    indices = []
    for axis in reversed(range(len(shape))):
        if axis == 0:
            indices.append(offset)
        else:
            indices.append(remainder(offset, shape[axis]) if shape[axis] else ZERO)
            offset = quotient(offset, shape[axis]) if shape[axis] else ZERO
    return tuple(reversed(indices))
