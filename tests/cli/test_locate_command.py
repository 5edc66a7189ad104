"""``tlir locate``: the suspect, the table, two artifacts of one graph, and what cannot be located."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tlir.backends.reference import evaluate
from tlir.errors import Source
from tlir.ir.graph import Body, Graph, Node, Producer, Ref, Sample
from tlir.ir.tensor import Tensor
from tlir.ir.types import NAMED, TensorType
from tlir.schema import write

ROOT = Path(__file__).resolve().parents[2]
TYPE = TensorType((4,), NAMED["float32"])


def graph(middle: str = "multiply", recorded: str = "multiply", outputs: str = "op-by-op") -> Graph:
    """(x middle x) + x, with the values of (x recorded x) + x."""

    def body(op: str) -> Body:
        nodes = (
            Node(0, "input", (), {}, (TYPE,), name="x"),
            Node(1, op, (Ref(0), Ref(0)), {}, (TYPE,), source=Source("model.py", 7, "f")),
            Node(2, "add", (Ref(1), Ref(0)), {}, (TYPE,)),
        )
        return Body(nodes, (0,), (Ref(2),))

    inputs = (Tensor.from_numpy(np.array([1, 2, 3, 0.1], np.float32)),)
    trace: dict[Ref, Tensor] = {}
    evaluate(body(recorded), inputs, observe=lambda node, results: trace.update({Ref(node.id): results[0]}))
    sample = Sample(inputs, (trace[Ref(2)],), trace)
    return Graph(body(middle), samples=(sample,), producer=Producer("jax", "0.10.2", outputs=outputs))


@pytest.fixture
def save(tmp_path: Any) -> Any:
    def save(name: str, made: Graph) -> str:
        write(made, tmp_path / name)
        return str(tmp_path / name)

    return save


def test_no_suspect(tlir: Any, save: Any) -> None:
    result = tlir("locate", save("good.json", graph()))
    assert result.exit_code == 0
    assert "no suspect among 2 recorded values" in result.stdout
    assert "every recorded value is the reference's" in result.stdout


def test_a_suspect_with_its_line_its_operands_and_what_is_permitted(tlir: Any, save: Any) -> None:
    result = tlir("locate", save("bad.json", graph(recorded="add")))
    assert result.exit_code == 1
    assert "suspect: node 1 multiply" in result.stdout
    assert "model.py:7" in result.stdout
    assert "x at [2]: 3.0" in result.stdout
    assert "[2]" in result.stdout


def test_json(tlir: Any, save: Any) -> None:
    found = json.loads(tlir("locate", save("bad.json", graph(recorded="add")), "--json").stdout)
    assert found["suspect"] == 1
    assert [node["local"]["verdict"] for node in found["nodes"]] == ["bug", "identical"]


def test_against_another_artifact_of_the_graph(tlir: Any, save: Any) -> None:
    mine, theirs = save("mine.json", graph()), save("theirs.json", graph(recorded="subtract"))
    assert tlir("locate", mine, "--against", mine).exit_code == 0
    assert "suspect: node 1 multiply" in tlir("locate", mine, "--against", theirs).stdout
    other = tlir("locate", mine, "--against", save("other.json", graph("add")))
    assert other.exit_code == 2
    assert "node 1 multiply is 1 add there" in other.stderr


def test_outputs_of_compiled_code_are_no_trace(tlir: Any, save: Any) -> None:
    compiled = graph(outputs="compiled")
    sample = replace(compiled.samples[0], outputs=(Tensor.from_numpy(np.zeros(4, np.float32)),))
    whole = save("compiled.json", replace(compiled, samples=(sample,)))
    assert tlir("locate", save("mine.json", graph()), "--against", whole).exit_code == 0
    bare = save("bare.json", replace(compiled, samples=(replace(sample, trace=None),)))
    refused = tlir("locate", save("mine.json", graph()), "--against", bare)
    assert refused.exit_code == 2
    assert "no trace" in refused.stderr


def test_without_a_trace(tlir: Any, save: Any) -> None:
    made = graph()
    bare = replace(made, samples=(replace(made.samples[0], trace=None),))
    refused = tlir("locate", save("bare.json", bare))
    assert refused.exit_code == 2
    assert "trace=True" in refused.stderr


def test_reports_of_a_comparison_hold_the_suspect(tlir: Any) -> None:
    """As JSON and as JUnit: where the difference starts, with its element, operands and both differences."""
    path = str(ROOT / "examples" / "artifacts" / "low_precision_sum.json")
    (file,) = json.loads(tlir("compare", "--tolerance", "auto", "--json", path).stdout)["files"]
    (located,) = file["located"]
    suspect = located["suspect"]
    assert suspect["label"] == "9 reduce"
    assert suspect["local"]["source"]["line"] == 252
    assert suspect["local"]["worst"][0]["index"] == [0]
    assert suspect["local"]["verdict"] == "bug"
    assert suspect["propagated"]["max_ulps"]["ulps"] > 1000
    assert located["operands"][0]["name"] == "%8 exponential"
    assert located["ledger"] == []
    shown = tlir("compare", "--tolerance", "auto", "--format", "junit", path).stdout
    assert 'name="node 9 reduce"' in shown
    assert "its recorded operands give 1.36819" in shown
    # nothing is looked into where everything passes by another rule
    (passed,) = json.loads(tlir("compare", "--tolerance", "1", "--json", path).stdout)["files"]
    assert "located" not in passed


def test_a_suspect_fails_though_the_outputs_pass(tlir: Any, save: Any) -> None:
    """A wrong number whose sign is right: only the trace shows it."""
    nodes = (
        Node(0, "input", (), {}, (TensorType((), NAMED["float32"]),)),
        Node(1, "negate", (Ref(0),), {}, (TensorType((), NAMED["float32"]),)),
        Node(2, "sign", (Ref(1),), {}, (TensorType((), NAMED["float32"]),)),
    )
    given, wrong, output = (Tensor.from_numpy(np.array(x, np.float32)) for x in (1.5, -1.25, -1.0))
    sample = Sample((given,), (output,), {Ref(1): wrong, Ref(2): output})
    body = Body(nodes, (0,), (Ref(2),))
    path = save("hidden.json", Graph(body, samples=(sample,), producer=Producer("torch", "2.13.0")))
    assert tlir("compare", path).exit_code == 0
    done = tlir("compare", "--tolerance", "auto", path)
    assert done.exit_code == 1
    assert "suspect: node 1 negate" in done.stdout
    assert "the outputs are permitted, but a recorded value on the way to them is not" in done.stdout


def test_another_artifact_with_other_attributes_is_another_graph(tlir: Any, save: Any) -> None:
    def clamped(top: float) -> Graph:
        nodes = (
            Node(0, "input", (), {}, (TYPE,), name="x"),
            Node(1, "constant", (), {"value": Tensor.from_numpy(np.full(4, top, np.float32))}, (TYPE,)),
            Node(2, "minimum", (Ref(0), Ref(1)), {}, (TYPE,)),
        )
        x = Tensor.from_numpy(np.array([1, 2, 3, 0.1], np.float32))
        (out,) = evaluate(Body(nodes, (0,), (Ref(2),)), (x,))
        sample = Sample((x,), (out,), {Ref(2): out})
        return Graph(Body(nodes, (0,), (Ref(2),)), samples=(sample,), producer=Producer("jax", "0.10.2"))

    refused = tlir("locate", save("a.json", clamped(2.0)), "--against", save("b.json", clamped(2.5)))
    assert refused.exit_code == 2
    assert "other attributes or values" in refused.stderr
