"""Convolution and pooling: exact where every sum is, and the places of the greatest elements."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch_oracle import capture, captured, checked, distances, family, far

from tlir.compare import compare


def quarters(*shape: int) -> torch.Tensor:
    """Multiples of 1/4 whose sums and products are exact in float32 in every order."""
    return torch.from_numpy(np.random.default_rng(4).integers(-8, 8, shape) / 4).float()


X1, X2, X3 = quarters(2, 4, 9), quarters(2, 4, 7, 6), quarters(1, 4, 5, 4, 4)
CONVOLUTIONS: dict[str, Callable[..., torch.Tensor]] = {
    "1d": lambda a, b, c: F.conv1d(a, quarters(6, 4, 3), quarters(6)),
    "1d without batch": lambda a, b, c: F.conv1d(a[0], quarters(6, 4, 3), stride=2),
    "same": lambda a, b, c: F.conv1d(a, quarters(6, 4, 4), padding="same"),
    "2d": lambda a, b, c: F.conv2d(b, quarters(6, 4, 3, 2), quarters(6), (2, 1), (1, 2)),
    "2d dilated": lambda a, b, c: F.conv2d(b, quarters(6, 4, 3, 2), None, 1, 2, (2, 3)),
    "2d in groups": lambda a, b, c: F.conv2d(b, quarters(6, 2, 3, 3), quarters(6), groups=2),
    "depthwise": lambda a, b, c: F.conv2d(b, quarters(8, 1, 3, 3), None, groups=4),
    "3d": lambda a, b, c: F.conv3d(c, quarters(2, 4, 2, 3, 2), None, 1, 1),
    "transposed 1d": lambda a, b, c: F.conv_transpose1d(a, quarters(4, 3, 3), quarters(3), 2, 1, 1),
    "transposed 2d": lambda a, b, c: F.conv_transpose2d(b, quarters(4, 3, 3, 2), None, (2, 3), 1, (1, 2), 2, 2),
    "transposed 3d": lambda a, b, c: F.conv_transpose3d(c, quarters(4, 2, 2, 2, 2), None, 2),
}
POOLS: dict[str, Callable[..., torch.Tensor]] = {
    "max 1d": lambda a, b, c: F.max_pool1d(a, 3, 2, 1),
    "max 2d": lambda a, b, c: F.max_pool2d(b, (3, 2), 2, 1, (2, 1)),
    "max 2d ceil": lambda a, b, c: F.max_pool2d(b, 2, 3, ceil_mode=True),
    "max 2d indices": lambda a, b, c: F.max_pool2d(b, 3, 2, 1, return_indices=True)[1],
    "max 2d indices dilated": lambda a, b, c: F.max_pool2d(b[0], 2, 1, 1, 3, return_indices=True)[1],
    "max 2d of -inf": lambda a, b, c: F.max_pool2d(b * 0 - torch.inf, 3, 2, 1, return_indices=True)[1],
    "max 3d": lambda a, b, c: F.max_pool3d(c, 2),
    "max 3d indices": lambda a, b, c: F.max_pool3d(c, 2, 1, return_indices=True)[1],
    "average 1d": lambda a, b, c: F.avg_pool1d(a, 4, 2, 1),
    "average 2d": lambda a, b, c: F.avg_pool2d(b, 2, 2, 1),
    "average 2d without padding": lambda a, b, c: F.avg_pool2d(b, 3, 2, 1, True, False),
    "average 2d by 5": lambda a, b, c: F.avg_pool2d(b, 2, 2, 0, divisor_override=5),
    "average 3d": lambda a, b, c: F.avg_pool3d(c, 2, 2, 1, True),
    "adaptive average 1d": lambda a, b, c: F.adaptive_avg_pool1d(a, 4),
    "adaptive average 2d": lambda a, b, c: F.adaptive_avg_pool2d(b, (3, 4)),
    "adaptive average of all": lambda a, b, c: F.adaptive_avg_pool2d(b, 1),
    "adaptive average 3d": lambda a, b, c: F.adaptive_avg_pool3d(c, (2, 3, 4)),
    "adaptive max 1d": lambda a, b, c: F.adaptive_max_pool1d(a, 4),
    "adaptive max 2d": lambda a, b, c: F.adaptive_max_pool2d(b, (3, 4)),
    "adaptive max 2d indices": lambda a, b, c: F.adaptive_max_pool2d(b, (3, 4), return_indices=True)[1],
    "adaptive max 3d": lambda a, b, c: F.adaptive_max_pool3d(c, (2, 3, 4)),
    "lp": lambda a, b, c: F.lp_pool2d(b, 2, 3),
    "unpooled": lambda a, b, c: F.max_unpool2d(*F.max_pool2d(b, 2, return_indices=True), 2, output_size=(7, 6)),
}
GRADIENTS = ("1d", "2d", "2d dilated", "2d in groups", "depthwise", "transposed 1d", "transposed 2d")
POOL_GRADIENTS = ("max 2d", "max 3d", "average 2d", "average 2d without padding", "average 3d")
POOL_GRADIENTS += ("adaptive average 2d", "adaptive max 2d", "adaptive average 3d")


def test_convolutions() -> None:
    assert far(family(CONVOLUTIONS, X1, X2, X3)) == {}


def test_pools() -> None:
    ulps = {"adaptive average of all": 2, "lp": 4, "adaptive average 2d": 1, "adaptive average 3d": 1}
    assert far(family(POOLS, X1, X2, X3), ulps) == {}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64], ids=str)
def test_other_formats(dtype: torch.dtype) -> None:
    def fn(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        kernel = quarters(6, 4, 3, 2).to(dtype)
        return F.conv2d(x, kernel, quarters(6).to(dtype)), F.avg_pool2d(x, 2), F.max_pool2d(x, 2)

    assert max(distances(captured(fn, X2.to(dtype)))) == 0


@pytest.mark.parametrize("names", [GRADIENTS, POOL_GRADIENTS], ids=["convolutions", "pools"])
def test_gradients(names: tuple[str, ...]) -> None:
    def gradients(*xs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        found = []
        for name in names:
            fn = (CONVOLUTIONS | POOLS)[name]
            found += torch.func.grad(lambda *xs, fn=fn: (fn(*xs) ** 2).sum(), argnums=(0, 1, 2))(*xs)
        return tuple(found)

    outputs = compare(checked(capture.export(gradients, X1, X2, X3)), tolerance="1e-5", rtol="1e-5").to_json()[
        "outputs"
    ]
    assert [k for k, out in enumerate(outputs) if not out["ok"]] == []


def test_gradients_of_kernels() -> None:
    def loss(w1: torch.Tensor, w2: torch.Tensor, w3: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        y = F.conv2d(X2, w1, b, (2, 1), (1, 2), (1, 2), groups=2)
        z = F.conv_transpose2d(X2, w2, None, (2, 3), 1, (1, 2), 2, 2)
        return (y**2).sum() + (z**2).sum() + (F.conv1d(X1, w3, stride=3) ** 2).sum()

    grad = torch.func.grad(loss, argnums=(0, 1, 2, 3))
    kernels = quarters(6, 2, 3, 2), quarters(4, 3, 3, 2), quarters(6, 4, 3), quarters(6)
    assert compare(captured(grad, *kernels), tolerance="1e-5", rtol="1e-5").ok


def test_a_planted_error_is_found() -> None:
    graph = captured(lambda x: F.conv2d(x, quarters(6, 4, 3, 3), padding=1), X2)
    (node,) = [node for node in graph.body.nodes if node.op == "convolution"]
    node.attrs["window_reversal"] = (1, 0)
    assert distances(graph) != [0]
