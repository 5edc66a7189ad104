"""Elementary functions on arrays of words, correctly rounded.

Words and flags are those of ``elementary.scalar.elementary`` and ``elementary.complex.words.elementary_complex``, the
specification. Here formats of up to 24 bits of precision go through ``elementary.narrow.arrays``, binary64 and formats
within it through ``elementary.double.loop``, what that does not decide and wider formats through
``elementary.wide.loop``, complex numbers through ``elementary.complex.loop``, where their bounds decide; each distinct
operand of the rest is evaluated once, and formats of up to 16 bits keep what was evaluated.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlir.floatlib.arb import ArgumentTooLargeError, ElementaryError, PrecisionLimitError
from tlir.floatlib.elementary.complex import loop as pairs
from tlir.floatlib.elementary.complex.words import BINARY as COMPLEX_BINARY
from tlir.floatlib.elementary.complex.words import UNARY as COMPLEX_UNARY
from tlir.floatlib.elementary.complex.words import elementary_complex
from tlir.floatlib.elementary.double import loop as double_double
from tlir.floatlib.elementary.narrow import arrays as single
from tlir.floatlib.elementary.narrow.kernels import KERNELS
from tlir.floatlib.elementary.narrow.loop import loop as narrow_loop
from tlir.floatlib.elementary.scalar import BINARY, UNARY, elementary
from tlir.floatlib.elementary.special.words import SPECIAL
from tlir.floatlib.elementary.wide import loop as fixed_point
from tlir.floatlib.exclusive import exclusive
from tlir.floatlib.format import Format
from tlir.floatlib.words import Words, broadcast, from_ints, limbs, shape_of, to_ints, word_dtype

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

NAMES = (*UNARY, *BINARY)
"""The real functions."""

SPECIAL_NAMES = tuple(SPECIAL)
"""The real special functions of ``elementary.special.words``, of one to three operands."""

COMPLEX_NAMES = (*COMPLEX_UNARY, *COMPLEX_BINARY, "abs")
"""The complex ones."""

TABLE_BITS = 16
MAX_TABLES = 64
"""Tables of results that are kept, each of at most 2**16 words, flags and marks: 4 bytes an entry."""

Flags8 = NDArray[np.uint8]


def evaluate(name: str, fmt: Format, *operands: Words, flags: bool = False) -> Any:
    """The function ``name`` (of ``NAMES`` or ``SPECIAL_NAMES``) at every element of the operands, which broadcast.

    Operands and result are arrays of words (``words.word_dtype``; wider formats than 64 bits have a trailing axis of
    limbs) of any rank and size. With ``flags`` the result is (words, flags), the flags a uint8 array of
    ``rounding.Flags`` of the shape of the elements. ElementaryError as the specification.
    """
    columns = broadcast(fmt, *operands)
    shape = shape_of(fmt, columns[0])
    if len(columns) == 1 and fmt.width <= TABLE_BITS:
        words, raised = _TABLES.look_up(name, fmt, columns[0])
    else:
        flat = [column.reshape(-1, limbs(fmt)) for column in columns]
        words, raised = _evaluate(name, fmt, flat, flags)
        words = words.reshape(columns[0].shape)
    return (words, raised.reshape(shape)) if flags else words


def _evaluate(name: str, fmt: Format, columns: list[Words], flags: bool) -> tuple[Words, Any]:
    """Words (elements, limbs) and flags (elements; of no meaning unless asked for) of columns (elements, limbs)."""
    return _by(_fast_paths(name, fmt, flags), name, fmt, columns, flags)


def _by(paths: Sequence[Path], name: str, fmt: Format, columns: list[Words], flags: bool) -> tuple[Words, Any]:
    """What each path leaves undecided is for the next one, and in the end for the specification."""
    if not paths:
        words, raised = _specified(name, fmt, columns)
        return words[:, 0], raised
    first, *others = paths
    flat = columns if limbs(fmt) > 1 else [column[:, 0] for column in columns]
    words, raised, undecided = first(name, fmt, *flat, flags=flags)
    words = words.reshape(-1, limbs(fmt))
    if undecided.size:
        some_words, some_raised = _by(others, name, fmt, [column[undecided] for column in columns], flags)
        words[undecided] = some_words
        if flags:
            raised[undecided] = some_raised
    return words, raised


Path = Callable[..., tuple[Words, Any, NDArray[np.intp]]]
"""``path(name, fmt, *operands, flags=flags)`` gives words, flags or None, and the indices that it leaves undecided."""


def _fast_paths(name: str, fmt: Format, flags: bool = False) -> list[Path]:
    """The ways to evaluate a function, the quickest first."""
    if single.applies(name, fmt):
        _prepare_narrow(name, fmt, flags)
        return [single.evaluate_fast]
    paths: list[Path] = [double_double.evaluate_double] if double_double.applies(name, fmt) else []
    return [*paths, fixed_point.evaluate_wide] if fixed_point.applies(name, fmt) else paths


@exclusive
def _prepare_narrow(name: str, fmt: Format, flags: bool) -> None:
    """Makes the loops that ``single.evaluate_fast`` may take, and the tables that it takes to make them."""
    narrow_loop(name, fmt, flags)
    if KERNELS[name].wide:
        narrow_loop(name, fmt, flags, wide=True)


def share_undecided(name: str, fmt: Format, *operands: Words) -> float:
    """The share of the elements that the first fast path leaves to others; 1 where there is none."""
    paths = _fast_paths(name, fmt)
    if not paths:
        return 1.0
    flat = [operand.reshape((-1, limbs(fmt)) if limbs(fmt) > 1 else -1) for operand in operands]
    return float(paths[0](name, fmt, *flat)[2].size / len(flat[0])) if len(flat[0]) else 0.0


def _specified(name: str, fmt: Format, columns: list[Words]) -> tuple[Words, Flags8]:
    return _distinct(fmt, np.stack(columns, axis=1), lambda row: elementary(name, fmt, *row))


def evaluate_complex(name: str, fmt: Format, *operands: Words, flags: bool = False) -> Any:
    """The complex function ``name`` of ``COMPLEX_NAMES`` at every element; operands are broadcast against each other.

    Operands and result have a trailing axis of two (real and imaginary words, before the limbs of formats wider than 64
    bits). "abs" gives an array without it. With ``flags`` the result is (words, flags), the flags without it."""
    columns = broadcast(fmt, *operands)
    shape = shape_of(fmt, columns[0])
    if shape[-1:] != (2,):
        raise ValueError(f"complex words of {fmt.name} have a last axis of two, not elements of shape {shape}")
    if name == "abs":
        parts = np.moveaxis(columns[0], len(shape) - 1, 0)
        return evaluate("hypot", fmt, parts[0], parts[1], flags=flags)
    rows = np.concatenate([column.reshape(-1, 2, limbs(fmt)) for column in columns], axis=1)
    if pairs.applies(name, fmt):
        parts_of_all = tuple(np.ascontiguousarray(rows[:, k, 0]) for k in range(rows.shape[1]))
        words, raised, undecided = pairs.evaluate_fast(name, fmt, parts_of_all, flags)
        if undecided.size:
            some, raised[undecided] = _specified_complex(name, fmt, rows[undecided])
            words[undecided] = some[..., 0]
    else:
        words, raised = _specified_complex(name, fmt, rows)
    words = words.reshape(columns[0].shape)
    return (words, raised.reshape(shape[:-1])) if flags else words


def _specified_complex(name: str, fmt: Format, rows: Words) -> tuple[Words, Flags8]:
    def function(row: Sequence[int]) -> tuple[tuple[int, int], int]:
        return elementary_complex(name, fmt, *zip(row[::2], row[1::2], strict=True))

    return _distinct(fmt, rows, function)


def _distinct(fmt: Format, rows: Words, function: Callable[[Sequence[int]], tuple[Any, int]]) -> tuple[Words, Flags8]:
    """Words (elements, results, limbs) and flags (elements) of a function of rows (elements, operands, limbs), called
    once for each distinct row; it returns one word, or a pair of them."""
    count = rows.shape[0]
    if count == 0:
        return np.empty((0, 1, limbs(fmt)), dtype=word_dtype(fmt)), np.empty(0, dtype=np.uint8)
    flat = np.ascontiguousarray(rows.reshape(count, -1))
    keys = flat.view(np.dtype((np.void, flat.dtype.itemsize * flat.shape[1]))).reshape(-1)
    if flat.shape[1] == 1:
        keys = flat.reshape(-1)
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    chosen = rows[first]
    arguments = to_ints(fmt, chosen if limbs(fmt) > 1 else chosen[..., 0]).tolist()
    values = []
    flags = np.empty(len(arguments), dtype=np.uint8)
    for index, row in enumerate(arguments):
        word, flags[index] = function(row)
        values.append(word)
    words = from_ints(fmt, values).reshape(len(values), -1, limbs(fmt))
    inverse = inverse.reshape(-1)
    return words[inverse], flags[inverse]


class _Tables:
    """Results of functions of one word of up to 16 bits, filled as they are asked for; the least recently used go."""

    def __init__(self) -> None:
        self._tables: OrderedDict[tuple[str, Format], tuple[Words, Flags8, NDArray[np.bool_]]] = OrderedDict()

    def look_up(self, name: str, fmt: Format, operand: Words) -> tuple[Words, Flags8]:
        key = (name, fmt)
        # each step by itself can be taken while other threads look up: at worst a table is filled again
        table = self._tables.pop(key, None)
        if table is None:
            size = 1 << fmt.width
            table = np.zeros(size, word_dtype(fmt)), np.zeros(size, np.uint8), np.zeros(size, np.bool_)
        self._tables[key] = table
        if len(self._tables) > MAX_TABLES:
            with suppress(KeyError):
                self._tables.popitem(last=False)
        words, flags, known = table
        wanted = np.unique(operand[~known[operand]])
        if wanted.size:
            found, raised = _evaluate(name, fmt, [wanted.reshape(-1, 1)], flags=True)
            words[wanted], flags[wanted] = found[:, 0], raised
            known[wanted] = True
        return np.asarray(words[operand]), np.asarray(flags[operand])


_TABLES = _Tables()
