"""The kernels of arithmetic: functions of a machine on words of one format.

Each has the meaning of the function of the same name in ``tlir.floatlib.arithmetic`` for one rounding mode, fixed when
the code is built. The finite path is computed for every operand; the cases of special operands then override it.
"""

from __future__ import annotations

from tlir.floatlib.format import Format
from tlir.floatlib.rounding import Flags, Rounding
from tlir.floatlib.soft import division
from tlir.floatlib.soft.machine import Machine, Predicate, Word
from tlir.floatlib.soft.rounding import (
    INVALID,
    Case,
    Exponent,
    Result,
    Unpacked,
    infinite_word,
    is_signaling,
    override,
    round_pack,
    signed_word,
    smaller,
    unpack,
)
from tlir.floatlib.soft.uint import Uint, choose, constant

NEAREST_EVEN = Rounding.NEAREST_EVEN


def invalid_case(m: Machine, fmt: Format, holds: Predicate) -> Case:
    return holds, constant(m, fmt.invalid_word, fmt.width), INVALID


def nan_cases(m: Machine, fmt: Format, flags: bool, *operands: Unpacked) -> list[Case]:
    """A NaN operand gives the canonical NaN, and INVALID where one is signaling."""
    if not fmt.has_nan:
        return []
    nan, signaling = operands[0].nan, is_signaling(m, operands[0])
    for operand in operands[1:]:
        nan = m.either(nan, operand.nan)
        signaling = m.either(signaling, is_signaling(m, operand))
    quiet = (nan, constant(m, fmt.invalid_word, fmt.width), 0)
    return [quiet, invalid_case(m, fmt, signaling)] if flags and fmt.nans == "ieee" else [quiet]


def zero_case(m: Machine, fmt: Format, holds: Predicate, sign: Predicate) -> Case:
    """An exact zero, as ``rounding.zero_result``."""
    if not fmt.has_zero:
        return invalid_case(m, fmt, holds)
    return holds, signed_word(m, fmt, sign, constant(m, 0, fmt.magnitude_bits)), 0


def add(m: Machine, fmt: Format, a: Uint, b: Uint, rounding: Rounding = NEAREST_EVEN, flags: bool = False) -> Result:
    """a + b."""
    x, y = unpack(m, fmt, a), unpack(m, fmt, b)
    return _sum(m, fmt, x, y, y.sign, rounding, flags)


def subtract(
    m: Machine, fmt: Format, a: Uint, b: Uint, rounding: Rounding = NEAREST_EVEN, flags: bool = False
) -> Result:
    """a - b."""
    x, y = unpack(m, fmt, a), unpack(m, fmt, b)
    return _sum(m, fmt, x, y, m.negation(y.sign), rounding, flags)


def _sum(
    m: Machine, fmt: Format, x: Unpacked, y: Unpacked, y_sign: Predicate, rounding: Rounding, flags: bool
) -> Result:
    precision = fmt.precision
    opposite = m.differ(x.sign, y_sign)
    swap = x.magnitude.less(y.magnitude)
    big, small = choose(swap, y.significand, x.significand), choose(swap, x.significand, y.significand)
    field, other = m.select(swap, y.field, x.field), m.select(swap, x.field, y.field)
    sign = m.select(swap, y_sign, x.sign)
    # three bits below the last place and one sticky bit decide every rounding of a sum
    distance = smaller(m, m.subtract(field, other), m.constant(precision + 3))
    shifted = small.left(3).right_by_sticky(distance, precision + 3)
    total = choose(opposite, big.left(3).minus(shifted), big.left(3).plus(shifted))
    finite = round_pack(m, fmt, sign, total, Exponent(field, 0), rounding, flags, may_underflow=False)
    zero_sign = m.select(opposite, m.truth(rounding is Rounding.DOWN), x.sign)
    cases = [zero_case(m, fmt, total.is_zero(), zero_sign)]
    if fmt.infinities:
        cases.append((y.inf, infinite_word(m, fmt, y_sign), 0))
        if not fmt.signed:
            cases.append(invalid_case(m, fmt, m.both(y.inf, y_sign)))
        cases.append((x.inf, x.word, 0))
        cases.append(invalid_case(m, fmt, m.both(m.both(x.inf, y.inf), opposite)))
    return override(m, finite, [*cases, *nan_cases(m, fmt, flags, x, y)])


def multiply(
    m: Machine, fmt: Format, a: Uint, b: Uint, rounding: Rounding = NEAREST_EVEN, flags: bool = False
) -> Result:
    """a * b."""
    x, y = unpack(m, fmt, a), unpack(m, fmt, b)
    sign = m.differ(x.sign, y.sign)
    product = x.significand.times(y.significand)
    # the highest bit of the product has the exponent 2 * emin + (x.field - 1) + (y.field - 1) + 1
    top = Exponent(m.add(x.field, y.field), 1 - fmt.emin)
    finite = round_pack(m, fmt, sign, product, top, rounding, flags)
    zero = m.either(x.zero, y.zero)
    cases = [zero_case(m, fmt, zero, sign)] if fmt.has_zero else []
    if fmt.infinities:
        infinite = m.either(x.inf, y.inf)
        cases.append((infinite, infinite_word(m, fmt, sign), 0))
        cases.append(invalid_case(m, fmt, m.both(infinite, zero)))
    return override(m, finite, [*cases, *nan_cases(m, fmt, flags, x, y)])


def normalized(m: Machine, x: Unpacked) -> tuple[Uint, Word]:
    """The significand shifted so that its highest bit is set, and by how much; of zero it is a one."""
    if not x.fmt.subnormals:
        return x.significand, m.constant(0)
    shift = x.significand.with_bit(0, x.zero).leading_zeros()
    return x.significand.left_by(shift, x.fmt.precision - 1), shift


def divide(m: Machine, fmt: Format, a: Uint, b: Uint, rounding: Rounding = NEAREST_EVEN, flags: bool = False) -> Result:
    """a / b."""
    x, y = unpack(m, fmt, a), unpack(m, fmt, b)
    sign = m.differ(x.sign, y.sign)
    numerator, x_shift = normalized(m, x)
    denominator, y_shift = normalized(m, y)
    quotient, rest = division.divide(numerator, denominator.with_bit(fmt.precision - 1, y.zero), fmt.precision + 2)
    # both significands lie in [2**(p-1), 2**p): their exponents' difference is that of the quotient's highest bit
    lift = (1 << fmt.exponent_bits) + fmt.precision
    word = m.subtract(m.add(m.add(x.field, y_shift), m.constant(lift)), m.add(y.field, x_shift))
    finite = round_pack(m, fmt, sign, quotient, Exponent(word, lift + fmt.emin), rounding, flags, rest, leading=1)
    cases = []
    if fmt.infinities or fmt.has_zero:
        cases.append(zero_case(m, fmt, m.either(x.zero, y.inf), sign))
        cases.append((y.zero, infinite_word(m, fmt, sign), int(Flags.DIVIDE_BY_ZERO)))
        cases.append((x.inf, infinite_word(m, fmt, sign), 0))
        cases.append(invalid_case(m, fmt, m.either(m.both(x.zero, y.zero), m.both(x.inf, y.inf))))
    return override(m, finite, [*cases, *nan_cases(m, fmt, flags, x, y)])


def remainder_truncated(m: Machine, fmt: Format, a: Uint, b: Uint, flags: bool = False) -> Result:
    """a - b * trunc(a / b), exact. It takes as many steps as the exponents differ by digits, so that only machines that
    have loops can do it: those of ``BigUint``."""
    x, y = unpack(m, fmt, a), unpack(m, fmt, b)
    precision = fmt.precision
    numerator, x_shift = normalized(m, x)
    denominator, y_shift = normalized(m, y)
    denominator = denominator.with_bit(precision - 1, y.zero)
    below = x.magnitude.less(y.magnitude)
    difference = m.subtract(m.add(x.field, y_shift), m.add(y.field, x_shift))
    distance = m.select(m.either(below, m.either(x.zero, y.zero)), m.constant(0), difference)
    rest = numerator.remaining(denominator, distance)
    # the divisor's highest bit has the exponent y.field - 1 - y_shift, counted from emin
    top = Exponent(m.subtract(m.add(y.field, m.constant(precision)), y_shift), precision + 1)
    finite = round_pack(m, fmt, x.sign, rest, top, flags=flags)
    cases = [zero_case(m, fmt, rest.is_zero(), x.sign), (m.either(below, x.zero), x.word, 0)]
    if fmt.infinities:
        cases.append((y.inf, x.word, 0))
    cases.append(invalid_case(m, fmt, m.either(x.inf, y.zero)))
    return override(m, finite, [*cases, *nan_cases(m, fmt, flags, x, y)])


def sqrt(m: Machine, fmt: Format, a: Uint, rounding: Rounding = NEAREST_EVEN, flags: bool = False) -> Result:
    """The square root of a."""
    x = unpack(m, fmt, a)
    significand, shift = normalized(m, x)
    precision = fmt.precision
    # twice the exponent of the root's highest bit, plus one where the exponent is odd
    lift = 2 * (precision + abs(fmt.emin))
    doubled = m.subtract(m.add(x.field, m.constant(lift + fmt.emin - 1)), shift)
    odd = m.negation(m.equal(m.and_(doubled, m.constant(1)), m.constant(0)))
    root_bits = precision + 2
    significand = significand.with_bit(precision - 1, x.zero)
    radicand = choose(odd, significand.left(1), significand).left(2 * root_bits - 1 - precision)
    root, rest = division.square_root(radicand.resized(2 * root_bits))
    top = Exponent(m.shift_right(doubled, m.constant(1)), lift // 2 + fmt.emin)
    may_underflow = (fmt.emin - fmt.fraction_bits) // 2 < fmt.emin
    finite = round_pack(
        m, fmt, m.truth(False), root, top, rounding, flags, rest, may_underflow=may_underflow, leading=0
    )
    cases: list[Case] = []
    if fmt.infinities:
        cases.append((x.inf, x.word, 0))
    if fmt.signed:
        cases.append(invalid_case(m, fmt, x.sign))
    if fmt.has_zero:
        cases.append((x.zero, x.word, 0))
    return override(m, finite, [*cases, *nan_cases(m, fmt, flags, x)])


def fma(
    m: Machine,
    fmt: Format,
    a: Uint,
    b: Uint,
    c: Uint,
    rounding: Rounding = NEAREST_EVEN,
    flags: bool = False,
) -> Result:
    """a * b + c, rounded once."""
    x, y, z = unpack(m, fmt, a), unpack(m, fmt, b), unpack(m, fmt, c)
    precision = fmt.precision
    sign = m.differ(x.sign, y.sign)
    opposite = m.differ(sign, z.sign)
    left, x_shift = normalized(m, x)
    right, y_shift = normalized(m, y)
    added, z_shift = normalized(m, z)
    # registers of 2p bits and four guard bits: the product's highest bit is one of the top two, the addend's the top
    guard = 4
    bits = 2 * precision + guard
    product, addend = left.times(right).left(guard), added.left(precision + guard)
    # exponents of the registers' top bits, counted from emin
    lift = (1 << (fmt.exponent_bits + 1)) + 4 * precision + 2 * abs(fmt.emin)
    product_top = m.subtract(m.add(m.add(x.field, y.field), m.constant(lift + fmt.emin - 1)), m.add(x_shift, y_shift))
    addend_top = m.subtract(m.add(z.field, m.constant(lift - 1)), z_shift)
    product_zero = m.either(x.zero, y.zero)
    if fmt.has_zero:
        # an operand that is zero must not push the other one out of its register
        product_top = m.select(product_zero, m.constant(0), product_top)
        addend_top = m.select(z.zero, m.constant(0), addend_top)
    swap = m.less(product_top, addend_top)
    top, other = m.select(swap, addend_top, product_top), m.select(swap, product_top, addend_top)
    distance = smaller(m, m.subtract(top, other), m.constant(bits))
    big = choose(swap, addend, product)
    small = choose(swap, product, addend).right_by_sticky(distance, bits)
    negative = m.both(opposite, big.less(small))
    difference = choose(negative, small.minus(big), big.minus(small))
    total = choose(opposite, difference, big.plus(small))
    # the sign is that of the larger one; with equal exponents that is decided by the subtraction
    total_sign = m.differ(m.select(swap, z.sign, sign), negative)
    exponent = Exponent(m.add(top, m.constant(1)), lift)
    finite = round_pack(m, fmt, total_sign, total, exponent, rounding, flags)
    zero_sign = m.select(opposite, m.truth(rounding is Rounding.DOWN), sign)
    cases = [zero_case(m, fmt, total.is_zero(), zero_sign)]
    if fmt.infinities:
        infinite = m.either(x.inf, y.inf)
        cases.append((z.inf, z.word, 0))
        cases.append((infinite, infinite_word(m, fmt, sign), 0))
        cases.append(invalid_case(m, fmt, m.both(m.both(infinite, z.inf), opposite)))
    cases += nan_cases(m, fmt, flags, x, y, z)
    if fmt.infinities and fmt.has_zero:
        cases.append(invalid_case(m, fmt, m.either(m.both(x.inf, y.zero), m.both(x.zero, y.inf))))
    return override(m, finite, cases)
