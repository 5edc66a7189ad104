"""Kernels of a known form, for devices that have a better way to run them.

A contraction's canonical form is: the space, then for each of its iterations literals, one loop over the contracted
index (a loop per contracted axis, each inside the one before) whose innermost body is

    load, load, (convert, convert,) multiply, add      or      load, load, (convert, convert,) fma

and an epilogue that ends in a store. With order ``blocked(n)`` the loop is one over whole blocks around one over the
terms of a block, followed by one over the rest, each from the identity, and an addition after each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tlir.ir.types import DType
from tlir.kernel.index import Index, Variable
from tlir.kernel.ir import Apply, Block, Bound, Branch, Buffer, Each, Kernel, Literal, Load, Loop, Statement, Value


@dataclass(frozen=True)
class Factor:
    """One side of the products: the element at ``constant + sum of stride * variable``, converted to each of
    ``converts`` in turn. Where a bound of ``guard`` does not hold it is ``otherwise``."""

    buffer: Buffer
    strides: Mapping[Variable, int]
    constant: int
    converts: tuple[DType, ...]
    guard: tuple[Bound, ...] = ()
    otherwise: Value | None = None

    def stride(self, variable: Variable) -> int:
        return self.strides.get(variable, 0)


@dataclass(frozen=True)
class Contraction:
    """A kernel that is a contraction.

    ``contracted`` are the variables that are summed over, outermost first; with ``block`` terms to a block (0: the
    order is sequential) there is one, of the extent of the whole sum. ``dtype`` is the accumulator's, ``start`` the
    value that every sum starts from, ``total`` the value that the loops leave, ``fused`` whether product and addition
    are one operation. ``before`` and ``after`` are the other statements of the body: ``total`` is used in ``after``.
    """

    kernel: Kernel
    lhs: Factor
    rhs: Factor
    contracted: tuple[Variable, ...]
    block: int
    fused: bool
    multiply: str
    add: str
    dtype: DType
    start: Literal
    total: Value
    before: tuple[Statement, ...]
    after: tuple[Statement, ...]

    @property
    def space(self) -> tuple[Variable, ...]:
        return self.kernel.space


@dataclass(frozen=True)
class _Nest:
    """A loop, or loops inside each other, around the products."""

    variables: tuple[Variable, ...]
    start: Value
    result: Value
    lhs: Factor
    rhs: Factor
    fused: bool
    multiply: str
    add: str


def as_contraction(kernel: Kernel) -> Contraction | None:
    """The parts of a kernel in canonical form; None for any other kernel."""
    statements = kernel.body.statements
    places = [k for k, statement in enumerate(statements) if isinstance(statement, Loop | Each | Branch)]
    if not places:
        return None
    first = statements[places[0]]
    if not isinstance(first, Loop):
        return None
    literals = {s.result: s for s in statements[: places[0]] if isinstance(s, Literal)}
    nest, block, end, total = _sum(statements, places, literals)
    if nest is None or nest.start not in literals or end is None or total is None:
        return None
    others = statements[end:]
    if any(isinstance(statement, Loop | Each | Branch) for statement in others):
        return None
    return Contraction(
        kernel,
        nest.lhs,
        nest.rhs,
        nest.variables,
        block,
        nest.fused,
        nest.multiply,
        nest.add,
        nest.start.dtype,
        literals[nest.start],
        total,
        statements[: places[0]],
        others,
    )


def _sum(
    statements: tuple[Statement, ...], places: list[int], literals: Mapping[Value, Literal]
) -> tuple[_Nest | None, int, int | None, Value | None]:
    """The loops as one nest, the length of a block, where the statements behind them begin, and the total."""
    first = statements[places[0]]
    assert isinstance(first, Loop)
    whole = _nest(first, statements)
    if whole is not None and len(places) == 1:
        return whole, 0, places[0] + 1, whole.result
    if whole is not None:
        # one whole block and a rest
        return _joined(statements, places, whole, 1, whole.variables[-1].extent, whole.start, whole.result, True)
    if len(first.body.statements) != 2 or len(first.results) != 1:
        return None, 0, None, None
    inner, joined = first.body.statements
    nest = _nest(inner, statements) if isinstance(inner, Loop) else None
    if nest is None or len(nest.variables) != 1 or not _adds(joined, nest.add, first.parameters[0], nest.result):
        return None, 0, None, None
    assert isinstance(joined, Apply)
    if first.body.results != (joined.result,) or first.start[0] != nest.start:
        return None, 0, None, None
    length = nest.variables[0].extent
    spread = _spread(nest, first.variable, first.variable.extent * length, length)
    if spread is None:
        return None, 0, None, None
    if len(places) == 1:
        return spread, length, places[0] + 1, first.results[0]
    return _joined(statements, places, spread, first.variable.extent, length, first.start[0], first.results[0], False)


def _joined(
    statements: tuple[Statement, ...],
    places: list[int],
    whole: _Nest,
    blocks: int,
    length: int,
    start: Value,
    result: Value,
    add_first: bool,
) -> tuple[_Nest | None, int, int | None, Value | None]:
    """Whole blocks and a shorter one behind them."""
    at = places[0] + 1
    total = result
    if add_first:
        joined = statements[at]
        if not _adds(joined, whole.add, start, result):
            return None, 0, None, None
        assert isinstance(joined, Apply)
        total, at = joined.result, at + 1
    if len(places) != 2 or len(whole.variables) != 1:
        return None, 0, None, None
    # what a rest of one term reads does not depend on its loop
    if not all(isinstance(s, Load) or (isinstance(s, Apply) and s.op == "convert") for s in statements[at : places[1]]):
        return None, 0, None, None
    at = places[1]
    loop = statements[at]
    rest = _nest(loop, statements) if isinstance(loop, Loop) else None
    joined = statements[at + 1] if at + 1 < len(statements) else loop
    if rest is None or len(rest.variables) != 1 or not _adds(joined, whole.add, total, rest.result):
        return None, 0, None, None
    assert isinstance(joined, Apply)
    if rest.start != whole.start or (rest.fused, rest.multiply, rest.add) != (whole.fused, whole.multiply, whole.add):
        return None, 0, None, None
    step = whole.variables[0]
    variable = Variable(step.number, blocks * length + rest.variables[0].extent)
    factors: list[Factor] = []
    for one, other in ((whole.lhs, rest.lhs), (whole.rhs, rest.rhs)):
        stride = one.stride(step)
        moved = {variable if v == step else v: s for v, s in one.strides.items()}
        renamed = {variable if v == rest.variables[0] else v: s for v, s in other.strides.items()}
        if rest.variables[0].extent == 1 and stride:
            renamed[variable] = stride
        same = (one.buffer, one.converts, one.guard, one.otherwise) == (
            *(other.buffer, other.converts, other.guard, other.otherwise),
        )
        if not same or one.guard or moved != renamed or other.constant != one.constant + blocks * length * stride:
            return None, 0, None, None
        factors.append(Factor(one.buffer, moved, one.constant, one.converts))
    lhs, rhs = factors
    nest = replace(whole, variables=(variable,), result=joined.result, lhs=lhs, rhs=rhs)
    return nest, length, at + 2, joined.result


def _spread(nest: _Nest, outer: Variable, count: int, length: int) -> _Nest | None:
    """The nest over the terms of a block and the loop over blocks around it as one variable."""
    (inner,) = nest.variables
    variable = Variable(inner.number, count)
    factors: list[Factor] = []
    for factor in (nest.lhs, nest.rhs):
        strides = dict(factor.strides)
        stride = strides.pop(inner, 0)
        if strides.pop(outer, 0) != stride * length or factor.guard:
            return None
        if stride:
            strides[variable] = stride
        factors.append(Factor(factor.buffer, strides, factor.constant, factor.converts))
    return replace(nest, variables=(variable,), lhs=factors[0], rhs=factors[1])


def _adds(statement: Statement, add: str, left: Value, right: Value) -> bool:
    return isinstance(statement, Apply) and statement.op == add and statement.operands == (left, right)


def _nest(loop: Loop, around: tuple[Statement, ...]) -> _Nest | None:
    """Loops inside each other, each with nothing else in it, around the products. ``around`` are the statements of the
    kernel's body, among which a factor may be that does not depend on the loops."""
    variables: list[Variable] = []
    start, result, current = loop.start, loop.results, loop
    while True:
        variables.append(current.variable)
        if len(current.start) != 1:
            return None
        body = current.body
        if len(body.statements) == 1 and isinstance(inner := body.statements[0], Loop):
            if inner.start != current.parameters or body.results != inner.results:
                return None
            current = inner
            continue
        products = _products(body, current.parameters[0], around)
        if products is None:
            return None
        lhs, rhs, fused, multiply, add = products
        return _Nest(tuple(variables), start[0], result[0], lhs, rhs, fused, multiply, add)


def _products(
    body: Block, carried: Value, around: tuple[Statement, ...]
) -> tuple[Factor, Factor, bool, str, str] | None:
    """The two factors, whether they are fused with the addition, and the operations."""
    loads = {s.result: s for s in body.statements if isinstance(s, Load)}
    applied = {s.result: s for s in body.statements if isinstance(s, Apply)}
    if len(loads) + len(applied) != len(body.statements) or len(body.results) != 1:
        return None
    own = loads.keys() | applied.keys()
    loads |= {s.result: s for s in around if isinstance(s, Load)}
    applied |= {s.result: s for s in around if isinstance(s, Apply)}
    last = applied.get(body.results[0])
    used = set()

    def factor(value: Value) -> Factor | None:
        converts: list[DType] = []
        while (step := applied.get(value)) is not None and step.op == "convert" and not step.attrs:
            converts.insert(0, value.dtype)
            used.add(value)
            value = step.operands[0]
        load = loads.get(value)
        if load is None or any(not isinstance(atom, Variable) for _, atom in load.offset.terms):
            return None
        used.add(value)
        return Factor(
            load.buffer, _strides(load.offset), load.offset.constant, tuple(converts), load.guard, load.otherwise
        )

    if last is None:
        return None
    used.add(last.result)
    if last.op == "fma" and last.operands[2] == carried:
        fused, names, pair = True, ("multiply", "add"), last.operands[:2]
    elif last.op in ("add", "or") and last.operands[0] == carried:
        product = applied.get(last.operands[1])
        if product is None or product.op != ("multiply" if last.op == "add" else "and"):
            return None
        used.add(product.result)
        fused, names, pair = False, (product.op, last.op), product.operands
    else:
        return None
    lhs, rhs = factor(pair[0]), factor(pair[1])
    if lhs is None or rhs is None or not own <= used:
        return None
    inputs = lhs.buffer.role == rhs.buffer.role == "input"
    return (lhs, rhs, fused, *names) if inputs else None


def _strides(index: Index) -> dict[Variable, int]:
    return {atom: coefficient for coefficient, atom in index.terms if isinstance(atom, Variable)}
