"""A fault planted in a graph comes down to a few nodes and elements, which fail as the whole graph did."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bounds_graphs import Builder

from tlir.backends import run
from tlir.backends.reference import evaluate, evaluate_node
from tlir.compare import compare
from tlir.compare.reduce import Piece, Rules, available, check_folder, evaluator, reduce, write_folder
from tlir.compare.reduce.expressions import expression
from tlir.compare.reduce.piece import cut
from tlir.compare.reduce.slices import restricted
from tlir.errors import UnsupportedError, UsageError
from tlir.ir.graph import Graph, Producer, Ref, Sample
from tlir.ir.tensor import Tensor
from tlir.ir.types import NAMED, TensorType
from tlir.ir.verify import type_errors
from tlir.schema import read

F32 = NAMED["float32"]
JAX = Producer("jax", "0.10.2")
WIDTH, BATCH = 8, 4


def network(layers: int, fault: tuple[int, str] | None = None) -> Graph:
    """Layers of a contracting product, a bias and tanh, so that bounds stay narrow; one may add a fault: subtract for
    add, or a cast to bfloat16 and back."""
    build = Builder()
    x = build.input(TensorType((BATCH, WIDTH), F32))
    for k in range(layers):
        deviates = np.random.default_rng(k).normal(size=(WIDTH, WIDTH)) / (4 * np.sqrt(WIDTH))
        product = build.dot(x, build.constant(deviates.astype(np.float32)))
        row = build.constant(np.linspace(-1, 1, WIDTH).astype(np.float32))
        bias = build.spread(row, (BATCH, WIDTH), 0)
        op = fault[1] if fault is not None and fault[0] == k else "add"
        x = build.like("tanh", build.like(op, product, bias))
    return build.graph(x, producer=JAX)


def recorded(good: Graph, bad: Graph, inputs: tuple[Tensor, ...], trace: bool) -> Graph:
    """The good graph with what the bad one of the same shape computes."""
    values: dict[Ref, Tensor] = {}
    outputs = evaluate(bad.body, inputs, observe=lambda n, made: values.update({Ref(n.id): made[0]}))
    kept = {ref: value for ref, value in values.items() if bad.nodes[ref.node].op not in ("input", "constant")}
    return replace(good, samples=(Sample(inputs, tuple(outputs), kept if trace else None),))


INPUTS = (Tensor.from_numpy(np.random.default_rng(99).normal(size=(BATCH, WIDTH)).astype(np.float32)),)


def faulty(layers: int = 10, at: int = 7, trace: bool = True) -> Graph:
    return recorded(network(layers), network(layers, (at, "subtract")), INPUTS, trace)


@pytest.mark.parametrize("trace", [True, False])
def test_a_fault_comes_down_to_a_few_nodes_and_elements(trace: bool) -> None:
    graph = faulty(trace=trace)
    found = reduce(graph)
    assert found is not None
    assert found.verdict == "bug"
    assert found.piece.count <= 5
    assert found.piece.elements <= 64
    assert found.basis == ("trace" if trace else "outputs")
    # the node that is to blame where values in between are recorded, the end of the graph where none are
    assert found.suspect.op == ("add" if trace else "tanh")
    assert found.suspect.id == (7 * 6 + 5 if trace else len(graph.nodes) - 1)
    again = compare(found.piece.graph(producer=JAX), tolerance="auto")
    assert not again.ok


@pytest.mark.parametrize(("trace", "rules"), [(True, Rules()), (False, Rules()), (False, Rules("1e-4"))])
def test_a_fault_in_five_hundred_nodes(trace: bool, rules: Rules) -> None:
    graph = faulty(84, 81, trace)
    assert len(graph.nodes) >= 500
    found = reduce(graph, rules=rules)
    assert found is not None
    assert found.piece.count <= 5
    assert found.piece.elements <= 64
    assert found.candidates < 60


def test_the_same_reduction_every_time() -> None:
    first, second = reduce(faulty()), reduce(faulty())
    assert first is not None
    assert second is not None
    assert first.piece.graph().nodes[-1] == second.piece.graph().nodes[-1]
    assert all(a.same_words(b) for a, b in zip(first.piece.inputs, second.piece.inputs, strict=True))


@pytest.mark.parametrize("trace", [True, False])
def test_an_undecided_comparison_comes_down_to_what_is_decided_where_it_can(trace: bool) -> None:
    """Which side of a comparison is taken depends on rounding, so that the output is undecided; the node that is to
    blame is not."""
    build = Builder()
    x = build.input(TensorType((4,), F32))
    root = build.like("exponential", x)
    chosen = build.node(
        "select",
        (build.compare(root, build.filled(root, float(np.float32(np.e))), "LT"), build.filled(x, 1.0), root),
        build.type(x),
    )
    good = build.graph(build.like("multiply", chosen, chosen), producer=JAX)
    nodes = tuple(replace(node, op="add") if node.op == "multiply" else node for node in good.nodes)
    inputs = (Tensor.from_numpy(np.full(4, 1, np.float32)),)
    graph = recorded(good, replace(good, body=replace(good.body, nodes=nodes)), inputs, trace)
    whole = compare(graph, tolerance="auto").outputs[0]
    assert whole.to_json()["verdict"] == "undecided"
    found = reduce(graph)
    assert found is not None
    assert found.suspect.op == "multiply"
    assert found.verdict == "bug"


def test_what_a_trace_lacks_stays_in_the_graph() -> None:
    graph = faulty()
    sample = graph.samples[0]
    suspect = 7 * 6 + 5
    trace = {ref: value for ref, value in (sample.trace or {}).items() if ref.node != suspect - 3}
    found = reduce(replace(graph, samples=(replace(sample, trace=trace),)))
    assert found is not None
    assert found.suspect.id == suspect
    # the product before it was not recorded, and is computed from what was
    assert [node.op for node in found.piece.body.nodes].count("dot_general") == 1
    assert found.piece.count <= 5


def test_nothing_to_reduce() -> None:
    assert reduce(recorded(network(3), network(3), INPUTS, True)) is None


def test_a_faulty_frontend_is_found_without_a_trace() -> None:
    """The frontend adds where it should subtract; it is asked about every part."""

    def wrong(piece: Piece) -> Tensor:
        nodes = tuple(replace(node, op="add") if node.op == "subtract" else node for node in piece.body.nodes)
        return run(Graph(replace(piece.body, nodes=nodes)), piece.inputs)[0]

    good = network(10, (4, "subtract"))
    bad = network(10)
    found = reduce(recorded(good, bad, INPUTS, False), rules=Rules("1e-9"), frontend=wrong)
    assert found is not None
    assert found.basis == "frontend"
    assert found.suspect.op == "subtract"
    assert found.piece.count <= 3
    # numbers as simple as they can be
    assert all(bin(int(tensor.words.reshape(-1)[0]) & 0x7FFFFF).count("1") == 0 for tensor in found.piece.inputs)


def test_a_frontend_that_does_not_show_it_is_not_believed() -> None:
    def right(piece: Piece) -> Tensor:
        return run(piece.graph(), piece.inputs)[0]

    found = reduce(faulty(trace=False), frontend=right)
    assert found is not None
    assert found.basis == "outputs"
    assert "does not give the recorded output" in found.notes[0]


def test_a_frontend_that_raises_is_told_of() -> None:
    def broken(piece: Piece) -> Tensor:
        raise TypeError("no such thing")

    found = reduce(faulty(trace=False), frontend=broken)
    assert found is not None
    assert found.basis == "outputs"
    assert "TypeError: no such thing" in found.notes[0]
    assert len(found.notes) == 2


def product(width: int, lhs: Any, rhs: Any, recorded: Any) -> Graph:
    build = Builder()
    a = build.input(TensorType((3, width), F32))
    b = build.input(TensorType((width, 5), F32))
    body = build.graph(build.dot(a, b), producer=JAX)
    sides = tuple(Tensor.from_numpy(np.asarray(side, np.float32)) for side in (lhs, rhs))
    value = Tensor.from_numpy(np.asarray(recorded, np.float32))
    return replace(body, samples=(Sample(sides, (value,), {body.body.outputs[0]: value}),))


def test_a_product_keeps_one_row_one_column_and_the_terms_that_add_something() -> None:
    rng = np.random.default_rng(3)
    lhs, rhs = rng.normal(size=(3, 100)), rng.normal(size=(100, 5))
    lhs[:, 10:] = 0
    value = (lhs @ rhs).astype(np.float32)
    value[2, 4] += 1
    found = reduce(product(100, lhs, rhs, value))
    assert found is not None
    assert [t.shape for t in found.piece.inputs] == [(1, 10), (10, 1)]
    assert np.array_equal(found.piece.inputs[0].to_numpy()[0], lhs[2, :10].astype(np.float32))
    assert np.array_equal(found.piece.inputs[1].to_numpy()[:, 0], rhs[:10, 4].astype(np.float32))


def test_a_frontend_that_loses_a_term_of_a_sum() -> None:
    """Wherever place 37 of the sum has 1e6, the frontend leaves it out: the others go."""

    def wrong(piece: Piece) -> Tensor:
        lhs, rhs = (np.where(np.abs(t.to_numpy()) >= 2**19, 0, t.to_numpy()) for t in piece.inputs)
        return Tensor.from_numpy((lhs @ rhs).astype(np.float32))

    rng = np.random.default_rng(3)
    lhs, rhs = rng.normal(size=(3, 100)), rng.normal(size=(100, 5))
    lhs[1, 37] = 1e6
    sides = [np.asarray(side, np.float32) for side in (lhs, rhs)]
    graph = product(100, *sides, np.where(sides[0] == 1e6, 0, sides[0]) @ sides[1])
    found = reduce(replace(graph, samples=(replace(graph.samples[0], trace=None),)), frontend=wrong)
    assert found is not None
    assert found.basis == "frontend"
    assert found.piece.elements == 2


def chain(*steps: tuple[str, tuple[int, ...], dict[str, Any]], shapes: list[tuple[int, ...]]) -> Graph:
    """Inputs of the given shapes, then operations: each on the values named by number."""
    build = Builder()
    for shape in shapes:
        build.input(TensorType(shape, F32))
    for op, operands, attrs in steps:
        shape = attrs.pop("shape")
        build.node(op, tuple(Ref(k) for k in operands), TensorType(shape, F32), **attrs)
    return build.graph(Ref(len(build.nodes) - 1))


CUT = {
    "transpose": chain(("transpose", (0,), {"shape": (3, 2), "permutation": (1, 0)}), shapes=[(2, 3)]),
    "broadcast": chain(
        ("broadcast_in_dim", (0,), {"shape": (2, 3, 4), "broadcast_dimensions": (0, 2)}), shapes=[(2, 1)]
    ),
    "reshape": chain(("reshape", (0,), {"shape": (3, 8)}), shapes=[(2, 3, 4)]),
    "slice": chain(
        ("slice", (0,), {"shape": (2, 3), "start_indices": (1, 0), "limit_indices": (5, 3), "strides": (2, 1)}),
        shapes=[(6, 3)],
    ),
    "reverse": chain(("reverse", (0,), {"shape": (5,), "dimensions": (0,)}), shapes=[(5,)]),
    "concatenate": chain(("concatenate", (0, 1), {"shape": (2, 7), "dimension": 1}), shapes=[(2, 3), (2, 4)]),
    "reduce": chain(("reduce", (0,), {"shape": (3,), "reducer": "add", "dimensions": (0, 2)}), shapes=[(2, 3, 4)]),
    "cumulative": chain(("cumulative", (0,), {"shape": (3, 4), "reducer": "add", "dimension": 1}), shapes=[(3, 4)]),
    "sort": chain(("sort", (0,), {"shape": (3, 4), "dimension": 0}), shapes=[(3, 4)]),
    "batched product": chain(
        (
            "dot_general",
            (0, 1),
            {
                "shape": (3, 2, 5),
                "lhs_batching_dimensions": (1,),
                "rhs_batching_dimensions": (0,),
                "lhs_contracting_dimensions": (2,),
                "rhs_contracting_dimensions": (1,),
            },
        ),
        shapes=[(2, 3, 4), (3, 4, 5)],
    ),
    "convolution": chain(
        (
            "convolution",
            (0, 1),
            {
                "shape": (2, 4, 6),
                "lhs_dimensions": (0, 1, 2),
                "rhs_dimensions": (0, 1, 2),
                "output_dimensions": (0, 1, 2),
                "window_strides": (2,),
                "padding_low": (1,),
                "padding_high": (2,),
                "lhs_dilation": (1,),
                "rhs_dilation": (2,),
                "window_reversal": (0,),
            },
        ),
        shapes=[(2, 3, 10), (4, 3, 2)],
    ),
    "one value read in two ways": chain(
        ("negate", (0,), {"shape": (3, 3)}),
        ("transpose", (1,), {"shape": (3, 3), "permutation": (1, 0)}),
        ("subtract", (1, 2), {"shape": (3, 3)}),
        shapes=[(3, 3)],
    ),
    "an input read in two ways": chain(
        ("transpose", (0,), {"shape": (3, 3), "permutation": (1, 0)}),
        ("subtract", (0, 1), {"shape": (3, 3)}),
        shapes=[(3, 3)],
    ),
    "a reduced axis spread again": chain(
        ("reduce", (0,), {"shape": (4,), "reducer": "maximum", "dimensions": (1,)}),
        ("broadcast_in_dim", (1,), {"shape": (4, 6), "broadcast_dimensions": (0,)}),
        ("subtract", (0, 2), {"shape": (4, 6)}),
        shapes=[(4, 6)],
    ),
}


@pytest.mark.parametrize("name", CUT)
def test_what_one_element_depends_on_gives_that_element(name: str) -> None:
    """Each element of the output, cut out, is what it was: the reference itself is the oracle."""
    graph = CUT[name]
    rng = np.random.default_rng(5)
    inputs = [
        Tensor.from_numpy(rng.normal(size=n.type.shape).astype(np.float32)) for n in graph.nodes if n.op == "input"
    ]
    values: dict[Ref, Tensor] = {}
    (whole,) = evaluate(graph.body, inputs, observe=lambda n, made: values.update({Ref(n.id): made[0]}))
    piece = cut(graph.body, range(len(graph.nodes)), graph.body.outputs[0], values, whole)
    smaller = False
    for index in np.ndindex(whole.shape):
        made = restricted(piece, tuple((i,) for i in index))
        assert made is not None
        assert type_errors(made.graph()) == []
        (part,) = run(made.graph(), made.inputs)
        assert part.same_words(made.expected)
        assert whole.to_numpy()[index] in part.to_numpy()
        smaller |= made.elements < piece.elements
    assert smaller or name == "one value read in two ways"


def test_unused_operands_of_a_concatenation_go() -> None:
    graph = CUT["concatenate"]
    inputs = [Tensor.from_numpy(np.ones(n.type.shape, np.float32)) for n in graph.nodes if n.op == "input"]
    values = dict(zip((Ref(0), Ref(1)), inputs, strict=True)) | {Ref(2): run(graph, inputs)[0]}
    made = restricted(cut(graph.body, {2}, Ref(2), values, values[Ref(2)]), ((1,), (5,)))
    assert made is not None
    assert made.count == 2


@pytest.mark.parametrize("frontend", ["jax", "torch"])
@pytest.mark.parametrize("name", sorted(CUT))
def test_expressions_compute_what_the_operation_says(frontend: str, name: str) -> None:
    """Up to rounding; the frontend and the reference are each other's oracle."""
    if not available(frontend):
        pytest.skip(f"{frontend} is not installed")
    graph = CUT[name]
    rng = np.random.default_rng(5)
    inputs = [
        Tensor.from_numpy(rng.normal(size=n.type.shape).astype(np.float32)) for n in graph.nodes if n.op == "input"
    ]
    values: dict[Ref, Tensor] = {}
    (whole,) = evaluate(graph.body, inputs, observe=lambda n, made: values.update({Ref(n.id): made[0]}))
    piece = cut(graph.body, range(len(graph.nodes)), graph.body.outputs[0], values, whole)
    if (frontend, name) == ("torch", "convolution"):  # padding that differs at both ends
        with pytest.raises(UnsupportedError):
            evaluator(frontend, False)(piece)
        return
    np.testing.assert_allclose(evaluator(frontend, False)(piece).to_numpy(), whole.to_numpy(), rtol=1e-5, atol=1e-6)


UNARY = (
    "negate", "abs", "sign", "floor", "ceil", "trunc", "round_nearest_even", "sqrt", "rsqrt", "exponential",
    "exponential_minus_one", "log", "log_plus_one", "logistic", "tanh", "sine", "cosine", "tan", "asin", "acos", "atan",
    "sinh", "cosh", "asinh", "atanh", "exp2", "log2", "log10", "erf", "erfc", "erf_inv", "lgamma", "digamma",
)  # fmt: skip
BINARY = (
    "add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "power", "atan2", "hypot", "copysign",
    "next_after",
)  # fmt: skip


@pytest.mark.parametrize("frontend", ["jax", "torch"])
def test_functions_are_those_of_the_same_meaning(frontend: str) -> None:
    if not available(frontend):
        pytest.skip(f"{frontend} is not installed")
    evaluate_there = evaluator(frontend, False)
    x, y = (Tensor.from_numpy(np.array(v, np.float32)) for v in ([0.3, 0.75, 0.5], [0.2, -1.5, 2.5]))
    for op in (*UNARY, *BINARY):
        build = Builder()
        operands = tuple(build.input(x.type) for _ in range(1 if op in UNARY else 2))
        body = build.graph(build.like(op, *operands)).body
        given = (x, y)[: len(operands)]
        (expected,) = run(Graph(body), given)
        made = evaluate_there(Piece(body, given, expected, tuple(range(len(body.nodes)))))
        np.testing.assert_allclose(made.to_numpy(), expected.to_numpy(), rtol=1e-5, err_msg=f"{frontend} {op}")


def test_an_operation_without_an_expression_says_so() -> None:
    build = Builder()
    x = build.input(TensorType((4,), F32))
    node = build.nodes[build.node("fma", (x, x, x), TensorType((4,), F32)).node]
    with pytest.raises(UnsupportedError, match="fma"):
        expression("jax", node, ["x", "x", "x"], [node.type] * 3)


def subnormal_product() -> Graph:
    """A product that XLA flushes to zero on the CPU, which the policy strict does not permit, in a longer graph."""
    build = Builder()
    x = build.input(TensorType((2, 3), F32))
    y = build.like("multiply", x, build.filled(x, 2.0**-70))
    z = build.like("multiply", y, build.filled(y, 2.0**-70))
    graph = build.graph(build.like("add", z, z), producer=JAX)
    inputs = (Tensor.from_numpy(np.array([[1.5, 2, 3], [4, 5, 6.7]], np.float32)),)
    zero = Tensor.from_numpy(np.zeros((2, 3), np.float32))
    return replace(graph, samples=(Sample(inputs, (zero,)),))


def test_a_real_fault_of_a_frontend_is_shown_by_the_frontend_alone(tmp_path: Path) -> None:
    pytest.importorskip("jax")
    graph = subnormal_product()
    rules = Rules(policy="strict")
    found = reduce(graph, rules=rules, frontend=evaluator("jax", False))
    assert found is not None
    assert found.basis == "frontend"
    assert found.suspect.op == "multiply"
    assert found.piece.count == 3
    written = write_folder(found, graph, tmp_path / "report", rules)
    assert written.still_fails
    assert written.script == "fails"
    text = (tmp_path / "report" / "README.md").read_text()
    assert "lax.mul" in (tmp_path / "report" / "reproduce.py").read_text()
    assert "Run when this was written: the fault is there." in text
    assert "`tlir compare --tolerance auto --policy strict reduced.json`" in text
    # by itself, from anywhere
    done = subprocess.run(
        [sys.executable, str(tmp_path / "report" / "reproduce.py")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "the fault is there"


@pytest.mark.parametrize(
    ("producer", "dtype"),
    [
        (Producer("torch", "2.13.0"), "float64"),
        (Producer("torch", "2.13.0"), "bfloat16"),
        (JAX, "bfloat16"),
        (Producer("jax", "0.10.2", outputs="compiled"), "float32"),
    ],
)
def test_what_is_written_fails_again(producer: Producer, dtype: str, tmp_path: Path) -> None:
    if not available(producer.frontend):
        pytest.skip(f"{producer.frontend} is not installed")
    build = Builder()
    x = build.input(TensorType((3,), NAMED[dtype]))
    graph = build.graph(build.like("multiply", build.like("add", x, x), x), producer=producer)
    from tlir.ir.tensor import numpy_dtype

    native = numpy_dtype(NAMED[dtype])
    inputs = (Tensor.from_numpy(np.array([1, 2, 3]).astype(native)),)
    good = evaluate(graph.body, inputs)[0]
    bad = Tensor.from_numpy((good.to_numpy().astype(np.float64) * np.array([1, 5, 1])).astype(native))
    graph = replace(graph, samples=(Sample(inputs, (bad,)),))
    found = reduce(graph)
    assert found is not None
    written = write_folder(found, graph, tmp_path, Rules())
    assert written.still_fails
    # the frontend that is installed computes this rightly: the program runs, and says so
    assert written.script == "passes"
    again = read(tmp_path / "reduced.json")
    assert not compare(again, tolerance="auto").ok
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(written.files)


def test_a_rule_of_tolerances(tmp_path: Path) -> None:
    for rules in (Rules("1e-3"), Rules(None, ulps=4), Rules(None, words=True)):
        # the program too, of one of them
        graph = replace(faulty(), producer=JAX if rules.ulps else None)
        found = reduce(graph, rules=rules)
        assert found is not None
        assert found.suspect.op == "add"
        assert found.verdict == "failed"
        assert write_folder(found, graph, tmp_path, rules, force=True).still_fails


def test_a_folder_that_is_not_empty_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(UsageError):
        check_folder(tmp_path, False)
    check_folder(tmp_path, True)
    with pytest.raises(UsageError):
        check_folder(tmp_path / "mine.txt", True)


@pytest.mark.parametrize("name", ["layer_norm", "attention"])
def test_a_result_rounded_to_bfloat16_at_any_node_comes_down_to_that_node(name: str) -> None:
    """Of a recorded artifact every node in turn is one whose result the frontend keeps in bfloat16."""
    graph = read(Path(__file__).resolve().parents[1] / "golden" / "jax" / f"{name}.json")
    inputs = graph.samples[0].inputs
    planted = 0
    for target in graph.nodes:
        values = dict(zip((Ref(k) for k in graph.body.input_ids), inputs, strict=True))
        changed = False
        for node in graph.nodes:
            if node.op == "input":
                continue
            (made,) = evaluate_node(node, tuple(values[ref] for ref in node.inputs))
            if node is target and node.op != "constant" and made.dtype == F32:
                coarse = made.words + np.uint32(0x8000) & np.uint32(0xFFFF0000)
                changed = not np.array_equal(coarse, made.words)
                made = Tensor(made.type, np.asarray(coarse))
            values[Ref(node.id)] = made
        if not changed:
            continue
        planted += 1
        trace = {ref: value for ref, value in values.items() if graph.nodes[ref.node].op not in ("input", "constant")}
        sample = replace(graph.samples[0], outputs=tuple(values[ref] for ref in graph.body.outputs), trace=trace)
        found = reduce(replace(graph, samples=(sample,)))
        assert found is not None, target
        assert found.suspect.id == target.id
        assert found.piece.count <= 5
        assert found.piece.elements <= 64
    assert planted > 8
