"""A graph at small shapes of the same structure: the same operations, and axes that belong together still do.

Every axis is a product of *atoms*, major first. An operation makes atoms of its operands and results the same; a
reshape that splits or joins axes splits atoms. What an attribute fixes (a slice, padding, a window) keeps its size. All
other atoms then become 2 or 3, in turn, so that exchanged axes still show.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np

from tlir.ir.graph import Body, Graph, Node, Ref
from tlir.ir.tensor import Tensor, words_shape
from tlir.ir.types import TensorType
from tlir.ir.verify import type_errors
from tlir.kernel.verify import ELEMENTWISE

SIZES = (2, 3)

TRANSFORMS = ((20, 17), (8, 11), (4, 11))
"""Elements of a transformed axis, at least where it has so many, and what stands for greater primes in its length; then
the same for graphs that are too large so, since several axes are transformed."""

SORTED, SELECTED = 40, 5
"""Elements of a row that is sorted, so that there are several runs to merge; and of one from which is selected, for
each of those."""

MANY, SOME = 72, 36
"""Elements of a row that is sorted for its greatest ones, and of these, where so many or more are wanted."""


@dataclass(eq=False)
class _Atom:
    """A factor of the sizes of axes. ``parts`` replace it once it has been split or made the same as another."""

    size: int
    fixed: bool = False
    parts: list[_Atom] | None = None
    small: int | None = field(default=None)

    def leaves(self) -> list[_Atom]:
        if self.parts is None:
            return [self]
        return [leaf for part in self.parts for leaf in part.leaves()]


Axis = list[_Atom]


def prime_factors(n: int) -> list[int]:
    """In ascending order."""
    found, p = [], 2
    while p * p <= n:
        if n % p:
            p += 1
        else:
            found.append(p)
            n //= p
    return [*found, n] if n > 1 else found


def transform_size(n: int, least: int, prime: int) -> int:
    """A length of at least so many elements, where n has as many, whose transform has the same first steps as that of
    n, ``prime`` standing for greater primes."""
    size = 1
    for factor in prime_factors(n):
        if size < least:
            size *= min(factor, prime)
    return size


def shrunk(body: Body, transforms: tuple[int, int] = TRANSFORMS[0]) -> Body:
    """The body at small shapes, transformed axes as ``TRANSFORMS`` says; itself where it has none that its operations
    accept."""
    shrinker = _Shrinker(body, transforms)
    for node in body.nodes:
        shrinker.relate(node)
    shrinker.keep_long()
    small = Body(tuple(shrinker.node(node) for node in body.nodes), body.input_ids, body.outputs)
    return body if type_errors(Graph(small)) else small


class _Shrinker:
    def __init__(self, body: Body, transforms: tuple[int, int]) -> None:
        self.body = body
        self.transforms = transforms
        self.axes: dict[Ref, list[Axis]] = {}
        self.transformed: list[tuple[tuple[Axis, int], ...]] = []
        """Axes that have to have just these sizes, all of those that stand together or none."""
        self.long: dict[int | tuple[int, int], tuple[Axis, int]] = {}
        """Axes that have to be longer than others for a node to do what it does, and how long."""
        self.count = 0
        for node in body.nodes:
            for k, type in enumerate(node.types):
                self.axes[Ref(node.id, k)] = [
                    [] if size == 1 else [_Atom(size, fixed=size == 0)] for size in type.shape
                ]

    # ---- what belongs together --------------------------------------------------------------------------------------

    def same(self, one: Axis, other: Axis) -> None:
        """Two runs of axes with as many elements have the same atoms."""
        a = [leaf for atom in one for leaf in atom.leaves()]
        b = [leaf for atom in other for leaf in atom.leaves()]
        while a and b:
            x, y = a.pop(0), b.pop(0)
            if x is y:
                continue
            if x.size == y.size:
                x.fixed = y.fixed = x.fixed or y.fixed
                x.parts = [y]
            elif min(x.size, y.size) and max(x.size, y.size) % min(x.size, y.size) == 0:
                larger, smaller, rest = (x, y, a) if x.size > y.size else (y, x, b)
                more = _Atom(larger.size // smaller.size, larger.fixed)
                smaller.fixed = smaller.fixed or larger.fixed
                larger.parts = [smaller, more]
                rest.insert(0, more)
            else:
                self.fix([x, y, *a, *b])
                return

    def fix(self, axis: Axis) -> None:
        """These sizes stay as they are."""
        for atom in axis:
            for leaf in atom.leaves():
                leaf.fixed = True

    def fix_all(self, node: Node) -> None:
        for ref in (*node.inputs, *(Ref(node.id, k) for k in range(len(node.types)))):
            for axis in self.axes[ref]:
                self.fix(axis)

    def pair(self, one: Axis, other: Axis, alike: bool) -> None:
        """The same, or both as they are."""
        if alike:
            self.same(one, other)
        else:
            self.fix(one)
            self.fix(other)

    def keep_long(self) -> None:
        """The sizes of long axes, once it is known what belongs together."""
        for together in self.transformed:
            parts = [[leaf for atom in axis for leaf in atom.leaves()] for axis, _ in together]
            sizes = [size for _, size in together]
            alone = all(len(own) == 1 and not own[0].fixed for own in parts)
            if alone and all(own[0].small in (None, size) for own, size in zip(parts, sizes, strict=True)):
                for own, size in zip(parts, sizes, strict=True):
                    own[0].small = size
            else:
                for axis, _ in together:
                    self.fix(axis)
        for axis, size in self.long.values():
            leaves = [leaf for atom in axis for leaf in atom.leaves()]
            if leaves and not leaves[-1].fixed:
                leaves[-1].small = max(leaves[-1].small or 0, min(leaves[-1].size, size))

    def relate(self, node: Node) -> None:
        """What the operation says of the axes of its operands and its results."""
        if node.op in ("input", "constant", "iota"):
            return
        rule = getattr(self, f"_{node.op}", None)
        operands = [self.axes[ref] for ref in node.inputs]
        result = self.axes[Ref(node.id)]
        same_width = node.op != "bitcast_convert" or len(operands[0]) == len(result)
        if rule is not None:
            rule(node, operands, result)
        elif node.op in (ELEMENTWISE | {"reverse", "cumulative"}) and same_width:
            for operand in operands:
                for one, other in zip(operand, result, strict=True):
                    self.same(one, other)
        else:
            self.fix_all(node)

    def _broadcast_in_dim(self, node: Node, operands: list[list[Axis]], result: list[Axis]) -> None:
        shape = self.body.type_of(node.inputs[0]).shape
        for size, own, axis in zip(shape, operands[0], node.attrs["broadcast_dimensions"], strict=True):
            if size != 1:
                self.same(own, result[axis])

    def _reshape(self, node: Node, operands: list[list[Axis]], result: list[Axis]) -> None:
        if node.type.size == 0:
            self.fix_all(node)
        else:
            self.same([a for axis in operands[0] for a in axis], [a for axis in result for a in axis])

    def _transpose(self, node: Node, operands: list[list[Axis]], result: list[Axis]) -> None:
        for own, axis in zip(result, node.attrs["permutation"], strict=True):
            self.same(own, operands[0][axis])

    def _slice(self, node: Node, operands: list[list[Axis]], result: list[Axis]) -> None:
        shape = self.body.type_of(node.inputs[0]).shape
        for axis, (one, other) in enumerate(zip(operands[0], result, strict=True)):
            self.pair(one, other, node.type.shape[axis] == shape[axis])

    def _pad(self, node: Node, operands: list[list[Axis]], result: list[Axis]) -> None:
        names = ("edge_padding_low", "edge_padding_high", "interior_padding")
        for axis, (one, other) in enumerate(zip(operands[0], result, strict=True)):
            self.pair(one, other, not any(node.attrs[name][axis] for name in names))

    def _concatenate(self, node: Node, operands: list[list[Axis]], result: list[Axis]) -> None:
        for operand in operands:
            for axis, (one, other) in enumerate(zip(operand, result, strict=True)):
                self.pair(one, other, axis != node.attrs["dimension"])

    def _reduce(self, node: Node, operands: list[list[Axis]], result: list[Axis]) -> None:
        removed = node.attrs["dimensions"] if node.op == "reduce" else (node.attrs["dimension"],)
        kept = [axis for k, axis in enumerate(operands[0]) if k not in removed]
        for one, other in zip(kept, result, strict=True):
            self.same(one, other)

    _argmax = _argmin = _reduce

    def _sort(self, node: Node, operands: list[list[Axis]], result: list[Axis]) -> None:
        results = [self.axes[Ref(node.id, k)] for k in range(len(node.types))]
        for axes in (*operands[1:], *results):
            for one, other in zip(operands[0], axes, strict=True):
                self.same(one, other)
        self.long[node.id] = operands[0][node.attrs["dimension"]], SORTED

    def _fft(self, node: Node, operands: list[list[Axis]], result: list[Axis]) -> None:
        lengths, real = node.attrs["fft_length"], node.attrs["fft_type"] in ("RFFT", "IRFFT")
        first = len(result) - len(lengths)
        for k, (one, other) in enumerate(zip(operands[0], result, strict=True)):
            half = real and k == len(result) - 1
            if not half:
                self.same(one, other)
            if k < first or lengths[k - first] == 1:
                continue
            size = transform_size(lengths[k - first], *self.transforms)
            if not half:
                self.transformed.append(((one, size),))
                continue
            whole, part = (one, other) if node.attrs["fft_type"] == "RFFT" else (other, one)
            self.transformed.append(((whole, size), (part, size // 2 + 1)))

    def _top_k(self, node: Node, operands: list[list[Axis]], result: list[Axis]) -> None:
        axis, count = node.attrs["dimension"], node.attrs["k"]
        whole = operands[0][axis]
        everything = count == self.body.type_of(node.inputs[0]).shape[axis]
        for axes in (result, self.axes[Ref(node.id, 1)]):
            for k, (one, other) in enumerate(zip(operands[0], axes, strict=True)):
                if k != axis or everything:
                    self.same(one, other)
                elif count < SOME:
                    self.fix(other)
                else:
                    self.same(other, result[axis])
        if everything or count < SOME:
            self.long[node.id] = whole, SORTED if everything else max(SORTED, SELECTED * count)
        else:
            length = min(MANY, self.body.type_of(node.inputs[0]).shape[axis])
            self.transformed.append(((whole, length), (result[axis], SOME)))

    def _matrices(self, node: Node, operands: list[list[Axis]], result: list[Axis]) -> None:
        """Factorizations: batches belong together, and axes of matrices that are as long as each other. Where one is
        longer it stays so."""
        matrix = max(operands, key=len)
        batch = matrix[:-2]
        types = [*self.body.operand_types(node), *node.types]
        every = [*operands, *(self.axes[Ref(node.id, k)] for k in range(len(node.types)))]
        own: dict[int, Axis] = {}
        for type, axes in zip(types, every, strict=True):
            for one, other in zip(batch, axes, strict=False):
                self.same(one, other)
            for size, axis in zip(type.shape[len(batch) :], axes[len(batch) :], strict=True):
                self.same(own.setdefault(size, axis), axis)
        for longer, size in enumerate(sorted(own)[1:], max(SIZES) + 1):
            self.long[node.id, size] = own[size], longer

    _cholesky = _triangular_solve = _lu = _geqrf = _householder_product = _tridiagonal_solve = _eigh = _svd = _matrices

    def _dot_general(self, node: Node, operands: list[list[Axis]], result: list[Axis]) -> None:
        free: list[Axis] = []
        for side, operand in zip(("lhs", "rhs"), operands, strict=True):
            named = (*node.attrs[f"{side}_batching_dimensions"], *node.attrs[f"{side}_contracting_dimensions"])
            free += [axis for k, axis in enumerate(operand) if k not in named]
        batch = node.attrs["lhs_batching_dimensions"], node.attrs["rhs_batching_dimensions"]
        summed = node.attrs["lhs_contracting_dimensions"], node.attrs["rhs_contracting_dimensions"]
        for left, right in (batch, summed):
            for a, b in zip(left, right, strict=True):
                self.same(operands[0][a], operands[1][b])
        for one, other in zip([*(operands[0][a] for a in batch[0]), *free], result, strict=True):
            self.same(one, other)

    def _reduce_window(self, node: Node, operands: list[list[Axis]], result: list[Axis]) -> None:
        ones = ("window_dimensions", "window_strides", "base_dilations", "window_dilations")
        for axis, (one, other) in enumerate(zip(operands[0], result, strict=True)):
            padding = node.attrs["padding_low"][axis] or node.attrs["padding_high"][axis]
            self.pair(one, other, not padding and all(node.attrs[name][axis] == 1 for name in ones))

    def _convolution(self, node: Node, operands: list[list[Axis]], result: list[Axis]) -> None:
        if max(node.attrs.get("feature_group_count", 1), node.attrs.get("batch_group_count", 1)) > 1:
            self.fix_all(node)
            return
        names = ("lhs_dimensions", "rhs_dimensions", "output_dimensions")
        left, right, out = (
            [axes[k] for k in node.attrs[name]] for name, axes in zip(names, (*operands, result), strict=True)
        )
        self.same(left[0], out[0])
        self.same(left[1], right[1])
        self.same(right[0], out[1])
        for axis in (*left[2:], *right[2:], *out[2:]):
            self.fix(axis)

    def _dynamic_slice(self, node: Node, operands: list[list[Axis]], result: list[Axis]) -> None:
        self._slice(node, operands, result)

    def _dynamic_update_slice(self, node: Node, operands: list[list[Axis]], result: list[Axis]) -> None:
        shapes = self.body.type_of(node.inputs[0]).shape, self.body.type_of(node.inputs[1]).shape
        for axis, own in enumerate(result):
            self.same(operands[0][axis], own)
            self.pair(operands[1][axis], own, shapes[0][axis] == shapes[1][axis])

    def _gather(self, node: Node, operands: list[list[Axis]], result: list[Axis]) -> None:
        attrs, shape = node.attrs, self.body.type_of(node.inputs[0]).shape
        vector = attrs["index_vector_dim"]
        space = [axis for k, axis in enumerate(operands[1]) if k != vector]
        if vector < len(operands[1]):
            self.fix(operands[1][vector])
        around = [axis for k, axis in enumerate(result) if k not in attrs["offset_dims"]]
        for one, other in zip(space, around, strict=True):
            self.same(one, other)
        pairs = zip(attrs["operand_batching_dims"], attrs["start_indices_batching_dims"], strict=True)
        for a, b in pairs:
            self.same(operands[0][a], operands[1][b])
        removed = (*attrs["collapsed_slice_dims"], *attrs["operand_batching_dims"])
        kept = [axis for axis in range(len(shape)) if axis not in removed]
        for axis, own in zip(kept, (result[k] for k in attrs["offset_dims"]), strict=True):
            self.pair(operands[0][axis], own, attrs["slice_sizes"][axis] == shape[axis])

    # ---- the small graph --------------------------------------------------------------------------------------------

    def size(self, axis: Axis) -> int:
        return prod(self._small(leaf) for atom in axis for leaf in atom.leaves())

    def _small(self, atom: _Atom) -> int:
        if atom.fixed:
            return atom.size
        if atom.small is None:
            atom.small = min(atom.size, SIZES[self.count % len(SIZES)])
            self.count += 1
        return atom.small

    def shape(self, ref: Ref) -> tuple[int, ...]:
        return tuple(self.size(axis) for axis in self.axes[ref])

    def node(self, node: Node) -> Node:
        types = tuple(TensorType(self.shape(Ref(node.id, k)), type.dtype) for k, type in enumerate(node.types))
        return replace(node, types=types, attrs=self._attrs(node, types))

    def _attrs(self, node: Node, types: Sequence[TensorType]) -> dict[str, Any]:
        attrs = dict(node.attrs)
        if node.op == "constant":
            attrs["value"] = _cropped(attrs["value"], types[0])
        elif node.op == "fft":
            full = types[0].shape if node.attrs["fft_type"] == "IRFFT" else self.shape(node.inputs[0])
            attrs["fft_length"] = full[len(full) - len(node.attrs["fft_length"]) :]
        elif node.op == "top_k":
            attrs["k"] = types[0].shape[node.attrs["dimension"]]
        elif node.op in ("slice", "dynamic_slice", "gather"):
            before, after = self.body.type_of(node.inputs[0]).shape, self.shape(node.inputs[0])
            name = "limit_indices" if node.op == "slice" else "slice_sizes"
            # what is as long as the axis stays so
            attrs[name] = tuple(
                new if limit == old else limit for limit, old, new in zip(attrs[name], before, after, strict=True)
            )
        return attrs


def _cropped(tensor: Tensor, type: TensorType) -> Tensor:
    """The first elements of a tensor along each axis."""
    words = tensor.words[tuple(slice(size) for size in type.shape)]
    return Tensor(type, np.array(words, order="C").reshape(words_shape(type)))
