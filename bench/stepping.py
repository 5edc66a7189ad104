"""What the measurements of iterated steps share: capturing an example, iterating it with ``tlir run``, saying where."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TITLES = {"jax": "JAX", "torch": "PyTorch"}


def module(folder: str, name: str) -> ModuleType:
    """An example, or a capture script, loaded from its file."""
    path = ROOT / folder / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[name] = loaded
    spec.loader.exec_module(loaded)
    return loaded


def tlir(*arguments: str) -> float:
    """Run the command line in a process of its own; the seconds of processor time that it took."""
    before = os.times()
    subprocess.run([sys.executable, "-m", "tlir.cli", *arguments], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    return after.children_user - before.children_user + after.children_system - before.children_system


def iterate(artifact: Path, steps: int, carry: Sequence[str], options: Sequence[str] = ()) -> tuple[Any, float]:
    """The outputs of ``tlir run --repeat`` by name, as its JSON has them, and its seconds of processor time."""
    target = artifact.with_suffix(".out.json")
    carried = [argument for name in carry for argument in ("--carry", f"{name}={name}")]
    seconds = tlir("run", str(artifact), "--repeat", str(steps), *carried, *options, "--output", str(target))
    document = json.loads(target.read_text(encoding="utf-8"))
    return {output["name"]: output for output in document["outputs"]}, seconds


def where(frontend: str) -> str:
    """The machine and the versions, as a sentence."""
    processor = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace").splitlines()
        processor = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return f"{processor}; Python {platform.python_version()}, numpy {version('numpy')}, {frontend} {version(frontend)}."


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table, all columns but the first aligned to the right."""
    rule = "|---|" + "---:|" * (len(headings) - 1)
    return ["| " + " | ".join(headings) + " |", rule, *("| " + " | ".join(row) + " |" for row in rows)]


def finish(lines: Sequence[str]) -> None:
    """Print the page, and write it to the file that the command line names, if it names one."""
    text = "\n".join(lines) + "\n"
    print(text)
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(text, encoding="utf-8")
