"""The fields of a document by version, and how values of the plain JSON types are read."""

from __future__ import annotations

import re
from typing import Any

from tlir.schema.fault import Fault, missing_field, show, suggestion, unknown_field, wrong_type

FORMAT = "tlir"
VERSIONS = (1, 2, 3)

DOCUMENT_REQUIRED = ("format", "version", "name", "input_ids", "output_ids", "nodes")
DOCUMENT_FIELDS = frozenset({*DOCUMENT_REQUIRED, "producer", "samples", "tolerance"})
DOCUMENT_FIELDS_3 = frozenset({"input_tree", "output_tree", "formats", "external"})

NODE_FIELDS = frozenset({"id", "op", "inputs", "attrs", "shape", "dtype", "name", "source"})
NODE_FIELDS_3 = frozenset({"results", "regions"})
RESULT_FIELDS = ("shape", "dtype")
SOURCE_FIELDS = frozenset({"file", "line", "function"})
BODY_FIELDS = ("input_ids", "output_ids", "nodes")

TENSOR_FIELDS = frozenset({"dtype", "shape", "words", "base64"})
TENSOR_FIELDS_3 = frozenset({"file", "tensor"})

PRODUCER_TEXTS = ("frontend", "frontend_version", "platform", "capture")
PRODUCER_OUTPUTS = ("op-by-op", "compiled")
PRODUCER_FIELDS = frozenset({*PRODUCER_TEXTS, "outputs", "flags"})
SAMPLE_FIELDS = frozenset({"inputs", "outputs"})
SAMPLE_FIELDS_3 = frozenset({"trace"})
TRACE_FIELDS = ("value", "tensor")
EXTERNAL_FIELDS = ("sha256", "size")

MAX_INTEGER = 2**63 - 1
"""Largest magnitude of ids, lines, sizes and flags."""

LABEL_PATTERN = r"^[^\u0000-\u001f\u007f-\u009f]*$"
"""Names, files and functions: text on one line, which a terminal shows as it is."""
IDENTIFIER_PATTERN = "^[A-Za-z_][A-Za-z0-9_]{0,63}$"
TOLERANCE_PATTERN = "^[0-9]{1,40}([.][0-9]{1,400})?([eE][+-]?[0-9]{1,4})?$"
SHA256_PATTERN = "^[0-9a-f]{64}$"

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")


def members(value: Any, what: str, fields: frozenset[str], later: frozenset[str], version: int) -> dict[str, Any]:
    """``value`` as an object that has no fields but these; ``later`` are those of version 3.

    Fault TL0203, TL0202, or TL0212 for a field of a later version.
    """
    # a document of Python objects may have a dict of its own kind, which makes base64 text when it is read
    if not isinstance(value, dict):
        raise wrong_type(value, f"{what} (an object)")
    known = fields | later if version >= 3 else fields
    if not value.keys() <= known:
        key = next(key for key in value if key not in known)
        if key in later:
            raise later_feature(f"the field {key!r}", version, f"/{key}")
        raise unknown_field(key, known)
    return value


def later_feature(what: str, version: int, pointer: str = "") -> Fault:
    """The fault of a version 3 feature in an earlier one."""
    hint = "change the version to 3"
    return Fault("TL0212", f"{what} belongs to version 3, and the artifact says version {version}", pointer, hint)


def required(value: dict[str, Any], fields: tuple[str, ...]) -> None:
    """Fault TL0201 for the first field that is not there."""
    for field in fields:
        if field not in value:
            raise missing_field(field)


def array(value: Any, what: str, pointer: str) -> list[Any]:
    if type(value) is not list:
        raise wrong_type(value, f"an array of {what}", pointer)
    return value


def integer(value: Any, pointer: str, low: int = 0, high: int = MAX_INTEGER) -> int:
    if type(value) is not int:
        raise wrong_type(value, "an integer", pointer)
    if not low <= value <= high:
        raise Fault("TL0204", f"{show(value)} is not from {low} to {high}", pointer)
    return value


def text(value: Any, pointer: str) -> str:
    """Any string of Unicode characters (not half a surrogate pair, which UTF-8 cannot write)."""
    if type(value) is not str:
        raise wrong_type(value, "a string", pointer)
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise Fault("TL0204", f"{show(value)} holds half of a surrogate pair", pointer) from None
    return value


def label(value: Any, pointer: str) -> str:
    """A string without control characters (``LABEL_PATTERN``)."""
    if _CONTROL.search(text(value, pointer)):
        raise Fault("TL0204", f"{show(value)} holds a control character", pointer)
    return str(value)


def choice(value: Any, values: tuple[str, ...], pointer: str) -> str:
    if text(value, pointer) not in values:
        hint = suggestion(value, values)
        raise Fault("TL0204", f"{show(value)} is not one of {', '.join(values)}", pointer, hint)
    return str(value)


def matching(value: Any, pattern: str, what: str, pointer: str, code: str = "TL0204") -> str:
    """A string that matches the pattern as a whole; ``what`` names it in the message."""
    if not re.fullmatch(pattern.removeprefix("^").removesuffix("$"), text(value, pointer)):
        raise Fault(code, f"{show(value)} is not {what}", pointer)
    return str(value)


def flag(value: Any, pointer: str) -> bool | int | str:
    """A Boolean, an integer of 64 bits, or a label."""
    if type(value) is bool:
        return value
    if type(value) is int:
        return integer(value, pointer, -MAX_INTEGER - 1)
    if type(value) is str:
        return label(value, pointer)
    raise wrong_type(value, "a Boolean, an integer or a string", pointer)
