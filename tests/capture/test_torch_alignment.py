"""The loss of connectionist temporal classification: torch's words forward, its gradients within float32's rounding."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional
from torch_oracle import captured, distances, relative

from tlir.backends.reference import evaluate
from tlir.ir.tensor import Tensor

PROBS = torch.randn(7, 3, 5, generator=torch.Generator().manual_seed(3))
TARGETS = torch.tensor([[1, 2, 2], [4, 4, 1], [3, 1, -1]])
INPUTS, SIZES = torch.tensor([7, 5, 3]), torch.tensor([3, 3, 1])


def loss(probs: torch.Tensor, targets: torch.Tensor, inputs: Any, sizes: Any, **options: Any) -> torch.Tensor:
    return functional.ctc_loss(probs.log_softmax(-1), targets, inputs, sizes, **{"reduction": "none"} | options)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_losses_have_torch_s_words(dtype: torch.dtype) -> None:
    assert distances(captured(loss, PROBS.to(dtype), TARGETS, INPUTS, SIZES)) == [0]


def test_targets_one_behind_the_other() -> None:
    assert distances(captured(loss, PROBS, torch.tensor([1, 2, 2, 4, 4, 1, 3]), INPUTS, SIZES)) == [0]


def test_lengths_that_are_lists_and_an_empty_target() -> None:
    def mean(probs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return loss(probs, targets, (7, 7, 2), [3, 0, 2], reduction="mean")

    graph = captured(mean, PROBS, TARGETS.clamp(min=0))
    assert distances(graph) == [0]
    (sample,) = graph.samples
    expected = mean(PROBS, TARGETS.clamp(min=0)).numpy()
    assert sample.outputs[0].to_numpy() == expected


@pytest.mark.parametrize("zero_infinity", [False, True])
def test_gradients_where_one_target_is_too_long(zero_infinity: bool) -> None:
    def total(*args: torch.Tensor) -> torch.Tensor:
        return loss(*args, reduction="sum", zero_infinity=zero_infinity)

    graph = captured(torch.func.grad_and_value(total), PROBS, TARGETS, torch.tensor([2, 5, 3]), torch.tensor([3, 0, 1]))
    assert distances(graph)[1] == 0
    assert relative(graph)[0] < 4e-7


def test_the_graph_holds_for_other_lengths_than_the_example_s() -> None:
    """Against a sum over all paths, in float64, with longer targets than those that were captured."""
    probs = PROBS[:4, :2].to(torch.float64)
    targets = torch.tensor([[1, 2], [3, 3]])
    example = loss, probs, targets, torch.tensor([4, 4]), torch.tensor([1, 1])
    graph = captured(*example)
    lengths, sizes = np.array([4, 3]), np.array([2, 2])
    given = [*graph.samples[0].inputs[:2], Tensor.from_numpy(lengths), Tensor.from_numpy(sizes)]
    (found,) = evaluate(graph.body, given)
    p = probs.softmax(-1).numpy()
    for b in range(2):
        total = 0.0
        for path in itertools.product(range(5), repeat=int(lengths[b])):
            merged = [label for label, _ in itertools.groupby(path) if label]
            if merged == targets[b].tolist():
                total += math.prod(p[t, b, label] for t, label in enumerate(path))
        assert abs(float(found.to_numpy()[b]) + math.log(total)) < 1e-13
