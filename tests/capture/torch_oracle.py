"""What the tests of the PyTorch capture share: an artifact is checked as every reader would check it and evaluated by
the reference, and its outputs are compared with the words that torch returned."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import tlir
from tlir.backends.reference import evaluate
from tlir.ir.graph import Graph
from tlir.ir.tensor import Tensor
from tlir.ir.verify import type_errors
from tlir.schema import dumps, from_json, lowest_version

ROOT = Path(__file__).parents[2]


def _load() -> Any:
    spec = importlib.util.spec_from_file_location("torch_capture", ROOT / "capture" / "torch_capture.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["torch_capture"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


capture = _load()
"""The capture script, loaded from its file as a user's copy would be."""


def checked(artifact: dict[str, Any]) -> Graph:
    """The graph of an artifact that the reader takes, whose types hold, and whose text and version are canonical."""
    graph = from_json(artifact)
    assert [str(error) for error in type_errors(graph)] == []
    report = tlir.load(artifact).check()
    assert report.ok, report.to_json()
    assert lowest_version(graph) == artifact["version"]
    assert dumps(graph) == capture.dumps(artifact)
    return graph


def captured(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Graph:
    return checked(capture.export(fn, *args, **kwargs))


def _ordered(words: np.ndarray, bits: int) -> list[int]:
    """Words of a sign-magnitude format as integers in the order of the numbers they stand for."""
    sign = 1 << (bits - 1)
    return [-(w & (sign - 1)) if w & sign else w for w in (int(word) for word in words.reshape(-1))]


def distance(mine: Tensor, theirs: Tensor) -> int:
    """The largest distance in ulps; NaN is 0 from NaN and 2^bits from anything else, and so are words that differ in
    types without ulps, and zeros of different sign (1)."""
    assert mine.type == theirs.type
    dtype, worst = mine.dtype, 0
    if not (dtype.is_float or dtype.is_complex):
        return 0 if np.array_equal(mine.words, theirs.words) else 1 << dtype.bits
    fmt = dtype.float_format
    infinity = ((1 << fmt.exponent_bits) - 1) << fmt.fraction_bits
    pairs = zip(_ordered(mine.words, dtype.bits), _ordered(theirs.words, dtype.bits), strict=True)
    for (a, b), x, y in zip(pairs, mine.words.reshape(-1), theirs.words.reshape(-1), strict=True):
        if int(x) == int(y):
            continue
        nans = abs(a) > infinity, abs(b) > infinity
        if any(nans):
            worst = max(worst, 0 if all(nans) else 1 << dtype.bits)
        else:
            worst = max(worst, abs(a - b) or 1)
    return worst


def distances(graph: Graph) -> list[int]:
    """Per output, how far the reference's result is from the recorded one."""
    (sample,) = graph.samples
    results = evaluate(graph.body, sample.inputs)
    return [distance(mine, theirs) for mine, theirs in zip(results, sample.outputs, strict=True)]


def family(functions: Mapping[str, Callable[..., Any]], *args: Any) -> dict[str, int]:
    """Captures all the functions of the same arguments in one graph; the distance of each from torch's words."""

    def together(*tensors: Any) -> tuple[Any, ...]:
        return tuple(function(*tensors) for function in functions.values())

    return dict(zip(functions, distances(captured(together, *args)), strict=True))


def far(found: Mapping[str, int], ulps: Mapping[str, int] | None = None, default: int = 0) -> dict[str, int]:
    """Those of ``found`` that are further than their own limit in ``ulps``, or than ``default``."""
    limits = ulps or {}
    return {name: value for name, value in found.items() if value > limits.get(name, default)}


def numbers(tensor: Tensor) -> np.ndarray:
    """The values of a tensor in float64 or complex128 (integers and Booleans in float64), exact for up to 53 bits."""
    array = tensor.to_numpy()
    return array.astype(np.complex128 if np.iscomplexobj(array) else np.float64)


def relative(graph: Graph) -> list[float]:
    """Per output, the greatest difference from the recorded one over its greatest finite magnitude; infinite where
    one is NaN or infinite and the other is not the same."""
    (sample,) = graph.samples
    found = []
    for mine, theirs in zip(evaluate(graph.body, sample.inputs), sample.outputs, strict=True):
        assert mine.type == theirs.type
        a, b = numbers(mine).reshape(-1), numbers(theirs).reshape(-1)
        finite = np.isfinite(b)
        if not (np.isfinite(a) == finite).all() or not ((a == b) | (np.isnan(a) & np.isnan(b)))[~finite].all():
            found.append(float("inf"))
            continue
        scale = np.abs(b[finite]).max(initial=0.0)
        found.append(float(np.abs(a[finite] - b[finite]).max(initial=0.0) / (scale or 1.0)))
    return found
