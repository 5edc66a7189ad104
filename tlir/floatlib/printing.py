"""Words as exact text that ``text.parse`` reads back to the same word."""

from __future__ import annotations

from tlir.floatlib.digits import digits_of_integer
from tlir.floatlib.format import Format

MAX_DECIMAL_EXPONENT = 1 << 20
"""Beyond 2**this (and below its inverse) numbers are printed in hexadecimal: their decimal digits would need
powers of ten of a million bits. Formats of up to 20 exponent bits are never affected."""

MAX_RATIONAL_EXPONENT = 4096


def to_decimal(fmt: Format, word: int) -> str:
    """The shortest decimal that rounds (nearest-even) to this word, of several the nearest to its value; for float64
    what ``repr`` of a Python float gives. "inf", "-inf", "nan"; a NaN that is not the canonical one "nan(0x...)"."""
    if not fmt.is_finite(word):
        return _special(fmt, word)
    minus = "-" if fmt.sign(word) else ""
    if fmt.is_zero(word):
        return minus + "0.0"
    _, significand, exponent = fmt.decode(word)
    if abs(exponent + significand.bit_length()) > MAX_DECIMAL_EXPONENT:
        return to_hexadecimal(fmt, word)
    digits, power = shortest_digits(fmt, word)
    return minus + _layout(digits, power)


def shortest_digits(fmt: Format, word: int) -> tuple[str, int]:
    """Digits d without trailing zeros, and k, such that d * 10**k is the shortest decimal that rounds to the magnitude
    of a finite word that is not zero.

    The numbers that round to it form an interval, closed if the word is even. A multiple of 10**k inside it exists for
    all k up to a largest one, found by bisection; that k makes the digits fewest."""
    _, significand, exponent = fmt.decode(word)
    magnitude = fmt.magnitude(word)
    # in quarters of the last place; below a power of two the next number is half as far
    first_binade = magnitude < (2 if fmt.subnormals else 1) << fmt.fraction_bits
    halved = significand == 1 << fmt.fraction_bits and not first_binade
    low, value, high = 4 * significand - (1 if halved else 2), 4 * significand, 4 * significand + 2
    closed = magnitude & 1 == 0
    exponent -= 2

    def multiples(power: int) -> tuple[int, int, int, int]:
        """The least and the greatest d with d * 10**power inside, and the fraction value / 10**power."""
        scale_up = (10**-power if power < 0 else 1) << max(exponent, 0)
        scale_down = (10**power if power > 0 else 1) << max(-exponent, 0)
        if closed:
            least, greatest = -(-low * scale_up // scale_down), high * scale_up // scale_down
        else:
            least, greatest = low * scale_up // scale_down + 1, -(-high * scale_up // scale_down) - 1
        return max(least, 1), greatest, value * scale_up, scale_down

    # 10**upper exceeds the interval; 10**lower is below its width, so that a multiple lies inside
    upper = (high.bit_length() + exponent) * 30103 // 100000 + 2
    lower = (exponent * 30103) // 100000 - 2
    while upper - lower > 1:
        power = (lower + upper) // 2
        least, greatest, _, _ = multiples(power)
        if least <= greatest:
            lower = power
        else:
            upper = power
    count = len(digits_of_integer(multiples(lower)[0]).rstrip("0"))
    # that many digits reach further down if the multiple is in the decade above the value's (10 for 8, where 8 does
    # too); the value exceeds half of 10**lower, so its decade shows one power lower
    _, _, numerator, denominator = multiples(lower - 1)
    decade = len(digits_of_integer(numerator // denominator)) + lower - 2
    lower = min(lower, decade - count + 1)
    least, greatest, numerator, denominator = multiples(lower)
    nearest, rest = divmod(numerator, denominator)
    if 2 * rest > denominator or (2 * rest == denominator and nearest & 1):
        nearest += 1
    digits = digits_of_integer(min(max(nearest, least), greatest))
    stripped = digits.rstrip("0")
    return stripped, lower + len(digits) - len(stripped)


def to_hexadecimal(fmt: Format, word: int) -> str:
    """As C's %a, with a leading digit 1 and no trailing zeros: "0x1.8p+3"; subnormal numbers too."""
    if not fmt.is_finite(word):
        return _special(fmt, word)
    sign, significand, exponent = fmt.decode(word)
    minus = "-" if sign else ""
    if significand == 0:
        return f"{minus}0x0p+0"
    places = significand.bit_length() - 1
    fraction = significand - (1 << places)
    width = -(-places // 4)
    digits = f"{fraction << (4 * width - places):0{width}x}".rstrip("0") if width else ""
    return f"{minus}0x1{'.' if digits else ''}{digits}p{exponent + places:+d}"


def to_rational(fmt: Format, word: int) -> str:
    """The exact value as "3/8" or "-5". Beyond 2**4096 and its inverse as "3p-5000", an integer and a power of two."""
    if not fmt.is_finite(word):
        return _special(fmt, word)
    sign, significand, exponent = fmt.decode(word)
    minus = "-" if sign else ""
    if significand == 0:
        return f"{minus}0"
    trailing = (significand & -significand).bit_length() - 1
    significand, exponent = significand >> trailing, exponent + trailing
    if abs(exponent) > MAX_RATIONAL_EXPONENT:
        return f"{minus}{digits_of_integer(significand)}p{exponent}"
    if exponent >= 0:
        return f"{minus}{digits_of_integer(significand << exponent)}"
    return f"{minus}{digits_of_integer(significand)}/{digits_of_integer(1 << -exponent)}"


def to_bits(fmt: Format, word: int) -> str:
    """The complete word, "bits:0x7fc00000"."""
    return f"bits:{to_hex_word(fmt, word)}"


def to_hex_word(fmt: Format, word: int) -> str:
    """ "0x" and as many hexadecimal digits as the width takes."""
    return f"0x{word:0{-(-fmt.width // 4)}x}"


def _special(fmt: Format, word: int) -> str:
    if fmt.is_inf(word):
        return "-inf" if fmt.sign(word) else "inf"
    return "nan" if word == fmt.nan else f"nan({to_hex_word(fmt, word)})"


def _layout(digits: str, power: int) -> str:
    """As ``repr`` of a Python float lays out digits * 10**power."""
    point = len(digits) + power  # places before the point
    if not -4 < point <= 16:
        mantissa = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
        return f"{mantissa}e{point - 1:+03d}"
    if point <= 0:
        return "0." + "0" * -point + digits
    if point >= len(digits):
        return digits + "0" * (point - len(digits)) + ".0"
    return digits[:point] + "." + digits[point:]
