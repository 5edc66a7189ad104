"""Fake quantisation: torch's words, clipped, infinite and NaN elements included."""

from __future__ import annotations

import pytest
import torch
from torch_oracle import captured, distances

SPECIAL = [float("nan"), float("inf"), -float("inf"), 1e30, -1e30, 2.0**63 * 0.37, 0.0, -0.0]


def values(dtype: torch.dtype) -> torch.Tensor:
    torch.manual_seed(0)
    return torch.cat([3 * torch.randn(40), torch.tensor(SPECIAL)]).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_by_tensor(dtype: torch.dtype) -> None:
    scale, zero = torch.tensor([0.37]), torch.tensor([1], dtype=torch.int32)

    def both(x: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor) -> tuple[torch.Tensor, ...]:
        fixed = torch.fake_quantize_per_tensor_affine(x, 0.0513, 3, 0, 255)
        return fixed, torch.fake_quantize_per_tensor_affine(x, scale, zero, -8, 7)

    assert distances(captured(both, values(dtype), scale, zero)) == [0, 0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_by_channel(dtype: torch.dtype) -> None:
    x, scale = values(dtype).reshape(2, 4, 6), torch.rand(4, generator=torch.Generator().manual_seed(1)) + 0.1

    def both(x: torch.Tensor, scale: torch.Tensor) -> tuple[torch.Tensor, ...]:
        whole, any = torch.tensor([0, 1, -2, 3], dtype=torch.int32), torch.tensor([0.0, 1.25, -2.5, 3.1])
        return tuple(torch.fake_quantize_per_channel_affine(x, scale, zero, 1, -16, 15) for zero in (whole, any))

    assert distances(captured(both, x, scale)) == [0, 0]


def test_gradients_pass_where_nothing_is_clipped() -> None:
    def loss(x: torch.Tensor) -> torch.Tensor:
        return torch.fake_quantize_per_tensor_affine(x, 0.5, 0, -4, 3).square().sum()

    x = torch.randn(30, generator=torch.Generator().manual_seed(2)) * 2
    graph = captured(torch.func.grad(loss), x)
    assert distances(graph) == [0]
    (sample,) = graph.samples
    (gradient,) = (tensor.to_numpy() for tensor in sample.outputs)
    assert 0 < (gradient == 0).sum() < 30
