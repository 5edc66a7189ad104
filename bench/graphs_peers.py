"""The loops of ``graphs_peers.c``, compiled by gcc, as peers of ``graphs.py``."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

SOURCE = Path(__file__).with_suffix(".c")
FLAGS = ("-O3", "-march=native", "-mprefer-vector-width=512", "-ffp-contract=off", "-shared", "-fPIC")
OUTPUTS: dict[str, Callable[[int], int]] = {"chain": lambda n: n, "recurrence": lambda n: n, "sum": lambda n: 1}
"""Each function, and the elements that it writes for an input of n."""


@lru_cache(maxsize=1)
def _library() -> ctypes.CDLL | None:
    gcc = shutil.which("gcc")
    if gcc is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "peers.so"
        subprocess.run([gcc, *FLAGS, str(SOURCE), "-o", str(path)], check=True)
        return ctypes.CDLL(str(path))


def caller(key: str, arguments: list[Any], threads: int) -> Callable[[], Any] | None:
    """A call of the workload's loop on one thread, which returns its output; None where there is none."""
    library = _library() if key in OUTPUTS and threads == 1 else None
    if library is None:
        return None
    (x,) = arguments
    result = np.zeros(OUTPUTS[key](x.size), np.float32)
    function = getattr(library, key)
    function.restype, function.argtypes = None, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long]

    def call() -> Any:
        function(x.ctypes.data, result.ctypes.data, x.size)
        return result

    return call
