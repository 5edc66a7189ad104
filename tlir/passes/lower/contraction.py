"""Products of tensors: the loop over the contracted index, its products added in the declared order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tlir.ir.graph import Node
from tlir.ir.ops import Accumulate
from tlir.ir.types import DType
from tlir.kernel.index import ZERO, Index
from tlir.kernel.ir import Value
from tlir.passes.lower.accumulation import Terms, accumulate
from tlir.passes.lower.emitter import Compute, Emitter, Frame
from tlir.passes.lower.places import Place


def _dot_general(emitter: Emitter, frame: Frame, node: Node, result: int, place: Place) -> Value:
    emitter.anchor(frame, node, place, "contraction")
    lhs, rhs = node.inputs
    attrs = node.attrs
    left, right = frame.type(lhs), frame.type(rhs)
    left_batch, right_batch = attrs["lhs_batching_dimensions"], attrs["rhs_batching_dimensions"]
    left_sum, right_sum = attrs["lhs_contracting_dimensions"], attrs["rhs_contracting_dimensions"]
    left_free = [axis for axis in range(left.rank) if axis not in (*left_batch, *left_sum)]
    right_free = [axis for axis in range(right.rank) if axis not in (*right_batch, *right_sum)]
    batch, rest = place[: len(left_batch)], place[len(left_batch) :]
    rows, columns = rest[: len(left_free)], rest[len(left_free) :]

    def gathered(rank: int, *pairs: tuple[Sequence[int], Place]) -> Place:
        inner: list[Index] = [ZERO] * rank
        for axes, indices in pairs:
            for axis, index in zip(axes, indices, strict=True):
                inner[axis] = index
        return tuple(inner)

    def factors(summed: Place) -> tuple[Value, Value]:
        at_left = gathered(left.rank, (left_batch, batch), (left_free, rows), (left_sum, summed))
        at_right = gathered(right.rank, (right_batch, batch), (right_free, columns), (right_sum, summed))
        return emitter.operand(frame, lhs, at_left), emitter.operand(frame, rhs, at_right)

    return contract(emitter, node, [left.shape[axis] for axis in left_sum], factors)


def contract(
    emitter: Emitter, node: Node, extents: Sequence[int], factors: Callable[[Place], tuple[Value, Value]]
) -> Value:
    """The sum of the products of two factors over ``extents``, as the node accumulates it."""
    order = node.attrs.get("accumulate") or Accumulate()
    dtype: DType = node.type.dtype
    wide = order.dtype or dtype
    multiply, add = ("and", "or") if wide.is_bool else ("multiply", "add")

    def pair(summed: Place) -> tuple[Value, Value]:
        a, b = factors(summed)
        return emitter.convert(a, wide), emitter.convert(b, wide)

    def fused(total: Value, summed: Place) -> Value:
        return emitter.apply("fma", (*pair(summed), total), wide)

    terms = Terms(
        emitter,
        extents,
        wide,
        add,
        lambda summed: emitter.apply(multiply, pair(summed)),
        fused if order.fma else None,
    )
    return emitter.convert(accumulate(terms, order), dtype)


COMPUTES: dict[str, Compute] = {"dot_general": _dot_general}
