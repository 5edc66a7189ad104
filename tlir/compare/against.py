"""Two artifacts of the same graph compared with each other: compiled and not, two versions of a frontend, two devices,
float32 and bfloat16.

Each recorded value is judged by what permitted executions of its own artifact give, so that a difference between the
two is rounding or reordering where both are permitted, and a bug where one is not. With traces the values of every node
stand beside each other, and beside them what the node alone adds: the node in the wider format, on the operands that
the narrower one recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from tlir.backends.reference import evaluate_node
from tlir.compare.auto import (
    FOLLOWED,
    VERDICTS,
    AutoOutput,
    AutoReport,
    Bound,
    Judged,
    Mask,
    fallback_rule,
    judge,
    number,
    work,
)
from tlir.compare.bounds import DEFAULT_POLICY, Enclosure, Freedoms, Reasons, enclose, resolve
from tlir.compare.bounds.enclosure import same_value
from tlir.compare.locate import Ledger, LedgerEntry, Location, frontend_values, located
from tlir.compare.measure import compare_tensors, output_names
from tlir.compare.report import CompareReport, OutputComparison
from tlir.compare.rule import Rule, exact_number
from tlir.compare.twins import Twins, both, converted, in_types_of, narrower, twins
from tlir.errors import Source, UsageError
from tlir.ir.graph import Graph, Node, Ref
from tlir.ir.tensor import Tensor

_EXACT = Rule(exact_number("tolerance", 0), exact_number("rtol", 0), None, origin="exact")
_SPECIAL = ("NaN", "infinity", "overflow to infinity")


@dataclass(frozen=True)
class NodePair:
    """A value that both artifacts recorded. ``difference`` compares the two; ``added`` is what the node alone adds: the
    wider format's node on the operands of the narrower one, beside what that recorded (in one format, each side's node
    on the operands of the other, whichever is further off). ``other`` is the value's
    reference in the second artifact."""

    sample: int
    ref: Ref
    other: Ref
    label: str
    source: Source | None
    difference: OutputComparison
    added: OutputComparison

    def to_json(self) -> dict[str, Any]:
        return {
            "sample": self.sample,
            "node": self.ref.node,
            "other": self.other.node,
            "label": self.label,
            "difference": self.difference.to_json(),
            "added": self.added.to_json(),
        }


@dataclass(frozen=True)
class Blamed:
    """An artifact whose recorded output has elements that differ from the other's and that no permitted execution of it
    gives."""

    name: str
    sample: int
    position: int
    elements: int

    def to_json(self) -> dict[str, Any]:
        return {"artifact": self.name, "sample": self.sample, "output": self.position, "elements": self.elements}


@dataclass(frozen=True)
class Pair:
    """What two artifacts are to each other, beside their outputs: their names and who recorded them; where both have
    traces, the nodes in the order of the graph and the ledger of special values, whose ``side`` is a name."""

    names: tuple[str, str]
    recorded: tuple[str, str]
    nodes: tuple[NodePair, ...] = ()
    ledger: tuple[LedgerEntry, ...] = ()
    blamed: tuple[Blamed, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "artifacts": list(self.names),
            "recorded": list(self.recorded),
            "blamed": [blamed.to_json() for blamed in self.blamed],
            "nodes": [node.to_json() for node in self.nodes],
            "ledger": [entry.to_json() for entry in self.ledger],
        }


def compare_against(
    a: Graph,
    b: Graph,
    *,
    rule: Rule | None = None,
    policy: str = DEFAULT_POLICY,
    table: Path | None = None,
    names: tuple[str, str] = ("the first", "the second"),
) -> CompareReport:
    """Compare what two artifacts of the same graph recorded; ``expected`` is the first's value, ``got`` the second's.

    Without a ``rule`` an element passes if both values are what permitted executions of their own artifacts may give,
    the report is an ``AutoReport``; with one, if the second's value satisfies it, the first's being the right one.
    Values of two formats are compared in one that has every number of both, while ``ulps`` are counted in the narrower
    one. UsageError TL0901 where the graphs or inputs are not the same; raises what ``resolve`` and the reference raise.
    """
    pair = twins(a, b)
    if rule is not None and rule.words and not pair.same_formats:
        raise UsageError("TL0901", "words of different formats are not the same", hint="compare without --words")
    freedoms = tuple(resolve(policy, graph.producer, table) for graph in (a, b))
    outputs: list[OutputComparison] = []
    blamed: list[Blamed] = []
    for k in range(len(a.samples)):
        sides = None if rule is not None else [_judged(g, k, f) for g, f in zip((a, b), freedoms, strict=True)]
        for position, name in enumerate(output_names(a)):
            x, y = (graph.samples[k].outputs[position] for graph in (a, b))
            node = a.nodes[a.body.outputs[position].node]
            if sides is None:
                assert rule is not None
                outputs.append(measured(x, y, rule, None, node, sample=k, position=position, name=name))
                continue
            judged = sides[0][position], sides[1][position]
            passes = _codes(judged, x, y) < VERDICTS.index("undecided")
            found = measured(x, y, fallback_rule(0, None), passes, node, sample=k, position=position, name=name)
            outputs.append(_output(found, judged, x, y))
            blamed += _blamed(judged, x, y, names, k, position)
    told = Pair(names, (_who(a), _who(b)), *_traced(pair, names), tuple(blamed))
    locations: tuple[Location, ...] = ()
    if rule is None or not all(found.ok for found in outputs):
        for graph, name in zip((a, b), names, strict=True):
            locations += tuple(replace(location, side=name) for location in located(graph, policy, table))
    if rule is not None:
        return CompareReport(
            tuple(outputs), rule, "recorded", len(a.samples), a.producer, locations=locations, pair=told
        )
    return AutoReport(
        tuple(outputs),
        fallback_rule(0, None),
        "recorded",
        len(a.samples),
        a.producer,
        freedoms=freedoms[0],
        locations=locations,
        pair=told,
    )


def _who(graph: Graph) -> str:
    producer = graph.producer
    if producer is None:
        return "by hand"
    return f"{producer.outputs} by {producer.frontend} {producer.frontend_version}".rstrip()


def measured(x: Tensor, y: Tensor, rule: Rule, passes: Mask | None, node: Node, **place: Any) -> OutputComparison:
    """Two tensors of any real, or any complex, formats compared: differences in a format that has the numbers of both,
    distances in the narrower one."""
    wide = both(x, y)
    found = compare_tensors(*wide, rule, node=node, passing=passes, **place)
    if x.dtype == y.dtype:
        return found
    least = narrower(x.dtype, y.dtype)
    steps = compare_tensors(converted(x, least), converted(y, least), rule, node=node, passing=passes, **place)
    return replace(found, max_ulps=steps.max_ulps, histogram=steps.histogram)


# ---- outputs --------------------------------------------------------------------------------------------------------


def _judged(graph: Graph, sample: int, freedoms: Freedoms) -> list[Judged]:
    """What permitted executions make of each recorded output of one artifact."""
    recorded = graph.samples[sample]
    wide, reasons = enclose(graph.body, recorded.inputs, freedoms)
    narrow: Sequence[Enclosure] | None = None
    own = Reasons()
    if work(graph.body) <= FOLLOWED:
        narrow, own = enclose(graph.body, recorded.inputs, freedoms.in_written_order())
    return [
        judge(
            expected,
            enclosure.tensor,
            (enclosure, reasons),
            (narrow[position], own) if narrow is not None else None,
        )
        for position, (expected, enclosure) in enumerate(zip(recorded.outputs, wide, strict=True))
    ]


def _codes(judged: tuple[Judged, Judged], x: Tensor, y: Tensor) -> Any:
    """The worse verdict of both sides where they differ. What is exact in its own format on both sides and differs is
    the rounding of the formats."""
    same = _same(x, y)
    codes = np.maximum(np.maximum(judged[0].codes, judged[1].codes), VERDICTS.index("rounding"))
    codes[same.reshape(codes.shape)] = VERDICTS.index("identical")
    return codes


def _same(x: Tensor, y: Tensor) -> Mask:
    same = same_value(*both(x, y))
    return np.asarray(same.all(axis=-1) if x.dtype.is_complex else same)


def _blamed(
    judged: tuple[Judged, Judged], x: Tensor, y: Tensor, names: tuple[str, str], sample: int, position: int
) -> Iterator[Blamed]:
    for name, each in zip(names, judged, strict=True):
        bad = (each.codes == VERDICTS.index("bug")) & ~_same(x, y).reshape(each.codes.shape)
        if bad.any():
            yield Blamed(name, sample, position, int(np.count_nonzero(bad)))


def _output(found: OutputComparison, judged: tuple[Judged, Judged], x: Tensor, y: Tensor) -> AutoOutput:
    codes = _codes(judged, x, y)
    count = np.bincount(codes, minlength=len(VERDICTS))
    (low, high), (other_low, other_high) = (each.enclosure.stored().interval for each in judged)
    with np.errstate(all="ignore"):
        apart = np.maximum(high - other_low, other_high - low)
    values, other_values = (each.enclosure.values.lo for each in judged)
    equal = (values == other_values) | (np.isnan(values) & np.isnan(other_values))
    apart = np.where(np.isnan(apart), np.where(equal, 0.0, np.inf), apart)
    finite = apart[np.isfinite(apart)]
    reasons: dict[Any, int] = {}
    for each in judged:
        for reason, elements in each.reasons.items():
            reasons[reason] = reasons.get(reason, 0) + elements
    given = {field.name: getattr(found, field.name) for field in fields(OutputComparison)}
    return AutoOutput(
        **given,
        verdict=VERDICTS[int(codes.max(initial=0))],
        counts={verdict: int(n) for verdict, n in zip(VERDICTS, count, strict=True) if n},
        justified=float(apart.max(initial=0.0)),
        typical=float(np.median(finite)) if len(finite) else 0.0,
        unbounded=int(np.count_nonzero(np.isinf(apart))),
        reasons=tuple(reasons.items()),
        bounds=tuple(
            Bound(
                element.index,
                tuple(number(float(v)) for v in np.atleast_1d(np.minimum(low, other_low)[element.index])),
                tuple(number(float(v)) for v in np.atleast_1d(np.maximum(high, other_high)[element.index])),
            )
            for element in found.worst
        ),
    )


# ---- nodes ----------------------------------------------------------------------------------------------------------


def _traced(pair: Twins, names: tuple[str, str]) -> tuple[tuple[NodePair, ...], tuple[LedgerEntry, ...]]:
    """Every value that both artifacts recorded, beside each other."""
    nodes: list[NodePair] = []
    ledger = Ledger()
    for k, (left, right) in enumerate(zip(pair.a.samples, pair.b.samples, strict=True)):
        if not left.trace or not right.trace:
            continue
        values = frontend_values(pair.a, k), frontend_values(pair.b, k)
        kept = [_recorded(graph, k) for graph in (pair.a, pair.b)]
        done: set[Ref] = set()
        for (x, y), seen in pair.seen.items():
            node = pair.a.nodes[x.node]
            recorded = [refs for refs in (*seen, (x, y)) if refs[0] in kept[0] and refs[1] in kept[1]]
            if node.op in ("input", "constant") or x in done or not recorded:
                continue
            done.add(x)
            last = min(recorded, key=lambda refs: _precision(values[0][refs[0]], values[1][refs[1]]))
            nodes.append(_node(pair, k, (x, y), last, values))
            wide = both(values[0][last[0]], values[1][last[1]])
            if wide[0].dtype.is_float:
                ledger.note(node, x, [values[0][ref] for ref in node.inputs], (*wide, wide[0]))
    sides = {"frontend": names[0], "reference": names[1]}
    entries = (replace(entry, side=sides[entry.side]) for entry in ledger.entries())
    return tuple(nodes), tuple(entry for entry in entries if pair.same_formats or entry.kind in _SPECIAL)


def _recorded(graph: Graph, sample: int) -> Mapping[Ref, Tensor]:
    return graph.samples[sample].trace or {}


def _precision(x: Tensor, y: Tensor) -> int:
    return sum(each.dtype.float_format.precision for each in (x, y) if each.dtype.format is not None)


def _node(
    pair: Twins,
    sample: int,
    refs: tuple[Ref, Ref],
    seen: tuple[Ref, Ref],
    values: tuple[Mapping[Ref, Tensor], Mapping[Ref, Tensor]],
) -> NodePair:
    """One value: the difference of what others see of it, and what the node and the conversions after it add on the
    narrower side's operands."""
    mine, theirs = values[0][seen[0]], values[1][seen[1]]
    graphs, (x, y) = (pair.a, pair.b), refs
    label = pair.a.nodes[x.node]
    place: dict[str, Any] = {"sample": sample, "position": x.result}

    def adds(side: int) -> OutputComparison:
        """What one side recorded beside the other side's node on its operands."""
        node = graphs[1 - side].nodes[refs[1 - side].node]
        given = [values[side][ref] for ref in graphs[side].nodes[refs[side].node].inputs]
        alone = evaluate_node(node, in_types_of(node, graphs[1 - side].body, given))[refs[1 - side].result]
        return measured(values[side][seen[side]], alone, _EXACT, None, label, **place)

    if mine.dtype == theirs.dtype:  # whichever adds more
        added = max((adds(side) for side in (0, 1)), key=lambda found: (found.mismatched, size(found)))
    else:
        added = adds(0 if narrower(mine.dtype, theirs.dtype) == mine.dtype else 1)
    return NodePair(
        sample,
        x,
        y,
        str(label),
        label.source,
        measured(mine, theirs, _EXACT, None, label, **place),
        added,
    )


def size(found: OutputComparison) -> float:
    """The largest absolute difference; infinite where a NaN or infinity does not match."""
    if found.mismatched:
        return float("inf")
    return float(found.max_absolute.absolute) if found.max_absolute and found.max_absolute.absolute else 0.0
