"""Elementwise kernels whose threads take a few neighbouring elements each, and read and write them at once.

A pack is as many elements as 16 bytes hold of the widest buffer. Reads and writes along the kernel's last variable go
in packs where every pack of theirs is aligned; others stay as they are. What is left behind the last whole pack is for
one thread each.
"""

from __future__ import annotations

from math import prod
from typing import Any

from llvmlite import ir

from tlir.backends.cpu.values import word_type
from tlir.backends.cuda.builder import Builder, Text, expression, type_name
from tlir.backends.cuda.emitter import CudaEmitter, counted, emitter_of
from tlir.backends.cuda.function import BLOCK, THREAD, Source, assembled, pointers
from tlir.floatlib.soft.lanes import I64
from tlir.kernel.index import FromValue, Index, Quotient, Remainder, Variable
from tlir.kernel.ir import Apply, Buffer, Kernel, Literal, Load, Position, Store

BYTES = 16

ENOUGH = 1 << 16
"""Elements from which a thread for each pack is enough work for a GPU."""

LONGEST = 100
"""Lines of a body that is still written once for each element of a pack."""


def width_of(kernel: Kernel) -> int | None:
    """The elements of a pack, or None where the kernel's reads and writes are no packs."""
    statements = kernel.body.statements
    if not kernel.space or not all(isinstance(s, Literal | Position | Load | Apply | Store) for s in statements):
        return None
    written = {s.buffer for s in statements if isinstance(s, Store)}
    if any(isinstance(s, Load) and s.buffer in written for s in statements):
        return None
    along = [s for s in statements if isinstance(s, Load | Store) and _along(s, kernel.space[-1])]
    sizes = [s.buffer.dtype.word_dtype.itemsize for s in along]
    width = BYTES // max(sizes, default=BYTES)
    packs = [s for s in along if _aligned(s.offset, kernel.space[-1], width)]
    stores = sum(isinstance(s, Store) for s in statements)
    if width < 2 or sum(isinstance(s, Store) for s in packs) != stores:
        return None
    if len(kernel.space) > 1 and kernel.space[-1].extent % width:
        return None
    return width if kernel.space[-1].extent >= width else None


def _along(statement: Load | Store, last: Variable) -> bool:
    """Whether neighbouring elements along the variable are neighbours in memory."""
    offset, buffer = statement.offset, statement.buffer
    if buffer.role == "local" or buffer.dtype.limbs > 1 or (isinstance(statement, Load) and statement.guard):
        return False
    for _, atom in offset.terms:
        if isinstance(atom, FromValue) or (
            isinstance(atom, Quotient | Remainder) and last in atom.dividend.variables()
        ):
            return False
    return offset.coefficient(last) == 1


def _aligned(offset: Index, last: Variable, width: int) -> bool:
    return offset.constant % width == 0 and all(c % width == 0 for c, atom in offset.terms if atom != last)


def wide(kernel: Kernel, width: int) -> Source:
    """The function of a kernel in packs of ``width`` elements."""
    b, starts, last = Builder(), pointers(kernel), kernel.space[-1]
    elements = prod(v.extent for v in kernel.space)
    packs = Variable(-1, last.extent // width)
    accesses = [
        s
        for s in kernel.body.statements
        if isinstance(s, Load | Store) and _along(s, last) and _aligned(s.offset, last, width)
    ]
    with b.braces("for (uint64_t at = thread; at < total; at += threads)"):
        emitter: PackEmitter = emitter_of(b, kernel, starts, PackEmitter)
        counters = counted(b, (*kernel.space[:-1], packs), Text(I64, "at"))
        first = b.mul(counters.pop(packs), ir.Constant(I64, width))
        emitter.within({**counters, last: first})
        known: dict[tuple[Buffer, Index], str] = {}
        for statement in accesses:
            kind = f"tl_pack<{type_name(word_type(statement.buffer.dtype))}, {width}>"
            key = (statement.buffer, statement.offset)
            if isinstance(statement, Store):
                name = b.name()
                b.line(f"{kind} {name};")
            elif key in known:
                name = known[key]
            else:
                name = known[key] = b.name()
                b.line(f"const {kind} {name} = *(const {kind}*){emitter.place(statement)};")
            emitter.packs[id(statement)] = name
        b.line("#pragma unroll")
        with b.braces(f"for (int e = 0; e < {width}; ++e)"), emitter.narrow.scope():
            emitter.within({last: b.define(I64, f"{first} + e")})
            emitter.block(kernel.body)
        emitter.within({last: first})
        for statement in accesses:
            if isinstance(statement, Store):
                kind = f"tl_pack<{type_name(word_type(statement.buffer.dtype))}, {width}>"
                b.line(f"*({kind}*){emitter.place(statement)} = {emitter.packs[id(statement)]};")
    rest = elements % width
    if rest:
        with b.braces(f"if (thread < {rest}ull)"):
            alone: CudaEmitter = emitter_of(b, kernel, starts)
            alone.within(counted(b, kernel.space, b.define(I64, f"{elements - rest}ull + thread")))
            alone.block(kernel.body)
    return assembled(kernel, [*THREAD, *b.lines], b.tables, elements // width, unit=BLOCK)


class PackEmitter(CudaEmitter):
    """Emits what is done with element ``e`` of each pack."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.packs: dict[int, str] = {}

    def place(self, statement: Load | Store) -> str:
        """Where a statement's element is, as a pointer."""
        start, offset = self._place(statement.buffer, statement.offset)
        return str(self.builder.gep(start, [offset.scalar]))

    def _load(self, statement: Load) -> None:
        name, dtype = self.packs.get(id(statement)), statement.buffer.dtype
        if name is None:
            super()._load(statement)
            return
        word = self.builder.define(word_type(dtype), f"{name}.at[e]")
        self.items[statement.result.number] = self.addresses._item(dtype, [word], self.narrow)

    def _store(self, statement: Store) -> None:
        name = self.packs.get(id(statement))
        if name is None:
            super()._store(statement)
            return
        b, dtype = self.builder, statement.buffer.dtype
        (word,) = self.narrow.limbs(self.item(statement.value))
        b.line(f"{name}.at[e] = {expression(b.zext(word, word_type(dtype)) if dtype.is_bool else word)};")
