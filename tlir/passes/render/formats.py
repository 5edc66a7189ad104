"""The numbers of a dtype or number format: what ``tlir info float16`` shows."""

from __future__ import annotations

import re
from typing import Any

from tlir.floatlib.format import ALIASES, FORMATS, Format
from tlir.floatlib.printing import to_decimal, to_hex_word, to_hexadecimal, to_rational
from tlir.ir.types import NAMED, DType, parse_dtype

MAX_EXACT = 24
"""Exact values are written as fractions of up to so many characters."""

_DESCRIBED = re.compile(r"e([0-9]{1,4})m([0-9]{1,5})")

NAN_TEXTS = {
    "ieee": "exponent bits all ones, fraction not zero",
    "all_ones": "exponent and fraction bits all ones",
    "negative_zero": "the word of -0",
    "none": "none",
}


def find(name: str) -> DType | Format | None:
    """The dtype or format of a name: a dtype, ``binary32`` and the like, or ``e5m10`` for exponent and fraction bits.

    None where it is no such name; FormatError where no format has these bits.
    """
    if name in ALIASES:
        return FORMATS[ALIASES[name]]
    if match := _DESCRIBED.fullmatch(name):
        return Format(int(match.group(1)), int(match.group(2)))
    try:
        return parse_dtype(name)
    except KeyError:
        return None


def dtype_facts(dtype: DType) -> dict[str, Any]:
    """The facts of a dtype as a JSON object: those of its format for floats; range and width for the others."""
    if dtype.is_float:
        return format_facts(dtype.float_format)
    facts: dict[str, Any] = {"name": dtype.name, "kind": dtype.kind}
    if dtype.is_complex:
        return facts | {"width": 2 * dtype.bits, "components": format_facts(dtype.float_format)}
    facts["width"] = dtype.bits
    if dtype.is_integer:
        low = -(1 << (dtype.bits - 1)) if dtype.is_signed else 0
        facts |= {"least": low, "greatest": low + (1 << dtype.bits) - 1}
    return facts


def format_facts(fmt: Format) -> dict[str, Any]:
    """The facts of a format as a JSON object.

    Every number has the shortest ``decimal`` that rounds to it, its ``exact`` value as an integer or fraction (null
    where that is long) and in ``hexadecimal``, and its ``word``; decimal and word are null for an epsilon that the
    format does not have.
    """
    return {
        "name": fmt.name,
        "kind": "float",
        "descriptor": fmt.to_descriptor(),
        "width": fmt.width,
        "sign_bits": int(fmt.signed),
        "exponent_bits": fmt.exponent_bits,
        "fraction_bits": fmt.fraction_bits,
        "precision": fmt.precision,
        "bias": fmt.bias,
        "least_exponent": fmt.emin,
        "greatest_exponent": fmt.emax,
        "numbers": _numbers(fmt),
        "special": _special(fmt),
        "dtypes": [name for name, dtype in NAMED.items() if dtype.is_float and dtype.format == fmt],
    }


def _numbers(fmt: Format) -> dict[str, dict[str, str | None]]:
    numbers = {"largest": _number(fmt, fmt.max_finite)}
    numbers["smallest_normal"] = _number(fmt, fmt.min_normal)
    if fmt.subnormals and fmt.fraction_bits:
        numbers["smallest_subnormal"] = _number(fmt, fmt.min_subnormal)
    try:
        numbers["epsilon"] = _number(fmt, fmt.encode(0, 1, -fmt.fraction_bits))
    except ValueError:
        hexadecimal = f"0x1p-{fmt.fraction_bits}"
        numbers["epsilon"] = {"decimal": None, "exact": None, "hexadecimal": hexadecimal, "word": None}
    return numbers


def _number(fmt: Format, word: int) -> dict[str, str | None]:
    exact = to_rational(fmt, word)
    return {
        "decimal": to_decimal(fmt, word),
        "exact": exact if len(exact) <= MAX_EXACT and "p" not in exact else None,
        "hexadecimal": to_hexadecimal(fmt, word),
        "word": to_hex_word(fmt, word),
    }


def _special(fmt: Format) -> dict[str, str]:
    inf = "none" if fmt.inf is None else to_hex_word(fmt, fmt.inf)
    nan = NAN_TEXTS[fmt.nans] + (f"; the canonical one is {to_hex_word(fmt, fmt.nan)}" if fmt.nan is not None else "")
    if not fmt.has_zero:
        zero = "none"
    elif fmt.signed_zero:
        zero = f"{to_hex_word(fmt, fmt.zero())} and -0 is {to_hex_word(fmt, fmt.zero(1))}"
    else:
        zero = f"{to_hex_word(fmt, fmt.zero())}, without a negative one"
    return {"infinity": inf, "nan": nan, "zero": zero}
