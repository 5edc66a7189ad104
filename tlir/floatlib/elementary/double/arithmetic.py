"""Double-double numbers over a machine's binary64 arithmetic: what the kernels of this package are made of.

A number is an unevaluated sum hi + lo of two binary64 numbers, |lo| < 2**-50 |hi| unless a function says otherwise.
u = 2**-53 is the largest relative error of one binary64 operation. The relative errors of the operations below, from

* Dekker, A floating-point technique for extending the available precision, Numerische Mathematik 18 (1971),
* Joldes, Muller and Popescu, Tight and rigorous error bounds for basic building blocks of double-word arithmetic,
  ACM TOMS 44 (2017),

hold while no intermediate number overflows and none that matters falls below 2**-1022. Kernels see to it: numbers
whose products are split are below 2**990. Operands of functions that vanish at 0 are above 2**-900, and no other result
is below 2**-1000, against which an absolute error of 2**-1074, made by an underflow, is one of 2**-74: in exponentials
below 2**-900 one such rounding of lo is all that happens, at most 2**-79 of results above 2**-996.

``DOUBLE`` = 2**-98 bounds the relative error of each operation here with a margin; beside the bounds that kernels
state, 2**-66 to 2**-71, it does not count. What counts there is what is computed in plain binary64: small terms, so
that u times their share is small.
"""

from __future__ import annotations

from typing import NamedTuple

from tlir.floatlib.elementary.number import Number
from tlir.floatlib.soft.machine import Machine, Predicate, Word

DOUBLE = 2.0**-98
SPLITTER = 134217729.0  # 2**27 + 1
MAGIC = 6755399441055744.0  # 1.5 * 2**52


class Double(NamedTuple):
    """hi + lo."""

    hi: Number
    lo: Number

    def __neg__(self) -> Double:
        return Double(-self.hi, -self.lo)


def select(p: Predicate, x: Number, y: Number) -> Number:
    """x where p holds, otherwise y."""
    return Number(x.m, x.m.real_select(p, x.value, y.value))


def select_double(p: Predicate, x: Double, y: Double) -> Double:
    return Double(select(p, x.hi, y.hi), select(p, x.lo, y.lo))


def from_bits(m: Machine, word: Word) -> Number:
    return Number(m, m.real_from_bits(word))


def table(m: Machine, values: tuple[float, ...], index: Word) -> Number:
    return Number(m, m.table(values, index))


def constant(m: Machine, value: tuple[float, float]) -> Double:
    """A constant of ``elementary.double.tables.pair``, within 2**-105."""
    return Double(Number(m, m.real_constant(value[0])), Number(m, m.real_constant(value[1])))


def signed(x: Double, sign: Word) -> Double:
    """x, negated where the sign bit is set."""
    return Double(x.hi.flipped(sign), x.lo.flipped(sign))


def polynomial(x: Number, coefficients: list[float]) -> Number:
    """The polynomial with these coefficients, the constant one first, by Horner's rule."""
    total = x.like(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = total.times_plus(x, coefficient)
    return total


def nearest_integer(x: Number) -> tuple[Number, Word]:
    """The integer nearest to x, ties either way, for |x| < 2**50: as a number, and as a word in two's complement modulo
    2**32. The sum with 1.5 * 2**52 has a unit in the last place of 1, and its low bits are those of the integer."""
    shifted = x + MAGIC
    return shifted - MAGIC, shifted.bits


def power_of_two(m: Machine, exponent: Word) -> Number:
    """2**n for a word n in two's complement modulo 2**12, -1022 <= n <= 1023."""
    field = m.shift_left(m.add(exponent, m.constant(1023)), m.constant(52))
    return from_bits(m, m.and_(field, m.constant(0x7FF << 52)))


# Exact sums and products


def fast_two_sum(x: Number, y: Number) -> Double:
    """x + y exactly, for |x| >= |y| or x = 0 (Dekker)."""
    total = x + y
    return Double(total, y - (total - x))


def two_sum(x: Number, y: Number) -> Double:
    """x + y exactly (Knuth)."""
    total = x + y
    part = total - x
    return Double(total, (x - (total - part)) + (y - part))


def _split(x: Number) -> tuple[Number, Number]:
    product = x * SPLITTER
    high = product - (product - x)
    return high, x - high


def two_product(x: Number, y: Number) -> Double:
    """x * y exactly: one fused operation, or Dekker's product of Veltkamp's halves."""
    m = x.m
    product = x * y
    if m.has_fma:
        return Double(product, Number(m, m.real_fma(x.value, y.value, (-product).value)))
    x1, x0 = _split(x)
    y1, y0 = _split(y)
    return Double(product, ((x1 * y1 - product) + x1 * y0 + x0 * y1) + x0 * y0)


# Double-double operations


def normalized(x: Double) -> Double:
    """The same sum with |lo| <= u |hi|; |hi| >= |lo| is enough."""
    return fast_two_sum(x.hi, x.lo)


def add_number(x: Double, y: Number) -> Double:
    """2 u**2 (DWPlusFP)."""
    total = two_sum(x.hi, y)
    return fast_two_sum(total.hi, x.lo + total.lo)


def add(x: Double, y: Double) -> Double:
    """3 u**2 / (1 - 4 u), whatever the signs (AccurateDWPlusDW)."""
    high, low = two_sum(x.hi, y.hi), two_sum(x.lo, y.lo)
    middle = fast_two_sum(high.hi, high.lo + low.hi)
    return fast_two_sum(middle.hi, low.lo + middle.lo)


def add_similar(x: Double, y: Double) -> Double:
    """For terms of one sign, or where |x + y| > |x| / 8 and |y| / 8: two roundings of lows below 2 u of x and y each,
    so less than 64 u**2 = 2**-100 (SloppyDWPlusDW)."""
    total = two_sum(x.hi, y.hi)
    return fast_two_sum(total.hi, total.lo + (x.lo + y.lo))


def multiply_number(x: Double, y: Number) -> Double:
    """3 u**2 at most (DWTimesFP2, DWTimesFP3)."""
    product = two_product(x.hi, y)
    return fast_two_sum(product.hi, x.lo.times_plus(y, product.lo))


def multiply(x: Double, y: Double) -> Double:
    """7 u**2 at most (DWTimesDW1), 5 u**2 with fused operations (DWTimesDW2)."""
    product = two_product(x.hi, y.hi)
    cross = x.hi.times_plus(y.lo, x.lo * y.hi)
    return fast_two_sum(product.hi, product.lo + cross)


def squared(x: Double) -> Double:
    """x * x as ``multiply``."""
    product = two_product(x.hi, x.hi)
    return fast_two_sum(product.hi, product.lo + (x.hi + x.hi) * x.lo)


def divide(x: Double, y: Double) -> Double:
    """The quotient q of the highs by a reciprocal has 2.1 u; the remainder x - q y is exact but for the products with
    the lows, below 6 u**2 of x, and divided with 2.1 u of itself, 3.1 u of x: together less than 16 u**2 = 2**-102."""
    reciprocal = 1.0 / y.hi
    quotient = x.hi * reciprocal
    product = two_product(quotient, y.hi)
    # x.hi - product.hi is exact: they are within a factor of two
    remainder = ((x.hi - product.hi) - product.lo) + (x.lo - quotient * y.lo)
    return fast_two_sum(quotient, remainder * reciprocal)


def square_root(x: Double) -> Double:
    """s = sqrt(hi) has u; the remainder x - s*s is exact but for a rounding of u * 2 u of x, and divided by 2 s with 2
    u of itself; what that leaves out is the square of its quotient by s, u**2 / 2: less than 8 u**2. For x > 0."""
    root = x.hi.sqrt()
    square = two_product(root, root)
    remainder = ((x.hi - square.hi) - square.lo) + x.lo
    return fast_two_sum(root, remainder / (root + root))
