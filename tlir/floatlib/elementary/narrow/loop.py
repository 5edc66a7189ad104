"""A kernel made into a loop over words: operands decoded, the value rounded up and down by its bound, special operands.

A value v with a bound e on its relative error is rounded as v (1 - 2e) and v (1 + 2e), with a bound w on its absolute
error as v - 2w and v + 2w: the factor 2 covers the rounding of these numbers. If both give the same word and the same
flags, so does the exact value, because rounding is monotonic. A bit of the byte of flags, ``UNDECIDED``, says that they
do not.

Where the kernel's word or flags at a zero, an infinity or a one are not the specification's, which is tried when the
loop is built, the loop has the specification's word for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from tlir.floatlib.elementary.cases import CASES
from tlir.floatlib.elementary.narrow.kernels import KERNELS, WIDE_ERROR
from tlir.floatlib.elementary.narrow.outcome import Kernel, Outcome
from tlir.floatlib.elementary.number import Number
from tlir.floatlib.elementary.scalar import elementary
from tlir.floatlib.format import FORMATS, Format
from tlir.floatlib.rounding import Flags, round_exact
from tlir.floatlib.soft import catalog, conversion
from tlir.floatlib.soft.catalog import UNDECIDED
from tlir.floatlib.soft.machine import Machine, NumpyMachine, Predicate, Word
from tlir.floatlib.soft.rounding import Result, is_signaling, unpack
from tlir.floatlib.soft.uint import Uint

BITS = 64
FLOAT32, FLOAT64 = FORMATS["float32"], FORMATS["float64"]
INVALID, INEXACT = int(Flags.INVALID), int(Flags.INEXACT)
TINY, OVER = INEXACT | int(Flags.UNDERFLOW), INEXACT | int(Flags.OVERFLOW)


def loop(name: str, fmt: Format, flags: bool = False, wide: bool = False) -> catalog.Kernel:
    """The loop of a function in a format of at most 32 bits: its flags are those of the function (if asked for) and
    ``UNDECIDED``. ``wide``: by the kernel for operands that the usual one leaves."""
    return _kept(name, fmt, flags, wide)


@cache
def _kept(name: str, fmt: Format, flags: bool, wide: bool) -> catalog.Kernel:
    return make_loop(name, fmt, KERNELS[name], flags, wide)


def make_loop(name: str, fmt: Format, kernel: Kernel, flags: bool = False, wide: bool = False) -> catalog.Kernel:
    """``loop`` of another kernel than that of ``KERNELS``, and a new one at each call."""
    overrides = _overrides(name, fmt, kernel, flags, wide) if len(kernel.fallback) == 1 else ()

    def build(m: Machine, *words: Uint) -> Result:
        return _loop(m, name, fmt, kernel, flags, wide, words, overrides)

    title = f"{name}({fmt}{', wide' if wide else ''}{', flags' if flags else ''})"
    return catalog.Kernel(title, (fmt.width,) * len(kernel.fallback), fmt.width, BITS, True, build, kernel.interleave)


Override = tuple[int, int, int | None]
"""An operand's word, the word of the result, and its flags unless they are right already."""


def _overrides(name: str, fmt: Format, kernel: Kernel, flags: bool, wide: bool) -> tuple[Override, ...]:
    """The special operands of a unary function that the bare loop gets wrong or leaves undecided."""
    m = NumpyMachine(BITS)
    operands = special_words(fmt)
    words = np.array(operands, dtype=m.type)
    with np.errstate(all="ignore"):
        result = _loop(m, name, fmt, kernel, flags, wide, (Uint(m, [words], fmt.width),), ())
    results, marks = (
        np.broadcast_to(np.asarray(part), words.shape).tolist() for part in (*result.word.limbs, result.flags)
    )
    found: list[Override] = []
    for operand, got, mark in zip(operands, results, marks, strict=True):
        expected, raised = elementary(name, fmt, operand)
        wanted = int(raised) if flags else 0
        if (got, mark) != (expected, wanted):
            found.append((operand, expected, None if mark == wanted else wanted))
    return tuple(found)


def _conditions(
    m: Machine, fmt: Format, operand: Operand, overrides: tuple[Override, ...]
) -> Iterator[tuple[Predicate, int, int | None]]:
    """Where the overrides hold; one comparison for zeros of both signs that have one result."""
    results = {word: rest for word, *rest in overrides}
    if fmt.has_zero and fmt.zero(0) != fmt.zero(1):
        positive, negative = results.get(fmt.zero(0)), results.get(fmt.zero(1))
        if positive is not None and positive == negative:
            yield (operand.number.equals(0.0), *results.pop(fmt.zero(0)))
            del results[fmt.zero(1)]
    for word, rest in results.items():
        yield (m.equal(operand.word, m.constant(word)), *rest)


def special_words(fmt: Format) -> list[int]:
    """Zeros, infinities and ones of both signs, as far as the format has them."""
    words = {fmt.zero(sign) for sign in (0, 1)} if fmt.has_zero else set()
    if fmt.inf is not None:
        words |= {fmt.inf, fmt.inf | fmt.sign_mask}
    for sign in (0, 1):
        word, raised = round_exact(fmt, sign, 1, 0)
        if not raised:
            words.add(word)
    return sorted(words)


@dataclass(frozen=True)
class Operand:
    """A word's value, and whether it is a signaling NaN; the value of a NaN is a NaN."""

    word: Word
    number: Number
    signaling: Predicate


def decode(m: Machine, fmt: Format, word: Uint) -> Operand:
    """Of a format of at most 24 bits of precision, subnormal numbers and zeros included."""
    parts = unpack(m, fmt, word)
    signaling = is_signaling(m, parts)
    if fmt == FLOAT32:
        return Operand(word.limbs[0], Number(m, m.real32_of_bits(word.limbs[0])), signaling)
    field = m.add(parts.field, m.constant(1023 + fmt.emin - 1 - fmt.fraction_bits))
    scale = Number(m, m.real_from_bits(m.shift_left(field, m.constant(52))))
    number = Number(m, m.real_from_signed(parts.significand.limbs[0])) * scale
    if fmt.infinities:
        number = number.like(float("inf")).where(parts.inf, number)
    if fmt.has_nan:
        number = number.like(float("nan")).where(parts.nan, number)
    if fmt.signed:
        number = number.with_sign(m.select(parts.sign, m.constant(1 << 63), m.constant(0)))
    return Operand(word.limbs[0], number, signaling)


def _loop(
    m: Machine,
    name: str,
    fmt: Format,
    kernel: Kernel,
    flags: bool,
    wide: bool,
    words: tuple[Uint, ...],
    overrides: tuple[Override, ...],
) -> Result:
    operands = [decode(m, fmt, word) for word in words]
    numbers = [operand.number for operand in operands]
    inside = kernel.inside(*numbers)
    safe = [number.where(inside, value) for number, value in zip(numbers, kernel.fallback, strict=True)]
    function, error = (kernel.wide, WIDE_ERROR) if wide and kernel.wide else (kernel.function, kernel.error)
    outcome = function(*safe)
    if isinstance(outcome, Number):
        outcome = Outcome(outcome)
    word, raised, undecided = _rounded(m, fmt, outcome, error, flags)
    if outcome.doubtful is not None:
        undecided = m.either(undecided, outcome.doubtful)
    byte = m.select(undecided, m.constant(UNDECIDED), m.constant(0))
    if flags:
        byte = m.or_(byte, raised)
    # NaN, and operands where the function has no value
    word = m.select(inside, word, m.constant(fmt.invalid_word))
    outside = m.constant(0)
    if flags:
        signaling = operands[0].signaling
        for operand in operands[1:]:
            signaling = m.either(signaling, operand.signaling)
        proper = m.truth(True)
        for number in numbers:
            proper = m.both(proper, number.equals(number))
        outside = m.select(m.either(signaling, proper), m.constant(INVALID), m.constant(0))
    byte = m.select(inside, byte, outside)
    for condition, result, mark in _conditions(m, fmt, operands[0], overrides):
        word = m.select(condition, m.constant(result), word)
        if mark is not None:
            byte = m.select(condition, m.constant(mark), byte)
    if name in CASES:
        for condition, result, flag in CASES[name](fmt, *numbers):
            word = m.select(condition, m.constant(result), word)
            raised = m.constant(flag)
            if flags:
                raised = m.select(signaling, m.constant(flag | INVALID), raised)
            byte = m.select(condition, raised if flags else m.constant(0), byte)
    return Result(Uint(m, [word], fmt.width), byte)


def _rounded(m: Machine, fmt: Format, outcome: Outcome, error: float, flags: bool) -> tuple[Word, Word, Predicate]:
    """Word, flags, and where they are not decided."""
    value = outcome.value
    if outcome.error is None and outcome.absolute is None:
        low, high = value * (1 - 2 * error), value * (1 + 2 * error)
    else:
        width = outcome.absolute if outcome.error is None else value * outcome.error
        assert width is not None
        low, high = value - (width + width), value + (width + width)
    if not flags:
        below, above = nearest(m, fmt, low), nearest(m, fmt, high)
        return below, m.constant(0), m.negation(m.equal(below, above))
    exact = value.equals(0.0)
    if outcome.exact is not None and outcome.exact_value is not None:
        exact = m.either(exact, outcome.exact)
        low = outcome.exact_value.where(outcome.exact, low)
        high = outcome.exact_value.where(outcome.exact, high)
    below, below_flags = nearest_with_flags(m, fmt, low)
    above, above_flags = nearest_with_flags(m, fmt, high)
    # a bound may be a number of the format by chance
    if not fmt.signed:
        exact = m.either(exact, value < 0.0)  # which is INVALID and nothing else
    certain = m.select(exact, m.constant(0), m.constant(INEXACT))
    below_flags, above_flags = m.or_(below_flags, certain), m.or_(above_flags, certain)
    decided = m.both(m.equal(below, above), m.equal(below_flags, above_flags))
    if outcome.perhaps_exact is not None:
        decided = m.both(decided, m.negation(outcome.perhaps_exact))
    return below, below_flags, m.negation(decided)


def nearest(m: Machine, fmt: Format, x: Number) -> Word:
    """The word of the number of the format nearest to x."""
    if fmt == FLOAT32:
        return m.round32(x.value)
    return conversion.convert(m, FLOAT64, fmt, Uint(m, [x.bits], 64)).word.limbs[0]


def nearest_with_flags(m: Machine, fmt: Format, x: Number) -> tuple[Word, Word]:
    """The flags are those of a number that is neither infinite nor a NaN."""
    if fmt != FLOAT32:
        result = conversion.convert(m, FLOAT64, fmt, Uint(m, [x.bits], 64), flags=True)
        return result.word.limbs[0], result.flags
    word = m.round32(x.value)
    inexact = m.negation(Number(m, m.real32_of_bits(word)).equals(x))
    # what rounds to 24 bits below 2**-126 is tiny
    tiny = abs(x) < 2.0**-126 - 2.0**-151
    over = m.equal(m.and_(word, m.constant(0x7FFFFFFF)), m.constant(0x7F800000))
    raised = m.select(over, m.constant(OVER), m.select(tiny, m.constant(TINY), m.constant(INEXACT)))
    return word, m.select(inexact, raised, m.constant(0))
