"""Whole training and sampling steps of flax, haiku, equinox, optax, diffrax and numpyro, with their states and keys."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from bench.zoo import model
from bench.zoo.jax_numerics import F32_BF16, of_dtypes
from bench.zoo.jax_written import normal


def _vision_transformer(nn: Any, dtype: Any, rate: float) -> Any:
    class Block(nn.Module):
        @nn.compact
        def __call__(self, x: Any, train: bool) -> Any:
            h = nn.LayerNorm(dtype=dtype)(x)
            # without biases, since that of the keys has no gradient
            attend = nn.MultiHeadDotProductAttention(
                2, dtype=dtype, dropout_rate=rate, deterministic=not train, use_bias=False
            )
            h = attend(h, h)
            x = x + nn.Dropout(rate, deterministic=not train)(h)
            h = nn.gelu(nn.Dense(12, dtype=dtype)(nn.LayerNorm(dtype=dtype)(x)))
            return x + nn.Dense(6, dtype=dtype)(nn.Dropout(rate, deterministic=not train)(h))

    class Net(nn.Module):
        @nn.compact
        def __call__(self, images: Any, train: bool = False) -> Any:
            x = nn.Conv(6, (4, 4), strides=(4, 4), dtype=dtype)(images)
            x = x.reshape(len(x), -1, 6)
            first = self.param("first", nn.initializers.zeros, (1, 1, 6), jnp.float32)
            x = jnp.concatenate([jnp.tile(first, (len(x), 1, 1)).astype(x.dtype), x], 1)
            x = x + self.param("places", nn.initializers.normal(0.02), (1, x.shape[1], 6), jnp.float32).astype(x.dtype)
            for _ in range(2):
                x = Block()(x, train)
            return nn.Dense(3, dtype=jnp.float32)(nn.LayerNorm(dtype=dtype)(x)[:, 0])

    return Net()


@of_dtypes(F32_BF16)
def flax_vision_transformer(dtype: Any) -> tuple[Any, ...]:
    import flax.linen as nn

    net, x = _vision_transformer(nn, dtype, 0.1), normal(2, 8, 8, 3)
    return net.apply, (jax.jit(net.init)(jax.random.key(0), x), x)


@model("jax")
def flax_vision_transformer_dropout_gradient() -> tuple[Any, ...]:
    import flax.linen as nn
    import optax

    net, x = _vision_transformer(nn, jnp.float32, 0.1), normal(2, 8, 8, 3)

    def loss(p: Any, key: Any, x: Any, y: Any) -> Any:
        logits = net.apply(p, x, train=True, rngs={"dropout": key})
        return optax.losses.softmax_cross_entropy(logits, optax.smooth_labels(jax.nn.one_hot(y, 3), 0.1)).mean()

    return jax.value_and_grad(loss), (jax.jit(net.init)(jax.random.key(0), x), jax.random.key(1), x, jnp.array([2, 0]))


@model("jax")
def flax_nnx_training_step() -> tuple[Any, ...]:
    """Batch statistics, dropout keys and an optimizer, all as one state that goes in and comes out."""
    import optax
    from flax import nnx

    class Net(nnx.Module):
        def __init__(self, rngs: Any) -> None:
            self.first = nnx.Linear(4, 8, use_bias=False, rngs=rngs)  # it has no gradient before the norm
            self.norm = nnx.BatchNorm(8, rngs=rngs)
            self.drop = nnx.Dropout(0.2, rngs=rngs)
            self.last = nnx.Linear(8, 3, rngs=rngs)

        def __call__(self, x: Any) -> Any:
            return self.last(self.drop(nnx.relu(self.norm(self.first(x)))))

    net = Net(nnx.Rngs(0))
    graph, state = nnx.split((net, nnx.Optimizer(net, optax.adamw(1e-2), wrt=nnx.Param)))

    def step(state: Any, x: Any, y: Any) -> Any:
        net, optimizer = nnx.merge(graph, state)

        def loss(net: Any) -> Any:
            return optax.softmax_cross_entropy_with_integer_labels(net(x), y).mean()

        value, g = nnx.value_and_grad(loss)(net)
        optimizer.update(net, g)
        return nnx.state((net, optimizer)), value

    return step, (state, normal(6, 4), jnp.array([0, 1, 2, 1, 0, 2]))


@model("jax")
def haiku_residual_network() -> tuple[Any, ...]:
    import haiku as hk

    def forward(x: Any, train: bool) -> Any:
        net = hk.nets.ResNet((1, 1, 1, 1), 3, bottleneck=False, channels_per_group=(4, 4, 8, 8), resnet_v2=True)
        return net(x, is_training=train)

    net = hk.without_apply_rng(hk.transform_with_state(forward))
    x = normal(6, 32, 32, 3)
    p, state = jax.jit(net.init, static_argnums=2)(jax.random.key(0), x, True)

    def step(p: Any, state: Any, x: Any, y: Any) -> Any:
        def loss(p: Any) -> Any:
            logits, new = net.apply(p, state, x, True)
            return -jnp.mean(jnp.sum(jax.nn.one_hot(y, 3) * jax.nn.log_softmax(logits), -1)), new

        (value, state), g = jax.value_and_grad(loss, has_aux=True)(p)
        return jax.tree.map(lambda p, g: p - 0.1 * g, p, g), state, value, net.apply(p, state, x, False)[0]

    return step, (p, state, x, jnp.array([1, 2, 0, 0, 2, 1]))


@model("jax")
def haiku_dropout_with_keys() -> tuple[Any, ...]:
    import haiku as hk

    def forward(x: Any) -> Any:
        for _ in range(2):
            h = hk.LayerNorm(-1, True, True)(x)
            x = x + hk.dropout(hk.next_rng_key(), 0.2, hk.Linear(6)(jax.nn.gelu(hk.Linear(12)(h))))
        return hk.GRU(5)(x, jnp.zeros((len(x), 5)))[0], hk.Embed(7, 3)(jnp.arange(4))

    net, x = hk.transform(forward), normal(3, 6)
    return jax.jit(net.apply), (jax.jit(net.init)(jax.random.key(0), x), jax.random.key(1), x)


@model("jax")
def equinox_whole_model() -> tuple[Any, ...]:
    """A model as it is, with its activation functions among the leaves, by filter_grad under filter_jit."""
    import equinox as eqx

    net = eqx.nn.MLP(3, 2, 8, 2, activation=jax.nn.swish, key=jax.random.key(0))

    @eqx.filter_jit
    def step(net: Any, x: Any, y: Any) -> Any:
        value, g = eqx.filter_value_and_grad(lambda net: jnp.mean((jax.vmap(net)(x) - y) ** 2))(net)
        return eqx.apply_updates(net, jax.tree.map(lambda g: -0.1 * g, g)), value

    return step, (net, normal(5, 3), normal(5, 2, seed=1))


@model("jax")
def equinox_stateful_layers() -> tuple[Any, ...]:
    """Batch norm and spectral norm with their state, attention and dropout with a key."""
    import equinox as eqx

    class Net(eqx.Module):
        layers: list[Any]

        def __init__(self, key: Any) -> None:
            a, b, c, d = jax.random.split(key, 4)
            self.layers = [
                eqx.nn.SpectralNorm(eqx.nn.Linear(4, 6, key=a), "weight", key=b),
                eqx.nn.BatchNorm(6, "batch", mode="ema"),
                eqx.nn.MultiheadAttention(2, 6, key=c),
                eqx.nn.Dropout(0.2),
                eqx.nn.Linear(6, 2, key=d),
            ]

        def __call__(self, x: Any, state: Any, key: Any) -> Any:
            spectral, norm, attend, drop, last = self.layers
            rows = []
            for row in x:
                row, state = spectral(row, state)
                rows.append(row)
            h, state = norm(jnp.stack(rows, -1), state)
            h = attend(h.T, h.T, h.T)
            return jax.vmap(last)(drop(h, key=key)), state

    net, state = eqx.nn.make_with_state(Net)(jax.random.key(0))
    p, static = eqx.partition(net, eqx.is_inexact_array)

    def run(p: Any, state: Any, x: Any, key: Any) -> Any:
        keys = jax.random.split(key, len(x))
        batched = jax.vmap(eqx.combine(p, static), in_axes=(0, None, 0), out_axes=(0, None), axis_name="batch")
        return batched(x, state, keys)

    return run, (p, state, normal(3, 4, 4), jax.random.key(2))


def _optimiser(name: str, build: Any, **given: Any) -> None:
    @model("jax", f"optax_{name}")
    def make() -> tuple[Any, ...]:
        import optax

        optimizer = build(optax)
        p = {"w": normal(3, 2), "b": jnp.zeros(2)}

        def step(p: Any, state: Any, x: Any) -> Any:
            def loss(p: Any) -> Any:
                return jnp.mean(jnp.tanh(x @ p["w"] + p["b"]) ** 2)

            value, g = jax.value_and_grad(loss)(p)
            extra = {"value": value, "grad": g, "value_fn": loss} if given.get("search") else {}
            updates, state = optimizer.update(g, state, p, **extra)
            return optax.apply_updates(p, updates), state, value

        return step, (p, optimizer.init(p), normal(5, 3, seed=1))


_optimiser(
    "clipped_adamw_schedule",
    lambda o: o.chain(
        o.clip_by_global_norm(0.5),
        o.adamw(o.warmup_cosine_decay_schedule(0.0, 1e-2, 10, 100), weight_decay=0.1, mask={"w": True, "b": False}),
    ),
)
_optimiser("multi_steps", lambda o: o.MultiSteps(o.adam(1e-2), every_k_schedule=2))
_optimiser("by_label", lambda o: o.multi_transform({"a": o.adan(0.1), "b": o.novograd(0.1)}, {"w": "a", "b": "b"}))
_optimiser("injected_finite", lambda o: o.apply_if_finite(o.inject_hyperparams(o.radam)(learning_rate=0.1), 3))
_optimiser("noisy", lambda o: o.chain(o.add_noise(0.1, 0.5, jax.random.key(0)), o.adaptive_grad_clip(0.1), o.yogi(0.1)))
_optimiser("schedule_free", lambda o: o.contrib.schedule_free_adamw(0.1))
_optimiser("muon", lambda o: o.contrib.muon(0.1))
_optimiser("line_search", lambda o: o.lbfgs(), search=True)


@model("jax")
def optax_losses() -> tuple[Any, ...]:
    import optax

    def run(logits: Any, x: Any, y: Any) -> Any:
        padding, labels = jnp.zeros((2, 6)), jnp.array([[1, 2, 2], [3, 1, 0]])
        kept = jnp.array([[0.0, 0, 0], [0, 0, 1]])
        return jnp.stack(
            [
                optax.ctc_loss(logits, padding, labels, kept).sum(),
                optax.sigmoid_focal_loss(x, (y > 0).astype(jnp.float32)).sum(),
                *(optax.huber_loss(x, y).sum(), optax.log_cosh(x, y).sum(), optax.cosine_distance(x, y).sum()),
                optax.safe_softmax_cross_entropy(x, jax.nn.softmax(y)).sum(),
                optax.losses.poly_loss_cross_entropy(x, jax.nn.softmax(y)).sum(),
            ]
        ).sum()

    return jax.value_and_grad(run, (0, 1)), (normal(2, 6, 4), normal(3, 4, seed=1), normal(3, 4, seed=2))


@model("jax")
def diffrax_adaptive_events() -> tuple[Any, ...]:
    """Tsit5 with a controller in a bounded loop that an event ends, dense output, and the gradient through it."""
    import diffrax

    def run(y: Any, a: Any) -> Any:
        event = diffrax.Event(lambda t, y, args, **_: y[0] < 0.2)
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(lambda t, y, a: jnp.array([y[1], -a * y[0]])),
            *(diffrax.Tsit5(), 0.0, 3.0, 0.8, y, a),  # where the error is more than rounding
            stepsize_controller=diffrax.PIDController(1e-3, 1e-3),
            saveat=diffrax.SaveAt(t1=True, steps=True),
            event=event,
            max_steps=16,
        )
        return solution.ys[-1].sum(), (solution.ts, solution.ys, solution.stats["num_steps"])

    return run, (jnp.array([1.0, 0.0]), jnp.float32(1.3))


@model("jax")
def diffrax_stochastic() -> tuple[Any, ...]:
    import diffrax

    def run(key: Any, y: Any, scale: Any) -> Any:
        noise = diffrax.VirtualBrownianTree(0.0, 1.0, 1e-2, (2,), key)
        drift = diffrax.ODETerm(lambda t, y, args: -y)
        diffusion = diffrax.ControlTerm(lambda t, y, args: scale * jnp.eye(2), noise)
        terms = diffrax.MultiTerm(drift, diffusion)
        return diffrax.diffeqsolve(terms, diffrax.Heun(), 0.0, 1.0, 0.25, y, max_steps=8).ys

    return run, (jax.random.key(3), jnp.array([1.0, -0.5]), jnp.float32(0.2))


@model("jax")
def diffrax_backsolve() -> tuple[Any, ...]:
    import diffrax

    def run(w: Any, y: Any) -> Any:
        term = diffrax.ODETerm(lambda t, y, w: jnp.tanh(w @ y))
        adjoint = diffrax.BacksolveAdjoint()
        return diffrax.diffeqsolve(term, diffrax.Tsit5(), 0.0, 1.0, 0.25, y, w, adjoint=adjoint).ys.sum()

    return jax.grad(run), (normal(3, 3), normal(3, seed=1))


def _regression(x: Any, y: Any = None) -> None:
    import numpyro
    import numpyro.distributions as dist

    w = numpyro.sample("w", dist.Normal(0, 1).expand([2]).to_event(1))
    s = numpyro.sample("s", dist.HalfNormal(1.0))
    numpyro.sample("y", dist.Normal(x @ w, s).to_event(1), obs=y)


def _sampler(kind: str, **options: Any) -> None:
    @model("jax", f"numpyro_{kind.lower()}_transition")
    def make() -> tuple[Any, ...]:
        from numpyro import infer

        x, y = normal(6, 2), normal(6, seed=1)
        kernel = getattr(infer, kind)(_regression, step_size=0.1, **options)
        state = kernel.init(jax.random.PRNGKey(0), 5, None, (x, y), {})
        return lambda state, x, y: kernel.sample(state, (x, y), {}), (state, x, y)


_sampler("HMC", num_steps=4)
_sampler("NUTS", max_tree_depth=3)


@model("jax")
def numpyro_predictive() -> tuple[Any, ...]:
    from numpyro.infer import Predictive

    def run(key: Any, samples: Any, x: Any) -> Any:
        return Predictive(_regression, samples)(key, x)["y"], Predictive(_regression, num_samples=3)(key, x)

    return run, (jax.random.key(1), {"w": normal(4, 2), "s": jnp.abs(normal(4, seed=1))}, normal(5, 2, seed=2))


@model("jax")
def numpyro_mixture() -> tuple[Any, ...]:
    """A mixture with its classes summed out, correlations and a simplex, in unconstrained space."""
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer.util import potential_energy

    def mixture(x: Any) -> None:
        weights = numpyro.sample("weights", dist.Dirichlet(jnp.ones(3)))
        factor = numpyro.sample("factor", dist.LKJCholesky(2, 1.5))
        with numpyro.plate("classes", 3):
            means = numpyro.sample("means", dist.MultivariateNormal(jnp.zeros(2), scale_tril=factor))
        parts = dist.MultivariateNormal(means, scale_tril=0.5 * jnp.eye(2))
        with numpyro.plate("rows", len(x)):
            numpyro.sample("x", dist.MixtureSameFamily(dist.Categorical(weights), parts), obs=x)

    def run(p: Any, x: Any) -> Any:
        return jax.value_and_grad(lambda p: potential_energy(mixture, (x,), {}, p))(p)

    return run, ({"weights": normal(2), "factor": normal(1, seed=1), "means": normal(3, 2)}, normal(5, 2, seed=2))
