"""Operations on integers and Booleans, by the processor's own.

Words of fewer bits than a byte lie in one whose other bits are 0; what needs the number itself extends its sign first.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from llvmlite import ir

from tlir.backends.cpu.values import Item, Lanes, word_type
from tlir.floatlib.soft.lanes import I1
from tlir.ir.types import DType

Emit = Callable[..., Item]
"""``emit(lanes, *items)``."""


def arithmetic(op: str, dtype: DType) -> Emit | None:
    """A function that emits an operation on integers of a dtype; None for one that has none."""
    if op not in _INTEGER:
        return None
    return lambda lanes, *items: held(lanes, dtype, _INTEGER[op](dtype, lanes, *(lanes.bits(x) for x in items)))


def _is_narrow(dtype: DType) -> bool:
    """Whether words are fewer bits than a byte; those above them are 0."""
    return dtype.is_integer and dtype.bits < 8


def held(lanes: Lanes, dtype: DType, word: Any) -> Item:
    """The item of an integer word modulo 2^bits."""
    if _is_narrow(dtype):
        word = lanes.builder.and_(word, lanes.splat(word_type(dtype), (1 << dtype.bits) - 1))
    return lanes.word(dtype, word)


def value_of(lanes: Lanes, dtype: DType, word: Any) -> Any:
    """The integer itself in the bits of its memory: with its sign in all bits above its own."""
    if not dtype.is_signed:
        return word
    return _sign_extended(lanes, dtype, word)


def _sign_extended(lanes: Lanes, dtype: DType, word: Any) -> Any:
    """The word with its highest bit in all bits of its memory above it."""
    if not _is_narrow(dtype):
        return word
    b, above = lanes.builder, lanes.splat(word_type(dtype), 8 - dtype.bits)
    return b.ashr(b.shl(word, above), above)


def _on_values(operation: Callable[..., Any]) -> Callable[..., Any]:
    """An operation of the processor on integers themselves, not only on their words modulo 2^bits."""
    return lambda dtype, lanes, *words: operation(dtype, lanes, *(value_of(lanes, dtype, word) for word in words))


def _less(dtype: DType, lanes: Lanes, x: Any, y: Any) -> Any:
    b = lanes.builder
    return b.icmp_signed("<", x, y) if dtype.is_signed else b.icmp_unsigned("<", x, y)


def _constant(dtype: DType, lanes: Lanes, value: int) -> Any:
    kind = word_type(dtype)
    return lanes.splat(kind, value & ((1 << kind.width) - 1))


def _divided(dtype: DType, lanes: Lanes, x: Any, y: Any, remainder: bool) -> Any:
    """By a zero divisor: all bits set, or x itself as the remainder; the least signed value by -1: itself, or 0."""
    b = lanes.builder
    zero = b.icmp_unsigned("==", y, _constant(dtype, lanes, 0))
    one = _constant(dtype, lanes, 1)
    if not dtype.is_signed:
        safe = b.select(zero, one, y)
        result = b.urem(x, safe) if remainder else b.udiv(x, safe)
    else:
        # the processor's division traps on the one quotient that does not fit
        minus = b.icmp_unsigned("==", y, _constant(dtype, lanes, -1))
        safe = b.select(b.or_(zero, minus), one, y)
        nothing = _constant(dtype, lanes, 0)
        result = b.srem(x, safe) if remainder else b.sdiv(x, safe)
        result = b.select(minus, nothing if remainder else b.sub(nothing, x), result)
    return b.select(zero, x if remainder else _constant(dtype, lanes, -1), result)


def _shifted(direction: str) -> Callable[..., Any]:
    def emit(dtype: DType, lanes: Lanes, x: Any, y: Any) -> Any:
        b = lanes.builder
        inside = b.icmp_unsigned("<", y, _constant(dtype, lanes, dtype.bits))
        if direction == "arithmetic":
            x = _sign_extended(lanes, dtype, x)
            return b.ashr(x, b.select(inside, y, _constant(dtype, lanes, dtype.bits - 1)))
        count = b.select(inside, y, _constant(dtype, lanes, 0))
        shifted = b.shl(x, count) if direction == "left" else b.lshr(x, count)
        return b.select(inside, shifted, _constant(dtype, lanes, 0))

    return emit


def _integer_sign(dtype: DType, lanes: Lanes, x: Any) -> Any:
    b, zero, one = lanes.builder, _constant(dtype, lanes, 0), _constant(dtype, lanes, 1)
    positive = b.select(b.icmp_unsigned("==", x, zero), zero, one)
    return b.select(_less(dtype, lanes, x, zero), _constant(dtype, lanes, -1), positive)


def _integer_power(dtype: DType, lanes: Lanes, x: Any, y: Any) -> Any:
    """x to the power y modulo 2^bits; for a negative y, 1 or -1 where x is one of them, and otherwise 0."""
    b, one, zero = lanes.builder, _constant(dtype, lanes, 1), _constant(dtype, lanes, 0)
    result, square = one, x
    for bit in range(dtype.bits - dtype.is_signed):
        taken = b.icmp_unsigned("!=", b.and_(y, _constant(dtype, lanes, 1 << bit)), zero)
        result, square = b.select(taken, b.mul(result, square), result), b.mul(square, square)
    if not dtype.is_signed:
        return result
    minus = _constant(dtype, lanes, -1)
    odd = b.icmp_unsigned("!=", b.and_(y, one), zero)
    of_minus = b.select(b.icmp_unsigned("==", x, minus), b.select(odd, minus, one), zero)
    unit = b.select(b.icmp_unsigned("==", x, one), one, of_minus)
    return b.select(b.icmp_signed("<", y, zero), unit, result)


def _leading_zeros(dtype: DType, lanes: Lanes, x: Any) -> Any:
    zeros = lanes.call("llvm.ctlz", x.type, x, ir.Constant(I1, 0))
    spare = word_type(dtype).width - dtype.bits
    return lanes.builder.sub(zeros, _constant(dtype, lanes, spare)) if spare else zeros


_INTEGER: dict[str, Callable[..., Any]] = {
    "add": lambda dtype, lanes, x, y: lanes.builder.add(x, y),
    "subtract": lambda dtype, lanes, x, y: lanes.builder.sub(x, y),
    "multiply": lambda dtype, lanes, x, y: lanes.builder.mul(x, y),
    "divide": _on_values(partial(_divided, remainder=False)),
    "remainder": _on_values(partial(_divided, remainder=True)),
    "maximum": _on_values(lambda dtype, lanes, x, y: lanes.builder.select(_less(dtype, lanes, x, y), y, x)),
    "minimum": _on_values(lambda dtype, lanes, x, y: lanes.builder.select(_less(dtype, lanes, y, x), y, x)),
    "negate": lambda dtype, lanes, x: lanes.builder.sub(_constant(dtype, lanes, 0), x),
    "power": _on_values(_integer_power),
    "abs": _on_values(
        lambda dtype, lanes, x: lanes.builder.select(
            _less(dtype, lanes, x, _constant(dtype, lanes, 0)), lanes.builder.sub(_constant(dtype, lanes, 0), x), x
        )
    ),
    "sign": _on_values(_integer_sign),
    "and": lambda dtype, lanes, x, y: lanes.builder.and_(x, y),
    "or": lambda dtype, lanes, x, y: lanes.builder.or_(x, y),
    "xor": lambda dtype, lanes, x, y: lanes.builder.xor(x, y),
    "not": lambda dtype, lanes, x: lanes.builder.xor(x, _constant(dtype, lanes, -1)),
    "shift_left": _shifted("left"),
    "shift_right_logical": _shifted("right"),
    "shift_right_arithmetic": _shifted("arithmetic"),
    "popcnt": lambda dtype, lanes, x: lanes.call("llvm.ctpop", x.type, x),
    "count_leading_zeros": _leading_zeros,
}


def _boolean(operation: Callable[..., Any]) -> Emit:
    return lambda lanes, *items: lanes.truth(
        items[0].dtype, operation(lanes.builder, *(lanes.bits(item) for item in items))
    )


BOOLEAN: dict[str, Emit] = {
    "and": _boolean(lambda b, x, y: b.and_(x, y)),
    "or": _boolean(lambda b, x, y: b.or_(x, y)),
    "xor": _boolean(lambda b, x, y: b.xor(x, y)),
    "not": _boolean(lambda b, x: b.not_(x)),
    "maximum": _boolean(lambda b, x, y: b.or_(x, y)),
    "minimum": _boolean(lambda b, x, y: b.and_(x, y)),
}
