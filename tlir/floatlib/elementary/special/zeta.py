"""The Hurwitz zeta function and the polygamma functions of finite numbers, rounded once.

That no value at the operands accepted is dyadic is conjectured (a counterexample would be PrecisionLimitError); values
that agree with a dyadic number to any precision of interest (zeta(s, 1) = 1 + 2**-s + ...) are rounded by their side.
Overflow and underflow are decided by the bounds

    q**-s < zeta(s, q) < q**-s (1 + q / (s - 1))        for s > 1, q > 0,

the first term of the sum and the integral of the rest.
"""

from __future__ import annotations

from flint import arb, ctx

from tlir.floatlib.arb import (
    HALF,
    NEAR_BITS,
    ONE,
    ArgumentTooLargeError,
    Dyadic,
    Result,
    add_integer,
    huge,
    round_enclosure,
    round_near,
    tiny,
)
from tlir.floatlib.elementary.exponential import invalid, pole
from tlir.floatlib.elementary.special.functions import digamma
from tlir.floatlib.format import Format
from tlir.floatlib.rounding import round_exact

MAX_ORDER = 1 << 14
"""Zeta functions of a larger s are evaluated only where their first term is the whole word."""

MAX_EXTRA_BITS = 1 << 16


def extra_bits(fmt: Format) -> int:
    """A limit for ``round_enclosure`` that tells x (1 + x) from x for almost every x of the format."""
    return min(max(32 * (fmt.precision + 64), 4 * (fmt.emax + fmt.precision)), MAX_EXTRA_BITS)


def zeta(fmt: Format, s: Dyadic, q: Dyadic) -> Result:
    """The sum of (q + n)**-s over n >= 0; either operand may be zero.

    DIVIDE_BY_ZERO at s = 1, and for even s at q = 0, -1, -2, ...; INVALID for s < 1, for other s at those q, and for
    negative q and an s that is no integer."""
    side = s.compare_integer(1)
    if side <= 0:
        return pole(fmt, 0) if side == 0 else invalid(fmt)
    if q.significand == 0 or q.sign:
        if not s.is_integer():
            return invalid(fmt)
        if q.is_integer():
            return invalid(fmt) if s.is_odd_integer() else pole(fmt, 0)
        return _hurwitz_below_zero(fmt, s, q, False, 0)
    return _hurwitz(fmt, s, q, False, 0)


def polygamma(fmt: Format, m: Dyadic, x: Dyadic) -> Result:
    """The m-th derivative of digamma, (-1)**(m + 1) m! zeta(m + 1, x); either operand may be zero.

    INVALID unless m is an integer from 0; at x = 0, -1, -2, ... DIVIDE_BY_ZERO for odd m, INVALID for even."""
    if (m.sign and m.significand) or not m.is_integer():
        return invalid(fmt)
    if m.significand == 0:
        return pole(fmt, 1 - x.sign) if x.significand == 0 else digamma(fmt, x)
    sign = 1 - int(m.is_odd_integer())
    if x.is_integer() and (x.sign or x.significand == 0):
        return invalid(fmt) if sign else pole(fmt, 0)
    if m.leading > 64:
        raise ArgumentTooLargeError(f"the order is about 2**{m.leading}; polygamma is evaluated up to 2**64")
    s = add_integer(m, 1)
    if x.sign:
        return _hurwitz_below_zero(fmt, s, x, True, sign)
    return _hurwitz(fmt, s, x, True, sign)


def _hurwitz(fmt: Format, s: Dyadic, q: Dyadic, factorial: bool, sign: int) -> Result:
    """(-1)**sign zeta(s, q) for s > 1 and q > 0, times (s - 1)! if asked for, with an integer s."""
    order, ball, tail = s.to_arb(), q.to_arb(), _minus_one(s)
    previous, ctx.prec = ctx.prec, 128 + max(0, s.leading) + abs(q.leading).bit_length()
    try:
        log_two = arb.const_log2()
        low = -order * ball.log() + (order.lgamma() if factorial else 0)
        high = low + (1 + ball / tail).log()
        is_huge = low / log_two > fmt.emax + 4
        is_tiny = high / log_two < fmt.emin - fmt.precision - 8
    finally:
        ctx.prec = previous
    if is_huge:
        return huge(fmt, sign)
    if is_tiny:
        return tiny(fmt, sign)
    if q.odd() == ONE and s.compare_integer(fmt.precision + NEAR_BITS + 2) > 0 and not factorial:
        return round_near(fmt, 0, 1, 0, toward_zero=False)
    if factorial and q.odd().significand == 1:
        near = _near_power_of_two(fmt, add_integer(s, -1), q.odd().exponent, sign)
        if near is not None:
            return near
    if s.compare_integer(MAX_ORDER) > 0:
        return _first_term(fmt, s, q, factorial)
    return round_enclosure(
        fmt,
        lambda: _signed(order.zeta(ball) * (order.gamma() if factorial else 1), sign),
        guard=max(0, s.leading),
        limit=extra_bits(fmt),
    )


def _minus_one(s: Dyadic) -> arb:
    """s - 1, exact where it can be near 0."""
    return add_integer(s, -1).to_arb() if s.leading < 64 else s.to_arb() - 1


def _near_power_of_two(fmt: Format, m: Dyadic, k: int, sign: int) -> Result | None:
    """Polygamma at 2**k, where its leading term is the dyadic number m!/x**(m+1) (small x) or (m-1)!/x**m (large x) and
    the next one lies above it, out of sight; None where it does not."""
    order = m.signed << m.exponent if m.exponent >= 0 else m.signed >> -m.exponent
    if order > 64:
        return None
    factorial = 1
    for factor in range(2, order if k > 0 else order + 1):
        factorial *= factor
    exponent = -k * order if k > 0 else -k * (order + 1)
    shift = max(0, fmt.precision + 4 - factorial.bit_length())
    # the next terms, relative to the first: m/(2x) + ... and x**(m+1) zeta(m+1, 1+x), less than 2x**(m+1)
    deviation = order.bit_length() - k if k > 0 else 1 + k * (order + 1)
    if deviation + factorial.bit_length() + shift >= 0:
        return None
    return round_exact(fmt, sign, factorial << shift, exponent - shift, sticky=True)


def _first_term(fmt: Format, s: Dyadic, q: Dyadic, factorial: bool) -> Result:
    """q**-s (1 + t) for s > 2**14 and q < 2, where 0 < t < 2 * (q / (q + 1))**s < 2**-9000."""
    if factorial or q.leading > 0:
        raise ArgumentTooLargeError(f"the order is about 2**{s.leading}; zeta functions go up to {MAX_ORDER}")
    order, ball = s.to_arb(), q.to_arb()
    radius = arb((1, -9000))
    rest = 1 + radius + arb(0, radius)
    return round_enclosure(fmt, lambda: (-order * ball.log()).exp() * rest, guard=s.leading, limit=8000)


def _hurwitz_below_zero(fmt: Format, s: Dyadic, q: Dyadic, factorial: bool, sign: int) -> Result:
    """(-1)**sign zeta(s, q) for an integer s > 1 and a q < 0 that is no integer, times (s - 1)! if asked for.

    With f = q - floor(q), the sum over all integers n of (f + n)**-s is zeta(s, f) + (-1)**s zeta(s, 1 - f); what lies
    below q is (-1)**s zeta(s, 1 - q)."""
    if s.compare_integer(MAX_ORDER) > 0:
        raise ArgumentTooLargeError(f"the order is about 2**{s.leading}; zeta functions go up to {MAX_ORDER}")
    whole = q.signed >> -q.exponent
    fraction = add_integer(q, -whole)
    order, left = s.to_arb(), fraction.to_arb()
    right, beyond = add_integer(fraction.negative(), 1).to_arb(), add_integer(q.negative(), 1).to_arb()
    parity = -1 if s.is_odd_integer() else 1

    def enclose() -> arb:
        total = -parity * order.zeta(beyond)
        if not (parity < 0 and fraction.odd() == HALF):
            total += order.zeta(left) + parity * order.zeta(right)
        return _signed(total * (order.gamma() if factorial else 1), sign)

    return round_enclosure(fmt, enclose, guard=max(0, q.leading) + 16, limit=extra_bits(fmt))


def _signed(ball: arb, sign: int) -> arb:
    return -ball if sign else ball
