"""Kernels written on demand: the statements that compute one element of a value at an index.

Asking for an element of a value asks for the elements of its operands at the indices that its operation reads, down to
loads. A view therefore is a change of the index and nothing else. Every statement is put into the outermost block in
which all that its index depends on is known: what does not depend on a loop is not in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tlir.ir.graph import Body, Node, Ref
from tlir.ir.types import BOOL, NAMED, DType, TensorType
from tlir.kernel.index import ZERO, Index, Variable, constant, flatten, from_value, variable
from tlir.kernel.ir import (
    Apply,
    Block,
    Bound,
    Branch,
    Buffer,
    Each,
    Kernel,
    Literal,
    Load,
    Loop,
    Position,
    Span,
    Statement,
    Store,
    Value,
)
from tlir.passes.lower.places import Place, complement, never, split_place
from tlir.passes.lower.rows import Row
from tlir.passes.lower.words import Word, blank_word, word_at

INT64 = NAMED["int64"]


class Split(Exception):
    """``ref`` has to be an array of its own: computing it inside this kernel would be more work, or is not possible.
    Where it is one already, ``otherwise`` has to be."""

    def __init__(self, ref: Ref, otherwise: Ref | None = None) -> None:
        super().__init__(ref)
        self.ref, self.otherwise = ref, otherwise


class Refused(Exception):
    """There is no kernel for what was asked; ``reason`` says why in a few words."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(eq=False)
class Scope:
    """A block under construction. ``variables`` are those that it introduces; nothing is moved out of a ``barrier``."""

    parent: Scope | None
    variables: tuple[Variable, ...] = ()
    barrier: bool = False
    closed: bool = False
    statements: list[Statement] = field(default_factory=list)
    memo: dict[object, Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.depth: int = 0 if self.parent is None else self.parent.depth + 1

    def chain(self) -> Iterator[Scope]:
        """This scope and those around it, from the inside out."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def all_variables(self) -> frozenset[Variable]:
        return frozenset(v for scope in self.chain() for v in scope.variables)

    def block(self, results: tuple[Value, ...] = ()) -> Block:
        return Block(tuple(self.statements), results)


Given = Callable[["Emitter", Place], Value]
"""How the element of a value at an index comes about that no node of the body computes."""


@dataclass(eq=False)
class Frame:
    """A body whose values are asked for. ``given`` says how elements come about that are not computed by their nodes:
    those of arrays, and of the inputs of a region; None for all others."""

    body: Body
    given: Callable[[Ref], Given | None] = lambda ref: None
    outermost: bool = True

    def type(self, ref: Ref) -> TensorType:
        return self.body.type_of(ref)


Compute = Callable[["Emitter", Frame, Node, int, Place], Value]
"""How an operation's element is computed: emitter, frame, node, number of the result, index."""


Emit = Callable[["Emitter", Frame, Node], None]
"""Writes the whole kernel of a node that fills all its results by itself."""


@dataclass
class Emission:
    """One computation of an element of a value, for the decision about fusion."""

    ref: Ref
    scope: Scope
    place: Place


class Emitter:
    """Writes one kernel. ``computes`` has an entry for every operation whose elements are computed on demand."""

    def __init__(self, computes: Mapping[str, Compute]) -> None:
        self.computes = computes
        self.root = Scope(None)
        self.current = self.root
        self.home: dict[Variable, Scope] = {}
        self.defined: dict[int, Scope] = {}
        self.active: tuple[Bound, ...] = ()
        self.inputs: dict[Ref, Buffer] = {}
        self.outputs: dict[Ref, Buffer] = {}
        self.locals: list[Buffer] = []
        self.emissions: list[Emission] = []
        self.nodes: set[int] = set()
        self.rows: dict[Ref, Row] = {}
        self.operands: list[Ref] = []
        self.byproducts: frozenset[Ref] = frozenset()
        self.anchored = False
        self.regions: dict[tuple[int, int, int], Frame] = {}
        self.branching: dict[tuple[int, int], tuple[Scope, tuple[Bound, ...]]] = {}
        """For each case that is being written, the block that its branch stands in, and the guards there."""
        self.on_anchor: Callable[[Emitter, Node, Place, str], None] | None = None
        self._variables = 0
        self._values = 0

    # ---- names ----------------------------------------------------------------------------------------------------

    def variable(self, extent: int) -> Variable:
        self._variables += 1
        return Variable(self._variables - 1, extent)

    def value(self, dtype: DType) -> Value:
        self._values += 1
        return Value(self._values - 1, dtype)

    def local(self, dtype: DType, size: int) -> Buffer:
        """A new local buffer."""
        buffer = Buffer(f"t{len(self.locals)}", dtype, size, "local")
        self.locals.append(buffer)
        return buffer

    def input(self, ref: Ref, type: TensorType) -> Buffer:
        """The buffer of a value that is an array when the kernel starts."""
        return self.inputs.setdefault(ref, Buffer(_name(ref), type.dtype, type.size, "input"))

    def output(self, ref: Ref, type: TensorType) -> Buffer:
        """The buffer of a value that the kernel fills."""
        return self.outputs.setdefault(ref, Buffer(_name(ref), type.dtype, type.size, "output"))

    def space(self, extents: Sequence[int]) -> Place:
        """The kernel's space: a variable, numbered from 0 on, for each extent but 1."""
        counted = [None if extent == 1 else self.variable(extent) for extent in extents]
        self.root.variables = tuple(v for v in counted if v is not None)
        self.home |= dict.fromkeys(self.root.variables, self.root)
        return tuple(ZERO if v is None else variable(v) for v in counted)

    def kernel(self, name: str) -> tuple[Kernel, tuple[Ref, ...]]:
        """The kernel as written so far, and the values that its buffers stand for."""
        buffers = (*self.inputs.values(), *self.outputs.values(), *self.locals)
        kernel = Kernel(name, buffers, self.root.variables, self.root.block(), tuple(sorted(self.nodes)))
        return kernel, (*self.inputs, *self.outputs)

    # ---- scopes ---------------------------------------------------------------------------------------------------

    @contextmanager
    def within(self, scope: Scope) -> Iterator[Scope]:
        """Statements go to the end of ``scope``."""
        before, self.current = self.current, scope
        try:
            yield scope
        finally:
            self.current = before

    def inner(self, variables: Sequence[Variable] = (), barrier: bool = False) -> Scope:
        """A new scope in the current one."""
        scope = Scope(self.current, tuple(variables), barrier)
        self.home |= dict.fromkeys(variables, scope)
        return scope

    def target(self, indices: Sequence[Index]) -> Scope:
        """The outermost scope around the current one in which all indices are known."""
        needed = 0
        for index in indices:
            for v in index.variables():
                needed = max(needed, self.home[v].depth)
            for value in index.values():
                needed = max(needed, self.defined[value.number].depth)
        scope = self.current
        while scope.depth > needed and not scope.barrier and scope.parent is not None:
            scope = scope.parent
        return scope

    def recall(self, key: object) -> Value | None:
        """A value that a scope around the current one already has."""
        for scope in self.current.chain():
            if key in scope.memo:
                return scope.memo[key]
        return None

    def add(self, statement: Statement, results: Sequence[Value] = ()) -> None:
        self.current.statements.append(statement)
        for value in results:
            self.defined[value.number] = self.current

    # ---- statements -----------------------------------------------------------------------------------------------

    def literal(self, dtype: DType, word: Word) -> Value:
        key = ("literal", dtype, word)
        found = self.recall(key)
        if found is None:
            with self.within(self.root):
                found = self.value(dtype)
                self.add(Literal(found, word), (found,))
                self.root.memo[key] = found
        return found

    def position(self, index: Index) -> Value:
        """The index as an int64."""
        if index.is_constant:
            return self.literal(INT64, index.constant & (2**64 - 1))
        with self.within(self.target((index,))):
            found = self.recall(("position", index))
            if found is None:
                found = self.value(INT64)
                self.add(Position(found, index), (found,))
                self.current.memo["position", index] = found
        return found

    def apply(
        self, op: str, operands: Sequence[Value], dtype: DType | None = None, attrs: Mapping[str, Any] | None = None
    ) -> Value:
        """An elementwise operation; the result's dtype is the first operand's where none is given."""
        result = self.value(dtype or operands[0].dtype)
        self.add(Apply(result, op, tuple(operands), attrs or {}), (result,))
        return result

    def apply_once(self, op: str, operands: Sequence[Value], dtype: DType, attrs: Mapping[str, Any]) -> Value:
        """The operation in the outermost block that has its operands, where it may be known already: what is applied
        to a broadcast value is applied before it is broadcast."""
        needed = max((self.defined[operand.number].depth for operand in operands), default=0)
        scope = self.current
        while scope.depth > needed and not scope.barrier and scope.parent is not None:
            scope = scope.parent
        with self.within(scope):
            key = (op, tuple(operands), dtype, tuple(sorted(attrs.items())))
            found = self.recall(key)
            if found is None:
                found = self.apply(op, operands, dtype, attrs)
                scope.memo[key] = found
        return found

    def convert(self, value: Value, dtype: DType) -> Value:
        """The value in another dtype; itself where it has that dtype."""
        return value if value.dtype == dtype else self.apply_once("convert", (value,), dtype, {})

    def load(self, buffer: Buffer, offset: Index) -> Value:
        """An element of a buffer; guarded by the conditions of the branches around it where they keep it inside."""
        # what the kernel itself writes is read where it is asked for, input buffers as early as possible
        with self.within(self.target((offset,)) if buffer.role == "input" else self.current):
            key = ("load", buffer, offset)
            found = self.recall(key) if buffer.role == "input" else None
            if found is None:
                guard: tuple[Bound, ...] = ()
                otherwise = None
                if offset.least < 0 or offset.greatest >= buffer.size:
                    guard, otherwise = self.active, self.literal(buffer.dtype, blank_word(buffer.dtype))
                found = self.value(buffer.dtype)
                self.add(Load(found, buffer, offset, guard, otherwise), (found,))
                if buffer.role == "input":
                    self.current.memo[key] = found
        return found

    def store(self, buffer: Buffer, offset: Index, value: Value) -> None:
        self.add(Store(buffer, offset, value))

    def loop(
        self,
        extent: int,
        start: Sequence[Value],
        step: Callable[[Index, tuple[Value, ...]], Sequence[Value]],
        barrier: bool = False,
        keep: bool = False,
        span: Span | None = None,
    ) -> tuple[Value, ...]:
        """``step(index, carried)`` once for each index in order, or for those of the span; what it carries at the end.

        A loop of one step is no loop, unless it is to be kept."""
        span, extent = _narrowed(span, extent)
        if extent == 0:
            return tuple(start)
        if extent == 1 and not barrier and not keep and span is None:
            return tuple(step(ZERO, tuple(start)))
        counter = self.variable(extent)
        parameters = tuple(self.value(value.dtype) for value in start)
        # what a step carries is known only inside; a step that stores may not be taken apart either
        with self.within(self.inner((counter,), barrier)) as scope:
            for parameter in parameters:
                self.defined[parameter.number] = scope
            results = tuple(step(variable(counter), parameters))
        scope.closed = True
        after = tuple(self.value(value.dtype) for value in start)
        self.add(Loop(after, counter, tuple(start), parameters, scope.block(results), span), after)
        return after

    def each(self, extents: Sequence[int], step: Callable[[Place], None], span: Span | None = None) -> None:
        """``step(indices)`` for all indices, or those of the span, in any order."""
        span, first = _narrowed(span, extents[0] if extents else 1)
        if 0 in (first, *extents):
            return
        variables = tuple(self.variable(extent) for extent in extents)
        counted = tuple(v for v in variables if v.extent != 1 or span is not None)
        if not counted:
            step(tuple(ZERO for _ in extents))
            return
        with self.within(self.inner(counted)) as scope:
            step(tuple(map(variable, variables)))
        scope.closed = True
        self.add(Each(counted, scope.block(), span))

    def choose(
        self, bounds: Sequence[Bound], then: Callable[[], Value], otherwise: Callable[[], Value], dtype: DType
    ) -> Value:
        """``then()`` where all bounds hold and ``otherwise()`` elsewhere; only what is taken is evaluated.

        A bound that always holds is dropped. Where ``then`` is one load, it is a load with a guard."""
        open_bounds = []
        for bound in bounds:
            if never(bound):
                return otherwise()
            if bound.index.least < bound.low or bound.index.greatest >= bound.high:
                open_bounds.append(bound)
        if not open_bounds:
            return then()
        guard = tuple(open_bounds)
        before, self.active = self.active, (*self.active, *guard)
        with self.within(self.inner(barrier=True)) as taken:
            result = then()
        self.active = (*before, *complement(guard))
        with self.within(self.inner(barrier=True)) as other:
            instead = otherwise()
        self.active = before
        simple = len(other.statements) == 0 or (len(other.statements) == 1 and isinstance(other.statements[0], Load))
        if simple and len(taken.statements) == 1 and isinstance(load := taken.statements[0], Load):
            plain = not load.guard or load.guard == (*before, *guard)
            if load.result == result and plain:
                for statement in other.statements:
                    self.add(statement, (instead,))
                guarded = Load(result, load.buffer, load.offset, (*before, *guard), instead)
                self.add(guarded, (result,))
                return result
        condition = self.holds(guard)
        joined = self.value(dtype)
        self.add(Branch((joined,), condition, taken.block((result,)), other.block((instead,))), (joined,))
        return joined

    def either(
        self, condition: Value, then: Callable[[], Value], otherwise: Callable[[], Value], dtype: DType
    ) -> Value:
        """``then()`` where the condition holds and ``otherwise()`` elsewhere; the other one is not evaluated."""
        with self.within(self.inner(barrier=True)) as taken:
            result = then()
        with self.within(self.inner(barrier=True)) as other:
            instead = otherwise()
        if result == instead:
            return result
        joined = self.value(dtype)
        self.add(Branch((joined,), condition, taken.block((result,)), other.block((instead,))), (joined,))
        return joined

    def only(self, condition: Value, step: Callable[[], None]) -> None:
        """``step()``, which stores, where the condition holds."""
        with self.within(self.inner(barrier=True)) as taken:
            step()
        self.add(Branch((), condition, taken.block(), Block(())))

    def holds(self, bounds: Sequence[Bound]) -> Value:
        """Whether all bounds hold, as a bool."""
        parts = []
        for bound in bounds:
            if never(bound):
                return self.literal(BOOL, 0)
            position = self.position(bound.index)
            if bound.index.least < bound.low:
                low = self.literal(INT64, bound.low & (2**64 - 1))
                parts.append(self.apply("compare", (position, low), BOOL, {"comparison_direction": "GE"}))
            if bound.index.greatest >= bound.high:
                high = self.literal(INT64, bound.high & (2**64 - 1))
                parts.append(self.apply("compare", (position, high), BOOL, {"comparison_direction": "LT"}))
        if not parts:
            return self.literal(BOOL, 1)
        truth = parts[0]
        for part in parts[1:]:
            truth = self.apply("and", (truth, part), BOOL)
        return truth

    # ---- elements -------------------------------------------------------------------------------------------------

    def element(self, frame: Frame, ref: Ref, place: Place) -> Value:
        """The element of a value at an index."""
        with self.within(self.target(place)) as scope:
            key = (id(frame), ref, place)
            found = self.recall(key)
            if found is None:
                found = self._row(ref, place) if frame.outermost else None
            if found is None:
                found = self._computed(frame, ref, place)
                if frame.outermost and ref in self.rows:
                    self.rows[ref].keep(self, frame.type(ref), place, found)
                if frame.outermost and ref in self.byproducts:
                    self._fill_on_the_way(frame.type(ref), ref, place, found)
            scope.memo[key] = found
        return found

    def _fill_on_the_way(self, type: TensorType, ref: Ref, place: Place, value: Value) -> None:
        """Store a value that is an array too, if this computes each of its elements once."""
        if ref in self.outputs or any(scope.barrier for scope in self.current.chain()):
            return
        fixed, inner = split_place(place, type.shape, frozenset())
        if inner is None or any(type.shape[axis] != 1 for axis in fixed):
            return
        if {v for index in place for v in index.variables()} == self.current.all_variables():
            self.store(self.output(ref, type), flatten(place, type.shape), value)

    def operand(self, frame: Frame, ref: Ref, place: Place) -> Value:
        """An element of what a loop over many elements reads; ``operands`` has those that are being computed."""
        if not frame.outermost:
            return self.element(frame, ref, place)
        self.operands.append(ref)
        try:
            return self.element(frame, ref, place)
        finally:
            self.operands.pop()

    def _computed(self, frame: Frame, ref: Ref, place: Place) -> Value:
        given = frame.given(ref)
        if given is not None:
            return given(self, place)
        node = frame.body.nodes[ref.node]
        if node.op == "constant":
            return self.constant(frame, ref, place)
        if node.op not in self.computes:
            raise Split(ref) if frame.outermost else Refused(f"its region holds {node.op}")
        if frame.outermost:
            emission = Emission(ref, self.current, place)
            self.emissions.append(emission)
            self.nodes.add(node.id)
            value = self.computes[node.op](self, frame, node, ref.result, place)
            emission.scope = self.defined[value.number]
            return value
        return self.computes[node.op](self, frame, node, ref.result, place)

    def constant(self, frame: Frame, ref: Ref, place: Place) -> Value:
        """An element of a constant: a literal where all elements are equal (others are arrays given to the kernel)."""
        tensor = frame.body.nodes[ref.node].attrs["value"]
        return self.literal(tensor.dtype, word_at(tensor, 0))

    def _row(self, ref: Ref, place: Place) -> Value | None:
        row = self.rows.get(ref)
        return row.read(self, place) if row is not None else None

    def anchor(self, frame: Frame, node: Node, place: Place, kind: str) -> None:
        """Called before an element is computed in a loop of its own; may raise ``Split``."""
        if frame.outermost and self.on_anchor is not None:
            self.on_anchor(self, node, place, kind)

    def start(self, frame: Frame, ref: Ref, place: Place, greatest: int) -> Index:
        """An element of an integer value as an index, clamped to 0 … ``greatest``."""
        if greatest <= 0:
            return ZERO
        with self.within(self.target(place)):
            key = ("start", ref, id(frame), place, greatest)
            found = self.recall(key)
            if found is None:
                whole = self.index_value(self.element(frame, ref, place))
                found = self.apply("clamp", (self.literal(INT64, 0), whole, self.literal(INT64, greatest)), INT64)
                self.current.memo[key] = found
        return from_value(found, 0, greatest)

    def raw_start(self, frame: Frame, ref: Ref, place: Place) -> Index:
        """An element of an integer value as an index wherever it lies."""
        with self.within(self.target(place)):
            value = self.element(frame, ref, place)
            key = ("raw start", value)
            found = self.recall(key)
            if found is None:
                found = self.index_value(value)
                self.current.memo[key] = found
        dtype = value.dtype
        least = -(1 << (dtype.bits - 1)) if dtype.is_signed else 0
        greatest = (1 << min(dtype.bits - dtype.is_signed, 63)) - 1
        return from_value(found, least, greatest)

    def index_value(self, value: Value) -> Value:
        """An integer value as an int64; one beyond it as the greatest int64."""
        if value.dtype.kind == "uint" and value.dtype.bits == 64:
            limit = self.literal(value.dtype, 2**63 - 1)
            value = self.apply("minimum", (value, limit))
        return self.convert(value, INT64)


def _narrowed(span: Span | None, extent: int) -> tuple[Span | None, int]:
    """A span of ``extent`` steps and these; no span where it always has all of them, and no steps where never one."""
    if span is None or (span.first == ZERO and span.end == constant(extent)):
        return None, extent
    return (None, 0) if span.first.least >= span.end.greatest else (span, extent)


def _name(ref: Ref) -> str:
    return f"n{ref.node}" if ref.result == 0 else f"n{ref.node}_{ref.result}"
