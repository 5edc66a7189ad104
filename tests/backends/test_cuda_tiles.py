"""Sums of products by tiles in shared memory return the reference's words: every order, dtype and edge of a tile."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from cuda_forms import Make, product, random_contraction, same, same_all, tiled
from lower_graphs import Builder

from tlir.backends.cuda import nvrtc, tiles
from tlir.backends.cuda.function import SHARED_BYTES, Source
from tlir.backends.cuda.host import BarrierError, build
from tlir.backends.cuda.source import module, source
from tlir.backends.cuda.tiles import SHAPES, Shape, Tiles, shape_of
from tlir.ir.graph import Body, Ref
from tlir.ir.ops import Accumulate
from tlir.ir.types import NAMED, TensorType
from tlir.kernel.ir import Kernel, Launch
from tlir.kernel.patterns import Contraction, as_contraction
from tlir.passes.lower import lower


def contraction_of(body: Body) -> Contraction:
    (step,) = lower(body).steps
    assert isinstance(step, Launch)
    contraction = as_contraction(step.kernel)
    assert contraction is not None
    return contraction


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: f"{s.rows}x{s.columns}")
def test_sizes_around_a_tile(shape: Shape) -> None:
    r, c, k = shape.rows, shape.columns, shape.terms
    sizes = [(r, k, c), (r - 1, k - 1, c - 1), (r + 1, k + 1, c + 1), (2, 2 * k, 3), (r + 3, 2, c + 2)]
    for (made,) in same_all([product(((m, n), (n, p)), bias=True) for m, n, p in sizes], tiled(shape)):
        assert made.threads == shape.threads == 256


ORDERS = [
    Accumulate(fma=True),
    Accumulate(order="blocked", block=7),
    Accumulate(order="blocked", block=16, fma=True),
    Accumulate(order="blocked", block=64),
]


@pytest.mark.parametrize("terms", [16, 61, 64])
def test_every_order(terms: int) -> None:
    same_all([product(((21, terms), (terms, 19)), accumulate=order) for order in ORDERS], tiled(SHAPES[2]))


def test_every_dtype() -> None:
    of = ("float32", "float64", "float16", "bfloat16", "int8", "uint8", "int16", "uint32", "int64", "uint64")
    bodies = [product(((20, 37), (37, 18)), dtype) for dtype in of]
    bodies += [
        product(((20, 37), (37, 18)), dtype, accumulate=Accumulate(fma=True)) for dtype in ("float64", "float16")
    ]
    wide = Accumulate(NAMED["float32"])
    bodies += [product(((20, 37), (37, 18)), dtype, accumulate=wide) for dtype in ("float16", "bfloat16")]
    bodies += [product(((20, 37), (37, 18)), "int8", accumulate=Accumulate(NAMED["int32"]))]
    for (made,) in same_all(bodies):
        assert made.barriers, "every one of them is tiled"


def test_software_floats_are_not_tiled() -> None:
    (made,) = same(product(((5, 9), (9, 6)), "float128"))
    assert "__shared__" not in made.text or "xs" not in made.text


def test_batches_transposed_and_strided_operands() -> None:
    def turned(builder: Builder, value: Ref) -> Ref:
        type = builder.type(value)
        result = TensorType(type.shape[::-1], type.dtype)
        return builder.add("transpose", (value,), result, permutation=tuple(reversed(range(type.rank))))

    def strided(builder: Builder, value: Ref) -> Ref:
        type = builder.type(value)
        shape = tuple(-(-(size - 1) // 2) for size in type.shape)
        attrs: dict[str, Any] = {
            "start_indices": (1,) * type.rank,
            "limit_indices": type.shape,
            "strides": (2,) * type.rank,
        }
        return builder.add("slice", (value,), TensorType(shape, type.dtype), **attrs)

    bodies = [
        product(((20, 18), (18, 22)), summed=((0,), (1,))),
        product(((18, 20), (22, 18)), prepare=turned),
        product(((41, 39), (39, 35)), prepare=strided),
        product(((3, 18, 20), (3, 20, 9)), batch=((0,), (0,)), summed=((2,), (1,))),
        product(((18, 3, 20), (20, 9, 3)), batch=((1,), (2,)), summed=((2,), (0,)), bias=True),
        product(((2, 17, 3, 12), (12, 3, 2, 10)), batch=((0,), (2,)), summed=((2, 3), (1, 0))),
        product(((1, 18, 20), (1, 20, 9)), batch=((0,), (0,)), summed=((2,), (1,))),
        product(((12, 1, 20), (20, 9)), summed=((2,), (0,))),
    ]
    for (made,) in same_all(bodies):
        assert "xs" in made.text


@pytest.mark.parametrize("sizes", [(0, 9, 8), (8, 0, 8), (8, 9, 0), (1, 40, 30), (30, 40, 1), (1, 1, 1)])
def test_axes_of_size_0_and_1(sizes: tuple[int, int, int]) -> None:
    m, n, p = sizes
    same(product(((m, n), (n, p)), bias=True))


def convolution(dtype: str = "float32", groups: int = 1) -> Body:
    """3 by 3 windows with padding, strides and dilation."""
    builder, of = Builder(np.random.default_rng(0)), NAMED[dtype]
    x = builder.input(TensorType((2, 4, 11, 9), of))
    kernel = builder.input(TensorType((6, 4 // groups, 3, 3), of))
    attrs: dict[str, Any] = {
        "window_strides": (2, 1),
        "padding_low": (1, 2),
        "padding_high": (1, 0),
        "lhs_dilation": (1, 1),
        "rhs_dilation": (1, 2),
        "window_reversal": (0, 1),
        "lhs_dimensions": (0, 1, 2, 3),
        "rhs_dimensions": (0, 1, 2, 3),
        "output_dimensions": (0, 1, 2, 3),
        "feature_group_count": groups,
        "batch_group_count": 1,
    }
    result = TensorType((2, 6, 6, 7), of)
    return builder.body([builder.add("convolution", (x, kernel), result, **attrs)])


def test_convolutions() -> None:
    for (made,) in same_all([convolution(), convolution("float64"), convolution("int32")]):
        assert "xs" in made.text
    same(convolution(groups=2))


def test_a_broadcast_product_that_is_summed() -> None:
    builder, of = Builder(np.random.default_rng(0)), NAMED["float32"]
    x, y = builder.input(TensorType((18, 30), of)), builder.input(TensorType((30, 17), of))
    type = TensorType((18, 30, 17), of)
    wide = [builder.add("broadcast_in_dim", (x,), type, broadcast_dimensions=(0, 1))]
    wide.append(builder.add("broadcast_in_dim", (y,), type, broadcast_dimensions=(1, 2)))
    products = builder.add("multiply", wide, type)
    total = builder.add("reduce", (products,), TensorType((18, 17), of), reducer="add", dimensions=(1,))
    (made,) = same(builder.body([total]))
    assert "xs" in made.text


def test_the_choice_of_a_shape() -> None:
    def chosen(m: int, n: int, dtype: str = "float32") -> tuple[int, int]:
        shape = shape_of(contraction_of(product(((m, 64), (64, n)), dtype)))
        assert shape.elements * tiles.element_bytes(NAMED[dtype]) <= SHARED_BYTES
        return shape.rows, shape.columns

    assert chosen(4096, 4096) == (128, 128)
    assert chosen(1024, 1024) == (64, 64)
    assert chosen(12, 50000) == (16, 64)
    assert chosen(50000, 12) in ((64, 16), (16, 64))
    assert chosen(20, 20) == (16, 16)


def test_a_missing_barrier_is_seen() -> None:
    body = product(((70, 40), (40, 66)))
    with pytest.raises(AssertionError):
        same(body, without("__syncthreads();"))


def without(text: str) -> Make:
    """Kernels from whose source something is left out."""

    def make(kernel: Kernel) -> Source | str:
        made = source(kernel)
        assert isinstance(made, Source)
        return replace(made, text=made.text.replace(text, ""))

    return make


def test_threads_that_wait_for_ever_are_seen() -> None:
    (made,) = same(product(((20, 40), (40, 20))))
    text = made.text.replace("__syncthreads();", "if (threadIdx.x != 7u) __syncthreads(); else __syncwarp();", 1)
    stuck = build([replace(made, text=text)])[made.name]
    with pytest.raises(BarrierError):
        stuck.run([np.zeros(800, np.uint32), np.zeros(800, np.uint32), np.zeros(400, np.uint32)])


@pytest.mark.parametrize("shape", [SHAPES[2], SHAPES[5]], ids=lambda s: f"{s.rows}x{s.columns}")
def test_random_contractions(shape: Shape) -> None:
    bodies = [random_contraction(seed) for seed in range(shape.rows, shape.rows + 24)]
    small = [body for body in bodies if sum(type.size for node in body.nodes for type in node.types) < 100000]
    made = same_all(small, tiled(shape))
    assert sum("xs[k]" in one.text for sources in made for one in sources) >= 4


@pytest.mark.skipif(nvrtc.library() is None, reason="NVRTC is not installed")
@pytest.mark.parametrize("fma", [False, True])
def test_the_innermost_loop_is_unrolled_and_reads_shared_memory_wide(fma: bool) -> None:
    made = Tiles(contraction_of(product(((128, 64), (64, 128)), accumulate=Accumulate(fma=fma))), SHAPES[0]).source()
    ptx = nvrtc.to_ptx(module([made]), "sm_90")
    counts = {name: ptx.count(f"\t{name}") for name in ("fma.rn.f32", "mul.rn.f32", "add.rn.f32", "ld.shared.v4")}
    unrolled = 8 * 8 * 8
    assert counts["ld.shared.v4"] >= 32
    assert (counts["fma.rn.f32"], counts["mul.rn.f32"]) == ((unrolled, 0) if fma else (0, unrolled))
