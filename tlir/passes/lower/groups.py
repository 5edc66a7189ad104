"""Which arrays one kernel may fill together without waiting for itself."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable

from tlir.ir.graph import Body, Ref

REACH = 3000
"""So many values are looked at before two arrays are taken to depend on each other."""

TOGETHER = 8
"""The most arrays that one kernel fills."""


class Groups:
    """The arrays that are filled together, each group by one kernel."""

    def __init__(self, body: Body) -> None:
        self.body = body
        self.members: dict[Ref, frozenset[Ref]] = {}
        self._stretches: list[tuple[int, int]] = []
        """The first and the last node of groups, or of several whose nodes overlap; they do not overlap, ascending."""

    def add(self, refs: Collection[Ref]) -> None:
        """One kernel fills all of these."""
        if len(refs) < 2:
            return
        group = frozenset(refs)
        self.members |= dict.fromkeys(group, group)
        first, last = min(group).node, max(group).node
        start = bisect_left(self._stretches, first, key=lambda stretch: stretch[1])
        end = bisect_right(self._stretches, last, key=lambda stretch: stretch[0])
        overlapping = self._stretches[start:end]
        if overlapping:
            first, last = min(first, overlapping[0][0]), max(last, overlapping[-1][1])
        self._stretches[start:end] = [(first, last)]

    def together(self, refs: Collection[Ref], reads: Iterable[Ref]) -> bool:
        """Whether one kernel that reads ``reads`` can fill all of ``refs``: nothing that it reads needs one of them."""
        return not self._needs(reads, set(refs))

    def _needs(self, reads: Iterable[Ref], targets: set[Ref]) -> bool:
        """Whether one of ``reads`` is computed from one of ``targets``, or by a kernel that is."""
        least = self._least(min(ref.node for ref in targets))
        waiting, seen = list(reads), set(reads)
        while waiting:
            ref = waiting.pop()
            if ref in targets or len(seen) > REACH:
                return True
            for before in (*self.body.nodes[ref.node].inputs, *self.members.get(ref, ())):
                if before not in seen and before.node >= least:
                    seen.add(before)
                    waiting.append(before)
        return False

    def _least(self, node: int) -> int:
        """The first node that can depend on this one or a later one. What comes earlier in the graph can do so through
        a kernel that fills both what comes earlier and what comes later."""
        at = bisect_left(self._stretches, node, key=lambda stretch: stretch[1])
        return min([node, *(first for first, _ in self._stretches[at : at + 1])])
