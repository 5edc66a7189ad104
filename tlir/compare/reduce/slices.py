"""Smaller shapes: the part of every value that given elements of the output depend on.

A *region* is a product of places: for each axis the indices that are kept, ascending. Each rule says, for the region of
a result that is wanted, the region that is computed (wider where an axis cannot be cut) and the regions of the operands
that this needs. Operations without a rule keep everything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlir.compare.reduce.piece import Piece
from tlir.ir.graph import Body, Node, Ref
from tlir.ir.ops import OPERATIONS
from tlir.ir.tensor import Tensor
from tlir.ir.types import TensorType

Axis = tuple[int, ...]
Region = tuple[Axis, ...]


@dataclass(frozen=True)
class Cut:
    """A node cut to a region of its results: the region, those of its operands (None: left out), and the attributes
    that change."""

    region: Region
    operands: tuple[Region | None, ...]
    attrs: Mapping[str, Any]


Rule = Callable[[Node, Region, Sequence[tuple[int, ...]]], Cut | None]


def whole(shape: Sequence[int]) -> Region:
    """All of a value."""
    return tuple(tuple(range(size)) for size in shape)


def sliced(tensor: Tensor, region: Region) -> Tensor:
    """The elements of a region."""
    words: NDArray[Any] = tensor.words[np.ix_(*region)] if region else tensor.words
    return Tensor(TensorType(_shape(region), tensor.dtype), np.ascontiguousarray(words).reshape(_words(words, region)))


def _words(words: NDArray[Any], region: Region) -> tuple[int, ...]:
    return _shape(region) + words.shape[len(region) :]


def _shape(region: Region) -> tuple[int, ...]:
    return tuple(len(axis) for axis in region)


def restricted(piece: Piece, region: Region) -> Piece | None:
    """The piece cut to what a region of its output depends on; None where its output is an input.

    Values that several nodes read in different parts are kept whole, unless they are inputs, of which every reader gets
    its own part.
    """
    if piece.body.nodes[piece.body.outputs[0].node].op in ("input", "constant"):
        return None
    forced: set[int] = set()
    while (planned := _plan(piece.body, region, forced)) is None:
        pass
    return _built(piece, planned)


def _plan(body: Body, region: Region, forced: set[int]) -> list[Cut | None] | None:
    """The cut of every node that is no input or constant; None, with more nodes ``forced`` to stay whole, where a node
    reads a part of a value that another one needs more of."""
    output = body.outputs[0]
    wanted: dict[int, Region] = {output.node: region}
    cuts: list[Cut | None] = [None] * len(body.nodes)
    for node in reversed(body.nodes):
        if node.op in ("input", "constant"):
            continue
        shapes = [type.shape for type in body.operand_types(node)]
        full = whole(node.type.shape)
        cut = _cut(node, full if node.id in forced else wanted[node.id], shapes)
        cuts[node.id] = cut
        for ref, part in zip(node.inputs, cut.operands, strict=True):
            if body.nodes[ref.node].op in ("input", "constant") or part is None:
                continue
            before = wanted.get(ref.node)
            wanted[ref.node] = part if before is None else _union(before, part)
    for node in body.nodes:
        cut_here = cuts[node.id]
        if cut_here is None:
            continue
        for ref, part in zip(node.inputs, cut_here.operands, strict=True):
            made = cuts[ref.node]
            if made is not None and part is not None and made.region != part:
                forced.update((node.id, ref.node))
                return None
    return cuts


def _union(a: Region, b: Region) -> Region:
    return tuple(tuple(sorted({*x, *y})) for x, y in zip(a, b, strict=True))


def _cut(node: Node, region: Region, shapes: Sequence[tuple[int, ...]]) -> Cut:
    rule = RULES.get(node.op) or (_elementwise if _is_elementwise(node) else None)
    cut = rule(node, region, shapes) if rule is not None and not node.regions else None
    if cut is None or len(node.types) > 1:
        return Cut(whole(node.type.shape), tuple(whole(shape) for shape in shapes), {})
    return cut


def _built(piece: Piece, cuts: Sequence[Cut | None]) -> Piece:
    body = piece.body
    values = dict(zip(body.input_ids, piece.inputs, strict=True))
    nodes: list[Node] = []
    inputs: list[Tensor] = []
    origin: list[int] = []
    known: dict[tuple[Ref, Region | None], Ref] = {}

    def leaf(ref: Ref, region: Region) -> Ref:
        if (ref, region) not in known:
            source = body.nodes[ref.node]
            again = sum(of == ref for of, _ in known)
            name = source.name and source.name + (f"_{again + 1}" if again else "")
            tensor = sliced(values[ref.node] if source.op == "input" else source.attrs["value"], region)
            attrs = {} if source.op == "input" else {"value": tensor}
            nodes.append(replace(source, id=len(nodes), types=(tensor.type,), attrs=attrs, name=name))
            if source.op == "input":
                inputs.append(tensor)
            origin.append(piece.origin[ref.node])
            known[ref, region] = Ref(len(nodes) - 1)
        return known[ref, region]

    for node in body.nodes:
        cut = cuts[node.id]
        if cut is None:
            continue
        operands = []
        for ref, part in zip(node.inputs, cut.operands, strict=True):
            if part is not None:
                operands.append(known[ref, None] if cuts[ref.node] is not None else leaf(ref, part))
        types = node.types if len(node.types) > 1 else (TensorType(_shape(cut.region), node.type.dtype),)
        place = len(nodes)
        nodes.append(replace(node, id=place, inputs=tuple(operands), attrs={**node.attrs, **cut.attrs}, types=types))
        origin.append(piece.origin[node.id])
        known.update(((Ref(node.id, k), None), Ref(place, k)) for k in range(len(node.types)))
    output = body.outputs[0]
    made = cuts[output.node]
    assert made is not None
    places = tuple(node.id for node in nodes if node.op == "input")
    expected = sliced(piece.expected, made.region) if len(body.nodes[output.node].types) == 1 else piece.expected
    return Piece(Body(tuple(nodes), places, (known[output, None],)), tuple(inputs), expected, tuple(origin))


def _is_elementwise(node: Node) -> bool:
    family = OPERATIONS[node.op].family
    return family in ("arithmetic", "elementary", "special", "logic", "complex_numbers") or node.op in (
        "convert",
        "reduce_precision",
    )


def _elementwise(node: Node, region: Region, shapes: Sequence[tuple[int, ...]]) -> Cut | None:
    if any(shape not in ((), node.type.shape) for shape in shapes):
        return None
    return Cut(region, tuple(region if shape == node.type.shape else () for shape in shapes), {})


def _bitcast(node: Node, region: Region, shapes: Sequence[tuple[int, ...]]) -> Cut | None:
    return _elementwise(node, region, shapes) if shapes[0] == node.type.shape else None


def _broadcast(node: Node, region: Region, shapes: Sequence[tuple[int, ...]]) -> Cut | None:
    dims = node.attrs["broadcast_dimensions"]
    own = tuple(
        (0,) if size == 1 else region[to] for size, to in zip(shapes[0], dims, strict=True)
    )  # an axis of size one is read again and again
    return Cut(region, (own,), {})


def _reshape(node: Node, region: Region, shapes: Sequence[tuple[int, ...]]) -> Cut | None:
    shape, operand = node.type.shape, shapes[0]
    if all(len(axis) == 1 for axis in region):
        flat = int(np.ravel_multi_index([axis[0] for axis in region], shape)) if shape else 0
        place = np.unravel_index(flat, operand) if operand else ()
        return Cut(region, (tuple((int(i),) for i in place),), {})
    kept = [axis for axis, size in zip(region, shape, strict=True) if size != 1]
    if [size for size in shape if size != 1] != [size for size in operand if size != 1]:
        return None
    left = iter(kept)
    return Cut(region, (tuple((0,) if size == 1 else next(left) for size in operand),), {})


def _transpose(node: Node, region: Region, shapes: Sequence[tuple[int, ...]]) -> Cut | None:
    own: list[Axis] = [()] * len(region)
    for to, of in enumerate(node.attrs["permutation"]):
        own[of] = region[to]
    return Cut(region, (tuple(own),), {})


def _slice(node: Node, region: Region, shapes: Sequence[tuple[int, ...]]) -> Cut | None:
    starts, strides = node.attrs["start_indices"], node.attrs["strides"]
    own = tuple(tuple(s + t * i for i in axis) for axis, s, t in zip(region, starts, strides, strict=True))
    count = len(region)
    return Cut(
        region,
        (own,),
        {"start_indices": (0,) * count, "limit_indices": _shape(own), "strides": (1,) * count},
    )


def _reverse(node: Node, region: Region, shapes: Sequence[tuple[int, ...]]) -> Cut | None:
    turned = node.attrs["dimensions"]
    own = tuple(
        tuple(sorted(size - 1 - i for i in axis)) if d in turned else axis
        for d, (axis, size) in enumerate(zip(region, shapes[0], strict=True))
    )
    return Cut(region, (own,), {})


def _concatenate(node: Node, region: Region, shapes: Sequence[tuple[int, ...]]) -> Cut | None:
    along = node.attrs["dimension"]
    operands: list[Region | None] = []
    start = 0
    for shape in shapes:
        inside = tuple(i - start for i in region[along] if start <= i < start + shape[along])
        start += shape[along]
        operands.append(tuple(inside if d == along else axis for d, axis in enumerate(region)) if inside else None)
    return Cut(region, tuple(operands), {}) if any(operands) else None


def _reduce(node: Node, region: Region, shapes: Sequence[tuple[int, ...]]) -> Cut | None:
    gone = node.attrs["dimensions"] if node.op == "reduce" else (node.attrs["dimension"],)
    left = iter(region)
    own = tuple(tuple(range(size)) if d in gone else next(left) for d, size in enumerate(shapes[0]))
    return Cut(region, (own,), {})


def _along(node: Node, region: Region, shapes: Sequence[tuple[int, ...]]) -> Cut | None:
    """Lines along one axis that do not see each other."""
    along = node.attrs["dimension"]
    own = tuple(tuple(range(shapes[0][d])) if d == along else axis for d, axis in enumerate(region))
    return Cut(own, (own,) * len(shapes), {})


def _dot_general(node: Node, region: Region, shapes: Sequence[tuple[int, ...]]) -> Cut | None:
    batch = len(node.attrs["lhs_batching_dimensions"])
    operands: list[Region] = []
    place = batch
    for side, shape in zip(("lhs", "rhs"), shapes, strict=True):
        batching = node.attrs[f"{side}_batching_dimensions"]
        contracting = node.attrs[f"{side}_contracting_dimensions"]
        own: list[Axis] = []
        for d, size in enumerate(shape):
            if d in batching:
                own.append(region[batching.index(d)])
            elif d in contracting:
                own.append(tuple(range(size)))
            else:
                own.append(region[place])
                place += 1
        operands.append(tuple(own))
    return Cut(region, tuple(operands), {})


def _convolution(node: Node, region: Region, shapes: Sequence[tuple[int, ...]]) -> Cut | None:
    attrs = node.attrs
    if attrs.get("feature_group_count", 1) != 1 or attrs.get("batch_group_count", 1) != 1:
        return None
    lhs_batch, _, *lhs_space = attrs["lhs_dimensions"]
    rhs_output, _, *rhs_space = attrs["rhs_dimensions"]
    batch, feature, *space = attrs["output_dimensions"]
    lhs = [tuple(range(size)) for size in shapes[0]]
    rhs = [tuple(range(size)) for size in shapes[1]]
    own = [tuple(range(size)) for size in node.type.shape]
    lhs[lhs_batch] = own[batch] = region[batch]
    rhs[rhs_output] = own[feature] = region[feature]
    low, high, strides = (list(attrs[name]) for name in ("padding_low", "padding_high", "window_strides"))
    for k, axis in enumerate(space):
        if len(region[axis]) != 1 or attrs["lhs_dilation"][k] != 1:
            continue
        size, window = shapes[0][lhs_space[k]], shapes[1][rhs_space[k]]
        start = region[axis][0] * strides[k] - low[k]
        end = start + (window - 1) * attrs["rhs_dilation"][k] + 1
        first, last = max(start, 0), min(end, size)
        if first < last:
            lhs[lhs_space[k]] = tuple(range(first, last))
            low[k], high[k], strides[k] = first - start, end - last, 1
            own[axis] = region[axis]
    changed = {"padding_low": tuple(low), "padding_high": tuple(high), "window_strides": tuple(strides)}
    return Cut(tuple(own), (tuple(lhs), tuple(rhs)), changed)


def _gather(node: Node, region: Region, shapes: Sequence[tuple[int, ...]]) -> Cut | None:
    attrs = node.attrs
    if attrs["operand_batching_dims"] or attrs["start_indices_batching_dims"]:
        return None
    offset, sizes = attrs["offset_dims"], list(attrs["slice_sizes"])
    own, operand = list(region), [tuple(range(size)) for size in shapes[0]]
    kept = [d for d in range(len(shapes[0])) if d not in attrs["collapsed_slice_dims"]]
    for to, d in zip(offset, kept, strict=True):
        if d not in attrs["start_index_map"] and sizes[d] == shapes[0][d]:
            operand[d] = region[to]
            sizes[d] = len(region[to])
        else:
            own[to] = tuple(range(node.type.shape[to]))
    places = iter([own[d] for d in range(len(region)) if d not in offset])
    vector = attrs["index_vector_dim"]
    indices = tuple(tuple(range(size)) if d == vector else next(places) for d, size in enumerate(shapes[1]))
    return Cut(tuple(own), (tuple(operand), indices), {"slice_sizes": tuple(sizes)})


def _dynamic_slice(node: Node, region: Region, shapes: Sequence[tuple[int, ...]]) -> Cut | None:
    own, operand = list(region), [tuple(range(size)) for size in shapes[0]]
    sizes = list(node.attrs["slice_sizes"])
    for d, size in enumerate(shapes[0]):
        if sizes[d] == size:
            operand[d] = region[d]
            sizes[d] = len(region[d])
        else:
            own[d] = tuple(range(sizes[d]))
    return Cut(tuple(own), (tuple(operand), *((),) * (len(shapes) - 1)), {"slice_sizes": tuple(sizes)})


def _reduce_window(node: Node, region: Region, shapes: Sequence[tuple[int, ...]]) -> Cut | None:
    attrs = node.attrs
    names = ("window_dimensions", "window_strides", "base_dilations")
    own, operand = [], []
    for d, size in enumerate(shapes[0]):
        plain = all(attrs[name][d] == 1 for name in names) and not attrs["padding_low"][d] | attrs["padding_high"][d]
        own.append(region[d] if plain else tuple(range(node.type.shape[d])))
        operand.append(region[d] if plain else tuple(range(size)))
    return Cut(tuple(own), (tuple(operand),), {})


RULES: dict[str, Rule] = {
    "bitcast_convert": _bitcast,
    "broadcast_in_dim": _broadcast,
    "reshape": _reshape,
    "transpose": _transpose,
    "slice": _slice,
    "reverse": _reverse,
    "concatenate": _concatenate,
    "reduce": _reduce,
    "argmax": _reduce,
    "argmin": _reduce,
    "cumulative": _along,
    "sort": _along,
    "dot_general": _dot_general,
    "convolution": _convolution,
    "gather": _gather,
    "dynamic_slice": _dynamic_slice,
    "reduce_window": _reduce_window,
}


def thinned(piece: Piece, places: Sequence[int]) -> Piece | None:
    """A sum, product or other reduction cut to some of the places that it runs over: the piece's only operation is a
    ``reduce`` over one axis or a ``dot_general`` with one contracted axis. None for anything else. The output that the
    frontend gave is kept, although it is that of all places: whoever calls this asks the frontend again."""
    node = piece.body.nodes[piece.body.outputs[0].node]
    axes = summed_axes(piece)
    if axes is None:
        return None
    shapes = [type.shape for type in piece.body.operand_types(node)]
    regions = [
        tuple(tuple(places) if d == axis else tuple(range(size)) for d, size in enumerate(shape))
        for shape, axis in zip(shapes, axes, strict=True)
    ]
    cuts: list[Cut | None] = [None] * piece.count
    cuts[node.id] = Cut(whole(node.type.shape), tuple(regions), {})
    return _built(piece, cuts)


def summed_axes(piece: Piece) -> tuple[int, ...] | None:
    """The axis of each operand that the piece's only operation sums over."""
    operations = [node for node in piece.body.nodes if node.op not in ("input", "constant")]
    if len(operations) != 1:
        return None
    node = operations[0]
    if node.op == "reduce" and len(node.attrs["dimensions"]) == 1:
        return (node.attrs["dimensions"][0],)
    if node.op == "dot_general" and len(node.attrs["lhs_contracting_dimensions"]) == 1:
        return (node.attrs["lhs_contracting_dimensions"][0], node.attrs["rhs_contracting_dimensions"][0])
    return None
