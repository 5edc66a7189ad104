"""One artifact per version, written once and read forever. A file here is never edited; a new version adds one."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from tlir.ir import tree
from tlir.ir.graph import Ref
from tlir.ir.ops import Accumulate
from tlir.ir.types import NAMED
from tlir.ir.verify import type_errors
from tlir.schema import dumps, fields, from_json, lowest_version, read, to_json, upgrade

FOLDER = Path(__file__).parent / "frozen"

FILES = {
    "v1.json": "09ac66fba314d4db925154e7470408a9ae82ff08b51c02158d0cf0e43ea4b010",
    "v2.json": "731038cbd88348a9f8db193ef767249f283e7f78ff845a4410d3b090771a7856",
    "v3.json": "bd9b740dff0deab58c2ded7901109a42abf4c11ff77e0f6b2d496768e40940cd",
    "v3_regions.json": "70b6bf91d61ec19cba281002ccd4b1a844a0a4afe2cfc316eac9768b7355a2e1",
    "v3.safetensors": "ff9a3c1eb045b13f1d02650d01ed70aa08cf795cdf0b03dd7a02a4de755a5ebf",
}


@pytest.mark.parametrize("name", FILES)
def test_the_files_are_the_ones_that_were_frozen(name: str) -> None:
    assert hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() == FILES[name]


def test_every_version_has_one() -> None:
    assert {f"v{version}.json" for version in fields.VERSIONS} <= FILES.keys()


def test_version_1() -> None:
    graph = read(FOLDER / "v1.json")
    assert (graph.name, graph.tolerance, lowest_version(graph)) == ("square_sum", "1e-3", 1)
    assert [str(node) for node in graph.nodes] == ["0 input 'x'", "1 multiply", "2 reduce 'total'"]
    assert str(graph.nodes[1].source) == "model.py:3 in f"
    assert graph.producer is not None
    assert graph.producer.flags == {"x64": False, "threads": 2, "precision": "highest"}
    assert graph.samples[0].inputs[0].to_numpy().tolist() == [1, 2, 3, 4]
    assert graph.samples[0].outputs[0].to_numpy() == 30
    assert type_errors(graph) == []


def test_version_2() -> None:
    graph = read(FOLDER / "v2.json")
    assert lowest_version(graph) == 2
    assert graph.body.input_names() == ["x", "params['w']"]
    assert graph.body.outputs == (Ref(3), Ref(6))
    assert graph.nodes[4].attrs["value"].to_numpy().tolist() == [True, False, True]
    assert graph.nodes[5].attrs["value"].words.tolist() == [15, 7]
    assert type_errors(graph) == []


def test_version_3() -> None:
    graph = read(FOLDER / "v3.json")
    assert lowest_version(graph) == 3
    assert graph.formats["fp24"].width == 24
    assert graph.nodes[2].attrs["accumulate"] == Accumulate(NAMED["float32"], "blocked", 2, False)
    assert graph.nodes[3].attrs["value"].words.tolist() == [[0, 0x3FFF << 48]]
    assert graph.nodes[6].attrs["value"].words.tolist() == [0x3F0000, 0x800001]
    assert graph.nodes[7].attrs["value"].words.view(np.float32).tolist() == [1, -2]
    assert tree.leaf_paths(graph.input_tree) == ["[0]['a']", "scale[0]"]
    assert tree.leaf_paths(graph.output_tree, "out") == ["out.mean", "out.wide[0]"]
    trace = graph.samples[0].trace
    assert trace is not None
    assert [(ref, tensor.words.tolist()) for ref, tensor in trace.items()] == [(Ref(2), 0x3C00)]
    assert type_errors(graph) == []


def test_version_3_with_regions() -> None:
    graph = read(FOLDER / "v3_regions.json")
    scan, case = graph.nodes[2], graph.nodes[4]
    assert [str(type) for type in scan.types] == ["float32[]", "float32[3]"]
    assert scan.regions[0].outputs == (Ref(2), Ref(0))
    assert graph.body.outputs == (Ref(4), Ref(2, 1))
    assert [len(region.nodes) for region in case.regions] == [1, 3]
    assert [node.op for node in case.regions[1].nodes[2].regions[1].nodes] == ["input", "negate"]
    assert list(graph.samples[0].trace or {}) == [Ref(2, 1)]
    assert type_errors(graph) == []


@pytest.mark.parametrize("name", ["v1.json", "v2.json", "v3_regions.json"])
def test_canonical_text_is_written_again_byte_for_byte(name: str) -> None:
    path = FOLDER / name
    assert dumps(read(path)).encode() == path.read_bytes()


@pytest.mark.parametrize("version", fields.VERSIONS)
def test_upgrading_keeps_the_graph(version: int) -> None:
    graph = read(FOLDER / f"v{version}.json")
    upgraded = upgrade(graph)
    assert upgraded["version"] == 3
    assert to_json(from_json(upgraded)) == to_json(graph)
