"""Operations on elements one by one: an ``Apply`` of the same name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tlir.ir.graph import Node
from tlir.ir.ops import Accumulate, arithmetic, complex_numbers, elementary, logic, special
from tlir.ir.types import DType
from tlir.kernel.ir import Value
from tlir.passes.lower.emitter import Compute, Emitter, Frame, Refused
from tlir.passes.lower.functions import function_reason
from tlir.passes.lower.parts import complex_reason
from tlir.passes.lower.places import Place

NAMES = frozenset(
    operation.name
    for family in (arithmetic, elementary, special, logic, complex_numbers)
    for operation in family.OPERATIONS
) | {"convert", "reduce_precision"}
"""The operations whose result at an index is a function of the operands there and of nothing else."""


def elementwise(emitter: Emitter, frame: Frame, node: Node, result: int, place: Place) -> Value:
    operands = [emitter.element(frame, ref, place) for ref in node.inputs]
    if node.op == "convert" and operands[0].dtype == node.type.dtype:
        return operands[0]
    return emitter.apply_once(node.op, operands, node.type.dtype, node.attrs)


def _iota(emitter: Emitter, frame: Frame, node: Node, result: int, place: Place) -> Value:
    return emitter.convert(emitter.position(place[node.attrs["iota_dimension"]]), node.type.dtype)


def _bitcast(emitter: Emitter, frame: Frame, node: Node, result: int, place: Place) -> Value:
    """Between words of equal width; ``reason`` says why others are left to the reference."""
    if why := bitcast_reason(frame, node):
        raise Refused(why)
    operand = emitter.element(frame, node.inputs[0], place)
    if operand.dtype == node.type.dtype:
        return operand
    return emitter.apply_once("bitcast_convert", (operand,), node.type.dtype, {})


def element_reason(op: str, attrs: Mapping[str, Any], dtype: DType) -> str | None:
    """Why an operation on elements, or a node that applies one, has no kernel for a first operand of this dtype."""
    if op == "cumulative" and attrs["reducer"] == "logaddexp":
        order = attrs.get("accumulate") or Accumulate()
        op, dtype = "log_add_exp", order.dtype or dtype
    return complex_reason(op, attrs, dtype) or function_reason(op, dtype)


def bitcast_reason(frame: Frame, node: Node) -> str | None:
    """Why the node has no kernel, if it has none."""
    if frame.type(node.inputs[0]).dtype.bits != node.type.dtype.bits:
        return "it takes words apart or joins them"
    return None


COMPUTES: dict[str, Compute] = {
    **dict.fromkeys(NAMES, elementwise),
    "iota": _iota,
    "bitcast_convert": _bitcast,
}
