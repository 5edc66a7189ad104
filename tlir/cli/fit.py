"""``tlir fit``: the choices that give the frontend's every word, written into the artifact."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tlir.cli.console import Cell, Output
    from tlir.compare.fit import Fitting

FEW = 4
"""Fewer equal words than this are likely to be chance, since many orders are tried."""


@click.command("fit", short_help="Find the orders that give the frontend's every word.")
@click.argument("path", metavar="FILE")
@click.option("-o", "--output", metavar="FILE", help="Where to write the artifact with the choices in it.")
@click.option("--in-place", is_flag=True, help="Replace FILE.")
@click.option("--tries", metavar="N", type=click.IntRange(1), help="Combinations per group of nodes (600).")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.pass_context
def command(
    ctx: click.Context, path: str, output: str | None, in_place: bool, tries: int | None, as_json: bool
) -> None:
    """Look for the order of every sum and product, and for fused products, wider accumulators, reciprocals and flushed
    subnormals, that give the frontend's every word; with -o or --in-place, write them into the artifact, so that
    `tlir compare --words` passes on it.

    With a trace (capture with trace=True, or --trace) every node is fitted by itself, on its recorded operands; nodes
    without a recorded value between them are fitted together. An order that `accumulate` has no name for is written as
    reshapes and several sums. What no choice explains stays as it is, and what fits is written all the same.

    Exit code: 0 if every word of every output is the frontend's afterwards, 1 otherwise.
    """
    from tlir.cli.console import Output, to_json
    from tlir.cli.group import about
    from tlir.cli.paths import existing
    from tlir.cli.progress import Progress
    from tlir.cli.rewriting import destination, document_of, write_graph
    from tlir.compare.fit import TRIES, fit
    from tlir.schema import lowest_version, read

    target = destination(existing(path), output, in_place)
    graph = read(path)
    out = Output()
    with Progress("fitting", len(graph.nodes), out) as progress, about(path):
        found = fit(graph, tries=tries or TRIES, observe=lambda node: progress.advance())
    if target is not None:
        document = document_of(path)
        version = max(document.get("version", 1), lowest_version(found.graph))
        write_graph(found.graph, target, version, "external" in document)
    if as_json:
        out.raw(to_json({"command": "fit", "file": path, "output": target, **found.to_json()}))
    else:
        _show(out, path, target, found)
    ctx.exit(0 if found.ok else 1)


def _show(out: Output, path: str, target: str | None, found: Fitting) -> None:
    from tlir.cli.console import counted

    status: Cell = ("reproduced", "passed") if found.ok else ("not reproduced", "failed")
    out.line((path, "heading"), ": ", status)
    rows: list[tuple[Cell, ...]] = []
    for node in found.nodes:
        mark = "passed" if node.ok else "failed"
        equal = f"{node.equal_before} -> {node.equal_after} of {node.count}"
        source = f"{node.source.file}:{node.source.line}" if node.source else ""
        rows.append((node.label, node.before, (node.after, mark), equal, source))
        rows += [(f"  with {label}", "", (after, mark), "", "") for _, label, after in node.group]
    if rows:
        out.table(("node", "before", "after", ">equal words", "source"), rows, indent=2)
    few = [node.label for node in found.nodes if node.ok and node.count < FEW]
    if few:
        out.line((f"only a few words say so, and another order may give them too: {', '.join(few)}", "label"), indent=2)
    for output in found.outputs:
        equal = f"{output.equal_before} -> {output.equal_after} of {output.count} words equal"
        sample = f" of sample {output.sample}" if output.sample else ""
        out.line(f"{output.name}{sample}: {equal}", indent=2)
    changed = counted(len(found.choices), "node")
    out.line(f"{changed} changed" + (f", written to {target}" if target else ""), indent=2)
