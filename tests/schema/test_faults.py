"""Bad artifacts, at least one per code: each gives an ArtifactError with its code and the place, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from schema_documents import Document, changed, node, version_1, version_2, version_3, with_external, without, words

from tlir.errors import ArtifactError
from tlir.ir.ops import OPERATIONS, Operation
from tlir.schema import dumps, from_json, read

BIG = 2**100


def error_of(document: Any, folder: Path | None = None) -> ArtifactError:
    with pytest.raises(ArtifactError) as caught:
        from_json(document, folder, "a.json")
    assert caught.value.file == "a.json"
    assert caught.value.exit_code == 3
    assert max(len(caught.value.message), len(caught.value.pointer or ""), len(caught.value.node or "")) <= 200
    return caught.value


TEXTS = [
    (b"", "TL0103", None, "empty"),
    (b" \n", "TL0103", None, "empty"),
    (b"\xef\xbb\xbf", "TL0103", None, "empty"),
    (b"{", "TL0103", None, "line 1, column 2"),
    (b'{"format":"tlir",\n "version" 3}', "TL0103", None, "line 2, column 12"),
    (b'{"format":"tlir","nodes":[', "TL0103", None, "may have been cut"),
    (b"\xff\xfe{\x00}\x00", "TL0102", None, "byte 0"),
    (b'{"name":"caf\xe9"}', "TL0102", None, "byte 12"),
    (b'{"name":"a\x00b"}', "TL0103", None, "line 1, column 11"),
    (b'{"a":1,"b":[{"c":1},\n{"c":1,"d":2,"c":3}]}', "TL0104", "/b/1/c", "line 2, column 14"),
    (b'{"a":{"":1,"":2}}', "TL0104", "/a/", "'' is there twice"),
    (b'{"a":[1,2,{"x/y":1.5}]}', "TL0105", "/a/2/x~1y", "1.5 is not an integer"),
    (b'{"a":1e3}', "TL0105", "/a", "1e3"),
    (b"[NaN]", "TL0105", "/0", "NaN"),
    (b'{"k":-Infinity}', "TL0105", "/k", "-Infinity"),
    (b'{"format":"tlir","version":' + b"9" * 5000 + b"}", "TL0204", "/version", "5000 digits"),
    (b"[" * 100_000, "TL0106", None, "nested"),
    (b'{"a":' * 100_000, "TL0106", None, "nested"),
    (b'{"name":' + b"[" * 700 + b"]" * 700 + b"}", "TL0106", "/name", "nested"),
    (b"[1]", "TL0108", "", "an artifact is an object"),
    (b"null", "TL0108", "", "null"),
    (b'{"version":1}', "TL0108", "/format", "missing"),
    (b'{"format":"onnx","version":1}', "TL0108", "/format", "'onnx'"),
    (b'{"format":"tlir"}', "TL0201", "", "'version'"),
    (b'{"format":"tlir","version":4,"new":[]}', "TL0107", "/version", "version 4"),
    (b'{"format":"tlir","version":0}', "TL0107", "/version", "version 0"),
    (b'{"format":"tlir","version":"3"}', "TL0203", "/version", "a string"),
    (b'{"format":"tlir","version":true}', "TL0203", "/version", "a Boolean"),
]


@pytest.mark.parametrize(("data", "code", "pointer", "part"), TEXTS, ids=[f"{k}-{t[1]}" for k, t in enumerate(TEXTS)])
def test_texts_that_are_no_artifact(data: bytes, code: str, pointer: str | None, part: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(data)
    with pytest.raises(ArtifactError) as caught:
        read(path)
    assert (caught.value.code, caught.value.file) == (code, str(path))
    assert part in str(caught.value)
    if pointer is not None:
        assert (caught.value.pointer or "") == pointer


def test_a_later_version_says_what_to_do() -> None:
    assert "written by a later release" in (error_of({"format": "tlir", "version": 99}).hint or "")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.json", tmp_path, tmp_path / "missing" / "a.json", "\0", Path("/dev/zero")):
        with pytest.raises(ArtifactError) as caught:
            read(path)
        assert caught.value.code == "TL0101"


# pointer of the change, its value, code, pointer of the error, part of the text
Change = tuple[Callable[[], Document], str, Any, str, str, str]
CHANGES: list[Change] = [
    (version_1, "/nodse", [], "TL0202", "/nodse", "did you mean 'nodes'?"),
    (version_1, "/name", 3, "TL0203", "/name", "must be a string, not an integer"),
    (version_1, "/name", "a\x1b[31m", "TL0204", "/name", "control character"),
    (version_1, "/name", "\ud800", "TL0204", "/name", "surrogate"),
    (version_1, "/tolerance", "-1", "TL0204", "/tolerance", "decimal number"),
    (version_1, "/tolerance", "1e99999", "TL0204", "/tolerance", "decimal number"),
    (version_1, "/tolerance", 1.0, "TL0203", "/tolerance", "a floating-point number"),
    (version_1, "/nodes", {}, "TL0203", "/nodes", "an array"),
    (version_1, "/nodes/1", [1], "TL0203", "/nodes/1", "a node"),
    (version_1, "/nodes/1/shap", [], "TL0202", "/nodes/1/shap", "did you mean 'shape'?"),
    (version_1, "/nodes/1/id", 2, "TL0207", "/nodes/1/id", "expected id 1"),
    (version_1, "/nodes/1/id", BIG, "TL0204", "/nodes/1/id", str(BIG)),
    (version_1, "/nodes/1/id", True, "TL0203", "/nodes/1/id", "a Boolean"),
    (version_1, "/nodes/1/id", 1.0, "TL0105", "/nodes/1/id", "a floating-point number"),
    (version_1, "/nodes/1/id", np.int64(1), "TL0203", "/nodes/1/id", "numpy.int64"),
    (version_1, "/nodes/1/op", "multply", "TL0205", "/nodes/1/op", "did you mean 'multiply'?"),
    (version_1, "/nodes/1/op", None, "TL0203", "/nodes/1/op", "null"),
    (version_1, "/nodes/1/op", "x" * 10**6, "TL0205", "/nodes/1/op", "1000000 characters"),
    (version_1, "/nodes/1/dtype", "float31", "TL0206", "/nodes/1/dtype", "did you mean 'float32'?"),
    (version_1, "/nodes/1/dtype", "complex<float32>", "TL0206", "/nodes/1/dtype", "complex<float32>"),
    (version_1, "/nodes/1/dtype", ["float32"], "TL0203", "/nodes/1/dtype", "an array"),
    (version_1, "/nodes/1/shape", 4, "TL0203", "/nodes/1/shape", "an array"),
    (version_1, "/nodes/1/shape", [-4], "TL0204", "/nodes/1/shape/0", "negative"),
    (version_1, "/nodes/1/shape", [True], "TL0203", "/nodes/1/shape/0", "a Boolean"),
    (version_1, "/nodes/1/shape", [4.0], "TL0105", "/nodes/1/shape/0", "a floating-point number"),
    (version_1, "/nodes/1/shape", [2**60], "TL0216", "/nodes/1/shape", "2^40 elements"),
    (version_1, "/nodes/1/shape", [2**30, 2**30, 0], "TL0216", "/nodes/1/shape", "2^40 elements"),
    (version_1, "/nodes/1/shape", [1] * 65, "TL0216", "/nodes/1/shape", "65 axes"),
    (version_1, "/nodes/1/inputs", [0, 1], "TL0208", "/nodes/1/inputs/1", "by itself"),
    (version_1, "/nodes/1/inputs", [0, 2], "TL0208", "/nodes/1/inputs/1", "later"),
    (version_1, "/nodes/1/inputs", [0, -1], "TL0208", "/nodes/1/inputs/1", "no value"),
    (version_1, "/nodes/1/inputs", [0, 10**6], "TL0208", "/nodes/1/inputs/1", "no value"),
    (version_1, "/nodes/1/inputs", [0, BIG], "TL0204", "/nodes/1/inputs/1", "is not from"),
    (version_1, "/nodes/1/inputs", [0, "0"], "TL0203", "/nodes/1/inputs/1", "a string"),
    (version_1, "/nodes/1/inputs", [0, True], "TL0203", "/nodes/1/inputs/1", "a Boolean"),
    (version_1, "/nodes/1/inputs", [0, [0, 0]], "TL0212", "/nodes/1/inputs/1", "version 3"),
    (version_1, "/nodes/1/inputs", [0], "TL0209", "/nodes/1/inputs", "2 operands, not 1"),
    (version_1, "/nodes/1/attrs", {"axis": 0}, "TL0202", "/nodes/1/attrs/axis", "no attributes"),
    (version_1, "/nodes/1/attrs", [], "TL0203", "/nodes/1/attrs", "an object"),
    (version_1, "/nodes/1/source", {"file": "a.py"}, "TL0201", "/nodes/1/source", "'line'"),
    (version_1, "/nodes/1/source/line", -1, "TL0204", "/nodes/1/source/line", "-1"),
    (version_1, "/nodes/2/attrs/dimensions", [64], "TL0204", "/nodes/2/attrs/dimensions", "from 0 to 63"),
    (version_1, "/nodes/2/attrs/dimensions", [0, 0], "TL0204", "/nodes/2/attrs/dimensions", "all different"),
    (version_1, "/nodes/2/attrs/dimensions", [BIG], "TL0204", "/nodes/2/attrs/dimensions", "from 0 to 63"),
    (version_1, "/nodes/2/attrs/dimensions", 0, "TL0204", "/nodes/2/attrs/dimensions", "a list"),
    (version_1, "/nodes/2/attrs/reducer", "mean", "TL0204", "/nodes/2/attrs/reducer", "expected one of add"),
    (version_1, "/nodes/2/attrs/reduce", "add", "TL0202", "/nodes/2/attrs/reduce", "did you mean 'reducer'?"),
    (version_1, "/nodes/2/attrs/accumulate", {"fma": True}, "TL0212", "/nodes/2/attrs/accumulate", "version 3"),
    (version_1, "/input_ids", [1], "TL0211", "/input_ids/0", "not the id of an input"),
    (version_1, "/input_ids", [0, 0], "TL0212", "/input_ids", "exactly one"),
    (version_1, "/output_ids", [], "TL0212", "/output_ids", "exactly one"),
    (version_1, "/output_ids", [3], "TL0211", "/output_ids/0", "no value"),
    (version_1, "/input_tree", {"args": [0], "kwargs": []}, "TL0212", "/input_tree", "version 3"),
    (version_1, "/nodes/0/regions", [], "TL0212", "/nodes/0/regions", "version 3"),
    (version_1, "/producer/frontent", "jax", "TL0202", "/producer/frontent", "did you mean 'frontend'?"),
    (version_1, "/producer/outputs", "jitted", "TL0204", "/producer/outputs", "op-by-op, compiled"),
    (version_1, "/producer/flags/x64", [], "TL0203", "/producer/flags/x64", "an array"),
    (version_1, "/producer/flags/x64", 0.5, "TL0105", "/producer/flags/x64", "a floating-point number"),
    (version_1, "/samples/0/inputs", [], "TL0214", "/samples/0/inputs", "0 inputs"),
    (version_1, "/samples/0/outputs/0", words("float64", [], "0" * 16), "TL0214", "/samples/0/outputs/0", "float64"),
    (version_1, "/samples/0/trace", [], "TL0212", "/samples/0/trace", "version 3"),
    (version_1, "/samples/0/inputs/0/words", "3f800000", "TL0401", "/samples/0/inputs/0/words", "1 words"),
    (version_1, "/samples/0/inputs/0/words", 7, "TL0203", "/samples/0/inputs/0/words", "a string"),
    (version_1, "/samples/0/inputs/0/shape", [2**40], "TL0401", "/samples/0/inputs/0/words", "4 words"),
    (version_1, "/samples/0/inputs/0/base64", "", "TL0403", "/samples/0/inputs/0", "exactly one"),
    (version_2, "/input_ids", [0, 0], "TL0211", "/input_ids/1", "twice"),
    (version_2, "/input_ids", [0], "TL0211", "/nodes/1", "not listed"),
    (version_2, "/nodes/4/attrs/value/words", "1 0 2", "TL0402", "/nodes/4/attrs/value/words", "element [2]"),
    (version_2, "/nodes/4/attrs/value/words", "1 0 1 1", "TL0401", "/nodes/4/attrs/value/words", "4 words"),
    (version_2, "/nodes/4/attrs/value/words", "1 0 \u0661", "TL0403", "/nodes/4/attrs/value/words", "word 2"),
    (version_2, "/nodes/4/attrs/value/words", "01 00 01", "TL0403", "/nodes/4/attrs/value/words", "1 lower-case"),
    (version_2, "/nodes/5/attrs/value/base64", "DxA=", "TL0402", "/nodes/5/attrs/value/base64", "element [1]"),
    (version_2, "/nodes/5/attrs/value/base64", "Dw==", "TL0401", "/nodes/5/attrs/value/base64", "1 bytes"),
    (version_2, "/nodes/5/attrs/value/base64", "Dwc", "TL0403", "/nodes/5/attrs/value/base64", "multiple of 4"),
    (version_2, "/nodes/5/attrs/value/base64", "D*c=", "TL0403", "/nodes/5/attrs/value/base64", "not base64"),
    (version_2, "/nodes/5/attrs/value/base64", "Dwd=", "TL0403", "/nodes/5/attrs/value/base64", "no byte"),
    (version_2, "/nodes/5/attrs/value/base64", "\u0661wc=", "TL0403", "/nodes/5/attrs/value/base64", "not base64"),
    (version_2, "/nodes/5/attrs/value/file", "x", "TL0212", "/nodes/5/attrs/value/file", "version 3"),
    (version_2, "/formats", {}, "TL0212", "/formats", "version 3"),
    (version_3, "/formats/fp24/exponent_bits", 31, "TL0213", "/formats/fp24", "between 1 and 30"),
    (version_3, "/formats/fp24/exponent_bits", BIG, "TL0213", "/formats/fp24", "between 1 and 30"),
    (version_3, "/formats/fp24/expbits", 3, "TL0213", "/formats/fp24", "'expbits'"),
    (version_3, "/formats/fp24/bias", None, "TL0213", "/formats/fp24/bias", "null"),
    (version_3, "/formats/float32", {}, "TL0213", "/formats/float32", "cannot be declared"),
    (version_3, "/formats/a b", {}, "TL0213", "/formats/a b", "letters"),
    (version_3, "/formats/fp24", 3, "TL0203", "/formats/fp24", "an integer"),
    (version_3, "/input_tree/args", [1, 0], "TL0215", "/input_tree/args/0", "expected 0"),
    (version_3, "/input_tree/kwargs", [], "TL0215", "/input_tree", "1 leaves for 2"),
    (version_3, "/input_tree", {"list": [0, 1]}, "TL0215", "/input_tree", "arguments of a call"),
    (version_3, "/output_tree", {"args": [0, 1], "kwargs": []}, "TL0215", "/output_tree", "not a call"),
    (version_3, "/output_tree/fields/0/0", "\n", "TL0204", "/output_tree", "control character"),
    (version_3, "/nodes/2/inputs/0", [0, 1], "TL0208", "/nodes/2/inputs/0", "%0#1"),
    (version_3, "/nodes/2/inputs/0", [0, 0, 0], "TL0203", "/nodes/2/inputs/0", "[id, result]"),
    (version_3, "/nodes/2/inputs/0", [0, BIG], "TL0204", "/nodes/2/inputs/0/1", "is not from"),
    (version_3, "/nodes/2/results", [], "TL0202", "/nodes/2/results", "no shape and dtype of its own"),
    (version_3, "/nodes/2/attrs/accumulate/order", "random", "TL0204", "/nodes/2/attrs/accumulate", "'random'"),
    (version_3, "/nodes/2/attrs/accumulate/dtype", "float31", "TL0204", "/nodes/2/attrs/accumulate", "'float31'"),
    (version_3, "/samples/0/trace/0/value", 9, "TL0214", "/samples/0/trace", "no value %9"),
    (version_3, "/samples/0/trace/0/tensor", words("bfloat16", [], "3f80"), "TL0214", "/samples/0/trace", "bfloat16[]"),
    (version_3, "/external", {"x.safetensors": 3}, "TL0203", "/external/x.safetensors", "an object"),
]


@pytest.mark.parametrize("change", CHANGES, ids=[f"{k}-{c[3]}" for k, c in enumerate(CHANGES)])
def test_a_changed_document_names_the_fault_and_its_place(change: Change) -> None:
    make, pointer, value, code, place, part = change
    error = error_of(changed(make(), pointer, value))
    assert (error.code, error.pointer) == (code, place)
    assert part in str(error)


@pytest.mark.parametrize(
    ("make", "pointer", "place", "field"),
    [
        (version_1, "/name", None, "name"),
        (version_1, "/nodes", None, "nodes"),
        (version_1, "/nodes/1/op", "/nodes/1", "op"),
        (version_1, "/nodes/1/shape", "/nodes/1", "shape"),
        (version_1, "/nodes/2/attrs/reducer", "/nodes/2/attrs", "reducer"),
        (version_1, "/nodes/2/attrs", "/nodes/2/attrs", "reducer"),
        (version_1, "/producer/frontend", "/producer", "frontend"),
        (version_1, "/samples/0/outputs", "/samples/0", "outputs"),
        (version_1, "/samples/0/outputs/0/dtype", "/samples/0/outputs/0", "dtype"),
        (version_1, "/samples/0/outputs/0/words", "/samples/0/outputs/0", "words"),
        (version_3, "/samples/0/trace/0/tensor", "/samples/0/trace/0", "tensor"),
        (version_3, "/formats/fp24/fraction_bits", "/formats/fp24", "fraction_bits"),
    ],
)
def test_a_missing_field_is_named(make: Callable[[], Document], pointer: str, place: str | None, field: str) -> None:
    error = error_of(without(make(), pointer))
    assert error.code == ("TL0213" if field == "fraction_bits" else "TL0201")
    assert error.pointer == place
    assert field in error.message


def test_an_error_names_the_node_and_the_source_line() -> None:
    error = error_of(changed(changed(version_1(), "/nodes/1/shape", [-1]), "/nodes/1/name", "scaled"))
    assert error.node == "1 multiply 'scaled'"
    assert str(error.source) == "model.py:3 in f"
    assert str(error).splitlines()[0].startswith("TL0204: a.json: /nodes/1/shape/0: node 1 multiply 'scaled': ")


def test_a_hostile_node_is_described_shortly() -> None:
    document = changed(version_1(), "/nodes/1/name", "x\x1b" * 10**5)
    document["nodes"][1]["source"] = {"file": "f" * 10**5 + "\n", "line": BIG, "function": []}
    text = str(error_of(document))
    assert len(text) < 1000
    assert "\x1b" not in text


def test_results_and_regions_are_counted() -> None:
    several = without(without(version_3(), "/nodes/4/shape"), "/nodes/4/dtype")
    types = [{"shape": [], "dtype": "float32"}] * 2
    assert error_of(changed(several, "/nodes/4/results", types)).code == "TL0210"
    error = error_of(changed(several, "/nodes/4/results", [{"shape": []}]))
    assert (error.code, error.pointer) == ("TL0201", "/nodes/4/results/0")
    region = {"input_ids": [], "output_ids": [], "nodes": []}
    assert error_of(changed(version_3(), "/nodes/4/regions", [region])).code == "TL0210"
    region["nodes"] = [node(0, "input", [], [], "float99")]
    error = error_of(changed(version_3(), "/nodes/4/regions", [region]))
    assert (error.code, error.pointer) == ("TL0206", "/nodes/4/regions/0/nodes/0/dtype")
    assert error.node == "0 input"


def test_a_node_with_regions_and_two_results_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    operation = Operation("twice", "test", ("operand",), "", "", lambda call: call.declared, {}, {}, 0, 2, 1)
    monkeypatch.setitem(OPERATIONS, "twice", operation)
    document = version_3()
    region = {"input_ids": [0], "output_ids": [0, [0, 0]], "nodes": [node(0, "input", [], [4])]}
    types = [{"shape": [4], "dtype": "float32"}] * 2
    document["nodes"].append({"id": 7, "op": "twice", "inputs": [0], "results": types, "regions": [region]})
    document["nodes"].append(node(8, "add", [7, [7, 1]], [4]))
    graph = from_json(document)
    assert [str(ref) for ref in graph.nodes[8].inputs] == ["%7", "%7#1"]
    assert [str(ref) for ref in graph.nodes[7].regions[0].outputs] == ["%0", "%0"]
    forward = changed(document, "/nodes/7/regions/0/nodes/0/inputs", [0])
    assert error_of(forward).pointer == "/nodes/7/regions/0/nodes/0/inputs"


EXTERNAL: list[tuple[str, Any, str, str]] = [
    ("/external/weights~1w.safetensors/size", 3, "TL0503", "the artifact says 3"),
    ("/external/weights~1w.safetensors/size", -1, "TL0204", "-1"),
    ("/external/weights~1w.safetensors/sha256", "0" * 64, "TL0503", "SHA-256"),
    ("/external/weights~1w.safetensors/sha256", "0" * 63, "TL0204", "64 lower-case"),
    ("/external/missing.safetensors", {"sha256": "0" * 64, "size": 0}, "TL0501", "No such file"),
    ("/external/weights", {"sha256": "0" * 64, "size": 0}, "TL0501", "not a regular file"),
    ("/external/", {"sha256": "0" * 64, "size": 0}, "TL0502", "inside"),
    ("/external/a\0", {"sha256": "0" * 64, "size": 0}, "TL0502", "inside"),
    ("/external/..~1secret", {"sha256": "0" * 64, "size": 0}, "TL0502", "inside"),
    ("/external/weights~1..~1..~1secret", {"sha256": "0" * 64, "size": 0}, "TL0502", "inside"),
    ("/external/~1etc~1passwd", {"sha256": "0" * 64, "size": 0}, "TL0502", "inside"),
    ("/external/" + "x" * 5000, {"sha256": "0" * 64, "size": 0}, "TL0501", "external file"),
    ("/nodes/7/attrs/value/file", "other.safetensors", "TL0501", "not listed"),
    ("/nodes/7/attrs/value/tensor", "v", "TL0504", "holds no tensor 'v'"),
    ("/nodes/7/attrs/value/dtype", "float16", "TL0504", "F32[2]; float16[2] is stored as F16[2]"),
    ("/nodes/7/attrs/value/shape", [3], "TL0504", "F32[2]; float32[3] is stored as F32[3]"),
]


@pytest.mark.parametrize(("pointer", "value", "code", "part"), EXTERNAL, ids=[f"{k}" for k in range(len(EXTERNAL))])
def test_external_files_are_verified(pointer: str, value: Any, code: str, part: str, tmp_path: Path) -> None:
    document = with_external(tmp_path)
    from_json(document, tmp_path)
    *path, last = pointer.removeprefix("/").split("/")
    target: Any = document
    for step in path:
        target = target[int(step) if isinstance(target, list) else step.replace("~1", "/")]
    target[last.replace("~1", "/")] = value
    error = error_of(document, tmp_path)
    assert error.code == code
    assert part in str(error)
    assert (error.pointer or "").startswith(pointer.rsplit("/", 1)[0])


def test_links_out_of_the_folder_and_pipes_are_refused(tmp_path: Path) -> None:
    import os

    folder = tmp_path / "artifact"
    folder.mkdir()
    (tmp_path / "secret.safetensors").write_bytes(b"")
    (folder / "link.safetensors").symlink_to(tmp_path / "secret.safetensors")
    (folder / "loop.safetensors").symlink_to(folder / "loop.safetensors")
    (folder / "up").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe.safetensors")
    for name, code in {
        "link.safetensors": "TL0502",
        "up/secret.safetensors": "TL0502",
        "loop.safetensors": "TL0501",
        "pipe.safetensors": "TL0501",
    }.items():
        document = with_external(folder)
        document["external"][name] = {"sha256": "0" * 64, "size": 0}
        assert error_of(document, folder).code == code, name


def test_external_data_without_a_folder() -> None:
    document = changed(version_3(), "/external", {"x.safetensors": {"sha256": "0" * 64, "size": 8}})
    error = error_of(document)
    assert (error.code, error.pointer) == ("TL0501", "/external/x.safetensors")


def test_python_objects_are_as_safe_as_text() -> None:
    for document in (None, 3, "tlir", [version_1()], (), np.zeros(3), object(), {1: 2}):
        assert error_of(document).code == "TL0108"
    bad_keys = version_1() | {1: 2}
    assert error_of(bad_keys).code == "TL0202"
    assert error_of(changed(version_1(), "/nodes", tuple(version_1()["nodes"]))).code == "TL0203"
    holds_itself = version_1()
    holds_itself["nodes"].append(holds_itself)
    assert error_of(holds_itself).code == "TL0106"
    region: Document = {"input_ids": [], "output_ids": [], "nodes": []}
    region["nodes"] = [node(0, "input", [], []) | {"regions": [region, region]}]
    assert error_of(changed(version_3(), "/nodes/0/regions", [region])).code == "TL0106"
    tree: Any = None
    for _ in range(150):
        tree = {"list": [tree, tree]}
    assert error_of(changed(version_3(), "/output_tree", tree)).code == "TL0106"
    huge = 10**5000
    for pointer in ("/version", "/nodes/1/id", "/nodes/1/inputs/0", "/nodes/1/shape/0", "/nodes/2/attrs/dimensions/0"):
        assert "5000" not in error_of(changed(version_1(), pointer, huge)).message
    for pointer in ("/output_tree", "/input_tree/args/0/dict/0/0", "/formats/fp24/bias", "/samples/0/trace/0/value"):
        assert error_of(changed(version_3(), pointer, huge)).code in ("TL0204", "TL0213", "TL0215")
    assert error_of(changed(version_3(), "/nodes/2/attrs/accumulate/dtype", huge)).code == "TL0204"
    assert error_of(changed(version_1(), "/producer/flags", {"a": huge})).code == "TL0204"


@pytest.mark.parametrize("rest", [", 1", "]", "}", ', "a": 1}', " 1"])
@pytest.mark.parametrize(("start", "code"), [("NaN", "TL0105"), ("9" * 5000, "TL0204"), ("1.5", "TL0105")])
def test_what_stops_the_parser_before_a_text_that_is_no_document(
    tmp_path: Path, start: str, code: str, rest: str
) -> None:
    (tmp_path / "a.json").write_text(rest.strip() + start + rest)
    with pytest.raises(ArtifactError):
        read(tmp_path / "a.json")
    (tmp_path / "a.json").write_text(start + rest)
    with pytest.raises(ArtifactError) as caught:
        read(tmp_path / "a.json")
    assert caught.value.code in (code, "TL0103")


def test_every_code_of_reading_is_tested() -> None:
    from tlir.errors import CODES

    tested = {row[1] for row in TEXTS} | {row[3] for row in CHANGES} | {row[2] for row in EXTERNAL}
    # tested in functions of their own; TL0109 where artifacts are written, TL0217 where the text of kernels is read
    tested |= {"TL0101", "TL0109", "TL0201", "TL0210", "TL0217"}
    reading = {code for code in CODES if code[:4] in ("TL01", "TL02", "TL04", "TL05")}
    assert reading - tested == set()


def test_good_documents_are_read(tmp_path: Path) -> None:
    for k, document in enumerate([version_1(), version_2(), version_3(), with_external(tmp_path)]):
        path = tmp_path / f"{k}.json"
        path.write_text(json.dumps(document), encoding="utf-8")
        assert dumps(read(path)) == dumps(from_json(document, tmp_path))
        path.write_text("\ufeff" + json.dumps(document), encoding="utf-8")
        assert len(read(path).nodes) == len(document["nodes"])
