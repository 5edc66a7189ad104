"""Roots and the length of a vector in fixed point."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

from tlir.floatlib.elementary.wide.fixed import DIGIT, choose
from tlir.floatlib.elementary.wide.function import INVALID, Case, Function
from tlir.floatlib.elementary.wide.quotient import corrected, inverse_root, of_real, square_root
from tlir.floatlib.elementary.wide.tables import constant
from tlir.floatlib.elementary.wide.work import LIFT, Operand, Value, Work, shift_count, signed
from tlir.floatlib.soft.machine import Machine, Real, Word
from tlir.floatlib.soft.uint import Uint


def rsqrt(work: Work, x: Operand) -> Value:
    """1 / sqrt(x) = 4 q 2**-w for x = E 2**(2 w), E in [1/4, 1), q = 1 / (4 sqrt E). Exact for powers of four alone."""
    m, point = work.m, work.point
    up = m.add(x.exponent, m.constant(1))
    odd = m.negation(m.equal(m.and_(up, m.constant(1)), m.constant(0)))
    fraction = x.fraction(point)
    radicand = choose(odd, fraction.halved().known(0.0), fraction).below(1 - 2.0**-60)
    half = m.shift_right(m.add(m.add(up, m.word_of(odd)), m.constant(LIFT)), m.constant(1))
    exponent = m.subtract(m.constant((LIFT >> 1) + 2), half)
    precision = work.fmt.precision
    power = x.significand.low(precision - 1).is_zero()
    return Value(m.truth(False), inverse_root(radicand, point), exponent, zeros=3, exact=power)


_CELLS = 64


@cache
def _starts() -> tuple[float, ...]:
    """E**(-1/3) in the middle of each of 64 cells of E in [1/8, 1/4), [1/4, 1/2) and [1/2, 1), within 2**-8.5 of it."""
    return tuple(((1 + (i + 0.5) / _CELLS) * 2.0 ** (s - 3)) ** (-1 / 3) for s in range(3) for i in range(_CELLS))


def _inverse_cube_root(m: Machine, x: Real, cell: Word) -> Real:
    """x**(-1/3) within 2**-51.3: Newton's w + w (1 - x w**3) / 3, whose error is twice the square of w's, 2**-16,
    2**-31 and 2**-61 after three steps; the last one adds half a unit of 2**-52 for its sum and, for 1 - x w**3, four
    units of 2**-53 divided by 3."""
    w = m.table(_starts(), cell)
    for _ in range(3):
        cube = m.real_multiply(m.real_multiply(w, w), w)
        rest = m.real_subtract(m.real_constant(1.0), m.real_multiply(x, cube))
        w = m.real_add(w, m.real_multiply(m.real_multiply(w, rest), m.real_constant(1 / 3)))
    return w


def _two_thirds(k: int) -> Fraction:
    """The coefficient of e**k in (1 - e)**(-2/3)."""
    result = Fraction(1)
    for i in range(k):
        result *= (Fraction(2, 3) + i) / (i + 1)
    return result


def cbrt(work: Work, x: Operand) -> Value:
    """E**(1/3) 2**g for |x| = E 2**(3 g), E in [1/8, 1).

    y is an estimate of E**(-1/3) / 2 of two digits, too small by 2**-51 to 1.5 * 2**-50 of itself, and e = 1 - 8 E y**3
    below 2**-47.7; E**(1/3) / 4 = E y**2 / (1 - e)**(2/3)."""
    m, point = work.m, work.point
    # exponent + 1 = 3 g - s; the division by 3 is exact below 2**22
    lift = 3 << 20
    up = m.add(x.exponent, m.constant(lift + 3))
    third = m.shift_right(m.multiply(up, m.constant(((1 << 40) + 2) // 3)), m.constant(40))
    s = m.subtract(m.constant(2), m.subtract(up, m.multiply(third, m.constant(3))))
    exponent = m.add(third, signed(m, -lift // 3))
    fraction = x.fraction(point)
    once, twice = fraction.halved(1).known(0.0), fraction.halved(2).known(0.0)
    radicand = choose(m.equal(s, m.constant(0)), fraction, choose(m.equal(s, m.constant(1)), once, twice))
    radicand = radicand.below(1 - 2.0**-60)
    cell = m.and_(m.shift_right(fraction.digits[-1], m.constant(DIGIT - 7)), m.constant(_CELLS - 1))
    cell = m.add(cell, m.multiply(m.subtract(m.constant(2), s), m.constant(_CELLS)))
    estimate = _inverse_cube_root(m, radicand.real(), cell)
    y = of_real(m, m.real_multiply(estimate, m.real_constant(0.5 * (1 - 2.0**-50))), 1 - 2.0**-60)
    square = y.square(4)
    rest = radicand.from_minus(square.times(y, 6), constant(m, Fraction(1, 8), point), 2.0**-50.7).doubled(3)
    base = radicand.times(square, point, 0.251)
    significand = corrected(base, rest.below(2.0**-47.7), point, _two_thirds, 0.251)
    return Value(x.sign, significand, m.add(exponent, m.constant(2)), zeros=4)


def hypot(work: Work, x: Operand, y: Operand) -> Value:
    """sqrt(a**2 + b**2) 2**h, h that of the larger exponent: a in [1/2, 1), b below 1. (a**2 + b**2) / 4, or four times
    it where it is below 1/4, is E, and q = sqrt(E) / 4 an eighth or a fourth of the root."""
    m, point = work.m, work.point
    most = DIGIT * point
    swap = m.less(m.add(x.exponent, m.constant(LIFT)), m.add(y.exponent, m.constant(LIFT)))
    left, right = x.fraction(point), y.fraction(point)
    a, b = choose(swap, right, left).below(1 - 2.0**-60), choose(swap, left, right).below(1 - 2.0**-60)
    top = m.select(swap, y.exponent, x.exponent)
    distance = m.subtract(top, m.select(swap, x.exponent, y.exponent))
    b = b.right_by(shift_count(m, distance, most), most)
    total = a.square(point).plus(b.square(point), 2 - 2.0**-59).halved(2)
    low = m.less(total.digits[point - 1], m.constant(1 << DIGIT - 2))
    radicand = choose(low, total.doubled(2), total.resized(point + 1)).resized(point).below(1 - 2.0**-60)
    exponent = m.add(top, m.select(low, m.constant(3), m.constant(4)))
    # the square of the smaller one moves the root by less than a quarter of the last place, if it is so much smaller
    perhaps = m.less(distance, m.constant(work.fmt.precision // 2 + 4))
    return Value(m.truth(False), square_root(radicand, point), exponent, zeros=4, exact=perhaps)


def _hypot_cases(work: Work, x: Operand, y: Operand) -> list[Case]:
    """|x| or |y| beside a zero; infinite where an operand is, even beside a NaN."""
    m, fmt = work.m, work.fmt
    assert fmt.inf is not None
    numbers = [m.negation(operand.nan) for operand in (x, y)]
    cases: list[Case] = [
        (m.both(x.zero, numbers[1]), (_magnitude(y), 0)),
        (m.both(y.zero, numbers[0]), (_magnitude(x), 0)),
        (m.either(x.inf, y.inf), (fmt.inf, 0)),
    ]
    return cases


def _magnitude(x: Operand) -> Uint:
    return x.word.low(x.fmt.magnitude_bits).resized(x.fmt.width)


def _below_zero(work: Work, x: Operand) -> list[Case]:
    return [(x.sign, INVALID)]


FUNCTIONS = {
    "rsqrt": Function(rsqrt, _below_zero, exact=True),
    "cbrt": Function(cbrt, exact=True),
    "hypot": Function(hypot, _hypot_cases, exact=True, operands=2),
}
