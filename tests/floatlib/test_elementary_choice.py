"""Which way small and large arrays of elementary functions take; the words are the same."""

from __future__ import annotations

import numpy as np
import pytest

from tlir.floatlib.elementary import elementary, evaluate
from tlir.floatlib.elementary.narrow.arrays import evaluate_fast
from tlir.floatlib.elementary.narrow.loop import loop
from tlir.floatlib.format import FORMATS
from tlir.floatlib.soft import choice

FLOAT32 = FORMATS["float32"]


def test_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "_elements", {})
    monkeypatch.setattr(choice, "_compiled", set())
    kernel = loop("tanh", FLOAT32)
    few, from_elementary = 10, choice.ELEMENTARY_FROM
    assert choice.choose(kernel, few, from_elementary) == "specification"
    words = np.full(few, 0x3F000000, np.uint32)
    assert evaluate_fast("tanh", FLOAT32, words)[2].size == few
    assert choice.choose(kernel, choice.NUMPY_AFTER, from_elementary) == "numpy"
    for _ in range(choice.NUMPY_AFTER // few):
        evaluate_fast("tanh", FLOAT32, words)
    assert choice.choose(kernel, few, from_elementary) == "numpy"
    assert choice.choose(kernel, from_elementary - 1, from_elementary) == "specification"
    assert evaluate_fast("tanh", FLOAT32, words)[2].size == 0
    monkeypatch.setattr(choice, "can_compile", lambda: False)
    assert choice.choose(kernel, 1 << 22, from_elementary) == "numpy"


def test_large_arrays_are_compiled() -> None:
    pytest.importorskip("tlir.floatlib.soft.llvm", reason="llvmlite is not installed")
    words = np.random.default_rng(1).integers(0, 1 << 32, choice.COMPILE_AFTER["numpy"], dtype=np.uint32)
    results, flags = evaluate("tanh", FLOAT32, words, flags=True)
    assert choice.is_compiled(loop("tanh", FLOAT32, True))
    for index in range(0, words.size, 9973):
        assert (results[index], flags[index]) == elementary("tanh", FLOAT32, int(words[index]))
