"""A progress bar on a terminal for work that takes longer than a second."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

DELAY = 1.0
"""Seconds before a bar appears."""


class Progress:
    """A context in which ``advance`` counts steps. The bar is drawn where nobody redirects it: with the results on the
    terminal, otherwise on standard error; nowhere if that is no terminal either."""

    def __init__(self, description: str, total: int, output: Any = None) -> None:
        self._description, self._total, self._output = description, total, output
        self._lock = threading.Lock()
        self._done = 0
        self._bar: Any = None
        self._task: Any = None
        self._timer: threading.Timer | None = None
        self._closed = False

    def __enter__(self) -> Progress:
        if (self._output is not None and self._output.terminal) or sys.stderr.isatty():
            self._timer = threading.Timer(DELAY, self._show)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Take the bar away for good."""
        with self._lock:
            self._closed = True
            if self._timer is not None:
                self._timer.cancel()
            if self._bar is not None:
                self._bar.stop()

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """The bar is taken away while something else writes to the terminal."""
        with self._lock:
            shown = self._bar is not None and not self._closed
            if shown:
                self._bar.stop()
            try:
                yield
            finally:
                if shown:
                    self._bar.start()

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        on_terminal = self._output is not None and self._output.terminal
        console = self._output.console if on_terminal else Console(stderr=True)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with self._lock:
            if self._closed:
                return
            self._bar = Bar(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False)
            self._task = self._bar.add_task(self._description, total=self._total, completed=self._done)
            self._bar.start()

    def advance(self, steps: int = 1) -> None:
        """Count steps done."""
        self._done += steps
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done, total=self._total)

    def expect(self, steps: int) -> None:
        """Add steps to the total."""
        self._total += steps
