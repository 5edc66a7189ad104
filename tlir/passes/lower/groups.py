"""Which arrays one kernel may fill together without waiting for itself."""

from __future__ import annotations

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

    def add(self, refs: Collection[Ref]) -> None:
        """One kernel fills all of these."""
        group = frozenset(refs)
        self.members |= dict.fromkeys(group, group)

    def together(self, refs: Collection[Ref], reads: Iterable[Ref]) -> bool:
        """Whether one kernel that reads ``reads`` can fill all of ``refs``: nothing that it reads needs one of them."""
        return not self._needs(reads, set(refs))

    def _needs(self, reads: Iterable[Ref], targets: set[Ref]) -> bool:
        """Whether one of ``reads`` is computed from one of ``targets``, or by a kernel that is."""
        first = min(ref.node for ref in targets)
        waiting, seen = list(reads), set(reads)
        while waiting:
            ref = waiting.pop()
            if ref in targets or len(seen) > REACH:
                return True
            for before in (*self.body.nodes[ref.node].inputs, *self.members.get(ref, ())):
                # what comes earlier in the graph can only depend on them through a kernel that fills several arrays
                if before not in seen and (before.node >= first or before in self.members):
                    seen.add(before)
                    waiting.append(before)
        return False
