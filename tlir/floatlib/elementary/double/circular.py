"""Sine, cosine and tangent in double-double arithmetic. u = 2**-53.

x = k pi/1024 + r, |r| < 2**-9.34; k = 512 q + j, 0 <= j < 512. With (S, C) the sine and cosine of j pi/1024, as pairs
from one table of the first quadrant, sin(j pi/1024 + r) = S + C sin r + S (cos r - 1), and the same for the cosine with
C and -S; q says which of them it is, and its sign. Zeros lie at j = 0, r = 0, where the leading term is an exact 0;
elsewhere it is at least sin(pi/1024) > 2**-8.36, twice as large as r.

Two reductions give r: three products with pieces of pi/1024 for |x| < 6400, and an integer product with the bits of
2/pi for any x.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import factorial

from flint import arb, ctx

from tlir.floatlib.elementary.double.arithmetic import (
    Double,
    add,
    add_number,
    constant,
    divide,
    fast_two_sum,
    from_bits,
    multiply,
    nearest_integer,
    polynomial,
    select_double,
    squared,
    table,
    two_product,
    two_sum,
)
from tlir.floatlib.elementary.double.tables import pair, pairs
from tlir.floatlib.elementary.narrow.fit import parts
from tlir.floatlib.elementary.number import Number
from tlir.floatlib.soft.machine import Predicate, Word

QUARTER = 512
"""Steps of pi/1024 in a quadrant."""

NEAR = 6400.0
"""Below it, k < 2**21."""

SINE = [(-1) ** n / factorial(2 * n + 1) for n in range(1, 4)]
COSINE = [(-1) ** n / factorial(2 * n) for n in range(1, 5)]


@cache
def sines() -> tuple[tuple[float, ...], ...]:
    """sin(j pi/1024) for j = 0 to 512, highs and lows."""
    return pairs(lambda: [(arb.pi() * j / (2 * QUARTER)).sin() for j in range(QUARTER + 1)])


@cache
def _steps() -> tuple[float, ...]:
    """pi/1024, below 2**-8.3: multiples of 2**-40, 2**-72 and 2**-104, of 32 bits each, and the rest."""
    return parts(lambda: arb.pi() / (2 * QUARTER), 40, 72, 104)


@cache
def _inverse_step() -> float:
    return pair(lambda: 2 * QUARTER / arb.pi())[0]


@cache
def _step() -> tuple[float, float]:
    return pair(lambda: arb.pi() / (2 * QUARTER))


Reduced = tuple[Word, Double]
Reduction = Callable[[Number], Reduced]


def reduce_near(x: Number) -> Reduced:
    """(k, r) for |x| < 6400: k modulo 2**32, and r within 2**-104 of itself and 2**-130.

    k has 21 bits, so the first three products are exact. x - k * first is exact because the two are within a factor of
    two (or k = 0), the difference with the second a pair; with the third a sum of relative error 2 u**2. The last
    product is below 2**-84 and has 2 u of itself with its piece.
    """
    k, word = nearest_integer(x * _inverse_step())
    first, second, third, rest = _steps()
    r = add_number(two_sum(x - k * first, k * -second), k * -third)
    return word, fast_two_sum(r.hi, r.lo - k * rest)


@cache
def _two_over_pi() -> tuple[int, ...]:
    """The bits of 512 * 2/pi as 64-bit words: word i holds those of weight 2**(63 - 64 (i - 1)) downward, after one
    word of zeros, so that windows may start before them."""
    previous, ctx.prec = ctx.prec, 1600
    try:
        scaled = (arb(2) / arb.pi() * QUARTER * arb(2) ** 1344).floor().unique_fmpz()
    finally:
        ctx.prec = previous
    if scaled is None:
        raise ArithmeticError("the precision does not decide the bits of 2/pi")
    total = int(scaled)
    count = 22
    return (0, *((total >> (64 * (count - 1 - i))) & (2**64 - 1) for i in range(count)))


def reduce_far(x: Number) -> Reduced:
    """(k, r) for |x| > 2**-60: k modulo 2048, r within 2**-97 of itself and 2**-125.

    |x| = M 2**e with an integer M of 53 bits. The product of M and 512 * 2/pi * 2**e is needed modulo 2048. A window of
    192 bits of the latter, from the weight 2**10 to 2**-181, leaves out multiples of 2048 and less than M 2**-181 =
    2**-128. Two words of the product are kept, to 2**-117. The integer nearest to it is k; the rest, of 117 bits, is
    normalized and cut to pairs of 53 bits each, times pi/1024.
    """
    m = x.m
    c = m.constant
    bits = x.bits
    field = m.and_(m.shift_right(bits, c(52)), c(0x7FF))
    significand = m.or_(m.and_(bits, c((1 << 52) - 1)), c(1 << 52))
    # The weight of bit 63 of table word i is 127 - 64 i, and the window's first is to be 10 - e, e = field - 1075:
    # it starts at bit 127 - 10 + e = field - 958 of the table.
    start = m.subtract(field, c(958))
    index, shift = m.shift_right(start, c(6)), m.and_(start, c(63))
    values = _two_over_pi()
    words = [m.table(values, m.add(index, c(n))) for n in range(4)]
    top, middle, bottom = (m.funnel_left(words[n], words[n + 1], shift) for n in range(3))
    low_high = m.multiply_wide(bottom, significand)[1]
    middle_low, middle_high = m.multiply_wide(middle, significand)
    high = m.multiply(top, significand)
    second = m.add(middle_low, low_high)
    carry = m.word_of(m.less(second, low_high))
    first = m.add(m.add(high, middle_high), carry)
    # 11 bits of the integer, then the fraction: 53 bits in the first word and 64 in the second
    k = m.shift_right(first, c(53))
    up = m.and_(m.shift_right(first, c(52)), c(1))
    k = m.add(k, up)
    fraction_high = m.funnel_left(first, second, c(11))
    fraction_low = m.shift_left(second, c(11))
    # as a signed number: f - 1 where it was rounded up
    negative = m.equal(up, c(1))
    mask = m.subtract(c(0), up)
    # one's complement, too small by 2**-117 at most
    fraction_high, fraction_low = m.xor(fraction_high, mask), m.xor(fraction_low, mask)
    zeros = m.leading_zeros(m.or_(fraction_high, c(1)))
    fraction_high = m.funnel_left(fraction_high, fraction_low, zeros)
    fraction_low = m.shift_left(fraction_low, zeros)
    scale = from_bits(m, m.shift_left(m.subtract(c(1023 - 53), zeros), c(52)))
    upper = Number(m, m.real_of(m.shift_right(fraction_high, c(11)))) * scale
    next_bits = m.or_(m.shift_left(m.and_(fraction_high, c(0x7FF)), c(42)), m.shift_right(fraction_low, c(22)))
    lower = Number(m, m.real_of(next_bits)) * scale * 2.0**-53
    r = multiply(Double(upper, lower), constant(m, _step()))
    below_zero = m.less(c((1 << 63) - 1), bits)
    k = m.select(below_zero, m.subtract(c(0), k), k)
    return k, _flipped(r, m.differ(negative, below_zero))


def _sum(high: Double, factor: Double, r: Double) -> Double:
    """A + B sin r + A (cos r - 1), the pairs A and B being sine and cosine of one angle: within 2**-68.4, for A = 0 or
    |A| > 2**-8.37.

    B.hi * r.hi is exact as a pair, A.hi + that pair's high too. The rest is computed in binary64. The result is at
    least |r|, and at least |A| / 2. B (sin r - r) < 2**-21.2 |r| has 7.3 u of itself (the square, the cube, 1.3 u of
    the polynomial, two products, two sums); A (cos r - 1) < 2**-19.6 |A| has 6 u, and the sum of lows adds u of both:
    2**-71.4 + 2**-69.0 + 2**-71.6 = 2**-68.6 of the result. Left out are r**9/9! and r**8/8! < 2**-90, and r.lo times
    r.hi**2/2: 2**-72.
    """
    product = two_product(factor.hi, r.hi)
    total = fast_two_sum(high.hi, product.hi)
    square = r.hi * r.hi
    sine = (square * r.hi).times_plus(polynomial(square, SINE), r.lo)
    cosine = square.times_plus(polynomial(square, COSINE[:3]), -(r.hi * r.lo))
    rest = factor.lo.times_plus(r.hi, product.lo + high.lo)
    rest = high.hi.times_plus(cosine, factor.hi.times_plus(sine, rest))
    return fast_two_sum(total.hi, total.lo + rest)


def _quadrant(x: Number, k: Word) -> tuple[Double, Double]:
    """Sine and cosine of j pi/1024."""
    m = x.m
    j = m.and_(k, m.constant(QUARTER - 1))
    mirrored = m.subtract(m.constant(QUARTER), j)
    highs, lows = sines()
    return (
        Double(table(m, highs, j), table(m, lows, j)),
        Double(table(m, highs, mirrored), table(m, lows, mirrored)),
    )


def _sine(x: Number, reduced: Reduced, turn: int) -> Double:
    """The sine of the angle plus ``turn`` quadrants."""
    m = x.m
    k, r = reduced
    k = m.add(k, m.constant(turn * QUARTER)) if turn else k
    sine, cosine = _quadrant(x, k)
    odd = m.equal(m.and_(k, m.constant(QUARTER)), m.constant(QUARTER))
    high = select_double(odd, cosine, sine)
    factor = select_double(odd, -sine, cosine)
    result = _sum(high, factor, r)
    return _flipped(result, m.equal(m.and_(k, m.constant(2 * QUARTER)), m.constant(2 * QUARTER)))


def _flipped(x: Double, negative: Predicate) -> Double:
    return select_double(negative, -x, x)


def sine(x: Number, reduce: Reduction = reduce_near) -> Double:
    """sin x within 2**-68.4 of it and 2**-120."""
    return _sine(x, reduce(x), 0)


def cosine(x: Number, reduce: Reduction = reduce_near) -> Double:
    """cos x within 2**-68.4 of it and 2**-120."""
    return _sine(x, reduce(x), 1)


def tan(x: Number, reduce: Reduction = reduce_near) -> Double:
    """sin x / cos x, or -cos y / sin y for y = x - pi/2 in odd quadrants: within 2**-67.4 of it, and 2**-119 times
    1 + tan(x)**2: 2**-68.4 for each of the two and 2**-101 for the quotient."""
    m = x.m
    k, r = reduce(x)
    sine, cosine = _quadrant(x, k)
    upper, lower = _sum(sine, cosine, r), _sum(cosine, -sine, r)
    odd = m.equal(m.and_(k, m.constant(QUARTER)), m.constant(QUARTER))
    return divide(select_double(odd, -lower, upper), select_double(odd, upper, lower))


@cache
def _sixth() -> tuple[float, float]:
    return pair(lambda: arb(1) / 6)


def _both(sine: Double, cosine: Double, r: Double) -> tuple[Double, Double]:
    """The sine and the cosine of the sum of an angle and r, within 2**-88 of themselves. In sin r = r - r**3/6 + ...
    and cos r - 1 = -r**2/2 + ... these terms are pairs; the others, 2**-44 |r| and 2**-42, have 6 u of themselves, and
    from r**9/9! < 2**-93 |r| and r**10/10! on they are left out. A result is at least |r|, and half of its leading
    term."""
    m = r.hi.m
    square = squared(r)
    fourth = square.hi * square.hi
    cube = multiply(multiply(square, r), constant(m, _sixth()))
    tail = (fourth * r.hi) * polynomial(square.hi, SINE[1:])
    of_r = add(r, add_number(-cube, tail))
    less = add_number(Double(square.hi * -0.5, square.lo * -0.5), fourth * polynomial(square.hi, COSINE[1:]))
    upper = add(add(sine, multiply(sine, less)), multiply(cosine, of_r))
    lower = add(add(cosine, multiply(cosine, less)), -multiply(sine, of_r))
    return upper, lower


def sine_cosine(x: Number, reduced: Reduced, accurate: bool = False) -> tuple[Double, Double]:
    """sin x and cos x, each within 2**-68.4 of it, or 2**-88 if ``accurate``, and 2**-120, from what a reduction of x
    gave."""
    m = x.m
    k, r = reduced
    sine, cosine = _quadrant(x, k)
    if accurate:
        upper, lower = _both(sine, cosine, r)
    else:
        upper, lower = _sum(sine, cosine, r), _sum(cosine, -sine, r)
    odd = m.equal(m.and_(k, m.constant(QUARTER)), m.constant(QUARTER))
    negative = m.equal(m.and_(k, m.constant(2 * QUARTER)), m.constant(2 * QUARTER))
    return (
        _flipped(select_double(odd, lower, upper), negative),
        _flipped(select_double(odd, -upper, lower), negative),
    )
