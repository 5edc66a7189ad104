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


class Beyond(NamedTuple):
    """What a function in binary64 does where the operand that is no angle is below ``-low`` or above ``high``: each
    part is what it is at ``-at`` or ``at``, GROWN to infinity, VANISHED to zero or as it is THERE. An angle of 2**-900
    or more does not change that."""

    low: float
    below: tuple[int, int]
    high: float
    above: tuple[int, int]
    at: float = 600.0


VANISHED, THERE, GROWN = -1, 0, 1


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
    beyond: Beyond | None = None

    def is_beyond(self, x: Number) -> tuple[Predicate, Predicate]:
        """Where the operand that is no angle is below and where it is above."""
        if self.beyond is None:
            return x.m.truth(False), x.m.truth(False)
        return x < -self.beyond.low, x > self.beyond.high


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
_ALL_GROW, _ALL_VANISH, _ONE = (GROWN, GROWN), (VANISHED, VANISHED), (THERE, VANISHED)
# e**-746 < 2**-1076, e**1500 2**-900 > 2**1024, 4 e**-760 < 2**-1094
_EXPONENTIAL = Beyond(746.0, _ALL_VANISH, 1500.0, _ALL_GROW)
_LESS_ONE = Beyond(746.0, _ONE, 1500.0, _ALL_GROW)
_SIGMOID = Beyond(746.0, _ALL_VANISH, 746.0, _ONE)
_BOTH_WAYS = Beyond(1500.0, _ALL_GROW, 1500.0, _ALL_GROW)
_TO_ONE = Beyond(380.0, _ONE, 380.0, _ONE, 290.0)
_TO_I = Beyond(380.0, _ONE[::-1], 380.0, _ONE[::-1], 290.0)
_EXPONENT = (hyperbolic.REAL_LOW, hyperbolic.REAL_HIGH)
_WIDE_EXPONENT = (-690.0, 709.0)
_EVEN, _WIDE_EVEN = (-hyperbolic.REAL_HIGH, hyperbolic.REAL_HIGH), (-680.0, 680.0)
_TANH, _WIDE_TANH = (-hyperbolic.TANH_END, hyperbolic.TANH_END), (-300.0, 300.0)
_LOGISTIC = (hyperbolic.REAL_LOW, -hyperbolic.REAL_LOW)

UNARY: dict[str, Function] = {
    "sqrt": Function(roots.sqrt, scaled=1),
    "rsqrt": Function(roots.rsqrt, poles=_zero, scaled=1),
    "sign": Function(roots.sign, poles=_zero, cases=lambda x, y: [(_zero(x, y), 0, 0)], scaled=1),
    "exponential": Function(hyperbolic.exponential, 1, _EXPONENT, _WIDE_EXPONENT, range=FAR, beyond=_EXPONENTIAL),
    "exponential_minus_one": Function(
        hyperbolic.exponential_minus_one, 1, _EXPONENT, _WIDE_EXPONENT, range=FAR, beyond=_LESS_ONE
    ),
    "log": Function(logarithms.log, poles=_zero, scaled=1),
    "log_plus_one": Function(logarithms.log_plus_one, poles=_at(-1.0, 0.0, either=False)),
    "logistic": Function(hyperbolic.logistic, 1, _LOGISTIC, _WIDE_EVEN, range=FAR, beyond=_SIGMOID),
    "sinh": Function(hyperbolic.sinh, 1, _EVEN, _WIDE_EVEN, range=FAR, beyond=_BOTH_WAYS),
    "cosh": Function(hyperbolic.cosh, 1, _EVEN, _WIDE_EVEN, range=FAR, beyond=_BOTH_WAYS),
    "tanh": Function(hyperbolic.tanh, 1, _TANH, _WIDE_TANH, range=FAR, beyond=_TO_ONE),
    "sine": Function(_sine, 0, _EVEN, _WIDE_EVEN, range=FAR, beyond=_BOTH_WAYS),
    "cosine": Function(_cosine, 0, _EVEN, _WIDE_EVEN, range=FAR, beyond=_BOTH_WAYS),
    "tan": Function(_tan, 0, _TANH, _WIDE_TANH, range=FAR, beyond=_TO_I),
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
        if wide and function.angle not in (None, index):
            low, high = function.wide_limits
            usual = m.either(x.equals(0.0), m.both(size > 1.0 / limit, m.both(x > low, x < high)))
            held = m.either(usual, m.either(*function.is_beyond(x)))
        elif wide:
            held = m.either(x.equals(0.0), m.both(size > 1.0 / limit, size < limit))
        elif function.angle in (None, index):
            held = size < inf
        else:
            # infinity gives what is beyond the limits gives
            held = x.equals(x)
        if function.angle == index:
            held = m.both(held, size > 1.0 if far else size < circular.NEAR)
        result = m.both(result, held)
    for pair in range(function.scaled if wide else 0):
        sizes = [abs(x) for x in operands[2 * pair : 2 * pair + 2]]
        less, more = sizes[0].minimum(sizes[1]), sizes[0].maximum(sizes[1])
        result = m.both(result, m.either(less.equals(0.0), less > more * LEAST_SHARE))
    poles = function.poles(*operands)
    return result if poles is None else m.both(result, m.negation(poles))


def _limited(function: Function, wide: bool, x: Number) -> Number:
    if not wide:
        return x.between(*function.limits)
    if function.beyond is None:
        return x
    below, above = function.is_beyond(x)
    at = function.beyond.at
    return x.like(-at).where(below, x.like(at).where(above, x))


def evaluate(function: Function, wide: bool, far: bool, *operands: Number) -> Outcome:
    """The parts for operands ``inside``."""
    limited = [
        x if function.angle in (None, index) else _limited(function, wide, x) for index, x in enumerate(operands)
    ]
    return function.evaluate(*limited, Means(accurate=wide, far=far, wide=wide))
