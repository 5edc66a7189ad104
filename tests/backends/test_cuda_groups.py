"""Kernels whose iterations are shared by a warp or a block return the reference's words in every declared order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cuda_forms import grouped, inputs_of, reduction, same, same_all, softmax

from tlir.backends.cuda import groups
from tlir.backends.cuda.function import BLOCK, SCRATCH_BYTES, Source
from tlir.ir.ops import Accumulate
from tlir.ir.types import NAMED
from tlir.kernel.ir import Kernel, Launch
from tlir.passes.lower import lower

ORDERS = [
    Accumulate(),
    Accumulate(order="pairwise"),
    Accumulate(order="blocked", block=3),
    Accumulate(order="blocked", block=64),
    Accumulate(NAMED["float64"]),
]


@pytest.mark.parametrize("size", [groups.WARP, BLOCK])
@pytest.mark.parametrize("columns", [33, 700])
def test_float_sums_in_every_order(size: int, columns: int) -> None:
    for (made,) in same_all(
        [reduction("float32", (5, columns), (1,), "add", order) for order in ORDERS], grouped(size)
    ):
        assert made.barriers
        assert made.unit == BLOCK // size


REDUCERS = [
    *(("float32", name) for name in ("minimum", "maximum", "multiply")),
    *(("float16", name) for name in ("maximum", "add")),
    ("float64", "minimum"),
    ("float128", "add"),
    ("float128", "maximum"),
    ("bfloat16", "add"),
    *((dtype, name) for dtype in ("int8", "uint16", "int32", "uint64") for name in ("add", "multiply", "xor")),
    *(("int64", name) for name in ("minimum", "maximum", "and", "or")),
    *(("bool", name) for name in ("and", "or", "xor")),
]


@pytest.mark.parametrize("size", [groups.WARP, BLOCK])
def test_reducers(size: int) -> None:
    same_all([reduction(dtype, (3, 300), (1,), reducer) for dtype, reducer in REDUCERS], grouped(size))


def test_what_may_be_regrouped_is_exchanged_and_what_has_an_order_is_not() -> None:
    def text(dtype: str, reducer: str) -> str:
        (made,) = same(reduction(dtype, (3, 65), (1,), reducer), grouped(groups.WARP))
        return made.text

    assert "tl_exchange_float" in text("float32", "maximum")
    assert "tl_exchange_uint32" in text("int32", "add")
    assert "tl_exchange" not in text("float32", "add")
    assert "tl_exchange" not in text("float32", "multiply")


def test_short_rows() -> None:
    shapes = [(1, 40), (40, 1), (3, 1), (2, 32), (2, 31)]
    same_all([reduction("float32", shape, (1,)) for shape in shapes], grouped(groups.WARP))
    same_all([reduction("float32", shape, (0,)) for shape in shapes], grouped(BLOCK))


def test_several_axes_and_one_result() -> None:
    same(reduction("float32", (7, 5, 40), (0, 2)), grouped(groups.WARP))
    orders = [Accumulate(), Accumulate(order="pairwise")]
    same_all([reduction("float32", (9, 200), (0, 1), "add", order) for order in orders], grouped(BLOCK))


@pytest.mark.parametrize("size", [groups.WARP, BLOCK])
def test_softmax(size: int) -> None:
    for (made,) in same_all([softmax("float32", 9, columns) for columns in (32, 45, 600)], grouped(size)):
        assert made.scratch == 0, "rows fit shared memory"


def test_rows_that_do_not_fit_shared_memory_are_kept_in_scratch_memory() -> None:
    (made,) = same(softmax("float64", 9, 900), grouped(groups.WARP))
    assert made.scratch == 7200
    # fewer blocks rather than more scratch memory than a quarter of a GiB
    assert made.scratch_bytes(replace(made, total=10**6).blocks(10**6)) <= SCRATCH_BYTES


def kernel_of(body: object) -> object:
    (step,) = lower(body).steps  # type: ignore[arg-type]
    assert isinstance(step, Launch)
    return step.kernel


@pytest.mark.parametrize(
    ("shape", "axis", "size"),
    [
        ((2000, 1024), 1, groups.WARP),
        ((100, 1024), 1, BLOCK),
        ((1, 10**8), 1, BLOCK),
        ((8000, 1024), 1, groups.WARP),
        ((1024, 8000), 0, None),  # neighbouring threads read neighbouring memory already
        ((2000, 8), 1, None),
    ],
)
def test_the_choice(shape: tuple[int, int], axis: int, size: int | None) -> None:
    assert groups.group_size(kernel_of(reduction("float32", shape, (axis,)))) == size  # type: ignore[arg-type]


def test_most_inputs_are_numbers_and_some_are_not() -> None:
    """So that a wrong order of a sum changes its word."""
    words = inputs_of(reduction("float16", (30, 300), (1,)))[0].words
    special = (words & 0x7FFF) >= 0x7C00
    assert special.sum() <= 3
    assert np.unique(words).size > 1000


@pytest.mark.parametrize(("size", "barrier"), [(groups.WARP, "__syncwarp();"), (BLOCK, "__syncthreads();")])
def test_a_missing_barrier_is_seen(size: int, barrier: str) -> None:
    """In one of the orders of the threads at least, words differ without barriers."""

    def make(kernel: Kernel) -> Source | str:
        made = grouped(size)(kernel)
        assert isinstance(made, Source)
        return replace(made, text=made.text.replace(barrier, ""), name=made.name)

    body = softmax("float32", 5, 300)
    with pytest.raises(AssertionError):
        same(body, make)
