"""CUDA source to PTX by NVIDIA's runtime compiler, which needs no driver and no GPU.

The library is the one of the package ``nvidia-cuda-nvrtc``, or what the system's loader finds.
"""

from __future__ import annotations

import ctypes
import ctypes.util
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
"""A100, H100 and B200."""

FLAGS = ("--std=c++17", "--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true", "--disable-warnings")
"""Nothing is contracted, subnormal numbers are kept, and division and square root round once."""


class CompileError(RuntimeError):
    """NVRTC refused the source; the text is its log."""


@lru_cache(maxsize=1)
def library() -> Any | None:
    """The library, or None where it is not installed."""
    places: list[str] = []
    package = find_spec("nvidia")
    for folder in package.submodule_search_locations or () if package else ():
        # the cu13 wheels share one folder, the cu12 ones have one each
        found = sorted(Path(folder).glob("*/lib/libnvrtc.so.*"), key=lambda path: path.name)
        places += [str(path) for path in found if "alt" not in path.name]
    system = ctypes.util.find_library("nvrtc")
    for place in [*places, *([system] if system else [])]:
        try:
            return ctypes.CDLL(place)
        except OSError:
            continue
    return None


def to_ptx(text: str, architecture: str) -> str:
    """The PTX of a translation unit. CompileError with the log where it does not compile; RuntimeError where there is
    no NVRTC."""
    nvrtc = library()
    if nvrtc is None:
        raise RuntimeError("NVRTC is not installed: pip install nvidia-cuda-nvrtc")
    program = ctypes.c_void_p()
    _require(nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernels.cu", 0, None, None))
    try:
        options = [*FLAGS, f"--gpu-architecture={architecture.replace('sm_', 'compute_')}"]
        array = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        failed = nvrtc.nvrtcCompileProgram(program, len(options), array)
        if failed:
            raise CompileError(_text(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program))
        return _text(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, program)
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _require(code: int) -> None:
    if code:
        raise RuntimeError(f"NVRTC failed with code {code}")


def _text(size_of: Any, read: Any, program: ctypes.c_void_p) -> str:
    size = ctypes.c_size_t()
    _require(size_of(program, ctypes.byref(size)))
    buffer = ctypes.create_string_buffer(size.value)
    _require(read(program, buffer))
    return buffer.value.decode()
