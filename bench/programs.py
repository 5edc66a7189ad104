"""Programs of ``bench/zoo``, warm: the cpu device beside ``jax.jit`` or PyTorch, in turn, on one thread.

    python bench/programs.py [--frontend jax|torch] [--limit SECONDS] [--write] [NAME ...]

A NAME is a shell pattern; all programs without one. Each is captured and run in a process of its own, on the arguments
that its entry gives (small ones: what is measured is mostly launches, loops and calls). Medians of ``SAMPLES`` samples
in microseconds, each of as many calls as take ``SAMPLE`` seconds; the ratio is the frontend's time over tlir's. Torch
programs run eagerly; programs of shapes that depend on data, or that JAX cannot trace as a whole, have no peer.
``--write`` writes ``bench/results-programs.md``.
"""

from __future__ import annotations

import argparse
import fnmatch
import multiprocessing
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
os.environ["TLIR_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
sys.path.insert(0, str(ROOT))

from bench.models import PARTS, load, script  # noqa: E402
from bench.zoo import MODELS, Model  # noqa: E402

SAMPLES, SAMPLE = 9, 0.02


def taken(run: Callable[[], object], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        run()
    return (time.perf_counter() - start) / calls


def medians(*runs: Callable[[], object]) -> list[float]:
    """Microseconds of a call of each, sampled in turn."""
    counts = []
    for run in runs:
        run()
        counts.append(max(1, int(SAMPLE / max(taken(run, 3), 1e-7))))
    samples = [[taken(run, count) for run, count in zip(runs, counts, strict=True)] for _ in range(SAMPLES)]
    return [1e6 * statistics.median(column) for column in zip(*samples, strict=True)]


def peer(entry: Model, fn: Any, args: Any, kwargs: Any) -> Callable[[], object]:
    if entry.frontend == "jax":
        import jax

        compiled = jax.jit(lambda *a: fn(*a, **kwargs))
        return lambda: jax.block_until_ready(compiled(*args))
    import torch

    torch.set_num_threads(1)
    return lambda: fn(*args, **kwargs)


def measured(entry: Model) -> str:
    """A row of the table."""
    warnings.simplefilter("ignore")
    try:
        fn, args, *rest = entry.make()
        kwargs = rest[0] if rest else {}
        artifact = script(entry.frontend).export(fn, *args, **kwargs)
    except Exception as error:
        return f"| {entry.name} | | | | | {type(error).__name__} |"
    import tlir

    graph = tlir.load(artifact)
    inputs = [tensor.to_numpy() for tensor in graph.sample_inputs(0) or ()]
    start = time.perf_counter()
    graph.run(inputs, device="cpu")
    first = time.perf_counter() - start

    def ours() -> object:
        return graph.run(inputs, device="cpu")

    head = f"| {entry.name} | {len(artifact['nodes'])} | {first:.2f}"
    theirs = peer(entry, fn, args, kwargs)
    try:
        theirs()
    except Exception as error:
        (mine,) = medians(ours)
        return f"{head} | {mine:.1f} | – | {type(error).__name__} |"
    mine, other = medians(ours, theirs)
    return f"{head} | {mine:.1f} | {other:.1f} | {other / mine:.2f} |"


def in_a_process(entry: Model, limit: float) -> str:
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=lambda: there.send(measured(entry)))
    process.start()
    there.close()
    try:
        if here.poll(limit):
            return str(here.recv())
        process.kill()
        return f"| {entry.name} | | | | | more than {limit:.0f} s |"
    except EOFError:
        return f"| {entry.name} | | | | | its process ended |"
    finally:
        process.join()


HEAD = """| program | nodes | first run s | tlir us | frontend us | ratio |
|---|---:|---:|---:|---:|---:|"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--frontend", choices=list(PARTS), default="jax")
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    load([options.frontend])
    rows = []
    for entry in MODELS:
        names = options.names or ["*"]
        if entry.frontend == options.frontend and any(fnmatch.fnmatch(entry.name, name) for name in names):
            rows.append(in_a_process(entry, options.limit))
            print(rows[-1], flush=True)
    rows = [row for row in rows if "ImportError" not in row and "ModuleNotFoundError" not in row]
    ratios = []
    for row in rows:
        try:
            ratios.append(float(row.split("|")[-2]))
        except ValueError:
            continue
    if ratios:
        at_least = {bound: sum(ratio >= bound for ratio in ratios) for bound in (0.5, 1)}
        summary = f"{len(ratios)} programs: the median ratio is {statistics.median(ratios):.2f}, "
        summary += f"{at_least[0.5]} are at least 0.5, {at_least[1]} at least 1."
        print(summary)
        if options.write:
            title = f"# Programs of {options.frontend}, warm, one thread\n\nWritten by `python bench/programs.py`"
            place = ROOT / "bench" / f"results-programs-{options.frontend}.md"
            place.write_text(f"{title}. {summary}\n\n" + "\n".join([HEAD, *rows]) + "\n")


if __name__ == "__main__":
    main()
