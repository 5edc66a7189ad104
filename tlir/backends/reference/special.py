"""Special functions: the correctly rounded ones of ``tlir.floatlib.elementary``."""

from __future__ import annotations

from tlir.backends.reference.elementary import elementary
from tlir.backends.reference.invocation import Evaluator, Invocation
from tlir.ir.ops import special as declared
from tlir.ir.tensor import Words


def _evaluate(call: Invocation) -> Words:
    return elementary(call, call.node.op, call.dtype, call.words)


EVALUATORS: dict[str, Evaluator] = {operation.name: _evaluate for operation in declared.OPERATIONS}
