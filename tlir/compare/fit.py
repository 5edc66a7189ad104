"""Writing into a graph the choices that give the frontend's every word.

With a trace each node is judged by itself, on the operands that the frontend recorded for it. Where no value was
recorded, as inside an operation of the frontend that the graph writes out as several nodes, the nodes between two
recorded values are judged together: their choices are tried in common, the same for nodes that are alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tlir.backends.reference import evaluate_node
from tlir.compare.bounds import Freedoms
from tlir.compare.orders import Builder, whole_sum
from tlir.compare.reproduce import (
    AS_WRITTEN,
    SAMPLED,
    Choice,
    Recorded,
    additions,
    choices,
    described,
    emit,
    equal_words,
    evaluate,
    has_subnormal,
    search,
)
from tlir.errors import ArtifactError, Source
from tlir.ir.graph import Body, Graph, Node, Ref, Sample
from tlir.ir.ops import Accumulate
from tlir.ir.tensor import Tensor

TRIES = 600
"""Evaluations of one group of nodes that have no recorded value between them."""

QUICK_TRIES = 4
QUICK_WORK = 1 << 20
"""The same where a comparison asks in passing, and the elements that it may compute in all to find out."""


@dataclass(frozen=True)
class NodeFit:
    """One recorded value: how its node was computed before and is now, and how many words are the frontend's, given
    the recorded operands. ``group`` are the nodes without a recorded value of their own that were chosen with it, each
    with its choice."""

    node: int
    label: str
    op: str
    source: Source | None
    before: str
    after: str
    count: int
    equal_before: int
    equal_after: int
    group: tuple[tuple[int, str, str], ...] = ()

    @property
    def ok(self) -> bool:
        return self.equal_after == self.count

    def to_json(self) -> dict[str, Any]:
        return {
            "node": self.node,
            "label": self.label,
            "op": self.op,
            "source": None if self.source is None else str(self.source),
            "before": self.before,
            "after": self.after,
            "elements": self.count,
            "equal_words_before": self.equal_before,
            "equal_words_after": self.equal_after,
            "group": [{"node": node, "label": label, "after": after} for node, label, after in self.group],
        }


@dataclass(frozen=True)
class OutputFit:
    """One output of one sample: how many of its words are the frontend's, before and after."""

    name: str
    sample: int
    count: int
    equal_before: int
    equal_after: int

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "sample": self.sample,
            "elements": self.count,
            "equal_words_before": self.equal_before,
            "equal_words_after": self.equal_after,
        }


@dataclass(frozen=True)
class Fitting:
    """The graph with the choices written in. ``nodes`` are the recorded values that the graph did not give before;
    ``choices`` what was chosen, by the node's id in the graph before."""

    graph: Graph
    nodes: tuple[NodeFit, ...]
    outputs: tuple[OutputFit, ...]
    choices: Mapping[int, Choice]

    @property
    def ok(self) -> bool:
        return all(output.equal_after == output.count for output in self.outputs)

    def to_json(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "nodes": [node.to_json() for node in self.nodes],
            "outputs": [output.to_json() for output in self.outputs],
        }


def fit(
    graph: Graph,
    *,
    tries: int = TRIES,
    work: int | None = None,
    observe: Callable[[Node], None] | None = None,
) -> Fitting:
    """Look for the choices that give every recorded word, in every sample, and write them into the graph.

    The outputs of compiled code are explained from the inputs alone, since a trace has the values of another
    execution. ``tries`` limits the combinations of choices for nodes that are fitted together, ``work`` the elements
    that are computed for such trials in all. ``observe`` is called at every node. ArtifactError TL0701 where nothing
    was recorded; otherwise raises what the reference raises.
    """
    if not graph.samples or not graph.body.outputs:
        raise ArtifactError(
            "TL0701",
            "no output is recorded, so there is nothing to fit",
            pointer="/samples",
            hint="capture the function again with example arguments",
        )
    search_ = _Search(graph, tries, work)
    for node in graph.nodes:
        if observe is not None:
            observe(node)
        search_.visit(node)
    body, places = rewrite(graph.body, search_.chosen)
    samples = tuple(_moved(sample, places) for sample in graph.samples)
    fitted = replace(graph, body=body, samples=samples)
    return Fitting(fitted, tuple(search_.found), tuple(_outputs(graph, fitted)), search_.chosen)


def rewrite(body: Body, chosen: Mapping[int, Choice]) -> tuple[Body, dict[Ref, Ref]]:
    """The body with nodes as chosen, and where every value is in it. What nothing needs any more is left out."""
    b, places = Builder(), dict[Ref, Ref]()
    for node in body.nodes:
        results = emit(b, body, node, chosen.get(node.id, AS_WRITTEN), places)
        places |= {Ref(node.id, k): ref for k, ref in enumerate(results)}
    if not chosen:
        return body, places
    return _pruned(Body(tuple(b.nodes), body.input_ids, tuple(places[ref] for ref in body.outputs)), body, places)


def _pruned(made: Body, body: Body, places: dict[Ref, Ref]) -> tuple[Body, dict[Ref, Ref]]:
    """Without the nodes that were needed before and are not now: products that are fused with their sum."""
    before = _needed(body)
    inputs = tuple(places[Ref(i)].node for i in body.input_ids)
    unneeded = {places[Ref(node.id)].node for node in body.nodes if node.id not in before}
    after = _needed(made, {*inputs, *unneeded})
    number = {node.id: k for k, node in enumerate(node for node in made.nodes if node.id in after)}

    def moved(ref: Ref) -> Ref:
        return Ref(number[ref.node], ref.result)

    nodes = tuple(
        replace(node, id=number[node.id], inputs=tuple(map(moved, node.inputs)))
        for node in made.nodes
        if node.id in after
    )
    kept = {old: moved(ref) for old, ref in places.items() if ref.node in number}
    return Body(nodes, tuple(number[i] for i in inputs), tuple(map(moved, made.outputs))), kept


def _needed(body: Body, also: set[int] | None = None) -> set[int]:
    """Ids of the nodes that the outputs are computed from, and those named."""
    needed = {ref.node for ref in body.outputs} | (also or set())
    for node in reversed(body.nodes):
        if node.id in needed:
            needed |= {ref.node for ref in node.inputs}
    return needed


def _moved(sample: Sample, places: Mapping[Ref, Ref]) -> Sample:
    if sample.trace is None:
        return sample
    return replace(sample, trace={places[ref]: tensor for ref, tensor in sample.trace.items() if ref in places})


def _outputs(graph: Graph, fitted: Graph) -> Iterator[OutputFit]:
    names = graph.output_names()
    for k, sample in enumerate(graph.samples):
        before, after = (evaluate(side.body, sample.inputs) for side in (graph, fitted))
        for position, recorded in enumerate(sample.outputs):
            equal = [int(equal_words(side[position], recorded).sum()) for side in (before, after)]
            yield OutputFit(names[position], k, recorded.type.size, *equal)


@dataclass
class _Search:
    """Goes through the nodes in order. ``values`` are those of each sample: the recorded ones, and for the others what
    recorded operands give by the choices so far."""

    graph: Graph
    tries: int
    work: int | None = None
    chosen: dict[int, Choice] = field(default_factory=dict)
    found: list[NodeFit] = field(default_factory=list)
    values: list[dict[Ref, Tensor]] = field(default_factory=list)
    recorded: list[dict[Ref, Tensor]] = field(default_factory=list)
    settled: set[int] = field(default_factory=set)

    @property
    def compiled(self) -> bool:
        return self.graph.producer is not None and self.graph.producer.outputs == "compiled"

    def __post_init__(self) -> None:
        body = self.graph.body
        for sample in self.graph.samples:
            known = {} if self.compiled else dict(sample.trace or {})
            self.recorded.append(known | dict(zip(body.outputs, sample.outputs, strict=True)))
            self.values.append(dict(zip((Ref(i) for i in body.input_ids), sample.inputs, strict=True)))

    def visit(self, node: Node) -> None:
        if node.op == "input":
            return
        refs = [Ref(node.id, k) for k in range(len(node.types))]
        own = [self._evaluated(node, values) for values in self.values]
        for values, results in zip(self.values, own, strict=True):
            values |= dict(zip(refs, results, strict=True))
        if node.op == "constant" or not all(ref in known for ref in refs for known in self.recorded):
            return
        wanted = [[known[ref] for ref in refs] for known in self.recorded]
        equal = _equal(own, wanted)
        cone = self._cone(node)
        if equal < _size(wanted):
            self._explain(node, cone, wanted, own, equal)
        self.settled |= {each.id for each in cone}
        for values, recorded in zip(self.values, wanted, strict=True):
            values |= dict(zip(refs, recorded, strict=True))

    def _evaluated(self, node: Node, values: Mapping[Ref, Tensor]) -> tuple[Tensor, ...]:
        return tuple(evaluate_node(node, tuple(values[ref] for ref in node.inputs)))

    def _cone(self, node: Node) -> list[Node]:
        """The node and all before it up to recorded values, in order."""
        body, waiting, inside = self.graph.body, [node.id], {node.id}
        while waiting:
            for ref in body.nodes[waiting.pop()].inputs:
                source = body.nodes[ref.node]
                known = source.op in ("input", "constant") or all(ref in values for values in self.recorded)
                if not known and ref.node not in inside:
                    inside.add(ref.node)
                    waiting.append(ref.node)
        return [body.nodes[i] for i in sorted(inside)]

    def _explain(
        self,
        node: Node,
        cone: list[Node],
        wanted: list[list[Tensor]],
        own: list[tuple[Tensor, ...]],
        equal: int,
    ) -> None:
        body = self.graph.body
        new: dict[int, Choice] = {}
        after = equal
        sum_ = whole_sum(body, node)
        alone = sum_ or node
        if len(node.types) == 1 and self._starts_at(cone, alone):
            samples = [
                Recorded(tuple(values[ref] for ref in alone.inputs), results[0])
                for values, results in zip(self.values, wanted, strict=True)
            ]
            candidates = [replace(choice, whole=False) for choice in choices(self.graph, body, node)]
            if not self._subnormal(node):
                candidates = [choice for choice in candidates if not choice.flush]
            if self.work is not None and alone.op not in SAMPLED:
                candidates = candidates[: self.work // max(1, 64 * node.type.size)]
            found = search(body, alone, samples, candidates)
            new = {} if found is None else {node.id: replace(found, whole=sum_ is not None)}
        if not new:
            new = self._together(node, cone, wanted) or {}
        if new:
            after = _size(wanted)
            self.chosen |= new
        mine = new.get(node.id, AS_WRITTEN)
        before = described(node)
        group = tuple((each, str(body.nodes[each]), str(choice)) for each, choice in new.items() if each != node.id)
        label = str(mine) if new else "no choice gives the words"
        count = _size(wanted)
        self.found.append(NodeFit(node.id, str(node), node.op, node.source, before, label, count, equal, after, group))

    def _starts_at(self, cone: list[Node], alone: Node) -> bool:
        """Whether a cone begins with the operands of one node, or of the whole sum that it completes."""
        inside = {each.id for each in cone}
        given = {ref for each in cone for ref in each.inputs if ref.node not in inside}
        given = {ref for ref in given if self.graph.nodes[ref.node].op != "constant"}
        return given <= set(alone.inputs)

    def _together(self, node: Node, cone: list[Node], wanted: list[list[Tensor]]) -> dict[int, Choice] | None:
        """Choices for all nodes of a cone that no recorded value has settled, the same for nodes that are alike."""
        body = self.graph.body
        groups: dict[Any, list[int]] = {}
        options: dict[Any, list[Choice]] = {}
        inner = {ref.node for each in cone for ref in self._inside(each)}
        for each in cone:
            if each.id in self.settled or each.id in inner:
                continue
            possible = choices(self.graph, body, each)
            if len(cone) == 1:
                possible = [choice for choice in possible if choice.fused is not None]
            # a product that is recorded was rounded by itself
            computed = {other.id for other in cone}
            possible = [c for c in possible if c.fused is None or each.inputs[c.fused].node in computed]
            if self.work is not None and not self.compiled:
                # operators that are evaluated one by one fuse nothing
                possible = [choice for choice in possible if choice.order is not None or choice.flush]
            if not self._subnormal(each):
                possible = [choice for choice in possible if not choice.flush]
            possible = [choice for choice in possible if not _is_written(each, choice)]
            if possible:
                key = self._alike(each, possible)
                groups.setdefault(key, []).append(each.id)
                options[key] = [AS_WRITTEN, *possible]
        if not groups:
            return None
        extracted = _extracted(body, cone, node)
        keys = list(groups)
        tries, cost = self.tries, max(1, additions(extracted[0]) * len(self.values))
        if self.work is not None:
            tries = min(tries, self.work // cost)
        for picks in _combinations([len(options[key]) for key in keys], tries):
            if self.work is not None:
                self.work -= cost
            new = {
                each: options[key][pick]
                for key, pick in zip(keys, picks, strict=True)
                for each in groups[key]
                if options[key][pick] != AS_WRITTEN
            }
            if new and self._cone_gives(extracted, cone, new, wanted):
                return new
        return None

    def _subnormal(self, node: Node) -> bool:
        """Whether an operand or a result of a node has a subnormal number in any sample."""
        refs = (*node.inputs, *(Ref(node.id, k) for k in range(len(node.types))))
        return any(ref in values and has_subnormal(values[ref]) for values in self.values for ref in refs)

    def _inside(self, node: Node) -> Iterator[Ref]:
        """The values between the operand of the whole sum that a node completes and the node."""
        sum_ = whole_sum(self.graph.body, node)
        if sum_ is not None:
            ref = node.inputs[0]
            while ref != sum_.inputs[0]:
                yield ref
                ref = self.graph.nodes[ref.node].inputs[0]

    def _alike(self, node: Node, possible: list[Choice]) -> Any:
        body = self.graph.body
        types = tuple(type.dtype for type in body.operand_types(node))
        if possible[0].order is None:
            return node.op, types, tuple(possible)
        shapes = tuple(type.shape for type in body.operand_types(node))
        attrs = {name: value for name, value in node.attrs.items() if name != "accumulate"}
        return node.op, types, shapes, repr(sorted(attrs.items()))

    def _cone_gives(
        self, extracted: tuple[Body, list[Ref]], cone: list[Node], new: Mapping[int, Choice], wanted: list[list[Tensor]]
    ) -> bool:
        part, refs = extracted
        number = {each.id: len(refs) + k for k, each in enumerate(cone)}
        all_ = {**{i: choice for i, choice in self.chosen.items() if i in number}, **new}
        made, _ = rewrite(part, {number[i]: choice for i, choice in all_.items()})
        for values, results in zip(self.values, wanted, strict=True):
            got = evaluate(made, [values[ref] for ref in refs])
            if not all(equal_words(a, b).all() for a, b in zip(got, results, strict=True)):
                return False
        return True


def _is_written(node: Node, choice: Choice) -> bool:
    """Whether a choice is what the node says already."""
    own: Accumulate = node.attrs.get("accumulate") or Accumulate()
    if choice.order is None or choice.whole or choice.flush:
        return False
    written = own.order_text + (" with fma" if own.fma else "")
    return str(choice.order) == written and choice.dtype == own.dtype


def _extracted(body: Body, cone: list[Node], node: Node) -> tuple[Body, list[Ref]]:
    """The nodes of a cone as a body of their own, and the values that are its inputs."""
    inside = {each.id for each in cone}
    # the factors of a product that an addition may be fused with, where the product is recorded
    refs = list(dict.fromkeys(ref for each in cone for ref in each.inputs if ref.node not in inside))
    b = Builder()
    places = {ref: b.input(body.type_of(ref)) for ref in refs}
    for each in cone:
        results = emit(b, body, each, AS_WRITTEN, places)
        places |= {Ref(each.id, k): ref for k, ref in enumerate(results)}
    outputs = tuple(places[Ref(node.id, k)] for k in range(len(node.types)))
    return Body(tuple(b.nodes), tuple(range(len(refs))), outputs), refs


def _combinations(sizes: Sequence[int], limit: int) -> Iterator[tuple[int, ...]]:
    """Tuples of an index below each size, not all 0: small sums of indices first, at most ``limit``."""
    made = 0

    def of(total: int, sizes: Sequence[int]) -> Iterator[tuple[int, ...]]:
        if not sizes:
            if not total:
                yield ()
            return
        for first in range(min(total, sizes[0] - 1) + 1):
            for rest in of(total - first, sizes[1:]):
                yield first, *rest

    for total in range(1, sum(sizes) - len(sizes) + 1):
        for found in of(total, sizes):
            if made == limit:
                return
            yield found
            made += 1


def _equal(own: Sequence[Sequence[Tensor]], wanted: Sequence[Sequence[Tensor]]) -> int:
    pairs = ((a, b) for mine, theirs in zip(own, wanted, strict=True) for a, b in zip(mine, theirs, strict=True))
    return int(sum(np.count_nonzero(equal_words(a, b)) for a, b in pairs))


def _size(tensors: Sequence[Sequence[Tensor]]) -> int:
    return sum(tensor.type.size for each in tensors for tensor in each)


# ---- for a comparison -----------------------------------------------------------------------------------------------


def reproduced(graph: Graph, sample: Sample, freedoms: Freedoms) -> dict[int, str]:
    """Positions of the outputs of which declared choices give every recorded word, with the choices in words. Where
    orders of summation are not free, nothing is looked for."""
    compiled = graph.producer is not None and graph.producer.outputs == "compiled"
    if not freedoms.order or ((compiled or not sample.trace) and additions(graph.body) > QUICK_WORK):
        return {}
    if not any(choices(graph, graph.body, node) for node in graph.nodes):
        return {}
    search_ = _Search(replace(graph, samples=(sample,)), QUICK_TRIES, QUICK_WORK)
    for node in graph.nodes:
        search_.visit(node)
    if not search_.chosen:
        return {}
    body, _ = rewrite(graph.body, search_.chosen)
    found: dict[int, str] = {}
    for position, (got, recorded) in enumerate(zip(evaluate(body, sample.inputs), sample.outputs, strict=True)):
        above = _above(graph.body, graph.body.outputs[position])
        made = [f"node {graph.nodes[i]}: {choice}" for i, choice in sorted(search_.chosen.items()) if i in above]
        if made and equal_words(got, recorded).all():
            found[position] = "; ".join(made)
    return found


def _above(body: Body, ref: Ref) -> set[int]:
    return _needed(replace(body, outputs=(ref,)))
