"""Variables of a kernel's space that every index uses as one, made one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tlir.kernel.index import Index, Quotient, Remainder, Variable, quotient, remainder, total, variable
from tlir.kernel.ir import Block, Bound, Branch, Each, Kernel, Load, Loop, Position, Span, Statement, Store


def indices(block: Block) -> Iterator[Index]:
    """Every index that a block uses."""
    for statement in block.walk():
        if isinstance(statement, Load | Store):
            yield statement.offset
        if isinstance(statement, Load):
            yield from (bound.index for bound in statement.guard)
        if isinstance(statement, Position):
            yield statement.index
        if isinstance(statement, Loop | Each) and statement.span is not None:
            yield from (statement.span.first, statement.span.end)


def join_variables(kernel: Kernel) -> Kernel:
    """Neighbouring variables of the space that every index uses as one, made one."""
    space = [v for v in kernel.space if v.extent > 1]
    k = len(space) - 2
    while k >= 0:
        left, right = space[k], space[k + 1]
        if all(_as_one(index, left, right) for index in indices(kernel.body)):
            joined = Variable(left.number, left.extent * right.extent)

            def renamed(
                index: Index, left: Variable = left, right: Variable = right, joined: Variable = joined
            ) -> Index:
                return _substituted(index, left, right, joined)

            kernel = replace(kernel, body=mapped(kernel.body, renamed))
            space[k : k + 2] = [joined]
        k = min(k - 1, len(space) - 2)
    return replace(kernel, space=tuple(space))


def _as_one(index: Index, left: Variable, right: Variable) -> bool:
    """Whether the index depends on the two variables through ``left * extent of right + right`` alone."""
    if index.coefficient(left) != index.coefficient(right) * right.extent:
        return False
    inner = [atom.dividend for _, atom in index.terms if isinstance(atom, Quotient | Remainder)]
    return all(_as_one(dividend, left, right) for dividend in inner)


def _substituted(index: Index, left: Variable, right: Variable, joined: Variable) -> Index:
    parts: list[tuple[int, Index]] = []
    for coefficient, atom in index.terms:
        if atom == right:
            parts.append((coefficient, variable(joined)))
        elif isinstance(atom, Quotient):
            parts.append((coefficient, quotient(_substituted(atom.dividend, left, right, joined), atom.divisor)))
        elif isinstance(atom, Remainder):
            parts.append((coefficient, remainder(_substituted(atom.dividend, left, right, joined), atom.divisor)))
        elif atom != left:
            parts.append((coefficient, Index(((1, atom),))))
    return total(parts, index.constant)


def replaced(index: Index, before: Variable, by: Index) -> Index:
    """The index with another one in place of a variable."""
    parts: list[tuple[int, Index]] = []
    for coefficient, atom in index.terms:
        if atom == before:
            parts.append((coefficient, by))
        elif isinstance(atom, Quotient):
            parts.append((coefficient, quotient(replaced(atom.dividend, before, by), atom.divisor)))
        elif isinstance(atom, Remainder):
            parts.append((coefficient, remainder(replaced(atom.dividend, before, by), atom.divisor)))
        else:
            parts.append((coefficient, Index(((1, atom),))))
    return total(parts, index.constant)


def mapped(block: Block, rename: Callable[[Index], Index]) -> Block:
    """The block with every index replaced."""

    def one(statement: Statement) -> Statement:
        if isinstance(statement, Load):
            guard = tuple(Bound(rename(bound.index), bound.low, bound.high) for bound in statement.guard)
            return replace(statement, offset=rename(statement.offset), guard=guard)
        if isinstance(statement, Store):
            return replace(statement, offset=rename(statement.offset))
        if isinstance(statement, Position):
            return replace(statement, index=rename(statement.index))
        if isinstance(statement, Loop | Each):
            span = statement.span and Span(rename(statement.span.first), rename(statement.span.end))
            return replace(statement, body=mapped(statement.body, rename), span=span)
        if isinstance(statement, Branch):
            then, otherwise = mapped(statement.then, rename), mapped(statement.otherwise, rename)
            return replace(statement, then=then, otherwise=otherwise)
        return statement

    return replace(block, statements=tuple(one(statement) for statement in block.statements))
