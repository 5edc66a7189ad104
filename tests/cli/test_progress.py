"""The progress bar: only on a terminal, only after a while, and never among the results."""

from __future__ import annotations

import threading
from io import StringIO

import pytest

from tlir.cli import progress
from tlir.cli.console import Output
from tlir.cli.progress import Progress


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def shown(terminal: Terminal, delay: float, steps: int, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a terminal gets of work that goes on until the bar is there, or ends before it could be."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "DELAY", delay)
    output = Output(terminal)
    drawn = threading.Event()
    show = Progress._show

    def and_tell(self: Progress) -> None:
        show(self)
        drawn.set()

    monkeypatch.setattr(Progress, "_show", and_tell)
    with Progress("working", 2, output) as bar:
        if delay == 0:
            assert drawn.wait(20)
        for _ in range(steps):
            bar.advance()
        with bar.hidden():
            terminal.write("a message\n")
        output.line("a result")
    return terminal.getvalue()


def test_work_that_takes_long_has_a_bar_that_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(Terminal(), 0, 2, monkeypatch)
    assert "working" in text
    assert "2/2" in text
    # the line of the message held no bar: it was erased before
    assert "working" not in text[: text.index("a message")].rpartition("\x1b[2K")[2]
    assert text.endswith("\x1b[2K")


def test_short_work_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(Terminal(), 1000, 2, monkeypatch) == "a message\na result\n"


def test_a_pipe_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = StringIO()
    monkeypatch.setattr("sys.stderr", StringIO())
    with Progress("working", 1, Output(stream)) as bar:
        assert bar._timer is None
        bar.advance()
    assert stream.getvalue() == ""
