"""Loops and branches that compiled code follows without a return to Python: random programs with regions in regions,
and what carried values may do to each other, beside the reference. Every program runs three times, because the first
run goes another way than later ones, and what one run returned must not change in the next."""

from __future__ import annotations

import signal
import threading
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from lower_graphs import random_tensor

pytest.importorskip("llvmlite")

from tlir.backends.cpu import device
from tlir.backends.cpu.script import Memory
from tlir.backends.reference import evaluate
from tlir.ir.graph import Body, Node, Ref
from tlir.ir.tensor import Tensor
from tlir.ir.types import NAMED, TensorType

SMALL, LARGE = TensorType((3,), NAMED["float32"]), TensorType((40, 40), NAMED["float32"])
WIDE, WORDS = TensorType((2, 3), NAMED["float128"]), TensorType((5,), NAMED["int16"])
FLAGS, NOTHING = TensorType((4,), NAMED["bool"]), TensorType((0, 3), NAMED["float64"])
COUNT, TRUTH = TensorType((), NAMED["int32"]), TensorType((), NAMED["bool"])
TYPES = (SMALL, LARGE, WIDE, WORDS, FLAGS, NOTHING, SMALL, LARGE)


class Builder:
    """A body under construction."""

    def __init__(self, types: Sequence[TensorType]) -> None:
        self.nodes = [Node(k, "input", (), {}, (type,)) for k, type in enumerate(types)]
        self.inputs = [Ref(k) for k in range(len(types))]

    def add(
        self,
        op: str,
        inputs: Sequence[Ref],
        types: Sequence[TensorType],
        regions: tuple[Body, ...] = (),
        **attrs: object,
    ) -> list[Ref]:
        node = Node(len(self.nodes), op, tuple(inputs), attrs, tuple(types), regions=regions)
        self.nodes.append(node)
        return [Ref(node.id, k) for k in range(len(node.types))]

    def one(self, op: str, inputs: Sequence[Ref], type: TensorType, **attrs: object) -> Ref:
        return self.add(op, inputs, (type,), **attrs)[0]

    def constant(self, value: Tensor) -> Ref:
        return self.one("constant", (), value.type, value=value)

    def number(self, value: int, dtype: str = "int32") -> Ref:
        type = TensorType((), NAMED[dtype])
        return self.constant(Tensor(type, np.array(value, type.dtype.word_dtype)))

    def type(self, ref: Ref) -> TensorType:
        return self.nodes[ref.node].types[ref.result]

    def body(self, outputs: Sequence[Ref]) -> Body:
        return Body(tuple(self.nodes), tuple(range(len(self.inputs))), tuple(outputs))


def counted(types: Sequence[TensorType], steps: int, body: Body) -> tuple[tuple[TensorType, ...], tuple[Body, Body]]:
    """The types and regions of a ``while`` of so many steps around a body: it counts in a value of its own."""
    every = (COUNT, *types)
    condition = Builder(every)
    below = condition.one("compare", (condition.inputs[0], condition.number(steps)), TRUTH, comparison_direction="LT")
    nodes, offset = [], 1
    builder = Builder(every)
    for node in body.nodes[len(types) :]:
        inputs = tuple(Ref(ref.node + offset, ref.result) for ref in node.inputs)
        nodes.append(Node(node.id + offset, node.op, inputs, node.attrs, node.types, regions=node.regions))
    builder.nodes += nodes
    following = builder.one("add", (builder.inputs[0], builder.number(1)), COUNT)
    outputs = [following, *(Ref(ref.node + offset, ref.result) for ref in body.outputs)]
    return every, (condition.body([below]), builder.body(outputs))


class Programs:
    """Random bodies over values of given types."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def pick(self, items: Sequence[object]) -> object:
        return items[int(self.random.integers(len(items)))]

    def body(self, types: Sequence[TensorType], results: Sequence[TensorType], depth: int) -> Body:
        builder = Builder(types)
        known = list(builder.inputs)
        for _ in range(int(self.random.integers(1, 5))):
            known += self.step(builder, known, depth)
        return builder.body([self.of(builder, known, type) for type in results])

    def of(self, builder: Builder, known: Sequence[Ref], type: TensorType) -> Ref:
        """A value of a type: mostly one that is there, often one of the first."""
        fitting = [ref for ref in known if builder.type(ref) == type]
        if not fitting or self.random.random() < 0.1:
            return builder.constant(random_tensor(self.random, type))
        return fitting[-1] if self.random.random() < 0.5 else self.pick(fitting)  # type: ignore[return-value]

    def step(self, builder: Builder, known: Sequence[Ref], depth: int) -> list[Ref]:
        kind = self.random.random()
        if depth and kind < 0.5:
            return self.region(builder, known, depth)
        x = self.pick(known)
        assert isinstance(x, Ref)
        type = builder.type(x)
        if kind < 0.6 and type.shape:
            return [builder.one("reverse", (x,), type, dimensions=(0,))]
        if kind < 0.75 and type.shape:
            flat = builder.one("reshape", (x,), TensorType((type.size,), type.dtype))
            return [builder.one("reshape", (flat,), type)]
        y = self.of(builder, known, type)
        if type.dtype.is_bool:
            return [builder.one("xor", (x, y), type)]
        return [builder.one(str(self.pick(("add", "subtract", "maximum"))), (x, y), type)]

    def region(self, builder: Builder, known: Sequence[Ref], depth: int) -> list[Ref]:
        count = int(self.random.integers(1, 5))
        types = [self.pick(TYPES) for _ in range(count)]
        operands = [self.of(builder, known, type) for type in types]
        kind, steps = self.pick(("while", "scan", "case")), int(self.random.integers(0, 4))
        if kind == "while":
            every, regions = counted(types, steps, self.body(types, types, depth - 1))
            return builder.add("while", (builder.number(0), *operands), every, regions)
        if kind == "case":
            regions = tuple(self.body(types, types, depth - 1) for _ in range(int(self.random.integers(1, 4))))
            dtype = str(self.pick(("int8", "int32", "int64", "uint8", "uint16")))
            index = builder.number(int(self.random.integers(0, 5)), dtype)
            if self.random.random() < 0.3:
                bits = NAMED[dtype].bits
                index = builder.number((1 << bits) - 1 if self.random.random() < 0.5 else 1 << (bits - 1), dtype)
            return builder.add("case", (index, *operands), types, regions)
        consts = int(self.random.integers(0, count + 1))
        carries = int(self.random.integers(0, count + 1 - consts))
        given, carried, stacked = types[:consts], types[consts : consts + carries], types[consts + carries :]
        made = [self.pick(TYPES) for _ in range(int(self.random.integers(0, 3)))]
        wide = [TensorType((steps, *type.shape), type.dtype) for type in stacked]
        results = [TensorType((steps, *type.shape), type.dtype) for type in made]
        region = self.body([*given, *carried, *stacked], [*carried, *made], depth - 1)
        last = [builder.constant(random_tensor(self.random, type)) for type in wide]
        attrs = {"num_consts": consts, "num_carry": carries, "length": steps, "reverse": bool(self.pick((0, 1)))}
        return builder.add("scan", (*operands[: consts + carries], *last), (*carried, *results), (region,), **attrs)


def check(body: Body, inputs: Sequence[Sequence[Tensor]]) -> None:
    """Three runs with their words, and again the words of the first."""
    before = None
    for operands in inputs:
        expected, found = evaluate(body, operands), device.evaluate(body, operands)
        for ours, theirs in zip(found, expected, strict=True):
            assert ours.same_words(theirs)
        if before is not None:
            for ours, theirs in zip(*before, strict=True):
                assert ours.same_words(theirs)
        before = before or (found, expected)


@pytest.mark.parametrize("seed", range(60))
def test_random_programs(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops that are no work are compiled too."""
    monkeypatch.setattr(device, "REGION_COMPILED_FROM", 0)
    programs = Programs(seed)
    body = programs.body(TYPES, [*TYPES, SMALL, LARGE], 2)
    check(body, [[random_tensor(programs.random, type) for type in TYPES] for _ in range(3)])
    steps = device.executable(body).steps(device._words_layout)
    assert steps is not None
    assert not steps.evaluated


def carrying(types: Sequence[TensorType], outputs: Sequence[int | str], steps: int = 3) -> Body:
    """A loop in which each carried value becomes another one (by its number), or is computed anew from its own
    (``new``), or from the first one (``first``, the same value however often)."""
    region = Builder(types)
    first = region.one("reverse", (region.inputs[0],), types[0], dimensions=(0,))
    made = []
    for k, output in enumerate(outputs):
        if isinstance(output, int):
            made.append(region.inputs[output])
        elif output == "first":
            made.append(first)
        elif output == "turned":
            flat = region.one("reshape", (first,), TensorType((types[0].size,), types[0].dtype))
            made.append(region.one("reshape", (flat,), types[k]))
        else:
            back = region.one("reverse", (region.inputs[k],), types[k], dimensions=(0,))
            made.append(region.one("add", (back, region.inputs[0]), types[k]))
    every, regions = counted(types, steps, region.body(made))
    builder = Builder(types)
    results = builder.add("while", (builder.number(0), *builder.inputs), every, regions)
    return builder.body(results[1:])


@pytest.mark.parametrize("type", [SMALL, LARGE], ids=["copied", "exchanged"])
@pytest.mark.parametrize(
    "outputs",
    [
        (1, 0, "new"),
        (1, 2, 0),
        ("first", "first", "first"),
        ("first", 0, "first"),
        ("new", 0, 1),
        (0, "turned", "first"),
        ("turned", "new", 0),
        (2, 2, "new"),
    ],
)
def test_what_is_carried(type: TensorType, outputs: tuple[int | str, ...]) -> None:
    """Values that change places, become one, or stay, all at once."""
    random = np.random.default_rng(0)
    for steps in (0, 1, 2, 5):
        body = carrying([type] * 3, outputs, steps)
        check(body, [[random_tensor(random, type) for _ in range(3)] for _ in range(3)])


@pytest.mark.parametrize("dtype", ["bool", "int4", "uint4", "int8", "uint8", "int16", "int32", "uint64", "int64"])
def test_every_index_of_a_branch(dtype: str) -> None:
    """Indices of every kind of integer, below, inside and above the branches."""
    bits = NAMED[dtype].bits
    type = TensorType((), NAMED[dtype])
    regions = []
    for k in range(1 if dtype == "bool" else 3):
        region = Builder([SMALL])
        x = region.one("reverse", region.inputs, SMALL, dimensions=(0,))
        for _ in range(k):
            x = region.one("add", (x, region.inputs[0]), SMALL)
        regions.append(region.body([x]))
    if dtype == "bool":
        regions.append(Builder([SMALL]).body([Ref(0)]))
    builder = Builder([type, SMALL])
    body = builder.body(builder.add("case", builder.inputs, (SMALL,), tuple(regions)))
    values = random_tensor(np.random.default_rng(0), SMALL)
    every = {0, 1, 2, 3, (1 << bits) - 1, 1 << (bits - 1), (1 << (bits - 1)) - 1}
    words = sorted(word for word in every if word < 1 << bits)
    for word in words:
        index = Tensor(type, np.array(word, type.dtype.word_dtype))
        check(body, [[index, values]] * 3)


def test_memory_is_divided() -> None:
    """Places overlap only when the earlier one was given back, and are used again."""
    random, memory = np.random.default_rng(0), Memory()
    taken: list[tuple[int, int]] = []
    for _ in range(2000):
        if taken and random.random() < 0.5:
            memory.give(taken.pop(int(random.integers(len(taken)))))
        else:
            taken.append(memory.take(int(random.integers(0, 1000))))
        used = sorted(taken)
        assert all(a + size <= b for (a, size), (b, _) in pairwise(used))
        assert all(offset % 64 == 0 and offset + size <= memory.size for offset, size in used)
    for place in taken:
        memory.give(place)
    whole = memory.size
    assert memory.take(whole) == (0, whole)


def endless() -> Body:
    """A loop that nothing ends."""
    types = (LARGE, COUNT)
    condition = Builder(types)
    below = condition.one("compare", (condition.inputs[1], condition.number(1)), TRUTH, comparison_direction="LT")
    region = Builder(types)
    turned = region.one("reverse", (region.inputs[0],), LARGE, dimensions=(0,))
    regions = (condition.body([below]), region.body([turned, region.inputs[1]]))
    builder = Builder(types)
    return builder.body(builder.add("while", builder.inputs, types, regions))


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="threads get no signals here")
def test_a_loop_is_interrupted() -> None:
    body = endless()
    inputs = [random_tensor(np.random.default_rng(0), LARGE), Tensor(COUNT, np.array(0, np.uint32))]
    main = threading.main_thread().ident
    assert main is not None
    timer = threading.Timer(1.0, signal.pthread_kill, (main, signal.SIGINT))
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            device.evaluate(body, inputs)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, previous)


def test_threads_of_a_program_run_one_graph_at_once() -> None:
    """Each has memory of its own."""
    random = np.random.default_rng(0)
    body = carrying([LARGE] * 3, ("new", "new", 0), 200)
    every = [[random_tensor(random, LARGE) for _ in range(3)] for _ in range(4)]
    expected = [evaluate(body, inputs) for inputs in every]
    device.evaluate(body, every[0])
    wrong: list[int] = []

    def run(number: int) -> None:
        for _ in range(20):
            for ours, theirs in zip(device.evaluate(body, every[number]), expected[number], strict=True):
                if not ours.same_words(theirs):
                    wrong.append(number)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_large_launches_inside_refuse_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the loop is run as it was before, its body by itself."""
    monkeypatch.setattr(device, "SPLIT_INSIDE_FROM", 1 << 9)
    monkeypatch.setattr(device, "REGION_COMPILED_FROM", 0)
    body = carrying([LARGE] * 3, ("new", 0, "first"))
    executable = device.Executable(body)
    steps = executable.steps(device._words_layout)
    assert steps is not None
    assert [node.op for node in steps.evaluated] == ["while"]
    random = np.random.default_rng(0)
    check(body, [[random_tensor(random, LARGE) for _ in range(3)] for _ in range(3)])


def test_launches_inside_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once each, in the first run and in later ones; a loop that is commands is not left to the reference."""
    monkeypatch.setattr(device, "REGION_COMPILED_FROM", 0)
    body = carrying([LARGE] * 3, ("new", 0, "first"))
    inputs = [random_tensor(np.random.default_rng(0), LARGE) for _ in range(3)]
    executable = device.Executable(body)
    found = []
    for _ in range(3):
        executable.run(inputs)
        statistics = executable.statistics
        assert not statistics.reference
        found.append((statistics.kernels, statistics.fused, statistics.bytes_moved))
    # both values, the counter, and whether there is a next step
    assert found == [found[0]] * 3
    assert found[0][0] == 3
    assert found[0][2] > 3 * 1600
