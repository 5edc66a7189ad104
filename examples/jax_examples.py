"""Capture a collection of JAX programs as artifacts: ``python jax_examples.py OUT --width 4 --batch 2``.

The programs are small versions of what models are made of. One of them calls back into Python, which no artifact can
express; it is reported by name, and the others are written all the same. Needs jax and NumPy, and ``jax_capture.py`` in
``../capture``.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

Array = Any
Build = Callable[[int, int], tuple[Callable[..., Any], tuple[Any, ...]]]


@dataclasses.dataclass(frozen=True)
class Example:
    """``build`` takes width and batch and gives the function and its arguments; ``x64`` turns on 64-bit mode."""

    name: str
    build: Build
    x64: bool


EXAMPLES: list[Example] = []


def example(x64: bool = False) -> Callable[[Build], Build]:
    def register(build: Build) -> Build:
        EXAMPLES.append(Example(build.__name__, build, x64))
        return build

    return register


# ---- data: the same numbers everywhere ------------------------------------------------------------------------------


def spread(*shape: int, start: int = 0) -> np.ndarray:
    """float32 numbers between -1 and 1 that fill the interval evenly (multiples of the golden ratio, modulo 1)."""
    k = np.arange(start, start + int(np.prod(shape)))
    return (((k + 1) * 0.6180339887498949) % 1.0 * 2.0 - 1.0).astype(np.float32).reshape(shape)


def eighths(*shape: int, start: int = 0) -> np.ndarray:
    """float64 multiples of 1/8 between -1/2 and 1/2: sums of their products are exact in any order."""
    k = np.arange(start, start + int(np.prod(shape)))
    return ((k * 5 % 9 - 4) / 8.0).reshape(shape)


# ---- sums, layers and shapes ----------------------------------------------------------------------------------------


def _square_sum(x: Array) -> Array:
    return jnp.sum(x * x)


@example()
def square_sum(width: int, batch: int) -> Any:
    return _square_sum, (np.arange(1, width + 1, dtype=np.float32),)


@example()
def square_sum_gradient(width: int, batch: int) -> Any:
    return jax.grad(_square_sum), (np.arange(1, width + 1, dtype=np.float32),)


class Perceptron(NamedTuple):
    """Two layers: weights ``[inputs, hidden]`` and ``[hidden, outputs]``, biases ``[hidden]`` and ``[outputs]``."""

    w1: Array
    b1: Array
    w2: Array
    b2: Array


def _perceptron(width: int) -> Perceptron:
    hidden, outputs = 2 * width, 3
    return Perceptron(
        spread(width, hidden), spread(hidden, start=5), spread(hidden, outputs, start=11), spread(outputs, start=3)
    )


def _predict(params: Perceptron, x: Array) -> Array:
    hidden = jnp.tanh(x @ params.w1 + params.b1)
    return hidden @ params.w2 + params.b2


@example()
def perceptron(width: int, batch: int) -> Any:
    params = _perceptron(width)

    def predict(x: Array) -> Array:
        return _predict(params, x)

    return predict, (spread(batch, width),)


@example()
def perceptron_gradient(width: int, batch: int) -> Any:
    def loss(params: Perceptron, x: Array, y: Array) -> Array:
        return jnp.mean((_predict(params, x) - y) ** 2)

    return jax.grad(loss), (_perceptron(width), spread(batch, width), spread(batch, 3, start=7))


@example(x64=True)
def perceptron_inputs(width: int, batch: int) -> Any:
    def predict(x: Array, w1: Array, b1: Array, w2: Array, b2: Array) -> Array:
        hidden = jnp.maximum(x @ w1 + b1, 0.0)
        return hidden @ w2 + b2

    hidden, outputs = 2 * width, 3
    layers = eighths(width, hidden, start=1), eighths(hidden, start=2), eighths(hidden, outputs), eighths(outputs)
    return predict, (eighths(batch, width), *layers)


@example()
def broadcast(width: int, batch: int) -> Any:
    def shift_and_scale(x: Array, shift: Array, scale: Array) -> Array:
        return (x + shift) * scale[:, None] - 1.0

    return shift_and_scale, (spread(batch, width), spread(width, start=1), spread(batch, start=2))


@example()
def reshape(width: int, batch: int) -> Any:
    def fold(x: Array) -> Array:
        return x.reshape(2 * batch, width).sum(axis=0)

    return fold, (eighths(batch, 2, width).astype(np.float32),)


@example()
def permutation(width: int, batch: int) -> Any:
    def heads_first(x: Array) -> Array:
        return jnp.transpose(x, (2, 0, 1)) * 2.0

    return heads_first, (spread(batch, width, 3),)


@example()
def concatenation(width: int, batch: int) -> Any:
    def join(x: Array, y: Array) -> Array:
        return jnp.concatenate([x, y[:, ::-1], jnp.zeros_like(x[:, :1])], axis=1)

    return join, (spread(batch, width), spread(batch, width + 1, start=9))


@example()
def batched_contraction(width: int, batch: int) -> Any:
    def contract(x: Array, y: Array) -> Array:
        return jnp.einsum("bij,bjk->bik", x, y)

    return contract, (spread(batch, 3, width), spread(batch, width, 2, start=4))


@example()
def several_outputs(width: int, batch: int) -> Any:
    def summary(x: Array) -> dict[str, Any]:
        return {
            "total": jnp.sum(x),
            "best": jnp.argmax(x, axis=1),
            "positive": x > 0,
            "half": x.astype(jnp.float16),
            "range": (jnp.min(x), jnp.max(x)),
        }

    return summary, (spread(batch, width),)


# ---- precision ------------------------------------------------------------------------------------------------------


@example(x64=True)
def mixed_precision(width: int, batch: int) -> Any:
    def narrow(x: Array, y: Array) -> Array:
        return (x.astype(jnp.float32) * y.astype(jnp.float32)).astype(jnp.float16)

    return narrow, (spread(batch, width).astype(np.float64) / 3.0, spread(batch, width, start=8).astype(np.float64))


@example()
def float16_sum(width: int, batch: int) -> Any:
    def total(x: Array) -> Array:
        return jnp.sum(x, axis=1)

    return total, (eighths(batch, 8 * width).astype(np.float16),)


@example()
def bfloat16_sum(width: int, batch: int) -> Any:
    def total(x: Array) -> Array:
        return jnp.sum(x, axis=1)

    return total, (eighths(batch, 8 * width).astype(jnp.bfloat16),)


@example()
def bfloat16_reduce(width: int, batch: int) -> Any:
    def total(x: Array) -> Array:
        return lax.reduce(x, jnp.bfloat16(0), lax.add, (1,))

    return total, (spread(batch, 8 * width).astype(jnp.bfloat16),)


@example()
def bfloat16_contraction(width: int, batch: int) -> Any:
    def product(x: Array, y: Array) -> Array:
        return x @ y

    return product, (eighths(batch, width).astype(jnp.bfloat16), eighths(width, 3, start=1).astype(jnp.bfloat16))


# ---- what models are made of ----------------------------------------------------------------------------------------


def _layer_norm(x: Array, scale: Array, shift: Array) -> Array:
    mean = jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.mean((x - mean) ** 2, axis=-1, keepdims=True)
    return (x - mean) / jnp.sqrt(variance + 1e-5) * scale + shift


@example()
def layer_norm(width: int, batch: int) -> Any:
    return _layer_norm, (spread(batch, width), spread(width, start=1), spread(width, start=6))


@example()
def mean_and_division(width: int, batch: int) -> Any:
    def normalized(x: Array) -> Array:
        return x / jnp.mean(x, axis=0)

    return normalized, (2.0 + spread(batch, width),)


@example()
def softmax(width: int, batch: int) -> Any:
    def probabilities(x: Array) -> Array:
        return jax.nn.softmax(x, axis=-1)

    return probabilities, (3.0 * spread(batch, width),)


def _attention(q: Array, k: Array, v: Array, mask: Array) -> Array:
    scores = q @ jnp.swapaxes(k, -1, -2) / jnp.sqrt(jnp.float32(q.shape[-1]))
    weights = jax.nn.softmax(jnp.where(mask, scores, -jnp.inf), axis=-1)
    return weights @ v


@example()
def attention(width: int, batch: int) -> Any:
    tokens = 5
    q, k, v = (spread(batch, tokens, width, start=start) for start in (0, 3, 9))
    return _attention, (q, k, v, np.tril(np.ones((tokens, tokens), bool)))


@example()
def transformer_block(width: int, batch: int) -> Any:
    tokens = 4
    params = {
        "attention": {name: spread(width, width, start=k) / np.float32(width) for k, name in enumerate("qkvo")},
        "norms": [(1.0 + spread(width, start=k) / 4, spread(width, start=k + 2)) for k in range(2)],
        "feed_forward": [
            (spread(width, 4 * width, start=1) / width, spread(4 * width, start=2)),
            (spread(4 * width, width, start=3) / (4 * width), spread(width, start=4)),
        ],
    }
    params = jax.tree.map(lambda leaf: leaf.astype(np.float32), params)

    def block(params: dict[str, Any], x: Array) -> Array:
        mask = jnp.tril(jnp.ones((tokens, tokens), bool))
        weights = params["attention"]
        normed = _layer_norm(x, *params["norms"][0])
        x = x + _attention(normed @ weights["q"], normed @ weights["k"], normed @ weights["v"], mask) @ weights["o"]
        (w1, b1), (w2, b2) = params["feed_forward"]
        hidden = jax.nn.gelu(_layer_norm(x, *params["norms"][1]) @ w1 + b1)
        return x + hidden @ w2 + b2

    return block, (params, spread(batch, tokens, width, start=13))


@example()
def complex_regression(width: int, batch: int) -> Any:
    def loss(w: Array, x: Array, y: Array) -> Array:
        residual = x @ w - y
        return jnp.mean(jnp.real(residual * jnp.conj(residual)))

    w = lax.complex(spread(width), spread(width, start=2)) / width
    x = lax.complex(spread(batch, width, start=4), spread(batch, width, start=7))
    return loss, (w, x, lax.complex(spread(batch), spread(batch, start=1)))


@example()
def integer_program(width: int, batch: int) -> Any:
    def mix(x: Array, shift: Array) -> tuple[Array, Array]:
        hashed = (x * 1103515245 + 12345) ^ lax.shift_right_logical(x, jnp.broadcast_to(shift, x.shape))
        quotient = lax.div(hashed, jnp.int32(7)) - lax.rem(hashed, jnp.int32(1000))
        return lax.population_count(hashed) + quotient, jnp.sum(hashed.astype(jnp.int8), axis=0, dtype=jnp.int8)

    x = np.arange(1, batch * width + 1, dtype=np.int32).reshape(batch, width) * np.int32(48271)
    return mix, (x, (np.arange(width) % 40).astype(np.int32))


@example()
def boolean_program(width: int, batch: int) -> Any:
    def vote(a: Array, b: Array) -> tuple[Array, Array, Array]:
        differ = jnp.logical_xor(a, b)
        return jnp.any(differ, axis=1), jnp.all(a | ~b, axis=1), jnp.where(differ, 1, 0).sum()

    pattern = np.arange(batch * width).reshape(batch, width)
    return vote, (pattern % 3 == 0, pattern % 2 == 0)


@example()
def host_callback(width: int, batch: int) -> Any:
    def sorted_outside(x: Array) -> Array:
        return jax.pure_callback(np.sort, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    return sorted_outside, (spread(width),)


# ---- the command ----------------------------------------------------------------------------------------------------


def load_capture() -> ModuleType:
    """``capture/jax_capture.py``, found from this file."""
    path = Path(__file__).resolve().parents[1] / "capture" / "jax_capture.py"
    spec = importlib.util.spec_from_file_location("jax_capture", path)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["jax_capture"] = module
    spec.loader.exec_module(module)
    return module


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="jax_examples.py", description="Capture the JAX example programs.")
    parser.add_argument("out", metavar="OUT", type=Path, help="folder for the artifacts")
    parser.add_argument("--width", type=int, default=4, help="size of the feature axes (default 4)")
    parser.add_argument("--batch", type=int, default=2, help="size of the batch axis (default 2)")
    options = parser.parse_args(arguments)
    if options.width < 1 or options.batch < 1:
        parser.error("width and batch must be at least 1")
    capture = load_capture()
    try:
        options.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"cannot make the folder {options.out}: {error.strerror}")

    captured, refused = 0, 0
    print(f"{'example':<22}{'version':>8}{'nodes':>7}{'inputs':>8}{'outputs':>9}")
    for entry in EXAMPLES:
        with jax.enable_x64(entry.x64):
            fn, args = entry.build(options.width, options.batch)
            try:
                artifact = capture.export(fn, *args, name=entry.name)
            except capture.UnsupportedError as error:
                refused += 1
                names = ", ".join(problem.primitive for problem in error.problems)
                print(f"{entry.name:<22}  not captured: {names} at {error.problems[0].source}")
                continue
        capture.save(artifact, options.out / f"{entry.name}.json")
        captured += 1
        counts = (len(artifact[key]) for key in ("nodes", "input_ids", "output_ids"))
        print("{:<22}{:>8}{:>7}{:>8}{:>9}".format(entry.name, artifact["version"], *counts), flush=True)
    print(f"\n{captured} captured in {options.out}, {refused} not captured")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
