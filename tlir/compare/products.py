"""Orders in which frontends add the products of a contraction, written as ``tlir.compare.orders`` writes sums."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Any, Protocol

from tlir.compare.orders import Builder, Sum, declared_node
from tlir.ir.graph import Node, Ref
from tlir.ir.ops import Accumulate
from tlir.ir.types import DType, TensorType


class Product(Protocol):
    """How the products of a contraction are added."""

    def emit(self, b: Builder, lhs: Ref, rhs: Ref, dtype: DType) -> Ref:
        """[B, M, N] of ``dtype`` from [B, M, K] and [B, K, N]."""

    def __str__(self) -> str: ...


def _contract(b: Builder, lhs: Ref, rhs: Ref, dtype: DType, batch: int, accumulate: Accumulate) -> Ref:
    """The product over the last axis of lhs and the last but one of rhs, the first ``batch`` axes side by side."""
    left, right = b.type(lhs), b.type(rhs)
    attrs: dict[str, Any] = {
        "lhs_batching_dimensions": tuple(range(batch)),
        "rhs_batching_dimensions": tuple(range(batch)),
        "lhs_contracting_dimensions": (left.rank - 1,),
        "rhs_contracting_dimensions": (right.rank - 2,),
    }
    if accumulate != Accumulate():
        attrs["accumulate"] = accumulate
    shape = (*left.shape[:-1], right.shape[-1])
    return b.node("dot_general", (lhs, rhs), TensorType(shape, dtype), **attrs)


@dataclass(frozen=True)
class DeclaredProduct:
    """An order that ``accumulate`` declares itself."""

    order: str = "sequential"
    block: int = 0
    fma: bool = False

    @property
    def accumulate(self) -> Accumulate:
        return Accumulate(None, self.order, self.block, self.fma)

    def emit(self, b: Builder, lhs: Ref, rhs: Ref, dtype: DType) -> Ref:
        return _contract(b, lhs, rhs, dtype, 1, self.accumulate)

    def __str__(self) -> str:
        return self.accumulate.order_text + (" with fma" if self.fma else "")


def even_split(count: int, size: int, unit: int = 1) -> list[int]:
    """Lengths of blocks: of ``size`` while two remain, then the rest in one, or in two halves where it is longer; the
    first half rounded up to whole units. The rule of the blocked products of OpenBLAS (driver/level3/level3.c)."""
    lengths = []
    while count > 0:
        if count >= 2 * size:
            length = size
        elif count > size:
            half = (count + 1) // 2
            length = min(count, half + -half % unit)
        else:
            length = count
        lengths.append(length)
        count -= length
    return lengths


@dataclass(frozen=True)
class Split:
    """Blocks by ``even_split``, each one by one with fused products, their sums in order."""

    size: int
    unit: int = 1

    def emit(self, b: Builder, lhs: Ref, rhs: Ref, dtype: DType) -> Ref:
        count = b.type(lhs).shape[-1]
        start, total = 0, None
        for length in even_split(count, self.size, self.unit):
            left = b.slice(lhs, 2, start, start + length)
            right = b.slice(rhs, 1, start, start + length)
            part = _contract(b, left, right, dtype, 1, Accumulate(fma=True))
            total = part if total is None else b.add(total, part)
            start += length
        return _contract(b, lhs, rhs, dtype, 1, Accumulate(fma=True)) if total is None else total

    def __str__(self) -> str:
        return f"blocks of {self.size}, the rest halved, with fma"


@dataclass(frozen=True)
class LaneProduct:
    """Every ``lanes``-th product to a sum of its own with fma, the lanes by ``across``; then the products left over, a
    sum of their own."""

    lanes: int
    across: Sum
    fma: bool = True

    def emit(self, b: Builder, lhs: Ref, rhs: Ref, dtype: DType) -> Ref:
        size, m, count = b.type(lhs).shape
        n = b.type(rhs).shape[2]
        whole = count // self.lanes * self.lanes
        accumulate, parts = Accumulate(fma=self.fma), []
        if whole:
            shape = (size, whole // self.lanes, self.lanes, m)
            left = b.transpose(b.slice(lhs, 2, 0, whole), (0, 2, 1))
            left = b.transpose(b.reshape(left, shape), (0, 2, 3, 1))
            right = b.reshape(b.slice(rhs, 1, 0, whole), (*shape[:3], n))
            right = b.transpose(right, (0, 2, 1, 3))
            parts.append(self.across.emit(b, _contract(b, left, right, dtype, 2, accumulate), 1))
        if whole < count:
            left, right = b.slice(lhs, 2, whole, count), b.slice(rhs, 1, whole, count)
            parts.append(_contract(b, left, right, dtype, 1, accumulate))
        return parts[0] if len(parts) == 1 else b.add(parts[0], parts[1])

    def __str__(self) -> str:
        return f"{self.lanes} lanes{' with fma' if self.fma else ''}, {self.across} across"


@dataclass(frozen=True)
class PairTiles:
    """Blocks of ``size`` products, even and odd ones apart, the two sums added, the blocks in order: what the matrix
    instructions for 16-bit formats do (Intel's description of TDPBF16PS)."""

    size: int = 32

    def emit(self, b: Builder, lhs: Ref, rhs: Ref, dtype: DType) -> Ref:
        missing = -b.type(lhs).shape[2] % self.size
        lhs, rhs = b.pad(lhs, 2, 0, missing), b.pad(rhs, 1, 0, missing)
        size, m, count = b.type(lhs).shape
        n = b.type(rhs).shape[2]
        blocks, half = count // self.size, self.size // 2
        left = b.transpose(b.reshape(lhs, (size, m, blocks, half, 2)), (0, 2, 4, 1, 3))
        right = b.transpose(b.reshape(rhs, (size, blocks, half, 2, n)), (0, 1, 3, 2, 4))
        parts = _contract(b, left, right, dtype, 3, Accumulate())
        return b.sum(b.sum(parts, 2), 1)

    def __str__(self) -> str:
        return f"blocks of {self.size}, even and odd products apart"


def emit_dot(b: Builder, node: Node, lhs: Ref, rhs: Ref, order: Product, dtype: DType | None) -> Ref:
    """A ``dot_general`` with its axes brought to [B, M, K] and [B, K, N]."""
    if isinstance(order, DeclaredProduct):
        return declared_node(b, node, (lhs, rhs), replace(order.accumulate, dtype=dtype))
    left, right = sides(b, node, lhs, rhs)
    found = order.emit(b, left, right, dtype or node.type.dtype)
    return b.reshape(b.convert(found, node.type.dtype), node.type.shape)


def sides(b: Builder, node: Node, lhs: Ref, rhs: Ref) -> tuple[Ref, Ref]:
    """The operands of a ``dot_general`` as [B, M, K] and [B, K, N]."""
    batch, contracted = node.attrs["lhs_batching_dimensions"], node.attrs["lhs_contracting_dimensions"]
    shape = b.type(lhs).shape
    free = [axis for axis in range(len(shape)) if axis not in batch + contracted]
    sizes = tuple(prod(shape[axis] for axis in axes) for axes in (batch, free, contracted))
    left = b.reshape(b.transpose(lhs, (*batch, *free, *contracted)), sizes)
    batch, contracted = node.attrs["rhs_batching_dimensions"], node.attrs["rhs_contracting_dimensions"]
    shape = b.type(rhs).shape
    free = [axis for axis in range(len(shape)) if axis not in batch + contracted]
    sizes = (sizes[0], sizes[2], prod(shape[axis] for axis in free))
    return left, b.reshape(b.transpose(rhs, (*batch, *contracted, *free)), sizes)
