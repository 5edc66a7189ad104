"""The capture scripts' command lines, as a shell uses them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
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


SLOW = {
    "jax": """
import numpy as np

def args():
    return (np.zeros((2000, 2000), np.float32),)

def model(x):
    for _ in range(100):
        x = x @ x
    return x
""",
    "torch": """
import torch

def args():
    return (torch.zeros(2000, 2000),)

class Model(torch.nn.Module):
    def forward(self, x):
        for _ in range(100):
            x = x @ x
        return x

model = Model()
""",
}


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize(("number", "said"), [(signal.SIGINT, b"interrupted\n"), (signal.SIGTERM, b"")])
@pytest.mark.parametrize("frontend", ["jax", "torch"])
def test_a_signal_ends_it_without_a_traceback_and_leaves_no_file(
    frontend: str, number: signal.Signals, said: bytes, tmp_path: Path
) -> None:
    pytest.importorskip(frontend)
    (tmp_path / "slow.py").write_text(SLOW[frontend])
    out = tmp_path / "out"
    out.mkdir()
    command = [sys.executable, CAPTURE / f"{frontend}_capture.py", "slow.py:model"]
    command += ["--args", "slow.py:args", "-o", "out/slow.json"]

    def as_in_a_terminal() -> None:
        """A shell starts what runs in its background with interrupts ignored, and the tests may run there."""
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=as_in_a_terminal,
    )
    try:
        # its large tensors are written while they are computed
        while process.poll() is None and not os.listdir(out):
            time.sleep(0.05)
        time.sleep(0.2)
        assert process.poll() is None
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, errors) == (128 + number, said)
    assert not os.listdir(out)
