"""The elementwise operations on items: the processor's instruction where it gives the specified word, otherwise the
software kernel of ``tlir.floatlib.soft``.

``emitter`` answers for an operation, its dtypes and attributes with a function that emits it, or None: then the kernel
that holds it is evaluated by the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from llvmlite import ir

from tlir.backends.cpu import big, elementary, integers, pairs
from tlir.backends.cpu.integers import Emit
from tlir.backends.cpu.values import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, Item, Lanes, carrier, word_type
from tlir.floatlib.format import Format
from tlir.floatlib.rounding import Flags, Rounding
from tlir.floatlib.soft import bits, catalog
from tlir.floatlib.soft.big import is_big
from tlir.floatlib.soft.catalog import Kernel
from tlir.floatlib.soft.lanes import DOUBLE, FLOAT
from tlir.ir.types import NAMED, DType
from tlir.passes.lower.words import integer_word

INT32 = NAMED["int32"]


def emitter(op: str, operands: Sequence[DType], result: DType, attrs: Mapping[str, Any]) -> Emit | None:
    """A function of ``Lanes`` and the operands that emits the operation; None where it is not compiled."""
    if any(dtype.is_complex for dtype in (*operands, result)):
        return pairs.emitter(op, result)
    kind = operands[0]
    if op in ("convert", "select", "compare", "bitcast_convert"):
        return {"convert": _convert, "select": _select, "compare": _compare, "bitcast_convert": _bitcast}[op](
            operands, result, attrs
        )
    if op == "clamp":
        upper, lower = emitter("minimum", operands[:2], result, {}), emitter("maximum", operands[:2], result, {})
        if upper is None or lower is None:
            return None
        return lambda lanes, low, x, high: upper(lanes, lower(lanes, x, low), high)
    if kind.is_float:
        return _float(op, kind, result, attrs)
    if op == "integer_pow":
        return _integer_pow(kind, attrs["exponent"])
    return integers.BOOLEAN.get(op) if kind.is_bool else integers.arithmetic(op, kind)


# Floating-point numbers


def _float(op: str, dtype: DType, result: DType, attrs: Mapping[str, Any]) -> Emit | None:
    fmt = dtype.float_format
    if op in _SIGN_BIT:
        # a format whose NaN stands in the place of -0, or that has no sign, has rules of its own
        return partial(_SIGN_BIT[op], dtype) if fmt.signed_zero else partial(_soft, _OWN_SIGN[op](fmt), result)
    if op == "is_finite" and fmt.infinities and fmt.nans == "ieee":
        return partial(_is_finite, dtype, result)
    if op == "sign" and carrier(dtype) is not None:
        return partial(_sign, dtype)
    if op == "reduce_precision":
        return partial(_soft, bits.reduce_precision(fmt, attrs["exponent_bits"], attrs["mantissa_bits"]), result)
    if op == "remainder" and carrier(dtype) is None:
        return _remainder(dtype)
    if op == "integer_pow":
        return _integer_pow(dtype, attrs["exponent"])
    if carrier(dtype) is not None and op in _REAL and not (op == "fma" and fmt in (FLOAT16, BFLOAT16)):
        return partial(_rounded, _REAL[op], dtype)
    if op in _SOFT:
        return partial(_soft, _SOFT[op](fmt), result)
    kernel = elementary.kernel_of(op, fmt)
    return None if kernel is None else partial(elementary.emit, kernel, op, dtype)


def _rounded(operation: Callable[..., Any], dtype: DType, lanes: Lanes, *items: Item) -> Item:
    """An operation of the processor on reals, rounded to float16 or bfloat16 where that is the format.

    The second rounding is innocuous for +, -, *, / and sqrt (``tlir.floatlib.native``); the others are exact."""
    real = operation(lanes, *(lanes.real(item) for item in items))
    return lanes.number(dtype, narrowed(lanes, dtype.float_format, real))


def narrowed(lanes: Lanes, fmt: Format, real: Any) -> Any:
    """A float32 real rounded to float16's or bfloat16's numbers; other reals as they are."""
    b = lanes.builder
    if fmt == FLOAT16:
        return b.fpext(b.fptrunc(real, lanes.type(ir.HalfType())), lanes.type(FLOAT))
    if fmt != BFLOAT16:
        return real
    word_kind = ir.IntType(32)
    word = b.bitcast(real, lanes.type(word_kind))
    lowest = b.and_(b.lshr(word, lanes.splat(word_kind, 16)), lanes.splat(word_kind, 1))
    rounded = b.add(b.add(word, lanes.splat(word_kind, 0x7FFF)), lowest)
    kept = b.bitcast(b.and_(rounded, lanes.splat(word_kind, 0xFFFF0000)), lanes.type(FLOAT))
    # adding to a NaN's bits could make another number of it
    return b.select(lanes.is_nan(real), real, kept)


def _soft(kernel: Kernel, result: DType, lanes: Lanes, *items: Item) -> Item:
    return _software(kernel, result, lanes, *items)[0]


def _software(kernel: Kernel, result: DType, lanes: Lanes, *items: Item) -> tuple[Item, Any]:
    """The kernel's words of these operands, and its flags as words of the machine (64 bits for a big kernel) if it has
    them."""
    if is_big(kernel):
        return (lanes.call_big or partial(big.called, lanes))(kernel, result, items)
    machine = lanes.machine(kernel.bits)
    operands = [
        lanes.uint(item, kernel.bits).resized(width) for item, width in zip(items, kernel.operands, strict=True)
    ]
    found = kernel(machine, *operands)
    return lanes.from_uint(result, found.word), found.flags


_SOFT: dict[str, Callable[[Format], Kernel]] = {
    **{op: partial(catalog.arithmetic, op) for op in ("add", "subtract", "multiply", "divide", "sqrt", "fma")},
    "minimum": partial(catalog.extremum, "minimum"),
    "maximum": partial(catalog.extremum, "maximum"),
    "floor": lambda fmt: catalog.round_to_integral(fmt, Rounding.DOWN),
    "ceil": lambda fmt: catalog.round_to_integral(fmt, Rounding.UP),
    "trunc": lambda fmt: catalog.round_to_integral(fmt, Rounding.TOWARD_ZERO),
    "round_nearest_even": lambda fmt: catalog.round_to_integral(fmt, Rounding.NEAREST_EVEN),
    "round_nearest_afz": lambda fmt: catalog.round_to_integral(fmt, Rounding.NEAREST_AWAY),
    "next_after": catalog.next_after,
    "is_finite": bits.is_finite,
    "sign": bits.sign,
}


def _named(name: str) -> Callable[..., Any]:
    def emit(lanes: Lanes, *reals: Any) -> Any:
        return lanes.call(name, reals[0].type, *reals)

    return emit


_REAL: dict[str, Callable[..., Any]] = {
    "add": lambda lanes, x, y: lanes.builder.fadd(x, y),
    "subtract": lambda lanes, x, y: lanes.builder.fsub(x, y),
    "multiply": lambda lanes, x, y: lanes.builder.fmul(x, y),
    "divide": lambda lanes, x, y: lanes.builder.fdiv(x, y),
    "remainder": lambda lanes, x, y: lanes.builder.frem(x, y),
    "sqrt": _named("llvm.sqrt"),
    "fma": _named("llvm.fma"),
    "minimum": _named("llvm.minimum"),
    "maximum": _named("llvm.maximum"),
    "floor": _named("llvm.floor"),
    "ceil": _named("llvm.ceil"),
    "trunc": _named("llvm.trunc"),
    "round_nearest_even": _named("llvm.rint"),
    "round_nearest_afz": _named("llvm.round"),
}


def _sign_masks(lanes: Lanes, dtype: DType) -> tuple[Any, Any]:
    kind, mask = word_type(dtype), dtype.float_format.sign_mask >> (64 * (dtype.limbs - 1))
    return lanes.splat(kind, mask), lanes.splat(kind, mask - 1)


def _negate(dtype: DType, lanes: Lanes, x: Item) -> Item:
    *low, top = lanes.limbs(x)
    return lanes.words(dtype, [*low, lanes.builder.xor(top, _sign_masks(lanes, dtype)[0])])


def _abs(dtype: DType, lanes: Lanes, x: Item) -> Item:
    *low, top = lanes.limbs(x)
    return lanes.words(dtype, [*low, lanes.builder.and_(top, _sign_masks(lanes, dtype)[1])])


def _copysign(dtype: DType, lanes: Lanes, x: Item, y: Item) -> Item:
    *low, top = lanes.limbs(x)
    sign, rest = _sign_masks(lanes, dtype)
    b = lanes.builder
    return lanes.words(dtype, [*low, b.or_(b.and_(top, rest), b.and_(lanes.limbs(y)[-1], sign))])


_SIGN_BIT: dict[str, Emit] = {"negate": _negate, "abs": _abs, "copysign": _copysign}
_OWN_SIGN: dict[str, Callable[[Format], Kernel]] = {
    "negate": bits.negate,
    "abs": bits.absolute,
    "copysign": bits.copysign,
}


def _is_finite(dtype: DType, result: DType, lanes: Lanes, x: Item) -> Item:
    fmt, kind, b = dtype.float_format, word_type(dtype), lanes.builder
    field = ((1 << fmt.exponent_bits) - 1) << fmt.fraction_bits
    finite: Any = None
    for number, limb in enumerate(lanes.limbs(x)):
        # the exponent's bits may lie in two limbs
        part = field >> (64 * number) & ((1 << 64) - 1)
        if part:
            mask = lanes.splat(kind, part)
            below = b.icmp_unsigned("!=", b.and_(limb, mask), mask)
            finite = below if finite is None else b.or_(finite, below)
    return lanes.truth(result, finite)


def _sign(dtype: DType, lanes: Lanes, x: Item) -> Item:
    b, real = lanes.builder, lanes.real(x)
    kind = real.type.element if isinstance(real.type, ir.VectorType) else real.type
    zero, one, minus = (lanes.splat(kind, value) for value in (0.0, 1.0, -1.0))
    unit = b.select(b.fcmp_ordered("<", real, zero), minus, one)
    # a zero is kept, and so is a NaN, which stands for the canonical one
    return lanes.number(dtype, b.select(b.fcmp_unordered("ueq", real, zero), real, unit))


def _remainder(dtype: DType) -> Emit:
    """By float64 where that has the numbers of a format: there the remainder is exact, and so is the way back."""
    kernel = elementary.kernel_of("remainder", dtype.float_format)
    if kernel is not None:
        return lambda lanes, *items: lanes.words(dtype, elementary.evaluated(kernel, dtype, lanes, items)[0])
    if not elementary.in_float64(dtype.float_format):
        return partial(_soft, catalog.remainder_truncated(dtype.float_format), dtype)
    wide = NAMED["float64"]
    there, back = _between_floats(dtype, wide), _between_floats(wide, dtype)
    return lambda lanes, *items: back(
        lanes, lanes.number(wide, lanes.builder.frem(*(lanes.real(there(lanes, item)) for item in items)))
    )


def _integer_pow(dtype: DType, exponent: int) -> Emit | None:
    """Of floats and of integers."""
    multiply = emitter("multiply", (dtype, dtype), dtype, {})
    if multiply is None:
        return None
    one = integer_word(dtype, 1)
    assert isinstance(one, int)
    if exponent == 0:
        return lambda lanes, x: lanes.literal(dtype, one)
    if exponent == 1 and dtype.is_float:
        # the number itself, but a NaN is the canonical one
        greatest = emitter("maximum", (dtype, dtype), dtype, {})
        return None if greatest is None else lambda lanes, x: greatest(lanes, x, x)
    if exponent > 0:
        return lambda lanes, x: _power(partial(multiply, lanes), x, exponent)
    divide, power = emitter("divide", (dtype, dtype), dtype, {}), _integer_pow(dtype, -exponent)
    if divide is None or power is None:
        return None
    return lambda lanes, x: divide(lanes, lanes.literal(dtype, one), power(lanes, x))


def _power(multiply: Callable[[Item, Item], Item], x: Item, exponent: int) -> Item:
    """x to a positive power by the schedule that the operation states."""
    accumulator: Item | None = None
    while True:
        if exponent & 1:
            accumulator = x if accumulator is None else multiply(accumulator, x)
        exponent >>= 1
        if accumulator is not None and not exponent:
            return accumulator
        x = multiply(x, x)


# Selection, comparison, conversion


def _select(operands: Sequence[DType], result: DType, attrs: Mapping[str, Any]) -> Emit:
    def emit(lanes: Lanes, condition: Item, x: Item, y: Item) -> Item:
        b, chosen = lanes.builder, lanes.bits(condition)
        if x.limbs is None and y.limbs is None:
            return lanes.number(result, b.select(chosen, x.real, y.real))
        pairs = zip(lanes.limbs(x), lanes.limbs(y), strict=True)
        return lanes.words(result, [b.select(chosen, left, right) for left, right in pairs])

    return emit


_ORDERED = {"EQ": "==", "LT": "<", "LE": "<=", "GT": ">", "GE": ">=", "NE": "!="}


def _compare(operands: Sequence[DType], result: DType, attrs: Mapping[str, Any]) -> Emit | None:
    dtype, direction = operands[0], attrs["comparison_direction"]
    if attrs.get("compare_type") == "TOTALORDER":
        return partial(_soft, bits.total_order(dtype.float_format, direction), result)
    if dtype.is_float and carrier(dtype) is None:
        return partial(_soft, catalog.compare(dtype.float_format, direction), result)

    def emit(lanes: Lanes, x: Item, y: Item) -> Item:
        b, sign = lanes.builder, _ORDERED[direction]
        if dtype.is_float:
            # with a NaN only NE is true
            compare = b.fcmp_unordered if direction == "NE" else b.fcmp_ordered
            return lanes.truth(result, compare(sign, lanes.real(x), lanes.real(y)))
        compare = b.icmp_signed if dtype.is_signed else b.icmp_unsigned
        return lanes.truth(
            result, compare(sign, *(integers.value_of(lanes, dtype, lanes.bits(item)) for item in (x, y)))
        )

    return emit


def _bitcast(operands: Sequence[DType], result: DType, attrs: Mapping[str, Any]) -> Emit | None:
    if operands[0].bits != result.bits:
        return None
    return lambda lanes, x: lanes.words(result, lanes.limbs(x))


def _convert(operands: Sequence[DType], result: DType, attrs: Mapping[str, Any]) -> Emit:
    source = operands[0]
    if source == result:
        return lambda lanes, x: x
    if result.is_bool:
        return partial(_truth, source, result)
    if source.is_float and result.is_float:
        return _between_floats(source, result)
    if source.is_float:
        return _to_integer(source, result, attrs.get("out_of_range", "saturate"))
    if result.is_float:
        return _from_integer(source, result)
    if source.is_bool:
        return lambda lanes, x: lanes.word(result, lanes.resized(lanes.bits(x), word_type(result)))

    def emit(lanes: Lanes, x: Item) -> Item:
        value = integers.value_of(lanes, source, lanes.bits(x))
        return integers.held(lanes, result, lanes.resized(value, word_type(result), source.is_signed))

    return emit


def _truth(source: DType, result: DType, lanes: Lanes, x: Item) -> Item:
    """Whether a value is not zero; NaN is not."""
    b = lanes.builder
    if source.is_float and not source.float_format.has_zero:
        return lanes.literal(result, 1)
    *low, top = lanes.limbs(x)
    if source.is_float and source.float_format.signed_zero:
        top = b.and_(top, _sign_masks(lanes, source)[1])
    for limb in low:
        top = b.or_(top, limb)
    return lanes.truth(result, b.icmp_unsigned("!=", top, lanes.splat(word_type(source), 0)))


def _between_floats(source: DType, result: DType) -> Emit:
    a, c = source.float_format, result.float_format
    if a == c:
        # a format under two names: the words are kept, those of NaN too
        return lambda lanes, x: lanes.words(result, lanes.limbs(x))
    if carrier(source) is not None and c in (FLOAT32, FLOAT64) and a != FLOAT64:
        return lambda lanes, x: lanes.number(result, _extended(lanes, lanes.real(x), c))
    if (a, c) == (FLOAT64, FLOAT32):
        return lambda lanes, x: lanes.number(result, lanes.builder.fptrunc(lanes.real(x), lanes.type(FLOAT)))
    if a == FLOAT32 and c in (FLOAT16, BFLOAT16):
        return lambda lanes, x: lanes.number(result, narrowed(lanes, c, lanes.real(x)))
    return partial(_soft, catalog.convert(a, c), result)


def _extended(lanes: Lanes, real: Any, fmt: Format) -> Any:
    return real if fmt == FLOAT32 else lanes.builder.fpext(real, lanes.type(DOUBLE))


def _to_integer(source: DType, result: DType, out_of_range: str) -> Emit:
    fmt = source.float_format
    if out_of_range == "saturate":
        return partial(_soft, catalog.to_integer(fmt, result.bits, result.is_signed, Rounding.TOWARD_ZERO), result)
    if result.bits < 32:
        # what does not fit is what int32 has for it, modulo 2^bits
        wide, narrowing = _to_integer(source, INT32, out_of_range), _convert([INT32], result, {})
        return lambda lanes, x: narrowing(lanes, wide(lanes, x))
    kernel = catalog.to_integer(fmt, result.bits, result.is_signed, Rounding.TOWARD_ZERO, flags=True)

    def emit(lanes: Lanes, x: Item) -> Item:
        found, flags = _software(kernel, result, lanes, x)
        machine = lanes.machine(kernel.bits)
        invalid = machine.and_(flags, machine.constant(int(Flags.INVALID)))
        least = lanes.splat(word_type(result), 1 << (result.bits - 1))
        inside = machine.equal(invalid, machine.constant(0))
        word = lanes.bits(found)
        return lanes.word(result, lanes.builder.select(inside, word, least))

    return emit


def _from_integer(source: DType, result: DType) -> Emit:
    fmt = result.float_format
    if fmt in (FLOAT32, FLOAT64):
        # one rounding, by the processor

        def emit(lanes: Lanes, x: Item) -> Item:
            convert = lanes.builder.sitofp if source.is_signed else lanes.builder.uitofp
            word = integers.value_of(lanes, source, lanes.bits(x))
            return lanes.number(result, convert(word, lanes.type(FLOAT if fmt == FLOAT32 else DOUBLE)))

        return emit
    width = max(source.bits, 2)
    return partial(_soft, catalog.from_integer(fmt, width, source.is_signed, Rounding.NEAREST_EVEN), result)
