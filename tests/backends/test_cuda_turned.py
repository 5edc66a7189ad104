"""Ordered sums along many rows, read through squares in shared memory, return the reference's words."""

from __future__ import annotations

import numpy as np
import pytest
from cuda_forms import by_rows, product, reduction, same, same_all
from lower_graphs import Builder

from tlir.backends.cuda import turned
from tlir.backends.cuda.source import source
from tlir.ir.graph import Body
from tlir.ir.ops import Accumulate
from tlir.ir.types import NAMED, TensorType
from tlir.kernel.ir import Kernel, Launch
from tlir.kernel.joining import join_variables
from tlir.passes.lower import lower


def kernel_of(body: Body) -> Kernel:
    (step,) = lower(body).steps
    assert isinstance(step, Launch)
    return join_variables(step.kernel)


def squared(dtype: str, shape: tuple[int, int]) -> Body:
    """Sums of products of the elements of two matrices along their rows."""
    builder, type = Builder(np.random.default_rng(0)), TensorType(shape, NAMED[dtype])
    x, y = builder.input(type), builder.input(type)
    products = builder.add("multiply", (x, y), type)
    total = builder.add("reduce", (products,), TensorType(shape[:1], type.dtype), reducer="add", dimensions=(1,))
    return builder.body([total])


def test_sums_of_rows() -> None:
    bodies = [
        reduction(dtype, shape, (1,))
        for dtype in ("float32", "float64", "float16", "bfloat16")
        for shape in ((5, 32), (129, 70), (32, 96))
    ]
    bodies += [squared("float32", (70, 65)), squared("float16", (40, 64))]
    bodies += [reduction("float32", (3, 40, 50), (2,)), reduction("float32", (6, 40, 50), (0, 2))]
    bodies += [product(((70, 45), (45,)), summed=((1,), (0,))), reduction("int8", (50, 40), (1,))]
    for (made,) in same_all(bodies, by_rows):
        assert "first_row" in made.text


@pytest.mark.parametrize("block", [5, 40, 64])
def test_blocks(block: int) -> None:
    order = Accumulate(order="blocked", block=block)
    (made,) = same(reduction("float32", (45, 200), (1,), "add", order), by_rows)
    assert ("first_row" in made.text) == (block >= turned.WARP or 200 % block >= turned.WARP)


@pytest.mark.parametrize(
    ("shape", "axis", "chosen"),
    [((1 << 15, 64), 1, True), ((1 << 10, 64), 1, False), ((64, 1 << 15), 0, False), ((1 << 15, 16), 1, False)],
)
def test_the_choice(shape: tuple[int, int], axis: int, chosen: bool) -> None:
    kernel = kernel_of(reduction("float32", shape, (axis,)))
    assert turned.suits(kernel) == chosen
    assert ("first_row" in str(source(kernel))) == chosen


def test_what_may_be_regrouped_or_is_stored_in_loops_is_not_turned() -> None:
    assert not turned.suits(kernel_of(reduction("int32", (1 << 15, 64), (1,))))
    assert not turned.fits(kernel_of(reduction("float32", (50, 640), (1,), "add", Accumulate(order="pairwise"))))
