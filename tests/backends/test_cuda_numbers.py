"""Complex numbers and integers of less than a byte in every form of kernel: the reference's words, and sources that
NVRTC compiles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cuda_forms import Make, by_rows, contracts_nothing, grouped, inputs_of, packed, product, reduction, same_all, tiled
from lower_graphs import Builder

from tlir.backends.cuda import groups, nvrtc
from tlir.backends.cuda.function import BLOCK
from tlir.backends.cuda.source import source
from tlir.backends.cuda.tiles import SHAPES
from tlir.ir.graph import Body
from tlir.ir.ops import Accumulate
from tlir.ir.tensor import Tensor
from tlir.ir.types import BOOL, NAMED, TensorType, complex_of

COMPLEX = ("complex64", "complex128")
NARROW = ("int2", "uint2", "int4", "uint4")
FORMS = {"plain": source, "warps": grouped(groups.WARP), "blocks": grouped(BLOCK), "packs": packed, "turned": by_rows}


def arithmetic(dtype: str, count: int = 70) -> Body:
    """Two inputs in one kernel of elementwise operations, and a view that is no multiple of a pack."""
    builder, of = Builder(np.random.default_rng(0)), NAMED[dtype]
    type = TensorType((count,), of)
    x, y = builder.input(type), builder.input(type)
    values = [builder.add(op, (x, y), type) for op in ("add", "subtract", "multiply")]
    values.append(builder.add("negate", (values[2],), type))
    if of.is_complex:
        values.append(builder.add("imag", (values[2],), TensorType((count,), of.component)))
    else:
        values += [builder.add(op, (x, y), type) for op in ("minimum", "maximum", "divide", "remainder")]
        values.append(builder.add("convert", (values[1],), TensorType((count,), NAMED["float32"])))
    values.append(builder.add("compare", (x, y), TensorType((count,), BOOL), comparison_direction="EQ"))
    cut: dict[str, Any] = {"start_indices": (3,), "limit_indices": (count,), "strides": (2,)}
    values.append(builder.add("slice", (values[2],), TensorType(((count - 2) // 2,), of), **cut))
    return builder.body(values)


def bodies(dtype: str) -> list[Body]:
    made = [arithmetic(dtype), reduction(dtype, (6, 70), (1,)), reduction(dtype, (6, 70), (0,), "multiply")]
    made += [reduction(dtype, (3, 140), (1,), "add", Accumulate(order="blocked", block=40))] * (dtype in COMPLEX)
    made += [reduction(dtype, (6, 70), (1,), "maximum")] * (dtype in NARROW)
    return [*made, product(((18, 20), (20, 17)), dtype), product(((2, 5, 6), (2, 6, 3)), dtype, **BATCHED)]


BATCHED: dict[str, Any] = {"batch": ((0,), (0,)), "summed": ((2,), (1,))}


@pytest.mark.parametrize("form", FORMS)
def test_words(form: str) -> None:
    dtypes = (*COMPLEX, *NARROW) if form == "plain" else ("complex64", "int4")
    same_all([body for dtype in dtypes for body in bodies(dtype)], FORMS[form])


def test_tiles() -> None:
    make: Make = tiled(SHAPES[5])
    made = same_all([product(((18, 20), (20, 17)), dtype) for dtype in NARROW], make)
    assert all("xs[k]" in one.text for (one,) in made)
    same_all([product(((18, 20), (20, 17)), dtype) for dtype in COMPLEX], make)


def test_other_components() -> None:
    """Numbers of two bfloat16 or two float128."""
    for name in ("bfloat16", "float128"):
        of = complex_of(NAMED[name])
        builder, type = Builder(np.random.default_rng(0)), TensorType((40,), of)
        x, y = builder.input(type), builder.input(type)
        body = builder.body([builder.add(op, (x, y), type) for op in ("add", "multiply")])
        same_all([body])


@pytest.mark.parametrize("dtype", COMPLEX)
def test_quotients_of_any_words(dtype: str) -> None:
    """Those with infinities, NaN and zeros are settled by the specification."""
    builder, type = Builder(np.random.default_rng(0)), TensorType((200,), NAMED[dtype])
    x, y = builder.input(type), builder.input(type)
    body = builder.body([builder.add("divide", (x, y), type)])
    random = np.random.default_rng(5)
    words = [np.array(given.words) for given in inputs_of(body)]
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324], f"f{type.dtype.component.bits // 8}")
    for array in words:
        array[:100] = random.choice(special.view(array.dtype), (100, 2))
    same_all([body], inputs=[[Tensor(type, array) for array in words]], settles=True)


@pytest.mark.skipif(nvrtc.library() is None, reason="NVRTC is not installed")
def test_nvrtc_compiles_them() -> None:
    contracts_nothing([body for dtype in ("complex64", "int4") for body in bodies(dtype)], "sm_80")
