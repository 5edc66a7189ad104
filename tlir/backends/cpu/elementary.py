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
from tlir.backends.cpu.values import FLOAT64, Item, Lanes
from tlir.floatlib.elementary.double import loop as elementary_double_loop
from tlir.floatlib.elementary.narrow import arrays as elementary_fast
from tlir.floatlib.elementary.narrow import loop as elementary_loop
from tlir.floatlib.format import FORMATS, Format
from tlir.floatlib.soft.catalog import Kernel
from tlir.ir.types import DType

UNDECIDED = 0x80

_BYTE = ir.IntType(8)
_NAMED: dict[Format, str] = {fmt: name for name, fmt in FORMATS.items()}


def kernel_of(op: str, fmt: Format) -> Kernel | None:
    """The kernel of a function in a format, whose flags have the bit ``UNDECIDED``; None where there is none."""
    if fmt not in _NAMED:
        return None
    if elementary_fast.applies(op, fmt):
        return elementary_loop.loop(op, fmt)
    if fmt == FLOAT64 and elementary_double_loop.applies(op, fmt):
        return elementary_double_loop.loop(op, fmt)
    return None


def emit(kernel: Kernel, op: str, dtype: DType, lanes: Lanes, *items: Item) -> Item:
    """The function in every lane."""
    b, machine = lanes.builder, lanes.machine(kernel.bits)
    found = kernel(machine, *(lanes.uint(item, kernel.bits) for item in items))
    word = lanes.bits(lanes.from_uint(dtype, found.word))
    mark = machine.and_(found.flags, machine.constant(UNDECIDED))
    left = b.not_(machine.equal(mark, machine.constant(0)))
    return settled(lanes, op, dtype, items, word, left)


def settled(lanes: Lanes, op: str, dtype: DType, items: Sequence[Item], word: Any, left: Any) -> Item:
    """The word, but in the lanes of ``left`` that of the specification's function ``op`` of the items."""
    b = lanes.builder
    if lanes.settle is not None:
        return lanes.settle(op, dtype, items, word, left)
    bits = ir.IntType(lanes.lanes)
    mask = left if lanes.lanes == 1 else b.bitcast(left, bits)
    # their words may be used again: they are made where everything behind can see them
    operands = [lanes.bits(item) for item in items]
    before = b.block
    with b.if_then(b.icmp_unsigned("!=", mask, ir.Constant(bits, 0)), likely=False):
        settled = _settle(lanes, op, dtype, operands, b.zext(mask, I64) if lanes.lanes < 64 else mask)
        corrected = b.select(left, settled, word)
        inside = b.block
    result = b.phi(word.type)
    result.add_incoming(word, before)
    result.add_incoming(corrected, inside)
    return lanes.word(dtype, result)


def _settle(lanes: Lanes, op: str, dtype: DType, operands: list[Any], mask: Any) -> Any:
    """The specification's words in the lanes of the mask."""
    b, count = lanes.builder, lanes.lanes
    kind = ir.ArrayType(I64, count * (len(operands) + 1))
    with b.goto_entry_block():
        memory = b.alloca(kind)
        memory.align = 64

    def place(number: int) -> Any:
        return b.gep(memory, [ir.Constant(I64, 0), ir.Constant(I64, number * count)], inbounds=True)

    def wide(number: int) -> Any:
        pointer = place(number)
        return pointer if count == 1 else b.bitcast(pointer, ir.VectorType(I64, count).as_pointer())

    for k, operand in enumerate(operands):
        b.store(lanes.resized(operand, I64), wide(k))
    arguments = [_text(b, f"{op} {_NAMED[dtype.float_format]}"), ir.Constant(I64, count)]
    arguments += [ir.Constant(I64, len(operands)), mask, place(0)]
    function = b.module.globals.get(SYMBOL)
    if function is None:
        types = [argument.type for argument in arguments]
        function = ir.Function(b.module, ir.FunctionType(ir.VoidType(), types), SYMBOL)
    b.call(function, arguments)
    word = operands[0].type
    element = word.element if isinstance(word, ir.VectorType) else word
    return lanes.resized(b.load(wide(len(operands))), element)


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
