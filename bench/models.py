"""Models and training steps, captured, checked, run on the reference and compared with the frontend's own results.

    python bench/models.py [--frontend torch|jax] [--limit SECONDS] [--write] [NAME ...]

A NAME is a shell pattern; all models without one. Each model is captured and compared in a process of its own, with a
limit of time. A model matches if its artifact checks, its integers and Booleans are equal, and every other output
differs from the recorded one by at most LIMITS times the greatest element recorded; ``error`` is the greatest such
ratio. ``--write`` writes the table to ``bench/results-models.md``. Models whose packages are missing are skipped.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib.util
import multiprocessing
import sys
import time
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from bench.zoo import MODELS, Model  # noqa: E402

LIMITS = {"float64": 1e-11, "complex128": 1e-11, "float32": 2e-5, "complex64": 2e-5, "bfloat16": 0.03, "float16": 0.004}
PARTS = {
    "torch": ("torch_written", "torch_blocks", "torch_numerics", "torch_training", "torch_published"),
    "jax": ("jax_written", "jax_numerics", "jax_arrays", "jax_libraries", "jax_published"),
}


def script(frontend: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"{frontend}_capture", ROOT / "capture" / f"{frontend}_capture.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def difference(mine: Any, theirs: Any) -> tuple[float, float]:
    """The greatest difference over the greatest magnitude recorded, and what is allowed; infinite where one is not
    finite and the other is not the same."""
    assert mine.type == theirs.type
    name = theirs.dtype.name
    a, b = (tensor.to_numpy() for tensor in (mine, theirs))
    if name not in LIMITS:
        return (0.0 if np.array_equal(a, b) else float("inf")), 0.0
    wide = np.complex128 if np.iscomplexobj(b) else np.float64
    a, b = a.astype(wide).reshape(-1), b.astype(wide).reshape(-1)
    finite = np.isfinite(b)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    if not (np.isfinite(a) == finite).all() or not same[~finite].all():
        return float("inf"), LIMITS[name]
    scale = np.abs(b[finite]).max(initial=0.0)
    return float(np.abs(a[finite] - b[finite]).max(initial=0.0) / (scale or 1.0)), LIMITS[name]


def measured(entry: Model) -> dict[str, Any]:
    """Capture, check, run and compare one model."""
    warnings.simplefilter("ignore")
    found: dict[str, Any] = {"name": entry.name, "frontend": entry.frontend}
    try:
        fn, args, *rest = entry.make()
    except ImportError as error:
        return found | {"status": "skipped", "reason": f"no module {error.name}"}
    except Exception as error:
        return found | {"status": "not made", "reason": f"{type(error).__name__}: {error}"[:300]}
    kwargs = rest[0] if rest else {}
    capture = script(entry.frontend)
    start = time.perf_counter()
    try:
        artifact = capture.export(fn, *args, **kwargs)
    except capture.CaptureError as error:
        return found | {"status": "refused", "reason": str(error)[:600]}
    except Exception as error:
        return found | {"status": "crashed", "reason": f"{type(error).__name__}: {error}"[:600]}
    found["capture"] = time.perf_counter() - start
    return found | compared(artifact)


def compared(artifact: dict[str, Any]) -> dict[str, Any]:
    import tlir
    from tlir.backends.reference import evaluate
    from tlir.schema import from_json

    start = time.perf_counter()
    graph = from_json(artifact)
    report = tlir.load(artifact).check()
    found = {"check": time.perf_counter() - start, "nodes": len(graph.body.nodes)}
    if not report.ok:
        return found | {"status": "ill-typed", "reason": str(report.to_json())[:600]}
    start = time.perf_counter()
    (sample,) = graph.samples
    results = evaluate(graph.body, sample.inputs)
    found["run"] = time.perf_counter() - start
    pairs = [difference(mine, theirs) for mine, theirs in zip(results, sample.outputs, strict=True)]
    found["outputs"] = len(pairs)
    found["error"] = max((error for error, _ in pairs), default=0.0)
    wrong = [k for k, (error, limit) in enumerate(pairs) if error > limit]
    if not pairs:
        return found | {"status": "mismatch", "reason": "nothing was compared"}
    if wrong:
        return found | {"status": "mismatch", "reason": f"outputs {wrong[:10]}"}
    return found | {"status": "matches"}


def in_a_process(entry: Model, limit: float) -> dict[str, Any]:
    """What ``measured`` says, from a forked process that is ended after ``limit`` seconds."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=lambda: there.send(measured(entry)))
    process.start()
    there.close()
    found = {"name": entry.name, "frontend": entry.frontend}
    try:
        if here.poll(limit):
            return here.recv()
        process.kill()
        return found | {"status": "timed out", "reason": f"{limit:.0f} s"}
    except EOFError:
        return found | {"status": "crashed", "reason": "its process ended"}
    finally:
        process.join()


def row(found: dict[str, Any]) -> str:
    times = " | ".join(f"{found[key]:.2f}" if key in found else "" for key in ("capture", "check", "run"))
    error = f"{found['error']:.1e}" if "error" in found else ""
    reason = " ".join(found.get("reason", "").split()).replace("|", "\\|")
    return (
        f"| {found['frontend']} | {found['name']} | {found['status']} | {found.get('nodes', '')} | {times} | {error} |"
        f" {reason[:200]} |"
    )


HEAD = """| frontend | model | status | nodes | capture s | check s | run s | error | |
|---|---|---|---|---|---|---|---|---|"""


def load(frontends: list[str]) -> list[str]:
    """Import the modules that hold the models; says what could not be."""
    missing = []
    for frontend in frontends:
        for part in PARTS[frontend]:
            try:
                importlib.import_module(f"bench.zoo.{part}")
            except ImportError as error:
                missing.append(f"{part}: {error}")
    return missing


def summary(rows: list[dict[str, Any]]) -> str:
    lines = []
    for frontend in sorted({found["frontend"] for found in rows}):
        mine = [found for found in rows if found["frontend"] == frontend]
        counts = {status: sum(f["status"] == status for f in mine) for status in sorted({f["status"] for f in mine})}
        lines.append(f"{frontend}: {len(mine)} models; " + ", ".join(f"{n} {status}" for status, n in counts.items()))
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--frontend", choices=tuple(PARTS))
    parser.add_argument("--limit", type=float, default=120.0)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    frontends = [options.frontend] if options.frontend else list(PARTS)
    missing = load(frontends)
    for text in missing:
        print(f"not imported: {text}", file=sys.stderr)
    chosen = [m for m in MODELS if not options.names or any(fnmatch.fnmatch(m.name, n) for n in options.names)]
    rows = []
    print(HEAD)
    for entry in chosen:
        rows.append(in_a_process(entry, options.limit))
        print(row(rows[-1]), flush=True)
    print()
    print(summary(rows))
    if options.write:
        text = f"# Models, captured and compared\n\n{summary(rows)}\n\n{HEAD}\n" + "\n".join(map(row, rows)) + "\n"
        (ROOT / "bench" / "results-models.md").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
