"""Every operation that has a kernel, in its CUDA form: conformance cases and elementary functions by the host build,
and all of their sources by NVRTC."""

from __future__ import annotations

from functools import cache

import cases_data
import cases_floats
import cases_integers
import cases_reductions
import numpy as np
import pytest
from conformance import single, tensor_type, to_tensor, words_of
from cuda_forms import inputs_of, same_all
from lower_graphs import Builder
from programs import accepted

from tlir.backends.cuda import nvrtc
from tlir.backends.cuda.function import Source
from tlir.backends.cuda.host import HostExecutable, build
from tlir.backends.cuda.source import module, source
from tlir.ir.graph import Body
from tlir.ir.ops import OPERATIONS
from tlir.ir.tensor import Tensor
from tlir.ir.types import NAMED, TensorType
from tlir.kernel.ir import Launch
from tlir.passes.lower import LOWERED, lower
from tlir.passes.lower.functions import has_complex_kernel, has_kernel

CASES = [case for module in (cases_data, cases_floats, cases_integers, cases_reductions) for case in module.CASES]
FAMILIES = ("elementary", "special")
ELEMENTARY = sorted(op for op in LOWERED if OPERATIONS[op].family in FAMILIES and op != "complex_power")


COMPLEX = sorted(op for op in OPERATIONS if has_complex_kernel(op, NAMED["float32"]))


@cache
def graphs() -> tuple[Body, ...]:
    return tuple(
        single(case.op, [to_tensor(o) for o in case.operands], tensor_type(case.expected.type), case.attrs).body
        for case in CASES
    )


def sources(bodies: tuple[Body, ...]) -> list[Source]:
    made = [source(step.kernel) for body in bodies for step in lower(body).steps if isinstance(step, Launch)]
    return [one for one in made if isinstance(one, Source)]


def test_conformance_cases_on_a_host_build() -> None:
    built = build(sources(graphs()))
    run = 0
    for case, body in zip(CASES, graphs(), strict=True):
        executable = HostExecutable(body, built=built)
        (result,) = executable.run([to_tensor(operand) for operand in case.operands])
        assert [hex(word) for word in words_of(result)] == [hex(word) for word in case.expected.words], case.name
        run += executable.statistics.kernels
    assert run > 140, "most cases have a kernel"


def elementary(op: str, dtype: str) -> Body:
    builder, type = Builder(np.random.default_rng(0)), TensorType((150,), NAMED[dtype])
    operands = [builder.input(type) for _ in range(len(OPERATIONS[op].operands))]
    return builder.body([builder.add(op, accepted(builder, op, operands, type), type)])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_elementary_functions_on_a_host_build(dtype: str) -> None:
    bodies = [elementary(op, dtype) for op in ELEMENTARY if has_kernel(op, NAMED[dtype])]
    inputs = [inputs_of(body) for body in bodies]
    made = same_all(bodies, inputs=inputs)
    assert all(len(one) == 1 for one in made)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_functions_on_a_host_build(dtype: str) -> None:
    """Of ordinary numbers, with parts that are 0 and large angles; few are left open."""
    random = np.random.default_rng(3)
    bodies = [elementary(op, dtype) for op in COMPLEX]
    kind = f"f{NAMED[dtype].component.bits // 8}"
    inputs = []
    for body in bodies:
        given = []
        for type in body.input_types:
            parts = random.standard_normal((type.size, 2))
            parts[:12] *= [[1, 0], [0, 1], [1, 1e5]] * 4
            given.append(Tensor(type, parts.astype(kind).view(NAMED[dtype].word_dtype)))
        inputs.append(given)
    same_all(bodies, inputs=inputs, settles=True)
    built = build(sources(tuple(bodies)))
    for op, body, given in zip(COMPLEX, bodies, inputs, strict=True):
        executable = HostExecutable(body, built=built)
        executable.run(given)
        assert executable.settled <= (12 if op == "power" else 4), op


@pytest.mark.parametrize("op", ["sine", "cosine", "tan"])
def test_angles_of_every_size(op: str) -> None:
    """All words of bfloat16, which reach 3e38, and many of float32."""
    random = np.random.default_rng(4)
    words = {"bfloat16": np.arange(1 << 16, dtype=np.uint16), "float32": random.integers(0, 1 << 32, 20000, np.uint32)}
    bodies, inputs = [], []
    for dtype, given in words.items():
        builder, type = Builder(random), TensorType(given.shape, NAMED[dtype])
        bodies.append(builder.body([builder.add(op, (builder.input(type),), type)]))
        inputs.append([Tensor(type, given)])
    same_all(bodies, inputs=inputs)


@pytest.mark.skipif(nvrtc.library() is None, reason="NVRTC is not installed")
@pytest.mark.parametrize("architecture", nvrtc.ARCHITECTURES)
def test_nvrtc_compiles_all_of_them(architecture: str) -> None:
    double = [elementary(op, "float64") for op in ("erf_inv", "lgamma", "digamma")]
    bodies = (*graphs(), *(elementary(op, "float32") for op in ELEMENTARY), *double)
    if architecture == nvrtc.ARCHITECTURES[-1]:
        # their code is the longest, and of one kind
        bodies += tuple(elementary(op, "complex64") for op in COMPLEX)
    ptx = nvrtc.to_ptx(module(sources(bodies)), architecture)
    assert ptx.count(".entry") == len({one.name for one in sources(bodies)})
    # CUDA's own fmod starts from an estimate of a quotient, and is exact
    assert ".ftz" not in ptx.replace("rcp.approx.ftz", "")
