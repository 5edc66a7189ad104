"""Elementary functions in wide formats: the time per element of the fixed-point loops beside the specification (Arb)
and MPFR, and what they leave undecided.

    python bench/elementary_wide.py [FILE]

Moderate numbers, as ``bench/elementary_double.py`` has them, with random bits below their binary64. Times are the best
of 7 of one thread's processor time: of the compiled loop on 2**14 elements, in which MPFR (by gmpy2, whose call takes
some 100 ns) and the specification (a Python function) compute some hundred. The table goes to FILE too.
"""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Callable
from typing import Any

import gmpy2
import numpy as np
from elementary_double import moderate

from tlir.floatlib.elementary import elementary
from tlir.floatlib.elementary.wide.functions import FUNCTIONS, NAMES
from tlir.floatlib.elementary.wide.loop import loop
from tlir.floatlib.format import FORMATS, Format
from tlir.floatlib.soft import llvm
from tlir.floatlib.soft.catalog import UNDECIDED
from tlir.floatlib.words import from_ints

SIZE, FEW, RUNS = 1 << 14, 300, 7
WIDE = {"binary128": Format(15, 112), "binary256": Format(19, 236), "float64": FORMATS["float64"]}
MPFR = {
    "exponential": "exp",
    "exponential_minus_one": "expm1",
    "log_plus_one": "log1p",
    "sine": "sin",
    "cosine": "cos",
    "rsqrt": "rec_sqrt",
    "power": "pow",
}
"""Names of MPFR's functions where they are not ours."""


def columns_of(name: str, fmt: Format, rng: np.random.Generator) -> list[list[int]]:
    """Words of moderate numbers with all bits of the format's fractions."""
    columns = []
    numbers = moderate("atanh" if name == "erf_inv" else name, rng, SIZE)
    while len(numbers) < FUNCTIONS[name].operands:
        numbers += moderate(name, rng, SIZE)
    for column in numbers:
        words = []
        for value in column.tolist():
            numerator, denominator = float(value).as_integer_ratio()
            exponent = 1 - denominator.bit_length()
            word = fmt.encode(int(numerator < 0), abs(numerator), exponent)
            more = max(0, fmt.fraction_bits - 52)
            words.append(word | int.from_bytes(rng.bytes(32), "little") % (1 << more) if word else word)
        columns.append(words)
    return columns


def mpfr_of(fmt: Format, word: int) -> Any:
    sign, significand, exponent = fmt.decode(word)
    value = gmpy2.mpfr(significand)
    value = gmpy2.mul_2exp(value, exponent) if exponent >= 0 else gmpy2.div_2exp(value, -exponent)
    return -value if sign else value


def nanoseconds(run: Callable[[], object], size: int) -> float:
    best = float("inf")
    for _ in range(RUNS):
        start = time.process_time()
        run()
        best = min(best, time.process_time() - start)
    return best / size * 1e9


def row(name: str) -> str:
    cells = [name]
    for kind, fmt in WIDE.items():
        columns = columns_of(name, fmt, np.random.default_rng(2026))
        words = tuple(from_ints(fmt, column) for column in columns)
        kernel = loop(name, fmt)
        _, marks = llvm.run(kernel, words)
        assert marks is not None
        left = int((marks & UNDECIDED != 0).sum())
        ours = nanoseconds(lambda: llvm.run(kernel, words), SIZE)  # noqa: B023
        rows = list(zip(*(column[:FEW] for column in columns), strict=True))
        arb = nanoseconds(lambda: [elementary(name, fmt, *row) for row in rows], FEW)  # noqa: B023
        cells += [f"{ours:.0f}", str(left), f"{arb / ours:.0f}"]
        if kind == "float64":
            continue
        context = gmpy2.context(precision=fmt.precision)
        function = getattr(context, MPFR.get(name, name), None)
        if function is None:
            cells.append("")
            continue
        with gmpy2.context(precision=fmt.precision + 1):
            numbers = [tuple(mpfr_of(fmt, word) for word in row) for row in rows]
        theirs = nanoseconds(lambda: [function(*row) for row in numbers], FEW)  # noqa: B023
        cells.append(f"{theirs / ours:.0f}")
    return "| " + " | ".join(cells) + " |"


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="ascii") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()


def main(path: str | None) -> int:
    wide = ["ns", "undecided", "Arb", "MPFR"]
    heads = [f"{kind}: {wide[0]}" if not k else wide[k] for kind in ("binary128", "binary256") for k in range(4)]
    heads += ["float64, second stage: ns", "undecided", "Arb"]
    lines = [
        "# Elementary functions in wide formats",
        "",
        f"`python bench/elementary_wide.py`, one thread of {_processor()}. Nanoseconds per element of the compiled",
        f"fixed-point loops; how many of {SIZE} elements they leave undecided; how many times as long the",
        "specification (Arb) and MPFR take.",
        "",
        "| function | " + " | ".join(heads) + " |",
        "|---|" + "---:|" * len(heads),
    ]
    for line in lines:
        print(line)
    for name in sorted(NAMES, key=lambda name: (FUNCTIONS[name].operands, NAMES.index(name))):
        line = row(name)
        lines.append(line)
        print(line, flush=True)
    if path is not None:
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else None))
