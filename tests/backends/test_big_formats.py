"""Formats wider than 256 bits in kernels: by functions with loops over limbs. The words are the reference's."""

from __future__ import annotations

import numpy as np
import pytest
from lower_graphs import Builder, random_tensor
from programs import Program, elementwise, structured

from tlir.backends.cpu import device
from tlir.backends.cpu.device import Executable
from tlir.backends.cuda import nvrtc
from tlir.backends.cuda.function import Source
from tlir.backends.cuda.host import HostExecutable
from tlir.backends.cuda.source import module, source
from tlir.backends.reference import evaluate
from tlir.floatlib.format import Format
from tlir.ir.graph import Body
from tlir.ir.types import DType, TensorType, complex_of
from tlir.kernel.ir import Launch
from tlir.passes.lower import lower

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
    executable, host = Executable(program.body), HostExecutable(program.body)
    runs = []
    for count in ("1", "2"):
        monkeypatch.setenv("TLIR_THREADS", count)
        runs.append(executable.run(program.inputs))
    runs.append(host.run(program.inputs))
    for results in runs:
        for ref, want, result in zip(program.body.outputs, expected, results, strict=True):
            assert want.same_words(result), program.body.nodes[ref.node]
    assert executable.statistics.reference == host.statistics.reference
    left = {program.body.nodes[number].op for number, _ in executable.statistics.reference}
    assert left <= ({"divide", "integer_pow", "abs"} if "complex" in program.name else set())


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
    with np.errstate(all="ignore"):
        expected = evaluate(body, inputs)
    for executable in (Executable(body), HostExecutable(body)):
        assert [a.same_words(b) for a, b in zip(expected, executable.run(inputs), strict=True)] == [True]
        assert not executable.statistics.reference


@pytest.mark.parametrize(("dtype", "architecture"), [(FLOAT700, "sm_80"), (FLOAT700, "sm_100"), (FLOAT2048, "sm_90")])
def test_the_compiler_of_cuda_takes_the_source(dtype: DType, architecture: str) -> None:
    if nvrtc.library() is None:
        pytest.skip("NVRTC is not installed")
    body, _ = product(dtype, 5)
    sources = [source(step.kernel) for step in lower(body).steps if isinstance(step, Launch)]
    text = module([made for made in sources if isinstance(made, Source)])
    assert len(nvrtc.to_cubin(text, architecture)) > 1000
