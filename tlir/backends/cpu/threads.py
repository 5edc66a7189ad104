"""The threads that share the iterations of a kernel."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from typing import TypeVar

from tlir.errors import UnsupportedError, UsageError

T = TypeVar("T")

THREADS_VARIABLE = "TLIR_THREADS"
INTERRUPTIBLE_FROM = 1 << 28
"""Scalar operations of a launch from which the main thread only waits for it: about a tenth of a second's worth. Python
sees an interruption when a call into compiled code returns, and that may be in hours."""


def threads() -> int:
    """The number of threads: ``TLIR_THREADS``, or as many as the process may use."""
    text = os.environ.get(THREADS_VARIABLE, "")
    if not text:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not text.isdecimal() or not 1 <= int(text) <= 1024:
        raise UsageError("TL0604", f"{THREADS_VARIABLE} is {text!r}", hint="it is a number of threads from 1 to 1024")
    return int(text)


def share(run: Callable[[T], None], parts: Sequence[T], work: int) -> None:
    """Calls ``run`` with every part, on a thread each, and returns when all have returned.

    ``work`` is the number of scalar operations of all parts. Where the calling thread is interrupted the others go on
    for a while; so ``run`` has to hold what it reads and writes. UnsupportedError TL0604 where the system has no more
    threads."""
    if work >= INTERRUPTIBLE_FROM and threading.current_thread() is threading.main_thread():
        _wait_for(run, parts)
    elif len(parts) == 1:
        run(parts[0])
    else:
        with _starting(len(parts)):
            waiting = [_pool(len(parts) - 1).submit(run, part) for part in parts[1:]]
        run(parts[0])
        for future in waiting:
            future.result()


def _wait_for(run: Callable[[T], None], parts: Sequence[T]) -> None:
    """``run`` on threads that do not keep the process from ending while they are in compiled code."""
    errors: list[BaseException] = []

    def guarded(part: T) -> None:
        try:
            run(part)
        except BaseException as error:  # raised again where the result is waited for
            errors.append(error)

    started = [threading.Thread(target=guarded, args=(part,), name="tlir", daemon=True) for part in parts]
    with _starting(len(parts)):
        for thread in started:
            thread.start()
    for thread in started:
        thread.join()
    if errors:
        raise errors[0]


@contextmanager
def _starting(count: int) -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        hint = f"set {THREADS_VARIABLE} to fewer"
        raise UnsupportedError("TL0604", f"{count} threads cannot be had here: {error}", hint=hint) from error


@lru_cache(maxsize=8)
def _pool(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, thread_name_prefix="tlir")


if hasattr(os, "register_at_fork"):
    # a forked process has the executors but not their threads
    os.register_at_fork(after_in_child=_pool.cache_clear)
