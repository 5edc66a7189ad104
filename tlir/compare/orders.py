"""Orders in which frontends add, written with the operations and the orders that the format declares.

A frontend's sum over one axis is a tree that its shape and the processor's vectors decide: windows, lanes, cascades.
Each is a composition of sequential sums over the axes of a reshaped operand, so that it needs no order of its own: a
``Sum`` writes it as nodes. Every partial sum starts from +0 and so is never -0, which is why zeros may be added at the
ends without changing a word.

The sums here were read off the libraries by measurement: with a large number at one place, its opposite at another and
ones elsewhere, the result says how many terms meet below the node of the tree where the two cancel (the method of
P. Xie et al., FPRev: Revealing the order of floating-point accumulation, 2025).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Protocol

import numpy as np

from tlir.errors import Source
from tlir.ir.graph import Body, Node, Ref
from tlir.ir.ops import Accumulate
from tlir.ir.tensor import Tensor, words_shape
from tlir.ir.types import DType, TensorType


class Builder:
    """Appends nodes to a list; ``source`` is the place in the program that they stand for."""

    def __init__(self, nodes: list[Node] | None = None, source: Source | None = None) -> None:
        self.nodes: list[Node] = [] if nodes is None else nodes
        self.source = source

    def type(self, ref: Ref) -> TensorType:
        return self.nodes[ref.node].types[ref.result]

    def node(self, op: str, inputs: tuple[Ref, ...], type: TensorType, **attrs: Any) -> Ref:
        self.nodes.append(Node(len(self.nodes), op, inputs, attrs, (type,), source=self.source))
        return Ref(len(self.nodes) - 1)

    def input(self, type: TensorType) -> Ref:
        return self.node("input", (), type)

    def constant(self, tensor: Tensor) -> Ref:
        return self.node("constant", (), tensor.type, value=tensor)

    def zero(self, dtype: DType) -> Ref:
        type = TensorType((), dtype)
        return self.constant(Tensor(type, np.zeros(words_shape(type), dtype.word_dtype)))

    def convert(self, x: Ref, dtype: DType) -> Ref:
        type = self.type(x)
        return x if type.dtype == dtype else self.node("convert", (x,), TensorType(type.shape, dtype))

    def reshape(self, x: Ref, shape: tuple[int, ...]) -> Ref:
        type = self.type(x)
        return x if type.shape == shape else self.node("reshape", (x,), TensorType(shape, type.dtype))

    def transpose(self, x: Ref, permutation: tuple[int, ...]) -> Ref:
        type = self.type(x)
        if permutation == tuple(range(type.rank)):
            return x
        shape = tuple(type.shape[axis] for axis in permutation)
        return self.node("transpose", (x,), TensorType(shape, type.dtype), permutation=permutation)

    def slice(self, x: Ref, axis: int, start: int, limit: int) -> Ref:
        type = self.type(x)
        if (start, limit) == (0, type.shape[axis]):
            return x
        starts = tuple(start if d == axis else 0 for d in range(type.rank))
        limits = tuple(limit if d == axis else size for d, size in enumerate(type.shape))
        shape = tuple(b - a for a, b in zip(starts, limits, strict=True))
        attrs = {"start_indices": starts, "limit_indices": limits, "strides": (1,) * type.rank}
        return self.node("slice", (x,), TensorType(shape, type.dtype), **attrs)

    def pad(self, x: Ref, axis: int, low: int, high: int) -> Ref:
        """Zeros before and after along an axis."""
        type = self.type(x)
        if not low and not high:
            return x
        lows = tuple(low if d == axis else 0 for d in range(type.rank))
        highs = tuple(high if d == axis else 0 for d in range(type.rank))
        shape = tuple(a + size + b for a, size, b in zip(lows, type.shape, highs, strict=True))
        attrs = {"edge_padding_low": lows, "edge_padding_high": highs, "interior_padding": (0,) * type.rank}
        return self.node("pad", (x, self.zero(type.dtype)), TensorType(shape, type.dtype), **attrs)

    def concatenate(self, parts: Sequence[Ref], axis: int) -> Ref:
        if len(parts) == 1:
            return parts[0]
        types = [self.type(part) for part in parts]
        shape = list(types[0].shape)
        shape[axis] = sum(type.shape[axis] for type in types)
        return self.node("concatenate", tuple(parts), TensorType(tuple(shape), types[0].dtype), dimension=axis)

    def add(self, a: Ref, b: Ref) -> Ref:
        return self.node("add", (a, b), self.type(a))

    def split(self, x: Ref, axis: int, sizes: tuple[int, ...]) -> Ref:
        """An axis as several."""
        shape = self.type(x).shape
        return self.reshape(x, (*shape[:axis], *sizes, *shape[axis + 1 :]))

    def sum(self, x: Ref, axis: int, accumulate: Accumulate | None = None) -> Ref:
        """The sum over one axis, sequential unless stated otherwise."""
        type = self.type(x)
        attrs: dict[str, Any] = {"reducer": "add", "dimensions": (axis,)}
        if accumulate is not None and accumulate != Accumulate():
            attrs["accumulate"] = accumulate
        shape = (*type.shape[:axis], *type.shape[axis + 1 :])
        return self.node("reduce", (x,), TensorType(shape, type.dtype), **attrs)


class Sum(Protocol):
    """How the elements of an axis are added."""

    def emit(self, b: Builder, x: Ref, axis: int) -> Ref:
        """The sum over the axis, in the operand's dtype."""

    def __str__(self) -> str: ...


@dataclass(frozen=True)
class Declared:
    """An order that ``accumulate`` declares itself."""

    order: str = "sequential"
    block: int = 0

    def emit(self, b: Builder, x: Ref, axis: int) -> Ref:
        return b.sum(x, axis, Accumulate(order=self.order, block=self.block))

    def __str__(self) -> str:
        return Accumulate(order=self.order, block=self.block).order_text


@dataclass(frozen=True)
class Windows:
    """Windows of ``size``, zeros equally before and after, their sums added the same way until one window holds them.

    XLA's tree reduction rewriter for the CPU (tree_reduction_rewriter.cc, reduce_window_size 32)."""

    size: int = 32

    def emit(self, b: Builder, x: Ref, axis: int) -> Ref:
        while (count := b.type(x).shape[axis]) > self.size:
            missing = -count % self.size
            x = b.pad(x, axis, missing // 2, missing - missing // 2)
            windows = b.type(x).shape[axis] // self.size
            if windows <= self.size:
                return b.sum(x, axis, Accumulate(order="blocked", block=self.size))
            x = b.sum(b.split(x, axis, (windows, self.size)), axis + 1)
        return b.sum(x, axis)

    def __str__(self) -> str:
        return f"windows of {self.size}"


@dataclass(frozen=True)
class Nested:
    """Blocks of ``sizes[0]`` one by one, the sums of ``sizes[1]`` blocks one by one, and so on, then all that is left.

    With (16, 16, 16): PyTorch's cascade (aten/native/cpu/SumKernel.cpp); with (4, 4): XLA's reductions by YNNPACK."""

    sizes: tuple[int, ...]

    def emit(self, b: Builder, x: Ref, axis: int) -> Ref:
        for size in self.sizes:
            count = b.type(x).shape[axis]
            if count <= size:
                break
            x = b.pad(x, axis, 0, -count % size)
            x = b.sum(b.split(x, axis, (b.type(x).shape[axis] // size, size)), axis + 1)
        return b.sum(x, axis)

    def __str__(self) -> str:
        return f"nested({', '.join(map(str, self.sizes))})"


def cascade(terms: int) -> Nested:
    """PyTorch's cascade for so many terms: four levels, in steps that grow with the number (cascade_sum)."""
    power = max(4, max(terms - 1, 0).bit_length() // 4)
    return Nested((1 << power,) * 3)


@dataclass(frozen=True)
class Cascade:
    """PyTorch's cascade over an axis."""

    def emit(self, b: Builder, x: Ref, axis: int) -> Ref:
        return cascade(b.type(x).shape[axis]).emit(b, x, axis)

    def __str__(self) -> str:
        return "cascade"


@dataclass(frozen=True)
class Halved:
    """Entries i and i + n/2 added until one is left; ``n`` a power of two."""

    def emit(self, b: Builder, x: Ref, axis: int) -> Ref:
        while (count := b.type(x).shape[axis]) > 1:
            x = b.sum(b.split(x, axis, (2, count // 2)), axis)
        return b.sum(x, axis)

    def __str__(self) -> str:
        return "halves"


@dataclass(frozen=True)
class Lanes:
    """Every ``lanes``-th term by ``along``, zeros after the last; then the lanes by ``across``."""

    lanes: int
    along: Sum
    across: Sum

    def emit(self, b: Builder, x: Ref, axis: int) -> Ref:
        count = b.type(x).shape[axis]
        x = b.pad(x, axis, 0, -count % self.lanes)
        x = b.split(x, axis, (b.type(x).shape[axis] // self.lanes, self.lanes))
        return self.across.emit(b, self.along.emit(b, x, axis), axis)

    def __str__(self) -> str:
        return f"{self.lanes} lanes, {self.along} along and {self.across} across"


def runs(b: Builder, x: Ref, axis: int, length: int, inner: Callable[[Ref, int], Ref]) -> Ref:
    """The sums, by ``inner``, of runs of ``length`` terms and of the terms left over, in the place of the terms."""
    count = b.type(x).shape[axis]
    whole, rest = divmod(count, length)
    parts = []
    if whole:
        parts.append(inner(b.split(b.slice(x, axis, 0, whole * length), axis, (whole, length)), axis + 1))
    if rest:
        parts.append(inner(b.split(b.slice(x, axis, whole * length, count), axis, (1, rest)), axis + 1))
    return b.concatenate(parts, axis)


@dataclass(frozen=True)
class Runs:
    """Runs of so many terms, from the shortest: each the sum of the next shorter ones in it, in order."""

    lengths: tuple[int, ...]

    def emit(self, b: Builder, x: Ref, axis: int) -> Ref:
        inner = Runs(self.lengths[:-1])
        if not self.lengths:
            return b.sum(x, axis)
        if b.type(x).shape[axis] <= self.lengths[-1]:
            return inner.emit(b, x, axis)
        return b.sum(runs(b, x, axis, self.lengths[-1], lambda y, place: inner.emit(b, y, place)), axis)

    def __str__(self) -> str:
        return f"runs of {', '.join(map(str, self.lengths))}"


STRIP = 1 << 17
"""Bytes of an operand that XLA's column sums go through together."""


def columns(width: int, count: int) -> Runs:
    """XLA's sums over ``count`` rows of ``width`` bytes: runs of 4, 16 and 256 rows inside strips of 128 KiB, four
    strips, four times as many, and so on."""
    strip = STRIP // max(width, 1)
    lengths = [4, 16] + [256] * (strip > 256)
    while 16 < strip < count:
        lengths.append(strip)
        strip *= 4
    return Runs(tuple(lengths))


@dataclass(frozen=True)
class Tiles:
    """XLA's sums along rows: tiles of 1024 terms in lanes, zeros after the last; in each lane of a tile runs of 16
    terms as four by four, what is left of the tile in runs of 64 terms over all lanes; then the lanes by halves."""

    lanes: int

    def emit(self, b: Builder, x: Ref, axis: int) -> Ref:
        four, sixteen = Runs((4,)), Runs((4, 16))

        def tile(y: Ref, place: int) -> Ref:
            count = b.type(y).shape[place]
            whole = count - count % 16
            parts = []
            if whole:
                main = b.slice(y, place, 0, whole)
                parts.append(runs(b, main, place, 16, lambda z, at: sixteen.emit(b, z, at)))
            if whole < count:
                rest = b.slice(y, place, whole, count)
                parts.append(runs(b, rest, place, max(64 // self.lanes, 1), lambda z, at: four.emit(b, z, at)))
            return b.sum(b.concatenate(parts, place), place)

        x = b.pad(x, axis, 0, -b.type(x).shape[axis] % self.lanes)
        x = b.split(x, axis, (b.type(x).shape[axis] // self.lanes, self.lanes))
        return Halved().emit(b, b.sum(runs(b, x, axis, 1024 // self.lanes, tile), axis), axis)

    def __str__(self) -> str:
        return f"tiles of 1024 in {self.lanes} lanes"


@dataclass(frozen=True)
class Rows:
    """Of several axes the last one by ``inner``, then the others, joined, by ``outer``."""

    inner: Sum
    outer: Sum

    def emit(self, b: Builder, x: Ref, axis: int) -> Ref:
        return self.inner.emit(b, x, axis)

    def __str__(self) -> str:
        return f"the last axis by {self.inner}, the others by {self.outer}"


@dataclass(frozen=True)
class Vectors:
    """PyTorch's sum along the axis that is contiguous in memory: ``accumulators`` sums of vectors of ``lanes`` terms,
    each a cascade; the vectors left over go to the first one; then the accumulators are added in order, and to the sum
    of the terms left over, the lanes in order. ``folded``: a vector has twice as many terms, whose halves are added
    first (16-bit formats in float32).

    aten/native/cpu/SumKernel.cpp, vectorized_inner_sum and multi_row_sum."""

    lanes: int
    accumulators: int = 4
    folded: bool = False

    def emit(self, b: Builder, x: Ref, axis: int) -> Ref:
        fold = 2 if self.folded else 1
        length, count = self.lanes * fold, b.type(x).shape[axis]
        vectors = count // length
        groups, left = divmod(vectors, self.accumulators)
        parts = []
        if groups:
            main = b.slice(x, axis, 0, groups * self.accumulators * length)
            main = self._folded(b, b.split(main, axis, (groups, self.accumulators, length)), axis + 2)
            parts.append(cascade(groups).emit(b, main, axis))
        if left:
            rest = b.slice(x, axis, (vectors - left) * length, vectors * length)
            parts.append(self._folded(b, b.split(rest, axis, (left, length)), axis + 1))
        if groups and left:
            first, others = b.slice(parts[0], axis, 0, 1), b.slice(parts[0], axis, 1, self.accumulators)
            parts = [first, parts[1], others]
        lanes = [b.sum(b.concatenate(parts, axis), axis)] if parts else []
        if vectors * length < count:
            tail = b.sum(b.slice(x, axis, vectors * length, count), axis)
            shape = b.type(tail).shape
            lanes = [b.reshape(tail, (*shape[:axis], 1, *shape[axis:])), *lanes]
        return b.sum(b.concatenate(lanes, axis), axis)

    def _folded(self, b: Builder, x: Ref, axis: int) -> Ref:
        return b.sum(b.split(x, axis, (2, self.lanes)), axis) if self.folded else x

    def __str__(self) -> str:
        folded = " of folded vectors" if self.folded else ""
        return f"{self.accumulators} cascades of {self.lanes} lanes{folded}"


# ---- whole nodes ----------------------------------------------------------------------------------------------------


def emit_reduce(b: Builder, node: Node, x: Ref, order: Sum, dtype: DType | None) -> Ref:
    """A ``reduce`` of sums over its axes, joined row-major; ``dtype`` is the accumulator's (None: the result's)."""
    operand, axes = b.type(x), sorted(node.attrs["dimensions"])
    if isinstance(order, Declared):
        return declared_node(b, node, (x,), Accumulate(dtype, order.order, order.block))
    kept = [axis for axis in range(operand.rank) if axis not in axes]
    x = b.convert(x, dtype or operand.dtype)
    if len(axes) == 1:
        return b.convert(order.emit(b, x, axes[0]), node.type.dtype)
    x = b.transpose(x, (*kept, *axes))
    outer, count = node.type.shape, prod(operand.shape[axis] for axis in axes)
    if isinstance(order, Rows):
        last = operand.shape[axes[-1]]
        x = order.inner.emit(b, b.reshape(x, (*outer, count // last if last else 0, last)), len(outer) + 1)
        return b.convert(order.outer.emit(b, x, len(outer)), node.type.dtype)
    return b.convert(order.emit(b, b.reshape(x, (*outer, count)), len(outer)), node.type.dtype)


def whole_sum(body: Body, node: Node) -> Node | None:
    """The one sum that a ``reduce`` completes, where a capture has written it as windows: zeros added at the ends of
    axes, axes split, and sums of sums. None where there is no more than the node itself.

    Its operand is the value at the start, its dimensions the axes of that value that are summed."""
    if node.op != "reduce" or node.attrs["reducer"] != "add":
        return None
    steps = [node]
    while (before := body.nodes[steps[-1].inputs[0].node]).op in ("reduce", "reshape", "pad"):
        if not _part_of_a_sum(body, before):
            break
        steps.append(before)
    for count in range(len(steps), 1, -1):
        part = steps[count - 1 :: -1]
        axes = _summed(body, part)
        if axes is not None and any(step.op != "reshape" for step in part[:-1]):
            attrs = {"reducer": "add", "dimensions": axes}
            attrs |= {"accumulate": node.attrs["accumulate"]} if "accumulate" in node.attrs else {}
            return replace(node, inputs=part[0].inputs[:1], attrs=attrs)
    return None


def _part_of_a_sum(body: Body, node: Node) -> bool:
    if node.op == "reduce":
        return bool(node.attrs["reducer"] == "add")
    if node.op == "pad":
        padding = body.nodes[node.inputs[1].node]
        zero = padding.op == "constant" and not padding.attrs["value"].words.any()
        ends = (*node.attrs["edge_padding_low"], *node.attrs["edge_padding_high"])
        return zero and min(ends, default=0) >= 0 and not any(node.attrs["interior_padding"])
    return True


def _summed(body: Body, steps: Sequence[Node]) -> tuple[int, ...] | None:
    """Which axes of the first step's operand the steps add up, all the others being left as they are; None where they
    do something else."""
    start = body.type_of(steps[0].inputs[0]).shape
    shape, labels, touched = start, list(range(len(start))), set[int]()
    for step in steps:
        if step.op == "pad":
            ends = zip(step.attrs["edge_padding_low"], step.attrs["edge_padding_high"], strict=True)
            touched |= {label for label, (low, high) in zip(labels, ends, strict=True) if low or high}
        elif step.op == "reduce":
            labels = [label for axis, label in enumerate(labels) if axis not in step.attrs["dimensions"]]
        else:
            sizes, split = list(step.type.shape), list[int]()
            for label, size in zip(labels, shape, strict=True):
                taken = [sizes.pop(0)] if sizes else []
                while sizes and prod(taken) < size:
                    taken.append(sizes.pop(0))
                if prod(taken) != size or not taken:
                    return None
                touched |= {label} if len(taken) > 1 else set()
                split += [label] * len(taken)
            if sizes:
                return None
            labels = split
        shape = step.type.shape
    if len(set(labels)) < len(labels) or touched & set(labels):
        return None
    return tuple(axis for axis in range(len(start)) if axis not in labels)


def declared_node(b: Builder, node: Node, inputs: tuple[Ref, ...], accumulate: Accumulate) -> Ref:
    """The node itself with another ``accumulate``."""
    attrs = {name: value for name, value in node.attrs.items() if name != "accumulate"}
    if accumulate != Accumulate():
        attrs["accumulate"] = accumulate
    b.nodes.append(replace(node, id=len(b.nodes), inputs=inputs, attrs=attrs))
    return Ref(len(b.nodes) - 1)
