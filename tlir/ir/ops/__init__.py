"""The operations, each declared once in the file of its family."""

from __future__ import annotations

from tlir.ir.ops import (
    arithmetic,
    complex_numbers,
    contraction,
    control,
    data,
    elementary,
    indexing,
    linalg,
    logic,
    reduction,
    shape,
    sorting,
    special,
    transforms,
    windows,
)
from tlir.ir.ops.attributes import Accumulate
from tlir.ir.ops.base import Attribute, Call, Operation, Signature, Violation

FAMILIES = (
    data,
    arithmetic,
    elementary,
    special,
    logic,
    complex_numbers,
    shape,
    reduction,
    contraction,
    indexing,
    sorting,
    windows,
    transforms,
    linalg,
    control,
)

OPERATIONS: dict[str, Operation] = {operation.name: operation for family in FAMILIES for operation in family.OPERATIONS}
"""Every operation by name, family by family."""

__all__ = ["FAMILIES", "OPERATIONS", "Accumulate", "Attribute", "Call", "Operation", "Signature", "Violation"]
