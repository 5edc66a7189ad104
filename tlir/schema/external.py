"""External tensor data: ``.safetensors`` files beside an artifact, read by memory map, written from the words.

A file is opened once, its size and SHA-256 are verified by reading through that descriptor in pieces (so that a file
that is too short is an error and never a bus error, and its pages do not count as this process's memory), and then
mapped from the same descriptor. Tensors are views of the map. Nothing can protect a map from a file that is truncated
in place afterwards; files that tlir writes are replaced as a whole, which leaves maps of the old one intact.

A safetensors file is an unsigned 64-bit little-endian length, a JSON header of that length
(name → ``{"dtype", "shape", "data_offsets": [begin, end]}``), and the data, row-major and little-endian.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from tlir.ir.tensor import Tensor, words_shape
from tlir.ir.types import NAMED, DType, TensorType
from tlir.schema.fault import Fault, show
from tlir.schema.text import parse
from tlir.schema.words import check_words

MAX_HEADER = 100 * 2**20
_PIECE = 1 << 20
_OPEN_FLAGS = ("O_NONBLOCK", "O_CLOEXEC", "O_NOFOLLOW")

STORAGE: dict[str, str] = {
    "bool": "BOOL",
    **{f"int{bits}": f"I{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"U{bits}" for bits in (8, 16, 32, 64)},
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "complex64": "C64",
}
"""dtype → its name in a safetensors file. Every other dtype is stored as its words, see ``stored_as``."""


def stored_as(type: TensorType) -> tuple[str, list[int]]:
    """The safetensors dtype and shape that hold a tensor.

    A dtype with a name of its own there is stored under it. Any other one as its words in memory: ``U8`` to ``U64``,
    with a last axis of 64-bit limbs, least significant first, for words of more than 64 bits; a complex dtype other
    than complex64 as its components, with a last axis of two before that.
    """
    return (STORAGE["complex64"], list(type.shape)) if type.dtype.name == "complex64" else parts_as(type)


def parts_as(type: TensorType) -> tuple[str, list[int]]:
    """The same without a name for complex64, which old readers of safetensors files do not know."""
    component = type.dtype.component
    name = STORAGE.get(component.name) if NAMED.get(component.name) == component else None
    return name or words_as(type)[0], list(words_shape(type))


def words_as(type: TensorType) -> tuple[str, list[int]]:
    """The safetensors dtype and shape of a tensor's plain words, which a reader takes for every dtype."""
    return f"U{8 * type.dtype.word_dtype.itemsize}", list(words_shape(type))


# ---- reading --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Entry:
    dtype: str
    shape: list[int]
    begin: int
    end: int


class ExternalFile:
    """A verified, mapped file; ``tensor`` gives its tensors as views."""

    def __init__(self, folder: Path, name: str, size: int, sha256: str) -> None:
        """Open, verify and map ``folder / name``. Fault TL0501 to TL0504."""
        path = confined(folder, name)
        try:
            # not blocking, so that a pipe under this name is an error and not a wait
            descriptor = os.open(path, os.O_RDONLY | sum(getattr(os, flag, 0) for flag in _OPEN_FLAGS))
        except OSError as error:
            raise Fault("TL0501", f"the external file {show(name)} cannot be read: {error.strerror}") from None
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise Fault("TL0501", f"the external file {show(name)} is not a regular file")
        self._name = name
        with open(descriptor, "rb", buffering=0) as file:
            self._verify(file, size, sha256)
            header_size = self._header_size(file, size)
            file.seek(8)
            self._entries = _entries(file.read(header_size), size - 8 - header_size, name)
            self._start = 8 + header_size
            self._map = mmap.mmap(descriptor, size, access=mmap.ACCESS_READ)
            if os.fstat(descriptor).st_size != size:
                raise self._fault("TL0503", "changes while it is being read")

    def _fault(self, code: str, message: str) -> Fault:
        return Fault(code, f"the external file {show(self._name)} {message}")

    def _verify(self, file: Any, size: int, sha256: str) -> None:
        found = os.fstat(file.fileno()).st_size
        if found != size:
            raise self._fault("TL0503", f"has {found} bytes, the artifact says {size}")
        digest, left, piece = hashlib.sha256(), size, bytearray(_PIECE)
        while left:
            try:
                count = file.readinto(memoryview(piece)[: min(left, _PIECE)])
            except OSError as error:
                raise Fault(
                    "TL0501", f"the external file {show(self._name)} cannot be read: {error.strerror}"
                ) from None
            if not count:
                raise self._fault("TL0503", "became shorter while it was read")
            digest.update(memoryview(piece)[:count])
            left -= count
        if digest.hexdigest() != sha256:
            raise self._fault("TL0503", f"has the SHA-256 {digest.hexdigest()[:16]}…, the artifact says {sha256[:16]}…")

    def _header_size(self, file: Any, size: int) -> int:
        file.seek(0)
        header_size = int.from_bytes(file.read(8), "little")
        if size < 8 or header_size > min(MAX_HEADER, size - 8):
            raise self._fault("TL0504", f"is no safetensors file: a header of {header_size} bytes does not fit")
        return header_size

    def tensor(self, key: str, type: TensorType) -> Tensor:
        """The tensor of this name as a view of the map. Fault TL0504 where it is not there or of another type,
        TL0402 where a word is not valid for the dtype."""
        entry = self._entries.get(key)
        if entry is None:
            raise self._fault("TL0504", f"holds no tensor {show(key)}")
        if (entry.dtype, entry.shape) not in (stored_as(type), parts_as(type), words_as(type)):
            dtype, shape = stored_as(type)
            raise self._fault(
                "TL0504",
                f"holds {show(key)} as {_type_text(entry.dtype, entry.shape)}; {type} is stored as "
                f"{_type_text(dtype, shape)}",
            )
        native = type.dtype.word_dtype
        if entry.end - entry.begin != type.nbytes:
            raise self._fault(
                "TL0504", f"holds {show(key)} in {entry.end - entry.begin} bytes, {type} has {type.nbytes}"
            )
        words: NDArray[Any] = np.frombuffer(
            self._map, native.newbyteorder("<"), type.nbytes // native.itemsize, self._start + entry.begin
        )
        if not words.flags.aligned:
            words = words.copy()
        words = words.astype(native, copy=False)
        check_words(words, type)
        return Tensor(type, words.reshape(words_shape(type)))


def _type_text(dtype: str, shape: Sequence[int]) -> str:
    return f"{dtype}[{','.join(map(str, shape[:16]))}{',…' if len(shape) > 16 else ''}]"


def confined(folder: Path, name: str) -> Path:
    """The file ``name`` in ``folder`` or below it. Fault TL0502 for an absolute path, ``..``, or a symbolic link that
    leads out."""
    outside = Fault("TL0502", f"{show(name)} must be a path inside the artifact's folder, with / between its parts")
    relative = PurePosixPath(name)
    if relative.is_absolute() or not relative.parts or ".." in relative.parts or any(c in name for c in "\\:\0"):
        raise outside
    try:
        root, path = folder.resolve(), (folder / relative).resolve()
    except (OSError, RuntimeError, ValueError):
        raise Fault("TL0501", f"the external file {show(name)} cannot be found") from None
    if not path.is_relative_to(root):
        raise outside
    return path


def _entries(header: bytes, data_size: int, name: str) -> dict[str, _Entry]:
    """The tensors that a header declares; every one lies inside the data and none over another."""

    def fault(message: str, key: str) -> Fault:
        return Fault("TL0504", f"the external file {show(name)} is no safetensors file: tensor {show(key)} {message}")

    try:
        document = parse(header.rstrip(b" "))
    except Fault as error:
        message = f"the external file {show(name)} is no safetensors file: its header: {error.message}"
        raise Fault("TL0504", message) from None
    if type(document) is not dict:
        raise Fault("TL0504", f"the external file {show(name)} is no safetensors file: its header is not an object")
    entries: dict[str, _Entry] = {}
    for key, value in document.items():
        if key == "__metadata__":
            continue
        if type(value) is not dict or value.keys() != {"dtype", "shape", "data_offsets"}:
            raise fault("needs dtype, shape and data_offsets", key)
        dtype, shape, offsets = value["dtype"], value["shape"], value["data_offsets"]
        if type(dtype) is not str or not _is_sizes(shape) or not _is_sizes(offsets) or len(offsets) != 2:
            raise fault("has a dtype, shape or data_offsets of the wrong type", key)
        if not offsets[0] <= offsets[1] <= data_size:
            raise fault(f"lies outside the {data_size} bytes of data", key)
        entries[key] = _Entry(dtype, shape, offsets[0], offsets[1])
    end = 0
    for key, entry in sorted(entries.items(), key=lambda item: (item[1].begin, item[1].end)):
        if entry.begin < end:
            raise fault("lies over another one", key)
        end = entry.end
    return entries


def _is_sizes(value: Any) -> bool:
    return type(value) is list and all(type(size) is int and size >= 0 for size in value)


# ---- writing --------------------------------------------------------------------------------------------------------


def write_safetensors(file: BinaryIO, tensors: Iterable[tuple[str, Tensor]]) -> tuple[int, str]:
    """Write tensors under their names and return the file's size in bytes and its SHA-256.

    Large words come first and then smaller ones, so that every tensor is aligned; the words are written straight from
    memory. The same tensors give the same bytes.
    """
    ordered = sorted(tensors, key=lambda item: (-_width(item[1].dtype), item[0]))
    header: dict[str, Any] = {}
    offset = 0
    for name, tensor in ordered:
        dtype, shape = stored_as(tensor.type)
        header[name] = {"data_offsets": [offset, offset + tensor.type.nbytes], "dtype": dtype, "shape": shape}
        offset += tensor.type.nbytes
    text = json.dumps(header, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    digest = hashlib.sha256()
    size = 0
    parts: list[bytes | memoryview] = [len(text).to_bytes(8, "little"), text]
    for part in parts + [_buffer(tensor) for _, tensor in ordered]:
        digest.update(part)
        file.write(part)
        size += len(part)
    return size, digest.hexdigest()


def _width(dtype: DType) -> int:
    return dtype.word_dtype.itemsize


def _buffer(tensor: Tensor) -> memoryview:
    words = tensor.words.astype(tensor.words.dtype.newbyteorder("<"), copy=False)
    return np.ascontiguousarray(words).reshape(-1).view(np.uint8).data
