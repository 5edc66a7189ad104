"""One node on expressions, and what all meanings need: elements, conversions, views."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from tlir.ir.graph import Body, Node
from tlir.ir.ops import OPERATIONS
from tlir.ir.tensor import Tensor
from tlir.ir.types import BOOL, NAMED, DType
from tlir.passes.check.expressions import Expressions, Ids

INT64 = NAMED["int64"]


def constant(table: Expressions, tensor: Tensor, node_id: int | None) -> Ids:
    """Literals; elements of one array of the artifact where they are not all the same. Of several arrays that have the
    same words, it is the first that was asked for."""
    dtype, shape, size = tensor.dtype, tensor.shape, tensor.type.size
    parts = tensor.words.reshape((size, dtype.components, dtype.limbs))
    if size > 1 and node_id is not None and not (parts == parts[0]).all():
        return leaves(table, table.name(same_words(tensor), f"constant {node_id}"), tensor)
    words = [tuple(sum(int(limb) << 64 * k for k, limb in enumerate(part)) for part in element) for element in parts]
    ids = [table.literal(dtype, (word[0], word[1]) if dtype.is_complex else word[0]) for word in words]
    return np.array(ids, np.int64).reshape(shape)


def same_words(value: Any) -> Any:
    """What tensors of one type that have the same words have in common; any other value itself."""
    return (value.type, value.words.tobytes()) if isinstance(value, Tensor) else value


def leaves(table: Expressions, name: str, like: Any) -> Ids:
    """One expression per element of something that is given, of this type (or of the type of a tensor)."""
    size = prod(like.shape)
    return np.array([table.leaf(name, k, like.dtype) for k in range(size)], np.int64).reshape(like.shape)


class Step:
    """One node: its operands as arrays of expressions."""

    def __init__(self, table: Expressions, body: Body, node: Node, operands: Sequence[Ids]) -> None:
        self.table, self.body, self.node, self.operands = table, body, node, operands
        self.dtypes = [type.dtype for type in body.operand_types(node)]
        self.dtype, self.shape = node.types[0].dtype if node.types else BOOL, node.types[0].shape if node.types else ()

    def attr(self, name: str) -> Any:
        return OPERATIONS[self.node.op].attr(self.node.attrs, name)

    def filled(self, function: Callable[..., int], shape: Sequence[int] | None = None) -> Ids:
        """``function(*index)`` at every index of the result."""
        shape = self.shape if shape is None else tuple(shape)
        result = np.empty(shape, np.int64)
        for index in np.ndindex(*shape):
            result[index] = function(*index)
        return result

    # ---- elements ---------------------------------------------------------------------------------------------------

    def _elementwise(self) -> Ids:
        flat = zip(*(operand.reshape(-1).tolist() for operand in self.operands), strict=True)
        ids = [self.table.apply(self.node.op, self.node.attrs, self.dtype, ids) for ids in flat]
        return np.array(ids, np.int64).reshape(self.shape)

    def _iota(self) -> Ids:
        axis = self.attr("iota_dimension")

        def at(*index: int) -> int:
            return self._convert(self.table.integer(INT64, index[axis]), self.dtype)

        return self.filled(at)

    def _bitcast_convert(self, x: Ids) -> Ids:
        return x if self.dtypes[0] == self.dtype else self._elementwise()

    def _convert(self, x: Any, dtype: DType | None = None) -> Any:
        if dtype is None:
            return x if self.dtypes[0] == self.dtype else self._elementwise()
        return self.table.apply("convert", {}, dtype, (x,))

    def _combine(self, op: str, a: int, b: int, dtype: DType) -> int:
        return self.table.apply(op, {}, dtype, (a, b))

    # ---- views ------------------------------------------------------------------------------------------------------

    def _broadcast_in_dim(self, x: Ids) -> Ids:
        axes = self.attr("broadcast_dimensions")
        return self.filled(
            lambda *index: x[tuple(0 if n == 1 else index[a] for n, a in zip(x.shape, axes, strict=True))]
        )

    def _reshape(self, x: Ids) -> Ids:
        return x.reshape(self.shape)

    def _transpose(self, x: Ids) -> Ids:
        return x.transpose(self.attr("permutation"))

    def _slice(self, x: Ids) -> Ids:
        bounds = zip(self.attr("start_indices"), self.attr("limit_indices"), self.attr("strides"), strict=True)
        return x[tuple(slice(start, limit, stride) for start, limit, stride in bounds)]

    def _reverse(self, x: Ids) -> Ids:
        return np.flip(x, self.attr("dimensions"))

    def _concatenate(self, *parts: Ids) -> Ids:
        return np.concatenate(parts, self.attr("dimension"))

    def _pad(self, x: Ids, value: Ids) -> Ids:
        result = np.full(self.shape, int(value), np.int64)
        low, interior = self.attr("edge_padding_low"), self.attr("interior_padding")
        for index in np.ndindex(*x.shape):
            place = tuple(a + i * (hole + 1) for a, i, hole in zip(low, index, interior, strict=True))
            if all(0 <= p < size for p, size in zip(place, self.shape, strict=True)):
                result[place] = x[index]
        return result
