"""Which node of one body is which node of another: by what they compute, never by their ids.

1. Nodes that compute the same from the same inputs (equal operation, attributes, types and, recursively, operands)
   match. An input is known by its name, or by its position where it has none. Of several that are equal, those that are
   used for the same match first.
2. Of the rest, which is what lies below a change, nodes match whose results reach the outputs through the same
   operations, which is what lies above none; then, between changes, the longest common subsequence of equal operations
   with equal attributes and types, first of those that also share their unchanged operands.
3. What is left is matched with a node that stands in its place: one that takes the same operands, or is taken by the
   same users. The same operation is preferred; an operation that was replaced by another is found last.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from tlir.ir.graph import Body, Node, Ref
from tlir.ir.ops import OPERATIONS, Accumulate
from tlir.ir.tensor import Tensor
from tlir.passes.sequences import common_subsequence

MAX_USERS = 200
"""Users of one value that are looked at as candidates."""


def effective_attributes(node: Node) -> dict[str, Any]:
    """The attributes that differ from their defaults, so that a default left out equals the same one written down."""
    operation = OPERATIONS.get(node.op)
    declared = operation.attributes if operation else {}
    values = {}
    for name, value in node.attrs.items():
        default = declared[name].default if name in declared else None
        if value != default and not (isinstance(value, Accumulate) and value == Accumulate()):
            values[name] = value
    return values


class Keys:
    """Small numbers for what values are, equal for equal values, over all bodies that it has numbered."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        # the node is kept with its number, so that no other object takes its identity
        self._attributes: dict[int, tuple[Node, int]] = {}

    def _number(self, key: Hashable) -> int:
        return self._numbers.setdefault(key, len(self._numbers))

    def attributes(self, node: Node) -> int:
        """The number of the node's attributes; tensors by type and a cryptographic hash of their words."""
        if id(node) not in self._attributes:
            parts = [(name, _frozen(value)) for name, value in sorted(effective_attributes(node).items())]
            self._attributes[id(node)] = node, self._number(("attributes", tuple(parts)))
        return self._attributes[id(node)][1]

    def body(self, body: Body) -> list[int]:
        """A number per node: equal for nodes that compute the same from the same inputs."""
        numbers: list[int] = []
        seen: Counter[str | None] = Counter()
        positions = {node_id: position for position, node_id in enumerate(body.input_ids)}
        for node in body.nodes:
            if node.op == "input":
                # the k-th input of a name, or the input at a position
                key: Hashable = ("input", node.name, seen[node.name] if node.name else positions[node.id], node.types)
                seen[node.name] += 1
            else:
                operands = tuple((numbers[ref.node], ref.result) for ref in node.inputs)
                regions = tuple(self.region(region) for region in node.regions)
                key = (node.op, self.attributes(node), node.types, operands, regions)
            numbers.append(self._number(key))
        return numbers

    def uses(self, body: Body) -> list[int]:
        """A number per node: equal for nodes whose results reach the outputs through the same operations."""
        after: list[list[tuple[int, int, int]]] = [[] for _ in body.nodes]
        for position, ref in enumerate(body.outputs):
            after[ref.node].append((-1, ref.result, position))
        numbers = [0] * len(body.nodes)
        for node in reversed(body.nodes):
            numbers[node.id] = self._number(("uses", node.op, self.attributes(node), *sorted(after[node.id])))
            for slot, ref in enumerate(node.inputs):
                after[ref.node].append((slot, ref.result, numbers[node.id]))
        return numbers

    def region(self, body: Body) -> int:
        """The number of what a region computes; the names of its inputs do not matter, nor do nodes without effect."""
        numbers: dict[int, int] = {node: self._number(("argument", k)) for k, node in enumerate(body.input_ids)}
        for node in body.nodes:
            if node.id not in numbers:
                operands = tuple((numbers[ref.node], ref.result) for ref in node.inputs)
                regions = tuple(self.region(region) for region in node.regions)
                numbers[node.id] = self._number((node.op, self.attributes(node), node.types, operands, regions))
        outputs = tuple((numbers[ref.node], ref.result) for ref in body.outputs)
        return self._number(("region", body.input_types, outputs))


def _frozen(value: Any) -> Hashable:
    if isinstance(value, Tensor):
        digest = hashlib.blake2b(value.words.tobytes() if not value.words.flags.c_contiguous else value.words.data)
        return value.type, digest.digest()
    return value if isinstance(value, Hashable) else repr(value)


class Matching:
    """Pairs of nodes of the bodies ``a`` and ``b``. ``forward`` maps ids of a to ids of b, ``backward`` the other way;
    ``unchanged`` are the ids of a whose nodes compute the same as their partners, operands included."""

    def __init__(self, a: Body, b: Body, keys: Keys | None = None) -> None:
        self.a, self.b = a, b
        self.keys = keys or Keys()
        self.numbers_a, self.numbers_b = self.keys.body(a), self.keys.body(b)
        self.uses_a, self.uses_b = self.keys.uses(a), self.keys.uses(b)
        self.forward: dict[int, int] = {}
        self.backward: dict[int, int] = {}
        self.unchanged: set[int] = set()
        self._users_a, self._users_b = _users(a), _users(b)
        self._match_equal()
        if len(self.forward) < max(len(a.nodes), len(b.nodes)):
            self._match_inputs()
            self._match_uses()
            self._match_sequences(shared_operands=True)
            self._match_sequences(shared_operands=False)
            self._match_neighbours(same_operation=True)
            self._match_neighbours(same_operation=False)
            self._match_isolated()

    def _pair(self, a: int, b: int) -> None:
        self.forward[a] = b
        self.backward[b] = a

    def same_value(self, a: Ref, b: Ref) -> bool:
        """Whether the values are partners, or compute the same."""
        if a.result != b.result:
            return False
        return self.forward.get(a.node) == b.node or self.numbers_a[a.node] == self.numbers_b[b.node]

    def _match_equal(self) -> None:
        groups: dict[int, tuple[list[Node], list[Node]]] = defaultdict(lambda: ([], []))
        for side, (body, numbers) in enumerate(((self.a, self.numbers_a), (self.b, self.numbers_b))):
            for node in body.nodes:
                groups[numbers[node.id]][side].append(node)
        uses_a, uses_b = self.uses_a, self.uses_b
        for left, right in groups.values():
            if len(left) == len(right) == 1:
                self._pair(left[0].id, right[0].id)
                continue
            # of the same name and used for the same, of the same name, used for the same, and then in order
            named_a, named_b = ([node for node in side if node.name] for side in (left, right))
            self._pair_by(named_a, named_b, lambda node, uses: (uses[node.id], node.name), uses_a, uses_b)
            self._pair_by(named_a, named_b, lambda node, uses: node.name, uses_a, uses_b)
            self._pair_by(left, right, lambda node, uses: (uses[node.id], node.name), uses_a, uses_b)
            self._pair_by(left, right, lambda node, uses: uses[node.id], uses_a, uses_b)
            self._pair_by(left, right, lambda node, uses: None, uses_a, uses_b)
        self.unchanged = set(self.forward)

    def _pair_by(
        self,
        left: Sequence[Node],
        right: Sequence[Node],
        key: Callable[[Node, Sequence[int]], Hashable],
        uses_a: Sequence[int],
        uses_b: Sequence[int],
    ) -> None:
        """Pair what has no partner yet and the same key, in order."""
        free: dict[Hashable, list[int]] = defaultdict(list)
        for node in reversed(right):
            if node.id not in self.backward:
                free[key(node, uses_b)].append(node.id)
        for node in left:
            if node.id not in self.forward and free[key(node, uses_a)]:
                self._pair(node.id, free[key(node, uses_a)].pop())

    def _match_inputs(self) -> None:
        named = {self.b.nodes[i].name: i for i in self.b.input_ids if i not in self.backward and self.b.nodes[i].name}
        for i in self.a.input_ids:
            if i not in self.forward and self.a.nodes[i].name in named:
                self._pair(i, named.pop(self.a.nodes[i].name))

    def _match_uses(self) -> None:
        left, right = self.a.nodes, self.b.nodes
        self._pair_by(left, right, lambda node, uses: (uses[node.id], node.types, node.name), self.uses_a, self.uses_b)
        self._pair_by(left, right, lambda node, uses: (uses[node.id], node.types), self.uses_a, self.uses_b)

    def _match_sequences(self, shared_operands: bool) -> None:
        left = [node for node in self.a.nodes if node.id not in self.forward]
        right = [node for node in self.b.nodes if node.id not in self.backward]

        def label(node: Node, numbers: Sequence[int], paired: Mapping[int, int], unchanged: set[int]) -> Hashable:
            operands: tuple[Hashable, ...] = ()
            if shared_operands:
                operands = tuple(
                    (numbers[ref.node], ref.result) if ref.node in unchanged else None for ref in node.inputs
                )
            return node.op, self.keys.attributes(node), node.types, operands

        unchanged_b = {self.forward[node] for node in self.unchanged}
        labels_a = [label(node, self.numbers_a, self.forward, self.unchanged) for node in left]
        labels_b = [label(node, self.numbers_b, self.backward, unchanged_b) for node in right]
        for k, m in common_subsequence(labels_a, labels_b):
            self._pair(left[k].id, right[m].id)

    def _candidates(self, node: Node) -> Counter[int]:
        """Nodes of b without a partner that stand in the place of a node of a, with how often they are met there."""
        votes: Counter[int] = Counter()
        for slot, ref in enumerate(node.inputs):
            operand = self.forward.get(ref.node)
            if operand is not None:
                for user, at in self._users_b[operand][:MAX_USERS]:
                    if user is not None and at == slot and user not in self.backward:
                        votes[user] += 1
        for candidate in self._replacements(node.id):
            if candidate is not None and candidate not in self.backward:
                votes[candidate] += 1
        return votes

    def _replacements(self, node: int) -> list[int | None]:
        """For each use of a node of a whose user has a partner: what the partner uses there."""
        found: list[int | None] = []
        for user, slot in self._users_a[node][:MAX_USERS]:
            if user is None:
                found.append(self.b.outputs[slot].node if slot < len(self.b.outputs) else None)
            elif user in self.forward:
                inputs = self.b.nodes[self.forward[user]].inputs
                found.append(inputs[slot].node if slot < len(inputs) else None)
        return found

    def _match_neighbours(self, same_operation: bool) -> None:
        waiting = [node for node in self.a.nodes if node.id not in self.forward]
        while waiting:
            before = len(waiting)
            for node in waiting:
                partner = self._partner(node, same_operation)
                if partner is not None:
                    self._pair(node.id, partner)
            waiting = [node for node in reversed(waiting) if node.id not in self.forward]
            if len(waiting) == before:
                return

    def _partner(self, node: Node, same_operation: bool) -> int | None:
        votes = self._candidates(node)
        best: tuple[tuple[bool, bool, int, int], int] | None = None
        for candidate, count in votes.items():
            other = self.b.nodes[candidate]
            if same_operation and other.op != node.op:
                continue
            if not same_operation and not self._replaces(node, other):
                continue
            same_name = node.name is not None and node.name == other.name
            rank = (same_name, other.types == node.types, count, -candidate)
            if best is None or rank > best[0]:
                best = (rank, candidate)
        return best[1] if best else None

    def _replaces(self, node: Node, other: Node) -> bool:
        """Whether every use of the node is one of the other, or, where it has none, both take the same operands."""
        uses = self._replacements(node.id)
        if uses:
            return all(use == other.id for use in uses)
        pairs = zip(node.inputs, other.inputs, strict=False)
        return bool(node.inputs) and len(node.inputs) == len(other.inputs) and all(self.same_value(*p) for p in pairs)

    def _match_isolated(self) -> None:
        """Nodes without operands and users have no place; they match in order, operation by operation."""
        free: dict[str, list[int]] = defaultdict(list)
        for node in reversed(self.b.nodes):
            if node.id not in self.backward and not node.inputs and not self._users_b[node.id]:
                free[node.op].append(node.id)
        for node in self.a.nodes:
            if node.id not in self.forward and not node.inputs and not self._users_a[node.id] and free[node.op]:
                self._pair(node.id, free[node.op].pop())


def _users(body: Body) -> list[list[tuple[int | None, int]]]:
    """For each node its uses: (user, position of the operand), and (None, position) as an output."""
    users: list[list[tuple[int | None, int]]] = [[] for _ in body.nodes]
    for node in body.nodes:
        for slot, ref in enumerate(node.inputs):
            users[ref.node].append((node.id, slot))
    for position, ref in enumerate(body.outputs):
        users[ref.node].append((None, position))
    return users
