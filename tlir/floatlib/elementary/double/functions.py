"""Elementary functions in double-double arithmetic, with a proven bound on the error: what each of them needs.

The kernels are those of ``exponential``, ``logarithm``, ``circular``, ``arc``, ``error`` and ``root`` beside it.
``loop`` makes loops of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf
from typing import Any, NamedTuple

from tlir.floatlib.elementary.double import arc, circular
from tlir.floatlib.elementary.double import error as error_family
from tlir.floatlib.elementary.double import exponential as exponential_family
from tlir.floatlib.elementary.double import gamma as gamma_family
from tlir.floatlib.elementary.double import inverse as inverse_error
from tlir.floatlib.elementary.double import logarithm as logarithmic
from tlir.floatlib.elementary.double import root as roots
from tlir.floatlib.elementary.double.arithmetic import Double
from tlir.floatlib.elementary.number import Number
from tlir.floatlib.soft.machine import Predicate

OVERFLOW, NEGATIVE_OVERFLOW, UNDERFLOW, INVALID = "overflow", "negative overflow", "underflow", "invalid"

Case = tuple[Predicate, str]
"""Where it holds, the result is beyond every number of binary64, below half of all of them, or none."""
Test = Callable[..., Predicate]


class Function(NamedTuple):
    """A kernel: its relative bound, where it holds (nowhere for NaN), an operand that stands for those where it does
    not, where results are certain without it, and whether those of other than special operands can be exact."""

    evaluate: Callable[..., Any]
    error: float
    inside: Test
    safe: float = 0.5
    cases: Callable[..., list[Case]] = lambda *operands: []
    exact: bool = False
    accepts: Test | None = None
    """Where the bound holds, of the operands and the result, if not everywhere inside."""
    tangent: bool = False
    """Whether f(x) / x is within 2**-800 of 1, and not 1, for |x| < 2**-900."""
    ranged: bool = False
    """Whether results inside may be outside 2**-1000 to 2**1023.9, where products may not be exact."""
    saturates: bool = False
    """Whether an infinite hi says that the value is beyond every number of binary64, a zero that it is below half of
    the smallest."""
    bounded: bool = False
    """Whether a bound on the absolute error comes with the value; ``error`` is for results that are not near 0."""
    interleave: int = 2
    """Vectors that a compiled loop takes at a time: 2 hide the latency of quotients and long chains."""


def _within(low: float, high: float) -> Test:
    return lambda x: x.m.both(x > low, x < high)


def _magnitude(low: float, high: float) -> Test:
    return lambda x: x.m.both(abs(x) > low, abs(x) < high)


def _overflows_both(limit: float, below: str) -> Callable[[Number], list[Case]]:
    return lambda x: [(x > limit, OVERFLOW), (x < -limit, below)]


def _below(high: float, away_from_zero: bool) -> Test:
    return _magnitude(TINY, high) if away_from_zero else lambda x: abs(x) < high


def _outside_unit(x: Number) -> list[Case]:
    return [(abs(x) > 1.0, INVALID)]


def _below_zero(x: Number) -> list[Case]:
    return [(x < 0.0, INVALID)]


def _certain_angle(x: Number, result: Double) -> Predicate:
    """Where the absolute error of a reduced angle, 2**-125, is less than 2**-74 of the result (of the tangent, where it
    is multiplied by 1 + tan**2), or nothing was reduced."""
    m = x.m
    return m.either(m.both(abs(result.hi) > 2.0**-50, abs(result.hi) < 2.0**50), abs(x) < 2.0**-10)


TINY, HUGE = 2.0**-900, 2.0**900
NORMAL = 2.0**-1022

_CIRCULAR: dict[str, Callable[..., Double]] = {
    "sine": circular.sine,
    "cosine": circular.cosine,
    "tan": circular.tan,
}


def _circular_error(name: str) -> float:
    return 2.0**-67.4 if name == "tan" else 2.0**-68.4


UNARY: dict[str, Function] = {
    "exponential": Function(
        exponential_family.exponential,
        2.0**-70,
        _within(-690.0, 709.7),
        interleave=0,
        cases=lambda x: [(x > 709.79, OVERFLOW), (x < -745.14, UNDERFLOW)],
    ),
    "exponential_minus_one": Function(
        lambda x: exponential_family.exponential_minus_one(x.maximum(-100.0)),
        2.0**-70,
        lambda x: x.m.both(abs(x) > TINY, x < 709.7),
        cases=lambda x: [(x > 709.79, OVERFLOW)],
        tangent=True,
    ),
    "exp2": Function(
        exponential_family.exp2,
        2.0**-70,
        _within(-995.0, 1023.9),
        interleave=0,
        cases=lambda x: [(x > 1024.0, OVERFLOW), (x < -1075.0, UNDERFLOW)],
        exact=True,
    ),
    "logistic": Function(
        lambda x: exponential_family.logistic(x.minimum(100.0)),
        2.0**-69,
        lambda x: x > -690.0,
        cases=lambda x: [(x < -745.14, UNDERFLOW)],
    ),
    "tanh": Function(
        lambda x: exponential_family.tanh(x.between(-40.0, 40.0)), 2.0**-69, lambda x: abs(x) > TINY, tangent=True
    ),
    "sinh": Function(
        exponential_family.sinh,
        2.0**-70,
        _magnitude(TINY, 680.0),
        cases=_overflows_both(710.48, NEGATIVE_OVERFLOW),
        tangent=True,
    ),
    "cosh": Function(
        exponential_family.cosh, 2.0**-69, lambda x: abs(x) < 680.0, cases=_overflows_both(710.48, OVERFLOW)
    ),
    "log": Function(logarithmic.log, 2.0**-68, lambda x: x.m.both(x > NORMAL, x < inf), cases=_below_zero),
    "log2": Function(
        logarithmic.log2, 2.0**-68, lambda x: x.m.both(x > NORMAL, x < inf), cases=_below_zero, exact=True
    ),
    "log10": Function(
        logarithmic.log10, 2.0**-68, lambda x: x.m.both(x > NORMAL, x < inf), cases=_below_zero, exact=True
    ),
    "log_plus_one": Function(
        logarithmic.log_plus_one,
        2.0**-68,
        lambda x: x.m.both(x.m.both(abs(x) > TINY, x > -1.0), x < inf),
        cases=lambda x: [(x < -1.0, INVALID)],
        tangent=True,
    ),
    "asinh": Function(logarithmic.asinh, 2.0**-68, _magnitude(TINY, 2.0**1020), tangent=True),
    "acosh": Function(
        logarithmic.acosh, 2.0**-68, _within(1.0, 2.0**1020), safe=2.0, cases=lambda x: [(x < 1.0, INVALID)]
    ),
    "atanh": Function(logarithmic.atanh, 2.0**-68, _magnitude(TINY, 1.0), cases=_outside_unit, tangent=True),
    **{
        name: Function(
            function,
            _circular_error(name),
            _below(circular.NEAR, name != "cosine"),
            accepts=_certain_angle,
            tangent=name != "cosine",
        )
        for name, function in _CIRCULAR.items()
    },
    "asin": Function(arc.asin, 2.0**-70.5, _magnitude(TINY, 1.0), cases=_outside_unit, tangent=True),
    "acos": Function(arc.acos, 2.0**-70.5, lambda x: abs(x) < 1.0, cases=_outside_unit),
    "atan": Function(lambda x: arc.atan(x.between(-HUGE, HUGE)), 2.0**-69.5, _magnitude(TINY, inf), tangent=True),
    "erf": Function(error_family.erf, 2.0**-67.5, _magnitude(TINY, inf)),
    "erfc": Function(error_family.erfc, 2.0**-67, lambda x: x < 26.0, cases=lambda x: [(x > 27.3, UNDERFLOW)]),
    "erf_inv": Function(inverse_error.erf_inv, 2.0**-66.7, _magnitude(TINY, 1.0), cases=_outside_unit),
    "lgamma": Function(
        gamma_family.lgamma,
        2.0**-67.3,
        _magnitude(TINY, HUGE),
        cases=lambda x: [(x > 2.6e305, OVERFLOW)],
        accepts=lambda x, value: abs(value.hi) > 0.0,
        bounded=True,
    ),
    "digamma": Function(
        gamma_family.digamma,
        2.0**-66.7,
        _magnitude(TINY, HUGE),
        cases=lambda x: [(x.m.both(x < 0.0, x.equals(x.rounded())), INVALID)],
        bounded=True,
    ),
    "rsqrt": Function(roots.rsqrt, 2.0**-97, lambda x: x.m.both(x > NORMAL, x < inf), cases=_below_zero, exact=True),
    "cbrt": Function(roots.cbrt, 2.0**-97, _magnitude(NORMAL, inf), exact=True),
}


def _far_from_zero(name: str) -> Function:
    """The second stage of the circular functions, for large operands."""
    evaluate = partial(_CIRCULAR[name], reduce=circular.reduce_far)
    return Function(evaluate, _circular_error(name), _magnitude(1.0, inf), safe=2.0**20, accepts=_certain_angle)


FAR = {name: _far_from_zero(name) for name in _CIRCULAR}


def _pair(x: Number, y: Number) -> Predicate:
    """Both numbers within 2**±900, or one of them 0."""
    m = x.m
    inside = [_magnitude(TINY, HUGE)(number) for number in (x, y)]
    zero = [number.equals(0.0) for number in (x, y)]
    either = m.either(m.both(inside[0], zero[1]), m.both(inside[1], zero[0]))
    return m.either(m.both(*inside), either)


def _is_integer(x: Number) -> Predicate:
    return x.equals(x.rounded())


def _power_inside(x: Number, y: Number) -> Predicate:
    m = x.m
    return m.both(m.both(_magnitude(NORMAL, inf)(x), _magnitude(TINY, inf)(y)), m.either(x > 0.0, _is_integer(y)))


def _no_power(x: Number, y: Number) -> list[Case]:
    m = x.m
    negative = m.both(x < 0.0, x > -inf)
    return [(m.both(m.both(negative, abs(y) < inf), m.negation(_is_integer(y))), INVALID)]


BINARY: dict[str, Function] = {
    "atan2": Function(arc.atan2, 2.0**-69.5, _pair, ranged=True),
    "hypot": Function(roots.hypot, 2.0**-97, _pair, exact=True),
    "power": Function(
        logarithmic.power, 2.0**-69.2, _power_inside, cases=_no_power, exact=True, ranged=True, saturates=True
    ),
}

FUNCTIONS = {**UNARY, **BINARY}
NAMES = tuple(FUNCTIONS)
