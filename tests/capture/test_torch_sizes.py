"""Sizes that are left open, and sizes that the values of tensors decide: refused by name, or pinned."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.export import Dim
from torch_oracle import capture, captured, checked, distances

BATCH = Dim("batch", min=2, max=64)
X, Y = torch.arange(12.0).reshape(4, 3), torch.arange(15.0).reshape(5, 3)
MASK = torch.tensor([True, False, True])


class Net(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x @ y.T, x.sum(0)


def _input_shapes(artifact: dict[str, Any]) -> list[list[int]]:
    return [node["shape"] for node in artifact["nodes"] if node["op"] == "input"]


def test_an_open_dimension_is_refused_by_its_name_and_place() -> None:
    with pytest.raises(capture.UnsupportedError, match=r"dimension batch: axis 0 of x .*--size batch=N"):
        capture.export(Net(), X, Y, dynamic_shapes={"x": {0: BATCH}, "y": None})
    with pytest.raises(capture.UnsupportedError, match=r"dimension y\.0: axis 0 of y"):
        capture.export(Net(), X, Y, dynamic_shapes=({0: BATCH}, {0: Dim.AUTO}), sizes={"batch": 3})


@pytest.mark.parametrize("size", [2, 4, 9])
def test_a_pinned_dimension_resizes_the_examples(size: int) -> None:
    artifact = capture.export(
        Net(), X, Y, dynamic_shapes={"x": {0: BATCH}, "y": {0: 2 * BATCH + 1}}, sizes={"batch": size}
    )
    assert _input_shapes(artifact) == [[size, 3], [2 * size + 1, 3]]
    assert distances(checked(artifact)) == [0, 0]  # small whole numbers are exact


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"batch": 65}, "not between 2 and 64"),
        ({"batch": 4, "rows": 1}, "no dimension rows"),
        ({"rows": 1}, "no dimension"),
    ],
)
def test_sizes_that_do_not_fit(sizes: dict[str, int], message: str) -> None:
    with pytest.raises(capture.CaptureError, match=message):
        capture.export(Net(), X, Y, dynamic_shapes={"x": {0: BATCH}, "y": None}, sizes=sizes)


def test_an_exported_program_with_and_without_open_dimensions() -> None:
    fixed = torch.export.export(Net(), (X, Y))
    assert distances(captured(fixed)) == [0, 0]
    program = torch.export.export(Net(), (X, Y), dynamic_shapes={"x": {0: BATCH}, "y": None})
    (symbol,) = map(str, program.range_constraints)
    with pytest.raises(capture.UnsupportedError, match=rf"dimension {symbol}: axis 0 of x .*--size {symbol}=N"):
        capture.export(program)
    artifact = capture.export(program, sizes={symbol: 7})
    assert _input_shapes(artifact) == [[7, 3], [5, 3]]
    assert distances(checked(artifact)) == [0, 0]


def test_sizes_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "net.py"
    program.write_text(
        "import torch\n"
        "def f(x):\n    return x + x.shape[0]\n"
        "args = torch.zeros(4, 3)\n"
        "shapes = ({0: torch.export.Dim('batch')},)\n"
    )
    command = [f"{program}:f", "--args", f"{program}:args", "--dynamic-shapes", f"{program}:shapes"]
    out = tmp_path / "out.json"
    assert capture.main([*command, "-o", str(out)]) == 4
    assert "--size batch=N" in capsys.readouterr().err
    assert capture.main([*command, "--size", "batch=x", "-o", str(out)]) == 2
    assert "NAME=N" in capsys.readouterr().err
    assert capture.main([*command, "--size", "batch=6", "-o", str(out)]) == 0
    assert '"shape":[6,3]' in out.read_text()


DEPENDENT: dict[str, Callable[[torch.Tensor], Any]] = {
    "aten.nonzero.default": torch.nonzero,
    "aten.masked_select.default": lambda x: torch.masked_select(x, x > 1),
    "aten.index.Tensor": lambda x: x[x > 1],
    "aten._unique2.default": torch.unique,
    "aten.unique_consecutive.default": torch.unique_consecutive,
    "data-dependent control flow": lambda x: x if x.sum() > 0 else -x,
}


@pytest.mark.parametrize("name", DEPENDENT)
def test_what_depends_on_data_is_refused_by_name_with_its_line(name: str) -> None:
    with pytest.raises(capture.UnsupportedError) as caught:
        capture.export(DEPENDENT[name], torch.tensor([3.0, 1.0, 2.0, 1.0]))
    (problem,) = caught.value.problems[:1]
    assert problem.operator == name
    assert "value" in problem.reason or "depends on data" in problem.reason
    if name not in ("aten.nonzero.default", "aten._unique2.default", "aten.unique_consecutive.default"):
        assert problem.source is not None
        assert problem.source["file"].endswith("test_torch_sizes.py")


SETTLED: dict[str, Callable[[torch.Tensor], Any]] = {
    "index by a mask": lambda x: x[MASK],
    "index by a computed mask": lambda x: x[torch.triu(torch.ones(3, 3), 1) == 1],
    "masked_select": lambda x: torch.masked_select(x, MASK) * 2,
    "repeat_interleave": lambda x: x.repeat_interleave(torch.tensor([1, 2, 0]), dim=0).sum(1),
    "nonzero": lambda x: x[MASK.nonzero().squeeze(1)],
}


@pytest.mark.parametrize("name", SETTLED)
def test_sizes_that_constants_decide(name: str) -> None:
    x = torch.arange(9.0).reshape(3, 3)
    graph = captured(SETTLED[name], x)
    (sample,) = graph.samples
    assert sample.outputs[0].shape == tuple(SETTLED[name](x).shape)
    assert distances(graph) == [0]


def test_numbers_computed_from_tensors() -> None:
    x = torch.tensor([1.0, 2.0, 4.0])
    (total, scaled, least) = (
        captured(lambda x: (x.sum().item(), x * x.sum().item(), x.argmin().item()), x).samples[0].outputs
    )
    assert [str(t.dtype) for t in (total, scaled, least)] == ["float64", "float32", "int64"]
    assert distances(captured(lambda x: (x.sum().item(), x * x.sum().item(), x.argmin().item()), x)) == [0, 0, 0]
    with pytest.raises(capture.UnsupportedError, match="max is computed from the values of a tensor"):
        capture.export(lambda x: torch.clamp(x, max=x.mean().item()), x)
