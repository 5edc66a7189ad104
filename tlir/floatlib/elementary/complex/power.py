"""Complex powers of finite numbers: e**rho (cos theta, sin theta) with rho = c log|z| - d arg z and
theta = d log|z| + c arg z for z**(c + di), each part rounded once.

Exact cases. Where d = 0 or |z| = 1, and arg z is a multiple of pi/4, theta is a rational multiple of pi known exactly
(the only way for a part to be zero: by Baker's theorem log|z| and arg z are linearly independent of pi otherwise).
Powers with integer exponents of moderate size, and with exponents n / 2**k of exact 2**k-th powers, are computed
exactly. For the rest it is conjectured that no part is a number of the format or a midpoint; a counterexample gives
PrecisionLimitError.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import isqrt

from flint import arb, ctx

from tlir.floatlib.arb import (
    MAX_ARGUMENT_EXPONENT,
    ArgumentTooLargeError,
    Dyadic,
    Result,
    add_integer,
    huge,
    tiny,
)
from tlir.floatlib.elementary.complex.finite import Pair, check_gap, enclose, sign_of
from tlir.floatlib.elementary.exponential import LARGEST_EXPONENT
from tlir.floatlib.elementary.power import magnitude_power
from tlir.floatlib.format import Format
from tlir.floatlib.rounding import round_exact, round_quotient, zero_result

MAX_EXACT_BITS = 1 << 15
"""Bits of a power up to which it is computed exactly."""


def power(fmt: Format, a: Dyadic, b: Dyadic, c: Dyadic, d: Dyadic) -> Pair:
    """(a + bi)**(c + di), neither zero."""
    check_gap(a, b)
    eighths = _eighths(a, b)
    is_unit = (b.significand == 0 and _is_unit(a)) or (a.significand == 0 and _is_unit(b))
    if eighths is not None and (d.significand == 0 or is_unit):
        return _on_ray(fmt, a, b, c, d, eighths, is_unit)
    if d.significand == 0:
        exact = _exact_power(fmt, a, b, c)
        if exact is not None:
            return exact
    log_magnitude, argument = _log_magnitude(a, b), _argument(a, b, eighths)
    bc, bd = c.to_arb(), d.to_arb()

    def rho() -> arb:
        return bc * log_magnitude() - bd * argument()

    def theta() -> arb:
        return bd * log_magnitude() + bc * argument()

    size = max(part.leading for part in (c, d) if part.significand)
    size += max(abs(part.leading) for part in (a, b) if part.significand).bit_length()
    if size > MAX_ARGUMENT_EXPONENT:
        raise ArgumentTooLargeError(f"the angle of the power is about 2**{size} and is to be reduced modulo pi")
    guard = max(0, size + 2)
    extreme = _extreme(rho, guard)
    if extreme is not None:
        return (
            extreme(fmt, sign_of(lambda: theta().cos(), guard)),
            extreme(fmt, sign_of(lambda: theta().sin(), guard)),
        )
    return (
        enclose(fmt, lambda: rho().exp() * theta().cos(), guard),
        enclose(fmt, lambda: rho().exp() * theta().sin(), guard),
    )


def _extreme(rho: Callable[[], arb], guard: int) -> Callable[[Format, int], Result] | None:
    """``huge`` or ``tiny`` where e**rho is that whatever the angle (whose cosine is not below 2**-(2**22))."""
    previous, ctx.prec = ctx.prec, 64 + guard
    try:
        value = rho()
        if value > 1 << LARGEST_EXPONENT:
            return huge
        return tiny if value < -(1 << LARGEST_EXPONENT) else None
    finally:
        ctx.prec = previous


def _eighths(a: Dyadic, b: Dyadic) -> int | None:
    """k where arg(a + bi) is k pi/4 for an integer -3 <= k <= 4."""
    if b.significand == 0:
        return 4 if a.sign else 0
    if a.significand == 0:
        return -2 if b.sign else 2
    if a.odd()[1:] != b.odd()[1:]:
        return None
    k = 3 if a.sign else 1
    return -k if b.sign else k


def _is_unit(x: Dyadic) -> bool:
    return x.significand != 0 and x.odd()[1:] == (1, 0)


def _on_ray(fmt: Format, a: Dyadic, b: Dyadic, c: Dyadic, d: Dyadic, eighths: int, is_unit: bool) -> Pair:
    """theta = turn * pi/4 for the dyadic number turn = c * eighths, |z|**c = 1 if ``is_unit`` and else d = 0."""
    turn = Dyadic(c.sign ^ int(eighths < 0), c.significand * abs(eighths), c.exponent)
    square, bc, bd = _norm(a, b), c.to_arb(), d.to_arb()
    base = square.to_arb()

    def rho() -> arb:
        return -bd * arb.pi() * eighths / 4 if is_unit else bc * base.log() / 2

    parts = [part for part in (c, d) if part.significand]
    guard = max(0, max(part.leading for part in parts) + abs(square.leading).bit_length() + 2)
    if guard > MAX_ARGUMENT_EXPONENT:
        raise ArgumentTooLargeError(f"the exponent of the power is about 2**{guard}")
    extreme = _extreme(rho, guard)

    def along_axis(sign: int) -> Result:
        if extreme is not None:
            return extreme(fmt, sign)
        if not is_unit:
            return magnitude_power(fmt, sign, square, c._replace(exponent=c.exponent - 1))
        if d.significand == 0 or eighths == 0:
            return round_exact(fmt, sign, 1, 0)
        return enclose(fmt, lambda: -rho().exp() if sign else rho().exp(), guard)

    def along_diagonal(sign: int) -> Result:
        if extreme is not None:
            return extreme(fmt, sign)
        scale = -1 if sign else 1
        check = None if is_unit else partial(_is_power_over_root_of_two, square, c)
        return enclose(fmt, lambda: rho().exp() * scale / arb(2).sqrt(), guard, check)

    if turn.significand == 0:
        # the sign of the zero angle d log|z| + c arg z, as signed zeros and numbers add
        negative = (d.sign ^ int(square.compare_integer(1) < 0)) and (c.sign ^ b.sign)
        return along_axis(0), zero_result(fmt, int(negative))
    if turn.is_integer():
        odd = turn.odd()
        k = (odd.signed << odd.exponent) % 8 if odd.exponent < 3 else 0
        along = along_diagonal if k & 1 else along_axis
        directions = (_COSINES[k], _COSINES[(k + 6) % 8])
        real, imaginary = (along(int(sign < 0)) if sign else zero_result(fmt, 0) for sign in directions)
        return real, imaginary
    angle = turn._replace(exponent=turn.exponent - 2).to_arb()
    if extreme is not None:
        return extreme(fmt, sign_of(angle.cos_pi)), extreme(fmt, sign_of(angle.sin_pi))
    return (
        enclose(fmt, lambda: rho().exp() * angle.cos_pi(), guard),
        enclose(fmt, lambda: rho().exp() * angle.sin_pi(), guard),
    )


_COSINES = (1, 1, 0, -1, -1, -1, 0, 1)
"""The sign of cos(k pi/4); that of sin(k pi/4) is the one of k - 2."""


def _is_power_over_root_of_two(square: Dyadic, c: Dyadic, candidate: Dyadic) -> bool:
    """Whether candidate = square**(c/2) / sqrt 2. For c = n / 2**k its power with exponent 2**(k + 1), times 2**(2**k),
    is square**n; odd parts and exponents are compared apart."""
    candidate, square, c = candidate.odd(), square.odd(), c.odd()
    k, n = max(0, -c.exponent), c.signed << max(0, c.exponent)
    if square.significand != 1 and n < 0:
        return False
    if k > 30 or candidate.exponent * 2 ** (k + 1) + 2**k != square.exponent * n:
        return False
    if square.significand == 1 or candidate.significand == 1:
        return square.significand == candidate.significand
    length = n * square.significand.bit_length()
    if length > MAX_EXACT_BITS or 2 ** (k + 1) * (candidate.significand.bit_length() - 1) > length:
        return False
    return bool(candidate.significand ** (2 ** (k + 1)) == square.significand**n)


def _exact_power(fmt: Format, a: Dyadic, b: Dyadic, c: Dyadic) -> Pair | None:
    """z**c for a real c = n * 2**f by exact integers: None if z is no exact 2**-f th power or the result too long."""
    exponent = min(a.exponent, b.exponent)
    real, imaginary = a.signed << (a.exponent - exponent), b.signed << (b.exponent - exponent)
    c = c.odd()
    for _ in range(-c.exponent):
        root = _gaussian_sqrt(real, imaginary, exponent)
        if root is None:
            return None
        real, imaginary, exponent = root
    if c.exponent > 64:
        return None
    n = c.significand << max(0, c.exponent)
    if n * max(abs(real), abs(imaginary)).bit_length() > MAX_EXACT_BITS:
        return None
    real, imaginary = _gaussian_power(real, imaginary, n)
    exponent *= n
    if not c.sign:
        return (
            round_exact(fmt, int(real < 0), abs(real), exponent),
            round_exact(fmt, int(imaginary < 0), abs(imaginary), exponent),
        )
    norm = real * real + imaginary * imaginary
    return (
        round_quotient(fmt, int(real < 0), abs(real), norm, -exponent),
        round_quotient(fmt, int(imaginary > 0), abs(imaginary), norm, -exponent),
    )


def _gaussian_sqrt(real: int, imaginary: int, exponent: int) -> tuple[int, int, int] | None:
    """The principal root of (real + imaginary i) * 2**exponent, both not zero, if its parts are dyadic."""
    if exponent & 1:
        real, imaginary, exponent = 2 * real, 2 * imaginary, exponent - 1
    # of 4 z: the parts of the root squared are 2 (|z| + real) and 2 (|z| - real)
    magnitude = isqrt(real * real + imaginary * imaginary)
    if magnitude * magnitude != real * real + imaginary * imaginary:
        return None
    squares = 2 * (magnitude + real), 2 * (magnitude - real)
    roots = [isqrt(square) for square in squares]
    if any(root * root != square for root, square in zip(roots, squares, strict=True)):
        return None
    return roots[0], -roots[1] if imaginary < 0 else roots[1], exponent // 2 - 1


def _gaussian_power(real: int, imaginary: int, n: int) -> tuple[int, int]:
    result = (1, 0)
    for bit in bin(n)[2:]:
        x, y = result
        x, y = x * x - y * y, 2 * x * y
        result = (x * real - y * imaginary, x * imaginary + y * real) if bit == "1" else (x, y)
    return result


def _norm(a: Dyadic, b: Dyadic) -> Dyadic:
    """a*a + b*b for numbers of equal size or one of them zero."""
    if b.significand == 0 or a.significand == 0:
        x = a if a.significand else b
        return Dyadic(0, x.significand**2, 2 * x.exponent)
    x = a.odd()
    return Dyadic(0, 2 * x.significand**2, 2 * x.exponent)


def _log_magnitude(a: Dyadic, b: Dyadic) -> Callable[[], arb]:
    """log(a*a + b*b) / 2; with the greater part g near 1, log1p((g - 1)(g + 1) + the square of the other) / 2."""
    if b.significand and (a.significand == 0 or (a.leading, a.significand) < (b.leading, b.significand)):
        a, b = b, a
    ba, bb = a.to_arb(), b.to_arb()
    if not -2 <= a.leading <= 0:
        return lambda: (ba * ba + bb * bb).log() / 2
    below, above = add_integer(a, -1).to_arb(), add_integer(a, 1).to_arb()
    return lambda: (below * above + bb * bb).log1p() / 2


def _argument(a: Dyadic, b: Dyadic, eighths: int | None) -> Callable[[], arb]:
    """The angle of a + bi."""
    if eighths is not None:
        return lambda: arb.pi() * eighths / 4
    ba, bb = a.to_arb(), b.to_arb()
    return lambda: arb.atan2(bb, ba)
