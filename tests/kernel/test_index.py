"""Indices in their normal form have the values that the formulas have, and the ranges that they claim."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tlir.kernel import index as ix
from tlir.kernel.index import Atom, Index, Quotient, Remainder, Variable

VARIABLES = tuple(Variable(k, extent) for k, extent in enumerate((3, 4, 1, 6, 2)))


def evaluate(index: Index, values: dict[Variable, int]) -> int:
    def of_atom(atom: Atom) -> int:
        if isinstance(atom, Variable):
            return values[atom]
        assert isinstance(atom, Quotient | Remainder)
        dividend = evaluate(atom.dividend, values)
        return dividend // atom.divisor if isinstance(atom, Quotient) else dividend % atom.divisor

    return index.constant + sum(c * of_atom(atom) for c, atom in index.terms)


def all_points() -> list[dict[Variable, int]]:
    return [dict(zip(VARIABLES, point, strict=True)) for point in product(*(range(v.extent) for v in VARIABLES))]


POINTS = all_points()


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_random_formulas(seed: int) -> None:
    """A random formula, built through the functions and evaluated directly at every point at the same time."""
    random = np.random.default_rng(seed)
    built: list[tuple[Index, list[int]]] = [(ix.variable(v), [point[v] for point in POINTS]) for v in VARIABLES]
    for _ in range(6):
        (x, of_x), (y, of_y) = (built[int(random.integers(len(built)))] for _ in range(2))
        divisor, factor = int(random.integers(1, 8)), int(random.integers(-4, 5))
        match int(random.integers(5)):
            case 0:
                new = ix.add(x, y), [a + b for a, b in zip(of_x, of_y, strict=True)]
            case 1:
                new = ix.multiply(x, factor), [a * factor for a in of_x]
            case 2:
                new = ix.quotient(x, divisor), [a // divisor for a in of_x]
            case 3:
                new = ix.remainder(x, divisor), [a % divisor for a in of_x]
            case _:
                new = ix.add(x, factor), [a + factor for a in of_x]
        built.append(new)
    for index, expected in built:
        assert [evaluate(index, point) for point in POINTS] == expected
        assert index.least <= min(expected)
        assert index.greatest >= max(expected)
        assert all(c for c, _ in index.terms)
        assert len({atom for _, atom in index.terms}) == len(index.terms)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from((1, 2, 3, 4, 5, 6)), max_size=4), st.randoms(use_true_random=False))
def test_reshaping_and_back_gives_the_variables(shape: list[int], random: object) -> None:
    variables = tuple(ix.variable(Variable(k, extent)) for k, extent in enumerate(shape))
    factors = [f for size in shape for f in _prime_factors(size)]
    random.shuffle(factors)  # type: ignore[attr-defined]
    other = tuple(factors) or (1,)
    assert prod(other) == prod(shape)
    through = ix.unflatten(ix.flatten(variables, shape), other)
    assert ix.unflatten(ix.flatten(through, other), tuple(shape)) == variables


def _prime_factors(size: int) -> list[int]:
    return {1: [], 4: [2, 2], 6: [2, 3]}.get(size, [size])


def test_an_offset_taken_apart_has_no_quotients_left() -> None:
    a, b = (ix.variable(Variable(k, extent)) for k, extent in enumerate((5, 7)))
    assert ix.unflatten(ix.flatten((a, b), (5, 7)), (5, 7)) == (a, b)
    joined = ix.flatten((a, b), (5, 7))
    assert ix.quotient(joined, 7) == a
    assert ix.remainder(joined, 7) == b


def test_ranges_decide_quotients() -> None:
    a = ix.variable(Variable(0, 5))
    assert ix.quotient(a, 5) == ix.ZERO
    assert ix.remainder(ix.add(a, 10), 5) == a
    assert ix.quotient(ix.add(a, -5), 5) == ix.constant(-1)
