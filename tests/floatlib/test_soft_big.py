"""Kernels on integers of any width, with loops over limbs: the words and flags of the specification."""

from __future__ import annotations

import random
import re
from itertools import product
from typing import Any

import numpy as np
import pytest
from floatlib_soft import all_rows, columns, directed_rows

from tlir.floatlib import arithmetic, convert, ordering
from tlir.floatlib.format import FORMATS, Format
from tlir.floatlib.rounding import Rounding
from tlir.floatlib.soft import catalog, numpy_loop
from tlir.floatlib.soft.catalog import EXTREMA, OPERANDS, Kernel
from tlir.floatlib.soft.rounding import Result
from tlir.floatlib.words import integer_dtype, to_ints

big = pytest.importorskip("tlir.floatlib.soft.big", reason="llvmlite is not installed")
llvm = pytest.importorskip("tlir.floatlib.soft.llvm")

SMALL = [FORMATS["float6_e2m3fn"], FORMATS["float8_e4m3fnuz"], Format(4, 3, signed=False, signed_zero=False)]
MIDDLE = [FORMATS["float16"], FORMATS["float64"], FORMATS["float128"], FORMATS["float8_e8m0fnu"], Format(11, 80),
          Format(9, 47), Format(9, 48), Format(9, 92), Format(9, 93)]  # fmt: skip
RELATIONS = {"EQ": {ordering.Relation.EQ}, "LT": {ordering.Relation.LT}, "GT": {ordering.Relation.GT}}
RELATIONS |= {f"{name[0]}E": found | RELATIONS["EQ"] for name, found in RELATIONS.items() if name != "EQ"}
RELATIONS["NE"] = set(ordering.Relation) - RELATIONS["EQ"]

LONG = [Format(15, 241), Format(19, 300), Format(15, 368), Format(30, 481), Format(11, 500), Format(20, 1003),
        Format(12, 1023, signed_zero=False, subnormals=False, infinities=False, nans="all_ones"),
        Format(30, 4096)]  # fmt: skip
"""Formats whose significands, products and roots end at a limb, a digit, and beside one."""


@pytest.fixture
def everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Formats of every width are computed in this way."""
    monkeypatch.setattr(big, "FROM_BITS", 1)
    monkeypatch.setattr(llvm, "_LOOPS", {})


def kernels(fmt: Format, mode: Rounding) -> list[Kernel]:
    other = FORMATS["float32"] if fmt.width > 32 else FORMATS["float64"]
    return [
        *(catalog.arithmetic(name, fmt, mode, True) for name in OPERANDS),
        *(catalog.extremum(name, fmt, True) for name in EXTREMA),
        *(catalog.compare(fmt, direction, True) for direction in ("EQ", "LT", "GE")),
        catalog.next_after(fmt, True),
        catalog.convert(fmt, other, mode, True),
        catalog.round_to_integral(fmt, mode, True),
        catalog.scale_b(fmt, -3, mode, True),
        catalog.to_integer(fmt, 32, True, mode, True),
    ]


def same_as_numpy(kernel: Kernel, operands: tuple[Any, ...]) -> None:
    words, flags = llvm.run(kernel, operands)
    want, raised = numpy_loop.run(kernel, operands)
    assert np.array_equal(words, want), kernel.name
    assert np.array_equal(flags, raised), kernel.name


@pytest.mark.usefixtures("everywhere")
@pytest.mark.parametrize("fmt", SMALL, ids=str)
def test_every_operand_of_small_formats(fmt: Format) -> None:
    for kernel in kernels(fmt, Rounding.NEAREST_EVEN):
        if len(kernel.operands) < 3:
            same_as_numpy(kernel, columns(kernel.operands, all_rows(fmt, len(kernel.operands))))


@pytest.mark.usefixtures("everywhere")
@pytest.mark.parametrize("fmt", MIDDLE, ids=str)
def test_the_same_as_limb_by_limb(fmt: Format) -> None:
    mode = list(Rounding)[fmt.width % 6]
    for kernel in kernels(fmt, mode):
        same_as_numpy(kernel, columns(kernel.operands, directed_rows(fmt, 700, len(kernel.operands))[:1500]))


@pytest.mark.parametrize("fmt", LONG, ids=str)
def test_arithmetic_of_long_formats(fmt: Format) -> None:
    for k, (name, count) in enumerate(OPERANDS.items()):
        mode = list(Rounding)[(fmt.width + k) % 6]
        rows = directed_rows(fmt, 60, count)
        rows = [*rows[:60], *rows[60:360:7], *hard_rows(fmt, name)]
        kernel = catalog.arithmetic(name, fmt, mode, True)
        words, flags = llvm.run(kernel, columns(kernel.operands, rows))
        want = [getattr(arithmetic, name)(fmt, *row, mode) for row in rows]
        assert list(to_ints(fmt, words)) == [word for word, _ in want], name
        assert flags.tolist() == [int(raised) for _, raised in want], name


def hard_rows(fmt: Format, name: str) -> list[tuple[int, ...]]:
    """Numbers around 1 and 2 whose significands are all ones, a single bit, or squares, or near those; numerators that
    are products, so that quotients and roots are exact or next to it."""
    rng, p, one = random.Random(str(fmt)), fmt.fraction_bits, fmt.bias << fmt.fraction_bits
    ends = [0, 1, (1 << p) - 1, (1 << p) - 2, 1 << (p - 1), (1 << (p - 1)) - 1, rng.getrandbits(p)]
    ends += [(1 << p) - 1 >> k << k for k in (45, 48, 63, 64, p // 2)]
    numbers = [one + (exponent << p) + fraction for fraction in ends for exponent in (0, 1)]
    if name == "sqrt":
        roots = [(1 << (p // 2)) + rng.getrandbits(p // 2 - 1) for _ in range(8)]
        squares = [(root * root << (p - 2 * (p // 2))) for root in roots]
        found = [
            (one + (e << p) + (s - (1 << p)) + d) for s in squares if s < 2 << p for d in (-1, 0, 1) for e in (0, 1)
        ]
        return [(number,) for number in [*numbers, *found]]
    if name == "divide":
        products = [
            (arithmetic.multiply(fmt, x, y)[0] + d, y) for x in numbers[::3] for y in numbers for d in (-1, 0, 1)
        ]
        return [*product(numbers[::2], numbers), *products]
    return list(product(*[numbers[::2]] * OPERANDS[name]))[:400]


@pytest.mark.parametrize("fmt", SMALL, ids=str)
def test_every_remainder_of_small_formats(fmt: Format) -> None:
    remainders(fmt, all_rows(fmt, 2))


@pytest.mark.parametrize("fmt", [*MIDDLE, LONG[0], LONG[-3], FORMATS["float32"], FORMATS["float256"]], ids=str)
def test_remainders_of_near_and_far_exponents(fmt: Format) -> None:
    rows = directed_rows(fmt, 300, 2)[:500]
    one, p = fmt.bias << fmt.fraction_bits, fmt.fraction_bits
    if p > 8:
        for distance in (0, 1, 47, 48, 49, 95, 96, 97, p, min(300, fmt.bias - 1)):
            ends = [0, 1, (1 << p) - 1, 1 << (p - 1), 3]
            rows += [(one + (min(distance, fmt.bias - 1) << p) + x, one + y) for x in ends for y in ends]
    remainders(fmt, rows)


def remainders(fmt: Format, rows: list[tuple[int, ...]]) -> None:
    kernel = catalog.remainder_truncated(fmt, True)
    words, flags = llvm.run(kernel, columns(kernel.operands, rows))
    want = [arithmetic.remainder_truncated(fmt, *row) for row in rows]
    different = [k for k, word in enumerate(to_ints(fmt, words)) if int(word) != want[k][0]]
    assert not different, [hex(word) for word in rows[different[0]]]
    assert flags.tolist() == [int(raised) for _, raised in want]


@pytest.mark.parametrize("fmt", [Format(15, 300), Format(20, 2000)], ids=str)
def test_what_does_not_round(fmt: Format) -> None:
    rows = directed_rows(fmt, 150, 2)[:400]
    operands = columns((fmt.width,) * 2, rows)
    for name in EXTREMA:
        words, flags = llvm.run(catalog.extremum(name, fmt, True), operands)
        want = [getattr(ordering, name)(fmt, *row) for row in rows]
        assert [(w, f) for w, f in zip(to_ints(fmt, words), flags.tolist(), strict=True)] == [
            (word, int(raised)) for word, raised in want
        ]
    for direction, holds in RELATIONS.items():
        words, _ = llvm.run(catalog.compare(fmt, direction), operands)
        assert [bool(word) for word in words] == [ordering.compare(fmt, *row)[0] in holds for row in rows], direction
    words, _ = llvm.run(catalog.next_after(fmt), operands)
    assert list(to_ints(fmt, words)) == [ordering.next_after(fmt, *row)[0] for row in rows]


@pytest.mark.parametrize("source", [FORMATS["float16"], FORMATS["float64"], Format(15, 300), Format(20, 2000)], ids=str)
@pytest.mark.parametrize("target", [FORMATS["float32"], Format(15, 270), Format(20, 1500)], ids=str)
def test_conversions(source: Format, target: Format) -> None:
    rows = directed_rows(source, 150, 1)[:400]
    kernel = catalog.convert(source, target, flags=True)
    if not big.is_big(kernel):
        pytest.skip("no wide format")
    words, flags = llvm.run(kernel, columns(kernel.operands, rows))
    want = [convert.convert(source, target, *row) for row in rows]
    assert list(to_ints(target, words)) == [word for word, _ in want]
    assert flags.tolist() == [int(raised) for _, raised in want]


def test_code_grows_with_the_limbs_not_with_their_square() -> None:
    """What LLVM takes minutes for is code; the text stands for it."""
    for name in ("multiply", "divide", "sqrt", "fma"):
        lines = [len(big.emit(catalog.arithmetic(name, Format(20, bits))).splitlines()) for bits in (300, 4000)]
        assert lines[1] <= lines[0] + 10, name


@pytest.mark.parametrize("width", [1, 3, 63, 64, 65, 127, 128, 300, 320, 511])
def test_shifts_and_leading_zeros_are_those_of_integers(width: int) -> None:
    rng = random.Random(width)
    counts = [0, 1, 31, 63, 64, 65, 127, 128, 129, width - 1, width, width + 1, 640, 1 << 40]
    numbers = [0, 1, (1 << width) - 1, 1 << (width - 1), *(rng.getrandbits(rng.randint(1, width)) for _ in range(12))]
    rows = [(x, count) for x in numbers for count in counts]

    def results(x: int, count: int) -> tuple[int, ...]:
        kept = min(count, 2 * width)
        lost = x & ((1 << kept) - 1) != 0
        return (x << kept) % (1 << width), x >> kept, (x >> kept) | lost, width - x.bit_length()

    operations = ("left_by", "right_by", "right_by_sticky", "leading_zeros")
    for k, name in enumerate(operations):

        def build(m: Any, x: Any, count: Any, name: str = name) -> Result:
            if name == "leading_zeros":
                found = m.integers.of_word(m, x.leading_zeros(), 64)
            else:
                found = getattr(x, name)(count.limbs[0], 1 << 41)
            return Result(found.resized(640), None)

        kernel = Kernel(f"{name} {width}", (width, 64), 640, 64, False, build, long=True)
        memory = max(1, -(-width // 64))
        first = np.array([[(x >> (64 * limb)) % (1 << 64) for limb in range(memory)] for x, _ in rows], np.uint64)
        if memory == 1:
            first = first[:, 0].astype(integer_dtype(width))
        words, _ = llvm.run(kernel, (first, np.array([count for _, count in rows], np.uint64)))
        got = [sum(int(limb) << (64 * j) for j, limb in enumerate(row)) for row in words]
        assert got == [results(x, count)[k] for x, count in rows], name


def test_nothing_shifts_a_long_number_by_what_is_not_known() -> None:
    """LLVM takes seconds for it, and more than twice as long for twice the bits."""
    for name in OPERANDS:
        text = big.emit(catalog.arithmetic(name, Format(20, 1000), flags=True))
        shifts = re.findall(r"(?:shl|lshr|ashr) i(\d{3,}) [^,]+, (\S+)", text)
        assert shifts, name
        assert all(count.isdigit() for bits, count in shifts if int(bits) > 128), name
        assert not re.search(r"llvm\.ctlz\.i\d{3,}", text), name
