"""The verdicts, the options and the views of `tlir compare --tolerance auto`."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bounds_graphs import Builder
from click.testing import CliRunner, Result

from tlir.backends import run
from tlir.cli.group import tlir as group
from tlir.compare import compare
from tlir.compare.auto import VERDICTS, AutoReport, compare_auto
from tlir.errors import UsageError
from tlir.ir.graph import Graph, Producer, Sample
from tlir.ir.tensor import Tensor
from tlir.ir.types import NAMED, TensorType
from tlir.schema import dumps, read

ROOT = Path(__file__).resolve().parents[2]
TORCH = Producer("torch", "2.13.0")
SUM = np.array([0.1, 0.7, -0.3, 0.9, 0.2], np.float32)


def total(recorded: float) -> Graph:
    """The sum of five numbers, and what is said to have been recorded."""
    build = Builder()
    graph = build.graph(build.reduce(build.input(TensorType((5,), NAMED["float32"])), "add", 0), producer=TORCH)
    outputs = (Tensor.from_numpy(np.array(recorded, np.float32)),)
    return replace(graph, samples=(Sample((Tensor.from_numpy(SUM),), outputs),))


def written() -> np.float32:
    return np.add.accumulate(SUM)[-1]


def test_verdicts_of_a_sum() -> None:
    own = written()
    assert compare_auto(total(own)).verdict == "identical"
    next_one = np.nextafter(own, np.float32(9))
    assert compare_auto(total(next_one)).verdict == "reordering"
    assert compare_auto(total(next_one), policy="strict").verdict == "bug"
    assert compare_auto(total(own + np.float32(1e-5))).verdict == "bug"
    assert compare_auto(total(np.nan)).verdict == "bug"
    assert compare_auto(total(np.inf)).verdict == "bug"


def test_a_function_that_is_rounded_otherwise_is_rounding() -> None:
    build = Builder()
    x = build.input(TensorType((1,), NAMED["float32"]))
    graph = build.graph(build.like("logistic", x), producer=TORCH)
    array = np.array([0.3], np.float32)
    (own,) = run(graph, [Tensor.from_numpy(array)])
    other = np.nextafter(own.to_numpy(), np.float32(9))
    given = replace(graph, samples=(Sample((Tensor.from_numpy(array),), (Tensor.from_numpy(other),)),))
    assert compare_auto(given).verdict == "rounding"
    assert compare_auto(given, policy="reorder").verdict == "bug"


def test_the_tolerances_needed_and_justified() -> None:
    own = written()
    next_one = np.nextafter(own, np.float32(9))
    (output,) = compare_auto(total(next_one)).outputs
    parts = output.to_json()
    assert float(parts["needed"]) == float(next_one) - float(own)
    # four additions of partial sums of at most 1.9
    assert float(parts["needed"]) <= float(parts["justified"]) <= 4 * 2.0**-24 * 2.2 * 2
    assert parts["verdicts"] == {"reordering": 1}
    far = compare_auto(total(2.5)).outputs[0].to_json()
    assert far["bounds"][0]["index"] == []
    low, high = float(far["bounds"][0]["low"][0]), float(far["bounds"][0]["high"][0])
    assert low <= own <= high
    assert high - low <= 2 * float(far["justified"])


def test_what_reproduces_an_output_is_said_and_passes() -> None:
    next_one = np.nextafter(written(), np.float32(9))
    report = compare_auto(total(next_one), reproduce=lambda graph, sample, freedoms: {0: "sequential, backwards"})
    assert report.verdict == "reproduced"
    assert report.ok
    assert report.outputs[0].to_json()["choice"] == "sequential, backwards"


def test_the_library_function_takes_the_tolerance_auto() -> None:
    report = compare(total(2.5), tolerance="auto", policy="loose")
    assert isinstance(report, AutoReport)
    assert not report.ok
    assert report.outputs[0].failing == 1
    assert VERDICTS[-1] == report.verdict


@pytest.mark.parametrize(
    "options",
    [
        {"policy": "strict"},
        {"table": Path("x.toml")},
        {"tolerance": "auto", "words": True},
        {"tolerance": "auto", "policy": "lax"},
        {"tolerance": "auto", "ulps": -1},
        {"tolerance": "auto", "nan_payload": True},
    ],
)
def test_options_that_do_not_fit_together(options: dict) -> None:
    with pytest.raises(UsageError):
        compare(total(1.6), **options)


def test_integers_and_booleans_are_sure_or_open() -> None:
    build = Builder()
    x = build.input(TensorType((5,), NAMED["float32"]))
    sum_ = build.reduce(x, "add", 0)
    scaled = build.like("multiply", sum_, build.filled(sum_, 10.0))
    whole = build.convert(scaled, "int32")
    graph = build.graph(whole, build.compare(sum_, build.filled(sum_, 1.5), "GT"), producer=TORCH)
    own = [tensor.to_numpy() for tensor in run(graph, [Tensor.from_numpy(SUM)])]

    def verdicts(number: int, truth: bool) -> list[str]:
        outputs = tuple(map(Tensor.from_numpy, (np.array(number, np.int32), np.array(truth))))
        report = compare_auto(replace(graph, samples=(Sample((Tensor.from_numpy(SUM),), outputs),)))
        return [output.verdict for output in report.outputs]  # type: ignore[attr-defined]

    # the sum is close to 1.6, and ten times it close to 16 on either side
    assert int(own[0]) in (15, 16)
    assert verdicts(31 - int(own[0]), True) == ["undecided", "identical"]
    assert verdicts(int(own[0]), False) == ["identical", "bug"]
    assert verdicts(17, True) == ["bug", "identical"]


# ---- the command ----------------------------------------------------------------------------------------------------


def tlir(*arguments: str) -> Result:
    return CliRunner().invoke(group, list(arguments))


def test_the_command_shows_verdicts_and_where_a_bug_lies_outside(tmp_path: Path) -> None:
    path = tmp_path / "sum.json"
    path.write_text(dumps(total(2.5)), encoding="utf-8")
    done = tlir("compare", "--tolerance", "auto", str(path))
    assert done.exit_code == 1
    for text in ("policy frontend: any order", "torch 2.13", "1 bug", "tolerance needed", "permitted from"):
        assert text in done.output
    path.write_text(dumps(total(np.nextafter(written(), np.float32(9)))), encoding="utf-8")
    done = tlir("compare", "--tolerance", "auto", "--policy", "reorder", str(path))
    assert done.exit_code == 0
    assert "1 reordering" in done.output
    assert tlir("compare", "--tolerance", "auto", "--policy", "strict", "--format", "junit", str(path)).exit_code == 1


def test_a_golden_artifact_passes_and_the_planted_fault_does_not() -> None:
    good = ROOT / "tests" / "golden" / "torch" / "softmax.json"
    assert tlir("compare", "-q", "--tolerance", "auto", str(good)).exit_code == 0
    done = tlir("compare", "--tolerance", "auto", str(ROOT / "examples" / "artifacts" / "wrong_output.json"))
    assert done.exit_code == 1
    assert "7 identical, 1 bug" in done.output


def test_json_has_the_verdict_and_the_policy() -> None:
    path = ROOT / "tests" / "golden" / "jax" / "attention.json"
    document = json.loads(tlir("compare", "--json", "--tolerance", "auto", str(path)).stdout)
    (file,) = document["files"]
    assert file["verdict"] == "rounding"
    assert file["policy"]["name"] == "frontend"
    assert sum(file["outputs"][0]["verdicts"].values()) == 40
    assert read(path).producer is not None


def test_wrong_usage_of_the_command() -> None:
    path = str(ROOT / "tests" / "golden" / "jax" / "attention.json")
    auto = ("--tolerance", "auto")
    for arguments in (("--policy", "strict"), (*auto, "--words"), (*auto, "--policy", "x")):
        assert tlir("compare", *arguments, path).exit_code == 2


def keys(value: object) -> set[str]:
    if isinstance(value, dict):
        return set(value) | {key for child in value.values() for key in keys(child)}
    return {key for child in value for key in keys(child)} if isinstance(value, list) else set()


def test_every_field_is_documented(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "json-output.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"`([A-Za-z_]+)`", page))
    path = tmp_path / "sum.json"
    path.write_text(dumps(total(2.5)), encoding="utf-8")
    plain = keys(json.loads(tlir("compare", "--json", str(path)).stdout))
    for arguments in (("compare", "--tolerance", "auto"), ("stress", "--runs", "2")):
        found = keys(json.loads(tlir(*arguments, "--json", str(path)).stdout)) - plain
        assert found
        assert found <= documented, found - documented
