"""Vectors of factorizations: what their definition leaves free passes, and nothing else does.

Recorded vectors are NumPy's (LAPACK's), or made from them by the freedom that the definition has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tlir.backends.reference import evaluate
from tlir.compare import CompareReport, compare
from tlir.ir.graph import Body, Graph, Node, Ref, Sample
from tlir.ir.tensor import Tensor
from tlir.ir.types import TensorType

RNG = np.random.default_rng(5)


def factorization(op: str, operand: np.ndarray, recorded: Sequence[np.ndarray], **attrs: Any) -> Graph:
    """A graph that returns all results of a factorization, and what a frontend is said to have returned."""
    given = Tensor.from_numpy(operand)
    wanted = tuple(Tensor.from_numpy(np.ascontiguousarray(array)) for array in recorded)
    nodes = (
        Node(0, "input", (), {}, (given.type,), "a"),
        Node(1, op, (Ref(0),), attrs, tuple(tensor.type for tensor in wanted)),
    )
    outputs = tuple(Ref(1, k) for k in range(len(wanted)))
    return Graph(Body(nodes, (0,), outputs), samples=(Sample((given,), wanted),))


def compared(graph: Graph, **options: Any) -> CompareReport:
    return compare(graph, evaluate=lambda g, inputs: evaluate(g.body, inputs), **options)


def normal(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    made = RNG.standard_normal(shape)
    return (made + 1j * RNG.standard_normal(shape) if dtype.startswith("complex") else made).astype(dtype)


def unitary(n: int, dtype: str) -> np.ndarray:
    return np.linalg.qr(normal((n, n), "complex128" if dtype.startswith("complex") else "float64"))[0]


def with_values(values: Sequence[float], dtype: str) -> np.ndarray:
    """A Hermitian matrix of the given eigenvalues."""
    basis = unitary(len(values), dtype)
    return ((basis * np.array(values)) @ basis.conj().T).astype(dtype)


DTYPES = ("float32", "float64", "complex64", "complex128")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("values", [(1, 2, 4, 7), (1, 1, 1, 3), (0, 0, 0, 0), (-1, -1, 1, 1)])
def test_eigenvectors_of_lapack_pass_in_every_basis(dtype: str, values: tuple[float, ...]) -> None:
    a = with_values(values, dtype)
    w, v = np.linalg.eigh(a)
    groups = np.equal.outer(values, values)
    phases = np.diag(np.exp(1j * np.arange(4)) if dtype.startswith("complex") else [1, -1, -1, 1])
    mixed = np.where(groups, unitary(4, dtype), 0)
    u, _, vh = np.linalg.svd(mixed)  # a unitary matrix within each eigenvalue
    for turn in (np.eye(4), phases, u @ vh if np.linalg.matrix_rank(mixed) == 4 else np.eye(4)):
        report = compared(factorization("eigh", a, [w, (v @ turn).astype(dtype)]))
        assert report.ok, report.outputs[1].worst
        assert report.outputs[1].freedom == "up to the signs and bases of eigenvectors"
        assert report.outputs[0].freedom is None


def test_a_changed_sign_keeps_the_words() -> None:
    a = with_values((1, 2, 4, 7), "float32")
    graph = factorization("eigh", a, [np.zeros(4, np.float32), np.zeros((4, 4), np.float32)])
    w, v = (tensor.to_numpy() for tensor in evaluate(graph.body, graph.samples[0].inputs))
    report = compared(factorization("eigh", a, [w, v * np.float32([1, -1, 1, -1])]), ulps=0)
    assert report.ok
    assert report.outputs[1].equal_words == 16
    assert not compared(factorization("eigh", a, [w, v * np.float32([1, -1, 1, -1])]), words=True).ok


@pytest.mark.parametrize("dtype", DTYPES)
def test_wrong_eigenvectors_fail(dtype: str) -> None:
    a = with_values((1, 2, 4, 7), dtype)
    w, v = np.linalg.eigh(a)
    angle = 1e-3
    turned = v.copy()
    turned[:, 0], turned[:, 1] = (
        np.cos(angle) * v[:, 0] + np.sin(angle) * v[:, 1],
        np.cos(angle) * v[:, 1] - np.sin(angle) * v[:, 0],
    )
    changed = v.copy()
    changed[2, 3] *= 1.01
    other = np.linalg.eigh(a + np.diag([0, 0.01, 0, 0]).astype(dtype))[1]
    for wrong in (v[:, [1, 0, 2, 3]], v[[1, 0, 2, 3]], v.T, turned, changed, other, v * 2, v * 0, v * np.nan):
        report = compared(factorization("eigh", a, [w, wrong.astype(dtype)]))
        assert not report.outputs[1].ok
        assert report.outputs[0].ok


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)])
@pytest.mark.parametrize("full", [False, True])
def test_singular_vectors_turn_together(dtype: str, shape: tuple[int, int], full: bool) -> None:
    a = normal(shape, dtype)
    u, s, vh = np.linalg.svd(a, full_matrices=full)
    k = len(s)
    signs = np.exp(1j * np.arange(k)) if dtype.startswith("complex") else np.array([1, -1, -1, 1])[:k]
    turned_u, turned_vh = u.copy(), vh.copy()
    turned_u[:, :k] *= signs
    turned_vh[:k] *= signs.conj()[:, np.newaxis]
    extra = unitary(max(shape) - k, dtype) if full and shape[0] != shape[1] else None
    if extra is not None and shape[0] > k:
        turned_u[:, k:] = turned_u[:, k:] @ extra
    if extra is not None and shape[1] > k:
        turned_vh[k:] = extra @ turned_vh[k:]
    for left, right in ((u, vh), (turned_u, turned_vh)):
        report = compared(factorization("svd", a, [left.astype(dtype), s, right.astype(dtype)], full_matrices=full))
        assert report.ok, [output.worst for output in report.outputs]
    # a sign of the left vectors alone is another matrix
    for left, right in ((turned_u, vh), (u, turned_vh)):
        report = compared(factorization("svd", a, [left.astype(dtype), s, right.astype(dtype)], full_matrices=full))
        assert not report.ok


def test_singular_vectors_of_zero_turn_by_themselves() -> None:
    a = (normal((4, 2), "float64") @ normal((2, 4), "float64")).astype("float64")
    u, s, vh = np.linalg.svd(a)
    u[:, 2:] = u[:, 2:] @ unitary(2, "float64")
    vh[2:] = unitary(2, "float64") @ vh[2:]
    assert compared(factorization("svd", a, [u, s, vh])).ok
    u[:, 1] *= -1
    assert not compared(factorization("svd", a, [u, s, vh])).ok


def test_a_batch_turns_matrix_by_matrix_and_moved_vectors_turn_too() -> None:
    a = np.stack([with_values((1, 2, 4), "complex64"), with_values((5, 5, 9), "complex64")])
    w, v = np.linalg.eigh(a)
    v = v * np.exp(1j * np.arange(6).reshape(2, 1, 3))
    graph = factorization("eigh", a, [w, v.astype(np.complex64)])
    assert compared(graph).ok
    vectors = graph.nodes[1].types[1]
    moved = TensorType(vectors.shape, vectors.dtype)
    nodes = (
        *graph.nodes,
        Node(2, "conjugate", (Ref(1, 1),), {}, (moved,)),
        Node(3, "transpose", (Ref(2),), {"permutation": (0, 2, 1)}, (moved,)),
    )
    adjoint = Tensor.from_numpy(np.ascontiguousarray(v.conj().swapaxes(1, 2).astype(np.complex64)))
    sample = Sample(graph.samples[0].inputs, (adjoint,))
    assert compared(Graph(Body(nodes, (0,), (Ref(3),)), samples=(sample,))).ok
    wrong = Sample(graph.samples[0].inputs, (graph.samples[0].outputs[1],))
    assert not compared(Graph(Body(nodes, (0,), (Ref(3),)), samples=(wrong,))).ok
