"""Elementary functions in float64 arithmetic with a proven error bound, for operands of at most 24 bits.

Only +, -, *, / and sqrt are used (IEEE 754 fixes them to a relative error of u = 2**-53 each), and exact operations:
frexp, ldexp, rint, comparisons, conversions of integers. So the results do not depend on the platform's mathematics
library. Coefficients are computed here, from integers or by Arb, and rounded once to float64.

``ERROR`` = 2**-40 bounds the relative error of every kernel. The derivations count errors in units of u and neglect
terms of order u**2; they leave a factor of more than 2 everywhere, so neither constant nor count is tight:

* ``_exp_of(x, k, r)``: e**r for |r| < 0.0055 is 1 + r + ... + r**5/120, remainder below r**6/700 < 2**-54. The terms
  after 1 add up to less than 0.0055, so their errors count for less than 0.1 u; with the table entry (0.5 u), its
  product and the sum the result has less than 4 u. The reduced argument r has an absolute error of 4 u: k * HIGH is
  exact (k has 17 bits, HIGH 33), x - k * HIGH is within u * |x - k * HIGH|, below 0.02 u, and k * LOW, less than
  2**-20, adds its own u. Total: 8 u = 2**-50.
* ``_log_ratio(s)``: 2 atanh s = 2s (1 + s**2/3 + ...) for |s| < 0.1716 (s**2 < 0.02945) up to s**20/21, remainder below
  0.02945**11/23/0.97 < 2**-60. Sum of positive terms, 4 u; s as a quotient has at most 3 u. Total: 8 u.
* ``_log``: k log 2 + log m with m in [sqrt 1/2, sqrt 2]: for k = 0 that is the above; otherwise |k log 2| is at most
  twice the sum, so rounding errors of both terms count twice: 2 (2 u + 8 u) + u < 24 u = 2**-48.4.
* Compositions multiply by the condition number of the outer function, stated at each.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from math import factorial
from typing import NamedTuple

import numpy as np
from flint import arb, ctx, fmpz
from numpy.typing import NDArray

Floats = NDArray[np.float64]

ERROR = 2.0**-40
MAX_PRECISION = 24
MAX_EXPONENT = 500
"""Operands are 0.1... * 2**e with |e| <= 502, so squares and quotients stay inside float64's range."""

FAR = 600.0
"""e**-600 < 2**-865 and e**600 > 2**865 round like everything beyond them in formats of exponents up to 500."""

# Constants, as exact integers rounded once


def rounded(value: Callable[[], arb]) -> float:
    """The float64 number nearest to a real constant."""
    previous, ctx.prec = ctx.prec, 300
    try:
        significand, exponent = value().mid().man_exp()
    finally:
        ctx.prec = previous
    # Python's division of integers is correctly rounded
    if exponent >= 0:
        return float(int(significand) << int(exponent))
    return int(significand) / (1 << -int(exponent))


def _rounded_each(value: Callable[[int], arb], numbers: range) -> list[float]:
    return [rounded(partial(value, n)) for n in numbers]


def _floor(value: arb) -> int:
    """The integer part of a ball that holds numbers of only one."""
    floor = value.floor().unique_fmpz()
    if floor is None:
        raise ArithmeticError(f"the precision does not decide the integer part of {value}")
    return int(floor)


def _high_part(value: Callable[[], arb], bits: int) -> tuple[float, float]:
    """(high, low): the constant truncated to a multiple of 2**-bits, and the rest rounded."""
    previous, ctx.prec = ctx.prec, 300
    try:
        scaled = _floor(value() * fmpz(1 << bits))
    finally:
        ctx.prec = previous
    high = scaled / (1 << bits)
    return high, rounded(lambda: value() - arb(scaled) / (1 << bits))


STEPS = 64
LOG2 = rounded(arb.const_log2)
INVERSE_STEP = rounded(lambda: STEPS / arb.const_log2())
STEP_HIGH, STEP_LOW = _high_part(lambda: arb.const_log2() / STEPS, 39)
POWERS = np.array(_rounded_each(lambda j: (arb.const_log2() * j / STEPS).exp(), range(STEPS)))
INVERSE_LOG2 = rounded(lambda: 1 / arb.const_log2())
INVERSE_LOG10 = rounded(lambda: 1 / arb.const_log10())
LOG10_OF_2 = rounded(lambda: arb.const_log2() / arb.const_log10())
PI, HALF_PI = rounded(arb.pi), rounded(lambda: arb.pi() / 2)
SQRT_HALF = rounded(lambda: arb(0.5).sqrt())

EXP_TAYLOR = [1 / factorial(n) for n in range(9)]
ATANH_SERIES = [2 / (2 * n + 1) for n in range(11)]
SIN_TAYLOR = [(-1) ** n / factorial(2 * n + 1) for n in range(8)]
COS_TAYLOR = [(-1) ** n / factorial(2 * n) for n in range(9)]
ATAN_SERIES = [(-1) ** n / (2 * n + 1) for n in range(10)]
ATAN_STEPS = np.array(_rounded_each(lambda j: (arb(j) / 4).atan(), range(5)))
ERF_SERIES = _rounded_each(lambda n: 2 * (-1) ** n / (arb.pi().sqrt() * factorial(n) * (2 * n + 1)), range(13))


def _horner(coefficients: list[float], x: Floats) -> Floats:
    """The polynomial with these coefficients, the constant one first."""
    total = np.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total *= x
        total += coefficient
    return total


# Exponentials


def _exp_of(quotient: Floats, r: Floats) -> Floats:
    """2**(quotient / 64) * e**r."""
    k = quotient.astype(np.int64)
    tail = r * _horner(EXP_TAYLOR[1:6], r)
    power = POWERS[k & (STEPS - 1)]
    return np.ldexp(power + power * tail, (k >> 6).astype(np.int32))


def _clip(x: Floats) -> Floats:
    return np.clip(x, -FAR, FAR)


def exponential(x: Floats) -> Floats:
    """e**x: 8 u."""
    x = _clip(x)
    k = np.rint(x * INVERSE_STEP)
    return _exp_of(k, (x - k * STEP_HIGH) - k * STEP_LOW)


def exp2(x: Floats) -> Floats:
    """x - k/64 is exact, its product with log 2 has 2 u of 0.0055: 8 u. Integers are exact."""
    x = np.clip(x, -900.0, 900.0)
    k = np.rint(x * STEPS)
    return _exp_of(k, (x - k / STEPS) * LOG2)


def exponential_minus_one(x: Floats) -> Floats:
    """|x| < 1/16: x + ... + x**8/8!, remainder below 2**-50 of x, and 4 u. Elsewhere |e**x - 1| > e**x / 18, so 8 u of
    e**x are 144 u: 2**-45.8."""
    return np.where(np.abs(x) < 1 / 16, x * _horner(EXP_TAYLOR[1:], np.clip(x, -1, 1)), exponential(x) - 1)


def logistic(x: Floats) -> Floats:
    """1 / (1 + e**-x): sums and quotients of positive numbers, 10 u."""
    return 1 / (1 + exponential(-x))


def tanh(x: Floats) -> Floats:
    """m / (m + 2) with m = e**(2|x|) - 1, whose relative error counts at most once: 2**-45."""
    m = exponential_minus_one(np.minimum(2 * np.abs(x), 100.0))
    return np.copysign(m / (m + 2), x)


def sinh(x: Floats) -> Floats:
    """(m + m / (m + 1)) / 2 with m = e**|x| - 1, condition number at most 2: 2**-44."""
    m = exponential_minus_one(np.minimum(np.abs(x), FAR))
    return np.copysign((m + m / (m + 1)) * 0.5, x)


def cosh(x: Floats) -> Floats:
    """(e**|x| + e**-|x|) / 2: 10 u."""
    power = exponential(np.abs(x))
    return (power + 1 / power) * 0.5


# Logarithms


def _log_ratio(s: Floats) -> Floats:
    return s * _horner(ATANH_SERIES, s * s)


def _split(x: Floats) -> tuple[Floats, Floats]:
    """(k, m) with x = 2**k * m, sqrt 1/2 <= m < sqrt 2, exact."""
    m, exponent = np.frexp(x)
    low = m < SQRT_HALF
    return exponent - low.astype(np.float64), np.where(low, 2 * m, m)


def log(x: Floats) -> Floats:
    """24 u. m - 1 is exact (Sterbenz), as 24-bit numbers add m + 1 within u."""
    k, m = _split(x)
    return k * LOG2 + _log_ratio((m - 1) / (m + 1))


def log2(x: Floats) -> Floats:
    """k + log m / log 2, with one more product: 30 u. Powers of two are exact."""
    k, m = _split(x)
    return k + _log_ratio((m - 1) / (m + 1)) * INVERSE_LOG2


def log10(x: Floats) -> Floats:
    """30 u, as for log2."""
    k, m = _split(x)
    return k * LOG10_OF_2 + _log_ratio((m - 1) / (m + 1)) * INVERSE_LOG10


def log_plus_one(x: Floats) -> Floats:
    """|x| < 1/4: 2 atanh(x / (2 + x)) with |s| < 0.143, 8 u. Elsewhere log of 1 + x, whose u makes an absolute error
    of u beside |log| > 0.22: 24 u + 5 u. Operands may be rounded: the function's condition number is at most 1 above
    0."""
    near = np.abs(x) < 0.25
    small = np.where(near, x, 0.0)
    return np.where(near, _log_ratio(small / (2 + small)), log(np.where(near, 1.0, 1 + x)))


def asinh(x: Floats) -> Floats:
    """log1p(a + a*a / (1 + sqrt(1 + a*a))) of positive terms (6 u) for a = |x|: 40 u."""
    a = np.abs(x)
    square = a * a
    return np.copysign(log_plus_one(a + square / (1 + np.sqrt(1 + square))), x)


def acosh(x: Floats) -> Floats:
    """log1p(t + sqrt(2t + t*t)) with t = x - 1 >= 0, of positive terms: 40 u."""
    t = x - 1
    return log_plus_one(t + np.sqrt(2 * t + t * t))


def atanh(x: Floats) -> Floats:
    """log1p(2a / (1 - a)) / 2 for a = |x| (3 u): 40 u."""
    a = np.abs(x)
    return np.copysign(log_plus_one(2 * a / (1 - a)) * 0.5, x)


# Trigonometric functions

LEAST_ANGLE = 2.0**-16


@cache
def _turns() -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64]]:
    """The 96 bits after the point of 2**e / (2 pi), as three words of 32, for e from -MAX_EXPONENT on."""
    count = 2 * MAX_EXPONENT + 50
    previous, ctx.prec = ctx.prec, 2 * count + 200
    try:
        scaled = _floor(arb((1, count + 100)) / (2 * arb.pi()))
    finally:
        ctx.prec = previous
    rows = []
    for e in range(-MAX_EXPONENT, count - MAX_EXPONENT):
        bits = (scaled >> (count + 4 - e)) if count + 4 - e >= 0 else scaled << (e - count - 4)
        bits &= (1 << 96) - 1
        rows.append((bits >> 64, bits >> 32 & 0xFFFFFFFF, bits & 0xFFFFFFFF))
    first, second, third = (np.array(column, dtype=np.uint64) for column in zip(*rows, strict=True))
    return first, second, third


def _reduce(x: Floats) -> tuple[NDArray[np.uint64], Floats]:
    """(q, r): x = q pi/2 + r modulo 2 pi, |r| <= pi/4.

    x = M * 2**e with an integer M of 24 bits. x / (2 pi) modulo 1 is M times the fraction of 2**e / (2 pi), of which 96
    bits are taken: truncation costs M * 2**-96 < 2**-72, dropping the bits below 2**-64 less than 2**-64, together less
    than 2**-63 turns, 2**-60 radians. The nearest quarter is taken off exactly, the rest is converted and multiplied
    (2 u). Angles below pi/4 are kept. Where |r| >= LEAST_ANGLE the relative error is below 2**-44 + 2 u."""
    m, exponent = np.frexp(np.abs(x))
    integer = np.ldexp(m, MAX_PRECISION).astype(np.uint64)
    index = exponent.astype(np.int64) - MAX_PRECISION + MAX_EXPONENT
    first, second, third = (words[np.clip(index, 0, words.size - 1)] for words in _turns())
    with np.errstate(over="ignore"):
        turns = ((integer * first) << np.uint64(32)) + integer * second + ((integer * third) >> np.uint64(32))
        quarter = (turns + np.uint64(1 << 61)) >> np.uint64(62)
        rest = (turns - (quarter << np.uint64(62))).view(np.int64).astype(np.float64)
    small = np.abs(x) < 0.75
    r = np.where(small, np.abs(x), rest * (2.0**-64 * 2 * PI))
    return np.where(small, np.uint64(0), quarter), r


def _sin_cos(r: Floats) -> tuple[Floats, Floats]:
    """sin r = r - ... - r**15/15!, remainder below 2**-54 of r; cos r = 1 - ... + r**16/16!, remainder below 2**-58;
    |r| <= pi/4. The leading terms dominate: 4 u each."""
    square = r * r
    return r * _horner(SIN_TAYLOR, square), _horner(COS_TAYLOR, square)


def _angle(x: Floats, turn: int) -> tuple[Floats, Floats]:
    """(sin, cos) of |x| + turn * pi/2; NaN where the reduced angle is too small for the bound on the error."""
    quarter, r = _reduce(x)
    r = np.where((np.abs(r) < LEAST_ANGLE) & (np.abs(x) >= 0.75), np.nan, r)
    sine, cosine = _sin_cos(r)
    quarter = (quarter + np.uint64(turn)) & np.uint64(3)
    odd, negative = (quarter & np.uint64(1)) == 1, quarter >= 2
    first, second = np.where(odd, cosine, sine), np.where(odd, -sine, cosine)
    return np.where(negative, -first, first), np.where(negative, -second, second)


def sine(x: Floats) -> Floats:
    """2**-44 (1 + 2**-5): the condition number of sin at the reduced angle is at most 1."""
    return np.where(np.signbit(x), -1.0, 1.0) * _angle(x, 0)[0]


def cosine(x: Floats) -> Floats:
    """As sine. The absolute error of the reduced angle is 2**-60 and the cosine of the quarters 0 and 2 above 0.7."""
    return _angle(x, 1)[0]


def tan(x: Floats) -> Floats:
    """The quotient; its condition number at the reduced angle is at most pi/2: 2**-43."""
    sine, cosine = _angle(x, 0)
    return np.where(np.signbit(x), -1.0, 1.0) * (sine / cosine)


def _atan(a: Floats) -> Floats:
    """atan a for a >= 0, infinity included. b = min(a, 1/a) is j/4 + ... with atan b = atan(j/4) + atan t,
    t = (b - j/4) / (1 + b j/4), |t| <= 1/8: t - ... - t**19/19, remainder below 2**-64 of t. For j = 0, t = b;
    otherwise the result is above 0.12 and t an error of 4 u * |t| away: 8 u. pi/2 - atan(1/a) is above pi/4: 12 u."""
    inverted = a > 1
    b = np.where(inverted, 1 / a, a)
    j = np.rint(4 * b)
    c = j * 0.25
    t = (b - c) / (1 + b * c)
    angle = ATAN_STEPS[j.astype(np.int64)] + t * _horner(ATAN_SERIES, t * t)
    return np.where(inverted, HALF_PI - angle, angle)


def atan(x: Floats) -> Floats:
    """12 u."""
    return np.copysign(_atan(np.abs(x)), x)


def asin(x: Floats) -> Floats:
    """atan(a / sqrt((1 - a)(1 + a))) for a = |x|, an argument within 4 u; atan's condition is at most 1: 16 u."""
    a = np.abs(x)
    return np.copysign(_atan(a / np.sqrt((1 - a) * (1 + a))), x)


def acos(x: Floats) -> Floats:
    """2 atan sqrt((1 - x) / (1 + x)), 16 u; infinity, and so pi, at -1."""
    return 2 * _atan(np.sqrt((1 - x) / (1 + x)))


def atan2(y: Floats, x: Floats) -> Floats:
    """atan |y/x|, or pi less that for x < 0: 16 u."""
    angle = _atan(np.abs(y) / np.abs(x))
    return np.copysign(np.where(x < 0, PI - angle, angle), y)


# Error functions

CELL = 0.125
ERFC_END = 20.0
ERF_END = 6.0


@cache
def _erf_cells() -> Floats:
    """Taylor coefficients (12, cells) of erf at the middle of each cell, by g = erf' and g' = -2x g: the coefficients
    of g satisfy (n + 1) g(n + 1) = -2 (c g(n) + g(n - 1))."""
    columns = []
    previous, ctx.prec = ctx.prec, 400
    try:
        for cell in range(int(ERF_END / CELL)):
            c = arb(2 * cell + 1) / 16
            g = [2 / arb.pi().sqrt() * (-c * c).exp()]
            g.append(-2 * c * g[0])
            for n in range(1, 10):
                g.append(-2 * (c * g[n] + g[n - 1]) / (n + 1))
            columns.append([c.erf(), *(g[n] / (n + 1) for n in range(11))])
    finally:
        ctx.prec = previous
    return _rounded_table(columns)


@cache
def _scaled_erfc_cells() -> Floats:
    """Taylor coefficients (13, cells) of w(x) = e**(x*x) erfc(x) at the middle of each cell, by w' = 2x w - 2/sqrt pi:
    (n + 1) w(n + 1) = 2 c w(n) + 2 w(n - 1)."""
    columns = []
    previous, ctx.prec = ctx.prec, 400
    try:
        for cell in range(int(ERFC_END / CELL)):
            c = arb(2 * cell + 1) / 16
            w = [(c * c).exp() * c.erfc()]
            w.append(2 * c * w[0] - 2 / arb.pi().sqrt())
            for n in range(1, 12):
                w.append((2 * c * w[n] + 2 * w[n - 1]) / (n + 1))
            columns.append(w)
    finally:
        ctx.prec = previous
    return _rounded_table(columns)


def _itself(value: arb) -> arb:
    return value


def _rounded_table(columns: list[list[arb]]) -> Floats:
    """The transposed table in float64."""
    return np.array([[rounded(partial(_itself, value)) for value in column] for column in columns]).T.copy()


def _cell_polynomial(table: Floats, a: Floats) -> Floats:
    """The Taylor polynomial of the cell of a; a - c is exact."""
    cell = np.minimum((a * (1 / CELL)).astype(np.int64), table.shape[1] - 1)
    h = a - (cell * CELL + CELL / 2)
    total = table[-1][cell]
    for row in table[-2::-1]:
        total = total * h + row[cell]
    return total


def erf(x: Floats) -> Floats:
    """a = |x| < 1/2: a times the series in a*a, whose terms alternate and fall by more than 12, to 2**-60: 4 u.

    Up to 6 the Taylor polynomial of degree 11: |H_k(c)| e**(-c*c/2) < 1.09 sqrt(2**k k!) bounds the 12th coefficient by
    2**-10, and |h|**12 <= 2**-48; 4 u. From 6 on 1 - erf < 2**-55."""
    a = np.abs(x)
    small = np.minimum(a, 0.5)
    near = small * _horner(ERF_SERIES, small * small)
    far = np.where(a < ERF_END, _cell_polynomial(_erf_cells(), np.minimum(a, ERF_END)), 1.0)
    return np.copysign(np.where(a < 0.5, near, far), x)


def erfc(x: Floats) -> Floats:
    """1 - erf x, above 0.47, for x < 1/2: 10 u. Elsewhere e**(-x*x) w(x): x*x is exact and the exponential has 8 u.

    w**(n) / w is the mean of (2t)**n for a density of t proportional to e**(-t*t - 2xt), which falls as x grows: at
    x = 0 it is 2**n gamma((n + 1)/2) / gamma(1/2). So the 13th coefficient is below 2**-10 w, and |h|**13 <= 2**-52;
    4 u. Beyond 20 the result is that at 20, below 2**-576, which rounds like everything smaller."""
    far = np.clip(x, 0.5, ERFC_END)
    return np.where(
        x < 0.5, 1 - erf(np.minimum(x, 0.5)), exponential(-far * far) * _cell_polynomial(_scaled_erfc_cells(), far)
    )


# Roots and powers


def rsqrt(x: Floats) -> Floats:
    """1 / sqrt x: 2 u. Powers of four are exact."""
    return 1 / np.sqrt(x)


def cbrt(x: Floats) -> Floats:
    """e**(log(m) / 3) for |x| = m * 2**(3q), 1/8 <= m < 1: the logarithm, below 2.1, has 24 u, so the exponent an
    absolute error of 18 u and the result 26 u."""
    m, exponent = np.frexp(np.abs(x))
    q = -((-exponent) // 3)
    m = np.ldexp(m, exponent - 3 * q)
    return np.copysign(np.ldexp(exponential(log(m) / 3), q), x)


def hypot(x: Floats, y: Floats) -> Floats:
    """The squares are exact: 2 u."""
    return np.sqrt(x * x + y * y)


def power(x: Floats, y: Floats) -> Floats:
    """e**(y log |x|), negative for x < 0 and odd y (NaN for a y that is no integer). The exponent, clipped at 600,
    has 25 u of it: an absolute error of 15000 u, 2**-39.1. ``POWER_ERROR`` is twice that."""
    magnitude = exponential(_clip(y * log(np.abs(x))))
    integral = np.rint(y) == y
    half = y * 0.5
    odd = integral & (np.rint(half) != half)
    return np.where(x > 0, magnitude, np.where(integral, np.where(odd, -magnitude, magnitude), np.nan))


POWER_ERROR = 2.0**-38

Predicate = Callable[..., NDArray[np.bool_]]


class Kernel(NamedTuple):
    """A kernel, where it holds among finite operands other than 0, and where the function has no value there."""

    function: Callable[[Floats], Floats]
    inside: Predicate
    outside: Predicate


def _always(x: Floats) -> NDArray[np.bool_]:
    return np.ones(x.shape, dtype=np.bool_)


def _never(x: Floats) -> NDArray[np.bool_]:
    return np.zeros(x.shape, dtype=np.bool_)


def _positive(function: Callable[[Floats], Floats]) -> Kernel:
    return Kernel(function, lambda x: x > 0, lambda x: x < 0)


def _unit(function: Callable[[Floats], Floats]) -> Kernel:
    return Kernel(function, lambda x: np.abs(x) < 1, lambda x: np.abs(x) > 1)


UNARY: dict[str, Kernel] = {
    **{
        name: Kernel(function, _always, _never)
        for name, function in {
            "exponential": exponential,
            "exponential_minus_one": exponential_minus_one,
            "exp2": exp2,
            "logistic": logistic,
            "tanh": tanh,
            "sinh": sinh,
            "cosh": cosh,
            "asinh": asinh,
            "sine": sine,
            "cosine": cosine,
            "tan": tan,
            "atan": atan,
            "erf": erf,
            "erfc": erfc,
            "cbrt": cbrt,
        }.items()
    },
    "log": _positive(log),
    "log2": _positive(log2),
    "log10": _positive(log10),
    "rsqrt": _positive(rsqrt),
    "log_plus_one": Kernel(log_plus_one, lambda x: x > -1, lambda x: x < -1),
    "acosh": Kernel(acosh, lambda x: x > 1, lambda x: x < 1),
    "atanh": _unit(atanh),
    "asin": _unit(asin),
    "acos": _unit(acos),
}


def _nowhere(x: Floats, y: Floats) -> NDArray[np.bool_]:
    return _never(x)


BINARY: dict[str, tuple[Callable[[Floats, Floats], Floats], Predicate]] = {
    "atan2": (atan2, _nowhere),
    "hypot": (hypot, _nowhere),
    "power": (power, lambda x, y: (x < 0) & (np.rint(y) != y)),
}
"""Kernels, and where the function has no value among finite operands other than 0."""


def _is_power_of_two(x: Floats) -> NDArray[np.bool_]:
    return np.asarray(np.frexp(x)[0] == 0.5)


MAY_BE_EXACT: dict[str, Predicate] = {
    "exp2": lambda x: np.rint(x) == x,
    "log2": _is_power_of_two,
    "log10": lambda x: np.rint(x) == x,
    "rsqrt": _is_power_of_two,
    "cbrt": _always,
    "hypot": lambda x, y: _always(x),
    "power": lambda x, y: _always(x),
}
"""Where a result other than 0 can be exact, at operands other than 0: there INEXACT is not certain."""
