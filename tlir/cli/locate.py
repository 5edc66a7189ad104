"""``tlir locate``: where a difference from the frontend starts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tlir.cli.console import Cell, Output
    from tlir.compare.locate import Location, NodeDifference

NODES = 12
"""So many nodes are listed, those first whose local difference is worst."""


@click.command("locate", short_help="Show where a difference from the frontend starts.")
@click.argument("path", metavar="FILE")
@click.option(
    "--against", metavar="FILE", help="Another artifact of the same graph, whose recorded values are explained instead."
)
@click.option("--policy", metavar="POLICY", default="frontend", help="strict, reorder, frontend (default) or loose.")
@click.option(
    "--accuracy", metavar="FILE", type=click.Path(path_type=Path), help="Another table of the errors of functions."
)
@click.option("--sample", metavar="K", type=int, default=0, help="Which recorded sample (0).")
@click.option("--all", "every", is_flag=True, help="Show every node, in the order of the graph.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.pass_context
def command(
    ctx: click.Context,
    path: str,
    against: str | None,
    policy: str,
    accuracy: Path | None,
    sample: int,
    every: bool,
    as_json: bool,
) -> None:
    """Compare every node of an artifact with the value that the frontend recorded for it (capture with trace=True, or
    --trace).

    Each node is evaluated twice: from the graph's inputs, which shows how far the two computations are apart there, and
    on the operands that the frontend recorded, which shows what the node itself adds. The suspect is the first node
    whose own difference no permitted execution gives. The ledger lists the first node where a NaN, an infinity, a
    flushed subnormal number or a lost sign of zero appears on one side alone.

    Exit code: 0 if every node can be explained, 1 if there is a suspect.
    """
    from tlir.api import load
    from tlir.cli.console import Output, to_json
    from tlir.cli.group import about
    from tlir.cli.paths import existing
    from tlir.cli.progress import Progress
    from tlir.compare.locate import locate, trace_of

    file = existing(path)
    graph = load(file).ir
    other = None if against is None else trace_of(graph, load(existing(against)).ir, sample)
    out = Output()
    with Progress("locating", len(graph.nodes), out) as progress, about(file):
        found = locate(
            graph,
            sample=sample,
            policy=policy,
            table=accuracy,
            trace=other,
            observe=lambda node: progress.advance(),
        )
    if as_json:
        out.raw(to_json({"command": "locate", "file": file, "against": against, **found.to_json()}))
    else:
        _show(out, file, found, every)
    ctx.exit(0 if found.ok else 1)


def _show(out: Output, file: str, found: Location, every: bool) -> None:
    from tlir.cli.console import counted

    status: Cell = ("no suspect", "passed") if found.ok else ("a suspect", "failed")
    out.line((file, "heading"), ": ", status, f" among {counted(len(found.nodes), 'recorded value')}")
    out.line((f"policy {found.freedoms}", "label"), indent=2)
    if found.suspect is not None:
        show_suspect(out, found)
    nodes = list(found.nodes)
    if not every:
        nodes = [node for node in nodes if node.verdict != "identical" or node.propagated.max_ulps]
        nodes.sort(key=lambda node: (-_severity(node), node.ref))
    shown = nodes if every else nodes[:NODES]
    if shown:
        out.blank()
        headings = ("node", "own verdict", ">own ulps", ">permitted", ">ulps from inputs", ">equal words", "source")
        out.table(headings, [_row(node) for node in shown], indent=2)
    elif found.ok:
        out.line(("every recorded value is the reference's", "label"), indent=2)
    if len(shown) < len(nodes):
        out.line((f"{len(nodes) - len(shown)} more with --all", "label"), indent=2)
    show_ledger(out, found)
    if found.missing:
        count = counted(len(found.missing), "node")
        out.line((f"{count} without a recorded value: computed from recorded operands", "label"), indent=2)


def show_ledger(out: Output, found: Location) -> None:
    """Where special values first appear on one side alone."""
    if not found.ledger:
        return
    out.blank()
    headings = ("special value", "on the side of", "first at node", "element", ">frontend", ">reference", "made by it")
    out.table(headings, [_entry(entry) for entry in found.ledger], indent=2)


def show_suspect(out: Output, found: Location) -> None:
    """The suspect with its place, its worst element and the operands there."""
    from tlir.cli.compare import index_text, short, shortened, steps

    suspect = found.suspect
    assert suspect is not None
    whose = f" in {found.side}" if found.side else ""
    out.line(("suspect", "failed"), f"{whose}: node {suspect.label}", indent=2)
    if suspect.source is not None:
        out.line((f"at {suspect.source}", "label"), indent=4)
    rows: list[tuple[Cell, ...]] = []
    for element, bound in zip(suspect.local.worst, suspect.local.bounds, strict=False):
        permitted = f"{' '.join(bound.low)} to {' '.join(bound.high)}"
        values = shortened(element.expected), shortened(element.got)
        rows.append((index_text(element) or "(scalar)", *values, permitted, steps(element.ulps)))
    out.table(("index", ">frontend", ">from its operands", ">permitted", ">ulps"), rows, indent=4)
    for operand in found.operands:
        place = "" if operand.index is None else f" at [{','.join(map(str, operand.index))}]"
        out.line((f"{operand.name}{place}: ", "label"), operand.value, indent=4)
    needed = suspect.local.max_absolute
    if needed is not None:
        justified = f"{suspect.local.justified:.3g}"
        out.line((f"differs by {short(needed.absolute)}; rounding explains {justified}", "label"), indent=4)


def _severity(node: NodeDifference) -> int:
    from tlir.compare.auto import VERDICTS

    return VERDICTS.index(node.verdict)


def _row(node: NodeDifference) -> tuple[Cell, ...]:
    from tlir.cli.compare import VERDICT_STYLES, steps

    far = node.propagated
    return (
        node.label,
        (node.verdict, VERDICT_STYLES.get(node.verdict, "passed")),
        steps(node.local.ulps) if node.local.max_ulps else "–" if node.local.mismatched else "0",
        f"{node.local.justified:.3g}",
        steps(far.ulps) if far.max_ulps else "–" if far.mismatched else "0",
        f"{far.equal_words} of {far.count}",
        f"{node.source.file}:{node.source.line}" if node.source else "",
    )


def _entry(entry: object) -> tuple[Cell, ...]:
    from tlir.compare.locate import LedgerEntry

    assert isinstance(entry, LedgerEntry)
    place = f"[{','.join(map(str, entry.index))}]" + (f", {entry.count} in all" if entry.count > 1 else "")
    return (entry.kind, entry.side, entry.label, place, entry.frontend, entry.reference, "yes" if entry.local else "no")
