"""Functions of complex numbers: equality with the specification, the share that the kernels leave undecided, and the
time per element beside the specification and PyTorch's and NumPy's functions, which are not correctly rounded.

    python bench/complex_functions.py [COUNT [FILE]]

COUNT operands of each function (2000 unless given), with normal deviates as parts, are compared with the specification;
differences end the run with status 1. Times are the best of 15 on arrays of 2**17 operands, others each time, in
alternation, of one thread's processor time: of a graph of the one operation on the device ``cpu``, of the specification
(on COUNT operands), and of the other libraries. The table goes to FILE too.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

os.environ["TLIR_THREADS"] = "1"

import numpy as np

from tlir.backends.cpu import device
from tlir.floatlib.elementary import elementary_complex
from tlir.floatlib.elementary.complex.kernels import BINARY
from tlir.floatlib.elementary.complex.loop import NAMES, share_undecided
from tlir.floatlib.words import word_dtype
from tlir.ir.graph import Body, Node, Ref
from tlir.ir.tensor import Tensor
from tlir.ir.types import NAMED, DType, TensorType

SIZE, TIMES = 1 << 17, 15
OTHERS = {
    "sqrt": ("sqrt", "sqrt"),
    "rsqrt": ("rsqrt", None),
    "sign": ("sgn", None),
    "exponential": ("exp", "exp"),
    "exponential_minus_one": ("expm1", "expm1"),
    "log": ("log", "log"),
    "log_plus_one": ("log1p", "log1p"),
    "logistic": ("sigmoid", None),
    "sinh": ("sinh", "sinh"),
    "cosh": ("cosh", "cosh"),
    "tanh": ("tanh", "tanh"),
    "sine": ("sin", "sin"),
    "cosine": ("cos", "cos"),
    "tan": ("tan", "tan"),
    "asin": ("asin", "arcsin"),
    "acos": ("acos", "arccos"),
    "atan": ("atan", "arctan"),
    "asinh": ("asinh", "arcsinh"),
    "acosh": ("acosh", "arccosh"),
    "atanh": ("atanh", "arctanh"),
    "divide": ("divide", "divide"),
    "power": ("pow", "power"),
}
"""What PyTorch and NumPy call them."""


def numbers(dtype: DType, count: int, random: np.random.Generator) -> np.ndarray:
    kind = f"f{dtype.component.bits // 8}"
    return random.standard_normal((count, 2)).astype(kind).view(dtype.name)[:, 0]


def graph(name: str, dtype: DType, size: int) -> Body:
    type, count = TensorType((size,), dtype), 2 if name in BINARY else 1
    nodes = [Node(k, "input", (), {}, (type,)) for k in range(count)]
    nodes.append(Node(count, name, tuple(Ref(k) for k in range(count)), {}, (type,)))
    return Body(tuple(nodes), tuple(range(count)), (Ref(count),))


def compared(name: str, dtype: DType, operands: list[np.ndarray]) -> tuple[int, float]:
    """Elements whose words are not the specification's, and its microseconds an element."""
    word, fmt = word_dtype(dtype.float_format), dtype.float_format
    size = operands[0].size
    (result,) = device.Executable(graph(name, dtype, size)).run([Tensor.from_numpy(x) for x in operands])
    rows = [x.view(word).reshape(size, 2).tolist() for x in operands]
    start = time.process_time()
    expected = [elementary_complex(name, fmt, *row)[0] for row in zip(*rows, strict=True)]
    spent = time.process_time() - start
    return int((np.array(expected, word) != np.asarray(result.words).reshape(size, 2)).any(1).sum()), spent / size * 1e6


def others(name: str) -> list[Callable[..., Any] | None]:
    """PyTorch's function and NumPy's."""
    theirs, numpy_name = OTHERS[name]
    found: list[Callable[..., Any] | None] = [None, getattr(np, numpy_name) if numpy_name else None]
    if find_spec("torch") is not None:
        import torch

        torch.set_num_threads(1)
        function = getattr(torch, theirs)
        found[0] = lambda *operands: function(*map(torch.from_numpy, operands))
    return found


def row(name: str, dtype: DType, count: int) -> tuple[int, str]:
    random = np.random.default_rng(2026)
    arity = 2 if name in BINARY else 1
    wrong, specification = compared(name, dtype, [numbers(dtype, count, random) for _ in range(arity)])
    executable, peers = device.Executable(graph(name, dtype, SIZE)), others(name)
    times: list[list[float]] = [[], [], []]
    for _ in range(TIMES + 1):
        operands = [numbers(dtype, SIZE, random) for _ in range(arity)]
        tensors = [Tensor.from_numpy(x) for x in operands]
        runs = [lambda tensors=tensors: executable.run(tensors)]
        runs += [None if peer is None else lambda peer=peer, operands=operands: peer(*operands) for peer in peers]
        for spent, run in zip(times, runs, strict=True):
            start = time.process_time()
            if run is not None:
                run()
            spent.append((time.process_time() - start) / SIZE * 1e9)
    word = word_dtype(dtype.float_format)
    columns = tuple(np.ascontiguousarray(x.view(word).reshape(-1, 2)[:, k]) for x in operands for k in range(2))
    share = share_undecided(name, dtype.float_format, columns)
    ours, torch_time, numpy_time = (min(spent[1:]) for spent in times)
    cells = [name, str(wrong), f"{share:.1e}", f"{specification:.0f}", f"{ours:.1f}"]
    cells += [
        "" if peer is None else f"{spent:.1f}" for peer, spent in zip(peers, (torch_time, numpy_time), strict=True)
    ]
    return wrong, "| " + " | ".join(cells) + " |"


def main(count: int, path: str | None) -> int:
    lines, wrong = (
        ["# Functions of complex numbers", "", f"`python bench/complex_functions.py {count}`, one thread."],
        0,
    )
    lines += [f"Wrong: of {count} operands. Undecided: the share left to the specification. Times per element:"]
    lines += ["microseconds of the specification, nanoseconds of a graph on the device `cpu`, PyTorch and NumPy."]
    print("\n".join(lines))
    for dtype in (NAMED["complex64"], NAMED["complex128"]):
        head = [
            "",
            f"## {dtype}",
            "",
            "| function | wrong | undecided | specification, us | `cpu`, ns | PyTorch | NumPy |",
        ]
        head.append("|---|---:|---:|---:|---:|---:|---:|")
        print("\n".join(head), flush=True)
        lines += head
        for name in NAMES:
            found, line = row(name, dtype, count)
            print(line, flush=True)
            lines.append(line)
            wrong += found
    if path is not None:
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000, sys.argv[2] if len(sys.argv) > 2 else None))
