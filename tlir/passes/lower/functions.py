"""Elementary and special functions that no kernel computes.

What has one is said here once more, and a test compares it with ``tlir.floatlib``: asking there would load all of its
functions, which takes longer than lowering most graphs.
"""

from __future__ import annotations

from tlir.floatlib.format import FORMATS
from tlir.ir.ops import elementary, special
from tlir.ir.types import DType

_WITHOUT = frozenset(operation.name for operation in special.OPERATIONS) | {"lgamma", "digamma", "erf_inv"}
_WITH = frozenset(operation.name for operation in elementary.OPERATIONS) - _WITHOUT
_FORMATS = frozenset(fmt for fmt in FORMATS.values() if fmt.precision <= 24) | {FORMATS["float64"]}


def has_kernel(op: str, dtype: DType) -> bool:
    """Whether there is code with a proven bound for a function of a float dtype."""
    return op in _WITH and dtype.float_format in _FORMATS


def function_reason(op: str, dtype: DType) -> str | None:
    """Why a function of this dtype has no kernel; None for one that has, and for every other operation."""
    if (op not in _WITH and op not in _WITHOUT) or not dtype.is_float or has_kernel(op, dtype):
        return None
    return f"no kernel computes it in {dtype} within a proven bound"
