"""Kernels of complex functions made into loops over words: operands decoded, each part rounded either way by its bound.

A part is v = hi + lo within e of the exact one. In formats of at most 24 bits of precision, the ends hi - w and hi + w
for w = e + 2**-48 |hi| enclose it with a margin for lo and for their own roundings; in binary64 they are hi + (lo - e)
and hi + (lo + e), for 1.001 e. Where both round to one word so does the exact part, because rounding is monotonic. What
is left undecided, operands that are not finite and large angles included, is the specification's, after a second stage
that reduces angles by more digits of pi.
"""

from __future__ import annotations

from functools import cache, partial
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlir.floatlib.elementary.complex.hyperbolic import RANGE
from tlir.floatlib.elementary.complex.kernels import BINARY, FUNCTIONS, evaluate, inside
from tlir.floatlib.elementary.complex.parts import Part
from tlir.floatlib.elementary.double.arithmetic import from_bits, normalized
from tlir.floatlib.elementary.double.loop import LARGEST, SMALLEST
from tlir.floatlib.elementary.narrow.kernels import MAX_PRECISION
from tlir.floatlib.elementary.narrow.loop import decode, nearest
from tlir.floatlib.elementary.number import Number
from tlir.floatlib.format import FORMATS, Format
from tlir.floatlib.native import ensure_float_environment
from tlir.floatlib.rounding import round_exact
from tlir.floatlib.soft import choice
from tlir.floatlib.soft.catalog import Kernel
from tlir.floatlib.soft.machine import Machine, Predicate, Word
from tlir.floatlib.soft.rounding import Result
from tlir.floatlib.soft.uint import Uint
from tlir.floatlib.words import Words, word_dtype

FLOAT64 = FORMATS["float64"]
BITS = 64
UNDECIDED = (0x80, 0x40)
"""The marks of the real and of the imaginary part in the byte of flags."""

NUMPY_FROM = 8
"""Elements from which a loop on NumPy, 0.2 to 0.5 ms a call, beats the specification, 25 to 60 us an element."""

NAMES = tuple(FUNCTIONS)


def applies(name: str, fmt: Format) -> bool:
    """Whether there is a kernel for the function and the format: signed, with a zero, and binary64 or of at most 24
    bits of precision and 32 in all, within 2**±300. The arcsine of a real number has the sign of a zero imaginary
    part."""
    narrow = (
        fmt.precision <= MAX_PRECISION
        and fmt.width <= 32
        and fmt.emin - fmt.fraction_bits >= -RANGE
        and fmt.emax <= RANGE
    )
    suits = fmt.signed and fmt.has_zero and (fmt == FLOAT64 or narrow)
    return name in FUNCTIONS and suits and (name != "asin" or fmt.signed_zero)


def has_angle(name: str) -> bool:
    """Whether a function has a second stage, for large angles."""
    return name in FUNCTIONS and FUNCTIONS[name].angle is not None


class Parts(NamedTuple):
    """Both words, and where they are not decided."""

    words: tuple[Word, Word]
    undecided: tuple[Predicate, Predicate]


def parts(m: Machine, name: str, fmt: Format, words: tuple[Uint, ...], far: bool = False) -> Parts:
    """The function of numbers whose parts are ``words``, two for each operand, in machine words of 64 bits."""
    function, wide = FUNCTIONS[name], fmt == FLOAT64
    operands = [from_bits(m, word.limbs[0]) if wide else decode(m, fmt, word).number for word in words]
    held = inside(function, wide, far, *operands)
    stand_ins = (2.0**20 if far and index == function.angle else 0.25 for index in range(len(operands)))
    safe = [x.where(held, value) for x, value in zip(operands, stand_ins, strict=True)]
    outcome = evaluate(function, wide, far, *safe)
    if outcome.certain is not None:
        held = m.both(held, outcome.certain)
    cases = [
        (_not_a_number(m, name, operands), fmt.invalid_word, fmt.invalid_word),
        *(
            (condition, *(round_exact(fmt, 0, value, 0)[0] for value in values))
            for condition, *values in function.cases(*operands)
        ),
    ]
    results, undecided = [], []
    for index, part in enumerate((outcome.real, outcome.imaginary)):
        word, decided = (_wide if wide else partial(_narrow, fmt))(m, part)
        decided = m.both(decided, held)
        for condition, *exact in cases:
            word, decided = m.select(condition, m.constant(exact[index]), word), m.either(decided, condition)
        results.append(word)
        undecided.append(m.negation(decided))
    return Parts((results[0], results[1]), (undecided[0], undecided[1]))


def _not_a_number(m: Machine, name: str, operands: list[Number]) -> Predicate:
    """Where both parts of the result are NaN: if all parts of one operand are, or any of two."""
    first, *others = (m.negation(x.equals(x)) for x in operands)
    for other in others:
        first = (m.either if name in BINARY else m.both)(first, other)
    return first


def _narrow(fmt: Format, m: Machine, part: Part) -> tuple[Word, Predicate]:
    value = normalized(part.value).hi
    width = part.margin + abs(value) * 2.0**-48
    zero = width.equals(0.0)
    low = value.like(0.0).with_sign(part.sign).where(zero, value - width)
    high = low.where(zero, value + width)
    below, above = nearest(m, fmt, low), nearest(m, fmt, high)
    # no number is less than infinity if it is a NaN
    return below, m.both(m.equal(below, above), width < inf)


def _wide(m: Machine, part: Part) -> tuple[Word, Predicate]:
    value, margin = normalized(part.value), part.margin * 1.001
    low, high = value.hi + (value.lo - margin), value.hi + (value.lo + margin)
    size = abs(value.hi)
    zero = m.both(margin.equals(0.0), size.equals(0.0))
    usual = m.both(size > SMALLEST, size < LARGEST)
    word = m.select(zero, part.sign, low.bits)
    return word, m.either(zero, m.both(usual, low.equals(high)))


@cache
def loop(name: str, fmt: Format, far: bool = False) -> Kernel:
    """The loop of a function where it ``applies``: of the words of all parts to that of the real part and, above it,
    the imaginary one, each in the bits that arrays give them; its byte has ``UNDECIDED``. ``far``: the second stage, of
    functions with an angle."""
    container = word_dtype(fmt).itemsize * 8

    def build(m: Machine, *words: Uint) -> Result:
        found = parts(m, name, fmt, words, far)
        zero = m.constant(0)
        marks = [m.select(p, m.constant(mark), zero) for p, mark in zip(found.undecided, UNDECIDED, strict=True)]
        real, imaginary = found.words
        limbs = (
            [real, imaginary] if container == BITS else [m.or_(real, m.shift_left(imaginary, m.constant(container)))]
        )
        return Result(Uint(m, limbs, 2 * container), m.or_(*marks))

    count = 4 if name in BINARY else 2
    label = f"{name}(complex {fmt}{', far' if far else ''})"
    return Kernel(label, (fmt.width,) * count, 2 * container, BITS, True, build, 1)


@cache
def part_loop(name: str, fmt: Format, part: int, far: bool = False) -> Kernel:
    """The loop of the real part (0) or the imaginary one (1); its byte has ``UNDECIDED[0]`` for either."""

    def build(m: Machine, *words: Uint) -> Result:
        found = parts(m, name, fmt, words, far)
        mark = m.select(found.undecided[part], m.constant(UNDECIDED[0]), m.constant(0))
        return Result(Uint(m, [found.words[part]], fmt.width), mark)

    count = 4 if name in BINARY else 2
    label = f"{name}(complex {fmt}, part {part}{', far' if far else ''})"
    return Kernel(label, (fmt.width,) * count, fmt.width, BITS, True, build, 1)


Places = NDArray[np.intp]


def evaluate_fast(name: str, fmt: Format, columns: tuple[Words, ...]) -> tuple[Words, Places]:
    """(words (elements, 2), the indices of undecided elements) for flat arrays of the words of all parts, of equal
    size; where there is a kernel. FloatEnvironmentError where the thread flushes subnormal numbers or does not round
    to nearest."""
    ensure_float_environment()
    words, places = _run(loop(name, fmt), fmt, columns)
    if places.size and has_angle(name):
        some, left = _run(loop(name, fmt, far=True), fmt, tuple(column[places] for column in columns))
        words[places], places = some, places[left]
    return words, places


def _run(kernel: Kernel, fmt: Format, columns: tuple[Words, ...]) -> tuple[Words, Places]:
    result = choice.run(kernel, columns, NUMPY_FROM)
    if result is None:
        return np.zeros((columns[0].size, 2), word_dtype(fmt)), np.arange(columns[0].size)
    words, marks = result
    assert marks is not None
    return np.ascontiguousarray(words).view(word_dtype(fmt)).reshape(-1, 2), np.flatnonzero(marks)


def share_undecided(name: str, fmt: Format, columns: tuple[Words, ...]) -> float:
    """The share of the elements that are left to the specification."""
    return evaluate_fast(name, fmt, columns)[1].size / max(columns[0].size, 1)
