"""Control flow as regions, and tensors that a function changes in place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch_oracle import capture, captured, checked, distances

from tlir.compare import compare

X = torch.from_numpy(np.random.default_rng(8).integers(-8, 8, (4, 3)) / 4).float()


def branches(x: torch.Tensor) -> Any:
    return torch.cond(x.sum() > 0, lambda a: (a * 2, a.sum(0)), lambda a: (a - 1, a.amax(0)), (x,))


def nested(x: torch.Tensor) -> Any:
    def inner(a: torch.Tensor) -> torch.Tensor:
        return torch.cond(a[0, 0] > 0, lambda b: b + 1, lambda b: b * 3, (a,))

    return torch.cond(x.sum() > 0, inner, lambda a: a - 1, (x,))


def looped(x: torch.Tensor, step: torch.Tensor) -> Any:
    from torch._higher_order_ops.while_loop import while_loop

    return while_loop(lambda i, a: i < 5, lambda i, a: (i + 1, a * 0.5 + step), (torch.zeros((), dtype=torch.int64), x))


def scanned(x: torch.Tensor, step: torch.Tensor) -> Any:
    from torch._higher_order_ops.scan import scan

    return scan(lambda c, row: (c + row * step, c * row), x[0], x)


@pytest.mark.parametrize("x", [X, -X], ids=["one", "other"])
@pytest.mark.parametrize("fn", [branches, nested])
def test_branches(fn: Any, x: torch.Tensor) -> None:
    assert set(distances(captured(fn, x))) == {0}


@pytest.mark.parametrize("fn", [looped, scanned])
def test_loops(fn: Any) -> None:
    graph = captured(fn, X, X[1] * 2)
    assert set(distances(graph)) == {0}
    assert [node.op for node in graph.body.nodes if node.regions] == [
        {"looped": "while", "scanned": "scan"}[fn.__name__]
    ]


def test_an_operator_inside_a_branch_is_refused_by_name() -> None:
    def fn(x: torch.Tensor) -> Any:
        return torch.cond(x.sum() > 0, lambda a: torch.poisson(a.abs()), lambda a: a + 1, (x,))

    with pytest.raises(capture.UnsupportedError, match="poisson"):
        capture.export(fn, X)


@pytest.mark.parametrize("affine", [True, False])
def test_batch_norm_in_training_returns_its_state(affine: bool) -> None:
    net = torch.nn.Sequential(torch.nn.BatchNorm1d(3, momentum=0.25, affine=affine), torch.nn.ReLU())
    artifact = capture.export(net, X)
    names = ["0.running_mean", "0.running_var", "0.num_batches_tracked"]
    state = [[name, k + 1] for k, name in enumerate(names)]
    assert artifact["output_tree"] == {"tuple": [0, {"dict": state}]}
    graph = checked(artifact)
    expected = net(X)
    assert max(distances(graph)) <= 4
    (sample,) = graph.samples
    for recorded, real in zip(sample.outputs, [expected, *(dict(net.named_buffers())[n] for n in names)], strict=True):
        words = np.asarray(real.detach().numpy())
        np.testing.assert_allclose(recorded.words.view(words.dtype), words, rtol=1e-6)


def test_batch_norm_of_images() -> None:
    net = torch.nn.Sequential(torch.nn.Conv2d(2, 4, 3), torch.nn.BatchNorm2d(4))
    assert compare(captured(net, torch.randn(2, 2, 6, 6)), tolerance="1e-5").ok


def test_an_argument_changed_in_place_is_returned() -> None:
    def fn(x: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
        count.add_(1)
        return x * count

    artifact = capture.export(fn, X, torch.tensor(2))
    assert artifact["output_tree"] == {"tuple": [0, {"dict": [["count", 1]]}]}
    assert set(distances(checked(artifact))) == {0}


def test_a_planted_error_is_found() -> None:
    artifact = capture.export(branches, X)
    (node,) = [node for node in artifact["nodes"] if node["op"] == "case"]
    node["regions"] = node["regions"][::-1]
    assert max(distances(checked(artifact))) > 0
