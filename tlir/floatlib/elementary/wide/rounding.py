"""A value with a bound on its error, rounded once to a format, and whether the bound decides the word and the flags.

The significand is shifted so that its highest bit is at the top, or further down where the result is subnormal; its
error, in units of the last bit, grows with it. What lies below the last place of the format is the *tail*. The word is
certain if no number within the error has another one: if the tail, with half a last place added and carries dropped, is
at least the error and at most the error below its end (Ziv's test; beside a power of two, where the last place changes,
numbers within the error round to that power). Rounding and the flags change only at multiples of a quarter of the last
place; they are certain if the part of the tail below the quarters is that far from its ends.
"""

from __future__ import annotations

from math import ceil

from tlir.floatlib.elementary.wide.fixed import DIGIT
from tlir.floatlib.elementary.wide.work import LIFT, Value
from tlir.floatlib.format import Format
from tlir.floatlib.soft.catalog import MAY_BE_EXACT, UNDECIDED
from tlir.floatlib.soft.machine import Machine, Predicate, Word
from tlir.floatlib.soft.rounding import Exponent, Result, round_pack, smaller
from tlir.floatlib.soft.uint import Uint, choose, constant


def window_bits(precision: int, tail: int) -> int:
    """Bits of the tail that are looked at: as many as a word has beside a carry, but of formats whose hardest operands
    are to be decided three times the precision."""
    return min(tail, 62 if precision > 53 else max(62, 3 * precision))


def rounded(m: Machine, fmt: Format, value: Value, exact: bool, flags: bool) -> Result:
    """The word, and a byte: the flags if ``flags``, with the marks ``UNDECIDED`` and ``MAY_BE_EXACT``.

    ``exact`` says that the value may be a number of the format; otherwise, and where ``value.exact`` does not hold, it
    never is, so that INEXACT is certain, and UNDERFLOW is where the word is not that of the smallest normal number."""
    significand = value.significand.bits()
    bits, precision = significand.bits, fmt.precision
    tail = bits - precision
    assert tail >= 4
    most = bits - 1 if value.zeros is None else min(value.zeros, bits - 1)
    zeros = smaller(m, significand.leading_zeros(), m.constant(most)) if most else m.constant(0)
    aligned = significand.left_by(zeros, most) if most else significand
    # the exponent of the top bit, counted from emin
    top = m.subtract(m.add(value.exponent, m.constant(LIFT)), zeros)
    offset = LIFT + fmt.emin - DIGIT * (value.significand.size - value.significand.point) + 1
    below = m.less(top, m.constant(offset))
    difference = m.subtract(top, m.constant(offset))
    room = m.select(below, m.constant(0), difference)
    down = m.select(below, m.subtract(m.constant(0), difference), m.constant(0))
    aligned = aligned.right_by_sticky(smaller(m, down, m.constant(bits)), bits)
    result = round_pack(
        m,
        fmt,
        value.sign,
        aligned,
        Exponent(room, 0),
        flags=flags,
        sticky=m.truth(True),
        may_underflow=False,
        leading=0,
    )
    window = window_bits(precision, tail)
    lost = tail - window
    part = aligned.right(lost).low(window)
    error = _error(m, ceil(value.significand.error) + 1, zeros, most, lost, window)
    if value.near is not None:
        error = choose(value.near, _error(m, ceil(value.near_error) + 1, zeros, most, lost, window), error)
    # half a last place more, but for the carry, turns the highest bit
    half = part.plus(constant(m, 1 << (window - 1), window), window + 1).low(window)
    decided = _apart(half, error)
    if value.doubtful is not None:
        decided = m.both(decided, m.negation(value.doubtful))
    if not flags:
        return Result(result.word, m.select(decided, m.constant(0), m.constant(UNDECIDED)))
    certain = _apart(part.low(window - 2), error)
    assert result.flags is not None
    byte = result.flags
    if exact:
        perhaps = m.negation(certain) if value.exact is None else m.both(value.exact, m.negation(certain))
        byte = m.or_(byte, m.select(perhaps, m.constant(MAY_BE_EXACT), m.constant(0)))
    if not exact or value.exact is not None:
        smallest = result.word.low(fmt.magnitude_bits).equals(constant(m, 1 << fmt.fraction_bits))
        decided = m.both(decided, m.either(certain, m.negation(smallest)))
    return Result(result.word, m.select(decided, byte, m.constant(UNDECIDED)))


def _error(m: Machine, units: int, zeros: Word, most: int, lost: int, window: int) -> Uint:
    """units * 2**zeros in units of 2**lost, and two more for the bits left out on either side; half of the window,
    which decides nothing, where it is more than an eighth."""
    limit, hopeless = 1 << (window - 3), constant(m, 1 << (window - 1), window)
    if units >= limit << lost:
        return hopeless
    if not most:
        return constant(m, (units >> lost) + 2, window)
    room = ((limit << lost) // units).bit_length() - 1
    up = smaller(m, zeros, m.constant(room))
    scaled = constant(m, units, units.bit_length() + room).left_by(up, room).right(lost)
    scaled = scaled.plus(constant(m, 2), window)
    return choose(m.less(m.constant(room), zeros), hopeless, scaled)


def _apart(part: Uint, error: Uint) -> Predicate:
    """error <= part < 2**(bits of the part) - error."""
    m, bits = part.m, part.bits
    above = m.negation(part.less(error))
    total = part.plus(error, max(part.bits, error.bits) + 1)
    return m.both(above, total.right(bits).is_zero())
