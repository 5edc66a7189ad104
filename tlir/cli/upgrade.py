"""``tlir upgrade``: an artifact in another version of the format."""

from __future__ import annotations

import click


@click.command("upgrade", short_help="Rewrite an artifact in another version of the format.")
@click.argument("path", metavar="FILE")
@click.option("-o", "--output", metavar="FILE", help="Where to write (standard output).")
@click.option("--in-place", is_flag=True, help="Replace FILE.")
@click.option("--to", "version", metavar="N", type=click.Choice(("1", "2", "3")), default="3", help="The version (3).")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document about it; needs -o or --in-place.")
def command(path: str, output: str | None, in_place: bool, version: str, as_json: bool) -> None:
    """Rewrite an artifact in a version of the format, by default the newest. The graph stays the same.

    A later version can express every graph of an earlier one; the other way, what cannot be expressed is named. Where
    the artifact has an external file, tensors of more than 1 MiB go to a file NAME.safetensors beside the new one.
    """
    from tlir.cli.console import Output, to_json
    from tlir.cli.paths import existing
    from tlir.cli.rewriting import destination, document_of, write_graph
    from tlir.errors import UsageError
    from tlir.schema import read

    target = destination(existing(path), output, in_place)
    if as_json and target is None:
        raise UsageError("TL0901", "--json needs a file to write to", hint="add -o FILE or --in-place")
    graph = read(path)
    document = document_of(path)
    external = "external" in document and version == "3"
    write_graph(graph, target, int(version), external)
    if target is not None:
        before = document.get("version")
        stdout = Output()
        if as_json:
            stdout.raw(to_json({"file": path, "output": target, "from": before, "to": int(version)}))
        else:
            stdout.line(f"{target}: version {version}" + (f", from version {before}" if before is not None else ""))
