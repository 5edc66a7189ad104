"""``tlir compare``: verdicts, tables, formats and exit codes."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from cli_artifacts import identity, ill_typed, squares, tensor


def test_the_sum_of_squares_is_thirty(tlir, write) -> None:
    path = write("good.json", squares())
    result = tlir("compare", path)
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        f"{path}: passed",
        "  recorded op-by-op by jax 1.2; passes if |got - recorded| <= 2e-5",
        "  output  type       equal words  max ulps  max abs diff  source",
        "  output  float32[]       1 of 1         0  0             model.py:12",
    ]


def test_a_planted_difference_fails_and_is_shown(tlir, write) -> None:
    result = tlir("compare", write("planted.json", squares(recorded=30.001)))
    assert result.exit_code == 1
    assert "output: 1 of 1 elements do not pass" in result.stdout
    row = result.stdout.splitlines()[-1].split()
    assert row == ["(scalar)", "30.001", "30.0", "41f0020c", "41f00000", "0.0009995", "524"]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ([], 1),
        (["--tolerance", "1e-3"], 0),
        (["--tolerance", "9e-4"], 1),
        (["--rtol", "1e-4"], 0),
        (["--ulps", "524"], 0),
        (["--ulps", "523"], 1),
        (["--ulps", "1", "--tolerance", "1e-3"], 0),
        (["--words"], 1),
        (["--words", "--tolerance", "1"], 2),
        (["--nan-payload"], 2),
        (["--tolerance", "-1"], 2),
        (["--tolerance", "lots"], 2),
        (["--ulps", "x"], 2),
        (["--device", "gpu"], 4),
        (["--device", "abacus"], 2),
    ],
)
def test_options_and_exit_codes(tlir, write, options: list[str], code: int) -> None:
    assert tlir("compare", write("planted.json", squares(recorded=30.001)), *options).exit_code == code


def test_wrong_options_are_found_before_any_file_is_read(tlir, write) -> None:
    result = tlir("compare", write("broken.json", "{"), "--words", "--ulps", "1")
    assert result.exit_code == 2
    assert "TL0901" in result.stderr


def test_many_files_end_with_a_summary_and_the_most_severe_code(tlir, write, tmp_path) -> None:
    write("a.json", squares())
    assert tlir("compare", str(tmp_path)).exit_code == 0
    write("b.json", squares(recorded=31))
    assert tlir("compare", str(tmp_path)).exit_code == 1
    write("c.json", ill_typed())
    write("d.json", {**squares(), "samples": []})
    result = tlir("compare", str(tmp_path))
    assert result.exit_code == 3
    assert result.stdout.splitlines()[-1] == "4 artifacts: 1 passed, 1 failed, 2 invalid"
    assert "TL0301" in result.stderr
    assert "TL0701" in result.stderr
    quiet = tlir("compare", "--quiet", str(tmp_path)).stdout
    assert "a.json" not in quiet
    assert "b.json: failed" in quiet


def test_empty_outputs_pass_and_say_that_nothing_was_compared(tlir, write) -> None:
    result = tlir("compare", write("empty.json", identity(np.zeros((0, 3), np.float32))))
    assert result.exit_code == 0
    assert "0 of 0" in result.stdout


def test_json_of_every_sample(tlir, write) -> None:
    document = squares()
    document["version"] = 2
    bad = {"inputs": document["samples"][0]["inputs"], "outputs": [tensor(np.float32(29))]}
    document["samples"].append(bad)
    path = write("two.json", document)
    result = tlir("compare", "--json", path)
    assert result.exit_code == 1
    (file,) = json.loads(result.stdout)["files"]
    assert [output["ok"] for output in file["outputs"]] == [True, False]
    assert file["outputs"][1]["worst"][0]["ulps"] == 1 << 19
    assert file["recorded"] == {"frontend": "jax", "version": "1.2", "outputs": "op-by-op"}
    assert "output of sample 1" not in tlir("compare", path).stdout.splitlines()[0]
    assert "1 of 1 elements of sample 1 do not pass" in tlir("compare", path).stdout


def test_junit_and_github_name_the_output(tlir, write, tmp_path) -> None:
    write("planted.json", squares(recorded=31))
    write("unread.json", "{")
    root = ElementTree.fromstring(tlir("compare", "--format", "junit", str(tmp_path)).stdout)
    assert [[suite.get(key) for key in ("tests", "failures", "errors")] for suite in root] == [
        ["1", "1", "0"],
        ["1", "0", "1"],
    ]
    lines = tlir("compare", "--format", "github", str(tmp_path)).stdout.splitlines()
    assert lines[0].startswith("::error file=model.py,line=12,title=mismatch output::")
    assert "recorded 31.0, got 30.0" in lines[0]


def test_infinities_nan_and_zeros(tlir, write) -> None:
    document = identity(np.float32([np.inf, np.nan, 0.0]))
    document["samples"][0]["outputs"][0]["words"] = "7f800000 ffc00001 80000000"
    path = write("special.json", document)
    assert tlir("compare", path, "--tolerance", "0").exit_code == 0
    words = tlir("compare", path, "--words")
    assert words.exit_code == 1
    assert "1 of 3 elements do not pass" in words.stdout
    assert "2 of 3 elements do not pass" in tlir("compare", path, "--words", "--nan-payload").stdout
    document["samples"][0]["outputs"][0]["words"] = "ff800000 7fc00000 00000000"
    failed = tlir("compare", write("sign.json", document), "--tolerance", "1e40")
    assert failed.exit_code == 1
    assert "1 of them a NaN or infinity that does not match" in failed.stdout
