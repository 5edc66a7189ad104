"""Layers, losses and gradients: the expansions are torch's own formulas, so they differ by rounding only."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch_oracle import capture, captured, checked

from tlir.compare import compare

W, B, MEAN, VARIANCE = (torch.from_numpy(x) for x in np.random.default_rng(6).random((4, 6), dtype=np.float32) + 0.5)


def normal(*shape: int) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(3).standard_normal(shape)).float()


LAYERS: dict[str, Callable[..., torch.Tensor]] = {
    "softmax": lambda x: x.softmax(-1),
    "softmax inside": lambda x: x.softmax(1),
    "log softmax": lambda x: x.log_softmax(-1),
    "layer norm": lambda x: F.layer_norm(x, (6, 4)),
    "layer norm with weights": lambda x: F.layer_norm(x, (4,), W[:4].to(x.dtype), B[:4].to(x.dtype)),
    "group norm": lambda x: F.group_norm(x, 3, W.to(x.dtype), B.to(x.dtype)),
    "instance norm": lambda x: F.instance_norm(x),
    "batch norm": lambda x: F.batch_norm(x, *(t.to(x.dtype) for t in (MEAN, VARIANCE, W, B))),
    "rms norm": lambda x: F.rms_norm(x, (4,), W[:4].to(x.dtype)),
    "gelu": F.gelu,
    "silu": F.silu,
    "glu": F.glu,
    "prelu": lambda x: F.prelu(x, W.to(x.dtype)),
    "threshold": lambda x: F.threshold(x, 0.1, 20.0),
    "dropout": lambda x: F.dropout(x, 0.5, False),
    "attention": lambda x: F.scaled_dot_product_attention(x[:, None], x[:, None], x[:, None]),
    "causal attention": lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True),
    "masked attention": lambda x: F.scaled_dot_product_attention(
        x, x, x, attn_mask=torch.ones(6, 6, dtype=torch.bool).tril()
    ),
    "mean squared error": lambda x: F.mse_loss(x, x.flip(0)),
    "cross entropy": lambda x: F.cross_entropy(x[0], x[1].softmax(1)),
    "binary cross entropy": lambda x: F.binary_cross_entropy_with_logits(x, x.flip(0).sigmoid()),
    "huber": lambda x: F.huber_loss(x, x.flip(0)),
}

TOLERANCE = {torch.float32: "1e-5", torch.float64: "1e-13", torch.bfloat16: "0.02", torch.float16: "0.004"}


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_layers(dtype: torch.dtype) -> None:
    graph = captured(lambda x: tuple(layer(x) for layer in LAYERS.values()), normal(2, 6, 4).to(dtype))
    outputs = compare(graph, tolerance=TOLERANCE[dtype], rtol=TOLERANCE[dtype]).to_json()["outputs"]
    assert {name: out["max_absolute"] for name, out in zip(LAYERS, outputs, strict=True) if not out["ok"]} == {}


LOSSES: dict[str, Callable[..., torch.Tensor]] = {
    "squares": lambda x: (x * x).sum(),
    "tanh": lambda x: x.tanh().sum(),
    "relu": lambda x: x.relu().sum(),
    "gelu": lambda x: F.gelu(x).sum(),
    "silu": lambda x: F.silu(x).sum(),
    "softmax": lambda x: (x.softmax(-1) ** 2).sum(),
    "layer norm": lambda x: (F.layer_norm(x, (4,), W[:4], B[:4]) ** 3).sum(),
    "matrix product": lambda x: (x @ x.T).sum(),
    "cross entropy": lambda x: F.cross_entropy(x, torch.ones(3, 4) / 4),
    "variance": lambda x: x.var(),
    "maximum": lambda x: x.amax(1).sum(),
    "slice": lambda x: x[1:, ::2].exp().sum(),
    "attention": lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None]).sum(),
    "where": lambda x: torch.where(x > 0, x.exp(), x).sum(),
}


def test_gradients_are_captured_through_make_fx_and_say_so() -> None:
    artifact = capture.export(lambda x: tuple(torch.func.grad(loss)(x) for loss in LOSSES.values()), normal(3, 4))
    assert artifact["producer"]["flags"]["traced_by"] == "make_fx"
    outputs = compare(checked(artifact), tolerance="2e-5", rtol="1e-5").to_json()["outputs"]
    assert {name: out["max_absolute"] for name, out in zip(LOSSES, outputs, strict=True) if not out["ok"]} == {}


def test_other_derivatives() -> None:
    def of_autograd(x: torch.Tensor) -> torch.Tensor:
        x = x.requires_grad_()
        return torch.autograd.grad((x @ x.T).tanh().sum(), [x])[0]

    def forward(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            torch.func.jvp(torch.sin, (x,), (x,))[1],
            torch.func.jacrev(lambda v: v.sin())(x[0]),
            torch.func.vmap(torch.func.grad(lambda v: (v * v).sum()))(x),
        )

    for fn in (of_autograd, forward):
        assert compare(captured(fn, normal(2, 3)), tolerance="2e-5").ok
