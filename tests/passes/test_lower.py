"""Programs of kernels compute the reference's words: random graphs of all dtypes, ranks and sizes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from lower_graphs import random_graph

from tlir.backends import run
from tlir.backends.interpreter import run_program
from tlir.ir.graph import Graph
from tlir.passes.lower import lower


@settings(max_examples=250, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 14))
def test_random_graphs_give_the_words_of_the_reference(seed: int, steps: int) -> None:
    body, inputs = random_graph(seed, steps)
    expected = run(Graph(body), inputs)
    results = run_program(lower(body), body, inputs)
    assert [a.same_words(b) for a, b in zip(expected, results, strict=True)] == [True] * len(expected)
