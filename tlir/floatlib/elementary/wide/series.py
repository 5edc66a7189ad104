"""Polynomials in a small fixed-point number, by Horner's rule with as many digits as each step needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import ceil, log2

from tlir.floatlib.elementary.wide.fixed import DIGIT, Fixed, choose
from tlir.floatlib.elementary.wide.tables import Real, constant
from tlir.floatlib.elementary.wide.work import Operand, Work
from tlir.floatlib.soft.machine import Predicate

_SPARE_BITS = 3
"""So far below a unit of the result lie the units of the steps."""


def count_terms(small: float, point: int, coefficient: Callable[[int], float]) -> tuple[int, float]:
    """How many terms coefficient(k) * small**k, k from 0 on, bring the rest below an eighth of a unit of 2**(-30 *
    point), and a bound on that rest; the coefficients fall, and small is below 1/2, so it is less than twice its first
    term."""
    k = 1
    while True:
        rest = 2.0 * coefficient(k) * small**k
        if rest < 2.0 ** (-DIGIT * point - _SPARE_BITS):
            return k, rest * (1 + 2.0**-40)
        k += 1


def polynomial(
    x: Fixed,
    coefficients: Sequence[Real | Fraction | int],
    point: int,
    alternating: bool = False,
    negative: Predicate | None = None,
) -> Fixed:
    """c[0] + c[1] x + c[2] x**2 + ...; ``alternating``: c[0] - c[1] x + c[2] x**2 - ..., whose partial results must be
    positive; ``negative``: the one where it holds, of -x that is, and the other elsewhere.

    The step of x**k has units that x**k brings below an eighth of the result's. Every step has the error of a
    constant, of x cut off, and of a product with its addend, which is multiplied by x in the next one."""
    small = -log2(x.limit)
    result: Fixed | None = None
    for k in reversed(range(len(coefficients))):
        digits = max(1, min(point, ceil((DIGIT * point + _SPARE_BITS - small * k) / DIGIT)))
        term = constant(x.m, coefficients[k], digits)
        if result is None:
            result = term
            continue
        factor = x.to(digits) if digits < x.point else x
        if negative is not None:
            result = term.plus_signed(factor.times(result, digits), negative)
        elif alternating:
            result = factor.from_minus(result, term)
        else:
            result = factor.times_plus(result, term)
    assert result is not None
    return result


def odd_series(
    work: Work,
    x: Operand,
    near: Predicate,
    size: Fixed,
    exponent: int,
    coefficient: Callable[[int], Fraction],
    alternating: bool = False,
) -> Fixed:
    """f (1 ± c[1] x**2 + c[2] x**4 ± ...) / 2 where ``near``, f in [1/2, 1) being the significand of x: times
    2**(x.exponent + 2) it is |x| (1 ± c[1] x**2 + ...).

    ``size`` is |x| in fixed point, less than 2**exponent where near holds; c[0] is 1, the coefficients fall. The number
    has the fraction digits of ``size``."""
    m, point = work.m, work.point
    small = choose(near, size.resized(size.point), constant(m, 0, size.point)).to(point).below(2.0**exponent)
    square = small.square(point)
    terms, rest = count_terms(square.limit, point, lambda k: float(coefficient(k)) / 2)
    series = polynomial(square, [coefficient(k) / 2 for k in range(terms)], point, alternating).with_error(rest)
    return x.fraction(size.point).times(series, size.point, 0.51)
