"""Gradients and training steps in PyTorch: forward, backward and the optimizer's update as one function."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from bench.zoo import model
from bench.zoo.torch_written import seeded, small_resnet


def _mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))


def _state(net: nn.Module) -> dict[str, Tensor]:
    return {name: p.detach().clone() for name, p in net.named_parameters()}


X, LABELS = torch.randn(6, 4, generator=torch.Generator().manual_seed(2)), torch.tensor([0, 1, 2, 1, 0, 2])


@model("torch")
def sgd_functional() -> tuple[Any, ...]:
    net = seeded(_mlp)

    def loss(p: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(torch.func.functional_call(net, p, (x,)), y)

    def step(p: dict[str, Tensor], v: dict[str, Tensor], x: Tensor, y: Tensor) -> Any:
        grads, value = torch.func.grad_and_value(loss)(p, x, y)
        v = {k: 0.9 * v[k] + grads[k] for k in p}
        return {k: p[k] - 0.1 * v[k] for k in p}, v, value

    p = _state(net)
    return step, (p, {k: torch.zeros_like(v) for k, v in p.items()}, X, LABELS)


@model("torch")
def adam_functional() -> tuple[Any, ...]:
    net = seeded(_mlp)

    def step(p: dict[str, Tensor], m: dict[str, Tensor], v: dict[str, Tensor], t: Tensor, x: Tensor, y: Tensor) -> Any:
        def loss(p: dict[str, Tensor]) -> Tensor:
            return F.cross_entropy(torch.func.functional_call(net, p, (x,)), y)

        value, pull = torch.func.vjp(loss, p)
        (g,) = pull(torch.ones_like(value))
        t = t + 1
        m = {k: torch.lerp(m[k], g[k], 0.1) for k in p}
        v = {k: 0.999 * v[k] + 0.001 * g[k] * g[k] for k in p}
        new = {k: p[k] - 1e-2 * (m[k] / (1 - 0.9**t)) / ((v[k] / (1 - 0.999**t)).sqrt() + 1e-8) for k in p}
        return new, m, v, t, value

    p = _state(net)
    zeros = {k: torch.zeros_like(v) for k, v in p.items()}
    return step, (p, zeros, zeros, torch.tensor(0.0), X, LABELS)


def _with_autograd(name: str, optimizer: Any, build: Any, x: Tensor, y: Tensor) -> None:
    """The usual loop body: loss, backward by autograd.grad, and torch.optim's own update of the parameters."""

    @model("torch", name)
    def make() -> tuple[Any, ...]:
        net = seeded(build)
        names = list(_state(net))

        def step(parameters: list[Tensor], x: Tensor, y: Tensor) -> Any:
            mine = [nn.Parameter(p) for p in parameters]
            loss = F.cross_entropy(torch.func.functional_call(net, dict(zip(names, mine, strict=True)), (x,)), y)
            for p, g in zip(mine, torch.autograd.grad(loss, mine), strict=True):
                p.grad = g
            optimizer(mine).step()
            return [p.detach() for p in mine], loss.detach()

        return step, (list(_state(net).values()), x, y)


_with_autograd("sgd_optimizer", lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=1e-3), _mlp, X, LABELS)
_with_autograd("adam_optimizer", lambda p: torch.optim.Adam(p, 1e-2), _mlp, X, LABELS)
_with_autograd("adamw_optimizer", lambda p: torch.optim.AdamW(p, 1e-2), _mlp, X, LABELS)
_with_autograd("rmsprop_optimizer", lambda p: torch.optim.RMSprop(p, 1e-2), _mlp, X, LABELS)


@model("torch")
def backward_call() -> tuple[Any, ...]:
    """loss.backward() on the module's own parameters, whose gradients are returned."""
    net = seeded(_mlp)

    def step(x: Tensor, y: Tensor) -> list[Tensor]:
        net.zero_grad()
        F.cross_entropy(net(x), y).backward()
        return [p.grad for p in net.parameters()]

    return step, (X, LABELS)


@model("torch")
def step_of_the_module_itself() -> tuple[Any, ...]:
    """A whole step that changes the module's parameters in place by its optimizer."""
    net = seeded(_mlp)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)

    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step, (X, LABELS)


@model("torch")
def resnet_gradient() -> tuple[Any, ...]:
    """Gradients through batch norms in training, with the new statistics."""
    net = seeded(small_resnet).train()
    buffers = {k: v.clone() for k, v in net.named_buffers()}

    def step(p: dict[str, Tensor], b: dict[str, Tensor], x: Tensor, y: Tensor) -> Any:
        def loss(p: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
            moved = {k: v.clone() for k, v in b.items()}
            out = torch.func.functional_call(net, (p, moved), (x,))
            return F.cross_entropy(out, y), moved

        return torch.func.grad(loss, has_aux=True)(p)

    return step, (_state(net), buffers, torch.randn(2, 3, 16, 16), torch.tensor([1, 3]))


@model("torch")
def resnet_gradient_frozen() -> tuple[Any, ...]:
    net = seeded(small_resnet).eval()

    def loss(p: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(torch.func.functional_call(net, p, (x,)), y)

    return torch.func.grad(loss), (_state(net), torch.randn(2, 3, 16, 16), torch.tensor([1, 3]))


def _transformer() -> nn.Module:
    layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
    return nn.Sequential(nn.Embedding(20, 16), nn.TransformerEncoder(layer, 2), nn.Linear(16, 20))


@model("torch")
def transformer_adam() -> tuple[Any, ...]:
    net = seeded(_transformer).train()

    def step(p: dict[str, Tensor], m: dict[str, Tensor], v: dict[str, Tensor], ids: Tensor) -> Any:
        def loss(p: dict[str, Tensor]) -> Tensor:
            out = torch.func.functional_call(net, p, (ids[:, :-1],))
            return F.cross_entropy(out.flatten(0, 1), ids[:, 1:].flatten())

        g, value = torch.func.grad_and_value(loss)(p)
        m = {k: 0.9 * m[k] + 0.1 * g[k] for k in p}
        v = {k: 0.99 * v[k] + 0.01 * g[k] ** 2 for k in p}
        return {k: p[k] - 1e-2 * m[k] / (v[k].sqrt() + 1e-3) for k in p}, m, v, value

    p = _state(net)
    zeros = {k: torch.zeros_like(x) for k, x in p.items()}
    return step, (p, zeros, copy.copy(zeros), torch.randint(0, 20, (2, 6)))


@model("torch")
def transformer_gradient_bfloat16() -> tuple[Any, ...]:
    net = seeded(_transformer).bfloat16()

    def loss(p: dict[str, Tensor], ids: Tensor) -> Tensor:
        out = torch.func.functional_call(net, p, (ids[:, :-1],))
        return F.cross_entropy(out.flatten(0, 1).float(), ids[:, 1:].flatten())

    return torch.func.grad(loss), (_state(net), torch.randint(0, 20, (2, 6)))


@model("torch")
def lstm_gradient() -> tuple[Any, ...]:
    net = seeded(lambda: nn.LSTM(3, 4, 2, bidirectional=True))

    def loss(p: dict[str, Tensor], x: Tensor) -> Tensor:
        return torch.func.functional_call(net, p, (x,))[0].pow(2).sum()

    return torch.func.grad(loss), (_state(net), torch.randn(4, 2, 3))


@model("torch")
def gru_autograd() -> tuple[Any, ...]:
    net = seeded(lambda: nn.GRU(3, 4))

    def step(x: Tensor) -> list[Tensor]:
        return list(torch.autograd.grad(net(x)[0].sum(), list(net.parameters())))

    return step, (torch.randn(4, 2, 3),)


@model("torch")
def attention_gradient() -> tuple[Any, ...]:
    def loss(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True).square().sum()

    return torch.func.grad(loss, argnums=(0, 1, 2)), tuple(torch.randn(1, 2, 5, 8) for _ in range(3))


@model("torch")
def hessian_vector_product() -> tuple[Any, ...]:
    def energy(x: Tensor) -> Tensor:
        return torch.logsumexp(x**2, 0) + torch.sin(x).prod()

    def run(x: Tensor, v: Tensor) -> Any:
        return torch.func.jvp(torch.func.grad(energy), (x,), (v,)), torch.func.hessian(energy)(x)

    return run, (torch.randn(4), torch.randn(4))


@model("torch")
def per_sample_gradients() -> tuple[Any, ...]:
    net = seeded(_mlp)

    def loss(p: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(torch.func.functional_call(net, p, (x[None],)), y[None])

    return torch.vmap(torch.func.grad(loss), in_dims=(None, 0, 0)), (_state(net), X, LABELS)


@model("torch")
def maml_step() -> tuple[Any, ...]:
    net = seeded(_mlp)

    def loss(p: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(torch.func.functional_call(net, p, (x,)), y)

    def outer(p: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        g = torch.func.grad(loss)(p, x[:3], y[:3])
        return loss({k: p[k] - 0.1 * g[k] for k in p}, x[3:], y[3:])

    return torch.func.grad(outer), (_state(net), X, LABELS)


@model("torch")
def wgan_penalty() -> tuple[Any, ...]:
    critic = seeded(lambda: nn.Sequential(nn.Linear(4, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1)))

    def run(real: Tensor, fake: Tensor, mix: Tensor) -> list[Tensor]:
        x = (mix * real + (1 - mix) * fake).requires_grad_()
        (g,) = torch.autograd.grad(critic(x).sum(), x, create_graph=True)
        loss = critic(fake).mean() - critic(real).mean() + 10 * (g.norm(2, 1) - 1).pow(2).mean()
        return [loss.detach(), *torch.autograd.grad(loss, list(critic.parameters())[:3])]

    return run, (X[:3], X[3:], torch.rand(3, 1))


@model("torch")
def langevin_step() -> tuple[Any, ...]:
    def energy(x: Tensor) -> Tensor:
        return ((x[:, None] - x[None] + 1e-3).norm(dim=-1) + 0.1).reciprocal().sum() + x.square().sum()

    def run(x: Tensor, noise: Tensor) -> Tensor:
        for k in range(3):
            x = x - 0.01 * torch.func.grad(energy)(x) + 0.1 * noise[k]
        return x

    return run, (torch.randn(4, 2), torch.randn(3, 4, 2))


@model("torch")
def gaussian_process_gradient() -> tuple[Any, ...]:
    def evidence(scale: Tensor, x: Tensor, y: Tensor) -> Tensor:
        k = torch.exp(-0.5 * (x[:, None] - x[None]).square().sum(-1) / scale**2) + 0.1 * torch.eye(len(x))
        factor = torch.linalg.cholesky(k)
        half = torch.linalg.solve_triangular(factor, y[:, None], upper=False)
        return -0.5 * half.square().sum() - factor.diagonal().log().sum()

    return torch.func.grad_and_value(evidence), (torch.tensor(1.3), torch.randn(6, 2), torch.randn(6))


@model("torch")
def convolution_gradients() -> tuple[Any, ...]:
    def loss(x: Tensor, w: Tensor, wt: Tensor, w1: Tensor) -> Tensor:
        y = F.conv2d(x, w, None, 2, 1, 1, 2)
        y = F.conv_transpose2d(F.avg_pool2d(y, 2, 1), wt, None, 2, 1, 1)
        z = F.conv1d(x.flatten(2), w1, dilation=3)
        return F.max_pool2d(y, 2).square().sum() + z.pow(3).sum()

    args = torch.randn(2, 4, 8, 8), torch.randn(6, 2, 3, 3), torch.randn(6, 2, 3, 3), torch.randn(3, 4, 3)
    return torch.func.grad(loss, argnums=(0, 1, 2, 3)), args
