"""``tlir check``: whole reports, and every format."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from copy import deepcopy
from io import StringIO

from cli_artifacts import ill_typed, squares

from tlir.cli.console import Output
from tlir.cli.formats import Case, Remark, github, junit
from tlir.errors import Source


def test_a_good_artifact_reports_what_each_check_covered(tlir, write) -> None:
    path = write("good.json", squares())
    result = tlir("check", path)
    assert result.exit_code == 0
    assert result.stderr == ""
    lines = result.stdout.splitlines()
    assert lines[0] == f"{path}: passed"
    assert lines[1].split() == ["check", "result", "covered"]
    assert [line.split()[0] for line in lines[2:]] == ["structure", "types", "broadcasts", "constants"]
    assert "not applicable  no constants" in lines[-1]


def test_a_float32_multiply_declared_float64_is_rejected_with_the_cast_to_insert(tlir, write) -> None:
    result = tlir("check", write("bad.json", ill_typed()))
    assert result.exit_code == 1
    assert "error TL0301: node 1 multiply: declares float64[4]" in result.stdout
    assert "at model.py:12 in loss" in result.stdout
    assert "insert convert to float64 on operand 0" in result.stdout


def test_folders_files_and_severity(tlir, write, tmp_path) -> None:
    write("in/good.json", squares())
    write("in/deep/bad.json", ill_typed())
    write("in/deep/broken.json", '{"format": "tlir"')
    write("in/.hidden/broken.json", "{")
    write("in/notes.txt", "no artifact")
    result = tlir("check", str(tmp_path / "in"))
    assert result.exit_code == 3
    assert result.stdout.splitlines()[-1] == "3 artifacts: 1 passed, 1 failed, 1 invalid"
    assert "broken.json: invalid" in result.stdout
    assert result.stderr.startswith(f"error: TL0103: {tmp_path}/in/deep/broken.json: ")
    assert result.stderr.count("error:") == 1
    assert tlir("check", str(tmp_path / "in" / "deep" / "bad.json"), str(tmp_path / "in" / "good.json")).exit_code == 1


def test_the_same_file_is_checked_once(tlir, write, tmp_path) -> None:
    path = write("good.json", squares())
    assert tlir("check", path, path, str(tmp_path)).stdout.count("good.json") == 1


def test_quiet_shows_only_what_does_not_pass(tlir, write, tmp_path) -> None:
    write("good.json", squares())
    assert tlir("check", "-q", str(tmp_path)).stdout == "1 artifact: 1 passed\n"
    write("bad.json", ill_typed())
    output = tlir("check", "--quiet", str(tmp_path)).stdout
    assert "bad.json: failed" in output
    assert "good.json" not in output


def test_json_has_everything(tlir, write, tmp_path) -> None:
    for name, document in (("a", squares()), ("b", ill_typed()), ("c", "{")):
        write(f"{name}.json", document)
    result = tlir("check", "--json", str(tmp_path))
    document = json.loads(result.stdout)
    assert document["command"] == "check"
    assert document["ok"] is False
    assert document["summary"] == {"passed": 1, "failed": 1, "unsupported": 0, "invalid": 1, "fault": 0}
    good, bad, broken = document["files"]
    assert [check["status"] for check in good["checks"]] == ["passed", "passed", "not applicable", "not applicable"]
    finding = bad["checks"][1]["findings"][0]
    assert (finding["rule"], finding["pointer"], finding["source"]["line"]) == ("TL0301", "/nodes/1", 12)
    assert broken["error"]["code"] == "TL0103"
    assert tlir("check", "--format", "json", str(tmp_path)).stdout == result.stdout
    assert tlir("check", "--json", "--format", "sarif", str(tmp_path)).exit_code == 2


def test_junit_counts_failures_errors_and_skipped(tlir, write, tmp_path) -> None:
    for name, document in (("a", squares()), ("b", ill_typed()), ("c", "{")):
        write(f"{name}.json", document)
    root = ElementTree.fromstring(tlir("check", "--format", "junit", str(tmp_path)).stdout)
    counts = [[suite.get(key) for key in ("tests", "failures", "errors", "skipped")] for suite in root]
    assert counts == [["4", "0", "0", "2"], ["4", "1", "0", "2"], ["1", "0", "1", "0"]]
    failure = root[1].find("./testcase/failure")
    assert failure is not None
    assert failure.get("type") == "TL0301"
    assert "at model.py:12 in loss" in (failure.text or "")


HOSTILE = Remark(
    "error", "TL0301", '50%\n::error::planted ]]><&"\u0001\ufffe\ud800', None, "1 add", None, Source("a,b:c.py", 3)
)


def test_hostile_text_stays_text_in_junit_and_github() -> None:
    case = Case("a.json", "types", "failed", "", (HOSTILE,))
    failure = ElementTree.fromstring(junit("check", [case])).find(".//failure")
    assert failure is not None
    assert ']]><&"\ufffd\ufffd\ufffd' in (failure.text or "")
    (line,) = github([case]).splitlines()
    assert line.startswith("::error file=a%2Cb%3Ac.py,line=3,title=TL0301 types::a.json: node 1 add: 50%25%0A::error")


def test_sarif_leads_to_the_users_line(tlir, write) -> None:
    path = write("bad.json", ill_typed())
    log = json.loads(tlir("check", "--format", "sarif", path).stdout)
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    result = run["results"][0]
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "TL0301"
    place = result["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "model.py"}, "region": {"startLine": 12}}
    assert result["relatedLocations"][0]["physicalLocation"]["artifactLocation"]["uri"] == path


def test_github_annotates_the_users_line(tlir, write) -> None:
    path = write("bad.json", ill_typed())
    first, *_ = tlir("check", "--format", "github", path).stdout.splitlines()
    assert first.startswith(f"::error file=model.py,line=12,title=TL0301 types::{path}: node 1 multiply: declares")


def test_many_notes_are_cut_in_text_only(tlir, write) -> None:
    document = squares()
    for k in range(3, 33):
        node = deepcopy(document["nodes"][1])
        document["nodes"].append({**node, "id": k})
    path = write("notes.json", document)
    text = tlir("check", path).stdout
    assert text.count("note dead-node") == 10
    assert "… and 20 more notes of structure" in text
    assert tlir("check", "--json", path).stdout.count('"dead-node"') == 30


def test_control_characters_do_not_reach_the_terminal() -> None:
    stream = StringIO()
    output = Output(stream)
    output.line("\x1b[2Jgone", ("\x07", "error"))
    output.table(("a", "b"), [("\x1b]0;title\x07", "\n")])
    assert "\x1b" not in stream.getvalue()
    assert "\x07" not in stream.getvalue()
    assert len(stream.getvalue().splitlines()) == 3
