"""Factorizations: words against the algorithms on scalars, values against NumPy and SciPy (LAPACK)."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from conformance import evaluate_with_flags, tensor, words_of
from exact import encode
from scalars import Complex, numbers, words

from tlir.backends.reference import evaluate
from tlir.backends.reference.jacobi import rounds
from tlir.floatlib.rounding import Flags
from tlir.ir.graph import Body, Graph, Node, Ref
from tlir.ir.tensor import Tensor
from tlir.ir.types import TensorType, parse_dtype
from tlir.ir.verify import type_errors, verify_structure

Matrix = list[list[Any]]
SCALAR_TYPES = ["bfloat16", "float32", "float64", "float128", "complex64", "complex<float16>"]
DTYPES: list[Any] = [np.float32, np.float64, np.complex64, np.complex128]


def run(op: str, operands: list[Tensor], attrs: dict[str, Any], types: list[TensorType]) -> list[Tensor]:
    inputs = [Node(k, "input", (), {}, (operand.type,)) for k, operand in enumerate(operands)]
    node = Node(len(inputs), op, tuple(Ref(k) for k in range(len(inputs))), attrs, tuple(types))
    body = Body((*inputs, node), tuple(range(len(inputs))), tuple(Ref(node.id, k) for k in range(len(types))))
    verify_structure(Graph(body))
    assert [str(error) for error in type_errors(Graph(body))] == []
    return evaluate(body, operands)


def given(op: str, operands: list[Any], attrs: dict[str, Any], results: list[tuple[tuple[int, ...], Any]]) -> Any:
    """The results, as arrays of these shapes and NumPy types, of arrays."""
    types = [TensorType(shape, Tensor.from_numpy(np.zeros(0, dtype)).dtype) for shape, dtype in results]
    return [x.to_numpy() for x in run(op, [Tensor.from_numpy(np.asarray(x)) for x in operands], attrs, types)]


def draw(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def positive(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    x = draw(rng, shape, dtype).astype(np.complex128 if np.dtype(dtype).kind == "c" else np.float64)
    return (x @ np.swapaxes(x.conj(), -1, -2) + np.eye(shape[-1])).astype(dtype)


# ---- scalars --------------------------------------------------------------------------------------------------------


class Case:
    """Random matrices of a dtype as tensors and as scalars."""

    def __init__(self, name: str, seed: int) -> None:
        self.dtype = parse_dtype(name)
        self.rng = np.random.default_rng(seed)

    def tensor(self, values: np.ndarray) -> Tensor:
        fmt = self.dtype.float_format
        flat = np.asarray(values).reshape(-1)
        parts = [[x.real, x.imag] if self.dtype.is_complex else [x.real] for x in flat]
        encoded = [encode(fmt, Fraction(float(part))) for pair in parts for part in pair]
        return tensor(TensorType(np.shape(values), self.dtype), encoded)

    def draw(self, *shape: int) -> np.ndarray:
        return draw(self.rng, shape, np.complex128 if self.dtype.is_complex else np.float64)

    def scalars(self, x: Tensor) -> list[Any]:
        return numbers(self.dtype.float_format, words_of(x), self.dtype.is_complex)

    def matrix(self, x: Tensor) -> Matrix:
        flat, columns = self.scalars(x), x.shape[-1]
        return [flat[i : i + columns] for i in range(0, len(flat), columns)]


def flatten(matrix: Matrix) -> list[int]:
    return words([x for row in matrix for x in row])


def zero(x: Any) -> Any:
    return x.from_real(x.parts[0].of(0))


def one(x: Any) -> Any:
    return x.from_real(x.parts[0].of(1))


@pytest.mark.parametrize("name", SCALAR_TYPES)
def test_cholesky_on_scalars(name: str) -> None:
    case = Case(name, 1)
    x = case.draw(4, 4)
    operand = case.tensor(x @ x.conj().T + 2 * np.eye(4))
    a = case.matrix(operand)
    factor = [[zero(a[0][0]) for _ in range(4)] for _ in range(4)]
    for j in range(4):
        for i in range(j, 4):
            for k in range(j):
                a[i][j] = a[i][j] - factor[i][k] * factor[j][k].conj()
        root = a[j][j].parts[0].sqrt()
        factor[j][j] = a[j][j].from_real(root)
        for i in range(j + 1, 4):
            factor[i][j] = a[i][j].shrink(root)
    (result,) = run("cholesky", [operand], {}, [operand.type])
    assert words_of(result) == flatten(factor)


@pytest.mark.parametrize("name", SCALAR_TYPES)
def test_triangular_solve_on_scalars(name: str) -> None:
    case = Case(name, 2)
    a, b = case.tensor(case.draw(4, 4)), case.tensor(case.draw(4, 2))
    matrix, x = case.matrix(a), case.matrix(b)
    for k in range(4):
        for c in range(2):
            x[k][c] = x[k][c] / matrix[k][k]
            for i in range(k + 1, 4):
                x[i][c] = x[i][c] - matrix[i][k] * x[k][c]
    (result,) = run("triangular_solve", [a, b], {"left_side": True, "lower": True}, [b.type])
    assert words_of(result) == flatten(x)


@pytest.mark.parametrize("name", SCALAR_TYPES)
def test_lu_on_scalars(name: str) -> None:
    case = Case(name, 3)
    operand = case.tensor(case.draw(5, 4))
    a, rows, exchanged = case.matrix(operand), list(range(5)), []

    def size(x: Any) -> Fraction:
        total = abs(x.parts[0])
        for part in x.parts[1:]:
            total = total + abs(part)
        return total.value

    for k in range(4):
        best = max(range(k, 5), key=lambda i: (size(a[i][k]), -i))
        exchanged.append(best)
        a[k], a[best], rows[k], rows[best] = a[best], a[k], rows[best], rows[k]
        for i in range(k + 1, 5):
            a[i][k] = a[i][k] / a[k][k]
            for j in range(k + 1, 4):
                a[i][j] = a[i][j] - a[i][k] * a[k][j]
    int32 = parse_dtype("int32")
    types = [operand.type, TensorType((4,), int32), TensorType((5,), int32)]
    result, pivots, permutation = run("lu", [operand], {}, types)
    assert words_of(result) == flatten(a)
    assert words_of(pivots) == exchanged
    assert words_of(permutation) == rows


def scalar_geqrf(a: Matrix) -> list[Any]:
    """The taus; a is factored in place."""
    m, n = len(a), len(a[0])
    taus = []
    for k in range(min(m, n)):
        alpha = a[k][k]
        norm = alpha.parts[0].of(0)
        for i in range(k + 1, m):
            for part in a[i][k].parts:
                norm = norm.hypot(part)
        if norm.value == 0 and all(part.value == 0 for part in alpha.parts[1:]):
            taus.append(zero(alpha))
            continue
        beta = -alpha.modulus().hypot(norm).copysign(alpha.parts[0])
        tau = (alpha.from_real(beta) - alpha).shrink(beta)
        v = [a[i][k] / (alpha - alpha.from_real(beta)) for i in range(k + 1, m)]
        for j in range(k + 1, n):
            reflect(a, k, j, v, tau.conj())
        a[k][k] = alpha.from_real(beta)
        for i in range(k + 1, m):
            a[i][k] = v[i - k - 1]
        taus.append(tau)
    return taus


def reflect(a: Matrix, k: int, j: int, v: list[Any], tau: Any) -> None:
    total = a[k][j]
    for i, x in enumerate(v, k + 1):
        total = total + x.conj() * a[i][j]
    total = tau * total
    a[k][j] = a[k][j] - total
    for i, x in enumerate(v, k + 1):
        a[i][j] = a[i][j] - x * total


@pytest.mark.parametrize("name", SCALAR_TYPES)
@pytest.mark.parametrize(("m", "n"), [(4, 3), (3, 3), (2, 4)])
def test_reflectors_on_scalars(name: str, m: int, n: int) -> None:
    case = Case(name, 4)
    operand = case.tensor(case.draw(m, n))
    a = case.matrix(operand)
    taus = scalar_geqrf(a)
    packed, given_taus = run("geqrf", [operand], {}, [operand.type, TensorType((min(m, n),), case.dtype)])
    assert words_of(packed) == flatten(a)
    assert words_of(given_taus) == words(taus)
    if m < n:
        return
    q = [[one(a[0][0]) if i == j else zero(a[0][0]) for j in range(n)] for i in range(m)]
    for k in reversed(range(n)):
        for j in range(k, n):
            reflect(q, k, j, [a[i][k] for i in range(k + 1, m)], taus[k])
    (product,) = run("householder_product", [packed, given_taus], {}, [operand.type])
    assert words_of(product) == flatten(q)


@pytest.mark.parametrize("name", SCALAR_TYPES)
def test_tridiagonal_solve_on_scalars(name: str) -> None:
    case = Case(name, 5)
    dl, d, du = (case.tensor(case.draw(4) + shift) for shift in (0, 4, 0))
    b = case.tensor(case.draw(4, 2))
    below, diagonal, above, x = case.scalars(dl), case.scalars(d), case.scalars(du), case.matrix(b)
    ratios: list[Any] = []
    for i in range(4):
        pivot = diagonal[i] - below[i] * ratios[i - 1] if i else diagonal[i]
        x[i] = [(x[i][c] - below[i] * x[i - 1][c] if i else x[i][c]) / pivot for c in range(2)]
        ratios.append(above[i] / pivot)
    for i in (2, 1, 0):
        x[i] = [x[i][c] - ratios[i] * x[i + 1][c] for c in range(2)]
    (result,) = run("tridiagonal_solve", [dl, d, du, b], {}, [b.type])
    assert words_of(result) == flatten(x)


def rotation(first: Any, second: Any, off: Any) -> tuple[Any, Any, Any]:
    """c, s and w."""
    return rotation_and_shift(first, second, off)[0]


def rotation_and_shift(first: Any, second: Any, off: Any) -> tuple[tuple[Any, Any, Any], Any]:
    """c, s and w; and t r."""
    size = off.modulus() if isinstance(off, Complex) else off
    phase = off.shrink(size) if isinstance(off, Complex) else None
    z = (second - first) / (size + size)
    unit = first.of(1)
    t = unit.copysign(z) / (abs(z) + unit.hypot(z))
    c = unit / unit.hypot(t)
    return (c, t * c, phase), t * size


def mix(x: Any, y: Any, c: Any, s: Any, phase: Any) -> tuple[Any, Any]:
    y = y if phase is None else phase * y
    return x.scale(c) - y.scale(s), x.scale(s) + y.scale(c)


def rotate_columns(a: Matrix, p: int, q: int, c: Any, s: Any, phase: Any) -> None:
    for row in a:
        row[p], row[q] = mix(row[p], row[q], c, s, phase and phase.conj())


@pytest.mark.parametrize("name", ["float16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_eigh_on_scalars(name: str, n: int) -> None:
    case = Case(name, n)
    x = case.draw(n, n)
    operand = case.tensor(x + x.conj().T)
    a = case.matrix(operand)
    for i in range(n):
        a[i][i] = a[i][i].from_real(a[i][i].parts[0])
        for j in range(i):
            a[j][i] = a[i][j].conj()
    unit = a[0][0].parts[0].of(1)
    largest = max(abs(part).value for row in a for x in row for part in x.parts)
    threshold = unit.of(largest) * unit.of(Fraction(1, 2 ** (case.dtype.float_format.fraction_bits + 1)))
    vectors = [[one(a[0][0]) if i == j else zero(a[0][0]) for j in range(n)] for i in range(n)]
    rotated = True
    while rotated:
        rotated = False
        for p_all, q_all in rounds(n):
            pairs = [
                (int(p), int(q)) for p, q in zip(p_all, q_all, strict=True) if a[q][p].modulus().value > threshold.value
            ]
            rotated |= bool(pairs)
            before = [(a[p][p].parts[0], a[q][q].parts[0], a[q][p].conj()) for p, q in pairs]
            steps = [rotation_and_shift(*entries) for entries in before]
            factors = [factor for factor, _ in steps]
            for matrix in (a, vectors):
                for (p, q), factor in zip(pairs, factors, strict=True):
                    rotate_columns(matrix, p, q, *factor)
            for (p, q), factor in zip(pairs, factors, strict=True):
                for j in range(n):
                    a[p][j], a[q][j] = mix(a[p][j], a[q][j], *factor)
            for (p, q), (first, second, _), (_, shift) in zip(pairs, before, steps, strict=True):
                a[p][q] = a[q][p] = zero(a[p][p])
                a[p][p], a[q][q] = (a[p][p].from_real(x) for x in (first - shift, second + shift))
    order = sorted(range(n), key=lambda k: a[k][k].parts[0].value)
    component = case.dtype.component if case.dtype.is_complex else case.dtype
    values, result = run("eigh", [operand], {}, [TensorType((n,), component), operand.type])
    assert words_of(values) == [a[k][k].parts[0].word for k in order]
    assert words_of(result) == flatten([[row[k] for k in order] for row in vectors])


@pytest.mark.parametrize("name", ["float16", "float32", "float64", "complex64"])
@pytest.mark.parametrize(("m", "n"), [(3, 1), (3, 3), (5, 4)])
def test_svd_on_scalars(name: str, m: int, n: int) -> None:
    case = Case(name, 10 * m + n)
    operand = case.tensor(case.draw(m, n))
    x = case.matrix(operand)
    unit = x[0][0].parts[0].of(1)
    largest = max(abs(part).value for row in x for entry in row for part in entry.parts)
    scale = Fraction(1)
    while scale > largest:
        scale /= 2
    while scale * 2 <= largest:
        scale *= 2
    x = [[entry.shrink(unit.of(scale)) for entry in row] for row in x]
    relative = unit.of(Fraction(isqrt(m) + 1, 2 ** (case.dtype.float_format.fraction_bits + 1)))
    v = [[one(x[0][0]) if i == j else zero(x[0][0]) for j in range(n)] for i in range(n)]

    def squares(column: int) -> Any:
        total = unit.of(0)
        for row in x:
            for part in row[column].parts:
                total = total + part * part
        return total

    rotated = True
    while rotated:
        rotated = False
        for p_all, q_all in rounds(n):
            for p, q in zip(p_all, q_all, strict=True):
                inner = zero(x[0][0])
                for row in x:
                    inner = inner + row[p].conj() * row[q]
                first, second = squares(p), squares(q)
                if inner.modulus().value <= (first.sqrt() * second.sqrt() * relative).value:
                    continue
                rotated = True
                for matrix in (x, v):
                    rotate_columns(matrix, p, q, *rotation(first, second, inner))
    norms = [squares(k).sqrt() for k in range(n)]
    order = sorted(range(n), key=lambda k: -norms[k].value)
    component = case.dtype.component if case.dtype.is_complex else case.dtype
    types = [operand.type, TensorType((n,), component), TensorType((n, n), case.dtype)]
    u, s, vh = run("svd", [operand], {}, types)
    assert words_of(s) == [(norms[k] * unit.of(scale)).word for k in order]
    assert words_of(u) == flatten([[row[k].shrink(norms[k]) for k in order] for row in x])
    assert words_of(vh) == flatten([[v[i][k].conj() for i in range(n)] for k in order])


@pytest.mark.parametrize("n", range(1, 12))
def test_a_sweep_meets_every_pair_once(n: int) -> None:
    met = [(int(p), int(q)) for ps, qs in rounds(n) for p, q in zip(ps, qs, strict=True)]
    assert sorted(met) == [(p, q) for p in range(n) for q in range(p + 1, n)]
    for p, q in rounds(n):
        assert len({*p.tolist(), *q.tolist()}) == 2 * len(p)


# ---- values ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, 5, 20])
def test_cholesky_as_numpy(dtype: Any, n: int) -> None:
    rng = np.random.default_rng(n)
    a = positive(rng, (2, 3, n, n), dtype)
    want = np.linalg.cholesky(a)
    tolerance = 50 * np.finfo(dtype).eps
    # what is not read may hold anything
    lower = np.tril(a) + np.triu(np.full_like(a, np.nan), 1)
    (got,) = given("cholesky", [lower], {}, [(a.shape, dtype)])
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * max(1, n))
    (got,) = given("cholesky", [np.swapaxes(lower.conj(), -1, -2)], {"lower": False}, [(a.shape, dtype)])
    np.testing.assert_allclose(got, np.swapaxes(want.conj(), -1, -2), rtol=0, atol=tolerance * max(1, n))


def test_cholesky_of_matrices_that_are_not_positive() -> None:
    a = np.array([[[1, 0], [2, 1]], [[4, 0], [2, 5]], [[0, 0], [0, 1]], [[np.nan, 0], [0, 1]]], np.float32)
    (got,) = given("cholesky", [a], {}, [(a.shape, np.float32)])
    assert np.isnan(got[[0, 2, 3]]).all()
    np.testing.assert_array_equal(got[1], [[2, 0], [1, 2]])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("transpose", ["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"])
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_triangular_solve_solves(dtype: Any, lower: bool, transpose: str, left: bool, unit: bool) -> None:
    rng = np.random.default_rng(0)
    n, k = 6, 3
    a = draw(rng, (2, n, n), dtype) / 3 + 2 * np.eye(n, dtype=dtype)
    b = draw(rng, (2, n, k) if left else (2, k, n), dtype)
    attrs = {"left_side": left, "lower": lower, "unit_diagonal": unit, "transpose_a": transpose}
    (x,) = given("triangular_solve", [a, b], attrs, [(b.shape, dtype)])
    op = np.tril(a) if lower else np.triu(a)
    if unit:
        op = op - op * np.eye(n, dtype=dtype) + np.eye(n, dtype=dtype)
    op = op if transpose == "NO_TRANSPOSE" else np.swapaxes(op.conj() if transpose == "ADJOINT" else op, 1, 2)
    np.testing.assert_allclose(op @ x if left else x @ op, b, rtol=0, atol=300 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 4), (2, 7, 3), (3, 7), (0, 3), (3, 0), (12, 12)])
def test_lu_as_lapack(dtype: Any, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    a = draw(rng, shape, dtype)
    m, n = shape[-2:]
    batch, least = shape[:-2], min(m, n)
    results = [(shape, dtype), ((*batch, least), np.int32), ((*batch, m), np.int32)]
    lu, pivots, permutation = given("lu", [a], {}, results)
    for index in np.ndindex(*batch):
        if a[index].size and m >= n:
            want, exchanged = scipy.linalg.lu_factor(a[index])
            np.testing.assert_allclose(lu[index], want, rtol=0, atol=200 * np.finfo(dtype).eps)
            np.testing.assert_array_equal(pivots[index], exchanged)
        lower = np.tril(lu[index][:, :least], -1) + np.eye(m, least)
        product = lower @ np.triu(lu[index][:least])
        np.testing.assert_allclose(product, a[index][permutation[index]], rtol=0, atol=100 * np.finfo(dtype).eps)
        assert np.abs(lower).max(initial=0) <= (1 if np.dtype(dtype).kind == "f" else 1.5)


def test_lu_of_singular_matrices_and_nan() -> None:
    a = np.array([[[0, 1], [0, 2]], [[1, 1], [-1, 3]], [[1, 2], [np.nan, 1]]], np.float32)
    lu, pivots, rows = given("lu", [a], {}, [(a.shape, np.float32), ((3, 2), np.int32), ((3, 2), np.int32)])
    # nothing to divide by; the first of equals; NaN is greatest
    np.testing.assert_array_equal(lu[0], [[0, 1], [0, 2]])
    np.testing.assert_array_equal(pivots, [[0, 1], [0, 1], [1, 1]])
    np.testing.assert_array_equal(rows, [[0, 1], [0, 1], [1, 0]])
    np.testing.assert_array_equal(lu[1], [[1, 1], [-1, 4]])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 4), (2, 7, 3), (3, 7), (1, 1), (5, 0)])
def test_qr_as_lapack(dtype: Any, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(2)
    a = draw(rng, shape, dtype)
    m, n = shape[-2:]
    batch, least = shape[:-2], min(m, n)
    packed, taus = given("geqrf", [a], {}, [(shape, dtype), ((*batch, least), dtype)])
    error = 100 * np.finfo(dtype).eps
    for index in np.ndindex(*batch):
        if a[index].size:
            (want, want_taus), _ = scipy.linalg.qr(a[index], mode="raw")
            np.testing.assert_allclose(packed[index], want, rtol=0, atol=error)
            np.testing.assert_allclose(taus[index], want_taus, rtol=0, atol=error)
    left = packed[..., :least]
    (q,) = given("householder_product", [left, taus], {}, [(left.shape, dtype)])
    np.testing.assert_allclose(q @ np.triu(packed[..., :least, :]), a, rtol=0, atol=error)
    np.testing.assert_allclose(
        np.swapaxes(q.conj(), -1, -2) @ q, np.eye(least) + 0 * q[..., :least, :least], atol=error
    )


def test_reflectors_of_columns_that_are_zero_below() -> None:
    a = np.array([[-3, 1], [0, 2], [0, 0]], np.float32)
    packed, taus = given("geqrf", [a], {}, [((3, 2), np.float32), ((2,), np.float32)])
    np.testing.assert_array_equal(packed, a)
    np.testing.assert_array_equal(taus, [0, 0])
    huge = np.array([[3e38], [1e38]], np.float32)
    packed, taus = given("geqrf", [huge], {}, [((2, 1), np.float32), ((1,), np.float32)])
    np.testing.assert_allclose(packed[0, 0], -np.sqrt(10) * 1e38, rtol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
def test_tridiagonal_solve_solves(dtype: Any) -> None:
    rng = np.random.default_rng(3)
    dl, d, du = (draw(rng, (2, 6), dtype) + shift for shift in (0, dtype(5), 0))
    b = draw(rng, (2, 6, 3), dtype)
    poisoned_low, poisoned_up = dl.copy(), du.copy()
    poisoned_low[:, 0] = poisoned_up[:, -1] = np.nan
    (x,) = given("tridiagonal_solve", [poisoned_low, d, poisoned_up, b], {}, [(b.shape, dtype)])
    for k in range(2):
        a = np.diag(d[k]) + np.diag(dl[k, 1:], -1) + np.diag(du[k, :-1], 1)
        np.testing.assert_allclose(a @ x[k], b[k], rtol=0, atol=100 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("n", [0, 1, 2, 7, 16])
def test_eigh_as_numpy(dtype: Any, n: int, lower: bool) -> None:
    rng = np.random.default_rng(n)
    a = draw(rng, (3, n, n), dtype)
    a = a + np.swapaxes(a.conj(), 1, 2)
    if n > 2:
        a[1] = np.eye(n) * 2  # one value many times
        a[2, 0] = a[2, :, 0] = 0  # and a zero one
    read = np.tril(a) if lower else np.triu(a)
    real = a.real.dtype.type
    values, vectors = given("eigh", [read], {"lower": lower}, [((3, n), real), (a.shape, dtype)])
    error = 30 * np.finfo(dtype).eps * max(1, n)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(a), rtol=0, atol=error)
    assert (np.diff(values, axis=-1) >= 0).all()
    np.testing.assert_allclose(vectors * values[:, np.newaxis] @ np.swapaxes(vectors.conj(), 1, 2), a, atol=error)
    np.testing.assert_allclose(np.swapaxes(vectors.conj(), 1, 2) @ vectors, np.eye(n) + 0 * a, atol=error)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (5, 5), (1, 3), (3, 0), (0, 2), (24, 17)])
def test_svd_as_numpy(dtype: Any, shape: tuple[int, int], full: bool) -> None:
    rng = np.random.default_rng(4)
    m, n = shape
    least = min(shape)
    a = draw(rng, (4, m, n), dtype)
    a[1] = 0
    if least > 1:
        a[2, :, 1] = a[2, :, 0]  # of lower rank
    a[3] *= 1e-30 if np.finfo(dtype).eps > 1e-10 else 1e-200  # whose squares vanish
    left, right = (m, n) if full else (least, least)
    results = [((4, m, left), dtype), ((4, least), a.real.dtype.type), ((4, right, n), dtype)]
    u, s, vh = given("svd", [a], {"full_matrices": full}, results)
    error = 40 * np.finfo(dtype).eps * max(1, *shape)
    for k in range(4):
        scale = np.abs(a[k]).max(initial=0) or 1
        np.testing.assert_allclose(s[k] / scale, np.linalg.svd(a[k], compute_uv=False) / scale, rtol=0, atol=error)
        product = u[k][:, :least] * s[k] / scale @ vh[k][:least]
        np.testing.assert_allclose(product, a[k] / scale, rtol=0, atol=error)
        np.testing.assert_allclose(u[k].conj().T @ u[k], np.eye(left), rtol=0, atol=error)
        np.testing.assert_allclose(vh[k] @ vh[k].conj().T, np.eye(right), rtol=0, atol=error)
        assert (np.diff(s[k]) <= 0).all()


@pytest.mark.parametrize("op", ["eigh", "svd"])
def test_what_is_not_finite_gives_nan_in_its_matrix_alone(op: str) -> None:
    a = np.stack([np.eye(3), np.eye(3), np.eye(3)]).astype(np.float32)
    a[1, 2, 0], a[2, 1, 1] = np.nan, np.inf
    square, values = (a.shape, np.float32), ((3, 3), np.float32)
    results = [values, square] if op == "eigh" else [square, values, square]
    for result in given(op, [a], {}, results):
        assert np.isfinite(result[0]).all()
        assert np.isnan(result[1:]).all()


# ---- flags ----------------------------------------------------------------------------------------------------------


def test_flags_are_those_of_each_matrix() -> None:
    dtype = parse_dtype("float32")
    type = TensorType((3, 2, 2), dtype)
    a = Tensor.from_numpy(np.array([[[4, 0], [2, 5]], [[2, 0], [1, 2]], [[-1, 0], [0, 1]]], np.float32))
    _, flags = evaluate_with_flags("cholesky", [a], type)
    assert flags[:8] == [0] * 4 + [Flags.INEXACT] * 4
    assert all(flag & Flags.INVALID for flag in flags[8:])
    b = Tensor.from_numpy(np.ones((3, 2, 1), np.float32))
    singular = Tensor.from_numpy(np.array([[[1, 0], [1, 1]], [[3, 0], [1, 1]], [[0, 0], [0, 1]]], np.float32))
    _, flags = evaluate_with_flags("triangular_solve", [singular, b], b.type, {"left_side": True, "lower": True})
    assert flags[:4] == [0, 0, Flags.INEXACT, Flags.INEXACT]
    assert all(flag & Flags.DIVIDE_BY_ZERO for flag in flags[4:])


def test_the_other_triangle_of_a_complex_factor_is_positive_zero() -> None:
    x = positive(np.random.default_rng(0), (3, 3), np.complex64)
    (factor,) = given("cholesky", [x], {"lower": False}, [((3, 3), np.complex64)])
    parts = factor.view(np.uint32).reshape(3, 3, 2)
    assert [parts[i, j].tolist() for i in range(3) for j in range(i)] == [[0, 0]] * 3


@pytest.mark.parametrize("sign", [0, 0x80000000])
def test_the_sign_of_a_nan_does_not_matter(sign: int) -> None:
    """-copysign(inf, NaN): of the canonical NaN, which is positive."""
    x = np.array([[0x7FC00000 | sign], [0x7F800000]], np.uint32).view(np.float32)
    packed, _ = given("geqrf", [x], {}, [((2, 1), np.float32), ((1,), np.float32)])
    assert packed.view(np.uint32)[0, 0] == 0xFF800000
