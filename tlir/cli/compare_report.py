"""What ``tlir compare`` adds to the table of outputs: where a difference starts, histograms, and the page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tlir.cli.console import Output
    from tlir.cli.outcome import Outcome
    from tlir.compare import CompareReport, OutputComparison
    from tlir.ir.graph import Graph

WIDTH = 40
"""Columns of the longest bar of a histogram."""


class Details:
    """What is found beside the comparison of each artifact: of those with a trace, where a difference starts. With a
    ``page`` every trace is looked into and the page is written at the end, otherwise only those of comparisons that
    fail."""

    def __init__(self, page: str | None, policy: str | None, table: Path | None) -> None:
        self.page, self.policy, self.table = page, policy, table
        self._graphs: dict[str, Graph] = {}
        self._outcomes: dict[str, Outcome[CompareReport]] = {}

    def look(self, file: str, graph: Graph, report: CompareReport) -> CompareReport:
        """The report with what the traces of the artifact show, where they are to be looked into and have not been."""
        from tlir.compare.locate import located

        if self.page is not None:
            self._graphs[file] = graph
        if report.locations or report.pair is not None or (report.ok and self.page is None):
            return report
        failing = None if self.page is not None else {found.sample for found in report.outputs if not found.ok}
        return replace(report, locations=located(graph, self.policy or "frontend", self.table, failing))

    def show(self, output: Output, report: CompareReport | None) -> None:
        """The suspect of an artifact whose trace was looked into, with its source line."""
        from tlir.cli.locate import show_ledger, show_suspect

        locations = report.locations if report is not None else ()
        for location in locations:
            if location.suspect is not None:
                assert report is not None
                if all(found.ok for found in report.outputs):
                    told = "the outputs are permitted, but a recorded value on the way to them is not"
                    output.line((told, "label"), indent=2)
                show_suspect(output, location)
                if report.pair is None:
                    show_ledger(output, location)
                return
        if locations and report is not None and not report.ok:
            output.line(
                ("no suspect: ", "label"), "every node gives what is permitted for its recorded operands", indent=2
            )

    def add(self, outcome: Outcome[CompareReport]) -> None:
        """Take an outcome into the page."""
        self._outcomes[outcome.file] = outcome

    def write(self) -> None:
        """Write the page. UsageError TL0109 where it cannot be written."""
        if self.page is None:
            return
        from tlir.compare.page import Compared, page
        from tlir.schema.files import replacing

        compared = [
            Compared(
                outcome.file,
                outcome.status,
                self._graphs.get(outcome.file),
                outcome.report,
                outcome.report.locations if outcome.report is not None else (),
                "\n".join(outcome.error.lines()) if outcome.error is not None else "",
            )
            for outcome in self._outcomes.values()
        ]
        with replacing(self.page) as stream:
            stream.write(page(compared).encode("utf-8", "backslashreplace"))


def show_histogram(output: Output, found: OutputComparison) -> None:
    """How many elements are how far away, as bars."""
    from tlir.compare.page import bars

    lines = bars(found.histogram)
    most = max((count for _, count in lines), default=0)
    if len(lines) < 2 or not most or found.count < 2:
        return
    rows = [(text, str(count), "█" * max(round(WIDTH * count / most), 1 if count else 0)) for text, count in lines]
    output.table((">ulps", ">elements", ""), rows, indent=4)
