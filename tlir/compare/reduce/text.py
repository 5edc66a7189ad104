"""The text beside a reduction, made to be pasted into a report of a fault."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from tlir.compare.auto import AutoOutput
from tlir.compare.reduce.program import input_names
from tlir.compare.reduce.search import Reduction, Rules
from tlir.compare.report import Element
from tlir.compare.text import element_text, ulps_text
from tlir.ir.graph import Graph
from tlir.passes.render.escape import printable
from tlir.passes.render.text import graph_text

if TYPE_CHECKING:
    from tlir.compare.reduce.folder import Written

_SHOWN = 16
"""So many elements of a value are written out."""


def readme(reduction: Reduction, graph: Graph, small: Graph, written: Written, rules: Rules) -> str:
    """Markdown: what is wrong, versions, the graph, the values, the verdict, and how to run it."""
    return "\n".join(_lines(reduction, graph, small, written, rules)) + "\n"


def _lines(reduction: Reduction, graph: Graph, small: Graph, written: Written, rules: Rules) -> Iterator[str]:
    suspect, found = reduction.suspect, reduction.found
    producer = graph.producer
    frontend = f"{producer.frontend} {producer.frontend_version}".strip() if producer else "the frontend"
    what = suspect.op if reduction.basis != "outputs" else f"a graph that ends in {suspect.op}"
    yield f"# {frontend}: {what} gives a value that it should not give ({found.type})"
    yield ""
    yield from _what(reduction, graph, frontend)
    yield ""
    yield "## Values"
    yield ""
    yield from _values(reduction)
    yield ""
    yield "## Graph"
    yield ""
    yield "```"
    yield from graph_text(small).splitlines()
    yield "```"
    yield ""
    if suspect.source is not None:
        yield f"Written at `{printable(str(suspect.source))}`."
        yield ""
    yield "## How to run it"
    yield ""
    yield from _runs(written, rules)
    yield ""
    yield "## Versions"
    yield ""
    if producer is not None:
        made = "compiled" if producer.outputs == "compiled" else "one operation at a time"
        place = f" on {printable(producer.platform)}" if producer.platform else ""
        yield f"- recorded by {printable(frontend)}{place}, {made}"
    yield f"- compared by tlir {_version('tlir')}, Python {platform.python_version()}, NumPy {_version('numpy')}"
    if producer is not None:
        yield f"- {printable(producer.frontend)} installed where this was written: {_version(producer.frontend)}"


def _what(reduction: Reduction, graph: Graph, frontend: str) -> Iterator[str]:
    found = reduction.found
    single = sum(node.op not in ("input", "constant") for node in reduction.piece.body.nodes) == 1
    yield (
        f"Verdict: **{reduction.verdict}**. Elements of the result outside of what is permitted: "
        f"{found.failing} of {found.count} ({rules_text(reduction)})."
    )
    yield ""
    yield {
        "trace": (
            "The operands and the result are those that the frontend recorded"
            + (" for this one operation." if single else "; operations whose values it did not record lie between.")
        ),
        "frontend": "The result is what the frontend, run again on these operands, gives.",
        "outputs": (
            "Only the outputs were recorded. The operands are the values that the reference computes where this part "
            "of the graph begins, and the result is the recorded output: it says what is wrong, but the difference may "
            "have begun anywhere before. Captured with `trace=True` (or `--trace`) it can be located."
        ),
    }[reduction.basis]
    piece = reduction.piece
    yield ""
    nodes, elements = reduction.before
    yield (
        f"Reduced from a graph of {nodes} nodes, whose inputs and constants have {elements} elements "
        f"(`{printable(graph.name or 'graph')}`, sample {reduction.sample}, {printable(reduction.output)}), "
        f"to {piece.count} nodes and {piece.elements} elements."
    )
    for note in reduction.notes:
        yield ""
        yield f"Note: {note}."


def rules_text(reduction: Reduction) -> str:
    """What was permitted, in words."""
    if reduction.freedoms is not None:
        return f"policy {reduction.freedoms}"
    return f"passes if {reduction.report.rule}"


def _values(reduction: Reduction) -> Iterator[str]:
    found = reduction.found
    bounds = list(found.bounds) if isinstance(found, AutoOutput) else []
    yield "| element | frontend | should be | " + ("permitted from | to | " if bounds else "") + "ulps |"
    yield "|---|---|---|" + ("---|---|" if bounds else "") + "---|"
    for k, element in enumerate(found.worst):
        cells = [_index(element), _exact(element.expected, element.expected_words)]
        cells.append(_exact(element.got, element.got_words))
        if k < len(bounds):
            cells += [" ".join(bounds[k].low), " ".join(bounds[k].high)]
        cells.append("–" if element.ulps is None else ulps_text(element.ulps))
        yield "| " + " | ".join(cells) + " |"
    yield ""
    yield "| operand | type | values |"
    yield "|---|---|---|"
    body = reduction.piece.body
    for name, place, tensor in zip(input_names(body), body.input_ids, reduction.piece.inputs, strict=True):
        count = min(tensor.type.size, _SHOWN)
        shown = ", ".join(element_text(tensor, k) for k in range(count)) + (", …" if tensor.type.size > count else "")
        yield f"| `{name}` (%{place}) | {tensor.type} | {shown} |"


def _exact(text: str, words: str) -> str:
    return f"{text} (`{words}`)"


def _index(element: Element) -> str:
    return f"[{', '.join(map(str, element.index))}]" if element.index else "(scalar)"


def _runs(written: Written, rules: Rules) -> Iterator[str]:
    again = "still failed" if written.still_fails else "did not fail any more"
    command = " ".join(filter(None, ("tlir compare", rules.options, "reduced.json")))
    if "reproduce.py" in written.files:
        yield "- `python reproduce.py`: in the frontend alone; exit code 1 while the fault is there. " + _script(
            written
        )
    else:
        yield f"- A program of the frontend alone was {written.script}."
    yield f"- `{command}`: compares with what was recorded. When this was written it {again}."


def _script(written: Written) -> str:
    if written.script == "fails":
        return "Run when this was written: the fault is there."
    if written.script == "passes":
        return (
            "Run when this was written: the fault is **not** there. The frontend that is installed there computes this "
            "as it should; what was recorded came about otherwise (another version or device, compiled code, or an "
            "earlier operation)."
        )
    return f"When this was written it was {written.script}."


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
