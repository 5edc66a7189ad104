"""The libraries of the host build are kept for a while, and within a size."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import pytest
from cuda_forms import reduction

from tlir.backends.cuda import host
from tlir.backends.cuda.host import build, prune
from tlir.backends.cuda.source import source
from tlir.kernel.ir import Launch
from tlir.passes.lower import lower


def test_what_is_old_or_too_much_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "KEPT_BYTES", 250)
    # the third one goes beyond the size, the last one beyond the age too
    for name, age in (("now", 0), ("minutes", 300), ("older", 1200), ("days", 3 * 86400), ("weeks", 14 * 86400)):
        (tmp_path / name).write_bytes(bytes(100))
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    (tmp_path / "interrupted").mkdir()
    (tmp_path / "interrupted" / "kernels.cpp").write_text("")
    os.utime(tmp_path / "interrupted", (time.time() - 14 * 86400,) * 2)
    prune(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"now", "minutes"}
    monkeypatch.setattr(host, "KEPT_BYTES", 50)
    prune(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"now", "minutes"}, "another process may be about to load them"
    monkeypatch.setattr(host, "KEPT_BYTES", 1000)
    for name, age in (("days", 3 * 86400), ("weeks", 14 * 86400)):
        (tmp_path / name).write_bytes(bytes(100))
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    prune(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"now", "minutes", "days"}


def test_a_library_that_is_used_again_is_not_built_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (step,) = lower(reduction("float32", (3, 4), (1,))).steps
    assert isinstance(step, Launch)
    made = source(step.kernel)
    assert not isinstance(made, str)
    build([made])
    (library,) = (tmp_path / f"tlir-host-{os.getuid()}").iterdir()
    os.utime(library, (time.time() - 6 * 86400,) * 2)
    build([made], "g++")
    assert time.time() - library.stat().st_mtime < 3600

    own = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: own + 1)
    with pytest.raises(PermissionError, match="another user"):
        build([made])
