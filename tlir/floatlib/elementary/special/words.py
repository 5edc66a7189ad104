"""The special functions of several operands, Bessel functions and those of the normal distribution, on words.

This table holds their values at zeros and infinities, at the ends of the domain and outside it; finite operands go to
``bessel``, ``incomplete``, ``normal`` and ``zeta`` beside it. A NaN operand gives the canonical NaN. What
is outside the domain gives ``Format.invalid_word`` with INVALID, a pole an infinity with DIVIDE_BY_ZERO.
"""

from __future__ import annotations

from collections.abc import Callable

from tlir.floatlib.arb import Dyadic, Result
from tlir.floatlib.arithmetic import nan_result
from tlir.floatlib.elementary.exponential import invalid, pole
from tlir.floatlib.elementary.special import bessel, incomplete, normal
from tlir.floatlib.elementary.special import zeta as zeta_family
from tlir.floatlib.format import Format
from tlir.floatlib.rounding import NO_FLAGS, infinity_word, round_exact, zero_result

Special = Callable[[Format, int], Result]
Function = Callable[..., Result]


def _zero(fmt: Format, sign: int) -> Result:
    return zero_result(fmt, 0)


def _kept_zero(fmt: Format, sign: int) -> Result:
    return zero_result(fmt, sign)


def _one(fmt: Format, sign: int = 0) -> Result:
    return round_exact(fmt, 0, 1, 0)


def _infinity(fmt: Format, sign: int = 0) -> Result:
    return infinity_word(fmt, 0), NO_FLAGS


def _kept_infinity(fmt: Format, sign: int) -> Result:
    return infinity_word(fmt, sign), NO_FLAGS


def _positive_pole(fmt: Format, sign: int) -> Result:
    return pole(fmt, 0)


def _negative_pole(fmt: Format, sign: int) -> Result:
    return pole(fmt, 1)


def _vanishing(fmt: Format, sign: int) -> Result:
    """0 at +infinity, outside the domain at -infinity."""
    return invalid(fmt) if sign else zero_result(fmt, 0)


def _outside(fmt: Format, sign: int) -> Result:
    return invalid(fmt)


def _unary(at_zero: Special, at_infinity: Special, elsewhere: Callable[[Format, Dyadic], Result]) -> Function:
    def function(fmt: Format, *words: int) -> Result:
        (word,) = words
        if fmt.is_nan(word):
            return nan_result(fmt, word)
        if fmt.is_inf(word):
            return at_infinity(fmt, fmt.sign(word))
        if fmt.is_zero(word):
            return at_zero(fmt, fmt.sign(word))
        return elsewhere(fmt, _number(fmt, word))

    return function


def _number(fmt: Format, word: int) -> Dyadic:
    """The finite number; (0, 0, 0) for both zeros."""
    return Dyadic(0, 0, 0) if fmt.is_zero(word) else Dyadic(*fmt.decode(word))


def _negative(fmt: Format, word: int) -> bool:
    return bool(fmt.sign(word)) and not fmt.is_zero(word)


def zeta(fmt: Format, s: int, q: int) -> Result:
    """The Hurwitz zeta function; s = inf is the limit (infinite below q = 1, 1 there, 0 beyond)."""
    if fmt.is_nan(s) or fmt.is_nan(q):
        return nan_result(fmt, s, q)
    if fmt.is_inf(s):
        if fmt.sign(s) or fmt.is_zero(q) or fmt.sign(q):
            return invalid(fmt)
        side = 1 if fmt.is_inf(q) else _number(fmt, q).compare_integer(1)
        return _infinity(fmt) if side < 0 else _one(fmt) if side == 0 else zero_result(fmt, 0)
    order = _number(fmt, s)
    if not fmt.is_inf(q):
        return zeta_family.zeta(fmt, order, _number(fmt, q))
    side = order.compare_integer(1)
    if side <= 0:
        return pole(fmt, 0) if side == 0 else invalid(fmt)
    if not fmt.sign(q):
        return zero_result(fmt, 0)
    # among the poles, of which those of even order have one side only
    return pole(fmt, 0) if order.is_integer() and not order.is_odd_integer() else invalid(fmt)


def polygamma(fmt: Format, m: int, x: int) -> Result:
    """The m-th derivative of digamma; as digamma for m = 0, and at x = inf the limit 0 for m > 0."""
    if fmt.is_nan(m) or fmt.is_nan(x):
        return nan_result(fmt, m, x)
    if fmt.is_inf(m):
        return invalid(fmt)
    order = _number(fmt, m)
    if fmt.is_zero(m) and fmt.is_zero(x):
        return pole(fmt, 1 - fmt.sign(x))
    if not fmt.is_inf(x):
        return zeta_family.polygamma(fmt, order, _number(fmt, x))
    if order.sign or not order.is_integer():
        return invalid(fmt)
    if fmt.is_zero(m):
        return invalid(fmt) if fmt.sign(x) else _infinity(fmt)
    if fmt.sign(x):
        return pole(fmt, 0) if order.is_odd_integer() else invalid(fmt)
    # m! zeta(m + 1, x) from above for odd m, from below for even
    return zero_result(fmt, 0 if order.is_odd_integer() else 1)


def _incomplete_gamma(at_zero: int, elsewhere: Callable[[Format, Dyadic, Dyadic], Result]) -> Function:
    """P (at_zero 0) or Q (at_zero 1), by their value at x = 0."""

    def constant(fmt: Format, value: int) -> Result:
        return _one(fmt) if value else zero_result(fmt, 0)

    def function(fmt: Format, *words: int) -> Result:
        a, x = words
        if fmt.is_nan(a) or fmt.is_nan(x):
            return nan_result(fmt, a, x)
        if _negative(fmt, a) or _negative(fmt, x) or (fmt.is_zero(a) and fmt.is_zero(x)):
            return invalid(fmt)
        if fmt.is_inf(x) or fmt.is_zero(a):
            return constant(fmt, 1 - at_zero)
        if fmt.is_zero(x) or fmt.is_inf(a):
            return constant(fmt, at_zero)
        return elsewhere(fmt, _number(fmt, a), _number(fmt, x))

    return function


def _gamma_derivative(elsewhere: Callable[[Format, Dyadic, Dyadic], Result]) -> Function:
    def function(fmt: Format, *words: int) -> Result:
        a, x = words
        if fmt.is_nan(a) or fmt.is_nan(x):
            return nan_result(fmt, a, x)
        if _negative(fmt, a) or fmt.is_zero(a) or _negative(fmt, x):
            return invalid(fmt)
        if fmt.is_zero(x):
            return zero_result(fmt, 0)
        if fmt.is_inf(a) or fmt.is_inf(x):
            return invalid(fmt)
        return elsewhere(fmt, _number(fmt, a), _number(fmt, x))

    return function


def regularized_incomplete_beta(fmt: Format, a: int, b: int, x: int) -> Result:
    """I(x; a, b). All mass lies at 0 where a is zero or b infinite, and at 1 the other way round."""
    if fmt.is_nan(a) or fmt.is_nan(b) or fmt.is_nan(x):
        return nan_result(fmt, a, b, x)
    if _negative(fmt, a) or _negative(fmt, b) or _negative(fmt, x) or fmt.is_inf(x):
        return invalid(fmt)
    side = _number(fmt, x).compare_integer(1)
    at_zero, at_one = fmt.is_zero(a) or fmt.is_inf(b), fmt.is_zero(b) or fmt.is_inf(a)
    if side > 0 or (at_zero and at_one):
        return invalid(fmt)
    if side == 0 or (at_zero and not fmt.is_zero(x)):
        return _one(fmt)
    if fmt.is_zero(x) or at_one:
        return zero_result(fmt, 0)
    return incomplete.incomplete_beta(fmt, _number(fmt, a), _number(fmt, b), _number(fmt, x))


def log_add_exp(fmt: Format, x: int, y: int) -> Result:
    """log(e**x + e**y); with an operand of -infinity it is the other one."""
    if fmt.is_nan(x) or fmt.is_nan(y):
        return nan_result(fmt, x, y)
    for one, other in ((x, y), (y, x)):
        if fmt.is_inf(one):
            if not fmt.sign(one) or (fmt.is_inf(other) and not fmt.sign(other)):
                return _infinity(fmt)
            return other, NO_FLAGS
    return normal.log_add_exp(fmt, _number(fmt, x), _number(fmt, y))


SPECIAL: dict[str, Function] = {
    "bessel_i0": _unary(_one, _infinity, bessel.i0),
    "bessel_i1": _unary(_kept_zero, _kept_infinity, bessel.i1),
    "bessel_i0e": _unary(_one, _zero, bessel.i0e),
    "bessel_i1e": _unary(_kept_zero, _kept_zero, bessel.i1e),
    "bessel_j0": _unary(_one, _zero, bessel.j0),
    "bessel_j1": _unary(_kept_zero, _kept_zero, bessel.j1),
    "bessel_y0": _unary(_negative_pole, _vanishing, bessel.y0),
    "bessel_y1": _unary(_negative_pole, _vanishing, bessel.y1),
    "bessel_k0": _unary(_positive_pole, _vanishing, bessel.k0),
    "bessel_k1": _unary(_positive_pole, _vanishing, bessel.k1),
    "bessel_k0e": _unary(_positive_pole, _vanishing, bessel.k0e),
    "bessel_k1e": _unary(_positive_pole, _vanishing, bessel.k1e),
    "erfcx": _unary(_one, lambda f, s: _infinity(f) if s else zero_result(f, 0), normal.erfcx),
    "ndtri": _unary(_negative_pole, _outside, normal.ndtri),
    "log_ndtr": _unary(
        lambda f, s: normal.log_half(f), lambda f, s: _kept_infinity(f, 1) if s else zero_result(f, 1), normal.log_ndtr
    ),
    "polygamma": polygamma,
    "zeta": zeta,
    "igamma": _incomplete_gamma(0, incomplete.igamma),
    "igammac": _incomplete_gamma(1, incomplete.igammac),
    "igamma_grad_a": _gamma_derivative(incomplete.igamma_grad_a),
    "random_gamma_grad": _gamma_derivative(incomplete.random_gamma_grad),
    "regularized_incomplete_beta": regularized_incomplete_beta,
    "log_add_exp": log_add_exp,
}
"""Functions of as many words as their names have operands, each giving a word and flags."""
