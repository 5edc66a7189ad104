"""The innermost loop of sums of products: one tile of results in registers, the terms one after the other."""

from __future__ import annotations

from struct import unpack
from typing import Any

from llvmlite import ir

from tlir.backends.cpu.entry import BYTES
from tlir.floatlib.soft.lanes import DOUBLE, FLOAT, I1, I32, I64, broadcast, intrinsic, splat, vector

UNROLLED = 4
"""Terms in a turn of the loop, whose counting would take time from the arithmetic."""
LINE = 64


class Micro:
    """Functions ``micro(rows, columns, results, ahead, terms, begins, joins, fresh)`` that run through packed terms for
    one tile of ``height`` rows and ``vectors`` registers of columns, which panels and results hold for ``width``
    columns.

    Each continues the tile's accumulators, or starts them where ``begins``. Where ``joins``, what it accumulated is a
    whole block, which it adds to the total (the start value where ``fresh``) instead of storing it. ``ahead`` is an
    address from which on memory will be read soon: with each term ``asked`` bytes more are asked for."""

    asked = 0
    whole_turns = False
    """Whether there are always a multiple of ``UNROLLED`` terms."""

    def __init__(self, module: ir.Module, single: bool, fused: bool, start: int, rows: int, vectors: int) -> None:
        self.module = module
        self.element, self.size = (FLOAT, 4) if single else (DOUBLE, 8)
        self.lanes = 64 // self.size
        self.fused = fused
        self.rows, self.width = rows, vectors * self.lanes
        self.wide = vector(self.element, self.lanes)
        self.start = splat(self.element, self.lanes, float_of(start, self.size))
        self.packed = 1, rows
        """How far neighbouring rows and neighbouring terms of packed rows are apart."""
        self._made: dict[tuple[int, int, tuple[int, int]], Any] = {}

    def function(self, height: int, vectors: int, strides: tuple[int, int]) -> Any:
        """The function for the first rows and registers of a tile, and rows with these strides."""
        key = height, vectors, strides
        known = self._made.get(key)
        if known is None:
            known = self._made[key] = self._function(*key)
        return known

    def _function(self, height: int, vectors: int, strides: tuple[int, int]) -> Any:
        pointer = self.element.as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [pointer, pointer, pointer, BYTES, I64, I1, I1, I1])
        function = ir.Function(self.module, kind, f"micro{len(self._made)}")
        function.linkage = "internal"
        function.attributes.add("noinline")
        for argument in function.args[:3]:
            argument.add_attribute("noalias")
        rows, columns, results, ahead, terms, begins, joins, fresh = function.args
        b = ir.IRBuilder(function.append_basic_block("entry"))
        at = [r * self.width + v * self.lanes for r in range(height) for v in range(vectors)]
        entry = b.block
        continued, started = b.append_basic_block("continued"), b.append_basic_block("started")
        b.cbranch(begins, started, continued)
        b.position_at_end(continued)
        kept = [self._load(b, results, number) for number in at]
        b.branch(started)
        b.position_at_end(started)
        sums: list[Any] = []
        for old in kept:
            sums.append(b.phi(self.wide))
            sums[-1].add_incoming(self.start, entry)
            sums[-1].add_incoming(old, continued)
        whole = b.and_(terms, ir.Constant(I64, -UNROLLED))
        first: Any = ir.Constant(I64, 0)
        for end, count in ((terms, UNROLLED),) if self.whole_turns else ((whole, UNROLLED), (terms, 1)):
            before, loop, after = b.block, b.append_basic_block("loop"), b.append_basic_block("after")
            b.cbranch(b.icmp_unsigned("<", first, end), loop, after)
            b.position_at_end(loop)
            step = b.phi(I64)
            step.add_incoming(first, before)
            carried = [b.phi(self.wide) for _ in at]
            for phi, old in zip(carried, sums, strict=True):
                phi.add_incoming(old, before)
            for line in range(0, count * self.asked, LINE) if count > 1 else ():
                self._ask(b, b.gep(ahead, [b.add(b.mul(step, ir.Constant(I64, self.asked)), ir.Constant(I64, line))]))
            left = b.gep(rows, [b.mul(step, ir.Constant(I64, strides[1]))])
            right = b.gep(columns, [b.mul(step, ir.Constant(I64, self.width))])
            following: list[Any] = list(carried)
            for term in range(count):
                places = (left, term * strides[1]), (right, term * self.width)
                x, y = (b.gep(base, [ir.Constant(I64, k)]) for base, k in places)
                following = self._add(b, x, y, following, vectors, strides[0])
            next_step = b.add(step, ir.Constant(I64, count))
            step.add_incoming(next_step, loop)
            for phi, new in zip(carried, following, strict=True):
                phi.add_incoming(new, loop)
            b.cbranch(b.icmp_unsigned("<", next_step, end), loop, after)
            b.position_at_end(after)
            merged = [b.phi(self.wide) for _ in at]
            for phi, old, new in zip(merged, sums, following, strict=True):
                phi.add_incoming(old, before)
                phi.add_incoming(new, loop)
            sums, first = merged, whole
        joining, storing = b.append_basic_block("joining"), b.append_basic_block("storing")
        b.cbranch(joins, joining, storing)
        b.position_at_end(joining)
        for number, new in zip(at, sums, strict=True):
            total = b.select(fresh, self.start, self._load(b, results, number))
            b.store(b.fadd(total, new), self._place(b, results, number), align=self.size)
        b.ret_void()
        b.position_at_end(storing)
        for number, new in zip(at, sums, strict=True):
            b.store(new, self._place(b, results, number), align=self.size)
        b.ret_void()
        return function

    def _add(self, b: ir.IRBuilder, left: Any, right: Any, sums: list[Any], vectors: int, stride: int) -> list[Any]:
        """The accumulators after one more term."""
        factors = [self._load(b, right, v * self.lanes) for v in range(vectors)]
        following = []
        for r in range(len(sums) // vectors):
            x = broadcast(b, b.load(b.gep(left, [ir.Constant(I64, r * stride)])), self.lanes)
            for v in range(vectors):
                old = sums[r * vectors + v]
                if self.fused:
                    following.append(intrinsic(b, "llvm.fma", self.wide, [x, factors[v], old], [self.wide]))
                else:
                    following.append(b.fadd(old, b.fmul(x, factors[v])))
        return following

    def _place(self, b: ir.IRBuilder, base: Any, number: int) -> Any:
        return b.bitcast(b.gep(base, [ir.Constant(I64, number)]), self.wide.as_pointer())

    def _load(self, b: ir.IRBuilder, base: Any, number: int) -> Any:
        return b.load(self._place(b, base, number), align=self.size)

    def _ask(self, b: ir.IRBuilder, place: Any) -> None:
        """Has a line of memory brought to the second-level cache."""
        function = self.module.globals.get("llvm.prefetch.p0")
        if function is None:
            kind = ir.FunctionType(ir.VoidType(), [BYTES, *[I32] * 3])
            function = ir.Function(self.module, kind, "llvm.prefetch.p0")
        b.call(function, [place, I32(0), I32(2), I32(1)])


def float_of(word: int, size: int) -> float:
    """The number of a word of float32 or float64."""
    number: float = unpack("<f" if size == 4 else "<d", word.to_bytes(size, "little"))[0]
    return number
