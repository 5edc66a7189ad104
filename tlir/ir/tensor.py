"""Tensors as words: the bits of every element in its own format, never through another one.

``Tensor.words`` is a C-ordered NumPy array of unsigned integers of shape ``shape + (2,)? + (limbs,)?``: a trailing axis
of two for the real and imaginary words of a complex type, then a trailing axis of little-endian 64-bit limbs for
formats wider than 64 bits. The unused high bits of a word (int4 in a uint8) are zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlir.ir.types import NAMED, DType, TensorType

Words = NDArray[Any]

_NUMPY_FLOATS = {"float16": np.float16, "float32": np.float32, "float64": np.float64}
_NUMPY_COMPLEX = {"complex64": np.complex64, "complex128": np.complex128}


def words_shape(type: TensorType) -> tuple[int, ...]:
    """The shape of the array of words of a tensor of this type."""
    shape = type.shape + ((2,) if type.dtype.is_complex else ())
    return shape + ((type.dtype.limbs,) if type.dtype.limbs > 1 else ())


def numpy_dtype(dtype: DType) -> np.dtype[Any] | None:
    """The NumPy (or ml_dtypes) type whose elements are this dtype's words; None where there is none."""
    if dtype.is_bool:
        return np.dtype(np.bool_)
    if dtype.is_integer and dtype.bits >= 8:
        return np.dtype(dtype.name)
    if dtype.name in _NUMPY_FLOATS:
        return np.dtype(_NUMPY_FLOATS[dtype.name])
    if dtype.name in _NUMPY_COMPLEX:
        return np.dtype(_NUMPY_COMPLEX[dtype.name])
    if dtype.is_integer or (dtype.is_float and dtype.bits <= 16):
        import ml_dtypes

        if NAMED.get(dtype.name) == dtype and hasattr(ml_dtypes, dtype.name):
            return np.dtype(getattr(ml_dtypes, dtype.name))
    return None


def dtype_of_numpy(dtype: np.dtype[Any]) -> DType | None:
    """The dtype whose words a NumPy (or ml_dtypes) array of this type holds; None where there is none."""
    return NAMED.get("bool" if dtype == np.bool_ else dtype.name)


@dataclass(frozen=True, eq=False)
class Tensor:
    """A value: its type and its words (see the module's text for the layout of ``words``)."""

    type: TensorType
    words: Words

    def __post_init__(self) -> None:
        if not isinstance(self.words, np.ndarray):  # NumPy's operators make scalars of arrays without axes
            object.__setattr__(self, "words", np.asarray(self.words))
        if self.words.shape != words_shape(self.type) or self.words.dtype != self.type.dtype.word_dtype:
            raise ValueError(f"{self.type} does not have words of {self.words.dtype}{list(self.words.shape)}")

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.shape

    @property
    def dtype(self) -> DType:
        return self.type.dtype

    @classmethod
    def from_numpy(cls, array: NDArray[Any]) -> Tensor:
        """The words of a NumPy or ml_dtypes array, shared where the layout allows. ValueError for other types."""
        dtype = dtype_of_numpy(array.dtype)
        if dtype is None:
            raise ValueError(f"no dtype holds the elements of a NumPy array of {array.dtype}")
        native = array.astype(array.dtype.newbyteorder("="), copy=False) if array.dtype.byteorder == ">" else array
        words = np.ascontiguousarray(native).view(dtype.word_dtype)
        type = TensorType(tuple(array.shape), dtype)
        words = words.reshape(words_shape(type))
        if dtype.is_integer and dtype.bits < 8:
            # ml_dtypes sign-extends the high bits of int2 and int4; words keep them zero
            words = words & np.uint8((1 << dtype.bits) - 1)
        if dtype.is_bool and words.max(initial=0) > 1:
            # memory of something else, looked at as Booleans: what is not 0 is true, as it is to NumPy
            words = (words != 0).view(np.uint8)
        return cls(type, words)

    def to_numpy(self) -> NDArray[Any]:
        """The values as a NumPy array, of an ml_dtypes type for the small formats.

        A format that NumPy cannot hold gives an object array of ``tlir.floatlib.value.Value``; a complex type over one,
        of pairs of them.
        """
        native = numpy_dtype(self.dtype)
        if native is None:
            return self._to_objects()
        words = self.words
        if self.dtype.is_integer and self.dtype.bits < 8 and self.dtype.is_signed:
            sign = np.uint8(1 << (self.dtype.bits - 1))
            words = np.subtract(words ^ sign, sign)  # the operator warns of a scalar that wraps around
        array: NDArray[Any] = np.ascontiguousarray(words).view(native).reshape(self.shape)
        return array

    def _to_objects(self) -> NDArray[Any]:
        from tlir.floatlib.arrays import to_ints
        from tlir.floatlib.value import Value

        fmt = self.dtype.float_format
        flat = [Value(fmt, int(word)) for word in to_ints(fmt, self.words).reshape(-1)]
        items: list[Any] = list(zip(flat[::2], flat[1::2], strict=True)) if self.dtype.is_complex else list(flat)
        array = np.empty(len(items), dtype=object)
        array[:] = items
        return array.reshape(self.shape)

    def row(self, index: int) -> Tensor:
        """The part at one place of the first axis, which is left out; its words are shared."""
        return Tensor(TensorType(self.shape[1:], self.dtype), np.asarray(self.words[index]))

    def same_words(self, other: Tensor) -> bool:
        """Equal types and equal words: NaN payloads and signs of zeros included."""
        return self.type == other.type and bool(np.array_equal(self.words, other.words))
