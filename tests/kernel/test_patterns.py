"""Contractions are recognised with their strides and order, and nothing else is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lower_graphs import Builder

from tlir.ir.ops import Accumulate
from tlir.ir.types import NAMED, TensorType
from tlir.kernel.ir import Kernel, Launch, Store
from tlir.kernel.parse import parse_kernel
from tlir.kernel.patterns import Contraction, as_contraction
from tlir.kernel.text import kernel_text
from tlir.passes.lower import lower

F32, F16, F64 = NAMED["float32"], NAMED["float16"], NAMED["float64"]


def product(count: int, accumulate: Accumulate | None = None, dtype: str = "float32", bias: bool = False) -> Kernel:
    """The kernel of a [2, 3, count] by [count, 4, 2] product with the last and first axes of the factors batched."""
    builder = Builder(np.random.default_rng(0))
    of = NAMED[dtype]
    x, y = builder.input(TensorType((2, 3, count), of)), builder.input(TensorType((count, 4, 2), of))
    attrs: dict[str, Any] = {
        "lhs_batching_dimensions": (0,),
        "rhs_batching_dimensions": (2,),
        "lhs_contracting_dimensions": (2,),
        "rhs_contracting_dimensions": (0,),
    }
    result = TensorType((2, 3, 4), of)
    value = builder.add("dot_general", (x, y), result, **attrs, **({"accumulate": accumulate} if accumulate else {}))
    if bias:
        vector = builder.input(TensorType((4,), of))
        wide = builder.add("broadcast_in_dim", (vector,), result, broadcast_dimensions=(2,))
        value = builder.add("tanh", (builder.add("add", (wide, value), result),), result)
    (step,) = lower(builder.body([value])).steps
    assert isinstance(step, Launch)
    return step.kernel


def found(kernel: Kernel) -> Contraction:
    contraction = as_contraction(kernel)
    assert contraction is not None, kernel_text(kernel)
    return contraction


def test_a_plain_product() -> None:
    contraction = found(product(5))
    b, m, n = contraction.space
    (k,) = contraction.contracted
    assert [v.extent for v in (b, m, n, k)] == [2, 3, 4, 5]
    assert [contraction.lhs.stride(v) for v in (b, m, n, k)] == [15, 5, 0, 1]
    assert [contraction.rhs.stride(v) for v in (b, m, n, k)] == [1, 0, 2, 8]
    assert (contraction.block, contraction.fused, contraction.start.word) == (0, False, 0)
    assert isinstance(contraction.after[-1], Store)


def test_an_epilogue_and_a_fused_product() -> None:
    contraction = found(product(5, Accumulate(fma=True), bias=True))
    assert contraction.fused
    assert [getattr(s, "op", type(s).__name__) for s in contraction.after] == ["add", "tanh", "Store"]
    assert [type(s).__name__ for s in contraction.before] == ["Load", "Literal"]


@pytest.mark.parametrize("count", [6, 7, 8, 9, 10, 13])
@pytest.mark.parametrize("fma", [False, True])
def test_blocks(count: int, fma: bool) -> None:
    contraction = found(product(count, Accumulate(order="blocked", block=4, fma=fma)))
    (k,) = contraction.contracted
    assert (contraction.block, k.extent, contraction.fused) == (4, count, fma)
    assert (contraction.lhs.stride(k), contraction.rhs.stride(k)) == (1, 8)
    assert (contraction.lhs.constant, contraction.rhs.constant) == (0, 0)
    assert contraction.total in [operand for s in contraction.after for operand in (getattr(s, "value", None),)]


def test_a_wider_accumulator_and_bool() -> None:
    contraction = found(product(5, Accumulate(F32), "float16"))
    assert contraction.lhs.converts == contraction.rhs.converts == (F32,)
    assert contraction.dtype == F32
    assert getattr(contraction.after[0], "op", "") == "convert"
    truth = found(product(5, dtype="bool"))
    assert (truth.multiply, truth.add) == ("and", "or")


def test_several_contracted_axes_and_a_product_written_as_a_sum() -> None:
    builder = Builder(np.random.default_rng(0))
    cube = TensorType((6, 5, 4, 3), F32)
    x, y = builder.input(TensorType((6, 5, 3), F32)), builder.input(TensorType((5, 3, 4), F32))
    wide = builder.add("broadcast_in_dim", (x,), cube, broadcast_dimensions=(0, 1, 3))
    deep = builder.add("broadcast_in_dim", (y,), cube, broadcast_dimensions=(1, 3, 2))
    products = builder.add("multiply", (wide, deep), cube)
    total = builder.add("reduce", (products,), TensorType((6, 4), F32), reducer="add", dimensions=(1, 3))
    (step,) = lower(builder.body([total])).steps
    assert isinstance(step, Launch)
    contraction = found(step.kernel)
    assert [v.extent for v in contraction.contracted] == [5, 3]
    assert [contraction.lhs.stride(v) for v in (*contraction.space, *contraction.contracted)] == [15, 0, 3, 1]
    assert [contraction.rhs.stride(v) for v in (*contraction.space, *contraction.contracted)] == [0, 1, 12, 4]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("add(v1, v4)", "add(v4, v1)"),
        ("add(v1, v4)", "subtract(v1, v4)"),
        ("multiply(v2, v3)", "divide(v2, v3)"),
        ("yield v5", "yield v4"),
        ("float32 = v0)", "float32 = v9)"),
        ("n0[i2]", "n0[(i2 floordiv 2)]"),
        ("store n2", "each i7 < 2 {\n }\n store n2"),
    ],
)
def test_what_only_looks_like_a_contraction_is_none(before: str, after: str) -> None:
    text = """kernel @k(n0: input float32[9], n1: input float32[9], n2: output float32[9]) space(i0 < 9) {
      v0: float32 = literal 0x0
      v9: float32 = load n0[i0]
      v6: float32 = loop i2 < 9 carry(v1: float32 = v0) {
        v2: float32 = load n0[i2]
        v3: float32 = load n1[i2]
        v4: float32 = multiply(v2, v3)
        v5: float32 = add(v1, v4)
        yield v5
      }
      store n2[i0] = v6
    }"""
    assert as_contraction(parse_kernel(text)) is not None
    assert before in text
    assert as_contraction(parse_kernel(text.replace(before, after))) is None


def test_a_pairwise_sum_and_an_elementwise_kernel_are_none() -> None:
    assert as_contraction(product(20, Accumulate(order="pairwise"))) is None
    assert as_contraction(product(0)) is None
