"""A small classifier, for the session in the README."""

import jax
import jax.numpy as jnp
import numpy as np


def predict(params, x):
    hidden = jnp.tanh(x @ params["w1"] + params["b1"])
    return jax.nn.softmax(hidden @ params["w2"])


def arguments():
    rng = np.random.default_rng(0)
    shapes = {"w1": (4, 8), "b1": (8,), "w2": (8, 3)}
    params = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    return params, rng.normal(size=(2, 4)).astype(np.float32)
