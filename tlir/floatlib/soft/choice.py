"""Which loop runs a kernel: compiled by LLVM, on NumPy, or the specification element by element.

All three return the same words, so the choice is one of time alone. Each way costs something once and something per
element, and a kernel moves to the next one when it has computed about as many elements as the next one costs at once:

* ``specification``: 3 to 6 microseconds an element, nothing at once; for arrays of fewer than ``NUMPY_FROM`` elements
  until the kernel has computed ``NUMPY_AFTER`` of them.
* ``numpy``: 20 to 400 ns an element; 3 to 15 ms at once for the kernel's function, and 0.05 to 0.5 ms a call.
* ``compiled``: 0.3 to 15 ns an element; 0.03 to 0.3 s at once. From ``COMPILE_AFTER`` 64-bit limbs of results on, where
  llvmlite is installed. What is compiled already is used for arrays of any size.

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

NUMPY_FROM = 32
NUMPY_AFTER = 512
ELEMENTARY_FROM = 4
COMPILE_AFTER = {"numpy": 1 << 19, "table": 1 << 22, "processor": 1 << 23}
"""64-bit limbs (elements, for formats of up to 64 bits) that one kernel computes otherwise before it is compiled."""

COMPILED_WIDTH = 640
"""Operands wider than this are not compiled: LLVM's time grows with the square of the limbs."""

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
    widest = max(*kernel.operands, kernel.result)
    if widest > COMPILED_WIDTH or not can_compile():
        return False
    return (_elements.get(kernel, 0) + size) * numpy_loop.count_limbs(widest) >= COMPILE_AFTER[otherwise]


def choose(kernel: Kernel, size: int, numpy_from: int = NUMPY_FROM) -> str:
    """ "compiled", "numpy" or "specification" for the next ``size`` elements."""
    if compiles(kernel, size):
        return "compiled"
    known = _elements.get(kernel, 0)
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


def run(
    kernel: Kernel, operands: tuple[Words, ...], numpy_from: int = NUMPY_FROM
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
