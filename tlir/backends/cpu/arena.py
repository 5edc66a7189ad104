"""Memory for large arrays, used again after the array is gone.

Fresh pages cost more than most kernels take to fill them: the system clears each when it is first touched. So the
memory of large arrays is kept when they are no longer used, up to ``KEPT`` bytes, and given to the next ones of about
the same size. Contents are not cleared.
"""

from __future__ import annotations

from collections import deque
from math import prod
from sys import getrefcount
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlir.floatlib.soft.objects import address, writable_address

LEAST = 1 << 18
"""Bytes from which an array comes from here."""

KEPT = 1 << 28
"""Bytes that are kept at most while nothing uses them."""

AT_HAND, AT_HAND_BYTES = 2, 1 << 20
"""Blocks of a size that are at hand, and the bytes of an array that comes from one, at most."""

ALIGNMENT = 64


class _Block:
    """Memory in which an array starts ``offset`` bytes behind its beginning, at ``address``."""

    __slots__ = ("address", "memory", "offset")

    def __init__(self, size: int) -> None:
        self.memory: NDArray[Any] = np.empty(size, np.uint8)
        start = address(self.memory)
        self.offset = -start % ALIGNMENT
        self.address = start + self.offset


_free: dict[int, deque[_Block]] = {}
"""Blocks by their size. Its operations are single steps of the interpreter: a block may come back at any moment, when
the last reference to an array goes."""

_at_hand: dict[int, deque[_Block]] = {}
"""Blocks by their size that are never given back: whether an array still refers to one says the number of references
to its memory. That takes a quarter of the time of a lease, which is some percent of a small product. A block is not in
here while somebody looks at it."""


def _references(block: _Block) -> int:
    return getrefcount(block.memory)


_UNUSED = _references(_Block(1))


class _Lease:
    """A block for as long as an array, or a view of it, refers to this object."""

    __slots__ = ("__array_interface__", "_block", "_size")

    def __init__(self, block: _Block, size: int, shape: tuple[int, ...], kind: str) -> None:
        self._block, self._size = block, size
        self.__array_interface__ = {"version": 3, "shape": shape, "typestr": kind, "data": (block.address, False)}

    def __del__(self) -> None:
        blocks = _free.setdefault(self._size, deque())
        if sum(size * len(each) for size, each in list(_free.items())) + self._size <= KEPT:
            blocks.append(self._block)


class Source:
    """Makes contiguous arrays of one shape and NumPy type, with anything in them, as ``numpy.empty`` does."""

    __slots__ = ("_blocks", "_dtype", "_interface", "_is_plain", "_shape", "_size", "_whole")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._shape, self._dtype = shape, dtype
        self._size = dtype.itemsize * prod(shape)
        self._whole = _rounded(self._size + ALIGNMENT)
        # ml_dtypes' types have no name that says what they are, though float8_e5m2 has the kind of NumPy's own floats
        self._is_plain = dtype.isbuiltin == 1
        self._interface = (shape, dtype.str) if self._is_plain else ((self._size,), "|u1")
        self._blocks: deque[_Block] | None = None
        if LEAST <= self._size <= AT_HAND_BYTES:
            self._blocks = _at_hand.setdefault(self._whole, deque(maxlen=AT_HAND))

    @property
    def nbytes(self) -> int:
        """The bytes of an array."""
        return self._size

    def new(self) -> tuple[NDArray[Any], int]:
        """An array, and its address."""
        if self._size < LEAST:
            array = np.empty(self._shape, self._dtype)
            return array, writable_address(array) if self._is_plain else address(array)
        blocks = self._blocks
        if blocks is not None:
            for _ in range(len(blocks)):
                try:
                    block = blocks.pop()
                except IndexError:
                    break
                if _references(block) == _UNUSED:
                    return self._taken(block, blocks)
                blocks.appendleft(block)
            if len(blocks) < AT_HAND:
                return self._taken(_Block(self._whole), blocks)
        return self._leased()

    def _taken(self, block: _Block, blocks: deque[_Block]) -> tuple[NDArray[Any], int]:
        array: NDArray[Any] = np.ndarray(self._shape, self._dtype, block.memory, block.offset)
        blocks.append(block)
        return array, block.address

    def _leased(self) -> tuple[NDArray[Any], int]:
        try:
            block = _free[self._whole].pop()
        except (KeyError, IndexError):
            block = _Block(self._whole)
        array = np.asarray(_Lease(block, self._whole, *self._interface))
        if array.dtype != self._dtype:
            array = array.view(self._dtype).reshape(self._shape)
        return array, block.address


def empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """A contiguous array with anything in it."""
    return Source(shape, dtype).new()[0]


def _rounded(size: int) -> int:
    """The next of eight sizes between two powers of two, so that nearly equal arrays share their memory."""
    step = 1 << max(0, size.bit_length() - 4)
    return -(-size // step) * step


def clear() -> None:
    """Give what is kept back to the system."""
    _free.clear()
    for blocks in _at_hand.values():
        blocks.clear()
