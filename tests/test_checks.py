"""The checks: what each reports, on graphs that hold and on graphs with one planted fault."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tlir.ir.graph import Body, Graph, Node, Ref
from tlir.ir.tensor import Tensor
from tlir.ir.types import TensorType, parse_dtype
from tlir.passes.check import CheckReport, Finding, check


def tensor_type(dtype: str, *shape: int) -> TensorType:
    return TensorType(shape, parse_dtype(dtype))


def bias_graph(rows: int, columns: int) -> Graph:
    """x[rows, columns] + b[columns], the bias broadcast along the rows."""
    matrix = tensor_type("float32", rows, columns)
    nodes = (
        Node(0, "input", (), {}, (matrix,), "x"),
        Node(1, "input", (), {}, (tensor_type("float32", columns),), "b"),
        Node(2, "broadcast_in_dim", (Ref(1),), {"broadcast_dimensions": (1,)}, (matrix,)),
        Node(3, "add", (Ref(0), Ref(2)), {}, (matrix,)),
    )
    return Graph(Body(nodes, (0, 1), (Ref(3),)), "bias")


def with_node(graph: Graph, node: Node) -> Graph:
    """The graph with the node of the same id replaced, or with the node added at the end."""
    nodes = [*graph.body.nodes[: node.id], node, *graph.body.nodes[node.id + 1 :]]
    return replace(graph, body=replace(graph.body, nodes=tuple(nodes)))


def findings(report: CheckReport, rule: str) -> list[Finding]:
    return [finding for finding in report.findings if finding.rule == rule]


def statuses(report: CheckReport) -> dict[str, str]:
    return {check.name: check.status for check in report.checks}


def test_a_good_graph_passes_and_says_what_was_covered() -> None:
    report = check(bias_graph(2, 3))
    assert report.ok
    assert statuses(report) == {
        "structure": "passed",
        "types": "passed",
        "broadcasts": "passed",
        "constants": "not applicable",
    }
    assert report.checks[0].covered == "4 nodes, 2 inputs, 1 output, 0 samples"
    assert report.checks[1].covered == "4 nodes of 3 operations; 4 float32"


def test_an_edited_dtype_is_rejected_with_the_cast_to_insert() -> None:
    graph = bias_graph(2, 3)
    edited = with_node(graph, replace(graph.body.nodes[3], types=(tensor_type("float64", 2, 3),)))
    report = check(edited)
    assert not report.ok
    (finding,) = findings(report, "TL0301")
    assert "declares float64[2,3], but add of float32[2,3], float32[2,3] gives float32[2,3]" in finding.message
    assert finding.hint == (
        "insert convert to float64 on operand 0 (%0), 1 (%2) to compute in float64, "
        "or declare float32 and insert convert to float64 after node 3"
    )


def test_a_mixed_operand_is_rejected_with_the_cast_to_insert() -> None:
    graph = with_node(bias_graph(2, 3), Node(0, "input", (), {}, (tensor_type("float64", 2, 3),), "x"))
    (finding,) = findings(check(graph), "TL0302")
    assert finding.message == "operand 1 is float32, operand 0 is float64 (constraint C2 of add)"
    assert finding.hint == "insert convert to float64 on operand 1, or to float32 on operand 0"
    assert finding.node == "3 add"


def test_a_wrong_shape_is_rejected_with_the_right_one() -> None:
    graph = bias_graph(2, 3)
    edited = with_node(graph, replace(graph.body.nodes[3], types=(tensor_type("float32", 3, 2),)))
    (finding,) = findings(check(edited), "TL0301")
    assert finding.hint == "declare float32[2,3]"


@pytest.mark.parametrize(("rows", "columns", "ambiguous"), [(2, 3, 0), (3, 3, 1), (1, 3, 0)])
def test_broadcasts_are_reported_with_their_axes(rows: int, columns: int, ambiguous: int) -> None:
    report = check(bias_graph(rows, columns))
    biases = findings(report, "bias-broadcast")
    assert len(biases) == (rows > 1)
    if biases:
        assert biases[0].message == (
            f"[{columns}] fills axes [1] of [{rows}, {columns}] and is repeated along axes [0], for add"
        )
    assert len(findings(report, "ambiguous-broadcast")) == ambiguous


def test_dead_nodes_and_unused_inputs_are_notes() -> None:
    graph = bias_graph(2, 3)
    dead = with_node(graph, Node(4, "negate", (Ref(1),), {}, (tensor_type("float32", 3),)))
    report = check(replace(dead, body=replace(dead.body, outputs=(Ref(0),))))
    assert report.ok
    assert [finding.node_id for finding in findings(report, "dead-node")] == [2, 3, 4]
    assert [finding.node_id for finding in findings(report, "unused-input")] == [1]


@pytest.mark.parametrize("fault", ["cycle", "arity", "operation", "id", "output", "input"])
def test_a_structure_that_does_not_hold_fails_and_stops_the_other_checks(fault: str) -> None:
    graph = bias_graph(2, 3)
    node = graph.body.nodes[3]
    faulty = {
        "cycle": lambda: with_node(graph, replace(node, inputs=(Ref(0), Ref(3)))),
        "arity": lambda: with_node(graph, replace(node, inputs=(Ref(0),))),
        "operation": lambda: with_node(graph, replace(node, op="addition")),
        "id": lambda: replace(graph, body=replace(graph.body, nodes=(*graph.body.nodes[:3], replace(node, id=7)))),
        "output": lambda: replace(graph, body=replace(graph.body, outputs=(Ref(9),))),
        "input": lambda: replace(graph, body=replace(graph.body, input_ids=(0,))),
    }[fault]()
    report = check(faulty)
    assert not report.ok
    assert statuses(report)["structure"] == "failed"
    assert statuses(report)["types"] == "not applicable"
    codes = {"cycle": "TL0208", "arity": "TL0209", "operation": "TL0205", "id": "TL0207"}
    assert [finding.rule for finding in report.findings] == [codes.get(fault, "TL0211")]


@pytest.mark.parametrize(
    ("dtype", "words", "infinities", "nans"),
    [
        ("float32", [0x7F800000, 0xFF800000, 0x7FC00000, 0x3F800000], 2, 1),
        ("float16", [0x7C00, 0x7C01, 0xFE00, 0x0001], 1, 2),
        ("float8_e4m3fn", [0x7F, 0xFF, 0x7E, 0x00], 0, 2),
        ("float8_e4m3fnuz", [0x80, 0x7F, 0xFF, 0x00], 0, 1),
        ("float4_e2m1fn", [0x7, 0xF, 0x0, 0x8], 0, 0),
        ("float8_e5m2", [0x7C, 0xFC, 0x7D, 0xFF], 2, 2),
    ],
)
def test_constants_that_are_not_finite_are_counted(dtype: str, words: list[int], infinities: int, nans: int) -> None:
    type = tensor_type(dtype, 4)
    value = Tensor(type, np.array(words, type.dtype.word_dtype))
    graph = Graph(Body((Node(0, "constant", (), {"value": value}, (type,), "table"),), (), (Ref(0),)))
    report = check(graph)
    assert report.ok
    expected = {"infinite-constant": infinities, "nan-constant": nans}
    for rule, count in expected.items():
        messages = [finding.message for finding in findings(report, rule)]
        what = "infinite" if rule == "infinite-constant" else "NaN"
        assert messages == ([f"{count} of 4 values are {what}"] if count else [])


def test_binary128_constants_are_counted_by_whole_words() -> None:
    type = tensor_type("float128", 2)
    infinity, nan = 0x7FFF << 112, (0x7FFF << 112) | 1
    words = np.array([[word & (2**64 - 1), word >> 64] for word in (infinity, nan)], np.uint64)
    graph = Graph(Body((Node(0, "constant", (), {"value": Tensor(type, words)}, (type,)),), (), (Ref(0),)))
    assert [finding.rule for finding in check(graph).findings if finding.node] == ["infinite-constant", "nan-constant"]
