"""The discrete Fourier transform, as the operation defines it.

A transform holds its axis in front and everything else in one axis of columns behind (and the axes of a carrier).
"""

from __future__ import annotations

from math import prod

import numpy as np

from tlir.backends.reference.invocation import CollectedFlags, Evaluator, Invocation
from tlir.backends.reference.layout import join
from tlir.backends.reference.numbers import Carrier, Complexes, field
from tlir.ir.tensor import Words, words_shape
from tlir.ir.types import complex_of


def smallest_prime_factor(n: int) -> int:
    factor = 2
    while factor * factor <= n:
        if n % factor == 0:
            return factor
        factor += 1
    return n


def twiddles(arithmetic: Complexes, n: int, inverse: bool) -> Carrier:
    """exp(-2 pi i j / n), or of + for the inverse, for j from 0: a carrier of shape (n, 1)."""
    from tlir.floatlib.elementary.special.roots import root_words

    component = arithmetic.component
    cosines, sines = root_words(component.format, n)
    # the sine of -j/n of a turn is that of (n - j)/n
    columns = cosines, sines if inverse else sines[-np.arange(n)]
    parts = (component.load(column[:, np.newaxis]) for column in columns)
    return join(arithmetic.dtype, *parts)


def transform(arithmetic: Complexes, x: Carrier, roots: Carrier) -> Carrier:
    """The transform over the first axis of x (n, columns...), by ``roots`` of an order that n divides."""
    n = len(x)
    if n == 1:
        return x
    p = smallest_prime_factor(n)
    m = n // p
    # element r + p q lies at [q, r]: one call transforms the p sequences side by side
    inner = transform(arithmetic, x.reshape((m, p, *x.shape[1:])), roots)
    repeated = np.arange(n) % m
    total = inner[repeated, 0]
    step = len(roots) // n
    for r in range(1, p):
        # (n, 1...) against (n, columns...)
        factors = roots[r * np.arange(n) % n * step]
        factors = factors.reshape((n, *(1,) * (x.ndim - factors.ndim + 1), *factors.shape[2:]))
        total = arithmetic.add(total, arithmetic.multiply(factors, inner[repeated, r]))
    return total


def _along(arithmetic: Complexes, x: Carrier, axis: int, count: int, inverse: bool) -> Carrier:
    """The transform along one of the ``count`` axes in front of that of the batch."""
    n = x.shape[axis]
    front = np.moveaxis(x, axis, 0)
    flat = front.reshape((n, prod(front.shape[1:count]), *front.shape[count:]))
    result = transform(arithmetic, flat, twiddles(arithmetic, n, inverse))
    return np.moveaxis(result.reshape(front.shape), 0, axis)


def _fft(call: Invocation) -> Words:
    (operand,), kind, lengths = call.operands, call.attr("fft_type"), call.attr("fft_length")
    if not call.result.size:
        return np.empty(words_shape(call.result), call.result.dtype.word_dtype)
    count = len(lengths)
    outer = operand.type.rank - count
    dtype = complex_of(operand.dtype) if kind == "RFFT" else operand.dtype
    batch = prod(operand.shape[:outer])
    flags = CollectedFlags((batch,)) if call.flags is not None else None
    arithmetic = field(dtype, flags)
    assert isinstance(arithmetic, Complexes)
    component, inverse = arithmetic.component, kind in ("IFFT", "IRFFT")
    # (batch, axes...) -> (axes..., batch)
    words = np.moveaxis(operand.words.reshape((batch, *operand.words.shape[outer:])), 0, count)
    x = arithmetic.load(words) if kind != "RFFT" else arithmetic.from_real(component.load(words))
    last = count - 1
    if kind != "IRFFT":
        x = _along(arithmetic, x, last, count, inverse)
        if kind == "RFFT":
            x = np.take(x, range(lengths[-1] // 2 + 1), last)
    for axis in range(last - 1, -1, -1):
        x = _along(arithmetic, x, axis, count, inverse)
    if kind == "IRFFT":
        x = _along(arithmetic, _extended(arithmetic, x, last, lengths[-1]), last, count, inverse)
        words = component.store(component.divide(arithmetic.parts(x)[0], component.constant(prod(lengths))))
    else:
        words = arithmetic.store(arithmetic.shrink(x, component.constant(prod(lengths))) if inverse else x)
    if flags is not None and call.flags is not None and flags.noted:
        raised = flags.array.reshape(operand.shape[:outer] + (1,) * count)
        call.flags.note(np.broadcast_to(raised, call.result.shape))
    return np.moveaxis(words, count, 0).reshape(words_shape(call.result))


def _extended(arithmetic: Complexes, x: Carrier, axis: int, n: int) -> Carrier:
    """The n elements of which x has the first n/2 + 1, those behind conjugate."""
    x = np.moveaxis(x, axis, 0)
    real = arithmetic.from_real(arithmetic.parts(x)[0])
    half = (n - 1) // 2
    mirrored = arithmetic.conjugate(x[1 : half + 1][::-1])
    middle = [real[n // 2 : n // 2 + 1]] if n % 2 == 0 else []
    return np.moveaxis(np.concatenate([real[:1], x[1 : half + 1], *middle, mirrored]), 0, axis)


EVALUATORS: dict[str, Evaluator] = {"fft": _fft}
