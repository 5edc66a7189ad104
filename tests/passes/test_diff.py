"""Differences: a planted change is reported, and nothing else; the same graph in any order is the same."""

from __future__ import annotations

import random
from collections.abc import Hashable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import gmpy2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from passes_graphs import Builder, chain, layers, perceptron, tensor_type, words

from tlir.errors import Source
from tlir.ir.graph import Body, Graph, Node, Ref, Sample
from tlir.ir.ops import Accumulate
from tlir.ir.tensor import Tensor
from tlir.ir.types import TensorType, parse_dtype
from tlir.passes import matching, sequences
from tlir.passes.diff import BodyDiff, diff
from tlir.passes.distance import distance
from tlir.passes.sequences import common_subsequence

_UNARY = ("negate", "abs", "sine", "tanh", "exponential")
_BINARY = ("add", "subtract", "multiply", "divide", "maximum")


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Random graphs in which every node is used; all operations are on float32[4]."""
    b = Builder()
    for k in range(draw(st.integers(1, 3))):
        b.input(f"x{k}", "float32", 4)
    for k in range(draw(st.integers(0, 3))):
        b.constant(np.array([k, 1, 2, 3], np.float32), draw(st.sampled_from([None, f"w{k}"])))
    for _ in range(draw(st.integers(2, 25))):
        operand = st.integers(max(0, len(b.nodes) - 6), len(b.nodes) - 1)
        if draw(st.booleans()):
            b.op(draw(st.sampled_from(_UNARY)), draw(operand))
        else:
            b.op(draw(st.sampled_from(_BINARY)), draw(operand), draw(operand))
    used = {ref.node for node in b.nodes for ref in node.inputs}
    return b.graph(*(node.id for node in b.nodes if node.id not in used or node.id == len(b.nodes) - 1))


def with_nodes(graph: Graph, nodes: Sequence[Node], **body: Any) -> Graph:
    return replace(graph, body=replace(graph.body, nodes=tuple(nodes), **body))


def replaced(graph: Graph, node: Node) -> Graph:
    return with_nodes(graph, [*graph.nodes[: node.id], node, *graph.nodes[node.id + 1 :]])


def renumbered(graph: Graph, order: Sequence[int]) -> Graph:
    """The same graph with its nodes in another order: ``order`` lists the old ids."""
    new = {old: k for k, old in enumerate(order)}

    def moved(ref: Ref) -> Ref:
        return Ref(new[ref.node], ref.result)

    nodes = [
        replace(graph.nodes[old], id=k, inputs=tuple(map(moved, graph.nodes[old].inputs)))
        for k, old in enumerate(order)
    ]
    inputs = tuple(new[i] for i in graph.body.input_ids)
    return with_nodes(graph, nodes, input_ids=inputs, outputs=tuple(map(moved, graph.body.outputs)))


def shuffled(graph: Graph, seed: int) -> Graph:
    """The graph in another topological order."""
    rng = random.Random(seed)
    waiting, order = set(range(len(graph.nodes))), []
    while waiting:
        ready = sorted(n for n in waiting if all(ref.node not in waiting for ref in graph.nodes[n].inputs))
        order.append(rng.choice(ready))
        waiting.discard(order[-1])
    return renumbered(graph, order)


def counts(body: BodyDiff) -> tuple[int, int, int, int]:
    return len(body.removed), len(body.inserted), len(body.changed), len(body.interface)


@given(graphs(), st.integers(0, 999))
def test_the_same_graph_in_another_order_is_the_same(graph: Graph, seed: int) -> None:
    report = diff(graph, shuffled(graph, seed))
    assert report.same
    assert report.body.matched == len(graph.nodes)
    assert report.to_json()["same"] is True


@given(graphs(), st.data())
def test_a_replaced_operation_is_the_only_change(graph: Graph, data: st.DataObject) -> None:
    node = data.draw(st.sampled_from([node for node in graph.nodes if node.inputs]))
    other = "copysign" if len(node.inputs) == 2 else "floor"
    report = diff(graph, shuffled(replaced(graph, replace(node, op=other)), data.draw(st.integers(0, 99))))
    assert counts(report.body) == (0, 0, 1, 0)
    (change,) = report.body.changed
    assert change.a.id == node.id
    assert [str(difference) for difference in change.differences] == [f"operation: {node.op} -> {other}"]


@given(graphs(), st.data())
def test_a_renamed_node_is_the_only_change(graph: Graph, data: st.DataObject) -> None:
    node = data.draw(st.sampled_from(graph.nodes))
    report = diff(graph, replaced(graph, replace(node, name="renamed")))
    assert counts(report.body) == (0, 0, 1, 0)
    (difference,) = report.body.changed[0].differences
    assert (difference.what, difference.b) == ("name", '"renamed"')


@given(graphs(), st.data())
def test_an_inserted_node_is_reported_with_the_operands_that_now_use_it(graph: Graph, data: st.DataObject) -> None:
    target = data.draw(st.sampled_from([node for node in graph.nodes if node.inputs]))
    slot = data.draw(st.integers(0, len(target.inputs) - 1))
    order = [node.id for node in graph.nodes]
    # the new node takes the place of the target, which and whose followers move by one
    new = Node(target.id, "ceil", (target.inputs[slot],), {}, target.types)

    def moved(ref: Ref) -> Ref:
        return Ref(ref.node + (ref.node >= target.id), ref.result)

    later = [replace(node, id=node.id + 1, inputs=tuple(map(moved, node.inputs))) for node in graph.nodes[target.id :]]
    inputs = list(later[0].inputs)
    inputs[slot] = Ref(target.id)
    later[0] = replace(later[0], inputs=tuple(inputs))
    outputs = tuple(map(moved, graph.body.outputs))
    longer = with_nodes(graph, [*graph.nodes[: target.id], new, *later], outputs=outputs)
    for report, inserted in ((diff(graph, longer), (0, 1)), (diff(longer, graph), (1, 0))):
        assert counts(report.body) == (*inserted, 1, 0)
        assert [node.op for node in report.body.inserted + report.body.removed] == ["ceil"]
        (difference,) = report.body.changed[0].differences
        assert difference.what == f"operand {slot}"
    assert len(order) + 1 == len(longer.nodes)


@given(graphs(), st.data())
def test_a_rewired_operand_is_the_only_change(graph: Graph, data: st.DataObject) -> None:
    node = data.draw(st.sampled_from([node for node in graph.nodes if node.inputs]))
    slot = data.draw(st.integers(0, len(node.inputs) - 1))
    old = node.inputs[slot]
    numbers = matching.Keys().body(graph.body)
    others = [k for k in range(node.id) if numbers[k] != numbers[old.node]]
    if not others:
        return
    inputs = list(node.inputs)
    inputs[slot] = Ref(data.draw(st.sampled_from(others)))
    changed = replaced(graph, replace(node, inputs=tuple(inputs)))
    report = diff(graph, changed)
    assert not report.same
    assert counts(report.body)[:2] == (0, 0)
    # equal operations may trade places, never more than the nodes below the change
    rewired = [d.what for change in report.body.changed for d in change.differences]
    assert all(what.startswith("operand") for what in rewired)


@given(graphs(), st.data())
def test_changed_constant_words_are_counted(graph: Graph, data: st.DataObject) -> None:
    constants = [node for node in graph.nodes if node.op == "constant"]
    if not constants:
        return
    node = data.draw(st.sampled_from(constants))
    value = node.attrs["value"]
    steps = data.draw(st.integers(1, 1000))
    altered = value.words.copy()
    altered[3] += np.uint32(steps)
    report = diff(graph, replaced(graph, replace(node, attrs={"value": Tensor(value.type, altered)})))
    assert counts(report.body) == (0, 0, 1, 0)
    (difference,) = report.body.changed[0].differences
    assert str(difference) == f"value: 1 of 4 words differ, the first at 3, at most {steps} ulp apart"


def test_attributes_types_and_defaults() -> None:
    graph = perceptron()
    node = graph.nodes[10]
    attrs = {"reducer": "add", "dimensions": (1, 0)}
    assert diff(graph, replaced(graph, replace(node, attrs=attrs | {"accumulate": Accumulate()}))).to_json()["nodes"][
        "changed"
    ][0]["differences"] == [{"what": "dimensions", "a": "[0, 1]", "b": "[1, 0]"}]
    pairwise = replaced(graph, replace(node, attrs=node.attrs | {"accumulate": Accumulate(order="pairwise")}))
    report = diff(graph, pairwise)
    assert list(report.lines()) == [
        "nodes: 0 removed, 0 inserted, 1 changed, 12 the same",
        "~ %10: float32[] = reduce   // model.py:15 f",
        "    accumulate: sequential -> pairwise",
    ]
    assert diff(graph, replaced(graph, replace(node, attrs=node.attrs | {"accumulate": Accumulate()}))).same
    assert not diff(pairwise, graph).same


def test_another_dtype_everywhere_pairs_every_node() -> None:
    graph = layers(4)
    half = parse_dtype("float16")

    def narrow(type: TensorType) -> TensorType:
        return TensorType(type.shape, half)

    nodes = []
    for node in graph.nodes:
        attrs = dict(node.attrs)
        if node.op == "constant":
            attrs["value"] = Tensor.from_numpy(attrs["value"].to_numpy().astype(np.float16))
        nodes.append(replace(node, types=(narrow(node.type),), attrs=attrs))
    report = diff(graph, with_nodes(graph, nodes))
    assert counts(report.body) == (0, 0, len(graph.nodes), 0)
    assert all(change.a.id == change.b.id for change in report.body.changed)


def test_inputs_outputs_header_and_samples() -> None:
    graph = perceptron()
    (sample,) = graph.samples
    other = Sample(sample.inputs, (Tensor.from_numpy(np.array(1.5000001, np.float32)), sample.outputs[1]))
    producer = replace(graph.producer, frontend_version="0.11", flags={"x64": True})  # type: ignore[type-var]
    changed = replace(graph, name="g", tolerance="1e-3", producer=producer, samples=(other, sample))
    report = diff(graph, changed)
    assert [str(difference) for difference in report.header] == [
        'name: "perceptron" -> "g"',
        "tolerance: none -> 1e-3",
        "producer flag x64: false -> true",
        "producer frontend_version: 0.10.2 -> 0.11",
    ]
    assert report.body.same
    assert [str(difference) for difference in report.samples] == [
        "samples: 1 -> 2",
        "sample 0 output 0: 1 of 1 word differ, at most 1 ulp apart",
    ]
    b = Builder()
    x, y = b.input("x", "float32", 2), b.input("y", "float32", 2)
    total = b.op("add", x, y)
    one = b.graph(total, x)
    two = with_nodes(one, one.nodes, input_ids=(1, 0), outputs=(Ref(x), Ref(total)))
    assert [str(difference) for difference in diff(one, two).body.interface] == [
        "inputs: x, y -> y, x",
        "output 0: %2 add -> %0 input",
        "output 1: %0 input -> %2 add",
    ]


def test_source_lines_that_moved_are_not_a_difference() -> None:
    graph = perceptron()
    nodes = [replace(n, source=Source("model.py", n.source.line + 5, "f") if n.source else None) for n in graph.nodes]
    report = diff(graph, with_nodes(graph, nodes))
    assert report.same
    assert list(report.lines()) == ["the same: 13 nodes; 8 source lines moved"]


def test_a_change_in_a_region_is_reported_in_the_region() -> None:
    scalar = tensor_type("int32")

    def loop(op: str) -> Graph:
        inner = (Node(0, "input", (), {}, (scalar,), "i"), Node(1, op, (Ref(0),), {}, (scalar,)))
        body = Body(inner, (0,), (Ref(1),))
        nodes = (Node(0, "input", (), {}, (scalar,)), Node(1, "while", (Ref(0),), {}, (scalar,), regions=(body,)))
        return Graph(Body((*nodes, Node(2, "abs", (Ref(1),), {}, (scalar,))), (0,), (Ref(2),)), "f")

    assert diff(loop("negate"), loop("negate")).same
    assert list(diff(loop("negate"), loop("not")).lines()) == [
        "nodes: 0 removed, 0 inserted, 1 changed, 2 the same",
        "~ %1: int32[] = while",
        "    region 0:",
        "      ~ %1: int32[] = not",
        "          operation: negate -> not",
    ]


def test_traces_are_compared_by_node() -> None:
    b = Builder()
    x = b.input("x", "float32", 1)
    graph = b.graph(b.op("negate", b.op("sine", x)))
    tensors = [words("float32", (1,), [k]) for k in (0, 1, 2, 5)]
    one = Sample((tensors[0],), (tensors[2],), {Ref(1): tensors[1], Ref(2): tensors[2]})
    two = replace(one, trace={Ref(1): tensors[3]})
    report = diff(replace(graph, samples=(one,)), replace(graph, samples=(two,)))
    assert [str(difference) for difference in report.samples] == [
        "sample 0 trace of %1: 1 of 1 word differ, at most 4 ulp apart",
        "sample 0 trace of %2: [3e-45] -> none",
    ]


def test_large_graphs_with_scattered_changes() -> None:
    graph = chain(10_000)
    nodes = list(graph.nodes)
    for k in range(500, 10_000, 1000):
        nodes[k] = replace(nodes[k], op="add")
    report = diff(graph, with_nodes(graph, nodes))
    assert [change.a.id for change in report.body.changed] == list(range(500, 10_000, 1000))
    assert counts(report.body) == (0, 0, 10, 0)
    retyped = [replace(node, types=(tensor_type("float64", 4),)) for node in graph.nodes]
    assert len(diff(graph, with_nodes(graph, retyped)).body.changed) == 10_000


def test_many_scattered_changes_among_equal_nodes() -> None:
    graph = layers(300)
    rng = random.Random(5)
    nodes = [replace(n, op="subtract") if n.op == "add" and rng.random() < 0.5 else n for n in graph.nodes]
    report = diff(graph, with_nodes(graph, nodes))
    planted = [node.id for node, other in zip(graph.nodes, nodes, strict=True) if node.op != other.op]
    assert len(planted) > 250
    assert [change.a.id for change in report.body.changed] == planted
    assert counts(report.body) == (0, 0, len(planted), 0)


def test_layers_that_are_gone_are_removed_by_name() -> None:
    report = diff(layers(12), layers(9))
    assert {node.name for node in report.body.removed if node.op == "constant"} == {
        f"layers[{k}].{part}" for k in (9, 10, 11) for part in ("weight", "bias")
    }
    assert len(report.body.removed) == 27
    assert not report.body.inserted
    assert [difference.what for change in report.body.changed for difference in change.differences] == ["operand 0"]


# ---- the parts ------------------------------------------------------------------------------------------------------


def longest(a: Sequence[Hashable], b: Sequence[Hashable]) -> int:
    """The length of the longest common subsequence by the table of all prefixes."""
    row = [0] * (len(b) + 1)
    for x in a:
        new = [0]
        for k, y in enumerate(b):
            new.append(row[k] + 1 if x == y else max(row[k + 1], new[-1]))
        row = new
    return row[-1]


SEQUENCES = st.lists(st.integers(0, 4), max_size=40)


@given(SEQUENCES, SEQUENCES)
def test_the_common_subsequence_is_common_and_longest(a: list[int], b: list[int]) -> None:
    pairs = common_subsequence(a, b)
    assert all(a[k] == b[m] for k, m in pairs)
    assert all(p[0] < q[0] and p[1] < q[1] for p, q in pairwise(pairs))
    assert len(pairs) == longest(a, b)


@given(SEQUENCES, SEQUENCES)
@settings(max_examples=50)
def test_beyond_the_bound_it_is_still_common(a: list[int], b: list[int]) -> None:
    bound = sequences.MAX_EDITS
    sequences.MAX_EDITS = 0
    try:
        pairs = common_subsequence(a, b)
    finally:
        sequences.MAX_EDITS = bound
    assert all(a[k] == b[m] for k, m in pairs)
    assert all(p[0] < q[0] and p[1] < q[1] for p, q in pairwise(pairs))


FINITE = st.floats(allow_nan=False, allow_infinity=False, width=32)


@given(st.lists(st.tuples(FINITE, FINITE), min_size=1, max_size=6))
def test_ulps_count_the_numbers_in_between(pairs: list[tuple[float, float]]) -> None:
    a, b = (np.array(values, np.float32) for values in zip(*pairs, strict=True))
    found = distance(Tensor.from_numpy(a), Tensor.from_numpy(b))
    differing = np.flatnonzero(a.view(np.uint32) != b.view(np.uint32))
    if not len(differing):
        assert found is None
        return
    assert found is not None

    def rank(x: float) -> int:
        """The number of float32 numbers between 0 and x, from MPFR's own exponent and mantissa."""
        if x == 0:
            return 0
        mantissa, exponent = gmpy2.mpfr(abs(x)).as_mantissa_exp()
        place = max(int(exponent) + int(mantissa).bit_length() - 24, -149)
        significand = int(gmpy2.mpq(abs(x)) / gmpy2.mpq(2) ** place)
        return (1 if x > 0 else -1) * (significand + (place + 149) * 2**23)

    assert found.differing == len(differing)
    assert found.first == differing[0]
    assert found.ulps == max(abs(rank(float(a[k])) - rank(float(b[k]))) for k in differing)


NAN, OTHER_NAN = (words("float32", (2,), [word, 5]) for word in (0x7FC00000, 0x7FC00001))
LARGEST, LEAST = (words("float64", (), [word]) for word in (2**63 - 2**52, 2**64 - 2**52))
ONE, AFTER_ONE = (
    Tensor(tensor_type("float128"), np.array([low, 0x3FFF000000000000 + high], np.uint64))
    for low, high in ((0, 0), (7, 1))
)


@pytest.mark.parametrize(
    ("a", "b", "text"),
    [
        (NAN, OTHER_NAN, "1 of 2 words differ, the first at 0, 1 with NaN"),
        (words("float16", (), [0x8000]), words("float16", (), [0]), "1 of 1 word differ, at most 0 ulp apart"),
        (LARGEST, LEAST, f"1 of 1 word differ, at most {2**64 - 2**53} ulp apart"),
        (
            words("complex64", (1,), [1, 2]),
            words("complex64", (1,), [1, 3]),
            "1 of 2 words differ, the first at 1, at most 1 ulp apart",
        ),
        (words("int8", (), [1]), words("int8", (), [9]), "1 of 1 word differ"),
        (words("float8_e8m0fnu", (), [0xFF]), words("float8_e8m0fnu", (), [3]), "1 of 1 word differ, 1 with NaN"),
        (ONE, AFTER_ONE, f"1 of 1 word differ, at most {2**64 + 7} ulp apart"),
    ],
)
def test_distances_of_particular_words(a: Tensor, b: Tensor, text: str) -> None:
    assert str(distance(a, b)) == text
