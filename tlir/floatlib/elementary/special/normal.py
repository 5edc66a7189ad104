"""Functions of the normal distribution, and the logarithm of a sum of exponentials, rounded once.

``log_add_exp`` is never dyadic: e**x + e**y = e**z for algebraic x, y, z contradicts Lindemann and Weierstrass. For the
others that is conjectured but for the values named; a counterexample would be PrecisionLimitError.
"""

from __future__ import annotations

from flint import arb, ctx

from tlir.floatlib.arb import HALF, NEAR_BITS, Dyadic, Result, add_integer, huge, round_enclosure, round_near, tiny
from tlir.floatlib.elementary.exponential import LARGEST_EXPONENT, invalid, is_small, near_operand, pole
from tlir.floatlib.format import Format
from tlir.floatlib.rounding import round_exact, zero_result

LARGEST_SQUARE_EXPONENT = LARGEST_EXPONENT // 2 + 1
"""e**(x*x/2) for |x| >= 2**23 is beyond the largest number of every format."""

LARGE_EXPONENT = 8


def _scaled_erfc(square: arb) -> arb:
    """e**(z*z) erfc z for z > 0, from z*z (DLMF 7.11.2)."""
    half = arb((1, -1))
    return square.hypgeom_u(half, half) / arb.pi().sqrt()


def erfcx(fmt: Format, x: Dyadic) -> Result:
    """e**(x*x) erfc x = 1 - 2x/sqrt(pi) + ... near 0, 1/(x sqrt(pi)) - ... far out."""
    if is_small(fmt, x, 1):
        return round_near(fmt, 0, 1, 0, toward_zero=not x.sign)
    ball, square = x.to_arb(), Dyadic(0, x.significand**2, 2 * x.exponent).to_arb()
    if not x.sign:
        return round_enclosure(fmt, lambda: _scaled_erfc(square))
    if x.leading >= LARGEST_SQUARE_EXPONENT:
        return huge(fmt, 0)
    return round_enclosure(fmt, lambda: square.exp() * ball.erfc())


def ndtri(fmt: Format, p: Dyadic) -> Result:
    """The x whose lower tail has the probability p: 0 at 1/2, DIVIDE_BY_ZERO at 1, INVALID outside [0, 1]."""
    side = p.compare_integer(1)
    if p.sign or side > 0:
        return invalid(fmt)
    if side == 0:
        return pole(fmt, 0)
    if p.odd() == HALF:
        return zero_result(fmt, 0)
    if p.leading >= -1:
        # more than a half: the upper tail, which is exact
        upper = add_integer(p.negative(), 1)
        ball = Dyadic(0, upper.significand, upper.exponent + 1).to_arb()
        return round_enclosure(fmt, lambda: arb(2).sqrt() * ball.erfcinv())
    ball = Dyadic(0, p.significand, p.exponent + 1).to_arb()
    return round_enclosure(fmt, lambda: -arb(2).sqrt() * ball.erfcinv())


def log_ndtr(fmt: Format, x: Dyadic) -> Result:
    """log of the lower tail at x: log(erfc(-x/sqrt(2)) / 2), -x*x/2 - log(-x sqrt(2 pi)) - ... far below 0."""
    half_square = Dyadic(0, x.significand**2, 2 * x.exponent - 1)
    if not x.sign:
        if x.leading >= LARGEST_SQUARE_EXPONENT:
            return tiny(fmt, 1)
        ball, square = x.to_arb(), half_square.to_arb()
        if x.leading < LARGE_EXPONENT:
            return round_enclosure(fmt, lambda: (-(ball / arb(2).sqrt()).erfc() / 2).log1p())
        # the enclosure of erfc at an operand that is rounded is wide there
        return round_enclosure(fmt, lambda: (-(_scaled_erfc(square) * (-square).exp()) / 2).log1p())
    shift = max(0, fmt.precision + 3 - half_square.significand.bit_length())
    # the logarithm, below leading + 2, is less than one unit of the square written with bits below the last place
    if half_square.exponent - shift >= (x.leading + 2).bit_length() and x.leading > 0:
        return round_exact(fmt, 1, half_square.significand << shift, half_square.exponent - shift, sticky=True)
    square = half_square.to_arb()
    return round_enclosure(fmt, lambda: (_scaled_erfc(square) / 2).log() - square)


def log_half(fmt: Format) -> Result:
    """log(1/2), the value of ``log_ndtr`` at 0."""
    return round_enclosure(fmt, lambda: -arb.const_log2())


def log_add_exp(fmt: Format, x: Dyadic, y: Dyadic) -> Result:
    """log(e**x + e**y) = m + log(1 + e**-d), m the greater and d >= 0 the difference; either may be zero."""
    left, right = x.to_arb(), y.to_arb()
    previous, ctx.prec = ctx.prec, 64
    try:
        order = left - right
        if not order.is_exact() and order.contains(0):
            ctx.prec = 2 * (abs(x.exponent - y.exponent) + fmt.precision + 64)
            order = left - right
        if order < 0:
            x, left, right = y, right, left
        distance = abs(order)
        far = distance > fmt.precision + NEAR_BITS + 2 - (x.leading if x.significand else 0)
        endless = distance > 1 << LARGEST_EXPONENT
    finally:
        ctx.prec = previous
    if x.significand and far:
        return near_operand(fmt, x, toward_zero=bool(x.sign))
    if endless:
        return tiny(fmt, 0)
    return round_enclosure(fmt, lambda: left + (right - left).exp().log1p(), guard=max(0, x.leading))
