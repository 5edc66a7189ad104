"""Where the words of an element lie: the axes that stand behind those of the shape (see ``tlir.ir.tensor``)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tlir.ir.tensor import Words
from tlir.ir.types import DType, TensorType


def tail(dtype: DType) -> tuple[int, ...]:
    """Sizes of the axes of one element's words: (2,) for complex, (limbs,) where a word is wider than 64 bits."""
    return ((2,) if dtype.is_complex else ()) + ((dtype.limbs,) if dtype.limbs > 1 else ())


def per_element(type: TensorType, mask: Words) -> NDArray[np.bool_]:
    """A Boolean per element, shaped so that it broadcasts over the words of a tensor of this type."""
    return (mask != 0).reshape(mask.shape + (1,) * len(tail(type.dtype)))


def parts(dtype: DType, words: Words) -> tuple[Words, Words]:
    """The words of the real and of the imaginary parts, as views."""
    if dtype.limbs > 1:
        return words[..., 0, :], words[..., 1, :]
    return words[..., 0], words[..., 1]


def join(dtype: DType, real: Words, imag: Words) -> Words:
    """The words of the complex numbers with these parts; ``dtype`` is the complex one."""
    return np.stack((real, imag), axis=-2 if dtype.limbs > 1 else -1)
