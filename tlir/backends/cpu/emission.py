"""A kernel as a module in LLVM's assembly language."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from llvmlite import ir

from tlir.backends.cpu.compiled import Plan
from tlir.backends.cpu.elementary import called
from tlir.backends.cpu.entry import Entry, external, module_text
from tlir.backends.cpu.factor import counted_out
from tlir.backends.cpu.nest import Emitter, unsupported
from tlir.backends.cpu.space import Nest, arrange, crosses_memory
from tlir.backends.cpu.stages import Stages, by_rows, staged
from tlir.backends.cpu.tile import suits, tiles_module
from tlir.backends.cpu.values import word_type
from tlir.floatlib.soft.lanes import I64
from tlir.ir.graph import Graph
from tlir.ir.ops import OPERATIONS
from tlir.kernel import index as ix
from tlir.kernel.cutting import block_work
from tlir.kernel.index import Index, Variable
from tlir.kernel.ir import Apply, Buffer, Kernel, Launch, Load, Store
from tlir.kernel.joining import replaced
from tlir.kernel.patterns import as_contraction
from tlir.passes.lower import lower

ALIGNMENT = 64
AHEAD, LEAST_ASKED = 1 << 11, 1 << 20
"""Bytes that memory is asked for ahead, and the least buffers for which it is."""


def emitted(kernel: Kernel) -> tuple[Plan, str] | str:
    """How a kernel is called, and its module in LLVM's assembly language; or why it is not compiled."""
    made = _written(kernel)
    if isinstance(made, str):
        return made
    if len(made) == 2:
        plan, text = made
    else:
        nest, text, scratch = made
        empty = any(v.extent == 0 for v in kernel.space)
        plan = Plan(nest.outer_count, nest.lane_count, nest.lanes, scratch, empty)
    return replace(plan, blocks=called(kernel)), text


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


def _written(kernel: Kernel) -> tuple[Nest, str, int] | tuple[Plan, str] | str:
    """The loops of a kernel, its module and its bytes of scratch memory; or how it is called, and its module; or why it
    is not compiled."""
    nest = arrange(kernel)
    reason = unsupported(nest)
    if reason is not None:
        return reason
    contraction = as_contraction(kernel)
    if contraction is not None and suits(contraction):
        return tiles_module(contraction)
    rows = by_rows(kernel) if crosses_memory(nest) else None
    if rows is not None:
        nest = Nest(kernel, tuple(v for v in kernel.space if v.extent > 1), None, 1)
    return (nest, *_emit(nest, rows))


def _emit(nest: Nest, rows: Stages | None = None) -> tuple[str, int]:
    """The module of a kernel in LLVM's assembly language, and the bytes of scratch memory that a thread needs."""
    module, buffers = ir.Module("kernel"), external(nest.kernel)
    entry = Entry(module, [kind for _, kind in buffers])
    builder, scratch, pointers = entry.builder, entry.scratch, entry.pointers
    outer_from, outer_to, lane_from, lane_to = entry.numbers
    starts: dict[Buffer, Any] = dict(zip((buffer for buffer, _ in buffers), pointers, strict=True))
    if rows is not None:
        with _counting(builder, outer_from, outer_to) as outer:
            used = _row(builder, rows, nest.outer, counted_out(builder, nest.outer, outer), pointers, scratch)
    else:
        used = _place_locals(builder, nest, scratch, starts)
        emitter = Emitter(builder, nest, starts)
        with _counting(builder, outer_from, outer_to) as outer:
            emitter.addresses.counters |= counted_out(builder, nest.outer, outer)
            with _lane_blocks(emitter, nest, lane_from, lane_to):
                for asked in _further(nest):
                    emitter.ask(starts[asked.buffer], asked.offset, asked.writes)
                emitter.block(nest.kernel.body)
    entry.close()
    return module_text(module), used


@dataclass(frozen=True)
class Asked:
    """Memory to ask for: as many elements as a block has lanes, from ``offset`` in a buffer on."""

    buffer: Buffer
    offset: Index
    writes: bool


def _row(
    builder: ir.IRBuilder,
    rows: Stages,
    space: tuple[Variable, ...],
    counters: dict[Variable, Any],
    pointers: list[Any],
    scratch: Any,
) -> int:
    """The parts of one iteration of ``space``; ``counters`` say which. The bytes of scratch memory used."""
    used, places = 0, list(pointers)
    for dtype, size in rows.temporaries:
        kind = word_type(dtype)
        places.append(builder.bitcast(builder.gep(scratch, [ir.Constant(I64, used)]), kind.as_pointer()))
        used += -(-size * dtype.limbs * kind.width // 8 // ALIGNMENT) * ALIGNMENT
    most = used
    nests = [arrange(stage.kernel) for stage in rows.stages]
    host = max(range(len(nests)), key=lambda k: _effort(nests[k]))
    for k, (stage, nest) in enumerate(zip(rows.stages, nests, strict=True)):
        buffers = [buffer for buffer in stage.kernel.buffers if buffer.role != "local"]
        starts = {buffer: places[number] for buffer, number in zip(buffers, stage.arguments, strict=True)}
        most = max(most, _place_locals(builder, nest, scratch, starts, used))
        emitter = Emitter(builder, nest, starts)
        emitter.addresses.counters |= counters
        with _counting(builder, ir.Constant(I64, 0), ir.Constant(I64, nest.outer_count)) as inner:
            emitter.addresses.counters |= counted_out(builder, nest.outer, inner)
            asked = _asked(nests, rows, host, space, len(pointers)) if k == host else []
            with _lane_blocks(emitter, nest, ir.Constant(I64, 0), ir.Constant(I64, nest.lane_count)):
                for number, each in asked:
                    emitter.ask(places[number], each.offset, each.writes)
                emitter.block(nest.kernel.body)
    return most


def _further(nest: Nest) -> list[Asked]:
    """What to ask memory for while lanes run along it: what they read and write next. The processor would see that
    itself, but only up to the end of each page."""
    found: dict[Asked, None] = {}
    for s in nest.kernel.body.statements:
        if nest.lane is None or not isinstance(s, Load | Store) or s.buffer.role == "local" or s.offset.values():
            continue
        size = word_type(s.buffer.dtype).width // 8
        large = s.buffer.size * size >= LEAST_ASKED and s.buffer.dtype.limbs == 1
        if large and s.offset.coefficient(nest.lane) == 1:
            found[Asked(s.buffer, ix.add(s.offset, AHEAD // size), isinstance(s, Store))] = None
    return list(found)


def _effort(nest: Nest) -> int:
    """Roughly how long a part of a row calculates, if its lanes are along memory."""
    if nest.lane is None or nest.outer or crosses_memory(nest):
        return 0
    heavy = sum(isinstance(s, Apply) and OPERATIONS[s.op].family == "elementary" for s in nest.kernel.body.walk())
    return nest.lane.extent * (block_work(nest.kernel.body) + 16 * heavy)


def _asked(
    nests: list[Nest], rows: Stages, host: int, space: tuple[Variable, ...], external: int
) -> list[tuple[int, Asked]]:
    """What to ask memory for while the part ``host`` calculates, with the number of its buffer: what it reads and
    writes, of the next row; and what later parts will write, of this one."""
    lane = nests[host].lane
    if not space or lane is None or not _effort(nests[host]):
        return []
    found: dict[tuple[int, Asked], None] = {}
    for k, (stage, nest) in enumerate(zip(rows.stages, nests, strict=True)):
        if nest.lane is None or nest.lane.extent != lane.extent or nest.outer:
            continue
        numbers = dict(zip((b.name for b in stage.kernel.buffers if b.role != "local"), stage.arguments, strict=True))
        for s in nest.kernel.body.statements:
            if not isinstance(s, Load | Store) or s.buffer.role == "local" or numbers[s.buffer.name] >= external:
                continue
            step = s.offset.coefficient(space[-1])
            if s.offset.coefficient(nest.lane) != 1 or not step or s.offset.values() or s.buffer.dtype.limbs > 1:
                continue
            offset = replaced(s.offset, nest.lane, ix.variable(lane))
            writes = isinstance(s, Store)
            if k == host:
                found[numbers[s.buffer.name], Asked(s.buffer, ix.add(offset, step), writes)] = None
            elif writes and k > host:
                found[numbers[s.buffer.name], Asked(s.buffer, offset, True)] = None
    return list(found)


@contextmanager
def _lane_blocks(emitter: Emitter, nest: Nest, first: Any, end: Any) -> Iterator[None]:
    """A loop over the blocks of lanes from ``first`` to ``end``."""
    if nest.lane is None:
        yield
        return
    b = emitter.builder
    with _counting(b, first, end, nest.lanes) as position:
        last = b.sub(end, ir.Constant(I64, nest.lanes))
        emitter.addresses.counters[nest.lane] = b.select(b.icmp_signed(">", position, last), last, position)
        yield


def _place_locals(builder: ir.IRBuilder, nest: Nest, scratch: Any, starts: dict[Buffer, Any], used: int = 0) -> int:
    """Places local buffers behind ``used`` bytes of the scratch memory; the bytes that are used then."""
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
