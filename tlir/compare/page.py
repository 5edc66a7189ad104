"""Comparisons as one HTML page that needs nothing from outside.

First what cannot be explained, then per artifact the outputs, how far their elements are away, the graph coloured by
what each node adds, and a table of the nodes. The content policy forbids everything but the page's own style sheet and
script; without JavaScript only sorting is missing.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tlir.compare.against import Pair, size
from tlir.compare.auto import VERDICTS, AutoOutput, AutoReport
from tlir.compare.locate import LedgerEntry, Location, NodeDifference
from tlir.compare.page_style import ERRORS, SCRIPT, STYLE
from tlir.compare.report import CompareReport, Element, OutputComparison
from tlir.compare.text import ulps_text
from tlir.ir.graph import Graph, Node
from tlir.passes.render.escape import xml
from tlir.passes.render.svg import LIMIT, draw
from tlir.passes.render.text import producer_parts, type_text

_LOW, _MID = 2, 64
_BINS = 12


@dataclass(frozen=True)
class Compared:
    """One artifact of a page. Without a ``report`` there is an ``error``; ``locations`` are those of the samples that
    have a trace."""

    file: str
    status: str
    graph: Graph | None = None
    report: CompareReport | None = None
    locations: tuple[Location, ...] = ()
    error: str = ""


def page(compared: Sequence[Compared]) -> str:
    """The page about the artifacts, those that fail first."""
    return "\n".join(_lines(compared)) + "\n"


def _hash(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def _lines(compared: Sequence[Compared]) -> Iterator[str]:
    policy = f"default-src 'none'; style-src {_hash(STYLE)}; script-src {_hash(SCRIPT)}; base-uri 'none'"
    good = sum(each.status == "passed" for each in compared)
    title = f"comparison of {xml(compared[0].file)}" if len(compared) == 1 else f"{len(compared)} comparisons"
    yield "<!doctype html>"
    yield '<html lang="en"><head><meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{policy}; form-action \'none\'">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{title}</title><style>{STYLE}</style></head><body>"
    yield f'<h1>{title}</h1><p class="faint">{good} of {len(compared)} passed</p>'
    if len(compared) > 1:
        yield f'<div class="scroll"><table class="sortable">{_head(["artifact", "result"])}<tbody>'
        for k, each in enumerate(compared):
            yield f'<tr><td><a href="#a{k}">{xml(each.file)}</a></td><td>{_badge(_status(each))}</td></tr>'
        yield "</tbody></table></div>"
    order = sorted(range(len(compared)), key=lambda k: compared[k].status == "passed")
    for k in order:
        yield from _artifact(k, compared[k])
    yield f"<script>{SCRIPT}</script></body></html>"


def _status(each: Compared) -> str:
    return each.report.verdict if isinstance(each.report, AutoReport) else each.status


def _badge(verdict: str) -> str:
    return f'<span class="verdict e-{_CLASSES.get(verdict, "none")}">{xml(verdict)}</span>'


_CLASSES = {
    "identical": "same",
    "reproduced": "same",
    "passed": "same",
    "rounding": "low",
    "reordering": "mid",
    "undecided": "open",
    "bug": "bug",
    "failed": "bug",
    "invalid": "bug",
    "fault": "bug",
}


def _artifact(k: int, each: Compared) -> Iterator[str]:
    yield f'<section><h2 id="a{k}">{xml(each.file)} {_badge(_status(each))}</h2>'
    graph, report = each.graph, each.report
    if graph is None or report is None:
        yield f"<p>{xml(each.error)}</p></section>"
        return
    facts = producer_parts(graph.producer) if graph.producer else []
    freedoms = report.freedoms if isinstance(report, AutoReport) else None
    facts.append(f"policy {freedoms}" if freedoms is not None else f"passes if {report.rule}")
    if report.pair is not None:
        facts = [
            *(f"{name}: {who}" for name, who in zip(report.pair.names, report.pair.recorded, strict=True)),
            facts[-1],
        ]
    yield f'<p class="faint">{xml(" · ".join(facts))}</p>'
    if report.pair is not None:
        for blamed in report.pair.blamed:
            told = f"{blamed.elements} elements of output {blamed.position} that differ are none of what it permits"
            yield f"<p><strong>{xml(blamed.name)}</strong>: {told}</p>"
    located = next((found for found in each.locations if found.suspect), None)
    if located is not None:
        yield from _suspect(k, graph, located)
    ledger = report.pair.ledger if report.pair is not None else (each.locations[0].ledger if each.locations else ())
    if ledger:
        yield from _ledger(ledger, report.pair.names if report.pair is not None else ("frontend", "reference"))
    yield from _outputs(report)
    yield from _histograms(report)
    if report.pair is not None and report.pair.nodes:
        yield from _pair_nodes(report.pair)
    drawn = [found for found in each.locations if report.pair is None or found.side == report.pair.names[0]]
    location = next((found for found in drawn if found.suspect), drawn[0] if drawn else None)
    yield from _drawing(k, graph, report, location)
    yield from _nodes(k, graph, report, location)
    yield "</section>"


def _suspect(k: int, graph: Graph, location: Location) -> Iterator[str]:
    suspect = location.suspect
    assert suspect is not None
    yield '<div class="suspect">'
    whose = f" in {xml(location.side)}" if location.side else ""
    yield f'<h3>Suspect{whose}: node <a href="#a{k}r{suspect.ref.node}">{xml(suspect.label)}</a></h3>'
    if suspect.source is not None:
        yield f"<p>at <code>{xml(str(suspect.source))}</code></p>"
    yield (
        f"<p>On the operands that the frontend recorded, no permitted execution gives its result"
        f"{f' (sample {location.sample})' if len(graph.samples) > 1 else ''}.</p>"
    )
    yield from _elements(suspect.local)
    if location.operands:
        yield '<div class="scroll"><table><thead><tr><th>operand</th><th>value</th></tr></thead><tbody>'
        for operand in location.operands:
            place = "" if operand.index is None else f" [{', '.join(map(str, operand.index))}]"
            yield f"<tr><td>{xml(operand.name + place)}</td><td>{xml(operand.value)}</td></tr>"
        yield "</tbody></table></div>"
    yield "</div>"


def _ledger(entries: Sequence[LedgerEntry], sides: tuple[str, str]) -> Iterator[str]:
    """Where special values first appear on one side alone."""
    heads = ["special value", "on the side of", "first at node", "element", *(f">{side}" for side in sides), "source"]
    yield f'<h3>Special values on one side alone</h3><div class="scroll"><table class="sortable">{_head(heads)}<tbody>'
    for entry in entries:
        place = f"[{', '.join(map(str, entry.index))}]" + (f", {entry.count} in all" if entry.count > 1 else "")
        cells = [entry.kind, entry.side, entry.label, place, entry.frontend, entry.reference]
        cells.append(str(entry.source) if entry.source else "")
        yield "<tr>" + "".join(_cell(cell, head) for cell, head in zip(cells, heads, strict=True)) + "</tr>"
    yield "</tbody></table></div>"


def _elements(found: OutputComparison, sides: tuple[str, str] = ("recorded", "should be")) -> Iterator[str]:
    bounds = list(found.bounds) if isinstance(found, AutoOutput) else []
    heads = ["element", *(f">{side}" for side in sides), *([">permitted from", ">to"] if bounds else []), ">ulps"]
    yield f'<div class="scroll"><table>{_head(heads)}<tbody>'
    for k, element in enumerate(found.worst):
        cells = [_index(element), element.expected, element.got]
        cells += [" ".join(bounds[k].low), " ".join(bounds[k].high)] if k < len(bounds) else []
        cells.append("–" if element.ulps is None else ulps_text(element.ulps, ","))
        yield "<tr>" + "".join(_cell(cell, head) for cell, head in zip(cells, heads, strict=False)) + "</tr>"
    yield "</tbody></table></div>"


def _head(heads: Sequence[str]) -> str:
    cells = (f'<th class="r">{xml(h[1:])}</th>' if h.startswith(">") else f"<th>{xml(h)}</th>" for h in heads)
    return f"<thead><tr>{''.join(cells)}</tr></thead>"


def _cell(text: str, head: str) -> str:
    return f'<td class="r">{xml(text)}</td>' if head.startswith(">") else f"<td>{xml(text)}</td>"


def _index(element: Element) -> str:
    return f"[{', '.join(map(str, element.index))}]" if element.index else "(scalar)"


def _outputs(report: CompareReport) -> Iterator[str]:
    auto = any(isinstance(found, AutoOutput) for found in report.outputs)
    heads = ["output", "type", *(["sample"] if report.samples > 1 else []), "result", ">equal words", ">failing"]
    heads += [">max ulps", ">max difference", *([">justified"] if auto else []), "source"]
    yield f'<h3>Outputs</h3><div class="scroll"><table class="sortable">{_head(heads)}<tbody>'
    for found in report.outputs:
        verdict = found.verdict if isinstance(found, AutoOutput) else "passed" if found.ok else "failed"
        cells = [_cell(found.name, ""), _cell(str(found.type), "")]
        cells += [_cell(str(found.sample), "")] if report.samples > 1 else []
        counts = found.counts or {} if isinstance(found, AutoOutput) else {}
        told = ", ".join(f"{count} {name}" for name, count in counts.items())
        cells.append(f'<td class="told">{_badge(verdict)} {xml(told)}</td>')
        cells.append(_number(found.equal_words, f"{found.equal_words} of {found.count}"))
        cells.append(_number(found.failing))
        cells.append(_number(found.ulps))
        difference = found.max_absolute.absolute if found.max_absolute else None
        cells.append(_number(float(difference) if difference is not None else 0.0))
        if isinstance(found, AutoOutput):
            cells.append(_number(found.justified))
        cells.append(_cell(str(found.source) if found.source else "", ""))
        yield f"<tr>{''.join(cells)}</tr>"
    yield "</tbody></table></div>"
    for found in report.outputs:
        if not found.ok:
            sample = f" of sample {found.sample}" if report.samples > 1 else ""
            told = f"1 element{sample} that does" if found.failing == 1 else f"{found.failing} elements{sample} that do"
            worst = "the worst of " if found.failing > len(found.worst) else ""
            yield f"<h3>{xml(found.name)}: {worst}{told} not pass</h3>"
            yield from _elements(found, ("first", "second") if report.pair is not None else ("recorded", "should be"))


def _pair_nodes(pair: Pair) -> Iterator[str]:
    """The values that both artifacts recorded, with what each node adds."""
    heads = ["node", "type", ">adds", ">apart", ">ulps apart", ">equal words", "source"]
    yield "<h3>What each node adds, and how far both are apart</h3>"
    yield f'<div class="nodes scroll"><table class="sortable">{_head(heads)}<tbody>'
    for node in pair.nodes:
        apart = node.difference
        cells = [_cell(node.label, ""), _cell(str(apart.type), "")]
        cells += [_number(size(found)) for found in (node.added, apart)]
        cells += [_number(apart.ulps), _number(apart.equal_words, f"{apart.equal_words} of {apart.count}")]
        cells.append(_cell(str(node.source) if node.source else "", ""))
        yield f"<tr>{''.join(cells)}</tr>"
    yield "</tbody></table></div>"


def _number(value: float, text: str | None = None) -> str:
    shown = text if text is not None else ulps_text(value, ",") if isinstance(value, int) else f"{value:.3g}"
    return f'<td class="r" data-v="{value!r}">{xml(shown)}</td>'


def bars(histogram: Sequence[tuple[int, int]], limit: int = _BINS) -> list[tuple[str, int]]:
    """A histogram of distances as lines: what they are ("0", "1", "2–3", "4–7", …) and how many elements; neighbours
    are put together where there would be more than ``limit``. Those below the first that is not empty are left out."""
    counts = dict(histogram)
    top = max(counts, default=0)
    first = min((bits for bits in counts if bits), default=1)
    step = -(-(top - first + 1) // max(limit - 1, 1)) or 1
    lines = [("0", counts.get(0, 0))]
    for start in range(first, top + 1, step):
        end = min(start + step - 1, top)
        low, high = ulps_text(1 << (start - 1)), ulps_text((1 << end) - 1)
        lines.append((low if low == high else f"{low}–{high}", sum(counts.get(b, 0) for b in range(start, end + 1))))
    return lines


def _histograms(report: CompareReport) -> Iterator[str]:
    shown = [found for found in report.outputs if found.histogram and found.count]
    if not shown:
        return
    yield '<h3>Distances in ulps</h3><div class="histograms">'
    for found in shown:
        sample = f", sample {found.sample}" if report.samples > 1 else ""
        yield f"<figure>{_bars(bars(found.histogram))}<figcaption>{xml(found.name)}{sample}"
        missed = f"; {found.mismatched} NaN or infinite on one side" if found.mismatched else ""
        yield f"{missed}</figcaption></figure>"
    yield "</div>"


def _bars(lines: Sequence[tuple[str, int]]) -> str:
    most = max((count for _, count in lines), default=1) or 1
    left = 8 * max(len(text) for text, _ in lines) + 10
    parts = [
        f'<svg class="bars" width="{left + 330}" height="{20 * len(lines) + 4}" role="img" aria-label="histogram">'
    ]
    for k, (text, count) in enumerate(lines):
        y = 20 * k
        parts.append(f'<text x="{left - 8}" y="{y + 15}" text-anchor="end">{text}</text>')
        width = max(240 * count / most, 2 if count else 0)
        most_ulps = float(text.split("–")[-1])
        kind = "same" if not most_ulps else "low" if most_ulps <= 3 else "mid" if most_ulps < 2 * _MID else "high"
        parts.append(f'<rect class="{kind}" x="{left}" y="{y + 3}" width="{width:.1f}" height="15" rx="2"/>')
        parts.append(f'<text x="{left + width + 6:.1f}" y="{y + 15}">{count:,}</text>')
    return "".join(parts) + "</svg>"


def _classes(graph: Graph, report: CompareReport, location: Location | None) -> dict[int, str]:
    """The class of each node that was compared: by what it adds itself where there is a trace, else by the outputs."""
    found: dict[int, str] = {}
    if location is not None:
        for difference in location.nodes:
            found[difference.ref.node] = _worse(found.get(difference.ref.node), error_class(difference.local))
        return found
    for output in report.outputs:
        node = graph.body.outputs[output.position].node
        found[node] = _worse(found.get(node), error_class(output))
    return found


def _worse(a: str | None, b: str) -> str:
    return b if a is None else max(a, b, key=list(ERRORS).index)


def error_class(found: OutputComparison) -> str:
    """The key in ``ERRORS`` of a comparison."""
    if isinstance(found, AutoOutput) and found.verdict in ("undecided", "bug"):
        return "bug" if found.verdict == "bug" else "open"
    if not isinstance(found, AutoOutput) and not found.ok:
        return "bug"
    if found.equal_words == found.count or not found.ulps:
        return "same"
    return "low" if found.ulps <= _LOW else "mid" if found.ulps <= _MID else "high"


_GROUP = re.compile(r'<g class="n [a-z]+( out)?" id="n([0-9]+)"')


def _drawing(k: int, graph: Graph, report: CompareReport, location: Location | None) -> Iterator[str]:
    classes = _classes(graph, report, location)
    suspect = location.suspect.ref.node if location is not None and location.suspect is not None else None
    drawing = draw(graph, LIMIT, standalone=False)

    def colour(match: re.Match[str]) -> str:
        node = int(match.group(2))
        kind = f"e-{classes.get(node, 'none')}" + (" suspect-node" if node == suspect else "")
        return f'<g class="n {kind}{match.group(1) or ""}" id="a{k}n{node}"'

    basis = "what each node adds on the operands recorded for it" if location is not None else "the verdict of outputs"
    yield f"<h3>Graph, coloured by {basis}</h3>"
    legend = "".join(f'<li class="e-{name}"><i></i>{xml(text)}</li>' for name, text in ERRORS.items())
    yield f'<ul class="legend">{legend}</ul>'
    if drawing.drawn < drawing.total:
        yield f'<p class="faint">{drawing.caption} drawn</p>'
    svg = _GROUP.sub(colour, drawing.svg).replace('id="arrow"', f'id="a{k}arrow"').replace("#arrow", f"#a{k}arrow")
    yield f'<div class="drawing" tabindex="0">{svg}</div>'


def _nodes(k: int, graph: Graph, report: CompareReport, location: Location | None) -> Iterator[str]:
    differences: Mapping[int, NodeDifference] = {d.ref.node: d for d in reversed(location.nodes)} if location else {}
    outputs = {graph.body.outputs[found.position].node: found for found in reversed(report.outputs)}
    classes = _classes(graph, report, location)
    heads = [">node", "result", "operation", "type", "name"]
    heads += [">own ulps", ">permitted", ">ulps from inputs"] if location else [">ulps"]
    yield f'<h3>Nodes</h3><div class="nodes scroll"><table class="sortable">{_head([*heads, "source"])}<tbody>'
    suspect = location.suspect.ref.node if location is not None and location.suspect is not None else None
    for node in graph.body.nodes:
        yield _node_row(k, node, classes, differences.get(node.id), outputs.get(node.id), location, suspect)
    yield "</tbody></table></div>"


def _node_row(
    k: int,
    node: Node,
    classes: Mapping[int, str],
    difference: NodeDifference | None,
    output: OutputComparison | None,
    location: Location | None,
    suspect: int | None,
) -> str:
    operands = ", ".join(str(ref) for ref in node.inputs)
    call = f"{node.op}({operands})" if operands else node.op
    told = [_cell(call, ""), _cell(type_text(node), ""), _cell(node.name or "", "")]
    nothing = '<td class="r" data-v="-1"></td>'
    judged = difference.local if difference is not None else None if location is not None else output
    if judged is None:
        verdict, rank = "", -1
    elif isinstance(judged, AutoOutput):
        verdict, rank = judged.verdict, VERDICTS.index(judged.verdict)
    else:
        verdict, rank = ("passed", 0) if judged.ok else ("failed", len(VERDICTS))
    result = f'<td class="e-{classes.get(node.id, "none")}" data-v="{rank}">{xml(verdict)}</td>'
    cells = [_number(node.id, f"{node.id}"), result, *told]
    if location is not None:
        cells.append(_number(difference.local.ulps) if difference else nothing)
        cells.append(_number(difference.local.justified) if difference else nothing)
        cells.append(_number(difference.propagated.ulps) if difference else nothing)
    else:
        cells.append(_number(output.ulps) if output else nothing)
    cells.append(_cell(str(node.source) if node.source else "", ""))
    mark = ' class="mark"' if node.id == suspect else ""
    return f'<tr id="a{k}r{node.id}"{mark}>{"".join(cells)}</tr>'
