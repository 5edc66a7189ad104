"""The floating-point control and status register of x86 processors."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from tlir.floatlib.soft import objects

needs_register = pytest.mark.skipif(not objects.is_x86(), reason="the control register is x86's")

DEFAULT = 0x1F80
DENORMAL, UNDERFLOW = 0x02, 0x10
"""The flags that a subnormal operand and an inexact subnormal result raise. Comparisons raise the first one too."""

_CODE = """
declare void @llvm.x86.sse.ldmxcsr(ptr)
declare void @llvm.x86.sse.stmxcsr(ptr)
define i32 @exchange(i32 %new) {
  %place = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %place)
  %old = load i32, ptr %place
  store i32 %new, ptr %place
  call void @llvm.x86.sse.ldmxcsr(ptr %place)
  ret i32 %old
}
"""


@cache
def _exchange() -> Callable[[int], int]:
    return ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_uint32)(objects.compile_ir(_CODE, ["exchange"])["exchange"])


def left_by(call: Callable[[], Any], before: int = DEFAULT) -> int:
    """What the register of this thread has after a call that finds ``before`` in it."""
    exchange = _exchange()
    usual = exchange(before)
    try:
        call()
    finally:
        after = exchange(usual)
    return after
