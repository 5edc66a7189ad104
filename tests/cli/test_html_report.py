"""``tlir compare --html``: one page that needs nothing from outside; histograms and the suspect on the terminal."""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from tlir.backends.reference import evaluate
from tlir.compare import compare
from tlir.compare.page import bars
from tlir.errors import Source
from tlir.ir.graph import Body, Graph, Node, Producer, Ref, Sample
from tlir.ir.tensor import Tensor
from tlir.ir.types import NAMED, TensorType
from tlir.schema import write

TYPE = TensorType((64,), NAMED["float32"])
HOSTILE = "<script>alert('1')</script>"


def graph(recorded: str = "multiply", trace: bool = True) -> Graph:
    """tanh(x * x), with the values of tanh(x recorded x)."""

    def body(op: str) -> Body:
        nodes = (
            Node(0, "input", (), {}, (TYPE,), name=HOSTILE),
            Node(1, op, (Ref(0), Ref(0)), {}, (TYPE,), source=Source("model.py", 7, "f")),
            Node(2, "tanh", (Ref(1),), {}, (TYPE,)),
        )
        return Body(nodes, (0,), (Ref(2),))

    inputs = (Tensor.from_numpy(np.linspace(0.1, 1, 64).astype(np.float32)),)
    values: dict[Ref, Tensor] = {}
    evaluate(body(recorded), inputs, observe=lambda node, made: values.update({Ref(node.id): made[0]}))
    kept = {ref: value for ref, value in values.items() if ref.node} if trace else None
    sample = Sample(inputs, (values[Ref(2)],), kept)
    return Graph(body("multiply"), name="model", samples=(sample,), producer=Producer("jax", "0.10.2"))


class Page(HTMLParser):
    """Collects tags, the text of tables, and checks that tags nest."""

    VOID = ("meta", "br", "input", "path", "rect")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.content: dict[str, str] = {}
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.content[self.open[-1]] = self.content.get(self.open[-1], "") + data


@pytest.fixture
def made(tlir: Any, tmp_path: Path) -> Any:
    def made(*graphs: Graph, options: tuple[str, ...] = ("--tolerance", "auto")) -> tuple[Any, str]:
        paths = []
        for k, each in enumerate(graphs):
            write(each, tmp_path / f"model{k}.json")
            paths.append(str(tmp_path / f"model{k}.json"))
        result = tlir("compare", *paths, *options, "--html", str(tmp_path / "report.html"))
        return result, (tmp_path / "report.html").read_text(encoding="utf-8")

    return made


def test_the_suspect_comes_first(made: Any) -> None:
    result, text = made(graph("add"))
    assert result.exit_code == 1
    assert text.index("Suspect: node") < text.index("Outputs") < text.index("Nodes")
    assert "model.py:7 in f" in text
    groups = dict(re.findall(r'<g class="n ([a-z -]+)" id="a0n(\d+)"', text))
    coloured = {node: kind for kind, node in groups.items()}
    assert coloured["1"] == "e-bug suspect-node"
    # tanh is right for what it was given
    assert coloured["2"].startswith("e-same") or coloured["2"].startswith("e-low")
    assert coloured["0"] == "e-none"


def test_without_a_trace_outputs_are_coloured(made: Any) -> None:
    _, text = made(graph("add", trace=False))
    assert "Suspect" not in text
    coloured = {node: kind for kind, node in re.findall(r'<g class="n ([a-z -]+)" id="a0n(\d+)"', text)}
    assert coloured["2"] == "e-bug out"
    assert coloured["1"] == "e-none"


def test_a_page_that_needs_nothing_and_runs_nothing_else(made: Any) -> None:
    _, text = made(graph("add"))
    page = Page(text)
    assert not any(name in attributes for _, attributes in page.tags for name in ("src", "style", "onclick", "onload"))
    assert "http://" not in text
    assert "https://" not in text
    assert HOSTILE not in text
    assert "&lt;script&gt;" in text
    policy = next(a["content"] for tag, a in page.tags if tag == "meta" and "http-equiv" in a)
    assert policy is not None
    for name in ("style", "script"):
        digest = base64.b64encode(hashlib.sha256(page.content[name].encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy


def test_several_artifacts_one_of_them_broken(made: Any, tlir: Any, tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text("{")
    write(graph(), tmp_path / "good.json")
    write(graph("add"), tmp_path / "bad.json")
    result = tlir("compare", str(tmp_path), "--tolerance", "auto", "--html", str(tmp_path / "r.html"))
    assert result.exit_code == 3
    text = (tmp_path / "r.html").read_text()
    Page(text)
    assert "1 of 3 passed" in text
    assert "TL0" in text
    ids = re.findall(r' id="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    # those that fail stand first
    order = re.findall(r"<h2[^>]*>([^<]*)", text)
    assert order[-1].strip().endswith("good.json")


def test_a_page_that_cannot_be_written(tlir: Any, tmp_path: Path) -> None:
    write(graph(), tmp_path / "model.json")
    result = tlir("compare", str(tmp_path / "model.json"), "--html", str(tmp_path / "none" / "r.html"))
    assert result.exit_code == 2
    assert "TL0109" in result.stderr


@pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no browser")
@pytest.mark.parametrize("width", [1280, 480])
def test_a_browser_shows_it_without_widening_the_page(made: Any, tmp_path: Path, width: int) -> None:
    made(graph("add"))
    # what the page measures is written by the page itself, which its own policy would forbid
    text = (tmp_path / "report.html").read_text()
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    measured = "document.documentElement.scrollWidth+' '+innerWidth+' '+document.querySelectorAll('th button').length"
    probe = f"<script>document.title={measured}</script></body>"
    (tmp_path / "probe.html").write_text(text.replace("</body>", probe))
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--window-size={width},900", "--dump-dom"]
    done = subprocess.run(
        [*command, (tmp_path / "probe.html").as_uri()], capture_output=True, text=True, timeout=120, check=False
    )
    match = re.search(r"<title>(\d+) (\d+) (\d+)</title>", done.stdout)
    assert match is not None, done.stderr[-500:]
    assert int(match[1]) <= int(match[2]) < width + 100
    assert int(match[3]) > 10


def test_the_terminal_has_a_histogram_and_the_suspect(tlir: Any, tmp_path: Path) -> None:
    write(graph("add"), tmp_path / "model.json")
    shown = tlir("compare", str(tmp_path / "model.json"), "--tolerance", "auto").stdout
    assert "█" in shown
    assert "suspect: node 1 multiply" in shown
    assert "at model.py:7 in f" in shown
    # nothing of it where everything passes
    write(graph(), tmp_path / "good.json")
    shown = tlir("compare", str(tmp_path / "good.json"), "--tolerance", "auto").stdout
    assert "█" not in shown
    assert "suspect" not in shown


def test_a_histogram_counts_every_element() -> None:
    """Against distances counted one by one."""
    body = graph().body
    good = graph().samples[0].outputs[0]
    words = good.words.copy()
    steps = np.array([0, 1, 2, 3, 4, 7, 8, 100, 1000, 2**20] + [0] * 54, np.uint32)
    other = Tensor(good.type, words + steps)
    sample = replace(graph().samples[0], outputs=(other,))
    found = compare(Graph(body, samples=(sample,)), tolerance="1").outputs[0]
    counted: dict[int, int] = {}
    for step in steps.tolist():
        counted[step.bit_length()] = counted.get(step.bit_length(), 0) + 1
    assert dict(found.histogram) == counted
    assert sum(count for _, count in bars(found.histogram)) == 64
    assert bars(found.histogram, 100)[:4] == [("0", 55), ("1", 1), ("2–3", 2), ("4–7", 2)]


def test_a_nan_on_one_side_is_in_no_bar() -> None:
    good = graph().samples[0].outputs[0]
    values = good.to_numpy().copy()
    values[3] = np.nan
    sample = replace(graph().samples[0], outputs=(Tensor.from_numpy(values),))
    found = compare(Graph(graph().body, samples=(sample,)), tolerance="1").outputs[0]
    assert found.mismatched == 1
    assert found.histogram == ((0, 63),)


def test_verdicts_in_junit(tlir: Any, tmp_path: Path) -> None:
    write(graph("add"), tmp_path / "bad.json")
    write(graph(), tmp_path / "good.json")
    text = tlir("compare", str(tmp_path), "--tolerance", "auto", "--format", "junit").stdout
    suites = {suite.get("name"): suite for suite in ElementTree.fromstring(text)}
    bad, good = (suites[str(tmp_path / name)] for name in ("bad.json", "good.json"))
    failure = bad.find("testcase/failure")
    assert failure is not None
    assert "verdict bug" in failure.get("message", "")
    passed = good.find("testcase/system-out")
    assert passed is not None
    assert (passed.text or "").startswith("verdict identical")


def test_special_values_on_one_side_are_on_the_page_and_the_terminal(tlir: Any, tmp_path: Path) -> None:
    """The frontend clamps a square that overflows."""
    half = TensorType((2,), NAMED["float16"])
    nodes = (
        Node(0, "input", (), {}, (half,), name="x"),
        Node(1, "multiply", (Ref(0), Ref(0)), {}, (half,), source=Source("model.py", 7, "f")),
        Node(2, "negate", (Ref(1),), {}, (half,)),
    )
    inputs = (Tensor.from_numpy(np.array([300, 2], np.float16)),)
    clamped = [Tensor.from_numpy(sign * np.array([65504, 4], np.float16)) for sign in (np.float16(1), np.float16(-1))]
    sample = Sample(inputs, (clamped[1],), {Ref(1): clamped[0], Ref(2): clamped[1]})
    body = Body(nodes, (0,), (Ref(2),))
    write(Graph(body, name="model", samples=(sample,), producer=Producer("torch", "2.13.0")), tmp_path / "model.json")
    page = tmp_path / "report.html"
    done = tlir("compare", str(tmp_path / "model.json"), "--tolerance", "auto", "--html", str(page))
    assert done.exit_code == 1
    for shown in (done.stdout, page.read_text(encoding="utf-8")):
        for text in ("suspect", "overflow to infinity", "1 multiply", "65500.0", "inf"):
            assert text in shown.replace("Suspect", "suspect")
    Page(page.read_text(encoding="utf-8"))
