"""The kernels of complex functions by name, and where they hold.

Operands are binary64 numbers: those of a format of at most 24 bits of precision within 2**±``hyperbolic.RANGE``, or of
binary64 itself, within 2**±``Function.range`` where they are not 0. A kernel's products of numbers beyond that would
overflow, or lose what they are split into.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import NamedTuple

from tlir.floatlib.elementary.complex import arcs, hyperbolic, logarithms, roots
from tlir.floatlib.elementary.complex.parts import LEAST_SHARE, Means, Outcome
from tlir.floatlib.elementary.double import circular
from tlir.floatlib.elementary.number import Number
from tlir.floatlib.soft.machine import Predicate

SCALED = 1000
"""Numbers that are scaled are within 2**±SCALED."""

Case = tuple[Predicate, int | None, int | None]
"""Where it holds, and both parts of the result there, which are 0, 1 or NaN (None)."""


class Function(NamedTuple):
    """A kernel of the parts of its operands and of the ``Means`` to use. ``angle``: the operand of two that is an
    angle. ``limits`` of the other one: in narrow formats what is beyond them has the same result as they have; binary64
    operands beyond ``wide_limits`` are left out. ``poles``: where it does not hold. ``scaled``: how many pairs of parts
    are multiplied by a power of two, and need not be within the range but not too different."""

    evaluate: Callable[..., Outcome]
    angle: int | None = None
    limits: tuple[float, float] = (-inf, inf)
    wide_limits: tuple[float, float] = (-inf, inf)
    poles: Callable[..., Predicate | None] = lambda *operands: None
    cases: Callable[..., list[Case]] = lambda *operands: []
    range: int = 300
    scaled: int = 0


def _zero(x: Number, y: Number) -> Predicate:
    return x.m.both(x.equals(0.0), y.equals(0.0))


def _at(real: float, imaginary: float, either: bool) -> Callable[[Number, Number], Predicate]:
    """One point, or this and its negative."""

    def test(x: Number, y: Number) -> Predicate:
        a, b = (abs(x), abs(y)) if either else (x, y)
        return x.m.both(a.equals(real), b.equals(imaginary))

    return test


def _sine(x: Number, y: Number, means: Means) -> Outcome:
    """-i sinh(iz) = cosh y sin x + i sinh y cos x."""
    imaginary, real, certain = hyperbolic.sinh(y, x, means)
    return Outcome(real, imaginary, certain)


def _cosine(x: Number, y: Number, means: Means) -> Outcome:
    """cosh(iz)."""
    return hyperbolic.cosh(-y, x, means)


def _tan(x: Number, y: Number, means: Means) -> Outcome:
    """-i tanh(iz)."""
    imaginary, real, certain = hyperbolic.tanh(y, x, means)
    return Outcome(real, imaginary, certain)


FAR = 900
"""The range of exponentials: results below 2**-900 are left out."""
_EXPONENT = (hyperbolic.REAL_LOW, hyperbolic.REAL_HIGH)
_WIDE_EXPONENT = (-690.0, 709.0)
_EVEN, _WIDE_EVEN = (-hyperbolic.REAL_HIGH, hyperbolic.REAL_HIGH), (-680.0, 680.0)
_TANH, _WIDE_TANH = (-hyperbolic.TANH_END, hyperbolic.TANH_END), (-300.0, 300.0)
_LOGISTIC = (hyperbolic.REAL_LOW, -hyperbolic.REAL_LOW)

UNARY: dict[str, Function] = {
    "sqrt": Function(roots.sqrt, scaled=1),
    "rsqrt": Function(roots.rsqrt, poles=_zero, scaled=1),
    "sign": Function(roots.sign, poles=_zero, cases=lambda x, y: [(_zero(x, y), 0, 0)], scaled=1),
    "exponential": Function(hyperbolic.exponential, 1, _EXPONENT, _WIDE_EXPONENT, range=FAR),
    "exponential_minus_one": Function(hyperbolic.exponential_minus_one, 1, _EXPONENT, _WIDE_EXPONENT, range=FAR),
    "log": Function(logarithms.log, poles=_zero, scaled=1),
    "log_plus_one": Function(logarithms.log_plus_one, poles=_at(-1.0, 0.0, either=False)),
    "logistic": Function(hyperbolic.logistic, 1, _LOGISTIC, _WIDE_EVEN, range=FAR),
    "sinh": Function(hyperbolic.sinh, 1, _EVEN, _WIDE_EVEN, range=FAR),
    "cosh": Function(hyperbolic.cosh, 1, _EVEN, _WIDE_EVEN, range=FAR),
    "tanh": Function(hyperbolic.tanh, 1, _TANH, _WIDE_TANH, range=FAR),
    "sine": Function(_sine, 0, _EVEN, _WIDE_EVEN, range=FAR),
    "cosine": Function(_cosine, 0, _EVEN, _WIDE_EVEN, range=FAR),
    "tan": Function(_tan, 0, _TANH, _WIDE_TANH, range=FAR),
    "asin": Function(arcs.asin),
    "acos": Function(arcs.acos),
    "atan": Function(arcs.atan, poles=_at(0.0, 1.0, either=True)),
    "asinh": Function(arcs.asinh),
    "acosh": Function(arcs.acosh),
    "atanh": Function(arcs.atanh, poles=_at(1.0, 0.0, either=True)),
}


def _no_exponent(a: Number, b: Number, c: Number, d: Number) -> list[Case]:
    return [(_zero(c, d), 1, 0)]


def _no_divisor(a: Number, b: Number, c: Number, d: Number) -> list[Case]:
    """0 / 0 in both parts: products with 0 are 0 or NaN."""
    return [(_zero(c, d), None, None)]


BINARY: dict[str, Function] = {
    "divide": Function(roots.quotient, poles=lambda a, b, c, d: _zero(c, d), cases=_no_divisor, scaled=2),
    "power": Function(logarithms.power, poles=lambda a, b, c, d: _zero(a, b), cases=_no_exponent, scaled=1),
}

FUNCTIONS = {**UNARY, **BINARY}


def inside(function: Function, wide: bool, far: bool, *operands: Number) -> Predicate:
    """Where the kernel holds, for binary64 operands if ``wide``, in the second stage if ``far``."""
    m = operands[0].m
    result = m.truth(True)
    for index, x in enumerate(operands):
        size, limit = abs(x), 2.0 ** (SCALED if index < 2 * function.scaled else function.range)
        if wide:
            held = m.either(x.equals(0.0), m.both(size > 1.0 / limit, size < limit))
        elif function.angle in (None, index):
            held = size < inf
        else:
            # infinity gives what is beyond the limits gives
            held = x.equals(x)
        if function.angle == index:
            held = m.both(held, size > 1.0 if far else size < circular.NEAR)
        elif wide and function.angle is not None:
            low, high = function.wide_limits
            held = m.both(held, m.both(x > low, x < high))
        result = m.both(result, held)
    for pair in range(function.scaled if wide else 0):
        sizes = [abs(x) for x in operands[2 * pair : 2 * pair + 2]]
        less, more = sizes[0].minimum(sizes[1]), sizes[0].maximum(sizes[1])
        result = m.both(result, m.either(less.equals(0.0), less > more * LEAST_SHARE))
    poles = function.poles(*operands)
    return result if poles is None else m.both(result, m.negation(poles))


def evaluate(function: Function, wide: bool, far: bool, *operands: Number) -> Outcome:
    """The parts for operands ``inside``."""
    limited = [
        x if wide or function.angle in (None, index) else x.between(*function.limits)
        for index, x in enumerate(operands)
    ]
    return function.evaluate(*limited, Means(accurate=wide, far=far, wide=wide))
