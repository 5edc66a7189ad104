"""Software floats wider than 256 bits in CUDA C++: functions that are called, on the integers of ``big.h``.

They are the kernels of ``tlir.floatlib.soft`` on the integers of ``tlir.floatlib.soft.big``, as on the processor.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

from llvmlite import ir

from tlir.backends.cpu.values import Item, Lanes, word_type
from tlir.backends.cuda.builder import WIDTHS, Builder, Text, expression, type_name
from tlir.backends.cuda.calls import Called
from tlir.backends.cuda.machine import CudaMachine
from tlir.floatlib.soft.big import BigUint, Whole
from tlir.floatlib.soft.catalog import Kernel
from tlir.floatlib.soft.digits import QUOTIENT_SCALE, ROOT_SCALE
from tlir.floatlib.soft.division import (
    QUOTIENT_DIGIT,
    QUOTIENT_SHRINK,
    ROOT_DIGIT,
    ROOT_SHRINK,
    ROOT_START,
)
from tlir.floatlib.soft.lanes import I64
from tlir.floatlib.soft.machine import Real, Word
from tlir.floatlib.soft.numpy_loop import count_limbs
from tlir.ir.types import DType


class CudaBigMachine(Whole, CudaMachine):
    """A machine of 64-bit words whose other integers are ``BigUint``, as ``BigMachine``."""

    integers = BigUint

    def __init__(self, builder: Builder) -> None:
        super().__init__(builder, 64, 1)

    def leading_zeros(self, x: Word) -> Word:
        if x.type.width > 64 or x.type == I64:
            return super().leading_zeros(x)
        zeros = super().leading_zeros(self.builder.zext(x, I64))
        return self.subtract(zeros, self.constant(64 - x.type.width))

    def product(self, x: BigUint, y: BigUint, count: int) -> BigUint:
        return self._number(64 * count, f"tl_product<{64 * count}>({_long(x)}, {_long(y)})")

    def digits_of_quotient(self, rest: BigUint, divisor: BigUint, steps: int) -> tuple[BigUint, BigUint]:
        bits = 64 * count_limbs(steps * QUOTIENT_DIGIT + 1)
        left = self._variable(rest)
        return self._quotient(bits, left, divisor, str(steps)), left

    def rest_of_quotient(self, rest: BigUint, divisor: BigUint, steps: Word) -> BigUint:
        left = self._variable(rest)
        self._quotient(64, left, divisor, expression(steps))
        if left.value.type.width not in WIDTHS:
            return left
        kind = left.value.type
        return BigUint(self, self.builder.define(kind, f"({type_name(kind)})(uint64_t){left.value}"), left.bits)

    def _quotient(self, bits: int, left: BigUint, divisor: BigUint, steps: str) -> BigUint:
        """The lowest bits of the quotient."""
        numbers = f"{steps}, {QUOTIENT_SHRINK.hex()}, {QUOTIENT_SCALE.hex()}"
        return self._number(bits, f"tl_quotient<{bits}, {QUOTIENT_DIGIT}>({left.value}, {_long(divisor)}, {numbers})")

    def digits_of_root(
        self, doubled: BigUint, rest: BigUint, first: Real, long: int, pad: int, steps: int
    ) -> tuple[BigUint, BigUint]:
        twice, left = self._variable(doubled), self._variable(rest)
        places = f"{long - ROOT_START - ROOT_DIGIT}, {2 * long + 2 + pad - 62}, {steps}"
        numbers = f"{ROOT_SHRINK.hex()}, {ROOT_SCALE.hex()}"
        self.builder.line(
            f"tl_root<{ROOT_DIGIT}>({twice.value}, {left.value}, {expression(first)}, {places}, {numbers});"
        )
        return twice, left

    def _number(self, bits: int, text: str) -> BigUint:
        """A long number, of one word too; a number that is read is one of C++'s own integers then."""
        kind = ir.IntType(bits)
        return BigUint(self, self.builder.define(kind, text if bits > 64 else f"(uint64_t){text}"), bits)

    def _variable(self, number: BigUint) -> BigUint:
        name = self.builder.name()
        self.builder.line(f"tl_uint<{number.bits}> {name} = {_long(number)};")
        return BigUint(self, Text(number.value.type, name), number.bits)


def _long(number: BigUint) -> str:
    """A number as one of ``big.h``, of one word too."""
    text = expression(number.value)
    return f"tl_uint<{number.bits}>((uint64_t){text})" if number.value.type.width in WIDTHS else text


@cache
def header() -> str:
    """The integers."""
    return files("tlir.backends.cuda").joinpath("big.h").read_text(encoding="utf-8")


@lru_cache(maxsize=256)
def called(kernel: Kernel) -> Called:
    """The function ``name(operands…, out)`` of pointers to limbs; ``out`` has those of the result, then the flags."""
    b = Builder()
    machine = CudaBigMachine(b)
    operands = []
    for k, width in enumerate(kernel.operands):
        bits = 64 * count_limbs(width)
        word = b.define(ir.IntType(bits), f"tl_limbs<{bits}>(a{k})" if bits > 64 else f"a{k}[0]")
        operands.append(BigUint(machine, word, bits).resized(width))
    result = kernel(machine, *operands)
    assert isinstance(result.word, BigUint)
    count = count_limbs(kernel.result)
    whole = expression(result.word.resized(64 * count).value)
    if count > 1:
        b.line(f"TL_LOOP for (int k = 0; k < {count}; ++k) out[k] = {whole}.at[k];")
    else:
        b.line(f"out[0] = {whole};")
    if kernel.flags:
        b.line(f"out[{count}] = {expression(result.flags)};")
    parameters = ", ".join([*(f"const uint64_t* a{k}" for k in range(len(operands))), "uint64_t* out"])
    body = "\n".join([f"({parameters}) {{", *b.lines, "}", ""])
    label = "".join(c if c.isalnum() else "_" for c in kernel.name)
    name = f"{label}_{sha256(body.encode()).hexdigest()[:12]}"
    return Called(name, f"TL_CALLED void {name}{body}", {"big.h": header(), **b.tables})


def call(lanes: Lanes, kernel: Kernel, result: DType, items: Sequence[Item]) -> tuple[Item, Any]:
    """The kernel's words of these operands, and its flags as words of 64 bits if it has them."""
    b, function = lanes.builder, called(kernel)
    b.tables |= function.tables
    b.tables[function.name] = function.text
    names = []
    for item in items:
        words = ", ".join(expression(lanes.resized(limb, I64)) for limb in lanes.limbs(item))
        names.append(b.name())
        b.line(f"const uint64_t {names[-1]}[] = {{{words}}};")
    count, out = count_limbs(kernel.result), b.name()
    b.line(f"uint64_t {out}[{count + 1}];")
    b.line(f"{function.name}({', '.join([*names, out])});")
    found = [b.define(I64, f"{out}[{k}]") for k in range(count + kernel.flags)]
    flags = found.pop() if kernel.flags else None
    if result.is_bool:
        return lanes.truth(result, b.icmp_unsigned("!=", found[0], ir.Constant(I64, 0))), flags
    return lanes.words(result, [lanes.resized(word, word_type(result)) for word in found]), flags
