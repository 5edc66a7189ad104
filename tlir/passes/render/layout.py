"""Where the nodes of a graph are drawn: in layers from top to bottom, by the usual steps of a layered drawing.

1. *Ranks*: an operation lies one layer below the lowest of its operands (longest path); what depends on constants
   only, or on inputs that nothing else uses, is pulled down to one layer above its first user.
2. *Routes*: a value that is used further down passes through every layer in between, once for all its users.
3. *Order* within a layer: repeated sweeps down and up sort each layer by the mean position of its neighbours
   (barycentre).
4. *Coordinates*: each layer is moved as near to the mean of its neighbours as order and spacing allow; the
   least-squares solution under these constraints is found by pooling adjacent violators.

Everything is linear or nearly so in the number of nodes and layers crossed, which ``layout`` bounds.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

GAP = 18.0
LAYER_GAP = 46.0
SWEEPS = 8
MAX_ROUTE_POINTS = 20_000
"""Above this many crossed layers, edges go straight to their users instead of around the nodes in between."""

Point = tuple[float, float]


@dataclass
class _Item:
    """A node, or the place where a value passes through a layer. ``x`` is the centre."""

    rank: int
    width: float
    node: int | None
    x: float = 0.0
    above: list[_Item] = field(default_factory=list)
    below: list[_Item] = field(default_factory=list)

    def neighbours(self, down: bool) -> list[_Item]:
        return self.above if down else self.below


@dataclass(frozen=True)
class Edge:
    """A line from a value to one of its users, or a shared part of such a line; ``arrow`` where it ends at the user."""

    source: int
    target: int | None
    points: tuple[Point, ...]

    @property
    def arrow(self) -> bool:
        return self.target is not None


@dataclass(frozen=True)
class Layout:
    """``positions`` maps a node to the top left corner of its box; ``edges`` to draw; the size of the drawing."""

    positions: Mapping[int, Point]
    edges: Sequence[Edge]
    width: float
    height: float


def layout(
    operands: Sequence[Sequence[int]], sizes: Sequence[tuple[float, float]], inputs: Container[int] = ()
) -> Layout:
    """The drawing of nodes 0 … n-1, node i having the operands ``operands[i]``, all less than i, and a box of
    ``sizes[i]`` (width, height). What depends on ``inputs`` is drawn high, what only prepares an operand beside its
    user."""
    if not sizes:
        return Layout({}, (), 0.0, 0.0)
    users: list[list[int]] = [[] for _ in operands]
    for node, values in enumerate(operands):
        for value in sorted(set(values)):
            users[value].append(node)
    ranks = _ranks(operands, users, inputs)
    items, layers, links = _items(users, ranks, sizes)
    _order(layers)
    _place(layers)
    return _drawing(items, layers, links, sizes)


def _ranks(operands: Sequence[Sequence[int]], users: Sequence[Sequence[int]], inputs: Container[int]) -> list[int]:
    ranks = [0] * len(operands)
    varies = [node in inputs for node in range(len(operands))]
    for node, values in enumerate(operands):
        ranks[node] = max((ranks[value] + 1 for value in values), default=0)
        varies[node] = varies[node] or any(varies[value] for value in values)
    private: list[bool] = []
    for node, values in enumerate(operands):
        private.append(not varies[node] or all(private[value] and len(users[value]) == 1 for value in values))
    for node in reversed(range(len(operands))):
        if users[node] and private[node]:
            ranks[node] = min(ranks[user] for user in users[node]) - 1
    return ranks


def _items(
    users: Sequence[Sequence[int]], ranks: Sequence[int], sizes: Sequence[tuple[float, float]]
) -> tuple[list[_Item], list[list[_Item]], list[tuple[int, list[_Item], int | None]]]:
    """The items of all nodes, the layers, and what is to be drawn: (source, items from top to bottom, target)."""
    items = [_Item(rank, width, node) for node, (rank, (width, _)) in enumerate(zip(ranks, sizes, strict=True))]
    layers: list[list[_Item]] = [[] for _ in range(max(ranks) + 1)]
    for item in items:
        layers[item.rank].append(item)
    crossed = sum(max((ranks[user] for user in below), default=0) - ranks[node] for node, below in enumerate(users))
    routed = crossed <= MAX_ROUTE_POINTS
    links: list[tuple[int, list[_Item], int | None]] = []
    for node, below in enumerate(users):
        trunk = [items[node]]
        last = max((ranks[user] for user in below), default=0)
        if routed:
            for rank in range(ranks[node] + 1, last):
                point = _Item(rank, 2.0, None)
                layers[rank].append(point)
                _connect(trunk[-1], point)
                trunk.append(point)
            if len(trunk) > 1:
                links.append((node, list(trunk), None))
        for user in below:
            start = trunk[ranks[user] - 1 - ranks[node]] if routed else items[node]
            _connect(start, items[user])
            links.append((node, [start, items[user]], user))
    return items, layers, links


def _connect(upper: _Item, lower: _Item) -> None:
    upper.below.append(lower)
    lower.above.append(upper)


def _order(layers: list[list[_Item]]) -> None:
    for layer in layers:
        for position, item in enumerate(layer):
            item.x = float(position)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            keys = {id(item): _mean(item, down) for item in layer}
            layer.sort(key=lambda item: keys[id(item)])
            for position, item in enumerate(layer):
                # positions are fractions of the layer, so that wide and narrow layers compare
                item.x = (position + 0.5) / len(layer)


def _mean(item: _Item, down: bool) -> float:
    neighbours = item.neighbours(down)
    return sum(other.x for other in neighbours) / len(neighbours) if neighbours else item.x


def _place(layers: list[list[_Item]]) -> None:
    for layer in layers:
        x = 0.0
        for item in layer:
            item.x = x + item.width / 2
            x += item.width + GAP
        shift = (x - GAP) / 2
        for item in layer:
            item.x -= shift
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            _relax(layer, down)


def _relax(layer: list[_Item], down: bool) -> None:
    """Move a layer to the least-squares nearest places to its neighbours' means that keep order and spacing."""
    offsets = [0.0]
    for left, right in pairwise(layer):
        offsets.append(offsets[-1] + (left.width + right.width) / 2 + GAP)
    blocks: list[list[float]] = []  # each: weight, weighted sum, count
    for item, offset in zip(layer, offsets, strict=True):
        # a route is pulled straight more strongly than a node
        weight = 4.0 if item.node is None else 1.0 if item.neighbours(down) else 0.25
        blocks.append([weight, weight * (_mean(item, down) - offset), 1.0])
        while len(blocks) > 1 and blocks[-2][1] * blocks[-1][0] > blocks[-1][1] * blocks[-2][0]:
            weight, total, count = blocks.pop()
            blocks[-1][0] += weight
            blocks[-1][1] += total
            blocks[-1][2] += count
    position = 0
    for weight, total, count in blocks:
        for _ in range(int(count)):
            layer[position].x = total / weight + offsets[position]
            position += 1


def _drawing(
    items: Sequence[_Item],
    layers: Sequence[Sequence[_Item]],
    links: Sequence[tuple[int, list[_Item], int | None]],
    sizes: Sequence[tuple[float, float]],
) -> Layout:
    left = min(item.x - item.width / 2 for layer in layers for item in layer)
    right = max(item.x + item.width / 2 for layer in layers for item in layer)
    tops, y = [], 0.0
    heights = []
    for layer in layers:
        height = max((sizes[item.node][1] for item in layer if item.node is not None), default=0.0)
        tops.append(y)
        heights.append(height)
        y += height + LAYER_GAP
    positions = {}
    for node, item in enumerate(items):
        width, height = sizes[node]
        positions[node] = (item.x - width / 2 - left, tops[item.rank] + (heights[item.rank] - height) / 2)

    def ends(item: _Item) -> tuple[Point, Point]:
        """Where lines enter the item from above, and where they leave it below."""
        x = item.x - left
        if item.node is None:
            return (x, tops[item.rank]), (x, tops[item.rank] + heights[item.rank])
        top = positions[item.node][1]
        return (x, top), (x, top + sizes[item.node][1])

    edges = []
    for source, path, target in links:
        points = [ends(path[0])[1]]
        for item in path[1:]:
            enter, leave = ends(item)
            points += [enter, leave]
        if target is not None:
            points.pop()
        edges.append(Edge(source, target, tuple(points)))
    return Layout(positions, tuple(edges), right - left, y - LAYER_GAP)
