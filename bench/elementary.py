"""Elementary functions in float32: the time per element beside NumPy's and PyTorch's functions, which are not
correctly rounded, the share that the kernels leave to the specification, and equality with the specification and MPFR.

    python bench/elementary.py [--count COUNT] [--mpfr COUNT] [--exhaustive] [OUTPUT.md] [FUNCTION ...]

Times are medians of 15 runs of one thread on arrays of 10**6 elements, ours and the others' in turn, in processor time
of the thread; new arrays for the results in each run. The operands are normal deviates, moved into the domain where
that is needed. COUNT random words and as many deviates per function (0 unless given) are compared with the
specification, words and flags; with --mpfr with MPFR through gmpy2, words alone. --exhaustive compares all words of
float16 and bfloat16 with the specification, through the kernels alone. A difference ends the run with status 1.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tlir.floatlib.elementary import elementary, evaluate
from tlir.floatlib.elementary.narrow.arrays import NAMES, evaluate_fast, share_undecided
from tlir.floatlib.elementary.narrow.kernels import KERNELS
from tlir.floatlib.format import FORMATS, Format
from tlir.floatlib.words import word_dtype

FLOAT32 = FORMATS["float32"]
SIZE, RUNS = 10**6, 15
NUMPY = {
    "exponential": "exp",
    "exponential_minus_one": "expm1",
    "exp2": "exp2",
    "log": "log",
    "log_plus_one": "log1p",
    "log2": "log2",
    "log10": "log10",
    "tanh": "tanh",
    "sinh": "sinh",
    "cosh": "cosh",
    "asinh": "arcsinh",
    "acosh": "arccosh",
    "atanh": "arctanh",
    "sine": "sin",
    "cosine": "cos",
    "tan": "tan",
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "cbrt": "cbrt",
    "atan2": "arctan2",
    "hypot": "hypot",
    "power": "power",
}
TORCH = {
    name: {"arctan2": "atan2", "power": "pow"}.get(other, other.replace("arc", "a"))
    for name, other in NUMPY.items()
    if other != "cbrt"
} | {"logistic": "sigmoid", "erf": "erf", "erfc": "erfc", "rsqrt": "rsqrt"}
TORCH |= {"erf_inv": "erfinv", "lgamma": "lgamma", "digamma": "digamma", "log_add_exp": "logaddexp"}
TORCH_SPECIAL = {
    **{f"bessel_{name}": name for name in ("i0", "i0e", "i1", "i1e")},
    **{f"bessel_{name}": f"bessel_{name}" for name in ("j0", "j1", "y0", "y1")},
    **{f"bessel_{name}": f"modified_bessel_{name}" for name in ("k0", "k1")},
    **{f"bessel_{name}e": f"scaled_modified_bessel_{name}" for name in ("k0", "k1")},
    **{name: name for name in ("erfcx", "ndtri", "log_ndtr", "zeta")},
    "polygamma": "polygamma",
    "igamma": "gammainc",
    "igammac": "gammaincc",
}
GAMMA = ("igamma", "igammac", "igamma_grad_a", "random_gamma_grad")
BETA = "regularized_incomplete_beta"
PROBED = 200
"""Operands for which the specification is timed."""
FIRST = ("exponential", "log", "tanh", "sine", "erf")
"""The functions for which a ratio is aimed at."""

Floats = np.ndarray
Run = Callable[[], object]


def deviates(name: str, rng: np.random.Generator, count: int) -> list[Floats]:
    """Operands in the function's domain."""
    columns = [rng.standard_normal(count).astype(np.float32) for _ in KERNELS[name].fallback]
    if name in ("log", "log2", "log10", "rsqrt", "power"):
        columns[0] = np.abs(columns[0])
    elif name in ("asin", "acos", "atanh", "erf_inv"):
        columns[0] = np.float32(2) * rng.random(count, dtype=np.float32) - np.float32(1)
    elif name == "acosh":
        columns[0] = np.abs(columns[0]) + np.float32(1)
    elif name == "ndtri":
        columns[0] = rng.random(count, dtype=np.float32)
    elif name.startswith(("bessel_k", "bessel_y")):
        columns[0] = np.abs(columns[0])
    elif name in ("zeta", "polygamma"):
        columns = [np.abs(columns[0]) + np.float32(1), np.abs(columns[1])]
        if name == "polygamma":
            columns[0] = np.full(count, 1, np.float32)
    elif name in GAMMA or name == BETA:
        # parameters from e**-3 to e**4, and numbers drawn from these distributions
        parameters = [np.exp(rng.uniform(-3, 4, count)) for _ in range(len(columns) - 1)]
        drawn = rng.beta(*parameters) if name == BETA else rng.gamma(*parameters)
        columns = [part.astype(np.float32) for part in (*parameters, drawn)]
    elif name == "log_plus_one":
        columns[0] = np.maximum(columns[0], np.float32(-0.9))
    return columns


def medians(runs: dict[str, Run]) -> dict[str, float]:
    """Nanoseconds per element of each, measured in turn."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for k in range(RUNS + 2):
        for name, run in runs.items():
            start = time.thread_time()
            run()
            if k >= 2:  # the first ones may compile
                times[name].append(time.thread_time() - start)
    return {name: float(np.median(values)) / SIZE * 1e9 for name, values in times.items()}


def competitors(name: str, columns: list[Floats]) -> dict[str, Run]:
    bits = [column.view(np.uint32) for column in columns]
    runs: dict[str, Run] = {
        "words": lambda: evaluate(name, FLOAT32, *bits),
        "flags": lambda: evaluate(name, FLOAT32, *bits, flags=True),
    }
    if name in NUMPY:
        function = getattr(np, NUMPY[name])
        runs["numpy"] = lambda: function(*columns)
    try:
        import torch
    except ImportError:
        return runs
    if name in TORCH:
        torch.set_num_threads(1)
        tensors, other = [torch.from_numpy(column) for column in columns], getattr(torch, TORCH[name])
        runs["torch"] = lambda: other(*tensors)
    elif name in TORCH_SPECIAL:
        torch.set_num_threads(1)
        given: list[object] = [torch.from_numpy(column) for column in columns]
        if name == "polygamma":
            given[0] = 1
        special = getattr(torch.special, TORCH_SPECIAL[name])
        runs["torch"] = lambda: special(*given)
    return runs


def specification(name: str, columns: list[Floats]) -> float:
    """Nanoseconds per element."""
    rows = list(zip(*(column[:PROBED].view(np.uint32).tolist() for column in columns), strict=True))
    start = time.thread_time()
    for operands in rows:
        elementary(name, FLOAT32, *operands)
    return (time.thread_time() - start) / PROBED * 1e9


def differences(name: str, fmt: Format, columns: list[Floats], kernels_alone: bool = False) -> int:
    """Elements whose word or flags are not those of the specification."""
    if kernels_alone:
        words, flags, places = evaluate_fast(name, fmt, *columns, flags=True)
        bare, _, bare_places = evaluate_fast(name, fmt, *columns)
        skipped = set(places.tolist()) | set(bare_places.tolist())
    else:
        words, flags = evaluate(name, fmt, *columns, flags=True)
        bare, skipped = evaluate(name, fmt, *columns), set()
    wrong = 0
    rows = zip(*(column.tolist() for column in columns), strict=True)
    results = zip(words.tolist(), flags.tolist(), bare.tolist(), strict=True)
    for index, (row, (word, raised, same)) in enumerate(zip(rows, results, strict=True)):
        if index not in skipped:
            wrong += elementary(name, fmt, *row) != (word, raised) or word != same
    return wrong


def mpfr_differences(name: str, columns: list[Floats]) -> int:
    """Elements whose word is not MPFR's, rounded once to float32; zeros, infinities and NaN are left out."""
    import gmpy2

    values = [column.view(np.float32) for column in columns]
    ordinary = np.all([np.isfinite(value) & (value != 0) for value in values], axis=0)
    values = [value[ordinary] for value in values]
    got = evaluate(name, FLOAT32, *(value.view(np.uint32) for value in values)).view(np.float32)
    special = {"logistic": lambda x: 1 / (1 + gmpy2.exp(-x)), "power": lambda x, y: x**y, "rsqrt": gmpy2.rec_sqrt}
    names = {"exponential": "exp", "exponential_minus_one": "expm1", "log_plus_one": "log1p", "sine": "sin"}
    function = special.get(name) or getattr(gmpy2, {**names, "cosine": "cos"}.get(name, name))
    float32 = {"precision": 24, "emax": 128, "emin": -148, "subnormalize": True}
    with gmpy2.context(**({"precision": 200, "emax": 1 << 20, "emin": -(1 << 20)} if name == "logistic" else float32)):
        rows = zip(*(value.tolist() for value in values), strict=True)
        results = [function(*(gmpy2.mpfr(x) for x in row)) for row in rows]
    if name == "logistic":  # of 200 bits, more than any of these results needs to be told from a midpoint
        with gmpy2.context(**float32):
            results = [gmpy2.mpfr(result) for result in results]
    want = np.array([float(result) for result in results], dtype=np.float32)
    return int(np.count_nonzero((got.view(np.uint32) != want.view(np.uint32)) & ~(np.isnan(got) & np.isnan(want))))


def anything(name: str, rng: np.random.Generator, count: int) -> list[Any]:
    """Random words; operands that are refused are ordinary ones instead."""
    words: list[Any] = [rng.integers(0, 1 << 32, count, dtype=np.uint32) for _ in KERNELS[name].fallback]
    if name in ("zeta", "polygamma"):
        words[0] = deviates(name, rng, count)[0].view(np.uint32)
    elif name in ("igamma_grad_a", "random_gamma_grad"):
        with np.errstate(invalid="ignore"):
            words = [np.arcsinh(word.view(np.float32)).view(np.uint32) for word in words]
    return words


def compared(name: str, count: int, mpfr: int, exhaustive: bool) -> tuple[int, int]:
    """Elements compared with the specification and MPFR, and how many differ."""
    rng = np.random.default_rng(2026)
    total = wrong = 0
    if count:
        words = anything(name, rng, count)
        moderate = [column.view(np.uint32) for column in deviates(name, rng, count)]
        wrong += differences(name, FLOAT32, words) + differences(name, FLOAT32, moderate)
        total += 2 * count
    if mpfr:
        words = [rng.integers(0, 1 << 32, mpfr // 2, dtype=np.uint32) for _ in KERNELS[name].fallback]
        moderate = [column.view(np.uint32) for column in deviates(name, rng, mpfr - mpfr // 2)]
        wrong += mpfr_differences(name, words) + mpfr_differences(name, moderate)
        total += mpfr
    if exhaustive and len(KERNELS[name].fallback) == 1:
        for fmt in (FORMATS["float16"], FORMATS["bfloat16"]):
            wrong += differences(name, fmt, [np.arange(1 << 16).astype(word_dtype(fmt))], kernels_alone=True)
            total += 1 << 16
    return total, wrong


def row(name: str, count: int, mpfr: int, exhaustive: bool) -> tuple[str, int]:
    rng = np.random.default_rng(7)
    columns = deviates(name, rng, SIZE)
    with np.errstate(all="ignore"):
        times = medians(competitors(name, columns))
    words = anything(name, rng, SIZE)
    shares = [share_undecided(name, FLOAT32, *words)]
    shares.append(share_undecided(name, FLOAT32, *(column.view(np.uint32) for column in columns)))
    total, wrong = compared(name, count, mpfr, exhaustive)
    cells = [f"{specification(name, columns):.0f}", f"{times['words']:.2f}", f"{times['flags']:.2f}"]
    for other in ("numpy", "torch"):
        known = other in times
        cells += [f"{times[other]:.2f}", f"{times['words'] / times[other]:.1f}"] if known else ["", ""]
    cells += [f"{share * 1e6:.0f}" for share in shares]
    if total:
        cells += [f"{total}", f"{wrong}"]
    return "| " + " | ".join([name, *cells]) + " |", wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--mpfr", type=int, default=0)
    parser.add_argument("--exhaustive", action="store_true")
    parser.add_argument("rest", nargs="*", metavar="OUTPUT.md or FUNCTION")
    arguments = parser.parse_args()
    outputs = [Path(text) for text in arguments.rest if text.endswith(".md")]
    names = [text for text in arguments.rest if not text.endswith(".md")] or [*FIRST, *(set(NAMES) - set(FIRST))]
    order = sorted(names, key=lambda name: (name not in FIRST, NAMES.index(name)))
    head = [
        "function",
        "specification",
        "words",
        "with flags",
        "NumPy",
        "ratio",
        "PyTorch",
        "ratio",
        "left: random",
        "left: deviates",
    ]
    if arguments.count or arguments.mpfr or arguments.exhaustive:
        head += ["compared", "wrong"]
    lines = ["| " + " | ".join(head) + " |", "|---" + "|---:" * (len(head) - 1) + "|"]
    print("\n".join(lines), flush=True)
    failed = 0
    for name in order:
        line, wrong = row(name, arguments.count, arguments.mpfr, arguments.exhaustive)
        failed += wrong
        lines.append(line)
        print(line, flush=True)
    for output in outputs:
        command = f"    python bench/elementary.py {' '.join(sys.argv[1:])}\n\n"
        output.write_text(PREFACE + command + "\n".join(lines) + "\n")
    return 1 if failed else 0


PREFACE = """# Elementary and special functions in float32

Nanoseconds per element, one thread, normal deviates in the function's domain: the specification, element by element;
ours on arrays of 10^6 (correctly rounded), without and with flags; NumPy's and PyTorch's, not correctly rounded,
measured in turn with ours, and ours divided by theirs. "left": of a million elements those that the kernels leave to
the specification, for random words and deviates. "compared": elements compared with the specification (words and flags)
and with MPFR (words).

"""


if __name__ == "__main__":
    sys.exit(main())
