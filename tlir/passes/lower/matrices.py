"""What kernels of matrices share: arrays in local memory, and the arithmetic of real and of complex numbers alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from tlir.ir.graph import Node, Ref
from tlir.ir.types import BOOL, DType, TensorType
from tlir.kernel import index as ix
from tlir.kernel.index import Index, flatten
from tlir.kernel.ir import Buffer, Span, Value
from tlir.passes.lower.emitter import Emitter, Frame
from tlir.passes.lower.functions import function_reason
from tlir.passes.lower.parts import complex_reason
from tlir.passes.lower.places import Place
from tlir.passes.lower.reduction import compare
from tlir.passes.lower.words import blank_word, integer_word

SHORT_ROW = 16
"""Columns below which the elements of a matrix are gone through as one row, which is long enough for lanes."""


class Numbers:
    """The operations on scalars of a float or complex dtype that the meanings of factorizations name.

    ``part`` is the dtype of real and imaginary parts: a complex number is shrunk, scaled, compared by them."""

    def __init__(self, emitter: Emitter, dtype: DType) -> None:
        self.emitter, self.dtype = emitter, dtype
        self.part = dtype.component if dtype.is_complex else dtype

    @property
    def zero(self) -> Value:
        return self.emitter.literal(self.dtype, blank_word(self.dtype))

    @property
    def one(self) -> Value:
        return self.emitter.literal(self.dtype, integer_word(self.dtype, 1))

    def number(self, value: int) -> Value:
        """An integer as a real number."""
        return self.emitter.literal(self.part, integer_word(self.part, value))

    def nan(self, dtype: DType | None = None) -> Value:
        """The canonical NaN, of both parts."""
        dtype = dtype or self.dtype
        word = dtype.float_format.invalid_word
        return self.emitter.literal(dtype, (word, word) if dtype.is_complex else word)

    def add(self, x: Value, y: Value) -> Value:
        return self.emitter.apply("add", (x, y))

    def subtract(self, x: Value, y: Value) -> Value:
        return self.emitter.apply("subtract", (x, y))

    def multiply(self, x: Value, y: Value) -> Value:
        return self.emitter.apply("multiply", (x, y))

    def divide(self, x: Value, y: Value) -> Value:
        return self.emitter.apply("divide", (x, y))

    def hypot(self, x: Value, y: Value) -> Value:
        return self.emitter.apply("hypot", (x, y))

    def sqrt(self, x: Value) -> Value:
        return self.emitter.apply("sqrt", (x,))

    def magnitude(self, x: Value) -> Value:
        """Of a real number."""
        return self.emitter.apply("abs", (x,))

    def parts(self, x: Value) -> tuple[Value, ...]:
        """The real numbers that a number is made of."""
        if not x.dtype.is_complex:
            return (x,)
        return tuple(self.emitter.apply(name, (x,), self.part) for name in ("real", "imag"))

    def joined(self, parts: Sequence[Value]) -> Value:
        return parts[0] if len(parts) == 1 else self.emitter.apply("complex", parts, self.dtype)

    def from_real(self, x: Value) -> Value:
        """x + 0i."""
        return self.joined((x, self.number(0))) if self.dtype.is_complex else x

    def conjugate(self, x: Value) -> Value:
        return self.emitter.apply("conjugate", (x,)) if x.dtype.is_complex else x

    def modulus(self, x: Value) -> Value:
        return self.emitter.apply("abs", (x,), self.part)

    def scale(self, x: Value, factor: Value) -> Value:
        """Each part times a real number."""
        return self.joined([self.multiply(part, factor) for part in self.parts(x)])

    def shrink(self, x: Value, divisor: Value) -> Value:
        """Each part divided by a real number."""
        return self.joined([self.divide(part, divisor) for part in self.parts(x)])

    def canonical(self, x: Value) -> Value:
        """x, a NaN made the canonical one: the greater of a part and itself."""
        return self.joined([self.emitter.apply("maximum", (part, part)) for part in self.parts(x)])

    def select(self, condition: Value, x: Value, y: Value) -> Value:
        return self.emitter.apply("select", (condition, x, y), x.dtype)

    def greater(self, x: Value, y: Value) -> Value:
        return compare(self.emitter, x, y, "GT")

    def both(self, x: Value, y: Value) -> Value:
        return self.emitter.apply("and", (x, y), BOOL)

    def is_zero(self, x: Value) -> Value:
        """Whether every part is 0 or -0."""
        if not self.part.float_format.has_zero:
            return self.emitter.literal(BOOL, 0)
        truths = [compare(self.emitter, part, self.number(0), "EQ") for part in self.parts(x)]
        return truths[0] if len(truths) == 1 else self.both(*truths)


class Array:
    """A local array, or an array of a batch in the buffer of a result (``behind`` the places of its batch)."""

    def __init__(self, emitter: Emitter, dtype: DType, *shape: int) -> None:
        self.emitter, self.shape = emitter, shape
        self.buffer: Buffer = emitter.local(dtype, prod(shape))

    def _at(self, place: Sequence[Index | int]) -> Index:
        indices = (ix.constant(index) if isinstance(index, int) else index for index in place)
        return flatten(indices, self.shape)

    def at(self, *place: Index | int) -> Value:
        return self.emitter.load(self.buffer, self._at(place))

    def put(self, value: Value, *place: Index | int) -> None:
        self.emitter.store(self.buffer, self._at(place), value)


class Result:
    """A result of the node in a kernel whose space is the batch: where it is stored."""

    def __init__(self, emitter: Emitter, node: Node, number: int, batch: Place) -> None:
        self.emitter, self.type, self.batch = emitter, node.types[number], batch
        self.buffer = emitter.output(Ref(node.id, number), self.type)

    def put(self, value: Value, *place: Index) -> None:
        self.emitter.store(self.buffer, flatten((*self.batch, *place), self.type.shape), value)


def operand_of(emitter: Emitter, frame: Frame, ref: Ref, batch: Place) -> Callable[..., Value]:
    """Reads an operand at a place behind the batch."""
    return lambda *place: emitter.element(frame, ref, (*batch, *place))


def sizes_of(type: TensorType, axes: int = 2) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The batch, and the last axes."""
    front = type.rank - axes
    return type.shape[:front], type.shape[front:]


def over(emitter: Emitter, rows: int, columns: int, step: Callable[[Index, Index], None]) -> None:
    """``step(row, column)`` for every element of a matrix, in any order."""
    if columns >= SHORT_ROW:
        emitter.each((rows, columns), lambda place: step(place[0], place[1]))
    else:
        emitter.each(
            (rows * columns,), lambda place: step(ix.quotient(place[0], columns), ix.remainder(place[0], columns))
        )


def span(first: Index | int, end: Index | int) -> Span:
    return Span(*(ix.constant(index) if isinstance(index, int) else index for index in (first, end)))


def each(emitter: Emitter, extent: int, first: Index | int, end: Index | int, step: Callable[[Index], None]) -> None:
    """``step(index)`` from ``first`` up to ``end``, in any order."""
    emitter.each((extent,), lambda place: step(place[0]), span(first, end))


def matrix_reason(op: str, dtype: DType) -> str | None:
    """Why an operation of factorizations has no kernel in this dtype; None if it has one, or for other operations."""
    if op in _HYPOT and (why := function_reason("hypot", dtype.component if dtype.is_complex else dtype)):
        return why
    return complex_reason("divide", {}, dtype) if op in _QUOTIENTS else None


_HYPOT = frozenset(("geqrf", "eigh", "svd"))
_QUOTIENTS = frozenset(("triangular_solve", "lu", "geqrf", "tridiagonal_solve", "svd"))
"""Operations whose steps take hypotenuses, and quotients of two complex numbers."""
