"""Saving artifacts, the command line of the JAX capture, and the examples."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax_oracle import ROOT, capture, checked, load_module
from safetensors.numpy import load_file

import tlir
from tlir.backends.reference import evaluate
from tlir.compare import compare
from tlir.schema import dumps, from_json, read

SCRIPT = ROOT / "capture" / "jax_capture.py"
X = np.array([1, 2, 3, 4], np.float32)


# ---- save -----------------------------------------------------------------------------------------------------------


def test_a_saved_artifact_is_its_canonical_text(tmp_path: Path) -> None:
    artifact = capture.export(lambda x: jnp.sum(x * x), X, name="größe")
    path = tmp_path / "sum.json"
    capture.save(artifact, path)
    text = path.read_text(encoding="utf-8")
    assert text == dumps(read(path))
    assert '"name":"größe",\n' in text
    assert text.endswith('"version":1\n}\n')
    assert len(text.splitlines()) == 16
    assert os.listdir(tmp_path) == ["sum.json"]


def test_an_empty_graph_has_empty_lists(tmp_path: Path) -> None:
    path = tmp_path / "nothing.json"
    capture.save(capture.export(lambda: (), name=""), path)
    assert '"nodes":[],\n' in path.read_text()
    assert dumps(read(path)) == path.read_text()


def test_large_constants_go_to_a_file_beside_it(tmp_path: Path) -> None:
    w = np.arange(300_000, dtype=np.float32)
    c = np.arange(90_000).astype(np.complex128) * (1 + 2j)
    small = np.arange(1000, dtype=np.float32)
    bits = np.arange(2_000_000) % 3 == 0

    def f(x: Any) -> Any:
        return x + w, small, bits, c

    with jax.enable_x64(True):
        artifact = capture.export(f, w)
        before = capture.dumps(artifact)
        for name in ("big", "again"):
            (tmp_path / name).mkdir()
            capture.save(artifact, tmp_path / name / "model.json")
    assert capture.dumps(artifact) == before
    folder = tmp_path / "big"
    assert sorted(os.listdir(folder)) == ["model.json", "model.safetensors"]
    for name in os.listdir(folder):
        assert (folder / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
    document = json.loads((folder / "model.json").read_text())
    stored = (folder / "model.safetensors").read_bytes()
    assert document["version"] == 3
    assert document["external"] == {
        "model.safetensors": {"sha256": hashlib.sha256(stored).hexdigest(), "size": len(stored)}
    }
    files = {n["name"]: n["attrs"]["value"].get("tensor") for n in document["nodes"] if n["op"] == "constant"}
    assert files["small"] is None
    loaded = load_file(folder / "model.safetensors")
    np.testing.assert_array_equal(loaded[files["w"]], w)
    np.testing.assert_array_equal(loaded[files["bits"]], bits)
    np.testing.assert_array_equal(loaded[files["c"]].view(np.complex128)[..., 0], c)
    graph = read(folder / "model.json")
    for got, want in zip(evaluate(graph.body, graph.samples[0].inputs), graph.samples[0].outputs, strict=True):
        assert got.same_words(want)


def test_a_failed_save_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    path.write_text("before")
    artifact = capture.export(lambda x: x, X) | {"name": "\ud800"}
    with pytest.raises(UnicodeEncodeError):
        capture.save(artifact, path)
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == ["kept.json"]
    with pytest.raises(OSError, match="missing"):
        capture.save(capture.export(lambda x: x, X), tmp_path / "missing" / "a.json")


# ---- command line ---------------------------------------------------------------------------------------------------

MODEL = """
import jax
import jax.numpy as jnp
import numpy as np
import helper

example_args = (np.array([1.0, 2.0]), {"w": np.array([0.5, 0.25])})

def both():
    return {"args": example_args[:1], "kwargs": {"params": example_args[1]}}

def single():
    return np.ones(2, np.float32)

def predict(x, params):
    return helper.scale(x) * params["w"]

class Net:
    def __call__(self, x):
        return x + 1
    forward = staticmethod(lambda x: x * 2)

net = Net()
number = 3

def sorts(x):
    return jax.pure_callback(np.sort, x, x)

def fails(x):
    raise ValueError("nothing works")

def branches(x):
    if x[0] > 0:
        return x
    return -x

def bad_args():
    return 1 / 0
"""


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "helper.py").write_text("def scale(x):\n    return x * 2\n")
    (tmp_path / "broken.py").write_text("import jax\nundefined_name\n")
    (tmp_path / "unparsable.py").write_text("def f(:\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    capture._load_module.cache_clear()
    yield tmp_path
    # by name: modules of JAX that were first imported meanwhile must stay, as they cannot be imported twice
    for name in ("model", "helper", "broken", "unparsable"):
        sys.modules.pop(name, None)


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of the command."""
    try:
        code = capture.main(list(arguments))
    except SystemExit as end:
        code = int(end.code or 0)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_script_as_a_process(model: Path) -> None:
    command = [sys.executable, str(SCRIPT), "model.py:predict", "--args", "model.py:example_args", "-o", "out.json"]
    done = subprocess.run([*command, "--x64", "--name", "p", "--trace"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "out.json: 6 nodes, 2 inputs, 1 output\n"
    graph = read(model / "out.json")
    assert graph.name == "p"
    assert graph.body.input_names() == ["x", "params['w']"]
    assert {node.source.file for node in graph.nodes if node.source} == {"helper.py", "model.py"}
    assert graph.samples[0].outputs[0].to_numpy().tolist() == [1.0, 1.0]
    assert graph.samples[0].outputs[0].dtype.name == "float64"
    assert graph.samples[0].trace is not None
    first = (model / "out.json").read_bytes()
    again = subprocess.run([*command, "--x64", "--name", "p", "--trace"], capture_output=True, check=False)
    assert again.returncode == 0
    assert (model / "out.json").read_bytes() == first
    wrong = subprocess.run([sys.executable, str(SCRIPT), "model.py:sorts"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2
    assert "-o" in wrong.stderr


@pytest.mark.parametrize(
    ("function", "args", "inputs"),
    [
        ("model.py:predict", "model.py:both", ["x", "params['w']"]),
        ("model:predict", "model:example_args", ["x", "params['w']"]),
        ("model.py:net", "model.py:single", ["x"]),
        ("model.py:Net.forward", "model.py:single", ["x"]),
    ],
)
def test_functions_and_arguments(
    model: Path, capsys: pytest.CaptureFixture[str], function: str, args: str, inputs: list[str]
) -> None:
    code, _, error = call(capsys, function, "--args", args, "-o", "out.json", "--jit")
    assert (code, error) == (0, "")
    graph = read("out.json")
    assert graph.body.input_names() == inputs
    assert graph.producer is not None
    assert graph.producer.outputs == "compiled"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["missing.py:f", "-o", "o.json"], 2, "there is no file missing.py"),
        (["missing:f", "-o", "o.json"], 2, "there is no module or file missing"),
        (["model.py", "-o", "o.json"], 2, "write it as file.py:name"),
        (["model.py:nothing", "-o", "o.json"], 2, "model.py has no 'nothing'; it has Net, bad_args, both"),
        (["model.py:number", "-o", "o.json"], 2, "model.py:number is a int, not a function"),
        (["model.py:predict", "--args", "model.py:none", "-o", "o.json"], 2, "model.py has no 'none'"),
        (["model.py:net", "--args", "model.py:single", "-o", "no/o.json"], 2, "cannot write no/o.json"),
        (["model.py:predict", "-o", "o.json"], 1, "tracing model.py:predict failed: TypeError: predict() missing 2"),
        (["broken.py:f", "-o", "o.json"], 1, "broken.py failed: NameError: name 'undefined_name' is not defined"),
        (["unparsable.py:f", "-o", "o.json"], 1, "unparsable.py failed: SyntaxError"),
        (["model.py:fails", "--args", "model.py:single", "-o", "o.json"], 1, "ValueError: nothing works"),
        (["model.py:branches", "--args", "model.py:single", "-o", "o.json"], 1, "TracerBoolConversionError"),
        (["model.py:net", "--args", "model.py:bad_args", "-o", "o.json"], 1, "ZeroDivisionError"),
        (["model.py:sorts", "--args", "model.py:single", "-o", "o.json"], 4, "pure_callback"),
    ],
)
def test_mistakes_are_one_message(
    model: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, message: str
) -> None:
    found, out, error = call(capsys, *arguments)
    assert (found, out) == (code, "")
    assert message in error
    assert "Traceback" not in error
    assert len(error.splitlines()) <= 4
    assert not (model / "o.json").exists()


def test_an_exception_names_the_users_line(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = MODEL.splitlines().index('    raise ValueError("nothing works")') + 1
    _, _, error = call(capsys, "model.py:fails", "--args", "model.py:single", "-o", "o.json")
    assert f"at model.py:{line} in fails" in error
    line = MODEL.splitlines().index("    if x[0] > 0:") + 1
    _, _, error = call(capsys, "model.py:branches", "--args", "model.py:single", "-o", "o.json")
    assert f"at model.py:{line} in branches" in error


# ---- the examples ---------------------------------------------------------------------------------------------------

EXACT = {
    "square_sum",
    "square_sum_gradient",
    "perceptron_inputs",
    "permutation",
    "concatenation",
    "broadcast",
    "reshape",
    "mixed_precision",
    "float16_sum",
    "bfloat16_sum",
    "bfloat16_reduce",
    "bfloat16_contraction",
    "integer_program",
    "boolean_program",
}
"""Examples whose results do not depend on the order of a float32 sum, nor on an elementary function."""


@pytest.mark.parametrize(("width", "batch"), [(4, 2), (7, 3), (1, 1), (33, 5)])
def test_the_examples(tmp_path: Path, capsys: pytest.CaptureFixture[str], width: int, batch: int) -> None:
    examples = load_module(ROOT / "examples" / "jax_examples.py")
    assert examples.main([str(tmp_path / "out"), "--width", str(width), "--batch", str(batch)]) == 0
    table = capsys.readouterr().out
    assert table.splitlines()[-1] == f"24 captured in {tmp_path / 'out'}, 1 not captured"
    assert "host_callback           not captured: pure_callback at " in table
    paths = sorted((tmp_path / "out").glob("*.json"))
    assert len(paths) == 24
    assert {path.stem for path in paths} > EXACT
    for path in paths:
        checked(json.loads(path.read_text(encoding="utf-8")))
        report = compare(read(path), words=path.stem in EXACT)
        assert report.ok, path.stem
    if width == 4:
        graph = read(tmp_path / "out" / "square_sum.json")
        assert len(graph.nodes) == 3
        assert graph.samples[0].outputs[0].to_numpy() == 30


def test_the_examples_refuse_what_has_no_elements(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    examples = load_module(ROOT / "examples" / "jax_examples.py")
    with pytest.raises(SystemExit) as end:
        examples.main([str(tmp_path), "--width", "0"])
    assert end.value.code == 2
    assert "at least 1" in capsys.readouterr().err


def test_large_tensors_are_kept_as_arrays_and_read_as_text() -> None:
    weights = np.arange(1 << 19, dtype=np.float32)
    described = capture.tensor(weights)
    assert np.shares_memory(described.array, weights)
    text = base64.b64encode(weights.tobytes()).decode()
    plain = {"dtype": "float32", "shape": [1 << 19], "base64": text}
    assert described == plain
    again = json.loads(json.dumps(described))
    for taken in (dict(described), {**described}, described.copy(), copy.deepcopy(described), again):
        assert type(taken) is dict
        assert taken == plain
    assert described.get("base64") == text
    assert described.get("words") is None
    assert sorted(described.values(), key=str) == sorted(plain.values(), key=str)
    assert described != capture.tensor(weights + 1)
    assert described | {"more": 1} == {**plain, "more": 1}
    assert {"more": 1} | described == {**plain, "more": 1}
    small = np.arange(1 << 12, dtype=np.float32)
    held = capture.tensor(small)
    small[0] = 5
    assert held["base64"] == base64.b64encode(np.arange(1 << 12, dtype=np.float32).tobytes()).decode()


def test_large_inputs_and_outputs_go_to_the_external_file_too(tmp_path: Path) -> None:
    weights = np.arange(1 << 19, dtype=np.float32).reshape(1024, 512)
    artifact = capture.export(lambda w: w.T + w[0, 1], weights, trace=True)
    capture.save(artifact, tmp_path / "moved.json")
    assert (tmp_path / "moved.json").stat().st_size < 10_000
    sizes = {key: value.nbytes for key, value in load_file(tmp_path / "moved.safetensors").items()}
    assert set(sizes) >= {"sample0.input0", "sample0.output0"}
    assert set(sizes.values()) == {weights.nbytes}
    graph = tlir.load(tmp_path / "moved.json")
    assert graph.compare(words=True).ok
    assert (graph.ir.samples[0].inputs[0].to_numpy() == weights).all()
    assert from_json(artifact).samples[0].outputs[0].same_words(graph.ir.samples[0].outputs[0])
