"""Programs of flax, haiku, equinox, optax, diffrax and numpyro."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from bench.zoo import model
from bench.zoo.jax_written import cross_entropy, normal


def _flax_linen(name: str, build: Any, *shape: int, train: bool = False) -> None:
    @model("jax", f"flax_{name}")
    def make() -> tuple[Any, ...]:
        import flax.linen as nn

        net = build(nn)
        x = normal(*shape)
        variables = net.init(jax.random.key(0), x)
        if train:
            return lambda v, x: net.apply(v, x, mutable=["batch_stats"]), (variables, x)
        return net.apply, (variables, x)


def _cnn(nn: Any) -> Any:
    class Net(nn.Module):
        @nn.compact
        def __call__(self, x: Any) -> Any:
            x = nn.relu(nn.Conv(4, (3, 3), strides=2)(x))
            x = nn.avg_pool(nn.GroupNorm(2)(nn.ConvTranspose(4, (2, 2), strides=(2, 2))(x)), (2, 2), (2, 2))
            return nn.Dense(3)(x.reshape(len(x), -1))

    return Net()


def _batch_norm(nn: Any) -> Any:
    class Net(nn.Module):
        @nn.compact
        def __call__(self, x: Any) -> Any:
            return nn.Dense(2)(nn.gelu(nn.BatchNorm(use_running_average=False)(nn.Dense(4)(x))))

    return Net()


_flax_linen("cnn", _cnn, 2, 8, 8, 2)
_flax_linen("batch_norm_training", _batch_norm, 6, 3, train=True)
_flax_linen("attention", lambda nn: nn.MultiHeadDotProductAttention(2, qkv_features=8), 2, 5, 8)
_flax_linen("lstm", lambda nn: nn.RNN(nn.OptimizedLSTMCell(4)), 2, 5, 3)
_flax_linen("gru", lambda nn: nn.Bidirectional(nn.RNN(nn.GRUCell(4)), nn.RNN(nn.GRUCell(4))), 2, 5, 3)
_flax_linen("weight_norm", lambda nn: nn.WeightNorm(nn.Dense(4)), 2, 3)


@model("jax")
def flax_dropout_step() -> tuple[Any, ...]:
    import flax.linen as nn
    import optax

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x: Any, train: bool) -> Any:
            x = nn.Dropout(0.3, deterministic=not train)(nn.relu(nn.Dense(8)(x)))
            return nn.Dense(3)(nn.LayerNorm()(x))

    net, optimizer = Net(), optax.adamw(1e-2)
    x, y = normal(6, 4), jnp.array([0, 1, 2, 1, 0, 2])
    p = net.init(jax.random.key(0), x, False)

    def step(p: Any, state: Any, key: Any, x: Any, y: Any) -> Any:
        def loss(p: Any) -> Any:
            logits = net.apply(p, x, True, rngs={"dropout": key})
            return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()

        value, g = jax.value_and_grad(loss)(p)
        updates, state = optimizer.update(g, state, p)
        return optax.apply_updates(p, updates), state, value

    return step, (p, optimizer.init(p), jax.random.key(3), x, y)


@model("jax")
def flax_nnx() -> tuple[Any, ...]:
    from flax import nnx

    net = nnx.Sequential(nnx.Linear(3, 8, rngs=nnx.Rngs(0)), nnx.relu, nnx.Linear(8, 2, rngs=nnx.Rngs(1)))
    graph, state = nnx.split(net)
    return lambda state, x: nnx.merge(graph, state)(x), (state, normal(4, 3))


def _optax(name: str, build: Any) -> None:
    @model("jax", f"optax_{name}")
    def make() -> tuple[Any, ...]:
        import optax

        optimizer = build(optax)
        p = {"w": normal(3, 2), "b": jnp.zeros(2)}

        def step(p: Any, state: Any, x: Any) -> Any:
            value, g = jax.value_and_grad(lambda p: jnp.mean(jnp.tanh(x @ p["w"] + p["b"]) ** 2))(p)
            updates, state = optimizer.update(g, state, p)
            return optax.apply_updates(p, updates), state, value

        return step, (p, optimizer.init(p), normal(5, 3, seed=1))


_optax("sgd", lambda o: o.sgd(0.1, momentum=0.9, nesterov=True))
_optax("clipped_adam", lambda o: o.chain(o.clip_by_global_norm(1.0), o.adam(o.cosine_decay_schedule(0.1, 100))))
_optax("lamb", lambda o: o.lamb(0.1))
_optax("lion", lambda o: o.lion(0.1))
_optax("rmsprop", lambda o: o.rmsprop(0.1))
_optax("adafactor", lambda o: o.adafactor(0.1))
_optax("adagrad", lambda o: o.adagrad(0.1))


@model("jax")
def haiku_resnet_block() -> tuple[Any, ...]:
    import haiku as hk

    def forward(x: Any) -> Any:
        h = jax.nn.relu(hk.BatchNorm(True, True, 0.9)(hk.Conv2D(4, 3)(x), is_training=True))
        return hk.Linear(3)(hk.Flatten()(hk.MaxPool(2, 2, "VALID")(x + hk.Conv2D(2, 3)(h))))

    net = hk.transform_with_state(forward)
    x = normal(2, 8, 8, 2)
    p, state = net.init(jax.random.key(0), x)
    return lambda p, s, x: net.apply(p, s, None, x), (p, state, x)


@model("jax")
def haiku_lstm_gradient() -> tuple[Any, ...]:
    import haiku as hk

    def forward(x: Any) -> Any:
        core = hk.LSTM(4)
        return hk.dynamic_unroll(core, x, core.initial_state(2))[0]

    net = hk.without_apply_rng(hk.transform(forward))
    x = normal(5, 2, 3)
    return jax.grad(lambda p, x: net.apply(p, x).sum()), (net.init(jax.random.key(0), x), x)


@model("jax")
def haiku_attention() -> tuple[Any, ...]:
    import haiku as hk

    net = hk.without_apply_rng(hk.transform(lambda x: hk.MultiHeadAttention(2, 4, w_init_scale=1.0)(x, x, x)))
    x = normal(2, 5, 8)
    return net.apply, (net.init(jax.random.key(0), x), x)


@model("jax")
def equinox_mlp_step() -> tuple[Any, ...]:
    import equinox as eqx

    net = eqx.nn.MLP(3, 2, 8, 2, key=jax.random.key(0))
    p, static = eqx.partition(net, eqx.is_array)

    def step(p: Any, x: Any, y: Any) -> Any:
        def loss(p: Any) -> Any:
            return cross_entropy(jax.vmap(eqx.combine(p, static))(x), y)

        value, g = jax.value_and_grad(loss)(p)
        return jax.tree.map(lambda a, b: a - 0.1 * b, p, g), value

    return step, (p, normal(5, 3), jnp.array([0, 1, 1, 0, 1]))


@model("jax")
def equinox_cnn() -> tuple[Any, ...]:
    import equinox as eqx

    keys = jax.random.split(jax.random.key(0), 3)
    net = eqx.nn.Sequential(
        [
            *(
                eqx.nn.Conv2d(2, 4, 3, key=keys[0]),
                eqx.nn.Lambda(jax.nn.relu),
                eqx.nn.MaxPool2d(2, 2),
                eqx.nn.GroupNorm(2, 4),
            ),
            *(eqx.nn.Lambda(jnp.ravel), eqx.nn.Linear(36, 3, key=keys[1])),
        ]
    )
    p, static = eqx.partition(net, eqx.is_array)
    return lambda p, x: jax.vmap(eqx.combine(p, static))(x), (p, normal(2, 2, 8, 8))


@model("jax")
def equinox_gru() -> tuple[Any, ...]:
    import equinox as eqx

    cell = eqx.nn.GRUCell(3, 4, key=jax.random.key(0))
    p, static = eqx.partition(cell, eqx.is_array)

    def run(p: Any, xs: Any) -> Any:
        cell = eqx.combine(p, static)
        return jax.lax.scan(lambda h, x: (cell(x, h), h), jnp.zeros(4), xs)

    return run, (p, normal(5, 3))


def _diffrax(name: str, solver: str, controller: Any = None) -> None:
    @model("jax", f"diffrax_{name}")
    def make() -> tuple[Any, ...]:
        import diffrax

        def run(y: Any, a: Any) -> Any:
            term = diffrax.ODETerm(lambda t, y, a: -a * y + jnp.sin(t))
            saved = diffrax.SaveAt(ts=jnp.linspace(0, 1, 4))
            steps = diffrax.ConstantStepSize() if controller is None else diffrax.PIDController(**controller)
            solve = getattr(diffrax, solver)()
            kept = diffrax.diffeqsolve(
                term, solve, 0.0, 1.0, 0.1, y, a, saveat=saved, stepsize_controller=steps, max_steps=64
            )
            return kept.ys

        return run, (jnp.array([1.0, 2.0]), jnp.float32(1.5))


_diffrax("euler", "Euler")
_diffrax("tsit5", "Tsit5", {"rtol": 1e-3, "atol": 1e-3})
_diffrax("dopri5", "Dopri5")
_diffrax("implicit", "Kvaerno3", {"rtol": 1e-3, "atol": 1e-3})


@model("jax")
def diffrax_gradient() -> tuple[Any, ...]:
    import diffrax

    def run(w: Any, y: Any) -> Any:
        term = diffrax.ODETerm(lambda t, y, w: jnp.tanh(w @ y))
        return diffrax.diffeqsolve(term, diffrax.Heun(), 0.0, 1.0, 0.25, y, w, max_steps=8).ys.sum()

    return jax.grad(run), (normal(3, 3), normal(3, seed=1))


@model("jax")
def optimistix_root() -> tuple[Any, ...]:
    import optimistix

    def run(x: Any, a: Any) -> Any:
        return optimistix.root_find(lambda x, a: x**3 + x - a, optimistix.Newton(1e-4, 1e-4), x, a, throw=False).value

    return run, (jnp.array([1.0, 0.5]), jnp.array([2.0, 3.0]))


@model("jax")
def lineax_solve() -> tuple[Any, ...]:
    import lineax

    def run(a: Any, b: Any) -> Any:
        return lineax.linear_solve(lineax.MatrixLinearOperator(a), b, solver=lineax.LU()).value

    return run, (normal(3, 3) + 3 * jnp.eye(3), normal(3, seed=1))


@model("jax")
def numpyro_density() -> tuple[Any, ...]:
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer.util import log_density

    def regression(x: Any, y: Any) -> None:
        w = numpyro.sample("w", dist.Normal(0, 1).expand([2]))
        s = numpyro.sample("s", dist.HalfCauchy(1.0))
        with numpyro.plate("data", len(y)):
            numpyro.sample("y", dist.StudentT(4.0, x @ w, s), obs=y)

    def run(p: Any, x: Any, y: Any) -> Any:
        return jax.value_and_grad(lambda p: log_density(regression, (x, y), {}, p)[0])(p)

    return run, ({"w": normal(2), "s": jnp.float32(0.7)}, normal(6, 2, seed=1), normal(6, seed=2))


@model("jax")
def numpyro_hierarchy() -> tuple[Any, ...]:
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer.util import potential_energy

    def schools(y: Any) -> None:
        mean, spread = numpyro.sample("mean", dist.Normal(0, 5)), numpyro.sample("spread", dist.LogNormal(0, 1))
        rate = numpyro.sample("rate", dist.Beta(2.0, 3.0))
        with numpyro.plate("schools", 4):
            theta = numpyro.sample("theta", dist.Normal(mean, spread))
            numpyro.sample("count", dist.Binomial(10, rate), obs=jnp.array([3, 4, 2, 5]))
            numpyro.sample("y", dist.Normal(theta, 2.0), obs=y)

    def run(p: Any, y: Any) -> Any:
        return jax.value_and_grad(lambda p: potential_energy(schools, (y,), {}, p))(p)

    p = {"mean": jnp.float32(0.3), "spread": jnp.float32(-0.2), "rate": jnp.float32(0.1), "theta": normal(4)}
    return run, (p, normal(4, seed=1))


@model("jax")
def numpyro_svi_step() -> tuple[Any, ...]:
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import SVI, Trace_ELBO, autoguide

    def regression(x: Any, y: Any) -> None:
        w = numpyro.sample("w", dist.Normal(0, 1).expand([2]).to_event(1))
        numpyro.sample("y", dist.Normal(x @ w, 0.5).to_event(1), obs=y)

    guide = autoguide.AutoNormal(regression)
    svi = SVI(regression, guide, numpyro.optim.Adam(0.01), Trace_ELBO())
    x, y = normal(6, 2), normal(6, seed=1)
    state = svi.init(jax.random.PRNGKey(0), x, y)

    def run(state: Any, x: Any, y: Any) -> Any:
        return svi.update(state, x, y)

    return run, (state, x, y)
