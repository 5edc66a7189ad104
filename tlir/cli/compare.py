"""``tlir compare``: artifacts against the outputs that their frontend recorded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tlir.cli.options import chosen_format, error_case, reporting, write_report

if TYPE_CHECKING:
    from tlir.cli.console import Cell, Output
    from tlir.cli.formats import Case
    from tlir.cli.outcome import Outcome
    from tlir.compare import CompareReport, Element, OutputComparison
    from tlir.compare.auto import AutoOutput, AutoReport, Bound


@click.command("compare", short_help="Compare artifacts with the outputs that the frontend recorded.")
@reporting(("junit", "github"))
@click.option(
    "--tolerance",
    metavar="T",
    help="Largest absolute difference (the artifact's own, or 2e-5), or auto: what the mathematics permits.",
)
@click.option("--rtol", metavar="R", default="0", help="Plus R times the recorded absolute value (0).")
@click.option("--ulps", metavar="N", type=int, help="Largest distance in units in the last place.")
@click.option("--words", is_flag=True, help="Bits must be equal; NaNs of any payload are.")
@click.option("--nan-payload", is_flag=True, help="With --words: payloads of NaNs must be equal too.")
@click.option("--policy", metavar="POLICY", help="With auto: strict, reorder, frontend (default) or loose.")
@click.option(
    "--accuracy", metavar="FILE", type=click.Path(path_type=Path), help="With auto: a table of functions' errors."
)
@click.option("--device", metavar="DEVICE", default="reference", help="Where to run (reference).")
@click.option("--against", metavar="FILE", help="Compare FILE… with another artifact of the same graph instead.")
@click.option("--html", metavar="FILE", help="Also write the report as one HTML page.")
@click.pass_context
def command(
    ctx: click.Context,
    paths: tuple[str, ...],
    as_json: bool,
    format: str | None,
    quiet: bool,
    tolerance: str | None,
    rtol: str,
    ulps: int | None,
    words: bool,
    nan_payload: bool,
    policy: str | None,
    accuracy: Path | None,
    device: str,
    against: str | None,
    html: str | None,
) -> None:
    """Run artifacts, and all those in folders, on their recorded inputs, and compare every output with the recorded
    one.

    An element passes if |got - recorded| <= T + R*|recorded|. With --ulps alone it passes if it is at most N numbers
    of its format away; with --ulps and a tolerance, if either holds. Integers must be equal unless --ulps is given,
    Booleans always. NaN equals NaN, an infinity only itself, and -0 equals 0 except under --words.

    With --tolerance auto every element is judged by rigorous bounds of what other orders of summation, fused operations
    and functions of a stated accuracy can give: identical, rounding, reordering, undecided or bug. A bug fails; so does
    what is undecided, unless it meets --rtol or --ulps.

    Two artifacts of the same graph (compiled and not, float32 and bfloat16, two versions of a frontend) are also
    compared with each other; --against does that alone. Unless a tolerance is given, bounds judge the difference.

    Of an artifact with a trace that does not pass, the node where the difference starts is shown (see `tlir locate`).

    Exit code: 0 if all pass; otherwise the first of 70, 3 (not a valid artifact), 4 (not possible here) and 1
    (something differs) that any file gives.
    """
    from tlir.cli.compare_pair import Chosen, Pairs, show_pair
    from tlir.cli.compare_report import Details
    from tlir.cli.console import Output
    from tlir.cli.paths import artifacts, spare
    from tlir.cli.progress import Progress
    from tlir.compare import check_options, compare

    written = chosen_format(format, as_json)
    check_options(
        tolerance, rtol, ulps, words, nan_payload, policy, accuracy
    )  # wrong options are an error before the first file is read
    files = artifacts(paths)
    spare(html, *files, *([against] if against is not None else []), *([str(accuracy)] if accuracy is not None else []))
    output = Output()
    chosen = Chosen(tolerance, rtol, ulps, words, nan_payload, policy, accuracy)
    pairs = Pairs(files, paths, against)
    if against is not None:
        files = []
    files += list(pairs)

    auto = tolerance == "auto" and device == "reference"
    details = Details(html, policy, accuracy)

    def examine(file: str) -> CompareReport:
        if file in pairs:
            return details.look(file, pairs.first(file), pairs.compare(file, chosen))
        graph = pairs.load(file)
        progress.expect(len(graph.nodes) * len(graph.samples))

        def evaluate(graph: Any, inputs: Any) -> Sequence[Any]:
            from tlir.backends import run

            # only the reference goes node by node
            observe = (lambda node, results: progress.advance()) if device == "reference" else None
            return run(graph, inputs, device=device, observe=observe)

        report = compare(
            graph,
            tolerance=tolerance,
            rtol=rtol,
            ulps=ulps,
            words=words,
            nan_payload=nan_payload,
            device=device,
            evaluate=None if auto else evaluate,
            policy=policy,
            table=accuracy,
            observe=lambda node: progress.advance(),
        )
        return details.look(file, graph, report)

    def show(output: Output, outcome: Outcome[CompareReport]) -> None:
        _show(output, outcome)
        if outcome.report is not None and outcome.report.pair is not None:
            show_pair(output, outcome.report.pair)
        details.show(output, outcome.report)

    debug = bool(ctx.find_root().params.get("debug"))
    with Progress("comparing", len(files), output) as progress:
        arguments = (files, examine, show, _cases, progress, output, debug, details.add)
        code = write_report("compare", written, quiet, *arguments)
        details.write()
    ctx.exit(code)


def _show(output: Output, outcome: Outcome[CompareReport]) -> None:
    report = outcome.report
    output.line((outcome.file, "heading"), ": ", (outcome.status, outcome.status))
    if report is None:
        return
    several = report.samples > 1
    if isinstance(report, _auto()):
        _show_auto(output, report, several)
        return
    output.line((_recorded(report) + f"passes if {report.rule}", "label"), indent=2)
    headings = ("output", "type", ">sample", ">equal words", ">max ulps", "max abs diff", "max rel diff", "source")
    output.table(headings, [_row(found, several) for found in report.outputs], indent=2)
    for freedom in sorted({found.freedom for found in report.outputs if found.freedom}):
        names = ", ".join(found.name for found in report.outputs if found.freedom == freedom and not found.sample)
        output.line((f"{names}: compared {freedom}", "label"), indent=2)
    for found in report.outputs:
        if not found.ok:
            _show_failing(output, found, several, report.pair is not None)


def _auto() -> type[AutoReport]:
    from tlir.compare.auto import AutoReport

    return AutoReport


VERDICT_STYLES = {"undecided": "unsupported", "bug": "failed"}


def _show_auto(output: Output, report: AutoReport, several: bool) -> None:
    """The verdicts, what they are based on, and how far the bounds reach."""
    output.line((_recorded(report) + f"policy {report.freedoms}", "label"), indent=2)
    headings = (
        "output",
        "type",
        ">sample",
        "verdict",
        "elements",
        ">max ulps",
        ">tolerance needed",
        ">justified",
        "source",
    )
    found = [each for each in report.outputs if isinstance(each, _auto_output())]
    output.table(headings, [_auto_row(each, several) for each in found], indent=2)
    for each in found:
        if each.choice is not None:
            output.line((f"{each.name}: every word by {each.choice}", "label"), indent=2)
        for reason, count in each.reasons:
            where = f" at {reason.source}" if reason.source else ""
            node = f", node {reason.node}" if reason.node else ""
            output.line((f"{each.name}: {count} undecided: {reason.text}{node}{where}", "label"), indent=2)
        if not each.ok:
            _show_failing(output, each, several, report.pair is not None)
            rows = [
                (index_text(bound) or "(scalar)", " ".join(bound.low), " ".join(bound.high)) for bound in each.bounds
            ]
            output.table(("index", ">permitted from", ">to"), rows, indent=4)


def _auto_output() -> type[AutoOutput]:
    from tlir.compare.auto import AutoOutput

    return AutoOutput


def _auto_row(found: AutoOutput, several: bool) -> tuple[Cell, ...]:
    absolute = found.max_absolute
    counts = ", ".join(f"{count} {verdict}" for verdict, count in (found.counts or {}).items())
    return (
        found.name,
        str(found.type),
        str(found.sample) if several else "",
        (found.verdict, VERDICT_STYLES.get(found.verdict, "passed")),
        counts,
        steps(found.ulps),
        short(absolute.absolute) if absolute else "–" if found.mismatched else "0",
        f"{found.justified:.3g}",
        f"{found.source.file}:{found.source.line}" if found.source else "",
    )


def _recorded(report: CompareReport) -> str:
    if report.pair is not None:
        return f"recorded {report.pair.recorded[0]}, and {report.pair.recorded[1]}; "
    producer = report.producer
    if producer is None:
        return ""
    version = f" {producer.frontend_version}" if producer.frontend_version else ""
    return f"recorded {producer.outputs} by {producer.frontend}{version}; "


def _row(found: OutputComparison, several: bool) -> tuple[Cell, ...]:
    absolute, relative = found.max_absolute, found.max_relative
    nothing = "–" if found.mismatched else "0"
    return (
        (found.name, "" if found.ok else "failed"),
        str(found.type),
        str(found.sample) if several else "",
        f"{found.equal_words} of {found.count}",
        steps(found.ulps) if found.max_ulps else nothing,
        f"{short(absolute.absolute)} {index_text(absolute)}" if absolute else nothing,
        f"{short(relative.relative)} {index_text(relative)}" if relative else "",
        f"{found.source.file}:{found.source.line}" if found.source else "",
    )


def _show_failing(output: Output, found: OutputComparison, several: bool, pair: bool = False) -> None:
    from tlir.cli.compare_report import show_histogram

    sample = f" of sample {found.sample}" if several else ""
    special = f", {found.mismatched} of them a NaN or infinity that does not match" if found.mismatched else ""
    line = f": {found.failing} of {found.count} elements{sample} do not pass{special}"
    output.line((found.name, "failed"), line, indent=2)
    if found.source:
        output.line((f"node {found.node} at {found.source}", "label"), indent=4)
    rows = [
        (
            index_text(element) or "(scalar)",
            *map(shortened, (element.expected, element.got, element.expected_words, element.got_words)),
            short(element.absolute) if element.absolute is not None else "–",
            steps(element.ulps),
        )
        for element in found.worst
    ]
    title = "worst" if found.failing > len(rows) else "index"
    mine, theirs = ("first", "second") if pair else ("recorded", "got")
    headings = (title, f">{mine}", f">{theirs}", f">{mine} word", f">{theirs} word", ">abs diff", ">ulps")
    output.table(headings, rows, indent=4)
    show_histogram(output, found)


def index_text(element: Element | Bound) -> str:
    """ "[0,3]"; nothing for a scalar."""
    return f"[{','.join(map(str, element.index))}]" if element.index else ""


def steps(ulps: int | None) -> str:
    """A distance in ulps, short; a dash where there is none."""
    from tlir.compare.text import ulps_text

    return "–" if ulps is None else ulps_text(ulps)


LONGEST = 80
"""Characters up to which a value is shown as it is: the digits and words of all formats of up to 256 bits."""


def shortened(text: str) -> str:
    """A value of thousands of bits by its first and last digits; the JSON report has all of them."""
    return text if len(text) <= LONGEST else f"{text[:40]}…{text[-16:]}"


def short(value: Any) -> str:
    """A difference with four significant digits; the JSON report has all that it is known to."""
    if value is None:
        return ""
    text = str(value)
    if text == "inf" or text.startswith("0x"):
        return text
    from decimal import Decimal

    number = Decimal(text)
    if not number or number.adjusted() >= -4:
        return f"{number:.4g}".removesuffix(".0")
    return f"{number:.3e}"


def _cases(outcome: Outcome[CompareReport]) -> Iterator[Case]:
    from tlir.cli.formats import Case, Remark

    if outcome.report is None:
        yield error_case(outcome)
        return
    several = outcome.report.samples > 1
    for found in outcome.report.outputs:
        name = found.name + (f" of sample {found.sample}" if several else "")
        covered = f"{found.count} elements, {found.equal_words} with equal words, at most {steps(found.ulps)} ulps"
        verdict = f"verdict {found.verdict}; " if isinstance(found, _auto_output()) else ""
        covered = verdict + covered
        remarks = []
        if not found.ok:
            worst = found.worst[0]
            message = f"{verdict}{found.failing} of {found.count} elements do not pass ({outcome.report.rule}); "
            message += f"{name}{index_text(worst)}: recorded {worst.expected}, got {worst.got}"
            pointer = f"/samples/{found.sample}/outputs/{found.position}"
            remarks.append(Remark("error", "mismatch", message, None, found.node, pointer, found.source))
        yield Case(outcome.file, name, "passed" if found.ok else "failed", covered, tuple(remarks))
    for location in outcome.report.locations:
        suspect = location.suspect
        if suspect is None:
            continue
        name = f"node {suspect.label}" + (f" of sample {location.sample}" if several else "")
        worst = suspect.local.worst[0]
        bound = suspect.local.bounds[0]
        place = f"at {index_text(worst)} " if worst.index else ""
        message = f"{place}recorded {worst.expected}, its recorded operands give {worst.got}, "
        message += f"permitted is {' '.join(bound.low)} to {' '.join(bound.high)}"
        pointer = f"/nodes/{suspect.ref.node}"
        remark = Remark("error", "suspect", message, None, suspect.label, pointer, suspect.source)
        covered = f"{suspect.local.count} elements, {suspect.local.failing} not permitted"
        yield Case(outcome.file, name, "failed", covered, (remark,))
