"""Generation steps captured from JAX and PyTorch, iterated by ``tlir run --repeat``: cached beside recomputed.

    python bench/generation.py [OUTPUT.md]

Every loop must give the same tokens, those that the frontend's own loop gives; the table has the processor time of
each.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stepping import TITLES, finish, iterate, module, table, where

CARRY = {"cached": ("cache", "token", "position"), "recomputed": ("tokens", "position")}


def loop(
    step: Callable[..., Any], carry: tuple[str, ...], arguments: tuple[Any, ...], steps: int
) -> tuple[list[int], float]:
    """The frontend's own loop: its tokens, and the median of a step's seconds of processor time."""
    tokens: list[int] = []
    result: dict[str, Any] = {}
    times: list[float] = []
    for _ in range(steps):
        began = time.process_time()
        result = step(*arguments)
        arguments = (*(result[name] for name in carry), *arguments[len(carry) :])
        int(result["position"])  # waits for the step
        if "token" in result:
            tokens.append(int(result["token"]))
        times.append(time.process_time() - began)
    if not tokens:
        tokens = [int(token) for token in result["tokens"][1:]]
    return tokens, statistics.median(times)


def measured(frontend: str, example: Any, which: str, folder: Path) -> tuple[list[int], list[str]]:
    """The frontend's tokens, and the row of the table. SystemExit where tlir gives others."""
    step, arguments = getattr(example, which), getattr(example, f"{which}_arguments")()
    steps, carry = example.LENGTH - 1, CARRY[which]
    capture = module("capture", f"{frontend}_capture")
    artifact, path = capture.export(step, *arguments), folder / f"{which}.json"
    capture.save(artifact, path)
    options = ("--record", "token") if which == "cached" else ()
    outputs, seconds = iterate(path, steps, carry, options)
    got = outputs["output['token']"]["values"] if which == "cached" else outputs["output['tokens']"]["values"][1:]
    loops = {"uncompiled": step}
    if frontend == "jax":
        import jax

        loops["compiled"] = jax.jit(step)
    else:
        import torch

        loops["compiled"] = torch.compile(step)
    times = []
    for name, function in loops.items():
        expected, taken = loop(function, carry, arguments, steps)
        if got != expected:
            raise SystemExit(f"{frontend} {which}, {name}: tlir gives other tokens: {got} for {expected}")
        times.append(f"{1000 * taken:.2f}")
    return got, [
        which,
        str(len(artifact["nodes"])),
        f"{1000 * seconds / steps:.1f}",
        *times,
    ]


def section(frontend: str) -> list[str]:
    example = module("examples", f"{frontend}_generation")
    with tempfile.TemporaryDirectory() as name:
        results = [measured(frontend, example, which, Path(name)) for which in CARRY]
    (cached, _), (recomputed, _) = results
    if cached != recomputed:
        raise SystemExit(f"{frontend}: cached {cached}, recomputed {recomputed}")
    headings = ("step", "nodes", "tlir", f"{TITLES[frontend]} uncompiled", f"{TITLES[frontend]} compiled")
    return [
        "",
        f"## {TITLES[frontend]}",
        "",
        f"{where(frontend)} {len(cached)} steps; all six loops give the same tokens: {', '.join(map(str, cached))}.",
        "",
        *table(headings, [row for _, row in results]),
    ]


def main() -> None:
    lines = [
        "# Generation steps, iterated",
        "",
        "Written by `python bench/generation.py bench/results-generation.md`: greedy generation with a small",
        "transformer (`examples/jax_generation.py`, `examples/torch_generation.py`), one token a step, with the keys",
        "and values of the places before in a cache or computed again. Milliseconds of processor time per step, all",
        "threads together: of tlir a share of the whole command's, with starting, reading and writing, of the",
        "frontend's own loop the median.",
    ]
    for frontend in TITLES:
        lines += section(frontend)
    finish(lines)


if __name__ == "__main__":
    main()
