"""A graph as one HTML page: the drawing, and a table of its nodes that can be sorted and filtered.

The page needs nothing from outside, and its content policy forbids everything but its own style sheet and script, so
that a hostile name stays text even if an escape were forgotten. Without JavaScript drawing and table are still there.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator

from tlir.ir.graph import Graph
from tlir.passes.render.escape import xml
from tlir.passes.render.page import SCRIPT, STYLE
from tlir.passes.render.style import KINDS
from tlir.passes.render.svg import LIMIT, Drawing, draw
from tlir.passes.render.table import Row, rows
from tlir.passes.render.text import producer_parts

COLUMNS = ("id", "operation", "type", "name", "attributes", "source")


def html_text(graph: Graph, limit: int = LIMIT) -> tuple[str, Drawing]:
    """The page, and the drawing in it, of which at most ``limit`` nodes are drawn; the table has all nodes."""
    drawing = draw(graph, limit, standalone=False)
    return "\n".join(_lines(graph, drawing)) + "\n", drawing


def _hash(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def _lines(graph: Graph, drawing: Drawing) -> Iterator[str]:
    name = xml(graph.name or "graph")
    policy = f"default-src 'none'; style-src {_hash(STYLE)}; script-src {_hash(SCRIPT)}; base-uri 'none'"
    yield "<!doctype html>"
    yield '<html lang="en"><head><meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{policy}; form-action \'none\'">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{name}</title><style>{STYLE}</style></head><body>"
    facts = [f"{len(graph.body.input_ids)} in, {len(graph.body.outputs)} out", f"{drawing.caption} drawn"]
    if graph.producer:
        facts += producer_parts(graph.producer)
    yield f"<header><h1>{name}</h1><p>{xml(' · '.join(facts))}</p></header>"
    yield '<main><section id="drawing" aria-label="drawing"><div class="bar">'
    yield '<button id="fit">fit</button><button id="full">100 %</button>'
    yield '<button id="smaller" aria-label="smaller">−</button><button id="larger" aria-label="larger">+</button>'
    legend = "".join(f'<li class="{kind}"><i></i>{xml(text)}</li>' for kind, text in KINDS.items())
    yield f'<ul class="legend">{legend}</ul></div>'
    yield f'<div class="pane" tabindex="0">{drawing.svg}</div>'
    yield '<p id="details">Select a node to see all of it.</p></section>'
    yield '<section id="nodes" aria-label="nodes"><div class="bar">'
    yield '<input id="filter" type="search" placeholder="filter: words that must all occur" aria-label="filter">'
    options = "".join(f'<option value="{k}">by {column}</option>' for k, column in enumerate(COLUMNS))
    yield f'<select id="sort" aria-label="sort">{options}</select><span id="count"></span></div>'
    headers = "".join(f'<th><button data-k="{k}">{column}</button></th>' for k, column in enumerate(COLUMNS))
    yield f'<div class="pane"><table><thead><tr>{headers}</tr></thead><tbody>'
    for row in rows(graph):
        yield _row(row)
    yield f"</tbody></table></div></section></main><script>{SCRIPT}</script></body></html>"


def _row(row: Row) -> str:
    operation = f"{row.op}({row.operands})" if row.operands else row.op
    operation += f" → output {', '.join(map(str, row.outputs))}" if row.outputs else ""
    cells = (row.key, operation, row.type, row.name, row.attribute_line, row.source)
    return f'<tr id="r{xml(row.key)}">' + "".join(f"<td>{xml(cell)}</td>" for cell in cells) + "</tr>"
