"""``tlir info``: this installation, a number format, or an artifact in numbers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from tlir.cli.console import Output
    from tlir.floatlib.format import Format

PACKAGES = ("numpy", "ml_dtypes", "python-flint", "safetensors", "click", "rich")
FRONTENDS = ("jax", "torch")


@click.command("info", short_help="About this installation, a number format, or an artifact.")
@click.argument("subject", metavar="[FORMAT|FILE]", required=False)
@click.option("--exponent-bits", metavar="N", type=int, help="A format of one's own: bits of the exponent field.")
@click.option("--fraction-bits", metavar="N", type=int, help="Bits of the fraction field.")
@click.option("--bias", metavar="N", type=int, help="Bias of the exponent (2^(bits-1) - 1).")
@click.option("--no-infinities", is_flag=True, help="The format has no infinities.")
@click.option("--nans", type=click.Choice(("ieee", "all_ones", "negative_zero", "none")), help="Where NaN is (ieee).")
@click.option("--no-signed-zero", is_flag=True, help="There is no -0.")
@click.option("--unsigned", is_flag=True, help="There is no sign bit.")
@click.option("--no-subnormals", is_flag=True, help="There are neither subnormal numbers nor a zero.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document.")
def command(subject: str | None, as_json: bool, **options: Any) -> None:
    """Show versions, devices and frontends; or, for the name of a dtype or number format (float16, e5m10), its numbers;
    or, for an artifact, what it holds.

    A number format is also described by --exponent-bits and --fraction-bits and the options that follow them.
    """
    from tlir.cli.console import Output, to_json

    kind, facts = _facts(subject, options)
    output = Output()
    if as_json:
        output.raw(to_json(facts))
    elif kind == "installation":
        _show_installation(output, facts)
    elif kind == "dtype":
        _show_dtype(output, facts)
    else:
        _show_artifact(output, facts)


def _facts(subject: str | None, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    from tlir.errors import UsageError
    from tlir.floatlib.format import Format, FormatError
    from tlir.passes.render.formats import dtype_facts, find, format_facts

    described = any(value not in (None, False) for value in options.values())
    if described and subject is not None:
        raise UsageError("TL0901", "a format is given either by its name or by its bits")
    try:
        if described:
            return "dtype", format_facts(_described(options))
        found = None if subject is None else find(subject)
    except FormatError as error:
        raise UsageError("TL0213", str(error)) from None
    if isinstance(found, Format):
        return "dtype", format_facts(found)
    if found is not None:
        return "dtype", dtype_facts(found)
    return ("installation", installation()) if subject is None else ("artifact", _artifact(subject))


def _described(options: dict[str, Any]) -> Format:
    from tlir.errors import UsageError
    from tlir.floatlib.format import Format

    if options["exponent_bits"] is None or options["fraction_bits"] is None:
        raise UsageError("TL0901", "a format needs both --exponent-bits and --fraction-bits")
    return Format(
        options["exponent_bits"],
        options["fraction_bits"],
        options["bias"],
        infinities=not options["no_infinities"],
        nans=options["nans"] or "ieee",
        signed_zero=not options["no_signed_zero"],
        signed=not options["unsigned"],
        subnormals=not options["no_subnormals"],
    )


def installation() -> dict[str, Any]:
    """Versions, devices and frontends as a JSON object; a package that is not installed has the version null. No
    frontend is imported."""
    import platform

    from tlir.backends import DEVICES
    from tlir.ir.ops import OPERATIONS
    from tlir.ir.types import NAMED

    return {
        "tlir": _version("tlir"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "packages": {name: _version(name) for name in PACKAGES},
        "frontends": {name: _version(name) for name in FRONTENDS},
        "devices": dict(DEVICES),
        "operations": len(OPERATIONS),
        "dtypes": list(NAMED),
    }


def _version(package: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _artifact(path: str) -> dict[str, Any]:
    from tlir.cli.paths import existing
    from tlir.cli.rewriting import document_of
    from tlir.errors import UsageError
    from tlir.passes.render.summary import graph_facts
    from tlir.schema import lowest_version, read

    if not os.path.exists(path) and not os.path.dirname(path) and "." not in path:
        hint = "`tlir info` lists the dtypes; a format of one's own is written e5m10"
        raise UsageError("TL0902", f"{path!r} is neither a dtype nor a file", hint=hint)
    graph = read(existing(path))
    document = document_of(path)
    facts: dict[str, Any] = {"file": path, "version": document.get("version", lowest_version(graph))}
    facts |= graph_facts(graph)
    if os.path.isfile(path):
        facts["bytes"] = {"file": os.path.getsize(path), **facts["bytes"]}
    facts["external"] = document.get("external", {})
    return facts


# ---- as text --------------------------------------------------------------------------------------------------------


def _fields(output: Output, fields: list[tuple[str, str]], indent: int = 0) -> None:
    width = max(len(name) for name, _ in fields)
    for name, value in fields:
        output.line((f"{name:<{width}}  ", "label"), value, indent=indent)


def _show_installation(output: Output, facts: dict[str, Any]) -> None:
    fields = [("tlir", facts["tlir"] or "not installed, from a source tree"), ("Python", facts["python"])]
    fields += [("platform", f"{facts['platform']}, {facts['processors']} processors")]
    fields += [(name, version or "not installed") for name, version in facts["packages"].items()]
    _fields(output, fields)
    for title, table in (("frontends", facts["frontends"]), ("devices", facts["devices"])):
        output.blank()
        output.line((title, "heading"))
        _fields(output, [(name, text or "not installed") for name, text in table.items()], indent=2)
    output.blank()
    output.line((f"{len(facts['dtypes'])} dtypes", "heading"), ", and complex<F> over any float type F")
    output.line(", ".join(facts["dtypes"]), indent=2)
    output.blank()
    output.line(f"{facts['operations']} operations, listed by `tlir ops`")


def _show_dtype(output: Output, facts: dict[str, Any]) -> None:
    output.line((facts["name"], "heading"), f": {_bits(facts)}")
    if "components" in facts:
        output.line("two components, real and imaginary:", indent=2)
        _show_dtype(output, facts["components"])
    elif "numbers" in facts:
        _show_format(output, facts)
    elif "least" in facts:
        _fields(output, [("least", str(facts["least"])), ("greatest", str(facts["greatest"]))], indent=2)


def _bits(facts: dict[str, Any]) -> str:
    bits = f"{facts['width']} bit{'' if facts['width'] == 1 else 's'}"
    if "exponent_bits" not in facts:
        return bits
    sign = "1 sign, " if facts["sign_bits"] else "no sign, "
    return f"{bits}: {sign}{facts['exponent_bits']} exponent, {facts['fraction_bits']} fraction"


def _show_format(output: Output, facts: dict[str, Any]) -> None:
    from tlir.cli.console import counted

    fields = [
        ("bias", str(facts["bias"])),
        ("exponents", f"{facts['least_exponent']} to {facts['greatest_exponent']}"),
        ("precision", counted(facts["precision"], "bit")),
        *((name, text) for name, text in facts["special"].items()),
    ]
    _fields(output, fields, indent=2)
    output.blank()
    rows = []
    for name, number in facts["numbers"].items():
        exact = number["exact"] or number["hexadecimal"]
        rows.append((name.replace("_", " "), number["decimal"] or "-", exact, number["word"] or "-"))
    output.table(("number", "decimal", "exact", "word"), rows, indent=2)


def _show_artifact(output: Output, facts: dict[str, Any]) -> None:
    from tlir.passes.render.summary import size_text

    output.line((facts["file"], "heading"), f": {facts['name'] or 'without a name'}, format version {facts['version']}")
    counts = facts["counts"]
    nodes = str(counts["nodes"]) + (f", {counts['nodes_in_regions']} in regions" if counts["nodes_in_regions"] else "")
    samples = str(counts["samples"]) + (f", {counts['traces']} with a trace" if counts["traces"] else "")
    fields = [("nodes", nodes), ("samples", f"{samples}, {size_text(facts['bytes']['samples'])}")]
    fields.append(("constants", f"{counts['constants']}, {size_text(facts['bytes']['constants'])}"))
    if "file" in facts["bytes"]:
        fields.append(("file", size_text(facts["bytes"]["file"])))
    if "producer" in facts:
        producer = facts["producer"]
        parts = [f"{producer['frontend']} {producer['frontend_version']}".strip(), producer["platform"]]
        parts += [f"outputs {producer['outputs']}", *(f"{k} = {v}" for k, v in producer["flags"].items())]
        fields.append(("producer", ", ".join(part for part in parts if part)))
    if "tolerance" in facts:
        fields.append(("tolerance", facts["tolerance"]))
    fields.append(("operations", _frequencies(facts["operations"])))
    fields.append(("dtypes", _frequencies(facts["dtypes"])))
    if facts["sources"]:
        fields.append(("sources", _frequencies(facts["sources"])))
    _fields(output, fields, indent=2)
    _list(output, "inputs", [(item["name"], item["type"]) for item in facts["inputs"]])
    _list(output, "outputs", [(item["value"], item["type"]) for item in facts["outputs"]])
    rows = [
        (f"%{item['node']} {item['name']}".strip(), f"{item['type']}, {size_text(item['bytes'])}")
        for item in facts["largest_constants"]
    ]
    _list(output, "largest constants", rows)
    _list(output, "formats", [(name, str(fmt)) for name, fmt in facts["formats"].items()])
    files = [(name, f"{size_text(item['size'])}, sha256 {item['sha256']}") for name, item in facts["external"].items()]
    _list(output, "external files", files)


def _frequencies(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items()) or "none"


def _list(output: Output, title: str, rows: list[tuple[str, str]]) -> None:
    if rows:
        output.line((title, "heading"), indent=2)
        _fields(output, rows, indent=4)
