"""The sessions in the documentation: finding them, running them, and writing their output anew.

Run as a program (``make docs``) it rewrites the output below every command of every page that shows a session.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


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


def furnish(folder: Path) -> None:
    """Put into a folder what a session may name: the artifacts, the examples and the capture scripts."""
    for name in ("examples", "capture"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "tests" / "golden", folder / "tests" / "golden")


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
    if done.returncode == 70:
        raise RuntimeError(f"{command} met a fault in tlir:\n{done.stdout.decode()}")
    return "\n".join(line.rstrip() for line in done.stdout.decode().splitlines()).strip()


def rewritten(page: Path, folder: Path) -> str:
    """The page with the output of every session replaced by what the commands print now."""

    def session(match: re.Match[str]) -> str:
        if match.group(1) != "console":
            return match.group(0)
        parts = [f"$ {command}\n{run(command, folder)}\n" for command, _ in session_steps(match.group(2))]
        return "```console\n" + "".join(parts).replace("\n\n$ ", "\n$ ") + "```"

    return _BLOCK.sub(session, page.read_text(encoding="utf-8"))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        furnish(Path(name))
        for page in PAGES:
            if blocks(page, "console"):
                page.write_text(rewritten(page, Path(name)), encoding="utf-8")
