"""Sorting, and the greatest elements."""

from __future__ import annotations

from tlir.ir.ops.attributes import MAX_INDEX, Boolean, Integer
from tlir.ir.ops.base import Attribute, Call, Operation, Violation, require_axes, require_kind, same_shapes
from tlir.ir.types import TensorType

_ORDER = (
    "Floats are ordered as values, -0 equal to 0, and every NaN after all numbers whatever its sign; complex numbers "
    "by real part, then imaginary part; false before true."
)


def _sort(call: Call) -> tuple[TensorType, ...]:
    shape = same_shapes("C1", call)
    require_axes("C2", (call.attrs["dimension"],), len(shape), "dimension")
    keys = call.attrs.get("num_keys", 1)
    if keys > len(call.operands):
        raise Violation("C3", f"{keys} keys of {len(call.operands)} operands")
    return call.operands


def _top_k(call: Call) -> tuple[TensorType, ...]:
    operand, axis, count = call.operands[0], call.attrs["dimension"], call.attrs["k"]
    require_axes("C1", (axis,), operand.rank, "dimension")
    require_kind("C2", operand.dtype, ("bool", "int", "uint", "float"))
    if count > operand.shape[axis]:
        raise Violation("C3", f"axis {axis} of size {operand.shape[axis]} has no {count} greatest elements")
    if len(call.declared) != 2:
        raise Violation("C4", f"top_k gives values and indices, not {len(call.declared)} results")
    require_kind("C4", call.declared[1].dtype, ("int", "uint"), "the second result")
    shape = (*operand.shape[:axis], count, *operand.shape[axis + 1 :])
    return (TensorType(shape, operand.dtype), TensorType(shape, call.declared[1].dtype))


OPERATIONS = (
    Operation(
        "sort",
        "sorting",
        ("operands...",),
        "The operands rearranged together along dimension so that the first num_keys of them ascend lexicographically "
        "(descend with "
        "`descending`); elements with equal keys keep their order, in both directions. " + _ORDER + " Words are "
        "moved unchanged.",
        "any type",
        _sort,
        {
            "C1": "All operands have the same shape.",
            "C2": "dimension is an axis of the operands.",
            "C3": "num_keys is from 1 to the number of operands.",
        },
        {
            "dimension": Attribute(Integer(0, 63), "The axis along which is sorted."),
            "num_keys": Attribute(Integer(1, MAX_INDEX), "How many operands are keys.", False, 1),
            "descending": Attribute(Boolean(), "Greatest first, NaN before all numbers.", False, False),
        },
        1,
        None,
    ),
    Operation(
        "top_k",
        "sorting",
        ("operand",),
        "The k greatest elements along dimension, greatest first, and their indices; of equal elements the one with "
        "the lower index comes "
        "first. NaN counts as greatest. " + _ORDER,
        "bool, an integer or a floating-point type",
        _top_k,
        {
            "C1": "dimension is an axis of the operand.",
            "C2": "The operand is bool, an integer or a floating-point type.",
            "C3": "k is not more than the size of the axis.",
            "C4": "There are two results, the second of an integer dtype.",
        },
        {
            "k": Attribute(Integer(), "How many elements."),
            "dimension": Attribute(Integer(0, 63), "The axis that is searched."),
        },
        0,
        2,
    ),
)
