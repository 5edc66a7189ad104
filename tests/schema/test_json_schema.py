"""The published JSON Schemas: up to date, valid, and in agreement with the reader."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from schema_documents import ALL, Document, changed, version_1, version_2, version_3, with_external, without

from tlir.ir.ops import OPERATIONS
from tlir.schema import fields, generate


@pytest.mark.parametrize("version", fields.VERSIONS)
def test_the_files_are_up_to_date(version: int) -> None:
    text = generate.path(version).read_text(encoding="utf-8")
    assert text == generate.text(version), "run `python -m tlir.schema.generate`"


@pytest.mark.parametrize("version", fields.VERSIONS)
def test_the_schemas_are_schemas(version: int) -> None:
    schema = json.loads(generate.path(version).read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    assert schema["$schema"].endswith("2020-12/schema")
    references = set(_references(schema))
    assert {f"#/$defs/{name}" for name in schema["$defs"]} >= references
    assert all(f"op_{name}" in schema["$defs"] for name in OPERATIONS)


def _references(value: object) -> list[str]:
    if isinstance(value, list):
        return [found for item in value for found in _references(item)]
    if isinstance(value, dict):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [found for item in value.values() for found in _references(item)]
    return []


def valid(document: Document) -> bool:
    return Draft202012Validator(generate.schema(document["version"])).is_valid(document)


@pytest.mark.parametrize("make", ALL)
def test_good_documents_are_valid(make: Callable[[], Document]) -> None:
    assert valid(make())


def test_external_tensors_are_valid(tmp_path: Path) -> None:
    assert valid(with_external(tmp_path))


@pytest.mark.parametrize(
    "document",
    [
        version_3() | {"version": 2},
        version_2() | {"version": 1},
        version_1() | {"more": 1},
        without(version_1(), "/nodes"),
        without(version_1(), "/nodes/1/shape"),
        without(version_1(), "/nodes/2/attrs/reducer"),
        changed(version_1(), "/nodes/1/op", "multply"),
        changed(version_1(), "/nodes/1/dtype", "float31"),
        changed(version_1(), "/nodes/1/shape", [-1]),
        changed(version_1(), "/nodes/1/inputs", [0]),
        changed(version_1(), "/nodes/1/attrs", {"axis": 0}),
        changed(version_1(), "/nodes/2/attrs/dimensions", [0, 0]),
        changed(version_1(), "/nodes/2/attrs/accumulate", {"fma": True}),
        changed(version_1(), "/samples/0/inputs/0/base64", ""),
        changed(version_1(), "/tolerance", "-1"),
        changed(version_3(), "/nodes/2/attrs/accumulate/order", "blocked(0)"),
        changed(version_3(), "/nodes/2/results", []),
        changed(version_3(), "/formats/float32", {"exponent_bits": 5, "fraction_bits": 2}),
        changed(version_3(), "/input_tree", {"list": [0, 1]}),
        changed(version_3(), "/output_tree", {"set": [0, 1]}),
    ],
    ids=range(20),
)
def test_the_schema_refuses_what_is_wrong_by_its_form(document: Document) -> None:
    assert not valid(document)


def test_version_3_declares_trees_regions_formats_and_accumulation() -> None:
    definitions = generate.schema(3)["$defs"]
    assert {"tree", "call", "body", "format", "accumulate"} <= definitions.keys()
    assert not {"tree", "call", "body", "format", "accumulate"} & generate.schema(2)["$defs"].keys()
    assert "regions" in definitions["node"]["properties"]
