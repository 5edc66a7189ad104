"""Elementary and special functions, correctly rounded in every format.

``scalar`` is the specification of the real ones, by enclosures of Arb; ``arrays`` evaluates arrays of words, with the
kernels of ``narrow`` and ``double`` where their bounds decide the rounding.
"""

from __future__ import annotations

from tlir.floatlib.arb import ArgumentTooLargeError, ElementaryError, PrecisionLimitError
from tlir.floatlib.elementary.arrays import (
    COMPLEX_NAMES,
    NAMES,
    SPECIAL_NAMES,
    evaluate,
    evaluate_complex,
    share_undecided,
)
from tlir.floatlib.elementary.complex.words import elementary_complex
from tlir.floatlib.elementary.scalar import elementary

__all__ = [
    "COMPLEX_NAMES",
    "NAMES",
    "SPECIAL_NAMES",
    "ArgumentTooLargeError",
    "ElementaryError",
    "PrecisionLimitError",
    "elementary",
    "elementary_complex",
    "evaluate",
    "evaluate_complex",
    "share_undecided",
]
