"""Random numbers replay exactly: JAX's generators as operations on integers, keys as their uint32 data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax_oracle import capture, checked, expect_ulps, expect_words, ops

from tlir.backends.reference import evaluate
from tlir.ir.tensor import Tensor

KEY = np.array([0x12345678, 0x9ABCDEF0], np.uint32)

DRAWS: dict[str, Callable[[Any], Any]] = {
    "bits": lambda k: jax.random.bits(k, (3, 5)),
    "bits8": lambda k: jax.random.bits(k, (7,), np.uint8),
    "bits16": lambda k: jax.random.bits(k, (2, 3), np.uint16),
    "scalar": lambda k: jax.random.bits(k),
    "split": lambda k: jax.random.split(k, 3),
    "fold_in": lambda k: jax.random.fold_in(k, 7),
    "seed": lambda k: jax.random.PRNGKey(k[0].astype(np.int32)),
    "uniform": lambda k: jax.random.uniform(k, (4, 5)),
    "uniform_bfloat16": lambda k: jax.random.uniform(k, (9,), jnp.bfloat16),
    "randint": lambda k: jax.random.randint(k, (11,), -3, 100),
    "bernoulli": lambda k: jax.random.bernoulli(k, 0.3, (20,)),
    "permutation": lambda k: jax.random.permutation(k, 10),
    "choice": lambda k: jax.random.choice(k, jnp.arange(9), (4,), replace=False),
    "rademacher": lambda k: jax.random.rademacher(k, (6,)),
    "categorical": lambda k: jax.random.categorical(k, jnp.arange(6.0), shape=(10,)),
    "vmapped": lambda k: jax.vmap(lambda k: jax.random.bits(k, (2,)))(jax.random.split(k, 3)),
    "chain": lambda k: jax.random.bits(jax.random.split(jax.random.fold_in(jax.random.split(k)[1], 3))[0], (2,)),
    "threefry": lambda k: jax.extend.random.threefry_2x32((k[0], k[1]), lax.iota(np.uint32, 10)),
}


@pytest.mark.parametrize("name", DRAWS)
def test_draws_replay_exactly(name: str) -> None:
    expect_words(DRAWS[name], KEY)


@pytest.mark.parametrize("name", ["normal", "gumbel", "exponential", "truncated", "gamma", "beta", "laplace"])
def test_distributions_are_close(name: str) -> None:
    draws: dict[str, Callable[[Any], Any]] = {
        "normal": lambda k: jax.random.normal(k, (20,)),
        "gumbel": lambda k: jax.random.gumbel(k, (20,)),
        "exponential": lambda k: jax.random.exponential(k, (20,)),
        "truncated": lambda k: jax.random.truncated_normal(k, -1, 2, (20,)),
        "gamma": lambda k: jax.random.gamma(k, jnp.array([0.5, 1, 3])),
        "beta": lambda k: jax.random.beta(k, 2.0, 3.0, (3,)),
        "laplace": lambda k: jax.random.laplace(k, (20,)),
    }
    expect_ulps(64, draws[name], KEY)


def test_typed_keys_are_inputs_outputs_and_carried_values() -> None:
    key = jax.random.key(5)
    expect_words(lambda k: (jax.random.split(k, 3), jax.random.bits(k, (2,))), key)
    expect_words(lambda k: jax.random.split(k, (2, 3))[1, ::-1].T.reshape(3, 1), key)
    expect_words(lambda k, n: jax.random.split(k, 5)[n], key, np.int32(2))
    expect_words(lambda k, n: jnp.where(n > 1, k, jax.random.fold_in(k, 1)), key, np.int32(2))
    expect_words(lambda k: jnp.concatenate([jax.random.split(k), jax.random.split(k, 1)]), key)

    def step(k: Any, x: Any) -> Any:
        k, sub = jax.random.split(k)
        return k, lax.cond(x > 0, lambda k: jax.random.bits(k, (2,)), lambda k: jnp.zeros(2, np.uint32), sub)

    expect_words(lambda k, x: lax.scan(step, k, x), key, np.array([1, -1, 2], np.float32))
    expect_words(lambda k: lax.scan(lambda c, k: (c, jax.random.bits(k)), 0, jax.random.split(k, 3)), key)
    grow = lambda s: (jax.random.split(s[0])[0], s[1] + 1)  # noqa: E731
    expect_words(lambda k: lax.while_loop(lambda s: s[1] < 3, grow, (k, 0)), key)
    closed_over = capture.export(lambda x: x + jax.random.bits(key), np.uint32(1))
    checked(closed_over)


def test_dropout_replays_exactly() -> None:
    def dropout(key: Any, x: Any) -> Any:
        keep = jax.random.bernoulli(key, 0.75, x.shape)
        return jnp.where(keep, x / jnp.float32(0.75), 0)

    x = np.random.default_rng(0).random((5, 7)).astype(np.float32)
    expect_words(dropout, KEY, x)
    expect_words(jax.grad(lambda x: jnp.sum(dropout(KEY, x))), x)


def test_keys_are_pairs_of_words() -> None:
    artifact = capture.export(lambda k: jax.random.bits(k, (2,)), jax.random.key(5))
    assert artifact["nodes"][0] | {"name": None} == {
        "id": 0,
        "op": "input",
        "inputs": [],
        "shape": [2],
        "dtype": "uint32",
        "name": None,
    }
    assert artifact["samples"][0]["inputs"][0]["words"] == "00000000 00000005"
    assert set(ops(artifact)) <= {
        "slice",
        "reshape",
        "iota",
        "add",
        "xor",
        "or",
        "shift_left",
        "shift_right_logical",
        "broadcast_in_dim",
    }


def test_another_key_is_seen() -> None:
    graph = checked(capture.export(lambda k: jax.random.bits(k, (4,)), KEY))
    (got,) = evaluate(graph.body, [Tensor.from_numpy(KEY[::-1].copy())])
    assert (got.words != graph.samples[0].outputs[0].words).all()


STATE = np.array([0x12345678, 0x9ABCDEF0, 0xFFFFFFFE, 0xFFFFFFFF], np.uint32)
"""A key and a counter that wraps around after two draws."""


@pytest.mark.parametrize("algorithm", ["RNG_DEFAULT", "RNG_THREE_FRY", "RNG_PHILOX"])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
def test_bit_generators_replay_exactly_with_their_next_state(algorithm: str, dtype: Any) -> None:
    def draw(state: Any) -> Any:
        drawn = []
        for shape in ((), (3,), (5, 7), (4, 3), (3, 4), (0, 2), (7, 5, 3)):
            state, words = lax.rng_bit_generator(state, shape, dtype, lax.RandomAlgorithm[algorithm])
            drawn += [state, words]
        return drawn

    expect_words(draw, STATE)


@pytest.mark.parametrize("algorithm", ["RNG_THREE_FRY", "RNG_PHILOX"])
def test_bit_generators_of_64_bits(algorithm: str) -> None:
    with jax.enable_x64(True):
        expect_words(
            lambda state: lax.rng_bit_generator(state, (3, 5), np.uint64, lax.RandomAlgorithm[algorithm]),
            STATE.view(np.uint64),
        )


def test_keys_of_the_generator_in_hardware_replay() -> None:
    key = jax.random.key(7, impl="rbg")
    expect_words(lambda key: jax.random.bits(key, (4, 5)), key)
    expect_words(lambda key: jax.random.uniform(jax.random.split(key)[1], (3,)), key)


def test_a_generator_whose_key_is_changed_draws_other_bits() -> None:
    def draw(state: Any) -> Any:
        return lax.rng_bit_generator(state, (4,), np.uint32, lax.RandomAlgorithm.RNG_PHILOX)[1]

    graph = checked(capture.export(draw, STATE))
    (right,) = evaluate(graph.body, graph.samples[0].inputs)
    for k in range(4):
        changed = STATE.copy()
        changed[k] ^= 1
        (other,) = evaluate(graph.body, [Tensor.from_numpy(changed)])
        assert not (right.words == other.words).all()
