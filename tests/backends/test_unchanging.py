"""Kernels that are the same in every run run once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from lower_graphs import Builder

import tlir.backends.unchanging as limits
from tlir.backends.cpu.commands import CALL, END
from tlir.backends.cpu.device import Executable
from tlir.backends.cpu.direct import direct
from tlir.backends.cuda.host import HostExecutable
from tlir.backends.reference import evaluate
from tlir.ir.graph import Body
from tlir.ir.tensor import Tensor
from tlir.ir.types import NAMED, TensorType
from tlir.kernel.ir import Launch

F32 = NAMED["float32"]
MATRIX, VECTOR = TensorType((8, 8), F32), TensorType((8,), F32)


def with_table(given_out: bool = False) -> Body:
    """x times a table that is a product of two arrays counted along their axes, and of a constant."""
    builder = Builder(np.random.default_rng(0))
    attrs: dict[str, Any] = dict.fromkeys(("lhs_batching_dimensions", "rhs_batching_dimensions"), ())
    attrs |= {"lhs_contracting_dimensions": (1,), "rhs_contracting_dimensions": (0,)}
    x = builder.input(VECTOR)
    weights = Tensor.from_numpy(np.random.default_rng(1).standard_normal((8, 8)).astype(np.float32))
    rows, columns = (builder.add("iota", (), MATRIX, iota_dimension=axis) for axis in (0, 1))
    constant = builder.add("constant", (), MATRIX, value=weights)
    table = builder.add("dot_general", (builder.add("sqrt", (rows,), MATRIX), columns), MATRIX, **attrs)
    table = builder.add("dot_general", (table, constant), MATRIX, **attrs)
    result = builder.add("dot_general", (table, x), VECTOR, **attrs)
    return builder.body([result, table] if given_out else [result])


def counted(executable: Executable, inputs: Sequence[Tensor], runs: int = 3) -> list[int]:
    """The kernels that each of some runs launches; all give the reference's words."""
    counts = []
    for _ in range(runs):
        expected, results = evaluate(executable.body, inputs), executable.run(inputs)
        assert all(a.same_words(b) for a, b in zip(expected, results, strict=True))
        counts.append(executable.statistics.kernels)
    return counts


def inputs(seed: int = 2) -> list[Tensor]:
    return [Tensor.from_numpy(np.random.default_rng(seed).standard_normal(8).astype(np.float32))]


@pytest.mark.parametrize("make", [Executable, HostExecutable])
def test_they_run_once(make: type[Executable]) -> None:
    executable = make(with_table())
    launches = sum(isinstance(step, Launch) for step in executable.program.steps)
    assert launches > 2
    first, second, third = counted(executable, inputs())
    assert first == launches
    assert second == third == 1


def test_what_a_run_hands_out_is_computed_each_time() -> None:
    executable = Executable(with_table(given_out=True))
    counted(executable, inputs())
    results = executable.run(inputs())
    results[1].words[...] = 0
    counted(executable, inputs())


def test_what_takes_much_memory_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "KEPT_BYTES", 300)
    executable = Executable(with_table())
    first, second, _ = counted(executable, inputs())
    # one matrix of 256 bytes is kept
    assert 1 < second < first


def test_the_short_way_does_not_launch_them() -> None:
    executable = Executable(with_table())
    short = direct(executable)
    assert short is not None
    code = short.script.code
    assert (code[0], code[8 + code[7]], len(code)) == (CALL, END, 9 + code[7])
    (given,) = inputs()
    (array,) = short.run([given.words.view(np.float32)]) or []
    (expected,) = evaluate(executable.body, [given])
    assert expected.same_words(Tensor.from_numpy(array))
