"""Which values become arrays, and which are computed inside the kernels that use them.

A value becomes an array if it is a result, if an operation without a kernel reads it, or if computing it inside its
consumers would be more work than storing it. The first two are known at once; the third shows when a kernel is written:
the kernel is then written again without that value (``Split``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import cast

from tlir.ir.graph import Body, Node, Ref
from tlir.kernel.index import Index, Variable, flatten, variable
from tlir.kernel.ir import Kernel, Value
from tlir.passes.lower.anchors import ROW_ELEMENTS, Anchored, Anchors, enough_rows
from tlir.passes.lower.control import COUNTED, emit_loop, recurrence, result_groups
from tlir.passes.lower.costs import CHEAP, HEAVY, Costs, own_cost
from tlir.passes.lower.emitter import Compute, Emission, Emit, Emitter, Frame, Refused, Scope, Split
from tlir.passes.lower.groups import TOGETHER, Groups
from tlir.passes.lower.places import Place, split_place
from tlir.passes.lower.rows import Row
from tlir.passes.lower.series import Plan, Series
from tlir.passes.lower.words import is_splat

MAX_DEPTH = 24
"""The longest chain of operations that is computed in place."""

ROUNDS = 3
"""How often a kernel that fills one more array is asked whether it can fill what that array is computed from."""

MAX_KERNELS = 4
"""A cheap value is computed again in at most so many kernels."""

CANDIDATES = 32
"""So many arrays of one shape are tried for one kernel."""

LOOPS = 4
"""A cheap value is computed again in at most so many loops of one kernel."""


class Fusion:
    """Decides for one body. ``computes``, ``emits`` and ``plans`` are the operations' lowerings; all others are
    fallbacks."""

    def __init__(
        self,
        body: Body,
        computes: Mapping[str, Compute],
        emits: Mapping[str, Emit],
        plans: Mapping[str, Plan],
        reason: Callable[[Node], str | None],
    ) -> None:
        self.body, self.computes, self.emits, self.plans, self.reason = body, computes, emits, plans, reason
        self.stored: set[Ref] = set()
        self._splat: dict[int, bool] = {}
        self.groups = Groups(body)
        self.costs = Costs(body)
        self._choose()

    def below_views(self, ref: Ref) -> Ref:
        """The value that a value is a view of."""
        while self.body.nodes[ref.node].op in _VIEWS:
            ref = self.body.nodes[ref.node].inputs[0]
        return ref

    def _between(self, ref: Ref, below: Ref) -> Ref:
        """``ref`` if computing it in place computes ``below``; otherwise ``below``."""
        waiting, seen = [ref], {ref}
        while waiting:
            for operand in self.body.nodes[waiting.pop().node].inputs:
                if operand == below:
                    return ref
                if operand not in seen and operand.node > below.node and not self.is_array(operand):
                    seen.add(operand)
                    waiting.append(operand)
        return below

    def _is_affine(self, ref: Ref) -> bool:
        """Whether a view reads the array below it at an offset that is a sum of multiples of its own indices."""
        probe = _Probe(ref, tuple(variable(Variable(k, n)) for k, n in enumerate(self.body.type_of(ref).shape)))
        while (node := self.body.nodes[probe.ref.node]).op in _VIEWS:
            if not node.type.size:
                return True
            self.computes[node.op](cast(Emitter, probe), Frame(self.body), node, 0, probe.place)
        offset = flatten(probe.place, self.body.type_of(probe.ref).shape)
        return all(isinstance(atom, Variable) for _, atom in offset.terms)

    def _factor(self, ref: Ref) -> Ref | None:
        """What has to be an array for a contraction to read this operand as it reads an array; None if it does."""
        node = self.body.nodes[ref.node]
        while node.op in _VIEWS or node.op == "convert":
            ref = node.inputs[0]
            node = self.body.nodes[ref.node]
        return None if node.op in ("input", "constant", "iota") else ref

    def is_array(self, ref: Ref) -> bool:
        """Whether kernels read the value from memory."""
        node = self.body.nodes[ref.node]
        if node.op == "constant":
            if node.id not in self._splat:
                self._splat[node.id] = is_splat(node.attrs["value"])
            return not self._splat[node.id]
        return node.op == "input" or ref in self.stored

    def store(self, refs: Iterable[Ref]) -> None:
        """These values are to be arrays."""
        self.stored |= {ref for ref in refs if self.body.nodes[ref.node].op not in ("input", "constant")}

    def _choose(self) -> None:
        """The values that are arrays before any kernel is written."""
        body = self.body
        self.store(body.outputs)
        for node in body.nodes:
            if self.reason(node) is not None:
                self.store(node.inputs)
                self.store(Ref(node.id, k) for k in range(len(node.types)))
            if node.op in self.emits or node.op in self.plans or node.op in COUNTED:
                self.stored |= {Ref(node.id, k) for k in range(len(node.types))}
            if node.op in _FACTORS:
                self.store(ref for operand in node.inputs if (ref := self._factor(operand)) is not None)
                self.store(operand for operand in node.inputs if not self._is_affine(operand))
        arrays = {Ref(node.id) for node in body.nodes if node.op in ("input", "constant")}
        self.stored |= self._too_deep(arrays)
        self.costs.update(self.stored | arrays)
        self._share(arrays)
        self.costs.update(self.stored | arrays)

    def _too_deep(self, arrays: set[Ref]) -> set[Ref]:
        """Where long chains are cut."""
        depths: dict[Ref, int] = {}
        cut = set()
        for node in self.body.nodes:
            depth = 1 + max((depths[ref] for ref in node.inputs), default=0)
            for k in range(len(node.types)):
                ref = Ref(node.id, k)
                stored = ref in self.stored or ref in arrays
                if not stored and depth >= MAX_DEPTH:
                    cut.add(ref)
                    stored = True
                depths[ref] = 0 if stored else depth
        return cut

    def _share(self, arrays: set[Ref]) -> None:
        """Values that several kernels would compute become arrays, unless that costs next to nothing."""
        kernels: dict[Ref, set[Ref]] = {}
        for node in reversed(self.body.nodes):
            for k in range(len(node.types)):
                ref = Ref(node.id, k)
                users = kernels.pop(ref, set())
                if ref not in self.stored and len(users) > 1 and ref not in arrays:
                    cost = self.costs.of(ref)
                    if cost > CHEAP or (cost and len(users) > MAX_KERNELS):
                        self.stored.add(ref)
                home = {ref} if ref in self.stored else users
                for operand in node.inputs:
                    kernels.setdefault(operand, set()).update(home)

    # ---- one kernel -------------------------------------------------------------------------------------------------

    def kernel(self, ref: Ref, open_arrays: Collection[Ref]) -> tuple[Kernel, tuple[Ref, ...]]:
        """The kernel that fills this array, for some operations all results of its node, and along with it those of
        ``open_arrays``, which no kernel fills yet, that it can; and the values that its buffers stand for."""
        node = self.body.nodes[ref.node]
        name = f"k{node.id}_{node.op}"
        while True:
            try:
                emitter = self._emitted(ref) if node.op in self.emits else self._together([ref], frozenset())
                break
            except Split as split:
                self._split(split)
        if node.op not in self.emits:
            emitter = self._with_more(ref, emitter, open_arrays)
        self.groups.add(emitter.outputs)
        return emitter.kernel(name)

    def _split(self, split: Split) -> None:
        """One more array. ``Refused`` where the kernel would only be written in the same way again."""
        for ref in (split.ref, split.otherwise):
            if ref is not None and not self.is_array(ref):
                self.stored.add(ref)
                return
        raise Refused(f"the arrays that {self.body.nodes[split.ref.node].op} needs do not suffice")

    def _with_more(self, ref: Ref, alone: Emitter, open_arrays: Collection[Ref]) -> Emitter:
        """The kernel with more outputs: arrays that it would read, and others of its shape that read what it reads."""
        beside = {u for u in open_arrays if u != ref and self._is_computed(self.body.nodes[u.node])}
        best, refused = alone, set()
        for _ in range(ROUNDS):
            room = TOGETHER - len(best.outputs)
            more = sorted((u for u in best.inputs if u in beside and u not in refused), reverse=True)[:room]
            wider = self._wider(ref, best, frozenset(more))
            if wider is None:
                break
            refused |= set(more) - set(wider.outputs)
            best = wider
        if best.anchored:
            return best
        found = frozenset(best.outputs) - {ref}
        main = [ref]
        type = self.body.type_of(ref)
        alike = sorted((u for u in beside - found if self.body.type_of(u).shape == type.shape), reverse=True)
        for u in alike[:CANDIDATES]:
            if len(main) + len(found) >= TOGETHER:
                break
            if not self._leaves(u) & best.inputs.keys():
                continue
            try:
                emitter = self._together([*main, u], found)
            except Split:
                continue
            filled = frozenset(emitter.outputs)
            complete = filled == found | {*main, u}
            if complete and not emitter.anchored and self.groups.together(filled, emitter.inputs):
                best, main = emitter, [*main, u]
        return best

    def _wider(self, ref: Ref, best: Emitter, more: frozenset[Ref]) -> Emitter | None:
        """The kernel with those of ``more`` that it can fill on the way; None if it can fill none."""
        before = frozenset(best.outputs) - {ref}
        while more:
            try:
                emitter = self._together([ref], before | more)
            except Split:
                return None
            filled = frozenset(emitter.outputs)
            if before | more <= filled:
                good = self.groups.together(filled, emitter.inputs) and self._worth(emitter)
                return emitter if good else None
            more &= filled
        return None

    def _is_computed(self, node: Node) -> bool:
        """Whether elements are computed on demand (a reshape that is an array is another name for one)."""
        return node.op in self.computes and node.op != "reshape" and self.reason(node) is None

    def _leaves(self, ref: Ref) -> set[Ref]:
        """The arrays that computing a value in place reads."""
        found: set[Ref] = set()
        waiting, seen = [ref], {ref}
        while waiting:
            for operand in self.body.nodes[waiting.pop().node].inputs:
                if self.is_array(operand):
                    found.add(operand)
                elif operand not in seen:
                    seen.add(operand)
                    waiting.append(operand)
        return found

    def _worth(self, emitter: Emitter) -> bool:
        """Whether the kernel has enough iterations to do side by side for each array that it fills."""
        rows = prod(v.extent for v in emitter.root.variables)
        return all(enough_rows(rows, self.body.type_of(ref).size) for ref in emitter.outputs)

    def _together(self, refs: list[Ref], byproducts: frozenset[Ref]) -> Emitter:
        """A kernel that fills all of these, ``byproducts`` where they are computed anyway."""
        rows: list[KeptRow] = []
        first: Anchored = []
        while True:
            try:
                return self._written(refs, byproducts, rows, first)
            except Keep as keep:
                rows.append(keep.row)
                first = keep.first

    def _emitted(self, ref: Ref) -> Emitter:
        """The kernel of an operation that has one of its own."""
        node = self.body.nodes[ref.node]
        emitter, frame = self._loop_frame()
        emitter.nodes.add(node.id)
        self.emits[node.op](emitter, frame, node)
        self._review_whole(emitter)
        return emitter

    def loop_kernels(self, node: Node) -> list[tuple[Kernel, tuple[Ref, ...]]]:
        """The kernels of a scan or while, a kernel for each shape among its results. ``Refused`` where it has none."""
        loop = recurrence(self.body, node)
        if isinstance(loop, str):
            raise Refused(loop)
        kernels = []
        for number, results in enumerate(result_groups(loop)):
            kernels.append(self._one_of(node, number, partial(emit_loop, self._loop_frame, loop, results)))
        return kernels

    def series(self, node: Node) -> tuple[list[tuple[Kernel, tuple[Ref, ...]]], Series]:
        """The kernels of an operation that takes several, in their order, and what is between them."""
        series = Series(self.body, node)
        self.plans[node.op](series)
        kernels = []

        def written(write: Callable[[Emitter, Frame], None]) -> Emitter:
            emitter, frame = self._loop_frame()
            write(emitter, frame)
            return emitter

        for number, write in enumerate(series.writers):
            kernels.append(self._one_of(node, number, partial(written, write)))
        return kernels, series

    def _one_of(self, node: Node, number: int, emit: Callable[[], Emitter]) -> tuple[Kernel, tuple[Ref, ...]]:
        """One of the kernels of a node, emitted again until nothing in it has to be an array of its own."""
        while True:
            try:
                emitter = emit()
                self._review_whole(emitter)
                break
            except Split as split:
                self._split(split)
        emitter.nodes.add(node.id)
        return emitter.kernel(f"k{node.id}_{node.op}" + (f"_{number}" if number else ""))

    def _loop_frame(self) -> tuple[Emitter, Frame]:
        emitter = Emitter(self.computes)
        emitter.on_anchor = _refuse
        return emitter, self._frame()

    def _review_whole(self, emitter: Emitter) -> None:
        try:
            self._review(emitter, Anchors(self.below_views, self._between), (), [])
        except Keep as keep:
            raise Split(keep.row.ref) from keep

    def _frame(self, own: Collection[Ref] = ()) -> Frame:
        """The body with arrays read from buffers, all but those that the kernel fills."""
        return Frame(self.body, lambda ref: partial(self._load, ref) if ref not in own and self.is_array(ref) else None)

    def _load(self, ref: Ref, emitter: Emitter, place: Place) -> Value:
        type = self.body.type_of(ref)
        return emitter.load(emitter.input(ref, type), flatten(place, type.shape))

    def _written(self, refs: list[Ref], byproducts: frozenset[Ref], rows: list[KeptRow], first: Anchored) -> Emitter:
        frame = self._frame({*refs, *byproducts})
        shape = self.body.type_of(refs[0]).shape
        emitter, anchors = self._emitter(byproducts)
        place = emitter.space(shape)
        anchors.space = frozenset(emitter.root.variables)
        self._fill(emitter, frame, refs, dict(enumerate(place)), ())
        outer = anchors.outer
        if rows or (outer is not None and outer != anchors.space):
            # rows: the space is what the reductions depend on, and everything else a loop inside
            outer = anchors.space if outer is None else outer
            axes = [axis for axis, index in enumerate(place) if index.variables() <= outer and index.variables()]
            emitter, anchors = self._emitter(byproducts)
            counted = iter(emitter.space([shape[axis] for axis in axes]))
            anchors.space = frozenset(emitter.root.variables)
            emitter.rows = {row.ref: Row(anchors.space) for row in rows}
            # reductions and rows in the order of the graph, so that what one keeps is there for the next
            before: list[tuple[Ref, Place | KeptRow]] = [*first, *((row.ref, row) for row in rows)]
            for anchor, at in sorted(before, key=lambda item: item[0]):
                if isinstance(at, tuple):
                    emitter.element(frame, anchor, at)
                elif at.fixed is not None:
                    emitter.rows[anchor].fill(emitter, frame, anchor, dict(at.fixed))
            fixed = {axis: next(counted) for axis in axes}
            self._fill(emitter, frame, refs, fixed, tuple(a for a in range(len(shape)) if a not in axes))
        emitter.anchored = bool(anchors.found)
        self._review(emitter, anchors, refs, rows)
        return emitter

    def _emitter(self, byproducts: frozenset[Ref]) -> tuple[Emitter, Anchors]:
        emitter, anchors = Emitter(self.computes), Anchors(self.below_views, self._between)
        emitter.on_anchor, emitter.byproducts = anchors, byproducts
        return emitter, anchors

    def _fill(
        self, emitter: Emitter, frame: Frame, refs: list[Ref], fixed: dict[int, Index], inner: tuple[int, ...]
    ) -> None:
        """Store all elements of arrays of one shape; ``inner`` are the axes that loops run along."""
        shape = self.body.type_of(refs[0]).shape
        if 0 in shape:
            for ref in refs:
                emitter.output(ref, self.body.type_of(ref))
            return

        def step(indices: Place) -> None:
            by_axis = fixed | dict(zip(inner, indices, strict=True))
            place = tuple(by_axis[axis] for axis in range(len(shape)))
            # in the graph's order, so that no chain through several of them is followed at once
            for ref in sorted(refs):
                value = emitter.element(frame, ref, place)
                emitter.store(emitter.output(ref, self.body.type_of(ref)), flatten(place, shape), value)

        if inner:
            emitter.each([shape[axis] for axis in inner], step)
        else:
            step(())

    def _review(self, emitter: Emitter, anchors: Anchors, own: Collection[Ref], rows: list[KeptRow]) -> None:
        """Find what the kernel computes more often than there are elements: the last such value in the graph's order
        becomes an array, or is kept in a local buffer where whole rows are at hand."""
        emissions: dict[Ref, list[Emission]] = {}
        for emission in emitter.emissions:
            emissions.setdefault(emission.ref, []).append(emission)
        costs = self._costs(emissions)
        kept = {row.ref for row in rows}
        for ref in sorted(emissions, reverse=True):
            op = self.body.nodes[ref.node].op
            if ref in own or not costs[ref] or op in _VIEWS or ref in kept:
                continue
            counts = [prod(v.extent for v in e.scope.all_variables()) for e in emissions[ref]]
            size = self.body.type_of(ref).size
            if sum(counts) <= size:
                continue
            if costs[ref] <= CHEAP and (op == "convert" or not anchors.kinds or sum(counts) <= LOOPS * size):
                continue
            row = self._row(emissions[ref], anchors.space)
            if row is not None and prod(v.extent for v in anchors.space) <= size:
                raise Keep(row, anchors.found)
            raise Split(ref)

    def _costs(self, emissions: Mapping[Ref, list[Emission]]) -> dict[Ref, int]:
        """The cost of computing each value once, without what is computed further out and not each time."""
        here: dict[tuple[Ref, Scope], int] = {}
        costs: dict[Ref, int] = {}
        for ref in sorted(emissions):
            node = self.body.nodes[ref.node]
            dtype = self.body.type_of(node.inputs[0]).dtype if node.inputs else node.type.dtype
            own = own_cost(node, dtype)
            for emission in emissions[ref]:
                below = sum(here.get((operand, emission.scope), 0) for operand in set(node.inputs))
                here[ref, emission.scope] = min(own + below, HEAVY * HEAVY)
            costs[ref] = max(here[ref, emission.scope] for emission in emissions[ref])
        return costs

    def _row(self, emissions: list[Emission], space: frozenset[Variable]) -> KeptRow | None:
        """How a local buffer can hold what one iteration of the space needs of a value; None if none can."""
        ref = emissions[0].ref
        shape = self.body.type_of(ref).shape
        inner: set[int] = set()
        for emission in emissions:
            if any(index.values() for index in emission.place):
                return None
            if any(scope.barrier for scope in emission.scope.chain()):
                return None
            inner |= {axis for axis, index in enumerate(emission.place) if not index.variables() <= space}
        fixed = {axis: index for axis, index in enumerate(emissions[0].place) if axis not in inner}
        alike = all(emission.place[axis] == index for emission in emissions for axis, index in fixed.items())
        if not alike or not inner or prod(shape[axis] for axis in inner) > ROW_ELEMENTS:
            return None
        # one of its loops may fill the row on the way, if each runs over all of it
        on_the_way = all(split_place(emission.place, shape, space)[1] for emission in emissions)
        return KeptRow(ref, None if on_the_way else fixed)


@dataclass(frozen=True)
class KeptRow:
    """A value whose row is kept in a local buffer; ``fixed`` are the indices that say which row it is, where a loop of
    its own is to fill it."""

    ref: Ref
    fixed: Mapping[int, Index] | None


class Keep(Exception):
    """A value is computed in more than one inner loop: a local buffer is to hold its row."""

    def __init__(self, row: KeptRow, first: Anchored) -> None:
        super().__init__(row.ref)
        self.row, self.first = row, first


_VIEWS = frozenset({"broadcast_in_dim", "reshape", "transpose", "slice", "reverse"})
"""Views: what they cost is what their operands cost."""

_FACTORS = frozenset({"dot_general", "convolution", "reduce_window"})
"""Operations that read each element of an operand many times."""


class _Probe:
    """Stands in for an emitter where a view is asked what it reads."""

    def __init__(self, ref: Ref, place: Place) -> None:
        self.ref, self.place = ref, place

    def element(self, frame: Frame, ref: Ref, place: Place) -> Value:
        self.ref, self.place = ref, place
        return Value(0, frame.type(ref).dtype)


def _refuse(emitter: Emitter, node: Node, place: Place, kind: str) -> None:
    raise Split(Ref(node.id))
