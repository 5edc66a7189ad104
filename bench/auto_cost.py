"""What `--tolerance auto` costs, as multiples of the plain reference run.

    taskset -c 1 python bench/auto_cost.py [--passes N] [--golden] [CASE…]

Each case is captured from JAX and PyTorch in this process (CASE is a shell pattern, as `layer_norm*`); ``--golden``
measures the golden artifacts of tests/golden that take over 20 ms on the reference as well. Columns: the plain run in
milliseconds; as multiples of it, the enclosures (the reference's values included), the search for what reproduces the
words, and the whole comparison. Each is a median over passes in which both sides alternate, in time of the process on
one thread. The last lines give the median and the worst case.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

SLOW = 0.02
"""Seconds from which a golden artifact is measured."""

Case = tuple[str, str, Callable[[Any], Any], Callable[[Any], Any] | None]


def arrays(*shapes: tuple[int, ...], scale: float = 1.0) -> list[Any]:
    rng = np.random.default_rng(0)
    return [(rng.standard_normal(shape) * scale).astype(np.float32) for shape in shapes]


def layers(x: Any, weights: list[Any], positive: Callable[[Any], Any]) -> Any:
    for weight, bias in weights[:-1]:
        x = positive(x @ weight + bias)
    weight, bias = weights[-1]
    return x @ weight + bias


def perceptron_parameters() -> list[list[Any]]:
    sizes = (784, 1024, 1024, 10)
    pairs = pairwise(sizes)
    return [[w / np.sqrt(len(w)), b] for w, b in (arrays((m, n), (n,)) for m, n in pairs)]


def jax_cases(dtype: str) -> Iterator[tuple[str, Callable[..., Any], tuple[Any, ...]]]:
    import jax
    import jax.numpy as jnp

    def cast(tree: Any) -> Any:
        return jax.tree.map(lambda x: jnp.asarray(x).astype(dtype), tree)

    def layer_norm(x: Any, scale: Any, shift: Any) -> Any:
        mean = jnp.mean(x, axis=-1, keepdims=True)
        variance = jnp.mean((x - mean) ** 2, axis=-1, keepdims=True)
        return (x - mean) / jnp.sqrt(variance + 1e-5) * scale + shift

    def attention(q: Any, k: Any, v: Any) -> Any:
        scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / np.sqrt(q.shape[-1]).astype(dtype)
        return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores, axis=-1), v)

    def block(x: Any, p: dict[str, Any]) -> Any:
        b, t, d = x.shape
        h = layer_norm(x, *p["norm1"])
        q, k, v = (jnp.transpose((h @ p[n]).reshape(b, t, 8, d // 8), (0, 2, 1, 3)) for n in "qkv")
        a = jnp.transpose(attention(q, k, v), (0, 2, 1, 3)).reshape(b, t, d)
        x = x + a @ p["o"]
        return x + jax.nn.gelu(layer_norm(x, *p["norm2"]) @ p["up"], approximate=False) @ p["down"]

    def recurrence(x: Any, w: Any, u: Any) -> Any:
        def step(h: Any, each: Any) -> Any:
            h = jnp.tanh(each @ w + h @ u)
            return h, h

        return jax.lax.scan(step, jnp.zeros((x.shape[1], u.shape[0]), x.dtype), x)[1]

    def convolution(x: Any, w: Any) -> Any:
        return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME")

    weights = perceptron_parameters()
    yield "perceptron", lambda x, w: layers(x, w, jax.nn.relu), (cast(arrays((256, 784))[0]), cast(weights))
    yield "layer_norm", layer_norm, tuple(cast(arrays((4096, 1024), (1024,), (1024,))))
    yield "softmax", lambda x: jax.nn.softmax(x, axis=-1), tuple(cast(arrays((4096, 1024))))
    yield "attention", attention, tuple(cast(arrays(*[(4, 8, 128, 64)] * 3)))
    yield "transformer_block", block, (cast(arrays((4, 128, 512))[0]), cast(block_parameters()))
    yield "convolution", convolution, tuple(cast(arrays((8, 64, 56, 56), (64, 64, 3, 3), scale=0.2)))
    yield "recurrence", recurrence, tuple(cast(arrays((1000, 8, 32), (32, 64), (64, 64), scale=0.1)))


def block_parameters() -> dict[str, Any]:
    square = dict(zip("qkvo", arrays(*[(512, 512)] * 4, scale=512**-0.5), strict=True))
    up, down = arrays((512, 2048), (2048, 512), scale=0.03)
    norms = {name: (np.ones(512, np.float32), np.zeros(512, np.float32)) for name in ("norm1", "norm2")}
    return {**square, "up": up, "down": down, **norms}


def torch_cases(dtype: str) -> Iterator[tuple[str, Callable[..., Any], tuple[Any, ...]]]:
    import torch
    from torch.nn import functional

    own = getattr(torch, dtype)

    def cast(tree: Any) -> Any:
        if isinstance(tree, dict):
            return {name: cast(each) for name, each in tree.items()}
        if isinstance(tree, list | tuple):
            return [cast(each) for each in tree]
        return torch.from_numpy(np.asarray(tree)).to(own)

    def attention(q: Any, k: Any, v: Any) -> Any:
        return torch.softmax(q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5, -1) @ v

    def block(x: Any, p: dict[str, Any]) -> Any:
        b, t, d = x.shape
        h = functional.layer_norm(x, (d,), *p["norm1"])
        q, k, v = ((h @ p[n]).reshape(b, t, 8, d // 8).transpose(1, 2) for n in "qkv")
        x = x + attention(q, k, v).transpose(1, 2).reshape(b, t, d) @ p["o"]
        return x + functional.gelu(functional.layer_norm(x, (d,), *p["norm2"]) @ p["up"]) @ p["down"]

    weights = perceptron_parameters()
    yield "perceptron", lambda x, w: layers(x, w, torch.relu), (cast(arrays((256, 784))[0]), cast(weights))
    yield (
        "layer_norm",
        lambda x, w, b: functional.layer_norm(x, (1024,), w, b),
        tuple(cast(arrays((4096, 1024), (1024,), (1024,)))),
    )
    yield "softmax", lambda x: torch.softmax(x, -1), tuple(cast(arrays((4096, 1024))))
    yield "attention", attention, tuple(cast(arrays(*[(4, 8, 128, 64)] * 3)))
    yield "transformer_block", block, (cast(arrays((4, 128, 512))[0]), cast(block_parameters()))
    convolved = cast(arrays((8, 64, 56, 56), (64, 64, 3, 3), scale=0.2))
    yield "convolution", lambda x, w: functional.conv2d(x, w, padding=1), tuple(convolved)


NARROW = ("layer_norm", "softmax", "attention", "recurrence")
"""The cases that are measured in float16 and bfloat16 too."""


def cases(patterns: list[str]) -> Iterator[tuple[str, Any]]:
    """Names and graphs, one at a time."""
    import torch

    from capture import jax_capture, torch_capture
    from tlir.schema import from_json

    torch.set_num_threads(1)
    sides = (("jax", jax_cases, jax_capture.export), ("torch", torch_cases, torch_capture.export))
    for frontend, made, export in sides:
        for dtype in ("float32", "float16", "bfloat16"):
            for name, function, given in made(dtype):
                full = f"{name} {dtype} {frontend}"
                if dtype != "float32" and name not in NARROW:
                    continue
                if patterns and not any(fnmatch.fnmatch(full, pattern) for pattern in patterns):
                    continue
                yield full, from_json(export(function, *given))


def golden() -> Iterator[tuple[str, Any]]:
    from tlir.backends import run
    from tlir.schema import read

    for path in sorted((ROOT / "tests" / "golden").glob("*/*.json")):
        graph = read(path)
        run(graph, device="reference")
        if timed(lambda: run(graph, device="reference")) > SLOW:  # noqa: B023
            yield f"golden {path.parent.name}/{path.stem}", graph


def timed(function: Callable[[], Any]) -> float:
    start = time.process_time()
    function()
    return time.process_time() - start


def measured(graph: Any, passes: int) -> tuple[list[float], str]:
    """Seconds of the plain run, then the multiples, and the verdict."""
    from tlir.backends import run
    from tlir.compare import compare
    from tlir.compare.bounds import enclose, resolve
    from tlir.compare.fit import reproduced

    sample, freedoms = graph.samples[0], resolve("frontend", graph.producer)
    verdict = ""

    def whole() -> None:
        nonlocal verdict
        verdict = compare(graph, tolerance="auto").verdict  # type: ignore[attr-defined]

    parts: tuple[Callable[[], Any], ...] = (
        lambda: enclose(graph.body, sample.inputs, freedoms),
        lambda: reproduced(graph, sample, freedoms),
        whole,
    )

    def plain() -> float:
        return timed(lambda: run(graph, sample.inputs, device="reference"))

    plain()
    whole()
    times, ratios = [], [[] for _ in parts]  # type: list[float], list[list[float]]
    for _ in range(passes):
        for part, found in zip(parts, ratios, strict=True):
            before = plain()
            taken = timed(part)
            times.append(before)
            found.append(2 * taken / (before + plain()))
    return [median(times), *map(median, ratios)], verdict


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--golden", action="store_true")
    parser.add_argument("cases", nargs="*")
    given = parser.parse_args()
    print("| case | run | enclosures | search | whole comparison | verdict |\n|---|---|---|---|---|---|")
    found: dict[str, float] = {}
    sources = [golden()] if given.golden else []
    if given.cases or not given.golden:
        sources.append(cases(given.cases))
    for source in sources:
        for name, graph in source:
            (plain, *ratios), verdict = measured(graph, given.passes)
            found[name] = ratios[-1]
            cells = (name, f"{plain * 1e3:.1f} ms", *(f"{ratio:.1f}" for ratio in ratios), verdict)
            print("| " + " | ".join(cells) + " |", flush=True)
    if found:
        worst = max(found, key=lambda name: found[name])
        print(f"\nwhole comparison: median {median(found.values()):.1f}, worst {found[worst]:.1f} ({worst})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
