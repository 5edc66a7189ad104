"""Arrays that kernels read and no artifact holds: their words are those of a function of the position."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tlir.ir.tensor import Tensor
from tlir.ir.types import TensorType

FUNCTIONS = ("cosine", "sine", "minus_sine")
"""Of 2 pi j / n at position j of n, correctly rounded; zeros are +0."""


@lru_cache(maxsize=32)
def table(function: str, type: TensorType) -> Tensor:
    """The array of a type of one axis and a floating-point dtype."""
    from tlir.floatlib.elementary.special.roots import root_words

    cosines, sines = root_words(type.dtype.float_format, type.shape[0])
    if function == "cosine":
        return Tensor(type, cosines)
    return Tensor(type, sines if function == "sine" else np.ascontiguousarray(sines[-np.arange(type.shape[0])]))
