"""The specification applied to arrays: element by element, or through tables of all words of a small format."""

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

TABLE_BITS = 16
"""Bits of all operands together up to which results are tabulated: pairs of 8-bit words, single 16-bit ones."""

MIN_ELEMENTS = 1 << 14
"""Arrays smaller than this do not repay building a table of 2**16 entries."""

_tables: dict[Hashable, tuple[Words, FlagArray]] = {}


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


def by_table(
    key: Hashable, function: Specification, result: Format, operands: Sequence[tuple[Format, Words]]
) -> tuple[Words, FlagArray] | None:
    """The same through the table called ``key`` (every argument of the function that is not an operand belongs to the
    key), None where none is built yet and the array does not repay it."""
    widths = [fmt.width for fmt, _ in operands]
    if sum(widths) > TABLE_BITS:
        return None
    full_key = (key, result, *(fmt for fmt, _ in operands))
    if full_key not in _tables:
        if prod(shape_of(*operands[0])) < min(MIN_ELEMENTS, 1 << sum(widths)):
            return None
        grid = np.meshgrid(*(np.arange(1 << width) for width in widths), indexing="ij")
        columns = [(fmt, axis.astype(words.dtype)) for (fmt, words), axis in zip(operands, grid, strict=True)]
        _tables[full_key] = by_elements(function, result, columns)
    words, flags = _tables[full_key]
    index = tuple(operand for _, operand in operands)
    return np.asarray(words[index]), np.asarray(flags[index])
