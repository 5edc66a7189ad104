"""The encodings of words against plain Python integers, for every dtype, and against what is not their text."""

from __future__ import annotations

import base64

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tlir.floatlib.format import Format
from tlir.ir.tensor import Words, words_shape
from tlir.ir.types import NAMED, DType, TensorType, parse_dtype
from tlir.schema.fault import Fault
from tlir.schema.words import byte_count, from_base64, from_bytes, from_hex, hex_digits, to_base64, to_bytes, to_hex

FORMATS = {"f21": Format(5, 15), "f65": Format(10, 54), "f127": Format(15, 111), "widest": Format(30, 4096)}
DTYPES: list[DType] = [
    *NAMED.values(),
    *(parse_dtype(name, FORMATS) for name in FORMATS),
    *(parse_dtype(name, FORMATS) for name in ("complex<float16>", "complex<f65>", "complex<float128>", "complex<f21>")),
]


def as_integers(words: Words, type: TensorType) -> list[int]:
    """The words as Python integers, limb by limb: the oracle's view of the array."""
    flat = [int(limb) for limb in words.reshape(-1)]
    limbs = type.dtype.limbs
    return [sum(flat[k + j] << (64 * j) for j in range(limbs)) for k in range(0, len(flat), limbs)]


def some_words(type: TensorType, seed: int) -> list[int]:
    rng = np.random.default_rng(seed)
    count, bits = type.size * type.dtype.components, type.dtype.bits
    edges = [0, (1 << bits) - 1, 1, 1 << (bits - 1)]
    drawn = [int.from_bytes(rng.bytes(type.dtype.word_bytes), "little") & ((1 << bits) - 1) for _ in range(count)]
    return (edges + drawn)[:count] if count > 4 else drawn


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 5), (2, 0, 3), (70,)])
def test_all_encodings_give_the_words_of_plain_integers(dtype: DType, shape: tuple[int, ...]) -> None:
    type = TensorType(shape, dtype)
    words = some_words(type, len(shape))
    digits, size = (dtype.bits + 3) // 4, (dtype.bits + 7) // 8
    text = " ".join(f"{word:0{digits}x}" for word in words)
    data = b"".join(word.to_bytes(size, "little") for word in words)
    coded = base64.b64encode(data).decode()
    assert hex_digits(dtype) == digits
    assert byte_count(type) == len(data)
    for decoded in (from_hex(text, type), from_base64(coded, type), from_bytes(data, type)):
        assert decoded.shape == words_shape(type)
        assert decoded.dtype == dtype.word_dtype
        assert as_integers(decoded, type) == words
        assert to_hex(decoded, type) == text
        assert to_base64(decoded, type) == coded
        assert bytes(to_bytes(decoded, type)) == data


def test_large_tensors_are_converted_in_blocks() -> None:
    for name in ("float32", "float128", "tfloat32"):
        dtype = NAMED[name]
        type = TensorType((40_003,), dtype)
        words = some_words(type, 7)
        decoded = from_hex(" ".join(f"{word:0{hex_digits(dtype)}x}" for word in words), type)
        assert as_integers(decoded, type) == words
        broken = to_hex(decoded, type)
        at = 39_999 * (hex_digits(dtype) + 1)
        with pytest.raises(Fault, match="word 39999 is"):
            from_hex(broken[:at] + "G" + broken[at + 1 :], type)


def test_words_of_every_other_order_in_memory_are_written_the_same() -> None:
    type = TensorType((3, 4), NAMED["float32"])
    words = np.arange(12, dtype=np.uint32).reshape(3, 4)
    strided = np.asfortranarray(words)
    assert to_hex(strided, type) == to_hex(words, type)
    assert to_base64(strided, type) == to_base64(words, type)


NARROW = [dtype for dtype in DTYPES if dtype.bits % (8 * dtype.word_dtype.itemsize)]


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_a_bit_beyond_the_dtype_is_found_with_its_element(dtype: DType) -> None:
    type = TensorType((2, 3), dtype)
    spare_hex = hex_digits(dtype) * 4 > dtype.bits
    spare_byte = dtype.word_bytes * 8 > dtype.bits
    words = [0] * (6 * dtype.components)
    words[5 * dtype.components] = 1 << dtype.bits
    text = " ".join(f"{word:0{hex_digits(dtype)}x}" for word in words)
    if spare_hex:
        with pytest.raises(Fault, match=r"element \[1, 2\]") as caught:
            from_hex(text, type)
        assert caught.value.code == "TL0402"
    if spare_byte:
        data = b"".join(word.to_bytes(dtype.word_bytes, "little") for word in words)
        with pytest.raises(Fault, match=r"element \[1, 2\]"):
            from_bytes(data, type)
    assert spare_hex or spare_byte


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="0123456789abcdefABCFg \t\n\u0661", max_size=30), st.sampled_from(["uint8", "int4", "float32"]))
def test_hex_text_is_refused_unless_it_is_canonical(text: str, name: str) -> None:
    type = TensorType((3,), NAMED[name])
    digits = hex_digits(type.dtype)
    parts = text.split(" ")
    good = len(parts) == 3 and all(len(part) == digits and set(part) <= set("0123456789abcdef") for part in parts)
    if good:
        assert to_hex(from_hex(text, type), type) == text
    else:
        with pytest.raises(Fault) as caught:
            from_hex(text, type)
        assert caught.value.code in ("TL0401", "TL0403")


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="AQgw09+/=- \n\u0661", max_size=12))
def test_base64_text_is_refused_unless_it_is_canonical(text: str) -> None:
    type = TensorType((4,), NAMED["uint8"])
    try:
        data = base64.b64decode(text, validate=True)
        good = len(data) == 4 and base64.b64encode(data).decode() == text
    except ValueError:
        good = False
    if good:
        assert bytes(from_base64(text, type)) == data
    else:
        with pytest.raises(Fault) as caught:
            from_base64(text, type)
        assert caught.value.code in ("TL0401", "TL0403")
