"""The exponential in binary32's own arithmetic: every word, beside the float64 kernel; what it leaves; and both ways of
reading its tables."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from control_register import DENORMAL, UNDERFLOW, left_by, needs_register
from llvmlite import ir

from tlir.backends.cpu import device
from tlir.backends.cpu.emission import emitted
from tlir.backends.reference import evaluate
from tlir.floatlib.elementary import elementary, single
from tlir.floatlib.elementary.narrow.arrays import evaluate_fast
from tlir.floatlib.format import FORMATS
from tlir.floatlib.soft import lanes, objects
from tlir.ir.graph import Body, Node, Ref
from tlir.ir.tensor import Tensor
from tlir.ir.types import NAMED, TensorType
from tlir.kernel.ir import Launch
from tlir.passes.lower import lower

FLOAT32 = FORMATS["float32"]
CHUNK = 1 << 18

needs_fma = pytest.mark.skipif(not objects.has_fma(), reason="the kernel is for processors with fused multiply-add")


def compiled(name: str) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Words and marks of what is left, of float32 words of a multiple of 16."""
    module = ir.Module("single")
    kinds = [lanes.vector(lanes.I32, 16).as_pointer(), lanes.vector(lanes.I32, 16).as_pointer()]
    kinds.append(lanes.vector(ir.IntType(8), 16).as_pointer())
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [lanes.I64, *kinds]), "loop")
    entry, body, leave = (function.append_basic_block(n) for n in ("entry", "body", "leave"))
    b = ir.IRBuilder(entry)
    b.branch(body)
    b.position_at_end(body)
    index = b.phi(lanes.I64)
    index.add_incoming(ir.Constant(lanes.I64, 0), entry)
    size, operands, results, marks = function.args
    machine = lanes.SingleMachine(b, 16)
    operand = b.load(b.gep(operands, [index]), align=4)
    word, left = single.KERNELS[name](machine, machine.real_from_bits(operand))
    b.store(word, b.gep(results, [index]), align=4)
    b.store(b.zext(left, kinds[2].pointee), b.gep(marks, [index]), align=1)
    following = b.add(index, ir.Constant(lanes.I64, 1))
    index.add_incoming(following, body)
    b.cbranch(b.icmp_unsigned("<", following, size), body, leave)
    b.position_at_end(leave)
    b.ret_void()
    address = objects.compile_ir(str(module), ["loop"], objects.PLAIN)["loop"]
    call = ctypes.CFUNCTYPE(None, ctypes.c_int64, *[ctypes.c_void_p] * 3)(address)

    def run(words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        out, left = np.empty_like(words), np.empty(words.shape, np.bool_)
        call(words.size // 16, words.ctypes.data, out.ctypes.data, left.ctypes.data)
        return out, left

    return run


@needs_fma
@pytest.mark.parametrize("name", single.KERNELS)
def test_every_word(name: str) -> None:
    """What it decides is what the float64 kernel decides, for all 2**32 operands; it leaves little of what is finite
    and no large number."""
    run = compiled(name)
    left_of, seen = 0, 0
    for start in range(0, 1 << 32, CHUNK):
        words = np.arange(start, start + CHUNK, dtype=np.uint32)
        found, left = run(words)
        expected, _, open_places = evaluate_fast(name, FLOAT32, words)
        for place in open_places.tolist():
            expected[place] = elementary(name, FLOAT32, int(words[place]))[0]
        wrong = np.flatnonzero((found != expected) & ~left)
        assert wrong.size == 0, [hex(words[k]) for k in wrong[:5]]
        ordinary = np.abs(words.view(np.float32)) < single.LARGEST
        left_of, seen = left_of + int(np.count_nonzero(left & ordinary)), seen + int(np.count_nonzero(ordinary))
    assert seen == 2 * int(np.float32(single.LARGEST).view(np.uint32))
    assert 0 < left_of < seen / 5000


@needs_fma
@pytest.mark.parametrize("name", single.KERNELS)
def test_tables_in_memory(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processors without registers of 512 bits read the same entries."""
    random = np.random.default_rng(0)
    words = random.integers(0, 1 << 32, 1 << 16, dtype=np.uint32)
    words[::2] = random.uniform(-20, 20, words.size // 2).astype(np.float32).view(np.uint32)
    usual = compiled(name)(words)
    monkeypatch.setattr(objects, "has_feature", lambda name: name == "fma")
    for first, second in zip(usual, compiled(name)(words), strict=True):
        np.testing.assert_array_equal(first, second)


@needs_fma
@needs_register
@pytest.mark.parametrize("name", single.KERNELS)
def test_nothing_subnormal(name: str) -> None:
    """Normal operands of every order of size, undecided ones too, lead to no subnormal numbers, which would take a
    hundred times as long: the processor's flags say so."""
    random, run = np.random.default_rng(0), compiled(name)
    everywhere = [random.integers(0, 1 << 32, 1 << 16, dtype=np.uint32)]
    for low, high in ((-110, -87), (-88, -60), (-60, 0), (0, 60), (60, 90), (-3000, -100)):
        everywhere.append(random.uniform(low, high, 1 << 14).astype(np.float32).view(np.uint32))
    words = np.concatenate(everywhere)
    words = words[(words << 1) - 1 >= 0xFFFFFF]
    words = words[: words.size // 16 * 16]
    assert left_by(lambda: run(words)) & (DENORMAL | UNDERFLOW) == 0


SPECIAL = (
    *(0.0, -0.0, 1e-45, -1e-45, 1e-38, -1e-38, 1.0, -1.0, 2.0**-24, -(2.0**-24), 2.0**-25, -(2.0**-25)),
    *(2.0**-60, -(2.0**-60), 1e-18, -1e-18, 63.99999, 64.0, -63.99999, -64.0, 87.336, 87.33601, -87.336, -87.33601),
    *(88.72, 88.73, 89.0, -87.3, -87.4, -103.9, -103.98, -104.0, -104.00001),
    *(3e38, -3e38, float("inf"), float("-inf"), float("nan"), -float("nan")),
)


@pytest.mark.parametrize("size", [1, 15, 16, 17, 64, 100, 1000, 5000])
def test_graphs(size: int) -> None:
    """Special and undecided operands at any place among ordinary ones, in blocks of every size."""
    random = np.random.default_rng(size)
    values = random.uniform(-10, 10, size).astype(np.float32)
    kept = random.random(size) < 0.1
    values[kept] = random.choice(np.array(SPECIAL, np.float32), int(kept.sum()))
    type = TensorType((size,), NAMED["float32"])
    body = Body((Node(0, "input", (), {}, (type,)), Node(1, "exponential", (Ref(0),), {}, (type,))), (0,), (Ref(1),))
    (found,) = device.evaluate(body, [Tensor(type, values.view(np.uint32))])
    expected = [elementary("exponential", FLOAT32, int(word))[0] for word in values.view(np.uint32)]
    assert found.words.tolist() == expected


@needs_fma
def test_what_is_left_is_compiled_once() -> None:
    """However many exponentials a kernel has: exp(-exp(-exp(x)))."""
    size = 1000
    random = np.random.default_rng(1)
    values = random.uniform(-5, 5, size).astype(np.float32)
    values[::7] = random.choice(np.array(SPECIAL, np.float32), values[::7].size)
    type = TensorType((size,), NAMED["float32"])
    nodes = [Node(0, "input", (), {}, (type,))]
    for op in ("exponential", "negate", "exponential", "negate", "exponential"):
        nodes.append(Node(len(nodes), op, (Ref(len(nodes) - 1),), {}, (type,)))
    body, inputs = Body(tuple(nodes), (0,), (Ref(5), Ref(3))), [Tensor.from_numpy(values)]
    for expected, found in zip(evaluate(body, inputs), device.evaluate(body, inputs), strict=True):
        assert expected.same_words(found)
    (launch,) = lower(body).steps
    assert isinstance(launch, Launch)
    made = emitted(launch.kernel)
    assert not isinstance(made, str)
    assert made[1].count("define internal") == 1
