"""Fitting where only some values are recorded."""

from __future__ import annotations

import numpy as np
import pytest
from test_locate import Chain, traced

from tlir.compare.fit import fit
from tlir.ir.graph import Graph, Producer, Ref, Sample
from tlir.ir.tensor import Tensor


@pytest.mark.parametrize("side", [0, 1])
def test_a_recorded_product_is_not_fused_with_a_sum_that_takes_unrecorded_values(side: int) -> None:
    chain = Chain()
    x = chain.add("input", (), (8,))
    product = chain.add("multiply", (x, x), (8,))
    power = chain.add("exponential", (x,), (8,))
    pair = (product, power) if side == 0 else (power, product)
    body = chain.body(chain.add("add", pair, (8,)))
    given = Tensor.from_numpy(np.linspace(-1, 1, 8, dtype=np.float32))
    values = traced(body, [given])
    (output,) = body.outputs
    wrong = Tensor(values[output].type, values[output].words + np.uint32(1))
    sample = Sample((given,), (wrong,), {Ref(product): values[Ref(product)], output: wrong})
    graph = Graph(body, samples=(sample,), producer=Producer("torch", "2.13.0", outputs="op-by-op"))
    found = fit(graph)
    assert found.graph.nodes == graph.nodes


def test_outputs_without_elements_are_fitted() -> None:
    chain = Chain()
    x = chain.add("input", (), (0, 3))
    body = chain.body(chain.add("multiply", (x, x), (0, 3)))
    given = Tensor.from_numpy(np.zeros((0, 3), np.float32))
    values = traced(body, [given])
    sample = Sample((given,), (values[body.outputs[0]],), values)
    found = fit(Graph(body, samples=(sample,), producer=Producer("jax", "0.10.2", outputs="op-by-op")))
    assert found.ok
