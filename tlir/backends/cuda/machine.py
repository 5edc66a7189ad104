"""The machine of the software kernels, in C++."""

from __future__ import annotations

from tlir.backends.cuda.builder import Builder, expression
from tlir.floatlib.soft.lanes import LaneMachine
from tlir.floatlib.soft.machine import Real, Word


class CudaMachine(LaneMachine):
    """Words, predicates and reals are variables of the builder's function."""

    def __init__(self, builder: Builder, bits: int, lanes: int) -> None:
        super().__init__(builder, bits, lanes)
        self.has_fma = True

    def multiply_wide(self, x: Word, y: Word) -> tuple[Word, Word]:
        if self.bits == 32:
            return super().multiply_wide(x, y)
        return self.multiply(x, y), self.builder.define(self.type, f"tl_high_product({expression(x)}, {expression(y)})")

    def _funnel(self, name: str, high: Word, low: Word, count: Word) -> Word:
        return self.builder.intrinsic(name, self.type, [high, low, count])

    def leading_zeros(self, x: Word) -> Word:
        return self.builder.intrinsic("llvm.ctlz", self.type, [x])

    def _real_call(self, name: str, *arguments: Real) -> Real:
        return self.builder.intrinsic(name, self.real, list(arguments))

    def table(self, values: tuple[float, ...] | tuple[int, ...], index: Word) -> Real | Word:
        element = self.real if isinstance(values[0], float) else self.element
        return self.builder.table(values, index, element)
