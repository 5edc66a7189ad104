"""The functions that have kernels, by name: those of the families beside this module."""

from __future__ import annotations

from tlir.floatlib.elementary.wide import (
    arc,
    area,
    circular,
    error,
    exponential,
    hyperbolic,
    inverse_error,
    logarithm,
    power,
    root,
    sums,
)
from tlir.floatlib.elementary.wide.function import Function

FUNCTIONS: dict[str, Function] = {
    **exponential.FUNCTIONS,
    **hyperbolic.FUNCTIONS,
    **logarithm.FUNCTIONS,
    **area.FUNCTIONS,
    **power.FUNCTIONS,
    **root.FUNCTIONS,
    **circular.FUNCTIONS,
    **arc.FUNCTIONS,
    **error.FUNCTIONS,
    **inverse_error.FUNCTIONS,
    **sums.FUNCTIONS,
}
NAMES = tuple(FUNCTIONS)
