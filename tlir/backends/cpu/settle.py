"""The functions of this process that kernels call: the one for elements whose rounding their bound does not decide, and
those of kernels of thousands of operations.

Object code refers to them by their symbols, and names the function and the format that it wants by text. An element
that is not decided is evaluated with more digits (``tlir.floatlib.elementary.wide``) where that has been compiled, or
is worth it, and by the specification otherwise.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256
from threading import Thread, get_ident
from typing import Any

import llvmlite.binding as binding
import numpy as np
from numpy.typing import NDArray

from tlir.floatlib.exclusive import exclusive
from tlir.floatlib.format import Format, from_text
from tlir.floatlib.soft import blocks
from tlir.floatlib.soft.catalog import UNDECIDED, Kernel
from tlir.floatlib.words import Words, from_ints, limbs, to_ints, word_dtype

SYMBOL = "tlir_elementary"

PARTS = (".real", ".imag")
"""What the name of a complex function ends in that stands for one part of its result. Its operands are the parts of the
complex ones, two for each."""


_errors: dict[int, BaseException] = {}
"""What was raised in compiled code, by the thread that called it."""


def _called(name: bytes, lanes: int, operands: int, mask: int, memory: int) -> None:
    if get_ident() in _errors:
        return
    try:
        _settled(name.decode(), lanes, operands, mask, memory)
    except BaseException as error:  # an interruption too: compiled code cannot pass it on
        _errors[get_ident()] = error


_elementary = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint64, ctypes.c_void_p)(
    _called
)


def _hear() -> None:
    """An interruption may come before the first line of ``_called``: ctypes then tells ``sys.unraisablehook``, and
    goes on with words that nobody computed."""
    before = sys.unraisablehook

    def hook(unraisable: Any) -> None:
        if unraisable.object is _called:
            _errors[get_ident()] = unraisable.exc_value or KeyboardInterrupt()
        else:
            before(unraisable)

    sys.unraisablehook = hook


@exclusive
def _settled(name: str, lanes: int, operands: int, mask: int, memory: int) -> None:
    _evaluate(name, lanes, operands, mask, memory)


def _evaluate(name: str, lanes: int, operands: int, mask: int, memory: int) -> None:
    """``memory`` has the limbs of each operand and then of the result, each of all lanes, as 64-bit words."""
    op, text = name.split(" ", 1)
    fmt = from_text(text)
    count = limbs(fmt)
    words = np.ctypeslib.as_array((ctypes.c_uint64 * (lanes * count * (operands + 1))).from_address(memory))
    table = words.reshape(operands + 1, count, lanes)
    chosen = [lane for lane in range(lanes) if mask >> lane & 1]
    function = None if fmt.precision < LEAST_PRECISION or op.endswith(PARTS) else _function(name)
    if function is not None:
        chosen = _with_more_digits(function, table, chosen)
    if not chosen:
        return
    parts = [table[k][:, chosen].astype(word_dtype(fmt)) for k in range(operands)]
    results = _specified(op, fmt, [part[0] if count == 1 else np.ascontiguousarray(part.T) for part in parts])
    table[operands][:, chosen] = results if count == 1 else results.T


LEAST_PRECISION = 25
"""Bits of the narrowest formats that there are kernels of more digits for."""

WORTH = 1024
"""Elements of a function that have been settled when it is compiled, which takes 0.2 seconds: the specification takes
60 to 100 microseconds for one, more digits 30."""

_met: dict[str, int] = {}
"""How many elements of a function have been settled while it was not compiled."""
_functions: dict[str, Any] = {}
"""Functions of ``blocks``, or None, by name."""


def _function(name: str) -> Any | None:
    """The function of more digits, where it is compiled already or worth it."""
    if name not in _functions:
        known = _met[name] = _met.get(name, 0) + 1
        if known < WORTH and not (known == 1 and blocks.is_at_hand(name)):
            return None
        from tlir.floatlib.elementary.wide.loop import applies

        op, text = name.split(" ", 1)
        prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        _functions[name] = prototype(_block(name)) if applies(op, from_text(text)) else None
    return _functions[name]


def _with_more_digits(function: Any, table: NDArray[np.uint64], chosen: list[int]) -> list[int]:
    """Words of these lanes; which of them are not certain even so."""
    operands, count, _ = table.shape
    size = operands * count
    place = np.zeros((size + 2) * blocks.LANES, np.uint64)
    # the function wants whole vectors where they are aligned
    start = -(place.ctypes.data // 8) % blocks.LANES
    memory = place[start : start + (size + 1) * blocks.LANES].reshape(size + 1, blocks.LANES)
    left = []
    for first in range(0, len(chosen), blocks.LANES):
        some = chosen[first : first + blocks.LANES]
        memory[: size - count, : len(some)] = table[:-1].reshape(size - count, -1)[:, some]
        function(memory.ctypes.data)
        table[-1][:, some] = memory[size - count : size, : len(some)]
        left += [lane for lane, mark in zip(some, memory[size].tolist(), strict=False) if mark & UNDECIDED]
    return left


TABLE_BITS, FEW = 16, 16
"""Arrays keep what was evaluated for formats of so many bits; elements that are quicker one by one."""


def _specified(op: str, fmt: Format, operands: list[Words]) -> Words:
    rows = zip(*(to_ints(fmt, operand).tolist() for operand in operands), strict=True)
    if op.endswith(PARTS):
        name, _, part = op.rpartition(".")
        return from_ints(fmt, [_complex(name, fmt, row)[PARTS.index("." + part)] for row in rows])
    # the specification is loaded when it is first needed
    from tlir.floatlib.elementary import elementary, evaluate

    if fmt.width > TABLE_BITS and len(operands[0]) <= FEW:
        return from_ints(fmt, [elementary(op, fmt, *row)[0] for row in rows])
    return np.asarray(evaluate(op, fmt, *operands))


@lru_cache(maxsize=256)
def _complex(name: str, fmt: Format, row: tuple[int, ...]) -> tuple[int, int]:
    """Both parts, of which often neither is certain."""
    from tlir.floatlib.elementary import elementary_complex

    return elementary_complex(name, fmt, *zip(row[::2], row[1::2], strict=True))[0]


def passed_on(others: Iterable[Thread] = ()) -> None:
    """Raises what was raised in compiled code that this thread or one of the others has called."""
    if not _errors:
        return
    found = [_errors.pop(get_ident(), None), *(_errors.pop(thread.ident or 0, None) for thread in others)]
    for error in found:
        if error is not None:
            raise error


def symbol(key: str) -> str:
    """What the function of the kernel with this key is called in object code."""
    return "tlir_block_" + sha256(key.encode()).hexdigest()[:24]


@lru_cache(maxsize=1024)
def provide_block(key: str) -> None:
    """Makes the function of a kernel with this key known to the linker; it is compiled where it is not kept."""
    binding.add_symbol(symbol(key), _block(key))


def _block(key: str) -> int:
    """The address of the function of a kernel with this key."""

    def make() -> Kernel:
        from tlir.floatlib.elementary.wide import loop, remainder

        op, text = key.split(" ", 1)
        fmt = from_text(text)
        return remainder.loop(fmt) if op == remainder.NAME else loop.loop(op, fmt)

    return blocks.functions(key, make)["block"]


@lru_cache(maxsize=1)
def provide() -> None:
    """Makes the symbol known to the linker of compiled code."""
    _hear()
    binding.add_symbol(SYMBOL, ctypes.cast(_elementary, ctypes.c_void_p).value)
