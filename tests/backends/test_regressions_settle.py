"""What compiled code leaves open is settled by one thread at a time: Arb's working precision is the process's."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

import pytest

pytest.importorskip("llvmlite")

from tlir.backends.cpu import settle


def test_one_thread_settles_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    inside, seen = [], []

    def evaluate(*_: object) -> None:
        inside.append(0)
        time.sleep(0.02)
        seen.append(len(inside))
        inside.pop()

    monkeypatch.setattr(settle, "_evaluate", evaluate)
    threads = [threading.Thread(target=settle._elementary, args=(b"x", 0, 0, 0, 0)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [1, 1, 1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_forked_process_settles_though_another_thread_did(
    monkeypatch: pytest.MonkeyPatch, exit_code: Callable[[int], int]
) -> None:
    begun, finish = threading.Event(), threading.Event()
    parent = os.getpid()

    def evaluate(*_: object) -> None:
        if os.getpid() == parent:
            begun.set()
            finish.wait(20)

    monkeypatch.setattr(settle, "_evaluate", evaluate)
    thread = threading.Thread(target=settle._elementary, args=(b"x", 0, 0, 0, 0))
    thread.start()
    assert begun.wait(20)
    child = os.fork()
    if child == 0:
        settle._elementary(b"x", 0, 0, 0, 0)
        os._exit(0)
    code = exit_code(child)
    finish.set()
    thread.join()
    assert code == 0
