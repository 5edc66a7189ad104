"""Greedy generation with a small transformer, one token a step, in PyTorch.

``cached`` keeps the keys and values of the places before in a cache; ``recomputed`` computes them all again from the
tokens. Both give the same tokens.

    python capture/torch_capture.py examples/torch_generation.py:cached \\
        --args examples/torch_generation.py:cached_arguments -o cached.json
    tlir run cached.json --repeat 63 --carry cache=cache --carry token=token --carry position=position --record token
    python capture/torch_capture.py examples/torch_generation.py:recomputed \\
        --args examples/torch_generation.py:recomputed_arguments -o recomputed.json
    tlir run recomputed.json --repeat 63 --carry tokens=tokens --carry position=position

Needs torch and NumPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

VOCABULARY, WIDTH, HEADS, LAYERS, LENGTH = 61, 32, 4, 2, 64
PROMPT = torch.tensor([7, 29, 3, 53, 11])

Cache = dict[str, list[Tensor]]


class Block(nn.Module):
    """Attention and a layer of gelu, each added to its input."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention, self.projection = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def parts(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values [heads, places, d]."""
        q, k, v = self.attention(self.norm1(x)).reshape(-1, 3, HEADS, WIDTH // HEADS).permute(1, 2, 0, 3)
        return q, k, v

    def joined(self, x: Tensor, q: Tensor, keys: Tensor, values: Tensor, seen: Tensor) -> Tensor:
        mixed = F.scaled_dot_product_attention(q, keys, values, attn_mask=seen)
        x = x + self.projection(mixed.transpose(0, 1).reshape(-1, WIDTH))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Model(nn.Module):
    """The layers, with weights that are multiples of 1/4096."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.scores = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY)
        rng = np.random.default_rng(seed)
        for name, value in self.named_parameters():
            if "norm" not in name:
                numbers = rng.integers(-4096, 4097, tuple(value.shape)) / 4096 * 2 / np.sqrt(value.shape[-1])
                value.data = torch.from_numpy(numbers.astype(np.float32))
            value.requires_grad_(False)


model = Model()


def following(prompt: Tensor, position: Tensor, scores: Tensor) -> Tensor:
    """The token after ``position``: the prompt's where that is longer, else the one of the greatest score."""
    given = prompt[torch.clamp(position + 1, max=len(prompt) - 1)]
    return torch.where(position + 1 < len(prompt), given, scores.argmax())


def cached(cache: Cache, token: Tensor, position: Tensor, prompt: Tensor) -> dict[str, Any]:
    """The cache with the token's keys and values at its position, the next token, and its position."""
    x = (model.tokens(token) + model.places(position)).reshape(1, WIDTH)
    seen = (torch.arange(LENGTH) <= position).reshape(1, LENGTH)
    new: Cache = {"keys": [], "values": []}
    for block, keys, values in zip(model.blocks, cache["keys"], cache["values"], strict=True):
        q, key, value = block.parts(x)
        new["keys"].append(keys.index_copy(1, position.reshape(1), key))
        new["values"].append(values.index_copy(1, position.reshape(1), value))
        x = block.joined(x, q, new["keys"][-1], new["values"][-1], seen)
    scores = model.scores(model.norm(x))[0]
    return {"cache": new, "token": following(prompt, position, scores), "position": position + 1}


def recomputed(tokens: Tensor, position: Tensor, prompt: Tensor) -> dict[str, Any]:
    """The tokens with the next one behind ``position``, and its position."""
    x = model.tokens(tokens) + model.places.weight
    seen = torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril()
    for block in model.blocks:
        x = block.joined(x, *block.parts(x), seen)
    token = following(prompt, position, model.scores(model.norm(x)).index_select(0, position.reshape(1))[0])
    return {"tokens": tokens.index_copy(0, position.reshape(1) + 1, token.reshape(1)), "position": position + 1}


def cached_arguments() -> tuple[Any, ...]:
    """An empty cache, and the first token of the prompt."""
    empty = torch.zeros(HEADS, LENGTH, WIDTH // HEADS)
    return {"keys": [empty] * LAYERS, "values": [empty] * LAYERS}, PROMPT[0], torch.tensor(0), PROMPT


def recomputed_arguments() -> tuple[Any, ...]:
    """The first token of the prompt, and zeros."""
    return torch.cat([PROMPT[:1], torch.zeros(LENGTH - 1, dtype=torch.int64)]), torch.tensor(0), PROMPT
