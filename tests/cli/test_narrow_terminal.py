"""Lines and tables fit any terminal of a sensible width, and nothing of them is lost."""

from __future__ import annotations

from io import StringIO

import pytest

from tlir.cli.console import Output


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("columns", [20, 24, 30, 40, 80])
def test_everything_fits_and_nothing_is_lost(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(columns))
    terminal = Terminal()
    output = Output(terminal)
    rows = [
        ("dynamic_update_slice", "operand, update, start_indices", "123456789", "examples/jax_examples.py:97"),
        ("negate", "operand", "1", ""),
    ]
    output.table(("operation", "operands", ">elements", "source"), rows, indent=2)
    output.table((">step", ">output['loss']"), [("1", "0.123456789012345678901234567890"), ("2", "3")])
    output.line("a_word_that_is_much_longer_than_the_terminal_is_wide", indent=6)
    lines = terminal.getvalue().splitlines()
    assert all(len(line) <= columns for line in lines), lines
    together = "".join(terminal.getvalue().split())
    for text in (*(cell for row in rows for cell in row), "0.123456789012345678901234567890"):
        assert text.replace(" ", "") in together
    assert "a_word_that_is_much_longer_than_the_terminal_is_wide" in together
