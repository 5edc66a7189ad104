"""Constants and tables of the double-double kernels, computed by Arb where they are first needed (milliseconds)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from flint import arb, ctx

PRECISION = 400
"""Bits of the balls; every constant here is a number of ordinary size, known to more than 300 of them."""


def _nearest(ball: arb) -> float:
    """The float64 number nearest to the middle of a ball, which is 300 bits wide at most."""
    significand, exponent = ball.mid().man_exp()
    # Python's division of integers is correctly rounded
    if exponent >= 0:
        return float(int(significand) << int(exponent))
    return int(significand) / (1 << -int(exponent))


def _pair(ball: arb, multiple: int | None = None) -> tuple[float, float]:
    if multiple is None:
        high = _nearest(ball)
    else:
        scaled = (ball * arb(2) ** multiple + arb(0.5)).floor().unique_fmpz()
        if scaled is None:
            raise ArithmeticError(f"the precision does not decide the leading part of {ball}")
        high = int(scaled) / (1 << multiple)
    return high, _nearest(ball - high)


def pairs(values: Callable[[], Iterable[arb]], multiple: int | None = None) -> tuple[tuple[float, ...], ...]:
    """(highs, lows) of real numbers: each high the nearest float64, or the nearest multiple of 2**-multiple, and the
    low the rest, rounded once."""
    previous, ctx.prec = ctx.prec, PRECISION
    try:
        both = [_pair(value, multiple) for value in values()]
    finally:
        ctx.prec = previous
    return tuple(zip(*both, strict=True))


def pair(value: Callable[[], arb], multiple: int | None = None) -> tuple[float, float]:
    """``pairs`` of one number."""
    highs, lows = pairs(lambda: [value()], multiple)
    return highs[0], lows[0]
