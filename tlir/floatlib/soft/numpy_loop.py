"""Kernels on arrays of words by NumPy: in chunks whose intermediate arrays stay in the processor's cache."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlir.floatlib.soft.catalog import Kernel
from tlir.floatlib.soft.tape import compile_numpy
from tlir.floatlib.words import Words, integer_dtype

CHUNK = 1 << 14
"""Elements of a chunk: 128 kB per limb and intermediate array, of which a few are alive at a time."""


def count_limbs(width: int) -> int:
    """The 64-bit limbs of a word of ``width`` bits in an array."""
    return -(-width // 64)


def run(kernel: Kernel, operands: tuple[Words, ...]) -> tuple[Words, NDArray[np.uint8] | None]:
    """Words and flags (None where the kernel has none) of operands of one common shape of elements."""
    loop, word = _loop(kernel), np.dtype(f"u{kernel.bits // 8}")
    counts = [count_limbs(width) for width in kernel.operands]
    shape = operands[0].shape[:-1] if counts[0] > 1 else operands[0].shape
    size = prod(shape)
    columns = [
        array.reshape(size, count) if count > 1 else array.reshape(size)
        for array, count in zip(operands, counts, strict=True)
    ]
    count = count_limbs(kernel.result)
    out = np.empty((size, count) if count > 1 else size, dtype=integer_dtype(min(kernel.result, 64)))
    flags = np.empty(size, dtype=np.uint8) if kernel.flags else None
    with np.errstate(all="ignore"):
        for start in range(0, size, CHUNK):
            part = slice(start, start + CHUNK)
            limbs = [
                limb
                for column, limb_count in zip(columns, counts, strict=True)
                for limb in _limbs(word, column[part], limb_count)
            ]
            results = loop(*limbs)
            for limb, result in enumerate(results[:count]):
                (out[part, limb] if count > 1 else out[part])[...] = result
            if flags is not None:
                flags[part] = results[count]
    full = (*shape, count) if count > 1 else shape
    return out.reshape(full), None if flags is None else flags.reshape(shape)


@lru_cache(maxsize=1024)
def _loop(kernel: Kernel) -> Callable[..., tuple[Any, ...]]:
    return compile_numpy(kernel, kernel.bits, kernel.operands, kernel.flags)


def _limbs(word: np.dtype[Any], part: Words, count: int) -> list[Any]:
    if count == 1:
        return [part.astype(word)]
    return [np.ascontiguousarray(part[:, limb]) for limb in range(count)]
