"""Nodes that compute the same words from the same values, taken as one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tlir.ir.graph import Body, Node, Ref
from tlir.ir.tensor import Tensor

SMALL = 4096
"""Constants of more elements are not compared."""


def merged(body: Body) -> tuple[Body, Mapping[Ref, Ref]]:
    """The body with every operand replaced by the first value that is computed alike, and which values were replaced.

    All nodes stay, those that nobody uses any more too."""
    first: dict[object, int] = {}
    replaced: dict[Ref, Ref] = {}
    nodes: list[Node] = []
    for node in body.nodes:
        inputs = tuple(replaced.get(ref, ref) for ref in node.inputs)
        nodes.append(node if inputs == node.inputs else replace(node, inputs=inputs))
        key = _key(nodes[-1])
        if key is None:
            continue
        found = first.setdefault(key, node.id)
        if found != node.id:
            replaced |= {Ref(node.id, k): Ref(found, k) for k in range(len(node.types))}
    if not replaced:
        return body, replaced
    return replace(body, nodes=tuple(nodes), outputs=tuple(replaced.get(ref, ref) for ref in body.outputs)), replaced


def _key(node: Node) -> object | None:
    """What nodes with the same results have in common; None for a node that is like no other."""
    if node.op == "input" or node.regions:
        return None
    attrs = []
    for name, value in sorted(node.attrs.items()):
        known = _hashable(value)
        if known is None:
            return None
        attrs.append((name, known))
    return (node.op, node.inputs, tuple(attrs), node.types)


def _hashable(value: Any) -> object | None:
    if isinstance(value, Tensor):
        return (value.type, value.words.tobytes()) if value.type.size <= SMALL else None
    return (type(value), value)
