"""Complex numbers in kernels: pairs of real ones.

A kernel is written with complex scalars and then, as the last step, with their parts: a complex value becomes two
values, and a complex array one of twice as many elements, real and imaginary parts in turn, as its words lie in memory.
What an operation does to the parts is what its meaning says, product for product and sum for sum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from tlir.ir.ops import elementary, special
from tlir.ir.types import BOOL, DType
from tlir.kernel import index as ix
from tlir.kernel.ir import (
    Apply,
    Block,
    Branch,
    Buffer,
    Each,
    Kernel,
    Literal,
    Load,
    Loop,
    Position,
    Statement,
    Store,
    Value,
    results_of,
)
from tlir.passes.lower.functions import function_reason, has_complex_kernel
from tlir.passes.lower.words import integer_word

Pair = tuple[Value, Value]

_WHOLE = frozenset(operation.name for family in (elementary, special) for operation in family.OPERATIONS) - {
    "integer_pow"
} | {"divide", "sqrt", "sign"}


def complex_reason(op: str, attrs: Mapping[str, Any], dtype: DType) -> str | None:
    """Why an operation on a first operand of this dtype is not one on the parts; None if it is, or is not complex."""
    if not dtype.is_complex:
        return None
    if op == "integer_pow" and attrs["exponent"] < 0:
        op = "divide"
    if op in _WHOLE and not has_complex_kernel(op, dtype.component):
        return "each part of its exact complex result is rounded once"
    return function_reason("hypot", dtype.component) if op == "abs" else None


def in_parts(kernel: Kernel) -> Kernel:
    """The kernel without complex numbers; itself if it has none."""
    values = [value for statement in kernel.body.walk() for value in results_of(statement)]
    dtypes = {buffer.dtype for buffer in kernel.buffers} | {value.dtype for value in values}
    if not any(dtype.is_complex for dtype in dtypes):
        return kernel
    numbers = [value.number for value in values]
    numbers += [p.number for s in kernel.body.walk() if isinstance(s, Loop) for p in s.parameters]
    writer = _Writer(1 + max(numbers, default=0))
    body = writer.block(kernel.body)
    return replace(kernel, buffers=tuple(map(writer.buffer, kernel.buffers)), body=body)


class _Writer:
    """Writes statements anew. ``pairs`` has the parts of complex values, ``same`` what a real value is that was
    computed from complex ones."""

    def __init__(self, first: int) -> None:
        self.numbers = count(first)
        self.pairs: dict[Value, Pair] = {}
        self.same: dict[Value, Value] = {}
        self.statements: list[Statement] = []

    # ---- names ------------------------------------------------------------------------------------------------------

    def buffer(self, buffer: Buffer) -> Buffer:
        if not buffer.dtype.is_complex:
            return buffer
        return replace(buffer, dtype=buffer.dtype.component, size=2 * buffer.size)

    def new(self, dtype: DType) -> Value:
        return Value(next(self.numbers), dtype)

    def pair(self, value: Value) -> Pair:
        """Two new values for the parts of one."""
        part = value.dtype.component
        self.pairs[value] = self.new(part), self.new(part)
        return self.pairs[value]

    def flat(self, values: Sequence[Value]) -> tuple[Value, ...]:
        """Values with parts in the place of complex ones."""
        return tuple(part for value in values for part in self.pairs.get(value, (self.same.get(value, value),)))

    def defined(self, values: Sequence[Value]) -> tuple[Value, ...]:
        """As ``flat``, for values that are defined here."""
        return tuple(part for value in values for part in (self.pair(value) if value.dtype.is_complex else (value,)))

    # ---- statements -------------------------------------------------------------------------------------------------

    def block(self, block: Block) -> Block:
        before, self.statements = self.statements, []
        for statement in block.statements:
            self.statement(statement)
        written, self.statements = self.statements, before
        return Block(tuple(written), self.flat(block.results))

    def statement(self, statement: Statement) -> None:
        match statement:
            case Literal(result, word) if isinstance(word, tuple):
                self.statements += [Literal(part, w) for part, w in zip(self.pair(result), word, strict=True)]
            case Load(result, buffer, offset, guard, otherwise) if buffer.dtype.is_complex:
                others: Sequence[Value | None] = (None, None) if otherwise is None else self.pairs[otherwise]
                for k, (part, other) in enumerate(zip(self.pair(result), others, strict=True)):
                    at = ix.add(ix.multiply(offset, 2), k)
                    self.statements.append(Load(part, self.buffer(buffer), at, guard, other))
            case Load(otherwise=otherwise) if otherwise is not None:
                self.statements.append(replace(statement, otherwise=self.same.get(otherwise, otherwise)))
            case Store(buffer, offset, value) if buffer.dtype.is_complex:
                for k, part in enumerate(self.pairs[value]):
                    self.statements.append(Store(self.buffer(buffer), ix.add(ix.multiply(offset, 2), k), part))
            case Apply():
                self.apply(statement)
            case Store(value=value):
                self.statements.append(replace(statement, value=self.same.get(value, value)))
            case Branch(results, condition, then, otherwise):
                blocks = self.block(then), self.block(otherwise)
                self.statements.append(Branch(self.defined(results), self.same.get(condition, condition), *blocks))
            case Loop(results, variable, start, parameters, body):
                inside, span = self.defined(parameters), statement.span
                within = self.block(body)
                self.statements.append(Loop(self.defined(results), variable, self.flat(start), inside, within, span))
            case Each(variables, body):
                self.statements.append(Each(variables, self.block(body), statement.span))
            case Literal() | Position() | Load():
                self.statements.append(statement)

    def apply(self, statement: Apply) -> None:
        result, operands = statement.result, statement.operands
        known = replace(statement, operands=tuple(self.same.get(value, value) for value in operands))
        if not any(value.dtype.is_complex for value in (result, *operands)):
            self.statements.append(known)
            return
        made = _PARTS[statement.op](self, known)
        if isinstance(made, Value):
            self.same[result] = made
        else:
            self.pairs[result] = made

    # ---- arithmetic on parts ----------------------------------------------------------------------------------------

    def real(
        self, op: str, *operands: Value, dtype: DType | None = None, attrs: Mapping[str, Any] | None = None
    ) -> Value:
        """An operation on real values."""
        result = self.new(dtype or operands[0].dtype)
        self.statements.append(Apply(result, op, operands, attrs or {}))
        return result

    def literal(self, dtype: DType, number: int) -> Value:
        word = integer_word(dtype, number)
        result = self.new(dtype)
        self.statements.append(Literal(result, word))
        return result

    def converted(self, value: Value, dtype: DType, attrs: Mapping[str, Any]) -> Value:
        return value if value.dtype == dtype else self.real("convert", value, dtype=dtype, attrs=attrs)

    def product(self, x: Pair, y: Pair) -> Pair:
        (a, b), (c, d) = x, y
        real = self.real("subtract", self.real("multiply", a, c), self.real("multiply", b, d))
        imag = self.real("add", self.real("multiply", a, d), self.real("multiply", b, c))
        return real, imag

    def whole(self, op: str, operands: Sequence[Pair], dtype: DType) -> Pair:
        """By the operation on complex numbers itself: the parts come from one exact result."""
        result = self.real(op, *(self.real("complex", *pair, dtype=dtype) for pair in operands))
        return self.real("real", result, dtype=dtype.component), self.real("imag", result, dtype=dtype.component)


Made = Value | Pair
"""A real result, or the parts of a complex one."""


def _both(writer: _Writer, statement: Apply) -> Made:
    """The operation on real and imaginary parts by themselves."""
    operands = [writer.pairs[value] for value in statement.operands]
    real, imag = (writer.real(statement.op, *parts) for parts in zip(*operands, strict=True))
    return real, imag


def _multiply(writer: _Writer, statement: Apply) -> Made:
    x, y = (writer.pairs[value] for value in statement.operands)
    return writer.product(x, y)


def _whole(writer: _Writer, statement: Apply) -> Made:
    return writer.whole(statement.op, [writer.pairs[value] for value in statement.operands], statement.result.dtype)


def _abs(writer: _Writer, statement: Apply) -> Made:
    return writer.real("hypot", *writer.pairs[statement.operands[0]])


def _complex(writer: _Writer, statement: Apply) -> Made:
    real, imag = statement.operands
    return real, imag


def _conjugate(writer: _Writer, statement: Apply) -> Made:
    real, imag = writer.pairs[statement.operands[0]]
    return real, writer.real("negate", imag)


def _part(number: int) -> Callable[[_Writer, Apply], Made]:
    return lambda writer, statement: writer.pairs[statement.operands[0]][number]


def _select(writer: _Writer, statement: Apply) -> Made:
    condition, *choices = statement.operands
    pairs = zip(*(writer.pairs[value] for value in choices), strict=True)
    real, imag = (writer.real("select", condition, x, y, dtype=x.dtype) for x, y in pairs)
    return real, imag


def _compare(writer: _Writer, statement: Apply) -> Made:
    pairs = zip(*(writer.pairs[value] for value in statement.operands), strict=True)
    real, imag = (writer.real("compare", x, y, dtype=BOOL, attrs=statement.attrs) for x, y in pairs)
    return writer.real("and" if statement.attrs["comparison_direction"] == "EQ" else "or", real, imag)


def _convert(writer: _Writer, statement: Apply) -> Made:
    (operand,), target, attrs = statement.operands, statement.result.dtype, statement.attrs
    if not operand.dtype.is_complex:
        real = writer.converted(operand, target.component, attrs)
        return real, writer.literal(target.component, 0)
    real, imag = writer.pairs[operand]
    if target.is_bool:
        return writer.real("or", *(writer.real("convert", part, dtype=BOOL) for part in (real, imag)))
    if target.is_complex:
        return writer.converted(real, target.component, attrs), writer.converted(imag, target.component, attrs)
    return writer.converted(real, target, attrs)


def _integer_pow(writer: _Writer, statement: Apply) -> Made:
    """By the schedule that the operation states."""
    exponent, power = statement.attrs["exponent"], writer.pairs[statement.operands[0]]
    if exponent == 0:
        part = power[0].dtype
        return writer.literal(part, 1), writer.literal(part, 0)
    if exponent < 0:
        part = power[0].dtype
        one = writer.literal(part, 1), writer.literal(part, 0)
        return writer.whole("divide", (one, _raised(writer, power, -exponent)), statement.result.dtype)
    return _raised(writer, power, exponent)


def _raised(writer: _Writer, power: Pair, exponent: int) -> Pair:
    """To a positive power."""
    if exponent == 1:
        # the number itself, but a NaN part is the canonical one
        real, imag = (writer.real("integer_pow", part, attrs={"exponent": 1}) for part in power)
        return real, imag
    accumulator: Pair | None = None
    while True:
        if exponent & 1:
            accumulator = power if accumulator is None else writer.product(accumulator, power)
        exponent >>= 1
        if accumulator is not None and not exponent:
            return accumulator
        power = writer.product(power, power)


_PARTS: dict[str, Callable[[_Writer, Apply], Made]] = {
    **dict.fromkeys(_WHOLE, _whole),
    "add": _both,
    "subtract": _both,
    "negate": _both,
    "multiply": _multiply,
    "abs": _abs,
    "integer_pow": _integer_pow,
    "complex": _complex,
    "real": _part(0),
    "imag": _part(1),
    "conjugate": _conjugate,
    "select": _select,
    "compare": _compare,
    "convert": _convert,
}
