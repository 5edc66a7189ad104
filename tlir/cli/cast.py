"""``tlir cast``: a graph in another floating-point format."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tlir.cli.console import Output
    from tlir.floatlib.format import Format
    from tlir.passes.cast import CastReport, Rounding


@click.command("cast", short_help="Compute in another floating-point format.")
@click.argument("path", metavar="FILE")
@click.option("--to", "to", metavar="FORMAT", help="The new format: float128, bfloat16, binary64, e11m100, …")
@click.option("--exponent-bits", metavar="N", type=int, help="The new format by its bits, in place of --to.")
@click.option("--fraction-bits", metavar="N", type=int, help="Bits of the fraction field.")
@click.option("--bias", metavar="N", type=int, help="Bias of the exponent (2^(bits-1) - 1).")
@click.option("--from", "sources", metavar="FORMAT", multiple=True, help="Change only this format; may be repeated.")
@click.option("--node", "nodes", metavar="ID|NAME", multiple=True, help="Change only this node; may be repeated.")
@click.option("--keep-io", is_flag=True, help="Keep the types of inputs and outputs, with converts at the border.")
@click.option("--keep-casts", is_flag=True, help="Keep the rounding of the program's own narrowing conversions.")
@click.option("-o", "--output", metavar="FILE", help="Where to write (standard output).")
@click.option("--in-place", is_flag=True, help="Replace FILE.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON; needs -o or --in-place.")
def command(
    path: str,
    to: str | None,
    exponent_bits: int | None,
    fraction_bits: int | None,
    bias: int | None,
    sources: tuple[str, ...],
    nodes: tuple[str, ...],
    keep_io: bool,
    keep_casts: bool,
    output: str | None,
    in_place: bool,
    as_json: bool,
) -> None:
    """Rewrite a graph to compute in another floating-point format, and write the new artifact.

    Every floating-point value gets the new format, complex ones over it too; integers and Booleans stay. Constants and
    samples are rounded once from their own words, and the report counts what that changed. --from and --node choose
    less than everything; what they leave out is joined by converts.

    The report goes to standard output, or to standard error where the artifact goes to standard output.
    """
    import sys

    from tlir.cli.console import Output, to_json
    from tlir.cli.group import about
    from tlir.cli.paths import existing
    from tlir.cli.rewriting import destination, document_of, write_graph
    from tlir.errors import UsageError
    from tlir.passes.cast import cast
    from tlir.schema import lowest_version, read

    target = destination(existing(path), output, in_place)
    if as_json and target is None:
        raise UsageError("TL0901", "--json needs a file to write to", hint="add -o FILE or --in-place")
    wanted = _wanted(to, exponent_bits, fraction_bits, bias)
    graph = read(path)
    document = document_of(path)
    with about(path):
        changed, report = cast(graph, wanted, sources=sources, nodes=nodes, keep_io=keep_io, keep_casts=keep_casts)
    write_graph(changed, target, max(document.get("version", 1), lowest_version(changed)), "external" in document)
    stream = Output(sys.stderr if target is None else None)
    if as_json:
        stream.raw(to_json({"file": path, "output": target, **report.to_json()}))
        return
    _show(stream, report, target or "standard output")


def _wanted(to: str | None, exponent_bits: int | None, fraction_bits: int | None, bias: int | None) -> str | Format:
    from tlir.errors import UsageError
    from tlir.floatlib.format import Format, FormatError

    described = [value for value in (exponent_bits, fraction_bits, bias) if value is not None]
    if (to is None) == (not described):
        reason = "a format is given either by --to or by its bits" if to else "there is no format to cast to"
        raise UsageError("TL0901", reason, hint="give --to FORMAT, or --exponent-bits and --fraction-bits")
    if to is not None:
        return to
    if exponent_bits is None or fraction_bits is None:
        raise UsageError("TL0901", "a format needs both --exponent-bits and --fraction-bits")
    try:
        return Format(exponent_bits, fraction_bits, bias)  # type: ignore[arg-type]  # None is the bias of IEEE
    except FormatError as error:
        raise UsageError("TL0213", str(error)) from None


def _show(stream: Output, report: CastReport, where: str) -> None:
    from tlir.cli.console import counted

    for entry in (*report.constants, *report.samples):
        if not entry.exact:
            stream.line(f"{_label(entry)}, {entry.before.dtype.name} -> {entry.after.dtype.name}: {_counts(entry)}")
    exact = sum(entry.exact for entry in report.constants)
    if report.constants:
        stream.line(f"constants: {exact} of {len(report.constants)} exactly the same numbers")
    if report.samples:
        exact = sum(entry.exact for entry in report.samples)
        stream.line(f"recorded inputs and outputs: {exact} of {len(report.samples)} exactly the same numbers")
    parts = [f"{counted(report.changed, 'node')} in {report.target.name}"]
    parts += [f"{counted(report.inserted, 'convert')} inserted"] if report.inserted else []
    parts += [f"{counted(report.dropped, 'convert')} of the program dropped"] if report.dropped else []
    parts += [f"{counted(report.kept, 'convert')} of the program kept"] if report.kept else []
    stream.line(f"{where}: {', '.join(parts)}")


def _label(entry: Rounding) -> str:
    from tlir.passes.render.escape import printable

    name = f" {printable(entry.name)}" if entry.name is not None else ""
    if entry.what == "constant":
        return f"%{entry.place} constant{name}"
    what = " input" if entry.what == "input" else ""  # an output's own name says what it is
    return f"sample {entry.place.partition('/')[0]}{what}{name}"


def _counts(entry: Rounding) -> str:
    words = {"inexact": "inexact", "overflow": "overflowed", "underflow": "underflowed", "invalid": "without a word"}
    counts = entry.counts()
    parts = [f"{counts[key]} {text}" for key, text in words.items() if counts[key]]
    parts += [f"{entry.payloads} lost the payload of a NaN"] if entry.payloads else []
    return f"of {entry.numbers} " + ("number " if entry.numbers == 1 else "numbers ") + ", ".join(parts)
