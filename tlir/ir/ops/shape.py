"""Operations that move words and never change one."""

from __future__ import annotations

from tlir.ir.ops.attributes import MAX_INDEX, Integer, Integers
from tlir.ir.ops.base import Attribute, Call, Operation, Violation, require_axes, same_dtypes
from tlir.ir.types import TensorType


def _broadcast_in_dim(call: Call) -> tuple[TensorType, ...]:
    operand, result = call.operands[0], call.result
    axes = call.attrs["broadcast_dimensions"]
    if len(axes) != operand.rank:
        raise Violation("C1", f"{len(axes)} broadcast_dimensions for an operand of rank {operand.rank}")
    require_axes("C2", axes, result.rank, "broadcast dimension")
    for position, axis in enumerate(axes):
        if operand.shape[position] not in (1, result.shape[axis]):
            raise Violation(
                "C3",
                f"operand axis {position} of size {operand.shape[position]} does not broadcast to result axis {axis} "
                f"of size {result.shape[axis]}",
            )
    return (TensorType(result.shape, operand.dtype),)


def _reshape(call: Call) -> tuple[TensorType, ...]:
    operand, result = call.operands[0], call.result
    if operand.size != result.size:
        raise Violation(
            "C1", f"{list(operand.shape)} has {operand.size} elements, {list(result.shape)} has {result.size}"
        )
    return (TensorType(result.shape, operand.dtype),)


def _transpose(call: Call) -> tuple[TensorType, ...]:
    operand, permutation = call.operands[0], call.attrs["permutation"]
    if sorted(permutation) != list(range(operand.rank)):
        raise Violation("C1", f"{list(permutation)} is not a permutation of the {operand.rank} axes")
    return (TensorType(tuple(operand.shape[axis] for axis in permutation), operand.dtype),)


def _concatenate(call: Call) -> tuple[TensorType, ...]:
    dtype = same_dtypes("C2", call.operands)
    first, axis = call.operands[0], call.attrs["dimension"]
    require_axes("C3", (axis,), first.rank, "dimension")
    for k, operand in enumerate(call.operands[1:], 1):
        if operand.rank != first.rank or any(
            size != other for d, (size, other) in enumerate(zip(operand.shape, first.shape, strict=False)) if d != axis
        ):
            raise Violation(
                "C1", f"operand {k} of shape {list(operand.shape)} does not join {list(first.shape)} along axis {axis}"
            )
    joined = sum(operand.shape[axis] for operand in call.operands)
    return (TensorType((*first.shape[:axis], joined, *first.shape[axis + 1 :]), dtype),)


def _per_axis(rule: str, call: Call, *names: str) -> None:
    rank = call.operands[0].rank
    for name in names:
        if len(call.attrs[name]) != rank:
            raise Violation(rule, f"{name} has {len(call.attrs[name])} entries for an operand of rank {rank}")


def _slice(call: Call) -> tuple[TensorType, ...]:
    operand = call.operands[0]
    _per_axis("C1", call, "start_indices", "limit_indices", "strides")
    shape = []
    bounds = zip(
        operand.shape, call.attrs["start_indices"], call.attrs["limit_indices"], call.attrs["strides"], strict=True
    )
    for axis, (size, start, limit, stride) in enumerate(bounds):
        if not start <= limit <= size:
            raise Violation("C2", f"axis {axis} of size {size} has no slice from {start} to {limit}")
        shape.append(-(-(limit - start) // stride))
    return (TensorType(tuple(shape), operand.dtype),)


def _pad(call: Call) -> tuple[TensorType, ...]:
    operand, value = call.operands
    if value.rank or value.dtype != operand.dtype:
        raise Violation("C1", f"the padding value is {value}, the operand {operand}")
    _per_axis("C2", call, "edge_padding_low", "edge_padding_high", "interior_padding")
    shape = []
    padding = zip(
        operand.shape,
        call.attrs["edge_padding_low"],
        call.attrs["edge_padding_high"],
        call.attrs["interior_padding"],
        strict=True,
    )
    for axis, (size, low, high, interior) in enumerate(padding):
        padded = low + size + max(size - 1, 0) * interior + high
        if padded < 0:
            raise Violation("C3", f"axis {axis} would have size {padded}")
        shape.append(padded)
    return (TensorType(tuple(shape), operand.dtype),)


def _reverse(call: Call) -> tuple[TensorType, ...]:
    require_axes("C1", call.attrs["dimensions"], call.operands[0].rank, "dimension")
    return call.operands


def _operation(
    name: str,
    meaning: str,
    rule: object,
    constraints: dict[str, str],
    attributes: dict[str, Attribute],
    operands: tuple[str, ...] = ("operand",),
    minimum: int = 0,
) -> Operation:
    return Operation(name, "shape", operands, meaning, "any type", rule, constraints, attributes, minimum)  # type: ignore[arg-type]


_AXES = Integers(0, 63, unique=True)

OPERATIONS = (
    _operation(
        "broadcast_in_dim",
        "Operand axis i becomes result axis broadcast_dimensions[i]; an axis of size 1 is repeated, and so is "
        "everything along the result axes that are not named.",
        _broadcast_in_dim,
        {
            "C1": "broadcast_dimensions has one entry per operand axis.",
            "C2": "Every entry is an axis of the result.",
            "C3": "Every operand axis has size 1 or the size of its result axis.",
        },
        {"broadcast_dimensions": Attribute(_AXES, "For each operand axis, its result axis.")},
    ),
    _operation(
        "reshape",
        "The same elements in row-major order, in the declared shape.",
        _reshape,
        {"C1": "Operand and result have the same number of elements."},
        {},
    ),
    _operation(
        "transpose",
        "Result axis i is operand axis permutation[i].",
        _transpose,
        {"C1": "permutation holds every axis of the operand once."},
        {"permutation": Attribute(_AXES, "For each result axis, its operand axis.")},
    ),
    _operation(
        "concatenate",
        "The operands one after the other along an axis.",
        _concatenate,
        {
            "C1": "The operands' shapes agree on every other axis.",
            "C2": "All operands have the same dtype.",
            "C3": "dimension is an axis of the operands.",
        },
        {"dimension": Attribute(Integer(0, 63), "The axis along which operands follow each other.")},
        ("operands...",),
        1,
    ),
    _operation(
        "slice",
        "The elements at start, start + stride, start + 2 stride, … below limit along each axis.",
        _slice,
        {
            "C1": "Every attribute has one entry per axis.",
            "C2": "0 <= start <= limit <= size along each axis.",
        },
        {
            "start_indices": Attribute(Integers(), "First index along each axis."),
            "limit_indices": Attribute(Integers(), "Index after the last, along each axis."),
            "strides": Attribute(Integers(1), "Step along each axis."),
        },
    ),
    _operation(
        "pad",
        "The operand with copies of the padding value: interior_padding of them between neighbours, then "
        "edge_padding_low before and edge_padding_high after along each axis. A negative edge padding removes "
        "elements (of the operand or of its interior padding).",
        _pad,
        {
            "C1": "padding_value is a scalar of the operand's dtype.",
            "C2": "Every attribute has one entry per axis.",
            "C3": "No axis of the result has a negative size.",
        },
        {
            "edge_padding_low": Attribute(Integers(-MAX_INDEX), "Padding before the first element of each axis."),
            "edge_padding_high": Attribute(Integers(-MAX_INDEX), "Padding after the last element of each axis."),
            "interior_padding": Attribute(Integers(), "Padding between two elements of each axis."),
        },
        ("operand", "padding_value"),
    ),
    _operation(
        "reverse",
        "The elements in opposite order along the axes named.",
        _reverse,
        {"C1": "Every entry of dimensions is an axis of the operand."},
        {"dimensions": Attribute(_AXES, "The axes to reverse.")},
    ),
)
