"""What a kernel means: an interpreter that is written to be read.

Values are arrays over the iterations that run side by side (the *lanes*): one axis for each variable of the space and
of the ``Each`` around, then the axes of an element. Loops run one iteration after the other, for all lanes at once;
both blocks of a branch are run where lanes disagree, and stores are masked.

What an operation does to elements, and what an element is, comes from a ``Domain``: words and the reference's own
evaluators (``tlir.backends.interpreter``), or symbolic expressions (``tlir.passes.check.lowering``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tlir.ir.types import DType
from tlir.kernel.index import Index, Quotient, Remainder, Variable
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

Elements = NDArray[Any]
"""Elements of one dtype; their own axes, if any, stand last."""

SIDE_BY_SIDE = 1 << 16
"""About so many iterations of a kernel's space are run at once."""

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]


class Domain(Protocol):
    """What elements are and what operations do to them."""

    def tail(self, dtype: DType) -> tuple[int, ...]:
        """The axes of one element."""

    def blank(self, dtype: DType, size: int) -> Elements:
        """Memory with nothing in it."""

    def literal(self, dtype: DType, word: int | tuple[int, int]) -> Elements:
        """One element, without lanes."""

    def position(self, dtype: DType, integers: Integers) -> Elements:
        """Integers as elements of an integer dtype, modulo 2^bits."""

    def integers(self, dtype: DType, elements: Elements) -> Integers:
        """Elements of an integer dtype or bool as integers; those beyond int64 as the greatest."""

    def apply(
        self, op: str, attrs: Mapping[str, Any], result: DType, dtypes: Sequence[DType], operands: Sequence[Elements]
    ) -> Elements:
        """An operation on operands that all have the same lanes."""


class OutOfBounds(Exception):
    """A kernel reads or writes outside a buffer."""


@dataclass(frozen=True)
class Lanes:
    """The iterations that run side by side: the variables of the axes, and which of them take part."""

    variables: tuple[Variable, ...]
    mask: Mask

    @property
    def shape(self) -> tuple[int, ...]:
        return self.mask.shape


class Machine:
    """Runs one kernel on the memory of its buffers: arrays of ``size`` elements, outputs written in place."""

    def __init__(self, kernel: Kernel, memory: Mapping[Buffer, Elements], domain: Domain) -> None:
        self.kernel, self.domain = kernel, domain
        self.memory = dict(memory)
        self.values: dict[Value, Elements] = {}
        self.counters: dict[Variable, int] = {}
        self.firsts: dict[Variable, int] = {}
        """What the axis of a variable begins with, if that is not 0."""
        self.space_shape = tuple(v.extent for v in kernel.space)

    def run(self) -> None:
        """All iterations of the space, some along its first axis at a time where there are many."""
        extents = tuple(v.extent for v in self.kernel.space)
        if not extents:
            self._some(())
            return
        step = max(1, SIDE_BY_SIDE // max(prod(extents[1:]), 1))
        for first in range(0, extents[0] if prod(extents) else 0, step):
            self.firsts[self.kernel.space[0]] = first
            self._some((min(step, extents[0] - first), *extents[1:]))

    def _some(self, shape: tuple[int, ...]) -> None:
        self.space_shape = shape
        for buffer in self.kernel.buffers:
            if buffer.role == "local":
                self.memory[buffer] = self.domain.blank(buffer.dtype, buffer.size * prod(shape))
        self._block(self.kernel.body, Lanes(self.kernel.space, np.ones(shape, np.bool_)))

    def _block(self, block: Block, lanes: Lanes) -> None:
        for statement in block.statements:
            self._statement(statement, lanes)

    def _statement(self, statement: Statement, lanes: Lanes) -> None:
        match statement:
            case Literal(result, word):
                self.values[result] = self.domain.literal(result.dtype, word)
            case Position(result, index):
                self.values[result] = self.domain.position(result.dtype, self._index(index, lanes))
            case Load():
                self.values[statement.result] = self._load(statement, lanes)
            case Apply(result, op, operands, attrs):
                dtypes = [operand.dtype for operand in operands]
                elements = self._aligned([self._value(operand, lanes) for operand in operands], dtypes)
                self.values[result] = self.domain.apply(op, attrs, result.dtype, dtypes, elements)
            case Branch():
                self._branch(statement, lanes)
            case Loop():
                self._loop(statement, lanes)
            case Each(variables, body):
                counts = [v.extent for v in variables]
                if statement.span is not None:
                    steps = self._steps(variables[0], statement.span)
                    counts, self.firsts[variables[0]] = [len(steps)], steps.start
                if all(counts):
                    shape = lanes.shape + tuple(counts)
                    mask = lanes.mask.reshape(lanes.mask.shape + (1,) * len(variables))
                    inner = Lanes(lanes.variables + variables, np.broadcast_to(mask, shape))
                    self._block(body, inner)
            case Store(buffer, offset, value):
                self._store(buffer, offset, value, lanes)

    # ---- statements -------------------------------------------------------------------------------------------------

    def _load(self, load: Load, lanes: Lanes) -> Elements:
        offsets = self._index(load.offset, lanes)
        inside: Mask = np.asarray(np.True_)
        for bound in load.guard:
            inside = inside & self._holds(bound, lanes)
        # where nothing is read the offset may lie anywhere
        inside, offsets = np.broadcast_arrays(inside & lanes.mask, offsets)
        safe = np.where(inside, offsets, 0)
        if not load.buffer.size:
            loaded = self.domain.blank(load.buffer.dtype, 1)[np.zeros_like(safe)]
        else:
            loaded = self.memory[load.buffer][self._within(load.buffer, safe, lanes)]
        if load.otherwise is None:
            return loaded
        dtype = load.buffer.dtype
        loaded, otherwise = self._aligned([loaded, self._value(load.otherwise, lanes)], [dtype, dtype])
        return np.where(self._over(inside, dtype), loaded, otherwise)

    def _store(self, buffer: Buffer, offset: Index, value: Value, lanes: Lanes) -> None:
        if not lanes.mask.any():
            return
        offsets = np.where(lanes.mask, self._index(offset, lanes), 0)
        offsets = np.broadcast_to(self._within(buffer, offsets, lanes), lanes.shape)
        elements = self._value(value, lanes)
        behind = elements.shape[elements.ndim - len(self.domain.tail(buffer.dtype)) :]
        elements = np.broadcast_to(elements, (*lanes.shape, *behind))
        self.memory[buffer][offsets[lanes.mask]] = elements[lanes.mask]

    def _within(self, buffer: Buffer, offsets: Integers, lanes: Lanes) -> Integers:
        """Offsets in the array that holds a buffer: each iteration of the space has its own part of a local one.

        OutOfBounds for one that is not in the buffer."""
        if offsets.size and not 0 <= offsets.min() <= offsets.max() < buffer.size:
            worst = offsets.min() if offsets.min() < 0 else offsets.max()
            raise OutOfBounds(f"element {worst} of {buffer.name}, which has {buffer.size}")
        if buffer.role != "local":
            return offsets
        space = np.arange(prod(self.space_shape)).reshape(self.space_shape)
        own = space.reshape(space.shape + (1,) * (len(lanes.variables) - space.ndim))
        return np.asarray(own * buffer.size + offsets)

    def _branch(self, branch: Branch, lanes: Lanes) -> None:
        dtype = branch.condition.dtype
        condition = self.domain.integers(dtype, self._value(branch.condition, lanes)) != 0
        condition = np.broadcast_to(condition, lanes.shape)
        blocks = ((branch.then, lanes.mask & condition), (branch.otherwise, lanes.mask & ~condition))
        taken = [(block, mask) for block, mask in blocks if mask.any()]
        for block, mask in taken:
            self._block(block, Lanes(lanes.variables, mask))
        for k, result in enumerate(branch.results):
            ends = [self._value(block.results[k], lanes) for block, _ in taken]
            if not ends:
                self.values[result] = self.domain.blank(result.dtype, 1)[0]
            elif len(ends) == 1:
                self.values[result] = ends[0]
            else:
                then, otherwise = self._aligned(ends, [result.dtype, result.dtype])
                self.values[result] = np.where(self._over(condition, result.dtype), then, otherwise)

    def _loop(self, loop: Loop, lanes: Lanes) -> None:
        carried = [self._value(value, lanes) for value in loop.start]
        for step in self._steps(loop.variable, loop.span):
            self.counters[loop.variable] = step
            self.values.update(zip(loop.parameters, carried, strict=True))
            self._block(loop.body, lanes)
            carried = [self._value(value, lanes) for value in loop.body.results]
        self.values.update(zip(loop.results, carried, strict=True))

    def _steps(self, variable: Variable, span: Span | None) -> range:
        """The values that a loop's variable takes."""
        if span is None:
            return range(variable.extent)
        around = Lanes((), np.asarray(np.True_))
        return range(int(self._index(span.first, around)), int(self._index(span.end, around)))

    # ---- values and indices -----------------------------------------------------------------------------------------

    def _value(self, value: Value, lanes: Lanes) -> Elements:
        """The elements with an axis for every lane axis: those that were added since it was computed have size 1."""
        elements = self.values[value]
        behind = len(self.domain.tail(value.dtype))
        axes = elements.ndim - behind
        shape = elements.shape[:axes] + (1,) * (len(lanes.variables) - axes) + elements.shape[axes:]
        return elements.reshape(shape)

    def _aligned(self, arrays: Sequence[Elements], dtypes: Sequence[DType]) -> list[Elements]:
        """The arrays with equal lanes."""
        behind = [len(self.domain.tail(dtype)) for dtype in dtypes]
        shape = np.broadcast_shapes(*(a.shape[: a.ndim - k] for a, k in zip(arrays, behind, strict=True)))
        return [np.broadcast_to(a, shape + a.shape[a.ndim - k :]) for a, k in zip(arrays, behind, strict=True)]

    def _over(self, mask: Mask, dtype: DType) -> Mask:
        """A mask of lanes that broadcasts over the axes of elements."""
        return mask.reshape(mask.shape + (1,) * len(self.domain.tail(dtype)))

    def _holds(self, bound: Bound, lanes: Lanes) -> Mask:
        index = self._index(bound.index, lanes)
        return np.asarray((index >= bound.low) & (index < bound.high))

    def _index(self, index: Index, lanes: Lanes) -> Integers:
        """An index on all lanes, or an array that broadcasts over them."""
        total: Integers = np.full((1,) * len(lanes.variables), index.constant, np.int64)
        for coefficient, atom in index.terms:
            if isinstance(atom, Variable):
                part = self._variable(atom, lanes)
            elif isinstance(atom, Quotient):
                part = self._index(atom.dividend, lanes) // atom.divisor
            elif isinstance(atom, Remainder):
                part = self._index(atom.dividend, lanes) % atom.divisor
            else:
                part = self.domain.integers(atom.value.dtype, self._value(atom.value, lanes))
            total = total + coefficient * part
        return total

    def _variable(self, variable: Variable, lanes: Lanes) -> Integers:
        if variable in self.counters:
            return np.asarray(self.counters[variable], np.int64)
        axis = lanes.variables.index(variable)
        shape = [1] * len(lanes.variables)
        shape[axis] = lanes.shape[axis]
        first = self.firsts.get(variable, 0)
        return np.arange(first, first + lanes.shape[axis], dtype=np.int64).reshape(shape)


def run_kernel(kernel: Kernel, memory: Mapping[Buffer, Elements], domain: Domain) -> None:
    """Run a kernel on arrays of the sizes of its buffers; those of outputs are filled in place.

    OutOfBounds where it reads or writes outside of them."""
    Machine(kernel, memory, domain).run()
