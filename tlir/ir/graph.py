"""Nodes, regions and graphs: plain immutable records, checked by ``tlir.ir.verify`` and by the operations' rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tlir.errors import Source
from tlir.floatlib.format import Format
from tlir.ir.tensor import Tensor
from tlir.ir.tree import leaf_paths
from tlir.ir.types import TensorType


class Ref(NamedTuple):
    """A value: result number ``result`` of node ``node`` in the same body."""

    node: int
    result: int = 0

    def __str__(self) -> str:
        return f"%{self.node}" if self.result == 0 else f"%{self.node}#{self.result}"


@dataclass(frozen=True, slots=True)
class Node:
    """One operation applied to earlier values of the same body.

    ``types`` are the declared types of the results, one per result; ``attrs`` the decoded attributes, defaults not
    filled in; ``regions`` the bodies that a control-flow operation evaluates.
    """

    id: int
    op: str
    inputs: tuple[Ref, ...]
    attrs: Mapping[str, Any]
    types: tuple[TensorType, ...]
    name: str | None = None
    source: Source | None = None
    regions: tuple[Body, ...] = ()

    @property
    def type(self) -> TensorType:
        """The declared type of the first result."""
        return self.types[0]

    def __str__(self) -> str:
        return f"{self.id} {self.op}" + (f" {self.name!r}" if self.name else "")


@dataclass(frozen=True, slots=True)
class Body:
    """Nodes in topological order, node i having id i, with the ids of the inputs and the values that are the results.

    The graph itself is a body; so is every region of a control-flow node, with a scope of its own.
    """

    nodes: tuple[Node, ...]
    input_ids: tuple[int, ...]
    outputs: tuple[Ref, ...]

    @property
    def input_types(self) -> tuple[TensorType, ...]:
        return tuple(self.nodes[i].type for i in self.input_ids)

    @property
    def output_types(self) -> tuple[TensorType, ...]:
        return tuple(self.type_of(ref) for ref in self.outputs)

    def type_of(self, ref: Ref) -> TensorType:
        return self.nodes[ref.node].types[ref.result]

    def operand_types(self, node: Node) -> tuple[TensorType, ...]:
        return tuple(self.nodes[ref.node].types[ref.result] for ref in node.inputs)

    def input_names(self) -> list[str]:
        """A name per input: the node's own, or ``input<position>``."""
        return [self.nodes[i].name or f"input{k}" for k, i in enumerate(self.input_ids)]

    def walk(self) -> Iterator[Node]:
        """All nodes, those of regions after the node that holds them."""
        for node in self.nodes:
            yield node
            for region in node.regions:
                yield from region.walk()


@dataclass(frozen=True)
class Producer:
    """Who captured the artifact, and how its outputs were made.

    ``outputs`` is "op-by-op" (each node evaluated by itself, which is what the graph says) or "compiled".
    """

    frontend: str
    frontend_version: str = ""
    platform: str = ""
    capture: str = ""
    outputs: str = "op-by-op"
    flags: Mapping[str, bool | int | str] = field(default_factory=dict)


@dataclass(frozen=True)
class Sample:
    """Recorded inputs and the frontend's outputs for them, and optionally the frontend's value at every node."""

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    trace: Mapping[Ref, Tensor] | None = None


@dataclass(frozen=True)
class Graph:
    """A whole artifact in memory: the body, what gives its inputs and outputs their structure, and its samples.

    ``input_tree`` and ``output_tree`` are ``tlir.ir.tree`` trees whose leaves count inputs and outputs, or None
    where both are flat; ``formats`` the number formats that the artifact declares; ``tolerance`` the artifact's own
    default absolute tolerance as decimal text.
    """

    body: Body
    name: str = ""
    input_tree: Any = None
    output_tree: Any = None
    formats: Mapping[str, Format] = field(default_factory=dict)
    producer: Producer | None = None
    samples: tuple[Sample, ...] = ()
    tolerance: str | None = None

    @property
    def nodes(self) -> tuple[Node, ...]:
        return self.body.nodes

    def output_names(self) -> list[str]:
        """A name per output: ``output``, ``output[1]``, or its path in the output tree, ``output['loss']``."""
        if self.output_tree is not None:
            return leaf_paths(self.output_tree, "output")
        count = len(self.body.outputs)
        return ["output"] if count == 1 else [f"output[{k}]" for k in range(count)]
