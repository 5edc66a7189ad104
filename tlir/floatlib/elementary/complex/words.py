"""Complex elementary functions on words: the principal value, each part correctly rounded.

A complex number is a pair of words of one format, (real, imaginary). For finite operands each part of the result is the
exact part rounded once to nearest even, and a part that is zero has the sign that the branch cuts of C (Annex G) give
it: they are continuous with the sign of the zero. The flags are those of both parts together.

Infinities, NaN and zeros follow C23 Annex G.6 where it defines the function: exp, log, sqrt, sinh, cosh, tanh, asinh,
acosh, acos, atanh, and sin, cos, tan, asin, atan through i: sin z = -i sinh(iz) and so on. A sign that Annex G leaves
unspecified is the one of the first quadrant carried along by the symmetries (conj, odd or even). Chosen here:

* rsqrt: +infinity and a zero of the sign of -y at zero (DIVIDE_BY_ZERO), (+0, that zero) where a part is infinite.
* exponential_minus_one: the special values of exp, less 1 in the real part. log_plus_one: those of log.
* logistic: (1, ±0) and (±0, ±0) at ±infinity in the real part, the signs those of e**(iy), +0 for a y that is not
  finite; NaN with the zero kept for NaN + 0i; otherwise NaN, INVALID for an infinite y.
* power: 1 for a zero exponent; for a zero base (+0, +0) if the exponent's real part is positive, otherwise NaN with
  INVALID; with infinities or NaN exp(rhs * log(lhs)), each of the three steps rounded.
* sign: (+0, +0) for zero.

Parts next to a number of the format are told apart by precision, up to ``MAX_COMPLEX_BITS``: enough for formats of up
to 15 exponent bits. Wider ones may raise PrecisionLimitError or ArgumentTooLargeError.
"""

from __future__ import annotations

from collections.abc import Callable

from tlir.floatlib import arithmetic
from tlir.floatlib.arb import Dyadic, Result
from tlir.floatlib.arithmetic import nan_result
from tlir.floatlib.elementary.complex import algebraic, finite
from tlir.floatlib.elementary.complex.finite import Pair
from tlir.floatlib.elementary.complex.power import power as finite_power
from tlir.floatlib.elementary.exponential import log as real_log
from tlir.floatlib.elementary.exponential import pole
from tlir.floatlib.elementary.power import rsqrt as real_rsqrt
from tlir.floatlib.elementary.scalar import atan2, elementary, hypot
from tlir.floatlib.elementary.trigonometric import multiple_of_pi
from tlir.floatlib.exclusive import exclusive
from tlir.floatlib.format import Format
from tlir.floatlib.ordering import negate
from tlir.floatlib.rounding import NO_FLAGS, Flags, infinity_word, round_exact, zero_result

Words = tuple[int, int]


@exclusive
def elementary_complex(name: str, fmt: Format, *operands: Words) -> tuple[Words, Flags]:
    """The words (real, imaginary) and flags of the function ``name`` (a key of ``UNARY`` or ``BINARY``).

    KeyError for another name. ElementaryError where the function is not evaluated (see ``tlir.floatlib.arb``)."""
    real, imaginary = (BINARY if name in BINARY else UNARY)[name](fmt, *(word for pair in operands for word in pair))
    flags = real[1] | imaginary[1]
    if any(fmt.is_signaling(word) for pair in operands for word in pair):
        flags |= Flags.INVALID
    return (real[0], imaginary[0]), flags


# Results of one part


def _zero(fmt: Format, sign: int = 0) -> Result:
    return zero_result(fmt, sign)


def _infinity(fmt: Format, sign: int = 0) -> Result:
    return infinity_word(fmt, sign), NO_FLAGS


def _nan(fmt: Format) -> Result:
    return fmt.invalid_word, NO_FLAGS


def _invalid(fmt: Format) -> Result:
    return fmt.invalid_word, Flags.INVALID


def _one(fmt: Format) -> Result:
    return round_exact(fmt, 0, 1, 0)


def _flip(fmt: Format, result: Result, condition: int = 1) -> Result:
    """The result with its sign changed; results that are no number stay."""
    word, flags = result
    if not condition or fmt.is_nan(word) or Flags.INVALID in flags:
        return result
    return negate(fmt, word)[0], flags


def _cis(fmt: Format, y: int, make: Callable[[Format, int], Result]) -> Pair:
    """make(sign) with the signs of cos y and of sin y, which is a zero for a zero y; y finite, sign +."""
    if fmt.is_zero(y):
        return make(fmt, 0), _zero(fmt)
    cosine, sine = finite.angle_signs(_number(fmt, y))
    return make(fmt, cosine), make(fmt, sine)


def _number(fmt: Format, word: int) -> Dyadic:
    return Dyadic(*fmt.decode(word))


# Functions in the closed upper half plane or first quadrant: the signs of the operands have been taken off


def _exponential(fmt: Format, x: int, y: int) -> Pair:
    if fmt.is_nan(x):
        return _nan(fmt), _zero(fmt) if fmt.is_zero(y) else _nan(fmt)
    if fmt.is_inf(x):
        if fmt.is_finite(y):
            return _cis(fmt, y, _zero if fmt.sign(x) else _infinity)
        if fmt.sign(x):
            return _zero(fmt), _zero(fmt)
        return _infinity(fmt), _nan(fmt) if fmt.is_nan(y) else _invalid(fmt)
    if not fmt.is_finite(y):
        return _undefined(fmt, y)
    if fmt.is_zero(y):
        return elementary("exponential", fmt, x), _zero(fmt)
    if fmt.is_zero(x):
        return elementary("cosine", fmt, y), elementary("sine", fmt, y)
    return finite.exponential(fmt, _number(fmt, x), _number(fmt, y))


def _exponential_minus_one(fmt: Format, x: int, y: int) -> Pair:
    if not (fmt.is_finite(x) and fmt.is_finite(y)):
        (word, flags), imaginary = _exponential(fmt, x, y)
        return (arithmetic.subtract(fmt, word, _one(fmt)[0])[0], flags), imaginary
    if fmt.is_zero(y):
        return elementary("exponential_minus_one", fmt, x), _zero(fmt)
    return finite.exponential_minus_one(fmt, _number(fmt, x), _number(fmt, y))


def _logistic(fmt: Format, x: int, y: int) -> Pair:
    if fmt.is_nan(x):
        return _nan(fmt), _zero(fmt) if fmt.is_zero(y) else _nan(fmt)
    if fmt.is_inf(x):
        real, imaginary = _cis(fmt, y, _zero) if fmt.is_finite(y) else (_zero(fmt), _zero(fmt))
        return (real if fmt.sign(x) else _one(fmt)), imaginary
    if not fmt.is_finite(y):
        return _undefined(fmt, y)
    if fmt.is_zero(y):
        return elementary("logistic", fmt, x), _zero(fmt)
    if fmt.is_zero(x):
        return round_exact(fmt, 0, 1, -1), finite.half_tangent_of_half(fmt, _number(fmt, y))
    return finite.logistic(fmt, _number(fmt, x), _number(fmt, y))


def _log(fmt: Format, x: int, y: int) -> Pair:
    if fmt.is_finite(x) and fmt.is_finite(y) and not fmt.is_zero(x) and not fmt.is_zero(y):
        return finite.log_magnitude(fmt, _number(fmt, x), _number(fmt, y)), atan2(fmt, y, x)
    return elementary("log", fmt, hypot(fmt, x, y)[0]), atan2(fmt, y, x)


def _log_plus_one(fmt: Format, x: int, y: int) -> Pair:
    if not (fmt.is_finite(x) and fmt.is_finite(y)):
        return _log(fmt, x, y)
    number = None if fmt.is_zero(x) else _number(fmt, x)
    side = 1 if number is None else number.compare_integer(-1)
    if fmt.is_zero(y):
        if side >= 0 or number is None:
            return elementary("log_plus_one", fmt, x), _zero(fmt)
        magnitude = real_log(fmt, Dyadic(0, 1, 0)) if number.compare_integer(-2) == 0 else None
        return magnitude or finite.log_of_minus_one_minus(fmt, number), multiple_of_pi(fmt, 0, 1, 1)
    if side == 0:
        return elementary("log", fmt, y), multiple_of_pi(fmt, 0, 1, 2)
    return finite.log_plus_one(fmt, _number(fmt, x), _number(fmt, y))


def _sinh(fmt: Format, x: int, y: int) -> Pair:
    if fmt.is_nan(x):
        return _nan(fmt), _zero(fmt) if fmt.is_zero(y) else _nan(fmt)
    if fmt.is_inf(x):
        if fmt.is_finite(y):
            return _cis(fmt, y, _infinity)
        return _infinity(fmt), _nan(fmt) if fmt.is_nan(y) else _invalid(fmt)
    if not fmt.is_finite(y):
        real, imaginary = _undefined(fmt, y)
        return (_zero(fmt) if fmt.is_zero(x) else real), imaginary
    if fmt.is_zero(y):
        return elementary("sinh", fmt, x), _zero(fmt)
    if fmt.is_zero(x):
        return _zero(fmt, finite.angle_signs(_number(fmt, y))[0]), elementary("sine", fmt, y)
    return finite.sinh(fmt, _number(fmt, x), _number(fmt, y))


def _cosh(fmt: Format, x: int, y: int) -> Pair:
    if fmt.is_nan(x):
        return _nan(fmt), _zero(fmt) if fmt.is_zero(y) else _nan(fmt)
    if fmt.is_inf(x):
        return _sinh(fmt, x, y)
    if not fmt.is_finite(y):
        real, imaginary = _undefined(fmt, y)
        return real, _zero(fmt) if fmt.is_zero(x) else imaginary
    if fmt.is_zero(y):
        return elementary("cosh", fmt, x), _zero(fmt)
    if fmt.is_zero(x):
        return elementary("cosine", fmt, y), _zero(fmt, finite.angle_signs(_number(fmt, y))[1])
    return finite.cosh(fmt, _number(fmt, x), _number(fmt, y))


def _tanh(fmt: Format, x: int, y: int) -> Pair:
    if fmt.is_nan(x):
        return _nan(fmt), _zero(fmt) if fmt.is_zero(y) else _nan(fmt)
    if fmt.is_inf(x):
        if not fmt.is_finite(y) or fmt.is_zero(y):
            return _one(fmt), _zero(fmt)
        cosine, sine = finite.angle_signs(_number(fmt, y))
        return _one(fmt), _zero(fmt, cosine ^ sine)
    if not fmt.is_finite(y):
        real, imaginary = _undefined(fmt, y)
        return (_zero(fmt) if fmt.is_zero(x) else real), imaginary
    if fmt.is_zero(y):
        return elementary("tanh", fmt, x), _zero(fmt)
    if fmt.is_zero(x):
        return _zero(fmt), elementary("tan", fmt, y)
    return finite.tanh(fmt, _number(fmt, x), _number(fmt, y))


def _asinh(fmt: Format, x: int, y: int) -> Pair:
    if fmt.is_inf(y):
        if fmt.is_nan(x):
            return _infinity(fmt), _nan(fmt)
        return _infinity(fmt), multiple_of_pi(fmt, 0, 1, 4 if fmt.is_inf(x) else 2)
    if fmt.is_inf(x):
        return _infinity(fmt), _nan(fmt) if fmt.is_nan(y) else _zero(fmt)
    if fmt.is_nan(x) or fmt.is_nan(y):
        return _nan(fmt), _zero(fmt) if fmt.is_zero(y) else _nan(fmt)
    if fmt.is_zero(y):
        return elementary("asinh", fmt, x), _zero(fmt)
    if fmt.is_zero(x):
        if _number(fmt, y).compare_integer(1) <= 0:
            return _zero(fmt), elementary("asin", fmt, y)
        return elementary("acosh", fmt, y), multiple_of_pi(fmt, 0, 1, 2)
    return finite.asinh(fmt, _number(fmt, x), _number(fmt, y))


def _atanh(fmt: Format, x: int, y: int) -> Pair:
    if fmt.is_inf(x) or fmt.is_inf(y):
        return _zero(fmt), _nan(fmt) if fmt.is_nan(y) else multiple_of_pi(fmt, 0, 1, 2)
    if fmt.is_nan(x) or fmt.is_nan(y):
        return (_zero(fmt) if fmt.is_zero(x) else _nan(fmt)), _nan(fmt)
    if fmt.is_zero(x):
        return _zero(fmt), elementary("atan", fmt, y)
    if fmt.is_zero(y):
        number = _number(fmt, x)
        if number.compare_integer(1) <= 0:
            return elementary("atanh", fmt, x), _zero(fmt)
        return finite.acoth(fmt, number), multiple_of_pi(fmt, 0, 1, 2)
    return finite.atanh(fmt, _number(fmt, x), _number(fmt, y))


def _acos(fmt: Format, x: int, y: int) -> Pair:
    below = _flip(fmt, _infinity(fmt))
    if fmt.is_inf(x) and fmt.is_finite(y):
        return (multiple_of_pi(fmt, 0, 1, 1) if fmt.sign(x) else _zero(fmt)), below
    if fmt.is_inf(y):
        if fmt.is_nan(x):
            return _nan(fmt), below
        if fmt.is_inf(x):
            return multiple_of_pi(fmt, 0, 3 if fmt.sign(x) else 1, 4), below
        return multiple_of_pi(fmt, 0, 1, 2), below
    if fmt.is_nan(x) or fmt.is_nan(y):
        if fmt.is_inf(x):
            return _nan(fmt), below
        return (multiple_of_pi(fmt, 0, 1, 2) if fmt.is_zero(x) else _nan(fmt)), _nan(fmt)
    if fmt.is_zero(x):
        return multiple_of_pi(fmt, 0, 1, 2), _flip(fmt, elementary("asinh", fmt, y))
    number = _number(fmt, x)
    if fmt.is_zero(y):
        if number.magnitude().compare_integer(1) <= 0:
            return elementary("acos", fmt, x), _zero(fmt, 1)
        real = multiple_of_pi(fmt, 0, 1, 1) if number.sign else _zero(fmt)
        return real, _flip(fmt, elementary("acosh", fmt, fmt.magnitude(x)))
    return finite.acos(fmt, number, _number(fmt, y))


def _acosh(fmt: Format, x: int, y: int) -> Pair:
    """i acos z in the upper half plane, where acos has a negative imaginary part."""
    real, imaginary = _acos(fmt, x, y)
    return _flip(fmt, imaginary), real


def _sqrt(fmt: Format, x: int, y: int) -> Pair:
    if fmt.is_inf(y):
        return _infinity(fmt), _infinity(fmt)
    if fmt.is_inf(x):
        if fmt.is_nan(y):
            return (_nan(fmt), _infinity(fmt)) if fmt.sign(x) else (_infinity(fmt), _nan(fmt))
        return (_zero(fmt), _infinity(fmt)) if fmt.sign(x) else (_infinity(fmt), _zero(fmt))
    if fmt.is_nan(x) or fmt.is_nan(y):
        return _nan(fmt), _nan(fmt)
    if fmt.is_zero(y):
        root = arithmetic.sqrt(fmt, fmt.magnitude(x))
        return (_zero(fmt), root) if fmt.sign(x) and not fmt.is_zero(x) else (root, _zero(fmt))
    if fmt.is_zero(x):
        half = _number(fmt, y)
        half = half._replace(exponent=half.exponent - 1)
        return algebraic.sqrt_of(fmt, half), algebraic.sqrt_of(fmt, half)
    return algebraic.sqrt(fmt, _number(fmt, x), _number(fmt, y))


def _rsqrt(fmt: Format, x: int, y: int) -> Pair:
    if fmt.is_inf(x) or fmt.is_inf(y):
        return _zero(fmt), _zero(fmt, 1)
    if fmt.is_nan(x) or fmt.is_nan(y):
        return _nan(fmt), _nan(fmt)
    if fmt.is_zero(y):
        if fmt.is_zero(x):
            return pole(fmt, 0), _zero(fmt, 1)
        root = elementary("rsqrt", fmt, fmt.magnitude(x))
        return (_zero(fmt), _flip(fmt, root)) if fmt.sign(x) else (root, _zero(fmt, 1))
    if fmt.is_zero(x):
        double = _number(fmt, y)
        root = real_rsqrt(fmt, double._replace(exponent=double.exponent + 1))
        return root, _flip(fmt, root)
    return algebraic.rsqrt(fmt, _number(fmt, x), _number(fmt, y))


def _undefined(fmt: Format, y: int) -> Pair:
    """NaN in both parts, INVALID unless y is a NaN itself."""
    result = _nan(fmt) if fmt.is_nan(y) else _invalid(fmt)
    return result, result


# The whole plane


def _conjugate(function: Callable[[Format, int, int], Pair]) -> Callable[[Format, int, int], Pair]:
    """f(conj z) = conj f(z), from the upper half plane."""

    def evaluate(fmt: Format, x: int, y: int) -> Pair:
        real, imaginary = function(fmt, x, _magnitude(fmt, y))
        return real, _flip(fmt, imaginary, _sign(fmt, y))

    return evaluate


def _odd(function: Callable[[Format, int, int], Pair]) -> Callable[[Format, int, int], Pair]:
    """f(-z) = -f(z) and f(conj z) = conj f(z), from the first quadrant."""

    def evaluate(fmt: Format, x: int, y: int) -> Pair:
        real, imaginary = function(fmt, _magnitude(fmt, x), _magnitude(fmt, y))
        return _flip(fmt, real, _sign(fmt, x)), _flip(fmt, imaginary, _sign(fmt, y))

    return evaluate


def _even(function: Callable[[Format, int, int], Pair]) -> Callable[[Format, int, int], Pair]:
    """f(-z) = f(z) and f(conj z) = conj f(z), from the first quadrant."""

    def evaluate(fmt: Format, x: int, y: int) -> Pair:
        real, imaginary = function(fmt, _magnitude(fmt, x), _magnitude(fmt, y))
        return real, _flip(fmt, imaginary, _sign(fmt, x) ^ _sign(fmt, y))

    return evaluate


def _sign(fmt: Format, word: int) -> int:
    return 0 if fmt.is_nan(word) else fmt.sign(word)


def _magnitude(fmt: Format, word: int) -> int:
    return word if fmt.is_nan(word) else fmt.magnitude(word)


def _through_i(function: Callable[[Format, int, int], Pair]) -> Callable[[Format, int, int], Pair]:
    """-i f(iz)."""

    def evaluate(fmt: Format, x: int, y: int) -> Pair:
        real, imaginary = function(fmt, negate(fmt, y)[0], x)
        return imaginary, _flip(fmt, real)

    return evaluate


def _cosine(fmt: Format, x: int, y: int) -> Pair:
    """cosh(iz)."""
    return _even(_cosh)(fmt, negate(fmt, y)[0], x)


def _signum(fmt: Format, x: int, y: int) -> Pair:
    """z / |z|, +0 for 0; NaN where a part is NaN or infinite (INVALID for an infinity beside no NaN)."""
    if not (fmt.is_finite(x) and fmt.is_finite(y)):
        result = _nan(fmt) if fmt.is_nan(x) or fmt.is_nan(y) else _invalid(fmt)
        return result, result
    if fmt.is_zero(x) and fmt.is_zero(y):
        return _zero(fmt), _zero(fmt)
    if fmt.is_zero(x) or fmt.is_zero(y):
        real, imaginary = (
            zero_result(fmt, fmt.sign(part)) if fmt.is_zero(part) else round_exact(fmt, fmt.sign(part), 1, 0)
            for part in (x, y)
        )
        return real, imaginary
    return algebraic.sign(fmt, _number(fmt, x), _number(fmt, y))


def _divide(fmt: Format, a: int, b: int, c: int, d: int) -> Pair:
    """(a + bi) / (c + di): each part of the exact quotient rounded once where all is finite and the divisor not zero;
    otherwise ((ac + bd) / (cc + dd), (bc - ad) / (cc + dd)) with one rounding per step."""
    if all(map(fmt.is_finite, (a, b, c, d))) and not (fmt.is_zero(c) and fmt.is_zero(d)):
        return algebraic.divide(fmt, *(_number(fmt, word) for word in (a, b, c, d)))
    steps = _Steps(fmt)
    ac, bd, bc, ad, cc, dd = (steps.multiply(*pair) for pair in ((a, c), (b, d), (b, c), (a, d), (c, c), (d, d)))
    square = steps.add(cc, dd)
    real = steps.divide(steps.add(ac, bd), square)
    imaginary = steps.divide(steps.subtract(bc, ad), square)
    return (real, steps.flags), (imaginary, steps.flags)


class _Steps:
    """Real arithmetic with one rounding per step, collecting the flags."""

    def __init__(self, fmt: Format) -> None:
        self._fmt = fmt
        self.flags = NO_FLAGS

    def _take(self, result: Result) -> int:
        self.flags |= result[1]
        return result[0]

    def add(self, x: int, y: int) -> int:
        return self._take(arithmetic.add(self._fmt, x, y))

    def subtract(self, x: int, y: int) -> int:
        return self._take(arithmetic.subtract(self._fmt, x, y))

    def multiply(self, x: int, y: int) -> int:
        return self._take(arithmetic.multiply(self._fmt, x, y))

    def divide(self, x: int, y: int) -> int:
        return self._take(arithmetic.divide(self._fmt, x, y))


def _power(fmt: Format, a: int, b: int, c: int, d: int) -> Pair:
    """(a + bi)**(c + di)."""
    if fmt.is_zero(c) and fmt.is_zero(d):
        return _one(fmt), _zero(fmt)
    if not all(map(fmt.is_finite, (a, b, c, d))):
        if any(map(fmt.is_nan, (a, b, c, d))):
            return nan_result(fmt, a, b, c, d), _nan(fmt)
        return _power_in_steps(fmt, a, b, c, d)
    if fmt.is_zero(a) and fmt.is_zero(b):
        if fmt.is_zero(c) or fmt.sign(c):
            return _invalid(fmt), _invalid(fmt)
        return _zero(fmt), _zero(fmt)
    return finite_power(fmt, *(_number(fmt, word) for word in (a, b, c, d)))


def _power_in_steps(fmt: Format, a: int, b: int, c: int, d: int) -> Pair:
    """exp((c + di) * log(a + bi)), each of the three rounded, the product as ``multiply`` rounds complex numbers."""
    (p, q), flags = elementary_complex("log", fmt, (a, b))
    steps = _Steps(fmt)
    real = steps.subtract(steps.multiply(c, p), steps.multiply(d, q))
    imaginary = steps.add(steps.multiply(c, q), steps.multiply(d, p))
    (x, y), more = elementary_complex("exponential", fmt, (real, imaginary))
    flags |= steps.flags | more
    return (x, flags), (y, flags)


UNARY: dict[str, Callable[[Format, int, int], Pair]] = {
    "sqrt": _conjugate(_sqrt),
    "rsqrt": _conjugate(_rsqrt),
    "sign": _signum,
    "exponential": _conjugate(_exponential),
    "exponential_minus_one": _conjugate(_exponential_minus_one),
    "log": _conjugate(_log),
    "log_plus_one": _conjugate(_log_plus_one),
    "logistic": _conjugate(_logistic),
    "sinh": _odd(_sinh),
    "cosh": _even(_cosh),
    "tanh": _odd(_tanh),
    "asinh": _odd(_asinh),
    "acosh": _conjugate(_acosh),
    "atanh": _odd(_atanh),
    "sine": _through_i(_odd(_sinh)),
    "cosine": _cosine,
    "tan": _through_i(_odd(_tanh)),
    "asin": _through_i(_odd(_asinh)),
    "acos": _conjugate(_acos),
    "atan": _through_i(_odd(_atanh)),
}

BINARY: dict[str, Callable[[Format, int, int, int, int], Pair]] = {"divide": _divide, "power": _power}
