"""Batch norm in training: the statistics of the batch, as the kernels round them in every format and memory layout."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch_oracle import capture, captured, checked

from tlir.compare import compare
from tlir.ir.tensor import Tensor

EXPLAINED = ("identical", "reproduced", "rounding", "reordering")
DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


def normalised(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.batch_norm(x, None, None, w, b, True)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("parameters", ["same", "float32"])
@pytest.mark.parametrize("shape", [(33, 5), (2, 5, 9), (3, 5, 4, 6), (3, 5, 4, 6, "channels_last")])
def test_statistics_of_the_batch(dtype: torch.dtype, parameters: str, shape: tuple[Any, ...]) -> None:
    if parameters == "float32" and dtype == torch.float64:
        pytest.skip("torch takes float32 parameters for narrower inputs only")
    generator = torch.Generator().manual_seed(len(shape))
    x = (3 * torch.randn([n for n in shape if n != "channels_last"], generator=generator) + 1).to(dtype)
    if "channels_last" in shape:
        x = x.contiguous(memory_format=torch.channels_last)
    w, b = (torch.randn(5, generator=generator).to(dtype if parameters == "same" else torch.float32) for _ in range(2))
    report = compare(captured(normalised, x, w, b), tolerance="auto")
    assert report.outputs[0].verdict in EXPLAINED
    if "channels_last" not in shape and len(shape) > 2 and (parameters == "same" or dtype == torch.float32):
        assert report.outputs[0].equal_words == x.numel()  # planes are added in the order that the graph says


@pytest.mark.parametrize("dtype", DTYPES)
def test_running_statistics(dtype: torch.dtype) -> None:
    net = torch.nn.BatchNorm2d(5, momentum=0.3).to(dtype)
    report = compare(captured(net, (torch.randn(3, 5, 4, 6) * 2 + 1).to(dtype)), tolerance="auto")
    assert {found.verdict for found in report.outputs} <= set(EXPLAINED)


def test_another_divisor_is_found() -> None:
    """The variance with n - 1 in the place of n is a bug in these bounds."""
    artifact = capture.export(normalised, torch.randn(3, 5, 4, 6), torch.ones(5), torch.zeros(5))
    graph = checked(artifact)
    x = torch.from_numpy(graph.samples[0].inputs[0].to_numpy().copy())
    centred = x - x.mean([0, 2, 3], keepdim=True)
    wrong = centred / (x.var([0, 2, 3], correction=1, keepdim=True) + 1e-5).sqrt()
    sample = replace(graph.samples[0], outputs=(Tensor.from_numpy(wrong.contiguous().numpy()),))
    assert compare(replace(graph, samples=(sample,)), tolerance="auto").outputs[0].verdict == "bug"
