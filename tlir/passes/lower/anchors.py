"""Which loops over many elements go into one kernel, and when a kernel that handles whole rows is a good one."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from tlir.ir.graph import Node, Ref
from tlir.kernel.index import Variable
from tlir.passes.lower.emitter import Emitter, Split
from tlir.passes.lower.places import Place

ROW_ELEMENTS = 1 << 16
"""The longest row that is kept in a local buffer."""

ROWS = 64
"""With fewer rows than this, a kernel that handles whole rows would leave too little to do side by side …"""

SMALL = 1 << 14
"""… unless there are only so many elements."""

Anchored = list[tuple[Ref, Place]]
"""Values that are computed in loops of their own, and at which index."""


def enough_rows(rows: int, elements: int) -> bool:
    """Whether a kernel with so many iterations is a good one for so many elements."""
    return rows >= elements or elements <= SMALL or (rows >= ROWS and elements // rows <= ROW_ELEMENTS)


class Anchors:
    """The loops over more than one element in a kernel, and whether they go together.

    Reductions go together if all depend on the same part of the space; a contraction stands alone and depends on all of
    it."""

    def __init__(self, below_views: Callable[[Ref], Ref], between: Callable[[Ref, Ref], Ref]) -> None:
        self.below_views, self.between = below_views, between
        self.space: frozenset[Variable] = frozenset()
        self.outer: frozenset[Variable] | None = None
        self.kinds: set[str] = set()
        self.found: Anchored = []

    def __call__(self, emitter: Emitter, node: Node, place: Place, kind: str) -> None:
        ref = Ref(node.id)
        depends = frozenset(v for index in place for v in index.variables())
        if not depends <= self.space or any(index.values() for index in place):
            # inside another loop: what that loop reads is computed before, with everything below it
            raise Split(self.below_views(emitter.operands[-1]) if emitter.operands else ref, ref)
        if any(scope.barrier for scope in emitter.current.chain()):
            raise Split(ref)
        if prod(v.extent for v in depends) > max(node.type.size, 1):
            raise Split(ref)
        if self.outer is None:
            if depends != self.space and (kind == "contraction" or not self._worth_rows(depends)):
                raise Split(ref)
            self.outer = depends
        elif "contraction" in self.kinds and kind != "contraction":
            # what the reduction reads is what the contraction and its epilogue give
            raise Split(self.between(self.below_views(node.inputs[0]), self.found[0][0]), ref)
        elif depends != self.outer or "contraction" in self.kinds or kind == "contraction":
            raise Split(ref)
        self.kinds.add(kind)
        self.found.append((ref, place))

    def _worth_rows(self, outer: frozenset[Variable]) -> bool:
        return enough_rows(prod(v.extent for v in outer), prod(v.extent for v in self.space))
