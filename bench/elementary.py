"""Elementary functions in float32: equality with the specification, the share that the kernels leave undecided, and the
time per element beside NumPy's (not correctly rounded) functions.

    python bench/elementary.py [COUNT]

COUNT random words and as many normal deviates per function (100000 unless given) are compared with the specification,
words and flags; differences end the run with status 1. Times are the best of five on arrays of 2**18.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

from tlir.floatlib.elementary import elementary, evaluate, share_undecided
from tlir.floatlib.elementary_fast import NAMES
from tlir.floatlib.elementary_kernels import BINARY
from tlir.floatlib.format import FORMATS

FLOAT32 = FORMATS["float32"]
NUMPY = {
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


def differences(name: str, columns: list[np.ndarray]) -> int:
    """Elements whose word or flags are not those of the specification."""
    words, flags = evaluate(name, FLOAT32, *columns, flags=True)
    bare = evaluate(name, FLOAT32, *columns)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    wrong = 0
    for row, word, raised, same in zip(rows, words.tolist(), flags.tolist(), bare.tolist(), strict=True):
        wrong += elementary(name, FLOAT32, *row) != (word, raised) or word != same
    return wrong


def nanoseconds(run: Callable[[], object], count: int) -> float:
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best / count * 1e9


def main(count: int) -> int:
    rng = np.random.default_rng(2026)
    failed = 0
    print(f"{'function':24}{'wrong':>8}{'undecided: words':>18}{'deviates':>12}{'ns':>8}{'numpy ns':>10}")
    for name in NAMES:
        operands = 2 if name in BINARY else 1
        words = [rng.integers(0, 1 << 32, count, dtype=np.uint32) for _ in range(operands)]
        deviates = [rng.standard_normal(count).astype(np.float32).view(np.uint32) for _ in range(operands)]
        wrong = differences(name, words) + differences(name, deviates)
        failed += wrong
        values = [np.abs(rng.standard_normal(1 << 18)).astype(np.float32) for _ in range(operands)]
        bits = [value.view(np.uint32) for value in values]
        mine = nanoseconds(lambda name=name, bits=bits: evaluate(name, FLOAT32, *bits), 1 << 18)
        with np.errstate(all="ignore"):
            other = nanoseconds(lambda f=NUMPY[name], v=values: f(*v), 1 << 18) if name in NUMPY else float("nan")
        shares = [share_undecided(name, FLOAT32, *columns) for columns in (words, deviates)]
        print(f"{name:24}{wrong:8}{shares[0]:18.5f}{shares[1]:12.5f}{mine:8.1f}{other:10.1f}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000))
