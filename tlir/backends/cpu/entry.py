"""Functions of compiled code that are called from outside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from tlir.backends.cpu.values import word_type
from tlir.floatlib.soft import objects
from tlir.floatlib.soft.lanes import I32, I64
from tlir.kernel.ir import Buffer, Kernel

BYTES = ir.IntType(8).as_pointer()
_DEFAULT_CONTROL, _CONTROL_BITS = 0x1F80, 0xFFC0
"""x86's MXCSR with round to nearest, no flushing and no traps, and the bits that say so."""


def external(kernel: Kernel) -> list[tuple[Buffer, Any]]:
    """The buffers that are arguments, and the types of their addresses."""
    return [(buffer, word_type(buffer.dtype).as_pointer()) for buffer in kernel.buffers if buffer.role != "local"]


def module_text(module: ir.Module) -> str:
    """The module in LLVM's assembly language, with what holds for all of its functions."""
    lines = [line + " #0" if line.startswith("define ") else line for line in str(module).splitlines()]
    return "\n".join([*lines, 'attributes #0 = { nounwind "prefer-vector-width"="512" }'])


class Entry:
    """Two functions: ``name(4 integers, scratch, buffers…)``, whose body is emitted by ``builder`` until ``close``, and
    ``name_part(4 integers, scratch, array)``, which finds the addresses of the buffers in an array."""

    def __init__(self, module: ir.Module, kinds: Sequence[Any], name: str = "kernel") -> None:
        self.module, self.name, self.kinds = module, name, kinds
        every = [*[I64] * 4, BYTES, *kinds]
        self.function = ir.Function(module, ir.FunctionType(ir.VoidType(), every), name)
        for argument in self.function.args[4:]:
            argument.add_attribute("noalias")
        self.numbers, self.scratch = self.function.args[:4], self.function.args[4]
        self.pointers = list(self.function.args[5:])
        self.builder = ir.IRBuilder(self.function.append_basic_block("entry"))
        self._control = _enter(self.builder)

    def close(self) -> None:
        """The end of both functions."""
        _leave(self.builder, self._control)
        self.builder.ret_void()
        kind = ir.FunctionType(ir.VoidType(), [*[I64] * 4, BYTES, BYTES.as_pointer()])
        part = ir.Function(self.module, kind, f"{self.name}_part")
        builder = ir.IRBuilder(part.append_basic_block("entry"))
        addresses = []
        for k, pointer in enumerate(self.kinds):
            address = builder.load(builder.gep(part.args[5], [ir.Constant(I64, k)]))
            addresses.append(builder.bitcast(address, pointer))
        builder.call(self.function, [*part.args[:5], *addresses])
        builder.ret_void()


def _enter(builder: ir.IRBuilder) -> Any:
    """Makes sure that subnormal numbers are kept and results rounded to nearest: another library in the process may
    have changed this thread's control register. What it was is put back at the end."""
    if not objects.is_x86():
        return None
    place = builder.alloca(I32)
    pointer = builder.bitcast(place, ir.IntType(8).as_pointer())
    _control(builder, "llvm.x86.sse.stmxcsr", pointer)
    before = builder.load(place)
    unusual = builder.icmp_unsigned(
        "!=", builder.and_(before, ir.Constant(I32, _CONTROL_BITS)), ir.Constant(I32, _DEFAULT_CONTROL)
    )
    with builder.if_then(unusual, likely=False):
        builder.store(ir.Constant(I32, _DEFAULT_CONTROL), place)
        _control(builder, "llvm.x86.sse.ldmxcsr", pointer)
        builder.store(before, place)
    return unusual, pointer


def _leave(builder: ir.IRBuilder, control: Any) -> None:
    if control is not None:
        unusual, pointer = control
        with builder.if_then(unusual, likely=False):
            _control(builder, "llvm.x86.sse.ldmxcsr", pointer)


def _control(builder: ir.IRBuilder, name: str, pointer: Any) -> None:
    function = builder.module.globals.get(name)
    if function is None:
        function = ir.Function(builder.module, ir.FunctionType(ir.VoidType(), [pointer.type]), name)
    builder.call(function, [pointer])
