"""Sorting in every convention of NaN and zero: numbers by their exact values, then every NaN."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tlir.backends.cpu.device import Executable
from tlir.backends.reference import evaluate
from tlir.floatlib.convert import to_fraction
from tlir.floatlib.format import FORMATS, Format
from tlir.floatlib.words import from_ints
from tlir.ir.graph import Body, Node, Ref
from tlir.ir.tensor import Tensor
from tlir.ir.types import NAMED, DType, TensorType

WIDE = {
    "nan in the place of -0": Format(6, 60, infinities=False, nans="negative_zero", signed_zero=False),
    "and infinities": Format(9, 300, nans="negative_zero", signed_zero=False),
    "nan of all ones": Format(5, 80, infinities=False, nans="all_ones"),
    "without a sign": Format(5, 70, signed=False, signed_zero=False, infinities=False, nans="all_ones"),
}
SMALL = [name for name in FORMATS if FORMATS[name].width <= 8]


def ordered(fmt: Format, words: list[int], descending: bool) -> list[int]:
    """The places of the words in their order, by exact values."""

    def key(place: int) -> tuple[int, object]:
        word = words[place]
        if fmt.is_nan(word):
            return (3, 0)
        if fmt.is_inf(word):
            return (0 if fmt.sign(word) else 2, 0)
        return (1, to_fraction(fmt, word))

    return sorted(range(len(words)), key=key, reverse=descending)


@pytest.mark.parametrize("kind", [*SMALL, *WIDE])
def test_nan_comes_after_the_greatest_number(kind: str) -> None:
    fmt = WIDE.get(kind) or FORMATS[kind]
    rng = random.Random(kind)
    edges = [fmt.max_finite_magnitude, fmt.magnitude_mask, fmt.sign_mask, 0, 1, fmt.invalid_word]
    words = list(range(1 << fmt.width)) if fmt.width <= 8 else edges * 9 + [rng.getrandbits(fmt.width) for _ in edges]
    rng.shuffle(words)
    words = [word for word in words if not (fmt.is_nan(word) and not fmt.has_nan)]
    dtype = NAMED.get(kind) or DType("custom", "float", fmt.width, fmt)
    given, places = TensorType((len(words),), dtype), TensorType((len(words),), NAMED["int32"])
    few = TensorType((3,), dtype), TensorType((3,), NAMED["int32"])
    body = Body(
        (
            Node(0, "input", (), {}, (given,)),
            Node(1, "iota", (), {"iota_dimension": 0}, (places,)),
            Node(2, "sort", (Ref(0), Ref(1)), {"dimension": 0, "num_keys": 1, "descending": False}, (given, places)),
            Node(3, "top_k", (Ref(0),), {"dimension": 0, "k": 3}, few),
        ),
        (0,),
        (Ref(2, 1), Ref(3, 1)),
    )
    inputs = [Tensor(given, from_ints(fmt, words))]
    # Python's sort is stable in both directions, as the operations are
    expected = ordered(fmt, words, False), ordered(fmt, words, True)[:3]
    everywhere = [evaluate(body, inputs)]
    if kind in WIDE or kind.endswith("fnuz"):
        pytest.importorskip("llvmlite")
        everywhere.append(Executable(body).run(inputs))
    for upward, greatest in everywhere:
        assert upward.words.view(np.int32).tolist() == expected[0]
        assert greatest.words.view(np.int32).tolist() == expected[1]
