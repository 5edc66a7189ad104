"""Faults: what is wrong and where, on the way from the line that finds it to the error that the user sees.

Reading raises a ``Fault`` with a pointer relative to what is being read; every enclosing level prefixes its own step,
so that a pointer costs nothing until something is wrong. ``Fault.error`` ends it as an ``ArtifactError``. Nothing here
prints more than a little of a hostile value.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from tlir.errors import ArtifactError, Source

MAX_SHOWN = 200
"""Characters of one message or pointer; what is longer is cut."""

_VALUE_SHOWN = 60
_TYPE_WORDS: dict[type, str] = {
    dict: "an object",
    list: "an array",
    str: "a string",
    int: "an integer",
    bool: "a Boolean",
    float: "a floating-point number",
    type(None): "null",
}


class Fault(Exception):
    """Something in an artifact that is wrong; ``pointer`` is relative to whatever is being read."""

    def __init__(self, code: str, message: str, pointer: str = "", hint: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.pointer = pointer
        self.hint = hint
        self.node: str | None = None
        self.source: Source | None = None

    def under(self, prefix: str) -> Fault:
        """The same fault, seen from the level that holds ``prefix``."""
        self.pointer = prefix + self.pointer
        return self

    def error(self, file: str | None) -> ArtifactError:
        """The error that ends the reading."""
        return ArtifactError(
            self.code,
            clip(self.message),
            file=file,
            pointer=clip(self.pointer) or None,
            node=self.node and clip(self.node),
            source=self.source,
            hint=self.hint and clip(self.hint),
        )


def clip(text: str, limit: int = MAX_SHOWN) -> str:
    """The text on one line in printable characters, at most ``limit`` of them, cut in the middle where it is longer."""
    if len(text) > limit:
        text = text[: limit * 2 // 3] + " … " + text[len(text) - limit // 3 + 3 :]
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def step(key: Any) -> str:
    """One step of a JSON pointer (RFC 6901), cut where the key is long."""
    text = clip(key if type(key) is str else show(key), _VALUE_SHOWN)
    return "/" + text.replace("~", "~0").replace("/", "~1")


def show(value: Any) -> str:
    """A short text of any value, however long, deep or wide: scalars as they are, containers by their kind."""
    kind = type(value)
    if kind is str:
        return ascii(value) if len(value) <= _VALUE_SHOWN else f"{value[:_VALUE_SHOWN]!a}… ({len(value)} characters)"
    if kind is bool:
        return "true" if value else "false"
    if kind is int:
        return str(value) if value.bit_length() <= 128 else f"an integer of {value.bit_length()} bits"
    if kind is float:
        return f"the floating-point number {value!r}"
    return type_words(value)


def type_words(value: Any) -> str:
    """What kind of JSON value this is, in words; a Python type that JSON does not have by its name."""
    kind = type(value)
    return _TYPE_WORDS.get(kind) or clip(f"a Python {kind.__module__}.{kind.__qualname__}", _VALUE_SHOWN)


def wrong_type(value: Any, expected: str, pointer: str = "") -> Fault:
    """The fault of a value that is not ``expected`` ("an array of integers")."""
    code = "TL0105" if type(value) is float and "integer" in expected else "TL0203"
    return Fault(code, f"must be {expected}, not {type_words(value)}", pointer)


def suggestion(word: Any, known: Iterable[str]) -> str | None:
    """A hint with the known word closest to this one, None where none is close."""
    if type(word) is not str or len(word) > 64:
        return None
    close = get_close_matches(word, list(known), 1)
    return f"did you mean {close[0]!r}?" if close else None


def unknown_field(key: Any, known: Iterable[str], pointer: str = "") -> Fault:
    """The fault of a field that the format does not have."""
    names = sorted(known)
    hint = suggestion(key, names) or f"the fields here are {', '.join(names)}"
    return Fault("TL0202", f"the field {show(key)} is not known", pointer + step(key), hint)


def missing_field(key: str, pointer: str = "") -> Fault:
    """The fault of a field that must be there."""
    return Fault("TL0201", f"the field {key!r} is missing", pointer)
