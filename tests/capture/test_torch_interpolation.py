"""Interpolation against torch: nearest moves words, the others differ by the order of rounding."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch_oracle import captured, distances

from tlir.compare import compare

GENERATOR = torch.Generator().manual_seed(1)
X = {n: torch.randn(2, 3, *(5, 4, 3)[:n], generator=GENERATOR) for n in (1, 2, 3)}


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_nearest_gives_the_same_words(mode: str, rank: int) -> None:
    def fn(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        small = F.interpolate(x, size=[3, 2, 2][:rank], mode=mode)
        return small, F.interpolate(x, scale_factor=2, mode=mode), F.interpolate(x, scale_factor=1.7, mode=mode)

    assert distances(captured(fn, X[rank])) == [0, 0, 0]


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize(("mode", "rank"), [("linear", 1), ("bilinear", 2), ("trilinear", 3), ("bicubic", 2)])
def test_weighted(mode: str, rank: int, align: bool) -> None:
    def fn(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        small = F.interpolate(x, size=[3, 2, 2][:rank], mode=mode, align_corners=align)
        large = F.interpolate(x, scale_factor=1.7, mode=mode, align_corners=align)
        return small, large

    report = compare(captured(fn, X[rank]), tolerance="2e-6")
    assert report.ok, report.to_json()["outputs"]


def test_a_planted_error_is_found() -> None:
    graph = captured(lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), X[2])
    adds = [node for node in graph.body.nodes if node.op == "add"]
    object.__setattr__(adds[0], "op", "subtract")
    assert not compare(graph, tolerance="2e-6").ok
