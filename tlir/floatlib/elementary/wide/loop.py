"""Loops of the fixed-point kernels: operands taken apart, the value rounded with its bound, special operands.

A loop's result is a word and a byte of flags with the marks ``UNDECIDED`` (the bound does not decide the word: its
element is left to the specification) and ``MAY_BE_EXACT`` (the word is certain, its flags are not), like those of
``double.loop``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlir.floatlib.elementary.double.loop import marked
from tlir.floatlib.elementary.scalar import elementary
from tlir.floatlib.elementary.wide.function import Function, outcome
from tlir.floatlib.elementary.wide.functions import FUNCTIONS
from tlir.floatlib.elementary.wide.rounding import rounded
from tlir.floatlib.elementary.wide.work import Operand, Work, working_digits
from tlir.floatlib.format import Format, text_of
from tlir.floatlib.rounding import Flags
from tlir.floatlib.soft import choice
from tlir.floatlib.soft.catalog import MAY_BE_EXACT, UNDECIDED, Kernel
from tlir.floatlib.soft.machine import Machine, Predicate
from tlir.floatlib.soft.rounding import Result, override
from tlir.floatlib.soft.uint import Uint, constant
from tlir.floatlib.words import Words, limbs

BITS = 64
LEAST_PRECISION, GREATEST_PRECISION, GREATEST_EXPONENT_BITS = 25, 237, 20

INVALID = int(Flags.INVALID)


def applies(name: str, fmt: Format) -> bool:
    """Whether there is a loop for the function and the format, which ``fits``."""
    return name in FUNCTIONS and fits(fmt)


def fits(fmt: Format) -> bool:
    """Whether there are loops for a format: one of IEEE 754's kind of 25 to 237 bits of precision and at most 20
    exponent bits."""
    return (
        fmt.infinities
        and fmt.nans == "ieee"
        and fmt.signed
        and fmt.signed_zero
        and fmt.subnormals
        and LEAST_PRECISION <= fmt.precision <= GREATEST_PRECISION
        and 4 <= fmt.exponent_bits <= GREATEST_EXPONENT_BITS
        and fmt.bias == (1 << (fmt.exponent_bits - 1)) - 1
    )


@dataclass(frozen=True)
class Task:
    """What a loop computes: a function in a format, with its flags or without."""

    name: str
    fmt: Format
    flags: bool

    @property
    def function(self) -> Function:
        return FUNCTIONS[self.name]


@cache
def loop(name: str, fmt: Format, flags: bool = False) -> Kernel:
    """The loop of a function where it ``applies``; its byte has flags if asked for. KeyError for another name."""
    task = Task(name, fmt, flags)
    label = f"{name}({fmt}, fixed-point{', flags' if flags else ''})"
    operands = (fmt.width,) * task.function.operands
    key = f"{name} {text_of(fmt)}{' flags' if flags else ''}"
    return Kernel(label, operands, fmt.width, BITS, True, partial(_build, task), key=key)


def _build(task: Task, m: Machine, *words: Uint) -> Result:
    fmt, function, flags = task.fmt, task.function, task.flags
    operands = [Operand(m, fmt, word) for word in words]
    work = Work(m, fmt, working_digits(fmt.precision))
    result = rounded(m, fmt, function.evaluate(work, *operands), function.exact, flags)
    found: list[tuple[Predicate, int | Uint, int]] = []
    nan, signaling = operands[0].nan, operands[0].signaling
    for operand in operands[1:]:
        nan, signaling = m.either(nan, operand.nan), m.either(signaling, operand.signaling)
    assert fmt.nan is not None
    if function.operands == 1:
        found += [(p, *outcome(fmt, kind)) for p, kind in function.cases(work, *operands)]
        found += _special(task, m, operands[0])
        found += [(nan, fmt.nan, 0), (signaling, fmt.nan, INVALID)]
    else:
        # what is certain beside a NaN raises INVALID all the same where that is signaling
        found += [(nan, fmt.nan, 0)]
        found += [(p, *outcome(fmt, kind)) for p, kind in function.cases(work, *operands)]
    cases = [
        (p, constant(m, word, fmt.width) if isinstance(word, int) else word, raised if flags else 0)
        for p, word, raised in found
    ]
    result = override(m, result, cases)
    if function.operands > 1 and flags:
        invalid = m.select(signaling, m.constant(INVALID), m.constant(0))
        result = Result(result.word, m.or_(result.flags, invalid))
    return result


def _special(task: Task, m: Machine, x: Operand) -> list[tuple[Predicate, int, int]]:
    """Zeros, infinities and, where the function asks for it, ones: what the specification has."""
    fmt = task.fmt
    assert fmt.inf is not None
    one = fmt.encode(0, 1, 0)
    kinds: list[tuple[Predicate, int, tuple[int, ...]]] = [(x.zero, fmt.zero(0), (0, 1))]
    kinds.append((x.inf, fmt.inf, (0, 1)))
    if task.function.ones:
        kinds.append((x.word.low(fmt.magnitude_bits).equals(constant(m, one)), one, task.function.ones))
    found = []
    for here, word, signs in kinds:
        results = {sign: elementary(task.name, fmt, word | (fmt.sign_mask if sign else 0)) for sign in signs}
        if len(signs) == 2 and results[0] == results[1]:
            found.append((here, results[0][0], int(results[0][1])))
            continue
        for sign in signs:
            side = x.sign if sign else m.negation(x.sign)
            found.append((m.both(here, side), results[sign][0], int(results[sign][1])))
    return found


Places = NDArray[np.intp]


def evaluate_wide(name: str, fmt: Format, *operands: Words, flags: bool = False) -> tuple[Words, Any, Places]:
    """(words, flags or None, undecided) for flat arrays of words (elements, or elements and limbs) of equal size, like
    ``double.loop.evaluate_double``."""
    result = choice.run_long(loop(name, fmt, flags), operands)
    if result is None:
        count = operands[0].shape[0]
        return np.empty_like(operands[0]), np.zeros(count, dtype=np.uint8), np.arange(count)
    words, marks = result
    assert marks is not None
    places = marked(marks, UNDECIDED | MAY_BE_EXACT if flags else UNDECIDED)
    return words, marks if flags else None, places


def share_undecided(name: str, fmt: Format, *operands: Words) -> float:
    """The share of the elements that are left to the specification."""
    flat = [operand.reshape(-1, limbs(fmt)) if limbs(fmt) > 1 else operand.reshape(-1) for operand in operands]
    if flat[0].shape[0] == 0:
        return 0.0
    return float(evaluate_wide(name, fmt, *flat)[2].size / flat[0].shape[0])
