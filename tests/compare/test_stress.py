"""Random permitted executions, and the report of how far they spread."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bounds_graphs import Builder, softmax
from click.testing import CliRunner, Result

from tlir.backends import run
from tlir.cli.group import tlir as group
from tlir.compare.bounds import Freedoms, resolve
from tlir.compare.executions import execute, flushed, narrowed, widened
from tlir.compare.stress import StressReport, stress
from tlir.floatlib.format import Format
from tlir.ir.graph import Graph, Producer, Sample
from tlir.ir.tensor import Tensor
from tlir.ir.types import NAMED, TensorType
from tlir.passes.cast import cast
from tlir.schema import read

ROOT = Path(__file__).resolve().parents[2]
JAX, TORCH = Producer("jax", "0.10.2"), Producer("torch", "2.13.0")


def results(graph: Graph, inputs: list[Tensor], freedoms: Freedoms, seeds: range) -> set[bytes]:
    return {execute(graph.body, inputs, freedoms, seed)[0].words.tobytes() for seed in seeds}


def test_the_strict_policy_permits_only_the_reference() -> None:
    graph = read(ROOT / "tests" / "golden" / "torch" / "attention.json")
    inputs = list(graph.samples[0].inputs)
    (own,) = run(graph, inputs)
    assert results(graph, inputs, resolve("strict"), range(10)) == {own.words.tobytes()}


def test_orders_of_a_sum_differ_and_a_seed_repeats_one() -> None:
    build = Builder()
    graph = build.graph(build.reduce(build.input(TensorType((200,), NAMED["float32"])), "add", 0))
    inputs = [Tensor.from_numpy(np.random.default_rng(0).normal(size=200).astype(np.float32))]
    free = resolve("reorder")
    assert len(results(graph, inputs, free, range(30))) > 5
    assert results(graph, inputs, free, range(7, 8)) == results(graph, inputs, free, range(7, 8))


def test_a_product_is_fused_with_an_addition() -> None:
    build = Builder()
    x, y = (build.input(TensorType((64,), NAMED["float32"])) for _ in range(2))
    graph = build.graph(build.like("subtract", y, build.like("multiply", x, x)))
    rng = np.random.default_rng(1)
    a, b = (rng.normal(size=64).astype(np.float32) for _ in range(2))
    fused = Builder()
    p, q = (fused.input(TensorType((64,), NAMED["float32"])) for _ in range(2))
    (expected,) = run(
        fused.graph(fused.like("fma", fused.like("negate", p), p, q)), list(map(Tensor.from_numpy, (a, b)))
    )
    inputs = list(map(Tensor.from_numpy, (a, b)))
    (plain,) = run(graph, inputs)
    found = results(graph, inputs, resolve("reorder"), range(20))
    assert found == {expected.words.tobytes(), plain.words.tobytes()}


def test_functions_err_by_as_much_as_the_table_says_and_no_more() -> None:
    build = Builder()
    graph = build.graph(build.like("tanh", build.input(TensorType((500,), NAMED["float32"]))), producer=JAX)
    x = np.random.default_rng(2).normal(size=500).astype(np.float32)
    (own,) = run(graph, [Tensor.from_numpy(x)])
    steps = []
    for seed in range(20):
        (tensor,) = execute(graph.body, [Tensor.from_numpy(x)], resolve("frontend", JAX), seed)
        steps.append(np.abs(tensor.words.astype(np.int64) - own.words.astype(np.int64)).max())
    # 5.6 units of the exact value, of which correct rounding has taken half a one
    assert 0 < max(steps) <= 5


def test_narrow_results_are_kept_in_float32_until_they_are_returned() -> None:
    build = Builder()
    x, y = (build.input(TensorType((1,), NAMED["bfloat16"])) for _ in range(2))
    graph = build.graph(build.like("subtract", build.like("add", x, y), x))
    inputs = [narrowed(Tensor.from_numpy(np.array([v], np.float32)), NAMED["bfloat16"]) for v in (256.0, 0.75)]
    found = {
        float(widened(execute(graph.body, inputs, resolve("frontend"), seed)[0]).to_numpy()[0]) for seed in range(12)
    }
    assert found == {0.0, 0.75}


def test_subnormals_are_flushed_with_their_sign() -> None:
    tensor = flushed(Tensor.from_numpy(np.array([1e-40, -1e-40, 1e-38, 2.0, 0.0], np.float32)))
    assert [f"{word:08x}" for word in tensor.words] == ["00000000", "80000000", "00000000", "40000000", "00000000"]


def report_of(graph: Graph, inputs: list[Tensor], policy: str = "frontend", **options: object) -> StressReport:
    return stress(graph, inputs, resolve(policy, graph.producer), **options)  # type: ignore[arg-type]


def test_the_spread_lies_inside_the_enclosure_and_says_what_contributes() -> None:
    build = Builder()
    x = build.input(TensorType((4, 32), NAMED["float32"]))
    weights = softmax(build, x, 1)
    graph = build.graph(weights, build.like("negate", x), producer=JAX)
    inputs = [Tensor.from_numpy(np.random.default_rng(3).normal(size=(4, 32)).astype(np.float32))]
    report = report_of(graph, inputs, runs=40)
    assert report.ok
    first, second = (output.spread for output in report.outputs)
    assert 0 < first.typical <= first.ulps <= first.enclosure
    assert 0 < first.absolute <= first.enclosure_absolute
    assert first.tightness is not None
    assert 0 < first.tightness < 50
    assert (second.ulps, second.enclosure, second.tightness) == (0.0, 0.0, None)
    alone = {node.node.split()[1]: node.contribution for node in report.nodes}
    assert alone["exponential"] is not None
    assert alone["exponential"] > 1
    assert alone["negate"] is None  # every execution gives the reference's word


def test_an_overflow_that_only_some_executions_meet_is_counted() -> None:
    build = Builder()
    graph = build.graph(build.reduce(build.input(TensorType((4,), NAMED["float16"])), "add", 0))
    values = np.array([60000.0, -60000.0, 60000.0, -60000.0], np.float16)
    report = report_of(graph, [Tensor.from_numpy(values)], "reorder", runs=30)
    assert report.outputs[0].spread.special == 1
    assert report.ok


# ---- the command ----------------------------------------------------------------------------------------------------


def tlir(*arguments: str) -> Result:
    return CliRunner().invoke(group, list(arguments))


LAYER_NORM = str(ROOT / "tests" / "golden" / "torch" / "layer_norm.json")


def test_the_command_shows_outputs_and_nodes() -> None:
    done = tlir("stress", LAYER_NORM, "--runs", "10")
    assert done.exit_code == 0
    assert "10 executions from seed 0" in done.output
    assert "policy frontend: any order, fused multiply-add" in done.output
    assert "alone, at outputs" in done.output
    everything = tlir("stress", LAYER_NORM, "--runs", "2", "--all", "--no-contributions").output
    assert "28 fma" in everything
    assert len(everything.splitlines()) > 25


def test_its_json_is_the_same_for_the_same_seed() -> None:
    arguments = ("stress", LAYER_NORM, "--runs", "5", "--seed", "3", "--json", "--policy", "reorder")
    first, second = (json.loads(tlir(*arguments).stdout) for _ in range(2))
    assert first == second
    assert (first["command"], first["ok"], first["runs"], first["seed"]) == ("stress", True, 5, 3)
    assert first["policy"]["name"] == "reorder"
    assert float(first["outputs"][0]["spread"]["enclosure_ulps"]) > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--policy", "lax"), "there is no policy 'lax'"),
        (("--runs", "0"), "0 is not in the range"),
        (("--sample", "4"), "there is no sample 4"),
        (("--accuracy", "nowhere.toml"), "the accuracy table nowhere.toml cannot be read"),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...], message: str) -> None:
    done = tlir("stress", LAYER_NORM, *arguments)
    assert done.exit_code in (2, 3)
    assert message in done.output


SECTION = "[[table]]\nname = 'x'\nfrontend = 'jax'\nversions = ['0']\nflushes_subnormals = true\ndefault = 1.0\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it has no 'table'"),
        ("table = 3", "table is 3, not a list"),
        ("table = [3]", "table is 3, not a dict"),
        (SECTION.replace("frontend = 'jax'\n", ""), "it has no 'frontend'"),
        (SECTION.replace("['0']", "[0]"), "versions is 0, not a str"),
        (SECTION.replace("true", "1"), "flushes_subnormals is 1, not a bool"),
        (SECTION.replace("1.0", "nan"), "an error in ulps is a number that is not negative, not nan"),
        (SECTION.replace("1.0", "'a'"), "could not convert"),
        (SECTION + "float32 = 3", "float32 is 3, not a dict"),
        (SECTION + "[table.float32]\ntanh = -1.0\n", "an error in ulps is a number that is not negative, not -1.0"),
        (SECTION + "[table.float32]\ntanh = []\n", "index out of range"),
        (SECTION + "[table.float32]\ntanh = [1, 2, 3]\n", "tanh is [1, 2, 3], neither a number nor [ulps, floor]"),
        (SECTION + "[table.float32]\ntanh = true\n", "tanh is True, neither a number"),
        (SECTION + "[table.float32]\ntahn = 1.0\n", "there is no function 'tahn'"),
        (SECTION + "[table.float32]\n[table.floot16]\n", "a section has no table 'floot16'"),
        (SECTION + "defalt = 1.0\n", "a section has no field 'defalt'"),
        (SECTION + f"[table.float32]\ntanh = 1{'0' * 400}\n", "too large"),
        ("\0", "cannot be read"),
    ],
)
def test_a_wrong_table_of_accuracies_is_said_to_be_wrong(tmp_path: Path, text: str, message: str) -> None:
    text += "[table.float64]\n" if "table." in text else ""
    text += "[table.float32]\n[table.float64]\n" if text.startswith("[[") and "float32" not in text else ""
    (tmp_path / "table.toml").write_text(text)
    done = tlir("stress", LAYER_NORM, "--runs", "1", "--accuracy", str(tmp_path / "table.toml"))
    assert done.exit_code == 3
    assert message in " ".join(done.output.split())


def test_a_graph_without_inputs_and_one_without_samples(tmp_path: Path) -> None:
    from tlir.schema import dumps

    build = Builder()
    constant = build.graph(build.like("exponential", build.constant(np.float32([1.0, 2.0]))))
    assert report_of(constant, [], runs=2).ok
    graph = replace(read(ROOT / "tests" / "golden" / "torch" / "layer_norm.json"), samples=())
    path = tmp_path / "bare.json"
    path.write_text(dumps(graph), encoding="utf-8")
    done = tlir("stress", str(path))
    assert done.exit_code == 2
    assert "the artifact has no sample" in done.output


@pytest.mark.parametrize("to", ["float128", Format(15, 63), Format(17, 282)], ids=str)
def test_formats_of_several_limbs(to: str | Format) -> None:
    build = Builder()
    x, y, z = (build.input(TensorType((2, 3), NAMED["float32"])) for _ in range(3))
    sums = build.like("add", build.like("multiply", x, y), z)
    quotients = build.like("divide", build.like("exponential", sums), build.like("sqrt", build.like("abs", y)))
    graph = build.graph(build.like("maximum", build.reduce(quotients, "add", 1), build.reduce(sums, "add", 1)))
    rng = np.random.default_rng(5)
    inputs = [Tensor.from_numpy(rng.normal(size=(2, 3)).astype(np.float32)) for _ in range(3)]
    wide = cast(replace(graph, samples=(Sample(tuple(inputs), tuple(run(graph, inputs))),)), to)[0]
    report = stress(wide, list(wide.samples[0].inputs), resolve("loose"), runs=3)
    assert report.ok
    assert [node.spread.outside for node in report.nodes] == [0] * len(report.nodes)
