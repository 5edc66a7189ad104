"""What can be proved of offsets: where they lie under guards, and that iterations keep to elements of their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

from tlir.kernel.index import Atom, Index, Quotient, Variable, total
from tlir.kernel.ir import Bound


def limits(offset: Index, guard: Sequence[Bound]) -> tuple[int, int]:
    """The least and greatest value that an offset has where all bounds hold, as far as is seen.

    Where the terms of a bound's index all occur in the offset, in one proportion, the bound's limits take their
    place: ``10 * (i - 2) + j`` with ``0 <= i - 2 < 5`` lies from 0 to 40 + j."""
    least, greatest = 0, 0
    rest = offset
    for terms, (low, high) in _tightest(guard).items():
        factor = _proportion(rest, terms)
        if factor:
            rest = total([(1, rest), (-factor, terms)])
            least += factor * (low if factor > 0 else high)
            greatest += factor * (high if factor > 0 else low)
    return least + rest.least, greatest + rest.greatest


def _tightest(guard: Sequence[Bound]) -> dict[Index, tuple[int, int]]:
    """The least and greatest value of each index, without its constant and with a positive first coefficient, over all
    bounds that are about it. A bound of a quotient is one of its dividend too."""
    known: dict[Index, tuple[int, int]] = {}
    waiting = [(bound.index, bound.low, bound.high - 1) for bound in guard]
    while waiting:
        index, low, high = waiting.pop()
        low, high = low - index.constant, high - index.constant
        terms = total([(1, index)], -index.constant)
        if not terms.terms:
            continue
        if terms.terms[0][0] < 0:
            terms, low, high = total([(-1, terms)]), -high, -low
        if len(terms.terms) == 1 and terms.terms[0][0] == 1 and isinstance(atom := terms.terms[0][1], Quotient):
            waiting.append((atom.dividend, low * atom.divisor, high * atom.divisor + atom.divisor - 1))
        least, greatest = known.get(terms, (terms.least, terms.greatest))
        known[terms] = max(least, low), min(greatest, high)
    return {terms: (low, high) for terms, (low, high) in known.items() if low <= high}


def _proportion(offset: Index, part: Index) -> int:
    """How often ``part`` goes into the offset: the largest factor that leaves no term with another sign; may be 0."""
    coefficients = {atom: c for c, atom in offset.terms}
    factors = []
    for c, atom in part.terms:
        own = coefficients.get(atom, 0)
        factors.append((abs(own) // abs(c)) * (1 if own * c > 0 else -1))
    least = min(factors, key=abs)
    return least if all(factor * least > 0 for factor in factors) else 0


@dataclass(frozen=True)
class Place:
    """Where a store writes: the offset, and the loops around it that are not of the space."""

    offset: Index
    inner: tuple[Variable, ...]
    conditional: bool


def apart(places: Iterable[Place], space: Sequence[Variable]) -> bool | None:
    """Whether no two iterations of the space write to one element of a buffer; None where that is not seen.

    The offsets are read as numbers in a mixed radix: a digit for each variable of the space, and for whatever else the
    offsets depend on. They stay apart if every digit from the least one of the space upward outweighs all below it."""
    counted = [v for v in space if v.extent > 1]
    own: dict[Variable, int] | None = None
    others: dict[int, tuple[int, int]] = {}
    constants: list[int] = []
    for place in places:
        here: dict[Variable, int] = {}
        for coefficient, atom in place.offset.terms:
            if isinstance(atom, Variable) and atom in counted:
                here[atom] = coefficient
            elif _depends(atom, counted):
                return None
            else:
                ends = sorted((coefficient * atom.least, coefficient * atom.greatest))
                low, high = others.get(abs(coefficient), (ends[0], ends[1]))
                others[abs(coefficient)] = (min(low, ends[0]), max(high, ends[1]))
        missing = [v for v in counted if v not in here]
        if missing:
            # an offset that does not depend on a variable is the same for all of its values
            return None if place.conditional or place.offset.values() else False
        if own is not None and own != here:
            return None
        own = here
        constants.append(place.offset.constant)
    if own is None:
        return True
    digits = [(abs(c), abs(c) * (v.extent - 1), True) for v, c in own.items()]
    digits += [(c, high - low, False) for c, (low, high) in others.items()]
    digits += [(c, c * (count - 1), False) for c, count in _progressions(constants)]
    below, started = 0, False
    for weight, width, of_space in sorted(digits, key=lambda digit: (digit[0], digit[2])):
        started = started or of_space
        if started and width and weight <= below:
            return None
        below += width
    return True


def _depends(atom: Atom, variables: Sequence[Variable]) -> bool:
    return bool(Index(((1, atom),)).variables() & set(variables))


def covers(places: Sequence[Place], space: Sequence[Variable], size: int) -> bool | None:
    """Whether the stores write every element of a buffer of this size; None where that is not seen."""
    if size == 0:
        return True
    if not places:
        return False
    together: dict[tuple[tuple[Variable, ...], Index], set[int]] = {}
    for place in places:
        if not place.conditional:
            constant = place.offset.constant
            key = place.inner, total([(1, place.offset)], -constant)
            together.setdefault(key, set()).add(constant)
    for (inner, terms), constants in together.items():
        # stores side by side, such as those of the parts of complex numbers, count as more digits
        variables = (*space, *inner)
        if _one_to_one(terms, variables, _progressions(constants)) is None:
            continue
        written = len(constants) * prod(v.extent for v in variables)
        if written == size and (terms.least + min(constants), terms.greatest + max(constants)) == (0, size - 1):
            return True
    most = sum(prod(v.extent for v in (*space, *place.inner)) for place in places)
    return False if most < size and not any(place.offset.values() for place in places) else None


def _progressions(constants: Iterable[int]) -> list[tuple[int, int]]:
    """Steps and counts: the numbers from the least one on are the sums of a multiple of each step, from 0 to below its
    count. Numbers that are no such sums are among those of step 1."""
    left = sorted(set(constants))
    found = []
    every = [(1, left[-1] - left[0] + 1)]
    while len(left) > 1:
        step, count = left[1] - left[0], 2
        while count < len(left) and left[count] - left[count - 1] == step:
            count += 1
        starts = left[::count]
        if left != [start + step * k for start in starts for k in range(count)]:
            return every
        found.append((step, count))
        left = starts
    return found


def _one_to_one(offset: Index, variables: Sequence[Variable], more: Iterable[tuple[int, int]]) -> bool | None:
    """Whether different values of the variables, and of more digits given by their weights and counts, give different
    offsets; None where that is not seen."""
    digits = {v: 0 for v in variables if v.extent > 1}
    for coefficient, atom in offset.terms:
        if not isinstance(atom, Variable) or atom not in digits:
            return None
        digits[atom] = abs(coefficient)
    below = 0
    for weight, count in sorted([*((weight, v.extent) for v, weight in digits.items()), *more]):
        if weight <= below:
            return None
        below += weight * (count - 1)
    return True
