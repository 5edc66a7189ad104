"""The regularized incomplete gamma and beta functions of finite numbers, rounded once.

Far from the transition the exact value is next to 0 or 1, which the bounds below decide (DLMF 8.7.1, 8.8, 8.17):

    P(a, x) < D / (1 - x/(a + 1))    for x < a + 1,       D = x**a e**-x / gamma(a + 1)
    Q(a, x) < D a / (x - a + 1)      for a >= 1, x > a - 1;   Q(a, x) < D a / x for a < 1
    I(x; a, b) < E / (1 - r)         for r = x max(1, (a + b)/(a + 1)) < 1,  E = x**a (1 - x)**b / (a beta(a, b))

Elsewhere Arb's enclosures shrink. Rational values of I are recognised beforehand (a or b a positive integer, and I(1/2;
a, a)). That no other value is dyadic is conjectured; PrecisionLimitError would report a counterexample, and also says
where Arb has no enclosure: in the transition for parameters beyond about 2**50.
"""

from __future__ import annotations

from collections.abc import Callable

from flint import arb, ctx, fmpq, fmpz

from tlir.floatlib.arb import (
    HALF,
    NEAR_BITS,
    ONE,
    ArgumentTooLargeError,
    Dyadic,
    Result,
    add_integer,
    round_enclosure,
    round_near,
    tiny,
)
from tlir.floatlib.elementary.power import power_of_root
from tlir.floatlib.elementary.special.zeta import extra_bits
from tlir.floatlib.format import Format
from tlir.floatlib.rounding import round_quotient

LARGE_SHAPE = 7
"""From 2**7 on P near its transition is evaluated as 1 - Q, which is quicker."""

MAX_SHAPE_OF_DERIVATIVE = 1 << 12


def igamma(fmt: Format, a: Dyadic, x: Dyadic) -> Result:
    """P(a, x), for positive a and x."""
    lower, upper = _gamma_bounds(a, x)
    decided = _decide(fmt, lower, upper)
    if decided is not None:
        return decided
    shape, ball = a.to_arb(), x.to_arb()
    if a.leading >= LARGE_SHAPE and x.leading >= a.leading - 3:
        guard = a.leading + max(0, -lower)
        return round_enclosure(fmt, lambda: 1 - ball.gamma_upper(shape, 1), guard, extra_bits(fmt))
    return round_enclosure(fmt, lambda: ball.gamma_lower(shape, 1), limit=extra_bits(fmt))


def igammac(fmt: Format, a: Dyadic, x: Dyadic) -> Result:
    """Q(a, x) = 1 - P(a, x), for positive a and x; a E1(x) and less for small a."""
    lower, upper = _gamma_bounds(a, x)
    decided = _decide(fmt, upper, lower)
    if decided is not None:
        return decided
    shape, ball = a.to_arb(), x.to_arb()
    return round_enclosure(fmt, lambda: ball.gamma_upper(shape, 1), abs(a.leading), extra_bits(fmt))


def igamma_grad_a(fmt: Format, a: Dyadic, x: Dyadic) -> Result:
    """The derivative of P(a, x) in a, for positive a and x; it is negative.

    (log x - digamma a) P - x**a / (a**2 gamma(a)) 2F2(a, a; a+1, a+1; -x). Where that would be long, |.| is compared
    with the least number of the format: with log t < t for t > x the integrals of |log t - digamma a| over the density
    give the bound (a Q(a+1, x) + |digamma a| Q(a, x)) for x >= 1. ArgumentTooLargeError where neither decides."""
    shape, ball = a.to_arb(), x.to_arb()
    if max(a.leading, x.leading) >= MAX_SHAPE_OF_DERIVATIVE.bit_length() - 1:
        if x.leading >= 0 and x.leading > a.leading + 1:
            bound = shape * ball.gamma_upper(shape + 1, 1) + abs(shape.digamma()) * ball.gamma_upper(shape, 1)
            if bound < arb((1, fmt.emin - fmt.precision - 8)):
                return tiny(fmt, 1)
        _refuse_derivative(a, x)
    return round_enclosure(fmt, lambda: _shape_derivative(shape, ball), *_derivative_precision(fmt, a, x))


def random_gamma_grad(fmt: Format, a: Dyadic, x: Dyadic) -> Result:
    """The derivative in a of the quantile x of the gamma distribution, -(dP/da) / (dP/dx), for positive a and x.

    ArgumentTooLargeError where a or x is 2**12 or more."""
    if max(a.leading, x.leading) >= MAX_SHAPE_OF_DERIVATIVE.bit_length() - 1:
        _refuse_derivative(a, x)
    shape, ball = a.to_arb(), x.to_arb()

    def enclose() -> arb:
        density = ((shape - 1) * ball.log() - ball).exp() * shape.rgamma()
        return -_shape_derivative(shape, ball) / density

    return round_enclosure(fmt, enclose, *_derivative_precision(fmt, a, x))


def _derivative_precision(fmt: Format, a: Dyadic, x: Dyadic) -> tuple[int, int]:
    """Guard bits, for terms of the hypergeometric sum of up to e**x and a result of down to e**-x, and the limit."""
    guard = (4 << max(0, x.leading + 1)) + (2 << max(0, a.leading + 1)) + 2 * abs(a.leading)
    return guard, extra_bits(fmt)


def _refuse_derivative(a: Dyadic, x: Dyadic) -> None:
    raise ArgumentTooLargeError(
        f"a is about 2**{a.leading} and x about 2**{x.leading}; the derivative of the incomplete gamma function in a "
        f"is evaluated up to {MAX_SHAPE_OF_DERIVATIVE}"
    )


def _shape_derivative(a: arb, x: arb) -> arb:
    power = (a * x.log()).exp() * a.rgamma() / (a * a)
    return (x.log() - a.digamma()) * x.gamma_lower(a, 1) - power * (-x).hypgeom([a, a], [a + 1, a + 1])


def incomplete_beta(fmt: Format, a: Dyadic, b: Dyadic, x: Dyadic) -> Result:
    """I(x; a, b), for positive a and b and 0 < x < 1."""
    rational = _rational_beta(fmt, a, b, x)
    if rational is not None:
        return round_quotient(fmt, 0, int(rational.p), int(rational.q), 0)
    lower, upper = _beta_bounds(a, b, x)
    decided = _decide(fmt, lower, upper)
    if decided is not None:
        return decided
    left, right, ball = a.to_arb(), b.to_arb(), x.to_arb()
    guard = max(abs(a.leading), abs(b.leading))
    if a.odd() == ONE:
        # 1 - (1 - x)**b, for every b
        return round_enclosure(fmt, lambda: -(right * (-ball).log1p()).expm1(), guard, extra_bits(fmt))
    return round_enclosure(fmt, lambda: ball.beta_lower(left, right, 1), guard, extra_bits(fmt))


def _decide(fmt: Format, own: int, other: int) -> Result | None:
    """The word of a value less than 2**own and more than 1 - 2**other, if one of these decides it."""
    if own < fmt.emin - fmt.precision - 4:
        return tiny(fmt, 0)
    if other < -(fmt.precision + NEAR_BITS + 1):
        return round_near(fmt, 0, 1, 0, toward_zero=True)
    return None


def _exponent(log: arb) -> int:
    """An integer e with exp(log) < 2**e, no more than 0 (these are probabilities)."""
    ratio = (log / arb.const_log2()).upper()
    if not ratio.is_finite() or ratio > 0:
        return 0
    significand, exponent = ratio.floor().man_exp()
    return int(significand << exponent) + 1


def _with_precision(bits: int, bounds: Callable[[], tuple[int, int]]) -> tuple[int, int]:
    previous, ctx.prec = ctx.prec, bits
    try:
        return bounds()
    finally:
        ctx.prec = previous


def _gamma_bounds(a: Dyadic, x: Dyadic) -> tuple[int, int]:
    """Exponents e, f with P < 2**e and Q < 2**f."""
    shape, ball = a.to_arb(), x.to_arb()

    def bounds() -> tuple[int, int]:
        log = shape * ball.log() - ball - (shape + 1).lgamma()
        lower = upper = 0
        rest = 1 - ball / (shape + 1)
        if rest > 0:
            lower = _exponent(log - rest.log())
        if shape < 1:
            upper = _exponent(log + (shape / ball).log())
        elif ball - shape + 1 > 0:
            upper = _exponent(log + (shape / (ball - shape + 1)).log())
        return lower, upper

    return _with_precision(128 + 2 * max(abs(a.leading), abs(x.leading)), bounds)


def _beta_bounds(a: Dyadic, b: Dyadic, x: Dyadic) -> tuple[int, int]:
    """Exponents e, f with I(x; a, b) < 2**e and I(1-x; b, a) < 2**f."""
    left, right, ball = a.to_arb(), b.to_arb(), x.to_arb()

    def bound(log: arb, p: arb, q: arb, y: arb) -> int:
        rest = 1 - y * arb.max(arb(1), (p + q) / (p + 1))
        return _exponent(log - p.log() - rest.log()) if rest > 0 else 0

    def bounds() -> tuple[int, int]:
        log_beta = left.lgamma() + right.lgamma() - (left + right).lgamma()
        log = left * ball.log() + right * (-ball).log1p() - log_beta
        return bound(log, left, right, ball), bound(log, right, left, 1 - ball)

    return _with_precision(128 + 2 * max(abs(a.leading), abs(b.leading), abs(x.leading)), bounds)


def _rational_beta(fmt: Format, a: Dyadic, b: Dyadic, x: Dyadic) -> fmpq | None:
    """The value where it is rational for a known reason, and could be a number that rounding changes at."""
    if x.odd() == HALF and a.odd() == b.odd():
        return fmpq(1, 2)
    most = 2 * fmt.precision + 16
    complement = add_integer(x.negative(), 1)
    for first, second, y in ((a, b, x), (b, a, complement)):
        if not second.is_integer() or second.compare_integer(most) > 0 or first.leading > most.bit_length():
            continue
        root = power_of_root(y.odd(), first)
        if root is None or root[1] * root[0].significand.bit_length() > 1 << 16 or abs(y.exponent) > 1 << 12:
            continue
        base, exponent = root
        power = _fraction(Dyadic(0, base.significand**exponent, base.exponent * exponent))
        value = power * _finite_sum(
            first,
            second.significand << second.exponent if second.exponent >= 0 else second.significand >> -second.exponent,
            add_integer(y.negative(), 1),
        )
        return value if y is x else 1 - value
    return None


def _finite_sum(a: Dyadic, count: int, y: Dyadic) -> fmpq:
    """The sum of (a)_j / j! y**j for j < count: I(1-y; a, count) / (1-y)**a (DLMF 8.17.5)."""
    shape, argument = _fraction(a), _fraction(y)
    total = term = fmpq(1)
    for j in range(1, count):
        term = term * (shape + (j - 1)) * argument / j
        total += term
    return total


def _fraction(x: Dyadic) -> fmpq:
    if x.exponent >= 0:
        return fmpq(fmpz(x.significand) << x.exponent)
    return fmpq(fmpz(x.significand), fmpz(1) << -x.exponent)
