"""Sums of products are recognised with their variables, their order and what follows, and nothing else is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lower_graphs import Builder

from tlir.ir.ops import Accumulate
from tlir.ir.types import NAMED, TensorType
from tlir.kernel.ir import Kernel, Launch
from tlir.kernel.parse import parse_kernel
from tlir.kernel.patterns import Contraction, as_contraction
from tlir.kernel.text import kernel_text
from tlir.passes.lower import lower

F32 = NAMED["float32"]


def product(count: int, accumulate: Accumulate | None = None, dtype: str = "float32", bias: bool = False) -> Kernel:
    """The kernel of a [2, 3, count] by [count, 4, 2] product with the first and last axes of the factors batched."""
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


def extents(variables: Any) -> list[int]:
    return [v.extent for v in variables]


def names(statements: Any) -> list[str]:
    return [getattr(s, "op", type(s).__name__) for s in statements]


def test_a_plain_product() -> None:
    contraction = found(product(5))
    assert [extents(part) for part in (contraction.batch, contraction.rows, contraction.columns)] == [[2], [3], [4]]
    (part,) = contraction.parts
    assert (part.blocks, extents(part.terms), part.count) == (None, [5], 5)
    assert (contraction.adds, contraction.fused, contraction.start) == (False, False, 0)
    assert names(part.lhs) == names(part.rhs) == ["Load"]


def test_an_epilogue_and_a_fused_product() -> None:
    contraction = found(product(5, Accumulate(fma=True), bias=True))
    assert contraction.fused
    assert names(contraction.epilogue)[-3:] == ["add", "tanh", "Store"]


@pytest.mark.parametrize("count", [6, 7, 8, 9, 10, 13])
@pytest.mark.parametrize("fma", [False, True])
def test_blocks(count: int, fma: bool) -> None:
    contraction = found(product(count, Accumulate(order="blocked", block=4, fma=fma)))
    assert (contraction.adds, contraction.fused) == (True, fma)
    blocks = [(1 if part.blocks is None else part.blocks.extent, part.count) for part in contraction.parts]
    assert sum(times * terms for times, terms in blocks) == count
    assert all(terms == 4 for _, terms in blocks[:-1])


def test_a_wider_accumulator() -> None:
    contraction = found(product(5, Accumulate(F32), "float16"))
    assert names(contraction.parts[0].lhs) == ["Load", "convert"]
    assert contraction.total.dtype == F32
    assert [name for name in names(contraction.epilogue) if name != "Literal"] == ["convert", "Store"]


def test_several_terms_a_product_written_as_a_sum_and_columns_along_memory() -> None:
    builder = Builder(np.random.default_rng(0))
    cube = TensorType((6, 5, 4, 3), F32)
    x, y = builder.input(TensorType((6, 5, 3), F32)), builder.input(TensorType((5, 3, 4), F32))
    wide = builder.add("broadcast_in_dim", (x,), cube, broadcast_dimensions=(0, 1, 3))
    deep = builder.add("broadcast_in_dim", (y,), cube, broadcast_dimensions=(1, 3, 2))
    products = builder.add("multiply", (deep, wide), cube)
    total = builder.add("reduce", (products,), TensorType((6, 4), F32), reducer="add", dimensions=(1, 3))
    (step,) = lower(builder.body([total])).steps
    assert isinstance(step, Launch)
    contraction = found(step.kernel)
    assert extents(contraction.parts[0].terms) == [5, 3]
    # the first factor is the one of the columns: products commute
    assert (extents(contraction.rows), extents(contraction.columns)) == ([6], [4])


TEXT = """kernel @k(n0: input float32[81], n1: input float32[81], n2: output float32[81]) space(i0 < 9, i1 < 9) {
  v0: float32 = literal 0x0
  v9: float32 = load n0[i0]
  v6: float32 = loop i2 < 9 carry(v1: float32 = v0) {
    v2: float32 = load n0[9*i0 + i2]
    v3: float32 = load n1[9*i2 + i1]
    v4: float32 = multiply(v2, v3)
    v5: float32 = add(v1, v4)
    yield v5
  }
  store n2[9*i0 + i1] = v6
}"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("add(v1, v4)", "add(v4, v1)"),
        ("add(v1, v4)", "subtract(v1, v4)"),
        ("multiply(v2, v3)", "divide(v2, v3)"),
        ("multiply(v2, v3)", "multiply(v2, v1)"),
        ("yield v5", "yield v4"),
        ("float32 = v0)", "float32 = v9)"),
        ("n1[9*i2 + i1]", "n1[9*i2]"),
        ("store n2", "each i7 < 2 {\n }\n store n2"),
    ],
)
def test_what_only_looks_like_a_sum_of_products_is_none(before: str, after: str) -> None:
    assert as_contraction(parse_kernel(TEXT)) is not None
    assert before in TEXT
    assert as_contraction(parse_kernel(TEXT.replace(before, after))) is None


def test_a_pairwise_sum_and_an_elementwise_kernel_are_none() -> None:
    assert as_contraction(product(20, Accumulate(order="pairwise"))) is None
    assert as_contraction(product(0)) is None
