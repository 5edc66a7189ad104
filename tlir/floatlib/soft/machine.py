"""The operations of a machine word, and their execution on NumPy arrays.

A *word* is an unsigned integer of ``bits`` bits, a *predicate* a truth value; what represents them is the machine's own
affair. ``Machine`` is what kernels may use, and all that they may use.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tlir.floatlib.soft.fma import fma

Word = Any
Predicate = Any
Real = Any


class Machine(Protocol):
    """Operations of one machine word of ``bits`` bits (32 or 64).

    Arithmetic wraps. Shift amounts must be below ``bits``. ``multiply_wide`` gives the low and the high word of a
    product; ``funnel_left`` the high word of the double word ``high:low`` shifted left, ``funnel_right`` the low word
    of it shifted right.

    ``real`` values are binary64 numbers; every operation on them that rounds rounds once, to nearest even, and
    subnormal numbers are kept. What else they need:

    * ``real_fma`` is x * y + z rounded once on every machine. ``has_fma`` says whether that is one instruction;
      otherwise it costs some forty operations, and a kernel that does not need it exact takes a product and a sum.
    * ``real_minimum`` and ``real_maximum``: no operand is NaN; of two zeros either may be the result.
    * ``real_round``: to the nearest integer, ties to even.
    * ``truncate``, ``truncate_signed``: toward zero; the integer fits the unsigned or the signed word. No NaN.
    * ``real_bits``, ``real_from_bits``: the bits of a real number as a word of 64 bits, and back.
    * ``real32_of_bits``: the binary32 number with these 32 bits, exactly; ``round32``: the bits of the binary32 number
      nearest to x (ties to even), infinity from 2**128 - 2**103 on.
    * ``table``: the entry ``index`` of a constant array; all floats (the result is a real) or all integers (a word).
      The index must be below the number of entries, in all elements.
    """

    bits: int
    has_fma: bool

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
    def real_fma(self, x: Real, y: Real, z: Real) -> Real: ...
    def real_negate(self, x: Real) -> Real: ...
    def real_abs(self, x: Real) -> Real: ...
    def real_minimum(self, x: Real, y: Real) -> Real: ...
    def real_maximum(self, x: Real, y: Real) -> Real: ...
    def real_round(self, x: Real) -> Real: ...
    def real_less(self, x: Real, y: Real) -> Predicate: ...
    def real_equal(self, x: Real, y: Real) -> Predicate: ...
    def real_select(self, p: Predicate, x: Real, y: Real) -> Real: ...
    def real_bits(self, x: Real) -> Word: ...
    def real_from_bits(self, x: Word) -> Real: ...
    def real_from_signed(self, x: Word) -> Real: ...
    def real32_of_bits(self, x: Word) -> Real: ...
    def round32(self, x: Real) -> Word: ...
    def truncate(self, x: Real) -> Word: ...
    def truncate_signed(self, x: Real) -> Word: ...
    def table(self, values: tuple[float, ...] | tuple[int, ...], index: Word) -> Real | Word: ...


@lru_cache(maxsize=256)
def _array(values: tuple[float, ...] | tuple[int, ...], word: Any) -> NDArray[Any]:
    return np.array(values, dtype=np.float64 if isinstance(values[0], float) else word)


class NumpyMachine:
    """Words are arrays of uint32 or uint64 (or scalars, which broadcast), predicates arrays of bool."""

    has_fma = False

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

    def real_fma(self, x: Real, y: Real, z: Real) -> Real:
        return fma(x, y, z)

    def real_negate(self, x: Real) -> Real:
        return -x

    def real_abs(self, x: Real) -> Real:
        return np.abs(x)

    def real_minimum(self, x: Real, y: Real) -> Real:
        return np.minimum(x, y)

    def real_maximum(self, x: Real, y: Real) -> Real:
        return np.maximum(x, y)

    def real_round(self, x: Real) -> Real:
        return np.rint(x)

    def real_less(self, x: Real, y: Real) -> Predicate:
        return x < y

    def real_equal(self, x: Real, y: Real) -> Predicate:
        return x == y

    def real_select(self, p: Predicate, x: Real, y: Real) -> Real:
        return np.where(p, x, y)

    def real_bits(self, x: Real) -> Word:
        return np.asarray(x).view(np.uint64)

    def real_from_bits(self, x: Word) -> Real:
        return np.asarray(x).view(np.float64)

    def real_from_signed(self, x: Word) -> Real:
        return np.asarray(x).view(f"i{self.bits // 8}").astype(np.float64)

    def real32_of_bits(self, x: Word) -> Real:
        return np.asarray(x).astype(np.uint32).view(np.float32).astype(np.float64)

    def round32(self, x: Real) -> Word:
        return np.asarray(x).astype(np.float32).view(np.uint32).astype(self.type)

    def truncate_signed(self, x: Real) -> Word:
        return np.asarray(x).astype(f"i{self.bits // 8}").view(self.type)

    def table(self, values: tuple[float, ...] | tuple[int, ...], index: Word) -> Real | Word:
        return _array(values, self.type)[np.asarray(index).astype(np.intp)]
