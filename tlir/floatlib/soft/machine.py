"""The operations of a machine word, and their execution on NumPy arrays.

A *word* is an unsigned integer of ``bits`` bits, a *predicate* a truth value; what represents them is the machine's own
affair. ``Machine`` is what kernels may use, and all that they may use.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

Word = Any
Predicate = Any
Real = Any


class Machine(Protocol):
    """Operations of one machine word of ``bits`` bits (32 or 64).

    Arithmetic wraps. Shift amounts must be below ``bits``. ``multiply_wide`` gives the low and the high word of a
    product; ``funnel_left`` the high word of the double word ``high:low`` shifted left, ``funnel_right`` the low word
    of it shifted right. ``real`` values are binary64 numbers, rounded to nearest even; they serve only as estimates
    that exact word arithmetic corrects.
    """

    bits: int

    def constant(self, value: int) -> Word: ...
    def add(self, x: Word, y: Word) -> Word: ...
    def subtract(self, x: Word, y: Word) -> Word: ...
    def multiply(self, x: Word, y: Word) -> Word: ...
    def multiply_wide(self, x: Word, y: Word) -> tuple[Word, Word]: ...
    def and_(self, x: Word, y: Word) -> Word: ...
    def or_(self, x: Word, y: Word) -> Word: ...
    def xor(self, x: Word, y: Word) -> Word: ...
    def shift_left(self, x: Word, count: Word) -> Word: ...
    def shift_right(self, x: Word, count: Word) -> Word: ...
    def funnel_left(self, high: Word, low: Word, count: Word) -> Word: ...
    def funnel_right(self, high: Word, low: Word, count: Word) -> Word: ...
    def leading_zeros(self, x: Word) -> Word: ...
    def equal(self, x: Word, y: Word) -> Predicate: ...
    def less(self, x: Word, y: Word) -> Predicate: ...
    def select(self, p: Predicate, x: Word, y: Word) -> Word: ...
    def both(self, p: Predicate, q: Predicate) -> Predicate: ...
    def either(self, p: Predicate, q: Predicate) -> Predicate: ...
    def differ(self, p: Predicate, q: Predicate) -> Predicate: ...
    def negation(self, p: Predicate) -> Predicate: ...
    def truth(self, value: bool) -> Predicate: ...
    def word_of(self, p: Predicate) -> Word: ...
    def real_of(self, x: Word) -> Real: ...
    def real_constant(self, value: float) -> Real: ...
    def real_add(self, x: Real, y: Real) -> Real: ...
    def real_subtract(self, x: Real, y: Real) -> Real: ...
    def real_multiply(self, x: Real, y: Real) -> Real: ...
    def real_divide(self, x: Real, y: Real) -> Real: ...
    def real_sqrt(self, x: Real) -> Real: ...
    def truncate(self, x: Real) -> Word: ...


class NumpyMachine:
    """Words are arrays of uint32 or uint64 (or scalars, which broadcast), predicates arrays of bool."""

    def __init__(self, bits: int) -> None:
        self.bits = bits
        self.type: Any = np.dtype(f"uint{bits}").type

    def constant(self, value: int) -> Word:
        return self.type(value)

    def add(self, x: Word, y: Word) -> Word:
        return x + y

    def subtract(self, x: Word, y: Word) -> Word:
        return x - y

    def multiply(self, x: Word, y: Word) -> Word:
        return x * y

    def multiply_wide(self, x: Word, y: Word) -> tuple[Word, Word]:
        if self.bits == 32:
            product = np.multiply(x, y, dtype=np.uint64)
            return product.astype(np.uint32), (product >> np.uint64(32)).astype(np.uint32)
        half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
        x0, x1, y0, y1 = x & low, x >> half, y & low, y >> half
        lowest = x0 * y0
        middle = x1 * y0 + (lowest >> half)
        other = x0 * y1 + (middle & low)
        return (other << half) | (lowest & low), x1 * y1 + (middle >> half) + (other >> half)

    def and_(self, x: Word, y: Word) -> Word:
        return x & y

    def or_(self, x: Word, y: Word) -> Word:
        return x | y

    def xor(self, x: Word, y: Word) -> Word:
        return x ^ y

    def shift_left(self, x: Word, count: Word) -> Word:
        return x << count

    def shift_right(self, x: Word, count: Word) -> Word:
        return x >> count

    def funnel_left(self, high: Word, low: Word, count: Word) -> Word:
        return (high << count) | ((low >> self.type(1)) >> (self.type(self.bits - 1) - count))

    def funnel_right(self, high: Word, low: Word, count: Word) -> Word:
        return (low >> count) | ((high << self.type(1)) << (self.type(self.bits - 1) - count))

    def leading_zeros(self, x: Word) -> Word:
        # the exponent field of binary64, after clearing the bits that could round the number up to a power of two
        x = np.asarray(x)
        if self.bits == 64:
            x = x & ~(x >> np.uint64(1))
        length = (x.astype(np.float64).view(np.uint64) >> np.uint64(52)).astype(self.type)
        zero = self.type(1022)  # so that the length of 0 is 0
        return self.type(self.bits) - (np.maximum(length, zero) - zero)

    def equal(self, x: Word, y: Word) -> Predicate:
        return x == y

    def less(self, x: Word, y: Word) -> Predicate:
        return x < y

    def select(self, p: Predicate, x: Word, y: Word) -> Word:
        return np.where(p, x, y)

    def both(self, p: Predicate, q: Predicate) -> Predicate:
        return p & q

    def either(self, p: Predicate, q: Predicate) -> Predicate:
        return p | q

    def differ(self, p: Predicate, q: Predicate) -> Predicate:
        return p ^ q

    def negation(self, p: Predicate) -> Predicate:
        return np.logical_not(p)

    def truth(self, value: bool) -> Predicate:
        return np.bool_(value)

    def word_of(self, p: Predicate) -> Word:
        return np.asarray(p).astype(self.type)

    def real_of(self, x: Word) -> Real:
        return np.asarray(x).astype(np.float64)

    def real_constant(self, value: float) -> Real:
        return np.float64(value)

    def real_add(self, x: Real, y: Real) -> Real:
        return x + y

    def real_subtract(self, x: Real, y: Real) -> Real:
        return x - y

    def real_multiply(self, x: Real, y: Real) -> Real:
        return x * y

    def real_divide(self, x: Real, y: Real) -> Real:
        return x / y

    def real_sqrt(self, x: Real) -> Real:
        return np.sqrt(x)

    def truncate(self, x: Real) -> Word:
        return np.asarray(x).astype(self.type)
