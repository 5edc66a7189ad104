"""Elementary functions on arrays by float64 kernels, where their proven bound on the error decides the rounding.

A kernel's value v is within ``elementary_kernels.ERROR`` of the function's, relatively. If v (1 - e) and v (1 + e),
for an e that covers the rounding of these two products too, round to the same word (and raise the same flags), so
does the exact value, because rounding is monotonic. All other elements are left to the specification: special
operands, and about 2 e / 2**-24 = 2**-15 of the others in a format of 24 bits of precision, fewer below.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlir.floatlib import elementary_kernels as kernels
from tlir.floatlib.format import Format
from tlir.floatlib.native import ensure_gradual_underflow, from_carrier, round_float64, to_float64
from tlir.floatlib.rounding import Flags
from tlir.floatlib.words import Words, word_dtype

CHUNK = 1 << 13
"""Elements evaluated at a time, so that intermediate results stay in the cache."""

NAMES = (*kernels.UNARY, *kernels.BINARY)

Mask = NDArray[np.bool_]
Values = NDArray[np.float64]


def applies(name: str, fmt: Format) -> bool:
    """Whether there is a kernel for the function and the format: of at most 24 bits of precision, within 2**±500."""
    return (
        name in NAMES
        and fmt.precision <= kernels.MAX_PRECISION
        and fmt.emin - fmt.fraction_bits >= -kernels.MAX_EXPONENT
        and fmt.emax <= kernels.MAX_EXPONENT
    )


def evaluate_fast(name: str, fmt: Format, *operands: Words, flags: bool = False) -> tuple[Words, Any, Mask]:
    """(words, flags or None, undecided) for flat arrays of words of equal size. What is undecided has no meaning in the
    other two; the rest is what the specification gives. FloatEnvironmentError where subnormal numbers are flushed."""
    ensure_gradual_underflow()
    size = operands[0].size
    words = np.zeros(size, dtype=word_dtype(fmt))
    raised = np.zeros(size, dtype=np.uint8) if flags else None
    undecided = np.ones(size, dtype=np.bool_)
    with np.errstate(all="ignore"):
        for start in range(0, size, CHUNK):
            part = slice(start, start + CHUNK)
            values = [to_float64(fmt, operand[part]) for operand in operands]
            words[part], raised_here, undecided[part] = _evaluate(name, fmt, values, flags)
            if raised is not None:
                raised[part] = raised_here
    return words, raised, undecided


def share_undecided(name: str, fmt: Format, *operands: Words) -> float:
    """The share of the elements that the kernel leaves to the specification, zeros, infinities and NaN included."""
    flat = [operand.reshape(-1) for operand in operands]
    if flat[0].size == 0:
        return 0.0
    return float(evaluate_fast(name, fmt, *flat)[2].mean())


def _evaluate(name: str, fmt: Format, values: list[Values], flags: bool) -> tuple[Words, Any, Mask]:
    ordinary = np.ones(values[0].shape, dtype=np.bool_)
    for value in values:
        ordinary &= np.isfinite(value) & (value != 0)
    # elsewhere the kernel gets a number that it can take
    safe = [np.where(ordinary, value, 0.5) for value in values]
    if name in kernels.BINARY:
        function, undefined = kernels.BINARY[name]
        valid, outside = ordinary, undefined(*safe) & ordinary
        results = function(*safe)
    else:
        kernel = kernels.UNARY[name]
        valid, outside = ordinary & kernel.inside(safe[0]), kernel.outside(safe[0]) & ordinary
        results = kernel.function(np.where(valid, safe[0], 2.0 if name == "acosh" else 0.5))
    words, raised, decided = _round(name, fmt, results, safe, flags)
    decided &= valid
    words = np.where(outside, word_dtype(fmt).type(fmt.invalid_word), words)
    decided |= outside
    if flags:
        raised[outside] = Flags.INVALID
    return words, raised, ~decided


def _round(name: str, fmt: Format, values: Values, operands: list[Values], flags: bool) -> tuple[Words, Any, Mask]:
    """Words, flags, and where the bound decides both."""
    error = kernels.POWER_ERROR if name == "power" else kernels.ERROR
    # twice the bound covers the rounding of the products too
    low, high = values * (1 - 2 * error), values * (1 + 2 * error)
    decided = np.isfinite(values) & (values != 0)
    if not flags:
        words = from_carrier(fmt, low)
        return words, None, decided & (words == from_carrier(fmt, high))
    below, above = round_float64(fmt, low), round_float64(fmt, high)
    decided &= (below.words == above.words) & ~below.undefined
    decided &= (below.tiny == above.tiny) & (below.overflow == above.overflow)
    if name in kernels.MAY_BE_EXACT:
        nearest = to_float64(fmt, below.words)
        contained = (np.minimum(low, high) <= nearest) & (nearest <= np.maximum(low, high))
        decided &= ~(contained & kernels.MAY_BE_EXACT[name](*operands))
    raised = np.full(values.shape, Flags.INEXACT, dtype=np.uint8)
    raised[below.tiny] = Flags.INEXACT | Flags.UNDERFLOW
    raised[below.overflow] = Flags.INEXACT | Flags.OVERFLOW
    return below.words, raised, decided
