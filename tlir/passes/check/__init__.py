"""Checks of a graph: structure, types, broadcasts, constants, and on request its lowering."""

from __future__ import annotations

from tlir.ir.graph import Graph
from tlir.passes.check.broadcasts import check_broadcasts
from tlir.passes.check.constants import check_constants
from tlir.passes.check.report import Check, CheckReport, Finding
from tlir.passes.check.structure import check_structure
from tlir.passes.check.types import check_types

__all__ = ["Check", "CheckReport", "Finding", "check"]


def check(graph: Graph, lowering: bool = False) -> CheckReport:
    """All checks of a graph; with ``lowering`` also whether its kernels compute what it says.

    Where the structure does not hold, the others would look at nonsense: not applicable. The same goes for the lowering
    of a graph whose types do not hold."""
    structure = check_structure(graph)
    if structure.status == "failed":
        names = ("types", "broadcasts", "constants", *(("lowering",) if lowering else ()))
        rest = (Check(name, "not applicable", "the structure does not hold") for name in names)
        return CheckReport((structure, *rest))
    checks = (structure, check_types(graph), check_broadcasts(graph), check_constants(graph))
    if not lowering:
        return CheckReport(checks)
    if checks[1].status == "failed":
        return CheckReport((*checks, Check("lowering", "not applicable", "the types do not hold")))
    from tlir.passes.check.lowering import check_lowering

    return CheckReport((*checks, check_lowering(graph)))
