"""What changed between two graphs, node by node, and in everything around the nodes.

Ids and the order of independent nodes do not count: the same graph numbered differently is the same. Neither do source
lines, which move with every edit of a program; how many moved is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tlir.ir import tree as trees
from tlir.ir.graph import Body, Graph, Node, Producer, Ref, Sample
from tlir.ir.ops import OPERATIONS
from tlir.ir.tensor import Tensor
from tlir.passes.distance import Distance, distance
from tlir.passes.matching import Matching, effective_attributes
from tlir.passes.render.escape import printable, quoted
from tlir.passes.render.text import node_line, source_text, type_text
from tlir.passes.render.values import accumulate_text, attribute_text, tensor_text


@dataclass(frozen=True)
class Difference:
    """One thing that differs: ``what`` it is, its text on each side (None: not there), and for two tensors of the same
    type how far they are apart."""

    what: str
    a: str | None
    b: str | None
    distance: Distance | None = None

    def __str__(self) -> str:
        if self.distance is not None:
            return f"{self.what}: {self.distance}"
        return f"{self.what}: {'none' if self.a is None else self.a} -> {'none' if self.b is None else self.b}"

    def to_json(self) -> dict[str, Any]:
        return {"what": self.what, "a": self.a, "b": self.b} | (
            {"distance": self.distance.to_json()} if self.distance else {}
        )


@dataclass(frozen=True)
class NodeChange:
    """A node of each side that stand in each other's place, with what differs; ``regions`` are their regions'."""

    a: Node
    b: Node
    differences: tuple[Difference, ...]
    regions: tuple[BodyDiff, ...] = ()

    def to_json(self) -> dict[str, Any]:
        parts: dict[str, Any] = {"a": self.a.id, "b": self.b.id, "op": self.b.op}
        parts["differences"] = [difference.to_json() for difference in self.differences]
        return parts | ({"regions": [region.to_json() for region in self.regions]} if self.regions else {})


@dataclass(frozen=True)
class BodyDiff:
    """The nodes that only one side has, those that changed, what changed in the order of inputs and in the outputs."""

    removed: tuple[Node, ...]
    inserted: tuple[Node, ...]
    changed: tuple[NodeChange, ...]
    interface: tuple[Difference, ...]
    matched: int
    moved_sources: int

    @property
    def same(self) -> bool:
        return not (self.removed or self.inserted or self.changed or self.interface)

    def to_json(self) -> dict[str, Any]:
        return {
            "removed": [_node_json(node) for node in self.removed],
            "inserted": [_node_json(node) for node in self.inserted],
            "changed": [change.to_json() for change in self.changed],
            "interface": [difference.to_json() for difference in self.interface],
            "unchanged": self.matched - len(self.changed),
            "moved_sources": self.moved_sources,
        }


@dataclass(frozen=True)
class GraphDiff:
    """The difference of two graphs: of what surrounds the nodes (``header``), of the nodes, and of the samples."""

    header: tuple[Difference, ...]
    body: BodyDiff
    samples: tuple[Difference, ...]

    @property
    def same(self) -> bool:
        return not self.header and self.body.same and not self.samples

    def to_json(self) -> dict[str, Any]:
        """``{"same": Boolean, "header": [difference], "nodes": {…}, "samples": [difference]}``."""
        return {
            "same": self.same,
            "header": [difference.to_json() for difference in self.header],
            "nodes": self.body.to_json(),
            "samples": [difference.to_json() for difference in self.samples],
        }

    def lines(self) -> Iterator[str]:
        """The report as lines of printable text; the first one is the summary."""
        yield self.summary
        for difference in self.header:
            yield str(difference)
        yield from _body_lines(self.body, "")
        for difference in self.samples:
            yield str(difference)

    @property
    def summary(self) -> str:
        """One line: whether the graphs are the same, otherwise how many nodes changed."""
        body = self.body
        moved = f"; {body.moved_sources} source lines moved" if body.moved_sources else ""
        if self.same:
            return f"the same: {body.matched} nodes{moved}"
        counts = [f"{len(body.removed)} removed", f"{len(body.inserted)} inserted", f"{len(body.changed)} changed"]
        return f"nodes: {', '.join(counts)}, {body.matched - len(body.changed)} the same{moved}"


def diff(a: Graph, b: Graph) -> GraphDiff:
    """What changed from ``a`` to ``b``."""
    matching = Matching(a.body, b.body)
    return GraphDiff(tuple(_header(a, b)), _body_diff(matching), tuple(_samples(a, b, matching)))


def _node_json(node: Node) -> dict[str, Any]:
    return {"id": node.id, "op": node.op, "text": node_line(node)}


def _body_lines(body: BodyDiff, indent: str) -> Iterator[str]:
    for difference in body.interface:
        yield f"{indent}{difference}"
    for node in body.removed:
        yield f"{indent}- {node_line(node)}{_source(node)}"
    for node in body.inserted:
        yield f"{indent}+ {node_line(node)}{_source(node)}"
    for change in body.changed:
        number = f"%{change.a.id}" if change.a.id == change.b.id else f"%{change.a.id} -> %{change.b.id}"
        name = f" {quoted(change.b.name)}" if change.b.name else ""
        yield f"{indent}~ {number}: {type_text(change.b)} = {printable(change.b.op)}{name}{_source(change.b)}"
        for difference in change.differences:
            yield f"{indent}    {difference}"
        for k, region in enumerate(change.regions):
            if not region.same:
                yield f"{indent}    region {k}:"
                yield from _body_lines(region, indent + "      ")


def _source(node: Node) -> str:
    return f"   // {source_text(node.source)}" if node.source else ""


# ---- nodes ----------------------------------------------------------------------------------------------------------


def _body_diff(matching: Matching) -> BodyDiff:
    a, b = matching.a, matching.b
    changed = []
    moved = 0
    for left, right in sorted(matching.forward.items(), key=lambda pair: pair[1]):
        one, other = a.nodes[left], b.nodes[right]
        moved += one.source != other.source
        change = _change(one, other, matching)
        if change is not None:
            changed.append(change)
    return BodyDiff(
        tuple(node for node in a.nodes if node.id not in matching.forward),
        tuple(node for node in b.nodes if node.id not in matching.backward),
        tuple(changed),
        tuple(_interface(matching)),
        len(matching.forward),
        moved,
    )


def _change(a: Node, b: Node, matching: Matching) -> NodeChange | None:
    differences = []
    if a.op != b.op:
        differences.append(Difference("operation", printable(a.op), printable(b.op)))
    if a.types != b.types:
        differences.append(Difference("type", type_text(a), type_text(b)))
    if a.name != b.name:
        differences.append(Difference("name", _quoted(a.name), _quoted(b.name)))
    regions: tuple[BodyDiff, ...] = ()
    if a.id not in matching.unchanged:
        differences += _attributes(a, b)
        differences += _operands(a, b, matching)
        if len(a.regions) != len(b.regions):
            differences.append(Difference("regions", str(len(a.regions)), str(len(b.regions))))
        else:
            pairs = zip(a.regions, b.regions, strict=True)
            regions = tuple(_body_diff(Matching(one, other, matching.keys)) for one, other in pairs)
    if not differences and all(region.same for region in regions):
        return None
    return NodeChange(a, b, tuple(differences), regions)


def _attributes(a: Node, b: Node) -> Iterator[Difference]:
    left, right = effective_attributes(a), effective_attributes(b)
    for name in sorted(left.keys() | right.keys()):
        one, other = left.get(name), right.get(name)
        if isinstance(one, Tensor) and isinstance(other, Tensor):
            yield from _tensors(name, one, other)
        elif one != other:
            yield Difference(printable(name), _attribute(a, name), _attribute(b, name))


def _attribute(node: Node, name: str) -> str | None:
    """The attribute's value or default; None where there is neither."""
    operation = OPERATIONS.get(node.op)
    value = node.attrs.get(name)
    if name == "accumulate":
        return accumulate_text(value)
    if value is None and operation and name in operation.attributes:
        value = operation.attributes[name].default
    return None if value is None else attribute_text(value)


def _tensors(what: str, a: Tensor, b: Tensor) -> Iterator[Difference]:
    if a.type != b.type:
        yield Difference(what, f"{a.type} {tensor_text(a)}", f"{b.type} {tensor_text(b)}")
        return
    apart = distance(a, b)
    if apart is not None:
        yield Difference(what, tensor_text(a), tensor_text(b), apart)


def _operands(a: Node, b: Node, matching: Matching) -> Iterator[Difference]:
    for slot in range(max(len(a.inputs), len(b.inputs))):
        one = a.inputs[slot] if slot < len(a.inputs) else None
        other = b.inputs[slot] if slot < len(b.inputs) else None
        if one is None or other is None or not matching.same_value(one, other):
            yield Difference(f"operand {slot}", _value(matching.a, one), _value(matching.b, other))


def _value(body: Body, ref: Ref | None) -> str | None:
    return None if ref is None else f"{ref} {printable(body.nodes[ref.node].op)}"


def _input_names(body: Body) -> str:
    return ", ".join(printable(name) for name in body.input_names())


def _quoted(text: str | None) -> str | None:
    return None if text is None else quoted(text)


def _interface(matching: Matching) -> Iterator[Difference]:
    a, b = matching.a, matching.b
    kept = [i for i in a.input_ids if i in matching.forward]
    order = [matching.backward[i] for i in b.input_ids if i in matching.backward]
    if kept != order:
        yield Difference("inputs", _input_names(a), _input_names(b))
    for position in range(max(len(a.outputs), len(b.outputs))):
        one = a.outputs[position] if position < len(a.outputs) else None
        other = b.outputs[position] if position < len(b.outputs) else None
        if one is None or other is None or not matching.same_value(one, other):
            yield Difference(f"output {position}", _value(a, one), _value(b, other))


# ---- around the nodes -----------------------------------------------------------------------------------------------


def _header(a: Graph, b: Graph) -> Iterator[Difference]:
    if a.name != b.name:
        yield Difference("name", quoted(a.name), quoted(b.name))
    if a.tolerance != b.tolerance:
        yield Difference("tolerance", a.tolerance, b.tolerance)
    for name in sorted(a.formats.keys() | b.formats.keys()):
        one, other = a.formats.get(name), b.formats.get(name)
        if one != other:
            yield Difference(f"format {printable(name)}", one.name if one else None, other.name if other else None)
    left, right = _producer(a.producer), _producer(b.producer)
    for key in sorted(left.keys() | right.keys()):
        if left.get(key) != right.get(key):
            yield Difference(f"producer {key}", left.get(key), right.get(key))
    for what in ("input_tree", "output_tree"):
        one, other = getattr(a, what), getattr(b, what)
        if one != other:
            yield Difference(what.replace("_", " "), _tree(one), _tree(other))


def _producer(producer: Producer | None) -> dict[str, str]:
    if producer is None:
        return {}
    fields = ("frontend", "frontend_version", "platform", "capture", "outputs")
    texts = {field: printable(getattr(producer, field)) for field in fields if getattr(producer, field)}
    return texts | {f"flag {printable(name)}": attribute_text(value) for name, value in producer.flags.items()}


def _tree(tree: trees.Tree | None) -> str | None:
    import json

    return None if tree is None else printable(json.dumps(trees.encode(tree), ensure_ascii=False))


def _samples(a: Graph, b: Graph, matching: Matching) -> Iterator[Difference]:
    if len(a.samples) != len(b.samples):
        yield Difference("samples", str(len(a.samples)), str(len(b.samples)))
    for k, (one, other) in enumerate(zip(a.samples, b.samples, strict=False)):
        yield from _tensor_lists(f"sample {k} input", one.inputs, other.inputs)
        yield from _tensor_lists(f"sample {k} output", one.outputs, other.outputs)
        yield from _traces(f"sample {k} trace", one, other, matching)


def _tensor_lists(what: str, a: Sequence[Tensor], b: Sequence[Tensor]) -> Iterator[Difference]:
    if len(a) != len(b):
        yield Difference(f"{what}s", str(len(a)), str(len(b)))
        return
    for position, (one, other) in enumerate(zip(a, b, strict=True)):
        yield from _tensors(f"{what} {position}", one, other)


def _trace_size(sample: Sample) -> str | None:
    return None if sample.trace is None else f"{len(sample.trace)} values"


def _traces(what: str, a: Sample, b: Sample, matching: Matching) -> Iterator[Difference]:
    if a.trace is None or b.trace is None:
        if a.trace is not b.trace:
            yield Difference(what, _trace_size(a), _trace_size(b))
        return
    partners = {Ref(matching.forward[ref.node], ref.result): ref for ref in a.trace if ref.node in matching.forward}
    for ref, tensor in b.trace.items():
        if ref in partners:
            yield from _tensors(f"{what} of {ref}", a.trace[partners[ref]], tensor)
        elif ref.node in matching.backward:
            yield Difference(f"{what} of {ref}", None, tensor_text(tensor))
    for ref, tensor in a.trace.items():
        if ref.node in matching.forward and Ref(matching.forward[ref.node], ref.result) not in b.trace:
            yield Difference(f"{what} of {ref}", tensor_text(tensor), None)
