"""Where a difference starts: every node on the operands that the frontend recorded for it.

A trace has the frontend's value of every node. Beside each stands the reference's value twice: *propagated*, from the
graph's inputs, which shows how far the two computations are apart there; and *local*, from the recorded operands of
the node alone, which shows what the node itself adds. A local difference that no permitted execution of the node gives
cannot be explained by anything before it, so the first such node is the suspect.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlir.backends.liveness import last_uses
from tlir.backends.reference import evaluate
from tlir.compare.auto import VERDICTS, AutoOutput, judge
from tlir.compare.bounds import DEFAULT_POLICY, Enclosure, Freedoms, Reasons, certain, local, resolve
from tlir.compare.measure import compare_tensors
from tlir.compare.report import OutputComparison
from tlir.compare.rule import Rule, exact_number
from tlir.compare.text import element_text
from tlir.compare.twins import different, same_attributes
from tlir.errors import Source, UsageError
from tlir.floatlib.words import constant, is_finite, is_nan, is_zero, less, magnitudes, signs
from tlir.ir.graph import Body, Graph, Node, Ref, Sample
from tlir.ir.ops import OPERATIONS
from tlir.ir.tensor import Tensor

SPECIALS = ("NaN", "infinity", "overflow to infinity", "subnormal flushed to zero", "lost sign of zero")
"""What the ledger of special values looks for, in its order."""

SHOWN_OPERANDS = 4
_EXACT = Rule(exact_number("tolerance", 0), exact_number("rtol", 0), None, origin="exact")


@dataclass(frozen=True)
class OperandElement:
    """One operand of a suspect at the place that matters, as text; ``index`` is None where the operation reads more
    than one element of it."""

    name: str
    index: tuple[int, ...] | None
    value: str

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "index": None if self.index is None else list(self.index), "value": self.value}


@dataclass(frozen=True)
class NodeDifference:
    """One result of a node for one sample. ``propagated`` and ``local`` compare the frontend's recorded value with the
    reference's; the local one is judged, so that its verdict, bounds and justified tolerance are there."""

    ref: Ref
    label: str
    op: str
    source: Source | None
    propagated: OutputComparison
    local: AutoOutput

    @property
    def verdict(self) -> str:
        return self.local.verdict

    def to_json(self) -> dict[str, Any]:
        return {
            "node": self.ref.node,
            "result": self.ref.result,
            "label": self.label,
            "op": self.op,
            "propagated": self.propagated.to_json(),
            "local": self.local.to_json(),
        }


@dataclass(frozen=True)
class LedgerEntry:
    """The first node where a special value appears on one side and not on the other. ``side`` has it; ``local`` says
    that the node's recorded operands give the same appearance, so that the node itself makes it."""

    kind: str
    side: str
    ref: Ref
    label: str
    source: Source | None
    index: tuple[int, ...]
    count: int
    frontend: str
    reference: str
    local: bool

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "side": self.side,
            "node": self.ref.node,
            "result": self.ref.result,
            "label": self.label,
            "source": None if self.source is None else str(self.source),
            "index": list(self.index),
            "elements": self.count,
            "frontend": self.frontend,
            "reference": self.reference,
            "local": self.local,
        }


@dataclass(frozen=True)
class Location:
    """What one sample's trace shows. ``suspect`` is the first node whose local difference is a bug; ``operands`` are
    those of its worst element; ``missing`` the nodes that the trace has no value of."""

    sample: int
    nodes: tuple[NodeDifference, ...]
    ledger: tuple[LedgerEntry, ...]
    suspect: NodeDifference | None
    operands: tuple[OperandElement, ...]
    missing: tuple[int, ...]
    freedoms: Freedoms
    side: str = ""
    """Whose trace it is, where two artifacts are compared."""

    @property
    def ok(self) -> bool:
        return self.suspect is None

    def summary(self) -> dict[str, Any]:
        """The suspect with its operands, and the ledger, as JSON; without the other nodes."""
        return {
            **({"artifact": self.side} if self.side else {}),
            "sample": self.sample,
            "recorded": len(self.nodes),
            "suspect": None if self.suspect is None else self.suspect.to_json(),
            "operands": [operand.to_json() for operand in self.operands],
            "ledger": [entry.to_json() for entry in self.ledger],
        }

    def to_json(self) -> dict[str, Any]:
        return {
            "sample": self.sample,
            "policy": {"name": self.freedoms.policy, "permits": str(self.freedoms)},
            "suspect": None if self.suspect is None else self.suspect.ref.node,
            "operands": [operand.to_json() for operand in self.operands],
            "nodes": [node.to_json() for node in self.nodes],
            "ledger": [entry.to_json() for entry in self.ledger],
            "missing": list(self.missing),
        }


def locate(
    graph: Graph,
    *,
    sample: int = 0,
    policy: str = DEFAULT_POLICY,
    table: Path | None = None,
    trace: Mapping[Ref, Tensor] | None = None,
    observe: Callable[[Node], None] | None = None,
) -> Location:
    """Compare every node with the frontend's recorded value of it.

    ``trace`` replaces the recorded one. Values that it lacks are computed, and enclosed, from what is recorded
    before: a value after them is judged by what permitted executions of all of them give. UsageError TL0602 where
    there is no such sample or it has no trace; otherwise raises what ``resolve`` and the reference raise.
    """
    if not 0 <= sample < len(graph.samples):
        raise UsageError(
            "TL0602", f"there is no sample {sample}", hint="the artifact has no recorded outputs to explain"
        )
    recorded = graph.samples[sample]
    values = dict(recorded.trace or {}) if trace is None else dict(trace)
    if not values:
        raise UsageError(
            "TL0602", "the artifact has no trace", hint="capture it with trace=True, or --trace on the command line"
        )
    freedoms = resolve(policy, graph.producer, table)
    body = graph.body
    reference = _reference_values(body, recorded.inputs)
    frontend = _filled(body, recorded, values, reference)
    nodes, ledger, missing = [], Ledger(), []
    permitted, written = _Enclosed(body, freedoms), _Enclosed(body, freedoms.in_written_order())
    for node in body.nodes:
        if observe is not None:
            observe(node)
        refs = [Ref(node.id, k) for k in range(len(node.types))]
        if node.op in ("input", "constant"):
            permitted.take(refs, frontend)
            written.take(refs, frontend)
            continue
        theirs = {ref: values[ref] for ref in refs if ref in values}
        enclosures, narrow = permitted.follow(node, theirs), written.follow(node, theirs)
        if not theirs:
            missing.append(node.id)
            continue
        operands = [frontend[ref] for ref in node.inputs]
        for ref, enclosure, own in zip(refs, enclosures, narrow, strict=True):
            if ref not in values:
                continue
            judged = judge(values[ref], enclosure.tensor, (enclosure, permitted.reasons), (own, written.reasons))
            passes = judged.codes < VERDICTS.index("bug")
            k = ref.result
            here = compare_tensors(values[ref], enclosure.tensor, _EXACT, node=node, position=k, passing=passes)
            far = compare_tensors(values[ref], reference[ref], _EXACT, node=node, position=k)
            nodes.append(NodeDifference(ref, str(node), node.op, node.source, far, judged.output(here, None)))
            ledger.note(node, ref, operands, (values[ref], reference[ref], enclosure.tensor))
    suspect = next((found for found in nodes if found.verdict == "bug"), None)
    elements = () if suspect is None else tuple(_operands(body, suspect, frontend))
    return Location(sample, tuple(nodes), ledger.entries(), suspect, elements, tuple(missing), freedoms)


def located(
    graph: Graph, policy: str = DEFAULT_POLICY, table: Path | None = None, samples: Collection[int] | None = None
) -> tuple[Location, ...]:
    """What the traces of a graph show: one location for each sample that has a trace, of ``samples`` if given."""
    return tuple(
        locate(graph, sample=k, policy=policy, table=table)
        for k, sample in enumerate(graph.samples)
        if sample.trace and (samples is None or k in samples)
    )


class _Enclosed:
    """What permitted executions may give for each node on what the frontend recorded before it: its recorded values are
    certain, and what it did not record is enclosed from what it did."""

    def __init__(self, body: Body, freedoms: Freedoms) -> None:
        self.body, self.freedoms, self.reasons = body, freedoms, Reasons()
        self._values: dict[Ref, Enclosure] = {}
        self._dropped = last_uses(body)

    def take(self, refs: Sequence[Ref], values: Mapping[Ref, Tensor]) -> None:
        """These values are what every execution has."""
        self._values |= {ref: certain(values[ref]) for ref in refs}

    def follow(self, node: Node, recorded: Mapping[Ref, Tensor]) -> tuple[Enclosure, ...]:
        """The enclosures of a node's results; nodes after it take those that are recorded."""
        operands = [self._values[ref] for ref in node.inputs]
        found = local(self.body, node, operands, self.freedoms, self.reasons, recorded=bool(recorded))
        self._values |= {Ref(node.id, k): enclosure for k, enclosure in enumerate(found)}
        self.take(list(recorded), recorded)
        for ref in self._dropped[node.id]:
            self._values.pop(ref, None)
        return found


def _reference_values(body: Body, inputs: Sequence[Tensor]) -> dict[Ref, Tensor]:
    """What the reference computes for every node from the arguments."""
    values: dict[Ref, Tensor] = {}

    def keep(node: Node, results: tuple[Tensor, ...]) -> None:
        values.update((Ref(node.id, k), tensor) for k, tensor in enumerate(results))

    evaluate(body, inputs, observe=keep)
    return values


def frontend_values(graph: Graph, sample: int = 0) -> dict[Ref, Tensor]:
    """The frontend's value of everything in a sample that has a trace: recorded, or what recorded operands give."""
    recorded = graph.samples[sample]
    reference = _reference_values(graph.body, recorded.inputs)
    return _filled(graph.body, recorded, dict(recorded.trace or {}), reference)


def trace_of(graph: Graph, other: Graph, sample: int = 0) -> dict[Ref, Tensor]:
    """What another artifact of the same graph recorded for a sample: its trace, and its outputs unless compiled code
    made them, whose intermediate values nobody has.

    UsageError TL0602 where it recorded nothing of use, TL0901 where the graphs are not the same (operations, operands,
    types, attributes but for the order of sums, and constants), or the inputs' words differ.
    """
    for mine, theirs in zip(graph.nodes, other.nodes, strict=False):
        if (mine.op, mine.inputs, mine.types) != (theirs.op, theirs.inputs, theirs.types):
            raise different(f"node {mine} is {theirs} there")
        if not same_attributes(mine, theirs):
            raise different(f"node {mine} has other attributes or values there")
    if len(graph.nodes) != len(other.nodes) or graph.body.outputs != other.body.outputs:
        raise different(f"{len(graph.nodes)} and {len(other.nodes)} nodes, or other outputs")
    for side in (graph, other):
        if not 0 <= sample < len(side.samples):
            raise UsageError("TL0602", f"there is no sample {sample} in one of the artifacts")
    left, right = graph.samples[sample], other.samples[sample]
    for name, a, b in zip(graph.body.input_names(), left.inputs, right.inputs, strict=True):
        if not a.same_words(b):
            raise UsageError("TL0901", f"the artifacts recorded different inputs {name}", hint="capture both alike")
    compiled = other.producer is not None and other.producer.outputs == "compiled"
    if compiled and not right.trace:
        hint = "its outputs are those of compiled code: capture it with trace=True, or compare it by itself"
        raise UsageError("TL0602", "the other artifact has no trace", hint=hint)
    return dict(right.trace or {}) | ({} if compiled else dict(zip(other.body.outputs, right.outputs, strict=True)))


def _filled(
    body: Body, recorded: Sample, values: Mapping[Ref, Tensor], reference: Mapping[Ref, Tensor]
) -> dict[Ref, Tensor]:
    """The frontend's value of everything: recorded; the given inputs and constants; else what the node's recorded
    operands give."""
    from tlir.backends.reference import evaluate_node

    filled: dict[Ref, Tensor] = dict(zip((Ref(i) for i in body.input_ids), recorded.inputs, strict=True))
    for node in body.nodes:
        refs = [Ref(node.id, k) for k in range(len(node.types))]
        if node.op == "constant":
            filled[refs[0]] = reference[refs[0]]
        elif node.op != "input":
            if not all(ref in values for ref in refs):
                filled |= dict(zip(refs, evaluate_node(node, tuple(filled[ref] for ref in node.inputs)), strict=True))
            filled |= {ref: values[ref] for ref in refs if ref in values}
    return filled


def _operands(body: Body, suspect: NodeDifference, values: Mapping[Ref, Tensor]) -> Iterator[OperandElement]:
    """The operands at the worst element, for elementwise operations; the whole of small ones otherwise."""
    node = body.nodes[suspect.ref.node]
    index = suspect.local.worst[0].index if suspect.local.worst else ()
    for ref in node.inputs[:SHOWN_OPERANDS]:
        tensor, of = values[ref], body.nodes[ref.node]
        name = of.name or f"{ref} {of.op}"
        if tensor.shape == node.types[suspect.ref.result].shape and _elementwise(node):
            flat = int(np.ravel_multi_index(index, tensor.shape)) if index else 0
            yield OperandElement(name, index, element_text(tensor, flat))
        else:
            count = min(tensor.type.size, 4)
            shown = ", ".join(element_text(tensor, k) for k in range(count))
            yield OperandElement(name, None, shown + (", …" if tensor.type.size > count else ""))


def _elementwise(node: Node) -> bool:
    return OPERATIONS[node.op].family in ("arithmetic", "elementary", "special", "logic") or node.op == "convert"


class Ledger:
    """The first appearance of each kind of special value on one side alone."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], LedgerEntry] = {}

    def entries(self) -> tuple[LedgerEntry, ...]:
        return tuple(sorted(self._found.values(), key=lambda entry: (entry.ref, SPECIALS.index(entry.kind))))

    def note(self, node: Node, ref: Ref, operands: Sequence[Tensor], sides: tuple[Tensor, Tensor, Tensor]) -> None:
        """``sides``: the frontend's value, the reference's, and that of the node alone on the recorded ``operands``."""
        frontend, reference, _ = sides
        if not frontend.dtype.is_float:
            return
        for appearance, theirs, ours, own in _appearances(*sides):
            kind = "overflow to infinity" if appearance == "infinity" and _all_finite(operands) else appearance
            for side, mask in (("frontend", theirs & ~ours), ("reference", ours & ~theirs)):
                if (kind, side) in self._found or not mask.any():
                    continue
                flat = int(np.flatnonzero(mask)[0])
                index = tuple(int(i) for i in np.unravel_index(flat, frontend.shape)) if frontend.shape else ()
                self._found[kind, side] = LedgerEntry(
                    kind,
                    side,
                    ref,
                    str(node),
                    node.source,
                    index,
                    int(np.count_nonzero(mask)),
                    element_text(frontend, flat),
                    element_text(reference, flat),
                    bool((own if side == "reference" else theirs & ~own)[flat]),
                )


def _all_finite(operands: Sequence[Tensor]) -> bool:
    return all(is_finite(x.dtype.float_format, x.words).all() for x in operands if x.dtype.is_float)


Mask = NDArray[np.bool_]


def _appearances(frontend: Tensor, reference: Tensor, alone: Tensor) -> Iterator[tuple[str, Mask, Mask, Mask]]:
    """For each kind where it appears, flat: in the frontend's value, the reference's, and that of the node alone."""
    fmt = frontend.dtype.float_format
    size = frontend.type.size

    def flat(mask: Any) -> Mask:
        return np.asarray(mask, np.bool_).reshape(size)

    sides = [tensor.words for tensor in (frontend, reference, alone)]
    nan = [flat(is_nan(fmt, words)) for words in sides]
    infinite = [~flat(is_finite(fmt, words)) & ~bad for words, bad in zip(sides, nan, strict=True)]
    zero = [flat(is_zero(fmt, words)) for words in sides]
    negative = [flat(signs(fmt, words)) for words in sides]
    subnormal = [flat(_is_subnormal(tensor)) for tensor in (frontend, reference, alone)]
    yield "NaN", nan[0], nan[1], nan[2]
    yield "infinity", infinite[0], infinite[1], infinite[2]
    # flushed: a zero where the other side has a subnormal number
    yield "subnormal flushed to zero", zero[0] & subnormal[1], zero[1] & subnormal[0], zero[2]
    lost = [zero[0] & ~negative[0] & zero[1] & negative[1], zero[1] & ~negative[1] & zero[0] & negative[0]]
    yield "lost sign of zero", lost[0], lost[1], zero[2] & ~negative[2]


def _is_subnormal(tensor: Tensor) -> Any:
    fmt = tensor.dtype.float_format
    below = less(fmt, magnitudes(fmt, tensor.words), constant(fmt, 1 << fmt.fraction_bits))
    return below & ~is_zero(fmt, tensor.words) if fmt.subnormals else np.zeros(tensor.shape, np.bool_)
