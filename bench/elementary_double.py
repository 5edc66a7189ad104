"""Elementary functions in float64: equality with the specification, the share that the double-double loops leave
undecided, and the time per element beside NumPy's (or PyTorch's) own functions, which are not correctly rounded.

    python bench/elementary_double.py [COUNT [FILE]]

Half of COUNT random words and as many moderate numbers per function (100000 in all unless given) are compared with the
specification, words and flags; differences end the run with status 1. Times are the best of 15 on arrays of 2**20
moderate numbers, taken in alternation, of one thread's processor time: of the compiled loop, and of ``evaluate``, which
ends what the loop leaves undecided; and of the loop on 2**15, which stay in the cache. The table goes to FILE too.
"""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from tlir.floatlib.elementary import elementary, evaluate
from tlir.floatlib.elementary.double.functions import BINARY, FAR, NAMES
from tlir.floatlib.elementary.double.loop import evaluate_double, loop, share_undecided
from tlir.floatlib.format import FORMATS
from tlir.floatlib.soft import llvm
from tlir.floatlib.soft.catalog import UNDECIDED, Kernel

FLOAT64 = FORMATS["float64"]
SIZE, IN_CACHE = 1 << 20, 1 << 15
NUMPY: dict[str, Callable[..., Any]] = {
    "exponential": np.exp,
    "exponential_minus_one": np.expm1,
    "exp2": np.exp2,
    "log": np.log,
    "log_plus_one": np.log1p,
    "log2": np.log2,
    "log10": np.log10,
    "tanh": np.tanh,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "sine": np.sin,
    "cosine": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "cbrt": np.cbrt,
    "atan2": np.arctan2,
    "hypot": np.hypot,
    "power": np.power,
}
TORCH = {"logistic": "sigmoid", "erf": "erf", "erfc": "erfc", "rsqrt": "rsqrt"}


def moderate(name: str, rng: np.random.Generator, count: int) -> list[np.ndarray]:
    """Numbers as they occur: normal deviates, of which the absolute value or a part where the domain asks for it."""
    columns = [rng.standard_normal(count) * 2 for _ in range(2 if name in BINARY else 1)]
    if name in ("log", "log2", "log10", "log_plus_one", "rsqrt", "power"):
        columns[0] = np.abs(columns[0])
    if name in ("asin", "acos", "atanh"):
        columns = [np.tanh(column) for column in columns]
    if name == "acosh":
        columns = [np.abs(column) + 1 for column in columns]
    return columns


def other(name: str) -> tuple[str, Callable[..., Any]] | None:
    """Whose vectorised function it is compared with."""
    if name in NUMPY:
        return "NumPy", NUMPY[name]
    if find_spec("torch") is None:
        return None
    import torch

    torch.set_num_threads(1)
    function = getattr(torch, TORCH[name])
    return "PyTorch", lambda x: function(torch.from_numpy(x))


def differences(name: str, columns: list[np.ndarray]) -> int:
    """Elements whose word or flags are not those of the specification, among those that the loops decide."""
    words, flags, undecided = evaluate_double(name, FLOAT64, *columns, flags=True)
    decided = np.ones(words.shape, bool)
    decided[undecided] = False
    rows = zip(*(column.tolist() for column in columns), strict=True)
    checked = zip(rows, words.tolist(), flags.tolist(), decided.tolist(), strict=True)
    return sum(taken and elementary(name, FLOAT64, *row) != (word, raised) for row, word, raised, taken in checked)


def nanoseconds(runs: list[Callable[[], object]], size: int) -> list[float]:
    """The best time of each, in alternation; the processor's, because other programs may be running."""
    best = [float("inf")] * len(runs)
    for _ in range(15):
        for index, run in enumerate(runs):
            start = time.process_time()
            run()
            best[index] = min(best[index], time.process_time() - start)
    return [value / size * 1e9 for value in best]


def _share(kernel: Kernel, words: list[np.ndarray]) -> float:
    marks = llvm.run(kernel, tuple(words))[1]
    assert marks is not None
    return float((marks & UNDECIDED != 0).mean())


def row(name: str, count: int) -> tuple[int, str]:
    rng = np.random.default_rng(2026)
    half = count // 2
    words = [rng.integers(0, 1 << 64, half, dtype=np.uint64) for _ in range(2 if name in BINARY else 1)]
    numbers = [column.view(np.uint64) for column in moderate(name, rng, half)]
    wrong = differences(name, words) + differences(name, numbers)
    first = _share(loop(name), words) if name in FAR else float("nan")
    columns = moderate(name, rng, SIZE)
    bits = tuple(column.view(np.uint64) for column in columns)
    shares = share_undecided(name, FLOAT64, *words), share_undecided(name, FLOAT64, *bits)
    runs: list[Callable[[], object]] = [
        lambda: llvm.run(loop(name), bits),
        lambda: evaluate(name, FLOAT64, *bits),
    ]
    theirs = other(name)
    if theirs is not None:
        function = theirs[1]
        runs.append(lambda: function(*columns))
    with np.errstate(all="ignore"):
        times = nanoseconds(runs, SIZE)
    few = [column[:IN_CACHE].copy() for column in columns]
    few_bits = tuple(column.view(np.uint64) for column in few)
    runs = [lambda: llvm.run(loop(name), few_bits)]
    if theirs is not None:
        runs.append(lambda: function(*few))
    with np.errstate(all="ignore"):
        cached = nanoseconds(runs, IN_CACHE)
    if theirs is not None:
        beside = f"{times[2]:.2f} ({theirs[0]}) | {times[1] / times[2]:.1f}"
        small = f"{cached[0]:.2f} | {cached[1]:.2f} | {cached[0] / cached[1]:.1f}"
    else:
        beside, small = " | ", f"{cached[0]:.2f} | |"
    stage = f"{first:.3f}, then " if name in FAR else ""
    cells = [
        name,
        str(wrong),
        f"{stage}{shares[0]:.5f}",
        f"{shares[1]:.1e}",
        f"{times[0]:.2f}",
        f"{times[1]:.2f}",
        beside,
        small,
    ]
    return wrong, "| " + " | ".join(cells) + " |"


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="ascii") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()


def main(count: int, path: str | None) -> int:
    lines = [
        "# Elementary functions in float64",
        "",
        f"`python bench/elementary_double.py {count}`, one thread of {_processor()}.",
        f"Wrong: of {count} operands, half of them random words. Undecided: the shares of random words and of moderate",
        "numbers left to the specification. Nanoseconds per element of arrays of 2^20, where memory takes its share",
        "and the ratio is that of `evaluate` to others, and of 2^15, where it is that of the loop alone.",
        "",
        "| function | wrong | undecided: words | numbers | loop | evaluate | others | ratio "
        "| in cache: loop | others | ratio |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    failed = 0
    for line in lines:
        print(line)
    for name in NAMES:
        wrong, line = row(name, count)
        failed += wrong
        lines.append(line)
        print(line, flush=True)
    if path is not None:
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000, sys.argv[2] if len(sys.argv) > 2 else None))
