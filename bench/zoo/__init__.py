"""Models and training steps in the styles that people write, for ``bench/models.py``.

Each entry is a function that makes one: it returns the function to capture, its arguments, and may return named ones.
What an entry imports beside its frontend it imports itself, so that a missing package skips that entry only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Entry = Callable[[], tuple[Any, ...]]
"""Gives (function, arguments) or (function, arguments, named arguments)."""


@dataclass(frozen=True)
class Model:
    """An entry: which frontend it is for, its name, and what makes it."""

    frontend: str
    name: str
    make: Entry


MODELS: list[Model] = []


def model(frontend: str, name: str = "") -> Callable[[Entry], Entry]:
    """Add the decorated function to ``MODELS`` under its own name, or under ``name``."""

    def register(make: Entry) -> Entry:
        MODELS.append(Model(frontend, name or make.__name__, make))
        return make

    return register
