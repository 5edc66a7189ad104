"""Models, solvers and densities in plain JAX as people write them."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from bench.zoo import model


def normal(*shape: int, seed: int = 0, dtype: Any = jnp.float32) -> Any:
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape), dtype)


def dense(sizes: list[int], seed: int = 0, dtype: Any = jnp.float32) -> list[Any]:
    pairs = itertools.pairwise(sizes)
    return [
        (normal(a, b, seed=seed + k, dtype=dtype) / math.sqrt(a), jnp.zeros(b, dtype)) for k, (a, b) in enumerate(pairs)
    ]


def mlp(p: Any, x: Any) -> Any:
    for w, b in p[:-1]:
        x = jnp.tanh(x @ w + b)
    return x @ p[-1][0] + p[-1][1]


def cross_entropy(logits: Any, labels: Any) -> Any:
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1))


def _sgd(dtype: Any, name: str) -> None:
    @model("jax", name)
    def make() -> tuple[Any, ...]:
        def step(p: Any, x: Any, y: Any) -> Any:
            loss, g = jax.value_and_grad(lambda p: cross_entropy(mlp(p, x), y))(p)
            return jax.tree.map(lambda a, b: a - 0.1 * b, p, g), loss

        return step, (dense([4, 8, 3], dtype=dtype), normal(6, 4, dtype=dtype), jnp.array([0, 1, 2, 1, 0, 2]))


_sgd(jnp.float32, "mlp_step")
_sgd(jnp.bfloat16, "mlp_step_bfloat16")
_sgd(jnp.float16, "mlp_step_float16")


@model("jax")
def rnn_scan() -> tuple[Any, ...]:
    def loss(p: Any, xs: Any) -> Any:
        def cell(h: Any, x: Any) -> Any:
            h = jnp.tanh(x @ p["wx"] + h @ p["wh"])
            return h, h

        return jnp.sum(lax.scan(cell, jnp.zeros(4), xs)[1] ** 2)

    return jax.value_and_grad(loss), ({"wx": normal(3, 4), "wh": normal(4, 4, seed=1) / 2}, normal(6, 3, seed=2))


@model("jax")
def lstm_scan() -> tuple[Any, ...]:
    def run(w: Any, xs: Any) -> Any:
        def cell(state: Any, x: Any) -> Any:
            h, c = state
            i, f, g, o = jnp.split(jnp.concatenate([x, h], -1) @ w, 4, -1)
            c = jax.nn.sigmoid(f + 1) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        return lax.scan(jax.checkpoint(cell), (jnp.zeros((2, 4)), jnp.zeros((2, 4))), xs, reverse=True)

    return run, (normal(7, 16) / 2, normal(5, 2, 3, seed=1))


def block(p: Any, x: Any, mask: Any) -> Any:
    def norm(x: Any, g: Any) -> Any:
        return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * g

    b, t, d = x.shape
    q, k, v = (z.reshape(b, t, 2, d // 2) for z in jnp.split(norm(x, p["g1"]) @ p["qkv"], 3, -1))
    scores = jnp.einsum("bthd,bshd->bhts", q, k) / jnp.sqrt(d / 2)
    weights = jax.nn.softmax(jnp.where(mask, scores, -1e30), -1)
    x = x + jnp.einsum("bhts,bshd->bthd", weights, v).reshape(b, t, d) @ p["out"]
    return x + jax.nn.gelu(norm(x, p["g2"]) @ p["up"]) @ p["down"]


def transformer_parameters(layers: int = 2, d: int = 8) -> Any:
    def one(k: int) -> Any:
        return {
            "g1": jnp.ones(d),
            "g2": jnp.ones(d),
            "qkv": normal(d, 3 * d, seed=k) / 3,
            "out": normal(d, d, seed=k + 1) / 3,
            "up": normal(d, 2 * d, seed=k + 2) / 3,
            "down": normal(2 * d, d, seed=k + 3) / 3,
        }

    return {"words": normal(20, d, seed=9), "layers": jax.tree.map(lambda *x: jnp.stack(x), *map(one, range(layers)))}


def transformer(p: Any, ids: Any) -> Any:
    t = ids.shape[1]
    mask = jnp.tril(jnp.ones((t, t), bool))
    x = p["words"][ids] + jnp.sin(jnp.arange(t)[:, None] / 10.0 ** jnp.arange(8))
    x, _ = lax.scan(lambda x, layer: (block(layer, x, mask), None), x, p["layers"])
    return x @ p["words"].T


@model("jax")
def transformer_scan() -> tuple[Any, ...]:
    return transformer, (transformer_parameters(), jnp.arange(12).reshape(2, 6) % 20)


@model("jax")
def transformer_step() -> tuple[Any, ...]:
    def step(p: Any, m: Any, ids: Any) -> Any:
        def loss(p: Any) -> Any:
            logits = transformer(p, ids[:, :-1])
            return cross_entropy(logits.reshape(-1, 20), ids[:, 1:].reshape(-1))

        value, g = jax.value_and_grad(loss)(p)
        m = jax.tree.map(lambda m, g: 0.9 * m + g, m, g)
        return jax.tree.map(lambda p, m: p - 0.01 * m, p, m), m, value

    p = transformer_parameters()
    return step, (p, jax.tree.map(jnp.zeros_like, p), jnp.arange(12).reshape(2, 6) % 20)


@model("jax")
def cached_decoding() -> tuple[Any, ...]:
    def step(w: Any, x: Any, keys: Any, values: Any, place: Any) -> Any:
        q, k, v = jnp.split(x @ w, 3)
        keys = lax.dynamic_update_slice(keys, k[None], (place, 0))
        values = values.at[place].set(v)
        scores = jnp.where(jnp.arange(6) <= place, keys @ q / 2, -jnp.inf)
        return jax.nn.softmax(scores) @ values, keys, values

    return step, (normal(4, 12), normal(4, seed=1), jnp.zeros((6, 4)), jnp.zeros((6, 4)), jnp.int32(2))


@model("jax")
def convolutional_step() -> tuple[Any, ...]:
    def loss(p: Any, x: Any, y: Any) -> Any:
        x = lax.conv_general_dilated(x, p["c"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        mean, var = x.mean((0, 1, 2)), x.var((0, 1, 2))
        x = jax.nn.relu((x - mean) / jnp.sqrt(var + 1e-5))
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return cross_entropy(x.reshape(len(x), -1) @ p["d"], y)

    p = {"c": normal(3, 3, 2, 4) / 3, "d": normal(64, 3, seed=1) / 8}
    return jax.grad(loss), (p, normal(2, 8, 8, 2, seed=2), jnp.array([0, 2]))


@model("jax")
def vae() -> tuple[Any, ...]:
    def loss(p: Any, key: Any, x: Any) -> Any:
        mean, log_variance = jnp.split(mlp(p[0], x), 2, -1)
        z = mean + jnp.exp(0.5 * log_variance) * jax.random.normal(key, mean.shape)
        logits = mlp(p[1], z)
        rebuilt = jnp.sum(jax.nn.softplus(logits) - logits * x)
        return rebuilt - 0.5 * jnp.sum(1 + log_variance - mean**2 - jnp.exp(log_variance))

    return jax.value_and_grad(loss), (
        (dense([6, 8, 4]), dense([2, 8, 6], 5)),
        jax.random.key(0),
        jax.nn.sigmoid(normal(3, 6)),
    )


@model("jax")
def normalizing_flow() -> tuple[Any, ...]:
    def log_prob(ps: Any, x: Any) -> Any:
        total = 0.0
        for p in ps:
            a, b = jnp.split(x, 2, -1)
            shift, scale = jnp.split(mlp(p, a), 2, -1)
            x, total = jnp.concatenate([b * jnp.exp(scale) + shift, a], -1), total + scale.sum(-1)
        return total + jax.scipy.stats.norm.logpdf(x).sum(-1)

    return jax.value_and_grad(lambda p, x: -log_prob(p, x).mean()), (
        [dense([2, 8, 4], k) for k in (0, 7)],
        normal(5, 4),
    )


@model("jax")
def residual_flow_trace() -> tuple[Any, ...]:
    def run(p: Any, x: Any) -> Any:
        def field(x: Any) -> Any:
            return mlp(p, x)

        return jax.vmap(lambda x: (field(x), jnp.linalg.slogdet(jnp.eye(3) + 0.1 * jax.jacfwd(field)(x))[1]))(x)

    return run, (dense([3, 8, 3]), normal(4, 3))


@model("jax")
def runge_kutta() -> tuple[Any, ...]:
    def run(y: Any, dt: Any) -> Any:
        def f(y: Any) -> Any:
            a, b, c = y
            return jnp.array([10 * (b - a), a * (28 - c) - b, a * b - 8 / 3 * c])

        def step(_: Any, y: Any) -> Any:
            k1 = f(y)
            k2 = f(y + dt / 2 * k1)
            k3 = f(y + dt / 2 * k2)
            return y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + f(y + dt * k3))

        return lax.fori_loop(0, 20, step, y)

    return run, (jnp.array([1.0, 1.0, 1.0]), jnp.float32(0.01))


@model("jax")
def adaptive_ode() -> tuple[Any, ...]:
    """Heun with a step chosen by the error, in a while loop."""

    def run(y: Any, end: Any) -> Any:
        def f(y: Any) -> Any:
            return jnp.array([y[1], (1 - y[0] ** 2) * y[1] - y[0]])

        def more(s: Any) -> Any:
            return s[1] < end

        def step(s: Any) -> Any:
            y, t, h, count = s
            h = jnp.minimum(h, end - t)
            k1 = f(y)
            k2 = f(y + h * k1)
            error = jnp.max(jnp.abs(h * (k2 - k1) / 2))
            good = error < 1e-2
            y, t = jnp.where(good, y + h * (k1 + k2) / 2, y), jnp.where(good, t + h, t)
            return y, t, h * jnp.clip(0.9 * jnp.sqrt(1e-2 / (error + 1e-12)), 0.3, 2.0), count + 1

        return lax.while_loop(more, step, (y, jnp.float32(0), jnp.float32(0.1), 0))

    return run, (jnp.array([2.0, 0.0]), jnp.float32(1.0))


@model("jax")
def odeint() -> tuple[Any, ...]:
    from jax.experimental.ode import odeint as solve

    def run(y: Any, t: Any, a: Any) -> Any:
        return solve(lambda y, t, a: -a * y, y, t, a, rtol=1e-3, atol=1e-3)

    return run, (jnp.array([1.0, 2.0]), jnp.linspace(0, 1, 4), jnp.float32(1.5))


@model("jax")
def hmc_step() -> tuple[Any, ...]:
    def run(key: Any, x: Any) -> Any:
        def energy(x: Any) -> Any:
            return 0.5 * jnp.sum(x**2) + jnp.sum((x[1:] - x[:-1] ** 2) ** 2)

        first, second = jax.random.split(key)
        p = jax.random.normal(first, x.shape)
        q, r = x, p - 0.05 * jax.grad(energy)(x)
        for k in range(5):
            q = q + 0.1 * r
            r = r - (0.1 if k < 4 else 0.05) * jax.grad(energy)(q)
        change = energy(x) + 0.5 * p @ p - energy(q) - 0.5 * r @ r
        return jnp.where(jnp.log(jax.random.uniform(second)) < change, q, x)

    return run, (jax.random.key(0), normal(4) / 2)


@model("jax")
def metropolis_ising() -> tuple[Any, ...]:
    def run(key: Any, spins: Any) -> Any:
        def sweep(spins: Any, key: Any) -> Any:
            parity = (jnp.arange(6)[:, None] + jnp.arange(6)) % 2
            draws = jax.random.uniform(key, (2, 6, 6))
            for k in range(2):
                near = sum(jnp.roll(spins, s, a) for s in (1, -1) for a in (0, 1))
                flip = (draws[k] < jnp.exp(-0.8 * spins * near)) & (parity == k)
                spins = jnp.where(flip, -spins, spins)
            return spins, spins.mean()

        return lax.scan(sweep, spins, jax.random.split(key, 5))

    return run, (jax.random.key(0), jnp.ones((6, 6)))


@model("jax")
def kalman_filter() -> tuple[Any, ...]:
    def run(ys: Any, a: Any, q: Any, r: Any) -> Any:
        def step(state: Any, y: Any) -> Any:
            m, p = state
            m, p = a @ m, a @ p @ a.T + q
            s = p[:1, :1] + r
            gain = jnp.linalg.solve(s, p[:1]).T
            error = y - m[:1]
            score = -0.5 * (error @ jnp.linalg.solve(s, error) + jnp.linalg.slogdet(2 * jnp.pi * s)[1])
            return (m + gain @ error, p - gain @ s @ gain.T), (m, score)

        return lax.scan(step, (jnp.zeros(2), jnp.eye(2)), ys)

    return run, (normal(6, 1), jnp.array([[1.0, 0.1], [0.0, 1.0]]), 0.01 * jnp.eye(2), 0.1 * jnp.eye(1))


@model("jax")
def gaussian_process() -> tuple[Any, ...]:
    def evidence(scale: Any, x: Any, y: Any) -> Any:
        k = jnp.exp(-0.5 * jnp.sum((x[:, None] - x[None]) ** 2, -1) / scale**2) + 0.1 * jnp.eye(len(x))
        factor = jnp.linalg.cholesky(k)
        alpha = jax.scipy.linalg.cho_solve((factor, True), y)
        return -0.5 * y @ alpha - jnp.log(jnp.diag(factor)).sum()

    return jax.value_and_grad(evidence), (jnp.float32(1.3), normal(6, 2), normal(6, seed=1))


@model("jax")
def particle_filter() -> tuple[Any, ...]:
    def run(key: Any, ys: Any) -> Any:
        def step(x: Any, given: Any) -> Any:
            key, y = given
            first, second = jax.random.split(key)
            x = 0.9 * x + 0.3 * jax.random.normal(first, x.shape)
            weights = jax.nn.softmax(-0.5 * (y - x) ** 2 / 0.2)
            grid = (jnp.arange(8) + jax.random.uniform(second)) / 8
            chosen = jnp.clip(jnp.searchsorted(jnp.cumsum(weights), grid), 0, 7)
            return x[chosen], jnp.sum(weights * x)

        return lax.scan(step, jnp.zeros(8), (jax.random.split(key, 5), ys))

    return run, (jax.random.key(0), normal(5))


@model("jax")
def n_body() -> tuple[Any, ...]:
    def run(x: Any, v: Any, mass: Any) -> Any:
        def force(x: Any) -> Any:
            d = x[None] - x[:, None]
            r2 = jnp.sum(d**2, -1) + 0.01
            return jnp.sum(mass[None, :, None] * d / r2[..., None] ** 1.5, 1)

        def step(state: Any, _: Any) -> Any:
            x, v = state
            v = v + 0.005 * force(x)
            x = x + 0.01 * v
            return (x, v + 0.005 * force(x)), 0.5 * jnp.sum(mass[:, None] * v**2)

        return lax.scan(step, (x, v), None, 10)

    return run, (normal(4, 3), normal(4, 3, seed=1), jnp.array([1.0, 2.0, 0.5, 1.5]))


@model("jax")
def molecular_dynamics() -> tuple[Any, ...]:
    def energy(x: Any) -> Any:
        d = x[:, None] - x[None]
        d = d - 3.0 * jnp.round(d / 3.0)
        r2 = jnp.sum(d**2, -1) + jnp.eye(len(x))
        inverse = jnp.where(jnp.eye(len(x)) > 0, 0.0, 1 / r2) ** 3
        return 2 * jnp.sum(inverse**2 - inverse)

    grid = jnp.stack(jnp.meshgrid(jnp.arange(2.0), jnp.arange(2.0), jnp.arange(2.0)), -1).reshape(-1, 3) * 1.4
    return jax.value_and_grad(energy), (grid + 0.05 * normal(8, 3),)


@model("jax")
def heat_equation() -> tuple[Any, ...]:
    """Implicit steps by conjugate gradients."""

    def run(u: Any) -> Any:
        def apply(u: Any) -> Any:
            return u - 0.1 * (jnp.roll(u, 1) + jnp.roll(u, -1) - 2 * u)

        return lax.fori_loop(0, 3, lambda _, u: jax.scipy.sparse.linalg.cg(apply, u, maxiter=5)[0], u)

    return run, (normal(12),)


@model("jax")
def spectral_navier_stokes() -> tuple[Any, ...]:
    def run(w: Any) -> Any:
        k = jnp.fft.fftfreq(8, 1 / 8)
        kx, ky = jnp.meshgrid(k, k, indexing="ij")
        laplace = kx**2 + ky**2
        h = jnp.fft.fft2(w)
        psi = h / jnp.where(laplace == 0, 1.0, laplace)
        u, v = jnp.fft.ifft2(1j * ky * psi).real, -jnp.fft.ifft2(1j * kx * psi).real
        advect = jnp.fft.fft2(u * jnp.fft.ifft2(1j * kx * h).real + v * jnp.fft.ifft2(1j * ky * h).real)
        return jnp.fft.ifft2((h - 0.01 * advect) / (1 + 0.0001 * laplace)).real

    return run, (normal(8, 8),)


@model("jax")
def pinn() -> tuple[Any, ...]:
    def loss(p: Any, points: Any) -> Any:
        def u(t: Any, x: Any) -> Any:
            return mlp(p, jnp.array([t, x]))[0]

        def residual(z: Any) -> Any:
            t, x = z
            return jax.grad(u)(t, x) + u(t, x) * jax.grad(u, 1)(t, x) - 0.01 * jax.grad(jax.grad(u, 1), 1)(t, x)

        return jnp.mean(jax.vmap(residual)(points) ** 2)

    return jax.value_and_grad(loss), (dense([2, 8, 1]), normal(5, 2))


@model("jax")
def newton_hessian() -> tuple[Any, ...]:
    def f(x: Any) -> Any:
        return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    def run(x: Any) -> Any:
        return lax.fori_loop(0, 3, lambda _, x: x - jnp.linalg.solve(jax.hessian(f)(x), jax.grad(f)(x)), x)

    return run, (jnp.array([1.2, 1.1, 0.9]),)


@model("jax")
def bfgs() -> tuple[Any, ...]:
    from jax.scipy.optimize import minimize

    def run(x: Any) -> Any:
        return minimize(
            lambda x: jnp.sum((x - jnp.array([1.0, 2.0])) ** 4 + x**2), x, method="BFGS", options={"maxiter": 3}
        ).x

    return run, (jnp.zeros(2),)


@model("jax")
def graph_network() -> tuple[Any, ...]:
    def run(p: Any, x: Any, senders: Any, receivers: Any) -> Any:
        for w in p:
            message = jax.nn.relu(jnp.concatenate([x[senders], x[receivers]], -1) @ w)
            total = jax.ops.segment_sum(message, receivers, 5)
            count = jax.ops.segment_sum(jnp.ones(len(receivers)), receivers, 5)
            best = jax.ops.segment_max(message, receivers, 5)
            x = x + total / jnp.maximum(count, 1)[:, None] + jnp.where(jnp.isfinite(best), best, 0)
        return x

    edges = jnp.array([0, 1, 2, 3, 4, 0]), jnp.array([1, 2, 3, 4, 0, 2])
    return run, ([normal(6, 3), normal(6, 3, seed=1)], normal(5, 3, seed=2), *edges)


@model("jax")
def mixture_em() -> tuple[Any, ...]:
    def run(x: Any, means: Any, variances: Any, weights: Any) -> Any:
        def step(state: Any, _: Any) -> Any:
            m, v, w = state
            logs = -0.5 * ((x[:, None] - m) ** 2 / v + jnp.log(2 * jnp.pi * v)) + jnp.log(w)
            total = jax.scipy.special.logsumexp(logs, 1)
            r = jnp.exp(logs - total[:, None])
            n = r.sum(0)
            m = (r * x[:, None]).sum(0) / n
            return (m, (r * (x[:, None] - m) ** 2).sum(0) / n + 1e-3, n / len(x)), total.sum()

        return lax.scan(step, (means, variances, weights), None, 4)

    return run, (normal(12), jnp.array([-1.0, 1.0]), jnp.ones(2), jnp.full(2, 0.5))


@model("jax")
def viterbi() -> tuple[Any, ...]:
    def run(logits: Any, moves: Any) -> Any:
        def forward(best: Any, row: Any) -> Any:
            scores = best[:, None] + moves
            return scores.max(0) + row, scores.argmax(0)

        best, places = lax.scan(forward, logits[0], logits[1:])
        last = best.argmax()
        return lax.scan(lambda state, row: (row[state], state), last, places, reverse=True), best.max()

    return run, (normal(6, 4), normal(4, 4, seed=1))


@model("jax")
def sinkhorn() -> tuple[Any, ...]:
    def loss(cost: Any) -> Any:
        def step(_: Any, f: Any) -> Any:
            g = -jax.nn.logsumexp(-cost / 0.1 + f[:, None], 0)
            return -jax.nn.logsumexp(-cost / 0.1 + g, 1)

        f = lax.fori_loop(0, 10, step, jnp.zeros(4))
        return jnp.sum(jax.nn.softmax(-cost / 0.1 + f[:, None], 1) * cost)

    return jax.grad(loss), (jnp.abs(normal(4, 5)),)


@model("jax")
def diffusion_sampler() -> tuple[Any, ...]:
    def run(p: Any, key: Any, x: Any) -> Any:
        betas = jnp.linspace(1e-3, 0.05, 8)
        kept = jnp.cumprod(1 - betas)

        def step(x: Any, given: Any) -> Any:
            k, key = given
            guess = mlp(p, jnp.concatenate([x, jnp.full((3, 1), k / 8)], -1))
            x = (x - betas[k] / jnp.sqrt(1 - kept[k]) * guess) / jnp.sqrt(1 - betas[k])
            return x + jnp.where(k > 0, jnp.sqrt(betas[k]), 0) * jax.random.normal(key, x.shape), None

        return lax.scan(step, x, (jnp.arange(8)[::-1], jax.random.split(key, 8)))[0]

    return run, (dense([3, 8, 2]), jax.random.key(0), normal(3, 2))


@model("jax")
def ppo_loss() -> tuple[Any, ...]:
    def loss(p: Any, states: Any, actions: Any, old: Any, rewards: Any, values: Any) -> Any:
        def back(g: Any, given: Any) -> Any:
            (delta,) = given
            g = delta + 0.95 * g
            return g, g

        _, gains = lax.scan(back, 0.0, (rewards + 0.99 * jnp.append(values[1:], 0.0) - values,), reverse=True)
        gains = (gains - gains.mean()) / (gains.std() + 1e-8)
        logs = jax.nn.log_softmax(mlp(p, states))
        ratio = jnp.exp(logs[jnp.arange(5), actions] - old)
        return -jnp.minimum(ratio * gains, jnp.clip(ratio, 0.8, 1.2) * gains).mean()

    args = normal(5, 3), jnp.array([0, 1, 1, 0, 1]), normal(5, seed=3), normal(5, seed=4), normal(5, seed=5)
    return jax.grad(loss), (dense([3, 8, 2]), *args)


@model("jax")
def log_densities() -> tuple[Any, ...]:
    from jax.scipy import stats

    def run(x: Any, a: Any, b: Any) -> Any:
        u = jax.nn.sigmoid(x)
        return (
            *(stats.beta.logpdf(u, a, b), stats.gamma.logpdf(a, b), stats.t.logpdf(x, a), stats.cauchy.logpdf(x)),
            *(stats.poisson.logpmf(jnp.round(a * 3), b), stats.laplace.cdf(x), stats.norm.ppf(u)),
            *(stats.dirichlet.logpdf(jax.nn.softmax(x), a), stats.multivariate_normal.logpdf(x, a, jnp.diag(b))),
        )

    return run, (normal(4), jnp.abs(normal(4, seed=1)) + 0.5, jnp.abs(normal(4, seed=2)) + 0.5)


@model("jax")
def random_draws() -> tuple[Any, ...]:
    def run(key: Any) -> Any:
        keys = jax.random.split(key, 10)
        return (
            *(jax.random.gamma(keys[0], 2.5, (4,)), jax.random.beta(keys[1], 2.0, 3.0, (3,))),
            *(jax.random.permutation(keys[2], 8), jax.random.choice(keys[3], 10, (4,), False)),
            *(
                jax.random.categorical(keys[4], jnp.arange(4.0), shape=(5,)),
                jax.random.truncated_normal(keys[5], -1, 1, (4,)),
            ),
            *(jax.random.poisson(keys[6], 3.0, (4,)), jax.random.dirichlet(keys[7], jnp.ones(3))),
            *(jax.random.bernoulli(keys[8], 0.3, (6,)), jax.random.randint(keys[9], (4,), 0, 17)),
        )

    return run, (jax.random.key(0),)


@model("jax")
def associative_recurrence() -> tuple[Any, ...]:
    def run(a: Any, b: Any) -> Any:
        return lax.associative_scan(lambda x, y: (x[0] * y[0], y[0] * x[1] + y[1]), (a, b))[1]

    return jax.value_and_grad(lambda a, b: run(a, b).sum(), (0, 1)), (
        jax.nn.sigmoid(normal(8, 3)),
        normal(8, 3, seed=1),
    )


@model("jax")
def implicit_layer() -> tuple[Any, ...]:
    """A fixed point with its gradient by a custom rule."""

    @functools.partial(jax.custom_vjp, nondiff_argnums=())
    def fixed(w: Any, x: Any) -> Any:
        return lax.while_loop(
            lambda s: (jnp.max(jnp.abs(s[0] - s[1])) > 1e-5) & (s[2] < 50),
            lambda s: (jnp.tanh(w @ s[0] + x), s[0], s[2] + 1),
            (jnp.zeros(4), jnp.ones(4), 0),
        )[0]

    def forward(w: Any, x: Any) -> Any:
        z = fixed(w, x)
        return z, (w, x, z)

    def backward(kept: Any, g: Any) -> Any:
        w, x, z = kept
        _, pull = jax.vjp(lambda w, x, z: jnp.tanh(w @ z + x), w, x, z)
        u = lax.fori_loop(0, 20, lambda _, u: g + pull(u)[2], g)
        return pull(u)[:2]

    fixed.defvjp(forward, backward)
    return jax.grad(lambda w, x: fixed(w, x).sum(), (0, 1)), (normal(4, 4) / 6, normal(4, seed=1))


@model("jax")
def ekf_and_svd() -> tuple[Any, ...]:
    def run(a: Any) -> Any:
        u, s, vt = jnp.linalg.svd(a, full_matrices=False)
        q, r = jnp.linalg.qr(a)
        return (
            s,
            (u[:, :2] * s[:2]) @ vt[:2],
            q @ r,
            jnp.linalg.pinv(a),
            jnp.linalg.eigvalsh(a.T @ a),
            jax.scipy.linalg.expm(a.T @ a / 9),
        )

    return run, (normal(5, 3),)


@model("jax")
def sorting_and_sets() -> tuple[Any, ...]:
    def run(x: Any) -> Any:
        values, places = lax.top_k(x, 3)
        histogram = jnp.histogram(x, 4, (-2, 2))[0]
        return (
            values,
            places,
            jnp.median(x),
            jnp.quantile(x, 0.3),
            jnp.argsort(x),
            histogram,
            jnp.unique(jnp.round(x), size=6),
        )

    return run, (normal(9),)


@model("jax")
def batched_switch() -> tuple[Any, ...]:
    def run(kinds: Any, x: Any) -> Any:
        def one(kind: Any, x: Any) -> Any:
            return lax.switch(kind, [jnp.sin, jnp.exp, lambda x: x**3], x)

        return jax.vmap(one)(kinds, x), lax.cond(x.sum() > 0, lambda x: x * 2, lambda x: -x, x), lax.map(jnp.tanh, x)

    return run, (jnp.array([0, 2, 1, 5]), normal(4))
