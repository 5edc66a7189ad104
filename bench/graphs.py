"""Workloads on the cpu device beside JAX, PyTorch (eager and compiled), NumPy and ONNX Runtime, in alternation.

    python bench/graphs.py [--threads N] [--repeat N] [--quick] [WORKLOAD ...] [OUTPUT.md]

Every workload is written once per peer. tlir runs what ``capture/jax_capture.py`` captures of the JAX function, in the
order that is written there; the rows "fma" and "blocked" run the same graph after ``tlir reorder``. Medians of
``--repeat`` samples, each long enough to be measured, the peers taking turns; a ratio is the peer's time over tlir's,
so that 1 is as fast and 2 twice as fast. Set the number of threads here, not in the environment: the peers read it when
they are imported. With two threads a pause goes before every sample, because the threads of the peer before go on
spinning for a while (0.1 s of OpenBLAS); calls that are not counted follow for 20 ms. The column "C" has loops in C in
the written order, on one thread, which write to memory that is there (``graphs_peers.c``). Unset OPENBLAS_CORETYPE and
OPENBLAS_L2_SIZE for the comparison with NumPy.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="WORKLOAD")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="a tenth of the elements of the large workloads")
    return parser.parse_args()


OPTIONS = _arguments()
os.environ["TLIR_THREADS"] = os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = str(OPTIONS.threads)
if OPTIONS.threads == 1:
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: OPTIONS.threads])

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402

sys.path[:0] = [str(ROOT / "capture"), str(ROOT / "bench")]
import graphs_peers  # noqa: E402
import jax_capture  # noqa: E402
import onnx_peer  # noqa: E402

import tlir  # noqa: E402
from tlir.backends.cpu.device import Executable  # noqa: E402
from tlir.ir.graph import Body, Graph, Node, Ref  # noqa: E402
from tlir.ir.tensor import Tensor  # noqa: E402
from tlir.ir.types import NAMED, TensorType  # noqa: E402
from tlir.passes.reorder import reorder  # noqa: E402

torch.set_num_threads(OPTIONS.threads)
jax.config.update("jax_enable_x64", True)
SCALE = 10 if OPTIONS.quick else 1
RANDOM = np.random.default_rng(0)


def normal(*shape: int, dtype: Any = np.float32) -> Any:
    return RANDOM.standard_normal(shape).astype(dtype)


class Workload:
    """One computation: arguments, and a function for each peer that takes them in its own kind of array."""

    def __init__(
        self,
        name: str,
        arguments: list[Any],
        jax: Any,
        torch: Any,
        numpy: Any,
        variants: dict[str, dict[str, Any]] | None = None,
        compiled: Any = None,
        graph: Graph | None = None,
    ) -> None:
        self.name, self.arguments, self.jax, self.torch, self.numpy = name, arguments, jax, torch, numpy
        self.variants = variants or {}
        self.graph = graph  # what the variants are made of, if not what is captured
        self.compiled = compiled  # a function that uses torch.compile itself; else the whole of `torch` is compiled


def chain() -> Workload:
    def jax_function(x: Any) -> Any:
        return jnp.maximum(((x * 2 + 1) * x - 3) / 4, -x)

    def torch_function(x: Any) -> Any:
        return torch.maximum(((x * 2 + 1) * x - 3) / 4, -x)

    def numpy_function(x: Any) -> Any:
        return np.maximum(((x * np.float32(2) + np.float32(1)) * x - np.float32(3)) / np.float32(4), -x)

    return Workload("chain of six, 1e7", [normal(10_000_000 // SCALE)], jax_function, torch_function, numpy_function)


def recurrence() -> Workload:
    def jax_function(x: Any) -> Any:
        return jax.lax.fori_loop(0, 1000, lambda _, y: y * np.float32(0.9) + np.float32(0.1), x)

    def torch_function(x: Any) -> Any:
        for _ in range(1000):
            x = x * 0.9 + 0.1
        return x

    step = torch.compile(lambda x: x * 0.9 + 0.1)  # a thousand steps in one graph would take minutes to compile

    def compiled(x: Any) -> Any:
        for _ in range(1000):
            x = step(x)
        return x

    arguments = [normal(100_000)]
    name = "recurrence, 1000 steps of 1e5"
    return Workload(name, arguments, jax_function, torch_function, torch_function, compiled=compiled)


def numpy_gelu(x: Any) -> Any:
    inner = np.float32(0.7978845608) * (x + np.float32(0.044715) * x**3)
    return x * (np.float32(0.5) * (np.float32(1) + np.tanh(inner)))


def numpy_softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def gelu() -> Workload:
    def jax_function(x: Any) -> Any:
        return jax.nn.gelu(x, approximate=True)

    def torch_function(x: Any) -> Any:
        return torch.nn.functional.gelu(x, approximate="tanh")

    return Workload("tanh-gelu, 1e7", [normal(10_000_000 // SCALE)], jax_function, torch_function, numpy_gelu)


def softmax() -> Workload:
    return Workload(
        "softmax 4096 x 1024",
        [normal(4096, 1024)],
        lambda x: jax.nn.softmax(x, axis=-1),
        lambda x: torch.softmax(x, -1),
        numpy_softmax,
    )


def layer_norm() -> Workload:
    def written(x: Any, g: Any, b: Any) -> Any:
        mean = x.mean(-1, keepdims=True)
        variance = ((x - mean) ** 2).mean(-1, keepdims=True)
        root = jnp.sqrt(variance + 1e-5) if isinstance(x, jax.Array) else np.sqrt(variance + np.float32(1e-5))
        return (x - mean) / root * g + b

    def torch_function(x: Any, g: Any, b: Any) -> Any:
        return torch.nn.functional.layer_norm(x, (1024,), g, b)

    arguments = [normal(4096, 1024), normal(1024), normal(1024)]
    return Workload("layer norm 4096 x 1024", arguments, written, torch_function, written)


FUSED: dict[str, dict[str, Any]] = {"fma": {"fma": True}}


def product(n: int, dtype: str) -> Workload:
    x, y = normal(n, n, dtype=dtype), normal(n, n, dtype=dtype)
    return Workload(f"product {dtype} {n}", [x, y], lambda x, y: x @ y, lambda x, y: x @ y, lambda x, y: x @ y, FUSED)


def perceptron() -> Workload:
    shapes = ((256, 784), (784, 1024), (1024, 1024), (1024, 10))

    def with_relu(relu: Any) -> Any:
        return lambda x, a, b, c: relu(relu(x @ a) @ b) @ c

    return Workload(
        "perceptron 256 x 784-1024-1024-10",
        [normal(*shape) for shape in shapes],
        with_relu(jax.nn.relu),
        with_relu(torch.relu),
        with_relu(lambda x: np.maximum(x, np.float32(0))),
        FUSED,
    )


def transformer() -> Workload:
    def block(m: Any, softmax: Any, gelu: Any, swap: Any) -> Any:
        def norm(x: Any) -> Any:
            mean = x.mean(-1, keepdims=True) if m is not torch else x.mean(-1, keepdim=True)
            square = (x - mean) ** 2
            variance = square.mean(-1, keepdims=True) if m is not torch else square.mean(-1, keepdim=True)
            return (x - mean) / m.sqrt(variance + (1e-5 if m is not np else np.float32(1e-5)))

        def function(x: Any, wq: Any, wk: Any, wv: Any, wo: Any, w1: Any, w2: Any) -> Any:
            h = norm(x)
            q, k, v = (swap(t.reshape(4, 128, 8, 64), 1, 2) for t in (h @ wq, h @ wk, h @ wv))
            attention = softmax(q @ swap(k, 2, 3) / (8.0 if m is not np else np.float32(8)))
            x = x + swap(attention @ v, 1, 2).reshape(4, 128, 512) @ wo
            return x + gelu(norm(x) @ w1) @ w2

        return function

    shapes = ((4, 128, 512), (512, 512), (512, 512), (512, 512), (512, 512), (512, 2048), (2048, 512))
    return Workload(
        "transformer block d=512, 8 heads, 4 x 128",
        [normal(*shape) * np.float32(0.05) for shape in shapes],
        block(jnp, jax.nn.softmax, lambda x: jax.nn.gelu(x, approximate=True), jnp.swapaxes),
        block(
            torch,
            lambda x: torch.softmax(x, -1),
            lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
            torch.transpose,
        ),
        block(np, numpy_softmax, numpy_gelu, np.swapaxes),
        FUSED,
    )


def convolution() -> Workload:
    return Workload(
        "convolution 8 x 64 x 56 x 56, 3 x 3",
        [normal(8, 64, 56, 56), normal(64, 64, 3, 3)],
        lambda x, w: jax.lax.conv_general_dilated(x, w, (1, 1), "SAME"),
        lambda x, w: torch.nn.functional.conv2d(x, w, padding=1),
        None,
        FUSED,
    )


def total() -> Workload:
    """JAX sums in windows of windows, and so does its captured graph; the variants are those of one reduction."""
    elements = 100_000_000 // SCALE
    scalar, line = (TensorType(shape, NAMED["float32"]) for shape in ((), (elements,)))
    attributes = {"reducer": "add", "dimensions": (0,)}
    nodes = (Node(0, "input", (), {}, (line,)), Node(1, "reduce", (Ref(0),), attributes, (scalar,)))

    def jax_function(x: Any) -> Any:
        return jax.lax.reduce_sum_p.bind(x, axes=(0,), out_sharding=None)

    return Workload(
        "sum of 1e8",
        [RANDOM.random(elements, dtype=np.float32)],
        jax_function,
        torch.sum,
        np.sum,
        {order: {"order": order} for order in ("sequential", "blocked(64)", "pairwise")},
        graph=Graph(Body(nodes, (0,), (Ref(1),))),
    )


WORKLOADS: dict[str, Callable[[], Workload]] = {
    "chain": chain,
    "recurrence": recurrence,
    "gelu": gelu,
    "softmax": softmax,
    "layernorm": layer_norm,
    **{
        f"product-{d}-{n}": (lambda n=n, d=d: product(n, d))
        for d in ("float32", "float64")
        for n in (256, 512, 1024, 2048)
    },
    "perceptron": perceptron,
    "transformer": transformer,
    "convolution": convolution,
    "sum": total,
}


def settled(call: Callable[[], Any]) -> None:
    """Waits until the threads of the peer before sleep, and then calls until those of this one are awake."""
    time.sleep(0.2 if OPTIONS.threads > 1 else 0)
    until = time.perf_counter() + 0.02
    while time.perf_counter() < until:
        call()


def measured(calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Median seconds of each, taken in turn."""
    counts = {}
    for name, call in calls.items():
        call()
        settled(call)
        start = time.perf_counter()
        call()
        counts[name] = max(1, int(0.05 / max(time.perf_counter() - start, 1e-6)))
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(OPTIONS.repeat):
        for name, call in calls.items():
            settled(call)
            start = time.perf_counter()
            for _ in range(counts[name]):
                call()
            samples[name].append((time.perf_counter() - start) / counts[name])
    return {name: statistics.median(each) for name, each in samples.items()}


PEERS = ("jax", "torch", "torch.compile", "numpy", "onnxruntime", "C")


def run(key: str) -> list[str]:
    workload = WORKLOADS[key]()
    graph = tlir.load(jax_capture.export(workload.jax, *workload.arguments, name="workload")).ir
    tensors = [Tensor.from_numpy(np.asarray(x)) for x in workload.arguments]
    executables = {"": Executable(graph.body)}
    for name, request in workload.variants.items():
        executables[name] = Executable(reorder(workload.graph or graph, **request)[0].body)
    on_jax = [jnp.asarray(x) for x in workload.arguments]
    on_torch = [torch.from_numpy(x) for x in workload.arguments]
    compiled = jax.jit(workload.jax)
    torch_compiled = workload.compiled or torch.compile(workload.torch)
    calls: dict[str, Callable[[], Any]] = {
        "jax": lambda: compiled(*on_jax).block_until_ready(),
        "torch": lambda: workload.torch(*on_torch),
        "torch.compile": lambda: torch_compiled(*on_torch),
    }
    onnx_call = onnx_peer.caller(key, workload.arguments, OPTIONS.threads)
    if onnx_call is not None:
        calls["onnxruntime"] = onnx_call
    c_call = graphs_peers.caller(key, workload.arguments, OPTIONS.threads)
    if c_call is not None:
        calls["C"] = c_call
    if workload.numpy is not None:
        calls["numpy"] = lambda: workload.numpy(*workload.arguments)
    for name, executable in executables.items():
        calls[f"tlir {name}".strip()] = lambda executable=executable: executable.run(tensors)
    with torch.no_grad():
        times = measured(calls)
    lines = []
    for name in executables:
        ours = times[f"tlir {name}".strip()]
        peers = [times[peer] / ours if peer in times else None for peer in PEERS]
        cells = ["–" if ratio is None else f"{ratio:.2f}" for ratio in peers]
        left = executables[name].statistics.reference
        note = f" ({len(left)} nodes on the reference)" if left else ""
        lines.append(
            f"| {workload.name}{', ' + name if name else ''}{note} | {ours * 1e3:.2f} ms | {' | '.join(cells)} |"
        )
    return lines


def main() -> None:
    names = [name for name in OPTIONS.names if not name.endswith(".md")]
    output = next((name for name in OPTIONS.names if name.endswith(".md")), None)
    for name in names:
        if name not in WORKLOADS:
            sys.exit(f"there is no workload {name}; there are {', '.join(WORKLOADS)}")
    head = [
        f"## {OPTIONS.threads} thread{'s' if OPTIONS.threads > 1 else ''}",
        "",
        f"jax {jax.__version__}, torch {torch.__version__}, numpy {np.__version__}, "
        f"onnxruntime {onnx_peer.onnxruntime.__version__}, {platform.machine()}, "
        f"load average {os.getloadavg()[0]:.1f}. Ratios: the peer's time over tlir's.",
        "",
        f"| workload | tlir | {' | '.join(PEERS)} |",
        "|---|---:" + "|---:" * len(PEERS) + "|",
    ]
    lines = []
    print("\n".join(head), flush=True)
    for name in names or WORKLOADS:
        for line in run(name):
            lines.append(line)
            print(line, flush=True)
    if output is not None:
        with open(output, "a", encoding="utf-8") as file:
            file.write("\n".join([*head, *lines, "", ""]))


if __name__ == "__main__":
    main()
