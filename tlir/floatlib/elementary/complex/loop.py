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

from tlir.floatlib.elementary.complex import classes
from tlir.floatlib.elementary.complex.hyperbolic import RANGE
from tlir.floatlib.elementary.complex.kernels import BINARY, FUNCTIONS, GROWN, THERE, UNARY, evaluate, inside
from tlir.floatlib.elementary.complex.parts import Part
from tlir.floatlib.elementary.double.arithmetic import from_bits, normalized
from tlir.floatlib.elementary.double.loop import LARGEST, SMALLEST
from tlir.floatlib.elementary.narrow.kernels import MAX_PRECISION
from tlir.floatlib.elementary.narrow.loop import decode, nearest, nearest_with_flags
from tlir.floatlib.elementary.number import Number
from tlir.floatlib.format import FORMATS, Format
from tlir.floatlib.native import ensure_float_environment
from tlir.floatlib.rounding import Flags, round_exact
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
LEFT = 0xC0
"""Both marks."""

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


def has_angle(name: str, fmt: Format) -> bool:
    """Whether a function has a second stage, for angles from 6400 on."""
    return FUNCTIONS[name].angle is not None and fmt.emax >= 12


def has_classes(name: str) -> bool:
    """Whether a function has ``special_parts``."""
    return name in UNARY


class Parts(NamedTuple):
    """Both words, where they are not decided, and the flags of both together (0 unless asked for)."""

    words: tuple[Word, Word]
    undecided: tuple[Predicate, Predicate]
    flags: Word


def parts(m: Machine, name: str, fmt: Format, words: tuple[Uint, ...], far: bool = False, flags: bool = False) -> Parts:
    """The function of numbers whose parts are ``words``, two for each operand, in machine words of 64 bits. With flags,
    a part that may be exact is not decided, nor is a NaN."""
    function, wide = FUNCTIONS[name], fmt == FLOAT64
    operands = [from_bits(m, word.limbs[0]) if wide else decode(m, fmt, word).number for word in words]
    held = inside(function, wide, far, *operands)
    stand_ins = (2.0**20 if far and index == function.angle else 0.25 for index in range(len(operands)))
    safe = [x.where(held, value) for x, value in zip(operands, stand_ins, strict=True)]
    outcome = evaluate(function, wide, far, *safe)
    if outcome.certain is not None:
        held = m.both(held, outcome.certain)
    cases = []
    if flags:
        # infinite operands raise none, and beyond the limits they are not known
        for index, x in enumerate(operands):
            held = m.both(held, abs(x) < inf)
            if index != function.angle:
                held = m.both(held, m.negation(m.either(*function.is_beyond(x))))
    else:
        cases = [
            (_not_a_number(m, name, operands), fmt.invalid_word, fmt.invalid_word),
            *(
                (
                    condition,
                    *(fmt.invalid_word if value is None else round_exact(fmt, 0, value, 0)[0] for value in values),
                )
                for condition, *values in function.cases(*operands)
            ),
        ]
    on_axis = operands[0].equals(0.0)
    for x in operands[1:]:
        on_axis = m.either(on_axis, x.equals(0.0))
    results, undecided, raised = [], [], m.constant(0)
    for index, part in enumerate((outcome.real, outcome.imaginary)):
        word, decided, more = (_wide if wide else partial(_narrow, fmt))(m, part, flags)
        if function.beyond is not None and function.angle is not None and wide and not flags:
            x, beyond = operands[1 - function.angle], function.beyond
            for condition, ends in zip(function.is_beyond(x), (beyond.below, beyond.above), strict=True):
                if ends[index] != THERE:
                    end, certain = _at_end(m, part, ends[index] == GROWN)
                    word, decided = m.select(condition, end, word), _chosen(m, condition, certain, decided)
        decided, raised = m.both(decided, held), m.or_(raised, more)
        if flags and wide:
            # what has vanished has the right word and other flags than a zero that is exact
            nothing = m.equal(m.shift_left(word, m.constant(1)), m.constant(0))
            decided = m.both(decided, m.either(m.negation(nothing), on_axis))
        for condition, *exact in cases:
            word, decided = m.select(condition, m.constant(exact[index]), word), m.either(decided, condition)
        results.append(word)
        undecided.append(m.negation(decided))
    return Parts((results[0], results[1]), (undecided[0], undecided[1]), raised)


def _not_a_number(m: Machine, name: str, operands: list[Number]) -> Predicate:
    """Where both parts of the result are NaN: if all parts of one operand are, or any of two."""
    first, *others = (m.negation(x.equals(x)) for x in operands)
    for other in others:
        first = (m.either if name in BINARY else m.both)(first, other)
    return first


Rounded = tuple[Word, Predicate, Word]
"""The word of a part, whether it is certain, and its flags."""


def _narrow(fmt: Format, m: Machine, part: Part, flags: bool) -> Rounded:
    value = normalized(part.value).hi
    width = part.margin + abs(value) * 2.0**-48
    zero = width.equals(0.0)
    low = value.like(0.0).with_sign(part.sign).where(zero, value - width)
    high = low.where(zero, value + width)
    # no number is less than infinity if it is a NaN
    proper = width < inf
    if not flags:
        below, above = nearest(m, fmt, low), nearest(m, fmt, high)
        return below, m.both(m.equal(below, above), proper), m.constant(0)
    (below, raised), (above, others) = (nearest_with_flags(m, fmt, end) for end in (low, high))
    decided = m.both(m.both(m.equal(below, above), m.equal(raised, others)), proper)
    number = decode(m, fmt, Uint(m, [below], fmt.width)).number
    may_be_exact = m.negation(m.either(zero, m.either(number < low, number > high)))
    return below, m.both(decided, m.negation(may_be_exact)), m.select(zero, m.constant(0), raised)


def _wide(m: Machine, part: Part, flags: bool) -> Rounded:
    value, margin = normalized(part.value), part.margin * 1.001
    low, high = value.hi + (value.lo - margin), value.hi + (value.lo + margin)
    size = abs(value.hi)
    zero = m.both(margin.equals(0.0), size.equals(0.0))
    usual = m.both(size > SMALLEST, size < LARGEST)
    word, decided = m.select(zero, part.sign, low.bits), m.both(usual, low.equals(high))
    if not flags:
        return word, m.either(zero, decided), m.constant(0)
    # the distance of the exact part from the word
    decided = m.both(decided, abs(value.lo) > margin)
    return word, m.either(zero, decided), m.select(zero, m.constant(0), m.constant(int(Flags.INEXACT)))


def _at_end(m: Machine, part: Part, grown: bool) -> tuple[Word, Predicate]:
    """An infinity, or a zero, with the sign of a part; and whether that is certain. A zero stays one."""
    size, margin = abs(part.value.hi), part.margin
    zero = m.both(size.equals(0.0), margin.equals(0.0))
    end = m.or_(part.value.hi.sign, m.constant(0x7FF << 52 if grown else 0))
    return m.select(zero, part.sign, end), m.either(zero, size > margin)


def _chosen(m: Machine, condition: Predicate, x: Predicate, y: Predicate) -> Predicate:
    return m.either(m.both(condition, x), m.both(m.negation(condition), y))


@cache
def loop(name: str, fmt: Format, far: bool = False, flags: bool = False) -> Kernel:
    """The loop of a function where it ``applies``: of the words of all parts to that of the real part and, above it,
    the imaginary one, each in the bits that arrays give them; its byte has ``UNDECIDED``, and the flags of both parts
    if asked for. ``far``: the second stage, of functions with an angle."""
    container = word_dtype(fmt).itemsize * 8

    def build(m: Machine, *words: Uint) -> Result:
        found = parts(m, name, fmt, words, far, flags)
        zero = m.constant(0)
        marks = [m.select(p, m.constant(mark), zero) for p, mark in zip(found.undecided, UNDECIDED, strict=True)]
        real, imaginary = found.words
        limbs = (
            [real, imaginary] if container == BITS else [m.or_(real, m.shift_left(imaginary, m.constant(container)))]
        )
        return Result(Uint(m, limbs, 2 * container), m.or_(m.or_(*marks), found.flags))

    count = 4 if name in BINARY else 2
    label = f"{name}(complex {fmt}{', far' if far else ''}{', flags' if flags else ''})"
    return Kernel(label, (fmt.width,) * count, 2 * container, BITS, True, build, 1)


def special_parts(m: Machine, name: str, fmt: Format, words: tuple[Uint, ...]) -> Parts:
    """The words that follow from the classes of a function's one operand; the others are undecided."""
    found, known = classes.evaluate(m, name, fmt, FUNCTIONS[name].angle, *words)
    unknown = m.negation(known)
    return Parts(found, (unknown, unknown), m.constant(0))


Places = NDArray[np.intp]


def evaluate_fast(
    name: str, fmt: Format, columns: tuple[Words, ...], flags: bool = False
) -> tuple[Words, NDArray[np.uint8], Places]:
    """(words (elements, 2), flags (of no meaning unless asked for), the indices of undecided elements) for flat arrays
    of the words of all parts, of equal size; where there is a kernel. FloatEnvironmentError where the thread flushes
    subnormal numbers or does not round to nearest."""
    ensure_float_environment()
    words, marks = _run(loop(name, fmt, False, flags), fmt, columns)
    places = np.flatnonzero(marks & LEFT)
    if places.size and has_angle(name, fmt):
        some = tuple(column[places] for column in columns)
        words[places], marks[places] = _run(loop(name, fmt, True, flags), fmt, some)
        places = places[np.flatnonzero(marks[places] & LEFT)]
    return words, marks, places


def _run(kernel: Kernel, fmt: Format, columns: tuple[Words, ...]) -> tuple[Words, NDArray[np.uint8]]:
    result = choice.run(kernel, columns, NUMPY_FROM)
    if result is None:
        return np.zeros((columns[0].size, 2), word_dtype(fmt)), np.full(columns[0].size, LEFT, np.uint8)
    words, marks = result
    assert marks is not None
    return np.ascontiguousarray(words).view(word_dtype(fmt)).reshape(-1, 2), marks


def share_undecided(name: str, fmt: Format, columns: tuple[Words, ...]) -> float:
    """The share of the elements that are left to the specification."""
    return evaluate_fast(name, fmt, columns)[2].size / max(columns[0].size, 1)
