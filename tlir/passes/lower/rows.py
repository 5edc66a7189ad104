"""Rows of values that several loops of a kernel need, kept in local buffers."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING

from tlir.ir.graph import Ref
from tlir.ir.types import TensorType
from tlir.kernel.index import Index, Variable, flatten
from tlir.kernel.ir import Buffer, Value
from tlir.passes.lower.places import Place, split_place

if TYPE_CHECKING:
    from tlir.passes.lower.emitter import Emitter, Frame, Scope


@dataclass
class Row:
    """A value whose elements are computed in one inner loop and read again in another: kept in a local buffer.

    ``outer`` are the variables of the space; the others in the index of the first loop count the buffer's elements.
    """

    outer: frozenset[Variable]
    buffer: Buffer | None = None
    fixed: dict[int, Index] = field(default_factory=dict)
    shape: tuple[int, ...] = ()
    filling: tuple[Scope, ...] = ()

    def fill(self, emitter: Emitter, frame: Frame, ref: Ref, fixed: dict[int, Index]) -> None:
        """Compute the whole row now, in a loop of its own."""
        type = frame.type(ref)
        inner = [axis for axis in range(type.rank) if axis not in fixed]

        def element(indices: Place) -> None:
            by_axis = fixed | dict(zip(inner, indices, strict=True))
            emitter.element(frame, ref, tuple(by_axis[axis] for axis in range(type.rank)))

        emitter.each([type.shape[axis] for axis in inner], element)

    def keep(self, emitter: Emitter, type: TensorType, place: Place, value: Value) -> None:
        """Store what was computed, if this is a loop over whole axes and the first one."""
        if self.buffer is not None or any(scope.barrier for scope in emitter.current.chain()):
            return
        fixed, inner = split_place(place, type.shape, self.outer)
        if inner is None or not inner:
            return
        self.fixed, self.shape = fixed, tuple(type.shape[axis] for axis in inner)
        self.filling = tuple(emitter.home[v] for axis in inner for v in place[axis].variables())
        self.buffer = emitter.local(type.dtype, prod(self.shape))
        emitter.store(self.buffer, flatten([place[axis] for axis in inner], self.shape), value)

    def read(self, emitter: Emitter, place: Place) -> Value | None:
        """The element from the buffer, where it is full."""
        if self.buffer is None or not all(scope.closed for scope in self.filling):
            return None
        if any(place[axis] != index for axis, index in self.fixed.items()):
            return None
        inner = [index for axis, index in enumerate(place) if axis not in self.fixed]
        return emitter.load(self.buffer, flatten(inner, self.shape))
