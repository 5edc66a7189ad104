"""Factorizations and solvers of matrices, step by step as the operations state them.

A matrix is a carrier of shape (rows, columns, batch): every step is taken for a whole batch, and for all the elements
that the step concerns, at once. Sums over rows stay sequential.
"""

from __future__ import annotations

import numpy as np

from tlir.backends.reference.batches import Batch, Mask
from tlir.backends.reference.invocation import Evaluator, Invocation, SeveralEvaluator
from tlir.backends.reference.jacobi import eigh, svd
from tlir.backends.reference.numbers import Carrier
from tlir.backends.reference.reflectors import factored, product
from tlir.backends.reference.sorting import sort_keys
from tlir.floatlib.words import is_zero
from tlir.ir.tensor import Words


def _cholesky(call: Invocation) -> Words:
    batch = Batch(call)
    field, real = batch.field, batch.real
    a = batch.load(0)
    if not call.attr("lower"):
        a = batch.adjoint(a)
    n = len(a)
    factor = batch.zeros(n, n)
    ok = np.ones(batch.size, np.bool_)
    for j in range(n):
        column = a[j:, j]
        for k in range(j):
            column = field.subtract(column, field.multiply(factor[j:, k], field.conjugate(factor[j, k])))
        pivot = np.asarray(field.parts(column)[0])[0]
        ok &= real.greater(pivot, real.identity("add"))
        root = real.sqrt(pivot)
        factor[j, j] = field.from_real(root)
        factor[j + 1 :, j] = field.shrink(column[1:], root)
    if not call.attr("lower"):
        factor = batch.adjoint(factor)
        rows, columns = np.tril_indices(n, -1)
        factor[rows, columns] = batch.zeros(len(rows))
    batch.note()
    return batch.store(field.choose(np.broadcast_to(ok, (n, n, batch.size)), factor, batch.nan(n, n)))


def _triangular_solve(call: Invocation) -> Words:
    batch = Batch(call)
    field = batch.field
    a, x = batch.load(0), batch.load(1)
    lower, transpose, left = call.attr("lower"), call.attr("transpose_a"), call.attr("left_side")
    if transpose == "ADJOINT":
        a = field.conjugate(a)
    if (transpose != "NO_TRANSPOSE") == left:
        # a transposed triangle on the left, or X op(a) = b with op(a) = a: transposed it is a^T X^T = b^T
        a, lower = np.swapaxes(a, 0, 1), not lower
    if not left:
        x = np.array(np.swapaxes(x, 0, 1))
    n = len(a)
    for k in range(n) if lower else reversed(range(n)):
        if not call.attr("unit_diagonal"):
            x[k] = field.divide(x[k], a[k, k])
        rest = slice(k + 1, n) if lower else slice(0, k)
        x[rest] = field.subtract(x[rest], field.multiply(a[rest, k][:, np.newaxis], x[k]))
    batch.note()
    return batch.store(x if left else np.swapaxes(x, 0, 1))


def _first_greatest(batch: Batch, column: Carrier) -> Words:
    """The index (batch) of the first element of greatest magnitude in (rows, batch), NaN being greatest."""
    sizes = [batch.real.absolute(np.asarray(part)) for part in batch.field.parts(column)]
    magnitude = sizes[0] if len(sizes) == 1 else batch.real.add(*sizes)
    component = batch.dtype.component if batch.dtype.is_complex else batch.dtype
    candidates = np.ones(magnitude.shape[:2], np.bool_)
    for key in sort_keys(component, batch.real.store(magnitude)):
        candidates &= key == np.where(candidates, key, 0).max(axis=0)
    return np.argmax(candidates, axis=0)


def _lu(call: Invocation) -> tuple[Words, ...]:
    batch = Batch(call)
    field = batch.field
    a = batch.load(0)
    m, n = a.shape[:2]
    pivots = np.zeros((min(m, n), batch.size), np.int32)
    rows = np.repeat(np.arange(m, dtype=np.int32)[:, np.newaxis], batch.size, axis=1)
    for k in range(min(m, n)):
        chosen = k + _first_greatest(batch, a[k:, k])
        pivots[k] = chosen
        _exchange(a, k, chosen)
        _exchange(rows, k, chosen)
        pivot, below = a[k, k], a[k + 1 :, k]
        vanishing = _is_zero(batch, pivot)
        one = np.broadcast_to(field.identity("multiply"), pivot.shape)
        quotients = field.divide(below, field.choose(vanishing, one, pivot))
        multipliers = field.choose(np.broadcast_to(vanishing, below.shape[:2]), below, quotients)
        a[k + 1 :, k] = multipliers
        products = field.multiply(multipliers[:, np.newaxis], a[k, k + 1 :])
        a[k + 1 :, k + 1 :] = field.subtract(a[k + 1 :, k + 1 :], products)
    batch.note()
    indices = (batch.unbatched(values.view(np.uint32), 1) for values in (pivots, rows))
    return batch.store(a), *indices


def _is_zero(batch: Batch, values: Carrier) -> Mask:
    zero = np.ones(values.shape[: values.ndim - batch.field.axes], np.bool_)
    for part in batch.field.parts(values):
        zero &= is_zero(batch.dtype.float_format, batch.real.store(np.asarray(part)))
    return zero


def _exchange(rows: Carrier, k: int, other: Words) -> None:
    """Exchange row k of each matrix of (rows, ..., batch, ...) with row ``other`` (batch)."""
    place = 1 if rows.ndim == 2 else 2
    shape = [1] * rows.ndim
    shape[place] = len(other)
    index = np.broadcast_to(other.reshape(shape), (1, *rows.shape[1:]))
    kept = rows[k].copy()
    rows[k] = np.take_along_axis(rows, index, 0)[0]
    np.put_along_axis(rows, index, kept[np.newaxis], 0)


def _geqrf(call: Invocation) -> tuple[Words, ...]:
    batch = Batch(call)
    packed, taus = factored(batch, batch.load(0))
    batch.note()
    return batch.store(packed), batch.store(taus, 1)


def _householder_product(call: Invocation) -> Words:
    batch = Batch(call)
    result = product(batch, batch.load(0), batch.load(1, 1))
    batch.note()
    return batch.store(result)


def _tridiagonal_solve(call: Invocation) -> Words:
    batch = Batch(call, 3)
    field = batch.field
    lower, diagonal, upper = (batch.load(k, 1) for k in range(3))
    x = batch.load(3)
    ratios = np.array(upper)
    for i in range(len(x)):
        pivot = diagonal[i]
        if i:
            pivot = field.subtract(pivot, field.multiply(lower[i], ratios[i - 1]))
            x[i] = field.subtract(x[i], field.multiply(lower[i], x[i - 1]))
        x[i] = field.divide(x[i], pivot)
        if i + 1 < len(x):
            ratios[i] = field.divide(upper[i], pivot)
    for i in reversed(range(len(x) - 1)):
        x[i] = field.subtract(x[i], field.multiply(ratios[i], x[i + 1]))
    batch.note()
    return batch.store(x)


EVALUATORS: dict[str, Evaluator] = {
    "cholesky": _cholesky,
    "triangular_solve": _triangular_solve,
    "householder_product": _householder_product,
    "tridiagonal_solve": _tridiagonal_solve,
}

SEVERAL: dict[str, SeveralEvaluator] = {"lu": _lu, "geqrf": _geqrf, "eigh": eigh, "svd": svd}
