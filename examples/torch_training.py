"""A small transformer trained with Adam, as one PyTorch function: ``step`` is a whole training step.

    python capture/torch_capture.py examples/torch_training.py:step \\
        --args examples/torch_training.py:arguments -o step.json
    python examples/torch_training.py 50 batches.npy
    tlir run step.json --repeat 50 --carry params=params --carry state=state --each tokens=batches.npy --record loss

The second command writes a batch for each of 50 steps: sequences ``start, start + 3, start + 6, …`` modulo the size of
the vocabulary, of which the model learns to predict the next token. Needs torch and NumPy.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value

VOCABULARY, WIDTH, HEADS, LAYERS, LENGTH, BATCH = 17, 16, 2, 2, 8, 4
RATE, BETA1, BETA2, EPSILON = 1e-2, 0.9, 0.999, 1e-8

Tree = dict[str, Any]


class Block(nn.Module):
    """Attention to the places before, and a layer of gelu, each added to its input."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention, self.projection = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        parts = self.attention(self.norm1(x)).reshape(batch, length, 3, HEADS, WIDTH // HEADS)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.projection(mixed.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Model(nn.Module):
    """Tokens to the scores of the next token; the embedding is also the last layer."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tokens(tokens) + self.places.weight
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ self.tokens.weight.T


def batches(steps: int, seed: int = 1) -> np.ndarray:
    """int64 tokens [steps, BATCH, LENGTH + 1]."""
    start = np.random.default_rng(seed).integers(0, VOCABULARY, (steps, BATCH, 1))
    return (start + 3 * np.arange(LENGTH + 1)) % VOCABULARY


model = Model()


def parameters(seed: int = 0) -> Tree:
    """The weights of the model by name: ones for what scales, else multiples of 1/4096 of about 1 / sqrt(fan-in)."""
    rng = np.random.default_rng(seed)
    tree: Tree = {}
    for name, value in Model().named_parameters():
        weights = rng.integers(-4096, 4097, tuple(value.shape)) / 4096 / np.sqrt(value.shape[-1])
        tree[name] = torch.from_numpy(weights.astype(np.float32))
        if "norm" in name:
            tree[name] = torch.full_like(tree[name], float(name.endswith("weight")))
    return tree


def mean_loss(params: Tree, tokens: Tensor) -> Tensor:
    """The cross entropy of the next token, over all places."""
    scores = functional_call(model, params, (tokens[:, :-1],))
    return F.cross_entropy(scores.reshape(-1, VOCABULARY), tokens[:, 1:].reshape(-1))


def initial_state(params: Tree) -> Tree:
    """Adam's running means, and how many steps were made."""
    zeros = {name: torch.zeros_like(value) for name, value in params.items()}
    return {"mean": zeros, "square": dict(zeros), "count": torch.tensor(0)}


def step(params: Tree, state: Tree, tokens: Tensor) -> Tree:
    """One step of Adam (Kingma and Ba, 2015) on a batch: the new weights and state, and the loss before it."""
    gradient, loss = grad_and_value(mean_loss)(params, tokens)
    count = state["count"] + 1
    correct1 = 1 - BETA1 ** count.to(torch.float32)
    correct2 = 1 - BETA2 ** count.to(torch.float32)
    new, mean, square = {}, {}, {}
    for name, value in params.items():
        mean[name] = BETA1 * state["mean"][name] + (1 - BETA1) * gradient[name]
        square[name] = BETA2 * state["square"][name] + (1 - BETA2) * gradient[name] * gradient[name]
        new[name] = value - RATE * (mean[name] / correct1) / (torch.sqrt(square[name] / correct2) + EPSILON)
    return {"params": new, "state": {"mean": mean, "square": square, "count": count}, "loss": loss}


def arguments() -> tuple[Tree, Tree, Tensor]:
    """The first step's arguments."""
    params = parameters()
    return params, initial_state(params), torch.from_numpy(batches(1)[0])


if __name__ == "__main__":
    np.save(sys.argv[2], batches(int(sys.argv[1])))
