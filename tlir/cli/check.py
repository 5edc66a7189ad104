"""``tlir check``: structure, types, broadcasts and constants of artifacts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from tlir.cli.options import chosen_format, error_case, reporting, write_report

if TYPE_CHECKING:
    from tlir.cli.console import Output
    from tlir.cli.formats import Case
    from tlir.cli.outcome import Outcome
    from tlir.passes.check import CheckReport, Finding

NOTES = 10
"""So many notes of one check are shown as text; the other formats have them all."""


@click.command("check", short_help="Check artifacts: structure, types, broadcasts, constants.")
@click.option("--lowering", is_flag=True, help="Also compare the graph's kernels with it, expression by expression.")
@reporting(("sarif", "github", "junit"))
@click.pass_context
def command(
    ctx: click.Context, paths: tuple[str, ...], as_json: bool, format: str | None, quiet: bool, lowering: bool
) -> None:
    """Check artifacts, and all those in folders: structure, types, broadcasts, constants.

    Each check passes, fails or does not apply, and says what it covered. A failed check names the node, its source line
    and what to do.

    --lowering evaluates the kernels that the graph becomes on expressions instead of numbers, and requires for every
    output element the expression that the graph says: the same operations in the same order.

    Exit code: 0 if all pass; otherwise the first of 70, 3 (not a valid artifact), 4 and 1 (a check failed) that any
    file gives.
    """
    from tlir.api import load
    from tlir.cli.console import Output
    from tlir.cli.paths import artifacts
    from tlir.cli.progress import Progress

    written = chosen_format(format, as_json)
    files = artifacts(paths)
    output = Output()
    debug = bool(ctx.find_root().params.get("debug"))
    with Progress("checking", len(files), output) as progress:
        code = write_report(
            "check",
            written,
            quiet,
            files,
            lambda file: load(file).check(lowering=lowering),
            _show,
            _cases,
            progress,
            output,
            debug,
        )
    ctx.exit(code)


def _show(output: Output, outcome: Outcome[CheckReport]) -> None:
    output.line((outcome.file, "heading"), ": ", (outcome.status, outcome.status))
    if outcome.report is None:
        return
    output.table(
        ("check", "result", "covered"),
        [(check.name, (check.status, check.status), check.covered) for check in outcome.report.checks],
        indent=2,
    )
    for check in outcome.report.checks:
        shown = 0
        for finding in check.findings:
            if finding.level == "error" or shown < NOTES:
                _show_finding(output, finding)
            shown += finding.level == "note"
        if shown > NOTES:
            output.line((f"… and {shown - NOTES} more notes of {check.name}; --json has them all", "label"), indent=2)


def _show_finding(output: Output, finding: Finding) -> None:
    node = f"node {finding.node}: " if finding.node else ""
    output.line((f"{finding.level} {finding.rule}", finding.level), f": {node}{finding.message}", indent=2)
    if finding.source:
        output.line((f"at {finding.source}", "label"), indent=4)
    if finding.hint:
        output.line(finding.hint, indent=4)


def _cases(outcome: Outcome[CheckReport]) -> Iterator[Case]:
    from tlir.cli.formats import Case, Remark

    if outcome.report is None:
        yield error_case(outcome)
        return
    for check in outcome.report.checks:
        remarks: list[Any] = [
            Remark(
                finding.level,
                finding.rule,
                finding.message,
                finding.hint,
                finding.node,
                finding.pointer,
                finding.source,
            )
            for finding in check.findings
        ]
        yield Case(outcome.file, check.name, check.status, check.covered, tuple(remarks))
