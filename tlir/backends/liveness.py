"""When values of a body are needed for the last time, and how much memory its evaluation takes."""

from __future__ import annotations

from math import prod

from tlir.ir.graph import Body, Node, Ref
from tlir.ir.ops import OPERATIONS
from tlir.ir.tensor import words_shape
from tlir.ir.types import TensorType

MAX_AXES = 64
"""Axes of a NumPy array."""


def last_uses(body: Body) -> list[list[Ref]]:
    """For each node, the values that nothing after it uses: operands of it, and results that are never used."""
    kept = set(body.outputs)
    last: dict[Ref, int] = {}
    for node in body.nodes:
        for k in range(len(node.types)):
            last[Ref(node.id, k)] = node.id
        for ref in node.inputs:
            last[ref] = node.id
    dropped: list[list[Ref]] = [[] for _ in body.nodes]
    for ref, node_id in last.items():
        if ref not in kept:
            dropped[node_id].append(ref)
    return dropped


def peak_memory(body: Body) -> tuple[int, Node | None]:
    """About how many bytes the evaluation takes at its peak beside the inputs and constants, and the node where: the
    values that are alive, and the temporaries of one operation."""
    dropped = last_uses(body)
    sizes: dict[Ref, int] = {}
    live = peak = 0
    worst: Node | None = None
    for node in body.nodes:
        given = node.op in ("input", "constant")
        for k, type in enumerate(node.types):
            sizes[Ref(node.id, k)] = 0 if given else type.nbytes
            live += sizes[Ref(node.id, k)]
        # a region's values come and go while its node is evaluated
        inside = max((peak_memory(region)[0] for region in node.regions), default=0)
        total = live + inside + (0 if given else _workspace(body, node))
        if total > peak:
            peak, worst = total, node
        for ref in dropped[node.id]:
            live -= sizes[ref]
    return peak, worst


# Bytes of temporaries per element, measured: NumPy's arithmetic; error-free transformations and roundings from float64;
# Python integers; integers to words.
_NATIVE, _ROUNDED, _SPECIFIED, _COUNTED = 40, 240, 400, 48

_ROUNDING = ("fma", "convert", "reduce_precision", "next_after", "bitcast_convert")
_EXACT_PARTS = ("divide", "sqrt", "sign", "abs")
_PROCESSOR = ("float16", "bfloat16", "float32", "float64")


def _workspace(body: Body, node: Node) -> int:
    if node.op == "iota":
        # only one line along the axis is computed
        shape = node.type.shape
        line = shape[node.attrs["iota_dimension"]] if node.type.size else 0
        return line * (_COUNTED + 2 * node.type.nbytes // max(node.type.size, 1))
    types = (*body.operand_types(node), *node.types)
    family = OPERATIONS[node.op].family
    if family in ("shape", "complex_numbers"):
        return max(type.nbytes for type in types)
    floats = [type.dtype for type in types if type.dtype.format is not None]
    by_element = family == "elementary" or (node.op in _EXACT_PARTS and any(dtype.is_complex for dtype in floats))
    if by_element or any(dtype.bits > 8 and dtype.component.name not in _PROCESSOR for dtype in floats):
        per_element = _SPECIFIED
    elif node.op in _ROUNDING and floats:
        per_element = _ROUNDED
    else:
        per_element = _NATIVE
    return per_element * max(type.size * type.dtype.components for type in types)


def fits_numpy(type: TensorType) -> bool:
    """Whether NumPy can hold an array of this shape: it limits the axes, and the sizes even beside one that is zero."""
    shape = words_shape(type)
    return len(shape) <= MAX_AXES and prod(size for size in shape if size) * 8 < 2**63
