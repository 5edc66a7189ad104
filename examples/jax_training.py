"""A small transformer trained with Adam, as one JAX function: ``step`` is a whole training step.

    python capture/jax_capture.py examples/jax_training.py:step \\
        --args examples/jax_training.py:arguments -o step.json
    python examples/jax_training.py 50 batches.npy
    tlir run step.json --repeat 50 --carry params=params --carry state=state --each tokens=batches.npy --record loss

The second command writes a batch for each of 50 steps: sequences ``start, start + 3, start + 6, …`` modulo the size of
the vocabulary, of which the model learns to predict the next token. Needs jax and NumPy.
"""

from __future__ import annotations

import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

VOCABULARY, WIDTH, HEADS, LAYERS, LENGTH, BATCH = 17, 16, 2, 2, 8, 4
RATE, BETA1, BETA2, EPSILON = 1e-2, 0.9, 0.999, 1e-8

Array = Any
Tree = dict[str, Any]


def numbers(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """float32 weights, multiples of 1/4096 of about the size 1 / sqrt(fan-in)."""
    return (rng.integers(-4096, 4097, shape) / 4096 / np.sqrt(shape[0])).astype(np.float32)


def parameters(seed: int = 0) -> Tree:
    """The weights of the model by name."""
    rng = np.random.default_rng(seed)
    tree: Tree = {"tokens": numbers(rng, VOCABULARY, WIDTH), "places": numbers(rng, LENGTH, WIDTH)}
    for k in range(LAYERS):
        tree[f"layer{k}"] = {
            "scale1": np.ones(WIDTH, np.float32),
            "attention": numbers(rng, WIDTH, 3 * WIDTH),
            "projection": numbers(rng, WIDTH, WIDTH),
            "scale2": np.ones(WIDTH, np.float32),
            "up": numbers(rng, WIDTH, 2 * WIDTH),
            "down": numbers(rng, 2 * WIDTH, WIDTH),
        }
    tree["scale"] = np.ones(WIDTH, np.float32)
    return tree


def batches(steps: int, seed: int = 1) -> np.ndarray:
    """int32 tokens [steps, BATCH, LENGTH + 1]."""
    start = np.random.default_rng(seed).integers(0, VOCABULARY, (steps, BATCH, 1))
    return ((start + 3 * np.arange(LENGTH + 1)) % VOCABULARY).astype(np.int32)


def normalised(x: Array, scale: Array) -> Array:
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-5) * scale


def attention(x: Array, layer: Tree) -> Array:
    batch, length, _ = x.shape
    q, k, v = jnp.split((x @ layer["attention"]).reshape(batch, length, 3 * HEADS, WIDTH // HEADS), 3, axis=2)
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.float32(np.sqrt(WIDTH // HEADS))
    scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -jnp.inf)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, axis=-1), v)
    return mixed.reshape(batch, length, WIDTH) @ layer["projection"]


def logits(params: Tree, tokens: Array) -> Array:
    x = params["tokens"][tokens] + params["places"]
    for k in range(LAYERS):
        layer = params[f"layer{k}"]
        x = x + attention(normalised(x, layer["scale1"]), layer)
        x = x + jax.nn.gelu(normalised(x, layer["scale2"]) @ layer["up"]) @ layer["down"]
    return normalised(x, params["scale"]) @ params["tokens"].T


def mean_loss(params: Tree, tokens: Array) -> Array:
    """The cross entropy of the next token, over all places."""
    scores = jax.nn.log_softmax(logits(params, tokens[:, :-1]), axis=-1)
    return -jnp.mean(jnp.take_along_axis(scores, tokens[:, 1:, None], axis=-1))


def initial_state(params: Tree) -> Tree:
    """Adam's running means, and how many steps were made."""
    zeros = jax.tree.map(np.zeros_like, params)
    return {"mean": zeros, "square": zeros, "count": np.int32(0)}


def step(params: Tree, state: Tree, tokens: Array) -> Tree:
    """One step of Adam (Kingma and Ba, 2015) on a batch: the new weights and state, and the loss before it."""
    loss, gradient = jax.value_and_grad(mean_loss)(params, tokens)
    count = state["count"] + 1
    mean = jax.tree.map(lambda m, g: BETA1 * m + (1 - BETA1) * g, state["mean"], gradient)
    square = jax.tree.map(lambda s, g: BETA2 * s + (1 - BETA2) * g * g, state["square"], gradient)
    correct1 = 1 - BETA1 ** count.astype(jnp.float32)
    correct2 = 1 - BETA2 ** count.astype(jnp.float32)

    def updated(p: Array, m: Array, s: Array) -> Array:
        return p - RATE * (m / correct1) / (jnp.sqrt(s / correct2) + EPSILON)

    new = jax.tree.map(updated, params, mean, square)
    return {"params": new, "state": {"mean": mean, "square": square, "count": count}, "loss": loss}


def arguments() -> tuple[Tree, Tree, np.ndarray]:
    """The first step's arguments."""
    params = parameters()
    return params, initial_state(params), batches(1)[0]


if __name__ == "__main__":
    np.save(sys.argv[2], batches(int(sys.argv[1])))
