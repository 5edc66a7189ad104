"""What a captured artifact says beside its arithmetic: names, trees, sources, versions, errors, files."""

from __future__ import annotations

import base64
import importlib.util
import json
from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch_oracle import ROOT, capture, captured, checked, distances

import tlir

Pair = namedtuple("Pair", ["first", "second"])


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 4, bias=False))
        self.tied = nn.Linear(4, 3)
        self.tied.weight = self.layers[0].weight
        self.register_buffer("scale", torch.tensor(3.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.tied(self.layers(x)) * self.scale


def square_sum(x: torch.Tensor) -> torch.Tensor:
    return (x * x).sum()


def unsupported(x: torch.Tensor) -> Any:
    y = torch.linalg.eigvals(x)
    return torch.linalg.ldl_factor_ex(x), y, x[x > 0]


def test_sum_of_squares_is_three_nodes() -> None:
    artifact = capture.export(square_sum, torch.tensor([1.0, 2, 3, 4]))
    assert [node["op"] for node in artifact["nodes"]] == ["input", "multiply", "reduce"]
    assert artifact["version"] == 1
    assert artifact["samples"][0]["outputs"][0]["words"] == "41f00000"
    assert tlir.load(artifact).run()[0] == 30


def test_parameters_keep_words_names_and_are_written_once() -> None:
    net = Net().eval()
    graph = captured(net, torch.ones(2, 4))
    constants = {node.name: node.attrs["value"] for node in graph.nodes if node.op == "constant" and node.name}
    assert set(constants) == {"layers.0.weight", "layers.0.bias", "layers.2.weight", "tied.bias", "scale"}
    expected = net.layers[0].weight.detach().numpy().view(np.uint32)
    assert np.array_equal(np.asarray(constants["layers.0.weight"].words).reshape(3, 4), expected)


def test_tensors_and_modules_that_a_function_closes_over_are_named_as_it_names_them() -> None:
    net, params = Net().eval(), {"w": torch.ones(3), "b": [torch.arange(3.0)]}

    def predict(x: torch.Tensor) -> torch.Tensor:
        return net(x) * params["w"] + params["b"][0]

    names = {node.name for node in captured(predict, torch.ones(2, 4)).nodes if node.op == "constant" and node.name}
    assert names >= {"params['w']", "params['b'][0]", "net.layers.0.weight", "net.scale"}


def test_trees_and_names_of_arguments_and_results() -> None:
    def program(x: Any, params: Any, *rest: torch.Tensor, scale: torch.Tensor, k: float) -> Any:
        pair = Pair(x * k, params["w"][1])
        return {"pair": pair, "none": None, "list": [rest[0], 3], 5: (scale,)}

    t = torch.ones(2)
    artifact = capture.export(program, t, {"w": [t, t * 2]}, t * 3, scale=t, k=1.5)
    graph = checked(artifact)
    assert graph.body.input_names() == ["x", "params['w'][0]", "params['w'][1]", "rest[0]", "scale"]
    assert artifact["input_tree"] == {
        "args": [0, {"dict": [["w", {"list": [1, 2]}]]}, 3],
        "kwargs": [["scale", 4], ["k", None]],
    }
    pair = {"namedtuple": "Pair", "fields": [["first", 0], ["second", 1]]}
    assert artifact["output_tree"]["dict"] == [
        ["pair", pair], ["none", None], ["list", {"list": [2, 3]}], [5, {"tuple": [4]}],
    ]  # fmt: skip
    assert artifact["producer"]["flags"]["fixed_arguments"] == "k=1.5"
    assert distances(graph) == [0] * 5
    assert tlir.load(artifact).run()["list"][1] == 3


@pytest.mark.parametrize(
    ("fn", "args", "version"),
    [
        (lambda x: x + 1, [torch.ones(2)], 1),
        (lambda x, y: x + y, [torch.ones(2), torch.ones(2)], 2),
        (lambda x: (x, x + 1, x), [torch.ones(2)], 2),
        (lambda: torch.ones(3), [], 2),
        (lambda x: [x], [torch.ones(2)], 3),
        (lambda x: x.sum(), [torch.ones(2).half()], 3),
        (lambda x: torch.tensor([1, 2]), [torch.ones(2)], 1),
    ],
)
def test_the_lowest_version_that_fits(fn: Any, args: list[torch.Tensor], version: int) -> None:
    artifact = capture.export(fn, *args)
    assert artifact["version"] == version
    assert distances(checked(artifact)) == [0] * len(artifact["output_ids"])


def test_every_node_has_the_users_line() -> None:
    def inner(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, 0)

    def outer(x: torch.Tensor) -> torch.Tensor:
        return inner(x) * 2

    graph = captured(outer, torch.ones(3))
    sources = {node.source.function for node in graph.nodes if node.source}
    assert sources == {"inner", "outer"}
    first = inner.__code__.co_firstlineno
    lines = {node.source.line for node in graph.nodes if node.source and node.source.function == "inner"}
    assert lines == {first + 1}
    assert all(node.source.file.endswith("test_torch_programs.py") for node in graph.nodes if node.source)


def test_all_that_is_unsupported_is_listed_at_once() -> None:
    with pytest.raises(capture.UnsupportedError) as caught:
        capture.export(unsupported, torch.eye(3))
    operators = [problem.operator for problem in caught.value.problems]
    assert {"aten.linalg_eig.default", "aten.linalg_ldl_factor_ex.default", "aten.index.Tensor"} <= set(operators)
    (problem,) = [p for p in caught.value.problems if p.operator == "aten.linalg_eig.default"]
    assert problem.arguments == "float32[3,3]"
    assert problem.source["line"] == unsupported.__code__.co_firstlineno + 1
    assert problem.source["function"] == "unsupported"


def test_branches_on_values_are_refused_and_not_fixed() -> None:
    with pytest.raises(capture.UnsupportedError, match="data-dependent"):
        capture.export(lambda x: x if x.sum() > 0 else -x, torch.ones(2))


def test_a_function_that_fails_says_where() -> None:
    with pytest.raises(capture.CaptureError, match=r"test_torch_programs\.py"):
        capture.export(lambda x: x @ torch.ones(7), torch.ones(2, 3))
    with pytest.raises(capture.CaptureError, match="NumPy"):
        capture.export(lambda x: x, np.ones(3))


def test_two_captures_are_the_same_bytes_and_nothing_global_is_left() -> None:
    net, x = Net().eval(), torch.ones(2, 4)
    before = torch.is_grad_enabled(), torch.get_num_threads(), torch.get_default_dtype(), torch.get_rng_state()
    first, second = (capture.dumps(capture.export(net, x, trace=True)) for _ in range(2))
    assert first == second
    after = torch.is_grad_enabled(), torch.get_num_threads(), torch.get_default_dtype(), torch.get_rng_state()
    assert before[:3] == after[:3]
    assert torch.equal(before[3], after[3])


def test_a_trace_holds_the_value_of_each_operator() -> None:
    artifact = capture.export(square_sum, torch.tensor([1.0, 2, 3, 4]), trace=True)
    checked(artifact)
    trace = artifact["samples"][0]["trace"]
    assert [(entry["value"], entry["tensor"]["words"].split()[-1]) for entry in trace] == [
        (1, "41800000"), (2, "41f00000"),
    ]  # fmt: skip


def test_compiled_outputs_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def eager(fn: Any) -> Any:
        return fn

    monkeypatch.setattr(torch, "compile", eager)
    artifact = capture.export(square_sum, torch.ones(2), compile=True)
    assert artifact["producer"]["outputs"] == "compiled"

    def broken(fn: Any) -> Any:
        raise RuntimeError("no compiler")

    monkeypatch.setattr(torch, "compile", broken)
    with pytest.raises(capture.CaptureError, match="no compiler"):
        capture.export(square_sum, torch.ones(2), compile=True)


def test_exporting_and_writing_at_once_gives_the_same_files(tmp_path: Path) -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(600, 500), nn.Linear(500, 3).bfloat16().float())
    turned = net[0].weight.detach().t()

    def fn(x: torch.Tensor, scale: float) -> torch.Tensor:
        return net(x * scale) + x @ turned[:, :3]

    (tmp_path / "two").mkdir()
    args = torch.ones(2, 600), 0.5
    capture.save(capture.export(fn, *args, name="f"), tmp_path / "two" / "f.json")
    assert capture.write(tmp_path / "f.json", fn, *args, name="f") > 5
    for file in ("f.json", "f.safetensors"):
        assert (tmp_path / file).read_bytes() == (tmp_path / "two" / file).read_bytes()
    assert tlir.load(tmp_path / "f.json").compare(tolerance="1e-4").ok


def test_large_constants_go_to_a_file_beside(tmp_path: Path) -> None:
    weights = {
        "real": torch.arange(300_000, dtype=torch.float32),
        "complex": torch.full((70_000,), 1 + 2j, dtype=torch.complex128),
        "small": torch.arange(40.0),
    }
    artifact = capture.export(lambda: (weights["real"], weights["complex"], weights["small"]), name="w")
    capture.save(artifact, tmp_path / "w.json")
    document = json.loads((tmp_path / "w.json").read_text())
    assert document["version"] == 3
    assert [("file" in node["attrs"]["value"]) for node in document["nodes"]] == [True, True, False]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["w.json", "w.safetensors"]
    real, complex_, small = tlir.load(tmp_path / "w.json").run()
    assert np.array_equal(real, weights["real"].numpy())
    assert np.array_equal(complex_, weights["complex"].numpy())
    assert np.array_equal(small, weights["small"].numpy())
    first = (tmp_path / "w.safetensors").read_bytes()
    capture.save(artifact, tmp_path / "w.json")
    assert (tmp_path / "w.safetensors").read_bytes() == first


MODEL = """
import torch
def predict(x, y=2.0): return (x * y).sum()
def arguments(): return (torch.ones(3),)
named = {"x": torch.ones(3)}
def bad(x): return torch.linalg.eigvals(x.outer(x))
"""


@pytest.mark.parametrize(
    ("function", "arguments", "code", "message"),
    [
        ("predict", "arguments", 0, ""),
        ("predict", "named", 0, ""),
        ("bad", "arguments", 4, "aten.linalg_eig"),
        ("absent", "arguments", 2, "has no absent"),
        ("named", "arguments", 2, "not a function"),
        ("predict", None, 2, "missing 1 required"),
    ],
)
def test_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], function: str, arguments: str | None, code: int, message: str
) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    command = [f"{tmp_path}/model.py:{function}", "-o", f"{tmp_path}/out.json", "--name", "given"]
    assert capture.main(command + (["--args", f"{tmp_path}/model.py:{arguments}"] if arguments else [])) == code
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error
    if code == 0:
        graph = tlir.load(tmp_path / "out.json")
        assert graph.name == "given"
        assert tlir.compare(tmp_path / "out.json").ok
    else:
        assert not (tmp_path / "out.json").exists()


@pytest.mark.parametrize(("width", "batch"), [(4, 2), (7, 3), (1, 1)])
def test_the_examples_compare(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], width: int, batch: int
) -> None:
    spec = importlib.util.spec_from_file_location("torch_examples", ROOT / "examples" / "torch_examples.py")
    assert spec is not None
    assert spec.loader is not None
    examples = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(examples)
    monkeypatch.setattr(examples, "load_capture", lambda: capture)
    monkeypatch.setattr("sys.argv", ["torch_examples.py", str(tmp_path), f"--width={width}", f"--batch={batch}"])
    assert examples.main() == 0
    shown = capsys.readouterr().out
    assert "selection_by_value     not captured: aten.index.Tensor" in shown
    assert shown.endswith("23 captured, 1 not captured\n")
    for path in sorted(tmp_path.glob("*.json")):
        assert tlir.load(path).check().ok
        assert tlir.compare(path).ok, path.name
    for exact in ("square_sum", "perceptron_inputs", "float16_sum", "bfloat16_sum", "integer_program"):
        graph = tlir.load(tmp_path / f"{exact}.json").ir
        assert set(distances(graph)) == {0}, exact


def test_large_tensors_are_kept_as_words_and_read_as_text(tmp_path: Path) -> None:
    weight = torch.arange(1 << 19, dtype=torch.float32).reshape(1024, 512)
    artifact = capture.export(lambda x: weight[3] * x, torch.ones(512))
    (value,) = (n["attrs"]["value"] for n in artifact["nodes"] if n["op"] == "constant" and len(n["shape"]) == 2)
    words = weight.numpy().tobytes()
    weight += 1
    plain = {"dtype": "float32", "shape": [1024, 512], "base64": base64.b64encode(words).decode()}
    assert value == plain
    for taken in (dict(value), {**value}, value | {}, value.copy(), json.loads(json.dumps(value))):
        assert type(taken) is dict
        assert taken == plain
    graph = tlir.load(artifact)
    assert graph.compare().ok
    (read,) = (node.attrs["value"] for node in graph.ir.nodes if node.op == "constant" and node.types[0].size > 512)
    assert read.words.tobytes() == words
    assert np.shares_memory(read.words, value.array)
    capture.save(artifact, tmp_path / "large.json")
    assert (tmp_path / "large.json").stat().st_size < 40_000
    assert tlir.load(tmp_path / "large.json").compare().ok
