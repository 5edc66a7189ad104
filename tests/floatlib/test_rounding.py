"""The rounding step against a search over all values of the format, every mode, flag and convention."""

import itertools
from fractions import Fraction

import pytest
from floatlib_exact import SMALL_CUSTOM, magnitudes, nearest

from tlir.floatlib.format import FORMATS, Format
from tlir.floatlib.rounding import NO_FLAGS, Flags, Rounding, round_exact, round_fraction, round_quotient

SMALL = SMALL_CUSTOM + [fmt for fmt in FORMATS.values() if fmt.width <= 6]
FLOAT32 = FORMATS["float32"]


def probes(fmt: Format) -> list[Fraction]:
    """Values, midpoints, quarters and points just beside them, from far below the smallest to far above the largest."""
    values, _ = magnitudes(fmt)
    low = values[1] if fmt.subnormals else values[0]
    points = [Fraction(0), low / 1024, values[-1] * 3, values[-1] * 2**70]
    if not fmt.subnormals:
        points += [
            low / 2,
            low * Fraction(3, 4),
            low * Fraction(7, 8),
            low * Fraction(15, 16),
            low * Fraction(127, 128),
        ]
    for a, b in itertools.pairwise(values):
        gap = b - a
        points += [a, a + gap / 4, a + gap / 2, a + gap * 3 / 4]
        points += [a + gap / 1000, a + gap / 2 - gap / 1000, a + gap / 2 + gap / 1000, b - gap / 1000]
    return points


@pytest.mark.parametrize("fmt", SMALL, ids=str)
@pytest.mark.parametrize("rounding", Rounding)
def test_every_small_format_rounds_to_the_value_found_by_search(fmt: Format, rounding: Rounding) -> None:
    for x in probes(fmt):
        for sign in (0, 1):
            for saturate in (False, True):
                expected = nearest(fmt, sign, x, rounding, saturate)
                got = round_quotient(fmt, sign, x.numerator, x.denominator, 0, rounding, saturate)
                assert got == expected, (x, sign, saturate)


@pytest.mark.parametrize("rounding", Rounding)
@pytest.mark.parametrize("fmt", [FORMATS["float8_e4m3fn"], FORMATS["float8_e5m2"], FORMATS["float8_e8m0fnu"],
                                 FORMATS["float8_e4m3b11fnuz"], FORMATS["float8_e3m4"]], ids=str)  # fmt: skip
def test_float8_rounds_to_the_value_found_by_search(fmt: Format, rounding: Rounding) -> None:
    for x in probes(fmt)[:: 3 if fmt.exponent_bits < 8 else 1]:
        for sign in (0, 1):
            assert round_fraction(fmt, -x if sign else x, rounding, zero_sign=sign) == nearest(fmt, sign, x, rounding)


def test_where_ml_dtypes_rounds_twice_this_rounds_once() -> None:
    x = 1 + Fraction(1, 2**8) + Fraction(1, 2**40)
    assert round_fraction(FORMATS["bfloat16"], x) == (0x3F81, Flags.INEXACT)
    word, _ = round_fraction(FORMATS["float8_e4m3fn"], Fraction(-431.99999999999994))
    assert FORMATS["float8_e4m3fn"].decode(word) == (1, 13, 5)  # -416


def test_the_bottom_of_float8_e8m0fnu_is_rounded_over_its_own_values() -> None:
    fmt, low = FORMATS["float8_e8m0fnu"], Fraction(1, 2**127)
    assert round_fraction(fmt, low * Fraction(149, 100))[0] == 0
    assert round_fraction(fmt, low * Fraction(3, 2))[0] == 0  # a tie: the even word
    assert round_fraction(fmt, low * Fraction(151, 100))[0] == 1
    assert round_fraction(fmt, low * 3)[0] == 2
    assert round_fraction(fmt, low / 2**400) == (0, Flags.UNDERFLOW | Flags.INEXACT)
    assert round_fraction(fmt, 0) == (0xFF, Flags.INVALID)
    assert round_fraction(fmt, -1) == (0xFF, Flags.INVALID)


def test_tininess_is_detected_after_rounding() -> None:
    just_below = (1 - Fraction(1, 2**26)) * Fraction(1, 2**126)
    assert round_fraction(FLOAT32, just_below) == (0x00800000, Flags.INEXACT)
    lower = (1 - Fraction(1, 2**24) - Fraction(1, 2**40)) * Fraction(1, 2**126)
    assert round_fraction(FLOAT32, lower, Rounding.UP) == (0x00800000, Flags.UNDERFLOW | Flags.INEXACT)
    assert round_fraction(FLOAT32, Fraction(1, 2**149)) == (1, NO_FLAGS)
    assert round_fraction(FLOAT32, Fraction(1, 2**150)) == (0, Flags.UNDERFLOW | Flags.INEXACT)


def test_a_sticky_digit_decides_ties_and_nothing_else() -> None:
    assert round_exact(FLOAT32, 0, (1 << 25) + 2, 0)[0] == (127 + 25) << 23
    assert round_exact(FLOAT32, 0, (1 << 25) + 2, 0, sticky=True)[0] == ((127 + 25) << 23) + 1
    assert round_exact(FLOAT32, 0, 1 << 25, 0, sticky=True) == ((127 + 25) << 23, Flags.INEXACT)
    assert round_exact(FLOAT32, 1, 0, -400, sticky=True, rounding=Rounding.DOWN)[0] == 0x80000001
    with pytest.raises(ValueError, match="below the last place"):
        round_exact(FLOAT32, 0, 1, 0, sticky=True)


def test_astronomical_exponents_cost_nothing() -> None:
    fmt = Format(30, 4096)
    assert round_exact(fmt, 0, 1, 2**29) == (fmt.inf, Flags.OVERFLOW | Flags.INEXACT)
    assert round_exact(fmt, 1, 1, -(2**40)) == (fmt.sign_mask, Flags.UNDERFLOW | Flags.INEXACT)
    assert round_exact(fmt, 0, 1, fmt.emin - 4096) == (1, NO_FLAGS)
    assert round_exact(FLOAT32, 0, 3, -(10**12), rounding=Rounding.TO_ODD)[0] == 1
