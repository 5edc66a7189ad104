"""Sums and products of one dtype, for operations that combine many elements: reductions, contractions, powers.

Elements are held in a *carrier*: an array that ``load`` makes from words and ``store`` turns back. For most dtypes it
is the array of words itself. float16, bfloat16, float32 and float64 are carried as NumPy's (ml_dtypes') own floats,
whose addition and multiplication return the specified words except for the payload of NaN; a NaN stays one through
any number of steps, so making it canonical at the end is enough.
"""

from __future__ import annotations

from typing import Any, Protocol

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tlir.backends.reference import integers
from tlir.backends.reference.invocation import FlagRecord
from tlir.backends.reference.layout import join, parts, tail
from tlir.floatlib import arrays
from tlir.floatlib.words import constant, is_nan, select
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

    def add(self, a: Carrier, b: Carrier) -> Carrier:
        return self._rounded(arrays.add, a, b)

    def subtract(self, a: Carrier, b: Carrier) -> Carrier:
        return self._rounded(arrays.subtract, a, b)

    def multiply(self, a: Carrier, b: Carrier) -> Carrier:
        return self._rounded(arrays.multiply, a, b)

    def fma(self, a: Carrier, b: Carrier, c: Carrier) -> Carrier:
        return self._rounded(arrays.fma, a, b, c)


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

    def multiply(self, a: Carrier, b: Carrier) -> Carrier:
        """(a + bi)(c + di), each product and each sum rounded by itself."""
        part = self.component
        (a_real, a_imag), (b_real, b_imag) = parts(self.dtype, a), parts(self.dtype, b)
        real = part.subtract(part.multiply(a_real, b_real), part.multiply(a_imag, b_imag))
        imag = part.add(part.multiply(a_real, b_imag), part.multiply(a_imag, b_real))
        return join(self.dtype, real, imag)

    def fma(self, a: Carrier, b: Carrier, c: Carrier) -> Carrier:
        raise TypeError("complex numbers have no fused multiply-add")


NATIVE: dict[str, Any] = {
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "float32": np.float32,
    "float64": np.float64,
}
"""dtype -> the NumPy type whose addition and multiplication round as specified. float16 and bfloat16 are computed in
float32 there and rounded again, which is the same as once because float32 has more than twice their precision plus two
bits."""


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
