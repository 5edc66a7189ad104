"""``tlir stress``: how far the results of an artifact spread over permitted executions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tlir.cli.console import Output
    from tlir.compare.stress import Spread, StressReport

NODES = 12
"""So many nodes are listed, those first that contribute most."""


@click.command("stress", short_help="Run an artifact in many permitted ways and show how far results spread.")
@click.argument("path", metavar="FILE")
@click.option("--runs", metavar="N", type=click.IntRange(min=1), default=100, help="How many executions (100).")
@click.option("--seed", metavar="S", type=click.IntRange(min=0), default=0, help="Where random choices start (0).")
@click.option("--policy", metavar="POLICY", default="frontend", help="strict, reorder, frontend (default) or loose.")
@click.option(
    "--accuracy", metavar="FILE", type=click.Path(path_type=Path), help="Another table of the errors of functions."
)
@click.option("--sample", metavar="K", type=int, default=0, help="Which recorded sample's inputs to use (0).")
@click.option("--contributions/--no-contributions", default=True, help="Whether each node is also varied alone (yes).")
@click.option("--all", "every", is_flag=True, help="Show every node, in the order of the graph.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.pass_context
def command(
    ctx: click.Context,
    path: str,
    runs: int,
    seed: int,
    policy: str,
    accuracy: Path | None,
    sample: int,
    contributions: bool,
    every: bool,
    as_json: bool,
) -> None:
    """Run an artifact many times as a policy permits, at random: sums in other orders and groupings, products fused
    with additions, subnormal numbers flushed, functions that err as much as the frontend's may, narrow results kept in
    float32.

    For each output and node: the largest distance from the reference in units in the last place (ulps), the typical
    one, and the same of the enclosure that `tlir compare --tolerance auto` judges by; and what each node contributes to
    the outputs when it alone varies. The same seed gives the same executions.

    Exit code: 0, or 1 if an execution left its enclosure, which would be a fault of tlir.
    """
    from tlir.api import load
    from tlir.cli.console import Output, to_json
    from tlir.cli.group import about
    from tlir.cli.paths import existing
    from tlir.cli.progress import Progress
    from tlir.compare.bounds import resolve
    from tlir.compare.stress import stress
    from tlir.errors import UsageError

    file = existing(path)
    graph = load(file)
    freedoms = resolve(policy, graph.ir.producer, accuracy)
    inputs = graph.sample_inputs(sample)
    if inputs is None and graph.ir.body.input_ids:
        raise UsageError("TL0602", "the artifact has no sample", file=file, hint="capture it with example arguments")
    out = Output()
    with Progress("running", runs * len(graph.ir.nodes), out) as progress, about(file):
        report = stress(
            graph.ir,
            inputs or (),
            freedoms,
            runs=runs,
            seed=seed,
            contributions=contributions,
            work=progress.advance,
        )
    if as_json:
        out.raw(to_json({"command": "stress", "file": file, **report.to_json()}))
    else:
        _show(out, file, report, every)
    ctx.exit(0 if report.ok else 1)


def _show(out: Output, file: str, report: StressReport, every: bool) -> None:
    from tlir.cli.console import counted

    out.line((file, "heading"), f": {counted(report.runs, 'execution')} from seed {report.seed}")
    out.line((f"policy {report.freedoms}", "label"), indent=2)
    rows = [(output.name, output.type, *_cells(output.spread)) for output in report.outputs]
    out.table(("output", "type", *_HEADINGS), rows, indent=2)
    nodes = list(report.nodes)
    if not every:
        nodes = [node for node in nodes if node.spread.enclosure or node.spread.ulps or node.contribution]
        nodes.sort(key=lambda node: (-(node.contribution or 0.0), -node.spread.ulps, node.id))
    shown = nodes if every else nodes[:NODES]
    if shown:
        out.blank()
        nodes_rows = [
            (
                node.node,
                "" if node.contribution is None else _number(node.contribution),
                *_cells(node.spread),
                f"{node.source.file}:{node.source.line}" if node.source else "",
            )
            for node in shown
        ]
        out.table(("node", ">alone, at outputs", *_HEADINGS, "source"), nodes_rows, indent=2)
    if len(shown) < len(nodes):
        out.line((f"{len(nodes) - len(shown)} more with --all", "label"), indent=2)


_HEADINGS = (">max ulps", ">typical", ">enclosure", ">typical", ">outside")


def _cells(spread: Spread) -> tuple[str, str, str, str, str]:
    outside = str(spread.outside) if spread.outside else ""
    return (
        _number(spread.ulps),
        _number(spread.typical),
        _number(spread.enclosure),
        _number(spread.enclosure_typical),
        outside,
    )


def _number(value: float) -> str:
    return f"{value:.3g}"
