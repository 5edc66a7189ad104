"""How an operation on arrays is computed: natively, through a table, or by the specification element by element."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tlir.floatlib import arithmetic, native, words
from tlir.floatlib.arithmetic import NEAREST_EVEN
from tlir.floatlib.elementwise import FlagArray, Specification, by_elements, by_table
from tlir.floatlib.format import Format
from tlir.floatlib.native import (
    FLOAT64,
    Float64,
    carrier,
    ensure_gradual_underflow,
    from_carrier,
    to_carrier,
    to_float64,
)
from tlir.floatlib.rounding import Flags, Rounding
from tlir.floatlib.words import Mask, Words

INTEGRAL = {
    Rounding.NEAREST_EVEN: np.rint,
    Rounding.TOWARD_ZERO: np.trunc,
    Rounding.UP: np.ceil,
    Rounding.DOWN: np.floor,
}

_SPECIFICATIONS: dict[str, Any] = {
    "add": arithmetic.add,
    "subtract": arithmetic.subtract,
    "multiply": arithmetic.multiply,
    "divide": arithmetic.divide,
    "sqrt": arithmetic.sqrt,
    "fma": arithmetic.fma,
}


def rounded(operation: str, fmt: Format, operands: tuple[Words, ...], flags: bool, rounding: Rounding) -> Any:
    operands = tuple(words.broadcast(fmt, *operands))
    function = partial(with_rounding, _SPECIFICATIONS[operation], rounding)
    if rounding is not NEAREST_EVEN or carrier(fmt) is None:
        return specified((operation, rounding), function, fmt, operands, flags)
    typed = [(fmt, operand) for operand in operands]
    if tabulated := by_table((operation, rounding), partial(function, fmt), fmt, typed):
        return tabulated if flags else tabulated[0]
    ensure_gradual_underflow()
    with np.errstate(all="ignore"):
        if fmt == FLOAT64:
            return _in_float64(operation, operands, flags)
        return _carried(operation, fmt, operands, flags)


def with_rounding(function: Any, rounding: Rounding, fmt: Format, *operands: int) -> tuple[int, int]:
    word, raised = function(fmt, *operands, rounding)
    return word, raised


def _carried(operation: str, fmt: Format, operands: tuple[Words, ...], flags: bool) -> Any:
    """An operation of a format that fits float64, through its carrier."""
    if operation != "fma" and not flags:
        return from_carrier(fmt, native.UFUNCS[operation](*(to_carrier(fmt, operand) for operand in operands)))
    values = [to_float64(fmt, operand) for operand in operands]
    exact = native.fma_in_float64(*values) if operation == "fma" else native.UFUNCS[operation](*values)
    if not flags:
        return from_carrier(fmt, exact)
    rounded = native.round_float64(fmt, exact)
    result = to_float64(fmt, rounded.words)
    x, y = values[0], values[-1]
    match operation:
        # products of the format's numbers, and of a result and an operand, are exact in float64
        case "divide":
            inexact = result * y != x
        case "sqrt":
            inexact = result * result != x
        case "add" | "subtract":
            _, error = native.two_sum(x, y if operation == "add" else -y)
            inexact = rounded.inexact | (error != 0)
        case _:
            inexact = rounded.inexact
    finite = _all_finite(values) & np.isfinite(exact)
    raised = _special_flags(operation, fmt, operands, values, exact) | flag(rounded.undefined, Flags.INVALID)
    return rounded.words, raised | rounding_flags(rounded, inexact, finite & ~rounded.undefined)


def _in_float64(operation: str, operands: tuple[Words, ...], flags: bool) -> Any:
    """An operation of float64; elements that no error-free transformation covers go to the specification."""
    values = [to_float64(FLOAT64, operand) for operand in operands]
    if operation == "fma":
        result, inexact, certain = native.fma_of_float64(*values)
        uncertain = ~certain
    else:
        result = native.UFUNCS[operation](*values)
        if not flags:
            return from_carrier(FLOAT64, result)
        inexact, certain = native.inexact_in_float64(operation, result, values[0], values[-1])
        # an infinite or NaN result says by itself what was raised
        uncertain = ~certain & np.isfinite(result) & _all_finite(values)
    packed = np.array(from_carrier(FLOAT64, result))
    tiny = np.abs(result) < 2.0**FLOAT64.emin
    # the smallest normal number may be what a tiny one was rounded up to
    uncertain |= inexact & (np.abs(result) == 2.0**FLOAT64.emin)
    overflow = np.isinf(result)
    inexact = inexact | overflow
    finite = _all_finite(values) & ~np.isnan(result)
    if operation == "divide":
        finite &= values[1] != 0
    raised = _special_flags(operation, FLOAT64, operands, values, result)
    raised |= flag(finite & overflow, Flags.OVERFLOW) | flag(finite & inexact, Flags.INEXACT)
    raised |= flag(finite & inexact & tiny, Flags.UNDERFLOW)
    if uncertain.any():
        chosen = [(FLOAT64, operand[uncertain]) for operand in operands]
        function = partial(_SPECIFICATIONS[operation], FLOAT64)
        packed[uncertain], raised[uncertain] = by_elements(function, FLOAT64, chosen)
    return (packed, raised) if flags else packed


def _special_flags(
    operation: str, fmt: Format, operands: tuple[Words, ...], values: list[Float64], result: Float64
) -> FlagArray:
    """INVALID and DIVIDE_BY_ZERO: a NaN that no operand was, a signaling operand, a finite number over zero."""
    nan = np.isnan(values[0])
    for value in values[1:]:
        nan = nan | np.isnan(value)
    invalid = (np.isnan(result) & ~nan) | any_signaling(fmt, *operands)
    if operation == "fma":
        x, y, _ = values
        invalid |= (np.isinf(x) & (y == 0)) | ((x == 0) & np.isinf(y))
    raised = flag(invalid, Flags.INVALID)
    if operation == "divide":
        x, y = values
        raised |= flag((y == 0) & (x != 0) & np.isfinite(x), Flags.DIVIDE_BY_ZERO)
    return raised


def rounding_flags(rounded: native.Rounded, inexact: Mask, where: Mask) -> FlagArray:
    inexact = inexact | rounded.overflow
    raised = flag(where & rounded.overflow, Flags.OVERFLOW) | flag(where & inexact, Flags.INEXACT)
    return raised | flag(where & inexact & rounded.tiny, Flags.UNDERFLOW)


def specified(key: Any, function: Any, fmt: Format, operands: Any, flags: bool) -> Any:
    """``function(fmt, *words)`` of operands and results of one format, by table or by elements."""
    return apply(key, partial(function, fmt), fmt, [(fmt, operand) for operand in operands], flags)


def apply(key: Any, function: Specification, result: Format, operands: list[tuple[Format, Words]], flags: bool) -> Any:
    both = by_table(key, function, result, operands) or by_elements(function, result, operands)
    return both if flags else both[0]


def apply_any(key: str, function: Specification, fmt: Format, values: Words, width: int, flags: bool) -> Any:
    both = by_elements(function, fmt, [(layout(width), values)])
    return both if flags else both[0]


def layout(width: int) -> Format:
    """A format of this many bits, for the layout of its words alone."""
    return Format(1, width - 2, infinities=False, nans="none")


def _all_finite(values: list[Float64]) -> Mask:
    finite = np.isfinite(values[0])
    for value in values[1:]:
        finite = finite & np.isfinite(value)
    return np.asarray(finite)


def infinite(fmt: Format, a: Words) -> Mask:
    return ~words.is_finite(fmt, a) & ~words.is_nan(fmt, a)


def any_signaling(fmt: Format, *operands: Words) -> Mask:
    result = words.is_signaling(fmt, operands[0])
    for operand in operands[1:]:
        result = result | words.is_signaling(fmt, operand)
    return result


def flag(where: Mask, which: Flags) -> FlagArray:
    return np.where(where, np.uint8(which), np.uint8(0))


def no_flags(fmt: Format, result: Words) -> FlagArray:
    return np.zeros(words.shape_of(fmt, result), dtype=np.uint8)
