"""What the frontends make of the examples is never called a bug: in every format, operation by operation and compiled.

Each program is captured with a trace, so that its outputs are judged and every recorded value is, on its recorded
operands. PyTorch's compiler takes seconds for each program: a few are compiled in every run, all with --exhaustive.
"""

from __future__ import annotations

from typing import Any

import pytest
from example_programs import DTYPES, ROOT, exported, mode, module, names, program

from tlir.compare import compare
from tlir.compare.auto import AutoReport
from tlir.schema import from_json

FIXED = {"bfloat16_reduce": "bfloat16", "integer_program": "float32", "boolean_program": "float32"}
"""Programs that state their format, or have no floating-point argument."""

SAME = {"bfloat16_sum": "float16_sum", "bfloat16_contraction": "perceptron_inputs"}
"""Programs that are one with another, or a part of it, when the formats of their arguments are."""

COMPILED_BY_TORCH = {
    ("layer_norm", "bfloat16"),
    ("softmax", "float16"),
    ("attention", "float16"),
    ("attention", "float32"),
    ("mean_and_division", "float32"),
    ("transformer_block", "bfloat16"),
    ("perceptron_gradient", "float32"),
}


def cases(frontend: str) -> list[tuple[str, str]]:
    return [
        (name, dtype)
        for name in names(frontend)
        for dtype in ([FIXED[name]] if name in FIXED else DTYPES)
        if name not in SAME
    ]


def judged(frontend: str, name: str, dtype: str, compiled: bool) -> AutoReport:
    with mode(frontend, dtype):
        function, arguments = program(frontend, name, dtype, width=8, batch=4)
        document = exported(frontend, function, arguments, compile=compiled, trace=not compiled)
    report = compare(from_json(document), tolerance="auto")
    assert isinstance(report, AutoReport)
    return report


def accepted(report: AutoReport, compiled: bool) -> None:
    assert report.verdict in ("identical", "reproduced", "rounding", "reordering")
    assert report.ok
    assert compiled or [location.suspect for location in report.locations] == [None]


@pytest.mark.parametrize("compiled", [False, True], ids=["op-by-op", "compiled"])
@pytest.mark.parametrize(("name", "dtype"), cases("jax"))
def test_no_example_of_jax_is_a_bug(name: str, dtype: str, compiled: bool) -> None:
    accepted(judged("jax", name, dtype, compiled), compiled)


@pytest.fixture
def one_thread() -> Any:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("name", "dtype"), cases("torch"))
def test_no_example_of_torch_is_a_bug(name: str, dtype: str, one_thread: None) -> None:
    accepted(judged("torch", name, dtype, False), False)


@pytest.mark.parametrize(("name", "dtype"), cases("torch"))
def test_no_compiled_example_of_torch_is_a_bug(name: str, dtype: str, exhaustive: bool, one_thread: None) -> None:
    if not exhaustive and (name, dtype) not in COMPILED_BY_TORCH:
        pytest.skip("compiled with --exhaustive")
    accepted(judged("torch", name, dtype, True), True)


FACTS = module(ROOT / "tests" / "golden" / "facts.py")


def facts(frontend: str) -> list[str]:
    """The names of the programs about single facts of arithmetic, which are golden artifacts too."""
    return [name for name, _, _ in FACTS.programs(frontend)]


@pytest.mark.parametrize(
    ("frontend", "name"), [(frontend, name) for frontend in ("jax", "torch") for name in facts(frontend)]
)
def test_no_compiled_fact_is_a_bug(frontend: str, name: str, exhaustive: bool, one_thread: None) -> None:
    """They are compared operation by operation as golden artifacts."""
    if frontend == "torch" and not exhaustive and name != "small_formats":
        pytest.skip("compiled with --exhaustive")
    ((function, arguments),) = [(fn, args) for own, fn, args in FACTS.programs(frontend) if own == name]
    with mode(frontend, "float64"):
        report = compare(from_json(exported(frontend, function, arguments, compile=True)), tolerance="auto")
    assert report.ok
