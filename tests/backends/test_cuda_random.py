"""Random graphs whose kernels take each of the generated forms, whatever their sizes."""

from __future__ import annotations

import numpy as np
import pytest
from cuda_forms import Make, by_rows, grouped, packed, same, same_all
from lower_graphs import Builder, random_graph

from tlir.backends.cuda import groups
from tlir.backends.cuda.function import BLOCK
from tlir.backends.cuda.source import refusal
from tlir.ir.types import NAMED, TensorType
from tlir.kernel.ir import Launch
from tlir.passes.lower import lower

FORMS = {"warps": grouped(groups.WARP), "blocks": grouped(BLOCK), "packs": packed, "rows": by_rows}


@pytest.mark.parametrize("form", FORMS)
def test_random_graphs(form: str) -> None:
    make: Make = FORMS[form]
    graphs = [random_graph(seed, 1 + seed % 12) for seed in range(3000, 3014)]
    supported = [
        (body, inputs)
        for body, inputs in graphs
        if all(refusal(step.kernel) is None for step in lower(body).steps if isinstance(step, Launch))
    ]
    assert len(supported) >= 4
    same_all([body for body, _ in supported], make, [inputs for _, inputs in supported])


def test_a_value_that_is_stored_twice() -> None:
    """Its word is made in the block of the first store, and cannot be used in the second one."""
    builder, type = Builder(np.random.default_rng(0)), TensorType((), NAMED["float32"])
    x = builder.input(type)
    product = builder.add("multiply", (x, x), type)
    shape = TensorType((1, 1), type.dtype)
    body = builder.body([product, builder.add("broadcast_in_dim", (product,), shape, broadcast_dimensions=())])
    (made,) = same(body, FORMS["warps"])
    assert made.text.count("if (lane == 0)") == 2
