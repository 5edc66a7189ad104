"""Artifacts for the tests of the command line and the library, written out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]


def tensor(array: Any) -> dict[str, Any]:
    """The JSON of a float32, int32 or bool array."""
    array = np.asarray(array)
    words = array.astype("<u1") if array.dtype == bool else array.view(f"<u{array.dtype.itemsize}")
    digits = 1 if array.dtype == bool else 2 * array.dtype.itemsize
    text = " ".join(f"{int(word):0{digits}x}" for word in words.reshape(-1))
    return {"dtype": array.dtype.name, "shape": list(array.shape), "words": text}


def squares(values: Sequence[float] = (1, 2, 3, 4), recorded: float = 30) -> dict[str, Any]:
    """The sum of squares with a sample; ``recorded`` is what the frontend is said to have returned."""
    x = np.array(values, np.float32)
    source = {"file": "model.py", "line": 12, "function": "loss"}
    shape = list(x.shape)
    return {
        "format": "tlir",
        "version": 1,
        "name": "squares",
        "input_ids": [0],
        "output_ids": [2],
        "nodes": [
            {"id": 0, "op": "input", "inputs": [], "shape": shape, "dtype": "float32", "name": "x"},
            {"id": 1, "op": "multiply", "inputs": [0, 0], "shape": shape, "dtype": "float32", "source": source},
            {
                "id": 2,
                "op": "reduce",
                "inputs": [1],
                "attrs": {"dimensions": [0], "reducer": "add"},
                "shape": [],
                "dtype": "float32",
                "source": source,
            },
        ],
        "producer": {"frontend": "jax", "frontend_version": "1.2", "outputs": "op-by-op"},
        "samples": [{"inputs": [tensor(x)], "outputs": [tensor(np.float32(recorded))]}],
    }


def ill_typed() -> dict[str, Any]:
    document = squares()
    document["nodes"][1]["dtype"] = "float64"
    return document


def identity(*arrays: Any) -> dict[str, Any]:
    """A graph that returns its inputs a, b, … as they are."""
    arrays = tuple(np.asarray(array) for array in arrays)
    nodes = [
        {
            "id": k,
            "op": "input",
            "inputs": [],
            "shape": list(array.shape),
            "dtype": array.dtype.name,
            "name": "abcdef"[k],
        }
        for k, array in enumerate(arrays)
    ]
    ids = list(range(len(arrays)))
    sample = {"inputs": [tensor(array) for array in arrays], "outputs": [tensor(array) for array in arrays]}
    return {
        "format": "tlir",
        "version": 2,
        "name": "identity",
        "input_ids": ids,
        "output_ids": ids,
        "nodes": nodes,
        "samples": [sample],
    }
