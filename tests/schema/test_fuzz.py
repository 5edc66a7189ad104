"""Mutated artifacts give a graph or an ArtifactError, never anything else; and a graph that is read can be written."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from schema_documents import Document
from schema_mutations import documents, texts

from tlir.errors import ArtifactError
from tlir.ir.graph import Graph
from tlir.ir.verify import type_errors
from tlir.schema import dumps, fields, from_json, read
from tlir.schema.generate import schema

VALIDATORS = {version: Draft202012Validator(schema(version)) for version in fields.VERSIONS}
FUZZ = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def checked(error: ArtifactError) -> None:
    """The error says what and where, shortly, in characters that can be printed."""
    assert error.code[:4] in ("TL01", "TL02", "TL04", "TL05")
    text = str(error)
    assert len(text) < 1200
    text.encode()
    assert all(character.isprintable() or character == "\n" for character in text)


def accepted(graph: Graph, document: Document) -> None:
    """What the reader takes, the schema takes, the type rules can look at, and the writer writes the same again."""
    VALIDATORS[document["version"]].validate(document)
    for error in type_errors(graph):
        str(error)
    text = dumps(graph)
    again = from_json(json.loads(text))
    assert dumps(again) == text


@settings(FUZZ, max_examples=600)
@given(documents())
def test_mutated_documents(document: Document) -> None:
    try:
        graph = from_json(document)
    except ArtifactError as error:
        checked(error)
    else:
        accepted(graph, document)


@settings(FUZZ, max_examples=400)
@given(texts())
def test_mutated_texts(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "mutated.json"
    path.write_bytes(data)
    try:
        graph = read(path)
    except ArtifactError as error:
        checked(replace(error, file=None))
    else:
        accepted(graph, json.loads(data.decode("utf-8-sig")))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(["tlir", "input"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["format", "nodes", "x"]), inner),
    max_leaves=20,
)


@settings(FUZZ, max_examples=200)
@given(VALUES)
def test_any_json_at_all(value: Any) -> None:
    with pytest.raises(ArtifactError) as caught:
        from_json(value)
    checked(caught.value)


@settings(FUZZ, max_examples=300)
@given(
    VALUES, st.sampled_from([*sorted(fields.DOCUMENT_FIELDS | fields.DOCUMENT_FIELDS_3)]), st.sampled_from([1, 2, 3])
)
def test_any_json_as_any_field(value: Any, field: str, version: int) -> None:
    document = {"format": "tlir", "version": version, "name": "", "nodes": [], "input_ids": [], "output_ids": []}
    document[field] = value
    try:
        graph = from_json(document)
    except ArtifactError as error:
        checked(error)
    else:
        accepted(graph, document)


def test_the_corpus_holds_both_good_and_bad_artifacts(tmp_path: Path) -> None:
    """The properties above are not vacuous: of the mutated documents some are still accepted."""
    outcomes = set()

    @settings(FUZZ, max_examples=200, database=None, derandomize=True)
    @given(documents())
    def collect(document: Document) -> None:
        try:
            from_json(document)
            outcomes.add("accepted")
        except ArtifactError as error:
            outcomes.add(error.code)

    collect()
    assert "accepted" in outcomes
    assert len(outcomes) > 12
