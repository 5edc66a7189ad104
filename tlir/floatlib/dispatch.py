"""How an operation on arrays is computed: by the processor, through a table, by a kernel, or element by element.

``implementation`` says which. Every way returns the words and flags of the specification.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from tlir.floatlib import arithmetic, native, words
from tlir.floatlib.arithmetic import NEAREST_EVEN
from tlir.floatlib.elementwise import Fill, FlagArray, Specification, by_elements, by_table, has_table
from tlir.floatlib.format import Format
from tlir.floatlib.rounding import Flags, Rounding
from tlir.floatlib.soft import catalog, choice, numpy_loop
from tlir.floatlib.soft.catalog import Kernel
from tlir.floatlib.words import Mask, Words

INTEGRAL = {
    Rounding.NEAREST_EVEN: np.rint,
    Rounding.TOWARD_ZERO: np.trunc,
    Rounding.UP: np.ceil,
    Rounding.DOWN: np.floor,
}

SPECIFICATIONS: dict[str, Any] = {
    "add": arithmetic.add,
    "subtract": arithmetic.subtract,
    "multiply": arithmetic.multiply,
    "divide": arithmetic.divide,
    "sqrt": arithmetic.sqrt,
    "fma": arithmetic.fma,
}

WIDEST_PRODUCT = 640
"""Bits of precision up to which multiplication and division on NumPy beat Python's integers, element for element.

Their time grows with the square of the limbs; that of the others does not, so they have no limit."""

_PRODUCTS = ("multiply", "divide", "sqrt", "fma")


def _numpy_from(operation: str, fmt: Format) -> int | None:
    """Elements of a call from which the kernel runs on NumPy; None for as many as of others."""
    return choice.NEVER if operation in _PRODUCTS and fmt.precision > WIDEST_PRODUCT else None


@dataclass(frozen=True)
class Plan:
    """How one of ``SPECIFICATIONS`` is computed: ``way`` is "alone" where the processor's instruction is the operation,
    "processor" where it is with conversions before and after and a compiled kernel takes less time, or "kernel"."""

    way: str
    function: Specification
    kernel: Kernel
    with_flags: Kernel
    key: Hashable
    numpy_from: int | None


@lru_cache(maxsize=4096)
def _plan(operation: str, fmt: Format, flags: bool, rounding: Rounding) -> Plan:
    plain = not flags and rounding is NEAREST_EVEN
    if plain and fmt in (native.FLOAT32, native.FLOAT64) and operation != "fma":
        way = "alone"
    elif plain and native.is_native(fmt, operation):
        way = "processor"
    else:
        way = "kernel"
    kernel = catalog.arithmetic(operation, fmt, rounding, flags)
    with_flags = catalog.arithmetic(operation, fmt, rounding, True)
    function = partial(with_rounding, SPECIFICATIONS[operation], rounding, fmt)
    return Plan(way, function, kernel, with_flags, (operation, rounding, fmt), _numpy_from(operation, fmt))


def implementation(
    fmt: Format, operation: str, size: int, flags: bool = False, rounding: Rounding = NEAREST_EVEN
) -> str:
    """How the next array of ``size`` elements is computed by one of the operations that round.

    "processor": NumPy's own arithmetic (``native.NATIVE``); "table"; "compiled", "numpy": the kernel compiled by LLVM
    or as NumPy expressions; "specification": element by element. The last four depend on what has been computed before:
    see ``soft.choice``. ValueError for another operation."""
    if operation not in SPECIFICATIONS:
        raise ValueError(f"the operation is one of {', '.join(SPECIFICATIONS)}, not {operation!r}")
    plan = _plan(operation, fmt, flags, rounding)
    if plan.way == "processor" and choice.compiles(plan.kernel, size, _replaced(operation)):
        return "compiled"
    if plan.way == "kernel":
        return kernel_implementation(plan.kernel, plan.key, size, plan.numpy_from)
    return "processor"


def kernel_implementation(kernel: Kernel, key: Hashable, size: int, numpy_from: int | None = None) -> str:
    """The same for an operation that the processor does not do, its table being called ``key``."""
    if has_table(key, kernel.operands, size):
        return "compiled" if choice.compiles(kernel, size, "table") else "table"
    return choice.choose(kernel, size, numpy_from)


def rounded(operation: str, fmt: Format, operands: tuple[Words, ...], flags: bool, rounding: Rounding) -> Any:
    """One of ``SPECIFICATIONS`` on operands that are broadcast."""
    operands = tuple(words.broadcast(fmt, *operands))
    plan = _plan(operation, fmt, flags, rounding)
    match plan.way:
        case "alone":
            return _processed(operation, fmt, operands)
        case "processor":
            compiled = choice.run_compiled(plan.kernel, operands, _replaced(operation))
            return _processed(operation, fmt, operands) if compiled is None else compiled[0]
    return run(plan.kernel, plan.key, plan.function, fmt, fmt, operands, plan.with_flags, plan.numpy_from)


def run(
    kernel: Kernel,
    key: Hashable,
    function: Specification,
    source: Format,
    result: Format,
    operands: tuple[Words, ...],
    with_flags: Kernel,
    numpy_from: int | None = None,
) -> Any:
    """The kernel's words, and its flags if it has them, whichever way computes them.

    ``function`` specifies the same for operands of ``source`` and a result of ``result``; ``with_flags`` is the kernel
    that also gives flags, from which the table called ``key`` is made."""
    both: tuple[Words, FlagArray | None] | None
    if choice.is_compiled(kernel):
        both = choice.run(kernel, operands)
        assert both is not None
        return both if kernel.flags else both[0]
    size = choice.size_of(kernel, operands)
    typed = [(source, operand) for operand in operands]
    if has_table(key, kernel.operands, size):
        both = choice.run_compiled(kernel, operands, "table")
        if both is None:
            both = by_table(key, _filled_by(with_flags), typed, kernel.flags)
    else:
        both = choice.run(kernel, operands, numpy_from)
        if both is None:
            both = by_elements(function, result, typed)
    return both if kernel.flags else both[0]


def _filled_by(kernel: Kernel) -> Fill:
    def fill(columns: list[Words]) -> tuple[Words, FlagArray]:
        result, flags = numpy_loop.run(kernel, tuple(columns))
        assert flags is not None
        return result, flags

    return fill


def with_rounding(function: Any, rounding: Rounding, fmt: Format, *operands: int) -> tuple[int, int]:
    word, raised = function(fmt, *operands, rounding)
    return word, raised


def _replaced(operation: str) -> str:
    """The speed of the processor's way, in the terms of ``choice.COMPILE_AFTER``: fma takes as long as on NumPy."""
    return "numpy" if operation == "fma" else "processor"


def _processed(operation: str, fmt: Format, operands: tuple[Words, ...]) -> Words:
    native.ensure_float_environment()
    with np.errstate(all="ignore"):
        if operation != "fma":
            values = [native.to_carrier(fmt, operand) for operand in operands]
            return native.from_carrier(fmt, native.UFUNCS[operation](*values))
        return native.from_carrier(fmt, native.fma_in_float64(*(native.to_float64(fmt, x) for x in operands)))


def specified(
    key: Any, function: Any, fmt: Format, operands: Sequence[Words], flags: bool, kernel: Kernel | None = None
) -> Any:
    """``function(fmt, *words)`` of operands and results of one format that NumPy does not compute: by table, by a
    kernel once that is compiled, or by elements."""
    typed = [(fmt, operand) for operand in operands]
    size = int(np.prod(words.shape_of(*typed[0]), dtype=np.int64))
    function = partial(function, fmt)
    if has_table((key, fmt), [fmt.width] * len(typed), size):
        both: Any = by_table(
            (key, fmt), lambda columns: by_elements(function, fmt, [(fmt, c) for c in columns]), typed, flags
        )
    else:
        both = None if kernel is None else choice.run_compiled(kernel, tuple(operands), "numpy")
        if both is None:
            both = by_elements(function, fmt, typed)
    return both if flags else both[0]


def layout(width: int) -> Format:
    """A format of this many bits, for the layout of its words alone."""
    return Format(1, width - 2, infinities=False, nans="none")


def infinite(fmt: Format, a: Words) -> Mask:
    return ~words.is_finite(fmt, a) & ~words.is_nan(fmt, a)


def any_signaling(fmt: Format, *operands: Words) -> Mask:
    result = words.is_signaling(fmt, operands[0])
    for operand in operands[1:]:
        result = result | words.is_signaling(fmt, operand)
    return result


def flag(where: Mask, which: Flags) -> FlagArray:
    return np.where(where, np.uint8(which), np.uint8(0))


def no_flags(fmt: Format, result: Words) -> FlagArray:
    return np.zeros(words.shape_of(fmt, result), dtype=np.uint8)
