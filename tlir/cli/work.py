"""What a run did and how long its parts took: ``tlir run --stats`` and ``--time``."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from tlir.cli.console import Output
    from tlir.ir.graph import Graph

T = TypeVar("T")


class Work:
    """Measures one run on a device. Times are wall-clock seconds."""

    def __init__(self) -> None:
        self.device = "reference"
        self._seconds: dict[str, float] = {}
        self._first: Any = None

    def loaded(self, load: Callable[[], T]) -> T:
        """What ``load`` gives."""
        start = time.perf_counter()
        found = load()
        self._seconds["load"] = time.perf_counter() - start
        return found

    def run(self, evaluate: Callable[[], T], twice: bool) -> T:
        """What ``evaluate`` gives; with ``twice`` once more, for the time of a run when everything is compiled."""
        start = time.perf_counter()
        results = evaluate()
        self._seconds["first run"] = time.perf_counter() - start
        if twice:
            start = time.perf_counter()
            evaluate()
            self._seconds["warm run"] = time.perf_counter() - start
        return results

    def stats(self, graph: Graph) -> dict[str, Any]:
        """The JSON of ``--stats``."""
        if self.device == "reference":
            nodes = [node.id for node in graph.nodes if node.op not in ("input", "constant")]
            reference = [{"node": node, "reason": "the device is the reference"} for node in nodes]
            return {"kernels": 0, "fused_nodes": 0, "bytes_moved": 0, "reference": reference}
        from tlir.backends import statistics

        found = statistics(graph, self.device)
        return {
            "kernels": found.kernels,
            "fused_nodes": found.fused,
            "bytes_moved": found.bytes_moved,
            "cache": {"hits": found.cache_hits, "compiled": found.compiled},
            "reference": [{"node": node, "reason": reason} for node, reason in found.reference],
            **({"settled": found.settled} if self.device == "gpu" else {}),  # type: ignore[attr-defined]
        }

    def times(self, graph: Graph) -> dict[str, float]:
        """The JSON of ``--time``: seconds. What is lowered and compiled is part of the first run, transfers are part of
        every run on a GPU; the runs are given without these."""
        seconds = dict(self._seconds)
        if self.device != "reference":
            from tlir.backends import statistics

            found = statistics(graph, self.device)
            parts = {"lower": found.lower_seconds, "compile": found.compile_seconds}
            seconds["first run"] -= found.lower_seconds + found.compile_seconds
            if self.device == "gpu":
                parts["transfer"] = found.transfer_seconds
                seconds["first run"] -= found.first_transfer_seconds  # type: ignore[attr-defined]
                if "warm run" in seconds:
                    seconds["warm run"] -= found.transfer_seconds
            seconds = {name: max(value, 0.0) for name, value in seconds.items()}
            seconds = {"load": seconds["load"], **parts, **seconds}
        return seconds


def show_stats(output: Output, graph: Graph, stats: Mapping[str, Any]) -> None:
    """The table of ``--stats``, and what the reference evaluated, by reason."""
    output.blank()
    output.line(("work", "heading"))
    cache = stats.get("cache")
    rows = [("kernels", str(stats["kernels"])), ("fused nodes", str(stats["fused_nodes"]))]
    rows += [("bytes moved", f"{stats['bytes_moved']:,}")]
    if cache is not None:
        rows += [("from the cache", str(cache["hits"])), ("compiled", str(cache["compiled"]))]
    if "settled" in stats:
        rows += [("iterations settled", f"{stats['settled']:,}")]
    rows += [("nodes on the reference", str(len(stats["reference"])))]
    output.table(("", ">"), rows, indent=2)
    reasons = Counter((graph.nodes[each["node"]].op, each["reason"]) for each in stats["reference"])
    if "cache" in stats:
        for (op, reason), count in reasons.most_common():
            output.line((f"{count} × {op}: {reason}", "label"), indent=2)


def show_times(output: Output, seconds: Mapping[str, float]) -> None:
    """The table of ``--time``."""
    output.blank()
    output.line(("time", "heading"))
    output.table(("", ">ms"), [(name, f"{value * 1e3:.3f}") for name, value in seconds.items()], indent=2)
