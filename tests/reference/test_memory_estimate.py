"""What the evaluation of one operation is said to take is near what it takes."""

from __future__ import annotations

import tracemalloc

import pytest

from tlir.backends.liveness import peak_memory
from tlir.backends.reference import evaluate
from tlir.ir.graph import Body, Node, Ref
from tlir.ir.types import TensorType, parse_dtype

NAMES = ["int4", "int32", "uint64", "bfloat16", "float8_e4m3fn", "float32", "float64", "complex64", "float128"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("shape", "axis"), [((1 << 16,), 0), ((1 << 4, 1 << 12), 0), ((1 << 4, 1 << 12), 1)])
def test_iota(name: str, shape: tuple[int, ...], axis: int) -> None:
    type = TensorType(shape, parse_dtype(name))
    body = Body((Node(0, "iota", (), {"iota_dimension": axis}, (type,)),), (), (Ref(0),))
    evaluate(body, [])  # tables and modules are loaded once
    tracemalloc.start()
    evaluate(body, [])
    _, taken = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    estimate, node = peak_memory(body)
    assert node is body.nodes[0]
    assert taken <= estimate + 20_000
    assert estimate <= 6 * taken + 20_000
