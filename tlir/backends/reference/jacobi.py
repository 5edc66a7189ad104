"""Eigenvalues and singular values by Jacobi's rotations, in rounds of pairs that have no index in common."""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from tlir.backends.reference.batches import Batch, Mask
from tlir.backends.reference.invocation import Invocation
from tlir.backends.reference.numbers import Carrier
from tlir.backends.reference.reflectors import factored, product
from tlir.backends.reference.sorting import sort_keys, sorted_order
from tlir.floatlib.rounding import round_exact
from tlir.floatlib.words import constant, from_ints, is_zero, to_ints
from tlir.ir.tensor import Words

SWEEPS_OF_EIGH = 64
SWEEPS_OF_SVD = 32

Indices = NDArray[np.intp]


def rounds(n: int) -> Iterator[tuple[Indices, Indices]]:
    """The pairs (p, q) of each round of a sweep, p < q."""
    even = n + n % 2
    for r in range(even - 1):
        pairs = [(r, even - 1)]
        pairs += [((r - k) % (even - 1), (r + k) % (even - 1)) for k in range(1, even // 2)]
        kept = sorted((min(pair), max(pair)) for pair in pairs if max(pair) < n)
        if kept:
            p, q = zip(*kept, strict=True)
            yield np.array(p), np.array(q)


class Rotation:
    """The rotations of a round: c, s (pairs, batch), for complex numbers the phase w, and which are done; and the
    ``diagonal`` of the matrices that they make diagonal."""

    def __init__(self, batch: Batch, first: Carrier, second: Carrier, off: Carrier, active: Mask) -> None:
        """For the Hermitian matrices [[first, off], [conj off, second]], real ``first`` and ``second``."""
        field, real = batch.field, batch.real
        self.batch, self.active = batch, active
        one = real.identity("multiply")
        ones = np.array(np.broadcast_to(one, first.shape))
        zeros = np.array(np.broadcast_to(real.identity("add"), first.shape))
        if batch.dtype.is_complex:
            size = real.choose(active, field.modulus(off), ones)
            self.phase: Carrier | None = field.shrink(off, size)
        else:
            size, self.phase = real.choose(active, off, ones), None
        z = real.divide(real.subtract(second, first), real.add(size, size))
        z = real.choose(active, z, zeros)
        t = real.divide(real.copysign(ones, z), real.add(real.absolute(z), real.hypot(ones, z)))
        self.c = real.divide(ones, real.hypot(ones, t))
        self.s = real.multiply(t, self.c)
        shift = real.multiply(t, size)
        self.diagonal = (
            real.choose(active, real.subtract(first, shift), first),
            real.choose(active, real.add(second, shift), second),
        )

    def columns(self, x: Carrier, p: Indices, q: Indices) -> None:
        """Rotate the columns in place."""
        phase = None if self.phase is None else self.batch.field.conjugate(self.phase)
        x[:, p], x[:, q] = self._mixed(x[:, p], x[:, q], phase)

    def rows(self, x: Carrier, p: Indices, q: Indices) -> None:
        """Rotate the rows in place, by the adjoint."""
        first, second = np.swapaxes(x[p], 0, 1), np.swapaxes(x[q], 0, 1)
        first, second = self._mixed(first, second, self.phase)
        x[p], x[q] = np.swapaxes(first, 0, 1), np.swapaxes(second, 0, 1)

    def _mixed(self, first: Carrier, second: Carrier, phase: Carrier | None) -> tuple[Carrier, Carrier]:
        """Arrays (others, pairs, batch)."""
        field = self.batch.field
        turned = second if phase is None else field.multiply(phase, second)
        one = field.subtract(field.scale(first, self.c), field.scale(turned, self.s))
        other = field.add(field.scale(first, self.s), field.scale(turned, self.c))
        active = np.broadcast_to(self.active, first.shape[: self.active.ndim + 1])
        return field.choose(active, one, first), field.choose(active, other, second)


def eigh(call: Invocation) -> tuple[Words, ...]:
    batch = Batch(call)
    field, real = batch.field, batch.real
    a = _hermitian(batch, batch.load(0), call.attr("lower"))
    n = len(a)
    finite = batch.finite(a)
    a = field.choose(np.broadcast_to(finite, (n, n, batch.size)), a, batch.zeros(n, n))
    threshold = real.multiply(batch.greatest_part(a), _power_of_two(batch, 1, -real.format.precision))
    vectors = batch.identity(n, n)
    for _ in range(SWEEPS_OF_EIGH):
        rotated = False
        for p, q in rounds(n):
            off = field.conjugate(a[q, p])
            active = real.greater(field.modulus(off), threshold)
            if not active.any():
                continue
            rotated = True
            first, second = (np.asarray(field.parts(a[k, k])[0]) for k in (p, q))
            rotation = Rotation(batch, first, second, off, active)
            rotation.columns(a, p, q)
            rotation.columns(vectors, p, q)
            rotation.rows(a, p, q)
            nothing = batch.zeros(len(p))
            a[p, q], a[q, p] = (field.choose(active, nothing, a[pair]) for pair in ((p, q), (q, p)))
            for k, entries in zip((p, q), rotation.diagonal, strict=True):
                # more accurate than the rotated entries, which c and s have scaled
                a[k, k] = field.from_real(entries)
        if not rotated:
            break
    every = np.arange(n)
    values = np.asarray(field.parts(a[every, every])[0])
    values, vectors = _sorted(batch, values, [vectors], descending=False)
    batch.note()
    values = _or_nan(batch, finite, values, real=True)
    return batch.store(values, 1, real=True), batch.store(_or_nan(batch, finite, vectors))


def svd(call: Invocation) -> tuple[Words, ...]:
    batch = Batch(call)
    full = call.attr("full_matrices")
    a = batch.load(0)
    wide = a.shape[0] < a.shape[1]
    finite = batch.finite(a)
    a = batch.field.choose(np.broadcast_to(finite, a.shape[:3]), a, batch.zeros(*a.shape[:2]))
    u, values, v = _tall(batch, batch.adjoint(a) if wide else a, full)
    if wide:
        u, v = v, u
    batch.note()
    u, v = (_or_nan(batch, finite, x) for x in (u, batch.adjoint(v)))
    values = _or_nan(batch, finite, values, real=True)
    return batch.store(u), batch.store(values, 1, real=True), batch.store(v)


def _tall(batch: Batch, x: Carrier, full: bool) -> tuple[Carrier, Carrier, Carrier]:
    """U, s and V of finite matrices of as many rows as columns or more; V has n columns."""
    field, real = batch.field, batch.real
    m, n = x.shape[:2]
    scale = _binade(batch, batch.greatest_part(x))
    x = np.array(field.shrink(x, scale))
    fmt = real.format
    factor = isqrt(m) + 1
    relative = (
        _power_of_two(batch, factor, -fmt.precision) if 4 * factor < 1 << fmt.precision else _power_of_two(batch, 1, -2)
    )
    v = batch.identity(n, n)
    for _ in range(SWEEPS_OF_SVD):
        rotated = False
        for p, q in rounds(n):
            first, second = _square_sums(batch, x[:, p]), _square_sums(batch, x[:, q])
            inner = _inner_products(batch, x[:, p], x[:, q])
            bound = real.multiply(real.multiply(real.sqrt(first), real.sqrt(second)), relative)
            active = real.greater(field.modulus(inner), bound)
            if not active.any():
                continue
            rotated = True
            rotation = Rotation(batch, first, second, inner, active)
            rotation.columns(x, p, q)
            rotation.columns(v, p, q)
        if not rotated:
            break
    norms = real.sqrt(_square_sums(batch, x))
    norms, x, v = _sorted(batch, norms, [x, v], descending=True)
    empty = is_zero(fmt, real.store(norms))
    ones = np.broadcast_to(real.identity("multiply"), norms.shape)
    u = field.shrink(x, real.choose(empty, ones, norms))
    if full or empty.any():
        u = _completed(batch, u, empty, m if full else n)
    return u, real.multiply(norms, scale), v


def _completed(batch: Batch, u: Carrier, empty: Mask, columns: int) -> Carrier:
    """u with the columns that are empty, and those up to ``columns``, replaced by an orthonormal complement."""
    m, n = u.shape[:2]
    packed, taus = factored(batch, np.array(u))
    reflectors = batch.zeros(m, columns)
    reflectors[:, :n] = packed
    q = product(batch, reflectors, taus)
    q[:, :n] = batch.field.choose(np.broadcast_to(empty, (m, *empty.shape)), q[:, :n], u)
    return q


def _square_sums(batch: Batch, columns: Carrier) -> Carrier:
    """The sum of the squared parts over the first axis, one after the other."""
    real = batch.real
    shape = columns.shape[1 : columns.ndim - batch.field.axes]
    zero = real.identity("add")
    total = np.array(np.broadcast_to(zero, (*shape, *zero.shape)))
    for row in columns:
        for part in batch.field.parts(row):
            total = real.add(total, real.multiply(np.asarray(part), np.asarray(part)))
    return total


def _inner_products(batch: Batch, left: Carrier, right: Carrier) -> Carrier:
    field = batch.field
    conjugate = field.conjugate(left)
    total = np.zeros_like(right[0])
    for i in range(len(right)):
        total = field.add(total, field.multiply(conjugate[i], right[i]))
    return total


def _hermitian(batch: Batch, a: Carrier, lower: bool) -> Carrier:
    """The matrix of which one triangle is read."""
    n = len(a)
    mirrored = batch.adjoint(a)
    below = np.tril(np.ones((n, n), np.bool_), -1)
    mine = below if lower else below.T
    result = np.array(batch.field.choose(np.broadcast_to(mine[..., np.newaxis], (n, n, batch.size)), a, mirrored))
    every = np.arange(n)
    result[every, every] = batch.field.from_real(np.asarray(batch.field.parts(a[every, every])[0]))
    return result


def _sorted(batch: Batch, values: Carrier, columns: list[Carrier], descending: bool) -> tuple[Carrier, ...]:
    """Real values (n, batch) in order, and the columns of matrices (rows, n, batch) rearranged with them."""
    component = batch.dtype.component if batch.dtype.is_complex else batch.dtype
    if not values.size:
        return values, *columns
    order = sorted_order(sort_keys(component, batch.real.store(values)), 0, descending)
    placed = order.reshape(order.shape + (1,) * batch.real.axes)
    wide = order.reshape((1, *order.shape) + (1,) * batch.field.axes)
    return np.take_along_axis(values, placed, 0), *(np.take_along_axis(x, wide, 1) for x in columns)


def _or_nan(batch: Batch, ok: Mask, x: Carrier, real: bool = False) -> Carrier:
    arithmetic = batch.real if real else batch.field
    fmt = batch.real.format
    nan = batch.real.load(np.asarray(constant(fmt, fmt.invalid_word)))
    filled = np.broadcast_to(nan if real else batch.nan(), x.shape)
    return arithmetic.choose(np.broadcast_to(ok, x.shape[: x.ndim - arithmetic.axes]), x, filled)


def _power_of_two(batch: Batch, factor: int, exponent: int) -> Carrier:
    """factor * 2**exponent, rounded once."""
    fmt = batch.real.format
    return batch.real.load(np.asarray(constant(fmt, round_exact(fmt, 0, factor, exponent)[0])))


def _binade(batch: Batch, magnitudes: Carrier) -> Carrier:
    """The greatest power of two not above each number, at least the least normal number; 1 for zero."""
    fmt = batch.real.format
    one = round_exact(fmt, 0, 1, 0)[0]
    ints = [
        max(int(x) & ~fmt.fraction_mask, fmt.min_normal) if x else one
        for x in to_ints(fmt, batch.real.store(magnitudes))
    ]
    return batch.real.load(from_ints(fmt, ints))
