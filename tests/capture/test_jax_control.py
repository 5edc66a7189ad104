"""Loops and choices as regions: words as JAX returns them when every equation is evaluated by itself."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax_oracle import capture, checked, expect_ulps, expect_words, ops, outputs

from tlir.backends.reference import evaluate

X = np.array([[1, -2, 3, 0.5], [0, 4, -1, 2], [2, 2, -3, 1]], np.float32)
W = np.array([[1, 2], [-1, 0.5], [0, 1], [3, -2]], np.float32)


def running(x: Any) -> Any:
    return lax.scan(lambda c, row: (c * 0.5 + row, c), jnp.zeros(4), x)


def rnn(x: Any) -> Any:
    def cell(h: Any, row: Any) -> Any:
        h = jnp.maximum(row @ W + h @ jnp.asarray([[0.5, 0], [-1, 0.25]], jnp.float32), 0)
        return h, {"h": h, "sum": jnp.sum(h)}

    return lax.scan(cell, jnp.zeros(2), x)


def collatz(n: Any) -> Any:
    def body(state: Any) -> Any:
        n, steps = state
        return jnp.where(n % 2 == 0, n // 2, 3 * n + 1), steps + 1

    return lax.while_loop(lambda state: state[0] != 1, body, (n, 0))


def newton(a: Any) -> Any:
    limit, half = a * 0 + 12, jnp.float32(0.5)
    return lax.while_loop(lambda s: s[1] < limit, lambda s: (half * (s[0] + a / s[0]), s[1] + 1), (a, jnp.float32(0)))


def nested(x: Any) -> Any:
    def outer(c: Any, row: Any) -> Any:
        inner = lax.fori_loop(0, 3, lambda k, v: v + row * k, c)
        return lax.cond(jnp.sum(inner) > 0, lambda v: v * 2, lambda v: v - row, inner), inner

    return lax.scan(outer, jnp.ones(4), x)


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "scan": running,
    "reverse": lambda x: lax.scan(lambda c, row: (c + row, c), jnp.zeros(4), x, reverse=True),
    "rnn": rnn,
    "counted": lambda x: lax.fori_loop(0, 5, lambda k, v: v * 0.5 + k, x),
    "counted_by_data": lambda x: lax.fori_loop(0, x[1, 1].astype(int), lambda k, v: v + k, x),
    "mapped": lambda x: lax.map(lambda row: row[::-1] * 2, x),
    "nested": nested,
    "no_steps": lambda x: lax.scan(lambda c, row: (c + row, c), jnp.zeros(4), x[:0]),
    "no_inputs": lambda x: lax.scan(lambda c, _: (c + x, None), x, None, length=3)[0],
    "cond": lambda x: lax.cond(x[0, 0] > 0, lambda a, b: (a, b * 2), lambda a, b: (b, a), x, x + 1),
    "switch": lambda x: [lax.switch(k, [lambda v: v, lambda v: v * 2, lambda v: -v], x) for k in (-3, 1, 9)],
    "switch_by_data": lambda x: lax.switch(x[2, 0].astype(int), [jnp.abs, jnp.negative, lambda v: v * 3], x),
    "vmapped_cond": lambda x: jax.vmap(lambda r: lax.cond(r[0] > 0, lambda v: v * 2, lambda v: v - 1, r))(x),
    "vmapped_while": lambda x: jax.vmap(lambda r: lax.while_loop(lambda v: v[1] < 9, lambda v: v + 3, r))(x),
    "associative_scan": lambda x: lax.associative_scan(jnp.add, x),
    "gradient": jax.grad(lambda x: jnp.sum(running(x)[1] * x) / 8),
    "remat": jax.grad(lambda x: jnp.sum(jax.checkpoint(lambda v: running(v)[0])(x))),
    "jvp": lambda x: jax.jvp(running, (x,), (x + 1,)),
    "closed_over": lambda x: lax.scan(lambda c, row: (c + row @ W + x[0, :2], row[0]), jnp.zeros(2), x),
    "searchsorted": lambda x: jnp.searchsorted(jnp.sort(x.ravel()), x[0]),
    "bools": lambda x: lax.scan(lambda c, row: (c ^ (row > 0), c & (row < 2)), jnp.zeros(4, bool), x),
    "unused_result": lambda x: (lax.scan(lambda c, row: (c, row * 2), 0.0, x), x)[1],
    "small_format": lambda x: lax.scan(lambda c, row: (c + row, c * row), x[0] * 0, x),
    "small_format_scalars": lambda x: lax.scan(lambda c, v: (c + v, c * v), x[0, 0] * 0, x.ravel()),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_loops_and_choices(name: str) -> None:
    expect_words(PROGRAMS[name], X.astype(jnp.bfloat16) if name.startswith("small_format") else X)


def test_loops_that_end_by_data() -> None:
    expect_words(collatz, np.int32(27))
    expect_words(collatz, np.int32(1))
    expect_words(newton, np.float32(2))


def test_an_ode_step_by_a_while_loop() -> None:
    def step(state: Any) -> Any:
        t, y, h = state
        k1 = -y * jnp.float32(0.5)
        k2 = -(y + h * k1) * jnp.float32(0.5)
        return t + h, y + h * (k1 + k2) * jnp.float32(0.5), h

    expect_words(lambda y: lax.while_loop(lambda s: s[0] < 1, step, (jnp.float32(0), y, jnp.float32(0.125))), X[0])


def test_a_beam_like_search() -> None:
    def search(logits: Any) -> Any:
        def body(state: Any) -> Any:
            step, scores, tokens = state
            total = scores[:, None] + logits[step][None, :]
            best, flat = lax.top_k(total.reshape(-1), 2)
            tokens = tokens[flat // 4].at[:, step].set(flat % 4)
            return step + 1, best, tokens

        start = jnp.int32(0), jnp.array([0.0, -1000.0], jnp.float32), jnp.zeros((2, 3), jnp.int32)
        return lax.while_loop(lambda s: s[0] < 3, body, start)

    expect_words(search, X)


def test_gradients_of_a_recurrent_loss_are_close() -> None:
    def loss(w: Any, x: Any) -> Any:
        cell = lambda h, row: (jnp.tanh(row @ w + h), h.sum())  # noqa: E731
        h, sums = lax.scan(cell, jnp.zeros(2), x)
        return jnp.sum(h) + jnp.mean(sums)

    expect_ulps(64, jax.value_and_grad(loss), W, X / 16)


def test_the_operations_and_their_regions() -> None:
    artifact = capture.export(running, X)
    assert artifact["version"] == 3
    (node,) = [node for node in artifact["nodes"] if node["op"] == "scan"]
    assert node["attrs"] == {"length": 3, "num_consts": 0, "num_carry": 1}
    assert [result["shape"] for result in node["results"]] == [[4], [3, 4]]
    (region,) = node["regions"]
    assert [n["op"] for n in region["nodes"]] == ["input", "input", "constant", "broadcast_in_dim", "multiply", "add"]
    assert {n["source"]["line"] for n in region["nodes"] if "source" in n} == {line_of(running, "c * 0.5")}
    assert artifact["output_ids"] == [node["id"], [node["id"], 1]]
    assert ops(capture.export(collatz, np.int32(6))) == ["while"]
    assert ops(capture.export(PROGRAMS["cond"], X))[-1] == "case"


def line_of(fn: Callable[..., Any], text: str) -> int:
    lines, start = inspect.getsourcelines(fn)
    return start + next(k for k, line in enumerate(lines) if text in line)


def test_a_loops_trace_is_that_of_the_outer_body() -> None:
    artifact = capture.export(running, X, trace=True)
    values = [entry["value"] for entry in artifact["samples"][0]["trace"]]
    (node,) = [node for node in artifact["nodes"] if node["op"] == "scan"]
    assert values[-2:] == [node["id"], [node["id"], 1]]
    checked(artifact)


def test_a_loop_run_the_wrong_way_is_seen() -> None:
    artifact = capture.export(running, X)
    (node,) = [node for node in artifact["nodes"] if node["op"] == "scan"]
    node["attrs"]["reverse"] = True
    graph = checked(artifact)
    got = evaluate(graph.body, graph.samples[0].inputs)
    assert (got[0].words != graph.samples[0].outputs[0].words).any()


def test_compiled_outputs_agree_within_the_rounding_of_fused_arithmetic() -> None:
    for got, want in outputs(rnn, X, compile=True):
        np.testing.assert_allclose(got.to_numpy(), want.to_numpy(), rtol=1e-6)


def test_effects_in_a_body_are_refused_by_name() -> None:
    def body(c: Any, row: Any) -> Any:
        jax.debug.print("{}", c)
        return c + row, None

    with pytest.raises(capture.UnsupportedError, match=r"debug_\w+.*in the body of scan"):
        capture.export(lambda x: lax.scan(body, jnp.zeros(4), x), X)
