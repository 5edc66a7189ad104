"""Sums and products of many terms, in the orders that the operation ``reduce`` defines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from tlir.ir.ops import Accumulate
from tlir.ir.types import DType
from tlir.kernel import index as ix
from tlir.kernel.index import Index
from tlir.kernel.ir import Value
from tlir.passes.lower.emitter import Emitter
from tlir.passes.lower.places import Place
from tlir.passes.lower.words import identity_word

RUN = 256
"""Terms of a pairwise sum that go through local buffers together; a power of two, so that a whole run is a subtree."""

UNROLLED = 8
"""A tree of so few terms is written out."""


@dataclass(frozen=True)
class Terms:
    """What is accumulated: ``term(place)`` in the accumulator's dtype for each index of ``extents``, row-major.

    ``fused(total, place)`` combines a term with the total where that is one operation (fma)."""

    emitter: Emitter
    extents: Sequence[int]
    dtype: DType
    operation: str
    term: Callable[[Place], Value]
    fused: Callable[[Value, Place], Value] | None = None

    @property
    def count(self) -> int:
        return prod(self.extents)

    def start(self) -> Value:
        """The identity (of ``or`` and ``and`` for the sums and products of bool)."""
        return self.emitter.literal(self.dtype, identity_word(self.dtype, self.operation))

    def combine(self, a: Value, b: Value) -> Value:
        return self.emitter.apply(self.operation, (a, b))

    def fold(self, total: Value, place: Place) -> Value:
        return self.combine(total, self.term(place)) if self.fused is None else self.fused(total, place)

    def place(self, position: Index) -> Place:
        """The index of the term of this number."""
        return ix.unflatten(position, tuple(self.extents))


def accumulate(terms: Terms, order: Accumulate) -> Value:
    """All terms combined in the order declared, starting from the identity."""
    if not terms.count:
        return terms.start()
    if order.order == "pairwise":
        whole = _tree(terms, terms.count, lambda position: terms.term(terms.place(position)))
        return terms.combine(terms.start(), whole)
    if order.order == "blocked":
        return _blocked(terms, order.block)
    return _sequential(terms, (), terms.start())


def _sequential(terms: Terms, outer: Place, total: Value) -> Value:
    """One by one: a loop per axis, each inside the one before."""
    if len(outer) == len(terms.extents):
        return terms.fold(total, outer)
    (result,) = terms.emitter.loop(
        terms.extents[len(outer)],
        (total,),
        lambda index, carried: (_sequential(terms, (*outer, index), carried[0]),),
    )
    return result


def _blocked(terms: Terms, block: int) -> Value:
    """Runs of ``block`` terms, each from the identity on, then their results from the identity on."""
    whole, rest = divmod(terms.count, block)

    def run(first: Index, length: int) -> Value:
        (total,) = terms.emitter.loop(
            length,
            (terms.start(),),
            lambda index, carried: (terms.fold(carried[0], terms.place(ix.add(first, index))),),
            # a rest of one term looks like every other rest
            keep=whole > 0,
        )
        return total

    (total,) = terms.emitter.loop(
        whole,
        (terms.start(),),
        lambda index, carried: (terms.combine(carried[0], run(ix.multiply(index, block), block)),),
    )
    return terms.combine(total, run(ix.constant(whole * block), rest)) if rest else total


def _tree(terms: Terms, count: int, term: Callable[[Index], Value]) -> Value:
    """Neighbours combined, an odd last one passed on, and so again until one is left.

    After log2(RUN) rounds the entries that are left are the trees of the aligned runs of RUN terms."""
    emitter = terms.emitter
    if count <= UNROLLED:
        return _unrolled(terms, [term(ix.constant(k)) for k in range(count)])
    if count <= RUN:
        half = emitter.local(terms.dtype, (count + 1) // 2)

        def pair(place: Place) -> None:
            left = ix.multiply(place[0], 2)
            emitter.store(half, place[0], terms.combine(term(left), term(ix.add(left, 1))))

        emitter.each((count // 2,), pair)
        if count % 2:
            emitter.store(half, ix.constant(count // 2), term(ix.constant(count - 1)))
        return _tree(terms, half.size, lambda position: emitter.load(half, position))
    whole, rest = divmod(count, RUN)
    runs = emitter.local(terms.dtype, whole + bool(rest))

    def run(index: Index, carried: tuple[Value, ...]) -> tuple[Value, ...]:
        first = ix.multiply(index, RUN)
        emitter.store(runs, index, _tree(terms, RUN, lambda position: term(ix.add(first, position))))
        return ()

    emitter.loop(whole, (), run)
    if rest:
        first = ix.constant(whole * RUN)
        emitter.store(runs, ix.constant(whole), _tree(terms, rest, lambda position: term(ix.add(first, position))))
    return _tree(terms, runs.size, lambda position: emitter.load(runs, position))


def _unrolled(terms: Terms, entries: list[Value]) -> Value:
    while len(entries) > 1:
        paired = [terms.combine(a, b) for a, b in zip(entries[::2], entries[1::2], strict=False)]
        entries = paired + entries[len(paired) * 2 :]
    return entries[0]
