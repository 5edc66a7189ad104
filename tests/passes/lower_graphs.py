"""Random graphs and random words for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tlir.floatlib.format import Format
from tlir.ir.graph import Body, Node, Ref
from tlir.ir.ops import Accumulate
from tlir.ir.ops.windows import dilated, window_positions
from tlir.ir.tensor import Tensor, words_shape
from tlir.ir.types import BOOL, NAMED, DType, TensorType, complex_of

CUSTOM = {
    "float24": DType("float24", "float", 24, Format(6, 17)),
    "float80": DType("float80", "float", 80, Format(15, 64)),
    "ufloat10": DType(
        "ufloat10",
        "float",
        10,
        Format(3, 7, signed=False, signed_zero=False, infinities=False, nans="all_ones"),
    ),
}
"""Formats that an artifact declares itself: an odd width, two limbs of which the second is not full, and one without a
sign."""

TABLE: dict[str, DType] = (
    NAMED | CUSTOM | {f"complex<{name}>": complex_of(NAMED[name]) for name in ("float16", "float8_e5m2")}
)
COMMON = ("float32", "float64", "int32", "bool", "complex64", "float16", "int64", "bfloat16", "int8", "uint8")
DTYPES = (*COMMON, *COMMON, *TABLE)
"""What a random dtype is picked from: every one, common ones more often."""

_UNARY = {
    "bool": ("not",),
    "int": ("negate", "abs", "sign", "not", "popcnt", "count_leading_zeros"),
    "uint": ("negate", "sign", "not", "popcnt"),
    "float": ("negate", "abs", "sign", "floor", "round_nearest_even", "sqrt"),
    "complex": ("negate", "conjugate"),
}
_BINARY = {
    "bool": ("and", "or", "xor", "maximum", "minimum"),
    "int": ("add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "and", "xor", "shift_left"),
    "uint": ("add", "subtract", "multiply", "divide", "maximum", "minimum", "or", "shift_right_arithmetic"),
    "float": ("add", "subtract", "multiply", "divide", "maximum", "minimum", "copysign", "next_after"),
    "complex": ("add", "subtract", "multiply"),
}
_REDUCERS = {
    "bool": ("and", "or", "xor", "maximum", "minimum"),
    "int": ("add", "multiply", "maximum", "minimum", "and", "or", "xor"),
    "uint": ("add", "multiply", "maximum", "minimum", "and", "or", "xor"),
    "float": ("add", "multiply", "maximum", "minimum"),
    "complex": ("add", "multiply"),
}


def random_tensor(random: np.random.Generator, type: TensorType) -> Tensor:
    """Every word of the dtype may come; small numbers are as likely as all others together."""
    dtype = type.dtype
    shape = words_shape(type)
    size = int(np.prod(shape, dtype=object))
    words = random.integers(0, 256, (size, dtype.word_dtype.itemsize), np.uint8).view(dtype.word_dtype)
    words = words.reshape(shape)
    spare = dtype.bits - 8 * dtype.word_dtype.itemsize * (dtype.limbs - 1)
    if spare < 8 * dtype.word_dtype.itemsize:
        top = words[..., -1] if dtype.limbs > 1 else words
        np.bitwise_and(top, dtype.word_dtype.type((1 << spare) - 1), out=top)
    if dtype.is_integer or dtype.is_bool:
        small = np.abs(words.astype(np.uint8)) % np.uint8(4)
        words = np.where(random.random(shape) < 0.5, small.astype(dtype.word_dtype) & ((1 << dtype.bits) - 1), words)
    elif dtype.name in ("float32", "float64", "complex64", "complex128") and random.random() < 0.7:
        native = {4: np.float32, 8: np.float64}[dtype.word_dtype.itemsize]
        words = random.standard_normal(shape).astype(native).view(dtype.word_dtype)
    if random.random() < 0.6:
        special = from_ints_of(dtype, special_words(dtype))
        chosen = special[random.integers(0, len(special), shape[: len(shape) - (dtype.limbs > 1)])]
        here = random.random(chosen.shape[: len(shape) - (dtype.limbs > 1)]) < 0.25
        words = np.where(here[..., np.newaxis] if dtype.limbs > 1 else here, chosen, words)
    return Tensor(type, np.array(words, dtype.word_dtype, order="C"))


def special_words(dtype: DType) -> list[int]:
    """Words at which operations have cases: both zeros, ones, the ends of the ranges of subnormal, normal and finite
    numbers, infinities, and NaN quiet, signaling, negative and with a payload; the ends of an integer's range."""
    if not dtype.is_float and not dtype.is_complex:
        top = 1 << (dtype.bits - 1)
        return [0, 1, top, top - 1, 2 * top - 1] if dtype.bits > 1 else [0, 1]
    fmt = dtype.float_format
    positive = {0, 1, fmt.min_normal, max(fmt.min_normal - 1, 0), fmt.max_finite_magnitude, fmt.magnitude_mask}
    positive |= {fmt.bias << fmt.fraction_bits & fmt.magnitude_mask, fmt.invalid_word & fmt.magnitude_mask}
    if fmt.inf is not None:
        positive |= {fmt.inf, min(fmt.inf + 1, fmt.magnitude_mask)}
    return sorted({word | sign for word in positive for sign in (0, fmt.sign_mask)} | {fmt.invalid_word})


def from_ints_of(dtype: DType, words: Sequence[int]) -> Any:
    """The words as an array, with an axis of limbs where the dtype has several."""
    limbs = [[word >> (64 * k) & (2**64 - 1) for k in range(dtype.limbs)] for word in words]
    array = np.array(limbs, np.uint64).astype(dtype.word_dtype)
    return array if dtype.limbs > 1 else array[:, 0]


Step = Callable[["Builder", Ref], Ref]
"""Adds nodes that read a value; the last one."""


class Builder:
    """Nodes one after the other; each ``random_node`` applies a random operation to random earlier values."""

    def __init__(self, random: np.random.Generator) -> None:
        self.random = random
        self.nodes: list[Node] = []
        self.input_ids: list[int] = []

    def add(self, op: str, inputs: Sequence[Ref], type: TensorType, **attrs: Any) -> Ref:
        self.nodes.append(Node(len(self.nodes), op, tuple(inputs), attrs, (type,)))
        return Ref(len(self.nodes) - 1)

    def input(self, type: TensorType) -> Ref:
        ref = self.add("input", (), type)
        self.input_ids.append(ref.node)
        return ref

    def type(self, ref: Ref) -> TensorType:
        return self.nodes[ref.node].types[ref.result]

    def body(self, outputs: Sequence[Ref]) -> Body:
        return Body(tuple(self.nodes), tuple(self.input_ids), tuple(outputs))

    # ---- random choices ---------------------------------------------------------------------------------------------

    def pick(self, items: Sequence[Any]) -> Any:
        return items[int(self.random.integers(len(items)))]

    def shape(self, rank: int | None = None) -> tuple[int, ...]:
        rank = int(self.random.integers(0, 6)) if rank is None else rank
        return tuple(self.pick((1, 2, 3, 4, 2, 3, 0 if self.random.random() < 0.2 else 2)) for _ in range(rank))

    def value(self) -> Ref:
        """An earlier value, recent ones more often."""
        count = len(self.nodes)
        return Ref(count - 1 - int(min(self.random.exponential(2), count - 1)))

    def like(self, type: TensorType) -> Ref:
        """A value of this type: an earlier one, or one made for the purpose."""
        known = [Ref(node.id) for node in self.nodes if node.type == type]
        if known and self.random.random() < 0.7:
            return self.pick(known)
        if self.random.random() < 0.3:
            scalar = self.add("constant", (), TensorType((), type.dtype), value=self.words(TensorType((), type.dtype)))
            return self.add("broadcast_in_dim", (scalar,), type, broadcast_dimensions=())
        if self.random.random() < 0.3:
            return self.add("constant", (), type, value=self.words(type))
        return self.input(type)

    def words(self, type: TensorType) -> Tensor:
        return random_tensor(self.random, type)

    def random_node(self, choice: Sequence[Step]) -> Ref:
        step: Step = self.pick(choice)
        return step(self, self.value())

    # ---- operations -------------------------------------------------------------------------------------------------

    def unary(self, x: Ref) -> Ref:
        type = self.type(x)
        return self.add(self.pick(_UNARY[type.dtype.kind]), (x,), type)

    def binary(self, x: Ref) -> Ref:
        type = self.type(x)
        return self.add(self.pick(_BINARY[type.dtype.kind]), (x, self.like(type)), type)

    def compare(self, x: Ref) -> Ref:
        type = self.type(x)
        direction = self.pick(("EQ", "NE") if type.dtype.is_complex else ("EQ", "NE", "LT", "GE"))
        truth = TensorType(type.shape, BOOL)
        pred = self.add("compare", (x, self.like(type)), truth, comparison_direction=direction)
        return self.add("select", (pred, self.like(type), x), type)

    def convert(self, x: Ref) -> Ref:
        target = TABLE[self.pick(DTYPES)]
        return self.add("convert", (x,), TensorType(self.type(x).shape, target))

    def broadcast(self, x: Ref) -> Ref:
        type = self.type(x)
        if type.rank > 4:
            return self.transpose(x)
        extra = int(self.random.integers(0, 6 - type.rank))
        rank = type.rank + extra
        axes = tuple(int(a) for a in self.random.permutation(rank)[: type.rank])
        shape = list(self.shape(rank))
        for size, axis in zip(type.shape, axes, strict=True):
            shape[axis] = self.pick((1, 2, 3)) if size == 1 else size
        result = TensorType(tuple(shape), type.dtype)
        return self.add("broadcast_in_dim", (x,), result, broadcast_dimensions=axes)

    def transpose(self, x: Ref) -> Ref:
        type = self.type(x)
        permutation = tuple(int(a) for a in self.random.permutation(type.rank))
        result = TensorType(tuple(type.shape[a] for a in permutation), type.dtype)
        return self.add("transpose", (x,), result, permutation=permutation)

    def reshape(self, x: Ref) -> Ref:
        type = self.type(x)
        factors: list[int] = []
        rest = type.size
        while rest > 1 and len(factors) < 4:
            divisors = [d for d in (2, 3, 4, 6, rest) if rest % d == 0]
            factors.append(self.pick(divisors))
            rest //= factors[-1]
        shape = [*factors, rest] if type.size else [0, *self.shape(2)]
        if self.random.random() < 0.3:
            shape.insert(0, 1)
        return self.add("reshape", (x,), TensorType(tuple(int(s) for s in shape), type.dtype))

    def slice(self, x: Ref) -> Ref:
        type = self.type(x)
        starts = [int(self.random.integers(0, size + 1)) for size in type.shape]
        if self.random.random() < 0.8:
            starts = [min(start, max(size - 1, 0)) for start, size in zip(starts, type.shape, strict=True)]
        limits = [int(self.random.integers(a, size + 1)) for a, size in zip(starts, type.shape, strict=True)]
        if self.random.random() < 0.8:
            limits = list(type.shape)
        strides = [self.pick((1, 1, 2, 3)) for _ in type.shape]
        shape = tuple(-(-(b - a) // s) for a, b, s in zip(starts, limits, strides, strict=True))
        attrs = {"start_indices": tuple(starts), "limit_indices": tuple(limits), "strides": tuple(strides)}
        return self.add("slice", (x,), TensorType(shape, type.dtype), **attrs)

    def reverse(self, x: Ref) -> Ref:
        type = self.type(x)
        axes = tuple(a for a in range(type.rank) if self.random.random() < 0.5)
        return self.add("reverse", (x,), type, dimensions=axes)

    def pad(self, x: Ref) -> Ref:
        type = self.type(x)
        low = [self.pick((0, 1, 2, -1)) for _ in type.shape]
        interior = [self.pick((0, 0, 1, 2)) for _ in type.shape]
        sizes = [size + max(size - 1, 0) * i for size, i in zip(type.shape, interior, strict=True)]
        high = [max(self.pick((0, 1, -1, 2)), -(size + a)) for size, a in zip(sizes, low, strict=True)]
        shape = tuple(a + size + b for a, size, b in zip(low, sizes, high, strict=True))
        if min(shape, default=0) < 0 or np.prod(shape, dtype=object) > 4096:
            return self.reverse(x)
        attrs = {"edge_padding_low": tuple(low), "edge_padding_high": tuple(high), "interior_padding": tuple(interior)}
        return self.add("pad", (x, self.like(TensorType((), type.dtype))), TensorType(shape, type.dtype), **attrs)

    def concatenate(self, x: Ref) -> Ref:
        type = self.type(x)
        if not type.rank:
            return self.unary(x)
        axis = int(self.random.integers(type.rank))
        parts = [x]
        for _ in range(int(self.random.integers(0, 3))):
            shape = (*type.shape[:axis], self.pick((0, 1, 2, 3)), *type.shape[axis + 1 :])
            parts.append(self.like(TensorType(shape, type.dtype)))
        joined = sum(self.type(part).shape[axis] for part in parts)
        result = TensorType((*type.shape[:axis], joined, *type.shape[axis + 1 :]), type.dtype)
        return self.add("concatenate", parts, result, dimension=axis)

    def order(self, dtype: DType, fma: bool = False) -> Accumulate:
        wide = None
        if self.random.random() < 0.4:
            names = {"float": ("float32", "float64", "float128", "bfloat16"), "int": ("int64", "int16")}
            names |= {"uint": ("uint32",), "complex": ("complex128",), "bool": ("bool",)}
            wide = NAMED[self.pick(names[dtype.kind])]
        order = self.pick(("sequential", "pairwise", "blocked"))
        fused = fma and dtype.is_float and order != "pairwise" and bool(self.random.random() < 0.5)
        return Accumulate(wide, order, self.pick((1, 2, 3, 7)) if order == "blocked" else 0, fused)

    def reduce(self, x: Ref) -> Ref:
        type = self.type(x)
        axes = tuple(int(a) for a in self.random.permutation(type.rank) if self.random.random() < 0.5)
        reducer = self.pick(_REDUCERS[type.dtype.kind])
        attrs: dict[str, Any] = {"reducer": reducer, "dimensions": axes}
        if reducer in ("add", "multiply") and self.random.random() < 0.6:
            attrs["accumulate"] = self.order(type.dtype)
        shape = tuple(size for axis, size in enumerate(type.shape) if axis not in axes)
        total = self.add("reduce", (x,), TensorType(shape, type.dtype), **attrs)
        if self.random.random() < 0.5:
            return total
        kept = tuple(axis for axis in range(type.rank) if axis not in axes)
        back = self.add("broadcast_in_dim", (total,), type, broadcast_dimensions=kept)
        op = self.pick(_BINARY[type.dtype.kind])
        return self.add(op, (x, back) if self.random.random() < 0.5 else (back, x), type)

    def argument(self, x: Ref) -> Ref:
        type = self.type(x)
        if not type.rank or 0 in type.shape or type.dtype.is_complex:
            return self.unary(x)
        axis = int(self.random.integers(type.rank))
        shape = (*type.shape[:axis], *type.shape[axis + 1 :])
        result = TensorType(shape, NAMED[self.pick(("int32", "int64", "uint8"))])
        return self.add(self.pick(("argmax", "argmin")), (x,), result, dimension=axis)

    def dot(self, x: Ref) -> Ref:
        left = self.type(x)
        if left.rank < 1:
            return self.unary(x)
        axes = [int(a) for a in self.random.permutation(left.rank)]
        batch = axes[: int(self.random.integers(0, min(2, left.rank)))]
        rest = axes[len(batch) :]
        summed = rest[: int(self.random.integers(0, min(3, len(rest) + 1)))]
        free = self.shape(int(self.random.integers(0, 2)))
        sizes = [left.shape[a] for a in (*batch, *summed)] + list(free)
        places = [int(p) for p in self.random.permutation(len(sizes))]
        shape = [0] * len(sizes)
        for size, position in zip(sizes, places, strict=True):
            shape[position] = size
        right = self.like(TensorType(tuple(shape), left.dtype))
        if self.random.random() < 0.3:
            right = self.unary(right) if self.type(right).dtype == left.dtype else right
        if self.type(right).dtype != left.dtype:
            right = self.input(TensorType(tuple(shape), left.dtype))
        lhs_free = [a for a in range(left.rank) if a not in (*batch, *summed)]
        rhs_free = [p for p in range(len(sizes)) if p not in places[: len(batch) + len(summed)]]
        result = [left.shape[a] for a in batch] + [left.shape[a] for a in lhs_free] + [shape[p] for p in rhs_free]
        attrs: dict[str, Any] = {
            "lhs_batching_dimensions": tuple(batch),
            "rhs_batching_dimensions": tuple(places[: len(batch)]),
            "lhs_contracting_dimensions": tuple(summed),
            "rhs_contracting_dimensions": tuple(places[len(batch) : len(batch) + len(summed)]),
        }
        if self.random.random() < 0.6:
            attrs["accumulate"] = self.order(left.dtype, fma=True)
        return self.add("dot_general", (x, right), TensorType(tuple(result), left.dtype), **attrs)

    def iota(self, x: Ref) -> Ref:
        shape = self.shape(int(self.random.integers(1, 4)))
        dtype = TABLE[self.pick([name for name in DTYPES if name != "bool"])]
        axis = int(self.random.integers(len(shape)))
        return self.add("iota", (), TensorType(shape, dtype), iota_dimension=axis)

    def parts(self, x: Ref) -> Ref:
        type = self.type(x)
        if type.dtype.is_complex:
            part = TensorType(type.shape, type.dtype.component)
            return self.add(self.pick(("real", "imag")), (x,), part)
        if type.dtype.is_float:
            return self.add("complex", (x, self.like(type)), TensorType(type.shape, complex_of(type.dtype)))
        return self.binary(x)

    def indices(self, shape: Sequence[int], high: int) -> Ref:
        """Integers of which most lie from -1 to ``high``."""
        type = TensorType(tuple(shape), NAMED[self.pick(("int32", "int64", "int8", "uint8", "uint64"))])
        if self.random.random() < 0.2:
            return self.input(type)
        least = 0 if type.dtype.kind == "uint" else -1
        values = self.random.integers(least, high + 1, type.shape)
        words = np.array(values).astype(type.dtype.word_dtype)
        return self.add("constant", (), type, value=Tensor(type, np.array(words, order="C").reshape(type.shape)))

    def dynamic_slice(self, x: Ref) -> Ref:
        type = self.type(x)
        sizes = tuple(int(self.random.integers(0, size + 1)) for size in type.shape)
        first = self.indices((), 3)
        starts = [first, *(self.like(self.type(first)) for _ in sizes)][: len(sizes)]
        if self.random.random() < 0.5:
            return self.add("dynamic_slice", (x, *starts), TensorType(sizes, type.dtype), slice_sizes=sizes)
        update = self.like(TensorType(sizes, type.dtype))
        return self.add("dynamic_update_slice", (x, update, *starts), type)

    def gather(self, x: Ref) -> Ref:
        type = self.type(x)
        axes = [int(a) for a in self.random.permutation(type.rank)]
        mapped = axes[: int(self.random.integers(0, type.rank + 1))]
        batch = [axes[-1]] if len(mapped) < type.rank and self.random.random() < 0.4 else []
        space = list(self.shape(int(self.random.integers(0, 3))))
        position = int(self.random.integers(0, len(space) + 1))
        if batch:
            space.insert(position, type.shape[batch[0]])
        vector = int(self.random.integers(0, len(space) + 1))
        if len(mapped) == 1 and self.random.random() < 0.3:
            vector, shape = len(space), list(space)
        else:
            shape = [*space[:vector], len(mapped), *space[vector:]]
        indices = self.indices(shape, 3)
        own = [position + (position >= vector)] if batch else []
        sizes = [int(self.random.integers(0, size + 1)) for size in type.shape]
        collapsed = [a for a in range(type.rank) if a not in batch and type.shape[a] and self.random.random() < 0.3]
        for axis in (*collapsed, *batch):
            sizes[axis] = 1 if type.shape[axis] else 0
        if batch and not type.shape[batch[0]]:
            return self.transpose(x)
        window = [sizes[a] for a in range(type.rank) if a not in (*collapsed, *batch)]
        rank = len(space) + len(window)
        offsets = sorted(int(a) for a in self.random.permutation(rank)[: len(window)])
        sizes_left, space_left = iter(window), iter(space)
        result = tuple(next(sizes_left if a in offsets else space_left) for a in range(rank))
        attrs: dict[str, Any] = {
            "offset_dims": tuple(offsets),
            "collapsed_slice_dims": tuple(collapsed),
            "operand_batching_dims": tuple(batch),
            "start_indices_batching_dims": tuple(own),
            "start_index_map": tuple(mapped),
            "index_vector_dim": vector,
            "slice_sizes": tuple(sizes),
            "mode": "clip",
        }
        if self.random.random() < 0.5:
            attrs |= {"mode": "fill", "fill_value": self.words(TensorType((), type.dtype))}
        return self.add("gather", (x, indices), TensorType(result, type.dtype), **attrs)

    def scatter(self, x: Ref) -> Ref:
        type = self.type(x)
        axes = [int(a) for a in self.random.permutation(type.rank)]
        mapped = axes[: int(self.random.integers(0, type.rank + 1))]
        batch = [axes[-1]] if len(mapped) < type.rank and self.random.random() < 0.4 else []
        space = list(self.shape(int(self.random.integers(0, 3))))
        position = int(self.random.integers(0, len(space) + 1))
        if batch:
            space.insert(position, type.shape[batch[0]])
        vector = int(self.random.integers(0, len(space) + 1))
        indices = self.indices([*space[:vector], len(mapped), *space[vector:]], 3)
        own = [position + (position >= vector)] if batch else []
        inserted = [a for a in range(type.rank) if a not in batch and type.shape[a] and self.random.random() < 0.3]
        if any(not type.shape[a] for a in batch):
            return self.transpose(x)
        kept = [a for a in range(type.rank) if a not in (*inserted, *batch)]
        window = [type.shape[a] if self.random.random() < 0.6 else self.pick(range(type.shape[a] + 1)) for a in kept]
        rank = len(space) + len(window)
        places = sorted(int(a) for a in self.random.permutation(rank)[: len(window)])
        sizes_left, space_left = iter(window), iter(space)
        shape = tuple(next(sizes_left if a in places else space_left) for a in range(rank))
        kinds = {"bool": ("replace", "minimum", "maximum"), "complex": ("replace", "add", "multiply")}
        reducer = self.pick(kinds.get(type.dtype.kind, ("replace", "add", "multiply", "minimum", "maximum")))
        attrs: dict[str, Any] = {
            "update_window_dims": tuple(places),
            "inserted_window_dims": tuple(inserted),
            "input_batching_dims": tuple(batch),
            "scatter_indices_batching_dims": tuple(own),
            "scatter_dims_to_operand_dims": tuple(mapped),
            "index_vector_dim": vector,
            "mode": self.pick(("clip", "drop")),
            "reducer": reducer,
        }
        return self.add("scatter", (x, indices, self.like(TensorType(shape, type.dtype))), type, **attrs)

    def window(self, rank: int) -> dict[str, Any]:
        return {
            "window_dimensions": tuple(self.pick((1, 1, 2, 3)) for _ in range(rank)),
            "window_strides": tuple(self.pick((1, 1, 2)) for _ in range(rank)),
            "padding_low": tuple(self.pick((0, 0, 1, 2, -1)) for _ in range(rank)),
            "padding_high": tuple(self.pick((0, 0, 1, 2, -1)) for _ in range(rank)),
        }

    def reduce_window(self, x: Ref) -> Ref:
        type = self.type(x)
        if type.rank > 3:
            return self.reverse(x)
        reducer = self.pick(_REDUCERS[type.dtype.kind])
        attrs = self.window(type.rank)
        attrs |= {
            "base_dilations": tuple(self.pick((1, 1, 2)) for _ in type.shape),
            "window_dilations": tuple(self.pick((1, 1, 2)) for _ in type.shape),
            "reducer": reducer,
        }
        if reducer in ("add", "multiply") and self.random.random() < 0.5:
            attrs["accumulate"] = self.order(type.dtype)
        shape = self.positions(
            type.shape, attrs["window_dimensions"], attrs, attrs["base_dilations"], attrs["window_dilations"]
        )
        return self.add("reduce_window", (x,), TensorType(shape, type.dtype), **attrs)

    def positions(
        self,
        shape: Sequence[int],
        windows: Sequence[int],
        attrs: dict[str, Any],
        base: Sequence[int],
        holes: Sequence[int],
    ) -> tuple[int, ...]:
        sizes = []
        for axis, (size, window) in enumerate(zip(shape, windows, strict=True)):
            padded = attrs["padding_low"][axis] + dilated(size, base[axis]) + attrs["padding_high"][axis]
            window = dilated(window, holes[axis])
            sizes.append(window_positions(max(0, padded), window, attrs["window_strides"][axis]))
        return tuple(sizes)

    def pool_gradient(self, x: Ref) -> Ref:
        type = self.type(x)
        if type.rank > 3 or type.dtype.kind not in ("int", "uint", "float"):
            return self.reverse(x)
        attrs = self.window(type.rank)
        ones = (1,) * type.rank
        shape = self.positions(type.shape, attrs["window_dimensions"], attrs, ones, ones)
        attrs["select"] = self.pick(("GE", "LE"))
        return self.add("select_and_scatter", (x, self.like(TensorType(shape, type.dtype))), type, **attrs)

    def convolution(self, x: Ref) -> Ref:
        type = self.type(x)
        if type.rank < 2 or type.rank > 4 or type.dtype.is_bool:
            return self.reverse(x)
        lhs = tuple(int(a) for a in self.random.permutation(type.rank))
        batch, features, *space = (type.shape[a] for a in lhs)
        groups = batch_groups = 1
        if self.random.random() < 0.4 and features % 2 == 0 and features:
            groups = 2
        elif self.random.random() < 0.4 and batch % 2 == 0 and batch:
            batch_groups = 2
        outputs = self.pick((1, 2, 3)) * groups * batch_groups
        attrs = self.window(len(space))
        window = attrs.pop("window_dimensions")
        logical = (outputs, features // groups, *window)
        rhs, out = (tuple(int(a) for a in self.random.permutation(type.rank)) for _ in range(2))
        kernel = tuple(logical[rhs.index(a)] for a in range(type.rank))
        attrs |= {
            "lhs_dimensions": lhs,
            "rhs_dimensions": rhs,
            "output_dimensions": out,
            "lhs_dilation": tuple(self.pick((1, 1, 2)) for _ in space),
            "rhs_dilation": tuple(self.pick((1, 1, 2)) for _ in space),
            "window_reversal": tuple(self.pick((0, 1)) for _ in space),
            "feature_group_count": groups,
            "batch_group_count": batch_groups,
        }
        if self.random.random() < 0.6:
            attrs["accumulate"] = self.order(type.dtype, fma=True)
        places = self.positions(space, window, attrs, attrs["lhs_dilation"], attrs["rhs_dilation"])
        result = (batch // batch_groups, outputs, *places)
        shape = tuple(result[out.index(a)] for a in range(type.rank))
        weights = self.like(TensorType(kernel, type.dtype))
        return self.add("convolution", (x, weights), TensorType(shape, type.dtype), **attrs)

    def cumulative(self, x: Ref) -> Ref:
        type = self.type(x)
        if not type.rank:
            return self.unary(x)
        reducer = self.pick(_REDUCERS[type.dtype.kind])
        if type.dtype.name == "float32" and self.random.random() < 0.2:
            reducer = "logaddexp"
        attrs: dict[str, Any] = {"reducer": reducer, "dimension": int(self.random.integers(type.rank))}
        attrs["reverse"] = bool(self.random.random() < 0.5)
        if reducer in ("add", "multiply") and self.random.random() < 0.4:
            attrs["accumulate"] = Accumulate(self.order(type.dtype).dtype)
        return self.add("cumulative", (x,), type, **attrs)

    def sort(self, x: Ref) -> Ref:
        """Of several operands by some of them, one of the results."""
        type = self.type(x)
        if not type.rank:
            return self.unary(x)
        others = [self.like(type) for _ in range(int(self.random.integers(0, 3)))]
        keys = int(self.random.integers(1, len(others) + 2))
        attrs = {"dimension": int(self.random.integers(type.rank)), "num_keys": keys}
        attrs["descending"] = bool(self.random.integers(2))
        self.nodes.append(Node(len(self.nodes), "sort", (x, *others), attrs, (type,) * (1 + len(others))))
        return Ref(len(self.nodes) - 1, int(self.random.integers(1 + len(others))))

    def top_k(self, x: Ref) -> Ref:
        type = self.type(x)
        if not type.rank or type.dtype.is_complex:
            return self.unary(x)
        axis = int(self.random.integers(type.rank))
        count = int(self.random.integers(0, type.shape[axis] + 1))
        shape = (*type.shape[:axis], count, *type.shape[axis + 1 :])
        types = TensorType(shape, type.dtype), TensorType(shape, NAMED["int16"])
        self.nodes.append(Node(len(self.nodes), "top_k", (x,), {"dimension": axis, "k": count}, types))
        return Ref(len(self.nodes) - 1, int(self.random.integers(2)))

    def fft(self, x: Ref) -> Ref:
        """Over some of the last axes."""
        type = self.type(x)
        lengths = type.shape[int(self.random.integers(type.rank)) :] if type.rank else ()
        if not lengths or 0 in lengths or not (type.dtype.is_float or type.dtype.is_complex):
            return self.unary(x)
        kind = "RFFT" if type.dtype.is_float else self.pick(("FFT", "IFFT", "IRFFT"))
        result = type
        if kind == "RFFT":
            result = TensorType((*type.shape[:-1], lengths[-1] // 2 + 1), complex_of(type.dtype))
        elif kind == "IRFFT":
            last = max(1, 2 * lengths[-1] - 2 + int(self.random.integers(2)))
            lengths = (*lengths[:-1], last)
            result = TensorType((*type.shape[:-1], last), type.dtype.component)
        return self.add("fft", (x,), result, fft_type=kind, fft_length=lengths)


STEPS = (
    *(Builder.unary, Builder.binary, Builder.binary, Builder.compare, Builder.convert, Builder.broadcast),
    *(Builder.transpose, Builder.reshape, Builder.slice, Builder.reverse, Builder.pad, Builder.concatenate),
    *(Builder.reduce, Builder.reduce, Builder.argument, Builder.dot, Builder.iota, Builder.parts),
    *(Builder.dynamic_slice, Builder.gather, Builder.scatter, Builder.reduce_window, Builder.pool_gradient),
    *(Builder.convolution, Builder.cumulative),
)
SERIES = (Builder.sort, Builder.top_k, Builder.fft)
"""Operations that take several kernels."""


def random_graph(seed: int, steps: int = 8, choice: Sequence[Step] = STEPS) -> tuple[Body, list[Tensor]]:
    """A random body of about so many operations, several of its values being outputs, and words for its inputs."""
    random = np.random.default_rng(seed)
    builder = Builder(random)
    builder.input(TensorType(builder.shape(), TABLE[builder.pick(DTYPES)]))
    last = Ref(0)
    for _ in range(steps):
        last = builder.random_node(choice)
        while builder.type(last).size > 600:
            type = builder.type(last)
            axis = int(np.argmax(type.shape))
            shape = (*type.shape[:axis], 1, *type.shape[axis + 1 :])
            ones = (1,) * type.rank
            limits = tuple(1 if a == axis else s for a, s in enumerate(type.shape))
            attrs = {"start_indices": (0,) * type.rank, "limit_indices": limits, "strides": ones}
            last = builder.add("slice", (last,), TensorType(shape, type.dtype), **attrs)
    outputs = [last, *(Ref(n.id) for n in builder.nodes if random.random() < 0.15)]
    body = builder.body(outputs)
    return body, [random_tensor(random, type) for type in body.input_types]
