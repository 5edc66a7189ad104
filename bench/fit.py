"""Which declared orders give the frontends' every word: the table of docs/bounds.md.

    python bench/fit.py [CASE…]      all cases, or those named (as `product k=256`)

Products, sums, means, layer norm and softmax are captured from JAX and PyTorch, operator by operator with a trace, in
float32, float64 and bfloat16, and fitted. PyTorch runs on one thread. The words are those of this processor: blocks,
lanes and strips follow its vectors and caches. The last line counts the cases that are reproduced.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

DTYPES = ("float32", "float64", "bfloat16")


def functions() -> dict[str, tuple[tuple[tuple[int, ...], ...], Callable[..., Any], Callable[..., Any]]]:
    """Shapes of the arguments, and the function in JAX and in PyTorch, by name."""
    import jax
    import jax.numpy as jnp
    import torch

    def layer_norm(x: Any) -> Any:
        mean = jnp.mean(x, axis=-1, keepdims=True)
        variance = jnp.mean((x - mean) ** 2, axis=-1, keepdims=True)
        return (x - mean) / jnp.sqrt(variance + 1e-5)

    def torch_layer_norm(x: Any) -> Any:
        return torch.nn.functional.layer_norm(x, (x.shape[-1],))

    def product(x: Any, w: Any) -> Any:
        return x @ w

    rows, columns = ((64, 1000),), ((1000, 64),)
    return {
        "product k=256": (((64, 256), (256, 64)), product, product),
        "product k=1024": (((64, 1024), (1024, 64)), product, product),
        "sum of rows": (rows, lambda x: jnp.sum(x, axis=1), lambda x: torch.sum(x, 1)),
        "sum of rows of 5000": (((64, 5000),), lambda x: jnp.sum(x, axis=1), lambda x: torch.sum(x, 1)),
        "sum of columns": (columns, lambda x: jnp.sum(x, axis=0), lambda x: torch.sum(x, 0)),
        "mean of rows": (rows, lambda x: jnp.mean(x, axis=1), lambda x: torch.mean(x, 1)),
        "layer norm": (rows, layer_norm, torch_layer_norm),
        "softmax": (rows, lambda x: jax.nn.softmax(x, axis=-1), lambda x: torch.softmax(x, -1)),
    }


def captured(frontend: str, function: Callable[..., Any], arrays: list[Any], dtype: str) -> Any:
    import jax.numpy as jnp
    import torch

    from capture import jax_capture, torch_capture
    from tlir.schema import read

    if frontend == "jax":
        artifact = jax_capture.export(function, *(jnp.asarray(x).astype(dtype) for x in arrays), trace=True)
    else:
        given = [torch.from_numpy(x).to(getattr(torch, dtype)) for x in arrays]
        artifact = torch_capture.export(function, *given, trace=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "case.json"
        path.write_text(json.dumps(artifact))
        return read(path)


def result(graph: Any) -> tuple[str, bool]:
    """What reproduces the words, or what is left."""
    from tlir.compare.fit import fit

    found = fit(graph)
    orders = list(dict.fromkeys(str(choice) for choice in found.choices.values()))
    output = found.outputs[0]
    if found.ok:
        return "; ".join(orders) or "as captured", True
    left = ", ".join(dict.fromkeys(node.op for node in found.nodes if not node.ok))
    share = f"{output.equal_after} of {output.count} words"
    return f"– ({left}: {share}" + (f", with {'; '.join(orders)})" if orders else ")"), False


def main() -> int:
    import jax
    import torch

    jax.config.update("jax_enable_x64", True)
    torch.set_num_threads(1)
    print(f"jax {jax.__version__}, torch {torch.__version__}, numpy {np.__version__}\n")
    print("| case | frontend | " + " | ".join(DTYPES) + " |\n|---|---|" + "---|" * len(DTYPES))
    reproduced = total = 0
    for name, (shapes, *by) in functions().items():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        rng = np.random.default_rng(0)
        arrays = [rng.standard_normal(shape) for shape in shapes]
        for frontend, function in zip(("jax", "torch"), by, strict=True):
            cells = []
            for dtype in DTYPES:
                text, ok = result(captured(frontend, function, arrays, dtype))
                cells.append(text)
                reproduced, total = reproduced + ok, total + 1
            print(f"| {name} | {frontend} | " + " | ".join(cells) + " |", flush=True)
    print(f"\n{reproduced} of {total} cases reproduced")
    return 0


if __name__ == "__main__":
    sys.exit(main())
