"""What an artifact holds, in numbers: what ``tlir info FILE`` shows."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tlir.ir.graph import Graph
from tlir.ir.tensor import Tensor
from tlir.passes.render.escape import printable
from tlir.passes.render.values import attribute_text

LARGEST = 5
"""So many of the largest constants are named."""


def graph_facts(graph: Graph) -> dict[str, Any]:
    """The graph's facts as a JSON object: name, producer, counts, bytes, inputs, outputs, operations and dtypes by
    frequency, source files, and its largest constants. Texts are printable."""
    nodes = list(graph.body.walk())
    constants = [(node, node.attrs["value"]) for node in nodes if isinstance(node.attrs.get("value"), Tensor)]
    constants.sort(key=lambda pair: -pair[1].type.nbytes)
    samples = [tensor for sample in graph.samples for tensor in (*sample.inputs, *sample.outputs)]
    samples += [tensor for sample in graph.samples for tensor in (sample.trace or {}).values()]
    facts: dict[str, Any] = {"name": printable(graph.name)}
    if graph.producer:
        fields = ("frontend", "frontend_version", "platform", "capture", "outputs")
        facts["producer"] = {key: printable(getattr(graph.producer, key)) for key in fields}
        flags = graph.producer.flags.items()
        facts["producer"]["flags"] = {printable(name): attribute_text(value) for name, value in sorted(flags)}
    if graph.tolerance is not None:
        facts["tolerance"] = printable(graph.tolerance)
    facts["counts"] = {
        "nodes": len(graph.nodes),
        "nodes_in_regions": len(nodes) - len(graph.nodes),
        "inputs": len(graph.body.input_ids),
        "outputs": len(graph.body.outputs),
        "constants": len(constants),
        "samples": len(graph.samples),
        "traces": sum(1 for sample in graph.samples if sample.trace is not None),
    }
    facts["bytes"] = {
        "constants": sum(tensor.type.nbytes for _, tensor in constants),
        "samples": sum(tensor.type.nbytes for tensor in samples),
    }
    names = graph.body.input_names()
    facts["inputs"] = [
        {"name": printable(name), "type": printable(str(type))}
        for name, type in zip(names, graph.body.input_types, strict=True)
    ]
    facts["outputs"] = [
        {"value": str(ref), "type": printable(str(graph.body.type_of(ref)))} for ref in graph.body.outputs
    ]
    facts["operations"] = dict(Counter(node.op for node in nodes).most_common())
    facts["dtypes"] = dict(Counter(printable(type.dtype.name) for node in nodes for type in node.types).most_common())
    facts["sources"] = dict(Counter(printable(node.source.file) for node in nodes if node.source).most_common())
    facts["formats"] = {printable(name): fmt.to_descriptor() for name, fmt in sorted(graph.formats.items())}
    facts["largest_constants"] = [
        {"node": node.id, "name": printable(node.name or ""), "type": str(tensor.type), "bytes": tensor.type.nbytes}
        for node, tensor in constants[:LARGEST]
    ]
    return facts


def size_text(count: int) -> str:
    """A number of bytes: ``512 bytes``, ``1.5 KiB``, ``476.8 MiB``."""
    if count < 1024:
        return f"{count} byte{'' if count == 1 else 's'}"
    size = float(count)
    for unit in ("KiB", "MiB", "GiB"):
        size /= 1024
        if size < 1024:
            return f"{size:.1f} {unit}"
    return f"{size / 1024:.1f} TiB"
