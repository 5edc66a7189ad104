"""Training steps captured from JAX and PyTorch, iterated by ``tlir run --repeat``, beside the frontends' own loops.

    python bench/training.py [OUTPUT.md]

The yardstick is what the frontend itself shows: its compiled loop beside the same loop uncompiled. The steps in
binary128 say how much of each curve is rounding. Needs both frontends (and a C++ compiler for PyTorch's), and minutes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from stepping import TITLES, finish, iterate, module, table, tlir, where

STEPS = 50
CARRY = ("params", "state")
EXACT = ("--print", "rational")
SHOWN = (1, 2, 5, 10, 20, 30, 40, 50)

Curve = list[Fraction]


def loop(step: Callable[..., Any], example: Any, as_input: Callable[[Any], Any]) -> Curve:
    """The losses of the frontend's own loop."""
    params, state, _ = example.arguments()
    losses: Curve = []
    for tokens in example.batches(STEPS):
        result = step(params, state, as_input(tokens))
        params, state = result["params"], result["state"]
        losses.append(Fraction(float(result["loss"])))
    return losses


def frontend_loops(frontend: str, example: Any) -> dict[str, Curve]:
    if frontend == "jax":
        import jax

        compiled = loop(jax.jit(example.step), example, lambda tokens: tokens)
        return {"uncompiled": loop(example.step, example, lambda tokens: tokens), "compiled": compiled}
    import torch

    uncompiled = loop(example.step, example, torch.from_numpy)
    return {"uncompiled": uncompiled, "compiled": loop(torch.compile(example.step), example, torch.from_numpy)}


def captured(frontend: str, example: Any, folder: Path) -> tuple[dict[str, Curve], int]:
    """tlir's curves, and the number of nodes."""
    capture = module("capture", f"{frontend}_capture")
    artifact = capture.export(example.step, *example.arguments())
    step, wide, batches = folder / "step.json", folder / "wide.json", folder / "batches.npy"
    capture.save(artifact, step)
    np.save(batches, example.batches(STEPS))
    tlir("cast", str(step), "--to", "binary128", "-o", str(wide))
    curves = {}
    for name, path in (("tlir", step), ("binary128", wide)):
        outputs, _ = iterate(path, STEPS, CARRY, ("--each", f"tokens={batches}", "--record", "loss", *EXACT))
        curves[name] = [Fraction(value) for value in outputs["output['loss']"]["values"]]
    return curves, len(artifact["nodes"])


def largest(a: Curve, b: Curve) -> float:
    return float(max(abs(x - y) for x, y in zip(a, b, strict=True)))


def section(frontend: str) -> list[str]:
    example = module("examples", f"{frontend}_training")
    with tempfile.TemporaryDirectory() as name:
        curves, nodes = captured(frontend, example, Path(name))
    curves = frontend_loops(frontend, example) | curves
    names = ("uncompiled", "compiled", "tlir", "binary128")
    losses = {name: curves[name] for name in names}
    rows = [
        [
            str(k),
            *(f"{float(losses[name][k - 1]):.9f}" for name in names[:3]),
            f"{float(losses['binary128'][k - 1]):.15f}",
        ]
        for k in SHOWN
    ]
    pairs = [("compiled", "uncompiled"), ("tlir", "uncompiled"), ("tlir", "compiled")]
    pairs += [(name, "binary128") for name in names[:3]]
    differences = [[f"{a} − {b}", f"{largest(losses[a], losses[b]):.3g}"] for a, b in pairs]
    own = largest(losses["compiled"], losses["uncompiled"])
    found = min(largest(losses["tlir"], losses[other]) for other in ("compiled", "uncompiled"))
    verdict = "within" if found <= own else "beyond"
    return [
        "",
        f"## {TITLES[frontend]}",
        "",
        f"{where(frontend)} The step has {nodes} nodes.",
        "",
        *table(("step", "uncompiled", "compiled", "tlir", "binary128"), rows),
        "",
        f"The largest differences of the loss in {STEPS} steps; tlir is {verdict} the frontend's own.",
        "",
        *table(("curves", "largest difference"), differences),
    ]


def main() -> None:
    lines = [
        "# Training steps, iterated",
        "",
        "Written by `python bench/training.py bench/results-training.md`: a small transformer with Adam",
        "(`examples/jax_training.py`, `examples/torch_training.py`), its whole step captured once and iterated by",
        f"`tlir run --repeat {STEPS} --carry params=params --carry state=state --each tokens=batches.npy --record",
        "loss`.",
    ]
    for frontend in TITLES:
        lines += section(frontend)
    finish(lines)


if __name__ == "__main__":
    main()
