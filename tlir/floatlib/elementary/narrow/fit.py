"""Constants and polynomials of the float64 kernels, computed by Arb and rounded once.

A ``Fit`` is the polynomial that equals an analytic function in the n + 1 Chebyshev points cos(i pi / n) of an interval.
L. N. Trefethen, "Approximation Theory and Approximation Practice" (2013), theorem 8.2: where the function is analytic
inside the ellipse with foci at the ends of the interval whose semi-axes, in units of half the interval, sum to rho, and
at most M there, the polynomial is within 4 M rho**-n / (rho - 1) of it on the interval.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

from flint import acb, arb, arb_poly, ctx, fmpz

PRECISION = 320
"""Bits of the computation, far more than any polynomial here loses."""


def rounded(value: Callable[[], arb]) -> float:
    """The float64 number nearest to a real constant."""
    previous, ctx.prec = ctx.prec, PRECISION
    try:
        significand, exponent = value().mid().man_exp()
    finally:
        ctx.prec = previous
    # Python's division of integers is correctly rounded
    if exponent >= 0:
        return float(int(significand) << int(exponent))
    return int(significand) / (1 << -int(exponent))


def integer_part(value: arb) -> int:
    """The integer part of a ball that holds numbers of only one."""
    floor = value.floor().unique_fmpz()
    if floor is None:
        raise ArithmeticError(f"the precision does not decide the integer part of {value}")
    return int(floor)


def parts(value: Callable[[], arb], *bits: int) -> tuple[float, ...]:
    """The constant as a sum: truncated to a multiple of 2**-bits for each of ``bits``, and the rest rounded."""
    result: list[float] = []
    taken = (0, 0)  # numerator and exponent of what the parts have so far

    def rest(numerator: int, exponent: int) -> arb:
        return value() - arb(numerator) / (1 << exponent)

    for count in bits:
        previous, ctx.prec = ctx.prec, PRECISION
        try:
            scaled = integer_part(value() * fmpz(1 << count))
        finally:
            ctx.prec = previous
        result.append((scaled - (taken[0] << (count - taken[1]))) / (1 << count))
        taken = (scaled, count)
    return (*result, rounded(partial(rest, *taken)))


def _point(x: arb) -> arb:
    return x


@dataclass(frozen=True)
class Fit:
    """The polynomial of degree ``degree`` that fits ``function`` between ``low`` and ``high``.

    ``function`` takes and gives balls of complex numbers. ``rho``: an ellipse in which it is analytic. ``error``: what
    the absolute error of the polynomial, before its coefficients are rounded, is below; ``bound`` proves it.
    With ``centred`` the polynomial's variable is not x but (x - middle) / half, from -1 to 1.
    """

    function: Callable[[acb], acb]
    low: float
    high: float
    degree: int
    rho: float
    error: float
    centred: bool = False

    def _centre(self) -> tuple[arb, arb]:
        return (arb(self.high) + self.low) / 2, (arb(self.high) - self.low) / 2

    @cached_property
    def coefficients(self) -> tuple[float, ...]:
        """Rounded to float64, the constant one first."""
        previous, ctx.prec = ctx.prec, PRECISION
        try:
            middle, half = self._centre()
            points = [(arb.pi() * i / self.degree).cos() for i in range(self.degree + 1)]
            values = [self.function(acb(middle + half * t)).real for t in points]
            # interpolation needs exact points; moving them by 2**-300 moves the polynomial by no more than about that
            exact = [t.mid() for t in points]
            places = exact if self.centred else [(middle + half * t).mid() for t in exact]
            polynomial = arb_poly.interpolate(places, values)
            result = [polynomial[n] for n in range(self.degree + 1)]
        finally:
            ctx.prec = previous
        return tuple(rounded(partial(_point, value)) for value in result)

    def bound(self, arcs: int = 512) -> float:
        """4 M rho**-degree / (rho - 1), M from balls that cover the ellipse."""
        previous, ctx.prec = ctx.prec, 64
        try:
            middle, half = self._centre()
            largest = arb(0)
            for k in range(arcs):
                angle = arb.pi() * arb(2 * k + 1, 1) / arcs
                z = acb(angle.cos(), angle.sin()) * arb(self.rho)
                largest = largest.max(abs(self.function(acb(middle) + (z + 1 / z) / 2 * half)).upper())
            total = 4 * largest * arb(self.rho) ** -self.degree / (arb(self.rho) - 1)
            return float(total.upper())
        finally:
            ctx.prec = previous
