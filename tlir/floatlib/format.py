"""Binary floating-point formats: how a word encodes a value.

A word is ``sign | exponent field | fraction``; the part below the sign is its *magnitude*. Magnitudes of finite numbers
grow with the value, from 0 to ``max_finite_magnitude``; what infinities and NaN take away lies above that. Every
constant of a format is derived here from its descriptor, none is typed in.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

MAX_EXPONENT_BITS = 30
MAX_FRACTION_BITS = 4096
MAX_BIAS = 2**31

NAN_CONVENTIONS = ("ieee", "all_ones", "negative_zero", "none")


class FormatError(ValueError):
    """A descriptor that no format can have, or the name of no known format."""


@dataclass(frozen=True)
class Format:
    """One binary format.

    ``exponent_bits``, ``fraction_bits``: widths of the two fields (1 to 30, and 0 to 4096).
    ``bias``: of the exponent field; ``None`` is IEEE's ``2**(exponent_bits - 1) - 1``.
    ``infinities``: whether the format has them. They are the all-ones exponent with a zero fraction when ``nans`` is
    "ieee", otherwise the largest magnitude that is not a NaN.
    ``nans``: "ieee": the all-ones exponent with a fraction that is not zero, the top fraction bit telling quiet from
    signaling; "all_ones": the magnitude of all ones, under both signs; "negative_zero": the one word that would be
    -0; "none".
    ``signed_zero``: whether -0 exists. ``signed``: whether there is a sign bit.
    ``subnormals``: whether the zero exponent field means zero and the subnormals. Where it does not, it is one more
    binade of normal numbers, and the format has no zero at all (float8_e8m0fnu).

    FormatError for a descriptor that contradicts itself.
    """

    exponent_bits: int
    fraction_bits: int
    bias: int = None  # type: ignore[assignment]  # replaced by IEEE's in __post_init__
    infinities: bool = True
    nans: str = "ieee"
    signed_zero: bool = True
    signed: bool = True
    subnormals: bool = True

    def __post_init__(self) -> None:
        _check_integer("exponent_bits", self.exponent_bits, 1, MAX_EXPONENT_BITS)
        _check_integer("fraction_bits", self.fraction_bits, 0, MAX_FRACTION_BITS)
        if self.bias is None:
            object.__setattr__(self, "bias", (1 << (self.exponent_bits - 1)) - 1)
        _check_integer("bias", self.bias, -MAX_BIAS, MAX_BIAS)
        for flag in ("infinities", "signed_zero", "signed", "subnormals"):
            if not isinstance(getattr(self, flag), bool):
                raise FormatError(f"{flag} is {getattr(self, flag)!r}; it must be true or false")
        if self.nans not in NAN_CONVENTIONS:
            raise FormatError(f"nans is {self.nans!r}; it must be one of {', '.join(NAN_CONVENTIONS)}")
        if self.nans == "ieee":
            if not self.infinities:
                others = ", ".join(NAN_CONVENTIONS[1:])
                raise FormatError(f'nans "ieee" needs infinities; a format without them says one of {others}')
            if self.fraction_bits == 0:
                raise FormatError('nans "ieee" needs a fraction bit to tell NaN from infinity')
        if self.signed_zero and not self.signed:
            raise FormatError("signed_zero needs a sign bit: an unsigned format says signed_zero=False")
        if self.signed_zero and not self.subnormals:
            raise FormatError("a format with subnormals=False has no zero, so it says signed_zero=False")
        if self.nans == "negative_zero":
            if not self.signed or not self.subnormals:
                raise FormatError('nans "negative_zero" needs a sign bit and a zero')
            if self.signed_zero:
                raise FormatError('nans "negative_zero" takes the word of -0, so the format says signed_zero=False')
        elif self.signed and self.subnormals and not self.signed_zero:
            raise FormatError('a signed format without -0 uses its word for NaN: it says nans="negative_zero"')
        if self.max_finite_magnitude < (1 << self.fraction_bits):
            raise FormatError(
                f"{self.exponent_bits} exponent and {self.fraction_bits} fraction bits leave no normal number "
                f"beside the infinities and NaN asked for"
            )

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        # of integers alone, so that it is the same in every process that a format is sent to
        conventions = (
            self.infinities,
            NAN_CONVENTIONS.index(self.nans),
            self.signed_zero,
            self.signed,
            self.subnormals,
        )
        return hash((self.exponent_bits, self.fraction_bits, self.bias, conventions))

    # Shape

    @cached_property
    def width(self) -> int:
        """Bits of a word."""
        return int(self.signed) + self.magnitude_bits

    @cached_property
    def magnitude_bits(self) -> int:
        return self.exponent_bits + self.fraction_bits

    @cached_property
    def precision(self) -> int:
        """Bits of a normal significand, the implicit one included."""
        return self.fraction_bits + 1

    @cached_property
    def emin(self) -> int:
        """The exponent of the smallest normal number, 2**emin."""
        return (1 if self.subnormals else 0) - self.bias

    @cached_property
    def emax(self) -> int:
        """The exponent of the largest finite number: 2**emax <= max_finite < 2**(emax + 1)."""
        return (self.max_finite_magnitude >> self.fraction_bits) - self.bias

    @cached_property
    def sign_mask(self) -> int:
        """The word with only the sign bit set; 0 in an unsigned format."""
        return 1 << self.magnitude_bits if self.signed else 0

    @cached_property
    def magnitude_mask(self) -> int:
        return (1 << self.magnitude_bits) - 1

    @cached_property
    def word_mask(self) -> int:
        return (1 << self.width) - 1

    @cached_property
    def fraction_mask(self) -> int:
        return (1 << self.fraction_bits) - 1

    # Particular words

    @cached_property
    def max_finite_magnitude(self) -> int:
        if self.nans == "ieee":
            return (((1 << self.exponent_bits) - 1) << self.fraction_bits) - 1
        return self.magnitude_mask - int(self.nans == "all_ones") - int(self.infinities)

    @property
    def max_finite(self) -> int:
        """The word of the largest finite number."""
        return self.max_finite_magnitude

    @cached_property
    def lowest_finite(self) -> int:
        """The word of the least finite number: -max_finite, or the smallest magnitude of an unsigned format."""
        return self.sign_mask | self.max_finite_magnitude if self.signed else 0

    @cached_property
    def min_normal(self) -> int:
        """The word of 2**emin."""
        return 1 << self.fraction_bits if self.subnormals else 0

    @cached_property
    def min_subnormal(self) -> int:
        """The word of the smallest number above zero (2**emin itself where there are no subnormals)."""
        return 1 if self.subnormals else 0

    @cached_property
    def epsilon(self) -> Fraction:
        """The distance from 1 to the next larger number at this precision, 2**-fraction_bits."""
        return Fraction(1, 1 << self.fraction_bits)

    @cached_property
    def inf(self) -> int | None:
        """The word of positive infinity, None where there is none."""
        return self.max_finite_magnitude + 1 if self.infinities else None

    @cached_property
    def nan(self) -> int | None:
        """The canonical quiet NaN: sign 0 and, of the fraction, only the top bit ("ieee"). None where there is none."""
        match self.nans:
            case "ieee":
                return (self.max_finite_magnitude + 1) | (1 << (self.fraction_bits - 1))
            case "all_ones":
                return self.magnitude_mask
            case "negative_zero":
                return self.sign_mask
        return None

    @cached_property
    def invalid_word(self) -> int:
        """What an invalid operation returns: the canonical NaN. A format without NaN gives -0 (as ml_dtypes and XLA
        do for a NaN), one without -0 either gives the word 0; the flag INVALID is the only sign of it there."""
        if self.nan is not None:
            return self.nan
        return self.sign_mask if self.signed_zero else 0

    @property
    def has_nan(self) -> bool:
        return self.nans != "none"

    @property
    def has_zero(self) -> bool:
        return self.subnormals

    def zero(self, sign: int = 0) -> int:
        """The word of zero with this sign, of +0 where -0 does not exist. FormatError in a format without zero."""
        if not self.subnormals:
            raise FormatError(f"{self.name} has no zero")
        return self.sign_mask if sign and self.signed_zero else 0

    # Classification of words

    def sign(self, word: int) -> int:
        """The sign bit, 0 in an unsigned format."""
        return 1 if word & self.sign_mask else 0

    def magnitude(self, word: int) -> int:
        return word & self.magnitude_mask

    def is_nan(self, word: int) -> bool:
        match self.nans:
            case "ieee":
                return (word & self.magnitude_mask) > self.max_finite_magnitude + 1
            case "all_ones":
                return (word & self.magnitude_mask) == self.magnitude_mask
            case "negative_zero":
                return word == self.sign_mask
        return False

    def is_signaling(self, word: int) -> bool:
        """A signaling NaN: only "ieee" formats of two fraction bits or more have them."""
        return self.nans == "ieee" and self.is_nan(word) and not word >> (self.fraction_bits - 1) & 1

    def is_inf(self, word: int) -> bool:
        return self.infinities and (word & self.magnitude_mask) == self.max_finite_magnitude + 1

    def is_zero(self, word: int) -> bool:
        return self.subnormals and (word & self.magnitude_mask) == 0 and not self.is_nan(word)

    def is_finite(self, word: int) -> bool:
        return (word & self.magnitude_mask) <= self.max_finite_magnitude and not self.is_nan(word)

    def is_subnormal(self, word: int) -> bool:
        return self.subnormals and 0 < (word & self.magnitude_mask) < self.min_normal

    def is_normal(self, word: int) -> bool:
        return self.min_normal <= (word & self.magnitude_mask) <= self.max_finite_magnitude

    # Values of words

    def decode(self, word: int) -> tuple[int, int, int]:
        """(sign, significand, exponent) of a finite word: its value is (-1)**sign * significand * 2**exponent.

        The exponent is that of the last place, so the significand has ``precision`` bits unless the word is subnormal
        or zero. ValueError for NaN and infinities."""
        if not self.is_finite(word):
            raise ValueError(f"the word {word:#x} of {self.name} is not a finite number")
        magnitude = word & self.magnitude_mask
        field = magnitude >> self.fraction_bits
        significand = magnitude & self.fraction_mask
        if self.subnormals and field == 0:
            return self.sign(word), significand, self.emin - self.fraction_bits
        return self.sign(word), significand | (1 << self.fraction_bits), field - self.bias - self.fraction_bits

    def encode(self, sign: int, significand: int, exponent: int) -> int:
        """The word whose value is (-1)**sign * significand * 2**exponent. ValueError where the format has none."""
        from tlir.floatlib.rounding import Rounding, round_exact

        word, flags = round_exact(self, sign, significand, exponent, rounding=Rounding.TOWARD_ZERO)
        if flags:
            raise ValueError(f"{self.name} has no word for {'-' if sign else ''}{significand} * 2**{exponent}")
        return word

    # Names and descriptors

    @cached_property
    def name(self) -> str:
        """The name in ``FORMATS``, otherwise what the descriptor says, such as "float24<e7m16>"."""
        for name, fmt in FORMATS.items():
            if fmt == self:
                return name
        details = [f"e{self.exponent_bits}m{self.fraction_bits}"]
        if self.bias != (1 << (self.exponent_bits - 1)) - 1:
            details.append(f"bias={self.bias}")
        if self.nans != "ieee":
            details.append(f"nans={self.nans}")
            if self.infinities:
                details.append("infinities")
        if not self.signed:
            details.append("unsigned")
        if not self.subnormals:
            details.append("no zero")
        return f"float{self.width}<{', '.join(details)}>"

    def __str__(self) -> str:
        return self.name

    def to_descriptor(self) -> dict[str, int | bool | str]:
        """The descriptor as a JSON object with every field, which ``from_descriptor`` reads."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_descriptor(cls, descriptor: Mapping[str, Any]) -> Format:
        """The format of a JSON object; all but the two widths may be absent. FormatError for anything else."""
        if not isinstance(descriptor, Mapping):
            raise FormatError(f"a format descriptor is an object, not {type(descriptor).__name__}")
        known = [field.name for field in fields(cls)]
        for key in descriptor:
            if key not in known:
                raise FormatError(f"a format has no field {key!r}; its fields are {', '.join(known)}")
        for key in ("exponent_bits", "fraction_bits"):
            if key not in descriptor:
                raise FormatError(f"a format descriptor needs {key}")
        return cls(**descriptor)


def _check_integer(name: str, value: Any, low: int, high: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise FormatError(f"{name} is {value!r}; it must be an integer")
    if not low <= value <= high:
        raise FormatError(f"{name} is {value}; it must be between {low} and {high}")


def _finite_with_nan(exponent_bits: int, fraction_bits: int) -> Format:
    return Format(exponent_bits, fraction_bits, infinities=False, nans="all_ones")


def _finite_unsigned_zero(exponent_bits: int, fraction_bits: int, bias: int) -> Format:
    return Format(exponent_bits, fraction_bits, bias, infinities=False, nans="negative_zero", signed_zero=False)


def _finite_only(exponent_bits: int, fraction_bits: int) -> Format:
    return Format(exponent_bits, fraction_bits, infinities=False, nans="none")


FORMATS: dict[str, Format] = {
    "float4_e2m1fn": _finite_only(2, 1),
    "float6_e2m3fn": _finite_only(2, 3),
    "float6_e3m2fn": _finite_only(3, 2),
    "float8_e3m4": Format(3, 4),
    "float8_e4m3": Format(4, 3),
    "float8_e4m3fn": _finite_with_nan(4, 3),
    "float8_e4m3b11fnuz": _finite_unsigned_zero(4, 3, 11),
    "float8_e4m3fnuz": _finite_unsigned_zero(4, 3, 8),
    "float8_e5m2": Format(5, 2),
    "float8_e5m2fnuz": _finite_unsigned_zero(5, 2, 16),
    "float8_e8m0fnu": Format(
        8, 0, infinities=False, nans="all_ones", signed_zero=False, signed=False, subnormals=False
    ),
    "bfloat16": Format(8, 7),
    "float16": Format(5, 10),
    "tfloat32": Format(8, 10),
    "float32": Format(8, 23),
    "float64": Format(11, 52),
    "float128": Format(15, 112),
    "float256": Format(19, 236),
}
"""The named formats under their dtype names, ml_dtypes' where it has them. tfloat32 is 19 bits wide."""

ALIASES: dict[str, str] = {
    "binary16": "float16",
    "binary32": "float32",
    "binary64": "float64",
    "binary128": "float128",
    "binary256": "float256",
    "tf32": "tfloat32",
}


def named(name: str) -> Format:
    """The format with this canonical name or alias; FormatError, with the names there are, for another."""
    fmt = FORMATS.get(ALIASES.get(name, name))
    if fmt is None:
        raise FormatError(f"no format is called {name!r}; there are {', '.join(FORMATS)}")
    return fmt


def text_of(fmt: Format) -> str:
    """A text that ``from_text`` reads, one and the same for equal formats: its name, or its descriptor as JSON."""
    return fmt.name if fmt.name in FORMATS else json.dumps(fmt.to_descriptor(), sort_keys=True)


@lru_cache(maxsize=256)
def from_text(text: str) -> Format:
    """The format of a text of ``text_of``. FormatError or ValueError for another text."""
    return FORMATS[text] if text in FORMATS else Format.from_descriptor(json.loads(text))
