"""Binary64 numbers of a machine with Python's operators, in which the kernels of elementary functions are written."""

from __future__ import annotations

from collections.abc import Sequence

from tlir.floatlib.soft.machine import Machine, Predicate, Real, Word

SIGN = 1 << 63
SHIFTER = 1.5 * 2.0**52
"""Added to a number below 2**51, it leaves no bits for a fraction."""
EXPONENT_BITS = 52


class Number:
    """A binary64 value of the machine ``m``; +, -, *, / and sqrt round once, to nearest even."""

    __slots__ = ("m", "value")

    def __init__(self, m: Machine, value: Real) -> None:
        self.m = m
        self.value = value

    def like(self, value: float) -> Number:
        """A constant."""
        return Number(self.m, self.m.real_constant(value))

    def _of(self, other: Number | float) -> Real:
        return other.value if isinstance(other, Number) else self.m.real_constant(other)

    def __add__(self, other: Number | float) -> Number:
        return Number(self.m, self.m.real_add(self.value, self._of(other)))

    def __radd__(self, other: float) -> Number:
        return Number(self.m, self.m.real_add(self._of(other), self.value))

    def __sub__(self, other: Number | float) -> Number:
        return Number(self.m, self.m.real_subtract(self.value, self._of(other)))

    def __rsub__(self, other: float) -> Number:
        return Number(self.m, self.m.real_subtract(self._of(other), self.value))

    def __mul__(self, other: Number | float) -> Number:
        return Number(self.m, self.m.real_multiply(self.value, self._of(other)))

    def __rmul__(self, other: float) -> Number:
        return self * other

    def __truediv__(self, other: Number | float) -> Number:
        return Number(self.m, self.m.real_divide(self.value, self._of(other)))

    def __rtruediv__(self, other: float) -> Number:
        return Number(self.m, self.m.real_divide(self._of(other), self.value))

    def __neg__(self) -> Number:
        return Number(self.m, self.m.real_negate(self.value))

    def __abs__(self) -> Number:
        return Number(self.m, self.m.real_abs(self.value))

    def __lt__(self, other: Number | float) -> Predicate:
        return self.m.real_less(self.value, self._of(other))

    def __gt__(self, other: Number | float) -> Predicate:
        return self.m.real_less(self._of(other), self.value)

    def equals(self, other: Number | float) -> Predicate:
        return self.m.real_equal(self.value, self._of(other))

    def times_plus(self, factor: Number | float, addend: Number | float) -> Number:
        """self * factor + addend: rounded once where the machine can do that fast, otherwise twice."""
        if self.m.has_fma:
            return Number(self.m, self.m.real_fma(self.value, self._of(factor), self._of(addend)))
        return self * factor + addend

    def sqrt(self) -> Number:
        return Number(self.m, self.m.real_sqrt(self.value))

    def rounded(self) -> Number:
        """The nearest integer."""
        return Number(self.m, self.m.real_round(self.value))

    def minimum(self, other: Number | float) -> Number:
        return Number(self.m, self.m.real_minimum(self.value, self._of(other)))

    def maximum(self, other: Number | float) -> Number:
        return Number(self.m, self.m.real_maximum(self.value, self._of(other)))

    def between(self, low: float, high: float) -> Number:
        return self.maximum(low).minimum(high)

    def where(self, p: Predicate, other: Number | float) -> Number:
        """This number where ``p`` holds, the other one elsewhere."""
        return Number(self.m, self.m.real_select(p, self.value, self._of(other)))

    # ---- bits -------------------------------------------------------------------------------------------------------

    @property
    def bits(self) -> Word:
        return self.m.real_bits(self.value)

    @property
    def sign(self) -> Word:
        """The sign bit in its place, the others zero."""
        return self.m.and_(self.bits, self.m.constant(SIGN))

    def with_sign(self, sign: Word) -> Number:
        """This number, which is not negative (or of this sign already), with a sign bit as ``sign`` gives it."""
        return Number(self.m, self.m.real_from_bits(self.m.or_(self.bits, sign)))

    def flipped(self, sign: Word) -> Number:
        """Negated where the sign bit is set."""
        return Number(self.m, self.m.real_from_bits(self.m.xor(self.bits, sign)))

    def integer(self) -> Word:
        """Of an integral number below 2**63, the word in two's complement."""
        return self.m.truncate_signed(self.value)

    def whole(self, factor: float) -> tuple[Number, Word]:
        """The integer nearest to self * factor, below 2**51, or one as near but for 2**-50 of the product; as a number,
        and as a word whose 51 low bits are the integer's in two's complement."""
        moved = self.times_plus(factor, SHIFTER)
        return moved - SHIFTER, moved.bits

    def scaled(self, k: Word) -> Number:
        """Times 2**k, where operand and result are normal numbers; of k only the 12 low bits count."""
        shifted = self.m.shift_left(k, self.m.constant(EXPONENT_BITS))
        return Number(self.m, self.m.real_from_bits(self.m.add(self.bits, shifted)))

    def polynomial(self, coefficients: Sequence[float]) -> Number:
        """The polynomial with these coefficients, the constant one first, by Horner's rule."""
        total = self.like(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            total = total.times_plus(self, coefficient)
        return total


def split(x: Number) -> tuple[Number, Number]:
    """(k, m): x = 2**k * m with sqrt(1/2) <= m < sqrt(2), up to 2**-20; x > 0 and normal. Exact."""
    m = x.m
    offset = 0x3FF0000000000000 - LEAST_MANTISSA
    moved = m.add(x.bits, m.constant(offset))
    k = Number(m, m.real_from_signed(m.shift_right(moved, m.constant(EXPONENT_BITS)))) - 1023.0
    fraction = m.and_(moved, m.constant((1 << EXPONENT_BITS) - 1))
    return k, Number(m, m.real_from_bits(m.add(fraction, m.constant(LEAST_MANTISSA))))


LEAST_MANTISSA = 0x3FE6A09E00000000
"""The bits of a number just below sqrt(1/2)."""
