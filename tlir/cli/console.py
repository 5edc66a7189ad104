"""Text for people: indented lines and tables that fit the terminal, and come whole and plain out of a pipe.

On a terminal lines are wrapped with their indentation, the last column of a table under itself, and a table that does
not fit is shown row by row, cells behind their headings. In a pipe nothing is wrapped, cut or coloured. Colours obey
NO_COLOR, FORCE_COLOR and TERM.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import IO, Any, Literal

from rich.console import Console
from rich.text import Text

STYLES = {
    "passed": "green",
    "failed": "bold red",
    "invalid": "bold red",
    "fault": "bold red",
    "unsupported": "yellow",
    "not applicable": "dim",
    "error": "red",
    "note": "cyan",
    "heading": "bold",
    "label": "dim",
}

_LAST_COLUMN = 24
"""Columns that the last cell of a table needs at least where it is wrapped."""

_ROOM = 8
"""Columns that text has at least behind its indentation, however narrow the terminal is."""

_PIECE = 4096

Cell = str | tuple[str, str]
"""Text, or text with the name of its style."""


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """rich would end the process with exit code 1, which says that something differs."""
        raise BrokenPipeError


class Output:
    """Standard output (or another stream) for lines and tables."""

    def __init__(self, stream: IO[str] | None = None) -> None:
        self.stream = stream or sys.stdout
        self.terminal = self.stream.isatty()
        # rich would still write bold and dim where NO_COLOR is set
        colours: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
        self.console = _Console(file=self.stream, color_system=colours, highlight=False, markup=False, emoji=False)
        self.width: int | None = self.console.width if self.terminal else None
        """Columns that a line should fit, None where there is no such limit."""

    def line(self, *cells: Cell, indent: int = 0) -> None:
        """One line of text, its parts joined by nothing; on a terminal it is wrapped under its own indentation."""
        self._print(_text(*cells), indent)

    def lines(self, text: str, indent: int = 0) -> None:
        """Text that has its own line breaks, never wrapped."""
        for line in text.splitlines():
            self.console.print(Text(" " * indent + line), soft_wrap=True)

    def blank(self) -> None:
        self.console.print()

    def raw(self, text: str, end: str = "\n") -> None:
        """Text for programs, exactly as it is, in UTF-8 whatever the terminal's encoding."""
        self.stream.flush()
        buffer = getattr(self.stream, "buffer", None)
        # in pieces: Python drops the error of a broken pipe in the middle of a write longer than its buffer
        for start in range(0, len(text), _PIECE):
            piece = text[start : start + _PIECE]
            if buffer is None:
                self.stream.write(piece)
            else:
                # the name of a file may hold bytes that are no text, which Python has as lone surrogates
                buffer.write(piece.encode("utf-8", "backslashreplace"))
        if buffer is None:
            self.stream.write(end)
        else:
            buffer.write(end.encode())
            buffer.flush()

    def table(self, headings: Sequence[str], rows: Sequence[Sequence[Cell]], indent: int = 0) -> None:
        """Columns under headings; one whose heading starts with ">" is aligned to the right. Columns that are empty in
        every row are left out; without rows the headings stand alone."""
        kept = [k for k in range(len(headings)) if not rows or any(_plain(row[k]) for row in rows)]
        titles = [headings[k].lstrip(">") for k in kept]
        right = [headings[k].startswith(">") for k in kept]
        cells = [[row[k] for k in kept] for row in rows]
        widths = [
            max([Text(title).cell_len, *(_text(row[k]).cell_len for row in cells)]) for k, title in enumerate(titles)
        ]
        lengths = [*widths[:-1], 0]
        start = indent + sum(lengths) + 2 * (len(widths) - 1)
        if self.width is not None and start + widths[-1] > self.width:
            if right[-1] or self.width - start < _LAST_COLUMN:
                self._flowing(titles, cells, indent)
                return
            widths[-1] = self.width - start
        self._row([(title, "label") for title in titles], widths, right, indent)
        for row in cells:
            self._row(row, widths, right, indent)

    def _row(self, cells: Sequence[Cell], widths: Sequence[int], right: Sequence[bool], indent: int) -> None:
        text = Text(" " * indent)
        for k, cell in enumerate(cells[:-1]):
            part = _text(cell)
            pad = Text(" " * (widths[k] - part.cell_len))
            text.append_text(pad + part if right[k] else part + pad)
            text.append("  ")
        last = _text(cells[-1])
        if right[-1]:
            text.append(" " * (widths[-1] - last.cell_len))
        # only the last column is ever longer than its width; it goes on under itself
        lines = self._wrapped(last, widths[-1])
        start = text.cell_len
        self._put(text + lines[0])
        for line in lines[1:]:
            self._put(Text(" " * start) + line)

    def _flowing(self, titles: Sequence[str], rows: Sequence[Sequence[Cell]], indent: int) -> None:
        """Each row as its first cell, and below it the others behind their titles, as many on a line as fit."""
        room = max((self.width or 0) - indent - 2, _ROOM)
        for row in rows:
            self._print(_text(row[0]), indent)
            line = Text()
            for title, cell in zip(titles[1:], row[1:], strict=True):
                if not _plain(cell):
                    continue
                piece = _text((f"{title} ", "label"), cell)
                if line and line.cell_len + 3 + piece.cell_len > room:
                    self._print(line, indent + 2)
                    line = Text()
                line = line + Text("   ") + piece if line else piece
            if line:
                self._print(line, indent + 2)

    def _print(self, text: Text, indent: int, hanging: int = 2) -> None:
        """Print a line, what does not fit wrapped under its own, deeper indentation."""
        if self.width is None:
            self._put(Text(" " * indent) + text)
            return
        room = max(self.width - indent, _ROOM)
        first = self._wrapped(text, room)[0]
        self._put(Text(" " * indent) + first)
        left = text[len(first) :]
        left = left[len(left) - len(left.plain.lstrip()) :]
        for line in self._wrapped(left, max(room - hanging, _ROOM)) if left else ():
            self._put(Text(" " * (indent + hanging)) + line)

    def _wrapped(self, text: Text, room: int) -> list[Text]:
        return [text] if text.cell_len <= room else list(text.wrap(self.console, room))

    def _put(self, line: Text) -> None:
        line.rstrip()
        self.console.print(line, soft_wrap=True)


def _plain(cell: Cell) -> str:
    return cell if isinstance(cell, str) else cell[0]


def _text(*cells: Cell) -> Text:
    text = Text()
    for cell in cells:
        if isinstance(cell, str):
            text.append(_printable(cell))
        else:
            text.append(_printable(cell[0]), STYLES.get(cell[1], cell[1]))
    return text


def _printable(text: str) -> str:
    """Without control characters, which a name in an artifact may hold."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == " " else ascii(c)[1:-1] for c in text)


def to_json(document: Any) -> str:
    """The JSON text of a document for programs."""
    import json

    return json.dumps(document, indent=2, ensure_ascii=False)


def counted(count: int, noun: str) -> str:
    """The number with its noun: "1 file", "2 files"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
