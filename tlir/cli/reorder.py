"""``tlir reorder``: how reductions and contractions accumulate."""

from __future__ import annotations

import click


@click.command("reorder", short_help="Change how sums and products accumulate.")
@click.argument("path", metavar="FILE")
@click.option("--order", metavar="ORDER", help="sequential, pairwise, or blocked(n): blocks of n, then their results.")
@click.option("--fma/--no-fma", "fma", default=None, help="Round each product with its addition once, or not.")
@click.option("--dtype", metavar="NAME", help="The accumulator's dtype; `result` for that of the result.")
@click.option("--node", "nodes", metavar="ID|NAME", multiple=True, help="Only this node; may be repeated.")
@click.option("-o", "--output", metavar="FILE", help="Where to write (standard output).")
@click.option("--in-place", is_flag=True, help="Replace FILE.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON; needs -o or --in-place.")
def command(
    path: str,
    order: str | None,
    fma: bool | None,
    dtype: str | None,
    nodes: tuple[str, ...],
    output: str | None,
    in_place: bool,
    as_json: bool,
) -> None:
    """Change the order and format in which reductions and contractions accumulate, and write the new artifact.

    The results may change in their last bits: recorded outputs stay those of the frontend. What is not named is kept.
    Without --node every reduction and contraction is meant, and a setting that does not apply to one is reported. What
    the type rules forbid is refused.

    The report goes to standard output, or to standard error where the artifact goes to standard output.
    """
    import sys

    from tlir.cli.console import Output, counted, to_json
    from tlir.cli.paths import existing
    from tlir.cli.rewriting import destination, document_of, write_graph
    from tlir.errors import UsageError
    from tlir.passes.render.escape import printable
    from tlir.passes.render.values import accumulate_text
    from tlir.passes.reorder import reorder
    from tlir.schema import lowest_version, read

    target = destination(existing(path), output, in_place)
    if as_json and target is None:
        raise UsageError("TL0901", "--json needs a file to write to", hint="add -o FILE or --in-place")
    graph = read(path)
    document = document_of(path)
    changed, report = reorder(graph, order, fma, dtype, nodes)
    version = max(document.get("version", 1), lowest_version(changed))
    write_graph(changed, target, version, "external" in document)
    stream = Output(sys.stderr if target is None else None)
    if as_json:
        stream.raw(to_json({"file": path, "output": target, "nodes": [entry.to_json() for entry in report]}))
        return
    for entry in report:
        if entry.changed or entry.kept:
            name = f" {printable(entry.node.name)}" if entry.node.name else ""
            settings = f"{accumulate_text(entry.before)} -> {accumulate_text(entry.after)}" if entry.changed else "kept"
            stream.line(f"%{entry.place} {entry.node.op}{name}: {settings}")
        for reason in entry.kept:
            stream.line((reason, "label"), indent=4)
    count = sum(1 for entry in report if entry.changed)
    stream.line(f"{target or 'standard output'}: {counted(count, 'node')} of {len(report)} changed")
