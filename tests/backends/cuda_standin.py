"""A stand-in for CuPy and a GPU: arrays in this process's memory, and the host build in the place of machine code."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from tlir.backends.cuda import device, host
from tlir.backends.cuda.function import Source
from tlir.backends.cuda.source import Code


class Array(np.ndarray[Any, Any]):
    """An array that says where it is only by its type."""

    def get(self) -> Any:
        return np.array(self.view(np.ndarray))


def _array(words: Any) -> Array:
    return np.array(words).view(Array)


class Module:
    """Functions of the host build for the kernels that the machine code of a file names."""

    kernels: ClassVar[dict[str, Source]] = {}
    loaded: ClassVar[list[bytes]] = []

    def __init__(self, *, path: str) -> None:
        code = Path(path).read_bytes()
        assert code.startswith(b"\x7fELF")
        self.loaded.append(code)
        self.built = host.build([kernel for kernel in self.kernels.values() if kernel.name.encode() in code])

    def get_function(self, name: str) -> Any:
        function = self.built[name].function

        def launch(grid: tuple[int], block: tuple[int], arguments: tuple[Any, ...]) -> None:
            total, *arrays = arguments
            assert isinstance(total, np.uint64)
            assert all(isinstance(array, Array) for array in arrays)
            # fewer blocks than are asked for take more turns, with scratch memory for all of them
            assert function(min(grid[0], 2), block[0], False, int(total), *(array.ctypes.data for array in arrays))

        return launch


class OutOfMemoryError(Exception):
    pass


def gpu() -> SimpleNamespace:
    """CuPy with a GPU of one processor, as far as the device can see."""
    attributes = {"MultiProcessorCount": 1}
    own = SimpleNamespace(attributes=attributes, compute_capability="90", synchronize=lambda: None)
    return SimpleNamespace(
        asarray=_array,
        empty=lambda shape, dtype: np.full(shape, 1, dtype).view(Array),
        zeros=lambda shape, dtype: np.zeros(shape, dtype).view(Array),
        RawModule=Module,
        cuda=SimpleNamespace(Device=lambda: own, memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError)),
    )


def install(patch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Puts the stand-in where the device looks for CuPy."""
    standin, real = gpu(), device.code

    def noted(kernel: Any) -> Any:
        made = real(kernel)
        if isinstance(made, Code):
            Module.kernels.update({one.name: one for one, _ in made.sources})
        return made

    patch.setattr(device, "cupy", lambda: standin)
    patch.setattr(device, "code", noted)
    return standin


def without_machine_code(text: str, capability: int) -> bytes:
    """In the place of ``nvrtc.code``: what the stand-in needs of machine code, which takes long to make."""
    return b"\x7fELF" + text.encode()
