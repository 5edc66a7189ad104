"""Random programs on small integers, whose float32 arithmetic is exact: the reference returns JAX's words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jax import lax
from jax_oracle import capture, expect_words

Binary = Callable[[Any, Any], Any]

UNARY: list[Callable[[Any], Any]] = [
    lambda x: -x,
    jnp.abs,
    lambda x: x.T,
    lambda x: lax.rev(x, (1,)),
    lambda x: x * 0.5 + 1,
    lambda x: jnp.floor(x / 2.0),
    lambda x: x.reshape(x.shape[::-1]),
    lambda x: jnp.sum(x, axis=0, keepdims=True) / 4.0,
    lambda x: jnp.max(x, axis=1, keepdims=True),
    lambda x: jnp.argmin(x, axis=1).astype(jnp.float32)[:, None],
    lambda x: jnp.pad(x, ((0, 1), (1, 0)), constant_values=3),
    lambda x: x[:2, ::2],
    lambda x: jnp.clip(x, -3, 3),
    lambda x: jnp.where(x > 0, x, 2 - x),
    lambda x: jnp.tile(x, (1, 2))[:, :4],
    lambda x: (x.astype(jnp.int8) ^ jnp.int8(5)).astype(jnp.float32),
]
BINARY: list[Binary] = [jnp.add, jnp.subtract, jnp.maximum, jnp.minimum, lambda x, y: jnp.where(x < y, x, y)]


def fitted(op: Binary, x: Any, y: Any) -> Any:
    """``op`` on the part that both have; an axis of size 1 is left to be broadcast."""
    sizes = [min(a, b) if min(a, b) > 1 else max(a, b) for a, b in zip(x.shape, y.shape, strict=True)]
    cut = [tuple(slice(0, size) for size in sizes)] * 2
    return op(x[cut[0]], y[cut[1]])


def program(steps: list[tuple[int, int, int]]) -> Callable[[Any, Any], Any]:
    """A function that applies ``steps`` to the values so far: (operation, operand, second operand)."""

    def run(x: Any, y: Any) -> Any:
        values = [x, y]
        for op, first, second in steps:
            a, b = values[first % len(values)], values[second % len(values)]
            values.append(UNARY[op](a) if op < len(UNARY) else fitted(BINARY[op - len(UNARY)], a, b))
        return values[2:]

    return run


STEP = st.tuples(st.integers(0, len(UNARY) + len(BINARY) - 1), st.integers(0, 9), st.integers(0, 9))


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEP, min_size=1, max_size=7))
def test_random_programs(steps: list[tuple[int, int, int]]) -> None:
    x = (np.arange(12, dtype=np.float32).reshape(3, 4) * 5) % 7 - 3
    y = (np.arange(12, dtype=np.float32).reshape(3, 4) * 3) % 5 - 2
    fn = program(steps)
    expect_words(fn, x, y)
    assert capture.dumps(capture.export(fn, x, y)) == capture.dumps(capture.export(fn, x, y))
