"""Kernels of the logarithms and of the inverse hyperbolic functions. Errors are counted in units of u = 2**-53.

log(1 + f) = 2 atanh s = s g(s*s) with s = f / (2 + f), for -0.2930 <= f <= 0.4143, so that |s| < 0.1717. g is a
polynomial of degree 7 within 2**-49 = 16 u of a function between 2 and 2.02, hence 8 u; Horner's rule loses 1 u, the
leading coefficient and its sum 2 u, and s has 2 u beside those of f. With the product: 14 u. For other bases g has the
factor in it.

k log 2 + log m with m in [sqrt 1/2, sqrt 2]: for k = 0 that is s g; otherwise |log m| is at most the sum and |k log 2|
at most twice the sum. With the roundings of log 2, of its product and of the sum: 14 u + 5 u.
"""

from __future__ import annotations

from collections.abc import Callable

from flint import acb, arb

from tlir.floatlib.elementary.narrow.fit import Fit, rounded
from tlir.floatlib.elementary.narrow.outcome import Outcome
from tlir.floatlib.elementary.number import Number, split


def _ratio(scale: Callable[[], arb]) -> Fit:
    def function(z: acb) -> acb:
        return 2 * z.hypgeom_2f1(0.5, 1, 1.5) / scale()

    return Fit(function, 0.0, 0.0295, 7, 100.0, 2.0**-49 / float(scale()))


LOG_RATIO, LOG2_RATIO, LOG10_RATIO = _ratio(lambda: arb(1)), _ratio(arb.const_log2), _ratio(arb.const_log10)
LOG2 = rounded(arb.const_log2)
LOG10_OF_2 = rounded(lambda: arb.const_log2() / arb.const_log10())
POWERS_OF_TEN = tuple(float(10**n) for n in range(11))
"""Those of at most 24 significant bits."""


def _series(f: Number, fit: Fit) -> Number:
    s = f / (f + 2.0)
    return s * (s * s).polynomial(fit.coefficients)


def log(x: Number) -> Number:
    """19 u. m - 1 is exact (Sterbenz)."""
    k, m = split(x)
    return k.times_plus(LOG2, _series(m - 1.0, LOG_RATIO))


def log2(x: Number) -> Outcome:
    """19 u. Powers of two are exact, and nothing else is (2**(p/q) is irrational)."""
    k, m = split(x)
    f = m - 1.0
    return Outcome(k + _series(f, LOG2_RATIO), f.equals(0.0), k)


def log10(x: Number) -> Outcome:
    """19 u. Powers of ten are exact, the others irrational: the rounded result at such an operand is the integer."""
    k, m = split(x)
    value = k.times_plus(LOG10_OF_2, _series(m - 1.0, LOG10_RATIO))
    n = value.between(0.0, float(len(POWERS_OF_TEN) - 1)).rounded()
    exact = x.equals(Number(x.m, x.m.table(POWERS_OF_TEN, n.integer())))
    return Outcome(value, exact, n)


def log1p_of(x: Number) -> Number:
    """log(1 + x) of a float64 number x > -1.

    1 + x = s + c exactly, by Knuth's sum, s = 2**k m; then f = (m - 1) + c 2**-k, whose rounding is its only error. For
    k = 0 it is relative to f: 15 u. Otherwise the sum is at least 0.34, and u of f an error of u: 22 u.
    Where x is large c 2**-k may be less than a float64 number can be; then it does not count."""
    s = x + 1.0
    other = s - x
    c = (x - (s - other)) + (1.0 - other)
    k, m = split(s)
    # 2**-k in two factors, of which neither leaves the range
    f = (m - 1.0) + c * _inverse_power(k)
    return k.times_plus(LOG2, _series(f, LOG_RATIO))


def _inverse_power(k: Number) -> Number:
    return k.like(1.0).scaled((-k).maximum(-1000.0).integer())


def log_plus_one(x: Number) -> Number:
    """22 u."""
    return log1p_of(x).with_sign(x.sign)


def asinh(x: Number) -> Number:
    """log1p(a + a*a / (1 + sqrt(1 + a*a))) of positive terms (6 u) for a = |x|. The condition number of log1p is at
    most 1 there: 28 u. An infinite a gives NaN; that is left to the caller."""
    a = abs(x)
    square = a * a
    return log1p_of(a + square / (1.0 + (1.0 + square).sqrt())).with_sign(x.sign)


def acosh(x: Number) -> Number:
    """log1p(t + sqrt(2t + t*t)) with t = x - 1 >= 0, of positive terms (6 u): 28 u."""
    t = x - 1.0
    return log1p_of(t + t.times_plus(t, t + t).sqrt())


def atanh(x: Number) -> Number:
    """log1p(2a / (1 - a)) / 2 for a = |x| < 1 (3 u): 26 u."""
    a = abs(x)
    return (log1p_of((a + a) / (1.0 - a)) * 0.5).with_sign(x.sign)
