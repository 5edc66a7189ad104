"""The pool of threads: every part once, errors and interruptions, several launches at a time; and kept code."""

from __future__ import annotations

import _thread
import ctypes
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lower_graphs import Builder, random_tensor

from tlir.backends.cpu import device, settle
from tlir.backends.cpu import threads as shares
from tlir.backends.cpu.compiled import Compiled
from tlir.backends.cpu.threads import Schedule, share
from tlir.backends.reference import evaluate
from tlir.floatlib.soft import objects
from tlir.ir.types import NAMED, TensorType

PART = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 4, ctypes.c_void_p, ctypes.c_void_p)


def run(function: Any, phases: list[list[tuple[int, int, int, int]]], count: int, work: int = 0) -> None:
    """Shares phases whose parts call a Python function."""
    call = PART(function)
    entry = ctypes.cast(call, ctypes.c_void_p).value
    assert entry is not None
    share(entry, call, Schedule(phases, False), [], 64, 0, work, count, call)


@pytest.mark.parametrize("count", [1, 2, 3, 8])
@pytest.mark.parametrize("parts", [1, 2, 3, 50])
def test_every_part_runs_once_and_phases_in_order(count: int, parts: int) -> None:
    seen: list[tuple[int, int]] = []
    phases = [[(phase, part, 0, 0) for part in range(parts)] for phase in range(20)]
    run(lambda phase, part, c, d, scratch, buffers: seen.append((phase, part)), phases, count)
    assert sorted(seen) == [(phase, part) for phase in range(20) for part in range(parts)]
    assert [phase for phase, _ in seen] == sorted(phase for phase, _ in seen)


def test_parts_that_run_at_the_same_time_have_scratch_memory_of_their_own() -> None:
    places: dict[int, set[int]] = {}
    all_are_here = threading.Barrier(3)

    def part(a: int, b: int, c: int, d: int, scratch: int, buffers: int) -> None:
        first = threading.get_ident() not in places
        places.setdefault(threading.get_ident(), set()).add(scratch)
        if first:
            all_are_here.wait(60)

    run(part, [[(0, 0, 0, 0)] * 60], 3)
    assert len(places) == 3
    assert len(set.union(*places.values())) == 3
    assert all(place % 64 == 0 for each in places.values() for place in each)


def test_what_is_raised_in_another_thread_is_passed_on_once() -> None:
    class Own(Exception):
        pass

    main = threading.get_ident()
    raised = threading.Event()

    def part(a: int, b: int, c: int, d: int, scratch: int, buffers: int) -> None:
        if threading.get_ident() != main:
            settle._errors[threading.get_ident()] = Own()
            raised.set()
        else:
            raised.wait(60)

    with pytest.raises(Own):
        run(part, [[(0, 0, 0, 0)] * 8], 2)
    settle.passed_on()
    run(lambda *_: None, [[(0, 0, 0, 0)] * 8], 2)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """A shell starts what runs in its background with interrupts ignored, and the tests may run there."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interruption_ends_the_launch_and_the_next_one_has_a_new_pool() -> None:
    def slow(number: int, *_: int) -> None:
        begun.append(number)
        if interrupts:
            _thread.interrupt_main()
            threading.Event().wait(0.2)

    begun: list[int] = []
    parts = [(k, 0, 0, 0) for k in range(40)]
    interrupts = True
    # with so much work in each part the main thread only waits
    with pytest.raises(KeyboardInterrupt):
        run(slow, [parts], 2, 1 << 60)
    interrupts = False
    for thread in shares._abandoned[-1].threads:
        thread.join(10)
        assert not thread.is_alive()
    assert len(begun) < len(parts)
    begun.clear()
    run(slow, [parts], 2, 1 << 60)
    assert sorted(begun) == list(range(40))


@pytest.mark.parametrize("count", [1, 2, 3])
def test_who_only_waits_is_woken_when_all_parts_are_done(count: int) -> None:
    done: list[int] = []
    for number in range(300):
        # of every length: they end before, while and after the main thread goes to sleep
        run(lambda k, *_: done.append(sum(range(k))), [[(10 * number, 0, 0, 0)] * 3], count, 1 << 60)
    assert done == [sum(range(10 * number)) for number in range(300) for _ in range(3)]


def test_launches_of_several_threads_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "SPLIT_FROM", 0)
    monkeypatch.setenv("TLIR_THREADS", "2")
    builder = Builder(np.random.default_rng(0))
    type = TensorType((200, 300), NAMED["float32"])
    x, y = builder.input(type), builder.input(type)
    body = builder.body([builder.add("add", (builder.add("multiply", (x, y), type), x), type)])
    executable = device.Executable(body)
    random = np.random.default_rng(3)
    inputs = [[random_tensor(random, type) for _ in range(2)] for _ in range(4)]
    wrong: list[int] = []

    def many(number: int) -> None:
        (expected,) = evaluate(body, inputs[number])
        for _ in range(30):
            (result,) = executable.run(inputs[number])
            if not expected.same_words(result):
                wrong.append(number)

    running = [threading.Thread(target=many, args=(number,)) for number in range(4)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize("content", [b"", b"something else", b"{}\ncode", b'{"shape": null}\n'])
def test_kept_code_that_is_something_else_is_compiled_again(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    builder = Builder(np.random.default_rng(0))
    type = TensorType((7, 5), NAMED["float32"])
    body = builder.body([builder.add("sqrt", (builder.input(type),), type)])
    inputs = [random_tensor(np.random.default_rng(0), type)]
    device.Executable(body).run(inputs)
    (file,) = (tmp_path / "tlir" / "objects").glob("*.o")
    good = file.read_bytes()
    objects.keep(file.stem, content)
    executable = device.Executable(body)
    for expected, result in zip(evaluate(body, inputs), executable.run(inputs), strict=True):
        assert expected.same_words(result)
    assert (executable.statistics.compiled, executable.statistics.cache_hits) == (1, 0)
    assert file.read_bytes() == good
    assert objects.kept(file.stem) == good[32:]


@pytest.mark.parametrize(("rows", "columns", "axis"), [(3000, 64, 0), (64, 3000, 1), (2000, 40, 1)])
def test_the_memory_of_an_evaluation_counts_what_threads_take_for_themselves(
    rows: int, columns: int, axis: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Softmax, whose kernel keeps the exponentials of a row or of several columns."""
    monkeypatch.setenv("TLIR_THREADS", "3")
    builder = Builder(np.random.default_rng(0))
    d = NAMED["float32"]
    full, kept = TensorType((rows, columns), d), TensorType((columns if axis == 0 else rows,), d)
    x = builder.input(full)

    def over(value: Any, reducer: str) -> Any:
        reduced = builder.add("reduce", (value,), kept, reducer=reducer, dimensions=(axis,))
        return builder.add("broadcast_in_dim", (reduced,), full, broadcast_dimensions=(1 - axis,))

    powers = builder.add("exponential", (builder.add("subtract", (x, over(x, "maximum")), full),), full)
    body = builder.body([builder.add("divide", (powers, over(powers, "add")), full)])
    executable = device.Executable(body)
    needed, _ = executable.peak_memory()
    (step,) = executable.program.steps
    call = executable.call(0, step)
    assert not isinstance(call, str)
    stages = [call.compiled] if isinstance(call.compiled, Compiled) else [each for each, *_ in call.compiled.stages]
    scratch = max(stage.plan.scratch for stage in stages)
    assert scratch or len(stages) > 1
    assert 2 * full.nbytes + 3 * (scratch - 64) <= needed <= 2 * full.nbytes + 3 * scratch + 2 * full.nbytes
