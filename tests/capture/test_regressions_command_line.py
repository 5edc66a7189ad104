"""The capture scripts' command lines, as a shell uses them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CAPTURE = Path(__file__).parents[2] / "capture"


@pytest.mark.parametrize("frontend", ["jax", "torch"])
def test_a_list_that_nobody_reads_to_its_end_ends_quietly(frontend: str) -> None:
    pytest.importorskip(frontend)
    command = [sys.executable, CAPTURE / f"{frontend}_capture.py", "--list-operations", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(1)
    process.stdout.close()
    assert "Traceback" not in process.stderr.read()
    assert process.wait() == 0
