"""Words as text and bytes: hexadecimal, base64, and the little-endian bytes of external files, both ways.

In memory the words of a tensor are an array as ``tlir.ir.tensor`` lays it out. Outside, each word has as many bytes as
its bits need (``DType.word_bytes``), or as many hexadecimal digits; a complex element is its real word, then its
imaginary word. Decoding is strict: one value has one text.
"""

from __future__ import annotations

import binascii
import re
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlir.ir.tensor import Words, words_shape
from tlir.ir.types import DType, TensorType
from tlir.schema.fault import Fault, show

_BLOCK = 1 << 15
"""Words that are converted at a time: what bounds the memory beside the text and the result."""

_SCALAR_PATH = 32
"""Up to this many words, plain Python is faster than NumPy."""

_NIBBLE_OF = np.full(256, 255, dtype=np.uint8)
_NIBBLE_OF[[*b"0123456789abcdef"]] = range(16)
_DIGIT_OF = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)


def word_count(type: TensorType) -> int:
    """Words of a tensor, two per complex element."""
    return type.size * type.dtype.components


def hex_digits(dtype: DType) -> int:
    """Hexadecimal digits of one word."""
    return (dtype.bits + 3) // 4


def _storage_bytes(dtype: DType) -> int:
    return dtype.limbs * dtype.word_dtype.itemsize


def _shaped(words: NDArray[Any], type: TensorType) -> Words:
    check_words(words, type)
    return words.reshape(words_shape(type))


# ---- validity -------------------------------------------------------------------------------------------------------


def check_words(words: NDArray[Any], type: TensorType) -> None:
    """Fault TL0402, with the index of the element, where a word has a bit beyond its dtype's (a Boolean other than 0
    and 1, an int4 above f). ``words`` is the array in any shape, row-major."""
    spare = type.dtype.bits % (8 * type.dtype.word_dtype.itemsize)
    if not spare or not words.size:
        return
    flat = words.reshape(-1)[type.dtype.limbs - 1 :: type.dtype.limbs]
    limit = flat.dtype.type((1 << spare) - 1)
    for start in range(0, flat.size, 1 << 22):
        above = flat[start : start + (1 << 22)] > limit
        if above.any():
            position = start + int(above.argmax())
            where = element_text(position // type.dtype.components, type)
            kind = "a Boolean is 0 or 1" if type.dtype.is_bool else f"{type.dtype.name} has {type.dtype.bits} bits"
            raise Fault("TL0402", f"the word of element {where} is not one of {type.dtype.name}: {kind}")


def element_text(element: int, type: TensorType) -> str:
    """The index of the element at this row-major position, such as ``[1, 2]``."""
    return str([int(index) for index in np.unravel_index(element, type.shape)]) if type.shape else "[]"


# ---- hexadecimal ----------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _hex_pattern(digits: int) -> re.Pattern[str]:
    return re.compile(f"[0-9a-f]{{{digits}}}(?: [0-9a-f]{{{digits}}})*")


def from_hex(text: str, type: TensorType) -> Words:
    """The words of hexadecimal text: one space between words, lower-case digits, exactly as many as the bits need.

    Fault TL0401 for another number of words, TL0403 for other text, TL0402 for a word beyond the dtype.
    """
    count, digits = word_count(type), hex_digits(type.dtype)
    if len(text) != max(count * (digits + 1) - 1, 0):
        raise _hex_length_fault(text, type, count, digits)
    if count <= _SCALAR_PATH and type.dtype.limbs == 1 and count and _hex_pattern(digits).fullmatch(text):
        return _shaped(np.array([int(word, 16) for word in text.split(" ")], dtype=type.dtype.word_dtype), type)
    size = _storage_bytes(type.dtype)
    data = np.empty((count, size), dtype=np.uint8)
    for start in range(0, count, _BLOCK):
        stop = min(start + _BLOCK, count)
        data[start:stop] = _hex_block(text, start, stop, digits, size)
    return _shaped(_native(data, type.dtype), type)


def _hex_block(text: str, start: int, stop: int, digits: int, size: int) -> NDArray[np.uint8]:
    """Little-endian bytes [stop - start, size] of words ``start`` to ``stop``."""
    block = text[start * (digits + 1) : stop * (digits + 1)].ljust((stop - start) * (digits + 1))
    # a character beyond ASCII becomes "?", which is no digit
    characters = np.frombuffer(block.encode("ascii", "replace"), dtype=np.uint8).reshape(-1, digits + 1)
    nibbles = np.zeros((stop - start, 2 * size), dtype=np.uint8)
    nibbles[:, 2 * size - digits :] = _NIBBLE_OF[characters[:, :digits]]
    wrong = (nibbles > 15).any(axis=1) | (characters[:, digits] != ord(" "))
    if wrong.any():
        word = start + int(wrong.argmax())
        found = text[word * (digits + 1) : (word + 1) * (digits + 1)]
        raise Fault("TL0403", f"word {word} is {show(found)}: expected {_digits_text(digits)} and one space")
    high, low = nibbles[:, ::2], nibbles[:, 1::2]
    return ((high << np.uint8(4)) | low)[:, ::-1]


def _digits_text(digits: int) -> str:
    return f"{digits} lower-case hexadecimal digit{'s' if digits > 1 else ''}"


def _hex_length_fault(text: str, type: TensorType, count: int, digits: int) -> Fault:
    found = text.count(" ") + 1 if text else 0
    if found != count:
        return Fault("TL0401", f"{found} words for {type}, which has {count}")
    return Fault("TL0403", f"each word of {type.dtype.name} has {_digits_text(digits)}, with one space between words")


def to_hex(words: Words, type: TensorType) -> str:
    """The hexadecimal text of an array of words; the inverse of ``from_hex``."""
    digits = hex_digits(type.dtype)
    data = np.ascontiguousarray(words, dtype=words.dtype.newbyteorder("<")).reshape(-1).view(np.uint8)
    data = data.reshape(-1, _storage_bytes(type.dtype))[:, ::-1]
    characters = np.empty((len(data), digits + 1), dtype=np.uint8)
    characters[:, digits] = ord(" ")
    nibbles = np.empty((len(data), 2 * _storage_bytes(type.dtype)), dtype=np.uint8)
    nibbles[:, ::2], nibbles[:, 1::2] = data >> 4, data & 15
    characters[:, :digits] = _DIGIT_OF[nibbles[:, 2 * _storage_bytes(type.dtype) - digits :]]
    return characters.tobytes()[:-1].decode("ascii")


# ---- bytes and base64 -----------------------------------------------------------------------------------------------


def byte_count(type: TensorType) -> int:
    """Bytes of a tensor's words outside memory."""
    return word_count(type) * type.dtype.word_bytes


def _native(data: NDArray[np.uint8], dtype: DType) -> NDArray[Any]:
    """Little-endian bytes [count, storage bytes] as native words (or limbs), flat."""
    return data.reshape(-1).view(dtype.word_dtype.newbyteorder("<")).astype(dtype.word_dtype, copy=False)


def from_bytes(data: Any, type: TensorType) -> Words:
    """The words in a buffer of ``byte_count`` little-endian bytes, without a copy where a word in memory has as many
    bytes as outside. Fault TL0402 for a word beyond the dtype."""
    raw = np.frombuffer(data, dtype=np.uint8)
    size, storage = type.dtype.word_bytes, _storage_bytes(type.dtype)
    if size != storage:
        padded = np.zeros((word_count(type), storage), dtype=np.uint8)
        padded[:, :size] = raw.reshape(-1, size)
        raw = padded
    elif raw.ctypes.data % type.dtype.word_dtype.itemsize:
        raw = raw.copy()
    return _shaped(_native(raw, type.dtype), type)


def held_words(value: dict[str, Any], type: TensorType) -> Words | None:
    """The words of a tensor in a document of Python objects whose base64 text is only made when it is read: what its
    dict's attribute ``array`` holds, flat little-endian words as the text has them. They are shared where nobody can
    write to them. None where there is no such array or not one of this type. Fault TL0402 as ``from_bytes``."""
    held = None if value.__class__ is dict else getattr(value, "array", None)
    size = type.dtype.word_bytes
    if size not in (1, 2, 4, 8) or not isinstance(held, np.ndarray) or held.dtype != np.dtype(f"<u{size}"):
        return None
    if held.shape != (word_count(type),) or not held.flags.c_contiguous:
        return None
    return from_bytes((held.copy() if _writable(held) else held).view(np.uint8), type)


def _writable(array: NDArray[Any]) -> bool:
    """Whether anybody can write to the memory of an array: through it or through what it is a view of."""
    base: Any = array
    while isinstance(base, np.ndarray):
        if base.flags.writeable:
            return True
        base = base.base
    return False


def to_bytes(words: Words, type: TensorType) -> memoryview:
    """The little-endian bytes of an array of words; the inverse of ``from_bytes``."""
    data = np.ascontiguousarray(words, dtype=words.dtype.newbyteorder("<")).reshape(-1).view(np.uint8)
    size, storage = type.dtype.word_bytes, _storage_bytes(type.dtype)
    if size != storage:
        data = np.ascontiguousarray(data.reshape(-1, storage)[:, :size]).reshape(-1)
    return data.data


def from_base64(text: str, type: TensorType) -> Words:
    """The words of base64 text (RFC 4648, with padding, nothing between). Faults as ``from_hex``."""
    expected = byte_count(type)
    if len(text) % 4:
        raise Fault("TL0403", f"base64 text has a multiple of 4 characters, this has {len(text)}")
    found = len(text) // 4 * 3 - text[-2:].count("=")
    if found != expected:
        raise Fault("TL0401", f"{found} bytes for {type}, which has {expected}")
    try:
        data = binascii.a2b_base64(text, strict_mode=True)
    except ValueError as error:
        raise Fault("TL0403", f"not base64: {error}") from None
    last = data[len(data) - (len(data) % 3 or 3) :] if data else b""
    if len(data) != expected or binascii.b2a_base64(last, newline=False) != text[-4:].encode():
        raise Fault("TL0403", "not base64: the last group has bits that belong to no byte")
    return from_bytes(data, type)


def to_base64(words: Words, type: TensorType) -> str:
    """The base64 text of an array of words; the inverse of ``from_base64``."""
    return binascii.b2a_base64(to_bytes(words, type), newline=False).decode("ascii")
