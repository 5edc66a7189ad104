"""Random permitted executions of a graph: each one does what a policy permits, at random.

An execution sums in random orders and groupings, fuses products with additions, flushes subnormal numbers or keeps
them, errs in elementary functions by as many units in the last place as the policy says, keeps narrow results in
float32 until they are returned, and divides by multiplying with reciprocals where that is permitted. Everything it
computes is computed by the reference's evaluators. Whatever it gives must lie in the enclosure.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlir.backends.reference import evaluate_node
from tlir.backends.reference.control import REGION_EVALUATORS
from tlir.backends.reference.conversion import convert
from tlir.backends.reference.layout import tail
from tlir.compare.bounds import Freedoms
from tlir.compare.bounds.enclosure import values_of
from tlir.compare.bounds.intervals import has_one, in_float64, ulp
from tlir.compare.bounds.propagate import fusable, shared
from tlir.floatlib import words as layout
from tlir.floatlib.format import Format
from tlir.ir.graph import Body, Node, Ref
from tlir.ir.ops import OPERATIONS, Accumulate
from tlir.ir.tensor import Tensor
from tlir.ir.types import NAMED, DType, TensorType

Observe = Callable[[Node, tuple[Tensor, ...]], None]

FLOAT32, FLOAT64 = NAMED["float32"], NAMED["float64"]

_KEEPERS = ("arithmetic", "elementary", "special", "shape")
"""Families whose operations take narrow numbers that are kept in float32."""

_EXACT_SIGN_OPS = ("negate", "abs", "copysign")
_BITS = (*_EXACT_SIGN_OPS, "constant", "iota", "bitcast_convert", "next_after")
"""Operations on bits, which keep subnormal numbers; next_after too, which counts them."""

_ORDERED = ("reduce", "reduce_window", "dot_general", "convolution")


@dataclass
class Execution:
    """One execution: the random choices that hold for all of it. ``only`` limits what differs to these nodes of the
    graph itself."""

    freedoms: Freedoms
    rng: np.random.Generator
    only: Collection[int] | None = None

    def __post_init__(self) -> None:
        free, coin = self.freedoms, self.rng.random
        self.flush = free.flush and coin() < 0.5
        self.fused = coin() if free.fma else 0.0
        """The probability with which a product is fused."""
        self.excess = free.excess and coin() < 0.5
        self.error = coin() < 0.8
        """Whether elementary functions err at all."""
        self.extreme = coin() < 0.3
        """Whether they err by as much as they may, all in one direction or both."""

    # ---- graphs -----------------------------------------------------------------------------------------------------

    def run(
        self, body: Body, inputs: Sequence[Tensor], observe: Observe | None = None, top: bool = True
    ) -> list[Tensor]:
        """The outputs; ``observe`` is called after each node of the body with its results in their own formats."""
        given = dict(zip(body.input_ids, inputs, strict=True))
        values: dict[Ref, Tensor] = {}
        kept: dict[Ref, Tensor] = {}
        fused, fixed = fusable(body), shared(body)
        with np.errstate(all="ignore"):
            for node in body.nodes:
                if node.op == "input":
                    results: tuple[Tensor, ...] = (given[node.id],)
                elif top and self.only is not None and node.id not in self.only:
                    results = evaluate_node(node, tuple(values[ref] for ref in node.inputs))
                else:
                    results = self._node(body, node, values, kept, fused, fixed)
                for k, tensor in enumerate(results):
                    ref = Ref(node.id, k)
                    if tensor.type != node.types[k]:  # kept in float32
                        kept[ref] = tensor
                        tensor = narrowed(tensor, node.types[k].dtype)
                    values[ref] = tensor
                if observe is not None:
                    observe(node, tuple(values[Ref(node.id, k)] for k in range(len(node.types))))
            return [values[ref] for ref in body.outputs]

    def _node(
        self,
        body: Body,
        node: Node,
        values: dict[Ref, Tensor],
        kept: dict[Ref, Tensor],
        fused: frozenset[int],
        fixed: frozenset[int],
    ) -> tuple[Tensor, ...]:
        operands = tuple(values[ref] for ref in node.inputs)
        family = OPERATIONS[node.op].family
        if node.op in REGION_EVALUATORS:
            return tuple(
                REGION_EVALUATORS[node.op](node, operands, lambda region, given: self.run(region, given, top=False))
            )
        dtype = operands[0].dtype if operands else node.type.dtype
        if self.excess and narrow(node.type.dtype) and node.op != "convert":
            wide = self._kept_wide(node, operands, kept)
            if wide is not None:
                node, operands = wide
                dtype = operands[0].dtype
        elif self.excess and narrow(dtype) and node.op in ("convert", "compare") and not narrow(node.type.dtype):
            operands = tuple(kept.get(ref, values[ref]) for ref in node.inputs)
            if node.op == "compare":
                operands = tuple(widened(operand) for operand in operands)
            dtype = operands[0].dtype
        arithmetic = family not in ("shape", "indexing", "logic") and node.op not in _BITS
        if self.flush and (arithmetic or node.op in ("compare", "clamp")):
            operands = tuple(self._flushed(operand) for operand in operands)
        results = self._computed(body, node, operands, dtype, values, fused, fixed)
        if self.flush and arithmetic:
            results = tuple(self._flushed(result) for result in results)
        return results

    def _flushed(self, tensor: Tensor) -> Tensor:
        """The tensor with subnormals flushed, if those of its format are (``Freedoms.flushed_below``)."""
        dtype = tensor.dtype
        if dtype.format is None or self.freedoms.flushed_below(dtype.float_format) < 2.0**dtype.float_format.emin:
            return tensor
        return flushed(tensor)

    def _kept_wide(
        self, node: Node, operands: tuple[Tensor, ...], kept: dict[Ref, Tensor]
    ) -> tuple[Node, tuple[Tensor, ...]] | None:
        """The node on float32 operands and with a float32 result, where its family can do that."""
        if OPERATIONS[node.op].family not in _KEEPERS and node.op not in ("select", "clamp"):
            return None
        if node.op in ("next_after", "bitcast_convert") or node.type.dtype.is_complex:
            return None
        moves = OPERATIONS[node.op].family == "shape" or node.op in ("select", "clamp", *_EXACT_SIGN_OPS)
        if moves and not any(ref in kept for ref in node.inputs):
            return None
        given = tuple(
            widened(kept.get(ref, operand)) if narrow(operand.dtype) else operand
            for ref, operand in zip(node.inputs, operands, strict=True)
        )
        types = tuple(replace(type, dtype=FLOAT32) if narrow(type.dtype) else type for type in node.types)
        return replace(node, types=types), given

    # ---- operations -------------------------------------------------------------------------------------------------

    def _computed(
        self,
        body: Body,
        node: Node,
        operands: tuple[Tensor, ...],
        dtype: DType,
        values: dict[Ref, Tensor],
        fused: frozenset[int],
        fixed: frozenset[int],
    ) -> tuple[Tensor, ...]:
        family = OPERATIONS[node.op].family
        if node.op in ("add", "subtract") and dtype.is_float and self.fused:
            contracted = self._contracted(body, node, operands, values, fused)
            if contracted is not None:
                return contracted
        if (
            node.op in _ORDERED
            and node.type.dtype.format is not None
            and node.attrs.get("reducer", "add")
            in (
                "add",
                "multiply",
            )
        ):
            return (self._reordered(node, operands),)
        if (
            node.op == "cumulative"
            and node.attrs["reducer"] == "add"
            and self.freedoms.order
            and dtype.format is not None
        ):
            return (self._split_total(node, operands[0]),)
        if node.op == "divide" and dtype.is_float and self._takes_reciprocal(node, dtype, fixed):
            one = Tensor(operands[0].type, np.broadcast_to(_one(dtype), operands[0].words.shape).copy())
            inverse = evaluate_node(replace(node, types=(operands[1].type,)), (one, operands[1]))[0]
            return evaluate_node(replace(node, op="multiply"), (operands[0], inverse))
        if (family in ("elementary", "special") or node.op == "sqrt") and dtype.is_float and self.freedoms.accuracy:
            return (self._function(node, operands),)
        return evaluate_node(node, operands)

    def _takes_reciprocal(self, node: Node, dtype: DType, fixed: frozenset[int]) -> bool:
        through = self.freedoms.reciprocal
        permitted = through == "always" or (through == "constant" and node.inputs[1].node in fixed)
        return permitted and bool(self.rng.random() < 0.5) and has_one(dtype.float_format)

    def _contracted(
        self, body: Body, node: Node, operands: tuple[Tensor, ...], values: dict[Ref, Tensor], fused: frozenset[int]
    ) -> tuple[Tensor, ...] | None:
        """x * y + z with one rounding, where an operand is a product."""
        order = [0, 1] if self.rng.random() < 0.5 else [1, 0]
        for k in order:
            ref = node.inputs[k]
            producer = body.nodes[ref.node]
            if producer.op != "multiply" or ref.node not in fused or self.rng.random() >= self.fused:
                continue
            factors = [values[other] for other in producer.inputs]
            if factors[0].dtype != operands[k].dtype:
                continue
            if self.flush:
                factors = [self._flushed(factor) for factor in factors]
            addend = operands[1 - k]
            if node.op == "subtract":
                if not addend.dtype.float_format.signed:
                    continue  # there is nothing to negate
                if k == 0:
                    addend = evaluate_node(_unary(node, "negate", addend.type), (addend,))[0]
                else:
                    factors[0] = evaluate_node(_unary(node, "negate", addend.type), (factors[0],))[0]
            return evaluate_node(replace(node, op="fma", attrs={}), (factors[0], factors[1], addend))
        return None

    def _accumulate(self, node: Node, own: Accumulate, products: bool) -> Accumulate:
        """A random order; products fused where that is permitted; sometimes a wider accumulator."""
        rng, free = self.rng, self.freedoms
        order, block = own.order, own.block
        if free.order:
            order = str(rng.choice(["sequential", "pairwise", "blocked"]))
            block = int(rng.choice([2, 3, 4, 8, 16, 32])) if order == "blocked" else 0
        result = node.type.dtype
        dtype = own.dtype
        floats = result.is_float and (dtype is None or dtype.is_float)
        current = dtype or result
        if floats and free.order and rng.random() < 0.25 and current.float_format.precision < 53:
            dtype = FLOAT64 if in_float64(current.float_format) else dtype
        fma = own.fma
        if products and floats and free.fma:
            fma = bool(rng.random() < 0.5)
        if order == "pairwise" or not floats:
            fma = False
        return Accumulate(dtype, order, block, fma)

    def _reordered(self, node: Node, operands: tuple[Tensor, ...]) -> Tensor:
        own = node.attrs.get("accumulate") or Accumulate()
        products = node.op in ("dot_general", "convolution")
        order = self._accumulate(node, own, products)
        attrs = {**node.attrs, "accumulate": order}
        given = operands
        if self.freedoms.order and node.op == "reduce" and node.attrs["dimensions"]:
            for axis in node.attrs["dimensions"]:
                given = (permuted(given[0], axis, self.rng.permutation(given[0].shape[axis])),)
        elif self.freedoms.order and node.op == "dot_general":
            pairs = zip(node.attrs["lhs_contracting_dimensions"], node.attrs["rhs_contracting_dimensions"], strict=True)
            for left, right in pairs:
                places = self.rng.permutation(operands[0].shape[left])
                given = (permuted(given[0], left, places), permuted(given[1], right, places))
        return evaluate_node(replace(node, attrs=attrs), given)[0]

    def _split_total(self, node: Node, operand: Tensor) -> Tensor:
        """Running totals of two parts, the second ones added to the total of the first."""
        axis = node.attrs["dimension"]
        size = operand.shape[axis]
        if size < 2 or self.rng.random() < 0.2:
            return evaluate_node(node, (operand,))[0]
        cut = int(self.rng.integers(1, size))
        reverse = node.attrs.get("reverse", False)
        index = np.arange(size)[::-1] if reverse else np.arange(size)
        ordered = permuted(operand, axis, index)
        forward = replace(node, attrs={**node.attrs, "reverse": False})

        def total(first: int, last: int) -> Tensor:
            part = permuted(ordered, axis, np.arange(first, last))
            return evaluate_node(replace(forward, types=(part.type,)), (part,))[0]

        head, rest = total(0, cut), total(cut, size)
        last = permuted(head, axis, np.full(rest.shape[axis], cut - 1))
        moved = evaluate_node(replace(_unary(node, "add", rest.type), inputs=node.inputs * 2), (last, rest))[0]
        words = np.concatenate((head.words, moved.words), axis=axis)
        return permuted(Tensor(operand.type, np.ascontiguousarray(words)), axis, index)

    def _function(self, node: Node, operands: tuple[Tensor, ...]) -> Tensor:
        """An elementary function with an error of as many units as are permitted, correctly rounded at times."""
        fmt = operands[0].dtype.float_format
        inner, ulps, floor = self.freedoms.ulps(node.op, fmt)
        if inner == fmt:
            exact = evaluate_node(node, operands)[0]
            return self._erring(exact, ulps, floor) if self.error else exact
        wide = tuple(widened(operand) for operand in operands)
        result = evaluate_node(replace(node, types=(replace(node.type, dtype=FLOAT32),)), wide)[0]
        if self.error:
            result = self._erring(result, ulps, floor)
        return result if node.type.dtype == FLOAT32 else narrowed(result, node.type.dtype)

    def _erring(self, exact: Tensor, ulps: float, floor: float) -> Tensor:
        """Correctly rounded words moved by steps from number to number, no further than the error permits."""
        fmt = exact.dtype.float_format
        if ulps <= 0.5 or exact.dtype.limbs > 1 or not in_float64(fmt):
            return exact
        values = values_of(exact).lo
        size = np.abs(values)
        # half a unit is the correct rounding's own; below a power of two units are smaller
        unit = ulp(fmt, np.nextafter(size, 0.0))
        room = ulps * np.maximum(unit, ulp(fmt, np.full_like(size, floor)) if floor else 0.0) - 0.5 * ulp(fmt, size)
        steps = np.floor(np.maximum(room, 0.0) / ulp(fmt, size))
        steps = np.where(np.isfinite(values) & (values != 0), np.minimum(steps, 2.0**20), 0.0)
        if self.extreme:
            chosen = steps * self.rng.choice([-1.0, 1.0], size=steps.shape)
        else:
            chosen = np.rint(self.rng.uniform(-1.0, 1.0, size=steps.shape) * steps)
        magnitude = layout.magnitudes(fmt, exact.words).astype(np.int64)
        moved = magnitude + chosen.astype(np.int64)
        moved = np.where((moved <= 0) | (moved > fmt.max_finite_magnitude), magnitude, moved)
        sign = exact.words - layout.magnitudes(fmt, exact.words)
        words = np.asarray(moved.astype(exact.words.dtype) + sign)
        result = Tensor(exact.type, words.astype(exact.words.dtype))
        distance = np.abs(values_of(result).lo - values)
        return Tensor(exact.type, np.where(distance <= np.maximum(room, 0.0), result.words, exact.words))


# ---- helpers --------------------------------------------------------------------------------------------------------


def narrow(dtype: DType) -> bool:
    """A floating-point type narrower than float32 whose numbers float32 has."""
    if not dtype.is_float:
        return False
    fmt: Format = dtype.float_format
    inner = FLOAT32.float_format
    return fmt.precision < 24 and fmt.emax <= inner.emax and fmt.emin - fmt.fraction_bits >= inner.emin - 23


def widened(tensor: Tensor) -> Tensor:
    """A narrow tensor in float32, exactly."""
    if not narrow(tensor.dtype):
        return tensor
    return Tensor(replace(tensor.type, dtype=FLOAT32), np.asarray(convert(tensor.dtype, FLOAT32, tensor.words)))


def narrowed(tensor: Tensor, dtype: DType) -> Tensor:
    """A tensor rounded to a dtype."""
    if tensor.dtype == dtype:
        return tensor
    return Tensor(replace(tensor.type, dtype=dtype), np.asarray(convert(tensor.dtype, dtype, tensor.words)))


def flushed(tensor: Tensor) -> Tensor:
    """Subnormal numbers replaced by zeros of their sign, where the format has them."""
    dtype = tensor.dtype
    if dtype.format is None or dtype.limbs > 1 or not dtype.format.subnormals:
        return tensor
    fmt = dtype.float_format
    magnitudes = layout.magnitudes(fmt, tensor.words)
    subnormal = (magnitudes != 0) & (magnitudes < fmt.min_normal)
    if not subnormal.any():
        return tensor
    zeros = tensor.words - magnitudes if fmt.signed_zero else np.zeros_like(tensor.words)
    return Tensor(tensor.type, np.where(subnormal, zeros, tensor.words).astype(tensor.words.dtype))


def permuted(tensor: Tensor, axis: int, places: NDArray[Any]) -> Tensor:
    """The slices along an axis at these places."""
    words = np.take(tensor.words, places, axis=axis)
    shape = (*tensor.shape[:axis], len(places), *tensor.shape[axis + 1 :])
    return Tensor(TensorType(shape, tensor.dtype), np.ascontiguousarray(words))


def _unary(node: Node, op: str, type: TensorType) -> Node:
    return Node(node.id, op, node.inputs[:1], {}, (type,))


def _one(dtype: DType) -> NDArray[Any]:
    one = np.asarray(convert(NAMED["int32"], dtype, np.asarray(1, np.uint32)))
    return one.reshape(tail(dtype))


def execute(
    body: Body,
    inputs: Sequence[Tensor],
    freedoms: Freedoms,
    seed: int | np.random.Generator,
    observe: Observe | None = None,
    only: Collection[int] | None = None,
) -> list[Tensor]:
    """The outputs of one random execution that the freedoms permit; the same for the same seed."""
    rng = seed if isinstance(seed, np.random.Generator) else np.random.default_rng(seed)
    return Execution(freedoms, rng, only).run(body, inputs, observe)
