"""Kernels compiled in blocks of eight elements: the words and flags of the loop on NumPy, for every size and layout;
recordings carried out by another machine; code that is kept on disk."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tlir.floatlib.format import FORMATS, Format
from tlir.floatlib.rounding import Rounding
from tlir.floatlib.soft import catalog, numpy_loop
from tlir.floatlib.soft.catalog import Kernel
from tlir.floatlib.words import integer_dtype

pytest.importorskip("llvmlite")

from tlir.floatlib.soft import blocks, llvm, objects

BINARY128, FLOAT33 = FORMATS["float128"], Format(8, 24)
KERNELS = {
    "multiply": catalog.arithmetic("multiply", BINARY128, flags=True),
    "divide": catalog.arithmetic("divide", BINARY128, Rounding.UP),
    "fma": catalog.arithmetic("fma", FORMATS["float64"], flags=True),
    "add": catalog.arithmetic("add", FLOAT33, flags=True),
    "convert": catalog.convert(FORMATS["float256"], FORMATS["float16"], flags=True),
    "compare": catalog.compare(BINARY128, "LT"),
}
"""Words of 16, 64 and several times 64 bits, one bit, and real numbers; with flags and without."""


def keyed(name: str) -> Kernel:
    return replace(KERNELS[name], key=f"test {name}", bits=64)


def operands(kernel: Kernel, size: int) -> tuple[np.ndarray, ...]:
    random = np.random.default_rng(size)
    columns = []
    for width in kernel.operands:
        limbs = numpy_loop.count_limbs(width)
        words = random.integers(0, 1 << 64, (size, limbs), np.uint64)
        words[:, -1] &= np.uint64((1 << (width - 64 * (limbs - 1))) - 1)
        columns.append(words if limbs > 1 else words[:, 0].astype(integer_dtype(width)))
    return tuple(columns)


@pytest.fixture(autouse=True)
def empty_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(blocks, "_known", {})


@pytest.mark.parametrize("name", KERNELS)
def test_words_and_flags(name: str) -> None:
    kernel = keyed(name)
    for size in (0, 1, 7, 8, 9, 100):
        given = operands(kernel, size)
        words, flags = llvm.run(kernel, given)
        expected, raised = numpy_loop.run(replace(KERNELS[name]), given)
        assert words.dtype == expected.dtype
        assert np.array_equal(words, expected)
        assert (flags is None) == (raised is None)
        assert flags is None or np.array_equal(flags, np.asarray(raised))


def test_what_is_kept_is_not_made_again() -> None:
    kernel = keyed("multiply")
    assert not blocks.is_at_hand(kernel.key)
    first = blocks.functions(kernel.key, lambda: kernel)
    assert blocks.is_at_hand(kernel.key)

    def refused() -> Kernel:
        raise AssertionError("it is made again")

    assert blocks.functions(kernel.key, refused) == first
    # as another process finds it
    blocks._known.clear()
    assert blocks.is_at_hand(kernel.key)
    assert blocks.functions(kernel.key, refused).keys() == first.keys()


def test_damaged_code_is_made_again() -> None:
    kernel = keyed("multiply")
    blocks.functions(kernel.key, lambda: kernel)
    folder = objects.folder()
    assert folder is not None
    for file in folder.iterdir():
        file.write_bytes(file.read_bytes()[:-9])
    blocks._known.clear()
    made = 0

    def again() -> Kernel:
        nonlocal made
        made += 1
        return kernel

    assert blocks.functions(kernel.key, again).keys() == {"block", "loop"}
    assert made == 1
