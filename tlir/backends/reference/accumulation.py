"""The orders in which reductions and contractions accumulate, each defined by shape alone.

``Terms`` gives the values to combine by their number, 0 to ``count - 1``, in blocks of consecutive ones, so that a long
contraction never holds all its products at once. Everything is vectorised over the outputs and sequential over the
terms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tlir.backends.reference.numbers import Carrier, Numbers
from tlir.ir.ops import Accumulate

BLOCK_ELEMENTS = 1 << 16
"""Elements of a block of terms that are made together."""

FEW_OUTPUTS = 64
"""Up to so many outputs, one call of ``ufunc.accumulate`` per block is quicker than a call of an operation per term."""


class Terms(Protocol):
    """``count`` terms of shape ``shape`` each (and the axes of a carrier behind)."""

    @property
    def numbers(self) -> Numbers: ...

    @property
    def operation(self) -> str: ...

    @property
    def count(self) -> int: ...

    @property
    def shape(self) -> tuple[int, ...]: ...

    def block(self, start: int, stop: int) -> Carrier:
        """Terms ``start`` to ``stop - 1`` along a new first axis."""

    def fold(self, accumulator: Carrier, start: int, stop: int) -> Carrier:
        """The accumulator after combining it with these terms one by one."""


def block_length(shape: tuple[int, ...]) -> int:
    """How many terms of this shape are made together."""
    return max(1, BLOCK_ELEMENTS // max(1, int(np.prod(shape, dtype=object))))


def combine(numbers: Numbers, operation: str, a: Carrier, b: Carrier) -> Carrier:
    return numbers.add(a, b) if operation == "add" else numbers.multiply(a, b)


def fold_block(numbers: Numbers, operation: str, accumulator: Carrier, block: Carrier) -> Carrier:
    """The accumulator combined with the entries of the block's first axis, one by one.

    ``ufunc.accumulate`` has to return every intermediate result, each being the operation applied to the one before
    and the next entry: that is the sequential order, one rounding at each step."""
    ufunc = numbers.ufuncs.get(operation)
    if ufunc is None or accumulator.size > FEW_OUTPUTS:
        for term in block:
            accumulator = combine(numbers, operation, accumulator, term)
        return accumulator
    chain = np.concatenate((accumulator[np.newaxis], block))
    last: Carrier = ufunc.accumulate(chain, axis=0, dtype=chain.dtype)[-1]
    return last


@dataclass(frozen=True)
class Elements:
    """The terms of a reduction: the entries of the first axis of a carrier."""

    numbers: Numbers
    operation: str
    carrier: Carrier

    @property
    def count(self) -> int:
        return len(self.carrier)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.carrier.shape[1 : self.carrier.ndim - self.numbers.axes]

    def block(self, start: int, stop: int) -> Carrier:
        return self.carrier[start:stop]

    def fold(self, accumulator: Carrier, start: int, stop: int) -> Carrier:
        length = block_length(self.shape)
        for first in range(start, stop, length):
            block = self.block(first, min(first + length, stop))
            accumulator = fold_block(self.numbers, self.operation, accumulator, block)
        return accumulator


def accumulate(terms: Terms, order: Accumulate) -> Carrier:
    """All terms combined in the order declared, starting from the identity of the operation."""
    start = _identity(terms)
    if 0 in terms.shape:
        return start  # no output, however many terms
    if order.order == "pairwise":
        return combine(terms.numbers, terms.operation, start, _pairwise(terms)) if terms.count else start
    if order.order == "blocked":
        total = start
        for first in range(0, terms.count, order.block):
            run = terms.fold(start, first, min(first + order.block, terms.count))
            total = combine(terms.numbers, terms.operation, total, run)
        return total
    return terms.fold(start, 0, terms.count)


def _identity(terms: Terms) -> Carrier:
    scalar = terms.numbers.identity(terms.operation)
    return np.array(np.broadcast_to(scalar, (*terms.shape, *scalar.shape)))


def _pairwise(terms: Terms) -> Carrier:
    """Neighbours combined, an odd last one passed on, until one is left.

    Kept as a binary counter: entry j of ``complete`` is the combination of an aligned run of 2^j terms that waits for
    the next such run. The runs left at the end are those that were passed on; the last two are combined first.
    """

    def both(a: Carrier, b: Carrier) -> Carrier:
        return combine(terms.numbers, terms.operation, a, b)

    complete: dict[int, Carrier] = {}
    length = 1 << (
        block_length(terms.shape).bit_length() - 1
    )  # a power of two, so that a whole block is one aligned run
    for first in range(0, terms.count, length):
        block = terms.block(first, min(first + length, terms.count))
        while len(block):
            level = len(block).bit_length() - 1
            run = tree(both, block[: 1 << level])
            block = block[1 << level :]
            while level in complete:
                run = both(complete.pop(level), run)
                level += 1
            complete[level] = run
    levels = sorted(complete)
    total = complete[levels[0]]
    for level in levels[1:]:
        total = both(complete[level], total)
    return total


def tree(both: Callable[[Carrier, Carrier], Carrier], block: Carrier) -> Carrier:
    """The entries of a first axis, neighbours combined and an odd last one passed on until one is left."""
    while len(block) > 1:
        even = len(block) & ~1
        paired = both(block[0:even:2], block[1:even:2])
        block = paired if even == len(block) else np.concatenate((paired, block[even:]))
    last: Carrier = block[0]
    return last
