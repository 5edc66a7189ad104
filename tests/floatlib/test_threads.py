"""Several threads at once: Arb's working precision is one for all of them, and nobody's result may depend on it."""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx

from tlir.floatlib.elementary import arrays, evaluate, evaluate_complex, scalar
from tlir.floatlib.elementary.complex import words as complex_words
from tlir.floatlib.elementary.complex.words import elementary_complex
from tlir.floatlib.elementary.double import loop as double_loop
from tlir.floatlib.elementary.narrow.fit import Fit
from tlir.floatlib.elementary.scalar import Unary, elementary
from tlir.floatlib.elementary.special import roots
from tlir.floatlib.exclusive import exclusive
from tlir.floatlib.format import FORMATS, Format
from tlir.floatlib.rounding import NO_FLAGS
from tlir.floatlib.soft.catalog import Kernel
from tlir.floatlib.words import from_ints

FLOAT16, FLOAT32, FLOAT64 = (FORMATS[name] for name in ("float16", "float32", "float64"))
TASKS = [
    ("exponential", FLOAT16), ("tanh", FORMATS["bfloat16"]), ("log", FLOAT32), ("lgamma", FLOAT32), ("sine", FLOAT64),
    ("erf", FLOAT64), ("digamma", FLOAT64), ("cosine", FORMATS["float128"]), ("power", Format(15, 300)),
    ("log", Format(20, 2000)), ("exponential", Format(9, 30)),
]  # fmt: skip


@pytest.fixture
def restless() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def at_once(functions: list[Callable[[], None]]) -> None:
    """Run functions in threads, and raise what one of them raises."""
    errors: list[BaseException] = []

    def run(function: Callable[[], None]) -> None:
        try:
            function()
        except BaseException as error:  # told to the test
            errors.append(error)

    threads = [threading.Thread(target=run, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def words_of(fmt: Format, count: int, seed: int) -> Any:
    rng = random.Random(seed)
    fields = [(fmt.bias + rng.randint(-2, 2)) << fmt.fraction_bits for _ in range(count)]
    return from_ints(fmt, [field | rng.getrandbits(fmt.fraction_bits) for field in fields])


def test_functions_in_different_formats(restless: None) -> None:
    before = ctx.prec
    operands = [
        (name, fmt, [words_of(fmt, 3, seed + k) for k in range(2 if name == "power" else 1)])
        for seed, (name, fmt) in enumerate(TASKS)
    ]
    # element by element, as the specification does it
    serial = [evaluate(name, fmt, *columns, flags=True) for name, fmt, columns in operands]
    wanted = [(words.tobytes(), flags.tobytes()) for words, flags in serial]
    end = time.monotonic() + 1.5

    def evaluating(start: int) -> None:
        k = start
        while time.monotonic() < end:
            k = (k + 1) % len(operands)
            name, fmt, columns = operands[k]
            arrays._TABLES = arrays._Tables()
            words, flags = evaluate(name, fmt, *columns, flags=True)
            assert (words.tobytes(), flags.tobytes()) == wanted[k], (name, fmt)

    at_once([lambda start=start: evaluating(start) for start in range(0, 8, 2)])  # type: ignore[misc]
    assert ctx.prec == before


class Hesitant(OrderedDict[Any, Any]):
    """A dictionary behind whose changes other threads have their turn."""

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        time.sleep(1e-4)


def test_results_that_are_kept(restless: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "MAX_TABLES", 1)
    monkeypatch.setattr(arrays, "_TABLES", arrays._Tables())
    monkeypatch.setattr(arrays._TABLES, "_tables", Hesitant())
    words = np.array([0, 1, 0x3C00, 0x4000], np.uint16)
    tasks = [(name, FORMATS[dtype]) for name in ("exponential", "tanh", "log") for dtype in ("float16", "bfloat16")]
    wanted = [evaluate(*task, words).tobytes() for task in tasks]
    end = time.monotonic() + 0.8

    def looking_up(start: int) -> None:
        k = start
        while time.monotonic() < end:
            k = (k + 1) % len(tasks)
            assert evaluate(*tasks[k], words).tobytes() == wanted[k], tasks[k]

    at_once([lambda start=start: looking_up(start) for start in range(4)])  # type: ignore[misc]


def test_tables_of_kernels(restless: None) -> None:
    """A table is right only at its own precision: here, one that is made again and again."""

    def coefficients() -> tuple[float, ...]:
        return Fit(lambda x: x.exp(), -0.5, 0.5, 12, 30.0, 1.0).coefficients

    wanted, end, found = coefficients(), time.monotonic() + 2.0, []

    def remember(m: Any) -> Any:
        found.append(coefficients())

    kernel = Kernel("a table", (), 1, 64, False, remember)

    def tables() -> None:
        while time.monotonic() < end:
            kernel(None)  # type: ignore[arg-type]

    def functions() -> None:
        rng = random.Random(0)
        while time.monotonic() < end:
            elementary("exponential", FLOAT16, FLOAT16.bias << 10 | rng.getrandbits(10))

    at_once([tables, functions, functions])
    assert found
    assert set(found) == {wanted}


# ---- who sets the precision is alone --------------------------------------------------------------------------------


class Probe:
    """Stands in for what sets the precision, and notes how many threads are in it."""

    def __init__(self) -> None:
        self.inside: list[int] = []
        self.seen: list[int] = []

    def __call__(self, *_: Any, **__: Any) -> Any:
        self.inside.append(0)
        time.sleep(0.01)
        self.seen.append(len(self.inside))
        self.inside.pop()
        return 0, NO_FLAGS


def _kernel(probe: Probe, patch: pytest.MonkeyPatch) -> None:
    Kernel("probe", (), 1, 64, False, probe)(None)  # type: ignore[arg-type]


def _complex(probe: Probe, patch: pytest.MonkeyPatch) -> None:
    patch.setitem(complex_words.UNARY, "sine", lambda *_: (probe(), (0, NO_FLAGS)))
    elementary_complex("sine", FLOAT32, (0, 0))


def _narrow(probe: Probe, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(arrays, "narrow_loop", probe)
    arrays._fast_paths("exponential", FLOAT32)


def _double(probe: Probe, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(double_loop, "_overrides", probe)
    double_loop.loop.__wrapped__("sine")


def _roots(probe: Probe, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(roots, "_cosine", lambda *_: probe()[0])
    roots.roots_of_unity.__wrapped__(FLOAT32, 1)
    roots.root_words.__wrapped__(FLOAT32, 1)


def _compiled(probe: Probe, patch: pytest.MonkeyPatch) -> None:
    emission = pytest.importorskip("tlir.backends.cpu.emission", reason="llvmlite is not installed")
    from tlir.backends.cpu import compiled

    patch.setattr(emission, "emitted", probe)
    compiled._emitted(None)  # type: ignore[arg-type]


def _cuda(probe: Probe, patch: pytest.MonkeyPatch) -> None:
    source = pytest.importorskip("tlir.backends.cuda.source", reason="llvmlite is not installed")

    patch.setattr(source, "join_variables", probe)
    patch.setattr(source, "refusal", lambda kernel: "none")
    source.source(type("Nothing", (), {"space": ()})())


@pytest.mark.parametrize("entry", [_kernel, _complex, _narrow, _double, _roots, _compiled, _cuda])
def test_one_thread_at_a_time(
    entry: Callable[[Probe, pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    probe = Probe()
    monkeypatch.setitem(scalar.UNARY, "probe", Unary(probe, probe, probe))

    def specification() -> None:
        for _ in range(3):
            elementary("probe", FLOAT32, 1)

    def other() -> None:
        for _ in range(3):
            entry(probe, monkeypatch)

    at_once([specification, other, specification])
    assert len(probe.seen) >= 9
    assert set(probe.seen) == {1}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_forked_process_goes_on_though_another_thread_was_inside(exit_code: Callable[[int], int]) -> None:
    begun, finish = threading.Event(), threading.Event()

    @exclusive
    def waiting() -> None:
        begun.set()
        finish.wait(20)

    thread = threading.Thread(target=waiting)
    thread.start()
    assert begun.wait(20)
    child = os.fork()
    if child == 0:
        elementary("exponential", FLOAT16, 1)
        os._exit(0)
    code = exit_code(child)
    finish.set()
    thread.join()
    assert code == 0


def test_complex_functions_and_constants_keep_the_precision() -> None:
    before = ctx.prec
    parts = np.array([[0x3F800000, 0x40000000]], np.uint32)
    evaluate_complex("exponential", FLOAT32, parts)
    elementary_complex("log", FLOAT64, (FLOAT64.bias << 52, FLOAT64.bias << 52))
    assert ctx.prec == before
    assert arb(1) == 1
