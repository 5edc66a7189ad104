"""Every pair of words of every format of up to 6 bits, in every rounding mode, against exact rationals and a search."""

import itertools
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from math import floor, isqrt

import pytest
from floatlib_exact import SMALL_CUSTOM, nearest, value_of

from tlir.floatlib import arithmetic, ordering
from tlir.floatlib.convert import convert, from_integer, to_fraction, to_integer
from tlir.floatlib.format import FORMATS, Format
from tlir.floatlib.rounding import NO_FLAGS, Flags, Rounding

SMALL = SMALL_CUSTOM + [fmt for fmt in FORMATS.values() if fmt.width <= 6]
Outcome = tuple[int, Flags]
INF = ("inf", "-inf")


def negative(fmt: Format, word: int) -> bool:
    return fmt.signed and bool(word >> (fmt.width - 1))


@cache
def invalid(fmt: Format) -> Outcome:
    """The NaN, found by looking: the NaN of a clear sign bit with the fewest trailing bits set, else the -0."""
    nans = [word for word in range(2**fmt.width) if value_of(fmt, word) == "nan"]
    nans = [word for word in nans if not negative(fmt, word)] or nans
    if nans:
        # of IEEE's NaN the one with only the top fraction bit; the other conventions leave one to choose from
        tops = [word for word in nans if word & (2**fmt.fraction_bits - 1) == 2**fmt.fraction_bits // 2]
        return (tops or nans)[0], Flags.INVALID
    return (2 ** (fmt.width - 1) if fmt.signed_zero else 0), Flags.INVALID


@cache
def infinite(fmt: Format, sign: bool) -> int:
    for word in range(2**fmt.width):
        if value_of(fmt, word) == ("-inf" if sign else "inf"):
            return word
    return nearest(fmt, int(sign), Fraction(2) ** 400, Rounding.NEAREST_EVEN)[0]


@cache
def signaling(fmt: Format, word: int) -> bool:
    if fmt.nans != "ieee" or value_of(fmt, word) != "nan":
        return False
    return word % 2**fmt.fraction_bits < 2 ** (fmt.fraction_bits - 1)


def nan_case(fmt: Format, *words: int) -> Outcome | None:
    if all(value_of(fmt, word) != "nan" for word in words):
        return None
    return invalid(fmt)[0], Flags.INVALID if any(signaling(fmt, word) for word in words) else NO_FLAGS


def finish(fmt: Format, x: Fraction, zero_sign: bool, rounding: Rounding) -> Outcome:
    return nearest(fmt, int(x < 0 or (x == 0 and zero_sign)), abs(x), rounding)


def expected_sum(fmt: Format, rounding: Rounding, x: Fraction | str, sx: bool, y: Fraction | str, sy: bool) -> Outcome:
    if x in INF or y in INF:
        if x in INF and y in INF and x != y:
            return invalid(fmt)
        sign = (x if x in INF else y) == "-inf"
        return infinite(fmt, sign), Flags.INVALID if sign and not fmt.signed else NO_FLAGS
    assert isinstance(x, Fraction)
    assert isinstance(y, Fraction)
    zero_sign = sx if x == y == 0 and sx == sy else rounding is Rounding.DOWN
    return finish(fmt, x + y, zero_sign, rounding)


def expected_add(fmt: Format, rounding: Rounding, a: int, b: int) -> Outcome:
    return nan_case(fmt, a, b) or expected_sum(
        fmt, rounding, value_of(fmt, a), negative(fmt, a), value_of(fmt, b), negative(fmt, b)
    )


def expected_subtract(fmt: Format, rounding: Rounding, a: int, b: int) -> Outcome:
    y = value_of(fmt, b)
    y = {"inf": "-inf", "-inf": "inf"}[y] if y in INF else y if isinstance(y, str) else -y
    return nan_case(fmt, a, b) or expected_sum(
        fmt, rounding, value_of(fmt, a), negative(fmt, a), y, not negative(fmt, b)
    )


def expected_multiply(fmt: Format, rounding: Rounding, a: int, b: int) -> Outcome:
    x, y, sign = value_of(fmt, a), value_of(fmt, b), negative(fmt, a) != negative(fmt, b)
    if case := nan_case(fmt, a, b):
        return case
    if x in INF or y in INF:
        return invalid(fmt) if x == 0 or y == 0 else (infinite(fmt, sign), NO_FLAGS)
    assert isinstance(x, Fraction)
    assert isinstance(y, Fraction)
    return finish(fmt, x * y, sign, rounding)


def expected_divide(fmt: Format, rounding: Rounding, a: int, b: int) -> Outcome:
    x, y, sign = value_of(fmt, a), value_of(fmt, b), negative(fmt, a) != negative(fmt, b)
    if case := nan_case(fmt, a, b):
        return case
    if x in INF:
        return invalid(fmt) if y in INF else (infinite(fmt, sign), NO_FLAGS)
    if y in INF:
        return finish(fmt, Fraction(0), sign, rounding)
    assert isinstance(x, Fraction)
    assert isinstance(y, Fraction)
    if y == 0:
        return invalid(fmt) if x == 0 else (infinite(fmt, sign), Flags.DIVIDE_BY_ZERO)
    return finish(fmt, x / y, sign, rounding)


def expected_fma(fmt: Format, rounding: Rounding, a: int, b: int, c: int) -> Outcome:
    x, y, z = value_of(fmt, a), value_of(fmt, b), value_of(fmt, c)
    if (x in INF and y == 0) or (x == 0 and y in INF):
        return invalid(fmt)
    if case := nan_case(fmt, a, b, c):
        return case
    sign = negative(fmt, a) != negative(fmt, b)
    if x in INF or y in INF:
        return expected_sum(fmt, rounding, "-inf" if sign else "inf", sign, z, negative(fmt, c))
    assert isinstance(x, Fraction)
    assert isinstance(y, Fraction)
    return expected_sum(fmt, rounding, x * y, sign, z, negative(fmt, c))


BINARY: dict[str, tuple[Callable[..., Outcome], Callable[..., Outcome]]] = {
    "add": (arithmetic.add, expected_add),
    "subtract": (arithmetic.subtract, expected_subtract),
    "multiply": (arithmetic.multiply, expected_multiply),
    "divide": (arithmetic.divide, expected_divide),
}


@pytest.mark.parametrize("fmt", SMALL, ids=str)
@pytest.mark.parametrize("name", BINARY)
def test_all_pairs_in_all_rounding_modes(fmt: Format, name: str) -> None:
    operation, expected = BINARY[name]
    for a, b in itertools.product(range(2**fmt.width), repeat=2):
        for rounding in Rounding:
            want = expected(fmt, rounding, a, b)
            assert operation(fmt, a, b, rounding) == want, (hex(a), hex(b), rounding)


@pytest.mark.parametrize("fmt", [fmt for fmt in SMALL if fmt.width <= 5], ids=str)
def test_fma_of_all_triples(fmt: Format) -> None:
    modes = itertools.cycle(Rounding)
    words = range(2**fmt.width)
    for a, b, c in itertools.product(words, words, words):
        for _ in range(6 if fmt.width <= 4 else 1):
            rounding = next(modes)
            assert arithmetic.fma(fmt, a, b, c, rounding) == expected_fma(fmt, rounding, a, b, c), (a, b, c, rounding)
        if c == words[-1]:
            next(modes)  # so that each pair meets every mode at different c


@pytest.mark.parametrize("fmt", SMALL, ids=str)
def test_square_roots(fmt: Format) -> None:
    for a, rounding in itertools.product(range(2**fmt.width), Rounding):
        x = value_of(fmt, a)
        if case := nan_case(fmt, a):
            want = case
        elif x == 0 or x == "inf":
            want = (a, NO_FLAGS)
        elif negative(fmt, a):
            want = invalid(fmt)
        else:
            assert isinstance(x, Fraction)
            # a rational that rounds like the root: the root to 60 bits below, moved off the grid if it is not exact
            scaled = x * 4**60
            root = Fraction(isqrt(floor(scaled)), 2**60)
            want = nearest(fmt, 0, root if root * root == x else root + Fraction(1, 2**61), rounding)
        assert arithmetic.sqrt(fmt, a, rounding) == want, (a, rounding)


@pytest.mark.parametrize("fmt", SMALL, ids=str)
def test_remainders(fmt: Format) -> None:
    for a, b in itertools.product(range(2**fmt.width), repeat=2):
        x, y = value_of(fmt, a), value_of(fmt, b)
        case = nan_case(fmt, a, b)
        if case is None and (x in INF or y == 0):
            case = invalid(fmt)
        if case is None and (y in INF or x == 0):
            case = (a, NO_FLAGS)
        if case:
            assert arithmetic.remainder_ieee(fmt, a, b) == case
            assert arithmetic.remainder_truncated(fmt, a, b) == case
            continue
        assert isinstance(x, Fraction)
        assert isinstance(y, Fraction)
        even = round(x / y)  # Python rounds a Fraction to the even integer
        truncated = int(x / y)
        sign = negative(fmt, a)
        assert arithmetic.remainder_ieee(fmt, a, b) == finish(fmt, x - y * even, sign, Rounding.NEAREST_EVEN)
        assert arithmetic.remainder_truncated(fmt, a, b) == finish(fmt, x - y * truncated, sign, Rounding.NEAREST_EVEN)


def integer_of(x: Fraction, rounding: Rounding) -> int:
    below = floor(x)
    if x == below:
        return below
    match rounding:
        case Rounding.DOWN:
            return below
        case Rounding.UP:
            return below + 1
        case Rounding.TOWARD_ZERO:
            return int(x)
        case Rounding.TO_ODD:
            return below if below % 2 else below + 1
        case Rounding.NEAREST_AWAY:
            return floor(x + Fraction(1, 2)) if x > 0 else -floor(-x + Fraction(1, 2))
    return round(x)


@pytest.mark.parametrize("fmt", SMALL, ids=str)
def test_integers_out_and_in(fmt: Format) -> None:
    for a, rounding in itertools.product(range(2**fmt.width), Rounding):
        x = value_of(fmt, a)
        if isinstance(x, Fraction):
            n = integer_of(x, rounding)
            want = finish(fmt, Fraction(n), negative(fmt, a), rounding)
            assert arithmetic.round_to_integral(fmt, a, rounding) == want
            assert to_fraction(fmt, a) == x
        for width, signed in ((4, True), (4, False), (2, True), (64, True)):
            low, high = (-(2 ** (width - 1)), 2 ** (width - 1) - 1) if signed else (0, 2**width - 1)
            got = to_integer(fmt, a, width, signed, rounding)
            if x == "nan":
                assert got == (0, Flags.INVALID)
            elif isinstance(x, str):
                assert got == (low if x == "-inf" else high, Flags.INVALID)
            elif low <= n <= high:
                assert got == (n, NO_FLAGS if n == x else Flags.INEXACT)
            else:
                assert got == (min(max(n, low), high), Flags.INVALID)
                wrapped, flags = to_integer(fmt, a, width, signed, rounding, saturating=False)
                assert (wrapped - n) % 2**width == 0
                assert low <= wrapped <= high
                assert flags == Flags.INVALID
    for n, rounding in itertools.product(range(-70, 70), Rounding):
        assert from_integer(fmt, n, rounding) == finish(fmt, Fraction(n), False, rounding)


@pytest.mark.parametrize("fmt", SMALL, ids=str)
def test_comparisons_and_extrema(fmt: Format) -> None:
    place = {"-inf": Fraction(-(2**200)), "inf": Fraction(2**200)}
    for a, b in itertools.product(range(2**fmt.width), repeat=2):
        if case := nan_case(fmt, a, b):
            assert ordering.compare(fmt, a, b) == (ordering.Relation.UNORDERED, case[1])
            assert ordering.compare(fmt, a, b, signaling=True) == (ordering.Relation.UNORDERED, Flags.INVALID)
            assert ordering.minimum(fmt, a, b) == ordering.maximum(fmt, a, b) == case
            both = value_of(fmt, a) == value_of(fmt, b)
            number = case[0] if both else a if value_of(fmt, b) == "nan" else b
            assert ordering.minimum_number(fmt, a, b) == ordering.maximum_number(fmt, a, b) == (number, case[1])
            continue
        x, y = (place[v] if isinstance(v, str) else v for v in (value_of(fmt, a), value_of(fmt, b)))
        relation = ordering.Relation.LT if x < y else ordering.Relation.GT if x > y else ordering.Relation.EQ
        assert ordering.compare(fmt, a, b) == (relation, NO_FLAGS)
        first = x < y or (x == y and negative(fmt, a))
        assert ordering.minimum(fmt, a, b) == ordering.minimum_number(fmt, a, b) == (a if first else b, NO_FLAGS)
        assert ordering.maximum(fmt, a, b) == ordering.maximum_number(fmt, a, b) == (b if first else a, NO_FLAGS)
        assert ordering.total_order(fmt, a, b) == (first or a == b)


@pytest.mark.parametrize("fmt", SMALL, ids=str)
def test_neighbours_are_the_next_values(fmt: Format) -> None:
    place = {"-inf": Fraction(-(2**200)), "inf": Fraction(2**200)}
    values = {w: place.get(v, v) for w in range(2**fmt.width) if (v := value_of(fmt, w)) != "nan"}  # type: ignore[call-overload]
    for a, x in values.items():
        above = min((v for v in values.values() if v > x), default=None)
        below = max((v for v in values.values() if v < x), default=None)
        for step, target, sign in ((ordering.next_up, above, 0), (ordering.next_down, below, 1)):
            word, flags = step(fmt, a)
            assert flags == NO_FLAGS
            if target is not None:
                assert values[word] == target
                assert target != 0 or not fmt.signed_zero or negative(fmt, word) == (sign == 0)
            elif value_of(fmt, a) in INF or (sign and not fmt.signed):
                assert word == a
            else:
                assert word == infinite(fmt, bool(sign))
        for b, y in values.items():
            want = b if x == y else (ordering.next_up if x < y else ordering.next_down)(fmt, a)[0]
            assert ordering.next_after(fmt, a, b) == (want, NO_FLAGS)


@pytest.mark.parametrize("fmt", SMALL, ids=str)
def test_sign_bit_operations_keep_words(fmt: Format) -> None:
    for a in range(2**fmt.width):
        x, top = value_of(fmt, a), 2 ** (fmt.width - 1) if fmt.signed else 0
        word, flags = ordering.negate(fmt, a)
        if fmt.signed:
            kept = fmt.nans == "negative_zero" and (x == "nan" or x == 0)
            assert (word, flags) == (a if kept else a ^ top, NO_FLAGS)
            assert ordering.absolute(fmt, a) == (a if kept else a & ~top, NO_FLAGS)
        elif isinstance(x, Fraction) and x > 0:
            assert (word, flags) == invalid(fmt)
        for b in range(2**fmt.width):
            word, flags = ordering.copysign(fmt, a, b)
            assert flags == NO_FLAGS
            if isinstance(x, Fraction) and x != 0:
                assert value_of(fmt, word) == (-abs(x) if negative(fmt, b) else abs(x))
            elif fmt.signed_zero:
                assert word == (a & ~top) | (b & top)


@pytest.mark.parametrize("source", SMALL, ids=str)
def test_conversions_between_all_small_formats(source: Format) -> None:
    modes = itertools.cycle(Rounding)
    for target in [*SMALL, FORMATS["float8_e4m3fn"], FORMATS["float8_e5m2fnuz"]]:
        if source == target:
            continue
        for a in range(2**source.width):
            x = value_of(source, a)
            for saturate, rounding in ((False, Rounding.NEAREST_EVEN), (False, next(modes)), (True, next(modes))):
                got = convert(source, target, a, rounding, saturate)
                if x == "nan":
                    raised = signaling(source, a) or target.nans == "none"
                    assert got == (invalid(target)[0], Flags.INVALID if raised else NO_FLAGS)
                elif isinstance(x, Fraction):
                    assert got == nearest(target, int(negative(source, a)), abs(x), rounding, saturate)
                elif target.infinities and not saturate and (target.signed or x == "inf"):
                    assert got == (infinite(target, x == "-inf"), NO_FLAGS)
                else:
                    # as the largest possible overflow
                    huge = Fraction(2) ** 400
                    away = Rounding.NEAREST_EVEN
                    assert got == nearest(target, int(x == "-inf"), huge, away, saturate)


@pytest.mark.parametrize("fmt", SMALL, ids=str)
def test_scaling_by_powers_of_two(fmt: Format) -> None:
    for a, n, rounding in itertools.product(range(2**fmt.width), range(-12, 13, 3), Rounding):
        x = value_of(fmt, a)
        if isinstance(x, Fraction):
            want = finish(fmt, x * Fraction(2) ** n, negative(fmt, a), rounding)
            assert arithmetic.scale_b(fmt, a, n, rounding) == want
