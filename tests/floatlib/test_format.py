"""Descriptors, derived constants and classification, against ml_dtypes, NumPy and the listed values."""

import math
import pickle
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from floatlib_exact import SMALL_CUSTOM, value_of

from tlir.floatlib.format import ALIASES, FORMATS, Format, FormatError, named

ML_DTYPES = [name for name in FORMATS if hasattr(ml_dtypes, name)]


@pytest.mark.parametrize("name", ML_DTYPES)
def test_every_word_means_what_ml_dtypes_says(name: str) -> None:
    fmt, dtype = FORMATS[name], getattr(ml_dtypes, name)
    words = np.arange(2**fmt.width, dtype=np.uint16 if fmt.width > 8 else np.uint8)
    with np.errstate(invalid="ignore"):
        values = words.view(dtype).astype(np.float64).tolist()
    for word, value in zip(words.tolist(), values, strict=True):
        assert fmt.is_nan(word) == math.isnan(value)
        assert fmt.is_inf(word) == math.isinf(value)
        assert fmt.is_finite(word) == math.isfinite(value)
        assert fmt.is_zero(word) == (value == 0)
        if math.isfinite(value):
            sign, significand, exponent = fmt.decode(word)
            assert sign == (math.copysign(1, value) < 0)
            assert math.ldexp(significand, exponent) == abs(value)
            assert fmt.encode(sign, significand, exponent) == word


@pytest.mark.parametrize("name", [*ML_DTYPES, "float16", "float32", "float64"])
def test_constants_are_finfo(name: str) -> None:
    fmt = FORMATS[name]
    info = ml_dtypes.finfo(getattr(ml_dtypes, name, name))

    def value(word: int) -> float:
        sign, significand, exponent = fmt.decode(word)
        return (-1) ** sign * math.ldexp(significand, exponent)

    assert fmt.width == info.bits
    assert value(fmt.max_finite) == float(info.max)
    assert value(fmt.min_normal) == float(info.smallest_normal)
    assert value(fmt.min_subnormal) == float(info.smallest_subnormal)
    assert fmt.epsilon == float(info.eps)
    assert value(fmt.lowest_finite) == float(info.min)
    assert 2.0**fmt.emin == float(info.smallest_normal)
    assert 2.0**fmt.emax <= float(info.max) < math.ldexp(1.0, fmt.emax) * 2


def test_canonical_nans_and_infinities() -> None:
    expected = {"float16": (0x7E00, 0x7C00), "bfloat16": (0x7FC0, 0x7F80), "float32": (0x7FC00000, 0x7F800000),
                "float64": (0x7FF8 << 48, 0x7FF0 << 48), "float8_e4m3fn": (0x7F, None),
                "float8_e8m0fnu": (0xFF, None), "float8_e5m2fnuz": (0x80, None),
                "float8_e3m4": (0x78, 0x70), "float4_e2m1fn": (None, None)}  # fmt: skip
    for name, (nan, inf) in expected.items():
        assert (FORMATS[name].nan, FORMATS[name].inf) == (nan, inf), name
    assert FORMATS["float128"].nan == 0x7FFF8 << 108
    assert FORMATS["float4_e2m1fn"].invalid_word == 0x8
    assert FORMATS["float32"].is_signaling(0x7F800001)
    assert not FORMATS["float32"].is_signaling(0x7FC00001)


@pytest.mark.parametrize("fmt", SMALL_CUSTOM, ids=str)
def test_decode_of_custom_formats(fmt: Format) -> None:
    for word in range(2**fmt.width):
        value = value_of(fmt, word)
        assert fmt.is_nan(word) == (value == "nan")
        assert fmt.is_inf(word) == (value in ("inf", "-inf"))
        if isinstance(value, Fraction):
            sign, significand, exponent = fmt.decode(word)
            assert (-1) ** sign * significand * Fraction(2) ** exponent == value
            assert fmt.is_subnormal(word) == (0 < abs(value) < Fraction(2) ** fmt.emin)
            assert fmt.encode(sign, significand, exponent) == word
        else:
            with pytest.raises(ValueError, match="not a finite number"):
                fmt.decode(word)


def test_names_and_descriptors_round_trip() -> None:
    for name, fmt in FORMATS.items():
        assert named(name) == fmt
        assert fmt.name == name
        assert Format.from_descriptor(fmt.to_descriptor()) == fmt
    for alias, name in ALIASES.items():
        assert named(alias) == FORMATS[name]
    assert Format(15, 64).name == "float80<e15m64>"
    assert FORMATS["float256"].bias == 262143
    assert FORMATS["tfloat32"].width == 19
    names = [fmt.name for fmt in SMALL_CUSTOM]
    assert len(set(names)) == len(names)
    with pytest.raises(FormatError, match="no format is called 'float9'; there are"):
        named("float9")


@pytest.mark.parametrize(
    ("descriptor", "message"),
    [
        ({"exponent_bits": 0, "fraction_bits": 3}, "exponent_bits is 0; it must be between 1 and 30"),
        ({"exponent_bits": 31, "fraction_bits": 3}, "between 1 and 30"),
        ({"exponent_bits": 5, "fraction_bits": 4097}, "between 0 and 4096"),
        ({"exponent_bits": True, "fraction_bits": 3}, "must be an integer"),
        ({"exponent_bits": 5.0, "fraction_bits": 3}, "must be an integer"),
        ({"exponent_bits": 5}, "needs fraction_bits"),
        ({"exponent_bits": 5, "fraction_bits": 2, "base": 10}, "no field 'base'"),
        ({"exponent_bits": 5, "fraction_bits": 2, "nans": "many"}, "must be one of ieee"),
        ({"exponent_bits": 5, "fraction_bits": 2, "nans": []}, "must be one of ieee"),
        ({"exponent_bits": 5, "fraction_bits": 2, "infinities": 1}, "must be true or false"),
        ({"exponent_bits": 5, "fraction_bits": 2, "infinities": False}, 'nans "ieee" needs infinities'),
        ({"exponent_bits": 5, "fraction_bits": 0}, "needs a fraction bit"),
        ({"exponent_bits": 5, "fraction_bits": 2, "signed": False}, "signed_zero needs a sign bit"),
        ({"exponent_bits": 5, "fraction_bits": 2, "subnormals": False}, "has no zero"),
        ({"exponent_bits": 5, "fraction_bits": 2, "nans": "negative_zero"}, "takes the word of -0"),
        ({"exponent_bits": 5, "fraction_bits": 2, "signed_zero": False}, "uses its word for NaN"),
        ({"exponent_bits": 1, "fraction_bits": 2}, "leave no normal number"),
        ({"exponent_bits": 5, "fraction_bits": 2, "bias": 2**40}, "bias is"),
    ],
)
def test_impossible_descriptors_are_refused(descriptor: dict[str, object], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        Format.from_descriptor(descriptor)
    with pytest.raises(FormatError):
        Format.from_descriptor([descriptor])  # type: ignore[arg-type]


def test_equal_formats_are_one_key_and_survive_pickling() -> None:
    for fmt in [*FORMATS.values(), *SMALL_CUSTOM]:
        again = pickle.loads(pickle.dumps(fmt))
        assert {fmt: 1}[again] == 1
        assert again.name == fmt.name
    assert len({hash(fmt) for fmt in SMALL_CUSTOM}) == len(SMALL_CUSTOM)
    assert Format(5, 10) == Format(5, 10, 15)
    assert Format(5, 10) != Format(5, 10, 14)


def test_the_largest_formats_cost_nothing_to_describe() -> None:
    fmt = Format(30, 4096)
    assert fmt.emax == 2**29 - 1
    assert fmt.emin == 2 - 2**29
    assert fmt.width == 4127
    assert fmt.decode(fmt.max_finite) == (0, 2**4097 - 1, 2**29 - 1 - 4096)
    assert fmt.encode(1, 1, 0) == (1 << 4126) | (fmt.bias << 4096)
