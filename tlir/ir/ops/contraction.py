"""Products of tensors, summed over axes in an order that the node declares."""

from __future__ import annotations

from tlir.ir.ops.attributes import Accumulation, Integers
from tlir.ir.ops.base import Attribute, Call, Operation, Violation, require_axes, require_kind, same_dtypes
from tlir.ir.ops.reduction import check_accumulator
from tlir.ir.types import TensorType


def _dot_general(call: Call) -> tuple[TensorType, ...]:
    lhs, rhs = call.operands
    lhs_batch, rhs_batch = call.attrs["lhs_batching_dimensions"], call.attrs["rhs_batching_dimensions"]
    lhs_contract, rhs_contract = call.attrs["lhs_contracting_dimensions"], call.attrs["rhs_contracting_dimensions"]
    for side, type, axes in (("lhs", lhs, lhs_batch + lhs_contract), ("rhs", rhs, rhs_batch + rhs_contract)):
        require_axes("C1", axes, type.rank, f"{side} dimension")
        if len(set(axes)) != len(axes):
            raise Violation("C2", f"{side} names an axis twice: {list(axes)}")
    for what, left, right in (("batching", lhs_batch, rhs_batch), ("contracting", lhs_contract, rhs_contract)):
        if len(left) != len(right):
            raise Violation("C3", f"{len(left)} lhs and {len(right)} rhs {what} dimensions")
        for a, b in zip(left, right, strict=True):
            if lhs.shape[a] != rhs.shape[b]:
                raise Violation(
                    "C4", f"{what} axes differ: lhs axis {a} has {lhs.shape[a]}, rhs axis {b} has {rhs.shape[b]}"
                )
    dtype = same_dtypes("C5", call.operands)
    if call.result.dtype.kind != dtype.kind:
        raise Violation(
            "C6",
            f"a product of {dtype.name} does not give {call.result.dtype.name}",
            f"declare a result of the same kind and insert convert to {call.result.dtype.name} after it",
        )
    require_kind("C6", dtype, ("bool", "int", "uint", "float", "complex"))
    check_accumulator("C7", call, dtype)
    shape = [lhs.shape[axis] for axis in lhs_batch]
    shape += [size for axis, size in enumerate(lhs.shape) if axis not in lhs_batch + lhs_contract]
    shape += [size for axis, size in enumerate(rhs.shape) if axis not in rhs_batch + rhs_contract]
    return (TensorType(tuple(shape), call.result.dtype),)


def _axes(what: str) -> Attribute:
    return Attribute(Integers(0, 63, unique=True), what)


OPERATIONS = (
    Operation(
        "dot_general",
        "contraction",
        ("lhs", "rhs"),
        "For each index of the batching axes, the free axes of lhs and the free axes of rhs (in this order in the "
        "result): the sum of the products of the elements along the contracting axes, row-major over these as listed. "
        "Elements are converted to the accumulator's dtype (by default the result's); each product is rounded in it, "
        "then added, as `multiply` and `add` round; with `fma` product and addition round once, as `fma` does. The "
        "accumulator starts from 0 (so an empty sum is 0) and the orders are those of `reduce`: sequential, pairwise "
        "(over the rounded products; not with fma), blocked(n). The total is converted to the result's dtype. "
        "Integers wrap. bool: and for the product, or for the sum.",
        "any type",
        _dot_general,
        {
            "C1": "Every entry is an axis of its operand.",
            "C2": "No axis of an operand is named twice.",
            "C3": "Both operands have equally many batching and equally many contracting dimensions.",
            "C4": "Batching and contracting axes that belong together have equal sizes.",
            "C5": "Both operands have the same dtype.",
            "C6": "The result's dtype is of the operands' kind.",
            "C7": "The accumulator's dtype is of the operands' kind, fma is for floats, and pairwise has no fma.",
        },
        {
            "lhs_batching_dimensions": _axes("Axes of lhs that stay side by side."),
            "rhs_batching_dimensions": _axes("Axes of rhs that belong to them."),
            "lhs_contracting_dimensions": _axes("Axes of lhs that are summed over."),
            "rhs_contracting_dimensions": _axes("Axes of rhs that belong to them."),
            "accumulate": Attribute(
                Accumulation(),
                "The accumulator's dtype, the order, and fma; by default sequential in the result's dtype, not fused.",
                False,
            ),
        },
    ),
)
