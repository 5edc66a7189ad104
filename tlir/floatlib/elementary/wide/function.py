"""What the loop must know of a kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tlir.floatlib.arb import huge, tiny
from tlir.floatlib.elementary.wide.work import Operand, Value, Work
from tlir.floatlib.format import Format
from tlir.floatlib.rounding import Flags
from tlir.floatlib.soft.machine import Predicate
from tlir.floatlib.soft.uint import Uint

OVERFLOW, NEGATIVE_OVERFLOW, UNDERFLOW, NEGATIVE_UNDERFLOW, INVALID = (
    "overflow",
    "negative overflow",
    "underflow",
    "negative underflow",
    "invalid",
)
"""The result is beyond every number of the format, below half of all of them, or none."""

Outcome = str | tuple[int | Uint, int]
"""One of the above, or a word and its flags."""
Case = tuple[Predicate, Outcome]
"""Where it holds, the result is that, whatever the kernel has computed."""
Cases = Callable[..., list[Case]]


def no_cases(work: Work, *operands: Operand) -> list[Case]:
    return []


class Function(NamedTuple):
    """A kernel.

    ``evaluate(work, *operands)`` gives the value of numbers other than zero that are in no case; for all other operands
    it gives anything, but must not look beyond a table. ``cases(work, *operands)``: where results are certain without
    it; later ones count before earlier ones. Zeros, infinities and NaN of functions of one operand need none: their
    results are those of the specification. ``exact``: whether values may be numbers of the format, so that INEXACT is
    not certain. ``ones``: signs (0 or 1) of the operands ±1 whose results are those of the specification too."""

    evaluate: Callable[..., Value]
    cases: Cases = no_cases
    exact: bool = False
    ones: tuple[int, ...] = ()
    operands: int = 1


def outcome(fmt: Format, kind: Outcome) -> tuple[int | Uint, int]:
    """The word and flags of a case."""
    if isinstance(kind, tuple):
        return kind
    if kind == INVALID:
        return fmt.invalid_word, int(Flags.INVALID)
    result = huge if kind in (OVERFLOW, NEGATIVE_OVERFLOW) else tiny
    word, raised = result(fmt, int(kind in (NEGATIVE_OVERFLOW, NEGATIVE_UNDERFLOW)))
    return word, int(raised)
