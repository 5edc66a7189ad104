"""Programs from public reports of numerical faults: the value that is right by the written program, through capture,
the artifact and the run; and what a frontend that gets it wrong is told."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tlir
from tlir.compare import compare
from tlir.compare.auto import AutoReport
from tlir.schema import read

ROOT = Path(__file__).resolve().parents[1]
GOLDEN = ROOT / "tests" / "golden"


def module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, loaded)
    spec.loader.exec_module(loaded)
    return loaded


reports = module(GOLDEN / "reports.py")
NAMES = list(reports.EXPECTED)
RECORDED = [
    (frontend, name) for frontend in ("jax", "torch") for name in NAMES if name not in reports.AT_FAULT[frontend]
]


def same(got: Any, expected: Any) -> bool:
    """Equal words; any NaN for a NaN, unless the right one has a payload."""
    got, expected = np.asarray(got), np.asarray(expected)
    if got.dtype != expected.dtype or got.shape != expected.shape:
        return False
    words = got.tobytes() == expected.tobytes()
    return words or bool(((got == expected) | ((got != got) & (expected != expected))).all())


def right(frontend: str, name: str) -> tuple[Any, ...]:
    return reports.AS_DEFINED.get(frontend, {}).get(name, reports.EXPECTED[name])  # type: ignore[no-any-return]


@pytest.mark.parametrize(("frontend", "name"), RECORDED)
def test_the_artifact_gives_the_right_value_and_so_did_the_frontend(frontend: str, name: str) -> None:
    graph = tlir.load(GOLDEN / frontend / f"{name}.json")
    results = graph.run()
    results = list(results) if isinstance(results, tuple | list) else [results]
    recorded = [tensor.to_numpy() for tensor in graph.ir.samples[0].outputs]
    for outputs in (results, recorded):
        assert len(outputs) == len(right(frontend, name))
        assert all(map(same, outputs, right(frontend, name)))
    assert compare(graph.ir, words=True).ok
    assert compare(graph.ir, tolerance="auto").verdict == "identical"  # type: ignore[attr-defined]


def test_words_of_constants_come_through_capture_and_back() -> None:
    """Payloads, signs and subnormals: bit for bit, in both frontends."""
    for frontend in ("jax", "torch"):
        graph = read(GOLDEN / frontend / "special_constants.json")
        (output,) = tlir.load(GOLDEN / frontend / "special_constants.json").run()
        assert np.asarray(output).view(np.uint32).tolist() == reports.CONSTANTS.view(np.uint32).tolist()
        assert compare(graph, words=True, nan_payload=True).ok


@pytest.mark.parametrize("compiled", [False, True], ids=["op-by-op", "compiled"])
def test_what_jax_makes_of_them_is_right_or_a_bug(compiled: bool) -> None:
    """Captured anew: whatever the frontend returns, the artifact gives the right value, and the verdict says so."""
    capture = module(ROOT / "capture" / "jax_capture.py")
    with reports.wide("jax"):
        documents = {
            report.name: capture.export(report.function, *report.arguments, name=report.name, compile=compiled)
            for report in reports.programs("jax")
        }
    for name, document in documents.items():
        graph = tlir.load(document)
        results = graph.run()
        results = list(results) if isinstance(results, tuple | list) else [results]
        assert all(map(same, results, right("jax", name)))
        report = compare(graph.ir, tolerance="auto")
        assert isinstance(report, AutoReport)
        wrong = reports.SIMPLIFIED["jax"] if compiled else reports.AT_FAULT["jax"]
        assert (report.verdict == "bug") == (name in wrong)


def test_a_cast_that_the_compiler_of_torch_leaves_out_is_a_bug() -> None:
    capture = module(ROOT / "capture" / "torch_capture.py")
    (program,) = (each for each in reports.programs("torch") if each.name == "cast_and_back")
    graph = tlir.load(capture.export(program.function, *program.arguments, compile=True))
    assert same(graph.run()[0], right("torch", "cast_and_back")[0])
    report = compare(graph.ir, tolerance="auto")
    recorded = graph.ir.samples[0].outputs[0].to_numpy()
    identity = bool((recorded == reports.NORMAL).all())
    assert identity == ("cast_and_back" in reports.SIMPLIFIED["torch"])
    assert (report.verdict == "bug") == identity  # type: ignore[attr-defined]


@pytest.mark.parametrize("frontend", ["jax", "torch"])
def test_the_mean_of_a_million_small_numbers(frontend: str) -> None:
    """1,048,576 times 1e-5 in float16, added in float32 as both frontends do: the mean is the number itself, up to the
    rounding of the sum."""
    count = 1 << 20
    capture = module(ROOT / "capture" / f"{frontend}_capture.py")
    if frontend == "jax":
        import jax.numpy as jnp

        document = capture.export(lambda x: jnp.mean(jnp.broadcast_to(x, (count,))), np.float16(1e-5))
    else:
        import torch

        document = capture.export(lambda x: x.expand(count).mean(), torch.tensor(1e-5, dtype=torch.float16))
    graph = tlir.load(document)
    term = np.float16(1e-5)
    assert compare(graph.ir, tolerance="auto").ok
    recorded = graph.ir.samples[0].outputs[0].to_numpy()
    assert abs(float(recorded) / float(term) - 1) < 2.0**-6
    (got,) = graph.run()
    assert abs(float(got) / float(term) - 1) < 0.02


def test_the_same_mean_added_in_float16_stays_where_a_term_is_lost() -> None:
    """Added one by one, where a term is less than half a unit of the sum."""
    import torch

    count, term = 1 << 20, np.float16(1e-5)
    capture = module(ROOT / "capture" / "torch_capture.py")

    def mean(x: Any) -> Any:
        return x.expand(count).sum() / count

    graph = tlir.load(capture.export(mean, torch.tensor(1e-5, dtype=torch.float16)))
    narrow = graph.reorder(dtype="float16")
    (got,) = narrow.run()
    total = np.float16(0)
    while np.float16(total + term) != total:
        total = np.float16(total + term)
    assert np.asarray(got) == np.float16(np.float32(total) / np.float32(count))
    # what PyTorch gives, added in float32, is no execution of that
    assert compare(narrow.ir, tolerance="auto", policy="strict").verdict == "bug"  # type: ignore[attr-defined]
