"""External files against the safetensors library, reading what it writes and writing what it reads; hostile files."""

from __future__ import annotations

import hashlib
import json
import mmap
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import SafetensorError, deserialize, safe_open
from safetensors.numpy import save_file

from tlir.floatlib.format import Format
from tlir.ir.tensor import Tensor, words_shape
from tlir.ir.types import NAMED, DType, TensorType, parse_dtype
from tlir.schema.external import STORAGE, ExternalFile, words_as, write_safetensors
from tlir.schema.fault import Fault

FORMATS = {"fp24": Format(7, 16), "f65": Format(10, 54)}
DTYPES = [*NAMED.values(), *(parse_dtype(n, FORMATS) for n in ("fp24", "f65", "complex<fp24>", "complex<float128>"))]

# What the library's NumPy interface knows, by dtype name
LIBRARY = {
    name: np.dtype(getattr(np, {"bool": "bool_"}.get(name, name), None) or getattr(ml_dtypes, name)) for name in STORAGE
}


def opened(path: Path) -> ExternalFile:
    data = path.read_bytes()
    return ExternalFile(path.parent, path.name, len(data), hashlib.sha256(data).hexdigest())


def random_tensor(dtype: DType, shape: tuple[int, ...], seed: int = 0) -> Tensor:
    type = TensorType(shape, dtype)
    rng = np.random.default_rng(seed)
    words = np.frombuffer(rng.bytes(max(type.nbytes, 1)), np.uint8)[: type.nbytes].view(dtype.word_dtype)
    words = words.reshape(words_shape(type)).copy()
    spare = dtype.bits % (8 * dtype.word_dtype.itemsize)
    if spare:
        last = words.reshape(-1)[dtype.limbs - 1 :: dtype.limbs]
        last &= dtype.word_dtype.type((1 << spare) - 1)
    return Tensor(type, words)


@pytest.mark.parametrize("name", STORAGE)
def test_tensors_that_the_library_writes_are_views_of_the_map(name: str, tmp_path: Path) -> None:
    tensor = random_tensor(NAMED[name], (3, 4))
    path = tmp_path / "a.safetensors"
    save_file({"t": tensor.words.view(LIBRARY[name]).reshape(3, 4), "u": np.zeros(3, np.uint8)}, path)
    read = opened(path).tensor("t", tensor.type)
    assert read.same_words(tensor)
    assert not read.words.flags.owndata
    assert not read.words.flags.writeable
    base = read.words.base
    while not isinstance(base, mmap.mmap | memoryview):
        base = base.base
    assert isinstance(base, mmap.mmap) or isinstance(base.obj, mmap.mmap)


def test_the_library_reads_what_is_written(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    tensors = {f"{dtype.name} {k}": random_tensor(dtype, (5, k), k) for dtype in DTYPES for k in (0, 3)}
    with open(path, "wb") as stream:
        size, sha256 = write_safetensors(stream, tensors.items())
    assert (size, sha256) == (path.stat().st_size, hashlib.sha256(path.read_bytes()).hexdigest())
    file = opened(path)
    library = dict(deserialize(path.read_bytes()))
    assert set(library) == set(tensors)
    for name, tensor in tensors.items():
        assert file.tensor(name, tensor.type).same_words(tensor)
        assert bytes(library[name]["data"]) == tensor.words.tobytes()
        if tensor.dtype.name in STORAGE:
            assert (library[name]["dtype"], library[name]["shape"]) == (STORAGE[tensor.dtype.name], list(tensor.shape))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_plain_words_are_read_for_every_dtype(dtype: DType, tmp_path: Path) -> None:
    tensor = random_tensor(dtype, (2, 3))
    path = tmp_path / "a.safetensors"
    stored, shape = words_as(tensor.type)
    assert (stored, tuple(shape)) == (f"U{8 * tensor.words.itemsize}", tensor.words.shape)
    save_file({"t": tensor.words}, path)
    assert opened(path).tensor("t", tensor.type).same_words(tensor)


def test_complex_numbers_as_their_parts(tmp_path: Path) -> None:
    tensor = random_tensor(NAMED["complex64"], (2, 3))
    path = tmp_path / "a.safetensors"
    save_file({"t": tensor.words.view(np.float32)}, path)
    assert opened(path).tensor("t", tensor.type).same_words(tensor)


def test_words_beyond_the_dtype_are_found(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    save_file({"b": np.array([0, 1, 2], np.uint8), "i": np.array([15, 16], np.uint8)}, path)
    for key, shape, dtype, where in (("b", 3, "bool", "[2]"), ("i", 2, "int4", "[1]")):
        with pytest.raises(Fault) as caught:
            opened(path).tensor(key, TensorType((shape,), NAMED[dtype]))
        assert caught.value.code == "TL0402"
        assert where in caught.value.message


def test_data_that_is_not_aligned_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    header = (
        b'{"t":{"dtype":"F64","shape":[2],"data_offsets":[1,17]},"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}'
    )
    data = np.array([1.5, -2.5]).tobytes()
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"\0" + data)
    read = opened(path).tensor("t", TensorType((2,), NAMED["float64"]))
    assert read.words.tobytes() == data
    assert read.words.flags.aligned


ENTRY = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
HEADERS: list[Any] = [
    [],
    3,
    {"t": 3},
    {"t": {}},
    {"t": ENTRY | {"more": 1}},
    {"t": ENTRY | {"dtype": 3}},
    {"t": ENTRY | {"shape": 2}},
    {"t": ENTRY | {"shape": [-2]}},
    {"t": ENTRY | {"shape": [2**100]}},
    {"t": ENTRY | {"data_offsets": [0]}},
    {"t": ENTRY | {"data_offsets": [8, 0]}},
    {"t": ENTRY | {"data_offsets": [0, 9]}},
    {"t": ENTRY | {"data_offsets": [-8, 0]}},
    {"t": ENTRY | {"data_offsets": [0, 2**100]}},
    {"t": ENTRY | {"data_offsets": [0, True]}},
    {"t": ENTRY | {"data_offsets": [0, 4]}},
    {"t": ENTRY, "u": ENTRY},
    {"t": ENTRY, "u": ENTRY | {"data_offsets": [7, 8], "dtype": "U8", "shape": [1]}},
]


@pytest.mark.parametrize("header", HEADERS, ids=range(len(HEADERS)))
def test_hostile_headers_are_faults(header: Any, tmp_path: Path) -> None:
    text = json.dumps(header).encode()
    refused(len(text).to_bytes(8, "little") + text + bytes(8), tmp_path)


def refused(data: bytes, folder: Path) -> None:
    path = folder / "a.safetensors"
    path.write_bytes(data)
    with pytest.raises(Fault) as caught:
        opened(path).tensor("t", TensorType((2,), NAMED["float32"]))
    assert caught.value.code == "TL0504"
    assert "a.safetensors" in caught.value.message


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0",
        bytes(8),
        b"\xff" * 16,
        (2**63).to_bytes(8, "little") + b"{}",
        (3).to_bytes(8, "little") + b"{}",
        (2).to_bytes(8, "little") + b"{}",
        (100 * 2**20 + 1).to_bytes(8, "little") + b"{}",
        (2).to_bytes(8, "little") + b"\xff\xff",
        (5000).to_bytes(8, "little") + b"[" * 5000,
        (13).to_bytes(8, "little") + b'{"a":1,"a":1}',
        (7).to_bytes(8, "little") + b'{"a":1.',
    ],
    ids=range(12),
)
def test_hostile_files_are_faults(data: bytes, tmp_path: Path) -> None:
    refused(data, tmp_path)


BASE = json.dumps({"t": ENTRY, "u": {"dtype": "U8", "shape": [3], "data_offsets": [8, 11]}}).encode()
FILE = len(BASE).to_bytes(8, "little") + BASE + bytes(range(11))


@settings(max_examples=400, deadline=None)
@given(
    st.integers(0, len(FILE) - 1),
    st.binary(max_size=3),
    st.integers(0, 4),
)
def test_what_the_library_accepts_of_a_mutated_file_is_read_as_it_reads_it(
    tmp_path_factory: pytest.TempPathFactory, at: int, put: bytes, drop: int
) -> None:
    data = FILE[:at] + put + FILE[at + drop :]
    path = tmp_path_factory.getbasetemp() / "mutated.safetensors"
    path.write_bytes(data)
    try:
        ours = opened(path).tensor("t", TensorType((2,), NAMED["float32"])).words.tobytes()
    except Fault:
        ours = None
    try:
        with safe_open(path, "np") as library:
            theirs = library.get_tensor("t")
    except (SafetensorError, ValueError):
        return
    if theirs.dtype == np.float32 and theirs.shape == (2,):
        assert ours == theirs.tobytes()


def test_a_file_that_shrinks_or_changes_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.safetensors"
    save_file({"t": np.zeros(1 << 20, np.float32)}, path)
    size, sha256 = path.stat().st_size, hashlib.sha256(path.read_bytes()).hexdigest()

    class Shrinking:
        """A digest that cuts the file after the first piece, as another program might."""

        def update(self, piece: bytes) -> None:
            with open(path, "r+b") as stream:
                stream.truncate(1 << 20)

        def hexdigest(self) -> str:
            return sha256

    monkeypatch.setattr("tlir.schema.external.hashlib.sha256", Shrinking)
    with pytest.raises(Fault, match="became shorter") as caught:
        ExternalFile(tmp_path, path.name, size, sha256)
    assert caught.value.code == "TL0503"


def test_a_map_outlives_the_file_that_replaces_it(tmp_path: Path) -> None:
    path, other = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    save_file({"t": np.arange(4, dtype=np.float32)}, path)
    tensor = opened(path).tensor("t", TensorType((4,), NAMED["float32"]))
    save_file({"t": np.zeros(1, np.float32)}, other)
    other.replace(path)
    assert tensor.words.view(np.float32).tolist() == [0, 1, 2, 3]
