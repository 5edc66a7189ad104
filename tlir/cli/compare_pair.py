"""``tlir compare A B`` and ``tlir compare A --against B``: two artifacts of the same graph compared with each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tlir.cli.console import Cell, Output
    from tlir.compare import CompareReport
    from tlir.compare.against import Pair
    from tlir.compare.rule import Rule
    from tlir.ir.graph import Graph

NODES = 12
"""So many nodes are listed, those that add most first."""


@dataclass(frozen=True)
class Chosen:
    """The options that say what passes."""

    tolerance: str | None
    rtol: str
    ulps: int | None
    words: bool
    nan_payload: bool
    policy: str | None
    table: Path | None

    @property
    def judged(self) -> bool:
        """Bounds judge: they are asked for, or no other rule is."""
        plain = self.tolerance is None and self.ulps is None and not self.words and self.rtol == "0"
        return plain or self.tolerance == "auto"

    def rule(self, artifact_tolerance: str | None) -> Rule | None:
        """The rule for the second artifact's values; None where bounds judge."""
        from tlir.compare import check_options

        if self.judged:
            return None
        return check_options(
            self.tolerance, self.rtol, self.ulps, self.words, self.nan_payload, artifact_tolerance=artifact_tolerance
        )


class Pairs:
    """The pairs of artifacts that are compared with each other, by what they are called in the report: each file with
    that of ``--against``, or the two files that are given if they are of the same graph."""

    def __init__(self, files: Sequence[str], paths: Sequence[str], against: str | None) -> None:
        from tlir.cli.paths import existing

        self._loaded: dict[str, Graph] = {}
        self._pairs: dict[str, tuple[str, str]] = {}
        if against is not None:
            other = existing(against)
            self._pairs = {f"{file} against {other}": (file, other) for file in files}
            self._loaded[other] = self.load(other)
        elif len(files) == 2 and list(files) == list(paths) and self._of_one_graph(*files):
            self._pairs = {f"{files[0]} against {files[1]}": (files[0], files[1])}

    def _of_one_graph(self, first: str, second: str) -> bool:
        from tlir.compare.twins import twins

        try:
            loaded = {file: self.load(file) for file in (first, second)}
            twins(loaded[first], loaded[second])
        except Exception:  # what is wrong with an artifact is told when it is examined by itself
            return False
        self._loaded |= loaded
        return True

    def load(self, file: str) -> Graph:
        """A graph, read once if it belongs to a pair."""
        from tlir.api import load

        return self._loaded[file] if file in self._loaded else load(file).ir

    def __contains__(self, name: str) -> bool:
        return name in self._pairs

    def __iter__(self) -> Iterator[str]:
        return iter(self._pairs)

    def first(self, name: str) -> Graph:
        """The first artifact's graph of a pair."""
        return self.load(self._pairs[name][0])

    def compare(self, name: str, chosen: Chosen) -> CompareReport:
        """The report of a pair."""
        from tlir.compare.against import compare_against

        a, b = map(self.load, self._pairs[name])
        return compare_against(
            a,
            b,
            rule=chosen.rule(a.tolerance),
            policy=chosen.policy or "frontend",
            table=chosen.table,
            names=self._pairs[name],
        )


def show_pair(output: Output, pair: Pair) -> None:
    """The nodes that both recorded, those that add most first, and where special values are on one side alone."""
    from tlir.cli.compare import short, steps
    from tlir.cli.console import counted
    from tlir.compare.against import size

    for each in pair.blamed:
        told = (
            f": {counted(each.elements, 'element')} of output {each.position} that differ are none of what it permits"
        )
        output.line((each.name, "failed"), told, indent=2)
    differing = [node for node in pair.nodes if node.difference.equal_words < node.difference.count]
    adding = [node for node in differing if node.added.equal_words < node.added.count]
    adding.sort(key=lambda node: (-size(node.added), node.ref))
    if adding:
        rows: list[tuple[Cell, ...]] = []
        for node in adding[:NODES]:
            far, own = node.difference.max_absolute, node.added.max_absolute
            rows.append(
                (
                    node.label,
                    short(own.absolute) if own else "–",
                    short(far.absolute) if far else "–",
                    "–" if node.difference.mismatched else steps(node.difference.ulps),
                    f"{node.source.file}:{node.source.line}" if node.source else "",
                )
            )
        output.table(("node", ">adds", ">apart", ">ulps apart", "source"), rows, indent=2)
    if pair.nodes:
        same, passing = len(pair.nodes) - len(differing), len(differing) - len(adding)
        said = [f"{len(adding) - NODES} more that add something"] if len(adding) > NODES else []
        said += [f"{passing} add nothing to what they are given"] if passing else []
        said += [f"{same} are the same on both sides"] if same else []
        output.line(
            (f"of {counted(len(pair.nodes), 'value')} that both recorded: " + ", ".join(said), "label"), indent=2
        )
    for entry in pair.ledger:
        place = f"[{','.join(map(str, entry.index))}]"
        values = f"{pair.names[0]} has {entry.frontend}, {pair.names[1]} {entry.reference}"
        more = f", {entry.count} in all" if entry.count > 1 else ""
        where = f" at {entry.source}" if entry.source else ""
        output.line((entry.kind, "failed"), f" first at node {entry.label} {place}{more}{where}: {values}", indent=2)
