"""``tlir emit`` and ``tlir check --lowering``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tlir.cli.group import tlir
from tlir.kernel.parse import parse_program
from tlir.kernel.text import program_text
from tlir.passes.lower import lower
from tlir.schema import read

GOLDEN = Path(__file__).parents[1] / "golden"
SOFTMAX = GOLDEN / "jax" / "softmax.json"


def test_the_kernels_are_printed_as_text_that_is_read_back() -> None:
    result = CliRunner().invoke(tlir, ["emit", str(SOFTMAX), "--target", "kernel"])
    assert result.exit_code == 0
    program = lower(read(SOFTMAX).body)
    assert result.stdout == program_text(program)
    assert parse_program(result.stdout, program.constants) == program


def test_it_writes_to_a_file(tmp_path: Path) -> None:
    target = tmp_path / "softmax.kernels"
    result = CliRunner().invoke(tlir, ["emit", str(SOFTMAX), "-o", str(target)])
    assert result.exit_code == 0
    assert target.read_text().startswith("program {")


def test_the_json_document(tmp_path: Path) -> None:
    result = CliRunner().invoke(tlir, ["emit", str(SOFTMAX), "--json"])
    document = json.loads(result.stdout)
    assert (document["target"], document["kernels"], document["left"]) == ("kernel", 1, [])
    assert document["text"] == program_text(lower(read(SOFTMAX).body))


def test_a_missing_file_and_an_unknown_target(tmp_path: Path) -> None:
    runner = CliRunner()
    assert runner.invoke(tlir, ["emit", str(tmp_path / "none.json")]).exit_code == 2
    assert runner.invoke(tlir, ["emit", str(SOFTMAX), "--target", "fortran"]).exit_code == 2


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*/*.json")), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_lowering_of_every_golden_artifact_is_checked(path: Path) -> None:
    result = CliRunner().invoke(tlir, ["check", "--lowering", "--json", str(path)])
    assert result.exit_code == 0, result.output
    (report,) = json.loads(result.stdout)["files"]
    check = report["report"]["checks"][-1] if "report" in report else report["checks"][-1]
    assert check["name"] == "lowering"
    assert check["status"] == "passed"
