"""Reductions over axes, in an order that the node declares."""

from __future__ import annotations

from tlir.ir.ops.attributes import Accumulation, Choice, Integer, Integers
from tlir.ir.ops.base import Attribute, Call, Operation, Violation, require_axes, require_kind
from tlir.ir.types import DType, TensorType

REDUCER_KINDS = {
    "add": ("int", "uint", "float", "complex"),
    "multiply": ("int", "uint", "float", "complex"),
    "maximum": ("bool", "int", "uint", "float"),
    "minimum": ("bool", "int", "uint", "float"),
    "and": ("bool", "int", "uint"),
    "or": ("bool", "int", "uint"),
    "xor": ("bool", "int", "uint"),
}


def check_accumulator(rule: str, call: Call, dtype: DType) -> None:
    """The accumulator's dtype must be of the kind of ``dtype``; ``fma`` needs floats and an order that adds one by "
    "one."""
    accumulate = call.attrs.get("accumulate")
    if accumulate is None:
        return
    if accumulate.dtype is not None and accumulate.dtype.kind != dtype.kind:
        raise Violation(rule, f"{dtype.name} does not accumulate in {accumulate.dtype.name}")
    if accumulate.fma and not dtype.is_float:
        raise Violation(rule, f"fma fuses floating-point products, and these are {dtype.name}")
    if accumulate.fma and accumulate.order == "pairwise":
        raise Violation(rule, "a pairwise sum adds products that are rounded, so it has no fma")


def check_reducer_order(rule: str, call: Call) -> None:
    """``accumulate`` must have something to say: an order and format of sums or products of elements."""
    accumulate, reducer = call.attrs.get("accumulate"), call.attrs["reducer"]
    if accumulate is None:
        return
    if reducer not in ("add", "multiply"):
        raise Violation(rule, f"{reducer} gives the same words in every order and format")
    if accumulate.fma:
        raise Violation(rule, "there are no products to fuse")


def _reduce(call: Call) -> tuple[TensorType, ...]:
    operand, axes, reducer = call.operands[0], call.attrs["dimensions"], call.attrs["reducer"]
    require_axes("C1", axes, operand.rank, "dimension")
    require_kind("C2", operand.dtype, REDUCER_KINDS[reducer])
    check_accumulator("C3", call, operand.dtype)
    check_reducer_order("C4", call)
    return (TensorType(tuple(size for d, size in enumerate(operand.shape) if d not in axes), operand.dtype),)


def _arg(call: Call) -> tuple[TensorType, ...]:
    operand, axis = call.operands[0], call.attrs["dimension"]
    require_axes("C1", (axis,), operand.rank, "dimension")
    require_kind("C2", operand.dtype, ("bool", "int", "uint", "float"))
    require_kind("C3", call.result.dtype, ("int", "uint"), "the result")
    if operand.shape[axis] == 0:
        raise Violation("C4", f"axis {axis} has no element to choose")
    return (TensorType((*operand.shape[:axis], *operand.shape[axis + 1 :]), call.result.dtype),)


_ACCUMULATE = Attribute(
    Accumulation(), "The accumulator's dtype and the order; by default sequential in the result's dtype.", False
)


def _argument(name: str, which: str) -> Operation:
    return Operation(
        name,
        "reduction",
        ("operand",),
        f"The index along dimension of the {which} element, as an integer of the declared dtype (modulo 2^bits); the "
        f"first one "
        "of several. Floats: the first NaN if there is one; -0 and 0 are equal.",
        "bool, an integer or a floating-point type",
        _arg,
        {
            "C1": "dimension is an axis of the operand.",
            "C2": "The operand is bool, an integer or a floating-point type.",
            "C3": "The result's dtype is an integer type.",
            "C4": "The axis is not empty.",
        },
        {"dimension": Attribute(Integer(0, 63), "The axis that is searched.")},
    )


OPERATIONS = (
    Operation(
        "reduce",
        "reduction",
        ("operand",),
        "The elements along the axes named, combined. The accumulator starts from the identity: 0 for add, 1 for "
        "multiply, false or the least value (-inf for floats) for maximum, true or the greatest (inf) for minimum, "
        "all bits set for and, 0 for or and xor; a format without infinities uses its finite extremes. Elements are "
        "converted to the accumulator's dtype, combined by the operation of that name (add, multiply, maximum, …, "
        "each rounding as it does), and the total is converted to the result's dtype. Order over the elements taken "
        "row-major over the reduced axes in increasing order of axis: `sequential`: identity, then one by one. "
        "`pairwise`: neighbours 2i and 2i+1 are combined, an odd last element is passed on, and so again until one is "
        "left, which is then combined with the identity. `blocked(n)`: runs of n elements, each accumulated "
        "sequentially from the identity, then the results of the runs sequentially from the identity.",
        "any type; see C2",
        _reduce,
        {
            "C1": "Every entry of dimensions is an axis of the operand.",
            "C2": "add and multiply take numbers, maximum and minimum real numbers or bool, and, or and xor integers "
            "or bool.",
            "C3": "The accumulator's dtype is of the operand's kind.",
            "C4": "accumulate is given only for add and multiply, without fma.",
        },
        {
            "reducer": Attribute(Choice(tuple(REDUCER_KINDS)), "The operation that combines."),
            "dimensions": Attribute(Integers(0, 63, unique=True), "The axes that are reduced."),
            "accumulate": _ACCUMULATE,
        },
    ),
    _argument("argmax", "greatest"),
    _argument("argmin", "least"),
)
