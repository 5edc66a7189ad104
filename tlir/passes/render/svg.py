"""A graph as an SVG drawing that needs nothing from outside, readable on light and on dark ground."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tlir.ir.graph import Graph, Node
from tlir.passes.render.escape import shorten, xml
from tlir.passes.render.layout import Edge, Layout, layout
from tlir.passes.render.style import COLOURS, DRAWING, kind_of
from tlir.passes.render.table import Row, row_of
from tlir.passes.render.values import attribute_text

LIMIT = 1000
"""Nodes that are drawn by default; more make a drawing that nobody can read."""

_CHARACTER = 7.3
_LINE = 15
_MARGIN = 16
_CAPTION = 26
_LABEL = 30


@dataclass(frozen=True)
class Drawing:
    """The SVG element, how many nodes it shows, of how many, and its size in pixels."""

    svg: str
    drawn: int
    total: int
    width: int
    height: int

    @property
    def caption(self) -> str:
        """How many nodes are drawn, in words."""
        if self.drawn == self.total:
            return f"{self.total:,} node{'' if self.total == 1 else 's'}"
        return f"the first {self.drawn:,} of {self.total:,} nodes"


@dataclass(frozen=True)
class _Box:
    node: Node
    row: Row
    lines: tuple[tuple[str, str], ...]
    width: float
    height: float


def draw(graph: Graph, limit: int = LIMIT, standalone: bool = True) -> Drawing:
    """The first ``limit`` nodes drawn in layers. ``standalone`` adds the XML name space, colours and a caption."""
    total = len(graph.body.nodes)
    nodes = graph.body.nodes[:limit]
    outputs: dict[int, list[int]] = {}
    for position, ref in enumerate(graph.body.outputs):
        outputs.setdefault(ref.node, []).append(position)
    boxes = [_box(node, tuple(outputs.get(node.id, ()))) for node in nodes]
    operands = [[ref.node for ref in node.inputs] for node in nodes]
    placed = layout(operands, [(box.width, box.height) for box in boxes], set(graph.body.input_ids))
    top = _MARGIN + (_CAPTION if standalone else 0)
    width = round(max(placed.width, 260 if standalone else 0) + 2 * _MARGIN)
    height = round(placed.height + top + _MARGIN)
    drawing = Drawing("", len(nodes), total, width, height)
    svg = "\n".join(_lines(graph, drawing, boxes, placed, standalone, top))
    return Drawing(svg + "\n", len(nodes), total, width, height)


def _box(node: Node, outputs: tuple[int, ...]) -> _Box:
    row = row_of(node, outputs=outputs)
    lines = [("o", row.op)]
    if row.name:
        lines.append(("m", row.name))
    if "value" in node.attrs:
        lines.append(("v", attribute_text(node.attrs["value"])))
    if node.regions:
        lines.append(("v", f"{len(node.regions)} region{'' if len(node.regions) == 1 else 's'}"))
    lines.append(("t", row.type))
    if outputs:
        lines.append(("c", "output " + ", ".join(map(str, outputs))))
    short = tuple((style, shorten(text, _LABEL, tail=style == "m")) for style, text in lines)
    longest = max(len(text) for _, text in short) + len(row.key) + 2
    return _Box(node, row, short, max(56.0, longest * _CHARACTER + 16), len(short) * _LINE + 12.0)


def _lines(
    graph: Graph, drawing: Drawing, boxes: Sequence[_Box], placed: Layout, standalone: bool, top: int
) -> Iterator[str]:
    space = ' xmlns="http://www.w3.org/2000/svg"' if standalone else ""
    name = graph.name or "graph"
    yield (
        f'<svg{space} class="graph" width="{drawing.width}" height="{drawing.height}" '
        f'viewBox="0 0 {drawing.width} {drawing.height}" role="img" aria-label="{xml(shorten(name, 60))}">'
    )
    if standalone:
        yield f"<style>{COLOURS}{DRAWING}</style>"
    yield (
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0 0.8L8 4L0 7.2z"/></marker></defs>'
    )
    if standalone:
        room = max(10, int((drawing.width - 2 * _MARGIN) / _CHARACTER) - len(drawing.caption) - 2)
        yield (
            f'<text x="{_MARGIN}" y="{_MARGIN + 8}"><tspan class="o">{xml(shorten(name, room))}</tspan>'
            f'<tspan class="c" dx="12">{drawing.caption}</tspan></text>'
        )
    # drawn around the middle where the caption is wider than the graph
    left = (drawing.width - placed.width) / 2
    yield f'<g transform="translate({left:.1f} {top})">'
    for edge in placed.edges:
        yield _edge(edge)
    for box in boxes:
        yield _node(box, placed)
    yield "</g>"
    yield "</svg>"


def _edge(edge: Edge) -> str:
    (x, y), *rest = edge.points
    path = [f"M{x:.1f} {y:.1f}"]
    for px, py in rest:
        if abs(px - x) < 0.05:
            path.append(f"V{py:.1f}")
        else:
            middle = (y + py) / 2
            path.append(f"C{x:.1f} {middle:.1f} {px:.1f} {middle:.1f} {px:.1f} {py:.1f}")
        x, y = px, py
    target = f' data-t="{edge.target}" marker-end="url(#arrow)"' if edge.arrow else ""
    return f'<path class="e" data-s="{edge.source}"{target} d="{"".join(path)}"/>'


def _node(box: _Box, placed: Layout) -> str:
    x, y = placed.positions[box.node.id]
    row = box.row
    title = [f"%{row.key} {row.op}({row.operands})" if row.operands else f"%{row.key} {row.op}"]
    title += [row.name] if row.name else []
    title += [row.attribute_line] if row.attributes else []
    title += [row.type, *([row.source] if row.source else [])]
    style = f"n {kind_of(box.node)}" + (" out" if row.outputs else "")
    parts = [
        f'<g class="{style}" id="n{row.key}" transform="translate({x:.1f} {y:.1f})">',
        "<title>" + "\n".join(xml(text) for text in title) + "</title>",
        f'<rect width="{box.width:.1f}" height="{box.height:.1f}" rx="6"/>',
        f'<text class="c" x="{box.width - 8:.1f}" y="18" text-anchor="end">{row.key}</text>',
    ]
    for k, (kind, text) in enumerate(box.lines):
        parts.append(f'<text class="{kind}" x="8" y="{18 + k * _LINE}">{xml(text)}</text>')
    return "".join(parts) + "</g>"
