"""When values of a body are needed for the last time, and how much memory its evaluation takes."""

from __future__ import annotations

from math import prod

from tlir.ir.graph import Body, Node, Ref
from tlir.ir.ops import OPERATIONS
from tlir.ir.tensor import words_shape
from tlir.ir.types import TensorType

MAX_AXES = 64
"""Axes of a NumPy array."""

_MOVED = ("shape", "data", "complex_numbers")


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
    """About how many bytes the evaluation takes at its peak beside the inputs and constants, and the node where.

    Counted are the values that are alive and the temporaries of one operation: some 24 bytes per element of the result
    and of the operands where arithmetic is the processor's, and 400, mostly Python integers, where it is the
    specification's."""
    dropped = last_uses(body)
    sizes: dict[Ref, int] = {}
    live = peak = 0
    worst: Node | None = None
    for node in body.nodes:
        given = node.op in ("input", "constant")
        for k, type in enumerate(node.types):
            sizes[Ref(node.id, k)] = 0 if given else type.nbytes
            live += sizes[Ref(node.id, k)]
        total = live + (0 if given else _workspace(body, node))
        if total > peak:
            peak, worst = total, node
        for ref in dropped[node.id]:
            live -= sizes[ref]
    return peak, worst


def _workspace(body: Body, node: Node) -> int:
    types = (*body.operand_types(node), *node.types)
    family = OPERATIONS[node.op].family
    if node.op not in ("convert", "iota") and family in _MOVED:
        return max(type.nbytes for type in types)
    per_element = 24 if family != "elementary" and all(_is_native(type) for type in types) else 400
    return per_element * sum(type.size * type.dtype.components for type in types)


def _is_native(type: TensorType) -> bool:
    return type.dtype.format is None or type.dtype.format.name in ("float16", "bfloat16", "float32", "float64")


def fits_numpy(type: TensorType) -> bool:
    """Whether NumPy can hold an array of this shape: it limits the axes, and the sizes even beside one that is zero."""
    shape = words_shape(type)
    return len(shape) <= MAX_AXES and prod(size for size in shape if size) * 8 < 2**63
