"""The shortest way from NumPy arrays to NumPy arrays, without looking at what is the same in every run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlir.backends.cpu.device import Executable
from tlir.backends.cpu.steps import Steps
from tlir.ir.tensor import numpy_dtype, words_shape
from tlir.ir.types import TensorType

Array = NDArray[Any]


class Direct:
    """Runs a program whose steps are all compiled on arrays that need no conversion."""

    def __init__(self, executable: Executable, steps: Steps) -> None:
        types = executable.program.types
        self.inputs = [(numpy_dtype(types[ref].dtype), types[ref].shape) for ref in executable.program.inputs]
        self.script = steps.script
        self._run = steps.run

    def run(self, arrays: Sequence[Any]) -> list[Array] | None:
        """The outputs, new arrays; None where an array is not just what an input takes."""
        if len(arrays) != len(self.inputs):
            return None
        for array, (dtype, shape) in zip(arrays, self.inputs, strict=False):
            if type(array) is not np.ndarray or array.dtype != dtype or array.shape != shape:
                return None
            if not array.flags.c_contiguous:
                return None
            if dtype == np.bool_ and array.view(np.uint8).max(initial=0) > 1:
                return None  # bytes that are no words of Booleans
        return self._run(arrays)


def direct(executable: Executable) -> Direct | None:
    """The short way for a program; None where it needs another one."""
    program = executable.program
    types = [program.types[ref] for ref in (*program.inputs, *program.outputs)]
    if any(numpy_dtype(type.dtype) is None or (type.dtype.is_integer and type.dtype.bits < 8) for type in types):
        return None
    steps = executable.steps(_native, new=True)
    return None if steps is None else Direct(executable, steps)


def _native(type: TensorType) -> tuple[tuple[int, ...], np.dtype[Any]]:
    native = numpy_dtype(type.dtype)
    return (type.shape, native) if native is not None else (words_shape(type), type.dtype.word_dtype)
