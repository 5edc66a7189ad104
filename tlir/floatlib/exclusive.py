"""One thread at a time where Arb computes: its working precision is one for all threads of a process.

Enclosures hold whatever the precision is, so that the specification returns the same words; but constants of kernels
are the middles of balls, which are right at the precision that was set alone. What sets it therefore runs in functions
that are ``exclusive``: the specification of elementary functions, and what makes kernels and their tables. Arb keeps
Python's own lock while it computes, so that threads lose nothing by that.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from threading import RLock
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")

_lock = RLock()


def _unlocked() -> None:
    """In a process that was forked: the thread that held the lock may not have come along."""
    global _lock
    _lock = RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlocked)


def exclusive(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """The function, which no thread enters while another one is in it or in another such function."""

    @wraps(function)
    def alone(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        with _lock:
            return function(*args, **kwargs)

    return alone
