"""Greedy generation with a small transformer, one token a step, in JAX.

``cached`` keeps the keys and values of the places before in a cache; ``recomputed`` computes them all again from the
tokens. Both give the same tokens.

    python capture/jax_capture.py examples/jax_generation.py:cached \\
        --args examples/jax_generation.py:cached_arguments -o cached.json
    tlir run cached.json --repeat 63 --carry cache=cache --carry token=token --carry position=position --record token
    python capture/jax_capture.py examples/jax_generation.py:recomputed \\
        --args examples/jax_generation.py:recomputed_arguments -o recomputed.json
    tlir run recomputed.json --repeat 63 --carry tokens=tokens --carry position=position

Needs jax and NumPy.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

VOCABULARY, WIDTH, HEADS, LAYERS, LENGTH = 61, 32, 4, 2, 64
PROMPT = np.array([7, 29, 3, 53, 11], np.int32)

Array = Any
Tree = dict[str, Any]


def parameters(seed: int = 0) -> Tree:
    """The weights of the model by name: multiples of 1/4096."""
    rng = np.random.default_rng(seed)

    def numbers(*shape: int) -> np.ndarray:
        return (rng.integers(-4096, 4097, shape) / 4096 * 2 / np.sqrt(shape[0])).astype(np.float32)

    tree: Tree = {"tokens": numbers(VOCABULARY, WIDTH) * 4, "places": numbers(LENGTH, WIDTH) * 4}
    for k in range(LAYERS):
        tree[f"layer{k}"] = {
            "attention": numbers(WIDTH, 3, HEADS, WIDTH // HEADS),
            "projection": numbers(HEADS, WIDTH // HEADS, WIDTH) / 2,
            "up": numbers(WIDTH, 2 * WIDTH),
            "down": numbers(2 * WIDTH, WIDTH),
        }
    tree["scores"] = numbers(WIDTH, VOCABULARY)
    return tree


params = jax.tree.map(jnp.asarray, parameters())


def normalised(x: Array) -> Array:
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-5)


def mixed(q: Array, keys: Array, values: Array, seen: Array) -> Array:
    """Attention of queries [q, heads, d] to keys and values [k, heads, d], where seen [q, k] is true."""
    weights = jnp.einsum("qhd,khd->hqk", q, keys) / np.float32(np.sqrt(WIDTH // HEADS))
    return jnp.einsum("hqk,khd->qhd", jax.nn.softmax(jnp.where(seen, weights, -jnp.inf), axis=-1), values)


def fed_forward(x: Array, layer: Tree) -> Array:
    return x + jax.nn.gelu(normalised(x) @ layer["up"]) @ layer["down"]


def following(prompt: Array, position: Array, scores: Array) -> Array:
    """The token after ``position``: the prompt's where that is longer, else the one of the greatest score."""
    given = prompt[jnp.minimum(position + 1, len(prompt) - 1)]
    return jnp.where(position + 1 < len(prompt), given, jnp.argmax(scores).astype(jnp.int32))


def cached(cache: Tree, token: Array, position: Array, prompt: Array) -> Tree:
    """The cache with the token's keys and values at its position, the next token, and its position."""
    x = (params["tokens"][token] + params["places"][position])[None]
    seen = jnp.arange(LENGTH)[None] <= position
    new: Tree = {}
    for k in range(LAYERS):
        layer, held = params[f"layer{k}"], cache[f"layer{k}"]
        q, key, value = jnp.einsum("qw,wchd->cqhd", normalised(x), layer["attention"])
        keys = jax.lax.dynamic_update_slice(held["keys"], key, (position, 0, 0))
        values = jax.lax.dynamic_update_slice(held["values"], value, (position, 0, 0))
        new[f"layer{k}"] = {"keys": keys, "values": values}
        x = x + jnp.einsum("qhd,hdw->qw", mixed(q, keys, values, seen), layer["projection"])
        x = fed_forward(x, layer)
    scores = (normalised(x) @ params["scores"])[0]
    return {"cache": new, "token": following(prompt, position, scores), "position": position + 1}


def recomputed(tokens: Array, position: Array, prompt: Array) -> Tree:
    """The tokens with the next one behind ``position``, and its position."""
    x = params["tokens"][tokens] + params["places"]
    seen = jnp.arange(LENGTH)[None] <= jnp.arange(LENGTH)[:, None]
    for k in range(LAYERS):
        layer = params[f"layer{k}"]
        q, keys, values = jnp.einsum("qw,wchd->cqhd", normalised(x), layer["attention"])
        x = x + jnp.einsum("qhd,hdw->qw", mixed(q, keys, values, seen), layer["projection"])
        x = fed_forward(x, layer)
    token = following(prompt, position, (normalised(x) @ params["scores"])[position])
    return {"tokens": jnp.asarray(tokens).at[position + 1].set(token), "position": position + 1}


def cached_arguments() -> tuple[Any, ...]:
    """An empty cache, and the first token of the prompt."""
    empty = np.zeros((LENGTH, HEADS, WIDTH // HEADS), np.float32)
    cache = {f"layer{k}": {"keys": empty, "values": empty} for k in range(LAYERS)}
    return cache, PROMPT[0], np.int32(0), PROMPT


def recomputed_arguments() -> tuple[Any, ...]:
    """The first token of the prompt, and zeros."""
    return np.concatenate([PROMPT[:1], np.zeros(LENGTH - 1, np.int32)]), np.int32(0), PROMPT
