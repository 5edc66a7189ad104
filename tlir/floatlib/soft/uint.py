"""Unsigned integers of a fixed number of bits, made of machine words.

A ``Uint`` is a list of limbs, least significant first, and the number of bits that its value may have; every operation
knows the width of its result when the code is built, so that carries, limbs and shifts that cannot happen cost nothing.
Bits above ``bits`` are zero.

A machine may bring integers of its own, a class with the same methods (``big.BigUint``): kernels make integers by
``constant`` and ``of_word`` and otherwise of others.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from tlir.floatlib.soft.machine import Machine, Predicate, Word


class Uint:
    """The number that ``limbs`` make, less than 2**bits."""

    __slots__ = ("bits", "limbs", "m")

    def __init__(self, m: Machine, limbs: list[Word], bits: int) -> None:
        assert bits >= 0
        assert len(limbs) == limb_count(m, bits)
        self.m = m
        self.limbs = limbs
        self.bits = bits

    # ---- width ------------------------------------------------------------------------------------------------------

    def resized(self, bits: int) -> Uint:
        """The value modulo 2**bits."""
        m, count = self.m, limb_count(self.m, bits)
        limbs = [*self.limbs[:count], *([m.constant(0)] * (count - len(self.limbs)))]
        top = bits - (count - 1) * m.bits
        if bits < self.bits and top < m.bits:
            limbs[-1] = m.and_(limbs[-1], m.constant((1 << top) - 1))
        return Uint(m, limbs, bits)

    def at_most(self, bits: int) -> Uint:
        """The same value where it is known to be less than 2**bits."""
        return Uint(self.m, self.limbs[: limb_count(self.m, bits)], bits) if bits < self.bits else self

    def low_limbs(self, bits: int) -> Uint:
        """The limbs that the lowest ``bits`` bits need."""
        count = limb_count(self.m, min(bits, self.bits))
        return Uint(self.m, self.limbs[:count], min(self.bits, count * self.m.bits))

    # ---- arithmetic -------------------------------------------------------------------------------------------------

    def plus(self, other: Uint, bits: int | None = None) -> Uint:
        """The sum, in ``bits`` bits where it is known to fit, otherwise in one bit more than the longer operand."""
        m = self.m
        bits = bits if bits is not None else max(self.bits, other.bits) + 1
        x, y = self.resized(max(self.bits, bits)), other.resized(max(other.bits, bits))
        limbs: list[Word] = []
        carry: Predicate | None = None
        count = limb_count(m, bits)
        for k in range(count):
            total = m.add(x.limbs[k], y.limbs[k])
            over = m.less(total, x.limbs[k]) if k + 1 < count else None
            if carry is not None:
                step = m.add(total, m.word_of(carry))
                over = m.either(over, m.less(step, total)) if over is not None else None
                total = step
            limbs.append(total)
            carry = over
        return Uint(m, limbs, bits)

    def plus_bit(self, p: Predicate, bits: int | None = None) -> Uint:
        """The value, plus one where ``p`` holds."""
        return self.plus(Uint(self.m, [self.m.word_of(p)], 1), bits)

    def minus(self, other: Uint) -> Uint:
        """The difference modulo 2**(number of bits of the longer operand's limbs); exact where it is not negative."""
        m = self.m
        bits = max(self.bits, other.bits)
        x, y = self.resized(bits), other.resized(bits)
        limbs: list[Word] = []
        borrow: Predicate | None = None
        for k in range(len(x.limbs)):
            left, right = x.limbs[k], y.limbs[k]
            last = k + 1 == len(x.limbs)
            under = None if last else m.less(left, right)
            difference = m.subtract(left, right)
            if borrow is not None:
                taken = m.word_of(borrow)
                under = None if under is None else m.either(under, m.less(difference, taken))
                difference = m.subtract(difference, taken)
            limbs.append(difference)
            borrow = under
        return Uint(m, limbs, bits)

    def times(self, other: Uint, bits: int | None = None) -> Uint:
        """The product, row by row; with ``bits`` only the limbs that its lowest ``bits`` bits need."""
        m = self.m
        whole = self.bits + other.bits
        count = limb_count(m, whole if bits is None else min(bits, whole))
        total: list[Word | None] = [None] * count
        for i, x in enumerate(self.limbs[:count]):
            carry: Word | None = None
            for j, y in enumerate(other.limbs[: count - i]):
                last = i + j + 1 == count
                low, high = (m.multiply(x, y), None) if last else m.multiply_wide(x, y)
                for term in (carry, total[i + j]):
                    if term is not None:
                        low = m.add(low, term)
                        high = None if last else m.add(high, m.word_of(m.less(low, term)))
                total[i + j] = low
                carry = high
            if i + len(other.limbs) < count:
                total[i + len(other.limbs)] = carry
        return Uint(m, total, min(whole, count * m.bits))

    # ---- shifts -----------------------------------------------------------------------------------------------------

    def left(self, count: int, bits: int | None = None) -> Uint:
        """Shifted left by a constant; with ``bits`` only the limbs that the lowest ``bits`` bits need."""
        m = self.m
        whole = self.bits + count
        words, rest = divmod(count, m.bits)
        wanted = limb_count(m, whole if bits is None else min(bits, whole))
        limbs = [m.constant(0)] * words + self.limbs
        if rest:
            up, down = m.constant(rest), m.constant(m.bits - rest)
            pairs = list(zip([*limbs, None], [None, *limbs], strict=True))[:wanted]
            limbs = []
            for k, (limb, below) in enumerate(pairs):
                moved = None if limb is None else m.shift_left(limb, up)
                brought = None if below is None or k <= words else m.shift_right(below, down)
                limbs.append(moved if brought is None else brought if moved is None else m.or_(moved, brought))
        return Uint(m, limbs[:wanted], min(whole, wanted * m.bits))

    def right(self, count: int) -> Uint:
        """Shifted right by a constant; the bits shifted out are lost."""
        m = self.m
        if count == 0:
            return self
        bits = max(self.bits - count, 0)
        words, rest = divmod(count, m.bits)
        limbs = self.limbs[words:]
        if rest and limbs:
            down, up = m.constant(rest), m.constant(m.bits - rest)
            limbs = [
                m.or_(m.shift_right(limb, down), m.shift_left(limbs[k + 1], up))
                if k + 1 < len(limbs)
                else m.shift_right(limb, down)
                for k, limb in enumerate(limbs)
            ]
        wanted = limb_count(m, bits)
        return Uint(m, (limbs + [m.constant(0)] * wanted)[:wanted], bits)

    def left_by(self, count: Word, limit: int) -> Uint:
        """Shifted left by a variable count of at most ``limit``, within the bits that the value has."""
        return self._moved(count, limit, upward=True)

    def right_by(self, count: Word, limit: int) -> Uint:
        """Shifted right by a variable count of at most ``limit``; the bits shifted out are lost."""
        return self._moved(count, limit, upward=False)

    def right_by_sticky(self, count: Word, limit: int) -> Uint:
        """Shifted right by a variable count of at most ``limit``; the lowest bit is set if any bit shifted out was."""
        m = self.m
        lost: list[Word] = []
        moved = self._moved(count, limit, upward=False, lost=lost)
        merged = lost[0]
        for word in lost[1:]:
            merged = m.or_(merged, word)
        sticky = m.word_of(m.negation(m.equal(merged, m.constant(0))))
        return Uint(m, [m.or_(moved.limbs[0], sticky), *moved.limbs[1:]], moved.bits)

    def _moved(self, count: Word, limit: int, upward: bool, lost: list[Word] | None = None) -> Uint:
        """The shift by ``count``; downward, ``lost`` receives words that are all zero if no set bit was shifted out."""
        m, limbs = self.m, list(self.limbs)
        zero = m.constant(0)
        step = 1
        while limit >= m.bits * step:  # whole limbs, by the bits of count / m.bits
            taken = m.negation(m.equal(m.and_(count, m.constant(m.bits * step)), zero))
            if lost is not None:
                lost += [m.select(taken, limb, zero) for limb in limbs[:step]]
            fill = [zero] * min(step, len(limbs))
            shifted = [*fill, *limbs][: len(limbs)] if upward else [*limbs[step:], *fill]
            limbs = [m.select(taken, new, old) for new, old in zip(shifted, limbs, strict=True)]
            step *= 2
        count = m.and_(count, m.constant(m.bits - 1)) if limit >= m.bits else count
        if upward:
            result = [m.shift_left(limbs[0], count)]
            result += [m.funnel_left(limb, below, count) for below, limb in pairwise(limbs)]
            return Uint(m, result, self.bits).resized_down()
        if lost is not None:
            lost.append(m.funnel_right(limbs[0], zero, count))
        result = [m.funnel_right(above, limb, count) for limb, above in pairwise(limbs)]
        return Uint(m, [*result, m.shift_right(limbs[-1], count)], self.bits)

    def resized_down(self) -> Uint:
        """The same limbs with the bits above ``bits`` cleared."""
        m = self.m
        top = self.bits - (len(self.limbs) - 1) * m.bits
        if top == m.bits:
            return self
        masked = m.and_(self.limbs[-1], m.constant((1 << top) - 1))
        return Uint(m, [*self.limbs[:-1], masked], self.bits)

    # ---- questions --------------------------------------------------------------------------------------------------

    def leading_zeros(self) -> Word:
        """Zero bits above the highest set bit, of ``bits`` bits; ``bits`` for zero."""
        m = self.m
        count = m.leading_zeros(self.limbs[0])
        for limb in self.limbs[1:]:
            below = m.add(count, m.constant(m.bits))
            count = m.select(m.equal(limb, m.constant(0)), below, m.leading_zeros(limb))
        return m.subtract(count, m.constant(len(self.limbs) * m.bits - self.bits))

    def is_zero(self) -> Predicate:
        m = self.m
        merged = self.limbs[0]
        for limb in self.limbs[1:]:
            merged = m.or_(merged, limb)
        return m.equal(merged, m.constant(0))

    def equals(self, other: Uint) -> Predicate:
        return self.m.negation(self.differs(other))

    def differs(self, other: Uint) -> Predicate:
        m = self.m
        bits = max(self.bits, other.bits)
        x, y = self.resized(bits), other.resized(bits)
        merged = m.xor(x.limbs[0], y.limbs[0])
        for left, right in zip(x.limbs[1:], y.limbs[1:], strict=True):
            merged = m.or_(merged, m.xor(left, right))
        return m.negation(m.equal(merged, m.constant(0)))

    def less(self, other: Uint) -> Predicate:
        m = self.m
        bits = max(self.bits, other.bits)
        x, y = self.resized(bits), other.resized(bits)
        result = m.less(x.limbs[0], y.limbs[0])
        for left, right in zip(x.limbs[1:], y.limbs[1:], strict=True):
            result = m.either(m.less(left, right), m.both(m.equal(left, right), result))
        return result

    def bit(self, position: int) -> Predicate:
        """Whether the bit at a constant position is set."""
        m = self.m
        if position >= self.bits:
            return m.truth(False)
        limb, offset = divmod(position, m.bits)
        return m.negation(m.equal(m.and_(self.limbs[limb], m.constant(1 << offset)), m.constant(0)))

    def low(self, bits: int) -> Uint:
        """The lowest bits."""
        return self.resized(min(bits, self.bits))

    # ---- bits -------------------------------------------------------------------------------------------------------

    def merged(self, other: Uint) -> Uint:
        """The sum of two numbers that have no set bit in common, in the bits of the longer one."""
        m, bits = self.m, max(self.bits, other.bits)
        low = min(len(self.limbs), len(other.limbs))
        rest = self.limbs[low:] or other.limbs[low:]
        limbs = [m.or_(x, y) for x, y in zip(self.limbs[:low], other.limbs[:low], strict=True)]
        return Uint(m, [*limbs, *rest], bits)

    def with_bit(self, position: int, p: Predicate) -> Uint:
        """The value with the bit at a constant position set where ``p`` holds; the bit was zero."""
        m = self.m
        wide = self.resized(max(self.bits, position + 1))
        limb, offset = divmod(position, m.bits)
        bit = m.shift_left(m.word_of(p), m.constant(offset)) if offset else m.word_of(p)
        wide.limbs[limb] = m.or_(wide.limbs[limb], bit)
        return wide

    def chosen(self, p: Predicate, other: Uint) -> Uint:
        """The value where ``p`` holds, the other one elsewhere, in the bits of the longer one."""
        m, bits = self.m, max(self.bits, other.bits)
        pairs = zip(self.resized(bits).limbs, other.resized(bits).limbs, strict=True)
        return Uint(m, [m.select(p, left, right) for left, right in pairs], bits)

    # ---- a machine's own digits -------------------------------------------------------------------------------------

    def quotient(self, divisor: Uint, fraction_bits: int) -> tuple[Uint, Predicate] | None:
        """As ``division.divide``, or None where that is to write it out."""
        return None

    def remaining(self, divisor: Any, distance: Word) -> Uint:
        """The number times 2**distance modulo the divisor, which needs a loop."""
        raise NotImplementedError

    def square_root(self) -> tuple[Uint, Predicate] | None:
        """As ``division.square_root``, or None where that is to write it out."""
        return None


def limb_count(m: Machine, bits: int) -> int:
    """Limbs of a number of ``bits`` bits; at least one."""
    return max(1, -(-bits // m.bits))


def _kind(m: Machine) -> Any:
    """The machine's own class of integers, if it has one."""
    return getattr(type(m), "integers", None)


def of_word(m: Machine, word: Word, bits: int) -> Uint:
    """The number of a machine word, known to be less than 2**bits."""
    kind = _kind(m)
    made: Uint = Uint(m, [word], bits) if kind is None else kind.of_word(m, word, bits)
    return made


def constant(m: Machine, value: int, bits: int | None = None) -> Uint:
    """A constant, in ``bits`` bits or as many as it needs."""
    bits = value.bit_length() if bits is None else bits
    kind = _kind(m)
    if kind is not None:
        made: Uint = kind.of_constant(m, value, bits)
        return made
    mask = (1 << m.bits) - 1
    return Uint(m, [m.constant((value >> (k * m.bits)) & mask) for k in range(limb_count(m, bits))], bits)


def choose(p: Predicate, x: Uint, y: Uint) -> Uint:
    """x where ``p`` holds, y elsewhere, in the bits of the longer one."""
    return x.chosen(p, y)
