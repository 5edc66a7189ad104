"""``tlir reduce``: a failing comparison as something that fits into a bug report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from tlir.cli.console import Output
    from tlir.compare.reduce import Reduction, Written
    from tlir.ir.graph import Producer


@click.command("reduce", short_help="Shrink a failing comparison to a small report of it.")
@click.argument("path", metavar="FILE")
@click.option("--output", "-o", metavar="FOLDER", help="Where to write (the artifact's name with -reduced).")
@click.option("--force", is_flag=True, help="Write into a folder that is not empty.")
@click.option(
    "--rerun", is_flag=True, help="Run the frontend again on every candidate, so that sums and values shrink too."
)
@click.option("--tolerance", metavar="T", help="As for compare (auto, unless another rule is given).")
@click.option("--rtol", metavar="R", help="Plus R times the recorded absolute value.")
@click.option("--ulps", metavar="N", type=int, help="Largest distance in units in the last place.")
@click.option("--words", is_flag=True, help="Bits must be equal; NaNs of any payload are.")
@click.option("--policy", metavar="POLICY", help="strict, reorder, frontend (default) or loose.")
@click.option(
    "--accuracy", metavar="FILE", type=click.Path(path_type=Path), help="Another table of the errors of functions."
)
@click.option("--sample", metavar="K", type=int, help="Which recorded sample (the first that fails).")
@click.option("--candidates", metavar="N", type=click.IntRange(min=1), help="Compare so many candidates at most (400).")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.pass_context
def command(
    ctx: click.Context,
    path: str,
    output: str | None,
    force: bool,
    rerun: bool,
    tolerance: str | None,
    rtol: str | None,
    ulps: int | None,
    words: bool,
    policy: str | None,
    accuracy: Path | None,
    sample: int | None,
    candidates: int | None,
    as_json: bool,
) -> None:
    """Shrink a comparison that fails to the smallest graph, shapes and values that still fail with the same verdict,
    and write them to a folder: reduced.json, reproduce.py (the frontend alone), its arrays, and a README.md for a bug
    report.

    With a trace the node that is to blame is cut out, on the operands that the frontend recorded for it. Without one
    the end of the graph is, on the reference's values; with --rerun the frontend itself is asked about every candidate.
    Every candidate is compared; what is written is compared once more and, where the frontend is installed, run.

    Exit code: 0 if something was written, 1 if nothing fails.
    """
    from tlir.api import load
    from tlir.cli.console import Output, to_json
    from tlir.cli.group import about
    from tlir.cli.paths import existing, spare
    from tlir.cli.progress import Progress
    from tlir.compare import check_options
    from tlir.compare.reduce import BUDGET, Rules, check_folder, evaluator, reduce, write_folder

    given = tolerance or (None if words or rtol is not None or ulps is not None else "auto")
    check_options(given, rtol or 0, ulps, words, False, policy, accuracy)
    file = existing(path)
    folder = Path(output) if output else Path(f"{Path(file).with_suffix('')}-reduced")
    check_folder(folder, force)
    spare(str(folder / "reduced.json"), file)
    graph = load(file).ir
    producer = graph.producer
    budget = candidates or BUDGET
    out = Output()
    rules = Rules(given, rtol or 0, ulps, words, False, policy, accuracy)
    with Progress("reducing", budget, out) as progress, about(file):
        frontend = None
        if rerun:
            frontend = evaluator(producer.frontend if producer else "", _compiled(producer))
        reduction = reduce(
            graph,
            rules=rules,
            sample=sample,
            frontend=frontend,
            budget=budget,
            observe=progress.advance,
        )
    if reduction is None:
        if as_json:
            out.raw(to_json({"command": "reduce", "file": file, "ok": True, "folder": None}))
        else:
            out.line((file, "heading"), ": ", ("nothing fails", "passed"), ", so there is nothing to reduce")
            if given == "auto":
                out.line(("by bounds; another rule can be given, as to compare", "label"), indent=2)
        ctx.exit(1)
    written = write_folder(reduction, graph, folder, rules, force)
    if as_json:
        out.raw(to_json({"command": "reduce", "file": file, "ok": False, **document(reduction, written)}))
    else:
        _show(out, file, reduction, written)
    ctx.exit(0)


def document(reduction: Reduction, written: Written) -> dict[str, Any]:
    """The fields of the JSON document about a reduction."""
    nodes, elements = reduction.before
    return {
        "folder": str(written.folder),
        "files": list(written.files),
        "basis": reduction.basis,
        "verdict": reduction.verdict,
        "sample": reduction.sample,
        "output": reduction.output,
        "suspect": reduction.suspect.id,
        "before": {"nodes": nodes, "elements": elements},
        "after": {"nodes": reduction.piece.count, "elements": reduction.piece.elements},
        "candidates": reduction.candidates,
        "notes": list(reduction.notes),
        "still_fails": written.still_fails,
        "script": written.script,
        "comparison": reduction.found.to_json(),
    }


def _compiled(producer: Producer | None) -> bool:
    return producer is not None and producer.outputs == "compiled"


BASES = {
    "trace": "the operands and result that the frontend recorded for it",
    "frontend": "what the frontend, run again, gives",
    "outputs": "the recorded output, and the reference's values where this part begins",
}


def _show(out: Output, file: str, reduction: Reduction, written: Written) -> None:
    from tlir.cli.console import counted

    nodes, elements = reduction.before
    piece = reduction.piece
    out.line((file, "heading"), ": ", (reduction.verdict, "failed"), f", reduced to {written.folder}")
    out.line(f"{counted(nodes, 'node')} to {piece.count}, {counted(elements, 'element')} to {piece.elements}", indent=2)
    out.line(
        ("suspect" if reduction.basis != "outputs" else "ends in", "label"), f" node {reduction.suspect}", indent=2
    )
    if reduction.suspect.source is not None:
        out.line((f"at {reduction.suspect.source}", "label"), indent=4)
    out.line(("by ", "label"), BASES[reduction.basis], indent=2)
    _show_values(out, reduction)
    for note in reduction.notes:
        out.line(("note ", "note"), note, indent=2)
    again: tuple[str, str] = ("still fails", "failed") if written.still_fails else ("does not fail any more", "passed")
    out.line("compared again: ", again, indent=2)
    said = {"fails": "shows the fault", "passes": "does not show it: the frontend here computes this as it should"}
    out.line(f"reproduce.py: {said.get(written.script, written.script)}", indent=2)


def _show_values(out: Output, reduction: Reduction) -> None:
    from tlir.cli.compare import index_text, shortened, steps

    rows = [
        (
            index_text(element) or "(scalar)",
            shortened(element.expected),
            shortened(element.got),
            steps(element.ulps),
        )
        for element in reduction.found.worst
    ]
    out.table(("index", ">frontend", ">should be", ">ulps"), rows, indent=4)
