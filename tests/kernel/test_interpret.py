"""The interpreter of kernels: conformance cases, golden artifacts, and statements one by one."""

from __future__ import annotations

from pathlib import Path

import cases_data
import cases_floats
import cases_integers
import cases_reductions
import numpy as np
import pytest
from conformance import Case, single, tensor_type, to_tensor, words_of
from lower_graphs import random_graph

from tlir.backends import run
from tlir.backends.interpreter import WordDomain, run_program
from tlir.kernel import interpret
from tlir.kernel.interpret import run_kernel
from tlir.kernel.ir import Kernel
from tlir.kernel.parse import parse_kernel
from tlir.passes.lower import lower
from tlir.schema import read

CASES = [case for module in (cases_data, cases_floats, cases_integers, cases_reductions) for case in module.CASES]
GOLDEN = sorted((Path(__file__).parents[1] / "golden").glob("*/*.json"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.op}: {case.name}")
def test_conformance(case: Case) -> None:
    operands = [to_tensor(operand) for operand in case.operands]
    body = single(case.op, operands, tensor_type(case.expected.type), case.attrs).body
    (result,) = run_program(lower(body), body, operands)
    assert [hex(word) for word in words_of(result)] == [hex(word) for word in case.expected.words]


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_golden_artifacts(path: Path) -> None:
    graph = read(path)
    inputs = graph.samples[0].inputs
    results = run_program(lower(graph.body), graph.body, inputs)
    assert all(a.same_words(b) for a, b in zip(run(graph, inputs), results, strict=True))


def ran(text: str, **inputs: list[int]) -> dict[str, list[int]]:
    """The contents of the output buffers after a kernel has run on these words."""
    kernel: Kernel = parse_kernel(text)
    domain = WordDomain()
    memory = {
        buffer: np.array(inputs[buffer.name], buffer.dtype.word_dtype)
        if buffer.role == "input"
        else domain.blank(buffer.dtype, buffer.size)
        for buffer in kernel.buffers
        if buffer.role != "local"
    }
    run_kernel(kernel, memory, domain)
    return {buffer.name: words.tolist() for buffer, words in memory.items() if buffer.role == "output"}


def test_a_guarded_load_reads_nothing_where_a_bound_fails() -> None:
    text = """kernel @k(a: input int32[2], b: output int32[6]) space(i0 < 6) {
      v0: int32 = literal 0x7
      v1: int32 = load a[i0 - 2] where 0 <= i0 - 2 < 2 else v0
      store b[i0] = v1
    }"""
    assert ran(text, a=[40, 41]) == {"b": [7, 7, 40, 41, 7, 7]}


def test_branches_store_only_where_they_are_taken() -> None:
    text = """kernel @k(a: input bool[4], b: output int32[4]) space(i0 < 4) {
      v0: bool = load a[i0]
      v1: int32 = literal 0x1
      v2: int32 = literal 0x2
      if v0 {
        store b[i0] = v1
      } else {
        if v0 {
          store b[0] = v2
        } else {
          store b[3 - i0] = v2
        }
      }
    }"""
    assert ran(text, a=[0, 1, 1, 0]) == {"b": [2, 1, 1, 2]}


def test_loops_carry_in_order_and_local_buffers_belong_to_an_iteration() -> None:
    text = """kernel @k(a: output int64[6], t: local int64[3]) space(i0 < 2) {
      v0: int64 = position 10*i0 + 1
      v4: int64 = loop i1 < 3 carry(v1: int64 = v0) {
        v2: int64 = position i1
        v3: int64 = multiply(v1, v2)
        v5: int64 = add(v3, v0)
        store t[i1] = v5
        yield v5
      }
      each i2 < 3 {
        v6: int64 = load t[2 - i2]
        store a[3*i0 + i2] = v6
      }
    }"""
    one, eleven = [1, 2, 5], [11, 22, 55]
    assert ran(text) == {"a": [*reversed(one), *reversed(eleven)]}


def test_spans_are_what_the_loops_around_them_say() -> None:
    text = """kernel @k(a: output int64[8]) space(i0 < 2) {
      v0: int64 = position i0
      loop i1 < 4 carry() {
        v3: int64 = loop i2 < 4 from 0 to i1 carry(v1: int64 = v0) {
          v2: int64 = position 10*i2
          v4: int64 = add(v1, v2)
          yield v4
        }
        each i3 < 4 from i1 to 4 {
          store a[4*i0 + i3] = v3
        }
      }
    }"""
    assert ran(text) == {"a": [0, 0, 10, 30, 1, 1, 11, 31]}


def test_computed_indices() -> None:
    text = """kernel @k(a: input int8[3], b: input int32[4], c: output int32[3]) space(i0 < 3) {
      v0: int8 = load a[i0]
      v1: int32 = load b[[v0: -1 to 2] + 1]
      store c[i0] = v1
    }"""
    assert ran(text, a=[255, 2, 0], b=[5, 6, 7, 8]) == {"c": [5, 8, 6]}


@pytest.mark.parametrize("seed", range(25))
def test_a_space_taken_in_parts_gives_the_same_words(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    body, inputs = random_graph(seed, 10)
    program = lower(body)
    whole = run_program(program, body, inputs)
    monkeypatch.setattr(interpret, "SIDE_BY_SIDE", 3)
    parts = run_program(program, body, inputs)
    assert all(a.same_words(b) for a, b in zip(whole, parts, strict=True))
