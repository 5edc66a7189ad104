"""Taking words apart, and the one rounding step that puts them together.

This is ``tlir.floatlib.rounding.round_exact`` on machine words. Exponents are machine words with an offset known when
the code is built, so that they are never negative.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tlir.floatlib.format import Format
from tlir.floatlib.rounding import Flags, Rounding, infinity_word
from tlir.floatlib.soft.machine import Machine, Predicate, Word
from tlir.floatlib.soft.uint import Uint, choose, constant, of_word

INVALID = int(Flags.INVALID)
_OVERFLOW = int(Flags.INEXACT | Flags.OVERFLOW)
_UNDERFLOW = int(Flags.INEXACT | Flags.UNDERFLOW)

Case = tuple[Predicate, Uint, int]
"""Where it holds, the result is this word with these flags."""


@dataclass(frozen=True)
class Unpacked:
    """An operand: its word, what it is, and for a finite one its value, which is
    (-1)**sign * significand * 2**(emin + field - 1 - fraction_bits), field at least 1."""

    fmt: Format
    word: Uint
    magnitude: Uint
    sign: Predicate
    nan: Predicate
    inf: Predicate
    zero: Predicate
    field: Word
    significand: Uint


def unpack(m: Machine, fmt: Format, word: Uint) -> Unpacked:
    """The parts of a word."""
    magnitude = word.low(fmt.magnitude_bits)
    sign = word.bit(fmt.magnitude_bits) if fmt.signed else m.truth(False)
    field = magnitude.right(fmt.fraction_bits).limbs[0]
    fraction = magnitude.low(fmt.fraction_bits)
    nan = inf = zero = m.truth(False)
    if fmt.subnormals:
        subnormal = m.equal(field, m.constant(0))
        significand = fraction.with_bit(fmt.fraction_bits, m.negation(subnormal))
        field = m.select(subnormal, m.constant(1), field)
        zero = magnitude.is_zero()
    else:
        significand = fraction.with_bit(fmt.fraction_bits, m.truth(True))
        field = m.add(field, m.constant(1))
    if fmt.nans == "ieee":
        nan = constant(m, fmt.max_finite_magnitude + 1).less(magnitude)
    elif fmt.nans == "all_ones":
        nan = magnitude.equals(constant(m, fmt.magnitude_mask))
    elif fmt.nans == "negative_zero":
        nan = m.both(sign, zero)
        zero = m.both(zero, m.negation(sign))
    if fmt.inf is not None:
        inf = magnitude.equals(constant(m, fmt.inf))
    return Unpacked(fmt, word, magnitude, sign, nan, inf, zero, field, significand)


def is_signaling(m: Machine, x: Unpacked) -> Predicate:
    """A signaling NaN."""
    if x.fmt.nans != "ieee":
        return m.truth(False)
    return m.both(x.nan, m.negation(x.magnitude.bit(x.fmt.fraction_bits - 1)))


@dataclass(frozen=True)
class Exponent:
    """The integer ``word - offset``; the word is not negative."""

    word: Word
    offset: int


@dataclass(frozen=True)
class Result:
    """A word of the result's format, and the flags as a machine word where they were asked for."""

    word: Uint
    flags: Word | None


def signed_word(m: Machine, fmt: Format, sign: Predicate, magnitude: Uint) -> Uint:
    """The word of a sign and a magnitude; +0 where the format has no -0, no sign where it has none."""
    if not fmt.signed:
        return magnitude.resized(fmt.width)
    if not fmt.signed_zero and fmt.subnormals:
        sign = m.both(sign, m.negation(magnitude.is_zero()))
    return magnitude.resized(fmt.magnitude_bits).with_bit(fmt.magnitude_bits, sign)


def infinite_word(m: Machine, fmt: Format, sign: Predicate, saturate: bool = False) -> Uint:
    """The word that stands for an infinite result of that sign."""
    positive = constant(m, infinity_word(fmt, 0, saturate), fmt.width)
    if not fmt.signed:
        return positive
    return choose(sign, constant(m, infinity_word(fmt, 1, saturate), fmt.width), positive)


def rounds_up(
    m: Machine, rounding: Rounding, sign: Predicate, odd: Predicate, half: Predicate, rest: Predicate
) -> Predicate:
    """Whether the magnitude goes to the next one, from its lowest bit, the bit below, and whether more is set below."""
    match rounding:
        case Rounding.NEAREST_EVEN:
            return m.both(half, m.either(rest, odd))
        case Rounding.NEAREST_AWAY:
            return half
        case Rounding.UP:
            return m.both(m.negation(sign), m.either(half, rest))
        case Rounding.DOWN:
            return m.both(sign, m.either(half, rest))
        case Rounding.TOWARD_ZERO:
            return m.truth(False)
        case Rounding.TO_ODD:
            return m.both(m.negation(odd), m.either(half, rest))


def round_pack(
    m: Machine,
    fmt: Format,
    sign: Predicate,
    significand: Uint,
    top: Exponent,
    rounding: Rounding = Rounding.NEAREST_EVEN,
    flags: bool = False,
    sticky: Predicate | None = None,
    saturate: bool = False,
    may_underflow: bool = True,
    leading: int | None = None,
) -> Result:
    """The word of (-1)**sign * significand * 2**(emin + top - (bits - 1)), rounded once, for a significand above zero.

    ``top`` is the exponent of the significand's highest possible bit, counted from the format's ``emin``. ``sticky``
    says that a little more was lost below the significand, whose lowest bit must then lie below the last place of the
    result. ``may_underflow`` is False where top is never negative. ``leading`` is the greatest number of zero bits
    above the highest set one where that is known to be 0 or 1, or where top is not above 0 otherwise.
    """
    precision = fmt.precision
    if significand.bits < precision + 3:
        significand = significand.left(precision + 3 - significand.bits)
    bits = significand.bits
    aligned, exponent = _aligned(m, significand, top, may_underflow, leading)
    kept = aligned.right(bits - precision)
    half = aligned.bit(bits - precision - 1)
    rest = m.negation(aligned.low(bits - precision - 1).is_zero())
    if sticky is not None:
        rest = m.either(rest, sticky)
    # counting magnitudes carries a significand that rounds up to the next power of two into the exponent
    limited = smaller(m, exponent, m.constant(1 << fmt.exponent_bits))
    base = of_word(m, limited, min(fmt.exponent_bits + 1, m.bits)).left(fmt.fraction_bits)
    # without subnormals the binade of emin has the exponent field 0
    added = kept if fmt.subnormals else kept.low(fmt.fraction_bits)
    truncated = base.plus(added, fmt.magnitude_bits + 2)
    up = rounds_up(m, rounding, sign, truncated.bit(0), half, rest)
    magnitude = truncated.plus_bit(up, fmt.magnitude_bits + 2)
    below = m.negation(kept.bit(precision - 1))
    if not fmt.subnormals:
        magnitude = choose(below, constant(m, 0), magnitude)
    overflow = constant(m, fmt.max_finite_magnitude).less(magnitude)
    finite = signed_word(m, fmt, sign, magnitude)
    word = choose(overflow, overflow_word(m, fmt, sign, rounding, saturate), finite)
    negative = [] if fmt.signed else [(sign, constant(m, fmt.invalid_word, fmt.width), INVALID)]
    if not flags:
        return override(m, Result(word, None), negative)
    inexact = m.either(half, rest)
    if not fmt.subnormals:
        inexact = m.either(inexact, below)
    # below 2**emin, and not because rounding to the precision with an unbounded exponent would give 2**emin
    next_half, next_rest = aligned.bit(bits - precision - 2), m.negation(aligned.low(bits - precision - 2).is_zero())
    next_rest = next_rest if sticky is None else m.either(next_rest, sticky)
    ones = m.both(kept.equals(constant(m, (1 << (precision - 1)) - 1)), half)
    # even means an even word: without fraction bits the exponent decides whether that of 2**(emin - 1) is
    odd = half if fmt.fraction_bits else m.truth(not fmt.subnormals)
    tiny = m.both(below, m.negation(m.both(ones, rounds_up(m, rounding, sign, odd, next_half, next_rest))))
    raised = m.select(inexact, m.constant(int(Flags.INEXACT)), m.constant(0))
    raised = m.select(m.both(inexact, tiny), m.constant(_UNDERFLOW), raised)
    raised = m.select(overflow, m.constant(_OVERFLOW), raised)
    return override(m, Result(word, raised), negative)


def _aligned(
    m: Machine, significand: Uint, top: Exponent, may_underflow: bool, leading: int | None
) -> tuple[Uint, Word]:
    """The significand with its highest bit at the top or, below 2**emin, the last place of the format where it belongs;
    and the exponent of its top bit, counted from emin."""
    bits = significand.bits
    word, offset = top.word, top.offset
    if offset < 0:
        word, offset = m.add(word, m.constant(-offset)), 0
    down = None
    if may_underflow and offset:
        below = m.less(word, m.constant(offset))
        difference = m.subtract(word, m.constant(offset))
        room = m.select(below, m.constant(0), difference)
        down = m.select(below, m.subtract(m.constant(0), difference), m.constant(0))
        down = smaller(m, down, m.constant(bits))
    else:
        room = m.subtract(word, m.constant(offset)) if offset else word
    if leading is None:
        zeros = significand.with_bit(0, m.truth(True)).leading_zeros()
        shift = smaller(m, zeros, room)
        exponent, aligned = m.subtract(room, shift), significand.left_by(shift, bits - 1)
    elif leading:
        moves = m.both(m.negation(significand.bit(bits - 1)), m.less(m.constant(0), room))
        exponent, aligned = (
            m.subtract(room, m.word_of(moves)),
            choose(moves, significand.left(1), significand).low(bits),
        )
    else:
        exponent, aligned = room, significand
    return (aligned if down is None else aligned.right_by_sticky(down, bits)), exponent


def overflow_word(m: Machine, fmt: Format, sign: Predicate, rounding: Rounding, saturate: bool) -> Uint:
    """The word of a finite result beyond the largest number."""
    if rounding in (Rounding.NEAREST_EVEN, Rounding.NEAREST_AWAY):
        return infinite_word(m, fmt, sign, saturate)
    outward, inward = infinite_word(m, fmt, sign, saturate), infinite_word(m, fmt, sign, True)
    if rounding is Rounding.UP:
        return choose(sign, inward, outward)
    if rounding is Rounding.DOWN:
        return choose(sign, outward, inward)
    return inward


def smaller(m: Machine, x: Word, y: Word) -> Word:
    """The lesser of two words."""
    return m.select(m.less(x, y), x, y)


def override(m: Machine, result: Result, cases: Iterable[Case]) -> Result:
    """The result, replaced by the word and flags of the last case that holds."""
    word, flags = result.word, result.flags
    for holds, other, raised in cases:
        word = choose(holds, other, word)
        if flags is not None:
            flags = m.select(holds, m.constant(raised), flags)
    return Result(word, flags)
