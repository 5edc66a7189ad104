"""Operations that take several kernels, one after the other, and arrays between them.

The arrays are values of the program as all others are. They are numbered as further results of the node, behind its
own.
"""

from __future__ import annotations

from collections.abc import Callable

from tlir.ir.graph import Body, Node, Ref
from tlir.ir.tensor import Tensor
from tlir.ir.types import DType, TensorType
from tlir.kernel.tables import table
from tlir.passes.lower.emitter import Emitter, Frame

Write = Callable[[Emitter, Frame], None]
"""Writes one kernel."""


class Series:
    """The kernels of one node in their order: ``writers``. ``types`` has the arrays between them, and ``tables`` those
    that are given by a function, with its name."""

    def __init__(self, body: Body, node: Node) -> None:
        self.body, self.node = body, node
        self.types: dict[Ref, TensorType] = {}
        self.tables: dict[Ref, str] = {}
        self.writers: list[Write] = []

    @property
    def results(self) -> tuple[Ref, ...]:
        """The node's own results."""
        return tuple(Ref(self.node.id, k) for k in range(len(self.node.types)))

    def between(self, type: TensorType) -> Ref:
        """A new array, which one kernel fills and later ones read."""
        ref = Ref(self.node.id, len(self.node.types) + len(self.types))
        self.types[ref] = type
        return ref

    def table(self, function: str, dtype: DType, size: int) -> Ref:
        """The array of a function of ``tlir.kernel.tables``."""
        type = TensorType((size,), dtype)
        for ref, name in self.tables.items():
            if name == function and self.types[ref] == type:
                return ref
        ref = self.between(type)
        self.tables[ref] = function
        return ref

    def constants(self) -> dict[Ref, Tensor]:
        """The words of the tables."""
        return {ref: table(function, self.types[ref]) for ref, function in self.tables.items()}

    def type(self, ref: Ref) -> TensorType:
        return self.types[ref] if ref in self.types else self.body.type_of(ref)

    def kernel(self, write: Write) -> None:
        """One more kernel. It may be written more than once, until all that it reads is an array."""
        self.writers.append(write)


Plan = Callable[[Series], None]
"""Says which kernels a node takes."""
