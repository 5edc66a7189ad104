"""The type check: the declared shape and dtype of every node against its operation's rule."""

from __future__ import annotations

from collections import Counter

from tlir.ir.graph import Graph
from tlir.ir.verify import type_errors
from tlir.passes.check.report import Check, counted, failed


def check_types(graph: Graph) -> Check:
    """Whether every declared type is what the operation gives; the operations and dtypes that were covered."""
    nodes = list(graph.body.walk())
    dtypes = Counter(type.dtype.name for node in nodes for type in node.types)
    covered = f"{counted(len(nodes), 'node')} of {counted(len({node.op for node in nodes}), 'operation')}"
    if dtypes:
        covered += "; " + ", ".join(f"{count} {name}" for name, count in dtypes.most_common())
    return failed("types", covered, type_errors(graph))
