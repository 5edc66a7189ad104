"""Two artifacts of the same graph compared with each other: in two formats, by two recordings, with a fault in one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bounds_graphs import Builder, layer_norm
from click.testing import CliRunner, Result
from example_programs import exported, mode, program

from tlir.backends.reference import evaluate
from tlir.cli.group import tlir as group
from tlir.compare.against import compare_against
from tlir.compare.auto import AutoReport
from tlir.compare.bounds import resolve
from tlir.compare.executions import execute
from tlir.compare.twins import twins
from tlir.errors import UsageError
from tlir.ir.graph import Graph, Producer, Ref, Sample
from tlir.ir.tensor import Tensor
from tlir.ir.types import NAMED, TensorType
from tlir.passes.cast import cast
from tlir.schema import dumps, from_json, write

ROOT = Path(__file__).resolve().parents[2]
JAX = Producer("jax", "0.10.2")
ROWS = np.random.default_rng(5).normal(size=(4, 8)).astype(np.float32)


def model(fault: str = "") -> Graph:
    """Layer norm, a product and a sum."""
    build = Builder()
    x = build.input(TensorType((4, 8), NAMED["float32"]))
    weight = np.random.default_rng(1).normal(size=(8, 8)).astype(np.float32)
    normed = layer_norm(build, x, 1)
    made = build.like("subtract" if fault == "subtract" else "add", build.dot(normed, build.constant(weight)), x)
    return build.graph(build.like("tanh", made), producer=JAX)


def recorded(graph: Graph, made: Graph | None = None, seed: int | None = None, trace: bool = True) -> Graph:
    """The graph with what another of the same shape computes, or a permitted execution of itself."""
    (kind,) = {type.dtype for type in graph.body.input_types}
    node = twins_input(ROWS, kind)
    values: dict[Ref, Tensor] = {}

    def keep(node: Any, results: tuple[Tensor, ...]) -> None:
        if node.op not in ("input", "constant"):
            values.update((Ref(node.id, k), tensor) for k, tensor in enumerate(results))

    if seed is None:
        outputs = evaluate((made or graph).body, (node,), observe=keep)
    else:
        outputs = execute(graph.body, [node], resolve("frontend", graph.producer), seed)
    return replace(graph, samples=(Sample((node,), tuple(outputs), values if trace and seed is None else None),))


def twins_input(array: np.ndarray, dtype: Any) -> Tensor:
    from tlir.compare.twins import converted

    return converted(Tensor.from_numpy(array), dtype)


def narrow(graph: Graph, to: str = "bfloat16") -> Graph:
    return cast(graph, to)[0]


@pytest.mark.parametrize("to", ["bfloat16", "float16", "float64"])
def test_the_same_graph_in_two_formats_differs_by_rounding(to: str) -> None:
    wide, other = recorded(model()), recorded(narrow(model(), to))
    report = compare_against(wide, other, names=("wide", "other"))
    assert isinstance(report, AutoReport)
    assert report.ok
    assert report.verdict in ("rounding", "reordering")
    (output,) = report.outputs
    assert output.max_absolute is not None
    assert float(output.max_absolute.absolute) <= output.justified  # type: ignore[attr-defined, arg-type]
    # the values beside each other are those of both, and every operation is there
    assert report.pair is not None
    assert report.pair.blamed == ()
    assert {node.label.split()[1] for node in report.pair.nodes} >= {"reduce", "divide", "sqrt", "dot_general", "tanh"}


def test_what_a_node_adds_is_its_own_rounding() -> None:
    """Against NumPy: the float32 operation on the bfloat16 operands, and its rounding to bfloat16."""
    import ml_dtypes

    wide, other = recorded(model()), recorded(narrow(model()))
    report = compare_against(wide, other)
    assert report.pair is not None
    traces = wide.samples[0].trace, other.samples[0].trace
    assert traces[0] is not None
    assert traces[1] is not None
    for found in report.pair.nodes:
        if found.label.split()[1] != "subtract":
            continue
        x, y = (traces[1][ref].to_numpy().astype(np.float32) if ref in traces[1] else
                ROWS.astype(ml_dtypes.bfloat16).astype(np.float32)
                for ref in other.nodes[found.other.node].inputs)  # fmt: skip
        own = traces[1][found.other].to_numpy().astype(np.float32)
        assert float(found.added.max_absolute.absolute) == float(np.abs(own - (x - y)).max())  # type: ignore[union-attr, arg-type]
        apart = np.abs(traces[0][found.ref].to_numpy() - own).max()
        assert float(found.difference.max_absolute.absolute) == float(apart)  # type: ignore[union-attr, arg-type]


@pytest.mark.parametrize("to", ["float32", "bfloat16"])
@pytest.mark.parametrize("seed", range(6))
def test_permitted_executions_of_both_are_no_bug_and_no_further_apart_than_justified(to: str, seed: int) -> None:
    first = recorded(model(), seed=seed)
    second = recorded(narrow(model(), to), seed=seed + 100)
    report = compare_against(first, second)
    assert report.ok
    (output,) = report.outputs
    furthest = float(output.max_absolute.absolute) if output.max_absolute else 0.0  # type: ignore[arg-type]
    assert furthest <= output.justified  # type: ignore[attr-defined]


def test_a_fault_in_one_is_a_bug_of_that_one_at_its_node() -> None:
    good, bad = recorded(model()), recorded(model(), model("subtract"))
    for first, second, names in ((good, bad, ("good", "bad")), (bad, good, ("bad", "good"))):
        report = compare_against(first, second, names=names)
        assert report.verdict == "bug"  # type: ignore[attr-defined]
        assert not report.ok
        assert report.pair is not None
        assert [blamed.name for blamed in report.pair.blamed] == ["bad"]
        suspects = {location.side: location.suspect for location in report.locations}
        assert suspects["good"] is None
        assert suspects["bad"] is not None
        assert suspects["bad"].op == "add"
        # what is handed on is not blamed: the only node that adds something
        adds = [node.label.split()[1] for node in report.pair.nodes if node.added.equal_words < node.added.count]
        assert adds == ["add"]


def test_equal_recordings_are_identical_and_a_rule_decides_where_one_is_given() -> None:
    graph = recorded(model())
    assert compare_against(graph, graph).verdict == "identical"  # type: ignore[attr-defined]
    from tlir.compare import check_options

    other = recorded(narrow(model()))
    assert not compare_against(graph, other, rule=check_options("1e-6", 0, None, False, False)).ok
    assert compare_against(graph, other, rule=check_options("0.5", 0, None, False, False)).ok
    # distances are counted in the narrower format
    assert compare_against(graph, other).outputs[0].ulps < 1 << 10
    with pytest.raises(UsageError, match="words of different formats"):
        compare_against(graph, other, rule=check_options(None, 0, None, True, False))


def test_special_values_on_one_side() -> None:
    build = Builder()
    x = build.input(TensorType((3,), NAMED["float32"]))
    square = build.like("multiply", x, x)
    graph = build.graph(build.like("subtract", square, square), producer=JAX)

    def made(graph: Graph) -> Graph:
        tensor = twins_input(np.array([1, 300, 2], np.float32), graph.body.input_types[0].dtype)
        values: dict[Ref, Tensor] = {}
        outputs = evaluate(graph.body, (tensor,), observe=lambda node, out: values.update({Ref(node.id): out[0]}))
        return replace(graph, samples=(Sample((tensor,), tuple(outputs), values),))

    report = compare_against(made(graph), made(narrow(graph, "float16")), names=("float32", "float16"))
    assert report.pair is not None
    first, second = report.pair.ledger
    assert (first.kind, first.side, first.ref, first.index) == ("overflow to infinity", "float16", Ref(1), (1,))
    assert (first.frontend, first.reference) == ("90000.0", "inf")
    assert (second.kind, second.side, second.ref) == ("NaN", "float16", Ref(2))


def test_what_is_not_the_same_graph() -> None:
    graph = recorded(model())
    for other, message in (
        (recorded(model("subtract")), "different graphs"),
        (replace(graph, samples=()), "samples"),
        (shifted(graph), "different inputs"),
        (reweighted(graph), "other attributes, types or values"),
    ):
        with pytest.raises(UsageError, match=message):
            twins(graph, other)


def shifted(graph: Graph) -> Graph:
    sample = graph.samples[0]
    array = sample.inputs[0].to_numpy() + np.float32(1)
    return replace(graph, samples=(replace(sample, inputs=(Tensor.from_numpy(array),)),))


def reweighted(graph: Graph) -> Graph:
    def change(node: Any) -> Any:
        if node.op != "constant" or len(node.type.shape) < 2:
            return node
        return replace(node, attrs={"value": Tensor.from_numpy(node.attrs["value"].to_numpy() * np.float32(1.01))})

    return replace(graph, body=replace(graph.body, nodes=tuple(map(change, graph.nodes))))


@pytest.mark.parametrize(("frontend", "name"), [("jax", "transformer_block"), ("torch", "attention")])
def test_captures_in_two_formats_and_compiled_are_of_one_graph(frontend: str, name: str) -> None:
    graphs = {}
    for dtype in ("float32", "float16", "bfloat16"):
        with mode(frontend, dtype):
            function, arguments = program(frontend, name, dtype)
            graphs[dtype] = from_json(exported(frontend, function, arguments, trace=True))
    for dtype in ("float16", "bfloat16"):
        # the inputs of float32 are not those of bfloat16, but round to them
        report = compare_against(graphs["float32"], graphs[dtype])
        assert report.ok
        assert report.pair is not None
        assert len(report.pair.nodes) > 3
    if frontend == "jax":
        with mode(frontend, "float32"):
            function, arguments = program(frontend, name, "float32")
            compiled = from_json(exported(frontend, function, arguments, compile=True))
        report = compare_against(graphs["float32"], compiled)
        assert report.ok
        assert "compiled" in report.pair.recorded[1]  # type: ignore[union-attr]


# ---- the command ----------------------------------------------------------------------------------------------------


def tlir(*arguments: str) -> Result:
    return CliRunner().invoke(group, list(arguments))


def test_two_files_of_one_graph_are_compared_with_each_other_too(tmp_path: Path) -> None:
    good, bad, other = (str(tmp_path / f"{name}.json") for name in ("good", "bad", "other"))
    write(recorded(model()), good)
    write(recorded(model(), model("subtract")), bad)
    write(recorded(narrow(model())), other)
    done = tlir("compare", good, other)
    assert done.exit_code == 0
    assert f"{good} against {other}: passed" in done.output
    assert "3 artifacts: 3 passed" in done.output
    # alone, and with a fault
    done = tlir("compare", good, "--against", bad)
    assert done.exit_code == 1
    assert done.output.count(": failed") == 1
    for text in (f"{bad}: 32 elements", f"suspect in {bad}", "recorded op-by-op by jax 0.10.2, and op-by-op"):
        assert text in done.output
    (file,) = json.loads(tlir("compare", "--json", good, "--against", bad).stdout)["files"]
    assert file["verdict"] == "bug"
    assert [each["artifact"] for each in file["against"]["blamed"]] == [bad]
    (suspect,) = [each["suspect"] for each in file["located"] if each["suspect"]]
    assert suspect["label"].endswith("add")
    assert suspect["local"]["worst"]
    assert tlir("compare", good, "--against", other, "--words").exit_code == 2
    assert tlir("compare", good, "--against", other, "--tolerance", "1e-9").exit_code == 1
    assert tlir("compare", "--html", str(tmp_path / "r.html"), good, "--against", other).exit_code == 0
    assert "What each node adds" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_two_files_of_two_graphs_are_compared_by_themselves(tmp_path: Path) -> None:
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    write(recorded(model()), first)
    second.write_text(dumps(recorded(model("subtract"))), encoding="utf-8")
    assert "2 artifacts: 2 passed" in tlir("compare", str(first), str(second)).output
    done = tlir("compare", str(first), "--against", str(second))
    assert done.exit_code == 2
    assert "different graphs" in done.output
