"""Fixtures of the tests of the command line and the library."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

sys.path.insert(0, str(Path(__file__).parent))  # for cli_artifacts

ROOT = Path(__file__).resolve().parents[2]

Write = Callable[[str, Any], str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a document (or text) to a file of this name and gives its path."""

    def to_file(name: str, document: Any) -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
        return str(path)

    return to_file


@pytest.fixture
def tlir() -> Callable[..., Result]:
    """Runs the command line in this process."""
    from tlir.cli.group import tlir as group

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(group, list(arguments), prog_name="tlir")

    return run


@pytest.fixture
def process() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the command line in a process of its own."""

    def run(*arguments: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
        return subprocess.run(
            [sys.executable, "-m", "tlir.cli", *arguments],
            capture_output=True,
            encoding="utf-8",
            env={**os.environ, "PYTHONPATH": paths, **(environment or {})},
            timeout=120,
        )

    return run
