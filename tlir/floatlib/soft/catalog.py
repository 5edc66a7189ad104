"""The kernels by name: each with its formats and modes fixed, and what a loop over arrays must know of it.

The functions here are cached, so that equal arguments give the same ``Kernel``, which is its own key in caches of
compiled code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache, partial

from tlir.floatlib.exclusive import exclusive
from tlir.floatlib.format import Format
from tlir.floatlib.rounding import Rounding
from tlir.floatlib.soft import conversion, kernels, selection
from tlir.floatlib.soft.machine import Machine
from tlir.floatlib.soft.rounding import Result
from tlir.floatlib.soft.uint import Uint

OPERANDS = {"add": 2, "subtract": 2, "multiply": 2, "divide": 2, "sqrt": 1, "fma": 3}
EXTREMA = {"minimum": (True, False), "maximum": (False, False), "minimum_number": (True, True)} | {
    "maximum_number": (False, True)
}

UNDECIDED = 0x80
"""A mark in the byte of an elementary function's kernel: the word is not certain."""
MAY_BE_EXACT = 0x40
"""Another one: the word is certain, the flags are not."""


@dataclass(frozen=True, eq=False)
class Kernel:
    """A function of a machine with everything fixed but the operands.

    ``name``: the operation, the formats and the modes, for people. ``operands`` and ``result``: bits of their words,
    which arrays hold as ``words`` says. ``bits``: the machine word that suits it. ``interleave``: how many vectors a
    compiled loop takes at a time, which hides the latency of long chains of operations; 0 where the compiler decides.
    ``long``: whether it is for machines of long integers alone (``big``), whatever the format's width.
    ``key``: of a kernel of thousands of operations, which ``soft.blocks`` compiles: a text that no other one has.
    """

    name: str
    operands: tuple[int, ...]
    result: int
    bits: int
    flags: bool
    build: Callable[..., Result]
    interleave: int = 0
    key: str = ""
    long: bool = False

    @exclusive
    def __call__(self, m: Machine, *operands: Uint) -> Result:
        return self.build(m, *operands)


def _bits(largest: int, *formats: Format) -> int:
    """The bits of the machine word: 32 where the widest register and all exponents fit, otherwise 64."""
    small = all(fmt.exponent_bits <= 16 and abs(fmt.bias) <= 1 << 20 for fmt in formats)
    return 32 if small and max([largest, *(fmt.width for fmt in formats)]) <= 32 else 64


@cache
def arithmetic(operation: str, fmt: Format, rounding: Rounding = Rounding.NEAREST_EVEN, flags: bool = False) -> Kernel:
    """``OPERANDS``: the operations that round."""
    p = fmt.precision
    largest = {"multiply": 2 * p, "fma": 2 * p + 5, "sqrt": 2 * p + 4}.get(operation, p + 4)
    function = getattr(kernels, operation)

    def build(m: Machine, *operands: Uint) -> Result:
        result: Result = function(m, fmt, *operands, rounding=rounding, flags=flags)
        return result

    name = f"{operation}({fmt}, {rounding.value})"
    # each digit of a quotient or root waits for the one before it
    interleave = 4 if operation in ("divide", "sqrt") else 0
    return Kernel(name, (fmt.width,) * OPERANDS[operation], fmt.width, _bits(largest, fmt), flags, build, interleave)


@cache
def remainder_truncated(fmt: Format, flags: bool = False) -> Kernel:
    build = partial(_swapped(kernels.remainder_truncated), fmt, flags=flags)
    return Kernel(f"remainder({fmt})", (fmt.width,) * 2, fmt.width, 64, flags, build, long=True)


@cache
def extremum(operation: str, fmt: Format, flags: bool = False) -> Kernel:
    """``EXTREMA``."""
    least, number = EXTREMA[operation]
    build = partial(_swapped(selection.extremum), fmt, least=least, number=number, flags=flags)
    return Kernel(f"{operation}({fmt})", (fmt.width,) * 2, fmt.width, _bits(0, fmt), flags, build)


@cache
def compare(fmt: Format, direction: str, flags: bool = False, signaling: bool = False) -> Kernel:
    """``selection.DIRECTIONS``; the result is one bit."""
    build = partial(_swapped(selection.compare), fmt, direction=direction, flags=flags, signaling=signaling)
    name = f"compare({fmt}, {direction}{', signaling' if signaling else ''})"
    return Kernel(name, (fmt.width,) * 2, 1, _bits(0, fmt), flags, build)


@cache
def next_after(fmt: Format, flags: bool = False) -> Kernel:
    build = partial(_swapped(selection.next_after), fmt, flags=flags)
    return Kernel(f"next_after({fmt})", (fmt.width,) * 2, fmt.width, _bits(0, fmt), flags, build)


@cache
def convert(
    source: Format,
    target: Format,
    rounding: Rounding = Rounding.NEAREST_EVEN,
    flags: bool = False,
    saturate: bool = False,
) -> Kernel:
    """From one format to another."""

    def build(m: Machine, a: Uint) -> Result:
        return conversion.convert(m, source, target, a, rounding, flags, saturate)

    name = f"convert({source} to {target}, {rounding.value}{', saturate' if saturate else ''})"
    bits = _bits(max(source.precision, target.precision + 3), source, target)
    return Kernel(name, (source.width,), target.width, bits, flags, build)


@cache
def round_to_integral(fmt: Format, rounding: Rounding, flags: bool = False) -> Kernel:
    build = partial(_swapped(conversion.round_to_integral), fmt, rounding=rounding, flags=flags)
    name = f"round_to_integral({fmt}, {rounding.value})"
    return Kernel(name, (fmt.width,), fmt.width, _bits(fmt.precision + 4, fmt), flags, build)


@lru_cache(maxsize=4096)
def scale_b(fmt: Format, n: int, rounding: Rounding = Rounding.NEAREST_EVEN, flags: bool = False) -> Kernel:
    build = partial(_swapped(conversion.scale_b), fmt, n=n, rounding=rounding, flags=flags)
    bits = _bits(fmt.precision + 3 if abs(n) < 1 << 20 else 64, fmt)
    return Kernel(f"scale_b({fmt}, {n})", (fmt.width,), fmt.width, bits, flags, build)


@cache
def to_integer(
    fmt: Format, width: int, signed: bool, rounding: Rounding, flags: bool = False, saturating: bool = True
) -> Kernel:
    """To integers of ``width`` bits, as words in two's complement."""
    build = partial(
        _swapped(conversion.to_integer),
        fmt,
        width=width,
        signed=signed,
        rounding=rounding,
        flags=flags,
        saturating=saturating,
    )
    name = f"to_integer({fmt} to {'' if signed else 'u'}int{width}, {rounding.value})"
    return Kernel(name, (fmt.width,), width, _bits(max(fmt.precision + 2, width), fmt), flags, build)


@cache
def from_integer(fmt: Format, width: int, signed: bool, rounding: Rounding, flags: bool = False) -> Kernel:
    """From integers of ``width`` bits, given as words in two's complement."""
    build = partial(_swapped(conversion.from_integer), fmt, signed=signed, rounding=rounding, flags=flags)
    name = f"from_integer({'' if signed else 'u'}int{width} to {fmt}, {rounding.value})"
    return Kernel(name, (width,), fmt.width, _bits(max(width, fmt.precision + 3), fmt), flags, build)


def _swapped(function: Callable[..., Result]) -> Callable[..., Result]:
    """The function with the format before the machine, so that ``partial`` can fix it."""

    def called(fmt: Format, m: Machine, *operands: Uint, **modes: object) -> Result:
        return function(m, fmt, *operands, **modes)

    return called
