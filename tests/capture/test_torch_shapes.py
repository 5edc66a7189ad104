"""Shapes, reductions and contractions of PyTorch against the words that torch returned."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch_oracle import captured, distances, family, far

FLOATS = [torch.float32, torch.float64, torch.bfloat16, torch.float16]


def normal(*shape: int) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(3).standard_normal(shape)).float()


def quarters(*shape: int) -> torch.Tensor:
    """Multiples of 1/4 whose sums and products are exact in float32 in every order."""
    return torch.from_numpy(np.random.default_rng(4).integers(-8, 8, shape) / 4)


def assigned(x: torch.Tensor) -> torch.Tensor:
    y = x[0].clone()
    y[0] = 1.0
    y[:, 1] = x[0, :, 0]
    y[1:, ::2] += 2
    return y


SHAPES = {
    "view": lambda x, y: x.view(6, 4),
    "flatten": lambda x, y: x.flatten(),
    "permute": lambda x, y: x.permute(2, 0, 1),
    "transpose": lambda x, y: x.transpose(0, -1),
    "expand": lambda x, y: y.expand(2, 3, 4),
    "unsqueeze": lambda x, y: x.unsqueeze(1),
    "squeeze": lambda x, y: x[:1].squeeze(),
    "cat": lambda x, y: torch.cat([x, x[:1]], 0),
    "cat with empty": lambda x, y: torch.cat([x, torch.zeros(0)], 0),
    "stack": lambda x, y: torch.stack([x, x], -1),
    "slice": lambda x, y: x[:, 1:, ::2],
    "slice from the end": lambda x, y: x[..., -3:-1],
    "slice of nothing": lambda x, y: x[5:],
    "select": lambda x, y: x[1, :, -1],
    "split": lambda x, y: x.split(3, -1)[1],
    "unbind": lambda x, y: x.unbind(1)[2],
    "pad": lambda x, y: F.pad(x, (1, 2, 0, 1), value=0.5),
    "negative pad": lambda x, y: F.pad(x, (-1, 1)),
    "flip": lambda x, y: x.flip(0, 2),
    "repeat": lambda x, y: y.repeat(2, 2, 3),
    "roll": lambda x, y: x.roll((1, -1), (1, 2)),
    "roll flat": lambda x, y: x.roll(5),
    "diagonal": lambda x, y: x.diagonal(1, 0, 2),
    "lower diagonal": lambda x, y: x.diagonal(-1, 1, 2),
    "tril": lambda x, y: x.tril(),
    "triu": lambda x, y: x.triu(1),
    "trace": lambda x, y: x[0, :, :3].trace(),
    "diag_embed": lambda x, y: torch.diag_embed(y),
    "full": lambda x, y: torch.full((2, 2), 3.5),
    "ones": lambda x, y: torch.ones(3, dtype=torch.int64),
    "arange": lambda x, y: torch.arange(10, 0, -3),
    "float arange": lambda x, y: torch.arange(0, 1, 0.3),
    "eye": lambda x, y: torch.eye(3, 4),
    "linspace": lambda x, y: torch.linspace(0, 1, 7),
    "outer": lambda x, y: torch.outer(y, y),
    "bits": lambda x, y: x.view(torch.int32),
    "narrow bits": lambda x, y: x.view(torch.int16),
    "wide bits": lambda x, y: x.view(torch.float64),
    "diff": lambda x, y: x.diff(),
    "in place": lambda x, y: x.clone().add_(1).mul_(2),
    "assignment": lambda x, y: assigned(x),
    "slice_scatter": lambda x, y: torch.slice_scatter(x, x[:, :2] * 2, 1, 0, 3, 2),
    "diagonal_scatter": lambda x, y: torch.diagonal_scatter(x[0], y[:3], 1),
    "literal": lambda x, y: x * torch.tensor([1.0, 2.0, 3.0, 4.0]),
    "identity": lambda x, y: x,
    "broadcast": lambda x, y: x + y + x[:, :1],
}


def test_shapes_move_every_word() -> None:
    assert far(family(SHAPES, normal(2, 3, 4), normal(4))) == {}


def test_scalars_and_empty_tensors() -> None:
    scalar = {
        "sum": lambda x: x.sum(0),
        "mean": lambda x: x.mean(),
        "amax": lambda x: x.amax(),
        "argmax": lambda x: x.argmax(),
        "max": lambda x: x.max(0)[1],
        "softmax": lambda x: x.softmax(0),
        "stack": lambda x: torch.stack([x, x]),
    }
    assert far(family(scalar, torch.tensor(0.7))) == {}
    empty = {
        "sum": lambda x: x.sum(),
        "columns": lambda x: x.sum(0),
        "mean": lambda x: x.mean(),
        "product": lambda x: x.prod(),
        "cat": lambda x: torch.cat([x, x]),
        "matrix product": lambda x: x.T @ x,
        "any": lambda x: (x > 0).any(),
        "all": lambda x: (x > 0).all(),
        "pad": lambda x: F.pad(x, (0, 0, 1, 0)),
    }
    assert far(family(empty, torch.zeros(0, 3))) == {}


EXACT_REDUCTIONS = {
    "amax": lambda x: x.amax((0, 1)),
    "amin": lambda x: x.amin(),
    "max": lambda x: x.max(1)[0],
    "max index": lambda x: x.max(1)[1],
    "min index": lambda x: x.min(0, keepdim=True)[1],
    "argmax": lambda x: x.argmax(),
    "argmin": lambda x: x.argmin(keepdim=True),
    "any": lambda x: (x > 1).any(1),
    "all": lambda x: (x > -1).all(1, keepdim=True),
    "aminmax": lambda x: x.aminmax(dim=1)[1],
    "count": lambda x: torch.count_nonzero(x > 0),
    "infinity norm": lambda x: torch.linalg.vector_norm(x, math.inf, -1),
}

SUMS = {
    "sum": lambda x: x.sum(),
    "sum of axes": lambda x: x.sum((0, 2), keepdim=True),
    "mean": lambda x: x.mean(-1, keepdim=True),
    "product": lambda x: x.prod(1, keepdim=True),
    "variance": lambda x: x.var(1),
    "biased variance": lambda x: x.var(correction=0),
    "deviation": lambda x: x.std(1, keepdim=True),
    "mean and variance": lambda x: torch.var_mean(x, 1)[0],
    "logsumexp": lambda x: x.logsumexp((0, 2), keepdim=True),
    "2-norm": lambda x: torch.linalg.vector_norm(x),
    "1-norm": lambda x: x.norm(1, 1),
    "3-norm": lambda x: torch.linalg.vector_norm(x, 3, 1),
    "normalize": lambda x: F.normalize(x, dim=1),
}


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_reductions(dtype: torch.dtype) -> None:
    """float32 and float64 differ by torch's order of summation only; 16-bit formats by a last bit at most."""
    found = family(EXACT_REDUCTIONS | SUMS, normal(2, 5, 3).to(dtype))
    limit = 5 if dtype in (torch.float32, torch.float64) else 1
    assert far(found, dict.fromkeys(SUMS, limit)) == {}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_16_bit_sums_declare_their_float32_accumulator(dtype: torch.dtype) -> None:
    """A sum in the format itself would stop growing at 256 (bfloat16); products round at every step."""
    x = (quarters(2, 1000) + 2).to(dtype)
    graph = captured(lambda x: (x.sum(1), x.mean(1), x[:, :300] @ x[0, :300]), x)
    assert distances(graph) == [0, 0, 0]
    accumulated = [node.attrs["accumulate"].dtype.name for node in graph.nodes if "accumulate" in node.attrs]
    assert accumulated == ["float32", "float32"]
    product = captured(lambda x: x.prod(1), (1 + quarters(3, 20) / 32).to(dtype))
    assert distances(product) == [0]
    assert not any("accumulate" in node.attrs for node in product.nodes)


CONTRACTIONS = {
    "mm": lambda a, b, c: a[0] @ b[0],
    "bmm": lambda a, b, c: a @ b,
    "mv": lambda a, b, c: a[0] @ c,
    "dot": lambda a, b, c: c @ c,
    "addmm": lambda a, b, c: torch.addmm(b[0][0], a[0], b[0]),
    "addmm scaled": lambda a, b, c: torch.addmm(b[0][0], a[0], b[0], beta=2, alpha=3),
    "addmm without": lambda a, b, c: torch.addmm(b[0][0], a[0], b[0], beta=0),
    "baddbmm": lambda a, b, c: torch.baddbmm(b[:, :1], a, b),
    "addmv": lambda a, b, c: torch.addmv(a[0][:, 0], a[0], c),
    "einsum": lambda a, b, c: torch.einsum("bij,bjk->ik", a, b),
    "tensordot": lambda a, b, c: torch.tensordot(a, b, dims=([2], [1])),
    "broadcast batch": lambda a, b, c: a[None] @ b,
}


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64], ids=str)
def test_contractions_of_exact_data_agree_in_every_word(dtype: torch.dtype) -> None:
    scale = 4 if dtype == torch.int64 else 1
    operands = (quarters(*shape) * scale for shape in ((2, 4, 5), (2, 5, 3), (5,)))
    assert far(family(CONTRACTIONS, *(x.to(dtype) for x in operands))) == {}


def test_matrices_without_elements() -> None:
    """No rows, or no matrices at all: the results have no elements, and the counts of failures are 0."""
    functions = {
        "eigvalsh": torch.linalg.eigvalsh,
        "pinv": torch.linalg.pinv,
        "inv_ex": lambda x: tuple(torch.linalg.inv_ex(x)),
        "cholesky_ex": lambda x: tuple(torch.linalg.cholesky_ex(x)),
    }
    for shape in ((0, 3, 3), (0, 0), (2, 0, 0)):
        for name, function in functions.items():
            assert set(distances(captured(function, torch.zeros(shape)))) == {0}, name


def test_sums_of_products_over_a_batch() -> None:
    a, b, c = torch.arange(24.0).reshape(2, 3, 4), torch.arange(40.0).reshape(2, 4, 5), torch.arange(5.0)
    functions = {
        "addbmm": lambda a, b, c: torch.addbmm(c, a, b),
        "scaled": lambda a, b, c: torch.addbmm(c, a, b, beta=2, alpha=0.5),
        "alone": lambda a, b, c: torch.addbmm(c * torch.nan, a, b, beta=0),
    }
    assert far(family(functions, a, b, c)) == {}  # small whole numbers are exact
