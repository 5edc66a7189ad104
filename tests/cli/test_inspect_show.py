"""``tlir show``: every form of every golden artifact, to standard output and to files."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from cli_artifacts import squares

GOLDEN = sorted((Path(__file__).resolve().parents[1] / "golden").rglob("*.json"))
CONTROL = {chr(code) for code in (*range(9), *range(11, 32), 127)}


def hostile_squares() -> dict[str, object]:
    """The sum of squares under names that are attacks on a terminal and on a browser."""
    document = squares()
    attack = "\u202e</svg></script><script>alert(1)</script>\"'&"
    document["name"] = attack
    document["nodes"][0]["name"] = attack
    document["nodes"][1]["source"] = {"file": attack, "line": 1, "function": attack}
    return document


def test_the_sum_of_squares_as_text(tlir, write) -> None:
    result = tlir("show", write("squares.json", squares()))
    assert result.exit_code == 0
    lines = [line for line in result.stdout.splitlines() if not line.startswith("//")]
    assert lines[0].startswith("graph ")
    assert "multiply(%0, %0)" in result.stdout
    assert "{dimensions = [0], reducer = add}" in result.stdout
    assert lines[-2:] == ["  return %2", "}"]


@pytest.mark.parametrize("form", ["--text", "--table", "--json", "--dot", "--svg", "--html"])
def test_hostile_names_do_not_act(tlir, write, form: str) -> None:
    result = tlir("show", write("hostile.json", hostile_squares()), form)
    assert result.exit_code == 0
    assert not CONTROL & set(result.stdout)
    assert "\u202e" not in result.stdout
    if form in ("--svg", "--html"):
        assert "<script>alert" not in result.stdout
    if form == "--svg":
        ElementTree.fromstring(result.stdout)
    if form == "--json":
        assert [node["op"] for node in json.loads(result.stdout)["nodes"]] == ["input", "multiply", "reduce"]


def test_control_characters_do_not_pass_the_reader(tlir, write) -> None:
    document = squares()
    document["nodes"][0]["name"] = "\x1b[2J"
    result = tlir("show", write("control.json", document))
    assert result.exit_code == 3
    assert "\x1b" not in result.stderr


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_golden_artifacts_in_every_form(tlir, path: Path) -> None:
    nodes = json.loads(path.read_text(encoding="utf-8"))["nodes"]
    text = tlir("show", str(path)).stdout
    assert sum(line.startswith("  %") for line in text.splitlines()) == len(nodes)
    table = tlir("show", str(path), "--table").stdout.splitlines()
    assert [line.split()[1] for line in table[1:] if not line.startswith("%") or "." not in line.split()[0]] == [
        node["op"] for node in nodes
    ]
    assert tlir("show", str(path), "--dot").stdout.count("[label=") >= len(nodes)
    root = ElementTree.fromstring(tlir("show", str(path), "--svg").stdout)
    boxes = [element for element in root.iter() if element.get("class", "").startswith("n ")]
    assert len(boxes) == len(nodes)
    assert tlir("show", str(path), "--html").stdout.count("<tr id=") >= len(nodes)


@pytest.mark.parametrize(
    ("name", "start"),
    [("g.html", "<!doctype html>"), ("g.svg", "<svg "), ("g.dot", "digraph "), ("g.json", "{"), ("g.txt", "graph ")],
)
def test_the_suffix_of_the_output_chooses_the_form(tlir, write, tmp_path: Path, name: str, start: str) -> None:
    target = tmp_path / "new" / name
    target.parent.mkdir()
    result = tlir("show", write("squares.json", squares()), "-o", str(target))
    assert (result.exit_code, result.stdout) == (0, "")
    text = target.read_text(encoding="utf-8")
    assert "\n".join(line for line in text.splitlines() if not line.startswith("//")).startswith(start)
    assert [path.name for path in target.parent.iterdir()] == [name]


def test_a_drawing_of_a_part_says_so(tlir, write) -> None:
    result = tlir("show", write("squares.json", squares()), "--svg", "--limit", "2")
    assert result.stderr == "drawn: the first 2 of 3 nodes; --limit N draws more\n"
    assert "the first 2 of 3 nodes" in result.stdout


def test_wrong_use_and_wrong_files(tlir, write, tmp_path: Path) -> None:
    path = write("squares.json", squares())
    for arguments, code, message in (
        ((str(tmp_path / "none.json"),), 2, "TL0902"),
        ((str(tmp_path),), 2, "TL0902"),
        ((write("bad.json", "{"),), 3, "TL0103"),
        ((path, "--limit", "5"), 2, "TL0901"),
        ((path, "-o", str(tmp_path / "no" / "folder.svg")), 2, "TL0109"),
        ((path, "--svg", "-o", str(tmp_path)), 2, "TL0109"),
    ):
        result = tlir("show", *arguments)
        assert result.exit_code == code
        assert message in result.stderr
        assert result.stdout == ""
    assert sorted(file.name for file in tmp_path.iterdir()) == ["bad.json", "squares.json"]
