"""Traces of the PyTorch capture: what they hold, where it is saved, and that saving needs no memory of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import safetensors
import torch
from torch_oracle import ROOT, capture, checked

from tlir.compare.locate import locate
from tlir.schema import from_json, read


class Block(torch.nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner, self.outer = torch.nn.Linear(width, 2 * width), torch.nn.Linear(2 * width, width)
        self.norm = torch.nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.outer(torch.nn.functional.gelu(self.inner(self.norm(x))))
        heads = (x + y).reshape(x.shape[0], 4, -1).transpose(0, 1)
        return torch.softmax(heads @ heads.transpose(1, 2), -1)


def of_many_dtypes(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    positive = x > 0
    wide = torch.fft.rfft(x.to(torch.float64))
    return positive, (x.to(torch.bfloat16) * 3).exp(), (wide * wide.conj()).real, (x * 7).to(torch.int8) + 1


def block_and_argument() -> tuple[Any, torch.Tensor]:
    torch.manual_seed(0)
    return Block(64).eval(), torch.randn(96, 64)


@pytest.mark.parametrize("case", ["block", "dtypes"])
def test_a_saved_trace_and_one_that_is_written_as_it_comes_are_the_same_files(case: str, tmp_path: Path) -> None:
    fn, x = block_and_argument() if case == "block" else (of_many_dtypes, torch.randn(77, 131))
    (tmp_path / "saved").mkdir()
    artifact = capture.export(fn, x, name="f", trace=True)
    capture.save(artifact, tmp_path / "saved" / "f.json")
    assert capture.write(tmp_path / "f.json", fn, x, name="f", trace=True) == len(artifact["nodes"])
    for file in ("f.json", "f.safetensors"):
        assert (tmp_path / file).read_bytes() == (tmp_path / "saved" / file).read_bytes(), file
    assert sorted(path.name for path in tmp_path.iterdir()) == ["f.json", "f.safetensors", "saved"]

    (saved,), (held,) = read(tmp_path / "f.json").samples, checked(artifact).samples
    assert saved.trace is not None
    assert held.trace is not None
    assert saved.trace.keys() == held.trace.keys()
    assert all(tensor.same_words(held.trace[ref]) for ref, tensor in saved.trace.items())
    stored = json.loads((tmp_path / "f.json").read_text())["samples"][0]["trace"]
    external = {entry["tensor"]["tensor"] for entry in stored if "file" in entry["tensor"]}
    assert external
    if case == "block":  # the library has no complex128
        with safetensors.safe_open(tmp_path / "f.safetensors", "np") as file:
            assert set(file.keys()) == external


def test_the_words_of_a_written_trace_are_those_that_torch_computes(tmp_path: Path) -> None:
    x = torch.randn(3, 50_001)
    capture.write(tmp_path / "f.json", lambda x: (x * 3).exp().t().contiguous() + 1, x, trace=True)
    (sample,) = read(tmp_path / "f.json").samples
    expected = [x * 3, (x * 3).exp(), (x * 3).exp().t(), (x * 3).exp().t() + 1]
    assert sample.trace is not None
    found = [tensor.to_numpy() for _, tensor in sorted(sample.trace.items(), key=lambda item: item[0])]
    assert [array.tobytes() for array in found] == [value.numpy().tobytes() for value in expected]


def test_large_values_that_another_has_are_left_out_and_the_rest_locates() -> None:
    """The reshaped ones; a transposed value could have its axes wrong, and is there."""
    fn, x = block_and_argument()
    graph = from_json(capture.export(fn, x, trace=True))
    (sample,) = graph.samples
    assert sample.trace is not None
    recorded = {ref.node for ref in sample.trace}
    left_out = {node.op for node in graph.nodes if node.id not in recorded and node.types[0].nbytes > 1 << 14}
    assert "reshape" in left_out
    assert "transpose" not in left_out
    location = locate(graph)
    assert location.ok
    assert {found.op for found in location.nodes} >= {"dot_general", "transpose"}


def test_a_repeated_row_of_more_than_a_mebibyte_is_not_written_out() -> None:
    def spread(x: torch.Tensor) -> torch.Tensor:
        return (x * 2).expand(2_000, 200).sum(0)

    (sample,) = capture.export(spread, torch.ones(200), trace=True)["samples"]
    assert [entry["tensor"]["shape"] for entry in sample["trace"]] == [[200], [200]]


def test_a_number_taken_out_of_a_tensor_is_in_the_trace() -> None:
    (sample,) = checked(capture.export(lambda x: x * x.sum().item(), torch.ones(4) / 3, trace=True)).samples
    assert sample.trace is not None
    assert all(tensor.type.dtype.name == "float32" for tensor in sample.trace.values())


def test_a_graph_that_fails_while_it_is_recorded_leaves_no_file(tmp_path: Path) -> None:
    x = torch.arange(300_000, dtype=torch.int64)
    with pytest.raises(capture.CaptureError, match="ZeroDivision"):
        capture.write(tmp_path / "f.json", lambda x: (x + 1) // (x - x), x, trace=True)
    assert list(tmp_path.iterdir()) == []


CHAIN = """
import importlib.util, resource, sys
import torch
spec = importlib.util.spec_from_file_location("torch_capture", sys.argv[1])
capture = importlib.util.module_from_spec(spec)
sys.modules["torch_capture"] = capture
spec.loader.exec_module(capture)

def chain(x):
    for k in range(int(sys.argv[3])):
        x = (x * 1.5 + k).t().contiguous().t() if k % 4 == 3 else x * 0.5 + k
    return x.sum()

x = torch.ones(1024, 1024)
capture.write(sys.argv[2] + "/plain.json", chain, x)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
capture.write(sys.argv[2] + "/traced.json", chain, x, trace=True)
print(before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="peak memory is in KiB on Linux")
def test_a_trace_needs_no_more_memory_than_a_few_of_its_values(tmp_path: Path) -> None:
    """40 and more values of 4 MiB each are written; the peak grows by less than six of them."""
    command = [sys.executable, "-c", CHAIN, str(ROOT / "capture" / "torch_capture.py"), str(tmp_path), "20"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    before, after = map(int, done.stdout.split())
    file = tmp_path / "traced.safetensors"
    size = file.stat().st_size
    assert size > 40 * (4 << 20)
    (sample,) = read(tmp_path / "traced.json").samples
    assert sample.trace is not None
    assert sum(tensor.type.nbytes for tensor in sample.trace.values()) > 40 * (4 << 20)
    file.unlink()
    assert (after - before) << 10 < 6 * (4 << 20)
