"""Whichever way computes an operation on arrays, the words and flags are the same, and the choice can be asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from floatlib_soft import columns, directed_rows

from tlir.floatlib import arrays, dispatch, elementwise
from tlir.floatlib.format import FORMATS, Format
from tlir.floatlib.rounding import Rounding
from tlir.floatlib.soft import catalog, choice

TRIED = [FORMATS[name] for name in ("float8_e4m3fn", "float8_e8m0fnu", "float16", "bfloat16", "tfloat32", "float32",
                                    "float64", "float128")] + [Format(7, 40, bias=300), Format(11, 80)]  # fmt: skip


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """No kernel has computed anything yet."""
    monkeypatch.setattr(choice, "_elements", {})
    monkeypatch.setattr(choice, "_compiled", set())
    monkeypatch.setattr(elementwise, "_tables", {})


def only(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """Every kernel runs this way, whatever the size."""
    if way == "compiled":
        pytest.importorskip("llvmlite")
    never = 1 << 62
    monkeypatch.setattr(elementwise, "MIN_ELEMENTS", never)
    monkeypatch.setattr(elementwise, "TABLE_BITS", 0)
    monkeypatch.setattr(choice, "COMPILE_AFTER", dict.fromkeys(choice.COMPILE_AFTER, 0 if way == "compiled" else never))
    monkeypatch.setattr(choice, "NUMPY_FROM", never if way == "specification" else 0)
    monkeypatch.setattr(choice, "NUMPY_AFTER", 0)


def everything(fmt: Format) -> list[tuple[str, Any]]:
    """Every operation that has a kernel, with and without flags, on the same operands."""
    a, b, c = columns((fmt.width,) * 3, directed_rows(fmt, 60, 3)[:150])
    integers = np.arange(-75, 75, dtype=np.int64).view(np.uint64) * np.uint64(0x0123456789ABCDEF)
    results: list[tuple[str, Any]] = []
    for flags in (False, True):
        for mode in (Rounding.NEAREST_EVEN, Rounding.DOWN):
            for name, count in catalog.OPERANDS.items():
                results.append((name, getattr(arrays, name)(fmt, *(a, b, c)[:count], flags=flags, rounding=mode)))
            results.append(("round_to_integral", arrays.round_to_integral(fmt, a, mode, flags=flags)))
            results.append(("from_integer", arrays.from_integer(fmt, integers, 64, True, flags=flags, rounding=mode)))
            for saturating in (True, False):
                converted = arrays.to_integer(fmt, a, 16, True, flags=flags, rounding=mode, saturating=saturating)
                results.append(("to_integer", converted))
            for target in ("float8_e5m2", "bfloat16", "float32", "float64", "float128"):
                for saturate in (False, True):
                    converted = arrays.convert(fmt, FORMATS[target], a, flags=flags, saturate=saturate, rounding=mode)
                    results.append((f"convert to {target}", converted))
        for name in catalog.EXTREMA:
            results.append((name, getattr(arrays, name)(fmt, a, b, flags=flags)))
        for direction in ("EQ", "NE", "LT", "LE", "GT", "GE"):
            results.append((f"compare {direction}", arrays.compare(fmt, a, b, direction, flags=flags)))
        results.append(("next_after", arrays.next_after(fmt, a, b, flags=flags)))
        results.append(("scale_b", arrays.scale_b(fmt, a, -3, flags=flags)))
    return results


# compiling takes time, and these three have one byte, several bytes and several limbs
COMPILED = [FORMATS[name] for name in ("float8_e4m3fn", "float32", "float128")]


@pytest.mark.parametrize(
    ("fmt", "way"),
    [(fmt, "numpy") for fmt in TRIED] + [(fmt, "compiled") for fmt in COMPILED],
    ids=lambda value: str(value),
)
def test_every_way_returns_the_words_of_the_specification(
    fmt: Format, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    only(monkeypatch, "specification")
    want = everything(fmt)
    only(monkeypatch, way)
    got = everything(fmt)
    if way == "compiled":
        assert len(choice._compiled) > 50
    for (name, expected), (_, result) in zip(want, got, strict=True):
        pairs = zip(expected, result, strict=True) if isinstance(expected, tuple) else [(expected, result)]
        for x, y in pairs:
            assert x.dtype == y.dtype, name
            assert x.shape == y.shape, name
            assert np.array_equal(x, y), name


def test_tables_return_what_they_were_made_of(monkeypatch: pytest.MonkeyPatch) -> None:
    fmt = FORMATS["float6_e2m3fn"]
    monkeypatch.setattr(elementwise, "MIN_ELEMENTS", 1)
    tabulated = everything(fmt)
    assert len(elementwise._tables) > 20
    only(monkeypatch, "specification")
    for (name, x), (_, y) in zip(everything(fmt), tabulated, strict=True):
        pairs = zip(x, y, strict=True) if isinstance(x, tuple) else [(x, y)]
        assert all(np.array_equal(left, right) for left, right in pairs), name


def test_the_choice_goes_by_what_was_computed_before() -> None:
    quad = FORMATS["float128"]
    assert arrays.implementation(quad, "add", 10) == "specification"
    assert arrays.implementation(quad, "add", 5000) == "numpy"
    compiled = "compiled" if choice.can_compile() else "numpy"
    assert arrays.implementation(quad, "add", 1 << 20) == compiled
    zeros = np.zeros((choice.COMPILE_AFTER["numpy"] // 4, 2), dtype=np.uint64)
    arrays.add(quad, zeros, zeros)
    assert arrays.implementation(quad, "add", len(zeros)) == compiled
    assert arrays.implementation(quad, "add", 5000) == "numpy"
    arrays.add(quad, zeros, zeros)
    assert arrays.implementation(quad, "add", 1) == ("compiled" if choice.can_compile() else "specification")


def test_the_choice_for_other_formats_and_modes() -> None:
    assert arrays.implementation(FORMATS["float32"], "add", 1 << 30) == "processor"
    assert arrays.implementation(FORMATS["float64"], "sqrt", 1) == "processor"
    assert arrays.implementation(FORMATS["float64"], "sqrt", 1000, flags=True) == "numpy"
    assert arrays.implementation(FORMATS["float32"], "add", 1000, rounding=Rounding.UP) == "numpy"
    assert arrays.implementation(FORMATS["bfloat16"], "multiply", 1000) == "processor"
    assert arrays.implementation(FORMATS["float8_e4m3fn"], "add", 1 << 14) == "table"
    assert arrays.implementation(FORMATS["float8_e4m3fn"], "add", 1000) == "numpy"
    assert arrays.implementation(Format(20, 4000), "multiply", 1 << 12) == "specification"
    assert arrays.implementation(Format(20, 4000), "add", 1 << 12) == "numpy"
    assert arrays.implementation(Format(20, 4000), "multiply", 1 << 20) == "compiled"
    with pytest.raises(ValueError, match="the operation is one of add, subtract"):
        arrays.implementation(FORMATS["float32"], "plus", 1)


def test_without_llvmlite_numpy_computes_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "can_compile", lambda: False)
    assert arrays.implementation(FORMATS["float128"], "fma", 1 << 30) == "numpy"
    ones = np.full((1 << 18, 2), [0, 0x3FFF << 48], dtype=np.uint64)
    total = arrays.add(FORMATS["float128"], ones, ones)
    assert (total == np.array([0, 0x4000 << 48], dtype=np.uint64)).all()
    assert not choice._compiled


def test_very_wide_formats() -> None:
    fmt = Format(20, 1000)
    operands = columns((fmt.width,) * 2, directed_rows(fmt, 600, 2)[:600])
    total = arrays.add(fmt, *operands, flags=True)
    want = elementwise.by_elements(lambda x, y: dispatch.SPECIFICATIONS["add"](fmt, x, y), fmt,
                                   [(fmt, operand) for operand in operands])  # fmt: skip
    assert np.array_equal(total[0], want[0])
    assert np.array_equal(total[1], want[1])
    product = arrays.multiply(fmt, *(operand[:40] for operand in operands), flags=True)
    want = elementwise.by_elements(lambda x, y: dispatch.SPECIFICATIONS["multiply"](fmt, x, y), fmt,
                                   [(fmt, operand[:40]) for operand in operands])  # fmt: skip
    assert np.array_equal(product[0], want[0])


def test_operands_of_any_layout() -> None:
    quad = FORMATS["float128"]
    rows = columns((128,) * 2, directed_rows(quad, 600, 2)[:600])
    whole = arrays.multiply(quad, *rows)
    grid = [operand.reshape(20, 30, 2) for operand in rows]
    assert np.array_equal(arrays.multiply(quad, *(operand[::-1] for operand in grid)), whole.reshape(20, 30, 2)[::-1])
    transposed = arrays.multiply(quad, *(operand.transpose(1, 0, 2) for operand in grid))
    assert np.array_equal(transposed, whole.reshape(20, 30, 2).transpose(1, 0, 2))
    one = np.broadcast_to(rows[0][0], (600, 2))
    assert np.array_equal(arrays.add(quad, rows[0][:1], rows[1]), arrays.add(quad, np.array(one), rows[1]))
