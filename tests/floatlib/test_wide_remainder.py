"""Remainders by squaring: words and flags of the integer specification, by the NumPy loop and by the compiled one."""

from __future__ import annotations

import numpy as np
import pytest

from tlir.floatlib import arithmetic
from tlir.floatlib.elementary.wide.remainder import applies, loop
from tlir.floatlib.format import FORMATS, Format
from tlir.floatlib.soft import numpy_loop
from tlir.floatlib.words import from_ints, to_ints

FMTS = [
    *(FORMATS[name] for name in ("float64", "float128", "float256")),
    *(Format(8, 24), Format(4, 29), Format(20, 30), Format(15, 64), Format(9, 89), Format(15, 118), Format(12, 150)),
]
COUNT = 400


def operands(fmt: Format) -> list[list[int]]:
    """Words of every kind: any exponents, exponents that are near each other, equal words, multiples, special words."""
    random = np.random.default_rng(fmt.width)
    low, high = fmt.fraction_mask, fmt.word_mask

    def words() -> list[int]:
        return [int.from_bytes(random.bytes(40), "little") & high for _ in range(COUNT)]

    inf, one = fmt.inf, fmt.encode(0, 1, 0)
    assert inf is not None
    assert fmt.nan is not None
    special = [0, 1, 2, 3, inf, fmt.nan, inf + 1, fmt.max_finite, fmt.min_normal, fmt.min_normal - 1, one, one | 1]
    a, b = words(), words()
    for i in range(0, COUNT, 3):
        field = max((a[i] & fmt.magnitude_mask) - (int(random.integers(5)) << fmt.fraction_bits), 0) & ~low
        b[i] = (b[i] & (low | fmt.sign_mask)) | field
    for i in range(1, COUNT, 9):
        b[i] = a[i] ^ fmt.sign_mask if i % 2 else a[i] & ~0xFF
    for i in range(2, COUNT, 5):
        (a, b)[i % 2][i] = special[int(random.integers(len(special)))] | (fmt.sign_mask * int(random.integers(2)))
    return [a, b]


@pytest.mark.parametrize("fmt", FMTS, ids=str)
def test_words_and_flags(fmt: Format) -> None:
    a, b = operands(fmt)
    columns = tuple(np.asarray(from_ints(fmt, words)) for words in (a, b))
    expected = [arithmetic.remainder_truncated(fmt, *row) for row in zip(a, b, strict=True)]
    found = [numpy_loop.run(loop(fmt, flags=True), columns)]
    if fmt in (FORMATS["float64"], FORMATS["float128"]):
        llvm = pytest.importorskip("tlir.floatlib.soft.llvm")
        found.append(llvm.run(loop(fmt, flags=True), columns))
    for words, flags in found:
        assert flags is not None
        assert list(zip(to_ints(fmt, words).tolist(), flags.tolist(), strict=True)) == [
            (word, int(raised)) for word, raised in expected
        ]


def test_formats() -> None:
    assert not applies(FORMATS["float32"])
    assert not applies(Format(15, 300))
    assert not applies(Format(15, 112, nans="none", infinities=False))
