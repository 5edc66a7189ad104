"""The capture scripts' command lines, as a shell uses them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
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


def script(frontend: str) -> Any:
    pytest.importorskip(frontend)
    if frontend == "jax":
        from jax_oracle import capture
    else:
        from torch_oracle import capture
    return capture


def argument(frontend: str, size: int) -> Any:
    values = np.ones(size, np.float32)
    return values if frontend == "jax" else pytest.importorskip("torch").from_numpy(values)


@pytest.mark.parametrize("frontend", ["jax", "torch"])
def test_a_pipe_is_written_and_stays(frontend: str, tmp_path: Path) -> None:
    """As root, a renamed file would even take the place of a device."""
    artifact = script(frontend).export(lambda x: x * 2, argument(frontend, 3))
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    script(frontend).save(artifact, pipe)
    reader.join()
    assert pipe.is_fifo()
    assert json.loads(read[0])["format"] == "tlir"
    assert os.listdir(tmp_path) == ["pipe.json"]


@pytest.mark.parametrize("frontend", ["jax", "torch"])
def test_large_tensors_need_a_file_to_lie_beside(frontend: str, tmp_path: Path) -> None:
    artifact = script(frontend).export(lambda x: x * 2, argument(frontend, 1 << 19))
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="not a regular file"):
        script(frontend).save(artifact, pipe)
    assert os.listdir(tmp_path) == ["pipe.json"]
