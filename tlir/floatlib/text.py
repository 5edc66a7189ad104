"""Numbers as text, read exactly and rounded once.

``parse`` accepts, with an optional sign:

=================  ==========================  =====================================================================
decimal            ``0.1``, ``1e-40``          an appended ``p-100`` multiplies by 2**-100: ``1p-100``, ``3.5p7``
hexadecimal        ``0x1.8p3``                 the exponent is optional
rational           ``1/3``, ``0x1p-3/7``       of two of the above
sum                ``1+1p-100``, ``2-1/3``     of any of the above; an exact zero is +0
special            ``inf``, ``nan``            ``infinity`` too; ``nan(0x7f800001)`` is the NaN of that word
word               ``bits:0x7fc00000``         the word itself, also binary (``bits:0b...``) and decimal
=================  ==========================  =====================================================================

No power is built that the exponent alone makes long: a number certain to overflow or to underflow is recognised from
bounds of its logarithm, and long powers of ten are enclosed between integers of a few words, which decide the rounding
because such a number is never exactly representable nor half way.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tlir.floatlib.arithmetic import NEAREST_EVEN, Result
from tlir.floatlib.digits import integer_of_digits
from tlir.floatlib.format import Format
from tlir.floatlib.rounding import NO_FLAGS, Flags, Rounding, infinity_word, round_exact, round_quotient, zero_result

MAX_TEXT = 100_000
"""The longest text of one number, in characters."""

MAX_SUM_BITS = 1 << 22
"""The widest span of binary places over which ``parse`` adds terms."""

MAX_TERMS = 64

EXACT_POWER = 4096
"""Powers of ten up to this one are always built."""

_EXPONENT = r"[+-]?[0-9]{1,40}"
_DECIMAL = rf"(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?(?:[eE](?P<ten>{_EXPONENT}))?(?:[pP](?P<two>{_EXPONENT}))?"
_HEXADECIMAL = rf"0[xX](?P<hexwhole>[0-9a-fA-F]*)(?:\.(?P<hexpart>[0-9a-fA-F]*))?(?:[pP](?P<hextwo>{_EXPONENT}))?"
_NUMBER = re.compile(f"(?:{_HEXADECIMAL}|{_DECIMAL})")
_SPECIAL = re.compile(r"(?P<sign>[+-]?)(?:(?P<inf>inf|infinity)|nan(?:\((?P<payload>0x[0-9a-f]+)\))?)", re.IGNORECASE)


class TextError(ValueError):
    """A text that is no number, or one that would take too much to evaluate; the message quotes it."""


@dataclass(frozen=True, slots=True)
class _Term:
    """numerator / denominator * 2**two * 10**ten, without its sign."""

    numerator: int
    denominator: int
    two: int
    ten: int


def parse(fmt: Format, text: str, rounding: Rounding = NEAREST_EVEN, saturate: bool = False) -> Result:
    """The word of the number that the text says, rounded once, and the flags of that; TextError if it says none.

    "inf" in a format without infinities is an overflow, "nan" in one without NaN raises INVALID."""
    stripped = text.strip()
    if len(stripped) > MAX_TEXT:
        raise TextError(f"a number of {len(stripped)} characters is too long; the limit is {MAX_TEXT}")
    if stripped.lower().startswith("bits:"):
        return parse_word(fmt, stripped[5:]), NO_FLAGS
    if special := _SPECIAL.fullmatch(stripped):
        return _special(fmt, special, saturate)
    terms = _terms(stripped)
    if len(terms) == 1:
        sign, term = terms[0]
        return _round_term(fmt, sign, term, rounding, saturate)
    return _round_sum(fmt, terms, stripped, rounding, saturate)


def parse_word(fmt: Format, text: str) -> int:
    """The word written as an integer of the format's width, ``0x7fc00000``, ``0b1010`` or decimal; else TextError."""
    digits = text.strip()
    if len(digits) > 4100 or not re.fullmatch(r"0[xX][0-9a-fA-F]+|0[bB][01]+|[0-9]+", digits):
        raise TextError(f"{_quote(text)} is not a word: write it as 0x, then hexadecimal digits")
    word = int(digits, 10 if digits.isdigit() else 0)
    if word > fmt.word_mask:
        raise TextError(f"{_quote(text)} has more than the {fmt.width} bits of {fmt.name}")
    return word


def _special(fmt: Format, match: re.Match[str], saturate: bool) -> Result:
    sign = int(match["sign"] == "-")
    if match["payload"]:
        word = parse_word(fmt, match["payload"])
        if not fmt.is_nan(word) or match["sign"]:
            raise TextError(f"{_quote(match[0])} is not a NaN of {fmt.name}: nan(...) holds its complete word, no sign")
        return word, NO_FLAGS
    if not match["inf"]:
        return fmt.invalid_word, NO_FLAGS if fmt.has_nan else Flags.INVALID
    if sign and not fmt.signed:
        return fmt.invalid_word, Flags.INVALID
    lost = saturate or not fmt.infinities
    return infinity_word(fmt, sign, saturate), Flags.OVERFLOW | Flags.INEXACT if lost else NO_FLAGS


def _terms(text: str) -> list[tuple[int, _Term]]:
    """The signed terms of a sum."""
    terms: list[tuple[int, _Term]] = []
    position, compact = 0, re.sub(r"\s*([+/-])\s*", r"\1", text)
    while position < len(compact) or not terms:
        sign = 0
        if compact[position : position + 1] in ("+", "-"):
            sign = int(compact[position] == "-")
            position += 1
        elif terms:
            raise TextError(f"{_quote(text)} is not a number")
        term, position = _number(compact, position, text)
        if compact[position : position + 1] == "/":
            divisor, position = _number(compact, position + 1, text)
            if divisor.numerator == 0:
                raise TextError(f"{_quote(text)} divides by zero")
            term = _Term(term.numerator, divisor.numerator, term.two - divisor.two, term.ten - divisor.ten)
        terms.append((sign, term))
        if len(terms) > MAX_TERMS:
            raise TextError(f"{_quote(text)} has more than {MAX_TERMS} terms")
    return terms


def _number(compact: str, position: int, text: str) -> tuple[_Term, int]:
    match = _NUMBER.match(compact, position)
    assert match is not None  # every part of the pattern is optional
    if match["hexwhole"] is not None:
        whole, part, two, ten = match["hexwhole"], match["hexpart"] or "", int(match["hextwo"] or 0), 0
        two -= 4 * len(part)
        numerator = int(whole + part, 16) if whole + part else None
    else:
        whole, part, two = match["whole"], match["part"] or "", int(match["two"] or 0)
        ten = int(match["ten"] or 0) - len(part)
        numerator = integer_of_digits(whole + part) if whole + part else None
    if numerator is None:
        raise TextError(
            f"{_quote(text)} is not a number: write a decimal, 0x1.8p3, 1/3, 1+1p-100, inf, nan or bits:0x..."
        )
    return _Term(numerator, 1, two, ten), match.end()


def _round_term(fmt: Format, sign: int, term: _Term, rounding: Rounding, saturate: bool) -> Result:
    if term.numerator == 0:
        return zero_result(fmt, sign)
    # bounds of the binary logarithm; 3.321928094 < log2(10) < 3.321928095
    low_ten, high_ten = sorted((term.ten * 3321928094, term.ten * 3321928095))
    middle = term.numerator.bit_length() - term.denominator.bit_length() + term.two
    if middle - 2 + low_ten // 10**9 > fmt.emax + 1:
        return round_exact(fmt, sign, 1, fmt.emax + 2, False, rounding, saturate)
    last = fmt.emin - fmt.fraction_bits
    if middle + 2 - -high_ten // 10**9 < last - 2:
        return round_exact(fmt, sign, 1, last - 3, False, rounding, saturate)
    # with more fives than this, some are left over after any cancellation, too many for the precision
    exact = 2 * max(fmt.precision + 2, term.numerator.bit_length(), term.denominator.bit_length())
    if abs(term.ten) <= max(EXACT_POWER, exact):
        numerator, denominator = _with_power(term)
        return round_quotient(fmt, sign, numerator, denominator, term.two + term.ten, rounding, saturate)
    return _round_enclosed(fmt, sign, term, rounding, saturate)


def _with_power(term: _Term) -> tuple[int, int]:
    """Numerator and denominator with the fives of the power of ten."""
    if term.ten >= 0:
        return term.numerator * 5**term.ten, term.denominator
    return term.numerator, term.denominator * 5**-term.ten


def _round_enclosed(fmt: Format, sign: int, term: _Term, rounding: Rounding, saturate: bool) -> Result:
    bits = fmt.precision + 64 + term.numerator.bit_length() + term.denominator.bit_length()
    while True:
        low, high, exponent = _power_of_five(abs(term.ten), bits)
        if term.ten >= 0:
            n_low, n_high, d_low, d_high = term.numerator * low, term.numerator * high, *[term.denominator] * 2
            exponent = term.two + term.ten + exponent
        else:
            n_low, n_high, d_low, d_high = *[term.numerator] * 2, term.denominator * low, term.denominator * high
            exponent = term.two + term.ten - exponent
        shift = max(0, fmt.precision + 32 + d_high.bit_length() - n_low.bit_length())
        below = (n_low << shift) // d_high
        above = -(-(n_high << shift) // d_low)
        # the number lies strictly between, so it is below plus something and above minus something
        first = round_exact(fmt, sign, below, exponent - shift, True, rounding, saturate)
        if first == round_exact(fmt, sign, above - 1, exponent - shift, True, rounding, saturate):
            return first
        bits *= 2


def _power_of_five(power: int, bits: int) -> tuple[int, int, int]:
    """low, high, e with low * 2**e <= 5**power <= high * 2**e, both of about ``bits`` bits and close together."""
    low = high = 1
    exponent = 0
    for digit in f"{power:b}":
        low, high, exponent = low * low, high * high, 2 * exponent
        if digit == "1":
            low, high = 5 * low, 5 * high
        excess = max(0, low.bit_length() - bits)
        low, high, exponent = low >> excess, -(-high >> excess), exponent + excess
    return low, high, exponent


def _round_sum(fmt: Format, terms: list[tuple[int, _Term]], text: str, rounding: Rounding, saturate: bool) -> Result:
    exact = [(sign, term) for sign, term in terms if term.numerator]
    if not exact:
        return zero_result(fmt, 0)
    if any(abs(term.ten) > EXACT_POWER for _, term in exact):
        raise TextError(
            f"{_quote(text)}: in a sum the powers of ten go up to 1e{EXACT_POWER}; write the term as 1p-100"
        )
    base = min(term.two + term.ten for _, term in exact)
    numerator, denominator = 0, 1
    for sign, term in exact:
        n, d = _with_power(term)
        places = term.two + term.ten - base
        if places > MAX_SUM_BITS:
            raise TextError(f"{_quote(text)}: the terms are more than {MAX_SUM_BITS} binary places apart")
        n = -(n << places) if sign else n << places
        numerator, denominator = numerator * d + n * denominator, denominator * d
    if numerator == 0:
        return zero_result(fmt, 0)
    return round_quotient(fmt, int(numerator < 0), abs(numerator), denominator, base, rounding, saturate)


def _quote(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
