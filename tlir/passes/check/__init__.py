"""Checks of a graph: structure, types, broadcasts, constants."""

from __future__ import annotations

from tlir.ir.graph import Graph
from tlir.passes.check.broadcasts import check_broadcasts
from tlir.passes.check.constants import check_constants
from tlir.passes.check.report import Check, CheckReport, Finding
from tlir.passes.check.structure import check_structure
from tlir.passes.check.types import check_types

__all__ = ["Check", "CheckReport", "Finding", "check"]


def check(graph: Graph) -> CheckReport:
    """All checks of a graph. Where the structure does not hold, the others would look at nonsense: not applicable."""
    structure = check_structure(graph)
    if structure.status == "failed":
        rest = (
            Check(name, "not applicable", "the structure does not hold")
            for name in ("types", "broadcasts", "constants")
        )
        return CheckReport((structure, *rest))
    return CheckReport((structure, check_types(graph), check_broadcasts(graph), check_constants(graph)))
