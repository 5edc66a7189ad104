"""The structure check: ids, order, arity, outputs; with a note for every node that no output needs."""

from __future__ import annotations

from tlir.errors import ArtifactError
from tlir.ir.graph import Body, Graph
from tlir.ir.verify import verify_structure
from tlir.passes.check.report import Check, Finding, counted, failed


def live_nodes(body: Body) -> set[int]:
    """Ids of the nodes on which an output depends."""
    live: set[int] = set()
    waiting = [ref.node for ref in body.outputs]
    while waiting:
        node_id = waiting.pop()
        if node_id not in live:
            live.add(node_id)
            waiting.extend(ref.node for ref in body.nodes[node_id].inputs)
    return live


def check_structure(graph: Graph) -> Check:
    """Whether ids, order, arity, inputs, outputs and samples hold together; dead nodes and unused inputs as notes."""
    body = graph.body
    inner = sum(1 for _ in body.walk()) - len(body.nodes)
    counts = {"input": len(body.input_ids), "output": len(body.outputs), "sample": len(graph.samples)}
    covered = counted(len(body.nodes), "node") + (f" and {inner} in regions" if inner else "")
    covered = ", ".join([covered, *(counted(count, noun) for noun, count in counts.items())])
    try:
        verify_structure(graph)
    except ArtifactError as error:
        return failed("structure", covered, [error])
    live = live_nodes(body)
    notes = []
    for node in body.nodes:
        if node.id not in live:
            if node.op == "input":
                notes.append(Finding.note("unused-input", "no output depends on this input", node))
            else:
                notes.append(Finding.note("dead-node", "no output depends on this node", node))
    if not body.outputs:
        notes.append(Finding.note("no-outputs", "the graph returns nothing"))
    if not graph.samples:
        notes.append(Finding.note("no-sample", "no sample is recorded, so there is nothing to compare with"))
    return failed("structure", covered, [], notes)
