"""Each kind of fault, planted in the captured examples wherever it applies, is a bug, found at the node that makes it.

The examples are captured with a trace, whose recorded values say what a trace holds of each program (of one operator of
PyTorch its result alone); their values are those of the faulty program. A fault that changes no recorded word is none.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from example_programs import exported, mode, names, program
from mutations import MUTATIONS, Fault, flipped_bit, frontend_values, weights

from tlir.compare import compare
from tlir.compare.auto import compare_auto
from tlir.compare.locate import located
from tlir.ir.graph import Graph, Ref, Sample
from tlir.ir.tensor import Tensor
from tlir.schema import from_json

WIDTH = BATCH = 4
"""Equal sizes, so that axes can be taken for each other."""

PLAIN = {"integer_program", "boolean_program", "complex_regression", "bfloat16_reduce"}
"""Examples without real arithmetic, or with a format that NumPy's arrays of the mutations do not have."""

NATIVE = {
    "perceptron_inputs": "float64",
    "mixed_precision": "float64",
    "several_outputs": "float64",
    "float16_sum": "float16",
    "bfloat16_sum": "bfloat16",
    "bfloat16_contraction": "bfloat16",
}
"""The formats that the examples are written in, float32 for all others. ``several_outputs`` converts to float16, which
double rounding shows in where it starts from float64."""


@cache
def captured(frontend: str, name: str) -> Graph:
    """An example with its trace, on inputs none of which is exact in a narrower format."""
    dtype = NATIVE.get(name, "float32")
    with mode(frontend, dtype):
        function, arguments = program(frontend, name, dtype, WIDTH, BATCH)
        graph = from_json(exported(frontend, function, arguments, trace=True))
    if name in ("mixed_precision", "perceptron_inputs", "reshape", "several_outputs"):
        sample = graph.samples[0]
        inputs = tuple(uneven(x, name, k) for k, x in enumerate(sample.inputs))
        graph = replace(graph, samples=(replace(sample, inputs=inputs),))
    return graph


def uneven(tensor: Tensor, name: str, position: int) -> Tensor:
    """Numbers of full precision; in ``several_outputs`` one that two roundings take elsewhere than one."""
    if not tensor.dtype.is_float:
        return tensor
    array = np.random.default_rng(position).normal(size=tensor.shape).astype(tensor.to_numpy().dtype)
    if name == "several_outputs":
        array.reshape(-1)[3] = 1 + 2.0**-11 + 2.0**-40
    return Tensor.from_numpy(array)


def planted(graph: Graph, fault: Fault) -> tuple[Graph, Ref] | None:
    """The graph as recorded by the faulty frontend, and the first recorded value that the fault makes; None where no
    recorded word is another."""
    sample = graph.samples[0]
    right, wrong = (frontend_values(graph, sample.inputs, each) for each in (Fault({}), fault))
    kept = [ref for ref in sample.trace or () if ref.node not in fault.hidden]
    differing = [ref for ref in kept if not right[ref].same_words(wrong[ref])]
    if not differing:
        return None
    outputs = tuple(wrong[ref] for ref in graph.body.outputs)
    recorded = Sample(sample.inputs, outputs, {ref: wrong[ref] for ref in kept})
    return replace(graph, samples=(recorded,)), min(differing)


def check(graph: Graph, fault: Fault) -> tuple[bool, bool]:
    """Whether the fault shows in a recorded word, and whether the outputs alone are a bug; asserts that with the trace
    it is one, at its node."""
    made = planted(graph, fault)
    if made is None:
        return False, False
    wrong, first = made
    report = compare_auto(wrong)
    (location,) = located(wrong)
    assert location.suspect is not None, f"nothing is found; the fault is at {graph.nodes[first.node]}"
    assert location.suspect.ref == first

    return True, report.verdict == "bug"


EXAMPLES = [(frontend, name) for frontend in ("jax", "torch") for name in names(frontend) if name not in PLAIN]

EVERYWHERE = "perceptron perceptron_gradient perceptron_inputs reshape batched_contraction several_outputs "
EVERYWHERE += "bfloat16_contraction layer_norm mean_and_division softmax attention transformer_block "
NORMED = "layer_norm mean_and_division softmax attention transformer_block "

SHOWN = {
    "dropped cast": {"jax": "mixed_precision", "torch": "mixed_precision several_outputs"},
    "added cast": dict.fromkeys(("jax", "torch"), EVERYWHERE + "broadcast permutation mixed_precision"),
    "double rounding": {"jax": "several_outputs", "torch": ""},
    "axis swapped": {
        "jax": "permutation attention transformer_block",
        "torch": "perceptron_gradient broadcast permutation batched_contraction layer_norm mean_and_division attention "
        "transformer_block",
    },
    "transposed weight": {"jax": "perceptron_gradient transformer_block", "torch": "transformer_block"},
    "missing term": {
        "jax": EVERYWHERE + "square_sum square_sum_gradient float16_sum bfloat16_sum",
        "torch": EVERYWHERE + "square_sum float16_sum bfloat16_sum",
    },
    "epsilon outside the root": dict.fromkeys(("jax", "torch"), "layer_norm transformer_block"),
    "n - 1 for n": {
        "jax": "perceptron_gradient layer_norm mean_and_division transformer_block",
        "torch": "layer_norm mean_and_division transformer_block",
    },
    "mean over the wrong axis": dict.fromkeys(("jax", "torch"), NORMED),
    "mask off by one": dict.fromkeys(("jax", "torch"), "attention transformer_block"),
    "the other gelu": dict.fromkeys(("jax", "torch"), "transformer_block"),
    "sum in float16": dict.fromkeys(("jax", "torch"), NORMED + "perceptron_gradient reshape"),
    "x * (1 / y) for x / y": {"jax": NORMED, "torch": "mean_and_division"},
    "stale constant": {
        "jax": "square_sum_gradient perceptron perceptron_gradient perceptron_inputs broadcast permutation "
        "concatenation batched_contraction mixed_precision bfloat16_contraction layer_norm mean_and_division attention "
        "transformer_block",
        "torch": "square_sum_gradient perceptron perceptron_gradient perceptron_inputs broadcast permutation "
        "concatenation batched_contraction mixed_precision bfloat16_contraction layer_norm mean_and_division softmax "
        "attention transformer_block",
    },
    "flipped bit": dict.fromkeys(("jax", "torch"), "perceptron perceptron_gradient transformer_block"),
}
"""The examples in which each kind of fault changes a recorded word. PyTorch itself converts float64 to float16 by way
of float32, which the capture says; its softmax and layer norm multiply by reciprocals."""


def shown_in(frontend: str, name: str) -> list[str]:
    return [kind for kind in SHOWN if name in SHOWN[kind][frontend].split()]


@pytest.mark.parametrize(
    ("frontend", "name", "kind"), [(*example, kind) for example in EXAMPLES for kind in shown_in(*example)]
)
def test_a_fault_is_a_bug_at_its_node(frontend: str, name: str, kind: str, exhaustive: bool) -> None:
    """At the first place where it shows; with --exhaustive at every place."""
    graph = captured(frontend, name)
    shown = 0
    for fault in MUTATIONS[kind](graph):
        shown += check(graph, fault)[0]
        if shown and not exhaustive:
            break
    assert shown


@pytest.mark.parametrize(("frontend", "name"), EXAMPLES)
def test_no_other_fault_changes_a_recorded_word(frontend: str, name: str) -> None:
    graph = captured(frontend, name)
    for kind in set(MUTATIONS) - set(shown_in(frontend, name)):
        assert [fault for fault in MUTATIONS[kind](graph) if planted(graph, fault) is not None] == []


def test_every_kind_of_fault_is_planted() -> None:
    assert set(SHOWN) == set(MUTATIONS)
    assert all(places["jax"] for places in SHOWN.values())


@pytest.mark.parametrize("frontend", ["jax", "torch"])
def test_a_product_by_a_reciprocal_differs_in_words(frontend: str) -> None:
    graph = captured(frontend, "mean_and_division")
    faults = [made for fault in MUTATIONS["x * (1 / y) for x / y"](graph) if (made := planted(graph, fault))]
    for wrong, _ in faults:
        assert not compare(wrong, words=True).ok
        report = compare(wrong, tolerance="auto")
        assert not report.ok
        assert [location.ok for location in report.locations] == [False]


@pytest.mark.parametrize("frontend", ["jax", "torch"])
@pytest.mark.parametrize("name", ["perceptron", "transformer_block"])
def test_a_flipped_bit_of_an_average_weight_shows_in_a_trace(frontend: str, name: str, exhaustive: bool) -> None:
    """Down to the 16th fraction bit, at the product that takes the weight."""
    graph = captured(frontend, name)
    count = len(list(weights(graph)))
    assert count >= 2
    for bit in range(1, 17) if exhaustive else (16,):
        for fault in flipped_bit(graph, bit):
            assert check(graph, fault)[0]
