"""Arithmetic: operations that round once, and integer arithmetic that wraps."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tlir.backends.reference import integers
from tlir.backends.reference.elementary import elementary
from tlir.backends.reference.invocation import Evaluator, Invocation
from tlir.backends.reference.numbers import Carrier, Complexes, numbers
from tlir.floatlib import arrays, convert
from tlir.floatlib.format import Format
from tlir.floatlib.rounding import Flags, Rounding
from tlir.floatlib.words import constant, is_finite, is_nan, is_signaling, is_zero, select, signs
from tlir.ir.tensor import Words

Implementation = Callable[..., Any]


def _by_kind(
    integer: Implementation | None = None,
    real: Implementation | None = None,
    complex: Evaluator | None = None,
    boolean: Implementation | None = None,
) -> Evaluator:
    """An evaluator that picks an implementation by the kind of the first operand: ``integer(dtype, *words)``, ``real``
    as the functions of ``tlir.floatlib.arrays``, ``complex(call)``, ``boolean(*words)``."""

    def evaluate(call: Invocation) -> Words:
        dtype = call.dtype
        if dtype.is_float and real is not None:
            return call.rounded(real, dtype.float_format, *call.words)
        if dtype.is_integer and integer is not None:
            return integer(dtype, *call.words)
        if dtype.is_complex and complex is not None:
            return complex(call)
        if dtype.is_bool and boolean is not None:
            return boolean(*call.words)
        raise TypeError(f"{call.node.op} of {dtype.name}")

    return evaluate


def _both_parts(function: Implementation) -> Evaluator:
    """A function of floats, applied to the real and to the imaginary words."""
    return lambda call: call.rounded(function, call.dtype.float_format, *call.words)


def _complex_multiply(call: Invocation) -> Words:
    arithmetic = numbers(call.dtype, call.flags)
    a, b = (arithmetic.load(words) for words in call.words)
    return arithmetic.store(arithmetic.multiply(a, b))


def _exact_parts(call: Invocation) -> Words:
    """Complex quotients, roots, signs and magnitudes: each part of the exact result rounded once."""
    return elementary(call, call.node.op, call.dtype, call.words)


def _float_sign(fmt: Format, a: Words, flags: bool = False) -> Any:
    """-1, 0 or 1; a zero is kept, a NaN made canonical."""
    (one, _), (minus_one, _) = convert.from_integer(fmt, 1), convert.from_integer(fmt, -1)
    unit = select(fmt, signs(fmt, a), constant(fmt, minus_one), constant(fmt, one))
    result = select(fmt, is_zero(fmt, a), a, unit)
    result = select(fmt, is_nan(fmt, a), constant(fmt, fmt.invalid_word), result)
    if not flags:
        return result
    return result, np.where(is_signaling(fmt, a), np.uint8(Flags.INVALID), np.uint8(0))


def _integral(rounding: Rounding) -> Evaluator:
    return _by_kind(real=partial(_round_to_integral, rounding))


def _round_to_integral(rounding: Rounding, fmt: Format, a: Words, flags: bool = False) -> Any:
    return arrays.round_to_integral(fmt, a, rounding, flags=flags)


def _integer_pow(call: Invocation) -> Words:
    exponent, dtype = call.attr("exponent"), call.dtype
    arithmetic = numbers(dtype, call.flags)
    one = arithmetic.identity("multiply")
    operand = arithmetic.load(call.words[0])
    if exponent == 0:
        return np.broadcast_to(arithmetic.store(one), call.words[0].shape)
    power = arithmetic.store(_power(arithmetic.multiply, operand, abs(exponent)))
    if exponent > 0:
        return power
    ones = np.broadcast_to(arithmetic.store(one), power.shape)
    if isinstance(arithmetic, Complexes):
        return elementary(call, "divide", dtype, (ones, power))
    return call.rounded(arrays.divide, dtype.float_format, ones, power)


def _power(multiply: Callable[[Carrier, Carrier], Carrier], x: Carrier, exponent: int) -> Carrier:
    """x to a positive power, by the schedule that the operation states."""
    accumulator: Carrier | None = None
    while True:
        if exponent & 1:
            accumulator = x if accumulator is None else multiply(accumulator, x)
        exponent >>= 1
        if accumulator is not None and not exponent:
            return accumulator
        x = multiply(x, x)


EVALUATORS: dict[str, Evaluator] = {
    "add": _by_kind(integers.add, arrays.add, _both_parts(arrays.add)),
    "subtract": _by_kind(integers.subtract, arrays.subtract, _both_parts(arrays.subtract)),
    "multiply": _by_kind(integers.multiply, arrays.multiply, _complex_multiply),
    "divide": _by_kind(integers.divide, arrays.divide, _exact_parts),
    "remainder": _by_kind(integers.remainder, arrays.remainder_truncated),
    "maximum": _by_kind(integers.maximum, arrays.maximum, boolean=np.bitwise_or),
    "minimum": _by_kind(integers.minimum, arrays.minimum, boolean=np.bitwise_and),
    "fma": _by_kind(real=arrays.fma),
    "negate": _by_kind(integers.negate, arrays.negate, _both_parts(arrays.negate)),
    "abs": _by_kind(integers.absolute, arrays.absolute, _exact_parts),
    "sign": _by_kind(integers.sign, _float_sign, _exact_parts),
    "copysign": _by_kind(real=arrays.copysign),
    "floor": _integral(Rounding.DOWN),
    "ceil": _integral(Rounding.UP),
    "trunc": _integral(Rounding.TOWARD_ZERO),
    "round_nearest_even": _integral(Rounding.NEAREST_EVEN),
    "round_nearest_afz": _integral(Rounding.NEAREST_AWAY),
    "sqrt": _by_kind(real=arrays.sqrt, complex=_exact_parts),
    "next_after": _by_kind(real=arrays.next_after),
    "is_finite": lambda call: is_finite(call.dtype.float_format, call.words[0]).astype(np.uint8),
    "integer_pow": _integer_pow,
}
