"""The specification of arithmetic: exact integers, then one rounding.

Every function takes words of one format and returns (word, flags). Common to all of them:

* A NaN operand gives ``Format.invalid_word``, the canonical NaN; a signaling one raises INVALID.
* An operation without a result (0/0, the square root of a negative number) gives that word too, and raises INVALID. In
  a format without NaN the flag is all there is to tell.
* An infinite result in a format without infinities is ``rounding.infinity_word``: NaN, or else the largest number.
* An exact sum of zero from operands of opposite signs is +0, and -0 when rounding down.
"""

from __future__ import annotations

from math import isqrt

from tlir.floatlib.format import Format
from tlir.floatlib.rounding import (
    NO_FLAGS,
    Flags,
    Rounding,
    infinity_word,
    round_exact,
    round_quotient,
    zero_result,
)

NEAREST_EVEN = Rounding.NEAREST_EVEN
Result = tuple[int, Flags]


def add(fmt: Format, a: int, b: int, rounding: Rounding = NEAREST_EVEN) -> Result:
    """a + b. INVALID for infinities of opposite signs."""
    if fmt.is_nan(a) or fmt.is_nan(b):
        return nan_result(fmt, a, b)
    if fmt.is_inf(a) or fmt.is_inf(b):
        return _infinite_sum(fmt, a, b)
    return _round_sum(fmt, fmt.decode(a), fmt.decode(b), rounding)


def subtract(fmt: Format, a: int, b: int, rounding: Rounding = NEAREST_EVEN) -> Result:
    """a - b. INVALID for infinities of the same sign."""
    if fmt.is_nan(a) or fmt.is_nan(b):
        return nan_result(fmt, a, b)
    if fmt.is_inf(a) or fmt.is_inf(b):
        # an unsigned format cannot say -inf, but inf - x is decided all the same
        if fmt.is_inf(b) and fmt.is_inf(a) and fmt.sign(a) == fmt.sign(b):
            return fmt.invalid_word, Flags.INVALID
        if fmt.is_inf(a):
            return a, NO_FLAGS
        return (b ^ fmt.sign_mask, NO_FLAGS) if fmt.signed else (fmt.invalid_word, Flags.INVALID)
    sign, significand, exponent = fmt.decode(b)
    return _round_sum(fmt, fmt.decode(a), (1 - sign, significand, exponent), rounding)


def multiply(fmt: Format, a: int, b: int, rounding: Rounding = NEAREST_EVEN) -> Result:
    """a * b. INVALID for zero times infinity."""
    if fmt.is_nan(a) or fmt.is_nan(b):
        return nan_result(fmt, a, b)
    sign = fmt.sign(a) ^ fmt.sign(b)
    if fmt.is_inf(a) or fmt.is_inf(b):
        if fmt.is_zero(a) or fmt.is_zero(b):
            return fmt.invalid_word, Flags.INVALID
        return infinity_word(fmt, sign), NO_FLAGS
    _, significand_a, exponent_a = fmt.decode(a)
    _, significand_b, exponent_b = fmt.decode(b)
    return round_exact(fmt, sign, significand_a * significand_b, exponent_a + exponent_b, rounding=rounding)


def divide(fmt: Format, a: int, b: int, rounding: Rounding = NEAREST_EVEN) -> Result:
    """a / b. DIVIDE_BY_ZERO for a finite number over zero, INVALID for 0/0 and inf/inf."""
    if fmt.is_nan(a) or fmt.is_nan(b):
        return nan_result(fmt, a, b)
    sign = fmt.sign(a) ^ fmt.sign(b)
    if fmt.is_inf(a):
        return (fmt.invalid_word, Flags.INVALID) if fmt.is_inf(b) else (infinity_word(fmt, sign), NO_FLAGS)
    if fmt.is_inf(b):
        return zero_result(fmt, sign)
    if fmt.is_zero(b):
        if fmt.is_zero(a):
            return fmt.invalid_word, Flags.INVALID
        return infinity_word(fmt, sign), Flags.DIVIDE_BY_ZERO
    _, significand_a, exponent_a = fmt.decode(a)
    _, significand_b, exponent_b = fmt.decode(b)
    return round_quotient(fmt, sign, significand_a, significand_b, exponent_a - exponent_b, rounding)


def sqrt(fmt: Format, a: int, rounding: Rounding = NEAREST_EVEN) -> Result:
    """The square root; of -0 it is -0. INVALID below zero."""
    if fmt.is_nan(a):
        return nan_result(fmt, a)
    if fmt.is_zero(a):
        return a, NO_FLAGS
    if fmt.sign(a):
        return fmt.invalid_word, Flags.INVALID
    if fmt.is_inf(a):
        return a, NO_FLAGS
    _, significand, exponent = fmt.decode(a)
    # an even exponent and a radicand of 2 * (precision + 2) bits, so that the root reaches below the last place
    shift = max(0, 2 * (fmt.precision + 2) - significand.bit_length())
    shift += (exponent - shift) & 1
    radicand = significand << shift
    root = isqrt(radicand)
    return round_exact(fmt, 0, root, (exponent - shift) // 2, root * root != radicand, rounding)


def fma(fmt: Format, a: int, b: int, c: int, rounding: Rounding = NEAREST_EVEN) -> Result:
    """a * b + c with one rounding. INVALID for zero times infinity, whatever c is (a quiet NaN too, as in RISC-V)."""
    product_invalid = (fmt.is_inf(a) and fmt.is_zero(b)) or (fmt.is_zero(a) and fmt.is_inf(b))
    if product_invalid:
        return fmt.invalid_word, Flags.INVALID
    if fmt.is_nan(a) or fmt.is_nan(b) or fmt.is_nan(c):
        return nan_result(fmt, a, b, c)
    sign = fmt.sign(a) ^ fmt.sign(b)
    if fmt.is_inf(a) or fmt.is_inf(b):
        if fmt.is_inf(c) and fmt.sign(c) != sign:
            return fmt.invalid_word, Flags.INVALID
        return infinity_word(fmt, sign), NO_FLAGS
    if fmt.is_inf(c):
        return c, NO_FLAGS
    _, significand_a, exponent_a = fmt.decode(a)
    _, significand_b, exponent_b = fmt.decode(b)
    product = (sign, significand_a * significand_b, exponent_a + exponent_b)
    return _round_sum(fmt, product, fmt.decode(c), rounding)


def remainder_truncated(fmt: Format, a: int, b: int) -> Result:
    """a - b * trunc(a / b), exact, with the sign of a: C's fmod. INVALID when a is infinite or b is zero."""
    return _remainder(fmt, a, b, nearest=False)


def remainder_ieee(fmt: Format, a: int, b: int) -> Result:
    """a - b * n for the integer n nearest to a / b, the even one of two, exact; a zero has the sign of a.

    IEEE 754's remainder. INVALID when a is infinite or b is zero."""
    return _remainder(fmt, a, b, nearest=True)


def round_to_integral(fmt: Format, a: int, rounding: Rounding = NEAREST_EVEN) -> Result:
    """The integer next to a in the rounding's direction, with the sign of a. INEXACT is not raised, as for IEEE 754's
    roundToIntegralTiesToEven, TiesToAway, TowardZero (trunc), TowardPositive (ceil) and TowardNegative (floor); an
    integer that the format lacks is rounded like any result."""
    if fmt.is_nan(a):
        return nan_result(fmt, a)
    if fmt.is_inf(a):
        return a, NO_FLAGS
    sign, significand, exponent = fmt.decode(a)
    if exponent >= 0 or significand == 0:
        return a, NO_FLAGS
    integer, _ = integer_part(sign, significand, exponent, rounding)
    return round_exact(fmt, sign, integer, 0, rounding=rounding)


def scale_b(fmt: Format, a: int, n: int, rounding: Rounding = NEAREST_EVEN) -> Result:
    """a * 2**n for any integer n."""
    if fmt.is_nan(a):
        return nan_result(fmt, a)
    if fmt.is_inf(a):
        return a, NO_FLAGS
    sign, significand, exponent = fmt.decode(a)
    return round_exact(fmt, sign, significand, exponent + n, rounding=rounding)


def nan_result(fmt: Format, *operands: int) -> Result:
    """The canonical NaN for operands of which one is NaN; INVALID if one is signaling."""
    signaling = any(fmt.is_signaling(word) for word in operands)
    return fmt.invalid_word, Flags.INVALID if signaling else NO_FLAGS


def integer_part(sign: int, significand: int, exponent: int, rounding: Rounding) -> tuple[int, bool]:
    """The integer that significand * 2**exponent (exponent < 0) rounds to, and whether that is inexact."""
    shift = min(-exponent, significand.bit_length() + 2)
    integer = significand >> shift
    rest, half = significand - (integer << shift), 1 << (shift - 1)
    if rest == 0:
        return integer, False
    match rounding:
        case Rounding.NEAREST_EVEN:
            up = rest > half or (rest == half and integer & 1 == 1)
        case Rounding.NEAREST_AWAY:
            up = rest >= half
        case Rounding.UP:
            up = not sign
        case Rounding.DOWN:
            up = bool(sign)
        case Rounding.TOWARD_ZERO:
            up = False
        case Rounding.TO_ODD:
            up = integer & 1 == 0
    return integer + up, True


def _infinite_sum(fmt: Format, a: int, b: int) -> Result:
    if fmt.is_inf(a) and fmt.is_inf(b) and fmt.sign(a) != fmt.sign(b):
        return fmt.invalid_word, Flags.INVALID
    return (a if fmt.is_inf(a) else b), NO_FLAGS


def _round_sum(fmt: Format, x: tuple[int, int, int], y: tuple[int, int, int], rounding: Rounding) -> Result:
    """x + y rounded once, for finite (sign, significand, exponent)."""
    if x[1] == 0 or y[1] == 0:
        if x[1] == y[1]:
            return zero_result(fmt, x[0] if x[0] == y[0] else int(rounding is Rounding.DOWN))
        sign, significand, exponent = x if x[1] else y
        return round_exact(fmt, sign, significand, exponent, rounding=rounding)
    if x[1].bit_length() + x[2] < y[1].bit_length() + y[2]:
        x, y = y, x
    (sign_x, significand_x, exponent_x), (sign_y, significand_y, exponent_y) = x, y
    # below this place, y can only decide which side of x the sum lies on
    floor = min(exponent_x, significand_x.bit_length() + exponent_x - fmt.precision - 4)
    if significand_y.bit_length() + exponent_y <= floor:
        significand = (significand_x << (exponent_x - floor)) - (sign_x != sign_y)
        return round_exact(fmt, sign_x, significand, floor, True, rounding)
    exponent = min(exponent_x, exponent_y)
    total = _signed(sign_x, significand_x << (exponent_x - exponent))
    total += _signed(sign_y, significand_y << (exponent_y - exponent))
    if total == 0:
        return zero_result(fmt, int(rounding is Rounding.DOWN))
    return round_exact(fmt, int(total < 0), abs(total), exponent, rounding=rounding)


def _signed(sign: int, magnitude: int) -> int:
    return -magnitude if sign else magnitude


def _remainder(fmt: Format, a: int, b: int, nearest: bool) -> Result:
    if fmt.is_nan(a) or fmt.is_nan(b):
        return nan_result(fmt, a, b)
    if fmt.is_inf(a) or fmt.is_zero(b):
        return fmt.invalid_word, Flags.INVALID
    if fmt.is_inf(b) or fmt.is_zero(a):
        return a, NO_FLAGS
    sign, significand_a, exponent_a = fmt.decode(a)
    _, significand_b, exponent_b = fmt.decode(b)
    if significand_a.bit_length() + exponent_a < significand_b.bit_length() + exponent_b - 1:
        return a, NO_FLAGS  # less than half of b
    exponent = min(exponent_a, exponent_b)
    divisor = significand_b << (exponent_b - exponent)
    # modulo twice the divisor, which keeps the parity of the quotient; the power is never built
    rest = significand_a * pow(2, exponent_a - exponent, 2 * divisor) % (2 * divisor)
    odd, rest = divmod(rest, divisor)
    if nearest and (2 * rest > divisor or (2 * rest == divisor and odd)):
        return round_exact(fmt, 1 - sign, divisor - rest, exponent)
    return round_exact(fmt, sign, rest, exponent)
