"""Remainders a - b trunc(a / b) in wide formats, exactly, in as many steps as the difference of the exponents has bits.

With a = A 2**e and b = B 2**f, A and B of p bits with the highest one set and d = e - f not negative, the remainder is
(A 2**d mod B) 2**f. The power of two is squared and doubled along the bits of d. The highest bits of d, as a number at
most p, give a power that is written down as it is; each further bit takes a square modulo B.

Residues are not reduced fully: T < 3 B stands for T mod B, so its square, and A T, are S < 9 B**2 < 2**(2p + 4). The
quotient S / B is estimated as q from the leading digits of S and a reciprocal of B that is too small, with everything
that is cut off, so q is at most floor(S / B), and as the estimate lacks less than 1/2 before it is cut off to an
integer, R = S - q B is in [0, 3/2 B), and 2 R below 3 B. In the end B is subtracted once where it can be.
"""

from __future__ import annotations

from functools import cache, partial
from math import ceil

from tlir.floatlib.elementary.wide.fixed import DIGIT, Fixed, choose, of_bits, of_integer, unit
from tlir.floatlib.elementary.wide.loop import BITS, fits
from tlir.floatlib.elementary.wide.quotient import reciprocal
from tlir.floatlib.elementary.wide.work import LIFT, Operand
from tlir.floatlib.format import Format, text_of
from tlir.floatlib.rounding import Flags
from tlir.floatlib.soft.catalog import Kernel
from tlir.floatlib.soft.machine import Machine, Predicate, Word
from tlir.floatlib.soft.rounding import Exponent, Result, round_pack, smaller
from tlir.floatlib.soft.uint import Uint, constant
from tlir.floatlib.soft.uint import choose as choose_bits

NAME = "remainder"
INVALID = int(Flags.INVALID)

applies = fits
"""Whether there is a kernel for a format."""


@cache
def loop(fmt: Format, flags: bool = False) -> Kernel:
    """The kernel of a format where it ``applies``; every word is certain. Its byte has the flags if asked for."""
    key = f"{NAME} {text_of(fmt)}{' flags' if flags else ''}"
    name = f"{NAME}({fmt}{', flags' if flags else ''})"
    return Kernel(name, (fmt.width,) * 2, fmt.width, BITS, True, partial(_build, fmt, flags), key=key)


def _build(fmt: Format, flags: bool, m: Machine, a: Uint, b: Uint) -> Result:
    x, y = Operand(m, fmt, a), Operand(m, fmt, b)
    difference = m.subtract(x.exponent, y.exponent)
    # in two's complement: a negative difference is above all others
    less = m.less(m.constant(1 << (BITS - 1)), difference)
    rest = _modulo(fmt, x, y, m.select(less, m.constant(0), difference))
    significand = rest.bits().resized(fmt.precision)
    top = Exponent(m.add(y.exponent, m.constant(LIFT)), LIFT + fmt.emin)
    word = round_pack(m, fmt, x.sign, significand, top).word
    zero = constant(m, fmt.sign_mask, fmt.width)
    word = choose_bits(significand.is_zero(), choose_bits(x.sign, zero, constant(m, 0, fmt.width)), word)
    word = choose_bits(m.either(m.either(less, x.zero), y.inf), a, word)
    nan = m.either(x.nan, y.nan)
    invalid = m.either(x.inf, y.zero)
    assert fmt.nan is not None
    word = choose_bits(m.either(nan, invalid), constant(m, fmt.nan, fmt.width), word)
    if not flags:
        return Result(word, m.constant(0))
    raised = m.either(m.either(x.signaling, y.signaling), m.both(invalid, m.negation(nan)))
    return Result(word, m.select(raised, m.constant(INVALID), m.constant(0)))


def _modulo(fmt: Format, x: Operand, y: Operand, d: Word) -> Fixed:
    """A 2**d mod B, an integer below B."""
    m, p = x.m, fmt.precision
    size = -(-p // DIGIT)
    modulus = of_bits(y.significand, 0, 0, size, 2.0**p)
    inverse = _inverse(y, size + 2)
    most = fmt.emax - (fmt.emin - fmt.fraction_bits)
    further = 0
    while most >> further > p:
        further += 1
    power = _power_of_two(m, m.shift_right(d, m.constant(further)) if further else d, p)
    for k in reversed(range(further)):
        rest = _reduced(power.square(0, power.limit**2), modulus, inverse, p)
        power = choose(_bit(m, d, k), rest.doubled(), rest)
    product = of_bits(x.significand, 0, 0, size, 2.0**p).times(power, 0)
    rest = _reduced(product, modulus, inverse, p)
    below = rest.less(modulus)
    lessened = rest.minus(choose(below, of_integer(m, 0, 0, size), modulus), 2.0**p)
    return lessened.below(2.0**p)


def _bit(m: Machine, word: Word, k: int) -> Predicate:
    return m.negation(m.equal(m.and_(word, m.constant(1 << k)), m.constant(0)))


def _power_of_two(m: Machine, exponent: Word, most: int) -> Fixed:
    """2**exponent, the exponent at most ``most``."""
    digits = []
    for first in range(0, most + 1, DIGIT):
        shift = m.subtract(exponent, m.constant(first))
        # below the first bit the difference wraps
        inside = m.less(shift, m.constant(DIGIT))
        one = m.shift_left(m.constant(1), smaller(m, shift, m.constant(DIGIT)))
        digits.append(m.select(inside, one, m.constant(0)))
    return Fixed(m, digits, 0, 2.0**most)


def _inverse(y: Operand, point: int) -> Fixed:
    """2**p / (4 B), at most that: its error is on one side."""
    fraction = y.fraction(-(-y.fmt.precision // DIGIT))
    found = reciprocal(fraction, point)
    units = ceil(found.error) + 1
    return found.minus(of_integer(y.m, units, point), found.limit).known(2.0 * units)


def _reduced(number: Fixed, modulus: Fixed, inverse: Fixed, p: int) -> Fixed:
    """S modulo B, in [0, 3/2 B), for S < 2**(2p + 4)."""
    m = number.m
    assert number.limit <= 2.0 ** (2 * p + 4)
    # S / B is S * inverse * 2**(2 - p)
    lowest = (p - 4) // DIGIT
    high = Fixed(m, number.digits[lowest:], 0, 2.0 ** (2 * p + 4 - DIGIT * lowest))
    product = high.times(inverse, 1)
    down = p - 2 - DIGIT * lowest
    lost = product.error * unit(1) / 2.0**down + 2.0 ** (DIGIT * lowest - (p - 1)) + 2.0**-20
    assert lost < 0.5
    quotient = product.scaled(down // DIGIT)
    if down % DIGIT:
        quotient = quotient.halved(down % DIGIT)
    quotient = quotient.to(0).below(2.0 ** (p + 5)).known(0.0)
    return quotient.from_minus(modulus, number, 1.5 * 2.0**p).known(0.0)
