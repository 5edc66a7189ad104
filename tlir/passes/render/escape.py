"""Text from an artifact, made safe where it is shown.

Names, source files and keys come from a file that anybody may have written. Nothing of them reaches a terminal, an XML
document or a DOT file uninterpreted: control characters, direction marks and lone surrogates are shown as escapes.
"""

from __future__ import annotations

import json


def printable(text: str) -> str:
    """The text on one line, with every character that does not print (``str.isprintable``) as a ``\\u`` escape.

    That covers control characters, line separators, marks that change the direction of text, and lone surrogates.
    """
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else _escape(character) for character in text)


def quoted(text: str) -> str:
    """The text as a JSON string in double quotes, on one line, printable."""
    return printable(json.dumps(text, ensure_ascii=False))


def xml(text: str) -> str:
    """The text as character data or as the value of an attribute of XML or HTML, in either kind of quotes."""
    safe = printable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return safe.replace('"', "&quot;").replace("'", "&#39;")


def dot(text: str) -> str:
    """The text as a quoted DOT string: backslashes doubled, so that no escape sequence of Graphviz (\\N, \\l) acts."""
    safe = printable(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{safe}"'


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def shorten(text: str, limit: int, tail: bool = True) -> str:
    """At most ``limit`` characters: of a longer text its beginning, an ellipsis, and (with ``tail``) its end."""
    if len(text) <= limit:
        return text
    last = (limit - 1) // 3 if tail else 0
    return text[: limit - 1 - last].rstrip(" …") + "…" + (text[-last:] if last else "")
