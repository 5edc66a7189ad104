"""Kernels of thousands of operations in LLVM's assembly language.

A loop that LLVM vectorises itself takes it minutes for so many operations. Here they are recorded, without what no
result needs, and written in vectors, which are translated as they are. ``blocks`` says what the functions take.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from tlir.floatlib.soft.blocks import LANES
from tlir.floatlib.soft.catalog import Kernel
from tlir.floatlib.soft.lanes import I64, LaneMachine
from tlir.floatlib.soft.numpy_loop import count_limbs
from tlir.floatlib.soft.tape import record
from tlir.floatlib.words import integer_dtype

ALIGNMENT = 64

_BYTE = ir.IntType(8)


def emit(kernel: Kernel) -> str:
    """The kernel's module in LLVM's assembly language."""
    module = ir.Module("blocks")
    block = _block(module, kernel)
    _loop(module, kernel, block)
    lines = [line + " #0" if line.startswith("define ") else line for line in str(module).splitlines()]
    return "\n".join([*lines, 'attributes #0 = { noinline nounwind "prefer-vector-width"="512" }'])


def _block(module: ir.Module, kernel: Kernel) -> Any:
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [I64.as_pointer()]), "block")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    machine = LaneMachine(builder, 64, LANES)
    vectors = builder.bitcast(function.args[0], machine.type.as_pointer())

    def place(number: int) -> Any:
        return builder.gep(vectors, [ir.Constant(I64, number)], inbounds=True)

    tape = record(kernel, kernel.bits, kernel.operands, kernel.flags)
    operands = [builder.load(place(k), align=ALIGNMENT) for k in range(len(tape.inputs))]
    for k, result in enumerate(tape.carried_out(machine, operands)):
        builder.store(result, place(len(operands) + k), align=ALIGNMENT)
    builder.ret_void()
    return function


def _loop(module: ir.Module, kernel: Kernel, block: Any) -> None:
    """Blocks whose elements are copied from and to arrays; behind the last element of all it is repeated."""
    kinds = [ir.IntType(8 * integer_dtype(min(width, 64)).itemsize) for width in (*kernel.operands, kernel.result)]
    parameters = [I64, *(kind.as_pointer() for kind in kinds), _BYTE.as_pointer()]
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), parameters), "loop")
    size, *pointers, out, out_flags = function.args
    entry, head, body, leave = (function.append_basic_block(name) for name in ("entry", "head", "body", "leave"))
    b = ir.IRBuilder(entry)
    counts = [count_limbs(width) for width in (*kernel.operands, kernel.result)]
    memory = b.alloca(ir.ArrayType(I64, LANES * (sum(counts) + 1)))
    memory.align = ALIGNMENT
    words = b.gep(memory, [ir.Constant(I64, 0), ir.Constant(I64, 0)], inbounds=True)
    b.branch(head)
    b.position_at_end(head)
    first = b.phi(I64)
    first.add_incoming(ir.Constant(I64, 0), entry)
    b.cbranch(b.icmp_unsigned("<", first, size), body, leave)
    b.position_at_end(body)
    last = b.sub(size, ir.Constant(I64, 1))

    def copies(copy: Callable[[Any, Any], None]) -> None:
        """``copy(element, lane)`` for each lane."""
        before, again, after = b.block, function.append_basic_block("lane"), function.append_basic_block("lanes")
        b.branch(again)
        b.position_at_end(again)
        lane = b.phi(I64)
        lane.add_incoming(ir.Constant(I64, 0), before)
        element = b.add(first, lane)
        copy(b.select(b.icmp_unsigned("<", element, last), element, last), lane)
        following = b.add(lane, ir.Constant(I64, 1))
        lane.add_incoming(following, b.block)
        b.cbranch(b.icmp_unsigned("<", following, ir.Constant(I64, LANES)), again, after)
        b.position_at_end(after)

    def place(number: int, lane: Any) -> Any:
        return b.gep(words, [b.add(lane, ir.Constant(I64, LANES * number))], inbounds=True)

    def at(pointer: Any, element: Any, count: int, limb: int) -> Any:
        return b.gep(pointer, [b.add(b.mul(element, ir.Constant(I64, count)), ir.Constant(I64, limb))], inbounds=True)

    def copy_in(element: Any, lane: Any) -> None:
        number = 0
        for pointer, count in zip(pointers, counts, strict=False):
            for limb in range(count):
                word = b.load(at(pointer, element, count, limb))
                b.store(word if word.type == I64 else b.zext(word, I64), place(number, lane))
                number += 1

    def copy_out(element: Any, lane: Any) -> None:
        number, count, kind = sum(counts[:-1]), counts[-1], kinds[-1]
        for limb in range(count):
            word = b.load(place(number + limb, lane))
            b.store(word if kind == I64 else b.trunc(word, kind), at(out, element, count, limb))
        if kernel.flags:
            b.store(b.trunc(b.load(place(number + count, lane)), _BYTE), at(out_flags, element, 1, 0))

    copies(copy_in)
    b.call(block, [words])
    copies(copy_out)
    first.add_incoming(b.add(first, ir.Constant(I64, LANES)), b.block)
    b.branch(head)
    b.position_at_end(leave)
    b.ret_void()
