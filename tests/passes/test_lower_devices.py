"""Random programs on the compiled device: the reference's words, whatever the kernels look like."""

from __future__ import annotations

import numpy as np
import pytest
from lower_graphs import random_graph

from tlir.backends import run
from tlir.ir.graph import Graph

pytest.importorskip("llvmlite")


@pytest.mark.parametrize("seed", range(2000, 2024))
def test_random_graphs_on_the_processor(seed: int) -> None:
    body, inputs = random_graph(seed, 14)
    with np.errstate(all="ignore"):
        expected, results = run(Graph(body), inputs), run(Graph(body), inputs, device="cpu")
    assert [a.same_words(b) for a, b in zip(expected, results, strict=True)] == [True] * len(expected)
