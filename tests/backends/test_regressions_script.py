"""What programs as commands once got wrong: loops that only copy could not be interrupted, bytes of other memory that
is looked at as Booleans were no words, and graphs that had been run could not be copied."""

from __future__ import annotations

import copy
import itertools
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest
from test_script import SMALL, TRUTH, Builder, counted, random_tensor

pytest.importorskip("llvmlite")

import tlir
from tlir.backends.cpu import device, steps
from tlir.backends.reference import evaluate as reference
from tlir.ir.graph import Body
from tlir.ir.graph import Graph as Ir
from tlir.ir.types import NAMED, TensorType

HUGE = TensorType((1 << 19,), NAMED["float64"])


def exchanging(steps: int) -> Body:
    """A loop whose large values change places. A small one is reversed, which keeps the loop from being one kernel."""
    types = (HUGE, HUGE, SMALL)
    region = Builder(types)
    one, other, small = region.inputs
    turned = region.one("reverse", (small,), SMALL, dimensions=(0,))
    every, regions = counted(types, steps, region.body([other, one, turned]))
    builder = Builder(types)
    return builder.body(builder.add("while", (builder.number(0), *builder.inputs), every, regions)[1:])


def stacking(steps: int) -> Body:
    """A loop in each of whose steps another one copies large values."""
    types, length = (HUGE, HUGE, SMALL), 4
    wide = TensorType((length, *HUGE.shape), HUGE.dtype)
    row = Builder((HUGE, SMALL))
    turned = row.one("reverse", row.inputs[1:], SMALL, dimensions=(0,))
    inner = row.body([row.inputs[0], turned, row.inputs[0]])
    region = Builder(types)
    attrs = {"num_consts": 0, "num_carry": 2, "length": length, "reverse": False}
    operands = (region.inputs[0], region.inputs[2])
    last, small, _ = region.add("scan", operands, (HUGE, SMALL, wide), (inner,), **attrs)
    every, regions = counted(types, steps, region.body([region.inputs[1], last, small]))
    builder = Builder(types)
    return builder.body(builder.add("while", (builder.number(0), *builder.inputs), every, regions)[1:])


@pytest.mark.parametrize("make", [exchanging, stacking])
def test_loops_that_copy_can_be_interrupted(make: Callable[[int], Body], monkeypatch: pytest.MonkeyPatch) -> None:
    """What is copied counts as work after which somebody looks: without that, only each quarter of a million steps."""
    body = make(80)
    inputs = [random_tensor(np.random.default_rng(k), type) for k, type in enumerate((HUGE, HUGE, SMALL))]
    run = device.Executable(body).steps(device._words_layout)
    assert run is not None
    assert not run.evaluated
    looks = []
    monkeypatch.setattr(steps, "passed_on", lambda: looks.append(None))
    found = run.run([tensor.words for tensor in inputs])
    assert len(looks) > 3
    assert all(np.array_equal(words, tensor.words) for words, tensor in zip(found, inputs, strict=True))


@pytest.mark.parametrize("kind", ["while", "scan", "no steps"])
@pytest.mark.parametrize("returned", [False, True])
def test_what_a_loop_only_reads_is_not_copied(kind: str, returned: bool) -> None:
    """A large value that stays as it is, twice over, and becomes another one's: its memory is that of the input, unless
    the loop's result is asked for. Nothing is written there."""
    types = (HUGE, HUGE, HUGE, SMALL)
    region = Builder(types)
    one, again, _, small = region.inputs
    turned = region.one("reverse", (small,), SMALL, dimensions=(0,))
    builder = Builder(types[1:])
    operands = (builder.inputs[0], *builder.inputs)
    outputs = [one, again, one if returned else again, turned]
    if kind == "while":
        every, regions = counted(types, 3, region.body(outputs))
        results = builder.add("while", (builder.number(0), *operands), every, regions)[1:]
    else:
        attrs = {"num_consts": 0, "num_carry": 4, "length": 3 if kind == "scan" else 0, "reverse": False}
        results = builder.add("scan", operands, types, (region.body(outputs),), **attrs)
    body = builder.body(results if returned else results[3:])
    inputs = [random_tensor(np.random.default_rng(k), type) for k, type in enumerate(types[1:])]
    before = [tensor.words.copy() for tensor in inputs]
    for tensor in inputs:
        tensor.words.flags.writeable = False
    expected = reference(body, inputs)
    for _ in range(3):
        for ours, theirs in zip(device.evaluate(body, inputs), expected, strict=True):
            assert ours.same_words(theirs)
        assert all(np.array_equal(tensor.words, words) for tensor, words in zip(inputs, before, strict=True))
    run = device.Executable(body).steps(device._words_layout)
    assert run is not None
    assert not run.evaluated
    most = {"while": 2, "scan": 2, "no steps": 0}[kind]
    assert run.script.memory < most * HUGE.nbytes + 4096


def booleans() -> tlir.Graph:
    """Booleans that are computed with, chosen by, branched on and passed through."""
    flags, number = TensorType((4,), NAMED["bool"]), TensorType((4,), NAMED["int16"])
    builder = Builder((flags, flags, TRUTH, number))
    x, y, truth, z = builder.inputs
    both = builder.one("and", (x, y), flags)
    chosen = builder.one("select", (x, z, builder.one("reverse", (z,), number, dimensions=(0,))), number)
    ways = []
    for turned in (False, True):
        region = Builder((number,))
        way = region.inputs[0] if turned else region.one("reverse", region.inputs, number, dimensions=(0,))
        ways.append(region.body([way]))
    (branch,) = builder.add("case", (truth, z), (number,), tuple(ways))
    equal = builder.one("compare", (x, y), flags, comparison_direction="EQ")
    outputs = [both, builder.one("not", (x,), flags), chosen, branch, equal, x, truth]
    return tlir.Graph(Ir(builder.body(outputs)))


@pytest.mark.parametrize("name", ["reference", "cpu"])
def test_bytes_that_are_no_booleans(name: str) -> None:
    """What is not 0 is true, as NumPy takes it, in every run."""
    graph = booleans()
    for x, y in itertools.product((b"\0\1\2\3", b"\xff\x80\x00\x01", b"\0\0\1\1"), repeat=2):
        for truth in (0, 1, 2, 0xFE):
            bytes_ = [np.frombuffer(x, np.bool_), np.frombuffer(y, np.bool_), np.array(truth, np.uint8).view(np.bool_)]
            words = [np.array([bool(byte) for byte in some]) for some in (x, y)]
            numbers = np.arange(4, dtype=np.int16)
            expected = graph.run([*words, np.array(bool(truth)), numbers], device="reference")
            found = graph.run([*bytes_, numbers], device=name)
            assert [array.tobytes() for array in found] == [array.tobytes() for array in expected]


@pytest.mark.parametrize("name", ["reference", "cpu", "auto"])
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda graph: pickle.loads(pickle.dumps(graph))])
def test_graphs_are_copied_after_runs(name: str, copied: Callable[[tlir.Graph], tlir.Graph]) -> None:
    """Compiled code stays with the process, and with the graph that it was made for."""
    graph, inputs = booleans(), [np.array([True, False, True, True])] * 2
    inputs += [np.array(True), np.arange(4, dtype=np.int16)]
    expected = [array.tobytes() for array in graph.run(inputs, device="reference")]
    for _ in range(3):
        graph.run(inputs, device=name)
    again = copied(graph)
    assert again.path == graph.path
    for each in (again, graph, again):
        assert [array.tobytes() for array in each.run(inputs, device=name)] == expected


INTERRUPTED = """
import ctypes, random, signal
from tlir.floatlib.soft import objects
code = objects.object_code("define i64 @f(i64 %x) {\\n  %y = add i64 %x, 1\\n  ret i64 %y\\n}", objects.PLAIN)
signal.signal(signal.SIGALRM, signal.default_int_handler)
chance, seen = random.Random(0), 0
for _ in range(400):
    try:
        signal.setitimer(signal.ITIMER_REAL, chance.uniform(1e-5, 1.5e-3))
        for _ in range(3):
            objects.load(code, ["f"])
        signal.setitimer(signal.ITIMER_REAL, 0)
        for _ in range(3):
            pass
    except KeyboardInterrupt:
        seen += 1
assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(objects.load(code, ["f"])["f"])(41) == 42
print(seen)
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers here")
def test_code_is_loaded_whatever_interrupts() -> None:
    """A process whose main thread is interrupted while code is loaded goes on, and is not ended by LLVM."""
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 20


UNHEARD = """
import sys
import numpy as np
from tlir.backends.cpu import settle
settle.provide()
def raising(frame, event, argument):
    if event == "call" and frame.f_code is settle._called.__code__:
        raise KeyboardInterrupt
words = np.array([np.float64(1).view(np.uint64), 7], np.uint64)
call = lambda: settle._elementary(b"exponential float64", 1, 1, 1, words.ctypes.data)
sys.setprofile(raising)
call()
sys.setprofile(None)
try:
    settle.passed_on()
except KeyboardInterrupt:
    call()
    settle.passed_on()
    print(words[1] == np.float64(np.exp(1.0)).view(np.uint64))
"""


def test_an_interruption_on_the_way_to_the_specification_is_raised() -> None:
    """Before the function that compiled code calls has begun: then nobody has computed the element, so that the run
    must not give words. The next one does."""
    done = subprocess.run([sys.executable, "-c", UNHEARD], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "True\n", done.stderr
