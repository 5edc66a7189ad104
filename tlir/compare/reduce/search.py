"""From a failing comparison to the smallest graph, shapes and values that still fail with the same verdict.

Every candidate is compared anew, by the rule of the whole comparison, and given up unless it fails as the whole does.
Where the frontend's values come from decides how far a reduction can go:

* a **trace**: the node that is to blame, on the operands recorded for it, with its recorded result;
* the **frontend** itself, run again on every candidate: any part of the graph, on the reference's values where it
  begins; sums and values can then be made smaller too;
* the **outputs** alone: the end of the graph, on the reference's values where it begins, with the recorded output. It
  fails by construction, since the reference gives there what it gave, and says what is wrong, not where it began.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from tlir.backends.reference import evaluate
from tlir.compare import compare
from tlir.compare.auto import AutoOutput, compare_auto
from tlir.compare.bounds import DEFAULT_POLICY, Freedoms, resolve
from tlir.compare.locate import frontend_values, locate
from tlir.compare.reduce.piece import Piece, cut, with_inputs
from tlir.compare.reduce.program import Frontend
from tlir.compare.reduce.slices import Region, restricted, summed_axes, thinned, whole
from tlir.compare.report import CompareReport, OutputComparison
from tlir.compare.rule import Number
from tlir.errors import TlirError, UnsupportedError, UsageError
from tlir.floatlib.words import is_finite, is_zero, limbs
from tlir.ir.graph import Body, Graph, Node, Ref
from tlir.ir.tensor import Tensor
from tlir.ir.verify import type_errors

BUDGET = 400
"""So many candidates are compared at most."""

LEAVES = ("input", "constant")

_SUSPECTS = 20
_KEPT_BITS = (0, 2, 4, 8)


@dataclass(frozen=True)
class Rules:
    """How candidates are judged: the options of ``tlir.compare.compare``."""

    tolerance: Number | None = "auto"
    rtol: Number = 0
    ulps: int | None = None
    words: bool = False
    nan_payload: bool = False
    policy: str | None = None
    table: Path | None = None

    @property
    def options(self) -> str:
        """The options of ``tlir compare`` that say the same."""
        valued = {
            "--tolerance": self.tolerance,
            "--rtol": self.rtol or None,
            "--ulps": self.ulps,
            "--policy": self.policy,
            "--accuracy": self.table,
        }
        flags = {"--words": self.words, "--nan-payload": self.nan_payload}
        parts = [f"{name} {value}" for name, value in valued.items() if value is not None]
        return " ".join([*parts, *(name for name, given in flags.items() if given)])

    def judge(self, graph: Graph) -> CompareReport:
        """The comparison of a graph."""
        return compare(
            graph,
            tolerance=self.tolerance,
            rtol=self.rtol,
            ulps=self.ulps,
            words=self.words,
            nan_payload=self.nan_payload,
            policy=self.policy,
            table=self.table,
        )

    def quickly(self, graph: Graph) -> CompareReport:
        """The comparison of a candidate: by bounds alone, without a search for choices that reproduce the words."""
        if self.tolerance != "auto":
            return self.judge(graph)
        return compare_auto(
            graph, policy=self.policy or DEFAULT_POLICY, table=self.table, rtol=self.rtol, ulps=self.ulps
        )


@dataclass(frozen=True)
class Reduction:
    """The smallest part that was found, with its comparison.

    ``basis`` says where the frontend's values come from: "trace", "frontend" or "outputs". ``before`` has the numbers
    of nodes and of elements of inputs and constants of the whole graph; ``notes`` what could not be done, and why;
    ``candidates`` how many comparisons were made; ``name`` and ``tolerance`` are the whole graph's.
    """

    piece: Piece
    found: OutputComparison
    report: CompareReport
    basis: str
    sample: int
    output: str
    suspect: Node
    before: tuple[int, int]
    candidates: int
    freedoms: Freedoms | None
    name: str = ""
    tolerance: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def graph(self) -> Graph:
        """The part as a graph with one sample."""
        producer = self.report.producer
        return self.piece.graph(f"{self.name} reduced".strip(), producer, self.tolerance)

    @property
    def verdict(self) -> str:
        """The verdict of bounds, or "failed" by any other rule."""
        return verdict_of(self.found)


def verdict_of(found: OutputComparison) -> str:
    if isinstance(found, AutoOutput):
        return found.verdict
    return "passed" if found.ok else "failed"


def reduce(
    graph: Graph,
    *,
    rules: Rules | None = None,
    sample: int | None = None,
    frontend: Frontend | None = None,
    budget: int = BUDGET,
    observe: Callable[[], None] | None = None,
) -> Reduction | None:
    """The smallest part of a graph whose comparison fails as the whole one does; None where every output passes, and by
    bounds also every node of a trace.

    ``sample`` is the one whose failure is looked at, by default the first that fails. ``frontend`` evaluates parts of
    the graph anew. At most about ``budget`` comparisons are made; ``observe`` is called after each. Raises what
    ``tlir.compare.compare`` raises; UsageError TL0602 where there is no such sample.
    """
    rules = rules or Rules()
    if sample is not None and not 0 <= sample < len(graph.samples):
        raise UsageError("TL0602", f"there is no sample {sample}")
    chosen = graph if sample is None else replace(graph, samples=(graph.samples[sample],))
    traced = any(sample.trace for sample in chosen.samples)
    # a node of a trace is judged by itself below; outputs alone have to be looked at as a whole
    report = rules.quickly(chosen) if traced else rules.judge(chosen)
    failing = [found for found in report.outputs if not found.ok]
    first = next((found for found in failing if verdict_of(found) == "bug"), failing[0] if failing else None)
    if first is None:
        first = _hidden(chosen, rules)
    if first is None:
        return None
    reduction = _Search(chosen, rules, first, frontend, budget, observe).run()
    if traced and verdict_of(rules.judge(reduction.graph).outputs[0]) != reduction.verdict and rules.judge(chosen).ok:
        return None
    return replace(reduction, sample=first.sample if sample is None else sample)


def _hidden(graph: Graph, rules: Rules) -> OutputComparison | None:
    """A node of a trace that is a bug though every output passes."""
    for k, sample in enumerate(graph.samples if rules.tolerance == "auto" else ()):
        if sample.trace:
            found = locate(graph, sample=k, policy=rules.policy or DEFAULT_POLICY, table=rules.table)
            if found.suspect is not None:
                return replace(found.suspect.local, sample=k, position=0, name=f"node {found.suspect.label}")
    return None


@dataclass
class _Search:
    graph: Graph
    rules: Rules
    first: OutputComparison
    frontend: Frontend | None
    budget: int
    observe: Callable[[], None] | None
    notes: list[str] = field(default_factory=list)
    done: int = 0

    def run(self) -> Reduction:
        body = self.graph.body
        sample = self.graph.samples[self.first.sample]
        self.again: Frontend | None = None
        piece, basis = self._from_trace() if sample.trace else (None, "outputs")
        if piece is None:
            piece, basis = self._from_graph()
        elif self.frontend is not None and not self._starts_to_ask(piece):
            self.notes.append("the frontend that is installed here does not give the recorded value")
        if self.again is not None and (asked := self._assess(piece)) is not None:
            piece = asked[0]
        piece = self._smaller_shapes(piece)
        piece = self._fewer_terms(piece)
        piece = self._simpler_values(piece)
        report = self.rules.quickly(self._graph(piece))
        suspect = body.nodes[piece.origin[piece.body.outputs[0].node]]
        leaves = [node.type.size for node in body.nodes if node.op in LEAVES]
        freedoms = None
        if self.rules.tolerance == "auto":
            freedoms = resolve(self.rules.policy or DEFAULT_POLICY, self.graph.producer, self.rules.table)
        return Reduction(
            piece,
            report.outputs[0],
            report,
            "frontend" if self.again is not None else basis,
            self.first.sample,
            self.first.name,
            suspect,
            (len(body.nodes), sum(leaves)),
            self.done,
            freedoms,
            self.graph.name,
            self.graph.tolerance,
            tuple(self.notes),
        )

    # candidates

    def _graph(self, piece: Piece) -> Graph:
        return piece.graph(self.graph.name, self.graph.producer, self.graph.tolerance)

    def _assess(self, piece: Piece | None) -> tuple[Piece, OutputComparison] | None:
        """The candidate with the frontend's result, where that is asked for, and its comparison, if it fails as the
        whole does."""
        if piece is None or self.done >= self.budget:
            return None
        self.done += 1
        graph = self._graph(piece)
        if type_errors(graph):
            return None
        if self.again is not None:
            try:
                piece = replace(piece, expected=self.again(piece))
            except UnsupportedError:
                return None
            except Exception as error:
                # whatever a frontend raises, such a candidate shows nothing
                note = f"the frontend refused a candidate: {type(error).__name__}: {error}"[:300]
                self.notes += [] if any(known.startswith("the frontend refused") for known in self.notes) else [note]
                return None
            graph = self._graph(piece)
        try:
            found = self.rules.quickly(graph).outputs[0]
        except TlirError:
            return None
        finally:
            if self.observe is not None:
                self.observe()
        # a part of what is undecided may be decided
        wanted = (verdict_of(self.first), "bug")
        return (piece, found) if not found.ok and verdict_of(found) in wanted else None

    def _starts_to_ask(self, piece: Piece) -> bool:
        """Whether the frontend, run again, fails on the piece; it is then asked about every later candidate."""
        self.again = self.frontend
        if self._assess(piece) is None:
            self.again = None
        return self.again is not None

    # nodes

    def _from_trace(self) -> tuple[Piece | None, str]:
        """The first node whose own recorded result fails on its own recorded operands."""
        k = self.first.sample
        sample = self.graph.samples[k]
        location = locate(self.graph, sample=k, policy=self.rules.policy or DEFAULT_POLICY, table=self.rules.table)
        values = frontend_values(self.graph, k)
        suspects = [found for found in location.nodes if found.verdict == "bug"]
        suspects += [found for found in location.nodes if found.verdict != "bug" and found.local.max_ulps]
        assert sample.trace is not None
        for suspect in suspects[:_SUSPECTS]:
            ref = suspect.ref
            kept = _unrecorded(self.graph.body, ref, sample.trace)
            piece = cut(self.graph.body, kept, ref, values, sample.trace[ref])
            if (assessed := self._assess(piece)) is not None:
                return assessed[0], "trace"
        self.notes.append("no single node fails on the operands that are recorded for it")
        return None, "outputs"

    def _from_graph(self) -> tuple[Piece, str]:
        """The end of the graph, cut as late as possible, and where the frontend is asked also its beginning."""
        body = self.graph.body
        sample = self.graph.samples[self.first.sample]
        self.values: dict[Ref, Tensor] = {}

        def keep(node: Node, results: tuple[Tensor, ...]) -> None:
            self.values.update((Ref(node.id, k), tensor) for k, tensor in enumerate(results))

        evaluate(body, sample.inputs, observe=keep)
        output = body.outputs[self.first.position]
        expected = sample.outputs[self.first.position]

        def part(kept: Sequence[int], end: Ref = output) -> Piece:
            return cut(body, set(kept), end, self.values, expected if end == output else self.values[end])

        piece = part(range(len(body.nodes)))
        asked = self.frontend is not None and self._starts_to_ask(piece)
        if self.frontend is not None and not asked:
            self.notes.append("the frontend that is installed here, run again, does not give the recorded output")
        order = [piece.origin[node.id] for node in piece.body.nodes if node.op not in LEAVES]
        order = [k for k in order if k <= output.node]
        if asked:
            order, output = self._until(order, part)
        low, high = 0, len(order) - 1
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._assess(part(order[middle:], output)) else (low, middle - 1)
        order = self._without(order[low:], lambda kept: part(kept, output))
        assessed = self._assess(part(order, output))
        return assessed[0] if assessed is not None else piece, "outputs"

    def _until(self, order: list[int], part: Callable[..., Piece]) -> tuple[list[int], Ref]:
        """The nodes up to the first whose value fails when it is the output."""
        low, high = 0, len(order) - 1
        while low < high:
            middle = (low + high) // 2
            fails = self._assess(part(order[: middle + 1], Ref(order[middle]))) is not None
            low, high = (low, middle) if fails else (middle + 1, high)
        end = Ref(order[low])
        if low < len(order) - 1 and self._assess(part(order[: low + 1], end)) is not None:
            return order[: low + 1], end
        return order, self.graph.body.outputs[self.first.position]

    def _without(self, kept: list[int], part: Callable[[list[int]], Piece]) -> list[int]:
        """Delta debugging: runs of nodes become inputs, halves first, then ever shorter ones. The last node stays."""
        size = max(len(kept) // 2, 1)
        while True:
            start = 0
            while start < len(kept) - 1:
                left = kept[:start] + kept[min(start + size, len(kept) - 1) :]
                if self._assess(part(left)) is not None:
                    kept = left
                else:
                    start += size
            if size == 1:
                return kept
            size //= 2

    # shapes

    def _smaller_shapes(self, piece: Piece) -> Piece:
        """What one failing element depends on; where that alone does not fail, axis by axis."""
        assessed = self._assess(piece)
        if assessed is None or not assessed[1].worst:
            return piece
        piece, found = assessed
        body = piece.body
        shape = body.type_of(body.outputs[0]).shape
        if len(body.nodes[body.outputs[0].node].types) > 1:
            return piece
        for element in found.worst:
            one: Region = tuple((i,) for i in element.index)
            if (smaller := self._smaller(piece, one)) is not None:
                return smaller
        region = whole(shape)
        for axis, place in enumerate(found.worst[0].index):
            narrower = (*region[:axis], (place,), *region[axis + 1 :])
            if (smaller := self._smaller(piece, narrower)) is not None:
                piece, region = smaller, whole(smaller.expected.shape)
        return piece

    def _smaller(self, piece: Piece, region: Region) -> Piece | None:
        made = restricted(piece, region)
        assessed = self._assess(made)
        return None if assessed is None else assessed[0]

    # sums

    def _fewer_terms(self, piece: Piece) -> Piece:
        """Fewer terms of the only sum: those that add nothing go; where the frontend is asked, any that it still fails
        without."""
        axes = summed_axes(piece)
        if axes is None:
            return piece
        node = piece.body.nodes[piece.body.outputs[0].node]
        count = piece.body.operand_types(node)[0].shape[axes[0]]
        places = list(range(count))
        if self.again is None:
            rest = [k for k in places if k not in _adding_nothing(piece, node, axes)]
            assessed = self._assess(thinned(piece, rest)) if 0 < len(rest) < count else None
            return piece if assessed is None else assessed[0]
        size = count // 2
        best = piece
        while size:
            start = 0
            while start < len(places) and len(places) > 1:
                left = places[:start] + places[start + size :]
                assessed = self._assess(thinned(piece, left)) if left else None
                if assessed is None:
                    start += size
                else:
                    best, places = assessed[0], left
            size //= 2
        return best

    # values

    def _simpler_values(self, piece: Piece) -> Piece:
        """Numbers with fewer digits, where the frontend can be asked what it makes of them."""
        if self.again is None:
            return piece
        for k, tensor in enumerate(piece.inputs):
            for bits in _KEPT_BITS:
                simple = _shortened(tensor, bits)
                if simple is None or simple.same_words(tensor):
                    continue
                inputs = [*piece.inputs[:k], simple, *piece.inputs[k + 1 :]]
                if (assessed := self._assess(with_inputs(piece, inputs, piece.expected))) is not None:
                    piece = assessed[0]
                    break
        return piece


def _unrecorded(body: Body, ref: Ref, trace: Mapping[Ref, Tensor]) -> set[int]:
    """The node of a value and those before it whose values the trace lacks, back to recorded ones: what is not recorded
    is not taken as exact."""
    kept, left = {ref.node}, [ref.node]
    while left:
        for operand in body.nodes[left.pop()].inputs:
            if operand not in trace and operand.node not in kept and body.nodes[operand.node].op not in LEAVES:
                kept.add(operand.node)
                left.append(operand.node)
    return kept


def _adding_nothing(piece: Piece, node: Node, axes: Sequence[int]) -> set[int]:
    """The places of a sum at which every term is a product with zero, or zero."""
    if not node.type.dtype.is_float or node.attrs.get("reducer", "add") != "add":
        return set()
    values = dict(zip((Ref(i) for i in piece.body.input_ids), piece.inputs, strict=True))
    values |= {Ref(n.id): n.attrs["value"] for n in piece.body.nodes if n.op == "constant"}
    zero, finite = [], []
    for ref, axis in zip(node.inputs, axes, strict=True):
        tensor = values[ref]
        fmt = tensor.dtype.float_format
        others = tuple(d for d in range(len(tensor.shape)) if d != axis)
        zero.append(np.asarray(is_zero(fmt, tensor.words)).all(axis=others))
        finite.append(np.asarray(is_finite(fmt, tensor.words)).all(axis=others))
    nothing = np.logical_or.reduce(zero) & np.logical_and.reduce(finite)
    return {int(k) for k in np.flatnonzero(nothing)}


def _shortened(tensor: Tensor, bits: int) -> Tensor | None:
    """The numbers cut to so many bits of their fraction; None where these are no floats of one word."""
    if not tensor.dtype.is_float or limbs(tensor.dtype.float_format) > 1:
        return None
    fmt = tensor.dtype.float_format
    if bits >= fmt.fraction_bits:
        return None
    word = tensor.words.dtype.type
    keep = word(((1 << fmt.width) - 1) & ~((1 << (fmt.fraction_bits - bits)) - 1))
    cut_off = np.asarray(tensor.words & keep)
    whole_words = np.where(np.asarray(is_finite(fmt, tensor.words)), cut_off, tensor.words).astype(word)
    return Tensor(tensor.type, np.asarray(whole_words))
