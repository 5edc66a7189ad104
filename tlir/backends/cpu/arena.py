"""Memory for large arrays, used again after the array is gone.

Fresh pages cost more than most kernels take to fill them: the system clears each when it is first touched. So the
memory of large arrays is kept when they are no longer used, up to ``KEPT`` bytes, and given to the next ones of about
the same size. Contents are not cleared.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlir.floatlib.soft.objects import address

LEAST = 1 << 18
"""Bytes from which an array comes from here."""

KEPT = 1 << 28
"""Bytes that are kept at most while nothing uses them."""

ALIGNMENT = 64

_free: dict[int, deque[NDArray[Any]]] = {}
"""Blocks by their size. Its operations are single steps of the interpreter: a block may come back at any moment, when
the last reference to an array goes."""


class _Lease:
    """A block for as long as an array, or a view of it, refers to this object."""

    __slots__ = ("__array_interface__", "_block")

    def __init__(self, block: NDArray[Any], size: int) -> None:
        self._block = block
        start = address(block)
        data = (start + -start % ALIGNMENT, False)
        self.__array_interface__ = {"version": 3, "shape": (size,), "typestr": "|u1", "data": data}

    def __del__(self) -> None:
        blocks = _free.setdefault(self._block.size, deque())
        if sum(size * len(each) for size, each in list(_free.items())) + self._block.size <= KEPT:
            blocks.append(self._block)


def empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """A contiguous array with anything in it, as ``numpy.empty`` gives one."""
    size = dtype.itemsize
    for extent in shape:
        size *= extent
    if size < LEAST:
        return np.empty(shape, dtype)
    whole = _rounded(size + ALIGNMENT)
    try:
        block = _free[whole].pop()
    except (KeyError, IndexError):
        block = np.empty(whole, np.uint8)
    return np.asarray(_Lease(block, size)).view(dtype).reshape(shape)


def _rounded(size: int) -> int:
    """The next of eight sizes between two powers of two, so that nearly equal arrays share their memory."""
    step = 1 << max(0, size.bit_length() - 4)
    return -(-size // step) * step


def clear() -> None:
    """Give what is kept back to the system."""
    _free.clear()
