"""Fourier transforms, factorizations and solvers against JAX (LAPACK, pocketfft): errors measured in units of the
largest element's rounding error, vectors up to what their definition leaves free."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax_oracle import capture, checked, ops

from tlir.backends.reference import evaluate
from tlir.compare import aligned_results

RNG = np.random.default_rng(11)


def errors(fn: Callable[..., Any], *args: Any, planted: Callable[..., Any] | None = None) -> float:
    """The largest difference between the reference and JAX, in eps of the largest element of each output; with
    ``planted`` the graph is that of a function with an error."""
    graph = checked(capture.export(fn, *args))
    sample = graph.samples[0]
    if planted is not None:
        graph = checked(capture.export(planted, *args))
    got = aligned_results(graph, sample.outputs, lambda g, inputs: evaluate(g.body, inputs), sample.inputs)
    worst = 0.0
    for mine, theirs in zip(got, sample.outputs, strict=True):
        assert mine.type == theirs.type
        a, b = mine.to_numpy(), theirs.to_numpy()
        if b.dtype.kind in "fc":
            assert np.array_equal(np.isnan(a), np.isnan(b))
            a, b = np.nan_to_num(a), np.nan_to_num(b)
            scale = np.abs(b).max(initial=0) * np.finfo(b.dtype).eps
            worst = max(
                worst, float(np.abs(a - b).max(initial=0) / scale) if scale else float(np.abs(a).max(initial=0))
            )
        else:
            worst = max(worst, 0.0 if np.array_equal(a, b) else np.inf)
    return worst


def normal(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    made = RNG.standard_normal(shape)
    return (made + 1j * RNG.standard_normal(shape) if np.dtype(dtype).kind == "c" else made).astype(dtype)


def positive(n: int, dtype: Any = np.float32) -> np.ndarray:
    a = normal(n, n, dtype=dtype)
    return (a @ a.conj().T + n * np.eye(n)).astype(dtype)


KINDS = (np.float32, np.complex64)


@pytest.mark.parametrize("length", [1, 2, 5, 8, 12])
def test_transforms(length: int) -> None:
    z, x = normal(3, length, dtype=np.complex64), normal(3, length)
    assert errors(lambda z, x: (jnp.fft.fft(z), jnp.fft.ifft(z), jnp.fft.rfft(x)), z, x) < 8
    assert errors(lambda z: (jnp.fft.irfft(z, length), jnp.fft.hfft(z, length)), z) < 8
    assert errors(lambda z: jnp.fft.fft(z), z, planted=lambda z: jnp.fft.ifft(z) * length) > 1e4 or length < 3


def test_transforms_of_several_axes_in_models() -> None:
    z, x = normal(2, 4, 6, dtype=np.complex64), normal(2, 4, 6)
    assert errors(lambda z: (jnp.fft.fft2(z), jnp.fft.ifftn(z), jnp.fft.fft(z, axis=0)), z) < 16
    assert errors(lambda x: (jnp.fft.rfft2(x), jnp.fft.irfft2(jnp.fft.rfft2(x))), x) < 16
    assert errors(lambda x: jax.grad(lambda x: jnp.abs(jnp.fft.rfft(x)).sum())(x), x) < 32
    assert errors(jnp.fft.fft2, z, planted=lambda z: jnp.fft.fft(z)) > 1e4


def test_transforms_of_empty_arrays_and_in_binary64() -> None:
    assert errors(lambda z: jnp.fft.fft(z), np.zeros((0, 4), np.complex64)) == 0
    with jax.enable_x64(True):
        assert errors(lambda z: jnp.fft.fft(z), normal(15, dtype=np.complex128)) < 8


@pytest.mark.parametrize("dtype", KINDS)
def test_cholesky_and_triangular_solve(dtype: Any) -> None:
    a, b = positive(5, dtype), normal(5, 3, dtype=dtype)
    assert errors(lambda a: (jnp.linalg.cholesky(a), jnp.linalg.cholesky(a, upper=True)), a) < 16
    assert errors(jnp.linalg.cholesky, a, planted=lambda a: jnp.linalg.cholesky(a.T + 0.01)) > 1e3
    for left in (True, False):
        for lower in (True, False):
            for transpose in (True, False):
                for conjugate in (True, False):

                    def solve(
                        a: Any,
                        b: Any,
                        left: bool = left,
                        lower: bool = lower,
                        transpose: bool = transpose,
                        conjugate: bool = conjugate,
                    ) -> Any:
                        options = {"lower": lower, "transpose_a": transpose, "conjugate_a": conjugate}
                        b = b if left else b.T
                        return lax.linalg.triangular_solve(a, b, left_side=left, unit_diagonal=conjugate, **options)

                    assert errors(solve, a, b) < 32
    assert errors(lambda a, b: jax.scipy.linalg.cho_solve((a, True), b), a, b) < 64


def test_a_matrix_that_is_not_positive_definite_has_no_root() -> None:
    a = np.diag(np.float32([1, -1, 2]))
    assert errors(lambda a: jnp.linalg.cholesky(a), a) == 0


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 4, 4)])
def test_lu_and_qr(dtype: Any, shape: tuple[int, ...]) -> None:
    a = normal(*shape, dtype=dtype)
    assert errors(lambda a: lax.linalg.lu(a), a) < 32
    assert errors(lambda a: lax.linalg.lu(a), a, planted=lambda a: lax.linalg.lu(a[..., ::-1])) > 1e3
    assert errors(lambda a: (*jnp.linalg.qr(a), *jnp.linalg.qr(a, mode="complete")), a) < 32
    negated = errors(jnp.linalg.qr, a, planted=lambda a: tuple(-part for part in jnp.linalg.qr(a)))
    assert negated > 1e3


@pytest.mark.parametrize("dtype", KINDS)
def test_solvers_of_programs(dtype: Any) -> None:
    a, b = positive(4, dtype), normal(4, 2, dtype=dtype)
    assert errors(lambda a, b: (jnp.linalg.solve(a, b), jnp.linalg.inv(a), jnp.linalg.det(a)), a, b) < 64
    assert errors(lambda a: jnp.linalg.slogdet(a), a) < 64
    assert errors(lambda a, b: jnp.linalg.solve(a, b), a, b, planted=lambda a, b: jnp.linalg.solve(a.T, b * 1.01)) > 1e3
    assert errors(lambda a, b: jax.scipy.linalg.solve(a, b, assume_a="pos"), a, b) < 64
    gradient = errors(
        lambda a, b: jax.grad(lambda a: jnp.abs(jnp.linalg.solve(a, b)).sum(), holomorphic=False)(a), a, b
    )
    assert gradient < 128


def test_tridiagonal_solve() -> None:
    low, diagonal, up, b = normal(6), normal(6) + 8, normal(6), normal(6, 2)
    assert errors(lambda *bands: lax.linalg.tridiagonal_solve(*bands), low, diagonal, up, b) < 16
    planted = errors(
        lambda *bands: lax.linalg.tridiagonal_solve(*bands),
        *(low, diagonal, up, b),
        planted=lambda low, d, up, b: lax.linalg.tridiagonal_solve(up, d, low, b),
    )
    assert planted > 1e3


@pytest.mark.parametrize("dtype", KINDS)
def test_eigh_and_svd(dtype: Any) -> None:
    a, b = positive(5, dtype), normal(5, 3, dtype=dtype)
    assert errors(lambda a: (*jnp.linalg.eigh(a), jnp.linalg.eigvalsh(a)), a) < 64
    assert errors(lambda a: lax.linalg.eigh(a, lower=False, symmetrize_input=False), a) < 64
    assert errors(jnp.linalg.eigh, a, planted=lambda a: jnp.linalg.eigh(a.at[0, 0].add(1))) > 1e3
    for full in (False, True):
        assert errors(lambda b, full=full: jnp.linalg.svd(b, full_matrices=full), b) < 64
        assert errors(lambda b, full=full: jnp.linalg.svd(b.T, full_matrices=full), b) < 64
    assert errors(lambda b: (jnp.linalg.svd(b, compute_uv=False), jnp.linalg.norm(b, 2), jnp.linalg.pinv(b)), b) < 256
    assert errors(jnp.linalg.svd, b, planted=lambda b: jnp.linalg.svd(b.at[0].add(0.01))) > 1e3


def test_factorizations_of_batches_and_of_nothing() -> None:
    a = np.stack([positive(3), positive(3)])
    assert errors(jax.vmap(lambda a: (*jnp.linalg.eigh(a), *jnp.linalg.svd(a), jnp.linalg.cholesky(a))), a) < 128
    assert errors(lambda a: (*jnp.linalg.svd(a), *jnp.linalg.qr(a)), np.zeros((0, 3), np.float32)) == 0
    assert errors(lambda a: jnp.linalg.svd(a), np.zeros((2, 3), np.float32)) == 0


def test_factorizations_are_single_operations() -> None:
    a = positive(3)
    assert ops(capture.export(lambda a: lax.linalg.cholesky(a, symmetrize_input=False), a))[0] == "cholesky"
    assert ops(capture.export(lambda a: lax.linalg.svd(a), a)) == ["svd"]
    assert ops(capture.export(lambda a: lax.linalg.eigh(a, symmetrize_input=False), a)) == ["eigh"]
    assert ops(capture.export(lambda a: lax.linalg.lu(a), a)) == ["lu"]
    assert ops(capture.export(lambda a: lax.fft(a, "RFFT", (3,)), a)) == ["fft"]


@pytest.mark.parametrize(
    ("name", "fn"),
    [
        ("eig", lambda a: jnp.linalg.eig(a)),
        ("schur", lambda a: jax.scipy.linalg.schur(a)),
        ("tridiagonal_solve", lambda a: lax.linalg.tridiagonal_solve_p.bind(*a[:3], a, perturb_singular=True)),
    ],
)
def test_what_has_no_operation_is_refused_by_name(name: str, fn: Callable[..., Any]) -> None:
    with pytest.raises(capture.UnsupportedError) as refused:
        capture.export(fn, positive(3))
    assert refused.value.problems[0].primitive == name
    assert "test_jax_linalg.py" in str(refused.value)
