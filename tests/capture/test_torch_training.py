"""Gradients and training steps: what make_fx records of a run, and what that run may leave behind (nothing)."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_oracle import capture, captured, checked, distances, relative

X, Y = torch.randn(5, 3, generator=torch.Generator().manual_seed(1)), torch.tensor([0, 1, 1, 0, 1])


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4, bias=False), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 2))


def test_a_step_that_changes_the_module_returns_what_it_changes_and_leaves_the_module_alone() -> None:
    net = network()
    optimizer = torch.optim.Adam(net.parameters(), 1e-2)

    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    artifact = capture.export(step, X, Y)
    assert all(torch.equal(before[name], tensor) for name, tensor in net.state_dict().items())
    assert all(parameter.grad is None for parameter in net.parameters())
    assert optimizer.state == {}
    assert artifact["producer"]["flags"]["traced_by"] == "make_fx"
    (result, state) = artifact["output_tree"]["tuple"]
    assert result == 0
    names = [name for name, _ in state["dict"]]
    assert {f"net.{name}" for name in before} <= set(names)
    graph = checked(artifact)
    assert max(relative(graph)) < 2e-5

    step(X, Y)
    (sample,) = graph.samples
    recorded = dict(zip(names, sample.outputs[1:], strict=True))
    for name, tensor in net.state_dict().items():
        assert torch.allclose(torch.from_numpy(recorded[f"net.{name}"].to_numpy()), tensor, rtol=1e-5, atol=1e-6), name


def test_the_state_of_an_optimizer_has_names() -> None:
    net = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)

    def step(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = net(x).square().sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    step(X)
    artifact = capture.export(step, X)
    names = {name for name, _ in artifact["output_tree"]["tuple"][1]["dict"]}
    assert {"net.weight", "net.bias", "optimizer['state'][0]['momentum_buffer']"} <= names
    assert max(relative(checked(artifact))) < 1e-5


def test_an_argument_that_requires_a_gradient() -> None:
    def fn(x: Tensor) -> Tensor:
        return torch.autograd.grad(x.pow(3).sum(), x)[0]

    graph = captured(fn, X.clone().requires_grad_())
    assert max(relative(graph)) < 1e-6


def test_an_argument_changed_beside_a_gradient_is_returned() -> None:
    def fn(x: Tensor, count: Tensor) -> Tensor:
        count += 1
        return torch.func.grad(lambda z: (z * z).sum())(x)

    artifact = capture.export(fn, X, torch.tensor(4))
    assert artifact["output_tree"] == {"tuple": [0, {"dict": [["count", 1]]}]}
    assert set(distances(checked(artifact))) == {0}


def test_lines_of_the_user_are_kept() -> None:
    def loss(x: Tensor) -> Tensor:
        return torch.tanh(x).sum()

    graph = captured(torch.func.grad(loss), X)
    (node,) = [node for node in graph.nodes if node.op == "tanh"]
    assert node.source is not None
    assert (node.source.line, node.source.function) == (loss.__code__.co_firstlineno + 1, "loss")


def test_the_tracer_can_be_named() -> None:
    for tracer in capture.TRACERS:
        artifact = capture.export(network().eval(), X, tracer=tracer)
        assert artifact["producer"]["flags"]["traced_by"] == tracer
        assert max(relative(checked(artifact))) < 1e-5
    with pytest.raises(capture.CaptureError, match="the tracer is"):
        capture.export(network(), X, tracer="jit")
    with pytest.raises(capture.CaptureError, match="torch cannot trace"):
        capture.export(torch.func.grad(lambda x: x.sum()), X, tracer="torch.export")


def test_distributions_are_traced_without_their_checks_which_stay_on() -> None:
    def fn(x: Tensor, logits: Tensor) -> Tensor:
        chosen = torch.distributions.Categorical(logits=logits)
        return torch.distributions.Normal(0.0, x.exp()).log_prob(x).sum() + chosen.entropy().sum()

    assert max(relative(captured(fn, X, X))) < 1e-5
    with pytest.raises(ValueError, match="Expected parameter"):
        torch.distributions.Normal(0.0, torch.tensor(-1.0))


WEIGHT = nn.Parameter(torch.ones(3))


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x.detach().numpy().sum(),
        lambda x: x.sum().tolist(),
        lambda x: 1.0 if x.sum() > 0 else 2.0,
    ],
    ids=["numpy", "tolist", "branch"],
)
def test_values_that_leave_the_tensors_are_refused_and_not_fixed(read: Any) -> None:
    with pytest.raises(capture.UnsupportedError, match="data-dependent"):
        capture.export(lambda x: torch.autograd.grad((WEIGHT * x).sum() * float(read(x)), WEIGHT), X)
    assert torch.Tensor.numpy(X).shape == (5, 3)


INDICES: dict[str, Any] = {
    "read": lambda x, i, j: (x[i], x[..., i], x[i, j], x[:, j, None], x[i, ..., 1:], x[1, j]),
    "write": lambda x, i, j: (
        _written(x, (i,), 1.5) + _written(x, (slice(1, 3), j), x[1:3, 0]) + _written(x, (i, j), 2.0)
    ),
    "write a row and its part": lambda x, i, j: (
        _written(x, (..., j), x[:, 1] * 2) + _written(x, (i, slice(None, None, 2)), 3.0)
    ),
    "beside a tensor of indices": lambda x, i, j: x[torch.tensor([0, 2]), j],
}


def _written(x: Tensor, index: Any, value: Any) -> Tensor:
    x = x.clone()
    x[index if len(index) > 1 else index[0]] = value
    return x


@pytest.mark.parametrize("name", INDICES)
def test_places_in_tensors(name: str) -> None:
    plain = torch.Tensor.__getitem__
    for i, j in ((1, 2), (-2, -1)):
        artifact = capture.export(INDICES[name], X, torch.tensor(i), torch.tensor(j))
        graph = checked(artifact)
        assert set(distances(graph)) == {0}
        (sample,) = graph.samples
        expected = INDICES[name](X, i, j)
        for tensor, want in zip(sample.outputs, expected if isinstance(expected, tuple) else (expected,), strict=True):
            assert torch.equal(torch.from_numpy(tensor.to_numpy()), want)
        assert len(graph.body.input_ids) == 3
    assert torch.Tensor.__getitem__ is plain


def test_the_inverse_of_a_permutation_fills_new_memory() -> None:
    def fn(x: Tensor) -> Tensor:
        order = x.argsort()
        back = torch.empty_like(order)
        back[order] = torch.arange(len(x))
        return x.sort().values[back]

    assert set(distances(captured(fn, X[:, 0]))) == {0}
    with pytest.raises(capture.UnsupportedError, match="whatever was in memory"):
        capture.export(lambda x: torch.empty(4).index_put((x.argsort()[:3],), torch.ones(3)), X[:, 0])


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, float("inf")])
def test_gradients_of_distances(p: float) -> None:
    """Two equal rows among them. Powers are within a few ulps, the sums of them within as many of the greatest."""
    torch.manual_seed(0)
    x, y = torch.randn(3, 4), torch.randn(5, 4)
    y[2] = x[1]

    def loss(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (torch.cdist(x, y, p=p) * torch.arange(15.0).view(3, 5)).sum()

    graph = captured(torch.func.grad(loss, argnums=(0, 1)), x, y)
    if p in (0.0, 1.0, 2.0, float("inf")):
        assert distances(graph) == [0, 0]
    assert max(relative(graph)) < 3e-7


def test_a_list_of_values_is_read_from_constants_only_under_a_gradient_too() -> None:
    def of_constants(x: torch.Tensor) -> torch.Tensor:
        return sum((x * k).sum() for k in (torch.arange(3) + 1).tolist())

    assert distances(captured(torch.func.grad(of_constants), X)) == [0]
    with pytest.raises(capture.UnsupportedError, match="depends on the value of a tensor"):
        capture.export(torch.func.grad(lambda x: x.sum() * x.flatten().tolist()[0]), X)
