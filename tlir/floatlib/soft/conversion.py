"""The kernels of conversion: between formats, to and from integers, to integral values, and by powers of two.

Each has the meaning of the function of the same name in ``tlir.floatlib.convert`` or ``tlir.floatlib.arithmetic``.
"""

from __future__ import annotations

from tlir.floatlib.format import Format
from tlir.floatlib.rounding import Flags, Rounding
from tlir.floatlib.soft.kernels import invalid_case, nan_cases, normalized, zero_case
from tlir.floatlib.soft.machine import Machine, Predicate, Word
from tlir.floatlib.soft.rounding import (
    INVALID,
    Case,
    Exponent,
    Result,
    infinite_word,
    is_signaling,
    override,
    round_pack,
    rounds_up,
    smaller,
    unpack,
)
from tlir.floatlib.soft.uint import Uint, choose, constant

NEAREST_EVEN = Rounding.NEAREST_EVEN


def convert(
    m: Machine,
    source: Format,
    target: Format,
    a: Uint,
    rounding: Rounding = NEAREST_EVEN,
    flags: bool = False,
    saturate: bool = False,
) -> Result:
    """The word of ``target`` for the word of ``source``; a NaN becomes the canonical one between equal formats too."""
    x = unpack(m, source, a)
    # a source's subnormal number needs no normalizing where it is subnormal, or less than that, in the target as well
    kept_low = target.emin >= source.emin or not source.subnormals
    finite = round_pack(
        m,
        target,
        x.sign,
        x.significand,
        Exponent(x.field, 1 - source.emin + target.emin),
        rounding,
        flags,
        saturate=saturate,
        may_underflow=target.emin > source.emin,
        leading=0 if kept_low else None,
    )
    cases: list[Case] = []
    if source.has_zero:
        cases.append(zero_case(m, target, x.zero, x.sign))
    if source.infinities:
        lost = saturate or not target.infinities
        raised = int(Flags.OVERFLOW | Flags.INEXACT) if lost else 0
        cases.append((x.inf, infinite_word(m, target, x.sign, saturate), raised))
        if not target.signed:
            cases.append(invalid_case(m, target, m.both(x.inf, x.sign)))
    if source.has_nan:
        nan = constant(m, target.invalid_word, target.width)
        cases.append((x.nan, nan, 0 if target.has_nan else INVALID))
        if flags and source.nans == "ieee":
            cases.append(invalid_case(m, target, is_signaling(m, x)))
    return override(m, finite, cases)


def scale_b(m: Machine, fmt: Format, a: Uint, n: int, rounding: Rounding = NEAREST_EVEN, flags: bool = False) -> Result:
    """a * 2**n for one integer n."""
    x = unpack(m, fmt, a)
    finite = round_pack(m, fmt, x.sign, x.significand, Exponent(x.field, 1 - n), rounding, flags, may_underflow=n < 0)
    cases: list[Case] = [zero_case(m, fmt, x.zero, x.sign)] if fmt.has_zero else []
    if fmt.infinities:
        cases.append((x.inf, x.word, 0))
    return override(m, finite, [*cases, *nan_cases(m, fmt, flags, x)])


def _integer_part(
    m: Machine, significand: Uint, down: Word, sign: Predicate, rounding: Rounding
) -> tuple[Uint, Predicate]:
    """The integer to which significand * 2**-down rounds, down > 0, and whether that is inexact."""
    limit = significand.bits + 2
    # two bits below the units, the lower of them sticky
    moved = significand.left(2).right_by_sticky(smaller(m, down, m.constant(limit)), limit)
    half, rest = moved.bit(1), moved.bit(0)
    integer = moved.right(2)
    up = rounds_up(m, rounding, sign, integer.bit(0), half, rest)
    return integer.plus_bit(up), m.either(half, rest)


def round_to_integral(
    m: Machine, fmt: Format, a: Uint, rounding: Rounding = NEAREST_EVEN, flags: bool = False
) -> Result:
    """The integer next to a in the rounding's direction, with the sign of a; INEXACT only where the format lacks it."""
    x = unpack(m, fmt, a)
    # where the last place has the exponent field - whole >= 0, the number is an integer
    whole = fmt.fraction_bits + 1 - fmt.emin
    if whole <= 1:
        return override(m, Result(x.word, m.constant(0) if flags else None), nan_cases(m, fmt, flags, x))
    down = m.subtract(m.constant(whole), x.field)
    integer, _ = _integer_part(m, x.significand, down, x.sign, rounding)
    top = integer.bits - 1 - fmt.emin
    finite = round_pack(
        m,
        fmt,
        x.sign,
        integer,
        Exponent(m.constant(max(top, 0)), max(-top, 0)),
        rounding,
        flags,
        may_underflow=top < 0,
    )
    kept = m.either(m.negation(m.less(x.field, m.constant(whole))), m.either(x.inf, x.zero))
    cases = [zero_case(m, fmt, integer.is_zero(), x.sign), (kept, x.word, 0)]
    return override(m, finite, [*cases, *nan_cases(m, fmt, flags, x)])


def to_integer(
    m: Machine,
    fmt: Format,
    a: Uint,
    width: int,
    signed: bool,
    rounding: Rounding = Rounding.TOWARD_ZERO,
    flags: bool = False,
    saturating: bool = True,
) -> Result:
    """The integer of ``width`` bits that a rounds to, in two's complement."""
    x = unpack(m, fmt, a)
    significand, field, lift = x.significand, x.field, 0
    if fmt.emin > 0:
        # the top bit must tell the size even of subnormal numbers when these are integers
        significand, shift = normalized(m, x)
        lift = fmt.precision
        field = m.subtract(m.add(field, m.constant(lift)), shift)
    whole = fmt.fraction_bits + 1 - fmt.emin + lift  # the last place has the exponent field - whole
    fractional = m.less(field, m.constant(max(whole, 0)))
    integer, inexact = _integer_part(m, significand, m.subtract(m.constant(max(whole, 0)), field), x.sign, rounding)
    size = max(fmt.precision, width)
    up = m.subtract(field, m.constant(whole)) if whole >= 0 else m.add(field, m.constant(-whole))
    shifted = significand.resized(size).left_by(smaller(m, up, m.constant(size)), size)
    magnitude = choose(fractional, integer, shifted)
    # a top bit of the exponent ``width`` or more
    large = width + 1 - fmt.emin + lift
    beyond = m.both(m.negation(fractional), m.negation(m.less(field, m.constant(max(large, 0)))))
    highest = (1 << (width - int(signed))) - 1
    over = m.either(beyond, constant(m, highest).less(magnitude))
    lowest = magnitude.equals(constant(m, 1 << (width - 1))) if signed else magnitude.is_zero()
    outside = m.both(over, m.negation(m.both(m.both(x.sign, lowest), m.negation(beyond))))
    if not signed:
        outside = m.either(outside, m.both(x.sign, m.negation(m.both(lowest, m.negation(beyond)))))
    low = magnitude.low(width).resized(width)
    value = choose(x.sign, constant(m, 0, width).minus(low).resized_down(), low)
    bound = constant(m, highest, width)
    if fmt.signed:
        bound = choose(x.sign, constant(m, 1 << (width - 1) if signed else 0, width), bound)
    result = Result(value, m.select(inexact, m.constant(int(Flags.INEXACT)), m.constant(0)) if flags else None)
    if result.flags is not None:
        result = Result(value, m.select(fractional, result.flags, m.constant(0)))
    cases: list[Case] = [(outside, bound if saturating else value, INVALID)]
    if fmt.has_zero:
        cases.append((x.zero, constant(m, 0, width), 0))
    if fmt.infinities:
        cases.append((x.inf, bound if saturating else constant(m, 0, width), INVALID))
    if fmt.has_nan:
        cases.append((x.nan, constant(m, 0, width), INVALID))
    return override(m, result, cases)


def from_integer(
    m: Machine,
    fmt: Format,
    a: Uint,
    signed: bool,
    rounding: Rounding = NEAREST_EVEN,
    flags: bool = False,
) -> Result:
    """The word of an integer in two's complement, of as many bits as ``a`` has."""
    sign, magnitude = m.truth(False), a
    if signed:
        sign = a.bit(a.bits - 1)
        magnitude = choose(sign, constant(m, 0, a.bits).minus(a).resized_down(), a)
    top = a.bits - 1 - fmt.emin
    finite = round_pack(
        m,
        fmt,
        sign,
        magnitude,
        Exponent(m.constant(max(top, 0)), max(-top, 0)),
        rounding,
        flags,
        may_underflow=top < 0,
    )
    return override(m, finite, [zero_case(m, fmt, magnitude.is_zero(), m.truth(False))])
