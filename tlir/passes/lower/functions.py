"""Functions that no kernel computes in some dtypes.

What has one is said here once more, and a test compares it with ``tlir.floatlib``: asking there would load all of its
functions, which takes longer than lowering most graphs.
"""

from __future__ import annotations

from tlir.floatlib.format import FORMATS, Format
from tlir.ir.ops import elementary, special
from tlir.ir.types import DType

_FUNCTIONS = frozenset(operation.name for family in (elementary, special) for operation in family.OPERATIONS)
_BESSEL = frozenset(
    f"bessel_{name}" for name in ("i0", "i1", "i0e", "i1e", "j0", "j1", "k0", "k1", "k0e", "k1e", "y0", "y1")
)
_NORMAL = frozenset({"erfcx", "ndtri", "log_ndtr"})
_INCOMPLETE = frozenset({"igamma", "igammac", "igamma_grad_a", "random_gamma_grad", "regularized_incomplete_beta"})
_NARROW_ALONE = _BESSEL | _NORMAL | _INCOMPLETE | {"polygamma", "zeta"}
"""Functions with kernels for formats of at most 24 bits of precision only."""

_NOT_WIDE = frozenset({"lgamma", "digamma"})
"""Functions without a kernel of fixed-point numbers."""

_NOT_DOUBLE = frozenset({"log_add_exp"})
"""Functions without a kernel of double-double numbers."""


def has_kernel(op: str, dtype: DType) -> bool:
    """Whether there is code with a proven bound for a function of a float dtype."""
    fmt = dtype.float_format
    if op not in _FUNCTIONS:
        return False
    if op in _NARROW_ALONE:
        return _narrow(fmt)
    wide, double = op not in _NOT_WIDE and _wide(fmt), op not in _NOT_DOUBLE and _double(fmt)
    return _narrow(fmt) or wide or double


def _narrow(fmt: Format) -> bool:
    """``tlir.floatlib.elementary.narrow.arrays.applies``: by the processor's float64."""
    return fmt.precision <= 24 and fmt.width <= 32 and _within(fmt, 502)


def _double(fmt: Format) -> bool:
    """``tlir.floatlib.elementary.double.loop.applies``: by double-double numbers."""
    return fmt == FORMATS["float64"] or (
        _is_ieee(fmt) and 25 <= fmt.precision <= 51 and fmt.width <= 64 and _within(fmt, 880)
    )


def _wide(fmt: Format) -> bool:
    """``tlir.floatlib.elementary.wide.loop.applies``: by fixed-point numbers of many digits."""
    return (
        _is_ieee(fmt)
        and 25 <= fmt.precision <= 237
        and 4 <= fmt.exponent_bits <= 20
        and fmt.bias == (1 << (fmt.exponent_bits - 1)) - 1
    )


def _is_ieee(fmt: Format) -> bool:
    """Whether a format is of IEEE 754's kind."""
    return fmt.nans == "ieee" and fmt.signed_zero


def _within(fmt: Format, exponent: int) -> bool:
    """Whether all numbers of a format are 0 or from 2**-exponent to below 2**(exponent + 1)."""
    return fmt.emin - fmt.fraction_bits >= -exponent and fmt.emax <= exponent


_COMPLEX = frozenset(
    {"divide", "sqrt", "rsqrt", "sign", "exponential", "exponential_minus_one", "log", "log_plus_one", "power"}
)
_COMPLEX |= {"logistic", "sinh", "cosh", "tanh", "sine", "cosine", "tan"}
_COMPLEX |= {"asin", "acos", "atan", "asinh", "acosh", "atanh"}


def has_complex_kernel(op: str, component: DType) -> bool:
    """``tlir.floatlib.elementary.complex.loop.applies``: whether there is code with a proven bound for a function of
    complex numbers whose parts are of this dtype."""
    fmt = component.float_format
    narrow = fmt.precision <= 24 and fmt.width <= 32 and _within(fmt, 300)
    if op == "asin" and not fmt.signed_zero:
        return False
    return op in _COMPLEX and fmt.signed and fmt.has_zero and (narrow or fmt == FORMATS["float64"])


def function_reason(op: str, dtype: DType) -> str | None:
    """Why a function of this dtype has no kernel; None for one that has, and for every other operation."""
    if op not in _FUNCTIONS or not dtype.is_float or has_kernel(op, dtype):
        return None
    return f"no kernel computes it in {dtype} within a proven bound"
