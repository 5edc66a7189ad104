"""Elementwise kernels that read and write 16 bytes at a time return the reference's words."""

from __future__ import annotations

import re

import numpy as np
import pytest
from cuda_forms import packed, same
from lower_graphs import Builder

from tlir.backends.cuda import nvrtc
from tlir.backends.cuda.source import module, source
from tlir.backends.cuda.wide import width_of
from tlir.ir.graph import Body
from tlir.ir.types import BOOL, NAMED, TensorType
from tlir.kernel.ir import Kernel, Launch
from tlir.kernel.joining import join_variables
from tlir.passes.lower import lower


def chain(dtype: str, shape: tuple[int, ...]) -> Body:
    """Two inputs, a comparison and a selection, with a Boolean as a second result."""
    builder, type = Builder(np.random.default_rng(0)), TensorType(shape, NAMED[dtype])
    x, y = builder.input(type), builder.input(type)
    lower_one = builder.add("minimum", (builder.add("negate", (x,), type), y), type)
    less = builder.add("compare", (lower_one, y), TensorType(shape, BOOL), comparison_direction="LT")
    return builder.body([builder.add("select", (less, builder.add("add", (x, y), type), x), type), less])


def rows(shape: tuple[int, int], axis: int) -> Body:
    """A vector added to the rows or columns of a matrix."""
    builder, of = Builder(np.random.default_rng(0)), NAMED["float32"]
    type = TensorType(shape, of)
    x, vector = builder.input(type), builder.input(TensorType((shape[axis],), of))
    wide = builder.add("broadcast_in_dim", (vector,), type, broadcast_dimensions=(axis,))
    return builder.body([builder.add("subtract", (x, wide), type)])


def kernel_of(body: Body) -> Kernel:
    (step,) = lower(body).steps
    assert isinstance(step, Launch)
    return join_variables(step.kernel)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int8", "uint16", "int32", "int64"])
def test_packs_with_and_without_a_rest(dtype: str) -> None:
    itemsize = NAMED[dtype].word_dtype.itemsize
    for count in (16 // itemsize, 803, 1024):
        (made,) = same(chain(dtype, (count,)), packed)
        assert made.total == count * itemsize // 16
        # the Boolean's packs have as many elements as the others
        assert f"tl_pack<uint8_t, {16 // itemsize}>" in made.text


def test_rows_are_packed_and_what_is_not_contiguous_is_not() -> None:
    for axis in (0, 1):
        (made,) = same(rows((37, 12), axis), packed)
        assert made.text.count("*(const tl_pack") == (2 if axis else 1)
    assert width_of(kernel_of(rows((12, 37), 1))) is None, "rows of 37 elements are not all aligned"
    builder, of = Builder(np.random.default_rng(0)), NAMED["float32"]
    x, y = builder.input(TensorType((8, 12), of)), builder.input(TensorType((12, 8), of))
    turned = builder.add("transpose", (y,), TensorType((8, 12), of), permutation=(1, 0))
    body = builder.body([builder.add("add", (x, turned), TensorType((8, 12), of))])
    (made,) = same(body, packed)
    assert made.text.count("*(const tl_pack") == 1


def test_slices_that_are_not_aligned_stay_single_reads() -> None:
    for start in (1, 4):
        builder, of = Builder(np.random.default_rng(0)), NAMED["float32"]
        type = TensorType((40,), of)
        attrs = {"start_indices": (start,), "limit_indices": (start + 40,), "strides": (1,)}
        cut = builder.add("slice", (builder.input(TensorType((50,), of)),), type, **attrs)
        body = builder.body([builder.add("multiply", (cut, builder.input(type)), type)])
        (made,) = same(body, packed)
        assert made.text.count("*(const tl_pack") == (2 if start == 4 else 1)


def test_small_arrays_and_long_bodies_are_not_packed() -> None:
    def is_packed(body: Body) -> bool:
        return "tl_pack" in str(source(kernel_of(body)))

    assert is_packed(chain("float32", (1 << 16,)))
    assert not is_packed(chain("float32", (1 << 10,)))
    builder, type = Builder(np.random.default_rng(0)), TensorType((1 << 16,), NAMED["float32"])
    assert not is_packed(builder.body([builder.add("tanh", (builder.input(type),), type)]))


@pytest.mark.skipif(nvrtc.library() is None, reason="NVRTC is not installed")
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_a_pack_is_one_instruction(dtype: str) -> None:
    made = source(kernel_of(chain(dtype, (1 << 17,))))
    assert not isinstance(made, str)
    ptx = nvrtc.to_ptx(module([made]), "sm_90")
    vector = r"v2\.\w?64" if dtype == "float64" else r"v4\.\w?32"
    assert len(re.findall(rf"ld\.global(?:\.nc)?\.{vector}", ptx)) == 2
    assert len(re.findall(rf"st\.global\.{vector}", ptx)) == 1
