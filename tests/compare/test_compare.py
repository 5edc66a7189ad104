"""Whole comparisons: every sample, planted differences, options, reports."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tlir.compare import compare
from tlir.compare.rule import decimal_text, make_rule
from tlir.errors import ArtifactError, Source, TlirError, UsageError
from tlir.ir.graph import Body, Graph, Node, Ref, Sample
from tlir.ir.tensor import Tensor
from tlir.ir.types import TensorType


def identity_graph(*samples: tuple[np.ndarray, np.ndarray]) -> Graph:
    """A graph that returns its input; each sample is an input and what the frontend is said to have returned."""
    tensors = [Sample((Tensor.from_numpy(a),), (Tensor.from_numpy(b),)) for a, b in samples]
    type = tensors[0].inputs[0].type if tensors else TensorType((), Tensor.from_numpy(np.float32(0)).dtype)
    node = Node(0, "input", (), {}, (type,), "x", Source("model.py", 7, "f"))
    return Graph(Body((node,), (0,), (Ref(0),)), samples=tuple(tensors))


def given_back(graph: Graph, inputs: list[Tensor]) -> list[Tensor]:
    return list(inputs)


DTYPES = st.sampled_from(["float16", "float32", "float64", "int8", "uint64", "complex64", "bool"])


@settings(max_examples=60, deadline=None)
@given(DTYPES, st.lists(st.integers(1, 4), max_size=3), st.data())
def test_one_planted_difference_fails_at_its_index(dtype: str, shape: list[int], data: st.DataObject) -> None:
    expected = np.ones(shape, dtype)
    planted = expected.copy()
    flat = data.draw(st.integers(0, planted.size - 1))
    planted.reshape(-1)[flat] = 0 if dtype == "bool" else 2
    index = tuple(int(i) for i in np.unravel_index(flat, shape)) if shape else ()
    for options in ({}, {"tolerance": 0.5}, {"ulps": 0}, {"words": True}, {"rtol": "0.999"}):
        report = compare(identity_graph((planted, expected)), evaluate=given_back, **options)
        (output,) = report.outputs
        assert not report.ok
        assert (output.failing, output.equal_words, output.count) == (1, expected.size - 1, expected.size)
        assert output.worst[0].index == index
        assert output.max_absolute is not None
        assert output.max_absolute.index == index
        assert float(output.max_absolute.absolute) == 1.0
    assert compare(identity_graph((expected, expected)), evaluate=given_back, words=True).ok


def test_every_sample_is_compared() -> None:
    good, bad = np.float32([1, 2]), np.float32([1, 3])
    report = compare(identity_graph((good, good), (good, good), (bad, good)), evaluate=given_back)
    assert [output.ok for output in report.outputs] == [True, True, False]
    assert [output.sample for output in report.outputs] == [0, 1, 2]
    assert report.samples == 3
    assert not report.ok


def test_nothing_passes_because_nothing_was_compared() -> None:
    with pytest.raises(ArtifactError) as no_sample:
        compare(identity_graph(), evaluate=given_back)
    assert no_sample.value.code == "TL0701"
    graph = identity_graph((np.float32(1), np.float32(1)))
    silent = replace(graph, body=replace(graph.body, outputs=()), samples=(Sample(graph.samples[0].inputs, ()),))
    with pytest.raises(ArtifactError) as no_output:
        compare(silent, evaluate=lambda graph, inputs: [])
    assert no_output.value.code == "TL0701"


def test_an_empty_output_passes_and_says_so() -> None:
    empty = np.zeros((0, 3), np.float32)
    report = compare(identity_graph((empty, empty)), evaluate=given_back)
    assert report.ok
    assert report.count == 0
    assert report.outputs[0].max_ulps is None


def test_the_artifacts_own_tolerance_is_the_default() -> None:
    graph = identity_graph((np.float32([1.5]), np.float32([1.0])))
    assert not compare(graph, evaluate=given_back).ok
    assert compare(replace(graph, tolerance="0.5"), evaluate=given_back).ok
    assert not compare(replace(graph, tolerance="0.5"), tolerance=0.25, evaluate=given_back).ok
    with pytest.raises(ArtifactError, match="TL0204"):
        compare(replace(graph, tolerance="a lot"), evaluate=given_back)


def test_the_report_names_place_values_and_words() -> None:
    report = compare(identity_graph((np.float32([[1, 3]]), np.float32([[1, 2]]))), evaluate=given_back)
    document = json.loads(json.dumps(report.to_json()))
    (output,) = document["outputs"]
    assert output["name"] == "output"
    assert output["source"] == {"file": "model.py", "line": 7, "function": "f"}
    assert output["worst"] == [
        {
            "index": [0, 1],
            "expected": "2.0",
            "got": "3.0",
            "expected_words": "40000000",
            "got_words": "40400000",
            "absolute": "1.0",
            "relative": "0.5",
            "ulps": 1 << 22,
        }
    ]
    assert document["rule"] == "|got - recorded| <= 2e-5"


def test_a_nan_that_does_not_match_is_counted_and_listed_first() -> None:
    got = np.float32([1, 5, np.nan])
    report = compare(identity_graph((got, np.float32([1, 2, 3]))), evaluate=given_back)
    (output,) = report.outputs
    assert (output.failing, output.mismatched) == (2, 1)
    assert [element.index for element in output.worst] == [(2,), (1,)]
    assert output.worst[0].absolute is None
    assert output.max_absolute is not None
    assert output.max_absolute.index == (1,)


@pytest.mark.parametrize(
    "options",
    [
        {"words": True, "tolerance": 1},
        {"words": True, "rtol": 1},
        {"words": True, "ulps": 1},
        {"nan_payload": True},
        {"tolerance": -1},
        {"tolerance": "nan"},
        {"tolerance": float("inf")},
        {"tolerance": "1e999999999"},
        {"tolerance": True},
        {"rtol": "1/0"},
        {"ulps": -1},
        {"ulps": 1.5},
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(UsageError) as refused:
        compare(identity_graph((np.float32(1), np.float32(1))), evaluate=given_back, **options)
    assert refused.value.code == "TL0901"
    assert isinstance(refused.value, TlirError)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2e-5", "2e-5"),
        ("0", "0"),
        ("1", "1"),
        ("1/3", "1/3"),
        ("0.125", "0.125"),
        ("1e-999", "1e-999"),
        ("1e400", "1e+400"),
        ("0.0001", "0.0001"),
        ("120000", "120000"),
    ],
)
def test_tolerances_are_shown_as_they_are(text: str, shown: str | None) -> None:
    fraction = make_rule(text, 0, None, False, False).tolerance
    assert fraction is not None
    assert Fraction(decimal_text(fraction)) == fraction
    assert shown is None or decimal_text(fraction) == shown
