"""The compiled loops return what the same kernels return on NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from floatlib_soft import columns, directed_rows

from tlir.floatlib.format import FORMATS, Format
from tlir.floatlib.rounding import Rounding
from tlir.floatlib.soft import catalog, numpy_loop
from tlir.floatlib.soft.catalog import EXTREMA, OPERANDS, Kernel

llvm = pytest.importorskip("tlir.floatlib.soft.llvm", reason="llvmlite is not installed")

FLOAT16, FLOAT32, FLOAT64, FLOAT128 = (FORMATS[f"float{bits}"] for bits in (16, 32, 64, 128))
FORMATS_TRIED = [FORMATS["float8_e4m3fn"], FORMATS["float8_e5m2fnuz"], FORMATS["float8_e8m0fnu"], FLOAT16, FLOAT32,
                 FLOAT64, FLOAT128, Format(11, 80), Format(19, 236)]  # fmt: skip
MODES = list(Rounding)


def same(kernel: Kernel, fmt: Format, count: int = 1500) -> None:
    """Equal words and flags, for as many elements as leave a remainder in every vector width."""
    if kernel.operands[0] == fmt.width:
        rows = directed_rows(fmt, count, len(kernel.operands))[: count + 7]
    else:
        rng = np.random.default_rng(1)
        rows = [(int(n) >> (64 - kernel.operands[0]),) for n in rng.integers(0, 2**64, count, dtype=np.uint64)]
    operands = columns(kernel.operands, rows)
    words, flags = llvm.run(kernel, operands)
    expected, expected_flags = numpy_loop.run(kernel, operands)
    assert words.dtype == expected.dtype
    assert words.shape == expected.shape
    different = np.flatnonzero((words != expected).reshape(len(rows), -1).any(axis=1))
    assert not different.size, (kernel.name, [hex(word) for word in rows[different[0]]])
    assert (flags is None) == (expected_flags is None) == (not kernel.flags)
    if kernel.flags:
        assert np.array_equal(flags, expected_flags), kernel.name


@pytest.mark.parametrize("fmt", FORMATS_TRIED, ids=str)
def test_arithmetic(fmt: Format) -> None:
    for k, operation in enumerate(OPERANDS):
        same(catalog.arithmetic(operation, fmt), fmt)
        if fmt.width <= 128:
            same(catalog.arithmetic(operation, fmt, MODES[(k + fmt.width) % 6], True), fmt)


@pytest.mark.parametrize("fmt", FORMATS_TRIED, ids=str)
def test_selection(fmt: Format) -> None:
    same(catalog.compare(fmt, ("EQ", "LT", "GE")[fmt.width % 3], True), fmt)
    same(catalog.extremum(list(EXTREMA)[fmt.width % 4], fmt, True), fmt)
    same(catalog.next_after(fmt, True), fmt)


@pytest.mark.parametrize("fmt", FORMATS_TRIED, ids=str)
def test_conversion(fmt: Format) -> None:
    for target in (FORMATS["float8_e4m3fn"], FORMATS["bfloat16"], FLOAT32, FLOAT128):
        if target != fmt:
            same(catalog.convert(fmt, target), fmt)
            same(catalog.convert(fmt, target, MODES[fmt.width % 6], True, saturate=True), fmt)
    same(catalog.round_to_integral(fmt, MODES[fmt.width % 6], True), fmt)
    same(catalog.to_integer(fmt, 32, True, Rounding.TOWARD_ZERO, True), fmt)
    same(catalog.to_integer(fmt, 64, False, Rounding.NEAREST_EVEN, True, saturating=False), fmt)
    same(catalog.from_integer(fmt, 16, True, Rounding.NEAREST_EVEN, True), fmt)
    same(catalog.from_integer(fmt, 64, False, Rounding.UP, True), fmt)


def test_shapes_strides_and_no_elements() -> None:
    kernel = catalog.arithmetic("add", FLOAT128, flags=True)
    rows = directed_rows(FLOAT128, 24, 2)[:24]
    a, b = columns(kernel.operands, rows)
    words, flags = llvm.run(kernel, (a.reshape(4, 6, 2)[::2], b.reshape(4, 6, 2)[::2]))
    expected, _ = numpy_loop.run(kernel, (a, b))
    assert np.array_equal(words, expected.reshape(4, 6, 2)[::2])
    assert flags.shape == (2, 6)
    words, flags = llvm.run(kernel, (a[:0], b[:0]))
    assert words.shape == (0, 2)
    assert flags.shape == (0,)
    scalar, raised = llvm.run(kernel, (a[0], b[0]))
    assert scalar.shape == (2,)
    assert raised.shape == ()


def test_no_fast_math_and_no_calls_but_intrinsics() -> None:
    text = llvm.emit(catalog.arithmetic("sqrt", FLOAT64, flags=True))
    assert "fdiv double" in text
    assert not any(flag in text for flag in (" fast ", " reassoc ", " contract ", " arcp ", " nnan ", " nsz "))
    assert all("@llvm." in line or '@"llvm.' in line for line in text.splitlines() if " call " in line)
