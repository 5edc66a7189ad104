"""Values of tensors and attributes as short exact text."""

from __future__ import annotations

from typing import Any

import numpy as np

from tlir.floatlib.printing import to_decimal
from tlir.ir.ops import Accumulate
from tlir.ir.tensor import Tensor
from tlir.ir.types import DType
from tlir.passes.render.escape import printable

INLINE = 8
"""Constants of up to this many elements are written out."""


def component_words(tensor: Tensor, count: int | None = None) -> list[int]:
    """The words of the first ``count`` elements (default: of all) as integers, in row-major order; a complex element
    gives two."""
    limbs = tensor.dtype.limbs
    flat = tensor.words.reshape(-1, limbs) if limbs > 1 else tensor.words.reshape(-1)
    if count is not None:
        flat = flat[: count * tensor.dtype.components]
    if limbs > 1:
        return [int.from_bytes(row.astype("<u8").tobytes(), "little") for row in flat]
    return [int(word) for word in flat]


def word_text(dtype: DType, word: int) -> str:
    """One word of a real dtype: true or false, an integer, or the shortest decimal that rounds to it."""
    if dtype.is_bool:
        return "true" if word else "false"
    if dtype.is_integer:
        return str(word - (1 << dtype.bits) if dtype.is_signed and word >> (dtype.bits - 1) else word)
    return to_decimal(dtype.float_format, word)


def element_texts(tensor: Tensor, count: int | None = None) -> list[str]:
    """The first ``count`` elements (default: all), row-major; complex ones as ``(real, imaginary)``."""
    words = component_words(tensor, count)
    texts = [word_text(tensor.dtype.component, word) for word in words]
    if tensor.dtype.is_complex:
        return [f"({real}, {imaginary})" for real, imaginary in zip(texts[::2], texts[1::2], strict=True)]
    return texts


def is_splat(tensor: Tensor) -> bool:
    """Whether all elements have the same words."""
    if tensor.type.size == 0:
        return False
    rows = tensor.words.reshape(tensor.type.size, -1)
    # the last one first: a table of different values is told apart without reading it
    return bool(np.array_equal(rows[0], rows[-1])) and bool((rows == rows[0]).all())


def tensor_text(tensor: Tensor) -> str:
    """A tensor on one line: nested lists where it is small, ``splat v`` for equal elements, otherwise its first
    elements and the number of all."""
    size = tensor.type.size
    if size <= INLINE:
        return _nested(element_texts(tensor), tensor.shape)
    if is_splat(tensor):
        return f"splat {element_texts(tensor, 1)[0]}"
    return f"[{', '.join(element_texts(tensor, 3))}, … {size} elements]"


def _nested(texts: list[str], shape: tuple[int, ...]) -> str:
    if not shape:
        return texts[0]
    step = len(texts) // shape[0] if shape[0] else 0
    parts = (_nested(texts[k * step : (k + 1) * step], shape[1:]) for k in range(shape[0]))
    return "[" + ", ".join(parts) + "]"


def attribute_text(value: Any) -> str:
    """An attribute's value: an integer, a list of integers, a word, a tensor, or how a reduction accumulates."""
    if isinstance(value, Tensor):
        return tensor_text(value)
    if isinstance(value, Accumulate):
        return accumulate_text(value)
    if isinstance(value, tuple | list):
        return "[" + ", ".join(attribute_text(item) for item in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return printable(str(value))


def accumulate_text(value: Accumulate | None) -> str:
    """``float32 sequential fma``; without a dtype the result's is meant, and None is the default."""
    if value is None:
        return "sequential"
    parts = [printable(value.dtype.name)] if value.dtype else []
    return " ".join([*parts, value.order_text, *(["fma"] if value.fma else [])])
