"""Operations that move elements: changes of the index."""

from __future__ import annotations

from tlir.ir.graph import Node
from tlir.kernel import index as ix
from tlir.kernel.index import ZERO, Index
from tlir.kernel.ir import Bound, Value
from tlir.passes.lower.emitter import Compute, Emitter, Frame
from tlir.passes.lower.places import Place


def _broadcast_in_dim(emitter: Emitter, frame: Frame, node: Node, result: int, place: Place) -> Value:
    shape = frame.type(node.inputs[0]).shape
    axes = node.attrs["broadcast_dimensions"]
    inner = tuple(ZERO if size == 1 else place[axis] for size, axis in zip(shape, axes, strict=True))
    return emitter.element(frame, node.inputs[0], inner)


def _reshape(emitter: Emitter, frame: Frame, node: Node, result: int, place: Place) -> Value:
    shape = frame.type(node.inputs[0]).shape
    return emitter.element(frame, node.inputs[0], ix.unflatten(ix.flatten(place, node.type.shape), shape))


def _transpose(emitter: Emitter, frame: Frame, node: Node, result: int, place: Place) -> Value:
    inner: list[Index] = [ZERO] * len(place)
    for axis, source in enumerate(node.attrs["permutation"]):
        inner[source] = place[axis]
    return emitter.element(frame, node.inputs[0], tuple(inner))


def _slice(emitter: Emitter, frame: Frame, node: Node, result: int, place: Place) -> Value:
    starts, strides = node.attrs["start_indices"], node.attrs["strides"]
    inner = tuple(
        ix.total([(stride, index)], start) for index, start, stride in zip(place, starts, strides, strict=True)
    )
    return emitter.element(frame, node.inputs[0], inner)


def _reverse(emitter: Emitter, frame: Frame, node: Node, result: int, place: Place) -> Value:
    axes = node.attrs["dimensions"]
    inner = tuple(
        ix.total([(-1, index)], size - 1) if axis in axes else index
        for axis, (index, size) in enumerate(zip(place, node.type.shape, strict=True))
    )
    return emitter.element(frame, node.inputs[0], inner)


def _concatenate(emitter: Emitter, frame: Frame, node: Node, result: int, place: Place) -> Value:
    axis = node.attrs["dimension"]
    parts = []
    start = 0
    for ref in node.inputs:
        size = frame.type(ref).shape[axis]
        if size:
            parts.append((ref, start, start + size))
        start += size

    def among(first: int, last: int) -> Value:
        """The element, known to come from one of ``parts[first:last]``: halves are told apart until one is left."""
        if last - first == 1:
            ref, begin, _ = parts[first]
            shifted = ix.add(place[axis], -begin)
            return emitter.element(frame, ref, (*place[:axis], shifted, *place[axis + 1 :]))
        middle = (first + last) // 2
        limit = parts[middle][1]
        bound = Bound(place[axis], min(place[axis].least, limit), limit)
        return emitter.choose([bound], lambda: among(first, middle), lambda: among(middle, last), node.type.dtype)

    return among(0, len(parts))


def _pad(emitter: Emitter, frame: Frame, node: Node, result: int, place: Place) -> Value:
    operand, value = node.inputs
    attrs = node.attrs
    axes = zip(place, frame.type(operand).shape, attrs["edge_padding_low"], attrs["interior_padding"], strict=True)
    bounds: list[Bound] = []
    inner: list[Index] = []
    for index, size, low, interior in axes:
        inside, limits = dilated(index, size, low, interior + 1)
        bounds += limits
        inner.append(inside)
    return emitter.choose(
        bounds,
        lambda: emitter.element(frame, operand, tuple(inner)),
        lambda: emitter.element(frame, value, ()),
        node.type.dtype,
    )


def dilated(index: Index, size: int, low: int, step: int) -> tuple[Index, list[Bound]]:
    """Where an index into an axis with ``step - 1`` holes between neighbours and ``low`` entries in front lies in the
    axis itself, and the bounds that hold unless it is a hole or outside."""
    shifted = ix.add(index, -low)
    bounds = []
    if step > 1 and size > 1:
        bounds.append(Bound(ix.remainder(shifted, step), 0, 1))
        shifted = ix.quotient(shifted, step)
    bounds.append(Bound(shifted, 0, size))
    return shifted, bounds


COMPUTES: dict[str, Compute] = {
    "broadcast_in_dim": _broadcast_in_dim,
    "reshape": _reshape,
    "transpose": _transpose,
    "slice": _slice,
    "reverse": _reverse,
    "concatenate": _concatenate,
    "pad": _pad,
}
VIEWS = frozenset(COMPUTES)
