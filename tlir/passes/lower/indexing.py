"""Reading and writing at computed places: integers that the kernel has computed, as indices."""

from __future__ import annotations

from collections.abc import Sequence

from tlir.ir.graph import Node, Ref
from tlir.kernel import index as ix
from tlir.kernel.index import ZERO, Index, flatten
from tlir.kernel.ir import Bound, Value
from tlir.passes.lower.emitter import Compute, Emit, Emitter, Frame
from tlir.passes.lower.places import Place
from tlir.passes.lower.words import word_at


def _dynamic_slice(emitter: Emitter, frame: Frame, node: Node, result: int, place: Place) -> Value:
    operand, *starts = node.inputs
    axes = zip(place, starts, frame.type(operand).shape, node.attrs["slice_sizes"], strict=True)
    inner = tuple(ix.add(index, emitter.start(frame, start, (), size - length)) for index, start, size, length in axes)
    return emitter.element(frame, operand, inner)


def _dynamic_update_slice(emitter: Emitter, frame: Frame, node: Node, result: int, place: Place) -> Value:
    operand, update, *starts = node.inputs
    axes = zip(place, starts, frame.type(operand).shape, frame.type(update).shape, strict=True)
    inner: list[Index] = []
    bounds: list[Bound] = []
    for index, start, size, length in axes:
        first = emitter.start(frame, start, (), size - length)
        inner.append(ix.total([(1, index), (-1, first)]))
        bounds.append(Bound(inner[-1], 0, length))
    return emitter.choose(
        bounds,
        lambda: emitter.element(frame, update, tuple(inner)),
        lambda: emitter.element(frame, operand, place),
        node.type.dtype,
    )


def _gather(emitter: Emitter, frame: Frame, node: Node, result: int, place: Place) -> Value:
    operand, indices = node.inputs
    attrs = node.attrs
    shape, sizes = frame.type(operand).shape, attrs["slice_sizes"]
    removed = (*attrs["collapsed_slice_dims"], *attrs["operand_batching_dims"])
    kept = [axis for axis in range(len(shape)) if axis not in removed]
    window = dict(zip(kept, (place[axis] for axis in attrs["offset_dims"]), strict=True))
    space = tuple(index for axis, index in enumerate(place) if axis not in attrs["offset_dims"])
    vector = attrs["index_vector_dim"]
    clip = attrs["mode"] == "clip"
    inner: list[Index] = [window.get(axis, ZERO) for axis in range(len(shape))]
    bounds: list[Bound] = []
    for entry, axis in enumerate(attrs["start_index_map"]):
        at = _vector_entry(space, vector, entry, frame.type(indices).rank)
        room = shape[axis] - sizes[axis]
        if clip:
            start = emitter.start(frame, indices, at, room)
        else:
            start = emitter.raw_start(frame, indices, at)
            bounds.append(Bound(start, 0, room + 1))
        inner[axis] = ix.add(inner[axis], start)
    for axis, position in _batch_positions(
        attrs["operand_batching_dims"], attrs["start_indices_batching_dims"], vector
    ):
        inner[axis] = ix.add(inner[axis], space[position])
    dtype = node.type.dtype
    return emitter.choose(
        bounds,
        lambda: emitter.element(frame, operand, tuple(inner)),
        lambda: emitter.literal(dtype, word_at(attrs["fill_value"], 0)),
        dtype,
    )


def _vector_entry(space: Place, vector: int, entry: int, rank: int) -> Place:
    """Where entry number ``entry`` of the index vector at a position of the index space is."""
    return space if vector == rank else (*space[:vector], ix.constant(entry), *space[vector:])


def _batch_positions(axes: Sequence[int], index_axes: Sequence[int], vector: int) -> list[tuple[int, int]]:
    """For each batching axis of the operand, the axis of the index space that counts it."""
    return [(axis, other - (other > vector)) for axis, other in zip(axes, index_axes, strict=True)]


def _scatter(emitter: Emitter, frame: Frame, node: Node) -> None:
    operand, indices, updates = node.inputs
    attrs, type = node.attrs, node.type
    buffer = emitter.output(Ref(node.id), type)
    if not type.size:
        return
    removed = (*attrs["inserted_window_dims"], *attrs["input_batching_dims"])
    kept = [axis for axis in range(type.rank) if axis not in removed]
    update_type, vector = frame.type(updates), attrs["index_vector_dim"]
    window_axes = sorted(attrs["update_window_dims"])
    around = [axis for axis in range(update_type.rank) if axis not in window_axes]
    length = dict(zip(kept, (update_type.shape[axis] for axis in window_axes), strict=True))
    indexed = list(attrs["scatter_dims_to_operand_dims"])
    batch = dict(_batch_positions(attrs["input_batching_dims"], attrs["scatter_indices_batching_dims"], vector))
    # along these axes an update stays where it is: their elements are independent of each other
    side = [
        axis
        for axis in range(type.rank)
        if axis in batch or (axis not in indexed and length.get(axis) == type.shape[axis])
    ]
    rest = [axis for axis in range(type.rank) if axis not in side]
    space = dict(zip(side, emitter.space([type.shape[axis] for axis in side]), strict=True))

    def copy(places: Place) -> None:
        by_axis = space | dict(zip(rest, places, strict=True))
        place = tuple(by_axis[axis] for axis in range(type.rank))
        emitter.store(buffer, flatten(place, type.shape), emitter.element(frame, operand, place))

    emitter.each([type.shape[axis] for axis in rest], copy)
    counts = [update_type.shape[axis] for axis in around]
    fixed = {position: space[axis] for axis, position in batch.items()}

    def window(position: Place) -> None:
        starts: dict[int, Index] = {}
        bounds: list[Bound] = []
        for entry, axis in enumerate(indexed):
            at = _vector_entry(position, vector, entry, frame.type(indices).rank)
            room = type.shape[axis] - length.get(axis, 1)
            starts[axis] = emitter.start(frame, indices, at, room)
            if attrs["mode"] == "drop":
                bounds.append(Bound(emitter.raw_start(frame, indices, at), 0, room + 1))

        def element(offsets: Place) -> None:
            moved = dict(zip([axis for axis in rest if axis in length], offsets, strict=True))
            by_axis = {axis: ix.add(moved.get(axis, ZERO), starts.get(axis, ZERO)) for axis in rest} | space
            target = flatten([by_axis[axis] for axis in range(type.rank)], type.shape)
            of_update: dict[int, Index] = dict(zip(around, position, strict=True))
            of_update |= {own: (moved | space)[axis] for axis, own in zip(kept, window_axes, strict=True)}
            value = emitter.element(frame, updates, tuple(of_update[axis] for axis in range(update_type.rank)))
            if attrs["reducer"] != "replace":
                value = emitter.apply(attrs["reducer"], (emitter.load(buffer, target), value))
            emitter.store(buffer, target, value)

        def whole() -> None:
            emitter.each([length[axis] for axis in rest if axis in length], element)

        if bounds:
            emitter.only(emitter.holds(bounds), whole)
        else:
            whole()

    def along(outer: Place) -> None:
        if len(outer) == len(counts):
            window(outer)
        elif len(outer) in fixed:
            along((*outer, fixed[len(outer)]))
        else:

            def step(index: Index, carried: tuple[Value, ...]) -> tuple[Value, ...]:
                along((*outer, index))
                return ()

            emitter.loop(counts[len(outer)], (), step)

    along(())


COMPUTES: dict[str, Compute] = {
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "gather": _gather,
}
EMITS: dict[str, Emit] = {"scatter": _scatter}
