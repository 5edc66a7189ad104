"""Rendering: what is shown, and that no text of an artifact acts on a terminal, a browser or Graphviz."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from passes_graphs import HOSTILE, Builder, chain, hostile, layers, perceptron, tensor_type, words

from tlir.ir.graph import Body, Graph, Node, Ref
from tlir.ir.ops import Accumulate
from tlir.ir.tensor import Tensor
from tlir.ir.tree import decode
from tlir.ir.types import parse_dtype
from tlir.passes.render.dot import dot_text
from tlir.passes.render.escape import dot, printable, quoted, shorten, xml
from tlir.passes.render.html import html_text
from tlir.passes.render.layout import layout
from tlir.passes.render.svg import draw
from tlir.passes.render.table import rows
from tlir.passes.render.text import graph_text
from tlir.passes.render.values import attribute_text, tensor_text

TEXTS = st.text(st.characters(categories=None), max_size=12)


def test_the_text_of_a_graph_is_one_line_per_value() -> None:
    b = Builder()
    x = b.input("x", "float32", 4)
    w = b.constant(np.array([1.0, -0.1, np.nan, 1e-45], np.float32), "w")
    product = b.op("multiply", x, w, line=12)
    total = b.op("reduce", product, dimensions=(0,), reducer="add", line=12, accumulate=Accumulate(fma=False))
    assert graph_text(b.graph(total, product, name="loss")) == (
        'graph "loss" {\n'
        '  %0: float32[4] = input "x"\n'
        '  %1: float32[4] = constant [1.0, -0.1, nan, 1e-45] "w"\n'
        "  %2: float32[4] = multiply(%0, %1)   // model.py:12 f\n"
        "  %3: float32[] = reduce(%2) {accumulate = sequential, dimensions = [0], reducer = add}   // model.py:12 f\n"
        "  return %3, %2\n"
        "}\n"
    )


def test_trees_formats_producer_and_samples_are_shown() -> None:
    from dataclasses import replace

    from tlir.floatlib.format import Format

    graph = perceptron()
    trees = {
        "input_tree": decode({"args": [{"dict": [["a\n", 0]]}], "kwargs": [["flag", None]]}, 1),
        "output_tree": decode({"tuple": [{"namedtuple": "Out", "fields": [["loss", 0]]}, {"list": [1]}]}, 2),
        "formats": {"float24": Format(7, 16)},
        "tolerance": "1e-3",
    }
    text = graph_text(replace(graph, **trees))
    assert text.startswith("// captured from jax 0.10.2 on cpu, outputs op-by-op, capture 1, x64 = false\n")
    assert "format float24 {exponent_bits = 7, fraction_bits = 16, bias = 63, infinities = true" in text
    assert "// 1 sample, tolerance 1e-3\n" in text
    assert '  // called with {"a\\n": %0}, flag = None\n' in text
    assert "  return (Out(loss = %12), [%7])\n" in text


def test_regions_are_indented() -> None:
    scalar = tensor_type("int32")
    inner = Body(
        (Node(0, "input", (), {}, (scalar,), "i"), Node(1, "negate", (Ref(0),), {}, (scalar,))), (0,), (Ref(1),)
    )
    loop = Node(1, "while", (Ref(0),), {}, (scalar, scalar), regions=(inner, inner))
    graph = Graph(Body((Node(0, "input", (), {}, (scalar,)), loop), (0,), (Ref(1, 1),)), "f")
    region = '    %0: int32[] = input "i"\n    %1: int32[] = negate(%0)\n    return %1\n'
    assert graph_text(graph) == (
        'graph "f" {\n  %0: int32[] = input\n  %1: (int32[], int32[]) = while(%0) {\n'
        + region
        + "  }, {\n"
        + region
        + "  }\n  return %1#1\n}\n"
    )
    assert [row.key for row in rows(graph)] == ["0", "1", "1.0.0", "1.0.1", "1.1.0", "1.1.1"]


@pytest.mark.parametrize(
    ("tensor", "text"),
    [
        (words("bool", (2,), [1, 0]), "[true, false]"),
        (words("int4", (3,), [0, 7, 15]), "[0, 7, -1]"),
        (words("int64", (), [2**63]), "-9223372036854775808"),
        (words("uint64", (), [2**63]), "9223372036854775808"),
        (words("float16", (1, 2), [0x8000, 0x7C01]), "[[-0.0, nan(0x7c01)]]"),
        (words("complex64", (1,), [0x3F800000, 0x80000000]), "[(1.0, -0.0)]"),
        (words("float8_e4m3fn", (2, 0), []), "[[], []]"),
        (words("float32", (9,), [0x3DCCCCCD] * 9), "splat 0.1"),
        (words("uint8", (20,), list(range(20))), "[0, 1, 2, … 20 elements]"),
        (Tensor(tensor_type("float128"), np.array([0, 0x3FFF800000000000], np.uint64)), "1.5"),
    ],
)
def test_constants_are_exact(tensor: Tensor, text: str) -> None:
    assert tensor_text(tensor) == text


def test_accumulation_says_its_dtype_order_and_fma() -> None:
    assert attribute_text(Accumulate(parse_dtype("float64"), "blocked", 32, True)) == "float64 blocked(32) fma"


@pytest.mark.parametrize("width", [40, 60])
def test_lines_break_between_parts_at_the_width(width: int) -> None:
    lines = graph_text(perceptron(), width).splitlines()
    # only a part that cannot be broken may be longer
    assert all(len(line) <= width or len(line.split(" = ", 1)[-1].strip()) > width - 12 for line in lines)
    joined = re.sub(r"\s+(//\s\s+)?", " ", " ".join(lines))
    assert joined == re.sub(r"\s+", " ", graph_text(perceptron()))[:-1]


@given(TEXTS)
def test_escaped_text_has_nothing_that_acts(text: str) -> None:
    assert printable(text).isprintable()
    assert quoted(text).isprintable()
    assert "\n" not in quoted(text)
    assert not re.search(r"[<>\"']", xml(text))
    inner = dot(text)[1:-1]
    assert re.fullmatch(r'(?:[^"\\]|\\\\|\\")*', inner)
    printable(text).encode()


@given(st.text(max_size=50), st.integers(2, 50), st.booleans())
def test_shortened_text_fits(text: str, limit: int, tail: bool) -> None:
    short = shorten(text, limit, tail)
    assert len(short) <= limit
    assert short == text or "…" in short


class _Collector(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_hostile_texts_stay_text() -> None:
    graph = hostile()
    text = graph_text(graph) + dot_text(graph) + html_text(graph)[0] + draw(graph).svg
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\u2028" not in text
    text.encode()

    root = ElementTree.fromstring(draw(graph).svg)
    drawn = {"svg", "style", "defs", "marker", "path", "g", "title", "rect", "text", "tspan"}
    assert {element.tag.split("}")[1] for element in root.iter()} == drawn
    page = _Collector()
    page.feed(html_text(graph)[0])
    assert page.tags.count("script") == 1
    assert not {name for name in page.attributes if name.startswith("on")}
    assert printable(HOSTILE) in "".join(page.text)


def test_a_label_of_dot_has_no_escape_but_line_breaks() -> None:
    for line in dot_text(hostile()).splitlines():
        for label in re.findall(r'"((?:[^"\\]|\\.)*)"', line):
            assert set(re.findall(r"\\(.)", label)) <= {"\\", '"', "n"}
        assert line.count('"') % 2 == line.count('\\"') % 2


def test_dot_has_every_node_and_edge() -> None:
    graph = perceptron()
    text = dot_text(graph)
    edges = set(re.findall(r"^  n(\d+) -> n(\d+)", text, re.MULTILINE))
    assert edges == {(str(ref.node), str(node.id)) for node in graph.nodes for ref in node.inputs}
    assert 'n12 [label="%12 divide\\nloss\\nfloat32[]", tooltip="model.py:15 f"];' in text
    assert "n12 -> out0" in text


def test_the_page_has_every_node_and_loads_nothing() -> None:
    graph = layers(3)
    page, drawing = html_text(graph)
    assert drawing.drawn == len(graph.nodes)
    assert len(re.findall(r'<tr id="r\d+">', page)) == len(graph.nodes)
    assert "http" not in page.replace("http-equiv", "")
    assert not re.search(r"\bsrc=|\bhref=|@import|url\((?!#)", page)


def test_the_content_policy_admits_exactly_the_page_s_own_script_and_style() -> None:
    import base64
    import hashlib

    page = html_text(perceptron())[0]
    for tag, directive in (("script", "script-src"), ("style", "style-src")):
        (text,) = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}'" in page


def test_a_large_graph_draws_its_first_nodes_and_says_so() -> None:
    graph = chain(3000)
    page, drawing = html_text(graph, 100)
    assert drawing.caption == "the first 100 of 3,000 nodes"
    assert "the first 100 of 3,000 nodes drawn" in page
    assert len(re.findall(r'<g class="n ', page)) == 100
    assert len(re.findall(r'<tr id="r\d+">', page)) == 3000


@st.composite
def dags(draw_: st.DrawFn) -> list[list[int]]:
    size = draw_(st.integers(1, 30))
    return [draw_(st.lists(st.integers(0, node - 1), max_size=3)) if node else [] for node in range(size)]


@given(dags(), st.data())
def test_boxes_never_overlap_and_lines_lead_down(operands: list[list[int]], data: st.DataObject) -> None:
    sizes = [(data.draw(st.sampled_from([40.0, 90.0, 200.0])), 30.0) for _ in operands]
    placed = layout(operands, sizes, {0})
    boxes = [(*placed.positions[node], *sizes[node]) for node in range(len(operands))]
    for k, (x, y, w, h) in enumerate(boxes):
        assert x >= -1e-6
        assert x + w <= placed.width + 1e-6
        assert y + h <= placed.height + 1e-6
        for x2, y2, w2, h2 in boxes[:k]:
            assert x + w <= x2 + 1e-6 or x2 + w2 <= x + 1e-6 or y + h <= y2 or y2 + h2 <= y
    for node, values in enumerate(operands):
        for value in set(values):
            assert boxes[value][1] + boxes[value][3] < boxes[node][1]
            assert any(edge.source == value and edge.target == node for edge in placed.edges)
    for edge in placed.edges:
        ys = [y for _, y in edge.points]
        assert ys == sorted(ys)
