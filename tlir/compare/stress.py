"""Stress: how far results spread over many permitted executions, and which nodes spread them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tlir.compare.bounds import Enclosure, Freedoms, enclose
from tlir.compare.bounds.enclosure import values_of
from tlir.compare.bounds.intervals import F64, in_float64, ulp
from tlir.compare.executions import execute
from tlir.errors import Source
from tlir.ir.graph import Graph, Node, Ref
from tlir.ir.tensor import Tensor

CONTRIBUTION_RUNS = 4
"""Executions in which one node alone differs, per node, to find what it contributes."""

Work = Callable[[int], None]


@dataclass(frozen=True)
class Spread:
    """How far a value spreads over the executions.

    ``ulps`` is the largest distance of any element of any execution from the reference, in units in the last place of
    the reference's value in its own format, and ``typical`` the median over the elements of each one's largest
    distance; ``absolute`` the largest distance. ``enclosure`` and ``enclosure_typical`` are the same of the enclosure's
    ends. ``tightness`` is the median of the elements' enclosures divided by the largest spread of any element, both
    absolute; None where nothing spreads. ``special`` counts elements of which an execution gave a NaN or an infinity
    and another one, or the reference, did not.
    """

    ulps: float
    typical: float
    absolute: float
    enclosure: float
    enclosure_typical: float
    enclosure_absolute: float
    tightness: float | None
    special: int
    outside: int
    """Executions' elements outside of the enclosure, of which there must be none."""

    def to_json(self) -> dict[str, Any]:
        return {
            "ulps": repr(self.ulps),
            "typical_ulps": repr(self.typical),
            "absolute": repr(self.absolute),
            "enclosure_ulps": repr(self.enclosure),
            "enclosure_typical_ulps": repr(self.enclosure_typical),
            "enclosure_absolute": repr(self.enclosure_absolute),
            "tightness": None if self.tightness is None else repr(self.tightness),
            "special": self.special,
            "outside": self.outside,
        }


@dataclass(frozen=True)
class NodeSpread:
    """One node: the spread of its results, and the largest distance in ulps that it alone causes at any output."""

    node: str
    id: int
    source: Source | None
    spread: Spread
    contribution: float | None

    def to_json(self) -> dict[str, Any]:
        parts: dict[str, Any] = {"node": self.node, "id": self.id, "spread": self.spread.to_json()}
        parts["contribution"] = None if self.contribution is None else repr(self.contribution)
        if self.source:
            parts["source"] = {
                "file": self.source.file,
                "line": self.source.line,
                "function": self.source.function,
            }
        return parts


@dataclass(frozen=True)
class OutputSpread:
    position: int
    name: str
    type: str
    node: str
    spread: Spread

    def to_json(self) -> dict[str, Any]:
        return {
            "output": self.position,
            "name": self.name,
            "type": self.type,
            "node": self.node,
            "spread": self.spread.to_json(),
        }


@dataclass(frozen=True)
class StressReport:
    """What ``runs`` executions gave. ``ok``: none left its enclosure, which would be a fault of tlir."""

    outputs: tuple[OutputSpread, ...]
    nodes: tuple[NodeSpread, ...]
    freedoms: Freedoms
    runs: int
    seed: int

    @property
    def ok(self) -> bool:
        return not any(node.spread.outside for node in self.nodes)

    def to_json(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "policy": {"name": self.freedoms.policy, "permits": str(self.freedoms)},
            "runs": self.runs,
            "seed": self.seed,
            "outputs": [output.to_json() for output in self.outputs],
            "nodes": [node.to_json() for node in self.nodes],
        }


class _Collected:
    """The least and greatest value of every element over the executions, and what lay outside of the enclosure."""

    def __init__(self, enclosure: Enclosure) -> None:
        self.enclosure = enclosure.stored()
        own = enclosure.values
        self.lo, self.hi = own.lo.copy(), own.hi.copy()
        self.special = np.zeros(own.lo.shape, np.bool_)
        self.outside = 0

    def add(self, tensor: Tensor) -> None:
        inside = self.enclosure.contains(tensor)
        self.outside += int(inside.size - np.count_nonzero(inside))
        values = values_of(tensor).lo
        own = self.enclosure.values.lo
        with np.errstate(all="ignore"):
            odd = ~np.isfinite(values)
            self.special |= (odd | ~np.isfinite(own)) & ~((values == own) | (np.isnan(values) & np.isnan(own)))
            self.lo = np.where(odd, self.lo, np.fmin(self.lo, values))
            self.hi = np.where(odd, self.hi, np.fmax(self.hi, values))

    def distance(self) -> F64:
        own = self.enclosure.values.lo
        with np.errstate(all="ignore"):
            return np.nan_to_num(np.maximum(self.hi - own, own - self.lo), nan=0.0, posinf=0.0, neginf=0.0)

    def spread(self) -> Spread:
        enclosure, own = self.enclosure, self.enclosure.values.lo
        distance, radius = self.distance(), enclosure.radius
        unit = _unit(enclosure.tensor, own)
        with np.errstate(all="ignore"):
            steps, bound = distance / unit, radius / unit
        largest = float(distance.max(initial=0.0))
        finite = radius[np.isfinite(radius)]
        return Spread(
            ulps=float(steps.max(initial=0.0)),
            typical=float(np.median(steps)) if steps.size else 0.0,
            absolute=largest,
            enclosure=float(bound.max(initial=0.0)),
            enclosure_typical=float(np.median(bound)) if bound.size else 0.0,
            enclosure_absolute=float(radius.max(initial=0.0)),
            tightness=float(np.median(finite)) / largest if largest and len(finite) else None,
            special=int(np.count_nonzero(self.special)),
            outside=self.outside,
        )


def _unit(tensor: Tensor, values: F64) -> F64:
    """One unit in the last place at each value; 1 for integers."""
    if tensor.dtype.format is None or not in_float64(tensor.dtype.float_format):
        return np.ones(values.shape)
    unit = ulp(tensor.dtype.float_format, values)
    return np.where(np.isfinite(unit), unit, 1.0)


def stress(
    graph: Graph,
    inputs: Sequence[Tensor],
    freedoms: Freedoms,
    *,
    runs: int = 100,
    seed: int = 0,
    contributions: bool = True,
    work: Work | None = None,
) -> StressReport:
    """Run the graph ``runs`` times as the freedoms permit, at random from ``seed``, beside the enclosures of its nodes.

    With ``contributions`` each node that may differ is run alone a few times more. ``work`` is called with the number
    of nodes after each execution. Values of all nodes are kept at once. Raises what the reference raises.
    """
    body = graph.body
    collected: dict[Ref, _Collected] = {}

    def note(node: Node, enclosures: tuple[Enclosure, ...]) -> None:
        for k, enclosure in enumerate(enclosures):
            collected[Ref(node.id, k)] = _Collected(enclosure)

    enclose(body, inputs, freedoms, note)

    def collect(node: Node, results: tuple[Tensor, ...]) -> None:
        for k, tensor in enumerate(results):
            collected[Ref(node.id, k)].add(tensor)

    for number in range(runs):
        execute(body, inputs, freedoms, np.random.default_rng((seed, number)), collect)
        if work is not None:
            work(len(body.nodes))
    alone = _contributions(graph, inputs, freedoms, seed, collected, work) if contributions else {}
    names = graph.output_names()
    outputs = tuple(
        OutputSpread(k, names[k], str(body.type_of(ref)), str(body.nodes[ref.node]), collected[ref].spread())
        for k, ref in enumerate(body.outputs)
    )
    nodes = tuple(
        NodeSpread(
            str(node),
            node.id,
            node.source,
            max((collected[Ref(node.id, k)].spread() for k in range(len(node.types))), key=lambda spread: spread.ulps),
            alone.get(node.id),
        )
        for node in body.nodes
        if node.types and node.op not in ("input", "constant")
    )
    return StressReport(outputs, nodes, freedoms, runs, seed)


def _contributions(
    graph: Graph,
    inputs: Sequence[Tensor],
    freedoms: Freedoms,
    seed: int,
    collected: Mapping[Ref, _Collected],
    work: Work | None,
) -> dict[int, float]:
    """Of each node, the largest distance in ulps at any output when it alone differs from the reference."""
    body, found = graph.body, {}
    for node in body.nodes:
        if node.op in ("input", "constant"):
            continue
        enclosures = [collected[Ref(node.id, k)].enclosure for k in range(len(node.types))]
        if all(enclosure.all_sure for enclosure in enclosures):
            continue
        largest = 0.0
        for number in range(CONTRIBUTION_RUNS):
            rng = np.random.default_rng((seed, node.id, number))
            outputs = execute(body, inputs, freedoms, rng, only={node.id})
            for ref, tensor in zip(body.outputs, outputs, strict=True):
                own = collected[ref].enclosure.values.lo
                with np.errstate(all="ignore"):
                    steps = np.abs(values_of(tensor).lo - own) / _unit(tensor, own)
                largest = max(largest, float(np.nan_to_num(steps, nan=0.0, posinf=0.0).max(initial=0.0)))
            if work is not None:
                work(len(body.nodes))
        found[node.id] = largest
    return found
