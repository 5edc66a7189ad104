"""Bounds of operations that move elements: those of the elements."""

from __future__ import annotations

from collections.abc import Callable

from tlir.compare.bounds.enclosure import Enclosure
from tlir.compare.bounds.movement import moved
from tlir.compare.bounds.step import Step
from tlir.ir.ops import shape as declared

Rule = Callable[[Step], Enclosure]


def _move(step: Step) -> Enclosure:
    if all(operand.all_sure for operand in step.operands):
        return step.sure()
    return moved(step, range(len(step.operands)))


RULES: dict[str, Rule] = {operation.name: _move for operation in declared.OPERATIONS}
