"""What a program does for nobody, taken out: arrays that only their own kernel uses, and what leads to nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tlir.ir.graph import Ref
from tlir.kernel.index import Index
from tlir.kernel.ir import (
    Apply,
    Block,
    Branch,
    Buffer,
    Each,
    Launch,
    Load,
    Loop,
    Position,
    Statement,
    Store,
    Value,
    inner_blocks,
    results_of,
)


def without(launch: Launch, wanted: set[Ref]) -> Launch | None:
    """The launch without outputs that are not wanted and what is computed for them alone; None where none is wanted."""
    kernel = launch.kernel
    pairs = list(zip(kernel.buffers, launch.arguments, strict=False))
    dead = {buffer for buffer, ref in pairs if buffer.role == "output" and ref not in wanted}
    if not dead:
        return launch
    if all(buffer in dead for buffer, _ in pairs if buffer.role == "output"):
        return None
    # an output that the kernel reads again itself has to stay
    dead -= {statement.buffer for statement in kernel.body.walk() if isinstance(statement, Load)}
    body = _alive(kernel.body, dead, set())
    used = {statement.buffer for statement in body.walk() if isinstance(statement, Load | Store)}
    gone = {buffer for buffer in kernel.buffers if buffer in dead or (buffer not in used and buffer.role != "output")}
    buffers = tuple(buffer for buffer in kernel.buffers if buffer not in gone)
    arguments = tuple(ref for buffer, ref in pairs if buffer not in gone)
    return Launch(replace(kernel, buffers=buffers, body=body), arguments)


def _alive(block: Block, dead: set[Buffer], used: set[Value]) -> Block:
    """The statements that store to a buffer that is not dead, and those whose values are used by one; these values are
    added to ``used``."""
    used |= set(block.results)
    kept: list[Statement] = []
    for statement in reversed(block.statements):
        if isinstance(statement, Store) and statement.buffer in dead:
            continue
        stores = any(_stores(inner, dead) for inner in inner_blocks(statement))
        if not isinstance(statement, Store) and not stores and not used & set(results_of(statement)):
            continue
        if isinstance(statement, Loop | Each):
            statement = replace(statement, body=_alive(statement.body, dead, used))
        elif isinstance(statement, Branch):
            then, otherwise = _alive(statement.then, dead, used), _alive(statement.otherwise, dead, used)
            statement = replace(statement, then=then, otherwise=otherwise)
        used |= set(_operands(statement))
        kept.append(statement)
    return replace(block, statements=tuple(reversed(kept)))


def _stores(block: Block, dead: set[Buffer]) -> bool:
    return any(isinstance(statement, Store) and statement.buffer not in dead for statement in block.walk())


def _operands(statement: Statement) -> Iterator[Value]:
    """The values that a statement itself uses, those of indices too."""
    match statement:
        case Apply(operands=operands):
            yield from operands
        case Position(index=index):
            yield from index.values()
        case Load(offset=offset, guard=guard, otherwise=otherwise):
            indices: list[Index] = [offset, *(bound.index for bound in guard)]
            for index in indices:
                yield from index.values()
            if otherwise is not None:
                yield otherwise
        case Branch(condition=condition):
            yield condition
        case Loop(start=start):
            yield from start
        case Store(offset=offset, value=value):
            yield value
            yield from offset.values()
