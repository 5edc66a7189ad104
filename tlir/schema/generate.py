"""The JSON Schemas of the versions, generated from the declarations of the operations.

``python -m tlir.schema.generate`` writes ``v1.json``, ``v2.json`` and ``v3.json`` beside this file. They describe the
form of an artifact for other programs; what needs arithmetic (ids, word counts, types) only the reader decides, so
what the reader accepts the schema accepts, and not the reverse.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tlir.floatlib.format import MAX_BIAS, MAX_EXPONENT_BITS, MAX_FRACTION_BITS, NAN_CONVENTIONS
from tlir.ir.ops import OPERATIONS, Operation
from tlir.ir.ops.attributes import Accumulation
from tlir.ir.types import MAX_ELEMENTS, MAX_RANK, NAMED, complex_of
from tlir.schema import fields

Schema = dict[str, Any]

FOLDER = Path(__file__).parent
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_NAME = r"[A-Za-z_][A-Za-z0-9_]{0,63}"


def schema(version: int) -> Schema:
    """The JSON Schema (draft 2020-12) of this version of the format."""
    document = _closed(
        {
            "format": {"const": fields.FORMAT},
            "version": {"const": version},
            "name": _ref("label"),
            "input_ids": _exactly_one_in_1(_ids(), version),
            "output_ids": _exactly_one_in_1(_values(), version),
            "nodes": _list(_ref("node")),
            "producer": _ref("producer"),
            "samples": _list(_ref("sample")),
            "tolerance": {"type": "string", "pattern": fields.TOLERANCE_PATTERN},
            **(_document_3() if version >= 3 else {}),
        },
        fields.DOCUMENT_REQUIRED,
    )
    definitions = {
        "label": {"type": "string", "pattern": fields.LABEL_PATTERN},
        "id": _integer(),
        "value": _value(version),
        "shape": _list(_integer(high=MAX_ELEMENTS)) | {"maxItems": MAX_RANK},
        "dtype": _dtype(version),
        "tensor": _tensor(version),
        "source": _closed({"file": _ref("label"), "line": _integer(), "function": _ref("label")}, ("file", "line")),
        "producer": _producer(),
        "sample": _sample(version),
        "node": _node(version),
        **(_definitions_3() if version >= 3 else {}),
        **{f"op_{operation.name}": _operation(operation, version) for operation in OPERATIONS.values()},
    }
    head = {"$schema": _DIALECT, "$id": f"urn:tlir:artifact:v{version}", "title": f"tlir artifact, version {version}"}
    return head | document | {"$defs": definitions}


def text(version: int) -> str:
    """The schema's file, byte for byte."""
    return json.dumps(schema(version), indent=1, ensure_ascii=False) + "\n"


def path(version: int) -> Path:
    """Where the schema's file lies."""
    return FOLDER / f"v{version}.json"


def main() -> None:
    for version in fields.VERSIONS:
        path(version).write_text(text(version), encoding="utf-8")


# ---- parts ----------------------------------------------------------------------------------------------------------


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _integer(low: int = 0, high: int = fields.MAX_INTEGER) -> Schema:
    return {"type": "integer", "minimum": low, "maximum": high}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _pair(first: Schema, second: Schema) -> Schema:
    return {"type": "array", "prefixItems": [first, second], "items": False, "minItems": 2}


def _closed(properties: dict[str, Schema], required: tuple[str, ...]) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _ids() -> Schema:
    return _list(_ref("id"))


def _values() -> Schema:
    return _list(_ref("value"))


def _exactly_one_in_1(items: Schema, version: int) -> Schema:
    return items | ({"minItems": 1, "maxItems": 1} if version == 1 else {})


def _value(version: int) -> Schema:
    return {"anyOf": [_integer(), _pair(_integer(), _integer())]} if version >= 3 else _integer()


def _dtype(version: int) -> Schema:
    """The names; in version 3 also those that an artifact declares, and complex types over these."""
    if version >= 3:
        return {"type": "string", "pattern": f"^({_NAME}|complex<{_NAME}>)$"}
    floats = [complex_of(dtype).name for dtype in NAMED.values() if dtype.is_float]
    return {"enum": [*NAMED, *(name for name in floats if name not in NAMED)]}


def _tensor(version: int) -> Schema:
    forms: list[tuple[str, ...]] = [("words",), ("base64",)] + ([("file", "tensor")] if version >= 3 else [])
    members: dict[str, Schema] = {
        "words": {"type": "string", "pattern": "^([0-9a-f]+( [0-9a-f]+)*)?$"},
        "base64": {"type": "string", "pattern": "^[A-Za-z0-9+/]*={0,2}$"},
        "file": {"type": "string"},
        "tensor": {"type": "string"},
    }
    known = {"shape": _ref("shape"), "dtype": _ref("dtype")}
    return {
        "oneOf": [
            _closed(known | {key: members[key] for key in form}, (*fields.RESULT_FIELDS, *form)) for form in forms
        ]
    }


def _producer() -> Schema:
    label = _ref("label")
    flag = {"anyOf": [{"type": "boolean"}, _integer(-fields.MAX_INTEGER - 1), label]}
    flags = {"type": "object", "propertyNames": label, "additionalProperties": flag}
    texts = dict.fromkeys(fields.PRODUCER_TEXTS, label)
    return _closed({**texts, "outputs": {"enum": list(fields.PRODUCER_OUTPUTS)}, "flags": flags}, ("frontend",))


def _sample(version: int) -> Schema:
    members = {"inputs": _list(_ref("tensor")), "outputs": _list(_ref("tensor"))}
    if version >= 3:
        members["trace"] = _list(_closed({"value": _ref("value"), "tensor": _ref("tensor")}, fields.TRACE_FIELDS))
    return _closed(members, ("inputs", "outputs"))


# ---- nodes ----------------------------------------------------------------------------------------------------------


def _node(version: int) -> Schema:
    members: dict[str, Schema] = {
        "id": _ref("id"),
        "op": {"enum": list(OPERATIONS)},
        "inputs": _values(),
        "attrs": {"type": "object"},
        "shape": _ref("shape"),
        "dtype": _ref("dtype"),
        "name": _ref("label"),
        "source": _ref("source"),
    }
    node = _closed(members, ("id", "op", "inputs"))
    if version >= 3:
        members["results"] = _list(_closed({"shape": _ref("shape"), "dtype": _ref("dtype")}, fields.RESULT_FIELDS))
        members["regions"] = _list(_ref("body"))
        one, several = {"required": list(fields.RESULT_FIELDS)}, {"required": ["results"]}
        node["oneOf"] = [one, several]
    else:
        node["required"] += fields.RESULT_FIELDS
    node["allOf"] = [
        {"if": {"properties": {"op": {"const": name}}, "required": ["op"]}, "then": _ref(f"op_{name}")}
        for name in OPERATIONS
    ]
    return node


def _operation(operation: Operation, version: int) -> Schema:
    """What an operation adds to the form of a node: the number of operands, results and regions, and its attributes."""
    operands: Schema = {"minItems": operation.minimum}
    if not operation.variadic:
        operands = {"minItems": len(operation.operands), "maxItems": len(operation.operands)}
    members: dict[str, Schema] = {"inputs": operands, "attrs": _attributes(operation, version)}
    required = ["attrs"] if any(attribute.required for attribute in operation.attributes.values()) else []
    if version >= 3:
        count = operation.regions
        members["regions"] = {} if count is None else {"minItems": count, "maxItems": count}
        if count:
            required.append("regions")
        if operation.results is not None:
            members["results"] = {"minItems": operation.results, "maxItems": operation.results}
    elif operation.regions or operation.results not in (None, 1):
        # no node of an earlier version has regions or several results
        return {"not": {}}
    return {"properties": members, "required": required}


def _attributes(operation: Operation, version: int) -> Schema:
    attributes = {
        name: attribute
        for name, attribute in operation.attributes.items()
        if version >= 3 or not isinstance(attribute.kind, Accumulation)
    }
    members = {name: attribute.kind.schema() | {"description": attribute.doc} for name, attribute in attributes.items()}
    return _closed(members, tuple(name for name, attribute in attributes.items() if attribute.required))


# ---- version 3 ------------------------------------------------------------------------------------------------------


def _document_3() -> dict[str, Schema]:
    described = _closed(
        {"sha256": {"type": "string", "pattern": fields.SHA256_PATTERN}, "size": _integer()}, fields.EXTERNAL_FIELDS
    )
    names = {"pattern": fields.IDENTIFIER_PATTERN, "not": {"enum": list(NAMED)}}
    return {
        "input_tree": _ref("call"),
        "output_tree": _ref("tree"),
        "formats": {"type": "object", "propertyNames": names, "additionalProperties": _ref("format")},
        "external": {"type": "object", "additionalProperties": described},
    }


def _definitions_3() -> dict[str, Schema]:
    tree = _ref("tree")
    trees, text = _list(tree), {"type": "string"}
    key = {"anyOf": [text, _integer(-fields.MAX_INTEGER - 1)]}
    named = _closed({"namedtuple": text, "fields": _list(_pair(_ref("label"), tree))}, ("namedtuple", "fields"))
    boolean = {"type": "boolean"}
    return {
        "body": _closed(
            {"input_ids": _ids(), "output_ids": _values(), "nodes": _list(_ref("node"))}, fields.BODY_FIELDS
        ),
        "accumulate": {
            "type": "object",
            "minProperties": 1,
            "properties": {
                "dtype": _ref("dtype"),
                "order": {"type": "string", "pattern": r"^(sequential|pairwise|blocked\([1-9][0-9]{0,8}\))$"},
                "fma": boolean,
            },
            "additionalProperties": False,
        },
        "format": _closed(
            {
                "exponent_bits": _integer(1, MAX_EXPONENT_BITS),
                "fraction_bits": _integer(0, MAX_FRACTION_BITS),
                "bias": _integer(-MAX_BIAS, MAX_BIAS),
                "infinities": boolean,
                "nans": {"enum": list(NAN_CONVENTIONS)},
                "signed_zero": boolean,
                "signed": boolean,
                "subnormals": boolean,
            },
            ("exponent_bits", "fraction_bits"),
        ),
        "tree": {
            "anyOf": [
                _integer(),
                {"type": "null"},
                _closed({"list": trees}, ("list",)),
                _closed({"tuple": trees}, ("tuple",)),
                _closed({"dict": _list(_pair(key, tree))}, ("dict",)),
                named,
            ]
        },
        "call": _closed({"args": trees, "kwargs": _list(_pair(_ref("label"), tree))}, ("args", "kwargs")),
    }


if __name__ == "__main__":
    main()
