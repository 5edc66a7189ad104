"""Factorizations, solvers and Fourier transforms: what is unique is compared with torch's result, relative to its
greatest element; what is not (phases of singular and eigenvectors) as the matrix that the factors make."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional
from torch_oracle import capture, captured, checked, relative

EPSILON = torch.finfo(torch.float32).eps
LIMIT = 60 * EPSILON
"""Of relative differences: the matrices here have condition numbers of a few dozens."""

_generator = torch.Generator().manual_seed(20)


def _random(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, generator=_generator, dtype=dtype)


A = _random(4, 4) + 3 * torch.eye(4)
BATCH = _random(2, 4, 4) + 3 * torch.eye(4)
TALL, WIDE = _random(3, 5, 3), _random(2, 3, 5)
RIGHT = _random(4, 2)
POSITIVE = A @ A.mT + torch.eye(4)
COMPLEX = _random(3, 3, dtype=torch.complex64) + 3 * torch.eye(3)
HERMITIAN = COMPLEX @ COMPLEX.mH

CASES: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...]]] = {
    "inverse": (lambda a, b: (torch.linalg.inv(a), torch.linalg.inv_ex(b)), (A, BATCH)),
    "inverse of a view and of complex numbers": (
        lambda a, c: (torch.linalg.inv(a.mT), torch.linalg.inv(c)),
        (A, COMPLEX),
    ),
    "solve": (lambda a, b: (torch.linalg.solve(a, b), torch.linalg.solve(a, b[:, 0])), (A, RIGHT)),
    "solve, batches": (torch.linalg.solve, (BATCH, RIGHT)),
    "solve from the right": (lambda a, b: torch.linalg.solve(a, b, left=False), (BATCH, _random(2, 3, 4))),
    "solve, complex": (torch.linalg.solve, (COMPLEX, _random(3, 2, dtype=torch.complex64))),
    "determinants": (
        lambda a, c: (torch.linalg.det(a), torch.linalg.slogdet(a), torch.linalg.det(c)),
        (BATCH, COMPLEX),
    ),
    "lu": (lambda a, b: (torch.linalg.lu(a), torch.linalg.lu(b)), (TALL, WIDE)),
    "lu_factor and lu_solve": (
        lambda a, b: [
            torch.linalg.lu_solve(*torch.linalg.lu_factor(a), b, left=left, adjoint=adjoint)
            for left in (True, False)
            for adjoint in (True, False)
        ],
        (BATCH, _random(2, 4, 4)),
    ),
    "factors given": (
        lambda packed, pivots: (torch.lu_unpack(packed, pivots), torch.linalg.lu_solve(packed, pivots, packed)),
        tuple(torch.linalg.lu_factor(_random(2, 4, 4))),
    ),
    "cholesky": (
        lambda a, c: (torch.linalg.cholesky(a), torch.linalg.cholesky(a, upper=True), torch.linalg.cholesky_ex(c)),
        (POSITIVE, HERMITIAN),
    ),
    "cholesky of what is not positive": (
        lambda a: torch.linalg.cholesky_ex(a).info,
        (torch.stack([torch.diag(torch.tensor([1.0, 2, -1, 3])), torch.eye(4), -torch.eye(4)]),),
    ),
    "cholesky_solve": (
        lambda a, b: (
            torch.cholesky_solve(b, a),
            torch.cholesky_inverse(a),
            torch.cholesky_solve(b, a.mT, upper=True),
            torch.cholesky_inverse(a.mT.contiguous(), upper=True),
        ),
        (torch.linalg.cholesky(POSITIVE), RIGHT),
    ),
    "qr": (
        lambda *given: [torch.linalg.qr(x, mode) for x in given for mode in ("reduced", "complete", "r")],
        (TALL, WIDE, COMPLEX),
    ),
    "reflectors": (
        lambda x, a, taus, b, c: (
            torch.geqrf(x),
            torch.linalg.householder_product(a, taus),
            torch.ormqr(a, taus, b),
            torch.ormqr(a, taus, b, transpose=True),
            torch.ormqr(a, taus, c, left=False),
        ),
        (WIDE, *torch.geqrf(TALL), _random(3, 5, 2), _random(3, 2, 5)),
    ),
    "triangular": (
        lambda a, b: (
            torch.linalg.solve_triangular(a, b, upper=True),
            torch.linalg.solve_triangular(a, b.mT, upper=False, left=False),
            torch.linalg.solve_triangular(a, b, upper=False, unitriangular=True),
        ),
        (A, RIGHT),
    ),
    "eigenvalues": (lambda a, c: (torch.linalg.eigvalsh(a), torch.linalg.eigh(c, "U")[0]), (POSITIVE, HERMITIAN)),
    "eigenvectors": (lambda a: _assembled(*torch.linalg.eigh(a)), (HERMITIAN,)),
    "singular values": (
        lambda a, c: (torch.linalg.svdvals(a), torch.linalg.matrix_norm(c, 2), torch.linalg.matrix_rank(a)),
        (TALL, COMPLEX),
    ),
    "singular vectors": (
        lambda a, b: [
            (u[..., : s.shape[-1]] * s.unsqueeze(-2)) @ vh[..., : s.shape[-1], :]
            for full in (True, False)
            for u, s, vh in (torch.linalg.svd(a, full), torch.linalg.svd(b, full))
        ],
        (TALL, WIDE),
    ),
    "pinv": (
        lambda a, p, c: (torch.linalg.pinv(a), torch.linalg.pinv(p, hermitian=True), torch.linalg.pinv(c, rtol=0.5)),
        (TALL, POSITIVE, COMPLEX),
    ),
    "least squares": (lambda a, b: torch.linalg.lstsq(a, b).solution, (TALL, _random(3, 5, 2))),
    "least squares of rank 1": (
        lambda a, b: torch.linalg.lstsq(a, b, driver="gelsd").solution,
        (torch.outer(torch.arange(1.0, 5), torch.tensor([1.0, -2])), _random(4, 1)),
    ),
    "matrix_exp": (
        lambda a, b, c: (torch.matrix_exp(a), torch.matrix_exp(b * 0.01), torch.matrix_exp(c)),
        (A, BATCH, COMPLEX),
    ),
    "bilinear": (functional.bilinear, (_random(5, 3), _random(5, 4), _random(2, 3, 4), _random(2))),
}


def _assembled(values: Tensor, vectors: Tensor) -> Tensor:
    return (vectors * values) @ vectors.mH


@pytest.mark.parametrize("name", CASES)
def test_linear_algebra(name: str) -> None:
    fn, args = CASES[name]
    assert max(relative(captured(fn, *args))) < LIMIT


SUM_GRADIENTS: dict[str, tuple[Callable[[Tensor], Tensor], Tensor]] = {
    "det": (lambda a: torch.linalg.det(a) + torch.linalg.slogdet(a)[1], A),
    "inv": (lambda a: (torch.linalg.inv(a) ** 2).sum(), A),
    "solve": (lambda a: (torch.linalg.solve(a, RIGHT) ** 2).sum(), A),
    "cholesky": (lambda a: (torch.linalg.cholesky(a) ** 3).sum(), POSITIVE),
    "qr": (lambda a: (torch.linalg.qr(a)[1] ** 3).sum(), TALL),
    "eigh": (lambda a: (torch.linalg.eigvalsh(a) ** 3).sum(), POSITIVE),
    "svd": (lambda a: (torch.linalg.svdvals(a) ** 3).sum(), TALL),
    "matrix_exp": (lambda a: torch.linalg.matrix_exp(a).sum(), A),
    "fft": (lambda a: torch.fft.rfft(a).abs().square().sum() + torch.fft.ifft2(a).real.pow(3).sum(), A),
}


@pytest.mark.parametrize("name", SUM_GRADIENTS)
def test_gradients(name: str) -> None:
    fn, x = SUM_GRADIENTS[name]
    assert max(relative(captured(torch.func.grad(fn), x))) < 4 * LIMIT


def test_fourier_transforms_with_each_normalization() -> None:
    def fn(x: Tensor, z: Tensor) -> list[Tensor]:
        found = []
        for norm in ("backward", "ortho", "forward"):
            found += [
                *(torch.fft.fft(z, norm=norm), torch.fft.ifft(z, dim=0, norm=norm), torch.fft.fft(x, norm=norm)),
                *(torch.fft.rfft(x, norm=norm), torch.fft.irfft(z, norm=norm), torch.fft.irfft(z, n=9, norm=norm)),
                *(torch.fft.fftn(z, dim=(0, 2), norm=norm), torch.fft.ifft2(x, norm=norm)),
                *(torch.fft.rfft2(x, dim=(2, 0), norm=norm), torch.fft.irfftn(z, norm=norm)),
                *(torch.fft.hfft(z, norm=norm), torch.fft.ihfft(x, norm=norm)),
            ]
        return found

    graph = captured(fn, _random(2, 3, 6), _random(2, 3, 5, dtype=torch.complex64))
    assert max(relative(graph)) < 8 * EPSILON


def test_a_spectrogram_and_back() -> None:
    def fn(x: Tensor) -> tuple[Tensor, Tensor]:
        window = torch.hann_window(8)
        spectrum = torch.stft(x, 8, 2, window=window, return_complex=True)
        return spectrum.abs(), torch.istft(spectrum, 8, 2, window=window)

    assert max(relative(captured(fn, _random(32)))) < 8 * EPSILON


def test_what_has_no_operation_is_refused() -> None:
    with pytest.raises(capture.UnsupportedError, match="linalg_eig"):
        capture.export(torch.linalg.eigvals, A)


@pytest.mark.parametrize(
    ("fn", "args", "op", "attribute", "wrong"),
    [
        (torch.linalg.cholesky, (A,), "cholesky", "lower", False),
        (
            lambda a: torch.linalg.solve_triangular(a, RIGHT, upper=True),
            (A,),
            "triangular_solve",
            "transpose_a",
            "ADJOINT",
        ),
        (torch.fft.fft, (COMPLEX,), "fft", "fft_type", "IFFT"),
    ],
)
def test_a_planted_error_is_found(fn: Any, args: tuple[Tensor, ...], op: str, attribute: str, wrong: Any) -> None:
    if op == "cholesky":
        args = (POSITIVE,)
    artifact = capture.export(fn, *args)
    (node,) = [node for node in artifact["nodes"] if node["op"] == op]
    node["attrs"][attribute] = wrong
    assert max(relative(checked(artifact))) > 0.01
