"""Recorded values of every equation: written while they are computed, the same as those that are kept."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax_oracle import ROOT, capture
from safetensors.numpy import load_file

import tlir
from tlir.compare.locate import locate
from tlir.schema import from_json, read

SIZE = 1 << 20
"""Elements of the large arrays, of four bytes."""


def _program(x: Any, odd: Any, p: Any) -> Any:
    """Large and small values, some of a size that leaves what follows unaligned, a loop and a result twice."""
    y, _ = lax.scan(lambda c, k: (c * 0.5 + k, k), jnp.sin(x), jnp.arange(3, dtype=x.dtype))
    flags = (odd > 0) & (odd < 2)
    total = jnp.where(flags, odd, 0).sum() + y.sum()
    return {"y": y, "total": total, "again": (y, y + 1), "flags": flags, "p": p + total, "c": lax.complex(x, y)}


def _arguments() -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    x = rng.standard_normal(300_000).astype(np.float32)
    return x, rng.standard_normal(1_100_001).astype(np.float16), np.float32(3)


def test_what_is_written_as_it_comes_is_what_is_kept(tmp_path: Path) -> None:
    for folder in ("kept", "written"):
        (tmp_path / folder).mkdir()
    artifact = capture.export(_program, *_arguments(), trace=True)
    capture.save(artifact, tmp_path / "kept" / "p.json")
    count = capture.write(tmp_path / "written" / "p.json", _program, *_arguments(), trace=True)
    assert sorted(os.listdir(tmp_path / "written")) == ["p.json", "p.safetensors"]
    for name in os.listdir(tmp_path / "kept"):
        assert (tmp_path / "kept" / name).read_bytes() == (tmp_path / "written" / name).read_bytes(), name
    assert count == len(artifact["nodes"])
    graph = read(tmp_path / "written" / "p.json")
    kept = from_json(artifact)
    assert graph.samples[0].trace is not None
    assert kept.samples[0].trace is not None
    assert list(graph.samples[0].trace) == list(kept.samples[0].trace)
    for ref, value in graph.samples[0].trace.items():
        assert value.same_words(kept.samples[0].trace[ref]), ref
    assert load_file(tmp_path / "written" / "p.safetensors")["sample0.input0"].dtype == np.float32
    assert tlir.load(tmp_path / "written" / "p.json").compare(tolerance=1e-4).ok
    assert locate(graph).suspect is None


@pytest.mark.parametrize(("compile", "trace"), [(False, False), (True, False), (True, True)])
def test_written_without_a_trace_or_compiled(tmp_path: Path, compile: bool, trace: bool) -> None:
    for folder in ("kept", "written"):
        (tmp_path / folder).mkdir()
    artifact = capture.export(_program, *_arguments(), compile=compile, trace=trace)
    capture.save(artifact, tmp_path / "kept" / "p.json")
    capture.write(tmp_path / "written" / "p.json", _program, *_arguments(), compile=compile, trace=trace)
    for name in ("p.json", "p.safetensors"):
        assert (tmp_path / "kept" / name).read_bytes() == (tmp_path / "written" / name).read_bytes(), name


def test_small_traces_stay_in_the_artifact(tmp_path: Path) -> None:
    capture.write(tmp_path / "p.json", lambda x: jnp.sin(x) + 1, np.ones(1000, np.float32), trace=True)
    assert os.listdir(tmp_path) == ["p.json"]
    document = json.loads((tmp_path / "p.json").read_text())
    assert [entry["value"] for entry in document["samples"][0]["trace"]] == [1, 4]
    assert document["samples"][0]["trace"][1]["tensor"] == document["samples"][0]["outputs"][0]


def test_nothing_is_left_of_a_trace_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "p.safetensors").write_bytes(b"before")

    def fails(*_: Any) -> Any:
        raise capture.CaptureError("in the middle")

    monkeypatch.setattr(capture, "_evaluate_scan", fails)
    monkeypatch.setitem(capture._CONTROL, "scan", fails)
    with pytest.raises(capture.CaptureError, match="in the middle"):
        capture.write(tmp_path / "p.json", _program, *_arguments(), trace=True)
    assert os.listdir(tmp_path) == ["p.safetensors"]
    assert (tmp_path / "p.safetensors").read_bytes() == b"before"


CHAIN = """
import resource, sys
import numpy as np
import jax, jax.numpy as jnp
from jax import lax
sys.path.insert(0, {capture!r})
import jax_capture

def chain(x):
    for k in range({steps}):
        x = jnp.sin(x) if k % 8 == 0 else x * 0.5 + 1  # XLA's and NumPy's
    return x[:2]

x = np.linspace(0, 1, {size}, dtype=np.float32)
jax_capture.write({path!r} + "0", chain, x[:8], trace=True)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
jax_capture.write({path!r}, chain, x, trace=True)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_memory_does_not_grow_with_the_number_of_values(tmp_path: Path) -> None:
    """Hundreds of MiB of values, while the process takes a few of them more than without a trace."""
    path, steps = tmp_path / "chain.json", 24
    program = CHAIN.format(capture=str(ROOT / "capture"), steps=steps, size=SIZE, path=str(path))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    one = 4 * SIZE
    assert (tmp_path / "chain.safetensors").stat().st_size > 40 * one
    assert int(done.stdout) * 1024 < 12 * one
    jax.clear_caches()
