"""C++ statements in the place of LLVM instructions.

``Builder`` has the methods of llvmlite's ``IRBuilder`` that the emission of scalars uses, with the same meaning, and
writes each as one statement that defines one variable. So every operation, and every software kernel, is emitted for
the processor and for CUDA by the same code, and only its last step differs. Integers are unsigned in C++, whose
arithmetic wraps; where a sign matters the statement casts. A float16 number is its 16 bits.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from math import isinf, isnan
from typing import Any

from llvmlite import ir

from tlir.floatlib.soft.lanes import DOUBLE, FLOAT, I1, I32, I64

HALF = ir.HalfType()

WIDTHS = (1, 8, 16, 32, 64)
"""Bits of C++'s own integers; others are those of ``big.h``."""


@dataclass(frozen=True)
class Text:
    """A C++ expression and its LLVM type."""

    type: Any
    text: str

    def __str__(self) -> str:
        return self.text


def type_name(kind: Any) -> str:
    """The C++ type of an LLVM type."""
    if isinstance(kind, ir.IntType):
        if kind.width not in WIDTHS:
            return f"tl_uint<{kind.width}>"
        return "bool" if kind.width == 1 else f"uint{kind.width}_t"
    if kind == HALF:
        return "uint16_t"
    if isinstance(kind, ir.PointerType):
        return f"{type_name(kind.pointee)}*"
    return str(kind)


def literal(kind: Any, value: Any) -> str:
    """A constant; binary floating-point numbers by their bits where C++ has no exact name for them."""
    if isinstance(kind, ir.IntType):
        if kind.width == 1:
            return "true" if value else "false"
        if kind.width not in WIDTHS:
            return _long_literal(kind, int(value) & ((1 << kind.width) - 1))
        number = int(value) & ((1 << kind.width) - 1)
        return (
            f"{number:#x}{'ull' if kind.width == 64 else 'u'}"
            if number > 9
            else f"{number}{'ull' if kind.width == 64 else 'u'}"
        )
    number = float(value)
    if isnan(number) or isinf(number):
        word = struct.pack(">d" if kind == DOUBLE else ">f", number).hex()
        return f"tl_bits_{'double' if kind == DOUBLE else 'float'}(0x{word}{'ull' if kind == DOUBLE else 'u'})"
    return number.hex() if kind == DOUBLE else f"{number.hex()}f"


def _long_literal(kind: Any, value: int) -> str:
    if value < 1 << 64:
        return f"{type_name(kind)}({value:#x}ull)"
    words = [value >> shift & 0xFFFFFFFFFFFFFFFF for shift in range(0, kind.width, 64)]
    return f"tl_literal<{kind.width}>({', '.join(f'{word:#x}ull' for word in words)})"


def expression(value: Any) -> str:
    """The text of an operand."""
    if isinstance(value, Text):
        return value.text
    assert isinstance(value, ir.Constant)
    return literal(value.type, value.constant)


class Builder:
    """Statements of one function's body, as lines."""

    has_fma = True

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.tables: dict[str, str] = {}
        """The definitions of constant arrays, by name."""
        self._names: dict[tuple[Any, Any], str] = {}
        self.depth = 1
        self._count = 0

    # ---- writing ----------------------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.lines.append("  " * self.depth + text)

    def name(self) -> str:
        self._count += 1
        return f"x{self._count}"

    def define(self, kind: Any, text: str) -> Text:
        """A new variable with this value."""
        name = self.name()
        self.line(f"const {type_name(kind)} {name} = {text};")
        return Text(kind, name)

    def variable(self, kind: Any, text: str) -> Text:
        """A new variable that may be assigned again."""
        name = self.name()
        self.line(f"{type_name(kind)} {name} = {text};")
        return Text(kind, name)

    def assign(self, variable: Text, value: Any) -> None:
        self.line(f"{variable} = {expression(value)};")

    @contextmanager
    def braces(self, head: str) -> Iterator[None]:
        """``head { … }``"""
        self.line(f"{head} {{")
        self.depth += 1
        yield
        self.depth -= 1
        self.line("}")

    @contextmanager
    def if_then(self, condition: Any, likely: bool | None = None) -> Iterator[None]:
        with self.braces(f"if ({expression(condition)})"):
            yield

    # ---- integers ---------------------------------------------------------------------------------------------------

    def _binary(self, sign: str, x: Any, y: Any) -> Text:
        kind = x.type
        text = f"{expression(x)} {sign} {expression(y)}"
        # narrow operands are promoted to int
        return self.define(kind, text if kind in (I32, I64, I1) else f"({type_name(kind)})({text})")

    def add(self, x: Any, y: Any) -> Any:
        return self._binary("+", x, y)

    def sub(self, x: Any, y: Any) -> Any:
        return self._binary("-", x, y)

    def mul(self, x: Any, y: Any) -> Any:
        if x.type in (I32, I64):
            return self._binary("*", x, y)
        # the product of two uint16 would overflow an int
        return self.define(x.type, f"({type_name(x.type)})((uint32_t){expression(x)} * {expression(y)})")

    def and_(self, x: Any, y: Any) -> Any:
        return self._binary("&", x, y)

    def or_(self, x: Any, y: Any) -> Any:
        return self._binary("|", x, y)

    def xor(self, x: Any, y: Any) -> Any:
        return self._binary("^", x, y)

    def not_(self, x: Any) -> Any:
        if x.type == I1:
            return self.define(I1, f"!{expression(x)}")
        return self.define(x.type, f"({type_name(x.type)})~{expression(x)}")

    def udiv(self, x: Any, y: Any) -> Any:
        return self._binary("/", x, y)

    def urem(self, x: Any, y: Any) -> Any:
        return self._binary("%", x, y)

    def _signed(self, sign: str, x: Any, y: Any) -> Text:
        left, right = self._as_signed(x), self._as_signed(y)
        return self.define(x.type, f"({type_name(x.type)})({left} {sign} {right})")

    def sdiv(self, x: Any, y: Any) -> Any:
        return self._signed("/", x, y)

    def srem(self, x: Any, y: Any) -> Any:
        return self._signed("%", x, y)

    def shl(self, x: Any, y: Any) -> Any:
        return self._binary("<<", x, y)

    def lshr(self, x: Any, y: Any) -> Any:
        return self._binary(">>", x, y)

    def ashr(self, x: Any, y: Any) -> Any:
        return self.define(x.type, f"({type_name(x.type)})({self._as_signed(x)} >> {expression(y)})")

    def _as_signed(self, x: Any) -> str:
        return f"(int{x.type.width}_t){expression(x)}"

    def icmp_unsigned(self, sign: str, x: Any, y: Any) -> Any:
        return self.define(I1, f"{expression(x)} {sign} {expression(y)}")

    def icmp_signed(self, sign: str, x: Any, y: Any) -> Any:
        return self.define(I1, f"{self._as_signed(x)} {sign} {self._as_signed(y)}")

    def select(self, condition: Any, x: Any, y: Any) -> Any:
        return self.define(x.type, f"{expression(condition)} ? {expression(x)} : {expression(y)}")

    def zext(self, x: Any, kind: Any) -> Any:
        return self.define(kind, f"({type_name(kind)}){expression(x)}")

    def sext(self, x: Any, kind: Any) -> Any:
        return self.define(kind, f"({type_name(kind)})(int{kind.width}_t){self._as_signed(x)}")

    def trunc(self, x: Any, kind: Any) -> Any:
        if kind == I1:
            return self.define(I1, f"({expression(x)} & 1u) != 0")
        return self.define(kind, f"({type_name(kind)}){expression(x)}")

    # ---- floating-point numbers -------------------------------------------------------------------------------------

    def _rounded(self, name: str, *operands: Any) -> Text:
        """One operation rounded to nearest even: CUDA's intrinsics, which are never contracted."""
        prefix = "d" if operands[0].type == DOUBLE else "f"
        return self.define(operands[0].type, f"__{prefix}{name}_rn({', '.join(map(expression, operands))})")

    def fadd(self, x: Any, y: Any) -> Any:
        return self._rounded("add", x, y)

    def fsub(self, x: Any, y: Any) -> Any:
        return self._rounded("sub", x, y)

    def fmul(self, x: Any, y: Any) -> Any:
        return self._rounded("mul", x, y)

    def fdiv(self, x: Any, y: Any) -> Any:
        return self._rounded("div", x, y)

    def frem(self, x: Any, y: Any) -> Any:
        return self._function("fmod", x.type, x, y)

    def fneg(self, x: Any) -> Any:
        return self.define(x.type, f"-{expression(x)}")

    def _function(self, name: str, kind: Any, *operands: Any) -> Text:
        suffix = "f" if kind == FLOAT else ""
        return self.define(kind, f"{name}{suffix}({', '.join(map(expression, operands))})")

    def fcmp_ordered(self, sign: str, x: Any, y: Any) -> Any:
        left, right = expression(x), expression(y)
        return self.define(I1, f"{left} < {right} || {left} > {right}" if sign == "!=" else f"{left} {sign} {right}")

    def fcmp_unordered(self, sign: str, x: Any, y: Any) -> Any:
        left, right = expression(x), expression(y)
        if sign == "uno":
            return self.define(I1, f"{left} != {left} || {right} != {right}")
        opposite = {"!=": "==", "ueq": None, "==": None}.get(sign)
        if opposite is None:
            return self.define(I1, f"!({left} < {right} || {left} > {right})")
        return self.define(I1, f"!({left} {opposite} {right})")

    def fpext(self, x: Any, kind: Any) -> Any:
        text = f"tl_half_to_float({expression(x)})" if x.type == HALF else expression(x)
        return self.define(kind, f"({type_name(kind)}){text}")

    def fptrunc(self, x: Any, kind: Any) -> Any:
        if kind == HALF:
            return self.define(HALF, f"tl_float_to_half({expression(x)})")
        return self.define(kind, f"__double2float_rn({expression(x)})")

    def sitofp(self, x: Any, kind: Any) -> Any:
        return self._from_integer("ll", f"(int64_t){self._as_signed(x)}", kind)

    def uitofp(self, x: Any, kind: Any) -> Any:
        return self._from_integer("ull", f"(uint64_t){expression(x)}", kind)

    def _from_integer(self, kind_of: str, text: str, kind: Any) -> Text:
        return self.define(kind, f"__{kind_of}2{'double' if kind == DOUBLE else 'float'}_rn({text})")

    def fptosi(self, x: Any, kind: Any) -> Any:
        return self.define(kind, f"({type_name(kind)})(int{kind.width}_t){expression(x)}")

    def fptoui(self, x: Any, kind: Any) -> Any:
        return self.define(kind, f"({type_name(kind)}){expression(x)}")

    def bitcast(self, x: Any, kind: Any) -> Any:
        if x.type == kind or {x.type, kind} == {HALF, ir.IntType(16)}:
            return Text(kind, expression(x))
        if kind in (FLOAT, DOUBLE):
            return self.define(kind, f"tl_bits_{type_name(kind)}({expression(x)})")
        return self.define(kind, f"tl_{type_name(x.type)}_bits({expression(x)})")

    # ---- memory -----------------------------------------------------------------------------------------------------

    def gep(self, start: Any, indices: list[Any], inbounds: bool = False) -> Text:
        (index,) = indices
        return Text(start.type, f"({start} + {expression(index)})")

    def load(self, place: Text, align: int | None = None) -> Text:
        return self.define(place.type.pointee, f"*{place}")

    def store(self, value: Any, place: Text, align: int | None = None) -> None:
        self.line(f"*{place} = {expression(value)};")

    # ---- what is no instruction -------------------------------------------------------------------------------------

    def intrinsic(self, name: str, result: Any, arguments: list[Any]) -> Text:
        """LLVM's intrinsic functions, by CUDA's or by those of the header."""
        texts = [expression(argument) for argument in arguments]
        if name == "llvm.fma":
            texts = [expression(argument) for argument in arguments]
            name = "__fma_rn" if result == DOUBLE else "__fmaf_rn"
            return self.define(result, f"{name}({', '.join(texts)})")
        if name == "llvm.sqrt":
            return self._rounded("sqrt", *arguments)
        if name in _FUNCTIONS:
            return self._function(_FUNCTIONS[name], result, *arguments)
        suffix = type_name(result).removesuffix("_t")
        if name in ("llvm.ctlz", "llvm.ctpop"):
            texts = texts[:1]
        return self.define(result, f"tl_{name.removeprefix('llvm.')}_{suffix}({', '.join(texts)})")

    def table(self, values: tuple[Any, ...], index: Any, element: Any) -> Text:
        """An entry of a constant array, which the source holds once."""
        if (values, element) not in self._names:
            numbers = ", ".join(literal(element, value) for value in values)
            definition = f"{type_name(element)} {{name}}[{len(values)}] = {{{{{numbers}}}}};"
            # named by content, so that kernels of one translation unit share it
            name = "table_" + sha256(definition.encode()).hexdigest()[:12]
            self._names[values, element] = name
            self.tables[name] = "TL_CONSTANT " + definition.format(name=name)
        return self.define(element, f"{self._names[values, element]}[{expression(index)}]")


_FUNCTIONS = {
    "llvm.fabs": "fabs",
    "llvm.floor": "floor",
    "llvm.ceil": "ceil",
    "llvm.trunc": "trunc",
    "llvm.rint": "rint",
    "llvm.round": "round",
}
