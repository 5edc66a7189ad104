"""Reading and writing at computed places: data movement gives torch's words, and so do sums that are exact."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch_oracle import capture, captured, distances, family

X = torch.from_numpy(np.random.default_rng(1).integers(-40, 40, (4, 5, 3)) / 8)
ROWS = torch.tensor([[1, -1, 0], [3, -4, 2]])
COLUMNS = torch.tensor([[0, 4, -2], [1, 1, -5]])
PLACES = torch.from_numpy(np.random.default_rng(2).integers(0, 4, (3, 4, 3)))
SOURCE = torch.from_numpy(np.random.default_rng(3).integers(-16, 16, (3, 5, 3)) / 4)
MASK = torch.from_numpy(np.random.default_rng(4).random((4, 5, 3)) < 0.4)


def assigned(x: torch.Tensor, index: Any, value: Any) -> torch.Tensor:
    result = x.clone()
    result[index] = value
    return result


READS: dict[str, Callable[..., torch.Tensor]] = {
    "embedding": lambda x: F.embedding(ROWS % 4, x[:, :, 0]),
    "index": lambda x: x[ROWS],
    "index of two axes": lambda x: x[ROWS, COLUMNS],
    "index inside": lambda x: x[:, COLUMNS],
    "index of outer axes": lambda x: x[ROWS, :, COLUMNS % 3],
    "index of all axes": lambda x: x[ROWS, COLUMNS, 1],
    "index of broadcast axes": lambda x: x[torch.tensor([[1], [2]]), torch.tensor([0, 3, 1])],
    "index of int32": lambda x: x[ROWS.int()],
    "index of nothing": lambda x: x[torch.zeros(0, 2, dtype=torch.int64)],
    "index_select": lambda x: x.index_select(1, torch.tensor([4, 0, 0])),
    "gather": lambda x: x.gather(0, PLACES),
    "gather inside": lambda x: x.gather(1, PLACES),
    "take": lambda x: x.take(torch.tensor([[3, 59], [0, -1]])),
    "take_along_dim": lambda x: x.take_along_dim(PLACES[:1], 1),
    "as_strided": lambda x: x.as_strided((3, 2, 2), (7, 3, 1), 4),
    "as_strided of a transpose": lambda x: x.transpose(0, 2).as_strided((3, 2), (1, 5), 1),
    "unfold": lambda x: x.unfold(1, 3, 2),
    "im2col": lambda x: F.unfold(x[None], (2, 2), padding=1),
    "repeat_interleave": lambda x: x.repeat_interleave(2, 1),
    "tril_indices": lambda x: x[:3, :3, 0][torch.tril_indices(3, 3)[0], torch.tril_indices(3, 3)[1]],
    "searchsorted": lambda x: torch.searchsorted(torch.tensor([-3.0, -1.0, 0.0, 2.5]), x.float()),
    "searchsorted right": lambda x: torch.searchsorted(torch.tensor([-3.0, 0.0, 2.5]), x.float(), right=True),
    "bucketize": lambda x: torch.bucketize(x, torch.tensor([-2.0, 0.0, 0.5], dtype=torch.float64)),
}

WRITES: dict[str, Callable[..., torch.Tensor]] = {
    "index_put": lambda x: assigned(x, (ROWS, COLUMNS), 7.0),
    "index_put of slices": lambda x: assigned(x, (slice(None), torch.tensor([0, -1])), x[:, 1:3]),
    "index_put accumulating": lambda x: x.index_put((ROWS, COLUMNS), x[0, 0], accumulate=True),
    "masked assignment": lambda x: assigned(x, MASK, 1.5),
    "masked assignment of rows": lambda x: assigned(x, MASK[:, 0, 0], x[0]),
    "masked_fill": lambda x: x.masked_fill(MASK, -1.0),
    "masked_scatter": lambda x: x.masked_scatter(MASK, x * 2),
    "scatter": lambda x: x.scatter(0, PLACES, SOURCE),
    "scatter of a value": lambda x: x.scatter(1, PLACES, 3.0),
    "scatter of full size": lambda x: x.scatter(1, PLACES[:1].expand(4, 4, 3).contiguous(), x),
    "scatter adding": lambda x: x.scatter(1, PLACES, SOURCE, reduce="add"),
    "scatter multiplying": lambda x: x.scatter(1, PLACES, 2.0, reduce="multiply"),
    "scatter_add": lambda x: x.scatter_add(0, PLACES, SOURCE),
    "index_add": lambda x: x.index_add(1, torch.tensor([1, 4, 1]), x[:, :3], alpha=2),
    "index_copy": lambda x: x.index_copy(1, torch.tensor([1, 4]), x[:, :2]),
    "index_fill": lambda x: x.index_fill(1, torch.tensor([1, 4]), 9.0),
    "put": lambda x: x.put(torch.tensor([3, -1]), torch.tensor([5.0, 6.0], dtype=x.dtype)),
    "put accumulating": lambda x: x.put(torch.tensor([3, 3]), torch.tensor([5.0, 6.0], dtype=x.dtype), True),
    "as_strided_scatter": lambda x: torch.as_strided_scatter(x, x[:2, 0], (2, 3), (7, 2), 1),
    "select_scatter": lambda x: x.select_scatter(x[0] * 2, 0, 2),
    "gradient of an embedding": lambda x: torch.ops.aten.embedding_dense_backward(x[:2, :3], ROWS % 4, 4, 2, False),
} | {
    f"scatter_reduce {name} {include}": lambda x, name=name, include=include: x.scatter_reduce(
        0, PLACES, SOURCE.to(x.dtype), name, include_self=include
    )
    for name in ("sum", "prod", "mean", "amax", "amin")
    for include in (True, False)
}
REDUCES = {
    f"index_reduce {name}": lambda x, name=name: x.index_reduce(1, torch.tensor([0, 3, 3]), x[:, 1:4], name)
    for name in ("prod", "mean", "amax", "amin")
}


def test_reads() -> None:
    assert {name: far for name, far in family(READS, X).items() if far} == {}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.int64], ids=str)
def test_writes(dtype: torch.dtype) -> None:
    x = (X * 8).to(dtype) if dtype == torch.int64 else X.to(dtype)
    of_any_dtype = ("masked_", "scatter_reduce", "index_copy", "select", "as_strided", "put")
    functions = {
        name: function for name, function in WRITES.items() if dtype == torch.float64 or name.startswith(of_any_dtype)
    }
    assert {name: far for name, far in family(functions | REDUCES, x).items() if far} == {}


def test_a_planted_error_is_found() -> None:
    graph = captured(lambda x: x[ROWS, COLUMNS], X)
    (gather,) = [node for node in graph.body.nodes if node.op == "gather"]
    gather.attrs["start_index_map"] = (1, 0)
    assert distances(graph) != [0]


def test_a_selection_by_a_mask_is_refused_by_name() -> None:
    with pytest.raises(capture.UnsupportedError, match="depends on"):
        capture.export(lambda x: x[x > 0], X)
