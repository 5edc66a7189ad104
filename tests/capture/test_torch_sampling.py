"""Sampling at computed positions, antialiased interpolation, bags and segments, memory that is written before it is
read, and copies of views, against PyTorch's own operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional
from torch_oracle import capture, captured, distances, family, far

GENERATOR = torch.Generator().manual_seed(0)


def _floats(graph: Any) -> torch.Tensor:
    from tlir.backends.reference import evaluate

    (result,) = evaluate(graph.body, graph.samples[0].inputs)
    return torch.from_numpy(result.words.view({"float32": "<f4", "float64": "<f8"}[str(result.dtype)]).astype("<f8"))


def _close(fn: Callable[..., torch.Tensor], *args: torch.Tensor, wrong: torch.Tensor | None = None) -> None:
    """Within 2^-18 of the largest element in float32; ``wrong`` must be further away."""
    expected, mine = fn(*args).double(), _floats(captured(fn, *args))
    limit = float(expected.abs().max()) * 2.0**-18
    assert mine.shape == expected.shape
    assert float((mine - expected).abs().max()) <= limit
    if wrong is not None:
        assert float((mine - wrong.double()).abs().max()) > 100 * limit


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_grid_sample(mode: str, padding: str) -> None:
    image = torch.randn(2, 3, 5, 4, generator=GENERATOR)
    grid = 2.6 * torch.rand(2, 3, 4, 2, generator=GENERATOR) - 1.3
    for align in (True, False):

        def fn(x: torch.Tensor, g: torch.Tensor, align: bool = align) -> torch.Tensor:
            return functional.grid_sample(x, g, mode=mode, padding_mode=padding, align_corners=align)

        _close(fn, image, grid, wrong=fn(image, grid.flip(-1)))


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_grid_sample_of_volumes(mode: str) -> None:
    image = torch.randn(1, 2, 3, 4, 5, generator=GENERATOR)
    grid = 2.6 * torch.rand(1, 2, 2, 3, 3, generator=GENERATOR) - 1.3

    def fn(x: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
        return functional.grid_sample(x, g, mode=mode, padding_mode="border", align_corners=False)

    _close(fn, image, grid, wrong=fn(image, grid.flip(-1)))


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(3, 4), (11, 13), (3, 20)])
def test_antialiased_interpolation(mode: str, size: tuple[int, int]) -> None:
    image = torch.randn(1, 2, 7, 9, generator=GENERATOR)

    def fn(x: torch.Tensor, antialias: bool = True) -> torch.Tensor:
        return functional.interpolate(x, size=size, mode=mode, antialias=antialias, align_corners=False)

    _close(fn, image, wrong=fn(image, False) if size != (11, 13) else None)


WEIGHT = torch.randn(6, 3, generator=GENERATOR)
INDEX, OFFSETS = torch.tensor([1, 5, 0, 0, 3, 2, 4]), torch.tensor([0, 3, 3, 5])

BAGS: dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
    "sum": lambda w, s: functional.embedding_bag(INDEX, w, OFFSETS, mode="sum"),
    "mean": lambda w, s: functional.embedding_bag(INDEX, w, OFFSETS, mode="mean"),
    "max": lambda w, s: functional.embedding_bag(INDEX, w, OFFSETS, mode="max"),
    "weighted": lambda w, s: functional.embedding_bag(INDEX, w, OFFSETS, mode="sum", per_sample_weights=s),
    "padding": lambda w, s: functional.embedding_bag(INDEX, w, OFFSETS, mode="mean", padding_idx=0),
    "last offset": lambda w, s: functional.embedding_bag(INDEX, w, torch.tensor([0, 2, 7]), include_last_offset=True),
    "rows": lambda w, s: functional.embedding_bag(INDEX[:6].reshape(2, 3), w, mode="max"),
}


def test_bags_of_embeddings() -> None:
    assert far(family(BAGS, WEIGHT, torch.rand(7, generator=GENERATOR)), {"weighted": 8}, default=4) == {}


def test_embedding_with_a_bounded_norm() -> None:
    weight = torch.nn.Parameter(torch.tensor([[3.0, 4.0], [0.3, 0.4], [6.0, 8.0], [1.0, 0.0]]))
    (sample,) = captured(
        lambda i: functional.embedding(i, weight.clone(), max_norm=1.0), torch.tensor([0, 1, 1])
    ).samples
    assert sample.outputs[0].shape == (3, 2)
    assert (
        max(
            distances(
                captured(lambda i: functional.embedding(i, weight.clone(), max_norm=1.0), torch.tensor([0, 1, 1]))
            )
        )
        <= 2
    )


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod"])
def test_segments(reduce: str) -> None:
    data, lengths = torch.randn(6, 2, generator=GENERATOR), torch.tensor([2, 0, 3, 1])
    offsets = torch.tensor([0, 2, 2, 5, 6])
    functions = {
        "lengths": lambda x: torch.segment_reduce(x, reduce, lengths=lengths, axis=0, initial=1.0),
        "offsets": lambda x: torch.segment_reduce(x, reduce, offsets=offsets, axis=0),
    }
    assert far(family(functions, data), default=2) == {}


MOVES: dict[str, Callable[[torch.Tensor], Any]] = {
    "nonzero_static": lambda x: torch.nonzero_static(x > 0, size=4, fill_value=-9),
    "nonzero_static, more than there are": lambda x: torch.nonzero_static(x, size=14),
    "take": lambda x: torch.take(x, torch.tensor([[0, -1], [5, 2]])),
    "permute_copy": lambda x: torch.permute_copy(x, (1, 0)),
    "narrow_copy": lambda x: torch.narrow_copy(x, 1, 1, 2),
    "unbind_copy": lambda x: torch.unbind_copy(x, 1)[2],
    "circular": lambda x: functional.pad(x[None], (2, 1), mode="circular"),
    "written by parts": lambda x: torch.empty(2, 3).copy_(x).mul(2),
    "an integer's circular": lambda x: functional.pad(x.to(torch.int64)[None], (1, 2), mode="circular"),
}


def test_data_movement_is_exact() -> None:
    x = torch.tensor([[0.5, 0.0, -3.0], [2.0, 0.25, 0.0]])
    assert far(family(MOVES, x)) == {}


def test_booleans_are_accumulated_by_or() -> None:
    x = torch.tensor([True, False, False])
    index, values = torch.tensor([0, 1, 1]), torch.tensor([True, True, False])
    functions = {
        "index_put": lambda x: x.index_put((index,), values, accumulate=True),
        "put": lambda x: torch.put(x, index, values, accumulate=True),
        "index_add": lambda x: x.index_add(0, index, values),
    }
    assert far(family(functions, x)) == {}


UNSET: dict[str, Callable[[torch.Tensor], Any]] = {
    "returned": lambda x: torch.empty(3),
    "added": lambda x: torch.empty(3) + x,
    "partly written": lambda x: torch.empty(3).slice_scatter(x[:2], 0, 0, 2) * 1,
}


@pytest.mark.parametrize("name", UNSET)
def test_memory_that_is_read_before_it_is_written_is_refused(name: str) -> None:
    with pytest.raises(capture.UnsupportedError, match="whatever was in memory"):
        capture.export(UNSET[name], torch.ones(3))


@pytest.mark.parametrize("count", [2, 3])
def test_fractional_pooling(count: int) -> None:
    image = torch.randn(2, 2, *[7, 6, 5][:count], generator=GENERATOR)
    samples = torch.rand(2, 2, count, generator=GENERATOR)
    pool = functional.fractional_max_pool2d if count == 2 else functional.fractional_max_pool3d

    def fn(x: torch.Tensor, u: torch.Tensor) -> Any:
        return pool(x, 2, output_size=(4, 3, 3)[:count], return_indices=True, _random_samples=u)

    assert distances(captured(fn, image, samples)) == [0, 0]
