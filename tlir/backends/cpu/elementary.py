"""Elementary functions inside kernels: the compiled kernels of ``tlir.floatlib``, and the specification for the lanes
in which their bound does not decide the rounding.

The code of a kernel calls the function that ``settle`` provides for those.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from tlir.backends.cpu.settle import SYMBOL, symbol
from tlir.backends.cpu.values import FLOAT32, FLOAT64, Item, Lanes, word_type
from tlir.floatlib.elementary import single
from tlir.floatlib.elementary.double import loop as elementary_double_loop
from tlir.floatlib.elementary.narrow import arrays as elementary_fast
from tlir.floatlib.elementary.narrow import loop as elementary_loop
from tlir.floatlib.elementary.wide import loop as wide_loop
from tlir.floatlib.elementary.wide import remainder as wide_remainder
from tlir.floatlib.format import Format, text_of
from tlir.floatlib.soft.blocks import LANES
from tlir.floatlib.soft.catalog import UNDECIDED, Kernel
from tlir.floatlib.soft.lanes import I64, REGISTER, SingleMachine, concatenated, joined, part
from tlir.ir.types import DType
from tlir.kernel import ir as ir_kernel

_BYTE = ir.IntType(8)


def kernel_of(op: str, fmt: Format) -> Kernel | None:
    """The kernel of a function in a format, whose flags have the bit ``UNDECIDED``; None where there is none. Of
    remainders those whose steps do not depend on the operands, where float64's do not serve."""
    if op == wide_remainder.NAME:
        return wide_remainder.loop(fmt) if wide_remainder.applies(fmt) and not in_float64(fmt) else None
    if elementary_fast.applies(op, fmt):
        return elementary_loop.loop(op, fmt)
    if elementary_double_loop.applies(op, fmt):
        return elementary_double_loop.loop(op, fmt)
    return wide_loop.loop(op, fmt) if wide_loop.applies(op, fmt) else None


def in_float64(fmt: Format) -> bool:
    """Whether float64 has all numbers of a format, and the format a zero."""
    small = fmt.emin - fmt.fraction_bits >= FLOAT64.emin - FLOAT64.fraction_bits and fmt.emax <= FLOAT64.emax
    return fmt.has_zero and fmt.precision <= FLOAT64.precision and small


def called(kernel: ir_kernel.Kernel) -> tuple[str, ...]:
    """The keys of the kernels of thousands of operations that a kernel calls."""
    applied = [s for s in kernel.body.walk() if isinstance(s, ir_kernel.Apply) and s.result.dtype.is_float]
    made = [kernel_of(s.op, s.result.dtype.float_format) for s in applied]
    return tuple(dict.fromkeys(one.key for one in made if one is not None and one.key))


def emit(kernel: Kernel, op: str, dtype: DType, lanes: Lanes, *items: Item) -> Item:
    """The function in every lane."""
    quick = single.KERNELS.get(op) if dtype.float_format == FLOAT32 and lanes.lanes % REGISTER == 0 else None
    machine = SingleMachine(lanes.builder, REGISTER)
    if quick is None or not machine.has_fma:
        return _decided(kernel, op, dtype, lanes, items)
    b, operands = lanes.builder, [lanes.real(item) for item in items]
    words, left = [], machine.truth(False)
    for first in range(0, lanes.lanes, REGISTER):
        word, some = quick(machine, *(part(b, operand, first, REGISTER) for operand in operands))
        words.append(word)
        left = machine.either(left, some)
    return lanes.words(
        dtype,
        lanes.unlikely(left, [concatenated(b, words)], lambda: [_apart(kernel, op, dtype, lanes, items)]),
    )


def _apart(kernel: Kernel, op: str, dtype: DType, lanes: Lanes, items: Sequence[Item]) -> Any:
    """The words by a function of the module, so that what is rarely run is compiled once."""
    module, name = lanes.builder.module, f"{op} {text_of(dtype.float_format)} {lanes.lanes}"
    function = module.globals.get(name)
    if function is None:
        kind = lanes.type(word_type(dtype))
        function = ir.Function(module, ir.FunctionType(kind, [kind] * len(items)), name)
        function.linkage = "internal"
        function.attributes.add("noinline")
        builder = ir.IRBuilder(function.append_basic_block("entry"))
        inside = Lanes(builder, lanes.lanes)
        operands = [inside.word(item.dtype, word) for item, word in zip(items, function.args, strict=True)]
        builder.ret(inside.bits(_decided(kernel, op, dtype, inside, operands)))
    return lanes.builder.call(function, [lanes.bits(item) for item in items])


def _decided(kernel: Kernel, op: str, dtype: DType, lanes: Lanes, items: Sequence[Item]) -> Item:
    words, left = evaluated(kernel, dtype, lanes, items)
    return settled(lanes, op, dtype, items, words, left)


def evaluated(kernel: Kernel, dtype: DType, lanes: Lanes, items: Sequence[Item]) -> tuple[list[Any], Any]:
    """The limbs of a kernel's results, and in which lanes they are not certain. A kernel of thousands of operations is
    called, others are written where they are needed."""
    if kernel.key:
        return _called(kernel, dtype, lanes, items) if lanes.call_block is None else lanes.call_block(kernel, items)
    machine = lanes.machine(kernel.bits)
    found = kernel(machine, *(lanes.uint(item, kernel.bits) for item in items))
    mark = machine.and_(found.flags, machine.constant(UNDECIDED))
    left = lanes.builder.not_(machine.equal(mark, machine.constant(0)))
    return lanes.limbs(lanes.from_uint(dtype, found.word)), left


def _called(kernel: Kernel, dtype: DType, lanes: Lanes, items: Sequence[Item]) -> tuple[list[Any], Any]:
    """By the function of ``tlir.floatlib.soft.blocks``, whose memory has 64-bit words of ``LANES`` elements."""
    b, count = lanes.builder, min(lanes.lanes, LANES)
    operands = [lanes.resized(limb, I64) for item in items for limb in lanes.limbs(item)]
    kind = ir.ArrayType(I64, LANES * (len(operands) + dtype.limbs + 1))
    with b.goto_entry_block():
        memory = b.alloca(kind)
        memory.align = 64
        if count < LANES:
            # what no lane writes is read all the same
            b.store(ir.Constant(kind, None), memory)

    def place(number: int) -> Any:
        pointer = b.gep(memory, [ir.Constant(I64, 0), ir.Constant(I64, number * LANES)], inbounds=True)
        return pointer if count == 1 else b.bitcast(pointer, ir.VectorType(I64, count).as_pointer())

    function = b.module.globals.get(symbol(kernel.key))
    if function is None:
        function = ir.Function(b.module, ir.FunctionType(ir.VoidType(), [I64.as_pointer()]), symbol(kernel.key))
    words = b.gep(memory, [ir.Constant(I64, 0), ir.Constant(I64, 0)], inbounds=True)
    parts: list[list[Any]] = []
    for first in range(0, lanes.lanes, count):
        for k, operand in enumerate(operands):
            b.store(part(b, operand, first, count) if lanes.lanes > 1 else operand, place(k))
        b.call(function, [words])
        parts.append([b.load(place(len(operands) + k)) for k in range(dtype.limbs + 1)])
    *results, mark = (concatenated(b, list(limb)) for limb in zip(*parts, strict=True))
    mark = b.and_(mark, lanes.splat(I64, UNDECIDED))
    left = b.icmp_unsigned("!=", mark, lanes.splat(I64, 0))
    return [lanes.resized(result, word_type(dtype)) for result in results], left


def settled(lanes: Lanes, op: str, dtype: DType, items: Sequence[Item], words: list[Any], left: Any) -> Item:
    """The word of these limbs, but in the lanes of ``left`` that of the specification's function ``op`` of the
    items."""
    b = lanes.builder
    if lanes.settle is not None:
        return lanes.settle(op, dtype, items, words, left)
    bits = ir.IntType(lanes.lanes)
    mask = left if lanes.lanes == 1 else b.bitcast(left, bits)
    # their words may be used again: they are made where everything behind can see them
    operands = [lanes.limbs(item) for item in items]
    before = b.block
    with b.if_then(b.icmp_unsigned("!=", mask, ir.Constant(bits, 0)), likely=False):
        settled = _settle(lanes, op, dtype, operands, b.zext(mask, I64) if lanes.lanes < 64 else mask)
        corrected = [b.select(left, new, old) for new, old in zip(settled, words, strict=True)]
        inside = b.block
    pairs = zip(words, corrected, strict=True)
    return lanes.words(dtype, [joined(b, old, before, new, inside) for old, new in pairs])


def _settle(lanes: Lanes, op: str, dtype: DType, operands: list[list[Any]], mask: Any) -> list[Any]:
    """The specification's words in the lanes of the mask."""
    b, count, limbs = lanes.builder, lanes.lanes, dtype.limbs
    kind = ir.ArrayType(I64, count * limbs * (len(operands) + 1))
    with b.goto_entry_block():
        memory = b.alloca(kind)
        memory.align = 64

    def place(number: int) -> Any:
        return b.gep(memory, [ir.Constant(I64, 0), ir.Constant(I64, number * count)], inbounds=True)

    def wide(number: int) -> Any:
        pointer = place(number)
        return pointer if count == 1 else b.bitcast(pointer, ir.VectorType(I64, count).as_pointer())

    for k, limb in enumerate(limb for operand in operands for limb in operand):
        b.store(lanes.resized(limb, I64), wide(k))
    arguments = [_text(b, f"{op} {text_of(dtype.float_format)}"), ir.Constant(I64, count)]
    arguments += [ir.Constant(I64, len(operands)), mask, place(0)]
    function = b.module.globals.get(SYMBOL)
    if function is None:
        types = [argument.type for argument in arguments]
        function = ir.Function(b.module, ir.FunctionType(ir.VoidType(), types), SYMBOL)
    b.call(function, arguments)
    results = range(len(operands) * limbs, (len(operands) + 1) * limbs)
    return [lanes.resized(b.load(wide(number)), word_type(dtype)) for number in results]


def _text(builder: ir.IRBuilder, text: str) -> Any:
    module, name = builder.module, "name " + text
    constant = module.globals.get(name)
    if constant is None:
        data = bytearray(text.encode() + b"\0")
        kind = ir.ArrayType(_BYTE, len(data))
        constant = ir.GlobalVariable(module, kind, name)
        constant.linkage, constant.global_constant = "private", True
        constant.initializer = ir.Constant(kind, data)
    return builder.bitcast(constant, _BYTE.as_pointer())
