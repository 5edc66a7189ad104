"""Eigenvectors and singular vectors compared up to what their definition leaves free.

A column of eigenvectors may be multiplied by any number of modulus 1, and those of one eigenvalue by any unitary
matrix; so may pairs of singular vectors. What an evaluation got is therefore turned, before it is compared, by the
unitary matrix Q that brings it closest to what the frontend recorded, among those that rounding explains: with G =
got^H recorded, an entry G[i,j] off the diagonal counts only where |G[i,j]| |w[i] - w[j]| is within the backward error
``ERRORS`` n eps max |w| of a factorization in the format of the operand, w being the eigenvalues or singular values
(Davis and Kahan's theorem: so far do vectors turn when the matrix changes by that error). Left and right singular
vectors turn together, S Q_V = Q_U S, except where a singular value is zero within the same error.

This concerns outputs that are results of ``eigh`` or ``svd``, as they are or transposed or conjugated; whatever is
computed from vectors is compared as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlir.ir.graph import Graph, Node, Ref
from tlir.ir.tensor import Tensor, numpy_dtype

Array = NDArray[Any]

ERRORS = 8
"""The backward error of a factorization of n rows and columns is taken to be at most so many n eps of the greatest
eigenvalue or singular value."""

_VECTORS = {"eigh": (1,), "svd": (0, 2)}
_VALUES = {"eigh": 0, "svd": 1}
_MOVES = ("transpose", "conjugate")


@dataclass(frozen=True)
class _Output:
    """An output that holds vectors: the moves that lead to it from the factorization's result, first to last."""

    position: int
    moves: tuple[Node, ...]


@dataclass
class Factors:
    """A factorization whose vectors are outputs: which result is found in which outputs, and where its results stand
    among those of the graph that ``with_factors`` gives."""

    node: Node
    outputs: dict[int, list[_Output]] = field(default_factory=dict)
    results: int = 0

    @property
    def positions(self) -> list[int]:
        """The outputs that hold vectors."""
        return [place.position for places in self.outputs.values() for place in places]

    @property
    def freedom(self) -> str:
        """What is free, in words."""
        return "up to the signs and bases of " + ("eigenvectors" if self.node.op == "eigh" else "singular vectors")


def with_factors(graph: Graph) -> tuple[Graph, list[Factors]]:
    """The factorizations whose vectors the graph returns, and the graph that also returns, behind its outputs, all of
    their results. Types that NumPy does not have are left alone."""
    found: dict[int, Factors] = {}
    for position, output in enumerate(graph.body.outputs):
        ref, moves = output, []
        while graph.nodes[ref.node].op in _MOVES:
            moves.append(graph.nodes[ref.node])
            ref = graph.nodes[ref.node].inputs[0]
        node = graph.nodes[ref.node]
        if ref.result in _VECTORS.get(node.op, ()) and numpy_dtype(node.types[ref.result].dtype) is not None:
            factors = found.setdefault(node.id, Factors(node))
            factors.outputs.setdefault(ref.result, []).append(_Output(position, tuple(reversed(moves))))
    outputs = list(graph.body.outputs)
    for factors in found.values():
        factors.results = len(outputs)
        outputs += [Ref(factors.node.id, k) for k in range(len(factors.node.types))]
    if not found:
        return graph, []
    return replace(graph, body=replace(graph.body, outputs=tuple(outputs))), list(found.values())


def aligned(factors: Sequence[Factors], recorded: Sequence[Tensor], results: Sequence[Tensor]) -> list[Tensor]:
    """The outputs of an evaluation of the graph of ``with_factors`` (without the results it adds), vectors turned
    towards the recorded outputs."""
    got = list(results[: len(recorded)])
    for each in factors:
        kept = [tensor.to_numpy() for tensor in results[each.results : each.results + len(each.node.types)]]
        turned = _turned(each, kept, recorded)
        for result, places in each.outputs.items():
            for place in places:
                moved = _moved(turned[result], place.moves)
                got[place.position] = Tensor.from_numpy(np.ascontiguousarray(moved))
    return got


def aligned_results(graph: Graph, recorded: Sequence[Tensor], evaluate: Any, inputs: Sequence[Tensor]) -> list[Tensor]:
    """What ``evaluate(graph, inputs)`` returns, vectors turned towards the recorded outputs."""
    extended, factors = with_factors(graph)
    return aligned(factors, recorded, evaluate(extended, inputs))


def _moved(array: Array, moves: Sequence[Node]) -> Array:
    for move in moves:
        array = np.conj(array) if move.op == "conjugate" else np.transpose(array, move.attrs["permutation"])
    return array


def _returned(array: Array, moves: Sequence[Node]) -> Array:
    """The inverse of ``_moved``."""
    for move in reversed(moves):
        array = np.conj(array) if move.op == "conjugate" else array.transpose(np.argsort(move.attrs["permutation"]))
    return array


def _wide(array: Array) -> Array:
    """In binary64, which is more precise than every format here but its own."""
    return array.astype(np.complex128 if np.iscomplexobj(array) else np.float64)


def _turned(factors: Factors, results: Sequence[Array], recorded: Sequence[Tensor]) -> dict[int, Array]:
    """The vectors of a factorization, by result, turned towards the first output that holds them."""
    node = factors.node
    wants = {
        result: _returned(recorded[places[0].position].to_numpy(), places[0].moves)
        for result, places in factors.outputs.items()
    }
    turned = {result: np.array(results[result]) for result in wants}
    values = results[_VALUES[node.op]]
    eps = 2.0 ** -node.types[_VALUES[node.op]].dtype.float_format.fraction_bits
    for index in np.ndindex(*values.shape[:-1]):
        w = _wide(values[index])
        sides = {result: (_columns(node, result, turned[result][index])) for result in wants}
        marks = {result: (_columns(node, result, wants[result][index])) for result in wants}
        if not all(np.isfinite(part).all() for part in (w, *sides.values(), *marks.values())):
            continue
        sizes = [max(side.shape) for side in sides.values()]
        error = ERRORS * max(1, *sizes) * eps * np.abs(w).max(initial=0)
        matrices = _unitary(node, w, sides, marks, error, eps)
        for result, matrix in matrices.items():
            columns = _times(sides[result], matrix)
            made = columns if _as_columns(node, result) else columns.conj().T
            turned[result][index] = made.astype(turned[result].dtype)
    return turned


def _as_columns(node: Node, result: int) -> bool:
    return (node.op, result) != ("svd", 2)


def _columns(node: Node, result: int, array: Array) -> Array:
    """The vectors as columns: right singular vectors are recorded as the rows of V^H."""
    return _wide(array) if _as_columns(node, result) else _wide(array).conj().T


def _unitary(
    node: Node, values: Array, sides: dict[int, Array], marks: dict[int, Array], error: float, eps: float
) -> dict[int, Array]:
    """The unitary matrix by which each side's columns are multiplied."""
    entries: dict[int, Array] = {}
    for result, side in sides.items():
        overlap = side.conj().T @ marks[result]
        w = np.zeros(len(overlap))
        w[: len(values)] = values  # the columns that full_matrices adds belong to the singular value zero
        explained = np.abs(overlap) * np.abs(w[:, np.newaxis] - w) <= error
        explained &= np.abs(overlap) > ERRORS * eps  # the rest is the rounding of elements, and no turn
        np.fill_diagonal(explained, True)
        entries[result] = np.where(explained, overlap, 0)
    if node.op == "svd" and len(entries) == 2:
        left, right = entries[0], entries[2]
        count = len(values)
        u, v = left[:count, :count], right[:count, :count]
        together = np.abs(values[:, np.newaxis] * v - u * values) <= error
        v[~together] = u[~together]
    return {result: _polar(matrix) for result, matrix in entries.items()}


def _polar(matrix: Array) -> Array:
    """The unitary matrix closest to ``matrix``; exact signs where it is diagonal and real."""
    if not np.count_nonzero(matrix - np.diag(np.diag(matrix))):
        diagonal = np.diag(matrix)
        size = np.abs(diagonal)
        return np.asarray(np.diag(np.where(size > 0, diagonal / np.where(size > 0, size, 1), 1)))
    u, _, vh = np.linalg.svd(matrix)
    return np.asarray(u @ vh)


def _times(columns: Array, matrix: Array) -> Array:
    """The product, by which a column that is only multiplied by 1 or -1 keeps its digits."""
    product = columns @ matrix
    for j in range(matrix.shape[1]):
        if np.count_nonzero(matrix[:, j]) == 1 and matrix[j, j] in (1, -1):
            product[:, j] = columns[:, j] * matrix[j, j].real
    return np.asarray(product)
