"""Factorizations and solvers in every dtype, interpreted and on devices, and proofs of their lowering."""

from __future__ import annotations

import numpy as np
import pytest
from lower_graphs import TABLE
from matrices import EMPTY, LARGER, ONE_OF_EACH, SMALL, Item, body_of, matrices

from tlir.backends.cpu import device
from tlir.backends.cuda import nvrtc
from tlir.backends.cuda.host import HostExecutable
from tlir.backends.cuda.source import Code, code, module
from tlir.backends.interpreter import run_program
from tlir.backends.reference import evaluate
from tlir.ir.graph import Graph
from tlir.kernel.ir import Fallback, Launch
from tlir.kernel.verify import verify_program
from tlir.passes.check.lowering import check_lowering
from tlir.passes.lower import lower

DTYPES = [name for name, dtype in TABLE.items() if dtype.is_float or dtype.is_complex]
HYPOTENUSES = ("geqrf", "eigh", "svd")
"""Operations with a function in them whose code has fused multiply-adds of its own."""


@pytest.mark.parametrize("name", DTYPES)
def test_the_interpreter_in_every_dtype(name: str) -> None:
    items = SMALL if name in ("float32", "complex64") else ONE_OF_EACH
    body, inputs = matrices(TABLE[name], [*items, *EMPTY], 11)
    with np.errstate(all="ignore"):
        expected = evaluate(body, inputs)
    program = lower(body)
    found = verify_program(program, body)
    assert not found.faults
    assert not found.undecided
    for ref, one, other in zip(body.outputs, expected, run_program(program, body, inputs), strict=True):
        assert one.same_words(other), (body.nodes[ref.node].op, ref.result, body.nodes[ref.node].attrs)


@pytest.mark.parametrize("item", [*SMALL, *EMPTY], ids=lambda item: f"{item[0]} {item[1][0]}")
@pytest.mark.parametrize("name", ["float32", "complex64"])
def test_the_lowering_is_proven(item: Item, name: str) -> None:
    body = body_of(TABLE[name], [item])
    assert not any(isinstance(step, Fallback) for step in lower(body).steps)
    found = check_lowering(Graph(body))
    assert (found.status, found.findings) == ("passed", ())


@pytest.mark.parametrize("item", LARGER, ids=lambda item: f"{item[0]} {item[1][0]}")
def test_the_lowering_of_larger_matrices_is_proven_at_small_shapes(item: Item) -> None:
    op, shapes, attrs = item
    larger = [tuple(50 * size for size in shape) for shape in shapes]
    body = body_of(TABLE["float32"], [(op, [(3, *shape) for shape in larger], attrs)])
    found = check_lowering(Graph(body))
    assert (found.status, found.findings) == ("passed", ())
    assert "small shapes" in found.covered


@pytest.mark.skipif(nvrtc.library() is None, reason="NVRTC is not installed")
def test_nvrtc_compiles_them_and_contracts_nothing() -> None:
    body = body_of(TABLE["float32"], [*SMALL, *LARGER])
    sources = []
    for step in lower(body).steps:
        if isinstance(step, Launch) and not any(body.nodes[number].op in HYPOTENUSES for number in step.kernel.nodes):
            made = code(step.kernel)
            assert isinstance(made, Code)
            sources += [one for one, _ in made.sources]
    assert len(sources) > 10
    assert "fma" not in nvrtc.to_ptx(module(sources), "sm_90")


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", DTYPES)
def test_devices_in_every_dtype(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "SPLIT_FROM", 0)
    wide = TABLE[name].bits > 64
    for items in (ONE_OF_EACH if wide else SMALL, [] if wide else LARGER):
        body, inputs = matrices(TABLE[name], items, 17)
        with np.errstate(all="ignore"):
            expected = evaluate(body, inputs)
        compiled = device.Executable(body)
        results = []
        for count in ("1", "2"):
            monkeypatch.setenv("TLIR_THREADS", count)
            results.append(compiled.run(inputs))
        results.append(HostExecutable(body, False).run(inputs))
        for found in results:
            for ref, one, other in zip(body.outputs, expected, found, strict=True):
                assert one.same_words(other), (body.nodes[ref.node].op, ref.result, body.nodes[ref.node].attrs)
