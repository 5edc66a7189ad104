"""Which declared choice gives the frontend's every word at one node: an order of summation, fused products, a wider
accumulator, a reciprocal for a division, subnormals flushed.

A choice is tried first on a few elements of the result, from the rows and columns of the operands that they need; only
one that gives their words is tried on the whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import chain
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlir.backends.reference import evaluate as by_reference
from tlir.compare.orders import (
    Builder,
    Cascade,
    Declared,
    Halved,
    Lanes,
    Rows,
    Runs,
    Sum,
    Tiles,
    Vectors,
    Windows,
    columns,
    emit_reduce,
    whole_sum,
)
from tlir.compare.products import DeclaredProduct, LaneProduct, PairTiles, Product, Split, emit_dot
from tlir.floatlib.words import constant, is_nan, is_zero, less, magnitudes
from tlir.ir.graph import Body, Graph, Node, Ref
from tlir.ir.ops import OPERATIONS, Accumulate
from tlir.ir.tensor import Tensor, Words, words_shape
from tlir.ir.types import NAMED, DType, TensorType
from tlir.passes.render.values import accumulate_text
from tlir.passes.reorder import accumulates

FLOAT32 = NAMED["float32"]

ROWS, COLUMNS = 4, 4
"""Of a product so many rows and columns are tried first; of a sum, their product of elements."""

SAMPLED = ("reduce", "dot_general")
"""Operations that can be tried on a few elements of their result."""

COMPILE_FROM = 1 << 23
"""Additions from which compiled code is quicker than the reference, compilation included."""

BLOCKS = (512, 256, 384, 448, 320, 192, 128, 64, 32, 16, 8, 4)
"""Blocks of products and sums that frontends use, or that processors' caches suggest."""


@dataclass(frozen=True)
class Choice:
    """How a node is computed. ``order`` and ``dtype`` are those of its accumulation; ``reciprocal`` multiplies by the
    reciprocal of a divisor; ``fused`` is the operand of an addition or subtraction, a product, that is fused with it;
    ``flush`` replaces subnormal operands and results by zeros of their sign. ``whole``: the order is that of the whole
    sum which the node completes (``tlir.compare.orders.whole_sum``)."""

    order: Sum | Product | None = None
    dtype: DType | None = None
    reciprocal: bool = False
    fused: int | None = None
    flush: bool = False
    whole: bool = False

    def __str__(self) -> str:
        parts = [] if self.order is None else [str(self.order)]
        parts += [f"in {self.dtype.name}"] if self.dtype is not None else []
        parts += ["times the reciprocal"] if self.reciprocal else []
        parts += ["product and sum fused"] if self.fused is not None else []
        parts += ["subnormals flushed"] if self.flush else []
        return ", ".join(parts) or "as written"


AS_WRITTEN = Choice()


def described(node: Node) -> str:
    """How a node accumulates as it is written; its operation where it does not."""
    if node.op == "reduce" and node.attrs["reducer"] not in ("add", "multiply"):
        return node.op
    return accumulate_text(node.attrs.get("accumulate") or Accumulate()) if accumulates(node) else node.op


# ---- what may be tried ----------------------------------------------------------------------------------------------


def choices(graph: Graph, body: Body, node: Node) -> list[Choice]:
    """The choices for a node, those of the graph's frontend first; none where the node has only one meaning."""
    if not node.types[0].dtype.is_float:
        return []
    frontend = graph.producer.frontend if graph.producer is not None else ""
    sum_ = whole_sum(body, node)
    if sum_ is not None:
        return [replace(choice, whole=True) for choice in _choices(body, sum_, frontend)]
    return _choices(body, node, frontend)


def _choices(body: Body, node: Node, frontend: str) -> list[Choice]:
    found: list[Choice] = []
    if node.op == "reduce" and node.attrs["reducer"] == "add":
        operand = body.operand_types(node)[0]
        found = [
            Choice(order, dtype)
            for dtype in _accumulators(node)
            for order in sums(frontend, operand, node.attrs["dimensions"], (dtype or node.type.dtype).bits)
        ]
    elif node.op == "dot_general":
        narrow = body.operand_types(node)[0].dtype.bits <= 16
        found = [Choice(order, dtype) for dtype in _accumulators(node) for order in products(frontend, narrow)]
    elif accumulates(node) and node.attrs.get("reducer", "add") in ("add", "multiply"):
        fused = (True, False) if node.op == "convolution" else (False,)
        orders = [DeclaredProduct(*order, fma) for fma in fused for order in _declared()]
        found = [Choice(order, dtype) for dtype in _accumulators(node) for order in orders if _allowed(order)]
    elif node.op == "divide":
        found = [Choice(reciprocal=True)]
    elif node.op in ("add", "subtract"):
        found = [Choice(fused=k) for k in (0, 1) if body.nodes[node.inputs[k].node].op == "multiply"]
    if frontend == "jax" and OPERATIONS[node.op].family in ("arithmetic", "elementary"):
        found += [replace(each, flush=True) for each in (AS_WRITTEN, *found)]
    return found


def _allowed(order: DeclaredProduct) -> bool:
    return not (order.fma and order.order == "pairwise")


def _declared() -> Iterator[tuple[str, int]]:
    yield "sequential", 0
    for block in BLOCKS:
        yield "blocked", block
    yield "pairwise", 0


def _accumulators(node: Node) -> list[DType | None]:
    """The accumulator's dtype as it is, and for a narrow result also float32, and the result's own."""
    own = (node.attrs.get("accumulate") or Accumulate()).dtype
    if node.type.dtype.bits > 16:
        return [own]
    return [own, None] if own is not None else [None, FLOAT32]


def sums(frontend: str, operand: TensorType, axes: Sequence[int], bits: int) -> list[Sum]:
    """Orders of sums over axes of an operand, in a format of so many bits."""
    lanes = [512 // bits, 256 // bits, 128 // bits] if 16 <= bits <= 64 else [16, 8, 4]
    width = prod(operand.shape[max(axes) + 1 :]) * bits // 8 if axes else 0
    count = prod(operand.shape[axis] for axis in axes)
    jax: list[Sum] = [Tiles(lanes[0]), columns(width, count), Windows(), *(Tiles(n) for n in lanes[1:])]
    jax += [Runs((4, 16)), Runs((4, 16, 256))]
    jax += [Lanes(n, Runs((4, 16)), Halved()) for n in lanes]
    torch: list[Sum] = [Vectors(lanes[1]), Cascade(), Vectors(1), Vectors(lanes[1], folded=True)]
    torch += [Vectors(lanes[0]), Vectors(lanes[2])]
    plain: list[Sum] = [Declared(*order) for order in _declared()]
    lone = [Lanes(n, Declared(), across) for n in lanes for across in (Declared(), Halved(), Declared("pairwise"))]
    first = torch + jax if frontend == "torch" else jax + torch
    if len(axes) > 1:
        first += [
            Rows(inner, outer) for inner in (plain[0], *first) for outer in (plain[0], Cascade(), columns(width, count))
        ]
    return [*first, *plain, *lone]


def products(frontend: str, narrow: bool) -> list[Product]:
    """Orders of products; ``narrow``: of a 16-bit format."""
    plain = [DeclaredProduct(*order, fma) for fma in (True, False) for order in _declared()]
    plain = [order for order in plain if _allowed(order)]
    split: list[Product] = [Split(size) for size in (384, 448, 320, 256, 192, 512)]
    split += [Split(size, 16) for size in (384, 448, 320, 256)]
    tiles: list[Product] = [PairTiles()]
    lanes: list[Product] = [
        LaneProduct(n, across) for n in (8, 16, 4, 2) for across in (Declared("pairwise"), Halved())
    ]
    head, rest = plain[:4], plain[4:]
    first = [*tiles, *head, *split] if narrow else [*head, *split]
    return [*first, *lanes, *rest, *([] if narrow else tiles)]


# ---- writing a choice -----------------------------------------------------------------------------------------------


def emit(b: Builder, body: Body, node: Node, choice: Choice, places: Mapping[Ref, Ref]) -> tuple[Ref, ...]:
    """The node as chosen, behind the nodes that are there. ``places`` says where the values of ``body`` are.

    The last node that is written keeps the name of the one that it stands for."""
    if choice.whole:
        node = whole_sum(body, node) or node
    operands = tuple(places[ref] for ref in node.inputs)
    if choice == AS_WRITTEN:
        b.nodes.append(replace(node, id=len(b.nodes), inputs=operands))
        return tuple(Ref(len(b.nodes) - 1, k) for k in range(len(node.types)))
    outer, b.source = b.source, node.source
    if choice.flush:
        operands = tuple(flush(b, operand) if b.type(operand).dtype.is_float else operand for operand in operands)
    result = _emit(b, body, node, choice, operands, places)
    if choice.flush:
        result = flush(b, result)
    if b.nodes[result.node].name is None:
        b.nodes[result.node] = replace(b.nodes[result.node], name=node.name)
    b.source = outer
    return (result,)


def _emit(
    b: Builder, body: Body, node: Node, choice: Choice, operands: tuple[Ref, ...], places: Mapping[Ref, Ref]
) -> Ref:
    if choice.order is not None and node.op == "reduce":
        return emit_reduce(b, node, operands[0], choice.order, choice.dtype)  # type: ignore[arg-type]
    if choice.order is not None and node.op == "dot_general":
        return emit_dot(b, node, operands[0], operands[1], choice.order, choice.dtype)  # type: ignore[arg-type]
    attrs = dict(node.attrs)
    if isinstance(choice.order, DeclaredProduct):
        attrs["accumulate"] = replace(choice.order.accumulate, dtype=choice.dtype)
    if choice.reciprocal:
        one = b.constant(_one(b.type(operands[1])))
        inverse = b.node("divide", (one, operands[1]), b.type(operands[1]))
        return b.node("multiply", (operands[0], inverse), node.type)
    if choice.fused is not None:
        product = body.nodes[node.inputs[choice.fused].node]
        a, c = (places[ref] for ref in product.inputs)
        addend = operands[1 - choice.fused]
        if node.op == "subtract" and choice.fused == 0:
            addend = b.node("negate", (addend,), node.type)
        elif node.op == "subtract":
            a = b.node("negate", (a,), node.type)
        return b.node("fma", (a, c, addend), node.type)
    b.nodes.append(replace(node, id=len(b.nodes), inputs=operands, attrs=attrs))
    return Ref(len(b.nodes) - 1)


def _one(type: TensorType) -> Tensor:
    fmt = type.dtype.float_format
    word = np.asarray(constant(fmt, fmt.bias << fmt.fraction_bits))
    return Tensor(type, np.array(np.broadcast_to(word, words_shape(type)), type.dtype.word_dtype))


def flush(b: Builder, x: Ref) -> Ref:
    """Zeros of their sign in the place of subnormal numbers."""
    type = b.type(x)
    fmt = type.dtype.float_format
    least = np.asarray(constant(fmt, 1 << fmt.fraction_bits))
    limit = b.constant(Tensor(type, np.array(np.broadcast_to(least, words_shape(type)), type.dtype.word_dtype)))
    zero = b.constant(Tensor(type, np.zeros(words_shape(type), type.dtype.word_dtype)))
    size = b.node("abs", (x,), type)
    small = b.node("compare", (size, limit), TensorType(type.shape, NAMED["bool"]), comparison_direction="LT")
    return b.node("select", (small, b.node("copysign", (zero, x), type), x), type)


# ---- trying one -----------------------------------------------------------------------------------------------------


def equal_words(a: Tensor, b: Tensor) -> NDArray[np.bool_]:
    """Where words are the same or both are NaN, flat."""
    equal = np.asarray(a.words == b.words)
    same = equal.all(axis=tuple(range(len(a.type.shape), equal.ndim))).reshape(a.type.size)
    if a.dtype.is_float:
        fmt = a.dtype.float_format
        same |= np.asarray((is_nan(fmt, a.words) & is_nan(fmt, b.words)).reshape(a.type.size))
    return same


def has_subnormal(tensor: Tensor) -> bool:
    """Whether any element is a subnormal number."""
    dtype = tensor.dtype
    if not dtype.is_float or not dtype.float_format.subnormals:
        return False
    fmt = dtype.float_format
    sizes = magnitudes(fmt, tensor.words)
    return bool((less(fmt, sizes, constant(fmt, 1 << fmt.fraction_bits)) & ~is_zero(fmt, tensor.words)).any())


def additions(body: Body) -> int:
    """Roughly how many elements are computed or accumulated."""
    total = 0
    for node in body.nodes:
        types = body.operand_types(node)
        if node.op == "dot_general":
            total += node.type.size * prod(types[0].shape[axis] for axis in node.attrs["lhs_contracting_dimensions"])
        else:
            total += max((type.size for type in (*types, *node.types)), default=0)
    return total


def evaluate(body: Body, inputs: Sequence[Tensor]) -> list[Tensor]:
    """The outputs, by compiled code where that is there and worth it: its words are the reference's."""
    if additions(body) >= COMPILE_FROM and find_spec("llvmlite") is not None:
        from tlir.backends.cpu.device import Executable

        return Executable(body).run(inputs)
    return by_reference(body, inputs)


@dataclass(frozen=True)
class Recorded:
    """A node's operands, and the words that the frontend got from them."""

    operands: tuple[Tensor, ...]
    result: Tensor


def search(body: Body, node: Node, recorded: Sequence[Recorded], candidates: Sequence[Choice]) -> Choice | None:
    """The first choice that gives the recorded words in every sample; None where none does. The choices must not fuse
    the node with another one."""
    small = _samples(node, recorded)
    for choice in candidates:
        if choice.fused is not None:
            continue
        if small is not None and not all(_gives(*part, choice) for part in small):
            continue
        whole = _alone(node, body.operand_types(node))
        if all(_gives(whole[0], whole[1], each, choice) for each in recorded):
            return choice
    return None


def _alone(node: Node, types: Sequence[TensorType]) -> tuple[Body, Node]:
    """A body of the node alone, one input per operand, and the node in it."""
    b = Builder()
    refs = tuple(b.input(type) for type in types)
    own = replace(node, id=len(b.nodes), inputs=refs, regions=node.regions)
    return Body((*b.nodes, own), tuple(range(len(refs))), (Ref(own.id),)), own


def _gives(body: Body, node: Node, recorded: Recorded, choice: Choice) -> bool:
    b = Builder()
    places = {Ref(i): b.input(body.nodes[i].type) for i in body.input_ids}
    results = emit(b, body, node, choice, places)
    made = Body(tuple(b.nodes), body.input_ids, results)
    return bool(equal_words(evaluate(made, recorded.operands)[0], recorded.result).all())


def _samples(node: Node, recorded: Sequence[Recorded]) -> list[tuple[Body, Node, Recorded]] | None:
    """The node and its operands cut down to a few elements of the result; None where that cannot be done."""
    if node.op not in SAMPLED or not node.type.size:
        return None
    cut = _cut_reduce if node.op == "reduce" else _cut_dot
    return [cut(node, each) for each in recorded]


def _some(count: int, at_most: int) -> NDArray[np.intp]:
    """A few indices below ``count``, spread over all."""
    return np.unique(np.linspace(0, count - 1, min(count, at_most)).astype(np.intp))


def _flat(words: Words, axes: Sequence[int], shape: tuple[int, ...]) -> Words:
    """Axes in this order, joined into those of ``shape``; axes of a word's parts stay behind."""
    tail = words.shape[len(axes) :]
    moved = words.transpose(*axes, *range(len(axes), words.ndim))
    return moved.reshape(*shape, *tail)


def _cut_reduce(node: Node, recorded: Recorded) -> tuple[Body, Node, Recorded]:
    operand, axes = recorded.operands[0], sorted(node.attrs["dimensions"])
    kept = [axis for axis in range(operand.type.rank) if axis not in axes]
    rows = _some(node.type.size, ROWS * COLUMNS)
    places = np.unravel_index(rows, node.type.shape) if node.type.shape else ()
    tail = operand.words.shape[operand.type.rank :]
    moved = operand.words.transpose(*kept, *axes, *range(operand.type.rank, operand.words.ndim))
    words = moved[places] if places else moved[np.newaxis]
    shape = (len(rows), *(operand.shape[axis] for axis in axes))
    small = Tensor(TensorType(shape, operand.dtype), np.ascontiguousarray(words.reshape(*shape, *tail)))
    type = TensorType((len(rows),), node.type.dtype)
    result = recorded.result.words.reshape(node.type.size, *recorded.result.words.shape[node.type.rank :])[rows]
    own = replace(node, attrs={**node.attrs, "dimensions": tuple(range(1, len(shape)))}, types=(type,))
    body, own = _alone(own, [small.type])
    return body, own, Recorded((small,), Tensor(type, np.ascontiguousarray(result)))


def _cut_dot(node: Node, recorded: Recorded) -> tuple[Body, Node, Recorded]:
    attrs, (lhs, rhs) = node.attrs, recorded.operands
    shapes, parts = [], []
    for tensor, side in ((lhs, "lhs"), (rhs, "rhs")):
        batch, contracted = attrs[f"{side}_batching_dimensions"], attrs[f"{side}_contracting_dimensions"]
        free = [axis for axis in range(tensor.type.rank) if axis not in batch + contracted]
        groups = (batch, free, contracted) if side == "lhs" else (batch, contracted, free)
        shape = tuple(prod(tensor.shape[axis] for axis in group) for group in groups)
        shapes.append(shape)
        parts.append(_flat(tensor.words, list(chain(*groups)), shape))
    (size, m, count), (_, _, n) = shapes
    batches, rows, columns = _some(size, 1), _some(m, ROWS), _some(n, COLUMNS)
    left = np.ascontiguousarray(parts[0][batches][:, rows])
    right = np.ascontiguousarray(parts[1][batches][:, :, columns])
    tail = recorded.result.words.shape[node.type.rank :]
    result = recorded.result.words.reshape(size, m, n, *tail)[batches][:, rows][:, :, columns]
    type = TensorType((1, len(rows), len(columns)), node.type.dtype)
    new: dict[str, Any] = {
        "lhs_batching_dimensions": (0,),
        "rhs_batching_dimensions": (0,),
        "lhs_contracting_dimensions": (2,),
        "rhs_contracting_dimensions": (1,),
    }
    small = (
        Tensor(TensorType((1, len(rows), count), lhs.dtype), left),
        Tensor(TensorType((1, count, len(columns)), rhs.dtype), right),
    )
    body, own = _alone(replace(node, attrs={**attrs, **new}, types=(type,)), [x.type for x in small])
    return body, own, Recorded(small, Tensor(type, np.ascontiguousarray(result)))
