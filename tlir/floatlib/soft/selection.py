"""The kernels that do not round: comparison, minimum and maximum, neighbours.

Each has the meaning of the function of the same name in ``tlir.floatlib.ordering``.
"""

from __future__ import annotations

from tlir.floatlib.format import Format
from tlir.floatlib.rounding import infinity_word
from tlir.floatlib.soft.kernels import nan_cases
from tlir.floatlib.soft.machine import Machine, Predicate
from tlir.floatlib.soft.rounding import INVALID, Result, Unpacked, is_signaling, override, signed_word, unpack
from tlir.floatlib.soft.uint import Uint, choose, constant, of_word

DIRECTIONS = ("EQ", "NE", "LT", "LE", "GT", "GE")


def _precedes(m: Machine, x: Unpacked, y: Unpacked) -> Predicate:
    """Whether x comes before y in the order in which -0 is less than +0 (not for NaN)."""
    less = x.magnitude.less(y.magnitude)
    if not x.fmt.signed:
        return less
    greater = y.magnitude.less(x.magnitude)
    return m.select(m.differ(x.sign, y.sign), x.sign, m.select(x.sign, greater, less))


def _same(m: Machine, x: Unpacked, y: Unpacked) -> Predicate:
    """Whether the values are equal (not for NaN)."""
    same = x.word.equals(y.word)
    return m.either(same, m.both(x.zero, y.zero)) if x.fmt.signed_zero else same


def compare(
    m: Machine, fmt: Format, a: Uint, b: Uint, direction: str, flags: bool = False, signaling: bool = False
) -> Result:
    """One bit: whether a EQ, NE, LT, LE, GT or GE b."""
    x, y = unpack(m, fmt, a), unpack(m, fmt, b)
    unordered = m.either(x.nan, y.nan)
    same = _same(m, x, y)
    match direction:
        case "EQ" | "NE":
            holds = same
        case "LT" | "LE":
            holds = _precedes(m, x, y)
        case _:
            holds = _precedes(m, y, x)
    if direction in ("LE", "GE"):
        holds = m.either(holds, same)
    elif direction in ("LT", "GT"):
        holds = m.both(holds, m.negation(same))
    holds = m.both(holds, m.negation(unordered))
    if direction == "NE":
        holds = m.negation(holds)
    raised = None
    if flags:
        invalid = unordered if signaling else m.either(is_signaling(m, x), is_signaling(m, y))
        raised = m.select(invalid, m.constant(INVALID), m.constant(0))
    return Result(of_word(m, m.word_of(holds), 1), raised)


def extremum(
    m: Machine, fmt: Format, a: Uint, b: Uint, least: bool, number: bool = False, flags: bool = False
) -> Result:
    """IEEE 754-2019 minimum and maximum; of the ``number`` kind a number wins over NaN."""
    x, y = unpack(m, fmt, a), unpack(m, fmt, b)
    first = _precedes(m, x, y) if least else _precedes(m, y, x)
    word = choose(first, x.word, y.word)
    result = Result(word, m.constant(0) if flags else None)
    if not number or not fmt.has_nan:
        return override(m, result, nan_cases(m, fmt, flags, x, y))
    word = choose(x.nan, y.word, choose(y.nan, x.word, word))
    word = choose(m.both(x.nan, y.nan), constant(m, fmt.invalid_word, fmt.width), word)
    raised = None
    if flags:
        invalid = m.either(is_signaling(m, x), is_signaling(m, y))
        raised = m.select(invalid, m.constant(INVALID), m.constant(0))
    return Result(word, raised)


def next_after(m: Machine, fmt: Format, a: Uint, b: Uint, flags: bool = False) -> Result:
    """The neighbour of a in the direction of b, b where they are equal."""
    x, y = unpack(m, fmt, a), unpack(m, fmt, b)
    up = _precedes(m, x, y)
    away = m.differ(up, x.sign)
    one = constant(m, 1, fmt.magnitude_bits)
    moved = choose(away, x.magnitude.plus(one), x.magnitude.minus(one)).resized(fmt.magnitude_bits)
    word = signed_word(m, fmt, x.sign, moved)
    ends = [constant(m, infinity_word(fmt, sign), fmt.width) for sign in (1, 0)]
    beyond = choose(x.sign, *ends) if fmt.signed else ends[1]
    largest = m.both(away, x.magnitude.equals(constant(m, fmt.max_finite_magnitude)))
    # out of zero, or across the missing one, in the direction asked for
    least = x.magnitude.is_zero()
    leaves = least if fmt.has_zero else m.both(least, m.negation(away))
    smallest = signed_word(m, fmt, m.negation(up), constant(m, fmt.min_subnormal, fmt.magnitude_bits))
    cases = [(largest, beyond, 0), (leaves, smallest, 0), (_same(m, x, y), y.word, 0)]
    return override(m, Result(word, m.constant(0) if flags else None), [*cases, *nan_cases(m, fmt, flags, x, y)])
