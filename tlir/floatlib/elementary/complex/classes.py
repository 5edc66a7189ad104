"""Results of complex functions of one operand that follow from the classes of its parts: where one of them is infinite
or NaN, or both are zero.

A part has one of eight classes: zero, another number, infinity or NaN, of either sign. In these cases of ``words`` only
classes count, except that a function with an angle has the signs of the angle's sine and cosine beside an infinity. So
what the specification gives for one number of a class is what it gives for each.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from tlir.floatlib.elementary.complex.words import elementary_complex
from tlir.floatlib.format import Format
from tlir.floatlib.soft.machine import Machine, Predicate, Word
from tlir.floatlib.soft.rounding import unpack
from tlir.floatlib.soft.uint import Uint

CLASSES = 8
ZERO, NUMBER, INFINITY, NAN = range(4)


class Table(NamedTuple):
    """For each pair of classes both words, and 1 where they are known."""

    real: tuple[int, ...]
    imaginary: tuple[int, ...]
    known: tuple[int, ...]


@cache
def table(name: str, fmt: Format, angle: int | None) -> Table:
    """Of a function, of whose operand the part ``angle`` is an angle."""
    examples = _examples(fmt)
    rows = []
    for x in range(CLASSES):
        for y in range(CLASSES):
            kinds = x % 4, y % 4
            special = INFINITY in kinds or NAN in kinds or kinds == (ZERO, ZERO)
            if angle is not None and kinds[angle] == NUMBER and kinds[1 - angle] == INFINITY:
                special = False
            real, imaginary = examples[x], examples[y]
            if special and real is not None and imaginary is not None:
                rows.append((*elementary_complex(name, fmt, (real, imaginary))[0], 1))
            else:
                rows.append((0, 0, 0))
    return Table(*zip(*rows, strict=True))


def _examples(fmt: Format) -> list[int | None]:
    """A word of each class, where the format has one."""
    magnitudes = [fmt.zero(0), fmt.min_normal, fmt.inf, fmt.nan]
    found: list[int | None] = list(magnitudes)
    for kind, word in enumerate(magnitudes):
        signed = fmt.signed_zero if kind == ZERO else word is not None and not fmt.is_nan(word | fmt.sign_mask)
        negative = kind == NAN or signed
        found.append(word | fmt.sign_mask if word is not None and negative else None)
    return found


def evaluate(
    m: Machine, name: str, fmt: Format, angle: int | None, x: Uint, y: Uint
) -> tuple[tuple[Word, Word], Predicate]:
    """Both words, and where they are the function's."""
    index = m.or_(m.shift_left(_class(m, fmt, x), m.constant(3)), _class(m, fmt, y))
    found = table(name, fmt, angle)
    known = m.equal(m.table(found.known, index), m.constant(1))
    return (m.table(found.real, index), m.table(found.imaginary, index)), known


def _class(m: Machine, fmt: Format, word: Uint) -> Word:
    parts = unpack(m, fmt, word)
    c = m.constant
    magnitude = m.and_(word.limbs[0], c(fmt.magnitude_mask))
    kind = m.select(m.equal(magnitude, c(0)), c(ZERO), c(NUMBER))
    if fmt.infinities:
        kind = m.select(parts.inf, c(INFINITY), kind)
    if fmt.has_nan:
        kind = m.select(parts.nan, c(NAN), kind)
    sign = m.shift_left(m.word_of(parts.sign), c(2))
    return m.or_(kind, sign)
