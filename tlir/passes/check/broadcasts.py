"""The broadcast report: every bias broadcast with its axes, and those that could have been meant otherwise.

A bias broadcast feeds an elementwise operation with a tensor that was repeated along whole axes: a vector added to
every row of a matrix. Where the size of a repeated operand fits two axes of the result, a transposed program would have
had the same shapes, so nothing but a reader can tell which one was meant; the note names both axes.
"""

from __future__ import annotations

from tlir.ir.graph import Body, Graph, Node
from tlir.ir.ops import OPERATIONS
from tlir.passes.check.report import Check, Finding, counted

_ELEMENTWISE = {"arithmetic", "elementary", "logic", "complex_numbers"}


def check_broadcasts(graph: Graph) -> Check:
    """Every broadcast that feeds an elementwise operation, with its axes; not applicable where there is none."""
    notes: list[Finding] = []
    total = 0
    body = graph.body
    uses: dict[int, list[Node]] = {}
    for node in body.nodes:
        for ref in node.inputs:
            uses.setdefault(ref.node, []).append(node)
    for node in body.nodes:
        if node.op != "broadcast_in_dim":
            continue
        total += 1
        users = [user for user in uses.get(node.id, []) if OPERATIONS[user.op].family in _ELEMENTWISE]
        if users:
            notes += _describe(body, node, users)
    if not total:
        return Check("broadcasts", "not applicable", "no broadcast_in_dim")
    biases = sum(1 for note in notes if note.rule == "bias-broadcast")
    return Check("broadcasts", "passed", f"{counted(total, 'broadcast')}, {biases} of a bias", tuple(notes))


def _describe(body: Body, node: Node, users: list[Node]) -> list[Finding]:
    operand = body.operand_types(node)[0]
    axes = node.attrs["broadcast_dimensions"]
    result = node.type.shape
    if operand.size <= 1 or len(axes) != operand.rank or any(axis >= len(result) for axis in axes):
        return []  # a scalar has one way to broadcast; an ill-typed node is for the type check
    kept = {axis: size for size, axis in zip(operand.shape, axes, strict=True) if size != 1}
    repeated = [axis for axis in range(len(result)) if axis not in kept and result[axis] != 1]
    if not repeated:
        return []
    where = ", ".join(sorted({user.op for user in users}))
    fills = f"{list(operand.shape)} fills axes {list(kept)} of {list(result)}"
    message = f"{fills} and is repeated along axes {repeated}, for {where}"
    notes = [Finding.note("bias-broadcast", message, node)]
    for axis, size in kept.items():
        others = [other for other in repeated if result[other] == size and size > 1]
        if others:
            text = f"size {size} fits axes {axis} and {others[0]} of {list(result)}: check that axis {axis} is meant"
            notes.append(Finding.note("ambiguous-broadcast", text, node, "name the axis where the program broadcasts"))
    return notes
