"""Kernels of the Hurwitz zeta function and of polygamma, for q > 0. Errors are counted in units of u = 2**-53.

By Euler and Maclaurin, with N = 9, Q = q + N and the Bernoulli numbers b,

    zeta(s, q) = sum of (q + k)**-s for k < N, and Q**-s (Q / (s - 1) + 1/2 + sum of T_j for 1 <= j <= M = 8),
    T_j = b_2j / (2j)! s (s + 1) ... (s + 2j - 2) / Q**(2j - 1).

The derivatives of x**-s have alternating signs, so what is left out is less than the next term (NIST Digital Library of
Mathematical Functions, 2.10(i)). With K = 2M + 1 and |b_(K+1)| / (K + 1)! < 2.1 / (2 pi)**(K + 1) that is, relative to
q**-s, which is less than the whole, at most 2.1 (2 pi)**-(K + 1) times the gamma functions' quotient G(s + K) / G(s)
times Q**-K (1 - N/Q)**s. The greatest value of the last two for any Q is at Q = N (1 + s/K). By Stirling's formula, the
correction of whose logarithm falls, G(s + K) / G(s) < (s + K)**(s + K) / s**s / e**K. So everything with s in it
cancels: (K / (2 pi e N))**K 2.1 / (2 pi) < 2**-57.

A power is e**t, t = -s log(q + k), where q + k and so the logarithm have errors of u, and the logarithm 20 u more: of
the power 12 u and s (21 u |log| + 1.1 u). Where t is clipped, to between -600 and 480, a power is outside every format
and rounds like what it is instead; the whole is less than 2**110 times the first power, so it is, too, if that is, and
a quarter of it is error enough. Otherwise the error is less than that: s |log q| < 600, and (q + k)**-s times s u
is far less than q**-s. Where s/Q is too large for the terms T_j it is clipped to 64: (1 - N/Q)**s, which they count
beside q**-s, is below e**(-N s/Q) = e**-576.

|T_j| / q**-s adds up to less than 0.1 beside Q**-s for all s and q, as it does for r = s/Q from 0 on by
((r + 16/9) / 2 pi)**(2j - 1) e**(-9 r) / pi: their rounding, of 30 u and less, counts little. The other two are
positive. Together the bracket has 6 u of itself and 3 u of q**-s.
"""

from __future__ import annotations

from functools import partial
from math import factorial, inf

from flint import arb

from tlir.floatlib.elementary.narrow.exp import FAR, exponential
from tlir.floatlib.elementary.narrow.fit import rounded
from tlir.floatlib.elementary.narrow.gamma import digamma, sin_pi
from tlir.floatlib.elementary.narrow.log import log
from tlir.floatlib.elementary.narrow.outcome import Outcome
from tlir.floatlib.elementary.number import Number
from tlir.floatlib.soft.machine import Predicate

ULP = 2.0**-53
COUNT, TERMS = 9, 8
LARGEST_RATIO = 64.0
LARGEST_POWER, SMALLEST = 480.0, 2.0**-870
LARGEST_ORDER = 64
"""Of polygamma: its factorial is below 2**297, so that what was clipped at e**-600 remains outside every format."""


def _bernoulli(j: int) -> arb:
    return arb.bernoulli(2 * j) / factorial(2 * j)


BERNOULLI = tuple(rounded(partial(_bernoulli, j)) for j in range(1, TERMS + 1))
FACTORIALS = tuple(float(factorial(n)) for n in range(LARGEST_ORDER + 1))


def _power(s: Number, x: Number, exact: bool = False) -> tuple[Number, Number]:
    """(x**-s, its absolute error). ``exact``: x has no error."""
    logarithm = log(x)
    value = exponential(-(s * logarithm).between(-LARGEST_POWER, FAR))
    slope = abs(logarithm).times_plus(21 * ULP, 0.0 if exact else 1.1 * ULP)
    return value, value * s.times_plus(slope, 12 * ULP)


def _hurwitz(s: Number, q: Number) -> tuple[Number, Number]:
    """(value, absolute error) for s > 1 and q > 0, both below 2**502."""
    total, error = _power(s, q, exact=True)
    for k in range(1, COUNT):
        value, width = _power(s, q + float(k))
        total, error = total + value, error + width
    end = q + float(COUNT)
    inverse = 1.0 / end
    ratio = s * inverse
    small = (ratio.minimum(LARGEST_RATIO) * end).where(ratio > LARGEST_RATIO, s)
    # the product s (s + 1) / Q**2 and its like, from the last term to the first
    bracket = s.like(BERNOULLI[-1])
    for j in range(TERMS - 1, 0, -1):
        step = (small + float(2 * j - 1)) * inverse * ((small + float(2 * j)) * inverse)
        bracket = bracket.times_plus(step, BERNOULLI[j - 1])
    bracket = (bracket * (small * inverse)) + 0.5 + end / (s - 1.0)
    value, width = _power(s, end)
    rest = bracket * value
    width = abs(bracket) * width + abs(rest) * (8 * ULP)
    value = (total + rest).maximum(SMALLEST)
    return value, (error + width + total * (16 * ULP)).minimum(value * 0.25)


def _whole(x: Number) -> Predicate:
    return x.equals(x.rounded())


def zeta_inside(s: Number, q: Number) -> Predicate:
    """Finite s > 1 and q, positive or, where s is whole, not whole."""
    m = s.m
    below = m.both(m.both(_whole(s), m.negation(_whole(q))), q > -inf)
    proper = m.either(q > 0.0, below)
    return m.both(m.both(m.both(s > 1.0, s < inf), q < inf), proper)


def zeta(s: Number, q: Number) -> Outcome:
    """Below 0 it is left to the specification."""
    value, error = _hurwitz(s, q.maximum(2.0**-510))
    return Outcome(value, doubtful=q < 0.0, absolute=error)


def polygamma_inside(n: Number, x: Number) -> Predicate:
    """A finite whole n >= 0, and a finite x that is no pole."""
    m = n.m
    order = m.both(m.both(n > -0.5, n < inf), _whole(n))
    return m.both(m.both(order, x < inf), m.either(x > 0.0, m.both(x < 0.0, m.negation(_whole(x)))))


def polygamma(n: Number, x: Number) -> Outcome:
    """(-1)**(n + 1) n! zeta(n + 1, x); as digamma for n = 0. For n = 1 and x < 0 (pi / sin pi x)**2 less the value at
    1 + |x| (DLMF 5.15.6), of 32 u and the other's error and 2 u more, for an operand that has u. Otherwise it is left
    to the specification below 0, as are orders above 64."""
    m = n.m
    zero, negative = n.equals(0.0), x < 0.0
    reflected = m.both(n.equals(1.0), negative)
    order = abs(n).minimum(float(LARGEST_ORDER))
    q = (1.0 - x).where(reflected, x)
    value, error = _hurwitz(order.maximum(1.0) + 1.0, q.maximum(2.0**-510))
    factor = Number(m, m.table(FACTORIALS, order.integer()))
    value, error = value * factor, error * factor
    half = order * 0.5
    value = (-value).where(half.equals(half.rounded()), value)
    r = x - x.rounded()
    slope = 1.0 / sin_pi(r, r * r)
    square = slope * slope
    value = (square - value).where(reflected, value)
    error = (error + (square + abs(value)) * (36 * ULP)).where(reflected, error)
    other = digamma(x)
    assert other.absolute is not None
    doubtful = m.either(m.both(negative, n > 1.0), n > float(LARGEST_ORDER))
    return Outcome(other.value.where(zero, value), doubtful=doubtful, absolute=other.absolute.where(zero, error))
