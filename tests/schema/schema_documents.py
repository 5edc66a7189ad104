"""Valid documents, one per version and one per feature, which the tests read, break and mutate."""

from __future__ import annotations

import hashlib
import struct
from copy import deepcopy
from pathlib import Path
from typing import Any

Document = dict[str, Any]


def node(id: int, op: str, inputs: list[Any], shape: list[int], dtype: str = "float32", **rest: Any) -> Document:
    return {"id": id, "op": op, "inputs": inputs, "shape": shape, "dtype": dtype, **rest}


def words(dtype: str, shape: list[int], text: str) -> Document:
    return {"dtype": dtype, "shape": shape, "words": text}


def version_1() -> Document:
    """x * x summed, with a sample: one input, one output."""
    return {
        "format": "tlir",
        "version": 1,
        "name": "square_sum",
        "input_ids": [0],
        "output_ids": [2],
        "nodes": [
            node(0, "input", [], [4], name="x"),
            node(1, "multiply", [0, 0], [4], source={"file": "model.py", "line": 3, "function": "f"}),
            node(2, "reduce", [1], [], attrs={"dimensions": [0], "reducer": "add"}, name="total"),
        ],
        "producer": {
            "frontend": "jax",
            "frontend_version": "0.10.2",
            "platform": "cpu",
            "capture": "1",
            "outputs": "op-by-op",
            "flags": {"x64": False, "threads": 2, "precision": "highest"},
        },
        "samples": [
            {
                "inputs": [words("float32", [4], "3f800000 40000000 40400000 40800000")],
                "outputs": [words("float32", [], "41f00000")],
            }
        ],
        "tolerance": "1e-3",
    }


def version_2() -> Document:
    """Two inputs and two outputs, constants of several dtypes in both encodings."""
    return {
        "format": "tlir",
        "version": 2,
        "name": "",
        "input_ids": [0, 1],
        "output_ids": [3, 6],
        "nodes": [
            node(0, "input", [], [2, 3], name="x"),
            node(1, "input", [], [3], "float32", name="params['w']"),
            node(2, "broadcast_in_dim", [1], [2, 3], attrs={"broadcast_dimensions": [1]}),
            node(3, "add", [0, 2], [2, 3], name="scaled"),
            node(4, "constant", [], [3], "bool", attrs={"value": words("bool", [3], "1 0 1")}),
            node(5, "constant", [], [2], "int4", attrs={"value": {"dtype": "int4", "shape": [2], "base64": "Dwc="}}),
            node(6, "convert", [5], [2], "bfloat16"),
        ],
    }


def version_3() -> Document:
    """Trees, a declared format, accumulation, wide and complex constants, a value as [id, 0], and a trace."""
    one = words("float16", [], "3c00")
    return {
        "format": "tlir",
        "version": 3,
        "name": "mean",
        "formats": {"fp24": {"exponent_bits": 7, "fraction_bits": 16}},
        "input_ids": [0, 1],
        "output_ids": [2, 4],
        "input_tree": {"args": [{"dict": [["a", 0], [7, None]]}], "kwargs": [["scale", {"list": [1]}]]},
        "output_tree": {"namedtuple": "Result", "fields": [["mean", 0], ["wide", {"tuple": [1]}]]},
        "nodes": [
            node(0, "input", [], [4], "float16", name="x['a']"),
            node(1, "input", [], [], "float16", name="scale"),
            node(
                2,
                "reduce",
                [[0, 0]],
                [],
                "float16",
                attrs={
                    "dimensions": [0],
                    "reducer": "add",
                    "accumulate": {"dtype": "float32", "order": "blocked(2)", "fma": False},
                },
            ),
            node(3, "constant", [], [1], "float128", attrs={"value": words("float128", [1], "3fff" + "0" * 28)}),
            node(4, "negate", [3], [1], "float128"),
            node(5, "constant", [], [1], "fp24", attrs={"value": words("fp24", [1], "3f0000")}),
            node(6, "constant", [], [], "complex<fp24>", attrs={"value": words("complex<fp24>", [], "3f0000 800001")}),
        ],
        "samples": [
            {
                "inputs": [words("float16", [4], "0000 0000 3c00 0000"), one],
                "outputs": [one, words("float128", [1], "bfff" + "0" * 28)],
                "trace": [{"value": 2, "tensor": one}],
            }
        ],
    }


def regions() -> Document:
    """A scan whose body adds slices up, and a case in a branch of a case: several results, regions within regions."""
    body = [node(0, "input", [], [], name="total"), node(1, "input", [], []), node(2, "add", [0, 1], [])]
    step = {"input_ids": [0, 1], "output_ids": [2, 0], "nodes": body}
    scalar = {"shape": [], "dtype": "float32"}
    argument = node(0, "input", [], [])
    identity = {"input_ids": [0], "output_ids": [0], "nodes": [argument]}
    negated = {"input_ids": [0], "output_ids": [1], "nodes": [argument, node(1, "negate", [0], [])]}
    index = node(1, "constant", [], [], "int32", attrs={"value": words("int32", [], "00000001")})
    inner = node(2, "case", [1, 0], [], regions=[identity, negated])
    nested = {"input_ids": [0], "output_ids": [2], "nodes": [argument, index, inner]}
    scan = {
        "id": 2,
        "op": "scan",
        "inputs": [0, 1],
        "attrs": {"length": 3, "num_consts": 0, "num_carry": 1},
        "results": [scalar, {"shape": [3], "dtype": "float32"}],
        "regions": [step],
    }
    return {
        "format": "tlir",
        "version": 3,
        "name": "running",
        "input_ids": [0, 1, 3],
        "output_ids": [4, [2, 1]],
        "nodes": [
            node(0, "input", [], [], name="start"),
            node(1, "input", [], [3], name="x"),
            scan,
            node(3, "input", [], [], "bool", name="which"),
            node(4, "case", [3, 2], [], regions=[identity, nested]),
        ],
        "samples": [
            {
                "inputs": [
                    words("float32", [], "00000000"),
                    words("float32", [3], "3f800000 3f800000 3f800000"),
                    words("bool", [], "1"),
                ],
                "outputs": [words("float32", [], "c0400000"), words("float32", [3], "00000000 3f800000 40000000")],
                "trace": [{"value": [2, 1], "tensor": words("float32", [3], "00000000 3f800000 40000000")}],
            }
        ],
    }


def with_external(folder: Path) -> Document:
    """A constant in ``weights/w.safetensors``, which is written into the folder."""
    header = b'{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
    header += b" " * (-len(header) % 8)
    data = len(header).to_bytes(8, "little") + header + struct.pack("<2f", 1.0, -2.0)
    (folder / "weights").mkdir(exist_ok=True)
    (folder / "weights" / "w.safetensors").write_bytes(data)
    document = version_3()
    value = {"dtype": "float32", "shape": [2], "file": "weights/w.safetensors", "tensor": "w"}
    document["nodes"].append(node(7, "constant", [], [2], attrs={"value": value}))
    document["external"] = {"weights/w.safetensors": {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}}
    return document


ALL = (version_1, version_2, version_3, regions)


def changed(document: Document, pointer: str, value: Any) -> Document:
    """A copy with the value at the JSON pointer replaced; added where the last step is a new key or ``-``."""
    document = deepcopy(document)
    *path, last = pointer.removeprefix("/").split("/")
    target: Any = document
    for step in path:
        target = target[int(step) if isinstance(target, list) else step]
    if isinstance(target, list):
        if last == "-":
            target.append(value)
        else:
            target[int(last)] = value
    else:
        target[last] = value
    return document


def without(document: Document, pointer: str) -> Document:
    """A copy without the value at the JSON pointer."""
    document = deepcopy(document)
    *path, last = pointer.removeprefix("/").split("/")
    target: Any = document
    for step in path:
        target = target[int(step) if isinstance(target, list) else step]
    del target[int(last) if isinstance(target, list) else last]
    return document
