"""The examples in the documentation are run: sessions give what they show, Python blocks run, links lead somewhere.

A block fenced as ``console`` is a session: lines that start with ``$ `` are commands, run by the shell in one temporary
copy of the repository's examples, and what follows each is its output, exactly. A block fenced as ``python`` is a
program; the blocks of one page share their names, and a line ``# prints: text`` says what the program has printed by
then since the last such line.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


def blocks(page: Path, language: str) -> list[str]:
    return [text for kind, text in _BLOCK.findall(page.read_text(encoding="utf-8")) if kind == language]


def session_steps(text: str) -> list[tuple[str, str]]:
    """The commands of a session, each with the output shown below it. A command ending in a backslash goes on."""
    steps: list[tuple[str, list[str]]] = []
    continued = False
    for line in text.splitlines():
        if line.startswith("$ "):
            steps.append((line[2:], []))
        elif continued:
            steps[-1] = (steps[-1][0] + "\n" + line, [])
        else:
            steps[-1][1].append(line)
        continued = bool(steps) and not steps[-1][1] and steps[-1][0].endswith("\\")
    return [(command, "\n".join(output).strip()) for command, output in steps]


@pytest.fixture
def workplace(tmp_path: Path) -> Path:
    """A folder with what a session may name: the artifacts, the examples and the capture scripts."""
    for name in ("examples", "capture"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "tests" / "golden", tmp_path / "tests" / "golden")
    return tmp_path


def run(command: str, folder: Path) -> str:
    environment = os.environ | {
        "PATH": str(Path(sys.executable).parent) + os.pathsep + os.environ["PATH"],
        "COLUMNS": "100",
        "NO_COLOR": "1",
        "PYTHONWARNINGS": "ignore",
        "JAX_PLATFORMS": "cpu",
    }
    done = subprocess.run(
        command, shell=True, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300
    )
    return "\n".join(line.rstrip() for line in done.stdout.decode().splitlines()).strip()


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "console")], ids=lambda page: page.name)
def test_sessions_give_the_output_they_show(page: Path, workplace: Path) -> None:
    for text in blocks(page, "console"):
        for command, expected in session_steps(text):
            assert run(command, workplace) == expected, f"in {page.name}: {command}"


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: page.name)
def test_python_blocks_run_and_print_what_they_say(
    page: Path, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workplace)
    names: dict[str, object] = {"__name__": page.stem}
    for text in blocks(page, "python"):
        part: list[str] = []
        for line in [*text.splitlines(), "# prints:"]:
            if not line.startswith("# prints:"):
                part.append(line)
                continue
            printed = StringIO()
            with redirect_stdout(printed):
                exec(compile("\n".join(part), f"{page.name}", "exec"), names)
            expected = line.removeprefix("# prints:").strip()
            assert " ".join(printed.getvalue().split()) == expected, f"in {page.name}: {part}"
            part = []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_of_the_repository(page: Path) -> None:
    for target in _LINK.findall(page.read_text(encoding="utf-8")):
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
