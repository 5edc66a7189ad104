"""What a program that calls tlir gets when something goes wrong: JSON in every case, and exit codes where standard
output is full, closed or not read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from cli_artifacts import ROOT, identity, squares

from tlir.cli import COMMANDS

TARGETS = {"diff": ["{}", "{}"], "upgrade": ["{}", "-o", "out.json"], "reorder": ["{}", "--fma", "-o", "out.json"]}


def arguments(command: str, path: str) -> list[str]:
    return [part.format(path) for part in TARGETS.get(command, ["{}"])]


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in ("ops", "cast")])
@pytest.mark.parametrize("case", ["absent", "broken", "option"])
def test_under_json_every_error_is_a_document(tlir, write, tmp_path, command: str, case: str) -> None:
    path = write("broken.json", '{"format":') if case == "broken" else str(tmp_path / "absent.json")
    result = tlir(command, *arguments(command, path), "--json", *(["--no-such-option"] if case == "option" else []))
    document = json.loads(result.stdout)
    assert result.exit_code == (3 if case == "broken" else 2)
    assert (document["command"], document["ok"]) == (command, False) if "command" in document else command == "info"
    error = document["error"] if "error" in document else document["files"][0]["error"]
    assert error["code"] == {"absent": "TL0902", "broken": "TL0103", "option": "TL0901"}[case]
    assert result.stderr


@pytest.mark.parametrize(
    ("parts", "code"),
    [
        (["run", "{}", "--device", "gpu", "--json"], 4),
        (["run", "{}", "--sample", "7", "--json"], 2),
        (["run", "{}", "--sample", "x", "--json"], 2),
        (["check", "--json"], 2),
        (["check", "--format", "json", "no-such-file"], 2),
        (["compare", "--format=json", "no-such-file"], 2),
        (["ops", "nosuch", "--json"], 2),
        (["nosuch", "--json"], 2),
    ],
)
def test_the_document_says_what_the_message_says(tlir, write, parts: list[str], code: int) -> None:
    path = write("good.json", squares())
    result = tlir(*(part.format(path) for part in parts))
    document = json.loads(result.stdout)
    assert result.exit_code == code
    assert document["command"] == (parts[0] if parts[0] in COMMANDS else None)
    assert document["ok"] is False
    assert document["error"]["message"] in result.stderr


def test_without_json_standard_output_is_empty_on_error(tlir, tmp_path) -> None:
    result = tlir("run", str(tmp_path / "absent.json"))
    assert (result.exit_code, result.stdout) == (2, "")


def shell(line: str, *paths: str) -> subprocess.CompletedProcess[str]:
    """Runs a line of shell in which "$0" is tlir and "$1", ... the paths."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHON": sys.executable}
    script = 'tlir() { "$PYTHON" -m tlir.cli "$@"; }; ' + line
    command = ["bash", "-c", script, "bash", *paths]
    return subprocess.run(command, capture_output=True, encoding="utf-8", env=environment, timeout=60)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("line", ["run", "run --json", "check", "compare --json", "show", "upgrade", "--help", "ops"])
def test_a_full_disk_behind_standard_output(write, line: str) -> None:
    path = "" if line in ("--help", "ops") else '"$1"'
    done = shell(f"tlir {line} {path} > /dev/full", write("good.json", squares()))
    assert done.stderr == "error: TL0109: standard output cannot be written: No space left on device\n"
    assert done.returncode == 2


@pytest.mark.parametrize("closed", [">&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_closed_streams_change_no_verdict(write, closed: str) -> None:
    good, planted = write("good.json", squares()), write("planted.json", squares(recorded=31))
    line = (
        f'tlir run "$1" {closed}; echo $?; tlir compare "$1" {closed}; echo $?; tlir compare "$2" {closed}; echo $?; '
    )
    done = shell(line + f"tlir --help {closed}; echo $?", good, planted)
    assert done.stdout.split() == ["0", "0", "1", "0"]
    assert done.stderr == ""


@pytest.mark.parametrize("line", ["--help", "run --help", 'run "$1"', 'show --json "$1"'])
def test_a_reader_that_has_gone_is_not_a_verdict(write, line: str) -> None:
    done = shell(f"(tlir {line}; echo $? >&2) | true", write("good.json", squares()))
    assert done.stderr == "141\n"


def test_a_graph_without_nodes_is_shown(tlir, write) -> None:
    document = {"format": "tlir", "version": 2, "name": "", "input_ids": [], "output_ids": [], "nodes": []}
    result = tlir("show", "--table", write("empty.json", document))
    assert result.exit_code == 0
    assert result.stdout.split() == ["id", "operation", "operands", "attributes", "type", "name", "source"]


def test_a_name_of_two_inputs_says_none_of_them(tlir, write) -> None:
    import numpy as np

    import tlir as library

    document = identity(np.float32(1), np.float32(2))
    for node in document["nodes"]:
        if node["op"] == "input":
            node["name"] = "x"
    path = write("twice.json", document)
    result = tlir("run", path, "--input", "x=5")
    assert result.exit_code == 2
    assert "2 inputs are named 'x'" in result.stderr
    with pytest.raises(library.UsageError, match="2 inputs are named 'x'"):
        library.load(path).run({"x": np.float32(5)})
    assert [float(value) for value in library.load(path).run([np.float32(3), np.float32(4)])] == [3, 4]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("model.py", "'model.py' is neither JSON nor the name of a .npy or .json file"),
        ("self", "an artifact was given"),
        ("{}", "an object without dtype and shape was given"),
        ('{"dtype": 3, "shape": 4}', "an object without dtype and shape was given"),
    ],
)
def test_what_cannot_be_an_input_is_named(tlir, write, value: str, message: str) -> None:
    import numpy as np

    path = write("id.json", identity(np.float32([1])))
    result = tlir("run", path, "--input", f"a={path if value == 'self' else value}")
    assert result.exit_code == 2
    assert message in result.stderr


ENCODINGS = {
    "ascii": {"PYTHONIOENCODING": "ascii"},
    "latin-1": {"PYTHONIOENCODING": "latin-1"},
    "utf-16": {"PYTHONIOENCODING": "utf-16"},
    "posix": {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
}


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_what_programs_read_is_utf_8_whatever_the_locale(write, encoding: str) -> None:
    document = squares() | {"name": "ünïcode 漢字"}
    document["nodes"][0]["name"] = "données 🎉"
    path = write("named.json", document)
    lines = {
        "upgrade": json.loads,
        "show --json": json.loads,
        "run --json": json.loads,
        "check --json": json.loads,
        "check --format sarif": json.loads,
        "check --format junit": ElementTree.fromstring,
        "show --svg": ElementTree.fromstring,
        "info --json": json.loads,
    }
    script = "".join(f'tlir {line} "$1"; printf "\\0"; ' for line in lines)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHON": sys.executable, **ENCODINGS[encoding]}
    command = ["bash", "-c", 'tlir() { "$PYTHON" -m tlir.cli "$@"; }; ' + script, "bash", path]
    done = subprocess.run(command, capture_output=True, env=environment, timeout=60)
    assert done.stderr == b""
    texts = dict(zip(lines, done.stdout.decode("utf-8").split("\0"), strict=False))
    for line, parse in lines.items():
        parse(texts[line])
    assert json.loads(texts["upgrade"])["name"] == json.loads(texts["show --json"])["name"] == "ünïcode 漢字"
    assert "données 🎉" in texts["show --svg"]


def test_control_characters_in_the_name_of_a_file(tlir, tmp_path) -> None:
    absent = tlir("check", str(tmp_path / "a\n\x1b[31m.json"))
    assert absent.exit_code == 2
    assert "\x1b" not in absent.stderr
    assert "a\\n\\x1b[31m.json: there is no such file" in absent.stderr
    broken = tmp_path / "b\r\x1b[2K.json"
    broken.write_text("{")
    result = tlir("check", str(broken))
    assert result.exit_code == 3
    assert not {"\x1b", "\r"} & set(result.stderr + result.stdout)


@pytest.mark.parametrize(
    "line",
    ["check", "run", "run PATH --output", "upgrade PATH -o", "show PATH -o", "diff PATH", "info", "compare PATH"],
)
def test_an_empty_name_is_not_an_absent_one(tlir, write, line: str) -> None:
    path = write("good.json", squares())
    result = tlir(*(path if part == "PATH" else part for part in line.split()), "")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr
