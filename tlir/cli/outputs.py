"""``--output FILE``: results as ``.json``, ``.npz``, ``.npy`` and ``.safetensors``, each written as a whole or not at
all, and only in formats that hold every value as what it is."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

import numpy as np

from tlir.errors import UnsupportedError, UsageError
from tlir.ir.tensor import Tensor, numpy_dtype

SUFFIXES = (".json", ".npz", ".npy", ".safetensors")


def check_output(path: str) -> str:
    """The suffix that says the format. UsageError TL0901 for another one, TL0902 for a folder that is not there."""
    suffix = os.path.splitext(path)[1]
    if suffix not in SUFFIXES:
        raise UsageError("TL0901", f"--output {path}: the name must end in one of {', '.join(SUFFIXES)}")
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise UsageError("TL0902", "there is no such folder", file=folder)
    return suffix


def require_holdable(suffix: str, names: Sequence[str], types: Sequence[Any]) -> None:
    """UnsupportedError TL0805 if the format cannot hold every one of the types; UsageError for several in one .npy."""
    if suffix == ".npy" and len(names) != 1:
        raise UsageError("TL0901", f".npy holds one array, and there are {len(names)} outputs", hint="use .npz")
    for name, type in zip(names, types, strict=True):
        if not _holds(suffix, type.dtype):
            raise UnsupportedError(
                "TL0805",
                f"{name} is {type}, which {suffix} cannot hold",
                hint="use .json, which holds the words of every dtype"
                + ("" if suffix == ".safetensors" or not _holds(".safetensors", type.dtype) else ", or .safetensors"),
            )


def _holds(suffix: str, dtype: Any) -> bool:
    if suffix == ".json":
        return True
    if suffix == ".safetensors":
        from tlir.ir.types import NAMED
        from tlir.schema.external import STORAGE

        return dtype.name in STORAGE and NAMED[dtype.name] == dtype
    native = numpy_dtype(dtype)
    # ml_dtypes' types are of kind "V" or of a module of their own: a .npy file forgets which one it was
    return native is not None and native.type.__module__ == "numpy"


def write_output(path: str, suffix: str, names: Sequence[str], tensors: Sequence[Tensor], document: Any) -> None:
    """Write the outputs; ``document`` is the JSON one. UsageError TL0109 where the file cannot be written."""
    if suffix == ".json":
        from tlir.cli.console import to_json

        _write(path, lambda file: file.write((to_json(document) + "\n").encode()))
    elif suffix == ".npy":
        _write(path, lambda file: np.save(file, tensors[0].to_numpy()))
    elif suffix == ".npz":
        arrays: dict[str, Any] = {name: tensor.to_numpy() for name, tensor in zip(names, tensors, strict=True)}
        _write(path, lambda file: np.savez(file, **arrays))
    else:
        from tlir.schema.external import write_safetensors

        _write(path, lambda file: write_safetensors(file, zip(names, tensors, strict=True)))


def _write(path: str, write: Callable[[BinaryIO], Any]) -> None:
    from tlir.schema.files import replacing

    with replacing(path) as file:
        write(file)
