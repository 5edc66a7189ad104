"""Factorizations and solvers have no bound: how far two algorithms differ depends on the condition of the matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tlir.compare.bounds.enclosure import Enclosure, certain
from tlir.compare.bounds.step import Step
from tlir.ir.ops import linalg as declared

Rule = Callable[[Step], Sequence[Enclosure]]

REASON = "the error of a factorization or solver depends on the condition of its matrix, which is not bounded here"


def _unbounded(step: Step) -> Sequence[Enclosure]:
    if not step.freedoms.any and all(operand.all_sure for operand in step.operands):
        return [certain(result) for result in step.results]
    return [step.anything(REASON, k) for k in range(len(step.results))]


UNBOUNDED: dict[str, str] = {operation.name: REASON for operation in declared.OPERATIONS}
RULES: dict[str, Rule] = {operation.name: _unbounded for operation in declared.OPERATIONS}
