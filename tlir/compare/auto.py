"""Comparison by rigorous bounds: is a difference rounding, another order, or a bug?

Each element gets the first verdict that applies:

* **identical**: equal words, or both NaN, or both zero.
* **reproduced**: a declared choice gives the frontend's every word; whoever looks for one passes ``reproduce``.
* **rounding**: inside the enclosure of the written order, so that other rounding of elementary functions explains it.
* **reordering**: inside the enclosure of the policy: another order of summation, a fused operation, a wider
  intermediate explains it.
* **undecided**: inside, but only because a decision may go either way, or because nothing is known of an operation.
* **bug**: outside of what any permitted execution gives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlir.compare.bounds import DEFAULT_POLICY, Enclosure, Freedoms, Reason, Reasons, enclose, resolve
from tlir.compare.bounds.blocks import LEAST, block_of, blocks, element_of, plain
from tlir.compare.bounds.enclosure import UNSURE, first_of, is_uniform, same_value
from tlir.compare.factorizations import aligned, with_factors
from tlir.compare.measure import compare_tensors, output_names
from tlir.compare.report import CompareReport, OutputComparison
from tlir.compare.rule import Number, Rule, exact_number
from tlir.ir.graph import Body, Graph, Node, Sample
from tlir.ir.tensor import Tensor
from tlir.ir.types import TensorType

VERDICTS = ("identical", "reproduced", "rounding", "reordering", "undecided", "bug")
"""The verdicts, from the best to the worst."""

_WORST = 5

TYPICAL = 1 << 18
"""Of so many elements the median distance is taken; of larger outputs, of as many that are evenly spread."""

FOLLOWED = 1 << 14
"""In graphs of up to so many elements and products of contractions the written order is followed too, so that rounding
and reordering are told apart; in larger ones both are called reordering, which takes half the time."""

Mask = NDArray[np.bool_]
Reproduce = Callable[[Graph, Sample, Freedoms], Mapping[int, str]]
"""Looks for declared choices that give the frontend's every word: position of an output -> the choice in words."""


@dataclass(frozen=True)
class Bound:
    """The enclosure of one element that is outside of it: what permitted executions give, as text, per part."""

    index: tuple[int, ...]
    low: tuple[str, ...]
    high: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {"index": list(self.index), "low": list(self.low), "high": list(self.high)}


@dataclass(frozen=True)
class AutoOutput(OutputComparison):
    """One output for one sample, judged.

    ``counts`` says how many elements have each verdict; ``verdict`` is the worst one. ``justified`` is the largest
    distance from the reference's value that a permitted execution may have at any element (infinite where there is no
    bound), as decimal text that is not below it; the smallest absolute tolerance that would have passed is
    ``max_absolute``. ``reasons`` are those of undecided elements with their number; ``bounds`` the enclosures of the
    elements in ``worst``; ``choice`` what reproduces the output.
    """

    verdict: str = "identical"
    counts: Mapping[str, int] | None = None
    justified: float = 0.0
    typical: float = 0.0
    """The median over the elements of that distance."""
    unbounded: int = 0
    """Elements of which nothing is known."""
    reasons: tuple[tuple[Reason, int], ...] = ()
    bounds: tuple[Bound, ...] = ()
    choice: str | None = None

    def to_json(self) -> dict[str, Any]:
        needed = self.max_absolute.absolute if self.max_absolute else None
        return super().to_json() | {
            "verdict": self.verdict,
            "verdicts": dict(self.counts or {}),
            "needed": "0" if needed is None and not self.mismatched else None if needed is None else str(needed),
            "justified": number(self.justified),
            "typical": number(self.typical),
            "unbounded": self.unbounded,
            "reasons": [
                {"kind": reason.kind, "text": reason.text, "node": reason.node, "elements": count}
                for reason, count in self.reasons
            ],
            "bounds": [bound.to_json() for bound in self.bounds],
            "choice": self.choice,
        }


@dataclass(frozen=True)
class AutoReport(CompareReport):
    """The comparison of one graph by bounds. ``ok``: nothing is a bug, and what is undecided meets the rule. Where a
    trace is looked into, a node that is none of what its recorded operands permit is a bug too, whatever the outputs'
    enclosures leave room for."""

    freedoms: Freedoms | None = None

    @property
    def ok(self) -> bool:
        return super().ok and all(location.ok for location in self.locations)

    @property
    def verdict(self) -> str:
        """The worst verdict of any output; "bug" where a trace has a suspect."""
        if not all(location.ok for location in self.locations):
            return "bug"
        found = {output.verdict for output in self.outputs if isinstance(output, AutoOutput)}
        return next((verdict for verdict in reversed(VERDICTS) if verdict in found), "identical")

    def to_json(self) -> dict[str, Any]:
        parts = super().to_json() | {"verdict": self.verdict}
        if self.freedoms is not None:
            parts["policy"] = {"name": self.freedoms.policy, "permits": str(self.freedoms)}
        return parts


class AutoRule(Rule):
    """The rule that a report shows; ``fallback`` is what undecided elements have to satisfy."""

    def __str__(self) -> str:
        fallback = super().__str__()
        return "inside the enclosure of what the policy permits" + (
            f"; undecided elements: {fallback}" if self.ulps is not None or self.rtol else "; nothing undecided"
        )


def fallback_rule(rtol: Number, ulps: int | None) -> AutoRule:
    """What undecided elements have to satisfy: ``rtol`` or ``ulps``; equal values where neither is given."""
    return AutoRule(exact_number("tolerance", 0), exact_number("rtol", rtol), ulps, origin="auto")


def compare_auto(
    graph: Graph,
    *,
    policy: str = DEFAULT_POLICY,
    table: Path | None = None,
    rtol: Number = 0,
    ulps: int | None = None,
    device: str = "reference",
    run: Callable[[Graph, Sequence[Tensor]], Sequence[Tensor]] | None = None,
    reproduce: Reproduce | None = None,
    progress: Callable[[Node], None] | None = None,
) -> AutoReport:
    """Judge every output of every sample of a graph that has samples and outputs.

    ``table`` replaces the table of accuracies. ``run`` gives the values that are compared, by default the reference's.
    ``progress`` is called after each node. Raises what ``resolve`` and the reference raise.
    """
    freedoms = resolve(policy, graph.producer, table)
    rule = fallback_rule(rtol, ulps)
    outputs: list[OutputComparison] = []
    evaluated, factors = with_factors(graph)
    freedom = {place: each.freedom for each in factors for place in each.positions}
    names = output_names(graph)
    follows = work(evaluated.body) <= FOLLOWED
    for k, sample in enumerate(graph.samples):
        known: dict[int, tuple[Enclosure, ...]] = {}

        def keep(node: Node, made: tuple[Enclosure, ...], known: dict[int, tuple[Enclosure, ...]] = known) -> None:
            known[node.id] = made

        wide, reasons = enclose(evaluated.body, sample.inputs, freedoms, keep if follows else None, progress)
        got = [enclosure.tensor for enclosure in wide] if run is None else run(evaluated, sample.inputs)
        got = aligned(factors, sample.outputs, list(got))
        same = all(np.array_equal(a.words, b.words) for a, b in zip(sample.outputs, got, strict=True))
        choices = reproduce(graph, sample, freedoms) if reproduce is not None and not same else {}
        narrow: Sequence[Enclosure] | None = None
        own = Reasons()
        for position, expected in enumerate(sample.outputs):
            differs = position not in choices and not same_value(expected, got[position]).all()
            if differs and narrow is None and follows:
                narrow, own = enclose(evaluated.body, sample.inputs, freedoms.in_written_order(), known=known)
            node = graph.nodes[graph.body.outputs[position].node]
            judged = judge(
                expected,
                got[position],
                (wide[position], reasons),
                (narrow[position], own) if narrow is not None else None,
                choices.get(position),
            )
            passes = judged.passing(rule, expected, got[position])
            measured = compare_tensors(
                expected,
                got[position],
                rule,
                sample=k,
                position=position,
                name=names[position],
                node=node,
                passing=passes,
            )
            outputs.append(judged.output(measured, freedom.get(position)))
    return AutoReport(tuple(outputs), rule, device, len(graph.samples), graph.producer, freedoms=freedoms)


def work(body: Body) -> int:
    """How many elements the values of a body and its regions have, and how many products its contractions."""
    total = 0
    for node in body.nodes:
        total += sum(type.size for type in node.types)
        if node.op == "dot_general":
            shape = body.operand_types(node)[0].shape
            total += node.type.size * prod(shape[axis] for axis in node.attrs["lhs_contracting_dimensions"])
        total += sum(map(work, node.regions))
    return total


@dataclass(frozen=True)
class Judged:
    """The verdict on each element, as positions in ``VERDICTS``, flat. ``justified`` is how far permitted executions
    are from the reference at most, ``typical`` at the median of elements that are evenly spread; they are not bounded
    at ``unbounded`` elements."""

    codes: NDArray[np.uint8]
    justified: float
    typical: float
    unbounded: int
    enclosure: Enclosure
    reasons: Mapping[Reason, int]
    choice: str | None

    def passing(self, rule: Rule, expected: Tensor, got: Tensor) -> Mask:
        """Elements, flat, that are no bug and either decided or within the rule."""
        from tlir.compare.pairs import by_element, pairs

        passes = self.codes < VERDICTS.index("undecided")
        open = np.flatnonzero(self.codes == VERDICTS.index("undecided"))
        if len(open):
            sides = [by_element(expected.dtype, side.words)[open] for side in (expected, got)]
            passes[open] = pairs(expected.dtype, *sides).passes(rule)
        return passes

    def output(self, measured: OutputComparison, freedom: str | None) -> AutoOutput:
        codes = self.codes
        given = {field.name: getattr(measured, field.name) for field in fields(OutputComparison)}
        counts = {verdict: int(np.count_nonzero(codes == code)) for code, verdict in enumerate(VERDICTS)}
        return AutoOutput(
            **given | {"freedom": freedom},
            verdict=VERDICTS[int(codes.max(initial=0))],
            counts={verdict: n for verdict, n in counts.items() if n},
            justified=self.justified,
            typical=self.typical,
            unbounded=self.unbounded,
            reasons=tuple(self.reasons.items()),
            bounds=tuple(self._bound(element.index) for element in measured.worst[:_WORST]),
            choice=self.choice,
        )

    def _bound(self, index: tuple[int, ...]) -> Bound:
        kept = element_of(self.enclosure, index).stored()
        ends = (np.atleast_1d(end).tolist() for end in kept.interval)
        low, high = (tuple(number(float(x)) for x in end) for end in ends)
        return Bound(index, low, high)


def judge(
    expected: Tensor,
    got: Tensor,
    wide: tuple[Enclosure, Reasons],
    narrow: tuple[Enclosure, Reasons] | None = None,
    choice: str | None = None,
) -> Judged:
    """The verdict on every element of ``expected``, recorded, against what the reference got.

    ``wide`` is the enclosure of the policy and ``narrow`` that of the written order, each with the reasons that its
    tags name; ``choice`` says what reproduces the recorded words.
    """
    enclosure, known = wide
    shape, size = got.shape, got.type.size
    numbers: Counter[int] = Counter()
    close = None if narrow is None else narrow[0]
    step = size // TYPICAL + 1
    if size < LEAST or not plain(got.dtype):
        codes, same = _judged(expected, got, enclosure, close, numbers)
        far = [enclosure.farthest(step)]
    else:
        codes, same, far = np.empty(shape, np.uint8), np.empty(shape, np.bool_), []
        for index, cut in blocks(shape):
            ours, theirs = (Tensor(TensorType(cut, got.dtype), side.words[index]) for side in (got, expected))
            wide_part = block_of(enclosure, index, cut)
            narrow_part = None if close is None else block_of(close, index, cut)
            found = _judged(theirs, ours, wide_part, narrow_part, numbers)
            codes[index], same[index] = (part.reshape(cut) for part in found)
            far.append(wide_part.farthest(step))
        codes, same = codes.reshape(size), same.reshape(size)
    # a choice that leaves the enclosure is none that the policy permits
    if choice is not None and not (codes == VERDICTS.index("bug")).any():
        codes[~same] = VERDICTS.index("reproduced")
        numbers.clear()
    else:
        choice = None
    reasons: Counter[Reason] = Counter()
    for number_, count in numbers.items():
        reasons[known[number_] if number_ else Reason("unbounded", "a result that may overflow", "")] += count
    some = np.concatenate([part for _, _, part in far])
    some = some[np.isfinite(some)]
    typical = float(np.median(some)) if len(some) else 0.0
    largest, unbounded = max(most for most, _, _ in far), sum(count for _, count, _ in far)
    return Judged(codes, largest, typical, unbounded, enclosure, reasons, choice)


def _judged(
    expected: Tensor, got: Tensor, enclosure: Enclosure, close: Enclosure | None, numbers: Counter[int]
) -> tuple[NDArray[np.uint8], Mask]:
    """Verdicts and where words or values are the same, flat; the numbers of the reasons of undecided elements are
    counted."""
    size = got.type.size

    def by_element(mask: NDArray[Any], every: bool) -> NDArray[Any]:
        if not got.dtype.is_complex:
            return mask.reshape(size)
        return np.asarray((mask.all(axis=-1) if every else mask.any(axis=-1)).reshape(size))

    def vague(of: Enclosure) -> NDArray[Any]:
        if is_uniform(of.tag) and first_of(of.tag) <= UNSURE and np.isfinite(of.lo).all():
            return np.zeros(size, np.bool_)
        return by_element((of.reasons != 0) | _unlimited(of), False)

    same = by_element(same_value(expected, got), True)
    if same.all():
        return np.zeros(size, np.uint8), same
    inside = by_element(enclosure.contains(expected), True)
    codes = np.where(inside, np.uint8(VERDICTS.index("reordering")), np.uint8(VERDICTS.index("bug")))
    codes[inside & vague(enclosure)] = VERDICTS.index("undecided")
    if close is not None:
        settled = by_element(close.contains(expected), True) & ~vague(close)
        codes[settled & inside] = VERDICTS.index("rounding")
    codes[same] = VERDICTS.index("identical")
    undecided = codes == VERDICTS.index("undecided")
    if undecided.any():
        tags = enclosure.reasons
        if got.dtype.is_complex:
            tags = tags.max(axis=-1)
        found, counts = np.unique(tags.reshape(size)[undecided], return_counts=True)
        for number_, count in zip(found.tolist(), counts.tolist(), strict=True):
            numbers[number_] += count
    return codes, same


def _unlimited(enclosure: Enclosure) -> Mask:
    """Where the enclosure says nothing: no end is finite, and yet the value may be any number."""
    return np.asarray((enclosure.lo == -np.inf) & (enclosure.hi == np.inf))


def number(value: float) -> str:
    """A float as decimal text that reads back to it, "inf" for infinity."""
    return repr(value)
