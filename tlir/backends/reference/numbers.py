"""Sums and products of one dtype, for operations that combine many elements: reductions, contractions, powers.

Elements are held in a *carrier*: an array that ``load`` makes from words and ``store`` turns back. For most dtypes it
is the array of words itself. float16, bfloat16, float32 and float64 are carried as NumPy's (ml_dtypes') own floats,
whose addition and multiplication return the specified words except for the payload of NaN; a NaN stays one through
any number of steps, so making it canonical at the end is enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tlir.backends.reference import integers
from tlir.backends.reference.invocation import FlagRecord
from tlir.backends.reference.layout import join, parts, tail
from tlir.errors import UnsupportedError
from tlir.floatlib import arrays
from tlir.floatlib.convert import from_integer as float_from_integer
from tlir.floatlib.format import Format
from tlir.floatlib.words import constant, is_finite, is_nan, select
from tlir.ir.tensor import Words
from tlir.ir.types import DType

Carrier = NDArray[Any]


class Numbers(Protocol):
    """The arithmetic of one dtype. Operands broadcast; ``identity`` is a scalar that does.

    ``axes`` counts the axes of a carrier behind those of the shape;
    ``ufuncs`` are NumPy's functions on carriers, where ``accumulate`` of them is the sequential order.
    """

    axes: int
    ufuncs: dict[str, np.ufunc]

    def load(self, words: Words) -> Carrier: ...

    def store(self, carrier: Carrier) -> Words: ...

    def identity(self, operation: str) -> Carrier:
        """0 for add, 1 for multiply."""

    def add(self, a: Carrier, b: Carrier) -> Carrier: ...

    def multiply(self, a: Carrier, b: Carrier) -> Carrier: ...

    def fma(self, a: Carrier, b: Carrier, c: Carrier) -> Carrier: ...


class Booleans:
    """bool, with or for the sum and and for the product."""

    axes = 0
    ufuncs: dict[str, np.ufunc] = {"add": np.bitwise_or, "multiply": np.bitwise_and}  # noqa: RUF012

    def load(self, words: Words) -> Carrier:
        return words

    def store(self, carrier: Carrier) -> Words:
        return carrier

    def identity(self, operation: str) -> Carrier:
        return np.array(operation == "multiply", np.uint8)

    def add(self, a: Carrier, b: Carrier) -> Carrier:
        return np.bitwise_or(a, b)

    def multiply(self, a: Carrier, b: Carrier) -> Carrier:
        return np.bitwise_and(a, b)

    def fma(self, a: Carrier, b: Carrier, c: Carrier) -> Carrier:
        raise TypeError("bool has no fused multiply-add")


class Integers:
    """Integers modulo 2^bits. Carriers wrap at the size of the word, and ``store`` keeps the bits of the dtype."""

    axes = 0
    ufuncs: dict[str, np.ufunc] = {"add": np.add, "multiply": np.multiply}  # noqa: RUF012

    def __init__(self, dtype: DType) -> None:
        self.dtype = dtype

    def load(self, words: Words) -> Carrier:
        return words

    def store(self, carrier: Carrier) -> Words:
        return integers.to_words(self.dtype, carrier)

    def identity(self, operation: str) -> Carrier:
        return np.array(operation == "multiply", self.dtype.word_dtype)

    def add(self, a: Carrier, b: Carrier) -> Carrier:
        return np.add(a, b)

    def multiply(self, a: Carrier, b: Carrier) -> Carrier:
        return np.multiply(a, b)

    def fma(self, a: Carrier, b: Carrier, c: Carrier) -> Carrier:
        raise TypeError("integers have no fused multiply-add")


class SpecifiedFloats:
    """Floats as words, by ``tlir.floatlib``; ``flags`` collects what each step raises."""

    ufuncs: dict[str, np.ufunc] = {}  # noqa: RUF012

    def __init__(self, dtype: DType, flags: FlagRecord | None = None) -> None:
        self.dtype = dtype
        self.format = dtype.float_format
        self.axes = len(tail(dtype))
        self.flags = flags

    def load(self, words: Words) -> Carrier:
        return words

    def store(self, carrier: Carrier) -> Words:
        """The words, every NaN made the canonical one."""
        return select(
            self.format, is_nan(self.format, carrier), constant(self.format, self.format.invalid_word), carrier
        )

    def identity(self, operation: str) -> Carrier:
        return arrays.from_integer(self.format, np.array(operation == "multiply", np.uint8), 8, False)

    def _rounded(self, function: Any, *operands: Carrier) -> Carrier:
        if self.flags is None:
            result: Carrier = function(self.format, *operands)
            return result
        result, flags = function(self.format, *operands, flags=True)
        self.flags.note(flags)
        return result

    def real(self) -> SpecifiedFloats:
        """The arithmetic of the parts: itself."""
        return self

    def constant(self, value: int) -> Carrier:
        """A scalar, the integer rounded once."""
        word, _ = float_from_integer(self.format, value)
        return self.load(np.asarray(constant(self.format, word)))

    def choose(self, mask: NDArray[np.bool_], a: Carrier, b: Carrier) -> Carrier:
        """a where the mask is set, b elsewhere; the mask has the shape of the elements."""
        return np.where(mask.reshape(mask.shape + (1,) * self.axes), a, b)

    def add(self, a: Carrier, b: Carrier) -> Carrier:
        return self._rounded(arrays.add, a, b)

    def subtract(self, a: Carrier, b: Carrier) -> Carrier:
        return self._rounded(arrays.subtract, a, b)

    def multiply(self, a: Carrier, b: Carrier) -> Carrier:
        return self._rounded(arrays.multiply, a, b)

    def divide(self, a: Carrier, b: Carrier) -> Carrier:
        return self._rounded(arrays.divide, a, b)

    def sqrt(self, a: Carrier) -> Carrier:
        return self._rounded(arrays.sqrt, a)

    def fma(self, a: Carrier, b: Carrier, c: Carrier) -> Carrier:
        return self._rounded(arrays.fma, a, b, c)

    def hypot(self, a: Carrier, b: Carrier) -> Carrier:
        """sqrt(a*a + b*b) rounded once."""
        words = elementary("hypot", self.format, (self.store(a), self.store(b)), self.flags)
        return self.load(words)

    def negate(self, a: Carrier) -> Carrier:
        result: Carrier = arrays.negate(self.format, a)
        return result

    def absolute(self, a: Carrier) -> Carrier:
        result: Carrier = arrays.absolute(self.format, a)
        return result

    def copysign(self, a: Carrier, b: Carrier) -> Carrier:
        result: Carrier = arrays.copysign(self.format, a, b)
        return result

    def greater(self, a: Carrier, b: Carrier) -> NDArray[np.bool_]:
        """Where a > b, false for NaN."""
        return np.asarray(arrays.compare(self.format, a, b, "GT"))

    def finite(self, a: Carrier) -> NDArray[np.bool_]:
        return is_finite(self.format, self.store(a))

    # what complex numbers have too

    def conjugate(self, a: Carrier) -> Carrier:
        return a

    def parts(self, a: Carrier) -> tuple[Carrier, ...]:
        """The real numbers that a number is made of."""
        return (a,)

    def from_real(self, a: Carrier) -> Carrier:
        return a

    def scale(self, a: Carrier, factor: Carrier) -> Carrier:
        """a times a real number, each part rounded once."""
        return self.multiply(a, factor)

    def shrink(self, a: Carrier, divisor: Carrier) -> Carrier:
        """a divided by a real number, each part rounded once."""
        return self.divide(a, divisor)

    def modulus(self, a: Carrier) -> Carrier:
        """The absolute value, a real number rounded once."""
        return self.absolute(a)


class NativeFloats(SpecifiedFloats):
    """Floats as NumPy's or ml_dtypes' own, for the formats in ``NATIVE``."""

    ufuncs: dict[str, np.ufunc] = {"add": np.add, "multiply": np.multiply}  # noqa: RUF012

    def __init__(self, dtype: DType) -> None:
        super().__init__(dtype)
        self.native = np.dtype(NATIVE[dtype.name])
        self.axes = 0

    def load(self, words: Words) -> Carrier:
        return np.asarray(words, order="C").view(self.native)

    def store(self, carrier: Carrier) -> Words:
        words = np.asarray(carrier, self.native, order="C").view(self.dtype.word_dtype)
        return np.where(np.isnan(carrier), self.dtype.word_dtype.type(self.format.invalid_word), words)

    def identity(self, operation: str) -> Carrier:
        return np.array(operation == "multiply", self.native)

    def add(self, a: Carrier, b: Carrier) -> Carrier:
        return np.add(a, b)

    def subtract(self, a: Carrier, b: Carrier) -> Carrier:
        return np.subtract(a, b)

    def multiply(self, a: Carrier, b: Carrier) -> Carrier:
        return np.multiply(a, b)

    def divide(self, a: Carrier, b: Carrier) -> Carrier:
        return np.divide(a, b)

    def sqrt(self, a: Carrier) -> Carrier:
        return np.sqrt(a)

    def negate(self, a: Carrier) -> Carrier:
        return np.negative(a)

    def absolute(self, a: Carrier) -> Carrier:
        return np.abs(a)

    def copysign(self, a: Carrier, b: Carrier) -> Carrier:
        return np.copysign(a, b)

    def greater(self, a: Carrier, b: Carrier) -> NDArray[np.bool_]:
        return np.greater(a, b)

    def fma(self, a: Carrier, b: Carrier, c: Carrier) -> Carrier:
        shape = np.broadcast_shapes(a.shape, b.shape, c.shape)
        operands = (self.store(np.broadcast_to(x, shape)) for x in (a, b, c))
        return self.load(super().fma(*operands))


class Complexes:
    """Complex numbers over the arithmetic of their parts, a trailing axis of two before the component's own axes."""

    def __init__(self, dtype: DType, component: SpecifiedFloats) -> None:
        self.dtype = dtype
        self.component = component
        self.axes = 1 + component.axes
        # a sum is the sums of the parts
        self.ufuncs = {name: ufunc for name, ufunc in component.ufuncs.items() if name == "add"}

    def load(self, words: Words) -> Carrier:
        return self.component.load(words)

    def store(self, carrier: Carrier) -> Words:
        return self.component.store(carrier)

    def identity(self, operation: str) -> Carrier:
        zero = self.component.identity("add")
        return join(self.dtype, self.component.identity(operation), zero)

    def add(self, a: Carrier, b: Carrier) -> Carrier:
        if self.component.flags is None:
            return self.component.add(a, b)
        # part by part, so that flags come in arrays of the elements' shape
        pairs = zip(parts(self.dtype, a), parts(self.dtype, b), strict=True)
        return join(self.dtype, *(self.component.add(x, y) for x, y in pairs))

    def real(self) -> SpecifiedFloats:
        """The arithmetic of the parts."""
        return self.component

    def choose(self, mask: NDArray[np.bool_], a: Carrier, b: Carrier) -> Carrier:
        return np.where(mask.reshape(mask.shape + (1,) * self.axes), a, b)

    def subtract(self, a: Carrier, b: Carrier) -> Carrier:
        pairs = zip(parts(self.dtype, a), parts(self.dtype, b), strict=True)
        return join(self.dtype, *(self.component.subtract(x, y) for x, y in pairs))

    def divide(self, a: Carrier, b: Carrier) -> Carrier:
        """Each part of the exact quotient rounded once."""
        words = elementary(
            "divide", self.dtype.float_format, (self.store(a), self.store(b)), self.component.flags, True
        )
        return self.load(words)

    def conjugate(self, a: Carrier) -> Carrier:
        x, y = parts(self.dtype, a)
        return join(self.dtype, x, self.component.negate(y))

    def parts(self, a: Carrier) -> tuple[Carrier, ...]:
        return parts(self.dtype, a)

    def from_real(self, a: Carrier) -> Carrier:
        """a + 0i."""
        return join(self.dtype, a, np.broadcast_to(self.component.identity("add"), a.shape))

    def scale(self, a: Carrier, factor: Carrier) -> Carrier:
        return join(self.dtype, *(self.component.multiply(x, factor) for x in parts(self.dtype, a)))

    def shrink(self, a: Carrier, divisor: Carrier) -> Carrier:
        return join(self.dtype, *(self.component.divide(x, divisor) for x in parts(self.dtype, a)))

    def modulus(self, a: Carrier) -> Carrier:
        return self.component.hypot(*parts(self.dtype, a))

    def multiply(self, a: Carrier, b: Carrier) -> Carrier:
        """(a + bi)(c + di), each product and each sum rounded by itself."""
        part = self.component
        (a_real, a_imag), (b_real, b_imag) = parts(self.dtype, a), parts(self.dtype, b)
        real = part.subtract(part.multiply(a_real, b_real), part.multiply(a_imag, b_imag))
        imag = part.add(part.multiply(a_real, b_imag), part.multiply(a_imag, b_real))
        return join(self.dtype, real, imag)

    def fma(self, a: Carrier, b: Carrier, c: Carrier) -> Carrier:
        raise TypeError("complex numbers have no fused multiply-add")


def elementary(
    name: str, fmt: Format, words: Sequence[Words], flags: FlagRecord | None, of_complex: bool = False
) -> Any:
    """A function of ``tlir.floatlib.elementary``, which brings in Arb and is loaded when used. UnsupportedError TL0801
    where operands of a very wide format would take more precision than there is."""
    from tlir.floatlib import elementary as library

    function = library.evaluate_complex if of_complex else library.evaluate
    try:
        if flags is None:
            return function(name, fmt, *words)
        result, raised = function(name, fmt, *words, flags=True)
    except library.ElementaryError as error:
        raise UnsupportedError("TL0801", str(error)) from error
    flags.note(raised)
    return result


NATIVE: dict[str, Any] = {
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "float32": np.float32,
    "float64": np.float64,
}
"""dtype -> the NumPy type whose arithmetic (+, -, *, /, sqrt) rounds as specified. float16 and bfloat16 are computed in
float32 there and rounded again, which is the same as once because float32 has more than twice their precision plus two
bits."""


Field = SpecifiedFloats | Complexes
"""The arithmetic of floats and of complex numbers, which divides."""


def field(dtype: DType, flags: FlagRecord | None = None) -> Field:
    """``numbers`` of a float or complex dtype."""
    arithmetic = numbers(dtype, flags)
    assert isinstance(arithmetic, (SpecifiedFloats, Complexes))
    return arithmetic


def numbers(dtype: DType, flags: FlagRecord | None = None) -> Numbers:
    """The arithmetic of a dtype; with ``flags``, the specified one that notes them (integers raise none)."""
    if dtype.is_bool:
        return Booleans()
    if dtype.is_integer:
        return Integers(dtype)
    if dtype.is_complex:
        return Complexes(dtype, _floats(dtype.component, flags))
    return _floats(dtype, flags)


def _floats(dtype: DType, flags: FlagRecord | None) -> SpecifiedFloats:
    return NativeFloats(dtype) if flags is None and dtype.name in NATIVE else SpecifiedFloats(dtype, flags)
