"""Reducing a failing comparison to something that fits into a bug report."""

from __future__ import annotations

from tlir.compare.reduce.folder import Written, check_folder, write_folder
from tlir.compare.reduce.piece import Piece
from tlir.compare.reduce.program import available, evaluator
from tlir.compare.reduce.search import BUDGET, Reduction, Rules, reduce

__all__ = [
    "BUDGET",
    "Piece",
    "Reduction",
    "Rules",
    "Written",
    "available",
    "check_folder",
    "evaluator",
    "reduce",
    "write_folder",
]
