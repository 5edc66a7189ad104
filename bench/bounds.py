"""Rigorous bounds measured: how tight they are, what they cost, whether random executions stay inside, and how accurate
the frontends' functions are.

    python bench/bounds.py tightness [RUNS]      the table of docs/bounds.md, from RUNS (300) executions each
    python bench/bounds.py cost                  time of the enclosures beside the plain reference run
    python bench/bounds.py limits                how far down a flipped bit of a weight is a bug
    python bench/bounds.py executions [COUNT]    COUNT (10000) executions of random graphs; status 1 if a value leaves
    python bench/bounds.py accuracy jax|torch    the largest errors from which bounds/accuracy.toml was written

`tightness` and `cost` capture the examples of both frontends, `accuracy` needs its frontend and SciPy. Times are the
least of nine of the process's own time, on one thread.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "compare"))

EXAMPLES = ("perceptron", "layer_norm", "softmax", "attention", "transformer_block")


def examples(width: int, batch: int) -> Iterator[tuple[str, str, Any]]:
    """(frontend, name, graph) of the examples captured at this size."""
    from tlir.schema import read

    with tempfile.TemporaryDirectory() as folder:
        for frontend in ("jax", "torch"):
            script = ROOT / "examples" / f"{frontend}_examples.py"
            target = Path(folder) / frontend
            command = [sys.executable, str(script), str(target), "--width", str(width), "--batch", str(batch)]
            subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
            for name in EXAMPLES:
                yield frontend, name, read(target / f"{name}.json")


def tightness(runs: int) -> None:
    """Per example: the spread of random executions, the median and the largest enclosure, and what was recorded."""
    from tlir.compare.auto import compare_auto
    from tlir.compare.bounds import resolve
    from tlir.compare.stress import stress

    print("| example | size | frontend | recorded differs by | largest spread | median enclosure | largest | ratio |")
    print("|---|---|---|---|---|---|---|---|")
    for width, batch in ((4, 2), (16, 4)):
        for frontend, name, graph in examples(width, batch):
            report = compare_auto(graph)
            found = stress(
                graph,
                graph.samples[0].inputs,
                resolve("frontend", graph.producer),
                runs=runs,
                contributions=False,
            )
            assert found.ok
            spread = found.outputs[0].spread
            differs = report.outputs[0].max_absolute
            cells = (
                name.replace("_", " "),
                f"{width} × {batch}",
                frontend,
                f"{float(differs.absolute):.1e}, {report.verdict}" if differs else "0, identical",
                f"{spread.absolute:.1e}",
                f"{report.outputs[0].typical:.1e}",  # type: ignore[attr-defined]
                f"{spread.enclosure_absolute:.1e}",
                f"{spread.tightness:.2g}" if spread.tightness is not None else "",
            )
            print("| " + " | ".join(cells) + " |", flush=True)


def least(function: Callable[[], Any], times: int = 9) -> float:
    """The least of the process's times in seconds."""
    best = float("inf")
    for _ in range(times):
        start = time.process_time()
        function()
        best = min(best, time.process_time() - start)
    return best


def cost() -> None:
    """The time of the reference run, and of enclosures and of the whole comparison as multiples of it."""
    from tlir.backends import run
    from tlir.compare.auto import compare_auto
    from tlir.compare.bounds import enclose, resolve

    print("| example | size | frontend | run | enclosures | whole comparison |")
    print("|---|---|---|---|---|---|")
    for width, batch in ((64, 32), (256, 64)):
        for frontend, name, graph in examples(width, batch):
            inputs, freedoms = graph.samples[0].inputs, resolve("frontend", graph.producer)
            plain = least(lambda: run(graph, inputs, device="reference"))  # noqa: B023
            bounds = least(lambda: enclose(graph.body, inputs, freedoms))  # noqa: B023
            whole = least(lambda: compare_auto(graph), 3)  # noqa: B023
            cells = (name.replace("_", " "), f"{width} × {batch}", frontend, f"{plain * 1e3:.2f} ms")
            print("| " + " | ".join((*cells, f"{bounds / plain:.1f}", f"{whole / plain:.1f}")) + " |", flush=True)


def limits() -> None:
    """Per example with float32 weights: the last fraction bit of an average weight whose inversion is a bug, of all
    weights the least and the greatest, by the outputs alone and with a trace."""
    from dataclasses import replace

    from mutations import Fault, flipped_bit, frontend_values

    from tlir.compare.auto import compare_auto
    from tlir.compare.locate import located
    from tlir.ir.graph import Graph, Sample

    def recorded(graph: Graph, fault: Fault) -> Graph:
        inputs = graph.samples[0].inputs
        values = frontend_values(graph, inputs, fault)
        kept = {ref: tensor for ref, tensor in values.items() if graph.nodes[ref.node].op not in ("input", "constant")}
        outputs = tuple(values[ref] for ref in graph.body.outputs)
        return replace(graph, samples=(Sample(inputs, outputs, kept),))

    def alone(graph: Graph) -> bool:
        return compare_auto(graph).verdict == "bug"

    def traced(graph: Graph) -> bool:
        return not all(location.ok for location in located(graph))

    print("| example | size | frontend | weights | by outputs alone | with a trace |")
    print("|---|---|---|---|---|---|")
    for width, batch in ((4, 2), (16, 4)):
        for frontend, name, graph in examples(width, batch):
            faults = list(zip(*(flipped_bit(graph, bit) for bit in range(1, 24)), strict=True))
            if not faults:
                continue
            ends = []
            for found in (alone, traced):
                last = []
                for bits in faults:  # one weight, from the highest bit to the lowest
                    seen = [found(recorded(graph, fault)) for fault in bits]
                    last.append(seen.index(False) if False in seen else len(seen))
                ends.append(f"{min(last)} to {max(last)}" if min(last) < max(last) else str(min(last)))
            cells = (name.replace("_", " "), f"{width} × {batch}", frontend, str(len(faults)), *ends)
            print("| " + " | ".join(cells) + " |", flush=True)


def executions(count: int) -> int:
    """Random permitted executions of random graphs, two per graph; how many values left their enclosures."""
    from bounds_graphs import random_graph

    from tlir.compare.bounds import POLICIES, enclose, resolve
    from tlir.compare.executions import execute

    outside = 0
    for seed in range((count + 1) // 2):
        rng = np.random.default_rng(seed)
        graph, inputs = random_graph(rng, int(rng.integers(2, 12)))
        freedoms = resolve(str(rng.choice(sorted(POLICIES))), graph.producer)
        enclosures: dict[int, Any] = {}
        enclose(graph.body, inputs, freedoms, lambda node, made: enclosures.__setitem__(node.id, made))  # noqa: B023
        for number in range(2):

            def check(node: Any, tensors: Any, seed: int = seed, kept: Any = enclosures) -> None:
                nonlocal outside
                for tensor, enclosure in zip(tensors, kept[node.id], strict=True):
                    if not enclosure.contains(tensor).all():
                        outside += 1
                        print(f"graph {seed}: {node} leaves its enclosure")

            execute(graph.body, inputs, freedoms, np.random.default_rng((seed, number)), check)
    print(f"{count} executions, {outside} values outside of their enclosures")
    return 1 if outside else 0


def accuracy(frontend: str) -> None:
    """The largest error of each function in units in the last place of float32 and, where NumPy's extended precision
    has the function, float64."""
    exact, functions, call = _functions(frontend)
    rng = np.random.default_rng(1)
    for name, function in functions.items():
        operands = [_samples(rng) for _ in range(2 if name in ("atan2", "power", "hypot", "log_add_exp") else 1)]
        size = min(map(len, operands))
        operands = [rng.permutation(values)[:size] for values in operands]
        for dtype in (np.float32, np.float64):
            given = [values.astype(dtype) for values in operands]
            if dtype is np.float64:
                given = [values * (1 + rng.uniform(0, 1e-8, size)) for values in given]
            wide = np.longdouble if dtype is np.float64 else np.float64
            with np.errstate(all="ignore"):
                try:
                    values = exact[name](*(x.astype(wide) for x in given))
                except TypeError:
                    continue  # SciPy has no extended precision
                if values.dtype != wide:
                    continue
                got = call(function, *given)
                _report(name, dtype, got, values)


def _samples(rng: np.random.Generator, count: int = 1 << 19) -> np.ndarray[Any, Any]:
    parts = (
        rng.integers(0, 1 << 32, count, dtype=np.uint32).view(np.float32),
        rng.normal(size=count),
        rng.uniform(-20, 20, count),
        rng.uniform(-1, 1, count),
        1 + rng.normal(size=count // 4) * 10.0 ** rng.uniform(-7, 0, count // 4),
        rng.normal(size=count // 4) * 10.0 ** rng.uniform(-10, 3, count // 4),
        rng.uniform(-110, 110, count // 2),
    )
    x = np.concatenate([part.astype(np.float32) for part in parts])
    return x[np.isfinite(x) & ((np.abs(x) >= np.finfo(np.float32).tiny) | (x == 0))]


def _report(name: str, dtype: Any, got: Any, values: Any) -> None:
    info = np.finfo(dtype)
    good = np.isfinite(got) & np.isfinite(values) & (np.abs(values) >= info.tiny) & (np.abs(values) < info.max)
    right, found = values[good], got[good].astype(values.dtype)
    _, exponent = np.frexp(np.abs(right))
    unit = np.ldexp(np.ones_like(right), np.maximum(exponent - info.nmant - 1, info.minexp - info.nmant))
    error = np.abs(found - right)
    near = float((error / np.maximum(unit, info.eps)).max())
    print(
        f"{name:24}{info.dtype}  {float((error / unit).max()):12.3f} ulps, with a floor of 1 {near:10.3f}", flush=True
    )


def _functions(frontend: str) -> tuple[dict[str, Any], dict[str, Any], Callable[..., Any]]:
    import scipy.special as special

    exact: dict[str, Any] = {
        "exponential": np.exp, "exponential_minus_one": np.expm1, "log": np.log, "log_plus_one": np.log1p,
        "logistic": special.expit, "tanh": np.tanh, "sine": np.sin, "cosine": np.cos, "tan": np.tan,
        "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh,
        "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "exp2": np.exp2, "log2": np.log2,
        "log10": np.log10, "cbrt": np.cbrt, "erf": special.erf, "erfc": special.erfc, "erf_inv": special.erfinv,
        "lgamma": special.gammaln, "digamma": special.digamma, "rsqrt": lambda x: 1 / np.sqrt(x), "sqrt": np.sqrt,
        "bessel_i0e": special.i0e, "bessel_i1e": special.i1e, "atan2": np.arctan2, "power": np.power,
        "hypot": np.hypot, "log_add_exp": np.logaddexp,
    }  # fmt: skip
    if frontend == "jax":
        import jax
        import jax.numpy as jnp
        from jax import lax

        jax.config.update("jax_enable_x64", True)
        names = {
            "exponential": "exp", "exponential_minus_one": "expm1", "log": "log", "log_plus_one": "log1p",
            "logistic": "logistic", "tanh": "tanh", "sine": "sin", "cosine": "cos", "tan": "tan", "asin": "asin",
            "acos": "acos", "atan": "atan", "sinh": "sinh", "cosh": "cosh", "asinh": "asinh", "acosh": "acosh",
            "atanh": "atanh", "exp2": "exp2", "cbrt": "cbrt", "erf": "erf", "erfc": "erfc", "erf_inv": "erf_inv",
            "lgamma": "lgamma", "digamma": "digamma", "rsqrt": "rsqrt", "sqrt": "sqrt", "bessel_i0e": "bessel_i0e",
            "bessel_i1e": "bessel_i1e", "atan2": "atan2", "power": "pow",
        }  # fmt: skip
        functions = {name: getattr(lax, own) for name, own in names.items()} | {"log_add_exp": jnp.logaddexp}
        return exact, functions, lambda f, *given: np.asarray(f(*map(jnp.asarray, given)))
    import torch

    torch.set_num_threads(1)
    names = {
        "exponential": "exp", "exponential_minus_one": "expm1", "log": "log", "log_plus_one": "log1p",
        "logistic": "sigmoid", "tanh": "tanh", "sine": "sin", "cosine": "cos", "tan": "tan", "asin": "asin",
        "acos": "acos", "atan": "atan", "sinh": "sinh", "cosh": "cosh", "asinh": "asinh", "acosh": "acosh",
        "atanh": "atanh", "exp2": "exp2", "log2": "log2", "log10": "log10", "erf": "erf", "erfc": "erfc",
        "erf_inv": "erfinv", "lgamma": "lgamma", "digamma": "digamma", "rsqrt": "rsqrt", "sqrt": "sqrt",
        "atan2": "atan2", "power": "pow", "hypot": "hypot", "log_add_exp": "logaddexp",
    }  # fmt: skip
    functions = {name: getattr(torch, own) for name, own in names.items()}
    functions |= {"bessel_i0e": torch.special.i0e, "bessel_i1e": torch.special.i1e}
    return exact, functions, lambda f, *given: f(*map(torch.from_numpy, given)).numpy()


def main(arguments: list[str]) -> int:
    match arguments:
        case ["tightness", *rest]:
            tightness(int(rest[0]) if rest else 300)
        case ["cost"]:
            cost()
        case ["limits"]:
            limits()
        case ["executions", *rest]:
            return executions(int(rest[0]) if rest else 10000)
        case ["accuracy", ("jax" | "torch") as frontend]:
            accuracy(frontend)
        case _:
            print(__doc__)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
