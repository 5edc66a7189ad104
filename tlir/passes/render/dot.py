"""A graph in Graphviz's DOT language, every text of the artifact quoted."""

from __future__ import annotations

from collections.abc import Iterator

from tlir.ir.graph import Graph
from tlir.passes.render.escape import dot, shorten
from tlir.passes.render.style import kind_of
from tlir.passes.render.table import row_of
from tlir.passes.render.values import attribute_text

_SHAPES = {"input": "ellipse", "constant": "note"}
_LABEL = 40


def dot_lines(graph: Graph) -> Iterator[str]:
    """The lines of a DOT digraph: a node per node of the body, an edge per operand, an ellipse per output.

    An edge of an operation with several operands is labelled with the operand's position.
    """
    yield f"digraph {dot(graph.name or 'graph')} {{"
    yield '  node [shape=box, fontname="monospace", fontsize=10];'
    yield '  edge [fontname="monospace", fontsize=8, arrowsize=0.7];'
    for node in graph.body.nodes:
        row = row_of(node)
        title = f"%{node.id} {row.op}"
        detail = attribute_text(node.attrs["value"]) if "value" in node.attrs else row.attribute_line
        parts = [title, shorten(row.name, _LABEL), shorten(detail, _LABEL), row.type]
        label = "\\n".join(dot(part)[1:-1] for part in parts if part)
        tooltip = "; ".join(part for part in (row.attribute_line, row.source) if part) or title
        shape = f", shape={_SHAPES[kind_of(node)]}" if kind_of(node) in _SHAPES else ""
        yield f'  n{node.id} [label="{label}", tooltip={dot(tooltip)}{shape}];'
        for position, ref in enumerate(node.inputs):
            parts = [f'taillabel="#{ref.result}"'] if ref.result else []
            parts += [f'headlabel="{position}"'] if len(node.inputs) > 1 else []
            options = f" [{', '.join(parts)}]" if parts else ""
            yield f"  n{ref.node} -> n{node.id}{options};"
    for position, ref in enumerate(graph.body.outputs):
        yield f'  out{position} [label="output {position}", shape=ellipse];'
        yield f"  n{ref.node} -> out{position};"
    yield "}"


def dot_text(graph: Graph) -> str:
    """The DOT digraph as one text."""
    return "\n".join(dot_lines(graph)) + "\n"
