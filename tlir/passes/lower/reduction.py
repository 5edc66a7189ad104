"""Reductions: ordered loops over the reduced axes."""

from __future__ import annotations

from tlir.ir.graph import Node
from tlir.ir.ops import Accumulate
from tlir.ir.types import BOOL, DType
from tlir.kernel import index as ix
from tlir.kernel.index import ZERO, Index
from tlir.kernel.ir import Value
from tlir.passes.lower.accumulation import Terms, accumulate
from tlir.passes.lower.emitter import INT64, Compute, Emitter, Frame
from tlir.passes.lower.places import Place


def _reduce(emitter: Emitter, frame: Frame, node: Node, result: int, place: Place) -> Value:
    emitter.anchor(frame, node, place, "row")
    operand = node.inputs[0]
    shape, dtype = frame.type(operand).shape, node.type.dtype
    axes = sorted(node.attrs["dimensions"])
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    order = node.attrs.get("accumulate") or Accumulate()
    wide = order.dtype or dtype

    def term(reduced: Place) -> Value:
        inner: list[Index] = [ZERO] * len(shape)
        for axis, index in (*zip(kept, place, strict=True), *zip(axes, reduced, strict=True)):
            inner[axis] = index
        return emitter.convert(emitter.operand(frame, operand, tuple(inner)), wide)

    terms = Terms(emitter, [shape[axis] for axis in axes], wide, node.attrs["reducer"], term)
    return emitter.convert(accumulate(terms, order), dtype)


def _argument(direction: str) -> Compute:
    """The first index whose element no other one beats."""

    def compute(emitter: Emitter, frame: Frame, node: Node, result: int, place: Place) -> Value:
        emitter.anchor(frame, node, place, "row")
        operand, axis = node.inputs[0], node.attrs["dimension"]
        size = frame.type(operand).shape[axis]

        def at(index: Index) -> Value:
            return emitter.operand(frame, operand, (*place[:axis], index, *place[axis:]))

        def step(index: Index, carried: tuple[Value, ...]) -> tuple[Value, ...]:
            best, chosen = carried
            here = ix.add(index, 1)
            candidate = at(here)
            better = beats(emitter, candidate, best, direction)
            return (
                emitter.apply("select", (better, candidate, best), best.dtype),
                emitter.apply("select", (better, emitter.position(here), chosen), INT64),
            )

        _, chosen = emitter.loop(size - 1, (at(ZERO), emitter.literal(INT64, 0)), step)
        return emitter.convert(chosen, node.type.dtype)

    return compute


def beats(emitter: Emitter, a: Value, b: Value, direction: str) -> Value:
    """Whether a is strictly better than b: a NaN is better than every number, and no better than another NaN."""
    better = compare(emitter, a, b, direction)
    if not has_nan(a.dtype):
        return better
    only_a = emitter.apply(
        "and", (compare(emitter, a, a, "NE"), emitter.apply("not", (compare(emitter, b, b, "NE"),))), BOOL
    )
    return emitter.apply("or", (better, only_a))


def compare(emitter: Emitter, a: Value, b: Value, direction: str) -> Value:
    return emitter.apply("compare", (a, b), BOOL, {"comparison_direction": direction})


def has_nan(dtype: DType) -> bool:
    return dtype.is_float and dtype.float_format.has_nan


COMPUTES: dict[str, Compute] = {"reduce": _reduce, "argmax": _argument("GT"), "argmin": _argument("LT")}
