"""Capture a collection of PyTorch programs as artifacts: ``python torch_examples.py OUT --width 4 --batch 2``.

The programs are small versions of what models are made of. One of them sizes its result by the values in a tensor,
which no artifact can express; it is reported by name, and the others are written all the same. Needs torch and NumPy,
and ``torch_capture.py`` in ``../capture``.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

Program = tuple[Callable[..., Any], tuple[Any, ...]]
Build = Callable[[int, int], Program]

EXAMPLES: dict[str, Build] = {}
"""By name, a function of width and batch that gives a function and its arguments."""


def example(build: Build) -> Build:
    EXAMPLES[build.__name__] = build
    return build


# ---- data: the same numbers everywhere ------------------------------------------------------------------------------


def spread(*shape: int, start: int = 0) -> Tensor:
    """float32 numbers between -1 and 1 that fill the interval evenly (multiples of the golden ratio, modulo 1)."""
    k = np.arange(start, start + math.prod(shape))
    return torch.from_numpy((((k + 1) * 0.6180339887498949) % 1.0 * 2.0 - 1.0).astype(np.float32).reshape(shape))


def eighths(*shape: int, start: int = 0) -> Tensor:
    """float64 multiples of 1/8 between -1/2 and 1/2: sums of their products are exact in any order."""
    k = np.arange(start, start + math.prod(shape))
    return torch.from_numpy(((k * 5 % 9 - 4) / 8.0).reshape(shape))


def with_parameters(module: nn.Module, scale: float = 1.0) -> nn.Module:
    """The module for inference, its parameters filled from ``spread``."""
    for k, parameter in enumerate(module.parameters()):
        with torch.no_grad():
            parameter.copy_(spread(*parameter.shape, start=7 * k) * scale)
    return module.eval()


# ---- sums, layers and shapes ----------------------------------------------------------------------------------------


def _square_sum(x: Tensor) -> Tensor:
    return (x * x).sum()


@example
def square_sum(width: int, batch: int) -> Program:
    return _square_sum, (torch.arange(1, width + 1, dtype=torch.float32),)


@example
def square_sum_gradient(width: int, batch: int) -> Program:
    return torch.func.grad(_square_sum), (torch.arange(1, width + 1, dtype=torch.float32),)


class Perceptron(nn.Module):
    """Two linear layers with tanh between them: ``[batch, width]`` to ``[batch, 3]``."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(width, 2 * width)
        self.output = nn.Linear(2 * width, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.output(torch.tanh(self.hidden(x)))


@example
def perceptron(width: int, batch: int) -> Program:
    return with_parameters(Perceptron(width)), (spread(batch, width),)


class Layers(NamedTuple):
    """Weights ``[inputs, hidden]`` and ``[hidden, outputs]``, biases ``[hidden]`` and ``[outputs]``."""

    w1: Tensor
    b1: Tensor
    w2: Tensor
    b2: Tensor


@example
def perceptron_gradient(width: int, batch: int) -> Program:
    def loss(params: Layers, x: Tensor, y: Tensor) -> Tensor:
        hidden = torch.tanh(x @ params.w1 + params.b1)
        return ((hidden @ params.w2 + params.b2 - y) ** 2).mean()

    hidden = 2 * width
    params = Layers(spread(width, hidden), spread(hidden, start=5), spread(hidden, 3, start=11), spread(3, start=3))
    return torch.func.grad(loss), (params, spread(batch, width), spread(batch, 3, start=7))


@example
def perceptron_inputs(width: int, batch: int) -> Program:
    def predict(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
        hidden = torch.relu(x @ w1 + b1)
        return hidden @ w2 + b2

    hidden = 2 * width
    layers = eighths(width, hidden, start=1), eighths(hidden, start=2), eighths(hidden, 3), eighths(3)
    return predict, (eighths(batch, width), *layers)


@example
def broadcast(width: int, batch: int) -> Program:
    def shift_and_scale(x: Tensor, shift: Tensor, scale: Tensor) -> Tensor:
        return (x + shift) * scale[:, None] - 1.0

    return shift_and_scale, (spread(batch, width), spread(width, start=1), spread(batch, start=2))


@example
def reshape(width: int, batch: int) -> Program:
    def fold(x: Tensor) -> Tensor:
        return x.reshape(2 * batch, width).sum(0)

    return fold, (eighths(batch, 2, width).float(),)


@example
def permutation(width: int, batch: int) -> Program:
    def heads_first(x: Tensor) -> Tensor:
        return x.permute(2, 0, 1) * 2.0

    return heads_first, (spread(batch, width, 3),)


@example
def concatenation(width: int, batch: int) -> Program:
    def join(x: Tensor, y: Tensor) -> Tensor:
        return torch.cat([x, y.flip(1), torch.zeros_like(x[:, :1])], 1)

    return join, (spread(batch, width), spread(batch, width + 1, start=9))


@example
def batched_contraction(width: int, batch: int) -> Program:
    def contract(x: Tensor, y: Tensor) -> Tensor:
        return torch.einsum("bij,bjk->bik", x, y)

    return contract, (spread(batch, 3, width), spread(batch, width, 2, start=4))


@example
def several_outputs(width: int, batch: int) -> Program:
    def summary(x: Tensor) -> dict[str, Any]:
        return {
            "total": x.sum(),
            "best": x.argmax(1),
            "positive": x > 0,
            "half": x.to(torch.float16),
            "range": (x.amin(), x.amax()),
        }

    return summary, (spread(batch, width),)


# ---- precision ------------------------------------------------------------------------------------------------------


@example
def mixed_precision(width: int, batch: int) -> Program:
    def narrow(x: Tensor, y: Tensor) -> Tensor:
        return (x.float() * y.float()).half()

    return narrow, (spread(batch, width).double() / 3.0, spread(batch, width, start=8).double())


@example
def float16_sum(width: int, batch: int) -> Program:
    def total(x: Tensor) -> Tensor:
        return x.sum(1)

    return total, (eighths(batch, 8 * width).half(),)


@example
def bfloat16_sum(width: int, batch: int) -> Program:
    def total(x: Tensor) -> Tensor:
        return x.sum(1)

    return total, (eighths(batch, 8 * width).bfloat16(),)


@example
def bfloat16_contraction(width: int, batch: int) -> Program:
    def product(x: Tensor, y: Tensor) -> Tensor:
        return x @ y

    return product, (eighths(batch, width).bfloat16(), eighths(width, 3, start=1).bfloat16())


# ---- what models are made of ----------------------------------------------------------------------------------------


@example
def layer_norm(width: int, batch: int) -> Program:
    def normalized(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return F.layer_norm(x, (width,), weight, bias)

    return normalized, (spread(batch, width), spread(width, start=1), spread(width, start=6))


@example
def mean_and_division(width: int, batch: int) -> Program:
    def normalized(x: Tensor) -> Tensor:
        return x / x.mean(0)

    return normalized, (2.0 + spread(batch, width),)


@example
def softmax(width: int, batch: int) -> Program:
    def probabilities(x: Tensor) -> Tensor:
        return torch.softmax(x, -1)

    return probabilities, (3.0 * spread(batch, width),)


@example
def attention(width: int, batch: int) -> Program:
    def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        scores = q @ k.transpose(-1, -2) / math.sqrt(width)
        return torch.softmax(scores.masked_fill(~mask, -math.inf), -1) @ v

    tokens = 5
    q, k, v = (spread(batch, tokens, width, start=start) for start in (0, 3, 9))
    return attend, (q, k, v, torch.ones(tokens, tokens, dtype=torch.bool).tril())


class Block(nn.Module):
    """A transformer block on ``[batch, tokens, width]``: causal attention of one head, then a feed-forward layer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.attention = nn.Linear(width, 3 * width)
        self.projection = nn.Linear(width, width)
        self.feed_forward_norm = nn.LayerNorm(width)
        self.feed_forward = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.attention(self.attention_norm(x)).chunk(3, dim=-1)
        x = x + self.projection(F.scaled_dot_product_attention(q, k, v, is_causal=True))
        return x + self.feed_forward(self.feed_forward_norm(x))


@example
def transformer_block(width: int, batch: int) -> Program:
    return with_parameters(Block(width), 1.0 / width), (spread(batch, 4, width, start=13),)


@example
def complex_regression(width: int, batch: int) -> Program:
    def loss(w: Tensor, x: Tensor, y: Tensor) -> Tensor:
        residual = x @ w - y
        return (residual * residual.conj()).real.mean()

    w = torch.complex(spread(width), spread(width, start=2)) / width
    x = torch.complex(spread(batch, width, start=4), spread(batch, width, start=7))
    return loss, (w, x, torch.complex(spread(batch), spread(batch, start=1)))


@example
def integer_program(width: int, batch: int) -> Program:
    def mix(x: Tensor, shift: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        hashed = (x * 1103515245 + 12345) ^ (x >> shift)
        return hashed // 7 - hashed % 1000, hashed.to(torch.int8).sum(0), hashed / 3

    x = torch.arange(1, batch * width + 1, dtype=torch.int32).reshape(batch, width) * 48271
    return mix, (x, (torch.arange(width) % 40).int())


@example
def boolean_program(width: int, batch: int) -> Program:
    def vote(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        differ = torch.logical_xor(a, b)
        return differ.any(1), (a | ~b).all(1), differ.sum()

    pattern = torch.arange(batch * width).reshape(batch, width)
    return vote, (pattern % 3 == 0, pattern % 2 == 0)


@example
def selection_by_value(width: int, batch: int) -> Program:
    def positives(x: Tensor) -> Tensor:
        return x[x > 0] * 2.0

    return positives, (spread(batch, width),)


# ---- capturing them -------------------------------------------------------------------------------------------------


def load_capture() -> ModuleType:
    """``capture/torch_capture.py``, which stands beside this folder."""
    path = Path(__file__).resolve().parents[1] / "capture" / "torch_capture.py"
    spec = importlib.util.spec_from_file_location("torch_capture", path)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(f"{path} is not there")
    module = importlib.util.module_from_spec(spec)
    sys.modules["torch_capture"] = module
    spec.loader.exec_module(module)
    return module


def main() -> int:
    parser = argparse.ArgumentParser(description="Capture a collection of PyTorch programs as artifacts.")
    parser.add_argument("out", type=Path, help="folder for the artifacts; made if it is not there")
    parser.add_argument("--width", type=int, default=4, help="features per row (default 4)")
    parser.add_argument("--batch", type=int, default=2, help="rows (default 2)")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=sorted(EXAMPLES), help="capture only these")
    options = parser.parse_args()
    if options.width < 1 or options.batch < 1:
        parser.error("--width and --batch must be at least 1")
    capture = load_capture()
    options.out.mkdir(parents=True, exist_ok=True)
    captured = failed = 0
    print(f"{'program':<22} {'nodes':>5} {'version':>7}  inputs → outputs")
    for name in options.only or EXAMPLES:
        fn, arguments = EXAMPLES[name](options.width, options.batch)
        try:
            artifact = capture.export(fn, *arguments, name=name)
        except capture.UnsupportedError as error:
            failed += 1
            print(f"{name:<22} not captured: " + "; ".join(map(str, error.problems)))
            continue
        capture.save(artifact, options.out / f"{name}.json")
        captured += 1
        (sample,) = artifact["samples"]
        sides = (
            ", ".join(f"{tensor['dtype']}{tensor['shape']}" for tensor in sample[side])
            for side in ("inputs", "outputs")
        )
        print(f"{name:<22} {len(artifact['nodes']):>5} {artifact['version']:>7}  {' → '.join(sides)}")
    print(f"{captured} captured, {failed} not captured")
    return 0


if __name__ == "__main__":
    sys.exit(main())
