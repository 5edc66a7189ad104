"""What the tests of the JAX capture share: a captured artifact is read as every reader would read it, evaluated by the
reference, and its outputs compared with the words that JAX returned."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tlir.backends.reference import evaluate
from tlir.ir.graph import Graph
from tlir.ir.tensor import Tensor
from tlir.ir.verify import type_errors
from tlir.schema import dumps, from_json, lowest_version

ROOT = Path(__file__).resolve().parents[2]


def load_module(path: Path) -> ModuleType:
    """The module in a file, as a user's copy of it would be loaded."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


capture = load_module(ROOT / "capture" / "jax_capture.py")


def checked(artifact: dict[str, Any]) -> Graph:
    """The graph of an artifact that the reader takes, whose types hold, and whose text and version are canonical."""
    graph = from_json(artifact)
    assert [str(error) for error in type_errors(graph)] == []
    assert dumps(graph) == capture.dumps(artifact)
    assert lowest_version(graph) == artifact["version"]
    return graph


def outputs(fn: Callable[..., Any], *args: Any, **options: Any) -> list[tuple[Tensor, Tensor]]:
    """For each output of the captured function: what the reference computes, and what JAX returned."""
    graph = checked(capture.export(fn, *args, **options))
    sample = graph.samples[0]
    return list(zip(evaluate(graph.body, sample.inputs), sample.outputs, strict=True))


def expect_words(fn: Callable[..., Any], *args: Any, **options: Any) -> None:
    """Every output has the words that JAX returned; a NaN may have any payload."""
    for position, (got, want) in enumerate(outputs(fn, *args, **options)):
        assert got.type == want.type
        same = got.words == want.words
        if got.dtype.is_float or got.dtype.is_complex:
            same |= _is_nan(got) & _is_nan(want)
        where = [tuple(int(axis) for axis in index) for index in np.argwhere(~same)]
        if where:
            words = f"{int(got.words[where[0]]):x} and {int(want.words[where[0]]):x}"
            element = where[0][: len(got.shape)]
            values = f"{got.to_numpy()[element]} and {want.to_numpy()[element]}"
            pytest.fail(f"output {position}, {got.type}, at {where[0]} ({len(where)} differ): {words}, {values}")


def distances(got: Tensor, want: Tensor) -> np.ndarray:
    """Steps from number to number between the floats of two tensors, 0 where both are NaN, infinite where one is."""
    a, b = (_ordered(tensor) for tensor in (got, want))
    away = np.abs(a - b)
    nans = _is_nan(got), _is_nan(want)
    return np.where(nans[0] & nans[1], 0.0, np.where(nans[0] | nans[1], np.inf, away))


def expect_ulps(ulps: float, fn: Callable[..., Any], *args: Any, **options: Any) -> None:
    """Every output is at most so many steps away from what JAX returned."""
    for position, (got, want) in enumerate(outputs(fn, *args, **options)):
        assert got.type == want.type
        away = distances(got, want)
        assert away.max(initial=0) <= ulps, f"output {position} is {away.max()} ulps away at {int(away.argmax())}"


def ops(artifact: dict[str, Any]) -> list[str]:
    """The operations of the nodes, without inputs and constants."""
    return [node["op"] for node in artifact["nodes"] if node["op"] not in ("input", "constant")]


def _is_nan(tensor: Tensor) -> np.ndarray:
    fmt = tensor.dtype.float_format
    magnitude = tensor.words & np.array((1 << (fmt.width - 1)) - 1, tensor.words.dtype)
    infinity = ((1 << fmt.exponent_bits) - 1) << fmt.fraction_bits
    return np.asarray(magnitude > infinity if fmt.infinities else np.isnan(tensor.to_numpy().astype(np.float64)))


def _ordered(tensor: Tensor) -> np.ndarray:
    """Each float's position among its format's values as float64 (exact for neighbours up to 32 bits wide)."""
    bits = tensor.dtype.bits
    words = tensor.words.astype(np.int64)
    magnitude = words & ((1 << (bits - 1)) - 1)
    negative = (words >> (bits - 1)) & 1 == 1
    return np.where(negative, -magnitude, magnitude).astype(np.float64)
