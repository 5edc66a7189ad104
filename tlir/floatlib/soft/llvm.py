"""The kernels as compiled loops: the same functions of a machine, emitted as LLVM code for the host's processor.

This module needs llvmlite. A loop has no branches on data, so LLVM vectorises it for the widest registers; no fast-math
flag is set anywhere, and binary64 serves only the estimates of ``division``.
"""

from __future__ import annotations

import ctypes
from math import prod
from typing import Any

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from tlir.floatlib.soft import objects
from tlir.floatlib.soft.catalog import Kernel
from tlir.floatlib.soft.machine import Predicate, Real, Word
from tlir.floatlib.soft.numpy_loop import count_limbs
from tlir.floatlib.soft.uint import Uint
from tlir.floatlib.words import Words, integer_dtype

_BYTE, _SIZE, _DOUBLE = ir.IntType(8), ir.IntType(64), ir.DoubleType()


class LlvmMachine:
    """Words are values of iN, predicates of i1; every operation adds an instruction at the builder's place."""

    real_element: Any = _DOUBLE

    def __init__(self, builder: ir.IRBuilder, bits: int, has_fma: bool | None = None) -> None:
        """``has_fma``: whether the target has the instruction; by default whether this processor has it."""
        self.bits = bits
        self.has_fma = objects.has_fma() if has_fma is None else has_fma
        self.builder = builder
        self.type = ir.IntType(bits)
        self._tables: dict[Any, Any] = {}

    def constant(self, value: int) -> Word:
        return ir.Constant(self.type, value)

    def add(self, x: Word, y: Word) -> Word:
        return self.builder.add(x, y)

    def subtract(self, x: Word, y: Word) -> Word:
        return self.builder.sub(x, y)

    def multiply(self, x: Word, y: Word) -> Word:
        return self.builder.mul(x, y)

    def multiply_wide(self, x: Word, y: Word) -> tuple[Word, Word]:
        # from 32-bit halves: vector units multiply 32 by 32 bits, and have no high half of a 64-bit product
        b = self.builder
        if self.bits == 32:
            wide = b.mul(b.zext(x, _SIZE), b.zext(y, _SIZE))
            return b.trunc(wide, self.type), b.trunc(b.lshr(wide, ir.Constant(_SIZE, 32)), self.type)
        low, half = self.constant(0xFFFFFFFF), self.constant(32)
        x0, x1, y0, y1 = b.and_(x, low), b.lshr(x, half), b.and_(y, low), b.lshr(y, half)
        lowest = b.mul(x0, y0)
        middle = b.add(b.mul(x1, y0), b.lshr(lowest, half))
        other = b.add(b.mul(x0, y1), b.and_(middle, low))
        high = b.add(b.add(b.mul(x1, y1), b.lshr(middle, half)), b.lshr(other, half))
        return b.or_(b.shl(other, half), b.and_(lowest, low)), high

    def and_(self, x: Word, y: Word) -> Word:
        return self.builder.and_(x, y)

    def or_(self, x: Word, y: Word) -> Word:
        return self.builder.or_(x, y)

    def xor(self, x: Word, y: Word) -> Word:
        return self.builder.xor(x, y)

    def shift_left(self, x: Word, count: Word) -> Word:
        return self.builder.shl(x, count)

    def shift_right(self, x: Word, count: Word) -> Word:
        return self.builder.lshr(x, count)

    def funnel_left(self, high: Word, low: Word, count: Word) -> Word:
        return self._funnel("llvm.fshl", high, low, count)

    def funnel_right(self, high: Word, low: Word, count: Word) -> Word:
        return self._funnel("llvm.fshr", high, low, count)

    def _funnel(self, name: str, high: Word, low: Word, count: Word) -> Word:
        kind = ir.FunctionType(self.type, [self.type] * 3)
        return self.builder.call(self.builder.module.declare_intrinsic(name, [self.type], kind), [high, low, count])

    def leading_zeros(self, x: Word) -> Word:
        return self.builder.ctlz(x, ir.Constant(ir.IntType(1), 0))

    def equal(self, x: Word, y: Word) -> Predicate:
        return self.builder.icmp_unsigned("==", x, y)

    def less(self, x: Word, y: Word) -> Predicate:
        return self.builder.icmp_unsigned("<", x, y)

    def select(self, p: Predicate, x: Word, y: Word) -> Word:
        return self.builder.select(p, x, y)

    def both(self, p: Predicate, q: Predicate) -> Predicate:
        return self.builder.and_(p, q)

    def either(self, p: Predicate, q: Predicate) -> Predicate:
        return self.builder.or_(p, q)

    def differ(self, p: Predicate, q: Predicate) -> Predicate:
        return self.builder.xor(p, q)

    def negation(self, p: Predicate) -> Predicate:
        return self.builder.not_(p)

    def truth(self, value: bool) -> Predicate:
        return ir.Constant(ir.IntType(1), int(value))

    def word_of(self, p: Predicate) -> Word:
        return self.builder.zext(p, self.type)

    def real_of(self, x: Word) -> Real:
        return self.builder.uitofp(x, _DOUBLE)

    def real_constant(self, value: float) -> Real:
        return ir.Constant(_DOUBLE, value)

    def real_add(self, x: Real, y: Real) -> Real:
        return self.builder.fadd(x, y)

    def real_subtract(self, x: Real, y: Real) -> Real:
        return self.builder.fsub(x, y)

    def real_multiply(self, x: Real, y: Real) -> Real:
        return self.builder.fmul(x, y)

    def real_divide(self, x: Real, y: Real) -> Real:
        return self.builder.fdiv(x, y)

    def _real_call(self, name: str, *arguments: Real) -> Real:
        kind = ir.FunctionType(_DOUBLE, [_DOUBLE] * len(arguments))
        return self.builder.call(self.builder.module.declare_intrinsic(name, [_DOUBLE], kind), arguments)

    def real_sqrt(self, x: Real) -> Real:
        return self._real_call("llvm.sqrt", x)

    def real_fma(self, x: Real, y: Real, z: Real) -> Real:
        return self._real_call("llvm.fma", x, y, z)

    def real_negate(self, x: Real) -> Real:
        return self.builder.fneg(x)

    def real_abs(self, x: Real) -> Real:
        return self._real_call("llvm.fabs", x)

    def real_minimum(self, x: Real, y: Real) -> Real:
        return self.builder.select(self.real_less(x, y), x, y)

    def real_maximum(self, x: Real, y: Real) -> Real:
        return self.builder.select(self.real_less(y, x), x, y)

    def real_round(self, x: Real) -> Real:
        return self._real_call("llvm.rint", x)

    def real_less(self, x: Real, y: Real) -> Predicate:
        return self.builder.fcmp_ordered("<", x, y)

    def real_equal(self, x: Real, y: Real) -> Predicate:
        return self.builder.fcmp_ordered("==", x, y)

    def real_select(self, p: Predicate, x: Real, y: Real) -> Real:
        return self.builder.select(p, x, y)

    def real_bits(self, x: Real) -> Word:
        return self.builder.bitcast(x, self.type)

    def real_from_bits(self, x: Word) -> Real:
        return self.builder.bitcast(x, _DOUBLE)

    def real_from_signed(self, x: Word) -> Real:
        return self.builder.sitofp(x, _DOUBLE)

    def real32_of_bits(self, x: Word) -> Real:
        b = self.builder
        word = x if self.bits == 32 else b.trunc(x, ir.IntType(32))
        return b.fpext(b.bitcast(word, ir.FloatType()), _DOUBLE)

    def round32(self, x: Real) -> Word:
        b = self.builder
        word = b.bitcast(b.fptrunc(x, ir.FloatType()), ir.IntType(32))
        return word if self.bits == 32 else b.zext(word, self.type)

    def truncate(self, x: Real) -> Word:
        return self.builder.fptoui(x, self.type)

    def truncate_signed(self, x: Real) -> Word:
        return self.builder.fptosi(x, self.type)

    def table(self, values: tuple[float, ...] | tuple[int, ...], index: Word) -> Real | Word:
        return self.builder.load(self._entry(values, self._index(index)))

    def _entry(self, values: tuple[float, ...] | tuple[int, ...], index: Any) -> Any:
        """The address of an entry of a table, which the module holds once."""
        if values not in self._tables:
            element = self.real_element if isinstance(values[0], float) else ir.IntType(self.bits)
            kind = ir.ArrayType(element, len(values))
            module = self.builder.module
            constant = ir.GlobalVariable(module, kind, module.get_unique_name("table"))
            constant.linkage, constant.global_constant, constant.unnamed_addr = "private", True, True
            constant.initializer = ir.Constant(kind, [ir.Constant(element, value) for value in values])
            self._tables[values] = constant
        return self.builder.gep(self._tables[values], [ir.Constant(_SIZE, 0), index], inbounds=True)

    def _index(self, index: Word) -> Any:
        return index if self.bits == 64 else self.builder.zext(index, _SIZE)


def emit(kernel: Kernel) -> str:
    """LLVM IR of a loop over n elements: loop(n, operand pointers…, result pointer, pointer to uint8 flags)."""
    machine_type = ir.IntType(kernel.bits)
    kinds = [ir.IntType(8 * integer_dtype(min(width, 64)).itemsize) for width in (*kernel.operands, kernel.result)]
    module = ir.Module("soft")
    parameters = [_SIZE, *(kind.as_pointer() for kind in kinds), _BYTE.as_pointer()]
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), parameters), "loop")
    for argument in function.args[1:]:
        argument.add_attribute("noalias")
    entry, body, leave = (function.append_basic_block(name) for name in ("entry", "body", "leave"))
    size, *pointers, out, out_flags = function.args
    builder = ir.IRBuilder(entry)
    builder.cbranch(builder.icmp_unsigned("==", size, ir.Constant(_SIZE, 0)), leave, body)
    builder.position_at_end(body)
    index = builder.phi(_SIZE)
    index.add_incoming(ir.Constant(_SIZE, 0), entry)
    machine = LlvmMachine(builder, kernel.bits)

    def element(pointer: Any, count: int, limb: int) -> Any:
        place = builder.add(builder.mul(index, ir.Constant(_SIZE, count)), ir.Constant(_SIZE, limb))
        return builder.gep(pointer, [place], inbounds=True)

    def resized(value: Any, kind: Any) -> Any:
        wider = kind.width > value.type.width
        return value if kind == value.type else (builder.zext if wider else builder.trunc)(value, kind)

    values = []
    for pointer, width in zip(pointers, kernel.operands, strict=True):
        count = count_limbs(width)
        limbs = [builder.load(element(pointer, count, k)) for k in range(count)]
        values.append(Uint(machine, [resized(limb, machine_type) for limb in limbs], width))
    result = kernel(machine, *values)
    count = count_limbs(kernel.result)
    for k, limb in enumerate(result.word.limbs):
        builder.store(resized(limb, kinds[-1]), element(out, count, k))
    if kernel.flags:
        builder.store(builder.trunc(result.flags, _BYTE), element(out_flags, 1, 0))
    following = builder.add(index, ir.Constant(_SIZE, 1))
    index.add_incoming(following, body)
    latch = builder.cbranch(builder.icmp_unsigned("==", following, size), leave, body)
    builder.position_at_end(leave)
    builder.ret_void()
    text = str(module)
    if kernel.interleave:
        # llvmlite cannot write metadata that refer to themselves, as those of loops do
        text = text.replace(str(latch), f"{latch}, !llvm.loop !0") + (
            f'\n!0 = distinct !{{!0, !1}}\n!1 = !{{!"llvm.loop.interleave.count", i32 {kernel.interleave}}}\n'
        )
    return _with_wide_vectors(text)


def _with_wide_vectors(text: str) -> str:
    """The module with the function's vectors as wide as the processor has them."""
    lines = text.splitlines()
    lines = [line + " #0" if line.startswith("define ") else line for line in lines]
    return "\n".join([*lines, 'attributes #0 = { nounwind "prefer-vector-width"="512" }'])


_LOOPS: dict[Kernel, Any] = {}


def _loop(kernel: Kernel) -> Any:
    if kernel not in _LOOPS:
        from tlir.floatlib.soft import big, blocks

        if kernel.key:
            address = blocks.functions(kernel.key, lambda: kernel)["loop"]
        elif big.is_big(kernel):
            address = objects.compile_ir(big.emit(kernel), ["loop"], objects.PLAIN)["loop"]
        else:
            address = objects.compile_ir(emit(kernel), ["loop"])["loop"]
        pointers = [ctypes.c_void_p] * (len(kernel.operands) + 2)
        _LOOPS[kernel] = ctypes.CFUNCTYPE(None, ctypes.c_int64, *pointers)(address)
    return _LOOPS[kernel]


def run(kernel: Kernel, operands: tuple[Words, ...]) -> tuple[Words, NDArray[np.uint8] | None]:
    """Words and flags (None where the kernel has none) of operands of one common shape of elements."""
    call = _LOOPS.get(kernel) or _loop(kernel)
    shape = operands[0].shape[:-1] if kernel.operands[0] > 64 else operands[0].shape
    count = count_limbs(kernel.result)
    out = np.empty((*shape, count) if count > 1 else shape, dtype=integer_dtype(min(kernel.result, 64)))
    arrays = [np.ascontiguousarray(operand) for operand in operands]
    flags = np.empty(shape, dtype=np.uint8) if kernel.flags else None
    addresses = [objects.address(array) for array in (*arrays, out)]
    call(prod(shape), *addresses, None if flags is None else objects.address(flags))
    return out, flags
