"""What a hostile or broken file costs in memory, measured: little beside the file itself."""

from __future__ import annotations

import base64
import hashlib
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file
from schema_documents import Document, changed, node, version_1, version_2, version_3, words

from tlir.errors import ArtifactError
from tlir.schema import from_json, read

MIB = 2**20
BIG = 4 * MIB


def text_of(document: Document) -> bytes:
    return json.dumps(document).encode()


def with_constant(value: Document) -> Document:
    document = version_1()
    document["nodes"].append(node(3, "constant", [], value["shape"], value["dtype"], attrs={"value": value}))
    return document


LARGE = text_of(with_constant({"dtype": "uint8", "shape": [BIG], "base64": "A" * (BIG // 3 * 4)}))

# What the file holds, its code, and how many times its own size may be allocated besides a few megabytes. The bytes and
# the text are in memory together for a moment, then the text and the document; Python's error about bytes that are not
# UTF-8 holds a copy of them.
CASES: dict[str, tuple[bytes, str, int]] = {
    "cut": (LARGE[: BIG // 2], "TL0103", 2),
    "cut in a character": (LARGE[: BIG // 2] + b"\xc3", "TL0102", 3),
    "not UTF-8": (LARGE.replace(b"AAAA", b"AA\xffA", 1), "TL0102", 3),
    "deep lists": (b"[" * BIG, "TL0106", 2),
    "deep objects": (b'{"a":' * (BIG // 5), "TL0106", 2),
    "duplicate key at the end": (LARGE[:-1] + b',"name":""}', "TL0104", 3),
    "NaN at the end": (LARGE[:-1] + b',"other":NaN}', "TL0105", 3),
    "number of megabytes": (b'{"format":"tlir","version":' + b"9" * BIG + b"}", "TL0204", 3),
    "wrong number of bytes": (LARGE, "TL0401", 3),
    "long op": (text_of(changed(version_1(), "/nodes/1/op", "x" * BIG)), "TL0205", 3),
    "long dtype": (text_of(changed(version_1(), "/nodes/1/dtype", "x" * BIG)), "TL0206", 3),
    "long key": (text_of(changed(version_1(), "/" + "x" * BIG, 0)), "TL0202", 3),
    "long words": (text_of(with_constant(words("float32", [3], "0" * BIG))), "TL0401", 3),
    "a space at the end": (text_of(with_constant(words("bool", [BIG // 2], "1 " * (BIG // 2)))), "TL0401", 3),
    "a last word that is wrong": (
        text_of(with_constant(words("bool", [BIG // 2], "1 " * (BIG // 2 - 1) + "g"))),
        "TL0403",
        4,
    ),
    "many elements": (text_of(changed(version_1(), "/nodes/1/shape", [2**60])), "TL0216", 1),
    "many words": (text_of(changed(version_1(), "/samples/0/inputs/0/shape", [2**40])), "TL0401", 1),
    "many wide words": (text_of(with_constant(words("float256", [2**40], ""))), "TL0401", 1),
    "many bytes": (text_of(with_constant({"dtype": "uint64", "shape": [2**40], "base64": ""})), "TL0401", 1),
    "negative size": (text_of(changed(version_1(), "/nodes/1/shape", [-1])), "TL0204", 1),
    "cycle": (text_of(changed(version_1(), "/nodes/1/inputs", [2, 2])), "TL0208", 1),
    "arity": (text_of(changed(version_1(), "/nodes/1/inputs", [0] * 100_000)), "TL0209", 6),
    "unknown version": (text_of(version_1() | {"version": 2**62}), "TL0107", 1),
    "attribute out of range": (text_of(changed(version_1(), "/nodes/2/attrs/dimensions", [2**62])), "TL0204", 1),
    "widest format": (
        text_of(
            changed(version_3(), "/formats/widest", {"exponent_bits": 30, "fraction_bits": 4096})
            | {"nodes": [node(0, "constant", [], [2**40], "widest", attrs={"value": words("widest", [2**40], "0")})]}
        ),
        "TL0401",
        1,
    ),
}


def peak_of(action: Callable[[], object]) -> int:
    """Bytes allocated at once while the action runs, which must end in an ArtifactError; its code is the result."""
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", CASES)
def test_a_bad_file_costs_little_memory(name: str, tmp_path: Path) -> None:
    data, code, times = CASES[name]
    path = tmp_path / "a.json"
    path.write_bytes(data)
    size = len(data)

    def action() -> None:
        with pytest.raises(ArtifactError) as caught:
            read(path)
        assert caught.value.code == code
        assert len(str(caught.value)) < 1200

    peak = peak_of(action)
    assert peak < times * size + 3 * MIB, f"{peak / MIB:.1f} MiB for a file of {size / MIB:.1f} MiB"


def test_external_words_are_never_copied(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    save_file({"w": np.zeros(8 * MIB, np.float32)}, path)
    data = path.read_bytes()
    described = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
    value = {"dtype": "float32", "shape": [8 * MIB], "file": path.name, "tensor": "w"}
    document = with_constant(value) | {"version": 3, "external": {path.name: described}}
    del data
    peak = peak_of(lambda: from_json(document, tmp_path))
    assert peak < 4 * MIB, f"{peak / MIB:.1f} MiB for 32 MiB of weights"


def test_a_large_header_that_is_a_lie_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    path.write_bytes((90 * MIB).to_bytes(8, "little") + b"{}")
    described = {"sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "size": path.stat().st_size}
    document = version_2() | {"version": 3, "external": {path.name: described}}

    def action() -> None:
        with pytest.raises(ArtifactError) as caught:
            from_json(document, tmp_path)
        assert caught.value.code == "TL0504"

    assert peak_of(action) < 3 * MIB


class _Held(dict[str, object]):
    """A tensor of a document of Python objects that makes its text when it is read."""

    def __init__(self, described: Document, array: np.ndarray) -> None:
        super().__init__(described, base64="")
        self.array = array
        self.read = 0

    def __getitem__(self, key: str) -> object:
        if key != "base64":
            return super().__getitem__(key)
        self.read += 1
        return base64.b64encode(self.array).decode()


def _frozen(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def test_held_arrays_are_read_without_text_or_copy() -> None:
    array = _frozen(np.arange(2 * MIB, dtype="<u4"))
    held = _Held({"dtype": "float32", "shape": [2, MIB]}, array)
    document = with_constant(held)
    tracemalloc.start()
    graph = from_json(document)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert held.read == 0
    assert peak < MIB
    tensor = graph.nodes[3].attrs["value"]
    assert tensor.words.shape == (2, MIB)
    assert np.shares_memory(tensor.words, array)
    assert (tensor.words.reshape(-1) == array).all()


def test_held_arrays_that_can_change_are_copied() -> None:
    for array in (np.arange(8, dtype="<u2"), _frozen(np.arange(16, dtype="<u2")[:8])):
        document = with_constant(_Held({"dtype": "bfloat16", "shape": [8]}, array))
        tensor = from_json(document).nodes[3].attrs["value"]
        assert tensor.words.tolist() == list(range(8))
        assert not np.shares_memory(tensor.words, array)


@pytest.mark.parametrize(
    "array", [np.arange(8, dtype="<u4"), np.arange(8, dtype=">u2"), np.arange(7, dtype="<u2"), np.ones((2, 4), "<u2")]
)
def test_held_arrays_of_another_form_are_read_as_text(array: np.ndarray) -> None:
    held = _Held({"dtype": "uint16", "shape": [8]}, array)
    if array.nbytes == 16:
        tensor = from_json(with_constant(held)).nodes[3].attrs["value"]
        assert tensor.words.tobytes() == array.tobytes()
    else:
        with pytest.raises(ArtifactError, match="TL0401"):
            from_json(with_constant(held))
    assert held.read == 1


def test_held_words_beyond_their_dtype() -> None:
    with pytest.raises(ArtifactError, match="TL0402"):
        from_json(with_constant(_Held({"dtype": "bool", "shape": [3]}, _frozen(np.array([0, 1, 2], np.uint8)))))
