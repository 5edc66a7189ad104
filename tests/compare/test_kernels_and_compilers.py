"""What a frontend's own kernel, or its compiler, computes in another way than one operation after the other, and is
permitted to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tlir.compare import compare
from tlir.compare.auto import AutoReport
from tlir.schema import from_json


def report_of(document: Any) -> AutoReport:
    report = compare(from_json(document), tolerance="auto")
    assert isinstance(report, AutoReport)
    return report


@pytest.mark.parametrize(("shape", "axis"), [((8, 100), -1), ((200, 3), -1), ((64, 10), 0), ((3, 20, 4), 1), ((9,), 0)])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_log_softmax_of_narrow_formats_rounds_its_sum_and_logarithm_along_the_last_axis(
    dtype: str, shape: tuple[int, ...], axis: int
) -> None:
    torch = pytest.importorskip("torch")
    from capture import torch_capture

    torch.manual_seed(len(shape))
    x = torch.randn(*shape).to(getattr(torch, dtype))
    report = report_of(torch_capture.export(lambda x: torch.log_softmax(x, axis), x))
    assert report.ok, report.verdict
    if dtype != "float32":
        (output,) = report.outputs
        assert output.equal_words >= 0.99 * output.count


@pytest.mark.parametrize("name", ["products", "constant first", "sums", "differences", "three"])
def test_compilers_combine_the_constants_of_two_operations(name: str) -> None:
    pytest.importorskip("jax")
    from capture import jax_capture

    a, b, c = np.float32(0.3), np.float32(0.7), np.float32(0.11)
    functions: dict[str, Any] = {
        "products": lambda x: x * a * b,
        "constant first": lambda x: a * (x * b),
        "sums": lambda x: (x + a) + b,
        "differences": lambda x: (x - a) + b,
        "three": lambda x: x * a * b * c,
    }
    x = np.random.default_rng(0).standard_normal(1000).astype(np.float32)
    document = jax_capture.export(functions[name], x, compile=True)
    report = report_of(document)
    assert report.verdict == "reordering"
    # not what the program says: without a compiler's freedoms it is a fault
    graph = from_json(document)
    assert compare(graph, tolerance="auto", policy="reorder").verdict == "bug"  # type: ignore[attr-defined]
    # nor is much permitted: two units in the last place per operation
    (output,) = report.outputs
    recorded = graph.samples[0].outputs[0].to_numpy()
    assert output.justified <= 6 * np.spacing(np.abs(recorded).max())  # type: ignore[attr-defined]
