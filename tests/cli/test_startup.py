"""What starting costs and how errors of every kind end: in processes of their own, as a shell sees them."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import numpy as np
import pytest
from cli_artifacts import ROOT, identity, ill_typed, squares

from tlir.cli import COMMANDS

HEAVY = (
    "numpy",
    "rich",
    "flint",
    "ml_dtypes",
    "safetensors",
    "jax",
    "torch",
    "tlir.floatlib",
    "tlir.ir",
    "tlir.schema",
)


def modules_after(code: str) -> set[str]:
    program = f"import sys\n{code}\nprint('modules:' + ' '.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.rpartition("modules:")[2].split())


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], *([name, "--help"] for name in COMMANDS)])
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    code = f"from tlir.cli.group import tlir\ntlir.main({arguments!r}, standalone_mode=False)"
    loaded = modules_after(code)
    assert "click" in loaded
    assert not loaded & set(HEAVY)
    own = {name for name in loaded if name.startswith("tlir.")}
    assert own <= {"tlir.cli", "tlir.cli.group", "tlir.cli.options", "tlir.errors", *COMMANDS.values()}


def test_importing_tlir_imports_nothing_else() -> None:
    loaded = modules_after("import tlir\ntlir.TlirError")
    assert {name for name in loaded if name.split(".")[0] in ("tlir", *HEAVY)} == {"tlir", "tlir.errors"}


def test_exit_codes_as_a_shell_sees_them(process, write) -> None:
    good, bad = write("good.json", squares()), write("bad.json", ill_typed())
    for code, arguments in (
        (0, ["--help"]),
        (0, ["--version"]),
        (0, ["check", good]),
        (1, ["check", bad]),
        (2, ["check"]),
        (2, ["chekc", good]),
        (2, ["check", "--no-such-option", good]),
        (3, ["run", bad]),
        (4, ["run", good, "--device", "gpu"]),
    ):
        done = process(*arguments)
        assert done.returncode == code, (arguments, done.stderr)
        assert "Traceback" not in done.stderr
        assert bool(done.stderr) == (code > 1)


def test_a_pipe_gets_plain_text_that_is_not_cut(process, write) -> None:
    document = squares()
    source = {"file": "a/very/long/path/" + "x" * 300 + ".py", "line": 1, "function": "f"}
    document["nodes"][2]["source"] = source
    path = write("long.json", document)
    for environment in ({}, {"COLUMNS": "40"}, {"NO_COLOR": "1"}):
        done = process("compare", path, environment=environment)
        assert source["file"] + ":1" in done.stdout
        assert "\x1b" not in done.stdout
        assert not any(line != line.rstrip() for line in done.stdout.splitlines())
        assert all(ord(c) < 0x2500 or ord(c) > 0x257F for c in done.stdout)  # box drawing


def on_terminal(arguments: list[str], columns: int, **environment: str) -> str:
    """What a terminal of this width would show, and a check that the command succeeded or failed as a check does."""
    leader, follower = pty.openpty()
    import fcntl
    import struct
    import termios

    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    clean = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS", "FORCE_COLOR")}
    child = subprocess.Popen(
        [sys.executable, "-m", "tlir.cli", *arguments],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env={**clean, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color", **environment},
    )
    os.close(follower)
    data = b""
    while True:
        try:
            part = os.read(leader, 4096)
        except OSError:
            break
        if not part:
            break
        data += part
    os.close(leader)
    assert child.wait() in (0, 1)
    return data.decode().replace("\r\n", "\n")


def test_a_narrow_terminal_shows_everything_within_its_width(write) -> None:
    path = write("planted.json", squares(recorded=31))
    for command in ("check", "compare"):
        text = on_terminal([command, path], 60, NO_COLOR="1")
        assert all(len(line) <= 60 for line in text.splitlines()), text
        assert "\x1b" not in text
    for part in ("float32[]", "31.0", "30.0", "0 of 1", "41f80000", "model.py:12"):
        assert part in text


def test_a_terminal_gets_colour_unless_it_is_turned_off(write) -> None:
    path = write("good.json", squares())
    assert "\x1b[" in on_terminal(["check", path], 100)
    assert "\x1b[" not in on_terminal(["check", path], 100, NO_COLOR="1")


@pytest.mark.parametrize("as_json", [True, False])
def test_a_reader_that_goes_away_is_no_error(write, as_json: bool) -> None:
    if as_json:
        path = write("large.json", identity(np.arange(200000, dtype=np.int32)))
        arguments = ["run", path, "--json"]
    else:
        arguments = ["check", *(write(f"{k}.json", squares()) for k in range(400))]
    child = subprocess.Popen(
        [sys.executable, "-m", "tlir.cli", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert child.stdout is not None
    assert child.stderr is not None
    child.stdout.read(10)
    child.stdout.close()
    assert child.stderr.read() == b""
    assert child.wait() == 141
    child.stderr.close()
