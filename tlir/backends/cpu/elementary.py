"""Elementary functions inside kernels: the compiled kernels of ``tlir.floatlib``, and the specification for the lanes
in which their bound does not decide the rounding.

The code of a kernel calls the function that ``settle`` provides for those.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from tlir.backends.cpu.lanes import I64
from tlir.backends.cpu.settle import SYMBOL
from tlir.backends.cpu.values import Item, Lanes, word_type
from tlir.floatlib.elementary.double import loop as elementary_double_loop
from tlir.floatlib.elementary.narrow import arrays as elementary_fast
from tlir.floatlib.elementary.narrow import loop as elementary_loop
from tlir.floatlib.format import Format, text_of
from tlir.floatlib.soft.catalog import Kernel
from tlir.ir.types import DType

UNDECIDED = 0x80

_BYTE = ir.IntType(8)


def kernel_of(op: str, fmt: Format) -> Kernel | None:
    """The kernel of a function in a format, whose flags have the bit ``UNDECIDED``; None where there is none."""
    if elementary_fast.applies(op, fmt):
        return elementary_loop.loop(op, fmt)
    if elementary_double_loop.applies(op, fmt):
        return elementary_double_loop.loop(op, fmt)
    return None


def emit(kernel: Kernel, op: str, dtype: DType, lanes: Lanes, *items: Item) -> Item:
    """The function in every lane."""
    b, machine = lanes.builder, lanes.machine(kernel.bits)
    found = kernel(machine, *(lanes.uint(item, kernel.bits) for item in items))
    words = lanes.limbs(lanes.from_uint(dtype, found.word))
    mark = machine.and_(found.flags, machine.constant(UNDECIDED))
    left = b.not_(machine.equal(mark, machine.constant(0)))
    return settled(lanes, op, dtype, items, words, left)


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
    results = []
    for old, new in zip(words, corrected, strict=True):
        result = b.phi(old.type)
        result.add_incoming(old, before)
        result.add_incoming(new, inside)
        results.append(result)
    return lanes.words(dtype, results)


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
