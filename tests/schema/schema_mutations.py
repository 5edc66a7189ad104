"""Mutations of documents and of their text, drawn by hypothesis."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

from hypothesis import strategies as st
from schema_documents import ALL, Document

# What a field may be turned into: wrong types, integers beyond every limit, names from elsewhere in the format
HOSTILE: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 3, 63, 64, 2**31, 2**40, 2**60, -(2**60), 2**63, 2**64, 2**100, -(2**100)),
    *(0.0, 1.0, -0.5, 1e308, float("nan"), float("inf")),
    *("", "x", "float32", "int4", "bool", "complex64", "complex<float16>", "complex<complex64>", "fp24", "add"),
    *("constant", "input", "reduce", "negate", "reshape", "pairwise", "blocked(0)", "1e-3", "3f800000", "AAAA", "\0"),
    *("\ud800", "\u0661", "a" * 300, "params['w']", "../x.safetensors"),
    *([], [0], [0, 0], [-1], [2**60], [2**100], [[]], ["x"], [None], [0, 1], [1, 0], [[0, 0]], [[0, 1]], [1] * 70),
    *({}, {"list": [0]}, {"x": 1}, {"args": [0], "kwargs": []}, {"order": "sequential"}, {"dtype": "float64"}),
    {"dtype": "float32", "shape": [], "words": "3f800000"},
    {"dtype": "bool", "shape": [0], "base64": ""},
    {"exponent_bits": 5, "fraction_bits": 2},
    {"file": "a.py", "line": 1, "function": ""},
    {"id": 1, "op": "negate", "inputs": [0], "shape": [4], "dtype": "float32"},
]

KEYS = [
    *("id", "op", "inputs", "attrs", "shape", "dtype", "name", "source", "results", "regions", "version", "format"),
    *("input_ids", "output_ids", "nodes", "producer", "samples", "tolerance", "input_tree", "output_tree", "formats"),
    *("external", "words", "base64", "file", "tensor", "trace", "value", "accumulate", "list", "tuple", "dict", "x"),
]


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) of a document, outer ones first."""
    found: list[tuple[Any, Any]] = []
    if type(value) in (dict, list):
        for key in list(value) if type(value) is dict else range(len(value)):
            found.append((value, key))
            found += places(value[key])
    return found


@st.composite
def documents(draw: st.DrawFn) -> Document:
    """A valid document with one to four places broken: dropped, duplicated, retyped, perturbed, retagged, exchanged,
    reordered, or taken from another document."""
    document = deepcopy(draw(st.sampled_from(ALL))())
    for _ in range(draw(st.integers(1, 4))):
        everywhere = places(document)
        if not everywhere:
            break
        container, key = draw(st.sampled_from(everywhere))
        match draw(st.integers(0, 8)):
            case 0:
                del container[key]
            case 1 if type(container) is list:
                container.insert(draw(st.integers(0, len(container))), deepcopy(container[key]))
            case 1:
                container[draw(st.sampled_from(KEYS))] = deepcopy(container[key])
            case 2 | 3:
                container[key] = deepcopy(draw(st.sampled_from(HOSTILE)))
            case 4 if type(container[key]) is int:
                container[key] += draw(st.sampled_from([-1, 1, -(2**60), 2**60, 2**100]))
            case 4 if type(container[key]) is str:
                text = container[key]
                at = draw(st.integers(0, len(text)))
                container[key] = text[:at] + draw(st.text(max_size=2)) + text[at + 1 :]
            case 4 if type(container[key]) is list:
                container[key].append(deepcopy(draw(st.sampled_from(HOSTILE))))
            case 5 if type(container) is dict:
                container[draw(st.sampled_from(KEYS))] = container.pop(key)
            case 6:
                other, place = draw(st.sampled_from(everywhere))
                # copies, so that nothing comes to hold itself
                container[key], other[place] = deepcopy(other[place]), deepcopy(container[key])
            case 7 if type(container[key]) is list:
                container[key].reverse()
            case 8:
                donor, place = draw(st.sampled_from(places(draw(st.sampled_from(ALL))())))
                container[key] = deepcopy(donor[place])
    return document


@st.composite
def texts(draw: st.DrawFn) -> bytes:
    """The bytes of a document, whole or mutated, with bytes cut, flipped, inserted, repeated or dropped."""
    document = draw(st.one_of(documents(), st.sampled_from(ALL).map(lambda make: make())))
    data = json.dumps(document, ensure_ascii=draw(st.booleans())).encode("utf-8", "surrogatepass")
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(data)))
        match draw(st.integers(0, 4)):
            case 0:
                data = data[:at]
            case 1:
                data = data[:at] + draw(st.binary(max_size=3)) + data[at + 1 :]
            case 2:
                piece = draw(st.sampled_from([b",", b"}", b"]", b'"', b"[", b"NaN", b"1.5", b"\\", b"9" * 5000, b"-"]))
                data = data[:at] + piece + data[at:]
            case 3:
                data = data[:at] + data[at // 2 :]
            case 4:
                data = data[:at] + data[at + draw(st.integers(1, 40)) :]
    return data
