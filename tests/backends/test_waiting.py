"""Kernels that fill several arrays, where some of them would wait for each other: rings of pairs, and random graphs of
values that read each other in another order."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from lower_graphs import Builder, random_tensor

from tlir.backends.cpu.device import Executable
from tlir.backends.cuda.host import HostExecutable
from tlir.backends.reference import evaluate
from tlir.ir.graph import Body, Graph, Ref
from tlir.ir.types import NAMED, TensorType
from tlir.kernel.ir import Launch
from tlir.passes.check.lowering import check_lowering
from tlir.passes.lower import lower

BARRIERS = ("sort", "cumulative", "reverse", "reduce")
"""What reads a value in another order, so that it has to be there before."""


def moved(builder: Builder, x: Ref, barrier: str) -> Ref:
    type = builder.type(x)
    if barrier == "sort":
        return builder.add("sort", (x,), type, dimension=0)
    if barrier == "cumulative":
        return builder.add("cumulative", (x,), type, reducer="maximum", dimension=0, reverse=False)
    if barrier == "reverse":
        return builder.add("reverse", (x,), type, dimensions=(0,))
    total = builder.add("reduce", (x,), TensorType((), type.dtype), reducer="add", dimensions=(0,))
    return builder.add("broadcast_in_dim", (total,), type, broadcast_dimensions=())


def ring(pairs: int, barrier: str, between: int, turned: bool, size: int) -> Body:
    """``pairs`` pairs of values that read the same. The second of each needs the first of the next pair, by way of
    ``between`` values and all its elements. ``turned``: the second of the first pair is the last in the graph."""
    builder = Builder(np.random.default_rng(0))
    type = TensorType((size,), NAMED["float32"])
    given = [builder.input(type) for _ in range(pairs)]
    firsts: list[Ref] = []
    waits: list[Ref] = []
    for x in given:
        firsts.append(way := builder.add("sqrt", (x,), type))
        for _ in range(between):
            way = builder.add("negate", (way,), type)
        waits.append(moved(builder, way, barrier))
    numbers = range(pairs)[::-1] if turned else range(pairs)
    seconds = [builder.add("add", (waits[(k + 1) % pairs], given[k]), type) for k in numbers]
    return builder.body([*firsts, *seconds])


def scrambled(seed: int, size: int) -> Body:
    """Cheap operations on values of one shape, a third of them results, of which many read others in another order."""
    random = np.random.default_rng(seed)
    builder, type = Builder(random), TensorType((size,), NAMED["float32"])
    values = [builder.input(type) for _ in range(2)]

    def some() -> Ref:
        if random.random() < 0.6:
            return values[int(random.integers(len(values)))]
        return values[-1 - int(random.integers(min(4, len(values))))]

    for _ in range(int(random.integers(10, 40))):
        x, kind = some(), random.random()
        if kind < 0.25:
            values.append(builder.add("add", (x, some()), type))
        elif kind < 0.6:
            values.append(builder.add("negate" if kind < 0.45 else "sqrt", (x,), type))
        else:
            values.append(moved(builder, x, "reverse" if kind < 0.85 else "cumulative"))
    results = [x for x in values[2:] if random.random() < 0.35]
    return builder.body(results or values[-1:])


def same(body: Body, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the processor with one thread and with two."""
    random = np.random.default_rng(1)
    inputs = [random_tensor(random, type) for type in body.input_types]
    with np.errstate(all="ignore"):
        expected = evaluate(body, inputs)
    executable = Executable(body)
    for count in ("1", "2"):
        monkeypatch.setenv("TLIR_THREADS", count)
        results = executable.run(inputs)
        assert [a.same_words(b) for a, b in zip(expected, results, strict=True)] == [True] * len(expected)
    assert executable.statistics.reference == []


@pytest.mark.parametrize("barrier", BARRIERS)
def test_rings(barrier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for pairs in (2, 3, 5):
        for between in (0, 1, 2):
            for turned in (False, True):
                body = ring(pairs, barrier, between, turned, 50)
                outputs = [
                    sum(buffer.role == "output" for buffer in step.kernel.buffers)
                    for step in lower(body).steps
                    if isinstance(step, Launch)
                ]
                assert max(outputs) > 1
    same(ring(2, barrier, 1, True, 50), monkeypatch)
    same(ring(3, barrier, 1, True, 3000), monkeypatch)


@pytest.mark.parametrize("seed", [89, 1104, 4536, *range(6)])
def test_random_graphs(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    same(scrambled(seed, 50), monkeypatch)


def test_many_random_graphs_have_a_program() -> None:
    assert all(lower(scrambled(seed, 50)).steps for seed in range(300))


@pytest.mark.parametrize("body", [ring(2, "sort", 1, True, 6), ring(3, "reverse", 1, True, 6)], ids=["2", "3"])
def test_a_host_build_and_the_proof(body: Body) -> None:
    inputs = [random_tensor(np.random.default_rng(2), type) for type in body.input_types]
    with np.errstate(all="ignore"):
        expected, results = evaluate(body, inputs), HostExecutable(body).run(inputs)
    assert all(a.same_words(b) for a, b in zip(expected, results, strict=True))
    assert check_lowering(Graph(body)).status == "passed"
