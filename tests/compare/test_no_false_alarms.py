"""What the frontends make of the examples is never called a bug: in every format, operation by operation and compiled.

Each program is captured with a trace, so that its outputs are judged and every recorded value is, on its recorded
operands. With --exhaustive each program is in every format; in every run those that rounding can show much in are,
and the others in a narrow and a wide format by turns. PyTorch's compiler takes seconds for each program: a few are
compiled in every run.
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
    ("attention", "float16"),
    ("mean_and_division", "float32"),
    ("transformer_block", "bfloat16"),
    ("perceptron_gradient", "float32"),
}
"""What is compiled in every run: chains that are fused with sums, in each kind of format, and a gradient."""

IN_EVERY_FORMAT = ("layer_norm", "mean_and_division", "softmax", "attention", "transformer_block")
"""Programs whose values depend on the format most: narrow ones are widened inside, and sums are divided by."""


def cases(frontend: str) -> list[Any]:
    """Programs and formats as parameters; float16 and float32, bfloat16 and float64 take turns in every run."""
    found = []
    for number, name in enumerate(name for name in names(frontend) if name not in SAME):
        for dtype in [FIXED[name]] if name in FIXED else DTYPES:
            main = name in FIXED or name in IN_EVERY_FORMAT or DTYPES.index(dtype) % 2 == number % 2
            found.append(pytest.param(name, dtype, marks=() if main else pytest.mark.exhaustive))
    return found


def compiled_by_torch() -> list[Any]:
    every = [case.values for case in cases("torch")]
    assert set(every) >= COMPILED_BY_TORCH
    other = pytest.mark.exhaustive
    return [pytest.param(*case, marks=() if case in COMPILED_BY_TORCH else other) for case in every]


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


@pytest.mark.parametrize(("name", "dtype"), compiled_by_torch())
def test_no_compiled_example_of_torch_is_a_bug(name: str, dtype: str, one_thread: None) -> None:
    accepted(judged("torch", name, dtype, True), True)


FACTS = module(ROOT / "tests" / "golden" / "facts.py")


def facts(frontend: str) -> list[str]:
    """The names of the programs about single facts of arithmetic, which are golden artifacts too."""
    return [name for name, _, _ in FACTS.programs(frontend)]


@pytest.mark.parametrize(
    ("frontend", "name"),
    [
        *(("jax", name) for name in facts("jax")),
        *(
            pytest.param("torch", name, marks=() if name == "small_formats" else pytest.mark.exhaustive)
            for name in facts("torch")
        ),
    ],
)
def test_no_compiled_fact_is_a_bug(frontend: str, name: str, one_thread: None) -> None:
    """They are compared operation by operation as golden artifacts."""
    ((function, arguments),) = [(fn, args) for own, fn, args in FACTS.programs(frontend) if own == name]
    with mode(frontend, "float64"):
        report = compare(from_json(exported(frontend, function, arguments, compile=True)), tolerance="auto")
    assert report.ok
