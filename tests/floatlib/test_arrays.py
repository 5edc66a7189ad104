"""The operations on arrays return the words and flags of the specification, and the words of ml_dtypes."""

import ctypes
import itertools
import os
import platform
import random
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from floatlib_exact import SMALL_CUSTOM
from floatlib_mpfr import boundary_word

from tlir.floatlib import arithmetic, arrays, dispatch, elementwise, ordering, words
from tlir.floatlib import convert as conversion
from tlir.floatlib.format import FORMATS, Format
from tlir.floatlib.native import FLOAT64, carrier
from tlir.floatlib.rounding import Flags, Rounding

FLOAT32, FLOAT16, BFLOAT16 = FORMATS["float32"], FORMATS["float16"], FORMATS["bfloat16"]
EIGHT_BITS = [fmt for fmt in FORMATS.values() if fmt.width <= 8]
WIDER = [FLOAT16, BFLOAT16, FLOAT32, FLOAT64, FORMATS["tfloat32"], Format(6, 17), Format(9, 5, bias=100),
         FORMATS["float128"], Format(15, 64), Format(30, 150)]  # fmt: skip
ROUNDED = {"add": 2, "subtract": 2, "multiply": 2, "divide": 2, "sqrt": 1, "fma": 3}
BINARY = {
    "remainder_truncated": arithmetic.remainder_truncated,
    "remainder_ieee": arithmetic.remainder_ieee,
    "minimum": ordering.minimum,
    "maximum": ordering.maximum,
    "minimum_number": ordering.minimum_number,
    "maximum_number": ordering.maximum_number,
    "next_after": ordering.next_after,
    "copysign": ordering.copysign,
}
UNARY = {"negate": ordering.negate, "absolute": ordering.absolute}
RELATIONS: dict[str, Callable[[ordering.Relation], bool]] = {
    "EQ": lambda r: r == ordering.Relation.EQ,
    "NE": lambda r: r != ordering.Relation.EQ,
    "LT": lambda r: r == ordering.Relation.LT,
    "LE": lambda r: r in (ordering.Relation.LT, ordering.Relation.EQ),
    "GT": lambda r: r == ordering.Relation.GT,
    "GE": lambda r: r in (ordering.Relation.GT, ordering.Relation.EQ),
}


def sample(fmt: Format, count: int, operands: int, seed: int) -> list[list[int]]:
    """Rows of boundary-directed words, half of them of exponents near each other, and the special words."""
    rng = random.Random(f"{fmt}{seed}")
    rows = []
    special = [0, fmt.sign_mask, fmt.max_finite, fmt.lowest_finite, fmt.min_normal, fmt.min_subnormal, fmt.invalid_word]
    special += [fmt.inf, fmt.inf | fmt.sign_mask, fmt.inf + 1] if fmt.inf is not None and fmt.nans == "ieee" else []
    special += [fmt.min_normal | fmt.sign_mask, max(fmt.min_normal - 1, 0), fmt.word_mask]
    for _ in range(count):
        first = boundary_word(fmt, rng)
        near = (first & fmt.magnitude_mask) >> fmt.fraction_bits
        row = [first] + [boundary_word(fmt, rng, near if rng.getrandbits(1) else None) for _ in range(operands - 1)]
        if operands == 3 and rng.getrandbits(1):
            product, _ = arithmetic.multiply(fmt, row[0], row[1])
            row[2] = (max(product - rng.randrange(3), 0) ^ fmt.sign_mask) & fmt.word_mask
        rows.append([rng.choice(special) if rng.randrange(8) == 0 else word for word in row])
    rows += [list(row) for row in itertools.islice(itertools.product(special, repeat=operands), 400)]
    return rows


def check(fmt: Format, name: str, rows: list[list[int]], got: tuple[Any, Any], want: list[tuple[int, Any]]) -> None:
    values, flags = words.to_ints(fmt, got[0]).tolist(), got[1].tolist()
    assert got[1].dtype == np.uint8
    for row, value, raised, (word, expected) in zip(rows, values, flags, want, strict=True):
        shown = [hex(operand) for operand in row]
        assert (hex(value), Flags(raised)) == (hex(word), expected), (name, fmt.name, shown)


def columns(fmt: Format, rows: list[list[int]]) -> list[Any]:
    return [words.from_ints(fmt, list(column)) for column in zip(*rows, strict=True)]


@pytest.mark.parametrize("fmt", [*WIDER, *SMALL_CUSTOM, *EIGHT_BITS], ids=str)
@pytest.mark.parametrize("name", ROUNDED)
def test_rounded_operations(fmt: Format, name: str) -> None:
    rows = sample(fmt, 600 if fmt.width > 8 else 200, ROUNDED[name], 1)
    operands = columns(fmt, rows)
    specification = getattr(arithmetic, name)
    want = [specification(fmt, *row) for row in rows]
    check(fmt, name, rows, getattr(arrays, name)(fmt, *operands, flags=True), want)
    without = words.to_ints(fmt, getattr(arrays, name)(fmt, *operands)).tolist()
    assert without == [word for word, _ in want]


@pytest.mark.parametrize("fmt", [*WIDER, *SMALL_CUSTOM, *EIGHT_BITS], ids=str)
def test_exact_operations(fmt: Format) -> None:
    rows = sample(fmt, 150, 2, 2)
    if fmt.exponent_bits > 20:
        rows = rows[:100]
    operands = columns(fmt, rows)
    for name, specification in BINARY.items():
        want = [specification(fmt, *row) for row in rows]
        check(fmt, name, rows, getattr(arrays, name)(fmt, *operands, flags=True), want)
        assert words.to_ints(fmt, getattr(arrays, name)(fmt, *operands)).tolist() == [word for word, _ in want]
    for name, specification in UNARY.items():
        want = [specification(fmt, row[0]) for row in rows]
        check(fmt, name, rows, getattr(arrays, name)(fmt, operands[0], flags=True), want)
    for rounding in Rounding:
        want = [arithmetic.round_to_integral(fmt, row[0], rounding) for row in rows]
        check(fmt, str(rounding), rows, arrays.round_to_integral(fmt, operands[0], rounding, flags=True), want)
    for direction, holds in RELATIONS.items():
        for signaling in (False, True):
            want_relations = [ordering.compare(fmt, *row, signaling=signaling) for row in rows]
            result, flags = arrays.compare(fmt, *operands, direction, flags=True, signaling=signaling)
            assert result.tolist() == [holds(relation) for relation, _ in want_relations], direction
            assert flags.tolist() == [raised for _, raised in want_relations]
    want = [arithmetic.scale_b(fmt, row[0], -3) for row in rows]
    check(fmt, "scale_b", rows, arrays.scale_b(fmt, operands[0], -3, flags=True), want)


@pytest.mark.parametrize("source", [*WIDER, *EIGHT_BITS, SMALL_CUSTOM[8], SMALL_CUSTOM[12]], ids=str)
def test_conversions(source: Format) -> None:
    rows = sample(source, 120, 1, 3)
    (column,) = columns(source, rows)
    for target in [*WIDER, *EIGHT_BITS, *SMALL_CUSTOM]:
        for saturate in (False, True):
            want = [conversion.convert(source, target, row[0], saturate=saturate) for row in rows]
            got = arrays.convert(source, target, column, flags=True, saturate=saturate)
            check(target, f"to {target}", rows, got, want)
            again = arrays.convert(source, target, column, saturate=saturate)
            assert np.array_equal(again, got[0])


@pytest.mark.parametrize("fmt", [*WIDER, *EIGHT_BITS], ids=str)
def test_integers(fmt: Format) -> None:
    rows = sample(fmt, 150, 1, 4)
    (column,) = columns(fmt, rows)
    rng = random.Random(9)
    for width, signed in itertools.product((2, 4, 8, 16, 32, 64), (True, False)):
        mask = 2**width - 1
        for saturating in (True, False):
            want = [conversion.to_integer(fmt, row[0], width, signed, saturating=saturating) for row in rows]
            got, flags = arrays.to_integer(fmt, column, width, signed, flags=True, saturating=saturating)
            assert got.dtype == words.integer_dtype(width)
            assert got.tolist() == [value & mask for value, _ in want], (width, signed, saturating)
            assert flags.tolist() == [raised for _, raised in want]
        patterns = [rng.getrandbits(width) >> rng.randrange(width) for _ in range(60)] + [0, mask, mask >> 1, 1]
        patterns += [min(mask, 2**k + d) for k in range(1, width) for d in (-1, 0, 1)]
        want = [conversion.from_integer(fmt, n - 2**width if signed and n >> (width - 1) else n) for n in patterns]
        given = np.array(patterns, dtype=words.integer_dtype(width))
        got = arrays.from_integer(fmt, given, width, signed, flags=True)
        check(fmt, "from_integer", [[n] for n in patterns], got, want)


@pytest.mark.parametrize("fmt", [FORMATS["float8_e5m2"], FLOAT32, FORMATS["float128"]], ids=str)
def test_other_rounding_modes(fmt: Format) -> None:
    for name, count in ROUNDED.items():
        rows = sample(fmt, 60, count, 5)[:120]
        for rounding in Rounding:
            want = [getattr(arithmetic, name)(fmt, *row, rounding) for row in rows]
            check(fmt, name, rows, getattr(arrays, name)(fmt, *columns(fmt, rows), flags=True, rounding=rounding), want)
    rows = sample(fmt, 60, 1, 5)
    for rounding in Rounding:
        want = [conversion.convert(fmt, FLOAT16, row[0], rounding) for row in rows]
        got = arrays.convert(fmt, FLOAT16, *columns(fmt, rows), flags=True, rounding=rounding)
        check(FLOAT16, "convert", rows, got, want)


def test_flags_at_the_top_of_float64_where_splitting_an_operand_would_overflow() -> None:
    top = FLOAT64.max_finite
    rows = [[top - k, (exponent << 52) | fraction] for k in (0, 1, 2**26, 2**51) for exponent in (1, 1023, 2000, 2046)
            for fraction in (0, 1, 2**52 - 1, 2**26, 2**51 + 1)]  # fmt: skip
    for name in ("multiply", "divide", "add", "subtract"):
        want = [getattr(arithmetic, name)(FLOAT64, *row) for row in rows]
        check(FLOAT64, name, rows, getattr(arrays, name)(FLOAT64, *columns(FLOAT64, rows), flags=True), want)
    want = [arithmetic.sqrt(FLOAT64, row[0]) for row in rows]
    check(FLOAT64, "sqrt", rows, arrays.sqrt(FLOAT64, columns(FLOAT64, rows)[0], flags=True), want)


def all_pairs(fmt: Format) -> tuple[Any, Any]:
    grid = np.arange(2**fmt.width, dtype=np.uint8)
    a, b = np.meshgrid(grid, grid, indexing="ij")
    return a.reshape(-1), b.reshape(-1)


@pytest.mark.parametrize("fmt", EIGHT_BITS, ids=str)
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide"])
def test_all_pairs_of_eight_bit_formats_by_table_and_natively(fmt: Format, name: str) -> None:
    a, b = all_pairs(fmt)
    tabulated = getattr(arrays, name)(fmt, a, b, flags=True)
    assert (name, Rounding.NEAREST_EVEN, fmt) in elementwise._tables
    assert np.array_equal(dispatch._processed(name, fmt, (a, b)), tabulated[0])
    assert np.array_equal(getattr(arrays, name)(fmt, a, b), tabulated[0])


# ml_dtypes rounds what is half way between the two least numbers of float8_e8m0fnu, or nearer to the least, upward
@pytest.mark.parametrize("fmt", [fmt for fmt in EIGHT_BITS if fmt.name != "float8_e8m0fnu"], ids=str)
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide"])
def test_all_pairs_agree_with_ml_dtypes(fmt: Format, name: str) -> None:
    dtype = getattr(ml_dtypes, fmt.name)
    a, b = all_pairs(fmt)
    with np.errstate(all="ignore"):
        want = getattr(np, name)(a.view(dtype), b.view(dtype))
    got = getattr(arrays, name)(fmt, a, b)
    if fmt.has_nan:
        same_nan = np.isnan(want.astype(np.float32)) == words.is_nan(fmt, got)
        assert same_nan.all()
    else:
        # NaN has no word there: ml_dtypes' choice depends on the NaN's sign, this one does not
        with np.errstate(all="ignore"):
            defined = ~np.isnan(getattr(np, name)(a.view(dtype).astype(np.float32), b.view(dtype).astype(np.float32)))
        got, want = got[defined], want[defined]
    numbers = ~words.is_nan(fmt, got)
    assert np.array_equal(got[numbers], want.view(np.uint8)[numbers])


@pytest.mark.parametrize("fmt", [FLOAT16, BFLOAT16], ids=str)
def test_every_word_of_sixteen_bits_through_conversions_and_square_root(fmt: Format) -> None:
    column = np.arange(2**16, dtype=np.uint16)
    want = [arithmetic.sqrt(fmt, word) for word in range(2**16)]
    result, flags = arrays.sqrt(fmt, column, flags=True)
    assert np.array_equal(dispatch._processed("sqrt", fmt, (column,)), result)
    assert result.tolist() == [word for word, _ in want]
    assert flags.tolist() == [raised for _, raised in want]
    other = BFLOAT16 if fmt == FLOAT16 else FLOAT16
    for target in (FLOAT32, FLOAT64, other, FORMATS["float8_e4m3fn"], FORMATS["float8_e8m0fnu"]):
        want = [conversion.convert(fmt, target, word) for word in range(2**16)]
        result, flags = arrays.convert(fmt, target, column, flags=True)
        assert result.tolist() == [word for word, _ in want]
        assert flags.tolist() == [raised for _, raised in want]
        assert np.array_equal(arrays.convert(fmt, target, column), result)


def test_narrowing_from_float32_and_float64_at_every_tie_of_float16_and_bfloat16() -> None:
    for target, source in itertools.product((FLOAT16, BFLOAT16), (FLOAT32, FLOAT64)):
        column = np.arange(0, 2**15, 7, dtype=np.uint16)
        exact = arrays.convert(target, source, column).astype(np.int64)
        half = 1 << (source.fraction_bits - target.fraction_bits - 1)
        for nudge in (half, half - 1, half + 1, -1):
            beside = np.maximum(exact + nudge, 0).astype(words.word_dtype(source))
            got = arrays.convert(source, target, beside)
            want = [conversion.convert(source, target, word)[0] for word in beside.tolist()]
            assert got.tolist() == want


def test_shapes_layouts_and_broadcasting() -> None:
    fmt = FORMATS["float128"]
    one = fmt.encode(0, 1, 0)
    column = words.from_ints(fmt, [[one], [fmt.nan], [5]])
    assert column.shape == (3, 1, 2)
    assert words.to_ints(fmt, column).tolist() == [[one], [fmt.nan], [5]]
    row = words.from_ints(fmt, [one, one])
    total, flags = arrays.add(fmt, column, row, flags=True)
    assert total.shape == (3, 2, 2)
    assert flags.shape == (3, 2)
    assert arrays.compare(fmt, column, row, "EQ").tolist() == [[True, True], [False, False], [False, False]]
    assert words.limbs(Format(15, 64)) == 2
    assert words.limbs(FLOAT64) == 1
    with pytest.raises(ValueError, match="words of float128 are uint64 with a last axis of 2"):
        arrays.add(fmt, np.zeros(2, dtype=np.uint32), row)
    with pytest.raises(ValueError, match="the direction is one of EQ"):
        arrays.compare(fmt, row, row, "==")
    for small in (FLOAT32, FLOAT64, BFLOAT16, FORMATS["float8_e4m3fn"], fmt):
        for shape in ((), (0,), (2, 0)):
            zeros = np.zeros(shape + ((2,) if small is fmt else ()), dtype=words.word_dtype(small))
            for name, count in ROUNDED.items():
                result, flags = getattr(arrays, name)(small, *[zeros] * count, flags=True)
                assert result.shape == zeros.shape, name
                assert flags.shape == shape
                assert result.dtype == zeros.dtype
            assert arrays.negate(small, zeros).shape == zeros.shape
            assert arrays.convert(small, FLOAT32, zeros).shape == shape


def test_strided_operands() -> None:
    for fmt in (FLOAT32, FLOAT64, FLOAT16, BFLOAT16):
        grid = np.arange(48, dtype=words.word_dtype(fmt)).reshape(6, 8) * 1000
        want = arrays.multiply(fmt, grid, grid)
        assert np.array_equal(arrays.multiply(fmt, grid.T, grid.T), want.T)
        assert np.array_equal(arrays.fma(fmt, grid[::2], grid[::2], grid[::2]), arrays.fma(fmt, grid, grid, grid)[::2])


def test_no_warning_of_numpy_escapes() -> None:
    fmt = FLOAT32
    special = np.array([0, 0x7F800000, 0x7F800001, 0x7F7FFFFF, 1], dtype=np.uint32)
    with np.errstate(all="raise"):
        for name, count in ROUNDED.items():
            getattr(arrays, name)(fmt, *[special] * count, flags=True)
        arrays.remainder_truncated(fmt, special, special[::-1])
        arrays.convert(fmt, FLOAT16, special, flags=True)
        arrays.to_integer(fmt, special, 8, True, flags=True)
        arrays.from_integer(FLOAT16, np.array([2**64 - 1], dtype=np.uint64), 64, False)


def test_the_table_of_native_operations_names_only_what_holds() -> None:
    assert arrays.NATIVE["float32", "add"] == "float32"
    assert arrays.NATIVE["bfloat16", "multiply"] == "float32"
    assert arrays.NATIVE["float64", "sqrt"] == "float64"
    assert not any(name in ("float128", "float256") for name, _ in arrays.NATIVE)
    assert ("float64", "fma") not in arrays.NATIVE
    for name, fmt in FORMATS.items():
        if (name, "divide") in arrays.NATIVE and fmt not in (FLOAT32, FLOAT64):
            bits = {"float32": 24, "float64": 53}[arrays.NATIVE[name, "divide"]]
            assert bits >= 2 * fmt.precision + 2
    assert carrier(Format(11, 23)) is None  # its products leave the range of float64


def test_flushed_subnormals_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays.ensure_float_environment()
    # as the probe sees it in a thread whose register flushes: the product of the smallest normal number and 1/2 is 0
    monkeypatch.setattr("tlir.floatlib.native._SMALLEST_NORMAL", 0.0)
    with pytest.raises(arrays.FloatEnvironmentError, match="flushes subnormal numbers"):
        arrays.add(FLOAT32, np.zeros(1, dtype=np.uint32), np.zeros(1, dtype=np.uint32))


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64") or os.name != "posix", reason="directions are x86's")
@pytest.mark.parametrize("direction", [0x400, 0x800, 0xC00], ids=["down", "up", "toward zero"])
def test_other_directions_of_rounding_are_refused(direction: int) -> None:
    """As a library leaves them behind that calls C's fesetround."""
    library = ctypes.CDLL(None)
    zeros = np.zeros(1, dtype=np.uint32)
    assert library.fesetround(direction) == 0
    try:
        with pytest.raises(arrays.FloatEnvironmentError, match="does not round to nearest"):
            arrays.add(FLOAT32, zeros, zeros)
    finally:
        library.fesetround(0)
    arrays.add(FLOAT32, zeros, zeros)
