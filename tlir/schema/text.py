"""From the bytes of a file to a JSON document, strictly: UTF-8, no key twice, integers only, bounded nesting.

The fast path is the parser of the standard library. Only when it refuses is the text gone through a second time, by a
small scanner that finds the JSON pointer, line and column of the first place that is wrong.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from tlir.schema.fault import Fault, clip, show, step

MAX_NESTING = 640
"""Lists and objects inside each other: enough for any tree (tlir.ir.tree.MAX_DEPTH), few enough to recurse."""

_SHARED_VALUES = 500_000
"""Values of a document of Python objects, those of shared ones counted every time, beyond which they may be no more
than four times as many as there are: a few objects that hold each other are otherwise a document without end."""

_SCAN_LIMIT = 400_000
"""Tokens the second pass looks at: what keeps the search for the place of an error under a second."""

_TOKEN = re.compile(r'[ \t\n\r]*+(?:("[^"\\]*+(?:\\.[^"\\]*+)*+")|([{}\[\],:])|([^ \t\n\r"{}\[\],:]++))', re.DOTALL)
_END = re.compile(r"[ \t\n\r]*+\Z")
_FRACTION = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_HUGE = re.compile(r"-?[0-9]{4000,}")


class _Refused(Exception):
    """The parser met a value that an artifact may not hold."""


def parse(data: bytes) -> Any:
    """The document in a file's bytes. Fault TL0102 to TL0106 for bytes that are not one."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Fault("TL0102", f"not UTF-8 at byte {error.start}: {error.reason}") from None
    del data  # the caller has let go of it too: from here on the text alone is in memory
    return parse_text(text)


def parse_text(text: str) -> Any:
    """The document that a text holds; a byte order mark at its start is skipped. Faults as ``parse``."""
    text = text.removeprefix("\ufeff")
    if not text or text.isspace():
        raise Fault("TL0103", "the text is empty")
    try:
        document = json.loads(text, object_pairs_hook=_object, parse_float=_refuse, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        ends = " (the text ends here; it may have been cut)" if _END.match(text, error.pos) else ""
        raise Fault("TL0103", f"line {error.lineno}, column {error.colno}: {error.msg}{ends}") from None
    except _Refused:
        raise _find_refused(text) from None
    except RecursionError:
        raise _too_deep() from None
    except ValueError:
        # Python does not convert integers of more than a few thousand digits
        raise _find_huge(text) from None
    check_nesting(document)
    return document


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _Refused
    return members


def _refuse(literal: str) -> Any:
    raise _Refused


def _too_deep(pointer: str = "") -> Fault:
    return Fault("TL0106", f"lists and objects are nested more than {MAX_NESTING} deep", pointer)


def check_nesting(document: Any, shared: bool = False) -> None:
    """Fault TL0106 where lists and objects lie deeper than ``MAX_NESTING`` or, in a document of Python objects
    (``shared``), where they hold themselves or each other so often that reading would not end."""
    if _is_too_deep(document, MAX_NESTING, shared):
        if type(document) is dict:
            for key, value in document.items():
                if _is_too_deep(value, MAX_NESTING - 1, shared):
                    raise _too_deep(step(key))
        raise _too_deep()


def _is_too_deep(document: Any, limit: int, shared: bool) -> bool:
    level = [document] if type(document) in (dict, list) else []
    values, allowed = 0, _SHARED_VALUES
    while level:
        if limit == 0:
            return True
        limit -= 1
        if shared:
            values += sum(map(len, level))
            if values > allowed:
                allowed = _SHARED_VALUES + 4 * _distinct_values(document)
            if values > allowed:
                raise Fault("TL0106", "lists and objects hold each other too often, or themselves")
        level = [
            child
            for container in level
            for child in (container.values() if type(container) is dict else container)
            if type(child) is dict or type(child) is list
        ]
    return False


def _distinct_values(document: Any) -> int:
    seen: set[int] = set()
    values, waiting = 0, [document]
    while waiting:
        container = waiting.pop()
        if id(container) not in seen:
            seen.add(id(container))
            values += len(container)
            children = container.values() if type(container) is dict else container
            waiting += [child for child in children if type(child) is dict or type(child) is list]
    return values


# ---- the place of an error ------------------------------------------------------------------------------------------


def _find_refused(text: str) -> Fault:
    def wrong(token: str) -> Fault | None:
        if token in ("NaN", "Infinity", "-Infinity"):
            return Fault("TL0105", f"{token} is not a number that an artifact holds: numbers are integers")
        match = _FRACTION.fullmatch(token)
        if match and (match.group(1) or match.group(2)):
            return Fault("TL0105", f"{clip(token, 40)} is not an integer", hint="values are written as words")
        return None

    return _scan(text, wrong) or Fault("TL0104", "a key is there twice, or a number is not an integer")


def _find_huge(text: str) -> Fault:
    def wrong(token: str) -> Fault | None:
        if not _HUGE.fullmatch(token):
            return None
        return Fault("TL0204", f"an integer of {len(token)} digits is out of range")

    return _scan(text, wrong) or Fault("TL0204", "an integer of thousands of digits is out of range")


def _scan(text: str, wrong: Callable[[str], Fault | None]) -> Fault | None:
    """The first scalar that is ``wrong`` or the first key that is there twice, with its place; None where neither is
    among the first tokens."""
    # One entry per open list or object: its keys so far (None for a list), and the key or index of the current value
    open_: list[tuple[set[str] | None, list[str | int]]] = []
    at_key = False
    position = 0
    for _ in range(_SCAN_LIMIT):
        token = _TOKEN.match(text, position)
        if token is None:
            return None
        position = token.end()
        string, sign, scalar = token.groups()
        if sign in ("}", "]", ",") and not open_:
            # what stops the parser comes before it finds that the text is no document
            return None
        if sign in ("{", "["):
            open_.append((set() if sign == "{" else None, ["" if sign == "{" else 0]))
            at_key = sign == "{"
        elif sign in ("}", "]"):
            open_.pop()
            at_key = False
        elif sign == ",":
            keys, current = open_[-1]
            at_key = keys is not None
            if isinstance(current[0], int):
                current[0] += 1
        elif sign == ":":
            at_key = False
        elif string is not None and at_key:
            keys, current = open_[-1]
            current[0] = key = json.loads(string)
            if keys is not None and key in keys:
                return _place(text, token.start(1), open_, Fault("TL0104", f"the key {show(key)} is there twice"))
            if keys is not None:
                keys.add(key)
        elif scalar is not None and (fault := wrong(scalar)):
            return _place(text, token.start(3), open_, fault)
    return None


def _place(text: str, offset: int, open_: list[tuple[set[str] | None, list[str | int]]], fault: Fault) -> Fault:
    line = text.count("\n", 0, offset) + 1
    column = offset - text.rfind("\n", 0, offset)
    fault.message = f"line {line}, column {column}: {fault.message}"
    return fault.under("".join(step(current[0]) for _, current in open_))
