"""What a float64 kernel of an elementary function returns, and what is declared about each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tlir.floatlib.elementary.number import Number
from tlir.floatlib.soft.machine import Predicate


@dataclass(frozen=True)
class Outcome:
    """The value of a kernel, and what is known of it.

    ``exact``: where it holds, the function's value is ``exact_value``. Elsewhere it is no number of 24 bits, unless it
    is zero (then ``value`` is), or ``perhaps_exact`` holds. ``doubtful``: where it holds, nothing is known. ``error``:
    a bound on the relative error that depends on the operands, in place of the kernel's; ``absolute``: one on the
    absolute error.
    """

    value: Number
    exact: Predicate | None = None
    exact_value: Number | None = None
    perhaps_exact: Predicate | None = None
    doubtful: Predicate | None = None
    error: Number | None = None
    absolute: Number | None = None


def _anything(*operands: Number) -> Predicate:
    """Whether no operand is a NaN."""
    first, *others = (x.equals(x) for x in operands)
    for other in others:
        first = operands[0].m.both(first, other)
    return first


@dataclass(frozen=True)
class Kernel:
    """A kernel of numbers of at most 24 bits, within 2**-502 and 2**502 where they are neither zero nor infinite.

    ``error`` bounds the relative error where ``inside`` holds, a condition on the operands that no NaN meets; there the
    value need not be the function's at zeros and infinities. Outside, the function has no value. ``fallback``: operands
    inside. ``wide`` serves where the kernel is doubtful. ``interleave``: how many vectors compiled code takes at a
    time: Horner's rule is a chain in which every step waits for the one before, but long code lacks registers for many.
    """

    function: Callable[..., Outcome | Number]
    error: float
    inside: Callable[..., Predicate] = _anything
    fallback: tuple[float, ...] = (0.5,)
    wide: Callable[..., Outcome | Number] | None = None
    interleave: int = 4
