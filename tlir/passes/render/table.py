"""The nodes of a graph as rows: what the table of ``tlir show`` and the page's table and details show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tlir.ir.graph import Body, Graph, Node
from tlir.passes.render.escape import printable
from tlir.passes.render.text import source_text, type_text
from tlir.passes.render.values import attribute_text


@dataclass(frozen=True)
class Row:
    """One node as printable texts. ``key`` is its id, for a node of a region ``12.0.3``: node 3 of region 0 of
    node 12; ``attributes`` has one text per attribute."""

    key: str
    op: str
    operands: str
    attributes: Mapping[str, str]
    type: str
    name: str
    source: str
    outputs: tuple[int, ...] = ()

    @property
    def attribute_line(self) -> str:
        return ", ".join(f"{name} = {text}" for name, text in self.attributes.items())

    def to_json(self) -> dict[str, Any]:
        """The row as a JSON object; texts are those that are printed."""
        row: dict[str, Any] = {"id": self.key, "op": self.op, "operands": self.operands, "type": self.type}
        row |= {"attributes": dict(self.attributes)} if self.attributes else {}
        row |= {"name": self.name} if self.name else {}
        row |= {"source": self.source} if self.source else {}
        return row | ({"outputs": list(self.outputs)} if self.outputs else {})


def rows(graph: Graph) -> Iterator[Row]:
    """A row per node, those of regions after the node that holds them."""
    outputs: dict[int, list[int]] = {}
    for position, ref in enumerate(graph.body.outputs):
        outputs.setdefault(ref.node, []).append(position)
    yield from _rows(graph.body, "", outputs)


def _rows(body: Body, prefix: str, outputs: Mapping[int, list[int]]) -> Iterator[Row]:
    for node in body.nodes:
        yield row_of(node, prefix, tuple(outputs.get(node.id, ())))
        for k, region in enumerate(node.regions):
            yield from _rows(region, f"{prefix}{node.id}.{k}.", {})


def row_of(node: Node, prefix: str = "", outputs: tuple[int, ...] = ()) -> Row:
    """The row of one node."""
    return Row(
        f"{prefix}{node.id}",
        printable(node.op),
        ", ".join(str(ref) for ref in node.inputs),
        {printable(name): attribute_text(node.attrs[name]) for name in sorted(node.attrs)},
        type_text(node),
        printable(node.name or ""),
        source_text(node.source) if node.source else "",
        outputs,
    )
