"""Complex elementary functions of finite numbers, each part rounded once: the enclosures.

Operands are x + iy with x and y not zero unless stated; the axes are real functions and are dealt with by the caller,
as are the symmetries. Functions return the (word, flags) of the real and of the imaginary part.

Why the enclosures end. For algebraic x and y, both not zero, z = x + iy and its conjugate are linearly independent over
the rational numbers, so by Lindemann and Weierstrass e**z and e**conj(z) are algebraically independent: the parts of
exp, expm1, sinh, cosh, tanh and logistic, rational functions of the two that are not constant, are transcendental.
The inverse functions are logarithms of algebraic numbers a (times 1, i or 1/2): their parts are log|a| and arg a, each
zero or transcendental (Lindemann), and zero only on the axes: |a| = 1 or a positive. For log, |z| = 1 has no solution
among dyadic numbers but ±1 and ±i, because the hypotenuse of a primitive Pythagorean triple is odd.
"""

from __future__ import annotations

from collections.abc import Callable

from flint import acb, arb, ctx

from tlir.floatlib.arb import (
    FIRST_GUARD_BITS,
    MAX_ARGUMENT_EXPONENT,
    NEAR_BITS,
    ArgumentTooLargeError,
    Dyadic,
    PrecisionLimitError,
    Result,
    add_integer,
    huge,
    round_ball,
    round_enclosure,
    round_near,
    round_near_quotient,
    tiny,
)
from tlir.floatlib.elementary.exponential import LARGEST_EXPONENT, is_saturated, is_small
from tlir.floatlib.elementary.trigonometric import reduction_bits
from tlir.floatlib.format import Format

MAX_COMPLEX_BITS = 1 << 18
"""Extra bits up to which a part is told apart from a number next to it; each step up to there takes well under a second
for most functions. Formats of 15 exponent bits need about four times 2**14."""

Pair = tuple[Result, Result]
Ball = Callable[[], arb]


def enclose(fmt: Format, ball: Ball, guard: int = 0, is_exact: Callable[[Dyadic], bool] | None = None) -> Result:
    """``round_enclosure`` up to ``MAX_COMPLEX_BITS``."""
    return round_enclosure(fmt, ball, guard, MAX_COMPLEX_BITS, is_exact)


def enclose_both(fmt: Format, ball: Callable[[], acb]) -> Pair:
    """The words of both parts of the one number that every ball contains, from the same evaluations."""
    extra, step = FIRST_GUARD_BITS, fmt.precision + 64
    real: Result | None = None
    imaginary: Result | None = None
    previous = ctx.prec
    try:
        while True:
            ctx.prec = fmt.precision + extra
            value = ball()
            real = real or round_ball(fmt, value.real)
            imaginary = imaginary or round_ball(fmt, value.imag)
            if real is not None and imaginary is not None:
                return real, imaginary
            if extra >= MAX_COMPLEX_BITS:
                raise PrecisionLimitError(f"no single word of {fmt.name} for a complex result after {ctx.prec} bits")
            extra = max(step, 2 * extra)
    finally:
        ctx.prec = previous


def sign_of(ball: Ball, guard: int = 0) -> int:
    """The sign bit of the number, not zero, that every ball contains."""
    previous, ctx.prec = ctx.prec, 64 + guard
    try:
        while True:
            value = ball()
            if value > 0:
                return 0
            if value < 0:
                return 1
            if ctx.prec > guard + MAX_COMPLEX_BITS:
                raise PrecisionLimitError(f"no sign after {ctx.prec} bits")
            ctx.prec = guard + 2 * (ctx.prec - guard)
    finally:
        ctx.prec = previous


def angle_signs(y: Dyadic) -> tuple[int, int]:
    """The sign bits of cos y and sin y."""
    ball, guard = y.to_arb(), reduction_bits(y)
    return sign_of(ball.cos, guard), sign_of(ball.sin, guard)


def exponential(fmt: Format, x: Dyadic, y: Dyadic) -> Pair:
    """e**x cos y, e**x sin y."""
    if x.leading > LARGEST_EXPONENT:
        cosine, sine = angle_signs(y)
        extreme = tiny if x.sign else huge
        return extreme(fmt, cosine), extreme(fmt, sine)
    bx, by, guard = x.to_arb(), y.to_arb(), reduction_bits(y)
    return enclose(fmt, lambda: bx.exp() * by.cos(), guard), enclose(fmt, lambda: bx.exp() * by.sin(), guard)


def exponential_minus_one(fmt: Format, x: Dyadic, y: Dyadic) -> Pair:
    """(e**x - 1) cos y - 2 sin(y/2)**2, e**x sin y; x may be zero."""
    bx, by, guard = x.to_arb(), y.to_arb(), reduction_bits(y)
    if x.significand and x.leading > LARGEST_EXPONENT and not x.sign:
        return exponential(fmt, x, y)
    if x.significand and x.sign and is_saturated(fmt, x):
        toward_zero = not sign_of(by.cos, guard)
        return round_near(fmt, 1, 1, 0, toward_zero), exponential(fmt, x, y)[1]
    real = enclose(fmt, lambda: bx.expm1() * by.cos() - 2 * (by / 2).sin() ** 2, guard)
    return real, enclose(fmt, lambda: bx.exp() * by.sin(), guard)


def sinh(fmt: Format, x: Dyadic, y: Dyadic) -> Pair:
    """sinh x cos y, cosh x sin y; x > 0."""
    if x.leading > LARGEST_EXPONENT:
        return exponential(fmt, x, y)
    bx, by, guard = x.to_arb(), y.to_arb(), reduction_bits(y)
    return enclose(fmt, lambda: bx.sinh() * by.cos(), guard), enclose(fmt, lambda: bx.cosh() * by.sin(), guard)


def cosh(fmt: Format, x: Dyadic, y: Dyadic) -> Pair:
    """cosh x cos y, sinh x sin y; x > 0."""
    if x.leading > LARGEST_EXPONENT:
        return exponential(fmt, x, y)
    bx, by, guard = x.to_arb(), y.to_arb(), reduction_bits(y)
    return enclose(fmt, lambda: bx.cosh() * by.cos(), guard), enclose(fmt, lambda: bx.sinh() * by.sin(), guard)


def tanh(fmt: Format, x: Dyadic, y: Dyadic) -> Pair:
    """sinh x cosh x / d, sin y cos y / d with d = sinh(x)**2 + cos(y)**2; x > 0. The real part differs from 1 by
    -(cos 2y + e**-2x) / 2d, less than 8 e**-2x for large x."""
    bx, by, guard = x.to_arb(), y.to_arb(), reduction_bits(y) + 2
    if x.leading > LARGEST_EXPONENT:
        toward_zero = not sign_of(lambda: (2 * by).cos(), guard)
        return round_near(fmt, 0, 1, 0, toward_zero), tiny(fmt, sign_of(lambda: (2 * by).sin(), guard))

    def denominator() -> arb:
        return bx.sinh() ** 2 + by.cos() ** 2

    imaginary = enclose(fmt, lambda: by.sin() * by.cos() / denominator(), guard)
    if is_saturated(fmt, x):
        toward_zero = not sign_of(lambda: (2 * by).cos() + (-2 * bx).exp(), guard)
        return round_near(fmt, 0, 1, 0, toward_zero), imaginary
    return enclose(fmt, lambda: bx.sinh() * bx.cosh() / denominator(), guard), imaginary


def logistic(fmt: Format, x: Dyadic, y: Dyadic) -> Pair:
    """With f = e**-|x| and d = |1 + f e**iy|**2: (1 + f cos y) / d for x > 0, which differs from 1 by
    -(cos y + f) f / d, and f (f + cos y) / d for x < 0; f sin y / d. d has no cancellation but at its zeros."""
    bx, by, guard = x.magnitude().to_arb(), y.to_arb(), reduction_bits(y)
    far = x.leading > LARGEST_EXPONENT
    if far and x.sign:
        cosine, sine = angle_signs(y)
        return tiny(fmt, cosine), tiny(fmt, sine)

    def real() -> arb:
        f, c = (-bx).exp(), by.cos()
        return (f * (f + c) if x.sign else 1 + f * c) / denominator()

    def denominator() -> arb:
        f = (-bx).exp()
        return (1 + f * by.cos()) ** 2 + (f * by.sin()) ** 2

    if far:
        imaginary = tiny(fmt, sign_of(by.sin, guard))
    else:
        imaginary = enclose(fmt, lambda: (-bx).exp() * by.sin() / denominator(), guard)
    if not x.sign and is_saturated(fmt, x):
        c_plus_f = by.cos if far else lambda: by.cos() + (-bx).exp()
        return round_near(fmt, 0, 1, 0, toward_zero=not sign_of(c_plus_f, guard)), imaginary
    return enclose(fmt, real, guard), imaginary


def half_tangent_of_half(fmt: Format, y: Dyadic) -> Result:
    """tan(y/2) / 2 = y/4 + y**3/48 + ..., the imaginary part of logistic(iy), whose real part is 1/2."""
    if is_small(fmt, y, 2):
        return round_near(fmt, y.sign, y.significand, y.exponent - 2, toward_zero=False)
    ball = y.to_arb()
    return enclose(fmt, lambda: (ball / 2).tan() / 2, reduction_bits(y))


def log_magnitude(fmt: Format, x: Dyadic, y: Dyadic) -> Result:
    """log(x*x + y*y) / 2, through log1p((x - 1)(x + 1) + y*y) for the greater part x near 1; not for |x + iy| = 1."""
    if (x.leading, x.significand) < (y.leading, y.significand):
        x, y = y, x
    bx, by = x.to_arb(), y.to_arb()
    if not -2 <= x.leading <= 0:
        return enclose(fmt, lambda: (bx * bx + by * by).log() / 2)
    below, above = add_integer(x, -1).to_arb(), add_integer(x, 1).to_arb()
    return enclose(fmt, lambda: (below * above + by * by).log1p() / 2)


def log_plus_one(fmt: Format, x: Dyadic, y: Dyadic) -> Pair:
    """log|1 + z|, arg(1 + z); x may be zero, but not -1."""
    check_gap(x, Dyadic(0, 1, 0))
    bx, by, shifted = x.to_arb(), y.to_arb(), add_integer(x, 1)
    one_more = shifted.to_arb()
    imaginary = enclose(fmt, lambda: arb.atan2(by, one_more))
    if shifted.leading < -1:
        # 1 + z can be near 0, but 1 + x is exact
        return enclose(fmt, lambda: (one_more * one_more + by * by).log() / 2), imaginary
    return enclose(fmt, lambda: (bx * (bx + 2) + by * by).log1p() / 2), imaginary


def log_of_minus_one_minus(fmt: Format, x: Dyadic) -> Result:
    """log(-1 - x) for x < -1 other than -2."""
    if x.leading > 2:
        ball = x.to_arb()
        return enclose(fmt, lambda: (-1 - ball).log())
    exact = add_integer(x.negative(), -1)
    difference = add_integer(exact, -1).to_arb()
    return enclose(fmt, lambda: difference.log1p())


def asinh(fmt: Format, x: Dyadic, y: Dyadic) -> Pair:
    z = acb(x.to_arb(), y.to_arb())
    return enclose_both(fmt, z.asinh)


def acos(fmt: Format, x: Dyadic, y: Dyadic) -> Pair:
    z = acb(x.to_arb(), y.to_arb())
    return enclose_both(fmt, z.acos)


def atanh(fmt: Format, x: Dyadic, y: Dyadic) -> Pair:
    """log1p(4x / ((1 - x)**2 + y*y)) / 4, (pi - arg of (x*x + y*y - 1 + 2yi)) / 2; x, y > 0.

    The argument is that of (1 + z)(1 - conj z) = 1 - |z|**2 + 2yi."""
    check_gap(x, Dyadic(0, 1, 0))
    bx, by = x.to_arb(), y.to_arb()
    less, more = add_integer(x, -1).to_arb(), add_integer(x, 1).to_arb()
    real = enclose(fmt, lambda: (4 * bx / (less * less + by * by)).log1p() / 4)
    imaginary = enclose(fmt, lambda: arb.atan2(2 * by, -(less * more) - by * by) / 2)
    return real, imaginary


def acoth(fmt: Format, x: Dyadic) -> Result:
    """log1p(2 / (x - 1)) / 2 = 1/x + 1/(3 x**3) + ... for x > 1."""
    if 2 * x.leading > 2 * fmt.precision + NEAR_BITS:
        return round_near_quotient(fmt, 0, 1, x.significand, -x.exponent, toward_zero=False)
    difference = add_integer(x, -1).to_arb()
    return enclose(fmt, lambda: (2 / difference).log1p() / 2)


def check_gap(x: Dyadic, y: Dyadic) -> None:
    """ArgumentTooLargeError where exact sums of the two would have more than 2**20 bits."""
    if x.significand and y.significand and abs(x.leading - y.leading) > MAX_ARGUMENT_EXPONENT:
        raise ArgumentTooLargeError(f"the exponents of the operands are {abs(x.leading - y.leading)} apart")
