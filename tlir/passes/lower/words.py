"""Words that lowering writes into kernels: those of small constants, zeros, ones and the identities of reductions."""

from __future__ import annotations

from tlir.floatlib.convert import from_integer
from tlir.ir.tensor import Tensor
from tlir.ir.types import DType

Word = int | tuple[int, int]
"""A word, or the pair of words of a complex number's parts."""


def word_at(tensor: Tensor, position: int) -> Word:
    """The word of the element at a row-major position."""
    dtype = tensor.dtype
    limbs = tensor.words.reshape((tensor.type.size, dtype.components, dtype.limbs))[position]
    words = tuple(sum(int(limb) << (64 * k) for k, limb in enumerate(part)) for part in limbs)
    return (words[0], words[1]) if dtype.is_complex else words[0]


def is_splat(tensor: Tensor) -> bool:
    """Whether all elements, one at least, have the same word."""
    if not tensor.type.size:
        return False
    elements = tensor.words.reshape((tensor.type.size, -1))
    return bool((elements == elements[0]).all())


def integer_word(dtype: DType, value: int) -> Word:
    """The integer in the dtype: modulo 2^bits, or rounded once; a complex number has the imaginary part 0."""
    if dtype.is_complex:
        part = dtype.component
        return _real_word(part, value), _real_word(part, 0)
    return _real_word(dtype, value)


def _real_word(dtype: DType, value: int) -> int:
    if dtype.is_float:
        return from_integer(dtype.float_format, value)[0]
    return value & ((1 << dtype.bits) - 1)


def blank_word(dtype: DType) -> Word:
    """The word with no bit set."""
    return (0, 0) if dtype.is_complex else 0


def identity_word(dtype: DType, reducer: str) -> Word:
    """What a reduction starts from, as the operation ``reduce`` defines it."""
    if reducer in ("add", "multiply"):
        return integer_word(dtype, int(reducer == "multiply"))
    ones = (1 << dtype.bits) - 1
    if reducer in ("and", "or", "xor"):
        return ones if reducer == "and" else 0
    if dtype.is_float:
        fmt = dtype.float_format
        greatest = fmt.max_finite if fmt.inf is None else fmt.inf
        if reducer == "minimum":
            return greatest
        return fmt.sign_mask | greatest if fmt.signed else fmt.lowest_finite
    sign = 1 << (dtype.bits - 1) if dtype.is_signed else 0
    return sign if reducer == "maximum" else ones ^ sign
