"""Numbers in and out as text: against Python's and NumPy's own, MPFR, and a search for shorter decimals."""

import random
import struct
from fractions import Fraction
from math import floor

import gmpy2
import numpy as np
import pytest
from floatlib_exact import SMALL_CUSTOM, nearest, value_of
from floatlib_mpfr import MODES, boundary_word, context, from_mpfr
from hypothesis import given, settings
from hypothesis import strategies as st

from tlir.floatlib import text as text_module
from tlir.floatlib.digits import digits_of_integer, integer_of_digits
from tlir.floatlib.format import FORMATS, Format
from tlir.floatlib.printing import to_bits, to_decimal, to_hexadecimal, to_rational
from tlir.floatlib.rounding import NO_FLAGS, Flags, Rounding, round_fraction
from tlir.floatlib.text import TextError, parse, parse_word
from tlir.floatlib.value import Value

FLOAT32, FLOAT64, FLOAT128 = FORMATS["float32"], FORMATS["float64"], FORMATS["float128"]
HUGE = Format(30, 4096)
EIGHT_BITS = [fmt for fmt in FORMATS.values() if fmt.width <= 8]


def float_of(word: int) -> float:
    return float(struct.unpack("<d", struct.pack("<Q", word))[0])


@settings(max_examples=500, deadline=None)
@given(st.integers(0, 2**64 - 1))
def test_binary64_prints_and_reads_as_python_does(word: int) -> None:
    x = float_of(word)
    if x != x:
        return
    assert to_decimal(FLOAT64, word) == repr(x)
    assert float.fromhex(to_hexadecimal(FLOAT64, word)) == x
    for text in (repr(x), x.hex(), to_hexadecimal(FLOAT64, word), to_rational(FLOAT64, word)):
        assert parse(FLOAT64, text)[0] == word


@settings(max_examples=500, deadline=None)
@given(st.from_regex(r"-?[0-9]{1,25}(\.[0-9]{0,30})?(e[+-]?[0-9]{1,3})?", fullmatch=True))
def test_decimals_round_as_python_rounds_them(text: str) -> None:
    assert float_of(parse(FLOAT64, text)[0]).hex() == float(text).hex()


@pytest.mark.parametrize(
    ("name", "dtype", "bits"), [("float16", np.float16, np.uint16), ("float32", np.float32, np.uint32)]
)
def test_float16_and_float32_print_as_numpy_does(name: str, dtype: type, bits: type) -> None:
    rng = np.random.default_rng(3)
    words = np.arange(0, 2**16, 3) if name == "float16" else rng.integers(0, 2**32, 5000)
    for word, x in zip(words.tolist(), words.astype(bits).view(dtype), strict=True):
        if np.isfinite(x):
            printed = to_decimal(FORMATS[name], word)
            assert float(printed) == float(np.format_float_scientific(x, unique=True)), (hex(word), printed)
            assert parse(FORMATS[name], printed)[0] == word


@pytest.mark.parametrize("fmt", [*EIGHT_BITS, *SMALL_CUSTOM], ids=str)
def test_no_shorter_decimal_rounds_to_the_word(fmt: Format) -> None:
    for word in range(2**fmt.width):
        value = value_of(fmt, word)
        printed = to_decimal(fmt, word)
        assert parse(fmt, printed)[0] == word
        if not isinstance(value, Fraction) or value == 0:
            continue
        mantissa = printed.lstrip("-").split("e")[0]
        count = len(mantissa.replace(".", "").strip("0"))
        unit = Fraction(1)
        while unit * 10 <= abs(value):
            unit *= 10
        while unit > abs(value):
            unit /= 10
        # decimals of one digit less, below and above, and the nearest of the same length
        for digits in range(1, count):
            grid = unit / Fraction(10) ** (digits - 1)
            for candidate in (floor(abs(value) / grid) * grid, (floor(abs(value) / grid) + 1) * grid):
                unsaturated = candidate <= abs(value) or word & fmt.magnitude_mask != fmt.max_finite_magnitude
                if candidate and unsaturated:
                    assert nearest(fmt, fmt.sign(word), candidate, Rounding.NEAREST_EVEN)[0] != word, printed
        # of one as long, the nearest of those that round to the word
        grid = unit / Fraction(10) ** (count - 1)
        below = floor(abs(value) / grid) * grid
        inside = [c for c in (below, below + grid) if nearest(fmt, fmt.sign(word), c, Rounding.NEAREST_EVEN)[0] == word]
        assert abs(Fraction(printed) - value) <= min(abs(c - abs(value)) for c in inside)


@pytest.mark.parametrize("fmt", [FLOAT128, FORMATS["float256"], Format(7, 16), Format(20, 500), HUGE], ids=str)
def test_every_notation_reads_back_to_the_word(fmt: Format) -> None:
    rng = random.Random(5)
    for _ in range(100 if fmt.width < 500 else 10):
        word = boundary_word(fmt, rng)
        if fmt.is_nan(word):
            assert parse(fmt, to_decimal(fmt, word)) == (word, NO_FLAGS)
            continue
        assert parse(fmt, to_decimal(fmt, word))[0] == word
        assert parse(fmt, to_hexadecimal(fmt, word)) == (word, NO_FLAGS)
        assert parse(fmt, to_rational(fmt, word)) == (word, NO_FLAGS)
        assert parse(fmt, to_bits(fmt, word)) == (word, NO_FLAGS)


def test_decimals_round_as_mpfr_rounds_them() -> None:
    rng = random.Random(6)
    for index in range(300):
        fmt = [FLOAT128, FORMATS["float256"], Format(9, 70)][index % 3]
        rounding = rng.choice(list(MODES))
        limit = fmt.emax * 3 // 10
        text = f"{rng.choice(['', '-'])}{rng.randrange(10 ** rng.randint(1, 60))}e{rng.randint(-limit - 80, limit + 3)}"
        with context(fmt, rounding):
            want = from_mpfr(fmt, gmpy2.mpfr(text))
        assert parse(fmt, text, rounding)[0] == want, (fmt, text, rounding)


@settings(max_examples=300, deadline=None)
@given(
    st.integers(0, 10**20),
    st.integers(1, 10**6),
    st.integers(-3000, 3000),
    st.sampled_from(list(Rounding)),
    st.integers(0, 1),
)
def test_enclosed_powers_decide_as_built_powers_do(
    numerator: int, denominator: int, ten: int, rounding: Rounding, sign: int
) -> None:
    if numerator == 0 or abs(ten) < 400:
        return
    fmt = FORMATS["float256"]
    text = f"{'-' if sign else ''}{numerator}e{ten}/{denominator}"
    term = text_module._Term(numerator, denominator, 0, ten)
    want = parse(fmt, text, rounding)
    exact = Fraction(numerator, denominator) * Fraction(10) ** ten
    assert want == round_fraction(fmt, -exact if sign else exact, rounding)
    assert text_module._round_enclosed(fmt, sign, term, rounding, False) == want


def test_exponents_beyond_reach_are_decided_by_bounds() -> None:
    for exponent in ("999999999", "9" * 40):
        assert parse(FLOAT32, f"1e-{exponent}") == (0, Flags.UNDERFLOW | Flags.INEXACT)
        assert parse(HUGE, f"-1e-{exponent}") == (HUGE.sign_mask, Flags.UNDERFLOW | Flags.INEXACT)
        assert parse(HUGE, f"1e{exponent}") == (HUGE.inf, Flags.OVERFLOW | Flags.INEXACT)
        assert parse(HUGE, f"1p{exponent}") == (HUGE.inf, Flags.OVERFLOW | Flags.INEXACT)
        assert parse(HUGE, f"0e{exponent}") == (0, NO_FLAGS)
    # within the range of thirty exponent bits the powers are enclosed, not built
    word, flags = parse(HUGE, "1e-100000000")
    assert flags == Flags.INEXACT
    # 100000000 * log2(10) = 332192809.4887...
    assert to_hexadecimal(HUGE, word).startswith("0x1.6c")
    assert to_hexadecimal(HUGE, word).endswith("p-332192810")
    assert to_decimal(HUGE, word) == to_hexadecimal(HUGE, word)
    assert parse(HUGE, "1p-536870000") == (HUGE.encode(0, 1, -536870000), NO_FLAGS)
    assert parse(HUGE, "1p400000000+1p399999990") == (HUGE.encode(0, 1025, 399999990), NO_FLAGS)


def test_the_range_ends_exactly() -> None:
    for fmt in (FLOAT32, FLOAT128, FORMATS["float8_e4m3fn"]):
        _, significand, exponent = fmt.decode(fmt.max_finite)
        beyond = f"{2 * significand + 1}p{exponent - 1}"  # half way to the next
        assert parse(fmt, f"{2 * significand + 1}p{exponent - 1}-1p{exponent - 300}")[0] == fmt.max_finite
        overflows = fmt.max_finite & 1
        assert parse(fmt, beyond)[0] == ((fmt.inf if fmt.infinities else fmt.nan) if overflows else fmt.max_finite)
        last = fmt.emin - fmt.fraction_bits
        assert parse(fmt, f"1p{last - 1}") == (0, Flags.UNDERFLOW | Flags.INEXACT)
        assert parse(fmt, f"1p{last - 1}+1p{last - 300}") == (1, Flags.UNDERFLOW | Flags.INEXACT)


def test_sums_and_rationals_are_exact_before_they_are_rounded() -> None:
    assert parse(FLOAT128, "1+1p-100") == (FLOAT128.encode(0, (1 << 100) + 1, -100), NO_FLAGS)
    assert parse(FLOAT64, "1 + 1p-100") == (FLOAT64.encode(0, 1, 0), Flags.INEXACT)
    assert parse(FLOAT64, "1/3+2/3") == (FLOAT64.encode(0, 1, 0), NO_FLAGS)
    assert parse(FLOAT64, "0.1+0.2-0.3") == (0, NO_FLAGS)
    assert parse(FLOAT64, "-1/3")[0] == FLOAT64.sign_mask | 0x3FD5555555555555
    assert parse(FLOAT64, "0x1.8p3/0x3p-1") == (FLOAT64.encode(0, 8, 0), NO_FLAGS)
    assert parse(FLOAT64, "-0") == (FLOAT64.sign_mask, NO_FLAGS)
    assert parse(FORMATS["float8_e4m3fn"], "-431.99999999999994")[0] == parse(FORMATS["float8_e4m3fn"], "-416")[0]


def test_special_values() -> None:
    assert parse(FLOAT32, "-Infinity") == (0xFF800000, NO_FLAGS)
    assert parse(FLOAT32, "NaN") == (0x7FC00000, NO_FLAGS)
    assert parse(FLOAT32, "nan(0xffc00001)") == (0xFFC00001, NO_FLAGS)
    assert to_decimal(FLOAT32, 0xFFC00001) == "nan(0xffc00001)"
    assert parse(FORMATS["float8_e4m3fn"], "inf") == (0x7F, Flags.OVERFLOW | Flags.INEXACT)
    assert parse(FORMATS["float4_e2m1fn"], "nan") == (0x8, Flags.INVALID)
    assert parse(FORMATS["float4_e2m1fn"], "-inf") == (0xF, Flags.OVERFLOW | Flags.INEXACT)
    assert parse(FORMATS["float8_e8m0fnu"], "0") == (0xFF, Flags.INVALID)
    assert parse_word(FLOAT32, "0b101") == 5
    assert str(Value(FLOAT128, FLOAT128.encode(0, 3, -1))) == "1.5"
    assert float(Value(FORMATS["bfloat16"], 0x3F81)) == 1.0078125


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not a number"), ("abc", "'abc' is not a number"), ("1+", "is not a number"), ("/", "is not a number"),
        ("0x", "is not a number"), ("1e", "is not a number"), ("--1", "is not a number"), ("1 2", "is not a number"),
        ("1.5.2", "is not a number"),
        ("1/0", "divides by zero"), ("1/2/3", "is not a number"), (".", "is not a number"),
        ("1_000", "is not a number"), ("٣", "is not a number"),
        ("bits:", "is not a word"), ("bits:-1", "is not a word"),
        ("bits:0x1ffffffff", "more than the 32 bits of float32"), ("nan(0x1)", "not a NaN of float32"),
        ("1e5000+1", "powers of ten go up to"), ("1+1p-99999999", "binary places apart"), ("1+" * 70 + "1", "64 terms"),
        ("9" * 100_001, "100001 characters is too long"),
    ],
)  # fmt: skip
def test_what_is_no_number_is_quoted_and_explained(text: str, message: str) -> None:
    with pytest.raises(TextError, match=message):
        parse(FLOAT32, text)


def test_numbers_of_many_digits() -> None:
    digits = "123456789" * 3000
    value = integer_of_digits(digits)
    assert value % 10**9 == 123456789
    assert value == sum(123456789 * 10 ** (9 * k) for k in range(3000))
    assert digits_of_integer(value) == digits
    assert parse(FLOAT64, digits + "e-26990")[0] == parse(FLOAT64, "1234567891.234567891234567891")[0]
