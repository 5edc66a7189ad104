"""Files and folders that are in the way: links, devices, byte order marks, names that say nothing, no permission."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from cli_artifacts import ROOT, squares

WRITING = {
    "run": (["run", "{artifact}", "--output", "{to}"], "out.json"),
    "upgrade": (["upgrade", "{artifact}", "-o", "{to}"], "out.json"),
    "reorder": (["reorder", "{artifact}", "--order", "pairwise", "-o", "{to}"], "out.json"),
    "show": (["show", "{artifact}", "-o", "{to}"], "out.svg"),
}
"""The commands that write a file, and a name of one."""


def arguments(command: str, artifact: str, to: str | Path) -> list[str]:
    return [part.format(artifact=artifact, to=to) for part in WRITING[command][0]]


@pytest.fixture(params=list(WRITING))
def writing(request) -> str:
    return request.param


def test_a_link_is_followed(tlir, write, tmp_path, writing: str) -> None:
    artifact = write("a.json", squares())
    (tmp_path / "real").mkdir()
    real, link = tmp_path / "real" / "kept", tmp_path / WRITING[writing][1]
    link.symlink_to(real)
    for _ in range(2):
        assert tlir(*arguments(writing, artifact, link)).exit_code == 0
        assert link.is_symlink()
        assert real.stat().st_size > 100
    assert os.listdir(real.parent) == ["kept"]


def test_in_place_follows_a_link(tlir, write, tmp_path) -> None:
    real, link = Path(write("real.json", squares())), tmp_path / "link.json"
    link.symlink_to("real.json")
    assert tlir("upgrade", "--in-place", str(link)).exit_code == 0
    assert link.is_symlink()
    assert json.loads(real.read_text(encoding="utf-8"))["version"] == 3


def test_permissions_are_kept(tlir, write, tmp_path, writing: str) -> None:
    to = tmp_path / WRITING[writing][1]
    to.write_text("old")
    to.chmod(0o600)
    assert tlir(*arguments(writing, write("a.json", squares()), to)).exit_code == 0
    assert stat.S_IMODE(to.stat().st_mode) == 0o600
    assert to.read_text() != "old"


def test_a_pipe_is_written_and_stays(tlir, write, tmp_path, writing: str) -> None:
    to, got = tmp_path / WRITING[writing][1], []
    os.mkfifo(to)
    reader = threading.Thread(target=lambda: got.append(to.read_bytes()), daemon=True)
    reader.start()
    assert tlir(*arguments(writing, write("a.json", squares()), to)).exit_code == 0
    reader.join(10)
    assert len(got[0]) > 100
    assert stat.S_ISFIFO(to.stat().st_mode)


@pytest.mark.parametrize("place", ["folder", "missing", "loop"])
def test_what_cannot_be_written_is_wrong_usage(tlir, write, tmp_path, writing: str, place: str) -> None:
    artifact, name = write("a.json", squares()), WRITING[writing][1]
    to = tmp_path / name
    if place == "folder":
        to.mkdir()
    elif place == "missing":
        to = tmp_path / "missing" / name
    else:
        to.symlink_to(to)
    before = sorted(os.listdir(tmp_path))
    result = tlir(*arguments(writing, artifact, to))
    assert result.exit_code == 2
    assert result.stderr.startswith(("error: TL0109", "error: TL0902"))
    assert sorted(os.listdir(tmp_path)) == before


UNPRIVILEGED = """
import importlib, os, pkgutil, sys
import difflib, tlir.cli.group
from click.testing import CliRunner
for module in pkgutil.walk_packages(tlir.__path__, "tlir."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
def run(line):
    return CliRunner().invoke(tlir.cli.group.tlir, line.split(), prog_name="tlir")
for line in ("run a.json", "compare a.json", "check a.json", "upgrade a.json"):
    assert run(line).exit_code == 0
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
for line in sys.stdin.read().splitlines():
    result = run(line)
    print(result.exit_code, result.stderr.splitlines()[0] if result.stderr else result.exception or "")
"""
"""Runs lines of arguments as a user without rights, all modules loaded before."""


def test_without_permission(write, tmp_path) -> None:
    write("a.json", squares())
    read_only = Path(write("locked/a.json", squares()))
    write("fixed.json", squares())
    write("part/open/a.json", squares())
    write("part/shut/a.json", squares())
    secret = Path(write("secret.json", squares()))
    modes = {read_only.parent: 0o555, tmp_path / "fixed.json": 0o444, tmp_path / "part" / "shut": 0, secret: 0}
    parents = [folder for folder in tmp_path.parents if folder.stat().st_mode & 0o005 != 0o005]
    was = {folder: folder.stat().st_mode for folder in parents}
    tmp_path.chmod(0o777)
    for folder in parents:
        folder.chmod(0o755)
    for path, mode in modes.items():
        path.chmod(mode)
    lines = {
        "run a.json --output locked/o.json": (
            2,
            "TL0109: locked/o.json: the file cannot be written: Permission denied",
        ),
        "upgrade locked/a.json --in-place": (2, "TL0109: locked/a.json: the file cannot be written: Permission denied"),
        "upgrade fixed.json --in-place": (2, "TL0109: fixed.json: the file cannot be written: Permission denied"),
        "upgrade fixed.json -o new.json": (0, ""),
        "check secret.json": (3, "TL0101: secret.json: the file cannot be read: Permission denied"),
        "check part": (2, "TL0902: part/shut: the folder cannot be read: Permission denied"),
        "check part/open": (0, ""),
        "check part/shut/a.json": (2, "TL0902: part/shut/a.json: cannot be reached: Permission denied"),
        "compare locked": (0, ""),
    }
    try:
        done = subprocess.run(
            [sys.executable, "-c", UNPRIVILEGED],
            input="\n".join(lines),
            capture_output=True,
            encoding="utf-8",
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            timeout=60,
        )
    finally:
        for path in modes:
            path.chmod(0o755)
        for folder, mode in was.items():
            folder.chmod(mode)
    assert done.stderr == ""
    found = dict(zip(lines, done.stdout.splitlines(), strict=True))
    assert found == {line: f"{code} {text and 'error: '}{text}" for line, (code, text) in lines.items()}


def test_a_link_to_nothing_in_a_folder_does_not_pass(tlir, write, tmp_path) -> None:
    write("all/good.json", squares())
    (tmp_path / "all" / "lost.json").symlink_to("nowhere")
    (tmp_path / "all" / "self").symlink_to(".")
    for command in ("check", "compare"):
        result = tlir(command, "--json", str(tmp_path / "all"))
        assert result.exit_code == 3
        assert json.loads(result.stdout)["summary"] == {
            "passed": 1,
            "failed": 0,
            "unsupported": 0,
            "invalid": 1,
            "fault": 0,
        }
    result = tlir("check", str(tmp_path / "all" / "lost.json"))
    assert (result.exit_code, "is a symbolic link to nowhere" in result.stderr) == (2, True)


@pytest.mark.parametrize("command", ["info {}", "upgrade {} -o {}.new", "upgrade --in-place {}", "show {}", "run {}"])
def test_a_byte_order_mark(tlir, tmp_path, command: str) -> None:
    path = tmp_path / "bom.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(squares()).encode())
    assert tlir(*command.replace("{}", str(path)).split()).exit_code == 0


def test_a_drawing_whose_name_says_no_form(tlir, write, tmp_path) -> None:
    path = write("a.json", squares())
    result = tlir("show", path, "-o", str(tmp_path / "drawing.foo"))
    assert (result.exit_code, "the suffix says no form" in result.stderr) == (2, True)
    assert not (tmp_path / "drawing.foo").exists()
    assert tlir("show", path, "--text", "-o", str(tmp_path / "drawing.foo")).exit_code == 0


READING = {
    "run": ["run", "{artifact}", "--output", "{to}"],
    "show": ["show", "{artifact}", "--svg", "-o", "{to}"],
    "emit": ["emit", "{artifact}", "--target", "kernel", "-o", "{to}"],
    "upgrade": ["upgrade", "{artifact}", "-o", "{to}"],
    "fit": ["fit", "{artifact}", "-o", "{to}"],
    "compare": ["compare", "{artifact}", "--html", "{to}"],
    "against": ["compare", "{other}", "--against", "{artifact}", "--html", "{to}"],
}


@pytest.mark.parametrize("command", list(READING))
def test_the_artifact_that_is_read_is_not_overwritten(tlir, write, tmp_path, command: str) -> None:
    artifact, other = write("a.json", squares()), write("other.json", squares())
    before = Path(artifact).read_bytes()
    link = tmp_path / "link.json"
    link.symlink_to("a.json")
    for to in (artifact, str(link)):
        done = tlir(*(part.format(artifact=artifact, other=other, to=to) for part in READING[command]))
        assert done.exit_code == 2
        assert "the output is the artifact itself" in done.stderr
        assert Path(artifact).read_bytes() == before


@pytest.mark.parametrize("command", ["run", "compare", "fit"])
def test_the_tensor_data_that_is_read_is_not_overwritten(tlir, tmp_path, command: str) -> None:
    from tlir.ir.graph import Body, Graph, Node, Ref, Sample
    from tlir.ir.tensor import Tensor
    from tlir.schema import write

    value = Tensor.from_numpy(np.ones(1000, np.float32))
    nodes = (Node(0, "input", (), {}, (value.type,), "x"), Node(1, "negate", (Ref(0),), {}, (value.type,)))
    path, data = tmp_path / "big.json", tmp_path / "big.safetensors"
    samples = (Sample((value,), (value,)),)
    write(Graph(Body(nodes, (Ref(0).node,), (Ref(1),)), samples=samples), path, external=1000)
    before = data.read_bytes()
    done = tlir(*(part.format(artifact=path, to=data) for part in READING[command]))
    assert done.exit_code == 2
    assert "the tensor data of" in done.stderr
    assert data.read_bytes() == before


def test_a_reduction_does_not_overwrite_its_artifact(tlir, write, tmp_path) -> None:
    artifact = write("reduced.json", squares(recorded=31))
    before = Path(artifact).read_bytes()
    done = tlir("reduce", artifact, "-o", str(tmp_path), "--force")
    assert done.exit_code == 2
    assert Path(artifact).read_bytes() == before
