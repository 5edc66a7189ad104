"""Whole programs, whose kernels have to be split in more than one way: lowering ends, and computes the same words."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from tlir.api import load
from tlir.backends import run
from tlir.backends.interpreter import run_program
from tlir.passes.lower import lower

ROOT = Path(__file__).resolve().parents[2]


def module(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"lowered_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    found = sys.modules[f"lowered_{path.stem}"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.mark.parametrize("name", ["cached", "recomputed"])
def test_a_generation_step(name: str) -> None:
    pytest.importorskip("jax", reason="JAX is not installed")
    examples, capture = module(ROOT / "examples/jax_generation.py"), module(ROOT / "capture/jax_capture.py")
    artifact = capture.export(getattr(examples, name), *getattr(examples, f"{name}_arguments")())
    graph = load(artifact).ir
    inputs = list(graph.samples[0].inputs)
    results = run_program(lower(graph.body), graph.body, inputs)
    assert all(a.same_words(b) for a, b in zip(run(graph, inputs), results, strict=True))
