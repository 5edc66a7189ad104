"""Distances, differences and verdicts against enumeration, exact fractions and decimals of many digits."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tlir.compare.exact import leading, sign
from tlir.compare.pairs import by_element, pairs
from tlir.compare.rule import Rule, make_rule
from tlir.floatlib.format import FORMATS, Format
from tlir.floatlib.words import from_ints
from tlir.ir.types import DType, parse_dtype

SMALL = [name for name, fmt in FORMATS.items() if fmt.width <= 8]


def value(fmt: Format, word: int) -> Fraction:
    """The number by the formula of the encoding, without the code that is tested."""
    field, fraction = divmod(word & fmt.magnitude_mask, 1 << fmt.fraction_bits)
    negative = fmt.signed and word >> fmt.magnitude_bits
    if fmt.subnormals and field == 0:
        size = Fraction(fraction) * Fraction(2) ** (1 - fmt.bias - fmt.fraction_bits)
    else:
        size = (1 + Fraction(fraction, 1 << fmt.fraction_bits)) * Fraction(2) ** (field - fmt.bias)
    return -size if negative else size


def measured(dtype: DType, expected: list[int], got: list[int]):
    if dtype.format:
        sides = [by_element(dtype, from_ints(dtype.format, side)) for side in (expected, got)]
    else:
        sides = [np.array(side, dtype.word_dtype).reshape(-1, 1) for side in (expected, got)]
    return pairs(dtype, *sides)


@pytest.mark.parametrize("name", SMALL)
def test_ulps_count_the_steps_between_all_pairs_of_a_small_format(name: str) -> None:
    dtype = parse_dtype(name)
    fmt = dtype.float_format
    finite = [word for word in range(1 << fmt.width) if fmt.is_finite(word)]
    numbers = sorted({value(fmt, word) for word in finite})
    rank = {number: k for k, number in enumerate(numbers)}
    a = [x for x in finite for _ in finite]
    b = [y for _ in finite for y in finite]
    expected = [abs(rank[value(fmt, x)] - rank[value(fmt, y)]) for x, y in zip(a, b, strict=True)]
    assert measured(dtype, a, b).ulps.tolist() == expected


@pytest.mark.parametrize("name", ["float32", "float64", "float128", "float256"])
def test_one_step_is_one_ulp_across_binades_and_zero(name: str) -> None:
    fmt = FORMATS[name]
    least, normal, minus = fmt.min_subnormal, fmt.min_normal, fmt.sign_mask
    a = [0, minus, least, normal, fmt.max_finite - 1, minus | least, 0]
    b = [least, least, minus | least, normal - 1, fmt.max_finite, minus | least, minus]
    assert list(measured(parse_dtype(name), a, b).ulps) == [1, 1, 2, 1, 1, 0, 0]


def test_distances_between_the_ends_of_every_width() -> None:
    assert measured(parse_dtype("int64"), [1 << 63], [(1 << 63) - 1]).ulps.tolist() == [2**64 - 1]
    assert measured(parse_dtype("uint64"), [0], [2**64 - 1]).ulps.tolist() == [2**64 - 1]
    assert measured(parse_dtype("int8"), [0xFF], [1]).ulps.tolist() == [2]
    assert measured(parse_dtype("int4"), [0x8], [0x7]).ulps.tolist() == [15]
    top = FORMATS["float64"].max_finite
    assert measured(parse_dtype("float64"), [top], [top | 1 << 63]).ulps.tolist() == [2 * top]


TOLERANCES = st.sampled_from(["0", "0.1", "0.25", "1e-3", "2", "1/3", "0.0625"])


@pytest.mark.parametrize("name", ["float8_e4m3", "float8_e5m2fnuz", "float8_e8m0fnu", "float6_e2m3fn"])
@settings(max_examples=20, deadline=None)
@given(tolerance=TOLERANCES, rtol=TOLERANCES, data=st.data())
def test_verdicts_are_those_of_exact_fractions(name: str, tolerance: str, rtol: str, data: st.DataObject) -> None:
    dtype = parse_dtype(name)
    fmt = dtype.float_format
    finite = [word for word in range(1 << fmt.width) if fmt.is_finite(word)]
    expected = data.draw(st.lists(st.sampled_from(finite), min_size=1, max_size=20))
    got = data.draw(st.lists(st.sampled_from(finite), min_size=len(expected), max_size=len(expected)))
    passes = measured(dtype, expected, got).passes(make_rule(tolerance, rtol, None, False, False))
    t, r = Fraction(tolerance), Fraction(rtol)
    for passed, e, g in zip(passes, expected, got, strict=True):
        assert passed == (abs(value(fmt, g) - value(fmt, e)) <= t + r * abs(value(fmt, e)))


def _words32(x: float) -> int:
    return int(np.float32(x).view(np.uint32))


FLOATS = st.floats(-1e3, 1e3, width=32)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(FLOATS, FLOATS, FLOATS, FLOATS), min_size=1, max_size=8), TOLERANCES, TOLERANCES)
def test_complex_verdicts_are_those_of_decimals_of_200_digits(
    rows: list[tuple[float, float, float, float]], tolerance: str, rtol: str
) -> None:
    dtype = parse_dtype("complex64")
    expected = [_words32(x) for row in rows for x in row[:2]]
    got = [_words32(x) for row in rows for x in row[2:]]
    sides = [np.array(side, np.uint32).reshape(-1, 2) for side in (expected, got)]
    passes = pairs(dtype, *sides).passes(make_rule(tolerance, rtol, None, False, False))
    with localcontext() as context:
        context.prec = 200
        t, r = (Decimal(f.numerator) / Decimal(f.denominator) for f in (Fraction(tolerance), Fraction(rtol)))
        for passed, row in zip(passes, rows, strict=True):
            er, ei, gr, gi = (Decimal(x) for x in row)
            difference = ((gr - er) ** 2 + (gi - ei) ** 2).sqrt()
            bound = t + r * (er**2 + ei**2).sqrt()
            if abs(difference - bound) > Decimal("1e-150"):
                assert passed == (difference < bound)
            else:
                assert passed or tolerance == "1/3" or rtol == "1/3"


def test_a_complex_difference_on_the_bound_passes() -> None:
    dtype = parse_dtype("complex64")
    expected = np.array([[_words32(0), _words32(0)]], np.uint32)
    got = np.array([[_words32(3), _words32(4)]], np.uint32)
    assert pairs(dtype, expected, got).passes(make_rule("5", 0, None, False, False)).all()
    assert not pairs(dtype, expected, got).passes(make_rule("4.9999999999999999999999", 0, None, False, False)).any()
    assert pairs(dtype, got, expected).passes(make_rule("2.5", "0.5", None, False, False)).all()
    assert not pairs(dtype, got, expected).passes(make_rule("2.5", "0.49999999999999999999", None, False, False)).any()


def test_the_bound_is_the_decimal_that_was_written() -> None:
    """The binary64 number nearest to 0.1 is above 0.1, so a difference of it is not within 0.1."""
    dtype = parse_dtype("float64")
    tenth = int(np.float64(0.1).view(np.uint64))
    for text, passes in (("0.1", False), ("0.1000000000000000055511151231257827021181583404541015625", True)):
        rule = make_rule(text, 0, None, False, False)
        assert measured(dtype, [0], [tenth]).passes(rule).tolist() == [passes]


@pytest.mark.parametrize("name", ["float64", "float128"])
def test_underflow_and_overflow_of_a_difference_do_not_decide(name: str) -> None:
    dtype = parse_dtype(name)
    fmt = dtype.float_format
    top, least = fmt.max_finite, fmt.min_subnormal
    far = measured(dtype, [top, least], [top | fmt.sign_mask, 0])
    assert far.passes(make_rule(0, 2, None, False, False)).tolist() == [True, True]
    assert far.passes(make_rule(0, "1.9999999999999999999", None, False, False)).tolist() == [False, True]
    assert far.passes(make_rule(0, "0.999999999999", None, False, False)).tolist() == [False, False]
    assert far.largest_absolute() == 0
    assert str(far.relative(0)) == "2.0"
    assert str(far.relative(1)) == "1.0"


def test_a_format_of_thirty_exponent_bits_is_decided_without_its_powers() -> None:
    fmt = Format(30, 20)
    dtype = DType("wide", "float", fmt.width, fmt)
    one = fmt.bias << fmt.fraction_bits
    expected, got = [one, fmt.max_finite, 1], [one + 1, fmt.max_finite - 1, 0]
    compared = measured(dtype, expected, got)
    assert compared.passes(make_rule("1e-3", 0, None, False, False)).tolist() == [True, False, True]
    assert compared.passes(make_rule(0, "1e-6", None, False, False)).tolist() == [True, True, False]
    assert compared.largest_absolute() == 1
    assert compared.largest_relative() == 2


def test_signs_of_sums_that_cancel() -> None:
    huge = 1 << (400_000_000).bit_length()
    assert sign([(1, 10**9), (-1, 10**9), (1, -(10**9))]) == 1
    assert sign([(1, 10**9), (-1, -(10**9))]) == 1
    assert sign([(huge, 5), (-huge, 5)]) == 0
    assert sign([]) == 0
    assert leading([(3, 0), (1, -2)]) == (13, -2)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(-(2**70), 2**70), st.integers(-300, 300)), max_size=6))
def test_signs_are_those_of_fractions(terms: list[tuple[int, int]]) -> None:
    total = sum((Fraction(n) * Fraction(2) ** k for n, k in terms), Fraction(0))
    assert sign(terms) == (total > 0) - (total < 0)
    n, k = leading(terms, 40)
    assert abs(Fraction(n) * Fraction(2) ** k - total) <= abs(total) * Fraction(1, 2**40)


F32 = FORMATS["float32"]
INF, NAN, MINUS = 0x7F800000, 0x7FC00000, 0x80000000
ALWAYS = Rule(Fraction(10**40))


@pytest.mark.parametrize(
    ("expected", "got", "passes"),
    [
        (NAN, NAN | 5, True),
        (NAN, NAN | MINUS, True),
        (NAN, 0, False),
        (0, NAN, False),
        (INF, NAN, False),
        (INF, INF | MINUS, False),
        (INF, F32.max_finite, False),
        (F32.max_finite, INF, False),
        (MINUS | INF, MINUS | INF, True),
        (0, MINUS, True),
    ],
)
def test_special_values_match_or_fail_whatever_the_tolerance(expected: int, got: int, passes: bool) -> None:
    dtype = parse_dtype("float32")
    for rule in (ALWAYS, Rule(None, ulps=2**40), Rule(Fraction(0), Fraction(10**50))):
        if passes or expected not in (0,):
            assert measured(dtype, [expected], [got]).passes(rule).tolist() == [passes]


def test_words_tell_zeros_apart_and_payloads_on_request() -> None:
    dtype = parse_dtype("float32")
    compared = measured(dtype, [0, NAN, 1, NAN], [MINUS, NAN | 1, 2, NAN])
    assert compared.passes(Rule(None, words=True)).tolist() == [False, True, False, True]
    assert compared.passes(Rule(None, words=True, nan_payload=True)).tolist() == [False, False, False, True]


def test_the_parts_of_a_complex_number_match_by_themselves() -> None:
    dtype = parse_dtype("complex64")
    one = _words32(1)
    expected = np.array([[NAN, one], [NAN, one], [INF, NAN], [one, one]], np.uint32)
    got = np.array([[NAN | 1, one + 1], [one, NAN], [INF, NAN], [one, INF]], np.uint32)
    compared = pairs(dtype, expected, got)
    assert compared.passes(make_rule(None, 0, None, False, False)).tolist() == [True, False, True, False]
    assert compared.ulps.tolist()[0] == 1
    assert compared.comparable.tolist() == [True, False, True, False]


def test_integers_and_booleans_are_equal_or_fail() -> None:
    tolerant = make_rule(100, 0, None, False, False)
    assert measured(parse_dtype("int32"), [5, 5], [6, 5]).passes(tolerant).tolist() == [False, True]
    assert measured(parse_dtype("int32"), [5, 0], [6, 2]).passes(Rule(None, ulps=1)).tolist() == [True, False]
    assert measured(parse_dtype("bool"), [0], [1]).passes(Rule(None, ulps=1)).tolist() == [False]


def test_ulps_and_a_tolerance_pass_where_either_holds() -> None:
    dtype = parse_dtype("float32")
    near_zero, large = ([_words32(0.0)], [_words32(1e-30)]), ([_words32(1e20)], [_words32(1e20) + 1])
    for rule, small_ok, large_ok in (
        (make_rule(None, 0, 1, False, False), False, True),
        (make_rule("1e-6", 0, None, False, False), True, False),
        (make_rule("1e-6", 0, 1, False, False), True, True),
    ):
        assert measured(dtype, *near_zero).passes(rule).tolist() == [small_ok]
        assert measured(dtype, *large).passes(rule).tolist() == [large_ok]


@pytest.mark.parametrize("name", ["float16", "float32", "float128", "int64", "float8_e4m3fn"])
def test_the_largest_differences_are_found(name: str) -> None:
    dtype = parse_dtype(name)
    if dtype.is_integer:
        expected, got = [10, 1000, 0], [12, 1001, 1]
    else:
        fmt = dtype.float_format
        one = fmt.bias << fmt.fraction_bits
        step = 1 << fmt.fraction_bits
        expected, got = [one, one + 2 * step, 0], [one + step, one + 3 * step, fmt.min_subnormal]
    compared = measured(dtype, expected, got)
    assert compared.largest_absolute() == (0 if dtype.is_integer else 1)
    assert compared.largest_relative() == 0
