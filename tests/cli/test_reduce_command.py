"""``tlir reduce``: exit codes, the folder, what is printed."""

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
from tlir.schema import read, write

TYPE = TensorType((4,), NAMED["float32"])


def graph(recorded: str = "subtract", trace: bool = True, frontend: str = "other") -> Graph:
    """tanh(x * x + x), with the values of tanh(x * x recorded x)."""

    def body(op: str) -> Body:
        nodes = (
            Node(0, "input", (), {}, (TYPE,), name="x"),
            Node(1, "multiply", (Ref(0), Ref(0)), {}, (TYPE,)),
            Node(2, op, (Ref(1), Ref(0)), {}, (TYPE,), source=Source("model.py", 7, "f")),
            Node(3, "tanh", (Ref(2),), {}, (TYPE,)),
        )
        return Body(nodes, (0,), (Ref(3),))

    inputs = (Tensor.from_numpy(np.array([0.5, 0.25, 0.75, 0.1], np.float32)),)
    values: dict[Ref, Tensor] = {}
    evaluate(body(recorded), inputs, observe=lambda node, made: values.update({Ref(node.id): made[0]}))
    sample = Sample(inputs, (values[Ref(3)],), {k: v for k, v in values.items() if k.node} if trace else None)
    return Graph(body("add"), samples=(sample,), producer=Producer(frontend, "1"))


@pytest.fixture
def save(tmp_path: Path) -> Any:
    def save(made: Graph, name: str = "model.json") -> str:
        write(made, tmp_path / name)
        return str(tmp_path / name)

    return save


def test_a_reduction_is_written_beside_the_artifact(tlir: Any, save: Any, tmp_path: Path) -> None:
    result = tlir("reduce", save(graph()))
    assert result.exit_code == 0
    assert "suspect node 2 add" in result.stdout
    assert "at model.py:7 in f" in result.stdout
    assert "4 nodes to 3, 4 elements to 2" in result.stdout
    assert "still fails" in result.stdout
    folder = tmp_path / "model-reduced"
    reduced = read(folder / "reduced.json")
    assert [node.op for node in reduced.nodes] == ["input", "input", "add"]
    assert tlir("compare", str(folder / "reduced.json"), "--tolerance", "auto").exit_code == 1
    # nothing is known of this frontend, so no program that would be wrong is written
    assert not (folder / "reproduce.py").exists()
    text = (folder / "README.md").read_text()
    assert "A program of the frontend alone was not written" in text
    assert "Verdict: **bug**" in text
    assert "%2: float32[1] = add(%0, %1)" in text


def test_without_a_trace(tlir: Any, save: Any, tmp_path: Path) -> None:
    result = tlir("reduce", save(graph(trace=False)), "-o", str(tmp_path / "out"))
    assert result.exit_code == 0
    assert "ends in node 3 tanh" in result.stdout
    assert "the difference may have begun anywhere before" in (tmp_path / "out" / "README.md").read_text()


def test_nothing_fails(tlir: Any, save: Any, tmp_path: Path) -> None:
    path = save(graph("add"))
    result = tlir("reduce", path)
    assert result.exit_code == 1
    assert "nothing fails" in result.stdout
    assert not (tmp_path / "model-reduced").exists()
    document = json.loads(tlir("reduce", path, "--json").stdout)
    assert (document["ok"], document["folder"]) == (True, None)


def test_a_folder_with_something_in_it_is_left_alone_unless_forced(tlir: Any, save: Any, tmp_path: Path) -> None:
    path = save(graph())
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    result = tlir("reduce", path, "-o", str(tmp_path / "out"))
    assert result.exit_code == 2
    assert "--force" in result.stderr
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["mine.txt"]
    assert tlir("reduce", path, "-o", str(tmp_path / "out"), "--force").exit_code == 0
    assert (tmp_path / "out" / "mine.txt").read_text() == "mine"
    # the same file a second time
    before = (tmp_path / "out" / "reduced.json").read_bytes()
    assert tlir("reduce", path, "-o", str(tmp_path / "out"), "--force").exit_code == 0
    assert (tmp_path / "out" / "reduced.json").read_bytes() == before


def test_json(tlir: Any, save: Any, tmp_path: Path) -> None:
    document = json.loads(tlir("reduce", save(graph()), "--json", "-o", str(tmp_path / "out")).stdout)
    assert document["command"] == "reduce"
    assert document["basis"] == "trace"
    assert document["verdict"] == "bug"
    assert document["suspect"] == 2
    assert document["before"] == {"nodes": 4, "elements": 4}
    assert document["after"] == {"nodes": 3, "elements": 2}
    assert document["still_fails"] is True
    assert set(document["files"]) == {path.name for path in (tmp_path / "out").iterdir()}


@pytest.mark.parametrize("options", [["--tolerance", "1e-3"], ["--ulps", "4"], ["--words"]])
def test_rules_of_compare(tlir: Any, save: Any, tmp_path: Path, options: list[str]) -> None:
    result = tlir("reduce", save(graph()), *options)
    assert result.exit_code == 0
    assert "suspect node 2 add" in result.stdout


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--policy", "other"], 2),
        (["--policy", "strict", "--words"], 2),
        (["--sample", "3"], 2),
        (["--rerun"], 4),  # no such frontend is installed
        (["-o", "model.json/inside"], 2),
    ],
)
def test_wrong_usage(
    tlir: Any, save: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], code: int
) -> None:
    monkeypatch.chdir(tmp_path)
    assert tlir("reduce", save(graph()), *options).exit_code == code


def test_the_second_sample(tlir: Any, save: Any, tmp_path: Path) -> None:
    good, bad = graph("add"), graph()
    both = replace(good, samples=(*good.samples, *bad.samples))
    document = json.loads(tlir("reduce", save(both), "--json").stdout)
    assert document["sample"] == 1
    assert document["suspect"] == 2
    assert tlir("reduce", save(both, "b.json"), "--sample", "0").exit_code == 1
