"""Running totals, sorting and order statistics against torch's words."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch_oracle import captured, distances, family, far

RANDOM = np.random.default_rng(5)
DISTINCT = torch.from_numpy(RANDOM.permutation(60).reshape(3, 5, 4) / 4 - 6).float()
REPEATED = torch.from_numpy(RANDOM.integers(-3, 3, (3, 7, 4))).float()
WITH_NAN = torch.where(torch.from_numpy(RANDOM.random((3, 7, 4)) < 0.15), torch.nan, REPEATED)

SORTS: dict[str, Callable[..., torch.Tensor]] = {
    "sort": lambda x: x.sort(1).values,
    "indices": lambda x: x.sort(1).indices,
    "descending": lambda x: x.sort(-1, descending=True).values,
    "descending indices": lambda x: x.sort(dim=-1, descending=True, stable=True).indices,
    "argsort": lambda x: x.argsort(0),
    "msort": lambda x: x.msort(),
    "topk values": lambda x: x.topk(3).values,
    "least k values": lambda x: x.topk(2, 1, largest=False).values,
    "kthvalue": lambda x: x.kthvalue(2, 1).values,
    "median": lambda x: x.median(1).values,
    "median kept": lambda x: x.median(2, keepdim=True).values,
    "median of all": lambda x: x.median(),
    "nanmedian": lambda x: x.nanmedian(1).values,
    "nanmedian of all": lambda x: x.nanmedian(),
    "cummax": lambda x: x.cummax(1).values,
    "cummax indices": lambda x: x.cummax(1).indices,
    "cummin": lambda x: x.cummin(-1).values,
    "cummin indices": lambda x: x.cummin(-1).indices,
}
PLACES: dict[str, Callable[..., torch.Tensor]] = {
    "topk": lambda x: x.topk(3, 1).indices,
    "least k": lambda x: x.topk(2, 1, largest=False).indices,
    "kthvalue": lambda x: x.kthvalue(2, 1).indices,
    "median": lambda x: x.median(1).indices,
}


@pytest.mark.parametrize("x", [DISTINCT, REPEATED, WITH_NAN], ids=["distinct", "repeated", "nan"])
def test_sorting(x: torch.Tensor) -> None:
    assert far(family(SORTS, x)) == {}


def test_places_of_distinct_elements() -> None:
    assert far(family(PLACES, DISTINCT)) == {}


def test_integers_and_modes() -> None:
    functions = {name: fn for name, fn in SORTS.items() if "median of" not in name}
    functions |= {"mode": lambda x: x.mode(1).values, "place of the mode": lambda x: x.mode(1).indices}
    assert far(family(functions, REPEATED.to(torch.int64))) == {}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int32], ids=str)
def test_running_totals(dtype: torch.dtype) -> None:
    x = (torch.from_numpy(np.random.default_rng(6).standard_normal((3, 40))) * 2).to(dtype)
    functions = {"sum": lambda x: x.cumsum(1), "outer sum": lambda x: x.cumsum(0), "product": lambda x: x.cumprod(1)}
    assert far(family(functions, x)) == {}


def test_running_logarithms() -> None:
    x = torch.from_numpy(np.random.default_rng(7).standard_normal((3, 9))).float()
    assert max(distances(captured(lambda x: x.logcumsumexp(1), x))) <= 8


def test_a_planted_error_is_found() -> None:
    graph = captured(lambda x: x.sort(1).values, DISTINCT)
    (node,) = [node for node in graph.body.nodes if node.op == "sort"]
    node.attrs["descending"] = True
    assert distances(graph) != [0]
