"""Interpolation against torch's kernels: nearest moves words, the others have the words of the same fused sums."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch_oracle import captured, distances

from capture import torch_capture
from tlir.compare import compare

GENERATOR = torch.Generator().manual_seed(1)
SIZES = {1: [17], 2: [12, 9], 3: [5, 4, 3]}
X = {n: torch.randn(2, 3, *(5, 4, 3)[:n], generator=GENERATOR) for n in (1, 2, 3)}
MODES = [("linear", 1), ("bilinear", 2), ("trilinear", 3), ("bicubic", 2)]


def is_explained(fn: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor, policy: str) -> None:
    report = compare(captured(fn, x), tolerance="auto", policy=policy)
    assert report.ok, report.to_json()["outputs"]


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_nearest_gives_the_same_words(mode: str, rank: int) -> None:
    def fn(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        small = F.interpolate(x, size=[3, 2, 2][:rank], mode=mode)
        return small, F.interpolate(x, scale_factor=2, mode=mode), F.interpolate(x, scale_factor=1.7, mode=mode)

    assert distances(captured(fn, X[rank])) == [0, 0, 0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize(("mode", "rank"), MODES)
def test_weighted_gives_the_same_words(mode: str, rank: int, align: bool, dtype: torch.dtype) -> None:
    def fn(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        small = F.interpolate(x, size=[11, 5, 2][:rank], mode=mode, align_corners=align)
        large = F.interpolate(x, scale_factor=1.7, mode=mode, align_corners=align)
        same = F.interpolate(x, scale_factor=1.04, mode=mode, align_corners=align, recompute_scale_factor=False)
        return small, large, same

    x = torch.randn(2, 3, *SIZES[rank], generator=GENERATOR).to(dtype)
    assert distances(captured(fn, x)) == [0, 0, 0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("rank", [2, 3])
@pytest.mark.parametrize("last", [False, True])
def test_where_the_channels_lie(rank: int, last: bool, dtype: torch.dtype) -> None:
    """Vectors of channels and what is left over are added in different orders; large planar images axis by axis.

    Which of the first two products is rounded shows in few words of the narrow formats: there are many."""
    x = torch.randn(24, 19, *SIZES[rank], generator=GENERATOR).to(dtype)
    if last:
        x = x.to(memory_format=torch.channels_last if rank == 2 else torch.channels_last_3d)
    sizes = [(7, 13), (80, 60)] if rank == 2 else [(7, 6, 5)]
    mode = "bilinear" if rank == 2 else "trilinear"

    def fn(x: torch.Tensor) -> list[torch.Tensor]:
        return [F.interpolate(x, size=size, mode=mode) for size in sizes]

    assert distances(captured(fn, x)) == [0] * len(sizes)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("mode", "large"), [("bilinear", 40), ("bicubic", 40), ("bilinear", 4), ("bicubic", 4)])
def test_antialiased(mode: str, large: int, dtype: torch.dtype) -> None:
    """Of sums of many products torch fuses some: within a few units in the last place of the absolute products."""

    def fn(x: torch.Tensor) -> torch.Tensor:
        return F.interpolate(x, size=(large, large + 3), mode=mode, antialias=True)

    x = torch.randn(1, 2, 12, 9, generator=GENERATOR).to(dtype)
    graph = captured(fn, x)
    sample = graph.samples[0]
    limit = 16 * torch.finfo(dtype).eps * float(x.abs().max())
    report = compare(graph, tolerance=f"{limit:.3e}")
    assert report.ok, report.to_json()["outputs"]
    assert sample.outputs[0].shape == (1, 2, large, large + 3)
    if mode == "bilinear" and large == 40:
        assert distances(graph) == [0]


@pytest.mark.parametrize(("mode", "rank"), MODES)
def test_automatic_tolerance_finds_the_words(mode: str, rank: int) -> None:
    is_explained(lambda x: F.interpolate(x, scale_factor=1.7, mode=mode), X[rank], "strict")


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_automatic_tolerance_explains_antialiasing(mode: str) -> None:
    x = torch.randn(1, 2, 12, 9, generator=GENERATOR)
    is_explained(lambda x: F.interpolate(x, size=(5, 4), mode=mode, antialias=True), x, "frontend")


@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_products_are_fused_with_sums(real: type) -> None:
    """Rounded once: no neighbour is nearer to the exact value."""
    random = np.random.default_rng(3)
    x, y = (random.standard_normal(300).astype(real) for _ in range(2))
    z = (-x * y * (1 + random.integers(0, 3, 300) * np.finfo(real).eps)).astype(real)
    found = torch_capture._fused(x, y, z)
    assert found.dtype == real
    for i, j, k, value in zip(x, y, z, found, strict=True):
        exact = Fraction(float(i)) * Fraction(float(j)) + Fraction(float(k))
        error = abs(Fraction(float(value)) - exact)
        for neighbour in (np.nextafter(value, real(-np.inf)), np.nextafter(value, real(np.inf))):
            assert error <= abs(Fraction(float(neighbour)) - exact)


def test_integers_in_fixed_point_are_refused() -> None:
    x = torch.arange(60, dtype=torch.uint8).reshape(1, 3, 4, 5)
    with pytest.raises(torch_capture.UnsupportedError, match="fixed point"):
        torch_capture.export(lambda x: F.interpolate(x, size=(7, 9), mode="bilinear"), x)
    assert distances(captured(lambda x: F.interpolate(x, size=(7, 9), mode="bicubic"), x)) == [0]


def test_a_planted_error_is_found() -> None:
    graph = captured(lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), X[2])
    sums = [node for node in graph.body.nodes if node.op in ("add", "multiply")]
    object.__setattr__(sums[-1], "op", "subtract")
    assert not compare(graph, tolerance="2e-6").ok
    assert not compare(graph, tolerance="auto").ok
