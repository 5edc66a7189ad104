"""Elementary and special functions: the correctly rounded ones of ``tlir.floatlib.elementary``.

That module is loaded at the first use, because it brings in Arb.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tlir.backends.reference import integers
from tlir.backends.reference.invocation import Evaluator, Invocation
from tlir.errors import UnsupportedError
from tlir.ir.ops import elementary as declared
from tlir.ir.tensor import Words
from tlir.ir.types import DType


def elementary(call: Invocation, name: str, dtype: DType, words: Sequence[Words]) -> Words:
    """The function ``name`` of words of a float or complex dtype. UnsupportedError TL0801 where an operand of a very
    wide format would take more precision than there is."""
    from tlir.floatlib import elementary as library

    function: Any = library.evaluate_complex if dtype.is_complex else library.evaluate

    def evaluate(fmt: Any, *words: Words, **options: Any) -> Any:
        return function(name, fmt, *words, **options)

    try:
        return call.rounded(evaluate, dtype.float_format, *words)
    except library.ElementaryError as error:
        raise UnsupportedError("TL0801", str(error), node=str(call.node), source=call.node.source) from error


def _evaluate(call: Invocation) -> Words:
    if call.dtype.is_integer:
        return integers.power(call.dtype, *call.words)  # the only one that integers have
    return elementary(call, call.node.op, call.dtype, call.words)


EVALUATORS: dict[str, Evaluator] = {operation.name: _evaluate for operation in declared.OPERATIONS}
