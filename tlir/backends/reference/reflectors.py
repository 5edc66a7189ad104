"""Householder reflectors I - tau v v^H with v[k] = 1, as ``geqrf`` defines them."""

from __future__ import annotations

import numpy as np

from tlir.backends.reference.batches import Batch
from tlir.backends.reference.numbers import Carrier
from tlir.floatlib.words import is_zero


def factored(batch: Batch, a: Carrier) -> tuple[Carrier, Carrier]:
    """The matrix of R and the reflectors (rows, columns, batch), which takes the place of a; and the taus."""
    field, real = batch.field, batch.real
    m, n = a.shape[:2]
    taus = batch.zeros(min(m, n))
    zero = real.identity("add")
    for k in range(min(m, n)):
        alpha, below = a[k, k], a[k + 1 :, k]
        parts = [np.asarray(part) for part in field.parts(alpha)]
        norm = np.array(np.broadcast_to(zero, parts[0].shape))
        for row in below:
            for part in field.parts(row):
                norm = real.hypot(norm, np.asarray(part))
        trivial = is_zero(real.format, real.store(norm))
        for part in parts[1:]:
            trivial &= is_zero(real.format, real.store(part))
        if trivial.all():
            continue
        one = np.broadcast_to(real.identity("multiply"), norm.shape)
        length = real.choose(trivial, one, real.hypot(field.modulus(alpha), norm))
        # the sign of a NaN is that of the canonical one, whatever the processor gave it
        beta = real.negate(real.copysign(length, real.load(real.store(parts[0]))))
        difference = field.subtract(alpha, field.from_real(beta))
        tau = field.shrink(field.subtract(field.from_real(beta), alpha), beta)
        safe = field.choose(trivial, field.from_real(one), difference)
        vector = field.divide(below, safe)
        changed = applied(batch, a[k:, k + 1 :], vector, field.conjugate(tau))
        kept = np.broadcast_to(trivial, changed.shape[:3])
        a[k:, k + 1 :] = field.choose(kept, a[k:, k + 1 :], changed)
        a[k + 1 :, k] = field.choose(np.broadcast_to(trivial, below.shape[:2]), below, vector)
        a[k, k] = field.choose(trivial, alpha, field.from_real(beta))
        taus[k] = field.choose(trivial, taus[k], tau)
    return a, taus


def product(batch: Batch, a: Carrier, taus: Carrier) -> Carrier:
    """The first columns of the product of the reflectors in a (rows, columns, batch)."""
    m, n = a.shape[:2]
    q = batch.identity(m, n)
    for k in reversed(range(len(taus))):
        q[k:, k:] = applied(batch, q[k:, k:], a[k + 1 :, k], taus[k])
    return q


def applied(batch: Batch, x: Carrier, vector: Carrier, tau: Carrier) -> Carrier:
    """(I - tau v v^H) x for v = (1, vector)."""
    field = batch.field
    conjugate = field.conjugate(vector)
    total = x[0]
    for i in range(len(vector)):
        total = field.add(total, field.multiply(conjugate[i], x[i + 1]))
    factor = field.multiply(tau, total)
    result = np.empty_like(x)
    result[0] = field.subtract(x[0], factor)
    result[1:] = field.subtract(x[1:], field.multiply(vector[:, np.newaxis], factor))
    return result
