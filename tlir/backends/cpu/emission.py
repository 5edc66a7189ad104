"""A kernel as a module in LLVM's assembly language."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import Any

from llvmlite import ir

from tlir.backends.cpu.compiled import Plan
from tlir.backends.cpu.lanes import I32, I64
from tlir.backends.cpu.nest import Emitter, unsupported
from tlir.backends.cpu.space import Nest, arrange
from tlir.backends.cpu.stages import staged
from tlir.backends.cpu.tile import ROWS, Tiles, counted_out, suits
from tlir.backends.cpu.values import word_type
from tlir.floatlib.soft import objects
from tlir.ir.graph import Graph
from tlir.kernel.index import Variable
from tlir.kernel.ir import Buffer, Kernel, Launch
from tlir.kernel.patterns import Contraction, as_contraction
from tlir.passes.lower import lower

ALIGNMENT = 64
_DEFAULT_CONTROL, _CONTROL_BITS = 0x1F80, 0xFFC0
"""x86's MXCSR with round to nearest, no flushing and no traps, and the bits that say so."""


def emitted(kernel: Kernel) -> tuple[Plan, str] | str:
    """How a kernel is called, and its module in LLVM's assembly language; or why it is not compiled."""
    made = _written(kernel)
    if isinstance(made, str):
        return made
    nest, text, scratch = made
    empty = any(v.extent == 0 for v in nest.kernel.space)
    return Plan(nest.outer_count, nest.lane_count, nest.lanes, scratch, empty), text


def llvm_text(graph: Graph) -> str:
    """The module of every kernel of a graph, as it is before LLVM optimises it; for one that is not compiled why."""
    parts = []
    for step in lower(graph.body).steps:
        if not isinstance(step, Launch):
            continue
        stages = staged(step.kernel)
        for kernel in [step.kernel] if stages is None else [stage.kernel for stage in stages.stages]:
            made = _written(kernel)
            parts.append(f"; {kernel.name}: {made}\n" if isinstance(made, str) else f"; {kernel.name}\n{made[1]}\n")
    return "\n".join(parts)


def _written(kernel: Kernel) -> tuple[Nest, str, int] | str:
    """The loops of a kernel, its module and its bytes of scratch memory; or why it is not compiled."""
    nest = arrange(kernel)
    reason = unsupported(nest)
    if reason is not None:
        return reason
    contraction = as_contraction(kernel)
    if contraction is not None and suits(contraction):
        nest = _rows(contraction)
        return (nest, *_emit(nest, contraction))
    return (nest, *_emit(nest, None))


def _rows(contraction: Contraction) -> Nest:
    """Batches as the outer iterations, rows as what the lanes run along, as far as threads share them."""
    count = prod(v.extent for v in contraction.rows)
    number = 1 + max(v.number for v in contraction.kernel.space)
    return Nest(contraction.kernel, contraction.batch, Variable(number, count), ROWS)


def _emit(nest: Nest, contraction: Contraction | None) -> tuple[str, int]:
    """The module of a kernel in LLVM's assembly language, and the bytes of scratch memory that a thread needs."""
    module = ir.Module("kernel")
    buffers = [buffer for buffer in nest.kernel.buffers if buffer.role != "local"]
    kinds = [word_type(buffer.dtype).as_pointer() for buffer in buffers]
    byte = ir.IntType(8).as_pointer()
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [*[I64] * 4, byte, *kinds]), "kernel")
    for argument in function.args[4:]:
        argument.add_attribute("noalias")
    outer_from, outer_to, lane_from, lane_to, scratch, *pointers = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    starts: dict[Buffer, Any] = dict(zip(buffers, pointers, strict=True))
    control = _enter(builder)
    if contraction is not None:
        tiles = Tiles(builder, contraction, starts, scratch)
        used = tiles.scratch_bytes
        with _counting(builder, outer_from, outer_to) as batch:
            tiles.emit(batch, lane_from, lane_to)
    else:
        used = _place_locals(builder, nest, scratch, starts)
        emitter = Emitter(builder, nest, starts)
        with _counting(builder, outer_from, outer_to) as outer:
            emitter.addresses.counters |= counted_out(builder, nest.outer, outer)
            _along_lanes(emitter, nest, lane_from, lane_to)
    _leave(builder, control)
    builder.ret_void()
    lines = [line + " #0" if line.startswith("define ") else line for line in str(module).splitlines()]
    return "\n".join([*lines, 'attributes #0 = { nounwind "prefer-vector-width"="512" }']), used


def _along_lanes(emitter: Emitter, nest: Nest, lane_from: Any, lane_to: Any) -> None:
    if nest.lane is None:
        emitter.block(nest.kernel.body)
        return
    b = emitter.builder
    with _counting(b, lane_from, lane_to, nest.lanes) as position:
        last = b.sub(lane_to, ir.Constant(I64, nest.lanes))
        emitter.addresses.counters[nest.lane] = b.select(b.icmp_signed(">", position, last), last, position)
        emitter.block(nest.kernel.body)


def _place_locals(builder: ir.IRBuilder, nest: Nest, scratch: Any, starts: dict[Buffer, Any]) -> int:
    used = 0
    for buffer in nest.kernel.buffers:
        if buffer.role == "local":
            kind = word_type(buffer.dtype)
            starts[buffer] = builder.bitcast(builder.gep(scratch, [ir.Constant(I64, used)]), kind.as_pointer())
            size = buffer.size * nest.lanes * buffer.dtype.limbs * kind.width // 8
            used += -(-size // ALIGNMENT) * ALIGNMENT
    return used


@contextmanager
def _counting(builder: ir.IRBuilder, first: Any, end: Any, step: int = 1) -> Iterator[Any]:
    """A loop ``for position in range(first, end, step)``; nothing happens where the range is empty."""
    before = builder.block
    head, after = builder.append_basic_block("loop"), builder.append_basic_block("after")
    builder.cbranch(builder.icmp_signed("<", first, end), head, after)
    builder.position_at_end(head)
    position = builder.phi(I64)
    position.add_incoming(first, before)
    yield position
    following = builder.add(position, ir.Constant(I64, step))
    position.add_incoming(following, builder.block)
    builder.cbranch(builder.icmp_signed("<", following, end), head, after)
    builder.position_at_end(after)


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
