"""Many rows that are each summed in order: a thread for each row, memory read along the rows.

Where every thread of a warp goes through a row of its own, one step would read 32 places far from each other. Instead
the warp reads a square of 32 rows times 32 steps row by row into shared memory, and then each thread takes its row from
there. Threads beyond the last row repeat it and store the same words again.
"""

from __future__ import annotations

from math import prod
from typing import Any

from llvmlite import ir

from tlir.backends.cpu.values import word_type
from tlir.backends.cuda.builder import Builder, Text, type_name
from tlir.backends.cuda.emitter import CudaEmitter, counted, emitter_of
from tlir.backends.cuda.function import SHARED_BYTES, Source, assembled, pointers
from tlir.backends.cuda.splitting import regrouped
from tlir.floatlib.soft.lanes import I64
from tlir.kernel.cutting import reads_outputs
from tlir.kernel.index import FromValue, Quotient, Remainder, Variable
from tlir.kernel.ir import Block, Branch, Kernel, Load, Loop, Store, Value, inner_blocks

WARP = 32
THREADS = 128
PITCH = WARP + 1
"""Elements between rows of a square: threads that read a column use different banks."""

ENOUGH_ROWS = 1 << 15
"""Rows from which a thread for each is enough work for a GPU."""


def suits(kernel: Kernel) -> bool:
    """Whether the kernel is one of ordered sums along contiguous rows, and there are many."""
    rows = prod(v.extent for v in kernel.space)
    if rows < ENOUGH_ROWS or not fits(kernel):
        return False
    loops = [s for s in kernel.body.walk() if isinstance(s, Loop)]
    return all(regrouped(loop) is None for loop in loops) and any(
        offset.coefficient(kernel.space[-1]) not in (0, 1) for loop in loops for offset in _offsets(loop)
    )


def fits(kernel: Kernel) -> bool:
    """Whether the kernel can be run this way: loops that store nothing, and something to turn."""
    if not kernel.space or any(b.role == "local" for b in kernel.buffers):
        return False
    inside = [s for statement in kernel.body.statements for block in inner_blocks(statement) for s in block.walk()]
    if any(isinstance(s, Store | Branch) for s in inside) or reads_outputs(kernel):
        return False
    loops = [s for s in kernel.body.walk() if isinstance(s, Loop)]
    return any(turnable(loop.body, loop.variable) for loop in loops) and shared_bytes(kernel) <= SHARED_BYTES


def _offsets(loop: Loop) -> list[Any]:
    return [load.offset for load in turnable(loop.body, loop.variable)]


def turnable(body: Block, variable: Variable) -> tuple[Load, ...]:
    """The loads of a loop's body that go along memory with its steps."""
    if variable.extent < WARP:
        return ()
    loads = [s for s in body.statements if isinstance(s, Load) and not s.guard and s.buffer.dtype.limbs == 1]
    return tuple(load for load in loads if load.offset.coefficient(variable) == 1 and _plain(load, variable))


def _plain(load: Load, variable: Variable) -> bool:
    for _, atom in load.offset.terms:
        if isinstance(atom, Quotient | Remainder):
            if variable in atom.dividend.variables() or atom.dividend.values():
                return False
        elif isinstance(atom, FromValue):
            return False
    return True


def shared_bytes(kernel: Kernel) -> int:
    """The squares of the loop that has most of them, for all warps of a block."""
    most = 0
    for statement in kernel.body.walk():
        if isinstance(statement, Loop):
            loads = turnable(statement.body, statement.variable)
            most = max(most, sum(_square(load) for load in loads))
    return most * (THREADS // WARP)


def _square(load: Load) -> int:
    size: int = WARP * PITCH * load.buffer.dtype.word_dtype.itemsize
    return -(-size // 16) * 16


def turned(kernel: Kernel, total: int) -> Source:
    """The function of a kernel with a thread for each of its ``total`` iterations, and turned squares."""
    b, starts = Builder(), pointers(kernel)
    warps = THREADS // WARP
    size = shared_bytes(kernel)
    head = [
        f"  __shared__ __align__(16) uint8_t memory[{size}];",
        f"  uint8_t* const own = memory + threadIdx.x / {WARP}u * {size // warps}u;",
        f"  const uint32_t lane = threadIdx.x % {WARP}u;",
        f"  const uint64_t warp = (uint64_t)blockIdx.x * {warps}u + threadIdx.x / {WARP}u;",
        f"  const uint64_t warps = (uint64_t)gridDim.x * {warps}u;",
    ]
    step = f"first_row += warps * {WARP}u"
    with b.braces(f"for (uint64_t first_row = warp * {WARP}u; first_row < total; {step})"):
        emitter: TurningEmitter = emitter_of(b, kernel, starts, TurningEmitter)
        emitter.within(counted(b, kernel.space, _row(b, "lane")))
        emitter.block(kernel.body)
    return assembled(kernel, [*head, *b.lines], b.tables, total, unit=THREADS, threads=THREADS, barriers=True)


def _row(b: Builder, number: str) -> Text:
    """A row of the warp, or the last one of all."""
    row = b.define(I64, f"first_row + {number}")
    return b.define(I64, f"{row} < total ? {row} : total - 1u")


class TurningEmitter(CudaEmitter):
    """Emits loops over stretches of 32 steps, whose loads along memory come from turned squares."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.turned: dict[int, tuple[str, Variable, Any]] = {}
        """For each load that is turned its row of the square, the loop's variable and its first step in it."""

    def _run(
        self, variable: Variable, body: Block, parameters: tuple[Value, ...], starts: list[list[Any]]
    ) -> list[list[Any]]:
        loads = turnable(body, variable)
        if not loads or self.turned:
            return super()._run(variable, body, parameters, starts)
        b, whole = self.builder, variable.extent // WARP
        stretch = Variable(-1, whole)
        with self._steps(stretch, ir.Constant(I64, 0), whole, starts) as (carried, loop):
            first = b.mul(self.addresses.counters[stretch], ir.Constant(I64, WARP))
            self._turn(loads, variable, first)
            loop.ends = self._repeat(variable, first, WARP, body, parameters, carried)
            self.turned = {}
        ends = loop.ends
        rest = variable.extent - whole * WARP
        if rest:
            return self._repeat(variable, ir.Constant(I64, whole * WARP), rest, body, parameters, ends)
        return ends

    def _turn(self, loads: tuple[Load, ...], variable: Variable, first: Any) -> None:
        """Reads a square for each load, all of them side by side."""
        b, kept, place = self.builder, dict(self.addresses.counters), 0
        # the stretch before has been used by the whole warp
        b.line("__syncwarp();")
        squares = []
        for load in loads:
            kind = type_name(word_type(load.buffer.dtype))
            squares.append(f"(({kind} (*)[{PITCH}])(own + {place}u))")
            place += _square(load)
        b.line("#pragma unroll 8")
        with b.braces(f"for (uint32_t row = 0; row < {WARP}u; ++row)"), self.narrow.scope():
            self.within(counted(b, self.nest.kernel.space, _row(b, "row")))
            self.within({variable: b.define(I64, f"{first} + lane")})
            for load, square in zip(loads, squares, strict=True):
                start, offset = self._place(load.buffer, load.offset)
                b.line(f"{square}[row][lane] = *{b.gep(start, [offset.scalar])};")
        self.addresses.counters.clear()
        self.within(kept)
        b.line("__syncwarp();")
        for load, square in zip(loads, squares, strict=True):
            self.turned[id(load)] = (f"{square}[lane]", variable, first)

    def _load(self, statement: Load) -> None:
        found, dtype = self.turned.get(id(statement)), statement.buffer.dtype
        if found is None:
            super()._load(statement)
            return
        row, variable, first = found
        word = self.builder.define(word_type(dtype), f"{row}[{self.addresses.counters[variable]} - {first}]")
        self.items[statement.result.number] = self.addresses._item(dtype, [word], self.narrow)
