"""``tlir diff``, ``tlir upgrade`` and ``tlir reorder``: exit codes, round trips, and where they write."""

from __future__ import annotations

import json
import shutil
from copy import deepcopy
from pathlib import Path

import pytest
from cli_artifacts import squares

from tlir.schema import read

GOLDEN = sorted((Path(__file__).resolve().parents[1] / "golden").rglob("*.json"))


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_golden_artifacts_keep_their_graph_in_another_version(tlir, tmp_path: Path, path: Path) -> None:
    target = str(tmp_path / "new.json")
    result = tlir("upgrade", str(path), "-o", target)
    assert result.exit_code == 0
    assert json.loads(Path(target).read_text(encoding="utf-8"))["version"] == 3
    assert tlir("diff", str(path), target).exit_code == 0
    # and back: the bytes of the canonical text are those of the first file
    version = json.loads(path.read_text(encoding="utf-8"))["version"]
    back = tlir("upgrade", target, "--to", str(version))
    assert back.stdout == path.read_text(encoding="utf-8")


def test_diff_says_what_changed(tlir, write) -> None:
    one = write("one.json", squares())
    changed = squares()
    changed["nodes"][1]["op"] = "maximum"
    changed["name"] = "largest"
    two = write("two.json", changed)
    assert tlir("diff", one, one).exit_code == 0
    result = tlir("diff", one, two)
    assert result.exit_code == 1
    assert result.stdout.splitlines()[0] == "nodes: 0 removed, 0 inserted, 1 changed, 2 the same"
    assert "    operation: multiply -> maximum" in result.stdout.splitlines()
    assert tlir("diff", one, two, "--quiet").stdout.count("\n") == 1
    document = json.loads(tlir("diff", one, two, "--json").stdout)
    assert document["same"] is False
    assert [entry["what"] for entry in document["header"]] == ["name"]
    assert document["nodes"]["changed"] == [
        {"a": 1, "b": 1, "op": "maximum", "differences": [{"what": "operation", "a": "multiply", "b": "maximum"}]}
    ]
    assert document["nodes"]["unchanged"] == 2
    assert tlir("diff", one, "none.json").exit_code == 2
    assert tlir("diff", one, write("bad.json", "[]")).exit_code == 3


def test_upgrade_writes_where_it_is_told(tlir, write, tmp_path: Path) -> None:
    path = write("squares.json", squares())
    before = Path(path).read_text(encoding="utf-8")
    printed = tlir("upgrade", path)
    assert json.loads(printed.stdout)["version"] == 3
    assert Path(path).read_text(encoding="utf-8") == before
    assert tlir("upgrade", path, "-o", path).exit_code == 2
    assert tlir("upgrade", path, "-o", str(tmp_path / "x.json"), "--in-place").exit_code == 2
    assert tlir("upgrade", path, "--json").exit_code == 2
    report = tlir("upgrade", path, "--in-place", "--json")
    assert json.loads(report.stdout) == {"file": path, "output": path, "from": 1, "to": 3}
    assert Path(path).read_text(encoding="utf-8") == printed.stdout


def test_what_a_version_cannot_express_is_named(tlir, write, tmp_path: Path) -> None:
    path = write("squares.json", squares())
    target = str(tmp_path / "pairwise.json")
    assert tlir("reorder", path, "--order", "pairwise", "-o", target).exit_code == 0
    result = tlir("upgrade", target, "--to", "2")
    assert result.exit_code == 2
    assert "TL1001" in result.stderr
    assert "accumulate" in result.stderr


def test_reorder_reports_each_change_and_comes_back(tlir, write, tmp_path: Path) -> None:
    path = write("squares.json", squares())
    target, back = str(tmp_path / "other.json"), str(tmp_path / "back.json")
    result = tlir("reorder", path, "--order", "blocked(2)", "-o", target)
    assert result.stdout.splitlines() == ["%2 reduce: sequential -> blocked(2)", f"{target}: 1 node of 1 changed"]
    node = json.loads(Path(target).read_text(encoding="utf-8"))["nodes"][2]
    assert node["attrs"]["accumulate"] == {"order": "blocked(2)", "fma": False}
    assert tlir("diff", path, target).exit_code == 1
    assert tlir("reorder", target, "--order", "sequential", "-o", back).exit_code == 0
    assert tlir("diff", path, back).exit_code == 0
    assert read(back) == read(path) or tlir("diff", path, back).stdout.startswith("the same")
    report = json.loads(tlir("reorder", path, "--dtype", "float64", "-o", target, "--json").stdout)
    assert report["nodes"] == [
        {"id": "2", "op": "reduce", "changed": True, "before": "sequential", "after": "float64 sequential"}
    ]


def test_reorder_without_a_file_prints_the_artifact(tlir, write) -> None:
    path = write("squares.json", squares())
    result = tlir("reorder", path, "--order", "pairwise")
    assert json.loads(result.stdout)["nodes"][2]["attrs"]["accumulate"]["order"] == "pairwise"
    assert result.stderr.splitlines()[-1] == "standard output: 1 node of 1 changed"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), 2, "TL0901"),
        (("--order", "random"), 2, "TL0901"),
        (("--fma",), 2, "TL1001"),
        (("--order", "pairwise", "--node", "9"), 2, "TL0901"),
        (("--order", "pairwise", "--node", "1"), 2, "TL1001"),
        (("--dtype", "int32", "--node", "2"), 2, "TL1001"),
        (("--dtype", "float31"), 2, "TL0901"),
    ],
)
def test_reorder_refuses_what_cannot_be(tlir, write, tmp_path: Path, arguments, code: int, message: str) -> None:
    target = tmp_path / "out.json"
    result = tlir("reorder", write("squares.json", squares()), *arguments, "-o", str(target))
    assert result.exit_code == code
    assert message in result.stderr
    assert not target.exists()


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_reordered_golden_artifacts_still_check(tlir, tmp_path: Path, path: Path) -> None:
    target = str(tmp_path / "other.json")
    result = tlir("reorder", str(path), "--order", "blocked(3)", "-o", target)
    if result.exit_code == 2:
        assert "TL1001" in result.stderr
        assert not Path(target).exists()
        return
    assert result.exit_code == 0
    assert tlir("check", target, "--quiet").exit_code == 0


def test_external_tensors_stay_external(tlir, tmp_path: Path) -> None:
    import numpy as np

    from tlir.ir.graph import Body, Graph, Node, Ref
    from tlir.ir.tensor import Tensor
    from tlir.schema import write

    value = Tensor.from_numpy(np.arange(400_000, dtype=np.float32))
    node = Node(0, "constant", (), {"value": value}, (value.type,))
    path = tmp_path / "weights.json"
    write(Graph(Body((node,), (), (Ref(0),))), path, external=1 << 20)
    target = tmp_path / "copy.json"
    assert tlir("upgrade", str(path), "-o", str(target)).exit_code == 0
    assert target.stat().st_size < 1000
    assert (tmp_path / "copy.safetensors").stat().st_size > 1_600_000
    assert tlir("diff", str(path), str(target)).exit_code == 0
    before = path.read_bytes()
    assert tlir("upgrade", str(path), "--in-place").exit_code == 0
    assert path.read_bytes() == before
    printed = tlir("upgrade", str(path)).stdout
    assert "external" not in json.loads(printed)


def test_a_pipe_can_be_rewritten(process, write, tmp_path: Path) -> None:
    import os
    import threading

    fifo = tmp_path / "pipe.json"
    os.mkfifo(fifo)
    text = json.dumps(squares())
    writer = threading.Thread(target=lambda: fifo.write_text(text, encoding="utf-8"), daemon=True)
    writer.start()
    result = process("upgrade", str(fifo))
    writer.join(10)
    assert result.returncode == 0
    assert json.loads(result.stdout)["version"] == 3
    shutil.rmtree(tmp_path, ignore_errors=True)


def test_a_changed_constant_is_counted_in_words(tlir, write) -> None:
    document = {
        "format": "tlir",
        "version": 2,
        "name": "c",
        "input_ids": [],
        "output_ids": [0],
        "nodes": [
            {
                "id": 0,
                "op": "constant",
                "inputs": [],
                "shape": [2],
                "dtype": "float32",
                "attrs": {"value": {"dtype": "float32", "shape": [2], "words": "3f800000 40000000"}},
            }
        ],
    }
    other = deepcopy(document)
    other["nodes"][0]["attrs"]["value"]["words"] = "3f800000 40000007"  # type: ignore[index]
    result = tlir("diff", write("a.json", document), write("b.json", other))
    assert result.exit_code == 1
    assert "    value: 1 of 2 words differ, the first at 1, at most 7 ulp apart" in result.stdout.splitlines()
