"""Reading and writing at computed places. No index is ever out of bounds silently: each operation says what happens."""

from __future__ import annotations

from collections.abc import Sequence

from tlir.ir.ops.attributes import Choice, Integer, Integers, TensorData
from tlir.ir.ops.base import Attribute, Call, Operation, Violation, require_axes, require_kind
from tlir.ir.types import TensorType

_INTEGERS = ("int", "uint")


def _starts(call: Call, first: int) -> None:
    """The start indices of dynamic_slice and dynamic_update_slice: C1 one scalar per axis, C2 of one integer dtype."""
    starts, rank = call.operands[first:], call.operands[0].rank
    if len(starts) != rank or any(start.rank for start in starts):
        raise Violation("C1", f"{len(starts)} start indices for an operand of rank {rank}; each must be a scalar")
    for start in starts:
        require_kind("C2", start.dtype, _INTEGERS, "a start index")
        if start.dtype != starts[0].dtype:
            raise Violation("C2", f"start indices are {starts[0].dtype.name} and {start.dtype.name}")


def _dynamic_slice(call: Call) -> tuple[TensorType, ...]:
    _starts(call, 1)
    operand, sizes = call.operands[0], call.attrs["slice_sizes"]
    if len(sizes) != operand.rank or any(size > axis for size, axis in zip(sizes, operand.shape, strict=False)):
        raise Violation("C3", f"slice_sizes {list(sizes)} do not fit into {list(operand.shape)}")
    return (TensorType(sizes, operand.dtype),)


def _dynamic_update_slice(call: Call) -> tuple[TensorType, ...]:
    _starts(call, 2)
    operand, update = call.operands[:2]
    if update.dtype != operand.dtype or update.rank != operand.rank:
        raise Violation("C3", f"the update is {update}, the operand {operand}")
    if any(size > axis for size, axis in zip(update.shape, operand.shape, strict=True)):
        raise Violation("C3", f"the update {list(update.shape)} does not fit into {list(operand.shape)}")
    return (operand,)


def _index_space(call: Call, indices: TensorType, depth: int) -> tuple[int, ...]:
    """The shape of the index space: that of ``indices`` without index_vector_dim, which has ``depth`` entries."""
    require_kind("C1", indices.dtype, _INTEGERS, "the indices' dtype")
    axis = call.attrs["index_vector_dim"]
    if axis > indices.rank:
        raise Violation("C2", f"index_vector_dim {axis} is beyond indices of rank {indices.rank}")
    given = indices.shape[axis] if axis < indices.rank else 1
    if given != depth:
        raise Violation("C2", f"each index has {given} entries for {depth} operand axes")
    return tuple(size for d, size in enumerate(indices.shape) if d != axis)


def _batching(call: Call, operand: TensorType, indices: TensorType, names: tuple[str, str]) -> None:
    batch, index_batch = (call.attrs[name] for name in names)
    if len(batch) != len(index_batch):
        raise Violation("C4", f"{len(batch)} operand and {len(index_batch)} index batching dimensions")
    require_axes("C4", batch, operand.rank, "batching dimension")
    require_axes("C4", index_batch, indices.rank, "index batching dimension")
    for a, b in zip(batch, index_batch, strict=True):
        if b == call.attrs["index_vector_dim"] or operand.shape[a] != indices.shape[b]:
            raise Violation("C4", f"operand axis {a} and index axis {b} are not one batch")


def _disjoint(rule: str, axes: Sequence[int], rank: int, what: str) -> None:
    require_axes(rule, axes, rank, what)
    if len(set(axes)) != len(axes):
        raise Violation(rule, f"{what} {list(axes)} names an axis twice")


def _gather(call: Call) -> tuple[TensorType, ...]:
    operand, indices = call.operands
    attrs = call.attrs
    space = _index_space(call, indices, len(attrs["start_index_map"]))
    removed = attrs["collapsed_slice_dims"] + attrs["operand_batching_dims"]
    _disjoint("C3", removed, operand.rank, "collapsed or batching dimension")
    _disjoint("C3", attrs["start_index_map"] + attrs["operand_batching_dims"], operand.rank, "indexed dimension")
    _batching(call, operand, indices, ("operand_batching_dims", "start_indices_batching_dims"))
    sizes = attrs["slice_sizes"]
    if len(sizes) != operand.rank or any(size > axis for size, axis in zip(sizes, operand.shape, strict=False)):
        raise Violation("C5", f"slice_sizes {list(sizes)} do not fit into {list(operand.shape)}")
    if any(sizes[axis] > 1 for axis in removed):
        raise Violation("C5", "collapsed and batching dimensions have slice size 1")
    window = [size for axis, size in enumerate(sizes) if axis not in removed]
    offsets = attrs["offset_dims"]
    rank = len(space) + len(window)
    if len(offsets) != len(window) or list(offsets) != sorted(set(offsets)) or any(axis >= rank for axis in offsets):
        raise Violation("C6", f"offset_dims {list(offsets)} do not place a window of rank {len(window)} in rank {rank}")
    fill = attrs.get("fill_value")
    if (fill is not None) != (attrs["mode"] == "fill"):
        raise Violation("C7", "fill_value is given with mode fill, and only then")
    if fill is not None and fill.type != TensorType((), operand.dtype):
        raise Violation("C7", f"fill_value is {fill.type}, not a scalar of {operand.dtype.name}")
    sizes_of_window, sizes_of_space = iter(window), iter(space)
    shape = tuple(next(sizes_of_window if axis in offsets else sizes_of_space) for axis in range(rank))
    return (TensorType(shape, operand.dtype),)


_REDUCERS = {
    "replace": ("bool", "int", "uint", "float", "complex"),
    "add": ("int", "uint", "float", "complex"),
    "multiply": ("int", "uint", "float", "complex"),
    "minimum": ("bool", "int", "uint", "float"),
    "maximum": ("bool", "int", "uint", "float"),
}


def _scatter(call: Call) -> tuple[TensorType, ...]:
    operand, indices, updates = call.operands
    attrs = call.attrs
    space = _index_space(call, indices, len(attrs["scatter_dims_to_operand_dims"]))
    removed = attrs["inserted_window_dims"] + attrs["input_batching_dims"]
    _disjoint("C3", removed, operand.rank, "inserted or batching dimension")
    indexed = attrs["scatter_dims_to_operand_dims"] + attrs["input_batching_dims"]
    _disjoint("C3", indexed, operand.rank, "indexed dimension")
    _batching(call, operand, indices, ("input_batching_dims", "scatter_indices_batching_dims"))
    window_axes = attrs["update_window_dims"]
    _disjoint("C5", window_axes, updates.rank, "update window dimension")
    window = [updates.shape[axis] for axis in sorted(window_axes)]
    kept = [size for axis, size in enumerate(operand.shape) if axis not in removed]
    if len(window) != len(kept) or any(size > axis for size, axis in zip(window, kept, strict=False)):
        raise Violation("C5", f"windows {window} do not fit into the axes {kept} of the operand")
    around = tuple(size for axis, size in enumerate(updates.shape) if axis not in window_axes)
    if around != space:
        raise Violation("C6", f"updates have {list(around)} windows for indices of {list(space)}")
    if updates.dtype != operand.dtype:
        raise Violation("C7", f"updates are {updates.dtype.name}, the operand {operand.dtype.name}")
    require_kind("C8", operand.dtype, _REDUCERS[attrs["reducer"]])
    return (operand,)


_AXES = Integers(0, 63, unique=True)
_STARTS = {
    "C1": "There is one start index per axis of the operand, each a scalar.",
    "C2": "The start indices are of one integer dtype.",
}
_SPACE = {
    "C1": "The indices are of an integer dtype.",
    "C2": "The indices have as many entries along index_vector_dim as operand axes are indexed (one where it is "
    "their rank).",
    "C3": "Every axis named is one of the operand, and none is named twice.",
    "C4": "Batching dimensions of operand and indices belong together pairwise, with equal sizes.",
}

OPERATIONS = (
    Operation(
        "dynamic_slice",
        "indexing",
        ("operand", "start_indices..."),
        "The slice of slice_sizes that starts at the start indices, each clamped to 0 … axis size - slice size.",
        "any type; indices integers",
        _dynamic_slice,
        _STARTS | {"C3": "slice_sizes has one entry per axis, none larger than the axis."},
        {"slice_sizes": Attribute(Integers(), "The size of the slice along each axis.")},
        1,
    ),
    Operation(
        "dynamic_update_slice",
        "indexing",
        ("operand", "update", "start_indices..."),
        "The operand with the update in place of the slice that starts at the start indices, each clamped to 0 … axis "
        "size - update size.",
        "any type; indices integers",
        _dynamic_update_slice,
        _STARTS | {"C3": "The update has the operand's dtype and rank, and no axis larger than the operand's."},
        {},
        2,
    ),
    Operation(
        "gather",
        "indexing",
        ("operand", "start_indices"),
        "For each index vector (along index_vector_dim of start_indices), the slice of slice_sizes of the operand "
        "that starts there: entry k of the vector is the start along axis start_index_map[k], 0 along the others, and "
        "the batch position along operand_batching_dims. Collapsed and batching axes are dropped; the rest of the "
        "slice lies along offset_dims of the result, the index space along its other axes. Where a start is below 0 "
        "or beyond axis size - slice size: `clip` clamps it, `fill` gives fill_value in the whole slice.",
        "any type; indices integers",
        _gather,
        _SPACE
        | {
            "C5": "slice_sizes has one entry per axis, none larger than the axis, at most 1 for collapsed and "
            "batching axes.",
            "C6": "offset_dims are increasing axes of the result, one per axis of the slice that is kept.",
            "C7": "fill_value is a scalar of the operand's dtype, given exactly where mode is fill.",
        },
        {
            "offset_dims": Attribute(_AXES, "The axes of the result along which the slices lie."),
            "collapsed_slice_dims": Attribute(_AXES, "Axes of the operand with slice size 1 that are dropped."),
            "operand_batching_dims": Attribute(_AXES, "Axes of the operand that are indexed by the batch position."),
            "start_indices_batching_dims": Attribute(_AXES, "Axes of start_indices that belong to them."),
            "start_index_map": Attribute(_AXES, "For each entry of an index vector, its axis of the operand."),
            "index_vector_dim": Attribute(
                Integer(0, 64), "The axis of start_indices that holds the vectors; its rank: scalars."
            ),
            "slice_sizes": Attribute(Integers(), "The size of a slice along each axis of the operand."),
            "mode": Attribute(Choice(("clip", "fill")), "What a start out of bounds means."),
            "fill_value": Attribute(TensorData(), "The value for slices out of bounds.", False),
        },
    ),
    Operation(
        "scatter",
        "indexing",
        ("operand", "scatter_indices", "updates"),
        "The operand with the windows of updates applied at the places that the index vectors name (as `gather` reads "
        "them), one window after the other in row-major order of the index space. Each element becomes "
        "reducer(element, update), `replace` taking the update; each step rounds as that operation does. A window "
        "that does not lie wholly inside the operand: `clip` clamps its start, `drop` leaves it out.",
        "any type; indices integers",
        _scatter,
        _SPACE
        | {
            "C5": "The windows have one axis per operand axis that is not inserted or batching, none larger than it.",
            "C6": "The other axes of updates are the index space.",
            "C7": "updates have the operand's dtype.",
            "C8": "add and multiply take numbers, minimum and maximum real numbers or bool.",
        },
        {
            "update_window_dims": Attribute(_AXES, "The axes of updates along which the windows lie."),
            "inserted_window_dims": Attribute(_AXES, "Axes of the operand in which a window has size 1 and no axis."),
            "input_batching_dims": Attribute(_AXES, "Axes of the operand that are indexed by the batch position."),
            "scatter_indices_batching_dims": Attribute(_AXES, "Axes of scatter_indices that belong to them."),
            "scatter_dims_to_operand_dims": Attribute(
                _AXES, "For each entry of an index vector, its axis of the operand."
            ),
            "index_vector_dim": Attribute(
                Integer(0, 64), "The axis of scatter_indices that holds the vectors; its rank: scalars."
            ),
            "mode": Attribute(Choice(("clip", "drop")), "What a window out of bounds means."),
            "reducer": Attribute(Choice(tuple(_REDUCERS)), "How an update meets the element."),
        },
    ),
)
