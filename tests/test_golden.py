"""The golden artifacts: recorded frontend outputs, compared by tolerance, and by words where the frontend is exact."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tlir
from tlir.compare import compare
from tlir.ir.graph import Graph
from tlir.schema import dumps, from_json, lowest_version, read, to_json

GOLDEN = Path(__file__).parent / "golden"
ARTIFACTS = sorted(GOLDEN.glob("*/*.json"))

EXACT = {
    "float64_through_float32",
    "signs_and_roots",
    "quotient",
    "constants",
    "small_formats",
    "subnormals",
    "square_sum",
    "perceptron_inputs",
    "float16_sum",
    "bfloat16_sum",
    "mixed_precision",
    "integer_program",
    "boolean_program",
    "permutation",
    "concatenation",
    "broadcast",
    "reshape",
}
"""Programs in which the frontend rounds every operation correctly, or rounds nothing."""


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def test_there_are_golden_artifacts_of_both_frontends() -> None:
    for frontend in ("jax", "torch"):
        assert len(list((GOLDEN / frontend).glob("*.json"))) >= 25
    assert {path.stem for path in ARTIFACTS} >= EXACT


@pytest.mark.parametrize("path", ARTIFACTS, ids=name_of)
def test_it_checks_and_compares(path: Path) -> None:
    graph = tlir.load(path)
    assert graph.check().ok
    assert graph.compare().ok


@pytest.mark.parametrize("path", [path for path in ARTIFACTS if path.stem in EXACT], ids=name_of)
def test_exact_programs_match_in_every_word(path: Path) -> None:
    assert tlir.compare(path, words=True).ok


@pytest.mark.parametrize("path", ARTIFACTS, ids=name_of)
def test_the_text_is_canonical_and_every_upgrade_gives_an_equal_graph(path: Path) -> None:
    graph = read(path)
    assert dumps(graph) == path.read_text(encoding="utf-8")
    for version in range(lowest_version(graph), 4):
        again = from_json(to_json(graph, version=version), folder=path.parent)
        assert dumps(again) == dumps(graph)


@pytest.mark.parametrize("frontend", ["jax", "torch"])
def test_the_sum_of_the_squares_of_one_to_four_is_thirty_from_three_nodes(frontend: str) -> None:
    graph = tlir.load(GOLDEN / frontend / "square_sum.json")
    assert [node.op for node in graph.ir.nodes] == ["input", "multiply", "reduce"]
    (total,) = graph.run([np.array([1, 2, 3, 4], np.float32)])
    assert total == np.float32(30)


def flipped(graph: Graph, output: int) -> Graph:
    """The graph with one high bit of the last word of one recorded output flipped."""
    sample = graph.samples[0]
    tensor = sample.outputs[output]
    words = tensor.words.copy()
    bit = tensor.dtype.bits - (2 if tensor.dtype.format else 1)  # the top exponent bit, or the top bit of an integer
    words.reshape(-1)[-1] ^= words.dtype.type(1 << bit)
    outputs = (*sample.outputs[:output], replace(tensor, words=words), *sample.outputs[output + 1 :])
    return replace(graph, samples=(replace(sample, outputs=outputs),))


@pytest.mark.parametrize("path", ARTIFACTS, ids=name_of)
def test_one_flipped_bit_in_any_output_fails(path: Path) -> None:
    """Nothing passes because nothing was compared: every output of every artifact counts."""
    graph = read(path)
    for k, tensor in enumerate(graph.samples[0].outputs):
        if tensor.type.size:
            assert not compare(flipped(graph, k)).ok
