"""Elementary functions on arrays by float64 kernels, where their proven bound on the error decides the rounding.

Formats of at most 24 bits of precision and 32 bits. The loops of ``elementary.narrow.loop`` run compiled or on NumPy,
as ``soft.choice`` says; they decide all special operands, and all but a few others: about 4 e / 2**-24 of them, for a
bound e of 2**-45 one in 500,000. Those are left to the specification. Angles beyond 2**20 take a second pass.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlir.floatlib.elementary.narrow.kernels import KERNELS, MAX_EXPONENT, MAX_PRECISION
from tlir.floatlib.elementary.narrow.loop import loop
from tlir.floatlib.format import Format
from tlir.floatlib.native import ensure_float_environment
from tlir.floatlib.soft import choice
from tlir.floatlib.soft.catalog import UNDECIDED
from tlir.floatlib.words import Words

NAMES = tuple(KERNELS)

Places = NDArray[np.intp]


def applies(name: str, fmt: Format) -> bool:
    """Whether there is a kernel for the function and the format: of at most 24 bits of precision, within 2**±500."""
    return (
        name in KERNELS
        and fmt.precision <= MAX_PRECISION
        and fmt.width <= 32
        and fmt.emin - fmt.fraction_bits >= -MAX_EXPONENT
        and fmt.emax <= MAX_EXPONENT
    )


def evaluate_fast(name: str, fmt: Format, *operands: Words, flags: bool = False) -> tuple[Words, Any, Places]:
    """(words, flags or None, undecided) for flat arrays of words of equal size. At the indices ``undecided`` the other
    two have no meaning; elsewhere they are the specification's. FloatEnvironmentError where the thread
    flushes subnormal numbers or does not round to nearest."""
    ensure_float_environment()
    words, marks = _run(name, fmt, operands, flags, wide=False)
    places = _undecided(marks)
    if places.size and KERNELS[name].wide:
        wide_words, wide_marks = _run(name, fmt, tuple(operand[places] for operand in operands), flags, wide=True)
        words[places], marks[places] = wide_words, wide_marks
        places = places[_undecided(wide_marks)]
    return words, marks if flags else None, places


def _run(name: str, fmt: Format, operands: tuple[Words, ...], flags: bool, wide: bool) -> tuple[Words, Any]:
    result = choice.run(loop(name, fmt, flags, wide), operands, choice.ELEMENTARY_FROM)
    if result is None:
        return np.empty_like(operands[0]), np.full(operands[0].shape, UNDECIDED, dtype=np.uint8)
    return result


def _undecided(marks: NDArray[np.uint8]) -> Places:
    # UNDECIDED is the highest bit
    negative = marks.view(np.int8) < 0
    return np.flatnonzero(negative) if negative.any() else np.empty(0, dtype=np.intp)


def share_undecided(name: str, fmt: Format, *operands: Words) -> float:
    """The share of the elements that are left to the specification."""
    flat = [operand.reshape(-1) for operand in operands]
    if flat[0].size == 0:
        return 0.0
    return float(evaluate_fast(name, fmt, *flat)[2].size / flat[0].size)
