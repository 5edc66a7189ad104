"""Kernels that sum products over an ordered loop, which devices have better ways to run.

Recognised is the form in which contractions and convolutions are lowered: literals; ordered loops whose accumulator
is ``add(accumulator, multiply(x, y))`` or ``fma(x, y, accumulator)``, alone or as blocks whose results are added to a
total; then an epilogue. x and y may be any expressions without loops; each variable of the space belongs to x alone (a
row), to y alone (a column), or to both (a batch).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from tlir.kernel.index import Index, Variable
from tlir.kernel.ir import (
    Apply,
    Each,
    Kernel,
    Literal,
    Load,
    Loop,
    Position,
    Statement,
    Store,
    Value,
    results_of,
    spans,
)
from tlir.kernel.joining import join_variables


@dataclass(frozen=True)
class Part:
    """The terms of each block in row-major order of ``terms``, the blocks being counted by ``blocks`` (None: there is
    one). Statements ``lhs`` and ``rhs`` compute the factors ``x`` and ``y``."""

    blocks: Variable | None
    terms: tuple[Variable, ...]
    lhs: tuple[Statement, ...]
    rhs: tuple[Statement, ...]
    x: Value
    y: Value

    @property
    def count(self) -> int:
        """Terms in a block."""
        return prod(v.extent for v in self.terms)


@dataclass(frozen=True)
class Contraction:
    """``total`` is the value that the epilogue uses; ``adds``: block results are added to a total that starts from
    ``start``, otherwise there is one block and the total is its result. Blocks start from ``start`` too."""

    kernel: Kernel
    batch: tuple[Variable, ...]
    rows: tuple[Variable, ...]
    columns: tuple[Variable, ...]
    parts: tuple[Part, ...]
    adds: bool
    fused: bool
    start: int
    total: Value
    epilogue: tuple[Statement, ...]


def as_contraction(kernel: Kernel) -> Contraction | None:
    """The kernel as a sum of products, or None."""
    kernel = join_variables(kernel)
    statements = list(kernel.body.statements)
    literals = {s.result: s for s in statements if isinstance(s, Literal)}
    loops = [s for s in statements if isinstance(s, Loop)]
    if not loops or any(isinstance(s, Each) for s in statements) or spans(kernel.body):
        return None
    parts: list[Part] = []
    total: Value | None = None
    fused: set[bool] = set()
    starts: set[Value] = set()
    joined: list[Statement] = []
    adds = False
    for loop in loops:
        found = _part(loop, statements)
        if found is None:
            return None
        part, is_fused, start, with_total = found
        parts.append(part)
        fused.add(is_fused)
        starts.add(start)
        # one block that is not in a loop over blocks, before or after whole ones
        join = None if with_total else _sum_of(statements, start if total is None else total, loop.results[0])
        if join is not None:
            joined.append(join)
            total = join.result
        elif total is not None:
            return None
        else:
            total = loop.results[0]
        if parts[1:] and not adds:
            # the first block is not added to the start value, which would change a sum of -0
            return None
        adds = adds or with_total or join is not None
    if total is None or len(fused) != 1 or len(starts) != 1:
        return None
    (start,) = starts
    if start not in literals or total.dtype != start.dtype:
        return None
    word = literals[start].word
    split = _variables(kernel, parts)
    if split is None or not isinstance(word, int):
        return None
    skipped = {id(s) for s in (*loops, *joined)}
    epilogue = tuple(s for s in statements if id(s) not in skipped)
    if any(r.number in _inner(loops) - {total.number} for s in epilogue for r in _used(s)):
        return None
    batch, rows, columns = split
    if any(s.offset.coefficient(rows[-1]) == 1 for s in epilogue if isinstance(s, Store)):
        # products commute: columns are what the results lie next to each other along
        rows, columns = columns, rows
        parts = [Part(p.blocks, p.terms, p.rhs, p.lhs, p.y, p.x) for p in parts]
    return Contraction(kernel, batch, rows, columns, tuple(parts), adds, fused.pop(), word, total, epilogue)


def _part(loop: Loop, outer: list[Statement]) -> tuple[Part, bool, Value, bool] | None:
    """The part that a loop of the kernel's body makes, whether it is fused, what it starts from, and whether its block
    results are added to a total inside it."""
    if len(loop.results) != 1:
        return None
    inner = [s for s in loop.body.statements if isinstance(s, Loop)]
    if len(inner) == 1 and inner[0].start == loop.start and len(inner[0].results) == 1:
        added = _sum_of(list(loop.body.statements), loop.parameters[0], inner[0].results[0])
        found = _products(inner[0], (*outer, *loop.body.statements))
        if added is None or loop.body.results != (added.result,) or found is None:
            return None
        return Part(loop.variable, *found[0]), found[1], loop.start[0], True
    found = _products(loop, tuple(outer))
    return None if found is None else (Part(None, *found[0]), found[1], loop.start[0], False)


def _sum_of(statements: list[Statement], left: Value, right: Value) -> Apply | None:
    """The statement that adds the one to the other."""
    for s in statements:
        if isinstance(s, Apply) and s.op == "add" and s.operands == (left, right):
            return s
    return None


def _products(
    loop: Loop, outer: tuple[Statement, ...]
) -> tuple[tuple[tuple[Variable, ...], Any, Any, Value, Value], bool] | None:
    """The terms, both sides and their values, and whether products are fused with sums. Loops that do nothing but run
    another one, which goes on with their accumulator, are one loop."""
    terms, known = [loop.variable], list(outer)
    while True:
        known += loop.body.statements
        inner = [s for s in loop.body.statements if isinstance(s, Loop)]
        if not inner:
            break
        if len(inner) > 1 or inner[0].start != loop.parameters or loop.body.results != inner[0].results:
            return None
        loop = inner[0]
        terms.append(loop.variable)
    made = {value: s for s in known for value in results_of(s)}
    last = made.get(loop.body.results[0])
    accumulator = loop.parameters[0]
    if not isinstance(last, Apply):
        return None
    if last.op == "fma" and last.operands[2] == accumulator:
        x, y, fused = last.operands[0], last.operands[1], True
    elif last.op == "add" and last.operands[0] == accumulator:
        product = made.get(last.operands[1])
        if not isinstance(product, Apply) or product.op != "multiply":
            return None
        (x, y), fused = product.operands, False
    else:
        return None
    if x.dtype != accumulator.dtype:
        return None
    lhs, rhs = _slice(x, made), _slice(y, made)
    if lhs is None or rhs is None or any(accumulator in _used(s) for s in (*lhs, *rhs)):
        return None
    return (tuple(terms), lhs, rhs, x, y), fused


def _slice(value: Value, made: dict[Value, Statement]) -> tuple[Statement, ...] | None:
    """The statements that compute a value, in order; None where they are more than loads and operations."""
    order: dict[int, Statement] = {}

    def visit(needed: Value) -> bool:
        statement = made.get(needed)
        if not isinstance(statement, Literal | Load | Apply | Position):
            return False
        if needed.number not in order:
            if not all(visit(operand) for operand in _used(statement)):
                return False
            order[needed.number] = statement
        return True

    return tuple(order.values()) if visit(value) else None


def _used(statement: Statement) -> tuple[Value, ...]:
    """The values that a statement without blocks reads."""
    if isinstance(statement, Apply):
        return statement.operands
    if isinstance(statement, Load):
        others = () if statement.otherwise is None else (statement.otherwise,)
        inside = [value for bound in statement.guard for value in bound.index.values()]
        return (*others, *statement.offset.values(), *inside)
    if isinstance(statement, Store):
        return (statement.value, *statement.offset.values())
    return statement.index.values() if isinstance(statement, Position) else ()


def _inner(loops: list[Loop]) -> set[int]:
    return {result.number for loop in loops for result in loop.results}


def _variables(
    kernel: Kernel, parts: list[Part]
) -> tuple[tuple[Variable, ...], tuple[Variable, ...], tuple[Variable, ...]] | None:
    left = {v for part in parts for s in part.lhs for v in _depends(s)}
    right = {v for part in parts for s in part.rhs for v in _depends(s)}
    space = [v for v in kernel.space if v.extent > 1]
    if any(v not in left | right for v in space):
        return None
    batch = tuple(v for v in space if v in left and v in right)
    rows = tuple(v for v in space if v in left and v not in right)
    columns = tuple(v for v in space if v in right and v not in left)
    return (batch, rows, columns) if rows and columns else None


def _depends(statement: Statement) -> frozenset[Variable]:
    indices: list[Index] = []
    if isinstance(statement, Load):
        indices = [statement.offset, *(bound.index for bound in statement.guard)]
    elif isinstance(statement, Position):
        indices = [statement.index]
    return frozenset(v for index in indices for v in index.variables())
