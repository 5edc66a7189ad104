"""Bounds of special functions: the monotone ones over intervals, the others where their operands are sure."""

from __future__ import annotations

from tlir.compare.bounds.elementary import (
    MONOTONE,
    Rule,
    around_reference,
    function,
    log_add_exp_rule,
)
from tlir.compare.bounds.elementary import (
    RULES as _ELEMENTARY,
)
from tlir.ir.ops import special as declared

RULES: dict[str, Rule] = {
    operation.name: function(operation.name) if operation.name in MONOTONE else around_reference(operation.name)
    for operation in declared.OPERATIONS
    if operation.name not in _ELEMENTARY
} | {"log_add_exp": log_add_exp_rule}
