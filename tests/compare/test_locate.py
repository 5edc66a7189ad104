"""Faults planted in a trace are found at the node that makes them, and special values where they first appear."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tlir.backends.reference import evaluate
from tlir.compare.locate import locate
from tlir.errors import UsageError
from tlir.ir.graph import Body, Graph, Node, Producer, Ref, Sample
from tlir.ir.ops import Accumulate
from tlir.ir.tensor import Tensor
from tlir.ir.types import NAMED, TensorType

F32, F16 = NAMED["float32"], NAMED["float16"]


class Chain:
    """Builds a body node by node."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []

    def add(self, op: str, inputs: tuple[int, ...], shape: tuple[int, ...], dtype: Any = F32, **attrs: Any) -> int:
        refs = tuple(Ref(i) for i in inputs)
        self.nodes.append(Node(len(self.nodes), op, refs, attrs, (TensorType(shape, dtype),)))
        return len(self.nodes) - 1

    def body(self, output: int) -> Body:
        inputs = tuple(node.id for node in self.nodes if node.op == "input")
        return Body(tuple(self.nodes), inputs, (Ref(output),))


def softmax(rows: int = 4, columns: int = 16) -> Body:
    chain = Chain()
    shape, kept = (rows, columns), (rows,)
    x = chain.add("input", (), shape)
    greatest = chain.add("reduce", (x,), kept, reducer="maximum", dimensions=(1,))
    spread = chain.add("broadcast_in_dim", (greatest,), shape, broadcast_dimensions=(0,))
    power = chain.add("exponential", (chain.add("subtract", (x, spread), shape),), shape)
    total = chain.add("reduce", (power,), kept, reducer="add", dimensions=(1,))
    below = chain.add("broadcast_in_dim", (total,), shape, broadcast_dimensions=(0,))
    return chain.body(chain.add("divide", (power, below), shape))


def traced(body: Body, inputs: list[Tensor]) -> dict[Ref, Tensor]:
    values: dict[Ref, Tensor] = {}

    def keep(node: Node, results: tuple[Tensor, ...]) -> None:
        values.update((Ref(node.id, k), tensor) for k, tensor in enumerate(results))

    evaluate(body, inputs, observe=keep)
    return values


def recorded(body: Body, inputs: list[Tensor], trace: Mapping[Ref, Tensor]) -> Graph:
    sample = Sample(tuple(inputs), tuple(trace[ref] for ref in body.outputs), dict(trace))
    return Graph(body, samples=(sample,), producer=Producer("jax", "0.10.2"))


def with_node(body: Body, number: int, change: Callable[[Node], Node]) -> Body:
    nodes = tuple(change(node) if node.id == number else node for node in body.nodes)
    return replace(body, nodes=nodes)


INPUT = [Tensor.from_numpy(np.random.default_rng(0).standard_normal((4, 16)).astype(np.float32))]


def test_the_same_computation_has_no_suspect() -> None:
    body = softmax()
    found = locate(recorded(body, INPUT, traced(body, INPUT)))
    assert found.ok
    assert found.ledger == ()
    assert {node.verdict for node in found.nodes} == {"identical"}


def test_another_order_of_a_sum_is_no_fault_and_is_seen_where_it_is() -> None:
    body = softmax()
    other = with_node(body, 5, lambda n: replace(n, attrs={**n.attrs, "accumulate": Accumulate(order="pairwise")}))
    found = locate(recorded(body, INPUT, traced(other, INPUT)))
    assert found.ok
    verdicts = {node.ref.node: node.verdict for node in found.nodes}
    assert verdicts[5] == "reordering"
    # later nodes are what they should be for what they were given, though they differ from the reference's values
    assert verdicts[7] == "identical"
    assert next(node for node in found.nodes if node.ref.node == 7).propagated.equal_words < 64


@pytest.mark.parametrize(
    ("number", "change"),
    [
        (1, lambda n: replace(n, attrs={"reducer": "minimum", "dimensions": (1,)})),
        (3, lambda n: replace(n, op="add")),
        (4, lambda n: replace(n, op="exp2")),
        (5, lambda n: replace(n, attrs={"reducer": "maximum", "dimensions": (1,)})),
        (7, lambda n: replace(n, op="multiply")),
    ],
)
def test_a_wrong_operation_is_the_suspect(number: int, change: Callable[[Node], Node]) -> None:
    body = softmax()
    found = locate(recorded(body, INPUT, traced(with_node(body, number, change), INPUT)))
    assert found.suspect is not None
    assert found.suspect.ref == Ref(number)
    assert found.operands
    # nothing after it is blamed for what it was given
    assert {node.ref.node for node in found.nodes if node.verdict == "bug"} == {number}


def test_a_sum_without_its_last_term_is_the_suspect() -> None:
    body = softmax()
    trace = traced(body, INPUT)
    power = trace[Ref(4)].to_numpy()
    short = Tensor.from_numpy(power[:, :-1].sum(axis=1, dtype=np.float32))
    later = {**trace, Ref(5): short}
    later[Ref(6)] = Tensor.from_numpy(np.repeat(short.to_numpy()[:, None], 16, axis=1))
    later[Ref(7)] = Tensor.from_numpy(power / later[Ref(6)].to_numpy())
    found = locate(recorded(body, INPUT, later))
    assert found.suspect is not None
    assert found.suspect.ref == Ref(5)


def test_nodes_without_a_recorded_value_are_named_and_computed() -> None:
    body = softmax()
    trace = traced(body, INPUT)
    sparse = {ref: tensor for ref, tensor in trace.items() if ref.node in (0, 3, 7)}
    found = locate(recorded(body, INPUT, sparse))
    assert found.ok
    assert found.missing == (1, 2, 4, 5, 6)


def test_where_an_infinity_comes_from() -> None:
    chain = Chain()
    x = chain.add("input", (), (3,))
    low = chain.add("convert", (x,), (3,), F16)
    square = chain.add("multiply", (low, low), (3,), F16)
    back = chain.add("convert", (square,), (3,))
    body = chain.body(chain.add("subtract", (back, back), (3,)))
    inputs = [Tensor.from_numpy(np.array([1, 5000, 2], np.float32))]
    trace = traced(body, inputs)
    # the frontend clamps the square to float16's largest number
    clamped = np.array([1, 65504, 4], np.float16)
    changed = [clamped, clamped.astype(np.float32), np.zeros(3, np.float32)]
    trace |= {Ref(node): Tensor.from_numpy(value) for node, value in zip((2, 3, 4), changed, strict=True)}
    found = locate(recorded(body, inputs, trace))
    first = found.ledger[0]
    assert (first.kind, first.side, first.ref, first.index) == ("overflow to infinity", "reference", Ref(2), (1,))
    assert first.local
    assert [entry.kind for entry in found.ledger if entry.ref == Ref(4)] == ["NaN"]


def test_flushed_subnormals_and_lost_signs() -> None:
    chain = Chain()
    x = chain.add("input", (), (2,))
    half = chain.add("input", (), (2,))
    body = chain.body(chain.add("multiply", (x, half), (2,)))
    inputs = [
        Tensor.from_numpy(np.array([2.0**-126, -0.0], np.float32)),
        Tensor.from_numpy(np.full(2, 0.5, np.float32)),
    ]
    trace = {**traced(body, inputs), Ref(2): Tensor.from_numpy(np.zeros(2, np.float32))}
    found = locate(recorded(body, inputs, trace))
    assert {(entry.kind, entry.side, entry.index) for entry in found.ledger} == {
        ("subnormal flushed to zero", "frontend", (0,)),
        ("lost sign of zero", "frontend", (1,)),
    }


def test_without_a_trace() -> None:
    body = softmax()
    graph = recorded(body, INPUT, traced(body, INPUT))
    bare = replace(graph, samples=(replace(graph.samples[0], trace=None),))
    with pytest.raises(UsageError, match="no trace"):
        locate(bare)
    with pytest.raises(UsageError, match="no sample 3"):
        locate(graph, sample=3)


@pytest.mark.parametrize("kept", [(), (4,), (2, 5)])
def test_what_is_not_recorded_may_be_computed_as_permitted_too(kept: tuple[int, ...]) -> None:
    body = softmax(8, 200)
    x = Tensor.from_numpy(np.random.default_rng(0).normal(size=(8, 200)).astype(np.float32))

    def another_order(node: Node) -> Node:
        return replace(node, attrs={**node.attrs, "accumulate": Accumulate(order="pairwise")})

    theirs = traced(with_node(body, 5, another_order), [x])
    (output,) = body.outputs
    graph = recorded(body, [x], theirs)
    trace = {ref: theirs[ref] for ref in (output, *map(Ref, kept))}
    found = locate(graph, trace=trace)
    assert found.ok
    assert found.nodes[-1].verdict != "identical" or 5 in kept
    assert set(found.missing) == {node.id for node in body.nodes if node.op != "input"} - {output.node, *kept}

    words = trace[output].words.copy()
    words[3, 7] += 4096
    wrong = locate(graph, trace={**trace, output: Tensor(trace[output].type, words)})
    assert wrong.suspect is not None
    assert wrong.suspect.ref == output
    assert [element.index for element in wrong.suspect.local.worst] == [(3, 7)]
