"""Which loop runs a kernel: compiled by LLVM, on NumPy, or the specification element by element.

All three return the same words, so the choice is one of time alone. Each way costs something once and something per
element, and a kernel moves to the next one when it has computed about as many elements as the next one costs at once:

* ``specification``: 3 to 6 microseconds an element, nothing at once; for arrays of fewer than ``NUMPY_FROM`` elements
  until the kernel has computed ``NUMPY_AFTER`` of them.
* ``numpy``: 20 to 400 ns an element; 3 to 15 ms at once for the kernel's function, and 0.05 to 0.5 ms a call.
* ``compiled``: 0.3 to 15 ns an element; 0.03 to 0.3 s at once. From ``COMPILE_AFTER`` 64-bit limbs of results on, where
  llvmlite is installed. What is compiled already is used for arrays of any size.

Kernels of thousands of operations have limits of their own (``run_long``).

Operations that the processor or a table computes at a few nanoseconds an element have larger limits. Elementary
functions have another specification, of 20 to 100 microseconds an element, and leave it for NumPy from
``ELEMENTARY_FROM`` elements on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib.util import find_spec
from math import prod

import numpy as np
from numpy.typing import NDArray

from tlir.floatlib.soft import numpy_loop
from tlir.floatlib.soft.catalog import Kernel
from tlir.floatlib.words import Words

NUMPY_FROM, NEVER = 32, 1 << 62
NUMPY_AFTER = 512
ELEMENTARY_FROM = 4
COMPILE_AFTER = {"numpy": 1 << 19, "table": 1 << 22, "processor": 1 << 23}
"""64-bit limbs (elements, for formats of up to 64 bits) that one kernel computes otherwise before it is compiled."""

LONG_FROM, LONG_AFTER, LONG_NUMPY_FROM = 64, 4096, 1024
"""Elements, with those before, from which a kernel of thousands of operations is used if its code is kept (which takes
a few milliseconds), and from which it is compiled (0.3 to 2 s; the specification takes 25 to 100 microseconds an
element); and elements of a call that are worth a loop on NumPy, which takes 10 ms and 1 to 10 microseconds an element.
"""

_elements: dict[Kernel, int] = {}
_compiled: set[Kernel] = set()


@lru_cache(maxsize=1)
def can_compile() -> bool:
    """Whether llvmlite is installed."""
    return find_spec("llvmlite") is not None


def is_compiled(kernel: Kernel) -> bool:
    """Whether the kernel has a compiled loop already."""
    return kernel in _compiled


def compiles(kernel: Kernel, size: int, otherwise: str = "numpy") -> bool:
    """Whether the next ``size`` elements are computed by the compiled loop, ``otherwise`` being what it replaces."""
    if kernel in _compiled:
        return True
    if not can_compile():
        return False
    widest = max(*kernel.operands, kernel.result)
    return (_elements.get(kernel, 0) + size) * numpy_loop.count_limbs(widest) >= COMPILE_AFTER[otherwise]


def choose(kernel: Kernel, size: int, numpy_from: int | None = None) -> str:
    """ "compiled", "numpy" or "specification" for the next ``size`` elements; on NumPy from ``numpy_from`` elements on,
    or ``NUMPY_FROM``."""
    if compiles(kernel, size):
        return "compiled"
    known = _elements.get(kernel, 0)
    numpy_from = NUMPY_FROM if numpy_from is None else numpy_from
    return "numpy" if size >= numpy_from and known + size >= NUMPY_AFTER else "specification"


def size_of(kernel: Kernel, operands: Sequence[Words]) -> int:
    """The elements of the operands, which have one common shape."""
    shape = operands[0].shape
    return prod(shape[:-1] if numpy_loop.count_limbs(kernel.operands[0]) > 1 else shape)


def run_compiled(
    kernel: Kernel, operands: tuple[Words, ...], otherwise: str
) -> tuple[Words, NDArray[np.uint8] | None] | None:
    """Words and flags by the compiled loop where that is due, otherwise None, and the elements are counted."""
    if kernel in _compiled:
        return _run_compiled(kernel, operands)
    size = size_of(kernel, operands)
    if not compiles(kernel, size, otherwise):
        _elements[kernel] = _elements.get(kernel, 0) + size
        return None
    return _run_compiled(kernel, operands)


@lru_cache(maxsize=1)
def _loop() -> Callable[..., tuple[Words, NDArray[np.uint8] | None]]:
    from tlir.floatlib.soft import llvm

    return llvm.run


def _run_compiled(kernel: Kernel, operands: tuple[Words, ...]) -> tuple[Words, NDArray[np.uint8] | None]:
    result = _loop()(kernel, operands)
    _compiled.add(kernel)
    return result


def run_long(kernel: Kernel, operands: tuple[Words, ...]) -> tuple[Words, NDArray[np.uint8] | None] | None:
    """As ``run``, of a kernel of thousands of operations: by the compiled loop from ``LONG_AFTER`` elements on, or from
    ``LONG_FROM`` where its code is kept; where that cannot be, on NumPy for ``LONG_NUMPY_FROM`` at a time."""
    if kernel in _compiled:
        return _run_compiled(kernel, operands)
    size = size_of(kernel, operands)
    known = _elements[kernel] = _elements.get(kernel, 0) + size
    if known < LONG_FROM:
        return None
    if can_compile():
        due = known >= LONG_AFTER or _is_at_hand(kernel.key)
        return _run_compiled(kernel, operands) if due else None
    return numpy_loop.run(kernel, operands) if size >= LONG_NUMPY_FROM else None


def _is_at_hand(key: str) -> bool:
    from tlir.floatlib.soft import blocks

    return blocks.is_at_hand(key)


def run(
    kernel: Kernel, operands: tuple[Words, ...], numpy_from: int | None = None
) -> tuple[Words, NDArray[np.uint8] | None] | None:
    """Words and flags of operands of one common shape; None where the specification is to compute them."""
    if kernel in _compiled:
        return _run_compiled(kernel, operands)
    size = size_of(kernel, operands)
    chosen = choose(kernel, size, numpy_from)
    _elements[kernel] = _elements.get(kernel, 0) + size
    if chosen == "specification":
        return None
    return _run_compiled(kernel, operands) if chosen == "compiled" else numpy_loop.run(kernel, operands)
