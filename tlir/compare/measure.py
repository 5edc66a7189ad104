"""One output compared: counts, maxima with their indices, and the worst elements that do not pass."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tlir.compare.pairs import FloatPairs, IntegerPairs, by_element, differing, pairs, pieces
from tlir.compare.report import Element, OutputComparison
from tlir.compare.rule import Rule
from tlir.compare.text import element_text, element_words
from tlir.ir.graph import Graph, Node
from tlir.ir.tensor import Tensor

_POWERS = np.array([1 << bits for bits in range(64)], np.uint64)

_SMALL = 1 << 8
_BITS = np.searchsorted(_POWERS, np.arange(_SMALL, dtype=np.uint64), side="right")

WORST = 5
"""So many failing elements are listed."""


def output_names(graph: Graph) -> list[str]:
    """A readable name per output: ``output``, ``output[1]``, or its path in the output tree, ``output['loss']``."""
    return graph.output_names()


def compare_tensors(
    expected: Tensor,
    got: Tensor,
    rule: Rule,
    *,
    sample: int = 0,
    position: int = 0,
    name: str = "output",
    node: Node,
    passing: NDArray[np.bool_] | None = None,
) -> OutputComparison:
    """Compare two tensors of the same type under a rule; ``node`` is the one that gives the output. ``passing`` says of
    each element, flat, whether it passes, where another judge than the rule has decided."""
    type = expected.type
    if got.type != type:
        raise ValueError(f"cannot compare {got.type} with {type}")
    where = differing(type.dtype, expected.words, got.words)
    sides = [by_element(type.dtype, side.words) for side in (expected, got)]
    if len(where) < type.size:
        sides = [side[where] for side in sides]
    measured = pairs(type.dtype, *sides)
    passes = measured.passes(rule) if passing is None else passing[where]
    failing = np.flatnonzero(~passes)

    def element(k: int | None) -> Element | None:
        return None if k is None else _element(type.shape, expected, got, int(where[k]), measured, k)

    order = failing[np.argsort(-measured.severity()[failing], kind="stable")[:WORST]] if len(failing) else failing
    return OutputComparison(
        sample=sample,
        position=position,
        name=name,
        type=type,
        node=str(node),
        source=node.source,
        count=type.size,
        equal_words=type.size - len(where),
        failing=len(failing),
        mismatched=int(np.count_nonzero(~measured.comparable)),
        max_ulps=element(_largest_distance(measured)),
        max_absolute=element(measured.largest_absolute()),
        max_relative=element(measured.largest_relative()),
        worst=tuple(found for k in order if (found := element(int(k))) is not None),
        histogram=_histogram(measured, type.size - len(where)),
    )


def _histogram(measured: FloatPairs | IntegerPairs, equal: int) -> tuple[tuple[int, int], ...]:
    """Numbers of elements by the number of bits of their distance; ``equal`` more have equal words."""
    distances = measured.ulps if measured.comparable.all() else measured.ulps[np.asarray(measured.comparable)]
    if distances.dtype == object:
        bits = np.array([int(distance).bit_length() for distance in distances], np.intp)
        counts = np.bincount(bits, minlength=1)
    else:
        counts = np.zeros(65, np.int64)
        for piece in pieces(len(distances)):
            each = distances[piece]
            small = each < _SMALL
            if not small.all():
                counts += np.bincount(np.searchsorted(_POWERS, each[~small], side="right"), minlength=65)
                each = each[small]
            # most distances are small: how often each occurs, and then how many bits it has
            often = np.bincount(each.astype(np.intp), minlength=_SMALL)
            np.add.at(counts, _BITS, often)
    counts[0] += equal
    return tuple((bits, int(count)) for bits, count in enumerate(counts) if count)


def _largest_distance(measured: FloatPairs | IntegerPairs) -> int | None:
    if not measured.count:
        return None
    if measured.comparable.all():
        return int(np.argmax(measured.ulps))
    comparable = np.flatnonzero(measured.comparable)
    return int(comparable[int(np.argmax(measured.ulps[comparable]))]) if len(comparable) else None


def _element(
    shape: tuple[int, ...],
    expected: Tensor,
    got: Tensor,
    flat: int,
    measured: FloatPairs | IntegerPairs,
    k: int,
) -> Element:
    comparable = bool(measured.comparable[k])
    return Element(
        index=tuple(int(i) for i in np.unravel_index(flat, shape)) if shape else (),
        expected=element_text(expected, flat),
        got=element_text(got, flat),
        expected_words=element_words(expected, flat),
        got_words=element_words(got, flat),
        absolute=measured.absolute(k) if comparable else None,
        relative=measured.relative(k) if comparable else None,
        ulps=int(measured.ulps[k]) if comparable else None,
    )
