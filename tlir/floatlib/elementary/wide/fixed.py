"""Fixed-point numbers of many digits on a machine of 64-bit words, each with a proven bound on its error.

A digit has 30 bits and a word to itself. Products of two digits stay below 2**60, so that up to fifteen of them are
added without a carry: one multiplication and one addition each, no comparison, on vectors as on scalars. Carries are
propagated once per result.

Every number carries two facts that are known when the code is built:

* ``limit``: the value is at most this;
* ``error``: the value differs from the number that it stands for by at most this many *units*, where a unit is
  2**(-30 * point), the weight of the last digit.

Each operation derives both for its result from those of its operands; the rules stand at the operations. What an
algorithm leaves out (terms of a series, a table's argument) it adds by ``with_error``. So the bound of a kernel is the
sum of what its operations say, and nothing is estimated by hand twice. Bounds are binary64 numbers, each derived by a
few roundings of positive terms and enlarged by 2**-40 of itself, which covers them.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, inf, log2

from tlir.floatlib.soft.machine import Machine, Predicate, Real, Word
from tlir.floatlib.soft.uint import Uint, limb_count

DIGIT = 30
MASK = (1 << DIGIT) - 1
TERMS = 15
"""Products of digits that a word holds beside a carry."""
_ENLARGED = 1 + 2.0**-40


def unit(point: int) -> float:
    """The weight of the last of ``point`` fraction digits."""
    return 2.0 ** (-DIGIT * point)


class Fixed:
    """The number sum(digits[i] * 2**(30 * (i - point))), digits below 2**30, not negative."""

    __slots__ = ("digits", "error", "limit", "m", "point")

    def __init__(self, m: Machine, digits: list[Word], point: int, limit: float = inf, error: float = 0.0) -> None:
        assert digits
        self.m = m
        self.digits = digits
        self.point = point
        self.limit = min(limit, 2.0 ** (DIGIT * (len(digits) - point)))
        self.error = error

    @property
    def size(self) -> int:
        return len(self.digits)

    # ---- bounds -----------------------------------------------------------------------------------------------------

    def with_error(self, more: float) -> Fixed:
        """The same number, standing for one that is up to ``more`` (absolute, not in units) farther away."""
        return Fixed(self.m, self.digits, self.point, self.limit, (self.error + more / unit(self.point)) * _ENLARGED)

    def below(self, limit: float) -> Fixed:
        """The same number where it is known to be at most ``limit``; digits that are zero then go."""
        size = max(1, self.point + ceil(log2(limit) / DIGIT + 2.0**-20)) if limit > 0 else 1
        return Fixed(self.m, self.digits[:size], self.point, min(limit, self.limit), self.error)

    def known(self, error: float) -> Fixed:
        """The same number where its error is known to be at most so many units: 0 where nothing was cut off."""
        return Fixed(self.m, self.digits, self.point, self.limit, error)

    def _absolute(self) -> float:
        return self.error * unit(self.point)

    # ---- digits -----------------------------------------------------------------------------------------------------

    def to(self, point: int) -> Fixed:
        """With ``point`` fraction digits: more are zeros, fewer are cut off, which adds less than a unit."""
        m, more = self.m, point - self.point
        if more >= 0:
            return Fixed(m, [m.constant(0)] * more + self.digits, point, self.limit, self.error * 2.0 ** (DIGIT * more))
        kept = self.digits[-more:] or [m.constant(0)]
        error = (self.error * 2.0 ** (DIGIT * more) + 1.0) * _ENLARGED
        return Fixed(m, kept, point, self.limit, error)

    def resized(self, size: int) -> Fixed:
        """With ``size`` digits: zeros on top, or without top digits that are known to be zero."""
        m = self.m
        digits = (self.digits + [m.constant(0)] * size)[:size]
        return Fixed(m, digits, self.point, self.limit, self.error)

    def scaled(self, digits: int) -> Fixed:
        """Times 2**(-30 * digits), exactly: the same digits elsewhere."""
        return Fixed(self.m, self.digits, self.point + digits, self.limit * 2.0 ** (-DIGIT * digits), self.error)

    def bits(self) -> Uint:
        """The number of units."""
        m, size = self.m, self.size
        count = limb_count(m, DIGIT * size)
        limbs: list[Word] = []
        for k in range(count):
            limb: Word | None = None
            for i, digit in enumerate(self.digits):
                shift = DIGIT * i - m.bits * k
                if -DIGIT < shift < m.bits:
                    moved = _shifted(m, digit, shift)
                    limb = moved if limb is None else m.or_(limb, moved)
            limbs.append(m.constant(0) if limb is None else limb)
        return Uint(m, limbs, DIGIT * size)

    def real(self) -> Real:
        """The leading two digits, or three where they fit a word, as a binary64 number: below the value by at most the
        rest and 2**-53 of it, above it by at most 2**-53 of it."""
        m, size = self.m, self.size
        largest = self.limit * 2.0 ** (DIGIT * (self.point - size + 1))
        count = min(3 if largest < 8 else 2, size)
        word = self.digits[-1]
        for digit in self.digits[-2 : -count - 1 : -1]:
            word = m.or_(m.shift_left(word, m.constant(DIGIT)), digit)
        scale = 2.0 ** (DIGIT * (size - count - self.point))
        return m.real_multiply(m.real_of(word), m.real_constant(scale))

    # ---- sums -------------------------------------------------------------------------------------------------------

    def plus(self, other: Fixed, limit: float = inf) -> Fixed:
        """The sum, exact: the errors add up."""
        return combination([([(self, False), (other, False)], None)], limit)

    def minus(self, other: Fixed, limit: float = inf) -> Fixed:
        """The difference, which is not negative, exact: the errors add up."""
        return combination([([(self, False), (other, True)], None)], min(limit, self.limit))

    def plus_signed(self, other: Fixed, negative: Predicate, limit: float = inf) -> Fixed:
        """The sum or, where ``negative``, the difference, not negative; exact: the errors add up."""
        return combination([([(self, False)], None), ([(other, False)], negative)], limit)

    def minus_signed(self, other: Fixed, swap: Predicate, limit: float = inf) -> Fixed:
        """self - other or, where ``swap``, other - self; not negative, exact: the errors add up."""
        limit = min(limit, max(self.limit, other.limit))
        return combination([([(self, False), (other, True)], swap)], limit)

    def difference(self, other: Fixed, limit: float = inf) -> tuple[Fixed, Predicate]:
        """|self - other| and whether it is negative; exact: the errors add up."""
        negative = self.less(other)
        return self.minus_signed(other, negative, limit), negative

    # ---- products ---------------------------------------------------------------------------------------------------

    def times(self, other: Fixed, point: int, limit: float = inf) -> Fixed:
        """The product with ``point`` fraction digits.

        Columns of products below the one under the last digit are left out, each of their products less than 2**60
        times its weight; the column under the last digit is cut off, less than a unit. The operands' errors count with
        the other operand's limit."""
        return _product(self, other, *_products(self, other, point), point, limit)

    def product_error(self, other: Fixed, point: int) -> float:
        """The error of ``times``."""
        return _product_error(self, other, point, _first_column(self, other, point)[2])

    def times_plus(self, other: Fixed, addend: Fixed, limit: float = inf) -> Fixed:
        """self * other + addend, with the addend's fraction digits; ``times``'s bound and the addend's error."""
        point = addend.point
        columns, below, cut = _products(self, other, point)
        _add_digits(self.m, columns, addend, below)
        return _product(self, other, columns, below, cut, point, limit, addend)

    def from_minus(self, other: Fixed, addend: Fixed, limit: float = inf) -> Fixed:
        """addend - self * other, not negative, with the addend's fraction digits and the bound of ``times_plus``."""
        m, point = self.m, addend.point
        columns, below, cut = _products(self, other, point)
        columns = [None if c is None else m.subtract(m.constant(0), c) for c in columns]
        _add_digits(m, columns, addend, below)
        count = min(self.size, other.size)
        digits = _carried(m, columns[: addend.size + below], (count + 1) << 2 * DIGIT)[below:]
        error = (_product_error(self, other, point, cut) + addend.error) * _ENLARGED
        limit = min(limit, addend.limit)
        return Fixed(m, digits, point, limit, error).below(limit)

    def square(self, point: int, limit: float = inf) -> Fixed:
        """The square, as ``times``; products of different digits are computed once."""
        return _product(self, self, *_products(self, self, point, square=True), point, limit)

    def times_word(self, word: Word, largest: int, point: int) -> Fixed:
        """The product with a word of at most ``largest`` < 2**30."""
        return self.times(Fixed(self.m, [word], 0, float(largest)), point)

    # ---- shifts -----------------------------------------------------------------------------------------------------

    def left_by(self, count: Word, most: int, limit: float = inf) -> Fixed:
        """Times 2**count, count at most ``most``, within the same digits; the error grows by as much at most."""
        moved = self.bits().left_by(count, most)
        return of_bits(moved, 0, self.point, self.size, limit, self.error * 2.0**most)

    def right_by(self, count: Word, most: int, limit: float = inf) -> Fixed:
        """Divided by 2**count, count at most ``most``; what is cut off adds less than a unit."""
        moved = self.bits().right_by(count, most)
        return of_bits(moved, 0, self.point, self.size, min(limit, self.limit), self.error + 1.0)

    def halved(self, count: int = 1) -> Fixed:
        """Divided by 2**count, count < 30; adds less than a unit."""
        m = self.m
        up, down = m.constant(DIGIT - count), m.constant(count)
        above = [*self.digits[1:], None]
        digits = [
            m.shift_right(low, down)
            if high is None
            else m.or_(m.shift_right(low, down), m.and_(m.shift_left(high, up), m.constant(MASK)))
            for low, high in zip(self.digits, above, strict=True)
        ]
        return Fixed(m, digits, self.point, self.limit * 2.0**-count, self.error * 2.0**-count + 1.0)

    def doubled(self, count: int = 1) -> Fixed:
        """Times 2**count, count < 30, exactly; the error grows with it."""
        m = self.m
        limit = self.limit * 2.0**count
        shifted: list[Word | None] = [m.shift_left(digit, m.constant(count)) for digit in self.digits]
        shifted += [None] * (_size(limit, self.point) - len(shifted))
        return Fixed(m, _carried(m, shifted), self.point, limit, self.error * 2.0**count).below(limit)

    # ---- questions --------------------------------------------------------------------------------------------------

    def less(self, other: Fixed) -> Predicate:
        x, y = _aligned(self, other)
        return x.bits().less(y.bits())

    def is_zero(self) -> Predicate:
        m = self.m
        merged = self.digits[0]
        for digit in self.digits[1:]:
            merged = m.or_(merged, digit)
        return m.equal(merged, m.constant(0))

    def leading_zeros(self) -> Word:
        """Zero bits above the highest set bit, of the 30 * size bits; all of them for zero."""
        return self.bits().leading_zeros()


def all_ones(m: Machine, p: Predicate) -> Word:
    """A word of ones where p holds, otherwise zero."""
    return m.subtract(m.constant(0), m.word_of(p))


Group = tuple[list[tuple[Fixed, bool]], Predicate | None]
"""Numbers, each subtracted if its mark is true; and where the sign of their sum is turned."""


def combination(groups: Sequence[Group], limit: float = inf) -> Fixed:
    """The sum of groups, which is not negative and at most ``limit``; exact: the errors add up.

    Integer digits that the limit has no room for are dropped: they are zero in the sum."""
    numbers = [x for terms, _ in groups for x, _ in terms]
    m, point = numbers[0].m, max(x.point for x in numbers)
    limit = min(limit, sum(x.limit for x in numbers) * _ENLARGED)
    size = _size(limit, point)
    columns: list[Word | None] = [None] * size
    taken = 0
    for terms, turned in groups:
        inner: list[Word | None] = [None] * size
        for x, minus in terms:
            for i, digit in enumerate(x.digits[: size - point + x.point], point - x.point):
                if minus:
                    zero = m.constant(0) if inner[i] is None else inner[i]
                    inner[i] = m.subtract(zero, digit)
                else:
                    inner[i] = _sum(m, inner[i], digit)
            taken += minus or turned is not None
        if turned is not None:
            ones = all_ones(m, turned)
            inner = [None if word is None else m.subtract(m.xor(word, ones), ones) for word in inner]
        columns = [_sum(m, x, y) for x, y in zip(columns, inner, strict=True)]
    error = sum(x.error * 2.0 ** (DIGIT * (point - x.point)) for x in numbers) * _ENLARGED
    return Fixed(m, _carried(m, columns, taken << DIGIT), point, limit, error)


def choose(p: Predicate, x: Fixed, y: Fixed) -> Fixed:
    """x where p holds, otherwise y; the larger bounds."""
    m = x.m
    left, right = _aligned(x, y)
    digits = [m.select(p, a, b) for a, b in zip(left.digits, right.digits, strict=True)]
    return Fixed(m, digits, left.point, max(x.limit, y.limit), max(left.error, right.error)).below(
        max(x.limit, y.limit)
    )


def of_integer(m: Machine, value: int, point: int, size: int | None = None, error: float = 0.0) -> Fixed:
    """The constant number of ``value`` units, in as many digits as it needs unless ``size`` says."""
    needed = max(1, -(-value.bit_length() // DIGIT))
    size = needed if size is None else size
    assert size >= needed
    digits = [m.constant((value >> (DIGIT * i)) & MASK) for i in range(size)]
    limit = value * unit(point) * _ENLARGED if value.bit_length() < 900 else inf
    return Fixed(m, digits, point, limit, error)


def of_bits(x: Uint, offset: int, point: int, size: int, limit: float = inf, error: float = 0.0) -> Fixed:
    """x * 2**offset units; bits below a unit are cut off, the number fits ``size`` digits."""
    m = x.m
    digits: list[Word] = []
    for i in range(size):
        digit: Word | None = None
        whole = False
        for k, limb in enumerate(x.limbs):
            shift = m.bits * k + offset - DIGIT * i
            if -m.bits < shift < DIGIT and min(x.bits - m.bits * k, m.bits) + shift > 0:
                moved = _shifted(m, limb, shift)
                digit = moved if digit is None else m.or_(digit, moved)
                whole = whole or min(x.bits - m.bits * k, m.bits) + shift > DIGIT
        if digit is None:
            digits.append(m.constant(0))
        else:
            digits.append(m.and_(digit, m.constant(MASK)) if whole else digit)
    if offset < 0:
        error += 1.0
    return Fixed(m, digits, point, limit, error)


def _shifted(m: Machine, word: Word, count: int) -> Word:
    if count == 0:
        return word
    return m.shift_left(word, m.constant(count)) if count > 0 else m.shift_right(word, m.constant(-count))


def _aligned(x: Fixed, y: Fixed) -> tuple[Fixed, Fixed]:
    """Both with the fraction digits of the longer one, and the same size."""
    point = max(x.point, y.point)
    x, y = x.to(point), y.to(point)
    size = max(x.size, y.size)
    return x.resized(size), y.resized(size)


def _size(limit: float, point: int) -> int:
    """Digits that numbers of at most ``limit`` need."""
    return max(1, point + ceil(log2(limit) / DIGIT + 2.0**-20))


def _sum(m: Machine, x: Word | None, y: Word | None) -> Word | None:
    return y if x is None else x if y is None else m.add(x, y)


def _carried(m: Machine, columns: Sequence[Word | None], negative: int = 0) -> list[Word]:
    """The digits of the sum of columns, lowest first, modulo 2**(30 * columns).

    Columns are words below 2**64 - 2**34 or, with ``negative``, integers (modulo 2**64) that are not below -negative:
    a multiple of 2**30 makes each of them positive, and its carry is taken off the next column together with what that
    one is given. ``negative`` must leave room for what is positive in them."""
    give = 0 if negative == 0 else (-(-negative >> DIGIT) + (1 << 6)) << DIGIT
    digits: list[Word] = []
    carry: Word | None = None
    constant = give
    for k, column in enumerate(columns):
        total = _sum(m, column, carry)
        if total is None:
            total = m.constant(0)
        if constant:
            total = m.add(total, m.constant(constant % (1 << m.bits)))
        digits.append(m.and_(total, m.constant(MASK)))
        carry = m.shift_right(total, m.constant(DIGIT)) if k + 1 < len(columns) else None
        constant = give - (give >> DIGIT)
    return digits


def _first_column(x: Fixed, y: Fixed, point: int) -> tuple[int, int, float]:
    """The sum of the digits' indices in the first column kept (negative where there is none in it), the number of
    columns below the last digit (0 or 1), and what is cut off in units."""
    last = x.point + y.point - point
    below = 1 if last > 0 else 0
    cut = float(below)
    for column in range(last - below):
        count = max(0, min(column, x.size - 1) - max(0, column - y.size + 1) + 1)
        cut += count * 2.0 ** (2 * DIGIT + DIGIT * (column - last))
    return last - below, below, cut


def _products(x: Fixed, y: Fixed, point: int, square: bool = False) -> tuple[list[Word | None], int, float]:
    """The columns of the product, how many of them are below the last digit, and what is cut off in units."""
    m = x.m
    assert min(x.size, y.size) < TERMS
    lowest, below, cut = _first_column(x, y, point)
    columns: list[Word | None] = [None] * max(x.size + y.size - 1 - lowest, below + 1)
    right = [m.add(digit, digit) for digit in x.digits] if square else y.digits
    for i, a in enumerate(x.digits):
        for j, b in enumerate(right):
            if i + j >= lowest and (i <= j or not square):
                product = m.multiply(a, a if square and i == j else b)
                columns[i + j - lowest] = _sum(m, columns[i + j - lowest], product)
    return columns, below, cut


def _add_digits(m: Machine, columns: list[Word | None], addend: Fixed, below: int) -> None:
    """The digits of a number added to the columns of a product, of which so many are below the last digit."""
    columns += [None] * (addend.size + below - len(columns))
    for i, digit in enumerate(addend.digits, below):
        columns[i] = _sum(m, columns[i], digit)


def _product_error(x: Fixed, y: Fixed, point: int, cut: float) -> float:
    errors = x._absolute() * (y.limit + y._absolute()) + y._absolute() * x.limit
    return (errors / unit(point) + cut) * _ENLARGED


def _product(
    x: Fixed,
    y: Fixed,
    columns: list[Word | None],
    below: int,
    cut: float,
    point: int,
    limit: float,
    addend: Fixed | None = None,
) -> Fixed:
    m = x.m
    error = _product_error(x, y, point, cut)
    value = x.limit * y.limit
    if addend is not None:
        value, error = value + addend.limit, (error + addend.error) * _ENLARGED
    limit = min(limit, value * _ENLARGED)
    wanted = _size(limit, point) + below
    digits = _carried(m, columns[:wanted] + [None] * (wanted - len(columns)))
    return Fixed(m, digits[below:], point, limit, error)
