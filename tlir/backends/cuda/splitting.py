"""Ordered loops cut into what does not depend on the order and what does.

A step of a loop computes some values that need nothing of the step before, and with them goes on with what the loop
carries. Several threads can do the first part for different steps at once; only the second part has to run through the
steps in order. Where all that a loop carries are results of an exact operation that may be regrouped (integer sums,
minima and maxima, bitwise operations), there is no second part: every thread goes through steps of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tlir.ir.types import DType
from tlir.kernel.index import FromValue, Index, Quotient, Remainder, Variable
from tlir.kernel.ir import (
    Apply,
    Block,
    Branch,
    Buffer,
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


@dataclass(frozen=True)
class Split:
    """``free`` statements need nothing that the loop carries, ``ordered`` ones do; ``passed`` values go from the first
    to the second. What both can have without work (literals, positions) is in both."""

    free: tuple[Statement, ...]
    ordered: tuple[Statement, ...]
    passed: tuple[Value, ...]


@dataclass(frozen=True)
class Regrouped:
    """Each carried value is ``op(carried, term)`` for its own operation and term; ``free`` computes the terms."""

    free: tuple[Statement, ...]
    ops: tuple[str, ...]
    terms: tuple[Value, ...]


def split(loop: Loop) -> Split | None:
    """How a loop is cut; None where its free part cannot run out of order, or does nothing worth it."""
    if loop.span is not None or spans(loop.body):
        return None
    free: list[Statement] = []
    ordered: list[Statement] = []
    both: list[Statement] = []
    carried = set(loop.parameters)
    for statement in loop.body.statements:
        if isinstance(statement, Literal) or (isinstance(statement, Position) and not statement.index.values()):
            both.append(statement)
        elif carried.isdisjoint(reads(statement)):
            free.append(statement)
        else:
            if inner_blocks(statement):
                return None
            ordered.append(statement)
            carried |= set(results_of(statement))
    if not _independent(loop, free):
        return None
    made = {value for statement in free for value in results_of(statement)}
    wanted = [value for statement in ordered for value in reads(statement)]
    passed = tuple(dict.fromkeys(value for value in (*wanted, *loop.body.results) if value in made))
    if not passed and not any(isinstance(s, Store) for s in free):
        return None
    return Split((*both, *free), (*both, *ordered), passed)


def regrouped(loop: Loop) -> Regrouped | None:
    """The loop as sums that may be regrouped, or None."""
    found = split(loop)
    if found is None or not loop.parameters:
        return None
    made = {value: s for s in found.ordered for value in results_of(s)}
    ops: list[str] = []
    terms: list[Value] = []
    for parameter, result in zip(loop.parameters, loop.body.results, strict=True):
        last = made.get(result)
        if not isinstance(last, Apply) or not may_regroup(last.op, parameter.dtype) or last.attrs:
            return None
        rest = [operand for operand in last.operands if operand != parameter]
        if len(last.operands) != 2 or len(rest) != 1 or rest[0] in loop.parameters or rest[0].dtype != parameter.dtype:
            return None
        ops.append(last.op)
        terms.append(rest[0])
    applied = [s for s in found.ordered if not isinstance(s, Literal | Position)]
    if len(applied) != len(ops) or any(isinstance(made.get(term), Apply) for term in terms):
        return None
    return Regrouped(found.free, tuple(ops), tuple(terms))


def may_regroup(op: str, dtype: DType) -> bool:
    """Whether an operation on words is associative and commutative. Minimum and maximum are for floating-point numbers
    as well: zeros are ordered by sign and there is one NaN as their result."""
    if op in ("minimum", "maximum"):
        return not dtype.is_complex
    return not dtype.is_float and not dtype.is_complex and op in ("add", "multiply", "and", "or", "xor")


def identity(op: str, dtype: DType) -> int | None:
    """The word that an operation leaves others alone with; None where ``op(x, x)`` is x, so that none is needed."""
    if op in ("minimum", "maximum", "and", "or"):
        return None
    return 1 if op == "multiply" else 0


def reads(statement: Statement) -> set[Value]:
    """All values that a statement and the blocks in it read."""
    found: set[Value] = set()
    match statement:
        case Position():
            found |= set(statement.index.values())
        case Load():
            found |= set(statement.offset.values()) | {v for bound in statement.guard for v in bound.index.values()}
            found |= set() if statement.otherwise is None else {statement.otherwise}
        case Apply():
            found |= set(statement.operands)
        case Branch():
            found.add(statement.condition)
        case Loop():
            found |= set(statement.start)
        case Store():
            found |= {statement.value, *statement.offset.values()}
    for block in inner_blocks(statement):
        found |= set(block.results)
        for inner in block.statements:
            found |= reads(inner)
    return found


def buffers(block: Block) -> tuple[set[Buffer], set[Buffer]]:
    """The buffers that a block reads, and those that it writes."""
    statements = list(block.walk())
    loaded = {s.buffer for s in statements if isinstance(s, Load)}
    return loaded, {s.buffer for s in statements if isinstance(s, Store)}


def _independent(loop: Loop, free: list[Statement]) -> bool:
    """Whether the steps' free parts may run in any order: the loop reads nothing that it writes, and what a free part
    stores goes to a place of its own for each step."""
    loaded, stored = buffers(loop.body)
    if loaded & stored:
        return False
    for statement in free:
        if isinstance(statement, Store):
            if not _moves(statement.offset, loop.variable):
                return False
        elif any(isinstance(inner, Store) for inner in _inside(statement)):
            return False
    written = [s.buffer for s in loop.body.walk() if isinstance(s, Store)]
    return len(set(written)) == len(written)


def _inside(statement: Statement) -> Iterator[Statement]:
    for block in inner_blocks(statement):
        yield from block.walk()


def _moves(offset: Index, variable: Variable) -> bool:
    """Whether different steps of a loop have different offsets."""
    for _, atom in offset.terms:
        if isinstance(atom, FromValue):
            return False
        if isinstance(atom, Quotient | Remainder) and variable in atom.dividend.variables():
            return False
    return offset.coefficient(variable) != 0
