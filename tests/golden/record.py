"""Record the golden artifacts again: the examples of both frontends at a small size, and the programs of `facts.py` and
`reports.py`.

Run as ``make golden-update``. Folders are written anew, so an artifact whose program is gone goes too. `git diff` then
shows what a new version of a frontend, or of a capture script, records differently.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

GOLDEN = Path(__file__).resolve().parent
ROOT = GOLDEN.parents[1]
FRONTENDS = ("jax", "torch")


def module(path: Path) -> ModuleType:
    """The module in a file, by its path."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(path)
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = loaded
    spec.loader.exec_module(loaded)
    return loaded


def record(frontend: str) -> int:
    """Write ``tests/golden/<frontend>/``; the number of artifacts in it."""
    folder = GOLDEN / frontend
    shutil.rmtree(folder, ignore_errors=True)
    script = ROOT / "examples" / f"{frontend}_examples.py"
    subprocess.run([sys.executable, script, folder, "--width", "4", "--batch", "2"], check=True, cwd=ROOT)
    if frontend == "jax":  # the session in the README
        model = ["examples/model.py:predict", "--args", "examples/model.py:arguments"]
        command = [sys.executable, "capture/jax_capture.py", *model, "-o", str(folder / "predict.json")]
        subprocess.run(command, check=True, cwd=ROOT)
    capture = module(ROOT / "capture" / f"{frontend}_capture.py")
    facts = module(GOLDEN / "facts.py")
    for name, function, arguments in facts.programs(frontend):
        capture.save(capture.export(function, *arguments, name=name), folder / f"{name}.json")
    record_reports(frontend, capture, folder)
    return len(list(folder.glob("*.json")))


def record_reports(frontend: str, capture: ModuleType, folder: Path) -> None:
    """Write the programs of `reports.py`, but those that the frontend gets wrong."""
    reports = module(GOLDEN / "reports.py")
    with reports.wide(frontend):
        for report in reports.programs(frontend):
            if report.name not in reports.AT_FAULT[frontend]:
                artifact = capture.export(report.function, *report.arguments, name=report.name)
                capture.save(artifact, folder / f"{report.name}.json")


def plant_faults() -> None:
    """Write ``examples/artifacts/``: three of the recorded artifacts, each with one fault in it."""
    folder = ROOT / "examples" / "artifacts"
    text = (GOLDEN / "jax" / "square_sum.json").read_text(encoding="utf-8")
    product = '{"dtype":"float32","id":1,'
    _write(folder / "edited_dtype.json", text, product, product.replace("float32", "float64"))
    text = (GOLDEN / "jax" / "softmax.json").read_text(encoding="utf-8")
    outputs = text.index('"outputs":[{"dtype"')
    word = text[text.index('"words":"', outputs) + len('"words":"') :][:8]
    _write(folder / "wrong_output.json", text, f'"words":"{word} ', f'"words":"{int(word, 16) ^ 1 << 18:08x} ')
    _with_a_sum_in_bfloat16(GOLDEN / "jax" / "softmax.json", folder / "low_precision_sum.json")


def _with_a_sum_in_bfloat16(path: Path, target: Path) -> None:
    """The artifact with a trace, as recorded by a frontend that keeps the sum of a softmax in bfloat16."""
    from dataclasses import replace

    from tlir.backends.reference import evaluate
    from tlir.ir.graph import Node, Ref
    from tlir.ir.ops import Accumulate
    from tlir.ir.tensor import Tensor
    from tlir.ir.types import NAMED
    from tlir.schema import read, write

    graph = read(path)

    def narrow(node: Node) -> Node:
        if node.op != "reduce" or node.attrs["reducer"] != "add":
            return node
        return replace(node, attrs={**node.attrs, "accumulate": Accumulate(NAMED["bfloat16"])})

    trace: dict[Ref, Tensor] = {}

    def keep(node: Node, results: tuple[Tensor, ...]) -> None:
        if node.op not in ("input", "constant"):
            trace[Ref(node.id)] = results[0]

    inputs = graph.samples[0].inputs
    body = replace(graph.body, nodes=tuple(narrow(node) for node in graph.nodes))
    outputs = evaluate(body, inputs, observe=keep)
    sample = replace(graph.samples[0], outputs=tuple(outputs), trace=trace)
    write(replace(graph, samples=(sample,)), target)


def _write(path: Path, text: str, old: str, new: str) -> None:
    if text.count(old) != 1:
        raise ValueError(f"{old} stands {text.count(old)} times in what {path.name} is made of")
    path.parent.mkdir(exist_ok=True)
    path.write_text(text.replace(old, new), encoding="utf-8")


if __name__ == "__main__":
    for name in FRONTENDS:
        print(f"{record(name)} artifacts in tests/golden/{name}")
    plant_faults()
