"""docs/json-output.md names every field that the documents have."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from cli_artifacts import ROOT, identity, ill_typed, squares

from tlir.cli import COMMANDS


def keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, child in value.items():
            yield key
            yield from keys(child)
    elif isinstance(value, list):
        for child in value:
            yield from keys(child)


def test_every_field_is_documented(tlir, write, tmp_path) -> None:
    page = (ROOT / "docs" / "json-output.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"`([A-Za-z_]+)`", page))
    write("a/bad.json", ill_typed())
    write("a/broken.json", "{")
    write("a/planted.json", squares(recorded=31))
    folder = str(tmp_path / "a")
    large = write("large.json", identity(np.zeros(2000, np.float32), np.zeros(2000, bool)))
    planted = str(tmp_path / "a" / "planted.json")
    texts = [tlir(command, "--json", folder).stdout for command in ("check", "compare")]
    texts += [tlir("run", "--json", "--flags", path).stdout for path in (large, planted)]
    for text in texts:
        found = set(keys(json.loads(text)))
        assert found <= documented, found - documented
    assert {"check", "compare", "run"} <= set(COMMANDS)


def test_an_output_is_read_as_an_input(tlir, write, tmp_path) -> None:
    path = write("id.json", identity(np.float32([1.5, -0.0])))
    document = json.loads(tlir("run", "--json", path).stdout)
    value = write("value.json", document["outputs"][0])
    again = tlir("run", "--json", path, "--input", f"a={value}").stdout
    assert json.loads(again)["outputs"] == document["outputs"]
