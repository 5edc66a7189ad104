"""Correctly rounded elementary functions on arrays by double-double kernels, where their bound decides the rounding.

A kernel gives v = hi + lo within ``error`` of the function's value, relatively. v - e and v + e, for an e = 1.001 error
|hi| that covers the rounding of the lows too (2**-105 |hi|), are rounded; where both are one and the same number, so is
the exact value rounded, because rounding is monotonic (A. Ziv, Fast evaluation of elementary mathematical functions
with correctly rounded last bit, ACM TOMS 17, 1991). About one operand in 10**4 is not decided so in binary64, fewer in
narrower formats, and no result outside 2**-900 to 2**1020 is but for those that certainly overflow or vanish. They are
left to the specification.

A loop's result is a word and a byte: flags, and the marks ``UNDECIDED`` and ``MAY_BE_EXACT``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlir.floatlib.arb import huge, tiny
from tlir.floatlib.array_conversions import convert
from tlir.floatlib.elementary.cases import CASES
from tlir.floatlib.elementary.double.arithmetic import Double, from_bits, normalized, select
from tlir.floatlib.elementary.double.circular import NEAR
from tlir.floatlib.elementary.double.functions import (
    BINARY,
    FAR,
    FUNCTIONS,
    INVALID,
    NAMES,
    NEGATIVE_OVERFLOW,
    OVERFLOW,
    UNDERFLOW,
    Function,
)
from tlir.floatlib.elementary.number import Number
from tlir.floatlib.elementary.scalar import elementary
from tlir.floatlib.exclusive import exclusive
from tlir.floatlib.format import FORMATS, Format
from tlir.floatlib.native import ensure_float_environment
from tlir.floatlib.rounding import Flags
from tlir.floatlib.soft import choice, conversion
from tlir.floatlib.soft.catalog import MAY_BE_EXACT, UNDECIDED, Kernel
from tlir.floatlib.soft.machine import Machine, NumpyMachine, Predicate, Word
from tlir.floatlib.soft.rounding import Result, is_signaling, unpack
from tlir.floatlib.soft.uint import Uint
from tlir.floatlib.words import Words

FLOAT64 = FORMATS["float64"]
BITS = 64

SMALLEST, LARGEST = 2.0**-900, 2.0**1020

LEAST_PRECISION, GREATEST_PRECISION, GREATEST_EXPONENT = 25, 51, 880
"""Formats other than binary64: a result of at most 51 bits is rounded through 53 bits, rounded to odd."""

INEXACT = int(Flags.INEXACT)


def applies(name: str, fmt: Format) -> bool:
    """Whether there is a loop for the function and the format: binary64, or one of IEEE 754's kind of 25 to 51 bits of
    precision within 2**±880."""
    return name in NAMES and (fmt == FLOAT64 or fmt.precision >= LEAST_PRECISION) and fits(fmt)


def fits(fmt: Format) -> bool:
    """Whether double-double numbers serve the format, which may be one that less is enough for: binary64, or one of
    IEEE 754's kind of at most 51 bits of precision within 2**±880."""
    ieee = fmt.infinities and fmt.nans == "ieee" and fmt.signed and fmt.signed_zero and fmt.subnormals
    return fmt == FLOAT64 or (
        ieee
        and fmt.precision <= GREATEST_PRECISION
        and fmt.width <= BITS
        and fmt.emin - fmt.fraction_bits >= -GREATEST_EXPONENT
        and fmt.emax <= GREATEST_EXPONENT
    )


@dataclass(frozen=True)
class Task:
    """What a loop computes: a function in a format, with its flags or without, by its first or by its second stage."""

    name: str
    fmt: Format
    flags: bool
    far: bool

    @property
    def function(self) -> Function:
        return FAR[self.name] if self.far else FUNCTIONS[self.name]


@cache
@exclusive
def loop(name: str, fmt: Format = FLOAT64, flags: bool = False, far: bool = False) -> Kernel:
    """The loop of a function in a format that ``fits``; its byte has flags if asked for. ``far``: by the kernel of
    ``FAR``. KeyError for another name."""
    task = Task(name, fmt, flags, far)
    count = 2 if name in BINARY else 1
    build = partial(_build, task, [] if name in BINARY else _overrides(task))
    label = f"{name}({fmt}, double-double{', flags' if flags else ''}{', far' if far else ''})"
    return Kernel(label, (fmt.width,) * count, fmt.width, BITS, True, build, task.function.interleave)


Overrides = list[tuple[int, int, int]]
"""Operand, result and its byte."""


def _overrides(task: Task) -> Overrides:
    """Zeros, infinities and ones where the bare loop has not what the specification has."""
    m, found = NumpyMachine(BITS), []
    for word in _special_words(task.fmt):
        expected, raised = elementary(task.name, task.fmt, word)
        byte = int(raised) if task.flags else 0
        with np.errstate(all="ignore"):
            result = _build(task, [], m, Uint(m, [np.array([word], dtype=np.uint64)], task.fmt.width))
        if (int(np.ravel(result.word.limbs[0])[0]), int(np.ravel(np.asarray(result.flags))[0])) != (expected, byte):
            found.append((word, expected, byte))
    return found


def _special_words(fmt: Format) -> list[int]:
    infinity = fmt.inf
    assert infinity is not None
    one = fmt.encode(0, 1, 0)
    return [word | sign for word in (fmt.zero(0), infinity, one) for sign in (0, fmt.sign_mask)]


def _build(task: Task, overrides: Overrides, m: Machine, *words: Uint) -> Result:
    fmt, function, flags = task.fmt, task.function, task.flags
    operands = [_decode(m, fmt, word) for word in words]
    inside = function.inside(*operands)
    safe = [select(inside, operand, operand.like(function.safe)) for operand in operands]
    value, margin = _evaluated(function, safe)
    result, byte, same = (_rounded64 if fmt == FLOAT64 else partial(_rounded, fmt))(m, value, margin)
    decided = m.both(same, inside)
    if function.ranged:
        decided = m.both(decided, m.both(abs(value.hi) > SMALLEST, abs(value.hi) < LARGEST))
    if function.accepts is not None:
        decided = m.both(decided, function.accepts(*safe, value))
    if function.exact and flags:
        # the word may be the function's value: its distance is within the bound
        rest = value.lo
        if fmt != FLOAT64:
            rest = (value.hi - _decode(m, fmt, Uint(m, [result], fmt.width))) + value.lo
        byte = m.select(abs(rest) > margin, byte, m.or_(byte, m.constant(MAY_BE_EXACT)))
    byte = m.select(decided, byte if flags else m.constant(0), m.constant(UNDECIDED))
    cases = [
        *(_saturated(fmt, m, inside, value) if function.saturates else []),
        *(_tangents(fmt, m, operands[0], words[0]) if function.tangent else []),
        *_cases(task, m, operands),
        *(
            (m.equal(words[0].limbs[0], m.constant(word)), m.constant(to), m.constant(raised))
            for word, to, raised in overrides
        ),
        *_beside_nan(task, m, operands, words),
    ]
    for p, word, raised in cases:
        result = m.select(p, word, result)
        byte = m.select(p, raised if flags else m.constant(0), byte)
    return Result(Uint(m, [result], fmt.width), byte)


def _evaluated(function: Function, operands: list[Number]) -> tuple[Double, Number]:
    """The value and the margin about it."""
    found = function.evaluate(*operands)
    if not function.bounded:
        value = normalized(found)
        return value, abs(value.hi) * (1.001 * function.error)
    value, width = normalized(found[0]), found[1]
    return value, abs(value.hi).times_plus(2.0**-104, width * 1.001)


Choice = tuple[Predicate, Word, Word]
"""Where it holds, the word and the flags."""


def _saturated(fmt: Format, m: Machine, inside: Predicate, value: Double) -> list[Choice]:
    """Values that a kernel says to be beyond all numbers."""
    sign = m.shift_right(value.hi.sign, m.constant(BITS - fmt.width))
    return [
        (m.both(p, inside), m.or_(m.constant(word), sign), m.constant(int(raised)))
        for p, (word, raised) in ((abs(value.hi).equals(inf), huge(fmt, 0)), (value.hi.equals(0.0), tiny(fmt, 0)))
    ]


def _tangents(fmt: Format, m: Machine, x: Number, word: Uint) -> list[Choice]:
    """Operands that are their own result, rounded: normal numbers of the format."""
    least = max(2.0**-1020, 2.0 ** (fmt.emin + 2))
    if least >= 2.0**-900:
        return []
    return [(m.both(abs(x) > least, abs(x) < 2.0**-900), word.limbs[0], m.constant(INEXACT))]


def _cases(task: Task, m: Machine, operands: list[Number]) -> list[Choice]:
    """Operands whose result is certain without evaluating it."""
    fmt = task.fmt
    kinds = {
        OVERFLOW: huge(fmt, 0),
        NEGATIVE_OVERFLOW: huge(fmt, 1),
        UNDERFLOW: tiny(fmt, 0),
        INVALID: (fmt.invalid_word, Flags.INVALID),
    }
    return [
        (p, m.constant(kinds[kind][0]), m.constant(int(kinds[kind][1]))) for p, kind in task.function.cases(*operands)
    ]


def _beside_nan(task: Task, m: Machine, operands: list[Number], words: tuple[Uint, ...]) -> list[Choice]:
    """NaN operands, and what special operands of two give even beside one."""
    fmt = task.fmt
    parts = [unpack(m, fmt, word) for word in words]
    nan, signaling = parts[0].nan, is_signaling(m, parts[0])
    for part in parts[1:]:
        nan, signaling = m.either(nan, part.nan), m.either(signaling, is_signaling(m, part))
    invalid = m.select(signaling, m.constant(int(Flags.INVALID)), m.constant(0))
    assert fmt.nan is not None
    special = CASES[task.name](fmt, *operands) if task.name in CASES else []
    return [
        (nan, m.constant(fmt.nan), invalid),
        *((p, m.constant(word), m.or_(m.constant(raised), invalid)) for p, word, raised in special),
    ]


def _decode(m: Machine, fmt: Format, word: Uint) -> Number:
    if fmt == FLOAT64:
        return from_bits(m, word.limbs[0])
    return from_bits(m, conversion.convert(m, fmt, FLOAT64, word).word.limbs[0])


def _rounded64(m: Machine, value: Double, margin: Number) -> tuple[Word, Word, Predicate]:
    """The word, its flags, and whether both ends round to it; results are normal numbers, and hi is v rounded."""
    low, high = value.hi + (value.lo - margin), value.hi + (value.lo + margin)
    return value.hi.bits, m.constant(INEXACT), low.equals(high)


def _rounded(fmt: Format, m: Machine, value: Double, margin: Number) -> tuple[Word, Word, Predicate]:
    """The same for a narrower format, in which results may overflow or be subnormal: flags must agree too."""
    ends = [value.lo - margin, value.lo + margin]
    below, above = (conversion.convert(m, FLOAT64, fmt, _to_odd(value.hi, low), flags=True) for low in ends)
    words, flags = [below.word.limbs[0], above.word.limbs[0]], [below.flags, above.flags]
    # an end may be a number of the format by chance
    flags = [m.or_(raised, m.constant(INEXACT)) for raised in flags]
    return words[0], flags[0], m.both(m.equal(*words), m.equal(*flags))


def _to_odd(high: Number, low: Number) -> Uint:
    """high + low, |low| <= 2**-52 |high|, rounded to odd to 53 bits: the nearest number s with s + t = high + low; if t
    is not 0 and the significand of s even, its neighbour on the side of t."""
    m = high.m
    total = high + low
    rest = low - (total - high)
    bits = total.bits
    away = m.equal(m.xor(total.sign, rest.sign), m.constant(0))
    neighbour = m.select(away, m.add(bits, m.constant(1)), m.subtract(bits, m.constant(1)))
    even = m.equal(m.and_(bits, m.constant(1)), m.constant(0))
    return Uint(m, [m.select(m.both(even, m.negation(rest.equals(0.0))), neighbour, bits)], BITS)


Places = NDArray[np.intp]


def evaluate_double(name: str, fmt: Format, *operands: Words, flags: bool = False) -> tuple[Words, Any, Places]:
    """(words, flags or None, undecided) for flat arrays of words of equal size. The indices ``undecided`` have no
    meaning in the other two; the rest is what the specification gives. FloatEnvironmentError where the thread
    flushes subnormal numbers or does not round to nearest."""
    ensure_float_environment()
    words, marks = _run(loop(name, fmt, flags), operands)
    places = marked(marks, UNDECIDED)
    if places.size and name in FAR:
        values = convert(fmt, FLOAT64, operands[0][places]).view(np.float64)
        far = places[np.abs(values) >= NEAR]
        if far.size:
            words[far], marks[far] = _run(loop(name, fmt, flags, far=True), (operands[0][far],))
            places = places[np.flatnonzero(marks[places] & UNDECIDED)]
    if flags and name in _MAY_BE_EXACT:
        places = marked(marks, UNDECIDED | MAY_BE_EXACT)
    return words, marks if flags else None, places


def marked(marks: NDArray[np.uint8], mask: int) -> Places:
    """Where any bit of the mask is set; eight bytes at a time, because few have one."""
    whole = marks.size // 8 * 8
    groups = np.flatnonzero((marks[:whole].view(np.uint64) & np.uint64(mask * 0x0101010101010101)) != 0)
    places = (groups[:, None] * 8 + np.arange(8)).reshape(-1)
    places = np.concatenate([places, np.arange(whole, marks.size)])
    return places[np.flatnonzero(marks[places] & np.uint8(mask))]


_MAY_BE_EXACT = frozenset(name for name, function in FUNCTIONS.items() if function.exact)


NUMPY_FROM = 32
"""Elements from which a loop on NumPy, 0.1 to 0.5 ms a call, beats the specification, 5 to 25 us an element."""


def _run(kernel: Kernel, operands: tuple[Words, ...]) -> tuple[Words, Any]:
    """By the compiled loop or on NumPy, as ``soft.choice`` says; nothing is decided where it says neither."""
    result = choice.run(kernel, operands, NUMPY_FROM)
    if result is None:
        return np.empty_like(operands[0]), np.full(operands[0].shape, UNDECIDED, dtype=np.uint8)
    return result


def share_undecided(name: str, fmt: Format, *operands: Words) -> float:
    """The share of the elements that are left to the specification."""
    flat = [operand.reshape(-1) for operand in operands]
    if flat[0].size == 0:
        return 0.0
    return float(evaluate_double(name, fmt, *flat)[2].size / flat[0].size)
