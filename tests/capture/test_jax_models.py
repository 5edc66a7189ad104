"""Whole models and training steps in plain JAX: what the reference computes follows what JAX computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax_oracle import capture, checked, ops

from tlir.backends.reference import evaluate

RNG = np.random.default_rng(0)


def array(*shape: int) -> np.ndarray:
    return (RNG.standard_normal(shape) / np.sqrt(max(shape[0], 1))).astype(np.float32)


def follows(fn: Callable[..., Any], *args: Any, tolerance: float = 5e-6) -> dict[str, Any]:
    """The artifact of a function whose outputs the reference gives within a few roundings."""
    artifact = capture.export(fn, *args)
    graph = checked(artifact)
    sample = graph.samples[0]
    for got, want in zip(evaluate(graph.body, sample.inputs), sample.outputs, strict=True):
        a, b = got.to_numpy(), want.to_numpy()
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * max(1.0, float(np.abs(b).max(initial=0))))
    return artifact


def attention(params: Any, x: Any, mask: Any) -> Any:
    q, k, v = (jnp.einsum("td,dhk->thk", x, params[name]) for name in ("q", "k", "v"))
    scores = jnp.einsum("thk,shk->hts", q, k) / jnp.sqrt(jnp.float32(q.shape[-1]))
    weights = jax.nn.softmax(jnp.where(mask, scores, -1e30))
    return jnp.einsum("hts,shk,hkd->td", weights, v, params["o"])


def layer_norm(x: Any) -> Any:
    centred = x - jnp.mean(x, -1, keepdims=True)
    return centred * lax.rsqrt(jnp.mean(centred**2, -1, keepdims=True) + 1e-5)


def block_params() -> dict[str, np.ndarray]:
    shapes = {"q": (8, 2, 4), "k": (8, 2, 4), "v": (8, 2, 4), "o": (2, 4, 8), "up": (8, 16), "down": (16, 8)}
    return {name: array(*shape) for name, shape in shapes.items()}


def block(params: Any, x: Any) -> Any:
    mask = jnp.tril(jnp.ones((x.shape[0], x.shape[0]), bool))
    x = x + attention(params, layer_norm(x), mask)
    return x + jax.nn.gelu(layer_norm(x) @ params["up"]) @ params["down"]


def transformer(params: Any, tokens: Any) -> Any:
    x = params["embedding"][tokens] + params["position"][: tokens.shape[0]]
    x, _ = lax.scan(lambda x, layer: (block(layer, x), None), x, params["layers"])
    return layer_norm(x) @ params["embedding"].T


def transformer_params() -> dict[str, Any]:
    layers = jax.tree_util.tree_map(lambda *leaves: np.stack(leaves), block_params(), block_params())
    return {"embedding": array(11, 8), "position": array(6, 8), "layers": layers}


TOKENS = np.array([3, 1, 4, 1, 5], np.int32)


def loss(params: Any, tokens: Any) -> Any:
    logits = jax.nn.log_softmax(transformer(params, tokens[:-1]))
    return -jnp.mean(jnp.take_along_axis(logits, tokens[1:, None], axis=1))


def test_a_transformer_over_scanned_layers() -> None:
    assert {"scan", "gather"} <= set(ops(follows(transformer, transformer_params(), TOKENS)))


def test_a_training_step_with_adam() -> None:
    params = transformer_params()
    zeros = jax.tree_util.tree_map(np.zeros_like, params)

    def step(params: Any, mean: Any, square: Any, count: Any, tokens: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(params, tokens)
        count = count + 1
        each = jax.tree_util.tree_map
        mean = each(lambda m, g: 0.9 * m + 0.1 * g, mean, grads)
        square = each(lambda s, g: 0.999 * s + 0.001 * g * g, square, grads)
        scale = jnp.sqrt(1 - 0.999**count) / (1 - 0.9**count)
        params = each(lambda p, m, s: p - 0.01 * scale * m / (jnp.sqrt(s) + 1e-3), params, mean, square)
        return params, mean, square, count, value

    follows(step, params, zeros, zeros, np.float32(0), TOKENS, tolerance=2e-5)


def test_one_token_with_a_cache() -> None:
    params = block_params()

    def step(params: Any, cache: Any, position: Any, x: Any) -> Any:
        q, k, v = (jnp.einsum("d,dhk->hk", x, params[name]) for name in ("q", "k", "v"))
        cache = {
            name: lax.dynamic_update_index_in_dim(cache[name], new, position, 0) for name, new in (("k", k), ("v", v))
        }
        scores = jnp.where(jnp.arange(6)[:, None] <= position, jnp.einsum("hk,shk->sh", q, cache["k"]), -jnp.inf)
        out = jnp.einsum("sh,shk,hkd->d", jax.nn.softmax(scores, axis=0), cache["v"], params["o"])
        return jnp.argmax(out), cache

    cache = {name: array(6, 2, 4) for name in ("k", "v")}
    follows(step, params, cache, np.int32(3), array(8))


def test_a_recurrent_network_and_its_gradient() -> None:
    params = {name: array(6, 6) for name in ("update", "reset", "new", "h_update", "h_reset", "h_new")}

    def gru(params: Any, xs: Any) -> Any:
        def cell(h: Any, x: Any) -> Any:
            z = jax.nn.sigmoid(x @ params["update"] + h @ params["h_update"])
            r = jax.nn.sigmoid(x @ params["reset"] + h @ params["h_reset"])
            h = (1 - z) * h + z * jnp.tanh(x @ params["new"] + (r * h) @ params["h_new"])
            return h, h

        return jnp.mean(lax.scan(cell, jnp.zeros(6), xs)[1] ** 2)

    artifact = follows(jax.value_and_grad(gru), params, array(5, 6), tolerance=2e-5)
    scans = [node["attrs"].get("reverse", False) for node in artifact["nodes"] if node["op"] == "scan"]
    assert scans == [False, True]


def test_dropout_in_a_network() -> None:
    def net(key: Any, w: Any, x: Any) -> Any:
        for layer in range(2):
            key, sub = jax.random.split(key)
            x = jax.nn.relu(x @ w[layer])
            x = jnp.where(jax.random.bernoulli(sub, 0.8, x.shape), x / 0.8, 0)
        return x

    follows(net, jax.random.key(1), array(2, 6, 6), array(4, 6))
    follows(jax.grad(lambda w, k, x: jnp.sum(net(k, w, x) ** 2)), array(2, 6, 6), jax.random.key(1), array(4, 6))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_block_in_a_small_format(dtype: str) -> None:
    cast = lambda tree: jax.tree_util.tree_map(lambda leaf: jnp.asarray(leaf, dtype), tree)  # noqa: E731
    follows(block, cast(block_params()), cast(array(5, 8)), tolerance=0.03 if dtype == "bfloat16" else 0.004)


def test_the_wrong_layer_order_is_seen() -> None:
    artifact = capture.export(transformer, transformer_params(), TOKENS)
    (node,) = [node for node in artifact["nodes"] if node["op"] == "scan"]
    node["attrs"]["reverse"] = True
    graph = checked(artifact)
    (got,) = evaluate(graph.body, graph.samples[0].inputs)
    assert not np.allclose(got.to_numpy(), graph.samples[0].outputs[0].to_numpy(), rtol=1e-3, atol=1e-3)
