"""The specification applied to arrays element by element, and tables of all words of a small format."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from tlir.floatlib.format import Format
from tlir.floatlib.words import Words, from_ints, shape_of, to_ints

FlagArray = NDArray[np.uint8]
Specification = Callable[..., tuple[int, int]]
"""Words as Python ints, one per operand, to (word or integer, flags)."""
Fill = Callable[[list[Words]], tuple[Words, FlagArray]]
"""Arrays of words, one per operand, to words and flags."""

TABLE_BITS = 16
"""Bits of all operands together up to which results are tabulated: pairs of 8-bit words, single 16-bit ones."""

MIN_ELEMENTS = 1 << 14
"""Arrays smaller than this do not repay building a table of 2**16 entries."""

_tables: dict[Hashable, tuple[Words, FlagArray]] = {}
"""Results by the operands' bits one after the other, the first operand's on top."""


def by_elements(
    function: Specification, result: Format, operands: Sequence[tuple[Format, Words]]
) -> tuple[Words, FlagArray]:
    """Words of ``result`` and flags for operands of one common shape of elements."""
    shape = shape_of(*operands[0])
    columns = [to_ints(fmt, words).reshape(-1).tolist() for fmt, words in operands]
    values = np.empty(prod(shape), dtype=object)
    flags = np.empty(prod(shape), dtype=np.uint8)
    for index, row in enumerate(zip(*columns, strict=True)):
        values[index], flags[index] = function(*row)
    return from_ints(result, values.reshape(shape)), flags.reshape(shape)


def has_table(key: Hashable, widths: Sequence[int], size: int) -> bool:
    """Whether ``size`` elements of the operation ``key`` come from a table: one that exists, or one that repays."""
    bits = sum(widths)
    return bits <= TABLE_BITS and (key in _tables or size >= min(MIN_ELEMENTS, 1 << bits))


def by_table(
    key: Hashable, fill: Fill, operands: Sequence[tuple[Format, Words]], flags: bool
) -> tuple[Words, FlagArray | None]:
    """Words and, if asked for, flags through the table called ``key``, which ``fill`` computes if it is not there.

    Every argument of the operation that is not an operand belongs to the key."""
    widths = [fmt.width for fmt, _ in operands]
    if key not in _tables:
        every = np.arange(1 << sum(widths), dtype=np.uint32)
        columns = []
        for k, (width, (_, words)) in enumerate(zip(widths, operands, strict=True)):
            below = sum(widths[k + 1 :])
            columns.append(((every >> np.uint32(below)) & np.uint32((1 << width) - 1)).astype(words.dtype))
        _tables[key] = fill(columns)
    index = operands[0][1]
    for width, (_, words) in zip(widths[1:], operands[1:], strict=True):
        index = (index.astype(np.uint16) << np.uint16(width)) | words
    table, table_flags = _tables[key]
    return np.take(table, index, axis=0), np.take(table_flags, index) if flags else None
