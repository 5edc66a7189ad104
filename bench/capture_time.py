"""The time that a capture takes beside the frontend's own export, and a trace beside the frontend's op-by-op run.

    python bench/capture_time.py [OUTPUT.md] [--passes N] [--only jax|torch] [--program NAME]

Every measurement is made in a process of its own, which makes the program and its arguments first; imports are not
counted. The processes of a program alternate, and a ratio is the median of those of processes side by side. An export
is ``jax.export.export(jax.jit(f))(*arguments)`` or ``torch.export.export``; a capture exports and computes every
recorded value too. Op by op a program runs under ``jax.disable_jit()``, which compiles every primitive for itself. For
traces the first call in a process and the median of the following ones are given.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from stepping import TITLES, where

PROGRAMS = {
    "jax": ("twelve layers", "twelve layers as a scan", "gradient of twelve layers", "twelve layers of width 256"),
    "torch": ("twelve layers", "twelve layers of width 256"),
}
TRACED = ("perceptron", "one layer", "twelve layers", "twelve layers of width 256")
WAYS = ("export", "capture", "capture with a trace")
AGAIN = 5


def _sizes(program: str) -> tuple[int, int, int, int]:
    """Width, heads, places and tokens."""
    return (256, 8, 128, 1000) if "256" in program else (64, 4, 16, 100)


def _layers(program: str) -> int:
    return {"perceptron": 2, "one layer": 1}.get(program, 12)


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
        for _ in range(_layers(program))
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
        if "scan" in program:
            x, _ = jax.lax.scan(lambda x, p: (block(x, p), None), x, layers)
        else:
            for p in layers:
                x = block(x, p)
        return norm(x, outside["scale"], 0.0) @ outside["embedding"].T

    def perceptron(outside: Any, layers: Any, given: Any) -> Any:
        x = outside["embedding"][given]
        for p in layers:
            x = jnp.tanh(x @ p["up"] + p["bias_up"]) @ p["down"] + p["bias_down"]
        return x

    def loss(outside: Any, layers: Any, given: Any) -> Any:
        return -jnp.mean(jax.nn.log_softmax(transformer(outside, layers, given))[jnp.arange(places), given])

    outside, layers = _parameters(program)
    if "scan" in program:
        layers = jax.tree.map(lambda *parts: np.stack(parts), *layers)
    given = np.arange(places, dtype=np.int32) * 7 % tokens
    arguments = jax.tree.map(jnp.asarray, (outside, layers, given))
    if program == "perceptron":
        return perceptron, arguments
    return jax.value_and_grad(loss, argnums=(0, 1)) if "gradient" in program else transformer, arguments


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
                for _ in range(_layers(program))
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
    """Wall and processor seconds of one way, in this process: of the first call, and medians of more calls."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    fn, arguments = {"jax": _jax, "torch": _torch}[frontend](program)
    work: Callable[[], Any]
    if "capture" in way:
        if frontend == "jax":
            from capture import jax_capture as capture
        else:
            from capture import torch_capture as capture  # type: ignore[no-redef]
        if way == "capture to a file with a trace":
            folder = tempfile.TemporaryDirectory()
            work = lambda: capture.write(Path(folder.name) / "a.json", fn, *arguments, trace=True)  # noqa: E731
        else:
            work = lambda: capture.export(fn, *arguments, trace="trace" in way)  # noqa: E731
    elif frontend == "jax":
        import jax
        from jax import export

        def op_by_op() -> None:
            with jax.disable_jit():
                jax.block_until_ready(fn(*arguments))

        work = op_by_op if way == "op by op" else lambda: export.export(jax.jit(fn))(*arguments)
    else:
        import torch

        work = lambda: torch.export.export(fn, arguments)  # noqa: E731
    times = []
    for _ in range(1 + AGAIN * (way not in WAYS[:2])):
        wall, processor = time.perf_counter(), time.process_time()
        work()
        times.append((time.perf_counter() - wall, time.process_time() - processor))
    return [*times[0], *(statistics.median(column) for column in zip(*times[1:] or times, strict=True))]


def _in_a_process(*what: str) -> list[float]:
    done = subprocess.run([sys.executable, __file__, "--one", *what], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(what)} failed:\n{done.stderr[-2000:]}")
    found: list[float] = json.loads(done.stdout.splitlines()[-1])
    return found


def measured(frontend: str, program: str, ways: tuple[str, ...], columns: range, passes: int) -> list[str]:
    """The rows of a program: seconds of each way, and the medians of the ratios to the first of them beside it."""
    times: dict[str, list[list[float]]] = {way: [] for way in ways}
    for _ in range(passes):
        for way in ways:
            times[way].append(_in_a_process(frontend, program, way))
    rows = []
    for way in ways:
        cells = []
        for which in columns:
            ours, theirs = ([item[which] for item in times[name]] for name in (way, ways[0]))
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
    lines = ["# The time of a capture", "", "Written by `python bench/capture_time.py bench/results-capture-time.md`:"]
    text = (__doc__ or "").partition("NAME]")[2].strip().replace("``", "`")
    lines += [
        *text.splitlines(),
        f"Medians of {options.passes} processes. Twelve layers have width 64, four heads and 16",
    ]
    lines += ["places, unless it is said.", ""]
    for frontend in [options.only] if options.only else PROGRAMS:
        lines += [f"## {TITLES[frontend]}", "", where(frontend), ""]
        lines += ["| program | | wall s | to export | processor s | to export |", "|---|---|---:|---:|---:|---:|"]
        for program in PROGRAMS[frontend]:
            if options.program in (None, program):
                lines += measured(frontend, program, WAYS, range(2), options.passes)
        if frontend == "jax":  # that of PyTorch is in torch_tracing.py
            lines += ["", "| program | | first: wall s | to op by op | processor s | to op by op "]
            lines[-1] += "| again: wall s | to op by op | processor s | to op by op |"
            lines.append("|---|---|" + 8 * "---:|")
            for program in TRACED:
                if options.program in (None, program):
                    ways = ("op by op", "capture with a trace", "capture to a file with a trace")
                    lines += measured(frontend, program, ways, range(4), options.passes)
        lines.append("")
    text = "\n".join(lines)
    print(text)
    if options.output:
        options.output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
