"""Writing: canonical text, the lowest version, external files, and files that appear whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from schema_documents import (
    ALL,
    Document,
    changed,
    node,
    version_1,
    version_2,
    version_3,
    with_external,
    without,
    words,
)

from tlir.errors import ArtifactError, UsageError
from tlir.ir.graph import Ref
from tlir.ir.ops import OPERATIONS, Operation
from tlir.ir.types import DType, TensorType
from tlir.schema import dumps, from_json, lowest_version, read, to_json, upgrade, write

CANONICAL = """{
"format":"tlir",
"input_ids":[0],
"name":"square_sum",
"nodes":[
{"dtype":"float32","id":0,"inputs":[],"name":"x","op":"input","shape":[4]},
{"dtype":"float32","id":1,"inputs":[0,0],"op":"multiply","shape":[4]}
],
"output_ids":[1],
"version":1
}
"""


def test_the_text_of_the_documentation() -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "artifact.md"
    assert CANONICAL in page.read_text(encoding="utf-8")
    assert dumps(from_json(json.loads(CANONICAL))) == CANONICAL


@pytest.mark.parametrize("make", ALL)
def test_writing_what_was_read_gives_the_same_bytes(make: Callable[[], Document], tmp_path: Path) -> None:
    path, again = tmp_path / "a.json", tmp_path / "b.json"
    write(from_json(make()), path)
    write(read(path), again)
    assert again.read_bytes() == path.read_bytes()
    assert path.read_text(encoding="utf-8") == dumps(read(path))
    lines = path.read_text(encoding="utf-8").splitlines()
    assert sum(line.startswith('{"') and '"op":' in line for line in lines) == len(make()["nodes"])


@pytest.mark.parametrize("make", ALL)
def test_the_document_says_what_was_read(make: Callable[[], Document]) -> None:
    written = to_json(from_json(make()))
    expected = make()
    if make is version_2:
        # two words are few enough to be written in hexadecimal
        expected["nodes"][5]["attrs"]["value"] = words("int4", [2], "f 7")
    if make is version_3:
        expected["nodes"][2]["inputs"] = [0]
        rest = {"bias": 63, "infinities": True, "nans": "ieee", "signed_zero": True}
        expected["formats"]["fp24"] |= rest
    assert written == expected


def test_characters_stand_for_themselves(tmp_path: Path) -> None:
    document = changed(version_1(), "/name", 'Größe "\\ 🎲')
    path = tmp_path / "a.json"
    write(from_json(document), path)
    assert '"name":"Größe \\"\\\\ 🎲"'.encode() in path.read_bytes()
    assert read(path).name == document["name"]


def test_hexadecimal_up_to_32_words_and_base64_above() -> None:
    for count, dtype, key in ((32, "float32", "words"), (33, "float32", "base64"), (17, "complex64", "base64")):
        digits = " ".join(["3f800000"] * (count if dtype == "float32" else 2 * count))
        value = words(dtype, [count], digits)
        document = version_1()
        document["nodes"].append(node(3, "constant", [], [count], dtype, attrs={"value": value}))
        written = to_json(from_json(document))["nodes"][3]["attrs"]["value"]
        assert sorted(written) == sorted(["dtype", "shape", key])


def test_what_is_empty_or_the_default_is_left_out() -> None:
    document = version_3()
    document["nodes"][2]["attrs"]["accumulate"] = {"order": "sequential"}
    document["nodes"][4]["attrs"] = {}
    document["samples"] = []
    document["producer"] = {"frontend": "torch", "platform": "", "flags": {}}
    written = to_json(from_json(document))
    assert "accumulate" not in written["nodes"][2]["attrs"]
    assert "attrs" not in written["nodes"][4]
    assert "samples" not in written
    assert written["producer"] == {"frontend": "torch", "outputs": "op-by-op"}


LATER: list[tuple[str, Document | list[Document]]] = [
    ("/input_tree", {"args": [{"list": [0]}], "kwargs": []}),
    ("/output_tree", {"list": [0]}),
    ("/formats", {"f24": {"exponent_bits": 7, "fraction_bits": 16}}),
    ("/nodes/2/attrs/accumulate", {"order": "pairwise"}),
    ("/samples/0/trace", []),
]


@pytest.mark.parametrize(("pointer", "value"), LATER)
def test_the_lowest_version_that_can_say_it(pointer: str, value: Document) -> None:
    assert lowest_version(from_json(version_1() | {"version": 3})) == 1
    graph = from_json(changed(version_1() | {"version": 3}, pointer, value))
    assert lowest_version(graph) == 3
    assert to_json(graph)["version"] == 3
    with pytest.raises(UsageError) as caught:
        to_json(graph, 2)
    assert caught.value.code == "TL1001"


def test_versions_by_inputs_and_outputs() -> None:
    assert lowest_version(from_json(version_2())) == 2
    none = without(version_2(), "/nodes/6")
    none |= {"nodes": [], "input_ids": [], "output_ids": []}
    assert lowest_version(from_json(none)) == 2
    assert '"nodes":[],' in dumps(from_json(none))
    with pytest.raises(UsageError):
        to_json(from_json(version_2()), 1)
    with pytest.raises(UsageError, match="no version 4"):
        to_json(from_json(version_1()), 4)


def test_upgrade_takes_documents_and_graphs(tmp_path: Path) -> None:
    assert upgrade(version_1()) == version_1() | {"version": 3}
    assert upgrade(from_json(version_1()), 2) == version_1() | {"version": 2}
    inlined = upgrade(with_external(tmp_path), folder=tmp_path)
    assert inlined["nodes"][7]["attrs"]["value"]["words"] == "3f800000 c0000000"
    with pytest.raises(UsageError):
        upgrade(version_3(), 1)
    with pytest.raises(ArtifactError):
        upgrade({})


def test_several_results_and_regions_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    operation = Operation("twice", "test", ("operand",), "", "", lambda call: call.declared, {}, {}, 0, 2, 1)
    monkeypatch.setitem(OPERATIONS, "twice", operation)
    region = {"input_ids": [0], "output_ids": [0, 0], "nodes": [node(0, "input", [], [4])]}
    types = [{"shape": [4], "dtype": "float32"}] * 2
    document = version_1() | {"version": 3, "output_ids": [[3, 1]]}
    document["nodes"].append({"id": 3, "op": "twice", "inputs": [0], "results": types, "regions": [region]})
    document["samples"] = []
    graph = from_json(document)
    assert lowest_version(graph) == 3
    assert to_json(graph) == without(document, "/samples")
    assert dumps(from_json(json.loads(dumps(graph)))) == dumps(graph)


def test_large_tensors_go_to_a_file_beside(tmp_path: Path) -> None:
    graph = from_json(with_external(tmp_path), tmp_path)
    path = tmp_path / "a.json"
    write(graph, path, external=7)
    document = json.loads(path.read_text(encoding="utf-8"))
    assert list(document["external"]) == ["a.safetensors"]
    assert document["nodes"][7]["attrs"]["value"]["tensor"] == "node7"
    again = read(path)
    assert dumps(again) == dumps(graph)
    assert not again.nodes[7].attrs["value"].words.flags.owndata
    written = path.read_bytes(), (tmp_path / "a.safetensors").read_bytes()
    # over its own file, which is mapped while it is replaced
    write(again, path, external=7)
    assert (path.read_bytes(), (tmp_path / "a.safetensors").read_bytes()) == written
    assert dumps(again) == dumps(graph)
    with pytest.raises(UsageError):
        write(from_json(version_1()), path, version=2, external=0)
    write(from_json(version_1()), path, external=10**6)
    assert read(path).name == "square_sum"
    assert "external" not in json.loads(path.read_text(encoding="utf-8"))


def test_a_dtype_that_is_not_declared_is_not_written() -> None:
    graph = from_json(version_3())
    with pytest.raises(ArtifactError) as caught:
        to_json(replace(graph, formats={}))
    assert caught.value.code == "TL0206"
    first = replace(graph.nodes[0], types=(TensorType((4,), DType("float33", "float", 16, None)),))
    broken = replace(graph, body=replace(graph.body, nodes=(first, *graph.nodes[1:])), samples=())
    with pytest.raises(ArtifactError):
        to_json(broken)


def test_a_graph_whose_structure_does_not_hold_is_not_written(tmp_path: Path) -> None:
    graph = from_json(version_1())
    path = tmp_path / "a.json"
    with pytest.raises(ArtifactError) as caught:
        write(replace(graph, body=replace(graph.body, outputs=(Ref(9),))), path)
    assert caught.value.code == "TL0211"
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    graph = from_json(version_1())
    (tmp_path / "file").write_text("")
    (tmp_path / "folder.json").mkdir()
    for path in ("missing/a.json", "file/a.json", "folder.json", "x" * 300 + ".json"):
        with pytest.raises(UsageError) as caught:
            write(graph, tmp_path / path)
        assert caught.value.code == "TL0109"
        assert caught.value.file is not None
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "folder.json"]


def test_a_folder_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: Path, target: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(UsageError, match="Permission denied") as caught:
        write(from_json(version_1()), tmp_path / "a.json")
    assert caught.value.code == "TL0109"
    assert list(tmp_path.iterdir()) == []


def test_a_failure_half_way_keeps_the_old_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    graph = from_json(with_external(tmp_path), tmp_path)
    write(graph, path, external=7)
    before = {entry: entry.read_bytes() for entry in tmp_path.iterdir() if entry.is_file()}

    def full(stream: object, parts: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tlir.schema.writer._write_text", full)
    with pytest.raises(UsageError, match="No space left"):
        write(graph, path, external=0)
    assert {entry: entry.read_bytes() for entry in tmp_path.iterdir() if entry.is_file()} == before


def test_new_files_have_the_usual_permissions(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    write(from_json(version_1()), tmp_path / "a.json")
    assert (tmp_path / "a.json").stat().st_mode == (tmp_path / "plain").stat().st_mode
