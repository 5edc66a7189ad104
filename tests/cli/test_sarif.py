"""``tlir check --format sarif`` against the parts of the schema of SARIF 2.1.0 (OASIS, Appendix of the standard) that
describe what is written: required properties, no others than the standard's, and their ranges."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

ROOT = Path(__file__).resolve().parents[2]


def closed(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "required": required, "properties": properties}


def several(kind: str, unique: bool = False) -> dict[str, Any]:
    return {"type": "array", "items": {"$ref": f"#/definitions/{kind}"}, "uniqueItems": unique}


TEXT = {"type": "string"}
INDEX = {"type": "integer", "minimum": -1}
SCHEMA: dict[str, Any] = closed(
    ["version", "runs"],
    **{"$schema": {"type": "string", "format": "uri"}, "version": {"enum": ["2.1.0"]}, "runs": several("run")},
)
SCHEMA["definitions"] = {
    "run": closed(["tool"], tool={"$ref": "#/definitions/tool"}, results=several("result")),
    "tool": closed(["driver"], driver={"$ref": "#/definitions/component"}),
    "component": closed(["name"], name=TEXT, rules=several("descriptor", unique=True)),
    "descriptor": closed(["id"], id=TEXT, shortDescription={"$ref": "#/definitions/message"}),
    "message": closed(["text"], text=TEXT),
    "result": closed(
        ["message"],
        ruleId=TEXT,
        ruleIndex=INDEX,
        level={"enum": ["none", "note", "warning", "error"]},
        message={"$ref": "#/definitions/message"},
        locations=several("location"),
        relatedLocations=several("location", unique=True),
    ),
    "location": closed(
        [],
        id=INDEX,
        physicalLocation={"$ref": "#/definitions/physical"},
        logicalLocations=several("logical", unique=True),
    ),
    "physical": closed(
        ["artifactLocation"],
        artifactLocation=closed([], uri={"type": "string", "format": "uri-reference"}),
        region=closed([], startLine={"type": "integer", "minimum": 1}),
    ),
    "logical": closed([], fullyQualifiedName=TEXT),
}


@pytest.mark.parametrize("name", ["edited_dtype.json", "wrong_output.json", "broken.json", "odd name %<>.json", ""])
def test_what_is_written_has_the_form_of_the_standard(tlir: Any, tmp_path: Path, name: str) -> None:
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "odd name %<>.json").write_text((ROOT / "examples/artifacts/edited_dtype.json").read_text())
    path = ROOT / "examples" / "artifacts" / name if name[:1] in "ew" and name else tmp_path / name
    log = json.loads(tlir("check", "--format", "sarif", str(path)).stdout)
    jsonschema.validate(log, SCHEMA)
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert all(rules[result["ruleIndex"]]["id"] == result["ruleId"] for result in run["results"])
    if name in ("edited_dtype.json", "broken.json"):
        assert any(result["level"] == "error" for result in run["results"])
    assert " " not in "".join(
        result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in run["results"]
    )
