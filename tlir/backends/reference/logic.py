"""Comparison, selection, and operations on bits."""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np

from tlir.backends.reference import integers
from tlir.backends.reference.invocation import Evaluator, Invocation
from tlir.backends.reference.layout import parts, per_element
from tlir.floatlib import arrays
from tlir.floatlib.format import Format
from tlir.floatlib.words import Mask, equal, is_nan, less, order_keys
from tlir.ir.tensor import Words
from tlir.ir.types import DType

_DIRECTIONS: dict[str, Callable[..., Words]] = {
    "EQ": operator.eq,
    "NE": operator.ne,
    "GE": operator.ge,
    "GT": operator.gt,
    "LE": operator.le,
    "LT": operator.lt,
}


def compare_words(dtype: DType, a: Words, b: Words, direction: str) -> Words:
    """The truth of ``a direction b`` as Booleans: 0 equals -0, with NaN only NE is true, complex numbers are equal if
    both parts are."""
    if dtype.is_complex:
        combine = np.logical_and if direction == "EQ" else np.logical_or
        (a_real, a_imag), (b_real, b_imag) = parts(dtype, a), parts(dtype, b)
        component = dtype.component
        return combine(
            compare_words(component, a_real, b_real, direction), compare_words(component, a_imag, b_imag, direction)
        )
    if dtype.is_float:
        return arrays.compare(dtype.float_format, a, b, direction)
    return _DIRECTIONS[direction](integers.to_values(dtype, a), integers.to_values(dtype, b))


def _total_order(fmt: Format, a: Words, b: Words, direction: str) -> Mask:
    """IEEE 754's totalOrder: the order of the bits as sign and magnitude. A NaN in the place of -0 is positive."""

    def before(x: Words, y: Words) -> Mask:
        strictly = less(fmt, order_keys(fmt, x), order_keys(fmt, y))
        if fmt.nans != "negative_zero":
            return strictly
        return ~is_nan(fmt, x) & (is_nan(fmt, y) | strictly)

    match direction:
        case "EQ":
            return equal(fmt, a, b)
        case "NE":
            return ~equal(fmt, a, b)
        case "LT":
            return before(a, b)
        case "GE":
            return ~before(a, b)
        case "GT":
            return before(b, a)
    return ~before(b, a)


def _compare(call: Invocation) -> Words:
    a, b = call.words
    direction = call.attr("comparison_direction")
    if call.attr("compare_type") == "TOTALORDER":
        return _total_order(call.dtype.float_format, a, b, direction).astype(np.uint8)
    return compare_words(call.dtype, a, b, direction).astype(np.uint8)


def _select(call: Invocation) -> Words:
    pred, on_true, on_false = call.words
    return np.where(per_element(call.result, pred), on_true, on_false)


def _clamp(call: Invocation) -> Words:
    low, operand, high = call.words
    dtype = call.dtype
    if dtype.is_float:
        fmt = dtype.float_format
        return call.rounded(arrays.minimum, fmt, call.rounded(arrays.maximum, fmt, operand, low), high)
    return integers.minimum(dtype, integers.maximum(dtype, operand, low), high)


def _not(call: Invocation) -> Words:
    mask = np.uint8(1) if call.dtype.is_bool else integers.word_mask(call.dtype)
    return call.words[0] ^ mask


def _integer(function: Callable[..., Words]) -> Evaluator:
    return lambda call: function(call.dtype, *call.words)


EVALUATORS: dict[str, Evaluator] = {
    "compare": _compare,
    "select": _select,
    "clamp": _clamp,
    "and": lambda call: np.bitwise_and(*call.words),
    "or": lambda call: np.bitwise_or(*call.words),
    "xor": lambda call: np.bitwise_xor(*call.words),
    "not": _not,
    "shift_left": _integer(integers.shift_left),
    "shift_right_logical": _integer(integers.shift_right_logical),
    "shift_right_arithmetic": _integer(integers.shift_right_arithmetic),
    "popcnt": _integer(integers.popcnt),
    "count_leading_zeros": _integer(integers.count_leading_zeros),
}
