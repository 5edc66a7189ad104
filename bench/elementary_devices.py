"""Elementary functions in wide formats as kernels of the cpu device: a graph of one function of many elements beside
the specification, which evaluated such nodes before there were kernels, and the time to compile a graph of ten.

    python bench/elementary_devices.py [FILE]

One thread. Times are the best of 7 runs of the graph, processor time; the specification computes some hundred of the
elements. The table goes to FILE too.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np
from elementary_wide import FEW, RUNS, _processor, columns_of

from tlir.floatlib.elementary import elementary
from tlir.floatlib.elementary.double.functions import BINARY
from tlir.floatlib.format import Format
from tlir.floatlib.words import from_ints
from tlir.ir.graph import Body, Node, Ref
from tlir.ir.tensor import Tensor
from tlir.ir.types import NAMED, DType, TensorType

REPEATS = 6
"""Times that the columns of 2**14 operands are repeated: 98304 elements."""
FUNCTIONS = ("exponential", "log", "sine", "tanh", "erf", "power")
TEN = ("exponential", "exponential_minus_one", "log", "log_plus_one", "sine", "cosine", "tanh", "atan", "erf", "rsqrt")
DTYPES = {
    "binary128": NAMED["float128"],
    "80 bits": DType("float80", "float", 80, Format(15, 64)),
    "binary256": NAMED["float256"],
}


def graph(names: tuple[str, ...], dtype: DType, size: int) -> Body:
    """The functions of the same inputs, as outputs."""
    type = TensorType((size,), dtype)
    count = max(2 if name in BINARY else 1 for name in names)
    nodes = [Node(k, "input", (), {}, (type,)) for k in range(count)]
    for name in names:
        operands = tuple(Ref(k) for k in range(2 if name in BINARY else 1))
        nodes.append(Node(len(nodes), name, operands, {}, (type,)))
    return Body(tuple(nodes), tuple(range(count)), tuple(Ref(node.id) for node in nodes[count:]))


def best(run: Callable[[], object]) -> float:
    """Seconds of the quickest run."""
    found = float("inf")
    for _ in range(RUNS):
        start = time.process_time()
        run()
        found = min(found, time.process_time() - start)
    return found


def row(name: str) -> str:
    from tlir.backends.cpu.device import Executable

    cells = [name]
    for dtype in DTYPES.values():
        fmt = dtype.float_format
        columns = columns_of(name, fmt, np.random.default_rng(2026))
        words = [np.concatenate([np.asarray(from_ints(fmt, column))] * REPEATS) for column in columns]
        size = len(words[0])
        body = graph((name,), dtype, size)
        executable = Executable(body)
        inputs = [Tensor(type, column) for type, column in zip(body.input_types, words, strict=True)]
        executable.run(inputs)
        assert executable.statistics.reference == []
        ours = best(lambda: executable.run(inputs)) / size  # noqa: B023
        rows = list(zip(*(column[:FEW] for column in columns), strict=True))
        before = best(lambda: [elementary(name, fmt, *row) for row in rows]) / FEW  # noqa: B023
        cells += [f"{before * 1e9:.0f}", f"{ours * 1e9:.0f}"]
    return "| " + " | ".join(cells) + " |"


def compiled(dtype: DType) -> str:
    """Seconds to lower, compile and run a graph of ten functions: the first time, and where the code is kept."""
    from tlir.backends.cpu.device import Executable

    body = graph(TEN, dtype, 8)
    inputs = [
        Tensor(type, np.zeros((8, *([dtype.limbs] if dtype.limbs > 1 else [])), dtype.word_dtype))
        for type in body.input_types
    ]
    start = time.process_time()
    Executable(body).run(inputs)
    return f"{time.process_time() - start:.1f} s"


def main(path: str | None) -> int:
    os.environ["TLIR_THREADS"] = "1"
    lines = [
        "# Elementary functions in wide formats on cpu",
        "",
        f"`python bench/elementary_devices.py`, one thread of {_processor()}. Nanoseconds per element of a graph of",
        "one function of 98304 elements: before (the specification, which such nodes were left to) and now.",
        "",
        "| function | " + " | ".join(f"{name}: before | now" for name in DTYPES) + " |",
        "|---|" + "---:|" * (2 * len(DTYPES)),
    ]
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        seconds = ", ".join(f"{compiled(dtype)} in {name}" for name, dtype in DTYPES.items())
        lines += [row(name) for name in FUNCTIONS]
    lines += [
        "",
        f"A graph of ten functions ({', '.join(TEN)}) is lowered and compiled, with nothing kept, in {seconds}.",
    ]
    print("\n".join(lines))
    if path is not None:
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else None))
