"""The threads that share the iterations of a kernel."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from tlir.backends.cpu.pool import LOOKING, Memory, Pool
from tlir.backends.cpu.settle import passed_on
from tlir.errors import UnsupportedError, UsageError

THREADS_VARIABLE = "TLIR_THREADS"
INTERRUPTIBLE_FROM = 1 << 26
"""Scalar operations between two looks at whether the main thread is interrupted: some hundredths of a second's worth.
Python sees an interruption when a call into compiled code returns."""

Phase = Sequence[tuple[int, int, int, int]]


def threads() -> int:
    """The number of threads: ``TLIR_THREADS``, or as many as the process may use."""
    text = _environment.get(_KEY)
    return _number(text) if text else processors()


# os.environ translates what it is asked for, which takes long beside a small product
_environment: dict[Any, Any] = getattr(os.environ, "_data", None) or os.environ  # type: ignore[assignment]
_KEY: Any = THREADS_VARIABLE if _environment is os.environ else os.environ.encodekey(THREADS_VARIABLE)


@lru_cache(maxsize=8)
def _number(text: str | bytes) -> int:
    text = os.fsdecode(text)
    if not text.isdecimal() or not 1 <= int(text) <= 1024:
        raise UsageError("TL0604", f"{THREADS_VARIABLE} is {text!r}", hint="it is a number of threads from 1 to 1024")
    return int(text)


def processors() -> int:
    """How many processors the process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Schedule:
    """The phases of a launch as the table that compiled code takes: before each part its phase begins, all parts of the
    phases before it have to be done. ``in_phases``: they are those of a sum of products by tiles, not parts of a
    kernel's space."""

    def __init__(self, phases: Sequence[Phase], in_phases: bool) -> None:
        rows: list[int] = []
        for phase in phases:
            before = len(rows) // 5
            for part in phase:
                rows += [*part, before]
        self.table = (ctypes.c_int64 * len(rows))(*rows)
        self.parts = len(rows) // 5
        self.in_phases = in_phases


def share(
    entry: int,
    call: Any,
    schedule: Schedule,
    buffers: Sequence[int],
    own: int,
    shared: int,
    work: int,
    count: int,
    held: object,
) -> None:
    """Runs the parts of a launch on ``count`` threads, and returns when all are done. ``entry`` is the address of the
    function that runs a part, ``call`` the same function for Python; it gets ``own`` bytes of scratch memory of the
    thread that runs it, and the addresses of the buffers, to which that of ``shared`` bytes is added if there are any.

    ``work`` is the number of scalar operations of all parts. ``held`` are objects that compiled code reads and writes:
    where the calling thread is interrupted, others go on for a while. UnsupportedError TL0604 where the system has no
    more threads."""
    # the main thread only waits where a part takes too long to be interrupted
    waits = work > INTERRUPTIBLE_FROM * schedule.parts and threading.current_thread() is threading.main_thread()
    helpers = count if waits else count - 1
    pool = _pools.get(helpers) or _new_pool(helpers) if helpers else None
    if pool is None or not pool.lock.acquire(blocking=False):
        # another thread of the process uses the pool
        addresses = _addresses(buffers, shared, _own.shared)
        table, scratch, place = schedule.table, scratch_address(own), ctypes.addressof(addresses)
        for k in range(0, len(table), 5):
            call(*table[k : k + 4], scratch, place)
        passed_on()
        return
    try:
        addresses = _addresses(buffers, shared, pool.shared)
        mine = None if waits else scratch_address(own)
        at_once = max(1, INTERRUPTIBLE_FROM * schedule.parts // (work + 1))
        pool.launch(entry, schedule.table, addresses, own, mine, at_once, held)
        passed_on(pool.threads)
    finally:
        if pool.is_closed:
            # its threads end when they have done what they are at
            _abandoned[:] = [each for each in _abandoned if any(thread.is_alive() for thread in each.threads)]
            _abandoned.append(_pools.pop(helpers))
        pool.lock.release()


def _addresses(buffers: Sequence[int], shared: int, memory: Memory) -> Any:
    every = [*buffers, memory.address(shared)] if shared else buffers
    return (ctypes.c_void_p * len(every))(*every)


class _Own(threading.local):
    """Memory of each thread: it runs one kernel at a time."""

    def __init__(self) -> None:
        self.scratch, self.shared = Memory(), Memory()


_own = _Own()


def scratch_address(size: int) -> int:
    """The address of at least ``size`` bytes that are this thread's own until it asks again; 0 for none."""
    return _own.scratch.address(size)


_pools: dict[int, Pool] = {}
_abandoned: list[Pool] = []
_making = threading.Lock()


def _new_pool(helpers: int) -> Pool:
    """The pool of so many threads."""
    with _making:
        if helpers not in _pools:
            try:
                # more threads than processors would take them from each other while they look for work
                _pools[helpers] = Pool(helpers, LOOKING if helpers < processors() else 0)
            except RuntimeError as error:
                hint = f"set {THREADS_VARIABLE} to fewer"
                reason = f"{helpers + 1} threads cannot be had here: {error}"
                raise UnsupportedError("TL0604", reason, hint=hint) from error
        return _pools[helpers]


def _forked() -> None:
    """A forked process has the pools but not their threads."""
    global _making
    _making = threading.Lock()
    _pools.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
