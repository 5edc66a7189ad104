"""Kernels of sin, cos and tan. Errors are counted in units of u = 2**-53.

Usual operands, |x| <= 2**20, are reduced as Cody and Waite do, by q P with a q that is an integer or half of one and
|q| < 2**20, and P = pi or pi/2 = P1 + P2 + P3: P1 a multiple of 2**-30 (2**-31), P2 of 2**-62 (2**-63).

* q P1 has at most 53 bits and is exact. d = x - q P1 is at most about 2; it is a multiple of 2**-32, and so exact,
  unless the last place of x is smaller. Then |x| < 2**-8, q is 0 (d = x) or, for the cosine, 1/2 (d has u, near pi/2).
* q P2 has at most 53 bits and is exact; its difference has the rounding u of the result. |q P3| < 2**-43 has an error
  of 2**-95, and its difference another u.

No 24-bit number but 0 is nearer than 2**-32 to such a q P (a test goes through them all), so r has 3 u altogether.

``wide`` operands are reduced in integers. x = M 2**e with an integer M of 24 bits. x / (2 pi) modulo 1 is M times the
fraction of 2**e / (2 pi), of which 96 bits are taken: truncation costs M 2**-96 < 2**-72, dropping the bits below
2**-64 less than 2**-64, together less than 2**-63 turns, 2**-60 radians. The nearest quarter is taken off exactly, the
rest is converted and multiplied (2 u). Where |r| >= LEAST_ANGLE the relative error is below 2**-44 + 2 u.
"""

from __future__ import annotations

from functools import cache

from flint import arb, ctx

from tlir.floatlib.elementary.narrow.fit import PRECISION, Fit, integer_part, parts, rounded
from tlir.floatlib.elementary.narrow.outcome import Outcome
from tlir.floatlib.elementary.number import EXPONENT_BITS, SIGN, Number
from tlir.floatlib.soft.machine import Predicate, Word

USUAL = 2.0**20
LEAST_ANGLE = 2.0**-16
MAX_EXPONENT = 502
"""Operands of the wide kernels are below 2**MAX_EXPONENT."""

PI_PARTS = parts(arb.pi, 30, 62)
HALF_PI_PARTS = parts(lambda: arb.pi() / 2, 31, 63)
INVERSE_PI, TWO_OVER_PI = rounded(lambda: 1 / arb.pi()), rounded(lambda: 2 / arb.pi())
TURN = rounded(lambda: 2 * arb.pi())

SIN_HALF_TURN = Fit(lambda z: (-z / 4).hypgeom_0f1(1.5), 0.0, 2.4680, 7, 200.0, 2.0**-47.5)
SIN_QUARTER = Fit(lambda z: (-z / 4).hypgeom_0f1(1.5), 0.0, 0.6172, 6, 400.0, 2.0**-51)
COS_QUARTER = Fit(lambda z: (-z / 4).hypgeom_0f1(0.5), 0.0, 0.6172, 7, 400.0, 2.0**-56)
"""sin(sqrt z) / sqrt z for sqrt z up to pi/2 and to pi/4, and cos(sqrt z)."""


def _less(x: Number, q: Number, constants: tuple[float, ...]) -> Number:
    """x - q times the sum of the constants."""
    for constant in constants:
        x = q.times_plus(-constant, x)
    return x


def _odd(x: Number, q: Word) -> Word:
    """The lowest bit of q as a sign."""
    return x.m.shift_left(q, x.m.constant(63))


def _bounded(x: Number) -> Number:
    return x.between(-USUAL, USUAL)


def _sine_of(r: Number) -> Number:
    """sin r for |r| <= pi/2 and a little: r p(r*r), p between 0.636 and 1, within 2**-47.5 = 46 u. Horner's rule loses
    8 u, r*r and the coefficients 2 u, the product u; relative to 0.636: 90 u. With 3 u of r, whose condition number
    r cot r is at most 1: 93 u."""
    return r * (r * r).polynomial(SIN_HALF_TURN.coefficients)


def sine(x: Number) -> Outcome:
    """(-1)**q sin(x - q pi): 93 u."""
    y = _bounded(x)
    number, q = y.whole(INVERSE_PI)
    r = _less(y, number, PI_PARTS)
    return Outcome(_sine_of(r).flipped(_odd(x, q)), doubtful=abs(x) > USUAL)


def cosine(x: Number) -> Outcome:
    """cos x = -(-1)**j sin(x - (j + 1/2) pi): 93 u."""
    y = _bounded(x)
    number, j = y.times_plus(INVERSE_PI, -0.5).whole(1.0)
    r = _less(y, number + 0.5, PI_PARTS)
    sign = x.m.xor(_odd(x, j), x.m.constant(SIGN))
    return Outcome(_sine_of(r).flipped(sign), doubtful=abs(x) > USUAL)


def _sine_cosine(r: Number) -> tuple[Number, Number]:
    """Of |r| <= pi/4 and a little. p for the sine is above 0.9, and the cosine above 0.7; Horner's rule loses 4 u: 16 u
    and 12 u."""
    square = r * r
    return r * square.polynomial(SIN_QUARTER.coefficients), square.polynomial(COS_QUARTER.coefficients)


def _quotient(sine_value: Number, cosine_value: Number, odd: Word) -> Number:
    """tan of r plus a multiple of pi/2: sin/cos, or -cos/sin where the multiple is odd."""
    m = sine_value.m
    swapped = m.less(m.constant(0), odd)
    above = cosine_value.where(swapped, sine_value).flipped(odd)
    return above / sine_value.where(swapped, cosine_value)


def tan(x: Number) -> Outcome:
    """30 u; the condition number 2r / sin 2r of the reduced angle is at most pi/2, so 35 u."""
    y = _bounded(x)
    number, q = y.whole(TWO_OVER_PI)
    value = _quotient(*_sine_cosine(_less(y, number, HALF_PI_PARTS)), _odd(x, q))
    return Outcome(value, doubtful=abs(x) > USUAL)


# Wide operands


@cache
def _turns() -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """The 96 bits after the point of 2**e / (2 pi), as three words of 32, for e from -24 to MAX_EXPONENT - 24."""
    count = MAX_EXPONENT + 200
    previous, ctx.prec = ctx.prec, count + PRECISION
    try:
        scaled = integer_part(arb((1, count)) / (2 * arb.pi()))
    finally:
        ctx.prec = previous
    rows = []
    for e in range(-24, MAX_EXPONENT - 23):
        bits = (scaled >> (count - 96 - e)) & ((1 << 96) - 1)
        rows.append((bits >> 64, bits >> 32 & 0xFFFFFFFF, bits & 0xFFFFFFFF))
    first, second, third = zip(*rows, strict=True)
    return first, second, third


def _wide(x: Number) -> tuple[Word, Number]:
    """(q, r): |x| = q pi/2 + r modulo 2 pi, |r| <= pi/4, for 1 <= |x| < 2**MAX_EXPONENT."""
    m = x.m
    bits = abs(x).between(1.0, 2.0**MAX_EXPONENT * (1 - 2.0**-24)).bits
    index = m.subtract(m.shift_right(bits, m.constant(EXPONENT_BITS)), m.constant(1023 - 1))
    fraction = m.and_(bits, m.constant((1 << EXPONENT_BITS) - 1))
    integer = m.shift_right(m.or_(fraction, m.constant(1 << EXPONENT_BITS)), m.constant(EXPONENT_BITS - 23))
    # |x| = integer * 2**(E - 23) with E = index - 1, and the table starts with 2**-24
    first, second, third = (m.table(words, index) for words in _turns())
    high = m.shift_left(m.multiply(integer, first), m.constant(32))
    low = m.shift_right(m.multiply(integer, third), m.constant(32))
    turns = m.add(m.add(high, m.multiply(integer, second)), low)
    quarter = m.shift_right(m.add(turns, m.constant(1 << 61)), m.constant(62))
    rest = m.subtract(turns, m.shift_left(quarter, m.constant(62)))
    return quarter, Number(m, m.real_from_signed(rest)) * (2.0**-64 * TURN)


def _wide_angle(x: Number, turn: int) -> Outcome:
    """sin(|x| + turn pi/2)."""
    m = x.m
    quarter, r = _wide(x)
    quarter = m.add(quarter, m.constant(turn))
    sine_value, cosine_value = _sine_cosine(r)
    odd = m.shift_left(quarter, m.constant(63))
    negative = m.and_(m.shift_left(quarter, m.constant(62)), m.constant(SIGN))
    value = cosine_value.where(m.less(m.constant(0), odd), sine_value).flipped(negative)
    return Outcome(value, doubtful=_not_reduced(x, r))


def _not_reduced(x: Number, r: Number) -> Predicate:
    """Where ``_wide`` does not hold, or its relative error is too large."""
    return x.m.either(abs(x) < 1.0, abs(r) < LEAST_ANGLE)


def quadrants(x: Number) -> tuple[Number, Number]:
    """(cos x, sin x) for 1 <= x < 2**MAX_EXPONENT: within 12 u and 16 u of themselves, and 2**-60 + 2 u absolutely."""
    m = x.m
    quarter, r = _wide(x)
    sine_value, cosine_value = _sine_cosine(r)
    odd = m.less(m.constant(0), m.and_(quarter, m.constant(1)))
    second = m.and_(m.shift_left(quarter, m.constant(62)), m.constant(SIGN))
    # cos(r + pi/2) = -sin r
    other = m.and_(m.shift_left(m.add(quarter, m.constant(1)), m.constant(62)), m.constant(SIGN))
    return (
        sine_value.where(odd, cosine_value).flipped(other),
        cosine_value.where(odd, sine_value).flipped(second),
    )


def wide_sine(x: Number) -> Outcome:
    """2**-44 + 20 u: the condition number of sin at the reduced angle is at most 1."""
    outcome = _wide_angle(x, 0)
    return Outcome(outcome.value.flipped(x.sign), doubtful=outcome.doubtful)


def wide_cosine(x: Number) -> Outcome:
    """As for the sine."""
    return _wide_angle(x, 1)


def wide_tan(x: Number) -> Outcome:
    """pi/2 (2**-44 + 2 u) + 30 u."""
    m = x.m
    quarter, r = _wide(x)
    value = _quotient(*_sine_cosine(r), m.shift_left(quarter, m.constant(63)))
    return Outcome(value.flipped(x.sign), doubtful=_not_reduced(x, r))
