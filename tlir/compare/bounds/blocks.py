"""Elementwise operations of large tensors, block by block: what is between two of them stays in the processor's cache.

A *run* is a sequence of nodes whose results have one shape and are computed element by element, and of reductions of
such results over axes that a block has whole. It is gone through once per block, the reference's values and their
enclosures together; only results that other nodes need are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlir.compare.bounds import arithmetic, elementary, logic, special
from tlir.compare.bounds.enclosure import Certain, Enclosure, Packed, Tags, first_of, in_format, is_uniform, uniform
from tlir.compare.bounds.intervals import FLOAT32, above, below
from tlir.ir.graph import Body, Node, Ref
from tlir.ir.remember import remembered
from tlir.ir.tensor import Tensor, Words
from tlir.ir.types import DType, TensorType

BLOCK = 1 << 16
"""Elements of a block, at most: its arrays of float64 take 512 KiB each."""

LEAST = 1 << 17
"""Elements of the smallest results that are computed in blocks."""

ELEMENTWISE = frozenset((*arithmetic.RULES, *elementary.RULES, *special.RULES, *logic.RULES, "convert"))

Index = tuple[int | slice, ...]
Apply = Callable[[Node, tuple[Enclosure, ...]], tuple[Enclosure, ...]]


@dataclass(frozen=True)
class Run:
    """Nodes in order, of one shape; ``needed`` are those whose results are used outside, by other nodes or as
    outputs."""

    nodes: tuple[Node, ...]
    shape: tuple[int, ...]
    needed: frozenset[int]
    returned: frozenset[int] = frozenset()
    """Those that are only returned: in their own format."""


@dataclass(frozen=True)
class Item:
    """A node or a run, and the values that nothing after it uses."""

    task: Node | Run
    dropped: tuple[Ref, ...]


def returned(item: Item) -> frozenset[int]:
    """The nodes whose results are given in their own format, as they are returned."""
    return item.task.returned if isinstance(item.task, Run) else frozenset()


def plain(dtype: DType) -> bool:
    """Whether an element is one word and one interval."""
    return not dtype.is_complex and dtype.limbs == 1


def joins(body: Body, node: Node) -> bool:
    """Whether a node may be part of a run."""
    if len(node.types) != 1 or not plain(node.type.dtype):
        return False
    shape, types = _cut(body, node), body.operand_types(node)
    if prod(shape) < LEAST:
        return False
    if node.op == "broadcast_in_dim":
        return True
    if node.op == "reduce":
        first = min(node.attrs["dimensions"], default=0)
        return len(types) == 1 and plain(types[0].dtype) and first > 0 and prod(shape[first:]) <= BLOCK
    same = all(type.shape == shape and plain(type.dtype) for type in types)
    return node.op in ELEMENTWISE and same


def _cut(body: Body, node: Node) -> tuple[int, ...]:
    """The shape that is cut into blocks."""
    return body.operand_types(node)[0].shape if node.op == "reduce" else node.types[0].shape


@remembered()
def schedule(body: Body) -> tuple[Item, ...]:
    """The nodes of a body in an order in which those that can be computed in blocks are together."""
    tasks: list[Node | list[Node]] = []
    open: list[Node] = []

    def close() -> None:
        if open:
            tasks.append(list(open))
            open.clear()

    for node in body.nodes:
        inside = {each.id: each.op for each in open}
        before = [inside[ref.node] for ref in node.inputs if ref.node in inside]
        waits = bool(before)
        if joins(body, node):
            # what is spread, or what has been reduced, has to be whole
            whole = waits and (node.op == "broadcast_in_dim" or "reduce" in before)
            if whole or (open and _cut(body, open[0]) != _cut(body, node)):
                close()
            open.append(node)
            continue
        if waits:
            close()
        tasks.append(node)
    close()
    return _with_uses(body, tasks)


def alone(body: Body, node: Node) -> Run:
    """A run of one node that may be part of one."""
    return Run((node,), _cut(body, node), frozenset({node.id}))


def _with_uses(body: Body, tasks: Sequence[Node | list[Node]]) -> tuple[Item, ...]:
    kept, last, used_at = set(body.outputs), dict[Ref, int](), dict[Ref, set[int]]()
    for place, task in enumerate(tasks):
        for node in task if isinstance(task, list) else [task]:
            for k in range(len(node.types)):
                last[Ref(node.id, k)] = place
            for ref in node.inputs:
                last[ref] = place
                used_at.setdefault(ref, set()).add(place)
    items = []
    for place, task in enumerate(tasks):
        dropped = tuple(ref for ref, end in last.items() if end == place and ref not in kept)
        if not isinstance(task, list):
            items.append(Item(task, dropped))
            continue
        refs = [Ref(node.id) for node in task]
        needed = frozenset(ref.node for ref in refs if ref in kept or used_at.get(ref, set()) - {place})
        returned = frozenset(ref.node for ref in refs if ref in kept and not used_at.get(ref, set()) - {place})
        items.append(
            Item(Run(tuple(task), _cut(body, task[0]), needed, returned), tuple(r for r in dropped if r not in refs))
        )
    return tuple(items)


def blocks(shape: Sequence[int]) -> Iterator[tuple[Index, tuple[int, ...]]]:
    """Indices that cut a tensor into blocks, each with the shape of its block."""
    axis = next(k for k in range(len(shape)) if prod(shape[k + 1 :]) <= BLOCK)
    inner = tuple(shape[axis + 1 :])
    step = max(1, BLOCK // max(1, prod(inner)))
    for outer in np.ndindex(*shape[:axis]):
        for start in range(0, shape[axis], step):
            stop = min(start + step, shape[axis])
            yield (*outer, slice(start, stop)), (stop - start, *inner)


def block_of(whole: Enclosure, index: Index, shape: tuple[int, ...]) -> Enclosure:
    """A block of an enclosure."""
    tensor = Tensor(TensorType(shape, whole.dtype), np.ascontiguousarray(whole.tensor.words[index]))
    if isinstance(whole, Certain):
        return Certain(tensor)
    if isinstance(whole, Packed):
        low = whole.low[index]
        part = Packed(tensor, low, low if whole.high is whole.low else whole.high[index], whole.tag[index])
        return in_format(part) if whole.in_format else part
    lo = whole.lo[index]
    return Enclosure(tensor, lo, lo if whole.hi is whole.lo else whole.hi[index], whole.tag[index])


def element_of(whole: Enclosure, index: tuple[int, ...]) -> Enclosure:
    """The enclosure of one element."""
    tensor = Tensor(TensorType((), whole.dtype), np.asarray(whole.tensor.words[index], order="C"))
    if isinstance(whole, Certain):
        return Certain(tensor)
    ends = (whole.low, whole.high) if isinstance(whole, Packed) else whole.interval
    lo, hi = (np.asarray(end[index], np.float64) for end in ends)
    return Enclosure(tensor, lo, hi, np.asarray(whole.tag[index]))


class Gathered:
    """A whole enclosure, put together from its blocks. What is the same everywhere takes no memory, and ends that are
    numbers of float32 take that of float32."""

    def __init__(self, type: TensorType, in_format: bool) -> None:
        self.type, self.in_format = type, in_format
        self.words: Words = np.empty(type.shape, type.dtype.word_dtype)
        self.ends: list[NDArray[Any]] = []
        self.tag: Tags | None = None
        self.uniform: int | None = None
        self.before: list[Index] = []
        """The blocks so far."""

    def put(self, index: Index, block: Enclosure) -> None:
        self.words[index] = block.tensor.words
        if self.ends or not isinstance(block, Certain) or not is_uniform(block.tag):
            if not self.ends:
                self._begin()
            ends: Sequence[NDArray[Any]] = block.single or block.interval
            for k, end in enumerate(ends):
                self._put_end(k, index, end)
            self._put_tag(index, block.tag)
        self.before.append(index)

    def _begin(self) -> None:
        """Give the ends memory, and fill in the blocks so far, all of which are certain."""
        narrow = self.type.dtype.format is None or self.type.dtype.float_format.precision <= 24
        self.ends = [np.empty(self.type.shape, np.float32 if narrow else np.float64) for _ in range(2)]
        for index in self.before:
            words = np.ascontiguousarray(self.words[index])
            for k, end in enumerate(Certain(Tensor(TensorType(words.shape, self.type.dtype), words)).interval):
                self._put_end(k, index, end)
            self.uniform = 0

    def _put_end(self, k: int, index: Index, end: NDArray[Any]) -> None:
        target = self.ends[k]
        if target.dtype == np.float32 and end.dtype != np.float32:
            narrow = end.astype(np.float32)
            if not (narrow == end).all():
                self.ends = [each.astype(np.float64) for each in self.ends]
                target = self.ends[k]
        target[index] = end

    def _put_tag(self, index: Index, tag: Tags) -> None:
        if self.tag is None:
            if is_uniform(tag) and (self.uniform is None or first_of(tag) == self.uniform):
                self.uniform = int(first_of(tag))
                return
            self.tag = np.full(self.type.shape, self.uniform or 0, np.uint32)
        self.tag[index] = tag

    def enclosure(self) -> Enclosure:
        tensor = Tensor(self.type, self.words)
        if not self.ends:
            return Certain(tensor)
        tag = uniform(self.uniform or 0, self.type.shape) if self.tag is None else self.tag
        made = Packed if self.ends[0].dtype == np.float32 else Enclosure
        whole = made(tensor, self.ends[0], self.ends[1], tag)
        return in_format(whole) if self.in_format else whole


def follow(run: Run, values: Mapping[Ref, Enclosure], apply: Apply, every: bool) -> dict[Ref, Enclosure]:
    """The enclosures of the results that are needed, or of ``every`` one. ``apply`` gives those of one node, with the
    types of its block."""
    spread = {node.id: _broadcast(node, values[node.inputs[0]]) for node in run.nodes if _broadcasts(node)}
    stored = frozenset[int]() if every else run.returned
    needed = [node for node in run.nodes if every or node.id in run.needed]
    kept = {node.id: Gathered(node.type, node.id in stored) for node in needed}
    typed: dict[tuple[int, tuple[int, ...]], Node] = {}
    own = {node.id for node in run.nodes}
    outer = {ref for node in run.nodes if node.id not in spread for ref in node.inputs if ref.node not in own}
    last = {ref: node.id for node in run.nodes for ref in (*node.inputs, Ref(node.id))}
    for index, shape in blocks(run.shape):
        inside: dict[Ref, Enclosure] = {}
        for node in run.nodes:
            if node.id in spread:
                made = block_of(spread[node.id], index, shape)
            else:
                for ref in node.inputs:
                    if ref in outer and ref not in inside:
                        inside[ref] = block_of(values[ref], index, shape)
                block = typed.get((node.id, shape))
                if block is None:
                    block = typed[node.id, shape] = _of_block(node, run.shape, shape)
                (made,) = apply(block, tuple(inside[ref] for ref in node.inputs))
            inside[Ref(node.id)] = made
            if node.id in kept:
                kept[node.id].put(index, made.stored() if node.id in stored else made)
            for ref in (*node.inputs, Ref(node.id)):
                if last[ref] == node.id:
                    inside.pop(ref, None)
    return {Ref(node_id): gathered.enclosure() for node_id, gathered in kept.items()}


def _of_block(node: Node, whole: tuple[int, ...], shape: tuple[int, ...]) -> Node:
    """The node for a block of this shape, which has fewer axes in front."""
    if node.op != "reduce":
        return replace(node, types=(TensorType(shape, node.type.dtype),))
    axes = [axis - (len(whole) - len(shape)) for axis in node.attrs["dimensions"]]
    kept = tuple(size for axis, size in enumerate(shape) if axis not in axes)
    return replace(node, attrs={**node.attrs, "dimensions": tuple(axes)}, types=(TensorType(kept, node.type.dtype),))


def _broadcasts(node: Node) -> bool:
    return node.op == "broadcast_in_dim"


def _broadcast(node: Node, operand: Enclosure) -> Enclosure:
    """The result of a broadcast without memory of its own."""
    axes, shape = node.attrs["broadcast_dimensions"], [1] * node.type.rank
    order = sorted(range(len(axes)), key=lambda position: axes[position])
    for position in order:
        shape[axes[position]] = operand.tensor.shape[position]

    def spread(array: NDArray[Any]) -> NDArray[Any]:
        return np.broadcast_to(array.transpose(order).reshape(shape), node.type.shape)

    tensor = Tensor(node.type, spread(operand.tensor.words))
    if isinstance(operand, Certain):
        return Certain(tensor)
    tag = operand.tag
    tag = uniform(int(first_of(tag)), node.type.shape) if is_uniform(tag) and tag.size else spread(tag)
    if plain(operand.dtype) and operand.dtype.is_float and operand.dtype.float_format.precision <= 11:
        # what is kept in float32 is a number of it, or one that a fused operation did not round
        low, high = below(FLOAT32, operand.lo).astype(np.float32), above(FLOAT32, operand.hi).astype(np.float32)
        return Packed(tensor, spread(low), spread(high), tag)
    lo = spread(operand.lo)
    return Enclosure(tensor, lo, lo if operand.hi is operand.lo else spread(operand.hi), tag)
