"""One iteration of a kernel's space for a group of threads: a warp or a block for each row.

All threads of the group run the kernel's statements together, with the same values. Where iterations are independent
(``each``) they are shared out. An ordered loop is cut (``splitting``): for as many steps as the group has threads, each
thread computes what needs nothing of the step before and leaves it in shared memory; then all go through these steps in
order. So memory is read side by side whatever the order of a sum, and the sum is made in its order. Loops that may be
regrouped run through steps of each thread's own, whose results are exchanged.

Barriers stand before and after everything that is shared out.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import Any

from tlir.backends.cpu import scalars
from tlir.backends.cpu.values import Item, word_type
from tlir.backends.cuda.builder import Builder, Text, expression, type_name
from tlir.backends.cuda.emitter import CudaEmitter, counted, emitter_of
from tlir.backends.cuda.function import BLOCK, SHARED_BYTES, Source, assembled, local_places, pointers
from tlir.backends.cuda.splitting import Regrouped, Split, buffers, identity, regrouped, split
from tlir.floatlib.soft.lanes import I1, I64
from tlir.kernel.index import Variable
from tlir.kernel.ir import Block, Branch, Each, Kernel, Load, Loop, Statement, Store, Value, inner_blocks

WARP = 32

ENOUGH_ROWS = 4096
"""Rows from which one thread for each is enough work, if neighbouring threads read neighbouring memory."""

ROWS_FOR_WARPS = 1024
"""Rows from which a warp for each is enough work."""

LONG = 256
"""Steps that a whole block can share."""


def group_size(kernel: Kernel) -> int | None:
    """The threads that share an iteration, or None where one thread is better."""
    regions = list(_regions(kernel.body, 1))
    longest = max((prod(v.extent for v in variables) for variables, _, _ in regions), default=0)
    if longest < WARP:
        return None
    rows = prod(v.extent for v in kernel.space)
    shared = sum(times * prod(v.extent for v in variables) * _work(body) for variables, body, times in regions)
    if rows >= ROWS_FOR_WARPS and 2 * shared < _work(kernel.body):
        return None
    if rows >= ENOUGH_ROWS:
        last = kernel.space[-1]
        together, alone, accesses = 0, 0, 0
        for variables, body, _ in regions:
            for statement in body.walk():
                if isinstance(statement, Load | Store) and statement.buffer.role != "local":
                    accesses += 1
                    together += statement.offset.coefficient(variables[-1]) in (0, 1)
                    alone += statement.offset.coefficient(last) in (0, 1)
        if alone == accesses or alone > together:
            return None
    return WARP if rows >= ROWS_FOR_WARPS or longest < LONG else BLOCK


def _regions(block: Block, times: int) -> Iterator[tuple[tuple[Variable, ...], Block, int]]:
    """What can be shared out: its variables, its body, and how often it runs."""
    for statement in block.statements:
        if isinstance(statement, Each):
            yield statement.variables, statement.body, times
        elif isinstance(statement, Loop):
            if split(statement) is not None:
                yield (statement.variable,), statement.body, times
            else:
                yield from _regions(statement.body, times * statement.variable.extent)
        else:
            for inner in inner_blocks(statement):
                yield from _regions(inner, times)


def _work(block: Block) -> int:
    """Roughly the scalar operations of a block."""
    total = 0
    for statement in block.statements:
        total += 1
        if isinstance(statement, Loop):
            total += statement.variable.extent * _work(statement.body)
        elif isinstance(statement, Each):
            total += prod(v.extent for v in statement.variables) * _work(statement.body)
        elif isinstance(statement, Branch):
            total += max(_work(statement.then), _work(statement.otherwise))
    return total


def grouped(kernel: Kernel, total: int, size: int) -> Source | None:
    """The function of a kernel with a group of threads for each of its ``total`` iterations, local buffers in shared
    memory if they fit. None where what the threads leave for each other does not fit it."""
    _, used = local_places(kernel)
    made = _grouped(kernel, total, size, True) if 0 < used * (BLOCK // size) < SHARED_BYTES else None
    return made or _grouped(kernel, total, size, False)


def _grouped(kernel: Kernel, total: int, size: int, in_shared: bool) -> Source | None:
    builder, starts = Builder(), pointers(kernel)
    places, used = local_places(kernel)
    units = BLOCK // size
    for number, (buffer, place) in enumerate(places.items()):
        kind = type_name(word_type(buffer.dtype))
        builder.line(f"{kind}* const l{number} = ({kind}*)({'own' if in_shared else 'rest'} + {place}ull);")
        starts[buffer] = Text(word_type(buffer.dtype).as_pointer(), f"l{number}")
    emitter: GroupEmitter = emitter_of(builder, kernel, starts, GroupEmitter)
    emitter.size = size
    emitter.stage_from = used if in_shared else 0
    with builder.braces("for (uint64_t at = group; at < total; at += groups)"):
        emitter.within(counted(builder, kernel.space, Text(I64, "at")))
        emitter.block(kernel.body)
        # the next row's local elements go where this one's are
        emitter.barrier()
    own = emitter.stage_from + max(emitter.stage_bytes, 16)
    if own * units > SHARED_BYTES:
        return None
    head = [
        f"  __shared__ __align__(16) uint8_t memory[{own * units}];",
        f"  const uint32_t lane = threadIdx.x % {size}u;",
        f"  const uint64_t group = (uint64_t)blockIdx.x * {units}u + threadIdx.x / {size}u;",
        f"  const uint64_t groups = (uint64_t)gridDim.x * {units}u;",
        f"  uint8_t* const own = memory + threadIdx.x / {size}u * {own}u;",
    ]
    if not in_shared:
        head.append(f"  uint8_t* const rest = scratch + group * {used}ull;")
    lines, scratch = [*head, *builder.lines], 0 if in_shared else used
    return assembled(kernel, lines, builder.tables, total, unit=units, scratch=scratch, barriers=True)


class GroupEmitter(CudaEmitter):
    """Emits statements that all threads of a group run together; ``lane`` is the thread's number in it."""

    size = WARP
    stage_from = 0
    stage_bytes = 0
    together = True

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.loaded, _ = buffers(self.nest.kernel.body)

    def barrier(self) -> None:
        self.builder.line("__syncwarp();" if self.size == WARP else "__syncthreads();")

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Statements that each thread runs for itself."""
        self.together = False
        with self.narrow.scope():
            yield
        self.together = True

    def _statement(self, statement: Statement) -> None:
        if not self.together:
            super()._statement(statement)
        elif isinstance(statement, Store):
            if statement.buffer in self.loaded:
                self.barrier()
            self._first_stores(statement)
            if statement.buffer in self.loaded:
                self.barrier()
        elif isinstance(statement, Each) and all(v.extent for v in statement.variables):
            self._shared_out(statement)
        elif isinstance(statement, Loop) and statement.variable.extent:
            sums, parts = regrouped(statement), split(statement)
            if sums is not None:
                self._regrouped(statement, sums)
            elif parts is not None:
                self._split(statement, parts)
            else:
                super()._statement(statement)
        else:
            super()._statement(statement)

    def _first_stores(self, statement: Store) -> None:
        with self.builder.braces("if (lane == 0)"), self.narrow.scope():
            super()._store(statement)

    def _own_steps(self, counter: str, total: int) -> str:
        return f"for (uint64_t {counter} = lane; {counter} < {total}ull; {counter} += {self.size}ull)"

    def _shared_out(self, each: Each) -> None:
        b, counter = self.builder, self.builder.name()
        steps = self._own_steps(counter, prod(v.extent for v in each.variables))
        if each.span is not None:
            first, end = (expression(self.addresses.offset(index).scalar) for index in (each.span.first, each.span.end))
            steps = f"for (uint64_t {counter} = {first} + lane; {counter} < {end}; {counter} += {self.size}ull)"
        self.barrier()
        with b.braces(steps), self._alone():
            self.within(counted(b, each.variables, Text(I64, counter)))
            self.block(each.body)
        self.barrier()

    # ---- ordered loops ----------------------------------------------------------------------------------------------

    def _split(self, loop: Loop, parts: Split) -> None:
        b, size, count = self.builder, self.size, loop.variable.extent
        starts = [self._parts(p, self.item(s)) for p, s in zip(loop.parameters, loop.start, strict=True)]
        carried = [[b.variable(part.type, expression(part)) for part in own] for own in starts]
        first, step = b.name(), b.name()
        staged: list[list[tuple[Any, int]]] = []
        with b.braces(f"for (uint64_t {first} = 0; {first} < {count}ull; {first} += {size}ull)"), self.narrow.scope():
            self.barrier()
            with b.braces(f"if ({first} + lane < {count}ull)"), self._alone():
                self.within({loop.variable: b.define(I64, f"{first} + lane")})
                self.block(Block(parts.free))
                used = self.stage_from
                for value in parts.passed:
                    staged.append([])
                    for part in self._parts(value, self.item(value)):
                        staged[-1].append((part.type, used))
                        b.line(f"{self._staged(part.type, used)}[lane] = {expression(part)};")
                        used += size * _bytes(part.type)
                self.stage_bytes = max(self.stage_bytes, used - self.stage_from)
            self.barrier()
            most = f"{size}ull"
            if count % size:
                most = str(b.define(I64, f"{count}ull - {first} < {size}ull ? {count}ull - {first} : {size}ull"))
            if parts.ordered or loop.parameters:
                b.line("#pragma unroll 8")
                with b.braces(f"for (uint64_t {step} = 0; {step} < {most}; ++{step})"), self.narrow.scope():
                    self.within({loop.variable: b.define(I64, f"{first} + {step}")})
                    for value, places in zip(parts.passed, staged, strict=True):
                        found = [b.define(kind, f"{self._staged(kind, place)}[{step}]") for kind, place in places]
                        self.items[value.number] = self._from_parts(value, found)
                    self._ordered(loop, parts, carried)
        _, written = buffers(Block(parts.ordered))
        if written & self.loaded:
            self.barrier()
        self._leave(loop, carried)

    def _ordered(self, loop: Loop, parts: Split, carried: list[list[Text]]) -> None:
        """One step of what depends on the step before, by all threads."""
        b = self.builder
        for parameter, variables in zip(loop.parameters, carried, strict=True):
            current = [b.define(part.type, expression(part)) for part in variables]
            self.items[parameter.number] = self._from_parts(parameter, current)
        for statement in parts.ordered:
            if isinstance(statement, Store):
                self._first_stores(statement)
            else:
                super()._statement(statement)
        ends = [self._parts(p, self.item(v)) for p, v in zip(loop.parameters, loop.body.results, strict=True)]
        for variables, end in zip(carried, ends, strict=True):
            for variable, part in zip(variables, end, strict=True):
                b.assign(variable, part)

    def _staged(self, kind: Any, place: int) -> str:
        return f"(({type_name(kind)}*)(own + {place}u))"

    # ---- loops that may be regrouped --------------------------------------------------------------------------------

    def _regrouped(self, loop: Loop, sums: Regrouped) -> None:
        b, counter = self.builder, self.builder.name()
        own: list[list[Text]] = []
        for parameter, start, op in zip(loop.parameters, loop.start, sums.ops, strict=True):
            word = identity(op, parameter.dtype)
            begin = self.item(start) if word is None else self.narrow.literal(parameter.dtype, word)
            own.append([b.variable(part.type, expression(part)) for part in self._parts(parameter, begin)])
        _, written = buffers(loop.body)
        if written:
            self.barrier()
        with b.braces(self._own_steps(counter, loop.variable.extent)), self._alone():
            self.within({loop.variable: Text(I64, counter)})
            self.block(Block(sums.free))
            for k, term in enumerate(sums.terms):
                self._join(loop.parameters[k], sums.ops[k], own[k], self.item(term))
        if written:
            self.barrier()
        self._exchange(loop, sums, own)
        for k, (parameter, start) in enumerate(zip(loop.parameters, loop.start, strict=True)):
            if identity(sums.ops[k], parameter.dtype) is not None:
                self._join(parameter, sums.ops[k], own[k], self.item(start))
        self._leave(loop, own)

    def _exchange(self, loop: Loop, sums: Regrouped, own: list[list[Text]]) -> None:
        """All threads' results in every thread."""
        b = self.builder
        b.line("#pragma unroll")
        with b.braces("for (int mask = 1; mask < 32; mask *= 2)"), self.narrow.scope():
            for parameter, op, parts in zip(loop.parameters, sums.ops, own, strict=True):
                other = [b.define(part.type, f"tl_exchange_{_label(part.type)}({part}, mask)") for part in parts]
                self._join(parameter, op, parts, self._from_parts(parameter, other))
        if self.size == WARP:
            return
        used, places = self.stage_from, []
        warps = self.size // WARP
        self.barrier()
        for parts in own:
            for part in parts:
                b.line(f"if (lane % 32u == 0) {self._staged(part.type, used)}[lane / 32u] = {part};")
                places.append(used)
                used += -(-warps * _bytes(part.type) // 16) * 16
        self.stage_bytes = max(self.stage_bytes, used - self.stage_from)
        self.barrier()
        place = iter(places)
        for parameter, op, parts in zip(loop.parameters, sums.ops, own, strict=True):
            texts = [self._staged(part.type, next(place)) for part in parts]
            for part, text in zip(parts, texts, strict=True):
                b.line(f"{part} = {text}[0];")
            with b.braces(f"for (int warp = 1; warp < {warps}; ++warp)"), self.narrow.scope():
                other = [b.define(part.type, f"{text}[warp]") for part, text in zip(parts, texts, strict=True)]
                self._join(parameter, op, parts, self._from_parts(parameter, other))

    def _join(self, parameter: Value, op: str, own: list[Text], other: Item) -> None:
        """``own = op(own, other)``"""
        b = self.builder
        emit = scalars.emitter(op, [parameter.dtype] * 2, parameter.dtype, {})
        assert emit is not None, op
        current = [b.define(part.type, expression(part)) for part in own]
        with self.narrow.scope():
            result = emit(self.wide, self._from_parts(parameter, current), other)
            for variable, part in zip(own, self._parts(parameter, result), strict=True):
                b.assign(variable, part)


def _bytes(kind: Any) -> int:
    if kind == I1:
        return 1
    width = getattr(kind, "width", None)
    return int(width) // 8 if width is not None else (8 if str(kind) == "double" else 4)


def _label(kind: Any) -> str:
    return type_name(kind).removesuffix("_t")
