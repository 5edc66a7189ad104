"""MPFR as an oracle, for formats with IEEE's conventions: values by mpfr, flags from exact comparisons beside it.

MPFR numbers are 0.1... * 2**e, so its exponent range is the format's plus one, down to the smallest subnormal.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import gmpy2

from tlir.floatlib.format import Format
from tlir.floatlib.rounding import Flags, Rounding

MODES = {
    Rounding.NEAREST_EVEN: gmpy2.RoundToNearest,
    Rounding.TOWARD_ZERO: gmpy2.RoundToZero,
    Rounding.UP: gmpy2.RoundUp,
    Rounding.DOWN: gmpy2.RoundDown,
}


def context(fmt: Format, rounding: Rounding) -> Any:
    return gmpy2.context(
        precision=fmt.precision,
        emax=fmt.emax + 1,
        emin=fmt.emin - fmt.precision + 2,
        subnormalize=True,
        round=MODES[rounding],
    )


def unbounded(precision: int, rounding: Rounding = Rounding.NEAREST_EVEN) -> Any:
    return gmpy2.context(
        precision=precision, emax=gmpy2.get_emax_max(), emin=gmpy2.get_emin_min(), round=MODES[rounding]
    )


def to_mpfr(fmt: Format, word: int) -> Any:
    """The exact value; the widest range and precision that the word needs are used."""
    total = 2**fmt.magnitude_bits
    negative, magnitude = divmod(word, total)
    field, fraction = divmod(magnitude, 2**fmt.fraction_bits)
    with unbounded(fmt.precision + 1):
        if field == 2**fmt.exponent_bits - 1:
            value = gmpy2.nan() if fraction else gmpy2.inf()
        else:
            significand = fraction if field == 0 else fraction + 2**fmt.fraction_bits
            value = gmpy2.mpfr(significand)
            shift = max(field, 1) - fmt.bias - fmt.fraction_bits
            value = gmpy2.mul_2exp(value, shift) if shift >= 0 else gmpy2.div_2exp(value, -shift)
        return -value if negative else value


def from_mpfr(fmt: Format, value: Any) -> int:
    """The word of a value that the format holds; the canonical NaN for NaN."""
    infinity = (2**fmt.exponent_bits - 1) << fmt.fraction_bits
    if gmpy2.is_nan(value):
        return infinity + 2 ** (fmt.fraction_bits - 1)
    sign = int(gmpy2.is_signed(value)) << fmt.magnitude_bits
    if gmpy2.is_infinite(value):
        return sign + infinity
    if value == 0:
        return sign
    mantissa, exponent = value.as_mantissa_exp()
    significand, exponent = abs(int(mantissa)), int(exponent)  # abs() of the mpfr would round it
    trailing = (significand & -significand).bit_length() - 1
    significand, exponent = significand >> trailing, exponent + trailing
    leading = significand.bit_length() + exponent - 1
    last = max(leading, 1 - fmt.bias) - fmt.fraction_bits
    assert exponent >= last, "MPFR gave a value that the format does not hold"
    significand <<= exponent - last
    field = last + fmt.fraction_bits + fmt.bias if significand >= 2**fmt.fraction_bits else 0
    return sign + (field << fmt.fraction_bits) + significand % 2**fmt.fraction_bits


def expected(fmt: Format, rounding: Rounding, operation: Callable[[Any], Any]) -> tuple[int, Flags]:
    """The word and flags of ``operation(context)``: exact if MPFR's ternary value says so, tiny if the result with an
    unbounded exponent is."""
    bounded = context(fmt, rounding)
    result = operation(bounded)
    word = from_mpfr(fmt, result)
    flags = Flags(0)
    if bounded.divzero:
        return word, Flags.DIVIDE_BY_ZERO
    if gmpy2.is_nan(result):
        return word, Flags.INVALID if bounded.invalid else flags
    free = operation(unbounded(fmt.precision, rounding))
    if gmpy2.is_infinite(free):
        return word, flags
    with unbounded(fmt.precision + 1):
        if abs(free) >= gmpy2.mul_2exp(gmpy2.mpfr(1), fmt.emax + 1):
            return word, Flags.OVERFLOW | Flags.INEXACT
        if result.rc != 0:
            flags = Flags.INEXACT
            if abs(free) < gmpy2.div_2exp(gmpy2.mpfr(1), -fmt.emin):
                flags |= Flags.UNDERFLOW
    return word, flags


def boundary_word(fmt: Format, rng: random.Random, near: int | None = None) -> int:
    """A word at or near what goes wrong: extreme and middle exponents, runs of ones and zeros, neighbours of powers."""
    top = 2**fmt.exponent_bits - 1
    if near is None:
        field = rng.choice([0, 1, 2, top, top - 1, top - 2, fmt.bias, fmt.bias + 1, rng.randrange(top), fmt.bias // 2])
    else:
        field = near + rng.choice([0, 1, -1, rng.randint(-fmt.precision - 3, fmt.precision + 3)])
    f = fmt.fraction_bits
    run = rng.randrange(f + 1)
    fraction = rng.choice(
        [
            0,
            1,
            2**f - 1,
            max(2**f - 2, 0),
            2**f >> 1,
            2**run,
            2**run - 1,
            2**f - 2**run,
            rng.getrandbits(f),
            rng.getrandbits(f),
        ]
    )
    sign = rng.choice([0, fmt.sign_mask])
    return sign | (min(max(field, 0), top) << f) | (fraction & fmt.fraction_mask)
