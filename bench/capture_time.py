"""The time that a capture takes beside the frontend's own export, each in a process of its own.

    python bench/capture_time.py [OUTPUT.md] [--passes N] [--only jax|torch]

The programs are transformers of twelve layers. A process makes the program and its arguments, and then does one thing
once: the frontend's export (``jax.export.export(jax.jit(f))(*arguments)``, ``torch.export.export``), or the capture,
which exports and computes every recorded value too. Imports are not counted. The processes of a program alternate.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

LAYERS = 12
PROGRAMS = {
    "jax": ("unrolled", "as a scan", "gradient", "width 256"),
    "torch": ("unrolled", "width 256"),
}
WAYS = ("export", "capture", "capture, traced")


def _sizes(program: str) -> tuple[int, int, int, int]:
    """Width, heads, places and tokens."""
    return (256, 8, 128, 1000) if program == "width 256" else (64, 4, 16, 100)


def _parameters(program: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    width, _, places, tokens = _sizes(program)
    rng = np.random.default_rng(0)

    def normal(*shape: int) -> np.ndarray:
        return (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)

    outside = {"embedding": normal(tokens, width), "positions": normal(places, width), "scale": normal(width) + 1}
    layers = [
        {
            "scale1": normal(width) + 1,
            "shift1": normal(width),
            "qkv": normal(width, 3 * width),
            "out": normal(width, width),
            "scale2": normal(width) + 1,
            "shift2": normal(width),
            "up": normal(width, 4 * width),
            "bias_up": normal(4 * width),
            "down": normal(4 * width, width),
            "bias_down": normal(width),
        }
        for _ in range(LAYERS)
    ]
    return outside, layers


def _jax(program: str) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    import jax
    import jax.numpy as jnp

    _, heads, places, tokens = _sizes(program)

    def norm(x: Any, scale: Any, shift: Any) -> Any:
        mean = jnp.mean(x, axis=-1, keepdims=True)
        variance = jnp.var(x, axis=-1, keepdims=True)
        return (x - mean) / jnp.sqrt(variance + 1e-5) * scale + shift

    def block(x: Any, p: Any) -> Any:
        count, width = x.shape
        y = norm(x, p["scale1"], p["shift1"]) @ p["qkv"]
        q, k, v = (jnp.transpose(part.reshape(count, heads, -1), (1, 0, 2)) for part in jnp.split(y, 3, axis=-1))
        scores = jnp.einsum("hid,hjd->hij", q, k) / float(np.sqrt(width // heads))
        scores = jnp.where(jnp.tril(jnp.ones((count, count), bool)), scores, -jnp.inf)
        mixed = jnp.einsum("hij,hjd->hid", jax.nn.softmax(scores, axis=-1), v)
        x = x + jnp.transpose(mixed, (1, 0, 2)).reshape(count, width) @ p["out"]
        y = jax.nn.gelu(norm(x, p["scale2"], p["shift2"]) @ p["up"] + p["bias_up"])
        return x + y @ p["down"] + p["bias_down"]

    def transformer(outside: Any, layers: Any, given: Any) -> Any:
        x = outside["embedding"][given] + outside["positions"]
        if program == "as a scan":
            x, _ = jax.lax.scan(lambda x, p: (block(x, p), None), x, layers)
        else:
            for p in layers:
                x = block(x, p)
        return norm(x, outside["scale"], 0.0) @ outside["embedding"].T

    def loss(outside: Any, layers: Any, given: Any) -> Any:
        return -jnp.mean(jax.nn.log_softmax(transformer(outside, layers, given))[jnp.arange(places), given])

    outside, layers = _parameters(program)
    if program == "as a scan":
        layers = jax.tree.map(lambda *parts: np.stack(parts), *layers)
    given = np.arange(places, dtype=np.int32) * 7 % tokens
    arguments = jax.tree.map(jnp.asarray, (outside, layers, given))
    return jax.value_and_grad(loss, argnums=(0, 1)) if program == "gradient" else transformer, arguments


def _torch(program: str) -> tuple[Any, tuple[Any, ...]]:
    import torch
    from torch.nn import functional

    width, heads, places, tokens = _sizes(program)

    class Transformer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = torch.nn.Embedding(tokens, width)
            self.positions = torch.nn.Parameter(torch.randn(places, width))
            linear, norm = torch.nn.Linear, torch.nn.LayerNorm
            kinds = {"norm1": norm(width), "norm2": norm(width)}
            self.layers = torch.nn.ModuleList(
                torch.nn.ModuleDict(
                    {
                        **{name: norm(width) for name in kinds},
                        "qkv": linear(width, 3 * width),
                        "out": linear(width, width),
                        "up": linear(width, 4 * width),
                        "down": linear(4 * width, width),
                    }
                )
                for _ in range(LAYERS)
            )
            self.norm = norm(width)

        def block(self, x: Any, p: Any) -> Any:
            count = x.shape[0]
            parts = p["qkv"](p["norm1"](x)).reshape(count, 3, heads, -1).permute(1, 2, 0, 3)
            q, k, v = parts.unbind(0)
            scores = q @ k.transpose(-1, -2) / (width // heads) ** 0.5
            scores = scores.masked_fill(~torch.ones(count, count, dtype=torch.bool).tril(), float("-inf"))
            mixed = torch.softmax(scores, -1) @ v
            x = x + p["out"](mixed.permute(1, 0, 2).reshape(count, width))
            return x + p["down"](functional.gelu(p["up"](p["norm2"](x))))

        def forward(self, given: Any) -> Any:
            x = self.embedding(given) + self.positions
            for p in self.layers:
                x = self.block(x, p)
            return self.norm(x) @ self.embedding.weight.T

    torch.manual_seed(0)
    return Transformer().eval(), (torch.arange(places) * 7 % tokens,)


def _one(frontend: str, program: str, way: str) -> list[float]:
    """Wall and processor seconds of one way, in this process."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    fn, arguments = {"jax": _jax, "torch": _torch}[frontend](program)
    work: Callable[[], Any]
    if way != "export":
        if frontend == "jax":
            from capture import jax_capture as capture
        else:
            from capture import torch_capture as capture  # type: ignore[no-redef]
        work = lambda: capture.export(fn, *arguments, trace=way == "capture, traced")  # noqa: E731
    elif frontend == "jax":
        import jax
        from jax import export

        work = lambda: export.export(jax.jit(fn))(*arguments)  # noqa: E731
    else:
        import torch

        work = lambda: torch.export.export(fn, arguments)  # noqa: E731
    wall, processor = time.perf_counter(), time.process_time()
    work()
    return [time.perf_counter() - wall, time.process_time() - processor]


def _in_a_process(*what: str) -> list[float]:
    done = subprocess.run([sys.executable, __file__, "--one", *what], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(what)} failed:\n{done.stderr[-2000:]}")
    found: list[float] = json.loads(done.stdout.splitlines()[-1])
    return found


def measured(frontend: str, program: str, passes: int) -> list[str]:
    """The rows of a program: seconds of each way, and the medians of the ratios to the export beside it."""
    times: dict[str, list[list[float]]] = {way: [] for way in WAYS}
    for _ in range(passes):
        for way in WAYS:
            times[way].append(_in_a_process(frontend, program, way))
    rows = []
    for way in WAYS:
        cells = []
        for which in (0, 1):
            ours, theirs = ([item[which] for item in times[name]] for name in (way, "export"))
            ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
            cells += [f"{statistics.median(ours):.3f}", f"{ratio:.2f}"]
        rows.append(f"| {program} | {way} | " + " | ".join(cells) + " |")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("output", nargs="?", type=Path)
    parser.add_argument("--passes", type=int, default=7)
    parser.add_argument("--only", choices=PROGRAMS)
    parser.add_argument("--program")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(_one(*options.one)))
        return
    lines = ["# The time of a capture", ""]
    for frontend in [options.only] if options.only else PROGRAMS:
        lines += [f"## {frontend}", "", "| program | | wall s | to export | processor s | to export |"]
        lines += ["|---|---|---:|---:|---:|---:|"]
        for program in PROGRAMS[frontend]:
            if options.program in (None, program):
                lines += measured(frontend, program, options.passes)
        lines.append("")
    text = "\n".join(lines)
    print(text)
    if options.output:
        options.output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
