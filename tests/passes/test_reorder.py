"""Reordering: what changes, what is refused, and that changing back gives the first graph again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from passes_graphs import Builder, matmul, perceptron, tensor_type

from tlir.errors import ArtifactError, UsageError
from tlir.ir.graph import Body, Graph, Node, Ref
from tlir.ir.ops import Accumulate
from tlir.ir.types import parse_dtype
from tlir.ir.verify import type_errors
from tlir.passes.diff import diff
from tlir.passes.reorder import parse_order, reorder

ORDERS = ("sequential", "pairwise", "blocked(1)", "blocked(32)")


def mixed() -> Graph:
    """Sums, products, maxima and contractions of floats, integers and complex numbers."""
    b = Builder()
    x, y = b.input("x", "float16", 2, 4), b.input("y", "float16", 4, 3)
    k, z = b.input("k", "int32", 3, 3), b.input("z", "complex64", 3, 3)
    outputs = [matmul(b, x, y, name="product"), matmul(b, k, k), matmul(b, z, z)]
    outputs += [b.op("reduce", x, reducer=reducer, dimensions=(1,)) for reducer in ("add", "multiply", "maximum")]
    outputs.append(b.op("reduce", k, reducer="add", dimensions=(0,)))
    return b.graph(*outputs, name="mixed")


def settings(graph: Graph) -> dict[int, Accumulate]:
    return {node.id: node.attrs["accumulate"] for node in graph.nodes if "accumulate" in node.attrs}


@pytest.mark.parametrize("order", ORDERS)
def test_an_order_applies_to_every_sum_and_product(order: str) -> None:
    graph = mixed()
    other, report = reorder(graph, order)
    name, block = parse_order(order)
    expected = {} if order == "sequential" else {k: Accumulate(order=name, block=block) for k in (4, 5, 6, 7, 8, 10)}
    assert settings(other) == expected
    assert not type_errors(other)
    assert {entry.place for entry in report if entry.changed} == {str(k) for k in expected}
    if expected:
        (kept,) = [entry for entry in report if entry.kept]
        assert kept.place == "9"
        assert "maximum gives the same words in every order" in kept.kept[0]


def test_fused_products_apply_to_contractions_of_floats() -> None:
    other, report = reorder(mixed(), "blocked(8)", fma=True, dtype="float32")
    wide = parse_dtype("float32")
    blocked = Accumulate(order="blocked", block=8)
    assert settings(other) == {
        4: replace(blocked, dtype=wide, fma=True),
        5: blocked,
        6: blocked,
        7: replace(blocked, dtype=wide),
        8: replace(blocked, dtype=wide),
        10: blocked,
    }
    assert not type_errors(other)
    reasons = {entry.place: entry.kept for entry in report}
    assert reasons["4"] == ()
    assert reasons["7"] == ("fma: there are no products to fuse (constraint C4 of reduce)",)
    assert reasons["5"] == (
        "fma: fma fuses floating-point products, and these are int32 (constraint C7 of dot_general)",
        "dtype float32: int32 does not accumulate in float32 (constraint C7 of dot_general)",
    )
    entry = next(entry for entry in report if entry.place == "4")
    assert entry.to_json() == {
        "id": "4",
        "op": "dot_general",
        "changed": True,
        "before": "sequential",
        "after": "float32 blocked(8) fma",
        "name": "product",
    }


@given(st.sampled_from(ORDERS), st.sampled_from(ORDERS))
def test_changing_back_gives_the_first_graph(first: str, second: str) -> None:
    graph = mixed()
    one, _ = reorder(graph, first)
    two, _ = reorder(one, second)
    assert two == reorder(graph, second)[0]
    assert diff(reorder(two, "sequential")[0], graph).same
    assert diff(one, two).same == (first == second)


def test_what_is_not_asked_for_is_kept() -> None:
    one, _ = reorder(mixed(), "blocked(4)", fma=True, dtype="float64", nodes=["product"])
    assert settings(one) == {4: Accumulate(parse_dtype("float64"), "blocked", 4, True)}
    two, _ = reorder(one, dtype="result", nodes=["%4"])
    assert settings(two) == {4: Accumulate(None, "blocked", 4, True)}
    three, report = reorder(two, fma=False)
    assert settings(three) == {4: Accumulate(None, "blocked", 4)}
    assert [entry.place for entry in report if entry.changed] == ["4"]


@pytest.mark.parametrize(
    ("graph", "request_", "code", "message"),
    [
        (mixed(), {}, "TL0901", "nothing to change"),
        (mixed(), {"order": "tree"}, "TL0901", "the order 'tree' is not sequential, pairwise or blocked(n)"),
        (mixed(), {"order": "blocked(0)"}, "TL0901", "the order 'blocked(0)' is not sequential"),
        (mixed(), {"dtype": "float33"}, "TL0901", "there is no dtype 'float33'"),
        (mixed(), {"order": "pairwise", "nodes": ["sum"]}, "TL0901", "there is no node 'sum'"),
        (mixed(), {"order": "pairwise", "nodes": ["99"]}, "TL0901", "there is no node '99'"),
        (mixed(), {"order": "pairwise", "nodes": ["x"]}, "TL1001", "accumulates nothing"),
        (mixed(), {"order": "pairwise", "nodes": ["9"]}, "TL1001", "maximum gives the same words"),
        (mixed(), {"fma": True, "nodes": ["7"]}, "TL1001", "there are no products to fuse"),
        (mixed(), {"dtype": "float32", "nodes": ["5"]}, "TL1001", "int32 does not accumulate in float32"),
        (mixed(), {"order": "pairwise", "fma": True}, "TL1001", "so it has no fma"),
        (mixed(), {"dtype": "bool"}, "TL1001", "dtype bool applies to no node of this graph: "),
        (Builder().graph(), {"order": "pairwise"}, "TL1001", "no reduction or contraction"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(graph: Graph, request_: dict[str, object], code: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        reorder(graph, **request_)  # type: ignore[arg-type]
    assert caught.value.code == code
    assert message in caught.value.message


def test_a_pairwise_order_after_fused_products_says_what_to_give_up() -> None:
    fused, _ = reorder(mixed(), fma=True)
    with pytest.raises(UsageError) as caught:
        reorder(fused, "pairwise")
    assert caught.value.hint == "--no-fma gives up the fused products"
    assert settings(reorder(fused, "pairwise", fma=False)[0])[4] == Accumulate(order="pairwise")


def test_sums_in_regions_change_too() -> None:
    scalar, vector = tensor_type("float32"), tensor_type("float32", 4)
    total = Node(1, "reduce", (Ref(0),), {"reducer": "add", "dimensions": (0,)}, (scalar,))
    branch = Body((Node(0, "input", (), {}, (vector,)), total), (0,), (Ref(1),))
    index = Node(0, "input", (), {}, (tensor_type("int32"),), "i")
    nodes = (index, Node(1, "input", (), {}, (vector,), "v"))
    case = Node(2, "case", (Ref(0), Ref(1)), {}, (scalar,), regions=(branch, branch))
    graph = Graph(Body((*nodes, case), (0, 1), (Ref(2),)))
    other, report = reorder(graph, "pairwise")
    assert [entry.place for entry in report] == ["2.0.1", "2.1.1"]
    assert all(region.nodes[1].attrs["accumulate"] == Accumulate(order="pairwise") for region in other.nodes[2].regions)
    assert not type_errors(other)


def test_a_graph_whose_types_do_not_hold_is_not_blamed_on_the_request() -> None:
    graph = mixed()
    node = replace(graph.nodes[7], types=(tensor_type("float16", 9),))
    broken = replace(graph, body=replace(graph.body, nodes=(*graph.nodes[:7], node, *graph.nodes[8:])))
    with pytest.raises(ArtifactError) as caught:
        reorder(broken, "pairwise")
    assert caught.value.code == "TL0301"


def test_the_words_are_those_of_the_new_order() -> None:
    from tlir.backends import run
    from tlir.ir.tensor import Tensor

    b = Builder()
    x = b.input("x", "float32", 4)
    graph = b.graph(b.op("reduce", x, reducer="add", dimensions=(0,)))
    # 2^24 + 1 is not a float32: one by one each 1 is lost, while 1 + 1 is kept
    values = Tensor.from_numpy(np.array([2.0**24, 1, 1, 1], np.float32))
    results = {order: float(run(reorder(graph, order)[0], [values])[0].to_numpy()) for order in ORDERS}
    assert results == {
        "sequential": 2.0**24,
        "pairwise": 2.0**24 + 2,
        "blocked(1)": 2.0**24,
        "blocked(32)": 2.0**24,
    }


def test_every_setting_of_the_perceptron_still_types() -> None:
    for order in ORDERS:
        for fma in (None, False) if order == "pairwise" else (None, True, False):
            assert not type_errors(reorder(perceptron(), order, fma)[0])
