"""Software floating point beside its peers: binary128 arithmetic, long formats, and casts between small
formats.

    python bench/softfloat.py [OUTPUT.md]

Nanoseconds per element on one thread (one processor is all that the run is allowed), the median of rounds in which all
peers take turns. binary128: C loops over the compiler's ``__float128`` and over MPFR at 113 bits, which gcc builds from
``softfloat_peers.c`` on the spot. Casts: ml_dtypes, PyTorch and JAX. A peer that is not there is named as skipped.
"""

from __future__ import annotations

import os

if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # before any library starts its threads

import ctypes
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from random import Random
from typing import Any

import ml_dtypes
import numpy as np

from tlir.floatlib import arrays, dispatch, native
from tlir.floatlib.format import FORMATS, Format
from tlir.floatlib.soft import catalog, choice, llvm, numpy_loop
from tlir.floatlib.words import from_ints

ROUNDS = 7
FLOAT128 = FORMATS["float128"]
OPERATIONS = {"add": ("add", 2), "multiply": ("multiply", 2), "divide": ("divide", 2)} | {
    "sqrt": ("sqrt_", 1),
    "fma": ("fma_", 3),
}
CASTS = [
    ("float32", "bfloat16"),
    ("float32", "float16"),
    ("float32", "float8_e4m3fn"),
    ("float32", "float8_e5m2"),
    ("float64", "bfloat16"),
    ("bfloat16", "float32"),
    ("float16", "float32"),
    ("float8_e4m3fn", "float32"),
]
Timed = dict[str, Callable[[], Any]]
SKIPPED: dict[str, str] = {}


def medians(functions: Timed, elements: int, enough: int = 1_000_000) -> dict[str, float]:
    """Nanoseconds per element of each function; in every round each is timed once, over ``enough`` elements or more."""
    calls = max(1, enough // elements)
    times: dict[str, list[float]] = {name: [] for name in functions}
    for function in functions.values():
        function()
    for _ in range(ROUNDS):
        for name, function in functions.items():
            start = time.perf_counter()
            for _ in range(calls):
                function()
            times[name].append((time.perf_counter() - start) / calls / elements * 1e9)
    return {name: statistics.median(values) for name, values in times.items()}


def random_words(count: int, rng: np.random.Generator) -> Any:
    """Normal binary128 numbers of both signs with exponents from -30 to 30."""
    high = rng.integers(0, 2**48, count, dtype=np.uint64)
    high |= (rng.integers(-30, 31, count) + 16383).astype(np.uint64) << np.uint64(48)
    high |= rng.integers(0, 2, count).astype(np.uint64) << np.uint64(63)
    return np.stack([rng.integers(0, 2**64, count, dtype=np.uint64), high], axis=-1)


def built(folder: Path, peer: str, *libraries: str) -> ctypes.CDLL | None:
    """The peer's loops, None (and a reason in ``SKIPPED``) where they cannot be built."""
    target = folder / f"{peer}.so"
    source = Path(__file__).with_name("softfloat_peers.c")
    command = ["gcc", "-O3", "-march=native", "-shared", "-fPIC", f"-DPEER_{peer}", "-o", str(target), str(source)]
    try:
        subprocess.run([*command, *libraries], check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        SKIPPED[peer] = str(getattr(error, "stderr", "") or error).strip().splitlines()[0]
        return None
    return ctypes.CDLL(str(target))


def arithmetic(folder: Path) -> list[str]:
    quad, mpfr = built(folder, "QUADMATH", "-lquadmath"), built(folder, "MPFR", "-lmpfr", "-lgmp")
    rng = np.random.default_rng(1)
    lines = ["| ns per element | elements | tlir | gcc `__float128` | MPFR 113 | fastest peer / tlir |"]
    lines.append("|---|---:|---:|---:|---:|---:|")
    notes = []
    for operation, (symbol, count) in OPERATIONS.items():
        for size in (1_000_000, 4096):
            operands = [random_words(size, rng) for _ in range(count)]
            if operation == "sqrt":
                operands[0][:, 1] &= np.uint64(2**63 - 1)
            function = getattr(arrays, operation)
            functions: Timed = {"tlir": partial(function, FLOAT128, *operands)}
            ours = function(FLOAT128, *operands)
            three = (operands * 3)[:3]
            if quad is not None:
                out = np.empty_like(ours)
                arguments = [ctypes.c_void_p(x.ctypes.data) for x in (*three, out)]
                call = getattr(quad, symbol)
                functions["gcc"] = partial(call, *arguments, ctypes.c_long(size))
                functions["gcc"]()
                notes += differing(f"gcc {operation}", ours, out, size)
            if mpfr is not None:
                mpfr.make.restype = ctypes.c_void_p
                held = [ctypes.c_void_p(mpfr.make(ctypes.c_void_p(x.ctypes.data), ctypes.c_long(size))) for x in three]
                result = ctypes.c_void_p(mpfr.make(None, ctypes.c_long(size)))
                call = getattr(mpfr, symbol)
                functions["mpfr"] = partial(call, *held, result, ctypes.c_long(size))
                functions["mpfr"]()
                back = np.empty_like(ours)
                mpfr.words_of(result, ctypes.c_void_p(back.ctypes.data), ctypes.c_long(size))
                notes += differing(f"MPFR {operation}", ours, back, size)
            times = medians(functions, size)
            peers = [value for name, value in times.items() if name != "tlir"]
            ratio = f"{min(peers) / times['tlir']:.1f}" if peers else ""
            shown = [f"{times[name]:.1f}" if name in times else "" for name in ("tlir", "gcc", "mpfr")]
            lines.append(f"| binary128 {operation} | {size} | {' | '.join(shown)} | {ratio} |")
    return [*lines, "", *(notes or ["Every word of every peer equals tlir's."])]


def long_formats() -> list[str]:
    """Formats of hundreds and thousands of bits beside MPFR by way of gmpy2, which takes about 100 ns a call."""
    try:
        import gmpy2
    except ImportError as error:
        SKIPPED["gmpy2"] = str(error)
        return []
    lines = ["| ns per element | tlir | MPFR, gmpy2 | MPFR / tlir |", "|---|---:|---:|---:|"]
    size, random = 4096, Random(4)
    for precision in (300, 1000, 2000, 4000):
        gmpy2.get_context().precision = precision
        fmt = Format(20, precision - 1)
        fractions = [[random.getrandbits(precision - 1) for _ in range(size)] for _ in range(3)]
        words = [from_ints(fmt, [fmt.bias << fmt.fraction_bits | f for f in column]) for column in fractions]
        numbers = [[gmpy2.mpfr(f) / (1 << fmt.fraction_bits) + 1 for f in column] for column in fractions]
        for operation, (_, count) in OPERATIONS.items():
            function = getattr(gmpy2, {"multiply": "mul", "divide": "div"}.get(operation, operation))
            functions: Timed = {
                "tlir": partial(getattr(arrays, operation), fmt, *words[:count]),
                "mpfr": lambda f=function, n=numbers[:count]: list(map(f, *n)),  # type: ignore[misc]
            }
            times = medians(functions, size, enough=size)
            shown = f"{times['tlir']:.0f} | {times['mpfr']:.0f} | {times['mpfr'] / times['tlir']:.2f}"
            lines.append(f"| {precision} bits, {operation} | {shown} |")
    return lines


def differing(name: str, ours: Any, theirs: Any, size: int) -> list[str]:
    count = int((ours != theirs).any(axis=1).sum())
    return [f"* {name}: {count} of {size} words differ from tlir's."] if count else []


def numpy_dtype(name: str) -> Any:
    return np.dtype(name) if name.startswith(("float16", "float32", "float64")) else np.dtype(getattr(ml_dtypes, name))


def casts() -> list[str]:
    peers = ["ml_dtypes or NumPy"]
    try:
        import torch

        torch.set_num_threads(1)
        peers.append("torch")
    except ImportError as error:
        SKIPPED["torch"] = str(error)
    try:
        import jax

        jax.config.update("jax_enable_x64", True)
        jax.config.update("jax_platforms", "cpu")
        peers.append("jax")
    except ImportError as error:
        SKIPPED["jax"] = str(error)
    lines = [f"| ns per element | tlir | {' | '.join(peers)} | tlir / fastest peer |", "|---" * (len(peers) + 3) + "|"]
    size = 1_000_000
    values = np.random.default_rng(2).standard_normal(size) * 10
    for source, target in CASTS:
        held = values.astype(numpy_dtype(source))
        words = held.view(f"u{held.itemsize}")
        fmt, into = FORMATS[source], FORMATS[target]
        dtype = numpy_dtype(target)
        functions: Timed = {"tlir": partial(arrays.convert, fmt, into, words)}
        functions["ml_dtypes or NumPy"] = partial(held.astype, dtype)
        if "torch" in peers:
            tensor = torch.from_numpy(words.view(f"i{held.itemsize}").copy()).view(getattr(torch, source))
            functions["torch"] = partial(tensor.to, getattr(torch, target))
        if "jax" in peers:
            array = jax.numpy.asarray(held)
            cast = jax.jit(lambda x, t=dtype: x.astype(t))
            functions["jax"] = lambda c=cast, x=array: c(x).block_until_ready()  # type: ignore[misc]
        times = medians(functions, size)
        best = min(value for name, value in times.items() if name != "tlir")
        shown = " | ".join(f"{times[name]:.2f}" for name in ("tlir", *peers))
        lines.append(f"| {source} to {target} | {shown} | {times['tlir'] / best:.2f} |")
    return lines


def ways() -> list[str]:
    """The kernels on NumPy and compiled, without and with flags, beside the processor where it computes the words."""
    lines = ["| ns per element | processor | NumPy | NumPy, flags | compiled | compiled, flags |"]
    lines.append("|---|---:|---:|---:|---:|---:|")
    size = 1 << 18
    rng = np.random.default_rng(3)
    real = [(rng.standard_normal(size) * 10).view(np.uint64) for _ in range(3)]
    for name in ("float8_e4m3fn", "float16", "bfloat16", "float32", "float64", "float128"):
        fmt = FORMATS[name]
        if fmt == FLOAT128:
            words = [random_words(size, rng) for _ in real]
        else:
            words = [arrays.convert(FORMATS["float64"], fmt, x) for x in real]
        for operation, (_, count) in OPERATIONS.items():
            operands = tuple(words[:count])
            functions: Timed = {}
            if native.is_native(fmt, operation):
                functions["processor"] = partial(dispatch._processed, operation, fmt, operands)
            for flags in (False, True):
                kernel = catalog.arithmetic(operation, fmt, flags=flags)
                functions[f"numpy {flags}"] = partial(numpy_loop.run, kernel, operands)
                functions[f"compiled {flags}"] = partial(llvm.run, kernel, operands)
            lines.append(row(f"{name} {operation}", medians(functions, size)))
    for source, target in CASTS:
        words = [arrays.convert(FORMATS["float64"], FORMATS[source], real[0])]
        functions = {}
        for flags in (False, True):
            kernel = catalog.convert(FORMATS[source], FORMATS[target], flags=flags)
            functions[f"numpy {flags}"] = partial(numpy_loop.run, kernel, tuple(words))
            functions[f"compiled {flags}"] = partial(llvm.run, kernel, tuple(words))
        lines.append(row(f"{source} to {target}", medians(functions, size)))
    return lines


def row(name: str, times: dict[str, float]) -> str:
    columns = ("processor", "numpy False", "numpy True", "compiled False", "compiled True")
    return f"| {name} | {' | '.join(f'{times[key]:.1f}' if key in times else '' for key in columns)} |"


def processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
        return next(line.split(":", 1)[1].strip() for line in text.splitlines() if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def versions() -> str:
    names = ["numpy", "llvmlite", "ml_dtypes", "torch", "jax"]
    found = []
    for name in names:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            SKIPPED[name] = "not installed"
    gcc = subprocess.run(["gcc", "-dumpfullversion"], capture_output=True, text=True, check=False).stdout.strip()
    return ", ".join([f"Python {platform.python_version()}", *found, f"gcc {gcc}"])


def main() -> None:
    # what is measured is what arrays of this size reach after a few calls
    choice.COMPILE_AFTER.update(dict.fromkeys(choice.COMPILE_AFTER, 0))
    with tempfile.TemporaryDirectory() as folder:
        quad = arithmetic(Path(folder))
    long, small, own = long_formats(), casts(), ways()
    report = [
        "# Software floating point beside its peers",
        "",
        "Written by `python bench/softfloat.py bench/results-softfloat.md`: nanoseconds per element, one thread, the",
        f"medians of {ROUNDS} rounds in which all take turns. Kernels are compiled already; tlir's time includes",
        "allocating the result and everything else that a call of `tlir.floatlib.arrays` does.",
        "",
        f"{processor()}; {versions()}.",
        "",
        "## binary128",
        "",
        *quad,
        "",
        "## Long formats",
        "",
        *long,
        "",
        "## Casts of 1,000,000 elements",
        "",
        *small,
        "",
        "## The ways of computing, on 262,144 elements",
        "",
        *own,
    ]
    report += ["", *(f"* {name} was skipped: {reason}" for name, reason in SKIPPED.items())] if SKIPPED else []
    text = "\n".join(report) + "\n"
    print(text)
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
