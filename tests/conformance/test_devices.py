"""Every case, every operation in every dtype, golden artifacts and random graphs on the compiled devices: the words of
the cases and of the reference.

The cpu device runs them on one thread and on two, the host build of the CUDA source with the threads of a block in
either order. Nodes of many cases make one graph, and several graphs are built together.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import cases_data
import cases_floats
import cases_integers
import cases_reductions
import numpy as np
import pytest
from conformance import Case, tensor_type, to_tensor, words_of
from lower_graphs import random_graph
from programs import Program, programs

from tlir.backends.cpu import device
from tlir.backends.cuda.function import Source
from tlir.backends.cuda.host import HostExecutable, build
from tlir.backends.cuda.source import source
from tlir.backends.reference import evaluate
from tlir.ir.graph import Body, Node, Ref
from tlir.ir.ops import OPERATIONS
from tlir.ir.tensor import Tensor
from tlir.kernel.ir import Alias, Fallback, Launch
from tlir.passes.lower import REASONS, lower
from tlir.schema import read

GOLDEN = sorted((Path(__file__).resolve().parents[1] / "golden").glob("*/*.json"))
CASES = [case for module in (cases_data, cases_floats, cases_integers, cases_reductions) for case in module.CASES]

NO_WORK = {"input", "constant"}
"""Operations that are given, and not computed."""

BATCH = 9
"""Programs that are built together for the host."""


@cache
def together() -> Program:
    """All cases as one graph."""
    nodes: list[Node] = []
    given: list[Tensor] = []
    outputs = []
    for case in CASES:
        first = len(nodes)
        for operand in map(to_tensor, case.operands):
            nodes.append(Node(len(nodes), "input", (), {}, (operand.type,)))
            given.append(operand)
        refs = tuple(Ref(k) for k in range(first, len(nodes)))
        outputs.append(Ref(len(nodes)))
        nodes.append(Node(len(nodes), case.op, refs, dict(case.attrs), (tensor_type(case.expected.type),)))
    inputs = tuple(node.id for node in nodes if node.op == "input")
    return Program("cases", Body(tuple(nodes), inputs, tuple(outputs)), given)


@cache
def batches() -> list[list[Program]]:
    every = [together(), *programs()]
    return [every[k : k + BATCH] for k in range(0, len(every), BATCH)]


NUMBER_OF_BATCHES = 8


def test_every_batch_is_run() -> None:
    assert len(batches()) == NUMBER_OF_BATCHES


def compare(program: Program, results: Sequence[Tensor]) -> None:
    """The words of the cases, or of the reference."""
    if program is together():
        for case, result in zip(CASES, results, strict=True):
            assert [hex(word) for word in words_of(result)] == [hex(word) for word in case.expected.words], name(case)
        return
    for ref, expected, result in zip(program.body.outputs, reference(program.name), results, strict=True):
        assert expected.same_words(result), f"{program.name}: {program.body.nodes[ref.node]}"


def name(case: Case) -> str:
    return f"{case.op}: {case.name}"


@cache
def reference(name_of_program: str) -> list[Tensor]:
    (program,) = (p for batch in batches() for p in batch if p.name == name_of_program)
    with np.errstate(all="ignore"):
        return evaluate(program.body, program.inputs)


def fallbacks(program: Program) -> set[int]:
    """The nodes without a kernel."""
    return {step.node for step in lower(program.body).steps if isinstance(step, Fallback)}


@pytest.mark.parametrize("number", range(NUMBER_OF_BATCHES))
def test_the_cpu_device_on_one_thread_and_on_two(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("llvmlite")
    # small launches are shared too
    monkeypatch.setattr(device, "SPLIT_FROM", 0)
    for program in batches()[number]:
        executable = device.Executable(program.body)
        for count in ("1", "2"):
            monkeypatch.setenv("TLIR_THREADS", count)
            compare(program, executable.run(program.inputs))
        # every kernel was compiled
        assert {number for number, _ in executable.statistics.reference} == fallbacks(program), program.name


def on_one_thread_and_on_two(body: Body, inputs: list[Tensor], monkeypatch: pytest.MonkeyPatch) -> device.Executable:
    executable = device.Executable(body)
    with np.errstate(all="ignore"):
        expected = evaluate(body, inputs)
    for count in ("1", "2"):
        monkeypatch.setenv("TLIR_THREADS", count)
        results = executable.run(inputs)
        assert [a.same_words(b) for a, b in zip(expected, results, strict=True)] == [True] * len(expected)
    return executable


@pytest.mark.parametrize("part", range(6))
def test_golden_artifacts_on_the_cpu_device(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("llvmlite")
    monkeypatch.setattr(device, "SPLIT_FROM", 0)
    for path in GOLDEN[part::6]:
        graph = read(path)
        for sample in graph.samples:
            executable = on_one_thread_and_on_two(graph.body, list(sample.inputs), monkeypatch)
            assert executable.statistics.reference == [], path.stem


@pytest.mark.parametrize("seed", range(3000, 3030))
def test_random_graphs_on_the_cpu_device(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("llvmlite")
    monkeypatch.setattr(device, "SPLIT_FROM", 0)
    on_one_thread_and_on_two(*random_graph(seed, 10), monkeypatch)


@pytest.mark.parametrize("number", range(NUMBER_OF_BATCHES))
def test_the_host_build_of_the_cuda_source(number: int) -> None:
    pytest.importorskip("llvmlite")
    kernels = [
        step.kernel for program in batches()[number] for step in lower(program.body).steps if isinstance(step, Launch)
    ]
    built = build([made for made in map(source, kernels) if isinstance(made, Source)])
    for program in batches()[number]:
        for descending in (False, True):
            executable = HostExecutable(program.body, descending, built=built)
            compare(program, executable.run(program.inputs))
            assert {number for number, _ in executable.statistics.reference} == fallbacks(program), program.name
            # a bound that does not suffice is a matter of functions
            assert not executable.settled or program.name.startswith("functions of "), program.name


def test_every_operation_has_a_kernel_in_some_program() -> None:
    found: set[str] = set()
    for program in (program for batch in batches() for program in batch):
        nodes = program.body.nodes
        for step in lower(program.body).steps:
            if isinstance(step, Launch):
                found |= {nodes[number].op for number in step.kernel.nodes}
            elif isinstance(step, Alias):
                found.add(nodes[step.value.node].op)
    assert OPERATIONS.keys() - found == NO_WORK
    assert not REASONS
