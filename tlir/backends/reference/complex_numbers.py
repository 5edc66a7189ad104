"""Complex numbers put together and taken apart."""

from __future__ import annotations

from tlir.backends.reference.invocation import Evaluator, Invocation
from tlir.backends.reference.layout import join, parts
from tlir.floatlib import arrays
from tlir.ir.tensor import Words


def _conjugate(call: Invocation) -> Words:
    real, imag = parts(call.dtype, call.words[0])
    return join(call.dtype, real, arrays.negate(call.dtype.float_format, imag))


EVALUATORS: dict[str, Evaluator] = {
    "complex": lambda call: join(call.result.dtype, *call.words),
    "real": lambda call: parts(call.dtype, call.words[0])[0],
    "imag": lambda call: parts(call.dtype, call.words[0])[1],
    "conjugate": _conjugate,
}
