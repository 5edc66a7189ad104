"""What a trace costs in PyTorch, beside the plain run of the exported graph.

    python bench/torch_tracing.py [--passes N] [--folder DIR] [NAME ...]

Per model: the module called as it is, the exported graph run by ``torch.fx.Interpreter``, the capture's own run with
all files written but without a trace, and the same with one (every operator's value in the ``.safetensors`` file). The
cost is the difference of the last two over the interpreter's time, and the whole the last over the same; both by the
clock and by the time of the processors, which other work on the machine changes less. Medians of alternating passes.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from bench.models import script  # noqa: E402


def perceptron(batch: int, width: int) -> tuple[nn.Module, torch.Tensor]:
    net = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))
    return net, torch.randn(batch, width)


def transformer(layers: int, batch: int, tokens: int, width: int, heads: int) -> tuple[nn.Module, torch.Tensor]:
    layer = nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True)
    net = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
    return net, torch.randn(batch, tokens, width)


MODELS: dict[str, Callable[[], tuple[nn.Module, torch.Tensor]]] = {
    "perceptron 64 x 256": lambda: perceptron(64, 256),
    "perceptron 256 x 1024": lambda: perceptron(256, 1024),
    "block 2 x 64 x 128": lambda: transformer(1, 2, 64, 128, 4),
    "block 4 x 128 x 512": lambda: transformer(1, 4, 128, 512, 8),
    "12 layers 2 x 64 x 128": lambda: transformer(12, 2, 64, 128, 4),
    "12 layers 1 x 128 x 768": lambda: transformer(12, 1, 128, 768, 12),
}


def timed(run: Callable[[], Any]) -> tuple[float, float]:
    """Seconds on the clock, and of the processors."""
    start, used = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - start, time.process_time() - used


def measured(make: Callable[[], tuple[nn.Module, torch.Tensor]], passes: int, folder: Path) -> dict[str, float]:
    capture = script("torch")
    torch.manual_seed(0)
    net, x = make()
    net.eval()
    options = {"name": "m", "compile": False, "dynamic_shapes": None, "sizes": None, "tracer": None}
    plain, record = capture._captured(net, (x,), {}, trace=False, **options)
    traced, record_all = capture._captured(net, (x,), {}, trace=True, **options)
    program = torch.export.export(net, (x,)).run_decompositions()
    inner = torch.fx.Interpreter(program.graph_module)
    state = [
        program.state_dict[s.target] if s.target in program.state_dict else program.constants.get(s.target, x)
        for s in program.graph_signature.input_specs
    ]
    runs: dict[str, Callable[[], Any]] = {
        "module": lambda: net(x),
        "interpreter": lambda: inner.run(*state),
        "without": lambda: capture._write(plain, folder / "plain.json", record),
        "with": lambda: capture._write(traced, folder / "traced.json", record_all),
    }
    times: dict[str, list[tuple[float, float]]] = {key: [] for key in runs}
    with torch.no_grad():
        for k in range(passes + 1):
            for key, run in runs.items():
                seconds = timed(run)
                if k:
                    times[key].append(seconds)
                for file in folder.iterdir():  # to write over a file costs more than to write one
                    file.unlink()
    found = {key: statistics.median(clock for clock, _ in values) for key, values in times.items()}
    columns = [times[key] for key in ("with", "without", "interpreter")]
    for k, suffix in enumerate(("", " cpu")):
        triples = [(a[k], b[k], c[k]) for a, b, c in zip(*columns, strict=True)]
        found["cost" + suffix] = statistics.median((a - b) / c for a, b, c in triples)
        found["whole" + suffix] = statistics.median(a / c for a, _, c in triples)
    trace = [entry["tensor"] for entry in traced["samples"][0]["trace"]]
    size = sum(capture._nbytes(tensor["dtype"], tensor["shape"]) for tensor in trace)
    return found | {"values": len(trace), "MB": size / 1e6}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--passes", type=int, default=7)
    parser.add_argument("--folder", help="where the files are written (by default a temporary folder)")
    options = parser.parse_args()
    print("| model | values | MB | module ms | interpreter ms | without ms | with ms | cost | whole | its cpu | cpu |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for name, make in MODELS.items():
        if options.names and not any(part in name for part in options.names):
            continue
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            f = measured(make, options.passes, Path(folder))
        times = " | ".join(f"{1000 * f[key]:.2f}" for key in ("module", "interpreter", "without", "with"))
        ratios = " | ".join(f"{f[key]:.2f}" for key in ("cost", "whole", "cost cpu", "whole cpu"))
        print(f"| {name} | {f['values']} | {f['MB']:.1f} | {times} | {ratios} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
