"""Special functions inside kernels: that they are lowered and proven to be, and running totals of exponentials in every
format that they are accumulated in."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cuda_forms import inputs_of, same
from lower_graphs import Builder

from tlir.backends.cpu import device
from tlir.backends.reference import evaluate
from tlir.floatlib.format import Format
from tlir.ir.graph import Body, Graph
from tlir.ir.ops import OPERATIONS, Accumulate
from tlir.ir.types import NAMED, DType, TensorType
from tlir.kernel.ir import Fallback
from tlir.passes.check.lowering import check_lowering
from tlir.passes.lower import lower
from tlir.passes.lower.functions import has_kernel


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_they_are_parts_of_kernels(dtype: str) -> None:
    """All with a sum before and behind it make one kernel, which the check finds to compute the same."""
    type = TensorType((3, 5), NAMED[dtype])
    builder = Builder(np.random.default_rng(0))
    x, y = builder.input(type), builder.input(type)
    before = builder.add("add", (x, y), type)
    total = before
    for name, operation in OPERATIONS.items():
        if operation.family == "special" and has_kernel(name, type.dtype):
            operands = (before, y, y)[: len(operation.operands)]
            total = builder.add("add", (total, builder.add(name, operands, type)), type)
    body = builder.body([total])
    assert not [step for step in lower(body).steps if isinstance(step, Fallback)]
    assert check_lowering(Graph(body)).status == "passed"


FLOAT300 = DType("float300", "float", 300, Format(15, 284))
"""Of so many bits that nothing computes logarithms in kernels."""


def running(dtype: str, accumulate: str | None) -> Body:
    dtypes = {**NAMED, "float300": FLOAT300}
    type = TensorType((7, 40), dtypes[dtype])
    builder = Builder(np.random.default_rng(0))
    attrs = {} if accumulate is None else {"accumulate": replace(Accumulate(), dtype=dtypes[accumulate])}
    x = builder.input(type)
    total = builder.add("cumulative", (x,), type, reducer="logaddexp", dimension=1, reverse=False, **attrs)
    return builder.body([total])


@pytest.mark.parametrize(
    ("dtype", "accumulate"), [("float32", None), ("bfloat16", None), ("bfloat16", "float32"), ("float16", "bfloat16")]
)
def test_running_logarithms_of_sums_are_kernels(dtype: str, accumulate: str | None) -> None:
    pytest.importorskip("llvmlite")
    body = running(dtype, accumulate)
    inputs = inputs_of(body)
    (expected,) = evaluate(body, inputs)
    executable = device.Executable(body)
    (result,) = executable.run(inputs)
    assert expected.same_words(result)
    assert executable.statistics.reference == []
    same(body)


@pytest.mark.parametrize(("dtype", "accumulate"), [("float300", None), ("float32", "float300")])
def test_they_are_not_where_the_accumulator_has_no_kernel(dtype: str, accumulate: str | None) -> None:
    pytest.importorskip("llvmlite")
    body = running(dtype, accumulate)
    (step,) = lower(body).steps
    assert isinstance(step, Fallback)
    assert "float300" in step.reason
    inputs = inputs_of(body)
    (result,) = device.Executable(body).run(inputs)
    assert evaluate(body, inputs)[0].same_words(result)
