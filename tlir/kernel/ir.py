"""Kernels and programs as plain records.

A kernel fills its output buffers. Its ``space`` is a tuple of loop variables whose iterations are independent of each
other and may run in any order; ``body`` is what one iteration does. Values are scalars, each assigned once, of the
graph's own dtypes, so a value is a word of its format here too. What one operation does to words is what the graph's
operation of the same name does to an element: a kernel adds nothing to the meaning of ``add`` or ``convert``.

Buffers are row-major arrays addressed by one offset in elements, so a view (transpose, reshape, slice, broadcast) is
nothing but another ``Index``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tlir.ir.graph import Ref
from tlir.ir.tensor import Tensor
from tlir.ir.types import DType, TensorType
from tlir.kernel.index import Index, Variable


class Value(NamedTuple):
    """A scalar; ``number`` is unique in its kernel."""

    number: int
    dtype: DType

    def __str__(self) -> str:
        return f"v{self.number}"


@dataclass(frozen=True)
class Buffer:
    """An array of ``size`` elements. ``role`` is "input", "output", or "local": scratch memory that every iteration of
    the kernel's space has for itself, with nothing in it at the start."""

    name: str
    dtype: DType
    size: int
    role: str


@dataclass(frozen=True)
class Bound:
    """``low <= index < high``."""

    index: Index
    low: int
    high: int


@dataclass(frozen=True)
class Literal:
    """A constant, given by its word (for a complex dtype the pair of words of its parts)."""

    result: Value
    word: int | tuple[int, int]


@dataclass(frozen=True)
class Position:
    """An index as an integer value."""

    result: Value
    index: Index


@dataclass(frozen=True)
class Load:
    """The element of ``buffer`` at ``offset``. Where one of the bounds does not hold nothing is read, and the result is
    ``otherwise``."""

    result: Value
    buffer: Buffer
    offset: Index
    guard: tuple[Bound, ...] = ()
    otherwise: Value | None = None


@dataclass(frozen=True)
class Apply:
    """An elementwise operation of the graph's set on scalars, with the attributes that its node has."""

    result: Value
    op: str
    operands: tuple[Value, ...]
    attrs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Branch:
    """One of two blocks; the other is not evaluated."""

    results: tuple[Value, ...]
    condition: Value
    then: Block
    otherwise: Block


@dataclass(frozen=True)
class Span:
    """The steps from ``first`` up to ``end``, which is not one of them; none where ``end`` is not greater. Both depend
    on nothing but ordered loops around."""

    first: Index
    end: Index


@dataclass(frozen=True)
class Loop:
    """An ordered loop: ``parameters`` are ``start`` at first and then the results of ``body``, whose last ones are the
    results of the loop. ``variable`` counts from 0 to its extent, or through a span of that."""

    results: tuple[Value, ...]
    variable: Variable
    start: tuple[Value, ...]
    parameters: tuple[Value, ...]
    body: Block
    span: Span | None = None


@dataclass(frozen=True)
class Each:
    """Iterations of ``body`` that are independent of each other; they only store. With a span there is one variable,
    and it takes the values of the span."""

    variables: tuple[Variable, ...]
    body: Block
    span: Span | None = None


@dataclass(frozen=True)
class Store:
    """Writes one element of an output or local buffer."""

    buffer: Buffer
    offset: Index
    value: Value


Statement = Literal | Position | Load | Apply | Branch | Loop | Each | Store


@dataclass(frozen=True)
class Block:
    """Statements in order, and the values that they leave to whoever holds the block."""

    statements: tuple[Statement, ...]
    results: tuple[Value, ...] = ()

    def walk(self) -> Iterator[Statement]:
        """All statements, those of inner blocks after the statement that holds them."""
        for statement in self.statements:
            yield statement
            for block in inner_blocks(statement):
                yield from block.walk()


def inner_blocks(statement: Statement) -> tuple[Block, ...]:
    """The blocks that a statement holds."""
    if isinstance(statement, Branch):
        return (statement.then, statement.otherwise)
    return (statement.body,) if isinstance(statement, Loop | Each) else ()


def spans(block: Block) -> bool:
    """Whether a loop in the block runs through a span."""
    return any(isinstance(s, Loop | Each) and s.span is not None for s in block.walk())


def results_of(statement: Statement) -> tuple[Value, ...]:
    """The values that a statement assigns in the block that holds it."""
    if isinstance(statement, Literal | Position | Load | Apply):
        return (statement.result,)
    return statement.results if isinstance(statement, Branch | Loop) else ()


@dataclass(frozen=True)
class Kernel:
    """``buffers`` are in the order of a launch's arguments, local ones last. ``nodes`` are the graph's nodes that the
    kernel computes, for reports and for the places of errors."""

    name: str
    buffers: tuple[Buffer, ...]
    space: tuple[Variable, ...]
    body: Block
    nodes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Launch:
    """One run of a kernel on values of the graph: ``arguments`` for its buffers that are not local. A value that the
    kernel computes without being asked for by the graph (a part of a reshaped one) still is a value of the graph."""

    kernel: Kernel
    arguments: tuple[Ref, ...]


@dataclass(frozen=True)
class Fallback:
    """A node that the reference evaluates, and why there is no kernel for it."""

    node: int
    reason: str


@dataclass(frozen=True)
class Alias:
    """A value whose words are those of another one in the same order (a reshape): no work."""

    value: Ref
    of: Ref


Step = Launch | Fallback | Alias


@dataclass(frozen=True)
class Program:
    """A graph's body as steps in order.

    ``types`` has the type of every value that a step reads or writes; ``constants`` those that are constants of the
    graph, and ``tables``, which no graph holds: for each the name of its function (``tlir.kernel.tables``). ``inputs``
    and ``outputs`` are the body's.
    """

    types: Mapping[Ref, TensorType]
    constants: Mapping[Ref, Tensor]
    inputs: tuple[Ref, ...]
    outputs: tuple[Ref, ...]
    steps: tuple[Step, ...]
    tables: Mapping[Ref, str] = field(default_factory=dict)
