"""Sequence models, decoding, sparse layers and gradients in plain JAX, in the style of published code."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.ad_checkpoint import checkpoint_name

from bench.zoo import model
from bench.zoo.jax_written import dense, mlp, normal


def of_dtypes(dtypes: dict[str, Any]) -> Any:
    """Add the decorated function, which takes a dtype, once for each of ``dtypes``, whose keys end the name."""

    def register(build: Any) -> Any:
        for ending, dtype in dtypes.items():
            model("jax", build.__name__ + ending)(functools.partial(build, dtype))
        return build

    return register


F32_BF16 = {"": jnp.float32, "_bfloat16": jnp.bfloat16}
ALL_FLOATS = F32_BF16 | {"_float16": jnp.float16}


@model("jax")
def s5_layer() -> tuple[Any, ...]:
    """A diagonal complex state space model, by an associative scan, with its gradient."""

    def apply(p: Any, u: Any) -> Any:
        lam, step = -jnp.exp(p["log_decay"]) + 1j * p["frequency"], jnp.exp(p["log_step"])
        a = jnp.exp(lam * step)
        b = ((a - 1) / lam)[:, None] * (p["b_re"] + 1j * p["b_im"])

        def join(x: Any, y: Any) -> Any:
            return y[0] * x[0], y[0] * x[1] + y[1]

        bu = jax.vmap(lambda u: b @ u.astype(b.dtype))(u)
        _, xs = lax.associative_scan(join, (jnp.broadcast_to(a, bu.shape), bu))
        return jax.nn.gelu(2 * ((p["c_re"] + 1j * p["c_im"]) @ xs[..., None])[..., 0].real + p["d"] * u)

    names = {"b_re": (4, 3), "b_im": (4, 3), "c_re": (3, 4), "c_im": (3, 4), "d": (3,), "log_decay": (4,)}
    p = {name: normal(*shape, seed=k) / 2 for k, (name, shape) in enumerate(names.items())}
    p |= {"frequency": jnp.arange(1.0, 5.0), "log_step": jnp.log(jnp.full(4, 0.1))}
    return jax.value_and_grad(lambda p, u: jnp.mean(apply(p, u) ** 2)), (p, normal(9, 3, seed=9))


@of_dtypes(F32_BF16)
def mamba_block(dtype: Any) -> tuple[Any, ...]:
    """Causal depthwise convolution, selective scan and gate."""

    def apply(p: Any, x: Any) -> Any:
        h, gate = jnp.split(x @ p["in"], 2, -1)
        h = lax.conv_general_dilated(
            h, p["conv"], (1,), [(2, 0)], dimension_numbers=("NWC", "WIO", "NWC"), feature_group_count=h.shape[-1]
        )
        h = jax.nn.silu(h)
        step = jax.nn.softplus(h @ p["dt"] + p["dt_bias"])
        b, c = jnp.split(h @ p["bc"], 2, -1)
        a = jnp.exp(step[..., None] * -jnp.exp(p["log_a"]))
        bx = step[..., None] * b[..., None, :] * h[..., None]

        def cell(s: Any, now: Any) -> Any:
            a, bx, c = now
            s = a * s + bx
            return s, jnp.einsum("bdn,bn->bd", s, c)

        swapped = [jnp.moveaxis(z, 1, 0) for z in (a, bx, c)]
        _, ys = lax.scan(cell, jnp.zeros_like(bx[:, 0]), tuple(swapped))
        return ((jnp.moveaxis(ys, 0, 1) + h * p["skip"]) * jax.nn.silu(gate)) @ p["out"]

    shapes = {"in": (4, 12), "conv": (3, 1, 6), "dt": (6, 6), "bc": (6, 4), "out": (6, 4), "log_a": (6, 2)}
    p = {name: normal(*shape, seed=k, dtype=dtype) / 2 for k, (name, shape) in enumerate(shapes.items())}
    p |= {"dt_bias": jnp.full(6, -1, dtype), "skip": jnp.ones(6, dtype)}
    loss = jax.value_and_grad(lambda p, x: jnp.sum(apply(p, x) ** 2))
    return loss, (p, normal(2, 7, 4, seed=8, dtype=dtype))


@of_dtypes(F32_BF16)
def experts_with_capacity(dtype: Any) -> tuple[Any, ...]:
    """Two of four experts for each token, dispatched by one-hot products, with the loss that balances them."""

    def apply(p: Any, x: Any) -> Any:
        probabilities = jax.nn.softmax((x @ p["gate"]).astype(jnp.float32))
        weights, chosen = lax.top_k(probabilities, 2)
        weights = weights / weights.sum(-1, keepdims=True)
        choice = jax.nn.one_hot(chosen, 4, dtype=jnp.int32).transpose(1, 0, 2).reshape(-1, 4)
        place = (jnp.cumsum(choice, 0) * choice - 1).max(-1)
        slots = jax.nn.one_hot(place, 3, dtype=dtype)  # what is beyond the capacity is dropped
        dispatch = (choice[..., None].astype(dtype) * slots[:, None]).reshape(2, -1, 4, 3)
        inside = jnp.einsum("ktec,td->ecd", dispatch, x)
        made = jnp.einsum("ech,ehd->ecd", jax.nn.gelu(jnp.einsum("ecd,edh->ech", inside, p["up"])), p["down"])
        combine = dispatch * weights.T[..., None, None].astype(dtype)
        balance = 4 * jnp.sum(probabilities.mean(0) * jax.nn.one_hot(chosen[:, 0], 4).mean(0))
        return jnp.einsum("ktec,ecd->td", combine, made), balance

    def loss(p: Any, x: Any) -> Any:
        y, balance = apply(p, x)
        return jnp.mean(jnp.square(y.astype(jnp.float32))) + 0.01 * balance

    shapes = {"gate": (4, 4), "up": (4, 4, 8), "down": (4, 8, 4)}
    p = {name: normal(*shape, seed=k, dtype=dtype) / 2 for k, (name, shape) in enumerate(shapes.items())}
    return jax.value_and_grad(loss), (p, normal(6, 4, seed=5, dtype=dtype))


@of_dtypes(ALL_FLOATS)
def online_softmax_attention(dtype: Any) -> tuple[Any, ...]:
    """Causal attention a tile of the keys at a time, as flash attention does it."""

    def run(q: Any, k: Any, v: Any) -> Any:
        t, d = q.shape
        rows = jnp.arange(t)[:, None]

        def tile(j: Any, state: Any) -> Any:
            top, total, out = state
            ks, vs = (lax.dynamic_slice_in_dim(z, j * 4, 4) for z in (k, v))
            scores = jnp.dot(q, ks.T, preferred_element_type=jnp.float32) / jnp.sqrt(float(d))
            scores = jnp.where(rows >= j * 4 + jnp.arange(4), scores, -1e30)
            higher = jnp.maximum(top, scores.max(-1))
            weights, scale = jnp.exp(scores - higher[:, None]), jnp.exp(top - higher)
            new = jnp.dot(weights.astype(v.dtype), vs, preferred_element_type=jnp.float32)
            return higher, total * scale + weights.sum(-1), out * scale[:, None] + new

        start = jnp.full(t, -1e30), jnp.zeros(t), jnp.zeros((t, d))
        _, total, out = lax.fori_loop(0, t // 4, tile, start)
        return (out / total[:, None]).astype(q.dtype)

    qkv = [normal(2, 12, 8, seed=k, dtype=dtype) for k in range(3)]
    return jax.vmap(run), tuple(qkv)


@of_dtypes(F32_BF16)
def rotary_grouped_cache(dtype: Any) -> tuple[Any, ...]:
    """A step of decoding: rotary positions, four heads that share two pairs of keys and values, a cache."""

    def rotate(x: Any, place: Any) -> Any:
        angle = place / 10000.0 ** (jnp.arange(0, x.shape[-1], 2) / x.shape[-1])
        a, b = jnp.split(x.astype(jnp.float32), 2, -1)
        sin, cos = jnp.sin(angle), jnp.cos(angle)
        return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1).astype(x.dtype)

    def step(p: Any, cache: Any, place: Any, token: Any) -> Any:
        x = p["words"][token]
        scale = lax.rsqrt(jnp.mean(jnp.square(x.astype(jnp.float32)), -1, keepdims=True) + 1e-6)
        h = (x * scale).astype(dtype) * p["norm"]
        q = rotate((h @ p["q"]).reshape(-1, 4, 4), place)
        k, v = ((h @ p[name]).reshape(-1, 2, 4) for name in "kv")
        cache = {
            "k": lax.dynamic_update_slice(cache["k"], rotate(k, place)[:, None], (0, place, 0, 0)),
            "v": lax.dynamic_update_slice(cache["v"], v[:, None], (0, place, 0, 0)),
        }
        keys, values = (jnp.repeat(cache[name], 2, axis=2) for name in "kv")
        scores = jnp.einsum("bhd,bthd->bht", q, keys, preferred_element_type=jnp.float32) / 2
        scores = jnp.where(jnp.arange(keys.shape[1]) <= place, scores, jnp.finfo(jnp.float32).min)
        mixed = jnp.einsum("bht,bthd->bhd", jax.nn.softmax(scores).astype(dtype), values)
        x = x + mixed.reshape(len(x), -1) @ p["o"]
        x = x + (jax.nn.silu(x @ p["gate"]) * (x @ p["up"])) @ p["down"]
        logits = (x @ p["words"].T).astype(jnp.float32)
        return cache, place + 1, jnp.argmax(logits, -1), logits

    shapes = {"words": (11, 8), "q": (8, 16), "k": (8, 8), "v": (8, 8), "o": (16, 8)}
    shapes |= {"gate": (8, 12), "up": (8, 12), "down": (12, 8)}
    p = {name: normal(*shape, seed=k, dtype=dtype) / 3 for k, (name, shape) in enumerate(shapes.items())}
    p["norm"] = jnp.ones(8, dtype)
    cache = {name: normal(2, 6, 2, 4, seed=ord(name), dtype=dtype) for name in "kv"}
    return step, (p, cache, jnp.int32(3), jnp.array([4, 7]))


@model("jax")
def beam_search() -> tuple[Any, ...]:
    """Beams of a recurrent model in a while loop that ends when all are finished."""

    def run(p: Any, h: Any) -> Any:
        beams, end, most = 3, 0, 6

        def more(s: Any) -> Any:
            return (s["k"] < most) & ~jnp.all(s["done"])

        def step(s: Any) -> Any:
            h = jnp.tanh(p["words"][s["last"]] + s["h"] @ p["w"])
            logs = jax.nn.log_softmax(h @ p["words"].T)
            stay = jnp.where(jnp.arange(7) == end, 0.0, -jnp.inf)
            totals = s["score"][:, None] + jnp.where(s["done"][:, None], stay, logs)
            score, flat = lax.top_k(totals.reshape(-1), beams)
            parent, token = jnp.divmod(flat, 7)
            text = s["text"][parent].at[:, s["k"]].set(token)
            done = s["done"][parent] | (token == end)
            return {"k": s["k"] + 1, "score": score, "h": h[parent], "last": token, "text": text, "done": done}

        start = {"k": 0, "score": jnp.array([0.0, -jnp.inf, -jnp.inf]), "h": jnp.tile(h, (beams, 1))}
        start |= {"last": jnp.ones(beams, int), "text": jnp.zeros((beams, most), int), "done": jnp.zeros(beams, bool)}
        s = lax.while_loop(more, step, start)
        return s["text"], s["score"] / jnp.maximum(s["k"], 1) ** 0.6

    return run, ({"words": normal(7, 5), "w": normal(5, 5, seed=1)}, normal(5, seed=2))


@model("jax")
def long_convolution() -> tuple[Any, ...]:
    """A filter as long as the sequence, applied by real FFTs, with its gradient."""

    def apply(p: Any, u: Any) -> Any:
        n = u.shape[-2]
        t = jnp.linspace(0, 1, n)[:, None]
        h = mlp(p["filter"], jnp.concatenate([t, jnp.sin(t * jnp.arange(1, 3) * jnp.pi)], -1)) * jnp.exp(-3 * t)
        y = jnp.fft.irfft(jnp.fft.rfft(u, 2 * n, axis=-2) * jnp.fft.rfft(h, 2 * n, axis=-2), 2 * n, axis=-2)
        return (y[..., :n, :] + u * p["bias"]) * jax.nn.sigmoid(u)

    p = {"filter": dense([3, 8, 2]), "bias": jnp.ones(2)}
    return jax.value_and_grad(lambda p, u: jnp.mean(apply(p, u) ** 2)), (p, normal(2, 10, 2, seed=4))


@model("jax")
def derivatives() -> tuple[Any, ...]:
    """Jacobians both ways, Hessians, products with them, and a linearisation."""

    def f(x: Any) -> Any:
        return jnp.array([x[0] * jnp.sin(x[1]), jnp.prod(x), jnp.exp(x[2]) / (1 + x[0] ** 2), jnp.hypot(x[1], x[2])])

    def g(x: Any) -> Any:
        return jnp.sum(f(x) ** 2) + jnp.linalg.norm(x)

    def run(x: Any, v: Any) -> Any:
        value, push = jax.linearize(f, x)
        product = jax.jvp(jax.grad(g), (x,), (v,))[1]
        backwards = jax.grad(lambda x: jnp.vdot(jax.grad(g)(x), v))(x)
        third = jax.jacfwd(jax.hessian(g))(x)
        return jax.jacfwd(f)(x), jax.jacrev(f)(x), jax.hessian(g)(x), value, push(v), product, backwards, third

    return run, (jnp.array([0.5, -1.2, 0.8]), jnp.array([1.0, 0.3, -0.7]))


@model("jax")
def rules_of_their_own() -> tuple[Any, ...]:
    """custom_jvp, custom_vjp with arguments that have no gradient, straight-through rounding, closures."""

    @jax.custom_jvp
    def log1pexp(x: Any) -> Any:
        return jnp.log1p(jnp.exp(x))

    @log1pexp.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        return log1pexp(x), (1 - 1 / (1 + jnp.exp(x))) * t

    @functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
    def clipped(limit: float, x: Any) -> Any:
        return x

    clipped.defvjp(lambda limit, x: (x, None), lambda limit, _, g: (jnp.clip(g, -limit, limit),))

    def straight(x: Any) -> Any:
        return x + lax.stop_gradient(jnp.round(x * 8) / 8 - x)

    def loss(w: Any, x: Any) -> Any:
        h = jax.vmap(lambda row: log1pexp(clipped(0.05, straight(w) @ row)))(x)
        return jnp.sum(h**2) + jax.custom_gradient(lambda z: (z.sum(), lambda g: jnp.full(z.shape, 2 * g)))(h)

    def run(w: Any, x: Any) -> Any:
        return jax.value_and_grad(loss)(w, x), jax.vmap(jax.grad(log1pexp))(x[:, 0] * 50)

    return run, (normal(3, 4), normal(5, 4, seed=1))


@model("jax")
def rematerialised() -> tuple[Any, ...]:
    """Checkpoints with policies under a gradient: in layers, and in a scan over them."""
    keep = jax.checkpoint_policies

    def layer(x: Any, w: Any) -> Any:
        h = checkpoint_name(jnp.sin(x @ w), "h")
        return x + jax.nn.silu(h), jnp.mean(h)

    def loss(p: Any, x: Any) -> Any:
        y, means = lax.scan(jax.checkpoint(layer, policy=keep.dots_with_no_batch_dims_saveable), x, p)
        for w in p:
            y, mean = jax.checkpoint(layer, policy=keep.save_only_these_names("h"), prevent_cse=False)(y, w)
        return jnp.sum(y**2) + means.sum() + mean

    return jax.value_and_grad(loss), (normal(2, 4, 4) / 3, normal(3, 4, seed=1))


@model("jax")
def batched_loops() -> tuple[Any, ...]:
    """Loops whose ends differ from row to row, under vmap."""

    def gcd(a: Any, b: Any) -> Any:
        return lax.while_loop(lambda s: s[1] != 0, lambda s: (s[1], s[0] % s[1]), (a, b))[0]

    def root(x: Any) -> Any:
        def step(s: Any) -> Any:
            y = (s[0] + x / s[0]) / 2
            return y, jnp.abs(y - s[0])

        return lax.while_loop(lambda s: s[1] > 1e-3, step, (x, jnp.inf))[0]

    def total(n: Any, x: Any) -> Any:
        return lax.fori_loop(0, n, lambda k, s: lax.cond(k % 2 == 0, lambda s: s + x, lambda s: s * 0.5, s), x)

    def run(a: Any, b: Any, x: Any) -> Any:
        pairs = jax.vmap(jax.vmap(gcd, (None, 0)), (0, None))(a, b)
        return pairs, jax.vmap(root)(x), jax.vmap(total)(a[:4] % 5, x), jax.vmap(total, (None, 0))(3, x)

    args = jnp.array([12, 35, 64, 0, 7]), jnp.array([18, 21, 1, 48]), jnp.array([0.5, 2.0, 9.0, 100.0])
    return run, args


@of_dtypes({"": jnp.float32, "_float64": jnp.float64})
def linear_algebra_gradients(dtype: Any) -> tuple[Any, ...]:
    if dtype == jnp.float64:
        jax.config.update("jax_enable_x64", True)

    def loss(a: Any, b: Any) -> Any:
        s = a @ a.T + 3 * jnp.eye(4, dtype=dtype)
        sign, log = jnp.linalg.slogdet(a)
        factor = jnp.linalg.cholesky(s)
        solved = jax.scipy.linalg.solve_triangular(factor, b, lower=True)
        parts = jnp.sum(jnp.linalg.solve(a, b) ** 2) + jnp.trace(jnp.linalg.inv(s)) + jnp.linalg.det(a)
        return parts + sign * log + jnp.sum(solved**2) + jnp.sum(jnp.sqrt(jnp.linalg.eigvalsh(s)))

    args = normal(4, 4, dtype=dtype) + 3 * jnp.eye(4, dtype=dtype), normal(4, 2, seed=1, dtype=dtype)
    return jax.value_and_grad(loss, (0, 1)), args


@model("jax")
def graph_attention() -> tuple[Any, ...]:
    """Softmax over the edges of each node by segment operations, with its gradient."""

    def layer(p: Any, x: Any, senders: Any, receivers: Any) -> Any:
        h = x @ p["w"]
        logits = jax.nn.leaky_relu(h[senders] @ p["from"] + (h[receivers] * h[senders]) @ p["to"], 0.2)
        top = jax.ops.segment_max(logits, receivers, 5, indices_are_sorted=True)
        weights = jnp.exp(logits - lax.stop_gradient(top)[receivers])
        weights = weights / jax.ops.segment_sum(weights, receivers, 5)[receivers]
        return jax.nn.elu(jax.ops.segment_sum(weights[:, None] * h[senders], receivers, 5) + x)

    def loss(p: Any, x: Any, senders: Any, receivers: Any) -> Any:
        for one in p:
            x = layer(one, x, senders, receivers)
        pooled = jax.ops.segment_sum(1 + x**2, jnp.array([0, 0, 1, 1, 1]), 2)
        return jnp.sum(jnp.log(pooled)) + jnp.sum(jax.ops.segment_min(x, jnp.array([0, 1, 0, 1, 0]), 2))

    p = [{"w": normal(4, 4, seed=k), "from": normal(4, seed=k + 1), "to": normal(4, seed=k + 2)} for k in (0, 5)]
    edges = jnp.array([0, 4, 0, 1, 2, 3, 3, 1]), jnp.array([0, 0, 1, 1, 2, 3, 4, 4])
    return jax.value_and_grad(loss), (p, normal(5, 4, seed=3), *edges)


@model("jax")
def quantised_products() -> tuple[Any, ...]:
    """int8 and int4 weights with scales, sums in int32, and float8 operands with sums in float32."""

    def run(x: Any, w: Any, w4: Any) -> Any:
        scale = jnp.max(jnp.abs(x), -1, keepdims=True) / 127
        q = jnp.clip(jnp.round(x / scale), -127, 127).astype(jnp.int8)
        w_scale = jnp.max(jnp.abs(w), 0) / 127
        qw = jnp.round(w / w_scale).astype(jnp.int8)
        whole = lax.dot_general(q, qw, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32)
        narrow = x @ (w4.astype(jnp.float32) * 0.1)
        rounded = [x.astype(kind).astype(jnp.float32) for kind in (jnp.float8_e4m3fn, jnp.float8_e5m2)]
        eight = jnp.dot(x.astype(jnp.float8_e4m3fn), w.astype(jnp.float8_e4m3fn), preferred_element_type=jnp.float32)
        return whole, whole * scale * w_scale, narrow, rounded, eight

    return run, (normal(3, 16), normal(16, 5, seed=1), jnp.arange(16 * 5).reshape(16, 5).astype(jnp.int4))


@model("jax")
def replicas_by_names() -> tuple[Any, ...]:
    """What a pmap of data-parallel training does, with vmap over a named axis."""

    def step(p: Any, x: Any, y: Any) -> Any:
        value, g = jax.value_and_grad(lambda p: jnp.mean((mlp(p, x) - y) ** 2))(p)
        g = lax.pmean(g, "replica")
        norm = jnp.sqrt(lax.psum(jnp.sum(x**2), "replica"))
        turned = lax.ppermute(x[0], "replica", [(k, (k + 1) % 3) for k in range(3)])
        first = lax.all_gather(x[:, 0], "replica")[0]
        everything = lax.pmax(value, "replica"), lax.axis_index("replica"), norm, turned, first
        return jax.tree.map(lambda a, b: a - 0.1 * b, p, g), everything

    run = jax.vmap(step, in_axes=(None, 0, 0), out_axes=(None, 0), axis_name="replica")
    return run, (dense([4, 6, 2]), normal(3, 5, 4, seed=2), normal(3, 5, 2, seed=3))


@model("jax")
def embedding_bag() -> tuple[Any, ...]:
    def loss(table: Any, ids: Any, bags: Any, weights: Any) -> Any:
        rows = jnp.take(table, ids, axis=0, mode="clip") * weights[:, None]
        total = jax.ops.segment_sum(rows, bags, num_segments=3)
        count = jnp.bincount(bags, length=3)
        best = jnp.full((3, 4), -jnp.inf).at[bags].max(rows)
        padded = jnp.where(ids[:, None] == 0, 0, table.at[ids].get(mode="fill", fill_value=0)).sum(0)
        return jnp.sum((total / jnp.maximum(count, 1)[:, None]) ** 2) + jnp.sum(best) + padded @ padded

    ids, bags = jnp.array([1, 5, 0, 9, 2, 2]), jnp.array([0, 0, 1, 2, 2, 2])
    return jax.value_and_grad(loss, (0, 3)), (normal(6, 4), ids, bags, normal(6, seed=1))


@model("jax")
def sums_of_products() -> tuple[Any, ...]:
    def run(a: Any, b: Any, c: Any, d: Any) -> Any:
        return (
            jnp.einsum("bhqd,bhkd->bhqk", a, b),
            jnp.einsum("bhqd,bhkd,de,bhqe->hk", a, b, d, c),
            jnp.einsum("...qd,...qd->...", a, c),
            jnp.einsum("bhqq->bh", jnp.einsum("bhqd,bhkd->bhqk", a, c)),
            jnp.einsum("bhqd->dqhb", a),
            jnp.einsum("bhqd,ij->bijh", a, d),
            jnp.tensordot(a, c, ((0, 2, 3), (0, 2, 3))),
            jnp.kron(d, d[:2]),
        )

    return run, (normal(2, 3, 4, 5), normal(2, 3, 6, 5, seed=1), normal(2, 3, 4, 5, seed=2), normal(5, 5, seed=3))


@of_dtypes(ALL_FLOATS)
def autoregressive_loop(dtype: Any) -> tuple[Any, ...]:
    """Sampling with temperature and nucleus in a scan, with keys split on the way."""

    def run(p: Any, key: Any, h: Any) -> Any:
        def step(state: Any, _: Any) -> Any:
            key, h, token = state
            key, now = jax.random.split(key)
            h = jnp.tanh(p["words"][token] + h @ p["w"]).astype(dtype)
            logits = (h @ p["words"].T).astype(jnp.float32) / 0.8
            order = jnp.argsort(-logits)
            heaped = jnp.cumsum(jax.nn.softmax(logits[order]))
            kept = jnp.zeros(9, bool).at[order].set(heaped - jax.nn.softmax(logits[order]) < 0.9)
            token = jax.random.categorical(now, jnp.where(kept, logits, -jnp.inf))
            return (key, h, token), (token, logits.max())

        return lax.scan(step, (key, h, jnp.int32(1)), None, 8)

    p = {"words": normal(9, 5, dtype=dtype), "w": normal(5, 5, seed=1, dtype=dtype) / 2}
    return run, (p, jax.random.key(7), normal(5, seed=2, dtype=dtype))
