"""Complex numbers put together and taken apart."""

from __future__ import annotations

from tlir.ir.ops.base import Operation, elementwise, elementwise_constraints
from tlir.ir.types import complex_of

_COMPLEX = "a complex type"

OPERATIONS = (
    Operation(
        "complex",
        "complex_numbers",
        ("lhs", "rhs"),
        "The complex number lhs + rhs i; both words are moved unchanged.",
        "a floating-point type",
        elementwise("float", result=complex_of),
        elementwise_constraints(2, "a floating-point type"),
    ),
    Operation(
        "real",
        "complex_numbers",
        ("operand",),
        "The real part, its word unchanged.",
        _COMPLEX,
        elementwise("complex", result=lambda dtype: dtype.component),
        elementwise_constraints(1, _COMPLEX),
    ),
    Operation(
        "imag",
        "complex_numbers",
        ("operand",),
        "The imaginary part, its word unchanged.",
        _COMPLEX,
        elementwise("complex", result=lambda dtype: dtype.component),
        elementwise_constraints(1, _COMPLEX),
    ),
    Operation(
        "conjugate",
        "complex_numbers",
        ("operand",),
        "The real part unchanged, the imaginary part negated as `negate` does.",
        _COMPLEX,
        elementwise("complex"),
        elementwise_constraints(1, _COMPLEX),
    ),
)
