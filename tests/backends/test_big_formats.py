"""Formats wider than 256 bits in kernels: on the cpu device by functions with loops over limbs, and from 640 bits on a
GPU by the reference. The words are the reference's."""

from __future__ import annotations

import numpy as np
import pytest
from lower_graphs import Builder, random_tensor
from programs import Program, elementwise, structured

from tlir.backends.cpu import device
from tlir.backends.cpu.device import Executable
from tlir.backends.cuda.host import HostExecutable
from tlir.backends.reference import evaluate
from tlir.floatlib.format import Format
from tlir.ir.graph import Body
from tlir.ir.tensor import Tensor
from tlir.ir.types import DType, TensorType, complex_of

pytest.importorskip("llvmlite")

FLOAT300 = DType("float300", "float", 300, Format(15, 284))
FLOAT700 = DType("float700", "float", 700, Format(19, 680))
FLOAT2048 = DType("float2048", "float", 2048, Format(24, 2023))


@pytest.mark.parametrize(
    "program",
    [elementwise(FLOAT300), elementwise(FLOAT700), structured(FLOAT700), elementwise(complex_of(FLOAT700))],
    ids=lambda program: program.name,
)
def test_every_operation(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "SPLIT_FROM", 0)
    with np.errstate(all="ignore"):
        expected = evaluate(program.body, program.inputs)
    executable = Executable(program.body)
    for count in ("1", "2"):
        monkeypatch.setenv("TLIR_THREADS", count)
        for ref, want, result in zip(program.body.outputs, expected, executable.run(program.inputs), strict=True):
            assert want.same_words(result), program.body.nodes[ref.node]
    left = {program.body.nodes[number].op for number, _ in executable.statistics.reference}
    assert left <= {"remainder", "divide", "integer_pow", "abs"} if "complex" in program.name else left <= {"remainder"}


def product(dtype: DType, n: int) -> tuple[Body, list[TensorType]]:
    builder, type = Builder(np.random.default_rng(0)), TensorType((n, n), dtype)
    x, y = builder.input(type), builder.input(type)
    total = builder.add(
        "dot_general",
        (x, y),
        type,
        lhs_batching_dimensions=(),
        rhs_batching_dimensions=(),
        lhs_contracting_dimensions=(1,),
        rhs_contracting_dimensions=(0,),
    )
    quotient = builder.add("divide", (total, builder.add("sqrt", (builder.add("abs", (y,), type),), type)), type)
    return builder.body([quotient]), [type, type]


def test_thousands_of_bits_are_compiled() -> None:
    """Written out limb by limb, such a product and quotient are hours of LLVM's time."""
    body, types = product(FLOAT2048, 5)
    inputs = [random_tensor(np.random.default_rng(k), type) for k, type in enumerate(types)]
    executable = Executable(body)
    results = executable.run(inputs)
    assert not executable.statistics.reference
    with np.errstate(all="ignore"):
        assert [a.same_words(b) for a, b in zip(evaluate(body, inputs), results, strict=True)] == [True]


@pytest.mark.parametrize(("dtype", "left"), [(FLOAT300, False), (FLOAT700, True)], ids=str)
def test_on_a_gpu_up_to_640_bits(dtype: DType, left: bool) -> None:
    builder, type = Builder(np.random.default_rng(0)), TensorType((7,), dtype)
    x, y = builder.input(type), builder.input(type)
    body = builder.body([builder.add(op, (x, y), type) for op in ("add", "multiply")])
    inputs: list[Tensor] = [random_tensor(np.random.default_rng(k), type) for k in range(2)]
    executable = HostExecutable(body)
    with np.errstate(all="ignore"):
        pairs = zip(evaluate(body, inputs), executable.run(inputs), strict=True)
    assert [a.same_words(b) for a, b in pairs] == [True, True]
    assert bool(executable.statistics.reference) == left
