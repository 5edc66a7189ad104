"""A part of a graph that stands by itself: some of its nodes, and recorded values in place of all others."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from tlir.compare.bounds.propagate import constants
from tlir.floatlib.format import Format
from tlir.ir.graph import Body, Graph, Node, Producer, Ref, Sample
from tlir.ir.tensor import Tensor


@dataclass(frozen=True)
class Piece:
    """A body with one output, the values of its inputs, and what the frontend gives there.

    ``origin`` says of each node which node of the whole graph it is, or whose value it has.
    """

    body: Body
    inputs: tuple[Tensor, ...]
    expected: Tensor
    origin: tuple[int, ...]

    @property
    def count(self) -> int:
        """How many nodes it has, inputs and constants included."""
        return len(self.body.nodes)

    @property
    def elements(self) -> int:
        """How many elements its inputs and constants have."""
        return sum(node.type.size for node in self.body.nodes if node.op in ("input", "constant"))

    def graph(self, name: str = "", producer: Producer | None = None, tolerance: str | None = None) -> Graph:
        """It as a graph with one sample; number formats that its types use are declared."""
        formats: dict[str, Format] = {}
        for node in self.body.walk():
            for type in node.types:
                if type.dtype.format is not None and not type.dtype.is_complex:
                    formats[type.dtype.name] = type.dtype.float_format
        return Graph(
            self.body,
            name=name,
            formats=_declared(formats),
            producer=producer,
            samples=(Sample(self.inputs, (self.expected,)),),
            tolerance=tolerance,
        )


def _declared(formats: Mapping[str, Format]) -> dict[str, Format]:
    from tlir.ir.types import NAMED

    return {name: fmt for name, fmt in formats.items() if name not in NAMED}


def cut(body: Body, kept: Collection[int], output: Ref, values: Mapping[Ref, Tensor], expected: Tensor) -> Piece:
    """The nodes among ``kept`` that ``output`` depends on through kept nodes; every other value that they read becomes
    an input, or a constant where it depends on no input, with what ``values`` has for it."""
    fixed = constants(body)
    needed = {output.node}
    for node in reversed(body.nodes[: output.node + 1]):
        if node.id in needed and node.op != "input":
            needed.update(ref.node for ref in node.inputs if ref.node in kept and ref.node not in fixed)
    nodes: list[Node] = []
    inputs: list[Tensor] = []
    origin: list[int] = []
    known: dict[Ref, Ref] = {}

    def given(ref: Ref) -> Ref:
        if ref not in known:
            source, tensor = body.nodes[ref.node], values[ref]
            name = source.name or f"{source.op}_{ref.node}" + (f"_{ref.result}" if ref.result else "")
            place = len(nodes)
            if ref.node in fixed:
                nodes.append(Node(place, "constant", (), {"value": tensor}, (tensor.type,), source.name, source.source))
            else:
                nodes.append(Node(place, "input", (), {}, (tensor.type,), name, source.source))
                inputs.append(tensor)
            origin.append(ref.node)
            known[ref] = Ref(place)
        return known[ref]

    for node in body.nodes[: output.node + 1]:
        if node.id not in needed or node.op == "input":
            continue
        operands = tuple(given(ref) for ref in node.inputs)
        place = len(nodes)
        nodes.append(replace(node, id=place, inputs=operands))
        origin.append(node.id)
        known.update((Ref(node.id, k), Ref(place, k)) for k in range(len(node.types)))
    given(output)  # an output that is an input of the graph
    places = tuple(node.id for node in nodes if node.op == "input")
    return Piece(Body(tuple(nodes), places, (known[output],)), tuple(inputs), expected, tuple(origin))


def with_inputs(piece: Piece, inputs: Sequence[Tensor], expected: Tensor) -> Piece:
    """The same piece with other values of the same types."""
    return replace(piece, inputs=tuple(inputs), expected=expected)
