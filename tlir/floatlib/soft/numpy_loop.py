"""Kernels on arrays of words by NumPy: in chunks whose intermediate arrays stay in the processor's cache."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlir.floatlib.soft.catalog import Kernel
from tlir.floatlib.soft.machine import NumpyMachine
from tlir.floatlib.soft.uint import Uint
from tlir.floatlib.words import Words, integer_dtype

CHUNK = 1 << 13
"""Elements of a chunk: 64 kB per limb and intermediate array."""


def count_limbs(width: int) -> int:
    """The 64-bit limbs of a word of ``width`` bits in an array."""
    return -(-width // 64)


def run(kernel: Kernel, operands: tuple[Words, ...]) -> tuple[Words, NDArray[np.uint8] | None]:
    """Words and flags (None where the kernel has none) of operands of one common shape of elements."""
    machine = NumpyMachine(kernel.bits)
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
            values = [
                Uint(machine, _limbs(machine, column[part], limbs), width)
                for column, limbs, width in zip(columns, counts, kernel.operands, strict=True)
            ]
            result = kernel(machine, *values)
            for limb, word in enumerate(result.word.limbs):
                (out[part, limb] if count > 1 else out[part])[...] = word
            if flags is not None and result.flags is not None:
                flags[part] = result.flags
    full = (*shape, count) if count > 1 else shape
    return out.reshape(full), None if flags is None else flags.reshape(shape)


def _limbs(machine: NumpyMachine, part: Words, count: int) -> list[Any]:
    if count == 1:
        return [part.astype(machine.type)]
    return [np.ascontiguousarray(part[:, limb]) for limb in range(count)]
