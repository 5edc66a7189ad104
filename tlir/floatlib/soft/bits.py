"""The kernels of a float's sign and bits: no arithmetic, and nothing but the format's own conventions.

Each has the meaning of the function of the same name in ``tlir.floatlib.arrays``, ``tlir.floatlib.ordering``, or of the
operation of that name.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from tlir.floatlib.convert import from_integer
from tlir.floatlib.format import Format
from tlir.floatlib.rounding import infinity_word, power_of_two
from tlir.floatlib.soft.catalog import Kernel
from tlir.floatlib.soft.machine import Machine, Predicate
from tlir.floatlib.soft.rounding import Result, Unpacked, unpack
from tlir.floatlib.soft.uint import Uint, choose, constant, of_word

Build = Callable[..., Uint]


def _kernel(name: str, fmt: Format, operands: int, result: int, build: Build) -> Kernel:
    small = fmt.width < 32 and fmt.exponent_bits <= 16
    return Kernel(
        f"{name}({fmt})",
        (fmt.width,) * operands,
        result,
        32 if small else 64,
        False,
        lambda m, *words: Result(build(m, *words), None),
    )


def _with_sign(m: Machine, x: Unpacked, sign: Predicate) -> Uint:
    """The word with another sign bit; the zero, or the NaN in the place of -0, of a format without -0 is kept."""
    changed = x.magnitude.resized(x.fmt.magnitude_bits).with_bit(x.fmt.magnitude_bits, sign)
    return choose(x.magnitude.is_zero(), x.word, changed) if x.fmt.nans == "negative_zero" else changed


@cache
def negate(fmt: Format) -> Kernel:
    def build(m: Machine, a: Uint) -> Uint:
        x = unpack(m, fmt, a)
        if fmt.signed:
            return _with_sign(m, x, m.negation(x.sign))
        return choose(m.either(x.nan, x.zero), a, constant(m, fmt.invalid_word, fmt.width))

    return _kernel("negate", fmt, 1, fmt.width, build)


@cache
def absolute(fmt: Format) -> Kernel:
    def build(m: Machine, a: Uint) -> Uint:
        return _with_sign(m, unpack(m, fmt, a), m.truth(False)) if fmt.signed else a

    return _kernel("abs", fmt, 1, fmt.width, build)


@cache
def copysign(fmt: Format) -> Kernel:
    def build(m: Machine, a: Uint, b: Uint) -> Uint:
        return _with_sign(m, unpack(m, fmt, a), unpack(m, fmt, b).sign) if fmt.signed else a

    return _kernel("copysign", fmt, 2, fmt.width, build)


@cache
def sign(fmt: Format) -> Kernel:
    """-1, 0 or 1; a zero is kept, a NaN made canonical."""

    def build(m: Machine, a: Uint) -> Uint:
        x = unpack(m, fmt, a)
        one, minus = (constant(m, from_integer(fmt, value)[0], fmt.width) for value in (1, -1))
        unit = choose(x.zero, a, choose(x.sign, minus, one))
        return choose(x.nan, constant(m, fmt.invalid_word, fmt.width), unit)

    return _kernel("sign", fmt, 1, fmt.width, build)


@cache
def is_finite(fmt: Format) -> Kernel:
    """One bit."""

    def build(m: Machine, a: Uint) -> Uint:
        x = unpack(m, fmt, a)
        return of_word(m, m.word_of(m.negation(m.either(x.nan, x.inf))), 1)

    return _kernel("is_finite", fmt, 1, 1, build)


@cache
def total_order(fmt: Format, direction: str) -> Kernel:
    """One bit: a EQ, NE, LT, LE, GT or GE b in IEEE 754's totalOrder. A NaN in the place of -0 is positive."""

    def before(m: Machine, x: Unpacked, y: Unpacked) -> Predicate:
        less, greater = x.magnitude.less(y.magnitude), y.magnitude.less(x.magnitude)
        if not fmt.signed:
            return less
        strictly = m.select(m.differ(x.sign, y.sign), x.sign, m.select(x.sign, greater, less))
        if fmt.nans != "negative_zero":
            return strictly
        return m.both(m.negation(x.nan), m.either(y.nan, strictly))

    def build(m: Machine, a: Uint, b: Uint) -> Uint:
        x, y = unpack(m, fmt, a), unpack(m, fmt, b)
        match direction:
            case "EQ" | "NE":
                holds = a.equals(b)
            case "LT" | "GE":
                holds = before(m, x, y)
            case _:
                holds = before(m, y, x)
        if direction in ("NE", "GE", "LE"):
            holds = m.negation(holds)
        return of_word(m, m.word_of(holds), 1)

    return _kernel(f"total_order {direction}", fmt, 2, 1, build)


@cache
def reduce_precision(fmt: Format, exponent_bits: int, mantissa_bits: int) -> Kernel:
    """The fraction rounded to ``mantissa_bits`` with a carry into the exponent, then values beyond the range of an IEEE
    format of ``exponent_bits`` made infinite or zero."""
    dropped = fmt.fraction_bits - mantissa_bits
    bias = (1 << (exponent_bits - 1)) - 1
    narrower = exponent_bits < fmt.exponent_bits

    def build(m: Machine, a: Uint) -> Uint:
        x = unpack(m, fmt, a)
        rounded = x.magnitude
        if dropped > 0:
            # half of what is dropped, less one unless what is kept is odd
            below = constant(m, (1 << (dropped - 1)) - 1, max(dropped - 1, 1))
            bumped = rounded.plus(below).plus_bit(rounded.bit(dropped))
            rounded = bumped.right(dropped).left(dropped)
        limit = power_of_two(fmt, bias + 1) if narrower else fmt.max_finite_magnitude + 1
        overflow = m.negation(rounded.less(constant(m, limit)))
        finite = m.negation(m.either(x.nan, x.inf))
        kept = rounded.resized(fmt.magnitude_bits)
        kept = kept.with_bit(fmt.magnitude_bits, x.sign) if fmt.signed else kept.resized(fmt.width)
        result = choose(finite, kept, a)
        if narrower:
            zeros = [fmt.zero(s) for s in (1, 0)] if fmt.has_zero else [fmt.invalid_word] * 2
            underflow = rounded.less(constant(m, power_of_two(fmt, 1 - bias)))
            result = choose(m.both(finite, underflow), _signed(m, x, zeros), result)
        infinite = [infinity_word(fmt, s) for s in (int(fmt.signed), 0)]
        result = choose(m.both(finite, overflow), _signed(m, x, infinite), result)
        return choose(x.nan, constant(m, fmt.invalid_word, fmt.width), result)

    return _kernel(f"reduce_precision to {exponent_bits} and {mantissa_bits} bits", fmt, 1, fmt.width, build)


def _signed(m: Machine, x: Unpacked, words: list[int]) -> Uint:
    """The first word where x is negative, otherwise the second."""
    negative, positive = (constant(m, word, x.fmt.width) for word in words)
    return choose(x.sign, negative, positive) if x.fmt.signed else positive
