"""``tlir show``: a graph as text, as a table, and drawn."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from tlir.ir.graph import Graph

KINDS = ("text", "table", "json", "dot", "svg", "html")
SUFFIXES = {".txt": "text", ".json": "json", ".dot": "dot", ".gv": "dot", ".svg": "svg", ".html": "html"}


@click.command("show", short_help="Show a graph: text, table, DOT, SVG or HTML.")
@click.argument("path", metavar="FILE")
@click.option("--text", "kind", flag_value="text", help="One value per line (the default).")
@click.option("--table", "kind", flag_value="table", help="A table of the nodes.")
@click.option("--json", "kind", flag_value="json", help="A JSON document with a row per node.")
@click.option("--dot", "kind", flag_value="dot", help="The DOT language of Graphviz.")
@click.option("--svg", "kind", flag_value="svg", help="A drawing.")
@click.option("--html", "kind", flag_value="html", help="A page: the drawing, and a table to sort and filter.")
@click.option("-o", "--output", metavar="FILE", help="Write to a file, whose suffix chooses the form.")
@click.option("--limit", metavar="N", type=click.IntRange(1), help="Draw the first N nodes at most (1000).")
def command(path: str, kind: str | None, output: str | None, limit: int | None) -> None:
    """Show the graph of an artifact.

    The text has one value per line: its type, its operation with operands and attributes, its name, and the line of the
    program that it comes from. Small constants are written out exactly. Drawings and pages need nothing from outside.
    """
    from tlir.cli.console import Output
    from tlir.cli.paths import existing, spare
    from tlir.errors import UsageError
    from tlir.schema import read

    suffix = os.path.splitext(output or "")[1].lower()
    if output is not None and kind is None and suffix not in SUFFIXES:
        known = ", ".join(SUFFIXES)
        hint = f"say --text or another form, or let the name end in one of {known}"
        raise UsageError("TL0901", f"--output {output}: the suffix says no form", hint=hint)
    chosen = kind or SUFFIXES.get(suffix, "text")
    if limit is not None and chosen not in ("svg", "html"):
        raise UsageError("TL0901", "--limit is for drawings", hint="add --svg or --html")
    spare(output, path)
    graph = read(existing(path))
    stdout = Output()
    if chosen == "table" and output is None:
        _table(graph, stdout)
        return
    text, note = _rendered(graph, chosen, limit, stdout.width if output is None else None)
    if note:
        click.echo(note, err=True)
    if output is None and chosen == "text":
        stdout.stream.write(text)
    elif output is None:
        stdout.raw(text, end="")
    else:
        from tlir.cli.rewriting import write_text

        write_text(output, text)


def _rendered(graph: Graph, kind: str, limit: int | None, width: int | None) -> tuple[str, str | None]:
    """The text of the graph in a form, and what there is to say about it."""
    if kind == "text":
        from tlir.passes.render.text import graph_text

        return graph_text(graph, width), None
    if kind == "table":
        from io import StringIO

        from tlir.cli.console import Output

        stream = StringIO()
        _table(graph, Output(stream))
        return stream.getvalue(), None
    if kind == "json":
        from tlir.cli.console import to_json

        return to_json(document(graph)) + "\n", None
    if kind == "dot":
        from tlir.passes.render.dot import dot_text

        return dot_text(graph), None
    from tlir.passes.render.html import html_text
    from tlir.passes.render.svg import LIMIT, draw

    if kind == "svg":
        drawing = draw(graph, limit or LIMIT)
        text = drawing.svg
    else:
        text, drawing = html_text(graph, limit or LIMIT)
    note = f"drawn: {drawing.caption}; --limit N draws more" if drawing.drawn < drawing.total else None
    return text, note


def document(graph: Graph) -> dict[str, Any]:
    """The JSON document: ``{"name", "inputs", "outputs", "nodes": [row]}``; values are written ``%3`` or ``%3#1``."""
    from tlir.passes.render.escape import printable
    from tlir.passes.render.table import rows

    return {
        "name": printable(graph.name),
        "inputs": [f"%{i}" for i in graph.body.input_ids],
        "outputs": [str(ref) for ref in graph.body.outputs],
        "nodes": [row.to_json() for row in rows(graph)],
    }


def _table(graph: Graph, output: Any) -> None:
    from tlir.passes.render.table import rows

    cells = [
        (f"%{row.key}", row.op, row.operands, row.attribute_line, row.type, row.name, (row.source, "label"))
        for row in rows(graph)
    ]
    output.table((">id", "operation", "operands", "attributes", "type", "name", "source"), cells)
