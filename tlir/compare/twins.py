"""Two artifacts of the same graph, perhaps in other formats: which values of one are which of the other.

Conversions between floating-point formats are looked through, since a program in bfloat16 converts where one in float32
does not. Everything else has to agree: operations, operands, shapes, attributes, and constants up to one rounding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tlir.backends.reference import evaluate_node
from tlir.errors import UsageError
from tlir.ir.graph import Body, Graph, Node, Ref
from tlir.ir.tensor import Tensor
from tlir.ir.types import NAMED, DType, TensorType, complex_of

_FREE = ("accumulate", "value")
"""Attributes that may differ: how sums accumulate, and the words of constants, which are compared as numbers."""

_WIDER = ("float32", "float64", "float128")


@dataclass(frozen=True)
class Twins:
    """The values of graph ``a`` that are those of ``b``, in the order of the nodes of ``a``. ``seen``: to each pair the
    pairs that take its place for operations and outputs, which are themselves or what conversions make of them."""

    a: Graph
    b: Graph
    seen: Mapping[tuple[Ref, Ref], tuple[tuple[Ref, Ref], ...]]

    @property
    def same_formats(self) -> bool:
        """Whether all values have the same types."""
        pairs = (pair for (x, y), seen in self.seen.items() for pair in ((x, y), *seen))
        return all(_type(self.a.body, x) == _type(self.b.body, y) for x, y in pairs)


def twins(a: Graph, b: Graph) -> Twins:
    """Match two artifacts. UsageError TL0901 where the graphs are not the same, or the recorded inputs differ by more
    than one rounding to the narrower format; TL0602 where the samples are not as many, or there are none."""
    seen = _matched(a.body, b.body)
    if len(a.samples) != len(b.samples) or not a.samples:
        count = f"{len(a.samples)} and {len(b.samples)}"
        raise UsageError("TL0602", f"the artifacts have {count} samples: there is nothing to compare pair by pair")
    for left, right in zip(a.samples, b.samples, strict=True):
        for name, x, y in zip(a.body.input_names(), left.inputs, right.inputs, strict=True):
            if not same_numbers(x, y):
                raise UsageError(
                    "TL0901", f"the artifacts recorded different inputs {name}", hint="capture both with the same ones"
                )
    return Twins(a, b, seen)


def _matched(a: Body, b: Body) -> dict[tuple[Ref, Ref], tuple[tuple[Ref, Ref], ...]]:
    """The values that the outputs come from, matched from the outputs backwards, so that it does not matter in which
    order nodes stand and how often a constant is there."""
    if [type.shape for type in a.input_types] != [type.shape for type in b.input_types]:
        raise different("other inputs")
    if len(a.outputs) != len(b.outputs):
        raise different(f"{len(a.outputs)} and {len(b.outputs)} outputs")
    places = dict(zip(a.input_ids, b.input_ids, strict=True))
    found: dict[tuple[Ref, Ref], dict[tuple[Ref, Ref], None]] = {}
    waiting = list(zip(a.outputs, b.outputs, strict=True))
    while waiting:
        last = waiting.pop()
        x, y = origin(a, last[0]), origin(b, last[1])
        known = (x, y) in found
        found.setdefault((x, y), {})[last] = None
        if known:
            continue
        mine, theirs = a.nodes[x.node], b.nodes[y.node]
        if mine.op != theirs.op or x.result != y.result or len(mine.inputs) != len(theirs.inputs):
            raise different(f"node {mine} of the first is {theirs} of the second")
        if mine.op == "input" and places[mine.id] != theirs.id:
            raise different(f"node {mine} of the first is {theirs} of the second")
        if not same_attributes(mine, theirs) or not all(map(_comparable, mine.types, theirs.types)):
            raise different(f"node {mine} has other attributes, types or values than {theirs}")
        for inner, other in zip(mine.regions, theirs.regions, strict=True):
            _matched(inner, other)
        waiting += zip(mine.inputs, theirs.inputs, strict=True)
    return {pair: tuple(found[pair]) for pair in sorted(found)}


def different(reason: str) -> UsageError:
    return UsageError("TL0901", f"the artifacts have different graphs: {reason}", hint="tlir diff shows what differs")


def _type(body: Body, ref: Ref) -> TensorType:
    return body.nodes[ref.node].types[ref.result]


def _is_cast(body: Body, node: Node) -> bool:
    """A conversion from one floating-point format to another."""
    return node.op == "convert" and all(
        dtype.format is not None for dtype in (node.type.dtype, _type(body, node.inputs[0]).dtype)
    )


def origin(body: Body, ref: Ref) -> Ref:
    """Where a value comes from, through conversions."""
    while _is_cast(body, body.nodes[ref.node]):
        ref = body.nodes[ref.node].inputs[0]
    return ref


def _comparable(x: TensorType, y: TensorType) -> bool:
    return x.shape == y.shape and _same_kind(x, y)


def _same_kind(x: TensorType, y: TensorType) -> bool:
    return x.dtype == y.dtype or (x.dtype.kind == y.dtype.kind and x.dtype.format is not None)


def same_attributes(x: Node, y: Node) -> bool:
    """Whether two nodes have the same attributes, but for how they accumulate, and constants the same numbers once both
    are in the narrower format."""
    kept = [{name: value for name, value in node.attrs.items() if name not in _FREE} for node in (x, y)]
    values = [node.attrs.get("value") for node in (x, y)]
    tensors = [value for value in values if isinstance(value, Tensor)]
    return kept[0] == kept[1] and (len(tensors) != 2 or same_numbers(*tensors))


# ---- numbers of two formats -----------------------------------------------------------------------------------------


def converted(tensor: Tensor, dtype: DType) -> Tensor:
    """The tensor in another format, rounded once."""
    if tensor.dtype == dtype:
        return tensor
    node = Node(0, "convert", (Ref(0),), {}, (TensorType(tensor.shape, dtype),))
    return evaluate_node(node, (tensor,))[0]


def contains(a: DType, b: DType) -> bool:
    """Whether format ``a`` has every number of ``b``."""
    x, y = a.float_format, b.float_format
    return x == y or (
        x.fraction_bits >= y.fraction_bits
        and x.emax >= y.emax
        and x.emin - x.fraction_bits * x.subnormals <= y.emin - y.fraction_bits * y.subnormals
        and x.infinities >= y.infinities
        and x.signed >= y.signed
    )


def common(a: DType, b: DType) -> DType:
    """The narrowest of both formats, float32, float64 and float128 that has every number of both. UsageError TL0901
    where none has."""
    if a == b:
        return a
    candidates: Sequence[DType] = (a.component, b.component, *(NAMED[name] for name in _WIDER))
    for dtype in candidates:
        if contains(dtype, a.component) and contains(dtype, b.component):
            return complex_of(dtype) if a.is_complex else dtype
    raise UsageError("TL0901", f"no format here has every number of {a} and of {b}")


def narrower(a: DType, b: DType) -> DType:
    """The format with the fewer bits of precision; the first of equals."""
    if a.format is None or b.format is None:
        return a
    return b if b.float_format.precision < a.float_format.precision else a


def same_numbers(x: Tensor, y: Tensor) -> bool:
    """Whether two tensors are equal once both are in the narrower format."""
    if x.dtype == y.dtype:
        return x.same_words(y)
    if x.shape != y.shape or x.dtype.format is None or y.dtype.format is None:
        return False
    least = narrower(x.dtype, y.dtype)
    return converted(x, least).same_words(converted(y, least))


def in_types_of(node: Node, body: Body, operands: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Operands converted to the types that a node of a body takes."""
    return tuple(
        converted(tensor, _type(body, ref).dtype) if tensor.dtype.format is not None else tensor
        for tensor, ref in zip(operands, node.inputs, strict=True)
    )


def both(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Two tensors in a format that has every number of both."""
    dtype = common(x.dtype, y.dtype)
    return converted(x, dtype), converted(y, dtype)
