"""The device gpu returns the reference's words: golden artifacts, conformance cases, random graphs, and every form of
generated kernel at sizes that fill a GPU's blocks."""

from __future__ import annotations

from pathlib import Path

import cases_data
import cases_floats
import cases_integers
import cases_reductions
import pytest
from conformance import Case, evaluate, tensor_type, to_tensor, words_of
from cuda_forms import inputs_of, product, reduction, softmax
from lower_graphs import random_graph

from tlir.backends import run
from tlir.backends.cuda import device
from tlir.ir.graph import Body, Graph
from tlir.ir.ops import Accumulate
from tlir.ir.tensor import Tensor
from tlir.schema import read

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
CASES = [case for module in (cases_data, cases_floats, cases_integers, cases_reductions) for case in module.CASES]


def same(body: Body, inputs: list[Tensor]) -> None:
    expected = run(Graph(body), inputs, device="reference")
    results = run(Graph(body), inputs, device="gpu")
    assert [a.same_words(b) for a, b in zip(expected, results, strict=True)] == [True] * len(expected)


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*/*.json")), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_golden_artifacts(path: Path) -> None:
    graph = read(path)
    for sample in graph.samples:
        same(graph.body, list(sample.inputs))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.op}: {case.name}")
def test_conformance_cases(case: Case) -> None:
    operands = [to_tensor(operand) for operand in case.operands]
    result = evaluate(case.op, operands, tensor_type(case.expected.type), case.attrs, "gpu")
    assert [hex(word) for word in words_of(result)] == [hex(word) for word in case.expected.words]


@pytest.mark.parametrize("seed", range(40))
def test_random_graphs(seed: int) -> None:
    same(*random_graph(seed, 1 + seed % 14))


ORDERS = [
    Accumulate(),
    Accumulate(fma=True),
    Accumulate(order="blocked", block=16),
    Accumulate(order="blocked", block=64, fma=True),
]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("order", ORDERS, ids=lambda order: order.order_text + (" fma" if order.fma else ""))
def test_products(dtype: str, order: Accumulate) -> None:
    for m, k, n in ((64, 128, 64), (131, 67, 129), (5, 300, 70)):
        body = product(((m, k), (k, n)), dtype, accumulate=order, bias=True)
        same(body, inputs_of(body))


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint64"])
def test_integer_products(dtype: str) -> None:
    body = product(((3, 70, 33), (3, 33, 65)), dtype, batch=((0,), (0,)), summed=((2,), (1,)))
    same(body, inputs_of(body))


@pytest.mark.parametrize("reducer", ["add", "maximum"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "uint8"])
@pytest.mark.parametrize("shape", [(3, 5000), (1500, 100), (33000, 40)])
def test_rows(dtype: str, reducer: str, shape: tuple[int, int]) -> None:
    body = reduction(dtype, shape, (1,), reducer)
    same(body, inputs_of(body))


@pytest.mark.parametrize("order", ["pairwise", "blocked"])
def test_orders_of_rows(order: str) -> None:
    body = reduction("float32", (40, 3000), (1,), "add", Accumulate(order=order, block=64 if order == "blocked" else 0))
    same(body, inputs_of(body))


@pytest.mark.parametrize("shape", [(64, 1024), (1200, 130)])
def test_softmax(shape: tuple[int, int]) -> None:
    body = softmax("float32", *shape)
    same(body, inputs_of(body))
    assert device.executable(body).statistics.reference == []


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8"])
@pytest.mark.parametrize("count", [1 << 17, (1 << 17) + 5])
def test_packs(dtype: str, count: int) -> None:
    body = product(((count, 1), (1, 1)), dtype, bias=True)
    same(body, inputs_of(body))
