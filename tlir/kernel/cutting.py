"""A kernel's statements in parts: what iterates over independent iterations, and the ordered rest between.

The blocks of a ``blocked`` sum, the runs of a ``pairwise`` one and the iterations of an ``each`` do not depend on each
other. Such a statement becomes a part of its own, whose space has its loop variables too; what it leaves to the
statements behind it goes through temporary arrays of one element per iteration. The ordered rest of a loop, such as
the addition of the blocks' results, stays a loop. So every operation is done as often, and on the same operands, as the
kernel says.

Loops that only apply an operation whose result does not depend on the order (``maximum``, integer ``add``) become
several side by side, and one over their results.

Which kernels are cut, and from how much work on, is for each device to say (its ``stages``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from math import prod

from tlir.ir.ops import OPERATIONS
from tlir.ir.types import DType
from tlir.kernel import index as ix
from tlir.kernel.index import Index, Variable
from tlir.kernel.ir import (
    Apply,
    Block,
    Branch,
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
    spans,
)
from tlir.kernel.joining import indices, mapped, replaced
from tlir.kernel.ranges import Place, apart, covers

LEAST_EXTENT = 16
"""Iterations that a part must add to the space."""

SIDE, STEPS = 64, 64
"""Of a loop whose order does not matter: accumulators side by side, and steps of each."""

UNORDERED_FLOAT = frozenset(("maximum", "minimum"))
UNORDERED_INTEGER = {"add": 0, "multiply": 1, "xor": 0}
"""With their identities; ``and``, ``or``, ``maximum`` and ``minimum`` of an operand with itself are that operand."""
IDEMPOTENT = frozenset(("maximum", "minimum", "and", "or"))


@dataclass(frozen=True)
class Stage:
    """``arguments`` number the kernel's buffers: those of the launch, and behind them the temporary arrays."""

    kernel: Kernel
    arguments: tuple[int, ...]


@dataclass(frozen=True)
class Stages:
    """Kernels that run one after the other, and the temporary arrays that they share."""

    stages: tuple[Stage, ...]
    temporaries: tuple[tuple[DType, int], ...]


def work_of(kernel: Kernel) -> int:
    """Roughly the scalar operations of a kernel."""
    return prod(v.extent for v in kernel.space) * block_work(kernel.body)


def reads_outputs(kernel: Kernel) -> bool:
    """Whether a kernel reads what it has written for others, which no part may."""
    return any(isinstance(s, Load) and s.buffer.role == "output" for s in kernel.body.walk())


def works_in_place(kernel: Kernel) -> bool:
    """Whether steps go on with the arrays that the steps before have left, as those of factorizations do: there is no
    part to be cut off."""
    loops = (s for s in kernel.body.walk() if isinstance(s, Loop))
    branches = (s for loop in loops for s in loop.body.walk() if isinstance(s, Branch))
    inside = (s for branch in branches for block in inner_blocks(branch) for s in block.statements)
    return spans(kernel.body) or any(isinstance(s, Loop | Each) for s in inside)


def block_work(block: Block) -> int:
    """Roughly the scalar operations of a block."""
    total = 0
    for statement in block.statements:
        inner = sum(block_work(each) for each in inner_blocks(statement))
        if isinstance(statement, Loop):
            inner *= statement.variable.extent
        elif isinstance(statement, Each):
            inner *= prod(v.extent for v in statement.variables) or 1
        if isinstance(statement, Loop | Each) and statement.span is not None:
            inner //= 2  # about so many steps of a triangle
        total += 1 + inner
    return total


@dataclass
class Part:
    """Statements that become a stage, with what they add to the space."""

    variables: tuple[Variable, ...]
    statements: list[Statement]


class Cutter:
    """Cuts a kernel into ``parts`` of at least ``least`` scalar operations an iteration of the space; ``within``: for
    one iteration at a time, so that parts and temporary arrays have only what is inside it; ``alone``: for one thread,
    which can take the steps of a loop several at a time as well."""

    def __init__(self, kernel: Kernel, least: int, within: bool = False, alone: bool = False) -> None:
        self.alone = alone
        self.kernel = kernel
        self.least = least
        self.within = within
        self.space = () if within else kernel.space
        self.iterations = prod(v.extent for v in self.space)
        self.parts: list[Part] = []
        self.temporaries: list[Buffer] = []
        # a stage has temporary arrays of the kernel that it was cut from
        self._prefix = "p" * (1 + max((len(b.name) - len(b.name.lstrip("p")) for b in kernel.buffers), default=0))
        walked = list(kernel.body.walk())
        variables = [*kernel.space, *(v for s in walked for v in _variables(s))]
        self._variable = count(1 + max((v.number for v in variables), default=-1))
        self._value = count(1 + max((v.number for s in walked for v in _assigned(s)), default=-1))
        self.literals = {s.result: s for s in walked if isinstance(s, Literal)}
        self.users: dict[Buffer, int] = {}
        for statement in kernel.body.statements:
            for buffer in _touched((statement,)):
                self.users[buffer] = self.users.get(buffer, 0) + 1

    # ---- cutting ----------------------------------------------------------------------------------------------------

    def cut(self) -> None:
        for statement in self.kernel.body.statements:
            self._add(statement)

    def work(self, part: Part) -> int:
        """Roughly the scalar operations of a part, for one iteration of the kernel's space."""
        return prod(v.extent for v in part.variables) * block_work(Block(tuple(part.statements)))

    def _add(self, statement: Statement) -> None:
        if isinstance(statement, Loop | Each) and statement.span is not None:
            self._plain(statement)
        elif isinstance(statement, Loop):
            for loop in self._side_by_side(statement):
                self._add_loop(loop)
        elif isinstance(statement, Each) and self._may_spread(statement.variables, statement.body.statements):
            self.parts.append(Part(statement.variables, list(statement.body.statements)))
        else:
            self._plain(statement)

    def _plain(self, *statements: Statement) -> None:
        if not self.parts or self.parts[-1].variables:
            self.parts.append(Part((), []))
        self.parts[-1].statements += statements

    def _add_loop(self, loop: Loop) -> None:
        """What does not depend on what the loop carries as a part of its own, and the rest as a loop."""
        divided = divided_loop(loop)
        free, bound = divided or ([], [])
        inside = any(isinstance(s, Loop | Each) for s in free)
        heavy = self.within and any(map(_is_heavy, free))
        if self.alone and abreast(loop) is not None and not self.kernel.space:
            self._plain(loop)
            return
        if not (inside or heavy) or not self._may_spread((loop.variable,), free):
            self._plain(loop)
            return
        rest = self._rest((loop.variable,), loop, free, bound)
        self._spread(loop.variable, free)
        for each in self._side_by_side(rest) if loop.parameters else ():
            self._plain(each)

    def _rest(self, inside: tuple[Variable, ...], loop: Loop, free: list[Statement], bound: list[Statement]) -> Loop:
        """The loop over ``bound``, which loads what ``free`` is made to store for each step. ``inside``: the variables
        of the iterations that store."""
        made = {value for s in free for value in results_of(s)}
        loads: list[Statement] = []
        passed = needed(bound) | (set(loop.body.results) - set(loop.parameters))
        for value in sorted(passed & made, key=lambda v: v.number):
            stored = [s for s in free if isinstance(s, Store) and s.value == value and s.buffer.role == "local"]
            if stored:
                loads.append(Load(value, stored[0].buffer, stored[0].offset))
                continue
            place = _flat((*self.space, *inside))
            buffer = self._temporary(value.dtype, prod(v.extent for v in inside))
            free.append(Store(buffer, place, value))
            loads.append(Load(value, buffer, place))
        literals = [s for s in loop.body.statements if isinstance(s, Literal)]
        return replace(loop, body=Block((*literals, *loads, *bound), loop.body.results))

    def _spread(self, variable: Variable, statements: list[Statement]) -> None:
        """A part for every iteration of a loop. Within rows, what is computed for every step of a loop inside, before
        it is accumulated, is a part before it, along memory."""
        loops = [s for s in statements if isinstance(s, Loop)]
        divided = divided_loop(loops[0]) if self.within and len(loops) == 1 else None
        if divided is not None and any(_is_heavy(s) for s in divided[0]):
            (loop,), (free, bound) = loops, divided
            inside = (variable, loop.variable)
            made = {value for s in statements for value in results_of(s)}
            if not needed(free) & made and self._may_spread(inside, free):
                rest = self._rest(inside, loop, free, bound)
                self.parts.append(Part(inside, free))
                statements = [rest if s is loop else s for s in statements]
        self.parts.append(Part((variable,), statements))

    def _may_spread(self, variables: tuple[Variable, ...], statements: Sequence[Statement]) -> bool:
        """Whether the iterations of a loop are independent of each other, and worth a stage."""
        extent = prod(v.extent for v in variables)
        if spans(Block(tuple(statements))):
            return False
        if extent < LEAST_EXTENT or extent * block_work(Block(tuple(statements))) < self.least:
            return False
        return all(self._keeps_apart(buffer, variables, statements) for buffer in _touched(statements))

    def _keeps_apart(self, buffer: Buffer, variables: tuple[Variable, ...], statements: Sequence[Statement]) -> bool:
        accesses = [(s, inner, branch) for s, inner, branch in _accesses(statements) if s.buffer == buffer]
        stores = [Place(s.offset, inner, branch) for s, inner, branch in accesses if isinstance(s, Store)]
        if not stores:
            return True
        if len(stores) == len(accesses):
            return bool(apart(stores, variables))
        if buffer.role != "local" or self.users[buffer] > 1:
            return False
        # its own in every iteration: what is read has been written before in the same one
        first: list[Place] = []
        for statement in statements:
            inside = [(s, inner, branch) for s, inner, branch in _accesses((statement,)) if s.buffer == buffer]
            if any(isinstance(s, Load) for s, _, _ in inside):
                break
            first += [Place(s.offset, inner, branch) for s, inner, branch in inside]
        return bool(first) and covers(first, (), buffer.size) is True

    # ---- loops whose order does not matter --------------------------------------------------------------------------

    def _side_by_side(self, loop: Loop) -> Iterator[Loop]:
        """The loop, or loops that leave the same: the first one over groups of accumulators that are independent."""
        groups, steps, side, rest = self.grouped(loop.variable.extent)
        start = self._fresh_start(loop)
        if start is None or not groups:
            yield loop
            return
        (parameter,), (total,) = loop.parameters, loop.results
        combined = loop.body.statements[-1]
        assert isinstance(combined, Apply)
        group, lane, step = (self._new_variable(extent) for extent in (groups, side, steps))
        mine, partial, one, so_far, next_one = self._new_values(parameter.dtype, 5)
        inside = replace(combined, operands=tuple(mine if v == parameter else v for v in combined.operands))
        place = ix.total([(side * steps, ix.variable(group)), (side, ix.variable(step)), (1, ix.variable(lane))])
        statements = mapped(Block((*loop.body.statements[:-1], inside)), lambda i: replaced(i, loop.variable, place))
        run = Loop((partial,), step, (start[0],), (mine,), Block(statements.statements, (inside.result,)))
        buffer = self._temporary(parameter.dtype, groups * side)
        store = Store(buffer, _flat((*self.space, group, lane)), partial)
        self.parts.append(Part((group, lane), [*start[1], run, store]))
        every = self._new_variable(groups * side)
        load = Load(one, buffer, _flat((*self.space, every)))
        again = replace(combined, result=next_one, operands=(so_far, one))
        whole = total if not rest else self._new_values(parameter.dtype, 1)[0]
        joined = Loop((whole,), every, loop.start, (so_far,), Block((load, again), (next_one,)))
        yield from self._side_by_side(joined)
        if rest:
            more = self._new_variable(rest)
            place = ix.add(ix.variable(more), groups * side * steps)
            body = mapped(loop.body, lambda i: replaced(i, loop.variable, place))
            yield replace(loop, variable=more, start=(whole,), body=body)

    def grouped(self, extent: int) -> tuple[int, int, int, int]:
        """Groups of a loop whose order does not matter, the steps and accumulators of each, and how many steps are
        left."""
        if not self.within:
            return extent // (SIDE * STEPS), STEPS, SIDE, extent % (SIDE * STEPS)
        side = next((side for side in (SIDE, SIDE // 4, SIDE // 16) if extent >= 4 * side), 0)
        return (1, extent // side, side, extent % side) if side else (0, 0, 0, extent)

    def _fresh_start(self, loop: Loop) -> tuple[Value, list[Statement]] | None:
        """What further accumulators of a loop start from, and the statement that makes it; None where the order of the
        loop's steps matters."""
        last = loop.body.statements[-1] if loop.body.statements else None
        if len(loop.parameters) != 1 or not isinstance(last, Apply) or loop.body.results != (last.result,):
            return None
        others = loop.body.statements[:-1]
        (parameter,), dtype = loop.parameters, last.result.dtype
        free = all(isinstance(s, Literal | Load | Apply | Position) for s in others) and loop.span is None
        if not free or last.operands.count(parameter) != 1 or parameter in needed(others):
            return None
        if any(s.buffer.role == "output" for s in others if isinstance(s, Load)) or dtype.is_complex:
            return None
        if last.op in (UNORDERED_FLOAT if dtype.is_float else IDEMPOTENT):
            return loop.start[0], []
        if dtype.is_integer and last.op in UNORDERED_INTEGER:
            (value,) = self._new_values(dtype, 1)
            return value, [Literal(value, UNORDERED_INTEGER[last.op])]
        return None

    # ---- names ------------------------------------------------------------------------------------------------------

    def _new_variable(self, extent: int) -> Variable:
        return Variable(next(self._variable), extent)

    def _new_values(self, dtype: DType, how_many: int) -> list[Value]:
        return [Value(next(self._value), dtype) for _ in range(how_many)]

    def _temporary(self, dtype: DType, extent: int) -> Buffer:
        buffer = Buffer(f"{self._prefix}{len(self.temporaries)}", dtype, self.iterations * extent, "temporary")
        self.temporaries.append(buffer)
        return buffer

    # ---- assembling -------------------------------------------------------------------------------------------------

    def stages(self) -> Stages:
        self._pass_values()
        self._share_locals()
        external = [buffer for buffer in self.kernel.buffers if buffer.role != "local"]
        numbers = {buffer.name: k for k, buffer in enumerate([*external, *self.temporaries])}
        made = [self._stage(number, part, numbers) for number, part in enumerate(self.parts)]
        return Stages(tuple(made), tuple((buffer.dtype, buffer.size) for buffer in self.temporaries))

    def _pass_values(self) -> None:
        """Values that a later part uses: literals once more, others through an array of one for each iteration."""
        makers = {v: part for part in self.parts for s in part.statements for v in results_of(s)}
        buffers: dict[Value, Buffer] = {}
        place = _flat(self.space)
        for part in self.parts:
            missing = needed(part.statements) - {v for s in part.statements for v in results_of(s)}
            before: list[Statement] = []
            for value in sorted(missing, key=lambda v: v.number):
                if value in self.literals:
                    before.append(self.literals[value])
                    continue
                if value not in buffers:
                    buffers[value] = self._temporary(value.dtype, 1)
                    makers[value].statements.append(Store(buffers[value], place, value))
                before.append(Load(value, buffers[value], place))
            part.statements[:0] = before
        self.parts = [p for p in self.parts if any(isinstance(s, Store) for s in Block(tuple(p.statements)).walk())]

    def _share_locals(self) -> None:
        """Local buffers of several parts become temporary arrays."""
        for buffer in self.kernel.buffers:
            users = [part for part in self.parts if buffer in _touched(part.statements)]
            if buffer.role == "local" and len(users) > 1:
                shared = self._temporary(buffer.dtype, buffer.size)
                base = ix.multiply(_flat(self.space), buffer.size)
                for part in users:
                    block = _exchanged(Block(tuple(part.statements)), {buffer: shared}, base)
                    part.statements = list(block.statements)

    def _stage(self, number: int, part: Part, numbers: dict[str, int]) -> Stage:
        body = Block(tuple(part.statements))
        written = {s.buffer for s in body.walk() if isinstance(s, Store)}
        touched = _touched(part.statements)
        roles = {b: replace(b, role="output" if b in written else "input") for b in touched if b.role == "temporary"}
        order = sorted((b for b in touched if b.role != "local"), key=lambda b: (b in written, numbers[b.name]))
        local = [b for b in self.kernel.buffers if b.role == "local" and b in touched]
        kernel = Kernel(
            f"{self.kernel.name}_{number}",
            tuple(roles.get(b, b) for b in (*order, *local)),
            (*self.space, *part.variables),
            _exchanged(body, roles, ix.ZERO),
            self.kernel.nodes,
        )
        return Stage(kernel, tuple(numbers[b.name] for b in order))


def divided_loop(loop: Loop) -> tuple[list[Statement], list[Statement]] | None:
    """What does not depend on what a loop carries and the rest, literals left out; None where they need each other's
    memory."""
    carried = set(loop.parameters)
    free: list[Statement] = []
    bound: list[Statement] = []
    for statement in loop.body.statements:
        if carried & needed((statement,)):
            bound.append(statement)
            carried |= set(results_of(statement))
        elif not isinstance(statement, Literal):
            free.append(statement)
    apart = not (_written(free) & _touched(bound) or _written(bound) & _touched(free))
    return (free, bound) if apart else None


def abreast(loop: Loop) -> tuple[list[Statement], list[Statement]] | None:
    """As ``divided_loop``, where the steps of a loop can be taken several at a time in registers: inner loops only
    calculate from what they load, and the rest takes their results in order."""
    divided = divided_loop(loop) if loop.span is None and not spans(loop.body) else None
    if divided is None or loop.variable.extent < 2 * LEAST_EXTENT:
        return None
    free, bound = divided
    quiet = all(
        isinstance(s, Literal | Apply | Loop) or (isinstance(s, Load) and s.buffer.role == "input")
        for s in Block(tuple(free)).walk()
    )
    simple = all(isinstance(s, Apply) for s in bound)
    return divided if quiet and simple and any(isinstance(s, Loop) or _is_heavy(s) for s in free) else None


def _flat(variables: Sequence[Variable]) -> Index:
    return ix.flatten(map(ix.variable, variables), (v.extent for v in variables))


def _variables(statement: Statement) -> tuple[Variable, ...]:
    if isinstance(statement, Loop):
        return (statement.variable,)
    return statement.variables if isinstance(statement, Each) else ()


def _assigned(statement: Statement) -> tuple[Value, ...]:
    return (*results_of(statement), *(statement.parameters if isinstance(statement, Loop) else ()))


def _written(statements: Iterable[Statement]) -> set[Buffer]:
    return {s.buffer for s in Block(tuple(statements)).walk() if isinstance(s, Store)}


def _is_heavy(statement: Statement) -> bool:
    """Whether it gains more by lanes along memory than going through memory costs."""
    elementary = isinstance(statement, Apply) and OPERATIONS[statement.op].family == "elementary"
    return elementary or isinstance(statement, Store)


def _touched(statements: Iterable[Statement]) -> set[Buffer]:
    return {s.buffer for s in Block(tuple(statements)).walk() if isinstance(s, Load | Store)}


def _accesses(
    statements: Iterable[Statement], inner: tuple[Variable, ...] = (), branch: bool = False
) -> Iterator[tuple[Load | Store, tuple[Variable, ...], bool]]:
    """Loads and stores, with the loops around them, and whether they are in a branch."""
    for statement in statements:
        if isinstance(statement, Load | Store):
            yield statement, inner, branch
        inside, conditional = (*inner, *_variables(statement)), branch or isinstance(statement, Branch)
        for block in inner_blocks(statement):
            yield from _accesses(block.statements, inside, conditional)


def needed(statements: Iterable[Statement]) -> set[Value]:
    """The values that statements read and do not make inside their blocks."""
    found: set[Value] = set()
    for statement in statements:
        blocks = inner_blocks(statement)
        for block in blocks:
            inside = needed(block.statements) | set(block.results)
            found |= inside - {v for s in block.statements for v in results_of(s)}
        if isinstance(statement, Apply):
            found |= set(statement.operands)
        elif isinstance(statement, Branch):
            found.add(statement.condition)
        elif isinstance(statement, Loop):
            found = (found - set(statement.parameters)) | set(statement.start)
        elif isinstance(statement, Store):
            found.add(statement.value)
        elif isinstance(statement, Load) and statement.otherwise is not None:
            found.add(statement.otherwise)
        if not blocks:
            found |= {value for index in indices(Block((statement,))) for value in index.values()}
    return found


def _exchanged(block: Block, buffers: dict[Buffer, Buffer], base: Index) -> Block:
    """The block with buffers replaced, ``base`` being added to their offsets."""

    def one(statement: Statement) -> Statement:
        if isinstance(statement, Load | Store) and statement.buffer in buffers:
            offset = ix.add(base, statement.offset)
            return replace(statement, buffer=buffers[statement.buffer], offset=offset)
        if isinstance(statement, Loop | Each):
            return replace(statement, body=_exchanged(statement.body, buffers, base))
        if isinstance(statement, Branch):
            then, otherwise = (_exchanged(b, buffers, base) for b in (statement.then, statement.otherwise))
            return replace(statement, then=then, otherwise=otherwise)
        return statement

    return Block(tuple(map(one, block.statements)), block.results)
