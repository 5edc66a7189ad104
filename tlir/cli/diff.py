"""``tlir diff``: what changed between two artifacts."""

from __future__ import annotations

import click


@click.command("diff", short_help="Show what changed between two artifacts.")
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document.")
@click.option("--quiet", "-q", is_flag=True, help="Print only the summary line.")
@click.pass_context
def command(ctx: click.Context, a: str, b: str, as_json: bool, quiet: bool) -> None:
    """Show what changed from artifact A to artifact B.

    Nodes are matched by what they compute, not by their ids: a node that moved is the same. Shown are nodes removed
    (-), inserted (+) and changed (~), with operations, types, attributes, operands and the words of constants; inputs,
    outputs, samples and the producer. Source lines that moved are counted, and are no difference; nor is the version of
    the format.

    Exit code: 0 if they are the same, 1 if they differ.
    """
    from tlir.cli.console import Output, to_json
    from tlir.cli.paths import existing
    from tlir.passes.diff import diff
    from tlir.schema import read

    report = diff(read(existing(a)), read(existing(b)))
    output = Output()
    if as_json:
        output.raw(to_json({"a": a, "b": b, **report.to_json()}))
    else:
        styles = {"-": "red", "+": "green", "~": "yellow"}
        for k, line in enumerate(report.lines()):
            if k and quiet:
                break
            text = line.lstrip(" ")
            style = styles.get(text[:1], "heading" if k == 0 else "")
            output.line((text, style) if style else text, indent=len(line) - len(text))
    ctx.exit(0 if report.same else 1)
