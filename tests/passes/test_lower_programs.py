"""Whole programs whose kernels have to be split in more than one way: lowering ends, and computes the same words."""

from __future__ import annotations

import numpy as np
from lower_graphs import Builder, random_tensor

from tlir.backends import run
from tlir.backends.interpreter import run_program
from tlir.ir.graph import Graph
from tlir.ir.types import NAMED, TensorType
from tlir.passes.lower import lower

F32 = NAMED["float32"]


def test_a_row_sum_of_an_array_that_a_contraction_is_scaled_by() -> None:
    """A normalisation between two products: the second reads a product with the norm of what the first one reads."""
    builder = Builder(np.random.default_rng(0))
    row, kept = TensorType((1, 8), F32), TensorType((1,), F32)
    x, w = builder.input(row), builder.input(TensorType((8, 8), F32))
    contracting = {
        "lhs_contracting_dimensions": (1,),
        "rhs_contracting_dimensions": (0,),
        "lhs_batching_dimensions": (),
        "rhs_batching_dimensions": (),
    }

    def normalised(value):  # type: ignore[no-untyped-def]
        square = builder.add("multiply", (value, value), row)
        norm = builder.add("rsqrt", (builder.add("reduce", (square,), kept, reducer="add", dimensions=(1,)),), kept)
        return builder.add(
            "multiply", (value, builder.add("broadcast_in_dim", (norm,), row, broadcast_dimensions=(0,))), row
        )

    value = x
    for _ in range(4):
        product = builder.add("dot_general", (normalised(value), w), row, **contracting)
        value = builder.add("add", (value, builder.add("tanh", (product,), row)), row)
    body = builder.body([builder.add("dot_general", (normalised(value), w), row, **contracting), value])
    inputs = [random_tensor(np.random.default_rng(1), type) for type in body.input_types]
    results = run_program(lower(body), body, inputs)
    assert all(a.same_words(b) for a, b in zip(run(Graph(body), inputs), results, strict=True))
