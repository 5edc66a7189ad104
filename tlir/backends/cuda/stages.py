"""Kernels of few long rows as several launches, so that a whole GPU works on a row.

One block cannot keep a GPU busy. Where a kernel's space is small and an ordered loop of its body is long, a kernel of
its own does the part of the loop whose steps need nothing of each other, with the steps as part of its space. It leaves
that in an array between the two, which the rest reads. Three kinds of loops are cut so:

* steps with sums of their own, such as the blocks of ``blocked(n)``: the sums are made first, and then added in order;
* steps that carry nothing and leave an element of a local buffer, such as the runs of a ``pairwise`` sum;
* exact operations that may be regrouped: each of ``SEGMENTS`` runs of steps is reduced by itself.

Operations and their order stay those of the kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from math import prod

from tlir.backends.cuda.splitting import buffers, identity, reads, regrouped, split
from tlir.kernel.index import Index, Quotient, Remainder, Variable, add, flatten, quotient, remainder, total, variable
from tlir.kernel.ir import (
    Apply,
    Block,
    Buffer,
    Each,
    Kernel,
    Literal,
    Load,
    Loop,
    Position,
    Statement,
    Store,
    Value,
    inner_blocks,
    results_of,
)
from tlir.kernel.joining import join_variables, mapped

FEW_ROWS = 512
"""Rows up to which a block for each leaves processors without work."""

LONG = 1 << 15
"""Steps from which a row is worth more than a block."""

LONG_SUMS = 1 << 8
"""Steps with loops of their own from which a row is worth more than a block."""

SEGMENTS = 1 << 10
DEPTH = 6


@dataclass(frozen=True)
class Stage:
    """A kernel and its arguments: numbers of the launch's buffers that are not local, then of ``between``."""

    kernel: Kernel
    arguments: tuple[int, ...]


@dataclass(frozen=True)
class Stages:
    """Kernels that are launched one after the other; ``between`` are the arrays that they leave to each other."""

    stages: tuple[Stage, ...]
    between: tuple[Buffer, ...]


def staged(kernel: Kernel) -> Stages:
    """The kernel as one or more launches."""
    arguments = [buffer for buffer in kernel.buffers if buffer.role != "local"]
    between: list[Buffer] = []
    kernels: list[Kernel] = []
    if prod(v.extent for v in kernel.space) <= FEW_ROWS and not any(v.extent == 0 for v in kernel.space):
        kernel = join_variables(kernel)
        for _ in range(DEPTH):
            found = _cut(kernel, len(between))
            if found is None:
                break
            first, kernel, left = found
            kernels.append(first)
            between += left
    numbers = {buffer.name: number for number, buffer in enumerate([*arguments, *between])}
    stages = [
        Stage(one, tuple(numbers[buffer.name] for buffer in one.buffers if buffer.role != "local"))
        for one in (*kernels, kernel)
    ]
    return Stages(tuple(stages), tuple(between))


def _cut(kernel: Kernel, known: int) -> tuple[Kernel, Kernel, list[Buffer]] | None:
    """The first loop that can be cut: its part, the rest of the kernel, and the arrays between them."""
    for number, statement in enumerate(kernel.body.statements):
        if isinstance(statement, Loop) and statement.variable.extent:
            cutter = Cutter(kernel, number, statement, known)
            found = cutter.regrouped() or cutter.sums() or cutter.runs()
            if found is not None:
                return found
    return None


class Cutter:
    """Cuts one loop of a kernel's body."""

    def __init__(self, kernel: Kernel, place: int, loop: Loop, known: int) -> None:
        self.kernel = kernel
        self.place = place
        self.loop = loop
        self.known = known
        self.rows = prod(v.extent for v in kernel.space)
        self.left: list[Buffer] = []
        numbers = [value.number for s in kernel.body.walk() for value in (*results_of(s), *_parameters(s))]
        self.values = count(max(numbers, default=0) + 1)
        variables = [v.number for v in (*kernel.space, *_variables(kernel.body))]
        self.variables = count(max(variables, default=0) + 1)

    # ---- the three kinds --------------------------------------------------------------------------------------------

    def sums(self) -> tuple[Kernel, Kernel, list[Buffer]] | None:
        """Steps with loops of their own."""
        found, loop = split(self.loop), self.loop
        if found is None or loop.variable.extent < LONG_SUMS or not any(isinstance(s, Loop) for s in found.free):
            return None
        if any(isinstance(s, Store) for s in (*found.free, *found.ordered)) or not _reads_inputs(loop.body):
            return None
        before = self._before(found.free)
        if before is None:
            return None
        stores, loads = [], []
        for value in found.passed:
            array = self._array(value, self.rows * loop.variable.extent)
            offset = self._offset(loop.variable)
            stores.append(Store(array, offset, value))
            loads.append(Load(value, replace(array, role="input"), offset))
        first = self._kernel((*self.kernel.space, loop.variable), (*before, *found.free, *stores))
        body = Block((*loads, *found.ordered), loop.body.results)
        return first, self._rest([replace(loop, body=body)]), self.left

    def runs(self) -> tuple[Kernel, Kernel, list[Buffer]] | None:
        """Steps that carry nothing: what they keep in local buffers is their own, but for one element of each of some
        buffers that is read behind the loop."""
        loop = self.loop
        if loop.parameters or loop.variable.extent < LONG_SUMS:
            return None
        loaded, stored = buffers(loop.body)
        if any(buffer.role != "local" for buffer in stored) or any(b.role != "input" for b in loaded - stored):
            return None
        behind, _ = buffers(Block(self.kernel.body.statements[self.place + 1 :]))
        kept = stored - loaded
        if (stored - kept) & behind or not all(_fresh(loop.body, buffer) for buffer in stored - kept):
            return None
        top = [s for s in loop.body.statements if isinstance(s, Store) and s.buffer in kept]
        everywhere = [s for s in loop.body.walk() if isinstance(s, Store) and s.buffer in kept]
        own = variable(loop.variable)
        if len(top) != len(everywhere) or len({s.buffer for s in top}) != len(top):
            return None
        if any(s.offset != add(own, s.offset.constant) for s in top):
            return None
        before = self._before(loop.body.statements)
        if before is None:
            return None
        changed: dict[int, Store] = {}
        copies: list[Statement] = []
        for store in top:
            array = self._array(store.value, self.rows * loop.variable.extent)
            changed[id(store)] = Store(array, self._offset(loop.variable), store.value)
            value = Value(next(self.values), store.value.dtype)
            copies.append(Load(value, replace(array, role="input"), self._offset(loop.variable)))
            copies.append(Store(store.buffer, store.offset, value))
        body = [changed.get(id(s), s) if isinstance(s, Store) else s for s in loop.body.statements]
        first = self._kernel((*self.kernel.space, loop.variable), (*before, *body))
        return first, self._rest([Each((loop.variable,), Block(tuple(copies)))]), self.left

    def regrouped(self) -> tuple[Kernel, Kernel, list[Buffer]] | None:
        """Runs of steps that are reduced by themselves; the steps left over stay with the rest."""
        loop, found = self.loop, regrouped(self.loop)
        if found is None or loop.variable.extent < LONG or any(isinstance(s, Store) for s in loop.body.walk()):
            return None
        if not _reads_inputs(loop.body):
            return None
        before = self._before(found.free)
        starts = self._before([Store(self.kernel.buffers[0], Index(()), value) for value in loop.start])
        if before is None or starts is None:
            return None
        length = loop.variable.extent // SEGMENTS
        segment, step = Variable(next(self.variables), SEGMENTS), Variable(next(self.variables), length)
        literals, begin, joins, parameters, stores = [], [], [], [], []
        for parameter, start, op in zip(loop.parameters, loop.start, found.ops, strict=True):
            word, own = identity(op, parameter.dtype), Value(next(self.values), parameter.dtype)
            if word is not None:
                literals.append(Literal(own, word))
            begin.append(start if word is None else own)
            array = self._array(parameter, self.rows * SEGMENTS)
            offset = self._offset(segment)
            stores.append(Store(array, offset, parameter))
            value, joined = (Value(next(self.values), parameter.dtype) for _ in range(2))
            carried = Value(next(self.values), parameter.dtype)
            parameters.append(carried)
            joins.append((Load(value, replace(array, role="input"), offset), Apply(joined, op, (carried, value))))
        here = total([(length, variable(segment)), (1, variable(step))])
        inner = mapped(loop.body, lambda index: substituted(index, loop.variable, here))
        results = tuple(Value(next(self.values), parameter.dtype) for parameter in loop.parameters)
        partial = Loop(results, step, tuple(begin), loop.parameters, inner)
        stores = [replace(store, value=result) for store, result in zip(stores, results, strict=True)]
        statements = (*_merged(before, starts), *literals, partial, *stores)
        first = self._kernel((*self.kernel.space, segment), statements)
        rest = loop.variable.extent - length * SEGMENTS
        middle = loop.results if not rest else tuple(Value(next(self.values), p.dtype) for p in loop.parameters)
        block = Block(tuple(s for pair in joins for s in pair), tuple(pair[1].result for pair in joins))
        behind: list[Statement] = [Loop(middle, segment, loop.start, tuple(parameters), block)]
        if rest:
            tail = Variable(next(self.variables), rest)
            shifted = add(variable(tail), length * SEGMENTS)
            body = mapped(loop.body, lambda i: substituted(i, loop.variable, shifted))
            behind.append(Loop(loop.results, tail, middle, loop.parameters, body))
        return first, self._rest(behind), self.left

    # ---- parts ------------------------------------------------------------------------------------------------------

    def _before(self, statements: Sequence[Statement]) -> tuple[Statement, ...] | None:
        """The statements before the loop that compute what these need; None where they are more than loads and
        operations, or read what the kernel has stored."""
        made = {value: s for s in self.kernel.body.statements[: self.place] for value in results_of(s)}
        own = {value for s in statements for value in results_of(s)} | set(self.loop.parameters)
        needed: dict[int, Statement] = {}

        def visit(value: Value) -> bool:
            statement = made.get(value)
            if statement is None:
                return value in inside
            if not isinstance(statement, Literal | Position | Load | Apply):
                return False
            if isinstance(statement, Load) and statement.buffer.role != "input":
                return False
            if value.number not in needed:
                if not all(visit(operand) for operand in reads(statement)):
                    return False
                needed[value.number] = statement
            return True

        inside = own | {v for s in statements for block in inner_blocks(s) for v in _defined(block)}
        inside |= {v for s in statements for v in _parameters(s)}
        wanted = {value for s in statements for value in reads(s)} - inside
        return tuple(needed.values()) if all(visit(value) for value in sorted(wanted)) else None

    def _offset(self, last: Variable) -> Index:
        space = (*self.kernel.space, last)
        return flatten((variable(v) for v in space), (v.extent for v in space))

    def _array(self, value: Value, size: int) -> Buffer:
        buffer = Buffer(f"between{self.known + len(self.left)}", value.dtype, size, "output")
        self.left.append(buffer)
        return buffer

    def _kernel(self, space: tuple[Variable, ...], statements: Sequence[Statement]) -> Kernel:
        body = Block(tuple(statements))
        loaded, stored = buffers(body)
        used = [b for b in self.kernel.buffers if b in loaded | stored and b.role != "local"]
        local = [b for b in self.kernel.buffers if b in loaded | stored and b.role == "local"]
        return Kernel(f"{self.kernel.name}_parts", (*used, *self.left, *local), space, body, self.kernel.nodes)

    def _rest(self, statements: Sequence[Statement]) -> Kernel:
        """The kernel with these statements in the place of the loop."""
        before, after = self.kernel.body.statements[: self.place], self.kernel.body.statements[self.place + 1 :]
        body = Block((*before, *statements, *after), self.kernel.body.results)
        loaded, stored = buffers(body)
        given = [replace(buffer, role="input") for buffer in self.left]
        outer = [b for b in self.kernel.buffers if b.role == "output" or (b.role == "input" and b in loaded)]
        local = [b for b in self.kernel.buffers if b.role == "local" and b in loaded | stored]
        return replace(self.kernel, buffers=(*outer, *given, *local), body=body)


def substituted(index: Index, old: Variable, new: Index) -> Index:
    """The index with another one in the place of a variable."""
    parts: list[tuple[int, Index]] = []
    for coefficient, atom in index.terms:
        if atom == old:
            parts.append((coefficient, new))
        elif isinstance(atom, Quotient):
            parts.append((coefficient, quotient(substituted(atom.dividend, old, new), atom.divisor)))
        elif isinstance(atom, Remainder):
            parts.append((coefficient, remainder(substituted(atom.dividend, old, new), atom.divisor)))
        else:
            parts.append((coefficient, Index(((1, atom),))))
    return total(parts, index.constant)


def _reads_inputs(body: Block) -> bool:
    """Whether a body reads nothing that the kernel has stored."""
    return all(s.buffer.role == "input" for s in body.walk() if isinstance(s, Load))


def _merged(*groups: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """Statements of several groups, each once."""
    found = {results_of(s)[0].number: s for group in groups for s in group}
    return tuple(found[number] for number in found)


def _fresh(body: Block, buffer: Buffer) -> bool:
    """Whether a body writes a whole local buffer before it reads it."""
    for statement in body.statements:
        touched = [s for s in Block((statement,)).walk() if isinstance(s, Load | Store) and s.buffer == buffer]
        if not touched:
            continue
        if not isinstance(statement, Each) or len(statement.variables) != 1 or len(touched) != 1:
            return False
        (own,) = statement.variables
        whole = own.extent == buffer.size and touched[0].offset == variable(own)
        return whole and touched[0] in statement.body.statements and isinstance(touched[0], Store)
    return True


def _parameters(statement: Statement) -> tuple[Value, ...]:
    return statement.parameters if isinstance(statement, Loop) else ()


def _defined(block: Block) -> set[Value]:
    return {value for s in block.walk() for value in (*results_of(s), *_parameters(s))}


def _variables(block: Block) -> list[Variable]:
    found: list[Variable] = []
    for statement in block.walk():
        if isinstance(statement, Loop):
            found.append(statement.variable)
        elif isinstance(statement, Each):
            found += statement.variables
    return found
